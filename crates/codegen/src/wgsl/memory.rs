//! Loads, stores and atomics: a helper in WGSL for each shape of access to each object.
//!
//! A helper gets indices as `u32`, made by [`Writer::index`], which gives [`OUTSIDE`] for what is out of
//! bounds of everything; it compares them with the lengths and makes the access if all are inside (B1
//! to B4). Helpers that change memory which others see do so only for threads that exist, in kernels
//! where others go along.

use invar_ir::{
    AddressSpace, AtomicOp, ElementType, Memory, ParamKind, Place, Scalar, Spaces, Step, Type,
    Value, Width,
};

use super::helpers::Helper;
use super::names::Wgsl;
use super::plan::{Object, Storage};
use super::types;
use super::types::{COMPONENTS, assemble, parts, value as wgsl_type, zero};
use super::writer::{Identity, Writer};
use crate::shading::names::Language as _;

/// The index of no element.
pub(super) const OUTSIDE: &str = "0xffffffffu";

/// Slots of a thread array that are made zero in one statement; each is a store of its own in some drivers.
pub const CLEARED_SLOTS: u64 = 64;

/// The way to a part of an object, as a helper sees it.
#[derive(Clone, Debug)]
pub(super) struct Way {
    /// What the helper's name says of it.
    pub tag: String,
    /// Its parameters: `i`, then one for each index on the way.
    pub params: Vec<String>,
    /// What holds if the access is inside.
    pub inside: Vec<String>,
    /// The offset of the part, in the units of the storage.
    pub at: String,
    /// What is there.
    pub ty: Type,
}

impl Writer<'_> {
    pub(super) fn memory_name(&self, memory: Memory) -> String {
        self.names_of_memory[&memory].clone()
    }

    /// A length in elements.
    pub(super) fn length(&self, memory: Memory) -> String {
        match self.plan.object(memory).length {
            Some(n) => format!("{n}u"),
            None => format!("constants.{}__length", self.memory_name(memory)),
        }
    }

    /// Whether accesses are guarded. Threads beyond the edge of the grid may have any index.
    pub(super) fn has_guards(&self) -> bool {
        self.options.guards || self.surplus
    }

    /// What a helper does: its access if the conditions hold, if there are any, and else what comes then.
    fn guarded(conditions: &[String], access: &str, otherwise: &str) -> String {
        match conditions {
            [] => access.to_string(),
            conditions => {
                let all = conditions.join(" && ");
                format!("    if ({all}) {{\n{access}    }}\n{otherwise}")
            }
        }
    }

    /// Whether other threads see the object.
    fn is_shared(&self, memory: Memory) -> bool {
        self.module
            .memory(self.kernel, memory)
            .is_some_and(|info| info.space != AddressSpace::Thread)
    }

    /// An index as a `u32`: [`OUTSIDE`] for what is negative or beyond every length.
    pub(super) fn index(&mut self, value: Value) -> String {
        let text = self.value(value);
        let scalar = self.ty(value).component_scalar();
        if let Some(c) = self.constant(value) {
            return match u32::try_from(scalar.integer(c.bits)) {
                Ok(n) if n < u32::MAX => format!("{n}u"),
                Ok(_) | Err(_) => OUTSIDE.to_string(),
            };
        }
        match scalar {
            Scalar::I64 | Scalar::U64 => {
                let helper = self.need(match scalar {
                    Scalar::I64 => Helper::I64Index,
                    _unsigned => Helper::U64Index,
                });
                format!("{helper}({text})")
            }
            Scalar::I8 | Scalar::I16 | Scalar::I32 => {
                self.need(Helper::I32Index);
                format!("i32__index({text})")
            }
            Scalar::Bool
            | Scalar::U8
            | Scalar::U16
            | Scalar::U32
            | Scalar::F16
            | Scalar::BF16
            | Scalar::F32
            | Scalar::F64 => text,
        }
    }

    /// The way to a place of one element.
    pub(super) fn way(&self, memory: Memory, path: &[Step]) -> Way {
        let steps: Vec<Option<u32>> = path
            .iter()
            .map(|step| match step {
                Step::Field(field) => Some(*field),
                Step::Index(_) => None,
            })
            .collect();
        self.way_of(memory, &steps)
    }

    /// As [`Writer::way`]; a step is a field or an index.
    pub(super) fn way_of(&self, memory: Memory, steps: &[Option<u32>]) -> Way {
        let object = self.plan.object(memory);
        let structs = &self.module.structs;
        let units = |element: &ElementType| {
            let extent = self.layouts.extent(element);
            extent.map_or(0, |e| match object.storage.counts_bytes() {
                true => e.size_bytes,
                false => e.location_count,
            })
        };
        let mut element = self
            .module
            .memory(self.kernel, memory)
            .map_or(ElementType::Value(Type::U32), |info| info.element.clone());
        let mut way = Way {
            tag: String::new(),
            params: vec!["i".to_string()],
            inside: Vec::new(),
            at: times("i", units(&element)),
            ty: Type::U32,
        };
        let guards = self.has_guards();
        if guards {
            way.inside.push(format!("i < {}", self.length(memory)));
        }
        for step in steps {
            element = match (&element, step) {
                (ElementType::Struct(id), Some(field)) => {
                    let def = &structs[id.0 as usize];
                    let field = *field as usize;
                    let place = self.layouts.field(*id, field as u32).unwrap_or_default();
                    let offset = match object.storage.counts_bytes() {
                        true => place.offset_bytes,
                        false => place.offset_locations,
                    };
                    way.at = plus(&way.at, offset);
                    way.tag.push('_');
                    way.tag.push_str(&Wgsl::fit(&def.fields[field].0));
                    def.fields[field].1.clone()
                }
                (inner, _) => {
                    let (part, count) = match inner {
                        ElementType::Array(part, count) => ((**part).clone(), *count),
                        ElementType::Value(Type::Vector(s, n)) => {
                            (ElementType::Value(Type::Scalar(*s)), u32::from(*n))
                        }
                        ElementType::Value(Type::Matrix {
                            scalar,
                            columns,
                            rows,
                        }) => (
                            ElementType::Value(Type::Vector(*scalar, *rows)),
                            u32::from(*columns),
                        ),
                        ElementType::Value(_) | ElementType::Struct(_) => {
                            unreachable!("the verifier keeps out an index into a part without any")
                        }
                    };
                    let name = format!("k{}", way.params.len() - 1);
                    if guards {
                        way.inside.push(format!("{name} < {count}u"));
                    }
                    way.at = format!("{} + {}", way.at, times(&name, units(&part)));
                    way.tag.push_str("_at");
                    way.params.push(name);
                    part
                }
            };
        }
        if let ElementType::Value(ty) = element {
            way.ty = ty;
        }
        way
    }

    /// The expressions of a place's indices.
    fn indices(&mut self, place: &Place) -> Vec<String> {
        let mut all = vec![self.index(place.index)];
        for step in &place.path {
            match step {
                Step::Index(index) => all.push(self.index(*index)),
                Step::Field(_) => {}
            }
        }
        all
    }

    /// The expression that loads from a place.
    pub(super) fn load(&mut self, place: &Place) -> String {
        match place.width {
            Width::One => {
                let way = self.way(place.memory, &place.path);
                let helper = self.load_helper(place.memory, &way);
                let indices = self.indices(place).join(", ");
                format!("{helper}({indices})")
            }
            Width::Group(n) => {
                let helper = self.group_helper(place.memory, n, true);
                let index = self.index(place.index);
                format!("{helper}({index})")
            }
            Width::Run(n) => {
                let way = self.way(place.memory, &[]);
                let helper = self.load_helper(place.memory, &way);
                let loads: Vec<String> = (0..n)
                    .map(|j| format!("{helper}({})", self.index_plus(place.index, j)))
                    .collect();
                let scalar = way.ty.component_scalar();
                assemble(Type::Vector(scalar, n), &loads)
            }
        }
    }

    /// Writes statements that store to a place.
    pub(super) fn store(&mut self, place: &Place, value: &str) {
        match place.width {
            Width::One => {
                let way = self.way(place.memory, &place.path);
                let helper = self.store_helper(place.memory, &way);
                let indices = self.indices(place).join(", ");
                self.line(format!("{helper}({indices}, {value});"));
            }
            Width::Group(n) => {
                let helper = self.group_helper(place.memory, n, false);
                let index = self.index(place.index);
                self.line(format!("{helper}({index}, {value});"));
            }
            Width::Run(n) => {
                let way = self.way(place.memory, &[]);
                let helper = self.store_helper(place.memory, &way);
                for j in 0..n {
                    let index = self.index_plus(place.index, j);
                    let component = COMPONENTS[usize::from(j)];
                    self.line(format!("{helper}({index}, {value}.{component});"));
                }
            }
        }
    }

    /// The index of the element `j` after one, computed without wrapping (B4).
    fn index_plus(&mut self, value: Value, j: u8) -> String {
        if j == 0 {
            return self.index(value);
        }
        let scalar = self.ty(value).component_scalar();
        if let Some(c) = self.constant(value) {
            return match u32::try_from(scalar.integer(c.bits) + i128::from(j)) {
                Ok(n) if n < u32::MAX => format!("{n}u"),
                Ok(_) | Err(_) => OUTSIDE.to_string(),
            };
        }
        let text = self.value(value);
        match scalar {
            Scalar::U64 | Scalar::I64 => {
                // One short of the end of the range is out of bounds too, and does not wrap.
                let limit = match scalar {
                    Scalar::U64 => "18446744073709551000lu",
                    _signed => "9223372036854775000li",
                };
                let kind = if scalar == Scalar::U64 { "lu" } else { "li" };
                let helper = self.need(match scalar {
                    Scalar::I64 => Helper::I64Index,
                    _unsigned => Helper::U64Index,
                });
                format!("{helper}(min({text}, {limit}) + {j}{kind})")
            }
            Scalar::I8 | Scalar::I16 | Scalar::I32 => {
                self.need(Helper::I32Index);
                format!("i32__index(min({text}, 2147483600i) + {j}i)")
            }
            Scalar::Bool
            | Scalar::U8
            | Scalar::U16
            | Scalar::U32
            | Scalar::F16
            | Scalar::BF16
            | Scalar::F32
            | Scalar::F64 => format!("(min({text}, 0xfffffff0u) + {j}u)"),
        }
    }

    /// What must hold before a thread may change memory that others see.
    fn may_write(&mut self, memory: Memory) -> Vec<String> {
        if self.surplus && self.is_shared(memory) {
            self.identity.insert(Identity::Count);
            vec!["exists".to_string()]
        } else {
            Vec::new()
        }
    }

    pub(super) fn load_helper(&mut self, memory: Memory, way: &Way) -> String {
        let name = format!("{}__load{}", self.memory_name(memory), way.tag);
        self.helper(&name, |w| {
            let object = w.plan.object(memory);
            let array = w.memory_name(memory);
            let ty = wgsl_type(way.ty);
            let at = named_offset(&way.at);
            let value = match object.storage {
                Storage::Vectors(_, n) if way.ty.component_count() == u32::from(n) => {
                    format!("{array}[i]")
                }
                storage => {
                    let scalar = way.ty.component_scalar();
                    let unit = w.unit(object, scalar);
                    let loads: Vec<String> = (0..u64::from(way.ty.component_count()))
                        .map(|c| {
                            w.load_location(storage, &array, &plus(&at.name, c * unit), scalar)
                        })
                        .collect();
                    assemble(way.ty, &loads)
                }
            };
            let access = format!("{}        return {value};\n", at.statement);
            let otherwise = format!("    return {};\n", w.zero(way.ty));
            let body = Self::guarded(&way.inside, &access, &otherwise);
            format!("fn {name}({}) -> {ty} {{\n{body}}}\n", declare(&way.params))
        });
        name
    }

    pub(super) fn store_helper(&mut self, memory: Memory, way: &Way) -> String {
        let name = format!("{}__store{}", self.memory_name(memory), way.tag);
        self.helper(&name, |w| {
            let object = w.plan.object(memory);
            let array = w.memory_name(memory);
            let mut inside = w.may_write(memory);
            inside.extend(way.inside.iter().cloned());
            let at = named_offset(&way.at);
            let stores = match object.storage {
                Storage::Vectors(_, n) if way.ty.component_count() == u32::from(n) => {
                    vec![format!("{array}[i] = value;")]
                }
                storage => {
                    let scalar = way.ty.component_scalar();
                    let unit = w.unit(object, scalar);
                    parts(way.ty, "value")
                        .iter()
                        .enumerate()
                        .flat_map(|(c, part)| {
                            let at = plus(&at.name, c as u64 * unit);
                            w.store_location(memory, storage, &at, scalar, part)
                        })
                        .collect()
                }
            };
            let stores: Vec<String> = stores.iter().map(|s| format!("        {s}\n")).collect();
            let access = [at.statement, stores.concat()].concat();
            format!(
                "fn {name}({}, value: {}) {{\n{}}}\n",
                declare(&way.params),
                wgsl_type(way.ty),
                Self::guarded(&inside, &access, ""),
            )
        });
        name
    }

    /// Group `i` of `n` scalar elements: whole groups at once, the last one element by element.
    fn group_helper(&mut self, memory: Memory, n: u8, load: bool) -> String {
        let what = if load { "load" } else { "store" };
        let name = format!("{}__{what}_group{n}", self.memory_name(memory));
        self.helper(&name, |w| {
            let object = w.plan.object(memory);
            let array = w.memory_name(memory);
            let scalar = w.way(memory, &[]).ty.component_scalar();
            let vector = Type::Vector(scalar, n);
            let ty = wgsl_type(vector);
            let unit = w.unit(object, scalar);
            let length = w.length(memory);
            let whole = matches!(object.storage, Storage::Vectors(_, k) if k == n);
            let at = |c: u64| plus("at", c * unit);
            let first = times(&format!("i * {n}u"), unit);
            let storage = object.storage;
            let mut text = if load {
                format!("fn {name}(i: u32) -> {ty} {{\n")
            } else {
                format!("fn {name}(i: u32, value: {ty}) {{\n")
            };
            let existing = if load { Vec::new() } else { w.may_write(memory) };
            let exists: String = existing.iter().map(|e| format!("{e} && ")).collect();
            // Whole groups.
            let mut access = String::new();
            if !whole {
                access.push_str(&format!("        let at = {first};\n"));
            }
            if load {
                let value = if whole {
                    format!("{array}[i]")
                } else {
                    let loads: Vec<String> = (0..u64::from(n))
                        .map(|c| w.load_location(storage, &array, &at(c), scalar))
                        .collect();
                    assemble(vector, &loads)
                };
                access.push_str(&format!("        return {value};\n"));
            } else if whole {
                access.push_str(&format!("        {array}[i] = value;\n        return;\n"));
            } else {
                for c in 0..u64::from(n) {
                    let part = format!("value.{}", COMPONENTS[c as usize]);
                    for s in w.store_location(memory, storage, &at(c), scalar, &part) {
                        access.push_str(&format!("        {s}\n"));
                    }
                }
                access.push_str("        return;\n");
            }
            if !w.has_guards() {
                // Then all groups are whole.
                return format!("{text}{access}}}\n");
            }
            text.push_str(&format!("    let whole = {length} / {n}u;\n"));
            text.push_str(&format!("    if ({exists}i < whole) {{\n{access}    }}\n"));
            if load {
                text.push_str(&format!("    var value = {ty}();\n"));
            }
            // The last group, if it is not whole. Never has it its last element.
            text.push_str(&format!(
                "    if ({exists}i == whole) {{\n        let at = {first};\n        let rest = {length} - i * {n}u;\n"
            ));
            for c in 0..u64::from(n) - 1 {
                let part = format!("value.{}", COMPONENTS[c as usize]);
                if load {
                    let value = w.load_location(storage, &array, &at(c), scalar);
                    text.push_str(&format!("        if ({c}u < rest) {{ {part} = {value}; }}\n"));
                } else {
                    let stores = w.store_location(memory, storage, &at(c), scalar, &part);
                    text.push_str(&format!(
                        "        if ({c}u < rest) {{ {} }}\n",
                        stores.join(" ")
                    ));
                }
            }
            text.push_str("    }\n");
            if load {
                text.push_str("    return value;\n");
            }
            text.push_str("}\n");
            text
        });
        name
    }

    /// The units of the storage from one location of that type to the next.
    fn unit(&self, object: Object, scalar: Scalar) -> u64 {
        if object.storage.counts_bytes() {
            scalar.size_bytes()
        } else {
            1
        }
    }

    /// The expression that loads the location at an offset, which is inside.
    pub(super) fn load_location(
        &mut self,
        storage: Storage,
        array: &str,
        at: &str,
        scalar: Scalar,
    ) -> String {
        match storage {
            Storage::Scalars(Scalar::Bool) => from_slot(Scalar::Bool, &format!("{array}[{at}]")),
            Storage::Scalars(_) => format!("{array}[{at}]"),
            Storage::Vectors(_, n) => format!("{array}[({at}) / {n}u][({at}) % {n}u]"),
            Storage::AtomicScalars(s) => from_slot(s, &format!("atomicLoad(&{array}[{at}])")),
            Storage::Words | Storage::AtomicWords => {
                let word = |at: &str| match storage {
                    Storage::AtomicWords => format!("atomicLoad(&{array}[({at}) >> 2u])"),
                    _plain => format!("{array}[({at}) >> 2u]"),
                };
                match scalar.size_bytes() {
                    8 => {
                        let words = [word(at), word(&plus(at, 4))];
                        types::from_words(scalar, &words)
                    }
                    4 => types::from_bits(scalar, &word(at)),
                    narrow => {
                        let mask = if narrow == 1 { "0xffu" } else { "0xffffu" };
                        let bits = format!("(({} >> ((({at}) & 3u) * 8u)) & {mask})", word(at));
                        types::from_bits(scalar, &bits)
                    }
                }
            }
        }
    }

    /// Statements that store a name's value to the location at an offset, which is inside.
    pub(super) fn store_location(
        &mut self,
        memory: Memory,
        storage: Storage,
        at: &str,
        scalar: Scalar,
        value: &str,
    ) -> Vec<String> {
        let array = self.memory_name(memory);
        match storage {
            Storage::Scalars(Scalar::Bool) => {
                vec![format!("{array}[{at}] = {};", to_slot(Scalar::Bool, value))]
            }
            Storage::Scalars(_) => vec![format!("{array}[{at}] = {value};")],
            Storage::Vectors(_, n) => {
                vec![format!("{array}[({at}) / {n}u][({at}) % {n}u] = {value};")]
            }
            Storage::AtomicScalars(s) => {
                vec![format!(
                    "atomicStore(&{array}[{at}], {});",
                    to_slot(s, value)
                )]
            }
            Storage::Words | Storage::AtomicWords if scalar.size_bytes() >= 4 => {
                types::to_words(scalar, value)
                    .iter()
                    .enumerate()
                    .map(|(i, word)| {
                        let at = plus(at, i as u64 * 4);
                        match storage {
                            Storage::AtomicWords => {
                                format!("atomicStore(&{array}[({at}) >> 2u], {word});")
                            }
                            _plain => format!("{array}[({at}) >> 2u] = {word};"),
                        }
                    })
                    .collect()
            }
            Storage::Words | Storage::AtomicWords => {
                let bits = types::to_bits(scalar, value);
                let mask = if scalar.size_bytes() == 1 {
                    "0xffu"
                } else {
                    "0xffffu"
                };
                let name = self.merge_helper(memory, storage);
                vec![format!(
                    "{name}(({at}) >> 2u, {mask} << ((({at}) & 3u) * 8u), {bits} << ((({at}) & 3u) * 8u));"
                )]
            }
        }
    }

    /// Replaces some bits of a word, and no others (L2).
    fn merge_helper(&mut self, memory: Memory, storage: Storage) -> String {
        let array = self.memory_name(memory);
        let name = format!("{array}__merge");
        self.helper(&name, |w| {
            let body = if storage == Storage::AtomicWords {
                let again = w.loops.endless();
                format!(
                    "    {again}\n        let old = atomicLoad(&{array}[word]);\n        \
                     if (atomicCompareExchangeWeak(&{array}[word], old, (old & ~mask) | bits).exchanged) {{\n            \
                     break;\n        }}\n    }}\n"
                )
            } else {
                format!("    {array}[word] = ({array}[word] & ~mask) | bits;\n")
            };
            format!("fn {name}(word: u32, mask: u32, bits: u32) {{\n{body}}}\n")
        });
        name
    }

    // ---- atomics ----

    /// The call of an atomic operation: an expression of its first result, or of the structure that
    /// holds both results of a compare-exchange.
    pub(super) fn atomic(&mut self, op: AtomicOp, place: &Place, args: &[Value]) -> String {
        let way = self.way(place.memory, &place.path);
        let helper = self.atomic_helper(op, place.memory, &way);
        let mut all = self.indices(place);
        all.extend(args.iter().map(|v| self.value(*v)));
        format!("{helper}({})", all.join(", "))
    }

    fn atomic_helper(&mut self, op: AtomicOp, memory: Memory, way: &Way) -> String {
        let name = format!("{}__{}{}", self.memory_name(memory), op.name(), way.tag);
        let scalar = way.ty.component_scalar();
        let ty = wgsl_type(way.ty);
        if op == AtomicOp::CompareExchange {
            self.helper(&format!("{scalar}__exchange"), |_| {
                format!("struct {scalar}__exchange {{\n    old: {ty},\n    exchanged: bool,\n}}\n")
            });
        }
        self.helper(&name, |w| {
            let object = w.plan.object(memory);
            let array = w.memory_name(memory);
            let mut inside = w.may_write(memory);
            inside.extend(way.inside.iter().cloned());
            let at = named_offset(&way.at);
            let location = match object.storage {
                Storage::AtomicWords => format!("&{array}[({}) >> 2u]", at.name),
                _elements => format!("&{array}[{}]", at.name),
            };
            // The type of the WGSL atomic; what is wider than its bits is what the location holds.
            let holds = match object.storage {
                Storage::AtomicScalars(Scalar::F32) | Storage::AtomicWords => Scalar::U32,
                Storage::AtomicScalars(s) => s,
                Storage::Scalars(_) | Storage::Vectors(..) | Storage::Words => {
                    unreachable!("the plan makes what has atomics of atomics")
                }
            };
            let inward = |text: &str| convert(scalar, holds, text);
            let outward = |text: &str| convert(holds, scalar, text);
            let mut params = declare(&way.params);
            for i in 0..op.operand_count() {
                params.push_str(&format!(", {}: {ty}", ["value", "desired"][i]));
            }
            let simple = |function: &str| {
                let call = format!("{function}({location}, {})", inward("value"));
                format!("        return {};\n", outward(&call))
            };
            // A read-modify-write that WGSL has not for this type.
            let by_exchange = |next: &str| {
                let again = w.loops.endless();
                format!(
                    "        {again}\n            let bits = atomicLoad({location});\n            \
                     let old = {};\n            let next = {next};\n            \
                     if (atomicCompareExchangeWeak({location}, bits, {}).exchanged) {{\n                \
                     return old;\n            }}\n        }}\n",
                    outward("bits"),
                    inward("next"),
                )
            };
            let body = match op {
                AtomicOp::Load => {
                    let call = format!("atomicLoad({location})");
                    format!("        return {};\n", outward(&call))
                }
                AtomicOp::Store => format!("        atomicStore({location}, {});\n", inward("value")),
                AtomicOp::Exchange => simple("atomicExchange"),
                AtomicOp::Add if scalar == Scalar::F32 => by_exchange("old + value"),
                AtomicOp::Add => simple("atomicAdd"),
                AtomicOp::Sub => simple("atomicSub"),
                AtomicOp::Min if scalar != holds && scalar.is_signed_integer() => {
                    by_exchange("min(old, value)")
                }
                AtomicOp::Max if scalar != holds && scalar.is_signed_integer() => {
                    by_exchange("max(old, value)")
                }
                AtomicOp::Min => simple("atomicMin"),
                AtomicOp::Max => simple("atomicMax"),
                AtomicOp::And => simple("atomicAnd"),
                AtomicOp::Or => simple("atomicOr"),
                AtomicOp::Xor => simple("atomicXor"),
                // WGSL's may fail although the values are equal; ours never does (T2).
                AtomicOp::CompareExchange => format!(
                    "        {}\n            let result = atomicCompareExchangeWeak({location}, {}, {});\n            \
                     if (result.exchanged || result.old_value != {}) {{\n                \
                     return {scalar}__exchange({}, result.exchanged);\n            }}\n        }}\n",
                    w.loops.endless(),
                    inward("value"),
                    inward("desired"),
                    inward("value"),
                    outward("result.old_value"),
                ),
            };
            let (result, nothing) = match op {
                AtomicOp::Store => (String::new(), String::new()),
                AtomicOp::CompareExchange => (
                    format!(" -> {scalar}__exchange"),
                    format!("    return {scalar}__exchange({}, false);\n", zero(way.ty)),
                ),
                AtomicOp::Load
                | AtomicOp::Exchange
                | AtomicOp::Add
                | AtomicOp::Sub
                | AtomicOp::Min
                | AtomicOp::Max
                | AtomicOp::And
                | AtomicOp::Or
                | AtomicOp::Xor => (
                    format!(" -> {ty}"),
                    format!("    return {};\n", zero(way.ty)),
                ),
            };
            // A loop that only returns ends is followed by a result all the same.
            let is_loop = body.ends_with("}\n");
            let end = if inside.is_empty() && is_loop { nothing.as_str() } else { "" };
            let access = [at.statement.as_str(), &body, end].concat();
            let body = Self::guarded(&inside, &access, &nothing);
            format!("fn {name}({params}){result} {{\n{body}}}\n")
        });
        name
    }

    /// Statements that make a thread array zero again (I3).
    pub(super) fn zero_thread_array(&mut self, alloc: u32) {
        let memory = Memory::Alloc(alloc);
        let object = self.plan.object(memory);
        if object.slots > CLEARED_SLOTS {
            let slot = self.zero_slot(memory, "slot");
            let end = object.slots;
            let each = self
                .loops
                .counted(format!("slot = 0u; slot < {end}u; slot++"));
            self.line(format!("{each} {slot} }}"));
            return;
        }
        let name = self.memory_name(memory);
        let (element, slots) = (object.storage.wgsl(), object.slots);
        let zeros = match object.storage.floats() {
            Some(ty) if self.options.features.hides_zeros => {
                let (zero, text) = (self.names.unique("zero"), self.zero(ty));
                self.line(format!("let {zero} = {text};"));
                vec![zero; slots as usize].join(", ")
            }
            Some(_) | None => String::new(),
        };
        self.line(format!("{name} = array<{element}, {slots}>({zeros});"));
    }

    /// The statement that makes a slot of an array zero.
    pub(super) fn zero_slot(&self, memory: Memory, at: &str) -> String {
        let name = self.memory_name(memory);
        match self.plan.object(memory).storage {
            Storage::AtomicScalars(Scalar::I32) => format!("atomicStore(&{name}[{at}], 0i);"),
            Storage::AtomicScalars(Scalar::I64) => format!("atomicStore(&{name}[{at}], 0li);"),
            Storage::AtomicScalars(Scalar::U64) => format!("atomicStore(&{name}[{at}], 0lu);"),
            Storage::AtomicScalars(_) | Storage::AtomicWords => {
                format!("atomicStore(&{name}[{at}], 0u);")
            }
            Storage::Scalars(Scalar::Bool) => format!("{name}[{at}] = 0u;"),
            Storage::Scalars(s) => format!("{name}[{at}] = {};", zero(Type::Scalar(s))),
            Storage::Vectors(s, n) => format!("{name}[{at}] = {};", zero(Type::Vector(s, n))),
            Storage::Words => format!("{name}[{at}] = 0u;"),
        }
    }

    /// A barrier of the threadgroup.
    pub(super) fn barrier_of(&mut self, spaces: Spaces) {
        let device = spaces.contains(Spaces::DEVICE) && self.device_is_written();
        if device {
            self.line("storageBarrier();");
        }
        let texture = spaces.contains(Spaces::TEXTURE) && self.textures_are_written();
        if texture {
            self.line("textureBarrier();");
        }
        if !(device || texture) || spaces.contains(Spaces::THREADGROUP) {
            self.line("workgroupBarrier();");
        }
    }

    /// Whether the kernel writes a texture.
    fn textures_are_written(&self) -> bool {
        self.kernel.params.iter().any(|param| match param.kind {
            ParamKind::Texture(ty) => ty.access.memory().can_write(),
            ParamKind::Buffer { .. }
            | ParamKind::Constant { .. }
            | ParamKind::Scalar { .. }
            | ParamKind::Threadgroup { .. }
            | ParamKind::Sampler => false,
        })
    }

    /// Without a store or atomic to a buffer there is nothing to order.
    pub(super) fn device_is_written(&self) -> bool {
        self.plan.memories().into_iter().any(|memory| {
            self.plan.object(memory).written
                && self
                    .module
                    .memory(self.kernel, memory)
                    .is_some_and(|info| info.space == AddressSpace::Device)
        })
    }
}

/// An offset, given a name if it is not one.
struct Offset {
    name: String,
    statement: String,
}

fn named_offset(at: &str) -> Offset {
    if at == "i" {
        Offset {
            name: at.to_string(),
            statement: String::new(),
        }
    } else {
        Offset {
            name: "at".to_string(),
            statement: format!("        let at = {at};\n"),
        }
    }
}

fn declare(params: &[String]) -> String {
    let all: Vec<String> = params.iter().map(|p| format!("{p}: u32")).collect();
    all.join(", ")
}

fn times(name: &str, by: u64) -> String {
    if by == 1 {
        name.to_string()
    } else {
        format!("{name} * {by}u")
    }
}

fn plus(text: &str, by: u64) -> String {
    if by == 0 {
        text.to_string()
    } else {
        format!("{text} + {by}u")
    }
}

/// What an atomic element holds for a scalar.
fn to_slot(scalar: Scalar, text: &str) -> String {
    match scalar {
        Scalar::Bool => format!("select(0u, 1u, {text})"),
        Scalar::I8 | Scalar::I16 => format!("u32({text})"),
        Scalar::F16 => format!("bitcast<u32>(f32({text}))"),
        Scalar::BF16 | Scalar::F32 => format!("bitcast<u32>({text})"),
        Scalar::I32
        | Scalar::U8
        | Scalar::U16
        | Scalar::U32
        | Scalar::I64
        | Scalar::U64
        | Scalar::F64 => text.to_string(),
    }
}

/// The scalar that an atomic element holds.
fn from_slot(scalar: Scalar, text: &str) -> String {
    match scalar {
        Scalar::Bool => format!("({text} != 0u)"),
        Scalar::I8 | Scalar::I16 => format!("i32({text})"),
        Scalar::F16 => format!("float16(bitcast<f32>({text}))"),
        Scalar::BF16 | Scalar::F32 => format!("bitcast<f32>({text})"),
        Scalar::I32
        | Scalar::U8
        | Scalar::U16
        | Scalar::U32
        | Scalar::I64
        | Scalar::U64
        | Scalar::F64 => text.to_string(),
    }
}

/// A scalar of the same bits.
fn convert(from: Scalar, to: Scalar, text: &str) -> String {
    match (from, to) {
        (from, to) if from == to => text.to_string(),
        (Scalar::F32, _) => format!("bitcast<u32>({text})"),
        (_, Scalar::F32) => format!("bitcast<f32>({text})"),
        (_, to) => format!("{}({text})", types::scalar(to)),
    }
}
