//! What the writer is told, and what it tells of the text that it has written.

use invar_ir::ops::{Op, Signature};

/// A version of the language.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Language {
    /// Metal 3.0: macOS 13, iOS 16.
    Metal3_0,
    /// Metal 3.1: bfloat.
    Metal3_1,
    /// Metal 3.2: fences and coherent buffers, so memory orders beyond relaxed.
    #[default]
    Metal3_2,
}

/// How async copies are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AsyncCopies {
    /// By the simdgroup's lanes, together.
    #[default]
    Expanded,
    /// By the copy engine of Apple's GPUs of family 9 and newer where all of a copy is inside its memory.
    /// The functions are not documented, and newer compilers of source text refuse them.
    Apple9Extern,
}

/// How to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MslOptions {
    /// Version of the language.
    pub language: Language,
    /// How async copies are made.
    pub async_copies: AsyncCopies,
    /// Whether accesses are guarded. Without guards an access out of bounds is undefined: for kernels of which it is
    /// proved that none is, and for measuring what guards cost. Where threads outside the grid go along, guards stay.
    pub guards: bool,
    /// The threadgroup size, if the host knows it and the kernel does not fix one.
    pub threadgroup_size: Option<[u32; 3]>,
    /// The length in elements of each threadgroup parameter, in their order, as far as the host knows them.
    pub threadgroup_lengths: Vec<u64>,
    /// Whether the grid is a multiple of the threadgroup size, so that no threadgroup is smaller.
    pub full_threadgroups: bool,
    /// Whether the host launches whole threadgroups only, so that at the edge of the grid there may be threads
    /// outside it (X2).
    pub whole_threadgroups: bool,
    /// Whether the device keeps every promise of `ieee-float` (A9), subnormal numbers above all. Without it
    /// kernels in `strict` mode are refused.
    pub ieee_float: bool,
    /// Every buffer's address is a multiple of this many bytes.
    pub buffer_alignment: u32,
}

impl Default for MslOptions {
    fn default() -> MslOptions {
        MslOptions {
            language: Language::default(),
            async_copies: AsyncCopies::default(),
            guards: true,
            threadgroup_size: None,
            threadgroup_lengths: Vec::new(),
            full_threadgroups: false,
            whole_threadgroups: false,
            ieee_float: false,
            buffer_alignment: 16,
        }
    }
}

/// Where a parameter is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A buffer, or a scalar parameter's bytes (L3), at this `[[buffer]]` index.
    Buffer(u32),
    /// Threadgroup memory at this `[[threadgroup]]` index; its size in bytes is the length times the
    /// element's, rounded up to a multiple of 16.
    Threadgroup(u32),
    /// A texture, at this `[[texture]]` index.
    Texture(u32),
    /// A sampler, at this `[[sampler]]` index.
    Sampler(u32),
}

/// The hidden constant buffer: one `ulong` for each of these parameters, its number of elements; then, where the
/// kernel needs it, the grid's size in threads, three `uint`. It ends at a multiple of 8 bytes if there are both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// Its `[[buffer]]` index.
    pub buffer: u32,
    /// The parameters, by their place in the kernel.
    pub params: Vec<u32>,
    /// Whether the grid's size follows.
    pub grid: bool,
}

/// What Metal tells a thread of its place: an attribute of a kernel's argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Input(pub(super) Op);

impl Input {
    /// The attribute, which is the argument's name as well.
    pub fn attribute(self) -> &'static str {
        self.0.name()
    }

    /// Whether it is a `uint3`; else a `uint`.
    pub fn has_dimensions(self) -> bool {
        matches!(self.0.row().signature, Signature::QueryDim)
    }
}

/// A kernel as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The text.
    pub text: String,
    /// The name of the function in it.
    pub entry: String,
    /// Where each parameter is bound, in the order of the kernel's parameters.
    pub arguments: Vec<Argument>,
    /// The hidden constant buffer, if the kernel needs one.
    pub lengths: Option<Lengths>,
    /// The function's further arguments, in order.
    pub inputs: Vec<Input>,
    /// A threadgroup's number of threads must be a multiple of 32, also at the edges of the grid: the
    /// kernel uses simdgroup matrices, which Metal does not define for partial simdgroups (X6). Where whole
    /// threadgroups are launched, threads outside the grid fill theirs.
    pub full_simdgroups: bool,
    /// Bytes of threadgroup memory that the function declares itself (S4).
    pub threadgroup_bytes: u64,
    /// Whether accesses are guarded, as where the options say so.
    pub guards: bool,
}
