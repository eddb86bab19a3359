//! The one error type of the crate.
//!
//! Each variant is one condition that an input failed to meet. The text names the operation, the
//! input as the user would write it, and what to change. Errors are built only on the failing path.

use std::fmt;

/// Why an operation refused its input.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// Text that is not a tuple, layout, tiler or swizzle.
    Parse {
        /// Byte position in the text, from 0.
        at: usize,
        /// What the parser needed there.
        expected: &'static str,
        /// What stands there instead.
        found: String,
    },
    /// More integers or parentheses, deeper nesting, or more cells than the crate accepts.
    Limit {
        /// What was counted.
        what: &'static str,
        /// The largest accepted count.
        limit: usize,
    },
    /// A size, stride, extent or offset that does not fit a 64-bit signed integer.
    Overflow {
        /// What was being computed.
        what: &'static str,
    },
    /// Two trees that must nest alike do not.
    NotCongruent {
        /// The operation.
        operation: &'static str,
        /// The first tree, printed.
        left: String,
        /// The second tree, printed.
        right: String,
    },
    /// A size below 1.
    NotPositive {
        /// The operation.
        operation: &'static str,
        /// The value found.
        value: i64,
    },
    /// A negative number where the operation has no meaning for one.
    Negative {
        /// The operation.
        operation: &'static str,
        /// What the number is, such as "stride".
        what: &'static str,
        /// The value found.
        value: i64,
    },
    /// A mode number below 0, or at or past the rank.
    NoSuchMode {
        /// The operation.
        operation: &'static str,
        /// The mode asked for, from 0.
        mode: i64,
        /// The number of modes there are.
        rank: usize,
    },
    /// Modes from one number to before another that are not part of what there is.
    NoSuchModes {
        /// The operation.
        operation: &'static str,
        /// The first mode asked for, from 0.
        begin: i64,
        /// One past the last.
        end: i64,
        /// The number of modes there are.
        rank: usize,
    },
    /// A mode number that is asked for twice.
    RepeatedMode {
        /// The operation.
        operation: &'static str,
        /// The repeated mode, from 0.
        mode: usize,
    },
    /// A tile with more modes than what it tiles.
    TileRank {
        /// The operation.
        operation: &'static str,
        /// Modes of the tile.
        tile: usize,
        /// Modes of the layout.
        layout: usize,
    },
    /// A coordinate outside the shape.
    OutOfBounds {
        /// The coordinate, printed.
        coordinate: String,
        /// The shape, printed.
        shape: String,
    },
    /// A coordinate with a `_` where an integer is needed.
    Wildcard {
        /// The coordinate, printed.
        coordinate: String,
    },
    /// Composition: a stride that neither divides nor is divided by the mode it must step through.
    StrideDivisibility {
        /// The mode of the right operand, printed.
        mode: String,
        /// The left operand, printed.
        layout: String,
        /// The stride left to step when the failing mode was reached.
        stride: i64,
        /// The size of that mode.
        size: i64,
    },
    /// Composition: a size that the modes of the left operand cannot hold evenly.
    ShapeDivisibility {
        /// The mode of the right operand, printed.
        mode: String,
        /// The left operand, printed.
        layout: String,
        /// The size left to place when the failing mode was reached.
        size: i64,
        /// How many steps fit in that mode.
        steps: i64,
    },
    /// Composition: modes that each step evenly, but whose sum passes the end of a mode.
    Carry {
        /// The right operand, printed.
        mode: String,
        /// The left operand, printed.
        layout: String,
        /// How far the modes reach together.
        reach: i64,
        /// The size of the mode they pass.
        size: i64,
    },
    /// A mode whose stride lies inside the offsets that smaller strides already cover.
    Overlap {
        /// The operation.
        operation: &'static str,
        /// The layout, printed.
        layout: String,
        /// The stride that is too small.
        stride: i64,
        /// The smallest stride that would do.
        least: i64,
    },
    /// Left inverse: strides that are not multiples of one another.
    StrideMultiple {
        /// The layout, printed.
        layout: String,
        /// The larger stride.
        stride: i64,
        /// The smaller stride, which must divide it.
        divisor: i64,
    },
    /// Left inverse of a layout that repeats an offset.
    NotInjective {
        /// The operation.
        operation: &'static str,
        /// The layout, printed.
        layout: String,
    },
    /// A thread or value layout that skips or repeats a number.
    Incomplete {
        /// Which of the two.
        what: &'static str,
        /// The layout, printed.
        layout: String,
        /// How many numbers it must give.
        size: i64,
    },
    /// Two layouts that must have as many coordinates do not.
    SizeMismatch {
        /// The operation.
        operation: &'static str,
        /// Coordinates of the first.
        left: i64,
        /// Coordinates of the second.
        right: i64,
    },
    /// Division of shapes where neither number divides the other.
    Indivisible {
        /// The operation.
        operation: &'static str,
        /// The dividend.
        value: i64,
        /// The divisor.
        by: i64,
    },
    /// Recast to smaller elements of a layout in which neighbouring elements have no mode.
    NoUnitStride {
        /// The layout, printed.
        layout: String,
        /// How many smaller elements each element becomes.
        parts: i64,
    },
    /// Recast to smaller elements of a layout with several modes of stride 1.
    SeveralUnitStrides {
        /// The layout, printed.
        layout: String,
    },
    /// Swizzle parameters outside what an offset can hold.
    Swizzle {
        /// Number of bits moved.
        bits: u32,
        /// Lowest bit that may change, or that is read.
        base: u32,
        /// Distance between the two bit fields.
        shift: i32,
        /// The condition that fails.
        condition: &'static str,
    },
    /// Bank parameters or an access that no memory has.
    Access {
        /// The condition that fails.
        condition: &'static str,
        /// The value found.
        value: i64,
    },
    /// A picture of things that do not belong together.
    Picture {
        /// The condition that fails, and what to do.
        condition: &'static str,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Parse {
                at,
                expected,
                found,
            } => {
                write!(f, "position {at}: expected {expected}, found {found}")
            }
            Error::Limit { what, limit } => write!(
                f,
                "more than {limit} {what}: coalesce, slice or split the input first"
            ),
            Error::Overflow { what } => write!(
                f,
                "{what} does not fit a 64-bit signed integer: use smaller sizes or strides"
            ),
            Error::NotCongruent {
                operation,
                left,
                right,
            } => write!(
                f,
                "{operation}: `{left}` and `{right}` are not nested alike: give both the same \
                 parentheses"
            ),
            Error::NotPositive { operation, value } => {
                write!(
                    f,
                    "{operation}: size {value} is below 1: every size must be at least 1"
                )
            }
            Error::Negative {
                operation,
                what,
                value,
            } => write!(
                f,
                "{operation}: {what} {value} is negative: the least that it is defined for is 0"
            ),
            Error::NoSuchMode {
                operation,
                mode,
                rank,
            } => write!(
                f,
                "{operation}: there is no mode {mode}: modes are numbered from 0, and there \
                 {} {rank}",
                if *rank == 1 { "is" } else { "are" }
            ),
            Error::NoSuchModes {
                operation,
                begin,
                end,
                rank,
            } => write!(
                f,
                "{operation}: modes from {begin} to before {end} are not part of {rank}: give a \
                 begin of at least 0, and an end from there to {rank}"
            ),
            Error::RepeatedMode { operation, mode } => {
                write!(
                    f,
                    "{operation}: mode {mode} is given twice: name each mode once"
                )
            }
            Error::TileRank {
                operation,
                tile,
                layout,
            } => write!(
                f,
                "{operation}: the tile has {tile} modes, the layout {layout}: drop modes of the \
                 tile or group it differently"
            ),
            Error::OutOfBounds { coordinate, shape } => {
                write!(
                    f,
                    "coordinate `{coordinate}` is outside the shape `{shape}`"
                )
            }
            Error::Wildcard { coordinate } => write!(
                f,
                "coordinate `{coordinate}` contains `_`: give an integer there, or slice instead"
            ),
            Error::StrideDivisibility { .. }
            | Error::ShapeDivisibility { .. }
            | Error::Carry { .. }
            | Error::Overlap { .. }
            | Error::StrideMultiple { .. }
            | Error::NotInjective { .. }
            | Error::Incomplete { .. }
            | Error::SizeMismatch { .. }
            | Error::Indivisible { .. }
            | Error::NoUnitStride { .. }
            | Error::SeveralUnitStrides { .. }
            | Error::Swizzle { .. }
            | Error::Access { .. }
            | Error::Picture { .. } => self.fmt_of_strides(f),
        }
    }
}

impl Error {
    /// What is wrong with how strides, sizes and layouts fit together.
    fn fmt_of_strides(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::StrideDivisibility {
                mode,
                layout,
                stride,
                size,
            } => write!(
                f,
                "composition: mode `{mode}` steps by {stride} through a mode of size {size} of \
                 `{layout}`, and neither divides the other: use a stride that divides {size} or \
                 is a multiple of it"
            ),
            Error::ShapeDivisibility {
                mode,
                layout,
                size,
                steps,
            } => write!(
                f,
                "composition: mode `{mode}` has {size} left to place where `{layout}` has room \
                 for {steps}, and {steps} does not divide {size}: use a size that is a multiple \
                 of {steps} or at most {steps}"
            ),
            Error::Carry {
                mode,
                layout,
                reach,
                size,
            } => write!(
                f,
                "composition: the modes of `{mode}` together reach step {reach} of a mode of size \
                 {size} of `{layout}`: use modes that do not overlap, or smaller ones"
            ),
            Error::Overlap {
                operation,
                layout,
                stride,
                least,
            } => write!(
                f,
                "{operation}: stride {stride} of `{layout}` lies inside what smaller strides \
                 cover: it must be at least {least}, or the sizes before it smaller"
            ),
            Error::StrideMultiple {
                layout,
                stride,
                divisor,
            } => write!(
                f,
                "left inverse: stride {stride} of `{layout}` is not a multiple of stride \
                 {divisor}: no layout inverts it, pad stride {stride} to a multiple"
            ),
            Error::NotInjective { operation, layout } => write!(
                f,
                "{operation}: `{layout}` gives one offset to several coordinates: filter out \
                 modes of stride 0 first"
            ),
            Error::Incomplete { what, layout, size } => write!(
                f,
                "thread-value layout: the {what} layout `{layout}` does not give each of the {size} \
                 numbers from 0 once: use compact strides"
            ),
            Error::SizeMismatch {
                operation,
                left,
                right,
            } => write!(
                f,
                "{operation}: one layout has {left} coordinates, the other {right}: use two of \
                 one shape"
            ),
            Error::Indivisible {
                operation,
                value,
                by,
            } => write!(
                f,
                "{operation}: neither of {value} and {by} divides the other: use sizes that do"
            ),
            Error::NoUnitStride { layout, parts } => write!(
                f,
                "recast: no mode of `{layout}` has stride 1 to hold the {parts} smaller elements \
                 of each element: add one, such as `1:1`"
            ),
            Error::SeveralUnitStrides { layout } => write!(
                f,
                "recast: several modes of `{layout}` have stride 1, so elements overlap: keep one"
            ),
            Error::Swizzle {
                bits,
                base,
                shift,
                condition,
            } => {
                write!(f, "swizzle {bits},{base},{shift}: {condition}")
            }
            Error::Access { condition, value } => write!(f, "access: {condition}, not {value}"),
            Error::Picture { condition } => write!(f, "picture: {condition}"),
            other => unreachable!("{other:?} is about a single layout"),
        }
    }
}

impl std::error::Error for Error {}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;
