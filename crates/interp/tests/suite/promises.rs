//! What a run promises whatever the schedule: races stay in their location (R2), equal inputs give
//! equal bytes (R4), buffers outlive the run and hold what was stored, also when it fails (F2, F3).

use invar_interp::{Arg, Dispatch, Options, run};
use invar_ir::text::parse;
use invar_ir::{Verified, verify};

fn module(source: &str) -> Verified {
    verify(parse("test.inv", source).unwrap()).unwrap()
}

fn u32s(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks_exact(4)
        .map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]))
        .collect()
}

/// Every seed and simdgroup size that a test tries.
fn settings() -> impl Iterator<Item = Options> {
    (0..16).flat_map(|seed| {
        [4, 32, 128].map(|size| Options {
            seed,
            simdgroup_size: Some(size),
            step_limit: 100_000,
            ..Options::default()
        })
    })
}

#[test]
fn r2_a_race_leaves_one_of_the_values_stored_and_nothing_else_changes() {
    let module = module(
        "kernel @race(%x: device read_write u32, %seen: device write u32) {
            %i = thread_position_in_grid x
            %one = const u32 1
            %hundred = const u32 100
            %mine = add %i, %hundred
            store %x[%one], %mine
            %v = load %x[%one]
            store %seen[%i], %v
        }",
    );
    let mut finals = Vec::new();
    for options in settings() {
        let x: Vec<u8> = [7u32, 8, 9].iter().flat_map(|v| v.to_le_bytes()).collect();
        let mut args = [Arg::OwnedBuffer(x), Arg::zeros(4 * 64)];
        run(
            &module,
            "race",
            &Dispatch::linear(64, 16),
            &mut args,
            &options,
            &mut [],
        )
        .unwrap();
        let x = u32s(args[0].bytes());
        assert_eq!((x[0], x[2]), (7, 9), "neighbours");
        assert!((100..164).contains(&x[1]), "{x:?}");
        // No thread sees a value older than its own store.
        let seen = u32s(args[1].bytes());
        assert!(seen.iter().all(|v| (100..164).contains(v)), "{seen:?}");
        finals.push(x[1]);
    }
    finals.sort_unstable();
    finals.dedup();
    assert!(finals.len() > 3, "seeds change the outcome: {finals:?}");
}

#[test]
fn r4_without_races_every_schedule_gives_the_same_bytes() {
    let module = module(
        "kernel @sums(%x: device read f32, %y: device write f32, %n: device read_write u32) threadgroup(32) simdgroup(32) {
            %tile = alloc threadgroup f32[32]
            %i = thread_position_in_grid x
            %t = thread_index_in_threadgroup
            %v = load %x[%i]
            %s = simd_sum %v
            %e = exp %s
            store %tile[%t], %e
            barrier threadgroup [threadgroup]
            %last = const u32 31
            %r = sub %last, %t
            %w = load %tile[%r]
            %p = mul %w, %v
            %q = add %p, %w
            store %y[%i], %q
            %zero = const u32 0
            %old = atomic_add %n[%zero], %i relaxed device
        }",
    );
    let x: Vec<u8> = (0..256u32)
        .flat_map(|i| ((i as f32) * 0.001 - 0.1).to_le_bytes())
        .collect();
    let mut first: Option<Vec<Vec<u8>>> = None;
    for seed in 0..16 {
        let options = Options {
            seed,
            ..Options::default()
        };
        let mut args = [Arg::ReadBuffer(&x), Arg::zeros(4 * 256), Arg::zeros(4)];
        run(
            &module,
            "sums",
            &Dispatch::linear(256, 32),
            &mut args,
            &options,
            &mut [],
        )
        .unwrap();
        let left: Vec<Vec<u8>> = args.iter().map(|a| a.bytes().to_vec()).collect();
        assert_eq!(u32s(&left[2]), [255 * 256 / 2]);
        assert_eq!(
            first.get_or_insert_with(|| left.clone()),
            &left,
            "seed {seed}"
        );
    }
}

#[test]
fn f2_a_run_is_over_when_it_returns_and_the_next_one_goes_on_from_there() {
    let module = module(
        "kernel @count(%x: device read_write u32) {
            %i = thread_position_in_grid x
            %v = load %x[%i]
            %one = const u32 1
            %w = add %v, %one
            store %x[%i], %w
        }",
    );
    for options in settings() {
        let mut x = vec![0; 4 * 100];
        for round in 1..=3 {
            let mut args = [Arg::Buffer(&mut x)];
            run(
                &module,
                "count",
                &Dispatch::linear(100, 32),
                &mut args,
                &options,
                &mut [],
            )
            .unwrap();
            assert!(u32s(&x).iter().all(|v| *v == round), "round {round}");
        }
    }
}

#[test]
fn f3_after_a_failed_run_each_location_holds_an_old_value_or_a_stored_one() {
    let module = module(
        "kernel @endless(%x: device read_write u32) {
            %i = thread_position_in_grid x
            %one = const u32 1
            %two = const u32 2
            store %x[%i], %one
            loop {
                store %x[%i], %two
            }
        }",
    );
    for options in settings() {
        let x: Vec<u8> = [9u32; 64].iter().flat_map(|v| v.to_le_bytes()).collect();
        let mut args = [Arg::OwnedBuffer(x)];
        let dispatch = Dispatch::linear(64, 16);
        let error = run(&module, "endless", &dispatch, &mut args, &options, &mut []).unwrap_err();
        assert_eq!(error.0[0].rule.name(), "step-limit");
        let x = u32s(args[0].bytes());
        assert!(x.iter().all(|v| [1, 2, 9].contains(v)), "{x:?}");
        assert!(x.contains(&2), "something ran: {x:?}");
    }
}
