//! What becomes of the kernels of Metal sources: `metal_census [--lines] [-I FOLDER]... [-D MACRO]... FILE...`.
//!
//! Of each kernel function one instance is compiled, translated and verified; function constants are 1. A table
//! stands at the end.
#![allow(clippy::print_stdout, reason = "a program for the terminal")]

use std::collections::HashSet;
use std::path::PathBuf;

use invar_ir::{Diagnostics, verify};
use invar_msl::Library;

#[derive(Default)]
struct Counts {
    kernels: usize,
    translated: usize,
    verified: usize,
}

fn main() {
    let (mut lines, mut files, mut library) = (false, Vec::new(), Library::default());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match &*argument {
            "--lines" => lines = true,
            "-I" => library.includes.extend(arguments.next().map(PathBuf::from)),
            "-D" => library.defines.extend(arguments.next()),
            file => files.push(file.to_string()),
        }
    }
    println!("kernels translated verified file");
    let mut total = Counts::default();
    for file in files {
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) => {
                println!("{file}: {error}");
                continue;
            }
        };
        let library = Library {
            name: file.clone(),
            text,
            ..library.clone()
        };
        match census(library, lines) {
            Ok(counts) => {
                let Counts {
                    kernels,
                    translated,
                    verified,
                } = counts;
                println!("{kernels:7} {translated:10} {verified:8} {file}");
                total.kernels += kernels;
                total.translated += translated;
                total.verified += verified;
            }
            Err(errors) => println!("      -          -        - {file}: {}", first(&errors)),
        }
    }
    let Counts {
        kernels,
        translated,
        verified,
    } = total;
    println!("{kernels:7} {translated:10} {verified:8} in all");
}

fn census(mut library: Library, lines: bool) -> Result<Counts, Diagnostics> {
    let mut functions = HashSet::new();
    let mut names = library.names()?;
    names.retain(|(_, function)| functions.insert(function.clone()));
    let constants = library.constant_names()?.into_iter();
    library.constants = constants.map(|c| (c, "1".to_string())).collect();
    let mut counts = Counts {
        kernels: names.len(),
        ..Counts::default()
    };
    for (name, _) in &names {
        let outcome = match library.kernels(Some(name)) {
            Err(errors) => first(&errors),
            Ok(kernels) => {
                counts.translated += 1;
                match verify(kernels.module) {
                    Ok(_) => {
                        counts.verified += 1;
                        "verified".to_string()
                    }
                    Err(errors) => first(&errors),
                }
            }
        };
        if lines {
            println!("{name}: {outcome}");
        }
    }
    Ok(counts)
}

/// The first of what is wrong, on one line.
fn first(Diagnostics(all): &Diagnostics) -> String {
    all.first().map(ToString::to_string).unwrap_or_default()
}
