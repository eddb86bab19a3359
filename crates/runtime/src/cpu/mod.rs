//! The CPU device: kernels compiled by LLVM for the processor that this runs on, kept on disk.

use std::sync::{Arc, Mutex};

use invar_ir::once::Once;
use invar_ir::verify::MAX_THREAD_BYTES;
use invar_ir::{Module, Order, Rule, Scalar, Type, Verified, binary};
use invar_llvm::abi::{ColdPaths, Entry, Launch};
use invar_llvm::{
    CompileOptions, KernelInfo, LoadError, Object, Program, SIMDGROUP_SIZE, Target,
    compile_cold_paths,
};
use invar_prove::condition::Launches;

use crate::capabilities::ALL_ATOMICS;
use crate::compiling::{Compilation, Patience};
use crate::device::Kind;
use crate::executor::thread_limit;
use crate::fork;
use crate::proof;
use crate::sync::lock;
use crate::{Capabilities, Device, Error};
use invar_cache::{Cache, Key};

mod native;
mod regrouping;
mod settings;
mod streaming;

use native::{Code, Compiler, Native};
use settings::processor;

/// The kind of it.
pub(crate) struct Processor;

const NAME: &str = "cpu";

impl Kind for Processor {
    fn name(&self) -> &'static str {
        NAME
    }

    fn check_environment(&self) -> Result<(), Error> {
        settings::check()
    }

    fn all(&self) -> Vec<Device> {
        usable().map_or_else(|_| Vec::new(), |()| vec![Device::cpu()])
    }

    fn named(&self, name: &str) -> Option<Result<Device, Error>> {
        (name == NAME).then(|| usable().map(|()| Device::cpu()))
    }

    fn listed(&self) -> Result<Vec<String>, &'static str> {
        let names = self.all().into_iter().map(|_| format!("`{NAME}`"));
        Ok(names.collect())
    }
}

impl Device {
    /// The processor that this runs on: kernels compiled to its widest vectors, on all its cores. Where
    /// LLVM's library is missing it refuses to compile kernels, and says what to install.
    pub fn cpu() -> Device {
        static DEVICE: Once<Device> = Once::new();
        fork::watch();
        DEVICE
            .get_or_make(|| device(Cache::from_environment(), true))
            .clone()
    }

    /// The CPU device with kernels whose accesses are not checked: for measuring what checks cost, and
    /// for nothing else. No name leads to it, and nothing of it is kept on disk.
    ///
    /// # Safety
    /// Every access of every kernel that runs on it must lie within its buffer or array.
    #[cfg(feature = "testing")]
    pub unsafe fn cpu_without_checks() -> Device {
        device(None, false)
    }
}

fn device(cache: Option<Cache>, checks: bool) -> Device {
    Device::of(Native {
        capabilities: capabilities(),
        compiler: Arc::new(Cpu {
            cache: cache.map(Arc::new),
            checks,
        }),
    })
}

/// What the CPU device can do.
fn capabilities() -> Capabilities {
    let floats = Scalar::ALL.into_iter().filter(|s| s.is_float());
    let matrix = |scalar| Type::SimdgroupMatrix {
        scalar,
        rows: 8,
        columns: 8,
    };
    Capabilities {
        name: NAME.to_string(),
        family: match std::env::consts::ARCH {
            "x86_64" => "x86-64".to_string(),
            other => other.to_string(),
        },
        description: processor().description(),
        host_threads: thread_limit() as u32,
        simdgroup_size: SIMDGROUP_SIZE,
        simdgroup_sizes: vec![SIMDGROUP_SIZE],
        threadgroup_memory_bytes: 64 << 10,
        thread_memory_bytes: MAX_THREAD_BYTES,
        threads_per_threadgroup: 1024,
        buffer_bytes: isize::MAX as u64,
        constant_buffer_bytes: isize::MAX as u64,
        constant_offset_bytes: 1,
        types: Scalar::ALL.to_vec(),
        ieee_float: floats.clone().collect(),
        atomics: ALL_ATOMICS.to_vec(),
        memory_orders: Order::ALL.to_vec(),
        simdgroup_matrices: floats.map(matrix).collect(),
        async_copy: true,
        threadgroup_progress: true,
        own_clock: false,
    }
}

/// Compiles by LLVM, unless it is on disk already.
struct Cpu {
    cache: Option<Arc<Cache>>,
    checks: bool,
}

impl Compiler for Cpu {
    fn compile(
        &self,
        module: &Verified,
        kernel: usize,
        threadgroup_size: Option<[u32; 3]>,
        checks: bool,
    ) -> Result<Arc<dyn Code>, Error> {
        let name = &module.kernels[kernel].name;
        let options = CompileOptions {
            threadgroup_size,
            checks: self.checks && checks,
            target: processor(),
            ..CompileOptions::default()
        };
        let key = Key::of(&[
            b"kernel",
            made_by(options.target).map_err(unusable)?.as_bytes(),
            &binary::encode_for_key(module),
            name.as_bytes(),
            // Function constants are fixed in the module already.
            format!("{options:?}").as_bytes(),
        ]);
        if let Some(cache) = &self.cache
            && let Some(bytes) = cache.load(&key)
            && let Some(object) = decode(&bytes)
            && let Ok(program) = Program::load(&object)
        {
            return Ok(self.code(program));
        }
        let object = invar_llvm::compile(module, name, &options)?;
        if let Some(cache) = &self.cache {
            cache.store(&key, &encode(&object));
        }
        let program = Program::load(&object).map_err(lost)?;
        Ok(self.code(program))
    }

    /// It is proved of the kernel as code is made of it, so that no pass has to carry what is known of an access.
    fn in_bounds_in(&self, module: &Verified, kernel: usize) -> Option<Launches> {
        let name = &module.kernels[kernel].name;
        let lowered = invar_llvm::lowered(module, name).ok()?.into_module();
        proof::in_bounds_in(name, lowered, Some(Module::clone(module)))
    }
}

impl Cpu {
    fn code(&self, program: Program) -> Arc<dyn Code> {
        Arc::new(Compiled {
            program: Arc::new(program),
            cache: self.cache.clone(),
            cold_paths: Mutex::new(None),
        })
    }
}

/// What compiled code depends on besides what it was made from.
fn made_by(target: Target) -> Result<String, String> {
    let (version, compiler) = (env!("CARGO_PKG_VERSION"), env!("INVAR_COMPILER"));
    let target = target.fingerprint()?;
    Ok(format!("{version}, {compiler}, {target}"))
}

/// Whether kernels can be compiled here.
fn usable() -> Result<(), Error> {
    invar_llvm::look_for().map_err(unusable)
}

fn unusable(why: String) -> Error {
    Error::new(Rule::UnsupportedFeature, why)
}

fn lost(error: LoadError) -> Error {
    Error::new(Rule::DeviceLost, error.to_string())
}

/// An object as one run of bytes: after the length of each but the last, what is known of it, its cold paths, and
/// the code.
fn encode(object: &Object) -> Vec<u8> {
    let info = object.info.to_bytes();
    let mut out = Vec::new();
    // Nothing is not cold paths: a module has some bytes.
    for part in [&info, object.cold_paths.as_deref().unwrap_or_default()] {
        out.extend((part.len() as u64).to_le_bytes());
        out.extend(part);
    }
    out.extend(&object.bytes);
    out
}

fn decode(bytes: &[u8]) -> Option<Object> {
    let (info, bytes) = part(bytes)?;
    let (cold_paths, code) = part(bytes)?;
    Some(Object {
        bytes: code.to_vec(),
        cold_paths: (!cold_paths.is_empty()).then(|| cold_paths.to_vec()),
        info: KernelInfo::from_bytes(info)?,
    })
}

/// Takes one part off what [`encode`] wrote.
fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    rest.split_at_checked(length)
}

/// Cold paths that are compiled, or will be, and what they take of the stack.
type Running = Arc<Compilation<(ColdPaths, u64)>>;

/// A program, and where its cold paths are kept.
struct Compiled {
    program: Arc<Program>,
    cache: Option<Arc<Cache>>,
    /// That of its cold paths, once they were needed.
    cold_paths: Mutex<Option<Running>>,
}

// SAFETY: the compiler made the code by the interface, and states the scratch memory that it uses.
unsafe impl Code for Compiled {
    fn entry(&self) -> Entry {
        self.program.entry()
    }

    fn stack_bytes(&self) -> u64 {
        self.program.info().stack_bytes
    }

    fn cold_paths_now(&self) -> Option<(ColdPaths, u64)> {
        self.program.cold_paths_now()
    }

    fn cold_paths(&self, patience: &Patience<'_>) -> Result<(ColdPaths, u64), Error> {
        if let Some(found) = self.program.cold_paths_now() {
            return Ok(found);
        }
        let compilation = {
            let mut cold_paths = lock(&self.cold_paths);
            cold_paths.take_if(|compilation| !compilation.is_here());
            cold_paths
                .get_or_insert_with(|| {
                    let (program, cache) = (self.program.clone(), self.cache.clone());
                    Compilation::begin(move || compiled_cold_paths(&program, cache.as_deref()))
                })
                .clone()
        };
        compilation.wait(patience)
    }

    unsafe fn scratch_bytes(&self, launch: &Launch) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { self.program.scratch_bytes(launch) }
    }
}

/// The cold paths of a program, from the disk or compiled.
fn compiled_cold_paths(
    program: &Program,
    cache: Option<&Cache>,
) -> Result<(ColdPaths, u64), Error> {
    let compile = |source: &[u8], target| {
        let Some(cache) = cache else {
            return compile_cold_paths(source, target);
        };
        let key = Key::of(&[b"cold paths", made_by(target)?.as_bytes(), source]);
        if let Some(object) = cache.load(&key) {
            return Ok(object);
        }
        let object = compile_cold_paths(source, target)?;
        cache.store(&key, &object);
        Ok(object)
    };
    program.cold_paths(compile).map_err(lost)?;
    let missing = || lost(LoadError("it has no cold paths".to_string()));
    program.cold_paths_now().ok_or_else(missing)
}
