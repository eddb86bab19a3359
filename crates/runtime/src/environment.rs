//! What the environment of the process says of every dispatch.
//!
//! Invariant: a value that says nothing is refused where a kernel is compiled, before anything runs.
//! Deliberately absent: folders, of which any may be meant.

use std::time::Duration;

use invar_ir::Rule;

use crate::Error;

const THREADS: &str = "INVAR_THREADS";
const TIME_LIMIT: &str = "INVAR_TIME_LIMIT";
const CACHE: &str = "INVAR_CACHE";

/// How many threads compute at most: `INVAR_THREADS`.
pub(crate) fn threads() -> Option<usize> {
    read(THREADS, threads_of).ok().flatten()
}

/// How long a dispatch may run by the environment: `INVAR_TIME_LIMIT`, in seconds. Queues take it where they
/// are given no limit of their own.
///
/// # Errors
/// `invalid-argument` if the variable holds no number of seconds.
pub fn environment_time_limit() -> Result<Option<Duration>, Error> {
    read(TIME_LIMIT, time_limit_of)
}

/// The same, where a value that says nothing was or will be refused.
pub(crate) fn time_limit() -> Option<Duration> {
    environment_time_limit().ok().flatten()
}

/// Refuses values that say nothing, but for what a device alone reads.
pub(crate) fn check() -> Result<(), Error> {
    read(THREADS, threads_of)?;
    environment_time_limit()?;
    read(CACHE, caches_of)?;
    Ok(())
}

/// The value of a variable; that of an empty one is none.
pub(crate) fn read<T>(
    name: &str,
    of: fn(&str) -> Result<T, &'static str>,
) -> Result<Option<T>, Error> {
    let Some(text) = std::env::var_os(name) else {
        return Ok(None);
    };
    let text = text.to_string_lossy();
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    of(text).map(Some).map_err(|wanted| {
        let message = format!("the environment says {name}={text}: {wanted}, or unset it");
        Error::new(Rule::InvalidArgument, message)
    })
}

fn threads_of(text: &str) -> Result<usize, &'static str> {
    match text.parse() {
        Ok(threads) if threads > 0 => Ok(threads),
        Ok(_) | Err(_) => Err("give a number of threads, 1 or more"),
    }
}

fn time_limit_of(text: &str) -> Result<Duration, &'static str> {
    let wanted = "give a number of seconds above 0, and below 1e19, such as 2.5";
    let seconds: f64 = text.parse().map_err(|_| wanted)?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(limit) if !limit.is_zero() => Ok(limit),
        Ok(_) | Err(_) => Err(wanted),
    }
}

fn caches_of(text: &str) -> Result<bool, &'static str> {
    match text {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err("give 0 to keep no compiled kernels on disk, 1 to keep them"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_alone_say_something() {
        assert_eq!(threads_of("3"), Ok(3));
        for nothing in ["0", "-1", "abc", "1.5"] {
            assert!(threads_of(nothing).is_err(), "{nothing}");
        }
        assert_eq!(caches_of("0"), Ok(false));
        assert!(caches_of("maybe").is_err());
        assert_eq!(time_limit_of("0.25"), Ok(Duration::from_millis(250)));
        assert!(time_limit_of("9.9e18").is_ok());
        for nothing in ["0", "-1", "abc", "nan", "inf", "2e19"] {
            assert!(time_limit_of(nothing).is_err(), "{nothing}");
        }
    }
}
