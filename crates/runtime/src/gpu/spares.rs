//! What batches need beside their dispatches, made once and used again: stopwatches and guards of iterations.

use invar_codegen::wgsl::ITERATION_GUARD;
use invar_ir::Rule;

use super::bind_groups::BindingId;
use super::clock::Stopwatch;
use super::handle::Gpu;
use super::iteration_guard::{ITERATION_GUARD_BYTES, IterationGuard, PLACES, Watch, place_of};
use super::mapping::Mapping;
use crate::Error;
use crate::sync::lock;

impl Gpu {
    /// A stopwatch for so many parts, of a GPU whose clock can be read.
    pub(crate) fn stopwatch(&self, parts: u32) -> Result<Stopwatch, Error> {
        let set = self.0.device.create_query_set(&wgpu::QuerySetDescriptor {
            label: None,
            ty: wgpu::QueryType::Timestamp,
            count: parts * 2,
        });
        let usage = wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::MAP_READ;
        let read = self.allocate(u64::from(parts) * 16, usage)?;
        Ok(Stopwatch::new(parts, set, read))
    }

    /// A stopwatch for a batch, used again and again; none where the GPU's clock cannot be read.
    pub(crate) fn batch_stopwatch(&self) -> Option<Stopwatch> {
        self.0.clock_step_ns?;
        if let Some(kept) = lock(&self.0.stopwatches).pop() {
            return Some(kept);
        }
        match self.stopwatch(1) {
            Ok(stopwatch) => Some(stopwatch),
            Err(error) => {
                self.keep(error);
                None
            }
        }
    }

    /// Takes back a stopwatch whose times were read, or are not asked for.
    pub(crate) fn put_back(&self, stopwatch: Stopwatch) {
        lock(&self.0.stopwatches).push(stopwatch);
    }
}

fn ended_early(gpu: &Gpu, kernel: &str) -> Error {
    Error::new(
        Rule::DeadlineExceeded,
        format!(
            "the loops of kernel `{kernel}` make more iterations than `{}` runs: it ends all loops of a thread, \
             and of the few that run beside it, after about 65,000 iterations in all, and what the kernel stored \
             is void; run it on the cpu device, or with another driver",
            gpu.0.capabilities.description
        ),
    )
}

impl Gpu {
    /// A watch for a batch, of memory that is used again and again.
    pub(crate) fn watch(&self) -> Watch {
        let kept = lock(&self.0.iteration_guards).pop();
        Watch {
            guard: kept.unwrap_or_else(|| self.new_iteration_guard()),
            dispatches: Vec::new(),
        }
    }

    fn new_iteration_guard(&self) -> IterationGuard {
        let alignment = u64::from(self.0.limits.min_storage_buffer_offset_alignment);
        let stride = ITERATION_GUARD_BYTES.next_multiple_of(alignment.max(4));
        let make = |usage| {
            self.0.device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: stride * PLACES as u64,
                usage: usage | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })
        };
        let guard = IterationGuard {
            memory: make(wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC),
            read: make(wgpu::BufferUsages::MAP_READ),
            binding: BindingId::new(&self.0.groups),
            stride,
        };
        self.fill(&guard);
        guard
    }

    /// Writes what is to be there before a batch.
    fn fill(&self, guard: &IterationGuard) {
        let mut place: Vec<u8> = ITERATION_GUARD
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        place.resize(guard.stride as usize, 0);
        let all = place.repeat(PLACES);
        self.0.queue.write_buffer(&guard.memory, 0, &all);
    }

    /// Looks at what the dispatches of a batch said, for which `poll` waits; those whose loops were ended
    /// early have failed.
    pub(crate) fn check_iteration_guards(
        &self,
        watch: Watch,
        said: Mapping,
        poll: impl Fn() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Watch { guard, dispatches } = watch;
        let said = said.look(poll, <[u8]>::to_vec)?;
        let first = |i: usize| place_of(i) * guard.stride as usize;
        let mut some = false;
        for (i, dispatch) in dispatches.into_iter().enumerate() {
            if said[first(i)] == 0 {
                continue;
            }
            some = true;
            let error = ended_early(self, &dispatch.kernel);
            match dispatch.task {
                Some(task) => task.fail(error),
                None => self.keep(error),
            }
        }
        if some {
            self.fill(&guard);
        }
        lock(&self.0.iteration_guards).push(guard);
        Ok(())
    }
}
