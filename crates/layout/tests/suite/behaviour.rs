//! Worked examples, and for every refusal the condition that it names.

use invar_layout::{
    Coord, Error, IntTuple, Layout, Node, Picture, Swizzle, SwizzledLayout, Tiler, common_vector,
    thread_value_layout,
};

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

fn tuple(text: &str) -> IntTuple {
    text.parse().unwrap()
}

fn tiler(text: &str) -> Tiler {
    text.parse().unwrap()
}

#[test]
fn a_matrix_is_tiled_and_shared_among_threads() {
    let (tile, owners) =
        thread_value_layout(&layout("(4,64):(64,1)"), &layout("(4,4):(4,1)")).unwrap();
    assert_eq!(tile, tuple("(16,256)"));
    assert_eq!(owners, layout("((64,4),(4,4)):((64,4),(16,1))"));
    let divided = layout("(256,512):(512,1)")
        .zipped_divide(&Tiler::from_shape(&tile).unwrap())
        .unwrap();
    assert_eq!(divided, layout("((16,256),(16,2)):((512,1),(8192,256))"));
    let elements = divided.mode(0).unwrap().compose(&owners).unwrap();
    assert_eq!(elements, layout("((64,4),(4,4)):((4,2048),(1,512))"));
}

#[test]
fn thread_value_layouts_need_complete_threads_and_values() {
    let refused = [
        ("(2,2):(1,4)", "(2,2):(1,2)"),
        ("4:2", "2:1"),
        ("(2,2):(0,1)", "2:1"),
        ("2:1", "(2,2):(1,0)"),
    ];
    for ((threads, values), wrong) in refused
        .into_iter()
        .zip(["thread", "thread", "thread", "value"])
    {
        let error = thread_value_layout(&layout(threads), &layout(values)).unwrap_err();
        assert!(
            matches!(error, Error::Incomplete { what, .. } if what == wrong),
            "{error}"
        );
    }
    assert!(thread_value_layout(&layout("(2,2):(2,1)"), &layout("2:1")).is_ok());
}

#[test]
fn tuples_come_apart_and_go_together() {
    let shape = tuple("((4,2),8)");
    let Node::Tuple(modes) = shape.node() else {
        panic!("a tuple")
    };
    assert_eq!(modes, [tuple("(4,2)"), tuple("8")]);
    assert_eq!(IntTuple::tuple(modes).unwrap(), shape);
    assert_eq!(IntTuple::from(8).node(), Node::Int(8));
    assert_eq!(IntTuple::flat(&[1, 2]).unwrap(), tuple("(1,2)"));
    assert_eq!(IntTuple::repeat_like(7, &shape), tuple("((7,7),7)"));
    assert_eq!(shape.select(&[1, 0]).unwrap(), tuple("(8,(4,2))"));
    assert_eq!(shape.product_each().unwrap(), tuple("(8,8)"));
    assert_eq!(shape.flatten(), tuple("(4,2,8)"));
    assert_eq!(tuple("(2,3,4)").group(0, 2).unwrap(), tuple("((2,3),4)"));
    assert_ne!(tuple("(4)"), tuple("4"));
    assert_eq!(
        (tuple("()").size(), tuple("()").rank(), tuple("()").depth()),
        (Ok(1), 0, 1)
    );
    assert_eq!(
        tuple("(8,4)").shape_div(&tuple("(2,8)")).unwrap(),
        tuple("(4,1)")
    );
    assert_eq!(tuple("24").shape_div(&tuple("(2,3)")).unwrap(), tuple("4"));
}

#[test]
fn shapes_compare_by_nesting_and_by_size() {
    let [coarse, middle, fine] = [tuple("24"), tuple("(4,6)"), tuple("((2,2),6)")];
    assert!(coarse.compatible(&middle).unwrap() && middle.compatible(&fine).unwrap());
    assert!(!fine.compatible(&middle).unwrap() && !tuple("(6,4)").compatible(&fine).unwrap());
    assert!(middle.weakly_congruent(&fine) && !fine.weakly_congruent(&middle));
    assert!(fine.congruent(&tuple("((9,9),9)")) && !fine.congruent(&middle));
}

#[test]
fn selecting_and_grouping_name_the_missing_mode() {
    let a = layout("(2,3):(1,2)");
    assert!(matches!(
        a.select(&[2]),
        Err(Error::NoSuchMode {
            mode: 2,
            rank: 2,
            ..
        })
    ));
    assert!(matches!(
        a.select(&[0, 0]),
        Err(Error::RepeatedMode { mode: 0, .. })
    ));
    assert!(matches!(
        a.group(1, 3),
        Err(Error::NoSuchModes {
            begin: 1,
            end: 3,
            rank: 2,
            ..
        })
    ));
    assert_eq!(
        layout("(1,2,3):(1,1,2)")
            .group(2, 1)
            .unwrap_err()
            .to_string(),
        "group: modes from 2 to before 1 are not part of 3: give a begin of at least 0, and an end \
         from there to 3"
    );
    assert!(matches!(a.mode(2), Err(Error::NoSuchMode { .. })));
    assert!(a.mode(1).is_ok() && a.group(1, 2).is_ok());
    assert_eq!(
        layout("4:1").append(&layout("2:4")).unwrap(),
        layout("(4,2):(1,4)")
    );
}

#[test]
fn layouts_need_congruent_positive_shapes() {
    let new = |shape, stride| Layout::new(&tuple(shape), &tuple(stride));
    assert!(matches!(
        new("(2,3)", "(1,(2))"),
        Err(Error::NotCongruent { .. })
    ));
    assert!(matches!(
        new("(2,0)", "(1,2)"),
        Err(Error::NotPositive { value: 0, .. })
    ));
    assert!(matches!(
        Layout::compact(&tuple("(2,-1)")),
        Err(Error::NotPositive { .. })
    ));
    assert!(matches!(
        Layout::row_major(&tuple("(2,0)")),
        Err(Error::NotPositive { .. })
    ));
    assert!(new("(2,1)", "(1,2)").is_ok());
}

#[test]
fn compact_layouts_come_in_any_order() {
    let shape = tuple("(2,(3,4))");
    assert_eq!(
        Layout::compact(&shape).unwrap(),
        layout("(2,(3,4)):(1,(2,6))")
    );
    assert_eq!(
        Layout::row_major(&shape).unwrap(),
        layout("(2,(3,4)):(12,(4,1))")
    );
    let ordered = |order| Layout::ordered(&shape, &tuple(order));
    assert_eq!(ordered("(1,0)").unwrap(), layout("(2,(3,4)):(12,(1,3))"));
    assert_eq!(
        ordered("(5,(9,-1))").unwrap(),
        layout("(2,(3,4)):(4,(8,1))")
    );
    assert_eq!(
        ordered("(0,(0,0))").unwrap(),
        Layout::compact(&shape).unwrap()
    );
    assert!(matches!(
        ordered("(0,(0,0,0))"),
        Err(Error::NotCongruent { .. })
    ));
    assert!(matches!(
        ordered("((0),1)"),
        Err(Error::NotCongruent { .. })
    ));
}

#[test]
fn negative_strides_have_offsets_but_no_inverses() {
    let back = layout("(4,2):(-1,10)");
    assert_eq!((back.cosize(), back.least_offset()), (14, -3));
    assert_eq!(back.offsets().unwrap(), [0, -1, -2, -3, 10, 9, 8, 7]);
    assert_eq!(back.is_injective(), Ok(true));
    assert!(!back.is_surjective() && layout("(4,2):(-1,4)").is_surjective());
    assert_eq!(back.compose(&layout("2:2")).unwrap(), layout("2:-2"));
    assert_eq!(layout("(2,3):(-1,-2)").coalesce(), layout("6:-1"));
    let negative = |error| matches!(error, Err(Error::Negative { value: -1, .. }));
    assert!(negative(back.complement(20)) && negative(back.right_inverse()));
    assert!(negative(back.left_inverse()) && negative(layout("8:1").compose(&back)));
    assert!(negative(back.recast(16, 8)) && negative(back.recast(8, 16)));
    assert!(matches!(
        Swizzle::new(1, 0, 1).unwrap().apply(-1),
        Err(Error::Negative { .. })
    ));
}

#[test]
fn slices_keep_the_wildcards_in_order() {
    let a = layout("((2,3),(4,5)):((1,2),(6,24))");
    let slice = |coordinate: &str| a.slice(&coordinate.parse().unwrap());
    assert_eq!(slice("_").unwrap(), (a.clone(), 0));
    assert_eq!(
        slice("((_,2),(3,_))").unwrap(),
        (layout("(2,5):(1,24)"), 22)
    );
    assert_eq!(slice("(_,7)").unwrap(), (layout("((2,3)):((1,2))"), 42));
    assert_eq!(slice("(1,1)").unwrap(), (layout("():()"), 7));
    assert!(matches!(slice("(_,_,_)"), Err(Error::NotCongruent { .. })));
    assert!(matches!(slice("(_,-1)"), Err(Error::Negative { .. })));
    let wild: Coord = "(_,1)".parse().unwrap();
    assert!(matches!(wild.to_int_tuple(), Err(Error::Wildcard { .. })));
    assert_eq!(
        "(2,1)".parse::<Coord>().unwrap().to_int_tuple(),
        Ok(tuple("(2,1)"))
    );
}

#[test]
fn composition_names_the_failing_condition() {
    let a = layout("(8,16):(1,100)");
    assert!(matches!(
        a.compose(&layout("4:3")),
        Err(Error::StrideDivisibility {
            stride: 3,
            size: 8,
            ..
        })
    ));
    assert!(
        a.compose(&layout("3:3")).is_ok(),
        "3:3 ends inside the first mode"
    );
    assert!(matches!(
        a.compose(&layout("12:1")),
        Err(Error::ShapeDivisibility {
            size: 12,
            steps: 8,
            ..
        })
    ));
    assert_eq!(a.compose(&layout("16:1")).unwrap(), layout("(8,2):(1,100)"));
    assert!(matches!(
        a.compose(&layout("(5,2):(1,4)")),
        Err(Error::Carry {
            reach: 8,
            size: 8,
            ..
        })
    ));
    assert_eq!(
        a.compose(&layout("(4,2):(1,4)")).unwrap(),
        layout("(4,2):(1,4)")
    );
    assert!(matches!(
        a.compose_tile(&tiler("<1,1,1>")),
        Err(Error::TileRank {
            tile: 3,
            layout: 2,
            ..
        })
    ));
    assert_eq!(
        a.compose_tile(&tiler("<_,4>")).unwrap(),
        layout("(8,4):(1,100)")
    );
}

#[test]
fn products_refuse_copies_that_would_meet() {
    // Two modes that fill one gap together, and step past it.
    let refused = layout("2:3").logical_product(&layout("(2,2):(1,2)").into());
    assert!(matches!(refused, Err(Error::Carry { .. })), "{refused:?}");
    assert_eq!(
        layout("2:3")
            .logical_product(&layout("3:1").into())
            .unwrap(),
        layout("(2,3):(3,1)")
    );
}

#[test]
fn copies_find_room_past_gaps_that_cannot_be_used() {
    let product = |a, b| layout(a).logical_product(&layout(b).into());
    // Between 1:3 and what is below it no whole number of copies fits.
    assert_eq!(
        product("(2,2,2):(1,3,8)", "2:1").unwrap(),
        layout("((2,2,2),2):((1,3,8),16)")
    );
    // One gap of two places, then those past the end; three copies do not fill the gap evenly.
    assert_eq!(
        product("(2,2,2):(1,3,12)", "4:1").unwrap(),
        layout("((2,2,2),(2,2)):((1,3,12),(6,24))")
    );
    let refused = product("(2,2,2):(1,3,12)", "3:1");
    assert!(
        matches!(refused, Err(Error::ShapeDivisibility { .. })),
        "{refused:?}"
    );
}

#[test]
fn inverses_name_the_failing_condition() {
    let left = |text| layout(text).left_inverse();
    assert!(matches!(
        left("(2,2):(1,0)"),
        Err(Error::NotInjective { .. })
    ));
    assert!(matches!(
        left("(4,2):(1,2)"),
        Err(Error::Overlap {
            stride: 2,
            least: 4,
            ..
        })
    ));
    assert!(matches!(
        left("(2,2):(2,5)"),
        Err(Error::StrideMultiple {
            stride: 5,
            divisor: 2,
            ..
        })
    ));
    assert_eq!(left("(2,2):(2,6)").unwrap(), layout("(2,3,2):(0,1,2)"));
    assert_eq!(
        layout("(2,4,8):(8,1,0)").right_inverse().unwrap(),
        layout("(4,2):(2,0)").filter()
    );
    assert_eq!(layout("8:2").right_inverse().unwrap(), layout("1:0"));
    assert!(matches!(
        layout("(4,2):(1,2)").complement(8),
        Err(Error::Overlap { .. })
    ));
    assert!(matches!(
        layout("4:1").complement(0),
        Err(Error::NotPositive { .. })
    ));
}

#[test]
fn recast_refuses_what_it_would_tear() {
    let recast = |text, new, old| layout(text).recast(new, old);
    assert_eq!(recast("(4,8):(8,1)", 32, 8).unwrap(), layout("(4,2):(2,1)"));
    assert!(matches!(
        recast("(4,6):(8,1)", 32, 8),
        Err(Error::Indivisible {
            value: 6,
            by: 4,
            ..
        })
    ));
    assert!(matches!(
        recast("(4,8):(6,1)", 32, 8),
        Err(Error::Indivisible { .. })
    ));
    assert!(matches!(
        recast("4:2", 8, 16),
        Err(Error::NoUnitStride { parts: 2, .. })
    ));
    assert!(matches!(
        recast("(2,2):(1,1)", 8, 16),
        Err(Error::SeveralUnitStrides { .. })
    ));
    assert_eq!(recast("(4,1):(2,1)", 8, 16).unwrap(), layout("(4,2):(4,1)"));
    assert!(matches!(
        recast("4:1", 0, 8),
        Err(Error::NotPositive { .. })
    ));
    let swizzled: SwizzledLayout = "Sw<3,1,3> o (8,64):(64,1)".parse().unwrap();
    assert_eq!(
        swizzled.recast(16, 8).unwrap().to_string(),
        "Sw<3,0,3> o (8,32):(32,1)"
    );
    assert!(matches!(swizzled.recast(32, 8), Err(Error::Swizzle { .. })));
    assert!(matches!(swizzled.recast(24, 8), Err(Error::Swizzle { .. })));
}

#[test]
fn swizzles_state_their_limits() {
    assert!(matches!(Swizzle::new(3, 0, 2), Err(Error::Swizzle { .. })));
    assert!(Swizzle::new(3, 0, 3).is_ok() && Swizzle::new(3, 0, -3).is_ok());
    assert!(matches!(
        Swizzle::new(-1, 0, 3),
        Err(Error::Negative { .. })
    ));
    assert!(matches!(
        Swizzle::new(1, -1, 3),
        Err(Error::Negative { .. })
    ));
    assert!(Swizzle::new(20, 20, 22).is_ok());
    assert!(matches!(
        Swizzle::new(20, 20, 23),
        Err(Error::Swizzle { .. })
    ));
    assert_eq!(Swizzle::none().apply(i64::MAX), Ok(i64::MAX));
}

#[test]
fn common_vectors_need_one_shape() {
    let rows = layout("(4,8):(8,1)");
    assert_eq!(common_vector(&rows, &rows), Ok(32));
    assert_eq!(common_vector(&rows, &layout("(4,8):(1,4)")), Ok(1));
    assert_eq!(common_vector(&rows, &layout("(4,8):(16,1)")), Ok(8));
    assert!(matches!(
        common_vector(&rows, &layout("8:1")),
        Err(Error::SizeMismatch { .. })
    ));
}

#[test]
fn text_errors_give_position_and_need() {
    let message = |text: &str| text.parse::<Layout>().unwrap_err().to_string();
    assert_eq!(
        message("(4,8)"),
        "position 5: expected `:` and the strides, found the end"
    );
    assert_eq!(
        message("(4,8:1"),
        "position 4: expected `,` or `)`, found `:`"
    );
    assert_eq!(
        message("4:x"),
        "position 2: expected an integer or `(`, found `x`"
    );
    assert_eq!(message("4:1 2"), "position 4: expected the end, found `2`");
    assert_eq!(
        message("é"),
        "position 0: expected an integer or `(`, found `é`"
    );
    assert_eq!(
        message(""),
        "position 0: expected an integer or `(`, found the end"
    );
    assert!(message("(2,3):(1,2,3)").contains("not nested alike"));
    assert_eq!(
        layout(" ( 4 , ( 2 , 2 , ) ) : ( 1 , ( 4 , 8 ) ) "),
        layout("(4,(2,2)):(1,(4,8))")
    );
    assert_eq!(
        tiler("<4,_,(2,2):(1,8)>").to_string(),
        "<4:1,_,(2,2):(1,8)>"
    );
    let swizzled = |text: &str| text.parse::<SwizzledLayout>();
    assert_eq!(swizzled("Sw<1,0,1> ∘ 4:1"), swizzled("Sw<1,0,1> o 4:1"));
    assert_eq!(swizzled("4:1").unwrap().to_string(), "4:1");
    assert!(swizzled("Sw<1,0,1> 4:1").is_err() && "Sw<1,0>".parse::<Swizzle>().is_err());
}

#[test]
fn every_error_is_one_lower_case_sentence() {
    let errors = [
        layout("8:1").compose(&layout("(5,2):(1,4)")).err(),
        layout("(8,2):(1,100)").compose(&layout("4:3")).err(),
        layout("(8,2):(1,100)").compose(&layout("12:1")).err(),
        layout("(4,2):(1,2)").complement(8).err(),
        layout("(2,2):(2,5)").left_inverse().err(),
        layout("4:2").recast(8, 16).err(),
        layout("4:1").mode(1).err(),
        "(".parse::<Layout>().err(),
        Swizzle::new(3, 0, 2).err(),
    ];
    for error in errors.into_iter().flatten() {
        let text = error.to_string();
        assert!(text.starts_with(|c: char| c.is_lowercase()), "{text}");
        assert!(!text.ends_with('.') && !text.contains('\n'), "{text}");
    }
}

#[test]
fn recasting_to_a_fraction_needs_whole_larger_elements() {
    assert_eq!(layout("16:1").recast(16, 7).unwrap(), layout("7:1"));
    let refused = layout("8:1").recast(16, 7);
    assert!(
        matches!(
            refused,
            Err(Error::Indivisible {
                value: 8,
                by: 16,
                ..
            })
        ),
        "{refused:?}"
    );
}

#[test]
fn pictures_show_offsets_below_zero() {
    let picture = Picture::offsets(layout("4:-1")).unwrap();
    assert!(picture.table().contains("-3"), "{}", picture.table());
    assert!(picture.svg().contains(">-3<"), "{}", picture.svg());
}
