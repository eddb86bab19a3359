// Kernel @walk, written by Invar.
// Source: control-flow.inv

@group(0) @binding(0) var<storage, read> x: array<i32>;
@group(0) @binding(1) var<storage, read_write> out: array<i32>;

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
    n__value: u32,
    s__value: u32,
    padding_14: u32,
    padding_15: u32,
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

fn x__load(i: u32) -> i32 {
    if (i < constants.x__length) {
        return x[i];
    }
    return 0i;
}

fn out__store(i: u32, value: i32) {
    if (i < constants.out__length) {
        out[i] = value;
    }
}

@compute @workgroup_size(64)
fn walk(@builtin(workgroup_id) workgroup__id: vec3<u32>, @builtin(local_invocation_index) local__index: u32) {
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
    let n = constants.n__value;
    let s = i32(constants.s__value);
    // 3: %i = thread_position_in_grid x
    let i = threadgroup.x * 64u + position.x;
    // 8: %sum = for %j = %zero to %n step %three carry(%acc = %start) {
    var acc: i32 = 0i;
    var j: u32 = 0u;
    loop {
        if (!(j < n)) { break; }
        // 9: %v = load %x[%j]
        let v = x__load(j);
        // 10: %negative = lt %v, %start
        let negative = v < 0i;
        // 11: if %negative {
        if (negative) {
            // 12: break %acc
            break;
        }
        // 14: %same = eq %v, %acc
        let same = v == acc;
        // 15: if %same {
        if (same) {
            // 16: continue %acc
            continue;
        }
        // 18: %next = add %acc, %v
        let next = acc + v;
        acc = next;
        continuing {
            let last = n - j <= 3u;
            j = j + 3u;
            break if last;
        }
    }
    // 22: %a, %b = loop carry(%p = %sum, %q = %s) {
    var p: i32 = acc;
    var q: i32 = s;
    loop {
        // 23: %big = gt %p, %limit
        let big = p > 100i;
        // 24: if %big {
        if (big) {
            // 25: break %p, %q
            break;
        }
        // 27: %r = add %p, %q
        let r = p + q;
        p = q;
        q = r;
    }
    // 31: %down = for %k = %limit to %last step %s carry(%t = %a) {
    var t: i32 = p;
    var k: i32 = 100i;
    loop {
        if (!(s != 0i && select(k > (-10i), k < (-10i), (s > 0i)))) { break; }
        // 32: %u = sub %t, %k
        let u = t - k;
        t = u;
        continuing {
            let last_2 = select(u32(k - (-10i)) <= u32(0i - s), u32((-10i) - k) <= u32(s), (s > 0i));
            k = k + s;
            break if last_2;
        }
    }
    // 35: %which = gt %down, %b
    let which = t > q;
    // 36: %result = if %which {
    var result: i32;
    if (which) {
        result = t;
    } else {
        result = q;
    }
    // 41: store %out[%i], %result
    out__store(i, result);
}
