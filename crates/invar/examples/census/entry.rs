//! What becomes of the entry points of one file.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use invar::wgsl::{Kernels, Resource, Shader};
use invar::{Arg, ByteBuffer, CompileOptions, Device, Dispatch, Error, Grid, Sampler, Texture};
use invar_interp::{self as interp, CheckOptions, Options, Schedules};
use invar_ir::{Const, ConstantKey, Diagnostics, Kernel, Rule, Scalar, Verified, verify};

use crate::direct::{Bound, Driver, Held};
use crate::inputs::{Input, Kind, Likeness, compare, inputs};
use crate::written::{self, Param};

/// Threadgroups of every dispatch.
const GROUPS: [u32; 3] = [2, 1, 1];

/// What is done beside translating.
#[derive(Clone, Copy, Default)]
pub struct Stages {
    pub check: bool,
    pub run: bool,
}

/// A stage, what became of an entry point there, and why.
type Outcome = (&'static str, String, String);

fn first(Diagnostics(all): &Diagnostics) -> String {
    all.first().map(|d| d.to_string()).unwrap_or_default()
}

/// Gives lines as they come: the file, the entry point, the stage, what became of it there, and why.
pub fn census(file: &str, stages: Stages, tell: &mut dyn FnMut(String)) {
    let line = |entry: &str, (stage, outcome, why): Outcome| {
        let why = why.replace(['\n', '\t'], " ");
        format!("{file}\t{entry}\t{stage}\t{outcome}\t{why}")
    };
    let whole = |outcome: &str, why| line("*", ("0 read", outcome.to_string(), why));
    let text = match std::fs::read(file) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => return tell(whole("cannot be read", error.to_string())),
    };
    let shader = match Shader::parse(file, &text) {
        Ok(shader) => shader,
        Err(errors) => return tell(whole("not accepted by naga", first(&errors))),
    };
    let lints = shader.lints();
    if let Some(first) = lints.first() {
        let mut rules: Vec<&str> = lints.iter().map(|d| d.rule.name()).collect();
        rules.sort_unstable();
        rules.dedup();
        let line_number = first.span().start.line;
        let why = format!("line {line_number}: {first}");
        tell(line("*", ("0 lints", rules.join(", "), why)));
    }
    let names: Vec<String> = shader.entries().map(str::to_string).collect();
    if names.is_empty() {
        return tell(whole("no compute entry point", String::new()));
    }
    for name in names {
        of_entry(&shader, &text, &name, stages, &mut |outcome| {
            tell(line(&name, outcome));
        });
    }
}

/// Kernels, with a value for each override that needs one.
fn translate(shader: &Shader, name: &str) -> Result<(Kernels, Vec<(String, f64)>), String> {
    let mut given: Vec<(String, f64)> = Vec::new();
    loop {
        let errors = match shader.kernels(Some(name), &given) {
            Ok(kernels) => return Ok((kernels, given)),
            Err(errors) => first(&errors),
        };
        let missing = errors
            .split("override `")
            .nth(1)
            .filter(|_| errors.contains("needs a value"))
            .and_then(|rest| rest.split('`').next())
            .map(str::to_string);
        match missing {
            Some(missing) if !given.iter().any(|(n, _)| *n == missing) => {
                given.push((missing, 32.0));
            }
            _another => return Err(errors),
        }
    }
}

fn of_entry(
    shader: &Shader,
    text: &str,
    name: &str,
    stages: Stages,
    tell: &mut dyn FnMut(Outcome),
) {
    let one = |outcome: &str, why| ("1 translated", outcome.to_string(), why);
    let (kernels, mut given) = match translate(shader, name) {
        Ok(translated) => translated,
        Err(why) => return tell(one("not supported", why)),
    };
    let module = match verify(kernels.module.clone()) {
        Ok(module) => module,
        Err(errors) => return tell(one("not verified", first(&errors))),
    };
    let Some(kernel) = module.kernels.first() else {
        return tell(one("not supported", "there is no kernel".to_string()));
    };
    let mut count = 0;
    kernel.for_each_inst(&mut |_| count += 1);
    tell(one("verified", format!("{count} instructions")));
    if !stages.check && !stages.run {
        return;
    }
    let resources: Vec<Resource> = kernels
        .entries
        .iter()
        .flat_map(|e| e.resources.clone())
        .collect();
    let inputs = match inputs(&module, kernel, &resources) {
        Ok(inputs) => inputs,
        Err(why) => return tell(("2 checked", "not run".to_string(), why)),
    };
    // A function constant without a value is 1.
    let open = module
        .function_constants
        .iter()
        .filter(|c| c.default.is_none());
    let constants: Vec<(ConstantKey, Const)> = open
        .map(|c| {
            given.push((c.name.to_string(), 1.0));
            let bits = match c.scalar {
                Scalar::F32 => u64::from(1.0_f32.to_bits()),
                Scalar::F64 => 1.0_f64.to_bits(),
                Scalar::F16 => 0x3c00,
                _integer => 1,
            };
            let scalar = c.scalar;
            (ConstantKey::Name(c.name.clone()), Const { scalar, bits })
        })
        .collect();
    let run = Run {
        module: &module,
        kernel,
        inputs: &inputs,
        constants: &constants,
        dispatch: Dispatch {
            grid: Grid::Threadgroups(GROUPS),
            threadgroup: kernel.threadgroup_size.unwrap_or([1; 3]),
        },
    };
    let checked = run.checked();
    tell(checked.outcome);
    if !stages.run {
        return;
    }
    let wanted = |known: bool| checked.results.as_deref().filter(|_| known);
    for (stage, device) in [("3 cpu", "cpu"), ("4 gpu", "gpu")] {
        let found = run.on(device);
        let too_long = matches!(&found, Err(("out of time", _)));
        tell(run.compared(stage, found, wanted(checked.known)));
        if too_long {
            // Nothing stops a GPU.
            return;
        }
    }
    let direct = run.without_us(text, &given, &resources);
    let stage = "5 gpu without Invar";
    tell(run.compared(stage, direct, wanted(checked.known_to_all)));
    let is_texture = |i: &Input| matches!(i.kind, Kind::Texture(..));
    if inputs.iter().any(is_texture) {
        // Invar's own GPU device makes buffers of textures; what it writes for others does not.
        let stage = "6 gpu by the WGSL of Invar";
        tell(run.compared(stage, run.as_wgsl(), wanted(checked.known)));
    }
}

/// One dispatch.
struct Run<'a> {
    module: &'a Verified,
    kernel: &'a Kernel,
    inputs: &'a [Input],
    constants: &'a [(ConstantKey, Const)],
    dispatch: Dispatch,
}

/// What is made of an input on a device.
enum Made {
    Buffer(ByteBuffer),
    Texture(Texture),
    Sampler(Sampler),
}

/// What every parameter holds behind a dispatch; or why it was refused or ended early.
type Results = Result<Vec<Vec<u8>>, (&'static str, String)>;

/// What the checkers say of a dispatch.
struct Checked {
    outcome: Outcome,
    /// What every parameter holds behind it.
    results: Option<Vec<Vec<u8>>>,
    /// Every device of Invar must have these results.
    known: bool,
    /// So must others, by the standard.
    known_to_all: bool,
}

impl Run<'_> {
    fn checked(&self) -> Checked {
        let inputs = self.inputs.iter();
        let args: Vec<interp::Arg<'static>> = inputs
            .map(|input| {
                let memory = interp::Arg::OwnedBuffer(input.bytes.clone());
                match &input.kind {
                    Kind::Buffer(_) => memory,
                    Kind::Texture(_, shape) => interp::Arg::Texture(*shape, Box::new(memory)),
                    Kind::Sampler(sampler) => {
                        interp::Arg::Scalar(sampler.code().map(Const::from).to_vec())
                    }
                }
            })
            .collect();
        let options = |seed| CheckOptions {
            run: Options {
                seed,
                // Other orders of threads, which those of one simdgroup also have.
                simdgroup_size: (seed > 0).then_some(4),
                constants: self.constants.to_vec(),
                step_limit: 20_000_000,
                time_limit: Some(Duration::from_secs(20)),
                ..Options::default()
            },
            seeds: Some(1),
            ..CheckOptions::default()
        };
        let (module, name) = (self.module, &self.kernel.name);
        let check = |seed| interp::check(module, name, &self.dispatch, &args, &options(seed));
        let report = match check(0) {
            Err(errors) => {
                return Checked {
                    outcome: ("2 checked", "not run".to_string(), first(&errors)),
                    results: None,
                    known: false,
                    known_to_all: false,
                };
            }
            Ok(report) => report,
        };
        let mut rules: Vec<Rule> = report.diagnostics.iter().map(|d| d.rule).collect();
        rules.sort_unstable();
        rules.dedup();
        let names: Vec<&str> = rules.iter().map(|rule| rule.name()).collect();
        let outcome = match &names[..] {
            [] => "clean".to_string(),
            names => names.join(", "),
        };
        let why = report.diagnostics.first().map(|d| d.to_string());
        // Simdgroups have another size on each device, and atomics may tell of the order of threads.
        let text = module.to_string();
        let in_any_order = || {
            let orders = !text.contains("atomic");
            orders || (1..3).all(|s| check(s).is_ok_and(|other| other.outputs == report.outputs))
        };
        let same = !text.contains("simd")
            && !text.contains("quad_")
            && matches!(report.schedules, Schedules::All)
            && in_any_order();
        // Equal stores leave no doubt; what is out of bounds is 0 here, and anything elsewhere.
        let only = |allowed: &[Rule]| same && rules.iter().all(|rule| allowed.contains(rule));
        Checked {
            outcome: ("2 checked", outcome, why.unwrap_or_default()),
            results: Some(report.outputs),
            known: only(&[Rule::EqualStores, Rule::OutOfBounds]),
            known_to_all: only(&[Rule::EqualStores]),
        }
    }

    fn on(&self, name: &str) -> Results {
        self.try_on(name).map_err(|error| match error.rule() {
            Some(rule) if rule.name() == "deadline-exceeded" => ("out of time", error.to_string()),
            _another => ("refused", error.to_string()),
        })
    }

    fn try_on(&self, name: &str) -> Result<Vec<Vec<u8>>, Error> {
        let device = Device::named(name)?;
        let options = CompileOptions {
            constants: self.constants.to_vec(),
            time_limit: Some(Duration::from_secs(60)),
            ..CompileOptions::default()
        };
        let program = device.compile_with(self.module, &self.kernel.name, &options)?;
        let mut made = Vec::new();
        for input in self.inputs {
            made.push(match &input.kind {
                Kind::Buffer(_) => {
                    let buffer = ByteBuffer::zeroed(&device, input.bytes.len())?;
                    buffer.write_bytes(0, &input.bytes)?;
                    Made::Buffer(buffer)
                }
                Kind::Texture(_, shape) => {
                    let texture = Texture::of_shape(&device, *shape)?;
                    texture.write(&input.bytes)?;
                    Made::Texture(texture)
                }
                Kind::Sampler(sampler) => Made::Sampler(*sampler),
            });
        }
        fn arg(made: &Made) -> Arg<'_> {
            match made {
                Made::Buffer(buffer) => Arg::from(buffer),
                Made::Texture(texture) => Arg::from(texture),
                Made::Sampler(sampler) => Arg::from(*sampler),
            }
        }
        let args: Vec<Arg<'_>> = made.iter().map(arg).collect();
        let queue = device
            .queue()
            .with_time_limit(Some(Duration::from_secs(20)));
        queue.run(&program, self.dispatch, &args)?;
        let mut results = Vec::new();
        for (made, input) in made.iter().zip(self.inputs) {
            results.push(match made {
                Made::Buffer(buffer) => {
                    let mut bytes = vec![0; input.bytes.len()];
                    buffer.read_bytes(0, &mut bytes)?;
                    bytes
                }
                Made::Texture(texture) => texture.read()?,
                Made::Sampler(_) => Vec::new(),
            });
        }
        Ok(results)
    }

    /// Through wgpu, by the WGSL that Invar writes of the kernel.
    fn as_wgsl(&self) -> Results {
        let refused = |why: String| ("refused", why);
        let params: Vec<Param> = self
            .inputs
            .iter()
            .map(|input| {
                let size = input.element().extent(&self.module.structs);
                let size = size.map_or(1, |e| e.size_bytes.max(1)) as usize;
                Param::Held(input.held(), (input.bytes.len() / size) as u64)
            })
            .collect();
        let module = self.module.clone().specialise(self.constants);
        let module = module.map_err(|errors| refused(first(&errors)))?;
        let driver = Driver::open().map_err(refused)?;
        let (name, dispatch) = (&self.kernel.name, &self.dispatch);
        let run =
            AssertUnwindSafe(|| written::run(&driver, &module, name, dispatch, &params, true));
        catch_unwind(run)
            .unwrap_or_else(|_| Err("wgpu panicked".to_string()))
            .map_err(refused)
    }

    /// Through wgpu, by the shader's own text.
    fn without_us(
        &self,
        text: &str,
        overrides: &[(String, f64)],
        resources: &[Resource],
    ) -> Results {
        let number = |name: &String| {
            let mut params = self.kernel.params.iter();
            params.position(|p| *p.name == **name)
        };
        let mut variables = Vec::new();
        let mut parts = Vec::new();
        for resource in resources {
            let (Some(group), Some(binding)) = (resource.group, resource.binding) else {
                return Err(("refused", format!("`{}` has no binding", resource.name)));
            };
            let numbers: Vec<usize> = resource.params.iter().filter_map(number).collect();
            let inputs = numbers.iter().map(|n| &self.inputs[*n]);
            let all: Vec<&Input> = inputs.collect();
            let held = match &all[..] {
                [one] => one.held(),
                several => Held::Buffer {
                    bytes: several.iter().flat_map(|i| i.bytes.clone()).collect(),
                    uniform: several.iter().any(|i| i.uniform),
                },
            };
            variables.push(Bound {
                group,
                binding,
                held,
            });
            parts.push(numbers);
        }
        let driver = Driver::open().map_err(|why| ("refused", why))?;
        let entry = &self.kernel.name;
        // wgpu may panic on what its validation lets through; that is not a crash of ours.
        let run = AssertUnwindSafe(|| driver.run(text, entry, overrides, GROUPS, &variables));
        let found = catch_unwind(run)
            .unwrap_or_else(|_| Err("wgpu panicked".to_string()))
            .map_err(|why| ("refused", why))?;
        let mut results = vec![Vec::new(); self.inputs.len()];
        for (numbers, bytes) in parts.iter().zip(&found) {
            let mut at = 0;
            for number in numbers {
                let end = (at + self.inputs[*number].bytes.len()).min(bytes.len());
                results[*number] = bytes[at..end].to_vec();
                at = end;
            }
        }
        Ok(results)
    }

    fn compared(&self, stage: &'static str, found: Results, wanted: Option<&[Vec<u8>]>) -> Outcome {
        match (found, wanted) {
            (Err((outcome, why)), _) => (stage, outcome.to_string(), why),
            (Ok(_), None) => (stage, "ran".to_string(), String::new()),
            (Ok(found), Some(wanted)) => {
                let (likeness, place) =
                    compare(self.module, self.kernel, self.inputs, wanted, &found);
                let place = if likeness == Likeness::Different {
                    place
                } else {
                    String::new()
                };
                (stage, likeness.name().to_string(), place)
            }
        }
    }
}
