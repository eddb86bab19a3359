// Names of different variables, copies of values, and pointers through which nothing is written.

@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<private> total: u32;
var<private> other: u32;

fn add(to: ptr<function, u32>, by: ptr<function, u32>) {
  *to += *by;
}

fn add_value(to: ptr<private, u32>, by: u32) {
  *to += by;
}

fn sum(a: ptr<function, u32>, b: ptr<function, u32>) -> u32 {
  return *a + *b;
}

fn total_and(p: ptr<private, u32>) -> u32 {
  return total + *p;
}

fn writes_its_own(p: ptr<function, u32>, q: ptr<function, u32>) {
  var copy = *p;
  copy += 1u;
  y[1] = copy;
}

@compute @workgroup_size(1)
fn main() {
  var v = 3u;
  var w = 4u;
  add(&v, &w);
  add_value(&total, total);
  add_value(&other, total_and(&total));
  writes_its_own(&v, &v);
  y[0] = sum(&v, &v) + other;
}
