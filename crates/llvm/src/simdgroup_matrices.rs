//! Instructions on simdgroup matrices: where their factors are, and which products are made together.

use inkwell::values::{BasicValueEnum, PointerValue};
use invar_ir::inst::{InstKind, MatrixPlace, Value};
use invar_ir::{ElementType, Inst, Scalar};

use crate::function::FunctionLowering;
use crate::matrices;
use crate::matrices::{MatrixMemory, Rows};
use crate::plan::uses;
use crate::value::{Mask, Part, Parts};

impl<'c, 'k> FunctionLowering<'c, 'k> {
    /// A value that is the same for the simdgroup.
    pub fn one_scalar(&mut self, value: Value, mask: &Mask<'c>) -> BasicValueEnum<'c> {
        let parts = self.get(value);
        match self.make_uniform(&parts, mask).part(0, 0) {
            Part::Scalar(one) => one,
            Part::Affine { .. } | Part::Vector(_) => unreachable!("it was made uniform"),
        }
    }

    pub fn matrix(&mut self, value: Value) -> (Scalar, Rows<'c>) {
        let parts = self.get(value);
        let row = |r| match parts.part(r, 0) {
            Part::Scalar(row) => row.into_vector_value(),
            Part::Affine { .. } | Part::Vector(_) => unreachable!("the simdgroup has one"),
        };
        let scalar = self
            .analysis
            .kernel
            .ty(value)
            .scalar()
            .unwrap_or(Scalar::F32);
        (scalar, (0..parts.components()).map(row).collect())
    }

    /// Whether products that are not yet made may be made after this instruction instead of before it:
    /// it needs none of them, and if it is one too, registers hold them all.
    pub fn can_wait(&self, products: &[&'k Inst], inst: &Inst) -> bool {
        let goes_on = inst.kind.regions().is_empty() && !inst.kind.is_terminator();
        let needs = |v: &Value| products.iter().any(|p| p.results[0] == *v);
        let one_more = match &inst.kind {
            InstKind::MatrixMultiplyAccumulate { c, .. } => {
                let scalar = self.analysis.kernel.ty(*c).scalar().unwrap_or(Scalar::F32);
                products.len() < matrices::products_at_once(&self.e, scalar)
            }
            _other => true,
        };
        products.is_empty() || (goes_on && one_more && !uses(inst).iter().any(needs))
    }

    /// Reads a matrix; keeps where it is for those who may read it there.
    pub fn load_matrix(&mut self, inst: &'k Inst, place: &MatrixPlace, mask: &Mask<'c>) {
        let (scalar, memory) = self.matrix_memory(inst, place, mask);
        let value = inst.results[0];
        if self.is_rare() {
            let stack = matrices::load_aside(&self.e, scalar, &memory);
            self.define_on_stack(value, scalar, stack, mask);
            return;
        }
        if let Some(rows) = matrices::rows_in_memory(&self.e, scalar, &memory) {
            self.chunk().matrices.insert(value, rows);
        }
        let rows = matrices::load(&self.e, scalar, &memory);
        self.define_matrix(value, rows, mask);
    }

    /// Makes products that do not need each other.
    pub fn multiply(&mut self, products: &mut Vec<&'k Inst>, mask: &Mask<'c>) {
        let factors: Vec<_> = (products.drain(..))
            .map(|inst| match &inst.kind {
                InstKind::MatrixMultiplyAccumulate { a, b, c } => (inst.results[0], [*a, *b, *c]),
                _other => unreachable!("a product of matrices"),
            })
            .collect();
        if factors.is_empty() {
            return;
        }
        if self.is_rare() {
            for (result, factors) in factors {
                let factors = factors.map(|v| self.matrix_on_stack(v));
                let scalar = factors[2].0;
                let stack = matrices::multiply_aside(&self.e, factors);
                self.define_on_stack(result, scalar, stack, mask);
            }
            return;
        }
        let operands: Vec<_> = (factors.iter())
            .map(|(_, factors)| factors.map(|v| self.matrix(v)))
            .collect();
        let in_memory = &self.chunk_ref().matrices;
        let rights: Vec<_> = (factors.iter())
            .map(|(_, [_, b, _])| in_memory.get(b).copied())
            .collect();
        let e = &self.e;
        let places = *self
            .entries
            .get_or_insert_with(|| matrices::first_entries(e));
        let names: Vec<_> = factors.iter().map(|(_, [a, b, _])| [*a, *b]).collect();
        let sums = matrices::multiply_by_rows(e, places, &operands, &rights)
            .or_else(|| matrices::multiply_by_entries(e, &operands, &names))
            .unwrap_or_else(|| matrices::multiply_accumulate(e, places, &operands));
        for ((result, _), rows) in factors.into_iter().zip(sums) {
            self.define_matrix(result, rows, mask);
        }
    }

    /// A matrix on the stack, where the code is rare: most are there already.
    pub fn matrix_on_stack(&mut self, value: Value) -> (Scalar, PointerValue<'c>) {
        let (scalar, rows) = self.matrix(value);
        let known = self.chunk_ref().stacks.get(&value).copied();
        let stack = known.unwrap_or_else(|| matrices::to_stack(&self.e, scalar, &rows));
        (scalar, stack)
    }

    pub fn define_on_stack(
        &mut self,
        value: Value,
        scalar: Scalar,
        stack: PointerValue<'c>,
        mask: &Mask<'c>,
    ) {
        self.chunk().stacks.insert(value, stack);
        let rows = matrices::read_stack(&self.e, scalar, stack);
        self.define_matrix(value, rows, mask);
    }

    pub fn define_matrix(&mut self, value: Value, rows: Rows<'c>, mask: &Mask<'c>) {
        let rows = rows.into_iter().map(Into::into).collect();
        self.define(value, Parts::uniform(rows), mask);
    }

    pub fn matrix_memory(
        &mut self,
        inst: &Inst,
        place: &MatrixPlace,
        mask: &Mask<'c>,
    ) -> (Scalar, MatrixMemory<'c>) {
        let object = self.launch.objects[&place.memory].clone();
        let ElementType::Value(element) = object.element else {
            unreachable!("the elements are scalars");
        };
        let mut integer = |value: Value| {
            let scalar = self
                .analysis
                .kernel
                .ty(value)
                .scalar()
                .unwrap_or(Scalar::U32);
            (scalar, self.one_scalar(value, mask).into_int_value())
        };
        let memory = MatrixMemory {
            base: object.base,
            length: object.length,
            index: integer(place.index),
            row: integer(place.row),
            transpose: place.transpose,
            inside: self.proved(inst).is_some(),
            races: object.shared && !object.constant,
        };
        (element.scalar().unwrap_or(Scalar::F32), memory)
    }
}
