//! Branches and loops, with the variables that they change as values that they carry.

use invar_ir::{Const, InstKind, Region, Type, Value, Values};

use super::define::{Place4, at, break_, with};
use super::value::{Integer, Val, Vars, lit, type_of};

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
    with(|k| {
        // What a block gives beside its variables comes first and has no name.
        for (value, name) in values.iter().rev().zip(names.iter().rev()) {
            k.builder.name(*value, name);
        }
    });
    V::rebuild(&mut values.into_iter())
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

/// `if`: both sides get the variables that one of them changes, and give what the branch gives, the
/// last values of the variables with it. `names` are those of the variables.
pub fn if_<V: Vars, R: Vars>(
    condition: Val<bool>,
    place: Place4,
    names: &[&str],
    vars: V,
    then: impl FnOnce(V) -> R,
    otherwise: impl FnOnce(V) -> R,
) -> R {
    let (then, then_ends) = side(vars, then);
    let (otherwise, otherwise_ends) = side(vars, otherwise);
    at(place, ());
    if then_ends || otherwise_ends {
        let results = with(|k| {
            k.builder
                .if_regions(condition.value, then, otherwise)
                .to_vec()
        });
        return named(results, names);
    }
    // Nothing gets past the branch; what stands behind it has values that nobody computes.
    let dead = with(|k| {
        k.builder.if_regions(condition.value, then, otherwise);
        let types = types_of::<R>();
        let dead = types.iter().map(|ty| match ty {
            Type::Scalar(scalar) => k.builder.constant(Const {
                scalar: *scalar,
                bits: 0,
            }),
            Type::Vector(..) | Type::Matrix { .. } | Type::SimdgroupMatrix { .. } | Type::Event => {
                unreachable!("variables are scalars")
            }
        });
        dead.collect::<Vec<_>>()
    });
    R::rebuild(&mut dead.into_iter())
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
    if_(condition, place, &[], (), |()| (), |()| break_(place, vars));
}

/// `for` over `lower..upper` by `step`; `index` is the name of what counts.
#[expect(
    clippy::too_many_arguments,
    reason = "only the macro writes calls, from the parts of one loop"
)]
pub fn for_<T: Integer, V: Vars>(
    (lower, upper): (Val<T>, Val<T>),
    step: Option<Val<T>>,
    one: impl FnOnce() -> T,
    place: Place4,
    index: &str,
    names: &[&str],
    vars: V,
    body: impl FnOnce(Val<T>, V) -> V,
) -> V {
    let step = step.unwrap_or_else(|| lit(one(), place));
    let (init, types) = (values_of(&vars), types_of::<V>());
    let mut inside = vec![type_of::<T>()];
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
        let (lower, upper, step) = (lower.value, upper.value, step.value);
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
