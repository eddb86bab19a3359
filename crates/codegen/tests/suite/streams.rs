//! The analysis of buffers that may be written past the caches: the line above each kernel of
//! `tests/ir/streams.inv` says which.

use invar_codegen::analysis::streams::streamed;
use invar_conformance::{Options, generate};
use invar_ir::{Memory, text, verify};

#[test]
fn what_is_written_once_and_never_read_streams() {
    let source = include_str!("../../../../tests/ir/streams.inv");
    let module =
        verify(text::parse("streams.inv", source).expect("a module")).expect("it is right");
    let (mut streams, mut nothing) = (0, 0);
    for kernel in &module.kernels {
        let start = source.find(&format!("kernel @{}(", kernel.name));
        let before = &source[..start.expect("the kernel")];
        let line = before.lines().last().expect("a line above");
        let expected = line.strip_prefix("; streams: ");
        let expected = expected.unwrap_or_else(|| panic!("@{}: {line}", kernel.name));
        let found: Vec<String> = streamed(&module, kernel)
            .into_iter()
            .filter_map(|memory| module.memory(kernel, memory))
            .map(|info| info.name.to_string())
            .collect();
        streams += found.len();
        nothing += usize::from(found.is_empty());
        let found = match found[..] {
            [] => "nothing".to_string(),
            _ => found.join(", "),
        };
        assert_eq!(found, expected, "@{}", kernel.name);
    }
    assert!(
        streams >= 8 && nothing >= 9,
        "{streams} stream, {nothing} kernels without"
    );
}

#[test]
fn long_chains_of_sums_take_no_long_time() {
    let sums: String = (1..200)
        .map(|i| format!("%s{i} = add %s{0}, %s{0}\n", i - 1))
        .collect();
    let text = format!(
        "kernel @sums(%y: device write u32, %n: u32) {{
            %zero = const u32 0
            %one = const u32 1
            %s0 = add %n, %one
            {sums}
            for %r = %zero to %n step %one {{
                %at = add %s199, %s198
                store %y[%at], %r
            }}
        }}"
    );
    let module = verify(text::parse("sums.inv", &text).expect("a module")).expect("it is right");
    assert!(streamed(&module, &module.kernels[0]).is_empty());
    let moved = text.replace("add %s199, %s198", "add %s199, %r");
    let module = verify(text::parse("sums.inv", &moved).expect("a module")).expect("it is right");
    let found = streamed(&module, &module.kernels[0]);
    assert_eq!(found, [Memory::Param(0)].into());
}

#[test]
fn random_kernels_stream_too() {
    let streams = |seed: &u64| {
        let case = generate(*seed, &Options::default());
        !streamed(&case.module, case.kernel()).is_empty()
    };
    let count = (0..400).filter(streams).count();
    assert!(count >= 40, "{count} of 400 kernels stream");
}
