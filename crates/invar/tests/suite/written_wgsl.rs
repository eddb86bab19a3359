//! The WGSL of kernels with textures, which Invar's own GPU device makes buffers of: any other host runs it as it
//! stands, and so does this, through wgpu. So does it with that of kernels whose accesses are proved in bounds, which has
//! no guards: where a launch does not fulfil the conditions it takes the one that has.

use std::path::{Path, PathBuf};

use invar::wgsl::{Shader, directives};
use invar::{Arg, ByteBuffer, Device, Sampler, Texture};
use invar_interp::case::{Bound, bind, mismatches};
use invar_interp::{Arg as Data, Options};
use invar_ir::text::case::{cases, files};
use invar_ir::text::parse;
use invar_ir::{ElementType, Kernel, ParamKind, Scalar, Verified, verify};
use invar_prove::{Report, Verdict, launch, prove};

use direct::{Driver, Held};
use written::Param;

#[path = "../../examples/census/direct.rs"]
mod direct;
#[path = "../../examples/census/written.rs"]
mod written;

/// What became of the runs of all files.
#[derive(Default)]
struct Counts {
    /// With the bytes of the CPU device.
    equal: usize,
    /// As expected, but not byte by byte.
    close: usize,
    skips: Vec<String>,
    failures: Vec<String>,
}

fn sampler_of(components: &[invar_ir::Const]) -> Sampler {
    let code: Vec<u32> = components.iter().map(|c| c.bits as u32).collect();
    let code = code.try_into().expect("three words");
    Sampler::from_code(code).expect("a sampler")
}

/// What each parameter gets, for the driver.
fn params(module: &Verified, kernel: &Kernel, args: &[Data<'_>]) -> Vec<Param> {
    let pairs = kernel.params.iter().zip(args);
    pairs
        .map(|(param, arg)| match (&param.kind, arg) {
            (ParamKind::Texture(ty), Data::Texture(shape, memory)) => {
                let bytes = memory.bytes().to_vec();
                let (ty, shape) = (*ty, *shape);
                Param::Held(Held::Texture { ty, shape, bytes }, 0)
            }
            (ParamKind::Sampler, Data::Scalar(code)) => {
                Param::Held(Held::Sampler(sampler_of(code)), 0)
            }
            (ParamKind::Scalar { .. }, Data::Scalar(components)) => {
                Param::Scalar(components.clone())
            }
            (ParamKind::Buffer { element, .. } | ParamKind::Constant { element }, memory) => {
                let bytes = memory.bytes().to_vec();
                let size = element.extent(&module.structs).expect("a size").size_bytes;
                let elements = bytes.len() as u64 / size;
                let uniform = false;
                Param::Held(Held::Buffer { bytes, uniform }, elements)
            }
            other => panic!("no argument: {other:?}"),
        })
        .collect()
}

enum Made {
    Buffer(ByteBuffer),
    Texture(Texture),
    Sampler(Sampler),
    Scalar(Vec<invar_ir::Const>),
}

/// What every parameter holds behind a dispatch on the CPU device.
fn on_cpu(module: &Verified, bound: &Bound) -> Result<Vec<Vec<u8>>, invar::Error> {
    let device = Device::cpu();
    let kernel = module.kernel(&bound.kernel).expect("a kernel");
    let program = device.compile(module, &bound.kernel)?;
    let mut made = Vec::new();
    for (param, arg) in kernel.params.iter().zip(&bound.args) {
        made.push(match (&param.kind, arg) {
            (_, Data::Texture(shape, memory)) => {
                let texture = Texture::of_shape(&device, *shape)?;
                texture.write(memory.bytes())?;
                Made::Texture(texture)
            }
            (ParamKind::Sampler, Data::Scalar(code)) => Made::Sampler(sampler_of(code)),
            (_, Data::Scalar(components)) => Made::Scalar(components.clone()),
            (_, memory) => {
                let buffer = ByteBuffer::zeroed(&device, memory.bytes().len())?;
                buffer.write_bytes(0, memory.bytes())?;
                Made::Buffer(buffer)
            }
        });
    }
    let args: Vec<Arg<'_>> = made
        .iter()
        .map(|made| match made {
            Made::Buffer(buffer) => Arg::from(buffer),
            Made::Texture(texture) => Arg::from(texture),
            Made::Sampler(sampler) => Arg::from(*sampler),
            Made::Scalar(components) => match &components[..] {
                [one] => Arg::from(*one),
                several => panic!("a value of {} components", several.len()),
            },
        })
        .collect();
    device.queue().run(&program, bound.dispatch, &args)?;
    let bytes = made.iter().zip(&bound.args).map(|(made, arg)| match made {
        Made::Buffer(buffer) => {
            let mut bytes = vec![0; arg.bytes().len()];
            buffer.read_bytes(0, &mut bytes)?;
            Ok(bytes)
        }
        Made::Texture(texture) => texture.read(),
        Made::Sampler(_) | Made::Scalar(_) => Ok(Vec::new()),
    });
    bytes.collect()
}

/// Arguments that hold these bytes.
fn left(args: &[Data<'_>], bytes: &[Vec<u8>]) -> Vec<Data<'static>> {
    let pairs = args.iter().zip(bytes);
    pairs
        .map(|(arg, bytes)| match arg {
            Data::Texture(shape, _) => {
                Data::Texture(*shape, Box::new(Data::OwnedBuffer(bytes.clone())))
            }
            Data::Scalar(components) => Data::Scalar(components.clone()),
            _memory => Data::OwnedBuffer(bytes.clone()),
        })
        .collect()
}

fn writes(kind: &ParamKind) -> bool {
    match kind {
        ParamKind::Buffer { access, .. } => access.can_write(),
        ParamKind::Texture(ty) => ty.access.memory().can_write(),
        ParamKind::Constant { .. }
        | ParamKind::Scalar { .. }
        | ParamKind::Threadgroup { .. }
        | ParamKind::Sampler => false,
    }
}

/// Why a driver may compute something else than the formulas, if it may.
fn excuse(file: &str, kernel: &Kernel, args: &[Data<'_>]) -> Option<&'static str> {
    match (file, &*kernel.name) {
        ("V11-cubes.inv", "edges") | ("V20-gathers-of-cubes.inv", "corners") => {
            return Some("a sample of a corner, where three faces meet, is the driver's");
        }
        ("V8-levels.inv" | "V18-levels-of-volumes.inv", "sizes") => {
            return Some(
                "Mesa's driver for processors gives a vector of threads the size of one level",
            );
        }
        _others => {}
    }
    let pairs = kernel.params.iter().zip(args);
    let mut floats = pairs.filter_map(|(param, arg)| match &param.kind {
        ParamKind::Buffer {
            element: ElementType::Value(ty),
            ..
        } if ty.component_scalar() == Scalar::F32 => Some(arg.bytes()),
        _others => None,
    });
    let is_finite = |bytes: &[u8]| {
        let numbers = bytes.chunks_exact(4);
        let mut numbers = numbers.map(|b| f32::from_le_bytes(b.try_into().expect("four bytes")));
        numbers.all(f32::is_finite)
    };
    (!floats.all(is_finite)).then_some("where it samples is not a number, or infinite")
}

fn run_file(driver: &Driver, path: &Path, counts: &mut Counts) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let source = std::fs::read_to_string(path).expect("text");
    let (module, lines) = match path.extension().is_some_and(|end| end == "wgsl") {
        true => {
            let shader = Shader::parse(&name, &source).expect("a shader");
            let kernels = shader.kernels(None, &[]).expect("kernels");
            (kernels.module, directives(&source))
        }
        false => (parse(&name, &source).expect("kernels"), source),
    };
    let module = verify(module).expect("valid");
    let mut no_files = |name: &str, _: &_| Err(format!("there is no file `{name}`"));
    for case in cases(&lines).expect("directives") {
        // What nothing is expected of shows a mistake.
        if case.expects.is_empty() {
            continue;
        }
        let here = format!("{name}, kernel `{}`", case.kernel.name);
        let bound = bind(&module, &case, &Options::default(), &mut no_files).expect("inputs");
        let kernel = module.kernel(&bound.kernel).expect("a kernel");
        if let Some(why) = excuse(&name, kernel, &bound.args) {
            counts.skips.push(format!("{here}: {why}"));
            continue;
        }
        let given = params(&module, kernel, &bound.args);
        let found = match written::run(
            driver,
            &module,
            &bound.kernel,
            &bound.dispatch,
            &given,
            true,
        ) {
            Ok(found) => found,
            Err(why) => {
                counts.skips.push(format!("{here}: {why}"));
                continue;
            }
        };
        let cpu = on_cpu(&module, &bound).expect("the CPU device runs it");
        let outputs = kernel.params.iter().enumerate();
        let mut outputs = outputs.filter(|(_, p)| writes(&p.kind)).map(|(i, _)| i);
        if outputs.all(|i| cpu[i] == found[i]) {
            counts.equal += 1;
            continue;
        }
        let (after, reference) = (left(&bound.args, &found), left(&bound.args, &cpu));
        let wrong = mismatches(&module, &case, &after, &reference, &mut no_files);
        counts.close += usize::from(wrong.is_empty());
        let wrong = wrong.iter().map(|error| format!("{here}: {error}"));
        counts.failures.extend(wrong);
    }
}

#[test]
#[expect(
    clippy::print_stdout,
    reason = "a test says how much it ran and what it skipped"
)]
fn the_wgsl_of_textures_computes_what_the_cpu_does() {
    let driver = match Driver::open() {
        Ok(driver) => driver,
        Err(why) => {
            println!("skipped: {why} (mesa-vulkan-drivers brings a driver)");
            return;
        }
    };
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let mut all: Vec<PathBuf> = files(&tests.join("ir/textures")).expect("a folder");
    all.push(tests.join("wgsl/textures.wgsl"));
    let mut counts = Counts::default();
    for path in all {
        run_file(&driver, &path, &mut counts);
    }
    println!(
        "{} runs with equal bytes, {} as expected, {} skipped",
        counts.equal,
        counts.close,
        counts.skips.len()
    );
    for skip in &counts.skips {
        println!("skipped {skip}");
    }
    assert!(counts.failures.is_empty(), "{}", counts.failures.join("\n"));
    assert!(counts.equal >= 20, "only {} runs", counts.equal);
}

/// What is proved of a kernel of which nothing is allowed beyond, if its accesses are in bounds.
fn proved(module: &Verified, name: &str) -> Option<Report> {
    let mut strict = module.clone().into_module();
    for kernel in &mut strict.kernels {
        kernel.allow_out_of_bounds_loads = false;
        kernel.allow_out_of_bounds_stores = false;
    }
    let options = invar_prove::Options {
        refute: false,
        problems: 200,
        ..invar_prove::Options::default()
    };
    let report = prove(&verify(strict).expect("valid"), name, &[], options).expect("a kernel");
    (report.verdict == Verdict::Proved).then_some(report)
}

/// Runs the WGSL of a kernel with guards or without, as its host may by what is proved; whether it has none.
fn run_proved(
    driver: &Driver,
    module: &Verified,
    bound: &Bound,
    report: &Report,
) -> Result<(bool, Vec<Vec<u8>>), String> {
    let kernel = module.kernel(&bound.kernel).expect("a kernel");
    let guards = !report.covers(&launch::bound(module, kernel, bound));
    let given = params(module, kernel, &bound.args);
    let (name, dispatch) = (&bound.kernel, &bound.dispatch);
    let text = |guards| written::source(module, name, dispatch, &given, guards).map(|s| s.text);
    let has_less = !guards && text(false)?.len() < text(true)?.len();
    let found = written::run(driver, module, name, dispatch, &given, guards)?;
    Ok((has_less, found))
}

#[test]
#[expect(clippy::print_stdout, reason = "a test says what it skipped")]
fn launches_that_a_proof_is_not_of_run_the_wgsl_with_guards() {
    let driver = match Driver::open() {
        Ok(driver) => driver,
        Err(why) => {
            println!("skipped: {why} (mesa-vulkan-drivers brings a driver)");
            return;
        }
    };
    let source = "kernel @turn(%x: device read u32, %y: device read_write u32, %n: u32) {
        %i = thread_position_in_grid x
        %one = const u32 1
        %last = sub %n, %one
        %j = sub %last, %i
        %v = load %x[%j]
        %w = load %y[%i]
        %sum = add %v, %w
        store %y[%i], %sum
    }
    ; run: @turn(x = iota(64), y = fill(64, 5), n = 64) grid(64) threadgroup(16)
    ; run: @turn(x = iota(64), y = fill(70, 5), n = 50) grid(50) threadgroup(16)
    ; run: @turn(x = iota(60), y = fill(64, 5), n = 64) grid(64) threadgroup(16)
    ; run: @turn(x = iota(64), y = fill(63, 5), n = 64) grid(64) threadgroup(16)
    ; run: @turn(x = iota(64), y = fill(64, 5), n = 40) grid(64) threadgroup(16)
    ";
    let module = verify(parse("turn.inv", source).expect("kernels")).expect("valid");
    let report = proved(&module, "turn").expect("it is proved");
    let mut ran = Vec::new();
    for case in cases(source).expect("directives") {
        let mut no_files = |name: &str, _: &_| Err(format!("there is no file `{name}`"));
        let bound = bind(&module, &case, &Options::default(), &mut no_files).expect("inputs");
        let (has_less, found) = run_proved(&driver, &module, &bound, &report).expect("it runs");
        let cpu = on_cpu(&module, &bound).expect("the CPU device runs it");
        assert_eq!(found[1], cpu[1], "{:?}", report.texts);
        ran.push(has_less);
    }
    assert_eq!(ran, [true, true, false, false, false], "{:?}", report.texts);
}
