//! How many vectors of threads a chunk should have.
//!
//! More of them share the loads and the scalar work that all have in common and hide latency, until
//! registers run out. The model looks at the innermost loop, or at the whole kernel if there is none:
//! what it keeps from iteration to iteration in registers of lanes, for each vector of threads.

use std::collections::{HashMap, HashSet};

use invar_codegen::analysis::blocks::is_same_along;
use invar_codegen::analysis::lanes::{Class, Classes};
use invar_ir::inst::{InstKind, Region, Value, Width};
use invar_ir::ops::{Dim, Meaning};
use invar_ir::{AccessMode, Inst, Kernel, MemoryAccess, Op, Scalar};

use crate::neighbour_rows::{goes_between_rows, share_loads, tells_rows};
use crate::plan::{InstKey, Plan, holds_masked_loop, uses};
use crate::target::Features;
use crate::tuning::{
    BLOCK_ROWS, BLOCK_VECTORS, DIVIDER_VECTORS, FEW_VECTORS, LEAST_TRANSPOSED_ROWS,
    MOST_CHUNK_OPERATIONS, MOST_SHARING_ROWS, MOST_VECTORS, MOST_VECTORS_WITHOUT_LOOPS,
    OPERATIONS_BETWEEN_LANES, OPERATIONS_OF_ATOMIC, SHORT_LOOP_OPERATIONS,
};

/// Where a kernel spends its time, as far as its text says.
struct Hot<'k> {
    region: &'k Region,
    depth: u32,
    inst: Option<&'k Inst>,
}

/// Vectors along x and rows, for a threadgroup of this size and vectors of this width.
pub(crate) fn interleave(
    kernel: &Kernel,
    classes: &Classes,
    plan: &Plan<'_>,
    target: &Features,
    width: u32,
    size: Option<[u32; 3]>,
    linear: bool,
) -> [u32; 2] {
    let Some([x, y, z]) = size else {
        // Rows may be as short as one vector.
        return [1, 1];
    };
    let [x, y] = if linear { [x * y * z, 1] } else { [x, y] };
    let mut hot = Hot {
        region: &kernel.body,
        depth: 0,
        inst: None,
    };
    find(&kernel.body, 0, &plan.collective, &mut hot);
    let registers = if target.has_avx512 || !target.is_x86 {
        32
    } else {
        16
    };
    let work = Work::of(kernel, classes, plan, &hot);
    let by_registers = (registers * 3 / 4) / work.live.max(1);
    let total = chunk_operations(kernel, classes, plan).max(1);
    let by_code = MOST_CHUNK_OPERATIONS / total;
    // What lies side by side along y is transposed: a line of a cache for each lane.
    let rows = y.min(width).min(by_code);
    if hot.depth == 0 && !linear && !plan.down.is_empty() && rows >= LEAST_TRANSPOSED_ROWS {
        return [1, 1 << rows.ilog2()];
    }
    // Without a loop around loads, rows of threads are what may read the same.
    let rows_share = hot.depth == 0 && y > 1 && !linear && share_loads(kernel, &plan.affine);
    let by_kind = match (hot.depth, work.operations) {
        (0, _) if rows_share => 2 * MOST_SHARING_ROWS,
        (0, _) if goes_between_rows(kernel, &plan.affine) => MOST_VECTORS,
        (0, _) => FEW_VECTORS,
        _ if work.has_blocks && work.rows_share_blocks => BLOCK_ROWS.min(y),
        _ if work.has_blocks => BLOCK_VECTORS,
        _ if work.keeps_divider_busy => DIVIDER_VECTORS,
        (_, 0..=SHORT_LOOP_OPERATIONS) => MOST_VECTORS,
        (_, _) => FEW_VECTORS,
    };
    let count = by_registers
        .min(by_code)
        .min(by_kind)
        .clamp(1, MOST_VECTORS);
    let below = |n: u32| 1 << n.max(1).ilog2();
    let count = below(count);
    let most_along = below(x / width.min(below(x)));
    let most_rows = if rows_share {
        below(y).min(MOST_SHARING_ROWS)
    } else {
        below(y)
    };
    // Where rows of the grid share loads, a chunk is a block of rows; else it is one row, if that fits.
    let block = hot.depth > 0 && work.loads > 0 && tells_rows(kernel);
    let along = if rows_share {
        (count / most_rows).clamp(1, most_along)
    } else if work.has_blocks {
        1
    } else if block {
        (if count >= 8 { 2 } else { 1 }).min(most_along)
    } else {
        count.min(most_along)
    };
    let rows = (count / along).min(most_rows);
    [(count / rows).min(most_along), rows]
}

fn find<'k>(region: &'k Region, depth: u32, together: &HashSet<InstKey>, hot: &mut Hot<'k>) {
    for inst in &region.insts {
        // A loop around barriers is outside of chunks.
        let outside = together.contains(&std::ptr::from_ref(inst));
        let loops = inst.kind.is_loop();
        let inner = u32::from(loops && !outside);
        for body in inst.kind.regions() {
            let better = depth + inner > hot.depth
                || (depth + inner == hot.depth
                    && inner > 0
                    && body.insts.len() > hot.region.insts.len());
            if inner > 0 && better {
                *hot = Hot {
                    region: body,
                    depth: depth + inner,
                    inst: Some(inst),
                };
            }
            find(body, depth + inner, together, hot);
        }
    }
}

struct Work {
    /// Vectors that are kept through an iteration, for each vector of threads.
    live: u32,
    operations: u32,
    loads: u32,
    /// Loads are blocks, whose columns fill registers.
    has_blocks: bool,
    /// The rows below read the same blocks, with other operands.
    rows_share_blocks: bool,
    /// Floats' roots and quotients are both computed in each iteration.
    keeps_divider_busy: bool,
}

impl Work {
    fn of(kernel: &Kernel, classes: &Classes, plan: &Plan<'_>, hot: &Hot<'_>) -> Work {
        // What is wider than 32 bits takes several registers for a vector.
        let registers = |v: Value| {
            let ty = kernel.ty(v);
            let bytes = ty.scalar().map_or(0, |s| s.size_bytes() as u32);
            ty.component_count() * bytes.div_ceil(4)
        };
        let differs = |v: Value| matches!(classes.of(v), Class::Varying);
        let mut inside = HashSet::new();
        let mut used = HashSet::new();
        let mut loads = 0;
        let (mut has_blocks, mut rows_share_blocks) = (false, tells_rows(kernel));
        let (mut divides, mut takes_roots) = (false, false);
        walk(hot.region, &mut |inst| {
            inside.extend(inst.results.iter().copied());
            for region in inst.kind.regions() {
                inside.extend(region.params.iter().copied());
            }
            used.extend(uses(inst));
            loads += u32::from(matches!(inst.kind, InstKind::Load(_)));
            if let InstKind::Load(place) = &inst.kind
                && plan.blocks.contains_key(&std::ptr::from_ref(inst))
            {
                let is_block = match classes.of(place.index) {
                    Class::Uniform => false,
                    Class::Line(line) => line.stride.unsigned_abs() > 1,
                    Class::Varying => true,
                };
                let sum = plan.affine.of(place.index).sum;
                has_blocks |= is_block;
                rows_share_blocks &= !is_block || is_same_along(kernel, &plan.affine, &sum, Dim::Y);
            }
            if let (Some((op, ..)), [result]) = (inst.kind.as_op(), &inst.results[..]) {
                let is_float = kernel.ty(*result).scalar().is_some_and(Scalar::is_float);
                let by_lanes = differs(*result) && is_float;
                divides |= by_lanes && op == Op::Div;
                takes_roots |= by_lanes && op == Op::Sqrt;
            }
        });
        inside.extend(hot.region.params.iter().copied());
        let kept: u32 = hot.inst.map_or(0, |inst| {
            let values = inst.carried().iter().filter(|v| differs(**v));
            values.map(|v| registers(*v)).sum()
        });
        let invariant: u32 = if hot.inst.is_some() {
            let values = used.difference(&inside).filter(|v| differs(**v));
            values.map(|v| registers(*v)).sum()
        } else {
            0
        };
        // A loop that threads leave at different times keeps its results too.
        let masked = hot
            .inst
            .filter(|inst| classes.is_masked(inst) && !is_made_twice(inst, classes));
        let results = masked.map_or(0, |inst| inst.results.len() as u32);
        let vectors = if hot.inst.is_none() {
            vectors_in_flight(hot.region, &registers)
        } else {
            0
        };
        Work {
            live: kept + invariant + results.min(1) + vectors.max(u32::from(hot.inst.is_none())),
            operations: operations(kernel, classes, hot.region),
            loads,
            has_blocks,
            rows_share_blocks,
            keeps_divider_busy: divides && takes_roots,
        }
    }
}

/// The most registers that loads of several components fill at once, from the load to the last use of the
/// value or of a component of it.
fn vectors_in_flight(region: &Region, registers: &impl Fn(Value) -> u32) -> u32 {
    let mut sources: HashMap<Value, Value> = HashMap::new();
    let mut last: HashMap<Value, usize> = HashMap::new();
    for (at, inst) in region.insts.iter().enumerate() {
        if let (InstKind::Load(place), [result]) = (&inst.kind, &inst.results[..])
            && (place.width != Width::One || registers(*result) > 1)
        {
            sources.insert(*result, *result);
        }
        for v in uses(inst) {
            if let Some(source) = sources.get(&v).copied() {
                last.insert(source, at);
                if let Some((Op::Extract, ..)) = inst.kind.as_op() {
                    sources.insert(inst.results[0], source);
                }
            }
        }
    }
    let mut over = vec![0; region.insts.len()];
    for (value, at) in &last {
        over[*at] += registers(*value);
    }
    let (mut now, mut most) = (0, 0);
    for (inst, over) in region.insts.iter().zip(over) {
        for result in inst.results.iter().filter(|r| last.contains_key(r)) {
            now += registers(*result);
        }
        most = most.max(now);
        now -= over;
    }
    most
}

/// Operations in the code of a chunk for each of its vectors. Between barriers, what stands outside of loops is made for
/// few vectors at once, as many as the chunk may have.
fn chunk_operations(kernel: &Kernel, classes: &Classes, plan: &Plan<'_>) -> u32 {
    let all = operations(kernel, classes, &kernel.body);
    let looping = looping_operations(kernel, classes, &kernel.body, &plan.collective);
    if plan.collective.is_empty() || looping == 0 {
        return all;
    }
    looping + (all - looping.min(all)).div_ceil(MOST_VECTORS_WITHOUT_LOOPS)
}

/// Those in loops that each chunk goes round by itself.
fn looping_operations(
    kernel: &Kernel,
    classes: &Classes,
    region: &Region,
    together: &HashSet<InstKey>,
) -> u32 {
    let of = |inst: &Inst| {
        let own = inst.kind.is_loop() && !together.contains(&std::ptr::from_ref(inst));
        let inner = inst.kind.regions().into_iter();
        let inner = inner.map(|region| match own {
            true => operations(kernel, classes, region),
            false => looping_operations(kernel, classes, region, together),
        });
        let times = if own && is_made_twice(inst, classes) {
            2
        } else {
            1
        };
        times * inner.sum::<u32>()
    };
    region.insts.iter().map(of).sum()
}

/// Operations that are made for each vector of threads.
fn operations(kernel: &Kernel, classes: &Classes, region: &Region) -> u32 {
    let with_inner = |inst: &Inst| {
        let inner = inst.kind.regions().into_iter();
        let inner: u32 = inner.map(|r| operations(kernel, classes, r)).sum();
        let times = if is_made_twice(inst, classes) { 2 } else { 1 };
        own_operations(kernel, classes, inst) + times * inner
    };
    region.insts.iter().map(with_inner).sum()
}

/// Those of an instruction without what its regions hold.
fn own_operations(kernel: &Kernel, classes: &Classes, inst: &Inst) -> u32 {
    let of = |v: &Value| kernel.ty(*v).component_count();
    let results = || inst.results.iter();
    let components = || results().filter(|v| classes.of(**v) == Class::Varying);
    if let Some((op, ..)) = inst.kind.as_op() {
        return match op.row().meaning {
            Meaning::Eval(_) | Meaning::Expand(_) => components().map(of).sum(),
            Meaning::Lanes(..) => results().map(of).sum::<u32>() * OPERATIONS_BETWEEN_LANES,
            Meaning::Arrange | Meaning::Query => 0,
        };
    }
    let of_access = |access: &MemoryAccess<'_>| match access.mode {
        AccessMode::Read => components().map(of).sum(),
        AccessMode::Write => 1,
        AccessMode::Atomic { .. } => OPERATIONS_OF_ATOMIC,
    };
    inst.kind.accesses().iter().map(of_access).sum()
}

/// Whether a loop is made with masks and without: of nested ones, the innermost.
fn is_made_twice(inst: &Inst, classes: &Classes) -> bool {
    match &inst.kind {
        InstKind::For { body, .. } => {
            classes.is_masked(inst)
                && !body.exits().leaves_loop()
                && !holds_masked_loop(body, classes)
        }
        _other => false,
    }
}

fn walk<'k>(region: &'k Region, f: &mut dyn FnMut(&'k Inst)) {
    for inst in &region.insts {
        f(inst);
        for inner in inst.kind.regions() {
            walk(inner, f);
        }
    }
}
