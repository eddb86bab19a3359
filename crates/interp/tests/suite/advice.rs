//! What the checkers advise under a race: it can be followed in the kernel that was checked, and the
//! kernel is clean then.

use invar_interp::{Arg, CheckOptions, Dispatch, Report, Verdict, check};
use invar_ir::{Rule, text, verify};

fn checked_with(source: &str, threads: u32, args: &[Arg], options: &CheckOptions) -> Report {
    let module = text::parse("k.inv", source).and_then(verify);
    let module = module.unwrap_or_else(|e| panic!("{e}\n{source}"));
    let dispatch = Dispatch::linear(threads, threads.min(64));
    check(&module, "k", &dispatch, args, options).expect("runs")
}

/// The help of the data race on a line, of a kernel of two buffers.
fn help(source: &str, threads: u32, line: u32) -> String {
    let args = [Arg::zeros(1024), Arg::zeros(1024)];
    let report = checked_with(source, threads, &args, &CheckOptions::default());
    let mut races = report
        .diagnostics
        .iter()
        .filter(|d| d.rule == Rule::DataRace);
    let race = races.find(|d| d.labels.iter().any(|l| l.span.start.line == line));
    let race = race.unwrap_or_else(|| panic!("no race on line {line}: {report:#?}"));
    race.help.clone().expect("advice")
}

fn assert_clean(source: &str, threads: u32) {
    let args = [Arg::zeros(1024), Arg::zeros(1024)];
    let report = checked_with(source, threads, &args, &CheckOptions::default());
    assert_eq!(report.verdict, Verdict::Pass, "{source}\n{report:#?}");
}

fn kernel(body: &str) -> String {
    format!(
        "kernel @k(%x: device read_write u32, %y: device read_write u32) threadgroup(64) simdgroup(32) {{
    %t = thread_index_in_threadgroup
    %i = thread_position_in_grid x
    %zero = const u32 0
    %one = const u32 1
    %three = const u32 3
    %n = const u32 32
    %low = lt %t, %n
    %tile = alloc threadgroup u32[64]
{body}
}}"
    )
}

#[test]
fn an_update_of_one_location_wants_to_be_an_atomic() {
    let update = "    %b = and %i, %three
    %old = load %x[%b]
    %new = add %old, %one
    store %x[%b], %new";
    let advice = help(&kernel(update), 64, 13);
    assert_eq!(
        advice,
        "make the update one `atomic_add %x[%b], %one`, or give each thread a location of its own"
    );
    assert_clean(
        &kernel("    %b = and %i, %three\n    atomic_add %x[%b], %one"),
        64,
    );
    // An index that is computed twice is the same.
    let twice = update.replace("store %x[%b]", "%c = and %i, %three\n    store %x[%c]");
    assert!(help(&kernel(&twice), 64, 14).contains("`atomic_add %x[%c], %one`"));
    let least = update.replace("add %old, %one", "min %i, %old");
    assert!(help(&kernel(&least), 64, 13).contains("`atomic_min %x[%b], %i`"));
    // No atomic multiplies, and none changes another place than it reads.
    let product = update.replace("add", "mul");
    let advice = help(&kernel(&product), 64, 13);
    assert!(
        advice.starts_with("no atomic makes this update: give each thread a location of its own"),
        "{advice}"
    );
    let moved = update.replace("load %x[%b]", "load %x[%i]");
    assert!(!help(&kernel(&moved), 64, 13).contains("atomic_"));
}

#[test]
fn an_index_that_is_loaded_twice_is_one_where_nobody_writes_it() {
    let update = "    %b = load %y[%t]
    %old = load %x[%b]
    %new = max %old, %i
    %c = load %y[%t]
    store %x[%c], %new";
    let barrier = "put `barrier threadgroup [device]` between them";
    let writable = kernel(update);
    assert_eq!(help(&writable, 64, 14), barrier);
    let read = writable.replace("%y: device read_write", "%y: device read");
    assert!(help(&read, 64, 14).contains("`atomic_max %x[%c], %i`"));
    let product = read.replace("max %old", "mul %old");
    assert!(help(&product, 64, 14).starts_with("no atomic makes this update"));
    // Of another element it is another index.
    let other = read.replace("%c = load %y[%t]", "%c = load %y[%one]");
    assert_eq!(help(&other, 64, 14), barrier);
}

#[test]
fn an_atomic_adds_the_negative_of_a_float() {
    let update = "    %old = load %x[%zero]
    %new = sub %old, %f
    store %x[%zero], %new";
    let float = |body: &str| {
        kernel(body)
            .replace("%x: device read_write u32", "%x: device read_write f32")
            .replace("%zero =", "%f = const f32 1.0\n    %zero =")
    };
    let advice = help(&float(update), 64, 13);
    let expected = "make the update one `atomic_add` on `%x[%zero]` of the negative of `%f`, or";
    assert!(advice.starts_with(expected), "{advice}");
    assert_clean(&float("    %g = neg %f\n    atomic_add %x[%zero], %g"), 64);
    let reversed = update.replace("sub %old, %f", "sub %f, %old");
    assert!(help(&float(&reversed), 64, 13).starts_with("no atomic makes this update"));
}

#[test]
fn the_source_spells_the_atomic_in_brackets_too() {
    use invar_ir::{
        Access, KernelBuilder, Module, Place, Position, Scalar, Source, SourceId, Span,
    };
    let (u32, f32) = (Scalar::U32, Scalar::F32);
    let lines = [
        (u32, "h[x[i]] += 1", "`atomic_add h[x[i]], 1`"),
        (
            u32,
            "h[x[i]] = h[x[i]] + step(2, 3)  # count",
            "`atomic_add h[x[i]], step(2, 3)`",
        ),
        (u32, "h.add(x[i], 1)", "`atomic_add`,"),
        (f32, "h[x[i]] -= w[i]", "`atomic_add h[x[i]], -w[i]`"),
        (
            f32,
            "h[x[i]] = h[x[i]] - a * b",
            "`atomic_add h[x[i]], -(a * b)`",
        ),
        (f32, "h.sub(x[i], 1)", "`atomic_add` of the negative,"),
    ];
    for (scalar, line, expected) in lines {
        let mut module = Module::default();
        module.sources.push(Source {
            name: "k.py".into(),
            text: line.into(),
        });
        let mut k = KernelBuilder::new(module, "k");
        let h = k.buffer("h", Access::ReadWrite, scalar);
        let at = |column| Position { line: 1, column };
        k.set_span(Span {
            source: Some(SourceId(0)),
            start: at(1),
            end: at(5),
            call: None,
        });
        let one = k.const_u32(1);
        let old = k.load(Place::element(h, one));
        let new = match scalar {
            Scalar::F32 => {
                let by = k.const_f32(1.0);
                k.sub(old, by)
            }
            _ => k.add(old, one),
        };
        k.store(Place::element(h, one), new);
        let module = verify(k.finish().expect("builds")).expect("verifies");
        let args = [Arg::zeros(16)];
        let report = check(
            &module,
            "k",
            &Dispatch::linear(2, 2),
            &args,
            &CheckOptions::default(),
        );
        let report = report.expect("runs");
        let help = report.diagnostics[0].help.clone().expect("advice");
        assert!(help.contains(expected), "{help}");
    }
}

#[test]
fn x4_a_barrier_is_advised_only_where_the_verifier_takes_it() {
    // Both accesses in a branch that some threads take: no barrier may stand between them.
    let inside = "    if %low {
        store %tile[%t], %t
        %r = sub %n, %one
        %j = sub %r, %t
        %v = load %tile[%j]
        store %y[%i], %v
    }";
    let split = "    if %low {
        store %tile[%t], %t
    }
    barrier threadgroup [threadgroup]
    if %low {
        %r = sub %n, %one
        %j = sub %r, %t
        %v = load %tile[%j]
        store %y[%i], %v
    }";
    // Which is a part of a simdgroup.
    let some = |body: &str| {
        let body = body.replace("%low", "%some").replace("%n,", "%bound,");
        kernel(&format!(
            "    %bound = const u32 30\n    %some = lt %t, %bound\n{body}"
        ))
    };
    let advice = help(&some(inside), 64, 16);
    assert!(
        advice.starts_with(
            "end the `if` on line 12 between them, put `barrier threadgroup [threadgroup]` there"
        ),
        "{advice}"
    );
    assert_clean(&some(split), 64);
    // A simdgroup alone in its branch may have a barrier of its own, where it takes whole simdgroups.
    let advice = help(&kernel(inside), 64, 14);
    assert_eq!(advice, "put `barrier simdgroup [threadgroup]` between them");
    let number = "    %s = simdgroup_index_in_threadgroup\n    %first = eq %s, %zero\n";
    let own = format!("{number}{}", inside.replace("%low", "%first"));
    let advice = help(&kernel(&own), 64, 16);
    assert_eq!(advice, "put `barrier simdgroup [threadgroup]` between them");
    let mended = own.replace(
        "        %r = sub",
        "        barrier simdgroup [threadgroup]\n        %r = sub",
    );
    assert_clean(&kernel(&mended), 64);
}

#[test]
fn o5_what_was_stored_before_a_copy_needs_a_barrier_and_not_a_wait() {
    let before = "    store %tile[%t], %t
    %e = async_copy %y[%zero], %tile[%zero], %n
    wait %e";
    let one = |s: &str| kernel(s).replace("threadgroup(64)", "threadgroup(32)");
    let args = [Arg::zeros(1024), Arg::zeros(1024)];
    let report = |source: &str| {
        let module = text::parse("k.inv", source)
            .and_then(verify)
            .expect("verifies");
        let dispatch = Dispatch::linear(32, 32);
        check(&module, "k", &dispatch, &args, &CheckOptions::default()).expect("runs")
    };
    let found = report(&one(before));
    let advice = found.diagnostics[0].help.clone().expect("advice");
    assert_eq!(
        advice,
        "put `barrier simdgroup [threadgroup]` between them, before the copy"
    );
    let barrier = format!(
        "    barrier simdgroup [threadgroup]\n{}",
        before.split_once('\n').expect("lines").1
    );
    let mended = one(&format!("    store %tile[%t], %t\n{barrier}"));
    assert_eq!(report(&mended).verdict, Verdict::Pass);
    // What is done after the issue needs the wait.
    let after = "    %e = async_copy %tile[%zero], %x[%zero], %n
    %v = load %tile[%t]
    store %y[%t], %v
    wait %e";
    let advice = report(&one(after)).diagnostics[0]
        .help
        .clone()
        .expect("advice");
    assert_eq!(advice, "`wait` for the copy's event between the two");
}

#[test]
fn copies_of_two_simdgroups_to_one_place_are_told_so() {
    let source = include_str!("../../../../tests/ir/race/copy-by-simdgroups-racy.inv");
    assert_eq!(
        help(source, 64, 7),
        "each simdgroup makes the copy: let one of them make it, or give each a part of its own"
    );
}

/// A message from the first thread to the thread of the last threadgroup.
fn message(store: &str, load: &str) -> String {
    kernel(&format!(
        "    %first = eq %i, %zero
    if %first {{
        store %y[%three], %n
        {store}
    }}
    %last = eq %i, %n
    if %last {{
        loop {{
            %f = {load}
            %set = eq %f, %one
            if %set {{
                break
            }}
        }}
        %v = load %y[%three]
        store %y[%zero], %v
    }}"
    ))
    .replace("threadgroup(64)", "threadgroup(32)")
}

fn message_help(store: &str, load: &str) -> Option<String> {
    let module = text::parse("k.inv", &message(store, load)).and_then(verify);
    let module = module.expect("verifies");
    // The flags are set before, so that loops end that wait for another.
    let flags = [0u32, 1].iter().flat_map(|v| v.to_ne_bytes()).collect();
    let args = [Arg::OwnedBuffer(flags), Arg::zeros(1024)];
    let dispatch = Dispatch::linear(64, 32);
    let report = check(&module, "k", &dispatch, &args, &CheckOptions::default()).expect("runs");
    let mut races = report
        .diagnostics
        .iter()
        .filter(|d| d.rule == Rule::DataRace);
    races.next().map(|d| d.help.clone().expect("advice"))
}

#[test]
fn o4_a_release_and_an_acquire_that_do_not_pair_say_why() {
    let release = "atomic_store %x[%zero], %one release device";
    let acquire = "atomic_load %x[%zero] acquire device";
    assert_eq!(message_help(release, acquire), None);
    let says = |store: &str, load: &str, part: &str| {
        let advice = message_help(store, load).expect("a race");
        assert!(advice.contains(part), "{advice}");
    };
    let relaxed = "`atomic_store` on line 13 does not release: make it `release`";
    says(&release.replace("release", "relaxed"), acquire, relaxed);
    let relaxed = "`atomic_load` on line 18 does not acquire: make it `acquire`";
    says(release, &acquire.replace("acquire", "relaxed"), relaxed);
    let scope = "the scope of `atomic_store` on line 13 is `threadgroup`";
    says(
        &release.replace("release device", "release threadgroup"),
        acquire,
        scope,
    );
    let scope = "the scope of `atomic_load` on line 18 is `threadgroup`";
    says(
        release,
        &acquire.replace("acquire device", "acquire threadgroup"),
        scope,
    );
    let other = "releases `x[0]` and `atomic_load` on line 18 acquires `x[1]`";
    says(release, &acquire.replace("%zero", "%one"), other);
}

#[test]
fn x3_a_loop_that_waits_by_plain_loads_wants_an_atomic() {
    let advice = message_help("store %x[%zero], %one", "load %x[%zero]").expect("a race");
    assert!(advice.starts_with("wait by an atomic"), "{advice}");
}

#[test]
fn r3_a_verdict_names_the_simdgroup_size_that_it_depends_on() {
    let source = |function: &str, attribute: &str| {
        format!(
            "kernel @k(%x: device write u32) {attribute} {{
                %i = thread_position_in_grid x
                %s = {function} %i
                store %x[%i], %s
            }}"
        )
    };
    let reach = |function, attribute| {
        let args = [Arg::zeros(256)];
        let source = source(function, attribute);
        checked_with(&source, 64, &args, &CheckOptions::default()).reach()
    };
    assert!(reach("simd_sum", "").ends_with("of this input with simdgroups of 32 threads"));
    assert!(reach("simd_sum", "simdgroup(32)").ends_with("of this input"));
    assert!(reach("popcount", "").ends_with("of this input"));
}

#[test]
fn what_is_allowed_is_counted_all_the_same() {
    let source = "kernel @k(%x: device write u32) {
        %zero = const u32 0
        store %x[%zero], %zero
    }";
    let allow = CheckOptions {
        allow: vec![Rule::EqualStores],
        ..CheckOptions::default()
    };
    let report = checked_with(source, 64, &[Arg::zeros(4)], &allow);
    assert_eq!(report.verdict, Verdict::Pass);
    assert_eq!(report.allowed, [(Rule::EqualStores, 1)]);
    assert_eq!(
        report.summary(0),
        "no findings beside 1 allowed (equal-stores)"
    );
    let report = checked_with(source, 1, &[Arg::zeros(4)], &allow);
    assert_eq!(report.summary(0), "no findings");
}

#[test]
fn sides_of_an_if_are_parted_for_a_barrier() {
    // What one side reads the other writes, and nothing stands between them.
    let sides = "    if %low {
        %r = const u32 63
        %j = sub %r, %t
        %v = load %y[%j]
        store %x[%t], %v
    } else {
        store %y[%t], %t
    }";
    let parted = "    if %low {
        %r = const u32 63
        %j = sub %r, %t
        %v = load %y[%j]
        store %x[%t], %v
    }
    barrier threadgroup [device]
    if %low {
    } else {
        store %y[%t], %t
    }";
    let advice = help(&kernel(sides), 64, 13);
    let line = "make two of the `if` on line 10, one for each side, and put";
    assert!(
        advice.starts_with(line) && advice.ends_with("`barrier threadgroup [device]` between them"),
        "{advice}"
    );
    assert_clean(&kernel(parted), 64);
}

#[test]
fn what_simdgroups_store_together_at_one_place_is_to_be_parted() {
    let store = |place: &str| {
        kernel(&format!(
            "    %simdgroup = simdgroup_index_in_threadgroup
    %eight = const u32 8
    %matrices = const u32 64
    %at = mul %simdgroup, %matrices
    %some = matrix_fill simdgroup_f32x8x8 %f
    matrix_store %z[{place}] row %eight, %some"
        ))
        .replace("%y: device read_write u32", "%z: device write f32")
        .replace("    %zero = const", "    %number = simdgroup_index_in_threadgroup\n    %f = cast f32 %number\n    %zero = const")
    };
    let advice = help(&store("%zero"), 64, 17);
    assert!(
        advice.starts_with("give each simdgroup a location of its own"),
        "{advice}"
    );
    assert_clean(&store("%at"), 64);
}

#[test]
fn r6_the_barrier_named_is_on_the_way_from_one_access_to_the_other() {
    let body = "    store %x[%t], %t
    barrier simdgroup [device]
    %limit = const u32 64
    for %j = %zero to %limit step %n {
        barrier threadgroup [device]
        %a = xor %t, %j
        store %tile[%a], %j
    }";
    let args = [Arg::zeros(1024), Arg::zeros(1024)];
    let report = checked_with(&kernel(body), 64, &args, &CheckOptions::default());
    let mut found = report.diagnostics.iter();
    let found = found.find(|d| d.rule == Rule::ExecutionOnlyBarrier);
    let advice = found.and_then(|d| d.help.clone()).expect("advice");
    assert_eq!(
        advice,
        "put `barrier threadgroup [threadgroup]` beside the barrier on line 14"
    );
    let mended = body.replace(
        "        %a",
        "        barrier threadgroup [threadgroup]\n        %a",
    );
    assert_clean(&kernel(&mended), 64);
}

#[test]
fn no_simdgroup_barrier_is_advised_where_also_simdgroups_race() {
    // The first pair of threads is of one simdgroup.
    let body = "    %v = load %x[%zero]
    store %y[%t], %v
    %e = eq %t, %one
    %k = const u32 40
    %f = eq %t, %k
    %w = or %e, %f
    if %w {
        atomic_add %x[%zero], %one
    }";
    let advice = help(&kernel(body), 64, 17);
    assert!(
        advice.contains("`barrier threadgroup [device]`"),
        "{advice}"
    );
    let mended = body.replace("    %e", "    barrier threadgroup [device]\n    %e");
    assert_clean(&kernel(&mended), 64);
    let one = kernel(body).replace("threadgroup(64)", "threadgroup(32)");
    let advice = help(&one, 32, 17);
    assert!(advice.contains("`barrier simdgroup [device]`"), "{advice}");
}

#[test]
fn o4_who_releases_or_acquires_for_others_meets_them_at_a_barrier() {
    let last = "    store %x[%i], %i
    %first = eq %t, %zero
    if %first {
        %d = atomic_add %y[%zero], %one acq_rel device
        %l = eq %d, %one
        if %l {
            %w = load %x[%three]
            store %y[%three], %w
        }
    }";
    let advice = help(&kernel(last), 128, 16);
    let part = "put `barrier threadgroup [device]` before `atomic_add` on line 13";
    assert!(advice.starts_with(part), "{advice}");
    let mended = last.replace("    %first", "    barrier threadgroup [device]\n    %first");
    assert_clean(&kernel(&mended), 128);
    let acquired = "    %first = eq %t, %zero
    if %first {
        %g = eq %i, %zero
        if %g {
            store %x[%three], %n
            atomic_store %y[%zero], %one release device
        } else {
            %d = atomic_load %y[%zero] acquire device
        }
    }
    %k = const u32 64
    %far = lt %k, %i
    if %far {
        %v = load %x[%three]
        store %y[%i], %v
    }";
    let advice = help(&kernel(acquired), 128, 23);
    let part = "put `barrier threadgroup [device]` behind `atomic_load` on line 17";
    assert!(advice.starts_with(part), "{advice}");
}
