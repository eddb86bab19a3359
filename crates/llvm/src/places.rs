//! Where lanes access memory, and whether that is in bounds (B1 to B4).
//!
//! A place becomes a [`Target`] once for a chunk; of each vector of it, [`FunctionLowering::row`] tells elements side
//! by side, [`FunctionLowering::dense`] components side by side, and [`FunctionLowering::spot`] any other addresses.
//!
//! An index is compared as an unsigned integer of 64 bits after extension by its own sign, so that
//! negative ones are beyond every length. The guard and the access use one value of it (B5).
//!
//! Deliberately absent: the accesses themselves.

use inkwell::IntPredicate;
use inkwell::values::{BasicValueEnum, IntValue, PointerValue, VectorValue};
use invar_codegen::analysis::blocks::MOST_VECTOR_STRIDE;
use invar_ir::inst::{Place, Step, Value, Width};
use invar_ir::{AddressSpace, ElementType, Memory, ParamKind, Scalar, Type};

use crate::emit::BUILT;
use crate::function::FunctionLowering;
use crate::prefetch::Prefetch;
use crate::state::{Anchor, AnchorKey, Chunk, Object};
use crate::value::{Part, Parts};

/// A place, resolved as far as it does not depend on lanes.
pub(crate) struct Target<'c> {
    pub object: Object<'c>,
    /// Element index.
    pub index: Parts<'c>,
    pub index_scalar: Scalar,
    /// From the index of the first lane to those of all, where that is known.
    pub distances: Option<Vec<i64>>,
    /// Elements a group of `width` counts for one index, or 1.
    pub scale: u64,
    /// From one component to the next: elements to add to the index, and bytes.
    pub component_elements: u64,
    pub component_bytes: u64,
    pub components: usize,
    pub scalar: Scalar,
    pub element_bytes: u64,
    /// The way into the element.
    pub offset_bytes: u64,
    pub dynamic: Vec<Dynamic<'c>>,
    /// A constant step leads out of bounds.
    pub never: bool,
    /// In bounds only in the lanes that are on.
    pub by_active: bool,
    /// A load whose lanes may lie in rows that are broken once.
    pub breaks: bool,
    /// What to ask for ahead of its use.
    pub prefetch: Option<Prefetch<'c>>,
}

impl Target<'_> {
    /// Whether all lanes of the chunk access the same components.
    pub fn is_one_place(&self) -> bool {
        self.index.is_uniform() && self.dynamic.iter().all(|d| d.index.is_uniform())
    }
}

/// An index inside of an element.
pub(crate) struct Dynamic<'c> {
    pub index: Parts<'c>,
    pub scalar: Scalar,
    pub length: u64,
    pub stride_bytes: u64,
}

/// Where one vector's lanes access one component.
pub(crate) enum Spot<'c> {
    /// All lanes one location: its address, and whether it is in bounds.
    Same(PointerValue<'c>, Option<IntValue<'c>>),
    /// Lane by lane: addresses, and which are in bounds.
    Lanes(VectorValue<'c>, Option<VectorValue<'c>>),
}

/// The lanes of a vector some scalars apart.
pub(crate) struct Spread<'c> {
    /// Of the first lane.
    pub pointer: PointerValue<'c>,
    /// From one lane to the next: 2 to [`MOST_VECTOR_STRIDE`].
    pub apart: u32,
}

/// The components of all lanes side by side, those of lane 0 first.
pub(crate) struct Dense<'c> {
    pub pointer: PointerValue<'c>,
    /// Whether all of them are in bounds, and all lanes are on.
    pub whole: Option<IntValue<'c>>,
}

/// Elements side by side: the address of lane 0's.
pub(crate) struct Row<'c> {
    pub pointer: PointerValue<'c>,
    /// Whether all lanes are in bounds.
    pub inside: Option<IntValue<'c>>,
    /// Element index of lane 0, 64 bits, and whether lanes follow without wrapping.
    pub base: IntValue<'c>,
    pub exact: bool,
}

impl<'c, 'k> FunctionLowering<'c, 'k> {
    pub fn target(&mut self, place: &Place) -> Target<'c> {
        let object = self.launch.objects[&place.memory].clone();
        let thread = object.thread.is_some();
        let index = self.get(place.index);
        let index_scalar = self
            .analysis
            .kernel
            .ty(place.index)
            .scalar()
            .unwrap_or(Scalar::U32);
        let structs = &self.analysis.module.structs;
        let mut element = object.element.clone();
        let element_bytes = self.analysis.size(&element, thread);
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
                m.analysis.lanes_bytes(s)
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
                        before
                            .iter()
                            .map(|(_, f)| self.analysis.size(f, true))
                            .sum()
                    } else {
                        let place = self.analysis.layouts.field(*id, *field);
                        place.unwrap_or_default().offset_bytes
                    };
                    element = def.fields[*field as usize].1.clone();
                    if let ElementType::Value(ty) = element {
                        reached = Some(ty);
                    }
                    continue;
                }
                (Step::Index(_), None, ElementType::Array(inner, length)) => {
                    let inner = (**inner).clone();
                    (
                        u64::from(*length),
                        self.analysis.size(&inner, thread),
                        Ok(inner),
                    )
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
            match self.analysis.constant_index(*value) {
                Some(k) if (0..i128::from(length)).contains(&k) => {
                    offset_bytes += k as u64 * stride;
                }
                Some(_) => never = true,
                None => dynamic.push(Dynamic {
                    index: self.get(*value),
                    scalar: self
                        .analysis
                        .kernel
                        .ty(*value)
                        .scalar()
                        .unwrap_or(Scalar::U32),
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
            distances: self.distances(place.memory, place.index),
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
            breaks: false,
            prefetch: None,
        }
    }

    /// By how many elements the lanes of an index are apart, in a full chunk.
    fn distances(&self, memory: Memory, index: Value) -> Option<Vec<i64>> {
        let in_full = |chunk: &Chunk<'c>| chunk.fast && !chunk.one_lane;
        if !self.chunk.as_ref().is_some_and(in_full) {
            return None;
        }
        let kernel = self.analysis.kernel;
        let is_threadgroup = match memory {
            Memory::Param(i) => {
                let kind = &kernel.params[i as usize].kind;
                matches!(kind, ParamKind::Threadgroup { .. })
            }
            Memory::Alloc(i) => kernel.allocs[i as usize].space == AddressSpace::Threadgroup,
            Memory::Constant(_) => false,
        };
        // No threadgroup array has more elements than half of what 32 bits count.
        let known = self.analysis.distances.of(index, !is_threadgroup)?;
        Some(known.to_vec())
    }

    /// Where part `u` accesses component `c`.
    pub fn spot(&self, t: &Target<'c>, u: usize, c: usize, proved: bool) -> Spot<'c> {
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
                .e
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
                let index = self.e.wide_index(d.scalar, *s, false).into_int_value();
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
            .e
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
            let element = self.e.memory_type(t.scalar, e.scalar_type(t.scalar));
            e.pointers(element, t.object.base.into(), index)
        } else {
            let mut offset = e.mul(index, splat(t.element_bytes));
            if bytes > 0 {
                offset = e.add(offset, splat(bytes));
            }
            for (d, part) in t.dynamic.iter().zip(&indices[1..]) {
                let index = self
                    .e
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

    /// The lanes of part `u` as elements side by side, if they are; the access is made by some `lanes`, or
    /// by all.
    pub fn row(
        &self,
        t: &Target<'c>,
        u: usize,
        lanes: Option<VectorValue<'c>>,
        proved: bool,
    ) -> Option<Row<'c>> {
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
        let element = self.e.memory_type(t.scalar, e.scalar_type(t.scalar));
        let offset = |pointer: PointerValue<'c>, index: IntValue<'c>| {
            // SAFETY: building the instruction touches no memory, and without `inbounds` no pointer is
            // poison.
            let moved = unsafe { e.builder.build_gep(element, pointer, &[index], "") };
            moved.expect(BUILT)
        };
        // Where indices are proved not to wrap, vectors side by side are a constant apart.
        if proved {
            let first = u - u % self.shape.along as usize;
            let beside = match t.index.part(0, first) {
                // As many elements further along the row as lanes: then nothing wraps in between if this one's
                // lanes are inside, though all of the first's may be off. Other distances need not be what they are
                // modulo two to the width: indices of 8 bits may lie 128 apart.
                Part::Affine { base: of_first, .. } => {
                    let by = i64::from(self.shape.width) * (u - first) as i64;
                    let known = self.sums.distance(base, of_first);
                    (known == Some(by)).then_some((of_first, by))
                }
                Part::Scalar(_) | Part::Vector(_) => None,
            };
            let (of_first, by) = beside.unwrap_or((base, 0));
            let pointer = || {
                let index = self.e.wide_index(extend_as, of_first.into(), false);
                offset(t.object.base, index.into_int_value())
            };
            // So are rows beside each other, if both have one of the same lanes: then the indices of both
            // are within 31 bits of zero, and their distance is what it is modulo two to the width.
            let anchored = extend_as == Scalar::I32 || extend_as.bits() == 64;
            let (pointer, apart) = if anchored {
                let key = (t.object.base, t.element_bytes, lanes);
                self.anchored(key, of_first, pointer)
            } else {
                (pointer(), 0)
            };
            return Some(Row {
                pointer: offset(pointer, e.i64(apart.wrapping_add(by) as u64)),
                inside: None,
                base,
                exact,
            });
        }
        let base = self
            .e
            .wide_index(extend_as, base.into(), false)
            .into_int_value();
        let pointer = offset(t.object.base, base);
        let inside = {
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
        };
        Some(Row {
            pointer,
            inside: Some(inside),
            base,
            exact,
        })
    }

    /// The address of an earlier row of the same object, for the same lanes, and how many elements further
    /// the one of this index is, if that is known; else what `make` says.
    fn anchored(
        &self,
        key: AnchorKey<'c>,
        index: IntValue<'c>,
        make: impl FnOnce() -> PointerValue<'c>,
    ) -> (PointerValue<'c>, i64) {
        let here = self.e.here();
        let mut anchors = self.anchors.borrow_mut();
        // What was computed in another block may not be known here.
        anchors.retain(|a| a.block == here);
        let near = anchors.iter().filter(|a| a.key == key).find_map(|a| {
            let by = self.sums.difference(index, a.index)?;
            Some((a.pointer, by))
        });
        near.unwrap_or_else(|| {
            let pointer = make();
            anchors.push(Anchor {
                block: here,
                key,
                index,
                pointer,
            });
            (pointer, 0)
        })
    }

    /// The lanes of a row that are in bounds.
    pub fn row_lanes(&self, t: &Target<'c>, row: &Row<'c>) -> VectorValue<'c> {
        let e = &self.e;
        let width = self.shape.width;
        let indices = e.add(e.splat(row.base.into(), width), e.ramp(64, 1, width));
        let length = e.splat(t.object.length.into(), width);
        e.compare_lanes(IntPredicate::ULT, indices, length)
    }

    /// Component `c` of part `u`'s lanes some scalars apart, if it is so, where all lanes are on and in bounds: then
    /// no index has wrapped, and what lies between the first and the last lane is in the object too.
    pub fn spread(&self, t: &Target<'c>, u: usize, c: usize) -> Option<Spread<'c>> {
        let Part::Affine { base, stride, .. } = t.index.part(0, u) else {
            return None;
        };
        let size = t.scalar.size_bytes();
        let step = u64::try_from(stride).ok()?.checked_mul(t.scale)?;
        let step = step.checked_mul(t.element_bytes)?;
        let apart = step / size;
        let fits = (2..=MOST_VECTOR_STRIDE).contains(&apart) && step % size == 0;
        // As a row: what a narrow index is where it is proved only of lanes that are on.
        let narrow = t.by_active && t.index_scalar.bits() < 32;
        if !fits
            || narrow
            || t.never
            || !t.dynamic.is_empty()
            || self.shape.width < MOST_VECTOR_STRIDE as u32
        {
            return None;
        }
        Some(Spread {
            pointer: self.component_at(t, base, c),
            apart: apart as u32,
        })
    }

    /// Where component `c` lies at one index of a target without further ones.
    pub fn component_at(&self, t: &Target<'c>, index: IntValue<'c>, c: usize) -> PointerValue<'c> {
        let e = &self.e;
        let index = e.wide_index(t.index_scalar, index.into(), false);
        let element = e.mul(index.into_int_value(), e.i64(t.scale));
        let element = e.add(element, e.i64(t.component_elements * c as u64));
        let inner = t.offset_bytes + t.component_bytes * c as u64;
        let offset = e.add(e.mul(element, e.i64(t.element_bytes)), e.i64(inner));
        e.byte_offset(t.object.base, offset)
    }

    /// The components of part `u`'s lanes as elements side by side, if they are.
    pub fn dense(
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
            .e
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
}
