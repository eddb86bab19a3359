//! Loads whose lanes lie close together, though nobody knows how far apart: those by indices that floats became, as
//! when a picture is sampled at coordinates that grow from thread to thread.
//!
//! A gather takes as long as a load for each of its lanes. Where all lanes of a vector lie in a *window* of
//! [`WINDOW`] elements, of 32 bits for example, four vectors from memory and three instructions that pick lanes do the
//! same, for any distances. Whether they do is asked where code runs:
//!
//! ```text
//! index = rest + lanes          rest the same in all lanes, often the row
//! first = min(lanes[0], lanes[15]), or less
//! near  = all(lanes - first < WINDOW)
//! start = rest + first
//! near and start + WINDOW <= length   =>   every lane is in bounds, and so is the window
//! ```
//!
//! The rows of a chunk mostly have the same `lanes`, and so one answer. What does not fit is gathered.
//!
//! Of smaller elements the words are picked that they are in, and shifted.
//!
//! Deliberately absent: indices that come of what a thread loaded, which lie anywhere; elements of more than 32 bits;
//! processors without AVX-512, which have no instruction that picks from so many elements.

use std::collections::HashSet;

use inkwell::IntPredicate;
use inkwell::values::{BasicValueEnum, IntValue, PointerValue, VectorValue};
use invar_codegen::analysis::lanes::Class;
use invar_ir::inst::{Place, Value};
use invar_ir::{Op, Type};

use crate::emit::BUILT;
use crate::function::FunctionLowering;
use crate::places::Target;
use crate::value::{Mask, Part};

/// Lanes of the vectors that are picked from.
const LANES: u32 = 16;
/// Elements of a window: of 32 bits each, two instructions pick from two vectors each.
const WINDOW: u32 = 4 * LANES;
/// Picks words of one vector.
const PICK: &str = "llvm.x86.avx512.permvar.si.512";
/// Picks words of two vectors.
const PICK_OF_TWO: &str = "llvm.x86.avx512.vpermi2var.d.512";
/// Where indices end: all of 32 bits are the same as of 64, signed or not.
const END: u64 = 1 << 31;
const WORD_BYTES: u64 = 4;

/// A window for each vector of a chunk.
pub(crate) struct Windows<'c> {
    /// Whether all lanes lie in them, and they in bounds.
    pub inside: IntValue<'c>,
    /// The first element of each, and how far each lane is from it.
    each: Vec<(PointerValue<'c>, VectorValue<'c>)>,
}

impl<'c, 'k> FunctionLowering<'c, 'k> {
    /// The windows that a load's lanes may lie in.
    pub fn windows(&self, t: &Target<'c>, place: &Place, mask: &Mask<'c>) -> Option<Windows<'c>> {
        let e = &self.e;
        let simple = t.scale == 1
            && t.components == 1
            && t.dynamic.is_empty()
            && t.offset_bytes == 0
            && t.element_bytes == t.scalar.size_bytes()
            && (t.scalar.is_integer() || t.scalar.is_float())
            && matches!(t.scalar.size_bytes(), 1 | 2 | 4)
            && t.index_scalar.bits() == 32;
        let fits = simple
            && t.object.constant
            && e.target.has_avx512
            && self.shape.width == LANES
            && *mask == Mask::All
            && self.chunk.as_ref().is_some_and(|chunk| chunk.fast);
        if !fits || self.comes_of_floats(place.index, &mut HashSet::new()) != Some(true) {
            return None;
        }
        let (lanes, rest) = self.lanes_and_rest(t, place.index)?;
        let mut near: Vec<(VectorValue<'c>, IntValue<'c>, VectorValue<'c>)> = Vec::new();
        let mut inside: Option<IntValue<'c>> = None;
        let mut each = Vec::new();
        let limit = self.last_window(t);
        for (lanes, rest) in lanes.into_iter().zip(rest) {
            let known = near.iter().find(|(own, ..)| *own == lanes).copied();
            let (_, first, apart) = known.unwrap_or_else(|| {
                let lane = |lane| {
                    let lane = e.builder.build_extract_element(lanes, e.i32(lane), "");
                    lane.expect(BUILT).into_int_value()
                };
                let first = self.first(t, [lane(0), lane(LANES - 1)]);
                let apart = e.sub(lanes, e.splat(first.into(), LANES));
                let within = e.splat(e.i32(WINDOW).into(), LANES);
                let beyond = e.compare_lanes(IntPredicate::UGE, apart, within);
                let all = e.not(e.any(&[beyond]));
                inside = Some(inside.map_or(all, |others| e.and(others, all)));
                near.push((lanes, first, apart));
                (lanes, first, apart)
            });
            let start = e.widen(rest.map_or(first, |rest| e.add(rest, first)));
            let fits = e.compare(IntPredicate::ULT, start, limit);
            inside = Some(inside.map_or(fits, |others| e.and(others, fits)));
            let bytes = e.mul(start, e.i64(t.element_bytes));
            each.push((e.byte_offset(t.object.base, bytes), apart));
        }
        let inside = inside?;
        Some(Windows { inside, each })
    }

    /// The least of the lanes at the ends of a vector, or if these are near the first element of a cache line: a load
    /// across two of them takes twice as long, and rows of a picture mostly begin with one.
    fn first(&self, t: &Target<'c>, [one, other]: [IntValue<'c>; 2]) -> IntValue<'c> {
        let (e, b) = (&self.e, &self.e.builder);
        let choose = |which: IntValue<'c>, yes: IntValue<'c>, no: IntValue<'c>| {
            let chosen = b.build_select(which, yes, no, "").expect(BUILT);
            chosen.into_int_value()
        };
        let less = e.compare(IntPredicate::SLT, one, other);
        let (first, last) = (choose(less, one, other), choose(less, other, one));
        if t.element_bytes < WORD_BYTES {
            return first;
        }
        let of_line = e.and(first, e.i32(!(LANES - 1)));
        let near = e.compare(IntPredicate::ULT, e.sub(last, of_line), e.i32(WINDOW));
        choose(near, of_line, first)
    }

    /// The lanes of windows that they lie in.
    pub fn load_windows(&self, t: &Target<'c>, windows: &Windows<'c>) -> Vec<Part<'c>> {
        let load = |(pointer, apart): &(PointerValue<'c>, VectorValue<'c>)| {
            Part::Vector(self.load_window(t, *pointer, *apart))
        };
        windows.each.iter().map(load).collect()
    }

    fn load_window(
        &self,
        t: &Target<'c>,
        pointer: PointerValue<'c>,
        apart: VectorValue<'c>,
    ) -> VectorValue<'c> {
        let e = &self.e;
        let size = t.scalar.size_bytes() as u32;
        let words = e.context.i32_type().vec_type(LANES);
        let vector = |number: u32| {
            let bytes = u64::from(number * LANES) * WORD_BYTES;
            let from = e.byte_offset(pointer, e.i64(bytes));
            let vector = e.load(words.into(), from, size);
            self.mark_constant(&t.object, vector);
            vector
        };
        let same = |n: u32| e.splat(e.i32(n).into(), LANES);
        // `shift` bits of `apart` say which of the elements in a word.
        let shift = (WORD_BYTES as u32 / size).ilog2();
        let (b, in_words) = (&e.builder, same(shift));
        let word = b.build_right_shift(apart, in_words, false, "");
        let word = BasicValueEnum::from(word.expect(BUILT));
        let pick = |first: u32| {
            let args = [vector(first), word, vector(first + 1)];
            e.intrinsic(PICK_OF_TWO, &[], &args).expect("a value")
        };
        let picked = match size {
            1 => e.intrinsic(PICK, &[], &[vector(0), word]).expect("a value"),
            2 => pick(0),
            _word => {
                let is_near = e.compare_lanes(IntPredicate::ULT, apart, same(WINDOW / 2));
                e.select(is_near.into(), pick(0), pick(2))
            }
        };
        let mut picked = picked.into_vector_value();
        if shift > 0 {
            let in_word = e.and(apart, same((1 << shift) - 1));
            let bits = e.mul(in_word, same(size * 8));
            picked = (b.build_right_shift(picked, bits, false, "")).expect(BUILT);
            let element = e.int_type(size * 8).vec_type(LANES);
            picked = b.build_int_truncate(picked, element, "").expect(BUILT);
        }
        let ty = e.memory_type(t.scalar, e.vector_type(t.scalar, LANES).into());
        let picked = b.build_bit_cast(picked, ty, "").expect(BUILT);
        self.settled(&t.object, t.scalar, picked)
            .into_vector_value()
    }

    /// The index from which on no window fits in an object.
    fn last_window(&self, t: &Target<'c>) -> IntValue<'c> {
        let e = &self.e;
        let length = e.smaller(t.object.length, e.i64(END));
        let [window, beyond] = [WINDOW, WINDOW - 1].map(|n| e.i64(n.into()));
        let none = e.compare(IntPredicate::ULT, length, window);
        let last = e.sub(length, beyond);
        let last = e.builder.build_select(none, e.i64(0), last, "");
        last.expect(BUILT).into_int_value()
    }

    /// An index as a sum of what differs from lane to lane and what does not, for each vector.
    fn lanes_and_rest(
        &self,
        t: &Target<'c>,
        index: Value,
    ) -> Option<(Vec<VectorValue<'c>>, Vec<Option<IntValue<'c>>>)> {
        let count = self.shape.parts() as usize;
        let vectors = |value: Value| -> Option<Vec<VectorValue<'c>>> {
            let parts = self.known(value)?;
            let vector = |u| match parts.part(0, u) {
                Part::Vector(vector) => Some(vector),
                Part::Scalar(_) | Part::Affine { .. } => None,
            };
            (0..count).map(vector).collect()
        };
        let scalars = |value: Value| -> Option<Vec<Option<IntValue<'c>>>> {
            let parts = self.known(value)?;
            let scalar = |u| match parts.part(0, u) {
                Part::Scalar(scalar) => Some(Some(scalar.into_int_value())),
                Part::Vector(_) | Part::Affine { .. } => None,
            };
            (0..count).map(scalar).collect()
        };
        let sum = self.without_casts(index);
        let args = self.op_of(sum).filter(|(op, _)| *op == Op::Add);
        if let Some((_, &[a, b])) = args {
            let split = |lanes, rest| vectors(lanes).zip(scalars(rest));
            if let Some(found) = split(a, b).or_else(|| split(b, a)) {
                return Some(found);
            }
        }
        let whole = |u| match t.index.part(0, u) {
            Part::Vector(vector) => Some(vector),
            Part::Scalar(_) | Part::Affine { .. } => None,
        };
        let whole: Option<Vec<_>> = (0..count).map(whole).collect();
        Some((whole?, vec![None; count]))
    }

    /// What an integer of 32 bits is but for its sign.
    fn without_casts(&self, value: Value) -> Value {
        let is_word = |value: Value| {
            let scalar = self.analysis.kernel.ty(value).scalar();
            scalar.is_some_and(|s| s.is_integer() && s.bits() == 32)
        };
        match self.op_of(value) {
            Some((Op::Cast, &[from])) if is_word(from) && is_word(value) => {
                self.without_casts(from)
            }
            _other => value,
        }
    }

    fn op_of(&self, value: Value) -> Option<(Op, &'k [Value])> {
        let definition = *self.analysis.plan.definitions.get(&value)?;
        let (op, _, args) = definition.kind.as_op()?;
        Some((op, args))
    }

    /// Whether a float became an integer on the way from the threads' positions to a value; nothing where something
    /// else than positions differs from lane to lane.
    fn comes_of_floats(&self, value: Value, seen: &mut HashSet<Value>) -> Option<bool> {
        if !matches!(self.class_of(value), Class::Varying) || !seen.insert(value) {
            return Some(false);
        }
        let (op, args) = self.op_of(value)?;
        let mut found = false;
        for arg in args {
            found |= self.comes_of_floats(*arg, seen)?;
        }
        let is_float = |value: &Value| match self.analysis.kernel.ty(*value) {
            Type::Scalar(scalar) => scalar.is_float(),
            _no_scalar => false,
        };
        Some(found || op == Op::Cast && !is_float(&value) && args.iter().any(is_float))
    }
}
