//! Where threads stand, and what conditions on that say of a chunk or a threadgroup as a whole.

use inkwell::values::IntValue;
use invar_codegen::analysis::lanes::{Positions, alignment};
use invar_ir::inst::{InstKind, Value};
use invar_ir::ops::{Dim, Imm};
use invar_ir::{Op, Scalar};

use crate::emit::BUILT;
use crate::function::FunctionLowering;
use crate::tuning::MOST_COMPARED_VECTORS;
use crate::value::{Part, Parts};

impl<'c, 'k> FunctionLowering<'c, 'k> {
    /// A query's value in this chunk, or for the threadgroup outside of one.
    pub fn query(&self, op: Op, dim: usize) -> Parts<'c> {
        if let Some(same) = self.group_query(op, dim) {
            return Parts::uniform(vec![same.into()]);
        }
        let e = &self.e;
        let (shape, chunk) = (self.shape, self.chunk_ref());
        let width = shape.width;
        let aligned = alignment(op, shape, self.analysis.threadgroup_size);
        let grows = |base: IntValue<'c>| Part::Affine {
            base,
            stride: 1,
            exact: true,
            aligned,
        };
        let each = |f: &dyn Fn(u32) -> Part<'c>| {
            Parts::of((0..shape.parts()).map(f).collect(), shape.parts() as usize)
        };
        // The first vectors of rows, and how far the others are from them.
        let numbers: Vec<IntValue<'c>> = (0..shape.rows)
            .map(|row| e.add(chunk.number, e.mul(self.group.size[0], e.i32(row))))
            .collect();
        let along = |u: u32| i64::from(u % shape.along * width);
        // One value for the vectors of a row, so that what is computed of it is one too.
        let rows_from = |first: IntValue<'c>| -> Vec<IntValue<'c>> {
            let rows = 0..shape.rows;
            rows.map(|row| self.sums.plus(&self.e, first, row.into()))
                .collect()
        };
        let rows = rows_from(chunk.at[1]);
        let number = |u: u32| {
            self.sums
                .plus(&self.e, numbers[(u / shape.along) as usize], along(u))
        };
        let lanes = |base: IntValue<'c>| e.vector(grows(base), width);
        let position = |u: u32| -> Part<'c> {
            match (chunk.positions, dim) {
                (Positions::Rows | Positions::InRow, 0) => {
                    grows(self.sums.plus(&self.e, chunk.at[0], along(u)))
                }
                (Positions::Rows, 1) => Part::Scalar(rows[(u / shape.along) as usize].into()),
                (Positions::Rows | Positions::InRow, _) => Part::Scalar(chunk.at[dim].into()),
                (Positions::Anywhere, _) => {
                    let [sx, sy, _] = self.group.size.map(|n| e.splat(n.into(), width));
                    let n = lanes(number(u));
                    let b = &e.builder;
                    let divide = |a, d| b.build_int_unsigned_div(a, d, "").expect(BUILT);
                    let rest = |a, d| b.build_int_unsigned_rem(a, d, "").expect(BUILT);
                    Part::Vector(match dim {
                        0 => rest(n, sx),
                        1 => rest(divide(n, sx), sy),
                        _ => divide(divide(n, sx), sy),
                    })
                }
            }
        };
        match op {
            Op::ThreadPositionInThreadgroup => each(&position),
            Op::ThreadPositionInGrid => {
                let origin = self.group.origin[dim];
                let first = e.add(chunk.at[dim], origin);
                let rows = rows_from(first);
                each(&|u| match position(u) {
                    Part::Scalar(_) if dim == 1 => {
                        Part::Scalar(rows[(u / shape.along) as usize].into())
                    }
                    Part::Scalar(_) => Part::Scalar(first.into()),
                    Part::Affine { .. } => grows(self.sums.plus(&self.e, first, along(u))),
                    Part::Vector(v) => Part::Vector(e.add(v, e.splat(origin.into(), width))),
                })
            }
            Op::ThreadIndexInThreadgroup => each(&|u| grows(number(u))),
            Op::ThreadIndexInSimdgroup => {
                each(&|u| grows(e.i32(u * width % self.analysis.simdgroup_size)))
            }
            Op::SimdgroupIndexInThreadgroup => {
                let first = e.divide(chunk.number, e.i32(self.analysis.simdgroup_size));
                each(&|u| {
                    let own = e.i32(u * width / self.analysis.simdgroup_size);
                    Part::Scalar(e.add(first, own).into())
                })
            }
            Op::ThreadIndexInQuadgroup => each(&|u| {
                let three = e.splat(e.i32(3).into(), width);
                Part::Vector(e.and(lanes(number(u)), three))
            }),
            Op::QuadgroupIndexInThreadgroup => each(&|u| {
                let two = e.splat(e.i32(2).into(), width);
                let b = &e.builder;
                let n = lanes(number(u));
                Part::Vector(b.build_right_shift(n, two, false, "").expect(BUILT))
            }),
            other => unreachable!("`{other}` asks nothing"),
        }
    }

    /// Whether a condition holds for all threads of a full chunk, from its first and its last thread: for
    /// places of threads that are compared with what is the same for the threadgroup.
    pub fn holds_for_all(&mut self, condition: Value) -> Option<IntValue<'c>> {
        debug_assert!(self.chunk_ref().fast, "all threads of the chunk exist");
        let mut all: Option<IntValue<'c>> = None;
        for part in self.analysis.plan.conjuncts(condition) {
            let holds = self.one_holds_for_all(part)?;
            all = Some(all.map_or(holds, |all| self.e.and(all, holds)));
        }
        all
    }

    /// The same of a condition that is not a conjunction.
    pub fn one_holds_for_all(&mut self, condition: Value) -> Option<IntValue<'c>> {
        let (op, _, args) = self
            .analysis
            .plan
            .definitions
            .get(&condition)?
            .kind
            .as_op()?;
        let [a, b] = [*args.first()?, *args.get(1)?];
        if !matches!(op, Op::Lt | Op::Le | Op::Gt | Op::Ge) {
            return None;
        }
        let scalar = self.analysis.kernel.ty(a).scalar()?;
        // The one that is closest to not holding, where `a` is to be less than `b`.
        let less = matches!(op, Op::Lt | Op::Le);
        let ends = (self.end_of_chunk(a, less)).zip(self.end_of_chunk(b, !less));
        let pairs = match ends {
            Some(ends) => vec![ends],
            None => self.pairs_by_vector(a, b)?,
        };
        let mut all: Option<IntValue<'c>> = None;
        for (a, b) in pairs {
            let test = self.e.eval(op, scalar, Scalar::Bool, &[a.into(), b.into()]);
            let test = test.into_int_value();
            all = Some(all.map_or(test, |all| self.e.and(all, test)));
        }
        all
    }

    /// Two integers vector by vector, if each is the same for the lanes of one, and there are few.
    fn pairs_by_vector(&mut self, a: Value, b: Value) -> Option<Vec<(IntValue<'c>, IntValue<'c>)>> {
        if !self.analysis.kernel.ty(a).is_integer_scalar() {
            return None;
        }
        let (a, b) = (self.known(a)?, self.known(b)?);
        let mut pairs = Vec::new();
        for u in 0..self.shape.parts() as usize {
            let (Part::Scalar(a), Part::Scalar(b)) = (a.part(0, u), b.part(0, u)) else {
                return None;
            };
            let pair = (a.into_int_value(), b.into_int_value());
            if !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
        (pairs.len() <= MOST_COMPARED_VECTORS).then_some(pairs)
    }

    /// The least of an integer's lanes, or the greatest, where it is one of the places that grow from
    /// each thread of a full chunk to the next, or the same for all of them.
    pub fn end_of_chunk(&mut self, value: Value, greatest: bool) -> Option<IntValue<'c>> {
        if !self.analysis.kernel.ty(value).is_integer_scalar() {
            return None;
        }
        let parts = self.known(value)?;
        let last = self.shape.parts() as usize - 1;
        let is_place = || {
            let op = self.analysis.plan.definitions.get(&value)?.kind.as_op()?.0;
            Some(matches!(
                op,
                Op::ThreadPositionInGrid
                    | Op::ThreadPositionInThreadgroup
                    | Op::ThreadIndexInThreadgroup
            ))
        };
        if !parts.is_uniform() && !is_place().unwrap_or(false) {
            return None;
        }
        match parts.part(0, if greatest { last } else { 0 }) {
            Part::Scalar(own) => Some(own.into_int_value()),
            Part::Affine {
                base, stride: 1, ..
            } if greatest => Some(
                self.sums
                    .plus(&self.e, base, i64::from(self.shape.width) - 1),
            ),
            Part::Affine {
                base, stride: 1, ..
            } => Some(base),
            Part::Affine { .. } | Part::Vector(_) => None,
        }
    }

    /// How many of the first threads of a line a condition holds for, at most.
    pub fn first_threads(&self, condition: Value) -> Option<IntValue<'c>> {
        let parts = self.analysis.plan.conjuncts(condition);
        parts.into_iter().find_map(|part| self.first_by_one(part))
    }

    /// The same of a condition that is not a conjunction.
    pub fn first_by_one(&self, condition: Value) -> Option<IntValue<'c>> {
        let inst = self.analysis.plan.definitions.get(&condition)?;
        let (op, _, args) = inst.kind.as_op()?;
        let number = |v: Value| {
            let definition = self.analysis.plan.definitions.get(&v);
            definition.is_some_and(|inst| match &inst.kind {
                InstKind::Op { op, imm, .. } => {
                    *op == Op::ThreadIndexInThreadgroup
                        || (*op == Op::ThreadPositionInThreadgroup && *imm == Imm::Dim(Dim::X))
                }
                _computed => false,
            })
        };
        let [a, b] = [args.first()?, args.get(1)?].map(|v| *v);
        let (end, more) = match op {
            Op::Lt if number(a) => (b, false),
            Op::Gt if number(b) => (a, false),
            Op::Le | Op::Eq if number(a) => (b, true),
            Op::Ge | Op::Eq if number(b) => (a, true),
            _says_nothing => return None,
        };
        let Part::Scalar(end) = self.shared_value(end)?.part(0, 0) else {
            return None;
        };
        let e = &self.e;
        let end = end.into_int_value();
        let last = e.i32(u32::MAX - 1);
        Some(if more {
            e.add(e.smaller(end, last), e.i32(1))
        } else {
            end
        })
    }
}
