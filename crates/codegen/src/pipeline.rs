//! The way down: what is done to a verified kernel before a target's code is written, one list a target.
//!
//! Every step rewrites kernel number 0 of a module that has no other. What a list leaves is what a target's writer
//! takes; nothing else is done to a kernel in between. `docs/architecture.md` shows the lists, and a test holds the
//! two against each other.
//!
//! Deliberately absent: the reference machine, which runs kernels as they are but for `contract` and `expand`; what
//! LLVM and drivers do afterwards.

use invar_ir::contract::contract;
use invar_ir::expand::expand;
use invar_ir::{Const, Diagnostics, Module, Op, Type};

use crate::analysis::ranges::Known;
use crate::passes::coarsen::{coarsen, coarsen_threads};
use crate::passes::rows::{self, fix_scalars};
use crate::passes::{self, PassOptions, copies, narrow_indices, print};
use crate::wide_indices::legalize;

/// A step of the way down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Imageblocks become threadgroup arrays.
    Imageblocks,
    /// `print` becomes stores into a buffer, the kernel's last parameter.
    Print,
    /// Products and sums become `fma` (A8).
    Contract,
    /// `Scalar` parameters of which every dispatch gives one value become constants.
    FixScalars,
    /// Loops that count become `for`s.
    CountLoops,
    /// The same, also where a counter might wrap around: such a loop is written twice.
    CountLoopsOrAsk,
    /// Several threadgroups become one.
    Coarsen,
    /// Several threads of a threadgroup become one.
    CoarsenThreads,
    /// Loops over rows of buffers are written out.
    Rows,
    /// 64-bit indices of what is accessed many elements at a time fit where the target adds to them.
    LegalizeWideIndices,
    /// 64-bit indices that are computed from smaller integers are computed in 32 bits.
    NarrowIndices,
    /// Copies become loops of loads and stores.
    Copies,
    /// Functions become their definitions (A10), but for those that the target has itself.
    Expand,
    /// Loops that go on by a whole grid go through stretches of threadgroups.
    Strides,
    /// Threadgroups that go down columns of tiles go along rows.
    TurnColumns,
    /// What other threads brought to threadgroup memory is loaded from where it came from.
    Forward,
    /// [`OPTIMISATION`].
    Optimise,
    /// Loads move to where they are used.
    Sink,
}

/// The CPU compiler's. A core has one threadgroup at a time, hence `Strides` and `TurnColumns`. Threadgroup memory is in
/// the same caches as the rest there, hence `Forward`; and LLVM leaves loads and stores of different arrays about where
/// they stand, hence `Sink`.
pub const CPU: &[Step] = &[
    Step::Imageblocks,
    Step::Print,
    Step::Contract,
    Step::LegalizeWideIndices,
    Step::Copies,
    Step::Expand,
    Step::CountLoopsOrAsk,
    Step::Strides,
    Step::TurnColumns,
    Step::Forward,
    Step::Optimise,
    Step::Sink,
];

/// That of the MSL writer. Metal's compiler optimises.
pub const MSL: &[Step] = &[
    Step::Imageblocks,
    Step::Print,
    Step::Contract,
    Step::LegalizeWideIndices,
    Step::Expand,
];

/// That of the WGSL writer. Drivers optimise, but know nothing of other threads of a dispatch.
pub const WGSL: &[Step] = &[
    Step::Imageblocks,
    Step::Print,
    Step::Contract,
    Step::FixScalars,
    Step::CountLoops,
    Step::Coarsen,
    Step::CoarsenThreads,
    Step::Rows,
    Step::LegalizeWideIndices,
    Step::NarrowIndices,
    Step::Expand,
];

/// The passes of [`Step::Optimise`], in order. Unrolling makes indices constant, so that arrays become values, which
/// makes more constant; what is left unused goes last.
pub const OPTIMISATION: &[&str] = &[
    "fold",
    "early-returns",
    "reroll",
    "unguard",
    "last-iterations",
    "fold",
    "unroll",
    "fold",
    "induction",
    "promote",
    "fold",
    "trees",
    "if-convert",
    "cse",
    "interior",
    "aligned",
    "lines",
    "fold",
    "saturate",
    "narrow",
    "cse",
    "invariant",
    "dead",
];

impl Step {
    /// Its name in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Step::Imageblocks => "imageblocks",
            Step::Print => "print",
            Step::Contract => "contract",
            Step::FixScalars => "fix-scalars",
            Step::CountLoops => "count-loops",
            Step::CountLoopsOrAsk => "count-loops-or-ask",
            Step::Coarsen => "coarsen",
            Step::CoarsenThreads => "coarsen-threads",
            Step::Rows => "rows",
            Step::LegalizeWideIndices => "legalize-wide-indices",
            Step::NarrowIndices => "narrow-indices",
            Step::Copies => "copies",
            Step::Expand => "expand",
            Step::Strides => "strides",
            Step::TurnColumns => "turn-columns",
            Step::Forward => "forward",
            Step::Optimise => "optimise",
            Step::Sink => "sink",
        }
    }
}

/// Whether a target has an operation of operands of these types itself.
pub(crate) type Keeps<'a> = &'a dyn Fn(Op, &[Type]) -> bool;

/// A kernel on its way, and what its target knows of dispatches.
pub(crate) struct Lowering<'a> {
    pub(crate) module: Module,
    pub(crate) keeps: Keeps<'a>,
    /// There are 64-bit integers.
    pub(crate) int64: bool,
    /// Parameters by their number, and what every dispatch gives for them.
    pub(crate) fixed_scalars: &'a [(usize, Const)],
    /// The nominal size; smaller once threads became one.
    pub(crate) threadgroup_size: [u32; 3],
    /// No threadgroup is smaller.
    pub(crate) full_threadgroups: bool,
    /// How many threadgroups in x become one, if they can.
    pub(crate) threadgroups_per_workgroup: u32,
    /// How many threads of a threadgroup become one, if they can.
    pub(crate) threads_per_invocation: u32,
    /// Whether loops over rows are written out.
    pub(crate) unroll_rows: bool,
    /// How many threads a simdgroup has, where no dispatch can choose.
    pub(crate) simdgroup_size: Option<u32>,
}

impl<'a> Lowering<'a> {
    /// One of whose dispatches nothing is known.
    pub(crate) fn new(module: Module, keeps: Keeps<'a>) -> Lowering<'a> {
        Lowering {
            module,
            keeps,
            int64: true,
            fixed_scalars: &[],
            threadgroup_size: [1; 3],
            full_threadgroups: false,
            threadgroups_per_workgroup: 1,
            threads_per_invocation: 1,
            unroll_rows: false,
            simdgroup_size: None,
        }
    }

    /// Takes all steps of a list.
    pub(crate) fn run(mut self, steps: &[Step]) -> Result<Lowering<'a>, Diagnostics> {
        for step in steps {
            let module = std::mem::take(&mut self.module);
            self.module = self.step(*step, module)?;
        }
        Ok(self)
    }

    fn step(&mut self, step: Step, mut module: Module) -> Result<Module, Diagnostics> {
        let simdgroup_size = self.simdgroup_size;
        let passes = |module, names: &[&str]| {
            // The verifier would miss the sources that spans name.
            let options = PassOptions {
                simdgroup_size,
                verify: false,
                ..PassOptions::default()
            };
            Ok(passes::run(module, 0, names, &options)?.0)
        };
        match step {
            Step::Imageblocks => {
                passes::imageblocks::lower(&mut module.kernels[0]);
                Ok(module)
            }
            Step::Print => Ok(print::expand(module, 0)?.0),
            Step::Contract => contract(module),
            Step::FixScalars => {
                if !self.fixed_scalars.is_empty() {
                    module.kernels[0] = fix_scalars(&module, 0, self.fixed_scalars);
                }
                Ok(module)
            }
            Step::CountLoops => passes(module, &["count-loops"]),
            Step::CountLoopsOrAsk => passes(module, &["count-loops-or-ask"]),
            Step::Coarsen => {
                match coarsen(&module, 0, self.threadgroups_per_workgroup) {
                    Some(coarse) => module.kernels[0] = coarse,
                    None => self.threadgroups_per_workgroup = 1,
                }
                Ok(module)
            }
            Step::CoarsenThreads => {
                let (size, factor) = (self.threadgroup_size, self.threads_per_invocation);
                if self.full_threadgroups
                    && let Some((coarse, size)) = coarsen_threads(&module, 0, size, factor)
                {
                    module.kernels[0] = coarse;
                    self.threadgroup_size = size;
                }
                Ok(module)
            }
            Step::Rows => {
                let known = Known {
                    threadgroup_size: Some(self.threadgroup_size),
                    threads: None,
                };
                if self.unroll_rows
                    && let Some(rows) = rows::unroll(&module, 0, &known)
                {
                    module.kernels[0] = rows;
                }
                Ok(module)
            }
            Step::LegalizeWideIndices if self.int64 => legalize(module, 0),
            Step::LegalizeWideIndices => Ok(module),
            Step::NarrowIndices => {
                let known = Known {
                    threadgroup_size: Some(self.threadgroup_size),
                    threads: None,
                };
                let has_any = narrow_indices::run(&mut module.kernels[0], &known);
                module.kernels[0].renumber();
                match has_any {
                    true => passes(module, &["dead"]),
                    false => Ok(module),
                }
            }
            Step::Copies => copies::expand(module),
            Step::Expand => expand(module, &|op, _, types| (self.keeps)(op, types)),
            Step::Strides => passes(module, &["strides"]),
            Step::TurnColumns => passes(module, &["turn-columns"]),
            Step::Forward => passes(module, &["forward"]),
            Step::Optimise => passes(module, OPTIMISATION),
            Step::Sink => passes(module, &["sink"]),
        }
    }
}

/// How many loads and stores the copies of a module's one kernel come to at the step `copies`: what has too many for
/// a target is refused before they are written out.
pub fn accesses_of_copies(module: &Module) -> usize {
    copies::accesses(module)
}

/// What the CPU compiler makes code of; `keeps` says which functions it has itself.
///
/// # Errors
/// Function constants without a value, and what a step cannot write.
pub fn for_cpu(
    module: Module,
    simdgroup_size: u32,
    keeps: &dyn Fn(Op, &[Type]) -> bool,
) -> Result<Module, Diagnostics> {
    let lowering = Lowering {
        simdgroup_size: Some(simdgroup_size),
        ..Lowering::new(module, keeps)
    };
    Ok(lowering.run(CPU)?.module)
}
