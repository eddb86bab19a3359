//! The analysis of threadgroup memory whose initial zeros somebody may see: each array of
//! `tests/ir/zeroing.inv` says in a comment whether it is.

use std::collections::BTreeSet;

use invar_codegen::analysis::zeroing::{Threadgroups, observed};
use invar_ir::{AddressSpace, Memory, text, verify};

#[test]
fn what_may_be_seen_is_zeroed_and_nothing_else() {
    let source = include_str!("../../../../tests/ir/zeroing.inv");
    let module =
        verify(text::parse("zeroing.inv", source).expect("a module")).expect("it is right");
    let (mut zeroed, mut skipped) = (0, 0);
    for kernel in &module.kernels {
        let mut groups = Threadgroups {
            size: kernel.threadgroup_size.expect("a size"),
            full: true,
            simdgroup_size: 32,
            lengths: &[64],
        };
        let found = observed(&module, kernel, &groups);
        groups.full = false;
        let at_edges = observed(&module, kernel, &groups);
        let says = |name: &str| {
            let start = source
                .find(&format!("@{}(", kernel.name))
                .expect("the kernel");
            let body = &source[start..];
            let line = body.lines().find(|line| {
                line.contains(&format!("%{name} = alloc"))
                    || line.contains(&format!("%{name}: threadgroup"))
            });
            match line
                .and_then(|line| line.split_once(';'))
                .map(|(_, what)| what.trim())
            {
                Some("seen") => true,
                Some("unseen") => false,
                other => panic!("@{} %{name}: {other:?}", kernel.name),
            }
        };
        let params = (0..kernel.params.len()).map(|i| Memory::Param(i as u32));
        let allocs = (0..kernel.allocs.len()).map(|i| Memory::Alloc(i as u32));
        let mut expected = BTreeSet::new();
        for memory in params.chain(allocs) {
            let Some(info) = module.memory(kernel, memory) else {
                continue;
            };
            if info.space == AddressSpace::Threadgroup {
                if says(info.name) {
                    expected.insert(memory);
                    zeroed += 1;
                } else {
                    skipped += 1;
                }
            }
        }
        assert_eq!(found, expected, "@{}", kernel.name);
        // Where threadgroups may be smaller nothing less is seen.
        assert!(at_edges.is_superset(&found), "@{}", kernel.name);
    }
    assert!(
        zeroed >= 10 && skipped >= 8,
        "{zeroed} seen, {skipped} unseen"
    );
}
