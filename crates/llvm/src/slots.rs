//! Slots: where a chunk keeps the values that several segments use, in its memory, or in variables of the function
//! where one chunk holds the threadgroup.

use inkwell::values::PointerValue;
use invar_codegen::analysis::lanes::Class;
use invar_ir::Scalar;
use invar_ir::inst::Value;

use crate::function::FunctionLowering;
use crate::object::ALIGN;
use crate::value::{Parts, component_count};

impl<'c, 'k> FunctionLowering<'c, 'k> {
    /// Where each lowered piece of a value is in its slot: what is the same for the whole chunk, with its
    /// first vector; anything else with its own.
    pub fn slot_pieces(
        &self,
        value: Value,
        memory: PointerValue<'c>,
        whole_memory: PointerValue<'c>,
    ) -> Vec<PointerValue<'c>> {
        let ty = self.analysis.kernel.ty(value);
        let class = self.analysis.slots[&value];
        let pieces = self.lowered_types(ty, class).len();
        let components = component_count(ty).max(1);
        let own = self.analysis.slot_component_bytes(ty);
        let each = (pieces / components).max(1);
        let offset = self.analysis.layout.slots[&value];
        let base = if class == Class::Uniform {
            whole_memory
        } else {
            memory
        };
        (0..pieces)
            .map(|i| {
                let at =
                    self.analysis.part_at(self.shape, i % each) + offset + (i / each) as u64 * own;
                self.e.byte_offset(base, self.e.i64(at))
            })
            .collect()
    }

    /// The variables of a value's slot, where the chunk that is being made has them.
    pub fn variables_of(&self, value: Value) -> Option<&[PointerValue<'c>]> {
        let in_variables =
            self.analysis.slots_are_variables && self.shape == self.analysis.full_shape;
        let offset = in_variables.then(|| self.analysis.layout.slots[&value])?;
        self.slot_variables.get(&offset).map(Vec::as_slice)
    }

    /// Reads a value from its slot.
    pub fn read_slot(
        &self,
        value: Value,
        memory: PointerValue<'c>,
        whole_memory: PointerValue<'c>,
    ) -> Parts<'c> {
        if let Some(parts) = self.segment.of_whole_chunk.get(&value) {
            return parts.clone();
        }
        let Some(variables) = self.variables_of(value) else {
            return self.read_slot_in_memory(value, memory, whole_memory);
        };
        let class = self.analysis.slots[&value];
        let types = self.lowered_types(self.analysis.kernel.ty(value), class);
        let pairs = variables.iter().zip(types);
        let pieces: Vec<_> = pairs
            .map(|(pointer, ty)| self.e.load(ty, *pointer, ALIGN as u32))
            .collect();
        self.raise(&pieces, class)
    }

    /// Writes a value to its slot.
    pub fn write_slot(&self, value: Value, parts: &Parts<'c>) {
        let Some(variables) = self.variables_of(value) else {
            let chunk = self.chunk_ref();
            return self.write_slot_in_memory(value, parts, chunk.memory, chunk.whole_memory);
        };
        let pieces = self.lower(parts, self.analysis.slots[&value]);
        for (pointer, piece) in variables.iter().zip(pieces) {
            self.e.store(piece, *pointer, ALIGN as u32);
        }
    }

    /// Reads a value from its slot in the memory of a piece of a chunk and of the whole.
    pub fn read_slot_in_memory(
        &self,
        value: Value,
        memory: PointerValue<'c>,
        whole_memory: PointerValue<'c>,
    ) -> Parts<'c> {
        let e = &self.e;
        let ty = self.analysis.kernel.ty(value);
        let class = self.analysis.slots[&value];
        let types = self.lowered_types(ty, class);
        let scalar = ty.scalar().unwrap_or(Scalar::U32);
        let pieces: Vec<_> = self
            .slot_pieces(value, memory, whole_memory)
            .into_iter()
            .zip(types)
            .map(|(pointer, ty)| {
                let memory_type = self.e.memory_type(scalar, ty);
                let loaded = e.load(memory_type, pointer, scalar.size_bytes() as u32);
                self.e.in_registers(scalar, loaded)
            })
            .collect();
        self.raise(&pieces, class)
    }

    pub fn write_slot_in_memory(
        &self,
        value: Value,
        parts: &Parts<'c>,
        memory: PointerValue<'c>,
        whole_memory: PointerValue<'c>,
    ) {
        let e = &self.e;
        let class = self.analysis.slots[&value];
        let ty = self.analysis.kernel.ty(value);
        let scalar = ty.scalar().unwrap_or(Scalar::U32);
        let pieces = self.lower(parts, class);
        let pointers = self.slot_pieces(value, memory, whole_memory);
        for (pointer, piece) in pointers.into_iter().zip(pieces) {
            let stored = self.e.in_memory(scalar, piece);
            e.store(stored, pointer, scalar.size_bytes() as u32);
        }
    }

    /// Makes a variable of each piece of each slot.
    pub fn make_slot_variables(&mut self) {
        for (value, offset) in &self.analysis.layout.slots {
            if self.slot_variables.contains_key(offset) {
                continue;
            }
            let types =
                self.lowered_types(self.analysis.kernel.ty(*value), self.analysis.slots[value]);
            let pieces = types.into_iter().map(|ty| self.alloca(ty, ALIGN as u32));
            let pieces = pieces.collect();
            self.slot_variables.insert(*offset, pieces);
        }
    }
}
