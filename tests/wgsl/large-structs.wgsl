// A struct of arrays of megabytes is a variable as any other.
struct Grid { count: atomic<u32>, cells: array<vec4<f32>, 100000>, marks: array<vec3u, 65536> }
@group(0) @binding(0) var<storage, read_write> grid: Grid;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {
  grid.cells[99996u + i] = vec4f(f32(i));
  grid.marks[65532u + i].z = i;
  atomicAdd(&grid.count, 1u);
  y[i] = grid.cells[99996u + i].w + f32(grid.marks[65532u + i].z);
}
// run: @main(grid = zeros(1), y = zeros(4)) groups(1) -> y == [0, 2, 4, 6]
