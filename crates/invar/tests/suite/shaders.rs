//! Shaders in WGSL, launched from Rust.

use invar::ir::{Rule, verify};
use invar::{Arg, Device, Dispatch};

/// Workgroup memory is zeros at first, by the standard, so that reading it is no finding.
#[test]
fn zeros_of_workgroup_memory_are_no_finding() {
    let text = "
        var<workgroup> tile: array<u32, 8>;
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(4)
        fn clean(@builtin(local_invocation_index) i: u32) { y[i] = tile[i]; }
        @compute @workgroup_size(4)
        fn racy(@builtin(local_invocation_index) i: u32) { y[i] = tile[i]; y[4] = i; }
    ";
    let module = invar::wgsl::read("zeros.wgsl", text).expect("a shader");
    let module = verify(module).expect("kernels");
    let device = Device::checked();
    for (kernel, expected) in [("clean", &[][..]), ("racy", &[Rule::DataRace])] {
        let program = device.compile(&module, kernel).expect("a program");
        let y = device.buffer_from(&[9_u32; 5]).expect("a buffer");
        let dispatch = Dispatch::linear(4, 4);
        let done = device
            .queue()
            .dispatch(&program, dispatch, &[Arg::from(&y)])
            .expect("a dispatch");
        let rules: Vec<Rule> = done.findings().iter().map(|d| d.rule).collect();
        assert_eq!(rules, expected, "{kernel}");
        assert_eq!(done.wait().is_ok(), expected.is_empty(), "{kernel}");
        assert_eq!(y.read().expect("numbers")[..4], [0; 4]);
    }
}
