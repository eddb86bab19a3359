//! The subcommands, and which part of the crate does what each says.

use clap::{Parser, Subcommand};

use crate::input::Loaded;
use crate::outcome::{Refusal, Verdict};
use crate::{bench, demo, emit, execute, inform, layout, prove, shader};

/// Write, check and run GPU kernels: one memory model, enforced on every device.
#[derive(Parser)]
#[command(name = "invar", version)]
pub struct Command {
    #[command(subcommand)]
    pub action: Action,
}

#[derive(Subcommand)]
pub enum Action {
    /// Verify a kernel and run it under every checker: data races, barriers, bounds.
    ///
    /// The inputs are those given with --arg and --grid, or else those of the file's `run` lines.
    Check(execute::CheckArgs),
    /// Prove that a kernel has no data race and stays in bounds for every launch, or find a launch that
    /// breaks it.
    Prove(prove::ProveArgs),
    /// Run a kernel on given inputs, or the file's `run` lines.
    Run(execute::RunArgs),
    /// Measure a file's `run` lines, or given inputs: median time and bytes touched. What they expect is not
    /// compared: `run` does that.
    Bench(bench::BenchArgs),
    /// Print a module in its canonical form.
    Print(inform::PrintArgs),
    /// Print a kernel as a target's code.
    Emit(emit::EmitArgs),
    /// Explain a rule that a report named.
    Explain(inform::ExplainArgs),
    /// Print a form for the inputs of a shader's entry points, to fill in for --inputs.
    Inputs(shader::InputsArgs),
    /// Show the table of operations, or one of them.
    Ops(inform::OpsArgs),
    /// Show a layout as a table, and write its picture.
    Layout(layout::LayoutArgs),
    /// Show the devices of this machine and what they can do.
    Devices(inform::DevicesArgs),
    /// Show what Invar does, on kernels of its own: mistakes caught, answers compared, pictures.
    Demo(demo::DemoArgs),
}

/// Does what a command says.
pub fn perform(action: &mut Action, loaded: &Loaded) -> Result<Verdict, Refusal> {
    match action {
        Action::Check(args) => (args.inputs.complete()).and_then(|()| execute::check(args, loaded)),
        Action::Prove(args) => prove::prove(args, loaded),
        Action::Run(args) => (args.inputs.complete()).and_then(|()| execute::run(args, loaded)),
        Action::Bench(args) => (args.inputs.complete()).and_then(|()| bench::bench(args, loaded)),
        Action::Inputs(args) => shader::inputs(args, loaded),
        Action::Print(args) => inform::print(args, loaded),
        Action::Emit(args) => emit::emit(args, loaded),
        Action::Explain(args) => inform::explain(args),
        Action::Ops(args) => inform::ops(args),
        Action::Layout(args) => layout::layout(args),
        Action::Devices(args) => inform::devices(args),
        Action::Demo(args) => demo::demo(args),
    }
}
