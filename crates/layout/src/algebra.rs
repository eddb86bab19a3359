//! The operations on layouts as functions: coalesce, filter, complement, composition, inverses.
//!
//! All follow Shah and others' CuTe (NVIDIA), taken as mathematics: an operation returns the
//! layout that its definition asks for, or says which condition the input fails. Two conventions
//! of the definitions matter throughout. A layout continues past its size along its last mode, and
//! an integer index runs through the modes leftmost fastest.

use crate::error::{Error, Result};
use crate::int_tuple::{IntTuple, non_negative};
use crate::layout::{Layout, Mode, write_layout};
use crate::nested::{Nested, View};
use crate::tile::{Tiler, TilerKind};
use smallvec::SmallVec;
use std::fmt;

pub(crate) type ModeList = SmallVec<[Mode; 8]>;

/// A borrowed layout, printed.
pub(crate) struct Shown<'a>(pub View<'a, Mode>);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_layout(self.0, f)
    }
}

fn overflow() -> Error {
    Error::Overflow { what: "a stride" }
}

impl Layout {
    /// The simplest layout with the same offset at every index: drops modes of size 1 and merges
    /// neighbours that continue each other. The result is one mode or a flat tuple.
    ///
    /// ```
    /// use invar_layout::Layout;
    /// let layout: Layout = "(2,(1,6)):(1,(6,2))".parse()?;
    /// assert_eq!(layout.coalesce().to_string(), "12:1");
    /// # Ok::<(), invar_layout::Error>(())
    /// ```
    pub fn coalesce(&self) -> Layout {
        from_modes(self.leaves().iter().copied())
    }

    /// Coalesces each mode on its own where `profile` has an integer; its integers are not looked
    /// at. Modes past the profile stay as they are, so `(1,1)` keeps a layout's rank of 2.
    pub fn coalesce_by(&self, profile: &IntTuple) -> Result<Layout> {
        fn go(l: View<'_, Mode>, p: View<'_, i64>, out: &mut Nested<Mode>) -> Result<()> {
            if p.as_leaf().is_some() {
                let mut list = ModeList::new();
                coalesce_onto(&mut list, l.leaves().iter().copied());
                return push_list(out, &list);
            }
            if p.rank() > l.rank() {
                return Err(Error::TileRank {
                    operation: "coalesce",
                    tile: p.rank(),
                    layout: l.rank(),
                });
            }
            out.push_tuple(l.rank())?;
            let mut parts = p.modes();
            for mode in l.modes() {
                match parts.next() {
                    Some(part) => go(mode, part, out)?,
                    None => out.push_view(mode)?,
                }
            }
            Ok(())
        }
        let mut out = Nested::new();
        go(self.view(), profile.view(), &mut out)?;
        Layout::checked(out)
    }

    /// The layout with the same offsets and no mode of stride 0, coalesced: each offset that a
    /// stride of 0 repeats is kept once.
    pub fn filter(&self) -> Layout {
        from_modes(
            self.leaves()
                .iter()
                .copied()
                .filter(|mode| mode.stride != 0),
        )
    }

    /// The layout that walks through what `self` leaves out of `0..cotarget`: the two together
    /// give each offset once, and `cotarget` is rounded up to a whole number of repetitions.
    /// Its strides ascend. Where a stride of `self` is not a multiple of what the smaller strides
    /// cover, the rest of that gap stays uncovered.
    ///
    /// Fails if the modes of `self` overlap: each stride above 0, in ascending order, must be at
    /// least the smaller stride times its size.
    ///
    /// ```
    /// use invar_layout::Layout;
    /// let layout: Layout = "(2,2):(1,6)".parse()?;
    /// assert_eq!(layout.complement(24)?.to_string(), "(3,2):(2,12)");
    /// # Ok::<(), invar_layout::Error>(())
    /// ```
    pub fn complement(&self, cotarget: i64) -> Result<Layout> {
        let mut out = Nested::new();
        complement_into(self.view(), cotarget, &mut out)?;
        Layout::checked(out)
    }

    /// The layout that applies `right` and then `self`: offset `i` of the result is the offset of
    /// `self` at index `right(i)`. It nests like `right`, mode by mode.
    ///
    /// Every mode `s:d` of `right` must step evenly through `self` (coalesced): at each mode of
    /// size `n` that it meets, either one of `n` and `d` divides the other, or the whole mode
    /// stays inside (`d < n` and `(s-1)*d < n`); and what does not fit must be a whole multiple.
    /// All modes of `right` together must not step past the end of a mode that each of them alone
    /// stays in, for their sum would then move on to the next.
    ///
    /// ```
    /// use invar_layout::Layout;
    /// let left: Layout = "(6,2):(8,2)".parse()?;
    /// let right: Layout = "(4,3):(3,1)".parse()?;
    /// assert_eq!(left.compose(&right)?.to_string(), "((2,2),3):((24,2),8)");
    /// # Ok::<(), invar_layout::Error>(())
    /// ```
    pub fn compose(&self, right: &Layout) -> Result<Layout> {
        let mut out = Nested::new();
        compose_into(self.view(), right.view(), &mut out)?;
        Layout::checked(out)
    }

    /// Composes mode by mode with a tile, and so cuts out the tile at the origin: modes past the
    /// tile are dropped, those that it keeps (`_`) stay whole. A tile that is one layout composes
    /// with all of `self`.
    pub fn compose_tile(&self, tile: &Tiler) -> Result<Layout> {
        fn go(l: View<'_, Mode>, tile: &TilerKind, out: &mut Nested<Mode>) -> Result<()> {
            match tile {
                TilerKind::Keep => out.push_view(l),
                TilerKind::Layout(right) => compose_into(l, right.view(), out),
                TilerKind::Tuple(tiles) => {
                    check_tile_rank("composition", l, tiles)?;
                    out.push_tuple(tiles.len())?;
                    l.modes()
                        .zip(tiles)
                        .try_for_each(|(mode, tile)| go(mode, &tile.0, out))
                }
            }
        }
        let mut out = Nested::new();
        go(self.view(), &tile.0, &mut out)?;
        Layout::checked(out)
    }

    /// The largest layout `r` that this method finds with `self(r(i)) == i` for every index `i` of
    /// `r`: it walks through the offsets 0, 1, 2, ... for as long as the modes give them without a
    /// gap. Modes of stride 0 are passed over. `1:0` if offset 1 is never reached first.
    ///
    /// ```
    /// use invar_layout::Layout;
    /// let layout: Layout = "(4,8):(8,1)".parse()?;
    /// assert_eq!(layout.right_inverse()?.to_string(), "(8,4):(4,1)");
    /// # Ok::<(), invar_layout::Error>(())
    /// ```
    pub fn right_inverse(&self) -> Result<Layout> {
        let mut sorted = Sorted::new();
        by_stride(self.view(), "right inverse", &mut sorted)?;
        let mut found = ModeList::new();
        let mut next = 1i64;
        for &(mode, index) in &sorted {
            if mode.stride != next {
                if mode.stride < next {
                    continue;
                }
                break;
            }
            found.push(Mode {
                shape: mode.shape,
                stride: index,
            });
            // Inside the layout's cosize, which fits.
            next = mode.stride.checked_mul(mode.shape).ok_or(overflow())?;
        }
        Ok(from_modes(found.iter().copied()))
    }

    /// The layout `r` with `r(self(i)) == i` for every index `i` of `self`. Offsets that `self`
    /// never gives are mapped to something; nothing depends on to what.
    ///
    /// Fails if `self` gives an offset twice, or if its strides, in ascending order, are not
    /// multiples of one another.
    ///
    /// ```
    /// use invar_layout::Layout;
    /// let layout: Layout = "(4,2):(1,10)".parse()?;
    /// assert_eq!(layout.left_inverse()?.to_string(), "(10,2):(1,4)");
    /// # Ok::<(), invar_layout::Error>(())
    /// ```
    pub fn left_inverse(&self) -> Result<Layout> {
        let mut sorted = Sorted::new();
        by_stride(self.view(), "left inverse", &mut sorted)?;
        if self
            .leaves()
            .iter()
            .any(|mode| mode.stride == 0 && mode.shape > 1)
        {
            return Err(Error::NotInjective {
                operation: "left inverse",
                layout: self.to_string(),
            });
        }
        let mut modes = ModeList::new();
        let Some((first, _)) = sorted.first() else {
            return Layout::single(1, 0);
        };
        if first.stride > 1 {
            modes.push(Mode {
                shape: first.stride,
                stride: 0,
            });
        }
        for (at, &(mode, index)) in sorted.iter().enumerate() {
            let shape = match sorted.get(at + 1) {
                None => mode.shape,
                Some((next, _)) => {
                    // `by_stride` leaves only sizes of at least 2, so an overlap repeats offsets.
                    let least = mode.stride.checked_mul(mode.shape).ok_or(overflow())?;
                    if next.stride < least {
                        return Err(Error::Overlap {
                            operation: "left inverse",
                            layout: self.to_string(),
                            stride: next.stride,
                            least,
                        });
                    }
                    if next.stride % mode.stride != 0 {
                        return Err(Error::StrideMultiple {
                            layout: self.to_string(),
                            stride: next.stride,
                            divisor: mode.stride,
                        });
                    }
                    next.stride / mode.stride
                }
            };
            modes.push(Mode {
                shape,
                stride: index,
            });
        }
        let mut list = ModeList::new();
        coalesce_onto(&mut list, modes.iter().copied());
        let mut out = Nested::new();
        push_list(&mut out, &list)?;
        Layout::checked(out)
    }

    /// The same memory seen as elements of `new_bits` instead of `old_bits`: offsets are divided
    /// or multiplied, and the mode of neighbouring elements shrinks or grows.
    ///
    /// To larger elements, of `n` old ones each: every stride must divide or be a multiple of `n`,
    /// and each mode's size fit whole elements (or lie inside one). To smaller ones, exactly one
    /// mode must have stride 1. If neither size divides the other, it goes through their common
    /// larger element, of which each mode must hold a whole number: what lies inside one would come
    /// out as all of it.
    ///
    /// ```
    /// use invar_layout::Layout;
    /// let bytes: Layout = "(4,64):(64,1)".parse()?;
    /// assert_eq!(bytes.recast(32, 8)?.to_string(), "(4,16):(16,1)");
    /// assert_eq!(bytes.recast(4, 8)?.to_string(), "(4,128):(128,1)");
    /// # Ok::<(), invar_layout::Error>(())
    /// ```
    pub fn recast(&self, new_bits: i64, old_bits: i64) -> Result<Layout> {
        let (up, down) = recast_ratio(new_bits, old_bits)?;
        let up = if up == 1 {
            self.clone()
        } else {
            self.to_larger(up, down > 1)?
        };
        if down == 1 {
            Ok(up)
        } else {
            up.to_smaller(down)
        }
    }

    fn to_larger(&self, parts: i64, whole: bool) -> Result<Layout> {
        let mut out = self.0.clone();
        let mut failure = None;
        out = out.map(|mode| {
            larger_mode(mode, parts, whole).unwrap_or_else(|error| {
                failure.get_or_insert(error);
                mode
            })
        });
        match failure {
            Some(error) => Err(error),
            None => Layout::checked(out),
        }
    }

    fn to_smaller(&self, parts: i64) -> Result<Layout> {
        let leaves = self.leaves();
        if let Some(mode) = leaves.iter().find(|mode| mode.stride < 0) {
            non_negative("recast", "stride", mode.stride)?;
        }
        let unit = |mode: &Mode| mode.stride == 1;
        let mut grown = leaves.iter().position(|mode| unit(mode) && mode.shape > 1);
        if leaves
            .iter()
            .filter(|mode| unit(mode) && mode.shape > 1)
            .count()
            > 1
        {
            return Err(Error::SeveralUnitStrides {
                layout: self.to_string(),
            });
        }
        grown = grown.or_else(|| leaves.iter().position(unit));
        let Some(grown) = grown else {
            return Err(Error::NoUnitStride {
                layout: self.to_string(),
                parts,
            });
        };
        let (mut at, mut fits) = (0, true);
        let mut scale = |value: i64| {
            value.checked_mul(parts).unwrap_or_else(|| {
                fits = false;
                value
            })
        };
        let out = self.0.map(|mode| {
            at += 1;
            if at - 1 == grown {
                Mode {
                    shape: scale(mode.shape),
                    stride: 1,
                }
            } else {
                Mode {
                    shape: mode.shape,
                    stride: scale(mode.stride),
                }
            }
        });
        if fits {
            Layout::checked(out)
        } else {
            Err(overflow())
        }
    }
}

/// How many old elements make a new one and how many new ones an old one, reduced.
pub(crate) fn recast_ratio(new_bits: i64, old_bits: i64) -> Result<(i64, i64)> {
    crate::int_tuple::positive("recast", new_bits)?;
    crate::int_tuple::positive("recast", old_bits)?;
    let common = gcd(new_bits, old_bits);
    Ok((new_bits / common, old_bits / common))
}

fn larger_mode(mode: Mode, parts: i64, whole: bool) -> Result<Mode> {
    if mode.stride == 0 {
        return Ok(mode);
    }
    non_negative("recast", "stride", mode.stride)?;
    let divide = |value: i64, by: i64, whole: bool| {
        if value % by == 0 {
            Ok(value / by)
        } else if by % value == 0 && !whole {
            Ok(1)
        } else {
            Err(Error::Indivisible {
                operation: "recast",
                value,
                by,
            })
        }
    };
    let inside = divide(parts, mode.stride, false)?;
    Ok(Mode {
        shape: divide(mode.shape, inside, whole)?,
        stride: divide(mode.stride, parts, false)?,
    })
}

pub(crate) fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// A tile has no more modes than what it tiles.
pub(crate) fn check_tile_rank(
    operation: &'static str,
    layout: View<'_, Mode>,
    tiles: &[Tiler],
) -> Result<()> {
    if tiles.len() > layout.rank() {
        return Err(Error::TileRank {
            operation,
            tile: tiles.len(),
            layout: layout.rank(),
        });
    }
    Ok(())
}

/// Drops sizes of 1 and merges neighbours; an empty list stands for `1:0`.
pub(crate) fn coalesce_modes(modes: impl Iterator<Item = Mode>) -> ModeList {
    let mut out = ModeList::new();
    coalesce_onto(&mut out, modes);
    out
}

/// The same at the end of a list, which may be part of something larger: moving lists costs time.
fn coalesce_onto(out: &mut ModeList, modes: impl Iterator<Item = Mode>) {
    for mode in modes.filter(|mode| mode.shape != 1) {
        // `s0:d0, s1:s0*d0` is `s0*s1:d0`.
        if let Some(last) = out.last_mut()
            && last.shape.checked_mul(last.stride) == Some(mode.stride)
            && let Some(shape) = last.shape.checked_mul(mode.shape)
        {
            last.shape = shape;
        } else {
            out.push(mode);
        }
    }
}

/// Writes `1:0`, the one mode, or a flat tuple.
pub(crate) fn push_list(out: &mut Nested<Mode>, list: &[Mode]) -> Result<()> {
    if list.len() > 1 {
        out.push_tuple(list.len())?;
    }
    if list.is_empty() {
        out.push_leaf(Mode {
            shape: 1,
            stride: 0,
        })?;
    }
    list.iter().try_for_each(|&mode| out.push_leaf(mode))
}

/// The coalesced layout of modes that came out of one, and so meet every limit.
fn from_modes(modes: impl Iterator<Item = Mode>) -> Layout {
    let mut list = ModeList::new();
    coalesce_onto(&mut list, modes);
    let mut out = Nested::new();
    let pushed = push_list(&mut out, &list);
    debug_assert!(pushed.is_ok());
    Layout(out)
}

/// Modes, each with the index that one step of it stands for.
type Sorted = SmallVec<[(Mode, i64); 8]>;

/// Appends the modes of size above 1 and stride above 0 by ascending stride, larger sizes first.
fn by_stride(view: View<'_, Mode>, operation: &'static str, sorted: &mut Sorted) -> Result<()> {
    let mut list = ModeList::new();
    coalesce_onto(&mut list, view.leaves().iter().copied());
    let mut index = 1i64;
    for &mode in &list {
        non_negative(operation, "stride", mode.stride)?;
        if mode.stride > 0 {
            sorted.push((mode, index));
        }
        index *= mode.shape;
    }
    sorted.sort_by(|(a, _), (b, _)| a.stride.cmp(&b.stride).then(b.shape.cmp(&a.shape)));
    Ok(())
}

/// Appends the complement of a layout, up to `cotarget`.
pub(crate) fn complement_into(
    view: View<'_, Mode>,
    cotarget: i64,
    out: &mut Nested<Mode>,
) -> Result<()> {
    let mut list = ModeList::new();
    gaps(view, cotarget, &mut list)?;
    push_list(out, &list)
}

/// Appends what a layout leaves free for `copies` copies of it, which together reach `cotarget`: its
/// complement and, where strides that do not divide one another leave too little below `cotarget`,
/// the mode along which the complement goes on without end.
pub(crate) fn free_into(
    view: View<'_, Mode>,
    cotarget: i64,
    copies: i64,
    out: &mut Nested<Mode>,
) -> Result<()> {
    let mut list = ModeList::new();
    let end = gaps(view, cotarget, &mut list)?;
    let room = list
        .iter()
        .try_fold(1i64, |room, mode| room.checked_mul(mode.shape));
    if end.shape == 1 && room.is_some_and(|room| room < copies) {
        list.push(end);
    }
    push_list(out, &list)
}

/// The gaps of a layout as a coalesced list, and the last of them before that: it goes on without
/// end.
fn gaps(view: View<'_, Mode>, cotarget: i64, out: &mut ModeList) -> Result<Mode> {
    crate::int_tuple::positive("complement", cotarget)?;
    let mut sorted = ModeList::new();
    for &mode in view.leaves() {
        if mode.shape != 1 && mode.stride != 0 {
            non_negative("complement", "stride", mode.stride)?;
            sorted.push(mode);
        }
    }
    if sorted.len() > 1 {
        sorted.sort_by_key(|mode| (mode.stride, mode.shape));
    }
    let mut covered = 1i64;
    for mode in &mut sorted {
        if mode.stride < covered {
            return Err(Error::Overlap {
                operation: "complement",
                layout: Shown(view).to_string(),
                stride: mode.stride,
                least: covered,
            });
        }
        // From here on the list holds the gaps.
        let next = mode.stride.checked_mul(mode.shape).ok_or(overflow())?;
        *mode = Mode {
            shape: mode.stride / covered,
            stride: covered,
        };
        covered = next;
    }
    // Rounded up without passing 64 bits: cotarget is at least 1.
    let end = Mode {
        shape: (cotarget - 1) / covered + 1,
        stride: covered,
    };
    sorted.push(end);
    coalesce_onto(out, sorted.iter().copied());
    Ok(end)
}

/// Composition mode by mode of `right`.
pub(crate) fn compose_into(
    left: View<'_, Mode>,
    right: View<'_, Mode>,
    out: &mut Nested<Mode>,
) -> Result<()> {
    let mut steps = Steps::new(left);
    steps.compose(right, out)?;
    steps.check_carry(right)
}

/// The left side of a composition, prepared once for all modes of the right side.
pub(crate) struct Steps<'a> {
    layout: View<'a, Mode>,
    /// Coalesced, all but the mode along which the layout continues without end.
    before: ModeList,
    /// The stride of that last mode.
    last: i64,
    /// How far the modes composed so far reach together inside each part of `before`.
    reach: SmallVec<[i64; 8]>,
}

impl<'a> Steps<'a> {
    pub fn new(layout: View<'a, Mode>) -> Self {
        let mut steps = Steps {
            layout,
            before: ModeList::new(),
            last: 0,
            reach: SmallVec::new(),
        };
        if let Some((end, rest)) = layout.leaves().split_last() {
            steps.last = end.stride;
            coalesce_onto(&mut steps.before, rest.iter().copied());
            // If the last mode continues the one before, the two are one mode without end.
            if let Some(&mode) = steps.before.last()
                && mode.shape.checked_mul(mode.stride) == Some(end.stride)
            {
                steps.before.pop();
                steps.last = mode.stride;
            }
            steps.reach.resize(steps.before.len(), 0);
        }
        steps
    }

    /// Forgets what was composed so far: the next layout is a composition of its own.
    pub fn restart(&mut self) {
        self.reach.fill(0);
    }

    pub fn compose(&mut self, right: View<'_, Mode>, out: &mut Nested<Mode>) -> Result<()> {
        if let Some(mode) = right.as_leaf() {
            return self.compose_mode(mode, out);
        }
        out.push_tuple(right.rank())?;
        right.modes().try_for_each(|mode| self.compose(mode, out))
    }

    /// Fails if the modes composed so far, added up, pass the end of a part of the left layout:
    /// each mode then steps rightly alone, but their sum moves on to the next part and the result
    /// is not a composition. Coalesced parts never continue each other, so such a sum always shows.
    pub fn check_carry(&self, right: View<'_, Mode>) -> Result<()> {
        for (part, &reach) in self.before.iter().zip(&self.reach) {
            if reach >= part.shape {
                return Err(Error::Carry {
                    mode: Shown(right).to_string(),
                    layout: Shown(self.layout).to_string(),
                    reach,
                    size: part.shape,
                });
            }
        }
        Ok(())
    }

    fn compose_mode(&mut self, mode: Mode, out: &mut Nested<Mode>) -> Result<()> {
        if mode.stride == 0 {
            return out.push_leaf(mode);
        }
        non_negative("composition", "stride", mode.stride)?;
        let open = out.open()?;
        let (mut size, mut stride) = (mode.shape, mode.stride);
        for (part, reach) in self.before.iter().zip(&mut self.reach) {
            let n = part.shape;
            // How many steps fit in this part, and the stride that is left after it.
            let fits = if stride >= n {
                let over = stride / n;
                (over * n == stride).then_some((1, over))
            } else {
                let steps = n / stride;
                if steps * stride == n {
                    Some((steps, 1))
                } else {
                    // `(s-1)*d < n`: the mode ends inside this part, so nothing is left over.
                    (size - 1 <= steps).then_some((size, 1))
                }
            };
            let Some((room, next)) = fits else {
                return Err(Error::StrideDivisibility {
                    mode: format!("{}:{}", mode.shape, mode.stride),
                    layout: Shown(self.layout).to_string(),
                    stride,
                    size: n,
                });
            };
            let (taken, rest) = if size <= room {
                (size, 1)
            } else {
                (room, size / room)
            };
            if taken * rest != size {
                return Err(Error::ShapeDivisibility {
                    mode: format!("{}:{}", mode.shape, mode.stride),
                    layout: Shown(self.layout).to_string(),
                    size,
                    steps: room,
                });
            }
            if taken > 1 {
                *reach = reach.saturating_add((taken - 1) * stride);
                let stride = stride.checked_mul(part.stride).ok_or(overflow())?;
                out.push_leaf(Mode {
                    shape: taken,
                    stride,
                })?;
                out.count(&open);
            }
            (size, stride) = (rest, next);
        }
        let first = out.rank_of(&open) == 0;
        if size > 1 || first {
            let stride = stride.checked_mul(self.last).ok_or(overflow())?;
            out.push_leaf(Mode {
                shape: size,
                stride,
            })?;
            out.count(&open);
        }
        out.unwrap_single(open);
        Ok(())
    }
}
