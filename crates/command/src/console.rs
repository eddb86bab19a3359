//! What the command prints, line by line.

use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What kept a line from standard output first, if that was not a reader that has gone away.
static UNWRITTEN: Mutex<Option<io::Error>> = Mutex::new(None);

pub fn unwritten() -> MutexGuard<'static, Option<io::Error>> {
    UNWRITTEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prints a line to standard output. A reader that has gone away is not an error; any other is told at the end.
pub fn show(line: &str) {
    if let Err(error) = writeln!(anstream::stdout(), "{line}")
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        unwritten().get_or_insert(error);
    }
}

/// Prints a line to standard error.
pub fn say(line: &str) {
    let _ = writeln!(anstream::stderr(), "{line}");
}
