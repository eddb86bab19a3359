//! Last iterations: a loop that asks in each iteration whether what it goes to is still inside is made twice, first for
//! the iterations that are, without a question.
//!
//! ```text
//! for k = 0 to end step 16 { for i = 0 to 16 { if k + i < n { load a[k + i] } } }
//!     ->   for k = 0 to n - 15 step 16 { for i = 0 to 16 { load a[k + i] } }, and then the old loop for what is left
//! ```
//!
//! This is for loops that go on by several elements an iteration over rows of any length: products by tiles, loops that
//! are written out by hand.
//!
//! A comparison `e < n` is known in an iteration at `k` if `n` is the same in all iterations and for the whole
//! threadgroup, and `e` is `k` and something from 0 to a constant `R`: it holds where `k < n - R`, and nothing wraps
//! there. Steps are no greater than `R + 1`, so that the index behind such iterations is `n` at most, and is a number
//! of its type.
//!
//! Deliberately absent: loops in which threads meet, or that are left early; comparisons that are not `<`; what grows
//! with the place of a thread (`interior.rs`).

use std::collections::{HashMap, HashSet};

use invar_ir::{
    Const, Imm, Inst, InstKind, Kernel, Level, Module, Op, Region, Scalar, Span, Type, Uniformity,
    Value, ValueInfo, Values, analyse,
};

use super::common::{
    Map, clone_region, constants, count, integer, new_value, push_const, push_inst,
};
use super::unroll::leaves;
use crate::analysis::affine::{self, Affine, Symbol};
use crate::analysis::ranges::{self, Known, Ranges};
use crate::tuning::TWICE_WRITTEN_INSTRUCTIONS;

const BOOL: Type = Type::Scalar(Scalar::Bool);

pub(super) fn run(module: &Module, kernel: &mut Kernel) {
    let mut asks = false;
    kernel.for_each_inst(&mut |inst| asks |= matches!(inst.kind, InstKind::For { .. }));
    if !asks {
        return;
    }
    let ranges = ranges::analyse(kernel, &Known::default());
    let look = Look {
        kernel,
        affine: affine::analyse(kernel, &ranges, None),
        ranges,
        constants: constants(kernel),
        uniformity: analyse(module, kernel),
    };
    let mut found = HashMap::new();
    look.region(&kernel.body, &mut found);
    if found.is_empty() {
        return;
    }
    let mut body = std::mem::take(&mut kernel.body);
    apply(&mut kernel.values, &mut body, &found);
    kernel.body = body;
}

/// What of a loop is known in its first iterations.
struct Inside {
    /// Comparisons that hold where the index is less than a limit and less than another by so much.
    comparisons: HashMap<Value, (Value, u64)>,
    scalar: Scalar,
    step: u64,
}

struct Look<'k> {
    kernel: &'k Kernel,
    affine: Affine<'k>,
    ranges: Ranges,
    constants: HashMap<Value, Const>,
    uniformity: Uniformity,
}

impl Look<'_> {
    /// Finds the outermost such loops, each by its index.
    fn region(&self, region: &Region, found: &mut HashMap<Value, Inside>) {
        for inst in &region.insts {
            if let Some((index, inside)) = self.inside(inst) {
                found.insert(index, inside);
                continue;
            }
            for inner in inst.kind.regions() {
                self.region(inner, found);
            }
        }
    }

    fn inside(&self, inst: &Inst) -> Option<(Value, Inside)> {
        let InstKind::For {
            lower,
            upper,
            step,
            body,
            ..
        } = &inst.kind
        else {
            return None;
        };
        let index = body.params[0];
        let scalar = self.kernel.ty(index).scalar()?;
        let step = u64::try_from(self.number(*step)?).ok().filter(|s| *s > 0)?;
        let from = self.number(*lower);
        if scalar.is_signed_integer() && from.is_none_or(|from| from < 0)
            || ![*lower, *upper].iter().all(|bound| self.is_uniform(*bound))
            || count(body) > TWICE_WRITTEN_INSTRUCTIONS
            || leaves(body)
            || !runs_alone(body)
        {
            return None;
        }
        let mut within = Within::default();
        within.region(body);
        let mut comparisons = HashMap::new();
        for (result, [less, than]) in &within.comparisons {
            if within.deciding.contains(result)
                && !within.defined.contains(than)
                && self.is_uniform(*than)
                && let Some(most) = self.beyond(*less, index, scalar)
                && step <= most + 1
            {
                comparisons.insert(*result, (*than, most));
            }
        }
        let inside = Inside {
            comparisons,
            scalar,
            step,
        };
        (!inside.comparisons.is_empty()).then_some((index, inside))
    }

    fn number(&self, value: Value) -> Option<i128> {
        self.constants.get(&value).and_then(|c| integer(*c))
    }

    fn is_uniform(&self, value: Value) -> bool {
        self.uniformity.of(value) >= Level::Threadgroup
    }

    /// The most by which a value is beyond a loop's index, if it is never before it.
    fn beyond(&self, value: Value, index: Value, scalar: Scalar) -> Option<u64> {
        let form = self.affine.of(value);
        if self.kernel.ty(value) != Type::Scalar(scalar) || !form.exact && form.bits < scalar.bits()
        {
            return None;
        }
        let rest = form.sum.plus(&self.affine.of(index).sum, -1);
        let mut ends = [i128::from(rest.offset()); 2];
        for (product, factor) in rest.terms() {
            let mut symbols = product.symbols();
            let (Some(Symbol::Iteration(inner)), None) = (symbols.next(), symbols.next()) else {
                return None;
            };
            let (least, most) = self.ranges.of(inner)?;
            // A loop of a step of its own makes no more iterations than numbers lie between its ends.
            let iterations = (inner != index).then_some(most - least)?;
            let last = iterations.checked_mul(i128::from(*factor))?;
            ends = [ends[0] + last.min(0), ends[1] + last.max(0)];
        }
        let [least, most] = ends;
        // Farther than that, few loops have an iteration inside; and it is a number of the index's type.
        (least >= 0 && most < 1 << (scalar.bits() - 1).min(16)).then_some(most as u64)
    }
}

/// Whether no thread meets another.
fn runs_alone(region: &Region) -> bool {
    region.insts.iter().all(|inst| {
        inst.kind.meets().is_none()
            && !inst.kind.orders_memory()
            && inst.kind.regions().into_iter().all(runs_alone)
    })
}

/// What a loop's body holds.
#[derive(Default)]
struct Within {
    defined: HashSet<Value>,
    /// What is less than what.
    comparisons: Vec<(Value, [Value; 2])>,
    /// What decides over an `if` or a `select`, by itself or with others.
    deciding: HashSet<Value>,
    both: HashMap<Value, [Value; 2]>,
}

impl Within {
    fn region(&mut self, region: &Region) {
        self.defined.extend(&region.params);
        for inst in &region.insts {
            self.defined.extend(&inst.results);
            match &inst.kind {
                InstKind::Op { op, args, .. } => match (op, &args[..]) {
                    (Op::Lt, [a, b]) => self.comparisons.push((inst.results[0], [*a, *b])),
                    (Op::Gt, [a, b]) => self.comparisons.push((inst.results[0], [*b, *a])),
                    (Op::And, [a, b]) => {
                        self.both.insert(inst.results[0], [*a, *b]);
                    }
                    (Op::Select, [_, _, condition]) => self.decides(*condition),
                    _another => {}
                },
                InstKind::If { condition, .. } => self.decides(*condition),
                _another => {}
            }
            for inner in inst.kind.regions() {
                self.region(inner);
            }
        }
    }

    fn decides(&mut self, condition: Value) {
        self.deciding.insert(condition);
        if let Some(parts) = self.both.get(&condition).copied() {
            parts.iter().for_each(|part| self.decides(*part));
        }
    }
}

// ---- doing it ----

fn apply(values: &mut Vec<ValueInfo>, region: &mut Region, found: &HashMap<Value, Inside>) {
    for mut inst in std::mem::take(&mut region.insts) {
        let inside = match &inst.kind {
            InstKind::For { body, .. } => found.get(&body.params[0]),
            _no_loop => None,
        };
        if let Some(inside) = inside {
            first_iterations(values, &mut inst, inside, &mut region.insts);
        } else {
            for inner in inst.kind.regions_mut() {
                apply(values, inner, found);
            }
        }
        region.insts.push(inst);
    }
}

/// Puts the iterations that are inside in front of a loop, which goes on from there.
fn first_iterations(
    values: &mut Vec<ValueInfo>,
    inst: &mut Inst,
    inside: &Inside,
    out: &mut Vec<Inst>,
) {
    let span = inst.span;
    let InstKind::For {
        lower,
        upper,
        step,
        init,
        body,
    } = &mut inst.kind
    else {
        unreachable!("it was a loop")
    };
    let mut build = Build {
        values,
        out,
        scalar: inside.scalar,
        span,
    };
    // The limits, each once, in an order that is the same each time.
    let mut limits: Vec<(Value, u64)> = inside.comparisons.values().copied().collect();
    limits.sort_unstable();
    limits.dedup();
    let mut end = *upper;
    for (than, most) in limits {
        let limit = build.limit(than, most, *lower);
        end = build.op(Op::Min, &[end, limit]);
    }
    let next = build.behind(*lower, end, inside.step);

    let mut map = Map::new();
    let mut first = clone_region(build.values, body, &mut map);
    let known: HashSet<Value> = inside.comparisons.keys().map(|v| map[v]).collect();
    hold(&mut first, &known);
    let results: Vec<Value> = (init.iter())
        .map(|value| new_value(build.values, build.values[value.0 as usize].ty))
        .collect();
    build.out.push(Inst {
        kind: InstKind::For {
            lower: *lower,
            upper: end,
            step: *step,
            init: init.clone(),
            body: first,
        },
        results: results.iter().copied().collect(),
        span,
    });
    *lower = next;
    *init = Values::from_slice(&results);
}

/// Comparisons that hold.
fn hold(region: &mut Region, known: &HashSet<Value>) {
    for inst in &mut region.insts {
        if inst
            .results
            .first()
            .is_some_and(|value| known.contains(value))
        {
            inst.kind = InstKind::Const(Const {
                scalar: Scalar::Bool,
                bits: 1,
            });
        }
        for inner in inst.kind.regions_mut() {
            hold(inner, known);
        }
    }
}

/// Instructions at the end of a list.
struct Build<'a> {
    values: &'a mut Vec<ValueInfo>,
    out: &'a mut Vec<Inst>,
    scalar: Scalar,
    span: Span,
}

impl Build<'_> {
    fn typed(&mut self, op: Op, args: &[Value], ty: Type) -> Value {
        let kind = InstKind::Op {
            op,
            imm: Imm::None,
            args: Values::from_slice(args),
        };
        push_inst(self.values, self.out, kind, ty, self.span)
    }

    fn op(&mut self, op: Op, args: &[Value]) -> Value {
        self.typed(op, args, Type::Scalar(self.scalar))
    }

    fn constant(&mut self, bits: u64) -> Value {
        let constant = Const {
            scalar: self.scalar,
            bits,
        };
        push_const(self.values, self.out, constant, self.span)
    }

    /// `than - most`; where no index is less, the loop's first.
    fn limit(&mut self, than: Value, most: u64, lower: Value) -> Value {
        let most = self.constant(most);
        let some = self.typed(Op::Gt, &[than, most], BOOL);
        let limit = self.op(Op::Sub, &[than, most]);
        self.op(Op::Select, &[lower, limit, some])
    }

    /// The index behind the iterations below an end.
    fn behind(&mut self, lower: Value, end: Value, step: u64) -> Value {
        let [one, step] = [1, step].map(|n| self.constant(n));
        let some = self.typed(Op::Gt, &[end, lower], BOOL);
        let distance = self.op(Op::Sub, &[end, lower]);
        let last = self.op(Op::Sub, &[distance, one]);
        let whole = self.op(Op::Div, &[last, step]);
        let iterations = self.op(Op::Add, &[whole, one]);
        let length = self.op(Op::Mul, &[iterations, step]);
        let next = self.op(Op::Add, &[lower, length]);
        self.op(Op::Select, &[lower, next, some])
    }
}
