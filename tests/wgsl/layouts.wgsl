// What is shared with the host lies as the standard says; padding is in the lists of numbers.
struct Inner { a: u32, b: vec3u, c: u32 }
struct Outer { first: u32, inner: Inner, pair: array<vec2u, 2>, wide: array<vec3u, 2>, last: vec3u }
@group(0) @binding(0) var<storage, read> given: Outer;
@group(0) @binding(1) var<storage, read_write> to: array<u32>;
@group(0) @binding(2) var<storage, read_write> threes: array<vec3u>;

@compute @workgroup_size(1)
fn main() {
  to[0] = given.first;
  to[1] = given.inner.a;
  to[2] = given.inner.b.x;
  to[3] = given.inner.b.z;
  to[4] = given.inner.c;
  to[5] = given.pair[1].x;
  let k = given.first;
  to[6] = given.wide[k].z;
  to[7] = given.last.y;
  threes[1] = given.wide[0];
  threes[2][k] = 77u;
}
// The numbers name the word that they stand in.
// run: @main(given = iota(1), to = zeros(8), threes = zeros(3)) groups(1)
//   -> to == [0, 4, 8, 10, 11, 14, 18, 25],
//      threes == [0, 0, 0, 0, 16, 17, 18, 0, 77, 0, 0, 0]
