//! Where naga's checks are behind the standard.
//!
//! The lane that a subgroup function names may be an `i32`, and so may be a literal by itself; naga takes `u32`. A
//! function may end in a loop that nothing but a `return` leaves; naga asks for a value behind it. A uniform is laid
//! out as what is in storage (`uniform_buffer_standard_layout`), and an immediate may hold `f16`, which naga takes in
//! storage only. Entry points have the builtins of `linear_indexing`, and those of subgroups also where a workgroup has
//! more than one dimension. A `let` that is zero is no constant, and may be divided by. What naga checks instead is the module in which the lane is converted, such an end gives
//! zero, such a variable is in storage, such a parameter of an entry point is zero, and such a division is a sum. Expressions come at the end of
//! their functions and no other moves, so that what naga finds out of each holds for the module as it was read.

use naga::front::Typifier;
use naga::proc::ResolveContext;
use naga::{
    AddressSpace, ArraySize, BinaryOperator, Binding, Block, BuiltIn, EntryPoint, Expression,
    Function, FunctionArgument, GatherMode, GlobalVariable, Handle, Literal, Module, Range,
    ResourceBinding, Scalar, ScalarKind, ShaderStage, Span, Statement, StorageAccess, Type,
    TypeInner, VectorSize,
};

use crate::enable::linear_index;
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

/// The group of variables that stand for uniforms and immediates; no shader has one of this number.
const GROUP: u32 = u32::MAX - 1;

/// The module that naga checks instead of one with such lanes, ends, variables and parameters. With `linear` there
/// are builtins of `linear_indexing`.
pub(crate) fn without(shader: &Module, linear: bool) -> Option<Module> {
    let ours = shader.functions.iter().map(|(_, f)| f);
    let mut all = ours.chain(shader.entry_points.iter().map(|e| &e.function));
    let moves = moved(shader);
    let unchecked = |point: &EntryPoint| {
        let arguments = point.function.arguments.iter();
        arguments
            .map(|a| is_unchecked(shader, point, a, linear))
            .collect::<Vec<_>>()
    };
    let unchecked: Vec<Vec<bool>> = shader.entry_points.iter().map(unchecked).collect();
    if moves.is_empty()
        && !unchecked.iter().flatten().any(|unchecked| *unchecked)
        && !all.any(|f| {
            gathers(&f.body)
                || (f.result.is_some() && endless(&f.body))
                || f.expressions
                    .iter()
                    .any(|(_, e)| divides_by_named_zero(f, e))
        })
    {
        return None;
    }
    let mut module = shader.clone();
    for (number, handle) in moves.into_iter().enumerate() {
        let variable = module.global_variables.get_mut(handle);
        variable.space = AddressSpace::Storage {
            access: StorageAccess::LOAD,
        };
        let binding = ResourceBinding {
            group: GROUP,
            binding: number as u32,
        };
        variable.binding.get_or_insert(binding);
    }
    for (point, unchecked) in module.entry_points.iter_mut().zip(&unchecked) {
        without_parameters(&mut point.function, unchecked);
    }
    for (_, function) in module.functions.iter_mut() {
        with_unsigned_lanes(shader, function);
        with_values_at_ends(function);
        without_zeros(function);
    }
    for point in &mut module.entry_points {
        with_unsigned_lanes(shader, &mut point.function);
        without_zeros(&mut point.function);
    }
    Some(module)
}

/// The uniforms that naga may take as something in storage only, and the immediates.
fn moved(shader: &Module) -> Vec<Handle<GlobalVariable>> {
    let variables = shader.global_variables.iter();
    let moves = |(_, variable): &(Handle<GlobalVariable>, &GlobalVariable)| match variable.space {
        AddressSpace::Uniform => {
            let ty = shader.types[variable.ty].inner.clone();
            matches!(ty, TypeInner::Array { .. } | TypeInner::Struct { .. })
                && is_plain(shader, variable.ty)
        }
        AddressSpace::Immediate => has_halves(shader, variable.ty),
        _another => false,
    };
    variables.filter(moves).map(|(handle, _)| handle).collect()
}

/// Whether a type is of fixed size and without atomics.
fn is_plain(shader: &Module, ty: Handle<Type>) -> bool {
    match &shader.types[ty].inner {
        TypeInner::Scalar(_) | TypeInner::Vector { .. } | TypeInner::Matrix { .. } => true,
        TypeInner::Array {
            base,
            size: ArraySize::Constant(_),
            ..
        } => is_plain(shader, *base),
        TypeInner::Struct { members, .. } => members.iter().all(|m| is_plain(shader, m.ty)),
        _another => false,
    }
}

fn has_halves(shader: &Module, ty: Handle<Type>) -> bool {
    match &shader.types[ty].inner {
        TypeInner::Struct { members, .. } => members.iter().any(|m| has_halves(shader, m.ty)),
        inner => inner.scalar() == Some(Scalar::F16),
    }
}

/// Whether naga is not to look at a parameter of an entry point, which is right.
fn is_unchecked(
    shader: &Module,
    point: &EntryPoint,
    argument: &FunctionArgument,
    linear: bool,
) -> bool {
    if point.stage != ShaderStage::Compute {
        return false;
    }
    let members = match &shader.types[argument.ty].inner {
        TypeInner::Struct { members, .. } if argument.binding.is_none() => {
            members.iter().map(|m| (m.ty, &m.binding)).collect()
        }
        _one => vec![(argument.ty, &argument.binding)],
    };
    let is_flat = point.workgroup_size[1..].iter().all(|n| *n == 1);
    let mut unchecked = false;
    let mut is_right = |(ty, binding): &(Handle<Type>, &Option<Binding>)| {
        let Some(Binding::BuiltIn(builtin)) = binding else {
            return false;
        };
        let number = TypeInner::Scalar(Scalar::U32);
        let vector = TypeInner::Vector {
            size: VectorSize::Tri,
            scalar: Scalar::U32,
        };
        let expected = match builtin {
            BuiltIn::GlobalInvocationId
            | BuiltIn::LocalInvocationId
            | BuiltIn::WorkGroupId
            | BuiltIn::NumWorkGroups => vector,
            BuiltIn::LocalInvocationIndex | BuiltIn::NumSubgroups | BuiltIn::SubgroupSize => number,
            BuiltIn::SubgroupId | BuiltIn::SubgroupInvocationId => {
                unchecked |= !is_flat;
                number
            }
            builtin if linear && linear_index(*builtin).is_some() => {
                unchecked = true;
                number
            }
            _another => return false,
        };
        shader.types[*ty].inner == expected
    };
    members.iter().all(&mut is_right) && unchecked
}

/// Has zero where those parameters are.
fn without_parameters(function: &mut Function, unchecked: &[bool]) {
    if !unchecked.contains(&true) {
        return;
    }
    let types: Vec<Handle<Type>> = function.arguments.iter().map(|a| a.ty).collect();
    for (_, expression) in function.expressions.iter_mut() {
        if let Expression::FunctionArgument(number) = expression {
            let at = *number as usize;
            match unchecked[at] {
                true => *expression = Expression::ZeroValue(types[at]),
                false => *number -= unchecked[..at].iter().filter(|u| **u).count() as u32,
            }
        }
    }
    let mut unchecked = unchecked.iter();
    function
        .arguments
        .retain(|_| unchecked.next() != Some(&true));
}

/// Whether a division is by a `let` that is zero, which is no constant of the standard's.
fn divides_by_named_zero(function: &Function, expression: &Expression) -> bool {
    let Expression::Binary {
        op: BinaryOperator::Divide | BinaryOperator::Modulo,
        right,
        ..
    } = expression
    else {
        return false;
    };
    has_zero(function, *right, false)
}

/// Whether a zero is in a value of which a `let` is the name, or of the part.
fn has_zero(function: &Function, handle: Handle<Expression>, is_named: bool) -> bool {
    let is_named = is_named || function.named_expressions.contains_key(&handle);
    match &function.expressions[handle] {
        Expression::Literal(Literal::I32(0) | Literal::U32(0)) | Expression::ZeroValue(_) => {
            is_named
        }
        Expression::Splat { value, .. } => has_zero(function, *value, is_named),
        Expression::Compose { components, .. } => {
            let mut parts = components.iter();
            parts.any(|part| has_zero(function, *part, is_named))
        }
        _another => false,
    }
}

/// Has sums, which are of the same types, where divisions are by such zeros.
fn without_zeros(function: &mut Function) {
    let by_zero =
        |(handle, e): (_, &Expression)| divides_by_named_zero(function, e).then_some(handle);
    let all: Vec<Handle<Expression>> = function.expressions.iter().filter_map(by_zero).collect();
    for handle in all {
        if let Expression::Binary { op, .. } = &mut function.expressions[handle] {
            *op = BinaryOperator::Add;
        }
    }
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
