//! What instructions are made of: the values they use, each in its role, and the memory objects they
//! name.
//!
//! Each is one list of all instructions, which serves reading and changing. What an instruction's
//! operands and objects mean for others is in [`crate::effects`]; the regions that it holds are
//! [`InstKind::regions`].

use crate::inst::{CopyOperands, CopyShape, InstKind, MatrixPlace, Memory, Place, Step, Value};
use crate::texture::{SamplerSource, Sampling, TextureFunction};

/// What an operand is to its instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// An operand of a row of the op table, whose signature says what it is.
    Argument,
    /// The first element of an access.
    Index,
    /// A step from an element to a part of it.
    Part,
    /// The first element that a copy writes.
    DestinationIndex,
    /// The first element that a copy reads.
    SourceIndex,
    /// How many elements a copy moves.
    Count,
    /// From one run of a copy to the next, where it writes.
    DestinationRow,
    /// From one run of a copy to the next, where it reads.
    SourceRow,
    /// Elements in each run of a copy.
    Columns,
    /// Runs of a copy.
    Rows,
    /// From one row of a matrix in memory to the next.
    RowLength,
    /// What is stored.
    Stored,
    /// The matrix that is stored.
    StoredMatrix,
    /// What an atomic combines with its location, or compares it with.
    Combined,
    /// What is waited for.
    Event,
    /// Every entry of a matrix.
    Entry,
    /// A factor of a matrix product.
    Factor,
    /// What a matrix product is added to.
    Addend,
    /// What is asserted to be the same.
    Asserted,
    /// What decides between two regions.
    Condition,
    /// The first index of a loop.
    Lower,
    /// Where a loop stops.
    Upper,
    /// From one index of a loop to the next.
    LoopStep,
    /// What a loop carries at first.
    Initial,
    /// What a terminator gives to the instruction whose region it leaves.
    Given,
    /// What is printed.
    Printed,
    /// Where a texel is, or a sample.
    Coordinate,
}

/// What depends on an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// The results, or what memory holds: it is data.
    Data,
    /// Which elements or which part is accessed.
    Address,
    /// Which instructions run, and how often.
    Control,
}

impl Role {
    /// What depends on an operand of this role.
    pub const fn purpose(self) -> Purpose {
        match self {
            Role::Argument
            | Role::Stored
            | Role::StoredMatrix
            | Role::Combined
            | Role::Event
            | Role::Entry
            | Role::Factor
            | Role::Addend
            | Role::Asserted
            | Role::Initial
            | Role::Given
            | Role::Printed => Purpose::Data,
            Role::Index
            | Role::Part
            | Role::DestinationIndex
            | Role::SourceIndex
            | Role::Count
            | Role::DestinationRow
            | Role::SourceRow
            | Role::Columns
            | Role::Rows
            | Role::RowLength
            | Role::Coordinate => Purpose::Address,
            Role::Condition | Role::Lower | Role::Upper | Role::LoopStep => Purpose::Control,
        }
    }

    /// How messages call it.
    ///
    /// ```
    /// assert_eq!(invar_ir::Role::Columns.name(), "the number of columns");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Role::Argument => "the operand",
            Role::Index => "the index",
            Role::Part => "the index of a part",
            Role::DestinationIndex => "the destination's index",
            Role::SourceIndex => "the source's index",
            Role::Count => "the number of elements",
            Role::DestinationRow => "the destination's row length",
            Role::SourceRow => "the source's row length",
            Role::Columns => "the number of columns",
            Role::Rows => "the number of rows",
            Role::RowLength => "the row length",
            Role::Stored => "the stored value",
            Role::StoredMatrix => "the matrix",
            Role::Combined => "the operand",
            Role::Event => "the event",
            Role::Entry => "the entry",
            Role::Factor => "a factor",
            Role::Addend => "the addend",
            Role::Asserted => "the asserted value",
            Role::Condition => "the condition",
            Role::Lower => "the first index",
            Role::Upper => "the bound",
            Role::LoopStep => "the step",
            Role::Initial => "the initial value",
            Role::Given => "the value",
            Role::Printed => "the printed value",
            Role::Coordinate => "a coordinate",
        }
    }
}

/// The one list of operands, in the order printed. Whether `$kind` is borrowed to read or to change
/// decides what `$visit` gets.
macro_rules! visit_operands {
    ($kind:expr, $visit:expr) => {{
        let mut visit = $visit;
        match $kind {
            InstKind::Const(_)
            | InstKind::FunctionConstant(_)
            | InstKind::BufferLength(_)
            | InstKind::Alloc(_)
            | InstKind::Barrier { .. }
            | InstKind::Return => {}
            InstKind::Op { args, .. } => {
                for arg in args {
                    visit(Role::Argument, arg);
                }
            }
            InstKind::Load(Place { index, path, .. }) => {
                visit(Role::Index, index);
                visit_path!(visit, path);
            }
            InstKind::Store {
                place: Place { index, path, .. },
                value,
            } => {
                visit(Role::Index, index);
                visit_path!(visit, path);
                visit(Role::Stored, value);
            }
            InstKind::Atomic {
                place: Place { index, path, .. },
                args,
                ..
            } => {
                visit(Role::Index, index);
                visit_path!(visit, path);
                for arg in args {
                    visit(Role::Combined, arg);
                }
            }
            InstKind::Copy {
                operands:
                    CopyOperands {
                        destination_index,
                        source_index,
                        ..
                    },
                count,
            } => {
                visit(Role::DestinationIndex, destination_index);
                visit(Role::SourceIndex, source_index);
                visit(Role::Count, count);
            }
            InstKind::AsyncCopy {
                operands:
                    CopyOperands {
                        destination_index,
                        source_index,
                        ..
                    },
                shape,
            } => {
                visit(Role::DestinationIndex, destination_index);
                visit(Role::SourceIndex, source_index);
                match shape {
                    CopyShape::Linear { count } => visit(Role::Count, count),
                    CopyShape::Tile {
                        destination_row,
                        source_row,
                        columns,
                        rows,
                    } => {
                        visit(Role::DestinationRow, destination_row);
                        visit(Role::SourceRow, source_row);
                        visit(Role::Columns, columns);
                        visit(Role::Rows, rows);
                    }
                }
            }
            InstKind::Wait { events } => {
                for event in events {
                    visit(Role::Event, event);
                }
            }
            InstKind::MatrixFill { value } => visit(Role::Entry, value),
            InstKind::MatrixLoad {
                place: MatrixPlace { index, row, .. },
            } => {
                visit(Role::Index, index);
                visit(Role::RowLength, row);
            }
            InstKind::MatrixStore {
                place: MatrixPlace { index, row, .. },
                matrix,
            } => {
                visit(Role::Index, index);
                visit(Role::RowLength, row);
                visit(Role::StoredMatrix, matrix);
            }
            InstKind::MatrixMultiplyAccumulate { a, b, c } => {
                visit(Role::Factor, a);
                visit(Role::Factor, b);
                visit(Role::Addend, c);
            }
            InstKind::AssertUniform { value, .. } => visit(Role::Asserted, value),
            InstKind::If { condition, .. } => visit(Role::Condition, condition),
            InstKind::For {
                lower,
                upper,
                step,
                init,
                ..
            } => {
                visit(Role::Lower, lower);
                visit(Role::Upper, upper);
                visit(Role::LoopStep, step);
                for value in init {
                    visit(Role::Initial, value);
                }
            }
            InstKind::Loop { init, .. } => {
                for value in init {
                    visit(Role::Initial, value);
                }
            }
            InstKind::Yield(values) | InstKind::Break(values) | InstKind::Continue(values) => {
                for value in values {
                    visit(Role::Given, value);
                }
            }
            InstKind::Print { values, .. } => {
                for value in values {
                    visit(Role::Printed, value);
                }
            }
            InstKind::Texture { function, args, .. } => {
                let value = match function {
                    TextureFunction::Write => args.len().wrapping_sub(1),
                    _without_a_value => args.len(),
                };
                for (number, arg) in args.into_iter().enumerate() {
                    let role = match number == value {
                        true => Role::Stored,
                        false => Role::Coordinate,
                    };
                    visit(role, arg);
                }
            }
        }
    }};
}

macro_rules! visit_path {
    ($visit:ident, $path:expr) => {
        for step in $path {
            match step {
                Step::Field(_) => {}
                Step::Index(value) => $visit(Role::Part, value),
            }
        }
    };
}

/// The one list of memory objects: a copy's destination comes before its source.
macro_rules! visit_memory {
    ($kind:expr, $visit:expr) => {{
        let mut visit = $visit;
        match $kind {
            InstKind::BufferLength(memory)
            | InstKind::Load(Place { memory, .. })
            | InstKind::Store {
                place: Place { memory, .. },
                ..
            }
            | InstKind::Atomic {
                place: Place { memory, .. },
                ..
            }
            | InstKind::MatrixLoad {
                place: MatrixPlace { memory, .. },
            }
            | InstKind::MatrixStore {
                place: MatrixPlace { memory, .. },
                ..
            } => visit(memory),
            InstKind::Texture {
                texture, function, ..
            } => {
                visit(texture);
                if let TextureFunction::Sample(sampling)
                | TextureFunction::SampleCompare(sampling)
                | TextureFunction::GatherCompare(sampling)
                | TextureFunction::Gather { sampling, .. } = function
                    && let Sampling {
                        sampler:
                            SamplerSource::Param(param) | SamplerSource::NormalizedParam(param),
                        ..
                    } = sampling
                {
                    visit(param);
                }
            }
            InstKind::Copy {
                operands:
                    CopyOperands {
                        destination,
                        source,
                        ..
                    },
                ..
            }
            | InstKind::AsyncCopy {
                operands:
                    CopyOperands {
                        destination,
                        source,
                        ..
                    },
                ..
            } => {
                visit(destination);
                visit(source);
            }
            InstKind::Const(_)
            | InstKind::FunctionConstant(_)
            | InstKind::Op { .. }
            | InstKind::Alloc(_)
            | InstKind::Wait { .. }
            | InstKind::Barrier { .. }
            | InstKind::MatrixFill { .. }
            | InstKind::MatrixMultiplyAccumulate { .. }
            | InstKind::AssertUniform { .. }
            | InstKind::If { .. }
            | InstKind::For { .. }
            | InstKind::Loop { .. }
            | InstKind::Yield(_)
            | InstKind::Break(_)
            | InstKind::Continue(_)
            | InstKind::Return
            | InstKind::Print { .. } => {}
        }
    }};
}

impl InstKind {
    /// Calls `f` on each value that it uses itself (not in its regions) with the value's role, in the
    /// order printed.
    ///
    /// ```
    /// use invar_ir::{InstKind, Role, Value, Values};
    /// let wait = InstKind::Wait { events: Values::from_slice(&[Value(3)]) };
    /// wait.for_each_operand(|role, value| assert_eq!((role, value), (Role::Event, Value(3))));
    /// ```
    pub fn for_each_operand(&self, mut f: impl FnMut(Role, Value)) {
        visit_operands!(self, |role: Role, value: &Value| f(role, *value));
    }

    /// Calls `f` on each value that it uses itself (not in its regions), in the order printed.
    pub fn for_each_use(&self, mut f: impl FnMut(Value)) {
        visit_operands!(self, |_: Role, value: &Value| f(*value));
    }

    /// Calls `f` on each value that it uses itself (not in its regions), to change it.
    pub fn for_each_use_mut(&mut self, mut f: impl FnMut(&mut Value)) {
        visit_operands!(self, |_: Role, value: &mut Value| f(value));
    }

    /// Calls `f` on each memory object that it names itself (not in its regions); an `alloc`, which
    /// begins an array, names none.
    pub fn for_each_memory(&self, mut f: impl FnMut(Memory)) {
        visit_memory!(self, |memory: &Memory| f(*memory));
    }

    /// Calls `f` on each memory object that it names itself (not in its regions), to change it.
    pub fn for_each_memory_mut(&mut self, mut f: impl FnMut(&mut Memory)) {
        visit_memory!(self, |memory: &mut Memory| f(memory));
    }
}
