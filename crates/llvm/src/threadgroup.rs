//! Values that a threadgroup has one of: in registers, or in a variable of the function.

use inkwell::values::{BasicValueEnum, IntValue};
use invar_ir::Op;
use invar_ir::inst::Value;

use crate::function::FunctionLowering;
use crate::value::{Mask, Part, Parts};

impl<'c, 'k> FunctionLowering<'c, 'k> {
    /// A value that is the same for the threadgroup.
    pub fn shared_value(&self, value: Value) -> Option<Parts<'c>> {
        if let Some(parts) = self.shared.values.get(&value) {
            return Some(parts.clone());
        }
        let pointers = self.shared.variables.get(&value)?;
        let ty = self.e.component_type(self.analysis.kernel.ty(value));
        let align = 64;
        let components = pointers.iter().map(|p| self.e.load(ty, *p, align));
        Some(Parts::uniform(components.collect()))
    }

    /// Keeps a value for the threadgroup.
    pub fn share(&mut self, value: Value, parts: &Parts<'c>) {
        let ty = self.e.component_type(self.analysis.kernel.ty(value));
        if !self.shared.variables.contains_key(&value) {
            let pointers = (0..parts.components())
                .map(|_| self.alloca(ty, 64))
                .collect();
            self.shared.variables.insert(value, pointers);
        }
        for (c, pointer) in self.shared.variables[&value].clone().iter().enumerate() {
            let scalar = self
                .e
                .first_active(&[parts.part(c, 0)], &Mask::All, self.shape.width);
            self.e.store(scalar, *pointer, 64);
        }
    }

    pub fn scalar(&self, value: Value) -> BasicValueEnum<'c> {
        let parts = self
            .shared_value(value)
            .expect("a value of the threadgroup");
        match parts.part(0, 0) {
            Part::Scalar(s) => s,
            Part::Affine { .. } | Part::Vector(_) => unreachable!("a value of the threadgroup"),
        }
    }

    /// Whether a query gives the same for the whole threadgroup, and what.
    pub fn group_query(&self, op: Op, dim: usize) -> Option<IntValue<'c>> {
        let e = &self.e;
        let up = |n: IntValue<'c>, by: u32| {
            let by = e.i32(by);
            e.divide(e.add(n, e.sub(by, e.i32(1))), by)
        };
        let full = || {
            let [x, y, z] = self.launch.grid.threadgroup;
            e.mul(e.mul(x, y), z)
        };
        let size = self.analysis.kernel.threadgroup_size;
        let thin = size.is_some_and(|size| size[dim] == 1);
        Some(match op {
            Op::ThreadgroupPositionInGrid => self.group.position[dim],
            // Where threadgroups are one thread wide, or one thread, it is the same for the whole
            // threadgroup, and so may be asked for outside of a chunk.
            Op::ThreadIndexInThreadgroup
            | Op::ThreadIndexInSimdgroup
            | Op::ThreadIndexInQuadgroup
            | Op::SimdgroupIndexInThreadgroup
            | Op::QuadgroupIndexInThreadgroup
                if size == Some([1; 3]) =>
            {
                e.i32(0)
            }
            Op::ThreadPositionInThreadgroup if thin => e.i32(0),
            Op::ThreadPositionInGrid if thin => self.group.origin[dim],
            Op::ThreadsPerThreadgroup => self.group.size[dim],
            Op::DispatchThreadsPerThreadgroup => self.launch.grid.threadgroup[dim],
            Op::ThreadsPerGrid => self.launch.grid.threads[dim],
            Op::ThreadgroupsPerGrid => self.launch.grid.threadgroups[dim],
            Op::SimdgroupsPerThreadgroup => up(self.group.threads, self.analysis.simdgroup_size),
            Op::DispatchSimdgroupsPerThreadgroup => up(full(), self.analysis.simdgroup_size),
            Op::ThreadsPerSimdgroup => e.i32(self.analysis.simdgroup_size),
            Op::QuadgroupsPerThreadgroup => up(self.group.threads, 4),
            Op::DispatchQuadgroupsPerThreadgroup => up(full(), 4),
            _differs => return None,
        })
    }

    /// The index of the innermost loop that all threads go through together, if it counts.
    pub fn collective_loop(&self) -> Option<Value> {
        self.shared.loops.last()?.index
    }

    /// Whether a loop that all threads go through together carries a value.
    pub fn is_carried(&self, value: Value) -> bool {
        self.shared
            .loops
            .iter()
            .any(|frame| frame.carried.contains(&value))
    }
}
