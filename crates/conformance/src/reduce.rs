//! Makes a failing case small: drops instructions and regions, puts constants in the place of
//! results, shrinks the grid and the buffers, as long as the case still fails in the same way.
//!
//! Delta debugging (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input",
//! 2002), on the structured instructions: every step leaves a module that verifies, races with
//! nothing and obeys R4, so what is left shows an error of the target and nothing else.

use invar_interp::Grid;
use invar_ir::{Const, Inst, InstKind, Kernel, Module, ParamKind, Region, Scalar, Type, Value};

use crate::case::{Case, Data};
use crate::compare::{Trial, compare_case, unpromised, verified};
use crate::target::Target;

/// The most runs that a reduction takes.
const MAX_RUNS: u32 = 1500;

/// A smaller case that fails as `trial` says, and how it fails.
pub fn reduce(case: &Case, trial: &Trial, target: &mut Target<'_>) -> (Case, Trial) {
    let mut reducer = Reducer {
        best: case.clone(),
        trial: trial.clone(),
        target,
        runs: 0,
    };
    loop {
        let before = reducer.best.clone();
        reducer.dispatch();
        reducer.instructions();
        reducer.regions();
        reducer.results();
        reducer.declarations();
        reducer.data();
        if reducer.best == before || reducer.runs >= MAX_RUNS {
            break;
        }
    }
    (reducer.best, reducer.trial)
}

struct Reducer<'t, 'f> {
    best: Case,
    trial: Trial,
    target: &'t mut Target<'f>,
    runs: u32,
}

impl Reducer<'_, '_> {
    /// Takes a case in the place of the best one if it fails likewise.
    fn attempt(&mut self, case: Case) -> bool {
        if self.runs >= MAX_RUNS || case == self.best {
            return false;
        }
        let mut case = case;
        for kernel in &mut case.module.kernels {
            kernel.renumber();
        }
        // Cheap first: most candidates do not verify.
        if verified(&case).is_err() {
            return false;
        }
        self.runs += 1;
        let trial = compare_case(&case, self.target);
        if !trial.is_like(&self.trial) || unpromised(&case).is_some() {
            return false;
        }
        self.best = case;
        self.trial = trial;
        true
    }

    // ---- the dispatch ----

    fn dispatch(&mut self) {
        // In threads every size is reachable.
        if let Grid::Threadgroups(groups) = self.best.dispatch.grid {
            let threadgroup = self.best.dispatch.threadgroup;
            let mut case = self.best.clone();
            case.dispatch.grid = Grid::Threads(std::array::from_fn(|d| groups[d] * threadgroup[d]));
            self.attempt(case);
        }
        for d in 0..3 {
            for smaller in [
                |n: u32| n.min(1),
                |n: u32| n / 2,
                |n: u32| n.saturating_sub(1),
            ] {
                loop {
                    let mut case = self.best.clone();
                    let (Grid::Threads(n) | Grid::Threadgroups(n)) = &mut case.dispatch.grid;
                    n[d] = smaller(n[d]).max(1);
                    if !self.attempt(case) {
                        break;
                    }
                }
                loop {
                    let mut case = self.best.clone();
                    let size = &mut case.dispatch.threadgroup[d];
                    *size = smaller(*size).max(1);
                    let size = case.dispatch.threadgroup;
                    let kernel = &mut case.module.kernels[0];
                    kernel.threadgroup_size = kernel.threadgroup_size.map(|_| size);
                    if !self.attempt(case) {
                        break;
                    }
                }
            }
        }
    }

    // ---- instructions ----

    /// Drops runs of instructions without results that something needs, long runs first.
    fn instructions(&mut self) {
        let mut chunk = count(self.best.kernel()).max(1);
        loop {
            let mut start = 0;
            while start < count(self.best.kernel()) {
                let mut case = self.best.clone();
                let kernel = &mut case.module.kernels[0];
                drop_range(kernel, start, start + chunk);
                drop_unused(kernel);
                if !self.attempt(case) {
                    start += chunk;
                }
            }
            if chunk == 1 {
                break;
            }
            chunk /= 2;
        }
    }

    /// Puts one side of an `if`, or one iteration of a loop, in the place of the whole.
    fn regions(&mut self) {
        let mut at = 0;
        while at < count(self.best.kernel()) {
            let mut done = false;
            for side in 0..2 {
                let mut case = self.best.clone();
                if flatten(&mut case.module.kernels[0], at, side) && self.attempt(case) {
                    done = true;
                    break;
                }
            }
            if !done {
                at += 1;
            }
        }
    }

    /// Puts a constant, or an operand of the same type, in the place of a result.
    fn results(&mut self) {
        let mut at = 0;
        while at < count(self.best.kernel()) {
            for choice in 0..6 {
                let mut case = self.best.clone();
                let kernel = &mut case.module.kernels[0];
                if replace_result(kernel, at, choice) {
                    drop_unused(kernel);
                    if self.attempt(case) {
                        break;
                    }
                }
            }
            at += 1;
        }
    }

    // ---- declarations and data ----

    /// Drops parameters, structs and constants that nothing names, and the required sizes.
    fn declarations(&mut self) {
        for index in (0..self.best.kernel().params.len()).rev() {
            let mut case = self.best.clone();
            if drop_parameter(&mut case, index) {
                self.attempt(case);
            }
        }
        for index in (0..self.best.module.constants.len()).rev() {
            let mut case = self.best.clone();
            if drop_constant(&mut case.module, index) {
                self.attempt(case);
            }
        }
        while !self.best.module.structs.is_empty() {
            let mut case = self.best.clone();
            case.module.structs.pop();
            if !self.attempt(case) {
                break;
            }
        }
        while let Some(last) = self.best.module.function_constants.last() {
            let name = last.name.clone();
            let mut case = self.best.clone();
            case.module.function_constants.pop();
            case.constants
                .retain(|(key, _)| *key != invar_ir::ConstantKey::Name(name.clone()));
            if !self.attempt(case) {
                break;
            }
        }
        for change in [
            |k: &mut Kernel| k.simdgroup_size = None,
            |k: &mut Kernel| k.threadgroup_size = None,
            |k: &mut Kernel| k.float_mode = invar_ir::FloatMode::Contract,
        ] {
            let mut case = self.best.clone();
            change(&mut case.module.kernels[0]);
            self.attempt(case);
        }
        self.clean_names();
    }

    /// Unnamed values print shorter.
    fn clean_names(&mut self) {
        let mut case = self.best.clone();
        let kernel = &mut case.module.kernels[0];
        let params: Vec<Value> = kernel
            .params
            .iter()
            .filter_map(|p| match p.kind {
                ParamKind::Scalar { value } => Some(value),
                ParamKind::Buffer { .. }
                | ParamKind::Constant { .. }
                | ParamKind::Threadgroup { .. }
                | ParamKind::Texture(_)
                | ParamKind::Sampler => None,
            })
            .collect();
        for (i, info) in kernel.values.iter_mut().enumerate() {
            if !params.contains(&Value(i as u32)) {
                info.name = None;
            }
        }
        self.attempt(case);
    }

    fn data(&mut self) {
        for index in 0..self.best.data.len() {
            for smaller in [
                |_: u64| 0,
                |_: u64| 1,
                |n: u64| n / 2,
                |n: u64| n.saturating_sub(1),
            ] {
                loop {
                    let mut case = self.best.clone();
                    let data = &mut case.data[index];
                    match data {
                        Data::Random { count, .. }
                        | Data::Zeros(count)
                        | Data::Iota(count)
                        | Data::Length(count) => *count = smaller(*count).min(*count),
                        Data::List(_)
                        | Data::Scalar(_)
                        | Data::Texture { .. }
                        | Data::Sampler(_) => break,
                    }
                    if !self.attempt(case) {
                        break;
                    }
                }
            }
            let count = match self.best.data[index] {
                Data::Random { count, .. } => count,
                Data::Zeros(_)
                | Data::Iota(_)
                | Data::Length(_)
                | Data::List(_)
                | Data::Scalar(_)
                | Data::Texture { .. }
                | Data::Sampler(_) => continue,
            };
            for data in [Data::Zeros(count), Data::Iota(count)] {
                let mut case = self.best.clone();
                case.data[index] = data;
                if self.attempt(case) {
                    break;
                }
            }
        }
    }
}

/// Instructions of a kernel, those of regions included.
fn count(kernel: &Kernel) -> usize {
    let mut count = 0;
    kernel.for_each_inst(&mut |_| count += 1);
    count
}

/// Calls `f` with each instruction's number, in the order of the text; those for which it says false
/// go, with all that is in them. Terminators stay.
fn retain(region: &mut Region, next: &mut usize, f: &mut dyn FnMut(usize, &mut Inst) -> bool) {
    region.insts.retain_mut(|inst| {
        let number = *next;
        *next += 1;
        let keep = f(number, inst) || inst.kind.is_terminator();
        let mut inner = *next;
        for region in inst.kind.regions_mut() {
            retain(region, &mut inner, f);
        }
        *next = inner;
        keep
    });
}

/// Which values something uses.
fn used(kernel: &Kernel) -> Vec<bool> {
    let mut used = vec![false; kernel.values.len()];
    kernel.for_each_inst(&mut |inst| {
        inst.kind.for_each_use(|v| used[v.0 as usize] = true);
    });
    used
}

/// Whether something that is used is defined in it.
fn is_needed(inst: &Inst, used: &[bool]) -> bool {
    inst.results.iter().any(|v| used[v.0 as usize])
}

/// Drops instructions `start..end` whose results nothing uses.
fn drop_range(kernel: &mut Kernel, start: usize, end: usize) {
    let used = used(kernel);
    let mut next = 0;
    retain(&mut kernel.body, &mut next, &mut |number, inst| {
        !(start..end).contains(&number) || is_needed(inst, &used)
    });
}

/// Drops what only computes a value that nothing uses, until nothing is left of it.
fn drop_unused(kernel: &mut Kernel) {
    loop {
        let used = used(kernel);
        let mut dropped = false;
        let mut next = 0;
        retain(&mut kernel.body, &mut next, &mut |_, inst| {
            let drop = inst.kind.is_speculatable() && !is_needed(inst, &used);
            dropped |= drop;
            !drop
        });
        if !dropped {
            return;
        }
    }
}

/// Replaces instruction `at`, an `if` or a loop, by what its region `side` does once. False if it is
/// none, or leaves in another way than by `yield`.
fn flatten(kernel: &mut Kernel, at: usize, side: usize) -> bool {
    let mut substitutions: Vec<(Value, Value)> = Vec::new();
    let done = edit(&mut kernel.body, &mut 0, at, &mut |insts, i| {
        let inst = &insts[i];
        let (region, params): (&Region, Vec<Value>) = match &inst.kind {
            InstKind::If {
                then, otherwise, ..
            } => (if side == 0 { then } else { otherwise }, Vec::new()),
            InstKind::For {
                lower, init, body, ..
            } if side == 0 => {
                let given = std::iter::once(*lower).chain(init.iter().copied());
                (body, given.collect())
            }
            InstKind::Loop { init, body } if side == 0 => (body, init.to_vec()),
            _other => return false,
        };
        let Some(InstKind::Yield(values)) = region.insts.last().map(|last| &last.kind) else {
            return false;
        };
        substitutions.extend(region.params.iter().copied().zip(params));
        substitutions.extend(inst.results.iter().copied().zip(values.iter().copied()));
        let mut inner = region.insts.clone();
        inner.pop();
        insts.splice(i..=i, inner);
        true
    });
    substitute(kernel, &substitutions);
    done
}

/// Uses the second value of each pair where the first was used.
fn substitute(kernel: &mut Kernel, pairs: &[(Value, Value)]) {
    fn region(r: &mut Region, f: &dyn Fn(&mut Value)) {
        for inst in &mut r.insts {
            inst.kind.for_each_use_mut(f);
            for inner in inst.kind.regions_mut() {
                region(inner, f);
            }
        }
    }
    region(&mut kernel.body, &|v| {
        // A value may stand for another that is replaced too.
        for _ in 0..=pairs.len() {
            match pairs.iter().find(|(old, _)| old == v) {
                Some((_, new)) => *v = *new,
                None => return,
            }
        }
    });
}

/// Calls `f` with the list that holds instruction `at` and its place there.
fn edit(
    region: &mut Region,
    next: &mut usize,
    at: usize,
    f: &mut dyn FnMut(&mut Vec<Inst>, usize) -> bool,
) -> bool {
    for i in 0..region.insts.len() {
        if *next == at {
            *next += 1;
            return f(&mut region.insts, i);
        }
        *next += 1;
        for inner in region.insts[i].kind.regions_mut() {
            if *next <= at && edit(inner, next, at, f) {
                return true;
            }
        }
    }
    false
}

/// Puts something simpler in the place of the one result of instruction `at`: a constant 0, 1 or
/// (choice 2) -1, or an operand of the same type.
fn replace_result(kernel: &mut Kernel, at: usize, choice: usize) -> bool {
    let types: Vec<Type> = kernel.values.iter().map(|v| v.ty).collect();
    let mut substitutions = Vec::new();
    let done = edit(&mut kernel.body, &mut 0, at, &mut |insts, i| {
        let inst = &mut insts[i];
        let &[result] = &inst.results[..] else {
            return false;
        };
        let ty = types[result.0 as usize];
        if choice >= 3 {
            if inst.kind.has_regions() {
                return false;
            }
            let mut operands = Vec::new();
            inst.kind.for_each_use(|v| operands.push(v));
            operands.retain(|v| types[v.0 as usize] == ty);
            let Some(operand) = operands.get(choice - 3) else {
                return false;
            };
            substitutions.push((result, *operand));
            return true;
        }
        if matches!(inst.kind, InstKind::Const(_)) && choice > 0 {
            return false;
        }
        match ty {
            Type::Scalar(scalar) => {
                inst.kind = InstKind::Const(simple(scalar, choice));
                true
            }
            Type::Vector(..) | Type::Matrix { .. } | Type::SimdgroupMatrix { .. } | Type::Event => {
                false
            }
        }
    });
    substitute(kernel, &substitutions);
    done
}

/// 0, 1, or all ones.
fn simple(scalar: Scalar, choice: usize) -> Const {
    let mask = u64::MAX >> (64 - scalar.bits());
    let one = match scalar {
        Scalar::F16 => 0x3c00,
        Scalar::BF16 => 0x3f80,
        Scalar::F32 => 0x3f80_0000,
        Scalar::F64 => 0x3ff0_0000_0000_0000,
        Scalar::Bool
        | Scalar::I8
        | Scalar::I16
        | Scalar::I32
        | Scalar::I64
        | Scalar::U8
        | Scalar::U16
        | Scalar::U32
        | Scalar::U64 => 1,
    };
    let bits = match choice {
        0 => 0,
        1 => one,
        _all_ones if scalar.is_float() => one,
        _all_ones => mask,
    };
    Const { scalar, bits }
}

/// Drops a parameter that nothing names.
fn drop_parameter(case: &mut Case, index: usize) -> bool {
    let kernel = &mut case.module.kernels[0];
    // Requirements name parameters by their places.
    let mut named = !kernel.requires.is_empty();
    if let ParamKind::Scalar { value } = kernel.params[index].kind {
        named |= used(kernel)[value.0 as usize];
    }
    let place = invar_ir::Memory::Param(index as u32);
    rename_memory(&mut kernel.body, &mut |memory| named |= *memory == place);
    if named {
        return false;
    }
    rename_memory(&mut kernel.body, &mut |memory| {
        if let invar_ir::Memory::Param(i) = memory
            && *i > index as u32
        {
            *i -= 1;
        }
    });
    kernel.params.remove(index);
    case.data.remove(index);
    true
}

/// Drops a program-scope constant that nothing names.
fn drop_constant(module: &mut Module, index: usize) -> bool {
    let body = &mut module.kernels[0].body;
    let place = invar_ir::Memory::Constant(index as u32);
    let mut named = false;
    rename_memory(body, &mut |memory| named |= *memory == place);
    if named {
        return false;
    }
    rename_memory(body, &mut |memory| {
        if let invar_ir::Memory::Constant(i) = memory
            && *i > index as u32
        {
            *i -= 1;
        }
    });
    module.constants.remove(index);
    true
}

fn rename_memory(region: &mut Region, f: &mut dyn FnMut(&mut invar_ir::Memory)) {
    for inst in &mut region.insts {
        inst.kind.for_each_memory_mut(&mut *f);
        for inner in inst.kind.regions_mut() {
            rename_memory(inner, f);
        }
    }
}
