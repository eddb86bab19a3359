// Kernel @resize, written by Invar.
// Source: textures.inv

@group(0) @binding(0) var src: texture_2d<f32>;
@group(0) @binding(1) var how: sampler;
@group(0) @binding(2) var dst: texture_storage_2d<rgba8unorm, write>;
// linear repeat mip_linear
@group(0) @binding(3) var sampled: sampler;
// linear mip_nearest
@group(0) @binding(4) var sampled_2: sampler;

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
    padding_10: u32,
    padding_11: u32,
}
@group(0) @binding(5) var<uniform> constants: Constants;

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

@compute @workgroup_size(64)
fn resize(@builtin(workgroup_id) workgroup__id: vec3<u32>, @builtin(local_invocation_index) local__index: u32) {
    threadgroup = workgroup__id + vec3<u32>(constants.first_x, constants.first_y, constants.first_z);
    if (constants.row != 0u) {
        // A long line of threadgroups in rows, the last one perhaps not full.
        threadgroup = vec3<u32>(workgroup__id.y * constants.row + workgroup__id.x, 0u, 0u);
        if (threadgroup.x >= constants.threadgroups_x) {
            return;
        }
    }
    threadgroup_size = min(vec3<u32>(8u, 8u, 1u), vec3<u32>(constants.threads_x, constants.threads_y, constants.threads_z) - threadgroup * vec3<u32>(8u, 8u, 1u));
    thread = local__index;
    thread_count = threadgroup_size.x * threadgroup_size.y * threadgroup_size.z;
    exists = thread < thread_count;
    if (all(threadgroup_size == vec3<u32>(8u, 8u, 1u))) {
        position = vec3<u32>(thread % 8u, thread / 8u % 8u, thread / (8u * 8u));
    } else {
        position = vec3<u32>(thread % threadgroup_size.x, thread / threadgroup_size.x % threadgroup_size.y, thread / (threadgroup_size.x * threadgroup_size.y));
    }
    if (!exists) {
        return;
    }
    // 3: %x = thread_position_in_grid x
    let x = threadgroup.x * 8u + position.x;
    // 4: %y = thread_position_in_grid y
    let y = threadgroup.y * 8u + position.y;
    // 7: %smooth = texture_sample %src[%half, %half] linear repeat mip_linear
    let smooth_2 = textureSampleLevel(src, sampled, vec2<f32>(0.5f, 0.5f), 0.0);
    // 8: %first = texture_sample %src[%half, %half] level %level linear mip_nearest
    let first = textureSampleLevel(src, sampled_2, vec2<f32>(0.5f, 0.5f), 1.0f);
    // 9: %second = texture_sample %src[%half, %half] offset(1, -1) level %level %how
    let second = textureSampleLevel(src, how, vec2<f32>(0.5f, 0.5f), 1.0f, vec2<i32>(1, -1));
    // 10: %sum = add %smooth, %first
    let sum = smooth_2 + first;
    // 11: %all = add %sum, %second
    let all_2 = sum + second;
    // 12: texture_write %dst[%x, %y], %all
    if (x < textureDimensions(dst).x && y < textureDimensions(dst).y) { textureStore(dst, vec2<u32>(x, y), all_2); }
}
// Kernel @levels, written by Invar.
// Source: textures.inv

@group(0) @binding(0) var<storage, read_write> to_memory: array<vec4<u32>>;
@group(0) @binding(1) var src: texture_2d_array<u32>;

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
    to_memory__length: u32,
    padding_11: u32,
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

fn to_memory__store(i: u32, value: vec4<u32>) {
    if (i < constants.to_memory__length) {
        let at = i * 4u;
        to_memory[i] = value;
    }
}

@compute @workgroup_size(8)
fn levels(@builtin(workgroup_id) workgroup__id: vec3<u32>, @builtin(local_invocation_index) local__index: u32) {
    threadgroup = workgroup__id + vec3<u32>(constants.first_x, constants.first_y, constants.first_z);
    if (constants.row != 0u) {
        // A long line of threadgroups in rows, the last one perhaps not full.
        threadgroup = vec3<u32>(workgroup__id.y * constants.row + workgroup__id.x, 0u, 0u);
        if (threadgroup.x >= constants.threadgroups_x) {
            return;
        }
    }
    threadgroup_size = min(vec3<u32>(8u, 1u, 1u), vec3<u32>(constants.threads_x, constants.threads_y, constants.threads_z) - threadgroup * vec3<u32>(8u, 1u, 1u));
    thread = local__index;
    thread_count = threadgroup_size.x * threadgroup_size.y * threadgroup_size.z;
    exists = thread < thread_count;
    position = vec3<u32>(thread, 0u, 0u);
    if (!exists) {
        return;
    }
    // 15: %x = thread_position_in_grid x
    let x = threadgroup.x * 8u + position.x;
    // 17: %width = texture_width %src level %one
    var width: u32;
    if (1u < textureNumLevels(src)) { width = textureDimensions(src, 1u).x; }
    // 18: %height = texture_height %src
    let height = textureDimensions(src).y;
    // 19: %size = texture_array_size %src
    let size = textureNumLayers(src);
    // 20: %count = texture_levels %src
    let count = textureNumLevels(src);
    // 21: %c = texture_read %src[%x, %one, %one] level %one
    var c: vec4<u32>;
    if (1u < textureNumLevels(src) && x < textureDimensions(src, 1u).x && 1u < textureDimensions(src, 1u).y && 1u < textureNumLayers(src)) { c = textureLoad(src, vec2<u32>(x, 1u), 1u, 1u); }
    // 22: %d = texture_read %src[%x, %width, %height]
    var d: vec4<u32>;
    if (x < textureDimensions(src).x && width < textureDimensions(src).y && height < textureNumLayers(src)) { d = textureLoad(src, vec2<u32>(x, width), height, 0u); }
    // 23: %e = add %c, %d
    let e = c + d;
    // 24: %f = construct u32x4 %size, %count, %width, %height
    let f = vec4<u32>(size, count, width, height);
    // 25: %g = add %e, %f
    let g = e + f;
    // 26: store %to[%x], %g
    to_memory__store(x, g);
}
// Kernel @shadow, written by Invar.
// Source: textures.inv

@group(0) @binding(0) var<storage, read_write> to_memory: array<vec4<f32>>;
@group(0) @binding(1) var map: texture_depth_2d_array;
@group(0) @binding(2) var sky: texture_depth_cube;
// linear compare_less
@group(0) @binding(3) var sampled: sampler_comparison;
// nearest
@group(0) @binding(4) var sampled_2: sampler;

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
    to_memory__length: u32,
    padding_11: u32,
}
@group(0) @binding(5) var<uniform> constants: Constants;

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

fn to_memory__store(i: u32, value: vec4<f32>) {
    if (i < constants.to_memory__length) {
        let at = i * 4u;
        to_memory[i] = value;
    }
}

@compute @workgroup_size(8)
fn shadow(@builtin(workgroup_id) workgroup__id: vec3<u32>, @builtin(local_invocation_index) local__index: u32) {
    threadgroup = workgroup__id + vec3<u32>(constants.first_x, constants.first_y, constants.first_z);
    if (constants.row != 0u) {
        // A long line of threadgroups in rows, the last one perhaps not full.
        threadgroup = vec3<u32>(workgroup__id.y * constants.row + workgroup__id.x, 0u, 0u);
        if (threadgroup.x >= constants.threadgroups_x) {
            return;
        }
    }
    threadgroup_size = min(vec3<u32>(8u, 1u, 1u), vec3<u32>(constants.threads_x, constants.threads_y, constants.threads_z) - threadgroup * vec3<u32>(8u, 1u, 1u));
    thread = local__index;
    thread_count = threadgroup_size.x * threadgroup_size.y * threadgroup_size.z;
    exists = thread < thread_count;
    position = vec3<u32>(thread, 0u, 0u);
    if (!exists) {
        return;
    }
    // 29: %x = thread_position_in_grid x
    let x = threadgroup.x * 8u + position.x;
    // 31: %c = texture_sample_compare %map[%half, %half, %x], %half linear compare_less
    var c: f32;
    if (x < textureNumLayers(map)) { c = textureSampleCompareLevel(map, sampled, vec2<f32>(0.5f, 0.5f), x, 0.5f); }
    // 32: %d = texture_gather_compare %map[%half, %half, %x], %half linear compare_less
    var d: vec4<f32>;
    if (x < textureNumLayers(map)) { d = textureGatherCompare(map, sampled, vec2<f32>(0.5f, 0.5f), x, 0.5f); }
    // 33: %e = texture_sample %sky[%half, %half, %half] nearest
    let e = textureSampleLevel(sky, sampled_2, vec3<f32>(0.5f, 0.5f, 0.5f), 0u);
    // 34: %f = construct f32x4 %c, %c, %e, %e
    let f = vec4<f32>(c, c, e, e);
    // 35: %g = add %d, %f
    let g = d + f;
    // 36: store %to[%x], %g
    to_memory__store(x, g);
}
// Kernel @samples, written by Invar.
// Source: textures.inv

@group(0) @binding(0) var<storage, read_write> to_memory: array<vec4<f32>>;
@group(0) @binding(1) var picture: texture_multisampled_2d<f32>;
@group(0) @binding(2) var volume: texture_3d<f32>;
// linear
@group(0) @binding(3) var sampled: sampler;

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
    to_memory__length: u32,
    padding_11: u32,
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

fn to_memory__store(i: u32, value: vec4<f32>) {
    if (i < constants.to_memory__length) {
        let at = i * 4u;
        to_memory[i] = value;
    }
}

@compute @workgroup_size(8)
fn samples(@builtin(workgroup_id) workgroup__id: vec3<u32>, @builtin(local_invocation_index) local__index: u32) {
    threadgroup = workgroup__id + vec3<u32>(constants.first_x, constants.first_y, constants.first_z);
    if (constants.row != 0u) {
        // A long line of threadgroups in rows, the last one perhaps not full.
        threadgroup = vec3<u32>(workgroup__id.y * constants.row + workgroup__id.x, 0u, 0u);
        if (threadgroup.x >= constants.threadgroups_x) {
            return;
        }
    }
    threadgroup_size = min(vec3<u32>(8u, 1u, 1u), vec3<u32>(constants.threads_x, constants.threads_y, constants.threads_z) - threadgroup * vec3<u32>(8u, 1u, 1u));
    thread = local__index;
    thread_count = threadgroup_size.x * threadgroup_size.y * threadgroup_size.z;
    exists = thread < thread_count;
    position = vec3<u32>(thread, 0u, 0u);
    if (!exists) {
        return;
    }
    // 39: %x = thread_position_in_grid x
    let x = threadgroup.x * 8u + position.x;
    // 41: %c = texture_read %picture[%x, %x, %x]
    var c: vec4<f32>;
    if (x < textureDimensions(picture).x && x < textureDimensions(picture).y && x < textureNumSamples(picture)) { c = textureLoad(picture, vec2<u32>(x, x), x); }
    // 42: %d = texture_sample %volume[%half, %half, %half] offset(0, 0, 1) linear
    let d = textureSampleLevel(volume, sampled, vec3<f32>(0.5f, 0.5f, 0.5f), 0.0, vec3<i32>(0, 0, 1));
    // 43: %e = add %c, %d
    let e = c + d;
    // 44: store %to[%x], %e
    to_memory__store(x, e);
}
// Kernel @volumes, written by Invar.
// Source: textures.inv

@group(0) @binding(0) var<storage, read_write> to_memory: array<vec4<f32>>;
@group(0) @binding(1) var src: texture_3d<f32>;
@group(0) @binding(2) var sky: texture_cube<f32>;
@group(0) @binding(3) var dst: texture_storage_3d<rgba8unorm, write>;
// linear mip_linear
@group(0) @binding(4) var sampled: sampler;
// linear mip_nearest
@group(0) @binding(5) var sampled_2: sampler;

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
    to_memory__length: u32,
    padding_11: u32,
}
@group(0) @binding(6) var<uniform> constants: Constants;

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

fn f32__is_nan(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

fn f32__max(a: f32, b: f32) -> f32 {
    // Equal numbers have the same bits, but for zeros.
    let larger = select(b, a, a > b || f32__is_nan(b));
    return select(larger, bitcast<f32>(bitcast<u32>(a) & bitcast<u32>(b)), a == b);
}

// Never written: it keeps bits that make no literal from being folded.
var<private> zero_bits: u32;

// By the reciprocal and one step of Newton: a target's own division takes longer, and may be wrong by
// what is larger than 2^126. The factors keep the reciprocal in range.
fn f32__div(a: f32, b: f32) -> f32 {
    let size = abs(b);
    let scale = select(select(1.0, 16777216.0, size < 1.2e-37), 0.0625, size > 8.5e37);
    let divisor = b * scale;
    let share = 1.0 / divisor;
    let quotient = (a * scale) * share;
    let better = fma(fma(-quotient, divisor, a * scale), share, quotient);
    // Of zeros, whose sign it would lose, of infinities and of what is not a number there is none better.
    let normal = abs(quotient) > 0.0 && abs(quotient) <= 3.4028234e38;
    return select(quotient, better, normal && size <= 3.4028234e38);
}

fn to_memory__store(i: u32, value: vec4<f32>) {
    if (i < constants.to_memory__length) {
        let at = i * 4u;
        to_memory[i] = value;
    }
}

@compute @workgroup_size(8)
fn volumes(@builtin(workgroup_id) workgroup__id: vec3<u32>, @builtin(local_invocation_index) local__index: u32) {
    threadgroup = workgroup__id + vec3<u32>(constants.first_x, constants.first_y, constants.first_z);
    if (constants.row != 0u) {
        // A long line of threadgroups in rows, the last one perhaps not full.
        threadgroup = vec3<u32>(workgroup__id.y * constants.row + workgroup__id.x, 0u, 0u);
        if (threadgroup.x >= constants.threadgroups_x) {
            return;
        }
    }
    threadgroup_size = min(vec3<u32>(8u, 1u, 1u), vec3<u32>(constants.threads_x, constants.threads_y, constants.threads_z) - threadgroup * vec3<u32>(8u, 1u, 1u));
    thread = local__index;
    thread_count = threadgroup_size.x * threadgroup_size.y * threadgroup_size.z;
    exists = thread < thread_count;
    position = vec3<u32>(thread, 0u, 0u);
    if (!exists) {
        return;
    }
    // 47: %x = thread_position_in_grid x
    let x = threadgroup.x * 8u + position.x;
    // 51: %depth = texture_depth %src level %one
    var depth: u32;
    if (1u < textureNumLevels(src)) { depth = textureDimensions(src, 1u).z; }
    // 52: %count = texture_levels %src
    let count = textureNumLevels(src);
    // 53: %read = texture_read %src[%x, %x, %x] level %one
    var read_2: vec4<f32>;
    if (1u < textureNumLevels(src) && x < textureDimensions(src, 1u).x && x < textureDimensions(src, 1u).y && x < textureDimensions(src, 1u).z) { read_2 = textureLoad(src, vec3<u32>(x, x, x), 1u); }
    // 54: %between = texture_sample %src[%half, %half, %half] level %half linear mip_linear
    let between = textureSampleLevel(src, sampled, vec3<f32>(0.5f, 0.5f, 0.5f), 0.5f);
    // 55: %graded = texture_sample %src[%half, %half, %half] gradient [%half, %zero, %zero], [%zero, %half, %half] linear mip_nearest
    let v8 = textureDimensions(src).x;
    let v9 = textureDimensions(src).y;
    let v10 = textureDimensions(src).z;
    let v11 = f32(v8);
    let v12 = f32(v9);
    let v13 = f32(v10);
    let v14 = 0.5f * v11;
    let v15 = 0.0f * v12;
    let v16 = 0.0f * v13;
    let v17 = v16 * v16;
    let v18 = fma(v15, v15, v17);
    let v19 = fma(v14, v14, v18);
    let v20 = 0.0f * v11;
    let v21 = 0.5f * v12;
    let v22 = 0.5f * v13;
    let v23 = v22 * v22;
    let v24 = fma(v21, v21, v23);
    let v25 = fma(v20, v20, v24);
    let v26 = f32__max(v19, v25);
    let v28 = v26 < 1.1754944e-38f;
    let v30 = v26 * 8388608.0f;
    let v31 = select(v26, v30, v28);
    let v32 = bitcast<i32>(v31);
    let v34 = v32 - 1060439283i;
    let v36 = v34 >> 23u;
    let v37 = v36 << 23u;
    let v38 = v32 - v37;
    let v39 = bitcast<f32>(v38);
    let v41 = v39 - 1.0f;
    let v42 = f32(v36);
    let v45 = select(0.0f, 23.0f, v28);
    let v46 = v42 - v45;
    let v49 = fma((-0.10807387f), v41, 0.18535788f);
    let v51 = fma(v49, v41, (-0.19143967f));
    let v53 = fma(v51, v41, 0.20475094f);
    let v55 = fma(v53, v41, (-0.23958683f));
    let v57 = fma(v55, v41, 0.28855887f);
    let v59 = fma(v57, v41, (-0.3606979f));
    let v61 = fma(v59, v41, 0.48089838f);
    let v63 = fma(v61, v41, (-0.72134733f));
    let v65 = fma(v63, v41, 1.925963e-8f);
    let v66 = v65 * v41;
    let v68 = fma(v41, 1.442695f, v66);
    let v69 = v46 + v68;
    let v70 = v26 >= 0.0f;
    let v72 = select(bitcast<f32>(0x7fc00000u | zero_bits), v69, v70);
    let v73 = v26 == 0.0f;
    let v75 = select(v72, bitcast<f32>(0xff800000u | zero_bits), v73);
    let v77 = v26 == bitcast<f32>(0x7f800000u | zero_bits);
    let v78 = select(v75, v26, v77);
    let v80 = v78 * 0.5f;
    let graded = textureSampleLevel(src, sampled_2, vec3<f32>(0.5f, 0.5f, 0.5f), v80);
    // 56: %faced = texture_sample %sky[%half, %zero, %half] gradient [%half, %zero, %zero], [%zero, %half, %half] linear mip_linear
    let constant: f32 = 0.5f;
    let v82 = abs(constant);
    let constant_2: f32 = 0.0f;
    let v83 = abs(constant_2);
    let constant_3: f32 = 0.5f;
    let v84 = abs(constant_3);
    let v85 = v84 >= v83;
    let v86 = v84 >= v82;
    let v87 = v85 & v86;
    let v88 = v83 >= v82;
    let v90 = select(0.5f, 0.0f, v88);
    let v91 = select(v90, 0.5f, v87);
    let v92 = v91 < 0.0f;
    let v93 = abs(v91);
    let constant_4: f32 = 0.5f;
    let v94 = -constant_4;
    let v95 = select(0.5f, v94, v92);
    let constant_5: f32 = 0.5f;
    let v96 = -constant_5;
    let v97 = select(0.5f, v96, v92);
    let constant_6: f32 = 0.0f;
    let v98 = -constant_6;
    let v99 = -v95;
    let v100 = select(v99, 0.5f, v88);
    let v101 = select(v100, v97, v87);
    let v102 = select(v98, v95, v88);
    let v103 = select(v102, v98, v87);
    let v104 = f32__div(v101, v93);
    let v105 = f32__div(v103, v93);
    let v106 = select(0.5f, 0.0f, v88);
    let v107 = select(v106, 0.0f, v87);
    let v108 = -v107;
    let v109 = select(v107, v108, v92);
    let constant_7: f32 = 0.0f;
    let v110 = -constant_7;
    let v111 = select(0.0f, v110, v92);
    let constant_8: f32 = 0.5f;
    let v112 = -constant_8;
    let v113 = select(0.5f, v112, v92);
    let constant_9: f32 = 0.0f;
    let v114 = -constant_9;
    let v115 = -v111;
    let v116 = select(v115, 0.5f, v88);
    let v117 = select(v116, v113, v87);
    let v118 = select(v114, v111, v88);
    let v119 = select(v118, v114, v87);
    let v120 = -v104;
    let v121 = fma(v120, v109, v117);
    let v122 = f32__div(v121, v93);
    let v124 = v122 * 0.5f;
    let v125 = -v105;
    let v126 = fma(v125, v109, v119);
    let v127 = f32__div(v126, v93);
    let v129 = v127 * 0.5f;
    let v130 = select(0.0f, 0.5f, v88);
    let v131 = select(v130, 0.5f, v87);
    let v132 = -v131;
    let v133 = select(v131, v132, v92);
    let constant_10: f32 = 0.5f;
    let v134 = -constant_10;
    let v135 = select(0.5f, v134, v92);
    let constant_11: f32 = 0.0f;
    let v136 = -constant_11;
    let v137 = select(0.0f, v136, v92);
    let constant_12: f32 = 0.5f;
    let v138 = -constant_12;
    let v139 = -v135;
    let v140 = select(v139, 0.0f, v88);
    let v141 = select(v140, v137, v87);
    let v142 = select(v138, v135, v88);
    let v143 = select(v142, v138, v87);
    let v144 = -v104;
    let v145 = fma(v144, v133, v141);
    let v146 = f32__div(v145, v93);
    let v148 = v146 * 0.5f;
    let v149 = -v105;
    let v150 = fma(v149, v133, v143);
    let v151 = f32__div(v150, v93);
    let v153 = v151 * 0.5f;
    let v154 = textureDimensions(sky).x;
    let v155 = textureDimensions(sky).y;
    let v156 = f32(v154);
    let v157 = f32(v155);
    let v158 = v124 * v156;
    let v159 = v129 * v157;
    let v160 = v159 * v159;
    let v161 = fma(v158, v158, v160);
    let v162 = v148 * v156;
    let v163 = v153 * v157;
    let v164 = v163 * v163;
    let v165 = fma(v162, v162, v164);
    let v166 = f32__max(v161, v165);
    let v168 = v166 < 1.1754944e-38f;
    let v170 = v166 * 8388608.0f;
    let v171 = select(v166, v170, v168);
    let v172 = bitcast<i32>(v171);
    let v174 = v172 - 1060439283i;
    let v176 = v174 >> 23u;
    let v177 = v176 << 23u;
    let v178 = v172 - v177;
    let v179 = bitcast<f32>(v178);
    let v181 = v179 - 1.0f;
    let v182 = f32(v176);
    let v185 = select(0.0f, 23.0f, v168);
    let v186 = v182 - v185;
    let v189 = fma((-0.10807387f), v181, 0.18535788f);
    let v191 = fma(v189, v181, (-0.19143967f));
    let v193 = fma(v191, v181, 0.20475094f);
    let v195 = fma(v193, v181, (-0.23958683f));
    let v197 = fma(v195, v181, 0.28855887f);
    let v199 = fma(v197, v181, (-0.3606979f));
    let v201 = fma(v199, v181, 0.48089838f);
    let v203 = fma(v201, v181, (-0.72134733f));
    let v205 = fma(v203, v181, 1.925963e-8f);
    let v206 = v205 * v181;
    let v208 = fma(v181, 1.442695f, v206);
    let v209 = v186 + v208;
    let v210 = v166 >= 0.0f;
    let v212 = select(bitcast<f32>(0x7fc00000u | zero_bits), v209, v210);
    let v213 = v166 == 0.0f;
    let v215 = select(v212, bitcast<f32>(0xff800000u | zero_bits), v213);
    let v217 = v166 == bitcast<f32>(0x7f800000u | zero_bits);
    let v218 = select(v215, v166, v217);
    let v220 = v218 * 0.5f;
    let faced = textureSampleLevel(sky, sampled, vec3<f32>(0.5f, 0.0f, 0.5f), v220);
    // 57: %sizes = construct u32x2 %depth, %count
    let sizes = vec2<u32>(depth, count);
    // 58: %a = add %read, %between
    let a = read_2 + between;
    // 59: %b = add %a, %graded
    let b = a + graded;
    // 60: %c = add %b, %faced
    let c = b + faced;
    // 61: %many = swizzle xyxy %sizes
    let many = sizes.xyxy;
    // 62: %numbers = cast f32x4 %many
    let numbers = vec4<f32>(many);
    // 63: %d = add %c, %numbers
    let d = c + numbers;
    // 64: texture_write %dst[%x, %x, %x], %d
    if (x < textureDimensions(dst).x && x < textureDimensions(dst).y && x < textureDimensions(dst).z) { textureStore(dst, vec3<u32>(x, x, x), d); }
    // 65: store %to[%x], %d
    to_memory__store(x, d);
}
// Kernel @mirror, written by Invar.
// Source: textures.inv

@group(0) @binding(0) var<storage, read_write> to_memory: array<vec4<f32>>;
@group(0) @binding(1) var t: texture_storage_2d<r32float, read_write>;

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
    to_memory__length: u32,
    padding_11: u32,
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

fn to_memory__store(i: u32, value: vec4<f32>) {
    if (exists && i < constants.to_memory__length) {
        let at = i * 4u;
        to_memory[i] = value;
    }
}

@compute @workgroup_size(8)
fn mirror(@builtin(workgroup_id) workgroup__id: vec3<u32>, @builtin(local_invocation_index) local__index: u32) {
    threadgroup = workgroup__id + vec3<u32>(constants.first_x, constants.first_y, constants.first_z);
    if (constants.row != 0u) {
        // A long line of threadgroups in rows, the last one perhaps not full.
        threadgroup = vec3<u32>(workgroup__id.y * constants.row + workgroup__id.x, 0u, 0u);
        if (threadgroup.x >= constants.threadgroups_x) {
            return;
        }
    }
    threadgroup_size = min(vec3<u32>(8u, 1u, 1u), vec3<u32>(constants.threads_x, constants.threads_y, constants.threads_z) - threadgroup * vec3<u32>(8u, 1u, 1u));
    thread = local__index;
    thread_count = threadgroup_size.x * threadgroup_size.y * threadgroup_size.z;
    exists = thread < thread_count;
    position = vec3<u32>(thread, 0u, 0u);
    // 68: %x = thread_position_in_grid x
    let x = threadgroup.x * 8u + position.x;
    // 70: %c = cast f32 %x
    let c = f32(x);
    // 71: %v = construct f32x4 %c
    let v = vec4<f32>(c);
    // 72: texture_write %t[%x, %y], %v
    if (exists) { if (x < textureDimensions(t).x && 0u < textureDimensions(t).y) { textureStore(t, vec2<u32>(x, 0u), v); } }
    // 73: barrier threadgroup [texture]
    textureBarrier();
    // 75: %other = sub %seven, %x
    let other = 7u - x;
    // 76: %theirs = texture_read %t[%other, %y]
    var theirs: vec4<f32>;
    if (other < textureDimensions(t).x && 0u < textureDimensions(t).y) { theirs = textureLoad(t, vec2<u32>(other, 0u)); }
    // 77: store %to[%x], %theirs
    to_memory__store(x, theirs);
}
// Kernel @gathers, written by Invar.
// Source: textures.inv

@group(0) @binding(0) var<storage, read_write> to_memory: array<vec4<f32>>;
@group(0) @binding(1) var src: texture_2d<f32>;
// linear
@group(0) @binding(2) var sampled: sampler;

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
    to_memory__length: u32,
    padding_11: u32,
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

fn to_memory__store(i: u32, value: vec4<f32>) {
    if (i < constants.to_memory__length) {
        let at = i * 4u;
        to_memory[i] = value;
    }
}

@compute @workgroup_size(8)
fn gathers(@builtin(workgroup_id) workgroup__id: vec3<u32>, @builtin(local_invocation_index) local__index: u32) {
    threadgroup = workgroup__id + vec3<u32>(constants.first_x, constants.first_y, constants.first_z);
    if (constants.row != 0u) {
        // A long line of threadgroups in rows, the last one perhaps not full.
        threadgroup = vec3<u32>(workgroup__id.y * constants.row + workgroup__id.x, 0u, 0u);
        if (threadgroup.x >= constants.threadgroups_x) {
            return;
        }
    }
    threadgroup_size = min(vec3<u32>(8u, 1u, 1u), vec3<u32>(constants.threads_x, constants.threads_y, constants.threads_z) - threadgroup * vec3<u32>(8u, 1u, 1u));
    thread = local__index;
    thread_count = threadgroup_size.x * threadgroup_size.y * threadgroup_size.z;
    exists = thread < thread_count;
    position = vec3<u32>(thread, 0u, 0u);
    if (!exists) {
        return;
    }
    // 80: %x = thread_position_in_grid x
    let x = threadgroup.x * 8u + position.x;
    // 82: %c = texture_gather %src[%half, %half] y linear
    let c = textureGather(1, src, sampled, vec2<f32>(0.5f, 0.5f));
    // 83: store %to[%x], %c
    to_memory__store(x, c);
}
// Kernel @gathers_of_cubes, written by Invar.
// Source: textures.inv

@group(0) @binding(0) var<storage, read_write> to_memory: array<vec4<f32>>;
@group(0) @binding(1) var sky: texture_cube<f32>;
@group(0) @binding(2) var skies: texture_cube_array<u32>;
@group(0) @binding(3) var shadow: texture_depth_cube;
@group(0) @binding(4) var how: sampler;
// nearest
@group(0) @binding(5) var sampled: sampler;
// nearest compare_less
@group(0) @binding(6) var sampled_2: sampler_comparison;

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
    to_memory__length: u32,
    padding_11: u32,
}
@group(0) @binding(7) var<uniform> constants: Constants;

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

fn to_memory__store(i: u32, value: vec4<f32>) {
    if (i < constants.to_memory__length) {
        let at = i * 4u;
        to_memory[i] = value;
    }
}

@compute @workgroup_size(8)
fn gathers_of_cubes(@builtin(workgroup_id) workgroup__id: vec3<u32>, @builtin(local_invocation_index) local__index: u32) {
    threadgroup = workgroup__id + vec3<u32>(constants.first_x, constants.first_y, constants.first_z);
    if (constants.row != 0u) {
        // A long line of threadgroups in rows, the last one perhaps not full.
        threadgroup = vec3<u32>(workgroup__id.y * constants.row + workgroup__id.x, 0u, 0u);
        if (threadgroup.x >= constants.threadgroups_x) {
            return;
        }
    }
    threadgroup_size = min(vec3<u32>(8u, 1u, 1u), vec3<u32>(constants.threads_x, constants.threads_y, constants.threads_z) - threadgroup * vec3<u32>(8u, 1u, 1u));
    thread = local__index;
    thread_count = threadgroup_size.x * threadgroup_size.y * threadgroup_size.z;
    exists = thread < thread_count;
    position = vec3<u32>(thread, 0u, 0u);
    if (!exists) {
        return;
    }
    // 86: %x = thread_position_in_grid x
    let x = threadgroup.x * 8u + position.x;
    // 88: %c = texture_gather %sky[%half, %half, %half] y %how
    let c = textureGather(1, sky, how, vec3<f32>(0.5f, 0.5f, 0.5f));
    // 89: %d = texture_gather %skies[%half, %half, %half, %x] x
    var d: vec4<u32>;
    if (x < textureNumLayers(skies)) { d = textureGather(0, skies, sampled, vec3<f32>(0.5f, 0.5f, 0.5f), x); }
    // 90: %e = texture_gather_compare %shadow[%half, %half, %half], %half compare_less
    let e = textureGatherCompare(shadow, sampled_2, vec3<f32>(0.5f, 0.5f, 0.5f), 0.5f);
    // 91: %f = cast f32x4 %d
    let f = vec4<f32>(d);
    // 92: %g = add %c, %f
    let g = c + f;
    // 93: %h = add %g, %e
    let h = g + e;
    // 94: store %to[%x], %h
    to_memory__store(x, h);
}
// error[unsupported-feature] at 99:5: `atomic_add` on a texel: WGSL has no atomics on textures
// error[unsupported-feature] at 104:5: `texture_sample`: WGSL's samplers have no borders
// error[unsupported-feature] at 110:5: `texture_sample`: WGSL's samplers have no pixel coordinates
// error[unsupported-feature] at 113:14: parameter `%src`: WGSL has no `texture1d_array`
