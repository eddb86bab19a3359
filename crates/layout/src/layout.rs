//! Layouts: a shape and a stride that nest alike, as one function from coordinates to offsets.
//!
//! `shape:stride` maps a coordinate to the sum of each part times its stride. An integer is a
//! coordinate too: it counts the coordinates of the shape, leftmost fastest.
//!
//! Invariants, checked when a layout is made: every size is at least 1; the size and the extent of
//! the offsets fit 64-bit signed integers. So `size` and `cosize` never fail, and neither does an
//! offset inside the shape. Absent: layouts over symbolic values or coordinates.

use crate::error::{Error, Result};
use crate::int_tuple::{self, Coord, IntTuple, non_negative, positive, shown};
use crate::nested::{Nested, View};
use std::fmt;

/// One integer of the shape and its stride.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mode {
    /// How many steps; at least 1.
    pub shape: i64,
    /// How far a step goes, in elements; may be 0 or negative.
    pub stride: i64,
}

/// A function from coordinates to offsets, in elements: `shape:stride`.
///
/// ```
/// use invar_layout::Layout;
/// let layout: Layout = "((4,2),8):((1,32),4)".parse()?;
/// assert_eq!((layout.rank(), layout.depth()), (2, 2));
/// assert_eq!((layout.size(), layout.cosize()), (64, 64));
/// assert_eq!(layout.call(&"(5,3)".parse()?)?, 45); // 5 is (1,1): 1*1 + 1*32 + 3*4
/// assert_eq!(layout.call_index(29)?, 45); // 29 = 5 + 3*8
/// # Ok::<(), invar_layout::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Layout(pub(crate) Nested<Mode>);

impl Layout {
    /// The layout of a shape and a stride that nest alike.
    pub fn new(shape: &IntTuple, stride: &IntTuple) -> Result<Self> {
        match shape
            .view()
            .zip_map(stride.view(), |shape, stride| Mode { shape, stride })
        {
            Some(tree) => Self::checked(tree),
            None => Err(shape.not_congruent("layout", stride)),
        }
    }

    /// The compact layout of a shape whose leftmost mode is contiguous (column-major): the stride
    /// of each mode is the product of the sizes before it.
    pub fn compact(shape: &IntTuple) -> Result<Self> {
        shape
            .integers()
            .iter()
            .try_for_each(|&size| positive("layout", size))?;
        Self::new(shape, &shape.prefix_product()?)
    }

    /// The compact layout of a shape whose rightmost mode is contiguous (row-major).
    pub fn row_major(shape: &IntTuple) -> Result<Self> {
        let order: Vec<usize> = (0..shape.integers().len()).rev().collect();
        Self::in_order(shape, &order)
    }

    /// The compact layout of a shape whose modes are contiguous in the order given: the mode with
    /// the smallest order has stride 1. `order` nests like the shape, or gives one number for a
    /// whole mode, which is then compact inside from the left. Equal numbers run from the left.
    ///
    /// ```
    /// use invar_layout::Layout;
    /// let layout = Layout::ordered(&"(4,8,2)".parse()?, &"(2,0,1)".parse()?)?;
    /// assert_eq!(layout.to_string(), "(4,8,2):(16,1,8)");
    /// # Ok::<(), invar_layout::Error>(())
    /// ```
    pub fn ordered(shape: &IntTuple, order: &IntTuple) -> Result<Self> {
        fn spread(order: View<'_, i64>, shape: View<'_, i64>, out: &mut Vec<i64>) {
            match order.as_leaf() {
                Some(value) => out.extend(shape.leaves().iter().map(|_| value)),
                None => order
                    .modes()
                    .zip(shape.modes())
                    .for_each(|(o, s)| spread(o, s, out)),
            }
        }
        if !order.weakly_congruent(shape) {
            return Err(shape.not_congruent("ordered layout", order));
        }
        let mut rank_of = Vec::new();
        spread(order.view(), shape.view(), &mut rank_of);
        let mut leaves: Vec<usize> = (0..rank_of.len()).collect();
        leaves.sort_by_key(|&leaf| rank_of[leaf]);
        Self::in_order(shape, &leaves)
    }

    /// The compact layout whose leaves have ascending strides in the order listed.
    fn in_order(shape: &IntTuple, leaves: &[usize]) -> Result<Self> {
        let mut strides = vec![0; leaves.len()];
        let mut running = Some(1i64);
        for &leaf in leaves {
            let size = shape.integers()[leaf];
            positive("layout", size)?;
            strides[leaf] = running.ok_or(Error::Overflow { what: "a stride" })?;
            running = strides[leaf].checked_mul(size);
        }
        let mut next = strides.into_iter();
        Self::checked(shape.0.map(|shape| Mode {
            shape,
            stride: next.next().unwrap_or(0),
        }))
    }

    /// The layout of a shape that maps every coordinate to its own index: the identity on
    /// integers. [`IntTuple::coordinate`] gives the coordinate back.
    pub fn identity(shape: &IntTuple) -> Result<Self> {
        Self::compact(shape)
    }

    /// The layout of one mode.
    pub fn single(shape: i64, stride: i64) -> Result<Self> {
        Self::checked(Nested::leaf(Mode { shape, stride }))
    }

    /// The layout whose modes are the given layouts, in order.
    pub fn tuple(modes: impl IntoIterator<Item = Layout>) -> Result<Self> {
        let mut out = Nested::new();
        let open = out.open()?;
        for mode in modes {
            out.push_view(mode.view())?;
            out.count(&open);
        }
        Self::checked(out)
    }

    /// The checks that make a tree of modes a layout.
    pub(crate) fn checked(tree: Nested<Mode>) -> Result<Self> {
        tree.check_depth()?;
        let (mut size, mut low, mut high) = (Some(1i64), Some(0i64), Some(0i64));
        for &Mode { shape, stride } in tree.leaves() {
            positive("layout", shape)?;
            size = size.and_then(|size| size.checked_mul(shape));
            let reach = (shape - 1).checked_mul(stride);
            if stride < 0 {
                low = low
                    .zip(reach)
                    .and_then(|(low, reach)| low.checked_add(reach));
            } else {
                high = high
                    .zip(reach)
                    .and_then(|(high, reach)| high.checked_add(reach));
            }
        }
        if size.is_none() {
            return Err(Error::Overflow {
                what: "the size of a layout",
            });
        }
        let extent = high
            .zip(low)
            .and_then(|(high, low)| high.checked_sub(low)?.checked_add(1));
        if extent.is_none() {
            return Err(Error::Overflow {
                what: "the range of offsets of a layout",
            });
        }
        Ok(Layout(tree))
    }

    pub(crate) fn view(&self) -> View<'_, Mode> {
        self.0.view()
    }

    /// The shape.
    pub fn shape(&self) -> IntTuple {
        IntTuple(self.0.map(|mode| mode.shape))
    }

    /// The stride, nested like the shape.
    pub fn stride(&self) -> IntTuple {
        IntTuple(self.0.map(|mode| mode.stride))
    }

    /// All integers of the shape with their strides, left to right.
    pub fn leaves(&self) -> &[Mode] {
        self.0.leaves()
    }

    /// The number of modes: 1 for a single integer mode.
    pub fn rank(&self) -> usize {
        self.view().rank()
    }

    /// Levels of parentheses: 0 for `4:1`.
    pub fn depth(&self) -> usize {
        self.view().depth()
    }

    /// The number of coordinates.
    pub fn size(&self) -> i64 {
        size_of(self.view())
    }

    /// The number of integers from the smallest offset to the largest, both included: how many
    /// elements of memory the layout needs. Without negative strides, the largest offset plus 1.
    pub fn cosize(&self) -> i64 {
        self.leaves()
            .iter()
            .map(|mode| ((mode.shape - 1) * mode.stride).abs())
            .sum::<i64>()
            + 1
    }

    /// The smallest offset: 0 without negative strides.
    pub fn least_offset(&self) -> i64 {
        self.leaves()
            .iter()
            .map(|mode| ((mode.shape - 1) * mode.stride).min(0))
            .sum()
    }

    /// The modes, left to right; a single integer mode is its own only mode.
    pub fn modes(&self) -> impl ExactSizeIterator<Item = Layout> + '_ {
        self.view().modes().map(|mode| Layout(mode.to_nested()))
    }

    /// Mode `index`, from 0.
    pub fn mode(&self, index: usize) -> Result<Layout> {
        match self.view().mode(index) {
            Some(mode) => Ok(Layout(mode.to_nested())),
            None => Err(Error::NoSuchMode {
                operation: "mode",
                mode: shown(index),
                rank: self.rank(),
            }),
        }
    }

    /// Whether the layout is one integer mode such as `4:1`, without parentheses.
    pub fn is_single(&self) -> bool {
        self.view().as_leaf().is_some()
    }

    /// The layout of the modes listed, in the order listed; each at most once.
    pub fn select(&self, modes: &[usize]) -> Result<Layout> {
        Self::checked(int_tuple::select(self.view(), modes)?)
    }

    /// Modes `begin..end` gathered into one mode, the others as they are.
    pub fn group(&self, begin: usize, end: usize) -> Result<Layout> {
        Self::checked(int_tuple::group(self.view(), begin, end)?)
    }

    /// All integer modes in one tuple without inner parentheses; a single mode stays as it is.
    pub fn flatten(&self) -> Layout {
        Layout(int_tuple::flatten(self.view()))
    }

    /// One more mode at the end; a single integer mode becomes the first of two.
    pub fn append(&self, mode: &Layout) -> Result<Layout> {
        let mut out = Nested::new();
        out.push_tuple(self.rank() + 1)?;
        for mode in self.view().modes() {
            out.push_view(mode)?;
        }
        out.push_view(mode.view())?;
        Self::checked(out)
    }

    /// The offset of a coordinate: an integer, or a tuple that nests like the layout down to
    /// integers for whole modes.
    ///
    /// A coordinate past its mode goes on with the last stride of that mode, as the algebra takes
    /// it; [`IntTuple::check_coordinate`] refuses it instead.
    pub fn call(&self, coordinate: &IntTuple) -> Result<i64> {
        offset(coordinate.view(), self.view())
            .map_err(|error| self.describe(error, || coordinate.to_string()))
    }

    /// The offset of the coordinate with the given index.
    pub fn call_index(&self, index: i64) -> Result<i64> {
        offset_of_index(index, self.view())
    }

    /// The coordinate with the given index; see [`IntTuple::coordinate`].
    pub fn coordinate(&self, index: i64) -> Result<IntTuple> {
        self.shape().coordinate(index)
    }

    /// The index of a coordinate; the inverse of [`Layout::coordinate`].
    pub fn index(&self, coordinate: &IntTuple) -> Result<i64> {
        self.shape().index(coordinate)
    }

    /// The part of the layout that a coordinate with `_` leaves, and the offset at which it starts.
    ///
    /// The kept modes form one tuple, in order; inside a nested coordinate they join the same
    /// tuple. `_` alone keeps everything, a coordinate without `_` leaves `():()`.
    pub fn slice(&self, coordinate: &Coord) -> Result<(Layout, i64)> {
        fn go(
            c: View<'_, Option<i64>>,
            l: View<'_, Mode>,
            kept: &mut Nested<Mode>,
            open: &crate::nested::Open,
        ) -> std::result::Result<i64, Error> {
            match c.as_leaf() {
                Some(None) => {
                    kept.push_view(l)?;
                    kept.count(open);
                    Ok(0)
                }
                Some(Some(index)) => offset_of_index(index, l),
                None if l.as_leaf().is_some() || c.rank() != l.rank() => Err(mismatch()),
                None => {
                    let mut sum = 0i64;
                    for (c, l) in c.modes().zip(l.modes()) {
                        sum = sum
                            .checked_add(go(c, l, kept, open)?)
                            .ok_or(offset_overflow())?;
                    }
                    Ok(sum)
                }
            }
        }
        if coordinate.0.view().as_leaf() == Some(None) {
            return Ok((self.clone(), 0));
        }
        let mut kept = Nested::new();
        let open = kept.open()?;
        let start = go(coordinate.0.view(), self.view(), &mut kept, &open)
            .map_err(|error| self.describe(error, || coordinate.to_string()))?;
        Ok((Self::checked(kept)?, start))
    }

    /// Puts the user's own coordinate and shape into a mismatch found deep inside them.
    fn describe(&self, error: Error, coordinate: impl FnOnce() -> String) -> Error {
        match error {
            Error::NotCongruent { operation, .. } => Error::NotCongruent {
                operation,
                left: coordinate(),
                right: self.shape().to_string(),
            },
            other => other,
        }
    }
}

fn mismatch() -> Error {
    Error::NotCongruent {
        operation: "coordinate",
        left: String::new(),
        right: String::new(),
    }
}

fn offset_overflow() -> Error {
    Error::Overflow { what: "an offset" }
}

fn offset(coordinate: View<'_, i64>, layout: View<'_, Mode>) -> Result<i64> {
    match coordinate.as_leaf() {
        Some(index) => offset_of_index(index, layout),
        None if layout.as_leaf().is_some() || coordinate.rank() != layout.rank() => Err(mismatch()),
        None => {
            let mut sum = 0i64;
            for (c, l) in coordinate.modes().zip(layout.modes()) {
                sum = sum.checked_add(offset(c, l)?).ok_or(offset_overflow())?;
            }
            Ok(sum)
        }
    }
}

/// Counts through the leaves, leftmost fastest; the last leaf takes all that is left.
pub(crate) fn offset_of_index(index: i64, layout: View<'_, Mode>) -> Result<i64> {
    non_negative("coordinate", "index", index)?;
    let Some((last, before)) = layout.leaves().split_last() else {
        return if index == 0 {
            Ok(0)
        } else {
            Err(Error::OutOfBounds {
                coordinate: index.to_string(),
                shape: "()".into(),
            })
        };
    };
    let (mut rest, mut sum) = (index, 0i64);
    for mode in before {
        // Inside the shape, so the invariant bounds the sum.
        sum += (rest % mode.shape) * mode.stride;
        rest /= mode.shape;
        if rest == 0 {
            return Ok(sum);
        }
    }
    rest.checked_mul(last.stride)
        .and_then(|step| sum.checked_add(step))
        .ok_or(offset_overflow())
}

/// The product of the sizes, which the invariant bounds.
pub(crate) fn size_of(view: View<'_, Mode>) -> i64 {
    view.leaves().iter().map(|mode| mode.shape).product()
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_layout(self.view(), f)
    }
}

pub(crate) fn write_layout(view: View<'_, Mode>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    view.write(f, |mode, f| fmt::Display::fmt(&mode.shape, f))?;
    f.write_str(":")?;
    view.write(f, |mode, f| fmt::Display::fmt(&mode.stride, f))
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
