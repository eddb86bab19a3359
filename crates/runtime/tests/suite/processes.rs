//! What only whole processes show: leaving with work in flight, one cache for several, damage to it.
//!
//! The ignored tests are the processes that the others start.

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use invar_ir::{text, verify};
use invar_runtime::{Arg, Buffer, Device, Dispatch};

use crate::common::hosts;

/// Starts a test of this file as a process of its own.
fn child(name: &str, cache: &Path, more: &[(&str, &str)]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args([
            "--ignored",
            "--exact",
            &format!("processes::{name}"),
            "--nocapture",
            "--test-threads=1",
        ])
        .env("INVAR_CACHE_DIR", cache)
        .env_remove("INVAR_CACHE")
        .envs(more.iter().copied());
    command
}

fn output(mut command: Command) -> Output {
    let output = command.output().expect("it starts");
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

const SPIN: &str = "
kernel @spin(%x: device read_write u32) {
    %zero = const u32 0
    loop {
        %v = load %x[%zero]
        %stop = ne %v, %zero
        if %stop {
            break
        }
    }
}";

#[test]
#[ignore = "a process that another test starts"]
fn leaves_with_work_in_flight() {
    for device in hosts() {
        let module = verify(text::parse("spin.inv", SPIN).expect("parsed")).expect("verified");
        let program = device.compile(&module, "spin").expect("compiled");
        let queue = device.queue();
        // Buffers, program and queue go out of scope while all of this runs or waits.
        for _ in 0..3 {
            let x = Buffer::<u32>::zeroed(&device, 1).expect("a buffer");
            for _ in 0..2 {
                queue
                    .dispatch(&program, Dispatch::linear(64, 8), &[Arg::from(&x)])
                    .expect("it fits");
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_process_may_end_with_work_in_flight() {
    let cache = tempfile::tempdir().expect("a temporary folder");
    let start = Instant::now();
    output(child("leaves_with_work_in_flight", cache.path(), &[]));
    assert!(start.elapsed() < Duration::from_secs(60));
}

/// Kernels that differ in a constant, so that each is an entry of its own.
fn source(n: u32) -> String {
    format!(
        "kernel @k(%x: device write u32) {{
            %i = thread_position_in_grid x
            %n = const u32 {n}
            %v = add %i, %n
            store %x[%i], %v
        }}"
    )
}

#[cfg(feature = "cpu")]
const KERNELS: u32 = 12;

/// Long enough that what its threadgroup of 36 threads runs is compiled apart, and kept as another entry.
#[cfg(feature = "cpu")]
const LONG: &str = "
kernel @long(%x: device read_write f32) {
    %i = thread_position_in_grid x
    %v = load %x[%i]
    %a = sin %v
    %b = exp %a
    %c = cos %b
    %d = tan %c
    store %x[%i], %d
}";
#[cfg(feature = "cpu")]
const ENTRIES: usize = KERNELS as usize + 2;

#[cfg(feature = "cpu")]
#[test]
#[ignore = "a process that another test starts"]
fn compiles_some_kernels() {
    let device = Device::cpu();
    let queue = device.queue();
    for n in 0..KERNELS {
        let module = verify(text::parse("k.inv", &source(n)).expect("parsed")).expect("verified");
        let program = device.compile(&module, "k").expect("compiled");
        let x = Buffer::<u32>::zeroed(&device, 100).expect("a buffer");
        queue
            .run(&program, Dispatch::linear(100, 32), &[Arg::from(&x)])
            .expect("it runs");
        let expected: Vec<u32> = (n..n + 100).collect();
        assert_eq!(x.read().expect("read"), expected);
    }
    let module = verify(text::parse("long.inv", LONG).expect("parsed")).expect("verified");
    let numbers: Vec<f32> = (0..100).map(|n| n as f32 / 8.0).collect();
    let [native, checked] = [Device::cpu(), Device::checked()].map(|device| {
        let program = device.compile(&module, "long").expect("compiled");
        let x = Buffer::from_slice(&device, &numbers).expect("a buffer");
        let run = || {
            let queue = device.queue();
            queue.run(&program, Dispatch::linear(100, 64), &[Arg::from(&x)])
        };
        // The second time nothing has to be compiled.
        run().expect("it runs");
        run().expect("it runs again");
        let results = x.read().expect("read");
        results.into_iter().map(f32::to_bits).collect::<Vec<u32>>()
    });
    assert_eq!(native, checked);
}

#[cfg(feature = "cpu")]
fn entries(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the cache is there");
    let mut all: Vec<_> = entries.map(|e| e.expect("an entry").path()).collect();
    all.sort();
    all
}

#[cfg(feature = "cpu")]
#[test]
fn several_processes_share_one_cache() {
    let cache = tempfile::tempdir().expect("a temporary folder");
    let folder = cache.path().join("made/by/the/first");
    let children: Vec<_> = (0..4)
        .map(|_| {
            child("compiles_some_kernels", &folder, &[])
                .spawn()
                .expect("it starts")
        })
        .collect();
    for mut child in children {
        assert!(child.wait().expect("it ends").success());
    }
    assert_eq!(entries(&folder).len(), ENTRIES);
}

#[cfg(feature = "cpu")]
#[test]
fn a_damaged_entry_is_compiled_again() {
    let cache = tempfile::tempdir().expect("a temporary folder");
    output(child("compiles_some_kernels", cache.path(), &[]));
    let first: Vec<Vec<u8>> = entries(cache.path())
        .iter()
        .map(|path| std::fs::read(path).expect("read"))
        .collect();
    assert_eq!(first.len(), ENTRIES);
    for (i, path) in entries(cache.path()).iter().enumerate() {
        let mut bytes = first[i].clone();
        match i % 4 {
            0 => bytes.truncate(bytes.len() / 2),
            1 => {
                let middle = bytes.len() / 2;
                bytes[middle] ^= 0x10;
            }
            2 => bytes.clear(),
            _ => bytes.extend_from_slice(&first[(i + 1) % first.len()]),
        }
        std::fs::write(path, bytes).expect("written");
    }
    output(child("compiles_some_kernels", cache.path(), &[]));
    let again: Vec<Vec<u8>> = entries(cache.path())
        .iter()
        .map(|path| std::fs::read(path).expect("read"))
        .collect();
    assert!(again == first, "the same kernels give the same entries");
}

#[cfg(feature = "cpu")]
#[test]
fn the_cache_can_be_turned_off() {
    let cache = tempfile::tempdir().expect("a temporary folder");
    let mut off = child("compiles_some_kernels", cache.path(), &[]);
    off.env("INVAR_CACHE", "0");
    output(off);
    assert!(entries(cache.path()).is_empty());
}

#[cfg(feature = "gpu")]
#[test]
#[ignore = "a process that another test starts"]
fn compiles_some_pipelines() {
    let Ok(device) = Device::gpu() else { return };
    for n in 0..3 {
        let module = verify(text::parse("k.inv", &source(n)).expect("parsed")).expect("verified");
        let program = device.compile(&module, "k").expect("compiled");
        let x = Buffer::<u32>::zeroed(&device, 100).expect("a buffer");
        let args = [Arg::from(&x)];
        let done = device
            .queue()
            .run(&program, Dispatch::linear(100, 32), &args);
        done.expect("it runs");
        let expected: Vec<u32> = (n..n + 100).collect();
        assert_eq!(x.read().expect("read"), expected);
    }
}

/// Pipelines of a GPU are kept too, where its driver gives them out.
#[cfg(all(feature = "gpu", feature = "cpu"))]
#[test]
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn pipelines_are_kept_and_damaged_ones_are_made_again() {
    let cache = tempfile::tempdir().expect("a temporary folder");
    let children: Vec<_> = (0..3)
        .map(|_| {
            child("compiles_some_pipelines", cache.path(), &[])
                .spawn()
                .expect("it starts")
        })
        .collect();
    for mut child in children {
        assert!(child.wait().expect("it ends").success());
    }
    let first = entries(cache.path());
    if first.is_empty() {
        println!("skipped: no GPU here gives out its pipelines");
        return;
    }
    assert_eq!(first.len(), 3);
    for (i, path) in first.iter().enumerate() {
        let mut bytes = std::fs::read(path).expect("read");
        match i {
            0 => bytes.truncate(bytes.len() / 2),
            1 => {
                let last = bytes.len() - 1;
                bytes[last] ^= 0x10;
            }
            _ => bytes.clear(),
        }
        std::fs::write(path, bytes).expect("written");
    }
    output(child("compiles_some_pipelines", cache.path(), &[]));
    assert_eq!(entries(cache.path()), first);
    let mut off = child("compiles_some_pipelines", &cache.path().join("off"), &[]);
    off.env("INVAR_CACHE", "0");
    output(off);
    assert!(!cache.path().join("off").exists());
}

#[test]
#[ignore = "a process that another test starts"]
fn is_limited_by_the_environment() {
    for device in hosts() {
        let module = verify(text::parse("spin.inv", SPIN).expect("parsed")).expect("verified");
        let program = device.compile(&module, "spin").expect("compiled");
        let x = Buffer::<u32>::zeroed(&device, 1).expect("a buffer");
        let error = device
            .queue()
            .run(&program, Dispatch::linear(64, 8), &[Arg::from(&x)])
            .expect_err("it never ends");
        assert_eq!(error.rule().map(|r| r.name()), Some("deadline-exceeded"));
    }
}

#[test]
fn the_environment_limits_the_time() {
    let cache = tempfile::tempdir().expect("a temporary folder");
    let limit = [("INVAR_TIME_LIMIT", "0.05"), ("INVAR_THREADS", "3")];
    let start = Instant::now();
    output(child("is_limited_by_the_environment", cache.path(), &limit));
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[cfg(unix)]
#[test]
#[ignore = "a process that another test starts"]
fn forks_after_using_the_device() {
    for device in hosts() {
        let module = verify(text::parse("k.inv", &source(1)).expect("parsed")).expect("verified");
        let program = device.compile(&module, "k").expect("compiled");
        let right = || {
            let x = Buffer::<u32>::zeroed(&device, 200_000).expect("a buffer");
            device
                .queue()
                .dispatch(&program, Dispatch::linear(2000, 8), &[Arg::from(&x)])
                .expect("it fits")
                .wait()
                .expect("it runs");
            x.read().expect("read")[1999] == 2000
        };
        assert!(right());
        // SAFETY: the child only dispatches and leaves.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let code = i32::from(!right());
            // SAFETY: it ends the child without the parent's tests.
            unsafe { libc::_exit(code) };
        }
        let mut status = -1;
        // SAFETY: the child is ours.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0, "{device:?}");
        assert!(right());
    }
}

#[cfg(unix)]
#[test]
fn a_child_of_fork_runs_kernels_too() {
    let cache = tempfile::tempdir().expect("a temporary folder");
    output(child("forks_after_using_the_device", cache.path(), &[]));
}

/// When to fork after another thread began to use a device, in microseconds.
#[cfg(unix)]
const FORKS_AFTER: &str = "INVAR_TEST_FORKS_AFTER";

#[cfg(unix)]
#[test]
#[ignore = "a process that another test starts"]
fn forks_while_devices_are_found() {
    let after = std::env::var(FORKS_AFTER).expect("it is given");
    let after = Duration::from_micros(after.parse().expect("a number"));
    invar_runtime::watch_forks();
    let right = || {
        let module = verify(text::parse("k.inv", &source(1)).expect("parsed")).expect("verified");
        hosts().into_iter().all(|device| {
            let program = device.compile(&module, "k").expect("compiled");
            let x = Buffer::<u32>::zeroed(&device, 16).expect("a buffer");
            let done = device
                .queue()
                .dispatch(&program, Dispatch::linear(16, 8), &[Arg::from(&x)]);
            done.and_then(|done| done.wait()).is_ok() && x.read().is_ok()
        })
    };
    let (begin, begins) = std::sync::mpsc::channel();
    let other = std::thread::spawn(move || {
        begin.send(()).expect("it is waited for");
        right()
    });
    begins.recv().expect("it begins");
    std::thread::sleep(after);
    // SAFETY: the child only runs kernels, and leaves; the alarm ends it if it waits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: it ends the child, as does the exit, without the parent's tests.
        unsafe {
            libc::alarm(100);
            libc::_exit(i32::from(!right()));
        }
    }
    let mut status = -1;
    // SAFETY: the child is ours.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "forked after {after:?}");
    assert!(other.join().expect("it ends"));
}

/// Whatever of devices and of LLVM a thread of the parent was about to find.
#[cfg(unix)]
#[test]
fn a_child_of_fork_finds_devices_whatever_its_parent_did() {
    for micros in ["0", "300", "3000", "10000", "30000"] {
        let cache = tempfile::tempdir().expect("a temporary folder");
        let after = [(FORKS_AFTER, micros)];
        output(child("forks_while_devices_are_found", cache.path(), &after));
    }
}

/// Threads of a GPU's driver stay with the process that opened it.
#[cfg(all(unix, feature = "gpu"))]
#[test]
#[ignore = "a process that another test starts"]
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn forks_after_opening_the_gpu() {
    if invar_runtime::gpu::Gpu::names().is_empty() {
        println!("skipped: this machine has no adapter (mesa-vulkan-drivers brings one)");
        return;
    }
    let device = Device::gpu().expect("opened");
    let module = verify(text::parse("k.inv", &source(1)).expect("parsed")).expect("verified");
    let program = device.compile(&module, "k").expect("compiled");
    let x = Buffer::<u32>::zeroed(&device, 16).expect("a buffer");
    let queue = device.queue();
    let run = || {
        let args = [Arg::from(&x)];
        let submission = queue.dispatch(&program, Dispatch::linear(16, 8), &args);
        submission.and_then(|submission| submission.wait().map(|_| ()))
    };
    run().expect("it runs");
    let told = |result: Result<(), invar_runtime::Error>| {
        result.is_err_and(|error| {
            error
                .to_string()
                .contains("opened before this process was forked")
        })
    };
    // SAFETY: the child only asks for what it does not get, and leaves.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let zeroed = Buffer::<u32>::zeroed(&device, 16).and_then(|x| x.read().map(|_| ()));
        let all = [
            // One without contents needs no GPU.
            zeroed.is_ok() || told(zeroed),
            told(run()),
            told(x.read().map(|_| ())),
            told(device.compile(&module, "k").map(|_| ())),
        ];
        let code = all.iter().filter(|told| !**told).count();
        // SAFETY: it ends the child without the parent's tests.
        unsafe { libc::_exit(code as i32) };
    }
    let mut status = -1;
    // SAFETY: the child is ours.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
    run().expect("it runs");
    assert_eq!(x.read().expect("read").len(), 16);
}

#[cfg(all(unix, feature = "gpu"))]
#[test]
fn a_child_of_fork_is_told_that_the_gpu_is_its_parents() {
    let cache = tempfile::tempdir().expect("a temporary folder");
    output(child("forks_after_opening_the_gpu", cache.path(), &[]));
}

#[cfg(unix)]
#[test]
#[ignore = "a process that another test starts"]
fn forks_with_dispatches_in_flight() {
    for device in hosts() {
        let module = verify(text::parse("spin.inv", SPIN).expect("parsed")).expect("verified");
        let program = device.compile(&module, "spin").expect("compiled");
        let queue = device.queue();
        let [x, y, z] = [(); 3].map(|()| Buffer::<u32>::zeroed(&device, 1).expect("a buffer"));
        let submit = |x| queue.dispatch(&program, Dispatch::linear(64, 8), &[Arg::from(x)]);
        let spinning = submit(&x).expect("it fits");
        let behind = submit(&x).expect("it fits");
        let ended = submit(&y).expect("it fits");
        ended.cancel();
        assert!(ended.wait().is_err());
        std::thread::sleep(Duration::from_millis(50));
        // SAFETY: the child only asks how its parent's dispatches ended, runs one of its own, and leaves.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let told = |result: Result<(), invar_runtime::Error>| {
                result.is_err_and(|error| {
                    let error = error.to_string();
                    // Nothing failed, and this process could not have asked.
                    error.contains("when this process was forked") && !error.contains("not asked")
                })
            };
            let own = || {
                z.write(0, &[1]).expect("ours");
                let one = Buffer::from_slice(&device, &[1u32]).expect("a buffer");
                let args = [Arg::from(&one)];
                let done = queue.dispatch(&program, Dispatch::linear(64, 8), &args);
                done.and_then(|done| done.wait()).is_ok() && z.read().is_ok()
            };
            let all = [
                spinning.is_done() && spinning.wait_timeout(Duration::from_secs(100)),
                told(spinning.wait().map(|_| ())),
                told(behind.wait().map(|_| ())),
                spinning.findings().is_empty(),
                ended
                    .wait()
                    .is_err_and(|error| error.rule() == Some(invar_ir::Rule::Cancelled)),
                told(queue.wait()),
                // Told once, as all that was not asked for.
                told(x.read().map(|_| ())),
                own(),
                queue.wait().is_ok(),
            ];
            spinning.cancel();
            invar_runtime::finish(Duration::from_secs(100));
            let wrong = all.iter().position(|is| !is).map_or(0, |at| at + 1);
            // SAFETY: it ends the child without the parent's tests.
            unsafe { libc::_exit(wrong as i32) };
        }
        let mut status = -1;
        // SAFETY: the child is ours.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status >> 8, 0, "{device:?}");
        assert!(!spinning.is_done());
        for submission in [spinning, behind] {
            submission.cancel();
            assert!(submission.wait().is_err());
        }
    }
}

#[cfg(unix)]
#[test]
fn a_child_of_fork_is_told_what_its_parent_has_under_way() {
    let cache = tempfile::tempdir().expect("a temporary folder");
    let start = Instant::now();
    output(child("forks_with_dispatches_in_flight", cache.path(), &[]));
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[test]
#[ignore = "a process that another test starts"]
fn finishes_what_is_under_way() {
    for device in hosts() {
        let module = verify(text::parse("spin.inv", SPIN).expect("parsed")).expect("verified");
        let program = device.compile(&module, "spin").expect("compiled");
        let queue = device.queue();
        let [x, y] = [(); 2].map(|()| Buffer::<u32>::zeroed(&device, 1).expect("a buffer"));
        let submit = |x| queue.dispatch(&program, Dispatch::linear(64, 8), &[Arg::from(x)]);
        let all = [&x, &x, &y].map(|x| submit(x).expect("it fits"));
        invar_runtime::finish(Duration::from_millis(100));
        for submission in all {
            assert!(submission.is_done());
            let error = submission.wait().expect_err("it never ends");
            assert_eq!(error.rule().map(|r| r.name()), Some("cancelled"));
        }
        // What ends by itself is not stopped.
        x.write(0, &[1]).expect("ours");
        let ends = submit(&x).expect("it fits");
        invar_runtime::finish(Duration::from_secs(60));
        ends.wait().expect("it runs");
    }
}

#[test]
fn what_is_under_way_can_be_finished() {
    let cache = tempfile::tempdir().expect("a temporary folder");
    let start = Instant::now();
    output(child("finishes_what_is_under_way", cache.path(), &[]));
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[test]
#[ignore = "a process that another test starts"]
fn finishes_when_it_is_asked_to_leave() {
    for device in hosts() {
        let module = verify(text::parse("spin.inv", SPIN).expect("parsed")).expect("verified");
        let program = device.compile(&module, "spin").expect("compiled");
        let queue = device.queue();
        let buffers = [(); 3].map(|()| Buffer::<u32>::zeroed(&device, 1).expect("a buffer"));
        let all = buffers.each_ref().map(|x| {
            let args = [Arg::from(x)];
            let submitted = queue.dispatch(&program, Dispatch::linear(64, 8), &args);
            submitted.expect("it fits")
        });
        // As Ctrl-C does, it says so once.
        let asked = std::cell::Cell::new(false);
        let leaves = || !asked.replace(true);
        invar_runtime::interruptible(&leaves, || {
            invar_runtime::finish(Duration::from_secs(100));
        });
        for submission in all {
            let error = submission.wait().expect_err("it never ends");
            assert_eq!(error.rule().map(|r| r.name()), Some("cancelled"));
        }
    }
}

#[test]
fn who_wants_to_leave_waits_for_none_of_several_dispatches() {
    let cache = tempfile::tempdir().expect("a temporary folder");
    let start = Instant::now();
    output(child(
        "finishes_when_it_is_asked_to_leave",
        cache.path(),
        &[],
    ));
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[cfg(all(unix, feature = "cpu"))]
#[test]
#[ignore = "a process that another test starts"]
#[expect(clippy::print_stdout, reason = "for the test that started it")]
fn says_why_its_cache_is_not_used() {
    Device::cpu();
    println!(
        "said: {}",
        invar_runtime::cache_refusal().unwrap_or_default()
    );
}

/// A folder that may not even be looked into is refused with its reason, as others are.
#[cfg(all(unix, feature = "cpu"))]
#[test]
fn a_cache_that_may_not_be_opened_is_refused_in_a_sentence() {
    use std::fs::set_permissions;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;

    const NOBODY: u32 = 65534;
    let mode = |mode| -> std::fs::Permissions { PermissionsExt::from_mode(mode) };
    let parent = tempfile::tempdir().expect("a temporary folder");
    // The sentence is one, whatever the folder is called.
    let cache = parent.path().join("two\nlines");
    std::fs::create_dir_all(cache.join("inside")).expect("made");
    // The superuser opens any folder, so another has to try.
    // SAFETY: it only asks.
    let is_root = unsafe { libc::geteuid() } == 0;
    let program = parent.path().join("program");
    std::fs::copy(std::env::current_exe().expect("this program"), &program).expect("copied");
    for path in [parent.path(), &program] {
        set_permissions(path, mode(0o755)).expect("ours");
    }
    let said = |cache: &Path| {
        let test = child("says_why_its_cache_is_not_used", cache, &[]);
        let mut command = Command::new(&program);
        command.args(test.get_args()).env("INVAR_CACHE_DIR", cache);
        command.env_remove("INVAR_CACHE").current_dir("/");
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        let said = String::from_utf8(output(command).stdout).expect("text");
        let (_, line) = said.split_once("said: ").expect("it says something");
        line.lines().next().unwrap_or_default().to_string()
    };
    let (closed, reason) = if is_root {
        (
            0o700,
            "since it belongs to user 0, not to 65534: name a folder",
        )
    } else {
        (
            0,
            "since it may not be read (mode 0): give yourself that right",
        )
    };
    set_permissions(&cache, mode(closed)).expect("ours");
    let sentence = said(&cache);
    assert!(
        sentence.starts_with("compiled kernels are not kept in ") && sentence.contains(reason),
        "{sentence}"
    );
    let sentence = said(&cache.join("inside"));
    assert!(
        sentence.contains("since it cannot be reached"),
        "{sentence}"
    );
    set_permissions(&cache, mode(0o755)).expect("ours");
    let sentence = said(&program);
    assert!(
        sentence.contains("since it is a file: name a folder"),
        "{sentence}"
    );
    // One that is not there, and cannot be made, is none.
    assert_eq!(said(&cache.join("none")), "");
}

/// Code that others planted would give other numbers.
#[cfg(all(unix, feature = "cpu"))]
#[test]
fn a_cache_that_others_can_write_is_not_used_and_harms_nothing() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let parent = tempfile::tempdir().expect("a temporary folder");
    let cache = parent.path().join("cache");
    std::fs::create_dir(&cache).expect("made");
    std::fs::set_permissions(&cache, PermissionsExt::from_mode(0o777)).expect("ours");
    output(child("compiles_some_kernels", &cache, &[]));
    assert!(entries(&cache).is_empty());
    std::fs::set_permissions(&cache, PermissionsExt::from_mode(0o700)).expect("ours");
    let link = parent.path().join("link");
    symlink(&cache, &link).expect("linked");
    output(child("compiles_some_kernels", &link, &[]));
    output(child("compiles_some_kernels", &link.join("."), &[]));
    assert!(entries(&cache).is_empty());
    output(child("compiles_some_kernels", &cache, &[]));
    assert_eq!(entries(&cache).len(), ENTRIES);
}
