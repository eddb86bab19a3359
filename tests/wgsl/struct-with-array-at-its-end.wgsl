// A buffer that ends in an array of no fixed length is two parameters.
struct List { count: atomic<u32>, limit: u32, items: array<u32> }
@group(0) @binding(0) var<storage, read_write> list: List;

@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) i: u32) {
  if i % 2u == 0u {
    let at = atomicAdd(&list.count, 1u);
    if at < list.limit { list.items[at] = arrayLength(&list.items); }
  }
}
// run: @main(list = [0, 3], "list.items" = zeros(5)) groups(1) -> list == [4, 3], "list.items" == [5, 5, 5, 0, 0]
