//! Everything with a memory operand: places and their guards, loads, stores, atomics, arrays.
//!
//! A guard compares the index as a mathematical integer: a negative one, converted to `ulong`, is larger than
//! any length. Guard and access name the same variable (B5).

use invar_ir::{
    AddressSpace, AtomicOp, ElementType, Inst, InstKind, Kernel, Memory, Module, Order, ParamKind,
    Place, Rule, Scalar, Scope, Span, Step, Type, Value, Width,
};

use super::interface::Language;
use super::types::{self, COMPONENTS, column};
use super::writer::Writer;

/// How an index is written, and what must hold for it to be in bounds, if that is not certain. The guard
/// `false` says that it never is.
pub(super) struct Index {
    pub(super) text: String,
    pub(super) guard: Option<String>,
}

/// What an access touches.
pub(super) struct Target {
    /// The expression of the location in memory.
    pub(super) text: String,
    /// The type of what is there.
    pub(super) ty: Type,
    /// When it exists.
    pub(super) guard: Option<String>,
}

/// Both must hold.
pub(super) fn both(a: Option<String>, b: Option<String>) -> Option<String> {
    match (a, b) {
        (None, other) | (other, None) => other,
        (Some(a), Some(b)) if a == "false" || b == "false" => Some("false".to_string()),
        (Some(a), Some(b)) => Some(format!("{a} && {b}")),
    }
}

impl Writer<'_> {
    // ---- places ----

    /// The name of an object.
    pub(super) fn object(&mut self, memory: Memory) -> String {
        match memory {
            Memory::Param(i) => self.param_names[i as usize].clone(),
            Memory::Alloc(i) => self.alloc_names[i as usize].clone(),
            Memory::Constant(i) => self.program_constant(i),
        }
    }

    /// `device const`, `threadgroup`: what stands before a pointer's type.
    pub(super) fn qualifiers(&self, memory: Memory) -> &'static str {
        let (space, read_only, _) = self.object_info(memory);
        match space {
            AddressSpace::Device if read_only => "device const",
            AddressSpace::Device if self.coherent => "coherent(device) device",
            AddressSpace::Device => "device",
            AddressSpace::Constant => "constant",
            AddressSpace::Threadgroup => "threadgroup",
            AddressSpace::Thread => "thread",
            AddressSpace::Texture => unreachable!("nothing points at a texel"),
            AddressSpace::Imageblock => unreachable!("imageblocks became threadgroup arrays"),
        }
    }

    /// A program-scope constant, written before its first use.
    fn program_constant(&mut self, id: u32) -> String {
        if let Some(name) = self.constant_names.get(&id) {
            return name.clone();
        }
        let module = self.module;
        let constant = &module.constants[id as usize];
        let name = self.names.unique(&constant.name);
        self.constant_names.insert(id, name.clone());
        self.need_element(&constant.element);
        let (ty, inner) = types::element(&constant.element, &self.struct_names);
        let mut values = constant.values.iter().map(|c| {
            if c.scalar == Scalar::Bool {
                types::constant(invar_ir::Const {
                    scalar: Scalar::U8,
                    bits: c.bits,
                })
            } else {
                types::constant(*c)
            }
        });
        let elements: Vec<String> = (0..constant.length)
            .map(|_| initialiser(module, &constant.element, &mut values))
            .collect();
        let brackets = types::brackets(&inner);
        let lines: Vec<String> = elements.chunks(8).map(|c| c.join(", ")).collect();
        let text = format!(
            "constant {ty} {name}[{}]{brackets} = {{\n    {}\n}};",
            constant.length,
            lines.join(",\n    ")
        );
        self.helpers.add(&format!("constant {name}"), || text);
        name
    }

    /// An index into something of a fixed length.
    pub(super) fn index(&mut self, value: Value, length: u32) -> Index {
        self.index_below(value, &format!("{length}"), Some(length))
    }

    /// An index into an object.
    fn object_index(&mut self, value: Value, memory: Memory) -> Index {
        let fixed = match memory {
            Memory::Param(_) => None,
            Memory::Alloc(i) => Some(self.kernel.allocs[i as usize].length),
            Memory::Constant(i) => Some(self.module.constants[i as usize].length),
        };
        let length = match fixed {
            Some(length) => length.to_string(),
            None => self.length(memory),
        };
        self.index_below(value, &length, fixed)
    }

    /// An index that must be below a length: one that is fixed, or a `ulong`.
    fn index_below(&mut self, value: Value, length: &str, fixed: Option<u32>) -> Index {
        let text = self.v(value);
        if let Some(constant) = self.constants[value.0 as usize] {
            let number = constant.scalar.integer(constant.bits);
            // No memory has as many elements as 2^48.
            let most = fixed.map_or(1 << 48, i128::from);
            let outside = number < 0 || number >= most;
            let guard = if outside {
                Some("false".to_string())
            } else if fixed.is_some() || !self.has_guards() {
                None
            } else {
                Some(format!("{number} < {length}"))
            };
            let text = if outside {
                "0".to_string()
            } else {
                number.to_string()
            };
            return Index { text, guard };
        }
        let Type::Scalar(scalar) = self.ty(value) else {
            unreachable!("the verifier passes only integer indices");
        };
        let never_outside = scalar.is_unsigned_integer()
            && fixed.is_some_and(|length| scalar.bits() < 32 && 1 << scalar.bits() <= length);
        if never_outside || !self.has_guards() {
            return Index { text, guard: None };
        }
        let wide = scalar.bits() == 64 || fixed.is_none();
        let guard = match (scalar.is_signed_integer(), wide) {
            (true, true) => format!("ulong({text}) < {length}"),
            (true, false) => format!("uint({text}) < {length}"),
            (false, _) => format!("{text} < {length}"),
        };
        Index {
            text,
            guard: Some(guard),
        }
    }

    /// Where an access of one element goes.
    pub(super) fn target(&mut self, place: &Place) -> Target {
        let name = self.object(place.memory);
        let index = self.object_index(place.index, place.memory);
        let mut element = self.object_info(place.memory).2;
        let mut guard = index.guard;
        let mut text = format!("{name}[{}]", index.text);
        // Within a value: the type of the part reached.
        let mut part: Option<Type> = None;
        for step in &place.path {
            match (step, part, &element) {
                (Step::Field(field), _, ElementType::Struct(id)) => {
                    let module = self.module;
                    let names = &self.field_names[id.0 as usize];
                    text = format!("{text}.{}", names[*field as usize]);
                    let field = &module.structs[id.0 as usize].fields[*field as usize].1;
                    element = field.clone();
                }
                (Step::Index(value), None, ElementType::Array(inner, length)) => {
                    let inner = ElementType::clone(inner);
                    let index = self.index(*value, *length);
                    text = format!("{text}[{}]", index.text);
                    guard = both(guard, index.guard);
                    element = inner;
                }
                (Step::Index(value), part_type, ElementType::Value(ty)) => {
                    let ty = part_type.unwrap_or(*ty);
                    let (length, next, member) = match ty {
                        Type::Matrix {
                            scalar,
                            columns,
                            rows,
                        } => (columns, Type::Vector(scalar, rows), ".columns"),
                        Type::Vector(scalar, n) => (n, Type::Scalar(scalar), ""),
                        other => unreachable!("{other} has no parts"),
                    };
                    let index = self.index(*value, u32::from(length));
                    text = format!("{text}{member}[{}]", index.text);
                    guard = both(guard, index.guard);
                    part = Some(next);
                }
                (Step::Field(_) | Step::Index(_), _, other) => {
                    unreachable!("the verifier passes no such step into {other:?}")
                }
            }
        }
        let ty = match (part, element) {
            (Some(ty), _) | (None, ElementType::Value(ty)) => ty,
            (None, other) => unreachable!("the verifier passes no access to a whole {other:?}"),
        };
        self.need_type(ty);
        Target { text, ty, guard }
    }

    // ---- reading and writing a location ----

    /// A value from the memory at an expression; `volatile` with those qualifiers, if any are given.
    pub(super) fn read(&mut self, text: &str, ty: Type, volatile: Option<&str>) -> String {
        let scalar_at = |text: &str, s: Scalar| {
            let held = types::memory_scalar(s);
            let read = match volatile {
                Some(space) => format!("*(volatile {space} {held}*)&{text}"),
                None => text.to_string(),
            };
            if s == Scalar::Bool {
                format!("{read} != 0")
            } else {
                read
            }
        };
        match ty {
            Type::Scalar(s) => scalar_at(text, s),
            Type::Vector(s, n) if s == Scalar::Bool || volatile.is_some() => {
                let parts: Vec<String> = (0..n)
                    .map(|k| scalar_at(&format!("{text}[{k}]"), s))
                    .collect();
                self.make(ty, &parts)
            }
            Type::Vector(..) => format!("{}({text})", types::value(ty)),
            Type::Matrix {
                scalar,
                columns,
                rows,
            } => {
                let parts: Vec<String> = (0..columns)
                    .map(|k| {
                        let at = format!("{text}.columns[{k}]");
                        self.read(&at, Type::Vector(scalar, rows), volatile)
                    })
                    .collect();
                self.make(ty, &parts)
            }
            Type::SimdgroupMatrix { .. } | Type::Event => text.to_string(),
        }
    }

    /// Statements that write a value to memory, on one line. `one` says that an `if` without braces will
    /// hold them.
    pub(super) fn write_text(&mut self, place: &str, value: &str, ty: Type, one: bool) -> String {
        match ty {
            Type::Scalar(Scalar::Bool) => format!("{place} = uchar({value});"),
            Type::Scalar(_) => format!("{place} = {value};"),
            Type::Vector(Scalar::Bool, n) => {
                let parts: Vec<String> = COMPONENTS[..usize::from(n)]
                    .iter()
                    .map(|c| format!("uchar({value}.{c})"))
                    .collect();
                format!("{place} = {}({});", types::memory(ty), parts.join(", "))
            }
            Type::Vector(..) => format!("{place} = {}({value});", types::memory(ty)),
            Type::Matrix {
                scalar,
                columns,
                rows,
            } => {
                let lines: Vec<String> = (0..columns)
                    .map(|k| {
                        let at = format!("{place}.columns[{k}]");
                        let from = column(value, scalar, &k.to_string());
                        self.write_text(&at, &from, Type::Vector(scalar, rows), false)
                    })
                    .collect();
                let lines = lines.join(" ");
                if one { format!("{{ {lines} }}") } else { lines }
            }
            Type::SimdgroupMatrix { .. } | Type::Event => String::new(),
        }
    }

    /// What makes a load of this value happen exactly once: the qualifiers for a `volatile` one.
    fn volatile(&self, result: Value, memory: Memory) -> Option<&'static str> {
        let (space, read_only, _) = self.object_info(memory);
        let shared = match space {
            AddressSpace::Device => !read_only,
            AddressSpace::Threadgroup | AddressSpace::Imageblock => true,
            AddressSpace::Constant | AddressSpace::Thread | AddressSpace::Texture => false,
        };
        (shared && self.control_dependent.value(result)).then(|| self.qualifiers(memory))
    }

    // ---- instructions ----

    pub(super) fn load(&mut self, result: Value, place: &Place) {
        let volatile = self.volatile(result, place.memory);
        if place.width != Width::One {
            let ty = self.ty(result);
            let access = self.wide_access(place, ty, true, volatile.is_some());
            self.define(result, &access);
            return;
        }
        let target = self.target(place);
        let value = self.read(&target.text, target.ty, volatile);
        let text = match target.guard {
            None => value,
            Some(guard) if guard == "false" => types::zero(target.ty),
            Some(guard) => format!("{guard} ? {value} : {}", types::zero(target.ty)),
        };
        self.define(result, &text);
    }

    pub(super) fn store(&mut self, place: &Place, value: Value) {
        let text = self.v(value);
        if place.width != Width::One {
            let access = self.wide_access(place, self.ty(value), false, false);
            let access = access.replace("VALUE", &text);
            match self.may_write(place.memory) {
                None => self.line(&access),
                Some(exists) => self.line(&format!("if ({exists}) {access}")),
            }
            return;
        }
        let mut target = self.target(place);
        target.guard = both(self.may_write(place.memory), target.guard);
        let write = self.write_text(&target.text, &text, target.ty, target.guard.is_some());
        match target.guard {
            None => self.line(&write),
            Some(guard) if guard == "false" => {}
            Some(guard) => self.line(&format!("if ({guard}) {write}")),
        }
    }

    /// A call of a helper that loads or stores several scalars, each with its own guard, in one access where
    /// all are there. A store has `VALUE` where its value goes.
    fn wide_access(&mut self, place: &Place, ty: Type, load: bool, once: bool) -> String {
        let Type::Vector(s, n) = ty else {
            unreachable!("an access of several elements is of a vector");
        };
        let space = self.qualifiers(place.memory);
        let group = matches!(place.width, Width::Group(_));
        let size = s.size_bytes() as u32 * u32::from(n);
        let aligned = group
            && n != 3
            && s != Scalar::Bool
            && matches!(place.memory, Memory::Param(_))
            && self.buffer_alignment(place.memory).is_multiple_of(size);
        let held = types::memory_scalar(s);
        let (kind, once_name) = (
            if group { "_group" } else { "" },
            if once { "_once" } else { "" },
        );
        let verb = if load { "load" } else { "store" };
        let aligned_name = if aligned { "_aligned" } else { "" };
        let name = format!("invar_{verb}{n}{kind}{aligned_name}{once_name}");
        // A group of a fixed array lies at no known alignment.
        let key = format!("{name} {space} {held} {s} {aligned}");
        let vector = types::value(ty);
        let packed = types::memory(ty);
        let guards = self.has_guards();
        self.helpers.add(&key, || {
            wide_helper(&WideAccess {
                name: &name,
                space,
                held,
                scalar: s,
                vector: &vector,
                packed: &packed,
                count: n,
                load,
                group,
                aligned,
                once,
                guards,
            })
        });
        let object = self.object(place.memory);
        let length = self.length(place.memory);
        let index = self.v(place.index);
        let index = match self.ty(place.index) {
            // Far outside either way, and sums with it do not wrap.
            Type::Scalar(Scalar::U64) => format!("min({index}, 0x4000000000000000ul)"),
            _ => format!("ulong({index})"),
        };
        if load {
            let ty = if aligned {
                ""
            } else {
                kind_tag(s, place.memory)
            };
            format!("{name}({object}, {length}, {index}{ty})")
        } else {
            format!("{name}({object}, {length}, {index}, VALUE);")
        }
    }

    /// Of what number of bytes an object's address is a multiple.
    fn buffer_alignment(&self, memory: Memory) -> u32 {
        match memory {
            Memory::Param(i) => match self.kernel.params[i as usize].kind {
                ParamKind::Buffer { .. } | ParamKind::Constant { .. } => {
                    self.options.buffer_alignment
                }
                // Metal's threadgroup memory is bound in units of 16 bytes.
                ParamKind::Threadgroup { .. } => 16,
                ParamKind::Scalar { .. } | ParamKind::Texture(_) | ParamKind::Sampler => 1,
            },
            Memory::Alloc(_) | Memory::Constant(_) => 1,
        }
    }

    pub(super) fn alloc(&mut self, id: u32, span: Span) {
        let alloc = &self.kernel.allocs[id as usize];
        if alloc.space != AddressSpace::Thread {
            return;
        }
        self.comment(span);
        let element = alloc.element.clone();
        self.need_element(&element);
        let (ty, inner) = types::element(&element, &self.struct_names);
        let name = self.alloc_names[id as usize].clone();
        let brackets = types::brackets(&inner);
        self.line(&format!("{ty} {name}[{}]{brackets} = {{}};", alloc.length));
    }

    // ---- atomics ----

    pub(super) fn atomic(
        &mut self,
        inst: &Inst,
        op: AtomicOp,
        place: &Place,
        args: &[Value],
        order: Order,
        scope: Scope,
    ) {
        let mut target = self.target(place);
        target.guard = both(self.may_write(place.memory), target.guard);
        let (space, ..) = self.object_info(place.memory);
        let Type::Scalar(scalar) = target.ty else {
            unreachable!("the verifier passes only atomics on scalars");
        };
        let used = inst.results.first().is_some_and(|r| self.is_used(*r));
        if let Some(reason) = refused(op, scalar, space, used) {
            let message = format!(
                "`{}` on {scalar} in {} memory: {reason}",
                op.name(),
                space.name()
            );
            self.refuse(Rule::UnsupportedFeature, inst.span, message);
            return;
        }
        if order != Order::Relaxed && self.options.language < Language::Metal3_2 {
            let message = format!(
                "`{}` with order {}: Metal has only relaxed atomics before version 3.2",
                op.name(),
                order.name()
            );
            self.refuse(Rule::UnsupportedMemoryOrder, inst.span, message);
            return;
        }
        let atomic = match scalar {
            Scalar::I32 => "atomic_int",
            Scalar::F32 => "atomic_float",
            Scalar::U64 => "atomic_ulong",
            _ => "atomic_uint",
        };
        let qualifiers = self.qualifiers(place.memory);
        let pointer = format!("({qualifiers} {atomic}*)&{}", target.text);
        let operands: Vec<String> = args.iter().map(|v| self.v(*v)).collect();
        let relaxed = "memory_order_relaxed";
        let call = match op {
            AtomicOp::Load => format!("atomic_load_explicit({pointer}, {relaxed})"),
            AtomicOp::Store => format!(
                "atomic_store_explicit({pointer}, {}, {relaxed})",
                operands[0]
            ),
            AtomicOp::Exchange => {
                format!(
                    "atomic_exchange_explicit({pointer}, {}, {relaxed})",
                    operands[0]
                )
            }
            AtomicOp::Min | AtomicOp::Max if scalar == Scalar::U64 => {
                let name = if op == AtomicOp::Min { "min" } else { "max" };
                format!(
                    "atomic_{name}_explicit({pointer}, {}, {relaxed})",
                    operands[0]
                )
            }
            AtomicOp::Add
            | AtomicOp::Sub
            | AtomicOp::Min
            | AtomicOp::Max
            | AtomicOp::And
            | AtomicOp::Or
            | AtomicOp::Xor => {
                let name = op.name().trim_start_matches("atomic_");
                format!(
                    "atomic_fetch_{name}_explicit({pointer}, {}, {relaxed})",
                    operands[0]
                )
            }
            AtomicOp::CompareExchange => self.compare_exchange(scalar, qualifiers, atomic),
        };
        let (before, after) = fences(op, order, scope);
        if op == AtomicOp::CompareExchange {
            let zero = types::zero(target.ty);
            let old = self.declare(inst.results[0], Some(&zero));
            let done = self.declare(inst.results[1], Some("false"));
            let (expected, desired) = (&operands[0], &operands[1]);
            let call = format!("{done} = {call}({pointer}, {expected}, {desired}, &{old});");
            self.guarded(target.guard, &before, &call, &after);
            return;
        }
        match inst.results.first() {
            // A 64-bit `min` or `max` gives nothing, and nothing uses it.
            Some(result) if scalar != Scalar::U64 => {
                let zero = types::zero(target.ty);
                if before.is_empty() && after.is_empty() && used {
                    let text = match target.guard {
                        None => call,
                        Some(guard) => format!("{guard} ? {call} : {zero}"),
                    };
                    self.define(*result, &text);
                } else if used {
                    let name = self.declare(*result, Some(&zero));
                    self.guarded(target.guard, &before, &format!("{name} = {call};"), &after);
                } else {
                    self.guarded(target.guard, &before, &format!("{call};"), &after);
                }
            }
            Some(_) | None => self.guarded(target.guard, &before, &format!("{call};"), &after),
        }
    }

    /// A statement between fences, under a guard.
    fn guarded(&mut self, guard: Option<String>, before: &str, statement: &str, after: &str) {
        let lines = [before, statement, after];
        let lines = lines.iter().filter(|line| !line.is_empty());
        match guard {
            Some(guard) if guard == "false" => {}
            None => lines.for_each(|line| self.line(line)),
            Some(guard) if before.is_empty() && after.is_empty() => {
                self.line(&format!("if ({guard}) {statement}"));
            }
            Some(guard) => {
                self.line(&format!("if ({guard}) {{"));
                self.depth += 1;
                lines.for_each(|line| self.line(line));
                self.depth -= 1;
                self.line("}");
            }
        }
    }

    /// Metal's compare-exchange may fail for no reason; Invar's may not (T2).
    fn compare_exchange(&mut self, s: Scalar, qualifiers: &str, atomic: &str) -> String {
        let ty = types::scalar(s);
        self.helpers.add(&format!("compare_exchange {qualifiers} {ty}"), || {
            format!(
                "// Fails only where another value is there.
static inline bool invar_compare_exchange({qualifiers} {atomic}* place, {ty} expected, {ty} desired, thread {ty}* old) {{
    do {{
        *old = expected;
        if (atomic_compare_exchange_weak_explicit(place, old, desired, memory_order_relaxed, memory_order_relaxed)) return true;
    }} while (*old == expected);
    return false;
}}"
            )
        });
        "invar_compare_exchange".to_string()
    }

    /// Whether any instruction takes a value.
    fn is_used(&self, value: Value) -> bool {
        self.used[value.0 as usize]
    }
}

/// What tells overloads of a helper apart whose pointers look the same: a `bool` is a byte in memory.
fn kind_tag(s: Scalar, _memory: Memory) -> &'static str {
    if s == Scalar::Bool { ", true" } else { "" }
}

/// What Metal lacks of an atomic.
fn refused(op: AtomicOp, s: Scalar, space: AddressSpace, used: bool) -> Option<&'static str> {
    let limit = matches!(op, AtomicOp::Min | AtomicOp::Max);
    match s {
        Scalar::U64 if limit && !used && space == AddressSpace::Device => None,
        Scalar::U64 | Scalar::I64 => Some(
            "of 64-bit atomics Metal has only min and max of u64 in device memory, without a result",
        ),
        Scalar::F32 if space == AddressSpace::Threadgroup => {
            Some("Metal has atomics on floats in device memory only")
        }
        Scalar::F64 => Some("Metal has no f64"),
        _ => None,
    }
}

/// The fences before and after an atomic (O4, T3). Metal's are relaxed or `seq_cst`, nothing between.
fn fences(op: AtomicOp, order: Order, scope: Scope) -> (String, String) {
    let scope = match scope {
        Scope::Device => "thread_scope_device",
        Scope::Threadgroup | Scope::Simdgroup => "thread_scope_threadgroup",
    };
    let fence = || {
        format!(
            "atomic_thread_fence(mem_flags::mem_device | mem_flags::mem_threadgroup, \
             memory_order_seq_cst, {scope});"
        )
    };
    let before = order.releases() && (op.writes() || order == Order::SeqCst);
    let after = order.acquires() && (op.reads() || order == Order::SeqCst);
    let text = |wanted: bool| if wanted { fence() } else { String::new() };
    (text(before), text(after))
}

/// Braces around the scalars of one element, in order.
fn initialiser(
    module: &Module,
    element: &ElementType,
    values: &mut dyn Iterator<Item = String>,
) -> String {
    let mut next = || values.next().unwrap_or_else(|| "0".to_string());
    match element {
        ElementType::Value(Type::Scalar(_)) => next(),
        ElementType::Value(ty @ Type::Vector(_, n)) => {
            let parts: Vec<String> = (0..*n).map(|_| next()).collect();
            format!("{}({})", types::memory(*ty), parts.join(", "))
        }
        ElementType::Value(Type::Matrix {
            scalar,
            columns,
            rows,
        }) => {
            let column = ElementType::Value(Type::Vector(*scalar, *rows));
            let parts: Vec<String> = (0..*columns)
                .map(|_| initialiser(module, &column, values))
                .collect();
            format!("{{{{{}}}}}", parts.join(", "))
        }
        ElementType::Value(Type::SimdgroupMatrix { .. } | Type::Event) => "0".to_string(),
        ElementType::Array(inner, length) => {
            let parts: Vec<String> = (0..*length)
                .map(|_| initialiser(module, inner, values))
                .collect();
            format!("{{{}}}", parts.join(", "))
        }
        ElementType::Struct(id) => {
            let parts: Vec<String> = module.structs[id.0 as usize]
                .fields
                .iter()
                .map(|(_, field)| initialiser(module, field, values))
                .collect();
            format!("{{{}}}", parts.join(", "))
        }
    }
}

/// What a helper for several elements does.
struct WideAccess<'a> {
    name: &'a str,
    space: &'a str,
    held: &'a str,
    scalar: Scalar,
    vector: &'a str,
    packed: &'a str,
    count: u8,
    load: bool,
    group: bool,
    aligned: bool,
    once: bool,
    guards: bool,
}

/// The text of a helper for several elements.
fn wide_helper(w: &WideAccess) -> String {
    let WideAccess {
        name,
        space,
        held,
        vector,
        packed,
        count: n,
        ..
    } = *w;
    let is_bool = w.scalar == Scalar::Bool;
    let first = if w.group { "first" } else { "i" };
    let mut text = format!(
        "// Elements {}, {}.\n",
        if w.group {
            format!("{n}i to {n}i+{}", n - 1)
        } else {
            format!("i to i+{}", n - 1)
        },
        if w.load {
            "0 where there are none"
        } else {
            "as far as there are any"
        }
    );
    let result = if w.load { vector } else { "void" };
    let last = match (w.load, is_bool) {
        (true, true) => ", bool".to_string(),
        (true, false) => String::new(),
        (false, _) => format!(", {vector} v"),
    };
    text += &format!(
        "static inline {result} {name}({space} {held}* x, ulong length, ulong i{last}) {{\n"
    );
    if w.load {
        text += &format!(
            "    {vector} v = {vector}({});\n",
            types::constant(invar_ir::Const {
                scalar: w.scalar,
                bits: 0
            })
        );
    }
    let give = if w.load { "return v;" } else { "return;" };
    if w.group {
        if w.guards {
            text += &format!("    if (i >= length) {give}\n");
        }
        text += &format!("    const ulong first = i * {n};\n");
    }
    // All at once where all are there, and one access has the meaning of several.
    let whole = !is_bool && !w.once;
    let condition = if w.guards {
        format!("if ({first} < length && length - {first} >= {n}) ")
    } else {
        String::new()
    };
    if whole && w.load {
        text += &if w.aligned {
            format!("    {condition}return (({space} {vector}*)x)[i];\n")
        } else {
            format!("    {condition}return {vector}(*({space} {packed}*)(x + {first}));\n")
        };
    } else if whole {
        let access = if w.aligned {
            format!("(({space} {vector}*)x)[i] = v;")
        } else {
            format!("*({space} {packed}*)(x + {first}) = {packed}(v);")
        };
        text += &if w.guards {
            format!("    {condition}{{\n        {access}\n        return;\n    }}\n")
        } else {
            format!("    {access}\n")
        };
    }
    if w.guards || !whole {
        for (k, component) in COMPONENTS[..usize::from(n)].iter().enumerate() {
            let at = if k == 0 {
                first.to_string()
            } else {
                format!("{first} + {k}")
            };
            let place = match w.once {
                true => format!("*(volatile {space} {held}*)(x + {at})"),
                false => format!("x[{at}]"),
            };
            let statement = match (w.load, is_bool) {
                (true, true) => format!("v.{component} = {place} != 0;"),
                (true, false) => format!("v.{component} = {place};"),
                (false, true) => format!("{place} = uchar(v.{component});"),
                (false, false) => format!("{place} = v.{component};"),
            };
            text += &if w.guards {
                format!("    if ({at} < length) {statement}\n")
            } else {
                format!("    {statement}\n")
            };
        }
        if w.load {
            text += "    return v;\n";
        }
    }
    text + "}"
}

// ---- what the whole kernel says of memory ----

/// Whether an atomic orders anything for threads of other threadgroups: buffers must then be coherent over the
/// device.
pub(super) fn publishes_to_device(kernel: &Kernel) -> bool {
    let mut found = false;
    kernel.for_each_inst(&mut |inst| {
        if let InstKind::Atomic { order, scope, .. } = inst.kind {
            found |= order != Order::Relaxed && scope == Scope::Device;
        }
    });
    found
}
