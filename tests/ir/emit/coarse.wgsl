// Kernel @saxpy, written by Invar.
// Source: coarse.inv

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
    a__value: u32,
    padding_13: u32,
    padding_14: u32,
    padding_15: u32,
}
@group(0) @binding(2) var<uniform> constants: Constants;

// The threadgroup's position in the grid.
var<private> threadgroup: vec3<u32>;
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

fn y__load(i: u32) -> f32 {
    if (i < constants.y__length) {
        return y[i];
    }
    return 0.0;
}

fn y__store(i: u32, value: f32) {
    if (i < constants.y__length) {
        y[i] = value;
    }
}

@compute @workgroup_size(256)
fn saxpy(@builtin(workgroup_id) workgroup__id: vec3<u32>, @builtin(local_invocation_index) local__index: u32) {
    threadgroup = workgroup__id + vec3<u32>(constants.first_x, constants.first_y, constants.first_z);
    if (constants.row != 0u) {
        // A long line of threadgroups in rows, the last one perhaps not full.
        threadgroup = vec3<u32>(workgroup__id.y * constants.row + workgroup__id.x, 0u, 0u);
        if (threadgroup.x >= constants.threadgroups_x) {
            return;
        }
    }
    thread = local__index;
    position = vec3<u32>(thread, 0u, 0u);
    let a = bitcast<f32>(constants.a__value);
    let v1 = threadgroup.x;
    let v3 = v1 * 4u;
    let v5 = v3 + 1u;
    let v7 = v3 + 2u;
    let v9 = v3 + 3u;
    let v10 = position.x;
    let v11 = 256u;
    let v12 = v3 * v11;
    let v13 = v12 + v10;
    let v14 = v5 * v11;
    let v15 = v14 + v10;
    let v16 = v7 * v11;
    let v17 = v16 + v10;
    let v18 = v9 * v11;
    let v19 = v18 + v10;
    // 7: %xi = load %x[%i]
    let v20 = x__load(v13);
    let v21 = x__load(v15);
    let v22 = x__load(v17);
    let v23 = x__load(v19);
    // 8: %yi = load %y[%i]
    let v24 = y__load(v13);
    let v25 = y__load(v15);
    let v26 = y__load(v17);
    let v27 = y__load(v19);
    // 9: %ax = mul %a, %xi
    let v28 = a * v20;
    let v29 = a * v21;
    let v30 = a * v22;
    let v31 = a * v23;
    // 10: %sum = add %ax, %yi
    let v32 = fma(a, v20, v24);
    let v33 = fma(a, v21, v25);
    let v34 = fma(a, v22, v26);
    let v35 = fma(a, v23, v27);
    // 11: store %y[%i], %sum
    y__store(v13, v32);
    y__store(v15, v33);
    y__store(v17, v34);
    y__store(v19, v35);
}
// Kernel @guarded, written by Invar.
// Source: coarse.inv

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
    n__value: u32,
    padding_13: u32,
    padding_14: u32,
    padding_15: u32,
}
@group(0) @binding(2) var<uniform> constants: Constants;

// The threadgroup's position in the grid.
var<private> threadgroup: vec3<u32>;
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

fn y__store(i: u32, value: f32) {
    if (i < constants.y__length) {
        y[i] = value;
    }
}

@compute @workgroup_size(64)
fn guarded(@builtin(workgroup_id) workgroup__id: vec3<u32>, @builtin(local_invocation_index) local__index: u32) {
    threadgroup = workgroup__id + vec3<u32>(constants.first_x, constants.first_y, constants.first_z);
    if (constants.row != 0u) {
        // A long line of threadgroups in rows, the last one perhaps not full.
        threadgroup = vec3<u32>(workgroup__id.y * constants.row + workgroup__id.x, 0u, 0u);
        if (threadgroup.x >= constants.threadgroups_x) {
            return;
        }
    }
    thread = local__index;
    position = vec3<u32>(thread, 0u, 0u);
    let n = constants.n__value;
    let v1 = threadgroup.x;
    let v3 = v1 * 4u;
    let v5 = v3 + 1u;
    let v7 = v3 + 2u;
    let v9 = v3 + 3u;
    let v10 = position.x;
    let v11 = 64u;
    let v12 = v3 * v11;
    let v13 = v12 + v10;
    let v14 = v5 * v11;
    let v15 = v14 + v10;
    let v16 = v7 * v11;
    let v17 = v16 + v10;
    let v18 = v9 * v11;
    let v19 = v18 + v10;
    // 16: %outside = ge %i, %n
    let v20 = v13 >= n;
    let v21 = v15 >= n;
    let v22 = v17 >= n;
    let v23 = v19 >= n;
    let v24 = v20 | v21;
    let v25 = v24 | v22;
    let v26 = v25 | v23;
    // 17: if %outside {
    if (v26) {
        if (v20) {
        } else {
            // 20: %v = load %x[%i]
            let v27 = x__load(v13);
            // 21: store %y[%i], %v
            y__store(v13, v27);
        }
        // 17: if %outside {
        if (v21) {
        } else {
            // 20: %v = load %x[%i]
            let v28 = x__load(v15);
            // 21: store %y[%i], %v
            y__store(v15, v28);
        }
        // 17: if %outside {
        if (v22) {
        } else {
            // 20: %v = load %x[%i]
            let v29 = x__load(v17);
            // 21: store %y[%i], %v
            y__store(v17, v29);
        }
        // 17: if %outside {
        if (v23) {
        } else {
            // 20: %v = load %x[%i]
            let v30 = x__load(v19);
            // 21: store %y[%i], %v
            y__store(v19, v30);
        }
    } else {
        // 20: %v = load %x[%i]
        let v31 = x__load(v13);
        let v32 = x__load(v15);
        let v33 = x__load(v17);
        let v34 = x__load(v19);
        // 21: store %y[%i], %v
        y__store(v13, v31);
        y__store(v15, v32);
        y__store(v17, v33);
        y__store(v19, v34);
    }
}
