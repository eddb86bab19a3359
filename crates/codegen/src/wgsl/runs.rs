//! Runs: instructions of one kind that follow each other but for what only computes, as loops over rows that
//! are written out leave them. One question decides for a whole run what each of its instructions would
//! ask: whether all elements are in bounds (B1, B2), or all arguments of an exponential small.
//!
//! What computes from a run's results comes after it; everything else stays in its order.

use std::collections::{HashMap, HashSet};

use invar_ir::{
    AddressSpace, ElementType, FloatMode, Inst, InstKind, Kernel, Memory, Op, Place, Region,
    Scalar, Type, Value, Width,
};

use super::Writer;
use super::body::Ending;
use super::plan::Storage;
use crate::passes::is_pure_op;

/// The fewest instructions that are a run.
const LEAST: usize = 4;

/// What a run consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Loads of whole elements of a buffer.
    Loads(Memory),
    /// Stores of whole elements to a buffer.
    Stores(Memory),
    /// Powers of e.
    Exps,
}

/// Indices that lie from `base`, or from 0, on, up to a distance.
#[derive(Clone, Copy, Debug)]
struct Reach {
    base: Option<Value>,
    most: u32,
}

/// The summands of every sum of `u32` in a kernel.
pub(super) fn sums(kernel: &Kernel) -> HashMap<Value, (Value, Value)> {
    let mut sums = HashMap::new();
    kernel.for_each_inst(&mut |inst| {
        if let InstKind::Op {
            op: Op::Add, args, ..
        } = &inst.kind
            && let ([a, b], Some(result)) = (&args[..], inst.results.first())
            && kernel.ty(*result) == Type::U32
        {
            sums.insert(*result, (*a, *b));
        }
    });
    sums
}

impl Writer<'_> {
    /// Writes the run that begins with an instruction of a region, and gives how many instructions that
    /// are: 0 if none begins there.
    pub(super) fn run(&mut self, region: &Region, at: usize, ending: &Ending) -> usize {
        let Some(kind) = self.kind(&region.insts[at]) else {
            return 0;
        };
        let mut members: Vec<&Inst> = Vec::new();
        let mut length = 0;
        let mut after: HashSet<Value> = HashSet::new();
        let mut others: Vec<(usize, &Inst, bool)> = Vec::new();
        for (i, inst) in region.insts[at..].iter().enumerate() {
            let mut waits = false;
            inst.kind.for_each_use(|v| waits |= after.contains(&v));
            let member = self.kind(inst) == Some(kind);
            if member && !waits {
                members.push(inst);
                length = i + 1;
                after.extend(inst.results.iter().copied());
                continue;
            }
            let computes = match &inst.kind {
                InstKind::Const(_) => true,
                InstKind::Op { op, .. } => is_pure_op(*op),
                _other => false,
            };
            if member || !computes {
                break;
            }
            if waits {
                after.extend(inst.results.iter().copied());
            }
            others.push((i, inst, waits));
        }
        others.retain(|(i, ..)| *i < length);
        let reach = match kind {
            Kind::Loads(memory) | Kind::Stores(memory) => self.reach(memory, &members),
            Kind::Exps => Some(Reach {
                base: None,
                most: 0,
            }),
        };
        let (Some(reach), true) = (reach, members.len() >= LEAST) else {
            return 0;
        };
        for (_, inst, waits) in &others {
            if !waits {
                self.inst(inst, ending);
            }
        }
        self.next_inst += members.len();
        self.quote(members[0].span);
        match kind {
            Kind::Loads(memory) => self.loads(memory, &members, reach),
            Kind::Stores(memory) => self.stores(memory, &members, reach),
            Kind::Exps => self.exps(&members),
        }
        for (_, inst, waits) in &others {
            if *waits {
                self.inst(inst, ending);
            }
        }
        length
    }

    fn kind(&self, inst: &Inst) -> Option<Kind> {
        match &inst.kind {
            InstKind::Load(place) if self.is_plain(place) => Some(Kind::Loads(place.memory)),
            InstKind::Store { place, .. }
                if self.is_plain(place) && !(self.surplus && !self.only_existing) =>
            {
                Some(Kind::Stores(place.memory))
            }
            InstKind::Op {
                op: Op::Exp, args, ..
            } if self.ty(args[0]) == Type::F32 && self.kernel.float_mode != FloatMode::Fast => {
                Some(Kind::Exps)
            }
            _no_member => None,
        }
    }

    /// Whether an access takes a whole element of a buffer, which is an element of its WGSL array.
    fn is_plain(&self, place: &Place) -> bool {
        let info = self.module.memory(self.kernel, place.memory);
        let of_words = info.is_some_and(|info| {
            info.space == AddressSpace::Device
                && matches!(
                    info.element,
                    ElementType::Value(Type::Scalar(Scalar::F32 | Scalar::I32 | Scalar::U32))
                )
        });
        of_words
            && place.width == Width::One
            && place.path.is_empty()
            && self.ty(place.index) == Type::U32
            && matches!(self.plan.object(place.memory).storage, Storage::Scalars(_))
    }

    /// How far the indices of loads or stores lie from the one value that all are sums with, or from 0.
    fn reach(&self, memory: Memory, members: &[&Inst]) -> Option<Reach> {
        let indices: Vec<Value> = members
            .iter()
            .filter_map(|inst| match &inst.kind {
                InstKind::Load(place) | InstKind::Store { place, .. } if place.memory == memory => {
                    Some(place.index)
                }
                _no_access => None,
            })
            .collect();
        // A range that ends with the type says nothing.
        let most = |v: Value| {
            let (_, most) = self.ranges.of(v)?;
            u32::try_from(most).ok().filter(|most| *most < u32::MAX)
        };
        let all = |distances: Vec<Value>| {
            distances
                .into_iter()
                .map(most)
                .collect::<Option<Vec<u32>>>()
                .and_then(|all| all.into_iter().max())
        };
        if let Some(most) = all(indices.clone()) {
            return Some(Reach { base: None, most });
        }
        let (a, b) = *self.sums.get(indices.first()?)?;
        [a, b].into_iter().find_map(|base| {
            let distances: Option<Vec<Value>> = indices
                .iter()
                .map(|index| match self.sums.get(index)? {
                    (x, y) if *x == base => Some(*y),
                    (x, y) if *y == base => Some(*x),
                    _other_sum => None,
                })
                .collect();
            Some(Reach {
                base: Some(base),
                most: all(distances?)?,
            })
        })
    }

    /// Begins what is done if every index is in bounds.
    fn if_inside(&mut self, memory: Memory, reach: Reach) {
        let length = self.length(memory);
        let most = reach.most;
        let condition = match reach.base {
            None => format!("{most}u < {length}"),
            // Then no sum wraps either.
            Some(base) => {
                let base = self.value(base);
                format!("{base} < max({length}, {most}u) - {most}u")
            }
        };
        self.line(format!("if ({condition}) {{"));
        self.indent += 1;
    }

    fn otherwise(&mut self) {
        self.indent -= 1;
        self.line("} else {");
        self.indent += 1;
    }

    fn end(&mut self) {
        self.indent -= 1;
        self.line("}");
    }

    fn loads(&mut self, memory: Memory, members: &[&Inst], reach: Reach) {
        let way = self.way(memory, &[]);
        let helper = self.load_helper(memory, &way);
        let array = self.memory_name(memory);
        let mut all = Vec::new();
        for inst in members {
            if let (InstKind::Load(place), Some(result)) = (&inst.kind, inst.results.first()) {
                let index = self.index(place.index);
                all.push((self.variable(*result, None), index));
            }
        }
        self.if_inside(memory, reach);
        for (name, index) in &all {
            self.line(format!("{name} = {array}[{index}];"));
        }
        self.otherwise();
        for (name, index) in &all {
            self.line(format!("{name} = {helper}({index});"));
        }
        self.end();
    }

    fn stores(&mut self, memory: Memory, members: &[&Inst], reach: Reach) {
        let way = self.way(memory, &[]);
        let helper = self.store_helper(memory, &way);
        let array = self.memory_name(memory);
        let mut all = Vec::new();
        for inst in members {
            if let InstKind::Store { place, value } = &inst.kind {
                all.push((self.index(place.index), self.value(*value)));
            }
        }
        self.if_inside(memory, reach);
        for (index, value) in &all {
            self.line(format!("{array}[{index}] = {value};"));
        }
        self.otherwise();
        for (index, value) in &all {
            self.line(format!("{helper}({index}, {value});"));
        }
        self.end();
    }

    fn exps(&mut self, members: &[&Inst]) {
        self.need("f32__exp");
        let mut all = Vec::new();
        for inst in members {
            if let (InstKind::Op { args, .. }, Some(result)) = (&inst.kind, inst.results.first()) {
                let x = self.value(args[0]);
                all.push((self.variable(*result, None), x));
            }
        }
        let largest = all
            .iter()
            .map(|(_, x)| format!("f32__magnitude({x})"))
            .reduce(|a, b| format!("max({a}, {b})"))
            .unwrap_or_default();
        self.line(format!("if ({largest} <= f32__exp_near_most) {{"));
        self.indent += 1;
        for (name, x) in &all {
            self.line(format!("{name} = f32__exp_near({x});"));
        }
        self.otherwise();
        for (name, x) in &all {
            self.line(format!("{name} = f32__exp_far({x});"));
        }
        self.end();
    }
}
