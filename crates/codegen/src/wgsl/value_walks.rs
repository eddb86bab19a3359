//! How far a driver follows values.
//!
//! Of whatever decides a branch, and of what loops count from and by, Mesa's compilers ask whether it comes
//! of constants and uniforms alone. They go through the operands of each operation for it, through a value's
//! again at each of its uses: below a number that was squared thirty times there are 2^30 operands. So a value
//! from which the walk is long is written as one of two, of which a workgroup's number decides: whichever walk
//! comes to it ends there.
//!
//! The steps are counted as if every operation had one instruction, or so many as its code in WGSL may use an
//! operand times. The driver may have written out the iterations of a loop, and may know what memory holds; so what
//! comes from there counts for so much that one use of it is short and two are long: nothing doubles from iteration
//! to iteration. In a written out iteration it also knows which way branches go, and what is multiplied by 0: there an
//! operand that varies may be gone. So it ends the walk only where all operands of integers vary. Of floats one
//! is enough, though those beside it may come first: each operation's code is long, and seldom decides branches.
//! A quotient of 64 bits is long whatever it is of: its code has iterations, and once they are written out the driver
//! may have found constants where this file sees what varies, but folded none of the iterations.

use std::collections::{HashMap, HashSet};

use invar_ir::ops::Meaning;
use invar_ir::{
    AddressSpace, Inst, InstKind, Kernel, Level, Memory, Op, Region, Scalar, Type, Uniformity,
    Value,
};

use super::helpers::Helper;
use super::types::{value as wgsl_type, zero};
use super::writer::Writer;

/// Steps whose cost is negligible.
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

/// A quotient, or a rest, of 64 bits: 32 iterations that the driver writes out, each of which uses the rest twice.
const QUOTIENT: Walk = Walk {
    steps: 1 << 32,
    uniform: true,
};

/// The values of a kernel from which a walk would be long, each of which ends it.
pub(super) fn long(kernel: &Kernel, uniformity: &Uniformity) -> HashSet<Value> {
    let mut measure = Measure {
        kernel,
        uniformity,
        walks: HashMap::new(),
        long: HashSet::new(),
    };
    measure.region(&kernel.body);
    measure.long
}

struct Measure<'a> {
    kernel: &'a Kernel,
    uniformity: &'a Uniformity,
    walks: HashMap<Value, Walk>,
    long: HashSet<Value>,
}

impl Measure<'_> {
    fn region(&mut self, region: &Region) {
        for inst in &region.insts {
            let walks = self.inst(inst);
            for (value, mut walk) in inst.results.iter().copied().zip(walks) {
                if walk.steps > FEW && can_end(self.kernel.ty(value)) {
                    self.long.insert(value);
                    walk = VARYING;
                }
                self.walks.insert(value, walk);
            }
        }
    }

    /// The walks from an instruction's results.
    fn inst(&mut self, inst: &Inst) -> Vec<Walk> {
        match &inst.kind {
            InstKind::Const(_) | InstKind::FunctionConstant(_) => vec![CONSTANT],
            InstKind::BufferLength(_) => vec![UNIFORM],
            InstKind::Op { op, args, .. } => vec![self.operation(*op, args)],
            InstKind::AssertUniform { value, .. } => vec![self.any(1, std::iter::once(*value))],
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
                        self.any(1, std::iter::once(*condition).chain(given))
                    })
                    .collect()
            }
            InstKind::For {
                lower, step, body, ..
            } => {
                if let Some((index, carried)) = body.params.split_first() {
                    // It grows by as much in each iteration.
                    let index_walk = self.any(1, [*lower, *step].into_iter());
                    self.walks.insert(*index, index_walk);
                    self.iterations(carried, body);
                }
                inst.results.iter().map(|v| self.handed(*v)).collect()
            }
            InstKind::Loop { body, .. } => {
                self.iterations(&body.params, body);
                inst.results.iter().map(|v| self.handed(*v)).collect()
            }
            InstKind::Load(place) => {
                let mut known = true;
                inst.kind.for_each_use(|v| known &= self.is_same(v));
                known |= self.is_of_thread(place.memory);
                let of = |v: &Value| if known { self.handed(*v) } else { VARYING };
                inst.results.iter().map(of).collect()
            }
            _memory => vec![VARYING; inst.results.len()],
        }
    }

    fn iterations(&mut self, carried: &[Value], body: &Region) {
        for param in carried {
            self.walks.insert(*param, self.handed(*param));
        }
        self.region(body);
    }

    fn is_same(&self, value: Value) -> bool {
        self.uniformity.of(value) == Level::Grid
    }

    fn is_of_thread(&self, memory: Memory) -> bool {
        match memory {
            Memory::Alloc(i) => self.kernel.allocs[i as usize].space == AddressSpace::Thread,
            _other => false,
        }
    }

    /// The walk from what a loop carries or gives, or memory holds: long after one use, too long after two.
    fn handed(&self, value: Value) -> Walk {
        let scalar = self.kernel.ty(value).scalar();
        Walk {
            steps: FEW / 2 / if is_float(scalar) { FLOAT_USES } else { 1 },
            uniform: true,
        }
    }

    fn operation(&self, op: Op, args: &[Value]) -> Walk {
        match op.row().meaning {
            Meaning::Query => UNIFORM,
            Meaning::Lanes(..) => self.any(1, args.iter().copied()),
            Meaning::Eval(_) | Meaning::Expand(_) | Meaning::Arrange => {
                let scalar = args.first().and_then(|v| self.kernel.ty(*v).scalar());
                if is_wide_quotient(op, scalar) {
                    return QUOTIENT;
                }
                let (uses, args) = (uses(op, scalar), args.iter().copied());
                if is_float(scalar) {
                    self.all(uses, args)
                } else {
                    self.any(uses, args)
                }
            }
        }
    }

    /// The walk from what uses each of these so many times, which one of them that ends may be gone from.
    fn any(&self, uses: u64, of: impl Iterator<Item = Value> + Clone) -> Walk {
        let all = self.all(uses, of.clone());
        let goes_on = of.clone().any(|v| self.walk(v).uniform);
        if all.uniform || !goes_on {
            return all;
        }
        let steps = of.fold(0_u64, |sum, v| sum.saturating_add(self.walk(v).steps));
        Walk {
            steps: steps.saturating_mul(uses).saturating_add(1),
            uniform: true,
        }
    }

    /// The walk from what uses each of these so many times, and ends with one of them that does.
    fn all(&self, uses: u64, of: impl Iterator<Item = Value>) -> Walk {
        let (mut before, mut last) = (0_u64, None);
        for v in of {
            let walk = self.walk(v);
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

    fn walk(&self, value: Value) -> Walk {
        // Parameters have no instruction.
        self.walks.get(&value).copied().unwrap_or(UNIFORM)
    }
}

/// What a region gives for a result.
fn given(region: &Region, result: usize) -> Option<Value> {
    match &region.insts.last()?.kind {
        InstKind::Yield(values) => values.get(result).copied(),
        _leaves => None,
    }
}

/// What can be chosen between.
fn can_end(ty: Type) -> bool {
    matches!(ty, Type::Scalar(_) | Type::Vector(..) | Type::Matrix { .. })
}

fn is_float(scalar: Option<Scalar>) -> bool {
    scalar.is_some_and(Scalar::is_float)
}

fn is_wide_quotient(op: Op, scalar: Option<Scalar>) -> bool {
    matches!(op, Op::Div | Op::Rem) && scalar.is_some_and(|s| s.is_integer() && s.bits() == 64)
}

/// How many times the text of an operation on floats may use an operand.
const FLOAT_USES: u64 = 64;

/// How many times the text of an operation may use an operand, one way or another.
fn uses(op: Op, scalar: Option<Scalar>) -> u64 {
    match op {
        Op::Exp => 1 << 10,
        Op::Construct | Op::Extract => 1,
        _other if is_float(scalar) => FLOAT_USES,
        Op::Add | Op::Sub | Op::Mul | Op::And | Op::Or | Op::Xor | Op::Shl | Op::Shr => 1,
        Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Min | Op::Max => 1,
        Op::Neg | Op::Not | Op::Select | Op::Cast => 1,
        _other => 4,
    }
}

impl Writer<'_> {
    /// A value's expression, such that a driver that would follow it for long does not.
    pub(super) fn opaque(&mut self, value: Value, text: String) -> String {
        if !self.followed_long.contains(&value) {
            return text;
        }
        self.need(Helper::Elsewhere);
        let ty = self.ty(value);
        let Type::Matrix {
            scalar,
            columns,
            rows,
        } = ty
        else {
            return format!("select({text}, {}, elsewhere)", zero(ty));
        };
        let whole = self.names.unique("followed");
        self.line(format!("let {whole} = {text};"));
        let nothing = zero(Type::Vector(scalar, rows));
        let columns: Vec<String> = (0..columns)
            .map(|c| format!("select({whole}[{c}], {nothing}, elsewhere)"))
            .collect();
        format!("{}({})", wgsl_type(ty), columns.join(", "))
    }

    /// Names what a variable holds in the end, where a driver would follow it for long.
    pub(super) fn end_walk(&mut self, value: Value) {
        if self.followed_long.contains(&value) {
            let text = self.value(value);
            self.bind(value, text);
        }
    }
}
