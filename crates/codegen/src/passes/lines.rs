//! Lines: loops along rows of memory, where each thread of a vector has a row of its own, are written out for a line
//! of a cache at a time, so that its loads and stores are blocks ([`crate::analysis::blocks`]).
//!
//! This is for sums, norms and products of rows by one thread each (`x[row * n + k]`, lanes along `row`), products
//! with a transposed matrix, and tiles that are read across. Without it every iteration of the loop touches a line for
//! each lane, and comes back to it in the next one, when too many others have been there.
//!
//! A loop is written out if it goes up by one, as far for all threads of a row, if what it loads moves with it by
//! one element, and far from thread to thread along x, and if nothing in it writes what it loads; or if that is true
//! of what it stores. It keeps the order
//! of its iterations, and a second loop makes those that are left ([`super::rows`]).
//!
//! Deliberately absent: loops that hold others or branches.

use std::collections::{HashMap, HashSet};

use invar_ir::inst::Width;
use invar_ir::{
    AddressSpace, Const, Dim, Inst, InstKind, Kernel, Module, Place, Region, Scalar, Type, Value,
};

use super::common::{constants, count, integer, yielded};
use super::rows::{Rows, UnrollFactor, is_flat};
use crate::analysis::affine::{self, Affine, Product, Sum, Symbol};
use crate::analysis::blocks::is_same_along;
use crate::analysis::ranges::{self, Known, Ranges};
use crate::tuning::{LINE_INSTRUCTIONS, MOST_VECTOR_STRIDE};

/// Iterations that are made at a time: a line of 64 bytes has as many elements of 32 bits.
const ITERATIONS: i128 = 16;

pub(super) fn run(module: &Module, kernel: &mut Kernel) {
    let ranges = ranges::analyse(kernel, &Known::default());
    let find = Find {
        module,
        kernel,
        affine: affine::analyse(kernel, &ranges, None),
        ranges: &ranges,
        constants: constants(kernel),
    };
    let mut loops = HashSet::new();
    kernel.for_each_inst(&mut |inst| {
        if let InstKind::For { body, .. } = &inst.kind
            && find.goes_along_rows(inst)
        {
            loops.insert(body.params[0]);
        }
    });
    if loops.is_empty() {
        return;
    }
    let mut rows = Rows::new(module, kernel, &Known::default());
    let mut body = std::mem::take(&mut kernel.body);
    unroll(&mut rows, &loops, &mut body);
    kernel.values = rows.into_values();
    kernel.body = body;
}

fn unroll(rows: &mut Rows<'_>, loops: &HashSet<Value>, region: &mut Region) {
    for mut inst in std::mem::take(&mut region.insts) {
        for inner in inst.kind.regions_mut() {
            unroll(rows, loops, inner);
        }
        match &inst.kind {
            InstKind::For { body, .. } if loops.contains(&body.params[0]) => {
                let scalar = rows.scalar(body.params[0]).unwrap_or(Scalar::U32);
                let factor = UnrollFactor {
                    iterations: ITERATIONS,
                    step: 1,
                    scalar,
                };
                rows.unroll_partly(inst, factor, &mut region.insts);
            }
            _other => region.insts.push(inst),
        }
    }
}

struct Find<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
    affine: Affine<'a>,
    ranges: &'a Ranges,
    constants: HashMap<Value, Const>,
}

impl Find<'_> {
    fn goes_along_rows(&self, inst: &Inst) -> bool {
        let InstKind::For {
            lower,
            upper,
            step,
            body,
            ..
        } = &inst.kind
        else {
            return false;
        };
        let index = body.params[0];
        let constant = |v: &Value| integer(*self.constants.get(v)?);
        let Type::Scalar(scalar) = self.kernel.ty(index) else {
            return false;
        };
        // Where the limit of the first loop would be negative it is 0.
        let upward = scalar.is_unsigned_integer()
            || self.ranges.of(*lower).is_some_and(|(least, _)| least >= 0);
        let few = constant(lower).zip(constant(upper));
        let few = few.is_some_and(|(lower, upper)| upper - lower < ITERATIONS);
        let plain = body.insts.iter().all(is_flat) && yielded(body).is_some();
        let fits = scalar.bits() >= 32 && count(body) * ITERATIONS as usize <= LINE_INSTRUCTIONS;
        let together = [lower, upper].iter().all(|v| self.is_same(**v));
        constant(step) == Some(1)
            && upward
            && !few
            && plain
            && fits
            && together
            && body.insts.iter().any(|inst| match &inst.kind {
                InstKind::Load(place) => self.is_row(place, index) && self.stays(place, body),
                InstKind::Store { place, .. } => self.is_row(place, index),
                _other => false,
            })
    }

    /// Whether a place moves by one element with a loop's index, and far from lane to lane.
    fn is_row(&self, place: &Place, index: Value) -> bool {
        let form = self.affine.of(place.index);
        let moves = |symbol| form.sum.coefficient(symbol)?.as_constant();
        if form.bits < 32
            || place.width != Width::One
            || !place.path.is_empty()
            || moves(Symbol::Iteration(index)) != Some(1)
            || self.is_same(place.index)
        {
            return false;
        }
        // What other symbols hide is somewhere.
        let hidden = form.sum.symbols().any(|symbol| {
            let is_value = matches!(symbol, Symbol::Value(_) | Symbol::Power(..));
            is_value && !self.is_same_sum(&Sum::of(Product::of(symbol)))
        });
        let step = moves(Symbol::Thread(Dim::X));
        hidden || step.is_none_or(|step| step.unsigned_abs() > MOST_VECTOR_STRIDE)
    }

    /// Whether nothing in a loop writes what a place reads.
    fn stays(&self, place: &Place, body: &Region) -> bool {
        let info = self.module.memory(self.kernel, place.memory);
        let of_others = info.is_some_and(|info| info.space != AddressSpace::Thread);
        let writes = || body.insts.iter().any(|inst| inst.kind.may_change_memory());
        of_others && (self.module.is_read_only(self.kernel, place.memory) || !writes())
    }

    /// Whether a value is the same for threads side by side along x, as far as is seen.
    fn is_same(&self, value: Value) -> bool {
        self.is_same_sum(&self.affine.of(value).sum)
    }

    fn is_same_sum(&self, sum: &Sum<Product>) -> bool {
        is_same_along(self.kernel, &self.affine, sum, Dim::X)
    }
}
