//! Compile time over the size of a kernel: odd kernels (`odd.rs`) of 10 to 100,000 instructions through each
//! target, with how it grows.
//!
//! Of each kind and target a line: the time of each size, and how many times more an instruction of the largest
//! takes than one of 1,000. A kind passes if that is at most [`MOST_GROWTH`]: tables that outgrow the caches
//! explain two or three, and what is quadratic comes to a hundred. Larger sizes of what has failed are not tried.
//!
//! Of shaders the first target is mostly naga, which reads and checks their text, and whose tables of types grow
//! with the square of a function's length: it is measured alone, the line says its share, and what is judged is
//! the rest. Of Metal sources, whose target is `metal`, the same holds of clang, which is a process of its own.
//! Where there is no clang they are left out, and a line says so.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a table on standard output is what this program is for"
)]

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use invar_codegen::msl::{MslOptions, write as write_msl};
use invar_codegen::passes::textures::{self, Form};
use invar_codegen::wgsl::{Features, WgslOptions, write as write_wgsl};
use invar_interp::{Arg, CheckOptions, Dispatch, Grid, check};
use invar_ir::binary::{decode, encode};
use invar_ir::{Const, Diagnostics, Module, ParamKind, Rule, Type, Verified, text, verify};
use invar_llvm::{CompileOptions, compile, compile_cold_paths};
use invar_msl::{Library, find_clang};
use invar_texture::{PixelFormat, TextureShape};
use naga::valid::{Capabilities, ValidationFlags, Validator};
use rustix::time::ClockId;

mod odd;
mod odd_metal;

use odd::{Kind, Language, MOST};

const USAGE: &str = "usage: [--only KIND] [--target verify|metal|checked|cpu|edges|msl|wgsl] [--most SIZE] \
                     [--print]; the last prints the kernels and measures nothing";
/// How much longer an instruction of a large kernel may take than one of a kernel of [`BASE`].
const MOST_GROWTH: f64 = 3.0;
/// Sizes tried; the last is [`MOST`] or what the kind allows.
const SIZES: [usize; 5] = [10, BASE, 10_000, 30_000, MOST];
const BASE: usize = 1_000;
/// What takes less than this many milliseconds says nothing of growth.
const NOTHING: f64 = 1.0;
/// How often each size is measured, of which the least counts, as long as all of it takes less than this many
/// milliseconds.
const ROUNDS: usize = 5;
const SHORT: f64 = 300.0;
/// Threads of the threadgroup that kernels are compiled for.
const THREADS: u32 = 64;
/// Bytes of each buffer that the reference machine is given.
const BUFFER_BYTES: usize = 1 << 10;
/// Of each texture.
const FORMAT: PixelFormat = PixelFormat::Rgba8Unorm;

/// What is done with a kernel.
struct Target {
    name: &'static str,
    run: fn(&Source) -> Result<Done, Diagnostics>,
}

/// A kernel as text and verified.
struct Source {
    text: String,
    language: Language,
    module: Verified,
}

impl Source {
    fn read(text: &str, language: Language) -> Result<Module, Diagnostics> {
        match language {
            Language::Text => text::parse("odd.inv", text),
            Language::Wgsl => invar::wgsl::read("odd.wgsl", text),
            Language::Metal => {
                let library = Library {
                    name: "odd.metal".to_string(),
                    text: text.to_string(),
                    ..Library::default()
                };
                let made = library.kernels(None)?;
                match made.refused.into_iter().next() {
                    Some((_, errors)) => Err(errors),
                    None => Ok(made.module),
                }
            }
        }
    }

    /// With textures written out for [`FORMAT`].
    fn for_formats(&self) -> Result<Verified, Diagnostics> {
        let kernels = &self.module.kernels;
        let index = kernels.iter().position(|k| &*k.name == "k");
        let index = index.expect("each kind has it");
        let form = Form::Texture {
            format: FORMAT,
            levels: 1,
            samples: 1,
        };
        let form = |kind: &ParamKind| matches!(kind, ParamKind::Texture(_)).then_some(form);
        let params = kernels[index].params.iter();
        let forms: Vec<_> = params.map(|param| form(&param.kind)).collect();
        verify(textures::expand(
            Module::clone(&self.module),
            index,
            &forms,
        )?)
    }
}

/// How a target took it.
enum Done {
    /// In so much time.
    In(Spent),
    /// There is nothing to do.
    Nothing,
}

/// Milliseconds.
#[derive(Clone, Copy)]
struct Spent {
    all: f64,
    /// Of them naga's or clang's.
    others: f64,
}

impl Spent {
    fn ours(self) -> f64 {
        f64::max(self.all - self.others, 0.0)
    }
}

const TARGETS: [Target; 7] = [
    Target {
        name: "verify",
        run: front,
    },
    Target {
        name: "metal",
        run: metal,
    },
    Target {
        name: "checked",
        run: checked,
    },
    Target {
        name: "cpu",
        run: cpu,
    },
    Target {
        name: "edges",
        run: edges,
    },
    Target {
        name: "msl",
        run: msl,
    },
    Target {
        name: "wgsl",
        run: wgsl,
    },
];

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(sentence) => {
            eprintln!("compile time: {sentence}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<bool, String> {
    let (mut only, mut target, mut most) = (None, None, MOST);
    let mut args = std::env::args().skip(1);
    let mut print = false;
    while let Some(arg) = args.next() {
        if arg == "--print" {
            print = true;
            continue;
        }
        let value = args.next().ok_or(USAGE)?;
        match arg.as_str() {
            "--only" => only = Some(value),
            "--target" => target = Some(value),
            "--most" => most = value.parse().map_err(|_| USAGE)?,
            _unknown => return Err(USAGE.to_string()),
        }
    }
    let all = || odd::KINDS.iter().chain(odd_metal::KINDS);
    let mut kinds: Vec<&Kind> = all()
        .filter(|kind| only.as_ref().is_none_or(|only| kind.name == only))
        .collect();
    let targets: Vec<&Target> = TARGETS
        .iter()
        .filter(|t| target.as_ref().is_none_or(|target| t.name == target))
        .collect();
    if kinds.is_empty() {
        let names: Vec<&str> = all().map(|kind| kind.name).collect();
        return Err(format!("no kind has that name: {}", names.join(", ")));
    }
    if targets.is_empty() {
        return Err(USAGE.to_string());
    }
    if print {
        for kind in kinds {
            println!("{}", kind.text(most.min(kind.most)));
        }
        return Ok(true);
    }
    if let Err(why) = find_clang() {
        let before = kinds.len();
        kinds.retain(|kind| kind.language != Language::Metal);
        match before - kinds.len() {
            0 => {}
            left_out => println!("{left_out} kinds left out: {why}"),
        }
    }
    let names: Vec<String> = SIZES.iter().map(|size| format!("{size:>10}")).collect();
    println!("{:36} {:8}{}   growth", "ms of", "for", names.concat());
    let mut failed = 0;
    for kind in kinds {
        let mut sources = BTreeMap::new();
        let own = targets.iter().filter(|target| match target.name {
            "verify" => kind.language != Language::Metal,
            "metal" => kind.language == Language::Metal,
            _back_end => true,
        });
        for target in own {
            failed += usize::from(!line(kind, target, most, &mut sources)?);
        }
    }
    println!(
        "\n{failed} of them take more than {MOST_GROWTH} times as long for each instruction of the largest as of \
         {BASE}"
    );
    Ok(failed == 0)
}

/// Measures a kind for a target, and prints it; whether it grows as it should. `sources` are those of the kind that
/// were read, by their sizes.
fn line(
    kind: &Kind,
    target: &Target,
    most: usize,
    sources: &mut BTreeMap<usize, Result<Source, Diagnostics>>,
) -> Result<bool, String> {
    print!("{:36} {:8}", kind.name, target.name);
    let mut base = None;
    let mut growth = None;
    let mut says = String::new();
    let mut last = 0;
    for size in SIZES {
        let size = size.min(kind.most);
        let seen = size <= std::mem::replace(&mut last, size);
        if size > most || seen {
            print!("{:>10}", "");
            continue;
        }
        let source = sources.entry(size).or_insert_with(|| source(kind, size));
        let time = match source
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|s| time(target, s))
        {
            Ok(time) => time,
            Err(Diagnostics(errors)) => {
                let refused = errors.first().filter(|e| limits(e.rule));
                let why = errors.first().map_or("", |e| &e.message);
                let refused = refused.ok_or_else(|| format!("{}, {size}: {why}", kind.name))?;
                says = format!("refused: {}", refused.message);
                break;
            }
        };
        let Some(time) = time else {
            break;
        };
        print!("{:>10.2}", time.all);
        if time.others > 0.0 {
            let reader = match kind.language {
                Language::Metal => "clang",
                Language::Wgsl | Language::Text => "naga",
            };
            says = format!(
                "{reader}: {:.0} % of the last",
                100.0 * time.others / time.all
            );
        }
        let time = time.ours();
        std::io::stdout().flush().map_err(|e| e.to_string())?;
        match base {
            Some((base, of_base)) if time > NOTHING => {
                let times = time / f64::max(of_base, NOTHING / 10.0);
                let each = times * base as f64 / size as f64;
                growth = Some(each);
                if each > MOST_GROWTH {
                    break;
                }
            }
            Some(_) => {}
            None if size >= BASE.min(kind.most) => base = Some((size, time)),
            None => {}
        }
    }
    let fine = growth.is_none_or(|growth| growth <= MOST_GROWTH);
    let mark = if fine { "" } else { "  too much" };
    let growth = growth.map_or(String::new(), |growth| format!("{growth:8.2}"));
    println!("{growth}{mark} {says}");
    Ok(fine)
}

/// Whether a target that says this has no words for a kernel, or states a limit.
fn limits(rule: Rule) -> bool {
    matches!(
        rule,
        Rule::LimitExceeded | Rule::UnsupportedFeature | Rule::UnsupportedMemoryOrder
    )
}

fn source(kind: &Kind, size: usize) -> Result<Source, Diagnostics> {
    let text = kind.text(size);
    let language = kind.language;
    let module = verify(Source::read(&text, language)?)?;
    Ok(Source {
        text,
        language,
        module,
    })
}

/// The least time of a few; none where there is nothing to do.
fn time(target: &Target, source: &Source) -> Result<Option<Spent>, Diagnostics> {
    let mut least: Option<Spent> = None;
    let mut all = 0.0;
    for _ in 0..ROUNDS {
        let Done::In(time) = (target.run)(source)? else {
            return Ok(None);
        };
        least = Some(least.map_or(time, |least| Spent {
            all: least.all.min(time.all),
            others: least.others.min(time.others),
        }));
        all += time.all;
        if all > SHORT {
            break;
        }
    }
    Ok(least)
}

/// How long this thread has had a processor, in milliseconds.
fn processor_time() -> f64 {
    milliseconds(ClockId::ThreadCPUTime)
}

fn milliseconds(clock: ClockId) -> f64 {
    let now = rustix::time::clock_gettime(clock);
    now.tv_sec as f64 * 1e3 + now.tv_nsec as f64 / 1e6
}

fn timed<T>(what: impl FnOnce() -> Result<T, Diagnostics>) -> Result<(T, Done), Diagnostics> {
    let start = processor_time();
    let made = what()?;
    let all = processor_time() - start;
    Ok((made, Done::In(Spent { all, others: 0.0 })))
}

// ---- targets ----

/// What every front end does: from the text to a verified module, and there and back through both forms.
fn front(source: &Source) -> Result<Done, Diagnostics> {
    let (same, done) = timed(|| {
        let module = verify(Source::read(&source.text, source.language)?)?;
        let printed = module.to_string();
        let decoded = decode(&encode(&module));
        Ok(!printed.is_empty() && decoded.is_ok())
    })?;
    assert!(same, "what was encoded is decoded");
    match done {
        Done::In(Spent { all, .. }) if source.language == Language::Wgsl => Ok(Done::In(Spent {
            all,
            others: naga_time(&source.text),
        })),
        done => Ok(done),
    }
}

/// From a Metal source to a verified module. What is not spent in this process, by all of its threads, is clang's.
fn metal(source: &Source) -> Result<Done, Diagnostics> {
    let start = [ClockId::Monotonic, ClockId::ProcessCPUTime].map(milliseconds);
    verify(Source::read(&source.text, source.language)?)?;
    let [all, ours] = [
        milliseconds(ClockId::Monotonic) - start[0],
        milliseconds(ClockId::ProcessCPUTime) - start[1],
    ];
    Ok(Done::In(Spent {
        all,
        others: f64::max(all - ours, 0.0),
    }))
}

/// How long naga takes to read and check a shader.
fn naga_time(text: &str) -> f64 {
    let start = processor_time();
    let module = naga::front::wgsl::parse_str(text).expect("it was read before");
    let flags = ValidationFlags::all() - ValidationFlags::CONTROL_FLOW_UNIFORMITY;
    let checked = Validator::new(flags, Capabilities::all()).validate(&module);
    let time = processor_time() - start;
    assert!(checked.is_ok(), "it was checked before");
    time
}

/// What the reference machine makes of a kernel before it runs: a dispatch of no threads.
fn checked(source: &Source) -> Result<Done, Diagnostics> {
    let kernel = source.module.kernel("k").expect("each kind has it");
    let args: Vec<Arg<'_>> = kernel
        .params
        .iter()
        .map(|param| match &param.kind {
            ParamKind::Buffer { .. } | ParamKind::Constant { .. } => Arg::zeros(BUFFER_BYTES),
            ParamKind::Scalar { value } => match kernel.ty(*value) {
                Type::Scalar(scalar) => Arg::Scalar(vec![Const { scalar, bits: 0 }]),
                other => unreachable!("no kind has a parameter of type {other:?}"),
            },
            ParamKind::Threadgroup { .. } => Arg::ThreadgroupLength(u64::from(THREADS)),
            ParamKind::Texture(_) => {
                let shape = TextureShape::new(FORMAT, 4, 4).expect("a texture");
                let bytes = Arg::zeros(shape.size_bytes() as usize);
                Arg::Texture(shape, Box::new(bytes))
            }
            ParamKind::Sampler => unreachable!("no kind has a sampler"),
        })
        .collect();
    let dispatch = Dispatch {
        grid: Grid::Threads([0, 1, 1]),
        threadgroup: [THREADS, 1, 1],
    };
    let mut options = CheckOptions::default();
    options.run.threadgroup_memory_bytes = 1 << 20;
    let (_, done) = timed(|| check(&source.module, "k", &dispatch, &args, &options))?;
    Ok(done)
}

fn for_threadgroups() -> CompileOptions {
    CompileOptions {
        threadgroup_size: Some([THREADS, 1, 1]),
        ..CompileOptions::default()
    }
}

/// What the CPU device compiles first.
fn cpu(source: &Source) -> Result<Done, Diagnostics> {
    let (_, done) = timed(|| compile(&source.for_formats()?, "k", &for_threadgroups()))?;
    Ok(done)
}

/// What it compiles when the first chunk of threads comes that is not full.
fn edges(source: &Source) -> Result<Done, Diagnostics> {
    let object = compile(&source.for_formats()?, "k", &for_threadgroups())?;
    let Some(cold_paths) = &object.cold_paths else {
        return Ok(Done::Nothing);
    };
    let (compiled, done) = timed(|| Ok(compile_cold_paths(cold_paths, object.info.target)))?;
    assert_eq!(compiled.err(), None, "what was set apart compiles");
    Ok(done)
}

fn msl(source: &Source) -> Result<Done, Diagnostics> {
    let (_, done) = timed(|| write_msl(&source.module, "k", &MslOptions::default()))?;
    Ok(done)
}

fn wgsl(source: &Source) -> Result<Done, Diagnostics> {
    let features = Features {
        int64: true,
        f16: true,
        ..Features::default()
    };
    let options = WgslOptions::new(features, [THREADS, 1, 1]);
    let (_, done) = timed(|| write_wgsl(&source.for_formats()?, "k", &options))?;
    Ok(done)
}
