//! Kernels whose threads do not care how they are put together, in the threadgroups that suit them
//! ([`invar_codegen::passes::regroup`]).
//!
//! A form is made for grids of one dimension whose threads divide their place, for each axis that lanes may lie on,
//! and where the kernel asks for the size of threadgroups, for each size that it is dispatched with.

use std::sync::{Arc, Mutex};

use invar_codegen::passes::regroup::{Grids, Regrouped, Threadgroups, may_be_regrouped, regroup};
use invar_interp::GridSizes;
use invar_ir::room::{PASSES_BYTES, with_room};
use invar_ir::{Dim, verify};

use super::native::Form;
use crate::Arg;
use crate::backend::Source;
use crate::sync::lock;

/// So many sizes of threadgroups have forms of their own, for a kernel that asks for them; others run as written.
const SIZES: usize = 8;
/// Lanes lie on another axis than x only if it is as long as this.
const LONG: u32 = 32;

/// Forms by what they are for: every dispatch, or those of one size; and what is done with the grid.
type Forms = Vec<((Option<Threadgroups>, Grids), Option<Arc<Rearranged>>)>;

/// A form of the kernel, and which grid it takes.
pub(super) struct Rearranged {
    form: Arc<Form>,
    how: Regrouped,
}

/// The forms of a kernel.
pub(super) struct Regrouping {
    source: Source,
    /// Its threads may run each by itself.
    possible: bool,
    forms: Mutex<Forms>,
}

impl Regrouping {
    pub(super) fn of(source: &Source) -> Regrouping {
        Regrouping {
            possible: with_room(PASSES_BYTES, || {
                may_be_regrouped(&source.module, source.kernel)
            }),
            source: source.clone(),
            forms: Mutex::default(),
        }
    }

    /// The form that a dispatch had better run, and its grid.
    pub(super) fn of_grid(&self, grid: &GridSizes, args: &[Arg]) -> Option<(Arc<Form>, GridSizes)> {
        let full = (0..3).all(|d| grid.threads[d].is_multiple_of(grid.threadgroup[d]));
        let threadgroups = Threadgroups {
            size: grid.threadgroup,
            full,
        };
        self.best(threadgroups, grid.threads, &|number| match args[number] {
            Arg::Scalar(components) => match components.as_slice() {
                [one] if one.scalar.is_integer() => Some(one.scalar.integer(one.bits)),
                _no_integer => None,
            },
            Arg::Buffer(_) | Arg::ThreadgroupLength(_) => None,
        })
    }

    /// The form and the threadgroups that a dispatch of this size will most likely run, if its grid is large.
    pub(super) fn of_size(&self, size: [u32; 3]) -> Option<(Arc<Form>, [u32; 3])> {
        const MANY: u32 = 1 << 12;
        let threadgroups = Threadgroups { size, full: true };
        let threads = size.map(|n| if n > 1 { n * MANY } else { 1 });
        let (form, grid) = self.best(threadgroups, threads, &|_| Some(MANY.into()))?;
        Some((form, grid.threadgroup))
    }

    /// The best form for a grid, where `number` tells what parameters are.
    fn best(
        &self,
        threadgroups: Threadgroups,
        threads: [u32; 3],
        number: &dyn Fn(usize) -> Option<i128>,
    ) -> Option<(Arc<Form>, GridSizes)> {
        let is_line = threads[1..] == [1, 1];
        let arranged = |split: bool| {
            let grid = |how: &Regrouped| match &how.split {
                Some(split) => split.rows(threads, number),
                None => Some(threads),
            };
            self.arranged(threadgroups, split, &grid)
        };
        is_line
            .then(|| arranged(true))
            .flatten()
            .or_else(|| arranged(false))
    }

    fn arranged(
        &self,
        threadgroups: Threadgroups,
        split: bool,
        grid: &dyn Fn(&Regrouped) -> Option<[u32; 3]>,
    ) -> Option<(Arc<Form>, GridSizes)> {
        if !self.possible {
            return None;
        }
        for exchanged in [true, false] {
            let found = self.find(threadgroups, Grids { exchanged, split })?;
            let mut threads = grid(&found.how)?;
            threads.swap(0, found.how.lanes as usize);
            if found.how.lanes != Dim::X && threads[0] < LONG {
                continue;
            }
            let threadgroup = found.how.shape(threads)?;
            let grid = GridSizes {
                threads,
                threadgroup,
                threadgroups: std::array::from_fn(|d| threads[d].div_ceil(threadgroup[d])),
            };
            return Some((found.form.clone(), grid));
        }
        None
    }

    /// The form for every dispatch, or else the one for this size.
    fn find(&self, threadgroups: Threadgroups, grids: Grids) -> Option<Arc<Rearranged>> {
        let mut forms = lock(&self.forms);
        for wanted in [None, Some(threadgroups)] {
            let key = (wanted, grids);
            let known = forms.iter().find(|(own, _)| *own == key);
            let found = match known {
                Some((_, found)) => found.clone(),
                None if forms.len() >= 4 * SIZES => return None,
                None => {
                    let found = with_room(PASSES_BYTES, || self.made(wanted, grids));
                    let found = found.map(Arc::new);
                    forms.push((key, found.clone()));
                    found
                }
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }

    fn made(&self, threadgroups: Option<Threadgroups>, grids: Grids) -> Option<Rearranged> {
        let mut how = regroup(&self.source.module, self.source.kernel, threadgroups, grids)?;
        let module = std::mem::take(&mut how.module);
        let verified = verify(module);
        debug_assert!(verified.is_ok(), "{verified:?}");
        let source = Source {
            module: Arc::new(verified.ok()?),
            kernel: 0,
        };
        Some(Rearranged {
            form: Arc::new(Form::of(source)),
            how,
        })
    }
}
