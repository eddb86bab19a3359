// Textures are loaded and stored, passed to functions, and asked for their sizes.
@group(0) @binding(0) var picture: texture_2d<f32>;
@group(0) @binding(1) var bright: texture_storage_2d<r32float, write>;
@group(0) @binding(2) var frames: texture_2d_array<u32>;
@group(0) @binding(3) var volume: texture_3d<i32>;
@group(0) @binding(4) var line: texture_1d<f32>;
@group(0) @binding(5) var sums: texture_storage_2d<r32uint, read_write>;
@group(0) @binding(6) var<storage, read_write> y: array<u32>;

fn texel(image: texture_2d<f32>, at: vec2i, level: u32) -> vec4f {
  return textureLoad(image, at, level);
}

@compute @workgroup_size(4, 2)
fn brighten(@builtin(global_invocation_id) id: vec3u) {
  let size = textureDimensions(picture);
  if (id.x < size.x && id.y < size.y) {
    let c = texel(picture, vec2i(id.xy), 0u);
    textureStore(bright, id.xy, vec4f(2.0 * c.x + c.w));
  }
}
// run: @brighten(picture = texture(r8unorm, 2, 2, [0, 255, 255, 0]), bright = texture(r32float, 2, 2)) groups(1, 1)
//   -> bright == [1, 3, 3, 1]

@compute @workgroup_size(1)
fn levels() {
  y[0] = textureNumLevels(picture);
  y[1] = textureDimensions(picture, 1).x;
  y[2] = u32(texel(picture, vec2i(0, 0), 1u).x);
}
// run: @levels(picture = texture(r32float, 4, 1, levels 2, [1, 2, 3, 4, 5, 6]), y = zeros(3)) groups(1) -> y == [2, 2, 5]

@compute @workgroup_size(1)
fn others() {
  y[0] = textureLoad(frames, vec2u(1, 0), 1, 0).x;
  y[1] = textureNumLayers(frames);
  y[2] = u32(textureLoad(volume, vec3i(0, 0, 1), 0).x);
  y[3] = textureDimensions(volume).z;
  y[4] = u32(textureLoad(line, 2, 0).x);
  y[5] = textureDimensions(line) + textureNumLevels(line);
}
// run: @others(frames = texture(r8uint, 2, 1, 2, [1, 2, 3, 4]), volume = texture(r8sint, 1, 1, 2, [5, 6]), line = texture(r32float, 3, 1, [7, 8, 9]), y = zeros(6))
//   groups(1) -> y == [4, 2, 6, 2, 9, 4]

@compute @workgroup_size(8)
fn neighbours(@builtin(local_invocation_index) i: u32) {
  textureStore(sums, vec2u(i, 0), vec4u(i));
  textureBarrier();
  y[i] = textureLoad(sums, vec2u(7 - i, 0)).x;
}
// run: @neighbours(sums = texture(r32uint, 8, 1), y = zeros(8)) groups(1) -> y == [7, 6, 5, 4, 3, 2, 1, 0]

@compute @workgroup_size(8)
fn races(@builtin(local_invocation_index) i: u32) {
  textureStore(sums, vec2u(i, 0), vec4u(i));
  storageBarrier();
  y[i] = textureLoad(sums, vec2u(7 - i, 0)).x; // error[execution-only-barrier]: sums
}
// run: @races(sums = texture(r32uint, 8, 1), y = zeros(8)) groups(1)

@group(1) @binding(0) var how: sampler;

@compute @workgroup_size(1)
fn samples() {
  y[0] = u32(textureSampleLevel(picture, how, vec2f(0.5), 0.0).x);
  y[1] = u32(textureSampleLevel(picture, how, vec2f(0.25, 0.5), 1.0).x);
  let around = vec4u(textureGather(0, picture, how, vec2f(0.5)));
  y[2] = around.x * 1000 + around.y * 100 + around.z * 10 + around.w;
}
// run: @samples(picture = texture(r32float, 2, 2, levels 2, [2, 4, 6, 8, 9]), how = sampler(linear, mip_nearest), y = zeros(3)) groups(1)
//   -> y == [5, 9, 6842]
// run: @samples(picture = texture(r32float, 2, 2, levels 2, [2, 4, 6, 8, 9]), how = sampler(repeat), y = zeros(3)) groups(1)
//   -> y == [8, 6, 6842]

@group(2) @binding(0) var sky: texture_cube<f32>;
@group(2) @binding(1) var edges: texture_multisampled_2d<u32>;

@group(2) @binding(2) var shadow: texture_depth_2d;
@group(2) @binding(3) var against: sampler_comparison;

@compute @workgroup_size(1)
fn depths() {
  y[0] = u32(100.0 * textureSampleCompareLevel(shadow, against, vec2f(0.5), 5.0));
  let which = vec4u(textureGatherCompare(shadow, against, vec2f(0.5), 5.0));
  y[1] = which.x * 1000 + which.y * 100 + which.z * 10 + which.w;
  y[2] = u32(textureLoad(shadow, vec2u(1, 0), 0));
  y[3] = u32(textureSampleLevel(shadow, how, vec2f(0.0), 0));
}
// run: @depths(shadow = texture(depth32float, 2, 2, [2, 4, 6, 8]), against = sampler(linear, compare_less), how = sampler(), y = zeros(4)) groups(1)
//   -> y == [50, 1100, 4, 2]

@compute @workgroup_size(1)
fn cubes() {
  y[0] = u32(textureSampleLevel(sky, how, vec3f(0.0, 0.0, -2.0), 0.0).x);
  y[1] = textureDimensions(sky).y;
  y[2] = textureLoad(edges, vec2u(1, 0), 2).x;
  y[3] = textureNumSamples(edges);
}
// run: @cubes(sky = texture(r32float, 1, 1, 6, iota(6)), how = sampler(), edges = texture(r8uint, 2, 1, samples 4, iota(8)), y = zeros(4)) groups(1)
//   -> y == [5, 1, 5, 4]

@compute @workgroup_size(1)
fn beside() {
  y[0] = u32(textureSampleLevel(picture, how, vec2f(0.0), 0.0, vec2i(1, 1)).x);
  y[1] = u32(textureSampleGrad(picture, how, vec2f(0.5), vec2f(1.0, 0.0), vec2f(0.0, 0.25)).x);
  y[2] = u32(textureGather(0, picture, how, vec2f(0.5), vec2i(-1, 0)).y);
}
// run: @beside(picture = texture(r32float, 2, 2, levels 2, [2, 4, 6, 8, 9]), how = sampler(mip_nearest), y = zeros(3)) groups(1)
//   -> y == [8, 9, 6]

@group(2) @binding(4) var counts: texture_storage_2d<r32uint, atomic>;

@compute @workgroup_size(8)
fn counts_up(@builtin(local_invocation_index) i: u32) {
  textureAtomicAdd(counts, vec2u(i % 2, 0), 1u);
  textureAtomicMax(counts, vec2u(2, 0), i);
}
// run: @counts_up(counts = texture(r32uint, 3, 1)) groups(1) -> counts == [4, 4, 7]

// A texture of one dimension has one level: what is loaded from another is out of bounds.
@compute @workgroup_size(1)
fn one_level() {
  y[0] = u32(textureLoad(volume, vec3i(0, 0, 1), y[3]).x);
  y[1] = u32(textureLoad(line, 2, i32(y[3])).x);
  y[2] = textureDimensions(volume, y[3]).z + textureDimensions(line, y[3]);
}
// run: @one_level(volume = texture(r8sint, 1, 1, 2, [5, 6]), line = texture(r32float, 3, 1, [7, 8, 9]), y = zeros(4))
//   groups(1) -> y == [6, 9, 5, 0]

@compute @workgroup_size(1)
fn other_levels() {
  y[0] = u32(textureLoad(volume, vec3i(0, 0, 1), 1).x); // error[out-of-bounds]: volume
  y[1] = u32(textureLoad(line, 2u, y[3]).x); // error[out-of-bounds]: line
}
// run: @other_levels(volume = texture(r8sint, 1, 1, 2, [5, 6]), line = texture(r32float, 3, 1, [7, 8, 9]), y = fill(4, 2))
//   groups(1) -> y == [0, 0, 2, 2]

@group(0) @binding(15) var deeper: texture_3d<f32>;
@group(0) @binding(16) var skies: texture_cube_array<f32>;

// A volume has levels of half the slices, too.
@compute @workgroup_size(1)
fn levels_of_volumes() {
  y[0] = u32(textureLoad(deeper, vec3u(0, 0, 1), 1).x);
  y[1] = textureDimensions(deeper, 1).z * 10 + textureNumLevels(deeper);
  y[2] = u32(textureSampleLevel(deeper, how, vec3f(0.5), 1.0).x);
  y[3] = u32(textureSampleGrad(deeper, how, vec3f(0.5), vec3f(0.0, 0.0, 1.0), vec3f(0.25)).x);
  y[4] = u32(textureSampleGrad(sky, how, vec3f(1.0, 0.0, 0.0), vec3f(0.0, 1.0, 0.0), vec3f(0.0)).x);
  y[5] = u32(textureSampleGrad(skies, how, vec3f(1.0, 0.0, 0.0), 1, vec3f(0.0, 4.0, 0.0), vec3f(0.0)).x);
}
// run: @levels_of_volumes(deeper = texture3d(r32float, 1, 1, 4, levels 3, [1, 2, 3, 4, 5, 6, 7]), how = sampler(mip_nearest),
//   sky = texture(r32float, 4, 4, 6, levels 3, iota(126)), skies = texture(r32float, 2, 2, 12, levels 2, iota(60)), y = zeros(6)) groups(1)
//   -> y == [6, 23, 6, 7, 99, 54]

@group(2) @binding(5) var shade: texture_depth_cube_array;

// A gather of a cube goes around on its face: between +x and +z, and in the middle of +x.
@compute @workgroup_size(1)
fn gathers_of_cubes() {
  let g = vec4u(textureGather(1, sky, how, vec3f(1.0, 0.0, 1.0)));
  let d = vec4u(textureGather(shade, how, vec3f(1.0, 0.0, 0.0), 1));
  let c = vec4u(textureGatherCompare(shade, against, vec3f(1.0, 0.0, 0.0), 1, 25.5));
  for (var i = 0u; i < 4u; i++) {
    y[i] = g[i] + 100u * d[i] + 10000u * c[i];
  }
}
// run: @gathers_of_cubes(sky = texture(rg32float, 2, 2, 6, iota(48)), how = sampler(), shade = texture(r32float, 2, 2, 12, iota(48)),
//   against = sampler(compare_less), y = zeros(4)) groups(1)
//   -> y == [12639, 12705, 2501, 2435]

@group(0) @binding(7) var deep: texture_depth_multisampled_2d;

@compute @workgroup_size(4)
fn samples_of_depths(@builtin(local_invocation_index) i: u32) {
  let size = textureDimensions(deep);
  y[i] = u32(textureLoad(deep, vec2u(1, 0), i)) + 10u * (size.x + textureNumSamples(deep));
}
// run: @samples_of_depths(deep = texture(r32float, 2, 1, samples 4, [1, 2, 3, 4, 5, 6, 7, 8]), y = zeros(4))
//   groups(1) -> y == [62, 64, 66, 68]

@group(0) @binding(13) var row: texture_2d<f32>;
@group(0) @binding(14) var around: sampler;

@compute @workgroup_size(1)
fn keeps_from_the_edges() {
  for (var i = 0u; i < 4u; i++) {
    let u = array(-3.0, 0.0, 0.5, 1.0)[i];
    y[i] = u32(textureSampleBaseClampToEdge(row, around, vec2f(u, 0.5)).x);
  }
}
// Half a texel from the edge is the middle of the last one, which a sampler that repeats would mix with the first.
// run: @keeps_from_the_edges(row = texture(r32float, 2, 1, [2, 6]), around = sampler(linear, repeat), y = zeros(4))
//   groups(1) -> y == [2, 2, 4, 6]
