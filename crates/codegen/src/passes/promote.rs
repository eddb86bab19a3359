//! Promotion: a thread array whose every access names one element by a constant index becomes values,
//! carried through `if`s and loops. What is out of bounds loads 0 and stores nothing (B1, B2).
//!
//! Each element is a variable; the walk keeps its current value. An `if` yields what either side has
//! stored, a loop carries what its body stores.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use invar_ir::{
    AddressSpace, Const, ElementType, Imm, Inst, InstKind, Kernel, Memory, Op, Place, Region, Span,
    Type, Value, Values, Width,
};

use super::common::{Map, constants, integer, new_value, push_const, resolve, substitute};
use crate::tuning::PROMOTED_ELEMENTS;

/// An element of a promoted array.
type Variable = (u32, u32);

pub(super) fn run(kernel: &mut Kernel) {
    let constants = constants(kernel);
    let arrays = promotable(kernel, &constants);
    if arrays.is_empty() {
        return;
    }
    let mut body = std::mem::take(&mut kernel.body);
    let mut promote = Promote {
        kernel,
        constants,
        arrays,
        map: Map::new(),
        current: BTreeMap::new(),
        loops: Vec::new(),
    };
    promote.region(&mut body);
    kernel.body = body;
}

/// Arrays of scalars or vectors that are loaded and stored by constant indices only, with the type of
/// their elements.
fn promotable(kernel: &Kernel, constants: &HashMap<Value, Const>) -> HashMap<u32, Type> {
    let mut arrays = HashMap::new();
    for (i, alloc) in kernel.allocs.iter().enumerate() {
        if let ElementType::Value(ty @ (Type::Scalar(_) | Type::Vector(..))) = alloc.element
            && alloc.space == AddressSpace::Thread
            && alloc.length <= PROMOTED_ELEMENTS
        {
            arrays.insert(i as u32, ty);
        }
    }
    kernel.for_each_inst(&mut |inst| {
        let simple = |place: &Place| {
            place.width == Width::One
                && place.path.is_empty()
                && constants.contains_key(&place.index)
        };
        let mut kind = inst.kind.clone();
        let fine = match &inst.kind {
            InstKind::Load(place) | InstKind::Store { place, .. } => simple(place),
            InstKind::Alloc(_) => true,
            _names_it_otherwise => false,
        };
        if !fine {
            kind.for_each_memory_mut(|memory| {
                if let Memory::Alloc(id) = memory {
                    arrays.remove(id);
                }
            });
        }
    });
    arrays
}

struct Promote<'a> {
    kernel: &'a mut Kernel,
    constants: HashMap<Value, Const>,
    /// Promoted arrays and the types of their elements.
    arrays: HashMap<u32, Type>,
    map: Map,
    /// The value of each variable in scope.
    current: BTreeMap<Variable, Value>,
    /// Of each loop around, outermost first, the variables that it carries.
    loops: Vec<Vec<Variable>>,
}

impl Promote<'_> {
    fn region(&mut self, region: &mut Region) {
        let old = std::mem::take(&mut region.insts);
        for inst in old {
            self.inst(inst, &mut region.insts);
        }
    }

    /// The variable that a place names; none if it is out of bounds.
    fn variable(&self, place: &Place) -> Option<Option<Variable>> {
        let Memory::Alloc(id) = place.memory else {
            return None;
        };
        self.arrays.get(&id)?;
        let index = integer(*self.constants.get(&place.index)?)?;
        let length = self.kernel.allocs[id as usize].length;
        let inside = (0..i128::from(length)).contains(&index);
        Some(inside.then_some((id, index as u32)))
    }

    fn zero(&mut self, ty: Type, span: Span, out: &mut Vec<Inst>) -> Value {
        let Some(scalar) = ty.scalar() else {
            unreachable!("only scalars and vectors are promoted");
        };
        let values = &mut self.kernel.values;
        let zero = push_const(values, out, Const { scalar, bits: 0 }, span);
        if let Type::Scalar(_) = ty {
            return zero;
        }
        let value = new_value(values, ty);
        out.push(Inst {
            kind: InstKind::Op {
                op: Op::Construct,
                imm: Imm::Type(ty),
                args: Values::from_slice(&[zero]),
            },
            results: [value].into_iter().collect(),
            span,
        });
        value
    }

    fn inst(&mut self, inst: Inst, out: &mut Vec<Inst>) {
        let mut inst = inst;
        substitute(&self.map, &mut inst.kind);
        let span = inst.span;
        match &mut inst.kind {
            InstKind::Alloc(id) if self.arrays.contains_key(id) => {
                let (id, ty) = (*id, self.arrays[id]);
                let zero = self.zero(ty, span, out);
                for index in 0..self.kernel.allocs[id as usize].length {
                    self.current.insert((id, index), zero);
                }
                return;
            }
            InstKind::Load(place) => match self.variable(place) {
                Some(Some(variable)) => {
                    let value = self.current[&variable];
                    self.map.insert(inst.results[0], value);
                    return;
                }
                Some(None) => {
                    let ty = self.kernel.ty(inst.results[0]);
                    let zero = self.zero(ty, span, out);
                    self.map.insert(inst.results[0], zero);
                    return;
                }
                None => {}
            },
            InstKind::Store { place, value } => match self.variable(place) {
                Some(Some(variable)) => {
                    let value = resolve(&self.map, *value);
                    self.current.insert(variable, value);
                    return;
                }
                Some(None) => return,
                None => {}
            },
            InstKind::If { .. } => {
                self.if_(inst, out);
                return;
            }
            InstKind::For { .. } | InstKind::Loop { .. } => {
                self.loop_(inst, out);
                return;
            }
            InstKind::Break(values) | InstKind::Continue(values) => {
                let carried = self.loops.last().cloned().unwrap_or_default();
                values.extend(carried.iter().map(|v| self.current[v]));
            }
            _names_no_promoted_array => {}
        }
        out.push(inst);
    }

    /// The variables of outside that a region stores.
    fn stored(&self, region: &Region, stored: &mut BTreeSet<Variable>) {
        for inst in &region.insts {
            if let InstKind::Store { place, .. } = &inst.kind
                && let Some(Some(variable)) = self.variable(place)
                && self.current.contains_key(&variable)
            {
                stored.insert(variable);
            }
            for inner in inst.kind.regions() {
                self.stored(inner, stored);
            }
        }
    }

    /// Adds the current values of these variables to what a region yields, if it comes to its end.
    fn yield_more(&self, region: &mut Region, variables: &[Variable]) {
        if let Some(InstKind::Yield(values)) = region.insts.last_mut().map(|i| &mut i.kind) {
            values.extend(variables.iter().map(|v| self.current[v]));
        }
    }

    /// The variables are afterwards what the instruction gives for them.
    fn give(&mut self, inst: &mut Inst, variables: &[Variable]) {
        for variable in variables {
            let ty = self.arrays[&variable.0];
            let value = new_value(&mut self.kernel.values, ty);
            inst.results.push(value);
            self.current.insert(*variable, value);
        }
    }

    fn if_(&mut self, inst: Inst, out: &mut Vec<Inst>) {
        let mut inst = inst;
        let mut stored = BTreeSet::new();
        for region in inst.kind.regions() {
            self.stored(region, &mut stored);
        }
        let variables: Vec<Variable> = stored.into_iter().collect();
        let before = self.current.clone();
        let mut goes_on = false;
        for region in inst.kind.regions_mut() {
            self.region(region);
            goes_on |= super::common::yielded(region).is_some();
            self.yield_more(region, &variables);
            self.current.clone_from(&before);
        }
        // Without an end of either side there is nothing to give: what follows never runs.
        if goes_on {
            self.give(&mut inst, &variables);
        }
        out.push(inst);
    }

    fn loop_(&mut self, inst: Inst, out: &mut Vec<Inst>) {
        let mut inst = inst;
        let mut stored = BTreeSet::new();
        for region in inst.kind.regions() {
            self.stored(region, &mut stored);
        }
        let variables: Vec<Variable> = stored.into_iter().collect();
        let before = self.current.clone();
        if let InstKind::For { init, body, .. } | InstKind::Loop { init, body } = &mut inst.kind {
            for variable in &variables {
                init.push(self.current[variable]);
                let ty = self.arrays[&variable.0];
                let param = new_value(&mut self.kernel.values, ty);
                body.params.push(param);
                self.current.insert(*variable, param);
            }
            self.loops.push(variables.clone());
            self.region(body);
            self.loops.pop();
            self.yield_more(body, &variables);
        }
        self.current = before;
        self.give(&mut inst, &variables);
        out.push(inst);
    }
}
