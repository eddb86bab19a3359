// Kernel @print, written by Invar.
// Source: print.inv

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> printed: array<atomic<u32>>;

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
    printed__length: u32,
    printed_2__value: u32,
    v_0__value: u32,
    v_1__value: u32,
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

fn x__load(i: u32) -> f32 {
    if (i < constants.x__length) {
        return x[i];
    }
    return 0.0;
}

fn printed__atomic_load(i: u32) -> u32 {
    if (i < constants.printed__length) {
        return atomicLoad(&printed[i]);
    }
    return 0u;
}

fn printed__atomic_add(i: u32, value: u32) -> u32 {
    if (i < constants.printed__length) {
        return atomicAdd(&printed[i], value);
    }
    return 0u;
}

fn printed__store(i: u32, value: u32) {
    if (i < constants.printed__length) {
        atomicStore(&printed[i], value);
    }
}

@compute @workgroup_size(64)
fn print(@builtin(workgroup_id) workgroup__id: vec3<u32>, @builtin(local_invocation_index) local__index: u32) {
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
    let printed_2 = constants.printed_2__value;
    let v = vec2<u32>(constants.v_0__value, constants.v_1__value);
    // 3: %i = thread_position_in_grid x
    let i = threadgroup.x * 64u + position.x;
    // 4: %a = load %x[%i]
    let a = x__load(i);
    // 5: %few = lt %i, %printed
    let few = i < printed_2;
    // 6: if %few {
    if (few) {
        // 7: print "x[{}] is {}, v {}" %i, %a, %v
        let v6 = printed__atomic_load(0u);
        let v8 = v6 < 262144u;
        var v9: u32;
        var v10: bool;
        if (v8) {
            let v12 = printed__atomic_add(0u, 8u);
            let v14 = v12 <= 262136u;
            v9 = v12;
            v10 = v14;
        } else {
            v9 = 0u;
            v10 = false;
        }
        if (v10) {
            let v17 = v9 + 3u;
            let v18 = threadgroup.x * 64u + position.x;
            let v19 = threadgroup.y * 1u + position.y;
            let v20 = threadgroup.z * 1u + position.z;
            let v21 = bitcast<u32>(a);
            let v23 = v[0];
            let v25 = v[1];
            let v27 = v17 + 1u;
            printed__store(v27, v18);
            let v29 = v17 + 2u;
            printed__store(v29, v19);
            let v31 = v17 + 3u;
            printed__store(v31, v20);
            let v33 = v17 + 4u;
            printed__store(v33, i);
            let v35 = v17 + 5u;
            printed__store(v35, v21);
            let v37 = v17 + 6u;
            printed__store(v37, v23);
            let v39 = v17 + 7u;
            printed__store(v39, v25);
            printed__store(v17, 1u);
        } else {
            let v42 = printed__atomic_add(1u, 1u);
            let v44 = v42 == 4294967295u;
            if (v44) {
                let v46 = printed__atomic_add(2u, 1u);
            }
        }
    }
}
