//! Copies: by a thread for itself, and async ones by a simdgroup.
//!
//! Expanded, an async copy is made where it is issued, each lane its share of the elements, and a wait is a barrier of
//! the simdgroup (O5). By Apple's copy engine, where the copy lies inside its memory; elsewhere expanded.

use invar_ir::ops::{Group, Op};
use invar_ir::{AddressSpace, CopyOperands, CopyShape, ElementType, Memory, Type, Value};

use super::interface::AsyncCopies;
use super::types;
use super::writer::Writer;

impl Writer<'_> {
    pub(super) fn copy(&mut self, operands: &CopyOperands, count: Value) {
        self.copy_helper(operands.destination, operands.source);
        let arguments = self.copy_arguments(operands);
        let count = self.far(count);
        let call = format!("invar_copy({arguments}, {count}, 0u, 1u);");
        self.write_under(operands.destination, &call);
    }

    /// A statement that changes memory.
    fn write_under(&mut self, memory: Memory, statement: &str) {
        match self.may_write(memory) {
            None => self.line(statement),
            Some(exists) => self.line(&format!("if ({exists}) {statement}")),
        }
    }

    /// Objects, lengths and indices.
    fn copy_arguments(&mut self, operands: &CopyOperands) -> String {
        let to = self.object(operands.destination);
        let to_length = self.length_of(operands.destination);
        let to_index = self.far(operands.destination_index);
        let from = self.object(operands.source);
        let from_length = self.length_of(operands.source);
        let from_index = self.far(operands.source_index);
        format!("{to}, {to_length}, {to_index}, {from}, {from_length}, {from_index}")
    }

    pub(super) fn async_copy(&mut self, result: Value, operands: &CopyOperands, shape: &CopyShape) {
        self.event_type();
        self.copy_helper(operands.destination, operands.source);
        let arguments = self.copy_arguments(operands);
        let lane = self.input(Op::ThreadIndexInSimdgroup);
        let lanes = self.existing_lanes(Group::Simdgroup);
        let (kind, counts) = match shape {
            CopyShape::Linear { count } => ("", self.far(*count)),
            CopyShape::Tile {
                destination_row,
                source_row,
                columns,
                rows,
            } => {
                self.tile_helper(operands.destination, operands.source);
                let all = [*destination_row, *source_row, *columns, *rows];
                let all: Vec<String> = all.iter().map(|v| self.far(*v)).collect();
                ("_2d", all.join(", "))
            }
        };
        match self.options.async_copies {
            AsyncCopies::Expanded => {
                let call = format!("invar_copy{kind}({arguments}, {counts}, {lane}, {lanes});");
                self.write_under(operands.destination, &call);
                self.values[result.0 as usize] = "0u".to_string();
            }
            AsyncCopies::Apple9Extern => {
                self.engine_helper(operands.destination, operands.source, kind);
                let call =
                    format!("invar_async_copy{kind}({arguments}, {counts}, {lane}, {lanes})");
                let call = match self.simdgroup_may_write() {
                    None => call,
                    Some(exists) => format!("{exists} ? {call} : nullptr"),
                };
                self.define(result, &call);
            }
        }
    }

    pub(super) fn wait(&mut self, events: &[Value]) {
        if self.options.async_copies == AsyncCopies::Apple9Extern {
            for event in events {
                let event = self.v(*event);
                self.line(&format!("invar_wait({event});"));
            }
        }
        self.line("simdgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);");
    }

    /// The parameters that say which objects are copied.
    fn objects(&self, to: Memory, from: Memory) -> (String, ElementType) {
        let (.., element) = self.object_info(to);
        let (ty, inner) = types::element(&element, &self.struct_names);
        let pointer =
            |memory: Memory, name: &str| types::pointer(self.qualifiers(memory), &ty, name, &inner);
        let text = format!(
            "{}, ulong to_length, long to_index, {}, ulong from_length, long from_index",
            pointer(to, "to"),
            pointer(from, "from"),
        );
        (text, element)
    }

    fn copy_helper(&mut self, to: Memory, from: Memory) {
        let (objects, element) = self.objects(to, from);
        self.need_element(&element);
        let mut moved = String::new();
        self.element_lines(
            &element,
            "to[to_index + k]",
            Some("from[at]"),
            3,
            &mut moved,
        );
        let mut zeroed = String::new();
        self.element_lines(&element, "to[to_index + k]", None, 3, &mut zeroed);
        self.helpers.add(&format!("copy {objects}"), || {
            format!(
                "// Copies the elements that the destination has, 0 where the source has none; every `lanes`-th from
// `lane` on.
static inline void invar_copy({objects}, long count, uint lane, uint lanes) {{
    const long end = min(count, long(to_length) - to_index);
    for (long k = max(0l, -to_index) + lane; k < end; k += lanes) {{
        const ulong at = ulong(from_index + k);
        if (at < from_length) {{
{moved}        }} else {{
{zeroed}        }}
    }}
}}"
            )
        });
    }

    fn tile_helper(&mut self, to: Memory, from: Memory) {
        let (objects, _) = self.objects(to, from);
        self.helpers.add(&format!("copy_2d {objects}"), || {
            format!(
                "// Row after row, as long as the destination can still be reached.
static inline void invar_copy_2d({objects}, long to_row, long from_row, long columns, long rows, uint lane, uint lanes) {{
    for (long r = 0; r < rows; ++r) {{
        if (to_row >= 0 ? to_index >= long(to_length) : to_index + columns <= 0) break;
        invar_copy(to, to_length, to_index, from, from_length, from_index, columns, lane, lanes);
        to_index += to_row;
        from_index = clamp(from_index + from_row, -0x400000000000000l, 0x400000000000000l);
    }}
}}"
            )
        });
    }

    fn engine_helper(&mut self, to: Memory, from: Memory, kind: &str) {
        let (objects, element) = self.objects(to, from);
        let (ty, inner) = types::element(&element, &self.struct_names);
        let ty = format!("{ty}{}", types::brackets(&inner));
        let inward = self.object_info(to).0 == AddressSpace::Threadgroup;
        let (to_space, from_space, spaces) = if inward {
            ("threadgroup", "const device", "p3i8.p1i8")
        } else {
            ("device", "const threadgroup", "p1i8.p3i8")
        };
        let rows = kind == "_2d";
        let parameters = if rows {
            format!(
                "ulong, ulong, {to_space} void*, ulong, ulong, ulong2, {from_space} void*, ulong, ulong, ulong2, long2, int"
            )
        } else {
            format!("ulong, ulong, {to_space} void*, {from_space} void*, ulong")
        };
        let dimensions = if rows { "2d" } else { "1d" };
        self.helpers.add(&format!("engine {kind} {spaces}"), || {
            format!(
                "invar_event invar_engine_copy{kind}({parameters}) __asm(\"air.simdgroup_async_copy_{dimensions}.{spaces}\");"
            )
        });
        let (counts, inside, call, passed) = if rows {
            (
                "long to_row, long from_row, long columns, long rows",
                "columns > 0 && rows > 0 && to_index >= 0 && from_index >= 0 && to_row >= columns && from_row >= columns
        && rows <= long(to_length) && rows <= long(from_length)
        && to_row <= long(to_length) && from_row <= long(from_length)
        && to_index + (rows - 1) * to_row + columns <= long(to_length)
        && from_index + (rows - 1) * from_row + columns <= long(from_length)",
                "ulong(to_row), 1, ulong2(columns, rows), from + from_index, ulong(from_row), 1, ulong2(columns, rows), long2(0), 0",
                "to_row, from_row, columns, rows",
            )
        } else {
            (
                "long count",
                "count > 0 && to_index >= 0 && from_index >= 0 && to_index + count <= long(to_length)
        && from_index + count <= long(from_length)",
                "from + from_index, ulong(count)",
                "count",
            )
        };
        self.helpers.add(&format!("async_copy{kind} {objects}"), || {
            format!(
                "static inline invar_event invar_async_copy{kind}({objects}, {counts}, uint lane, uint lanes) {{
    if ({inside}) {{
        return invar_engine_copy{kind}(sizeof({ty}), alignof({ty}), to + to_index, {call});
    }}
    invar_copy{kind}(to, to_length, to_index, from, from_length, from_index, {passed}, lane, lanes);
    return nullptr;
}}"
            )
        });
    }

    /// Statements that copy or zero the locations of one element; its padding stays (L3).
    fn element_lines(
        &mut self,
        element: &ElementType,
        to: &str,
        from: Option<&str>,
        depth: usize,
        out: &mut String,
    ) {
        let indent = "    ".repeat(depth);
        match element {
            ElementType::Value(ty) => {
                let value = match from {
                    Some(from) => self.read(from, *ty, None),
                    None => types::zero(*ty),
                };
                // A matrix is written column by column and must be a value first.
                let text = if let Type::Matrix { .. } = ty {
                    let name = types::value(*ty);
                    let write = self.write_text(to, "m", *ty, false);
                    format!("const {name} m = {value}; {write}")
                } else if matches!((ty, from), (Type::Vector(..), _)) {
                    let name = types::value(*ty);
                    let write = self.write_text(to, "v", *ty, false);
                    format!("const {name} v = {value}; {write}")
                } else {
                    self.write_text(to, &value, *ty, false)
                };
                out.push_str(&format!("{indent}{{ {text} }}\n"));
            }
            ElementType::Array(inner, length) => {
                let k = format!("k{depth}");
                out.push_str(&format!(
                    "{indent}for (uint {k} = 0; {k} < {length}; ++{k}) {{\n"
                ));
                let from = from.map(|from| format!("{from}[{k}]"));
                self.element_lines(
                    inner,
                    &format!("{to}[{k}]"),
                    from.as_deref(),
                    depth + 1,
                    out,
                );
                out.push_str(&format!("{indent}}}\n"));
            }
            ElementType::Struct(id) => {
                let index = id.0 as usize;
                let module = self.module;
                for (i, (_, field)) in module.structs[index].fields.iter().enumerate() {
                    let name = self.field_names[index][i].clone();
                    let from = from.map(|from| format!("{from}.{name}"));
                    self.element_lines(field, &format!("{to}.{name}"), from.as_deref(), depth, out);
                }
            }
        }
    }
}
