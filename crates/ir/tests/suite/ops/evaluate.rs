//! Running operations on columns: short cuts that the tests share, and the evaluator's own rules.

use invar_ir::ops::Meaning;
use invar_ir::ops::evaluate::{EvaluateError, Program, as_type, evaluate};
use invar_ir::{Dim, Imm, Op, Scalar, Swizzle, Type};

/// The results of an operation on scalars of one type, whose result is a scalar.
pub fn run(op: Op, scalar: Scalar, args: &[&[u64]]) -> Vec<u64> {
    run_typed(op, Imm::None, &vec![scalar.into(); args.len()], args)
}

/// The results of an operation whose result is a scalar.
pub fn run_typed(op: Op, imm: Imm, types: &[Type], args: &[&[u64]]) -> Vec<u64> {
    let result = evaluate(op, imm, types, args);
    result.unwrap_or_else(|e| panic!("{op}: {e}")).remove(0)
}

/// Every pattern of a type of at most 16 bits.
pub fn every(scalar: Scalar) -> Vec<u64> {
    (0..1 << scalar.bits()).collect()
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let error = Program::compile(Op::Sqrt, Imm::None, &[Type::U32]).err();
    assert!(matches!(error, Some(EvaluateError::Signature(_))));
    let message = error.map(|e| e.to_string());
    assert_eq!(
        message.as_deref(),
        Some("operand 1 is not float scalar or vector")
    );
}

#[test]
fn what_depends_on_the_thread_is_refused() {
    for (op, imm, types) in [
        (Op::ThreadPositionInGrid, Imm::Dim(Dim::X), vec![]),
        (Op::GridSize, Imm::Dim(Dim::Y), vec![]),
        (Op::SimdSum, Imm::None, vec![Type::F32]),
    ] {
        let error = Program::compile(op, imm, &types).err();
        assert!(matches!(error, Some(EvaluateError::DependsOnThread(_))));
    }
    // What only looks like it does is not.
    let origin = evaluate(Op::GridOrigin, Imm::Dim(Dim::X), &[], &[]);
    assert_eq!(origin, Ok(vec![vec![0]]));
}

#[test]
fn what_arranges_says_how() {
    for op in Op::all() {
        let swizzle = Swizzle::new(&[0]).map_or(Imm::None, Imm::Swizzle);
        let arranges = matches!(op.row().meaning, Meaning::Arrange);
        assert_eq!(op.arrangement(swizzle).is_some(), arranges, "{op}");
    }
}

#[test]
fn columns_longer_than_a_chunk_are_computed_whole() {
    let x: Vec<u64> = (0..5000).collect();
    let double = run(Op::Add, Scalar::U32, &[&x, &x]);
    assert!(double.iter().zip(0..).all(|(d, i)| *d == 2 * i));
    assert_eq!(run(Op::Add, Scalar::U32, &[&[], &[]]), []);
}

#[test]
fn as_type_puts_the_first_component_lowest() {
    let narrow = [0x1111, 0x2222, 0x3333, 0x4444].map(|x| [x]);
    let columns: Vec<&[u64]> = narrow.iter().map(|c| &c[..]).collect();
    let types = [Type::Vector(Scalar::U16, 4)];
    let wide = evaluate(Op::AsType, Imm::Type(Type::U64), &types, &columns);
    assert_eq!(wide, Ok(vec![vec![0x4444_3333_2222_1111]]));

    let pair = Imm::Type(Type::Vector(Scalar::F32, 2));
    let pair = evaluate(Op::AsType, pair, &types, &columns);
    assert_eq!(pair, Ok(vec![vec![0x2222_1111], vec![0x4444_3333]]));

    let mut back = [[0]; 4];
    let [a, b, c, d] = &mut back;
    let mut out = [&mut a[..], &mut b[..], &mut c[..], &mut d[..]];
    let source = [&[0x2222_1111][..], &[0x4444_3333][..]];
    as_type(Scalar::F32, Scalar::U16, &source, &mut out);
    assert_eq!(back, narrow);
}

#[test]
fn b4_components_beyond_a_vector_read_as_0_and_are_not_written() {
    let vector = Type::Vector(Scalar::U8, 3);
    let columns = [[10; 6], [20; 6], [30; 6]];
    // 0, 2, 3, -1, the most negative and the most positive index.
    let index = [0, 2, 3, 0xff, 0x80, 0x7f];
    let mut args: Vec<&[u64]> = columns.iter().map(|c| &c[..]).collect();
    args.push(&index);
    let types = [vector, Type::Scalar(Scalar::I8)];
    let parts = evaluate(Op::Extract, Imm::None, &types, &args);
    assert_eq!(parts, Ok(vec![vec![10, 30, 0, 0, 0, 0]]));

    let new = [7; 6];
    args.push(&new);
    let types = [vector, Type::Scalar(Scalar::I8), Type::Scalar(Scalar::U8)];
    let whole = evaluate(Op::Insert, Imm::None, &types, &args);
    let expected = vec![
        vec![7, 10, 10, 10, 10, 10],
        vec![20; 6],
        vec![30, 7, 30, 30, 30, 30],
    ];
    assert_eq!(whole, Ok(expected));
}

#[test]
fn a_column_of_a_matrix_is_extracted_and_inserted_whole() {
    let ty = Type::Matrix {
        scalar: Scalar::F32,
        columns: 2,
        rows: 3,
    };
    let entries: Vec<[u64; 3]> = (1..=6).map(|x| [x; 3]).collect();
    let index = [0, 1, 2];
    let mut args: Vec<&[u64]> = entries.iter().map(|c| &c[..]).collect();
    args.push(&index);
    let column = evaluate(Op::Extract, Imm::None, &[ty, Type::U32], &args);
    let expected = vec![vec![1, 4, 0], vec![2, 5, 0], vec![3, 6, 0]];
    assert_eq!(column, Ok(expected));

    let new = [[7; 3], [8; 3], [9; 3]];
    args.extend(new.iter().map(|c| &c[..]));
    let types = [ty, Type::U32, Type::Vector(Scalar::F32, 3)];
    let whole = evaluate(Op::Insert, Imm::None, &types, &args);
    let expected = [
        [7, 1, 1],
        [8, 2, 2],
        [9, 3, 3],
        [4, 7, 4],
        [5, 8, 5],
        [6, 9, 6],
    ];
    assert_eq!(whole, Ok(expected.map(|c| c.to_vec()).to_vec()));
}

#[test]
fn components_are_built_and_named_in_order() {
    let v2 = Type::Vector(Scalar::I32, 2);
    let v4 = Type::Vector(Scalar::I32, 4);
    let columns: [&[u64]; 4] = [&[1], &[2], &[3], &[4]];
    let types = [Type::I32, v2, Type::I32];
    let built = evaluate(Op::Construct, Imm::Type(v4), &types, &columns);
    assert_eq!(built, Ok(vec![vec![1], vec![2], vec![3], vec![4]]));
    let one = evaluate(Op::Construct, Imm::Type(v4), &[Type::I32], &columns[..1]);
    assert_eq!(one, Ok(vec![vec![1]; 4]));
    let order = Swizzle::parse("wzx").map(Imm::Swizzle);
    let turned = order.map(|imm| evaluate(Op::Swizzle, imm, &[v4], &columns));
    assert_eq!(turned, Some(Ok(vec![vec![4], vec![3], vec![1]])));
}

#[test]
fn select_takes_one_condition_for_all_components() {
    let v2 = Type::Vector(Scalar::F32, 2);
    let columns: [&[u64]; 5] = [&[1, 1], &[2, 2], &[3, 3], &[4, 4], &[0, 1]];
    let chosen = evaluate(Op::Select, Imm::None, &[v2, v2, Type::BOOL], &columns);
    assert_eq!(chosen, Ok(vec![vec![1, 3], vec![2, 4]]));
}

/// Their expansions hold branches and loops: of a remainder a loop whose rounds are as many as the
/// quotient's bits ask for, of a sine a branch for large arguments.
#[test]
fn values_that_part_at_branches_and_leave_loops_early_keep_their_own() {
    let bits = |x: f64| x.to_bits();
    let x: Vec<u64> = (0..300)
        .map(|k| bits((1.0 + f64::from(k) / 7.0) * 2f64.powi((k * 37) % 900 - 100)))
        .collect();
    let y: Vec<u64> = (0..300).map(|k| bits(0.3 + f64::from(k % 11))).collect();
    let remainders = run(Op::Fmod, Scalar::F64, &[&x, &y]);
    let sines = run(Op::Sin, Scalar::F64, &[&x]);
    for k in 0..x.len() {
        let (x, y) = (&x[k..=k], &y[k..=k]);
        assert_eq!(run(Op::Fmod, Scalar::F64, &[x, y]), remainders[k..=k]);
        assert_eq!(run(Op::Sin, Scalar::F64, &[x]), sines[k..=k]);
        let exact = f64::from_bits(x[0]) % f64::from_bits(y[0]);
        assert_eq!(remainders[k], bits(exact), "fmod {x:x?} {y:x?}");
        let exact = f64::from_bits(x[0]).sin();
        let error = (f64::from_bits(sines[k]) - exact).abs();
        assert!(error <= 4.0 * f64::EPSILON * exact.abs(), "sin {x:x?}");
    }
    // By component too, where one component needs many rounds and the other none.
    let types = [Type::Vector(Scalar::F64, 2); 2];
    let columns: [&[u64]; 4] = [&x[..100], &x[100..200], &y[..100], &y[100..200]];
    let pairs = evaluate(Op::Fmod, Imm::None, &types, &columns).expect("floats");
    assert_eq!(pairs, [&remainders[..100], &remainders[100..200]]);
}
