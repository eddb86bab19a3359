// Kernel @integers, written by Invar.
// Source: integers.inv
// Needs integers of 64 bits, `i64` and `u64`: naga and wgpu have them, browsers have not.

@group(0) @binding(0) var<storage, read_write> x: array<atomic<i32>>;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> z: array<atomic<u32>>;

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
// The size of this threadgroup, smaller at an edge of the grid.
var<private> threadgroup_size: vec3<u32>;
// The threads of this threadgroup, and whether this is one of them.
var<private> thread_count: u32;
var<private> exists: bool;
// The thread's number in its threadgroup.
var<private> thread: u32;
// The thread's position in its threadgroup.
var<private> position: vec3<u32>;

fn x__load(i: u32) -> i32 {
    if (i < constants.x__length) {
        return atomicLoad(&x[i]);
    }
    return 0i;
}

fn i32__index(i: i32) -> u32 {
    return select(u32(i), 0xffffffffu, i < 0i);
}

fn i32__div(a: i32, b: i32) -> i32 {
    if (b == 0i) {
        return 0i;
    }
    if (b == (-1i)) {
        return 0i - a;
    }
    return a / b;
}

fn u32__mul_hi(a: u32, b: u32) -> u32 {
    let a_low = a & 0xffffu;
    let a_high = a >> 16u;
    let b_low = b & 0xffffu;
    let b_high = b >> 16u;
    let middle = a_high * b_low + ((a_low * b_low) >> 16u);
    let other = a_low * b_high + (middle & 0xffffu);
    return a_high * b_high + (middle >> 16u) + (other >> 16u);
}

fn i32__mul_hi(a: i32, b: i32) -> i32 {
    return i32(u32__mul_hi(u32(a), u32(b))) - select(0i, b, a < 0i) - select(0i, a, b < 0i);
}

fn x__store(i: u32, value: i32) {
    if (i < constants.x__length) {
        atomicStore(&x[i], value);
    }
}

fn y__load(i: u32) -> u64 {
    if (i < constants.y__length) {
        let at = i * 8u;
        return (u64(atomicLoad(&y[(at) >> 2u])) | (u64(atomicLoad(&y[(at + 4u) >> 2u])) << 32u));
    }
    return 0lu;
}

fn u64__count_ones(x: u64) -> u64 {
    return u64(countOneBits(u32(x & 0xfffffffflu)) + countOneBits(u32(x >> 32u)));
}

fn y__store(i: u32, value: u64) {
    if (i < constants.y__length) {
        let at = i * 8u;
        atomicStore(&y[(at) >> 2u], u32(u64(value) & 0xfffffffflu));
        atomicStore(&y[(at + 4u) >> 2u], u32(u64(value) >> 32u));
    }
}

fn u64__index(i: u64) -> u32 {
    return select(u32(i), 0xffffffffu, i > 4294967294lu);
}

fn z__load(i: u32) -> i32 {
    if (i < constants.z__length) {
        return (i32(((atomicLoad(&z[(i) >> 2u]) >> (((i) & 3u) * 8u)) & 0xffu) << 24u) >> 24u);
    }
    return 0i;
}

fn z__merge(word: u32, mask: u32, bits: u32) {
    loop {
        let old = atomicLoad(&z[word]);
        if (atomicCompareExchangeWeak(&z[word], old, (old & ~mask) | bits).exchanged) {
            break;
        }
    }
}

fn z__store(i: u32, value: i32) {
    if (i < constants.z__length) {
        z__merge((i) >> 2u, 0xffu << (((i) & 3u) * 8u), (u32(value) & 0xffu) << (((i) & 3u) * 8u));
    }
}

@compute @workgroup_size(64)
fn integers(@builtin(workgroup_id) workgroup__id: vec3<u32>, @builtin(local_invocation_index) local__index: u32) {
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
    // 4: %a = load %x[%i]
    let a = x__load(i);
    // 5: %b = load %x[%a]
    let b = x__load(i32__index(a));
    // 7: %q = div %a, %b
    let q = i32__div(a, b);
    // 8: %r = rem %a, %seven
    let r = a % 7i;
    // 9: %s = shl %q, %r
    let s = q << (u32(r) & 31u);
    // 10: %t = mul_hi %s, %a
    let t = i32__mul_hi(s, a);
    // 11: %u = clz %t
    let u = i32(countLeadingZeros(u32(t)));
    // 12: store %x[%i], %u
    x__store(i, u);
    // 13: %c = load %y[%i]
    let c = y__load(i);
    // 14: %d = popcount %c
    let d = u64(u64__count_ones(u64(c)));
    // 15: %e = add %c, %d
    let e = c + d;
    // 16: store %y[%c], %e
    y__store(u64__index(c), e);
    // 17: %f = load %z[%i]
    let f = z__load(i);
    // 18: %g = neg %f
    let g = ((-f) << 24u) >> 24u;
    // 19: %h = div %g, %f
    let h = ((i32__div(g, f)) << 24u) >> 24u;
    // 20: store %z[%i], %h
    z__store(i, h);
}
