//! Kernels compiled for CPUs: SPMD on vectors, by LLVM.
//!
//! Deliberately absent: threads, memory of the host, caches. The runtime has them; what it calls is
//! in [`abi`].

pub mod abi;
#[allow(dead_code, reason = "the words of the parts that use them")]
mod emit;
#[allow(dead_code, reason = "the structure of the compiler uses them")]
mod lanes;
#[allow(dead_code, reason = "the structure of the compiler uses them")]
mod ops;
#[cfg(test)]
mod test_jit;
