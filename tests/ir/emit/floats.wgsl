// Kernel @floats, written by Invar.
// Source: floats.inv

enable f16;
alias float16 = f16;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> value_memory: array<float16>;
@group(0) @binding(2) var<storage, read_write> b: array<atomic<u32>>;
@group(0) @binding(3) var<storage, read_write> out: array<i32>;

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
    value_memory__length: u32,
    b__length: u32,
    out__length: u32,
    padding_14: u32,
    padding_15: u32,
}
@group(0) @binding(4) var<uniform> constants: Constants;

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

// Never written: it keeps bits that make no literal from being folded.
var<private> zero_bits: u32;

fn f32__is_nan(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

fn f32__min(a: f32, b: f32) -> f32 {
    // Equal numbers have the same bits, but for zeros.
    let smaller = select(b, a, a < b || f32__is_nan(b));
    return select(smaller, bitcast<f32>(bitcast<u32>(a) | bitcast<u32>(b)), a == b);
}

fn f32__max(a: f32, b: f32) -> f32 {
    // Equal numbers have the same bits, but for zeros.
    let larger = select(b, a, a > b || f32__is_nan(b));
    return select(larger, bitcast<f32>(bitcast<u32>(a) & bitcast<u32>(b)), a == b);
}

fn f32__to_i32(x: f32) -> i32 {
    if (f32__is_nan(x)) {
        return 0i;
    }
    if (x >= 2147483648.0) {
        return 2147483647i;
    }
    return i32(clamp(x, -2147483648.0, 2147483520.0));
}

fn out__store(i: u32, value: i32) {
    if (i < constants.out__length) {
        out[i] = value;
    }
}

fn value_memory__load(i: u32) -> float16 {
    if (i < constants.value_memory__length) {
        return value_memory[i];
    }
    return float16(0.0);
}

fn value_memory__store(i: u32, value: float16) {
    if (i < constants.value_memory__length) {
        value_memory[i] = value;
    }
}

fn b__load(i: u32) -> f32 {
    if (i < constants.b__length) {
        let at = i * 2u;
        return bitcast<f32>(((atomicLoad(&b[(at) >> 2u]) >> (((at) & 3u) * 8u)) & 0xffffu) << 16u);
    }
    return 0.0;
}

// The nearest bf16, ties to even.
fn bf16__round(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    let nan = bits | 0x00400000u;
    let nearest = bits + 0x7fffu + ((bits >> 16u) & 1u);
    return bitcast<f32>(select(nearest, nan, f32__is_nan(x)) & 0xffff0000u);
}

fn b__merge(word: u32, mask: u32, bits: u32) {
    loop {
        let old = atomicLoad(&b[word]);
        if (atomicCompareExchangeWeak(&b[word], old, (old & ~mask) | bits).exchanged) {
            break;
        }
    }
}

fn b__store(i: u32, value: f32) {
    if (i < constants.b__length) {
        let at = i * 2u;
        b__merge((at) >> 2u, 0xffffu << (((at) & 3u) * 8u), (bitcast<u32>(value) >> 16u) << (((at) & 3u) * 8u));
    }
}

@compute @workgroup_size(64)
fn floats(@builtin(workgroup_id) workgroup__id: vec3<u32>, @builtin(local_invocation_index) local__index: u32) {
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
    // 4: %v = load %x[%i]
    let v = x__load(i);
    // 6: %low = min %v, %infinity
    let low = f32__min(v, bitcast<f32>(0x7f800000u | zero_bits));
    // 8: %high = max %low, %nothing
    let high = f32__max(low, bitcast<f32>(0x80000000u | zero_bits));
    // 9: %n = cast i32 %high
    let n = f32__to_i32(high);
    // 10: store %out[%i], %n
    out__store(i, n);
    // 11: %half = load %value[%i]
    let half = value_memory__load(i);
    // 12: %square = mul %half, %half
    let square = half * half;
    // 13: store %value[%i], %square
    value_memory__store(i, square);
    // 14: %brain = load %b[%i]
    let brain = b__load(i);
    // 15: %root = sqrt %brain
    let root = bf16__round(sqrt(brain));
    // 16: store %b[%i], %root
    b__store(i, root);
    // 17: %differs = ne %v, %low
    let differs = !(v == low);
    // 18: if %differs {
    if (differs) {
        // 20: store %out[%i], %minus
        out__store(i, i32(-2147483648));
    }
}
