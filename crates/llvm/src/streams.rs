//! Stores that go past the caches, to buffers that a kernel only writes.
//!
//! Which buffers those may be says [`invar_codegen::analysis::streams`]. A plain store reads the line that it
//! writes to first; one past the caches does not, which saves a third of what a sum of two arrays moves. It
//! pays where the buffer is too large to stay in the caches, which the launch says
//! ([`crate::abi::Launch::least_streamed_bytes`]), and where whole lines are written: by vectors that are full,
//! in bounds, next to each other or of components that are, and begin with a line. The last is looked at once for each such store of a
//! chunk; a buffer that is small never passes that test, so there is one.
//!
//! Why the memory model holds: the processor keeps the order of one thread's own accesses of a location, so
//! a threadgroup, which is one thread of the machine, sees what it would see (O1, O2). For other threads of
//! the machine these stores may come late, until a fence: there is one at every end of the function, before
//! the worker says that its part is done (O3). Kernels in which anything else orders accesses of different
//! threadgroups stream nothing (O4). A vector is aligned to the line, or to its own size within one, so no
//! element of it is torn and nothing beside it is written (L2, R2).
//!
//! Deliberately absent: processors other than x86-64; stencils where there is no AVX-512; rows of vectors that do not
//! fill lines, since part of a line past the caches is slower than a plain store.

use inkwell::IntPredicate;
use inkwell::values::{IntValue, PointerValue, VectorValue};
use invar_codegen::analysis::streams::streamed;
use invar_ir::inst::Memory;

use crate::emit::BUILT;
use crate::function::FunctionLowering;
use crate::neighbour_rows::neighbours_read_the_same;
use crate::places::Target;
use crate::target::CACHE_LINE_BYTES;
use crate::value::{Mask, Parts};

/// The smallest vector that can be stored past the caches.
const LEAST_VECTOR_BYTES: u64 = 16;

impl<'c, 'k> FunctionLowering<'c, 'k> {
    /// Finds, of each buffer that may be streamed to, the bits of an address that must be zero for it: where
    /// a line begins, or none that any address has if the buffer is too small.
    pub fn find_streams(&mut self, least_bytes: IntValue<'c>) {
        if !self.e.target.is_x86 || self.reads_between_rows() {
            return;
        }
        for memory in streamed(self.analysis.module, self.analysis.kernel) {
            let e = &self.e;
            let object = &self.launch.objects[&memory];
            let bytes = e.mul(
                object.length,
                e.i64(self.analysis.extent_bytes(&object.element)),
            );
            let is_large = e.compare(IntPredicate::UGE, bytes, least_bytes);
            let (line, all) = (e.i64(CACHE_LINE_BYTES - 1), e.i64(u64::MAX));
            let bits = e.select(is_large.into(), line.into(), all.into());
            self.launch.streams.insert(memory, bits.into_int_value());
        }
    }

    /// Whether rows of threads read what others read, on processors that then lose more by stores past the caches than
    /// they gain, as those without AVX-512 do: on one thread of an AMD EPYC 7003, 8 neighbours of 4096 by 4096 take 36 ms
    /// with such stores and 7.9 without, 7 points of 256 by 256 by 256 15 and 10, and sums of two arrays 4.7 and 8.2.
    fn reads_between_rows(&self) -> bool {
        let (kernel, affine) = (self.analysis.kernel, &self.analysis.plan.affine);
        !self.e.target.has_avx512 && neighbours_read_the_same(kernel, affine)
    }

    /// Makes a store of all lanes past the caches where its rows begin with lines, else as it would be; gives
    /// whether it did: `false` where no such store can be.
    pub fn store_past_caches(
        &self,
        memory: Memory,
        t: &Target<'c>,
        value: &Parts<'c>,
        mask: &Mask<'c>,
        proved: bool,
    ) -> bool {
        let e = &self.e;
        let is_dense = t.components > 1;
        let lane_bytes = match is_dense {
            true => t.components as u64 * t.scalar.size_bytes(),
            false => t.element_bytes,
        };
        let vector_bytes = u64::from(self.shape.width) * lane_bytes;
        // Components lie side by side in each vector, and vectors anywhere; else those of a row do.
        let along = if is_dense { 1 } else { self.shape.along };
        let row_bytes = vector_bytes * u64::from(along);
        let fills_lines =
            row_bytes.is_multiple_of(CACHE_LINE_BYTES) && vector_bytes >= LEAST_VECTOR_BYTES;
        let Some(bits) = self.launch.streams.get(&memory) else {
            return false;
        };
        if !fills_lines || *mask != Mask::All || !proved {
            return false;
        }
        let parts = self.shape.parts() as usize;
        let pointer = |u| match is_dense {
            true => self.dense(t, u, None, true).map(|dense| dense.pointer),
            false => self.row(t, u, None, true).map(|row| row.pointer),
        };
        let Some(pointers) = (0..parts).map(pointer).collect::<Option<Vec<_>>>() else {
            return false;
        };
        let starts = pointers.iter().step_by(along as usize);
        let address = |pointer: &PointerValue<'c>| {
            let ty = e.context.i64_type();
            let address = e.builder.build_ptr_to_int(*pointer, ty, "");
            address.expect(BUILT)
        };
        let all = starts.map(address).reduce(|a, b| e.or(a, b));
        let all = all.expect("a chunk has a row");
        let misplaced = e.and(all, *bits);
        let begins = e.compare(IntPredicate::EQ, misplaced, e.i64(0));
        let (past, plain, join) = (e.block("past"), e.block("plain"), e.block("stored"));
        e.branch_if(begins, past, plain);
        for (block, is_past) in [(past, true), (plain, false)] {
            e.go(block);
            for (u, pointer) in pointers.iter().enumerate() {
                let write = |bytes: u64, stored: VectorValue<'c>| {
                    let to = e.byte_offset(*pointer, e.i64(bytes));
                    let align = u64::from(stored.get_type().get_size()) * t.scalar.size_bytes();
                    match is_past {
                        true => e.store_nontemporal(stored.into(), to, align.min(CACHE_LINE_BYTES)),
                        false => e.store(stored.into(), to, t.scalar.size_bytes() as u32),
                    }
                };
                match is_dense {
                    true => self.write_side_by_side(t.scalar, t.components as u32, value, u, write),
                    false => {
                        let vector = e.vector(value.part(0, u), self.shape.width);
                        let vector = e.in_memory(t.scalar, vector.into());
                        write(0, vector.into_vector_value());
                    }
                }
                if let Some(prefetch) = t.prefetch.filter(|_| !is_past) {
                    self.prefetch_lines(*pointer, vector_bytes, prefetch);
                }
            }
            e.branch(join);
        }
        e.go(join);
        true
    }

    /// Before a worker says that its part is done: others see what went past the caches.
    pub fn fence_streams(&self) {
        if !self.launch.streams.is_empty() {
            self.e.intrinsic("llvm.x86.sse.sfence", &[], &[]);
        }
    }
}
