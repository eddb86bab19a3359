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
    // 47: %x = thread_position_in_grid x
    let x = threadgroup.x * 8u + position.x;
    // 49: %c = cast f32 %x
    let c = f32(x);
    // 50: %v = construct f32x4 %c
    let v = vec4<f32>(c);
    // 51: texture_write %t[%x, %y], %v
    if (exists) { if (x < textureDimensions(t).x && 0u < textureDimensions(t).y) { textureStore(t, vec2<u32>(x, 0u), v); } }
    // 52: barrier threadgroup [texture]
    textureBarrier();
    // 54: %other = sub %seven, %x
    let other = 7u - x;
    // 55: %theirs = texture_read %t[%other, %y]
    var theirs: vec4<f32>;
    if (other < textureDimensions(t).x && 0u < textureDimensions(t).y) { theirs = textureLoad(t, vec2<u32>(other, 0u)); }
    // 56: store %to[%x], %theirs
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
    // 59: %x = thread_position_in_grid x
    let x = threadgroup.x * 8u + position.x;
    // 61: %c = texture_gather %src[%half, %half] y linear
    let c = textureGather(1, src, sampled, vec2<f32>(0.5f, 0.5f));
    // 62: store %to[%x], %c
    to_memory__store(x, c);
}
// error[unsupported-feature] at 67:5: `atomic_add` on a texel: WGSL has no atomics on textures
// error[unsupported-feature] at 72:5: `texture_sample`: WGSL's samplers have no borders
// error[unsupported-feature] at 78:5: `texture_sample`: WGSL's samplers have no pixel coordinates
// error[unsupported-feature] at 81:14: parameter `%src`: WGSL has no `texture1d_array`
