//! What the passes and the writers of shading languages promise.

mod affine;
mod annotated;
mod checks;
mod coarsen;
mod distances;
mod drivers;
mod lanes;
mod msl;
mod passes;
mod pipeline;
mod quotients;
mod ranges;
mod regroup;
mod rows;
mod streams;
mod texture_table;
mod wgsl;
mod zeroing;
