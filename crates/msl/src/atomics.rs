//! Atomics on elements of memory.

use invar_ir::{AddressSpace, AtomicOp, Order, Place, Scalar, Scope, Value};
use invar_llvm::foreign::Operand;

use crate::objects::scalar_of;
use crate::translator::{Done, Translator};
use crate::value::{Address, Val};

/// What a function of the headers takes and gives, by the end of its name.
pub(crate) fn suffix(name: &str) -> Option<Scalar> {
    match name {
        "b1" => Some(Scalar::Bool),
        other => Scalar::from_name(other),
    }
}

impl Translator<'_> {
    pub fn atomic(&mut self, number: usize, op: &str, scalar: &str) -> Done<Option<Val>> {
        let address = self.address(&self.f.insts[number].operands[0])?;
        let Some(asked) = suffix(scalar) else {
            return Err(self.refuse("an atomic of this type"));
        };
        let old = self.atomic_at(number, op, asked, &address)?;
        Ok(old.map(Val::One))
    }

    /// An atomic, by the word for it.
    pub fn atomic_op(&self, word: &str) -> Done<AtomicOp> {
        Ok(match word {
            "load" => AtomicOp::Load,
            "store" => AtomicOp::Store,
            "exchange" => AtomicOp::Exchange,
            "compare_exchange" => AtomicOp::CompareExchange,
            "add" => AtomicOp::Add,
            "sub" => AtomicOp::Sub,
            "min" => AtomicOp::Min,
            "max" => AtomicOp::Max,
            "and" => AtomicOp::And,
            "or" => AtomicOp::Or,
            "xor" => AtomicOp::Xor,
            other => return Err(self.refuse(&format!("the atomic `{other}`"))),
        })
    }

    /// An atomic at an address, which may lead to one of several objects.
    fn atomic_at(
        &mut self,
        number: usize,
        op: &str,
        asked: Scalar,
        address: &Address,
    ) -> Done<Option<Value>> {
        let f = self.f;
        let inst = &f.insts[number];
        let wanted = scalar_of(inst.ty).unwrap_or(asked);
        if let Some((is_first, first, rest)) = self.first_and_rest(address) {
            let mut sides = Vec::new();
            for side in [first, rest] {
                self.open(&[]);
                if let Some(old) = self.atomic_at(number, op, asked, &side)? {
                    let old = self.as_scalar(old, wanted);
                    self.k.yield_(&[old]);
                }
                sides.push(self.close());
            }
            let no = sides.pop().unwrap_or_default();
            let yes = sides.pop().unwrap_or_default();
            let results = self.k.if_regions(is_first, yes, no);
            return Ok(results.first().copied());
        }
        let (memory, index, object) = self.granules(address, asked.size_bytes())?;
        let op = self.atomic_op(op)?;
        if asked.size_bytes() != object.granule_bytes {
            return Err(self.refuse("memory that is accessed by atomics and by narrower accesses"));
        }
        // An order of signs decides only for the least and the greatest.
        if matches!(op, AtomicOp::Min | AtomicOp::Max) && asked != object.scalar {
            return Err(self.refuse(
                "the least or the greatest, by atomics, of one object with and without a sign",
            ));
        }
        let is_sum = matches!(op, AtomicOp::Add | AtomicOp::Sub);
        if is_sum && asked.is_float() != object.scalar.is_float() {
            return Err(self.refuse(
                "an atomic sum of floats on memory with atomics of integers, or the other way round,",
            ));
        }
        let mut arguments = Vec::new();
        for operand in 1..=op.operand_count() {
            let value = self.one(number, operand)?;
            arguments.push(self.as_scalar(value, object.scalar));
        }
        let order = match inst.operands.get(1 + op.operand_count()) {
            Some(Operand::Bits(_, order)) => *order as usize,
            _computed => return Err(self.refuse("an atomic whose order is computed")),
        };
        let order = Order::ALL.get(order).copied().unwrap_or_default();
        let is_device = self
            .k
            .memory(memory)
            .is_some_and(|m| m.space == AddressSpace::Device);
        let scope = if is_device {
            Scope::Device
        } else {
            Scope::Threadgroup
        };
        let place = Place::element(memory, index);
        let results = self.k.atomic(op, place, &arguments, order, scope);
        Ok(results.first().map(|old| match self.scalar(*old) {
            Some(found) if found.is_integer() && wanted.is_integer() => *old,
            _other => self.as_scalar(*old, wanted),
        }))
    }
}
