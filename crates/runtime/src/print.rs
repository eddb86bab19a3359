//! What kernels print (P1 to P5): how it comes from a device to the host, and to whom it goes.
//!
//! A device either keeps lines itself, or runs the kernel with `print` written out
//! ([`invar_codegen::passes::print`]) and a buffer for each dispatch. A dispatch that prints is waited for
//! when it is submitted, so that its lines are there in time whatever is done next; where that wait is left
//! early they come when the dispatch is waited for again.

use std::io::Write;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use invar_codegen::passes::print::{BUFFER_BYTES, Prints};
use invar_ir::Kernel;
use invar_ir::print::Printed;

use crate::Error;
use crate::bytes::ByteBuffer;
use crate::program::Program;

type Sink = Arc<dyn Fn(&Kernel, &Printed) + Send + Sync>;

static SINK: RwLock<Option<Sink>> = RwLock::new(None);

/// Gives all lines that kernels print from now on to `sink`, on the thread that waits for them; else they go
/// to standard output, and what is said of those left out to standard error. For front ends whose output is
/// elsewhere, as in a notebook.
pub fn on_print(sink: impl Fn(&Kernel, &Printed) + Send + Sync + 'static) {
    *SINK.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(sink));
}

fn give_out(kernel: &Kernel, printed: &Printed) {
    let sink = SINK.read().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(sink) = sink {
        return sink(kernel, printed);
    }
    // A reader that has gone away is not an error of the dispatch.
    let mut out = std::io::stdout().lock();
    for line in &printed.lines {
        let _ = writeln!(out, "{line}");
    }
    let _ = out.flush();
    if let Some(notice) = printed.notice() {
        let _ = writeln!(std::io::stderr(), "kernel `{}`: {notice}", kernel.name);
    }
}

/// The lines of a dispatch, on their way.
pub(crate) struct Lines {
    program: Program,
    /// Where the device leaves them; none where it keeps them itself.
    buffer: Option<ByteBuffer>,
    /// Whether they are kept for who asks and nothing more.
    quiet: bool,
    printed: OnceLock<Printed>,
}

impl Lines {
    /// Those of a dispatch of a program that prints.
    ///
    /// # Errors
    /// `out-of-memory`.
    pub(crate) fn of(program: &Program, quiet: bool) -> Result<Option<Lines>, Error> {
        if !program.has_lines() {
            return Ok(None);
        }
        let buffer = program
            .prints()
            .map(|_| ByteBuffer::zeroed(program.device(), BUFFER_BYTES));
        Ok(Some(Lines {
            program: program.clone(),
            buffer: buffer.transpose()?,
            quiet,
            printed: OnceLock::new(),
        }))
    }

    pub(crate) fn buffer(&self) -> Option<&ByteBuffer> {
        self.buffer.as_ref()
    }

    /// The lines, once they were handed over.
    pub(crate) fn printed(&self) -> Option<&Printed> {
        self.printed.get()
    }

    /// Hands them over, the first time; `own` are those that the device kept itself. The dispatch has ended.
    pub(crate) fn deliver(&self, own: impl FnOnce() -> Printed) {
        if self.printed.get().is_some() {
            return;
        }
        let printed = match (&self.buffer, self.program.prints()) {
            (Some(buffer), Some(prints)) => read(buffer, prints),
            (Some(_), None) | (None, _) => own(),
        };
        // Of several threads that wait, one shows them.
        if self.printed.set(printed).is_ok()
            && !self.quiet
            && let Some(printed) = self.printed.get()
        {
            give_out(self.program.kernel(), printed);
        }
    }
}

/// What a buffer holds after its only dispatch has ended. From a device that failed nothing comes.
fn read(buffer: &ByteBuffer, prints: &Prints) -> Printed {
    // SAFETY: its only dispatch has ended.
    if unsafe { buffer.memory().to_host() }.is_err() {
        return Printed::default();
    }
    let start = buffer.memory().start().cast_const().cast::<u32>();
    // SAFETY: the buffer has these bytes, aligned for numbers of any type, and nothing writes it any more.
    let words = unsafe { std::slice::from_raw_parts(start, BUFFER_BYTES / 4) };
    prints.read(words)
}
