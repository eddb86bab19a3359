// Of what a jump passes over it is said that some threads jump, and not that it is in an `if`, in which it is not.
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<workgroup> t: array<u32, 8>;

@compute @workgroup_size(8)
fn continues(@builtin(local_invocation_index) l: u32) {
  for (var i = 0u; i < 8u; i++) {
    if (i == l) {
      y[l] = i;
      continue;
    }
    workgroupBarrier(); // error[barrier-not-uniform]: some threads `continue`, and `i == l` may differ
  }
}

@compute @workgroup_size(8)
fn breaks(@builtin(local_invocation_index) l: u32) {
  for (var i = 0u; i < 8u; i++) {
    switch (i) {
      case 3u: {
        if (l > 2u) { break; }
        workgroupBarrier(); // error[barrier-not-uniform]: some threads `break`, and `l > 2u` may differ
      }
      default: {}
    }
    y[l] = i;
  }
}

fn waits() {
  workgroupBarrier(); // error[barrier-not-uniform]: some threads `return`, and `l > 2u` may differ
}

fn helper(l: u32) -> u32 {
  if (l > 2u) {
    return 1u;
  }
  waits();
  return 2u;
}

@compute @workgroup_size(8)
fn returns(@builtin(local_invocation_index) l: u32) {
  y[l] = helper(l);
}

@compute @workgroup_size(8)
fn deeper(@builtin(local_invocation_index) l: u32) {
  for (var i = 0u; i < 8u; i++) {
    if (i > 2u) {
      if (i == l) {
        continue;
      }
      y[l] = i;
    }
    workgroupBarrier(); // error[barrier-not-uniform]: some threads `continue`, and `i == l` may differ
  }
}

// What is in an `if` is, wherever jumps are.
@compute @workgroup_size(8)
fn inside(@builtin(local_invocation_index) l: u32) {
  for (var i = 0u; i < 8u; i++) {
    if (i == l) {
      workgroupBarrier(); // error[barrier-not-uniform]: it is in an `if`, and `i == l` may differ
    } else {
      continue;
    }
    y[l] = i;
  }
}

// What a `switch` is of is its head, also where all of it is in one line; a call that waits, asserts and waits is one
// error.
@compute @workgroup_size(8)
fn heads(@builtin(local_invocation_index) l: u32) {
  switch (l) { case 0u: { workgroupBarrier(); } default: {} } // error[barrier-not-uniform]: in a `switch`, and `l` may differ from thread to thread
}

@compute @workgroup_size(8)
fn loads(@builtin(local_invocation_index) l: u32) {
  if (l < 4u) {
    y[l] = workgroupUniformLoad(&t[0]); // error[barrier-not-uniform]: a threadgroup barrier may be missed by threads of the threadgroup: it is in an `if`, and `l < 4u` may differ from thread to thread
  }
}
