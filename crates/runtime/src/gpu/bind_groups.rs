//! Bind groups, kept for dispatches that bind the same again: to make one costs more than to record a
//! dispatch.
//!
//! Invariant: a group goes with the first thing that it was made of, so that none keeps memory alive whose
//! owner has let go of it.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::sync::lock;

/// How many are kept.
const KEPT: usize = 256;

/// The groups of a GPU, by the numbers of what they are made of.
#[derive(Default)]
pub(crate) struct Groups {
    kept: HashMap<Box<[u64]>, wgpu::BindGroup>,
    /// The numbers that are looked for.
    key: Vec<u64>,
}

impl Groups {
    /// The group that binds these, in that order.
    pub(crate) fn get_or_make<'a>(
        &mut self,
        bound: impl Iterator<Item = &'a BindingId>,
        make: impl FnOnce() -> wgpu::BindGroup,
    ) -> wgpu::BindGroup {
        self.key.clear();
        self.key.extend(bound.map(|id| id.number));
        if let Some(group) = self.kept.get(self.key.as_slice()) {
            return group.clone();
        }
        if self.kept.len() >= KEPT {
            self.kept.clear();
        }
        let group = make();
        self.kept.insert(self.key.as_slice().into(), group.clone());
        group
    }
}

/// The identity of what a group binds, which has it as a field.
pub(crate) struct BindingId {
    number: u64,
    groups: Arc<Mutex<Groups>>,
}

impl BindingId {
    pub(crate) fn new(groups: &Arc<Mutex<Groups>>) -> BindingId {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        BindingId {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            groups: groups.clone(),
        }
    }
}

impl fmt::Debug for BindingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "binding {}", self.number)
    }
}

impl Drop for BindingId {
    fn drop(&mut self) {
        let mut groups = lock(&self.groups);
        groups.kept.retain(|key, _| !key.contains(&self.number));
    }
}

#[cfg(test)]
mod tests {
    use invar_interp::Dispatch;
    use invar_ir::text::parse;
    use invar_ir::verify;

    use super::*;
    use crate::CompileOptions;
    use crate::gpu::{Gpu, GpuArg, GpuBuffer};

    #[test]
    #[expect(clippy::print_stdout, reason = "a skipped test says so")]
    fn a_group_goes_with_the_first_thing_it_is_made_of() {
        if Gpu::names().is_empty() {
            println!("skipped: this machine has no adapter (mesa-vulkan-drivers brings one)");
            return;
        }
        let gpu = Gpu::open(0).unwrap();
        let kept = || lock(&gpu.0.groups).kept.len();
        let source = "
            kernel @copy(%x: device read u32, %y: device write u32) {
                %i = thread_position_in_grid x
                %v = load %x[%i]
                store %y[%i], %v
            }";
        let module = verify(parse("copy.inv", source).unwrap()).unwrap();
        let options = CompileOptions::default();
        let program = gpu.compile(&module, "copy", &options).unwrap();
        let (x, y) = (gpu.buffer(64).unwrap(), gpu.buffer(64).unwrap());
        let run = |from: &GpuBuffer, to: &GpuBuffer, threads| {
            let args = [GpuArg::Buffer(from), GpuArg::Buffer(to)];
            let dispatch = Dispatch::linear(threads, 16);
            gpu.dispatch(&program, dispatch, &args).unwrap();
        };
        run(&x, &y, 16);
        run(&x, &y, 16);
        run(&x, &y, 32);
        // What the dispatches take along differs, what they bind does not.
        assert_eq!(kept(), 1);
        run(&y, &x, 16);
        for _ in 0..3 {
            let z = gpu.buffer(64).unwrap();
            run(&x, &z, 16);
            assert_eq!(kept(), 3);
        }
        assert_eq!(kept(), 2);
        drop(x);
        assert_eq!(kept(), 0);
        let many: Vec<_> = (0..=KEPT).map(|_| gpu.buffer(4).unwrap()).collect();
        for z in &many {
            run(&y, z, 1);
        }
        assert!((1..=KEPT).contains(&kept()));
        gpu.wait().unwrap();
    }

    /// A pipeline's groups go when its program does.
    #[test]
    #[expect(clippy::print_stdout, reason = "a skipped test says so")]
    fn a_group_goes_with_its_pipeline() {
        if Gpu::names().is_empty() {
            println!("skipped: this machine has no adapter (mesa-vulkan-drivers brings one)");
            return;
        }
        let gpu = Gpu::open(0).unwrap();
        let source = "
            kernel @put(%y: device write u32, %n: u32) {
                %i = thread_position_in_grid x
                store %y[%i], %n
            }";
        let module = verify(parse("put.inv", source).unwrap()).unwrap();
        let options = CompileOptions::default();
        let program = gpu.compile(&module, "put", &options).unwrap();
        let y = gpu.buffer(64).unwrap();
        let n = [7u32.into()];
        let args = [GpuArg::Buffer(&y), GpuArg::Scalar(&n)];
        gpu.dispatch(&program, Dispatch::linear(16, 16), &args)
            .unwrap();
        gpu.wait().unwrap();
        assert_eq!(lock(&gpu.0.groups).kept.len(), 1);
        drop(program);
        assert_eq!(lock(&gpu.0.groups).kept.len(), 0);
        assert_eq!(y.read().unwrap(), 7u32.to_le_bytes().repeat(16));
    }
}
