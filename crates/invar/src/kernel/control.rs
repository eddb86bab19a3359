//! Branches and loops, with the variables that they change as values that they carry.

use invar_ir::{InstKind, Region, Type, Value, Values};

use super::data::{Integer, Val};
use super::define::{Place4, at, break_, with};
use super::value::{Vars, lit, zero};

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
        // Nothing gets past the branch; what stands behind it has values that nobody computes.
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
