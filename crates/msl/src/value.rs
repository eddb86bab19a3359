//! What operands and objects of memory are while a kernel is built.

use invar_ir::{Memory, Op, Scalar, TextureType, Value};
use invar_llvm::foreign::DebugType;
use smallvec::SmallVec;

use crate::objects::Root;

/// Whether an address is null.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Null {
    Never,
    Always,
    If(Value),
}

/// An address.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Address {
    /// The object; a null pointer has none.
    pub root: Option<Root>,
    /// If it is one of several, chosen while the kernel runs: which, and all of them.
    pub choice: Option<(Value, Vec<Root>)>,
    /// Bytes from there: a number, and values times numbers.
    pub constant: i64,
    pub terms: SmallVec<[(Value, i64); 4]>,
    pub null: Null,
}

impl Address {
    pub fn of(root: Option<Root>) -> Address {
        Address {
            null: if root.is_some() {
                Null::Never
            } else {
                Null::Always
            },
            root,
            choice: None,
            constant: 0,
            terms: SmallVec::new(),
        }
    }

    pub fn add(&mut self, value: Value, scale: i64) {
        match self.terms.iter_mut().find(|(v, _)| *v == value) {
            Some((_, s)) => *s = s.wrapping_add(scale),
            None => self.terms.push((value, scale)),
        }
        self.terms.retain(|(_, s)| *s != 0);
    }
}

/// What an operand is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Val {
    One(Value),
    Address(Address),
    /// A simdgroup matrix by the elements that the lane has.
    Lanes([Value; 2]),
    /// Parts of an aggregate, by where they are.
    Parts(Vec<(Vec<u32>, Val)>),
    Undefined,
}

/// An object of memory.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub what: What,
    pub granule_bytes: u64,
    pub scalar: Scalar,
}

/// What stands for an object.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// An array of granules.
    Granules(Memory),
    /// A struct in constant memory, whose fields are accessed each by itself.
    Fields(Memory, DebugType),
    /// A position, of which each component is an operation, and how many its type has.
    Position(Op, u32),
    Texture(Memory, TextureType),
    Sampler(Memory),
    /// A function constant without a value.
    Unset(String),
}

/// Puts a value where an aggregate has it; of one that is itself an aggregate each part.
pub(crate) fn put_in(parts: &mut Vec<(Vec<u32>, Val)>, path: &[u32], value: Val) {
    match value {
        Val::Parts(inside) => {
            let inside = inside.into_iter();
            parts.extend(inside.map(|(at, part)| ([path, &at].concat(), part)));
        }
        part => parts.push((path.to_vec(), part)),
    }
}
