//! Every generated kernel is valid, ends, races with nothing, and all of the language is generated.

use std::collections::BTreeMap;

use invar_conformance::{Floats, Options, Trial, compare_case, generate, with_prints};
use invar_interp::{CheckOptions, Verdict, check};
use invar_ir::{AddressSpace, InstKind, Kernel, Module, Op, Rule, Scalar, text, verify};

fn count(kernel: &Kernel, counts: &mut BTreeMap<&'static str, u64>) {
    kernel.for_each_inst(&mut |inst| *counts.entry(inst.kind.name()).or_default() += 1);
}

#[test]
fn every_seed_gives_a_valid_kernel_and_together_all_of_the_language() {
    let mut counts = BTreeMap::new();
    for seed in 0..4000 {
        let case = generate(seed, &Options::default());
        let text = case.to_string();
        count(case.kernel(), &mut counts);
        if let Err(errors) = verify(case.module.clone()) {
            panic!("seed {seed}: {errors}\n{text}");
        }
        if seed % 100 == 0 {
            let prints = with_prints(case, seed).expect("a kernel that prints");
            count(prints.kernel(), &mut counts);
            assert!(verify(prints.module).is_ok(), "seed {seed} with prints");
        }
    }
    let wanted = InstKind::STRUCTURAL
        .into_iter()
        .chain(Op::all().map(Op::name));
    let wanted = wanted.chain(invar_ir::AtomicOp::ALL.map(invar_ir::AtomicOp::name));
    let missing: Vec<&str> = wanted.filter(|name| !counts.contains_key(name)).collect();
    assert!(missing.is_empty(), "never generated: {missing:?}");
}

#[test]
fn threadgroup_arrays_and_imageblocks_fit_every_device() {
    let mut imageblocks = 0;
    for seed in (0..4000).chain([39_568]) {
        let case = generate(seed, &Options::default());
        let structs = &case.module.structs;
        let allocs = case.kernel().allocs.iter();
        let bytes = allocs
            .filter(|a| a.space != AddressSpace::Thread)
            .map(|a| a.element.extent(structs).map_or(0, |e| e.size_bytes) * u64::from(a.length))
            .sum::<u64>();
        assert!(bytes <= 64 << 10, "seed {seed}: {bytes} bytes");
        imageblocks += u32::from(case.kernel().has_imageblocks());
    }
    assert!(imageblocks >= 20, "only {imageblocks} have imageblocks");
}

#[test]
fn text_and_module_are_one_case() {
    for seed in 0..200 {
        let case = generate(seed, &Options::default());
        let text = case.to_string();
        let module =
            text::parse("case.inv", &text).unwrap_or_else(|e| panic!("{seed}: {e}\n{text}"));
        assert!(
            module.same_up_to_spans(&case.module),
            "seed {seed}:\n{text}"
        );
        assert_eq!(text::cases(&text).map(|c| c.len()), Ok(1));
    }
}

/// R4, and the checkers: no schedule changes a byte, and no race is reported.
#[test]
fn r4_no_schedule_changes_what_a_generated_kernel_leaves() {
    for seed in 0..400 {
        let case = generate(seed, &Options::default());
        let module = verify(case.module.clone()).and_then(|m| m.specialise(&case.constants));
        let module = module.unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let options = CheckOptions {
            seeds: Some(3),
            allow: vec![Rule::UninitialisedRead],
            deny_warnings: true,
            ..CheckOptions::default()
        };
        let args = case
            .args()
            .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{case}"));
        let report = check(&module, "random", &case.dispatch, &args, &options)
            .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{case}"));
        let found = report.diagnostics.first();
        assert_eq!(
            report.verdict,
            Verdict::Pass,
            "seed {seed}: {}\n{case}",
            found.map_or(String::new(), |d| d.to_string())
        );
    }
}

#[test]
fn restricted_kernels_keep_to_what_is_allowed() {
    let options = Options {
        floats: Floats::Exact,
        scalars: vec![Scalar::Bool, Scalar::I32, Scalar::U32, Scalar::F32],
        simdgroup_size: None,
        matrices_and_async_copies: false,
        atomics: false,
        copies: false,
        wide_atomics: false,
        memory_orders: false,
        threads_per_threadgroup: 64,
        ..Options::default()
    };
    let allowed = |module: &Module| {
        let kernel = &module.kernels[0];
        let mut fine = kernel.simdgroup_size.is_none();
        kernel.for_each_inst(&mut |inst| {
            // The length of a buffer is a u64 whatever the device has.
            if !matches!(inst.kind, InstKind::BufferLength(_)) {
                let scalars = inst.results.iter().filter_map(|v| kernel.ty(*v).scalar());
                fine &= scalars.into_iter().all(|s| options.scalars.contains(&s));
            }
            let left_out = matches!(inst.kind, InstKind::Atomic { .. } | InstKind::Copy { .. });
            fine &= !left_out;
        });
        fine
    };
    for seed in 0..500 {
        let case = generate(seed, &options);
        verify(case.module.clone()).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{case}"));
        assert!(allowed(&case.module), "seed {seed}:\n{case}");
        assert!(case.dispatch.threadgroup.iter().product::<u32>() <= 64);
    }
}

#[test]
fn every_generated_kernel_ends() {
    for seed in 0..400 {
        let case = generate(seed, &Options::default());
        let trial = compare_case(&case, &mut |module, kernel, dispatch, args| {
            let options = invar_interp::Options {
                seed: seed + 1,
                step_limit: 20_000_000,
                ..Default::default()
            };
            invar_interp::run(module, kernel, dispatch, args, &options, &mut []).map(|_| ())
        });
        assert_eq!(trial, Trial::Same, "seed {seed}:\n{case}");
    }
}
