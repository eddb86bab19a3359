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

use clap::Parser;
use clap::error::ErrorKind;

mod action;
mod bench;
mod console;
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
mod outcome;
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

use action::{Command, perform};
use console::{say, show, unwritten};
pub use input::Loaded;
use outcome::{Refusal, Verdict};
pub use picture::as_shown;

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
