// Kernel @transpose, written by Invar.
// Source: full-threadgroups.inv

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
    if (i < 272u) {
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
    if (i < constants.y__length) {
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
    thread = local__index;
    position = vec3<u32>(thread % 16u, thread / 16u % 16u, thread / (16u * 16u));
    let n = constants.n__value;
    // 5: %tile = alloc threadgroup f32[272]
    // 6: %tx = thread_position_in_threadgroup x
    let tx = position.x;
    // 7: %ty = thread_position_in_threadgroup y
    let ty = position.y;
    // 8: %row = thread_position_in_grid y
    let row = threadgroup.y * 16u + position.y;
    // 9: %column = thread_position_in_grid x
    let column = threadgroup.x * 16u + position.x;
    // 11: %p = mul %row, %n
    let p = row * n;
    // 12: %i = add %p, %column
    let i = p + column;
    // 13: %v = load %x[%i]
    let v = x__load(i);
    // 14: %l = mul %ty, %pitch
    let l = ty * 17u;
    // 15: %t = add %l, %tx
    let t = l + tx;
    // 16: store %tile[%t], %v
    tile__store(t, v);
    // 17: barrier threadgroup [threadgroup]
    workgroupBarrier();
    // 18: %m = mul %tx, %pitch
    let m = tx * 17u;
    // 19: %u = add %m, %ty
    let u = m + ty;
    // 20: %w = load %tile[%u]
    let w = tile__load(u);
    // 21: %q = mul %column, %n
    let q = column * n;
    // 22: %o = add %q, %row
    let o = q + row;
    // 23: store %y[%o], %w
    y__store(o, w);
}
// Kernel @sum, written by Invar.
// Source: full-threadgroups.inv

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> z: array<f32>;

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
    z__length: u32,
    padding_13: u32,
    padding_14: u32,
    padding_15: u32,
}
@group(0) @binding(3) var<uniform> constants: Constants;

// The threadgroup's position in the grid.
var<private> threadgroup: vec3<u32>;
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

fn f32__shuffle(x: f32, source: u32) -> f32 {
    return subgroupShuffle(x, source);
}

// Never written: it keeps bits that make no literal from being folded.
var<private> zero_bits: u32;

fn f32__simd_sum(x: f32) -> f32 {
    var all_of = x;
    {
        let other = subgroupShuffleXor(all_of, 1u);
        all_of = all_of + other;
    }
    {
        let other = subgroupShuffleXor(all_of, 2u);
        all_of = all_of + other;
    }
    {
        let other = subgroupShuffleXor(all_of, 4u);
        all_of = all_of + other;
    }
    {
        let other = subgroupShuffleXor(all_of, 8u);
        all_of = all_of + other;
    }
    {
        let other = subgroupShuffleXor(all_of, 16u);
        all_of = all_of + other;
    }
    return all_of;
}

// The order of floats as unsigned integers: NaN, -inf, ..., -0, 0, ..., inf.
fn f32__order(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    return (bits ^ (u32(bitcast<i32>(x) >> 31u) & 0x7fffffffu)) - 0x7f800001u;
}

fn f32__unorder(order: u32) -> f32 {
    let bits = order + 0x7f800001u;
    return bitcast<f32>(bits ^ (u32(bitcast<i32>(bits) >> 31u) & 0x7fffffffu));
}

fn f32__simd_max(x: f32) -> f32 {
    return f32__unorder(subgroupMax(f32__order(x)));
}

fn y__store(i: u32, value: f32) {
    if (i < constants.y__length) {
        y[i] = value;
    }
}

fn z__store(i: u32, value: f32) {
    if (i < constants.z__length) {
        z[i] = value;
    }
}

@compute @workgroup_size(64)
fn sum(@builtin(workgroup_id) workgroup__id: vec3<u32>, @builtin(local_invocation_index) local__index: u32, @builtin(subgroup_id) subgroup__id: u32, @builtin(subgroup_invocation_id) subgroup__lane: u32) {
    threadgroup = workgroup__id + vec3<u32>(constants.first_x, constants.first_y, constants.first_z);
    if (constants.row != 0u) {
        // A long line of threadgroups in rows, the last one perhaps not full.
        threadgroup = vec3<u32>(workgroup__id.y * constants.row + workgroup__id.x, 0u, 0u);
        if (threadgroup.x >= constants.threadgroups_x) {
            return;
        }
    }
    thread = subgroup__id * 32u + subgroup__lane;
    position = vec3<u32>(thread, 0u, 0u);
    // 27: %i = thread_position_in_grid x
    let i = threadgroup.x * 64u + position.x;
    // 28: %v = load %x[%i]
    let v = x__load(i);
    // 29: %s = simd_sum %v
    let s = f32__simd_sum(v);
    // 30: %m = simd_max %v
    let m = f32__simd_max(v);
    // 31: store %y[%i], %s
    y__store(i, s);
    // 32: store %z[%i], %m
    z__store(i, m);
}
