//! Failures of dispatches that were not reported yet.
//!
//! A dispatch that fails leaves what it stored so far in its buffers (F3). The caller that asks how it ended is told;
//! where none has asked, the next that reads or writes that memory on the host is, and so is a caller that asks how
//! a later dispatch ended that used it. What such a dispatch wrote is as void as what it used, so it hands the
//! failure on to that.
//!
//! Invariant: a failure leaves the list when it was told, or with the memory that it is about; what was
//! cancelled never enters it, for somebody asked for that.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use invar_ir::Rule;

use crate::Error;
use crate::fork;
use crate::sync::lock;
use crate::uses::Use;

/// How many failures are kept for the very same memory; one that comes then takes the place of the last.
const OF_ONE_MEMORY: usize = 4;
/// How many are kept in all: lent memory may be gone without our knowing, and the oldest go first.
const AT_MOST: usize = 4096;

/// What went wrong with a dispatch, and whether somebody knows.
#[derive(Debug)]
pub(crate) struct Fault {
    error: Error,
    /// What is said to who asks for something else.
    to_others: Error,
    told: AtomicBool,
}

impl Fault {
    pub(crate) fn new(error: Error) -> Arc<Fault> {
        let told = AtomicBool::new(error.rule() == Some(Rule::Cancelled));
        let to_others = error.of_earlier_dispatch();
        Arc::new(Fault {
            error,
            to_others,
            told,
        })
    }

    /// Of what a thread of the parent would have ended (`fork.rs`), for a child that uses what that was to write:
    /// it did not fail, and the child could not have asked.
    pub(crate) fn left_behind(what: &str) -> Arc<Fault> {
        let error = fork::left_behind(what);
        Arc::new(Fault {
            to_others: error.clone(),
            error,
            told: AtomicBool::new(false),
        })
    }

    /// Whether somebody knows.
    pub(crate) fn is_told(&self) -> bool {
        self.told.load(Ordering::Acquire)
    }

    /// Tells who asks how the dispatch itself ended.
    pub(crate) fn tell(&self) -> Error {
        self.told.store(true, Ordering::Release);
        self.error.clone()
    }

    /// Tells who asks for something else, unless somebody knows already.
    pub(crate) fn tell_other(&self) -> Option<Error> {
        let known = self.told.swap(true, Ordering::AcqRel);
        (!known).then(|| self.to_others.clone())
    }
}

/// Addresses, and a failure that they are about.
type Entry = (Range<usize>, Arc<Fault>);

/// The failures that were not reported yet.
#[derive(Default)]
pub(crate) struct Faults {
    list: Mutex<Vec<Entry>>,
    /// How long the list is; read without the lock, since there is hardly ever anything.
    count: AtomicUsize,
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start.max(b.start) < a.end.min(b.end)
}

impl Faults {
    /// The list without what was told meanwhile; nothing if it is empty.
    fn untold(&self) -> Option<MutexGuard<'_, Vec<Entry>>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut list = lock(&self.list);
        list.retain(|(_, fault)| !fault.is_told());
        self.count.store(list.len(), Ordering::Release);
        Some(list)
    }

    /// A dispatch has ended, perhaps with a failure: what it wrote is about that, and about the failures of the
    /// memory that it used, which this gives.
    pub(crate) fn ended(&self, uses: &[Use], own: Option<&Arc<Fault>>) -> Vec<Arc<Fault>> {
        let mut inherited: Vec<Arc<Fault>> = Vec::new();
        if let Some(list) = self.untold() {
            for (addresses, fault) in list.iter() {
                let used = uses.iter().any(|u| overlap(&u.addresses, addresses));
                if used && !inherited.iter().any(|f| Arc::ptr_eq(f, fault)) {
                    inherited.push(fault.clone());
                }
            }
        }
        for written in uses.iter().filter(|u| u.writes) {
            for fault in own.into_iter().chain(&inherited) {
                self.enter(&written.addresses, fault);
            }
        }
        inherited
    }

    pub(crate) fn enter(&self, addresses: &Range<usize>, fault: &Arc<Fault>) {
        if addresses.is_empty() || fault.is_told() {
            return;
        }
        let mut list = lock(&self.list);
        let same = |(a, _): &&Entry| a == addresses;
        if list.iter().filter(same).any(|(_, f)| Arc::ptr_eq(f, fault)) {
            return;
        }
        if list.iter().filter(same).count() >= OF_ONE_MEMORY {
            if let Some(last) = list.iter_mut().rfind(|(a, _)| a == addresses) {
                last.1 = fault.clone();
            }
            return;
        }
        if list.len() >= AT_MOST {
            list.remove(0);
        }
        list.push((addresses.clone(), fault.clone()));
        self.count.store(list.len(), Ordering::Release);
    }

    /// Tells who is about to touch memory on the host the first failure that it is about; what else that
    /// memory is about needs not be told after it.
    ///
    /// # Errors
    /// That failure.
    pub(crate) fn tell(&self, addresses: &Range<usize>) -> Result<(), Error> {
        let Some(mut list) = self.untold() else {
            return Ok(());
        };
        let told = list
            .iter()
            .filter(|(a, _)| overlap(a, addresses))
            .find_map(|(_, fault)| fault.tell_other());
        list.retain(|(a, _)| !overlap(a, addresses));
        self.count.store(list.len(), Ordering::Release);
        told.map_or(Ok(()), Err)
    }

    /// Forgets what is about memory that is given back.
    pub(crate) fn forget(&self, addresses: &Range<usize>) {
        if let Some(mut list) = self.untold() {
            list.retain(|(a, _)| !overlap(a, addresses));
            self.count.store(list.len(), Ordering::Release);
        }
    }
}
