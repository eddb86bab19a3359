// Kernel @histogram, written by Invar.
// Source: histogram.inv
// Needs integers of 64 bits, `i64` and `u64`: naga and wgpu have them, browsers have not.

@group(0) @binding(0) var<storage, read> text: array<u32>;
@group(0) @binding(1) var<storage, read_write> counts: array<atomic<u32>>;

struct Constants {
    threads_x: u32,
    threads_y: u32,
    threads_z: u32,
    threadgroups_x: u32,
    threadgroups_y: u32,
    threadgroups_z: u32,
    first_x: u32,
    first_y: u32,
    first_z: u32,
    row: u32,
    text__length: u32,
    counts__length: u32,
}
@group(0) @binding(2) var<uniform> constants: Constants;

var<workgroup> local: array<atomic<u32>, 256>;
// The threadgroup's position in the grid.
var<private> threadgroup: vec3<u32>;
// The size of this threadgroup, smaller at an edge of the grid.
var<private> threadgroup_size: vec3<u32>;
// The threads of this threadgroup, and whether this is one of them.
var<private> thread_count: u32;
var<private> exists: bool;
// The thread's number in its threadgroup.
var<private> thread: u32;
// The thread's position in its threadgroup.
var<private> position: vec3<u32>;

fn text__load(i: u32) -> u32 {
    if (i < constants.text__length) {
        return ((text[(i) >> 2u] >> (((i) & 3u) * 8u)) & 0xffu);
    }
    return 0u;
}

fn local__atomic_add(i: u32, value: u32) -> u32 {
    if (exists && i < 256u) {
        return atomicAdd(&local[i], value);
    }
    return 0u;
}

fn local__atomic_load(i: u32) -> u32 {
    if (exists && i < 256u) {
        return atomicLoad(&local[i]);
    }
    return 0u;
}

fn counts__atomic_add(i: u32, value: u32) -> u32 {
    if (exists && i < constants.counts__length) {
        return atomicAdd(&counts[i], value);
    }
    return 0u;
}

@compute @workgroup_size(256)
fn histogram(@builtin(workgroup_id) workgroup__id: vec3<u32>, @builtin(local_invocation_index) local__index: u32) {
    threadgroup = workgroup__id + vec3<u32>(constants.first_x, constants.first_y, constants.first_z);
    if (constants.row != 0u) {
        // A long line of threadgroups in rows, the last one perhaps not full.
        threadgroup = vec3<u32>(workgroup__id.y * constants.row + workgroup__id.x, 0u, 0u);
        if (threadgroup.x >= constants.threadgroups_x) {
            return;
        }
    }
    threadgroup_size = min(vec3<u32>(256u, 1u, 1u), vec3<u32>(constants.threads_x, constants.threads_y, constants.threads_z) - threadgroup * vec3<u32>(256u, 1u, 1u));
    thread = local__index;
    thread_count = threadgroup_size.x * threadgroup_size.y * threadgroup_size.z;
    exists = thread < thread_count;
    position = vec3<u32>(thread, 0u, 0u);
    if (local__index < 256u) { let slot = local__index; atomicStore(&local[slot], 0u); }
    workgroupBarrier();
    // 3: %local = alloc threadgroup u32[256]
    // 4: %t = thread_index_in_threadgroup
    let t = thread;
    // 5: %i = thread_position_in_grid x
    let i = threadgroup.x * 256u + position.x;
    // 6: %length = buffer_length %text
    let length_2 = u64(constants.text__length);
    // 7: %here = cast u64 %i
    let here = u64(i);
    // 8: %inside = lt %here, %length
    let inside = here < length_2;
    // 10: if %inside {
    if (exists) {
        if (inside) {
            // 11: %byte = load %text[%i]
            let byte = text__load(i);
            // 12: %old = atomic_add %local[%byte], %one
            let old = local__atomic_add(byte, 1u);
        }
    }
    // 14: barrier threadgroup [threadgroup]
    workgroupBarrier();
    // 15: %n = atomic_load %local[%t]
    let n = local__atomic_load(t);
    // 16: %before = atomic_add %counts[%t], %n
    let before = counts__atomic_add(t, n);
}
