//! Guards that decide nothing: a condition that holds wherever what it chose is used.
//!
//! ```text
//! v = if i < n { load a[i] } else { 0 }; ... if i < n { store f(v) }   ->   v = load a[i]; ... if i < n { store f(v) }
//! ```
//!
//! This is for kernels for any size, which ask in each place whether they are inside: of a row, of a column, of both.
//! Where they are not, what they compute goes nowhere, and a load out of bounds gives 0 (B1).
//!
//! A condition is a comparison of two integers that a thread has for its whole life: computed from where it stands and
//! from parameters. Each value is used under some: those around each effect that it reaches, through operations,
//! loads, `if`s and loops. An `if` or `select` without effects asks for none under which all its results are used.
//! What is compared the other way round, or must not hold, counts as what it is.
//!
//! Deliberately absent: conditions that a thread may find changed, such as those of loops' indices; effects, which keep
//! their guards; what `loop`s carry.

use std::collections::HashMap;

use invar_ir::ops::Meaning;
use invar_ir::{
    Const, Imm, Inst, InstKind, Kernel, Memory, Op, ParamKind, Region, Scalar, Span, Type, Value,
    ValueInfo,
};

use super::common::{push_const, push_inst, yielded};

/// A set of conditions: each comparison has two, that it holds and that it does not.
type Conditions = u64;
const ALL: Conditions = u64::MAX;
const MOST_COMPARISONS: u32 = 32;

const BOOL: Type = Type::Scalar(Scalar::Bool);

pub(super) fn run(kernel: &mut Kernel) {
    let mut alike = Alike::of(kernel);
    alike.conditions(&kernel.body);
    if alike.bits.is_empty() {
        return;
    }
    let mut walk = Walk {
        under: vec![ALL; kernel.values.len()],
        alike: &alike,
    };
    walk.region(&kernel.body, 0);
    let mut change = Change {
        values: &mut kernel.values,
        under: &walk.under,
        alike: &alike,
    };
    let mut body = std::mem::take(&mut kernel.body);
    change.region(&mut body, 0);
    kernel.body = body;
}

// ---- conditions ----

/// Which values are alike: computed by the same from the same.
#[derive(Default)]
struct Alike {
    numbers: HashMap<Value, u32>,
    computed: HashMap<Computed, u32>,
    /// By number: a thread has one such value for its whole life, and whether it depends on the dispatch.
    fixed: Vec<Option<Place>>,
    comparisons: HashMap<Value, Comparison>,
    /// What `and`s are of.
    both: HashMap<Value, [Value; 2]>,
    /// The bit of a comparison that holds; that it does not has the next one.
    bits: HashMap<[u32; 2], u32>,
}

#[derive(PartialEq, Eq, Hash)]
enum Computed {
    Const(Const),
    Length(Memory),
    Op(Op, Imm, Type, Vec<u32>),
}

/// What a value that a thread has for its whole life depends on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// On where the thread stands in its threadgroup, at most.
    Threadgroup,
    /// On the dispatch, or where it stands in the grid.
    Grid,
}

/// That a number is less than another, or that it is not.
#[derive(Clone, Copy)]
struct Comparison {
    numbers: [u32; 2],
    less: bool,
}

impl Alike {
    fn of(kernel: &Kernel) -> Alike {
        let mut alike = Alike::default();
        for param in &kernel.params {
            if let ParamKind::Scalar { value } = param.kind {
                let number = alike.another(Some(Place::Grid));
                alike.numbers.insert(value, number);
            }
        }
        // In the order of a kernel's instructions, so that operands come first.
        kernel.for_each_inst(&mut |inst| alike.inst(kernel, inst));
        alike
    }

    fn another(&mut self, fixed: Option<Place>) -> u32 {
        self.fixed.push(fixed);
        self.fixed.len() as u32 - 1
    }

    fn number(&mut self, value: Value) -> u32 {
        if let Some(number) = self.numbers.get(&value) {
            return *number;
        }
        let number = self.another(None);
        self.numbers.insert(value, number);
        number
    }

    fn inst(&mut self, kernel: &Kernel, inst: &Inst) {
        let Some(result) = inst.results.first() else {
            return;
        };
        let (computed, fixed) = match &inst.kind {
            InstKind::Const(constant) => (Computed::Const(*constant), Some(Place::Threadgroup)),
            InstKind::BufferLength(memory) => (Computed::Length(*memory), Some(Place::Grid)),
            InstKind::Op { op, imm, args } => {
                let numbers: Vec<u32> = args.iter().map(|arg| self.number(*arg)).collect();
                let fixed = match op.row().meaning {
                    Meaning::Query => match op {
                        Op::ThreadPositionInThreadgroup | Op::ThreadIndexInThreadgroup => {
                            Some(Place::Threadgroup)
                        }
                        _another => Some(Place::Grid),
                    },
                    Meaning::Lanes(..) => return,
                    Meaning::Eval(_) | Meaning::Arrange | Meaning::Expand(_) => {
                        let of = numbers.iter().map(|n| self.fixed[*n as usize]);
                        of.collect::<Option<Vec<_>>>()
                            .map(|of| of.into_iter().max().unwrap_or(Place::Threadgroup))
                    }
                };
                self.condition(kernel, *op, args, &numbers, *result);
                (Computed::Op(*op, *imm, kernel.ty(*result), numbers), fixed)
            }
            _another => return,
        };
        let number = match self.computed.get(&computed) {
            Some(number) => *number,
            None => {
                let number = self.another(fixed);
                self.computed.insert(computed, number);
                number
            }
        };
        self.numbers.insert(*result, number);
    }

    /// What a condition says.
    fn condition(&mut self, kernel: &Kernel, op: Op, args: &[Value], of: &[u32], result: Value) {
        if kernel.ty(result) != BOOL {
            return;
        }
        if let (Op::And, [a, b]) = (op, args) {
            self.both.insert(result, [*a, *b]);
        }
        let [a, b] = *of else {
            return;
        };
        let (numbers, less) = match op {
            Op::Lt => ([a, b], true),
            Op::Gt => ([b, a], true),
            Op::Ge => ([a, b], false),
            Op::Le => ([b, a], false),
            _no_order => return,
        };
        let is_integer = kernel.ty(args[0]).scalar().is_some_and(Scalar::is_integer);
        let places = numbers.map(|n| self.fixed[n as usize]);
        if is_integer && !places.contains(&None) && places.contains(&Some(Place::Grid)) {
            self.comparisons
                .insert(result, Comparison { numbers, less });
        }
    }

    /// Gives bits to the comparisons of `if`s and `select`s.
    fn conditions(&mut self, region: &Region) {
        for inst in &region.insts {
            if let Some(condition) = chooses(inst) {
                for part in self.parts(condition) {
                    let next = self.bits.len() as u32;
                    if let Some(Comparison { numbers, .. }) = self.comparisons.get(&part)
                        && next < MOST_COMPARISONS
                    {
                        self.bits.entry(*numbers).or_insert(2 * next);
                    }
                }
            }
            for inner in inst.kind.regions() {
                self.conditions(inner);
            }
        }
    }

    /// What all holds where a condition does.
    fn parts(&self, condition: Value) -> Vec<Value> {
        match self.both.get(&condition) {
            Some([a, b]) => [*a, *b].map(|part| self.parts(part)).concat(),
            None => vec![condition],
        }
    }

    /// The condition that a value is; none that has no bit.
    fn bit(&self, part: Value) -> Conditions {
        let Some(comparison) = self.comparisons.get(&part) else {
            return 0;
        };
        let bit = self.bits.get(&comparison.numbers);
        bit.map_or(0, |bit| 1 << (bit + u32::from(!comparison.less)))
    }

    /// The conditions that hold behind an instruction, since a thread for which they do not has returned.
    fn behind(&self, inst: &Inst) -> Conditions {
        let InstKind::If {
            condition,
            then,
            otherwise,
        } = &inst.kind
        else {
            return 0;
        };
        let returns =
            |r: &Region| matches!(r.insts.last().map(|i| &i.kind), Some(InstKind::Return));
        let [holds, not] = self.sides(*condition);
        let behind = |left: bool, conditions| if left { conditions } else { 0 };
        behind(returns(then), not) | behind(returns(otherwise), holds)
    }

    /// The conditions that hold where a value does, and where it does not.
    fn sides(&self, condition: Value) -> [Conditions; 2] {
        let parts = self.parts(condition);
        let holds = parts.iter().fold(0, |all, part| all | self.bit(*part));
        let not = match (&*parts, self.comparisons.get(&condition)) {
            ([_alone], Some(comparison)) => {
                let bit = self.bits.get(&comparison.numbers);
                bit.map_or(0, |bit| 1 << (bit + u32::from(comparison.less)))
            }
            _several => 0,
        };
        [holds, not]
    }
}

/// What decides between the results of an `if` or `select` without effects.
fn chooses(inst: &Inst) -> Option<Value> {
    match &inst.kind {
        InstKind::If { condition, .. } if !inst.results.is_empty() && is_quiet(inst) => {
            Some(*condition)
        }
        InstKind::Op {
            op: Op::Select,
            args,
            ..
        } => Some(args[2]),
        _another => None,
    }
}

/// Whether an instruction, with its regions, only computes results, in no loop: nobody knows how long one would run
/// where the author had none.
fn is_quiet(inst: &Inst) -> bool {
    let own = match &inst.kind {
        InstKind::If { .. } | InstKind::Yield(_) => true,
        flat => flat.is_removable() && flat.meets().is_none() && flat.regions().is_empty(),
    };
    own && (inst.kind.regions().iter()).all(|region| region.insts.iter().all(is_quiet))
}

// ---- where values are used ----

struct Walk<'a> {
    /// The conditions under which each value is used at most.
    under: Vec<Conditions>,
    alike: &'a Alike,
}

impl Walk<'_> {
    fn of(&self, values: &[Value]) -> Conditions {
        values
            .iter()
            .fold(ALL, |all, v| all & self.under[v.0 as usize])
    }

    /// A value is used under these conditions.
    fn used(&mut self, value: Value, conditions: Conditions) {
        self.under[value.0 as usize] &= conditions;
    }

    /// A region that is run under these conditions; what it yields has been seen to by who holds it.
    fn region(&mut self, region: &Region, around: Conditions) {
        let mut known = around;
        let arounds = region.insts.iter().map(|inst| {
            let here = known;
            known |= self.alike.behind(inst);
            here
        });
        let arounds: Vec<Conditions> = arounds.collect();
        for (inst, around) in region.insts.iter().zip(arounds).rev() {
            self.inst(inst, around);
        }
    }

    fn inst(&mut self, inst: &Inst, around: Conditions) {
        match &inst.kind {
            InstKind::Yield(_) => {}
            InstKind::If {
                condition,
                then,
                otherwise,
            } => {
                let sides = self.alike.sides(*condition);
                for (side, region) in [then, otherwise].into_iter().enumerate() {
                    for (value, result) in yielded(region).unwrap_or(&[]).iter().zip(&inst.results)
                    {
                        let conditions = self.of(&[*result]);
                        self.used(*value, conditions | around | sides[side]);
                    }
                    self.region(region, around | sides[side]);
                }
                let all = if is_quiet(inst) {
                    self.of(&inst.results)
                } else {
                    0
                };
                self.used(*condition, all | around);
            }
            InstKind::For {
                lower,
                upper,
                step,
                init,
                body,
            } => {
                // Each time fewer conditions are left, so that this ends.
                loop {
                    let carried = &body.params[1..];
                    let before = carried.iter().map(|v| self.of(&[*v])).collect::<Vec<_>>();
                    let next = yielded(body).unwrap_or(&[]);
                    for ((value, result), param) in next.iter().zip(&inst.results).zip(carried) {
                        let conditions = self.of(&[*result, *param]);
                        self.used(*value, conditions | around);
                    }
                    self.region(body, around);
                    if carried.iter().map(|v| self.of(&[*v])).eq(before) {
                        break;
                    }
                }
                for ((value, result), param) in
                    init.iter().zip(&inst.results).zip(&body.params[1..])
                {
                    let conditions = self.of(&[*result, *param]);
                    self.used(*value, conditions | around);
                }
                for bound in [lower, upper, step] {
                    self.used(*bound, around);
                }
            }
            InstKind::Loop { init, body } => {
                init.iter().for_each(|value| self.used(*value, around));
                for value in yielded(body).unwrap_or(&[]) {
                    self.used(*value, around);
                }
                self.region(body, around);
            }
            flat => {
                let exchanges = matches!(
                    flat.as_op().map(|(op, ..)| op.row().meaning),
                    Some(Meaning::Lanes(..))
                );
                let quiet = flat.is_removable() && flat.meets().is_none() && !exchanges;
                let conditions = if quiet { self.of(&inst.results) } else { 0 };
                flat.for_each_use(|value| self.under[value.0 as usize] &= conditions | around);
            }
        }
    }
}

// ---- doing it ----

struct Change<'a> {
    values: &'a mut Vec<ValueInfo>,
    under: &'a [Conditions],
    alike: &'a Alike,
}

impl Change<'_> {
    fn region(&mut self, region: &mut Region, mut around: Conditions) {
        for mut inst in std::mem::take(&mut region.insts) {
            let behind = self.alike.behind(&inst);
            let [holds, not] = match &inst.kind {
                InstKind::If { condition, .. } => self.alike.sides(*condition),
                _no_sides => [0, 0],
            };
            if let Some(condition) = chooses(&inst) {
                let all = inst
                    .results
                    .iter()
                    .fold(ALL, |all, v| all & self.under[v.0 as usize]);
                let known = all | around;
                if let Some(rest) = self.without(condition, known, inst.span, &mut region.insts) {
                    match &mut inst.kind {
                        InstKind::If { condition, .. } => *condition = rest,
                        InstKind::Op { args, .. } => args[2] = rest,
                        _neither => {}
                    }
                }
            }
            match &mut inst.kind {
                InstKind::If {
                    then, otherwise, ..
                } => {
                    self.region(then, around | holds);
                    self.region(otherwise, around | not);
                }
                other => {
                    for inner in other.regions_mut() {
                        self.region(inner, around);
                    }
                }
            }
            around |= behind;
            region.insts.push(inst);
        }
    }

    /// A condition without the parts that are known; none if none are.
    fn without(
        &mut self,
        condition: Value,
        known: Conditions,
        span: Span,
        out: &mut Vec<Inst>,
    ) -> Option<Value> {
        let parts = self.alike.parts(condition);
        let open = |part: &&Value| self.alike.bit(**part) & known == 0;
        let rest: Vec<Value> = parts.iter().filter(open).copied().collect();
        if rest.len() == parts.len() {
            return None;
        }
        let yes = Const {
            scalar: Scalar::Bool,
            bits: 1,
        };
        let Some((first, others)) = rest.split_first() else {
            return Some(push_const(self.values, out, yes, span));
        };
        let and = |all: Value, part: &Value| {
            let kind = InstKind::Op {
                op: Op::And,
                imm: Imm::None,
                args: [all, *part].into_iter().collect(),
            };
            push_inst(self.values, out, kind, BOOL, span)
        };
        Some(others.iter().fold(*first, and))
    }
}
