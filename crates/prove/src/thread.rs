//! A thread under proof: where it is, and what was found of its values.

use std::collections::{BTreeSet, HashMap, HashSet};

use invar_ir::{Scalar, Value};

use crate::linear::Formula;
use crate::query::Int;
use crate::shape::Iterations;

/// Grids and positions fit 32 bits (X1).
pub const LARGEST_GRID: i128 = (1 << 32) - 1;
/// The most elements of a buffer of which anything is proved.
pub const LARGEST_BUFFER: i128 = (1 << 32) - 1;
/// The most texels of a texture in a direction.
pub const LARGEST_TEXTURE: i128 = invar_texture::MAX_EXTENT as i128;
/// The most texels of a row that is not sampled.
pub const LARGEST_ROW: i128 = invar_texture::MAX_TEXELS as i128;
/// The most levels of a texture: the last has one texel.
pub const MOST_LEVELS: i128 = LARGEST_TEXTURE.ilog2() as i128 + 1;
/// The most threads of a threadgroup of which anything is proved.
pub const LARGEST_THREADGROUP: i128 = 1024;

/// A value.
#[derive(Clone, Debug)]
pub enum Val {
    /// An integer.
    Int(Int),
    /// A truth value.
    Bool(Formula),
}

/// A value, or a component of a vector.
pub type Slot = (Value, Option<u8>);

/// One thread at a place whose loops are in these iterations.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Which of the two.
    pub tag: u8,
    /// The iterations of the loops around.
    pub iterations: Iterations,
    /// What holds where it is.
    pub path: Vec<Formula>,
    /// Values known not to wrap there.
    pub exact: BTreeSet<Slot>,
    /// Whether it is asked of further values whether they wrap.
    pub asks: bool,
    /// Which component of vectors is asked for, if one is.
    pub lane: Option<u8>,
    pub memo: HashMap<Slot, Option<Val>>,
    pub busy: HashSet<Slot>,
}

impl Thread {
    /// A thread about which nothing is known.
    pub fn new(tag: u8, iterations: Iterations) -> Thread {
        Thread {
            tag,
            iterations,
            path: Vec::new(),
            exact: BTreeSet::new(),
            asks: false,
            lane: None,
            memo: HashMap::new(),
            busy: HashSet::new(),
        }
    }

    /// What a value was found to be.
    pub fn known(&self, value: Value) -> Option<&Val> {
        self.memo.get(&(value, None)).and_then(Option::as_ref)
    }
}

/// The least and the largest number of an integer type.
pub fn range(scalar: Scalar) -> (i128, i128) {
    let bits = scalar.bits();
    if scalar.is_signed_integer() {
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        (0, (1 << bits) - 1)
    }
}
