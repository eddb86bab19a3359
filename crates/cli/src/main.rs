//! The `invar` command, as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(invar_cli::command(std::env::args_os(), &[]))
}
