// Kernel @transpose, written by Invar.
// Source: transpose.inv

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

var<workgroup> tile: array<f32, 272>;
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

fn x__load(i: u32) -> f32 {
    if (i < constants.x__length) {
        return x[i];
    }
    return 0.0;
}

fn tile__store(i: u32, value: f32) {
    if (exists && i < 272u) {
        tile[i] = value;
    }
}

fn tile__load(i: u32) -> f32 {
    if (i < 272u) {
        return tile[i];
    }
    return 0.0;
}

fn y__store(i: u32, value: f32) {
    if (exists && i < constants.y__length) {
        y[i] = value;
    }
}

@compute @workgroup_size(256)
fn transpose_2(@builtin(workgroup_id) workgroup__id: vec3<u32>, @builtin(local_invocation_index) local__index: u32) {
    threadgroup = workgroup__id + vec3<u32>(constants.first_x, constants.first_y, constants.first_z);
    if (constants.row != 0u) {
        // A long line of threadgroups in rows, the last one perhaps not full.
        threadgroup = vec3<u32>(workgroup__id.y * constants.row + workgroup__id.x, 0u, 0u);
        if (threadgroup.x >= constants.threadgroups_y) {
            return;
        }
    }
    // Threadgroups side by side in y are launched one after another.
    threadgroup = threadgroup.yxz;
    threadgroup_size = min(vec3<u32>(16u, 16u, 1u), vec3<u32>(constants.threads_x, constants.threads_y, constants.threads_z) - threadgroup * vec3<u32>(16u, 16u, 1u));
    thread = local__index;
    thread_count = threadgroup_size.x * threadgroup_size.y * threadgroup_size.z;
    exists = thread < thread_count;
    if (all(threadgroup_size == vec3<u32>(16u, 16u, 1u))) {
        position = vec3<u32>(thread % 16u, thread / 16u % 16u, thread / (16u * 16u));
    } else {
        position = vec3<u32>(thread % threadgroup_size.x, thread / threadgroup_size.x % threadgroup_size.y, thread / (threadgroup_size.x * threadgroup_size.y));
    }
    for (var slot = local__index; slot < 272u; slot += 256u) { tile[slot] = 0.0; }
    workgroupBarrier();
    let n = constants.n__value;
    // 3: %tile = alloc threadgroup f32[272]
    // 4: %column = thread_position_in_grid x
    let column = threadgroup.x * 16u + position.x;
    // 5: %row = thread_position_in_grid y
    let row = threadgroup.y * 16u + position.y;
    // 6: %tx = thread_position_in_threadgroup x
    let tx = position.x;
    // 7: %ty = thread_position_in_threadgroup y
    let ty = position.y;
    // 9: %start = mul %row, %n
    let start = row * n;
    // 10: %from = add %start, %column
    let from_2 = start + column;
    // 11: %v = load %x[%from]
    let v = x__load(from_2);
    // 12: %line = mul %ty, %seventeen
    let line = ty * 17u;
    // 13: %at = add %line, %tx
    let at = line + tx;
    // 14: store %tile[%at], %v
    tile__store(at, v);
    // 15: barrier threadgroup [threadgroup]
    workgroupBarrier();
    // 16: %w = load %tile[%at]
    let w = tile__load(at);
    // 17: %line2 = mul %column, %n
    let line2 = column * n;
    // 18: %to = add %line2, %row
    let to = line2 + row;
    // 19: store %y[%to], %w
    y__store(to, w);
}
