//! Thread arrays: how they lie in memory, their zeros, loads and stores.
//!
//! One scalar of an array takes a vector of lanes, so that lanes which access one element access a vector
//! of memory. Arrays that live across barriers are in the chunks' memory, large ones in the worker's, others in
//! the frame.

use inkwell::values::PointerValue;
use invar_ir::inst::Memory;

use crate::emit::BUILT;
use crate::function::FunctionLowering;
use crate::object::ALIGN;
use crate::places::{Dynamic, Spot, Target};
use crate::state::Object;
use crate::value::{Mask, Part, Parts};

impl<'c, 'k> FunctionLowering<'c, 'k> {
    /// Where a vector's own thread array is, from that of the first.
    fn thread_array_at(&self, array: u32, u: usize) -> u64 {
        if self.analysis.layout.arrays.contains_key(&array) {
            self.analysis.part_at(self.shape, u)
        } else {
            u as u64 * self.analysis.thread_array_bytes(array)
        }
    }
    /// Begins the life of an array: zeros (I3).
    pub fn begin_array(&mut self, array: u32) {
        let Some(chunk) = &self.chunk else {
            return;
        };
        if self.launch.objects[&Memory::Alloc(array)].thread.is_none() {
            return;
        }
        let _ = chunk;
        let base = self.array_base(array);
        let own = self.analysis.thread_array_bytes(array);
        let zero = self.e.context.i8_type().const_zero();
        let fill = |at: u64, bytes: u64| {
            let pointer = self.e.byte_offset(base, self.e.i64(at));
            self.e
                .builder
                .build_memset(pointer, ALIGN as u32, zero, self.e.i64(bytes))
                .expect(BUILT);
        };
        let parts = self.shape.parts() as usize;
        if self.analysis.layout.arrays.contains_key(&array) {
            (0..parts).for_each(|u| fill(self.thread_array_at(array, u), own));
        } else {
            fill(0, parts as u64 * own);
        }
    }

    /// Where a thread array begins, for all lanes of the chunk.
    fn array_base(&mut self, array: u32) -> PointerValue<'c> {
        if let Some(offset) = self.analysis.layout.arrays.get(&array) {
            let memory = self.chunk_ref().memory;
            return self.e.byte_offset(memory, self.e.i64(*offset));
        }
        if let Some(base) = self.chunk_ref().arrays.get(&array) {
            return *base;
        }
        if self.analysis.layout.apart.contains_key(&array) {
            return self.launch.objects[&Memory::Alloc(array)].base;
        }
        let bytes = self.analysis.thread_array_bytes(array) as u32 * self.shape.parts();
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
                distances: None,
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

    /// Reads a place of a thread array.
    pub fn load_thread(&mut self, array: u32, t: &Target<'c>) -> Parts<'c> {
        let base = self.array_base(array);
        let e = &self.e;
        let width = self.shape.width;
        let count = self.shape.parts() as usize;
        let ty = self
            .e
            .memory_type(t.scalar, e.vector_type(t.scalar, width).into());
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
                    Spot::Lanes(pointers, inside) => {
                        self.e.gather(t.scalar, pointers, inside).into()
                    }
                };
                let value = self.e.in_registers(t.scalar, value);
                list.push(Part::Vector(value.into_vector_value()));
            }
        }
        Parts::of(list, count)
    }

    /// Writes a place of a thread array.
    pub fn store_thread(&mut self, array: u32, t: &Target<'c>, value: &Parts<'c>, mask: &Mask<'c>) {
        let base = self.array_base(array);
        let e = &self.e;
        let width = self.shape.width;
        let ty = self
            .e
            .memory_type(t.scalar, e.vector_type(t.scalar, width).into());
        let align = t.scalar.size_bytes() as u32;
        for c in 0..t.components {
            for u in 0..self.shape.parts() as usize {
                let vector = e.vector(value.part(c, u), width);
                let stored = self.e.in_memory(t.scalar, vector.into());
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
                        let mask = self.e.and_mask(mask.part(u), inside);
                        self.e
                            .scatter(t.scalar, stored.into_vector_value(), pointers, mask);
                    }
                }
            }
        }
    }
}
