//! Reading the golden values, and how far a result is from one.
//!
//! tests/data/golden/README.md describes the files. The tests of devices read them too.

use std::fs;
use std::path::Path;

use invar_ir::ops::Accuracy;
use invar_ir::{Op, Scalar, Type};

/// A line of a section.
pub struct Case {
    /// Bits of the operands' scalars.
    pub operands: Vec<u64>,
    /// `None` for NaN.
    pub results: Vec<Option<u64>>,
    /// What the rounded results lack to the exact ones, in units in the last place.
    pub missing: Vec<f64>,
}

/// The cases of an operation on operands of some types.
pub struct Section {
    /// File and line.
    pub place: String,
    /// The operation's name.
    pub operation: String,
    /// The operands' types.
    pub operands: Vec<Type>,
    /// The result's type.
    pub result: Type,
    /// What it must give.
    pub cases: Vec<Case>,
}

fn type_named(name: &str) -> Type {
    let mut words = name.split('x');
    let scalar = words.next().and_then(Scalar::from_name);
    let scalar = scalar.expect("a scalar type");
    let counts: Vec<u8> = words.map(|n| n.parse().expect("a number")).collect();
    match counts[..] {
        [] => Type::Scalar(scalar),
        [n] => Type::Vector(scalar, n),
        [columns, rows] => Type::Matrix {
            scalar,
            columns,
            rows,
        },
        _ => panic!("`{name}` is not a type"),
    }
}

fn case(line: &str, result_count: usize) -> Case {
    let bits = |word: &str| u64::from_str_radix(word, 16).expect("hexadecimal digits");
    let (operands, results) = line.split_once(" = ").expect("`=` between bits");
    let words: Vec<&str> = results.split(' ').collect();
    let (results, missing) = words.split_at(result_count);
    assert!(
        missing.is_empty() || missing.len() == result_count,
        "{line}"
    );
    let thousandths = |word: &&str| word.parse::<f64>().expect("thousandths") / 1000.0;
    Case {
        operands: operands.split(' ').map(bits).collect(),
        results: results
            .iter()
            .map(|w| (*w != "nan").then(|| bits(w)))
            .collect(),
        missing: missing.iter().map(thousandths).collect(),
    }
}

/// The sections of a file of the folder.
pub fn sections(folder: &Path, file: &str) -> Vec<Section> {
    let text = fs::read_to_string(folder.join(file)).expect("the golden file");
    let mut sections: Vec<Section> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.starts_with('#') {
            continue;
        }
        if let Some((left, result)) = line.split_once(" -> ") {
            let mut words = left.split(' ');
            sections.push(Section {
                place: format!("{file}:{}", number + 1),
                operation: words.next().expect("a name").to_string(),
                operands: words.map(type_named).collect(),
                result: type_named(result),
                cases: Vec::new(),
            });
        } else {
            let section = sections.last_mut().expect("a section before cases");
            let count = section.result.component_count() as usize;
            section.cases.push(case(line, count));
        }
    }
    sections
}

/// A value's place in the order of its type, -0 and 0 at the same place.
fn ordinal(scalar: Scalar, bits: u64) -> i128 {
    let sign = 1 << (scalar.bits() - 1);
    if bits & sign == 0 {
        i128::from(bits)
    } else {
        -i128::from(bits & (sign - 1))
    }
}

fn is_nan(scalar: Scalar, bits: u64) -> bool {
    let infinity = match scalar {
        Scalar::F16 => 0x7c00,
        Scalar::BF16 => 0x7f80,
        Scalar::F32 => 0x7f80_0000,
        Scalar::F64 => 0x7ff0_0000_0000_0000,
        _ => return false,
    };
    bits & ((1 << (scalar.bits() - 1)) - 1) > infinity
}

/// The error in units in the last place; infinite where not even the kind of number is right.
pub fn error(scalar: Scalar, got: u64, want: Option<u64>, missing: f64) -> f64 {
    match want {
        None if is_nan(scalar, got) => 0.0,
        Some(want) if got == want => missing.abs(),
        // An exact zero has its sign.
        Some(want) if !is_nan(scalar, got) && (ordinal(scalar, want) != 0 || missing != 0.0) => {
            ((ordinal(scalar, got) - ordinal(scalar, want)) as f64 - missing).abs()
        }
        _ => f64::INFINITY,
    }
}

/// The largest error that the op table allows, in units in the last place.
pub fn bound(op: Op, scalar: Scalar) -> f64 {
    match (op.row().accuracy, scalar) {
        // The distance between the exact result and the rounded one.
        (Accuracy::Exact, _) => 0.5,
        (Accuracy::Ulp { f32, .. }, Scalar::F32) => f64::from(f32),
        (Accuracy::Ulp { f64, .. }, Scalar::F64) => f64::from(f64),
        // Rounded once more, from a result with at least eleven bits more.
        (Accuracy::Ulp { .. }, _) => 0.502,
        // The golden inputs do not cancel so far that its other bound would be more.
        (Accuracy::Twofold(ulp), Scalar::F32 | Scalar::F64) => f64::from(ulp),
        (Accuracy::Twofold(_), _) => 0.502,
        // A11 says which roundings are made, so there is one result.
        (Accuracy::Terms(_), _) => 0.0,
    }
}
