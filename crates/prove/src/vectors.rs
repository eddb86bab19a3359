//! Components of vectors: each is a number by itself, of the components of the operands.
//!
//! [`Thread::lane`] says which component is asked for. What is asked of a vector then is asked of that component; scalars
//! are what they are.

use invar_ir::{Imm, Op, Scalar, Type, Value};

use crate::kernel::Subject;
use crate::linear::Formula;
use crate::query::{Int, Query};
use crate::value::{Thread, Val};

impl Subject<'_> {
    /// How many components a value has, if it is a vector.
    pub fn parts(&self, value: Value) -> Option<u8> {
        match self.kernel.ty(value) {
            Type::Vector(_, count) => Some(count),
            Type::Scalar(_) | Type::Matrix { .. } | Type::SimdgroupMatrix { .. } | Type::Event => {
                None
            }
        }
    }

    /// The type of what is asked for of a value: its own, or that of a component.
    pub fn scalar_of(&self, t: &Thread, value: Value) -> Option<Scalar> {
        match self.kernel.ty(value) {
            Type::Scalar(scalar) => Some(scalar),
            Type::Vector(scalar, _) => t.lane.map(|_| scalar),
            Type::Matrix { .. } | Type::SimdgroupMatrix { .. } | Type::Event => None,
        }
    }

    /// A component of a vector.
    fn part_of(&self, q: &mut Query, t: &mut Thread, vector: Value, lane: u8) -> Option<Val> {
        let around = t.lane.replace(lane);
        let part = self.of(q, t, vector);
        t.lane = around;
        part
    }

    /// The component of a vector that an instruction takes.
    pub fn component(&self, q: &mut Query, t: &mut Thread, args: &[Value]) -> Option<Val> {
        let count = self.parts(args[0])?;
        let index = self.int(q, t, args[1])?.as_constant()?;
        match u8::try_from(index) {
            Ok(lane) if lane < count => self.part_of(q, t, args[0], lane),
            // Out of bounds it gives 0 (B4).
            _beyond => match self.kernel.ty(args[0]) {
                Type::Vector(Scalar::Bool, _) => Some(Val::Bool(Formula::FALSE)),
                Type::Vector(scalar, _) if scalar.is_integer() => Some(Val::Int(Int::constant(0))),
                _float => None,
            },
        }
    }

    /// Whether every component is true, or some.
    pub fn of_all_components(
        &self,
        q: &mut Query,
        t: &mut Thread,
        op: Op,
        vector: Value,
    ) -> Option<Formula> {
        let mut parts = Vec::new();
        for lane in 0..self.parts(vector)? {
            match self.part_of(q, t, vector, lane)? {
                Val::Bool(formula) => parts.push(formula),
                Val::Int(_) => return None,
            }
        }
        Some(match op {
            Op::All => Formula::all(parts),
            _any => Formula::any(parts),
        })
    }

    /// The component that is asked for of a vector that an instruction puts together; `None` if it is computed of those of
    /// the operands, each of which has as many.
    pub fn arranged(
        &self,
        q: &mut Query,
        t: &mut Thread,
        value: Value,
        (op, imm, args): (Op, Imm, &[Value]),
    ) -> Option<Option<Val>> {
        let (Some(lane), Some(count)) = (t.lane, self.parts(value)) else {
            return Some(None);
        };
        match op {
            Op::Construct => {
                // One scalar stands for all components.
                if let [one] = args
                    && self.parts(*one).is_none()
                {
                    return Some(self.of(q, t, *one));
                }
                let mut first = 0;
                for arg in args {
                    let many = self.parts(*arg).unwrap_or(1);
                    if lane < first + many {
                        return Some(self.part_of(q, t, *arg, lane - first));
                    }
                    first += many;
                }
                Some(None)
            }
            Op::Swizzle => {
                let Imm::Swizzle(swizzle) = imm else {
                    return Some(None);
                };
                let list: Vec<u8> = swizzle.into();
                let from = list.get(usize::from(lane));
                Some(from.and_then(|from| self.part_of(q, t, args[0], *from)))
            }
            Op::Insert => {
                // The vector, the index and the part.
                let index = self
                    .int(q, t, args[1])
                    .and_then(|index| index.as_constant());
                Some(match index {
                    Some(index) if index == i128::from(lane) => self.of(q, t, args[2]),
                    Some(_) => self.part_of(q, t, args[0], lane),
                    None => None,
                })
            }
            // What is one condition for all components, and else nothing that is no vector of as many.
            op => {
                let is_of_parts = |(place, arg): (usize, &Value)| {
                    self.parts(*arg) == Some(count) || op == Op::Select && place == 2
                };
                let is_of_parts = args.iter().enumerate().all(is_of_parts);
                (!is_of_parts).then_some(None)
            }
        }
    }
}
