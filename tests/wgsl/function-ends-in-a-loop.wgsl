// A function may end in a loop that only a `return` leaves.
struct Found { at: u32, square: u32 }
@group(0) @binding(0) var<storage, read_write> y: array<u32>;

fn next_of_seven(start: u32) -> u32 {
  var i = start;
  loop {
    if (i % 7u == 0u) {
      return i;
    }
    i++;
  }
}

fn find(start: u32) -> Found {
  if (start > 5u) {
    for (var i = start; ; i++) {
      switch (i % 4u) {
        case 0u: { return Found(i, i * i); }
        default: { break; }
      }
    }
  } else {
    return Found(start, 1u);
  }
}

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3u) {
  y[id.x] = next_of_seven(id.x + 6u);
  let found = find(id.x + 4u);
  y[4u + id.x] = found.at * 100u + found.square;
}
// run: @main(y = zeros(8)) groups(1)
//   -> y == [7, 7, 14, 14, 401, 501, 864, 864]
