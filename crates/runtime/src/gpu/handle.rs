//! A GPU that was opened: what it can do, and what has gone wrong with it.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Waker};

use invar_codegen::wgsl::{CooperativeMatrices, Features, Fma};
use invar_ir::once::Once;
use invar_ir::verify::MAX_THREAD_BYTES;
use invar_ir::{Order, Rule, Scalar, Type};

use super::bind_groups::Groups;
use super::clock::Stopwatch;
use super::iteration_guard::IterationGuard;
use super::submission_queue::SubmissionQueue;
use crate::error::{failed, fault};
use crate::fork;
use crate::sync::lock;
use crate::{Capabilities, Error};
use invar_cache::Cache;

/// An adapter that was opened. Cheap to clone.
#[derive(Clone)]
pub struct Gpu(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    pub(crate) limits: wgpu::Limits,
    pub(crate) features: Features,
    /// Whether it is the host's own processor, by a driver such as Mesa's.
    pub(crate) is_processor: bool,
    pub(crate) capabilities: Capabilities,
    pub(crate) submissions: Mutex<SubmissionQueue>,
    pub(crate) groups: Arc<Mutex<Groups>>,
    /// Something was recorded while the thread slept.
    pub(crate) recorded: Condvar,
    /// A batch has ended.
    pub(crate) reaped: Condvar,
    /// Memory to read through, used again and again.
    pub(crate) staging: Mutex<Vec<wgpu::Buffer>>,
    /// What notes the times of batches, used again and again.
    pub(crate) stopwatches: Mutex<Vec<Stopwatch>>,
    /// What says whether loops were ended too early, used again and again.
    pub(crate) iteration_guards: Mutex<Vec<IterationGuard>>,
    /// The process that opened it.
    process: u32,
    /// Dispatches of at least that many threads are coarsened.
    pub(crate) coarse_from_threads: AtomicU64,
    failure: Arc<Mutex<Failure>>,
    /// Where pipelines are kept on disk, if the driver gives them out, and what tells drivers apart.
    pub(crate) pipelines: Option<(Cache, String)>,
    /// Whether MSL goes to the GPU as it is.
    pub(crate) takes_msl: bool,
    /// The version of SPIR-V that goes to the GPU as it is, if any does.
    pub(crate) spirv: Option<(u8, u8)>,
    /// Nanoseconds of a step of the device's clock, if it can be read.
    pub(crate) clock_step_ns: Option<f32>,
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gpu `{}`", self.0.capabilities.description)
    }
}

/// What went wrong.
#[derive(Default)]
struct Failure {
    /// The device was lost; it stays so.
    lost: Option<Error>,
    /// The first of the others that was not told yet.
    first: Option<Error>,
}

/// Runs what calls wgpu: a panic of its own, or of a driver, is an error.
pub(crate) fn guarded<R>(f: impl FnOnce() -> Result<R, Error>) -> Result<R, Error> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|panic| Err(failed("GPU device", &*panic)))
}

/// Waits for a future of wgpu's, which are ready at once or as soon as the device is polled. In a browser
/// they would never be, but there no adapter is found.
pub(crate) fn wait_for<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::yield_now(),
        }
    }
}

/// Fewer threads leave processors idle if each does more.
const COARSE_FROM_THREADS: u64 = 1 << 20;

/// What makes a GPU's clock one that can be read: times are noted in memory that the host sees, for a copy to
/// there would take longer than most dispatches.
const CLOCK: wgpu::Features =
    wgpu::Features::TIMESTAMP_QUERY.union(wgpu::Features::MAPPABLE_PRIMARY_BUFFERS);

/// What is asked of an adapter where it has it.
fn wanted() -> wgpu::Features {
    wgpu::Features::SHADER_INT64
        | wgpu::Features::SHADER_INT64_ATOMIC_ALL_OPS
        | wgpu::Features::SHADER_INT64_ATOMIC_MIN_MAX
        | wgpu::Features::SHADER_F16
        | wgpu::Features::SUBGROUP
        | CLOCK
        | wgpu::Features::MEMORY_DECORATION_COHERENT
        | wgpu::Features::PIPELINE_CACHE
}

/// What else is asked of an adapter: on Metal that our MSL goes there as it is, on Vulkan our SPIR-V.
fn passthrough(backend: wgpu::Backend) -> wgpu::Features {
    match backend {
        wgpu::Backend::Metal | wgpu::Backend::Vulkan => wgpu::Features::PASSTHROUGH_SHADERS,
        _takes_wgsl => wgpu::Features::empty(),
    }
}

/// The version of SPIR-V that a Vulkan adapter takes, by what it is asked for: subgroups need Vulkan 1.1, and
/// cooperative matrices this version.
fn spirv_version(features: wgpu::Features) -> (u8, u8) {
    if features.contains(wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX) {
        (1, 6)
    } else if features.contains(wgpu::Features::SUBGROUP) {
        (1, 3)
    } else {
        (1, 0)
    }
}

/// What products of matrices of 8 rows and columns an adapter lists, if subgroups can make them.
fn cooperative_matrices(adapter: &wgpu::Adapter) -> CooperativeMatrices {
    use wgpu::CooperativeScalarType::{F16, F32};
    let has = |factors, sum| {
        adapter.cooperative_matrix_properties().iter().any(|shape| {
            [shape.m_size, shape.n_size, shape.k_size] == [8; 3]
                && (shape.ab_type, shape.cr_type) == (factors, sum)
        })
    };
    let features = adapter.features();
    let f16 = features.contains(wgpu::Features::SHADER_F16);
    if features.contains(wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX) {
        CooperativeMatrices {
            f32: has(F32, F32),
            f16: f16 && has(F16, F16),
            f16_in_f32: f16 && has(F16, F32),
        }
    } else {
        CooperativeMatrices::default()
    }
}

/// How an `fma` is rounded once there: GPUs do so themselves; Mesa's and Google's compilers for processors
/// make a product and a sum of it.
fn fma(device_type: wgpu::DeviceType, features: wgpu::Features) -> Fma {
    let doubles = wgpu::Features::SHADER_F64 | wgpu::Features::SHADER_INT64;
    match device_type {
        wgpu::DeviceType::Cpu if features.contains(doubles) => Fma::InF64,
        wgpu::DeviceType::Cpu => Fma::InIntegers,
        _fuses => Fma::Fused,
    }
}

impl Gpu {
    /// The adapters of this machine, the best first; looked for once, since drivers are slow to load.
    fn adapters() -> Result<&'static [wgpu::Adapter], Error> {
        static ADAPTERS: Once<Result<Vec<wgpu::Adapter>, Error>> = Once::new();
        fork::watch();
        let found = ADAPTERS.get_or_make(|| guarded(|| Ok(Gpu::find_adapters())));
        found.as_deref().map_err(Error::clone)
    }

    fn find_adapters() -> Vec<wgpu::Adapter> {
        if cfg!(target_arch = "wasm32") {
            return Vec::new();
        }
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            // Neither validation layers nor debug names, which cost time at each dispatch.
            flags: wgpu::InstanceFlags::empty(),
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        let mut found = wait_for(instance.enumerate_adapters(wgpu::Backends::all()));
        // Real GPUs first; equal ones stay in the system's order.
        found.sort_by_key(|adapter| match adapter.get_info().device_type {
            wgpu::DeviceType::DiscreteGpu => 0,
            wgpu::DeviceType::IntegratedGpu => 1,
            wgpu::DeviceType::VirtualGpu => 2,
            wgpu::DeviceType::Other => 3,
            wgpu::DeviceType::Cpu => 4,
        });
        found
    }

    /// The names of the adapters of this machine, the best first.
    pub fn names() -> Vec<String> {
        let adapters = Gpu::adapters().unwrap_or_default();
        adapters.iter().map(|a| a.get_info().name).collect()
    }

    /// Opens an adapter by its place in [`Gpu::names`].
    ///
    /// # Errors
    /// `unsupported-feature` if there is none of that number; `device-lost` if it cannot be opened.
    pub fn open(index: usize) -> Result<Gpu, Error> {
        Gpu::open_with(index, wgpu::Features::all())
    }

    /// As if the adapter had no `f64`.
    #[cfg(feature = "testing")]
    pub fn open_without_f64(index: usize) -> Result<Gpu, Error> {
        Gpu::open_with(index, !wgpu::Features::SHADER_F64)
    }

    fn open_with(index: usize, allowed: wgpu::Features) -> Result<Gpu, Error> {
        let adapters = Gpu::adapters()?;
        let Some(adapter) = adapters.get(index) else {
            return Err(Error::new(
                Rule::UnsupportedFeature,
                format!(
                    "there is no GPU {index}: this machine has {}",
                    adapters.len()
                ),
            ));
        };
        guarded(|| Gpu::from_adapter(adapter, index, allowed))
    }

    fn from_adapter(
        adapter: &wgpu::Adapter,
        index: usize,
        allowed: wgpu::Features,
    ) -> Result<Gpu, Error> {
        let info = adapter.get_info();
        let limits = adapter.limits();
        let matrices = cooperative_matrices(adapter);
        let has = adapter.features() & allowed;
        let mut wgpu_features = has & (wanted() | passthrough(info.backend));
        if info.device_type == wgpu::DeviceType::Cpu {
            // Mesa's compiler for processors keeps sums of f16 wider than they are.
            wgpu_features.remove(wgpu::Features::SHADER_F16);
            // For `fma`.
            wgpu_features |= has & wgpu::Features::SHADER_F64;
        }
        if matrices.any() {
            wgpu_features |= wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX;
        }
        let passes = wgpu_features.contains(wgpu::Features::PASSTHROUGH_SHADERS);
        let takes_msl = passes && info.backend == wgpu::Backend::Metal;
        let spirv =
            (passes && info.backend == wgpu::Backend::Vulkan).then(|| spirv_version(wgpu_features));
        let request = adapter.request_device(&wgpu::DeviceDescriptor {
            label: None,
            required_features: wgpu_features,
            // The adapter's own limits; the defaults are those of the smallest device.
            required_limits: limits.clone(),
            experimental_features: if passes || matrices.any() {
                // SAFETY: what is asked for as experimental is only that code goes to the driver as it is, and
                // cooperative matrices, which the WGSL writer loads and stores in bounds.
                unsafe { wgpu::ExperimentalFeatures::enabled() }
            } else {
                wgpu::ExperimentalFeatures::disabled()
            },
            memory_hints: wgpu::MemoryHints::Performance,
            ..wgpu::DeviceDescriptor::default()
        });
        let (device, queue) = wait_for(request).map_err(|e| {
            Error::new(
                Rule::DeviceLost,
                format!("the GPU `{}` cannot be opened: {e}", info.name),
            )
        })?;
        let failure: Arc<Mutex<Failure>> = Arc::default();
        let (kept, name) = (failure.clone(), info.name.clone());
        device.set_device_lost_callback(move |_, why| {
            let why = match why.trim() {
                "" => String::new(),
                why => format!(": {why}"),
            };
            let message =
                format!("the GPU `{name}` was lost, and what its buffers held with it{why}");
            lock(&kept).lost = Some(Error::new(Rule::DeviceLost, message));
        });
        let (kept, name) = (failure.clone(), info.name.clone());
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            let (what, why) = (format!("the GPU `{name}` failed"), reason(&error));
            let error = match error {
                wgpu::Error::OutOfMemory { .. } => {
                    Error::new(Rule::OutOfMemory, format!("{what}: {why}"))
                }
                wgpu::Error::Validation { .. } => fault(&what, &why),
                wgpu::Error::Internal { .. } => {
                    Error::new(Rule::DeviceLost, format!("{what}: {why}"))
                }
            };
            lock(&kept).first.get_or_insert(error);
        }));
        let has = |feature| wgpu_features.contains(feature);
        let mesa = info.driver_info.contains("Mesa");
        let one_size = info.subgroup_min_size == info.subgroup_max_size;
        let features = Features {
            int64: has(wgpu::Features::SHADER_INT64),
            int64_atomics: has(wgpu::Features::SHADER_INT64_ATOMIC_ALL_OPS),
            subgroup_size: (has(wgpu::Features::SUBGROUP)
                && one_size
                && info.subgroup_max_size.is_power_of_two()
                && (4..=128).contains(&info.subgroup_max_size))
            .then_some(info.subgroup_max_size),
            coherent: has(wgpu::Features::MEMORY_DECORATION_COHERENT),
            f16: has(wgpu::Features::SHADER_F16),
            cooperative_matrices: matrices,
            barrier_multiple: (info.device_type == wgpu::DeviceType::Cpu)
                .then_some(info.subgroup_max_size),
            ends_loops: info.device_type == wgpu::DeviceType::Cpu,
            matrices_in_place: info.device_type == wgpu::DeviceType::Cpu,
            hides_zeros: info.device_type == wgpu::DeviceType::Cpu,
            // Loops and comparisons are looked at alike in all of its drivers.
            follows_uniforms: mesa,
            hides_extensions: mesa,
            clears_arrays: spirv.is_some() && info.device_type == wgpu::DeviceType::Cpu,
            fma: fma(info.device_type, wgpu_features),
            keeps_floats: spirv.is_some(),
        };
        let clock_step_ns = has(CLOCK).then(|| queue.get_timestamp_period());
        let mut capabilities = capabilities(&info, &limits, features, index);
        capabilities.own_clock = clock_step_ns.is_some();
        let pipelines = Cache::from_environment()
            .filter(|_| has(wgpu::Features::PIPELINE_CACHE))
            .zip(wgpu::util::pipeline_cache_key(&info))
            .map(|(cache, key)| (cache, format!("{key} {} {}", info.driver, info.driver_info)));
        Ok(Gpu(Arc::new(Inner {
            submissions: Mutex::new(SubmissionQueue::new(&device, &limits, clock_step_ns)),
            groups: Arc::default(),
            recorded: Condvar::new(),
            reaped: Condvar::new(),
            staging: Mutex::default(),
            stopwatches: Mutex::default(),
            iteration_guards: Mutex::default(),
            process: std::process::id(),
            coarse_from_threads: AtomicU64::new(COARSE_FROM_THREADS),
            device,
            queue,
            limits,
            features,
            is_processor: info.device_type == wgpu::DeviceType::Cpu,
            capabilities,
            failure,
            pipelines,
            takes_msl,
            spirv,
            clock_step_ns,
        })))
    }

    /// What it can do.
    pub fn capabilities(&self) -> &Capabilities {
        &self.0.capabilities
    }

    /// What the WGSL writer may use.
    pub fn features(&self) -> Features {
        self.0.features
    }

    /// How many buffers a kernel may have, tables of constants among them.
    pub fn buffers_of_a_kernel(&self) -> u32 {
        // One binding is for sizes and values.
        let bindings = self.0.limits.max_bindings_per_bind_group;
        let buffers = self.0.limits.max_storage_buffers_per_shader_stage;
        buffers.min(bindings.saturating_sub(1))
    }

    /// Sets from how many threads on a dispatch is coarsened, where its kernel can be: then each
    /// invocation runs the threads of several threadgroups, which have more loads under way at once.
    /// Results are the same; tests set it low, and measurements of what it brings high.
    #[cfg(feature = "testing")]
    pub fn coarsen_from(&self, threads: u64) {
        self.0
            .coarse_from_threads
            .store(threads, std::sync::atomic::Ordering::Relaxed);
    }

    /// Refuses to serve a child of the process that opened the GPU: a driver's threads stay with that.
    pub(crate) fn check_process(&self) -> Result<(), Error> {
        if std::process::id() == self.0.process {
            return Ok(());
        }
        let message = format!(
            "the GPU `{}` was opened before this process was forked, and a driver does not follow its \
             process: open it in the child only, or start the child anew (`spawn` in Python's multiprocessing)",
            self.0.capabilities.description
        );
        Err(Error::new(Rule::DeviceLost, message))
    }

    /// The loss of the device, or else the first failure since this was last asked.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let mut failure = lock(&self.0.failure);
        if let Some(lost) = &failure.lost {
            return Err(lost.clone());
        }
        failure.first.take().map_or(Ok(()), Err)
    }

    /// Whether the device was lost; then it does nothing any more.
    pub(crate) fn is_lost(&self) -> bool {
        lock(&self.0.failure).lost.is_some()
    }

    /// Whether both are the same, opened once.
    pub(crate) fn is(&self, other: &Gpu) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Gives the device up, as if it had been lost.
    #[cfg(feature = "testing")]
    pub fn lose(&self) {
        self.0.device.destroy();
    }

    /// Waits for a submission, without one for all.
    ///
    /// # Errors
    /// The device was lost, or an earlier failure.
    pub(crate) fn poll(&self, submission: Option<wgpu::SubmissionIndex>) -> Result<(), Error> {
        let wait = wgpu::PollType::Wait {
            submission_index: submission,
            timeout: None,
        };
        let waited = catch_unwind(AssertUnwindSafe(|| self.0.device.poll(wait)));
        self.check()?;
        match waited {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(Error::new(
                Rule::DeviceLost,
                format!(
                    "the GPU `{}` does not answer: {error}",
                    self.0.capabilities.description
                ),
            )),
            Err(panic) => Err(failed("GPU device", &*panic)),
        }
    }

    /// Keeps a failure for the next caller.
    pub(crate) fn keep(&self, error: Error) {
        lock(&self.0.failure).first.get_or_insert(error);
    }
}

/// How the device of an adapter is called, by its place in [`Gpu::names`].
pub(crate) fn device_name(index: usize) -> String {
    match index {
        0 => "gpu".to_string(),
        n => format!("gpu:{n}"),
    }
}

/// What an error says in the end: that of which the others are the consequence.
pub(crate) fn reason(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

fn capabilities(
    info: &wgpu::AdapterInfo,
    limits: &wgpu::Limits,
    features: Features,
    index: usize,
) -> Capabilities {
    let mut types = vec![
        Scalar::Bool,
        Scalar::I8,
        Scalar::I16,
        Scalar::I32,
        Scalar::U8,
        Scalar::U16,
        Scalar::U32,
        Scalar::F16,
        Scalar::BF16,
        Scalar::F32,
    ];
    let mut atomics = vec![Scalar::I32, Scalar::U32, Scalar::F32];
    if features.int64 {
        types.extend([Scalar::I64, Scalar::U64]);
    }
    if features.int64_atomics {
        atomics.extend([Scalar::I64, Scalar::U64]);
    }
    let matrix = |scalar| Type::SimdgroupMatrix {
        scalar,
        rows: 8,
        columns: 8,
    };
    let storage = limits
        .max_storage_buffer_binding_size
        .min(limits.max_buffer_size);
    const PROCESSOR_THREAD_BYTES: u64 = 16 << 10;
    Capabilities {
        name: device_name(index),
        family: format!("{:?}", info.backend).to_lowercase(),
        description: match (info.driver.as_str(), info.driver_info.as_str()) {
            ("", _) => info.name.clone(),
            (driver, about) => format!("{} ({driver} {about})", info.name),
        },
        host_threads: 0,
        simdgroup_size: features.subgroup_size.unwrap_or(32),
        // Lanes of other sizes exchange values through threadgroup memory.
        simdgroup_sizes: vec![4, 8, 16, 32, 64, 128],
        threadgroup_memory_bytes: u64::from(limits.max_compute_workgroup_storage_size),
        // Mesa's driver for processors keeps those of several threads on a stack of its own, and writes beyond it.
        thread_memory_bytes: match info.device_type {
            wgpu::DeviceType::Cpu => PROCESSOR_THREAD_BYTES,
            _a_gpu => MAX_THREAD_BYTES,
        },
        threads_per_threadgroup: limits
            .max_compute_invocations_per_workgroup
            .min(limits.max_compute_workgroup_size_x),
        buffer_bytes: storage,
        constant_buffer_bytes: storage,
        constant_offset_bytes: 1,
        types,
        ieee_float: Vec::new(),
        atomics,
        memory_orders: vec![Order::Relaxed],
        simdgroup_matrices: if features.int64 {
            [Scalar::F16, Scalar::BF16, Scalar::F32]
                .map(matrix)
                .to_vec()
        } else {
            Vec::new()
        },
        async_copy: features.int64,
        threadgroup_progress: false,
        own_clock: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text as no writer of ours leaves it: what cannot be parsed, and what cannot be valid.
    #[test]
    #[expect(clippy::print_stdout, reason = "a skipped test says so")]
    fn what_naga_refuses_is_one_sentence() {
        if Gpu::names().is_empty() {
            println!("skipped: this machine has no adapter (mesa-vulkan-drivers brings one)");
            return;
        }
        let gpu = Gpu::open(0).unwrap();
        let texts = [
            "fn broken( -> u32 { return 1u; }",
            "fn f() -> u32 { return 1.5f; }\n@compute @workgroup_size(1) fn k() { _ = f(); }",
        ];
        for text in texts {
            let scope = gpu.0.device.push_error_scope(wgpu::ErrorFilter::Validation);
            let source = wgpu::ShaderSource::Wgsl(text.into());
            let label = Some("k");
            let descriptor = wgpu::ShaderModuleDescriptor { label, source };
            let _refused = gpu.0.device.create_shader_module(descriptor);
            let refusal = wait_for(scope.pop()).expect("naga takes it");
            let error = fault(
                "the GPU does not take the code of kernel `k`",
                &reason(&refusal),
            );
            let text = error.to_string();
            let start = "the GPU does not take the code of kernel `k`, which is a bug in Invar: ";
            let (_, why) = text.split_once(start).unwrap();
            assert!(
                !why.trim().is_empty() && text.trim().lines().count() == 1,
                "{text}"
            );
            assert!(
                !why.contains("Validation Error") && why.len() < 200,
                "{text}"
            );
        }
    }
}
