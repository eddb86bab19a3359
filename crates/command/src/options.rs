//! What options of commands say, and what is wrong with what they say.

use std::borrow::Cow;
use std::time::Duration;

use clap::Args;
use invar_ir::Diagnostic;

use crate::outcome::Refusal;

/// Output for machines.
#[derive(Args, Clone, Copy, Default)]
pub struct Machine {
    /// Print one JSON document to standard output.
    #[arg(long)]
    pub json: bool,
}

pub fn simdgroup_size(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|n: &u32| n.is_power_of_two() && (4..=128).contains(n))
        .ok_or_else(|| "a power of two from 4 to 128".to_string())
}

pub fn size(text: &str) -> Result<[u32; 3], String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let mut out = [1; 3];
    if parts.len() > 3 {
        return Err("one to three numbers".to_string());
    }
    for (slot, part) in out.iter_mut().zip(&parts) {
        *slot = part
            .parse()
            .map_err(|_| format!("`{part}` is not a number from 0 to 4294967295"))?;
    }
    Ok(out)
}

pub fn split<'a>(
    given: &'a str,
    option: &str,
    example: &str,
) -> Result<(&'a str, &'a str), Refusal> {
    given
        .split_once('=')
        .map(|(name, value)| (name.trim().trim_start_matches('%'), value.trim()))
        .filter(|(name, value)| !name.is_empty() && !value.is_empty())
        .ok_or_else(|| {
            Refusal(format!(
                "`{option} {given}` is not NAME=VALUE; for example {option} {example}"
            ))
        })
}

/// What is quoted of something that a user wrote, however long that is.
pub fn shorten(text: &str) -> Cow<'_, str> {
    const MOST: usize = 200;
    let count = text.chars().count();
    if count <= MOST {
        return Cow::Borrowed(text);
    }
    let first: String = text.chars().take(MOST / 2).collect();
    Cow::Owned(format!("{first}... ({count} characters)"))
}

/// Seconds that an option gives.
pub fn duration(option: &str, seconds: f64) -> Result<Duration, Refusal> {
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        Ok(_) | Err(_) => {
            // Not hundreds of zeros.
            let given = if seconds.abs() < 1e19 {
                format!("{seconds}")
            } else {
                format!("{seconds:e}")
            };
            Err(Refusal(format!(
                "{option} {given}: give a number of seconds above 0, and below 1e19"
            )))
        }
    }
}

/// Diagnostics without a place speak of the command line.
pub fn usage(all: Vec<Diagnostic>) -> Refusal {
    let sentences: Vec<String> = all
        .iter()
        .map(|d| match &d.help {
            Some(help) => format!("{}; {help}", d.message),
            None => d.message.clone(),
        })
        .collect();
    Refusal(sentences.join("\n"))
}

/// So many of something, in words.
pub fn count(n: usize, what: &str) -> String {
    match n {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}
