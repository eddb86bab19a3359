//! What loops carry where constants alone say: found by running the loop.
//!
//! Numbers of one iteration belong together, such as those of a sum's tree, of which one doubles while the other
//! halves.

use std::collections::BTreeSet;

use invar_ir::{InstKind, Op, Value};

use crate::iterations::Known;
use crate::linear::{Formula, Linear};
use crate::query::{Int, Query};
use crate::shape::Id;
use crate::subject::{Subject, Table};
use crate::thread::{Thread, Val};

/// A loop of more iterations is not run.
const ITERATIONS: usize = 200;

impl Subject<'_> {
    /// The values that an integer carried by a loop can have, in order, where constants alone say.
    pub fn table(&self, loop_: Id, number: usize) -> Option<Vec<i128>> {
        let rows = self.rows(loop_);
        let column: Option<BTreeSet<i128>> = rows.iter().map(|r| r[number]).collect();
        let column = column.filter(|column| !column.is_empty());
        column.map(|c| c.into_iter().collect())
    }

    fn rows(&self, loop_: Id) -> Table {
        if let Some(known) = self.tables.borrow().get(&loop_) {
            return known.clone();
        }
        let rows = self.run_loop(loop_);
        self.tables.borrow_mut().insert(loop_, rows.clone());
        rows
    }

    fn run_loop(&self, loop_: Id) -> Table {
        let again = self.shape.exits(loop_, true);
        let [(_, values)] = again[..] else {
            return Table::new();
        };
        let init = self.shape.initial(loop_);
        let none = Known::new();
        let mut begin: Vec<Option<i128>> = init.iter().map(|v| self.run(*v, &none, 0)).collect();
        // Where the loop has no last iteration that constants say, what it counts by never comes again: without that
        // the others may.
        for _ in 0..=begin.len() {
            let (rows, ends) = self.run_from(loop_, values, begin.clone());
            if ends {
                return rows;
            }
            if !forget_fresh(&rows, &mut begin) {
                break;
            }
        }
        Table::new()
    }

    /// The iterations of a loop that begins with these values, and whether they are all.
    fn run_from(&self, loop_: Id, values: &[Value], begin: Vec<Option<i128>>) -> (Table, bool) {
        let carried = self.shape.carried(loop_);
        let mut row = begin;
        let mut rows = Table::new();
        for _ in 0..ITERATIONS {
            if rows.contains(&row) {
                return (rows, true);
            }
            rows.push(row.clone());
            let known = carried.iter().zip(&row);
            let known: Known = known.filter_map(|(v, n)| n.map(|n| (*v, n))).collect();
            if self.leaves(loop_, &known) {
                return (rows, true);
            }
            row = values.iter().map(|v| self.run(*v, &known, 0)).collect();
            // What is unknown once stays so: a later iteration would not be the first.
            for (new, old) in row.iter_mut().zip(&rows[rows.len() - 1]) {
                if old.is_none() {
                    *new = None;
                }
            }
        }
        (rows, false)
    }

    /// Whether the iteration of a loop in which these values are known is the last, if constants say.
    pub(crate) fn leaves(&self, loop_: Id, known: &Known) -> bool {
        for &id in self.shape.region(Some(loop_), 0) {
            match self.shape.kind(id) {
                InstKind::Break(_) | InstKind::Return => return true,
                InstKind::If { condition, .. } => {
                    let taken = self.holds(*condition, known);
                    let sides = [(0, taken != Some(false)), (1, taken != Some(true))];
                    let sides = sides.into_iter().filter(|(_, may_be)| *may_be);
                    for (side, _) in sides {
                        let last = self.shape.region(Some(id), side).last();
                        let last = last.map(|last| self.shape.kind(*last));
                        let ends = matches!(last, Some(InstKind::Break(_) | InstKind::Return));
                        if taken.is_some() && ends && self.is_flat(id, side) {
                            return true;
                        }
                        if !self.is_flat(id, side) {
                            return false;
                        }
                    }
                }
                _another => {}
            }
        }
        false
    }

    /// Whether nothing in a side of an `if` goes on with the next iteration, and no more of it depends on conditions.
    fn is_flat(&self, id: Id, side: usize) -> bool {
        self.shape.region(Some(id), side).iter().all(|id| {
            !matches!(
                self.shape.kind(*id),
                InstKind::Continue(_) | InstKind::If { .. }
            )
        })
    }

    /// Whether a condition holds, if constants say.
    pub(crate) fn holds(&self, condition: Value, known: &Known) -> Option<bool> {
        let InstKind::Op { op, args, .. } = self.shape.defining(condition)? else {
            return None;
        };
        if let (Op::Not, [a]) = (op, &args[..]) {
            return self.holds(*a, known).map(|holds| !holds);
        }
        let [a, b] = args[..] else {
            return None;
        };
        let (a, b) = (self.run(a, known, 0)?, self.run(b, known, 0)?);
        Some(match op {
            Op::Eq => a == b,
            Op::Ne => a != b,
            Op::Lt => a < b,
            Op::Le => a <= b,
            Op::Gt => a > b,
            Op::Ge => a >= b,
            _another => return None,
        })
    }

    /// Says that what a loop carries is that of one of its iterations.
    pub fn say_row(&self, q: &mut Query, t: &Thread, loop_: Id) -> Option<()> {
        let rows = self.rows(loop_);
        let mut columns: Vec<(usize, Linear)> = Vec::new();
        for (number, value) in self.shape.carried(loop_).iter().enumerate() {
            if rows.iter().all(|row| row[number].is_some())
                && let Some(Val::Int(Int { form, .. })) = self.anything(q, t, *value)
            {
                columns.push((number, form));
            }
        }
        let key = format!("{columns:?} of an iteration");
        if q.first_time(&key) {
            let mut either: Vec<Formula> = Vec::new();
            for row in &rows {
                let mut all = Vec::new();
                for (number, form) in &columns {
                    all.push(Formula::eq(form, &Linear::constant(row[*number]?))?);
                }
                either.push(Formula::all(all));
            }
            q.say(Some(Formula::any(either)));
        }
        Some(())
    }
}

/// Has those of the values that a loop begins with be unknown that are other ones in each of these iterations. Whether
/// there are any.
fn forget_fresh(rows: &Table, begin: &mut [Option<i128>]) -> bool {
    let mut any = false;
    for (number, first) in begin.iter_mut().enumerate() {
        let column: Option<BTreeSet<i128>> = rows.iter().map(|row| row[number]).collect();
        if column.is_some_and(|column| column.len() == rows.len()) {
            *first = None;
            any = true;
        }
    }
    any
}
