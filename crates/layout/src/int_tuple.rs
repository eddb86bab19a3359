//! Nested tuples of integers: shapes, strides and coordinates.
//!
//! `4` is an integer, `(4)` a tuple of one mode, `()` a tuple of none; the three differ. A shape's
//! modes count from the left, and the leftmost coordinate runs fastest (colexicographic order), as
//! everywhere in the algebra. Absent: symbolic values. A size that only a dispatch knows belongs
//! to the kernel, not to a layout.

use crate::error::{Error, Result};
use crate::nested::{Nested, View};
use std::fmt;

/// An integer, or a tuple of such, nested to any depth within the crate's limits.
///
/// ```
/// use invar_layout::IntTuple;
/// let shape: IntTuple = "((4,2),8)".parse()?;
/// assert_eq!(shape.size()?, 64);
/// assert_eq!(shape.mode(0)?, "(4,2)".parse()?);
/// assert_eq!(shape.to_string(), "((4,2),8)");
/// # Ok::<(), invar_layout::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct IntTuple(pub(crate) Nested<i64>);

/// What an [`IntTuple`] is at its top: the way to take one apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// An integer.
    Int(i64),
    /// A tuple and its modes.
    Tuple(Vec<IntTuple>),
}

impl From<i64> for IntTuple {
    fn from(value: i64) -> Self {
        IntTuple(Nested::leaf(value))
    }
}

impl IntTuple {
    /// The tuple of the given modes, in order. Fails only past the limits on count and depth.
    pub fn tuple(modes: impl IntoIterator<Item = IntTuple>) -> Result<Self> {
        let mut out = Nested::new();
        let open = out.open()?;
        for mode in modes {
            out.push_view(mode.0.view())?;
            out.count(&open);
        }
        Self::checked(out)
    }

    /// The tuple of the given integers, in order.
    pub fn flat(values: &[i64]) -> Result<Self> {
        let mut out = Nested::new();
        out.push_tuple(values.len())?;
        for &value in values {
            out.push_leaf(value)?;
        }
        Self::checked(out)
    }

    /// `value` at every integer of `like`.
    pub fn repeat_like(value: i64, like: &IntTuple) -> Self {
        IntTuple(like.0.map(|_| value))
    }

    pub(crate) fn checked(tree: Nested<i64>) -> Result<Self> {
        tree.check_depth()?;
        Ok(IntTuple(tree))
    }

    pub(crate) fn view(&self) -> View<'_, i64> {
        self.0.view()
    }

    /// The integer or the modes at the top.
    pub fn node(&self) -> Node {
        match self.as_int() {
            Some(value) => Node::Int(value),
            None => Node::Tuple(self.modes().collect()),
        }
    }

    /// The integer, if this is one.
    pub fn as_int(&self) -> Option<i64> {
        self.view().as_leaf()
    }

    /// The number of modes: 1 for an integer.
    pub fn rank(&self) -> usize {
        self.view().rank()
    }

    /// Levels of parentheses: 0 for an integer.
    pub fn depth(&self) -> usize {
        self.view().depth()
    }

    /// The integers, left to right.
    pub fn integers(&self) -> &[i64] {
        self.0.leaves()
    }

    /// The modes, left to right; an integer is its own only mode.
    pub fn modes(&self) -> impl ExactSizeIterator<Item = IntTuple> + '_ {
        self.view().modes().map(|mode| IntTuple(mode.to_nested()))
    }

    /// Mode `index`, from 0.
    pub fn mode(&self, index: usize) -> Result<IntTuple> {
        match self.view().mode(index) {
            Some(mode) => Ok(IntTuple(mode.to_nested())),
            None => Err(Error::NoSuchMode {
                operation: "mode",
                mode: shown(index),
                rank: self.rank(),
            }),
        }
    }

    /// The tuple of the modes listed, in the order listed; each at most once.
    pub fn select(&self, modes: &[usize]) -> Result<IntTuple> {
        Ok(IntTuple(select(self.view(), modes)?))
    }

    /// Modes `begin..end` gathered into one mode, the others as they are.
    pub fn group(&self, begin: usize, end: usize) -> Result<IntTuple> {
        Self::checked(group(self.view(), begin, end)?)
    }

    /// All integers in one tuple without inner parentheses; an integer stays an integer.
    pub fn flatten(&self) -> IntTuple {
        IntTuple(flatten(self.view()))
    }

    /// The product of all integers: the number of coordinates of a shape. 1 for `()`.
    pub fn size(&self) -> Result<i64> {
        product(self.view())
    }

    /// Each mode's product, as a flat tuple; of an integer, itself.
    pub fn product_each(&self) -> Result<IntTuple> {
        if self.as_int().is_some() {
            return Ok(self.clone());
        }
        let mut out = Nested::new();
        out.push_tuple(self.rank())?;
        for mode in self.view().modes() {
            out.push_leaf(product(mode)?)?;
        }
        Ok(IntTuple(out))
    }

    /// At each integer the product of all before it: the strides of a compact layout in which the
    /// leftmost mode is contiguous.
    pub fn prefix_product(&self) -> Result<IntTuple> {
        let mut running = Some(1i64);
        let mut overflow = false;
        let out = self.0.map(|size| {
            overflow |= running.is_none();
            let before = running.unwrap_or(0);
            running = before.checked_mul(size);
            before
        });
        // The product after the last integer is not a stride, so it may exceed 64 bits.
        if overflow {
            return Err(Error::Overflow {
                what: "a prefix product",
            });
        }
        Ok(IntTuple(out))
    }

    /// The sum of the products of corresponding integers of two congruent tuples.
    pub fn inner_product(&self, other: &IntTuple) -> Result<i64> {
        if !self.view().congruent(other.view()) {
            return Err(self.not_congruent("inner product", other));
        }
        let mut sum = 0i64;
        for (a, b) in self.integers().iter().zip(other.integers()) {
            sum = a
                .checked_mul(*b)
                .and_then(|term| sum.checked_add(term))
                .ok_or(Error::Overflow {
                    what: "an inner product",
                })?;
        }
        Ok(sum)
    }

    /// Divides a shape by `divisor`, using the divisor up from the left: `(4,8) / 8` is `(1,4)`.
    ///
    /// Between two integers one must divide the other, and the quotient is at least 1. By a tuple
    /// of the same rank, mode by mode; an integer by a tuple, by the tuple's product.
    pub fn shape_div(&self, divisor: &IntTuple) -> Result<IntTuple> {
        fn go(a: View<'_, i64>, b: View<'_, i64>, out: &mut Nested<i64>) -> Result<()> {
            if let Some(value) = a.as_leaf() {
                return out.push_leaf(divide(value, product(b)?)?);
            }
            out.push_tuple(a.rank())?;
            if let Some(by) = b.as_leaf() {
                let mut by = by;
                for mode in a.modes() {
                    go(mode, Nested::leaf(by).view(), out)?;
                    by = divide(by, product(mode)?)?;
                }
                return Ok(());
            }
            for (a, b) in a.modes().zip(b.modes()) {
                go(a, b, out)?;
            }
            Ok(())
        }
        fn divide(value: i64, by: i64) -> Result<i64> {
            if value < 1 || by < 1 {
                return Err(Error::NotPositive {
                    operation: "shape division",
                    value: value.min(by),
                });
            }
            if value % by == 0 {
                Ok(value / by)
            } else if by % value == 0 {
                Ok(1)
            } else {
                Err(Error::Indivisible {
                    operation: "shape division",
                    value,
                    by,
                })
            }
        }
        fn ranks_match(a: View<'_, i64>, b: View<'_, i64>) -> bool {
            a.as_leaf().is_some()
                || b.as_leaf().is_some()
                || (a.rank() == b.rank()
                    && a.modes().zip(b.modes()).all(|(a, b)| ranks_match(a, b)))
        }
        if !ranks_match(self.view(), divisor.view()) {
            return Err(self.not_congruent("shape division", divisor));
        }
        let mut out = Nested::new();
        go(self.view(), divisor.view(), &mut out)?;
        Ok(IntTuple(out))
    }

    /// Whether the two nest alike: same parentheses, any integers.
    pub fn congruent(&self, other: &IntTuple) -> bool {
        self.view().congruent(other.view())
    }

    /// Whether `self` is congruent with `other` after replacing some modes of `other` by integers:
    /// every coordinate pattern of `self` also addresses `other`.
    pub fn weakly_congruent(&self, other: &IntTuple) -> bool {
        fn go(a: View<'_, i64>, b: View<'_, i64>) -> bool {
            a.as_leaf().is_some()
                || (b.as_leaf().is_none()
                    && a.rank() == b.rank()
                    && a.modes().zip(b.modes()).all(|(a, b)| go(a, b)))
        }
        go(self.view(), other.view())
    }

    /// Whether `self` is weakly congruent with `other` and agrees with its sizes: every coordinate
    /// of `self` is a coordinate of `other`. `24` is compatible with `(4,6)`, and that with
    /// `((2,2),6)`.
    pub fn compatible(&self, other: &IntTuple) -> Result<bool> {
        fn go(a: View<'_, i64>, b: View<'_, i64>) -> Result<bool> {
            if let Some(size) = a.as_leaf() {
                return Ok(size == product(b)?);
            }
            if b.as_leaf().is_some() || a.rank() != b.rank() {
                return Ok(false);
            }
            for (a, b) in a.modes().zip(b.modes()) {
                if !go(a, b)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        go(self.view(), other.view())
    }

    /// The coordinate of `index` in this shape: the leftmost coordinate runs fastest, and the last
    /// one takes what is left, so an index past the size is still told from the others.
    ///
    /// ```
    /// use invar_layout::IntTuple;
    /// let shape: IntTuple = "((4,2),8)".parse()?;
    /// assert_eq!(shape.coordinate(13)?.to_string(), "((1,1),1)");
    /// # Ok::<(), invar_layout::Error>(())
    /// ```
    pub fn coordinate(&self, index: i64) -> Result<IntTuple> {
        non_negative("coordinate", "index", index)?;
        let last = self.integers().len().wrapping_sub(1);
        if self.integers().is_empty() && index > 0 {
            return Err(self.out_of_bounds(&IntTuple::from(index)));
        }
        for &size in self.integers() {
            positive("coordinate", size)?;
        }
        let mut rest = index;
        let mut at = 0;
        Ok(IntTuple(self.0.map(|size| {
            let digit = if at == last { rest } else { rest % size };
            rest /= size;
            at += 1;
            digit
        })))
    }

    /// The index of a coordinate of this shape; the inverse of [`IntTuple::coordinate`].
    ///
    /// A mode's coordinate may be an integer or a tuple that nests like the mode.
    pub fn index(&self, coordinate: &IntTuple) -> Result<i64> {
        crate::Layout::compact(self)?.call(coordinate)
    }

    /// Fails unless `coordinate` lies inside this shape, mode by mode.
    pub fn check_coordinate(&self, coordinate: &IntTuple) -> Result<()> {
        fn go(c: View<'_, i64>, s: View<'_, i64>) -> Result<bool> {
            match c.as_leaf() {
                Some(value) => Ok(value >= 0 && value < product(s)?),
                None if s.as_leaf().is_some() || c.rank() != s.rank() => Ok(false),
                None => {
                    for (c, s) in c.modes().zip(s.modes()) {
                        if !go(c, s)? {
                            return Ok(false);
                        }
                    }
                    Ok(true)
                }
            }
        }
        if go(coordinate.view(), self.view())? {
            Ok(())
        } else {
            Err(self.out_of_bounds(coordinate))
        }
    }

    fn out_of_bounds(&self, coordinate: &IntTuple) -> Error {
        Error::OutOfBounds {
            coordinate: coordinate.to_string(),
            shape: self.to_string(),
        }
    }

    pub(crate) fn not_congruent(&self, operation: &'static str, other: &IntTuple) -> Error {
        Error::NotCongruent {
            operation,
            left: self.to_string(),
            right: other.to_string(),
        }
    }
}

/// A coordinate in which `_` (written `None`) stands for all of a mode.
///
/// ```
/// use invar_layout::{Coord, Layout};
/// let layout: Layout = "(4,8):(8,1)".parse()?;
/// let row: Coord = "(2,_)".parse()?;
/// let (rest, offset) = layout.slice(&row)?;
/// assert_eq!((rest.to_string().as_str(), offset), ("(8):(1)", 16));
/// # Ok::<(), invar_layout::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Coord(pub(crate) Nested<Option<i64>>);

impl Coord {
    /// One coordinate, or `_` for `None`.
    pub fn new(value: Option<i64>) -> Self {
        Coord(Nested::leaf(value))
    }

    /// The tuple of the given coordinates, in order.
    pub fn tuple(modes: impl IntoIterator<Item = Coord>) -> Result<Self> {
        let mut out = Nested::new();
        let open = out.open()?;
        for mode in modes {
            out.push_view(mode.0.view())?;
            out.count(&open);
        }
        out.check_depth()?;
        Ok(Coord(out))
    }

    /// Whether any part of the coordinate is `_`.
    pub fn has_wildcard(&self) -> bool {
        self.0.leaves().iter().any(Option::is_none)
    }

    /// The same coordinate as integers; fails if any part is `_`.
    pub fn to_int_tuple(&self) -> Result<IntTuple> {
        if self.has_wildcard() {
            return Err(Error::Wildcard {
                coordinate: self.to_string(),
            });
        }
        Ok(IntTuple(self.0.map(|value| value.unwrap_or_default())))
    }
}

impl From<i64> for Coord {
    fn from(value: i64) -> Self {
        Coord::new(Some(value))
    }
}

impl From<&IntTuple> for Coord {
    fn from(value: &IntTuple) -> Self {
        Coord(value.0.map(Some))
    }
}

impl fmt::Display for IntTuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().write(f, fmt::Display::fmt)
    }
}

impl fmt::Debug for IntTuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Coord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.view().write(f, |value, f| match value {
            Some(value) => fmt::Display::fmt(value, f),
            None => f.write_str("_"),
        })
    }
}

impl fmt::Debug for Coord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

pub(crate) fn positive(operation: &'static str, value: i64) -> Result<()> {
    if value < 1 {
        Err(Error::NotPositive { operation, value })
    } else {
        Ok(())
    }
}

pub(crate) fn non_negative(operation: &'static str, what: &'static str, value: i64) -> Result<()> {
    if value < 0 {
        Err(Error::Negative {
            operation,
            what,
            value,
        })
    } else {
        Ok(())
    }
}

pub(crate) fn product(view: View<'_, i64>) -> Result<i64> {
    view.leaves()
        .iter()
        .try_fold(1i64, |size, &leaf| size.checked_mul(leaf))
        .ok_or(Error::Overflow {
            what: "a product of sizes",
        })
}

pub(crate) fn select<T: Copy>(view: View<'_, T>, modes: &[usize]) -> Result<Nested<T>> {
    let mut out = Nested::new();
    out.push_tuple(modes.len())?;
    for (at, &index) in modes.iter().enumerate() {
        if modes[..at].contains(&index) {
            return Err(Error::RepeatedMode {
                operation: "select",
                mode: index,
            });
        }
        let rank = view.rank();
        let mode = view.mode(index).ok_or(Error::NoSuchMode {
            operation: "select",
            mode: shown(index),
            rank,
        })?;
        out.push_view(mode)?;
    }
    Ok(out)
}

/// A mode's number as errors hold it.
pub(crate) fn shown(mode: usize) -> i64 {
    i64::try_from(mode).unwrap_or(i64::MAX)
}

pub(crate) fn group<T: Copy>(view: View<'_, T>, begin: usize, end: usize) -> Result<Nested<T>> {
    let rank = view.rank();
    if begin > end || end > rank {
        return Err(Error::NoSuchModes {
            operation: "group",
            begin: shown(begin),
            end: shown(end),
            rank,
        });
    }
    let mut out = Nested::new();
    out.push_tuple(rank - (end - begin) + 1)?;
    let modes: Vec<_> = view.modes().collect();
    for &mode in &modes[..begin] {
        out.push_view(mode)?;
    }
    out.push_tuple(end - begin)?;
    for &mode in &modes[begin..] {
        out.push_view(mode)?;
    }
    Ok(out)
}

pub(crate) fn flatten<T: Copy>(view: View<'_, T>) -> Nested<T> {
    if view.as_leaf().is_some() {
        return view.to_nested();
    }
    let mut out = Nested::new();
    // A flat tree has no more nodes than the tree it comes from, so no limit can be passed.
    let pushed = out.push_tuple(view.leaves().len()).and_then(|()| {
        view.leaves()
            .iter()
            .try_for_each(|&leaf| out.push_leaf(leaf))
    });
    debug_assert!(pushed.is_ok());
    out
}
