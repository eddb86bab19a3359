// Kernel @halves, written by Invar.
// Source: half-precision-widened.inv

// Holds an f16.
alias float16 = f32;

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
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
        let at = i * 4u * 2u;
        return vec4<float16>(float16(unpack2x16float(((x[(at) >> 2u] >> (((at) & 3u) * 8u)) & 0xffffu)).x), float16(unpack2x16float(((x[(at + 2u) >> 2u] >> (((at + 2u) & 3u) * 8u)) & 0xffffu)).x), float16(unpack2x16float(((x[(at + 4u) >> 2u] >> (((at + 4u) & 3u) * 8u)) & 0xffffu)).x), float16(unpack2x16float(((x[(at + 6u) >> 2u] >> (((at + 6u) & 3u) * 8u)) & 0xffffu)).x));
    }
    var value = vec4<float16>();
    if (i == whole) {
        let at = i * 4u * 2u;
        let rest = constants.x__length - i * 4u;
        if (0u < rest) { value.x = float16(unpack2x16float(((x[(at) >> 2u] >> (((at) & 3u) * 8u)) & 0xffffu)).x); }
        if (1u < rest) { value.y = float16(unpack2x16float(((x[(at + 2u) >> 2u] >> (((at + 2u) & 3u) * 8u)) & 0xffffu)).x); }
        if (2u < rest) { value.z = float16(unpack2x16float(((x[(at + 4u) >> 2u] >> (((at + 4u) & 3u) * 8u)) & 0xffffu)).x); }
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

fn f16__shuffle(x: float16, source: u32) -> float16 {
    return subgroupShuffle(x, source);
}

// Never written: it keeps bits that make no literal from being folded.
var<private> zero_bits: u32;

fn f16__simd_sum(x: float16) -> float16 {
    let place = thread % 32u;
    let first = thread % 32u - place;
    let count = min(thread_count - min(thread - place, thread_count), 32u);
    var all_of = select(bitcast<f32>(0x80000000u | zero_bits), x, place < count);
    for (var d = 1u; d < 32u; d = d * 2u) {
        let source = (place ^ d) & ~(d - 1u);
        let theirs = f16__shuffle(all_of, first + source);
        let other = select(bitcast<f32>(0x80000000u | zero_bits), theirs, source < count);
        all_of = f16__round(all_of + other);
    }
    return all_of;
}

fn f16x2__round(x: vec2<f32>) -> vec2<float16> {
    return vec2<float16>(f16__round(x.x), f16__round(x.y));
}

fn out__store(i: u32, value: f32) {
    if (exists && i < constants.out__length) {
        out[i] = value;
    }
}

fn y__merge(word: u32, mask: u32, bits: u32) {
    loop {
        let old = atomicLoad(&y[word]);
        if (atomicCompareExchangeWeak(&y[word], old, (old & ~mask) | bits).exchanged) {
            break;
        }
    }
}

fn y__store(i: u32, value: float16) {
    if (exists && i < constants.y__length) {
        let at = i * 2u;
        y__merge((at) >> 2u, 0xffffu << (((at) & 3u) * 8u), (pack2x16float(vec2<f32>(f32(value), 0.0)) & 0xffffu) << (((at) & 3u) * 8u));
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
    // 4: %tile = alloc threadgroup f16[32]
    // 5: %t = thread_index_in_threadgroup
    let t = thread;
    // 6: %i = thread_position_in_grid x
    let i = threadgroup.x * 32u + position.x;
    // 7: %four = load %x[%i * 4]
    let four = x__load_group4(i);
    // 8: %pair = swizzle xy %four
    let pair = four.xy;
    // 9: %first = extract %four, %t
    let first = f16x4__extract(four, t);
    // 10: store %tile[%t], %first
    tile__store(t, first);
    // 11: barrier threadgroup [threadgroup]
    workgroupBarrier();
    // 13: %shared = load %tile[%zero]
    let shared_2 = tile__load(0u);
    // 16: %product = mul %shared, %scale
    let product = f16__round(shared_2 * scale);
    // 17: %sum = add %product, %third
    let sum = f16__round(fma(shared_2, scale, 0.33325195f));
    // 18: %quotient = div %sum, %scale
    let quotient = f16__round(sum / scale);
    // 19: %root = sqrt %quotient
    let root = f16__round(sqrt(quotient));
    // 20: %least = min %root, %tiny
    let least = f32__min(root, 5.9604645e-8f);
    // 21: %all = simd_sum %least
    let all_2 = f16__simd_sum(least);
    // 22: %two = construct f16x2 %all, %sum
    let two = vec2<float16>(all_2, sum);
    // 23: %moved = add %two, %pair
    let moved = f16x2__round(two + pair);
    // 24: %wide = cast f32 %all
    let wide = all_2;
    // 25: store %out[%i], %wide
    out__store(i, wide);
    // 26: %twice = add %wide, %wide
    let twice = wide + wide;
    // 27: %narrow = cast f16 %twice
    let narrow = f16__round(twice);
    // 28: %last = extract %moved, %zero
    let last = moved[0];
    // 29: %done = add %last, %narrow
    let done = f16__round(last + narrow);
    // 30: store %y[%i], %done
    y__store(i, done);
}
