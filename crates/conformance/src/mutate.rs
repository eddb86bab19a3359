//! Kernels of file tests with something changed in them: kernels as people write them, and nearly right.
//!
//! What a mutant does is no longer what somebody thought of: it may race, and then R4 promises no bytes. But
//! whatever it does, it stays inside of its buffers (B1 to B4, R2).

use invar_interp::case::bind;
use invar_interp::{Arg, Grid, Options};
use invar_ir::text::{cases, parse};
use invar_ir::{
    Const, InstKind, Module, Op, ParamKind, Region, Scalar, StructDef, Type, Value, verify,
};
use invar_texture::Sampler;

use crate::case::{Case, Data};
use crate::compare::{Trial, compare_case, unpromised};
use crate::random::Random;
use crate::target::Target;

/// The most elements of a buffer that a mutant gets: more would be long to read.
const MOST_ELEMENTS: u64 = 4096;
/// The most changes.
const CHANGES: usize = 3;

/// A changed case of one of these texts, which are `.inv` files with `; run:` lines; `None` where the change
/// leaves no valid kernel. A seed gives the same mutant of the same texts.
///
/// ```
/// let text = "kernel @k(%x: device read_write u32) {
///     %i = thread_position_in_grid x
///     %v = load %x[%i]
///     %w = add %v, %i
///     store %x[%i], %w
/// }
/// ; run: @k(x = iota(4)) grid(4) threadgroup(4) -> x == [0, 2, 4, 6]";
/// let mutants = (0..20).filter_map(|seed| invar_conformance::mutant(seed, &[text.to_string()]));
/// assert!(mutants.count() > 5);
/// ```
pub fn mutant(seed: u64, texts: &[String]) -> Option<Case> {
    let mut random = Random::new(seed);
    if texts.is_empty() {
        return None;
    }
    let text = &texts[random.below(texts.len())];
    let module = verify(parse("mutant", text).ok()?).ok()?;
    let runs = cases(text).ok()?;
    if runs.is_empty() {
        return None;
    }
    let run = &runs[random.below(runs.len())];
    let mut no_files = |name: &str, _: &_| Err(format!("no file `{name}`"));
    let bound = bind(&module, run, &Options::default(), &mut no_files).ok()?;
    let mut module = module.into_module();
    module
        .kernels
        .retain(|kernel| *kernel.name == *bound.kernel);
    let kernel = &module.kernels[0];
    let pairs = kernel.params.iter().zip(&bound.args);
    let data = pairs.map(|(param, arg)| data_of(&module.structs, &param.kind, arg));
    let data = data.collect::<Option<_>>()?;
    let mut case = Case {
        module,
        data,
        dispatch: bound.dispatch,
        constants: bound.options.constants,
    };
    for _ in 0..1 + random.below(CHANGES) {
        change(&mut case, &mut random);
    }
    let kernel = &mut case.module.kernels[0];
    kernel.renumber();
    // Beyond the edges is where it should go.
    kernel.allow_out_of_bounds_loads = true;
    kernel.allow_out_of_bounds_stores = true;
    verify(case.module.clone()).is_ok().then_some(case)
}

/// Runs a mutant on a target and on the reference machine, as [`crate::compare_case`], and judges what it
/// showed as [`judge_mutant`] does.
pub fn compare_mutant(case: &Case, target: &mut Target<'_>) -> Trial {
    judge_mutant(case, compare_case(case, target))
}

/// What it shows that a mutant showed this: nothing where R4 does not promise what it leaves, and something
/// that is not a fault was left.
pub fn judge_mutant(case: &Case, trial: Trial) -> Trial {
    match trial.is_failure() && unpromised(case).is_some() {
        true => Trial::Same,
        false => trial,
    }
}

/// What an argument is, in words of a directive.
fn data_of(structs: &[StructDef], kind: &ParamKind, arg: &Arg<'_>) -> Option<Data> {
    match (kind, arg) {
        (ParamKind::Sampler, Arg::Scalar(code)) => {
            let code = <[Const; 3]>::try_from(&code[..]).ok()?;
            let sampler = Sampler::from_code(code.map(|part| part.bits as u32))?;
            Some(Data::Sampler(sampler))
        }
        (_, Arg::Scalar(components)) => Some(Data::Scalar(components.clone())),
        (_, Arg::ThreadgroupLength(length)) => Some(Data::Length(*length)),
        (ParamKind::Buffer { element, .. } | ParamKind::Constant { element }, arg) => {
            let size = element.extent(structs)?.size_bytes;
            let count = arg.bytes().len() as u64 / size;
            if count > MOST_ELEMENTS {
                return None;
            }
            if arg.bytes().iter().all(|byte| *byte == 0) {
                return Some(Data::Zeros(count));
            }
            let locations = element.locations(structs);
            let scalars = arg.bytes().chunks_exact(size as usize).flat_map(|bytes| {
                locations.iter().map(move |(offset, scalar)| {
                    let mut word = [0; 8];
                    let width = scalar.size_bytes() as usize;
                    word[..width].copy_from_slice(&bytes[*offset as usize..][..width]);
                    let bits = u64::from_le_bytes(word);
                    let bits = if *scalar == Scalar::Bool {
                        u64::from(bits != 0)
                    } else {
                        bits
                    };
                    Const {
                        scalar: *scalar,
                        bits,
                    }
                })
            });
            Some(Data::List(scalars.collect()))
        }
        (
            ParamKind::Scalar { .. }
            | ParamKind::Threadgroup { .. }
            | ParamKind::Texture(_)
            | ParamKind::Sampler,
            _,
        ) => None,
    }
}

fn change(case: &mut Case, random: &mut Random) {
    match random.below(8) {
        0 => change_grid(case, random),
        1 => change_data(case, random),
        _ => change_instruction(&mut case.module, random),
    }
}

/// A number beside one, or far from it.
fn other_number(number: u64, random: &mut Random) -> u64 {
    match random.below(8) {
        0 | 1 => number.wrapping_add(1),
        2 | 3 => number.wrapping_sub(1),
        4 => number.wrapping_mul(2),
        5 => number.wrapping_neg(),
        6 => 1 << random.below(64),
        _ => random.below(40) as u64,
    }
}

fn other_constant(constant: &mut Const, random: &mut Random) {
    if constant.scalar.is_integer() {
        let mask = u64::MAX >> (64 - constant.scalar.bits());
        constant.bits = other_number(constant.bits, random) & mask;
    }
}

fn change_grid(case: &mut Case, random: &mut Random) {
    const SIZES: [[u32; 3]; 10] = [
        [8, 8, 1],
        [16, 4, 1],
        [16, 16, 1],
        [32, 1, 1],
        [32, 4, 1],
        [32, 8, 1],
        [64, 2, 1],
        [128, 1, 1],
        [128, 4, 1],
        [5, 3, 2],
    ];
    if random.one_in(2) && case.kernel().threadgroup_size.is_none() {
        let size = random.pick(&SIZES);
        // As many threads as before, in other threadgroups.
        if let Grid::Threadgroups(groups) = case.dispatch.grid {
            let old = case.dispatch.threadgroup;
            let threads = std::array::from_fn(|d| groups[d].saturating_mul(old[d]));
            case.dispatch.grid = Grid::Threads(threads);
        }
        case.dispatch.threadgroup = size;
    }
    let (Grid::Threads(n) | Grid::Threadgroups(n)) = &mut case.dispatch.grid;
    let dim = random.below(3);
    let more = 1 + random.below(9) as u32;
    n[dim] = match random.below(3) {
        0 => n[dim].saturating_sub(more).max(1),
        _ => n[dim] + more.min(n[dim]),
    };
}

fn change_data(case: &mut Case, random: &mut Random) {
    if case.data.is_empty() {
        return;
    }
    let at = random.below(case.data.len());
    let kind = &case.module.kernels[0].params[at].kind;
    let scalars = match kind {
        ParamKind::Buffer { element, .. } | ParamKind::Constant { element } => {
            element.locations(&case.module.structs).len().max(1)
        }
        ParamKind::Scalar { .. }
        | ParamKind::Threadgroup { .. }
        | ParamKind::Texture(_)
        | ParamKind::Sampler => 1,
    };
    let fewer = 1 + random.below(5);
    match &mut case.data[at] {
        Data::Random { count, .. } | Data::Zeros(count) | Data::Iota(count) => {
            *count = match random.below(3) {
                0 => *count + fewer as u64,
                1 => *count / 2,
                _ => count.saturating_sub(fewer as u64),
            };
        }
        Data::List(list) => {
            let elements = list.len() / scalars;
            let left = match random.below(2) {
                0 => elements / 2,
                _ => elements.saturating_sub(fewer),
            };
            list.truncate(left * scalars);
        }
        Data::Scalar(components) => {
            if !components.is_empty() {
                let component = random.below(components.len());
                other_constant(&mut components[component], random);
            }
        }
        // Its size is what it is.
        Data::Texture { .. } | Data::Sampler(_) => {}
        Data::Length(length) => *length = length.saturating_sub(fewer as u64),
    }
}

/// Changes one of the instructions that can be changed, counted in the order of the text.
fn change_instruction(module: &mut Module, random: &mut Random) {
    let kernel = &mut module.kernels[0];
    let mut count = 0;
    kernel.for_each_inst(&mut |_| count += 1);
    // What is drawn may have nothing to change.
    for _ in 0..10 {
        let wanted = random.below(count);
        let types: Vec<Type> = kernel.values.iter().map(|value| value.ty).collect();
        let mut body = std::mem::take(&mut kernel.body);
        let mut at = 0;
        let changed = in_region(&mut body, wanted, &mut at, &mut |kind| {
            change_kind(kind, &types, random)
        });
        kernel.body = body;
        if changed == Some(true) {
            return;
        }
    }
}

/// Does something to an instruction, by its number; `None` if there are not so many.
fn in_region(
    region: &mut Region,
    wanted: usize,
    at: &mut usize,
    change: &mut dyn FnMut(&mut InstKind) -> bool,
) -> Option<bool> {
    for inst in &mut region.insts {
        if *at == wanted {
            return Some(change(&mut inst.kind));
        }
        *at += 1;
        for inner in inst.kind.regions_mut() {
            if let Some(changed) = in_region(inner, wanted, at, change) {
                return Some(changed);
            }
        }
    }
    None
}

/// Changes a constant, an operation on integers, or one of the values that an instruction uses; says whether it
/// did.
fn change_kind(kind: &mut InstKind, types: &[Type], random: &mut Random) -> bool {
    const COMPARE: [Op; 6] = [Op::Lt, Op::Le, Op::Gt, Op::Ge, Op::Eq, Op::Ne];
    const COMPUTE: [Op; 5] = [Op::Add, Op::Sub, Op::Mul, Op::Min, Op::Max];
    match &mut *kind {
        InstKind::Const(constant) if constant.scalar.is_integer() => {
            other_constant(constant, random);
            return true;
        }
        InstKind::Op { op, args, .. } if random.one_in(2) => {
            let of_integers = types[args.first().map_or(0, |v| v.0 as usize)].is_integer_scalar();
            for list in [&COMPARE[..], &COMPUTE[..]] {
                if of_integers && list.contains(op) {
                    *op = random.pick(list);
                    return true;
                }
            }
        }
        _any_other_uses_values => {}
    }
    let mut uses = 0;
    kind.for_each_use(|_| uses += 1);
    let wanted = random.below(uses);
    let mut at = 0;
    let mut changed = false;
    kind.for_each_use_mut(|value| {
        if at == wanted {
            // Values close by are mostly in reach; where one is not the verifier says so.
            let ty = types[value.0 as usize];
            let alike = |v: &usize| types[*v] == ty && *v != value.0 as usize;
            let alike: Vec<usize> = (0..types.len()).filter(alike).collect();
            if !alike.is_empty() {
                *value = Value(random.pick(&alike) as u32);
                changed = true;
            }
        }
        at += 1;
    });
    changed
}

#[cfg(test)]
mod tests {
    use invar_ir::Kernel;

    use super::*;

    fn loads(kernel: &Kernel) -> usize {
        let mut count = 0;
        kernel.for_each_inst(&mut |inst| {
            count += usize::from(matches!(inst.kind, InstKind::Load(_)));
        });
        count
    }

    #[test]
    fn mutants_differ_and_keep_their_loads() {
        let text = "kernel @k(%x: device read u32, %y: device write u32, %n: u32) {
            %i = thread_position_in_grid x
            %two = const u32 2
            %inside = lt %i, %n
            if %inside {
                %j = mul %i, %two
                %v = load %x[%j]
                store %y[%i], %v
            }
        }
        ; run: @k(x = iota(8), y = zeros(4), n = 4) grid(4) threadgroup(4) -> y == [0, 2, 4, 6]";
        let texts = [text.to_string()];
        let all: Vec<Case> = (0..200).filter_map(|seed| mutant(seed, &texts)).collect();
        assert!(all.len() > 100, "{}", all.len());
        assert!(all.iter().all(|case| loads(case.kernel()) == 1));
        let distinct: std::collections::BTreeSet<String> =
            all.iter().map(Case::to_string).collect();
        assert!(distinct.len() > 30, "{}", distinct.len());
        assert_eq!(mutant(7, &texts), mutant(7, &texts));
    }
}
