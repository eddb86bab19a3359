//! Every combination of types that an operation takes: what tests and conformance cases run over.

use super::{Dim, Imm, Signature, Swizzle};
use crate::types::{Scalar, Type};

/// What an operation takes beside values, and the types of its operands.
pub type Instance = (Imm, Vec<Type>);

impl Type {
    /// Every type of elementwise values: scalars, vectors and small matrices.
    pub fn elementwise() -> impl Iterator<Item = Type> {
        Scalar::ALL.into_iter().flat_map(|scalar| {
            let vectors = (2..=4).map(move |n| Type::Vector(scalar, n));
            let matrices = (2..=4).flat_map(move |columns| {
                (2..=4).map(move |rows| Type::Matrix {
                    scalar,
                    columns,
                    rows,
                })
            });
            [Type::Scalar(scalar)]
                .into_iter()
                .chain(vectors)
                .chain(matrices)
                .filter(|ty| ty.defect().is_none())
        })
    }
}

impl Signature {
    /// Every combination of operand types that it takes. Of `construct` those from scalars, from one
    /// scalar and from a vector and scalars; of swizzles those that reverse and those that repeat
    /// the last component.
    pub fn instances(self) -> Vec<Instance> {
        let imms = self.imms();
        let candidates = self.candidates();
        let mut instances = Vec::new();
        for imm in &imms {
            for args in &candidates {
                if self.result_type(*imm, args).is_ok() {
                    instances.push((*imm, args.clone()));
                }
            }
        }
        instances
    }

    fn imms(self) -> Vec<Imm> {
        match self {
            Signature::Cast | Signature::AsType | Signature::Construct => {
                Type::elementwise().map(Imm::Type).collect()
            }
            Signature::Swizzle => ["x", "yx", "zyx", "wzyx", "yyyy", "zz", "www"]
                .iter()
                .filter_map(|name| Swizzle::parse(name))
                .map(Imm::Swizzle)
                .collect(),
            Signature::QueryDim => Dim::ALL.map(Imm::Dim).to_vec(),
            Signature::Same(..)
            | Signature::Compare(_)
            | Signature::Test(_)
            | Signature::Select(_)
            | Signature::Ldexp
            | Signature::ExtractBits
            | Signature::InsertBits
            | Signature::Extract
            | Signature::Insert
            | Signature::VectorToScalar(..)
            | Signature::Refract
            | Signature::MatrixMultiply
            | Signature::Transpose
            | Signature::Determinant
            | Signature::Fixed(..)
            | Signature::Lanes(_)
            | Signature::LanesBy(_)
            | Signature::Query => vec![Imm::None],
        }
    }

    /// Lists of operand types of which at least those that it takes are part.
    fn candidates(self) -> Vec<Vec<Type>> {
        let all = || Type::elementwise();
        let scalar = |ty: Type| ty.scalar().map_or(ty, Type::Scalar);
        let like = |ty: Type, scalar: Scalar| ty.with_scalar(scalar).unwrap_or(ty);
        let integers = || {
            let integers = Scalar::ALL.into_iter().filter(|s| s.is_integer());
            integers.map(Type::Scalar)
        };
        match self {
            Signature::Same(n, _) | Signature::VectorToScalar(n, _) => {
                all().map(|ty| vec![ty; usize::from(n)]).collect()
            }
            Signature::Compare(_) => all().map(|ty| vec![ty; 2]).collect(),
            Signature::Test(_)
            | Signature::Cast
            | Signature::AsType
            | Signature::Swizzle
            | Signature::Transpose
            | Signature::Determinant
            | Signature::Lanes(_) => all().map(|ty| vec![ty]).collect(),
            Signature::Select(_) => all()
                .flat_map(|ty| {
                    let by_component = like(ty, Scalar::Bool);
                    let one = (by_component != Type::BOOL).then(|| vec![ty, ty, Type::BOOL]);
                    [vec![ty, ty, by_component]].into_iter().chain(one)
                })
                .collect(),
            Signature::Ldexp => all().map(|ty| vec![ty, like(ty, Scalar::I32)]).collect(),
            Signature::ExtractBits => all().map(|ty| vec![ty, Type::U32, Type::U32]).collect(),
            Signature::InsertBits => all().map(|ty| vec![ty, ty, Type::U32, Type::U32]).collect(),
            Signature::Refract => all().map(|ty| vec![ty, ty, scalar(ty)]).collect(),
            Signature::MatrixMultiply => all()
                .flat_map(|a| Type::elementwise().map(move |b| vec![a, b]))
                .collect(),
            Signature::Construct => all()
                .flat_map(|ty| {
                    let one = scalar(ty);
                    match ty {
                        Type::Matrix {
                            scalar,
                            rows,
                            columns,
                        } => {
                            vec![vec![Type::Vector(scalar, rows); usize::from(columns)]]
                        }
                        Type::Vector(_, n) => vec![
                            vec![one; usize::from(n)],
                            vec![one],
                            [vec![ty], vec![one; usize::from(4 - n)]].concat(),
                        ],
                        Type::Scalar(_) | Type::SimdgroupMatrix { .. } | Type::Event => Vec::new(),
                    }
                })
                .collect(),
            Signature::Extract | Signature::LanesBy(_) => all()
                .flat_map(|ty| integers().map(move |index| vec![ty, index]))
                .collect(),
            Signature::Insert => all()
                .flat_map(|ty| {
                    let part = match ty {
                        Type::Matrix { scalar, rows, .. } => Type::Vector(scalar, rows),
                        other => scalar(other),
                    };
                    integers().map(move |index| vec![ty, index, part])
                })
                .collect(),
            Signature::Fixed(types, _) => vec![types.to_vec()],
            Signature::QueryDim | Signature::Query => vec![Vec::new()],
        }
    }
}
