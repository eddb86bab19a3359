//! Loads, stores and atomics of a chunk, in bounds whatever the index (B1 to B4).
//!
//! Each access takes the cheapest of five forms: one scalar where the index is the same for a vector's
//! lanes; a vector where elements lie side by side, or where the components of all lanes do, which
//! registers then sort; else a gather or a scatter; and for thread arrays, whose elements lie as vectors
//! of lanes, a vector at a time.
//!
//! An index is compared as an unsigned integer of 64 bits after extension by its own sign, so that
//! negative ones are beyond every length. The guard and the access use one value of it (B5).

use inkwell::types::{BasicTypeEnum, VectorType};
use inkwell::values::{BasicValue, BasicValueEnum, IntValue, PointerValue, VectorValue};
use inkwell::{AtomicOrdering, IntPredicate};
use invar_ir::inst::{InstKind, Memory, Place, Step, Width};
use invar_ir::{ConstantArray, ElementType, Inst, Scalar, Type};

use crate::atomics::{Atomic, atomic, atomic_of_all, atomic_of_each};
use crate::classes::Class;
use crate::emit::BUILT;
use crate::guards::Proof;
use crate::kernel::{Maker, Object};
use crate::object::ALIGN;
use crate::value::{Mask, Part, Parts};

/// A place, resolved as far as it does not depend on lanes.
struct Target<'c> {
    object: Object<'c>,
    /// Element index.
    index: Parts<'c>,
    index_scalar: Scalar,
    /// Elements a group of `width` counts for one index, or 1.
    scale: u64,
    /// From one component to the next: elements to add to the index, and bytes.
    component_elements: u64,
    component_bytes: u64,
    components: usize,
    scalar: Scalar,
    element_bytes: u64,
    /// The way into the element.
    offset_bytes: u64,
    dynamic: Vec<Dynamic<'c>>,
    /// A constant step leads out of bounds.
    never: bool,
    /// In bounds only in the lanes that are on.
    by_active: bool,
    /// What to ask for ahead of its use.
    bytes_ahead: Option<IntValue<'c>>,
}

/// An index inside of an element.
struct Dynamic<'c> {
    index: Parts<'c>,
    scalar: Scalar,
    length: u64,
    stride_bytes: u64,
}

/// Where one vector's lanes access one component.
enum Spot<'c> {
    /// All lanes one location: its address, and whether it is in bounds.
    Same(PointerValue<'c>, Option<IntValue<'c>>),
    /// Lane by lane: addresses, and which are in bounds.
    Lanes(VectorValue<'c>, Option<VectorValue<'c>>),
}

/// The components of all lanes side by side, those of lane 0 first.
struct Dense<'c> {
    pointer: PointerValue<'c>,
    /// Whether all of them are in bounds, and all lanes are on.
    whole: Option<IntValue<'c>>,
}

/// Elements side by side: the address of lane 0's.
struct Row<'c> {
    pointer: PointerValue<'c>,
    /// Whether all lanes are in bounds.
    inside: Option<IntValue<'c>>,
    /// Element index of lane 0, 64 bits, and whether lanes follow without wrapping.
    base: IntValue<'c>,
    exact: bool,
}

impl<'c, 'k> Maker<'c, 'k> {
    // ---- memory and registers ----

    /// The type in memory of what has this type in registers: `bool` takes a byte.
    pub fn memory_type(&self, scalar: Scalar, ty: BasicTypeEnum<'c>) -> BasicTypeEnum<'c> {
        if scalar != Scalar::Bool {
            return ty;
        }
        let byte = self.e.context.i8_type();
        match ty {
            BasicTypeEnum::VectorType(v) => byte.vec_type(v.get_size()).into(),
            _scalar => byte.into(),
        }
    }

    /// What was loaded, as it is in registers: any byte but 0 is true (L3).
    pub fn in_registers(&self, scalar: Scalar, value: BasicValueEnum<'c>) -> BasicValueEnum<'c> {
        if scalar != Scalar::Bool {
            return value;
        }
        match value {
            BasicValueEnum::VectorValue(v) => {
                let zero = v.get_type().const_zero();
                self.e.compare_lanes(IntPredicate::NE, v, zero).into()
            }
            scalar => {
                let v = scalar.into_int_value();
                self.e
                    .compare(IntPredicate::NE, v, v.get_type().const_zero())
                    .into()
            }
        }
    }

    /// What is to be stored, as it is in memory.
    pub fn in_memory(&self, scalar: Scalar, value: BasicValueEnum<'c>) -> BasicValueEnum<'c> {
        if scalar != Scalar::Bool {
            return value;
        }
        let ty = self.memory_type(scalar, value.get_type());
        let b = &self.e.builder;
        match (value, ty) {
            (BasicValueEnum::VectorValue(v), BasicTypeEnum::VectorType(ty)) => {
                b.build_int_z_extend(v, ty, "").expect(BUILT).into()
            }
            (v, ty) => {
                let (v, ty) = (v.into_int_value(), ty.into_int_type());
                b.build_int_z_extend(v, ty, "").expect(BUILT).into()
            }
        }
    }

    /// A program-scope constant as bytes of the object file.
    pub fn constant_array(&self, constant: &ConstantArray) -> PointerValue<'c> {
        let structs = &self.module.structs;
        let size = constant.element.extent(structs).map_or(1, |x| x.size_bytes);
        let locations = constant.element.locations(structs);
        let mut bytes = vec![0u8; (size * u64::from(constant.length)) as usize];
        let starts = (0..u64::from(constant.length)).flat_map(|element| {
            let at = element * size;
            locations.iter().map(move |(offset, s)| (at + offset, *s))
        });
        for ((at, scalar), value) in starts.zip(&constant.values) {
            let width = scalar.size_bytes() as usize;
            let at = at as usize;
            bytes[at..at + width].copy_from_slice(&value.bits.to_le_bytes()[..width]);
        }
        let data = self.e.context.const_string(&bytes, false);
        let global = self.e.module.add_global(data.get_type(), None, "constant");
        global.set_initializer(&data);
        global.set_constant(true);
        global.set_alignment(ALIGN as u32);
        global.set_linkage(inkwell::module::Linkage::Private);
        global.as_pointer_value()
    }

    /// Zeros to load where an index is out of bounds.
    fn zeros_in_memory(&self) -> PointerValue<'c> {
        const NAME: &str = "zeros";
        if let Some(global) = self.e.module.get_global(NAME) {
            return global.as_pointer_value();
        }
        let data = self.e.context.i64_type().const_zero();
        let global = self.e.module.add_global(data.get_type(), None, NAME);
        global.set_initializer(&data);
        global.set_constant(true);
        global.set_alignment(8);
        global.set_linkage(inkwell::module::Linkage::Private);
        global.as_pointer_value()
    }

    // ---- places ----

    fn extent_bytes(&self, element: &ElementType) -> u64 {
        let extent = element.extent(&self.module.structs);
        extent.map_or(1, |x| x.size_bytes)
    }

    /// Bytes that one scalar of a thread array takes for the lanes of a vector.
    fn lanes_bytes(&self, scalar: Scalar) -> u64 {
        const LARGEST: u64 = 8;
        (u64::from(self.shape.width) * scalar.size_bytes()).next_multiple_of(LARGEST)
    }

    /// Bytes of an element in memory, or of all lanes' of a vector in a thread array.
    fn size(&self, element: &ElementType, thread: bool) -> u64 {
        if !thread {
            return self.extent_bytes(element);
        }
        match element {
            ElementType::Value(ty) => {
                let scalar = ty.scalar().unwrap_or(Scalar::U32);
                u64::from(ty.component_count()) * self.lanes_bytes(scalar)
            }
            ElementType::Array(inner, length) => u64::from(*length) * self.size(inner, true),
            ElementType::Struct(id) => {
                let def = &self.module.structs[id.0 as usize];
                def.fields.iter().map(|(_, f)| self.size(f, true)).sum()
            }
        }
    }

    /// The bytes of a thread array of all lanes of a vector.
    pub fn thread_array_bytes(&self, array: u32) -> u64 {
        let alloc = &self.kernel.allocs[array as usize];
        (self.size(&alloc.element, true) * u64::from(alloc.length)).next_multiple_of(ALIGN)
    }

    /// Where a vector's own thread array is, from that of the first.
    fn thread_array_at(&self, array: u32, u: usize) -> u64 {
        if self.layout.arrays.contains_key(&array) {
            self.part_at(u)
        } else {
            u as u64 * self.thread_array_bytes(array)
        }
    }

    fn target(&mut self, place: &Place) -> Target<'c> {
        let object = self.objects[&place.memory].clone();
        let thread = object.thread.is_some();
        let index = self.get(place.index);
        let index_scalar = self.kernel.ty(place.index).scalar().unwrap_or(Scalar::U32);
        let structs = &self.module.structs;
        let mut element = object.element.clone();
        let element_bytes = self.size(&element, thread);
        let mut offset_bytes = 0;
        let mut dynamic = Vec::new();
        let mut never = false;
        // Bytes of one component of the value that was reached, once one was.
        let mut reached: Option<Type> = match &element {
            ElementType::Value(ty) => Some(*ty),
            ElementType::Array(..) | ElementType::Struct(_) => None,
        };
        let scalar_bytes = |m: &Self, s: Scalar| {
            if thread {
                m.lanes_bytes(s)
            } else {
                s.size_bytes()
            }
        };
        for step in &place.path {
            let (length, stride, next) = match (step, reached, &element) {
                (Step::Field(field), _, ElementType::Struct(id)) => {
                    let def = &structs[id.0 as usize];
                    offset_bytes += if thread {
                        let before = &def.fields[..*field as usize];
                        before.iter().map(|(_, f)| self.size(f, true)).sum()
                    } else {
                        def.field_offset(structs, *field as usize)
                    };
                    element = def.fields[*field as usize].1.clone();
                    if let ElementType::Value(ty) = element {
                        reached = Some(ty);
                    }
                    continue;
                }
                (Step::Index(_), None, ElementType::Array(inner, length)) => {
                    let inner = (**inner).clone();
                    (u64::from(*length), self.size(&inner, thread), Ok(inner))
                }
                (Step::Index(_), Some(Type::Vector(scalar, n)), _) => (
                    u64::from(n),
                    scalar_bytes(self, scalar),
                    Err(Type::Scalar(scalar)),
                ),
                (
                    Step::Index(_),
                    Some(Type::Matrix {
                        scalar,
                        columns,
                        rows,
                    }),
                    _,
                ) => (
                    u64::from(columns),
                    u64::from(rows) * scalar_bytes(self, scalar),
                    Err(Type::Vector(scalar, rows)),
                ),
                _no_such_step => unreachable!("the verifier checked the path"),
            };
            let Step::Index(value) = step else {
                unreachable!("fields were handled");
            };
            match next {
                Ok(inner) => {
                    if let ElementType::Value(ty) = inner {
                        reached = Some(ty);
                    }
                    element = inner;
                }
                Err(ty) => reached = Some(ty),
            }
            match self.constant_index(*value) {
                Some(k) if (0..i128::from(length)).contains(&k) => {
                    offset_bytes += k as u64 * stride;
                }
                Some(_) => never = true,
                None => dynamic.push(Dynamic {
                    index: self.get(*value),
                    scalar: self.kernel.ty(*value).scalar().unwrap_or(Scalar::U32),
                    length,
                    stride_bytes: stride,
                }),
            }
        }
        let ty = reached.expect("a path that leads to a value");
        let scalar = ty.scalar().unwrap_or(Scalar::U32);
        let (scale, components, component_elements) = match place.width {
            Width::One => (1, ty.component_count() as usize, 0),
            Width::Run(n) => (1, usize::from(n), 1),
            Width::Group(n) => (u64::from(n), usize::from(n), 1),
        };
        let component_bytes = if component_elements == 1 {
            0
        } else {
            scalar_bytes(self, scalar)
        };
        Target {
            object,
            index,
            index_scalar,
            scale,
            component_elements,
            component_bytes,
            components,
            scalar,
            element_bytes,
            offset_bytes,
            dynamic,
            never,
            by_active: false,
            bytes_ahead: None,
        }
    }

    /// An index of 64 bits, extended by its own sign; an unsigned one that no signed integer of 64 bits
    /// holds becomes the largest that one does, which is beyond every length, as are its followers.
    fn wide_index(
        &self,
        scalar: Scalar,
        value: BasicValueEnum<'c>,
        clamp: bool,
    ) -> BasicValueEnum<'c> {
        let e = &self.e;
        let b = &e.builder;
        let signed = scalar.is_signed_integer();
        let wide = e.context.i64_type();
        match value {
            BasicValueEnum::VectorValue(v) => {
                let lanes = v.get_type().get_size();
                let ty = wide.vec_type(lanes);
                if scalar.bits() == 64 {
                    if signed || !clamp {
                        return value;
                    }
                    let limit = e.splat(e.i64(1 << 62).into(), lanes);
                    let small = e.compare_lanes(IntPredicate::ULT, v, limit);
                    return e.select(small.into(), value, limit.into());
                }
                if signed {
                    b.build_int_s_extend(v, ty, "").expect(BUILT).into()
                } else {
                    b.build_int_z_extend(v, ty, "").expect(BUILT).into()
                }
            }
            scalar_value => {
                let v = scalar_value.into_int_value();
                if scalar.bits() == 64 {
                    if signed || !clamp {
                        return value;
                    }
                    return e.smaller(v, e.i64(1 << 62)).into();
                }
                if signed {
                    b.build_int_s_extend(v, wide, "").expect(BUILT).into()
                } else {
                    b.build_int_z_extend(v, wide, "").expect(BUILT).into()
                }
            }
        }
    }

    /// Whether an access is known to be in bounds here, and then for which lanes.
    pub fn proved(&self, inst: &Inst) -> Option<Proof> {
        if !self.checks {
            return Some(Proof::Active);
        }
        let fast = self.chunk.as_ref().is_some_and(|c| c.fast);
        self.proof(inst).filter(|_| fast)
    }

    /// Where part `u` accesses component `c`.
    fn spot(&self, t: &Target<'c>, u: usize, c: usize, proved: bool) -> Spot<'c> {
        let e = &self.e;
        let indices: Vec<Part<'c>> = std::iter::once(t.index.part(0, u))
            .chain(t.dynamic.iter().map(|d| d.index.part(0, u)))
            .collect();
        let extra = t.component_elements * c as u64;
        let bytes = t.offset_bytes + t.component_bytes * c as u64;
        // A group's index is multiplied, so it must be small enough; what is not is out of bounds.
        let clamp = t.scale > 1 || extra > 0;
        let same = indices.iter().all(|p| matches!(p, Part::Scalar(_)));
        if same {
            let Part::Scalar(index) = indices[0] else {
                unreachable!("a scalar");
            };
            let mut inside: Option<IntValue<'c>> = None;
            let and = |a: Option<IntValue<'c>>, b: IntValue<'c>| Some(a.map_or(b, |a| e.and(a, b)));
            let mut index = self
                .wide_index(t.index_scalar, index, clamp)
                .into_int_value();
            if t.scale > 1 {
                let limit = e.i64(1 << 56);
                inside = and(inside, e.compare(IntPredicate::ULT, index, limit));
                index = e.mul(index, e.i64(t.scale));
            }
            if extra > 0 {
                index = e.add(index, e.i64(extra));
            }
            inside = and(inside, e.compare(IntPredicate::ULT, index, t.object.length));
            let mut offset = e.add(e.mul(index, e.i64(t.element_bytes)), e.i64(bytes));
            for (d, part) in t.dynamic.iter().zip(&indices[1..]) {
                let Part::Scalar(s) = part else {
                    unreachable!("a scalar");
                };
                let index = self.wide_index(d.scalar, *s, false).into_int_value();
                inside = and(inside, e.compare(IntPredicate::ULT, index, e.i64(d.length)));
                offset = e.add(offset, e.mul(index, e.i64(d.stride_bytes)));
            }
            let pointer = e.byte_offset(t.object.base, offset);
            return Spot::Same(pointer, inside.filter(|_| !proved));
        }
        let width = self.shape.width;
        let splat = |n: u64| e.splat(e.i64(n).into(), width);
        let vector = |p: &Part<'c>| BasicValueEnum::from(e.vector(*p, width));
        let and =
            |a: Option<VectorValue<'c>>, b: VectorValue<'c>| Some(a.map_or(b, |a| e.and(a, b)));
        let mut inside = None;
        let mut index = self
            .wide_index(t.index_scalar, vector(&indices[0]), clamp)
            .into_vector_value();
        if t.scale > 1 {
            inside = and(
                inside,
                e.compare_lanes(IntPredicate::ULT, index, splat(1 << 56)),
            );
            index = e.mul(index, splat(t.scale));
        }
        if extra > 0 {
            index = e.add(index, splat(extra));
        }
        let length = e.splat(t.object.length.into(), width);
        inside = and(inside, e.compare_lanes(IntPredicate::ULT, index, length));
        let simple = t.dynamic.is_empty() && bytes == 0 && t.element_bytes == t.scalar.size_bytes();
        let pointers = if simple {
            let element = self.memory_type(t.scalar, e.scalar_type(t.scalar));
            e.pointers(element, t.object.base.into(), index)
        } else {
            let mut offset = e.mul(index, splat(t.element_bytes));
            if bytes > 0 {
                offset = e.add(offset, splat(bytes));
            }
            for (d, part) in t.dynamic.iter().zip(&indices[1..]) {
                let index = self
                    .wide_index(d.scalar, vector(part), false)
                    .into_vector_value();
                inside = and(
                    inside,
                    e.compare_lanes(IntPredicate::ULT, index, splat(d.length)),
                );
                offset = e.add(offset, e.mul(index, splat(d.stride_bytes)));
            }
            e.pointers(e.context.i8_type().into(), t.object.base.into(), offset)
        };
        Spot::Lanes(pointers, inside.filter(|_| !proved))
    }

    /// The lanes of part `u` as elements side by side, if they are.
    fn row(&self, t: &Target<'c>, u: usize, proved: bool) -> Option<Row<'c>> {
        let e = &self.e;
        let Part::Affine {
            base,
            stride: 1,
            exact,
            ..
        } = t.index.part(0, u)
        else {
            return None;
        };
        let plain = t.scale == 1
            && t.components == 1
            && t.dynamic.is_empty()
            && t.element_bytes == t.scalar.size_bytes();
        if !plain || t.never || (t.by_active && t.index_scalar.bits() < 32) {
            return None;
        }
        // The first lane may be off, and its index may have wrapped to just below zero; where only active
        // lanes are proved, their indices fit 31 bits, so the sign tells.
        let extend_as = match t.index_scalar {
            Scalar::U32 if t.by_active => Scalar::I32,
            other => other,
        };
        let element = self.memory_type(t.scalar, e.scalar_type(t.scalar));
        let offset = |pointer: PointerValue<'c>, index: IntValue<'c>| {
            // SAFETY: building the instruction touches no memory, and without `inbounds` no pointer is
            // poison.
            let moved = unsafe { e.builder.build_gep(element, pointer, &[index], "") };
            moved.expect(BUILT)
        };
        let first = u - u % self.shape.along as usize;
        // Where indices are proved not to wrap, vectors side by side are a constant apart.
        if proved
            && first < u
            && let Part::Affine { base: of_first, .. } = t.index.part(0, first)
            && let Some(by) = self.difference(base, of_first)
        {
            let of_first = self.wide_index(extend_as, of_first.into(), false);
            let pointer = offset(t.object.base, of_first.into_int_value());
            return Some(Row {
                pointer: offset(pointer, e.i64(by as u64)),
                inside: None,
                base,
                exact,
            });
        }
        let base = self
            .wide_index(extend_as, base.into(), false)
            .into_int_value();
        let pointer = offset(t.object.base, base);
        let inside = (!proved).then(|| {
            // The last lane's index must not have wrapped either.
            let bits = t.index_scalar.bits() - u32::from(t.index_scalar.is_signed_integer());
            let length = if bits >= 63 {
                t.object.length
            } else {
                e.smaller(t.object.length, e.i64(1 << bits))
            };
            let lanes = u64::from(self.shape.width) - 1;
            let whole = e.compare(IntPredicate::UGT, length, e.i64(lanes));
            let bound = e.sub(length, e.i64(lanes));
            let low = e.compare(IntPredicate::ULT, base, bound);
            e.and(whole, low)
        });
        Some(Row {
            pointer,
            inside,
            base,
            exact,
        })
    }

    /// The lanes of a row that are in bounds.
    fn row_lanes(&self, t: &Target<'c>, row: &Row<'c>) -> VectorValue<'c> {
        let e = &self.e;
        let width = self.shape.width;
        let indices = e.add(e.splat(row.base.into(), width), e.ramp(64, 1, width));
        let length = e.splat(t.object.length.into(), width);
        e.compare_lanes(IntPredicate::ULT, indices, length)
    }

    /// The components of part `u`'s lanes as elements side by side, if they are.
    fn dense(
        &self,
        t: &Target<'c>,
        u: usize,
        lanes: Option<VectorValue<'c>>,
        proved: bool,
    ) -> Option<Dense<'c>> {
        let e = &self.e;
        let Part::Affine { base, stride, .. } = t.index.part(0, u) else {
            return None;
        };
        let stride = u64::try_from(stride).ok()?;
        let components = t.components as u64;
        let component_bytes = t.scalar.size_bytes();
        let is_vector = t.component_elements == 0 && t.component_bytes == component_bytes;
        let is_run = t.component_elements == 1 && t.element_bytes == component_bytes;
        let step = stride.checked_mul(t.scale)?.checked_mul(t.element_bytes)?;
        let plain = (2..=4).contains(&components)
            && t.dynamic.is_empty()
            && t.offset_bytes == 0
            && !t.never;
        if !plain || !(is_vector || is_run) || step != components * component_bytes {
            return None;
        }
        let base = self
            .wide_index(t.index_scalar, base.into(), false)
            .into_int_value();
        let offset = e.mul(base, e.i64(t.scale * t.element_bytes));
        let pointer = e.byte_offset(t.object.base, offset);
        let inside = (!proved).then(|| {
            // No lane's index may have wrapped, which the last one's tells.
            let bits = t.index_scalar.bits() - u32::from(t.index_scalar.is_signed_integer());
            let groups = e.divide(t.object.length, e.i64(t.scale));
            let groups = e.smaller(groups, e.i64(1 << bits.min(62)));
            let within = t.component_elements * (components - 1) * u64::from(t.scale == 1);
            let last = e.i64((u64::from(self.shape.width) - 1) * stride + within);
            let enough = e.compare(IntPredicate::UGT, groups, last);
            let low = e.compare(IntPredicate::ULT, base, e.sub(groups, last));
            e.and(enough, low)
        });
        let on = lanes.map(|lanes| {
            let bits = e.mask_bits(lanes);
            e.compare(IntPredicate::EQ, bits, bits.get_type().const_all_ones())
        });
        let whole = match (inside, on) {
            (Some(a), Some(b)) => Some(e.and(a, b)),
            (one, None) | (None, one) => one,
        };
        Some(Dense { pointer, whole })
    }

    /// Lanes of one or two vectors, those of the second numbered after those of the first.
    fn lanes_of(
        &self,
        first: VectorValue<'c>,
        second: Option<VectorValue<'c>>,
        lanes: impl Iterator<Item = u32>,
    ) -> VectorValue<'c> {
        let second = second.unwrap_or(first.get_type().get_poison());
        let order: Vec<_> = lanes.map(|lane| self.e.i32(lane)).collect();
        let order = VectorType::const_vector(&order);
        let picked = self
            .e
            .builder
            .build_shuffle_vector(first, second, order, "");
        picked.expect(BUILT)
    }

    /// Reads the components of part `u`'s lanes, which lie side by side: a vector for each.
    fn load_dense(
        &self,
        t: &Target<'c>,
        u: usize,
        dense: &Dense<'c>,
        mask: &Mask<'c>,
        proved: bool,
    ) -> Vec<Part<'c>> {
        let e = &self.e;
        let (width, count) = (self.shape.width, t.components as u32);
        let read = || -> Vec<VectorValue<'c>> {
            let ty = self.memory_type(t.scalar, e.vector_type(t.scalar, width * count).into());
            let all = e.load(ty, dense.pointer, t.scalar.size_bytes() as u32);
            self.mark_constant(&t.object, all);
            let all = self.settled(&t.object, t.scalar, all).into_vector_value();
            let component = |c| self.lanes_of(all, None, (0..width).map(|lane| lane * count + c));
            (0..count).map(component).collect()
        };
        let Some(whole) = dense.whole else {
            return read().into_iter().map(Part::Vector).collect();
        };
        let (plain, careful, join) = (e.block("dense"), e.block("sparse"), e.block("loaded"));
        e.branch_if(whole, plain, careful);
        e.go(plain);
        let found = read();
        let plain = e.here();
        e.branch(join);
        e.go(careful);
        let rest: Vec<_> = (0..t.components)
            .map(|c| e.vector(self.load_part(t, u, c, mask, proved), width))
            .collect();
        let careful = e.here();
        e.branch(join);
        e.go(join);
        let joined = found.iter().zip(&rest).map(|(found, rest)| {
            let phi = e.builder.build_phi(found.get_type(), "").expect(BUILT);
            phi.add_incoming(&[(found, plain), (rest, careful)]);
            Part::Vector(phi.as_basic_value().into_vector_value())
        });
        joined.collect()
    }

    /// Writes the components of part `u`'s lanes, which lie side by side.
    fn store_dense(
        &self,
        t: &Target<'c>,
        u: usize,
        dense: &Dense<'c>,
        value: &Parts<'c>,
        mask: &Mask<'c>,
        proved: bool,
    ) {
        let e = &self.e;
        let (width, count) = (self.shape.width, t.components as u32);
        let write = || {
            let component = |c: u32| {
                let vector = e.vector(value.part(c as usize, u), width);
                self.in_memory(t.scalar, vector.into()).into_vector_value()
            };
            // Component after component, then lane after lane.
            let pair = |c: u32| {
                let second = (c + 1 < count).then(|| component(c + 1));
                self.lanes_of(component(c), second, 0..2 * width)
            };
            let second = (count > 2).then(|| pair(2));
            let order = (0..width).flat_map(|lane| (0..count).map(move |c| c * width + lane));
            let all = self.lanes_of(pair(0), second, order);
            e.store(all.into(), dense.pointer, t.scalar.size_bytes() as u32);
        };
        let Some(whole) = dense.whole else {
            write();
            return;
        };
        let (plain, careful, join) = (e.block("dense"), e.block("sparse"), e.block("stored"));
        e.branch_if(whole, plain, careful);
        e.go(plain);
        write();
        e.branch(join);
        e.go(careful);
        for c in 0..t.components {
            self.store_part(t, u, c, value.part(c, u), mask, proved);
        }
        e.branch(join);
        e.go(join);
    }

    // ---- accesses of many lanes ----

    /// A vector from memory; lanes that are off get 0.
    fn masked_load(
        &self,
        scalar: Scalar,
        pointer: PointerValue<'c>,
        mask: VectorValue<'c>,
    ) -> VectorValue<'c> {
        let e = &self.e;
        let width = self.shape.width;
        let ty = self.memory_type(scalar, e.vector_type(scalar, width).into());
        let align = scalar.size_bytes() as u32;
        let value = e.masked_load(pointer, align, mask, ty.const_zero());
        value.into_vector_value()
    }

    fn gather(
        &self,
        scalar: Scalar,
        pointers: VectorValue<'c>,
        mask: Option<VectorValue<'c>>,
    ) -> VectorValue<'c> {
        let e = &self.e;
        let width = self.shape.width;
        let ty = self.memory_type(scalar, e.vector_type(scalar, width).into());
        let align = e.i32(scalar.size_bytes() as u32);
        let all = || self.constant_mask(true)[0];
        let mask = mask.unwrap_or_else(all);
        let args = [pointers.into(), align.into(), mask.into(), ty.const_zero()];
        let overloads = [ty, pointers.get_type().into()];
        let value = e.masked("llvm.masked.gather", &overloads, &args, 1);
        value.expect("a value").into_vector_value()
    }

    fn scatter(
        &self,
        scalar: Scalar,
        value: VectorValue<'c>,
        pointers: VectorValue<'c>,
        mask: Option<VectorValue<'c>>,
    ) {
        let e = &self.e;
        let align = e.i32(scalar.size_bytes() as u32);
        let mask = mask.unwrap_or_else(|| self.constant_mask(true)[0]);
        let args = [value.into(), pointers.into(), align.into(), mask.into()];
        let overloads = [value.get_type().into(), pointers.get_type().into()];
        e.masked("llvm.masked.scatter", &overloads, &args, 2);
    }

    fn and_mask(
        &self,
        a: Option<VectorValue<'c>>,
        b: Option<VectorValue<'c>>,
    ) -> Option<VectorValue<'c>> {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.e.and(a, b)),
            (one, None) | (None, one) => one,
        }
    }

    /// What was loaded by lanes, as one value whatever raced.
    fn settled(
        &self,
        object: &Object<'c>,
        scalar: Scalar,
        value: BasicValueEnum<'c>,
    ) -> BasicValueEnum<'c> {
        let races = object.shared && !object.constant;
        let value = if races { self.e.freeze(value) } else { value };
        self.in_registers(scalar, value)
    }

    // ---- load ----

    /// Reads a place.
    pub fn load(&mut self, inst: &Inst, place: &Place, mask: &Mask<'c>) -> Parts<'c> {
        let mut t = self.target(place);
        if t.never {
            let zero = self.e.scalar_type(t.scalar).const_zero();
            return Parts::uniform(vec![zero; t.components]);
        }
        if let Some(array) = t.object.thread {
            return self.load_thread(array, &t);
        }
        let proof = self.proved(inst);
        let proved = proof.is_some();
        t.by_active = proof == Some(Proof::Active);
        // Lanes that are off may load as well where they are in bounds too.
        let mask = if proof == Some(Proof::Lanes) {
            &Mask::All
        } else {
            mask
        };
        let same = |p: &Parts<'c>| p.is_uniform();
        let whole = same(&t.index) && t.dynamic.iter().all(|d| same(&d.index));
        let count = if whole {
            1
        } else {
            self.shape.parts() as usize
        };
        if let Some(parts) = self.load_all_dense(&t, mask, proved) {
            return parts;
        }
        t.bytes_ahead = self.bytes_ahead(inst, mask);
        let mut list: Vec<Part<'c>> = Vec::new();
        for c in 0..t.components {
            let mut done: Vec<Vec<Part<'c>>> = Vec::new();
            for u in 0..count {
                let key: Vec<Part<'c>> = std::iter::once(t.index.part(0, u))
                    .chain(t.dynamic.iter().map(|d| d.index.part(0, u)))
                    .collect();
                let seen = done.iter().position(|k| *k == key);
                // Vectors at one place load once, unless their masks differ.
                let one = matches!(mask, Mask::All);
                let part = match seen {
                    Some(same) if one => list[c * count + same],
                    Some(_) | None => self.load_part(&t, u, c, mask, proved),
                };
                done.push(key);
                list.push(part);
            }
        }
        Parts::of(list, count)
    }

    /// Reads components that lie side by side in each part.
    fn load_all_dense(&self, t: &Target<'c>, mask: &Mask<'c>, proved: bool) -> Option<Parts<'c>> {
        let count = self.shape.parts() as usize;
        let dense: Option<Vec<Dense<'c>>> = (0..count)
            .map(|u| self.dense(t, u, mask.part(u), proved))
            .collect();
        let parts: Vec<Vec<Part<'c>>> = (dense?.iter().enumerate())
            .map(|(u, dense)| self.load_dense(t, u, dense, mask, proved))
            .collect();
        let component = |c: usize| parts.iter().map(move |part| part[c]);
        let list = (0..t.components).flat_map(component).collect();
        Some(Parts::of(list, count))
    }

    fn load_part(
        &self,
        t: &Target<'c>,
        u: usize,
        c: usize,
        mask: &Mask<'c>,
        proved: bool,
    ) -> Part<'c> {
        let e = &self.e;
        let width = self.shape.width;
        let lanes = mask.part(u);
        if let Some(row) = self.row(t, u, proved) {
            let ty = self.memory_type(t.scalar, e.vector_type(t.scalar, width).into());
            let align = t.scalar.size_bytes() as u32;
            let Some(inside) = row.inside else {
                let value = match lanes {
                    None => {
                        if let Some(bytes) = t.bytes_ahead {
                            self.ask_ahead(row.pointer, bytes);
                        }
                        let value = e.load(ty, row.pointer, align);
                        self.mark_constant(&t.object, value);
                        value
                    }
                    Some(lanes) => self.masked_load(t.scalar, row.pointer, lanes).into(),
                };
                let value = self.settled(&t.object, t.scalar, value);
                return Part::Vector(value.into_vector_value());
            };
            let (plain, careful, join) = (e.block("row"), e.block("edge"), e.block("loaded"));
            e.branch_if(inside, plain, careful);
            e.go(plain);
            // All lanes lie in bounds, those that are off too.
            let all = e.load(ty, row.pointer, align);
            e.branch(join);
            e.go(careful);
            let some = if row.exact {
                let own = self.and_mask(lanes, Some(self.row_lanes(t, &row)));
                self.masked_load(t.scalar, row.pointer, own.expect("a mask"))
            } else {
                let Spot::Lanes(pointers, inside) = self.spot(t, u, c, false) else {
                    unreachable!("lanes differ");
                };
                self.gather(t.scalar, pointers, self.and_mask(lanes, inside))
            };
            let end = e.here();
            e.branch(join);
            e.go(join);
            let phi = e.builder.build_phi(ty, "").expect(BUILT);
            phi.add_incoming(&[(&all, plain), (&some, end)]);
            let value = self.settled(&t.object, t.scalar, phi.as_basic_value());
            return Part::Vector(value.into_vector_value());
        }
        match self.spot(t, u, c, proved) {
            Spot::Same(pointer, inside) => {
                Part::Scalar(self.load_one(&t.object, t.scalar, pointer, inside))
            }
            Spot::Lanes(pointers, inside) => {
                let mask = self.and_mask(lanes, inside);
                let value = self.gather(t.scalar, pointers, mask);
                let value = self.settled(&t.object, t.scalar, value.into());
                Part::Vector(value.into_vector_value())
            }
        }
    }

    /// One scalar for all lanes of a vector.
    fn load_one(
        &self,
        object: &Object<'c>,
        scalar: Scalar,
        pointer: PointerValue<'c>,
        inside: Option<IntValue<'c>>,
    ) -> BasicValueEnum<'c> {
        let e = &self.e;
        let pointer = match inside {
            None => pointer,
            Some(inside) => {
                let zeros = self.zeros_in_memory();
                let picked = e.builder.build_select(inside, pointer, zeros, "");
                picked.expect(BUILT).into_pointer_value()
            }
        };
        let ty = self.memory_type(scalar, e.scalar_type(scalar));
        let value = e.load(ty, pointer, scalar.size_bytes() as u32);
        if object.shared && !object.constant {
            if let Some(inst) = value.as_instruction_value() {
                // One value whatever races: `unordered` is no dearer than a plain load.
                let half = matches!(scalar, Scalar::F16 | Scalar::BF16);
                if half {
                    return self.in_registers(scalar, e.freeze(value));
                }
                inst.set_atomic_ordering(AtomicOrdering::Unordered)
                    .expect("a load");
            }
        } else if inside.is_none() {
            self.mark_constant(object, value);
        }
        self.in_registers(scalar, value)
    }

    /// Tells LLVM that memory does not change while the kernel runs.
    fn mark_constant(&self, object: &Object<'c>, value: BasicValueEnum<'c>) {
        if object.constant
            && let Some(inst) = value.as_instruction_value()
        {
            let kind = self.e.context.get_kind_id("invariant.load");
            let empty = self.e.context.metadata_node(&[]);
            inst.set_metadata(empty, kind).expect("a load");
        }
    }

    // ---- store ----

    /// Writes a place.
    pub fn store(&mut self, inst: &Inst, place: &Place, value: &Parts<'c>, mask: &Mask<'c>) {
        let mut t = self.target(place);
        if t.never {
            return;
        }
        if let Some(array) = t.object.thread {
            self.store_thread(array, &t, value, mask);
            return;
        }
        let proof = self.proved(inst);
        let proved = proof.is_some();
        t.by_active = proof == Some(Proof::Active);
        let whole = t.index.is_uniform() && t.dynamic.iter().all(|d| d.index.is_uniform());
        if whole {
            for c in 0..t.components {
                self.store_whole(&t, c, value, mask, proved);
            }
            return;
        }
        for u in 0..self.shape.parts() as usize {
            if let Some(dense) = self.dense(&t, u, mask.part(u), proved) {
                self.store_dense(&t, u, &dense, value, mask, proved);
                continue;
            }
            for c in 0..t.components {
                self.store_part(&t, u, c, value.part(c, u), mask, proved);
            }
        }
    }

    /// All lanes of the chunk write one location: the last one's value stays.
    fn store_whole(
        &self,
        t: &Target<'c>,
        c: usize,
        value: &Parts<'c>,
        mask: &Mask<'c>,
        proved: bool,
    ) {
        let e = &self.e;
        if value.is_uniform() {
            let Spot::Same(pointer, inside) = self.spot(t, 0, c, proved) else {
                unreachable!("one place");
            };
            let Part::Scalar(scalar) = value.part(c, 0) else {
                unreachable!("one value");
            };
            // A lane is on: the mask is not empty where there is an effect. In a short side of an `if`
            // there are no stores.
            let any = match mask {
                Mask::All => None,
                Mask::Some(lanes) => Some(e.any(lanes)),
            };
            let inside = match (inside, any) {
                (Some(a), Some(b)) => Some(e.and(a, b)),
                (one, None) | (None, one) => one,
            };
            self.store_one(t, scalar, pointer, inside);
            return;
        }
        for u in 0..self.shape.parts() as usize {
            self.store_part(t, u, c, value.part(c, u), mask, proved);
        }
    }

    fn store_one(
        &self,
        t: &Target<'c>,
        value: BasicValueEnum<'c>,
        pointer: PointerValue<'c>,
        inside: Option<IntValue<'c>>,
    ) {
        let e = &self.e;
        let stored = self.in_memory(t.scalar, value);
        let align = t.scalar.size_bytes() as u32;
        match inside {
            None => e.store(stored, pointer, align),
            Some(inside) => {
                let (yes, join) = (e.block("store"), e.block("stored"));
                e.branch_if(inside, yes, join);
                e.go(yes);
                e.store(stored, pointer, align);
                e.branch(join);
                e.go(join);
            }
        }
    }

    fn store_part(
        &self,
        t: &Target<'c>,
        u: usize,
        c: usize,
        value: Part<'c>,
        mask: &Mask<'c>,
        proved: bool,
    ) {
        let e = &self.e;
        let width = self.shape.width;
        let lanes = mask.part(u);
        let vector = || self.in_memory(t.scalar, e.vector(value, width).into());
        let align = t.scalar.size_bytes() as u32;
        if let Some(row) = self.row(t, u, proved) {
            let stored = vector();
            let plain = |lanes: Option<VectorValue<'c>>| match lanes {
                None => e.store(stored, row.pointer, align),
                Some(lanes) => {
                    let args = [
                        stored,
                        row.pointer.into(),
                        e.i32(align).into(),
                        lanes.into(),
                    ];
                    let overloads = [stored.get_type(), e.pointer_type().into()];
                    e.masked("llvm.masked.store", &overloads, &args, 2);
                }
            };
            let Some(inside) = row.inside else {
                plain(lanes);
                return;
            };
            let (all, careful, join) = (e.block("row"), e.block("edge"), e.block("stored"));
            e.branch_if(inside, all, careful);
            e.go(all);
            plain(lanes);
            e.branch(join);
            e.go(careful);
            if row.exact {
                plain(self.and_mask(lanes, Some(self.row_lanes(t, &row))));
            } else {
                let Spot::Lanes(pointers, inside) = self.spot(t, u, c, false) else {
                    unreachable!("lanes differ");
                };
                let mask = self.and_mask(lanes, inside);
                self.scatter(t.scalar, stored.into_vector_value(), pointers, mask);
            }
            e.branch(join);
            e.go(join);
            return;
        }
        match self.spot(t, u, c, proved) {
            Spot::Same(pointer, inside) => match (value, lanes) {
                (Part::Scalar(scalar), None) => self.store_one(t, scalar, pointer, inside),
                (Part::Scalar(scalar), Some(lanes)) => {
                    let any = e.any(&[lanes]);
                    let inside = inside.map_or(any, |inside| e.and(inside, any));
                    self.store_one(t, scalar, pointer, Some(inside));
                }
                (value, lanes) => {
                    // The last lane that is on writes last.
                    let pointers = e.splat(pointer.into(), width);
                    let inside = inside.map(|i| e.splat(i.into(), width));
                    let stored = self.in_memory(t.scalar, e.vector(value, width).into());
                    let mask = self.and_mask(lanes, inside);
                    self.scatter(t.scalar, stored.into_vector_value(), pointers, mask);
                }
            },
            Spot::Lanes(pointers, inside) => {
                let mask = self.and_mask(lanes, inside);
                self.scatter(t.scalar, vector().into_vector_value(), pointers, mask);
            }
        }
    }

    // ---- copy ----

    /// Makes a load where its value is stored in another memory object: vector after vector, so that no
    /// more than one is in a register. The objects do not overlap (S3).
    pub fn copy(&mut self, load: &Inst, store: &Inst, mask: &Mask<'c>) {
        let (InstKind::Load(from), InstKind::Store { place, .. }) = (&load.kind, &store.kind)
        else {
            unreachable!("a load and a store");
        };
        let (mut source, mut target) = (self.target(from), self.target(place));
        let simple = |t: &Target<'c>| {
            let varies = !t.index.is_uniform();
            let plain = t.components == 1 && t.dynamic.is_empty() && !t.never;
            varies && plain && t.object.thread.is_none()
        };
        let varies = self.classes().of(load.results[0]) == Class::Varying;
        if !varies || !simple(&source) || !simple(&target) {
            let parts = self.load(load, from, mask);
            self.define(load.results[0], parts, mask);
            let parts = self.get(load.results[0]);
            self.store(store, place, &parts, mask);
            return;
        }
        let proofs = [load, store].map(|inst| self.proved(inst));
        let proved = proofs.map(|proof| proof.is_some());
        source.by_active = proofs[0] == Some(Proof::Active);
        target.by_active = proofs[1] == Some(Proof::Active);
        source.bytes_ahead = self.bytes_ahead(load, mask);
        let whole = Mask::All;
        let read = if proofs[0] == Some(Proof::Lanes) {
            &whole
        } else {
            mask
        };
        let mut list: Vec<Part<'c>> = Vec::new();
        for u in 0..self.shape.parts() as usize {
            let index = source.index.part(0, u);
            let seen = (0..u).find(|v| source.index.part(0, *v) == index);
            let part = match seen {
                Some(same) if *read == Mask::All => list[same],
                Some(_) | None => self.load_part(&source, u, 0, read, proved[0]),
            };
            list.push(part);
            self.store_part(&target, u, 0, part, mask, proved[1]);
        }
    }

    // ---- thread arrays ----

    /// Begins the life of an array: zeros (I3).
    pub fn begin_array(&mut self, array: u32) {
        let Some(chunk) = &self.chunk else {
            return;
        };
        if self.objects[&Memory::Alloc(array)].thread.is_none() {
            return;
        }
        let _ = chunk;
        let base = self.array_base(array);
        let own = self.thread_array_bytes(array);
        let zero = self.e.context.i8_type().const_zero();
        let fill = |at: u64, bytes: u64| {
            let pointer = self.e.byte_offset(base, self.e.i64(at));
            self.e
                .builder
                .build_memset(pointer, ALIGN as u32, zero, self.e.i64(bytes))
                .expect(BUILT);
        };
        let parts = self.shape.parts() as usize;
        if self.layout.arrays.contains_key(&array) {
            (0..parts).for_each(|u| fill(self.thread_array_at(array, u), own));
        } else {
            fill(0, parts as u64 * own);
        }
    }

    /// Where a thread array begins, for all lanes of the chunk.
    fn array_base(&mut self, array: u32) -> PointerValue<'c> {
        if let Some(offset) = self.layout.arrays.get(&array) {
            let memory = self.chunk_ref().memory;
            return self.e.byte_offset(memory, self.e.i64(*offset));
        }
        if let Some(base) = self.chunk_ref().arrays.get(&array) {
            return *base;
        }
        let bytes = self.thread_array_bytes(array) as u32 * self.shape.parts();
        let ty = self.e.context.i8_type().array_type(bytes);
        let base = self.alloca(ty.into(), ALIGN as u32);
        self.chunk().arrays.insert(array, base);
        base
    }

    /// The address of part `u` of component `c`, and which lanes are in bounds.
    fn thread_spot(
        &self,
        base: PointerValue<'c>,
        array: u32,
        t: &Target<'c>,
        u: usize,
        c: usize,
    ) -> Spot<'c> {
        let e = &self.e;
        let spot = self.spot(
            &Target {
                object: Object {
                    base,
                    ..t.object.clone()
                },
                index: t.index.clone(),
                dynamic: t
                    .dynamic
                    .iter()
                    .map(|d| Dynamic {
                        index: d.index.clone(),
                        ..*d
                    })
                    .collect(),
                ..*t
            },
            u,
            c,
            false,
        );
        let within = self.thread_array_at(array, u);
        match spot {
            Spot::Same(pointer, inside) => {
                Spot::Same(e.byte_offset(pointer, e.i64(within)), inside)
            }
            Spot::Lanes(pointers, inside) => {
                let width = self.shape.width;
                let lanes = e.ramp(64, t.scalar.size_bytes() as i64, width);
                let lanes = e.add(lanes, e.splat(e.i64(within).into(), width));
                // A vector of pointers and a vector of offsets.
                let moved = e.pointers(e.context.i8_type().into(), pointers.into(), lanes);
                Spot::Lanes(moved, inside)
            }
        }
    }

    fn load_thread(&mut self, array: u32, t: &Target<'c>) -> Parts<'c> {
        let base = self.array_base(array);
        let e = &self.e;
        let width = self.shape.width;
        let count = self.shape.parts() as usize;
        let ty = self.memory_type(t.scalar, e.vector_type(t.scalar, width).into());
        let align = t.scalar.size_bytes() as u32;
        let mut list = Vec::new();
        for c in 0..t.components {
            for u in 0..count {
                let value = match self.thread_spot(base, array, t, u, c) {
                    Spot::Same(pointer, inside) => {
                        // Whatever the index, what is loaded is the array's own.
                        let known = inside.and_then(|i| i.get_zero_extended_constant());
                        if known == Some(1) {
                            e.load(ty, pointer, align)
                        } else {
                            let inside = inside.expect("arrays are checked");
                            let picked = e.builder.build_select(inside, pointer, base, "");
                            let pointer = picked.expect(BUILT).into_pointer_value();
                            let value = e.load(ty, pointer, align);
                            e.select(inside.into(), value, ty.const_zero())
                        }
                    }
                    Spot::Lanes(pointers, inside) => self.gather(t.scalar, pointers, inside).into(),
                };
                let value = self.in_registers(t.scalar, value);
                list.push(Part::Vector(value.into_vector_value()));
            }
        }
        Parts::of(list, count)
    }

    fn store_thread(&mut self, array: u32, t: &Target<'c>, value: &Parts<'c>, mask: &Mask<'c>) {
        let base = self.array_base(array);
        let e = &self.e;
        let width = self.shape.width;
        let ty = self.memory_type(t.scalar, e.vector_type(t.scalar, width).into());
        let align = t.scalar.size_bytes() as u32;
        for c in 0..t.components {
            for u in 0..self.shape.parts() as usize {
                let vector = e.vector(value.part(c, u), width);
                let stored = self.in_memory(t.scalar, vector.into());
                match self.thread_spot(base, array, t, u, c) {
                    Spot::Same(pointer, inside) => {
                        let inside = inside.expect("arrays are checked");
                        let write = || {
                            // The lanes are the threads' own, so a lane that is off may be written
                            // with what it held.
                            let stored = match mask.part(u) {
                                None => stored,
                                Some(lanes) => {
                                    let old = e.load(ty, pointer, align);
                                    e.select(lanes.into(), stored, old)
                                }
                            };
                            e.store(stored, pointer, align);
                        };
                        if inside.get_zero_extended_constant() == Some(1) {
                            write();
                        } else {
                            let (yes, join) = (e.block("store"), e.block("stored"));
                            e.branch_if(inside, yes, join);
                            e.go(yes);
                            write();
                            e.branch(join);
                            e.go(join);
                        }
                    }
                    Spot::Lanes(pointers, inside) => {
                        let mask = self.and_mask(mask.part(u), inside);
                        self.scatter(t.scalar, stored.into_vector_value(), pointers, mask);
                    }
                }
            }
        }
    }

    // ---- atomics ----

    /// An atomic operation, lane after lane.
    pub fn atomic(&mut self, inst: &Inst, mask: &Mask<'c>) {
        let InstKind::Atomic {
            op,
            place,
            args,
            order,
            ..
        } = &inst.kind
        else {
            unreachable!("an atomic");
        };
        let t = self.target(place);
        let args: Vec<Parts<'c>> = args.iter().map(|v| self.get(*v)).collect();
        let proved = self.proved(inst).is_some();
        let what = Atomic {
            op: *op,
            scalar: t.scalar,
            order: *order,
            own: !t.object.shared,
            used: inst.results.iter().any(|r| self.plan.is_used(*r)),
        };
        let e = &self.e;
        let width = self.shape.width;
        let count = self.shape.parts() as usize;
        let null = e.pointer_type().vec_type(width).const_zero();
        let (mut olds, mut exchanged) = (Vec::new(), Vec::new());
        for u in 0..count {
            if !what.used && self.atomic_of_full_vector(&t, what, u, mask, proved, &args) {
                continue;
            }
            let pointers = if t.never {
                null
            } else {
                let (pointers, inside) = match self.spot(&t, u, 0, proved) {
                    Spot::Same(pointer, inside) => (
                        e.splat(pointer.into(), width),
                        inside.map(|i| e.splat(i.into(), width)),
                    ),
                    Spot::Lanes(pointers, inside) => (pointers, inside),
                };
                match self.and_mask(mask.part(u), inside) {
                    None => pointers,
                    Some(on) => e
                        .select(on.into(), pointers.into(), null.into())
                        .into_vector_value(),
                }
            };
            let operands: Vec<VectorValue<'c>> =
                args.iter().map(|a| e.vector(a.part(0, u), width)).collect();
            let (old, done) = atomic(e, what, pointers, &operands);
            olds.push(Part::Vector(old));
            exchanged.extend(done.map(Part::Vector));
        }
        for (result, parts) in inst.results.iter().zip([olds, exchanged]) {
            if what.used {
                self.define(*result, Parts::of(parts, count), mask);
            } else {
                let zeros = self.zeros(self.kernel.ty(*result));
                self.define(*result, zeros, mask);
            }
        }
    }

    /// Makes an atomic of a vector whose lanes are all on and in bounds, and whose results nobody uses,
    /// without looking for lanes that are off; says whether it did.
    fn atomic_of_full_vector(
        &self,
        t: &Target<'c>,
        what: Atomic,
        u: usize,
        mask: &Mask<'c>,
        proved: bool,
        args: &[Parts<'c>],
    ) -> bool {
        let e = &self.e;
        let simple = t.scale == 1 && t.dynamic.is_empty() && !t.never;
        if !simple || !proved || mask.part(u).is_some() {
            return false;
        }
        let width = self.shape.width;
        let args: Vec<VectorValue<'c>> =
            args.iter().map(|a| e.vector(a.part(0, u), width)).collect();
        let at = |index: IntValue<'c>| {
            let bytes = e.mul(index, e.i64(t.element_bytes));
            e.byte_offset(t.object.base, e.add(bytes, e.i64(t.offset_bytes)))
        };
        let address = |index: IntValue<'c>| {
            let index = self.wide_index(t.index_scalar, index.into(), false);
            at(index.into_int_value())
        };
        let pointers: Vec<PointerValue<'c>> = match t.index.part(0, u) {
            Part::Scalar(index) => {
                return atomic_of_all(e, what, address(index.into_int_value()), &args);
            }
            Part::Affine { base, stride, .. } => {
                let ty = base.get_type();
                let lane = |l: u32| ty.const_int((i64::from(l) * stride) as u64, true);
                (0..width).map(|l| address(e.add(base, lane(l)))).collect()
            }
            // Others may meet there: of one location they make one.
            Part::Vector(_) if !what.own => return false,
            Part::Vector(indices) => {
                let indices = self.wide_lanes(indices, t.index_scalar);
                indices.into_iter().map(at).collect()
            }
        };
        atomic_of_each(e, what, &pointers, &args);
        true
    }

    /// The lanes of a vector of integers, in 64 bits, cut from words: fewer moves between registers.
    fn wide_lanes(&self, vector: VectorValue<'c>, scalar: Scalar) -> Vec<IntValue<'c>> {
        let e = &self.e;
        let b = &e.builder;
        let lanes = vector.get_type().get_size();
        let bits = scalar.bits();
        let lane = |v: VectorValue<'c>, l: u32| {
            let lane = b.build_extract_element(v, e.i32(l), "").expect(BUILT);
            lane.into_int_value()
        };
        let total = bits * lanes;
        if !total.is_multiple_of(64) {
            let wide = |l| self.wide_index(scalar, lane(vector, l).into(), false);
            return (0..lanes).map(|l| wide(l).into_int_value()).collect();
        }
        let words = e.context.i64_type().vec_type(total / 64);
        let words = b.build_bit_cast(vector, words, "").expect(BUILT);
        let words = words.into_vector_value();
        let each = 64 / bits;
        (0..lanes)
            .map(|l| {
                let word = lane(words, l / each);
                let below = l % each * bits;
                let shift = |n: u32| e.i64(n.into());
                let up = b.build_left_shift(word, shift(64 - bits - below), "");
                let signed = scalar.is_signed_integer();
                let down = b.build_right_shift(up.expect(BUILT), shift(64 - bits), signed, "");
                down.expect(BUILT)
            })
            .collect()
    }
}
