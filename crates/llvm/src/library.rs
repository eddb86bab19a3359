//! LLVM's library, which is loaded when it is first needed.
//!
//! Nothing links it: a program starts without it, and all but what compiles for the processor works. In its
//! place stands, for each function of LLVM's C interface, a jump to where a table says (`functions.rs`), and
//! [`load`] fills the table.
//!
//! Invariant: whatever calls LLVM has been let through by [`load`]; a call of a function that the library lacks
//! ends the process. Deliberately absent: unloading, since LLVM hands out memory of its own.

use std::env;
use std::ffi::{OsString, c_int, c_uint, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use libloading::Library;

use crate::functions::{NAMES, TABLE, invar_llvm_functions};
use crate::target::Target;

/// The release of LLVM whose interface the code is written to.
const RELEASE: u32 = if cfg!(feature = "llvm22") {
    22
} else if cfg!(feature = "llvm21") {
    21
} else if cfg!(feature = "llvm20") {
    20
} else {
    19
};

/// Names the library's file, wherever it is.
const VARIABLE: &str = "INVAR_LLVM";

/// Loads LLVM's library, once. The environment's `INVAR_LLVM` says where it is, if it is not where the system
/// looks for libraries.
///
/// # Errors
/// A sentence that says what to install, if there is none.
pub fn load() -> Result<(), String> {
    static LOADED: OnceLock<Result<(), String>> = OnceLock::new();
    LOADED.get_or_init(find).clone()
}

fn find() -> Result<(), String> {
    let given = env::var_os(VARIABLE).filter(|file| !file.is_empty());
    let files = match &given {
        Some(file) => vec![file.clone()],
        None => usual_files(),
    };
    let mut why = Vec::new();
    for file in files {
        // SAFETY: a library of LLVM does nothing at its start but to set up what it has.
        match unsafe { open(&file) } {
            Ok(library) => {
                fill(&library);
                // What came from it may be used until the process ends.
                std::mem::forget(library);
                return Ok(());
            }
            Err(error) => why.push(error),
        }
    }
    // The first is the usual place.
    let why = why.into_iter().next().unwrap_or_default();
    Err(match given {
        Some(_) => format!(
            "the environment's {VARIABLE} names no library of LLVM {RELEASE} ({why}): give the path of \
             libLLVM, or unset it"
        ),
        None => format!(
            "the device `cpu` needs LLVM {RELEASE}, whose library was not found ({why}): install it \
             (Debian and Ubuntu: libllvm{RELEASE}, Fedora and Arch: llvm{RELEASE}-libs, Homebrew: \
             llvm@{RELEASE}), or give its path in {VARIABLE}"
        ),
    })
}

/// What the library is called, and where Homebrew keeps it.
fn usual_files() -> Vec<OsString> {
    let names = if cfg!(target_vendor = "apple") {
        vec![
            format!("/opt/homebrew/opt/llvm@{RELEASE}/lib/libLLVM.dylib"),
            format!("/usr/local/opt/llvm@{RELEASE}/lib/libLLVM.dylib"),
            format!("libLLVM-{RELEASE}.dylib"),
            "libLLVM.dylib".to_string(),
        ]
    } else {
        vec![
            format!("libLLVM.so.{RELEASE}.1"),
            format!("libLLVM-{RELEASE}.so"),
            format!("/home/linuxbrew/.linuxbrew/opt/llvm@{RELEASE}/lib/libLLVM.so"),
        ]
    };
    names.into_iter().map(OsString::from).collect()
}

/// Opens a library of LLVM of the right release.
///
/// # Safety
/// Whatever the file does when it is loaded must be sound.
unsafe fn open(file: &OsString) -> Result<Library, String> {
    type Version = unsafe extern "C" fn(*mut c_uint, *mut c_uint, *mut c_uint);
    // SAFETY: the caller's promise.
    let library = unsafe { Library::new(file) }.map_err(|error| match error {
        libloading::Error::DlOpen { desc } => format!("{desc:?}").trim_matches('"').to_string(),
        other => other.to_string(),
    })?;
    let mut major = 0;
    // SAFETY: it is of this type since LLVM 16, and before there is none of the name.
    if let Ok(version) = unsafe { library.get::<Version>(b"LLVMGetVersion\0") } {
        let (mut minor, mut patch) = (0, 0);
        // SAFETY: the three numbers are there to be written.
        unsafe { version(&mut major, &mut minor, &mut patch) };
    }
    if major == RELEASE {
        Ok(library)
    } else {
        let file = file.to_string_lossy();
        Err(format!("{file} is not LLVM {RELEASE}"))
    }
}

/// Enters where the functions are. Some are those of other releases.
fn fill(library: &Library) {
    // The jumps are in the program because something names them.
    std::hint::black_box(invar_llvm_functions as *const ());
    for (name, place) in NAMES.iter().zip(&TABLE) {
        // SAFETY: only its address is taken; the declaration that it is called by has its type.
        if let Ok(function) = unsafe { library.get::<unsafe extern "C" fn()>(name.as_bytes()) } {
            place.store(*function as *mut c_void, Ordering::Release);
        } else if name.starts_with("LLVM_InitializeNative") {
            place.store(initialise_native as *mut c_void, Ordering::Release);
        }
    }
}

/// What LLVM's headers have in place of functions, by which `inkwell` makes this processor known. All has gone
/// well if it is 0.
extern "C" fn initialise_native() -> c_int {
    Target::Native.processor().initialise();
    0
}

/// What stands for a function that is not there.
pub(crate) extern "C" fn missing() -> ! {
    // Nothing unwinds through a caller in C: this ends the process.
    panic!("a function of LLVM was called that its library lacks, or before the library was loaded")
}

/// Where a function that was not looked for is.
pub(crate) const fn nowhere() -> AtomicPtr<c_void> {
    AtomicPtr::new(missing as extern "C" fn() -> ! as *mut c_void)
}

/// The line of assembly that names a function as the platform's linkers know it.
macro_rules! symbol {
    ($before:literal, $name:ident, $after:literal) => {
        concat!(
            $before,
            $crate::library::prefix!(),
            stringify!($name),
            $after
        )
    };
}
pub(crate) use symbol;

#[cfg(target_vendor = "apple")]
macro_rules! prefix {
    () => {
        "_"
    };
}
#[cfg(not(target_vendor = "apple"))]
macro_rules! prefix {
    () => {
        ""
    };
}
pub(crate) use prefix;

/// No library or program that the jumps are linked into shows them to others: to those, LLVM's are LLVM's.
#[cfg(target_vendor = "apple")]
macro_rules! hidden {
    ($name:ident) => {
        $crate::library::symbol!(".private_extern ", $name, "")
    };
}
#[cfg(not(target_vendor = "apple"))]
macro_rules! hidden {
    ($name:ident) => {
        $crate::library::symbol!(".hidden ", $name, "")
    };
}
pub(crate) use hidden;

/// A jump to where the table says, at the offset that the assembler counts.
#[cfg(target_arch = "x86_64")]
macro_rules! jump {
    () => {
        "jmpq *{table}+invar_llvm_offset(%rip)"
    };
}
#[cfg(all(target_arch = "aarch64", target_vendor = "apple"))]
macro_rules! jump {
    () => {
        "adrp x16, {table}@PAGE
        add x16, x16, {table}@PAGEOFF
        ldr x16, [x16, #invar_llvm_offset]
        br x16"
    };
}
#[cfg(all(target_arch = "aarch64", not(target_vendor = "apple")))]
macro_rules! jump {
    () => {
        "adrp x16, {table}
        add x16, x16, :lo12:{table}
        ldr x16, [x16, #invar_llvm_offset]
        br x16"
    };
}
pub(crate) use jump;

/// Makes the table of these functions, and the jumps.
macro_rules! functions {
    ($($name:ident)*) => {
        /// Their names, each with a zero at its end.
        pub(crate) const NAMES: &[&str] = &[$(concat!(stringify!($name), "\0")),*];

        /// Where each of them is.
        pub(crate) static TABLE: [AtomicPtr<c_void>; NAMES.len()] =
            [const { $crate::library::nowhere() }; NAMES.len()];

        unsafe extern "C" {
            /// Where the jumps begin.
            pub(crate) fn invar_llvm_functions();
        }

        std::arch::global_asm!(
            ".text",
            $crate::library::symbol!(".globl ", invar_llvm_functions, ""),
            $crate::library::hidden!(invar_llvm_functions),
            $crate::library::symbol!("", invar_llvm_functions, ":"),
            ".set invar_llvm_offset, 0",
            $(
                $crate::library::symbol!(".globl ", $name, ""),
                $crate::library::hidden!($name),
                $crate::library::symbol!("", $name, ":"),
                $crate::library::jump!(),
                ".set invar_llvm_offset, invar_llvm_offset + 8",
            )*
            table = sym TABLE,
            options(att_syntax),
        );
    };
}
pub(crate) use functions;
