//! Variables of a chunk's code: what loops carry, and masks.

use inkwell::types::{AsTypeRef, BasicTypeEnum};
use inkwell::values::{PointerValue, VectorValue};
use invar_codegen::analysis::lanes::Class;
use invar_ir::inst::Value;

use crate::emit::vector_of;
use crate::function::FunctionLowering;
use crate::state::Cells;
use crate::value::{Mask, Parts};

pub(crate) const ALIGN: u32 = 64;

impl<'c, 'k> FunctionLowering<'c, 'k> {
    pub fn cells(&mut self, types: Vec<BasicTypeEnum<'c>>, class: Class) -> Cells<'c> {
        let cells = types.into_iter().map(|ty| (self.cell(ty), ty)).collect();
        Cells { class, cells }
    }

    /// A variable of the chunk's code.
    pub fn cell(&mut self, ty: BasicTypeEnum<'c>) -> PointerValue<'c> {
        let spare = &mut self.chunk().spare_cells;
        let found = spare.get_mut(&ty.as_type_ref()).and_then(Vec::pop);
        found.unwrap_or_else(|| self.alloca(ty, ALIGN))
    }

    /// Leaves it to the next user: it is written before it is read again. For what LLVM takes
    /// to make values of variables grows with their number times that of blocks.
    pub fn free_cell(&mut self, pointer: PointerValue<'c>, ty: BasicTypeEnum<'c>) {
        let spare = &mut self.chunk().spare_cells;
        spare.entry(ty.as_type_ref()).or_default().push(pointer);
    }

    pub fn free<'a>(&mut self, list: impl IntoIterator<Item = &'a Cells<'c>>)
    where
        'c: 'a,
    {
        for (pointer, ty) in list.into_iter().flat_map(|cells| &cells.cells) {
            self.free_cell(*pointer, *ty);
        }
    }

    pub fn cells_of(&mut self, value: Value) -> Cells<'c> {
        let class = self.class_of(value);
        self.cells(
            self.lowered_types(self.analysis.kernel.ty(value), class),
            class,
        )
    }

    pub fn mask_cells(&mut self) -> Cells<'c> {
        let ty = vector_of(self.e.context.bool_type().into(), self.shape.width).into();
        let types = vec![ty; self.shape.parts() as usize];
        self.cells(types, Class::Varying)
    }

    pub fn write(&self, cells: &Cells<'c>, parts: &Parts<'c>) {
        for ((cell, _), piece) in cells.cells.iter().zip(self.lower(parts, cells.class)) {
            self.e.store(piece, *cell, ALIGN);
        }
    }

    /// Writes the lanes of a mask.
    pub fn write_lanes(&self, cells: &Cells<'c>, parts: &Parts<'c>, mask: &Mask<'c>) {
        let pieces = self.lower(parts, cells.class);
        for (i, ((cell, ty), piece)) in cells.cells.iter().zip(pieces).enumerate() {
            let part = i % self.shape.parts() as usize;
            let piece = match mask.part(part) {
                None => piece,
                Some(lanes) => {
                    debug_assert!(cells.class == Class::Varying, "lanes of a vector");
                    let old = self.e.load(*ty, *cell, ALIGN);
                    self.e.select(lanes.into(), piece, old)
                }
            };
            self.e.store(piece, *cell, ALIGN);
        }
    }

    pub fn read(&self, cells: &Cells<'c>) -> Parts<'c> {
        let pieces: Vec<_> = cells
            .cells
            .iter()
            .map(|(cell, ty)| self.e.load(*ty, *cell, ALIGN))
            .collect();
        self.raise(&pieces, cells.class)
    }

    pub fn write_mask(&self, cells: &Cells<'c>, mask: &[VectorValue<'c>]) {
        for ((cell, _), lanes) in cells.cells.iter().zip(mask) {
            self.e.store((*lanes).into(), *cell, ALIGN);
        }
    }

    pub fn read_mask(&self, cells: &Cells<'c>) -> Vec<VectorValue<'c>> {
        let load = |(cell, ty): &(PointerValue<'c>, BasicTypeEnum<'c>)| {
            self.e.load(*ty, *cell, ALIGN).into_vector_value()
        };
        cells.cells.iter().map(load).collect()
    }

    pub fn add_to_mask(&self, cells: &Cells<'c>, mask: &[VectorValue<'c>]) {
        let old = self.read_mask(cells);
        let both: Vec<_> = old
            .iter()
            .zip(mask)
            .map(|(a, b)| self.e.or(*a, *b))
            .collect();
        self.write_mask(cells, &both);
    }

    /// Cells that may be read where nothing was written hold zeros.
    pub fn zero(&self, list: &[Cells<'c>]) {
        for (cell, ty) in list.iter().flat_map(|c| &c.cells) {
            self.e.store(ty.const_zero(), *cell, ALIGN);
        }
    }

    pub fn constant_mask(&self, on: bool) -> Vec<VectorValue<'c>> {
        let ty = self.e.context.bool_type();
        let lane = if on {
            ty.const_all_ones()
        } else {
            ty.const_zero()
        };
        let lanes = vec![lane; self.shape.width as usize];
        vec![inkwell::types::VectorType::const_vector(&lanes); self.shape.parts() as usize]
    }

    /// A mask as vectors.
    pub fn lanes(&self, mask: &Mask<'c>) -> Vec<VectorValue<'c>> {
        match mask {
            Mask::All => self.constant_mask(true),
            Mask::Some(list) => list.clone(),
        }
    }

    pub fn both_masks(&self, mask: &Mask<'c>, other: &[VectorValue<'c>]) -> Vec<VectorValue<'c>> {
        match mask {
            Mask::All => other.to_vec(),
            Mask::Some(list) => {
                let pairs = list.iter().zip(other);
                pairs.map(|(a, b)| self.e.and(*a, *b)).collect()
            }
        }
    }

    pub fn inverse(&self, mask: &[VectorValue<'c>]) -> Vec<VectorValue<'c>> {
        mask.iter().map(|m| self.e.not(*m)).collect()
    }
}
