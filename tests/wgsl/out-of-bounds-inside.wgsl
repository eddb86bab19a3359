// An index beyond an array, a vector or a matrix inside of a variable is told by what it is an index of, as the author
// has it.
struct List { count: u32, table: array<u32, 4>, turn: mat2x2f, items: array<vec3f> }
@group(0) @binding(0) var<storage, read_write> list: List;
var<workgroup> few: array<array<u32, 3>, 2>;

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {
  list.items[i][i] = 1.0; // error[out-of-bounds]: writes component 3 of `list.items[3]`, which has 3
  few[1][i] = i; // error[out-of-bounds]: writes element 3 of `few[1]`, which has 3
  if i > 2u {
    list.table[i * 2u] = 1u; // error[out-of-bounds]: writes element 6 of `list[0].table`, which has 4
    list.turn[i] = vec2f(1.0); // error[out-of-bounds]: writes column 3 of `list[0].turn`, which has 2
  }
}
// run: @main(list = zeros(1), "list.items" = zeros(4)) groups(1)
