//! Where a run takes place: on a device, or on the reference machine without its checkers.

use std::time::Instant;

use invar::{CompileOptions, Device};
use invar_interp::case::Bound;
use invar_interp::observe::Lines;
use invar_interp::{Arg, CheckOptions};
use invar_ir::memory_layout::has_room;
use invar_ir::print::Printed;
use invar_ir::text::case::{Expect, ExprKind, RunCase};
use invar_ir::{Diagnostic, Diagnostics, Rule, Verified};

use crate::options::usage;
use crate::outcome::Refusal;
use crate::plan::Inputs;
use crate::progress::Bar;

/// Where a run takes place.
pub enum Place {
    /// The reference machine without its checkers.
    Reference,
    Device(Device),
}

/// What a run tells beside its buffers.
pub struct Ran {
    pub seconds: f64,
    /// Instructions, where they are counted.
    pub steps: Option<u64>,
    pub findings: Vec<Diagnostic>,
    pub printed: Printed,
}

impl Place {
    /// The place that the user names, for this run; or why it cannot be there.
    pub fn of(
        name: Option<&str>,
        inputs: &Inputs,
        module: &Verified,
        bound: &Bound,
    ) -> Result<Result<Place, String>, Refusal> {
        let options = &bound.options;
        let required = module.kernel(&bound.kernel).and_then(|k| k.simdgroup_size);
        let name = match name {
            Some("reference") => return Ok(Ok(Place::Reference)),
            // Only the reference machine has an order of threads to choose, and takes every size.
            None if inputs.seed.is_some() || options.simdgroup_size.is_some() => {
                return Ok(Ok(Place::Reference));
            }
            None => "default",
            Some(name) => name,
        };
        let device = Device::named(name).map_err(|e| usage(e.into_diagnostics().0))?;
        if device.capabilities().name == "checked" {
            return Ok(Ok(Place::Device(Device::checked_with(CheckOptions {
                run: options.clone(),
                ..CheckOptions::default()
            }))));
        }
        let able = device.capabilities();
        if inputs.seed.is_some() {
            return Err(Refusal(format!(
                "--seed orders the threads of the checked device and of the reference machine; \
                 device `{}` has no order to choose",
                able.name
            )));
        }
        // Whether the device has the size that a kernel requires, it says itself.
        Ok(match (required, options.simdgroup_size) {
            (Some(required), Some(size)) if size != required => Err(format!(
                "it requires simdgroups of {required} threads, not {size}"
            )),
            (None, Some(size)) if size != able.simdgroup_size => Err(format!(
                "device `{}` has simdgroups of {} threads for a kernel that requires no size, not \
                 {size}; --device checked and --device reference take 4, 8, 16, 32, 64 and 128",
                able.name, able.simdgroup_size
            )),
            _asks_for_what_it_gets => Ok(Place::Device(device)),
        })
    }

    pub fn name(&self) -> &str {
        match self {
            Place::Reference => "reference",
            Place::Device(device) => &device.capabilities().name,
        }
    }

    /// What the reference machine leaves in the arguments, where an expectation asks for it and the
    /// run itself takes place elsewhere.
    pub fn reference(
        &self,
        module: &Verified,
        case: &RunCase,
        bound: &Bound,
    ) -> Result<Option<Vec<Arg<'static>>>, Diagnostics> {
        let asks = case.expects.iter().find(|e| asks_for_reference(e));
        let Some(asks) = asks.filter(|_| !matches!(self, Place::Reference)) else {
            return Ok(None);
        };
        let bytes = bound.args.iter().map(|arg| arg.bytes().len() as u64);
        room_for_reference(asks, bytes.sum())?;
        self.reference_of(module, bound.copy()).map(Some)
    }

    /// What the reference machine leaves in the arguments of a run that takes place here.
    pub fn reference_of(
        &self,
        module: &Verified,
        mut bound: Bound,
    ) -> Result<Vec<Arg<'static>>, Diagnostics> {
        let required = module.kernel(&bound.kernel).and_then(|k| k.simdgroup_size);
        if let (Place::Device(device), None) = (self, required) {
            // A kernel that goes by simdgroups goes by the device's.
            let size = device.capabilities().simdgroup_size;
            bound.options.simdgroup_size.get_or_insert(size);
        }
        invar_interp::run(
            module,
            &bound.kernel,
            &bound.dispatch,
            &mut bound.args,
            &bound.options,
            &mut [],
        )?;
        Ok(bound.args)
    }

    pub fn run(&self, module: &Verified, bound: &mut Bound) -> Result<Ran, Diagnostics> {
        match self {
            Place::Reference => {
                let start = Instant::now();
                let mut bar = Bar::new();
                let mut lines = Lines::default();
                let outcome = invar_interp::run(
                    module,
                    &bound.kernel,
                    &bound.dispatch,
                    &mut bound.args,
                    &bound.options,
                    &mut [&mut bar, &mut lines],
                )?;
                Ok(Ran {
                    seconds: start.elapsed().as_secs_f64(),
                    steps: Some(outcome.steps),
                    findings: Vec::new(),
                    printed: lines.0,
                })
            }
            Place::Device(device) => {
                on_device(device, module, bound).map_err(invar::Error::into_diagnostics)
            }
        }
    }
}

/// Whether the reference machine can have copies of buffers of so many bytes, for an expectation that asks for it.
///
/// # Errors
/// `out-of-memory`.
pub fn room_for_reference(asks: &Expect, bytes: u64) -> Result<(), Diagnostics> {
    if has_room(bytes) {
        return Ok(());
    }
    let message = format!(
        "there is no memory for the {bytes} bytes of the buffers that the reference machine runs on: \
         expect something else than `reference`, or use smaller buffers"
    );
    let error = Diagnostic::error(Rule::OutOfMemory, asks.value.span, message);
    Err(Diagnostics(vec![error]))
}

fn on_device(device: &Device, module: &Verified, bound: &mut Bound) -> Result<Ran, invar::Error> {
    let options = CompileOptions {
        constants: bound.options.constants.clone(),
        threadgroup_size: Some(bound.dispatch.threadgroup),
        time_limit: bound.options.time_limit,
        ..CompileOptions::default()
    };
    let program = device.compile_with(module, &bound.kernel, &options)?;
    let queue = device.queue().with_time_limit(bound.options.time_limit);
    let queue = queue.quiet();
    let done = queue.run_host(&program, bound.dispatch, &mut bound.args)?;
    let report = done.report();
    let findings = done.findings();
    let seconds = match done.wait() {
        Ok(times) => times.duration().as_secs_f64(),
        // The findings are the reason.
        Err(_) if !findings.is_empty() => 0.0,
        Err(error) => return Err(error),
    };
    Ok(Ran {
        seconds,
        steps: report.map(|r| r.steps),
        findings,
        printed: done.printed().cloned().unwrap_or_default(),
    })
}

/// Whether an expectation is one of what the reference machine computes.
pub fn asks_for_reference(expect: &Expect) -> bool {
    matches!(expect.value.kind, ExprKind::Reference)
}
