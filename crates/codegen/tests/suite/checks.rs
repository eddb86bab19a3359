//! Random kernels that check themselves: behind every definition stands code that compares the value with what an
//! analysis says of it.

use invar_conformance::Case;
use invar_interp::{Arg, Dispatch, Grid};
use invar_ir::inst::ValueInfo;
use invar_ir::{
    Access, Const, Imm, Inst, InstKind, Kernel, Memory, Op, Param, ParamKind, Place, Region,
    Scalar, Span, Type, Value, verify,
};

/// Instructions at the end of a list.
pub struct Build<'a> {
    values: &'a mut Vec<ValueInfo>,
    out: &'a mut Vec<Inst>,
}

impl Build<'_> {
    fn inst(&mut self, kind: InstKind, ty: Type) -> Value {
        self.values.push(ValueInfo { ty, name: None });
        let value = Value(self.values.len() as u32 - 1);
        self.out.push(Inst {
            kind,
            results: [value].into_iter().collect(),
            span: Span::NONE,
        });
        value
    }

    pub fn ty(&self, value: Value) -> Type {
        self.values[value.0 as usize].ty
    }

    pub fn op(&mut self, op: Op, imm: Imm, args: &[Value], ty: Type) -> Value {
        let args = args.iter().copied().collect();
        self.inst(InstKind::Op { op, imm, args }, ty)
    }

    /// The low bits of a number as a constant.
    pub fn constant(&mut self, scalar: Scalar, bits: u64) -> Value {
        let bits = bits & (u64::MAX >> (64 - scalar.bits()));
        self.inst(
            InstKind::Const(Const { scalar, bits }),
            Type::Scalar(scalar),
        )
    }

    /// Stores 1 to element 0 of a buffer where a condition holds.
    fn flag(&mut self, condition: Value, flag: Memory) {
        let end = |mut insts: Vec<Inst>| {
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
        let mut store = Vec::new();
        let mut inner = Build {
            values: self.values,
            out: &mut store,
        };
        let zero = inner.constant(Scalar::U32, 0);
        let value = inner.constant(Scalar::U32, 1);
        store.push(Inst {
            kind: InstKind::Store {
                place: Place::element(flag, zero),
                value,
            },
            results: Default::default(),
            span: Span::NONE,
        });
        self.out.push(Inst {
            kind: InstKind::If {
                condition,
                then: end(store),
                otherwise: end(Vec::new()),
            },
            results: Default::default(),
            span: Span::NONE,
        });
    }
}

/// Gives a condition under which a value is not what is said of it, if something is.
pub type Wrong<'a> = &'a mut dyn FnMut(&mut Build<'_>, Value) -> Option<Value>;

struct Checks<'a> {
    wrong: Wrong<'a>,
    values: Vec<ValueInfo>,
    flag: Memory,
    count: u64,
}

impl Checks<'_> {
    fn check(&mut self, value: Value, out: &mut Vec<Inst>) {
        let mut build = Build {
            values: &mut self.values,
            out,
        };
        if let Some(condition) = (self.wrong)(&mut build, value) {
            build.flag(condition, self.flag);
            self.count += 1;
        }
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
fn with_checks(kernel: &Kernel, wrong: Wrong<'_>) -> (Kernel, u64) {
    let mut kernel = kernel.clone();
    let mut checks = Checks {
        wrong,
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
        binding: None,
        span: Span::NONE,
    });
    checks.region(&mut kernel.body);
    kernel.values = checks.values;
    let count = checks.count;
    kernel.renumber();
    (kernel, count)
}

/// The threads of a dispatch.
pub fn threads(dispatch: &Dispatch) -> [u32; 3] {
    match dispatch.grid {
        Grid::Threads(n) => n,
        Grid::Threadgroups(n) => std::array::from_fn(|d| n[d] * dispatch.threadgroup[d]),
    }
}

/// Runs a random kernel with checks, none of which may fail. Gives their number.
pub fn check(seed: u64, case: &Case, wrong: Wrong<'_>) -> u64 {
    let (kernel, count) = with_checks(case.kernel(), wrong);
    let mut args = case.args().unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    args.push(Arg::zeros(4));
    let mut module = case.module.clone();
    module.kernels[0] = kernel;
    let module = verify(module).and_then(|m| m.specialise(&case.constants));
    let module = module.unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    let options = invar_interp::Options::default();
    let name = "random";
    invar_interp::run(&module, name, &case.dispatch, &mut args, &options, &mut [])
        .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    let flag = args.last().map(|arg| arg.bytes().to_vec());
    assert_eq!(flag, Some(vec![0; 4]), "seed {seed}: {}", *module);
    count
}
