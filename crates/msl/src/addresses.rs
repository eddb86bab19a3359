//! Addresses as numbers, such as `(ulong(p) & 15) == 0`.
//!
//! Such a number stays an address for as long as what is done with it has a meaning whatever the number is: it goes on by
//! a number, it becomes a pointer again, it is compared with another address or subtracted from one, or of its low bits
//! something is asked. These are those of its distance from where its object begins, which is at a multiple of
//! [`Translator::begins_at`].
//!
//! Deliberately absent: any other use, which is refused.

use invar_ir::{Op, Scalar, Type, Value};
use invar_llvm::foreign::{self, Binary, Compare, Kind, Operand};

use crate::objects::{Root, is_address_of, is_number_of};
use crate::translator::{Done, Translator};
use crate::value::{Address, Null, Val};

/// The bytes that an argument of a launch begins at a multiple of, as memory that a device gives out.
const ARGUMENT_BYTES: u64 = 256;
/// Those that other objects do.
const OBJECT_BYTES: u64 = 16;

impl Translator<'_> {
    /// What an instruction makes of operands of which one is an address as a number; `None` if none is.
    pub fn on_addresses(&mut self, number: usize) -> Done<Option<Val>> {
        if !self.has_address_numbers {
            return Ok(None);
        }
        let f = self.f;
        let inst = &f.insts[number];
        if is_number_of(&inst.kind) || is_address_of(&inst.kind) {
            return match self.operand(&inst.operands[0])? {
                Val::Address(address) => Ok(Some(Val::Address(address))),
                _a_number => Err(self.refuse("a number as an address")),
            };
        }
        let is_known = matches!(
            inst.kind,
            Kind::Binary(_) | Kind::Compare(_) | Kind::Convert(_)
        );
        if !is_known || inst.types[0] == foreign::Type::Pointer {
            return Ok(None);
        }
        let mut operands = Vec::new();
        for operand in &inst.operands {
            let is_address = match operand {
                Operand::Inst(of) => matches!(self.values.get(of), Some(Val::Address(_))),
                _other => false,
            };
            operands.push(match is_address {
                true => Some(self.address(operand)?),
                false => None,
            });
        }
        let made = match (&operands[..], &inst.kind) {
            (all, _) if all.iter().all(Option::is_none) => return Ok(None),
            ([Some(address)], Kind::Convert(foreign::Convert::Trunc)) => {
                Some(Val::Address(address.clone()))
            }
            ([Some(a), Some(b)], Kind::Binary(Binary::Sub)) if a.root == b.root => {
                let has_choice = a.choice.is_some() || b.choice.is_some();
                if has_choice && !self.lead_to_one(number) {
                    return Err(self.refuse(
                        "the distance of two pointers that may lead to different objects, each to one of several,",
                    ));
                }
                Some(Val::One(self.between(a, b)))
            }
            ([Some(address), None], Kind::Binary(op)) => {
                let by = &inst.operands[1];
                self.binary_of_address(address.clone(), *op, by, inst.ty)?
            }
            ([None, Some(address)], Kind::Binary(op @ (Binary::Add | Binary::And))) => {
                let by = &inst.operands[0];
                self.binary_of_address(address.clone(), *op, by, inst.ty)?
            }
            (_, Kind::Compare(compare)) if inst.types[0] == foreign::Type::Int(64) => {
                self.compared_numbers(number, *compare)?.map(Val::One)
            }
            _other => None,
        };
        match made {
            Some(made) => Ok(Some(made)),
            None => Err(self.refuse(
                "an address as a number, but for its low bits, steps from it, and its distance from another of the \
                 same object,",
            )),
        }
    }

    /// The bytes from one address of an object to another.
    fn between(&mut self, a: &Address, b: &Address) -> Value {
        let (a, b) = (self.distance(a, 1), self.distance(b, 1));
        let (a, b) = (self.signed(a, false), self.signed(b, false));
        self.op(Op::Sub, &[a, b])
    }

    fn binary_of_address(
        &mut self,
        mut address: Address,
        op: Binary,
        by: &Operand,
        ty: foreign::Type,
    ) -> Done<Option<Val>> {
        let known = match by {
            Operand::Bits(foreign::Type::Int(bits), number) => {
                let shift = 64 - (*bits).min(64);
                Some(((*number << shift) as i64) >> shift)
            }
            _computed => None,
        };
        Ok(match (op, known) {
            (Binary::Add | Binary::Sub, _) if ty == foreign::Type::Int(64) => {
                let scale = if op == Binary::Add { 1 } else { -1 };
                self.step(&mut address, by, scale, 8)?;
                Some(Val::Address(address))
            }
            (Binary::And, Some(mask)) if mask >= 0 => {
                let low = self.low_bits_of_address(&address, mask as u64, ty);
                low.map(Val::One)
            }
            (Binary::URem, Some(by)) if by > 0 && (by as u64).is_power_of_two() => {
                let low = self.low_bits_of_address(&address, by as u64 - 1, ty);
                low.map(Val::One)
            }
            // Down to a multiple.
            (Binary::And, Some(mask)) if ty == foreign::Type::Int(64) => {
                let low = self.low_bits_of_address(&address, !mask as u64, ty);
                low.map(|low| {
                    let low = self.signed(low, true);
                    address.add(low, -1);
                    Val::Address(address)
                })
            }
            _other => None,
        })
    }

    /// Low bits of an address, if where its object begins has none of them.
    fn low_bits_of_address(
        &mut self,
        address: &Address,
        mask: u64,
        ty: foreign::Type,
    ) -> Option<Value> {
        let begins_at = self.begins_at(address)?;
        if mask >= begins_at {
            return None;
        }
        let distance = self.distance(address, 1);
        let distance = self.signed(distance, false);
        let mask = self.bits(Scalar::U64, mask);
        let low = self.op(Op::And, &[distance, mask]);
        Some(match ty {
            foreign::Type::Int(32) => self.k.cast(low, Type::U32),
            _of_64_bits => low,
        })
    }

    /// The bytes that the object of an address begins at a multiple of.
    fn begins_at(&self, address: &Address) -> Option<u64> {
        let f = self.f;
        let of = |root: &Root| match root {
            Root::Param(number) => {
                let mut all = f.params[*number].annotations.iter();
                match all.any(|(name, _)| name == "msl.threadgroup") {
                    true => OBJECT_BYTES,
                    false => ARGUMENT_BYTES,
                }
            }
            Root::Field(_) => ARGUMENT_BYTES,
            Root::Variable(_) | Root::Global(_) => OBJECT_BYTES,
        };
        match (&address.choice, &address.root) {
            _ if address.null != Null::Never => None,
            (Some((_, roots)), _) => roots.iter().map(of).min(),
            (None, Some(root)) => Some(of(root)),
            (None, None) => None,
        }
    }

    /// A comparison of numbers of which one is an address.
    fn compared_numbers(&mut self, number: usize, compare: Compare) -> Done<Option<Value>> {
        let f = self.f;
        let mut both = Vec::new();
        for operand in &f.insts[number].operands {
            both.push(match operand {
                Operand::Bits(_, 0) => Address::of(None),
                _other => match self.operand(operand)? {
                    Val::Address(address) => address,
                    _a_number => return Ok(None),
                },
            });
        }
        let is_one = self.lead_to_one(number);
        self.compare_two((&both[0], &both[1]), is_one, compare)
            .map(Some)
    }
}
