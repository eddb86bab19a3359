//! LLVM, linked into the program (the feature `static`): there is nothing to load.
//!
//! Deliberately absent: `INVAR_LLVM`, which names a library to load.

use std::ffi::{c_int, c_void};

use inkwell::llvm_sys::core::LLVMGetVersion;

use crate::target::Target;

/// LLVM is there.
///
/// # Errors
/// None.
pub fn load() -> Result<(), String> {
    Ok(())
}

/// What tells this LLVM from another, for the key of a cache: its version.
///
/// # Errors
/// None.
#[expect(
    clippy::unnecessary_wraps,
    reason = "a library that is loaded may be missing"
)]
pub fn identity() -> Result<String, String> {
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: the three numbers are there to be written.
    unsafe { LLVMGetVersion(&mut major, &mut minor, &mut patch) };
    Ok(format!("LLVM {major}.{minor}.{patch}, linked"))
}

/// LLVM is there.
///
/// # Errors
/// None.
pub fn look_for() -> Result<(), String> {
    Ok(())
}

/// Whether it has a function that programs name: all are linked.
pub(crate) fn has(_function: &str) -> bool {
    true
}

/// Its release.
pub(crate) fn release() -> u32 {
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: the three numbers are there to be written.
    unsafe { LLVMGetVersion(&mut major, &mut minor, &mut patch) };
    major
}

/// What LLVM's headers have in place of functions, by which `inkwell` makes this processor known. All has gone
/// well if it is 0.
macro_rules! native {
    ($($name:ident)*) => {
        $(
            // SAFETY: LLVM's libraries have no function of the name.
            #[unsafe(no_mangle)]
            extern "C" fn $name() -> c_int {
                c_int::from(Target::Native.processor().initialise().is_err())
            }
        )*
    };
}
native! {
    LLVM_InitializeNativeAsmParser LLVM_InitializeNativeAsmPrinter LLVM_InitializeNativeDisassembler
    LLVM_InitializeNativeTarget
}

/// LLVM's interpreter, which `inkwell` names, is left out: it would bring libffi along, and nothing uses it.
// SAFETY: LLVM's library with a function of the name is not linked.
#[unsafe(no_mangle)]
extern "C" fn LLVMLinkInInterpreter() {}

/// Random bits for LLVM's names of temporary files. The C library has the function from 2.36 on only; with one of
/// our own, programs run on systems with an older one.
// SAFETY: it does what the C library's does, and no library sees it.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[unsafe(no_mangle)]
extern "C" fn arc4random() -> u32 {
    let mut bits = 0u32;
    let place = (&raw mut bits).cast::<c_void>();
    // SAFETY: the four bytes are there to be written. So few are always given at once, but before a machine has
    // any, for which this waits.
    let got = unsafe { libc::getrandom(place, size_of::<u32>(), 0) };
    assert_eq!(got, 4, "the system gives no random bytes");
    bits
}
