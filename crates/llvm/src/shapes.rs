//! How the threads of a threadgroup are cut into chunks.

use std::collections::HashMap;

use invar_codegen::analysis::distances::{self, Distances};
use invar_codegen::analysis::lanes::{
    Class, Classes, Positions, Question, Shape, analyse as classify,
};
use invar_ir::inst::Value;
use invar_ir::{Kernel, Level, Uniformity};

use crate::cost::interleave;
use crate::options::SIMDGROUP_SIZE;
use crate::plan::Plan;
use crate::target::Features;
use crate::widths;

/// What [`Shapes::choose`] goes by.
pub(crate) struct Choice<'a, 'k> {
    pub kernel: &'k Kernel,
    pub plan: &'a Plan<'k>,
    pub uniformity: &'a Uniformity,
    pub threadgroup_size: Option<[u32; 3]>,
    /// [`crate::CompileOptions::interleave`].
    pub interleave: Option<[u32; 2]>,
    pub target: &'a Features,
}

/// How threads are cut into chunks, and how values differ over these.
pub(crate) struct Shapes {
    /// Of chunks.
    pub full: Shape,
    /// Of the pieces in which a chunk is gone through that is not full.
    pub slow: Shape,
    /// How values are kept in slots, which full chunks read as others wrote them.
    pub slots: HashMap<Value, Class>,
    pub fast_classes: Classes,
    pub distances: Distances,
    pub slow_classes: Classes,
}

impl Shapes {
    pub fn choose(choice: &Choice<'_, '_>) -> Shapes {
        let (kernel, plan) = (choice.kernel, choice.plan);
        let by_simdgroup = kernel.tells_simdgroups();
        let size = choice.threadgroup_size;
        let natural = if by_simdgroup {
            choice.target.vector_bits / 32
        } else {
            widths::lanes(kernel, &plan.affine, choice.target)
        };
        let simple = Shape {
            width: natural,
            along: if by_simdgroup {
                SIMDGROUP_SIZE / natural
            } else {
                1
            },
            rows: 1,
            linear: by_simdgroup,
        };
        let interleave = choice.interleave.unwrap_or_else(|| {
            let classes = choice.classes(simple, Positions::InRow, &HashMap::new());
            interleave(
                kernel,
                &classes,
                plan,
                choice.target,
                natural,
                size,
                by_simdgroup,
            )
        });
        let full = if by_simdgroup {
            // Several simdgroups side by side, unless they would go separate ways.
            let several = Shape {
                along: simple.along * simdgroups_of_chunk(kernel, size, natural, interleave),
                ..simple
            };
            let masked = |shape| {
                let classes = choice.classes(shape, Positions::InRow, &HashMap::new());
                classes.masked_loops()
            };
            if several == simple || masked(several) > masked(simple) {
                simple
            } else {
                several
            }
        } else {
            shape(natural, size, interleave)
        };
        let one_row = size.is_some_and(|[_, y, z]| y == 1 && z == 1);
        let (of_full, of_any) = match (full.linear, one_row) {
            (false, _) => (Positions::Rows, Positions::Rows),
            (true, true) => (Positions::InRow, Positions::InRow),
            (true, false) => (Positions::InRow, Positions::Anywhere),
        };
        // Chunks that are not full are gone through in pieces: less code. Where threads wait for each other there
        // is much of it, and threadgroups are mostly full.
        let most_rows = if plan.collective.is_empty() { 4 } else { 1 };
        let slow = Shape {
            along: if by_simdgroup { simple.along } else { 1 },
            rows: full.rows.min(most_rows),
            ..full
        };
        // Slots are read in full chunks as they are written in others.
        let any = choice.classes(full, of_any, &HashMap::new());
        let slots: HashMap<_, Class> = plan.slots().into_iter().map(|v| (v, any.of(v))).collect();
        let fast_classes = choice.classes(full, of_full, &slots);
        let distances = choice.ask(full, of_full, &slots, |question| {
            distances::analyse(question, &fast_classes)
        });
        Shapes {
            full,
            slow,
            slow_classes: choice.classes(slow, of_any, &slots),
            fast_classes,
            distances,
            slots,
        }
    }
}

impl Choice<'_, '_> {
    /// How values differ over pieces of this shape.
    fn classes(
        &self,
        shape: Shape,
        positions: Positions,
        at_least: &HashMap<Value, Class>,
    ) -> Classes {
        self.ask(shape, positions, at_least, classify)
    }

    fn ask<T>(
        &self,
        shape: Shape,
        positions: Positions,
        at_least: &HashMap<Value, Class>,
        ask: impl FnOnce(&Question<'_>) -> T,
    ) -> T {
        let of_simdgroup = self.kernel.tells_simdgroups() && shape.lanes() == SIMDGROUP_SIZE;
        ask(&Question {
            kernel: self.kernel,
            uniformity: self.uniformity,
            level: if of_simdgroup {
                Level::Simdgroup
            } else {
                Level::Threadgroup
            },
            shape,
            positions,
            together: &|inst| self.plan.is_collective(inst),
            at_least,
            threadgroup_size: self.threadgroup_size,
            ranges: &self.plan.ranges,
        })
    }
}

/// How many simdgroups a chunk has, if that many fill the rows of a threadgroup: one for kernels with
/// operations that a simdgroup makes as a whole, or that are over the active threads of one.
fn simdgroups_of_chunk(
    kernel: &Kernel,
    size: Option<[u32; 3]>,
    natural: u32,
    [along, _]: [u32; 2],
) -> u32 {
    let mut alone = kernel.active_collectives;
    kernel.for_each_inst(&mut |inst| {
        alone |= inst.kind.is_of_whole_simdgroup();
    });
    let Some([x, _, _]) = size.filter(|_| !alone) else {
        return 1;
    };
    let most = (along * natural / SIMDGROUP_SIZE).max(1);
    let fits = |n: &u32| x.is_multiple_of(n * SIMDGROUP_SIZE);
    (0..=most.ilog2())
        .rev()
        .map(|k| 1 << k)
        .find(fits)
        .unwrap_or(1)
}

/// How threads are cut into chunks, in kernels that cannot tell simdgroups.
fn shape(natural: u32, size: Option<[u32; 3]>, [along, rows]: [u32; 2]) -> Shape {
    let Some([x, y, _]) = size else {
        return Shape {
            width: natural,
            along,
            rows: 1,
            linear: false,
        };
    };
    const NARROWEST: u32 = 4;
    if x < NARROWEST {
        return Shape {
            width: natural,
            along,
            rows: 1,
            linear: true,
        };
    }
    let below = |n: u32| 1 << n.ilog2();
    let width = natural.min(below(x));
    Shape {
        width,
        along: along.min(below(x / width)),
        rows: rows.min(below(y)),
        linear: false,
    }
}
