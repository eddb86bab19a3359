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
