//! The choices of a seed.

use invar_ir::random::split_mix_64;

/// A sequence of choices.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// 64 of them.
    pub fn bits(&mut self) -> u64 {
        split_mix_64(&mut self.0)
    }

    /// One of `0..count`; 0 without a choice, which uses nothing up.
    #[inline]
    pub fn below(&mut self, count: u64) -> u64 {
        if count <= 1 {
            return 0;
        }
        ((u128::from(self.bits()) * u128::from(count)) >> 64) as u64
    }

    /// Heads or tails.
    pub fn flip(&mut self) -> bool {
        self.below(2) == 1
    }

    /// Puts a list in a random order.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for i in (1..list.len()).rev() {
            let j = self.below(i as u64 + 1) as usize;
            list.swap(i, j);
        }
    }
}

/// An order of `0..count` for any count, without a table: `i * factor + offset` modulo `count`,
/// with a factor that has no divisor in common with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permutation {
    count: u64,
    factor: u64,
    offset: u64,
}

impl Permutation {
    /// The natural order.
    pub fn identity(count: u64) -> Permutation {
        Permutation {
            count,
            factor: 1,
            offset: 0,
        }
    }

    pub fn random(count: u64, random: &mut Random) -> Permutation {
        fn divisor(a: u64, b: u64) -> u64 {
            if b == 0 { a } else { divisor(b, a % b) }
        }
        let mut factor = 1;
        for _attempt in 0..64 {
            let candidate = 1 + random.below(count.max(1));
            if divisor(candidate, count) == 1 {
                factor = candidate;
                break;
            }
        }
        Permutation {
            count,
            factor,
            offset: random.below(count),
        }
    }

    pub fn at(&self, i: u64) -> u64 {
        let product = u128::from(i) * u128::from(self.factor) + u128::from(self.offset);
        (product % u128::from(self.count.max(1))) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_gives_every_number_once() {
        let mut random = Random::new(7);
        for count in [1, 2, 3, 12, 97, 360] {
            let p = Permutation::random(count, &mut random);
            let mut seen: Vec<u64> = (0..count).map(|i| p.at(i)).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..count), "{count}");
        }
    }
}
