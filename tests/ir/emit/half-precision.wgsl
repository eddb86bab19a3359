// Kernel @halves, written by Invar.
// Source: half-precision.inv

enable f16;
alias float16 = f16;

@group(0) @binding(0) var<storage, read> x: array<vec4<float16>>;
@group(0) @binding(1) var<storage, read_write> y: array<float16>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;

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
    out__length: u32,
    scale__value: u32,
    padding_14: u32,
    padding_15: u32,
}
@group(0) @binding(3) var<uniform> constants: Constants;

var<workgroup> tile: array<float16, 32>;
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

fn x__load_group4(i: u32) -> vec4<float16> {
    let whole = constants.x__length / 4u;
    if (i < whole) {
        return x[i];
    }
    var value = vec4<float16>();
    if (i == whole) {
        let at = i * 4u;
        let rest = constants.x__length - i * 4u;
        if (0u < rest) { value.x = x[(at) / 4u][(at) % 4u]; }
        if (1u < rest) { value.y = x[(at + 1u) / 4u][(at + 1u) % 4u]; }
        if (2u < rest) { value.z = x[(at + 2u) / 4u][(at + 2u) % 4u]; }
    }
    return value;
}

fn f16x4__extract(x: vec4<float16>, i: u32) -> float16 {
    if (i < 4u) {
        var y = x;
        return y[i];
    }
    return float16(0.0);
}

fn tile__store(i: u32, value: float16) {
    if (exists && i < 32u) {
        tile[i] = value;
    }
}

fn tile__load(i: u32) -> float16 {
    if (i < 32u) {
        return tile[i];
    }
    return float16(0.0);
}

// Never written: it keeps bits that make no literal from being folded.
var<private> zero_bits: u32;

// The nearest f16, ties to even.
fn f16__round(x: f32) -> float16 {
    let bits = bitcast<u32>(x);
    let sign = bits & 0x80000000u;
    let magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
        return float16(x);
    }
    if (magnitude >= 0x477ff000u) {
        return float16(bitcast<f32>(sign | 0x7f800000u));
    }
    if (magnitude < 0x38800000u) {
        let steps = round(bitcast<f32>(magnitude) * 16777216.0);
        return float16(bitcast<f32>(bitcast<u32>(steps * 0.000000059604644775390625) | sign));
    }
    return float16(bitcast<f32>(sign | ((magnitude + 0x0fffu + ((magnitude >> 13u) & 1u)) & 0xffffe000u)));
}

fn f32__is_nan(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

fn f32__min(a: f32, b: f32) -> f32 {
    // Equal numbers have the same bits, but for zeros.
    let smaller = select(b, a, a < b || f32__is_nan(b));
    return select(smaller, bitcast<f32>(bitcast<u32>(a) | bitcast<u32>(b)), a == b);
}

fn f16__min(a: float16, b: float16) -> float16 {
    return float16(f32__min(f32(a), f32(b)));
}

fn f16__shuffle(x: float16, source: u32) -> float16 {
    return float16(subgroupShuffle(f32(x), source));
}

fn f16__simd_sum(x: float16) -> float16 {
    let place = thread % 32u;
    let first = thread % 32u - place;
    let count = min(thread_count - min(thread - place, thread_count), 32u);
    var all_of = select(float16(bitcast<f32>(0x80000000u | zero_bits)), x, place < count);
    for (var d = 1u; d < 32u; d = d * 2u) {
        let source = (place ^ d) & ~(d - 1u);
        let theirs = f16__shuffle(all_of, first + source);
        let other = select(float16(bitcast<f32>(0x80000000u | zero_bits)), theirs, source < count);
        all_of = all_of + other;
    }
    return all_of;
}

fn out__store(i: u32, value: f32) {
    if (exists && i < constants.out__length) {
        out[i] = value;
    }
}

fn y__store(i: u32, value: float16) {
    if (exists && i < constants.y__length) {
        y[i] = value;
    }
}

@compute @workgroup_size(32)
fn halves(@builtin(workgroup_id) workgroup__id: vec3<u32>, @builtin(local_invocation_index) local__index: u32, @builtin(subgroup_id) subgroup__id: u32, @builtin(subgroup_invocation_id) subgroup__lane: u32) {
    threadgroup = workgroup__id + vec3<u32>(constants.first_x, constants.first_y, constants.first_z);
    if (constants.row != 0u) {
        // A long line of threadgroups in rows, the last one perhaps not full.
        threadgroup = vec3<u32>(workgroup__id.y * constants.row + workgroup__id.x, 0u, 0u);
        if (threadgroup.x >= constants.threadgroups_x) {
            return;
        }
    }
    threadgroup_size = min(vec3<u32>(32u, 1u, 1u), vec3<u32>(constants.threads_x, constants.threads_y, constants.threads_z) - threadgroup * vec3<u32>(32u, 1u, 1u));
    thread = subgroup__id * 32u + subgroup__lane;
    thread_count = threadgroup_size.x * threadgroup_size.y * threadgroup_size.z;
    exists = thread < thread_count;
    position = vec3<u32>(thread, 0u, 0u);
    if (local__index < 32u) { let slot = local__index; tile[slot] = float16(0.0); }
    workgroupBarrier();
    let scale = float16(unpack2x16float((constants.scale__value & 0xffffu)).x);
    // 3: %tile = alloc threadgroup f16[32]
    // 4: %t = thread_index_in_threadgroup
    let t = thread;
    // 5: %i = thread_position_in_grid x
    let i = threadgroup.x * 32u + position.x;
    // 6: %four = load %x[%i * 4]
    let four = x__load_group4(i);
    // 7: %pair = swizzle xy %four
    let pair = four.xy;
    // 8: %first = extract %four, %t
    let first = f16x4__extract(four, t);
    // 9: store %tile[%t], %first
    tile__store(t, first);
    // 10: barrier threadgroup [threadgroup]
    workgroupBarrier();
    // 12: %shared = load %tile[%zero]
    let shared_2 = tile__load(0u);
    // 15: %product = mul %shared, %scale
    let product = shared_2 * scale;
    // 16: %sum = add %product, %third
    let sum = fma(shared_2, scale, 0.33325195h);
    // 17: %quotient = div %sum, %scale
    let quotient = f16__round(f32(sum) / f32(scale));
    // 18: %root = sqrt %quotient
    let root = f16__round(sqrt(f32(quotient)));
    // 19: %least = min %root, %tiny
    let least = f16__min(root, float16(bitcast<f32>(0x33800000u | zero_bits)));
    // 20: %all = simd_sum %least
    let all_2 = f16__simd_sum(least);
    // 21: %two = construct f16x2 %all, %sum
    let two = vec2<float16>(all_2, sum);
    // 22: %moved = add %two, %pair
    let moved = two + pair;
    // 23: %wide = cast f32 %all
    let wide = f32(all_2);
    // 24: store %out[%i], %wide
    out__store(i, wide);
    // 25: %twice = add %wide, %wide
    let twice = wide + wide;
    // 26: %narrow = cast f16 %twice
    let narrow = f16__round(twice);
    // 27: %last = extract %moved, %zero
    let last = moved[0];
    // 28: %done = add %last, %narrow
    let done = last + narrow;
    // 29: store %y[%i], %done
    y__store(i, done);
}
