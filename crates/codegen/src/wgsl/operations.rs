//! Rows of the op table as WGSL expressions.
//!
//! Operands are names or literals, so an expression may repeat them. What WGSL has only for scalars is
//! written component by component.

use invar_ir::ops::Meaning;
use invar_ir::{Const, FloatMode, Imm, Inst, Op, Scalar, Span, Type, Value};

use super::fused::SUM;
use super::helpers::Helper;
use super::interface::Fma;
use super::types;
use super::types::{
    COMPONENTS, assemble, parts, scalar as wgsl_scalar, splat, splat_u32, tag, value as wgsl_type,
    zero, zero_extended,
};
use super::writer::Writer;

/// The target's own function for an operation that the language defines by an expansion; taken in
/// `fast` mode.
pub(super) fn own_function(op: Op, args: &[Type]) -> Option<&'static str> {
    let short = |ty: &Type| {
        matches!(ty, Type::Scalar(_) | Type::Vector(..))
            && matches!(ty.scalar(), Some(Scalar::F16 | Scalar::BF16 | Scalar::F32))
    };
    if !args.iter().all(short) {
        return None;
    }
    // What is not here has no function in WGSL, or one that is wrong for some arguments in range: its
    // `tanh` overflows, its `pow` takes no negative base.
    const OWN: &[(Op, &str)] = &[
        (Op::Exp, "exp"),
        (Op::Exp2, "exp2"),
        (Op::Log, "log"),
        (Op::Log2, "log2"),
        (Op::Powr, "pow"),
        (Op::Rsqrt, "inverseSqrt"),
        (Op::Sin, "sin"),
        (Op::Cos, "cos"),
        (Op::Tan, "tan"),
        (Op::Asin, "asin"),
        (Op::Acos, "acos"),
        (Op::Atan, "atan"),
        (Op::Atan2, "atan2"),
        (Op::Mix, "mix"),
    ];
    OWN.iter().find(|(o, _)| *o == op).map(|(_, name)| *name)
}

/// Whether a division by an `f32` is a product in every target: by a power of two.
fn divides(divisor: Const) -> bool {
    let magnitude = f32::from_bits(divisor.bits as u32).abs();
    (f32::MIN_POSITIVE..=8.5e37).contains(&magnitude) && magnitude.to_bits().trailing_zeros() >= 23
}

impl Writer<'_> {
    /// The expression of a row of the op table that each thread computes by itself.
    pub(super) fn operation(&mut self, inst: &Inst, op: Op, imm: Imm, args: &[Value]) -> String {
        let types: Vec<Type> = args.iter().map(|v| self.ty(*v)).collect();
        let result = inst.results.first().map_or(Type::U32, |v| self.ty(*v));
        let mut texts: Vec<String> = args.iter().map(|v| self.value(*v)).collect();
        let constants: Vec<Option<Const>> = args.iter().map(|v| self.constant(*v)).collect();
        if self.options.features.hides_zeros && result.scalar().is_some_and(Scalar::is_float) {
            self.hide(op, &types, &mut texts, &constants);
        }
        if matches!(op.row().meaning, Meaning::Arrange) {
            return self.arrange(op, imm, args, &texts, (&types, result));
        }
        if !texts.is_empty() && constants.iter().all(Option::is_some) {
            // The target's front end refuses constant expressions that overflow.
            for (text, ty) in texts.iter_mut().zip(&types) {
                let name = self.names.unique("constant");
                self.line(format!("let {name}: {} = {text};", wgsl_type(*ty)));
                *text = name;
            }
        }
        if op == Op::Cast
            && result.scalar() == Some(Scalar::I32)
            && types[0].scalar() == Some(Scalar::F32)
            && self.floats.is_within_i32(args[0])
        {
            self.need(Helper::NearI32);
            return self.each(types[0], result, &texts, |_, p| {
                format!("f32__near_i32({})", p[0])
            });
        }
        if let ([a, b], Op::Lt | Op::Le | Op::Gt | Op::Ge) = (args, op)
            && matches!(
                types[0],
                Type::Scalar(Scalar::F32) | Type::Vector(Scalar::F32, _)
            )
            && let Some(result) = inst.results.first()
        {
            self.comparisons.insert(*result, (*a, *b));
        }
        if let ([a, b, condition], Op::Select) = (args, op)
            && let Some((x, y)) = self.comparisons.get(condition).copied()
            && ((x, y) == (*a, *b) || (x, y) == (*b, *a))
        {
            return self.lesser_or_greater(types[0], &texts, &constants);
        }
        if inst.results.iter().any(|v| self.cancelling.contains(v)) {
            return self.kept_sum(op, types[0], &texts);
        }
        let divisor = constants.get(1).copied().flatten();
        self.evaluate(op, inst.span, (types[0], result), &texts, divisor)
    }

    /// Hides operands of which the target could make a zero that it knows: constants all together, and
    /// integers that become floats.
    fn hide(&mut self, op: Op, types: &[Type], texts: &mut [String], constants: &[Option<Const>]) {
        let known: Option<Vec<Const>> = constants.iter().copied().collect();
        for (text, c) in texts.iter_mut().zip(known.unwrap_or_default()) {
            *text = self.hidden(c);
        }
        let word = |s: Scalar| s.is_integer() && s.bits() <= 32;
        if let (Op::Cast | Op::AsType, [ty]) = (op, types)
            && let Some(scalar) = ty.scalar().filter(|s| word(*s))
        {
            self.need(Helper::HiddenBits);
            let holds = wgsl_scalar(scalar);
            texts[0] = self.each(*ty, *ty, texts, |_, p| {
                format!("{holds}(hidden_bits(u32({})))", p[0])
            });
        }
    }

    /// A choice between two floats by a comparison of them. The target's compilers may take it for their own
    /// minimum or maximum, which loses NaN, unless the condition says what a comparison implies: that
    /// neither is NaN.
    fn lesser_or_greater(
        &mut self,
        ty: Type,
        texts: &[String],
        constants: &[Option<Const>],
    ) -> String {
        self.need(Helper::IsNan);
        let nan = |c: Option<Const>| c.is_some_and(|c| f32::from_bits(c.bits as u32).is_nan());
        let known: Vec<bool> = constants.iter().map(|c| c.is_some() && !nan(*c)).collect();
        self.each(ty, ty, texts, |_, p| {
            let mut condition = p[2].clone();
            for i in 0..2 {
                if !known[i] {
                    condition.push_str(&format!(" && !f32__is_nan({})", p[i]));
                }
            }
            format!("select({}, {}, {condition})", p[0], p[1])
        })
    }

    /// An operation on texts that may be repeated; `types` are those of the first operand and of the
    /// result, `second` is the second operand where it is a constant.
    pub(super) fn evaluate(
        &mut self,
        op: Op,
        span: Span,
        types: (Type, Type),
        args: &[String],
        second: Option<Const>,
    ) -> String {
        let (ty, to) = types;
        let scalar = ty.component_scalar();
        let float = scalar.is_float();
        let narrow = scalar.is_integer() && scalar.size_bytes() < 4;
        let wide = scalar.size_bytes() == 8;
        let a = args.first().cloned().unwrap_or_default();
        let b = args.get(1).cloned().unwrap_or_default();
        let infix = |operator: &str| format!("{a} {operator} {b}");
        let call = |function: &str| format!("{function}({})", args.join(", "));
        match op {
            Op::Add => self.fit(ty, infix("+")),
            Op::Sub => self.fit(ty, infix("-")),
            Op::Mul => self.fit(ty, infix("*")),
            // Only bf16 and f32 go beyond what a target need divide by.
            Op::Div if scalar == Scalar::F16 => {
                let text = format!("{} / {}", self.in_f32(ty, &a), self.in_f32(ty, &b));
                self.round(scalar, ty, &text)
            }
            Op::Div if float => {
                let near = second.is_some_and(|c| scalar == Scalar::F32 && divides(c));
                let fast = self.kernel.float_mode == FloatMode::Fast;
                if near || fast {
                    return self.fit(ty, infix("/"));
                }
                self.need(Helper::F32Div);
                let text = self.each(ty, to, args, |_, p| format!("f32__div({})", p.join(", ")));
                self.fit(ty, text)
            }
            Op::Div | Op::Rem => {
                let minus_one = u64::MAX >> (64 - scalar.bits());
                let safe = second.is_some_and(|c| {
                    c.bits != 0 && (scalar.is_unsigned_integer() || c.bits != minus_one)
                });
                let operator = if op == Op::Div { "/" } else { "%" };
                if safe && !wide && matches!(ty, Type::Scalar(_)) {
                    return infix(operator);
                }
                let name = self.need(Helper::division(op, scalar));
                let text = self.each(ty, to, args, |_, p| format!("{name}({})", p.join(", ")));
                self.fit(ty, text)
            }
            Op::Neg if scalar.is_unsigned_integer() => {
                let zero = splat(ty, &zero(Type::Scalar(scalar)));
                self.fit(ty, format!("{zero} - {a}"))
            }
            Op::Neg if matches!(ty, Type::Matrix { .. }) => {
                self.each(ty, to, args, |_, p| format!("-{}", p[0]))
            }
            Op::Neg => self.fit_integer(ty, format!("-{a}")),
            Op::Fma => {
                let own = self.options.features.fma == Fma::Fused
                    || scalar == Scalar::F16 && self.options.features.f16;
                let text = if own && !matches!(ty, Type::Matrix { .. }) {
                    call("fma")
                } else {
                    let fma = if own { "fma" } else { self.fma() };
                    self.each(ty, to, args, |_, p| format!("{fma}({})", p.join(", ")))
                };
                self.fit(ty, text)
            }
            Op::Sqrt => self.call_in_f32("sqrt", ty, args),
            Op::Abs if scalar.is_unsigned_integer() => a,
            // The magnitude of the most negative number is itself.
            Op::Abs if wide => self.each(ty, to, args, |_, p| {
                format!("select({0}, 0li - {0}, {0} < 0li)", p[0])
            }),
            // By way of `u32`: an NVIDIA compiler (580.159) takes `abs` of an `i32` for never negative.
            Op::Abs if scalar == Scalar::I32 => self.each(ty, to, args, |_, p| {
                format!("i32(select(u32({0}), 0u - u32({0}), {0} < 0i))", p[0])
            }),
            Op::Abs => self.fit_integer(ty, call("abs")),
            Op::Min | Op::Max | Op::Fmin | Op::Fmax => {
                let low = matches!(op, Op::Min | Op::Fmin);
                if float {
                    let f16 = scalar == Scalar::F16 && self.options.features.f16;
                    let name = match (f16, low) {
                        (true, true) => Helper::F16Min,
                        (true, false) => Helper::F16Max,
                        (false, true) => Helper::F32Min,
                        (false, false) => Helper::F32Max,
                    };
                    let name = self.need(name);
                    self.each(ty, to, args, |_, p| format!("{name}({})", p.join(", ")))
                } else {
                    call(if low { "min" } else { "max" })
                }
            }
            Op::Exp if scalar == Scalar::F32 && self.kernel.float_mode != FloatMode::Fast => {
                call(self.need(Helper::Exp))
            }
            Op::Ceil => call("ceil"),
            Op::Floor => call("floor"),
            Op::Trunc => call("trunc"),
            Op::Rint => call("round"),
            Op::And => infix("&"),
            Op::Or => infix("|"),
            Op::Xor if scalar == Scalar::Bool => infix("!="),
            Op::Xor => infix("^"),
            Op::Not if scalar == Scalar::Bool => format!("!{a}"),
            Op::Not => self.fit_integer(ty, format!("~{a}")),
            Op::Shl | Op::Shr => self.shift(op, ty, [&a, &b], second),
            Op::Popcount | Op::Clz | Op::Ctz | Op::ReverseBits => self.bits(op, types, args),
            Op::MulHi if narrow => {
                let width = splat_u32(ty, &format!("{}u", scalar.bits()));
                self.fit_integer(ty, format!("({a} * {b}) >> {width}"))
            }
            Op::MulHi => {
                let name = self.need(Helper::mul_hi(scalar));
                self.each(ty, to, args, |_, p| format!("{name}({})", p.join(", ")))
            }
            Op::Eq => infix("=="),
            // The target's own may be false of a NaN.
            Op::Ne if float => format!("!({a} == {b})"),
            Op::Ne => infix("!="),
            Op::Lt => infix("<"),
            Op::Le => infix("<="),
            Op::Gt => infix(">"),
            Op::Ge => infix(">="),
            Op::Select => call("select"),
            Op::Cast => self.cast(ty, to, &a),
            other => match own_function(other, &[ty]) {
                Some(function) => self.call_in_f32(function, ty, args),
                None => self.lacks(span, format!("the WGSL writer has no `{other}`")),
            },
        }
    }

    /// A3's shifts.
    fn shift(&mut self, op: Op, ty: Type, [a, b]: [&str; 2], second: Option<Const>) -> String {
        let scalar = ty.component_scalar();
        let count = match second {
            Some(c) if matches!(ty, Type::Scalar(_)) => {
                format!("{}u", c.bits & u64::from(scalar.bits() - 1))
            }
            Some(_) | None => {
                let mask = splat_u32(ty, &format!("{}u", scalar.bits() - 1));
                let as_u32 = match ty {
                    Type::Vector(_, n) => format!("vec{n}<u32>({b})"),
                    _scalar => format!("u32({b})"),
                };
                format!("({as_u32} & {mask})")
            }
        };
        if op == Op::Shl {
            self.fit_integer(ty, format!("{a} << {count}"))
        } else {
            format!("{a} >> {count}")
        }
    }

    /// Counts of bits, and bits in the opposite order.
    fn bits(&mut self, op: Op, (ty, to): (Type, Type), args: &[String]) -> String {
        let scalar = ty.component_scalar();
        if scalar.size_bytes() == 8 {
            let name = match op {
                Op::Popcount => Helper::CountOnes,
                Op::Clz => Helper::LeadingZeros,
                Op::Ctz => Helper::TrailingZeros,
                _reverse => Helper::Reverse,
            };
            let name = self.need(name);
            let back = wgsl_scalar(scalar);
            return self.each(ty, to, args, |_, p| {
                format!("{back}({name}(u64({})))", p[0])
            });
        }
        let narrow = scalar.size_bytes() < 4;
        let width = scalar.bits();
        let back = wgsl_scalar(scalar);
        let text = self.each(ty, to, args, |_, p| {
            let bits = types::to_bits(scalar, &p[0]);
            let text = match op {
                Op::Popcount => format!("countOneBits({bits})"),
                Op::Clz if narrow => {
                    format!("(countLeadingZeros({bits}) - {}u)", 32 - width)
                }
                Op::Clz => format!("countLeadingZeros({bits})"),
                Op::Ctz if narrow => format!("min(countTrailingZeros({bits}), {width}u)"),
                Op::Ctz => format!("countTrailingZeros({bits})"),
                _reverse if narrow => {
                    format!("(reverseBits({bits}) >> {}u)", 32 - width)
                }
                _reverse => format!("reverseBits({bits})"),
            };
            format!("{back}({text})")
        });
        self.fit_integer(ty, text)
    }

    /// Applies `f` to each component of the operands, all of the shape of `ty`.
    pub(super) fn each(
        &mut self,
        ty: Type,
        to: Type,
        args: &[String],
        mut f: impl FnMut(&mut Self, &[String]) -> String,
    ) -> String {
        let columns: Vec<Vec<String>> = args.iter().map(|a| parts(ty, a)).collect();
        let count = ty.component_count() as usize;
        let done: Vec<String> = (0..count)
            .map(|i| {
                let operands: Vec<String> = columns.iter().map(|c| c[i].clone()).collect();
                f(self, &operands)
            })
            .collect();
        assemble(to, &done)
    }

    /// A function of the target's on floats, computed in `f32` and rounded.
    fn call_in_f32(&mut self, function: &str, ty: Type, args: &[String]) -> String {
        let args: Vec<String> = args.iter().map(|a| self.in_f32(ty, a)).collect();
        let text = format!("{function}({})", args.join(", "));
        match ty.scalar() {
            Some(s @ (Scalar::F16 | Scalar::BF16)) => self.round(s, ty, &text),
            _others => text,
        }
    }

    /// A float of at most 32 bits as an `f32` of the same value.
    pub(super) fn in_f32(&self, ty: Type, text: &str) -> String {
        match ty.with_scalar(Scalar::F32) {
            Some(wide) if ty.scalar() == Some(Scalar::F16) && self.options.features.f16 => {
                format!("{}({text})", wgsl_type(wide))
            }
            _held_in_f32 => text.to_string(),
        }
    }

    /// A result brought back into its type: narrow integers wrap, short floats are rounded unless the target
    /// has done so.
    fn fit(&mut self, ty: Type, text: String) -> String {
        match ty.scalar() {
            Some(Scalar::F16) if self.options.features.f16 => text,
            Some(s @ (Scalar::F16 | Scalar::BF16)) => self.round(s, ty, &text),
            _others => self.fit_integer(ty, text),
        }
    }

    fn fit_integer(&mut self, ty: Type, text: String) -> String {
        match ty.scalar() {
            Some(s @ (Scalar::I8 | Scalar::I16)) => {
                let by = splat_u32(ty, &format!("{}u", 32 - s.bits()));
                format!("(({text}) << {by}) >> {by}")
            }
            Some(Scalar::U8) => format!("({text}) & {}", splat(ty, "0xffu")),
            Some(Scalar::U16) => format!("({text}) & {}", splat(ty, "0xffffu")),
            _whole => text,
        }
    }

    /// An f32 expression rounded to a shorter float.
    fn round(&mut self, scalar: Scalar, ty: Type, text: &str) -> String {
        let fast = self.kernel.float_mode == FloatMode::Fast;
        if scalar == Scalar::F16 && self.options.features.f16 && fast {
            // Vulkan does not say to which neighbour.
            return format!("{}({text})", wgsl_type(ty));
        }
        let one = self.need(match scalar {
            Scalar::F16 => Helper::F16Round,
            _shorter => Helper::Bf16Round,
        });
        if ty.component_count() == 1 {
            return format!("{one}({text})");
        }
        let name = format!("{}__round", tag(ty));
        let holds = wgsl_type(ty);
        let from = wgsl_type(ty.with_scalar(Scalar::F32).unwrap_or(ty));
        self.helper(&name, |_| {
            let rounded: Vec<String> = parts(ty, "x")
                .iter()
                .map(|p| format!("{one}({p})"))
                .collect();
            format!(
                "fn {name}(x: {from}) -> {holds} {{\n    return {};\n}}\n",
                assemble(ty, &rounded)
            )
        });
        format!("{name}({text})")
    }

    /// An integer as one of 64 bits of its own sign.
    pub(super) fn extended(&self, to: Type, text: &str) -> String {
        let text = format!("{}({text})", wgsl_type(to));
        if to.scalar() == Some(Scalar::I64) && self.options.features.hides_extensions {
            // Rows are shorter than 2^31.
            let none = splat(to, &zero_extended("constants.row >> 31u"));
            return format!("({text} | {none})");
        }
        text
    }

    /// A5's conversions.
    fn cast(&mut self, from: Type, to: Type, text: &str) -> String {
        let (Some(source), Some(target)) = (from.scalar(), to.scalar()) else {
            return text.to_string();
        };
        if source == target {
            return text.to_string();
        }
        let holds = wgsl_type(to);
        let zero_like = splat(from, &zero(Type::Scalar(source)));
        match (source, target) {
            (s, Scalar::Bool) if s.is_float() => {
                // A subnormal counts, even where the target takes it for 0 in a comparison.
                let one = Type::Scalar(s);
                self.each(from, to, &[text.to_string()], |w, p| {
                    let x = w.in_f32(one, &p[0]);
                    format!("((bitcast<u32>({x}) & 0x7fffffffu) != 0u)")
                })
            }
            (_, Scalar::Bool) => format!("{text} != {zero_like}"),
            (Scalar::Bool, t) if t.size_bytes() == 8 => {
                let (no, yes) = match t {
                    Scalar::I64 => ("0li", "1li"),
                    _unsigned => ("0lu", "1lu"),
                };
                format!("select({}, {}, {text})", splat(to, no), splat(to, yes))
            }
            (Scalar::Bool, _) => format!("{holds}({text})"),
            (s, t) if s.is_float() && t.is_float() => {
                let wide = self.in_f32(from, text);
                if source.size_bytes() < target.size_bytes() {
                    wide
                } else {
                    self.round(t, to, &wide)
                }
            }
            (s, t) if s.is_float() => {
                let name = self.need(Helper::to_integer(t));
                let one = Type::Scalar(s);
                self.each(from, to, &[text.to_string()], |w, p| {
                    format!("{name}({})", w.in_f32(one, &p[0]))
                })
            }
            (s, Scalar::BF16) if s.size_bytes() >= 4 => {
                let name = self.need(Helper::to_bf16(s));
                self.each(from, to, &[text.to_string()], |_, p| {
                    format!("{name}({})", p[0])
                })
            }
            // What an f32 rounds is far beyond the largest f16.
            (_, t) if t.is_float() => {
                let wide = wgsl_type(to.with_scalar(Scalar::F32).unwrap_or(to));
                let text = format!("{wide}({text})");
                match t {
                    Scalar::F16 | Scalar::BF16 => self.round(t, to, &text),
                    _whole => text,
                }
            }
            (s, t) => {
                // Through a 64-bit type of the source's sign, so that it is the source that extends.
                let text = match (s.size_bytes() == 8, t.size_bytes() == 8) {
                    (false, true) if s.is_signed_integer() != t.is_signed_integer() => {
                        let middle = if s.is_signed_integer() {
                            Scalar::I64
                        } else {
                            Scalar::U64
                        };
                        let middle = to.with_scalar(middle).unwrap_or(to);
                        format!("{holds}({})", self.extended(middle, text))
                    }
                    (false, true) => self.extended(to, text),
                    (true, false) => {
                        // Only the low bits, before anything converts.
                        let low = to.with_scalar(Scalar::U32).unwrap_or(to);
                        let bits = from.with_scalar(Scalar::U64).unwrap_or(from);
                        let mask = splat(bits, "0xfffffffflu");
                        format!(
                            "{holds}({}({}({text}) & {mask}))",
                            wgsl_type(low),
                            wgsl_type(bits)
                        )
                    }
                    _same => format!("{holds}({text})"),
                };
                let fits = s.size_bytes() < t.size_bytes()
                    && (s.is_unsigned_integer() || t.is_signed_integer());
                if fits {
                    text
                } else {
                    self.fit_integer(to, text)
                }
            }
        }
    }

    // ---- components ----

    fn arrange(
        &mut self,
        op: Op,
        imm: Imm,
        args: &[Value],
        texts: &[String],
        (types, result): (&[Type], Type),
    ) -> String {
        match op {
            Op::Construct => format!("{}({})", wgsl_type(result), texts.join(", ")),
            Op::Swizzle => match imm {
                Imm::Swizzle(swizzle) => {
                    let names: String = swizzle
                        .components()
                        .iter()
                        .map(|c| COMPONENTS[usize::from(*c)])
                        .collect();
                    format!("{}.{names}", texts[0])
                }
                Imm::None | Imm::Type(_) | Imm::Dim(_) => String::new(),
            },
            Op::Extract => {
                let (count, whole) = (part_count(types[0]), types[0]);
                if let Some(c) = self.constant(args[1]) {
                    let scalar = self.ty(args[1]).component_scalar();
                    return match u32::try_from(scalar.integer(c.bits)) {
                        Ok(i) if i < count => format!("{}[{i}]", texts[0]),
                        Ok(_) | Err(_) => self.zero(result),
                    };
                }
                let index = self.index(args[1]);
                let name = format!("{}__extract", tag(whole));
                self.helper(&name, |w| {
                    format!(
                        "fn {name}(x: {}, i: u32) -> {} {{\n    if (i < {count}u) {{\n        var y = x;\n        return y[i];\n    }}\n    return {};\n}}\n",
                        wgsl_type(whole),
                        wgsl_type(result),
                        w.zero(result)
                    )
                });
                format!("{name}({}, {index})", texts[0])
            }
            Op::Insert => {
                let (count, whole) = (part_count(types[0]), types[0]);
                let index = self.index(args[1]);
                let name = format!("{}__insert", tag(whole));
                self.helper(&name, |_| {
                    format!(
                        "fn {name}(x: {0}, i: u32, part: {1}) -> {0} {{\n    var y = x;\n    if (i < {count}u) {{\n        y[i] = part;\n    }}\n    return y;\n}}\n",
                        wgsl_type(whole),
                        wgsl_type(types[2]),
                    )
                });
                format!("{name}({}, {index}, {})", texts[0], texts[2])
            }
            _as_type => self.as_type(types[0], result, &texts[0]),
        }
    }

    /// The same bits in another type.
    fn as_type(&mut self, from: Type, to: Type, text: &str) -> String {
        let (Some(source), Some(target)) = (from.scalar(), to.scalar()) else {
            return text.to_string();
        };
        if from == to {
            return text.to_string();
        }
        let whole = |s: Scalar| matches!(s, Scalar::I32 | Scalar::U32 | Scalar::F32);
        if whole(source) && whole(target) {
            return format!("bitcast<{}>({text})", wgsl_type(to));
        }
        // Both are converted modulo 2^64.
        let long = |s: Scalar| matches!(s, Scalar::I64 | Scalar::U64);
        if long(source) && long(target) {
            return format!("{}({text})", wgsl_type(to));
        }
        // Words, lowest first; then the parts of words.
        let mut words: Vec<String> = Vec::new();
        let mut filled = 0;
        for part in parts(from, text) {
            let bits = source.bits();
            if bits == 64 {
                words.extend(types::to_words(source, &part));
            } else if bits == 32 || filled == 0 {
                words.push(types::to_bits(source, &part));
            } else {
                let more = types::to_bits(source, &part);
                if let Some(last) = words.last_mut() {
                    *last = format!("({last} | ({more} << {filled}u))");
                }
            }
            filled = (filled + bits) % 32;
        }
        let mut components = Vec::new();
        let each = target.bits();
        for word in words.chunks(if each == 64 { 2 } else { 1 }) {
            if each == 64 {
                components.push(types::from_words(target, word));
                continue;
            }
            for shift in (0..32).step_by(each as usize) {
                let shifted = match shift {
                    0 => word[0].clone(),
                    n => format!("({} >> {n}u)", word[0]),
                };
                components.push(types::from_words(target, &[shifted]));
            }
        }
        components.truncate(to.component_count() as usize);
        assemble(to, &components)
    }

    /// A sum or difference that nothing is to cancel.
    pub(super) fn kept_sum(&mut self, op: Op, ty: Type, args: &[String]) -> String {
        self.need(Helper::Sum);
        let sign = if op == Op::Sub { "-" } else { "" };
        self.each(ty, ty, args, |_, p| {
            format!("{SUM}({}, {sign}{})", p[0], p[1])
        })
    }
}

/// Components of a vector, columns of a matrix.
fn part_count(ty: Type) -> u32 {
    match ty {
        Type::Vector(_, n) => u32::from(n),
        Type::Matrix { columns, .. } => u32::from(columns),
        Type::Scalar(_) | Type::SimdgroupMatrix { .. } | Type::Event => 0,
    }
}
