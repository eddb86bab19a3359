// Arrays in variables: with computed indices, of structs, copied, made of constants, long and zero again.
struct Cell { at: vec3u, n: u32 }
const table = array<u32, 6>(2u, 3u, 5u, 7u, 11u, 13u);
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<private> history: array<u32, 40>;

fn sum(all: array<u32, 40>) -> u32 {
  var s = 0u;
  for (var i = 0u; i < 40u; i++) { s += all[i]; }
  return s;
}

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {
  y[i] = table[i + 2u];
  var cells: array<Cell, 3>;
  cells[i % 3u].at[i % 3u] = 5u;
  cells[1] = Cell(vec3u(1u, 2u, 3u), 4u);
  let taken = cells[i % 3u];
  y[4u + i] = taken.at.x + taken.at.y * 10u + taken.n * 100u;
  for (var k = 0u; k < 40u; k++) { history[k] = k; }
  y[8u + i] = sum(history);
  history = array<u32, 40>();
  y[12u + i] = sum(history) + array<u32, 3>(i, 20u, 30u)[i % 3u];
}
// run: @main(y = zeros(16)) groups(1)
//   -> y == [5, 7, 11, 13, 5, 421, 0, 5, 780, 780, 780, 780, 0, 20, 30, 3]
