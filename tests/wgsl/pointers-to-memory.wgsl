// Pointers to storage, uniforms and workgroup memory as arguments: to whole variables, to parts, and handed on.
requires unrestricted_pointer_parameters;

struct Cell { count: atomic<u32>, at: vec2f }
struct List { size: u32, items: array<u32> }
@group(0) @binding(0) var<storage, read_write> y: array<u32, 64>;
@group(0) @binding(1) var<storage, read> x: array<u32>;
@group(0) @binding(2) var<uniform> limits: vec4u;
@group(0) @binding(3) var<storage, read_write> list: List;
var<workgroup> tile: array<u32, 64>;
var<workgroup> cells: array<Cell, 4>;

fn bump(p: ptr<workgroup, u32>, by: u32) -> u32 { *p += by; return *p; }
fn put(p: ptr<storage, array<u32, 64>, read_write>, i: u32, v: u32) { (*p)[i] = v; }
fn sum(p: ptr<storage, array<u32>, read>, i: u32) -> u32 { return (*p)[i] + arrayLength(p); }
fn clamped(p: ptr<uniform, vec4u>, v: u32) -> u32 { return min(v, (*p).y); }
fn count(c: ptr<workgroup, Cell>) { atomicAdd(&(*c).count, 1u); hand_on(&(*c).at); }
fn hand_on(at: ptr<workgroup, vec2f>) { (*at).y = 2.5; }
fn last(l: ptr<storage, List, read_write>) -> u32 { return (*l).items[(*l).size - 1u]; }
fn neighbour(p: ptr<workgroup, array<u32, 64>>, i: u32) -> u32 {
  return (*p)[(i + 1u) % 64u]; // error[data-race]: tile
}

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {
  tile[i] = i;
  var v = bump(&tile[i], 3u) + sum(&x, i);
  if i == 0u {
    let cell = &cells[2];
    count(cell);
    count(cell);
    v = atomicLoad(&(*cell).count) + u32(2.0 * (*cell).at.y);
  }
  put(&y, i, clamped(&limits, v));
  if i == 1u { put(&y, 1u, last(&list)); }
}
// run: @main(y = zeros(64), x = iota(64), limits = [0, 100, 0, 0], list = [3], "list.items" = [7, 8, 9]) groups(1)
//   -> y == [7, 9, 71, 73, 75, 77, 79, 81, 83, 85, 87, 89, 91, 93, 95, 97, 99, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100]

@compute @workgroup_size(64)
fn races(@builtin(local_invocation_index) i: u32) {
  tile[i] = i;
  y[i] = neighbour(&tile, i);
}
// run: @races(y = zeros(64)) groups(1)
