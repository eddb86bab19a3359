//! Branches and loops, with the variables that they change as values that they carry.

use invar_ir::{InstKind, Region, ScalarLiteral, Type, Value, Values};

use super::compare::le;
use super::data::{Constant, Integer, Val};
use super::define::{Place4, at, with};
use super::memory::{ConstantTable, part, read};
use super::ops::{add_sat, select};
use super::value::{IntoVal, Vars, cast, lit, zero};

/// The values of variables, in order.
fn values_of(vars: &impl Vars) -> Vec<Value> {
    let mut values = Vec::new();
    vars.values(&mut values);
    values
}

fn types_of<V: Vars>() -> Vec<Type> {
    let mut types = Vec::new();
    V::types(&mut types);
    types
}

/// Variables of these values, named as the author named them.
fn named<V: Vars>(values: Vec<Value>, names: &[&str]) -> V {
    let vars = V::rebuild(&mut values.into_iter());
    vars.name_all(&mut names.iter());
    vars
}

/// One side of a branch; whether its end is reached.
fn side<V: Vars, R: Vars>(vars: V, body: impl FnOnce(V) -> R) -> (Region, bool) {
    with(|k| k.builder.open_region(&[]));
    let given = values_of(&body(vars));
    with(|k| {
        let ended = k.builder.terminated();
        k.builder.yield_(&given);
        (k.builder.close_region(), !ended)
    })
}

/// `if`: both sides get the variables that one of them changes, and give what the branch gives, and
/// the last values of the variables. `names` are those of the variables.
pub fn if_<V: Vars, G: Vars>(
    condition: Val<bool>,
    place: Place4,
    names: &[&str],
    vars: V,
    then: impl FnOnce(V) -> (G, V),
    otherwise: impl FnOnce(V) -> (G, V),
) -> (G, V) {
    let (then, then_ends) = side(vars, then);
    let (otherwise, otherwise_ends) = side(vars, otherwise);
    at(place, ());
    let results = with(|k| {
        k.builder
            .if_regions(condition.ssa(), then, otherwise)
            .to_vec()
    });
    let results: (G, V) = if then_ends || otherwise_ends {
        Vars::rebuild(&mut results.into_iter())
    } else {
        // Nothing gets past the branch; what stands behind it has values that are never computed.
        zero()
    };
    results.1.name_all(&mut names.iter());
    results
}

/// `while` and `loop`: the body gets the variables that it changes and gives their next values.
pub fn loop_<V: Vars>(place: Place4, names: &[&str], vars: V, body: impl FnOnce(V) -> V) -> V {
    let (init, types) = (values_of(&vars), types_of::<V>());
    let params = with(|k| k.builder.open_region(&types));
    let next = values_of(&body(named(params, names)));
    at(place, ());
    let results = with(|k| {
        k.builder.yield_(&next);
        let body = k.builder.close_region();
        let init = Values::from_slice(&init);
        k.builder.push(InstKind::Loop { init, body }, &types)
    });
    named(results.to_vec(), names)
}

/// The beginning of `while`: leaves the loop unless the condition holds.
pub fn while_<V: Vars>(condition: Val<bool>, place: Place4, vars: V) {
    if_(
        condition,
        place,
        &[],
        (),
        |()| ((), ()),
        |()| (break_(place, vars), ()),
    );
}

/// What a `for` counts over.
pub struct Range<T: Integer> {
    lower: Val<T>,
    upper: Val<T>,
    is_closed: bool,
    is_reversed: bool,
    step: Option<Val<T>>,
    one: T,
}

/// `lower..upper`; `one` is that of the type.
pub fn range<T: Integer>(lower: Val<T>, upper: Val<T>, one: impl FnOnce() -> T) -> Range<T> {
    Range {
        lower,
        upper,
        is_closed: false,
        is_reversed: false,
        step: None,
        one: one(),
    }
}

impl<T: Integer> Range<T> {
    /// `lower..=upper`.
    pub fn closed(self) -> Range<T> {
        Range {
            is_closed: true,
            ..self
        }
    }

    /// `.rev()`.
    pub fn reversed(self) -> Range<T> {
        Range {
            is_reversed: true,
            ..self
        }
    }

    /// `.step_by(step)`.
    pub fn step_by(self, step: Val<T>) -> Range<T> {
        Range {
            step: Some(step),
            ..self
        }
    }

    /// The same up to a bound that is left out, if that is a number of the type: the last number is a
    /// constant, and not the greatest.
    fn half_open(self, place: Place4) -> Range<T> {
        let known = with(|k| k.known(self.upper.ssa()));
        let Some(last) = known.filter(|_| self.is_closed) else {
            return self;
        };
        let unused = 64 - last.scalar.bits() + u32::from(last.scalar.is_signed_integer());
        let greatest = u64::MAX >> unused;
        if last.bits == greatest {
            return self;
        }
        let one = lit(self.one, place);
        Range {
            upper: self.upper + one,
            is_closed: false,
            ..self
        }
    }
}

/// `for` over a range; `index` is the name of what counts.
pub fn for_<T: Integer, V: Vars>(
    range: Range<T>,
    place: Place4,
    index: &str,
    names: &[&str],
    vars: V,
    body: impl FnOnce(Val<T>, V) -> V,
) -> V {
    let range = range.half_open(place);
    let Range { lower, upper, .. } = range;
    let step = range.step.unwrap_or_else(|| lit(range.one, place));
    with(|k| {
        if k.known(step.ssa()).is_some_and(|step| step.bits == 0) {
            k.refuse("a step of 0 gets nowhere: count by at least 1");
        }
    });
    if range.is_closed {
        // As many iterations as there are numbers, in 64 bits, where that is a number: those of 64 bits that
        // are too many would never come to an end.
        let distance = cast::<u64>(upper - lower) & mask::<T>(place);
        let iterations = add_sat(distance, lit(1, place));
        let iterations = select(lit(0, place), iterations, le((lower, upper)));
        let step = cast::<u64>(step);
        return count(
            (lit(0, place), iterations, step),
            place,
            ("", names),
            vars,
            |iteration, vars| {
                let passed = cast::<T>(iteration);
                let at = match range.is_reversed {
                    true => upper - passed,
                    false => lower + passed,
                };
                body(at.name(index), vars)
            },
        );
    }
    if range.is_reversed {
        // upper - 1 - (i - lower) for each i, in integers that wrap.
        let ends = lower + upper - lit(range.one, place);
        let bounds = (lower, upper, step);
        return count(bounds, place, ("", names), vars, |i, vars| {
            body((ends - i).name(index), vars)
        });
    }
    count((lower, upper, step), place, (index, names), vars, body)
}

/// As many iterations as values are taken one after the other.
pub fn iterations(count: usize, place: Place4) -> Range<u32> {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    range(lit(0, place), lit(count, place), || 1)
}

/// The value of an iteration of `for x in [a, b, c]`.
pub fn nth<V: Vars, const N: usize>(values: [V; N], iteration: Val<u32>) -> V {
    let mut columns: Vec<Vec<Value>> = values.iter().map(values_of).collect();
    let mut chosen = columns.pop().unwrap_or_default();
    for (number, before) in (0u32..).zip(columns).collect::<Vec<_>>().into_iter().rev() {
        let is_it = with(|k| {
            let number = k.builder.const_u32(number);
            k.builder.eq(iteration.ssa(), number)
        });
        chosen = either(is_it, before, chosen);
    }
    V::rebuild(&mut chosen.into_iter())
}

/// The first values where a condition holds, the others elsewhere.
fn either(condition: Value, first: Vec<Value>, others: Vec<Value>) -> Vec<Value> {
    let chosen = first.into_iter().zip(others).map(|(first, other)| {
        with(|k| match k.builder.ty(first) {
            Type::Scalar(_) | Type::Vector(..) => k.builder.select(other, first, condition),
            Type::Matrix { .. } | Type::SimdgroupMatrix { .. } | Type::Event => {
                let [first, other] = [first, other].map(|value| {
                    k.builder.open_region(&[]);
                    k.builder.yield_(&[value]);
                    k.builder.close_region()
                });
                k.builder.if_regions(condition, first, other)[0]
            }
        })
    });
    chosen.collect()
}

/// The value of an iteration of `for x in TABLE`.
pub fn entry<T: Constant>(table: ConstantTable<T>, iteration: Val<u32>) -> Val<T> {
    read(part(table, iteration))
}

/// The bits that an integer has, of 64.
fn mask<T: Integer>(place: Place4) -> Val<u64> {
    lit(
        u64::MAX >> (64 - <T as ScalarLiteral>::SCALAR.bits()),
        place,
    )
}

/// A loop of the kernel that counts.
fn count<T: Integer, V: Vars>(
    (lower, upper, step): (Val<T>, Val<T>, Val<T>),
    place: Place4,
    (index, names): (&str, &[&str]),
    vars: V,
    body: impl FnOnce(Val<T>, V) -> V,
) -> V {
    let (init, types) = (values_of(&vars), types_of::<V>());
    let mut inside = vec![T::ty()];
    inside.extend(&types);
    let mut params = with(|k| k.builder.open_region(&inside));
    let carried = params.split_off(1);
    with(|k| k.builder.name(params[0], index));
    let next = values_of(&body(Val::of(params[0]), named(carried, names)));
    at(place, ());
    let results = with(|k| {
        k.builder.yield_(&next);
        let body = k.builder.close_region();
        let init = Values::from_slice(&init);
        let (lower, upper, step) = (lower.ssa(), upper.ssa(), step.ssa());
        k.builder.push(
            InstKind::For {
                lower,
                upper,
                step,
                init,
                body,
            },
            &types,
        )
    });
    named(results.to_vec(), names)
}

/// What stands where control does not come: its values are never used.
pub fn never<V: Vars>() -> V {
    if !with(|k| k.builder.terminated()) {
        return zero();
    }
    V::rebuild(&mut std::iter::repeat(Value(u32::MAX)))
}

/// Leaves the innermost loop with these values of the variables that it changes.
pub fn break_<V: Vars>(place: Place4, vars: V) {
    at(place, ());
    let mut values = Vec::new();
    vars.values(&mut values);
    with(|k| k.builder.break_(&values));
}

/// Begins the next iteration of the innermost loop with these values.
pub fn continue_<V: Vars>(place: Place4, vars: V) {
    at(place, ());
    let mut values = Vec::new();
    vars.values(&mut values);
    with(|k| k.builder.continue_(&values));
}
