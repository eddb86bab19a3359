//! The flat program that the machine runs: a kernel's structured instructions laid out in one list.
//!
//! Values live in *columns*: one column is a `u64` for each lane of a simdgroup, and a value of `n`
//! components has `n` columns side by side. A column is named by the place of its first lane in the
//! register file. Columns are allotted in the order of definition, so an operation's operands lie
//! before its result.
//!
//! A value is defined once in each iteration of the loops around it, and a thread that uses it was active
//! when it was defined. So pure operations write all lanes, active or not; only what joins control
//! flow (results of `if`, carried values of loops) and memory look at the mask.

use invar_ir::print::Template;
use invar_ir::{
    AtomicOp, Dim, Kernel, Module, Op, Order, Scalar, Scope, Spaces, Span, TextureFunction,
    TextureType, Type,
};

use crate::observe::SiteInfo;
use invar_ir::ops::{Evaluator, Group, LaneRule};

/// The first lane of a column, counted in the register file.
pub(crate) type Column = u32;

/// A place in [`Program::code`].
pub(crate) type Target = u32;

/// A kernel, ready to run at one simdgroup size with one set of function constants.
pub(crate) struct Program {
    /// The module as the machine runs it: contracted and expanded.
    pub module: Module,
    /// Which kernel of it.
    pub kernel: usize,
    pub simdgroup_size: u32,
    pub code: Vec<Code>,
    /// Where each instruction was written.
    pub spans: Vec<Span>,
    /// What touches memory or brings threads together, for messages and checkers.
    pub sites: Vec<SiteInfo>,
    pub objects: Vec<Object>,
    /// Program-scope constants as bytes.
    pub constants: Vec<Vec<u8>>,
    /// The size of the register file in `u64`s.
    pub registers: usize,
    /// Columns that hold one value for all lanes and all time.
    pub splats: Vec<(Column, Splat)>,
    /// Bytes of thread arrays a lane has.
    pub thread_bytes: u64,
    /// How many atomics stand inside loops, and plain loads of what others may write inside loops
    /// without a count: each remembers what it saw last.
    pub spin_sites: usize,
    /// Whether any instruction is an atomic on device memory.
    pub device_atomics: bool,
}

impl Program {
    pub fn kernel(&self) -> &Kernel {
        &self.module.kernels[self.kernel]
    }
}

/// What a column holds that never changes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Splat {
    Bits(u64),
    /// Component of a scalar parameter.
    Argument {
        param: u32,
        component: u32,
    },
    /// How many elements are bound to an object.
    Length(ObjectId),
}

/// A memory object, by its place in [`Program::objects`].
pub(crate) type ObjectId = u32;

/// A memory object.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub slot: Slot,
    pub element_bytes: u64,
    pub element_locations: u64,
    /// Byte offset and type of each location of an element.
    pub locations: Vec<(u64, Scalar)>,
}

/// Where an object's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// The dispatch's argument of that number.
    Argument(u32),
    /// A program-scope constant.
    Constant(u32),
    /// Threadgroup memory: arrays first, then parameters.
    Threadgroup(u32),
    /// A thread array: its first byte in a lane's memory, and its length in elements.
    Thread { offset: u64, length: u64 },
}

/// A dynamic step of a path: an array's element, a vector's component, a matrix's column.
#[derive(Clone, Debug)]
pub(crate) struct PathIndex {
    /// What it counts, and the fields before it, for messages: `element` of `.position`.
    pub what: &'static str,
    pub fields: Box<str>,
    pub index: Index,
    pub count: u64,
    pub bytes: u64,
    pub locations: u64,
}

/// A column of indices and how to read them as mathematical integers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Index {
    pub column: Column,
    pub scalar: Scalar,
}

/// How an access reaches its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// One element or a part of it; its components are side by side.
    Part,
    /// Element `index + component`.
    Run,
    /// Element `index * k + component`.
    Group(u8),
}

/// An access to memory.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub site: u32,
    pub object: ObjectId,
    pub index: Index,
    pub reach: Reach,
    /// From the element's start to the part, the fixed steps of the path together.
    pub offset_bytes: u64,
    pub offset_locations: u64,
    pub path: Vec<PathIndex>,
    pub scalar: Scalar,
    pub components: u32,
}

/// The elements of a copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    pub site: u32,
    pub destination: ObjectId,
    pub destination_index: Index,
    pub source: ObjectId,
    pub source_index: Index,
    pub shape: Shape,
}

/// How much a copy moves.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    Linear {
        count: Index,
    },
    Tile {
        destination_row: Index,
        source_row: Index,
        columns: Index,
        rows: Index,
    },
}

/// Where a simdgroup matrix lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MatrixAccess {
    pub site: u32,
    pub object: ObjectId,
    pub index: Index,
    pub row: Index,
    pub transpose: bool,
    pub scalar: Scalar,
    pub rows: u8,
    pub columns: u8,
}

/// Values that join: copied under the mask, all at once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moves {
    /// Destination, source, and how many columns.
    pub list: Vec<Move>,
    /// Some source is a destination too.
    pub overlap: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    pub destination: Column,
    pub source: Column,
    pub columns: u32,
    /// A simdgroup matrix: it belongs to the simdgroup, so it is copied whole, whatever the mask.
    pub whole: bool,
}

/// A function of a texture.
#[derive(Clone, Debug)]
pub(crate) struct Texture {
    pub site: u32,
    pub object: ObjectId,
    /// The parameter that it is.
    pub param: u32,
    pub function: TextureFunction,
    /// How it is arranged, and its components.
    pub ty: TextureType,
    /// Where coordinates are.
    pub at: Box<[Index]>,
    /// Where the level is.
    pub level: Option<Index>,
    /// What texels are compared with.
    pub reference: Option<Column>,
    /// The first column of the value that is written, or of what is given.
    pub value: Column,
}

/// A query's answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Query {
    pub op: Op,
    pub dim: Dim,
}

/// A function between the lanes of a simdgroup or quadgroup.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lanes {
    pub group: Group,
    pub rule: LaneRule,
    pub scalar: Scalar,
    pub value: Column,
    pub by: Option<Index>,
    pub destination: Column,
    pub components: u32,
    /// Columns of the result.
    pub columns: u32,
}

/// What a lane prints.
#[derive(Clone, Debug)]
pub(crate) struct Print {
    pub template: Template,
    /// Of its values.
    pub types: Vec<Type>,
    /// The columns of their scalars.
    pub columns: Vec<(Column, Scalar)>,
}

/// The loop that a `for` makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counter {
    pub index: Index,
    pub upper: Index,
    pub step: Index,
}

/// An instruction of the flat program.
#[derive(Clone, Debug)]
pub(crate) enum Code {
    /// Evaluates an operation on all lanes of all components.
    Eval {
        evaluator: Evaluator,
        from: Scalar,
        to: Scalar,
        args: Box<[Column]>,
        destination: Column,
        /// Lanes times components.
        length: u32,
    },
    /// Copies columns: `destination + i * size` from `sources[i]`.
    Gather {
        destination: Column,
        sources: Box<[Column]>,
    },
    /// Takes part `index` of a value of `parts` parts; 0 where there is none.
    Extract {
        site: u32,
        destination: Column,
        source: Column,
        index: Index,
        parts: u32,
        columns: u32,
    },
    /// Replaces part `index` of a value of `parts` parts.
    Insert {
        site: u32,
        destination: Column,
        source: Column,
        part: Column,
        index: Index,
        parts: u32,
        columns: u32,
    },
    /// Takes the bits of all components as others.
    AsType {
        from: Scalar,
        to: Scalar,
        source: Column,
        source_columns: u32,
        destination: Column,
        columns: u32,
    },
    Query {
        destination: Column,
        query: Query,
    },
    Lanes(Box<Lanes>),
    Load {
        access: Box<Access>,
        destination: Column,
        /// Its number among those that may wait for a change.
        spin: Option<u32>,
    },
    Store {
        access: Box<Access>,
        source: Column,
    },
    Atomic {
        access: Box<Access>,
        /// The texel, if it acts on one.
        texel: Option<Box<Texture>>,
        op: AtomicOp,
        args: [Column; 2],
        order: Order,
        scope: Scope,
        destination: Column,
        success: Column,
        /// Its number among the atomics inside loops.
        spin: Option<u32>,
    },
    /// Zeroes a thread array.
    Zero {
        offset: u64,
        bytes: u64,
    },
    Copy(Box<Copy>),
    AsyncCopy {
        copy: Box<Copy>,
        event: Column,
    },
    Wait {
        events: Box<[Column]>,
    },
    Barrier {
        site: u32,
        scope: Scope,
        spaces: Spaces,
    },
    MatrixFill {
        value: Column,
        destination: Column,
        entries: u32,
    },
    MatrixLoad {
        access: Box<MatrixAccess>,
        destination: Column,
    },
    MatrixStore {
        access: Box<MatrixAccess>,
        source: Column,
    },
    MatrixMultiplyAccumulate {
        a: (Column, Scalar),
        b: (Column, Scalar),
        c: (Column, Scalar),
        destination: Column,
        /// Rows of `a`, columns of `b`, and what they share.
        shape: (u8, u8, u8),
    },
    AssertUniform {
        site: u32,
        scope: Scope,
        value: Column,
        destination: Column,
        columns: u32,
    },
    /// Copies under the mask.
    Move(Moves),
    /// Runs the lanes where the condition holds at the next instruction, the others at `otherwise`;
    /// they meet at `end`.
    If {
        condition: Column,
        otherwise: Target,
        end: Target,
    },
    /// The lanes have come to the end of a side of the innermost `if`.
    EndSide,
    /// Begins a loop whose iterations start at the next instruction.
    Loop {
        end: Target,
        counter: Option<Box<(Counter, Moves)>>,
    },
    /// The lanes wait for the next iteration of the loop outside `depth` open `if`s.
    Next {
        depth: u32,
    },
    /// The lanes leave the loop outside `depth` open `if`s.
    Break {
        depth: u32,
    },
    /// The lanes are done.
    Return,
    /// Tells observers in which lanes a `select` took what a load gave.
    Selected {
        site: u32,
        condition: Column,
        /// Lanes times components of the condition.
        length: u32,
        /// Whether it takes it where the condition holds.
        when: bool,
    },
    /// Tells observers of lanes whose offset has bits below `count` that are not 0.
    Misaligned {
        site: u32,
        scalar: Scalar,
        offset: Column,
        count: Column,
        columns: u32,
    },
    /// Each active lane prints a line.
    Print(Box<Print>),
    /// Each active lane reaches a texture.
    Texture(Box<Texture>),
}
