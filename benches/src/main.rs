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

mod cases;
mod checkers;
mod count;
mod cpu;
mod forms;
mod limits;
mod memory;
mod pairs;
mod peer;
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
    let mut rows = String::new();
    let mut args = std::env::args().skip(1);
    // Processes that measure one thing.
    let first = std::env::args().nth(1);
    let rest: Vec<String> = std::env::args().skip(2).collect();
    match first.as_deref() {
        Some(memory::CHILD) => {
            println!("{}", memory::child(&rest)?);
            return Ok(());
        }
        Some(limits::COMPILE) => {
            println!("{}", limits::compile_child(&rest)?);
            return Ok(());
        }
        Some(limits::COLD_PATHS) => {
            println!("{}", limits::cold_paths_child(&rest)?);
            return Ok(());
        }
        Some(limits::MEMORY) => {
            println!("{}", limits::memory_child(&rest)?);
            return Ok(());
        }
        Some(_) | None => {}
    }
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--json" => {
                let file = args.next().ok_or("--json needs a file name")?;
                json = Some(PathBuf::from(file));
            }
            "--only" => {
                only = Some(args.next().ok_or("--only needs the name of a part")?);
            }
            "--rows" => {
                rows = args.next().ok_or("--rows needs a part of their names")?;
            }
            other => {
                return Err(format!(
                    "unknown argument `{other}`; usage: [--json FILE] [--only PART] [--rows TEXT]"
                ));
            }
        }
    }
    let mut table = table::Table::of(rows);
    type Rows = fn(&mut table::Table) -> Result<(), String>;
    let parts: [(&str, Rows); 12] = [
        ("checkers", checkers::rows),
        ("memory", memory::rows),
        ("layouts", python::layouts),
        ("launches", python::launches),
        ("forms", forms::rows),
        ("examples", python::examples),
        ("variants", python::variants),
        ("classes", python::classes),
        ("textures", python::textures),
        ("cpu", cpu::rows),
        ("limits", limits::rows),
        ("peers", cpu::more_peers),
    ];
    let wanted = |name: &str| only.as_ref().is_none_or(|only| only == name);
    if !parts.iter().any(|(name, _)| wanted(name)) {
        let names: Vec<&str> = parts.iter().map(|(name, _)| *name).collect();
        return Err(format!("no part has that name: {}", names.join(", ")));
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
