// Pointers to variables of every kind as arguments.
struct Pair { a: u32, b: vec2u }
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<workgroup> shared_pair: Pair;
var<private> counter: u32 = 5u;

fn bump(p: ptr<function, u32>) { *p += 1u; counter += 10u; }
fn swap(p: ptr<function, vec2u>) { let t = (*p).x; (*p).x = (*p).y; (*p).y = t; }
fn assign(p: ptr<function, Pair>, v: u32) { (*p).a = v; (*p).b[1] = v + 1u; }
fn fill(p: ptr<function, array<u32, 4>>) { for (var i = 0u; i < 4u; i++) { (*p)[i] = i * i; } }
fn nested(p: ptr<function, array<u32, 4>>) { fill(p); (*p)[0] = 9u; }
fn count() -> u32 { counter += 1u; return counter; }

@compute @workgroup_size(1)
fn main() {
  var n = 1u;
  bump(&n);
  if n == 2u { bump(&n); }
  y[0] = n;
  var v = vec2u(3u, 4u);
  swap(&v);
  y[1] = v.x * 10u + v.y;
  var pair: Pair;
  assign(&pair, 6u);
  let part = &pair.b;
  (*part).x = 2u;
  y[2] = pair.a * 100u + pair.b.x * 10u + pair.b.y;
  var list: array<u32, 4>;
  nested(&list);
  let copy = list;
  list[1] = 0u;
  y[3] = copy[0] * 1000u + copy[1] * 100u + list[1] * 10u + list[3];
  y[4] = count() + count();
  shared_pair = pair;
  y[5] = shared_pair.b.y;
}
// run: @main(y = zeros(6)) groups(1) -> y == [3, 43, 627, 9109, 53, 7]
