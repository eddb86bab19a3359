//! Arguments of a dispatch, and their checks.

use invar_interp::Given;
use invar_ir::{Const, Kernel, ParamKind, Rule};
use invar_texture::Sampler;

use crate::Error;
use crate::bytes::{BufferSlice, ByteBuffer};
use crate::uses::Use;

/// The components of a value: at most those of a 4x4 matrix.
#[derive(Clone, Copy, Debug)]
pub struct Components {
    consts: [Const; 16],
    count: u8,
}

impl Components {
    /// The components in order.
    pub fn as_slice(&self) -> &[Const] {
        &self.consts[..usize::from(self.count)]
    }

    /// The same as it lies in memory (L3).
    #[allow(
        dead_code,
        reason = "the device that needs it may be left out of the build"
    )]
    pub(crate) fn bytes(&self) -> [u8; 128] {
        let mut bytes = [0; 128];
        let mut at = 0;
        for c in self.as_slice() {
            let size = c.scalar.size_bytes() as usize;
            bytes[at..at + size].copy_from_slice(&c.bits.to_le_bytes()[..size]);
            at += size;
        }
        bytes
    }
}

/// An argument, in the place of its parameter.
///
/// ```
/// use invar_runtime::{Arg, Buffer, Device};
///
/// let x = Buffer::from_slice(&Device::checked(), &[1.0f32, 2.0])?;
/// let args = [Arg::from(&x), Arg::from(x.slice(1..2)), Arg::from(3u32), Arg::vector([0.5f32, 2.0])];
/// # let _ = args;
/// # Ok::<(), invar_runtime::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a matrix fits without an allocation for each dispatch"
)]
pub enum Arg<'a> {
    /// A buffer, or a part of one, or a texture, which lies in one.
    Buffer(BufferSlice<'a>),
    /// A `Scalar` parameter's value.
    Scalar(Components),
    /// The length in elements of a threadgroup parameter.
    ThreadgroupLength(u64),
}

impl<'a> Arg<'a> {
    /// A value with these components: one for a scalar, in order for a vector, by columns for a
    /// matrix.
    ///
    /// # Errors
    /// `invalid-argument` if there are more than 16.
    pub fn components(components: &[Const]) -> Result<Arg<'a>, Error> {
        let mut consts = [Const::from(0u32); 16];
        let Some(slots) = consts.get_mut(..components.len()) else {
            return Err(Error::new(
                Rule::InvalidArgument,
                format!(
                    "a value has at most 16 components, not {}",
                    components.len()
                ),
            ));
        };
        slots.copy_from_slice(components);
        Ok(Arg::Scalar(Components {
            consts,
            count: components.len() as u8,
        }))
    }

    /// A vector, or a matrix by columns, of at most 16 components.
    pub fn vector<T: Into<Const>, const N: usize>(components: [T; N]) -> Arg<'a> {
        const { assert!(N <= 16, "a value has at most 16 components") };
        let mut consts = [Const::from(0u32); 16];
        for (slot, component) in consts.iter_mut().zip(components) {
            *slot = component.into();
        }
        Arg::Scalar(Components {
            consts,
            count: N as u8,
        })
    }

    pub(crate) fn given(&self) -> Given<'_> {
        match self {
            Arg::Buffer(slice) => {
                let writable = slice.buffer().memory().writable();
                let size_bytes = slice.size_bytes() as u64;
                match slice.texture() {
                    Some(shape) => Given::Texture {
                        writable,
                        shape,
                        size_bytes,
                    },
                    None => Given::Buffer {
                        writable,
                        holds: slice.buffer().holds(),
                        size_bytes,
                    },
                }
            }
            Arg::Scalar(components) => Given::Scalar(components.as_slice()),
            Arg::ThreadgroupLength(length) => Given::ThreadgroupLength(*length),
        }
    }
}

impl<'a> From<&'a ByteBuffer> for Arg<'a> {
    fn from(buffer: &'a ByteBuffer) -> Arg<'a> {
        Arg::Buffer(buffer.slice(0..buffer.size_bytes()))
    }
}

impl<'a> From<BufferSlice<'a>> for Arg<'a> {
    fn from(slice: BufferSlice<'a>) -> Arg<'a> {
        Arg::Buffer(slice)
    }
}

impl From<Sampler> for Arg<'_> {
    fn from(sampler: Sampler) -> Self {
        Arg::vector(sampler.code())
    }
}

impl From<Const> for Arg<'_> {
    fn from(value: Const) -> Self {
        Arg::vector([value])
    }
}

macro_rules! scalars {
    ($($ty:ty),*) => {
        $(impl From<$ty> for Arg<'_> {
            fn from(value: $ty) -> Self {
                Arg::vector([value])
            }
        })*
    };
}
scalars!(bool, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);

/// What a kernel does with each of its buffers, for the order of dispatches (O3).
pub(crate) fn uses<'a>(kernel: &'a Kernel, args: &'a [Arg<'a>]) -> impl Iterator<Item = Use> + 'a {
    let pairs = kernel.params.iter().zip(args);
    pairs.filter_map(|(param, arg)| use_of(&param.kind, arg))
}

fn use_of(kind: &ParamKind, arg: &Arg) -> Option<Use> {
    let writes = match kind {
        ParamKind::Buffer { access, .. } => access.can_write(),
        ParamKind::Texture(texture) => texture.access.memory().can_write(),
        ParamKind::Constant { .. }
        | ParamKind::Scalar { .. }
        | ParamKind::Threadgroup { .. }
        | ParamKind::Sampler => false,
    };
    match arg {
        Arg::Buffer(slice) => Some(Use {
            addresses: slice.addresses(),
            writes,
        }),
        Arg::Scalar(_) | Arg::ThreadgroupLength(_) => None,
    }
}

/// Refuses arguments that overlap where one may be written (S3).
pub(crate) fn check_overlap(kernel: &Kernel, args: &[Arg]) -> Result<(), Error> {
    let use_at = |i: usize| use_of(&kernel.params[i].kind, &args[i]);
    for second in 1..args.len() {
        let Some(b) = use_at(second) else { continue };
        for first in 0..second {
            if let Some(a) = use_at(first)
                && a.conflicts(&b)
            {
                let written = if b.writes { second } else { first };
                return Err(Error::new(
                    Rule::OverlappingBuffers,
                    format!(
                        "arguments `{}` and `{}` of `{}` overlap in memory, and the kernel may write \
                         `{}`: give each a buffer of its own",
                        kernel.params[first].name,
                        kernel.params[second].name,
                        kernel.name,
                        kernel.params[written].name,
                    ),
                ));
            }
        }
    }
    Ok(())
}
