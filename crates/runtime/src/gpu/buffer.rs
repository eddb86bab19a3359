//! Memory on a GPU, and the way to it and back.

use std::fmt;

use invar_ir::{Const, Rule};

use super::bind_groups::BindingId;
use super::handle::{Gpu, guarded, wait_for};
use super::mapping::Mapping;
use crate::Error;
use crate::proof::KnownArgument;
use crate::sync::lock;

/// Memory on a GPU. A dispatch that uses it keeps it alive.
pub struct GpuBuffer {
    pub(crate) gpu: Gpu,
    pub(crate) memory: wgpu::Buffer,
    pub(crate) binding: BindingId,
    size_bytes: u64,
}

/// Bytes are moved in words, and a last group of elements is read whole.
pub(crate) fn padded(size_bytes: u64) -> u64 {
    size_bytes.next_multiple_of(16).max(16)
}

impl fmt::Debug for GpuBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "buffer of {} bytes on {:?}", self.size_bytes, self.gpu)
    }
}

impl Gpu {
    /// Memory of zeros (I1).
    ///
    /// # Errors
    /// `out-of-memory`, also for more than a kernel of this GPU can be given.
    pub fn buffer(&self, size_bytes: u64) -> Result<GpuBuffer, Error> {
        self.check_process()?;
        let usage = wgpu::BufferUsages::STORAGE
            | wgpu::BufferUsages::COPY_SRC
            | wgpu::BufferUsages::COPY_DST;
        let most = self.0.capabilities.buffer_bytes;
        if size_bytes > most {
            return Err(Error::new(
                Rule::OutOfMemory,
                format!(
                    "a buffer of {size_bytes} bytes is larger than the {most} that the GPU `{}` takes",
                    self.0.capabilities.description
                ),
            ));
        }
        let memory = guarded(|| self.allocate(padded(size_bytes), usage))?;
        Ok(GpuBuffer {
            gpu: self.clone(),
            memory,
            binding: BindingId::new(&self.0.groups),
            size_bytes,
        })
    }

    pub(crate) fn allocate(
        &self,
        size: u64,
        usage: wgpu::BufferUsages,
    ) -> Result<wgpu::Buffer, Error> {
        let device = &self.0.device;
        let memory_scope = device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let validation_scope = device.push_error_scope(wgpu::ErrorFilter::Validation);
        let memory = device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage,
            mapped_at_creation: false,
        });
        let invalid = wait_for(validation_scope.pop());
        let none_left = wait_for(memory_scope.pop());
        match none_left.or(invalid) {
            // A device that was lost makes nothing, and says nothing of it.
            None => self.check().map(|()| memory),
            Some(error) => Err(Error::new(
                Rule::OutOfMemory,
                format!(
                    "the GPU `{}` has no memory for a buffer of {size} bytes: {error}",
                    self.0.capabilities.description
                ),
            )),
        }
    }

    /// Memory that holds these bytes.
    ///
    /// # Errors
    /// As [`Gpu::buffer`].
    pub fn buffer_from(&self, bytes: &[u8]) -> Result<GpuBuffer, Error> {
        let buffer = self.buffer(bytes.len() as u64)?;
        buffer.write(bytes)?;
        Ok(buffer)
    }
}

/// How much is moved at a time, so that the memory in between stays small.
const STAGING_BYTES: u64 = 64 << 20;
impl GpuBuffer {
    /// Its size in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Replaces its first bytes; dispatches recorded afterwards see them.
    ///
    /// # Errors
    /// `invalid-argument` if it does not hold so many; an earlier failure of the GPU.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        if bytes.len() as u64 > self.size_bytes {
            return Err(Error::new(
                Rule::InvalidArgument,
                format!(
                    "{} bytes do not fit a buffer of {}",
                    bytes.len(),
                    self.size_bytes
                ),
            ));
        }
        // What was recorded before must run before.
        self.gpu.flush()?;
        guarded(|| {
            let queue = &self.gpu.0.queue;
            for (i, chunk) in bytes.chunks(STAGING_BYTES as usize).enumerate() {
                let at = i as u64 * STAGING_BYTES;
                let whole = chunk.len() / 4 * 4;
                if whole > 0 {
                    queue.write_buffer(&self.memory, at, &chunk[..whole]);
                }
                if whole < chunk.len() {
                    let mut word = [0; 4];
                    word[..chunk.len() - whole].copy_from_slice(&chunk[whole..]);
                    queue.write_buffer(&self.memory, at + whole as u64, &word);
                }
                // Writing takes memory until something is submitted.
                queue.submit([]);
            }
            self.gpu.check()
        })
    }

    /// Its contents, as the dispatches recorded so far leave them.
    ///
    /// # Errors
    /// A failure of the GPU.
    pub fn read(&self) -> Result<Vec<u8>, Error> {
        let mut out = vec![0; self.size_bytes as usize];
        self.read_into(&mut out)?;
        Ok(out)
    }

    /// Copies its first bytes, as the dispatches recorded so far leave them.
    ///
    /// # Errors
    /// `invalid-argument` if it does not hold so many; a failure of the GPU.
    pub fn read_into(&self, out: &mut [u8]) -> Result<(), Error> {
        if out.len() as u64 > self.size_bytes {
            return Err(Error::new(
                Rule::InvalidArgument,
                format!(
                    "a buffer of {} bytes does not hold {}",
                    self.size_bytes,
                    out.len()
                ),
            ));
        }
        self.gpu.flush()?;
        guarded(|| {
            for (i, part) in out.chunks_mut(STAGING_BYTES as usize).enumerate() {
                let size = (part.len() as u64).next_multiple_of(4);
                let staging = self.gpu.staging(size)?;
                let device = &self.gpu.0.device;
                let mut encoder =
                    device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
                let at = i as u64 * STAGING_BYTES;
                encoder.copy_buffer_to_buffer(&self.memory, at, &staging, 0, size);
                self.gpu.0.queue.submit([encoder.finish()]);
                Mapping::ask(&staging, size).look(
                    || self.gpu.poll(None),
                    |view| part.copy_from_slice(&view[..part.len()]),
                )?;
                lock(&self.gpu.0.staging).push(staging);
            }
            self.gpu.wait_for_watched()
        })
    }
}

impl Gpu {
    /// Memory that both sides see, used again and again.
    fn staging(&self, size: u64) -> Result<wgpu::Buffer, Error> {
        let mut kept = lock(&self.0.staging);
        let free = kept.iter().position(|b| b.size() >= size);
        if let Some(free) = free {
            return Ok(kept.swap_remove(free));
        }
        // A larger one takes the place of the small ones.
        kept.clear();
        drop(kept);
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        self.allocate(size.next_power_of_two(), usage)
    }
}

/// An argument, in the place of its parameter.
#[derive(Clone, Copy, Debug)]
pub enum GpuArg<'a> {
    /// Memory on the GPU.
    Buffer(&'a GpuBuffer),
    /// The components of a `Scalar` parameter.
    Scalar(&'a [Const]),
    /// The length in elements of a threadgroup parameter.
    ThreadgroupLength(u64),
}

impl From<&GpuArg<'_>> for KnownArgument {
    fn from(arg: &GpuArg<'_>) -> KnownArgument {
        match arg {
            GpuArg::Buffer(buffer) => KnownArgument::Bytes(buffer.size_bytes()),
            GpuArg::Scalar([one]) => KnownArgument::Value(Some(*one)),
            GpuArg::Scalar(_) => KnownArgument::Value(None),
            GpuArg::ThreadgroupLength(length) => KnownArgument::Elements(*length),
        }
    }
}
