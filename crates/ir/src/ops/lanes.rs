//! Exchange between the lanes of a simdgroup or quadgroup (A11, X6), one evaluator for all rules.
//!
//! A column holds one scalar for each lane of a full simdgroup. Lanes that are missing from the last
//! simdgroup are the highest; what they hold is ignored, and they get 0.

use super::{LaneRule, Meaning, Op};
use crate::types::Scalar;

/// The most lanes that a simdgroup can have.
pub const MAX_LANES: usize = 128;

/// The value that leaves every other as it is when combined with it: what missing lanes contribute
/// to a reduction (X6). Of a float sum it is -0, as +0 would change -0; of `min` and `max` of
/// floats NaN, as an infinity would hide that all lanes are NaN (A7).
///
/// # Panics
/// If nothing reduces or scans by `op`: it is none of `add`, `mul`, `min`, `max`, `and`, `or`, `xor`.
pub fn identity(op: Op, scalar: Scalar) -> u64 {
    let ones = u64::MAX >> (64 - scalar.bits());
    let sign = 1 << (scalar.bits() - 1);
    let float = |f16, bf16, f32, f64| match scalar {
        Scalar::F16 => f16,
        Scalar::BF16 => bf16,
        Scalar::F32 => f32,
        _ => f64,
    };
    match op {
        Op::Add if scalar.is_float() => sign,
        Op::Add | Op::Or | Op::Xor => 0,
        Op::Mul if scalar.is_float() => float(0x3c00, 0x3f80, 0x3f80_0000, 0x3ff0_0000_0000_0000),
        Op::Mul => 1,
        Op::And => ones,
        Op::Min | Op::Max if scalar.is_float() => {
            float(0x7e00, 0x7fc0, 0x7fc0_0000, 0x7ff8_0000_0000_0000)
        }
        Op::Min if scalar.is_signed_integer() => ones ^ sign,
        Op::Min => ones,
        Op::Max if scalar.is_signed_integer() => sign,
        Op::Max => 0,
        other => unreachable!("lanes are not combined by {other}"),
    }
}

/// What the first lane gets of an exclusive scan: 0 for a sum, 1 for a product.
///
/// # Panics
/// As [`identity`].
pub fn scan_start(op: Op, scalar: Scalar) -> u64 {
    if op == Op::Add {
        0
    } else {
        identity(op, scalar)
    }
}

/// Exchanges one component between lanes. `value` holds a scalar of type `scalar` for each lane of
/// the simdgroup, and `by` what says which lane, with its type, where the rule takes it. Groups are
/// runs of `group_size` lanes: the whole simdgroup, or 4 for quadgroups. Bit `i` of `existing` says
/// whether lane `i` exists. `out` is one column; four for [`LaneRule::Ballot`], the components of
/// its `u32x4`.
///
/// # Panics
/// If columns differ in length, are longer than [`MAX_LANES`], are not a multiple of a power of two
/// `group_size`, or if `by` or a column of `out` is missing.
pub fn evaluate(
    rule: LaneRule,
    group_size: usize,
    scalar: Scalar,
    existing: u128,
    value: &[u64],
    by: Option<(Scalar, &[u64])>,
    out: &mut [&mut [u64]],
) {
    let lanes = value.len();
    assert!(
        lanes <= MAX_LANES && group_size.is_power_of_two() && lanes.is_multiple_of(group_size),
        "{lanes} lanes do not make groups of {group_size}"
    );
    assert!(
        out.iter().all(|column| column.len() == lanes),
        "columns differ in length"
    );
    let exists = |lane: usize| existing >> lane & 1 == 1;
    // What an existing lane reads: the value of a lane of its group, 0 if there is none.
    let read = |first: usize, place: i128| match usize::try_from(place) {
        Ok(place) if place < group_size && exists(first + place) => value[first + place],
        Ok(_) | Err(_) => 0,
    };
    let number = |lane: usize| match by {
        Some((index, column)) => index.integer(column[lane]),
        None => unreachable!("this rule takes a lane"),
    };
    // The lowest lane of a group that exists; its first, if none does.
    let lowest = |first: usize| {
        let mut group = first..first + group_size;
        group.find(|lane| exists(*lane)).unwrap_or(first)
    };
    let each = |out: &mut [u64], of: &dyn Fn(usize, usize) -> u64| {
        for (lane, o) in out.iter_mut().enumerate() {
            let first = lane - lane % group_size;
            *o = if exists(lane) { of(first, lane) } else { 0 };
        }
    };
    match rule {
        LaneRule::Reduce(op) => {
            let mut all = starting(op, scalar, value, &exists);
            let mut distance = 1;
            while distance < group_size {
                let mut other = [0; MAX_LANES];
                for (lane, o) in other[..lanes].iter_mut().enumerate() {
                    *o = all[lane ^ distance];
                }
                all = combine(op, scalar, &all[..lanes], &other[..lanes]);
                distance *= 2;
            }
            each(out[0], &|_, lane| all[lane]);
        }
        LaneRule::InclusiveScan(op) => {
            let all = scan(op, scalar, group_size, value, &exists);
            each(out[0], &|_, lane| all[lane]);
        }
        LaneRule::ExclusiveScan(op) => {
            let all = scan(op, scalar, group_size, value, &exists);
            let start = scan_start(op, scalar);
            each(out[0], &|first, lane| {
                if lane == lowest(first) {
                    start
                } else {
                    all[lane - 1]
                }
            });
        }
        LaneRule::Shuffle => each(out[0], &|first, lane| read(first, number(lane))),
        LaneRule::ShuffleUp => each(out[0], &|first, lane| {
            read(first, (lane - first) as i128 - number(lane))
        }),
        LaneRule::ShuffleDown => each(out[0], &|first, lane| {
            read(first, (lane - first) as i128 + number(lane))
        }),
        LaneRule::ShuffleXor => each(out[0], &|first, lane| {
            read(first, (lane - first) as i128 ^ number(lane))
        }),
        LaneRule::RotateUp => each(out[0], &|first, lane| {
            let place = (lane - first) as i128 - number(lane);
            read(first, place.rem_euclid(group_size as i128))
        }),
        LaneRule::RotateDown => each(out[0], &|first, lane| {
            let place = (lane - first) as i128 + number(lane);
            read(first, place.rem_euclid(group_size as i128))
        }),
        LaneRule::Broadcast => each(out[0], &|first, _| read(first, number(lowest(first)))),
        LaneRule::BroadcastFirst => each(out[0], &|first, _| value[lowest(first)]),
        LaneRule::Ballot => {
            for (word, column) in out.iter_mut().enumerate() {
                each(column, &|first, _| {
                    (0..group_size.saturating_sub(32 * word).min(32))
                        .filter(|bit| {
                            let lane = first + 32 * word + bit;
                            exists(lane) && value[lane] != 0
                        })
                        .fold(0, |bits, bit| bits | 1 << bit)
                });
            }
        }
        LaneRule::All => each(out[0], &|first, _| {
            let mut group = first..first + group_size;
            u64::from(group.all(|lane| !exists(lane) || value[lane] != 0))
        }),
        LaneRule::Any => each(out[0], &|first, _| {
            let mut group = first..first + group_size;
            u64::from(group.any(|lane| exists(lane) && value[lane] != 0))
        }),
    }
}

/// The values of existing lanes, the identity in missing ones.
fn starting(
    op: Op,
    scalar: Scalar,
    value: &[u64],
    exists: &dyn Fn(usize) -> bool,
) -> [u64; MAX_LANES] {
    let missing = identity(op, scalar);
    let mut all = [0; MAX_LANES];
    for (lane, a) in all[..value.len()].iter_mut().enumerate() {
        *a = if exists(lane) { value[lane] } else { missing };
    }
    all
}

/// `a op b`, lane by lane.
fn combine(op: Op, scalar: Scalar, a: &[u64], b: &[u64]) -> [u64; MAX_LANES] {
    let Meaning::Eval(evaluator) = op.row().meaning else {
        unreachable!("lanes are combined by basic operations")
    };
    let mut result = [0; MAX_LANES];
    evaluator(scalar, scalar, &[a, b], &mut result[..a.len()]);
    result
}

/// The inclusive scan by doubling: for d = 1, 2, 4, ... lane i >= d combines its value with that of
/// lane i - d.
fn scan(
    op: Op,
    scalar: Scalar,
    group_size: usize,
    value: &[u64],
    exists: &dyn Fn(usize) -> bool,
) -> [u64; MAX_LANES] {
    let lanes = value.len();
    let mut all = starting(op, scalar, value, exists);
    let mut distance = 1;
    while distance < group_size {
        let mut below = [0; MAX_LANES];
        below[distance..lanes].copy_from_slice(&all[..lanes - distance]);
        let sums = combine(op, scalar, &below[..lanes], &all[..lanes]);
        for lane in 0..lanes {
            if lane % group_size >= distance {
                all[lane] = sums[lane];
            }
        }
        distance *= 2;
    }
    all
}
