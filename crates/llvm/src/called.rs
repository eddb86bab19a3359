//! The functions that compiled code may call, each by the name that LLVM gives it: to clear and to move memory, to
//! divide integers of 128 bits, and, where the processor has no instruction, to convert 16-bit floats, to round
//! and to multiply and add at once.
//!
//! Invariant: code calls nothing else. What a process shows to code that it loads differs between programs, so
//! it is not looked at: a name that is missing here is missing everywhere, and a test sees it.
//!
//! No value is rounded to 16 bits from more than 32: code rounds it to 32 bits first, in a way that rounding twice
//! does no harm to.
//!
//! A 16-bit float travels in the low half of a float's register (System V psABI for AMD64, section 3.2.3; Procedure
//! Call Standard for the Arm 64-bit Architecture, section 6.8.2).

use std::ffi::{c_int, c_void};

use half::{bf16, f16};

use crate::link::Function;

unsafe extern "C" {
    fn memset(to: *mut c_void, byte: c_int, count: usize) -> *mut c_void;
    fn memcpy(to: *mut c_void, from: *const c_void, count: usize) -> *mut c_void;
    fn memmove(to: *mut c_void, from: *const c_void, count: usize) -> *mut c_void;
}

/// Of each function its name and where it is.
pub(crate) fn functions() -> [Function; 22] {
    [
        (b"memset", memset as *const () as usize),
        (b"memcpy", memcpy as *const () as usize),
        (b"memmove", memmove as *const () as usize),
        (b"__udivti3", divide_unsigned as *const () as usize),
        (b"__umodti3", remainder_unsigned as *const () as usize),
        (b"__divti3", divide_signed as *const () as usize),
        (b"__modti3", remainder_signed as *const () as usize),
        (b"__extendhfsf2", f16_to_f32 as *const () as usize),
        (b"__truncsfhf2", f32_to_f16 as *const () as usize),
        (b"__truncsfbf2", f32_to_bf16 as *const () as usize),
        (b"fmaf", fma_f32 as *const () as usize),
        (b"fma", fma_f64 as *const () as usize),
        (b"floorf", floor_f32 as *const () as usize),
        (b"floor", floor_f64 as *const () as usize),
        (b"ceilf", ceil_f32 as *const () as usize),
        (b"ceil", ceil_f64 as *const () as usize),
        (b"truncf", truncate_f32 as *const () as usize),
        (b"trunc", truncate_f64 as *const () as usize),
        (b"roundevenf", round_f32 as *const () as usize),
        (b"roundeven", round_f64 as *const () as usize),
        (b"fmodf", remainder_f32 as *const () as usize),
        (b"fmod", remainder_f64 as *const () as usize),
    ]
}

/// No code of ours divides by zero; the compiler's function may do anything then.
extern "C" fn divide_unsigned(a: u128, b: u128) -> u128 {
    a.checked_div(b).unwrap_or(0)
}

extern "C" fn remainder_unsigned(a: u128, b: u128) -> u128 {
    a.checked_rem(b).unwrap_or(0)
}

extern "C" fn divide_signed(a: i128, b: i128) -> i128 {
    a.checked_div(b).unwrap_or(0)
}

extern "C" fn remainder_signed(a: i128, b: i128) -> i128 {
    a.checked_rem(b).unwrap_or(0)
}

// ---- 16-bit floats ----

/// The low half of a register.
fn low(register: f32) -> u16 {
    register.to_bits() as u16
}

fn register(low: u16) -> f32 {
    f32::from_bits(u32::from(low))
}

extern "C" fn f16_to_f32(x: f32) -> f32 {
    f16::from_bits(low(x)).to_f32()
}

extern "C" fn f32_to_f16(x: f32) -> f32 {
    register(f16::from_f32(x).to_bits())
}

extern "C" fn f32_to_bf16(x: f32) -> f32 {
    register(bf16::from_f32(x).to_bits())
}

// ---- what older processors lack ----

extern "C" fn fma_f32(a: f32, b: f32, c: f32) -> f32 {
    a.mul_add(b, c)
}

extern "C" fn fma_f64(a: f64, b: f64, c: f64) -> f64 {
    a.mul_add(b, c)
}

extern "C" fn floor_f32(x: f32) -> f32 {
    x.floor()
}

extern "C" fn floor_f64(x: f64) -> f64 {
    x.floor()
}

extern "C" fn ceil_f32(x: f32) -> f32 {
    x.ceil()
}

extern "C" fn ceil_f64(x: f64) -> f64 {
    x.ceil()
}

extern "C" fn truncate_f32(x: f32) -> f32 {
    x.trunc()
}

extern "C" fn truncate_f64(x: f64) -> f64 {
    x.trunc()
}

extern "C" fn round_f32(x: f32) -> f32 {
    x.round_ties_even()
}

extern "C" fn round_f64(x: f64) -> f64 {
    x.round_ties_even()
}

extern "C" fn remainder_f32(a: f32, b: f32) -> f32 {
    a % b
}

extern "C" fn remainder_f64(a: f64, b: f64) -> f64 {
    a % b
}
