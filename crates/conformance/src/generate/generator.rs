//! What is known while a kernel is generated, and what its caller lets it use; types, objects and values picked of it.

use invar_ir::{
    AtomicOp, Const, ConstantKey, ElementType, KernelBuilder, Level, Memory, SamplerSource, Scalar,
    StructId, Type, Value,
};
use invar_texture::Sampler;

use super::objects::{AtomicKind, Object, Owner, Phase, Picture};
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

/// What is undone at the end of a block.
pub(super) struct Mark {
    known: usize,
    objects: usize,
    control: Level,
    around: Option<Loop>,
}

impl Generator<'_> {
    pub(super) fn add(&mut self, value: Value, level: Level) {
        let ty = self.k.ty(value);
        let level = level.min(self.control);
        self.known.push(Known { value, ty, level });
    }

    pub(super) fn constant_u32(&mut self, value: u32) -> Value {
        self.k.const_u32(value)
    }

    /// A scalar or vector type of this kernel.
    pub(super) fn simple_type(&mut self) -> Type {
        let scalar = self.random.pick(&self.palette);
        match self.random.below(5) {
            0..=2 => Type::Scalar(scalar),
            _ => Type::Vector(scalar, 2 + self.random.below(3) as u8),
        }
    }

    pub(super) fn element_type(&mut self) -> ElementType {
        let structs = self.k.module().structs.len();
        if structs > 0 && self.random.one_in(4) {
            let id = self.random.below(structs) as u32;
            return ElementType::Struct(StructId(id));
        }
        let floats = self.palette.iter().copied();
        let floats: Vec<Scalar> = floats.filter(|s| s.is_float()).collect();
        if !floats.is_empty() && self.random.one_in(8) {
            let scalar = self.random.pick(&floats);
            let columns = 2 + self.random.below(3) as u8;
            let rows = 2 + self.random.below(3) as u8;
            return ElementType::Value(Type::Matrix {
                scalar,
                columns,
                rows,
            });
        }
        let ty = ElementType::Value(self.simple_type());
        if self.random.one_in(8) {
            let length = 1 + self.random.below(4) as u32;
            return ElementType::Array(ty.into(), length);
        }
        ty
    }

    /// Whether 64-bit integers are allowed.
    pub(super) fn wide(&self) -> bool {
        self.options.scalars.contains(&Scalar::U64)
    }

    /// An integer scalar type of this kernel.
    pub(super) fn integer_type(&mut self) -> Scalar {
        let integers = self.palette.iter().copied();
        let integers: Vec<Scalar> = integers.filter(|s| s.is_integer()).collect();
        self.random.pick(&integers)
    }

    pub(super) fn atomic_kind(&mut self) -> AtomicKind {
        self.random.pick(&[
            AtomicKind::Sum,
            AtomicKind::One(AtomicOp::Min),
            AtomicKind::One(AtomicOp::Max),
            AtomicKind::One(AtomicOp::And),
            AtomicKind::One(AtomicOp::Or),
            AtomicKind::One(AtomicOp::Xor),
        ])
    }

    pub(super) fn object(
        &mut self,
        memory: Memory,
        element: ElementType,
        length: u64,
        owner: Owner,
    ) {
        self.objects.push(Object {
            memory,
            element,
            length,
            owner,
            phase: Phase::Own,
        });
    }

    pub(super) fn choose(&mut self, fits: impl Fn(&Object) -> bool) -> Option<Object> {
        let fitting: Vec<usize> = (0..self.objects.len())
            .filter(|i| fits(&self.objects[*i]))
            .collect();
        if fitting.is_empty() {
            return None;
        }
        let at = self.random.pick(&fitting);
        Some(self.objects[at].clone())
    }

    pub(super) fn random_small(&mut self, count: usize) -> u32 {
        self.random.below(count) as u32
    }

    /// Those known that hold over a threadgroup at least, of this type.
    pub(super) fn uniforms(&self, ty: Type) -> Vec<Known> {
        let known = self.known.iter().copied();
        known
            .filter(|k| k.ty == ty && k.level >= Level::Threadgroup)
            .collect()
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            known: self.known.len(),
            objects: self.objects.len(),
            control: self.control,
            around: self.around.clone(),
        }
    }

    pub(super) fn release(&mut self, mark: Mark) {
        self.known.truncate(mark.known);
        self.objects.truncate(mark.objects);
        self.control = mark.control;
        self.around = mark.around;
    }
}
