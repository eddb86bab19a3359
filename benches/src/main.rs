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
mod cpu;
mod memory;
mod python;
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
    let mut only = None;
    let mut table = table::Table::default();
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
            "--only" => {
                only = Some(
                    args.next()
                        .ok_or("--only needs checkers, memory, layouts, launches or cpu")?,
                )
            }
            "--row" => {
                let text = args.next().ok_or("--row needs a part of a row's name")?;
                table.only_rows(text);
            }
            other => {
                return Err(format!(
                    "unknown argument `{other}`; usage: [--json FILE] [--only PART] [--row TEXT]"
                ));
            }
        }
    }
    type Rows = fn(&mut table::Table) -> Result<(), String>;
    let parts: [(&str, Rows); 5] = [
        ("checkers", checkers::rows),
        ("memory", memory::rows),
        ("layouts", python::layouts),
        ("launches", python::launches),
        ("cpu", cpu::rows),
    ];
    let wanted = |name: &str| only.as_ref().is_none_or(|only| only == name);
    if !parts.iter().any(|(name, _)| wanted(name)) {
        return Err("no part has that name: checkers, memory, layouts, launches, cpu".to_string());
    }
    for (_, rows) in parts.iter().filter(|(name, _)| wanted(name)) {
        rows(&mut table)?;
    }
    table.print();
    if let Some(file) = json {
        table.write_json(&file)?;
    }
    match table.failures() {
        [] => Ok(()),
        failures => Err(failures.join("\nbench: ")),
    }
}
