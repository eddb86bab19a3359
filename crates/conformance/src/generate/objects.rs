//! Memory objects and textures of a kernel: who may touch which of their elements.

use invar_ir::{AtomicOp, ElementType, Memory, TextureType};
use invar_texture::TextureShape;

/// Elements of a plain output that belong to one thread.
pub(super) const STRIDE: u32 = 12;

/// Atomics that commute with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AtomicKind {
    Sum,
    One(AtomicOp),
}

/// Whose the elements of an object are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// No thread writes it.
    Input,
    /// Thread memory.
    Thread,
    /// A buffer of which each thread has `STRIDE` elements.
    Device { readable: bool },
    /// A threadgroup array of which each thread has some elements.
    Threadgroup { stride: u32 },
    /// An imageblock, of which each thread has the element at its position.
    Imageblock,
    /// A buffer on which all threads do atomics of one kind.
    DeviceAtomic(AtomicKind),
    /// A threadgroup array on which all threads do atomics of one kind.
    ThreadgroupAtomic(AtomicKind),
}

/// Who may do what at this point of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Each thread reads and writes its own.
    Own,
    /// All threads of the threadgroup read what is the threadgroup's, none writes.
    Shared,
    /// All threads of the simdgroup read what is the simdgroup's, none writes.
    SharedInSimdgroup,
    /// No thread does anything.
    Closed,
}

#[derive(Clone, Debug)]
pub(super) struct Object {
    pub memory: Memory,
    pub element: ElementType,
    pub length: u64,
    pub owner: Owner,
    pub phase: Phase,
}

impl Object {
    /// Elements of one thread.
    pub fn stride(&self) -> Option<u32> {
        match self.owner {
            Owner::Device { .. } => Some(STRIDE),
            Owner::Threadgroup { stride } => Some(stride),
            Owner::Imageblock => Some(1),
            Owner::Input | Owner::Thread | Owner::DeviceAtomic(_) | Owner::ThreadgroupAtomic(_) => {
                None
            }
        }
    }

    pub fn can_load(&self) -> bool {
        match (self.owner, self.phase) {
            (_, Phase::Closed) => false,
            (Owner::Input | Owner::Thread | Owner::Threadgroup { .. } | Owner::Imageblock, _) => {
                true
            }
            (Owner::Device { readable }, _) => readable,
            (Owner::DeviceAtomic(_), _) => false,
            (Owner::ThreadgroupAtomic(_), phase) => phase == Phase::Shared,
        }
    }

    pub fn can_store(&self) -> bool {
        match self.owner {
            Owner::Thread => true,
            Owner::Device { .. } | Owner::Threadgroup { .. } | Owner::Imageblock => {
                self.phase == Phase::Own
            }
            Owner::Input | Owner::DeviceAtomic(_) | Owner::ThreadgroupAtomic(_) => false,
        }
    }
}

/// A texture of a kernel.
#[derive(Clone, Copy)]
pub(super) struct Picture {
    pub memory: Memory,
    pub ty: TextureType,
    pub shape: TextureShape,
    /// Whose its texels are.
    pub usage: Use,
}

/// What threads do with the texels of a picture.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// All read and sample any.
    Look,
    /// Each has one of its own.
    Own,
    /// All do atomics of one kind on any.
    Atomics(AtomicKind),
}
