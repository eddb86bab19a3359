//! The one source of random choices: schedules, random kernels and the inputs of tests.
//!
//! Random data of kernels is not made here but by [`crate::text::data::random_scalar`], which the
//! text form defines.

/// The next 64 bits of a sequence that a seed begins: SplitMix64 (Steele, Lea and Flood, "Fast
/// splittable pseudorandom number generators", 2014). Any state is as good as another.
///
/// ```
/// use invar_ir::random::split_mix_64;
///
/// let (mut state, mut again) = (1, 1);
/// let first = split_mix_64(&mut state);
/// assert_eq!(first, split_mix_64(&mut again));
/// assert_ne!(first, split_mix_64(&mut again));
/// ```
#[inline]
pub fn split_mix_64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
