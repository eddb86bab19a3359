// Kernel @sums, written by Invar.
// Source: simdgroup-sum.inv

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;

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
    out__length: u32,
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
    let place = thread % 32u;
    let first = thread % 32u - place;
    let count = min(thread_count - min(thread - place, thread_count), 32u);
    var all_of = select(bitcast<f32>(0x80000000u | zero_bits), x, place < count);
    for (var d = 1u; d < 32u; d = d * 2u) {
        let source = (place ^ d) & ~(d - 1u);
        let theirs = f32__shuffle(all_of, first + source);
        let other = select(bitcast<f32>(0x80000000u | zero_bits), theirs, source < count);
        all_of = all_of + other;
    }
    return all_of;
}

fn f32__simd_prefix_exclusive_sum(x: f32) -> f32 {
    let place = thread % 32u;
    let first = thread % 32u - place;
    let count = min(thread_count - min(thread - place, thread_count), 32u);
    var all_of = x;
    for (var d = 1u; d < 32u; d = d * 2u) {
        let below = f32__shuffle(all_of, first + place - min(d, place));
        if (place >= d) {
            all_of = below + all_of;
        }
    }
    let before = f32__shuffle(all_of, first + place - min(1u, place));
    return select(0.0f, before, place > 0u);
}

fn f32__simd_shuffle_down(x: f32, delta: i32) -> f32 {
    let place = thread % 32u;
    let first = thread % 32u - place;
    let count = min(thread_count - min(thread - place, thread_count), 32u);
    let source = u32(i32(place) + delta);
    return select(0.0, f32__shuffle(x, first + min(source, 31u)), source < count);
}

fn out__store(i: u32, value: f32) {
    if (exists && i < constants.out__length) {
        out[i] = value;
    }
}

@compute @workgroup_size(64)
fn sums(@builtin(workgroup_id) workgroup__id: vec3<u32>, @builtin(local_invocation_index) local__index: u32, @builtin(subgroup_id) subgroup__id: u32, @builtin(subgroup_invocation_id) subgroup__lane: u32) {
    threadgroup = workgroup__id + vec3<u32>(constants.first_x, constants.first_y, constants.first_z);
    if (constants.row != 0u) {
        // A long line of threadgroups in rows, the last one perhaps not full.
        threadgroup = vec3<u32>(workgroup__id.y * constants.row + workgroup__id.x, 0u, 0u);
        if (threadgroup.x >= constants.threadgroups_x) {
            return;
        }
    }
    threadgroup_size = min(vec3<u32>(64u, 1u, 1u), vec3<u32>(constants.threads_x, constants.threads_y, constants.threads_z) - threadgroup * vec3<u32>(64u, 1u, 1u));
    thread = subgroup__id * 32u + subgroup__lane;
    thread_count = threadgroup_size.x * threadgroup_size.y * threadgroup_size.z;
    exists = thread < thread_count;
    position = vec3<u32>(thread, 0u, 0u);
    // 3: %i = thread_position_in_grid x
    let i = threadgroup.x * 64u + position.x;
    // 4: %v = load %x[%i]
    let v = x__load(i);
    // 5: %s = simd_sum %v
    let s = f32__simd_sum(v);
    // 6: %p = simd_prefix_exclusive_sum %v
    let p = f32__simd_prefix_exclusive_sum(v);
    // 8: %d = simd_shuffle_down %v, %one
    let d = f32__simd_shuffle_down(v, 1i);
    // 9: %a = add %s, %p
    let a = s + p;
    // 10: %b = add %a, %d
    let b = a + d;
    // 11: store %out[%i], %b
    out__store(i, b);
}
