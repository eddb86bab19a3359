//! Loads from what the dispatch does not write: each gives what its index and its way into the element say, so two of
//! one place give the same. A component of a vector that is loaded is as the load of that component.
//!
//! Deliberately absent: what memory holds, but for what the kernel requires of it.

use invar_ir::{Memory, Place, Scalar, Step, Type, Width};

use crate::kernel::Subject;
use crate::linear::{Formula, Linear};
use crate::query::{Int, Query, Way};
use crate::value::{Thread, range};

impl Subject<'_> {
    /// What a load of an integer gives, or the component of one of integers.
    pub fn loaded(
        &self,
        q: &mut Query,
        t: &mut Thread,
        place: &Place,
        (ty, component): (Type, Option<i128>),
    ) -> Option<Int> {
        let (Type::Scalar(scalar) | Type::Vector(scalar, _)) = ty else {
            return None;
        };
        let is_one = matches!(ty, Type::Scalar(_)) == component.is_none();
        let fixed = self.module.is_read_only(self.kernel, place.memory);
        if place.width != Width::One || !is_one || !scalar.is_integer() || !fixed {
            return None;
        }
        let index = self.int(q, t, place.index)?;
        let (mut way, mut at) = (Way::new(), vec![index.form.clone()]);
        for step in &place.path {
            match step {
                Step::Field(field) => way.push(Some(*field)),
                Step::Index(value) => {
                    way.push(None);
                    at.push(self.int(q, t, *value)?.form);
                }
            }
        }
        if let Some(component) = component {
            way.push(None);
            at.push(Linear::constant(component));
        }
        self.load(q, (place.memory, way), (at, &index), scalar)
    }

    fn load(
        &self,
        q: &mut Query,
        object: (Memory, Way),
        (at, index): (Vec<Linear>, &Int),
        scalar: Scalar,
    ) -> Option<Int> {
        let (low, high) = range(scalar);
        let before = q.loads.entry(object.clone()).or_default().clone();
        if let Some((_, form)) = before.iter().find(|(other, _)| *other == at) {
            let form = form.clone();
            return Some(Int { form, low, high });
        }
        let (memory, way) = &object;
        let key = format!("contents {memory:?} {way:?} {}", before.len());
        let loaded = q.symbol(&key, low, high);
        for (other, its) in &before {
            let mut either = vec![Formula::eq(its, &loaded.form)?];
            for (a, b) in at.iter().zip(other) {
                either.push(Formula::ne(a, b)?);
            }
            q.say(Some(Formula::any(either)));
        }
        // What is required of elements is of whole ones.
        if way.is_empty() {
            let before: Vec<(Linear, Linear)> = before
                .into_iter()
                .filter_map(|(at, loaded)| Some((at.into_iter().next()?, loaded)))
                .collect();
            self.say_loaded(q, *memory, &before, (index, &loaded.form));
        }
        q.loads
            .entry(object)
            .or_default()
            .push((at, loaded.form.clone()));
        Some(loaded)
    }
}
