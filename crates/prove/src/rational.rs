//! Exact fractions of 128-bit numbers. What does not fit is [`Fraction::LOST`], which every operation on it
//! gives again, so that one look at the end tells whether a result can be used.

use std::cmp::Ordering;

/// A fraction in lowest terms, with a positive denominator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fraction {
    numerator: i128,
    /// 0 if numbers got too large.
    denominator: i128,
}

fn gcd(a: u128, b: u128) -> u128 {
    let (mut a, mut b) = (a, b);
    // Most numbers are small, and division of small ones is quick.
    while b != 0 {
        if let (Ok(x), Ok(y)) = (u64::try_from(a), u64::try_from(b)) {
            let (mut x, mut y) = (x, y);
            while y != 0 {
                (x, y) = (y, x % y);
            }
            return u128::from(x);
        }
        (a, b) = (b, a % b);
    }
    a
}

impl Fraction {
    /// 0.
    pub const ZERO: Fraction = Fraction::whole(0);
    /// 1.
    pub const ONE: Fraction = Fraction::whole(1);
    /// Stands for a number that does not fit.
    pub const LOST: Fraction = Fraction {
        numerator: 0,
        denominator: 0,
    };

    /// A whole number.
    pub const fn whole(numerator: i128) -> Fraction {
        Fraction {
            numerator,
            denominator: 1,
        }
    }

    fn new(numerator: Option<i128>, denominator: Option<i128>) -> Fraction {
        let (Some(n), Some(d)) = (numerator, denominator) else {
            return Fraction::LOST;
        };
        if d == 0 || n == i128::MIN || d == i128::MIN {
            return Fraction::LOST;
        }
        if d == 1 {
            return Fraction::whole(n);
        }
        let divisor = gcd(n.unsigned_abs(), d.unsigned_abs()) as i128 * d.signum();
        Fraction {
            numerator: n / divisor,
            denominator: d / divisor,
        }
    }

    /// Whether it stands for a number that does not fit.
    pub fn is_lost(self) -> bool {
        self.denominator == 0
    }

    /// The numerator in lowest terms.
    pub fn numerator(self) -> i128 {
        self.numerator
    }

    /// The denominator in lowest terms.
    pub fn denominator(self) -> i128 {
        self.denominator
    }

    /// Whether it is a whole number.
    pub fn is_whole(self) -> bool {
        self.denominator == 1
    }

    /// The largest whole number not above it.
    pub fn floor(self) -> i128 {
        if self.is_lost() {
            return 0;
        }
        self.numerator.div_euclid(self.denominator)
    }

    /// -1, 0 or 1.
    pub fn sign(self) -> i128 {
        self.numerator.signum()
    }

    /// The sum.
    pub fn plus(self, other: Fraction) -> Fraction {
        if self.denominator == other.denominator {
            if self.is_lost() {
                return self;
            }
            let sum = self.numerator.checked_add(other.numerator);
            return Fraction::new(sum, Some(self.denominator));
        }
        let a = self.numerator.checked_mul(other.denominator);
        let b = other.numerator.checked_mul(self.denominator);
        let sum = a.zip(b).and_then(|(a, b)| a.checked_add(b));
        Fraction::new(sum, self.denominator.checked_mul(other.denominator))
    }

    /// The difference.
    pub fn minus(self, other: Fraction) -> Fraction {
        self.plus(other.negated())
    }

    /// The product.
    pub fn times(self, other: Fraction) -> Fraction {
        Fraction::new(
            self.numerator.checked_mul(other.numerator),
            self.denominator.checked_mul(other.denominator),
        )
    }

    /// The quotient; lost if `other` is 0.
    pub fn over(self, other: Fraction) -> Fraction {
        Fraction::new(
            self.numerator.checked_mul(other.denominator),
            self.denominator.checked_mul(other.numerator),
        )
    }

    /// The negative.
    pub fn negated(self) -> Fraction {
        Fraction {
            numerator: -self.numerator,
            denominator: self.denominator,
        }
    }

    /// How it compares with a whole number.
    pub fn compare(self, other: i128) -> Ordering {
        if self.denominator == 1 {
            return self.numerator.cmp(&other);
        }
        self.minus(Fraction::whole(other)).numerator.cmp(&0)
    }
}
