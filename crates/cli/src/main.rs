//! The `invar` command, as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::var_os("XDG_RUNTIME_DIR").is_none() {
        // Mesa's layer that sorts devices by the desktop they show on would say "error:" about that.
        // SAFETY: there is no other thread yet.
        unsafe { std::env::set_var("NODEVICE_SELECT", "1") };
    }
    ExitCode::from(invar_command::command(std::env::args_os(), &[]))
}
