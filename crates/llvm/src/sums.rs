//! What integers that code computes are known to differ by: addresses of vectors side by side and of the same
//! elements in neighbouring rows become one, and constants.
//!
//! All is modulo two to the integers' width. Where a sum certainly does not wrap LLVM is told so: it can add the
//! constant to an address then.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use inkwell::values::{BasicValueEnum, IntValue};
use invar_codegen::analysis::affine::Sum;
use invar_ir::Op;

use crate::emit::{BUILT, Emit};
use crate::tuning::MOST_TERMS;
use crate::value::Part;

/// What is known of integers.
#[derive(Debug, Default)]
pub(crate) struct Sums<'c> {
    /// The sum of another and a constant.
    near: RefCell<HashMap<IntValue<'c>, (IntValue<'c>, i64)>>,
    /// The sum of several, of integers that `near` says nothing of.
    sums: RefCell<HashMap<IntValue<'c>, Sum<IntValue<'c>>>>,
    /// Those of 32 bits whose uppermost is zero, by how they are computed.
    small: RefCell<HashSet<IntValue<'c>>>,
}

impl<'c> Sums<'c> {
    /// The integer that a value is known to differ from by a constant, and that constant.
    fn origin(&self, value: IntValue<'c>) -> (IntValue<'c>, i64) {
        if let Some(constant) = value.get_sign_extended_constant() {
            return (value.get_type().const_zero(), constant);
        }
        let known = self.near.borrow().get(&value).copied();
        known.unwrap_or((value, 0))
    }

    /// What a value is the sum of.
    fn sum(&self, value: IntValue<'c>) -> Sum<IntValue<'c>> {
        let (root, constant) = self.origin(value);
        let sum = match self.sums.borrow().get(&root) {
            Some(sum) => sum.clone(),
            None if root.is_const() => Sum::constant(0),
            None => Sum::of(root),
        };
        sum.shifted(constant)
    }

    /// An integer and a constant added.
    pub fn plus(&self, e: &Emit<'c>, value: IntValue<'c>, more: i64) -> IntValue<'c> {
        if more == 0 {
            return value;
        }
        let (root, offset) = self.origin(value);
        let offset = offset.wrapping_add(more);
        let constant = root.get_type().const_int(offset as u64, true);
        let is_small = i32::try_from(offset).is_ok_and(|offset| offset > 0);
        let sum = if is_small && self.small.borrow().contains(&root) {
            let sum = e.builder.build_int_nuw_add(root, constant, "");
            sum.expect(BUILT)
        } else {
            e.add(root, constant)
        };
        self.near.borrow_mut().insert(sum, (root, offset));
        sum
    }

    /// Keeps in mind that a part of such an integer is small.
    pub fn note_small(&self, part: Part<'c>) {
        if let Part::Scalar(BasicValueEnum::IntValue(part)) = part
            && part.get_type().get_bit_width() == 32
            && !part.is_const()
        {
            self.small.borrow_mut().insert(part);
        }
    }

    /// By how much one integer is more than another, if that is known: what is closest to 0.
    pub fn difference(&self, a: IntValue<'c>, b: IntValue<'c>) -> Option<i64> {
        if a.get_type() != b.get_type() {
            return None;
        }
        let by = self.sum(a).plus(&self.sum(b), -1);
        let unused = 64 - a.get_type().get_bit_width();
        by.as_constant().map(|by| by << unused >> unused)
    }

    /// As [`Sums::difference`], of integers of which nothing wraps, as the numbers that they are: of constants it may be
    /// another one than modulo two to their width (0 and 128 in 8 bits). Others that have one are places of threads
    /// and what loops count from there, whose vectors lie far less than half of their type's numbers apart.
    pub fn distance(&self, a: IntValue<'c>, b: IntValue<'c>) -> Option<i64> {
        let by = self.difference(a, b)?;
        let both = |number: fn(IntValue<'c>) -> Option<i64>| number(a).zip(number(b));
        let signed = both(|v| v.get_sign_extended_constant());
        let unsigned = both(|v| v.get_zero_extended_constant().map(|n| n as i64));
        let fits =
            |numbers: Option<(i64, i64)>| numbers.is_none_or(|(a, b)| a.wrapping_sub(b) == by);
        (fits(signed) && fits(unsigned)).then_some(by)
    }

    /// Keeps in mind that an integer is what an operation made of others.
    pub fn note(&self, op: Op, result: IntValue<'c>, args: [IntValue<'c>; 2]) {
        let times = match op {
            Op::Add => 1,
            Op::Sub => -1,
            _other => return,
        };
        let is_new = self.origin(result) == (result, 0);
        if result.is_const() || !is_new || args.contains(&result) {
            return;
        }
        let [a, b] = args.map(|v| self.sum(v));
        let sum = a.plus(&b, times);
        if sum.terms().len() <= MOST_TERMS {
            self.sums.borrow_mut().insert(result, sum);
        }
    }

    /// As [`Sums::note`], of values of any kind.
    pub fn note_values(&self, op: Op, result: BasicValueEnum<'c>, args: &[BasicValueEnum<'c>]) {
        if let (BasicValueEnum::IntValue(result), [a, b]) = (result, args)
            && let (BasicValueEnum::IntValue(a), BasicValueEnum::IntValue(b)) = (*a, *b)
            && a.get_type() == result.get_type()
        {
            self.note(op, result, [a, b]);
        }
    }
}
