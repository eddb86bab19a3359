//! A device that runs nothing: what a new device needs beside its row in `devices.rs`, and no more.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use invar_interp::{Dispatch, Grid};
use invar_ir::{Rule, text, verify};

use crate::backend::{Backend, Call, CompileOptions, Executable, Ready, Source};
use crate::device::Kind;
use crate::task::{self, JobSlot, Task};
use crate::{Arg, Buffer, Capabilities, Device, Error};

/// Threadgroups that were run, of all dispatches.
type Count = Arc<AtomicU64>;

/// The count of the one device of this kind.
static COUNT: LazyLock<Count> = LazyLock::new(Count::default);

/// The one device that only counts.
pub(crate) struct Nulls;

impl Kind for Nulls {
    fn name(&self) -> &'static str {
        "null"
    }

    /// None: it computes nothing, so it is for who asks for it by name.
    fn all(&self) -> Vec<Device> {
        Vec::new()
    }

    fn named(&self, name: &str) -> Option<Result<Device, Error>> {
        static DEVICE: LazyLock<Device> = LazyLock::new(|| {
            Device::of(Null {
                capabilities: Capabilities {
                    name: "null".to_string(),
                    ..Device::checked().capabilities().clone()
                },
                count: COUNT.clone(),
            })
        });
        (name == self.name()).then(|| Ok(DEVICE.clone()))
    }

    fn listed(&self) -> Result<Vec<String>, &'static str> {
        Ok(vec!["`null`".to_string()])
    }
}

/// Counts the threadgroups that it is given.
struct Null {
    capabilities: Capabilities,
    count: Count,
}

impl Backend for Null {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn compile(
        &self,
        source: &Source,
        _options: &CompileOptions,
    ) -> Result<Box<dyn Executable>, Error> {
        match &*source.kernel().name {
            "refused" => Err(Error::new(Rule::UnsupportedFeature, "not here")),
            _ => Ok(Box::new(Program(self.count.clone()))),
        }
    }
}

struct Program(Count);

impl Executable for Program {
    fn prepare(&self, call: &Call<'_>, job: &mut JobSlot) -> Result<Ready, Error> {
        job.of::<Job>().0 = Some(self.0.clone());
        Ok(Ready {
            parts: call.threadgroups(),
            small: false,
            time_limit: call.time_limit,
            in_order: None,
        })
    }
}

#[derive(Default)]
struct Job(Option<Count>);

impl task::Job for Job {
    fn run(&self, _task: &Arc<Task>, _first: u64, count: u64) -> Result<(), Error> {
        let threadgroups = self
            .0
            .as_ref()
            .map(|all| all.fetch_add(count, Ordering::Relaxed));
        match threadgroups {
            Some(0..1000) => Ok(()),
            _ => Err(Error::new(Rule::DeviceLost, "it has counted enough")),
        }
    }

    fn release(&mut self) {
        self.0 = None;
    }
}

#[test]
fn a_device_is_one_file_and_one_row() {
    let device = Device::named("null").expect("a device");
    let error = Device::named("nul").expect_err("none of that name");
    assert!(error.to_string().contains("`null`"), "{error}");
    let source = "kernel @k(%x: device read_write u32) {}\nkernel @refused() {}";
    let module = verify(text::parse("k.inv", source).expect("parsed")).expect("verified");
    assert!(device.compile(&module, "refused").is_err());
    let program = device.compile(&module, "k").expect("compiled");
    assert_eq!(format!("{program:?}"), "program `k` for device `null`");
    let x = Buffer::from_slice(&device, &[1u32, 2]).expect("a buffer");
    let groups = |n| Dispatch {
        grid: Grid::Threadgroups([n, 1, 1]),
        threadgroup: [4, 1, 1],
    };
    let queue = device.queue();
    let args = [Arg::from(&x)];
    for n in [7, 0, 900] {
        queue.run(&program, groups(n), &args).expect("it runs");
    }
    assert_eq!(COUNT.load(Ordering::Relaxed), 907);
    assert_eq!(x.read().expect("read"), [1, 2]);
    queue
        .run(&program, groups(93), &args)
        .expect("it has room for these");
    let error = queue
        .run(&program, groups(1), &args)
        .expect_err("it is done");
    assert!(error.to_string().contains("counted enough"), "{error}");
    // A program is for its own device, whatever that is.
    let other = Device::checked().queue().run(&program, groups(1), &args);
    let error = other.expect_err("it is another").to_string();
    assert!(error.contains("was compiled for device `null`"), "{error}");
    // What holds for all devices needs no word of a new one.
    let wrong = queue.run(&program, groups(1), &[Arg::from(1u32)]);
    assert_eq!(
        wrong.expect_err("no buffer").rule(),
        Some(Rule::InvalidArgument)
    );
}
