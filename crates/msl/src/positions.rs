//! The positions, sizes and numbers of a thread that parameters of kernels have by their attributes.

use invar_ir::Op;

/// The attributes, the operation that gives each or that it is computed from, and whether that has three components.
pub(crate) const POSITIONS: [(&str, Op, bool); 20] = [
    (
        "dispatch_quadgroups_per_threadgroup",
        Op::DispatchThreadsPerThreadgroup,
        false,
    ),
    (
        "dispatch_simdgroups_per_threadgroup",
        Op::SimdgroupsPerThreadgroup,
        false,
    ),
    (
        "dispatch_threads_per_threadgroup",
        Op::DispatchThreadsPerThreadgroup,
        true,
    ),
    ("grid_origin", Op::ThreadPositionInGrid, true),
    ("grid_size", Op::ThreadsPerGrid, true),
    (
        "quadgroup_index_in_threadgroup",
        Op::ThreadIndexInThreadgroup,
        false,
    ),
    (
        "quadgroups_per_threadgroup",
        Op::ThreadsPerThreadgroup,
        false,
    ),
    (
        "simdgroup_index_in_threadgroup",
        Op::SimdgroupIndexInThreadgroup,
        false,
    ),
    (
        "simdgroups_per_threadgroup",
        Op::SimdgroupsPerThreadgroup,
        false,
    ),
    ("thread_execution_width", Op::ThreadsPerSimdgroup, false),
    (
        "thread_index_in_quadgroup",
        Op::ThreadIndexInQuadgroup,
        false,
    ),
    (
        "thread_index_in_simdgroup",
        Op::ThreadIndexInSimdgroup,
        false,
    ),
    (
        "thread_index_in_threadgroup",
        Op::ThreadIndexInThreadgroup,
        false,
    ),
    ("thread_position_in_grid", Op::ThreadPositionInGrid, true),
    (
        "thread_position_in_threadgroup",
        Op::ThreadPositionInThreadgroup,
        true,
    ),
    (
        "threadgroup_position_in_grid",
        Op::ThreadgroupPositionInGrid,
        true,
    ),
    ("threadgroups_per_grid", Op::ThreadgroupsPerGrid, true),
    ("threads_per_grid", Op::ThreadsPerGrid, true),
    ("threads_per_simdgroup", Op::ThreadsPerSimdgroup, false),
    ("threads_per_threadgroup", Op::ThreadsPerThreadgroup, true),
];

/// The operation of an attribute, and whether it has three components.
pub(crate) fn position(name: &str) -> Option<(Op, bool)> {
    let found = POSITIONS.iter().find(|(known, ..)| *known == name);
    found.map(|(_, op, has_components)| (*op, *has_components))
}
