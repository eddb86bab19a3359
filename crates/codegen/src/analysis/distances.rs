//! How far the lanes of a vector lie from its first one, where that is the same for every vector but not one stride.
//!
//! For tiles that threads fill by their number: thread `t` has row `t / 4` and piece `t % 4` of it, with fewer pieces
//! than a vector has lanes, or a swizzle of them. Of such indices every vector's lanes go apart alike, since a vector
//! begins at a multiple of its lanes, so that an access is one address and known distances; where some lanes lie side
//! by side, they are a vector.
//!
//! A forward analysis to a fixed point, optimistic at loops, of the integers that [`lanes`](super::lanes) finds
//! varying; those that grow evenly are its lines. A value of the first lane whose low bits are known to be zero is
//! enough to divide and mask the lanes' distances instead of the lanes.
//!
//! Deliberately absent: what is picked lane by lane, and quotients by other numbers than powers of two.

use std::collections::HashMap;

use invar_ir::{Const, Inst, InstKind, Kernel, Op, Region, Type, Value};

use super::lanes::{Class, Classes, Question, fits};
use crate::passes::common::{constants, integer, yielded};

/// Bits of a distance that holds as of integers without end.
const EXACT: u32 = u32::MAX;

/// Further than this no lanes of one vector lie apart.
const MOST: i64 = 1 << 31;

/// The distances of a kernel's values.
#[derive(Clone, Debug, Default)]
pub struct Distances {
    values: HashMap<Value, Apart>,
}

impl Distances {
    /// By how much each lane of a value's vectors is more than the first one; `None` if that is not known. If not
    /// `exact`, as 32 bits wrap.
    pub fn of(&self, value: Value, exact: bool) -> Option<&[i64]> {
        let apart = self.values.get(&value)?;
        let bits = if exact { EXACT } else { 32 };
        (apart.bits >= bits).then_some(apart.by.as_slice())
    }
}

/// What is known of the lanes of a vector.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Apart {
    /// From the first lane to each.
    by: Vec<i64>,
    /// Distances are known modulo two to this, or [`EXACT`].
    bits: u32,
    /// In the first lane it is a multiple of two to this.
    aligned: u32,
}

impl Apart {
    /// What holds of both, if the lanes go apart alike.
    fn join(&self, other: &Apart) -> Option<Apart> {
        (self.by == other.by).then(|| Apart {
            by: self.by.clone(),
            bits: self.bits.min(other.bits),
            aligned: self.aligned.min(other.aligned),
        })
    }
}

/// Finds the distances of a kernel's values in the chunks that `classes` are of.
///
/// ```
/// use std::collections::HashMap;
/// use invar_codegen::analysis::distances;
/// use invar_codegen::analysis::lanes::{Positions, Question, Shape, analyse};
/// use invar_codegen::analysis::ranges::{Known, analyse_unguarded};
/// use invar_ir::{Level, Value};
///
/// let text = "kernel @k(%x: device write u32) {
///     %t = thread_index_in_threadgroup
///     %four = const u32 4
///     %row = div %t, %four
///     %column = rem %t, %four
///     %pitch = const u32 20
///     %begin = mul %row, %pitch
///     %i = add %begin, %column
///     store %x[%i], %t
/// }";
/// let module = invar_ir::text::parse("k.inv", text)?;
/// let kernel = &module.kernels[0];
/// let known = Known { threadgroup_size: Some([64, 1, 1]), ..Known::default() };
/// let question = Question {
///     kernel,
///     uniformity: &invar_ir::analyse(&module, kernel),
///     level: Level::Threadgroup,
///     shape: Shape { width: 8, along: 2, rows: 1, linear: false },
///     positions: Positions::Rows,
///     together: &|_| false,
///     at_least: &HashMap::new(),
///     threadgroup_size: known.threadgroup_size,
///     ranges: &analyse_unguarded(kernel, &known),
/// };
/// let distances = distances::analyse(&question, &analyse(&question));
/// assert_eq!(distances.of(Value(6), true), Some(&[0, 1, 2, 3, 20, 21, 22, 23][..]));
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
pub fn analyse(question: &Question<'_>, classes: &Classes) -> Distances {
    let mut walk = Walk {
        q: question,
        classes,
        constants: constants(question.kernel),
        found: HashMap::new(),
        changed: true,
        loops: Vec::new(),
    };
    while walk.changed {
        walk.changed = false;
        walk.region(&question.kernel.body);
    }
    let known = |(value, apart): (Value, Option<Apart>)| Some((value, apart?));
    Distances {
        values: walk.found.into_iter().filter_map(known).collect(),
    }
}

struct Walk<'a> {
    q: &'a Question<'a>,
    classes: &'a Classes,
    constants: HashMap<Value, Const>,
    /// Nothing before something computes it; `None` where lanes go apart in any way.
    found: HashMap<Value, Option<Apart>>,
    changed: bool,
    loops: Vec<&'a Inst>,
}

/// What is known of a value: nothing yet, or how its lanes go apart if that is known.
type Found = Option<Option<Apart>>;

impl<'a> Walk<'a> {
    fn kernel(&self) -> &'a Kernel {
        self.q.kernel
    }

    fn of(&self, value: Value) -> Found {
        let lanes = i64::from(self.q.shape.width);
        let bits = self.kernel().ty(value).scalar().map_or(0, |s| s.bits());
        Some(match self.classes.of(value) {
            Class::Uniform => Some(Apart {
                by: vec![0; lanes as usize],
                bits: EXACT,
                aligned: (self.constant(value)).map_or(0, |n| n.trailing_zeros()),
            }),
            Class::Line(line) => Some(Apart {
                by: (0..lanes).map(|lane| lane * line.stride).collect(),
                bits: if line.exact { EXACT } else { bits },
                aligned: line.aligned,
            })
            .filter(|apart| apart.by.iter().all(|by| by.abs() < MOST)),
            Class::Varying => return self.found.get(&value).cloned(),
        })
    }

    fn constant(&self, value: Value) -> Option<i64> {
        i64::try_from(integer(*self.constants.get(&value)?)?).ok()
    }

    fn set(&mut self, value: Value, found: Found) {
        let Some(found) = found else {
            return;
        };
        let new = match self.found.get(&value) {
            None => found,
            Some(old) => old.as_ref().zip(found).and_then(|(a, b)| a.join(&b)),
        };
        if self.found.get(&value) != Some(&new) {
            self.found.insert(value, new);
            self.changed = true;
        }
    }

    /// Gives values further names; `mixed` if lanes may have them from different places.
    fn hand_on(&mut self, mixed: bool, to: &[Value], values: &[Value]) {
        for (to, value) in to.iter().zip(values) {
            let found = if mixed { Some(None) } else { self.of(*value) };
            self.set(*to, found);
        }
    }

    fn region(&mut self, region: &'a Region) {
        for inst in &region.insts {
            self.inst(inst);
        }
    }

    fn inst(&mut self, inst: &'a Inst) {
        match &inst.kind {
            InstKind::Op { op, args, .. } => {
                let found = self.op(*op, args, inst.results[0]);
                self.set(inst.results[0], found);
            }
            InstKind::If {
                condition,
                then,
                otherwise,
            } => {
                let picked = self.classes.of(*condition) != Class::Uniform;
                for side in [then, otherwise] {
                    self.region(side);
                    if let Some(values) = yielded(side) {
                        self.hand_on(picked, &inst.results, values);
                    }
                }
            }
            InstKind::For {
                lower,
                step,
                init,
                body,
                ..
            } => {
                let even = self.classes.of(*step) == Class::Uniform;
                let index = if even { self.of(*lower) } else { Some(None) };
                let by = self.constant(*step).map_or(0, |n| n.trailing_zeros());
                let index = index.map(|lower| {
                    lower.map(|lower| Apart {
                        aligned: lower.aligned.min(by),
                        ..lower
                    })
                });
                self.set(body.params[0], index);
                self.iterations(inst, init, body);
                self.hand_on(self.classes.is_masked(inst), &inst.results, inst.carried());
            }
            InstKind::Loop { init, body } => self.iterations(inst, init, body),
            InstKind::Break(values) => self.leave(values, |inst| &inst.results),
            InstKind::Continue(values) => self.leave(values, Inst::carried),
            // What a yield hands on, the instruction around it says.
            InstKind::Return | InstKind::Yield(_) => {}
            _other => {
                for result in &inst.results {
                    self.set(*result, Some(None));
                }
            }
        }
    }

    /// The iterations of a loop, which begins with the values `init`.
    fn iterations(&mut self, inst: &'a Inst, init: &[Value], body: &'a Region) {
        let mixed = self.classes.is_masked(inst);
        self.hand_on(mixed, inst.carried(), init);
        self.loops.push(inst);
        self.region(body);
        self.loops.pop();
        if let Some(values) = yielded(body) {
            self.hand_on(mixed, inst.carried(), values);
        }
    }

    /// A `break` or `continue`, whose values its loop gets by the names `to`.
    fn leave(&mut self, values: &[Value], to: impl Fn(&'a Inst) -> &'a [Value]) {
        if let Some(target) = self.loops.last() {
            self.hand_on(self.classes.is_masked(target), to(target), values);
        }
    }

    fn op(&self, op: Op, args: &[Value], result: Value) -> Found {
        let ty = self.kernel().ty(result);
        let integers = ty.is_integer_scalar()
            && args.len() <= 2
            && (args.iter()).all(|arg| self.kernel().ty(*arg).is_integer_scalar());
        if !integers || args.is_empty() {
            return Some(None);
        }
        let apart: Vec<Option<Apart>> =
            (args.iter().map(|arg| self.of(*arg))).collect::<Option<_>>()?;
        let Some(apart) = apart.into_iter().collect::<Option<Vec<Apart>>>() else {
            return Some(None);
        };
        let found = match apart.as_slice() {
            [one] => self.of_one(op, args[0], one, ty),
            [a, b] => self.of_two(op, args, [a, b], result),
            _more => None,
        };
        Some(
            found
                .map(|found| self.settled(found, result))
                .filter(|found| {
                    let far = |by: &i64| by.abs() >= MOST;
                    !found.by.iter().any(far)
                }),
        )
    }

    fn of_one(&self, op: Op, arg: Value, a: &Apart, to: Type) -> Option<Apart> {
        let [from_bits, to_bits] =
            [self.kernel().ty(arg), to].map(|ty| ty.scalar().map(|s| s.bits()));
        let kept = fits(self.q.ranges, arg, to);
        let bits = from_bits?.min(to_bits?);
        matches!(op, Op::Cast | Op::AsType).then(|| Apart {
            bits: if kept { a.bits } else { a.bits.min(bits) },
            aligned: a.aligned.min(if kept { EXACT } else { bits }),
            by: a.by.clone(),
        })
    }

    fn of_two(&self, op: Op, args: &[Value], [a, b]: [&Apart; 2], result: Value) -> Option<Apart> {
        let constant = |i: usize| self.constant(args[i]);
        match op {
            Op::Add | Op::Sub => {
                let sign = if op == Op::Add { 1 } else { -1 };
                let by = a.by.iter().zip(&b.by).map(|(a, b)| a + sign * b);
                self.wrapping(by.collect(), [a, b], a.aligned.min(b.aligned), result)
            }
            Op::Mul if constant(1).is_some() => self.times(a, constant(1)?, result),
            Op::Mul => self.times(b, constant(0)?, result),
            Op::Shl => self.times(a, 1 << self.count(args)?, result),
            Op::Div => self.quotient(args[0], a, constant(1)?),
            Op::Shr => self.quotient(args[0], a, 1 << self.count(args)?),
            Op::ShrExact => {
                let by = 1 << self.count(args)?;
                let even = a.bits == EXACT && a.by.iter().all(|one| one % by == 0);
                even.then(|| Apart {
                    by: a.by.iter().map(|one| one / by).collect(),
                    bits: EXACT,
                    aligned: a.aligned.saturating_sub(by.trailing_zeros()),
                })
                .or_else(|| self.quotient(args[0], a, by))
            }
            Op::Rem => self.remainder(args[0], a, constant(1)?),
            Op::And | Op::Or | Op::Xor => self.bitwise(op, args, [a, b]),
            _other => None,
        }
    }

    /// By how much a shift moves.
    fn count(&self, args: &[Value]) -> Option<u32> {
        let bits = self.kernel().ty(args[0]).scalar()?.bits();
        let count = u32::try_from(self.constant(args[1])?).ok()?;
        (count < bits.min(31)).then_some(count)
    }

    /// What arithmetic that wraps (A1) makes of operands.
    fn wrapping(
        &self,
        by: Vec<i64>,
        of: [&Apart; 2],
        aligned: u32,
        result: Value,
    ) -> Option<Apart> {
        let own = self.kernel().ty(result).scalar()?.bits();
        let bits = of[0].bits.min(of[1].bits);
        let kept = self.q.ranges.never_wraps(result);
        Some(Apart {
            by,
            bits: if kept { bits } else { bits.min(own) },
            aligned: aligned.min(own),
        })
    }

    fn times(&self, a: &Apart, factor: i64, result: Value) -> Option<Apart> {
        let by: Option<Vec<i64>> = a.by.iter().map(|by| by.checked_mul(factor)).collect();
        let aligned = a.aligned.saturating_add(factor.trailing_zeros());
        self.wrapping(by?, [a, a], aligned, result)
    }

    /// Whether the lowest bits, so many of which are zero in the first lane, have room for all distances: nothing is
    /// carried beyond them, and the sign stays.
    fn has_room(&self, value: Value, a: &Apart, bits: u32) -> bool {
        let own = self.kernel().ty(value).scalar().map_or(0, |s| s.bits());
        let within = 0..1i64 << bits.min(own.saturating_sub(1)).min(62);
        a.bits >= own && a.by.iter().all(|by| within.contains(by))
    }

    fn is_negative(&self, value: Value) -> bool {
        (self.q.ranges.of(value)).is_none_or(|(least, _)| least < 0)
    }

    /// Quotients of what is not negative: of the first lane's a multiple of `by`, or all alike.
    fn quotient(&self, value: Value, a: &Apart, by: i64) -> Option<Apart> {
        if by <= 0 || self.is_negative(value) {
            return None;
        }
        let shift = by.trailing_zeros();
        if by & (by - 1) == 0 && a.aligned >= shift && self.has_room(value, a, a.aligned) {
            return Some(Apart {
                by: a.by.iter().map(|one| one >> shift).collect(),
                bits: EXACT,
                aligned: a.aligned - shift,
            });
        }
        let aligned = a.aligned.min(shift);
        self.has_room(value, a, aligned).then(|| Apart {
            by: vec![0; a.by.len()],
            bits: EXACT,
            aligned: 0,
        })
    }

    /// Remainders of what is not negative.
    fn remainder(&self, value: Value, a: &Apart, by: i64) -> Option<Apart> {
        if by <= 0 || self.is_negative(value) {
            return None;
        }
        let shift = by.trailing_zeros();
        if by & (by - 1) == 0 && a.aligned >= shift && self.has_room(value, a, a.aligned) {
            return Some(Apart {
                by: a.by.iter().map(|one| one & (by - 1)).collect(),
                bits: EXACT,
                aligned: 62,
            });
        }
        let aligned = a.aligned.min(shift);
        self.has_room(value, a, aligned).then(|| Apart {
            by: a.by.clone(),
            bits: EXACT,
            aligned,
        })
    }

    /// Of bits below those that the first lanes have, or with a constant.
    fn bitwise(&self, op: Op, args: &[Value], [a, b]: [&Apart; 2]) -> Option<Apart> {
        let apply = |a: i64, b: i64| match op {
            Op::And => a & b,
            Op::Or => a | b,
            _xor => a ^ b,
        };
        let with = |value: Value, a: &Apart, constant: i64| {
            let low = constant & ((1 << a.aligned.min(62)) - 1);
            let first = apply(0, low);
            self.has_room(value, a, a.aligned).then(|| Apart {
                by: a.by.iter().map(|one| apply(*one, low) - first).collect(),
                bits: EXACT,
                aligned: if first == 0 { a.aligned } else { 0 },
            })
        };
        match [0, 1].map(|i| self.constant(args[i])) {
            [_, Some(constant)] => with(args[0], a, constant),
            [Some(constant), _] => with(args[1], b, constant),
            [None, None] => {
                let aligned = a.aligned.min(b.aligned);
                let room = [(args[0], a), (args[1], b)];
                let room = room.map(|(value, one)| self.has_room(value, one, aligned));
                (room == [true; 2]).then(|| Apart {
                    by: (a.by.iter().zip(&b.by))
                        .map(|(a, b)| apply(*a, *b))
                        .collect(),
                    bits: EXACT,
                    aligned,
                })
            }
        }
    }

    /// Where all values lie closer than distances wrap, these are exact.
    fn settled(&self, apart: Apart, value: Value) -> Apart {
        let own = self.kernel().ty(value).scalar().map_or(0, |s| s.bits());
        let half = 1i128 << (apart.bits.min(own).clamp(1, 64) - 1);
        let close = (self.q.ranges.of(value)).is_some_and(|(least, most)| most - least < half);
        let near = apart.by.iter().all(|by| i128::from(by.abs()) < half);
        Apart {
            bits: if close && near { EXACT } else { apart.bits },
            ..apart
        }
    }
}
