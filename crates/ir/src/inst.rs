//! Instructions and regions: structured SSA.
//!
//! A region is an ordered list of instructions of which the last, and only the last, is a
//! terminator. `if`, `for` and `loop` hold regions and carry values. There are no jumps and no
//! pointers: memory is a named object plus an element index.
//!
//! Elementwise, simdgroup and quadgroup operations and queries are rows of the op table
//! ([`crate::Op`]) and share one variant; everything with an effect, a region or a memory operand
//! is a variant of its own. What it is made of is listed in [`crate::operands`], what it does in
//! [`crate::effects`]; what passes need to know of it, they ask there.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::ops::{Imm, Op};
use crate::room::{WALK_BYTES, with_room};
use crate::span::Span;
use crate::texture::TextureFunction;
use crate::types::{Scalar, Type};

/// A value of a kernel, by its place in [`crate::Kernel::values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Value(pub u32);

/// Operands.
pub type Values = SmallVec<[Value; 4]>;

/// A memory object that a kernel can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Memory {
    /// A buffer or threadgroup parameter, by its place in [`crate::Kernel::params`].
    Param(u32),
    /// A threadgroup or thread array, by its place in [`crate::Kernel::allocs`].
    Alloc(u32),
    /// A program-scope constant, by its place in [`crate::Module::constants`].
    Constant(u32),
}

/// A scalar constant: its type and its bits, in the low end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Const {
    /// Type.
    pub scalar: Scalar,
    /// Bits; those above the type's width are 0. A `bool` is 0 or 1.
    pub bits: u64,
}

/// Which elements an access covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Width {
    /// One element: `%x[%i]`.
    One,
    /// This many consecutive scalar elements from the index on, as a vector: `%x[%i : 4]`.
    Run(u8),
    /// Group `i` of this many scalar elements, that is elements `i*k` to `i*k + k-1` computed
    /// without wrapping (B4), as a vector: `%x[%i * 4]`.
    Group(u8),
}

impl Width {
    /// How many elements.
    pub const fn count(self) -> u8 {
        match self {
            Width::One => 1,
            Width::Run(n) | Width::Group(n) => n,
        }
    }
}

/// One step from an element to a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Step {
    /// A struct's field, by number: `.position`.
    Field(u32),
    /// An element of an array, a component of a vector, or a column of a matrix: `[%i]`.
    Index(Value),
}

/// What an access touches: `%particles[%i].position[%k]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The object.
    pub memory: Memory,
    /// Element index: any integer type, taken as a mathematical integer (B4).
    pub index: Value,
    /// How many elements; more than one only of scalar elements and without a path.
    pub width: Width,
    /// The way into the element.
    pub path: SmallVec<[Step; 2]>,
}

impl Place {
    /// One whole element.
    pub fn element(memory: Memory, index: Value) -> Place {
        Place {
            memory,
            index,
            width: Width::One,
            path: SmallVec::new(),
        }
    }
}

/// What an atomic does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AtomicOp {
    /// Gives the value.
    Load,
    /// Replaces the value; no result.
    Store,
    /// Replaces the value and gives the old one.
    Exchange,
    /// Replaces the value if it equals the first operand; gives the old one and whether it did.
    CompareExchange,
    /// Adds, wrapping (floats: where the device says so).
    Add,
    /// Subtracts, wrapping.
    Sub,
    /// The smaller.
    Min,
    /// The larger.
    Max,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
}

impl AtomicOp {
    /// Every atomic operation.
    pub const ALL: [AtomicOp; 11] = [
        AtomicOp::Load,
        AtomicOp::Store,
        AtomicOp::Exchange,
        AtomicOp::CompareExchange,
        AtomicOp::Add,
        AtomicOp::Sub,
        AtomicOp::Min,
        AtomicOp::Max,
        AtomicOp::And,
        AtomicOp::Or,
        AtomicOp::Xor,
    ];

    /// The instruction's name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            AtomicOp::Load => "atomic_load",
            AtomicOp::Store => "atomic_store",
            AtomicOp::Exchange => "atomic_exchange",
            AtomicOp::CompareExchange => "atomic_compare_exchange",
            AtomicOp::Add => "atomic_add",
            AtomicOp::Sub => "atomic_sub",
            AtomicOp::Min => "atomic_min",
            AtomicOp::Max => "atomic_max",
            AtomicOp::And => "atomic_and",
            AtomicOp::Or => "atomic_or",
            AtomicOp::Xor => "atomic_xor",
        }
    }

    /// Value operands beside the place.
    pub const fn operand_count(self) -> usize {
        match self {
            AtomicOp::Load => 0,
            AtomicOp::CompareExchange => 2,
            AtomicOp::Store
            | AtomicOp::Exchange
            | AtomicOp::Add
            | AtomicOp::Sub
            | AtomicOp::Min
            | AtomicOp::Max
            | AtomicOp::And
            | AtomicOp::Or
            | AtomicOp::Xor => 1,
        }
    }

    /// Whether it can change the location.
    pub const fn writes(self) -> bool {
        !matches!(self, AtomicOp::Load)
    }

    /// Whether it gives what was there.
    pub const fn reads(self) -> bool {
        !matches!(self, AtomicOp::Store)
    }
}

/// What an atomic orders (T3, O4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Order {
    /// Nothing.
    #[default]
    Relaxed,
    /// What the release it reads from had before it.
    Acquire,
    /// What came before it, for the thread that acquires it.
    Release,
    /// Both.
    AcqRel,
    /// Both, and one order over all locations.
    SeqCst,
}

impl Order {
    /// Every order, weakest first.
    pub const ALL: [Order; 5] = [
        Order::Relaxed,
        Order::Acquire,
        Order::Release,
        Order::AcqRel,
        Order::SeqCst,
    ];

    /// The name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            Order::Relaxed => "relaxed",
            Order::Acquire => "acquire",
            Order::Release => "release",
            Order::AcqRel => "acq_rel",
            Order::SeqCst => "seq_cst",
        }
    }

    /// Whether it acquires.
    pub const fn acquires(self) -> bool {
        matches!(self, Order::Acquire | Order::AcqRel | Order::SeqCst)
    }

    /// Whether it releases.
    pub const fn releases(self) -> bool {
        matches!(self, Order::Release | Order::AcqRel | Order::SeqCst)
    }
}

/// A set of threads, from the smallest: who takes part in a barrier, how far an atomic's order
/// reaches, over whom a value is uniform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Scope {
    /// The threads of a simdgroup.
    Simdgroup,
    /// The threads of a threadgroup.
    Threadgroup,
    /// All threads of the device; for uniformity, those of the grid.
    Device,
}

impl Scope {
    /// The name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            Scope::Simdgroup => "simdgroup",
            Scope::Threadgroup => "threadgroup",
            Scope::Device => "device",
        }
    }
}

/// The spaces that a barrier orders (O2): any set of device, threadgroup, texture and imageblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Spaces(pub u8);

impl Spaces {
    /// No memory is ordered; threads only wait.
    pub const NONE: Spaces = Spaces(0);
    /// Device memory.
    pub const DEVICE: Spaces = Spaces(1);
    /// Threadgroup memory.
    pub const THREADGROUP: Spaces = Spaces(2);
    /// Textures.
    pub const TEXTURE: Spaces = Spaces(4);
    /// Imageblocks.
    pub const IMAGEBLOCK: Spaces = Spaces(8);
    /// What a barrier orders unless it says otherwise: device and threadgroup memory.
    pub const DEFAULT: Spaces = Spaces(3);
    /// Each space with its name in the text form.
    pub const NAMES: [(Spaces, &'static str); 4] = [
        (Spaces::DEVICE, "device"),
        (Spaces::THREADGROUP, "threadgroup"),
        (Spaces::TEXTURE, "texture"),
        (Spaces::IMAGEBLOCK, "imageblock"),
    ];

    /// Whether all of `other` is in this set.
    pub const fn contains(self, other: Spaces) -> bool {
        self.0 & other.0 == other.0
    }

    /// The union.
    pub const fn with(self, other: Spaces) -> Spaces {
        Spaces(self.0 | other.0)
    }
}

/// The elements of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CopyOperands {
    /// Where to.
    pub destination: Memory,
    /// First element there.
    pub destination_index: Value,
    /// Where from.
    pub source: Memory,
    /// First element there.
    pub source_index: Value,
}

/// How many elements an async copy moves. Each count is any integer type, taken mathematically; a
/// negative one moves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CopyShape {
    /// Consecutive elements.
    Linear {
        /// How many.
        count: Value,
    },
    /// `rows` runs of `columns` elements; each run starts a row's length after the last.
    Tile {
        /// Elements from one run to the next in the destination.
        destination_row: Value,
        /// Elements from one run to the next in the source.
        source_row: Value,
        /// Elements a run.
        columns: Value,
        /// Runs.
        rows: Value,
    },
}

/// Where a simdgroup matrix lies in memory: entry (r, c) is element `index + r*row + c`, or
/// `index + c*row + r` when transposed, computed as mathematical integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MatrixPlace {
    /// The object; its elements are scalars.
    pub memory: Memory,
    /// Element of entry (0, 0).
    pub index: Value,
    /// Elements from one row to the next (`elements_per_row`).
    pub row: Value,
    /// Whether memory holds the transpose.
    pub transpose: bool,
}

/// How deep regions may nest in a kernel's body. Code that walks regions may recurse: the builder, the
/// parser, the decoder and the verifier refuse what is deeper.
pub const MAX_NESTING: usize = 64;

/// A list of instructions ended by a terminator, and the values that it begins with.
#[derive(Debug, Default, Eq, Serialize, Deserialize)]
pub struct Region {
    /// Values defined at its start: a loop's carried values (a `for` puts its index first).
    pub params: Vec<Value>,
    /// The instructions; the last is the only terminator.
    pub insts: Vec<Inst>,
}

impl Clone for Region {
    fn clone(&self) -> Region {
        with_room(WALK_BYTES, || Region {
            params: self.params.clone(),
            insts: self.insts.clone(),
        })
    }
}

impl PartialEq for Region {
    fn eq(&self, other: &Region) -> bool {
        with_room(WALK_BYTES, || {
            self.params == other.params && self.insts == other.insts
        })
    }
}

/// An instruction: what it does, the values it defines, and where the author wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inst {
    /// What it does.
    pub kind: InstKind,
    /// The values it defines.
    pub results: SmallVec<[Value; 1]>,
    /// Where it was written.
    pub span: Span,
}

/// What an instruction does. Written by serde it is without the regions that it holds, which
/// [`crate::binary`] writes apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InstKind {
    /// A scalar constant.
    Const(Const),
    /// A function constant's value, by its place in [`crate::Module::function_constants`].
    FunctionConstant(u32),
    /// A row of the op table.
    Op {
        /// Which.
        op: Op,
        /// What it takes beside values.
        imm: Imm,
        /// Operands.
        args: Values,
    },
    /// How many elements are bound to a buffer or threadgroup parameter, as `u64`.
    BufferLength(Memory),
    /// Reads a place; the result's type is the place's.
    Load(Place),
    /// Writes a place.
    Store {
        /// Where.
        place: Place,
        /// What.
        value: Value,
    },
    /// An atomic operation on one scalar.
    Atomic {
        /// Which.
        op: AtomicOp,
        /// The location.
        place: Place,
        /// Value operands ([`AtomicOp::operand_count`]); of a compare-exchange the expected value
        /// and then the desired one.
        args: SmallVec<[Value; 2]>,
        /// Its order.
        order: Order,
        /// How far its order reaches: threadgroup or device.
        scope: Scope,
    },
    /// Begins the life of an array of [`crate::Kernel::allocs`]: a thread array is zeroed here, a
    /// threadgroup array lives as long as its threadgroup wherever this stands.
    Alloc(u32),
    /// Copies whole elements, made by the calling thread in order of index.
    Copy {
        /// Where from and to.
        operands: CopyOperands,
        /// How many elements, any integer type; a negative one moves nothing.
        count: Value,
    },
    /// Starts a copy by the simdgroup between device and threadgroup memory; gives its event.
    AsyncCopy {
        /// Where from and to.
        operands: CopyOperands,
        /// How many elements.
        shape: CopyShape,
    },
    /// Waits for copies to be finished.
    Wait {
        /// Their events.
        events: Values,
    },
    /// Makes the threads of a scope wait for each other and orders spaces (O2).
    Barrier {
        /// Threadgroup or simdgroup.
        scope: Scope,
        /// What it orders.
        spaces: Spaces,
    },
    /// A simdgroup matrix with every entry the same; the result says its type.
    MatrixFill {
        /// The entry.
        value: Value,
    },
    /// Reads a simdgroup matrix.
    MatrixLoad {
        /// Where.
        place: MatrixPlace,
    },
    /// Writes a simdgroup matrix.
    MatrixStore {
        /// Where.
        place: MatrixPlace,
        /// What.
        matrix: Value,
    },
    /// `a * b + c` of simdgroup matrices; the result's type is that of `c`.
    MatrixMultiplyAccumulate {
        /// Left factor.
        a: Value,
        /// Right factor.
        b: Value,
        /// Addend.
        c: Value,
    },
    /// Collective over its scope: gives every thread the value of one existing thread (X5).
    AssertUniform {
        /// The value, the same for all threads of the scope.
        value: Value,
        /// Over whom.
        scope: Scope,
    },
    /// Runs one of two regions; its results are what that region yields.
    If {
        /// A `bool`.
        condition: Value,
        /// Where it is true.
        #[serde(skip)]
        then: Region,
        /// Where it is false.
        #[serde(skip)]
        otherwise: Region,
    },
    /// Counts from `lower` by `step` as long as the index is below `upper` (above it, for a
    /// negative step; never, for a step of 0), as mathematical integers. Its results are the
    /// values carried at its end.
    For {
        /// First index.
        lower: Value,
        /// Where to stop.
        upper: Value,
        /// The distance; same type as the bounds, or a signed integer of their width.
        step: Value,
        /// The carried values at first.
        init: Values,
        /// Parameters: the index, then the carried values.
        #[serde(skip)]
        body: Region,
    },
    /// Repeats until a `break`, whose operands are its results.
    Loop {
        /// The carried values at first.
        init: Values,
        /// Parameters: the carried values.
        #[serde(skip)]
        body: Region,
    },
    /// Terminator: ends an `if`'s region with its results, or a loop's iteration with the next
    /// carried values.
    Yield(Values),
    /// Terminator: leaves the innermost loop, giving its results.
    Break(Values),
    /// Terminator: begins the next iteration of the innermost loop with these carried values.
    Continue(Values),
    /// Terminator: ends the thread.
    Return,
    /// Prints a line: the text with its placeholders replaced by the values
    /// ([`crate::print::Template`]).
    Print {
        /// The text.
        text: Arc<str>,
        /// The values, one for each placeholder.
        values: Values,
    },
    /// A function of a texture.
    Texture {
        /// The texture, a parameter.
        texture: Memory,
        /// Which.
        function: TextureFunction,
        /// Its operands: coordinates, and of a write the value.
        args: Values,
    },
}

impl InstKind {
    /// The words of the instructions that are neither rows of the op table, nor atomics, nor functions of
    /// textures.
    pub const STRUCTURAL: [&str; 24] = [
        "const",
        "function_constant",
        "buffer_length",
        "load",
        "store",
        "alloc",
        "copy",
        "async_copy",
        "async_copy_2d",
        "wait",
        "barrier",
        "matrix_fill",
        "matrix_load",
        "matrix_store",
        "matrix_multiply_accumulate",
        "assert_uniform",
        "if",
        "for",
        "loop",
        "yield",
        "break",
        "continue",
        "return",
        "print",
    ];

    /// The instruction's word in the text form.
    ///
    /// ```
    /// use invar_ir::InstKind;
    /// assert_eq!(InstKind::Return.name(), "return");
    /// assert!(InstKind::STRUCTURAL.contains(&"return"));
    /// ```
    pub fn name(&self) -> &'static str {
        match self {
            InstKind::Const(_) => "const",
            InstKind::FunctionConstant(_) => "function_constant",
            InstKind::Op { op, .. } => op.name(),
            InstKind::BufferLength(_) => "buffer_length",
            InstKind::Load(_) => "load",
            InstKind::Store { .. } => "store",
            InstKind::Atomic { op, .. } => op.name(),
            InstKind::Alloc(_) => "alloc",
            InstKind::Copy { .. } => "copy",
            InstKind::AsyncCopy { shape, .. } => match shape {
                CopyShape::Linear { .. } => "async_copy",
                CopyShape::Tile { .. } => "async_copy_2d",
            },
            InstKind::Wait { .. } => "wait",
            InstKind::Barrier { .. } => "barrier",
            InstKind::MatrixFill { .. } => "matrix_fill",
            InstKind::MatrixLoad { .. } => "matrix_load",
            InstKind::MatrixStore { .. } => "matrix_store",
            InstKind::MatrixMultiplyAccumulate { .. } => "matrix_multiply_accumulate",
            InstKind::AssertUniform { .. } => "assert_uniform",
            InstKind::If { .. } => "if",
            InstKind::For { .. } => "for",
            InstKind::Loop { .. } => "loop",
            InstKind::Yield(_) => "yield",
            InstKind::Break(_) => "break",
            InstKind::Continue(_) => "continue",
            InstKind::Return => "return",
            InstKind::Print { .. } => "print",
            InstKind::Texture { function, .. } => function.name(),
        }
    }

    /// The regions that it holds.
    pub fn regions(&self) -> SmallVec<[&Region; 2]> {
        match self {
            InstKind::If {
                then, otherwise, ..
            } => SmallVec::from_buf([then, otherwise]),
            InstKind::For { body, .. } | InstKind::Loop { body, .. } => SmallVec::from_iter([body]),
            flat => {
                debug_assert!(!flat.has_regions());
                SmallVec::new()
            }
        }
    }

    /// The regions that it holds, to change them.
    pub fn regions_mut(&mut self) -> SmallVec<[&mut Region; 2]> {
        match self {
            InstKind::If {
                then, otherwise, ..
            } => SmallVec::from_buf([then, otherwise]),
            InstKind::For { body, .. } | InstKind::Loop { body, .. } => SmallVec::from_iter([body]),
            flat => {
                debug_assert!(!flat.has_regions());
                SmallVec::new()
            }
        }
    }

    /// Whether it holds regions.
    pub const fn has_regions(&self) -> bool {
        matches!(self, InstKind::If { .. }) || self.is_loop()
    }

    /// Whether it is a loop.
    pub const fn is_loop(&self) -> bool {
        matches!(self, InstKind::For { .. } | InstKind::Loop { .. })
    }

    /// The op and its operands, if it is a row of the op table.
    pub fn as_op(&self) -> Option<(Op, Imm, &[Value])> {
        match self {
            InstKind::Op { op, imm, args } => Some((*op, *imm, args)),
            _not_in_the_table => None,
        }
    }
}

/// A value: its type and the name its author gave it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueInfo {
    /// Its type.
    pub ty: Type,
    /// Its name, unique in the kernel, without the sigil.
    pub name: Option<Arc<str>>,
}
