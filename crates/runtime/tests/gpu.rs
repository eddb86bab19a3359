//! The GPU device: every `; run:` line of `tests/ir/run` on every adapter of this machine, compared with
//! what the line says and with the reference machine.

#![cfg(feature = "gpu")]

use std::path::{Path, PathBuf};

use invar_interp::case::{bind, mismatches};
use invar_interp::{Arg, Options, run};
use invar_ir::text::{case::cases, parse};
use invar_ir::{ElementType, Rule, verify};
use invar_runtime::CompileOptions;
use invar_runtime::gpu::{Gpu, GpuArg, GpuBuffer};

fn files() -> Vec<PathBuf> {
    // A machine that runs this test need not be the one that built it.
    let folder = match std::env::var_os("INVAR_RUN_FILES") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ir/run"),
    };
    let entries = std::fs::read_dir(&folder).unwrap();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "inv"))
        .collect();
    files.sort();
    files
}

/// Files that expect the exact bytes of what only `ieee-float` promises (A9): a fused product and sum.
const NEED_IEEE_FLOAT: &[&str] = &["A8-contract"];

/// Runs every line of a file; gives how many ran, and why others did not.
fn run_file(gpu: &Gpu, path: &Path) -> Result<(u32, Vec<String>), String> {
    let source = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let module = parse(&name, &source)
        .and_then(verify)
        .map_err(|e| e.to_string())?;
    let (mut runs, mut skips) = (0, Vec::new());
    for case in &cases(&source).map_err(|e| e.to_string())? {
        let mut no_files = |n: &str, _: &ElementType| Err(format!("no file `{n}`"));
        let kernel = module.kernel(&case.kernel.name).ok_or("no such kernel")?;
        let own = gpu.capabilities().simdgroup_size;
        let size = kernel.simdgroup_size.unwrap_or(own);
        if case.simdgroup.is_some_and(|wanted| wanted != size) {
            skips.push(format!(
                "{name}: it wants simdgroups of {:?}, here they have {size}",
                case.simdgroup
            ));
            continue;
        }
        let options = Options {
            simdgroup_size: Some(size),
            ..Options::default()
        };
        let mut bound = bind(&module, case, &options, &mut no_files).map_err(|e| e.to_string())?;
        let compile = CompileOptions {
            constants: bound.options.constants.clone(),
            threadgroup_size: Some(bound.dispatch.threadgroup),
        };
        let program = match gpu.compile(&module, &bound.kernel, &compile) {
            Ok(program) => program,
            Err(error) => {
                let rule = error.rule();
                let refusals = [
                    Rule::UnsupportedFeature,
                    Rule::UnsupportedFloatMode,
                    Rule::UnsupportedMemoryOrder,
                ];
                if rule.is_some_and(|r| refusals.contains(&r)) {
                    skips.push(format!("{name}: {error}"));
                    continue;
                }
                return Err(error.to_string());
            }
        };
        let buffers: Vec<Option<GpuBuffer>> = bound
            .args
            .iter()
            .map(|arg| match arg {
                Arg::Scalar(_) | Arg::ThreadgroupLength(_) => Ok(None),
                buffer => gpu.buffer_from(buffer.bytes()).map(Some),
            })
            .collect::<Result<_, _>>()
            .map_err(|e| e.to_string())?;
        let args: Vec<GpuArg<'_>> = bound
            .args
            .iter()
            .zip(&buffers)
            .map(|(arg, buffer)| match (arg, buffer) {
                (Arg::Scalar(components), _) => GpuArg::Scalar(components),
                (Arg::ThreadgroupLength(n), _) => GpuArg::ThreadgroupLength(*n),
                (_, Some(buffer)) => GpuArg::Buffer(buffer),
                (_, None) => unreachable!("every buffer was uploaded"),
            })
            .collect();
        gpu.dispatch(&program, bound.dispatch, &args)
            .map_err(|e| e.to_string())?;
        let mut after = Vec::new();
        for (arg, buffer) in bound.args.iter().zip(&buffers) {
            after.push(match (arg, buffer) {
                (Arg::Scalar(components), _) => Arg::Scalar(components.clone()),
                (Arg::ThreadgroupLength(n), _) => Arg::ThreadgroupLength(*n),
                (_, Some(buffer)) => Arg::OwnedBuffer(buffer.read().map_err(|e| e.to_string())?),
                (_, None) => unreachable!("every buffer was uploaded"),
            });
        }
        run(
            &module,
            &bound.kernel,
            &bound.dispatch,
            &mut bound.args,
            &bound.options,
            &mut [],
        )
        .map_err(|e| e.to_string())?;
        let wrong = mismatches(&module, case, &after, &bound.args, &mut no_files);
        if let Some(first) = wrong.first() {
            if NEED_IEEE_FLOAT.iter().any(|f| name.starts_with(f)) {
                skips.push(format!("{name}: needs ieee-float: {first}"));
                continue;
            }
            return Err(first.to_string());
        }
        runs += 1;
    }
    Ok((runs, skips))
}

/// The adapters of this machine; a machine without any has nothing to test.
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn gpus() -> Vec<Gpu> {
    let names = Gpu::names();
    if names.is_empty() {
        println!("skipped: this machine has no adapter (mesa-vulkan-drivers brings one)");
    }
    (0..names.len()).map(|i| Gpu::open(i).unwrap()).collect()
}

#[test]
#[expect(clippy::print_stdout, reason = "a test says how much it ran")]
fn every_run_line_holds_on_every_adapter() {
    for gpu in gpus() {
        let (mut runs, mut skips, mut failures) = (0, Vec::new(), Vec::new());
        for path in files() {
            match run_file(&gpu, &path) {
                Ok((n, why)) => {
                    runs += n;
                    skips.extend(why);
                }
                Err(error) => failures.push(format!("{}: {error}", path.display())),
            }
        }
        println!("{gpu:?}: {runs} runs, {} skipped", skips.len());
        for skip in &skips {
            println!("  {skip}");
        }
        assert!(failures.is_empty(), "{}", failures.join("\n"));
        assert!(runs >= 50, "only {runs} runs");
    }
}
