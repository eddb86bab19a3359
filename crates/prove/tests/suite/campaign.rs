//! Random kernels of the shapes that the prover knows: those that are proved run without a finding, in launches within
//! the conditions and at their edge.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use invar_interp::{Arg, CheckOptions, Dispatch, Grid, check};
use invar_ir::{Const, ConstantKey, Dim, ElementType, Kernel, ParamKind, Verified, text, verify};
use invar_prove::condition::{Condition, Number, Term};
use invar_prove::launch::Launch;
use invar_prove::{Options, Report, Verdict, prove};
use invar_texture::{PixelFormat, TextureShape};

use crate::shapes::{Factor, Made, made};
use crate::solver::Random;
use crate::soundness::{counts, from_environment};

/// The most elements of a buffer, or texels of a texture in a direction.
const MOST: i128 = 1 << 12;

/// All that a launch of a kernel has to fulfil.
struct Conditions {
    all: Vec<Condition>,
    flat: [bool; 3],
}

impl Conditions {
    fn of(made: &Made, kernel: &Kernel, report: &Report) -> Conditions {
        let place = |name: &str| kernel.params.iter().position(|p| *p.name == *name);
        let number = |factor: &Factor| match factor {
            Factor::GridX => Number::Grid(Dim::X),
            Factor::GridY => Number::Grid(Dim::Y),
            Factor::GroupsX => Number::Groups(Dim::X),
            Factor::N => Number::Argument(place("n").expect("it is spoken of")),
            Factor::M => Number::Argument(place("m").expect("it is spoken of")),
        };
        let required = made.rooms.iter().map(|(buffer, (factor, numbers))| {
            let term = Term::of(i128::from(*factor), numbers.iter().map(number));
            Condition::at_most(term, Number::Length(place(buffer).expect("a buffer")))
        });
        let mut all: Vec<Condition> = required.collect();
        all.extend(report.conditions.iter().cloned());
        let is_flat = |d: Dim| report.flat_dimensions.contains(&d.name());
        Conditions {
            all,
            flat: Dim::ALL.map(is_flat),
        }
    }

    fn hold(&self, launch: &Launch) -> bool {
        let holds = |c: &Condition| c.holds(launch) == Some(true);
        self.all.iter().all(holds)
    }

    /// Makes the numbers of a launch as large as the conditions ask, and no larger.
    fn raise(&self, launch: &mut Launch) {
        for condition in &self.all {
            match condition {
                Condition::AtMost(term, bound) => {
                    let [number] = bound.numbers[..] else {
                        continue;
                    };
                    let Some(product) = value(term, launch) else {
                        continue;
                    };
                    let needed = (product + bound.factor - 1) / bound.factor;
                    if number.of(launch).is_some_and(|n| n < needed) {
                        set(launch, number, needed);
                    }
                }
                Condition::More(_, _, number) | Condition::Sum(_, _, number) => {
                    if let Some(needed) = condition.needs(launch)
                        && number.of(launch).is_some_and(|n| n < needed)
                    {
                        set(launch, *number, needed);
                    }
                }
                Condition::Below(number, bound) => {
                    if number.of(launch).is_some_and(|n| n > *bound) {
                        set(launch, *number, *bound);
                    }
                }
                // What is drawn is small.
                Condition::Together(..) => {}
                Condition::Multiple(number, of) => {
                    if let Some(n) = number.of(launch) {
                        set(launch, *number, (n + of - 1) / of * of);
                    }
                }
            }
        }
    }
}

/// What a term is in a launch, if it is known there and representable.
pub(crate) fn value(term: &Term, launch: &Launch) -> Option<i128> {
    let mut product = term.factor;
    for number in &term.numbers {
        product = product.checked_mul(number.of(launch)?)?;
    }
    Some(product)
}

fn set(launch: &mut Launch, number: Number, to: i128) {
    match number {
        Number::Argument(i) => launch.numbers[i] = Some(to),
        Number::Constant(i) => launch.constants[i] = Some(to),
        Number::Grid(d) if to >= 1 => launch.grid[d as usize] = Some(to),
        Number::Grid(_) | Number::Groups(_) | Number::Threadgroup(_) | Number::Field(..) => {}
        Number::Length(_) | Number::Texels(..) | Number::Levels(_) => number.set(launch, to),
    }
}

/// A number near the end of its type, or of what a condition leaves of it.
fn large(conditions: &Conditions, argument: usize, random: &mut Random) -> i128 {
    let bound = |c: &Condition| match c {
        Condition::Below(number, bound) if *number == Number::Argument(argument) => Some(*bound),
        _another => None,
    };
    let bound = conditions.all.iter().find_map(bound);
    let most = match random.below(4) {
        0 => i128::from(u32::MAX),
        1 => i32::MAX.into(),
        _bound => bound.unwrap_or(u32::MAX.into()),
    };
    most - random.below(4) as i128
}

/// A launch within the conditions whose buffers are as long as they have to be, and sometimes longer.
fn launch(
    (module, made): (&Verified, &Made),
    kernel: &Kernel,
    conditions: &Conditions,
    random: &mut Random,
) -> Option<Launch> {
    let mut launch = Launch {
        grid: [Some(1); 3],
        threadgroup: [Some(1); 3],
        ..Launch::default()
    };
    for d in 0..2 {
        let most = [24, 4][d];
        let size = match kernel.threadgroup_size {
            Some(size) => i128::from(size[d]),
            None => 1 + random.below(most) as i128,
        };
        launch.threadgroup[d] = Some(size);
        if !conditions.flat[d] {
            let near = [1, size - 1, size, size + 1, 2 * size, 2 * size + 1];
            launch.grid[d] = Some(match random.below(8) as usize {
                i @ 0..6 => near[i].max(1),
                _other => 1 + random.below(3 * size as u64) as i128,
            });
        }
    }
    let grid = launch.grid[0].unwrap_or(1);
    for (i, param) in kernel.params.iter().enumerate() {
        launch.numbers.push(match &param.kind {
            ParamKind::Scalar { .. } if made.large && random.below(2) == 0 => {
                Some(large(conditions, i, random))
            }
            ParamKind::Scalar { .. } => Some(match random.below(6) {
                0 => grid,
                1 => grid + 1,
                2 => grid - 1,
                3 => random.below(4) as i128,
                _other => random.below(20) as i128,
            }),
            ParamKind::Buffer { .. } => Some(match random.below(3) {
                0 => random.below(24) as i128,
                _short => 0,
            }),
            ParamKind::Texture(_) => {
                for d in [Dim::X, Dim::Y] {
                    launch.texels.insert((i, d), 1 + random.below(6) as i128);
                }
                None
            }
            ParamKind::Constant { .. } | ParamKind::Threadgroup { .. } | ParamKind::Sampler => None,
        });
    }
    for _ in &module.function_constants {
        launch.constants.push(Some(random.below(6) as i128));
    }
    for _ in 0..4 {
        if conditions.hold(&launch) {
            break;
        }
        conditions.raise(&mut launch);
    }
    let params = kernel.params.iter().zip(&launch.numbers);
    let lengths = params.filter(|(p, _)| !matches!(p.kind, ParamKind::Scalar { .. }));
    let passed = launch.numbers.iter().flatten();
    let is_passed = passed.copied().all(|n| (0..=u32::MAX.into()).contains(&n));
    let lengths = lengths.filter_map(|(_, number)| *number);
    let mut sizes = lengths.chain(launch.texels.values().copied());
    let is_small = is_passed && sizes.all(|n| (0..=MOST).contains(&n));
    let threads = launch.grid.iter().flatten().product::<i128>();
    (is_small && threads <= MOST && conditions.hold(&launch)).then_some(launch)
}

/// What a launch passes; `None` where an index has nothing to point to.
fn args(
    module: &Verified,
    kernel: &Kernel,
    made: &Made,
    launch: &Launch,
    random: &mut Random,
) -> Option<Vec<Arg<'static>>> {
    let length = |name: &str| {
        let place = kernel.params.iter().position(|p| *p.name == *name)?;
        launch.numbers[place]
    };
    let mut args = Vec::new();
    for (i, param) in kernel.params.iter().enumerate() {
        let number = launch.numbers[i].unwrap_or(0);
        args.push(match &param.kind {
            ParamKind::Scalar { .. } => Arg::scalar(number as u32),
            ParamKind::Texture(_) => {
                let texels = |d| launch.texels.get(&(i, d)).map(|n| *n as u32);
                let shape =
                    TextureShape::new(PixelFormat::R32Uint, texels(Dim::X)?, texels(Dim::Y)?);
                let shape = shape.ok()?;
                Arg::Texture(shape, Box::new(Arg::zeros(shape.size_bytes() as usize)))
            }
            ParamKind::Buffer { element, .. } => {
                let size = match element {
                    ElementType::Value(_) => 4,
                    element => element.extent(&module.structs)?.size_bytes,
                };
                let mut bytes = Vec::new();
                let to = made.indices.iter().find(|(index, _)| *index == *param.name);
                for _ in 0..number as u64 * size / 4 {
                    let word = match to {
                        Some((_, to)) => {
                            let below = length(to).filter(|n| *n > 0)? as u64;
                            if random.below(2) == 0 {
                                below - 1
                            } else {
                                random.below(below)
                            }
                        }
                        None if random.below(2) == 0 => random.below(20),
                        None => random.next(),
                    };
                    bytes.extend((word as u32).to_le_bytes());
                }
                Arg::OwnedBuffer(bytes)
            }
            ParamKind::Constant { .. } | ParamKind::Threadgroup { .. } | ParamKind::Sampler => {
                return None;
            }
        });
    }
    Some(args)
}

/// Whether a launch could be run; a finding fails the test.
fn assert_clean(
    module: &Verified,
    made: &Made,
    (launch, args): (&Launch, &[Arg<'_>]),
    report: &Report,
    seed: u64,
) -> bool {
    let three = |n: [Option<i128>; 3]| n.map(|n| n.unwrap_or(1) as u32);
    let dispatch = Dispatch {
        grid: Grid::Threads(three(launch.grid)),
        threadgroup: three(launch.threadgroup),
    };
    let mut options = CheckOptions::default();
    // Small launches end sooner, but for loops that never do.
    options.run.step_limit = 30_000;
    for (constant, value) in module.function_constants.iter().zip(&launch.constants) {
        let value = Const::from(value.unwrap_or(0) as u32);
        options
            .run
            .constants
            .push((ConstantKey::Name(constant.name.clone()), value));
    }
    let Ok(found) = check(module, "k", &dispatch, args, &options) else {
        return false;
    };
    let first = found.diagnostics.iter().find(|d| counts(d.rule));
    assert!(
        first.is_none(),
        "seed {seed}: proved for launches with {:?}, beside {}\n{launch:?}\n{}",
        report.texts,
        first.map_or(String::new(), ToString::to_string),
        made.text
    );
    true
}

/// How much came out.
#[derive(Default)]
struct Count {
    kernels: u64,
    proved: u64,
    launches: u64,
    refused: u64,
    proving: Duration,
    running: Duration,
    /// By phrase, in how many kernels it is and how many of them are proved.
    phrases: BTreeMap<&'static str, (u64, u64)>,
}

fn prove_and_run(seed: u64, launches: u64, count: &mut Count) {
    let options = Options {
        infer: true,
        contents: true,
        refute: false,
        problems: 120,
        pivots: 6_000,
    };
    let made = made(seed);
    let parsed = text::parse("random.inv", &made.text);
    let parsed = parsed.unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", made.text));
    // What is slipped in may be what no kernel may have, such as too large an index by a constant.
    let Ok(module) = verify(parsed) else {
        return;
    };
    count.kernels += 1;
    let started = Instant::now();
    let report = prove(&module, "k", &[], options).expect("it is there");
    count.proving += started.elapsed();
    let is_proved = report.verdict == Verdict::Proved;
    for phrase in &made.phrases {
        let of = count.phrases.entry(phrase).or_default();
        of.0 += 1;
        of.1 += u64::from(is_proved);
    }
    if !is_proved {
        return;
    }
    count.proved += 1;
    let started = Instant::now();
    let kernel = &module.kernels[0];
    let conditions = Conditions::of(&made, kernel, &report);
    let mut random = Random(seed);
    for _ in 0..launches {
        let clean = launch((&module, &made), kernel, &conditions, &mut random).and_then(|launch| {
            let args = args(&module, kernel, &made, &launch, &mut random)?;
            assert_clean(&module, &made, (&launch, &args), &report, seed).then_some(())
        });
        match clean {
            Some(()) => count.launches += 1,
            None => count.refused += 1,
        }
    }
    count.running += started.elapsed();
}

#[test]
#[expect(clippy::print_stdout, reason = "a test says how much it ran")]
fn no_proof_of_a_shape_is_beside_a_finding() {
    let count = from_environment("INVAR_PROVE_SHAPES", 200);
    let launches = from_environment("INVAR_PROVE_LAUNCHES", 12);
    let first = from_environment("INVAR_PROVE_FIRST", 0);
    let mut all = Count::default();
    for seed in first..first + count {
        prove_and_run(seed, launches, &mut all);
    }
    for (phrase, (kernels, proved)) in &all.phrases {
        println!("{phrase}: {proved} of {kernels} kernels with it are proved");
    }
    println!(
        "{} kernels: {} proved, {} launches within the conditions, no finding; {} could not be made; {} ms to prove \
         and {} ms to run",
        all.kernels,
        all.proved,
        all.launches,
        all.refused,
        all.proving.as_millis(),
        all.running.as_millis()
    );
    assert!(all.kernels * 10 > count * 9, "only {} kernels", all.kernels);
    assert!(
        all.proved * 3 > count,
        "only {} of {count} were proved",
        all.proved
    );
    assert!(
        all.launches > all.proved * launches / 2,
        "only {} launches of {} kernels were run",
        all.launches,
        all.proved
    );
}
