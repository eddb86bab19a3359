//! Kernels with textures that are written as Metal's language, read back: what becomes of each `; run:` line of
//! `tests/ir/textures` is the same, byte for byte.

use std::path::Path;

use invar_codegen::msl::{Argument, MslOptions, Source, write};
use invar_interp::case::{Bound, bind};
use invar_interp::{Arg, Grid, Options, run};
use invar_ir::text::case::{cases, files};
use invar_ir::text::{data::Wanted, parse};
use invar_ir::{ElementType, Kernel, ParamKind, Verified, verify};
use invar_msl::{Library, find_clang};

/// The kernel of a text, read back.
fn read_back(source: &Source) -> Result<Verified, String> {
    let library = Library {
        name: format!("{}.metal", source.entry),
        text: source.text.clone(),
        ..Library::default()
    };
    let kernels = library.kernels(None).map_err(|e| e.to_string())?;
    verify(kernels.module).map_err(|e| e.to_string())
}

/// Arguments as the text takes them: scalars as what buffers hold, and lengths behind all.
fn arguments(kernel: &Kernel, source: &Source, bound: &Bound) -> Vec<Arg<'static>> {
    let mut args: Vec<Arg> = (bound.args.iter().zip(&source.arguments))
        .map(|(arg, place)| match (arg, place) {
            (Arg::Scalar(parts), Argument::Buffer(_)) => {
                let bytes = parts.iter().flat_map(|part| {
                    let size = part.scalar.size_bytes() as usize;
                    part.bits.to_le_bytes()[..size].to_vec()
                });
                Arg::OwnedBuffer(bytes.collect())
            }
            (other, _) => other.copy(),
        })
        .collect();
    if let Some(lengths) = &source.lengths {
        let mut bytes = Vec::new();
        for param in &lengths.params {
            let ParamKind::Buffer { element, .. } = &kernel.params[*param as usize].kind else {
                panic!("a length of what is not a buffer");
            };
            let ElementType::Value(ty) = element else {
                panic!("a buffer of other elements than values");
            };
            let size = ty.scalar().map_or(1, |s| s.size_bytes()) * u64::from(ty.component_count());
            let held = bound.args[*param as usize].bytes().len() as u64;
            bytes.extend((held / size).to_le_bytes());
        }
        if lengths.grid {
            let Grid::Threads(threads) = bound.dispatch.grid else {
                panic!("a grid of threadgroups");
            };
            bytes.extend(threads.iter().flat_map(|n| n.to_le_bytes()));
        }
        args.push(Arg::OwnedBuffer(bytes));
    }
    args
}

fn no_files(name: &str, _: &Wanted) -> Result<Vec<u8>, String> {
    Err(format!("no file `{name}`"))
}

#[test]
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn textures_written_and_read_back_give_the_same() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ir/textures");
    let (mut runs, mut skipped, mut failures) = (0, Vec::new(), Vec::new());
    for path in files(&folder).expect("the folder of file tests") {
        let text = std::fs::read_to_string(&path).expect("a file");
        let name = path.file_stem().unwrap_or_default().display().to_string();
        let module = parse(&name, &text).and_then(verify).expect("a module");
        for kernel in &module.kernels {
            let written = write(&module, &kernel.name, &MslOptions::default());
            let back = written
                .map_err(|e| e.to_string())
                .and_then(|source| read_back(&source).map(|back| (source, back)));
            let (source, back) = match back {
                Ok(back) => back,
                Err(why) => {
                    skipped.push(format!("{name} @{}: {why}", kernel.name));
                    continue;
                }
            };
            for case in cases(&text).expect("directives") {
                if *case.kernel.name != *kernel.name {
                    continue;
                }
                let options = Options::default();
                let mut bound = bind(&module, &case, &options, &mut no_files).expect("arguments");
                let mut args = arguments(kernel, &source, &bound);
                let Bound {
                    dispatch, options, ..
                } = bound.copy();
                let own = &mut bound.args;
                run(&module, &kernel.name, &dispatch, own, &options, &mut []).expect("it runs");
                let ran = run(
                    &back,
                    &source.entry,
                    &dispatch,
                    &mut args,
                    &options,
                    &mut [],
                );
                runs += 1;
                let same = ran.is_ok()
                    && (own.iter().zip(&args).zip(&source.arguments)).all(|((own, arg), _)| {
                        own.bytes() == arg.bytes() || own.bytes().is_empty()
                    });
                if !same {
                    let why = ran.map_or_else(|e| e.to_string(), |_| "other bytes".to_string());
                    failures.push(format!("{name} @{}: {why}\n{}", kernel.name, source.text));
                }
            }
        }
    }
    println!("{runs} runs; skipped:\n{}", skipped.join("\n"));
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(runs >= 80, "only {runs} runs");
}
