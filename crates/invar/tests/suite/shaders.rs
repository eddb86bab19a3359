//! Shaders in WGSL, launched from Rust.

use invar::ir::{Rule, verify};
use invar::{Arg, Device, Dispatch};

/// Workgroup memory is zeros at first, by the standard, so that reading it is not a finding.
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

/// As in WebGPU: a launch gives values to the overrides that its entry point statically uses.
#[test]
fn launches_need_the_overrides_that_their_entry_point_uses() {
    let text = "
        override by: u32;
        override n: u32;
        var<workgroup> tile: array<u32, n * 2u>;
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(4)
        fn plain(@builtin(local_invocation_index) i: u32) { y[i] = i; }
        @compute @workgroup_size(4)
        fn scaled(@builtin(local_invocation_index) i: u32) { y[i] = i * by; }
        @compute @workgroup_size(4)
        fn sized(@builtin(local_invocation_index) i: u32) { tile[i] = i; y[i] = tile[i]; }
    ";
    let module = invar::wgsl::read("overrides.wgsl", text).expect("a shader");
    let names: Vec<&str> = module.kernels.iter().map(|k| &*k.name).collect();
    assert_eq!(names, ["plain", "scaled"]);
    let module = verify(module).expect("kernels");
    for device in [Device::checked(), Device::cpu()] {
        let program = device.compile(&module, "plain").expect("a program");
        let y = device.buffer_from(&[9_u32; 4]).expect("a buffer");
        let done = device
            .queue()
            .dispatch(&program, Dispatch::linear(4, 4), &[Arg::from(&y)])
            .expect("a dispatch");
        done.wait().expect("a clean run");
        assert_eq!(y.read().expect("numbers"), [0, 1, 2, 3]);
        let Err(refused) = device.compile(&module, "scaled") else {
            panic!("`by` has no value");
        };
        assert!(refused.to_string().contains("`@by`"), "{refused}");
    }
}
