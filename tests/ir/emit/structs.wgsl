// Kernel @step, written by Invar.
// Source: structs.inv

enable f16;
alias float16 = f16;

@group(0) @binding(0) var<storage, read_write> p: array<atomic<u32>>;

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
    p__length: u32,
    dt__value: u32,
    k__value: u32,
    padding_13: u32,
    padding_14: u32,
    padding_15: u32,
}
@group(0) @binding(1) var<uniform> constants: Constants;

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

fn p__load_position(i: u32) -> vec3<f32> {
    if (i < constants.p__length) {
        let at = i * 20u;
        return vec3<f32>(bitcast<f32>(atomicLoad(&p[(at) >> 2u])), bitcast<f32>(atomicLoad(&p[(at + 4u) >> 2u])), bitcast<f32>(atomicLoad(&p[(at + 8u) >> 2u])));
    }
    return vec3<f32>();
}

fn p__load_position_at(i: u32, k0: u32) -> f32 {
    if (i < constants.p__length && k0 < 3u) {
        let at = i * 20u + k0 * 4u;
        return bitcast<f32>(atomicLoad(&p[(at) >> 2u]));
    }
    return 0.0;
}

fn i32__index(i: i32) -> u32 {
    return select(u32(i), 0xffffffffu, i < 0i);
}

fn p__load_mass(i: u32) -> float16 {
    if (i < constants.p__length) {
        let at = i * 20u + 16u;
        return float16(unpack2x16float(((atomicLoad(&p[(at) >> 2u]) >> (((at) & 3u) * 8u)) & 0xffffu)).x);
    }
    return float16(0.0);
}

fn p__load_alive(i: u32) -> bool {
    if (i < constants.p__length) {
        let at = i * 20u + 15u;
        return (((atomicLoad(&p[(at) >> 2u]) >> (((at) & 3u) * 8u)) & 0xffu) != 0u);
    }
    return false;
}

fn p__load_flags_at(i: u32, k0: u32) -> u32 {
    if (i < constants.p__length && k0 < 3u) {
        let at = i * 20u + 12u + k0;
        return ((atomicLoad(&p[(at) >> 2u]) >> (((at) & 3u) * 8u)) & 0xffu);
    }
    return 0u;
}

fn p__store_position(i: u32, value: vec3<f32>) {
    if (i < constants.p__length) {
        let at = i * 20u;
        atomicStore(&p[(at) >> 2u], bitcast<u32>(value.x));
        atomicStore(&p[(at + 4u) >> 2u], bitcast<u32>(value.y));
        atomicStore(&p[(at + 8u) >> 2u], bitcast<u32>(value.z));
    }
}

fn p__merge(word: u32, mask: u32, bits: u32) {
    loop {
        let old = atomicLoad(&p[word]);
        if (atomicCompareExchangeWeak(&p[word], old, (old & ~mask) | bits).exchanged) {
            break;
        }
    }
}

fn p__store_flags_at(i: u32, k0: u32, value: u32) {
    if (i < constants.p__length && k0 < 3u) {
        let at = i * 20u + 12u + k0;
        p__merge((at) >> 2u, 0xffu << (((at) & 3u) * 8u), value << (((at) & 3u) * 8u));
    }
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

fn p__store_mass(i: u32, value: float16) {
    if (i < constants.p__length) {
        let at = i * 20u + 16u;
        p__merge((at) >> 2u, 0xffffu << (((at) & 3u) * 8u), (pack2x16float(vec2<f32>(f32(value), 0.0)) & 0xffffu) << (((at) & 3u) * 8u));
    }
}

@compute @workgroup_size(64)
fn step_2(@builtin(workgroup_id) workgroup__id: vec3<u32>, @builtin(local_invocation_index) local__index: u32) {
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
    let dt = bitcast<f32>(constants.dt__value);
    let k = i32(constants.k__value);
    // 5: %i = thread_position_in_grid x
    let i = threadgroup.x * 64u + position.x;
    // 7: %x = load %p[%i].position
    let x = p__load_position(i);
    // 8: %y = load %p[%i].position[%k]
    let y = p__load_position_at(i, i32__index(k));
    // 9: %m = load %p[%i].mass
    let m = p__load_mass(i);
    // 10: %alive = load %p[%i].alive
    let alive = p__load_alive(i);
    // 11: %flag = load %p[%i].flags[%k]
    let flag = p__load_flags_at(i, i32__index(k));
    // 13: %more = mul %flag, %two
    let more = (flag * 2u) & 0xffu;
    // 14: if %alive {
    if (alive) {
        // 15: %d = construct f32x3 %dt
        let d = vec3<f32>(dt);
        // 16: %moved = add %x, %d
        let moved = x + d;
        // 17: store %p[%i].position, %moved
        p__store_position(i, moved);
        // 18: store %p[%i].flags[%k], %more
        p__store_flags_at(i, i32__index(k), more);
        // 19: %half = cast f16 %y
        let half = f16__round(y);
        // 20: %sum = add %m, %half
        let sum = m + half;
        // 21: store %p[%i].mass, %sum
        p__store_mass(i, sum);
    }
}
