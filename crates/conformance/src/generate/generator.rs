//! What is known while a kernel is generated, and what its caller lets it use.

use invar_ir::{Const, ConstantKey, KernelBuilder, Level, SamplerSource, Scalar, Type, Value};
use invar_texture::Sampler;

use super::memory::Object;
use super::textures::Picture;
use crate::case::Data;
use crate::random::Random;

/// How far floats go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floats {
    /// Every operation, every value: for devices that claim `ieee-float`.
    Ieee,
    /// Small integers held in floats, with operations that are exact on them; what comes out becomes
    /// an integer. No device may differ.
    Exact,
    /// None.
    None,
}

/// What generated kernels may use.
#[derive(Clone, Debug)]
pub struct Options {
    /// About how many instructions; what collectives, indices and sinks need comes on top.
    pub instructions: usize,
    /// How far floats go.
    pub floats: Floats,
    /// Scalar types that may be used. `bool`, `i32` and `u32` always are.
    pub scalars: Vec<Scalar>,
    /// The simdgroup size that kernels with simdgroup and quadgroup functions require; without one
    /// there are no such kernels.
    pub simdgroup_size: Option<u32>,
    /// Simdgroup matrices, of small integers, and async copies (with a simdgroup size only).
    pub matrices_and_async_copies: bool,
    /// Atomics.
    pub atomics: bool,
    /// Copies by one thread.
    pub copies: bool,
    /// Atomics on 64-bit integers.
    pub wide_atomics: bool,
    /// Textures; without [`Floats::Ieee`] of integers only, which are read.
    pub textures: bool,
    /// Orders beyond `relaxed`, on a thread's own elements.
    pub memory_orders: bool,
    /// The most threads of a threadgroup.
    pub threads_per_threadgroup: u32,
    /// Bytes that the threadgroup arrays of a kernel may take together, parameters included.
    pub threadgroup_bytes: u64,
}

impl Default for Options {
    /// Everything but textures, which no writer of shading languages takes.
    fn default() -> Options {
        Options {
            instructions: 60,
            floats: Floats::Ieee,
            scalars: Scalar::ALL.to_vec(),
            simdgroup_size: Some(32),
            matrices_and_async_copies: true,
            atomics: true,
            copies: true,
            wide_atomics: true,
            textures: false,
            memory_orders: true,
            threads_per_threadgroup: 256,
            threadgroup_bytes: 60 << 10,
        }
    }
}

/// Elements of a plain output that belong to one thread.
pub(super) const STRIDE: u32 = 12;
/// How many instructions more there may be where threads may return one by one.
pub(super) const AFTER: usize = 6;

/// A value in reach, and over whom it is certainly uniform.
#[derive(Clone, Copy)]
pub(super) struct Known {
    pub(super) value: Value,
    pub(super) ty: Type,
    pub(super) level: Level,
}

/// The innermost loop.
#[derive(Clone)]
pub(super) struct Loop {
    /// Types of the values carried after the counter.
    pub(super) carried: Vec<Type>,
    /// Of a `loop`, the counter, which is carried first.
    pub(super) counter: Option<Value>,
    /// Over whom control is the same in its body.
    pub(super) control: Level,
}

pub(super) struct Generator<'o> {
    pub(super) k: KernelBuilder,
    pub(super) random: Random,
    pub(super) options: &'o Options,
    /// Scalars of this kernel, a few of those allowed.
    pub(super) palette: Vec<Scalar>,
    pub(super) known: Vec<Known>,
    pub(super) objects: Vec<Object>,
    pub(super) pictures: Vec<Picture>,
    /// Samplers of the launch.
    pub(super) samplers: Vec<(SamplerSource, Sampler)>,
    /// Over whom control is the same here.
    pub(super) control: Level,
    pub(super) around: Option<Loop>,
    /// Whether threads may return one by one, since nothing collective follows.
    pub(super) tail: bool,
    pub(super) budget: usize,
    /// Many numbers are near the ends of their types.
    pub(super) about_ends: bool,
    /// A full threadgroup.
    pub(super) size: [u32; 3],
    /// Its threads.
    pub(super) threads: u32,
    /// The simdgroup size that this kernel requires.
    pub(super) simdgroup: Option<u32>,
    /// Number of the thread in the grid, of its threadgroup, and of the thread in it.
    pub(super) thread: Value,
    pub(super) group: Value,
    pub(super) lane: Value,
    pub(super) data: Vec<Data>,
    pub(super) constants: Vec<(ConstantKey, Const)>,
}
