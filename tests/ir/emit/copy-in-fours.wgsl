// Kernel @copy4, written by Invar.
// Source: copy-in-fours.inv

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;

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

fn x__load_group4(i: u32) -> vec4<f32> {
    let whole = constants.x__length / 4u;
    if (i < whole) {
        return x[i];
    }
    var value = vec4<f32>();
    if (i == whole) {
        let at = i * 4u;
        let rest = constants.x__length - i * 4u;
        if (0u < rest) { value.x = x[(at) / 4u][(at) % 4u]; }
        if (1u < rest) { value.y = x[(at + 1u) / 4u][(at + 1u) % 4u]; }
        if (2u < rest) { value.z = x[(at + 2u) / 4u][(at + 2u) % 4u]; }
    }
    return value;
}

fn y__store_group4(i: u32, value: vec4<f32>) {
    let whole = constants.y__length / 4u;
    if (i < whole) {
        y[i] = value;
        return;
    }
    if (i == whole) {
        let at = i * 4u;
        let rest = constants.y__length - i * 4u;
        if (0u < rest) { y[(at) / 4u][(at) % 4u] = value.x; }
        if (1u < rest) { y[(at + 1u) / 4u][(at + 1u) % 4u] = value.y; }
        if (2u < rest) { y[(at + 2u) / 4u][(at + 2u) % 4u] = value.z; }
    }
}

@compute @workgroup_size(64)
fn copy4(@builtin(workgroup_id) workgroup__id: vec3<u32>, @builtin(local_invocation_index) local__index: u32) {
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
    // 4: %v = load %x[%i * 4]
    let v = x__load_group4(i);
    // 5: store %y[%i * 4], %v
    y__store_group4(i, v);
}
