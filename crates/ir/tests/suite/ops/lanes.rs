//! Exchange between lanes (A11, X6), against its definition lane by lane.

use invar_ir::ops::lanes::{evaluate, identity, scan_start};
use invar_ir::ops::{Group, LaneRule, Meaning};
use invar_ir::{Op, Scalar};

use crate::ops::evaluate::run;
use crate::ops::exact::{Random, points};

/// Simdgroup sizes with the sizes of the groups in them, and how many lanes exist.
fn shapes() -> Vec<(usize, usize, usize)> {
    let mut shapes = Vec::new();
    for lanes in [4, 8, 16, 32, 64, 128] {
        for group in [4, lanes] {
            for existing in [1, 2, 3, 5, lanes / 2, lanes - 1, lanes] {
                shapes.push((lanes, group, existing.min(lanes)));
            }
        }
    }
    shapes
}

fn mask(existing: usize) -> u128 {
    u128::MAX >> (128 - existing)
}

fn exchange(
    rule: LaneRule,
    (lanes, group, existing): (usize, usize, usize),
    scalar: Scalar,
    value: &[u64],
    by: Option<(Scalar, &[u64])>,
) -> Vec<u64> {
    let mut out = vec![u64::MAX; lanes];
    let mask = mask(existing);
    evaluate(rule, group, scalar, mask, value, by, &mut [&mut out]);
    out
}

fn combine(op: Op, scalar: Scalar, a: u64, b: u64) -> u64 {
    run(op, scalar, &[&[a], &[b]])[0]
}

const REDUCTIONS: [Op; 7] = [Op::Add, Op::Mul, Op::Min, Op::Max, Op::And, Op::Or, Op::Xor];

fn takes(op: Op, scalar: Scalar) -> bool {
    op.result_type(invar_ir::Imm::None, &[scalar.into(); 2])
        .is_ok()
}

fn nan(scalar: Scalar, bits: u64) -> bool {
    scalar.is_float() && crate::ops::exact::Format::of(scalar).is_nan(bits)
}

fn same(scalar: Scalar, a: u64, b: u64) -> bool {
    a == b || (nan(scalar, a) && nan(scalar, b))
}

/// What a lane gets of a reduction by xor: its half of a block combined with the other half.
fn tree(op: Op, scalar: Scalar, value: &dyn Fn(usize) -> u64, lane: usize, size: usize) -> u64 {
    if size == 1 {
        return value(lane);
    }
    let own = tree(op, scalar, value, lane, size / 2);
    let other = tree(op, scalar, value, lane ^ (size / 2), size / 2);
    combine(op, scalar, own, other)
}

#[test]
fn a11_reductions_combine_by_xor_and_x6_missing_lanes_change_nothing() {
    let mut random = Random(41);
    for scalar in Scalar::ALL {
        for op in REDUCTIONS.into_iter().filter(|op| takes(*op, scalar)) {
            for shape in [
                (8, 8, 8),
                (8, 4, 6),
                (32, 32, 19),
                (16, 4, 16),
                (64, 64, 33),
            ] {
                let (lanes, group, existing) = shape;
                let all = points(scalar, &mut random, lanes + 40);
                let value: Vec<u64> = (0..lanes)
                    .map(|_| all[random.below(all.len() as u64) as usize])
                    .collect();
                let out = exchange(LaneRule::Reduce(op), shape, scalar, &value, None);
                let missing = identity(op, scalar);
                let with_missing = |lane: usize| {
                    if lane < existing {
                        value[lane]
                    } else {
                        missing
                    }
                };
                for lane in 0..lanes {
                    let expected = if lane < existing {
                        tree(op, scalar, &with_missing, lane, group)
                    } else {
                        0
                    };
                    assert!(
                        same(scalar, out[lane], expected),
                        "{op} of {scalar} over {shape:?}, lane {lane}: {:x}, expected {expected:x}",
                        out[lane]
                    );
                    let first = lane - lane % group;
                    assert!(
                        lane >= existing || same(scalar, out[lane], out[first]),
                        "{op} of {scalar} over {shape:?}: lanes {first} and {lane} differ"
                    );
                }
            }
        }
    }
}

#[test]
fn x6_identities_leave_every_value_as_it_is() {
    for scalar in Scalar::ALL {
        for op in REDUCTIONS.into_iter().filter(|op| takes(*op, scalar)) {
            for x in points(scalar, &mut Random(42), 200) {
                let other = identity(op, scalar);
                let found = combine(op, scalar, x, other);
                assert!(
                    same(scalar, found, x),
                    "{op} {scalar} {x:x} gives {found:x}"
                );
            }
        }
    }
}

#[test]
fn x6_a_sum_of_minus_zeros_and_a_minimum_of_nans_survive_missing_lanes() {
    let minus_zero = 0x8000_0000;
    let nan = 0x7fc0_0000;
    let sum = exchange(
        LaneRule::Reduce(Op::Add),
        (8, 8, 3),
        Scalar::F32,
        &[minus_zero; 8],
        None,
    );
    assert_eq!(sum[..3], [minus_zero; 3]);
    for op in [Op::Min, Op::Max] {
        let least = exchange(
            LaneRule::Reduce(op),
            (8, 8, 3),
            Scalar::F32,
            &[nan; 8],
            None,
        );
        assert!(
            crate::ops::exact::Format::of(Scalar::F32).is_nan(least[0]),
            "{op}"
        );
    }
}

#[test]
fn a11_float_sums_depend_on_the_order_that_is_specified() {
    let bits = |x: f32| u64::from(x.to_bits());
    // By xor: (1e8 + 1) + (-1e8 + 1) = 0. In order of lanes it would be 1.
    let value = [1e8, 1.0, -1e8, 1.0].map(bits);
    let sum = exchange(
        LaneRule::Reduce(Op::Add),
        (4, 4, 4),
        Scalar::F32,
        &value,
        None,
    );
    assert_eq!(sum, [bits(0.0); 4]);
    // By doubling: lane 3 is (1e8 + 1) + (-1e8 + 1) too, lane 2 is 1e8 + (1 - 1e8).
    let scan = exchange(
        LaneRule::InclusiveScan(Op::Add),
        (4, 4, 4),
        Scalar::F32,
        &value,
        None,
    );
    assert_eq!(scan, [1e8, 1e8, 0.0, 0.0].map(bits));
}

/// What lane `i` holds after the steps of a scan below `distance`.
fn doubled(op: Op, scalar: Scalar, value: &[u64], lane: usize, distance: usize) -> u64 {
    if distance == 1 {
        return value[lane];
    }
    let half = distance / 2;
    let own = doubled(op, scalar, value, lane, half);
    if lane < half {
        return own;
    }
    let below = doubled(op, scalar, value, lane - half, half);
    combine(op, scalar, below, own)
}

#[test]
fn a11_scans_double_their_reach() {
    let mut random = Random(43);
    for scalar in Scalar::ALL.into_iter().filter(|s| *s != Scalar::Bool) {
        for op in [Op::Add, Op::Mul] {
            for shape in [(8, 8, 8), (8, 4, 7), (32, 32, 21)] {
                let (lanes, group, existing) = shape;
                let all = points(scalar, &mut random, 64);
                let value: Vec<u64> = (0..lanes)
                    .map(|_| all[random.below(all.len() as u64) as usize])
                    .collect();
                let inclusive = exchange(LaneRule::InclusiveScan(op), shape, scalar, &value, None);
                let exclusive = exchange(LaneRule::ExclusiveScan(op), shape, scalar, &value, None);
                for lane in 0..lanes {
                    let first = lane - lane % group;
                    let expected = if lane >= existing {
                        [0, 0]
                    } else {
                        let scan =
                            |lane: usize| doubled(op, scalar, &value[first..], lane - first, group);
                        let before = if lane == first {
                            scan_start(op, scalar)
                        } else {
                            scan(lane - 1)
                        };
                        [scan(lane), before]
                    };
                    let found = [inclusive[lane], exclusive[lane]];
                    assert!(
                        found.iter().zip(expected).all(|(f, e)| same(scalar, *f, e)),
                        "{op} of {scalar} over {shape:?}, lane {lane}: {found:x?}, \
                         expected {expected:x?}"
                    );
                }
            }
        }
    }
    assert_eq!(scan_start(Op::Add, Scalar::F32), 0, "an empty sum is +0");
    let one = u64::from(1f32.to_bits());
    assert_eq!(scan_start(Op::Mul, Scalar::F32), one);
}

#[test]
fn x6_shuffles_from_lanes_that_do_not_exist_give_0() {
    let mut random = Random(44);
    for shape in shapes() {
        let (lanes, group, existing) = shape;
        let value: Vec<u64> = (0..lanes).map(|lane| 100 + lane as u64).collect();
        let steps: Vec<i64> = (0..lanes)
            .map(|_| random.below(3 * group as u64) as i64 - group as i64)
            .collect();
        type Rule = fn(i64, i64, i64) -> i64;
        let rules: [(LaneRule, Rule); 6] = [
            (LaneRule::Shuffle, |_, step, _| step),
            (LaneRule::ShuffleUp, |lane, step, _| lane - step),
            (LaneRule::ShuffleDown, |lane, step, _| lane + step),
            (LaneRule::ShuffleXor, |lane, step, _| lane ^ step),
            (LaneRule::RotateUp, |lane, step, size| {
                (lane - step).rem_euclid(size)
            }),
            (LaneRule::RotateDown, |lane, step, size| {
                (lane + step).rem_euclid(size)
            }),
        ];
        let column: Vec<u64> = steps.iter().map(|s| u64::from(*s as i16 as u16)).collect();
        for (rule, source) in rules {
            let by = Some((Scalar::I16, &column[..]));
            let out = exchange(rule, shape, Scalar::U32, &value, by);
            for lane in 0..lanes {
                let first = lane - lane % group;
                let from = source((lane - first) as i64, steps[lane], group as i64);
                let exists = (0..group as i64).contains(&from)
                    && first + (from as usize) < existing
                    && lane < existing;
                let expected = if exists {
                    value[first + from as usize]
                } else {
                    0
                };
                assert_eq!(out[lane], expected, "{rule:?} {shape:?} lane {lane}");
            }
        }
    }
}

#[test]
fn lane_numbers_are_mathematical_integers() {
    let value: Vec<u64> = (10..18).collect();
    let shape = (8, 8, 8);
    // 255 is lane 255 as u8 and lane -1 as i8.
    for (ty, expected) in [(Scalar::U8, 0), (Scalar::I8, 11)] {
        let out = exchange(
            LaneRule::ShuffleUp,
            shape,
            Scalar::U32,
            &value,
            Some((ty, &[255; 8])),
        );
        assert_eq!(out[0], expected, "{ty}");
    }
    let far = [u64::MAX; 8];
    for rule in [
        LaneRule::Shuffle,
        LaneRule::ShuffleDown,
        LaneRule::ShuffleXor,
    ] {
        let by = Some((Scalar::U64, &far[..]));
        assert_eq!(
            exchange(rule, shape, Scalar::U32, &value, by),
            [0; 8],
            "{rule:?}"
        );
    }
    // 2^64 - 1 places around 8 lanes is 7 places.
    let by = Some((Scalar::U64, &far[..]));
    assert_eq!(
        exchange(LaneRule::RotateDown, shape, Scalar::U32, &value, by)[0],
        17
    );
}

#[test]
fn a_broadcast_reads_the_lane_that_the_first_lane_names() {
    let value: Vec<u64> = (10..18).collect();
    let named = [2, 7, 7, 7, 1, 0, 0, 0];
    let by = Some((Scalar::U32, &named[..]));
    let whole = exchange(LaneRule::Broadcast, (8, 8, 8), Scalar::U32, &value, by);
    assert_eq!(whole, [12; 8]);
    let quads = exchange(LaneRule::Broadcast, (8, 4, 7), Scalar::U32, &value, by);
    assert_eq!(quads, [12, 12, 12, 12, 15, 15, 15, 0]);
    let none = exchange(LaneRule::Broadcast, (8, 8, 2), Scalar::U32, &value, by);
    assert_eq!(none, [0; 8]);
    let first = exchange(
        LaneRule::BroadcastFirst,
        (8, 4, 6),
        Scalar::U32,
        &value,
        None,
    );
    assert_eq!(first, [10, 10, 10, 10, 14, 14, 0, 0]);
}

#[test]
fn votes_count_existing_lanes_alone() {
    let mut random = Random(45);
    for shape in shapes() {
        let (lanes, group, existing) = shape;
        for likely in [0, 1, 2, 5] {
            let value: Vec<u64> = (0..lanes)
                .map(|_| u64::from(likely == 5 || random.below(3) < likely))
                .collect();
            let all = exchange(LaneRule::All, shape, Scalar::Bool, &value, None);
            let any = exchange(LaneRule::Any, shape, Scalar::Bool, &value, None);
            let mut words = vec![vec![9; lanes]; 4];
            let mut columns: Vec<&mut [u64]> = words.iter_mut().map(|w| &mut w[..]).collect();
            let mask = mask(existing);
            evaluate(
                LaneRule::Ballot,
                group,
                Scalar::Bool,
                mask,
                &value,
                None,
                &mut columns,
            );
            for lane in 0..existing {
                let first = lane - lane % group;
                let votes: Vec<u64> = (first..(first + group).min(existing))
                    .map(|lane| value[lane])
                    .collect();
                let bits = votes
                    .iter()
                    .zip(0..)
                    .fold(0u128, |b, (v, i)| b | u128::from(*v) << i);
                assert_eq!(all[lane], u64::from(!votes.contains(&0)), "all {shape:?}");
                assert_eq!(any[lane], u64::from(votes.contains(&1)), "any {shape:?}");
                let found = (0..4).fold(0u128, |b, k| b | u128::from(words[k][lane]) << (32 * k));
                assert_eq!(found, bits, "ballot {shape:?}");
            }
            assert!(words.iter().all(|w| w[existing..].iter().all(|v| *v == 0)));
        }
    }
}

#[test]
fn every_rule_has_a_row_for_simdgroups_and_one_for_quadgroups() {
    let rules = |wanted: Group| -> Vec<LaneRule> {
        Op::all()
            .filter_map(|op| match op.row().meaning {
                Meaning::Lanes(group, rule) if group == wanted => Some(rule),
                _ => None,
            })
            .collect()
    };
    let simd = rules(Group::Simdgroup);
    assert_eq!(simd, rules(Group::Quadgroup));
    assert_eq!(simd.len(), 7 + 4 + 6 + 2 + 3);
}
