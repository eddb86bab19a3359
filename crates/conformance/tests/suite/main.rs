//! What the generator of random kernels and the comparison of devices promise.

mod files;
mod generate;
mod reduce;
