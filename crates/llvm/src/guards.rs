//! Bounds checks once for a threadgroup instead of once for an access.
//!
//! In front of a segment the interval of an access's index over the threadgroup is computed, from the
//! positions of its threads, the bounds of counted loops and values that are the same for all; where it
//! fits into the buffer, the code for full chunks makes the access without a check.
//!
//! Intervals are of mathematical integers. Sums and products in registers wrap, but they agree with the
//! mathematical ones modulo two to the width, so they are equal where the mathematical one is proved
//! to lie in the buffer. What is not a sum or a product (quotients, minima, conversions to wider types)
//! needs operands that did not wrap, which becomes a further condition.

use std::collections::{HashMap, HashSet};

use inkwell::IntPredicate;
use inkwell::values::IntValue;
use invar_ir::inst::{InstKind, MatrixPlace, Memory, Place, Region, Step, Value, Width};
use invar_ir::ops::{Imm, Meaning};
use invar_ir::{Elements, Inst, Op, Scalar};

use crate::analysis::signed;
use crate::function::FunctionLowering;
use crate::plan::InstKey;
use crate::state::Proof;
use crate::tuning::{MOST_GUARDED_ACCESSES, MOST_GUARDED_IN_ALL};
use crate::value::Part;

/// From the least to the greatest value, both in 64 bits, or in 128 where they may need them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interval<'c> {
    pub low: IntValue<'c>,
    pub high: IntValue<'c>,
    /// Both are less than two to this in magnitude.
    bits: u32,
    /// The register holds the mathematical value.
    whole: bool,
}

/// Bits that 64-bit intervals may grow to.
const NARROW: u32 = 62;
/// Bits of sums of a few integers of 32 bits, and as many as are proved of the factors of a product.
const NARROW_FACTOR: u32 = 35;
const HALF: u32 = 30;
/// Bits of the factors of a product, of which one may be any integer of 64 bits: no index of a buffer is longer.
const LONG_FACTOR: u32 = 47;
/// Bits beyond which nothing is proved.
const WIDE: u32 = 120;
/// The last row and the last column of a matrix.
const LAST: i64 = 7;
/// How deep expressions are looked into.
const DEPTH: u32 = 24;
/// How many expressions at most: sums of sums share operands, each of which is looked into again.
const STEPS: u32 = 8192;

struct Find<'c> {
    /// What conditions around say of values.
    known: Vec<(Value, Interval<'c>)>,
    indices: HashMap<Value, Interval<'c>>,
    /// How many conditions and masked loops are around.
    depth: u32,
    /// How many expressions were looked into.
    steps: u32,
    /// The least and the greatest index of each memory object.
    spans: Vec<(Memory, Interval<'c>)>,
    conditions: Vec<IntValue<'c>>,
    proved: Vec<(InstKey, Proof)>,
    /// How many of these are of no block.
    alone: usize,
}

impl<'c, 'k> FunctionLowering<'c, 'k> {
    /// Whether the accesses of a segment that can be proved at once are in bounds for the threadgroup;
    /// `None` if there are none. Under `conditions`, of which one lets threads through that do anything, the positions of
    /// these lie between those given then.
    pub fn guards(
        &mut self,
        insts: &'k [Inst],
        conditions: &[Value],
    ) -> (Option<IntValue<'c>>, [Option<Interval<'c>>; 3]) {
        self.segment.proofs.clear();
        if !self.analysis.checks {
            return (None, [None; 3]);
        }
        let mut find = Find {
            known: Vec::new(),
            indices: HashMap::new(),
            depth: 0,
            steps: 0,
            spans: Vec::new(),
            conditions: Vec::new(),
            proved: Vec::new(),
            alone: 0,
        };
        let places = self.places(conditions, &mut find);
        self.find_in(insts, &mut find);
        self.segment.proofs = find.proved.into_iter().collect();
        (self.all_hold(find.conditions, &find.spans), places)
    }

    /// Between which positions in the grid threads lie for which one of some conditions holds.
    fn places(&self, conditions: &[Value], find: &mut Find<'c>) -> [Option<Interval<'c>>; 3] {
        let mut places: Option<[Option<Interval<'c>>; 3]> = None;
        for condition in conditions {
            let own = self.places_by_one(*condition, find);
            places = Some(match places {
                None => own,
                Some(others) => [0, 1, 2].map(|d| Some(self.around(own[d]?, others[d]?))),
            });
        }
        places.unwrap_or_default()
    }

    /// The same of one condition.
    fn places_by_one(&self, condition: Value, find: &mut Find<'c>) -> [Option<Interval<'c>>; 3] {
        let known = find.known.len();
        self.learn(condition, true, find);
        let mut places = [None; 3];
        for (value, interval) in find.known.drain(known..) {
            let Some(dim) = self.dimension(value) else {
                continue;
            };
            places[dim] = Some(places[dim].map_or(interval, |other| self.within(interval, other)));
        }
        places
    }

    /// The dimension of which a value is the thread's position in the grid.
    fn dimension(&self, value: Value) -> Option<usize> {
        match self.analysis.plan.definitions.get(&value)?.kind.as_op()? {
            (Op::ThreadPositionInGrid, Imm::Dim(dim), _) => Some(dim as usize),
            // What is known of it holds of what did not wrap.
            (Op::Cast | Op::AsType, _, args) => {
                let is_integer = self.analysis.kernel.ty(args[0]).is_integer_scalar();
                is_integer.then(|| self.dimension(args[0]))?
            }
            _another => None,
        }
    }

    /// What holds both of two intervals.
    fn around(&self, a: Interval<'c>, b: Interval<'c>) -> Interval<'c> {
        let [a, b] = self.same_width([a, b]);
        Interval {
            low: self.picked(IntPredicate::SLT, a.low, b.low),
            high: self.picked(IntPredicate::SGT, a.high, b.high),
            bits: a.bits.max(b.bits),
            whole: true,
        }
    }

    /// What two intervals have in common.
    fn within(&self, a: Interval<'c>, b: Interval<'c>) -> Interval<'c> {
        let [a, b] = self.same_width([a, b]);
        Interval {
            low: self.picked(IntPredicate::SGT, a.low, b.low),
            high: self.picked(IntPredicate::SLT, a.high, b.high),
            bits: a.bits.max(b.bits),
            whole: true,
        }
    }

    /// The one of two that a comparison of it with the other holds for.
    fn picked(&self, how: IntPredicate, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        let c = self.e.compare(how, a, b);
        self.e.select(c.into(), a.into(), b.into()).into_int_value()
    }

    /// Whether all conditions hold and all spans lie in their objects; `None` if there are none.
    fn all_hold(
        &self,
        conditions: Vec<IntValue<'c>>,
        spans: &[(Memory, Interval<'c>)],
    ) -> Option<IntValue<'c>> {
        let e = &self.e;
        let mut all: Option<IntValue<'c>> = None;
        let mut add = |test: IntValue<'c>| {
            all = Some(all.map_or(test, |a| e.and(a, test)));
        };
        let mut seen = HashSet::new();
        for test in conditions {
            if seen.insert(test) {
                add(test);
            }
        }
        for (memory, span) in spans {
            let length = self.launch.objects[memory].length;
            let length = self.to_width(length, span.low.get_type().get_bit_width());
            let zero = span.low.get_type().const_zero();
            add(e.compare(IntPredicate::SGE, span.low, zero));
            add(e.compare(IntPredicate::SLT, span.high, length));
        }
        all
    }

    fn find_in(&self, insts: &'k [Inst], find: &mut Find<'c>) {
        for inst in insts {
            match &inst.kind {
                InstKind::MatrixLoad { place } | InstKind::MatrixStore { place, .. } => {
                    self.matrix_access(inst, place, find);
                }
                InstKind::If {
                    condition,
                    then,
                    otherwise,
                } => {
                    let same = self.shared_condition(*condition, 0);
                    for (region, holds) in [(then, true), (otherwise, false)] {
                        match same {
                            Some(same) => {
                                let taken = if holds { same } else { self.e.not(same) };
                                self.find_if(taken, region, (*condition, holds), find);
                            }
                            None => self.find_under(region, (*condition, holds), 1, find),
                        }
                    }
                }
                InstKind::For {
                    lower,
                    upper,
                    step,
                    body,
                    ..
                } => {
                    let index = self.loop_index(*lower, *upper, *step, find);
                    if let Some(index) = index {
                        find.indices.insert(body.params[0], index);
                    }
                    self.find_in_loop(inst, body, find);
                }
                InstKind::Loop { body, .. } => self.find_in_loop(inst, body, find),
                flat => {
                    for access in flat.accesses() {
                        if let Elements::Place(place) = access.elements {
                            self.access(inst, place, find);
                        }
                    }
                }
            }
        }
    }

    /// A condition that is known in front of the segment, as it is or by what it is made of there: such as whether there
    /// is a buffer at all, which an `if` gives.
    fn shared_condition(&self, condition: Value, depth: u32) -> Option<IntValue<'c>> {
        const DEPTH: u32 = 4;
        let e = &self.e;
        if let Some(shared) = self.shared_value(condition) {
            return match shared.part(0, 0) {
                Part::Scalar(same) => Some(same.into_int_value()),
                Part::Affine { .. } | Part::Vector(_) => None,
            };
        }
        if depth > DEPTH {
            return None;
        }
        let inst = self.analysis.plan.definitions.get(&condition)?;
        let known = |value| self.shared_condition(value, depth + 1);
        match &inst.kind {
            InstKind::Const(constant) => {
                let ty = e.context.bool_type();
                Some(ty.const_int(constant.bits & 1, false))
            }
            InstKind::Op { op, args, .. } => match (op, &args[..]) {
                (Op::Not, [a]) => Some(e.not(known(*a)?)),
                (Op::And, [a, b]) => Some(e.and(known(*a)?, known(*b)?)),
                (Op::Or, [a, b]) => Some(e.or(known(*a)?, known(*b)?)),
                _other => None,
            },
            InstKind::If {
                condition: chooses,
                then,
                otherwise,
            } => {
                let number = inst.results.iter().position(|r| *r == condition)?;
                let [yes, no] = [then, otherwise].map(|side| {
                    let InstKind::Yield(values) = &side.insts.last()?.kind else {
                        return None;
                    };
                    known(*values.get(number)?)
                });
                let (yes, no) = (yes?, no?);
                let chosen = e.select(known(*chooses)?.into(), yes.into(), no.into());
                Some(chosen.into_int_value())
            }
            _other => None,
        }
    }

    /// A region that only threads come to of which a condition says so, or all; `masks` is 1 unless it is all.
    fn find_under(
        &self,
        region: &'k Region,
        (condition, holds): (Value, bool),
        masks: u32,
        find: &mut Find<'c>,
    ) {
        let (known, depth) = (find.known.len(), find.depth);
        self.learn(condition, holds, find);
        find.depth += masks * u32::from(find.known.len() > known);
        self.find_in(&region.insts, find);
        find.known.truncate(known);
        find.depth = depth;
    }

    /// A region that all threads of the threadgroup come to or none. What its accesses need must hold
    /// only if they do.
    fn find_if(
        &self,
        taken: IntValue<'c>,
        region: &'k Region,
        condition: (Value, bool),
        find: &mut Find<'c>,
    ) {
        let conditions = std::mem::take(&mut find.conditions);
        let spans = std::mem::take(&mut find.spans);
        self.find_under(region, condition, 0, find);
        let own = std::mem::replace(&mut find.conditions, conditions);
        let spans = std::mem::replace(&mut find.spans, spans);
        if let Some(test) = self.all_hold(own, &spans) {
            let skipped = self.e.not(taken);
            find.conditions.push(self.e.or(skipped, test));
        }
    }

    fn find_in_loop(&self, inst: &'k Inst, body: &'k Region, find: &mut Find<'c>) {
        let depth = find.depth;
        // Lanes that have left are anywhere.
        find.depth += u32::from(self.analysis.fast.is_masked(inst));
        self.find_in(&body.insts, find);
        find.depth = depth;
    }

    fn access(&self, inst: &'k Inst, place: &Place, find: &mut Find<'c>) {
        let of_block = self.analysis.plan.bits_of_block(inst);
        let many = find.alone >= MOST_GUARDED_ACCESSES || find.proved.len() >= MOST_GUARDED_IN_ALL;
        let is_known = find.depth > 0 && self.analysis.always_in_bounds(inst);
        if many || is_known || self.analysis.plan.is_hoisted(inst) {
            return;
        }
        let object = &self.launch.objects[&place.memory];
        let fixed = place.path.iter().all(|step| match step {
            Step::Field(_) => true,
            Step::Index(v) => self.analysis.constant_index(*v).is_some(),
        });
        if object.thread.is_some() || !fixed {
            return;
        }
        let conditions = find.conditions.len();
        let Some(index) = self.interval(place.index, find, 0) else {
            find.conditions.truncate(conditions);
            return;
        };
        let span = match place.width {
            Width::One => Some(index),
            Width::Run(n) => self.shifted(index, i64::from(n) - 1).map(|last| Interval {
                low: index.low,
                ..last
            }),
            Width::Group(n) => {
                let scaled = self.scaled(index, i64::from(n));
                let last = scaled.and_then(|s| self.shifted(s, i64::from(n) - 1));
                scaled
                    .zip(last)
                    .map(|(s, last)| Interval { low: s.low, ..last })
            }
        };
        let span = span.filter(|s| s.low.get_type() == s.high.get_type());
        let Some(span) = span else {
            find.conditions.truncate(conditions);
            return;
        };
        let scalar = self
            .analysis
            .kernel
            .ty(place.index)
            .scalar()
            .unwrap_or(Scalar::U32);
        // The index must not have wrapped around into the buffer.
        if !index.whole {
            self.must_fit(index, scalar, find);
        }
        let proof = if find.depth > 0 {
            Proof::Active
        } else {
            Proof::Lanes
        };
        if proof == Proof::Active {
            // A row's address is that of its first lane, which may be off: its index may have wrapped.
            match scalar.bits() {
                64 => {}
                32 => self.must_fit(span, Scalar::I32, find),
                // It is not a row then.
                _narrow => {}
            }
        }
        // Then distances modulo two to the 32 are those of mathematical integers.
        if of_block.is_some_and(|bits| bits < 64) {
            self.must_fit(span, Scalar::I32, find);
        }
        self.must_hold(place.memory, span, find);
        find.alone += usize::from(of_block.is_none());
        find.proved.push((std::ptr::from_ref(inst), proof));
    }

    /// Of a matrix, whose index and distance of rows are used as they are in registers.
    fn matrix_access(&self, inst: &'k Inst, place: &MatrixPlace, find: &mut Find<'c>) {
        if find.alone >= MOST_GUARDED_ACCESSES {
            return;
        }
        let conditions = find.conditions.len();
        let index = self.checked(place.index, find, 0);
        let row = self.checked(place.row, find, 0);
        let last = row.and_then(|row| self.shifted(self.scaled(row, LAST)?, LAST));
        let end = index
            .zip(last)
            .and_then(|(index, last)| self.sum(index, last));
        let (Some(index), Some(row), Some(end)) = (index, row, end) else {
            find.conditions.truncate(conditions);
            return;
        };
        let zero = row.low.get_type().const_zero();
        find.alone += 1;
        let rises = self.e.compare(IntPredicate::SGE, row.low, zero);
        find.conditions.push(rises);
        let width = end.low.get_type().get_bit_width();
        let low = self.widened(index, width).low;
        self.must_hold(place.memory, Interval { low, ..end }, find);
        find.proved.push((std::ptr::from_ref(inst), Proof::Active));
    }

    /// A condition: the memory object has all of these elements.
    fn must_hold(&self, memory: Memory, span: Interval<'c>, find: &mut Find<'c>) {
        let e = &self.e;
        match find.spans.iter_mut().find(|(m, _)| *m == memory) {
            Some((_, old)) => {
                let [old_now, new] = self.same_width([*old, span]);
                let less = e.compare(IntPredicate::SLT, new.low, old_now.low);
                let more = e.compare(IntPredicate::SGT, new.high, old_now.high);
                let pick = |c: IntValue<'c>, a: IntValue<'c>, b: IntValue<'c>| {
                    e.select(c.into(), a.into(), b.into()).into_int_value()
                };
                *old = Interval {
                    low: pick(less, new.low, old_now.low),
                    high: pick(more, new.high, old_now.high),
                    bits: old.bits.max(span.bits),
                    whole: false,
                };
            }
            None => find.spans.push((memory, span)),
        }
    }

    // ---- conditions ----

    /// Narrows intervals by a condition that holds, or does not.
    fn learn(&self, condition: Value, holds: bool, find: &mut Find<'c>) {
        // However many conditions there are, no stack is as deep.
        let mut seen = HashSet::from([(condition, holds)]);
        let mut open = vec![(condition, holds)];
        while let Some((condition, holds)) = open.pop() {
            let definition = self.analysis.plan.definitions.get(&condition);
            let Some((op, _, args)) = definition.and_then(|inst| inst.kind.as_op()) else {
                continue;
            };
            let told: Vec<(Value, bool)> = match (op, holds) {
                (Op::And, true) | (Op::Or, false) => args.iter().map(|arg| (*arg, holds)).collect(),
                (Op::Not, _) => vec![(args[0], !holds)],
                _one => {
                    self.learn_one(condition, holds, find);
                    continue;
                }
            };
            open.extend(told.into_iter().rev().filter(|one| seen.insert(*one)));
        }
    }

    /// The same of a condition that is made of no others.
    fn learn_one(&self, condition: Value, holds: bool, find: &mut Find<'c>) {
        let Some(inst) = self.analysis.plan.definitions.get(&condition) else {
            return;
        };
        let Some((op, _, args)) = inst.kind.as_op() else {
            return;
        };
        match (op, holds) {
            (Op::Lt | Op::Le | Op::Gt | Op::Ge, _) => {}
            (Op::Ne, true) | (Op::Eq, false) => {
                self.learn_differ(args, find);
                return;
            }
            (Op::Eq, true) | (Op::Ne, false) => {
                self.learn_multiple(args, find);
                return;
            }
            _says_nothing => return,
        }
        let ty = self.analysis.kernel.ty(args[0]);
        if !ty.is_integer_scalar() {
            return;
        }
        let conditions = find.conditions.len();
        let intervals = [args[0], args[1]].map(|v| self.checked(v, find, 0));
        let [Some(a), Some(b)] = intervals else {
            find.conditions.truncate(conditions);
            return;
        };
        let [a, b] = self.same_width([a, b]);
        // Of `a < b`: the greatest `a` is less than the greatest `b`, the least `b` more than the least
        // `a`.
        let (less, more, strict) = match (op, holds) {
            (Op::Lt, true) | (Op::Ge, false) => (0, 1, true),
            (Op::Le, true) | (Op::Gt, false) => (0, 1, false),
            (Op::Gt, true) | (Op::Le, false) => (1, 0, true),
            _other => (1, 0, false),
        };
        let both = [a, b];
        let (small, large) = (both[less], both[more]);
        let e = &self.e;
        let ty = small.low.get_type();
        let one = ty.const_int(u64::from(strict), false);
        let high = self.picked(IntPredicate::SLT, small.high, e.sub(large.high, one));
        let low = self.picked(IntPredicate::SGT, large.low, e.add(small.low, one));
        find.known.push((args[less], Interval { high, ..small }));
        find.known.push((args[more], Interval { low, ..large }));
    }

    /// Of two values that differ, of which one is the same number everywhere: where the other's interval begins or ends
    /// with that number, it begins or ends one later or earlier. For conditions that wrap a place around,
    /// `x == 0 ? n - 1 : x - 1`. What is compared is a position, the index of a loop, or an integer without a sign with
    /// zero: of anything else it would have to be asked whether it wrapped.
    fn learn_differ(&self, args: &[Value], find: &mut Find<'c>) {
        let &[a, b] = args else { return };
        let is_unsigned = |v: Value| {
            let scalar = self.analysis.kernel.ty(v).scalar();
            scalar.is_some_and(Scalar::is_unsigned_integer)
        };
        for (value, other) in [(a, b), (b, a)] {
            let is_place = self.dimension(value).is_some() || find.indices.contains_key(&value);
            let is_zero = self.analysis.constant_index(other) == Some(0);
            if !(is_place || is_zero && is_unsigned(value)) {
                continue;
            }
            let conditions = find.conditions.len();
            let intervals = [value, other].map(|v| self.checked(v, find, 0));
            let [Some(all), Some(one)] = intervals else {
                find.conditions.truncate(conditions);
                continue;
            };
            let [all, one] = self.same_width([all, one]);
            if one.low != one.high {
                find.conditions.truncate(conditions);
                continue;
            }
            let e = &self.e;
            let by = |end: IntValue<'c>| {
                let meets = e.compare(IntPredicate::EQ, end, one.low);
                let ty = end.get_type();
                let (step, none) = (ty.const_int(1, false), ty.const_zero());
                e.select(meets.into(), step.into(), none.into())
                    .into_int_value()
            };
            let low = e.add(all.low, by(all.low));
            let high = e.sub(all.high, by(all.high));
            find.known.push((value, Interval { low, high, ..all }));
            return;
        }
    }

    /// Of a remainder that is zero: what is divided ends at a multiple. For trees whose step grows, where every second
    /// thread adds what the next one has, then every fourth.
    fn learn_multiple(&self, args: &[Value], find: &mut Find<'c>) {
        let &[a, b] = args else { return };
        let zero = |v: Value| self.analysis.constant_index(v) == Some(0);
        let rest = match (zero(a), zero(b)) {
            (false, true) => a,
            (true, false) => b,
            _another => return,
        };
        let definition = self.analysis.plan.definitions.get(&rest);
        let Some((op, _, args)) = definition.and_then(|inst| inst.kind.as_op()) else {
            return;
        };
        let constant = |v: Value| {
            let constant = self.analysis.constant_index(v)?;
            u64::try_from(constant).ok()
        };
        let divided = match op {
            Op::Rem => constant(args[1]).map(|divisor| (args[0], divisor)),
            Op::And => [(args[0], args[1]), (args[1], args[0])]
                .into_iter()
                .find_map(|(value, mask)| Some((value, constant(mask)?.checked_add(1)?)))
                .filter(|(_, divisor)| divisor.is_power_of_two()),
            _another => None,
        };
        let Some((value, divisor)) = divided.filter(|(_, divisor)| *divisor > 1) else {
            return;
        };
        let is_unsigned =
            (self.analysis.kernel.ty(value).scalar()).is_some_and(Scalar::is_unsigned_integer);
        let conditions = find.conditions.len();
        match self.checked(value, find, 0).filter(|_| is_unsigned) {
            Some(all) => {
                let e = &self.e;
                let divisor = all.high.get_type().const_int(divisor, false);
                let high = e.mul(e.divide(all.high, divisor), divisor);
                find.known.push((value, Interval { high, ..all }));
            }
            None => find.conditions.truncate(conditions),
        }
    }

    // ---- intervals ----

    fn to_width(&self, value: IntValue<'c>, bits: u32) -> IntValue<'c> {
        if value.get_type().get_bit_width() == bits {
            return value;
        }
        let ty = self.e.int_type(bits);
        let wide = self.e.builder.build_int_s_extend(value, ty, "");
        wide.expect(crate::emit::BUILT)
    }

    /// Both in 64 bits, or both in 128.
    fn same_width(&self, both: [Interval<'c>; 2]) -> [Interval<'c>; 2] {
        let wide = |i: &Interval<'c>| i.low.get_type().get_bit_width();
        let bits = both.iter().map(wide).max().unwrap_or(64);
        both.map(|i| self.widened(i, bits))
    }

    fn widened(&self, i: Interval<'c>, bits: u32) -> Interval<'c> {
        Interval {
            low: self.to_width(i.low, bits),
            high: self.to_width(i.high, bits),
            ..i
        }
    }

    /// Whether two values are one, or computed alike from the same.
    fn are_same(&self, a: Value, b: Value, depth: u32) -> bool {
        const DEPTH: u32 = 3;
        let definition = |v| {
            self.analysis
                .plan
                .definitions
                .get(&v)
                .map(|inst| &inst.kind)
        };
        a == b
            || match (definition(a), definition(b)) {
                (Some(InstKind::Const(a)), Some(InstKind::Const(b))) => a == b,
                (Some(a), Some(b)) => match (a.as_op(), b.as_op()) {
                    (Some((op, imm, args)), Some((other, other_imm, others))) => {
                        depth < DEPTH
                            && (op, imm, args.len()) == (other, other_imm, others.len())
                            && matches!(op.row().meaning, Meaning::Eval(_))
                            && args
                                .iter()
                                .zip(others)
                                .all(|(a, b)| self.are_same(*a, *b, depth + 1))
                    }
                    _other => false,
                },
                _other => false,
            }
    }

    fn interval_of_constant(&self, value: i64) -> Interval<'c> {
        let constant = self.e.i64(value as u64);
        Interval {
            low: constant,
            high: constant,
            bits: 64 - value.unsigned_abs().leading_zeros(),
            whole: true,
        }
    }

    /// Room for what may have this many bits.
    fn with_room(&self, both: [Interval<'c>; 2], bits: u32) -> Option<[Interval<'c>; 2]> {
        if bits > WIDE {
            return None;
        }
        let both = self.same_width(both);
        Some(if bits > NARROW {
            both.map(|i| self.widened(i, 128))
        } else {
            both
        })
    }

    fn sum(&self, a: Interval<'c>, b: Interval<'c>) -> Option<Interval<'c>> {
        let bits = a.bits.max(b.bits) + 1;
        let [a, b] = self.with_room([a, b], bits)?;
        Some(Interval {
            low: self.e.add(a.low, b.low),
            high: self.e.add(a.high, b.high),
            bits,
            whole: false,
        })
    }

    fn negated(&self, a: Interval<'c>) -> Interval<'c> {
        let zero = a.low.get_type().const_zero();
        Interval {
            low: self.e.sub(zero, a.high),
            high: self.e.sub(zero, a.low),
            whole: false,
            ..a
        }
    }

    fn shifted(&self, a: Interval<'c>, by: i64) -> Option<Interval<'c>> {
        if by == 0 {
            return Some(a);
        }
        self.sum(a, self.interval_of_constant(by))
    }

    fn scaled(&self, a: Interval<'c>, by: i64) -> Option<Interval<'c>> {
        let c = self.interval_of_constant(by);
        let bits = a.bits + c.bits;
        let [a, c] = self.with_room([a, c], bits)?;
        let ends = [self.e.mul(a.low, c.low), self.e.mul(a.high, c.low)];
        let [low, high] = if by < 0 { [ends[1], ends[0]] } else { ends };
        Some(Interval {
            low,
            high,
            bits,
            whole: false,
        })
    }

    /// The product of two, both of which must not be negative, which becomes a condition.
    fn product(
        &self,
        a: Interval<'c>,
        b: Interval<'c>,
        find: &mut Find<'c>,
    ) -> Option<Interval<'c>> {
        // Positions and sizes of 32 bits and their sums would need 128 for what follows; those of real
        // grids are less than half as long, and then 64 bits hold the product.
        let limit = |factor: Interval<'c>| {
            let bits = a.bits + b.bits;
            let narrow = a.bits.max(b.bits) <= NARROW_FACTOR;
            let limit = if narrow { HALF } else { LONG_FACTOR };
            let needed = bits > if narrow { NARROW } else { WIDE };
            (needed && factor.bits > limit).then_some(limit)
        };
        let limits = [a, b].map(limit);
        let mut both = [a, b];
        for (factor, limit) in both.iter_mut().zip(limits) {
            let ty = factor.low.get_type();
            let zero = ty.const_zero();
            let mut tests = vec![self.e.compare(IntPredicate::SGE, factor.low, zero)];
            if let Some(bits) = limit {
                let limit = ty.const_int(1 << bits, false);
                tests.push(self.e.compare(IntPredicate::SLT, factor.high, limit));
                factor.bits = bits;
            }
            tests.retain(|test| test.get_zero_extended_constant() != Some(1));
            find.conditions.extend(tests);
        }
        let [a, b] = both;
        let bits = a.bits + b.bits;
        let [a, b] = self.with_room([a, b], bits)?;
        Some(Interval {
            low: self.e.mul(a.low, b.low),
            high: self.e.mul(a.high, b.high),
            bits,
            whole: false,
        })
    }

    /// A condition: the interval fits into the type, so that nothing wrapped.
    fn must_fit(&self, a: Interval<'c>, scalar: Scalar, find: &mut Find<'c>) {
        let ty = a.low.get_type();
        let e = &self.e;
        let bits = scalar.bits();
        let signed = scalar.is_signed_integer();
        let own = bits - u32::from(signed);
        if a.bits < own && signed {
            return;
        }
        let one = |n: u32| {
            let one = ty.const_int(1, false);
            let n = ty.const_int(n.into(), false);
            e.builder
                .build_left_shift(one, n, "")
                .expect(crate::emit::BUILT)
        };
        if own < ty.get_bit_width() - 1 {
            find.conditions
                .push(e.compare(IntPredicate::SLT, a.high, one(own)));
        }
        let low = if signed {
            e.sub(ty.const_zero(), one(own.min(ty.get_bit_width() - 2)))
        } else {
            ty.const_zero()
        };
        find.conditions
            .push(e.compare(IntPredicate::SGE, a.low, low));
    }

    /// The interval of a value that did not wrap; if it may have, that becomes a condition.
    fn checked(&self, value: Value, find: &mut Find<'c>, depth: u32) -> Option<Interval<'c>> {
        let interval = self.interval(value, find, depth)?;
        if !interval.whole {
            let scalar = self.analysis.kernel.ty(value).scalar()?;
            self.must_fit(interval, scalar, find);
        }
        Some(Interval {
            whole: true,
            ..interval
        })
    }

    fn loop_index(
        &self,
        lower: Value,
        upper: Value,
        step: Value,
        find: &mut Find<'c>,
    ) -> Option<Interval<'c>> {
        let scalar = self.analysis.kernel.ty(step).scalar()?;
        let constant = self.analysis.constant_index(step);
        let conditions = find.conditions.len();
        if scalar.is_signed_integer() && constant.is_none_or(|s| s <= 0) {
            // What goes down is not looked into.
            let step = match constant {
                Some(_) => None,
                None => self.checked(step, find, 0),
            };
            let Some(step) = step else {
                find.conditions.truncate(conditions);
                return None;
            };
            let zero = step.low.get_type().const_zero();
            let upward = self.e.compare(IntPredicate::SGT, step.low, zero);
            find.conditions.push(upward);
        }
        let both = [lower, upper].map(|v| self.checked(v, find, 0));
        let [Some(lower), Some(upper)] = both else {
            find.conditions.truncate(conditions);
            return None;
        };
        let last = self.shifted(upper, -1)?;
        let [lower, last] = self.same_width([lower, last]);
        Some(Interval {
            low: lower.low,
            high: self.last_of_steps(lower, last.high, step),
            bits: lower.bits.max(last.bits),
            whole: true,
        })
    }

    /// The last index of a loop that goes up from `lower` and no further than `last`. Where all threads begin at one
    /// and go in constant steps it is reached by these: a loop written out four times comes no nearer than four to
    /// its end.
    fn last_of_steps(&self, lower: Interval<'c>, last: IntValue<'c>, step: Value) -> IntValue<'c> {
        let ty = last.get_type();
        let step = self.analysis.constant_index(step);
        let step = step
            .and_then(|step| u32::try_from(step).ok())
            .filter(|step| *step > 1);
        let begins_at_one = lower.low == lower.high;
        let Some(step) = step.filter(|_| begins_at_one && ty.get_bit_width() == 64) else {
            return last;
        };
        // Without an iteration it is no greater than `last` either.
        let e = &self.e;
        let distance = e.sub(last, lower.low);
        let step = ty.const_int(step.into(), false);
        let beyond = e.builder.build_int_unsigned_rem(distance, step, "");
        e.sub(last, beyond.expect(crate::emit::BUILT))
    }

    /// The interval of an integer over the threadgroup.
    fn interval(&self, value: Value, find: &mut Find<'c>, depth: u32) -> Option<Interval<'c>> {
        find.steps += 1;
        if depth > DEPTH || find.steps > STEPS {
            return None;
        }
        let mut known = find.known.iter().rev();
        if let Some((_, known)) = known.find(|(v, _)| self.are_same(*v, value, 0)) {
            return Some(*known);
        }
        if let Some(index) = find.indices.get(&value) {
            return Some(*index);
        }
        let scalar = self.analysis.kernel.ty(value).scalar()?;
        if !self.analysis.kernel.ty(value).is_integer_scalar() {
            return None;
        }
        if let Some(shared) = self.shared_value(value) {
            let Part::Scalar(own) = shared.part(0, 0) else {
                return None;
            };
            let own = own.into_int_value();
            if let Some(InstKind::Const(c)) =
                self.analysis.plan.definitions.get(&value).map(|d| &d.kind)
            {
                let constant = signed(c.scalar, c.bits);
                return (c.scalar.bits() < 64 || constant >= 0)
                    .then(|| self.interval_of_constant(constant));
            }
            let b = &self.e.builder;
            let unsigned = !scalar.is_signed_integer();
            let width = if scalar == Scalar::U64 { 128 } else { 64 };
            let ty = self.e.int_type(width);
            let wide = if scalar.bits() == width {
                own
            } else if unsigned {
                b.build_int_z_extend(own, ty, "").expect(crate::emit::BUILT)
            } else {
                b.build_int_s_extend(own, ty, "").expect(crate::emit::BUILT)
            };
            let interval = Interval {
                low: wide,
                high: wide,
                bits: scalar.bits(),
                whole: true,
            };
            // What needs all of 64 bits is computed in more.
            return Some(if scalar.bits() == 64 {
                self.widened(interval, 128)
            } else {
                interval
            });
        }
        match &self.analysis.plan.definitions.get(&value)?.kind {
            InstKind::Const(c) => {
                let constant = signed(c.scalar, c.bits);
                (c.scalar.bits() < 64 || constant >= 0).then(|| self.interval_of_constant(constant))
            }
            InstKind::Op { op, imm, args } => match op.row().meaning {
                Meaning::Query => self.interval_of_query(*op, *imm),
                Meaning::Eval(_) => self.interval_of_op(*op, args, find, depth + 1),
                Meaning::Arrange | Meaning::Lanes(..) | Meaning::Expand(_) => None,
            },
            // Whatever it is, it has its type.
            _unknown if scalar.bits() < 32 => {
                let (bits, signed) = (scalar.bits(), scalar.is_signed_integer());
                let [low, high] = if signed {
                    [-(1i64 << (bits - 1)), (1 << (bits - 1)) - 1]
                } else {
                    [0, (1 << bits) - 1]
                };
                Some(Interval {
                    low: self.e.i64(low as u64),
                    high: self.e.i64(high as u64),
                    bits,
                    whole: true,
                })
            }
            _unknown => None,
        }
    }

    fn interval_of_query(&self, op: Op, imm: Imm) -> Option<Interval<'c>> {
        let e = &self.e;
        let dim = match imm {
            Imm::Dim(dim) => dim as usize,
            Imm::None | Imm::Type(_) | Imm::Swizzle(_) => 0,
        };
        let zero = e.i64(0);
        let below = |n: IntValue<'c>| e.sub(e.widen(n), e.i64(1));
        let (low, high) = match op {
            Op::ThreadPositionInThreadgroup => (zero, below(self.group.size[dim])),
            Op::ThreadPositionInGrid => {
                let first = e.widen(self.group.origin[dim]);
                (first, e.add(first, below(self.group.size[dim])))
            }
            Op::ThreadIndexInThreadgroup => (zero, below(self.group.threads)),
            Op::ThreadIndexInSimdgroup => {
                (zero, e.i64(u64::from(self.analysis.simdgroup_size) - 1))
            }
            Op::ThreadIndexInQuadgroup => (zero, e.i64(3)),
            Op::SimdgroupIndexInThreadgroup | Op::QuadgroupIndexInThreadgroup => {
                let per = if op == Op::SimdgroupIndexInThreadgroup {
                    self.analysis.simdgroup_size
                } else {
                    4
                };
                (zero, e.divide(below(self.group.threads), e.i64(per.into())))
            }
            other => {
                let same = e.widen(self.group_query(other, dim)?);
                (same, same)
            }
        };
        Some(Interval {
            low,
            high,
            bits: 32,
            whole: true,
        })
    }

    fn interval_of_op(
        &self,
        op: Op,
        args: &[Value],
        find: &mut Find<'c>,
        depth: u32,
    ) -> Option<Interval<'c>> {
        match op {
            Op::Add | Op::Sub | Op::Mul => {
                let a = self.interval(args[0], find, depth)?;
                let b = self.interval(args[1], find, depth)?;
                match op {
                    Op::Add => self.sum(a, b),
                    Op::Sub => self.sum(a, self.negated(b)),
                    _product => {
                        for (i, other) in [(0, b), (1, a)] {
                            if let Some(c) = self.analysis.constant_index(args[i])
                                && let Ok(c) = i64::try_from(c)
                            {
                                return self.scaled(other, c);
                            }
                        }
                        self.product(a, b, find)
                    }
                }
            }
            Op::Neg => Some(self.negated(self.interval(args[0], find, depth)?)),
            Op::Shl => {
                let bits = self.analysis.kernel.ty(args[0]).scalar()?.bits();
                let count = self
                    .analysis
                    .constant_index(args[1])?
                    .rem_euclid(i128::from(bits));
                let a = self.interval(args[0], find, depth)?;
                self.scaled(a, 1i64.checked_shl(count as u32).filter(|s| *s > 0)?)
            }
            // Of as many bits it is the same number modulo two to these.
            Op::Cast | Op::AsType => {
                if !self.analysis.kernel.ty(args[0]).is_integer_scalar() {
                    return None;
                }
                let from = self.analysis.kernel.ty(args[0]).scalar()?;
                let a = self.checked(args[0], find, depth)?;
                // As the other type it may wrap again, unless it is wider and can hold it.
                Some(Interval {
                    bits: a.bits.min(from.bits()),
                    whole: false,
                    ..a
                })
            }
            Op::Min | Op::Max => {
                let a = self.checked(args[0], find, depth)?;
                let b = self.checked(args[1], find, depth)?;
                let bits = a.bits.max(b.bits);
                let [a, b] = self.same_width([a, b]);
                let how = if op == Op::Min {
                    IntPredicate::SLT
                } else {
                    IntPredicate::SGT
                };
                Some(Interval {
                    low: self.picked(how, a.low, b.low),
                    high: self.picked(how, a.high, b.high),
                    bits,
                    whole: true,
                })
            }
            Op::Select => {
                // The second is picked where the condition holds.
                let known = find.known.len();
                let [a, b] = [(0, false), (1, true)].map(|(i, holds)| {
                    self.learn(args[2], holds, find);
                    let interval = self.interval(args[i], find, depth);
                    find.known.truncate(known);
                    interval
                });
                let (a, b) = (a?, b?);
                let (bits, whole) = (a.bits.max(b.bits), a.whole && b.whole);
                let [a, b] = self.same_width([a, b]);
                Some(Interval {
                    low: self.picked(IntPredicate::SLT, a.low, b.low),
                    high: self.picked(IntPredicate::SGT, a.high, b.high),
                    bits,
                    whole,
                })
            }
            Op::And | Op::Rem | Op::Shr | Op::Div => {
                self.interval_of_quotient(op, args, find, depth)
            }
            _unknown => None,
        }
    }

    /// Quotients and bits of what is not negative, and remainders.
    fn interval_of_quotient(
        &self,
        op: Op,
        args: &[Value],
        find: &mut Find<'c>,
        depth: u32,
    ) -> Option<Interval<'c>> {
        let e = &self.e;
        let bits = self.analysis.kernel.ty(args[0]).scalar()?.bits();
        let unsigned = self
            .analysis
            .kernel
            .ty(args[0])
            .scalar()?
            .is_unsigned_integer();
        let constant = self
            .analysis
            .constant_index(args[1])
            .and_then(|c| i64::try_from(c).ok());
        let to = |high: IntValue<'c>, bits| Interval {
            low: high.get_type().const_zero(),
            high,
            bits,
            whole: true,
        };
        match (op, constant) {
            (Op::And, Some(mask)) if mask >= 0 => {
                Some(to(e.i64(mask as u64), self.interval_of_constant(mask).bits))
            }
            (Op::Rem, Some(d)) if d > 0 && unsigned => {
                Some(to(e.i64(d as u64 - 1), self.interval_of_constant(d).bits))
            }
            (Op::Rem, None) if unsigned => {
                // Of 0 the remainder is 0, which is no more than 0 - 1 only if that is not counted.
                let d = self.checked(args[1], find, depth)?;
                let one = d.high.get_type().const_int(1, false);
                find.conditions
                    .push(e.compare(IntPredicate::SGE, d.low, one));
                Some(to(e.sub(d.high, one), d.bits))
            }
            (Op::Rem, _) if !unsigned => {
                let a = self.checked(args[0], find, depth)?;
                let d = self.checked(args[1], find, depth)?;
                let [a, d] = self.same_width([a, d]);
                let ty = a.low.get_type();
                let (zero, one) = (ty.const_zero(), ty.const_int(1, false));
                find.conditions
                    .push(e.compare(IntPredicate::SGE, d.low, one));
                // It has the sign of what is divided (A2).
                let most = e.sub(d.high, one);
                let positive = e.compare(IntPredicate::SGE, a.low, zero);
                let least = e.sub(zero, most);
                let low = e.select(positive.into(), zero.into(), least.into());
                Some(Interval {
                    low: low.into_int_value(),
                    ..to(most, d.bits)
                })
            }
            (Op::Shr | Op::Div, Some(c)) => {
                let by = if op == Op::Shr {
                    1i64.checked_shl(c.rem_euclid(i64::from(bits)) as u32)?
                } else {
                    c
                };
                if by <= 0 {
                    return None;
                }
                let a = self.checked(args[0], find, depth)?;
                let zero = a.low.get_type().const_zero();
                find.conditions
                    .push(e.compare(IntPredicate::SGE, a.low, zero));
                let by = a.low.get_type().const_int(by as u64, false);
                Some(Interval {
                    low: e.divide(a.low, by),
                    high: e.divide(a.high, by),
                    bits: a.bits,
                    whole: true,
                })
            }
            _unknown => None,
        }
    }
}
