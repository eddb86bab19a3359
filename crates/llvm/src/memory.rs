//! Loads, stores and atomics of a chunk, in bounds whatever the index (B1 to B4).
//!
//! Each access takes the cheapest of six forms: one scalar where the index is the same for a vector's
//! lanes; a vector where elements lie side by side, or where the components of all lanes do, which
//! registers then sort; some vectors where loads lie a few scalars apart; blocks of vectors where those of a thread lie side by side
//! (`blocks.rs`); else a gather or a scatter; and
//! for thread arrays (`arrays.rs`) a vector at a time. Where that is and whether it is in bounds says
//! `places.rs`.

use inkwell::values::{BasicValue, BasicValueEnum, IntValue, PointerValue, VectorValue};
use inkwell::{AtomicOrdering, IntPredicate};
use invar_codegen::analysis::lanes::Class;
use invar_ir::inst::{InstKind, Place};
use invar_ir::{Inst, Scalar};

use crate::atomics::{Atomic, atomic, atomic_of_all, atomic_of_each};
use crate::emit::{BUILT, vector_of};
use crate::function::FunctionLowering;
use crate::places::{Dense, Spot, Spread, Target};
use crate::state::{Object, Proof};
use crate::value::{Mask, Part, Parts};
use crate::windows::Windows;

impl<'c, 'k> FunctionLowering<'c, 'k> {
    // ---- memory and registers ----

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
            let quarters = e.has_quarters(t.scalar, width, count);
            let components = if quarters {
                self.read_quarters(t, dense.pointer)
            } else {
                let all = self.read_side_by_side(t, dense.pointer, width * count);
                let component = |c| e.lanes_of(all, None, (0..width).map(|lane| lane * count + c));
                (0..count).map(component).collect()
            };
            if let Some(prefetch) = t.prefetch {
                let bytes = u64::from(width * count) * t.scalar.size_bytes();
                self.prefetch_lines(dense.pointer, bytes, prefetch);
            }
            components
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

    /// So many scalars that lie side by side.
    fn read_side_by_side(
        &self,
        t: &Target<'c>,
        pointer: PointerValue<'c>,
        count: u32,
    ) -> VectorValue<'c> {
        let e = &self.e;
        let ty = e.memory_type(t.scalar, e.vector_type(t.scalar, count).into());
        let all = e.load(ty, pointer, t.scalar.size_bytes() as u32);
        self.mark_constant(&t.object, all);
        self.settled(&t.object, t.scalar, all).into_vector_value()
    }

    /// The four scalars of each lane, which lie side by side: a vector for each ([`Emit::has_quarters`]).
    pub fn read_quarters(&self, t: &Target<'c>, pointer: PointerValue<'c>) -> Vec<VectorValue<'c>> {
        let e = &self.e;
        let read = |lane: u32| {
            let bytes = u64::from(lane) * 4 * t.scalar.size_bytes();
            self.read_side_by_side(t, e.byte_offset(pointer, e.i64(bytes)), 4)
        };
        e.load_quarters(self.shape.width, read).to_vec()
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
        let write = || {
            let align = t.scalar.size_bytes();
            self.write_side_by_side(t.scalar, t.components as u32, value, u, |bytes, vector| {
                let to = e.byte_offset(dense.pointer, e.i64(bytes));
                e.store(vector.into(), to, align as u32);
            });
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

    /// What was loaded by lanes, as one value whatever raced.
    pub fn settled(
        &self,
        object: &Object<'c>,
        scalar: Scalar,
        value: BasicValueEnum<'c>,
    ) -> BasicValueEnum<'c> {
        let races = object.shared && !object.constant;
        let value = if races { self.e.freeze(value) } else { value };
        self.e.in_registers(scalar, value)
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
        if let Some(parts) = self.load_of_block(inst, &t, mask) {
            return parts;
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
        let count = if t.is_one_place() {
            1
        } else {
            self.shape.parts() as usize
        };
        t.prefetch = self.prefetch_for(inst, mask);
        t.breaks = self.may_be_broken_rows(&t, place);
        if let Some(parts) = self.load_all_dense(&t, mask, proved) {
            return parts;
        }
        if let Some(windows) = self.windows(&t, place, mask) {
            return self.load_near(&t, &windows, mask, proved);
        }
        self.load_parts(&t, count, mask, proved)
    }

    /// Reads a place part by part.
    fn load_parts(&self, t: &Target<'c>, count: usize, mask: &Mask<'c>, proved: bool) -> Parts<'c> {
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
                    Some(_) | None => self.load_part(t, u, c, mask, proved),
                };
                done.push(key);
                list.push(part);
            }
        }
        Parts::of(list, count)
    }

    /// Reads windows where all lanes lie in them, else part by part.
    fn load_near(
        &self,
        t: &Target<'c>,
        windows: &Windows<'c>,
        mask: &Mask<'c>,
        proved: bool,
    ) -> Parts<'c> {
        let e = &self.e;
        let (count, width) = (self.shape.parts() as usize, self.shape.width);
        let (near, far, join) = (e.block("near"), e.block("far"), e.block("loaded"));
        e.branch_if(windows.inside, near, far);
        e.go(near);
        let found = self.load_windows(t, windows);
        let near = e.here();
        e.branch(join);
        e.go(far);
        let parts = self.load_parts(t, count, mask, proved);
        let rest: Vec<_> = (0..count)
            .map(|u| e.vector(parts.part(0, u), width))
            .collect();
        let far = e.here();
        e.branch(join);
        e.go(join);
        let joined = found.iter().zip(&rest).map(|(found, rest)| {
            let phi = e.builder.build_phi(rest.get_type(), "").expect(BUILT);
            phi.add_incoming(&[(&e.vector(*found, width), near), (rest, far)]);
            Part::Vector(phi.as_basic_value().into_vector_value())
        });
        Parts::of(joined.collect(), count)
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
        if let Some(row) = self.row(t, u, lanes, proved) {
            let ty = self
                .e
                .memory_type(t.scalar, e.vector_type(t.scalar, width).into());
            let align = t.scalar.size_bytes() as u32;
            let Some(inside) = row.inside else {
                let value = match lanes {
                    None => {
                        let value = e.load(ty, row.pointer, align);
                        self.mark_constant(&t.object, value);
                        // Behind it: LLVM makes no load part of an instruction that stands behind a request
                        // which the load stands before.
                        if let Some(prefetch) = t.prefetch
                            && self.begins_cache_line(u, t.element_bytes)
                        {
                            self.prefetch(row.pointer, prefetch);
                        }
                        value
                    }
                    Some(lanes) => self.e.load_masked(t.scalar, row.pointer, lanes).into(),
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
                let own = self.e.and_mask(lanes, Some(self.row_lanes(t, &row)));
                self.e
                    .load_some(t.scalar, row.pointer, own.expect("a mask"))
            } else if self.edges.replace(self.edges.get() + 1) >= self.analysis.most_edges {
                self.load_edge(t, u, lanes)
            } else {
                let Spot::Lanes(pointers, inside) = self.spot(t, u, c, false) else {
                    unreachable!("lanes differ");
                };
                self.e
                    .gather(t.scalar, pointers, self.e.and_mask(lanes, inside))
            };
            let end = e.here();
            e.branch(join);
            e.go(join);
            let phi = e.builder.build_phi(ty, "").expect(BUILT);
            phi.add_incoming(&[(&all, plain), (&some, end)]);
            let value = self.settled(&t.object, t.scalar, phi.as_basic_value());
            return Part::Vector(value.into_vector_value());
        }
        if proved
            && lanes.is_none()
            && let Some(spread) = self.spread(t, u, c)
        {
            let value = self.load_spread(t, &spread);
            return Part::Vector(value);
        }
        if proved
            && lanes.is_none()
            && let Some(apart) = self.apart(t, u, c)
            && let Some(value) = self.load_apart(t.scalar, &apart, |value| {
                self.mark_constant(&t.object, value)
            })
        {
            let value = self.settled(&t.object, t.scalar, value.into());
            return Part::Vector(value.into_vector_value());
        }
        if t.breaks
            && let Some(value) = self.load_broken_rows(t, u, lanes)
        {
            let value = self.settled(&t.object, t.scalar, value);
            return Part::Vector(value.into_vector_value());
        }
        match self.spot(t, u, c, proved) {
            Spot::Same(pointer, inside) => {
                // What is proved of active lanes says nothing of a vector that has none, whose index may
                // lie anywhere, while other vectors of the chunk have some.
                let inside = inside.or_else(|| {
                    let lanes = lanes.filter(|_| t.by_active && !t.is_one_place())?;
                    Some(e.any(&[lanes]))
                });
                Part::Scalar(self.load_one(&t.object, t.scalar, pointer, inside))
            }
            Spot::Lanes(pointers, inside) => {
                let mask = self.e.and_mask(lanes, inside);
                let value = self.e.gather(t.scalar, pointers, mask);
                let value = self.settled(&t.object, t.scalar, value.into());
                Part::Vector(value.into_vector_value())
            }
        }
    }

    /// Reads the lanes of a row that are in bounds, by a function that is made once.
    fn load_edge(
        &self,
        t: &Target<'c>,
        u: usize,
        lanes: Option<VectorValue<'c>>,
    ) -> VectorValue<'c> {
        let (e, width) = (&self.e, self.shape.width);
        let row = t.index.part(0, u);
        let Part::Affine { base: first, .. } = row else {
            unreachable!("a row");
        };
        let given = lanes.map(|lanes| BasicValueEnum::from(e.mask_bits(lanes)));
        let masked = if given.is_some() { ".masked" } else { "" };
        let (scalar, index) = (t.scalar, t.index_scalar);
        let name = format!("edge.{scalar}.{index}.{width}{masked}");
        let mut args = vec![t.object.base.into(), first.into(), t.object.length.into()];
        args.extend(given);
        let ty = e.memory_type(scalar, e.vector_type(scalar, width).into());
        let value = e.call_for(&name, &args, Some(ty), |parameters| {
            let base = parameters[1].into_int_value();
            let row = match row {
                Part::Affine {
                    stride,
                    exact,
                    aligned,
                    ..
                } => Part::Affine {
                    base,
                    stride,
                    exact,
                    aligned,
                },
                other => other,
            };
            let indices = e.vector(row, width).into();
            let indices = e.wide_index(index, indices, false).into_vector_value();
            let length = e.splat(parameters[2], width);
            let inside = e.compare_lanes(IntPredicate::ULT, indices, length);
            let lanes = parameters.get(3).map(|bits| {
                let ty = vector_of(e.context.bool_type().into(), width);
                let lanes = e.builder.build_bit_cast(*bits, ty, "").expect(BUILT);
                lanes.into_vector_value()
            });
            let element = e.memory_type(scalar, e.scalar_type(scalar));
            let pointers = e.pointers(element, parameters[0], indices);
            let mask = e.and_mask(lanes, Some(inside));
            Some(e.gather(scalar, pointers, mask).into())
        });
        value.expect("a value").into_vector_value()
    }

    /// Reads what lies a few scalars apart: as many vectors of what is there, from the first lane's to the last
    /// lane's and not a byte beyond, and of those the lanes.
    fn load_spread(&self, t: &Target<'c>, spread: &Spread<'c>) -> VectorValue<'c> {
        let e = &self.e;
        let (width, apart) = (self.shape.width, spread.apart);
        let ty = e.memory_type(t.scalar, e.vector_type(t.scalar, width).into());
        let size = t.scalar.size_bytes();
        let last_vector = apart * (width - 1) + 1 - width;
        let begins = |vector: u32| (vector * width).min(last_vector);
        let mut lanes: Option<VectorValue<'c>> = None;
        let mut found = 0;
        for vector in 0..apart {
            let first = begins(vector);
            let place = e.byte_offset(spread.pointer, e.i64(u64::from(first) * size));
            let own = e.load(ty, place, size as u32);
            self.mark_constant(&t.object, own);
            let own = own.into_vector_value();
            let end = (first + width - 1) / apart + 1;
            // Those that were found before stay.
            let lane = |lane: u32| match lanes {
                Some(_) if lane < found => lane,
                Some(_) => width + (apart * lane).clamp(first, first + width - 1) - first,
                None => (apart * lane).clamp(first, first + width - 1) - first,
            };
            let order = (0..width).map(lane);
            lanes = Some(match lanes {
                Some(before) => e.lanes_of(before, Some(own), order),
                None => e.lanes_of(own, None, order),
            });
            found = end.min(width);
        }
        let lanes = lanes.expect("a vector at least");
        let value = self.settled(&t.object, t.scalar, lanes.into());
        value.into_vector_value()
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
                let zeros = self.e.zeros_in_memory();
                let picked = e.builder.build_select(inside, pointer, zeros, "");
                picked.expect(BUILT).into_pointer_value()
            }
        };
        let ty = self.e.memory_type(scalar, e.scalar_type(scalar));
        let value = e.load(ty, pointer, scalar.size_bytes() as u32);
        if object.shared && !object.constant {
            if let Some(inst) = value.as_instruction_value() {
                // One value whatever races: `unordered` is no dearer than a plain load.
                let half = matches!(scalar, Scalar::F16 | Scalar::BF16);
                if half {
                    return self.e.in_registers(scalar, e.freeze(value));
                }
                inst.set_atomic_ordering(AtomicOrdering::Unordered)
                    .expect("a load");
            }
        } else if inside.is_none() {
            self.mark_constant(object, value);
        }
        self.e.in_registers(scalar, value)
    }

    /// Tells LLVM that memory does not change while the kernel runs.
    pub fn mark_constant(&self, object: &Object<'c>, value: BasicValueEnum<'c>) {
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
        if self.store_of_block(inst, &t, value, mask) {
            return;
        }
        let proof = self.proved(inst);
        let proved = proof.is_some();
        t.by_active = proof == Some(Proof::Active);
        if t.is_one_place() {
            for c in 0..t.components {
                self.store_whole(&t, c, value, mask, proved);
            }
            return;
        }
        t.prefetch = self.prefetch_for(inst, mask);
        if self.store_past_caches(place.memory, &t, value, mask, proved) {
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
        if value.is_uniform() {
            let Spot::Same(pointer, inside) = self.spot(t, 0, c, proved) else {
                unreachable!("one place");
            };
            let Part::Scalar(scalar) = value.part(c, 0) else {
                unreachable!("one value");
            };
            // Where a store stands, a lane of the chunk is on (`control.rs`).
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
        let stored = self.e.in_memory(t.scalar, value);
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

    /// Whether vectors of a place are stored as two each, for those who load from there soon.
    fn stores_halves(&self, t: &Target<'c>) -> bool {
        let row_bits = u64::from(self.shape.width) * t.element_bytes * 8;
        let is_private = !t.object.shared && !t.object.constant;
        self.e.target.forwards_halves && is_private && row_bits == 512
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
        let vector = || self.e.in_memory(t.scalar, e.vector(value, width).into());
        let align = t.scalar.size_bytes() as u32;
        if let Some(row) = self.row(t, u, lanes, proved) {
            let stored = vector();
            let plain = |lanes: Option<VectorValue<'c>>| match lanes {
                None if self.stores_halves(t) => {
                    self.e
                        .store_halves(stored.into_vector_value(), row.pointer, align);
                }
                None => e.store(stored, row.pointer, align),
                Some(lanes) => e.store_masked(stored, row.pointer, align, lanes),
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
                let own = self.e.and_mask(lanes, Some(self.row_lanes(t, &row)));
                let own = own.expect("a mask");
                e.store_some(stored, row.pointer, align, own);
            } else {
                let Spot::Lanes(pointers, inside) = self.spot(t, u, c, false) else {
                    unreachable!("lanes differ");
                };
                let mask = self.e.and_mask(lanes, inside);
                self.e
                    .scatter(t.scalar, stored.into_vector_value(), pointers, mask);
            }
            e.branch(join);
            e.go(join);
            return;
        }
        if proved
            && lanes.is_none()
            && let Some(apart) = self.apart(t, u, c)
            && self.store_apart(t, &apart, vector().into_vector_value())
        {
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
                    let stored = self.e.in_memory(t.scalar, e.vector(value, width).into());
                    let mask = self.e.and_mask(lanes, inside);
                    self.e
                        .scatter(t.scalar, stored.into_vector_value(), pointers, mask);
                }
            },
            Spot::Lanes(pointers, inside) => {
                let mask = self.e.and_mask(lanes, inside);
                self.e
                    .scatter(t.scalar, vector().into_vector_value(), pointers, mask);
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
        let varies = self.class_of(load.results[0]) == Class::Varying;
        let streams = self.launch.streams.contains_key(&place.memory);
        if !varies || streams || !simple(&source) || !simple(&target) {
            let parts = self.load(load, from, mask);
            self.define(load.results[0], parts, mask);
            let parts = self.get(load.results[0]);
            self.store(store, place, &parts, mask);
            return;
        }
        let proofs = [load, store].map(|inst| self.proved(inst));
        let proved = proofs.map(|proof| proof.is_some());
        source.by_active = proofs[0] == Some(Proof::Active);
        source.breaks = self.may_be_broken_rows(&source, from);
        target.by_active = proofs[1] == Some(Proof::Active);
        source.prefetch = self.prefetch_for(load, mask);
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
            used: inst.results.iter().any(|r| self.analysis.plan.is_used(*r)),
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
                match self.e.and_mask(mask.part(u), inside) {
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
                let zeros = self.zeros(self.analysis.kernel.ty(*result));
                self.define(*result, zeros, mask);
            }
        }
    }

    /// Makes an atomic of a vector whose lanes are all on and in bounds, and whose results are not used,
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
            let index = self.e.wide_index(t.index_scalar, index.into(), false);
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
                let indices = self.e.wide_lanes(indices, t.index_scalar);
                indices.into_iter().map(at).collect()
            }
        };
        atomic_of_each(e, what, &pointers, &args);
        true
    }
}
