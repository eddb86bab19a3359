//! Memory between guard pages, and the name of what ran when one was touched.
//!
//! Bytes lie right behind the pages before them or right before those behind them: an access beyond that
//! end kills the process, also one whose value is not used. At the other end there is room up to the
//! pages, which must stay as it was. There are many such pages, since an index that nothing has checked is
//! seldom wrong by little.
//!
//! Deliberately absent: systems other than Unix.

use std::io::{Error, Result};
use std::ptr::NonNull;
use std::sync::Once;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use invar_interp::Arg;
use invar_ir::{Kernel, ParamKind};

/// Which end of the bytes touches a guard page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Their first byte is the first of a page.
    Start,
    /// Their last byte is the last of a page.
    End,
}

impl Side {
    /// Both.
    pub const ALL: [Side; 2] = [Side::Start, Side::End];
}

/// Bytes between guard pages.
///
/// ```
/// use invar_conformance::{Guarded, Side};
///
/// let memory = Guarded::new(&[1, 2, 3], Side::End)?;
/// assert_eq!(memory.contents(), Ok(vec![1, 2, 3]));
/// // SAFETY: the byte before the first is in the page.
/// unsafe { *memory.start().sub(1) = 0 };
/// assert!(memory.contents().is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Guarded {
    /// The mapping, with all pages.
    map: NonNull<u8>,
    map_bytes: usize,
    /// Where the pages that may be touched begin, how many bytes they have, and where in them the bytes lie.
    page_offset: usize,
    page_bytes: usize,
    start: usize,
    size: usize,
}

/// Bytes of guard pages on each side.
const GUARD_BYTES: usize = 1 << 20;
/// What lies beside the bytes in their own pages.
const BESIDE: u8 = 0xa5;

// SAFETY: the mapping is this value's own, and what it gives out is a pointer.
unsafe impl Send for Guarded {}
// SAFETY: as above; `contents` only reads.
unsafe impl Sync for Guarded {}

impl Guarded {
    /// A copy of these bytes.
    ///
    /// # Errors
    /// The system has no more memory or mappings.
    pub fn new(bytes: &[u8], side: Side) -> Result<Guarded> {
        let guarded = Guarded::zeros(bytes.len(), side)?;
        // SAFETY: the pages are this value's own and may be written; the bytes fit from their start on.
        unsafe {
            bytes
                .as_ptr()
                .copy_to_nonoverlapping(guarded.start(), bytes.len());
        }
        Ok(guarded)
    }

    /// So many bytes, all of them 0. There may be more than the system has memory for: it has some for pages that
    /// are touched.
    ///
    /// # Errors
    /// The system has no more memory or mappings.
    ///
    /// ```
    /// use invar_conformance::{Guarded, Side};
    ///
    /// let memory = Guarded::zeros(3, Side::Start)?;
    /// assert_eq!(memory.contents(), Ok(vec![0; 3]));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn zeros(size: usize, side: Side) -> Result<Guarded> {
        // SAFETY: it asks for a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let page = usize::try_from(page).map_err(|_| Error::last_os_error())?;
        let guard = GUARD_BYTES.next_multiple_of(page);
        let page_bytes = size.next_multiple_of(page);
        let map_bytes = page_bytes + 2 * guard;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let anywhere = std::ptr::null_mut();
        // SAFETY: a new mapping at no given address replaces no other.
        let map = unsafe { libc::mmap(anywhere, map_bytes, libc::PROT_NONE, kind, -1, 0) };
        let map = NonNull::new(map.cast::<u8>()).filter(|_| map != libc::MAP_FAILED);
        let guarded = Guarded {
            map: map.ok_or_else(Error::last_os_error)?,
            map_bytes,
            page_offset: guard,
            page_bytes,
            start: match side {
                Side::Start => 0,
                Side::End => page_bytes - size,
            },
            size,
        };
        guarded.allow(libc::PROT_READ | libc::PROT_WRITE)?;
        let end = guarded.start + size;
        // SAFETY: the pages are this value's own and may be written, and these parts of them lie beside the bytes.
        unsafe {
            guarded.pages().write_bytes(BESIDE, guarded.start);
            let behind = guarded.pages().add(end);
            behind.write_bytes(BESIDE, page_bytes - end);
        }
        Ok(guarded)
    }

    /// From now on they are read-only.
    ///
    /// # Errors
    /// The system has no more memory or mappings.
    pub fn forbid_writes(&self) -> Result<()> {
        self.allow(libc::PROT_READ)
    }

    /// Where the first byte is.
    pub fn start(&self) -> *mut u8 {
        self.pages().wrapping_add(self.start)
    }

    /// How many bytes there are.
    pub fn size_bytes(&self) -> usize {
        self.size
    }

    /// What the bytes are now.
    ///
    /// # Errors
    /// A sentence, if something beside them was written.
    pub fn contents(&self) -> std::result::Result<Vec<u8>, String> {
        // SAFETY: the pages may be read, and the caller has them not written meanwhile.
        let pages = unsafe { std::slice::from_raw_parts(self.pages(), self.page_bytes) };
        let (before, rest) = pages.split_at(self.start);
        let (bytes, after) = rest.split_at(self.size);
        match before.iter().chain(after).all(|byte| *byte == BESIDE) {
            true => Ok(bytes.to_vec()),
            false => Err("something outside of a buffer was written".to_string()),
        }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the bytes may be read, and they are not written while this is borrowed.
        unsafe { std::slice::from_raw_parts(self.start(), self.size) }
    }

    /// Only of memory that may be written.
    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the bytes may be read, and this alone has them while it is borrowed. What writes to
        // pages that may not be written is ended.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.size) }
    }

    fn pages(&self) -> *mut u8 {
        self.map.as_ptr().wrapping_add(self.page_offset)
    }

    fn allow(&self, access: libc::c_int) -> Result<()> {
        if self.page_bytes == 0 {
            return Ok(());
        }
        // SAFETY: the pages are part of this value's own mapping.
        match unsafe { libc::mprotect(self.pages().cast(), self.page_bytes, access) } {
            0 => Ok(()),
            _ => Err(Error::last_os_error()),
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this size, and this was its only owner.
        unsafe { libc::munmap(self.map.as_ptr().cast(), self.map_bytes) };
    }
}

/// Runs a kernel on copies of its arguments in guarded memory, of which what it only reads cannot be written;
/// the arguments hold afterwards what it left.
///
/// # Errors
/// What the kernel's run says. If something beside a buffer was written, or the system has no memory, what
/// `or` makes of a sentence.
pub fn run_guarded<R, E>(
    kernel: &Kernel,
    args: &mut [Arg<'static>],
    side: Side,
    or: impl Fn(String) -> E,
    run: impl FnOnce(&mut [Arg<'_>]) -> std::result::Result<R, E>,
) -> std::result::Result<R, E> {
    let mut memory = Vec::new();
    for (param, arg) in kernel.params.iter().zip(&*args) {
        let writable = match &param.kind {
            ParamKind::Buffer { access, .. } => access.can_write(),
            ParamKind::Constant { .. } => false,
            ParamKind::Texture(texture) => texture.access.memory().can_write(),
            ParamKind::Scalar { .. } | ParamKind::Threadgroup { .. } | ParamKind::Sampler => {
                memory.push(None);
                continue;
            }
        };
        let guarded = Guarded::new(arg.bytes(), side).and_then(|guarded| {
            if !writable {
                guarded.forbid_writes()?;
            }
            Ok((guarded, writable))
        });
        memory.push(Some(guarded.map_err(|error| or(error.to_string()))?));
    }
    let mut given: Vec<Arg<'_>> = (memory.iter_mut().zip(&*args))
        .map(|(guarded, arg)| match (guarded, arg) {
            (Some((memory, writable)), _) => {
                let memory = match writable {
                    true => Arg::Buffer(memory.bytes_mut()),
                    false => Arg::ReadBuffer(memory.bytes()),
                };
                match arg {
                    Arg::Texture(shape, _) => Arg::Texture(*shape, Box::new(memory)),
                    _buffer => memory,
                }
            }
            (None, arg) => arg.copy(),
        })
        .collect();
    let done = run(&mut given)?;
    drop(given);
    for (arg, guarded) in args.iter_mut().zip(&memory) {
        let Some((guarded, writable)) = guarded else {
            continue;
        };
        let bytes = guarded.contents().map_err(&or)?;
        if *writable {
            *arg = arg.holding(bytes);
        }
    }
    Ok(done)
}

/// The same arguments, with buffers of their own.
pub fn owned(args: &[Arg<'_>]) -> Vec<Arg<'static>> {
    args.iter().map(Arg::copy).collect()
}

// ---- what ran ----

/// The longest name that is kept.
const NAME_BYTES: usize = 200;

/// A name that a fault can be told by: fixed memory, which a signal handler may read at any time.
struct Name {
    taken: AtomicUsize,
    bytes: [AtomicU8; NAME_BYTES],
}

/// As many as run at once, and more.
static NAMES: [Name; 64] = [const {
    Name {
        taken: AtomicUsize::new(FREE),
        bytes: [const { AtomicU8::new(0) }; NAME_BYTES],
    }
}; 64];

const FREE: usize = usize::MAX;

/// While this is kept, a fault of this process is reported with its name on standard error.
#[derive(Debug)]
#[must_use = "the name goes with it"]
pub struct Running(Option<usize>);

impl Running {
    /// A part of the name's text, which may be long.
    ///
    /// ```
    /// let running = invar_conformance::Running::named("seed 7");
    /// // A kernel runs.
    /// drop(running);
    /// ```
    pub fn named(name: &str) -> Running {
        static HANDLER: Once = Once::new();
        HANDLER.call_once(report_faults);
        let size = name.len().min(NAME_BYTES);
        let free = NAMES.iter().position(|slot| {
            let taken = (slot.taken).compare_exchange(FREE, 0, Ordering::AcqRel, Ordering::Relaxed);
            taken.is_ok()
        });
        if let Some(slot) = free.map(|at| &NAMES[at]) {
            for (to, byte) in slot.bytes.iter().zip(name.as_bytes()) {
                to.store(*byte, Ordering::Relaxed);
            }
            slot.taken.store(size, Ordering::Release);
        }
        Running(free)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(at) = self.0 {
            NAMES[at].taken.store(FREE, Ordering::Release);
        }
    }
}

/// What was done about faults before.
static BEFORE: std::sync::OnceLock<[(libc::c_int, libc::sigaction); 2]> =
    std::sync::OnceLock::new();

/// Has faults reported, and then treated as before.
fn report_faults() {
    let handle = |signal: libc::c_int| {
        // SAFETY: all bytes zero are an action; the handler calls only what a signal handler may.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let mut before: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut before);
            action.sa_sigaction = on_fault as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            (signal, before, action)
        }
    };
    let both = [libc::SIGSEGV, libc::SIGBUS].map(handle);
    // Known before any of them comes.
    let _ = BEFORE.set(both.map(|(signal, before, _)| (signal, before)));
    for (signal, _, action) in &both {
        // SAFETY: as above.
        unsafe { libc::sigaction(*signal, action, std::ptr::null_mut()) };
    }
}

extern "C" fn on_fault(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    let say = |bytes: &[u8]| {
        // SAFETY: the bytes are there; a signal handler may call it. Nothing can be done if it fails.
        unsafe { libc::write(2, bytes.as_ptr().cast(), bytes.len()) };
    };
    // SAFETY: the system hands a valid one to a handler of this kind, and these signals have an address.
    let address = unsafe { (*info).si_addr() } as usize;
    let mut digits = [b'0'; 16];
    for (at, digit) in digits.iter_mut().rev().enumerate() {
        *digit = b"0123456789abcdef"[address >> (4 * at) & 15];
    }
    say(b"\na fault at address 0x");
    say(&digits);
    say(b", while these ran:\n");
    for slot in &NAMES {
        let size = slot.taken.load(Ordering::Acquire);
        if size == FREE {
            continue;
        }
        let mut name = [0; NAME_BYTES];
        for (to, byte) in name.iter_mut().zip(&slot.bytes) {
            *to = byte.load(Ordering::Relaxed);
        }
        say(b"    ");
        say(&name[..size]);
        say(b"\n");
    }
    // The instruction is made again, and faults again.
    if let Some((_, before)) = (BEFORE.get()).and_then(|all| all.iter().find(|b| b.0 == signal)) {
        // SAFETY: it was the action before.
        unsafe { libc::sigaction(signal, before, std::ptr::null_mut()) };
    }
}
