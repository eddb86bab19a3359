//! The WGSL that Invar writes of a kernel, through wgpu as any host would run it: the hidden constants are filled
//! in here.

use invar_codegen::analysis::order::LaunchOrder;
use invar_codegen::wgsl::{self, Features, Given, Launch, Source, WgslOptions, dispatch_parts};
use invar_interp::{Dispatch, check_grid};
use invar_ir::{Const, Diagnostics, Verified};

use super::direct::{Bound, Driver, Held};

/// The most threads of a workgroup.
const MOST_THREADS: u32 = 1024;

/// What is given for a parameter.
pub enum Param {
    /// What a host binds: of memory so many elements.
    Held(Held, u64),
    /// The components of a value.
    #[allow(
        dead_code,
        reason = "tests have kernels with values; no variable of a shader is one"
    )]
    Scalar(Vec<Const>),
}

fn refused(Diagnostics(all): Diagnostics) -> String {
    match all.first() {
        Some(first) => first.message.clone(),
        None => "no reason is given".to_string(),
    }
}

/// The WGSL of a kernel for a dispatch, with guards or without.
///
/// # Errors
/// Why there is none.
pub fn source(
    module: &Verified,
    name: &str,
    dispatch: &Dispatch,
    params: &[Param],
    guards: bool,
) -> Result<Source, String> {
    let written = |(place, param): (usize, &Param)| match param {
        Param::Held(Held::Texture { ty, shape, .. }, _) if ty.access.memory().can_write() => {
            Some((place, shape.format))
        }
        _other => None,
    };
    let options = WgslOptions {
        texture_formats: params.iter().enumerate().filter_map(written).collect(),
        guards,
        ..WgslOptions::new(Features::default(), dispatch.threadgroup)
    };
    wgsl::write(module, name, &options).map_err(refused)
}

/// What every parameter holds behind a dispatch; of a value and a sampler nothing.
///
/// # Errors
/// Why there is no such WGSL, or why the driver does not run it.
pub fn run(
    driver: &Driver,
    module: &Verified,
    name: &str,
    dispatch: &Dispatch,
    params: &[Param],
    guards: bool,
) -> Result<Vec<Vec<u8>>, String> {
    let kernel = module.kernel(name).ok_or("there is no such kernel")?;
    let grid = check_grid(kernel, dispatch, MOST_THREADS).map_err(refused)?;
    let source = source(module, name, dispatch, params, guards)?;
    let parts = dispatch_parts(grid.threadgroups, u32::from(u16::MAX));
    let ([part], LaunchOrder::RowMajor) = (&parts[..], source.launch_order) else {
        return Err("it is launched in parts".to_string());
    };
    let given: Vec<Given<'_>> = params
        .iter()
        .map(|param| match param {
            Param::Held(_, elements) => Given::Elements(*elements),
            Param::Scalar(components) => Given::Scalar(components),
        })
        .collect();
    let launch = Launch {
        threads: grid.threads,
        threadgroups: grid.threadgroups,
        part: *part,
        given: &given,
    };
    let mut variables = Vec::new();
    let mut of_param = Vec::new();
    for binding in &source.bindings {
        let (held, param) = match &binding.bound {
            wgsl::Bound::Param(place) => (held_by(params, *place)?, Some(*place)),
            wgsl::Bound::Sampler(sampler) => (Held::Sampler(*sampler), None),
            wgsl::Bound::Contents(bytes) => (buffer(bytes.clone(), false), None),
            wgsl::Bound::Constants => (buffer(source.constants.bytes(&launch), true), None),
            wgsl::Bound::IterationGuard => return Err("a driver ends its loops".to_string()),
        };
        variables.push(Bound {
            group: binding.place.group,
            binding: binding.place.number,
            held,
        });
        of_param.push(param);
    }
    let (text, entry) = (&source.text, &source.entry_point);
    let found = driver.run(text, entry, &[], part.workgroups, &variables)?;
    let mut results = vec![Vec::new(); params.len()];
    for (place, mut bytes) in of_param.into_iter().zip(found) {
        if let Some(place) = place {
            if let Param::Held(Held::Buffer { bytes: given, .. }, _) = &params[place] {
                bytes.truncate(given.len());
            }
            results[place] = bytes;
        }
    }
    Ok(results)
}

/// A buffer, whose binding is rounded up.
fn buffer(mut bytes: Vec<u8>, uniform: bool) -> Held {
    bytes.resize(bytes.len().next_multiple_of(16).max(16), 0);
    Held::Buffer { bytes, uniform }
}

fn held_by(params: &[Param], place: usize) -> Result<Held, String> {
    match &params[place] {
        Param::Held(Held::Buffer { bytes, .. }, _) => Ok(buffer(bytes.clone(), false)),
        Param::Held(Held::Texture { ty, shape, bytes }, _) => Ok(Held::Texture {
            ty: *ty,
            shape: *shape,
            bytes: bytes.clone(),
        }),
        Param::Held(Held::Sampler(sampler), _) => Ok(Held::Sampler(*sampler)),
        Param::Scalar(_) => Err("a value has a binding of its own".to_string()),
    }
}
