//! Whether neighbouring rows of threads read the same memory: the thread below reads, with another load, what
//! its neighbour above reads, as in filters and stencils.
//!
//! Indices are looked at as sums of products of values, without regard to wrapping: the answer decides
//! what is fast and nothing else.

use std::collections::{BTreeMap, HashMap};

use invar_ir::inst::{Const, InstKind, Memory, Value};
use invar_ir::ops::{Dim, Imm};
use invar_ir::{Inst, Kernel, Op};

/// How deep indices are looked into.
const DEPTH: u32 = 12;
/// Products beyond which an index is not multiplied out.
const MOST: usize = 16;
/// How many rows apart threads may be that read the same.
const APART: i64 = 3;
/// How many elements to the side what one reads may begin of what the other does.
const BESIDE: i64 = 16;

/// A sum of products: by its factors, in order, how often each product occurs. The constant has no
/// factors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sum(BTreeMap<Vec<Value>, i64>);

impl Sum {
    fn of(factors: &[Value], times: i64) -> Sum {
        let mut sum = Sum::default();
        sum.add(factors.to_vec(), times);
        sum
    }

    fn add(&mut self, factors: Vec<Value>, times: i64) {
        let old = self.0.remove(&factors).unwrap_or(0);
        let now = old.wrapping_add(times);
        if now != 0 {
            self.0.insert(factors, now);
        }
    }

    /// The sum of this and so many times another.
    fn plus(mut self, other: &Sum, times: i64) -> Sum {
        for (factors, count) in &other.0 {
            self.add(factors.clone(), count.wrapping_mul(times));
        }
        self
    }

    fn times(&self, other: &Sum) -> Option<Sum> {
        if self.0.len() * other.0.len() > MOST {
            return None;
        }
        let mut product = Sum::default();
        for (a, m) in &self.0 {
            for (b, n) in &other.0 {
                let mut factors = [&a[..], &b[..]].concat();
                factors.sort_unstable();
                product.add(factors, m.wrapping_mul(*n));
            }
        }
        Some(product)
    }

    /// The constant, if there is nothing else.
    fn constant(&self) -> Option<i64> {
        let only = self.0.keys().all(Vec::is_empty);
        only.then(|| self.0.get(&Vec::new()).copied().unwrap_or(0))
    }

    /// What is added from one row to the next, if that is the same for all rows.
    fn pitch(&self, rows: &[Value]) -> Option<Sum> {
        let mut pitch = Sum::default();
        for (factors, count) in &self.0 {
            let (row, rest): (Vec<Value>, Vec<Value>) =
                factors.iter().partition(|v| rows.contains(v));
            match row.len() {
                0 => {}
                1 => pitch.add(rest, *count),
                _ => return None,
            }
        }
        (!pitch.0.is_empty()).then_some(pitch)
    }
}

/// The values that tell the threads of one column apart.
pub(crate) fn row_positions(kernel: &Kernel) -> Vec<Value> {
    let mut found = Vec::new();
    kernel.for_each_inst(&mut |inst| {
        if let InstKind::Op { op, imm, .. } = &inst.kind {
            let position = matches!(
                op,
                Op::ThreadPositionInGrid | Op::ThreadPositionInThreadgroup
            );
            if position && *imm == Imm::Dim(Dim::Y) {
                found.extend(inst.results.iter().copied());
            }
        }
    });
    found
}

/// Whether a row of threads reads what another load reads in a row close to it.
pub(crate) fn share_loads(kernel: &Kernel, definitions: &HashMap<Value, &Inst>) -> bool {
    let rows = row_positions(kernel);
    if rows.is_empty() {
        return false;
    }
    let mut loads: Vec<(Memory, Sum, Sum)> = Vec::new();
    let mut found = false;
    kernel.for_each_inst(&mut |inst| {
        let InstKind::Load(place) = &inst.kind else {
            return;
        };
        let index = sum_of(definitions, place.index, DEPTH);
        let Some(pitch) = index.pitch(&rows) else {
            return;
        };
        let own = loads
            .iter()
            .filter(|(m, _, p)| (*m, p) == (place.memory, &pitch));
        for (_, other, _) in own {
            found |= is_rows_apart(&index, other, &pitch);
        }
        loads.push((place.memory, index, pitch));
    });
    found
}

/// Whether two indices are a few rows apart, and not far to the side.
fn is_rows_apart(a: &Sum, b: &Sum, pitch: &Sum) -> bool {
    let difference = a.clone().plus(b, -1);
    (1..=APART).flat_map(|k| [k, -k]).any(|k| {
        let beside = difference.clone().plus(pitch, -k).constant();
        beside.is_some_and(|by| by.abs() <= BESIDE)
    })
}

/// What an integer is the sum of.
fn sum_of(definitions: &HashMap<Value, &Inst>, value: Value, depth: u32) -> Sum {
    let itself = || Sum::of(&[value], 1);
    let Some(inst) = definitions.get(&value).filter(|_| depth > 0) else {
        return itself();
    };
    if let InstKind::Const(c) = &inst.kind {
        return Sum::of(&[], least(*c));
    }
    let Some((op, _, args)) = inst.kind.as_op() else {
        return itself();
    };
    let of = |i: usize| sum_of(definitions, args[i], depth - 1);
    match op {
        Op::Add => of(0).plus(&of(1), 1),
        Op::Sub => of(0).plus(&of(1), -1),
        Op::Mul => of(0).times(&of(1)).unwrap_or_else(itself),
        Op::Cast => of(0),
        _other => itself(),
    }
}

/// A constant as the number closest to 0 that it is modulo two to its width.
fn least(c: Const) -> i64 {
    let unused = 64 - c.scalar.bits();
    ((c.bits << unused) as i64) >> unused
}
