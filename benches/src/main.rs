//! One table: our figure, the peer's measured in the same run, and how many times better ours is.
//!
//! Machines are shared and noisy, so the two sides take turns and the medians are compared. A row
//! whose peer is not installed is left out, and said so.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a table on standard output is what this program is for"
)]

use std::path::PathBuf;
use std::process::ExitCode;

mod checkers;
mod layouts;
mod memory;
mod table;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("bench: {sentence}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), String> {
    let mut json = None;
    let mut args = std::env::args().skip(1);
    if std::env::args().nth(1).as_deref() == Some(memory::CHILD) {
        println!("{}", memory::child(&args.skip(1).collect::<Vec<_>>())?);
        return Ok(());
    }
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--json" => {
                let file = args.next().ok_or("--json needs a file name")?;
                json = Some(PathBuf::from(file));
            }
            other => return Err(format!("unknown argument `{other}`; usage: [--json FILE]")),
        }
    }
    let mut table = table::Table::default();
    checkers::rows(&mut table)?;
    memory::rows(&mut table)?;
    layouts::rows(&mut table)?;
    table.print();
    if let Some(file) = json {
        table.write_json(&file)?;
    }
    Ok(())
}
