//! The range analysis: no value of a random kernel leaves its range, and what guards, loops and sizes
//! say is found.

use invar_codegen::analysis::ranges::{Known, Range, Ranges, analyse, of_type};
use invar_conformance::{Options, generate};
use invar_ir::inst::ValueInfo;
use invar_ir::{
    Access, Const, Inst, InstKind, Kernel, Memory, Op, Param, ParamKind, Place, Region, Scalar,
    Span, Type, Value, text, verify,
};

/// Puts a check behind every definition whose range is less than its type's: where it fails, element 0
/// of the buffer `flag` becomes 1.
struct Checks<'a> {
    ranges: &'a Ranges,
    values: Vec<ValueInfo>,
    flag: Memory,
    count: u64,
}

impl Checks<'_> {
    fn push(&mut self, out: &mut Vec<Inst>, kind: InstKind, ty: Type) -> Value {
        self.values.push(ValueInfo { ty, name: None });
        let value = Value(self.values.len() as u32 - 1);
        out.push(Inst {
            kind,
            results: [value].into_iter().collect(),
            span: Span::NONE,
        });
        value
    }

    fn op(&mut self, out: &mut Vec<Inst>, op: Op, args: &[Value], ty: Type) -> Value {
        let args = args.iter().copied().collect();
        let imm = invar_ir::Imm::None;
        self.push(out, InstKind::Op { op, imm, args }, ty)
    }

    fn check(&mut self, value: Value, out: &mut Vec<Inst>) {
        let ty = self.values[value.0 as usize].ty;
        let (Type::Scalar(scalar), Some((least, most))) = (ty, self.ranges.of(value)) else {
            return;
        };
        if of_type(ty) == Some((least, most)) {
            return;
        }
        self.count += 1;
        let mask = u64::MAX >> (64 - scalar.bits());
        let bound = |n: i128| {
            let bits = n as u64 & mask;
            InstKind::Const(Const { scalar, bits })
        };
        let least = self.push(out, bound(least), ty);
        let most = self.push(out, bound(most), ty);
        let below = self.op(out, Op::Lt, &[value, least], Type::BOOL);
        let above = self.op(out, Op::Gt, &[value, most], Type::BOOL);
        let outside = self.op(out, Op::Or, &[below, above], Type::BOOL);
        let mut store = Vec::new();
        let zero = self.push(&mut store, InstKind::Const(Const::from(0u32)), Type::U32);
        let one = self.push(&mut store, InstKind::Const(Const::from(1u32)), Type::U32);
        let end = |insts: Vec<Inst>| {
            let mut insts = insts;
            insts.push(Inst {
                kind: InstKind::Yield(Default::default()),
                results: Default::default(),
                span: Span::NONE,
            });
            Region {
                params: Vec::new(),
                insts,
            }
        };
        store.push(Inst {
            kind: InstKind::Store {
                place: Place::element(self.flag, zero),
                value: one,
            },
            results: Default::default(),
            span: Span::NONE,
        });
        out.push(Inst {
            kind: InstKind::If {
                condition: outside,
                then: end(store),
                otherwise: end(Vec::new()),
            },
            results: Default::default(),
            span: Span::NONE,
        });
    }

    fn region(&mut self, region: &mut Region) {
        let mut out = Vec::new();
        for param in &region.params {
            self.check(*param, &mut out);
        }
        for mut inst in std::mem::take(&mut region.insts) {
            for inner in inst.kind.regions_mut() {
                self.region(inner);
            }
            let results = inst.results.clone();
            out.push(inst);
            for result in results {
                self.check(result, &mut out);
            }
        }
        region.insts = out;
    }
}

/// The kernel with checks, and how many.
fn with_checks(kernel: &Kernel, ranges: &Ranges) -> (Kernel, u64) {
    let mut kernel = kernel.clone();
    let mut checks = Checks {
        ranges,
        values: std::mem::take(&mut kernel.values),
        flag: Memory::Param(kernel.params.len() as u32),
        count: 0,
    };
    kernel.params.push(Param {
        name: "flag".into(),
        kind: ParamKind::Buffer {
            access: Access::Write,
            element: Scalar::U32.into(),
        },
        span: Span::NONE,
    });
    checks.region(&mut kernel.body);
    kernel.values = checks.values;
    let count = checks.count;
    kernel.renumber();
    (kernel, count)
}

#[test]
fn no_value_of_a_random_kernel_leaves_its_range() {
    let mut checks = 0;
    for seed in 0..400 {
        let case = generate(seed, &Options::default());
        let threads = match case.dispatch.grid {
            invar_interp::Grid::Threads(n) => n,
            invar_interp::Grid::Threadgroups(n) => {
                std::array::from_fn(|d| n[d] * case.dispatch.threadgroup[d])
            }
        };
        let known = Known {
            threadgroup_size: Some(case.dispatch.threadgroup),
            threads: Some(threads),
        };
        let ranges = analyse(case.kernel(), &known);
        let (kernel, count) = with_checks(case.kernel(), &ranges);
        checks += count;
        let mut args = case.args().unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        args.push(invar_interp::Arg::zeros(4));
        let mut module = case.module.clone();
        module.kernels[0] = kernel;
        let module = verify(module).and_then(|m| m.specialise(&case.constants));
        let module = module.unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let options = invar_interp::Options::default();
        invar_interp::run(
            &module,
            "random",
            &case.dispatch,
            &mut args,
            &options,
            &mut [],
        )
        .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let flag = args.last().map(|arg| arg.bytes().to_vec());
        assert_eq!(flag, Some(vec![0; 4]), "seed {seed}: {}", *module);
    }
    assert!(checks > 10_000, "only {checks} checks");
}

/// The range of the value of that name.
fn range(text: &str, name: &str, known: &Known) -> Option<Range> {
    let module = text::parse("k.inv", text).and_then(verify);
    let module = module.unwrap_or_else(|e| panic!("{e}"));
    let kernel = &module.kernels[0];
    let at = kernel
        .values
        .iter()
        .position(|v| v.name.as_deref() == Some(name));
    analyse(kernel, known).of(Value(at.expect("the value") as u32))
}

const TEXT: &str = "kernel @k(%x: device read_write u32, %n: u32, %s: i32) {
    %t = thread_position_in_threadgroup x
    %g = thread_position_in_grid x
    %zero = const u32 0
    %one = const u32 1
    %hundred = const u32 100
    %twice = add %t, %t
    %wraps = add %n, %one
    %small = rem %n, %hundred
    %signed = const i32 -7
    %rest = rem %s, %signed
    %inside = lt %n, %hundred
    %result = if %inside {
        %next = add %n, %one
        yield %next
    } else {
        %above = sub %n, %hundred
        yield %hundred
    }
    for %i = %zero to %small step %one {
        %j = add %i, %i
        store %x[%j], %above_all
    }
    store %x[%g], %twice
}";

#[test]
fn guards_loops_and_sizes_are_found() {
    let text = TEXT.replace("%above_all", "%result");
    let known = Known {
        threadgroup_size: Some([64, 2, 1]),
        threads: Some([1000, 2, 1]),
    };
    let whole = i128::from(u32::MAX);
    for (name, expected) in [
        ("t", (0, 63)),
        ("g", (0, 999)),
        ("twice", (0, 126)),
        ("wraps", (0, whole)),
        ("small", (0, 99)),
        ("rest", (-6, 6)),
        ("next", (1, 100)),
        ("above", (0, whole - 100)),
        ("result", (1, 100)),
        ("i", (0, 98)),
        ("j", (0, 196)),
    ] {
        assert_eq!(range(&text, name, &known), Some(expected), "{name}");
    }
    // Without sizes, what the model says of positions is left.
    assert_eq!(range(&text, "g", &Known::default()), Some((0, whole - 1)));
    assert_eq!(range(&text, "t", &Known::default()), Some((0, whole)));
}

#[test]
fn a_product_of_wide_numbers_is_anything() {
    let text = "kernel @k(%y: device write u64) {
    %most = const u64 18446744073709551615
    %square = mul %most, %most
    %zero = const u32 0
    store %y[%zero], %square
}";
    let whole = (0, i128::from(u64::MAX));
    assert_eq!(range(text, "square", &Known::default()), Some(whole));
}
