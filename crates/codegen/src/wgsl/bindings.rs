//! Where what a host binds stands in the interface of a module: where its parameter says, or where room is.

use std::collections::BTreeSet;

use invar_ir::{Binding as Place, Kernel};

/// The places of one module's bindings.
pub(super) struct Places {
    /// Of each parameter that keeps its place.
    kept: Vec<Option<Place>>,
    /// Those that are given away: the kept ones, also of what the module does not use.
    taken: BTreeSet<Place>,
    /// Every number of group 0 below this one is given away.
    next: u32,
}

impl Places {
    /// Keeps the places of parameters, or none. Of two parameters in one place, the parts of one buffer, the first
    /// has it.
    pub fn new(kernel: &Kernel, keep: bool) -> Places {
        let mut taken = BTreeSet::new();
        let of = |place: Option<Place>| place.filter(|at| keep && taken.insert(*at));
        let kept = kernel.params.iter().map(|p| p.binding).map(of).collect();
        Places {
            kept,
            taken,
            next: 0,
        }
    }

    /// That of a parameter.
    pub fn of_param(&mut self, number: usize) -> Place {
        let kept = self.kept.get(number).copied().flatten();
        kept.unwrap_or_else(|| self.free())
    }

    /// The first place of group 0 that nothing has.
    pub fn free(&mut self) -> Place {
        loop {
            let place = Place {
                group: 0,
                number: self.next,
            };
            self.next += 1;
            if self.taken.insert(place) {
                return place;
            }
        }
    }
}

/// A place as WGSL says it.
pub(super) fn attributes(place: Place) -> String {
    format!("@group({}) @binding({})", place.group, place.number)
}
