//! Pointers in memory: argument buffers, whose fields are the addresses of other buffers.
//!
//! Each such field is an object of its own, which a launch gives as one more parameter by the field's name:
//! `args.weights`, `args.rows.2`. A load of an address at an index that is computed leads to one of the
//! objects of an array; an access by an address from beyond the array is out of bounds. Which fields there are says `fields.rs`.
//!
//! Deliberately absent: arrays of no fixed length, addresses that the kernel stores, and pointers that lead to
//! pointers.

use invar_ir::{Access, Op, Scalar};
use invar_llvm::foreign::{DebugType, Type};

use crate::fields::{Field, is_handle_type};
use crate::memory::{Bound, as_written};
use crate::objects::Root;
use crate::translator::{Done, Translator};
use crate::value::{Address, Object, What};

/// More bytes than any buffer has, and a multiple of every width.
const BEYOND: i64 = 1 << 62;

impl Translator<'_> {
    /// The address that a load of one gives, by the fields that it may read.
    pub fn loaded_address(&mut self, number: usize, fields: &[usize]) -> Done<Address> {
        let roots: Vec<Root> = fields.iter().map(|field| Root::Field(*field)).collect();
        let mut address = Address::of(roots.first().copied());
        if roots.len() > 1 {
            let mut place = self.address(&self.f.insts[number].operands[0])?;
            let field = &self.objects.fields[fields[0]];
            let stride = field.array.map_or(8, |row| row.stride);
            place.constant -= i64::try_from(field.offset).unwrap_or(0);
            let index = self.distance(&place, i64::try_from(stride).unwrap_or(8));
            // Beyond the array there is no buffer: the access is out of bounds of the last one, wherever it is.
            let place = self.k.cast(index, invar_ir::Type::U64);
            let count = self.bits(Scalar::U64, roots.len() as u64);
            let is_beyond = self.op(Op::Ge, &[place, count]);
            let [no, yes] = [0, 1].map(|n| self.bits(Scalar::I64, n));
            let beyond = self.op(Op::Select, &[no, yes, is_beyond]);
            address.terms.push((beyond, BEYOND));
            let which = self.k.cast(index, invar_ir::Type::U32);
            address.choice = Some((which, roots));
        }
        Ok(address)
    }

    /// Declares the fields of a parameter that the kernel reads.
    pub fn declare_fields(&mut self, number: usize, bound: &mut Vec<Bound>) -> Done<()> {
        for field in 0..self.objects.fields.len() {
            let root = Root::Field(field);
            if self.objects.fields[field].param != number || !self.objects.is_read(root) {
                continue;
            }
            let Field { path, of, .. } = self.objects.fields[field].clone();
            let name = format!("{}{path}", self.f.params[number].name);
            let mut declared = None;
            if is_handle_type(&of) {
                let what = self.declare_handle(&name, &of)?;
                self.keep(root, what, (1, Scalar::U8));
            } else {
                let accesses = self.objects.accesses.get(&root).map_or(&[][..], |a| a);
                if let Some(access) = accesses.iter().find(|a| a.ty == Type::Pointer) {
                    self.at(self.f.insts[access.inst].location);
                    return Err(self.refuse(&format!("a pointer in memory (of `{name}`)")));
                }
                let reads = accesses.iter().any(|a| a.reads);
                let writes = accesses.iter().any(|a| a.writes);
                let debug = DebugType::Pointer(Box::new(of));
                let (granule_bytes, scalar) = self.objects.granule(root, Some(&debug));
                let access = match (reads, writes) {
                    (false, true) => Access::Write,
                    (_, true) => Access::ReadWrite,
                    (_, false) => Access::Read,
                };
                declared = as_written(Some(&debug), scalar);
                let memory = self.k.buffer(&name, access, scalar);
                self.keep(root, What::Granules(memory), (granule_bytes, scalar));
            }
            bound.push(Bound {
                name,
                index: None,
                length: None,
                declared,
            });
        }
        Ok(())
    }

    fn keep(&mut self, root: Root, what: What, (granule_bytes, scalar): (u64, Scalar)) {
        let object = Object {
            what,
            granule_bytes,
            scalar,
        };
        self.memory.insert(root, object);
    }
}
