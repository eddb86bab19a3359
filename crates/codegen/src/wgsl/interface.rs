//! What the writer is told, and what it tells a host of the module that it has written: its bindings, its constants
//! and the parts of a dispatch.

#[cfg(doc)]
use invar_ir::Kernel;
use invar_ir::texture::Sampler;
use invar_ir::{Binding as Place, Const, Type};
use invar_texture::PixelFormat;

use crate::analysis::order::LaunchOrder;

/// Which products of matrices of 8 rows and columns a target has: the type of the factors and that of the sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CooperativeMatrices {
    /// Of `f32`.
    pub f32: bool,
    /// Of `f16`.
    pub f16: bool,
    /// Of `f16`, with a sum in `f32`.
    pub f16_in_f32: bool,
}

impl CooperativeMatrices {
    /// All of them.
    pub const ALL: CooperativeMatrices = CooperativeMatrices {
        f32: true,
        f16: true,
        f16_in_f32: true,
    };

    /// Whether it has any.
    pub fn any(self) -> bool {
        self.f32 || self.f16 || self.f16_in_f32
    }
}

/// What the target can do beyond the core of WGSL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Features {
    /// 64-bit integers.
    pub int64: bool,
    /// Every atomic on 64-bit integers in buffers.
    pub int64_atomics: bool,
    /// Subgroups, all of this size. Without, or where a kernel needs another size, lanes exchange
    /// values through threadgroup memory.
    pub subgroup_size: Option<u32>,
    /// The `@coherent` attribute on buffers.
    pub coherent: bool,
    /// The type `f16`, in buffers too.
    pub f16: bool,
    /// Cooperative matrices of subgroups of [`Features::subgroup_size`].
    pub cooperative_matrices: CooperativeMatrices,
    /// What the invocations of a workgroup with barriers must be a multiple of, if anything. Mesa's
    /// processor device runs invocations in vectors, and a last one that is not full may leave the
    /// kernel at a loop with barriers in a branch that is not taken.
    pub barrier_multiple: Option<u32>,
    /// Whether the driver leaves loops after some number of iterations, though their conditions hold: then a
    /// kernel with loops says when that has happened ([`Bound::IterationGuard`]).
    pub ends_loops: bool,
    /// How an `fma` of `f32` is rounded once.
    pub fma: Fma,
    /// Whether the driver is told to leave every operation on floats as it is written. Elsewhere it may cancel
    /// and reassociate, and sums whose terms cancel are written so that it does not see it.
    pub keeps_floats: bool,
    /// Whether simdgroup matrices in plain code stay in variables, which functions fill and read where they
    /// lie. Of arrays that go by value, or that begin as zero in each iteration of a loop, Mesa's compiler for
    /// processors takes every entry for a value of its own, and compiles products of tiles for minutes;
    /// NVIDIA's makes faster code of these than of what is pointed to.
    pub matrices_in_place: bool,
    /// Whether thread arrays of more than [`CLEARED_SLOTS`](super::CLEARED_SLOTS) elements are cleared where they are declared, so
    /// that the driver may let them begin as anything.
    pub clears_arrays: bool,
    /// Whether the driver takes a product or a quotient of a zero that it knows for zero, though the other
    /// operand may be infinite or no number, as Mesa's compiler for processors does; zeros then come from bits
    /// that no driver knows.
    pub hides_zeros: bool,
    /// Whether the driver follows what decides a branch down to constants and uniforms, a value anew at each
    /// use, as Mesa's compilers do: what is used twice, many times over, is then written so that the driver
    /// follows it no further.
    pub follows_uniforms: bool,
    /// Whether the driver compares what was extended with its sign to 64 bits wrongly with constants, as Mesa
    /// 22's compilers do; no driver then knows what was extended.
    pub hides_extensions: bool,
}

/// How an `fma` of `f32` is rounded once. WGSL lets its own iteration the product too, and expansions (A10) leave
/// their bounds then. Where it is by code of ours, sums whose terms cancel are too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fma {
    /// The target's own is, as those of GPUs are.
    #[default]
    Fused,
    /// By code of ours with `f64` and 64-bit integers, which the target then has.
    InF64,
    /// By code of ours with integers of 32 bits.
    InIntegers,
}

impl Features {
    /// What the GPUs of desktops and servers have, with subgroups of 32.
    pub const DESKTOP: Features = Features {
        int64: true,
        int64_atomics: true,
        subgroup_size: Some(32),
        coherent: true,
        f16: true,
        cooperative_matrices: CooperativeMatrices {
            f32: false,
            f16: false,
            f16_in_f32: false,
        },
        barrier_multiple: None,
        ends_loops: false,
        fma: Fma::Fused,
        keeps_floats: false,
        matrices_in_place: false,
        clears_arrays: false,
        hides_zeros: false,
        follows_uniforms: false,
        hides_extensions: false,
    };
}

/// How to write a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WgslOptions {
    /// What the target can do.
    pub features: Features,
    /// The nominal threadgroup size; WGSL fixes it when a kernel is compiled.
    pub threadgroup_size: [u32; 3],
    /// Lanes of a simdgroup, for kernels that require no size of their own: a power of two from 4 to
    /// 128.
    pub simdgroup_size: u32,
    /// The length in elements of each threadgroup parameter, in their order; WGSL fixes these too.
    pub threadgroup_lengths: Vec<u64>,
    /// Whether the grid is a multiple of the threadgroup size, so that no threadgroup is smaller.
    pub full_threadgroups: bool,
    /// How many threadgroups in x one workgroup is to run, if the kernel can be coarsened
    /// ([`coarsen`](crate::passes::coarsen::coarsen)).
    pub threadgroups_per_workgroup: u32,
    /// How many threads of a threadgroup one invocation is to run, if the kernel has barriers and its
    /// threads can be dealt so ([`coarsen_threads`](crate::passes::coarsen::coarsen_threads)); needs full threadgroups.
    pub threads_per_invocation: u32,
    /// Whether to write out loops over rows of buffers ([`unroll`](crate::passes::rows::unroll)).
    pub unroll_rows: bool,
    /// Whether parameters stand where they say that a host binds them; else everything is numbered in group 0.
    pub keep_bindings: bool,
    /// The formats of textures that are written, by their places.
    pub texture_formats: Vec<(usize, PixelFormat)>,
    /// `Scalar` parameters of which every dispatch gives this value ([`fix_scalars`](crate::passes::rows::fix_scalars)).
    pub fixed_scalars: Vec<(usize, Const)>,
    /// Whether accesses to elements are guarded. Without guards one out of bounds is undefined: for kernels of which
    /// it is proved that none is. Where threads beyond the edge of the grid go along, guards stay.
    pub guards: bool,
}

impl WgslOptions {
    /// For a target with those features and a threadgroup size; simdgroups are as large as the target's
    /// subgroups, or of 32.
    pub fn new(features: Features, threadgroup_size: [u32; 3]) -> WgslOptions {
        WgslOptions {
            features,
            threadgroup_size,
            simdgroup_size: features.subgroup_size.unwrap_or(32),
            threadgroup_lengths: Vec::new(),
            full_threadgroups: false,
            threadgroups_per_workgroup: 1,
            threads_per_invocation: 1,
            unroll_rows: false,
            keep_bindings: false,
            texture_formats: Vec::new(),
            fixed_scalars: Vec::new(),
            guards: true,
        }
    }
}

/// A kernel as WGSL, and what a host must know to run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The WGSL module.
    pub text: String,
    /// The name of its entry point.
    pub entry_point: String,
    /// What is bound; in group 0, in the order of the bindings, unless the options keep those of parameters.
    pub bindings: Vec<Binding>,
    /// What the uniform buffer holds that [`Bound::Constants`] names.
    pub constants: Constants,
    /// Threads of a workgroup, which has one dimension.
    pub workgroup_threads: u32,
    /// How many threadgroups in x a workgroup runs: as many as the options ask for, or one.
    pub threadgroups_per_workgroup: u32,
    /// The order in which workgroups are launched. Where it is column-major, the sizes given to [`dispatch_parts`], and the
    /// positions that it gives, are in the order y, x, z.
    pub launch_order: LaunchOrder,
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u64,
    /// Lanes of a simdgroup (X2).
    pub simdgroup_size: u32,
    /// Whether it uses subgroup functions, so that the target's subgroups must have exactly that size.
    pub uses_subgroups: bool,
    /// Whether accesses to elements are guarded, as where the options say so.
    pub guards: bool,
}

/// A binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Where it stands.
    pub place: Place,
    /// What to bind.
    pub bound: Bound,
    /// Whether it is bound as read-write storage; else as read-only storage, the constants as uniform. Of a texture,
    /// whether it is one of storage.
    pub writable: bool,
}

/// What is bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The buffer, texture or sampler given for a parameter, by its place in [`Kernel::params`].
    Param(usize),
    /// A sampler that the kernel says.
    Sampler(Sampler),
    /// The contents of a program-scope constant.
    Contents(Vec<u8>),
    /// The hidden constants.
    Constants,
    /// [`ITERATION_GUARD`](super::ITERATION_GUARD), of this dispatch alone; the results are void if the first word is not 0 in the end.
    IterationGuard,
}

/// The layout of the hidden constants: little-endian words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constants {
    /// What follows the ten words of [`Launch`]'s sizes and part, in order.
    pub(super) fields: Vec<Field>,
    /// Size in bytes, a multiple of 16.
    pub size_bytes: u64,
}

/// One parameter's part of the hidden constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// The length of a buffer parameter, one word.
    Length(usize),
    /// The components of a scalar parameter: a word each, two of 64-bit ones.
    Scalar(usize, Type),
}

/// What a dispatch says of a parameter.
#[derive(Clone, Copy, Debug)]
pub enum Given<'a> {
    /// The number of elements bound to it.
    Elements(u64),
    /// Its components.
    Scalar(&'a [Const]),
}

/// A part of a dispatch that a target can launch at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DispatchPart {
    /// The position of its first threadgroup, in the order of the launch.
    pub first_threadgroup: [u32; 3],
    /// How many workgroups to launch in each dimension.
    pub workgroups: [u32; 3],
    /// Where a long line of threadgroups is folded into rows of workgroups: threadgroups of a row, else
    /// 0. The workgroups beyond the end of the line do nothing.
    pub row: u32,
}

/// The parts of a grid of threadgroups for a target that launches at most `limit` in each dimension; none
/// of an empty grid. A line is folded, and any other grid that is too large is split.
///
/// ```
/// use invar_codegen::wgsl::dispatch_parts;
///
/// assert_eq!(dispatch_parts([100, 2, 1], 65535).len(), 1);
/// let line = dispatch_parts([70_000, 1, 1], 65535);
/// assert_eq!((line[0].workgroups, line[0].row), ([35_000, 2, 1], 35_000));
/// assert_eq!(dispatch_parts([70_000, 2, 1], 65535).len(), 2);
/// ```
pub fn dispatch_parts(threadgroups: [u32; 3], limit: u32) -> Vec<DispatchPart> {
    if threadgroups.contains(&0) {
        return Vec::new();
    }
    let limit = limit.max(1);
    let [length, height, depth] = threadgroups;
    if length > limit && height == 1 && depth == 1 && length.div_ceil(limit) <= limit {
        let rows = length.div_ceil(limit);
        let row = length.div_ceil(rows);
        return vec![DispatchPart {
            first_threadgroup: [0; 3],
            workgroups: [row, rows, 1],
            row,
        }];
    }
    let pieces =
        |n: u32| (0..n.div_ceil(limit)).map(move |i| (i * limit, limit.min(n - i * limit)));
    let mut out = Vec::new();
    for (z, deep) in pieces(depth) {
        for (y, high) in pieces(height) {
            for (x, long) in pieces(length) {
                out.push(DispatchPart {
                    first_threadgroup: [x, y, z],
                    workgroups: [long, high, deep],
                    row: 0,
                });
            }
        }
    }
    out
}

/// A part of a dispatch.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// Threads of the whole grid in each dimension.
    pub threads: [u32; 3],
    /// Threadgroups of the whole grid in each dimension.
    pub threadgroups: [u32; 3],
    /// Which threadgroups: one of [`dispatch_parts`].
    pub part: DispatchPart,
    /// What is given for each parameter.
    pub given: &'a [Given<'a>],
}

/// The most elements that a buffer may have: WGSL indexes by `u32`, and one index stands for those
/// that are out of bounds.
pub const MAX_ELEMENTS: u64 = u32::MAX as u64 - 1;

impl Constants {
    /// The bytes of the uniform buffer for a part of a dispatch.
    ///
    /// # Panics
    /// If `launch` gives another kind of thing for a parameter than the kernel declares, or a buffer of
    /// more than [`MAX_ELEMENTS`] elements.
    pub fn bytes(&self, launch: &Launch<'_>) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.size_bytes as usize);
        let mut push = |word: u32| bytes.extend_from_slice(&word.to_le_bytes());
        for size in [
            launch.threads,
            launch.threadgroups,
            launch.part.first_threadgroup,
        ] {
            size.into_iter().for_each(&mut push);
        }
        push(launch.part.row);
        for field in &self.fields {
            match (*field, launch.given.iter().copied()) {
                (Field::Length(i), mut given) => match given.nth(i) {
                    Some(Given::Elements(n)) if n <= MAX_ELEMENTS => push(n as u32),
                    other => panic!("parameter {i} has no length, but {other:?}"),
                },
                (Field::Scalar(i, ty), mut given) => match given.nth(i) {
                    Some(Given::Scalar(parts)) if parts.len() == ty.component_count() as usize => {
                        for part in parts {
                            push(part.bits as u32);
                            if part.scalar.size_bytes() == 8 {
                                push((part.bits >> 32) as u32);
                            }
                        }
                    }
                    other => panic!("parameter {i} has no value of type {ty}, but {other:?}"),
                },
            }
        }
        bytes.resize(self.size_bytes as usize, 0);
        bytes
    }
}
