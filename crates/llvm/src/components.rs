//! Operations that move the components of vectors and matrices about, without computing.

use inkwell::values::{BasicValueEnum, VectorValue};
use invar_ir::inst::Value;
use invar_ir::ops::Imm;
use invar_ir::{Op, Scalar, Type};

use crate::function::FunctionLowering;
use crate::value::Parts;

impl<'c, 'k> FunctionLowering<'c, 'k> {
    pub fn arrange(
        &self,
        op: Op,
        imm: Imm,
        args: &[Value],
        parts: &[Parts<'c>],
        result: Type,
    ) -> Parts<'c> {
        let count = self.shape.parts() as usize;
        match (op, imm) {
            (Op::Construct, _) => {
                let all = Parts::concat(parts, count);
                let wanted = result.component_count() as usize;
                if all.components() == 1 && wanted > 1 {
                    return Parts::concat(&vec![all; wanted], count);
                }
                all
            }
            (Op::Swizzle, Imm::Swizzle(swizzle)) => {
                let picked: Vec<Parts<'c>> = swizzle
                    .components()
                    .iter()
                    .map(|c| parts[0].component(usize::from(*c)))
                    .collect();
                Parts::concat(&picked, count)
            }
            (Op::AsType, _) => {
                let from = self
                    .analysis
                    .kernel
                    .ty(args[0])
                    .scalar()
                    .unwrap_or(Scalar::U32);
                let to = result.scalar().unwrap_or(Scalar::U32);
                self.as_type(from, to, &parts[0], result.component_count() as usize)
            }
            (Op::Extract, _) => {
                let each = result.component_count() as usize;
                let groups = parts[0].components() / each;
                let group = |k: usize| {
                    let list: Vec<_> = (0..each)
                        .map(|c| parts[0].component(k * each + c))
                        .collect();
                    Parts::concat(&list, count)
                };
                if let Some(k) = self.analysis.constant_index(args[1]) {
                    return match usize::try_from(k).ok().filter(|k| *k < groups) {
                        Some(k) => group(k),
                        None => self.zeros(result),
                    };
                }
                let index = self
                    .analysis
                    .kernel
                    .ty(args[1])
                    .scalar()
                    .unwrap_or(Scalar::U32);
                (0..groups).fold(self.zeros(result), |old, k| {
                    let here = self.equals(index, &parts[1], k as u64);
                    self.choose(&here, &group(k), &old)
                })
            }
            (Op::Insert, _) => {
                let each = parts[2].components();
                let groups = parts[0].components() / each;
                let index = self
                    .analysis
                    .kernel
                    .ty(args[1])
                    .scalar()
                    .unwrap_or(Scalar::U32);
                let known = self.analysis.constant_index(args[1]);
                let mut list = Vec::new();
                for k in 0..groups {
                    for c in 0..each {
                        let old = parts[0].component(k * each + c);
                        let new = parts[2].component(c);
                        list.push(match known {
                            Some(known) if known == k as i128 => new,
                            Some(_) => old,
                            None => {
                                let here = self.equals(index, &parts[1], k as u64);
                                self.choose(&here, &new, &old)
                            }
                        });
                    }
                }
                Parts::concat(&list, count)
            }
            (other, _) => unreachable!("`{other}` moves nothing about"),
        }
    }

    /// Writes the components of part `u`'s lanes as they lie in memory side by side, those of lane 0 first: `write` stores a
    /// vector so many bytes behind the first.
    pub fn write_side_by_side(
        &self,
        scalar: Scalar,
        count: u32,
        value: &Parts<'c>,
        u: usize,
        write: impl FnMut(u64, VectorValue<'c>),
    ) {
        let e = &self.e;
        let component = |c: u32| {
            let vector = e.vector(value.part(c as usize, u), self.shape.width);
            e.in_memory(scalar, vector.into()).into_vector_value()
        };
        let components: Vec<_> = (0..count).map(component).collect();
        e.write_together(scalar, &components, write);
    }

    pub fn equals(&self, scalar: Scalar, index: &Parts<'c>, k: u64) -> Parts<'c> {
        let k = Parts::uniform(vec![self.e.constant(scalar, k)]);
        self.by_part(&[index.clone(), k], |m, v| {
            m.e.eval(Op::Eq, scalar, Scalar::Bool, v)
        })
    }

    pub fn choose(&self, condition: &Parts<'c>, yes: &Parts<'c>, no: &Parts<'c>) -> Parts<'c> {
        let list: Vec<Parts<'c>> = (0..yes.components())
            .map(|c| {
                let operands = [condition.clone(), yes.component(c), no.component(c)];
                self.by_part(&operands, |m, v| m.e.select(v[0], v[1], v[2]))
            })
            .collect();
        Parts::concat(&list, self.shape.parts() as usize)
    }

    /// The same bits as other components; the first is lowest.
    pub fn as_type(&self, from: Scalar, to: Scalar, x: &Parts<'c>, wanted: usize) -> Parts<'c> {
        let (width, out) = (from.bits() as usize, to.bits() as usize);
        let components: Vec<Parts<'c>> = (0..wanted)
            .map(|k| {
                if width >= out {
                    let parts = width / out;
                    let shift = out * (k % parts);
                    self.by_part(&[x.component(k / parts)], |m, v| {
                        let bits = m.e.to_bits(v[0], width as u32);
                        let bits = m.e.shift(bits, shift as u64, false);
                        m.e.as_scalar(m.e.resize(bits, out as u32), to)
                    })
                } else {
                    let parts = out / width;
                    let list: Vec<Parts<'c>> =
                        (0..parts).map(|j| x.component(k * parts + j)).collect();
                    self.by_part(&list, |m, v| {
                        let mut all: Option<BasicValueEnum<'c>> = None;
                        for (j, part) in v.iter().enumerate() {
                            let bits = m.e.to_bits(*part, width as u32);
                            let bits =
                                m.e.shift(m.e.resize(bits, out as u32), (width * j) as u64, true);
                            all = Some(all.map_or(bits, |a| m.e.or_any(a, bits)));
                        }
                        m.e.as_scalar(all.expect("a part"), to)
                    })
                }
            })
            .collect();
        Parts::concat(&components, self.shape.parts() as usize)
    }
}
