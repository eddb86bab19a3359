//! Tiles, and what they cut or repeat: divides, products and thread-value layouts.
//!
//! A divide splits a layout into a tile and the rest; a product repeats a layout along another.
//! Both exist in several arrangements of the same modes: logical (each mode keeps its place),
//! zipped (tiles together, rests together), tiled (the rests spread out) and flat (all spread out).

use crate::algebra::{Steps, check_tile_rank, complement_list, push_list};
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

/// Divides or multiplies one layout by one layout: writes the two modes of the result, apart.
type Split = fn(View<'_, Mode>, &Layout) -> Result<(Nested<Mode>, Nested<Mode>)>;

/// A zipped result: the tiles and the rests.
type Zipped = (Nested<Mode>, Nested<Mode>);

/// `(A∘B, A∘complement(B, size(A)))`.
fn divide(a: View<'_, Mode>, b: &Layout) -> Result<Zipped> {
    let rest = complement_list(b.view(), size_of(a))?;
    let steps = Steps::new(a);
    let (mut tile, mut others) = (Nested::new(), Nested::new());
    steps.compose(b.view(), &mut tile)?;
    let mut list = Nested::new();
    push_list(&mut list, &rest)?;
    steps.compose(list.view(), &mut others)?;
    Ok((tile, others))
}

/// `(A, complement(A, size(A)*cosize(B))∘B)`.
fn multiply(a: View<'_, Mode>, b: &Layout) -> Result<Zipped> {
    let target = size_of(a).checked_mul(b.cosize()).ok_or(Error::Overflow {
        what: "a product of sizes",
    })?;
    let mut free = Nested::new();
    push_list(&mut free, &complement_list(a, target)?)?;
    let mut repeats = Nested::new();
    Steps::new(free.view()).compose(b.view(), &mut repeats)?;
    Ok((a.to_nested(), repeats))
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
            let (first, second) = split(a, b)?;
            out.push_tuple(2)?;
            out.push_view(first.view())?;
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

/// Tiles together and rests together: `((tile0,tile1),(rest0,rest1,mode2,...))`.
fn zipped(
    operation: &'static str,
    split: Split,
    a: View<'_, Mode>,
    tile: &Tiler,
) -> Result<Zipped> {
    match &tile.0 {
        TilerKind::Keep => Ok((
            Nested::leaf(Mode {
                shape: 1,
                stride: 0,
            }),
            a.to_nested(),
        )),
        TilerKind::Layout(b) => split(a, b),
        TilerKind::Tuple(tiles) => {
            check_tile_rank(operation, a, tiles)?;
            let (mut first, mut second) = (Nested::new(), Nested::new());
            first.push_tuple(tiles.len())?;
            second.push_tuple(a.rank())?;
            let mut tiles = tiles.iter();
            for mode in a.modes() {
                let Some(tile) = tiles.next() else {
                    second.push_view(mode)?;
                    continue;
                };
                let (tile, rest) = zipped(operation, split, mode, tile)?;
                first.push_view(tile.view())?;
                second.push_view(rest.view())?;
            }
            Ok((first, second))
        }
    }
}

/// The tile as one mode or spread out, then the rests spread out.
fn spread((tile, rest): Zipped, spread_tile: bool) -> Result<Layout> {
    let (tile, rest) = (tile.view(), rest.view());
    let mut out = Nested::new();
    out.push_tuple(if spread_tile { tile.rank() } else { 1 } + rest.rank())?;
    if spread_tile {
        tile.modes().try_for_each(|mode| out.push_view(mode))?;
    } else {
        out.push_view(tile)?;
    }
    rest.modes().try_for_each(|mode| out.push_view(mode))?;
    Layout::checked(out)
}

fn pair((first, second): Zipped) -> Result<Layout> {
    let mut out = Nested::new();
    out.push_tuple(2)?;
    out.push_view(first.view())?;
    out.push_view(second.view())?;
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
        pair(zipped("zipped divide", divide, self.view(), tile)?)
    }

    /// Splits by a tile: `((tile0,tile1,...),rest0,rest1,...)`.
    pub fn tiled_divide(&self, tile: &Tiler) -> Result<Layout> {
        spread(zipped("tiled divide", divide, self.view(), tile)?, false)
    }

    /// Splits by a tile: `(tile0,tile1,...,rest0,rest1,...)`.
    pub fn flat_divide(&self, tile: &Tiler) -> Result<Layout> {
        spread(zipped("flat divide", divide, self.view(), tile)?, true)
    }

    /// Repeats `self` along another layout: mode 0 is `self`, mode 1 places its copies in the
    /// order of `other`, in what `self` leaves free: `complement(self, size*cosize(other))∘other`.
    /// By a tuple, mode by mode.
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
        pair(zipped("zipped product", multiply, self.view(), other)?)
    }

    /// Repeats by a tile: `((block0,block1,...),copies0,copies1,...)`.
    pub fn tiled_product(&self, other: &Tiler) -> Result<Layout> {
        spread(
            zipped("tiled product", multiply, self.view(), other)?,
            false,
        )
    }

    /// Repeats by a tile: `(block0,block1,...,copies0,copies1,...)`.
    pub fn flat_product(&self, other: &Tiler) -> Result<Layout> {
        spread(zipped("flat product", multiply, self.view(), other)?, true)
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
        zip_modes(multiply(self.view(), &as_tuple(other)?)?)
    }

    /// As [`Layout::blocked_product`] with the copies interleaved: mode `i` is
    /// `(other's mode i, self's mode i)`, so neighbours belong to different copies.
    pub fn raked_product(&self, other: &Layout) -> Result<Layout> {
        let (first, second) = multiply(self.view(), &as_tuple(other)?)?;
        zip_modes((second, first))
    }
}

/// The same modes in a tuple: `4:1` becomes `(4):(1)`, so that however many modes a mode turns
/// into, they stay one mode.
fn as_tuple(layout: &Layout) -> Result<Layout> {
    if layout.is_single() {
        Layout::tuple([layout.clone()])
    } else {
        Ok(layout.clone())
    }
}

/// `((first0,second0),(first1,second1),...)`, with `1:0` for missing modes.
fn zip_modes((first, second): Zipped) -> Result<Layout> {
    let padding = Nested::leaf(Mode {
        shape: 1,
        stride: 0,
    });
    let rank = first.view().rank().max(second.view().rank());
    let (mut a, mut b) = (first.view().modes(), second.view().modes());
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
/// once, or some of the tile belongs to nobody and the inverse falls short, which is an error.
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
    let owner = threads.raked_product(values)?;
    let tile = owner.shape().product_each()?;
    let inverse = owner.right_inverse()?;
    if inverse.size() != owner.size() {
        return Err(Error::Incomplete {
            layout: owner.to_string(),
            reached: inverse.size(),
            size: owner.size(),
        });
    }
    let pairs = Layout::compact(&IntTuple::flat(&[threads.size(), values.size()])?)?;
    Ok((tile, inverse.compose(&pairs)?))
}
