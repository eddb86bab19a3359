// Kernel @matrices, written by Invar.
// Source: matrices.inv
// Needs integers of 64 bits, `i64` and `u64`: naga and wgpu have them, browsers have not.

@group(0) @binding(0) var<storage, read> m_memory: array<f32>;
@group(0) @binding(1) var<storage, read_write> v: array<f32>;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

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
    m_memory__length: u32,
    v__length: u32,
    x__length: u32,
    y__length: u32,
    k__value: u32,
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

fn m_memory__load(i: u32) -> mat3x3<f32> {
    if (i < constants.m_memory__length) {
        let at = i * 9u;
        return mat3x3<f32>(m_memory[at], m_memory[at + 1u], m_memory[at + 2u], m_memory[at + 3u], m_memory[at + 4u], m_memory[at + 5u], m_memory[at + 6u], m_memory[at + 7u], m_memory[at + 8u]);
    }
    return mat3x3<f32>();
}

fn v__load(i: u32) -> vec3<f32> {
    if (i < constants.v__length) {
        let at = i * 3u;
        return vec3<f32>(v[at], v[at + 1u], v[at + 2u]);
    }
    return vec3<f32>();
}

fn f32x3x3__extract(x: mat3x3<f32>, i: u32) -> vec3<f32> {
    if (i < 3u) {
        var y = x;
        return y[i];
    }
    return vec3<f32>();
}

fn v__store(i: u32, value: vec3<f32>) {
    if (i < constants.v__length) {
        let at = i * 3u;
        v[at] = value.x;
        v[at + 1u] = value.y;
        v[at + 2u] = value.z;
    }
}

fn i64__index(i: i64) -> u32 {
    return select(u32(i), 0xffffffffu, i < 0li || i > 4294967294li);
}

fn x__load(i: u32) -> f32 {
    if (i < constants.x__length) {
        return x[i];
    }
    return 0.0;
}

fn x__load_matrix(start: i64, row: i64) -> array<f32, 64> {
    var m: array<f32, 64>;
    for (var e = 0u; e < 64u; e++) {
        m[e] = x__load(i64__index(start + i64(e / 8u) * row + i64(e % 8u)));
    }
    return m;
}

fn f32__fill_matrix(x: f32) -> array<f32, 64> {
    var m: array<f32, 64>;
    for (var e = 0u; e < 64u; e++) {
        m[e] = x;
    }
    return m;
}

fn matrix__multiply_f32_f32_f32(a: array<f32, 64>, b: array<f32, 64>, c: array<f32, 64>) -> array<f32, 64> {
    var left = a;
    var right = b;
    var m = c;
    for (var r = 0u; r < 8u; r++) {
        for (var column = 0u; column < 8u; column++) {
            var sum: f32 = m[r * 8u + column];
            for (var k = 0u; k < 8u; k++) {
                sum = fma(left[r * 8u + k], right[k * 8u + column], sum);
            }
            m[r * 8u + column] = sum;
        }
    }
    return m;
}

fn y__store(i: u32, value: f32) {
    if (i < constants.y__length) {
        y[i] = value;
    }
}

fn y__store_matrix_transposed(start: i64, row: i64, matrix: array<f32, 64>) {
    var m = matrix;
    let step = min(thread_count - thread / 32u * 32u, 32u);
    for (var e = thread % 32u; e < 64u; e = e + step) {
        y__store(i64__index(start + i64(e % 8u) * row + i64(e / 8u)), m[e]);
    }
}

@compute @workgroup_size(32)
fn matrices(@builtin(workgroup_id) workgroup__id: vec3<u32>, @builtin(local_invocation_index) local__index: u32) {
    threadgroup = workgroup__id + vec3<u32>(constants.first_x, constants.first_y, constants.first_z);
    if (constants.row != 0u) {
        // A long line of threadgroups in rows, the last one perhaps not full.
        threadgroup = vec3<u32>(workgroup__id.y * constants.row + workgroup__id.x, 0u, 0u);
        if (threadgroup.x >= constants.threadgroups_x) {
            return;
        }
    }
    threadgroup_size = min(vec3<u32>(32u, 1u, 1u), vec3<u32>(constants.threads_x, constants.threads_y, constants.threads_z) - threadgroup * vec3<u32>(32u, 1u, 1u));
    thread = local__index;
    thread_count = threadgroup_size.x * threadgroup_size.y * threadgroup_size.z;
    exists = thread < thread_count;
    if (!exists) {
        return;
    }
    let k = constants.k__value;
    // 5: %a = load %m[%zero]
    let a = m_memory__load(0u);
    // 6: %u = load %v[%zero]
    let u = v__load(0u);
    // 7: %w = matrix_multiply %a, %u
    let v6 = a[0];
    let v8 = a[1];
    let v10 = a[2];
    let v11 = u.x;
    let v12 = u.y;
    let v13 = u.z;
    let v14 = vec3<f32>(v11);
    let v15 = vec3<f32>(v12);
    let v16 = vec3<f32>(v13);
    let v17 = v6 * v14;
    let v18 = fma(v8, v15, v17);
    let w = fma(v10, v16, v18);
    // 8: %c = extract %a, %k
    let c = f32x3x3__extract(a, k);
    // 9: %s = add %w, %c
    let s = w + c;
    // 10: store %v[%zero], %s
    v__store(0u, s);
    // 12: %p = matrix_load simdgroup_f32x8x8 %x[%zero] row %row
    let p = x__load_matrix((0li), (8li));
    // 13: %acc = matrix_fill simdgroup_f32x8x8 %f
    let acc = f32__fill_matrix(0.0f);
    // 14: %d = matrix_multiply_accumulate %p, %p, %acc
    let d = matrix__multiply_f32_f32_f32(p, p, acc);
    // 15: matrix_store %y[%zero] row %row transpose, %d
    y__store_matrix_transposed((0li), (8li), d);
}
