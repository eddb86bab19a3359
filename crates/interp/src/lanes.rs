//! Functions between the lanes of a simdgroup or quadgroup.

use crate::machine::Simdgroup;
use crate::program::Lanes;

/// Exchanges values between lanes; every existing lane takes part.
pub(crate) fn exchange(lanes: &Lanes, _simd: &mut Simdgroup, _size: usize) {
    unreachable!("no row of the op table exchanges lanes: {lanes:?}")
}
