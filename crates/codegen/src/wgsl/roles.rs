//! Which simdgroup matrices of a kernel are the target's cooperative matrices, and which place each has in products.

use std::collections::HashMap;

use invar_ir::{Inst, InstKind, Kernel, Level, Region, Scalar, Type, Uniformity, Value};

use super::interface::{CooperativeMatrices, Features};
use crate::analysis::control_dependence::matrix_ties;

impl CooperativeMatrices {
    fn multiplies(self, factors: Scalar, sum: Scalar) -> bool {
        match (factors, sum) {
            (Scalar::F32, Scalar::F32) => self.f32,
            (Scalar::F16, Scalar::F16) => self.f16,
            (Scalar::F16, Scalar::F32) => self.f16_in_f32,
            _others => false,
        }
    }

    /// Whether a matrix of that type can stand there in some product.
    fn holds(self, scalar: Scalar, role: Role) -> bool {
        [Scalar::F16, Scalar::F32]
            .into_iter()
            .any(|other| match role {
                Role::Left | Role::Right => self.multiplies(scalar, other),
                Role::Sum => self.multiplies(other, scalar),
            })
    }
}

/// A matrix's place in products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Left,
    Right,
    Sum,
}

impl Role {
    pub(super) fn wgsl(self) -> &'static str {
        match self {
            Role::Left => "A",
            Role::Right => "B",
            Role::Sum => "C",
        }
    }
}

/// The place of each matrix of a kernel, if all of them can be the target's; else none.
pub(super) fn roles(
    kernel: &Kernel,
    uniformity: &Uniformity,
    features: Features,
) -> HashMap<Value, Role> {
    find_roles(kernel, uniformity, features).unwrap_or_default()
}

fn find_roles(
    kernel: &Kernel,
    uniformity: &Uniformity,
    features: Features,
) -> Option<HashMap<Value, Role>> {
    let able = features.cooperative_matrices;
    if !able.any() {
        return None;
    }
    let scalar = |v: Value| kernel.ty(v).scalar();
    let mut roles = HashMap::new();
    let mut fits = whole_simdgroups_come(kernel, uniformity);
    kernel.for_each_inst(&mut |inst: &Inst| {
        let InstKind::MatrixMultiplyAccumulate { a, b, c } = &inst.kind else {
            return;
        };
        fits &= scalar(*a) == scalar(*b)
            && scalar(*a)
                .zip(scalar(*c))
                .is_some_and(|(factors, sum)| able.multiplies(factors, sum));
        let all = [(*a, Role::Left), (*b, Role::Right), (*c, Role::Sum)];
        let result = inst.results.iter().map(|v| (*v, Role::Sum));
        for (value, role) in all.into_iter().chain(result) {
            fits &= *roles.entry(value).or_insert(role) == role;
        }
    });
    fits &= !roles.is_empty();
    fits &= spread(&mut roles, &matrix_ties(kernel));
    for (i, value) in kernel.values.iter().enumerate() {
        if let Type::SimdgroupMatrix { scalar, .. } = value.ty {
            let role = *roles.entry(Value(i as u32)).or_insert(Role::Sum);
            fits &= able.holds(scalar, role);
        }
    }
    fits.then_some(roles)
}

/// Whether the whole threadgroup comes to every operation on matrices, and threads outside the grid with it.
fn whole_simdgroups_come(kernel: &Kernel, uniformity: &Uniformity) -> bool {
    let mut walk = Walk {
        uniformity,
        insts: 0,
        regions: 0,
        together: true,
    };
    walk.region(&kernel.body);
    walk.together
}

struct Walk<'a> {
    uniformity: &'a Uniformity,
    /// How many instructions and regions were seen.
    insts: usize,
    regions: usize,
    together: bool,
}

/// What a region holds.
struct Found {
    /// An operation on matrices.
    matrices: bool,
    /// No thread of the threadgroup goes its own way.
    together: bool,
}

impl Walk<'_> {
    fn region(&mut self, region: &Region) -> Found {
        let known = self.uniformity.region(self.regions);
        self.regions += 1;
        let mut found = Found {
            matrices: false,
            together: known.entry.min(known.control) >= Level::Threadgroup,
        };
        for inst in &region.insts {
            let control = self.uniformity.control(self.insts);
            self.insts += 1;
            if is_matrix_operation(&inst.kind) {
                found.matrices = true;
                self.together &= control >= Level::Threadgroup;
            }
            let inner: Vec<Found> = inst
                .kind
                .regions()
                .into_iter()
                .map(|r| self.region(r))
                .collect();
            if inner.iter().any(|r| r.matrices) {
                found.matrices = true;
                // Threads outside the grid go along only where control is uniform.
                self.together &= inner.iter().all(|r| r.together);
            }
        }
        found
    }
}

pub(super) fn is_matrix_operation(kind: &InstKind) -> bool {
    matches!(
        kind,
        InstKind::MatrixFill { .. }
            | InstKind::MatrixLoad { .. }
            | InstKind::MatrixStore { .. }
            | InstKind::MatrixMultiplyAccumulate { .. }
    )
}

/// Gives the places of matrices to those that they are carried into or come from; whether all agree.
fn spread(roles: &mut HashMap<Value, Role>, ties: &[(Value, Value)]) -> bool {
    loop {
        let before = roles.len();
        for (one, other) in ties {
            match (roles.get(one).copied(), roles.get(other).copied()) {
                (Some(role), None) => {
                    roles.insert(*other, role);
                }
                (None, Some(role)) => {
                    roles.insert(*one, role);
                }
                (Some(a), Some(b)) if a != b => return false,
                (Some(_), Some(_)) | (None, None) => {}
            }
        }
        if roles.len() == before {
            return true;
        }
    }
}
