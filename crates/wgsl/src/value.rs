//! What expressions of a shader are while a kernel is built of them.
//!
//! WGSL has structs, arrays and pointers as values; Invar's values are scalars, vectors and matrices.
//! So a struct is its members, an array its elements or a place in memory that nothing writes, and a
//! pointer is followed while the kernel is built: every pointer of WGSL has one variable at its root.

use std::rc::Rc;

use invar_ir::{Memory, Place, SamplerSource, Step, Type, Value, Width};
use naga::Handle;
use smallvec::SmallVec;

/// A variable of one value, which is tracked from assignment to assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Slot(pub u32);

/// An expression's value.
#[derive(Clone, Debug)]
pub(crate) enum Val {
    /// A scalar, vector or matrix.
    One(Value),
    /// The members of a struct, or the elements of an array.
    Many(Rc<[Val]>),
    /// The contents of memory that nothing writes any more.
    Stored(MemPtr),
    /// A pointer or reference.
    Pointer(Ptr),
    /// A texture.
    Texture(Memory),
    /// A sampler.
    Sampler(SamplerSource),
}

/// Where a pointer leads.
#[derive(Clone, Debug)]
pub(crate) enum Ptr {
    /// A variable, or a member of one.
    Tree(Rc<Tree>),
    /// A component of a vector, or a column of a matrix and a component of that.
    Part(Slot, SmallVec<[Value; 2]>),
    /// A place in memory.
    Memory(MemPtr),
}

/// How a variable of the thread is kept.
#[derive(Clone, Debug)]
pub(crate) enum Tree {
    /// A scalar, vector or matrix.
    Slot(Slot),
    /// A struct, member by member.
    Many(Vec<Rc<Tree>>),
    /// An array, in thread memory.
    Memory(MemPtr),
}

impl Tree {
    /// The slots that it is made of.
    pub fn slots(&self, out: &mut Vec<Slot>) {
        match self {
            Tree::Slot(slot) => out.push(*slot),
            Tree::Many(members) => members.iter().for_each(|m| m.slots(out)),
            Tree::Memory(_) => {}
        }
    }
}

/// How types lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Layout {
    /// As WGSL lays out what it shares with the host: members at its offsets, with padding between.
    Host,
    /// As Invar lays it out; the host does not see it.
    Own,
}

/// What stands at a place in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// A type of the shader.
    Type(Handle<naga::Type>, Layout),
    /// A column of a matrix, or a component of that or of a vector.
    Part(Type),
}

/// A place in memory, or an array that is a whole object.
#[derive(Clone, Debug)]
pub(crate) struct MemPtr {
    pub memory: Memory,
    /// The element; none yet of an array that is a whole object.
    pub index: Option<Value>,
    pub path: SmallVec<[Step; 2]>,
    pub at: At,
}

impl MemPtr {
    /// The place, for an access; `None` of a whole array.
    pub fn place(&self) -> Option<Place> {
        Some(Place {
            memory: self.memory,
            index: self.index?,
            width: Width::One,
            path: self.path.clone(),
        })
    }

    /// A part of it.
    pub fn step(&self, steps: &[Step], at: At) -> MemPtr {
        let mut part = self.clone();
        part.path.extend(steps.iter().copied());
        part.at = at;
        part
    }
}

/// An index into something.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Index {
    /// Known.
    Constant(u32),
    /// A value of any integer type.
    Value(Value),
}

/// What may happen at the end of some statements: the end is reached, or a jump is under way whose
/// target is further out. With neither, an instruction has ended the region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flow(u128);

impl Flow {
    /// An instruction has ended the region.
    pub const ENDED: Flow = Flow(0);
    /// The end is reached.
    pub const FALLS: Flow = Flow(1);
    /// How many targets there can be at once.
    pub const MAX_TARGETS: usize = 127;

    /// A jump to the target of that number is under way.
    pub fn jump(target: usize) -> Flow {
        Flow(1 << (target + 1))
    }

    pub fn or(self, other: Flow) -> Flow {
        Flow(self.0 | other.0)
    }

    pub fn without(self, other: Flow) -> Flow {
        Flow(self.0 & !other.0)
    }

    pub fn has(self, other: Flow) -> bool {
        self.0 & other.0 != 0
    }

    pub fn has_ended(self) -> bool {
        self.0 == 0
    }

    /// The code of the one thing that can happen, if it is one: 0, or a target's number and 1.
    pub fn only(self) -> Option<u32> {
        self.0.is_power_of_two().then(|| self.0.trailing_zeros())
    }

    /// What can happen, by code.
    pub fn codes(self) -> impl Iterator<Item = u32> {
        (0..128).filter(move |code| self.0 & (1 << code) != 0)
    }
}
