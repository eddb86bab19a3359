//! Formats and samples against what they are defined by, in double precision.

mod formats;
mod samples;
