//! What a GPU cannot take is refused with a sentence before anything runs, what it can at its limits runs,
//! and neither takes anything from who comes next.

#![cfg(feature = "gpu")]

use std::fmt::Write;

use invar_ir::text::parse;
use invar_ir::{Rule, verify};
use invar_runtime::gpu::Gpu;
use invar_runtime::{Arg, Buffer, ByteBuffer, Device, Dispatch, Error, Grid};

#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn gpu() -> Option<Device> {
    if Gpu::names().is_empty() {
        println!("skipped: this machine has no adapter (mesa-vulkan-drivers brings one)");
        return None;
    }
    Some(Device::gpu().unwrap())
}

fn run(device: &Device, source: &str, dispatch: Dispatch, args: &[Arg<'_>]) -> Result<(), Error> {
    let module = verify(parse("k.inv", source).unwrap()).unwrap();
    let program = device.compile(&module, "k")?;
    device.queue().run(&program, dispatch, args).map(|_| ())
}

/// The GPU still does what it is asked.
fn is_well(device: &Device) {
    let source = "kernel @k(%y: device write u32) {
        %t = thread_position_in_grid x
        store %y[%t], %t
    }";
    let y = Buffer::<u32>::zeroed(device, 3).unwrap();
    run(device, source, Dispatch::linear(3, 3), &[Arg::from(&y)]).unwrap();
    assert_eq!(y.read().unwrap(), [0, 1, 2]);
}

#[track_caller]
fn refused(result: Result<(), Error>, rule: Rule, says: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.rule(), Some(rule), "{error}");
    assert!(error.to_string().contains(says), "{error}");
}

#[test]
fn buffers_larger_than_a_kernel_can_be_given() {
    let Some(device) = gpu() else { return };
    let most = device.capabilities().buffer_bytes;
    let error = ByteBuffer::zeroed(&device, most as usize + 1).map(|_| ());
    refused(error, Rule::OutOfMemory, "is larger than the");
    is_well(&device);
}

#[test]
fn grids_and_buffers_without_elements() {
    let Some(device) = gpu() else { return };
    let source = "kernel @k(%x: device read u32, %y: device read_write u32) {
        %t = thread_position_in_grid x
        %v = load %x[%t]
        %one = const u32 1
        %w = add %v, %one
        store %y[%t], %w
        %n = buffer_length %x
        %m = cast u32 %n
        store %y[%one], %m
    }";
    let (none, also) = (
        Buffer::<u32>::zeroed(&device, 0).unwrap(),
        Buffer::<u32>::zeroed(&device, 0).unwrap(),
    );
    let y = Buffer::from_slice(&device, &[7u32; 3]).unwrap();
    let args = [Arg::from(&none), Arg::from(&y)];
    run(&device, source, Dispatch::linear(3, 4), &args).unwrap();
    assert_eq!(y.read().unwrap(), [1, 0, 1]);
    let both = [Arg::from(&none), Arg::from(&also)];
    run(&device, source, Dispatch::linear(3, 4), &both).unwrap();
    for grid in [
        Grid::Threads([0, 1, 1]),
        Grid::Threads([3, 0, 1]),
        Grid::Threadgroups([1, 1, 0]),
    ] {
        let dispatch = Dispatch {
            grid,
            threadgroup: [4, 1, 1],
        };
        run(&device, source, dispatch, &args).unwrap();
    }
    assert_eq!(y.read().unwrap(), [1, 0, 1]);
    let empty = Dispatch {
        grid: Grid::Threads([3, 1, 1]),
        threadgroup: [0, 1, 1],
    };
    refused(
        run(&device, source, empty, &args),
        Rule::InvalidDispatch,
        "threadgroup",
    );
}

/// A threadgroup that is long where the GPU's own are short, and grids beyond what a dimension takes.
#[test]
fn every_dimension_is_as_good_as_the_first() {
    let Some(device) = gpu() else { return };
    let source = "kernel @k(%y: device write u32) {
        %p = thread_position_in_grid x
        %q = thread_position_in_grid y
        %r = thread_position_in_grid z
        %a = add %p, %q
        %i = add %a, %r
        %g = threadgroup_position_in_grid y
        %h = threadgroup_position_in_grid z
        %s = add %g, %h
        %one = const u32 1
        %v = add %s, %one
        store %y[%i], %v
    }";
    let longest = device.capabilities().threads_per_threadgroup;
    for (grid, threadgroup) in [
        ([1, longest, 1], [1, longest, 1]),
        ([1, 1, longest], [1, 1, longest]),
        ([1, 70_001, 1], [1, 1, 1]),
        ([1, 1, 70_001], [1, 1, 1]),
    ] {
        let count = grid.iter().product::<u32>();
        let y = Buffer::<u32>::zeroed(&device, count as usize).unwrap();
        let dispatch = Dispatch {
            grid: Grid::Threads(grid),
            threadgroup,
        };
        run(&device, source, dispatch, &[Arg::from(&y)]).unwrap();
        let size = threadgroup.iter().product::<u32>();
        let expected = (0..count).map(|i| i / size + 1);
        assert!(y.read().unwrap().into_iter().eq(expected), "{grid:?}");
    }
    let dispatch = Dispatch {
        grid: Grid::Threads([1, 1, 1]),
        threadgroup: [1, 2, longest],
    };
    let y = Buffer::<u32>::zeroed(&device, 1).unwrap();
    refused(
        run(&device, source, dispatch, &[Arg::from(&y)]),
        Rule::InvalidDispatch,
        "threads",
    );
    is_well(&device);
}

/// Grids in two dimensions whose first is beyond what a dimension takes, and grids that no GPU ends.
#[test]
fn grids_long_in_two_dimensions() {
    let Some(device) = gpu() else { return };
    let source = "kernel @k(%y: device read_write u32) {
        %p = thread_position_in_grid x
        %q = thread_position_in_grid y
        %w = const u32 70001
        %row = mul %q, %w
        %i = add %row, %p
        %v = load %y[%i]
        %j = add %v, %i
        store %y[%i], %j
    }";
    let y = Buffer::<u32>::zeroed(&device, 140_002).unwrap();
    let of = |grid, threadgroup| Dispatch {
        grid,
        threadgroup: [threadgroup, 1, 1],
    };
    let args = [Arg::from(&y)];
    run(&device, source, of(Grid::Threads([70_001, 2, 1]), 1), &args).unwrap();
    assert!(y.read().unwrap().into_iter().eq(0..140_002));
    // The number of threads of the second does not fit 64 bits.
    for grid in [[u32::MAX, u32::MAX, 1], [u32::MAX, u32::MAX, 2]] {
        refused(
            run(&device, source, of(Grid::Threads(grid), 64), &args),
            Rule::InvalidDispatch,
            "divide it",
        );
    }
    assert!(y.read().unwrap().into_iter().eq(0..140_002));
    is_well(&device);
}

/// Arrays of fixed size, and parameters whose size the dispatch gives: as much as there is, and one more.
#[test]
fn threadgroup_memory_to_the_last_element() {
    let Some(device) = gpu() else { return };
    let words = device.capabilities().threadgroup_memory_bytes / 4;
    let y = Buffer::<u32>::zeroed(&device, 1).unwrap();
    let body = |last: u64| {
        format!(
            "%last = const u32 {last}
            %v = load %a[%last]
            %n = const u32 5
            %w = add %v, %n
            store %a[%last], %w
            %u = load %a[%last]
            %none = const u32 0
            store %y[%none], %u"
        )
    };
    let one = Dispatch::linear(1, 1);
    for more in [0, 1] {
        let size = words + more;
        let last = body(size - 1);
        let fixed = format!(
            "kernel @k(%y: device write u32) {{
                %a = alloc threadgroup u32[{size}]
                {last}
            }}"
        );
        let given = format!("kernel @k(%y: device write u32, %a: threadgroup u32) {{ {last} }}");
        let both = [Arg::from(&y), Arg::ThreadgroupLength(size)];
        for (source, args) in [(&fixed, &both[..1]), (&given, &both[..])] {
            y.write(0, &[0]).unwrap();
            let ran = run(&device, source, one, args);
            if more == 0 {
                ran.unwrap();
                assert_eq!(y.read().unwrap(), [5]);
            } else {
                refused(ran, Rule::InvalidArgument, "threadgroup memory");
            }
        }
    }
    is_well(&device);
}

/// A kernel of that many buffers, each of which it adds to its own.
fn of_buffers(count: usize) -> String {
    let mut source = String::from("kernel @k(");
    for i in 0..count {
        let comma = if i == 0 { "" } else { ", " };
        let _ = write!(source, "{comma}%b{i}: device read_write u32");
    }
    source.push_str(") {\n    %t = thread_position_in_grid x\n");
    for i in 0..count {
        let _ = write!(
            source,
            "    %v{i} = load %b{i}[%t]\n    %w{i} = add %v{i}, %v{i}\n    store %b{i}[%t], %w{i}\n"
        );
    }
    source.push('}');
    source
}

#[test]
#[expect(clippy::print_stdout, reason = "a skipped part says so")]
fn more_buffers_than_a_kernel_can_have() {
    let Some(device) = gpu() else { return };
    let all = |count: usize| -> Vec<Buffer<u32>> {
        (0..count)
            .map(|i| Buffer::from_slice(&device, &[i as u32]).unwrap())
            .collect()
    };
    let run_on = |buffers: &[Buffer<u32>]| {
        let args: Vec<Arg<'_>> = buffers.iter().map(Arg::from).collect();
        run(
            &device,
            &of_buffers(buffers.len()),
            Dispatch::linear(1, 1),
            &args,
        )
    };
    let some = all(31);
    match run_on(&some) {
        Ok(()) => {
            for (i, buffer) in some.iter().enumerate() {
                assert_eq!(buffer.read().unwrap(), [2 * i as u32]);
            }
        }
        Err(error) => assert_eq!(error.rule(), Some(Rule::UnsupportedFeature), "{error}"),
    }
    let most = Gpu::open(0).unwrap().buffers_of_a_kernel() as usize;
    if most > 200 {
        println!("skipped: this adapter takes {most} buffers, more than drivers compile soon");
    } else {
        refused(
            run_on(&all(most + 1)),
            Rule::UnsupportedFeature,
            "more than the",
        );
    }
    is_well(&device);
}

/// More values than fit in the memory that they are put in.
#[test]
fn more_values_than_a_kernel_can_have() {
    let Some(device) = gpu() else { return };
    let count = 20_000;
    let mut source = String::from("kernel @k(%y: device write u32");
    for i in 0..count {
        let _ = write!(source, ", %s{i}: u32");
    }
    let _ = write!(
        source,
        ") {{\n    %t = thread_position_in_grid x\n    store %y[%t], %s{}\n}}",
        count - 1
    );
    let y = Buffer::<u32>::zeroed(&device, 1).unwrap();
    let mut args = vec![Arg::from(&y)];
    args.extend((0..count).map(|i| Arg::from(i as u32)));
    refused(
        run(&device, &source, Dispatch::linear(1, 1), &args),
        Rule::UnsupportedFeature,
        "bytes of values and sizes",
    );
    is_well(&device);
}
