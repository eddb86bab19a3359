//! A compiled kernel in memory, ready to be called.

use std::ffi::{CStr, CString, c_char};
use std::sync::OnceLock;

use inkwell::llvm_sys::core::LLVMCreateMemoryBufferWithMemoryRangeCopy;
use inkwell::llvm_sys::error::{LLVMDisposeErrorMessage, LLVMErrorRef, LLVMGetErrorMessage};
use inkwell::llvm_sys::orc2::lljit::{
    LLVMOrcCreateLLJIT, LLVMOrcDisposeLLJIT, LLVMOrcLLJITAddObjectFile,
    LLVMOrcLLJITGetMainJITDylib, LLVMOrcLLJITLookup, LLVMOrcLLJITMangleAndIntern, LLVMOrcLLJITRef,
};
use inkwell::llvm_sys::orc2::{
    LLVMJITEvaluatedSymbol, LLVMJITSymbolFlags, LLVMJITSymbolGenericFlags, LLVMOrcAbsoluteSymbols,
    LLVMOrcCSymbolMapPair, LLVMOrcJITDylibDefine,
};

use crate::abi::{ColdPaths, Entry, Launch, NO_COLD_PATH};
use crate::called::functions;
use crate::library::load;
use crate::link::{Linked, link};
use crate::object::{KernelInfo, Object};
use crate::target::Target;

/// Why an object cannot be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError(pub String);

impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the compiled kernel cannot be loaded: {}", self.0)
    }
}

impl std::error::Error for LoadError {}

/// A compiled kernel in memory.
pub struct Program {
    entry: Entry,
    info: KernelInfo,
    /// [`Object::cold_paths`].
    cold_paths: Option<Vec<u8>>,
    /// Their code, once something went there.
    compiled: OnceLock<Result<Loaded, LoadError>>,
    #[expect(dead_code, reason = "the code is there as long as this is")]
    code: Code,
}

/// Cold paths in memory.
struct Loaded {
    function: ColdPaths,
    /// What they take of the stack.
    stack_bytes: u64,
    #[expect(dead_code, reason = "the code is there as long as this is")]
    code: Code,
}

/// What runs the cold paths of a kernel that has none.
unsafe extern "C" fn no_cold_paths(_: *const Launch, _: u32, _: *mut u8) -> u32 {
    NO_COLD_PATH
}

/// What keeps code in memory.
enum Code {
    /// That of an object that needs little from elsewhere.
    Linked(#[expect(dead_code, reason = "as above")] Linked),
    /// That of any other.
    Jit(#[expect(dead_code, reason = "as above")] Jit),
}

impl Code {
    /// Links an object, and says where its function of this name is.
    fn load(object: &[u8], name: &CStr) -> Result<(usize, Code), LoadError> {
        match link(object, name.to_bytes(), &functions()) {
            Some(linked) => Ok((linked.entry() as usize, Code::Linked(linked))),
            None => {
                let (address, jit) = Jit::load(object, name)?;
                Ok((address, Code::Jit(jit)))
            }
        }
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").field("info", &self.info).finish()
    }
}

fn check(error: LLVMErrorRef) -> Result<(), LoadError> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the error is LLVM's own, and taking its message consumes it.
    unsafe {
        let text: *mut c_char = LLVMGetErrorMessage(error);
        let message = CStr::from_ptr(text).to_string_lossy().into_owned();
        LLVMDisposeErrorMessage(text);
        Err(LoadError(message))
    }
}

impl Program {
    /// Links an object into this process.
    ///
    /// # Errors
    /// If the object is for another processor or is not one that this crate made.
    pub fn load(object: &Object) -> Result<Program, LoadError> {
        if !object.info.target.runs_here() {
            let name = object.info.target.name();
            return Err(LoadError(format!(
                "it is for {name}, which is not this machine"
            )));
        }
        let (address, code) = Code::load(&object.bytes, ENTRY_NAME)?;
        // SAFETY: this is the function that the compiler made under this name, of this type, and its code
        // stays where it is as long as `code` does.
        let entry = unsafe { std::mem::transmute::<usize, Entry>(address) };
        Ok(Program {
            entry,
            info: object.info.clone(),
            cold_paths: object.cold_paths.clone(),
            compiled: OnceLock::new(),
            code,
        })
    }

    /// What to call.
    pub fn entry(&self) -> Entry {
        self.entry
    }

    /// What runs cold paths, for [`Launch::cold_paths`], if it can be had without compiling anything, and what they take
    /// of the stack, in bytes.
    pub fn cold_paths_now(&self) -> Option<(ColdPaths, u64)> {
        if self.cold_paths.is_none() {
            return Some((no_cold_paths, 0));
        }
        let found = self.compiled.get()?.as_ref().ok()?;
        Some((found.function, found.stack_bytes))
    }

    /// What runs cold paths, for [`Launch::cold_paths`]. The first call compiles them by `compile`, which is
    /// [`crate::compile_cold_paths`] or does the same; others wait for it.
    ///
    /// # Errors
    /// If that fails, or gives something else than an object file with cold paths.
    pub fn cold_paths(
        &self,
        compile: impl FnOnce(&[u8], Target) -> Result<Vec<u8>, String>,
    ) -> Result<ColdPaths, LoadError> {
        let Some(source) = &self.cold_paths else {
            return Ok(no_cold_paths);
        };
        let found = self.compiled.get_or_init(|| {
            let bytes = compile(source, self.info.target).map_err(LoadError)?;
            let cut = || LoadError("its cold paths are cut off".to_string());
            let (stack_bytes, object) = bytes.split_first_chunk::<8>().ok_or_else(cut)?;
            let (address, code) = Code::load(object, COLD_PATHS_NAME)?;
            // SAFETY: as in `load`.
            let function = unsafe { std::mem::transmute::<usize, ColdPaths>(address) };
            Ok(Loaded {
                function,
                stack_bytes: u64::from_le_bytes(*stack_bytes),
                code,
            })
        });
        match found {
            Ok(loaded) => Ok(loaded.function),
            Err(error) => Err(error.clone()),
        }
    }

    /// What is known of the kernel.
    pub fn info(&self) -> &KernelInfo {
        &self.info
    }

    /// How much scratch memory each worker needs for this launch, in bytes.
    ///
    /// # Safety
    /// The launch's arguments must be as many as the kernel's parameters.
    pub unsafe fn scratch_bytes(&self, launch: &Launch) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { self.info.scratch_bytes(launch) }
    }
}

impl Program {
    /// The bytes of a worker's scratch memory that nothing may change: around each threadgroup array, threadgroup
    /// parameter and thread array, if the kernel was compiled so ([`crate::CompileOptions::red_zones`]), else none.
    ///
    /// # Safety
    /// As of [`Program::scratch_bytes`].
    pub unsafe fn red_zones(&self, launch: &Launch) -> Vec<std::ops::Range<u64>> {
        // SAFETY: the caller's promise.
        unsafe { self.info.red_zones(launch) }
    }
}

/// Gives a JIT the functions that code may call.
fn define_functions(jit: LLVMOrcLLJITRef) -> Result<(), LoadError> {
    let flags = LLVMJITSymbolGenericFlags::LLVMJITSymbolGenericFlagsExported as u8
        | LLVMJITSymbolGenericFlags::LLVMJITSymbolGenericFlagsCallable as u8;
    for (name, function) in functions() {
        let name = CString::new(name).map_err(|e| LoadError(e.to_string()))?;
        // SAFETY: the JIT is alive; the name's reference and the unit belong to it once defined.
        unsafe {
            let mut pair = LLVMOrcCSymbolMapPair {
                Name: LLVMOrcLLJITMangleAndIntern(jit, name.as_ptr()),
                Sym: LLVMJITEvaluatedSymbol {
                    Address: function as u64,
                    Flags: LLVMJITSymbolFlags {
                        GenericFlags: flags,
                        TargetFlags: 0,
                    },
                },
            };
            let unit = LLVMOrcAbsoluteSymbols(&mut pair, 1);
            check(LLVMOrcJITDylibDefine(
                LLVMOrcLLJITGetMainJITDylib(jit),
                unit,
            ))?;
        }
    }
    Ok(())
}

/// LLVM's own linker, which holds what it linked.
pub(crate) struct Jit(LLVMOrcLLJITRef);

// SAFETY: after loading, the code is only read and called, and nothing touches the JIT until it is
// disposed of, which needs the only reference.
unsafe impl Send for Jit {}
// SAFETY: as above.
unsafe impl Sync for Jit {}

impl Jit {
    /// Links an object, and says where its function of this name is.
    pub fn load(object: &[u8], name: &CStr) -> Result<(usize, Jit), LoadError> {
        load().map_err(LoadError)?;
        Target::Native.processor().initialise().map_err(LoadError)?;
        // SAFETY: every object is made, used and handed over as LLVM's C interface says: the buffer
        // belongs to the JIT once added, and `Jit` disposes of itself on every way out.
        unsafe {
            let mut jit: LLVMOrcLLJITRef = std::ptr::null_mut();
            check(LLVMOrcCreateLLJIT(&mut jit, std::ptr::null_mut()))?;
            let own = Jit(jit);
            let library = LLVMOrcLLJITGetMainJITDylib(jit);
            define_functions(jit)?;
            let buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(
                object.as_ptr().cast(),
                object.len(),
                c"kernel".as_ptr(),
            );
            check(LLVMOrcLLJITAddObjectFile(jit, library, buffer))?;
            let mut address = 0;
            check(LLVMOrcLLJITLookup(jit, &mut address, name.as_ptr()))?;
            Ok((address as usize, own))
        }
    }
}

impl Drop for Jit {
    fn drop(&mut self) {
        // SAFETY: the JIT is ours and nothing uses it any more. An error in taking it down leaves
        // nothing to be done.
        let _ = check(unsafe { LLVMOrcDisposeLLJIT(self.0) });
    }
}

/// The name of the one function that an object exports.
pub(crate) const ENTRY_NAME: &CStr = c"invar_kernel";
/// As [`ENTRY_NAME`], of an object of cold paths.
pub(crate) const COLD_PATHS_NAME: &CStr = c"invar_cold_paths";
