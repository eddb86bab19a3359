//! Rows: loops over memory that every thread makes equally often are written out, so that a thread has
//! many loads under way, and what one loop loads or computes again after another stays in registers.
//!
//! A loop is written out if its iterations are known when it is compiled, also where they begin at another
//! index in each thread: `for %j = %t to 4096 step 256` has 16 iterations in all 256 threads. It must load
//! from buffers, leave only by its end, and be small. The loads of all iterations come first where the
//! dispatch does not write what they load; what a later loop loads or computes again is merged with them (`cse.rs`).
//!
//! Where only a dispatch decides how many iterations there are, some are made at a time, their loads first,
//! and a second loop makes those that are left. If it decides by a `Scalar` parameter ([`deciding_scalars`]),
//! the kernel can be compiled for a value of it ([`fix_scalars`]).
//!
//! Deliberately absent: loops over rows that hold other loops, branches, or what threads meet in.

use std::collections::{BTreeSet, HashMap, HashSet};

use invar_ir::{
    AddressSpace, Const, Exit, Imm, Inst, InstKind, Kernel, Module, Op, ParamKind, Region, Scalar,
    Span, Type, Value, ValueInfo,
};

use super::common::{
    Map, clone_region, constants, count, integer, new_value, push_const, resolve, substitute,
    substitute_region, yielded,
};
use super::unroll::leaves;
use super::{PassOptions, cse, dead, fold};
use crate::analysis::ranges::{Known, Ranges, analyse};
use crate::tuning::{ROW_INSTRUCTIONS, ROW_WORDS};

/// The kernel of that number with its loops over rows written out; `None` if it has none, or too large
/// ones.
///
/// ```
/// use invar_codegen::{analysis::ranges::Known, passes::rows::unroll};
///
/// let text = "kernel @sum(%x: device read f32, %y: device write f32) threadgroup(256) {
///     %t = thread_index_in_threadgroup
///     %n = const u32 4096
///     %step = const u32 256
///     %zero = const f32 0.0
///     %sum = for %j = %t to %n step %step carry(%s = %zero) {
///         %v = load %x[%j]
///         %next = add %s, %v
///         yield %next
///     }
///     store %y[%t], %sum
/// }";
/// let module = invar_ir::text::parse("sum.inv", text)?;
/// let rows = unroll(&module, 0, &Known::default()).expect("16 iterations of one load");
/// let loads = rows.body.insts.iter().filter(|i| matches!(i.kind, invar_ir::InstKind::Load(_)));
/// assert_eq!(loads.count(), 16);
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
///
/// # Panics
/// If there is no kernel of that number.
pub fn unroll(module: &Module, index: usize, known: &Known) -> Option<Kernel> {
    let mut kernel = module.kernels[index].clone();
    let mut rows = Rows::new(module, &kernel, known);
    let mut body = std::mem::take(&mut kernel.body);
    rows.region(&mut body);
    if !rows.changed {
        return None;
    }
    kernel.values = rows.values;
    kernel.body = body;
    kernel.renumber();
    cse::run(module, &mut kernel, &PassOptions::default());
    dead::run(&mut kernel);
    kernel.renumber();
    Some(kernel)
}

/// The `Scalar` parameters, by their places, that decide how many iterations a loop over rows has.
///
/// # Panics
/// If there is no kernel of that number.
pub fn deciding_scalars(module: &Module, index: usize) -> Vec<usize> {
    let kernel = &module.kernels[index];
    let rows = Rows::new(module, kernel, &Known::default());
    // What each value is computed from, as far as that is given.
    let mut given: HashMap<Value, Vec<usize>> = HashMap::new();
    for (i, param) in kernel.params.iter().enumerate() {
        if let ParamKind::Scalar { value } = param.kind
            && matches!(kernel.ty(value), Type::Scalar(_))
        {
            given.insert(value, vec![i]);
        }
    }
    let mut deciding: BTreeSet<usize> = BTreeSet::new();
    kernel.for_each_inst(&mut |inst| match &inst.kind {
        InstKind::Op { op, args, .. } if !op.exchanges_lanes() => {
            let from: BTreeSet<usize> = args
                .iter()
                .filter_map(|v| given.get(v))
                .flatten()
                .copied()
                .collect();
            if let (Some(result), false) = (inst.results.first(), from.is_empty()) {
                given.insert(*result, from.into_iter().collect());
            }
        }
        InstKind::For {
            lower,
            upper,
            step,
            body,
            ..
        } if rows.words(body) > 0 => {
            let bounds = [lower, upper, step];
            deciding.extend(bounds.into_iter().filter_map(|v| given.get(v)).flatten());
        }
        _neither => {}
    });
    deciding.into_iter().collect()
}

/// The kernel of that number with these values in the place of `Scalar` parameters, which it still has.
///
/// # Panics
/// If there is no kernel of that number.
pub fn fix_scalars(module: &Module, index: usize, fixed: &[(usize, Const)]) -> Kernel {
    let mut kernel = module.kernels[index].clone();
    let mut insts = Vec::new();
    let mut map = Map::new();
    for (i, constant) in fixed {
        if let Some(ParamKind::Scalar { value }) = kernel.params.get(*i).map(|p| &p.kind) {
            let span = kernel.params[*i].span;
            let fixed = push_const(&mut kernel.values, &mut insts, *constant, span);
            map.insert(*value, fixed);
        }
    }
    substitute_region(&map, &mut kernel.body);
    insts.append(&mut kernel.body.insts);
    kernel.body.insts = insts;
    kernel.renumber();
    fold::run(module, &mut kernel);
    kernel.renumber();
    kernel
}

/// Whether the kernel of that number has a loop over rows that [`unroll`] writes out as a whole once
/// these values are fixed.
///
/// # Panics
/// If there is no kernel of that number.
pub fn fixing_helps(
    module: &Module,
    index: usize,
    fixed: &[(usize, Const)],
    known: &Known,
) -> bool {
    let kernel = fix_scalars(module, index, fixed);
    let rows = Rows::new(module, &kernel, known);
    let mut whole = false;
    kernel.for_each_inst(&mut |inst| whole |= rows.iterations(inst).is_some());
    whole
}

/// So many iterations of a loop at a time.
#[derive(Clone, Copy)]
pub(super) struct UnrollFactor {
    pub(super) iterations: i128,
    pub(super) step: i128,
    pub(super) scalar: Scalar,
}

/// Whether an instruction holds no others, begins no array and goes on to the next, and threads do not meet in it.
pub(super) fn is_flat(inst: &Inst) -> bool {
    match &inst.kind {
        InstKind::Alloc(_) => false,
        kind => {
            let goes_on = matches!(kind.exit(), None | Some(Exit::Yield));
            goes_on && !kind.has_regions() && kind.is_of_one_thread()
        }
    }
}

pub(super) struct Rows<'a> {
    module: &'a Module,
    /// Of the kernel as it was.
    ranges: Ranges,
    constants: HashMap<Value, Const>,
    declarations: Kernel,
    values: Vec<ValueInfo>,
    map: Map,
    changed: bool,
}

impl<'a> Rows<'a> {
    pub(super) fn new(module: &'a Module, kernel: &Kernel, known: &Known) -> Rows<'a> {
        Rows {
            module,
            ranges: analyse(kernel, known),
            constants: constants(kernel),
            declarations: kernel.declarations(),
            values: kernel.values.clone(),
            map: Map::new(),
            changed: false,
        }
    }
}

impl Rows<'_> {
    /// The values of the kernel as it is now.
    pub(super) fn into_values(self) -> Vec<ValueInfo> {
        self.values
    }

    /// What scalar a value is, if it is one.
    pub(super) fn scalar(&self, value: Value) -> Option<Scalar> {
        match self.values[value.0 as usize].ty {
            Type::Scalar(scalar) => Some(scalar),
            _other => None,
        }
    }

    fn region(&mut self, region: &mut Region) {
        let old = std::mem::take(&mut region.insts);
        for mut inst in old {
            substitute(&self.map, &mut inst.kind);
            // What holds a loop that is written out is not itself.
            let before = std::mem::replace(&mut self.changed, false);
            for inner in inst.kind.regions_mut() {
                self.region(inner);
            }
            let (iterations, some) = if self.changed {
                (None, None)
            } else {
                (self.iterations(&inst), self.unroll_factor(&inst))
            };
            self.changed |= before || iterations.is_some() || some.is_some();
            match (iterations, some) {
                (Some(iterations), _) => self.unroll_fully(inst, &iterations, &mut region.insts),
                (None, Some(some)) => self.unroll_partly(inst, some, &mut region.insts),
                (None, None) => region.insts.push(inst),
            }
        }
    }

    /// How far each iteration's index lies from the first one's, if that is the same for all threads and the
    /// iterations are few.
    fn iterations(&self, inst: &Inst) -> Option<Vec<Const>> {
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
        let constant = |v: &Value| integer(*self.constants.get(v)?);
        let (upper, step) = (constant(upper)?, constant(step)?);
        let (least, most) = self.ranges.of(*lower)?;
        yielded(body)?;
        if step <= 0 || upper <= most || leaves(body) {
            return None;
        }
        // ceil((upper - lower) / step), at both ends of where it begins.
        let iterations_from = |lower: i128| (upper - lower + step - 1) / step;
        let iterations = iterations_from(least);
        if !(2..=ROW_WORDS).contains(&iterations) || iterations != iterations_from(most) {
            return None;
        }
        let words = i128::from(self.words(body));
        if words == 0
            || iterations * words > ROW_WORDS
            || iterations * count(body) as i128 > ROW_INSTRUCTIONS
        {
            return None;
        }
        let Type::Scalar(scalar) = self.values[body.params.first()?.0 as usize].ty else {
            return None;
        };
        Some(
            (0..iterations)
                .map(|k| Const {
                    scalar,
                    // Below `upper`, so it fits.
                    bits: (k * step) as u64,
                })
                .collect(),
        )
    }

    /// How many rounds to make at a time, where their number is not known.
    fn unroll_factor(&self, inst: &Inst) -> Option<UnrollFactor> {
        let InstKind::For { step, body, .. } = &inst.kind else {
            return None;
        };
        let step = integer(*self.constants.get(step)?)?;
        yielded(body)?;
        let Type::Scalar(scalar) = self.values[body.params.first()?.0 as usize].ty else {
            return None;
        };
        let words = i128::from(self.words(body));
        let size = count(body) as i128;
        let fits = |n: &i128| n * words <= ROW_WORDS && n * size <= ROW_INSTRUCTIONS / 2;
        if !scalar.is_unsigned_integer() || words == 0 || !body.insts.iter().all(is_flat) {
            return None;
        }
        let iterations = [8, 4, 2].into_iter().find(fits)?;
        let whole = i128::from(u64::MAX >> (64 - scalar.bits()));
        (step > 0 && step * iterations <= whole).then_some(UnrollFactor {
            iterations,
            step,
            scalar,
        })
    }

    /// Words that one iteration loads from buffers.
    fn words(&self, region: &Region) -> u64 {
        let mut words = 0;
        for inst in &region.insts {
            if let InstKind::Load(place) = &inst.kind {
                let info = self.module.memory(&self.declarations, place.memory);
                if info.is_some_and(|i| i.space == AddressSpace::Device) {
                    let ty = self.values[inst.results[0].0 as usize].ty;
                    let bytes = ty.scalar().map_or(4, Scalar::size_bytes).max(4);
                    words += u64::from(ty.component_count()) * bytes / 4;
                }
            }
            words += inst
                .kind
                .regions()
                .into_iter()
                .map(|r| self.words(r))
                .sum::<u64>();
        }
        words
    }

    /// Writes all iterations one after the other.
    fn unroll_fully(&mut self, inst: Inst, iterations: &[Const], out: &mut Vec<Inst>) {
        let InstKind::For {
            lower, init, body, ..
        } = inst.kind
        else {
            return;
        };
        let mut body = body;
        substitute_region(&self.map, &mut body);
        let carried = self.iterations_from(lower, &init, body, iterations, inst.span, out);
        for (result, value) in inst.results.iter().zip(carried) {
            self.map.insert(*result, resolve(&self.map, value));
        }
    }

    /// Writes iterations at these distances from the first one's index, and gives what the last one yields.
    fn iterations_from(
        &mut self,
        first: Value,
        init: &[Value],
        mut body: Region,
        iterations: &[Const],
        span: Span,
        out: &mut Vec<Inst>,
    ) -> Vec<Value> {
        let loads = self.loads_first(&mut body);
        // The loads of all iterations, and where each iteration's index and loads are.
        let mut maps = Vec::new();
        for distance in iterations {
            let index = if distance.bits == 0 {
                first
            } else {
                let more = push_const(&mut self.values, out, *distance, span);
                self.op(Op::Add, &[first, more], span, out)
            };
            let mut map: Map = [(body.params[0], index)].into_iter().collect();
            let mut copy = clone_region(&mut self.values, &loads, &mut map);
            out.append(&mut copy.insts);
            maps.push(map);
        }
        let mut carried: Vec<Value> = init.to_vec();
        for mut map in maps {
            map.extend(body.params[1..].iter().copied().zip(carried));
            let mut copy = clone_region(&mut self.values, &body, &mut map);
            carried = yielded(&copy).map(<[Value]>::to_vec).unwrap_or_default();
            copy.insts.pop();
            out.append(&mut copy.insts);
        }
        carried
    }

    /// An operation whose result has the type of its first operand, or is a `bool` of a comparison.
    fn op(&mut self, op: Op, args: &[Value], span: Span, out: &mut Vec<Inst>) -> Value {
        let ty = match op {
            Op::Ge | Op::Gt => Type::BOOL,
            _of_the_operands => self.values[args[0].0 as usize].ty,
        };
        let result = new_value(&mut self.values, ty);
        out.push(Inst {
            kind: InstKind::Op {
                op,
                imm: Imm::None,
                args: args.iter().copied().collect(),
            },
            results: [result].into_iter().collect(),
            span,
        });
        result
    }

    /// With n iterations at a time, of a step s:
    /// ```text
    /// for j = lower to upper - (n-1)*s step n*s { iterations j, j+s, ..., j+(n-1)*s }
    /// for j = the next one to upper step s { iteration j }
    /// ```
    /// No index wraps: `upper - (n-1)*s` is 0 where that is negative, which `lower` is not, and the next one is
    /// `upper` where it would lie beyond.
    pub(super) fn unroll_partly(&mut self, inst: Inst, some: UnrollFactor, out: &mut Vec<Inst>) {
        let span = inst.span;
        let InstKind::For {
            lower,
            upper,
            step,
            init,
            body,
        } = inst.kind
        else {
            return;
        };
        let mut body = body;
        substitute_region(&self.map, &mut body);
        let of = |n: i128| Const {
            scalar: some.scalar,
            bits: n as u64,
        };
        let all_but_one = (some.iterations - 1) * some.step;
        let all_but_one = push_const(&mut self.values, out, of(all_but_one), span);
        let big_step = push_const(&mut self.values, out, of(some.iterations * some.step), span);
        let zero = push_const(&mut self.values, out, of(0), span);
        let enough = self.op(Op::Ge, &[upper, all_but_one], span, out);
        let short = self.op(Op::Sub, &[upper, all_but_one], span, out);
        let limit = self.op(Op::Select, &[zero, short, enough], span, out);

        let ty = Type::Scalar(some.scalar);
        let index = new_value(&mut self.values, ty);
        let mut params = vec![index];
        for carried in &body.params[1..] {
            let ty = self.values[carried.0 as usize].ty;
            params.push(new_value(&mut self.values, ty));
        }
        let given = params[1..].to_vec();
        params.push(new_value(&mut self.values, ty));
        let distances: Vec<Const> = (0..some.iterations).map(|k| of(k * some.step)).collect();
        let mut insts = Vec::new();
        let mut yields =
            self.iterations_from(index, &given, body.clone(), &distances, span, &mut insts);
        let last = self.op(Op::Add, &[index, all_but_one], span, &mut insts);
        let left = self.op(Op::Sub, &[upper, last], span, &mut insts);
        let next = self.op(Op::Add, &[last, step], span, &mut insts);
        let more = self.op(Op::Gt, &[left, step], span, &mut insts);
        yields.push(self.op(Op::Select, &[upper, next, more], span, &mut insts));
        insts.push(Inst {
            kind: InstKind::Yield(yields.into_iter().collect()),
            results: Default::default(),
            span,
        });
        let mut results = Vec::new();
        for param in &params[1..] {
            let ty = self.values[param.0 as usize].ty;
            results.push(new_value(&mut self.values, ty));
        }
        out.push(Inst {
            kind: InstKind::For {
                lower,
                upper: limit,
                step: big_step,
                init: init.iter().copied().chain([lower]).collect(),
                body: Region { params, insts },
            },
            results: results.iter().copied().collect(),
            span,
        });
        let (next, given) = results
            .split_last()
            .map_or((lower, &[][..]), |(n, g)| (*n, g));
        out.push(Inst {
            kind: InstKind::For {
                lower: next,
                upper,
                step,
                init: given.iter().copied().collect(),
                body,
            },
            results: inst.results,
            span,
        });
    }

    /// Takes from a body its loads from what the dispatch does not write, and what their indices are computed from, as
    /// far as an iteration needs nothing of the iteration before it for them.
    fn loads_first(&self, body: &mut Region) -> Region {
        let mut alone: HashSet<Value> = HashSet::new();
        let mut inside: HashSet<Value> = body.params[1..].iter().copied().collect();
        for inst in &body.insts {
            let mut pure = inst.kind.is_pure(self.module, &self.declarations);
            inst.kind.for_each_use(|v| pure &= !inside.contains(&v));
            let set = if pure { &mut alone } else { &mut inside };
            set.extend(inst.results.iter().copied());
        }
        let mut wanted: HashSet<Value> = HashSet::new();
        let mut chosen: HashSet<Value> = HashSet::new();
        for inst in body.insts.iter().rev() {
            let Some(result) = inst.results.first() else {
                continue;
            };
            let load = matches!(inst.kind, InstKind::Load(_));
            if alone.contains(result) && (load || wanted.contains(result)) {
                inst.kind.for_each_use(|v| {
                    wanted.insert(v);
                });
                chosen.insert(*result);
            }
        }
        let taken = |inst: &Inst| inst.results.first().is_some_and(|r| chosen.contains(r));
        let (insts, rest) = std::mem::take(&mut body.insts).into_iter().partition(taken);
        body.insts = rest;
        Region {
            params: vec![body.params[0]],
            insts,
        }
    }
}
