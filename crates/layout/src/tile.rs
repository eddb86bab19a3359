//! Tiles, and what they cut or repeat: divides, products and thread-value layouts.
//!
//! A divide splits a layout into a tile and the rest; a product repeats a layout along another.
//! Both exist in several arrangements of the same modes: logical (each mode keeps its place),
//! zipped (tiles together, rests together), tiled (the rests spread out) and flat (all spread out).

use crate::algebra::{Steps, check_tile_rank, complement_into, compose_into, free_into};
use crate::error::{Error, Result};
use crate::int_tuple::IntTuple;
use crate::layout::{Layout, Mode, size_of};
use crate::nested::{MAX_DEPTH, MAX_LEAVES, Nested, View};
use std::fmt;

/// What a layout is tiled by: one layout for all of it, or a tuple with one tiler for each mode.
///
/// An integer `n` is the layout `n:1`. Printed and parsed, a tuple stands in angle brackets, and a
/// mode that stays whole is `_`: `<16,_,(4,2):(1,8)>`.
///
/// ```
/// use invar_layout::{IntTuple, Layout, Tiler};
/// let tensor: Layout = "(256,512):(512,1)".parse()?;
/// let tile = Tiler::from_shape(&"(16,256)".parse()?)?;
/// assert_eq!(tensor.zipped_divide(&tile)?.to_string(), "((16,256),(16,2)):((512,1),(8192,256))");
/// # Ok::<(), invar_layout::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tiler(pub(crate) TilerKind);

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum TilerKind {
    Keep,
    Layout(Layout),
    Tuple(Vec<Tiler>),
}

impl From<Layout> for Tiler {
    fn from(layout: Layout) -> Self {
        Tiler(TilerKind::Layout(layout))
    }
}

impl Tiler {
    /// The mode stays whole.
    pub fn keep() -> Self {
        Tiler(TilerKind::Keep)
    }

    /// `count` neighbouring elements: the layout `count:1`.
    pub fn int(count: i64) -> Result<Self> {
        Ok(Layout::single(count, 1)?.into())
    }

    /// A shape as a tile: an integer becomes [`Tiler::int`], a tuple a tuple.
    pub fn from_shape(shape: &IntTuple) -> Result<Self> {
        match shape.as_int() {
            Some(count) => Self::int(count),
            None => {
                let modes: Result<Vec<_>> =
                    shape.modes().map(|mode| Self::from_shape(&mode)).collect();
                Self::tuple(modes?)
            }
        }
    }

    /// One tiler for each mode. Fails past the limits on count and depth.
    pub fn tuple(modes: Vec<Tiler>) -> Result<Self> {
        let tiler = Tiler(TilerKind::Tuple(modes));
        if tiler.depth() > MAX_DEPTH {
            return Err(Error::Limit {
                what: "levels of nesting",
                limit: MAX_DEPTH,
            });
        }
        if tiler.parts() > MAX_LEAVES {
            return Err(Error::Limit {
                what: "parts in one tiler",
                limit: MAX_LEAVES,
            });
        }
        Ok(tiler)
    }

    /// The layout, if the tiler is one (an integer is the layout `count:1`).
    pub fn as_layout(&self) -> Option<&Layout> {
        match &self.0 {
            TilerKind::Layout(layout) => Some(layout),
            TilerKind::Keep | TilerKind::Tuple(_) => None,
        }
    }

    fn depth(&self) -> usize {
        match &self.0 {
            TilerKind::Tuple(modes) => 1 + modes.iter().map(Tiler::depth).max().unwrap_or(0),
            TilerKind::Keep | TilerKind::Layout(_) => 0,
        }
    }

    fn parts(&self) -> usize {
        match &self.0 {
            TilerKind::Tuple(modes) => 1 + modes.iter().map(Tiler::parts).sum::<usize>(),
            TilerKind::Keep | TilerKind::Layout(_) => 1,
        }
    }
}

impl fmt::Display for Tiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            TilerKind::Keep => f.write_str("_"),
            TilerKind::Layout(layout) => fmt::Display::fmt(layout, f),
            TilerKind::Tuple(modes) => {
                f.write_str("<")?;
                for (at, mode) in modes.iter().enumerate() {
                    if at > 0 {
                        f.write_str(",")?;
                    }
                    fmt::Display::fmt(mode, f)?;
                }
                f.write_str(">")
            }
        }
    }
}

/// Divides or multiplies one layout by one layout: appends the two modes of the result to the two
/// trees. Trees are passed down rather than returned, because moving them is what costs time here.
type Split = fn(View<'_, Mode>, &Layout, &mut Nested<Mode>, &mut Nested<Mode>) -> Result<()>;

/// `A∘B` and `A∘complement(B, size(A))`.
fn divide(
    a: View<'_, Mode>,
    b: &Layout,
    tile: &mut Nested<Mode>,
    rest: &mut Nested<Mode>,
) -> Result<()> {
    let mut others = Nested::new();
    complement_into(b.view(), size_of(a), &mut others)?;
    let mut steps = Steps::new(a);
    steps.compose(b.view(), tile)?;
    steps.check_carry(b.view())?;
    steps.restart();
    steps.compose(others.view(), rest)?;
    steps.check_carry(others.view())
}

/// `A` and `complement(A, size(A)*cosize(B))∘B`.
fn multiply(
    a: View<'_, Mode>,
    b: &Layout,
    block: &mut Nested<Mode>,
    copies: &mut Nested<Mode>,
) -> Result<()> {
    let target = size_of(a).checked_mul(b.cosize()).ok_or(Error::Overflow {
        what: "a product of sizes",
    })?;
    let mut free = Nested::new();
    free_into(a, target, b.cosize(), &mut free)?;
    block.push_view(a)?;
    let mut steps = Steps::new(free.view());
    steps.compose(b.view(), copies)?;
    // Copies that `b` itself puts in one place meet whatever is done; others must not.
    match steps.check_carry(b.view()) {
        Err(error) if b.complement(1).is_ok() => Err(error),
        _ => Ok(()),
    }
}

/// Each mode in its place: `((tile0,rest0),(tile1,rest1),mode2,...)`.
fn logical(
    operation: &'static str,
    split: Split,
    a: View<'_, Mode>,
    tile: &Tiler,
    out: &mut Nested<Mode>,
) -> Result<()> {
    match &tile.0 {
        TilerKind::Keep => out.push_view(a),
        TilerKind::Layout(b) => {
            let mut second = Nested::new();
            out.push_tuple(2)?;
            split(a, b, out, &mut second)?;
            out.push_view(second.view())
        }
        TilerKind::Tuple(tiles) => {
            check_tile_rank(operation, a, tiles)?;
            out.push_tuple(a.rank())?;
            let mut tiles = tiles.iter();
            a.modes().try_for_each(|mode| match tiles.next() {
                Some(tile) => logical(operation, split, mode, tile, out),
                None => out.push_view(mode),
            })
        }
    }
}

/// Tiles together in `first`, rests and modes without a tile together in `second`.
fn zipped(
    operation: &'static str,
    split: Split,
    a: View<'_, Mode>,
    tile: &Tiler,
    first: &mut Nested<Mode>,
    second: &mut Nested<Mode>,
) -> Result<()> {
    match &tile.0 {
        TilerKind::Keep => {
            first.push_leaf(Mode {
                shape: 1,
                stride: 0,
            })?;
            second.push_view(a)
        }
        TilerKind::Layout(b) => split(a, b, first, second),
        TilerKind::Tuple(tiles) => {
            check_tile_rank(operation, a, tiles)?;
            first.push_tuple(tiles.len())?;
            second.push_tuple(a.rank())?;
            let mut tiles = tiles.iter();
            a.modes().try_for_each(|mode| match tiles.next() {
                Some(tile) => zipped(operation, split, mode, tile, first, second),
                None => second.push_view(mode),
            })
        }
    }
}

/// How the two halves of a zipped result are put together.
#[derive(Clone, Copy, PartialEq)]
enum Arrangement {
    /// `(tiles, rests)`.
    Zipped,
    /// `(tiles, rest0, rest1, ...)`.
    Tiled,
    /// `(tile0, tile1, ..., rest0, rest1, ...)`.
    Flat,
}

fn arrange(
    operation: &'static str,
    split: Split,
    a: &Layout,
    tile: &Tiler,
    arrangement: Arrangement,
) -> Result<Layout> {
    let mut out = Nested::new();
    let mut rest = Nested::new();
    if arrangement == Arrangement::Zipped {
        out.push_tuple(2)?;
        zipped(operation, split, a.view(), tile, &mut out, &mut rest)?;
        out.push_view(rest.view())?;
        return Layout::checked(out);
    }
    let mut first = Nested::new();
    zipped(operation, split, a.view(), tile, &mut first, &mut rest)?;
    let (first, rest) = (first.view(), rest.view());
    if arrangement == Arrangement::Flat {
        out.push_tuple(first.rank() + rest.rank())?;
        first.modes().try_for_each(|mode| out.push_view(mode))?;
    } else {
        out.push_tuple(1 + rest.rank())?;
        out.push_view(first)?;
    }
    rest.modes().try_for_each(|mode| out.push_view(mode))?;
    Layout::checked(out)
}

impl Layout {
    /// Splits each mode into its tile and the rest: `((tile0,rest0),(tile1,rest1),...)`. By one
    /// layout `B`, all of `self` is split into `self∘B` and `self∘complement(B, size)`.
    ///
    /// ```
    /// use invar_layout::Layout;
    /// let layout: Layout = "(4,2,3):(2,1,8)".parse()?;
    /// let tile: Layout = "4:2".parse()?;
    /// assert_eq!(layout.logical_divide(&tile.into())?.to_string(), "((2,2),(2,3)):((4,1),(2,8))");
    /// # Ok::<(), invar_layout::Error>(())
    /// ```
    pub fn logical_divide(&self, tile: &Tiler) -> Result<Layout> {
        let mut out = Nested::new();
        logical("logical divide", divide, self.view(), tile, &mut out)?;
        Layout::checked(out)
    }

    /// Splits by a tile and gathers: `((tile0,tile1,...),(rest0,rest1,...))`.
    pub fn zipped_divide(&self, tile: &Tiler) -> Result<Layout> {
        arrange("zipped divide", divide, self, tile, Arrangement::Zipped)
    }

    /// Splits by a tile: `((tile0,tile1,...),rest0,rest1,...)`.
    pub fn tiled_divide(&self, tile: &Tiler) -> Result<Layout> {
        arrange("tiled divide", divide, self, tile, Arrangement::Tiled)
    }

    /// Splits by a tile: `(tile0,tile1,...,rest0,rest1,...)`.
    pub fn flat_divide(&self, tile: &Tiler) -> Result<Layout> {
        arrange("flat divide", divide, self, tile, Arrangement::Flat)
    }

    /// Repeats `self` along another layout: mode 0 is `self`, mode 1 places its copies in the
    /// order of `other`, in what `self` leaves free: `complement(self, size*cosize(other))∘other`.
    /// By a tuple, mode by mode. If modes of `other` overlap, their copies are placed mode by mode
    /// and may meet; otherwise different places never share an element.
    ///
    /// ```
    /// use invar_layout::Layout;
    /// let layout: Layout = "(2,2):(4,1)".parse()?;
    /// let copies: Layout = "6:1".parse()?;
    /// let product = layout.logical_product(&copies.into())?;
    /// assert_eq!(product.to_string(), "((2,2),(2,3)):((4,1),(2,8))");
    /// # Ok::<(), invar_layout::Error>(())
    /// ```
    pub fn logical_product(&self, other: &Tiler) -> Result<Layout> {
        let mut out = Nested::new();
        logical("logical product", multiply, self.view(), other, &mut out)?;
        Layout::checked(out)
    }

    /// Repeats by a tile and gathers: `((block0,block1,...),(copies0,copies1,...))`.
    pub fn zipped_product(&self, other: &Tiler) -> Result<Layout> {
        arrange("zipped product", multiply, self, other, Arrangement::Zipped)
    }

    /// Repeats by a tile: `((block0,block1,...),copies0,copies1,...)`.
    pub fn tiled_product(&self, other: &Tiler) -> Result<Layout> {
        arrange("tiled product", multiply, self, other, Arrangement::Tiled)
    }

    /// Repeats by a tile: `(block0,block1,...,copies0,copies1,...)`.
    pub fn flat_product(&self, other: &Tiler) -> Result<Layout> {
        arrange("flat product", multiply, self, other, Arrangement::Flat)
    }

    /// A grid of copies of `self`, whole copies side by side: mode `i` is
    /// `(self's mode i, other's mode i)`. The shorter of the two gets modes `1:0`.
    ///
    /// ```
    /// use invar_layout::Layout;
    /// let block: Layout = "(2,5):(5,1)".parse()?;
    /// let grid: Layout = "(3,4):(1,3)".parse()?;
    /// assert_eq!(block.blocked_product(&grid)?.to_string(), "((2,3),(5,4)):((5,10),(1,30))");
    /// # Ok::<(), invar_layout::Error>(())
    /// ```
    pub fn blocked_product(&self, other: &Layout) -> Result<Layout> {
        let (block, copies) = blocks(self, other)?;
        zip_modes(block.view(), copies.view())
    }

    /// As [`Layout::blocked_product`] with the copies interleaved: mode `i` is
    /// `(other's mode i, self's mode i)`, so neighbours belong to different copies.
    pub fn raked_product(&self, other: &Layout) -> Result<Layout> {
        let (block, copies) = blocks(self, other)?;
        zip_modes(copies.view(), block.view())
    }
}

/// The two modes of the logical product. A single mode of `b` counts as a tuple of one, so that
/// however many modes its copies take, they stay one mode.
fn blocks(a: &Layout, b: &Layout) -> Result<(Nested<Mode>, Nested<Mode>)> {
    let (mut block, mut copies) = (Nested::new(), Nested::new());
    if b.is_single() {
        copies.push_tuple(1)?;
    }
    multiply(a.view(), b, &mut block, &mut copies)?;
    Ok((block, copies))
}

/// `((first0,second0),(first1,second1),...)`, with `1:0` for missing modes.
fn zip_modes(first: View<'_, Mode>, second: View<'_, Mode>) -> Result<Layout> {
    let padding = Nested::leaf(Mode {
        shape: 1,
        stride: 0,
    });
    let rank = first.rank().max(second.rank());
    let (mut a, mut b) = (first.modes(), second.modes());
    let mut out = Nested::new();
    out.push_tuple(rank)?;
    for _ in 0..rank {
        out.push_tuple(2)?;
        out.push_view(a.next().unwrap_or(padding.view()))?;
        out.push_view(b.next().unwrap_or(padding.view()))?;
    }
    Layout::checked(out)
}

/// The tile that threads and their values cover together, and who owns what in it: a layout
/// `(thread, value) -> index in the tile`, the tile's leftmost coordinate fastest.
///
/// `threads` places the threads over the tile, `values` the values of each thread; neighbouring
/// elements belong to one thread (the raked product). Each must give every number below its size
/// once, or some numbers would have no owner and others several.
///
/// ```
/// use invar_layout::{Layout, thread_value_layout};
/// let threads: Layout = "(4,64):(64,1)".parse()?;
/// let values: Layout = "(4,4):(4,1)".parse()?;
/// let (tile, owners) = thread_value_layout(&threads, &values)?;
/// assert_eq!(tile.to_string(), "(16,256)");
/// assert_eq!(owners.to_string(), "((64,4),(4,4)):((64,4),(16,1))");
/// # Ok::<(), invar_layout::Error>(())
/// ```
pub fn thread_value_layout(threads: &Layout, values: &Layout) -> Result<(IntTuple, Layout)> {
    for (what, layout) in [("thread", threads), ("value", values)] {
        let from_0 = layout.least_offset() == 0 && layout.size() == layout.cosize();
        if !from_0 || !layout.is_surjective() {
            return Err(Error::Incomplete {
                what,
                layout: layout.to_string(),
                size: layout.size(),
            });
        }
    }
    // Both are permutations, so their product is one, and its inverse covers all of it.
    let owner = threads.raked_product(values)?;
    let tile = owner.shape().product_each()?;
    let inverse = owner.right_inverse()?;
    // `(thread, value)` counts through the inverse threads first.
    let mut pairs = Nested::new();
    pairs.push_tuple(2)?;
    pairs.push_leaf(Mode {
        shape: threads.size(),
        stride: 1,
    })?;
    pairs.push_leaf(Mode {
        shape: values.size(),
        stride: threads.size(),
    })?;
    let mut owners = Nested::new();
    compose_into(inverse.view(), pairs.view(), &mut owners)?;
    Ok((tile, Layout::checked(owners)?))
}
