//! The objects that a kernel accesses: its parameters, arrays and variables.

use invar_ir::{
    Access, Binding, Const, ConstantArray, Dim, ElementType, Memory, Op, Place, Scalar, StructDef,
    StructId, Type,
};
use invar_llvm::foreign::{self, DebugField, DebugType, Kind};

use invar_wgsl::Declared;

use crate::accesses::field;
use crate::declared::{bytes_of, declared, vector};
use crate::distances::pair;
use crate::fields::size;
use crate::needed::is_unknown;
use crate::objects::{Root, is_handle, scalar_of, written_scalar};
use crate::positions::position;
use crate::translator::{Done, Translator};
use crate::value::{Address, Object, Val, What};

/// What a parameter of the host is.
pub(crate) struct Bound {
    pub name: String,
    pub index: Option<u32>,
    /// How many elements it has, if its type says so.
    pub length: Option<u32>,
    /// The type of its elements as it is written, if the kernel's own are parts of it.
    pub declared: Option<Declared>,
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
                declared: as_written(param.debug.as_ref(), scalar)
                    .or_else(|| in_bytes(param.debug.as_ref(), scalar)),
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
}

/// Bytes, where a parameter leads to them and the kernel accesses more at a time: a host gives the length of threadgroup
/// memory in bytes.
fn in_bytes(debug: Option<&DebugType>, scalar: Scalar) -> Option<Declared> {
    match debug {
        Some(DebugType::Pointer(of)) if size(of) <= 1 && scalar.size_bytes() > 1 => {
            Some(Declared {
                element: Scalar::U8.into(),
                structs: Vec::new(),
            })
        }
        _ => None,
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
