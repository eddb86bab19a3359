// Pointers are followed: two that lead to one variable mean what they say.

@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<private> total: u32;

fn add(a: ptr<function, u32>, b: ptr<function, u32>) {
  *a += 1u;
  *b += *a;
}

fn twice(a: ptr<private, u32>) {
  total += 1u;
  *a += total;
}

@compute @workgroup_size(1)
fn main() {
  var v = 3u;
  add(&v, &v);
  y[0] = v;
  total = 4u;
  twice(&total);
  y[1] = total;
}
// run: @main(y = zeros(2)) groups(1) -> y == [8, 10]
