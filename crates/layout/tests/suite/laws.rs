//! The laws of the algebra on random nested layouts, each checked by enumerating indices.
//!
//! Operations have preconditions, so a random input may be refused; every law also counts that
//! enough of its inputs were accepted, so that none holds for want of cases.

use invar_layout::{
    Banks, Coord, Error, IntTuple, Layout, Swizzle, SwizzledLayout, Tiler, common_vector,
    conflicts, thread_value_layout,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRng, TestRunner};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

/// A shape of at most 3 levels and 384 coordinates, of sizes that compose often.
fn shape() -> impl Strategy<Value = IntTuple> {
    let size = prop::sample::select(vec![1i64, 1, 2, 2, 2, 3, 4, 4, 6, 8]);
    size.prop_map(IntTuple::from)
        .prop_recursive(3, 8, 3, |inner| {
            prop::collection::vec(inner, 1..=3).prop_map(|modes| IntTuple::tuple(modes).unwrap())
        })
}

/// A layout of such a shape with any strides, now and then 0.
fn any_layout() -> impl Strategy<Value = Layout> {
    shape().prop_flat_map(|shape| {
        let stride = prop::sample::select(vec![0i64, 1, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]);
        prop::collection::vec(stride, shape.integers().len())
            .prop_map(move |strides| rebuild(&shape, &strides))
    })
}

/// A layout whose modes nest in one another in a random order, possibly with gaps: injective.
fn spread_layout() -> impl Strategy<Value = Layout> {
    shape().prop_flat_map(|shape| {
        let count = shape.integers().len();
        let order = Just((0..count).collect::<Vec<_>>()).prop_shuffle();
        let gaps = prop::collection::vec(prop::sample::select(vec![1i64, 1, 1, 1, 2, 3]), count);
        (order, gaps).prop_map(move |(order, gaps)| {
            let (mut strides, mut next) = (vec![0; count], 1);
            for (leaf, gap) in order.into_iter().zip(gaps) {
                strides[leaf] = next * gap;
                next *= gap * shape.integers()[leaf];
            }
            rebuild(&shape, &strides)
        })
    })
}

fn layout() -> impl Strategy<Value = Layout> {
    prop_oneof![any_layout(), spread_layout()]
}

fn tiler() -> impl Strategy<Value = Tiler> {
    let part = prop_oneof![
        Just(Tiler::keep()),
        prop::sample::select(vec![1i64, 2, 3, 4, 8]).prop_map(|n| Tiler::int(n).unwrap()),
        spread_layout().prop_map(Tiler::from),
    ];
    prop::collection::vec(part, 1..=2).prop_map(|parts| Tiler::tuple(parts).unwrap())
}

fn rebuild(shape: &IntTuple, strides: &[i64]) -> Layout {
    fn go(shape: &IntTuple, strides: &mut impl Iterator<Item = i64>) -> IntTuple {
        match shape.as_int() {
            Some(_) => strides.next().unwrap().into(),
            None => IntTuple::tuple(shape.modes().map(|mode| go(&mode, strides))).unwrap(),
        }
    }
    Layout::new(shape, &go(shape, &mut strides.iter().copied())).unwrap()
}

/// Offsets by the definition: each integer index split into digits, each digit times its stride.
fn by_definition(layout: &Layout) -> Vec<i64> {
    let modes = layout.leaves();
    (0..layout.size())
        .map(|index| {
            let mut rest = index;
            modes
                .iter()
                .map(|mode| {
                    let digit = rest % mode.shape;
                    rest /= mode.shape;
                    digit * mode.stride
                })
                .sum()
        })
        .collect()
}

fn image(layout: &Layout) -> BTreeSet<i64> {
    layout.offsets().unwrap().into_iter().collect()
}

/// Runs a law on `cases` inputs; the law says whether the operation accepted its input.
fn law<S: Strategy>(
    inputs: S,
    least_accepted: u32,
    check: impl Fn(S::Value) -> Result<bool, TestCaseError>,
) {
    const CASES: u32 = 1500;
    let accepted = Cell::new(0);
    let config = Config {
        cases: CASES,
        failure_persistence: None,
        ..Config::default()
    };
    // The same inputs every time: a failure can be run again, and a pass stays one.
    let random = TestRng::deterministic_rng(config.rng_algorithm);
    TestRunner::new_with_rng(config, random)
        .run(&inputs, |input| {
            accepted.set(accepted.get() + u32::from(check(input)?));
            Ok(())
        })
        .unwrap();
    let accepted = accepted.get();
    assert!(
        accepted >= least_accepted,
        "only {accepted} of {CASES} inputs were accepted"
    );
}

#[test]
fn offsets_follow_the_definition() {
    law(layout(), 1500, |a| {
        let wanted = by_definition(&a);
        prop_assert_eq!(&a.offsets().unwrap(), &wanted);
        for (index, &offset) in wanted.iter().enumerate() {
            prop_assert_eq!(a.call_index(index as i64).unwrap(), offset);
            let coordinate = a.coordinate(index as i64).unwrap();
            prop_assert!(coordinate.congruent(&a.shape()));
            prop_assert!(a.shape().check_coordinate(&coordinate).is_ok());
            prop_assert_eq!(a.call(&coordinate).unwrap(), offset);
            prop_assert_eq!(a.index(&coordinate).unwrap(), index as i64);
            prop_assert_eq!(coordinate.inner_product(&a.stride()).unwrap(), offset);
        }
        prop_assert_eq!(a.cosize(), wanted.iter().max().unwrap() + 1);
        Ok(true)
    });
}

#[test]
fn text_reads_back() {
    law((layout(), tiler()), 1500, |(a, t)| {
        prop_assert_eq!(a.to_string().parse::<Layout>().unwrap(), a.clone());
        prop_assert_eq!(
            a.shape().to_string().parse::<IntTuple>().unwrap(),
            a.shape()
        );
        prop_assert_eq!(t.to_string().parse::<Tiler>().unwrap(), t);
        Ok(true)
    });
}

#[test]
fn structure_operations_keep_the_function_or_the_modes() {
    law((layout(), 0usize..4, 0usize..4), 400, |(a, begin, end)| {
        prop_assert_eq!(a.flatten().offsets().unwrap(), a.offsets().unwrap());
        prop_assert!(a.flatten().depth() <= 1);
        prop_assert_eq!(
            Layout::tuple(a.modes()).unwrap().offsets().unwrap(),
            a.offsets().unwrap()
        );
        let modes: Vec<usize> = (0..a.rank()).rev().collect();
        let reversed: Vec<Layout> = modes.iter().map(|&mode| a.mode(mode).unwrap()).collect();
        prop_assert_eq!(a.select(&modes).unwrap(), Layout::tuple(reversed).unwrap());
        let grouped = a.group(begin, end);
        prop_assert_eq!(grouped.is_ok(), begin <= end && end <= a.rank());
        let Ok(grouped) = grouped else {
            return Ok(false);
        };
        prop_assert_eq!(grouped.rank(), a.rank() - (end - begin) + 1);
        prop_assert_eq!(grouped.offsets().unwrap(), a.offsets().unwrap());
        Ok(true)
    });
}

#[test]
fn slices_cover_the_layout() {
    law(
        layout().prop_flat_map(|a| (Just(a.clone()), 0..a.rank())),
        1000,
        |(a, kept)| {
            // One mode kept, the others at each of their indices in turn.
            let mut seen = BTreeMap::new();
            let others = a.modes().enumerate().filter(|(mode, _)| *mode != kept);
            let others: Vec<(usize, i64)> = others.map(|(mode, l)| (mode, l.size())).collect();
            let choices = others.iter().map(|(_, size)| size).product::<i64>();
            for choice in 0..choices {
                let mut rest = choice;
                let mut coordinate = vec![Coord::new(None); a.rank()];
                for &(mode, size) in &others {
                    coordinate[mode] = (rest % size).into();
                    rest /= size;
                }
                let coordinate = match a.is_single() {
                    true => Coord::new(None),
                    false => Coord::tuple(coordinate).unwrap(),
                };
                let (part, start) = a.slice(&coordinate).unwrap();
                prop_assert_eq!(part.size(), a.mode(kept).unwrap().size());
                for offset in part.offsets().unwrap() {
                    *seen.entry(start + offset).or_insert(0) += 1;
                }
            }
            let mut wanted = BTreeMap::new();
            a.offsets()
                .unwrap()
                .into_iter()
                .for_each(|at| *wanted.entry(at).or_insert(0) += 1);
            prop_assert_eq!(seen, wanted);
            Ok(true)
        },
    );
}

#[test]
fn coalesce_keeps_the_function_and_is_simplest() {
    law(layout(), 1500, |a| {
        let simple = a.coalesce();
        prop_assert_eq!(simple.offsets().unwrap(), a.offsets().unwrap());
        prop_assert!(simple.depth() <= 1);
        prop_assert_eq!(simple.coalesce(), simple.clone());
        for pair in simple.leaves().windows(2) {
            prop_assert!(pair[0].shape > 1 && pair[1].shape > 1);
            prop_assert_ne!(pair[0].shape * pair[0].stride, pair[1].stride);
        }
        let profile = IntTuple::flat(&vec![1; a.rank()]).unwrap();
        let by_mode = a.coalesce_by(&profile).unwrap();
        prop_assert_eq!(by_mode.rank(), a.rank());
        for (mode, of) in by_mode.modes().zip(a.modes()) {
            prop_assert_eq!(mode, of.coalesce());
        }
        Ok(true)
    });
}

#[test]
fn filter_keeps_each_offset() {
    law(layout(), 1500, |a| {
        let filtered = a.filter();
        prop_assert_eq!(image(&filtered), image(&a));
        prop_assert!(filtered.size() == 1 || filtered.leaves().iter().all(|m| m.stride != 0));
        Ok(true)
    });
}

#[test]
fn complement_is_ordered_disjoint_and_large_enough() {
    law((layout(), 1i64..300), 500, |(a, target)| {
        let rest = match a.complement(target) {
            Ok(rest) => rest,
            Err(Error::Overlap { .. }) => {
                // Refused: some stride lies inside what smaller strides cover.
                let mut modes: Vec<_> = a.leaves().to_vec();
                modes.retain(|mode| mode.shape > 1 && mode.stride > 0);
                modes.sort_by_key(|mode| (mode.stride, mode.shape));
                let overlap =
                    |pair: &[invar_layout::Mode]| pair[1].stride < pair[0].stride * pair[0].shape;
                prop_assert!(modes.windows(2).any(overlap));
                return Ok(false);
            }
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        };
        let strides: Vec<i64> = rest.leaves().iter().map(|mode| mode.stride).collect();
        prop_assert!(
            strides.windows(2).all(|pair| pair[0] < pair[1]),
            "ascending: {rest}"
        );
        let core = a.filter();
        let mut sums = BTreeSet::new();
        for i in core.offsets().unwrap() {
            for j in rest.offsets().unwrap() {
                prop_assert!(sums.insert(i + j), "{a} and {rest} meet at {}", i + j);
            }
        }
        prop_assert!(core.size() * rest.size() <= core.cosize() * rest.cosize());
        // Where every stride continues what smaller ones cover evenly, nothing is left out.
        let mut sorted = core.leaves().to_vec();
        sorted.retain(|mode| mode.shape > 1);
        sorted.sort_by_key(|mode| mode.stride);
        let even = sorted
            .windows(2)
            .all(|pair| pair[1].stride % (pair[0].stride * pair[0].shape) == 0);
        if even {
            prop_assert!(
                (0..target).all(|at| sums.contains(&at)),
                "{a} and {rest} leave a hole"
            );
            let period = sorted.last().map_or(1, |mode| mode.stride * mode.shape);
            prop_assert!(rest.cosize() <= (target + period - 1) / period * period);
        }
        Ok(true)
    });
}

#[test]
fn composition_is_composition() {
    law((layout(), layout()), 500, |(a, b)| {
        let Ok(c) = a.compose(&b) else {
            return Ok(false);
        };
        prop_assert!(
            b.shape().compatible(&c.shape()).unwrap(),
            "{b} is the domain of {c}"
        );
        for index in 0..b.size() {
            let through = a.call_index(b.call_index(index).unwrap()).unwrap();
            prop_assert_eq!(
                c.call_index(index).unwrap(),
                through,
                "{} after {} is {}",
                a,
                b,
                c
            );
        }
        Ok(true)
    });
}

#[test]
fn composition_is_refused_only_without_even_steps() {
    law(
        (
            layout(),
            prop::sample::select(vec![1i64, 2, 3, 4, 5, 8]),
            1i64..40,
        ),
        300,
        |(a, s, d)| {
            let b = Layout::single(s, d).unwrap();
            let refused = match a.compose(&b) {
                Ok(_) => false,
                Err(Error::StrideDivisibility { .. } | Error::ShapeDivisibility { .. }) => true,
                Err(other) => return Err(TestCaseError::fail(other.to_string())),
            };
            // A mode whose stride and extent fit the first mode of `a` evenly is always accepted.
            let first = a.coalesce().leaves()[0];
            let inside = first.shape % (s * d) == 0;
            prop_assert!(!(refused && inside), "{a} after {b} was refused");
            Ok(refused)
        },
    );
}

#[test]
fn composition_is_associative_where_both_ways_exist() {
    law(
        (spread_layout(), spread_layout(), spread_layout()),
        50,
        |(a, b, c)| {
            let left = a.compose(&b).and_then(|ab| ab.compose(&c));
            let right = b.compose(&c).and_then(|bc| a.compose(&bc));
            let (Ok(left), Ok(right)) = (left, right) else {
                return Ok(false);
            };
            // Past its size a composition continues along its own last mode, so compare inside.
            if c.cosize() > b.size() {
                return Ok(false);
            }
            prop_assert_eq!(left.offsets().unwrap(), right.offsets().unwrap());
            Ok(true)
        },
    );
}

#[test]
fn the_identity_changes_nothing() {
    law(layout(), 1500, |a| {
        let before = Layout::identity(&a.shape()).unwrap();
        prop_assert_eq!(before.offsets().unwrap(), (0..a.size()).collect::<Vec<_>>());
        prop_assert_eq!(
            a.compose(&before).unwrap().offsets().unwrap(),
            a.offsets().unwrap()
        );
        let after = Layout::single(a.cosize(), 1).unwrap();
        prop_assert_eq!(
            after.compose(&a).unwrap().offsets().unwrap(),
            a.offsets().unwrap()
        );
        Ok(true)
    });
}

#[test]
fn right_inverse_is_undone_by_the_layout() {
    law(layout(), 400, |a| {
        let r = a.right_inverse().unwrap();
        for i in 0..r.size() {
            prop_assert_eq!(a.call_index(r.call_index(i).unwrap()).unwrap(), i);
        }
        // A layout that is a permutation is inverted whole.
        let permutation = a.size() == a.cosize() && a.is_injective().unwrap();
        if permutation {
            prop_assert_eq!(r.size(), a.size());
        }
        Ok(r.size() > 1)
    });
}

#[test]
fn left_inverse_undoes_the_layout() {
    law(layout(), 700, |a| {
        let l = match a.left_inverse() {
            Ok(l) => l,
            Err(Error::NotInjective { .. }) => {
                prop_assert!(!a.is_injective().unwrap());
                return Ok(false);
            }
            Err(Error::Overlap { .. } | Error::StrideMultiple { .. }) => return Ok(false),
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        };
        for i in 0..a.size() {
            prop_assert_eq!(l.call_index(a.call_index(i).unwrap()).unwrap(), i);
        }
        Ok(true)
    });
}

/// All modes of a result, tile by tile, hold the same offsets as the layout.
fn same_offsets(a: &Layout, b: &Layout) -> bool {
    let (mut a, mut b) = (a.offsets().unwrap(), b.offsets().unwrap());
    a.sort_unstable();
    b.sort_unstable();
    a == b
}

#[test]
fn logical_divide_is_its_definition() {
    law((layout(), spread_layout()), 200, |(a, b)| {
        let Ok(divided) = a.logical_divide(&b.clone().into()) else {
            return Ok(false);
        };
        prop_assert_eq!(divided.rank(), 2);
        prop_assert_eq!(divided.mode(0).unwrap(), a.compose(&b).unwrap());
        let rest = b.complement(a.size()).unwrap();
        prop_assert_eq!(divided.mode(1).unwrap(), a.compose(&rest).unwrap());
        if divided.size() == a.size() && b.cosize() * rest.size() <= a.size() {
            prop_assert!(same_offsets(&divided, &a), "{a} by {b} is {divided}");
        }
        Ok(true)
    });
}

#[test]
fn divides_arrange_the_same_modes() {
    law((layout(), tiler()), 300, |(a, t)| {
        let all = [
            a.logical_divide(&t),
            a.zipped_divide(&t),
            a.tiled_divide(&t),
            a.flat_divide(&t),
        ];
        let [Ok(logical), Ok(zipped), Ok(tiled), Ok(flat)] = all else {
            prop_assert!(
                all.iter().all(Result::is_err),
                "{a} by {t}: some, not all, accepted"
            );
            return Ok(false);
        };
        if logical.size() > 1 << 16 {
            return Ok(false);
        }
        prop_assert_eq!(logical.rank(), a.rank());
        prop_assert_eq!(zipped.rank(), 2);
        prop_assert_eq!(tiled.mode(0).unwrap(), zipped.mode(0).unwrap());
        prop_assert_eq!(tiled.rank(), 1 + zipped.mode(1).unwrap().rank());
        prop_assert_eq!(
            flat.rank(),
            zipped.mode(0).unwrap().rank() + zipped.mode(1).unwrap().rank()
        );
        for other in [&zipped, &tiled, &flat] {
            prop_assert!(
                same_offsets(&logical, other),
                "{a} by {t}: {logical} and {other}"
            );
        }
        Ok(true)
    });
}

#[test]
fn logical_product_is_its_definition() {
    law((spread_layout(), layout()), 200, |(a, b)| {
        let Ok(product) = a.logical_product(&b.clone().into()) else {
            return Ok(false);
        };
        prop_assert_eq!(product.mode(0).unwrap(), a.clone());
        let copies = product.mode(1).unwrap();
        prop_assert!(b.shape().compatible(&copies.shape()).unwrap());
        let free = a.complement(a.size() * b.cosize()).unwrap();
        match free.compose(&b) {
            Ok(through) => prop_assert_eq!(copies, through),
            // Only a layout that overlaps itself is placed mode by mode.
            Err(Error::Carry { .. }) => prop_assert!(b.complement(1).is_err()),
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        }
        // Copies of an injective layout along an injective one do not meet.
        if a.is_injective().unwrap() && b.is_injective().unwrap() {
            prop_assert!(product.is_injective().unwrap(), "{a} by {b} is {product}");
        }
        Ok(true)
    });
}

#[test]
fn products_arrange_the_same_modes() {
    law((spread_layout(), tiler()), 200, |(a, t)| {
        let all = [
            a.logical_product(&t),
            a.zipped_product(&t),
            a.tiled_product(&t),
            a.flat_product(&t),
        ];
        let [Ok(logical), Ok(zipped), Ok(tiled), Ok(flat)] = all else {
            prop_assert!(
                all.iter().all(Result::is_err),
                "{a} by {t}: some, not all, accepted"
            );
            return Ok(false);
        };
        if logical.size() > 1 << 16 {
            return Ok(false);
        }
        for other in [&zipped, &tiled, &flat] {
            prop_assert!(
                same_offsets(&logical, other),
                "{a} by {t}: {logical} and {other}"
            );
        }
        Ok(true)
    });
}

#[test]
fn blocked_and_raked_products_place_whole_and_interleaved_copies() {
    law((spread_layout(), spread_layout()), 200, |(a, b)| {
        let all = [a.blocked_product(&b), a.raked_product(&b)];
        let [Ok(blocked), Ok(raked)] = all else {
            prop_assert!(all.iter().all(Result::is_err));
            return Ok(false);
        };
        // Larger ones take long to enumerate and show nothing more.
        if blocked.size() > 1 << 14 {
            return Ok(false);
        }
        let rank = a.rank().max(b.rank());
        prop_assert_eq!((blocked.rank(), raked.rank()), (rank, rank));
        prop_assert!(same_offsets(&blocked, &raked));
        for (at, (x, y)) in blocked.modes().zip(raked.modes()).enumerate() {
            prop_assert_eq!(x.rank(), 2);
            prop_assert_eq!(x.mode(0).unwrap(), y.mode(1).unwrap());
            prop_assert_eq!(x.mode(1).unwrap(), y.mode(0).unwrap());
            if at < a.rank() {
                prop_assert_eq!(x.mode(0).unwrap(), a.mode(at).unwrap());
            }
        }
        Ok(true)
    });
}

#[test]
fn thread_value_layouts_own_each_element_once() {
    let order = |n: usize| Just((0..n as i64).collect::<Vec<_>>()).prop_shuffle();
    let sizes = || prop::collection::vec(prop::sample::select(vec![1i64, 2, 4, 8, 3]), 2);
    let inputs = (sizes(), order(2), sizes(), order(2));
    law(inputs, 1500, |(t, t_order, v, v_order)| {
        let make = |shape: &[i64], order: &[i64]| {
            let (shape, order) = (
                IntTuple::flat(shape).unwrap(),
                IntTuple::flat(order).unwrap(),
            );
            Layout::ordered(&shape, &order).unwrap()
        };
        let (threads, values) = (make(&t, &t_order), make(&v, &v_order));
        let (tile, owners) = thread_value_layout(&threads, &values).unwrap();
        prop_assert_eq!(tile, IntTuple::flat(&[t[0] * v[0], t[1] * v[1]]).unwrap());
        prop_assert_eq!(image(&owners), (0..owners.size()).collect::<BTreeSet<_>>());
        // Thread `threads(i,j)` holds the block of values at (i,j), in the order of `values`.
        for (thread, value) in
            (0..threads.size()).flat_map(|t| (0..values.size()).map(move |v| (t, v)))
        {
            let index = owners
                .call(&IntTuple::flat(&[thread, value]).unwrap())
                .unwrap();
            let (row, column) = (index % (t[0] * v[0]), index / (t[0] * v[0]));
            let at = |l: &Layout, i, j| l.call(&IntTuple::flat(&[i, j]).unwrap()).unwrap();
            prop_assert_eq!(at(&threads, row / v[0], column / v[1]), thread);
            prop_assert_eq!(at(&values, row % v[0], column % v[1]), value);
        }
        Ok(true)
    });
}

#[test]
fn recast_touches_the_same_memory() {
    let bits = prop::sample::select(vec![
        (16i64, 8i64),
        (32, 8),
        (8, 16),
        (4, 16),
        (64, 8),
        (24, 16),
    ]);
    law((spread_layout(), bits), 200, |(a, (new, old))| {
        let Ok(recast) = a.recast(new, old) else {
            return Ok(false);
        };
        let bits_of = |layout: &Layout, width: i64| -> BTreeSet<i64> {
            let offsets = layout.offsets().unwrap();
            offsets
                .iter()
                .flat_map(|at| at * width..(at + 1) * width)
                .collect()
        };
        let (before, after) = (bits_of(&a, old), bits_of(&recast, new));
        prop_assert!(
            before.is_subset(&after),
            "{a} from {old} to {new} bits is {recast}"
        );
        // Nothing is added but the rest of the common larger element that was touched in part.
        let common = (1..)
            .map(|n| n * new)
            .find(|width| width % old == 0)
            .unwrap();
        let rest = |at: &i64| {
            let element = at.div_euclid(common);
            (element * common..(element + 1) * common).any(|bit| before.contains(&bit))
        };
        prop_assert!(after.iter().all(rest));
        if new < old {
            prop_assert_eq!(
                recast.recast(old, new).unwrap().offsets().unwrap(),
                a.offsets().unwrap()
            );
        }
        Ok(true)
    });
}

fn swizzle() -> impl Strategy<Value = Swizzle> {
    (0i64..4, 0i64..4, -5i64..6)
        .prop_filter_map("fields overlap", |(b, m, s)| Swizzle::new(b, m, s).ok())
}

#[test]
fn swizzles_permute_their_blocks_and_undo_themselves() {
    law(swizzle(), 1500, |s| {
        let block = s.block();
        let mut seen = BTreeSet::new();
        for offset in block..2 * block {
            let swizzled = s.apply(offset).unwrap();
            prop_assert!((block..2 * block).contains(&swizzled));
            prop_assert!(seen.insert(swizzled));
            prop_assert_eq!(s.apply(swizzled).unwrap(), offset);
            prop_assert_eq!(
                swizzled & ((1 << s.base()) - 1),
                offset & ((1 << s.base()) - 1)
            );
        }
        prop_assert_eq!(s.to_string().parse::<Swizzle>().unwrap(), s);
        Ok(true)
    });
}

#[test]
fn swizzled_layouts_follow_their_layout() {
    law((swizzle(), layout(), layout()), 400, |(s, a, b)| {
        let swizzled = SwizzledLayout::new(s, a.clone());
        prop_assert_eq!(
            swizzled
                .to_string()
                .parse::<SwizzledLayout>()
                .unwrap()
                .offsets()
                .unwrap(),
            swizzled.offsets().unwrap()
        );
        for (index, offset) in swizzled.offsets().unwrap().into_iter().enumerate() {
            prop_assert_eq!(swizzled.call_index(index as i64).unwrap(), offset);
            prop_assert_eq!(
                s.apply(a.call_index(index as i64).unwrap()).unwrap(),
                offset
            );
            prop_assert!(offset < swizzled.cosize().unwrap());
        }
        let Ok(through) = swizzled.compose(&b) else {
            return Ok(false);
        };
        for index in 0..b.size() {
            prop_assert_eq!(
                through.call_index(index).unwrap(),
                swizzled.call_index(b.call_index(index).unwrap()).unwrap()
            );
        }
        Ok(true)
    });
}

#[test]
fn recast_swizzles_move_the_same_bytes() {
    law(
        (
            swizzle(),
            prop::sample::select(vec![(8i64, 16i64), (8, 32), (16, 8), (32, 8)]),
        ),
        500,
        |(s, (new, old))| {
            let Ok(recast) = s.recast(new, old) else {
                return Ok(false);
            };
            for byte in 0..4 * s.block() * old / 8 {
                let moved = |s: Swizzle, bits: i64| {
                    let bytes = bits / 8;
                    s.apply(byte / bytes).unwrap() * bytes + byte % bytes
                };
                prop_assert_eq!(moved(s, old), moved(recast, new));
            }
            Ok(true)
        },
    );
}

#[test]
fn injectivity_and_surjectivity_agree_with_counting() {
    law(layout(), 300, |a| {
        let image = image(&a);
        prop_assert_eq!(
            a.is_injective().unwrap(),
            image.len() as i64 == a.size(),
            "{}",
            a
        );
        prop_assert_eq!(a.is_surjective(), image.len() as i64 == a.cosize(), "{}", a);
        Ok(a.is_injective().unwrap() != a.is_surjective())
    });
}

/// The largest `n` for which every aligned group of `n` indices passes.
fn widest(size: i64, passes: impl Fn(i64, i64) -> bool) -> i64 {
    (1..=size)
        .filter(|n| size % n == 0 && (0..size / n).all(|group| passes(group * n, *n)))
        .max()
        .unwrap_or(1)
}

#[test]
fn contiguous_runs_and_vector_widths_agree_with_counting() {
    law((layout(), swizzle()), 300, |(a, s)| {
        let run = |at: i64, n: i64, l: &SwizzledLayout| {
            let first = l.call_index(at).unwrap();
            (0..n).all(|i| l.call_index(at + i).unwrap() == first + i)
        };
        let plain = SwizzledLayout::from(a.clone());
        let widest_run = widest(a.size(), |at, n| run(at, n, &plain));
        prop_assert_eq!(a.contiguous_run(), widest_run, "{}", a);
        let aligned = |l: &SwizzledLayout| {
            widest(a.size(), |at, n| {
                run(at, n, l) && l.call_index(at).unwrap() % n == 0
            })
        };
        prop_assert_eq!(a.vector_width(), aligned(&plain), "{}", a);
        // A swizzle can leave a wider run by chance, never a narrower one.
        let swizzled = SwizzledLayout::new(s, a.clone());
        let width = swizzled.vector_width();
        prop_assert!(aligned(&swizzled) % width == 0 || aligned(&swizzled) >= width);
        prop_assert!((0..a.size() / width).all(|group| run(group * width, width, &swizzled)));
        Ok(a.vector_width() > 1)
    });
}

#[test]
fn common_vectors_are_contiguous_in_both() {
    let pairs = spread_layout().prop_flat_map(|a| {
        let shape = a.shape();
        let count = shape.integers().len();
        let order = Just((0..count).collect::<Vec<_>>()).prop_shuffle();
        (Just(a), order).prop_map(move |(a, order)| {
            let (mut strides, mut next) = (vec![0; count], 1);
            for leaf in order {
                strides[leaf] = next;
                next *= shape.integers()[leaf];
            }
            (a, rebuild(&shape, &strides))
        })
    });
    law(pairs, 300, |(a, b)| {
        let width = common_vector(&a, &b).unwrap();
        let place = |l: &Layout| -> BTreeMap<i64, usize> {
            l.offsets()
                .unwrap()
                .into_iter()
                .enumerate()
                .map(|(i, at)| (at, i))
                .collect()
        };
        let (in_a, in_b) = (place(&a), place(&b));
        let shared =
            |n: i64| (0..n).all(|at| in_a.contains_key(&at) && in_a.get(&at) == in_b.get(&at));
        prop_assert!(shared(width), "{a} and {b} do not share {width}");
        prop_assert!(
            !shared(width + 1) || width == a.size(),
            "{a} and {b} share more than {width}"
        );
        Ok(width > 1)
    });
}

#[test]
fn bank_conflicts_agree_with_counting() {
    let offsets = prop::collection::vec(-200i64..200, 1..=64);
    let banks = (
        prop::sample::select(vec![4u32, 8, 32]),
        prop::sample::select(vec![2u32, 4]),
    );
    law(
        (
            offsets,
            prop::sample::select(vec![1u32, 2, 4, 8, 16]),
            banks,
        ),
        300,
        |(offsets, bytes, (count, width))| {
            let banks = Banks {
                count,
                width_bytes: width,
            };
            let report = conflicts(&offsets, bytes, banks).unwrap();
            let at_once = ((count * width / bytes) as usize).clamp(1, count as usize);
            let mut rounds = 0;
            for lanes in offsets.chunks(at_once) {
                // Serve words one by one, each in the first round in which its bank is free.
                let mut words = BTreeSet::new();
                for lane in lanes {
                    for byte in lane * i64::from(bytes)..(lane + 1) * i64::from(bytes) {
                        words.insert(byte.div_euclid(i64::from(width)));
                    }
                }
                let mut free: Vec<BTreeSet<i64>> = Vec::new();
                for word in words {
                    let bank = word.rem_euclid(i64::from(count));
                    match free.iter_mut().find(|busy| !busy.contains(&bank)) {
                        Some(busy) => drop(busy.insert(bank)),
                        None => free.push(BTreeSet::from([bank])),
                    }
                }
                rounds += free.len();
            }
            prop_assert_eq!(report.rounds, rounds);
            prop_assert!(report.least_rounds <= rounds && report.least_rounds >= 1);
            prop_assert_eq!(report.lane_conflicts.len(), offsets.len());
            prop_assert_eq!(
                report.lane_conflicts.iter().any(|&c| c),
                report.bank_conflicts.iter().any(|&c| c)
            );
            Ok(report.conflicts() > 0)
        },
    );
}
