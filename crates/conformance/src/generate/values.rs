//! Operations, constants, and values of a wanted type.

use std::sync::LazyLock;

use invar_ir::ops::{Instance, LaneRule, Meaning, ResultUniformity};
use invar_ir::{Const, Imm, Level, Op, Scalar, Type, Value};

use super::generator::{Floats, Generator, Known};

/// Every row of the op table with every combination of types that it takes.
static ROWS: LazyLock<Vec<(Op, Vec<Instance>)>> = LazyLock::new(|| {
    let rows = Op::all().map(|op| (op, op.row().signature.instances()));
    rows.collect()
});

/// Rows that look at the bits of a float, and of which operand.
fn looks_at_bits(op: Op) -> Option<usize> {
    match op {
        Op::AsType | Op::Signbit => Some(0),
        Op::Copysign => Some(1),
        _others_compute => None,
    }
}

impl Generator<'_> {
    /// A scalar that is likely to show an error.
    pub(super) fn interesting(&mut self, scalar: Scalar) -> Const {
        let width = scalar.bits();
        let mask = u64::MAX >> (64 - width);
        let sign = 1u64 << (width - 1);
        let random = self.random.bits();
        let small = self.random.below(20) as u64;
        let bits = if scalar == Scalar::Bool {
            random
        } else if scalar.is_integer() {
            match self.random.below(10) {
                0 => 0,
                1 => 1,
                2 => u64::MAX,
                3 => sign,
                4 => sign - 1,
                5 => random,
                6 => small.wrapping_neg(),
                _ => small,
            }
        } else {
            let small = invar_ir::text::data::random_scalar(scalar, random, 0).bits;
            let (mantissa, one) = match scalar {
                Scalar::F16 => (10, 0x3c00),
                Scalar::BF16 => (7, 0x3f80),
                Scalar::F64 => (52, 0x3ff0_0000_0000_0000),
                _single => (23, 0x3f80_0000),
            };
            let infinity = (mask >> 1) & !((1 << mantissa) - 1);
            let signed = if random & 1 == 0 { 0 } else { sign };
            signed
                | match self.random.below(16) {
                    0 => 0,
                    1 => infinity,
                    2 => infinity | 1 << (mantissa - 1),
                    3 => random & ((1 << mantissa) - 1),
                    4 => infinity - 1,
                    5 => 1 << mantissa,
                    6 => random & (sign - 1),
                    7..=9 => one,
                    // Around 1, up to 16.
                    10..=12 => one + (random & ((4 << mantissa) - 1)),
                    _ => small,
                }
        };
        let bits = bits & mask;
        Const { scalar, bits }
    }

    /// A value of this type: one that is known, or one made here.
    pub(super) fn get(&mut self, ty: Type) -> Known {
        let fits = self.known.iter().copied();
        let fits: Vec<Known> = fits.filter(|known| known.ty == ty).collect();
        if !fits.is_empty() && !self.random.one_in(4) {
            // Rather a late one.
            let back = self
                .random
                .below(fits.len())
                .min(self.random.below(fits.len()));
            return fits[fits.len() - 1 - back];
        }
        self.make(ty)
    }

    fn make(&mut self, ty: Type) -> Known {
        let known = |value: Value, level: Level| Known { value, ty, level };
        match ty {
            Type::Scalar(scalar) => {
                if self.random.one_in(2) {
                    let scalars = self.known.iter().copied();
                    let scalars: Vec<Known> = scalars
                        .filter(|k| matches!(k.ty, Type::Scalar(_)) && k.ty != ty)
                        .collect();
                    if !scalars.is_empty() {
                        let from = self.random.pick(&scalars);
                        return known(self.k.cast(from.value, ty), from.level);
                    }
                }
                let constant = self.interesting(scalar);
                known(self.k.constant(constant), Level::Grid)
            }
            Type::Vector(scalar, n) => {
                let count = if self.random.one_in(3) { 1 } else { n };
                let parts = (0..count).map(|_| self.get(Type::Scalar(scalar)));
                let parts: Vec<Known> = parts.collect();
                self.construct(ty, &parts)
            }
            Type::Matrix {
                scalar,
                columns,
                rows,
            } => {
                let parts = (0..columns).map(|_| self.get(Type::Vector(scalar, rows)));
                let parts: Vec<Known> = parts.collect();
                self.construct(ty, &parts)
            }
            Type::SimdgroupMatrix { .. } | Type::Event => {
                let value = self.constant_u32(0);
                known(value, Level::Grid)
            }
        }
    }

    fn construct(&mut self, ty: Type, parts: &[Known]) -> Known {
        let values: Vec<Value> = parts.iter().map(|p| p.value).collect();
        let level = parts.iter().map(|p| p.level).min().unwrap_or(Level::Grid);
        Known {
            value: self.k.construct(ty, &values),
            ty,
            level,
        }
    }

    /// The same float, 0 where it is NaN; the bits of NaNs are not promised (R4).
    pub(super) fn without_nan(&mut self, value: Value) -> Value {
        let ty = self.k.ty(value);
        if !ty.scalar().is_some_and(Scalar::is_float) {
            return value;
        }
        let scalar = ty.scalar().unwrap_or(Scalar::F32);
        let mut zero = self.k.constant(Const { scalar, bits: 0 });
        if let Type::Vector(..) = ty {
            zero = self.k.construct(ty, &[zero]);
        }
        let nan = self.k.isnan(value);
        self.k.select(value, zero, nan)
    }

    fn in_palette(&self, ty: Type) -> bool {
        ty.scalar().is_some_and(|s| self.palette.contains(&s))
    }

    /// An operation of the op table on what is known.
    pub(super) fn operation(&mut self) {
        let collective = self.simdgroup.is_some() && self.control >= Level::Simdgroup;
        for _attempt in 0..60 {
            let rows = &*ROWS;
            let (op, instances) = &rows[self.random.below(rows.len())];
            let lanes = matches!(op.row().meaning, Meaning::Lanes(..));
            if !self.allows(*op) || instances.is_empty() || (lanes && !collective) {
                continue;
            }
            let (imm, types) = &instances[self.random.below(instances.len())];
            let Ok(result) = op.result_type(*imm, types) else {
                continue;
            };
            if !types.iter().all(|ty| self.in_palette(*ty)) || !self.in_palette(result) {
                continue;
            }
            self.row(*op, *imm, types);
            return;
        }
    }

    fn row(&mut self, op: Op, imm: Imm, types: &[Type]) {
        let mut args: Vec<Known> = types.iter().map(|ty| self.get(*ty)).collect();
        if let Some(operand) = looks_at_bits(op) {
            args[operand].value = self.without_nan(args[operand].value);
        }
        if op == Op::ShrExact {
            // It is a finding where bits are lost (L4), so they are none.
            let shifted = [args[0].value, args[1].value];
            args[0].value = self.k.op(Op::Shl, Imm::None, &shifted);
            args[0].level = args[0].level.min(args[1].level);
        }
        let values: Vec<Value> = args.iter().map(|a| a.value).collect();
        let operands = args.iter().map(|a| a.level).min().unwrap_or(Level::Grid);
        let level = match (op.row().meaning, op.row().uniformity) {
            // Which lane is asked may differ.
            (Meaning::Lanes(_, LaneRule::Broadcast), _) => Level::Varying,
            (_, ResultUniformity::Operands) => operands,
            (_, ResultUniformity::Over(scope)) => scope.into(),
            (_, ResultUniformity::Varying) => Level::Varying,
        };
        let value = self.k.op(op, imm, &values);
        self.add(value, level);
    }

    /// A few operations on small integers held in floats, and an integer or a comparison out of them:
    /// exact whatever the device does with floats.
    pub(super) fn exact_floats(&mut self) {
        if self.options.floats == Floats::None {
            return;
        }
        let floats = self.options.scalars.iter().copied();
        let floats: Vec<Scalar> = floats.filter(|s| s.is_float()).collect();
        if floats.is_empty() {
            return;
        }
        let scalar = self.random.pick(&floats);
        let shape = |scalar: Scalar, n: u8| match n {
            1 => Type::Scalar(scalar),
            n => Type::Vector(scalar, n),
        };
        let n = 1 + self.random.below(4) as u8;
        // Each float, and the largest magnitude that it can have: bfloat16 holds integers up to 256.
        let mut values: Vec<(Value, u32)> = Vec::new();
        for _ in 0..2 {
            let from = self.get(shape(Scalar::I32, n)).value;
            let seven = self.k.const_i32(4);
            let seven = match n {
                1 => seven,
                n => self.k.construct(Type::Vector(Scalar::I32, n), &[seven]),
            };
            let small = self.k.rem(from, seven);
            values.push((self.k.cast(small, shape(scalar, n)), 3));
        }
        for _ in 0..1 + self.random.below(4) {
            let (a, most_a) = self.random.pick(&values);
            let (b, most_b) = self.random.pick(&values);
            let k = &mut self.k;
            let next = match self.random.below(11) {
                0 => (k.add(a, b), most_a + most_b),
                1 => (k.sub(a, b), most_a + most_b),
                2 => (k.mul(a, b), most_a * most_b),
                3 => (k.fma(a, b, a), most_a * most_b + most_a),
                4 => (k.min(a, b), most_a.max(most_b)),
                5 => (k.fmax(a, b), most_a.max(most_b)),
                6 => (k.neg(a), most_a),
                7 => (k.abs(a), most_a),
                8 => (k.floor(a), most_a),
                9 => (k.trunc(a), most_a),
                _ => {
                    let less = k.lt(a, b);
                    (k.select(a, b, less), most_a.max(most_b))
                }
            };
            if next.1 <= 255 {
                values.push(next);
            }
        }
        let (a, _) = values[values.len() - 1];
        let (b, _) = self.random.pick(&values);
        let out = match self.random.below(3) {
            0 => self.k.lt(a, b),
            1 => self.k.eq(a, b),
            _ => self.k.cast(a, shape(Scalar::I32, n)),
        };
        self.add(out, Level::Varying);
    }

    /// A condition: rather one that splits the threads.
    pub(super) fn condition(&mut self) -> Value {
        if self.random.one_in(3) {
            return self.get(Type::BOOL).value;
        }
        let number = match self.random.below(3) {
            0 => self.lane,
            1 => self.thread,
            _ => self.get(Type::U32).value,
        };
        let divisor = 2 + self.random_small(5);
        let divisor = self.constant_u32(divisor);
        let rest = self.k.rem(number, divisor);
        let limit = 1 + self.random_small(3);
        let limit = self.constant_u32(limit);
        match self.random.below(3) {
            0 => self.k.lt(rest, limit),
            1 => self.k.ge(rest, limit),
            _ => self.k.eq(rest, limit),
        }
    }

    /// A scalar of this type that is certainly uniform over a threadgroup.
    pub(super) fn uniform(&mut self, scalar: Scalar) -> Value {
        let ty = Type::Scalar(scalar);
        let fits = self.known.iter().copied();
        let fits: Vec<Known> = fits
            .filter(|k| k.level >= Level::Threadgroup && matches!(k.ty, Type::Scalar(_)))
            .collect();
        if fits.is_empty() || self.random.one_in(4) {
            let constant = self.interesting(scalar);
            return self.k.constant(constant);
        }
        let from = self.random.pick(&fits);
        if from.ty == ty {
            from.value
        } else {
            self.k.cast(from.value, ty)
        }
    }

    /// Whether operations of this row may be generated.
    fn allows(&self, op: Op) -> bool {
        op.row().capability == invar_ir::ops::Capability::Core || self.simdgroup.is_some()
    }
}
