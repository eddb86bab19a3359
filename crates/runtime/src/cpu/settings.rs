//! What the environment says of the CPU device alone.

use invar_llvm::Target;

use crate::Error;
use crate::environment::read;

const STREAM_BYTES: &str = "INVAR_STREAM_BYTES";
const PROCESSOR: &str = "INVAR_PROCESSOR";

/// Refuses values that say nothing.
pub(crate) fn check() -> Result<(), Error> {
    read(STREAM_BYTES, bytes_of)?;
    read(PROCESSOR, processor_of)?;
    Ok(())
}

/// From which size on buffers are written past the caches: `INVAR_STREAM_BYTES`.
pub(crate) fn stream_bytes() -> Option<u64> {
    read(STREAM_BYTES, bytes_of).ok().flatten()
}

/// The processor that the CPU device compiles for: `INVAR_PROCESSOR`.
pub(crate) fn processor() -> Target {
    let given = read(PROCESSOR, processor_of).ok().flatten();
    given.unwrap_or(Target::Native)
}

fn bytes_of(text: &str) -> Result<u64, &'static str> {
    let wanted = "give a number of bytes, such as 33554432";
    text.parse().map_err(|_| wanted)
}

fn processor_of(text: &str) -> Result<Target, &'static str> {
    match Target::from_name(text) {
        Some(target) if target.runs_here() => Ok(target),
        Some(_) => Err("this machine does not run code for that processor; give another"),
        None if cfg!(target_arch = "x86_64") => Err("give native, x86-64, x86-64-v3 or x86-64-v4"),
        None => Err("give native or aarch64"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_bytes_alone_say_something() {
        assert_eq!(bytes_of("0"), Ok(0));
        for nothing in ["-1", "32M", "1e6"] {
            assert!(bytes_of(nothing).is_err(), "{nothing}");
        }
    }

    #[test]
    fn processors_are_those_that_this_machine_runs() {
        for target in Target::ALL {
            assert_eq!(processor_of(target.name()).is_ok(), target.runs_here());
        }
        assert!(processor_of("x86-64-v9").is_err());
    }
}
