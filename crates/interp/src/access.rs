//! From index columns to bytes: the bounds rules B1 to B4 in one place, and typed reads and writes.

use invar_ir::Scalar;

use crate::program::{Access, Index, Object, Reach, Slot};

/// The address of what is out of bounds or not active.
pub(crate) const NOWHERE: u64 = u64::MAX;

/// The mathematical value of an integer scalar's bits, but values above `i64::MAX` become `i64::MAX`, which no object reaches.
#[inline(always)]
pub(crate) fn clamped(bits: u64, scalar: Scalar) -> i64 {
    match scalar {
        Scalar::I8 => i64::from(bits as i8),
        Scalar::I16 => i64::from(bits as i16),
        Scalar::I32 => i64::from(bits as i32),
        Scalar::I64 => bits as i64,
        Scalar::U64 => bits.min(i64::MAX as u64) as i64,
        // Narrower ones have their upper bits clear.
        Scalar::Bool
        | Scalar::U8
        | Scalar::U16
        | Scalar::U32
        | Scalar::F16
        | Scalar::BF16
        | Scalar::F32
        | Scalar::F64 => bits as i64,
    }
}

/// Calls `f` for each lane with its clamped index; the type is looked at once.
#[inline(always)]
fn for_each_index(registers: &[u64], index: Index, size: usize, mut f: impl FnMut(usize, i64)) {
    let first = index.column as usize;
    let column = &registers[first..first + size];
    macro_rules! each {
        ($scalar:expr) => {
            for (lane, bits) in column.iter().enumerate() {
                f(lane, clamped(*bits, $scalar));
            }
        };
    }
    match index.scalar {
        Scalar::I32 => each!(Scalar::I32),
        Scalar::U64 => each!(Scalar::U64),
        Scalar::I8 => each!(Scalar::I8),
        Scalar::I16 => each!(Scalar::I16),
        Scalar::I64 => each!(Scalar::I64),
        Scalar::Bool
        | Scalar::U8
        | Scalar::U16
        | Scalar::U32
        | Scalar::F16
        | Scalar::BF16
        | Scalar::F32
        | Scalar::F64 => each!(Scalar::U32),
    }
}

/// The element that component `component` of an access lies in: computed without wrapping, any
/// value outside `0..length` where there is none.
#[inline(always)]
fn element(reach: Reach, index: i64, component: u32) -> u64 {
    let element = match reach {
        Reach::Part => index,
        // A sum that wraps becomes negative, which is out of bounds as the true sum is.
        Reach::Run => index.wrapping_add(component.into()),
        Reach::Group(k) => index
            .saturating_mul(k.into())
            .wrapping_add(component.into()),
    };
    // A negative index becomes larger than any length.
    element as u64
}

/// Addresses and locations of one component of an access, a lane each.
pub(crate) struct Addresses {
    /// The byte where the component starts, or [`NOWHERE`].
    pub bytes: Vec<u64>,
    /// Its location; meaningless where the address is [`NOWHERE`].
    pub locations: Vec<u64>,
}

impl Addresses {
    pub fn new(size: usize) -> Addresses {
        Addresses {
            bytes: vec![0; size],
            locations: vec![0; size],
        }
    }

    /// Computes them. Of a [`Reach::Part`], component 0 stands for all: the others follow it.
    /// Locations only if `located`.
    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of a machine that is borrowed apart"
    )]
    pub fn resolve(
        &mut self,
        access: &Access,
        component: u32,
        object: &Object,
        length: u64,
        lale_bytes: u64,
        registers: &[u64],
        mask: u128,
        located: bool,
    ) {
        let size = self.bytes.len();
        let base = match object.slot {
            Slot::Thread { offset, .. } => offset,
            Slot::Argument(_) | Slot::Constant(_) | Slot::Threadgroup(_) => 0,
        } + access.offset_bytes;
        let bytes = &mut self.bytes;
        let element_bytes = object.element_bytes;
        for_each_index(registers, access.index, size, |lane, index| {
            let element = element(access.reach, index, component);
            bytes[lane] = if element < length {
                base + element * element_bytes
            } else {
                NOWHERE
            };
        });
        if located {
            let locations = &mut self.locations;
            for_each_index(registers, access.index, size, |lane, index| {
                locations[lane] = element(access.reach, index, component)
                    .wrapping_mul(object.element_locations)
                    .wrapping_add(access.offset_locations);
            });
        }
        for step in &access.path {
            for_each_index(registers, step.index, size, |lane, index| {
                let index = index as u64;
                bytes[lane] = if index < step.count {
                    bytes[lane].saturating_add(index * step.bytes)
                } else {
                    NOWHERE
                };
            });
            if located {
                let locations = &mut self.locations;
                for_each_index(registers, step.index, size, |lane, index| {
                    locations[lane] =
                        locations[lane].wrapping_add((index as u64).wrapping_mul(step.locations));
                });
            }
        }
        if lale_bytes != 0 {
            for (lane, address) in bytes.iter_mut().enumerate() {
                *address = address.saturating_add(lane as u64 * lale_bytes);
            }
        }
        for_missing(mask, size, |lane| bytes[lane] = NOWHERE);
    }

    /// The lanes that have an address.
    pub fn present(&self) -> u128 {
        lanes_where(&self.bytes, |address| address != NOWHERE)
    }
}

/// The lanes of a column that a condition holds for.
#[inline(always)]
pub(crate) fn lanes_where(column: &[u64], holds: impl Fn(u64) -> bool) -> u128 {
    let mut mask = 0;
    for (i, part) in column.chunks(64).enumerate() {
        let mut bits = 0u64;
        for (lane, value) in part.iter().enumerate() {
            bits |= u64::from(holds(*value)) << lane;
        }
        mask |= u128::from(bits) << (64 * i);
    }
    mask
}

/// A mask of the first `count` lanes.
pub(crate) fn first_lanes(count: u32) -> u128 {
    if count >= 128 {
        u128::MAX
    } else {
        (1 << count) - 1
    }
}

/// Calls `f` for each lane of a mask.
#[inline(always)]
pub(crate) fn for_each_lane(mask: u128, mut f: impl FnMut(usize)) {
    let mut rest = mask;
    while rest != 0 {
        f(rest.trailing_zeros() as usize);
        rest &= rest - 1;
    }
}

#[inline(always)]
fn for_missing(mask: u128, size: usize, f: impl FnMut(usize)) {
    let all = first_lanes(size as u32);
    if mask != all {
        for_each_lane(all & !mask, f);
    }
}

/// Reads a scalar at a byte address; 0 where there is none (B1).
#[inline(always)]
pub(crate) fn read(memory: &[u8], address: u64, scalar: Scalar) -> u64 {
    let Some(rest) = memory.get(address as usize..) else {
        return 0;
    };
    fn chunk<const N: usize>(rest: &[u8]) -> [u8; N] {
        rest.first_chunk().copied().unwrap_or([0; N])
    }
    match scalar {
        Scalar::Bool => u64::from(u8::from_le_bytes(chunk(rest)) != 0),
        Scalar::I8 | Scalar::U8 => u8::from_le_bytes(chunk(rest)).into(),
        Scalar::I16 | Scalar::U16 | Scalar::F16 | Scalar::BF16 => {
            u16::from_le_bytes(chunk(rest)).into()
        }
        Scalar::I32 | Scalar::U32 | Scalar::F32 => u32::from_le_bytes(chunk(rest)).into(),
        Scalar::I64 | Scalar::U64 | Scalar::F64 => u64::from_le_bytes(chunk(rest)),
    }
}

/// Writes a scalar at a byte address; nothing where there is none (B2).
#[inline(always)]
pub(crate) fn write(memory: &mut [u8], address: u64, scalar: Scalar, bits: u64) {
    let Some(rest) = memory.get_mut(address as usize..) else {
        return;
    };
    fn put<const N: usize>(rest: &mut [u8], bytes: [u8; N]) {
        if let Some(target) = rest.first_chunk_mut() {
            *target = bytes;
        }
    }
    match scalar {
        Scalar::Bool => put(rest, u8::from(bits != 0).to_le_bytes()),
        Scalar::I8 | Scalar::U8 => put(rest, (bits as u8).to_le_bytes()),
        Scalar::I16 | Scalar::U16 | Scalar::F16 | Scalar::BF16 => {
            put(rest, (bits as u16).to_le_bytes());
        }
        Scalar::I32 | Scalar::U32 | Scalar::F32 => put(rest, (bits as u32).to_le_bytes()),
        Scalar::I64 | Scalar::U64 | Scalar::F64 => put(rest, bits.to_le_bytes()),
    }
}

/// Runs `$body` with `$scalar` bound to a constant, so that what is inside is compiled for each
/// width and the width is looked at once a column, not once a lane.
macro_rules! by_width {
    ($given:expr, $scalar:ident => $body:expr) => {
        match $given {
            Scalar::Bool => {
                const $scalar: Scalar = Scalar::Bool;
                $body
            }
            Scalar::I8 | Scalar::U8 => {
                const $scalar: Scalar = Scalar::U8;
                $body
            }
            Scalar::I16 | Scalar::U16 | Scalar::F16 | Scalar::BF16 => {
                const $scalar: Scalar = Scalar::U16;
                $body
            }
            Scalar::I32 | Scalar::U32 | Scalar::F32 => {
                const $scalar: Scalar = Scalar::U32;
                $body
            }
            Scalar::I64 | Scalar::U64 | Scalar::F64 => {
                const $scalar: Scalar = Scalar::U64;
                $body
            }
        }
    };
}

/// Reads a column of scalars, each `offset` bytes after its lane's address.
pub(crate) fn gather(
    memory: &[u8],
    addresses: &[u64],
    offset: u64,
    scalar: Scalar,
    out: &mut [u64],
) {
    by_width!(scalar, S => for (out, address) in out.iter_mut().zip(addresses) {
        *out = read(memory, address.saturating_add(offset), S);
    });
}

/// Writes a column of scalars, each `offset` bytes after its lane's address, lane after lane in
/// `order`.
pub(crate) fn scatter(
    memory: &mut [u8],
    addresses: &[u64],
    offset: u64,
    scalar: Scalar,
    values: &[u64],
    order: &[u8],
) {
    by_width!(scalar, S => for lane in order {
        let lane = usize::from(*lane);
        write(memory, addresses[lane].saturating_add(offset), S, values[lane]);
    });
}

/// As [`scatter`]; gives the lanes whose store left the location as it was.
pub(crate) fn scatter_watched(
    memory: &mut [u8],
    addresses: &[u64],
    offset: u64,
    scalar: Scalar,
    values: &[u64],
    order: &[u8],
) -> u128 {
    let mut unchanged = 0;
    by_width!(scalar, S => for lane in order {
        let lane = usize::from(*lane);
        let address = addresses[lane].saturating_add(offset);
        if address != NOWHERE {
            unchanged |= u128::from(read(memory, address, S) == values[lane]) << lane;
            write(memory, address, S, values[lane]);
        }
    });
    unchanged
}
