//! Dispatches on arguments that lie in the host's memory, as the reference machine takes them.

use invar_interp::Arg as HostArg;
use invar_interp::{Dispatch, Given, check_arguments};

use crate::{Arg, ByteBuffer, Error, Program, Queue, Submission};

impl Queue {
    /// Runs a dispatch on the arguments of the reference machine, and waits for it: buffers are used
    /// in place where their addresses suit the elements, else through copies.
    ///
    /// ```
    /// use invar_interp::Arg;
    /// use invar_ir::{text, verify};
    /// use invar_runtime::{Device, Dispatch};
    ///
    /// let source = "
    ///     kernel @negate(%x: device read_write i32) {
    ///         %i = thread_position_in_grid x
    ///         %v = load %x[%i]
    ///         %w = neg %v
    ///         store %x[%i], %w
    ///     }";
    /// let device = Device::default()?;
    /// let program = device.compile(&verify(text::parse("negate.inv", source)?)?, "negate")?;
    /// let mut x: Vec<u8> = [1i32, -2, 3].iter().flat_map(|v| v.to_ne_bytes()).collect();
    /// let mut args = [Arg::Buffer(&mut x)];
    /// device.queue().run_host(&program, Dispatch::linear(3, 32), &mut args)?;
    /// assert_eq!(x[4..8], 2i32.to_ne_bytes());
    /// # Ok::<(), invar_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Queue::dispatch`]. What goes wrong while it runs is told by the submission, which has
    /// ended.
    pub fn run_host(
        &self,
        program: &Program,
        dispatch: Dispatch,
        args: &mut [HostArg],
    ) -> Result<Submission, Error> {
        let device = self.device();
        let alignments = program.alignments();
        // Before a buffer is made of anything: with the wrong number of arguments nothing pairs up.
        check_arguments(
            program.module(),
            program.kernel(),
            args.iter().map(Given::from),
            device.capabilities().threadgroup_memory_bytes,
        )?;
        let mut buffers: Vec<(Option<ByteBuffer>, bool)> = Vec::with_capacity(args.len());
        for (arg, align) in args.iter_mut().zip(alignments) {
            buffers.push(match memory_of(arg) {
                HostArg::Buffer(bytes) => lend(self, bytes, *align)?,
                HostArg::OwnedBuffer(bytes) => lend(self, bytes, *align)?,
                HostArg::ReadBuffer(bytes) if is_aligned(bytes, *align) => {
                    let start = bytes.as_ptr().cast_mut();
                    // SAFETY: borrowed until after the dispatch has ended, and only read.
                    let lent = unsafe { ByteBuffer::from_raw(device, start, bytes.len(), false) }?;
                    (Some(lent), false)
                }
                HostArg::ReadBuffer(bytes) => (Some(copied(self, bytes)?), false),
                HostArg::Scalar(_) | HostArg::ThreadgroupLength(_) | HostArg::Texture(..) => {
                    (None, false)
                }
            });
        }
        let mut list = Vec::with_capacity(args.len());
        for (arg, (buffer, _)) in args.iter().zip(&buffers) {
            list.push(match (arg, buffer) {
                (HostArg::Scalar(components), _) => Arg::components(components)?,
                (HostArg::ThreadgroupLength(length), _) => Arg::ThreadgroupLength(*length),
                (
                    HostArg::Buffer(_) | HostArg::OwnedBuffer(_) | HostArg::ReadBuffer(_),
                    Some(buffer),
                ) => Arg::from(buffer),
                (HostArg::Texture(shape, _), Some(buffer)) => buffer.as_texture(*shape),
                (
                    HostArg::Buffer(_)
                    | HostArg::OwnedBuffer(_)
                    | HostArg::ReadBuffer(_)
                    | HostArg::Texture(..),
                    None,
                ) => unreachable!("every buffer was lent or copied"),
            });
        }
        let submission = self.dispatch_and_wait(program, dispatch, &list)?;
        for (arg, (buffer, copy)) in args.iter_mut().zip(&buffers) {
            if let (true, Some(buffer)) = (*copy, buffer) {
                match memory_of(arg) {
                    HostArg::Buffer(bytes) => buffer.read_bytes(0, bytes)?,
                    HostArg::OwnedBuffer(bytes) => buffer.read_bytes(0, bytes)?,
                    HostArg::ReadBuffer(_)
                    | HostArg::Scalar(_)
                    | HostArg::ThreadgroupLength(_)
                    | HostArg::Texture(..) => {}
                }
            }
        }
        Ok(submission)
    }
}

/// The memory of a texture; any other argument itself.
fn memory_of<'m, 'a>(arg: &'m mut HostArg<'a>) -> &'m mut HostArg<'a> {
    match arg {
        HostArg::Texture(_, memory) => memory_of(memory),
        other => other,
    }
}

fn is_aligned(bytes: &[u8], align: u64) -> bool {
    (bytes.as_ptr() as u64).is_multiple_of(align)
}

/// A buffer in place of these bytes, or a copy to be copied back.
fn lend(queue: &Queue, bytes: &mut [u8], align: u64) -> Result<(Option<ByteBuffer>, bool), Error> {
    if !is_aligned(bytes, align) {
        return Ok((Some(copied(queue, bytes)?), true));
    }
    // SAFETY: borrowed exclusively until after the dispatch has ended.
    let lent =
        unsafe { ByteBuffer::from_raw(queue.device(), bytes.as_mut_ptr(), bytes.len(), true) }?;
    Ok((Some(lent), false))
}

fn copied(queue: &Queue, bytes: &[u8]) -> Result<ByteBuffer, Error> {
    let buffer = ByteBuffer::zeroed(queue.device(), bytes.len())?;
    buffer.write_bytes(0, bytes)?;
    Ok(buffer)
}
