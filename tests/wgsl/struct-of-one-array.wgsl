struct Item { a: u32, b: u32 }
struct Items { all: array<Item> }
@group(0) @binding(0) var<storage, read_write> items: Items;

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {
  items.all[i].b = items.all[i].a + arrayLength(&items.all);
}
// run: @main("items.all" = [1, 0, 2, 0, 3, 0, 4, 0]) groups(1) -> "items.all" == [1, 5, 2, 6, 3, 7, 4, 8]
