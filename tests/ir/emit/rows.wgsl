// Kernel @share, written by Invar.
// Source: rows.inv

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
}
@group(0) @binding(2) var<uniform> constants: Constants;

var<workgroup> parts: array<f32, 4>;
// The threadgroup's position in the grid.
var<private> threadgroup: vec3<u32>;
// The thread's number in its threadgroup.
var<private> thread: u32;

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

fn parts__store(i: u32, value: f32) {
    if (i < 4u) {
        parts[i] = value;
    }
}

fn parts__load(i: u32) -> f32 {
    if (i < 4u) {
        return parts[i];
    }
    return 0.0;
}

// By the reciprocal and one step of Newton: a target's own division takes longer, and may be wrong by
// what is larger than 2^126. The factors keep the reciprocal in range.
fn f32__div(a: f32, b: f32) -> f32 {
    let size = abs(b);
    let scale = select(select(1.0, 16777216.0, size < 1.2e-37), 0.0625, size > 8.5e37);
    let divisor = b * scale;
    let share = 1.0 / divisor;
    let quotient = (a * scale) * share;
    let better = fma(fma(-quotient, divisor, a * scale), share, quotient);
    // Of zeros, whose sign it would lose, of infinities and of what is not a number there is none better.
    let normal = abs(quotient) > 0.0 && abs(quotient) <= 3.4028234e38;
    return select(quotient, better, normal && size <= 3.4028234e38);
}

fn y__store(i: u32, value: f32) {
    if (i < constants.y__length) {
        y[i] = value;
    }
}

@compute @workgroup_size(128)
fn share(@builtin(workgroup_id) workgroup__id: vec3<u32>, @builtin(local_invocation_index) local__index: u32, @builtin(subgroup_id) subgroup__id: u32, @builtin(subgroup_invocation_id) subgroup__lane: u32) {
    threadgroup = workgroup__id + vec3<u32>(constants.first_x, constants.first_y, constants.first_z);
    if (constants.row != 0u) {
        // A long line of threadgroups in rows, the last one perhaps not full.
        threadgroup = vec3<u32>(workgroup__id.y * constants.row + workgroup__id.x, 0u, 0u);
        if (threadgroup.x >= constants.threadgroups_x) {
            return;
        }
    }
    thread = subgroup__id * 32u + subgroup__lane;
    // 5: %parts = alloc threadgroup f32[4]
    // 6: %row = threadgroup_position_in_grid x
    let row = threadgroup.x;
    // 7: %t = thread_index_in_threadgroup
    let t = thread;
    // 8: %lane = thread_index_in_simdgroup
    let lane = thread % 32u;
    // 9: %sg = simdgroup_index_in_threadgroup
    let sg = thread / 32u;
    // 13: %base = mul %row, %n
    let base = row * 512u;
    // 16: %i = add %base, %j
    let v9 = base + t;
    // 17: %v = load %x[%i]
    let v10 = x__load(v9);
    // 15: %mine = for %j = %t to %n step %step carry(%s = %nothing) {
    let v11 = t + 128u;
    // 16: %i = add %base, %j
    let v12 = base + v11;
    // 17: %v = load %x[%i]
    let v13 = x__load(v12);
    // 15: %mine = for %j = %t to %n step %step carry(%s = %nothing) {
    let v15 = t + 256u;
    // 16: %i = add %base, %j
    let v16 = base + v15;
    // 17: %v = load %x[%i]
    let v17 = x__load(v16);
    // 15: %mine = for %j = %t to %n step %step carry(%s = %nothing) {
    let v19 = t + 384u;
    // 16: %i = add %base, %j
    let v20 = base + v19;
    // 17: %v = load %x[%i]
    let v21 = x__load(v20);
    // 18: %next = add %s, %v
    let v22 = 0.0f + v10;
    let v23 = v22 + v13;
    let v24 = v23 + v17;
    let v25 = v24 + v21;
    // 21: %lanes = simd_sum %mine
    let lanes = f32__simd_sum(v25);
    // 23: %first = eq %lane, %zero
    let first = lane == 0u;
    // 24: if %first {
    if (first) {
        // 25: store %parts[%sg], %lanes
        parts__store(sg, lanes);
    }
    // 27: barrier threadgroup [threadgroup]
    workgroupBarrier();
    // 28: %slot = and %lane, %three
    let slot = lane & 3u;
    // 29: %part = load %parts[%slot]
    let part = parts__load(slot);
    // 31: %all = simd_sum %part
    let all_2 = f32__simd_sum(part);
    // 32: %total = div %all, %four
    let total = all_2 / 8.0f;
    // 36: %share = div %w, %total
    let v34 = f32__div(v10, total);
    // 37: store %y[%at], %share
    y__store(v9, v34);
    // 36: %share = div %w, %total
    let v35 = f32__div(v13, total);
    // 37: store %y[%at], %share
    y__store(v12, v35);
    // 36: %share = div %w, %total
    let v36 = f32__div(v17, total);
    // 37: store %y[%at], %share
    y__store(v16, v36);
    // 36: %share = div %w, %total
    let v37 = f32__div(v21, total);
    // 37: store %y[%at], %share
    y__store(v20, v37);
}
