// Storage textures are parameters of functions, and of functions that these call.
@group(0) @binding(0) var single: texture_storage_2d<r32float, read_write>;
@group(0) @binding(1) var many: texture_storage_2d_array<rgba16float, write>;
@group(0) @binding(2) var counts: texture_storage_2d<r32uint, atomic>;
@group(0) @binding(3) var other: texture_storage_2d<r32float, read_write>;

fn put(image: texture_storage_2d<r32float, read_write>, at: vec2u, value: f32) {
  textureStore(image, at, vec4f(value)); // error[data-race]: single
}

fn add(image: texture_storage_2d<r32float, read_write>, at: vec2u) {
  put(image, at, textureLoad(image, at).x + f32(textureDimensions(image).x));
}

fn layer(image: texture_storage_2d_array<rgba16float, write>, number: u32) {
  textureStore(image, vec2u(), number, vec4f(f32(number)));
}

fn count(image: texture_storage_2d<r32uint, atomic>, at: vec2u) {
  textureAtomicAdd(image, at, 1u);
}

@compute @workgroup_size(2)
fn adds(@builtin(global_invocation_id) id: vec3u) {
  add(single, id.xy);
  put(other, id.xy, 5.0);
  if (id.x == 0u) { layer(many, 1u); }
  count(counts, vec2u());
}
// run: @adds(single = texture(r32float, 2, 1, [1, 2]), many = texture(rgba16float, 1, 1, 2), counts = texture(r32uint, 1, 1),
//   other = texture(r32float, 2, 1)) groups(1)
//   -> single == [3, 4], many == [0, 0, 0, 0, 1, 1, 1, 1], counts == [2], other == [5, 5]

@compute @workgroup_size(2)
fn races(@builtin(global_invocation_id) id: vec3u) {
  put(single, vec2u(), f32(id.x));
}
// run: @races(single = texture(r32float, 2, 1)) groups(1)
