//! Whether a driver has ended a loop too early.
//!
//! On a driver that does so ([`Features::ends_loops`](invar_codegen::wgsl::Features::ends_loops)) each
//! dispatch of a kernel with loops has [`ROUNDS`] of its own, in memory that its batch has alone. When the
//! batch has ended the host looks, and a dispatch whose first word is not 0 has failed.
//!
//! Invariant: memory is used again only when it holds what it held at first.

use std::sync::Arc;

use invar_codegen::wgsl::ROUNDS;
use invar_ir::Rule;

use super::Gpu;
use super::buffer::Mapping;
use super::groups::Part;
use super::recording::BATCH;
use crate::Error;
use crate::task::{Task, lock};

/// The bytes of a dispatch.
pub(crate) const ROUNDS_BYTES: u64 = ROUNDS.len() as u64 * 4;
/// Dispatches of a batch, at most: of queues, and of others. Should there be more, they share the last place
/// and fail together.
const PLACES: usize = 2 * BATCH;

/// Memory for the dispatches of a batch.
pub(crate) struct Rounds {
    pub(crate) memory: wgpu::Buffer,
    pub(crate) part: Part,
    read: wgpu::Buffer,
    /// Bytes from one place to the next.
    stride: u64,
}

/// What is watched of a batch.
pub(crate) struct Watch {
    pub(crate) rounds: Rounds,
    dispatches: Vec<Watched>,
}

/// A dispatch whose rounds are watched.
struct Watched {
    kernel: Arc<str>,
    /// Who fails with it; where nobody does, whoever asks the GPU next is told.
    task: Option<Arc<Task>>,
}

impl Watch {
    /// Begins to watch a dispatch; gives the place of its bytes.
    pub(crate) fn place(&mut self, kernel: &Arc<str>, task: Option<&Arc<Task>>) -> u32 {
        self.dispatches.push(Watched {
            kernel: kernel.clone(),
            task: task.cloned(),
        });
        place_of(self.dispatches.len() - 1) as u32 * self.rounds.stride as u32
    }

    /// Whether a dispatch is no task.
    pub(crate) fn has_nobodys(&self) -> bool {
        self.dispatches.iter().any(|watched| watched.task.is_none())
    }

    /// Brings what the dispatches said to where it can be read.
    pub(crate) fn bring(&self, encoder: &mut wgpu::CommandEncoder) {
        let Rounds { memory, read, .. } = &self.rounds;
        encoder.copy_buffer_to_buffer(memory, 0, read, 0, read.size());
    }

    /// Asks for what they said, when they were submitted.
    pub(crate) fn ask(&self) -> Mapping {
        Mapping::ask(&self.rounds.read, self.rounds.read.size())
    }
}

fn place_of(dispatch: usize) -> usize {
    dispatch.min(PLACES - 1)
}

fn ended_early(gpu: &Gpu, kernel: &str) -> Error {
    Error::refused(
        Rule::DeadlineExceeded,
        format!(
            "the loops of kernel `{kernel}` make more rounds than `{}` runs: it ends all loops of a thread, \
             and of the few that run beside it, after about 65,000 rounds in all, and what the kernel stored \
             is void; run it on the cpu device, or with another driver",
            gpu.0.capabilities.description
        ),
    )
}

impl Gpu {
    /// A watch for a batch, of memory that is used again and again.
    pub(crate) fn watch(&self) -> Watch {
        let kept = lock(&self.0.rounds).pop();
        Watch {
            rounds: kept.unwrap_or_else(|| self.new_rounds()),
            dispatches: Vec::new(),
        }
    }

    fn new_rounds(&self) -> Rounds {
        let alignment = u64::from(self.0.limits.min_storage_buffer_offset_alignment);
        let stride = ROUNDS_BYTES.next_multiple_of(alignment.max(4));
        let make = |usage| {
            self.0.device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: stride * PLACES as u64,
                usage: usage | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })
        };
        let rounds = Rounds {
            memory: make(wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC),
            read: make(wgpu::BufferUsages::MAP_READ),
            part: Part::new(&self.0.groups),
            stride,
        };
        self.fill(&rounds);
        rounds
    }

    /// Writes what is to be there before a batch.
    fn fill(&self, rounds: &Rounds) {
        let mut place: Vec<u8> = ROUNDS.iter().flat_map(|word| word.to_le_bytes()).collect();
        place.resize(rounds.stride as usize, 0);
        let all = place.repeat(PLACES);
        self.0.queue.write_buffer(&rounds.memory, 0, &all);
    }

    /// Looks at what the dispatches of a batch said, for which `poll` waits; those whose loops were ended
    /// early have failed.
    pub(crate) fn look_at_rounds(
        &self,
        watch: Watch,
        said: Mapping,
        poll: impl Fn() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Watch { rounds, dispatches } = watch;
        let said = said.look(poll, <[u8]>::to_vec)?;
        let first = |i: usize| place_of(i) * rounds.stride as usize;
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
            self.fill(&rounds);
        }
        lock(&self.0.rounds).push(rounds);
        Ok(())
    }
}
