//! The `invar` command: check, run and print GPU kernels.
//!
//! One subcommand for each arrow of the pipeline. Exit code 0: clean; 1: the kernel has errors or
//! gave a wrong result; 2: bad usage or input. Results go to standard output, reports and progress
//! to standard error; with `--json` one JSON document goes to standard output, for exit code 2 an
//! object whose `error` is the sentence.
//!
//! A library, so that the Python package has the same command: it adds modules that it traced from
//! Python files ([`Loaded`]).

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};
use invar_ir::Module;

mod bench;
mod declared;
mod demo;
mod emit;
mod execute;
pub mod files;
mod inform;
mod input;
mod layout;
mod metal;
pub mod npy;
mod options;
mod output;
mod picture;
mod place;
mod plan;
mod preview;
mod program;
mod progress;
mod prove;
mod read;
mod shader;

pub use picture::as_shown;

/// Why a command cannot go on: a sentence for the user, or several on lines of their own. Exit code 2.
struct Refusal(String);

impl<E: std::error::Error> From<E> for Refusal {
    fn from(error: E) -> Refusal {
        Refusal(error.to_string())
    }
}

/// How a command ended that did its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
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

/// Output for machines.
#[derive(Args, Clone, Copy, Default)]
struct Machine {
    /// Print one JSON document to standard output.
    #[arg(long)]
    json: bool,
}

/// Modules that are in memory, by the name that the command line gives them.
pub type Loaded = [(PathBuf, Module)];

/// Runs the command with a process's arguments, the program's name first; gives its exit code.
///
/// A file of the command line that `loaded` names is not read: the module is there already.
pub fn command(args: impl IntoIterator<Item = OsString>, loaded: &Loaded) -> u8 {
    let args: Vec<OsString> = args.into_iter().collect();
    // Asked for before anything is parsed, since that may fail too.
    let json = args
        .iter()
        .take_while(|arg| *arg != "--")
        .any(|arg| arg == "--json");
    let mut action = match Command::try_parse_from(args) {
        Ok(command) => command.action,
        Err(error) => {
            return refuse_arguments(&error, json);
        }
    };
    let code = match perform(&mut action, loaded) {
        Ok(Verdict::Clean) => 0,
        Ok(Verdict::Errors) => 1,
        Err(Refusal(sentence)) => {
            let sentence = readable(&sentence);
            for line in sentence.lines() {
                say(&format!("invar: {line}"));
            }
            if json {
                show_error(&sentence);
            }
            2
        }
    };
    invar_runtime::ends_now();
    if let Some(sentence) = invar_runtime::cache_refusal() {
        say(&format!("invar: warning: {sentence}"));
    }
    match unwritten().take() {
        None => code,
        Some(error) => {
            say(&format!(
                "invar: standard output cannot be written: {error}"
            ));
            2
        }
    }
}

/// Does what a command says.
fn perform(action: &mut Action, loaded: &Loaded) -> Result<Verdict, Refusal> {
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

/// A sentence whose words are of a length that people read: names of megabytes are cut.
fn readable(sentence: &str) -> String {
    // Paths are at most so long.
    const LONGEST: usize = 4096;
    let word = |word: &str| -> String {
        if word.len() <= LONGEST {
            word.to_string()
        } else {
            options::shorten(word).into_owned()
        }
    };
    let words: Vec<String> = sentence.split(' ').map(word).collect();
    words.join(" ")
}

/// Answers to arguments that are none of the command's, or that ask for help; gives the exit code.
fn refuse_arguments(error: &clap::Error, json: bool) -> u8 {
    let code = u8::try_from(error.exit_code()).unwrap_or(2);
    let asks = matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if asks {
        // A closed pipe is not an error.
        let _ = error.print();
        return code;
    }
    let sentence = readable(&sentence(&error.render().to_string()));
    say(&format!("invar: {sentence}"));
    if json {
        show_error(&sentence);
    }
    code
}

/// What was wrong with the arguments, and what may have been meant, in one line.
fn sentence(report: &str) -> String {
    let report = report.strip_prefix("error: ").unwrap_or(report);
    let told: Vec<String> = (report.split("\n\n"))
        .filter(|part| {
            !["Usage:", "For more information"]
                .iter()
                .any(|s| part.starts_with(s))
        })
        .map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "))
        .map(|part| {
            part.strip_prefix("tip: ")
                .map(str::to_string)
                .unwrap_or(part)
        })
        .collect();
    format!("{}; `--help` lists what there is", told.join("; "))
}

/// The document of `--json` where there is no result.
fn show_error(sentence: &str) {
    let document = serde_json::json!({ "error": sentence });
    show(&format!("{document:#}"));
}

/// What kept a line from standard output first, if that was not a reader that has gone away.
static UNWRITTEN: Mutex<Option<io::Error>> = Mutex::new(None);

fn unwritten() -> MutexGuard<'static, Option<io::Error>> {
    UNWRITTEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prints a line to standard output. A reader that has gone away is not an error; any other is told at the end.
fn show(line: &str) {
    if let Err(error) = writeln!(anstream::stdout(), "{line}")
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        unwritten().get_or_insert(error);
    }
}

/// Prints a line to standard error.
fn say(line: &str) {
    let _ = writeln!(anstream::stderr(), "{line}");
}
