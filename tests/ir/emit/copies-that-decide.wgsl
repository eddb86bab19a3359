// Kernel @gather, written by Invar.
// Source: copies-that-decide.inv
// Needs integers of 64 bits, `i64` and `u64`: naga and wgpu have them, browsers have not.

@group(0) @binding(0) var<storage, read_write> x: array<atomic<u32>>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;

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
}
@group(0) @binding(2) var<uniform> constants: Constants;

var<private> first_memory: array<u32, 2>;
var<private> second: array<u32, 2>;
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

fn x__load(i: u32) -> u32 {
    if (i < constants.x__length) {
        return atomicLoad(&x[i]);
    }
    return 0u;
}

fn first_memory__store(i: u32, value: u32) {
    if (i < 2u) {
        first_memory[i] = value;
    }
}

fn i64__index(i: i64) -> u32 {
    return select(u32(i), 0xffffffffu, i < 0li || i > 4294967294li);
}

fn second__store(i: u32, value: u32) {
    if (i < 2u) {
        second[i] = value;
    }
}

fn first_memory__load(i: u32) -> u32 {
    if (i < 2u) {
        return first_memory[i];
    }
    return 0u;
}

fn second__copy_first_memory(to: i64, source: i64, count: i64) {
    let end = min(count, i64(u64(2u)) - to);
    let step = 1li;
    for (var n = max(0li, -to); n < end; n = n + step) {
        let i = i64__index(to + n);
        let j = i64__index(source + n);
        second__store(i, first_memory__load(j));
    }
}

fn second__load(i: u32) -> u32 {
    if (i < 2u) {
        return second[i];
    }
    return 0u;
}

fn y__store(i: u32, value: u32) {
    if (i < constants.y__length) {
        y[i] = value;
    }
}

fn x__store(i: u32, value: u32) {
    if (i < constants.x__length) {
        atomicStore(&x[i], value);
    }
}

@compute @workgroup_size(64)
fn gather(@builtin(workgroup_id) workgroup__id: vec3<u32>, @builtin(local_invocation_index) local__index: u32) {
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
    position = vec3<u32>(thread, 0u, 0u);
    if (!exists) {
        return;
    }
    // 3: %i = thread_position_in_grid x
    let i = threadgroup.x * 64u + position.x;
    // 4: %first = alloc thread u32[2]
    // 5: %second = alloc thread u32[2]
    // 8: %place = load %x[%i]
    let place = x__load(i);
    // 9: store %first[%zero], %place
    first_memory__store(0u, place);
    // 10: copy %second[%zero], %first[%zero], %two
    second__copy_first_memory((0li), (0li), (2li));
    // 11: %at = load %second[%zero]
    let at = second__load(0u);
    // 12: %v = load %x[%at]
    let v = x__load(at);
    // 13: store %y[%i], %v
    y__store(i, v);
    // 14: store %x[%i], %zero
    x__store(i, 0u);
}
