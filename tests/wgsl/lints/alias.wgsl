// A function writes through a pointer what it also reaches by another name: browsers refuse it.

@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<private> total: u32;
var<private> list: array<u32, 4>;

fn add(to: ptr<function, u32>, by: ptr<function, u32>) {
  *to += *by;
}

fn onto_total(by: ptr<private, u32>) {
  total += *by;
}

fn from_total(to: ptr<private, u32>) {
  *to += total;
}

fn handed_on(a: ptr<function, u32>, b: ptr<function, u32>) {
  add(b, a);
}

fn parts(to: ptr<private, u32>, by: ptr<private, u32>) {
  *to = *by;
}

@compute @workgroup_size(1)
fn main() {
  var v = 3u;
  add(&v, &v); // warning[wgsl-alias]: the pointers `to` and `by` of `add` both lead to `v`
  handed_on(&v, &v); // warning[wgsl-alias]: `handed_on` writes through `b`
  onto_total(&total); // warning[wgsl-alias]: `onto_total` writes `total` itself
  from_total(&total); // warning[wgsl-alias]: `from_total` reads `total` itself
  parts(&list[0], &list[1]); // warning[wgsl-alias]: `list`
  y[0] = v;
}
