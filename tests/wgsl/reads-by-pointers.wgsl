// A report of a read by `*p` stands where that is written, not where the pointer is declared.
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
struct Cell { at: vec3f }
var<workgroup> tile: array<f32, 64>;
var<workgroup> cells: array<Cell, 64>;

fn whole(
  p: ptr<workgroup, f32>
) -> f32 {
  let one = 1.0;
  return *p; // error[data-race]: tile
}
fn handed_on(p: ptr<workgroup, f32>) -> f32 {
  return
    whole(p);
}
fn in_a_sum(p: ptr<workgroup, f32>) -> f32 {
  let a = 2.0;
  let b = a + * p; // error[data-race]: tile
  return b;
}
fn of_a_vector(p: ptr<workgroup, vec3f>) -> f32 {
  let one = vec3f(1); // not *p

  return dot(*p, one); // error[data-race]: cells
}
fn two_components(p: ptr<workgroup, vec3f>) -> f32 {
  let one = 1.0;
  let two = (*p).xy; // error[data-race]: cells
  return one * two.x;
}
fn with_a_name(p: ptr<workgroup, f32>) -> f32 {
  let one = 1.0;
  let b: f32 = (*p); // error[data-race]: tile
  return one + b;
}
fn in_a_variable(p: ptr<workgroup, f32>) -> f32 {
  let one = 1.0;
  var b = *p; // error[data-race]: tile
  b += one;
  return b;
}
fn increment(p: ptr<workgroup, f32>) {
  let one = 1.0;

  *p += one; // error[data-race]: tile
}
fn in_a_condition(p: ptr<workgroup, f32>, q: ptr<workgroup, f32>) -> f32 {
  if *q > 0.5 {
    return 1.0;
  }
  let a = 1.0;
  return select(a, 3.0, *p > 2.0); // error[data-race]: tile
}

@compute @workgroup_size(64)
fn reads(@builtin(local_invocation_index) i: u32) {
  tile[i] = 0.0;
  y[i] = handed_on(&tile[63u - i]);
}
// run: @reads(y = zeros(64)) groups(1)

@compute @workgroup_size(64)
fn sums(@builtin(local_invocation_index) i: u32) {
  tile[i] = 0.0;
  y[i] = in_a_sum(&tile[63u - i]);
}
// run: @sums(y = zeros(64)) groups(1)

@compute @workgroup_size(64)
fn vectors(@builtin(local_invocation_index) i: u32) {
  cells[i].at = vec3f(2);
  y[i] = of_a_vector(&cells[63u - i].at);
}
// run: @vectors(y = zeros(64)) groups(1)

@compute @workgroup_size(64)
fn components(@builtin(local_invocation_index) i: u32) {
  cells[i].at = vec3f(2);
  y[i] = two_components(&cells[63u - i].at);
}
// run: @components(y = zeros(64)) groups(1)

@compute @workgroup_size(64)
fn names(@builtin(local_invocation_index) i: u32) {
  tile[i] = 0.0;
  y[i] = with_a_name(&tile[63u - i]);
}
// run: @names(y = zeros(64)) groups(1)

@compute @workgroup_size(64)
fn variables(@builtin(local_invocation_index) i: u32) {
  tile[i] = 0.0;
  y[i] = in_a_variable(&tile[63u - i]);
}
// run: @variables(y = zeros(64)) groups(1)

@compute @workgroup_size(64)
fn increments(@builtin(local_invocation_index) i: u32) {
  increment(&tile[i / 2u]);
}
// run: @increments() groups(1)

@compute @workgroup_size(64)
fn conditions(@builtin(local_invocation_index) i: u32) {
  tile[i] = 0.0;
  y[i] = in_a_condition(&tile[63u - i], &tile[i]);
}
// run: @conditions(y = zeros(64)) groups(1)

@compute @workgroup_size(64)
fn lets(@builtin(local_invocation_index) i: u32) {
  tile[i] = 0.0;
  let p = &tile[63u - i];
  let one = 1.0;
  y[i] = one + *p; // error[data-race]: tile
}
// run: @lets(y = zeros(64)) groups(1)
