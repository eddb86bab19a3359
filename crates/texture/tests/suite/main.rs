//! Formats and samples against what they are defined by, in double precision.

mod cubes;
mod formats;
mod levels;
mod samples;
