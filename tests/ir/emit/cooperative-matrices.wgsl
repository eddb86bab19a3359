// Kernel @multiply, written by Invar.
// Source: cooperative-matrices.inv
// Needs integers of 64 bits, `i64` and `u64`: naga and wgpu have them, browsers have not.

enable wgpu_cooperative_matrix;
diagnostic(off, derivative_uniformity);

enable f16;
alias float16 = f16;

@group(0) @binding(0) var<storage, read> A_2: array<float16>;
@group(0) @binding(1) var<storage, read> B_2: array<float16>;
@group(0) @binding(2) var<storage, read_write> C_2: array<f32>;

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
    A_2__length: u32,
    B_2__length: u32,
    C_2__length: u32,
    n__value: u32,
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

var<workgroup> f32__staged: array<f32, 128>;

fn f32__fill_matrix_C(x: f32) -> coop_mat8x8<f32, C> {
    let step = min(thread_count - thread / 32u * 32u, 32u);
    let end = select(0u, 64u, exists);
    for (var e = thread % 32u; e < end; e = e + step) {
        f32__staged[thread / 32u * 64u + e] = x;
    }
    workgroupBarrier();
    let m = coopLoadT<coop_mat8x8<f32, C>>(&f32__staged[thread / 32u * 64u], 8u);
    workgroupBarrier();
    return m;
}

fn i64__index(i: i64) -> u32 {
    return select(u32(i), 0xffffffffu, i < 0li || i > 4294967294li);
}

fn A_2__load(i: u32) -> float16 {
    if (i < constants.A_2__length) {
        return A_2[i];
    }
    return float16(0.0);
}

var<workgroup> f16__staged: array<float16, 128>;

fn A_2__load_matrix_A(start: i64, row: i64) -> coop_mat8x8<float16, A> {
    let inside = subgroupAll(thread / 32u * 32u < thread_count && start >= 0li && row >= 8li && ((start | row) & 7li) == 0li && start + row * 7li + 7li < i64(u64(constants.A_2__length)));
    if (!inside) {
        let step = min(thread_count - thread / 32u * 32u, 32u);
        let end = select(0u, 64u, exists);
        for (var e = thread % 32u; e < end; e = e + step) {
            f16__staged[thread / 32u * 64u + e] = A_2__load(i64__index(start + i64(e / 8u) * row + i64(e % 8u)));
        }
    }
    workgroupBarrier();
    var m = coopLoadT<coop_mat8x8<float16, A>>(&f16__staged[thread / 32u * 64u], 8u);
    if (inside) {
        m = coopLoadT<coop_mat8x8<float16, A>>(&A_2[u32(start)], u32(row));
    }
    workgroupBarrier();
    return m;
}

fn B_2__load(i: u32) -> float16 {
    if (i < constants.B_2__length) {
        return B_2[i];
    }
    return float16(0.0);
}

fn B_2__load_matrix_B_transposed(start: i64, row: i64) -> coop_mat8x8<float16, B> {
    let inside = subgroupAll(thread / 32u * 32u < thread_count && start >= 0li && row >= 8li && ((start | row) & 7li) == 0li && start + row * 7li + 7li < i64(u64(constants.B_2__length)));
    if (!inside) {
        let step = min(thread_count - thread / 32u * 32u, 32u);
        let end = select(0u, 64u, exists);
        for (var e = thread % 32u; e < end; e = e + step) {
            f16__staged[thread / 32u * 64u + e] = B_2__load(i64__index(start + i64(e % 8u) * row + i64(e / 8u)));
        }
    }
    workgroupBarrier();
    var m = coopLoadT<coop_mat8x8<float16, B>>(&f16__staged[thread / 32u * 64u], 8u);
    if (inside) {
        m = coopLoad<coop_mat8x8<float16, B>>(&B_2[u32(start)], u32(row));
    }
    workgroupBarrier();
    return m;
}

fn C_2__store(i: u32, value: f32) {
    if (exists && i < constants.C_2__length) {
        C_2[i] = value;
    }
}

fn C_2__store_matrix_C(start: i64, row: i64, m: coop_mat8x8<f32, C>) {
    let inside = subgroupAll(thread / 32u * 32u < thread_count && start >= 0li && row >= 8li && ((start | row) & 3li) == 0li && start + row * 7li + 7li < i64(u64(constants.C_2__length)));
    if (inside) {
        coopStoreT(m, &C_2[u32(start)], u32(row));
    }
    coopStoreT(m, &f32__staged[thread / 32u * 64u], 8u);
    workgroupBarrier();
    if (!inside) {
        let step = min(thread_count - thread / 32u * 32u, 32u);
        let end = select(0u, 64u, exists);
        for (var e = thread % 32u; e < end; e = e + step) {
            C_2__store(i64__index(start + i64(e / 8u) * row + i64(e % 8u)), f32__staged[thread / 32u * 64u + e]);
        }
    }
    workgroupBarrier();
}

@compute @workgroup_size(64)
fn multiply(@builtin(workgroup_id) workgroup__id: vec3<u32>, @builtin(local_invocation_index) local__index: u32, @builtin(subgroup_id) subgroup__id: u32, @builtin(subgroup_invocation_id) subgroup__lane: u32) {
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
    let n = constants.n__value;
    // 8: %g = simdgroup_index_in_threadgroup
    let g = thread / 32u;
    // 9: %column = mul %g, %eight
    let column = g * 8u;
    // 10: %acc = matrix_fill simdgroup_f32x8x8 %none
    let acc = f32__fill_matrix_C(0.0f);
    // 11: %sum = for %k = %zero to %n step %eight carry(%s = %acc) {
    var s: coop_mat8x8<f32, C> = acc;
    var k: u32 = 0u;
    loop {
        if (!(k < n)) { break; }
        // 12: %from = mul %k, %n
        let from_2 = k * n;
        // 13: %at = add %from, %column
        let at = from_2 + column;
        // 14: %left = matrix_load simdgroup_f16x8x8 %A[%k] row %n
        let left = A_2__load_matrix_A(i64(u64(k)), i64(u64(n)));
        // 15: %right = matrix_load simdgroup_f16x8x8 %B[%at] row %n transpose
        let right = B_2__load_matrix_B_transposed(i64(u64(at)), i64(u64(n)));
        // 16: %next = matrix_multiply_accumulate %left, %right, %s
        let next = coopMultiplyAdd(left, right, s);
        s = next;
        continuing {
            let last = n - k <= 8u;
            k = k + 8u;
            break if last;
        }
    }
    // 19: matrix_store %C[%column] row %n, %sum
    C_2__store_matrix_C(i64(u64(column)), i64(u64(n)), s);
}
// Kernel @square, written by Invar.
// Source: cooperative-matrices.inv
// Needs integers of 64 bits, `i64` and `u64`: naga and wgpu have them, browsers have not.

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

// The threadgroup's position in the grid.
var<private> threadgroup: vec3<u32>;
// The size of this threadgroup, smaller at an edge of the grid.
var<private> threadgroup_size: vec3<u32>;
// The threads of this threadgroup, and whether this is one of them.
var<private> thread_count: u32;
var<private> exists: bool;
// The thread's number in its threadgroup.
var<private> thread: u32;

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

fn y__store_matrix(start: i64, row: i64, matrix: array<f32, 64>) {
    var m = matrix;
    let step = min(thread_count - thread / 32u * 32u, 32u);
    for (var e = thread % 32u; e < 64u; e = e + step) {
        y__store(i64__index(start + i64(e / 8u) * row + i64(e % 8u)), m[e]);
    }
}

@compute @workgroup_size(32)
fn square(@builtin(workgroup_id) workgroup__id: vec3<u32>, @builtin(local_invocation_index) local__index: u32) {
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
    // 27: %p = matrix_load simdgroup_f32x8x8 %x[%zero] row %row
    let p = x__load_matrix((0li), (8li));
    // 28: %acc = matrix_fill simdgroup_f32x8x8 %f
    let acc = f32__fill_matrix(0.0f);
    // 29: %d = matrix_multiply_accumulate %p, %p, %acc
    let d = matrix__multiply_f32_f32_f32(p, p, acc);
    // 30: matrix_store %y[%zero] row %row, %d
    y__store_matrix((0li), (8li), d);
}
