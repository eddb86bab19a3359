//! The analysis of distances: what it says of random integers is what each thread computes.

use std::collections::HashMap;
use std::fmt::Write;

use invar_codegen::analysis::distances::{self, Distances};
use invar_codegen::analysis::lanes::{Positions, Question, Shape, analyse};
use invar_codegen::analysis::ranges;
use invar_ir::ops::evaluate::evaluate;
use invar_ir::{InstKind, Kernel, Level, Module, Scalar, Type, Value, text, verify};

const THREADS: u32 = 64;
const LANES: u32 = 8;
const TYPES: [Scalar; 6] = [
    Scalar::U32,
    Scalar::I32,
    Scalar::U16,
    Scalar::I16,
    Scalar::U64,
    Scalar::I64,
];

/// Numbers of Steele, Lea and Flood's splittable generator.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % n as u64) as usize
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

/// A kernel that computes integers of a thread's number and of a scalar.
fn kernel(random: &mut Random) -> String {
    let mut body = String::from("    %v0 = thread_index_in_threadgroup\n    %v1 = add %n, %n\n");
    let mut types = vec![Scalar::U32; 2];
    for i in 2..24 {
        // What was made last is used most.
        let from = types.len() - 1 - random.below(types.len()).min(random.below(types.len()));
        let ty = types[from];
        let same: Vec<usize> = (0..types.len()).filter(|k| types[*k] == ty).collect();
        let op = random.of(&[
            "add", "sub", "mul", "shl", "shr", "div", "rem", "and", "or", "xor", "cast", "as_type",
        ]);
        let to = random.of(&TYPES);
        let line = match op {
            "cast" => {
                types.push(to);
                format!("%v{i} = cast {to} %v{from}")
            }
            "as_type" => {
                let fits = |to: &Scalar| to.bits() == ty.bits();
                let to = TYPES.into_iter().filter(fits).collect::<Vec<_>>();
                types.push(random.of(&to));
                format!("%v{i} = as_type {} %v{from}", types[i])
            }
            _ => {
                types.push(ty);
                let constant = match op {
                    "shl" | "shr" => random.below(5),
                    _other => random.of(&[0, 1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 31, 64, 20000]),
                };
                let either = random.below(3);
                let other = random.of(&same);
                if either == 0 && op != "shl" && op != "shr" {
                    format!("%v{i} = {op} %v{from}, %v{other}")
                } else {
                    format!("%c{i} = const {ty} {constant}\n    %v{i} = {op} %v{from}, %c{i}")
                }
            }
        };
        writeln!(body, "    {line}").expect("a string");
    }
    format!("kernel @k(%n: u32) threadgroup({THREADS}) {{\n{body}}}\n")
}

fn distances(module: &Module, kernel: &Kernel) -> Distances {
    let question = Question {
        kernel,
        uniformity: &invar_ir::analyse(module, kernel),
        level: Level::Threadgroup,
        shape: Shape {
            width: LANES,
            along: 2,
            rows: 1,
            linear: false,
        },
        positions: Positions::Rows,
        together: &|_| false,
        at_least: &HashMap::new(),
        threadgroup_size: kernel.threadgroup_size,
        ranges: &ranges::analyse_unguarded(kernel, &ranges::Known::default()),
    };
    distances::analyse(&question, &analyse(&question))
}

/// What each thread computes.
fn computed(kernel: &Kernel, n: u64) -> HashMap<Value, Vec<u64>> {
    let all = THREADS as usize;
    let mut values = HashMap::from([(Value(0), vec![n; all])]);
    kernel.for_each_inst(&mut |inst| {
        let Some(result) = inst.results.first() else {
            return;
        };
        let column = match &inst.kind {
            InstKind::Const(c) => vec![c.bits; all],
            InstKind::Op { args, .. } if args.is_empty() => (0..u64::from(THREADS)).collect(),
            InstKind::Op { op, imm, args } => {
                let types: Vec<Type> = args.iter().map(|arg| kernel.ty(*arg)).collect();
                let columns: Vec<&[u64]> = args.iter().map(|arg| values[arg].as_slice()).collect();
                let mut found = evaluate(*op, *imm, &types, &columns).expect("an operation");
                found.pop().expect("a column")
            }
            other => unreachable!("{other:?}"),
        };
        values.insert(*result, column);
    });
    values
}

#[test]
fn lanes_are_as_far_apart_as_it_says() {
    let mut random = Random(27);
    let (mut exact, mut wrapping) = (0, 0);
    for _ in 0..1200 {
        let source = kernel(&mut random);
        let module = text::parse("k.inv", &source).and_then(verify);
        let module = module.unwrap_or_else(|e| panic!("{source}\n{e}"));
        let kernel = &module.kernels[0];
        let distances = distances(&module, kernel);
        for n in [0, 5, 1 << 14, u64::from(u32::MAX)] {
            let values = computed(kernel, n);
            for (value, column) in &values {
                let scalar = kernel.ty(*value).scalar().expect("a scalar");
                for (by_number, count) in [(true, &mut exact), (false, &mut wrapping)] {
                    let Some(by) = distances.of(*value, by_number) else {
                        continue;
                    };
                    *count += 1;
                    for vector in column.chunks(LANES as usize) {
                        for (lane, by) in vector.iter().zip(by) {
                            let [is, first] = [*lane, vector[0]].map(|v| scalar.integer(v));
                            let off = is - first - i128::from(*by);
                            let modulus = if by_number { 0 } else { 1 << 32 };
                            let right = off == 0 || modulus > 0 && off % modulus == 0;
                            let name = kernel.value_name(*value);
                            assert!(
                                right,
                                "{name} with n {n}: {vector:?}, not by {by}\n{source}"
                            );
                        }
                    }
                }
            }
        }
    }
    assert!(
        exact > 6_000 && wrapping > exact + 300,
        "{exact} {wrapping}"
    );
}
