//! Passes over kernels. Which of them a target runs, and in which order, says [`crate::pipeline`].
//!
//! What a pass gets has been contracted (A8) and may have been expanded (A10). No pass reassociates,
//! contracts or approximates floats; none invents a store, moves one, or loads twice what was loaded
//! once (B5, R2). Every row of the op table is total (section 4), so computing one where the author
//! did not is a question of cost only.
//!
//! Each pass is one file. Those that need nothing but a kernel and [`PassOptions`] have a line in [`PASSES`], change
//! the kernel in place and leave its values as [`Kernel::renumber`] finds them.
//!
//! What they know of kernels beyond single instructions is in [`crate::analysis`].
//!
//! Deliberately absent: devices and what is cheap on them, beyond a few limits in [`PassOptions`].

mod aligned;
pub mod coarsen;
pub(crate) mod common;
pub(crate) mod copies;
pub mod cost;
mod count_loops;
mod cse;
mod dead;
mod early_returns;
mod fold;
mod forward;
mod if_convert;
pub mod imageblocks;
mod induction;
mod interior;
mod invariant;
mod last_iterations;
mod lines;
mod narrow;
pub(crate) mod narrow_indices;
mod options;
pub mod print;
mod promote;
pub mod regroup;
mod reroll;
pub mod rows;
mod saturate;
mod sink;
pub mod split;
mod strides;
pub mod textures;
mod trees;
mod turn_columns;
mod unguard;
mod unroll;
mod untile;

use std::time::{Duration, Instant};

use invar_ir::room::{PASSES_BYTES, with_room};
use invar_ir::{Diagnostic, Diagnostics, Kernel, Module, Rule, Span, verify};

use crate::analysis::ranges::Known;
use count_loops::Wrapping;
pub use options::PassOptions;

/// A step of the pipeline.
pub struct Pass {
    /// Its name.
    pub name: &'static str,
    /// What it does to a kernel of a module; the module is there for its declarations only.
    run: fn(&Module, &mut Kernel, &PassOptions),
}

/// Every pass that is run by its name.
pub const PASSES: &[Pass] = &[
    Pass {
        name: "fold",
        run: |module, kernel, _| fold::run(module, kernel),
    },
    Pass {
        name: "count-loops",
        run: |module, kernel, _| count_loops::run(module, kernel, Wrapping::Stays),
    },
    Pass {
        name: "count-loops-or-ask",
        run: |module, kernel, _| count_loops::run(module, kernel, Wrapping::IsAsked),
    },
    Pass {
        name: "early-returns",
        run: |_, kernel, _| early_returns::run(kernel),
    },
    Pass {
        name: "reroll",
        run: |module, kernel, options| {
            let size = kernel.threadgroup_size;
            reroll::run(module, kernel, size, options.unroll_iterations as usize + 1);
        },
    },
    Pass {
        name: "unguard",
        run: |_, kernel, _| unguard::run(kernel),
    },
    Pass {
        name: "last-iterations",
        run: |module, kernel, _| last_iterations::run(module, kernel),
    },
    Pass {
        name: "strides",
        run: |module, kernel, _| strides::run(module, kernel),
    },
    Pass {
        name: "turn-columns",
        run: |module, kernel, _| turn_columns::run(module, kernel),
    },
    Pass {
        name: "forward",
        run: |module, kernel, _| forward::run(module, kernel),
    },
    Pass {
        name: "promote",
        run: |_, kernel, _| promote::run(kernel),
    },
    Pass {
        name: "unroll",
        run: |_, kernel, options| unroll::run(kernel, options),
    },
    Pass {
        name: "induction",
        run: |_, kernel, _| induction::run(kernel),
    },
    Pass {
        name: "interior",
        run: |_, kernel, _| interior::run(kernel),
    },
    Pass {
        name: "aligned",
        run: |_, kernel, _| aligned::run(kernel),
    },
    Pass {
        name: "lines",
        run: |module, kernel, _| lines::run(module, kernel),
    },
    Pass {
        name: "saturate",
        run: |_, kernel, _| saturate::run(kernel),
    },
    Pass {
        name: "narrow",
        run: |_, kernel, _| narrow::run(kernel),
    },
    Pass {
        name: "narrow-indices",
        run: |_, kernel, _| {
            narrow_indices::run(kernel, &Known::default());
        },
    },
    Pass {
        name: "trees",
        run: trees::run,
    },
    Pass {
        name: "if-convert",
        run: |_, kernel, options| if_convert::run(kernel, options),
    },
    Pass {
        name: "cse",
        run: cse::run,
    },
    Pass {
        name: "invariant",
        run: invariant::run,
    },
    Pass {
        name: "sink",
        run: |module, kernel, _| sink::run(module, kernel),
    },
    Pass {
        name: "dead",
        run: |_, kernel, _| dead::run(kernel),
    },
];

/// How long a pass took, and what it left.
#[derive(Clone, Debug)]
pub struct Timing {
    /// The pass.
    pub name: &'static str,
    /// How long.
    pub duration: Duration,
    /// Instructions of the kernel afterwards.
    pub instructions: usize,
}

/// Runs passes by their names, in order, on kernel number `index` of a verified module that has been contracted.
///
/// # Errors
/// A name that no pass has; else none for a verified module, unless a pass is wrong and `verify` finds it.
///
/// # Panics
/// If there is no kernel of that number.
pub fn run(
    module: Module,
    index: usize,
    names: &[&str],
    options: &PassOptions,
) -> Result<(Module, Vec<Timing>), Diagnostics> {
    with_room(PASSES_BYTES, || run_in_room(module, index, names, options))
}

fn run_in_room(
    module: Module,
    index: usize,
    names: &[&str],
    options: &PassOptions,
) -> Result<(Module, Vec<Timing>), Diagnostics> {
    let mut module = module;
    let mut timings = Vec::new();
    for name in names {
        let Some(pass) = PASSES.iter().find(|pass| pass.name == *name) else {
            let names: Vec<&str> = PASSES.iter().map(|pass| pass.name).collect();
            let message = format!("there is no pass `{name}`; there are {}", names.join(", "));
            let error = Diagnostic::error(Rule::UndefinedName, Span::NONE, message);
            return Err(Diagnostics(vec![error]));
        };
        let start = Instant::now();
        let mut kernel = module.kernels[index].clone();
        (pass.run)(&module, &mut kernel, options);
        kernel.renumber();
        module.kernels[index] = kernel;
        if options.verify {
            module = verify(module)?.into_module();
        }
        timings.push(Timing {
            name: pass.name,
            duration: start.elapsed(),
            instructions: common::count(&module.kernels[index].body),
        });
    }
    Ok((module, timings))
}
