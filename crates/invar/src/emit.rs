//! Kernels as the code of a target: shading languages, and what the CPU device makes of them.
//!
//! What is emitted depends on the kernel and the options alone, but for the processor `native`.

use invar_codegen::{msl, one_line, wgsl};
use invar_interp::{Dispatch, Grid, Options as Limits, check_grid};
use invar_ir::{
    Const, ConstantKey, Diagnostics, InstKind, Kernel, Module, ParamKind, Rule, Verified, verify,
};

use crate::{Error, PixelFormat};

/// What a kernel can be emitted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Metal's shading language.
    Msl,
    /// WebGPU's shading language.
    Wgsl,
    /// LLVM's intermediate form, for the CPU device.
    Llvm,
    /// Assembly, for the CPU device.
    Asm,
}

impl Target {
    /// Every target.
    pub const ALL: [Target; 4] = [Target::Msl, Target::Wgsl, Target::Llvm, Target::Asm];

    /// Its name at the command line and in Python.
    pub const fn name(self) -> &'static str {
        match self {
            Target::Msl => "msl",
            Target::Wgsl => "wgsl",
            Target::Llvm => "llvm",
            Target::Asm => "asm",
        }
    }
}

/// How async copies are made in MSL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AsyncCopies {
    /// By the lanes of the simdgroup, on every GPU.
    #[default]
    Expanded,
    /// By the copy engine of Apple's GPUs of family 9 and newer, whose functions are not documented.
    Engine,
}

impl AsyncCopies {
    /// Every way.
    pub const ALL: [AsyncCopies; 2] = [AsyncCopies::Expanded, AsyncCopies::Engine];

    /// Its name at the command line and in Python.
    pub const fn name(self) -> &'static str {
        match self {
            AsyncCopies::Expanded => "expanded",
            AsyncCopies::Engine => "engine",
        }
    }
}

/// What simdgroup matrices are in WGSL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Matrices {
    /// Arrays in plain code, on every GPU.
    #[default]
    Expanded,
    /// Cooperative matrices, on GPUs that have those of 8 rows and columns.
    Cooperative,
}

impl Matrices {
    /// Both.
    pub const ALL: [Matrices; 2] = [Matrices::Expanded, Matrices::Cooperative];

    /// The name at the command line and in Python.
    pub const fn name(self) -> &'static str {
        match self {
            Matrices::Expanded => "expanded",
            Matrices::Cooperative => "cooperative",
        }
    }
}

/// What the code of a target depends on beside the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Threads of a threadgroup along x, y and z, where the kernel does not say; WGSL needs them.
    pub threadgroup_size: Option<[u32; 3]>,
    /// Values of function constants; in MSL, which has function constants of its own, they stay open
    /// if there is none.
    pub constants: Vec<(ConstantKey, Const)>,
    /// The processor that [`Target::Llvm`] and [`Target::Asm`] are for: `native`, which is also meant
    /// if there is none, `x86-64`, `x86-64-v3`, `x86-64-v4` or `aarch64`.
    pub processor: Option<String>,
    /// How async copies are made: anything but the default is for [`Target::Msl`].
    pub async_copies: AsyncCopies,
    /// What simdgroup matrices are: anything but the default is for [`Target::Wgsl`].
    pub matrices: Matrices,
    /// The pixel formats of textures that are written, by the names of their parameters: for [`Target::Wgsl`], which
    /// names them in their types.
    pub formats: Vec<(String, PixelFormat)>,
    /// Elements of threadgroup parameters, by their names: for [`Target::Wgsl`], which needs all of them, and for
    /// [`Target::Msl`].
    pub threadgroup_lengths: Vec<(String, u64)>,
    /// Whether it is proved first in which launches every access is in bounds: for [`Target::Msl`] and
    /// [`Target::Wgsl`]. If there are any the code has no guards, and begins with a comment that says what launches it
    /// is for; else it has guards, and the comment says why.
    pub prove: bool,
}

/// A kernel as the code of a target.
///
/// ```
/// use invar::emit::{Options, Target, emit};
/// use invar::ir::{text, verify};
///
/// let module = verify(text::parse("empty.inv", "kernel @empty() {\n}\n")?)?;
/// let code = emit(&module, "empty", Target::Msl, &Options::default())?;
/// assert!(code.contains("kernel void empty"));
/// # Ok::<(), invar::Error>(())
/// ```
///
/// # Errors
/// [`Error::Runtime`] for options that are not usable with this kernel and target;
/// [`Error::Diagnostics`] for what is wrong with the constants, and for what the target lacks.
pub fn emit(
    module: &Verified,
    kernel: &str,
    target: Target,
    options: &Options,
) -> Result<String, Error> {
    let specialised;
    let module = if keeps_open(target, &options.constants) {
        module
    } else {
        let one = module.only(kernel).unwrap_or_else(|| module.clone());
        specialised = one.specialise(&options.constants)?;
        &specialised
    };
    let found = module.kernel(kernel);
    let kernel = found.ok_or_else(|| refused(format!("there is no kernel `{kernel}`")))?;
    let size = options.threadgroup_size.or(kernel.threadgroup_size);
    if let Some(size) = size {
        check_size(kernel, size)?;
    }
    if options.matrices == Matrices::Cooperative && target != Target::Wgsl {
        return Err(refused(
            "only WGSL has cooperative matrices: ask for the target wgsl, or for expanded ones",
        ));
    }
    if options.processor.is_some() && !matches!(target, Target::Llvm | Target::Asm) {
        return Err(refused(
            "only the targets llvm and asm are for a processor: leave it out",
        ));
    }
    if !options.formats.is_empty() && target != Target::Wgsl {
        return Err(refused(
            "only WGSL names the formats of textures: ask for the target wgsl, or leave them out",
        ));
    }
    if !options.threadgroup_lengths.is_empty() && !matches!(target, Target::Msl | Target::Wgsl) {
        return Err(refused(
            "only MSL and WGSL know lengths of threadgroup parameters: for the CPU device leave them out, it gets \
             them with each launch",
        ));
    }
    let threadgroup_lengths = lengths_of(module, kernel, &options.threadgroup_lengths)?;
    if options.async_copies == AsyncCopies::Engine && target != Target::Msl {
        return Err(refused(
            "only MSL has async copies by a copy engine: ask for the target msl, or for expanded ones",
        ));
    }
    if options.prove && !matches!(target, Target::Msl | Target::Wgsl) {
        return Err(refused(
            "only MSL and WGSL are written without guards where accesses are proved: the CPU device proves what it \
             runs if it is asked to when it compiles",
        ));
    }
    let proof = options.prove.then(|| proof(module, kernel)).transpose()?;
    let guards = !proof.as_ref().is_some_and(|proof| proof.holds);
    let code = match target {
        Target::Msl => {
            let options = msl::MslOptions {
                threadgroup_size: size,
                async_copies: match options.async_copies {
                    AsyncCopies::Expanded => msl::AsyncCopies::Expanded,
                    AsyncCopies::Engine => msl::AsyncCopies::Apple9Extern,
                },
                guards,
                threadgroup_lengths,
                ..msl::MslOptions::default()
            };
            msl::write(module, &kernel.name, &options)?.text
        }
        Target::Wgsl => {
            let size = size.ok_or_else(|| {
                refused(format!(
                    "WGSL fixes the threadgroup size, and kernel `{}` says none: give --threadgroup",
                    kernel.name
                ))
            })?;
            let features = match options.matrices {
                Matrices::Expanded => wgsl::Features::DESKTOP,
                Matrices::Cooperative => wgsl::Features {
                    cooperative_matrices: wgsl::CooperativeMatrices::ALL,
                    ..wgsl::Features::DESKTOP
                },
            };
            let options = wgsl::WgslOptions {
                keep_bindings: true,
                texture_formats: formats_of(kernel, &options.formats)?,
                guards,
                threadgroup_lengths,
                ..wgsl::WgslOptions::new(features, size)
            };
            wgsl::write(module, &kernel.name, &options)?.text
        }
        Target::Llvm => native(module, kernel, size, invar_llvm::Text::Llvm, options)?,
        Target::Asm => native(module, kernel, size, invar_llvm::Text::Asm, options)?,
    };
    Ok(match proof {
        Some(proof) => format!("{}{code}", proof.comment),
        None => code,
    })
}

/// What is proved of a kernel's accesses.
struct Proof {
    /// Whether all of them are in bounds, in the launches of the comment.
    holds: bool,
    comment: String,
}

/// Proves in which launches all accesses of a kernel are in bounds. What reads its code makes the same accesses.
fn proof(module: &Verified, kernel: &Kernel) -> Result<Proof, Error> {
    let name = kernel.name.clone();
    let mut strict = Module::clone(module);
    // Beyond its end nothing may be accessed here, whatever the author allows.
    for kernel in strict.kernels.iter_mut().filter(|k| k.name == name) {
        kernel.allow_out_of_bounds_loads = false;
        kernel.allow_out_of_bounds_stores = false;
    }
    let strict = verify(strict)?;
    let options = invar_prove::Options {
        refute: false,
        ..invar_prove::Options::default()
    };
    let report = invar_prove::prove(&strict, &name, &[], options)
        .map_err(|why| refused(format!("kernel `{name}`: {why}")))?;
    let mut prints = false;
    kernel.for_each_inst(&mut |inst| prints |= matches!(inst.kind, InstKind::Print { .. }));
    let is_proved = report.verdict == invar_prove::Verdict::Proved;
    let words = report.in_words(&strict, false);
    let advice = match (is_proved, prints) {
        (true, false) => {
            "No access is guarded: launch it as this says, with buffers of fewer than 2^32 elements."
        }
        // Lines for which there is no room are left out by their guards.
        (true, true) => "Every access is guarded, for the kernel prints.",
        (false, _) => "Every access is guarded.",
    };
    let lines = words.lines().chain([advice]);
    let comment = lines.map(|line| format!("// {}\n", one_line(line)));
    Ok(Proof {
        holds: is_proved && !prints,
        comment: comment.collect(),
    })
}

/// The formats of textures by their places.
fn formats_of(
    kernel: &Kernel,
    given: &[(String, PixelFormat)],
) -> Result<Vec<(usize, PixelFormat)>, Error> {
    let written = |(name, format): &(String, PixelFormat)| {
        let place = kernel.params.iter().position(|p| *p.name == **name);
        let of = place.map(|place| (place, &kernel.params[place].kind));
        match of {
            Some((place, ParamKind::Texture(ty))) if ty.access.memory().can_write() => {
                Ok((place, *format))
            }
            _other => Err(refused(format!(
                "kernel `{}` writes no texture `{name}`, whose format would be {}",
                kernel.name,
                format.name()
            ))),
        }
    };
    given.iter().map(written).collect()
}

/// The lengths of threadgroup parameters in their order: of all of them, or of none.
fn lengths_of(
    module: &Verified,
    kernel: &Kernel,
    given: &[(String, u64)],
) -> Result<Vec<u64>, Error> {
    let mut lengths = Vec::new();
    let mut bytes = 0u64;
    let mut missing = None;
    for param in &kernel.params {
        let ParamKind::Threadgroup { element } = &param.kind else {
            continue;
        };
        let Some((_, length)) = given.iter().find(|(name, _)| **name == *param.name) else {
            missing.get_or_insert(&param.name);
            continue;
        };
        let each = element.extent(&module.structs).map_or(1, |e| e.size_bytes);
        bytes = bytes.saturating_add(length.saturating_mul(each));
        lengths.push(*length);
    }
    let is_one = |name: &str| {
        let mut params = kernel.params.iter();
        params.any(|p| *p.name == *name && matches!(p.kind, ParamKind::Threadgroup { .. }))
    };
    if let Some((name, _)) = given.iter().find(|(name, _)| !is_one(name)) {
        return Err(refused(format!(
            "kernel `{}` has no threadgroup parameter `{name}`, whose length could be given",
            kernel.name
        )));
    }
    if let (Some(name), false) = (missing, given.is_empty()) {
        return Err(refused(format!(
            "threadgroup parameter `{name}` has no length, and others have: give that of each, or of none"
        )));
    }
    let limit = Limits::default().threadgroup_memory_bytes;
    if bytes > limit {
        return Err(refused(format!(
            "kernel `{}` needs {bytes} bytes for its threadgroup parameters, more than the limit of {limit}",
            kernel.name
        )));
    }
    Ok(lengths)
}

/// Whether function constants stay open: Metal's language has its own, which they are where no value
/// is given at all.
pub fn keeps_open(target: Target, constants: &[(ConstantKey, Const)]) -> bool {
    constants.is_empty() && target == Target::Msl
}

fn refused(message: impl Into<String>) -> Error {
    Error::Runtime {
        rule: Rule::InvalidArgument,
        message: message.into(),
    }
}

/// Whether a threadgroup of the kernel can have this size.
///
/// # Errors
/// [`Error::Runtime`] where the kernel says another size, or no device has threadgroups of it.
pub fn check_size(kernel: &Kernel, threadgroup: [u32; 3]) -> Result<(), Error> {
    let one = Dispatch {
        grid: Grid::Threadgroups([1; 3]),
        threadgroup,
    };
    let limit = Limits::default().threads_per_threadgroup;
    let checked = check_grid(kernel, &one, limit);
    checked.map(drop).map_err(|Diagnostics(all)| {
        let sentences = all.iter().map(|d| match &d.help {
            Some(help) => format!("{}; {help}", d.message),
            None => d.message.clone(),
        });
        refused(sentences.collect::<Vec<_>>().join("\n"))
    })
}

/// The kernel as the CPU device compiles it.
fn native(
    module: &Verified,
    kernel: &Kernel,
    threadgroup_size: Option<[u32; 3]>,
    text: invar_llvm::Text,
    options: &Options,
) -> Result<String, Error> {
    let processor = options.processor.as_deref().unwrap_or("native");
    let target = invar_llvm::Target::from_name(processor).ok_or_else(|| {
        let names: Vec<&str> = invar_llvm::Target::ALL.iter().map(|t| t.name()).collect();
        refused(format!(
            "there is no processor `{processor}`; there is {}",
            names.join(", ")
        ))
    })?;
    let options = invar_llvm::CompileOptions {
        target,
        threadgroup_size,
        ..invar_llvm::CompileOptions::default()
    };
    Ok(invar_llvm::emit(module, &kernel.name, &options, text)?)
}
