//! Evaluates one operation, written out by its expansion, on columns of operands.
//!
//! It walks the region of a kernel that does nothing but compute, with the op table's own
//! evaluators; a branch computes both sides where lanes disagree, a loop runs until the last lane
//! is done.

use invar_ir::ops::Meaning;
use invar_ir::{
    Access, Const, Imm, Inst, InstKind, Kernel, KernelBuilder, Module, Op, ParamKind, Place,
    Region, Scalar, Type, Value, expand,
};

/// For each component, one scalar's bits a lane.
#[allow(dead_code, reason = "the examples include this file too")]
pub type Columns = Vec<Vec<u64>>;

/// A kernel that computes one operation.
pub struct Function {
    kernel: Kernel,
}

impl Function {
    /// The operation on operands of these types, with everything written out that has an expansion.
    pub fn new(op: Op, imm: Imm, operands: &[Type]) -> Function {
        let mut k = KernelBuilder::new(Module::default(), op.name());
        let args: Vec<Value> = operands.iter().map(|ty| k.scalar("x", *ty)).collect();
        let result = k.op(op, imm, &args);
        let ty = k.ty(result);
        let out = k.buffer("out", Access::Write, ty);
        let zero = k.const_u32(0);
        k.store(Place::element(out, zero), result);
        let module = k.finish().expect("the operation takes these types");
        let mut module = expand::expand(module, &|_, _, _| false).expect("it has an expansion");
        Function {
            kernel: module.kernels.remove(0),
        }
    }

    /// How many operations it takes, without constants, and those in branches and loops apart.
    pub fn operation_count(&self) -> (usize, usize) {
        let (mut all, mut straight) = (0, 0);
        let counts = |inst: &Inst| matches!(inst.kind, InstKind::Op { op, .. } if op != Op::AsType);
        self.kernel
            .for_each_inst(&mut |inst| all += usize::from(counts(inst)));
        for inst in &self.kernel.body.insts {
            straight += usize::from(counts(inst));
        }
        (straight, all - straight)
    }
}

/// Evaluates a function again and again in the same memory.
#[allow(dead_code, reason = "used by the example that includes this file")]
pub struct Evaluator<'f> {
    function: &'f Function,
    values: Vec<Columns>,
    lanes: usize,
    result: Value,
}

#[allow(dead_code, reason = "used by the example that includes this file")]
impl<'f> Evaluator<'f> {
    pub fn new(function: &'f Function, lanes: usize) -> Evaluator<'f> {
        let shape = |ty: Type| vec![vec![0; lanes]; ty.component_count() as usize];
        let kernel = &function.kernel;
        Evaluator {
            function,
            values: kernel.values.iter().map(|info| shape(info.ty)).collect(),
            lanes,
            result: Value(0),
        }
    }

    /// The columns of operand number `index`, to fill.
    pub fn operand(&mut self, index: usize) -> &mut Columns {
        let ParamKind::Scalar { value } = self.function.kernel.params[index].kind else {
            panic!("operands come first");
        };
        &mut self.values[value.0 as usize]
    }

    /// The result for the operands that are there.
    pub fn run(&mut self) -> &Columns {
        self.region(&self.function.kernel.body);
        &self.values[self.result.0 as usize]
    }

    fn column(&self, value: Value) -> &Columns {
        &self.values[value.0 as usize]
    }

    /// Gives what the region yields.
    fn region(&mut self, region: &'f Region) -> &'f [Value] {
        for inst in &region.insts {
            match &inst.kind {
                InstKind::Const(Const { bits, .. }) => self.set(inst.results[0], |column| {
                    column.fill(*bits);
                }),
                InstKind::Op { op, imm, args } => self.op(*op, *imm, args, inst.results[0]),
                InstKind::If {
                    condition,
                    then,
                    otherwise,
                } => self.branch(*condition, then, otherwise, &inst.results),
                InstKind::For {
                    lower,
                    upper,
                    step,
                    init,
                    body,
                } => self.count([*lower, *upper, *step], init, body, &inst.results),
                InstKind::Store { value, .. } => self.result = *value,
                InstKind::Yield(values) => return values,
                InstKind::Return => return &[],
                other => panic!("an expansion has no {other:?}"),
            }
        }
        &[]
    }

    fn set(&mut self, value: Value, mut f: impl FnMut(&mut Vec<u64>)) {
        self.values[value.0 as usize].iter_mut().for_each(&mut f);
    }

    fn op(&mut self, op: Op, imm: Imm, args: &[Value], result: Value) {
        let mut out = std::mem::take(&mut self.values[result.0 as usize]);
        match (op.row().meaning, imm) {
            (Meaning::Eval(evaluate), _) => {
                let scalar = |value: Value| self.function.kernel.ty(value).scalar();
                let (from, to) = (scalar(args[0]), scalar(result));
                let (from, to) = (from.expect("scalars"), to.expect("scalars"));
                for (k, column) in out.iter_mut().enumerate() {
                    // A scalar condition serves all components of a `select`.
                    let part = |v: &Value| {
                        let columns = self.column(*v);
                        columns[k.min(columns.len() - 1)].as_slice()
                    };
                    let parts: [&[u64]; 3] = std::array::from_fn(|i| match args.get(i) {
                        Some(arg) => part(arg),
                        None => &[],
                    });
                    evaluate(from, to, &parts[..args.len()], column);
                }
            }
            (Meaning::Arrange, _) if op == Op::AsType => out.clone_from(self.column(args[0])),
            (Meaning::Arrange, _) if op == Op::Extract => {
                let index = self.column(args[1])[0][0] as usize;
                out[0].clone_from(&self.column(args[0])[index]);
            }
            (Meaning::Arrange, _) if op == Op::Construct => {
                for (k, column) in out.iter_mut().enumerate() {
                    column.clone_from(&self.column(args[k.min(args.len() - 1)])[0]);
                }
            }
            _ => panic!("an expansion has no `{op}`"),
        }
        self.values[result.0 as usize] = out;
    }

    fn branch(
        &mut self,
        condition: Value,
        then: &'f Region,
        otherwise: &'f Region,
        results: &[Value],
    ) {
        let taken = self.column(condition)[0].clone();
        let sides = [
            (otherwise, taken.contains(&0)),
            (then, taken.iter().any(|&t| t != 0)),
        ];
        for (side, (region, wanted)) in sides.into_iter().enumerate() {
            if wanted {
                let yields = self.region(region);
                self.assign(yields, results, |lane| taken[lane] as usize == side);
            }
        }
    }

    fn count(
        &mut self,
        [lower, upper, step]: [Value; 3],
        init: &[Value],
        body: &'f Region,
        results: &[Value],
    ) {
        let signed = |this: &Self, value: Value, lane: usize| {
            let bits = this.column(value)[0][lane];
            match this.function.kernel.ty(value).scalar() {
                Some(Scalar::I32) => i64::from(bits as i32),
                Some(Scalar::I64) => bits as i64,
                other => panic!("an expansion counts in {other:?}"),
            }
        };
        let carried = &body.params[1..];
        self.assign(init, carried, |_| true);
        let mut index: Vec<i64> = (0..self.lanes).map(|l| signed(self, lower, l)).collect();
        let (end, by) = (signed(self, upper, 0), signed(self, step, 0));
        let running = |i: i64| if by > 0 { i < end } else { i > end };
        while index.iter().any(|&i| running(i)) {
            let yields = self.region(body);
            self.assign(yields, carried, |lane| running(index[lane]));
            for i in &mut index {
                *i = if running(*i) { *i + by } else { *i };
            }
        }
        self.assign(carried, results, |_| true);
    }

    /// Copies values in those lanes.
    fn assign(&mut self, from: &[Value], to: &[Value], lanes: impl Fn(usize) -> bool) {
        // All are read before one is written: a value may be carried into another's place.
        let columns: Vec<Columns> = from.iter().map(|v| self.column(*v).clone()).collect();
        for (to, from) in to.iter().zip(columns) {
            for (to, from) in self.values[to.0 as usize].iter_mut().zip(from) {
                for (lane, (to, from)) in to.iter_mut().zip(from).enumerate() {
                    if lanes(lane) {
                        *to = from;
                    }
                }
            }
        }
    }
}
