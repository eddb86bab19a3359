//! Which simdgroup matrices of a kernel are looked at by lane, as `thread_elements()` does.

use std::collections::{BTreeMap, HashSet};

use invar_ir::{Memory, Scalar, Value};
use invar_llvm::foreign::{self, Convert, Element, Function, Kind, Operand};

/// What a kernel's matrices are by lane.
#[derive(Default)]
pub(crate) struct Lanes {
    /// The instructions whose result is a matrix that is put together of elements.
    pub together: HashSet<usize>,
    /// The others of which elements are asked for.
    pub apart: HashSet<usize>,
    /// Room for the matrices of all simdgroups, by their scalar.
    pub room: BTreeMap<Scalar, Memory>,
    /// Where the simdgroup's matrix begins there, and the lane's row and column.
    pub place: Option<(Value, Value, Value)>,
}

pub(crate) fn is_matrix(ty: foreign::Type) -> bool {
    matches!(ty, foreign::Type::Vector(_, 2))
}

impl Lanes {
    pub fn of(f: &Function) -> Lanes {
        let mut lanes = Lanes::default();
        let passes_on = |kind: &Kind| match kind {
            Kind::Phi(ways) => Some(0..ways.len()),
            Kind::Select => Some(1..3),
            Kind::Freeze => Some(0..1),
            _other => None,
        };
        loop {
            let before = lanes.together.len();
            for (number, inst) in f.insts.iter().enumerate().filter(|(_, i)| is_matrix(i.ty)) {
                let is = |o: &Operand| matches!(o, Operand::Inst(n) if lanes.together.contains(n));
                let is_together = match passes_on(&inst.kind) {
                    Some(range) => inst.operands[range].iter().any(is),
                    None => matches!(
                        inst.kind,
                        Kind::InsertElement | Kind::Convert(Convert::Bits)
                    ),
                };
                if is_together {
                    lanes.together.insert(number);
                }
            }
            if lanes.together.len() == before {
                break;
            }
        }
        for (number, inst) in f.insts.iter().enumerate() {
            let range = match &inst.kind {
                Kind::ExtractElement | Kind::InsertElement | Kind::Convert(Convert::Bits) => 0..1,
                kind => match passes_on(kind) {
                    Some(range) if lanes.together.contains(&number) => range,
                    _other => continue,
                },
            };
            for (operand, ty) in inst.operands[range.clone()].iter().zip(&inst.types[range]) {
                if let Operand::Inst(of) = operand
                    && is_matrix(*ty)
                    && !lanes.together.contains(of)
                {
                    lanes.apart.insert(*of);
                }
            }
        }
        lanes
    }

    /// Whether a matrix is given by the elements of lanes.
    pub fn is_together(&self, inst: usize) -> bool {
        self.together.contains(&inst)
    }
}

/// Whether a product of simdgroup matrices is of different floats: its factors have one, and the sum that or f32.
pub(crate) fn is_mixed(d: &str, a: &str, b: &str) -> bool {
    a != b || (d != a && d != "f32")
}

/// The scalar of a matrix of LLVM's.
pub(crate) fn matrix_scalar(ty: foreign::Type) -> Option<Scalar> {
    match ty {
        foreign::Type::Vector(Element::Half, 2) => Some(Scalar::F16),
        foreign::Type::Vector(Element::BFloat, 2) => Some(Scalar::BF16),
        foreign::Type::Vector(Element::Float, 2) => Some(Scalar::F32),
        _other => None,
    }
}
