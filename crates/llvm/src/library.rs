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
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::UNIX_EPOCH;

use inkwell::llvm_sys::core::LLVMGetVersion;
use invar_ir::once::Once;
use libloading::Library;

use crate::functions::{NAMES, TABLE, invar_llvm_functions};
use crate::target::Target;

/// The releases of LLVM that are taken, the best known first. The code is written to the interface of the first;
/// the later ones have all of it that is used.
const RELEASES: [u32; 4] = [19, 20, 21, 22];

/// Names the library's file, wherever it is.
const VARIABLE: &str = "INVAR_LLVM";

/// Loads LLVM's library, once. The environment's `INVAR_LLVM` says where it is, if it is not where the system
/// looks for libraries.
///
/// # Errors
/// A sentence that says what to install, if there is none, or what keeps it from being loaded.
pub fn load() -> Result<(), String> {
    found().as_ref().map(|_| ()).map_err(Clone::clone)
}

/// What tells this library from another, for the key of a cache: its file, size and time, where the file can be
/// seen from here, or else its version, for which it is loaded. Loading takes ten times as long as all else that
/// a kernel needs which has been compiled before.
///
/// # Errors
/// A sentence that says what to install, where the library has to be loaded for it and cannot be.
pub fn identity() -> Result<String, String> {
    if let Some((path, file)) = usual_file() {
        let changed = file.modified().ok();
        let changed = changed.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let (path, size) = (path.display(), file.len());
        return Ok(format!("{path} of {size} bytes, {changed:?}"));
    }
    load()?;
    Ok(version())
}

/// The version of the library that is loaded.
fn version() -> String {
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: the three numbers are there to be written.
    unsafe { LLVMGetVersion(&mut major, &mut minor, &mut patch) };
    format!("LLVM {major}.{minor}.{patch}")
}

/// Whether there is a library to load, as far as that shows without loading it.
///
/// # Errors
/// A sentence that says what to install, if there is none, or what keeps it from being loaded.
pub fn look_for() -> Result<(), String> {
    identity().map(drop)
}

/// The file that will be loaded, unless a setting of the system's loader says where else to look.
fn usual_file() -> Option<(PathBuf, Metadata)> {
    let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    let files = match env::var_os(VARIABLE).filter(|file| !file.is_empty()) {
        Some(file) => vec![file],
        None if is_set("LD_LIBRARY_PATH") || is_set("DYLD_LIBRARY_PATH") => return None,
        None => usual_files(),
    };
    let architecture = format!("/usr/lib/{}-linux-gnu", env::consts::ARCH);
    let folders = ["/usr/local/lib", &architecture, "/usr/lib64", "/usr/lib"];
    let paths = files.into_iter().map(PathBuf::from).flat_map(|file| {
        // What has a folder in its name is not looked for elsewhere.
        let is_path = file.components().count() > 1;
        let folders = if is_path { &[""][..] } else { &folders[..] };
        folders
            .iter()
            .map(|folder| Path::new(folder).join(&file))
            .collect::<Vec<_>>()
    });
    paths.into_iter().find_map(|path| {
        let file = std::fs::metadata(&path).ok()?;
        file.is_file().then_some((path, file))
    })
}

/// The release of LLVM that was loaded.
pub(crate) fn release() -> u32 {
    *found().as_ref().expect("LLVM, which what calls this uses")
}

/// The release of the library, once it is loaded.
fn found() -> &'static Result<u32, String> {
    static LOADED: Once<Result<u32, String>> = Once::new();
    LOADED.get_or_make(find)
}

fn find() -> Result<u32, String> {
    let given = env::var_os(VARIABLE).filter(|file| !file.is_empty());
    let files = match &given {
        Some(file) => vec![file.clone()],
        None => usual_files(),
    };
    // The first is the usual place.
    let mut why: Option<String> = None;
    for file in files {
        // SAFETY: a library of LLVM does nothing at its start but to set up what it has.
        match unsafe { open(&file) } {
            Ok((library, release)) => {
                fill(&library);
                // What came from it may be used until the process ends.
                std::mem::forget(library);
                return Ok(release);
            }
            Err(LibraryError::OutOfMemory(reason)) => return Err(out_of_memory(&reason)),
            Err(LibraryError::Other(reason)) => {
                why.get_or_insert(reason);
            }
        }
    }
    let why = why.unwrap_or_default();
    let [first, .., last] = RELEASES;
    Err(match given {
        Some(_) => format!(
            "the environment's {VARIABLE} names no library of LLVM {first} to {last} ({why}): give the path of \
             libLLVM, or unset it"
        ),
        None => format!(
            "the device `cpu` needs LLVM {first} to {last}, whose library was not found ({why}): install it \
             (Debian and Ubuntu: libllvm{first}, Fedora and Arch: llvm-libs, Homebrew: llvm@{first}, \
             Windows: LLVM {first}'s installer), or give its path in {VARIABLE}"
        ),
    })
}

/// Why a library is not used.
#[derive(Debug, PartialEq, Eq)]
enum LibraryError {
    /// It is there, and has no room.
    OutOfMemory(String),
    /// It is not there, or is another.
    Other(String),
}

impl LibraryError {
    /// By what the system's loader says.
    fn of(reason: String) -> LibraryError {
        let says = |what: &str| reason.to_lowercase().contains(what);
        // The GNU loader says no more than that, also of a file in a place of which nothing may be run.
        let maps_not = says("failed to map segment") || says("cannot map zero-fill pages");
        if says("cannot allocate memory") || maps_not && addresses_are_limited() {
            LibraryError::OutOfMemory(reason)
        } else {
            LibraryError::Other(reason)
        }
    }
}

/// Whether the process may have only so many addresses (`ulimit -v`), where the system tells.
fn addresses_are_limited() -> bool {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max address space"));
    line.and_then(|line| line.split_whitespace().next())
        .is_some_and(|most| most != "unlimited")
}

fn out_of_memory(reason: &str) -> String {
    let [first, .., last] = RELEASES;
    format!(
        "the device `cpu` needs LLVM {first} to {last}, for whose library there is too little memory ({reason}): allow \
         the process more, as by `ulimit -v unlimited`, or run on another device"
    )
}

/// What the library is called, and where Homebrew and LLVM's installer for Windows keep it.
fn usual_files() -> Vec<OsString> {
    let names = |release: u32| {
        if cfg!(target_vendor = "apple") {
            vec![
                format!("/opt/homebrew/opt/llvm@{release}/lib/libLLVM.dylib"),
                format!("/usr/local/opt/llvm@{release}/lib/libLLVM.dylib"),
                format!("libLLVM-{release}.dylib"),
            ]
        } else if cfg!(windows) {
            Vec::new()
        } else {
            vec![
                format!("libLLVM.so.{release}.1"),
                format!("libLLVM-{release}.so"),
                format!("/home/linuxbrew/.linuxbrew/opt/llvm@{release}/lib/libLLVM.so"),
            ]
        }
    };
    // Without a number in the name it may be any release.
    let unnumbered: &[&str] = if cfg!(target_vendor = "apple") {
        &["/opt/homebrew/opt/llvm/lib/libLLVM.dylib", "libLLVM.dylib"]
    } else if cfg!(windows) {
        // Its installer can put the folder on the search path.
        &["LLVM-C.dll", r"C:\Program Files\LLVM\bin\LLVM-C.dll"]
    } else {
        &[]
    };
    let numbered = RELEASES.into_iter().flat_map(names);
    let unnumbered = unnumbered.iter().map(|name| name.to_string());
    numbered.chain(unnumbered).map(OsString::from).collect()
}

/// Opens a library of LLVM of one of the releases; says which.
///
/// # Safety
/// Whatever the file does when it is loaded must be sound.
unsafe fn open(file: &OsString) -> Result<(Library, u32), LibraryError> {
    type Version = unsafe extern "C" fn(*mut c_uint, *mut c_uint, *mut c_uint);
    // SAFETY: the caller's promise.
    let library = unsafe { Library::new(file) }.map_err(|error| match error {
        libloading::Error::DlOpen { desc } => {
            LibraryError::of(format!("{desc:?}").trim_matches('"').to_string())
        }
        other => LibraryError::of(other.to_string()),
    })?;
    let mut major = 0;
    // SAFETY: it is of this type since LLVM 16, and before there is none of the name.
    if let Ok(version) = unsafe { library.get::<Version>(b"LLVMGetVersion\0") } {
        let (mut minor, mut patch) = (0, 0);
        // SAFETY: the three numbers are there to be written.
        unsafe { version(&mut major, &mut minor, &mut patch) };
    }
    if RELEASES.contains(&major) {
        Ok((library, major))
    } else {
        let (file, [first, .., last]) = (file.to_string_lossy(), RELEASES);
        Err(LibraryError::Other(format!(
            "{file} is not LLVM {first} to {last}"
        )))
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
    c_int::from(Target::Native.processor().initialise().is_err())
}

/// Whether the library has this function, one of those of `functions.rs`.
pub(crate) fn has(function: &str) -> bool {
    let named = |name: &&str| name.strip_suffix('\0') == Some(function);
    let at = NAMES.iter().position(named);
    at.is_some_and(|at| {
        TABLE[at].load(Ordering::Acquire) != missing as extern "C" fn() -> ! as *mut c_void
    })
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
// Windows shows only what is exported by name.
#[cfg(windows)]
macro_rules! hidden {
    ($name:ident) => {
        ""
    };
}
#[cfg(not(any(target_vendor = "apple", windows)))]
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

/// These lines of assembly, in which `{table}` is the table. On x86-64 they are in the syntax in which an offset
/// may be a sum of names; elsewhere there is but one.
#[cfg(target_arch = "x86_64")]
macro_rules! assembly {
    ($($line:tt)*) => {
        std::arch::global_asm!($($line)* table = sym TABLE, options(att_syntax));
    };
}
#[cfg(not(target_arch = "x86_64"))]
macro_rules! assembly {
    ($($line:tt)*) => {
        std::arch::global_asm!($($line)* table = sym TABLE);
    };
}
pub(crate) use assembly;

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

        $crate::library::assembly! {
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
        }
    };
}
pub(crate) use functions;
