//! Kernels compiled for a GPU: one pipeline for each [`Shape`] of a dispatch.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use invar_codegen::analysis::ranges::Known;
use invar_codegen::passes::coarsen::{coarsen, widest_access_bytes};
use invar_codegen::passes::rows::{deciding_scalars, fixing_helps};
use invar_codegen::wgsl::{self, Bound, MAX_ELEMENTS, Source, WgslOptions, write};
use invar_interp::GridSizes;
use invar_ir::contract::contract;
use invar_ir::{Const, Kernel, Module, ParamKind, Rule, Verified};

use super::bind_groups::BindingId;
use super::code::{Binding, Code, Msl, Shape};
use super::constants::CONSTANT_BYTES;
use super::handle::{Gpu, guarded, reason, wait_for};
use super::no_contraction;
use super::variant::Variant;
use crate::compiling::Patience;
use crate::error::fault;
use crate::proof::{self, KnownArgument, Proof, Proved, is_in_bounds};
use crate::sync::lock;
use crate::{CompileOptions, Error, backend, environment};
use invar_cache::Key;

/// A kernel compiled for a GPU. Cheap to clone.
#[derive(Clone)]
pub struct GpuProgram(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) gpu: Gpu,
    pub(crate) module: Arc<Verified>,
    pub(crate) kernel: usize,
    /// Bytes of one element of each parameter's buffer.
    element_bytes: Vec<u64>,
    /// What is proved of its accesses, if that is wanted.
    proof: Option<Proof>,
    /// How many threadgroups in x a workgroup runs in a coarse dispatch.
    pub(crate) coarse: u32,
    /// The one last asked for comes first.
    variants: Mutex<Vec<(Shape, Arc<Variant>)>>,
    /// `Scalar` parameters that decide how many iterations loops over rows have.
    deciding: Vec<usize>,
    /// The values that large dispatches gave for these, and whether the kernel is compiled for them.
    given: Mutex<HashMap<Vec<u64>, Given>>,
}

/// What is known of values that decide how many iterations loops have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Given {
    /// One dispatch had them.
    Once,
    /// A pipeline of their own is worth it.
    Fixed,
    /// It is not.
    General,
}

/// Values of parameters for which a kernel has pipelines of their own, at most; later ones share the general
/// one.
const FIXED_VALUES: usize = 8;

/// Bytes that a thread of a coarse dispatch loads at once: with four loads of four bytes under way in each
/// thread an NVIDIA H200 copies as fast as with one of sixteen, and with more of either slower.
const COARSE_BYTES: u64 = 16;

impl fmt::Debug for GpuProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "program `{}` for {:?}", self.kernel().name, self.0.gpu)
    }
}

impl Gpu {
    /// Compiles a kernel of a module.
    ///
    /// # Errors
    /// The module has no such kernel, a function constant has no value, or the GPU cannot run the kernel
    /// (`unsupported-feature`, `unsupported-float-mode`, `unsupported-memory-order`).
    pub fn compile(
        &self,
        module: &Verified,
        kernel: &str,
        options: &CompileOptions,
    ) -> Result<GpuProgram, Error> {
        self.check_process()?;
        guarded(|| self.compiled(module, kernel, options))
    }

    fn compiled(
        &self,
        module: &Verified,
        kernel: &str,
        options: &CompileOptions,
    ) -> Result<GpuProgram, Error> {
        let Some(one) = module.only(kernel) else {
            return Err(Error::new(
                Rule::InvalidDispatch,
                format!("the module has no kernel `{kernel}`"),
            ));
        };
        let module = one.specialise(&options.constants)?;
        let index = 0;
        if module.kernels[index].prints() {
            return Err(Error::new(
                Rule::UnsupportedFeature,
                format!("kernel `{kernel}` prints, which needs a queue of a `Device`"),
            ));
        }
        let found = &module.kernels[index];
        let size = options.threadgroup_size.or(found.threadgroup_size);
        let contracted = contract(module.clone().into_module())?;
        let time_limit = options.time_limit.or_else(environment::time_limit);
        let source = backend::Source {
            module: Arc::new(module),
            kernel: index,
        };
        let most = COARSE_BYTES / widest_access_bytes(&contracted, index);
        let most = most.clamp(1, 4) as u32;
        let coarse = coarsen(&contracted, index, most).map_or(1, |_| most);
        let program = GpuProgram(Arc::new(Inner {
            gpu: self.clone(),
            coarse,
            kernel: index,
            variants: Mutex::default(),
            deciding: deciding_scalars(&contracted, index),
            given: Mutex::default(),
            element_bytes: source.extents().iter().map(|e| e.size_bytes).collect(),
            proof: options.prove.then(Proof::default),
            module: source.module,
        }));
        let compiles = size.is_some() && program.threadgroup_params() == 0;
        let shape = Shape {
            // What is proved will most likely run.
            guards: !compiles || program.proved(time_limit)?.is_none(),
            threadgroup: size.unwrap_or([64, 1, 1]),
            lengths: vec![1; program.threadgroup_params()],
            full: true,
            threadgroups_per_workgroup: 1,
            threads_per_invocation: 1,
            unroll_rows: false,
            fixed_scalars: Vec::new(),
            msl: self.0.takes_msl,
        };
        if compiles {
            program.variant(&shape)?;
        } else {
            // What a kernel may not do is the same for every shape.
            program.source(&shape)?;
        }
        Ok(program)
    }
}

impl GpuProgram {
    /// The kernel, in the module with its function constants fixed.
    pub fn kernel(&self) -> &Kernel {
        &self.0.module.kernels[self.0.kernel]
    }

    fn threadgroup_params(&self) -> usize {
        let params = self.kernel().params.iter();
        params
            .filter(|p| matches!(p.kind, ParamKind::Threadgroup { .. }))
            .count()
    }

    /// The `Scalar` parameters for whose values a pipeline of their own is worth it: large dispatches gave
    /// them twice, and loops over rows then have a known number of iterations. The values fit the kernel.
    pub(crate) fn fixed_scalars(
        &self,
        threadgroup: [u32; 3],
        scalar: impl Fn(usize) -> Option<Const>,
    ) -> Vec<(usize, Const)> {
        let inner = &*self.0;
        let fixed: Vec<(usize, Const)> = inner
            .deciding
            .iter()
            .filter_map(|i| Some((*i, scalar(*i)?)))
            .collect();
        // Whether a kernel can be coarsened was asked of it as it is.
        if fixed.is_empty() || inner.coarse > 1 {
            return Vec::new();
        }
        let bits: Vec<u64> = fixed.iter().map(|(_, c)| c.bits).collect();
        let mut given = lock(&inner.given);
        let count = given.len();
        let now = match given.entry(bits) {
            Entry::Vacant(entry) => {
                if count < FIXED_VALUES {
                    entry.insert(Given::Once);
                }
                return Vec::new();
            }
            Entry::Occupied(mut entry) => {
                if *entry.get() == Given::Once {
                    let known = Known {
                        threadgroup_size: Some(threadgroup),
                        threads: None,
                    };
                    let helps = contract(Module::clone(&inner.module))
                        .is_ok_and(|module| fixing_helps(&module, inner.kernel, &fixed, &known));
                    entry.insert(if helps { Given::Fixed } else { Given::General });
                }
                *entry.get()
            }
        };
        if now == Given::Fixed {
            fixed
        } else {
            Vec::new()
        }
    }

    /// The launches in which its accesses are in bounds, if that is wanted and known, for who has patience for at most
    /// so long. They are those of the kernel as it is: what is done to it on the way to WGSL or MSL makes no access
    /// that it does not make.
    fn proved(&self, limit: Option<Duration>) -> Result<Proved, Error> {
        let Some(proof) = &self.0.proof else {
            return Ok(None);
        };
        let name = &self.kernel().name;
        let patience = Patience {
            kernel: name,
            limit,
            is_wanted: &|| true,
        };
        let (module, name) = (self.0.module.clone(), name.clone());
        proof.of(&patience, move || {
            proof::in_bounds_in(&name, Module::clone(&module), None)
        })
    }

    /// Whether the accesses of a dispatch are to be guarded.
    pub(crate) fn needs_guards(
        &self,
        sizes: &GridSizes,
        argument: &impl Fn(usize) -> Option<KnownArgument>,
        limit: Option<Duration>,
    ) -> Result<bool, Error> {
        let element_bytes = &self.0.element_bytes;
        let proved = self.proved(limit)?;
        Ok(!proved.is_some_and(|proved| {
            is_in_bounds(&proved, sizes, element_bytes, argument, MAX_ELEMENTS)
        }))
    }

    /// The WGSL for dispatches of a shape. It is guarded also where the shape asks for no guards if the driver may leave
    /// a loop too early: what is proved holds of loops that come to their end.
    ///
    /// # Errors
    /// What the GPU cannot do.
    pub fn source(&self, shape: &Shape) -> Result<Source, Error> {
        let source = self.source_with(shape, shape.guards)?;
        let watches = |b: &wgsl::Binding| b.bound == Bound::IterationGuard;
        match source.bindings.iter().any(watches) && !source.guards {
            true => self.source_with(shape, true),
            false => Ok(source),
        }
    }

    fn source_with(&self, shape: &Shape, guards: bool) -> Result<Source, Error> {
        let options = WgslOptions {
            threadgroup_lengths: shape.lengths.clone(),
            full_threadgroups: shape.full,
            threadgroups_per_workgroup: shape.threadgroups_per_workgroup,
            threads_per_invocation: shape.threads_per_invocation,
            unroll_rows: shape.unroll_rows,
            fixed_scalars: shape.fixed_scalars.clone(),
            guards,
            ..WgslOptions::new(self.0.gpu.features(), shape.threadgroup)
        };
        Ok(write(&self.0.module, &self.kernel().name, &options)?)
    }

    /// The pipeline for dispatches of a shape, compiled once.
    pub(crate) fn variant(&self, shape: &Shape) -> Result<Arc<Variant>, Error> {
        let mut variants = lock(&self.0.variants);
        if let Some(found) = variants.iter().position(|(s, _)| s == shape) {
            variants.swap(0, found);
            return Ok(variants[0].1.clone());
        }
        drop(variants);
        let variant = Arc::new(self.build(shape)?);
        lock(&self.0.variants).push((shape.clone(), variant.clone()));
        Ok(variant)
    }

    fn build(&self, shape: &Shape) -> Result<Variant, Error> {
        let values = self
            .0
            .gpu
            .0
            .limits
            .max_dynamic_uniform_buffers_per_pipeline_layout;
        let msl = if shape.msl {
            Msl::of(&self.0.module, self.kernel(), shape, values as usize)
        } else {
            None
        };
        if let Some(code) = msl
            && let Ok(variant) = self.build_of(Code::Msl(code))
        {
            return Ok(variant);
        }
        self.build_of(Code::Wgsl(self.source(shape)?))
    }

    fn build_of(&self, code: Code) -> Result<Variant, Error> {
        let gpu = &self.0.gpu;
        let device = &gpu.0.device;
        let name = &self.kernel().name;
        let bindings = code.bindings();
        self.check_limits(&code, &bindings)?;
        let spirv = match (&code, gpu.0.spirv) {
            (Code::Wgsl(source), Some(version)) => Some(
                no_contraction::spirv(
                    &source.text,
                    &source.entry_point,
                    version,
                    gpu.0.features.clears_arrays,
                )
                .map_err(|error| refused(name, &error))?,
            ),
            (Code::Wgsl(_), None) | (Code::Msl(_), _) => None,
        };
        let scope = device.push_error_scope(wgpu::ErrorFilter::Validation);
        let shader = self.shader(&code, spirv.as_deref());
        let layout = bind_group_layout(device, &bindings);
        let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&layout)],
            ..wgpu::PipelineLayoutDescriptor::default()
        });
        let kept = gpu.0.pipelines.as_ref().map(|(cache, driver)| {
            let key = Key::of(&[
                b"pipeline",
                env!("CARGO_PKG_VERSION").as_bytes(),
                driver.as_bytes(),
                code.entry_point().as_bytes(),
                code.text().as_bytes(),
            ]);
            let data = cache.load(&key);
            // SAFETY: the data came from this function for the same adapter and driver: they are part of
            // the key, and the folder's files carry a checksum of it and of their contents.
            let pipelines = unsafe {
                device.create_pipeline_cache(&wgpu::PipelineCacheDescriptor {
                    label: None,
                    data: data.as_deref(),
                    fallback: true,
                })
            };
            (cache, key, data, pipelines)
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(name),
            layout: Some(&pipeline_layout),
            module: &shader,
            entry_point: Some(code.entry_point()),
            compilation_options: wgpu::PipelineCompilationOptions {
                // The writer zeroes what can be seen.
                zero_initialize_workgroup_memory: false,
                ..wgpu::PipelineCompilationOptions::default()
            },
            cache: kept.as_ref().map(|(.., pipelines)| pipelines),
        });
        if let Some(error) = wait_for(scope.pop()) {
            return Err(refused(name, &reason(&error)));
        }
        gpu.check()?;
        if let Some((cache, key, before, pipelines)) = &kept
            && let Some(data) = pipelines.get_data()
            && before.as_ref() != Some(&data)
        {
            cache.store(key, &data);
        }
        let contents = bindings
            .iter()
            .filter_map(|binding| match binding {
                Binding::Contents(bytes) => Some(bytes),
                Binding::Param(..) | Binding::Values | Binding::IterationGuard => None,
            })
            .map(|bytes| gpu.buffer_from(bytes).map(|buffer| buffer.memory))
            .collect::<Result<_, _>>()?;
        Ok(Variant {
            code,
            kernel: name.clone(),
            bindings,
            pipeline,
            layout,
            binding: BindingId::new(&gpu.0.groups),
            contents,
        })
    }

    /// Refuses what this GPU has no room for.
    fn check_limits(&self, code: &Code, bindings: &[Binding]) -> Result<(), Error> {
        let gpu = &self.0.gpu;
        let name = &self.kernel().name;
        let able = gpu.capabilities();
        let workgroup_bytes = code.workgroup_bytes();
        if workgroup_bytes > able.threadgroup_memory_bytes {
            return Err(Error::new(
                Rule::InvalidArgument,
                format!(
                    "kernel `{name}` needs {workgroup_bytes} bytes of threadgroup memory on this GPU, \
                     which has {}",
                    able.threadgroup_memory_bytes
                ),
            ));
        }
        let threads: u32 = code.workgroup().iter().product();
        if threads > able.threads_per_threadgroup {
            return Err(Error::new(
                Rule::InvalidDispatch,
                format!(
                    "kernel `{name}` has threadgroups of {threads} threads on this GPU, which takes at \
                     most {}",
                    able.threads_per_threadgroup
                ),
            ));
        }
        let buffers = bindings.iter().filter(|b| **b != Binding::Values).count() as u32;
        let most = gpu.buffers_of_a_kernel();
        if buffers > most {
            let with = if bindings.contains(&Binding::IterationGuard) {
                " with the hidden one that tells whether its loops were ended"
            } else {
                ""
            };
            return Err(Error::new(
                Rule::UnsupportedFeature,
                format!(
                    "kernel `{name}` has {buffers} buffers{with}, more than the {most} of this GPU"
                ),
            ));
        }
        let most = CONSTANT_BYTES.min(gpu.0.limits.max_uniform_buffer_binding_size);
        if let Code::Wgsl(source) = code
            && source.constants.size_bytes > most
        {
            return Err(Error::new(
                Rule::UnsupportedFeature,
                format!(
                    "kernel `{name}` takes {} bytes of values and sizes, more than the {most} of this \
                     GPU: put values in a buffer",
                    source.constants.size_bytes
                ),
            ));
        }
        Ok(())
    }

    /// Hands the code to wgpu; what is wrong with it the error scope around tells.
    fn shader(&self, code: &Code, spirv: Option<&[u32]>) -> wgpu::ShaderModule {
        let device = &self.0.gpu.0.device;
        let name = &self.kernel().name;
        let entry_points = || {
            let [x, y, z] = code.workgroup();
            let entry = wgpu::PassthroughShaderEntryPoint {
                name: code.entry_point().into(),
                workgroup_size: (x, y, z),
            };
            vec![entry].into()
        };
        match code {
            // SAFETY: as below; the driver takes the words, for that was asked of it.
            Code::Wgsl(_) if spirv.is_some() => unsafe {
                device.create_shader_module_passthrough(wgpu::ShaderModuleDescriptorPassthrough {
                    label: Some(name),
                    entry_points: entry_points(),
                    spirv: spirv.map(Into::into),
                    ..wgpu::ShaderModuleDescriptorPassthrough::default()
                })
            },
            // SAFETY: the WGSL writer puts a guard around every access that could be out of bounds, but where it is
            // proved that none is, divides only by what is not zero, and no loop of its own is without end.
            Code::Wgsl(source) => unsafe {
                device.create_shader_module_trusted(
                    wgpu::ShaderModuleDescriptor {
                        label: Some(name),
                        source: wgpu::ShaderSource::Wgsl(source.text.as_str().into()),
                    },
                    wgpu::ShaderRuntimeChecks::unchecked(),
                )
            },
            // SAFETY: so does the MSL writer; it is Metal that takes the text, for that was asked of it,
            // and its arguments are bound in their order.
            Code::Msl(_) => unsafe {
                device.create_shader_module_passthrough(wgpu::ShaderModuleDescriptorPassthrough {
                    label: Some(name),
                    entry_points: entry_points(),
                    msl: Some(code.text().into()),
                    ..wgpu::ShaderModuleDescriptorPassthrough::default()
                })
            },
        }
    }
}

/// How the buffers of a kernel are bound.
fn bind_group_layout(device: &wgpu::Device, bindings: &[Binding]) -> wgpu::BindGroupLayout {
    let entries: Vec<wgpu::BindGroupLayoutEntry> = bindings
        .iter()
        .enumerate()
        .map(|(i, binding)| wgpu::BindGroupLayoutEntry {
            binding: i as u32,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty: match binding {
                    Binding::Values => wgpu::BufferBindingType::Uniform,
                    Binding::IterationGuard => {
                        wgpu::BufferBindingType::Storage { read_only: false }
                    }
                    Binding::Param(_, writable) => wgpu::BufferBindingType::Storage {
                        read_only: !writable,
                    },
                    Binding::Contents(_) => wgpu::BufferBindingType::Storage { read_only: true },
                },
                has_dynamic_offset: matches!(binding, Binding::Values | Binding::IterationGuard),
                min_binding_size: None,
            },
            count: None,
        })
        .collect();
    device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: None,
        entries: &entries,
    })
}

/// The GPU does not take code of ours.
fn refused(kernel: &str, why: &str) -> Error {
    fault(
        &format!("the GPU does not take the code of kernel `{kernel}`"),
        why,
    )
}
