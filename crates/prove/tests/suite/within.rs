//! Kernels of files that are proved: random launches within their conditions, at the edge of these as well, run
//! without a finding.

use std::path::{Path, PathBuf};

use invar_interp::case::bind;
use invar_interp::{CheckOptions, Options as RunOptions, check};
use invar_ir::text::case::files;
use invar_ir::{
    Diagnostic, Diagnostics, Dim, Dimension, ElementType, Kernel, Memory, ParamKind, Scalar, Type,
    Verified, text, verify,
};
use invar_prove::condition::{Condition, Number};
use invar_prove::launch::{Launch, Spelled, spelled};
use invar_prove::{Options, Report, Verdict, prove};

use crate::campaign::value;
use crate::solver::Random;
use crate::soundness::{counts, from_environment};

/// Few enough problems that all files are looked at in seconds.
const OPTIONS: Options = Options {
    infer: true,
    contents: true,
    refute: false,
    problems: 300,
    pivots: 60_000,
};
/// The most elements of a buffer, and threads of a grid.
const MOST: i128 = 1 << 12;

/// A number near what decides: 0, a size, or an end of its type.
fn number(random: &mut Random, sizes: &[i128], (least, most): (i128, i128)) -> i128 {
    let size = sizes[random.below(sizes.len() as u64) as usize];
    let near = random.below(3) as i128 - 1;
    let drawn = match random.below(16) {
        0 => least + random.below(3) as i128,
        1 => most - random.below(3) as i128,
        2 => -1 - random.below(20) as i128,
        3..6 => random.below(5) as i128,
        6..8 => random.below(70) as i128,
        8 => size * 4,
        _size => size + near,
    };
    drawn.clamp(least, most)
}

fn range(scalar: Scalar) -> (i128, i128) {
    let bits = scalar.bits();
    if scalar.is_signed_integer() {
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        (0, (1 << bits) - 1)
    }
}

fn set(launch: &mut Launch, number: Number, to: i128) {
    match number {
        Number::Argument(i) => launch.numbers[i] = Some(to),
        Number::Constant(i) => launch.constants[i] = Some(to),
        Number::Field(i, at) => drop(launch.fields.insert((i, at), to)),
        Number::Grid(_) | Number::Groups(_) | Number::Threadgroup(_) => {}
        Number::Length(_) | Number::Texels(..) | Number::Levels(_) => number.set(launch, to),
    }
}

/// Makes what a launch lacks as large as a condition asks, and what has too much as small.
fn mend(launch: &mut Launch, condition: &Condition, random: &mut Random) {
    match condition {
        Condition::AtMost(term, bound) => {
            let (Some(product), [room]) = (value(term, launch), &bound.numbers[..]) else {
                return;
            };
            let needed = (product + bound.factor - 1) / bound.factor;
            let longer = random.below(8) == 0;
            if room.of(launch).is_some_and(|n| n < needed) {
                set(launch, *room, needed + i128::from(longer));
            }
        }
        Condition::More(_, _, room) | Condition::Sum(_, _, room) => {
            let longer = i128::from(random.below(8) == 0);
            if let Some(needed) = condition.needs(launch)
                && room.of(launch).is_some_and(|n| n < needed)
            {
                set(launch, *room, needed + longer);
            }
        }
        Condition::Below(number, bound) => {
            if number.of(launch).is_some_and(|n| n > *bound) {
                set(launch, *number, *bound);
            }
        }
        Condition::Multiple(number, of) => {
            if let Some(n) = number.of(launch) {
                set(launch, *number, n - n % of);
            }
        }
        Condition::Together(..) => {}
    }
}

/// All fields of elements that conditions speak of.
fn fields(conditions: &[Condition]) -> Vec<Number> {
    let mut found = Vec::new();
    for condition in conditions {
        let all: Vec<Number> = match condition {
            Condition::AtMost(a, b) | Condition::Together(a, b, _) => {
                a.numbers.iter().chain(&b.numbers).copied().collect()
            }
            Condition::Sum(a, b, room) => {
                let both = a.numbers.iter().chain(&b.numbers);
                both.chain([room]).copied().collect()
            }
            Condition::More(a, _, room) => a.numbers.iter().chain([room]).copied().collect(),
            Condition::Below(one, _) | Condition::Multiple(one, _) => vec![*one],
        };
        found.extend(all.into_iter().filter(|n| matches!(n, Number::Field(..))));
    }
    found
}

/// A launch that fulfils the conditions of a report, if one comes out.
fn launch(
    module: &Verified,
    kernel: &Kernel,
    report: &Report,
    random: &mut Random,
) -> Option<Launch> {
    let mut launch = Launch {
        grid: [Some(1); 3],
        threadgroup: [Some(1); 3],
        ..Launch::default()
    };
    let mut sizes = vec![1];
    for d in Dim::ALL {
        let i = d as usize;
        let size = match kernel.threadgroup_size {
            Some(size) => i128::from(size[i]),
            None => 1 + random.below([24, 4, 3][i]) as i128,
        };
        launch.threadgroup[i] = Some(size);
        if !report.flat_dimensions.contains(&d.name()) {
            let near = [1, size - 1, size, size + 1, 2 * size, 2 * size + 1];
            launch.grid[i] = Some(match random.below(8) as usize {
                i @ 0..6 => near[i].max(1),
                _other => 1 + random.below(3 * size as u64) as i128,
            });
        }
        sizes.extend([size, launch.grid[i].unwrap_or(1)]);
        sizes.extend(launch.groups(i));
    }
    let threads = launch.grid.iter().flatten().product::<i128>();
    sizes.push(threads);
    for param in &kernel.params {
        let drawn = match &param.kind {
            ParamKind::Scalar { value } => match kernel.ty(*value) {
                Type::Scalar(scalar) if scalar.is_integer() => {
                    Some(number(random, &sizes, range(scalar)))
                }
                _float_or_several => None,
            },
            _object => None,
        };
        sizes.extend(drawn.filter(|n| (2..=200).contains(n)));
        launch.numbers.push(drawn);
    }
    for constant in &module.function_constants {
        let drawn = constant.scalar.is_integer();
        let drawn = drawn.then(|| number(random, &sizes, range(constant.scalar)));
        sizes.extend(drawn.filter(|n| (2..=200).contains(n)));
        launch.constants.push(drawn);
    }
    for (i, param) in kernel.params.iter().enumerate() {
        match &param.kind {
            ParamKind::Buffer { .. }
            | ParamKind::Constant { .. }
            | ParamKind::Threadgroup { .. } => {
                // What a kernel requires is not known here: any product of two sizes may do.
                let one = number(random, &sizes, (0, MOST));
                let other = number(random, &sizes, (1, 64));
                let length = if random.below(2) == 0 {
                    one
                } else {
                    one * other
                };
                launch.numbers[i] = Some(length.min(MOST));
            }
            ParamKind::Texture(ty) => {
                let mut texels = Dim::ALL.map(|_| number(random, &sizes, (1, 32)));
                if ty.dimension.is_cube() {
                    texels[1] = texels[0];
                    texels[2] *= 6;
                }
                if ty.dimension == Dimension::Cube {
                    texels[2] = 6;
                }
                let longest = texels[0].max(texels[1]).ilog2();
                for (d, texels) in Dim::ALL.into_iter().zip(texels) {
                    launch.texels.insert((i, d), texels);
                }
                let levels = 1 + random.below(u64::from(longest) + 1) as i128;
                launch.levels.insert(i, levels);
            }
            ParamKind::Scalar { .. } | ParamKind::Sampler => {}
        }
    }
    for field in fields(&report.conditions) {
        let drawn = number(random, &sizes, (0, 100));
        set(&mut launch, field, drawn);
    }
    for _ in 0..4 {
        for condition in &report.conditions {
            mend(&mut launch, condition, random);
        }
    }
    for (i, param) in kernel.params.iter().enumerate() {
        if let ParamKind::Buffer { element, .. } = &param.kind
            && let ElementType::Value(Type::Scalar(scalar)) = element
            && scalar.is_integer()
            && random.below(4) > 0
            && let Some(length @ 1..=MOST) = launch.numbers[i]
        {
            let all = 0..length as u64;
            let ascending = random.below(4) == 0;
            let mut all: Vec<i128> = all
                .map(|_| number(random, &sizes, range(*scalar)))
                .collect();
            if ascending {
                all.sort_unstable();
            }
            let all = (0..).zip(all).collect();
            launch.contents.insert(Memory::Param(i as u32), all);
        }
    }
    let holds = |c: &Condition| c.holds(&launch) == Some(true);
    let within = report.conditions.iter().all(holds);
    let small = launch.numbers.iter().enumerate().all(|(i, n)| {
        let is_object = !matches!(kernel.params[i].kind, ParamKind::Scalar { .. });
        !is_object || n.is_none_or(|n| (0..=4 * MOST).contains(&n))
    });
    (within && small && threads <= MOST).then_some(launch)
}

/// What the checkers report of a launch that a proof excludes.
fn run(
    module: &Verified,
    kernel: &Kernel,
    launch: &Spelled,
    random: &mut Random,
) -> Result<Vec<Diagnostic>, String> {
    let simdgroup_size = match (kernel.simdgroup_size, random.below(2)) {
        (None, 0) => Some([4, 8, 16, 64][random.below(4) as usize]),
        (None | Some(_), _) => None,
    };
    let kernel = &kernel.name;
    let said = |Diagnostics(all): Diagnostics| {
        let first = all.first().map(|d| d.message.clone());
        first.unwrap_or_default()
    };
    let list = |n: [u32; 3]| n.map(|n| n.to_string()).join(", ");
    let pairs = |pairs: &[(String, String)]| {
        let all: Vec<String> = pairs.iter().map(|(n, v)| format!("{n} = {v}")).collect();
        all.join(", ")
    };
    let mut line = format!("; run: @{kernel}({})", pairs(&launch.args));
    if !launch.constants.is_empty() {
        line += &format!(" const({})", pairs(&launch.constants));
    }
    let (grid, size) = (list(launch.grid), list(launch.threadgroup));
    line += &format!(" grid({grid}) threadgroup({size})");
    let cases = text::cases(&line).map_err(said)?;
    let mut no_files = |name: &str, _: &_| Err(format!("no file {name}"));
    // Launches whose loops go on for long are left out.
    let options = RunOptions {
        seed: random.below(4),
        simdgroup_size,
        step_limit: 30_000,
        threadgroup_memory_bytes: 1 << 20,
        ..RunOptions::default()
    };
    let bound = bind(module, &cases[0], &options, &mut no_files).map_err(said)?;
    let options = CheckOptions {
        run: bound.options,
        ..CheckOptions::default()
    };
    let found = check(module, kernel, &bound.dispatch, &bound.args, &options).map_err(said)?;
    let found = found.diagnostics.into_iter();
    Ok(found.filter(|d| counts(d.rule)).collect())
}

fn paths() -> Vec<PathBuf> {
    if let Ok(named) = std::env::var("INVAR_PROVE_FILES") {
        return named.split(':').map(PathBuf::from).collect();
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = [
        "tests/ir/prove",
        "tests/ir/conditions",
        "tests/ir/race",
        "tests/ir/textures",
        "examples",
    ];
    let all = folders
        .iter()
        .flat_map(|f| files(&root.join(f)).expect("its files"));
    all.collect()
}

#[test]
#[expect(clippy::print_stdout, reason = "a test says how much it ran")]
fn no_launch_within_the_conditions_of_a_kernel_of_a_file_is_reported() {
    let wanted = from_environment("INVAR_PROVE_LAUNCHES", 6);
    let first = from_environment("INVAR_PROVE_FIRST", 0);
    let says = std::env::var_os("INVAR_PROVE_FILES").is_some();
    let (mut proved, mut launches, mut without) = (0, 0, 0);
    for file in paths() {
        let source = std::fs::read_to_string(&file).expect("a file");
        let module = text::parse(&file.display().to_string(), &source);
        let module = match module.and_then(verify) {
            Ok(module) => module,
            Err(e) => {
                assert!(!says, "{e}");
                continue;
            }
        };
        let cases = text::cases(&source).expect("its directives");
        for kernel in &module.kernels {
            let report = prove(&module, &kernel.name, &cases, OPTIONS).expect("it is there");
            if says {
                println!("{}", report.in_words(&module, false));
            }
            if report.verdict != Verdict::Proved {
                continue;
            }
            proved += 1;
            let mut random = Random(first);
            let mut ran = 0;
            let mut why = String::new();
            for _ in 0..wanted * 20 {
                if ran == wanted {
                    break;
                }
                let Some(launch) = launch(&module, kernel, &report, &mut random) else {
                    continue;
                };
                let Some(launch) = spelled(&module, kernel, &launch) else {
                    continue;
                };
                match run(&module, kernel, &launch, &mut random) {
                    Ok(found) => {
                        ran += 1;
                        let (path, options) = (file.display(), launch.options(&kernel.name));
                        let report = report.in_words(&module, false);
                        let first = found.first();
                        assert!(first.is_none(), "{path}: {report}\n{options:?}\n{first:?}");
                    }
                    Err(e) => why = e,
                }
            }
            launches += ran;
            without += u64::from(ran == 0);
            if says || ran == 0 {
                println!(
                    "    {}: {ran} launches {}",
                    kernel.name,
                    if ran == 0 { &why } else { "" }
                );
            }
        }
    }
    println!(
        "{proved} kernels proved, {launches} launches within their conditions; none of {without}"
    );
    assert!(says || proved > 100, "only {proved} kernels were proved");
    assert!(
        says || without * 5 < proved,
        "{without} of {proved} were not run"
    );
}
