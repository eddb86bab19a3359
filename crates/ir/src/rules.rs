//! The rules that diagnostics name. A rule's documentation is what `invar explain RULE` prints.
//!
//! Names are stable: once released, a rule keeps its name and its meaning.

use std::fmt;

macro_rules! rules {
    ($($(#[doc = $doc:literal])+ $rule:ident $name:literal,)*) => {
        /// A rule that a diagnostic names.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $($(#[doc = $doc])+ $rule,)*
        }

        impl Rule {
            /// Every rule.
            pub const ALL: &[Rule] = &[$(Rule::$rule),*];

            /// Its name: `type-mismatch`.
            pub const fn name(self) -> &'static str {
                match self { $(Rule::$rule => $name,)* }
            }

            /// What it says, why, and what to do: Markdown with an example.
            pub const fn explanation(self) -> &'static str {
                match self { $(Rule::$rule => concat!($($doc, "\n"),+),)* }
            }
        }
    };
}

rules! {
    /// The text is not in the language.
    ///
    /// Raised while a `.inv` file is read, before anything is known of its meaning.
    Syntax "syntax",
    /// A name is used that nothing before it defines.
    ///
    /// A value can be used after its definition in the same region, and in the regions inside.
    UndefinedName "undefined-name",
    /// A name is defined twice in one kernel, or two kernels have one name.
    DuplicateName "duplicate-name",
    /// An operand has a type that the operation does not take.
    ///
    /// There are no implicit conversions: write a `cast`.
    TypeMismatch "type-mismatch",
    /// Something is larger, longer or nested deeper than the language allows.
    ///
    /// Limits keep the work on a kernel proportional to its size, whoever wrote it.
    LimitExceeded "limit-exceeded",
    /// A kernel stores to memory that it may only read, or loads from memory it may only write (S2).
    AccessViolation "access-violation",
    /// A dispatch asks for what the kernel or the device cannot do: an empty threadgroup, a
    /// threadgroup size other than the required one, a grid with too many threads, a kernel that is
    /// not there (X1, X2, S4).
    InvalidDispatch "invalid-dispatch",
    /// An argument does not fit its parameter: another kind or type, a wrong number of arguments,
    /// too much threadgroup memory, a function constant without a value (S4).
    InvalidArgument "invalid-argument",
    /// A kernel is larger than a device can compile or run.
    TooLarge "too-large",
    /// Threads that must meet do not: a threadgroup barrier, a simdgroup function, a
    /// simdgroup-matrix operation or an async copy is reached by some threads of its scope only, or
    /// by all but in different rounds of a loop (X4).
    ///
    /// The message says which threads wait and where the others are. On hardware this hangs or
    /// gives garbage. The verifier proves that it cannot happen; a false `assert_uniform` or an
    /// early return can still bring it about.
    BarrierDivergence "barrier-divergence",
    /// A run took more instructions than its limit allows.
    ///
    /// A loop has no end, a thread waits for what never comes (X3), or the limit is too low for the
    /// work.
    StepLimit "step-limit",
    /// A run took more time than its limit allows. See `step-limit`.
    DeadlineExceeded "deadline-exceeded",
    /// The caller stopped the run. Buffers hold what was stored so far (F3).
    Cancelled "cancelled",
    /// Two threads access one location, at least one of them writes, not both are atomic, and
    /// nothing orders the two (R1).
    ///
    /// The load gives one of several values, the location keeps one of several (R2). The message
    /// names both places, both threads and the location. Put a barrier of the right scope and space
    /// between the two, make both atomic, or give each thread a location of its own.
    DataRace "data-race",
    /// Threads store one and the same value to one location, and nothing orders the stores (R3).
    ///
    /// The outcome is the same in any order. Let one thread store it, or allow `equal-stores` if it
    /// is meant.
    EqualStores "equal-stores",
    /// An access is out of bounds: a load gives 0, a store or atomic does nothing (B1 to B4).
    ///
    /// If it is meant, the kernel says `allow(out_of_bounds_loads)` or
    /// `allow(out_of_bounds_stores)`.
    OutOfBounds "out-of-bounds",
    /// Threadgroup memory is read before anything has written it.
    ///
    /// It gives 0 (I2), so nothing is undefined, but the store that was meant to come first is
    /// missing or writes another place.
    UninitialisedRead "uninitialised-read",
    /// The event of an async copy is never waited for.
    ///
    /// The copy is finished only when its threadgroup ends (O5): nobody can use its data before.
    NeverWaited "never-waited",
    /// Threads disagree on a value that `assert_uniform` says is the same for all (X5).
    ///
    /// Everyone gets the value of one thread. The assertion is false for this input.
    NotUniform "not-uniform",
    /// Runs with different seeds leave different results (R4).
    ///
    /// The kernel uses what atomics return, adds floats atomically, or races. If that is meant,
    /// allow `schedule-dependent`.
    ScheduleDependent "schedule-dependent",
    /// A checker cannot follow this run: too many locations, threadgroups or barriers.
    CheckLimit "check-limit",
}

impl Rule {
    /// The rule of that name.
    pub fn from_name(name: &str) -> Option<Rule> {
        Rule::ALL.iter().copied().find(|r| r.name() == name)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
