//! Inputs made to exhaust the stack, memory, time or 64 bits: each has a quick, clear answer.

use invar_layout::{
    Banks, Coord, Error, IntTuple, Layout, MAX_DEPTH, MAX_ENUMERATED, MAX_LANES, MAX_LEAVES,
    Picture, Result, Swizzle, SwizzledLayout, Tiler, conflicts,
};

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

fn nested(depth: usize, inside: &str) -> String {
    format!("{}{inside}{}", "(".repeat(depth), ")".repeat(depth))
}

fn many(count: usize, value: i64) -> IntTuple {
    IntTuple::tuple((0..count).map(|_| IntTuple::from(value))).unwrap()
}

fn is_limit<T: std::fmt::Debug>(result: Result<T>) -> bool {
    matches!(result, Err(Error::Limit { .. }))
}

fn is_overflow<T: std::fmt::Debug>(result: Result<T>) -> bool {
    matches!(result, Err(Error::Overflow { .. }))
}

#[test]
fn text_nests_to_the_limit_and_no_further() {
    let deepest: IntTuple = nested(MAX_DEPTH, "7").parse().unwrap();
    assert_eq!(deepest.depth(), MAX_DEPTH);
    assert_eq!(deepest.size(), Ok(7));
    assert!(is_limit(nested(MAX_DEPTH + 1, "7").parse::<IntTuple>()));
    for text in ["(", "<", "(1,"] {
        assert!(is_limit(text.repeat(1_000_000).parse::<Tiler>()), "{text}");
    }
    assert!(is_limit("(".repeat(1_000_000).parse::<IntTuple>()));
    assert!(is_limit("(".repeat(1_000_000).parse::<Coord>()));
    assert!(is_limit("(".repeat(1_000_000).parse::<Layout>()));
}

#[test]
fn tuples_built_by_hand_nest_to_the_limit_and_no_further() {
    let deepest: IntTuple = nested(MAX_DEPTH, "7").parse().unwrap();
    assert!(is_limit(IntTuple::tuple([deepest.clone()])));
    let layout = Layout::new(&deepest, &deepest).unwrap();
    assert!(is_limit(Layout::tuple([layout.clone()])));
    assert!(is_limit(layout.logical_divide(&nested_tiler(MAX_DEPTH))));
    let coordinate: Coord = nested(MAX_DEPTH, "_").parse().unwrap();
    assert!(is_limit(Coord::tuple([coordinate])));
    let mut tiler = Tiler::int(2).unwrap();
    let mut levels = 0;
    let error = loop {
        match Tiler::tuple(vec![tiler.clone()]) {
            Ok(deeper) => (tiler, levels) = (deeper, levels + 1),
            Err(error) => break error,
        }
    };
    assert_eq!((levels, is_limit::<()>(Err(error))), (MAX_DEPTH, true));
}

fn nested_tiler(depth: usize) -> Tiler {
    let text = format!("{}2:1{}", "<".repeat(depth), ">".repeat(depth));
    text.parse().unwrap()
}

#[test]
fn tuples_hold_as_many_integers_as_the_limit() {
    let most = many(MAX_LEAVES, 1);
    assert!(is_limit(IntTuple::flat(&vec![1; MAX_LEAVES + 1])));
    assert!(is_limit(
        format!("({})", "1,".repeat(MAX_LEAVES + 1)).parse::<IntTuple>()
    ));
    assert!(is_limit(
        format!("({})", "(),".repeat(100_000)).parse::<IntTuple>()
    ));
    assert!(is_limit(many_empty()));
    let layout = Layout::compact(&most).unwrap();
    assert_eq!((layout.rank(), layout.size()), (MAX_LEAVES, 1));
    assert!(is_limit(layout.append(&layout)));
    // 4096 modes in each: at most 4096 steps through the few modes that are not of size 1.
    assert_eq!(layout.compose(&layout).unwrap().rank(), MAX_LEAVES);
    assert!(is_limit(layout.blocked_product(&layout)));
}

fn many_empty() -> Result<IntTuple> {
    IntTuple::tuple((0..MAX_LEAVES * 3).map(|_| "()".parse().unwrap()))
}

#[test]
fn composition_stops_when_its_result_grows_past_the_limit() {
    let splitting = layout(&format!(
        "({}):({})",
        "2,".repeat(60),
        (0..60)
            .map(|k| format!("{},", 3i64.pow(k % 30)))
            .collect::<String>()
    ));
    let right = Layout::new(&many(2, 2), &many(2, 1)).unwrap();
    assert!(splitting.compose(&right).is_err(), "the two modes carry");
    let wide = many(1000, 1);
    let wide = Layout::new(
        &IntTuple::tuple([wide.clone(), IntTuple::from(1 << 60)]).unwrap(),
        &IntTuple::tuple([wide, IntTuple::from(1)]).unwrap(),
    )
    .unwrap();
    let through = splitting.compose(&wide).unwrap();
    assert_eq!(through.mode(1).unwrap().leaves().len(), 60);
}

#[test]
fn sizes_and_extents_fit_64_bits() {
    let max = i64::MAX;
    assert_eq!(layout(&format!("{max}:1")).cosize(), max);
    assert!(is_overflow(format!("{max}:2").parse::<Layout>()));
    assert!(is_overflow(format!("({max},2):(0,0)").parse::<Layout>()));
    assert_eq!(layout(&format!("2:{}", max - 1)).cosize(), max);
    assert!(is_overflow(format!("2:{max}").parse::<Layout>()));
    assert!(is_overflow(
        format!("(2,2):({},{})", max - 1, -2).parse::<Layout>()
    ));
    assert_eq!(layout(&format!("1:{}", i64::MIN)).cosize(), 1);
    assert!(is_overflow(format!("2:{}", i64::MIN).parse::<Layout>()));
    assert!(is_overflow("9223372036854775808".parse::<IntTuple>()));
    assert!("-9223372036854775808".parse::<IntTuple>().is_ok());
    assert!(is_overflow(many(63, 2).size()));
    assert_eq!(many(62, 2).size(), Ok(1 << 62));
    assert!(is_overflow(Layout::compact(&many(63, 2))));
    assert!(is_overflow(Layout::row_major(&many(64, 4))));
    assert!(is_overflow(many(65, 2).prefix_product()));
    assert!(is_overflow(
        IntTuple::from(max).inner_product(&IntTuple::from(2))
    ));
}

#[test]
fn operations_that_leave_64_bits_say_so() {
    let huge = layout("4611686018427387904:1");
    let far = layout("2:4611686018427387904");
    assert!(is_overflow(far.call_index(4)));
    assert!(is_overflow(far.call(&"3".parse().unwrap())));
    assert!(is_overflow(
        layout("8:1")
            .compose(&far)
            .and_then(|_| far.compose(&layout("8:2")))
    ));
    assert!(is_overflow(far.complement(1)));
    assert!(is_overflow(huge.logical_product(&layout("4:1").into())));
    assert!(is_overflow(huge.recast(1, 64)));
    assert!(is_overflow(Swizzle::new(i64::MAX, 0, 0)));
    let swizzled = SwizzledLayout::new(
        Swizzle::new(3, 54, 3).unwrap(),
        layout("9223372036854775807:1"),
    );
    assert!(is_overflow(swizzled.cosize()));
    assert!(is_overflow(
        swizzled
            .call_index(i64::MAX)
            .and_then(|_| far.call_index(2))
    ));
    assert!(layout("8:1").complement(i64::MAX).is_ok());
}

#[test]
fn coordinates_may_be_anything() {
    let a = layout("(4,8):(8,1)");
    assert!(matches!(
        a.call_index(-1),
        Err(Error::Negative { value: -1, .. })
    ));
    assert!(matches!(
        a.call(&"(-1,0)".parse().unwrap()),
        Err(Error::Negative { .. })
    ));
    assert!(matches!(
        a.call(&"(1,2,3)".parse().unwrap()),
        Err(Error::NotCongruent { .. })
    ));
    assert!(matches!(
        a.call(&"((1,1),2)".parse().unwrap()),
        Err(Error::NotCongruent { .. })
    ));
    assert_eq!(a.call_index(i64::MAX), Ok(3 * 8 + i64::MAX / 4));
    assert_eq!(layout("():()").call_index(0), Ok(0));
    assert!(matches!(
        layout("():()").call_index(1),
        Err(Error::OutOfBounds { .. })
    ));
    assert!(matches!(
        a.shape().coordinate(-1),
        Err(Error::Negative { .. })
    ));
    let zeros = IntTuple::flat(&[0, 0]).unwrap();
    assert_eq!(zeros.prefix_product().unwrap().to_string(), "(1,0)");
    assert!("(4,0)".parse::<IntTuple>().unwrap().coordinate(5).is_err());
}

#[test]
fn questions_that_only_counting_decides_stop_at_the_limit() {
    let large = layout("(5,5,4000000):(7,11,13)");
    assert!(large.size() as usize > MAX_ENUMERATED);
    assert!(is_limit(large.offsets()));
    let decided = [
        ("(4000000,4000000):(1,4000000)", true),
        ("(4000000,4000000):(1,1)", false),
    ];
    for (text, injective) in decided {
        assert_eq!(layout(text).is_injective(), Ok(injective), "{text}");
    }
    assert!(is_limit(
        layout("(3,3,3000000):(500000,500001,700000)").is_injective()
    ));
}

#[test]
fn accesses_are_bounded() {
    let banks = Banks::default();
    assert!(conflicts(&vec![0; MAX_LANES], 4, banks).is_ok());
    assert!(is_limit(conflicts(&vec![0; MAX_LANES + 1], 4, banks)));
    assert_eq!(
        conflicts(&[i64::MIN, i64::MAX], 4096, banks)
            .unwrap()
            .rounds,
        64
    );
    for (count, width_bytes, bytes) in [
        (0, 4, 4),
        (1025, 4, 4),
        (32, 0, 4),
        (32, 4097, 4),
        (32, 4, 0),
        (32, 4, 4097),
    ] {
        let refused = conflicts(&[0], bytes, Banks { count, width_bytes });
        assert!(
            matches!(refused, Err(Error::Access { .. })),
            "{count} {width_bytes} {bytes}"
        );
    }
    assert_eq!(conflicts(&[], 4, banks).unwrap().rounds, 0);
}

#[test]
fn pictures_of_long_shapes_stay_small() {
    let ones = many(MAX_LEAVES - 2, 1);
    let shape = IntTuple::tuple([ones, IntTuple::from(1000)]).unwrap();
    let table = Picture::offsets(Layout::compact(&shape).unwrap())
        .unwrap()
        .table();
    assert!(table.len() < 200_000, "{} bytes", table.len());
}
