//! Questions about a layout: does it repeat an offset, what does it cover, how wide can an access
//! be, which banks does it hit.
//!
//! Whether a layout repeats an offset is answered from its strides where they decide it, and by
//! enumeration up to [`MAX_ENUMERATED`] coordinates where they do not; past that it is an error,
//! never a guess.

use crate::algebra::{Steps, coalesce_modes, gcd};
use crate::error::{Error, Result};
use crate::layout::{Layout, Mode};
use crate::nested::Nested;
use crate::swizzle::SwizzledLayout;

/// The most coordinates that a question or a list of offsets enumerates.
pub const MAX_ENUMERATED: usize = 1 << 22;

impl Layout {
    /// Whether no two coordinates share an offset.
    pub fn is_injective(&self) -> Result<bool> {
        // A mode's sign only reverses its coordinate.
        let mut modes: Vec<Mode> = self
            .leaves()
            .iter()
            .filter(|mode| mode.shape > 1)
            .map(|mode| Mode {
                shape: mode.shape,
                stride: mode.stride.abs(),
            })
            .collect();
        if modes.iter().any(|mode| mode.stride == 0) || self.size() > self.cosize() {
            return Ok(false);
        }
        modes.sort_by_key(|mode| mode.stride);
        let mut reach = 0;
        let spread = modes.iter().all(|mode| {
            let beyond = mode.stride > reach;
            reach += (mode.shape - 1) * mode.stride;
            beyond
        });
        if spread {
            return Ok(true);
        }
        for (at, a) in modes.iter().enumerate() {
            for b in &modes[at + 1..] {
                // `i*da == j*db` first at the least common multiple.
                let common = gcd(a.stride, b.stride);
                if b.stride / common < a.shape && a.stride / common < b.shape {
                    return Ok(false);
                }
            }
        }
        let mut offsets = self.offsets()?;
        offsets.sort_unstable();
        Ok(offsets.windows(2).all(|pair| pair[0] != pair[1]))
    }

    /// Whether every integer from the smallest to the largest offset is the offset of some
    /// coordinate: whether the layout leaves no hole.
    pub fn is_surjective(&self) -> bool {
        let mut modes: Vec<(i64, i64)> = self
            .leaves()
            .iter()
            .filter(|mode| mode.shape > 1)
            .map(|mode| (mode.stride.abs(), (mode.shape - 1) * mode.stride.abs()))
            .collect();
        modes.sort_unstable();
        let mut reach = 0;
        // The integer just past what smaller strides reach needs a stride that is no larger.
        modes.iter().all(|&(stride, extent)| {
            let joined = stride <= reach + 1;
            reach += extent;
            joined
        })
    }

    /// The offsets of all coordinates in order of their index, up to [`MAX_ENUMERATED`].
    pub fn offsets(&self) -> Result<Vec<i64>> {
        if self.size() > MAX_ENUMERATED as i64 {
            return Err(Error::Limit {
                what: "offsets to enumerate",
                limit: MAX_ENUMERATED,
            });
        }
        let mut out = vec![0];
        for mode in self.leaves() {
            let before = out.len();
            for step in 1..mode.shape {
                out.extend_from_within(..before);
                let added = out.len() - before;
                out[added..]
                    .iter_mut()
                    .for_each(|offset| *offset += step * mode.stride);
            }
        }
        Ok(out)
    }

    /// The largest `n` such that any `n` neighbouring indices that start at a multiple of `n` have
    /// consecutive offsets.
    pub fn contiguous_run(&self) -> i64 {
        match coalesce_modes(self.leaves().iter().copied()).first() {
            Some(mode) if mode.stride == 1 => mode.shape,
            _ => 1,
        }
    }

    /// The largest `n` such that any `n` neighbouring indices that start at a multiple of `n` have
    /// consecutive offsets that also start at a multiple of `n`: how many elements one aligned
    /// vector access can move.
    pub fn vector_width(&self) -> i64 {
        let modes = coalesce_modes(self.leaves().iter().copied());
        match modes.split_first() {
            Some((first, rest)) if first.stride == 1 => rest
                .iter()
                .fold(first.shape, |width, mode| gcd(width, mode.stride).abs()),
            _ => 1,
        }
    }
}

impl SwizzledLayout {
    /// As [`Layout::vector_width`]: a swizzle leaves runs of `2^base` elements whole.
    pub fn vector_width(&self) -> i64 {
        let width = self.layout().vector_width();
        if self.swizzle().is_none() {
            width
        } else {
            gcd(width, 1 << self.swizzle().base())
        }
    }

    /// The offsets of all coordinates in order of their index, up to [`MAX_ENUMERATED`].
    pub fn offsets(&self) -> Result<Vec<i64>> {
        self.layout()
            .offsets()?
            .into_iter()
            .map(|offset| self.swizzle().apply(offset))
            .collect()
    }
}

/// How many elements a copy between two layouts of one shape can move at once: an `n` such that
/// the elements at offsets `0..n` of `b` are those at offsets `0..n` of `a`, in the same order.
///
/// ```
/// use invar_layout::{Layout, common_vector};
/// let a: Layout = "(8,16):(16,1)".parse()?;
/// let b: Layout = "(8,(4,4)):(4,(1,32))".parse()?;
/// assert_eq!(common_vector(&a, &b)?, 4);
/// # Ok::<(), invar_layout::Error>(())
/// ```
pub fn common_vector(a: &Layout, b: &Layout) -> Result<i64> {
    if a.size() != b.size() {
        return Err(Error::SizeMismatch {
            operation: "common vector",
            left: a.size(),
            right: b.size(),
        });
    }
    let inverse = b.right_inverse()?;
    let mut steps = Steps::new(a.view());
    let mut width = 1;
    for &mode in inverse.leaves() {
        let mut through = Nested::new();
        // Where the composition does not exist, the elements seen so far are what is shared.
        if steps
            .compose(Nested::leaf(mode).view(), &mut through)
            .is_err()
        {
            break;
        }
        let parts = coalesce_modes(through.leaves().iter().copied());
        match parts.first() {
            None => continue,
            Some(part) if part.stride == width => {
                width *= part.shape;
                if parts.len() > 1 {
                    break;
                }
            }
            Some(_) => break,
        }
    }
    Ok(width)
}

/// The most lanes in one access that [`conflicts`] takes.
pub const MAX_LANES: usize = 4096;

/// The banks of a threadgroup memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Banks {
    /// How many banks serve accesses side by side.
    pub count: u32,
    /// How many bytes of a bank one access reaches.
    pub width_bytes: u32,
}

impl Default for Banks {
    /// 32 banks of 4 bytes, which NVIDIA documents for its shared memory.
    fn default() -> Self {
        Banks {
            count: 32,
            width_bytes: 4,
        }
    }
}

/// What an access costs; see [`conflicts`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BankReport {
    /// Rounds that the access takes.
    pub rounds: usize,
    /// Rounds that it would take without conflicts.
    pub least_rounds: usize,
    /// For each bank the number of different words asked of it, summed over the parts of the
    /// access.
    pub words: Vec<usize>,
    /// For each bank whether some part of the access asks several words of it.
    pub bank_conflicts: Vec<bool>,
    /// For each lane whether, in its part of the access, another lane asks a different word of a
    /// bank that it needs.
    pub lane_conflicts: Vec<bool>,
}

impl BankReport {
    /// Rounds lost to conflicts: 0 for an access without any.
    pub fn conflicts(&self) -> usize {
        self.rounds - self.least_rounds
    }
}

/// Counts the bank conflicts of one access by the lanes of a simdgroup: lane `i` touches the
/// element at `offsets[i]`, of `element_bytes` bytes.
///
/// The model: lanes that touch the same word share it, different words in one bank take a round
/// each. The lanes go in parts of as many as fill the banks once, but of one lane a bank at most:
/// with the default banks 32 lanes for elements of up to 4 bytes, 16 for 8 bytes, 8 for 16.
///
/// ```
/// use invar_layout::{Banks, Layout, conflicts};
/// let tile: Layout = "(32,32):(32,1)".parse()?;
/// let column: Vec<i64> = (0..32).map(|row| tile.call_index(row)).collect::<Result<_, _>>()?;
/// assert_eq!(conflicts(&column, 4, Banks::default())?.conflicts(), 31);
/// let padded: Layout = "(32,32):(33,1)".parse()?;
/// let column: Vec<i64> = (0..32).map(|row| padded.call_index(row)).collect::<Result<_, _>>()?;
/// assert_eq!(conflicts(&column, 4, Banks::default())?.conflicts(), 0);
/// # Ok::<(), invar_layout::Error>(())
/// ```
pub fn conflicts(offsets: &[i64], element_bytes: u32, banks: Banks) -> Result<BankReport> {
    let limit = |value: u32, most: u32, condition| {
        let fits = (1..=most).contains(&value);
        if fits {
            Ok(())
        } else {
            Err(Error::Access {
                condition,
                value: i64::from(value),
            })
        }
    };
    limit(
        banks.count,
        1024,
        "the number of banks must be from 1 to 1024",
    )?;
    limit(
        banks.width_bytes,
        4096,
        "the width of a bank must be from 1 to 4096 bytes",
    )?;
    limit(
        element_bytes,
        4096,
        "an element must have from 1 to 4096 bytes",
    )?;
    if offsets.len() > MAX_LANES {
        return Err(Error::Limit {
            what: "lanes in one access",
            limit: MAX_LANES,
        });
    }
    let row_bytes = banks.count as usize * banks.width_bytes as usize;
    let lanes_at_once = (row_bytes / element_bytes as usize).clamp(1, banks.count as usize);
    let (bytes, width, count) = (
        i128::from(element_bytes),
        i128::from(banks.width_bytes),
        i128::from(banks.count),
    );
    let mut report = BankReport {
        rounds: 0,
        least_rounds: 0,
        words: vec![0; banks.count as usize],
        bank_conflicts: vec![false; banks.count as usize],
        lane_conflicts: Vec::with_capacity(offsets.len()),
    };
    let words_of = |offset: i64| {
        let first = i128::from(offset) * bytes;
        first.div_euclid(width)..=(first + bytes - 1).div_euclid(width)
    };
    let bank_of = |word: i128| usize::try_from(word.rem_euclid(count)).unwrap_or(0);
    let mut words: Vec<i128> = Vec::new();
    let mut in_bank = vec![0usize; banks.count as usize];
    for part in offsets.chunks(lanes_at_once) {
        words.clear();
        for &offset in part {
            words.extend(words_of(offset));
        }
        words.sort_unstable();
        words.dedup();
        in_bank.fill(0);
        for word in &words {
            in_bank[bank_of(*word)] += 1;
        }
        report.rounds += in_bank.iter().max().copied().unwrap_or(0);
        // Even spread over the banks still needs this many rounds.
        let spread = (part.len() * element_bytes as usize).div_ceil(row_bytes);
        report.least_rounds += spread.min(words.len().div_ceil(banks.count as usize));
        for &offset in part {
            let conflict = words_of(offset).any(|word| in_bank[bank_of(word)] > 1);
            report.lane_conflicts.push(conflict);
        }
        for (bank, &words) in in_bank.iter().enumerate() {
            report.words[bank] += words;
            report.bank_conflicts[bank] |= words > 1;
        }
    }
    Ok(report)
}
