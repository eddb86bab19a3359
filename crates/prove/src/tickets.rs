//! Tickets: what atomic additions of 1 give (T2).
//!
//! Additions to one location come one after the other. Where nothing else changes it between two of them, the one that is
//! the `n`-th since it held `first` gives `first + n`, as far as that wraps in its type. So each of fewer than two to
//! the 32 additions gives another number; those of two threads are two of them.
//!
//! Nothing else changes a counter in device memory if the dispatch writes to that location by these additions only.
//! One that a threadgroup has for itself may also be set where a barrier tells it from the additions: in no interval
//! with them.

use std::collections::{BTreeSet, HashMap};

use invar_ir::{AddressSpace, AtomicOp, Dim, InstKind, Memory, Op, Place, Value, Width};

use crate::linear::{Formula, Linear};
use crate::query::Query;
use crate::shape::{Id, Iteration};
use crate::subject::{Site, Subject};
use crate::thread::{Thread, range};

/// No thread makes more additions than that, of those that are counted.
const MOST_ITERATIONS: i128 = 1 << 20;

/// An atomic addition of 1 to an element that a constant says.
struct Ticket {
    /// The instruction.
    id: Id,
    /// What it gives.
    value: Value,
    memory: Memory,
    index: i128,
    space: AddressSpace,
}

impl Subject<'_> {
    pub fn constant(&self, value: Value) -> Option<i128> {
        self.run(value, &HashMap::new(), 0)
    }

    /// The element of an object that a place is, if it is a whole one that a constant says.
    fn whole_element(&self, place: &Place) -> Option<i128> {
        let is_whole = place.path.is_empty() && place.width == Width::One;
        is_whole.then(|| self.constant(place.index))?
    }

    fn tickets(&self) -> Vec<Ticket> {
        let mut found = Vec::new();
        for (id, statement) in self.shape.statements.iter().enumerate() {
            if let InstKind::Atomic {
                op: AtomicOp::Add,
                place,
                args,
                ..
            } = &statement.inst.kind
                && self.constant(args[0]) == Some(1)
                && let Some(index) = self.whole_element(place)
                && let Some((space, _)) = self.space(place.memory)
                && let Some(value) = statement.inst.results.first()
            {
                found.push(Ticket {
                    id,
                    value: *value,
                    memory: place.memory,
                    index,
                    space,
                });
            }
        }
        found
    }

    /// How often a thread takes tickets at most, of those that take several.
    pub fn iterations_of_tickets(&self) -> Vec<i128> {
        let tickets = self.tickets().into_iter();
        let mut iterations: Vec<i128> =
            tickets.filter_map(|t| self.most_iterations(t.id)).collect();
        iterations.retain(|n| *n > 1);
        iterations
    }

    /// How often a thread takes a ticket at most, of those of counters that all threads of the grid share; once, where it
    /// asks how large the grid is, for its number in that.
    pub fn iterations_of_shared_tickets(&self) -> BTreeSet<i128> {
        let is_of_device = |t: &Ticket| t.space == AddressSpace::Device;
        let tickets = self.tickets().into_iter().filter(is_of_device);
        let iterations = tickets.filter_map(|t| self.most_iterations(t.id));
        let asks = self.shape.statements.iter().any(|statement| {
            let op = statement.inst.kind.as_op().map(|(op, ..)| op);
            matches!(op, Some(Op::ThreadsPerGrid | Op::ThreadgroupsPerGrid))
        });
        iterations
            .chain(asks.then_some(1))
            .filter(|n| *n > 0)
            .collect()
    }

    /// Other instructions that may change the location of a ticket.
    fn others_that_change(&self, ticket: &Ticket) -> BTreeSet<Id> {
        let is_elsewhere = |site: &Site<'_>| {
            let place = match self.shape.kind(site.id) {
                InstKind::Store { place, .. } | InstKind::Atomic { place, .. } => place,
                _several => return false,
            };
            let index = self.whole_element(place);
            index.is_some_and(|index| index != ticket.index)
        };
        let of_object = self.sites.iter().filter(|s| s.memory == ticket.memory);
        let others = of_object.filter(|s| s.id != ticket.id && s.mode.writes() && !is_elsewhere(s));
        others.map(|site| site.id).collect()
    }

    /// How often a thread makes an instruction at most, if constants say.
    fn most_iterations(&self, id: Id) -> Option<i128> {
        let mut iterations = 1i128;
        for loop_ in self.shape.loops_around(id) {
            let InstKind::For {
                lower, upper, step, ..
            } = self.shape.kind(loop_)
            else {
                return None;
            };
            let (lower, upper) = (self.constant(*lower)?, self.constant(*upper)?);
            let step = self.constant(*step)?;
            let way = if step > 0 {
                upper - lower
            } else {
                lower - upper
            };
            let step = Some(step.abs()).filter(|s| *s > 0)?;
            iterations = iterations.checked_mul((way.max(0) + step - 1) / step)?;
        }
        (iterations <= MOST_ITERATIONS).then_some(iterations)
    }

    /// How often a thread makes an addition between two barriers at most, if nothing else changes the counter there and
    /// the two threads are between the same two.
    fn most_between_barriers(
        &self,
        ticket: &Ticket,
        others: &BTreeSet<Id>,
        (first, second): (&Thread, &Thread),
    ) -> Option<i128> {
        for loop_ in self.shape.loops_around(ticket.id) {
            let (a, b) = (
                first.iterations.get(&loop_)?,
                second.iterations.get(&loop_)?,
            );
            if a != b || *a == Iteration::Any {
                return None;
            }
        }
        let mut most = 0;
        for interval in self.shape.intervals(ticket.space, false) {
            let its: Vec<_> = interval.iter().filter(|(id, _)| *id == ticket.id).collect();
            let is_again = |(_, iterations): &&(Id, crate::shape::Iterations)| {
                iterations
                    .values()
                    .any(|iteration| *iteration == Iteration::Any)
            };
            let is_changed = interval.iter().any(|(id, _)| others.contains(id));
            if !its.is_empty() && is_changed || its.iter().any(is_again) {
                return None;
            }
            most = most.max(its.len() as i128);
        }
        Some(most)
    }

    /// Says that two threads have two tickets.
    pub fn say_tickets(&self, q: &mut Query, first: &Thread, second: &Thread) -> Option<()> {
        for ticket in self.tickets() {
            let known = |t: &Thread| match t.known(ticket.value) {
                Some(crate::thread::Val::Int(int)) => Some(int.form.clone()),
                Some(crate::thread::Val::Bool(_)) | None => None,
            };
            let (x, y) = (known(first), known(second));
            if x.is_none() && y.is_none() {
                continue;
            }
            let others = self.others_that_change(&ticket);
            let all = match ticket.space {
                AddressSpace::Device if others.is_empty() => self
                    .most_iterations(ticket.id)
                    .and_then(|iterations| self.of_grid(q, iterations)),
                AddressSpace::Threadgroup if q.same && x.is_some() && y.is_some() => self
                    .most_between_barriers(&ticket, &others, (first, second))
                    .and_then(|iterations| iterations.checked_mul(self.largest_threadgroup()))
                    .map(Linear::constant),
                _others => None,
            };
            if let Some(all) = all {
                self.say_numbers(q, &ticket, [x, y], &all)?;
            }
        }
        Some(())
    }

    /// So many for each thread of the grid.
    fn of_grid(&self, q: &mut Query, iterations: i128) -> Option<Linear> {
        let mut all = Linear::constant(iterations);
        for d in Dim::ALL {
            let threads = self.grid(q, d);
            all = q.product(&all, &threads.form)?;
        }
        Some(all)
    }

    /// Says that what the two threads have, as far as they do, is two tickets of so many.
    fn say_numbers(
        &self,
        q: &mut Query,
        ticket: &Ticket,
        forms: [Option<Linear>; 2],
        all: &Linear,
    ) -> Option<()> {
        let (least, most) = range(self.kernel.ty(ticket.value).scalar()?);
        let modulus = most - least + 1;
        let last = q.bounds(all)?.1;
        let turns = (most - least).checked_add(last)? / modulus;
        let name = format!("ticket {}", ticket.id);
        let start = q.symbol(&format!("{name} first"), least, most).form;
        q.firsts.push((ticket.memory, ticket.index, start.clone()));
        let mut facts = Vec::new();
        let mut numbers = Vec::new();
        for (tag, form) in [1, 2].into_iter().zip(forms) {
            let Some(form) = form else {
                continue;
            };
            let number = q.symbol(&format!("thread{tag} {name}"), 0, last).form;
            let turn = q.symbol(&format!("thread{tag} turns of {name}"), 0, turns);
            let given = start.plus(1, &number)?.plus(-modulus, &turn.form)?;
            facts.push(Formula::eq(&form, &given)?);
            facts.push(Formula::lt(&number, all)?);
            numbers.push(number);
        }
        if let [one, other] = &numbers[..] {
            facts.push(Formula::ne(one, other)?);
        }
        // Out of bounds each gives 0 (B3).
        let length = self.length(q, ticket.memory);
        let outside = Formula::le(&length.form, &Linear::constant(ticket.index))?;
        q.say(Some(Formula::any([outside, Formula::all(facts)])));
        Some(())
    }
}
