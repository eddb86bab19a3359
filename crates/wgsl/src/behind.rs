//! Where naga's checks are behind the standard.
//!
//! The lane that a subgroup function names may be an `i32`, and so may be a literal by itself; naga takes `u32`. A
//! function may end in a loop that nothing but a `return` leaves; naga asks for a value behind it. What naga checks
//! instead is the module in which the lane is converted, and such an end gives zero. Expressions come at the end of
//! their functions and no other moves, so that what naga finds out of each holds for the module as it was read.

use naga::front::Typifier;
use naga::proc::ResolveContext;
use naga::{
    Block, Expression, Function, GatherMode, Handle, Module, Range, Scalar, ScalarKind, Span,
    Statement, TypeInner,
};

use crate::tree::{blocks, breaks};

/// The lane that a subgroup function names.
fn lane(mode: &mut GatherMode) -> Option<&mut Handle<Expression>> {
    match mode {
        GatherMode::Broadcast(lane)
        | GatherMode::Shuffle(lane)
        | GatherMode::ShuffleDown(lane)
        | GatherMode::ShuffleUp(lane)
        | GatherMode::ShuffleXor(lane)
        | GatherMode::QuadBroadcast(lane) => Some(lane),
        GatherMode::BroadcastFirst | GatherMode::QuadSwap(_) => None,
    }
}

fn gathers(block: &Block) -> bool {
    block.iter().any(|s| match s {
        Statement::SubgroupGather { .. } => true,
        nested => blocks(nested).into_iter().any(gathers),
    })
}

/// Whether a block may end behind a loop that no `break` leaves.
fn endless(block: &Block) -> bool {
    let mut last = block.iter().rev();
    match last.next() {
        Some(Statement::Return { value: None }) => last.next().is_some_and(is_endless),
        Some(Statement::Loop { .. }) | None => false,
        Some(nested) => blocks(nested).into_iter().any(endless),
    }
}

fn is_endless(statement: &Statement) -> bool {
    match statement {
        Statement::Loop {
            body,
            break_if: None,
            ..
        } => !breaks(body),
        _another => false,
    }
}

/// The module that naga checks instead of one with such lanes and ends.
pub(crate) fn without(shader: &Module) -> Option<Module> {
    let ours = shader.functions.iter().map(|(_, f)| f);
    let mut all = ours.chain(shader.entry_points.iter().map(|e| &e.function));
    if !all.any(|f| gathers(&f.body) || (f.result.is_some() && endless(&f.body))) {
        return None;
    }
    let mut module = shader.clone();
    for (_, function) in module.functions.iter_mut() {
        with_unsigned_lanes(shader, function);
        with_values_at_ends(function);
    }
    for point in &mut module.entry_points {
        with_unsigned_lanes(shader, &mut point.function);
    }
    Some(module)
}

fn with_values_at_ends(function: &mut Function) {
    if let Some(result) = &function.result
        && endless(&function.body)
    {
        let zero = Expression::ZeroValue(result.ty);
        let zero = function.expressions.append(zero, Span::UNDEFINED);
        give(&mut function.body, zero);
    }
}

fn give(block: &mut Block, given: Handle<Expression>) {
    if !endless(block) {
        return;
    }
    match block.last_mut() {
        Some(Statement::Return { value }) => *value = Some(given),
        Some(Statement::Block(block)) => give(block, given),
        Some(Statement::If { accept, reject, .. }) => {
            give(accept, given);
            give(reject, given);
        }
        Some(Statement::Switch { cases, .. }) => {
            for case in cases {
                give(&mut case.body, given);
            }
        }
        _no_end => {}
    }
}

fn with_unsigned_lanes(shader: &Module, function: &mut Function) {
    let signed = signed(shader, function);
    let mut body = std::mem::take(&mut function.body);
    convert(&mut body, function, &signed);
    function.body = body;
}

/// By expression, whether it is an `i32`; of a function with mistakes, which naga finds, nothing.
fn signed(shader: &Module, function: &Function) -> Vec<bool> {
    let context =
        ResolveContext::with_locals(shader, &function.local_variables, &function.arguments);
    let all = &function.expressions;
    let mut types = Typifier::new();
    for (handle, _) in all.iter() {
        if types.grow(handle, all, &context).is_err() {
            return Vec::new();
        }
    }
    let is_signed = |handle| {
        let ty = types.get(handle, &shader.types);
        matches!(ty, TypeInner::Scalar(Scalar::I32))
    };
    all.iter().map(|(handle, _)| is_signed(handle)).collect()
}

/// Converts the lanes that are `i32`, of which the list says which are.
fn convert(block: &mut Block, function: &mut Function, signed: &[bool]) {
    let mut out = Block::with_capacity(block.len());
    for (mut statement, span) in std::mem::take(block).span_into_iter() {
        match &mut statement {
            Statement::SubgroupGather { mode, .. } => {
                if let Some(lane) = lane(mode)
                    && signed.get(lane.index()) == Some(&true)
                {
                    let converted = Expression::As {
                        expr: *lane,
                        kind: ScalarKind::Uint,
                        convert: Some(4),
                    };
                    let place = function.expressions.get_span(*lane);
                    *lane = function.expressions.append(converted, place);
                    out.push(Statement::Emit(Range::new_from_bounds(*lane, *lane)), place);
                }
            }
            Statement::Block(block) => convert(block, function, signed),
            Statement::If { accept, reject, .. } => {
                convert(accept, function, signed);
                convert(reject, function, signed);
            }
            Statement::Switch { cases, .. } => {
                for case in cases {
                    convert(&mut case.body, function, signed);
                }
            }
            Statement::Loop {
                body, continuing, ..
            } => {
                convert(body, function, signed);
                convert(continuing, function, signed);
            }
            _simple => {}
        }
        out.push(statement, span);
    }
    *block = out;
}
