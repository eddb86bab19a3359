//! From one function of LLVM IR to one kernel.
//!
//! Values of LLVM's have no sign: an integer is signed here where what computes it is, and `as_type` is put
//! in where another kind is needed. An address is an object and a distance in bytes, as a sum of values
//! times numbers, so that an index is told from it without a division where there is one.

use invar_ir::{Const, Op, Scalar, Type, Value};
use invar_llvm::foreign::{self, Binary, Compare, Convert, Kind, Operand, Ordered};
use smallvec::SmallVec;

use crate::lanes::matrix_scalar;
use crate::objects::{Root, odd_bits, scalar_of, with_sign};
use crate::translator::{Done, Translator, describe};
use crate::value::{Address, Null, Val, put_in};

impl Translator<'_> {
    // ---- phis ----

    /// The phis at the beginning of a block.
    pub fn phis(&self, block: usize) -> Vec<usize> {
        let f = self.f;
        let all = f.blocks[block].insts.iter().copied();
        all.take_while(|i| matches!(f.insts[*i].kind, Kind::Phi(_)))
            .filter(|i| self.objects.is_needed(*i))
            .collect()
    }

    /// The bytes that the distance of an address is counted in where ways meet.
    fn unit(&self, phi: usize) -> i64 {
        let roots = self.objects.roots_of(&Operand::Inst(phi));
        if roots.len() > 1 {
            return 1;
        }
        let granule = roots
            .first()
            .and_then(|root| self.memory.get(root))
            .map_or(1, |object| object.granule_bytes);
        match self.objects.alignment(&Operand::Inst(phi)) % granule.max(1) {
            0 => granule.max(1) as i64,
            _not_a_multiple => 1,
        }
    }

    /// The types of the values that stand for a phi.
    pub fn phi_types(&self, phi: usize) -> Done<Vec<Type>> {
        let f = self.f;
        match f.insts[phi].ty {
            foreign::Type::Pointer => {
                let mut types = vec![Type::Scalar(Scalar::I64)];
                if self.objects.roots_of(&Operand::Inst(phi)).len() > 1 {
                    types.push(Type::U32);
                }
                if self.nullable[phi] {
                    types.push(Type::BOOL);
                }
                Ok(types)
            }
            ty if self.lanes.is_together(phi) => match matrix_scalar(ty) {
                Some(scalar) => Ok(vec![Type::Scalar(scalar); 2]),
                None => Err(self.refuse(&describe(ty))),
            },
            ty => match self.value_type(ty)? {
                Type::Scalar(scalar) => Ok(vec![Type::Scalar(with_sign(scalar, self.signed[phi]))]),
                other => Ok(vec![other]),
            },
        }
    }

    /// The values that a phi has on a way.
    pub fn phi_values(&mut self, block: usize, from: usize) -> Done<Vec<Value>> {
        let f = self.f;
        let mut all = Vec::new();
        for phi in self.phis(block) {
            let operand = match self.ways.get(&(phi, from)) {
                Some(way) => &f.insts[phi].operands[*way],
                None => &Operand::Undefined,
            };
            let types = self.phi_types(phi)?;
            let value = self.operand(operand)?;
            all.extend(self.flat(phi, value, &types)?);
        }
        Ok(all)
    }

    fn flat(&mut self, phi: usize, value: Val, types: &[Type]) -> Done<Vec<Value>> {
        if let Val::Address(address) = &value
            && self.f.insts[phi].ty == foreign::Type::Pointer
        {
            let unit = self.unit(phi);
            let distance = self.distance(address, unit);
            let mut all = vec![self.signed(distance, true)];
            let roots = self.objects.roots_of(&Operand::Inst(phi));
            if roots.len() > 1 {
                all.push(self.which(address, &roots));
            }
            if self.nullable[phi] {
                all.push(self.is_null(address));
            }
            return Ok(all);
        }
        if self.lanes.is_together(phi) {
            return Ok(self.lane_elements(value, self.f.insts[phi].ty)?.to_vec());
        }
        match (value, types) {
            (Val::Lanes(elements), _) => {
                let ty = self.f.insts[phi].ty;
                Ok(vec![self.put_together(elements, ty)?])
            }
            (Val::One(value), [Type::Scalar(scalar)]) => Ok(vec![self.as_scalar(value, *scalar)]),
            (Val::One(value), _) => Ok(vec![value]),
            // A way on which nobody reads the value, which any will do for.
            (Val::Undefined | Val::Parts(_), types) => {
                types.iter().map(|ty| self.zero(*ty)).collect()
            }
            (Val::Address(_), _) => Err(self.refuse("an address as a number")),
        }
    }

    /// Gives the phis of a block the values that stand for them.
    pub fn bind(&mut self, block: usize, values: &[Value]) -> Done<()> {
        let f = self.f;
        let mut values = values.iter().copied();
        for phi in self.phis(block) {
            let inst = &f.insts[phi];
            let mut next = || values.next();
            let first = next();
            let Some(first) = first else {
                return Err(self.refuse("control flow of this form"));
            };
            let bound = if self.lanes.is_together(phi) {
                let Some(second) = next() else {
                    return Err(self.refuse("control flow of this form"));
                };
                Val::Lanes([first, second])
            } else if inst.ty == foreign::Type::Pointer {
                let roots = self.objects.roots_of(&Operand::Inst(phi));
                let mut address = Address::of(roots.first().copied());
                if address.root.is_some() {
                    let unit = self.unit(phi);
                    address.add(first, unit);
                }
                if roots.len() > 1
                    && let Some(which) = next()
                {
                    address.choice = Some((which, roots));
                }
                if self.nullable[phi]
                    && let Some(null) = next()
                {
                    address.null = Null::If(null);
                }
                Val::Address(address)
            } else {
                if !inst.name.is_empty() {
                    let name = inst.name.split('.').next().unwrap_or_default();
                    self.k.name(first, name);
                }
                Val::One(first)
            };
            self.values.insert(phi, bound);
        }
        for phi in self.phis(block) {
            self.take_apart(phi)?;
        }
        Ok(())
    }

    // ---- instructions ----

    /// Translates an instruction that leads nowhere else.
    pub fn inst(&mut self, number: usize) -> Done<()> {
        let f = self.f;
        let inst = &f.insts[number];
        if !self.objects.is_needed(number) {
            return Ok(());
        }
        self.at(inst.location);
        if let Some(result) = self.on_addresses(number)? {
            self.values.insert(number, result);
            return Ok(());
        }
        let result = match &inst.kind {
            Kind::Alloca(_) => Val::Address(Address::of(Some(Root::Variable(number)))),
            Kind::Load => self.load(number)?,
            Kind::Store => return self.store(number),
            Kind::Offset(constant, scales) => {
                let mut address = self.address(&inst.operands[0])?;
                address.constant = address.constant.wrapping_add(*constant);
                for (operand, scale) in inst.operands[1..].iter().zip(scales) {
                    self.step(&mut address, operand, *scale, 8)?;
                }
                self.shorten(&mut address);
                Val::Address(address)
            }
            Kind::Binary(op) => Val::One(self.binary(number, *op)?),
            Kind::Negate => {
                let x = self.one(number, 0)?;
                Val::One(self.op(Op::Neg, &[x]))
            }
            Kind::Compare(compare) if inst.types[0] == foreign::Type::Pointer => {
                Val::One(self.compare_addresses(number, *compare)?)
            }
            Kind::Compare(compare) => Val::One(self.compare(number, *compare)?),
            Kind::Convert(Convert::Bits)
                if [inst.ty, inst.types[0]]
                    .iter()
                    .any(|ty| matches!(ty, foreign::Type::Vector(..))) =>
            {
                self.element_bits(number)?
            }
            Kind::Convert(convert) => Val::One(self.convert(number, *convert)?),
            Kind::Select => self.select(number)?,
            Kind::Freeze => self.operand(&inst.operands[0])?,
            Kind::Call(name) => match self.call(number, name)? {
                Some(value) => value,
                None => return Ok(()),
            },
            Kind::ExtractValue(path) => self.extract(number, path)?,
            Kind::InsertValue(path) => self.insert(number, path)?,
            Kind::ExtractElement => self.extract_element(number)?,
            Kind::InsertElement => self.insert_element(number)?,
            Kind::Other(name) => return Err(self.refuse(&format!("LLVM's instruction `{name}`"))),
            Kind::Phi(_) | Kind::Jump(_) | Kind::Branch(..) | Kind::Return | Kind::Unreachable => {
                return Ok(());
            }
        };
        self.values.insert(number, result);
        self.take_apart(number)
    }

    fn load(&mut self, number: usize) -> Done<Val> {
        let f = self.f;
        let inst = &f.insts[number];
        let address = self.address(&inst.operands[0])?;
        if self.objects.are_handles(&inst.operands[0]) {
            // The address in a handle is that of its parameter; the properties of a sampler are the host's.
            return match scalar_of(inst.ty) {
                Some(scalar) => Ok(Val::One(self.bits(scalar, 0))),
                None => Ok(Val::Address(address)),
            };
        }
        if let Some(fields) = self.objects.read_fields(number) {
            let fields = fields.to_vec();
            return self.loaded_address(number, &fields).map(Val::Address);
        }
        Ok(Val::One(self.load_from(&address, inst.ty)?))
    }

    fn store(&mut self, number: usize) -> Done<()> {
        let f = self.f;
        let inst = &f.insts[number];
        if inst.operands[0] == Operand::Poison {
            return Err(self.undefined());
        }
        // Padding, which is not a location (L3): variables have a value from the start.
        if self.operand(&inst.operands[0])? == Val::Undefined {
            return Ok(());
        }
        let value = self.one(number, 0)?;
        let address = self.address(&inst.operands[1])?;
        self.store_to(&address, value, inst.types[0])
    }

    fn binary(&mut self, number: usize, op: Binary) -> Done<Value> {
        let f = self.f;
        let inst = &f.insts[number];
        let (mut a, mut b) = (self.one(number, 0)?, self.one(number, 1)?);
        let sign = match op {
            Binary::UDiv | Binary::URem | Binary::LShr => Some(false),
            Binary::SDiv | Binary::SRem | Binary::AShr => Some(true),
            _either => None,
        };
        match sign {
            Some(sign) => (a, b) = (self.signed(a, sign), self.signed(b, sign)),
            None => {
                // What is not a constant says the sign.
                let other = matches!(inst.operands[0], Operand::Bits(..));
                match self.scalar(if other { b } else { a }) {
                    Some(scalar) if other => a = self.as_scalar(a, scalar),
                    Some(scalar) => b = self.as_scalar(b, scalar),
                    None => {}
                }
            }
        }
        let is_bool = self.k.ty(a) == Type::BOOL;
        let odd = odd_bits(inst.ty);
        if odd.is_some() && sign == Some(true) {
            return Err(self.refuse(&describe(inst.ty)));
        }
        let op = match op {
            Binary::Add | Binary::Sub if is_bool => Op::Xor,
            Binary::Mul if is_bool => Op::And,
            Binary::Add | Binary::FAdd => Op::Add,
            Binary::Sub | Binary::FSub => Op::Sub,
            Binary::Mul | Binary::FMul => Op::Mul,
            Binary::UDiv | Binary::SDiv | Binary::FDiv => Op::Div,
            Binary::URem | Binary::SRem => Op::Rem,
            Binary::FRem => Op::Fmod,
            Binary::Shl => Op::Shl,
            Binary::LShr | Binary::AShr => Op::Shr,
            Binary::And => Op::And,
            Binary::Or => Op::Or,
            Binary::Xor => Op::Xor,
        };
        let result = self.op(op, &[a, b]);
        Ok(match odd {
            Some(bits) => self.low_bits(result, bits),
            None => result,
        })
    }

    /// The low bits of an integer, as an integer without a sign.
    fn low_bits(&mut self, value: Value, bits: u32) -> Value {
        let value = self.signed(value, false);
        let Some(scalar) = self.scalar(value) else {
            return value;
        };
        let mask = self.bits(scalar, (1 << bits) - 1);
        self.op(Op::And, &[value, mask])
    }

    fn compare(&mut self, number: usize, compare: Compare) -> Done<Value> {
        let (mut a, mut b) = (self.one(number, 0)?, self.one(number, 1)?);
        let (op, sign) = match compare {
            Compare::Eq => (Op::Eq, None),
            Compare::Ne => (Op::Ne, None),
            Compare::ULt => (Op::Lt, Some(false)),
            Compare::ULe => (Op::Le, Some(false)),
            Compare::UGt => (Op::Gt, Some(false)),
            Compare::UGe => (Op::Ge, Some(false)),
            Compare::SLt => (Op::Lt, Some(true)),
            Compare::SLe => (Op::Le, Some(true)),
            Compare::SGt => (Op::Gt, Some(true)),
            Compare::SGe => (Op::Ge, Some(true)),
            Compare::Float(with_nan, ordered) => {
                return Ok(self.compare_floats(a, b, with_nan, ordered));
            }
        };
        let ty = self.f.insts[number].types[0];
        if sign == Some(true) && odd_bits(ty).is_some() {
            return Err(self.refuse(&describe(ty)));
        }
        match sign {
            Some(sign) => (a, b) = (self.signed(a, sign), self.signed(b, sign)),
            None => {
                let first = matches!(self.f.insts[number].operands[0], Operand::Bits(..));
                match self.scalar(if first { b } else { a }) {
                    Some(scalar) if first => a = self.as_scalar(a, scalar),
                    Some(scalar) => b = self.as_scalar(b, scalar),
                    None => {}
                }
            }
        }
        Ok(self.op(op, &[a, b]))
    }

    /// A comparison that a NaN makes hold is the opposite of the opposite one.
    fn compare_floats(&mut self, a: Value, b: Value, with_nan: bool, ordered: Ordered) -> Value {
        match (with_nan, ordered) {
            (false, Ordered::Never) => self.constant(Const::from(false)),
            (true, Ordered::Always) => self.constant(Const::from(true)),
            (false, Ordered::Eq) => self.op(Op::Eq, &[a, b]),
            (false, Ordered::Lt) => self.op(Op::Lt, &[a, b]),
            (false, Ordered::Le) => self.op(Op::Le, &[a, b]),
            (false, Ordered::Gt) => self.op(Op::Gt, &[a, b]),
            (false, Ordered::Ge) => self.op(Op::Ge, &[a, b]),
            (true, Ordered::Ne) => self.op(Op::Ne, &[a, b]),
            (false, Ordered::Ne) => {
                let (less, more) = (self.op(Op::Lt, &[a, b]), self.op(Op::Gt, &[a, b]));
                self.op(Op::Or, &[less, more])
            }
            (false, Ordered::Always) => {
                let (x, y) = (self.op(Op::Eq, &[a, a]), self.op(Op::Eq, &[b, b]));
                self.op(Op::And, &[x, y])
            }
            (true, ordered) => {
                let opposite = match ordered {
                    Ordered::Never => Ordered::Always,
                    Ordered::Eq => Ordered::Ne,
                    Ordered::Lt => Ordered::Ge,
                    Ordered::Le => Ordered::Gt,
                    Ordered::Gt => Ordered::Le,
                    Ordered::Ge => Ordered::Lt,
                    Ordered::Ne => Ordered::Eq,
                    Ordered::Always => Ordered::Never,
                };
                let holds = self.compare_floats(a, b, false, opposite);
                self.op(Op::Not, &[holds])
            }
        }
    }

    fn convert(&mut self, number: usize, convert: Convert) -> Done<Value> {
        let inst = &self.f.insts[number];
        let (from, to) = (inst.types[0], self.value_type(inst.ty)?);
        let x = self.one(number, 0)?;
        let signed = |t: Type, sign: bool| match t {
            Type::Scalar(scalar) => Type::Scalar(with_sign(scalar, sign)),
            other => other,
        };
        let is_signed = matches!(convert, Convert::SExt | Convert::SignedToFloat);
        if odd_bits(from).is_some() && is_signed {
            return Err(self.refuse(&describe(from)));
        }
        Ok(match convert {
            Convert::Trunc if odd_bits(inst.ty).is_some() => {
                let narrow = self.signed(x, false);
                let narrow = self.k.cast(narrow, to);
                self.low_bits(narrow, odd_bits(inst.ty).unwrap_or(64))
            }
            Convert::Trunc if to == Type::BOOL => {
                let Some(scalar) = self.scalar(x) else {
                    return Err(self.refuse(&describe(from)));
                };
                let (one, zero) = (self.bits(scalar, 1), self.bits(scalar, 0));
                let bit = self.op(Op::And, &[x, one]);
                self.op(Op::Ne, &[bit, zero])
            }
            Convert::Trunc => {
                let is_signed = self.scalar(x).is_some_and(Scalar::is_signed_integer);
                self.k.cast(x, signed(to, is_signed))
            }
            Convert::ZExt if from == foreign::Type::Int(1) => self.k.cast(x, to),
            Convert::ZExt => {
                let x = self.signed(x, false);
                self.k.cast(x, to)
            }
            Convert::SExt if from == foreign::Type::Int(1) => {
                let one = self.k.cast(x, signed(to, true));
                self.op(Op::Neg, &[one])
            }
            Convert::SExt => {
                let x = self.signed(x, true);
                self.k.cast(x, signed(to, true))
            }
            Convert::UnsignedToFloat | Convert::SignedToFloat => {
                let x = self.signed(x, convert == Convert::SignedToFloat);
                self.k.cast(x, to)
            }
            Convert::FloatToSigned => self.k.cast(x, signed(to, true)),
            Convert::FloatToUnsigned | Convert::Float => self.k.cast(x, to),
            Convert::Bits => self.k.as_type(x, to),
        })
    }

    fn select(&mut self, number: usize) -> Done<Val> {
        let f = self.f;
        let inst = &f.insts[number];
        let condition = self.one(number, 0)?;
        if inst.ty == foreign::Type::Pointer {
            let (yes, no) = (
                self.address(&inst.operands[1])?,
                self.address(&inst.operands[2])?,
            );
            let roots = self.objects.roots_of(&Operand::Inst(number));
            let mut address = Address::of(yes.root.or(no.root));
            if roots.len() > 1 {
                let (a, b) = (self.which(&yes, &roots), self.which(&no, &roots));
                let which = self.op(Op::Select, &[b, a, condition]);
                address.root = roots.first().copied();
                address.choice = Some((which, roots));
            }
            let (a, b) = (self.distance(&yes, 1), self.distance(&no, 1));
            let (a, b) = (self.signed(a, true), self.signed(b, true));
            let distance = self.op(Op::Select, &[b, a, condition]);
            address.add(distance, 1);
            if yes.null != Null::Never || no.null != Null::Never {
                let (a, b) = (self.is_null(&yes), self.is_null(&no));
                address.null = Null::If(self.op(Op::Select, &[b, a, condition]));
            }
            return Ok(Val::Address(address));
        }
        if self.lanes.is_together(number) {
            let (yes, no) = (
                self.operand(&inst.operands[1])?,
                self.operand(&inst.operands[2])?,
            );
            let yes = self.lane_elements(yes, inst.ty)?;
            let no = self.lane_elements(no, inst.ty)?;
            let chosen = [0, 1].map(|n| self.op(Op::Select, &[no[n], yes[n], condition]));
            return Ok(Val::Lanes(chosen));
        }
        let (yes, mut no) = (self.one(number, 1)?, self.one(number, 2)?);
        match self.k.ty(yes) {
            Type::Scalar(scalar) => no = self.as_scalar(no, scalar),
            Type::SimdgroupMatrix { .. } => {
                let results = self.choose(condition, &[yes], &[no]);
                return Ok(Val::One(results[0]));
            }
            _other => {}
        }
        Ok(Val::One(self.op(Op::Select, &[no, yes, condition])))
    }

    /// Values by a condition, of any type.
    fn choose(&mut self, condition: Value, yes: &[Value], no: &[Value]) -> SmallVec<[Value; 1]> {
        self.k
            .if_values(condition, |_| yes.to_vec(), |_| no.to_vec())
    }

    fn compare_addresses(&mut self, number: usize, compare: Compare) -> Done<Value> {
        let f = self.f;
        let operands = &f.insts[number].operands;
        let (a, b) = (self.address(&operands[0])?, self.address(&operands[1])?);
        let is_one = self.lead_to_one(number);
        self.compare_two((&a, &b), is_one, compare)
    }

    // ---- aggregates ----

    fn extract(&mut self, number: usize, path: &[u32]) -> Done<Val> {
        let f = self.f;
        let inst = &f.insts[number];
        let Val::Parts(parts) = self.operand(&inst.operands[0])? else {
            return Err(self.undefined());
        };
        if let Some((_, part)) = parts.iter().find(|(at, _)| at == path) {
            return Ok(part.clone());
        }
        let inside: Vec<_> = parts
            .iter()
            .filter_map(|(at, part)| Some((at.strip_prefix(path)?.to_vec(), part.clone())))
            .collect();
        // What has no value has none in any part.
        let is_nothing =
            |(at, part): &(Vec<u32>, Val)| *part == Val::Undefined && path.starts_with(at);
        if inside.is_empty() && parts.iter().any(is_nothing) {
            return Ok(Val::Undefined);
        }
        if inside.is_empty() && inst.ty != foreign::Type::Aggregate {
            let ty = self.value_type(inst.ty)?;
            return Ok(Val::One(self.zero(ty)?));
        }
        Ok(Val::Parts(inside))
    }

    fn insert(&mut self, number: usize, path: &[u32]) -> Done<Val> {
        let f = self.f;
        let inst = &f.insts[number];
        let mut parts = match self.operand(&inst.operands[0])? {
            Val::Parts(parts) => parts,
            _nothing_yet => Vec::new(),
        };
        // A part of what had no value has one now.
        let is_nothing = |at: &[u32], part: &Val| *part == Val::Undefined && path.starts_with(at);
        parts.retain(|(at, part)| !at.starts_with(path) && !is_nothing(at, part));
        put_in(&mut parts, path, self.operand(&inst.operands[1])?);
        Ok(Val::Parts(parts))
    }
}
