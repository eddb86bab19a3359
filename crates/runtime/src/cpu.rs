//! The CPU device: kernels compiled by LLVM for the processor that this runs on, kept on disk.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use invar_ir::{Order, Rule, Scalar, Type, Verified, binary};
use invar_llvm::abi::{Detours, Entry, Launch};
use invar_llvm::{
    CompileOptions, KernelInfo, LoadError, Object, Program, SIMDGROUP_SIZE, Target, compile_detours,
};

use crate::cache::{Cache, Key};
use crate::checked::ATOMICS;
use crate::device::Compiler;
use crate::environment::processor;
use crate::executor::thread_limit;
use crate::native::Code;
use crate::work::failed;
use crate::{Capabilities, Error};

/// What the CPU device can do.
pub(crate) fn capabilities() -> Capabilities {
    let floats = Scalar::ALL.into_iter().filter(|s| s.is_float());
    let matrix = |scalar| Type::SimdgroupMatrix {
        scalar,
        rows: 8,
        columns: 8,
    };
    Capabilities {
        name: "cpu".to_string(),
        family: match std::env::consts::ARCH {
            "x86_64" => "x86-64".to_string(),
            other => other.to_string(),
        },
        description: processor().description(),
        host_threads: thread_limit() as u32,
        simdgroup_size: SIMDGROUP_SIZE,
        simdgroup_sizes: vec![SIMDGROUP_SIZE],
        threadgroup_memory_bytes: 64 << 10,
        threads_per_threadgroup: 1024,
        buffer_bytes: isize::MAX as u64,
        constant_buffer_bytes: isize::MAX as u64,
        constant_offset_bytes: 1,
        types: Scalar::ALL.to_vec(),
        ieee_float: floats.clone().collect(),
        atomics: ATOMICS.to_vec(),
        memory_orders: Order::ALL.to_vec(),
        simdgroup_matrices: floats.map(matrix).collect(),
        async_copy: true,
        threadgroup_progress: true,
        own_clock: false,
    }
}

/// Compiles by LLVM, unless it is on disk already.
pub(crate) struct Cpu {
    cache: Option<Arc<Cache>>,
    checks: bool,
}

impl Cpu {
    pub(crate) fn new() -> Cpu {
        Cpu {
            cache: Cache::from_environment().map(Arc::new),
            checks: true,
        }
    }

    /// For measuring what checks cost; nothing of it is kept on disk.
    pub(crate) fn without_checks() -> Cpu {
        Cpu {
            cache: None,
            checks: false,
        }
    }
}

impl Compiler for Cpu {
    fn compile(
        &self,
        module: &Verified,
        kernel: usize,
        threadgroup_size: Option<[u32; 3]>,
    ) -> Result<Arc<dyn Code>, Error> {
        let name = &module.kernels[kernel].name;
        let options = CompileOptions {
            threadgroup_size,
            checks: self.checks,
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
        let compiled = catch_unwind(AssertUnwindSafe(|| {
            invar_llvm::compile(module, name, &options)
        }));
        let object =
            compiled.unwrap_or_else(|panic| Err(failed("compiler", &*panic).into_diagnostics()))?;
        if let Some(cache) = &self.cache {
            cache.store(&key, &encode(&object));
        }
        let program = Program::load(&object).map_err(lost)?;
        Ok(self.code(program))
    }
}

impl Cpu {
    fn code(&self, program: Program) -> Arc<dyn Code> {
        Arc::new(Compiled {
            program,
            cache: self.cache.clone(),
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
pub(crate) fn usable() -> Result<(), Error> {
    invar_llvm::load().map_err(unusable)
}

fn unusable(why: String) -> Error {
    Error::refused(Rule::UnsupportedFeature, why)
}

fn lost(error: LoadError) -> Error {
    Error::refused(Rule::DeviceLost, error.to_string())
}

/// An object as one run of bytes: after the length of each but the last, what is known of it, its detours, and
/// the code.
fn encode(object: &Object) -> Vec<u8> {
    let info = object.info.to_bytes();
    let mut out = Vec::new();
    // Nothing is no detours: a module has some bytes.
    for part in [&info, object.detours.as_deref().unwrap_or_default()] {
        out.extend((part.len() as u64).to_le_bytes());
        out.extend(part);
    }
    out.extend(&object.bytes);
    out
}

fn decode(bytes: &[u8]) -> Option<Object> {
    let (info, bytes) = part(bytes)?;
    let (detours, code) = part(bytes)?;
    Some(Object {
        bytes: code.to_vec(),
        detours: (!detours.is_empty()).then(|| detours.to_vec()),
        info: KernelInfo::from_bytes(info)?,
    })
}

/// Takes one part off what [`encode`] wrote.
fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    rest.split_at_checked(length)
}

/// A program, and where its detours are kept.
struct Compiled {
    program: Program,
    cache: Option<Arc<Cache>>,
}

// SAFETY: the compiler made the code by the interface, and states the scratch memory that it uses.
unsafe impl Code for Compiled {
    fn entry(&self) -> Entry {
        self.program.entry()
    }

    fn detours_now(&self) -> Option<Detours> {
        self.program.detours_now()
    }

    fn detours(&self) -> Result<Detours, Error> {
        let compile = |source: &[u8], target| {
            let Some(cache) = &self.cache else {
                return compile_detours(source, target);
            };
            let key = Key::of(&[b"detours", made_by(target)?.as_bytes(), source]);
            if let Some(object) = cache.load(&key) {
                return Ok(object);
            }
            let object = compile_detours(source, target)?;
            cache.store(&key, &object);
            Ok(object)
        };
        self.program.detours(compile).map_err(lost)
    }

    unsafe fn scratch_bytes(&self, launch: &Launch) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { self.program.scratch_bytes(launch) }
    }
}
