//! What is computed of addresses: how far they are from where their objects begin, whether they are null, and which of
//! two comes first.

use invar_ir::{Const, Memory, Op, ParamKind, Place, Scalar, Type, Value};
use invar_llvm::foreign::{self, Binary, Compare, Kind, Operand};

use crate::objects::{Root, gcd};
use crate::translator::{Done, Translator};
use crate::value::{Address, Null, Object, Val, What};

/// Addresses of more terms are summed up.
const MOST_TERMS: usize = 16;

impl Translator<'_> {
    /// The distance of an address from its root, in so many bytes, a power of two. What is not a multiple by
    /// itself is added up in bytes, so that an index stays one in what is.
    pub fn distance(&mut self, address: &Address, unit: i64) -> Value {
        self.distance_by(address, unit, Op::Shr)
    }

    pub fn distance_by(&mut self, address: &Address, unit: i64, shift: Op) -> Value {
        let (whole, odd): (Vec<_>, Vec<_>) = address
            .terms
            .iter()
            .copied()
            .partition(|(_, s)| s % unit == 0);
        let mut total = None;
        let mut rest = address.constant;
        if !odd.is_empty() || rest % unit != 0 {
            // The constant goes where it makes a multiple, as far as that can be seen.
            let constant = if rest % unit == 0 {
                0
            } else {
                std::mem::take(&mut rest)
            };
            let bytes = self.sum(None, &odd, 1, constant);
            let by = self.bits(Scalar::I64, u64::from(unit.trailing_zeros()));
            total = Some(self.op(shift, &[bytes, by]));
        }
        self.sum(total, &whole, unit, rest / unit)
    }

    /// Values times numbers, each of these divided by a step, and a number, on top of a value.
    pub fn sum(
        &mut self,
        mut total: Option<Value>,
        terms: &[(Value, i64)],
        step: i64,
        constant: i64,
    ) -> Value {
        for (value, scale) in terms {
            let term = match scale / step {
                1 => *value,
                scale => {
                    let by = self.bits(Scalar::I64, scale as u64);
                    self.op(Op::Mul, &[*value, by])
                }
            };
            total = Some(match total {
                None => term,
                Some(sum) => self.op(Op::Add, &[sum, term]),
            });
        }
        match total {
            None => self.bits(Scalar::I64, constant as u64),
            Some(sum) if constant == 0 => sum,
            Some(sum) => {
                let more = self.bits(Scalar::I64, constant as u64);
                self.op(Op::Add, &[sum, more])
            }
        }
    }

    /// Goes on from an address by an operand times a number; sums in it are taken apart.
    pub fn step(
        &mut self,
        address: &mut Address,
        operand: &Operand,
        scale: i64,
        depth: u32,
    ) -> Done<()> {
        let f = self.f;
        if let Operand::Bits(foreign::Type::Int(bits), number) = operand {
            let shift = 64 - (*bits).min(64);
            let number = ((*number << shift) as i64) >> shift;
            address.constant = address.constant.wrapping_add(number.wrapping_mul(scale));
            return Ok(());
        }
        if let Operand::Inst(number) = operand
            && depth > 0
            && f.insts[*number].ty == foreign::Type::Int(64)
            && let Kind::Binary(op) = f.insts[*number].kind
        {
            let parts = &f.insts[*number].operands;
            match (op, &parts[1]) {
                (Binary::Add, _) => {
                    self.step(address, &parts[0], scale, depth - 1)?;
                    return self.step(address, &parts[1], scale, depth - 1);
                }
                (Binary::Sub, _) => {
                    self.step(address, &parts[0], scale, depth - 1)?;
                    return self.step(address, &parts[1], scale.wrapping_neg(), depth - 1);
                }
                (Binary::Mul, Operand::Bits(_, by)) => {
                    return self.step(
                        address,
                        &parts[0],
                        scale.wrapping_mul(*by as i64),
                        depth - 1,
                    );
                }
                (Binary::Shl, Operand::Bits(_, by)) if *by < 63 => {
                    return self.step(address, &parts[0], scale.wrapping_mul(1 << by), depth - 1);
                }
                _other => {}
            }
        }
        let Val::One(value) = self.operand(operand)? else {
            return Err(self.refuse("an index of this form"));
        };
        let value = match self.scalar(value).map(Scalar::bits) {
            Some(64) => self.signed(value, true),
            _narrower => {
                let signed = self.signed(value, true);
                self.k.cast(signed, Type::Scalar(Scalar::I64))
            }
        };
        address.add(value, scale);
        Ok(())
    }

    /// Sums up what an address of very many terms is away from its object, or each access by one that others come from
    /// would sum up all that these have.
    pub fn shorten(&mut self, address: &mut Address) {
        if address.terms.len() <= MOST_TERMS {
            return;
        }
        let scales = address.terms.iter().map(|(_, scale)| scale.unsigned_abs());
        let unit = i64::try_from(scales.fold(0, gcd)).unwrap_or(1);
        let away = Address {
            constant: 0,
            ..address.clone()
        };
        let sum = self.distance(&away, unit);
        let sum = self.signed(sum, true);
        address.terms.clear();
        address.add(sum, unit);
    }

    /// Which of some objects an address leads to.
    pub fn which(&mut self, address: &Address, roots: &[Root]) -> Value {
        let place = |root: &Root| roots.iter().position(|r| r == root).unwrap_or(0) as u32;
        let Some((which, own)) = &address.choice else {
            let place = address.root.as_ref().map_or(0, place);
            return self.constant(Const::from(place));
        };
        if own == roots {
            return *which;
        }
        let mut number = self.constant(Const::from(own.first().map_or(0, place)));
        for (old, root) in own.iter().enumerate().skip(1) {
            let (old, new) = (
                self.constant(Const::from(old as u32)),
                self.constant(Const::from(place(root))),
            );
            let is = self.op(Op::Eq, &[*which, old]);
            number = self.op(Op::Select, &[number, new, is]);
        }
        number
    }

    pub fn is_null(&mut self, address: &Address) -> Value {
        match address.null {
            Null::Never => match self.absent(address) {
                Some(is_absent) => is_absent,
                None => self.constant(Const::from(false)),
            },
            Null::Always => self.constant(Const::from(true)),
            Null::If(value) => value,
        }
    }

    /// Whether a launch leaves out the buffer that an address is the beginning of: it then has no elements.
    fn absent(&mut self, address: &Address) -> Option<Value> {
        let is_begin = address.choice.is_none() && address.constant == 0;
        let root = address
            .root
            .filter(|_| is_begin && address.terms.is_empty())?;
        let What::Granules(memory @ Memory::Param(number)) = self.memory.get(&root)?.what else {
            return None;
        };
        let param = self.k.kernel_mut().params.get(number as usize)?;
        if !matches!(param.kind, ParamKind::Buffer { .. }) {
            return None;
        }
        let length = self.k.buffer_length(memory);
        let zero = self.constant(Const::from(0u64));
        Some(self.op(Op::Eq, &[length, zero]))
    }

    /// Whether two addresses that an instruction takes lead to one object, whichever of several that is.
    pub fn lead_to_one(&self, number: usize) -> bool {
        let operands = &self.f.insts[number].operands;
        let of = |operand: usize| self.objects.decided(self.f, operands.get(operand)?);
        let known = |at: &Operand| matches!(at, Operand::Inst(_) | Operand::Param(_));
        of(0).is_some_and(|at| known(&at) && of(1) == Some(at))
    }

    /// Compares two addresses, of which is known whether they lead to one object.
    pub fn compare_two(
        &mut self,
        (a, b): (&Address, &Address),
        is_one: bool,
        compare: Compare,
    ) -> Done<Value> {
        let has_choice = a.choice.is_some() || b.choice.is_some();
        let equal = match (a.root, b.root) {
            (None, _) => self.is_null(b),
            (_, None) => self.is_null(a),
            (Some(_), Some(_)) if has_choice && !is_one => match compare {
                Compare::Eq | Compare::Ne => self.is_same_place(a, b),
                _order => {
                    return Err(self.refuse(
                        "an order of two pointers that may lead to different objects, each to one of several,",
                    ));
                }
            },
            (Some(x), Some(y)) if x == y || has_choice => {
                let (x, y) = (self.distance(a, 1), self.distance(b, 1));
                let (x, y) = (self.signed(x, true), self.signed(y, true));
                match compare {
                    Compare::Eq | Compare::Ne => self.op(Op::Eq, &[x, y]),
                    Compare::ULt => return Ok(self.op(Op::Lt, &[x, y])),
                    Compare::ULe => return Ok(self.op(Op::Le, &[x, y])),
                    Compare::UGt => return Ok(self.op(Op::Gt, &[x, y])),
                    Compare::UGe => return Ok(self.op(Op::Ge, &[x, y])),
                    _other => return Err(self.refuse("a comparison of addresses of this form")),
                }
            }
            (Some(x), Some(y)) => match self.shared.get(&pair(x, y)) {
                Some(shared) => {
                    let shared = self.is_shared(*shared);
                    let (x, y) = (self.distance(a, 1), self.distance(b, 1));
                    let (x, y) = (self.signed(x, true), self.signed(y, true));
                    let same = self.op(Op::Eq, &[x, y]);
                    self.op(Op::And, &[shared, same])
                }
                None => self.constant(Const::from(false)),
            },
        };
        match compare {
            Compare::Eq => Ok(equal),
            Compare::Ne => Ok(self.op(Op::Not, &[equal])),
            _order => Err(self.refuse("an order of addresses of two objects")),
        }
    }

    /// Whether two addresses, each of one of several objects, are one place.
    fn is_same_place(&mut self, a: &Address, b: &Address) -> Value {
        let mut roots = Vec::new();
        for address in [a, b] {
            match &address.choice {
                Some((_, all)) => roots.extend(all),
                None => roots.extend(address.root),
            }
        }
        roots.sort_unstable();
        roots.dedup();
        let (x, y) = (self.which(a, &roots), self.which(b, &roots));
        let same = self.op(Op::Eq, &[x, y]);
        let (x, y) = (self.distance(a, 1), self.distance(b, 1));
        let (x, y) = (self.signed(x, true), self.signed(y, true));
        let equal = self.op(Op::Eq, &[x, y]);
        self.op(Op::And, &[same, equal])
    }

    /// What a launch says of two parameters.
    fn is_shared(&mut self, memory: Memory) -> Value {
        let zero = self.constant(Const::from(0u32));
        let said = self.k.load(Place::element(memory, zero));
        self.op(Op::Ne, &[said, zero])
    }

    /// Of an address that leads to one of several objects: whether it is the first, that, and the others.
    pub fn first_and_rest(&mut self, address: &Address) -> Option<(Value, Address, Address)> {
        let (which, roots) = address.choice.as_ref()?;
        let zero = self.constant(Const::from(0u32));
        let is_first = self.op(Op::Eq, &[*which, zero]);
        let of = |root: Option<&Root>| Address {
            root: root.copied(),
            choice: None,
            ..address.clone()
        };
        let mut rest = of(roots.get(1));
        if roots.len() > 2 {
            let one = self.constant(Const::from(1u32));
            rest.choice = Some((self.op(Op::Sub, &[*which, one]), roots[1..].to_vec()));
        }
        Some((is_first, of(roots.first()), rest))
    }

    pub fn object(&self, address: &Address) -> Done<Object> {
        let Some(root) = address.root else {
            return Err(self.refuse("an access through a null pointer"));
        };
        if address.choice.is_some() {
            return Err(self.refuse("this use of a pointer that leads to one of several objects"));
        }
        match self.memory.get(&root) {
            Some(object) => Ok(object.clone()),
            None => Err(self.refuse("an access to this object")),
        }
    }
}

/// Two objects in the order of their numbers.
pub(crate) fn pair(a: Root, b: Root) -> (Root, Root) {
    (a.min(b), a.max(b))
}
