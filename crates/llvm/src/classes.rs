//! Values in the form of their class: one for the chunk, the first lane of each vector, or vectors.

use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, VectorValue};
use invar_codegen::analysis::lanes::{Class, Line};
use invar_ir::Type;

use crate::emit::vector_of;
use crate::function::FunctionLowering;
use crate::lanes::LANES;
use crate::value::{Mask, Part, Parts, component_count};

impl<'c, 'k> FunctionLowering<'c, 'k> {
    /// A value as its class keeps it: scalars, first lanes, or vectors.
    pub fn lower(&self, parts: &Parts<'c>, class: Class) -> Vec<BasicValueEnum<'c>> {
        let count = self.shape.parts() as usize;
        let mut list = Vec::new();
        for c in 0..parts.components() {
            match class {
                Class::Uniform => match parts.part(c, 0) {
                    Part::Scalar(s) => list.push(s),
                    Part::Affine { .. } | Part::Vector(_) => {
                        unreachable!("a value of the chunk")
                    }
                },
                Class::Line(Line { stride: by, .. }) => {
                    for u in 0..count {
                        list.push(match parts.part(c, u) {
                            // What code that cannot run hands on is uniform, whatever it stands for.
                            Part::Scalar(s) => s,
                            Part::Affine { base, stride, .. } if stride == by => base.into(),
                            other => unreachable!("stride {by} of {other:?}"),
                        });
                    }
                }
                Class::Varying => {
                    for u in 0..count {
                        let vector = self.e.vector(parts.part(c, u), self.shape.width);
                        list.push(vector.into());
                    }
                }
            }
        }
        list
    }

    /// The value that [`FunctionLowering::lower`] took apart.
    pub fn raise(&self, list: &[BasicValueEnum<'c>], class: Class) -> Parts<'c> {
        let count = self.shape.parts() as usize;
        match class {
            Class::Uniform => Parts::uniform(list.to_vec()),
            Class::Line(Line {
                stride: by,
                exact,
                aligned,
            }) => {
                let part = |v: &BasicValueEnum<'c>| match by {
                    0 => Part::Scalar(*v),
                    stride => Part::Affine {
                        base: v.into_int_value(),
                        stride,
                        exact,
                        aligned,
                    },
                };
                Parts::of(list.iter().map(part).collect(), count)
            }
            Class::Varying => {
                let part = |v: &BasicValueEnum<'c>| Part::Vector(v.into_vector_value());
                Parts::of(list.iter().map(part).collect(), count)
            }
        }
    }

    /// The types of what [`FunctionLowering::lower`] gives.
    pub fn lowered_types(&self, ty: Type, class: Class) -> Vec<BasicTypeEnum<'c>> {
        let one = self.e.component_type(ty);
        let count = self.shape.parts() as usize;
        let components = component_count(ty);
        match class {
            Class::Uniform => vec![one; components],
            Class::Line(_) => vec![one; components * count],
            Class::Varying => {
                vec![vector_of(one, self.shape.width).into(); components * count]
            }
        }
    }

    /// The value of one thread that is there, for a value that is the same for all of them.
    pub fn make_uniform(&self, parts: &Parts<'c>, mask: &Mask<'c>) -> Parts<'c> {
        if parts.is_uniform() {
            return parts.clone();
        }
        let count = self.shape.parts() as usize;
        let components = (0..parts.components())
            .map(|c| {
                let list: Vec<_> = (0..count).map(|u| parts.part(c, u)).collect();
                self.e.first_active(&list, mask, self.shape.width)
            })
            .collect();
        Parts::uniform(components)
    }

    /// The value of one thread that is there, for a value that is the same for each simdgroup of a chunk.
    pub fn make_uniform_by_simdgroup(&self, parts: Parts<'c>, mask: &Mask<'c>) -> Parts<'c> {
        let count = self.shape.parts() as usize;
        let whole = |c: usize| (0..count).all(|u| matches!(parts.part(c, u), Part::Scalar(_)));
        if (0..parts.components()).all(whole) {
            return parts;
        }
        let each = self.simdgroup_parts();
        let mut list = Vec::new();
        for c in 0..parts.components() {
            for first in (0..count).step_by(each) {
                let own: Vec<_> = (first..first + each).map(|u| parts.part(c, u)).collect();
                let mask = match mask {
                    Mask::All => Mask::All,
                    Mask::Some(lanes) => Mask::Some(lanes[first..first + each].to_vec()),
                };
                let one = self.e.first_active(&own, &mask, self.shape.width);
                list.extend(vec![Part::Scalar(one); each]);
            }
        }
        Parts::of(list, count)
    }

    /// Vectors of a simdgroup.
    pub fn simdgroup_parts(&self) -> usize {
        (LANES / self.shape.width) as usize
    }

    /// Applies a function of scalars or vectors to values of one component each.
    pub fn by_part(
        &self,
        values: &[Parts<'c>],
        f: impl Fn(&Self, &[BasicValueEnum<'c>]) -> BasicValueEnum<'c>,
    ) -> Parts<'c> {
        let whole = values.iter().all(Parts::is_uniform);
        let count = if whole {
            1
        } else {
            self.shape.parts() as usize
        };
        let list = (0..count)
            .map(|u| {
                let parts: Vec<Part<'c>> = values.iter().map(|v| v.part(0, u)).collect();
                if parts.iter().all(|p| matches!(p, Part::Scalar(_))) {
                    let scalars: Vec<_> = parts.iter().map(|p| self.bits_or_vector(*p)).collect();
                    return Part::Scalar(f(self, &scalars));
                }
                let vectors: Vec<_> = parts
                    .iter()
                    .map(|p| self.e.vector(*p, self.shape.width).into())
                    .collect();
                Part::Vector(f(self, &vectors).into_vector_value())
            })
            .collect();
        Parts::of(list, count)
    }

    pub fn bits_or_vector(&self, part: Part<'c>) -> BasicValueEnum<'c> {
        match part {
            Part::Scalar(s) => s,
            Part::Vector(v) => v.into(),
            Part::Affine { .. } => self.e.vector(part, self.shape.width).into(),
        }
    }

    /// Zeros of a type.
    pub fn zeros(&self, ty: Type) -> Parts<'c> {
        let zero = self.e.component_type(ty).const_zero();
        Parts::uniform(vec![zero; component_count(ty)])
    }

    /// Applies a function to scalars or vectors, part by part.
    pub fn for_each_part(
        &self,
        values: &[Parts<'c>; 3],
        f: impl Fn(&Self, [BasicValueEnum<'c>; 3]) -> BasicValueEnum<'c>,
    ) -> Parts<'c> {
        let whole = values.iter().all(Parts::is_uniform);
        let count = if whole {
            1
        } else {
            self.shape.parts() as usize
        };
        let list = (0..count)
            .map(|u| {
                let parts = [0, 1, 2].map(|i| values[i].part(0, u));
                let scalars = parts.map(|p| match p {
                    Part::Scalar(s) => Some(s),
                    Part::Affine { .. } | Part::Vector(_) => None,
                });
                if let [Some(a), Some(b), Some(c)] = scalars {
                    return Part::Scalar(f(self, [a, b, c]));
                }
                let vectors = parts.map(|p| self.e.vector(p, self.shape.width).into());
                Part::Vector(f(self, vectors).into_vector_value())
            })
            .collect();
        Parts::of(list, count)
    }

    /// Lane by lane one of two values.
    pub fn pick(
        &self,
        condition: &[VectorValue<'c>],
        yes: &Parts<'c>,
        no: &Parts<'c>,
    ) -> Parts<'c> {
        if yes == no {
            return yes.clone();
        }
        let count = self.shape.parts() as usize;
        let mut list = Vec::new();
        for c in 0..yes.components() {
            for (u, lanes) in condition.iter().enumerate() {
                let [a, b] = [yes, no].map(|p| self.e.vector(p.part(c, u), self.shape.width));
                let picked = self.e.select((*lanes).into(), a.into(), b.into());
                list.push(Part::Vector(picked.into_vector_value()));
            }
        }
        if list.is_empty() {
            return yes.clone();
        }
        Parts::of(list, count)
    }

    pub fn vectors(&self, parts: &Parts<'c>) -> Vec<VectorValue<'c>> {
        (0..self.shape.parts() as usize)
            .map(|u| self.e.vector(parts.part(0, u), self.shape.width))
            .collect()
    }
}
