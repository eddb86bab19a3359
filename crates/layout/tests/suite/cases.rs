//! Every case of `tests/data/layout_cases.json`: inputs and results that come from two other
//! implementations of the algebra and from brute force.
//!
//! An `exact` result must be equal; a `function` result must be the same map; a `property` is
//! checked by brute force against the operation's definition; a `reject` must be an error.

use invar_layout::{Coord, Error, IntTuple, Layout, Result, Swizzle, SwizzledLayout, Tiler};
use serde_json::Value;
use std::collections::BTreeMap;

const TOTAL: usize = 1696;

fn cases() -> Vec<Value> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/data/layout_cases.json"
    );
    let text = std::fs::read_to_string(path).expect("the cases are part of the repository");
    let mut whole: Value = serde_json::from_str(&text).expect("the cases are JSON");
    match whole["cases"].take() {
        Value::Array(cases) => cases,
        other => panic!("no list of cases: {other}"),
    }
}

fn int_tuple(value: &Value) -> IntTuple {
    match value {
        Value::Array(modes) => IntTuple::tuple(modes.iter().map(int_tuple)).unwrap(),
        other => IntTuple::from(other.as_i64().unwrap()),
    }
}

fn coord(value: &Value) -> Coord {
    match value {
        Value::Array(modes) => Coord::tuple(modes.iter().map(coord)).unwrap(),
        other => Coord::new(other.as_i64()),
    }
}

fn layout(value: &Value) -> Layout {
    let value = value.get("layout").unwrap_or(value);
    Layout::new(&int_tuple(&value["shape"]), &int_tuple(&value["stride"])).unwrap()
}

fn tiler(value: &Value) -> Tiler {
    if let Some(modes) = value.get("tile") {
        Tiler::tuple(modes.as_array().unwrap().iter().map(tiler).collect()).unwrap()
    } else if value.is_object() {
        layout(value).into()
    } else {
        Tiler::int(value.as_i64().unwrap()).unwrap()
    }
}

/// A plain tile or layout as a layout, for operations that take only one.
fn operand(value: &Value) -> Layout {
    if value.is_object() {
        layout(value)
    } else {
        Layout::single(value.as_i64().unwrap(), 1).unwrap()
    }
}

/// What an operation gives: a layout, a tuple, a number, or a list of offsets.
#[derive(PartialEq, Debug)]
enum Given {
    Layout(Layout),
    Tuple(IntTuple),
    Function(Vec<i64>),
}

fn run(case: &Value) -> Result<Given> {
    let args = &case["args"];
    let a = || layout(&args["A"]);
    let number = |name: &str| args[name].as_i64().unwrap();
    let swizzle = || Swizzle::new(number("bits"), number("base"), number("shift"));
    Ok(match case["op"].as_str().unwrap() {
        "coalesce" => Given::Layout(a().coalesce()),
        "coalesce_profile" => Given::Layout(a().coalesce_by(&int_tuple(&args["profile"]))?),
        "filter" => Given::Layout(a().filter()),
        "complement" => Given::Layout(a().complement(number("cotarget"))?),
        "composition" => Given::Layout(a().compose(&operand(&args["B"]))?),
        "composition_tile" => Given::Layout(a().compose_tile(&tiler(&args["B"]))?),
        "right_inverse" => Given::Layout(a().right_inverse()?),
        "left_inverse" => Given::Layout(a().left_inverse()?),
        "logical_divide" | "logical_divide_tile" => {
            Given::Layout(a().logical_divide(&tiler(&args["B"]))?)
        }
        "zipped_divide" => Given::Layout(a().zipped_divide(&tiler(&args["B"]))?),
        "tiled_divide" => Given::Layout(a().tiled_divide(&tiler(&args["B"]))?),
        "logical_product" | "logical_product_tile" => {
            Given::Layout(a().logical_product(&tiler(&args["B"]))?)
        }
        "zipped_product" => Given::Layout(a().zipped_product(&tiler(&args["B"]))?),
        "tiled_product" => Given::Layout(a().tiled_product(&tiler(&args["B"]))?),
        "blocked_product" => Given::Layout(a().blocked_product(&operand(&args["B"]))?),
        "raked_product" => Given::Layout(a().raked_product(&operand(&args["B"]))?),
        "slice_and_offset" => Given::Layout(a().slice(&coord(&args["coord"]))?.0),
        "crd2idx" => Given::Tuple(a().call(&int_tuple(&args["crd"]))?.into()),
        "idx2crd" => Given::Tuple(int_tuple(&args["shape"]).coordinate(number("idx"))?),
        "prefix_product" => Given::Tuple(int_tuple(&args["a"]).prefix_product()?),
        "shape_div" => Given::Tuple(int_tuple(&args["a"]).shape_div(&int_tuple(&args["b"]))?),
        "inner_product" => Given::Tuple(
            int_tuple(&args["a"])
                .inner_product(&int_tuple(&args["b"]))?
                .into(),
        ),
        "swizzle" => {
            let (swizzle, count) = (swizzle()?, case["fn"].as_array().unwrap().len());
            Given::Function(
                (0..count as i64)
                    .map(|i| swizzle.apply(i))
                    .collect::<Result<_>>()?,
            )
        }
        "swizzled_layout" => Given::Function(SwizzledLayout::new(swizzle()?, a()).offsets()?),
        other => panic!("unknown operation {other}"),
    })
}

fn same_function(a: &Layout, b: &Layout) -> bool {
    a.offsets().unwrap() == b.offsets().unwrap()
}

/// The operation's own definition, by brute force, where the cases say only that it must hold.
fn holds(case: &Value, result: &Layout) -> bool {
    let a = layout(&case["args"]["A"]);
    match case["op"].as_str().unwrap() {
        "right_inverse" => {
            (0..result.size()).all(|i| a.call_index(result.call_index(i).unwrap()).unwrap() == i)
        }
        "left_inverse" => {
            (0..a.size()).all(|i| result.call_index(a.call_index(i).unwrap()).unwrap() == i)
        }
        // One mode for each tile: the layout's mode after it.
        "composition_tile" => {
            let tiles = case["args"]["B"]["tile"].as_array().unwrap();
            result.rank() == tiles.len()
                && tiles.iter().enumerate().all(|(at, tile)| {
                    let (mode, tile) = (a.mode(at).unwrap(), operand(tile));
                    let made = result.mode(at).unwrap();
                    made.size() == tile.size()
                        && (0..tile.size()).all(|i| {
                            made.call_index(i).unwrap()
                                == mode.call_index(tile.call_index(i).unwrap()).unwrap()
                        })
                })
        }
        other => panic!("no definition for {other}"),
    }
}

fn check(case: &Value) -> std::result::Result<(), String> {
    let expect = &case["expect"];
    let wanted = || {
        let value = expect.get("layout").unwrap_or(&case["result"]);
        match case["op"].as_str().unwrap() {
            "crd2idx" | "idx2crd" | "prefix_product" | "shape_div" | "inner_product" => {
                Given::Tuple(int_tuple(value))
            }
            "swizzle" | "swizzled_layout" => Given::Function(
                case["fn"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|v| v.as_i64().unwrap())
                    .collect(),
            ),
            _ => Given::Layout(layout(value)),
        }
    };
    let given = run(case);
    let fail = |why: &str| Err(format!("{why}: gave {given:?}"));
    match (expect["kind"].as_str().unwrap(), &given) {
        ("exact" | "exact_but_property_fails", Ok(result)) if *result == wanted() => {
            // The first offsets are listed too; they check the expectation at the same time.
            match (result, case["fn"].as_array()) {
                (Given::Layout(layout), Some(list)) if expect.get("layout").is_none() => {
                    let list: Vec<i64> = list.iter().map(|v| v.as_i64().unwrap()).collect();
                    let same = (0i64..)
                        .zip(list)
                        .all(|(i, at)| layout.call_index(i) == Ok(at));
                    if same { Ok(()) } else { fail("other offsets") }
                }
                _ => Ok(()),
            }
        }
        ("exact" | "exact_but_property_fails", _) => fail(&format!("expected {:?}", wanted())),
        ("function", Ok(Given::Layout(result))) => {
            match expect["layouts"]
                .as_array()
                .unwrap()
                .iter()
                .all(|l| same_function(result, &layout(l)))
            {
                true => Ok(()),
                false => fail("another function"),
            }
        }
        ("property", Ok(Given::Layout(result))) => {
            if holds(case, result) {
                Ok(())
            } else {
                fail("the property does not hold")
            }
        }
        ("reject", Err(_)) | ("accept_or_reject", Err(_)) => Ok(()),
        ("accept_or_reject", Ok(Given::Layout(result))) => {
            match same_function(result, &layout(&expect["layout"])) {
                true => Ok(()),
                false => fail("another function"),
            }
        }
        // One implementation drops copies here: its result has fewer than the definition asks for.
        ("pycute_only", Err(Error::ShapeDivisibility { .. })) => {
            let copies = |value: &Value| {
                value["tile"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|tile| operand(tile).size())
                    .product::<i64>()
            };
            let dropped = layout(&case["result"]).size();
            match dropped < layout(&case["args"]["A"]).size() * copies(&case["args"]["B"]) {
                true => Ok(()),
                false => fail("the other implementation's result is complete"),
            }
        }
        (kind, _) => fail(kind),
    }
}

fn check_all(ops: &[&str]) -> usize {
    let mut failures = Vec::new();
    let mut count = 0;
    for case in cases() {
        if !ops.contains(&case["op"].as_str().unwrap()) {
            continue;
        }
        count += 1;
        if let Err(why) = check(&case) {
            failures.push(format!("{} {}\n    {why}", case["id"], case["args"]));
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {count} fail:\n{}",
        failures.len(),
        failures.join("\n")
    );
    count
}

macro_rules! operations {
    ($($name:ident: $ops:expr, $count:expr;)*) => {
        $(#[test] fn $name() { assert_eq!(check_all(&$ops), $count); })*

        #[test]
        fn every_case_belongs_to_a_test() {
            let listed = [$(($ops.as_slice(), $count)),*];
            assert_eq!(listed.iter().map(|(_, count)| count).sum::<usize>(), TOTAL);
            let mut in_file = BTreeMap::new();
            for case in cases() {
                *in_file.entry(case["op"].as_str().unwrap().to_string()).or_insert(0) += 1;
            }
            assert_eq!(in_file.values().sum::<usize>(), TOTAL);
            for (op, _) in in_file {
                assert!(listed.iter().any(|(ops, _)| ops.contains(&op.as_str())), "{op} is not run");
            }
        }
    };
}

operations! {
    coalesce: ["coalesce"], 69;
    coalesce_by_profile: ["coalesce_profile"], 58;
    filter: ["filter"], 63;
    complement: ["complement"], 273;
    composition: ["composition"], 107;
    composition_with_a_tile: ["composition_tile"], 57;
    right_inverse: ["right_inverse"], 68;
    left_inverse: ["left_inverse"], 66;
    logical_divide: ["logical_divide", "logical_divide_tile"], 179;
    zipped_divide: ["zipped_divide"], 49;
    tiled_divide: ["tiled_divide"], 49;
    logical_product: ["logical_product", "logical_product_tile"], 155;
    zipped_product: ["zipped_product"], 17;
    tiled_product: ["tiled_product"], 13;
    blocked_product: ["blocked_product"], 51;
    raked_product: ["raked_product"], 58;
    coordinates: ["crd2idx", "idx2crd"], 254;
    slices: ["slice_and_offset"], 32;
    shapes: ["prefix_product", "shape_div", "inner_product"], 46;
    swizzles: ["swizzle", "swizzled_layout"], 32;
}
