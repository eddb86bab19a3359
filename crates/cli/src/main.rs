//! The `invar` command: check, run and print GPU kernels.
//!
//! One subcommand for each arrow of the pipeline. Exit code 0: clean; 1: the kernel has errors or
//! gave a wrong result; 2: bad usage or input. Results go to standard output, reports and progress
//! to standard error; with `--json` one JSON document goes to standard output.

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

mod execute;
mod inform;
mod input;
mod progress;

/// Why a command cannot go on: a sentence for the user. Exit code 2.
pub struct Refusal(pub String);

impl<E: std::error::Error> From<E> for Refusal {
    fn from(error: E) -> Refusal {
        Refusal(error.to_string())
    }
}

/// How a command ended that did its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing to complain of.
    Clean,
    /// Errors were found.
    Errors,
}

/// Write, check and run GPU kernels: one memory model, enforced on every device.
#[derive(Parser)]
#[command(name = "invar", version)]
struct Command {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Verify a kernel and run it under every checker: data races, barriers, bounds.
    ///
    /// The inputs are those given with --arg and --grid, or else those of the file's `run` lines.
    Check(execute::CheckArgs),
    /// Run a kernel on given inputs, or the file's `run` lines.
    Run(execute::RunArgs),
    /// Print a module in its canonical form.
    Print(inform::PrintArgs),
    /// Explain a rule that a report named.
    Explain(inform::ExplainArgs),
    /// Show the table of operations, or one of them.
    Ops(inform::OpsArgs),
    /// Show a layout as a table, and write its picture.
    Layout(inform::LayoutArgs),
    /// Show the devices of this machine and what they can do.
    Devices(inform::DevicesArgs),
}

/// Output for machines.
#[derive(Args, Clone, Copy)]
pub struct Machine {
    /// Print one JSON document to standard output.
    #[arg(long)]
    pub json: bool,
}

fn main() -> ExitCode {
    let done = match Command::parse().action {
        Action::Check(args) => execute::check(&args),
        Action::Run(args) => execute::run(&args),
        Action::Print(args) => inform::print(&args),
        Action::Explain(args) => inform::explain(&args),
        Action::Ops(args) => inform::ops(&args),
        Action::Layout(args) => inform::layout(&args),
        Action::Devices(args) => inform::devices(&args),
    };
    match done {
        Ok(Verdict::Clean) => ExitCode::SUCCESS,
        Ok(Verdict::Errors) => ExitCode::from(1),
        Err(Refusal(sentence)) => {
            say(&format!("invar: {sentence}"));
            ExitCode::from(2)
        }
    }
}

/// Prints a line to standard output. A reader that has gone away is no error.
pub fn show(line: &str) {
    use std::io::Write;
    let _ = writeln!(anstream::stdout(), "{line}");
}

/// Prints a line to standard error.
pub fn say(line: &str) {
    use std::io::Write;
    let _ = writeln!(anstream::stderr(), "{line}");
}
