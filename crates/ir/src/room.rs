//! Room on the stack, whatever the size of the caller's stack: users make threads of 32 KiB.
//!
//! Whatever walks the blocks of a kernel calls itself for those within. Blocks nest at most
//! [`MAX_NESTING`](crate::inst::MAX_NESTING) deep, so a walk needs a known part of the stack; each function by which
//! users reach one, in this crate and those above it, takes that room first. Where a caller has it, taking it again
//! costs a comparison.

/// What copying, comparing and dropping kernels need whose blocks nest as deep as they may.
pub(crate) const WALK_BYTES: usize = 128 << 10;
/// What passes need over such kernels, and the reference machine.
pub const PASSES_BYTES: usize = 2 << 20;
/// What compilers of others need: LLVM, readers of other languages, and drivers of GPUs.
pub const COMPILER_BYTES: usize = 4 << 20;

/// Does something with so many bytes of stack, on another stack where the thread's own has less left.
///
/// ```
/// use invar_ir::room::{PASSES_BYTES, with_room};
///
/// assert_eq!(with_room(PASSES_BYTES, || 6 * 7), 42);
/// ```
pub fn with_room<R>(bytes: usize, f: impl FnOnce() -> R) -> R {
    // One that is made is large enough for what f does in turn.
    stacker::maybe_grow(bytes, bytes.saturating_add(PASSES_BYTES), f)
}

#[cfg(test)]
mod tests {
    use super::with_room;

    /// Takes at least as many bytes of the stack, and at most four times as many.
    #[inline(never)]
    fn deep(bytes: usize) -> u64 {
        let frame = std::hint::black_box([1u8; 1024]);
        let below = if bytes > 1024 { deep(bytes - 1024) } else { 0 };
        below + u64::from(std::hint::black_box(frame)[17])
    }

    #[test]
    fn small_threads_have_room_too() {
        let thread = std::thread::Builder::new().stack_size(32 << 10);
        let small = thread.spawn(|| with_room(4 << 20, || deep(1 << 20)));
        assert_eq!(small.expect("started").join().expect("it ends"), 1 << 10);
    }
}
