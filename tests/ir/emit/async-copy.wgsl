// Kernel @stage, written by Invar.
// Source: async-copy.inv
// Needs integers of 64 bits, `i64` and `u64`: naga and wgpu have them, browsers have not.

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

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
    x__length: u32,
    y__length: u32,
    n__value: u32,
    padding_13: u32,
    padding_14: u32,
    padding_15: u32,
}
@group(0) @binding(2) var<uniform> constants: Constants;

var<workgroup> tile: array<f32, 64>;
// The threadgroup's position in the grid.
var<private> threadgroup: vec3<u32>;
// The size of this threadgroup, smaller at an edge of the grid.
var<private> threadgroup_size: vec3<u32>;
// The threads of this threadgroup, and whether this is one of them.
var<private> thread_count: u32;
var<private> exists: bool;
// The thread's number in its threadgroup.
var<private> thread: u32;

fn i64__index(i: i64) -> u32 {
    return select(u32(i), 0xffffffffu, i < 0li || i > 4294967294li);
}

fn tile__store(i: u32, value: f32) {
    if (exists && i < 64u) {
        tile[i] = value;
    }
}

fn x__load(i: u32) -> f32 {
    if (i < constants.x__length) {
        return x[i];
    }
    return 0.0;
}

fn tile__async_copy_x(to: i64, source: i64, count: i64) {
    let end = min(count, i64(u64(64u)) - to);
    let step = i64(min(thread_count - thread / 32u * 32u, 32u));
    for (var n = max(0li, -to) + i64(thread % 32u); n < end; n = n + step) {
        let i = i64__index(to + n);
        let j = i64__index(source + n);
        tile__store(i, x__load(j));
    }
}

fn tile__load(i: u32) -> f32 {
    if (i < 64u) {
        return tile[i];
    }
    return 0.0;
}

fn y__store(i: u32, value: f32) {
    if (exists && i < constants.y__length) {
        y[i] = value;
    }
}

@compute @workgroup_size(64)
fn stage(@builtin(workgroup_id) workgroup__id: vec3<u32>, @builtin(local_invocation_index) local__index: u32) {
    threadgroup = workgroup__id + vec3<u32>(constants.first_x, constants.first_y, constants.first_z);
    if (constants.row != 0u) {
        // A long line of threadgroups in rows, the last one perhaps not full.
        threadgroup = vec3<u32>(workgroup__id.y * constants.row + workgroup__id.x, 0u, 0u);
        if (threadgroup.x >= constants.threadgroups_x) {
            return;
        }
    }
    threadgroup_size = min(vec3<u32>(64u, 1u, 1u), vec3<u32>(constants.threads_x, constants.threads_y, constants.threads_z) - threadgroup * vec3<u32>(64u, 1u, 1u));
    thread = local__index;
    thread_count = threadgroup_size.x * threadgroup_size.y * threadgroup_size.z;
    exists = thread < thread_count;
    if (local__index < 64u) { let slot = local__index; tile[slot] = 0.0; }
    workgroupBarrier();
    let n = constants.n__value;
    // 3: %tile = alloc threadgroup f32[64]
    // 4: %t = thread_index_in_threadgroup
    let t = thread;
    // 6: %e = async_copy %tile[%zero], %x[%zero], %n
    if (exists) { tile__async_copy_x((0li), (0li), i64(u64(n))); }
    // 7: wait %e
    storageBarrier();
    workgroupBarrier();
    // 8: barrier threadgroup [threadgroup]
    workgroupBarrier();
    // 9: %v = load %tile[%t]
    let v = tile__load(t);
    // 10: store %y[%t], %v
    y__store(t, v);
}
