//! How far a driver follows what a loop counts from, and what it counts by.
//!
//! Mesa's compilers ask of both whether they come of constants and uniforms alone. They go through the
//! operands of each operation for it, through a value's again at each of its uses: below a number that was
//! squared thirty times there are 2^30 operands. What takes many steps is given to a loop such that the first
//! step ends it: as one of two values, of which a workgroup's number decides.
//!
//! The steps are counted as if every operation had one instruction, or so many as its code in WGSL may use an
//! operand times. An operand that varies ends the walk, but those beside it may come first.

use std::collections::{HashMap, HashSet};

use invar_ir::ops::Meaning;
use invar_ir::{Inst, InstKind, Kernel, Op, Region, Scalar, Type, Value};

use super::Writer;
use super::types::zero;

/// Steps that take no time to speak of.
const FEW: u64 = 1 << 10;

/// The walk from a value.
#[derive(Clone, Copy)]
struct Walk {
    steps: u64,
    /// Whether it comes to no operand that ends it.
    uniform: bool,
}

const CONSTANT: Walk = Walk {
    steps: 0,
    uniform: true,
};
/// A parameter, a length, or a place, of which some vary.
const UNIFORM: Walk = Walk {
    steps: 1,
    uniform: true,
};
const VARYING: Walk = Walk {
    steps: 1,
    uniform: false,
};
/// What a loop gives: the driver may have written out its rounds.
const ROUNDS: Walk = Walk {
    steps: u64::MAX,
    uniform: true,
};

/// What a driver follows far.
#[derive(Default)]
pub(super) struct Walks {
    /// Numbers from which a walk is long.
    long: HashSet<Value>,
    /// What loops carry, also as another type or a component.
    carried: HashSet<Value>,
}

impl Walks {
    /// The walks of a kernel.
    pub(super) fn of(kernel: &Kernel) -> Walks {
        let mut measure = Measure {
            kernel,
            walks: HashMap::new(),
            carried: HashSet::new(),
        };
        measure.region(&kernel.body);
        let is_number = |v: &Value| {
            let ty = kernel.ty(*v);
            matches!(ty, Type::Scalar(_) | Type::Vector(..)) && ty.scalar() != Some(Scalar::Bool)
        };
        let long = measure.walks.iter().filter(|(_, walk)| walk.steps > FEW);
        Walks {
            long: long.map(|(v, _)| *v).filter(is_number).collect(),
            carried: measure.carried,
        }
    }
}

struct Measure<'a> {
    kernel: &'a Kernel,
    walks: HashMap<Value, Walk>,
    carried: HashSet<Value>,
}

impl Measure<'_> {
    fn region(&mut self, region: &Region) {
        for inst in &region.insts {
            let walks = self.inst(inst);
            self.walks.extend(inst.results.iter().copied().zip(walks));
        }
    }

    /// The walks from an instruction's results.
    fn inst(&mut self, inst: &Inst) -> Vec<Walk> {
        match &inst.kind {
            InstKind::Const(_) | InstKind::FunctionConstant(_) => vec![CONSTANT],
            InstKind::BufferLength(_) => vec![UNIFORM],
            InstKind::Op { op, args, .. } => {
                if let ([only], Some(result)) = (&args[..], inst.results.first())
                    && self.carried.contains(only)
                {
                    self.carried.insert(*result);
                }
                vec![self.operation(*op, args)]
            }
            InstKind::If {
                condition,
                then,
                otherwise,
            } => {
                self.region(then);
                self.region(otherwise);
                (0..inst.results.len())
                    .map(|i| {
                        let given = [then, otherwise].into_iter().filter_map(|r| given(r, i));
                        self.join(1, std::iter::once(*condition).chain(given))
                    })
                    .collect()
            }
            InstKind::For { body, .. } | InstKind::Loop { body, .. } => {
                for param in &body.params {
                    self.walks.insert(*param, VARYING);
                    self.carried.insert(*param);
                }
                self.region(body);
                vec![ROUNDS; inst.results.len()]
            }
            _memory => vec![VARYING; inst.results.len()],
        }
    }

    fn operation(&self, op: Op, args: &[Value]) -> Walk {
        match op.row().meaning {
            Meaning::Query => UNIFORM,
            Meaning::Lanes(..) => VARYING,
            Meaning::Eval(_) | Meaning::Expand(_) | Meaning::Arrange => {
                let scalar = args.first().and_then(|v| self.kernel.ty(*v).scalar());
                self.join(uses(op, scalar), args.iter().copied())
            }
        }
    }

    /// The walk from what uses each of these so many times.
    fn join(&self, uses: u64, of: impl Iterator<Item = Value>) -> Walk {
        let (mut before, mut last) = (0_u64, None);
        for v in of {
            // Parameters have no instruction.
            let walk = self.walks.get(&v).copied().unwrap_or(UNIFORM);
            if walk.uniform {
                before = before.saturating_add(walk.steps);
            } else {
                last = last.max(Some(walk.steps));
            }
        }
        let steps = before.saturating_mul(uses).saturating_add(1);
        Walk {
            steps: steps.saturating_add(last.unwrap_or(0)),
            uniform: last.is_none(),
        }
    }
}

/// What a region gives for a result.
fn given(region: &Region, result: usize) -> Option<Value> {
    match &region.insts.last()?.kind {
        InstKind::Yield(values) => values.get(result).copied(),
        _leaves => None,
    }
}

/// How many times the text of an operation may use an operand, one way or another.
fn uses(op: Op, scalar: Option<Scalar>) -> u64 {
    let is_float = scalar.is_some_and(Scalar::is_float);
    match op {
        // 32 rounds that the driver writes out, each of which uses the rest twice.
        Op::Div | Op::Rem if scalar.is_some_and(|s| s.is_integer() && s.bits() == 64) => 1 << 32,
        Op::Exp => 1 << 10,
        Op::Add | Op::Sub | Op::Mul | Op::And | Op::Or | Op::Xor if !is_float => 1,
        Op::Construct | Op::Extract | Op::Select => 1,
        _other if is_float => 64,
        _other => 4,
    }
}

impl Writer<'_> {
    /// A value of which a loop begins to count, or by which it counts.
    pub(super) fn counted(&mut self, value: Value) -> String {
        let text = self.value(value);
        if !self.walks.long.contains(&value) {
            return text;
        }
        let text = self.unfollowed(&text, &zero(self.ty(value)));
        let name = self.names.unique("counted");
        self.line(format!("let {name} = {text};"));
        name
    }

    /// The same for an operand of a sum with what a loop carries.
    pub(super) fn counts(&mut self, op: Op, args: &[Value], texts: &mut [String]) {
        let (Op::Add | Op::Sub, [a, b]) = (op, args) else {
            return;
        };
        for (text, (value, other)) in texts.iter_mut().zip([(a, b), (b, a)]) {
            if self.walks.carried.contains(other) && self.walks.long.contains(value) {
                *text = self.counted(*value);
            }
        }
    }

    /// An expression that the driver does not follow, if it follows any.
    pub(super) fn unfollowed(&mut self, text: &str, zero: &str) -> String {
        if !self.options.features.follows_uniforms {
            return text.to_string();
        }
        self.need("elsewhere");
        format!("select({text}, {zero}, elsewhere)")
    }
}
