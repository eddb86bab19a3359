//! The objects that a kernel accesses, and loads and stores of them.

use invar_ir::{
    Access, Binding, Const, ConstantArray, Dim, ElementType, Memory, Op, Place, Scalar, Step,
    StructDef, StructId, TextureType, Type, Value, Width,
};
use invar_llvm::foreign::{self, DebugField, DebugType, Kind, Operand};
use smallvec::SmallVec;

use invar_wgsl::Declared;

use crate::declared::{bytes_of, declared, vector};
use crate::fields::size;
use crate::needed::{is_unknown, unknown};
use crate::objects::{Root, is_handle, odd_bits, scalar_of, written_scalar};
use crate::positions::position;
use crate::translate::{Address, Done, Translator, Val, describe, pair};

/// An object of memory.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub what: What,
    pub granule_bytes: u64,
    pub scalar: Scalar,
}

/// What stands for an object.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// An array of granules.
    Granules(Memory),
    /// A struct in constant memory, whose fields are accessed each by itself.
    Fields(Memory, DebugType),
    /// A position, of which each component is an operation, and how many its type has.
    Position(Op, u32),
    Texture(Memory, TextureType),
    Sampler(Memory),
    /// A function constant without a value.
    Unset(String),
}

/// What a parameter of the host is.
pub(crate) struct Bound {
    pub name: String,
    pub index: Option<u32>,
    /// How many elements it has, if its type says so.
    pub length: Option<u32>,
    /// The type of its elements as it is written, if the kernel's own are parts of it.
    pub declared: Option<Declared>,
}

/// At most so many names stand in a sentence.
const LISTED: usize = 12;

/// Names in a sentence, the first dozen of them.
pub(crate) fn listed(names: &[String]) -> String {
    let mut all: Vec<String> = names
        .iter()
        .take(LISTED)
        .map(|name| format!("`{name}`"))
        .collect();
    if names.len() > LISTED {
        all.push(format!("and {} more", names.len() - LISTED));
    }
    all.join(", ")
}

impl Translator<'_> {
    /// Declares the kernel's parameters and arrays.
    pub fn declare(&mut self) -> Done<Vec<Bound>> {
        let f = self.f;
        let mut bound = Vec::new();
        for number in 0..f.params.len() {
            self.param(number, &mut bound)?;
        }
        self.declare_shared(&mut bound);
        for (number, global) in f.globals.iter().enumerate() {
            let root = Root::Global(number);
            if self.objects.accesses.contains_key(&root) {
                self.global(root, global)?;
            }
        }
        for (number, inst) in f.insts.iter().enumerate() {
            let root = Root::Variable(number);
            let Kind::Alloca(bytes) = inst.kind else {
                continue;
            };
            let Some(accesses) = self.objects.accesses.get(&root) else {
                continue;
            };
            let is_pointer = |ty| ty == foreign::Type::Pointer;
            let pointers = accesses.iter().filter(|a| is_pointer(a.ty));
            // Of all that is loaded and stored, that at an index which is computed is what cannot be.
            let computed = pointers.clone().find(|a| a.offset.is_none());
            if let Some(access) = computed.or(pointers.clone().next()) {
                self.at(f.insts[access.inst].location);
                return Err(
                    self.refuse("an array of pointers, or a pointer at an index that is computed,")
                );
            }
            let is_matrix = |ty| matches!(ty, foreign::Type::Vector(..));
            let matrices = accesses.iter().filter(|a| is_matrix(a.ty));
            let computed = matrices.clone().find(|a| a.offset.is_none());
            if let Some(access) = computed.or(matrices.clone().next()) {
                self.at(f.insts[access.inst].location);
                return Err(
                    self.refuse("an array of simdgroup matrices at an index that is computed")
                );
            }
            let (granule_bytes, scalar) = self.objects.granule(root, None);
            let length = u32::try_from((bytes / granule_bytes).max(1)).unwrap_or(u32::MAX);
            let name = inst.name.split('.').next().unwrap_or_default();
            let memory = self.k.alloc_thread(name, scalar, length);
            self.memory.insert(
                root,
                Object {
                    what: What::Granules(memory),
                    granule_bytes,
                    scalar,
                },
            );
        }
        Ok(bound)
    }

    /// A number for each two parameters whose addresses the kernel compares: 1 where a launch gives one buffer for
    /// both, else 0.
    fn declare_shared(&mut self, bound: &mut Vec<Bound>) {
        let f = self.f;
        for (number, inst) in f.insts.iter().enumerate() {
            if !matches!(inst.kind, Kind::Compare(_)) || !self.objects.is_needed(number) {
                continue;
            }
            let roots = [0, 1].map(|o| self.objects.roots_of(&inst.operands[o]));
            let [&[a], &[b]] = [&roots[0][..], &roots[1][..]] else {
                continue;
            };
            let key = pair(a, b);
            let (Root::Param(first), Root::Param(second)) = key else {
                continue;
            };
            let is_buffer = |number: usize| {
                let param = &f.params[number];
                let is = |what: &str| param.annotations.iter().any(|(name, _)| name == what);
                let is_address = param.ty == foreign::Type::Pointer && param.by_value.is_none();
                is_address && !is("msl.threadgroup") && !is_handle(param)
            };
            if first == second || self.shared.contains_key(&key) {
                continue;
            }
            if !is_buffer(first) || !is_buffer(second) {
                continue;
            }
            let name = format!("{}.is.{}", f.params[second].name, f.params[first].name);
            let memory = self.k.constant_buffer(&name, Scalar::U32);
            self.shared.insert(key, memory);
            bound.push(Bound {
                name,
                index: None,
                length: Some(1),
                declared: None,
            });
        }
    }

    /// What a launch says of two parameters.
    pub fn is_shared(&mut self, memory: Memory) -> Value {
        let zero = self.constant(Const::from(0u32));
        let said = self.k.load(Place::element(memory, zero));
        self.op(Op::Ne, &[said, zero])
    }

    fn param(&mut self, number: usize, bound: &mut Vec<Bound>) -> Done<()> {
        let f = self.f;
        let param = &f.params[number];
        let root = Root::Param(number);
        let named = |name: &str| {
            let mut all = param.annotations.iter();
            all.find(|(n, _)| n.strip_prefix("msl.") == Some(name))
        };
        match named("function_constant") {
            None | Some((_, Some(1))) => {}
            // It is not there, and nothing may come to it.
            Some((_, Some(0))) => {
                let absent = match param.ty {
                    foreign::Type::Pointer => Val::Address(Address::of(None)),
                    _value => Val::Undefined,
                };
                self.params.push(absent);
                return Ok(());
            }
            Some(_) => return Err(self.unset_param(param)),
        }
        let mut annotations = param
            .annotations
            .iter()
            .filter_map(|(n, _)| n.strip_prefix("msl."));
        let found = annotations.find_map(|name| Some((name, position(name)?)));
        if let Some((name, (op, has_components))) = found {
            return self.position(number, name, op, has_components);
        }
        if is_handle(param) {
            self.handle(number)?;
            bound.push(Bound {
                name: param.name.clone(),
                // Numbers are those of buffers.
                index: None,
                length: None,
                declared: None,
            });
            return Ok(());
        }
        if param.by_value.is_some() {
            return Err(self.refuse(&format!("the parameter `{}` of this type", param.name)));
        }
        if param.ty != foreign::Type::Pointer {
            let Some(scalar) = scalar_of(param.ty) else {
                return Err(self.refuse(&format!("the parameter `{}` of this type", param.name)));
            };
            let value = self.k.scalar(&param.name, scalar);
            self.params.push(Val::One(value));
            return Ok(());
        }
        self.params.push(Val::Address(Address::of(Some(root))));
        let accesses = self.objects.accesses.get(&root).map_or(&[][..], |a| a);
        let (reads, writes) = (
            accesses.iter().any(|a| a.reads),
            accesses.iter().any(|a| a.writes),
        );
        if let Some(access) = accesses.iter().find(|a| a.ty == foreign::Type::Pointer) {
            self.at(f.insts[access.inst].location);
            return Err(self.refuse(&format!("a pointer in memory (of `{}`)", param.name)));
        }
        if named("threadgroup").is_some() {
            let (granule_bytes, scalar) = self.objects.granule(root, param.debug.as_ref());
            let memory = self.k.threadgroup_param(&param.name, scalar);
            bound.push(Bound {
                name: param.name.clone(),
                // Numbers are those of buffers.
                index: None,
                length: None,
                declared: as_written(param.debug.as_ref(), scalar),
            });
            let what = What::Granules(memory);
            self.memory.insert(
                root,
                Object {
                    what,
                    granule_bytes,
                    scalar,
                },
            );
            return Ok(());
        }
        let is_constant = named("constant").is_some();
        self.declare_fields(number, bound)?;
        let is_of_addresses = self.objects.fields.iter().any(|f| f.param == number);
        if is_of_addresses && !(reads || writes) {
            return Ok(());
        }
        let index = named("buffer").and_then(|(_, i)| (*i)?.try_into().ok());
        let object = match &param.debug {
            Some(DebugType::Pointer(inner))
                if is_constant && !writes && self.is_by_field(root, inner) =>
            {
                let element = self.element(inner)?;
                let memory = self.k.constant_buffer(&param.name, element);
                Object {
                    what: What::Fields(memory, (**inner).clone()),
                    granule_bytes: 1,
                    scalar: Scalar::U8,
                }
            }
            debug => {
                let (granule_bytes, scalar) = self.objects.granule(root, debug.as_ref());
                let memory = match (is_constant, reads, writes) {
                    (true, _, false) => self.k.constant_buffer(&param.name, scalar),
                    (_, false, true) => self.k.buffer(&param.name, Access::Write, scalar),
                    (_, _, true) => self.k.buffer(&param.name, Access::ReadWrite, scalar),
                    (false, _, false) => self.k.buffer(&param.name, Access::Read, scalar),
                };
                Object {
                    what: What::Granules(memory),
                    granule_bytes,
                    scalar,
                }
            }
        };
        if let Some(number) = index {
            self.k.bind(Binding { group: 0, number });
        }
        let length = match &object.what {
            What::Fields(..) => Some(1),
            _granules => self.length_of_reference(root, param, object.granule_bytes),
        };
        bound.push(Bound {
            name: param.name.clone(),
            index,
            length,
            declared: as_written(
                param.debug.as_ref(),
                match &object.what {
                    What::Granules(_) => object.scalar,
                    // A byte, which no other type is.
                    _by_field => Scalar::Bool,
                },
            ),
        });
        self.memory.insert(root, object);
        Ok(())
    }

    /// How many granules a number or vector by reference in constant memory has, if the kernel accesses nothing beside
    /// it.
    fn length_of_reference(
        &self,
        root: Root,
        param: &foreign::Param,
        granule_bytes: u64,
    ) -> Option<u32> {
        let is = |what: &str| param.annotations.iter().any(|(name, _)| name == what);
        let Some(DebugType::Pointer(of)) = &param.debug else {
            return None;
        };
        let bytes = size(of);
        let is_number = match &**of {
            DebugType::Scalar(..) => true,
            DebugType::Struct(name, ..) => vector(name).is_some(),
            _other => false,
        };
        let accesses = self.objects.accesses.get(&root).map_or(&[][..], |a| a);
        let is_within = |access: &crate::objects::Access| {
            let offset = access.offset.and_then(|offset| u64::try_from(offset).ok());
            let end = offset.map(|offset| offset + access.ty.size_bytes());
            end.is_some_and(|end| end <= bytes)
        };
        let is_whole = is("msl.reference") && is_number && accesses.iter().all(is_within);
        let whole = is_whole && bytes.is_multiple_of(granule_bytes);
        whole.then(|| u32::try_from(bytes / granule_bytes).ok())?
    }

    fn position(&mut self, number: usize, place: &str, op: Op, has_components: bool) -> Done<()> {
        let param = &self.f.params[number];
        let op = Some(op).filter(|_| place != "grid_origin");
        if param.by_value.is_some() {
            let root = Root::Param(number);
            let written = match &param.debug {
                Some(DebugType::Struct(name, ..)) => vector(name),
                _other => None,
            };
            let (scalar, count) = written.unwrap_or((Scalar::U32, 3));
            let accesses = self.objects.accesses.get(&root).map_or(&[][..], |a| a);
            let is_accessed = !accesses.is_empty();
            let Some(op) = op.filter(|_| !accesses.iter().any(|a| a.writes)) else {
                if is_accessed {
                    return self.position_in_memory(number, op, scalar);
                }
                self.params.push(Val::Address(Address::of(Some(root))));
                return Ok(());
            };
            let object = Object {
                what: What::Position(op, count),
                granule_bytes: scalar.size_bytes(),
                scalar,
            };
            self.memory.insert(root, object);
            self.params.push(Val::Address(Address::of(Some(root))));
            return Ok(());
        }
        let value = match (place, op) {
            (_, None) => self.bits(Scalar::U32, 0),
            ("quadgroup_index_in_threadgroup", Some(op)) => {
                let index = self.op(op, &[]);
                let four = self.bits(Scalar::U32, 4);
                self.op(Op::Div, &[index, four])
            }
            ("quadgroups_per_threadgroup" | "dispatch_quadgroups_per_threadgroup", Some(op)) => {
                let [x, y, z] = [Dim::X, Dim::Y, Dim::Z].map(|dim| self.k.op(op, dim, &[]));
                let rows = self.op(Op::Mul, &[x, y]);
                let all = self.op(Op::Mul, &[rows, z]);
                let three = self.bits(Scalar::U32, 3);
                let more = self.op(Op::Add, &[all, three]);
                let four = self.bits(Scalar::U32, 4);
                self.op(Op::Div, &[more, four])
            }
            (_, Some(op)) if has_components => self.k.op(op, Dim::X, &[]),
            (_, Some(op)) => self.op(op, &[]),
        };
        self.k.name(value, &param.name);
        let value = match scalar_of(param.ty) {
            Some(Scalar::U32) => value,
            Some(scalar) => self.k.cast(value, Type::Scalar(scalar)),
            None => {
                return Err(self.refuse(&format!("the parameter `{}` of this type", param.name)));
            }
        };
        self.params.push(Val::One(value));
        Ok(())
    }

    /// A position that the kernel assigns to is a variable which begins as that; and so is one of zeros.
    fn position_in_memory(&mut self, number: usize, op: Option<Op>, component: Scalar) -> Done<()> {
        let root = Root::Param(number);
        let (granule_bytes, scalar) = self.objects.granule(root, None);
        if granule_bytes != component.size_bytes() {
            return Err(self.refuse("a position that is accessed by parts of its components"));
        }
        let name = &self.f.params[number].name;
        let memory = self.k.alloc_thread(name, scalar, 4);
        for (at, dim) in [Dim::X, Dim::Y, Dim::Z].into_iter().enumerate() {
            let Some(op) = op else {
                break;
            };
            let value = self.k.op(op, dim, &[]);
            let value = self.k.cast(value, Type::Scalar(component));
            let value = self.as_scalar(value, scalar);
            let index = self.constant(Const::from(at as u32));
            self.k.store(Place::element(memory, index), value);
        }
        let object = Object {
            what: What::Granules(memory),
            granule_bytes,
            scalar,
        };
        self.memory.insert(root, object);
        self.params.push(Val::Address(Address::of(Some(root))));
        Ok(())
    }

    /// Keeps the type that the source gives the elements of a variable in threadgroup memory.
    fn name_elements(&mut self, global: &foreign::Global, memory: Memory) {
        let known = global.debug.as_ref();
        let Some(ty) = known.filter(|ty| size(ty) == global.size_bytes) else {
            return;
        };
        let element = match ty {
            DebugType::Array(element, _) => element,
            one => one,
        };
        if let (Some(declared), Memory::Alloc(number)) = (declared(element), memory)
            && let Some(alloc) = self.k.kernel().allocs.get(number as usize)
        {
            let name = alloc.name.to_string();
            self.variables.push((name, declared));
        }
    }

    fn global(&mut self, root: Root, global: &foreign::Global) -> Done<()> {
        let (granule_bytes, scalar) = self.objects.granule(root, None);
        let length = (global.size_bytes / granule_bytes).max(1);
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        let what = match (&*global.section, &global.initial) {
            ("threadgroup", _) => {
                let accesses = &self.objects.accesses[&root];
                if let Some(access) = accesses.iter().find(|a| a.ty == foreign::Type::Pointer) {
                    self.at(self.f.insts[access.inst].location);
                    return Err(self.refuse("a pointer in threadgroup memory"));
                }
                let memory = self.k.alloc_threadgroup(&global.name, scalar, length);
                self.name_elements(global, memory);
                What::Granules(memory)
            }
            _ if is_unknown(global) => What::Unset(global.name.clone()),
            (_, Some(initial)) => {
                let mut bytes = vec![0_u8; length as usize * granule_bytes as usize];
                for (at, ty, bits) in initial {
                    let size = ty.size_bytes() as usize;
                    let from = *at as usize;
                    if let Some(place) = bytes.get_mut(from..from + size) {
                        place.copy_from_slice(&bits.to_le_bytes()[..size]);
                    }
                }
                let values = bytes.chunks_exact(granule_bytes as usize).map(|chunk| {
                    let mut bits = [0; 8];
                    bits[..chunk.len()].copy_from_slice(chunk);
                    Const {
                        scalar,
                        bits: u64::from_le_bytes(bits),
                    }
                });
                let values = values.collect();
                let span = self.k.span();
                let constants = &mut self.k.module_mut().constants;
                let mut name = global.name.clone();
                let mut number = 0;
                while constants.iter().any(|c| *c.name == *name) {
                    number += 1;
                    name = format!("{}.{number}", global.name);
                }
                constants.push(ConstantArray {
                    name: name.into(),
                    element: ElementType::Value(Type::Scalar(scalar)),
                    length,
                    values,
                    span,
                });
                What::Granules(Memory::Constant(constants.len() as u32 - 1))
            }
            (_, None) => {
                return Err(
                    self.refuse(&format!("the variable `{}` outside functions", global.name))
                );
            }
        };
        self.memory.insert(
            root,
            Object {
                what,
                granule_bytes,
                scalar,
            },
        );
        Ok(())
    }

    // ---- structs ----

    /// Whether every access to an object is to one scalar of a struct.
    fn is_by_field(&self, root: Root, ty: &DebugType) -> bool {
        let DebugType::Struct(_, bytes, _) = ty else {
            return false;
        };
        let accesses = self.objects.accesses.get(&root).map_or(&[][..], |a| a);
        *bytes > 0
            && declared(ty).is_some()
            && !accesses.is_empty()
            && accesses.iter().all(|access| {
                let offset = access.offset.and_then(|o| u64::try_from(o).ok());
                let found = offset.and_then(|o| field(ty, o));
                !access.is_copy
                    && found
                        .is_some_and(|(_, scalar)| scalar.size_bytes() == access.ty.size_bytes())
            })
    }

    /// A type as it was written, as an element.
    fn element(&mut self, ty: &DebugType) -> Done<ElementType> {
        match ty {
            DebugType::Scalar(name, bytes) => match written_scalar(name, *bytes) {
                Some(scalar) => Ok(ElementType::Value(Type::Scalar(scalar))),
                None => Err(self.refuse(&format!("the type `{name}` in a struct"))),
            },
            DebugType::Array(element, count) => {
                let element = self.element(element)?;
                let count = u32::try_from(*count).unwrap_or(u32::MAX);
                Ok(ElementType::Array(element.into(), count))
            }
            DebugType::Struct(name, bytes, fields) => {
                if let Some((scalar, count)) = vector(name) {
                    return Ok(ElementType::Array(
                        ElementType::Value(Type::Scalar(scalar)).into(),
                        count.max((*bytes / scalar.size_bytes()) as u32),
                    ));
                }
                self.struct_of(name, *bytes, fields)
            }
            // What stands at an address, and what has no type here, is bytes.
            DebugType::Pointer(_) => Ok(bytes_of(8)),
            DebugType::Other(_, bytes) => Ok(bytes_of((*bytes).max(1))),
        }
    }

    fn struct_of(&mut self, name: &str, bytes: u64, fields: &[DebugField]) -> Done<ElementType> {
        let mut members: Vec<(std::sync::Arc<str>, ElementType)> = Vec::new();
        let (mut end, mut align) = (0, 1);
        let pad = |members: &mut Vec<(std::sync::Arc<str>, ElementType)>, count: u64| {
            if count > 0 {
                let number = members.len();
                members.push((format!("pad.{number}").into(), bytes_of(count)));
            }
        };
        for (number, field) in fields.iter().enumerate() {
            let element = self.element(&field.ty)?;
            let Some(extent) = element.extent(&self.k.module().structs) else {
                return Err(self.refuse(&format!("the field `{}` of `{name}`", field.name)));
            };
            if field.offset_bytes < end {
                return Err(self.refuse(&format!(
                    "the union or bit field `{}` of `{name}`",
                    field.name
                )));
            }
            pad(
                &mut members,
                field.offset_bytes
                    - end
                        .next_multiple_of(extent.align_bytes)
                        .min(field.offset_bytes),
            );
            let name = match &*field.name {
                "" => format!("base.{number}"),
                name => name.to_string(),
            };
            members.push((name.into(), element));
            end = field.offset_bytes + extent.size_bytes;
            align = align.max(extent.align_bytes);
        }
        if bytes > end.next_multiple_of(align) {
            pad(&mut members, bytes - end);
        }
        if members.is_empty() {
            return Ok(bytes_of(bytes.max(1)));
        }
        let plain: String = name
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || c == '_' {
                    c
                } else {
                    '_'
                }
            })
            .collect();
        let mut def = StructDef {
            name: match &*plain {
                "" => "unnamed".into(),
                name => name.into(),
            },
            fields: members,
            span: self.k.span(),
        };
        let structs = &mut self.k.module_mut().structs;
        if let Some(known) = structs
            .iter()
            .position(|s| s.name == def.name && s.fields == def.fields)
        {
            return Ok(ElementType::Struct(StructId(known as u32)));
        }
        let plain = def.name.clone();
        let mut number = 0;
        while structs.iter().any(|s| s.name == def.name) {
            number += 1;
            def.name = format!("{plain}.{number}").into();
        }
        structs.push(def);
        Ok(ElementType::Struct(StructId(structs.len() as u32 - 1)))
    }

    /// The place of a field, by the bytes before it.
    fn field_place(
        &mut self,
        memory: Memory,
        ty: &DebugType,
        offset: u64,
    ) -> Done<(Place, Scalar)> {
        let Some((steps, scalar)) = field(ty, offset) else {
            return Err(self.refuse("an access beside the fields of a struct"));
        };
        let index = self.constant(Const::from(0u32));
        let mut path: SmallVec<[Step; 2]> = SmallVec::new();
        let mut at = self.k.memory(memory).map(|m| m.element.clone());
        for step in steps {
            let next = match (&at, step) {
                (Some(ElementType::Struct(id)), By::Name(name)) => {
                    let def = &self.k.module().structs[id.0 as usize];
                    let found = def.fields.iter().position(|(n, _)| **n == *name);
                    let found = found.unwrap_or(0);
                    let ty = def.fields[found].1.clone();
                    path.push(Step::Field(found as u32));
                    Some(ty)
                }
                (Some(ElementType::Array(element, _)), By::Number(number)) => {
                    let element = (**element).clone();
                    let number = self.constant(Const::from(number as u32));
                    path.push(Step::Index(number));
                    Some(element)
                }
                _other => return Err(self.refuse("an access beside the fields of a struct")),
            };
            at = next;
        }
        let place = Place {
            memory,
            index,
            width: Width::One,
            path,
        };
        Ok((place, scalar))
    }

    // ---- accesses ----

    /// The distance of an address from its root, in so many bytes, a power of two. What is not a multiple by
    /// itself is added up in bytes, so that an index stays one in what is.
    pub fn distance(&mut self, address: &Address, unit: i64) -> Value {
        self.distance_by(address, unit, Op::Shr)
    }

    /// The index in an object that an access of so many bytes is made at. If its address is not a multiple of them, a
    /// check says so.
    fn index_of_access(&mut self, address: &Address, bytes: u64, object: &Object) -> Value {
        let (bytes, granule) = (bytes as i64, object.granule_bytes as i64);
        let is_multiple = address.constant % bytes == 0
            && address.terms.iter().all(|(_, scale)| scale % bytes == 0);
        if bytes > granule && self.asks_alignment && !is_multiple {
            self.distance_by(address, bytes, Op::ShrExact);
        }
        let op = match self.asks_alignment {
            true => Op::ShrExact,
            false => Op::Shr,
        };
        self.distance_by(address, granule, op)
    }

    fn distance_by(&mut self, address: &Address, unit: i64, shift: Op) -> Value {
        let (whole, odd): (Vec<_>, Vec<_>) = address
            .terms
            .iter()
            .copied()
            .partition(|(_, s)| s % unit == 0);
        let mut total = None;
        let mut rest = address.constant;
        if !odd.is_empty() || rest % unit != 0 {
            // The constant goes where it makes a multiple, as far as that can be seen.
            let constant = if rest % unit == 0 {
                0
            } else {
                std::mem::take(&mut rest)
            };
            let bytes = self.sum(None, &odd, 1, constant);
            let by = self.bits(Scalar::I64, u64::from(unit.trailing_zeros()));
            total = Some(self.op(shift, &[bytes, by]));
        }
        self.sum(total, &whole, unit, rest / unit)
    }

    /// Values times numbers, each of these divided by a step, and a number, on top of a value.
    fn sum(
        &mut self,
        mut total: Option<Value>,
        terms: &[(Value, i64)],
        step: i64,
        constant: i64,
    ) -> Value {
        for (value, scale) in terms {
            let term = match scale / step {
                1 => *value,
                scale => {
                    let by = self.bits(Scalar::I64, scale as u64);
                    self.op(Op::Mul, &[*value, by])
                }
            };
            total = Some(match total {
                None => term,
                Some(sum) => self.op(Op::Add, &[sum, term]),
            });
        }
        match total {
            None => self.bits(Scalar::I64, constant as u64),
            Some(sum) if constant == 0 => sum,
            Some(sum) => {
                let more = self.bits(Scalar::I64, constant as u64);
                self.op(Op::Add, &[sum, more])
            }
        }
    }

    pub fn object(&self, address: &Address) -> Done<Object> {
        let Some(root) = address.root else {
            return Err(self.refuse("an access through a null pointer"));
        };
        if address.choice.is_some() {
            return Err(self.refuse("this use of a pointer that leads to one of several objects"));
        }
        match self.memory.get(&root) {
            Some(object) => Ok(object.clone()),
            None => Err(self.refuse("an access to this object")),
        }
    }

    /// The memory and index of granules that an access of so many bytes is made at.
    pub fn granules(&mut self, address: &Address, bytes: u64) -> Done<(Memory, Value, Object)> {
        let object = self.object(address)?;
        match object.what {
            What::Granules(memory) => {
                let index = self.index_of_access(address, bytes, &object);
                Ok((memory, index, object))
            }
            What::Unset(ref name) => Err(self.unset(name)),
            What::Fields(..) | What::Position(..) | What::Texture(..) | What::Sampler(_) => {
                Err(self.refuse("an access of this kind to a parameter"))
            }
        }
    }

    /// A parameter that is there only with a constant, which has no value.
    fn unset_param(&self, param: &foreign::Param) -> invar_ir::Diagnostic {
        let mut all = param.annotations.iter();
        let condition = all.find_map(|(name, _)| name.strip_prefix("msl.if "));
        let condition = condition.unwrap_or_default();
        let words = condition.split(|c: char| !c.is_alphanumeric() && c != '_');
        let unset = words.filter(|word| self.unset.iter().any(|u| u == word));
        self.without_value(
            &format!(
                "whether there is a parameter `{}` depends on `{condition}`",
                param.name
            ),
            condition,
            unset.map(String::from).collect(),
        )
    }

    /// Refuses a kernel that needs the value of a variable that has none.
    pub fn refuse_unknown(&mut self) -> Done<()> {
        let Some((inst, global)) = unknown(self.f, &self.objects) else {
            return Ok(());
        };
        self.at(self.f.insts[inst].location);
        Err(self.unset(&self.f.globals[global].name))
    }

    /// The kernel needs the value of a variable that has none before it runs.
    fn unset(&self, name: &str) -> invar_ir::Diagnostic {
        let mut read: Vec<String> = Vec::new();
        for (number, global) in self.f.globals.iter().enumerate() {
            if self.objects.accesses.contains_key(&Root::Global(number)) {
                let itself = (global.section == "function_constant").then_some(&global.name);
                let names = global.computed_from.iter().flatten().chain(itself);
                read.extend(names.filter(|name| self.unset.contains(name)).cloned());
            }
        }
        self.without_value(&format!("the kernel depends on `{name}`"), name, read)
    }

    /// What depends on a variable, and the function constants that the kernel reads and that have no value.
    fn without_value(&self, what: &str, name: &str, mut read: Vec<String>) -> invar_ir::Diagnostic {
        let mut seen = std::collections::HashSet::new();
        read.retain(|name| seen.insert(name.clone()));
        let message = match &read[..] {
            [] => format!("{what}, which has no value before the kernel runs"),
            [one] if one == name => format!("{what}, a function constant without a value"),
            _several => format!(
                "{what}, and these function constants that the kernel reads have no value: {}",
                listed(&read)
            ),
        };
        invar_ir::Diagnostic::error(invar_ir::Rule::FunctionConstant, self.k.span(), message)
            .help("give each a value with --const NAME=VALUE")
    }

    pub fn load(&mut self, number: usize) -> Done<Val> {
        let f = self.f;
        let inst = &f.insts[number];
        let address = self.address(&inst.operands[0])?;
        if self.objects.are_handles(&inst.operands[0]) {
            // The address in a handle is that of its parameter; the properties of a sampler are the host's.
            return match scalar_of(inst.ty) {
                Some(scalar) => Ok(Val::One(self.bits(scalar, 0))),
                None => Ok(Val::Address(address)),
            };
        }
        if let Some(fields) = self.objects.read_fields(number) {
            let fields = fields.to_vec();
            return self.loaded_address(number, &fields).map(Val::Address);
        }
        Ok(Val::One(self.load_from(&address, inst.ty)?))
    }

    /// A value of a type of LLVM's from an address.
    pub fn load_from(&mut self, address: &Address, ty: foreign::Type) -> Done<Value> {
        let Some(scalar) = scalar_of(ty).filter(|_| odd_bits(ty).is_none()) else {
            return Err(self.refuse(&describe(ty)));
        };
        if let Some(parts) = self.first_and_rest(address) {
            let (is_first, first, rest) = parts;
            self.open(&[]);
            let value = self.load_from(&first, ty)?;
            let value = self.as_scalar(value, scalar);
            self.k.yield_(&[value]);
            let yes = self.close();
            self.open(&[]);
            let value = self.load_from(&rest, ty)?;
            let value = self.as_scalar(value, scalar);
            self.k.yield_(&[value]);
            let no = self.close();
            return Ok(self.k.if_regions(is_first, yes, no)[0]);
        }
        let object = self.object(address)?;
        match object.what {
            What::Granules(memory) => {
                let first = self.index_of_access(address, ty.size_bytes(), &object);
                let count = ty.size_bytes() / object.granule_bytes;
                self.load_granules(memory, first, count, &object, scalar)
            }
            What::Fields(memory, debug) => {
                let offset = u64::try_from(address.constant)
                    .ok()
                    .filter(|_| address.terms.is_empty());
                let Some(offset) = offset else {
                    return Err(self.refuse("an index into a struct"));
                };
                let (place, _) = self.field_place(memory, &debug, offset)?;
                Ok(self.k.load(place)).map(|v| self.like(v, scalar))
            }
            What::Position(op, count) => self.load_position((op, count), &object, address, scalar),
            What::Texture(..) | What::Sampler(_) => {
                Err(self.refuse("a texture or sampler as a number"))
            }
            What::Unset(name) => Err(self.unset(&name)),
        }
    }

    /// Components of a position, as many as a scalar has room for; behind the third there is nothing.
    fn load_position(
        &mut self,
        (op, count): (Op, u32),
        object: &Object,
        address: &Address,
        scalar: Scalar,
    ) -> Done<Value> {
        let component = object.scalar;
        let (size, wanted) = (component.size_bytes() as i64, scalar.size_bytes() as i64);
        if address.constant % size != 0 || wanted % size != 0 {
            return Err(self.refuse("a part of a component of a position"));
        }
        let parts = wanted / size;
        let all: Vec<Value> = if address.terms.is_empty() {
            let first = address.constant / size;
            let parts = first..first + parts;
            parts
                .map(|number| self.position_component(op, component, number))
                .collect()
        } else {
            let first = self.index_of_access(address, wanted as u64, object);
            let whole: Vec<Value> = (0..i64::from(count))
                .map(|number| self.position_component(op, component, number))
                .collect();
            let ty = Type::Vector(component, whole.len() as u8);
            let whole = self.k.construct(ty, &whole);
            let part = |number: i64| {
                let index = self.sum(Some(first), &[], 1, number);
                self.op(Op::Extract, &[whole, index])
            };
            (0..parts).map(part).collect()
        };
        match &all[..] {
            [one] => Ok(self.as_scalar(*one, scalar)),
            [_, _] | [_, _, _, _] => {
                let all = self
                    .k
                    .construct(Type::Vector(component, all.len() as u8), &all);
                Ok(self.k.as_type(all, Type::Scalar(scalar)))
            }
            _other => Err(self.refuse("a part of a component of a position")),
        }
    }

    fn position_component(&mut self, op: Op, component: Scalar, number: i64) -> Value {
        let dim = usize::try_from(number)
            .ok()
            .and_then(|n| [Dim::X, Dim::Y, Dim::Z].get(n).copied());
        match dim {
            Some(dim) => {
                let value = self.k.op(op, dim, &[]);
                self.k.cast(value, Type::Scalar(component))
            }
            None => self.bits(component, 0),
        }
    }

    /// A value that was loaded, as an integer or float as asked; the sign stays.
    fn like(&mut self, value: Value, scalar: Scalar) -> Value {
        match self.scalar(value) {
            Some(found) if found.is_integer() && scalar.is_integer() => value,
            _other => self.as_scalar(value, scalar),
        }
    }

    fn load_granules(
        &mut self,
        memory: Memory,
        first: Value,
        count: u64,
        object: &Object,
        scalar: Scalar,
    ) -> Done<Value> {
        let run = |memory, index, n: u64| Place {
            memory,
            index,
            width: if n == 1 {
                Width::One
            } else {
                Width::Run(n as u8)
            },
            path: SmallVec::new(),
        };
        match count {
            1 => {
                let value = self.k.load(run(memory, first, 1));
                Ok(self.like(value, scalar))
            }
            2 | 4 => {
                let value = self.k.load(run(memory, first, count));
                Ok(self.k.as_type(value, Type::Scalar(scalar)))
            }
            8 if object.granule_bytes == 1 => {
                let four = self.bits(Scalar::I64, 4);
                let second = self.op(Op::Add, &[first, four]);
                let halves = [first, second].map(|index| {
                    let value = self.k.load(run(memory, index, 4));
                    self.k.as_type(value, Type::Scalar(Scalar::U32))
                });
                let both = self.k.construct(Type::Vector(Scalar::U32, 2), &halves);
                Ok(self.k.as_type(both, Type::Scalar(scalar)))
            }
            _other => Err(self.refuse("an access of this width")),
        }
    }

    pub fn store(&mut self, number: usize) -> Done<()> {
        let f = self.f;
        let inst = &f.insts[number];
        if inst.operands[0] == Operand::Poison {
            return Err(self.undefined());
        }
        // Padding, which is not a location (L3): variables have a value from the start.
        if self.operand(&inst.operands[0])? == Val::Undefined {
            return Ok(());
        }
        let value = self.one(number, 0)?;
        let address = self.address(&inst.operands[1])?;
        self.store_to(&address, value, inst.types[0])
    }

    /// Of an address that leads to one of several objects: whether it is the first, that, and the others.
    pub fn first_and_rest(&mut self, address: &Address) -> Option<(Value, Address, Address)> {
        let (which, roots) = address.choice.as_ref()?;
        let zero = self.constant(Const::from(0u32));
        let is_first = self.op(Op::Eq, &[*which, zero]);
        let of = |root: Option<&Root>| Address {
            root: root.copied(),
            choice: None,
            ..address.clone()
        };
        let mut rest = of(roots.get(1));
        if roots.len() > 2 {
            let one = self.constant(Const::from(1u32));
            rest.choice = Some((self.op(Op::Sub, &[*which, one]), roots[1..].to_vec()));
        }
        Some((is_first, of(roots.first()), rest))
    }

    /// Stores a value of a type of LLVM's at an address.
    pub fn store_to(&mut self, address: &Address, value: Value, ty: foreign::Type) -> Done<()> {
        if odd_bits(ty).is_some() {
            return Err(self.refuse(&describe(ty)));
        }
        if let Some((is_first, first, rest)) = self.first_and_rest(address) {
            self.open(&[]);
            self.store_to(&first, value, ty)?;
            let yes = self.close();
            self.open(&[]);
            self.store_to(&rest, value, ty)?;
            let no = self.close();
            self.k.if_regions(is_first, yes, no);
            return Ok(());
        }
        let (memory, first, object) = self.granules(address, ty.size_bytes())?;
        let count = ty.size_bytes() / object.granule_bytes;
        let place = |index, n: u64| Place {
            memory,
            index,
            width: if n == 1 {
                Width::One
            } else {
                Width::Run(n as u8)
            },
            path: SmallVec::new(),
        };
        let bits = self.scalar(value);
        match count {
            1 => {
                let value = match bits {
                    Some(Scalar::Bool) => self.k.cast(value, Type::Scalar(object.scalar)),
                    _other => self.as_scalar(value, object.scalar),
                };
                self.k.store(place(first, 1), value);
            }
            2 | 4 => {
                let parts = self
                    .k
                    .as_type(value, Type::Vector(object.scalar, count as u8));
                self.k.store(place(first, count), parts);
            }
            8 if object.granule_bytes == 1 => {
                let four = self.bits(Scalar::I64, 4);
                let second = self.op(Op::Add, &[first, four]);
                let both = self.k.as_type(value, Type::Vector(Scalar::U32, 2));
                for (number, index) in [first, second].into_iter().enumerate() {
                    let number = self.constant(Const::from(number as u32));
                    let half = self.op(Op::Extract, &[both, number]);
                    let parts = self.k.as_type(half, Type::Vector(object.scalar, 4));
                    self.k.store(place(index, 4), parts);
                }
            }
            _other => return Err(self.refuse("an access of this width")),
        }
        Ok(())
    }

    /// `memcpy` and `memset` of so many bytes.
    pub fn copy_bytes(&mut self, number: usize, is_set: bool) -> Done<()> {
        let f = self.f;
        let inst = &f.insts[number];
        let Some(Operand::Bits(_, bytes)) = inst.operands.get(2) else {
            return Err(self.refuse("a copy of a length that is computed"));
        };
        let to = self.address(&inst.operands[0])?;
        let target = self.object(&to)?;
        let mut unit = target.granule_bytes;
        let from = match is_set {
            true => None,
            false => {
                let from = self.address(&inst.operands[1])?;
                unit = unit.max(self.object(&from)?.granule_bytes);
                Some(from)
            }
        };
        if bytes % unit != 0 || bytes / unit > MAX_COPIED {
            return Err(self.refuse(&format!("a copy of {bytes} bytes at once")));
        }
        let ty = foreign::Type::Int(unit as u32 * 8);
        let same = match &inst.operands[1] {
            Operand::Bits(_, byte) if is_set => {
                let all = u64::from_le_bytes([*byte as u8; 8]);
                let scalar = scalar_of(ty).unwrap_or(Scalar::U8);
                Some(self.bits(scalar, all))
            }
            _ if is_set => return Err(self.refuse("`memset` by a value that is computed")),
            _copied => None,
        };
        // Of a struct whose fields are narrower it is not an access in that width.
        self.asks_alignment = false;
        let copied = self.copy_units(*bytes, (&to, from.as_ref()), same, ty);
        self.asks_alignment = true;
        copied
    }

    /// Copies one after another as many as fit so many bytes, or stores one value.
    fn copy_units(
        &mut self,
        bytes: u64,
        (to, from): (&Address, Option<&Address>),
        same: Option<Value>,
        ty: foreign::Type,
    ) -> Done<()> {
        for at in (0..bytes).step_by(ty.size_bytes() as usize) {
            let mut to = to.clone();
            to.constant += at as i64;
            let value = match (same, from) {
                (Some(value), _) => value,
                (None, Some(from)) => {
                    let mut from = from.clone();
                    from.constant += at as i64;
                    self.load_from(&from, ty)?
                }
                (None, None) => continue,
            };
            self.store_to(&to, value, ty)?;
        }
        Ok(())
    }
}

/// More granules than these are not copied one by one.
const MAX_COPIED: u64 = 4096;

/// A step into a struct.
enum By {
    Name(String),
    Number(u64),
}

/// The way to the scalar that stands so many bytes into a type.
fn field(ty: &DebugType, offset: u64) -> Option<(Vec<By>, Scalar)> {
    match ty {
        DebugType::Scalar(name, bytes) => {
            let scalar = written_scalar(name, *bytes)?;
            (offset == 0).then(|| (Vec::new(), scalar))
        }
        DebugType::Array(element, count) => {
            let step = size(element).max(1);
            let number = offset / step;
            let (mut path, scalar) = field(element, offset % step)?;
            path.insert(0, By::Number(number));
            (number < *count).then_some((path, scalar))
        }
        DebugType::Struct(name, bytes, fields) => {
            if let Some((scalar, _)) = vector(name) {
                let number = offset / scalar.size_bytes();
                let inside = offset < *bytes && offset.is_multiple_of(scalar.size_bytes());
                return inside.then(|| (vec![By::Number(number)], scalar));
            }
            let (number, found) = fields.iter().enumerate().find(|(_, f)| {
                (f.offset_bytes..f.offset_bytes + size(&f.ty).max(1)).contains(&offset)
            })?;
            let (mut path, scalar) = field(&found.ty, offset - found.offset_bytes)?;
            let name = match &*found.name {
                "" => format!("base.{number}"),
                name => name.to_string(),
            };
            path.insert(0, By::Name(name));
            Some((path, scalar))
        }
        DebugType::Pointer(_) | DebugType::Other(..) => None,
    }
}

/// The type that a parameter's elements have in the source, if it is not the scalar that the kernel accesses.
pub(crate) fn as_written(debug: Option<&DebugType>, scalar: Scalar) -> Option<Declared> {
    let Some(DebugType::Pointer(of)) = debug else {
        return None;
    };
    let all = declared(of).filter(|d| d.element != scalar.into())?;
    let bytes = all.element.extent(&all.structs)?.size_bytes;
    let own = scalar.size_bytes();
    (bytes.is_multiple_of(own) || own.is_multiple_of(bytes)).then_some(all)
}
