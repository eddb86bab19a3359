//! Swizzles: offsets with one field of bits combined into another by exclusive or, so that columns
//! of a tile fall into different banks.
//!
//! A swizzle is its own inverse and permutes every aligned block of [`Swizzle::block`] offsets.
//! Absent: swizzles of negative offsets, which have no blocks.

use crate::error::{Error, Result};
use crate::int_tuple::{Coord, IntTuple, non_negative};
use crate::layout::Layout;
use crate::tile::Tiler;
use std::fmt;

/// Combines `bits` bits of an offset into the bits `shift` places lower (or higher, if negative),
/// leaving the lowest `base` bits alone.
///
/// With `shift >= 0`: bits `base..base+bits` become their exclusive or with bits
/// `base+shift..base+shift+bits`. With `shift < 0` the two fields change roles. CuTe's
/// `Swizzle<B,M,S>`.
///
/// ```
/// use invar_layout::Swizzle;
/// let swizzle = Swizzle::new(2, 0, 3)?;
/// assert_eq!(swizzle.apply(0b01_000)?, 0b01_001);
/// assert_eq!(swizzle.apply(0b01_001)?, 0b01_000);
/// # Ok::<(), invar_layout::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Swizzle {
    bits: u32,
    base: u32,
    shift: i32,
}

impl Swizzle {
    /// `bits` and `base` are at least 0. With `bits` above 0 the two fields must not overlap
    /// (`|shift| >= bits`) and lie within 62 bits.
    pub fn new(bits: i64, base: i64, shift: i64) -> Result<Self> {
        let (bits, base, shift) = match (
            u32::try_from(bits),
            u32::try_from(base),
            i32::try_from(shift),
        ) {
            (Ok(bits), Ok(base), Ok(shift)) => (bits, base, shift),
            _ if bits < 0 => {
                return Err(Error::Negative {
                    operation: "swizzle",
                    what: "bit count",
                    value: bits,
                });
            }
            _ if base < 0 => {
                return Err(Error::Negative {
                    operation: "swizzle",
                    what: "base",
                    value: base,
                });
            }
            _ => {
                return Err(Error::Overflow {
                    what: "a swizzle's bit position",
                });
            }
        };
        let failed = |condition| {
            Err(Error::Swizzle {
                bits,
                base,
                shift,
                condition,
            })
        };
        if shift.unsigned_abs() < bits {
            return failed("the two bit fields overlap: shift must be at least the number of bits");
        }
        let top = u64::from(bits) + u64::from(base) + u64::from(shift.unsigned_abs());
        if top > 62 {
            return failed("bits, base and shift together must be at most 62");
        }
        Ok(Swizzle { bits, base, shift })
    }

    /// The swizzle that changes nothing.
    pub fn none() -> Self {
        Swizzle {
            bits: 0,
            base: 0,
            shift: 0,
        }
    }

    /// Number of bits that are combined.
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// Number of lowest bits that neither change nor matter.
    pub fn base(self) -> u32 {
        self.base
    }

    /// Distance between the field that is read and the field that changes; negative if the lower
    /// field is read.
    pub fn shift(self) -> i32 {
        self.shift
    }

    /// Whether no offset changes.
    pub fn is_none(self) -> bool {
        self.bits == 0
    }

    /// The swizzled offset, for offsets of at least 0.
    pub fn apply(self, offset: i64) -> Result<i64> {
        if self.is_none() {
            return Ok(offset);
        }
        non_negative("swizzle", "offset", offset)?;
        Ok(self.apply_unchecked(offset))
    }

    fn apply_unchecked(self, offset: i64) -> i64 {
        let field = ((1i64 << self.bits) - 1) << self.base;
        let distance = self.shift.unsigned_abs();
        if self.shift >= 0 {
            offset ^ ((offset >> distance) & field)
        } else {
            offset ^ ((offset & field) << distance)
        }
    }

    /// The lowest bit that the swizzle may change.
    pub(crate) fn changed_field(self) -> u32 {
        if self.shift >= 0 {
            self.base
        } else {
            self.base + self.shift.unsigned_abs()
        }
    }

    /// Aligned blocks of this many offsets are mapped onto themselves.
    pub fn block(self) -> i64 {
        match (self.bits, self.shift) {
            (0, _) => 1,
            (bits, 0..) => 1 << (self.base + bits),
            (bits, _) => 1 << (self.base + bits + self.shift.unsigned_abs()),
        }
    }

    /// The same swizzle of the same memory seen as elements of another size; see
    /// [`Layout::recast`].
    pub fn recast(self, new_bits: i64, old_bits: i64) -> Result<Swizzle> {
        let (up, down) = crate::algebra::recast_ratio(new_bits, old_bits)?;
        if self.is_none() {
            return Ok(self);
        }
        if up.count_ones() != 1 || down.count_ones() != 1 {
            return Err(Error::Swizzle {
                bits: self.bits,
                base: self.base,
                shift: self.shift,
                condition: "recast needs element sizes whose ratio is a power of two",
            });
        }
        let base = i64::from(self.base) + i64::from(down.trailing_zeros());
        let base = base - i64::from(up.trailing_zeros());
        if base < 0 {
            return Err(Error::Swizzle {
                bits: self.bits,
                base: self.base,
                shift: self.shift,
                condition: "it would split the larger elements: raise base first",
            });
        }
        Swizzle::new(i64::from(self.bits), base, i64::from(self.shift))
    }
}

/// A layout whose offsets are swizzled.
///
/// ```
/// use invar_layout::{Layout, Swizzle, SwizzledLayout};
/// let rows: Layout = "(8,8):(8,1)".parse()?;
/// let swizzled = SwizzledLayout::new(Swizzle::new(3, 0, 3)?, rows);
/// assert_eq!(swizzled.call(&"(1,0)".parse()?)?, 9);
/// assert_eq!(swizzled.to_string(), "Sw<3,0,3> o (8,8):(8,1)");
/// # Ok::<(), invar_layout::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwizzledLayout {
    swizzle: Swizzle,
    layout: Layout,
}

impl From<Layout> for SwizzledLayout {
    fn from(layout: Layout) -> Self {
        SwizzledLayout::new(Swizzle::none(), layout)
    }
}

impl SwizzledLayout {
    /// `layout`, then `swizzle`.
    pub fn new(swizzle: Swizzle, layout: Layout) -> Self {
        SwizzledLayout { swizzle, layout }
    }

    /// The swizzle.
    pub fn swizzle(&self) -> Swizzle {
        self.swizzle
    }

    /// The layout before the swizzle.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The shape.
    pub fn shape(&self) -> IntTuple {
        self.layout.shape()
    }

    /// The stride before the swizzle.
    pub fn stride(&self) -> IntTuple {
        self.layout.stride()
    }

    /// The number of coordinates.
    pub fn size(&self) -> i64 {
        self.layout.size()
    }

    /// The number of modes.
    pub fn rank(&self) -> usize {
        self.layout.rank()
    }

    /// Levels of parentheses.
    pub fn depth(&self) -> usize {
        self.layout.depth()
    }

    /// How many elements of memory hold every offset: the layout's own cosize, rounded up to whole
    /// blocks of the swizzle.
    pub fn cosize(&self) -> Result<i64> {
        let block = self.swizzle.block();
        ((self.layout.cosize() - 1) / block + 1)
            .checked_mul(block)
            .ok_or(Error::Overflow {
                what: "the range of offsets of a layout",
            })
    }

    /// The offset of a coordinate; see [`Layout::call`].
    pub fn call(&self, coordinate: &IntTuple) -> Result<i64> {
        self.swizzle.apply(self.layout.call(coordinate)?)
    }

    /// The offset of the coordinate with the given index.
    pub fn call_index(&self, index: i64) -> Result<i64> {
        self.swizzle.apply(self.layout.call_index(index)?)
    }

    /// The layout that applies `right` first; see [`Layout::compose`].
    pub fn compose(&self, right: &Layout) -> Result<SwizzledLayout> {
        Ok(Self::new(self.swizzle, self.layout.compose(right)?))
    }

    /// Composes mode by mode; see [`Layout::compose_tile`].
    pub fn compose_tile(&self, tile: &Tiler) -> Result<SwizzledLayout> {
        Ok(Self::new(self.swizzle, self.layout.compose_tile(tile)?))
    }

    /// See [`Layout::logical_divide`]; the swizzle is the same one over the divided layout.
    pub fn logical_divide(&self, tile: &Tiler) -> Result<SwizzledLayout> {
        Ok(Self::new(self.swizzle, self.layout.logical_divide(tile)?))
    }

    /// See [`Layout::zipped_divide`]; the swizzle is the same one over the divided layout.
    pub fn zipped_divide(&self, tile: &Tiler) -> Result<SwizzledLayout> {
        Ok(Self::new(self.swizzle, self.layout.zipped_divide(tile)?))
    }

    /// The part that a coordinate with `_` leaves and the unswizzled offset at which it starts. An
    /// offset is `swizzle(start + part(rest))`: the start cannot be added after the swizzle.
    pub fn slice(&self, coordinate: &Coord) -> Result<(SwizzledLayout, i64)> {
        let (layout, start) = self.layout.slice(coordinate)?;
        Ok((Self::new(self.swizzle, layout), start))
    }

    /// The same memory seen as elements of another size; see [`Layout::recast`].
    pub fn recast(&self, new_bits: i64, old_bits: i64) -> Result<SwizzledLayout> {
        Ok(Self::new(
            self.swizzle.recast(new_bits, old_bits)?,
            self.layout.recast(new_bits, old_bits)?,
        ))
    }
}

impl fmt::Display for Swizzle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sw<{},{},{}>", self.bits, self.base, self.shift)
    }
}

impl fmt::Display for SwizzledLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.swizzle.is_none() {
            return fmt::Display::fmt(&self.layout, f);
        }
        write!(f, "{} o {}", self.swizzle, self.layout)
    }
}
