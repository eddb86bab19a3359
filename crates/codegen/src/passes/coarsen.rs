//! Coarsening: a kernel each of whose threads does the work of several, so that it has more loads under
//! way at once. Threads of the old kernel are assigned to those of the new one in two ways:
//! - [`coarsen`], for kernels whose threads do not meet: threadgroup `p` of the new kernel runs the
//!   threadgroups `p*k .. p*k + k-1` of the old one in x, each thread those of its own position in them;
//! - [`coarsen_threads`], for kernels with barriers of the threadgroup: a threadgroup of the new kernel has
//!   a `k`-th of the threads in its last dimension, each of which runs those at its own position, at that
//!   and a `k`-th of the size, and so on.
//!
//! Either way neighbouring threads still touch neighbouring elements, whatever the indices are. Between
//! barriers accesses of different threads may take turns in any way that keeps each one's own order (O1,
//! O8): one instruction is made for all of them before the next. What is the same for all is computed
//! once, and so is a barrier.
//!
//! An `if` on which they may disagree is made for all at once where they agree, and for each alone where
//! they do not. A `for` must have the same bounds for all.
//!
//! The grid of a kernel from [`coarsen`] is a `k`-th of the old one's in x; the caller that dispatches it runs the
//! threadgroups that are left over, or not full in x, with the old kernel. One from [`coarsen_threads`]
//! has as many threadgroups, and runs full ones only.
//!
//! Deliberately absent: kernels with loops whose iterations differ, or that ask for the size of the grid;
//! exchanges between lanes.

use std::collections::HashMap;

use invar_ir::ops::Meaning;
use invar_ir::{
    AddressSpace, Dim, Imm, Inst, InstKind, Kernel, Module, Op, ParamKind, Place, Region, Scalar,
    Scope, Span, Type, Value, ValueInfo, Values,
};

use super::common::{Map, clone_region, count, new_value, push_const, substitute_region};
use crate::tuning::{COARSENED_INSTRUCTIONS, COARSENED_THREADS, LOADS_UNDER_WAY};

/// The kernel of that number, `factor` times as coarse; `None` if it cannot be, or would not gain.
///
/// ```
/// use invar_codegen::passes::coarsen::coarsen;
///
/// let text = "kernel @copy(%x: device read f32, %y: device write f32) {
///     %i = thread_position_in_grid x
///     %v = load %x[%i]
///     store %y[%i], %v
/// }";
/// let module = invar_ir::text::parse("copy.inv", text)?;
/// let coarse = coarsen(&module, 0, 4).expect("it touches memory and has no barrier");
/// let loads = coarse.body.insts.iter().filter(|i| matches!(i.kind, invar_ir::InstKind::Load(_)));
/// assert_eq!(loads.count(), 4);
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
///
/// # Panics
/// If there is no kernel of that number.
pub fn coarsen(module: &Module, index: usize, factor: u32) -> Option<Kernel> {
    let old = &module.kernels[index];
    let meets = old.body.insts.iter().any(is_barrier);
    if factor < 2
        || meets
        || !old.allocs.is_empty()
        || old
            .params
            .iter()
            .any(|p| matches!(p.kind, ParamKind::Threadgroup { .. }))
        || count(&old.body) > COARSENED_INSTRUCTIONS
        || !touches_memory(&old.body)
        || !fits(&old.body)
    {
        return None;
    }
    assign_blocks(module, old, factor, BlockAssignment::Threadgroups)
}

/// The kernel of that number with each `factor` threads of a threadgroup of that size as one, and the
/// size of its threadgroups; `None` if it cannot be, or has no barrier.
///
/// # Panics
/// If there is no kernel of that number.
pub fn coarsen_threads(
    module: &Module,
    index: usize,
    size: [u32; 3],
    factor: u32,
) -> Option<(Kernel, [u32; 3])> {
    let old = &module.kernels[index];
    let dimension = (0..3).rev().find(|d| size[*d] > 1)?;
    let shared = old
        .allocs
        .iter()
        .all(|a| a.space == AddressSpace::Threadgroup);
    if factor < 2
        || !size[dimension].is_multiple_of(factor)
        || !shared
        || count(&old.body) > COARSENED_INSTRUCTIONS
        || !holds_barrier(&old.body)
        || !fits(&old.body)
        || asks_for_more_than_positions(&old.body)
    {
        return None;
    }
    let assignment = BlockAssignment::Threads { size, dimension };
    let mut kernel = assign_blocks(module, old, factor, assignment)?;
    let mut smaller = size;
    smaller[dimension] /= factor;
    if kernel.threadgroup_size.is_some() {
        kernel.threadgroup_size = Some(smaller);
    }
    Some((kernel, smaller))
}

/// How many threads of a threadgroup of that size are best assigned to one: so many that it has some loads
/// from buffers under way, and the threadgroup still enough threads.
pub fn threads_factor(module: &Module, index: usize, size: [u32; 3]) -> u32 {
    let kernel = &module.kernels[index];
    let mut loads = 0u32;
    kernel.for_each_inst(&mut |inst| {
        if let InstKind::Load(place) = &inst.kind {
            let space = module.memory(kernel, place.memory).map(|info| info.space);
            loads += u32::from(space == Some(AddressSpace::Device));
        }
    });
    let threads: u32 = size.iter().product();
    let most = (LOADS_UNDER_WAY / loads.max(1)).min(threads / COARSENED_THREADS);
    let dimension = (0..3).rev().find(|d| size[*d] > 1).unwrap_or(0);
    (1..=3)
        .map(|power| 1 << power)
        .take_while(|k| loads > 0 && *k <= most && size[dimension].is_multiple_of(*k))
        .last()
        .unwrap_or(1)
}

/// The most bytes that an access to a buffer takes at once.
pub fn widest_access_bytes(module: &Module, index: usize) -> u64 {
    let kernel = &module.kernels[index];
    let mut widest = 1;
    let mut access = |place: &Place, ty: Type| {
        let space = module.memory(kernel, place.memory).map(|info| info.space);
        if space == Some(AddressSpace::Device) {
            let bytes = ty.scalar().map_or(1, Scalar::size_bytes);
            widest = widest.max(bytes * u64::from(ty.component_count()));
        }
    };
    kernel.for_each_inst(&mut |inst| match &inst.kind {
        InstKind::Load(place) => access(place, kernel.ty(inst.results[0])),
        InstKind::Store { place, value } => access(place, kernel.ty(*value)),
        _no_plain_access => {}
    });
    widest
}

/// What the threads of a new kernel are assigned.
#[derive(Clone, Copy)]
enum BlockAssignment {
    Threadgroups,
    Threads { size: [u32; 3], dimension: usize },
}

fn assign_blocks(
    module: &Module,
    old: &Kernel,
    factor: u32,
    assignment: BlockAssignment,
) -> Option<Kernel> {
    let mut kernel = old.clone();
    let mut body = std::mem::take(&mut kernel.body);
    without_returns(&mut body)?;
    let mut jam = UnrollAndJam {
        module,
        declarations: old.declarations(),
        values: std::mem::take(&mut kernel.values),
        factor: factor as usize,
        each: HashMap::new(),
    };
    let mut insts = match assignment {
        BlockAssignment::Threadgroups => jam.positions(&mut body),
        BlockAssignment::Threads { size, dimension } => jam.threads(&mut body, size, dimension),
    };
    jam.region(&body, &mut insts)?;
    insts.push(Inst {
        kind: InstKind::Return,
        results: Default::default(),
        span: Span::NONE,
    });
    kernel.values = jam.values;
    kernel.body = Region {
        params: Vec::new(),
        insts,
    };
    kernel.renumber();
    Some(kernel)
}

/// Whether every instruction is one that several threads can take turns at.
fn fits(region: &Region) -> bool {
    region.insts.iter().all(|inst| {
        let this = match &inst.kind {
            InstKind::Op { op, imm, .. } if matches!(op.row().meaning, Meaning::Query) => {
                !matches!(
                    (op, imm),
                    (
                        Op::ThreadsPerGrid | Op::ThreadgroupsPerGrid,
                        Imm::Dim(Dim::X)
                    )
                )
            }
            InstKind::For { body, .. } => !body.exits().any(),
            InstKind::Barrier { scope, .. } => *scope == Scope::Threadgroup,
            InstKind::Loop { .. } | InstKind::Break(_) | InstKind::Continue(_) => false,
            other => other.is_of_one_thread(),
        };
        this && inst.kind.regions().into_iter().all(fits)
    })
}

fn is_barrier(inst: &Inst) -> bool {
    matches!(inst.kind, InstKind::Barrier { .. })
        || inst.kind.regions().into_iter().any(holds_barrier)
}

fn holds_barrier(region: &Region) -> bool {
    region.insts.iter().any(is_barrier)
}

/// Whether a region asks for the size of the grid in threads, or for simdgroups.
fn asks_for_more_than_positions(region: &Region) -> bool {
    region.insts.iter().any(|inst| {
        let this = match &inst.kind {
            InstKind::Op { op, .. } if matches!(op.row().meaning, Meaning::Query) => !matches!(
                op,
                Op::ThreadPositionInGrid
                    | Op::ThreadPositionInThreadgroup
                    | Op::ThreadIndexInThreadgroup
                    | Op::ThreadgroupPositionInGrid
                    | Op::ThreadsPerThreadgroup
                    | Op::DispatchThreadsPerThreadgroup
            ),
            _no_query => false,
        };
        this || inst
            .kind
            .regions()
            .into_iter()
            .any(asks_for_more_than_positions)
    })
}

fn touches_memory(region: &Region) -> bool {
    region.insts.iter().any(|inst| {
        matches!(
            inst.kind,
            InstKind::Load(_) | InstKind::Store { .. } | InstKind::Atomic { .. }
        ) || inst.kind.regions().into_iter().any(touches_memory)
    })
}

/// Puts what follows an `if` one of whose sides returns into its other side:
/// `if c { A; return } B` is `if c { A } else { B }`. `None` where returns stand in another way.
fn without_returns(region: &mut Region) -> Option<()> {
    let returns = |inst: &Inst| inst.kind.has_regions() && inst.exits().any();
    let Some(at) = region.insts.iter().position(returns) else {
        return Some(());
    };
    let mut rest = region.insts.split_off(at + 1);
    let mut inst = region.insts.pop()?;
    let results = std::mem::take(&mut inst.results);
    let InstKind::If {
        then, otherwise, ..
    } = &mut inst.kind
    else {
        return None;
    };
    let ends = |r: &Region| matches!(r.insts.last().map(|i| &i.kind), Some(InstKind::Return));
    let (gone, on) = match (ends(then), ends(otherwise)) {
        (true, false) => (then, otherwise),
        (false, true) => (otherwise, then),
        _both_or_deeper => return None,
    };
    let given = super::common::yielded(on)?.to_vec();
    on.insts.pop();
    let map: Map = results.into_iter().zip(given).collect();
    // The rest of a side has a `yield` of nothing at its end, the rest of the kernel its `return`.
    let mut end = rest.pop()?;
    end.kind = InstKind::Yield(Values::new());
    rest.push(end.clone());
    let mut rest = Region {
        params: Vec::new(),
        insts: rest,
    };
    substitute_region(&map, &mut rest);
    on.insts.append(&mut rest.insts);
    gone.insts.pop();
    gone.insts.push(end.clone());
    without_returns(gone)?;
    without_returns(on)?;
    region.insts.push(inst);
    region.insts.push(end);
    Some(())
}

struct UnrollAndJam<'a> {
    module: &'a Module,
    declarations: Kernel,
    values: Vec<ValueInfo>,
    factor: usize,
    /// The values of each thread, of those that differ between them; any other is one for all.
    each: HashMap<Value, Vec<Value>>,
}

impl UnrollAndJam<'_> {
    fn of(&self, value: Value, thread: usize) -> Value {
        self.each.get(&value).map_or(value, |all| all[thread])
    }

    /// Each thread's values, one thread's after the other's for each value.
    fn spread(&self, values: &[Value]) -> Values {
        values
            .iter()
            .flat_map(|v| (0..self.factor).map(|k| self.of(*v, k)))
            .collect()
    }

    fn fresh(&mut self, old: Value) -> Value {
        let ty = self.values[old.0 as usize].ty;
        new_value(&mut self.values, ty)
    }

    /// New values for each thread in the place of these; all of them in the order of
    /// [`UnrollAndJam::spread`].
    fn split(&mut self, olds: &[Value]) -> Vec<Value> {
        let mut all = Vec::with_capacity(olds.len() * self.factor);
        for old in olds {
            let mine: Vec<Value> = (0..self.factor).map(|_| self.fresh(*old)).collect();
            all.extend_from_slice(&mine);
            self.each.insert(*old, mine);
        }
        all
    }

    fn op(&mut self, out: &mut Vec<Inst>, op: Op, imm: Imm, args: &[Value], ty: Type) -> Value {
        let result = new_value(&mut self.values, ty);
        out.push(Inst {
            kind: InstKind::Op {
                op,
                imm,
                args: Values::from_slice(args),
            },
            results: [result].into_iter().collect(),
            span: Span::NONE,
        });
        result
    }

    /// Computes where the threads stand, in the place of the queries in a body.
    fn positions(&mut self, body: &mut Region) -> Vec<Inst> {
        let mut queries = Vec::new();
        take_queries(body, &mut queries, &|op, imm| {
            imm == Imm::Dim(Dim::X)
                && matches!(op, Op::ThreadPositionInGrid | Op::ThreadgroupPositionInGrid)
        });
        let mut out = Vec::new();
        if queries.is_empty() {
            return out;
        }
        let x = Imm::Dim(Dim::X);
        let u32_const = |bits: u32| invar_ir::Const::from(bits);
        let group = self.op(&mut out, Op::ThreadgroupPositionInGrid, x, &[], Type::U32);
        let factor = u32_const(self.factor as u32);
        let factor = push_const(&mut self.values, &mut out, factor, Span::NONE);
        let first = self.op(&mut out, Op::Mul, Imm::None, &[group, factor], Type::U32);
        let mut groups = vec![first];
        for k in 1..self.factor {
            let k = push_const(&mut self.values, &mut out, u32_const(k as u32), Span::NONE);
            groups.push(self.op(&mut out, Op::Add, Imm::None, &[first, k], Type::U32));
        }
        let in_group = Op::ThreadPositionInThreadgroup;
        let mut positions = Vec::new();
        if queries
            .iter()
            .any(|(op, _)| *op == Op::ThreadPositionInGrid)
        {
            let mine = self.op(&mut out, in_group, x, &[], Type::U32);
            let size = Op::DispatchThreadsPerThreadgroup;
            let size = self.op(&mut out, size, x, &[], Type::U32);
            for group in &groups {
                let start = self.op(&mut out, Op::Mul, Imm::None, &[*group, size], Type::U32);
                positions.push(self.op(&mut out, Op::Add, Imm::None, &[start, mine], Type::U32));
            }
        }
        for (op, value) in queries {
            let all = match op {
                Op::ThreadPositionInGrid => positions.clone(),
                _the_threadgroups => groups.clone(),
            };
            self.each.insert(value, all);
        }
        out
    }

    /// As [`UnrollAndJam::positions`], for threads of one threadgroup.
    fn threads(&mut self, body: &mut Region, size: [u32; 3], dimension: usize) -> Vec<Inst> {
        let along = Imm::Dim(Dim::ALL[dimension]);
        let mut queries = Vec::new();
        take_queries(body, &mut queries, &|op, imm| match op {
            Op::ThreadIndexInThreadgroup => true,
            Op::ThreadPositionInGrid
            | Op::ThreadPositionInThreadgroup
            | Op::ThreadsPerThreadgroup
            | Op::DispatchThreadsPerThreadgroup => imm == along,
            _same_for_all => false,
        });
        let mut out = Vec::new();
        let constant = |jam: &mut Self, out: &mut Vec<Inst>, n: u32| {
            push_const(&mut jam.values, out, invar_ir::Const::from(n), Span::NONE)
        };
        // What each thread has: the first one's, and so much more for each after it.
        let steps = |jam: &mut Self, out: &mut Vec<Inst>, first: Value, step: u32| {
            let mut all = vec![first];
            for k in 1..jam.factor as u32 {
                let more = constant(jam, out, k * step);
                all.push(jam.op(out, Op::Add, Imm::None, &[first, more], Type::U32));
            }
            all
        };
        let threads: u32 = size.iter().product();
        let (step, all_step) = (
            size[dimension] / self.factor as u32,
            threads / self.factor as u32,
        );
        let nominal = constant(self, &mut out, size[dimension]);
        let in_group = Op::ThreadPositionInThreadgroup;
        let mine = self.op(&mut out, in_group, along, &[], Type::U32);
        for (op, value) in queries {
            let all = match op {
                Op::ThreadIndexInThreadgroup => {
                    let index = self.op(&mut out, op, Imm::None, &[], Type::U32);
                    steps(self, &mut out, index, all_step)
                }
                Op::ThreadPositionInThreadgroup => steps(self, &mut out, mine, step),
                Op::ThreadPositionInGrid => {
                    let group = Op::ThreadgroupPositionInGrid;
                    let group = self.op(&mut out, group, along, &[], Type::U32);
                    let start = self.op(&mut out, Op::Mul, Imm::None, &[group, nominal], Type::U32);
                    let first = self.op(&mut out, Op::Add, Imm::None, &[start, mine], Type::U32);
                    steps(self, &mut out, first, step)
                }
                _the_size => vec![nominal; self.factor],
            };
            self.each.insert(value, all);
        }
        out
    }

    /// The instructions of a region but its end, for all threads.
    fn region(&mut self, region: &Region, out: &mut Vec<Inst>) -> Option<()> {
        for inst in &region.insts {
            self.inst(inst, out)?;
        }
        Some(())
    }

    /// A region for all threads, which yields what each of them yields.
    fn inner(&mut self, region: &Region, params: Vec<Value>) -> Option<Region> {
        let mut insts = Vec::new();
        self.region(region, &mut insts)?;
        let end = region.insts.last()?;
        let yields = super::common::yielded(region)?;
        insts.push(Inst {
            kind: InstKind::Yield(self.spread(yields)),
            ..end.clone()
        });
        Some(Region { params, insts })
    }

    fn inst(&mut self, inst: &Inst, out: &mut Vec<Inst>) -> Option<()> {
        match &inst.kind {
            InstKind::If {
                condition,
                then,
                otherwise,
            } => self.if_(inst, *condition, then, otherwise, out),
            InstKind::For {
                lower,
                upper,
                step,
                init,
                body,
            } => {
                if [lower, upper, step]
                    .iter()
                    .any(|v| self.each.contains_key(v))
                {
                    return None;
                }
                let init = self.spread(init);
                let mut params = vec![body.params[0]];
                params.extend(self.split(&body.params[1..]));
                let body = self.inner(body, params)?;
                let results = self.split(&inst.results);
                out.push(Inst {
                    kind: InstKind::For {
                        lower: *lower,
                        upper: *upper,
                        step: *step,
                        init,
                        body,
                    },
                    results: results.into_iter().collect(),
                    span: inst.span,
                });
                Some(())
            }
            InstKind::Yield(_) | InstKind::Return => Some(()),
            // Once for all.
            InstKind::Barrier { .. } | InstKind::Alloc(_) => {
                out.push(inst.clone());
                Some(())
            }
            _one_after_another => {
                let mut differs = !inst.kind.is_pure(self.module, &self.declarations);
                inst.kind
                    .for_each_use(|v| differs |= self.each.contains_key(&v));
                if !differs {
                    out.push(inst.clone());
                    return Some(());
                }
                let copies: Vec<InstKind> = (0..self.factor)
                    .map(|k| {
                        let mut kind = inst.kind.clone();
                        kind.for_each_use_mut(|v| *v = self.of(*v, k));
                        kind
                    })
                    .collect();
                self.split(&inst.results);
                for (k, kind) in copies.into_iter().enumerate() {
                    out.push(Inst {
                        kind,
                        results: inst.results.iter().map(|v| self.of(*v, k)).collect(),
                        span: inst.span,
                    });
                }
                Some(())
            }
        }
    }

    fn if_(
        &mut self,
        inst: &Inst,
        condition: Value,
        then: &Region,
        otherwise: &Region,
        out: &mut Vec<Inst>,
    ) -> Option<()> {
        if !self.each.contains_key(&condition) {
            let kind = InstKind::If {
                condition,
                then: self.inner(then, Vec::new())?,
                otherwise: self.inner(otherwise, Vec::new())?,
            };
            let results = self.split(&inst.results).into_iter().collect();
            let span = inst.span;
            out.push(Inst {
                kind,
                results,
                span,
            });
            return Some(());
        }
        if holds_barrier(then) || holds_barrier(otherwise) {
            return None;
        }
        let (in_then, in_otherwise) = (touches_memory(then), touches_memory(otherwise));
        if !in_then && !in_otherwise {
            let alone = self.alone(inst, out);
            for (i, old) in inst.results.iter().enumerate() {
                let all = alone.iter().map(|results| results[i]).collect();
                self.each.insert(*old, all);
            }
            return Some(());
        }
        // All take the side that touches memory; or some do not, and each goes alone.
        let together = if in_then { then } else { otherwise };
        let join = if in_then { Op::And } else { Op::Or };
        let mut agreed = self.of(condition, 0);
        for k in 1..self.factor {
            let other = self.of(condition, k);
            agreed = self.op(out, join, Imm::None, &[agreed, other], Type::BOOL);
        }
        let before = self.each.clone();
        let together = self.inner(together, Vec::new())?;
        self.each = before;
        let mut insts = Vec::new();
        let alone = self.alone(inst, &mut insts);
        let yields = (0..inst.results.len())
            .flat_map(|i| alone.iter().map(move |results| results[i]))
            .collect();
        insts.push(Inst {
            kind: InstKind::Yield(yields),
            results: Default::default(),
            span: inst.span,
        });
        let alone = Region {
            params: Vec::new(),
            insts,
        };
        let (then, otherwise) = if in_then {
            (together, alone)
        } else {
            (alone, together)
        };
        let results = self.split(&inst.results).into_iter().collect();
        out.push(Inst {
            kind: InstKind::If {
                condition: agreed,
                then,
                otherwise,
            },
            results,
            span: inst.span,
        });
        Some(())
    }

    /// An instruction with regions once for each thread; gives the results of each.
    fn alone(&mut self, inst: &Inst, out: &mut Vec<Inst>) -> Vec<Vec<Value>> {
        let mut all = Vec::new();
        for k in 0..self.factor {
            let mut map: Map = self.each.iter().map(|(v, all)| (*v, all[k])).collect();
            let mut copy = inst.clone();
            copy.kind.for_each_use_mut(|v| {
                if let Some(to) = map.get(v) {
                    *v = *to;
                }
            });
            for region in copy.kind.regions_mut() {
                *region = clone_region(&mut self.values, region, &mut map);
            }
            let results: Vec<Value> = inst.results.iter().map(|v| self.fresh(*v)).collect();
            copy.results = results.iter().copied().collect();
            all.push(results);
            out.push(copy);
        }
        all
    }
}

/// Takes such queries out of a region, with their results.
fn take_queries(
    region: &mut Region,
    found: &mut Vec<(Op, Value)>,
    wanted: &dyn Fn(Op, Imm) -> bool,
) {
    region.insts.retain_mut(|inst| {
        if let InstKind::Op { op, imm, .. } = inst.kind
            && wanted(op, imm)
        {
            found.push((op, inst.results[0]));
            return false;
        }
        for inner in inst.kind.regions_mut() {
            take_queries(inner, found, wanted);
        }
        true
    });
}
