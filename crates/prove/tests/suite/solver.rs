//! The solver against trying all values.

use invar_ir::random::split_mix_64;
use invar_prove::certificate::check;
use invar_prove::linear::{Formula, Linear, Problem, Var};
use invar_prove::solve::{Answer, Limits, solve};

pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        split_mix_64(&mut self.0)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

const VARIABLES: Var = 4;
const LARGEST: i128 = 3;

fn form(random: &mut Random, products: &[Var]) -> Linear {
    let mut form = Linear::constant(random.below(13) as i128 - 6);
    for _ in 0..1 + random.below(3) {
        let all = u64::from(VARIABLES) + products.len() as u64;
        let var = random.below(all) as Var;
        let factor = random.below(7) as i128 - 3;
        form = form.plus(factor, &Linear::var(var)).expect("it is small");
    }
    form
}

fn formula(random: &mut Random, products: &[Var], depth: u32) -> Formula {
    if depth == 0 || random.below(2) == 0 {
        return Formula::at_least(form(random, products));
    }
    let parts: Vec<Formula> = (0..2 + random.below(2))
        .map(|_| formula(random, products, depth - 1))
        .collect();
    if random.below(2) == 0 {
        Formula::all(parts)
    } else {
        Formula::any(parts)
    }
}

/// Variables from 0 to 3, a few products of them, and random facts.
pub fn problem(seed: u64) -> Problem {
    let mut random = Random(seed);
    let mut problem = Problem::default();
    for var in 0..VARIABLES {
        problem.names.push(format!("v{var}"));
        let form = Linear::var(var);
        problem.facts.push(Formula::AtLeast(form.clone()));
        let upper = form.times(-1).and_then(|f| f.shifted(LARGEST));
        problem
            .facts
            .push(Formula::AtLeast(upper.expect("it is small")));
    }
    let mut products = Vec::new();
    for _ in 0..random.below(3) {
        let (a, b) = (random.below(4) as Var, random.below(4) as Var);
        let factors = vec![a.min(b), a.max(b)];
        if problem.products.of.contains_key(&factors) {
            continue;
        }
        let var = problem.names.len() as Var;
        problem.names.push(format!("v{a}*v{b}"));
        problem.products.of.insert(factors.clone(), var);
        problem.products.factors.insert(var, factors);
        products.push(var);
    }
    for _ in 0..2 + random.below(5) {
        let fact = formula(&mut random, &products, 2);
        problem.facts.push(fact);
    }
    problem
}

fn has_answer(problem: &Problem) -> bool {
    let each = (LARGEST + 1) as u64;
    (0..each.pow(VARIABLES)).any(|mut number| {
        let mut values: Vec<i128> = Vec::new();
        for _ in 0..VARIABLES {
            values.push((number % each) as i128);
            number /= each;
        }
        for var in VARIABLES..problem.names.len() as Var {
            let factors = &problem.products.factors[&var];
            values.push(factors.iter().map(|f| values[*f as usize]).product());
        }
        problem.is_answered_by(&values) == Some(true)
    })
}

#[test]
fn it_agrees_with_trying_all_values_and_its_proofs_hold() {
    let (mut refuted, mut answered, mut unknown) = (0, 0, 0);
    for seed in 0..4000 {
        let problem = problem(seed);
        let limits = Limits {
            nodes: 500,
            pivots: 20_000,
        };
        match solve(&problem, limits) {
            Answer::Refuted(proof) => {
                refuted += 1;
                if let Err(why) = check(&problem, &proof) {
                    panic!("seed {seed}: the proof does not hold: {why}");
                }
                assert!(!has_answer(&problem), "seed {seed}: it has an answer");
            }
            Answer::Values(values) => {
                answered += 1;
                assert_eq!(problem.is_answered_by(&values), Some(true), "seed {seed}");
            }
            Answer::Unknown => unknown += 1,
        }
    }
    assert!(
        refuted > 400 && answered > 400,
        "{refuted} refuted, {answered} answered"
    );
    assert!(unknown < 40, "{unknown} of 4000 were not decided");
}
