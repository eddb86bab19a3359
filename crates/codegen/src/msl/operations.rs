//! Rows of the op table that a thread computes for itself: basic operations, which are total in Invar and
//! not in C++ (A1 to A7), and those that only move components.

use invar_ir::ops::{Imm, Meaning, Op};
use invar_ir::{Dim, Inst, Scalar, Type, Value};

use super::types::{self, COMPONENTS, column};
use super::writer::{LANES, Writer};

/// Functions that stand for an expansion in `fast` mode, by the same name.
pub(super) fn is_native(op: Op) -> bool {
    matches!(
        op,
        Op::Exp
            | Op::Exp2
            | Op::Exp10
            | Op::Log
            | Op::Log2
            | Op::Log10
            | Op::Pow
            | Op::Powr
            | Op::Rsqrt
            | Op::Sin
            | Op::Cos
            | Op::Tan
            | Op::Sinpi
            | Op::Cospi
            | Op::Tanpi
            | Op::Asin
            | Op::Acos
            | Op::Atan
            | Op::Atan2
            | Op::Sinh
            | Op::Cosh
            | Op::Tanh
            | Op::Asinh
            | Op::Acosh
            | Op::Atanh
            | Op::Fmod
    )
}

/// The integer type in which C++ computes without undefined overflow: `uint` or `ulong`.
fn wrapping(s: Scalar) -> &'static str {
    if s.bits() == 64 { "ulong" } else { "uint" }
}

/// The suffix of literals of that type.
fn suffix(s: Scalar) -> &'static str {
    if s.bits() == 64 { "ul" } else { "u" }
}

impl Writer<'_> {
    pub(super) fn operation(&mut self, inst: &Inst, op: Op, imm: Imm, args: &[Value]) {
        let result = inst.results[0];
        let ty = self.ty(result);
        match op.row().meaning {
            Meaning::Query => {
                let text = self.query(op, imm);
                self.define(result, &text);
            }
            Meaning::Lanes(..) => unreachable!("lanes exchange by other means"),
            Meaning::Arrange => self.arrange(result, op, imm, args),
            // Only what `fast` keeps is left of these.
            Meaning::Expand(_) => {
                let texts: Vec<String> = args.iter().map(|v| self.v(*v)).collect();
                let text = format!("{op}({})", texts.join(", "));
                self.define(result, &text);
            }
            Meaning::Eval(_) => {
                let texts: Vec<String> = args.iter().map(|v| self.v(*v)).collect();
                let types: Vec<Type> = args.iter().map(|v| self.ty(*v)).collect();
                let text = self.basic(op, ty, &types, &texts);
                self.define(result, &text);
            }
        }
    }

    fn query(&mut self, op: Op, imm: Imm) -> String {
        if op == Op::ThreadsPerSimdgroup {
            return format!("{LANES}u");
        }
        if let (Op::DispatchThreadsPerThreadgroup, Imm::Dim(dim), Some(size)) = (
            op,
            imm,
            self.kernel
                .threadgroup_size
                .or(self.options.threadgroup_size),
        ) {
            return format!("{}u", size[dim as usize]);
        }
        let name = self.input(op);
        match imm {
            Imm::Dim(Dim::X) => format!("{name}.x"),
            Imm::Dim(Dim::Y) => format!("{name}.y"),
            Imm::Dim(Dim::Z) => format!("{name}.z"),
            Imm::None | Imm::Type(_) | Imm::Swizzle(_) => name.to_string(),
        }
    }

    // ---- components ----

    /// The expressions of a value's parts: columns of a matrix, components of a vector.
    fn part(text: &str, ty: Type, k: usize) -> (String, Type) {
        match ty {
            Type::Vector(s, _) => (format!("{text}.{}", COMPONENTS[k]), Type::Scalar(s)),
            Type::Matrix { scalar, rows, .. } => (
                column(text, scalar, &k.to_string()),
                Type::Vector(scalar, rows),
            ),
            Type::Scalar(_) | Type::SimdgroupMatrix { .. } | Type::Event => (text.to_string(), ty),
        }
    }

    /// A vector or matrix of what `f` makes of each part of the operands.
    fn by_parts(
        &mut self,
        op: Op,
        ty: Type,
        arg_types: &[Type],
        args: &[String],
        count: usize,
    ) -> String {
        let mut parts = Vec::new();
        for k in 0..count {
            let (texts, types): (Vec<String>, Vec<Type>) = args
                .iter()
                .zip(arg_types)
                .map(|(text, ty)| Self::part(text, *ty, k))
                .unzip();
            let part_type = match ty {
                Type::Vector(s, _) => Type::Scalar(s),
                Type::Matrix { scalar, rows, .. } => Type::Vector(scalar, rows),
                Type::Scalar(_) | Type::SimdgroupMatrix { .. } | Type::Event => ty,
            };
            parts.push(self.basic(op, part_type, &types, &texts));
        }
        self.make(ty, &parts)
    }

    // ---- basic operations ----

    /// A basic operation on operands given as text.
    pub(super) fn basic(
        &mut self,
        op: Op,
        ty: Type,
        arg_types: &[Type],
        args: &[String],
    ) -> String {
        let from = arg_types[0].component_scalar();
        let to = ty.component_scalar();
        match ty {
            Type::Matrix { columns, .. } => {
                return self.by_parts(op, ty, arg_types, args, usize::from(columns));
            }
            Type::Vector(_, n) => {
                let one_condition = op == Op::Select && matches!(arg_types[2], Type::Scalar(_));
                if !one_condition && !on_whole_vectors(op, from, to) {
                    return self.by_parts(op, ty, arg_types, args, usize::from(n));
                }
            }
            Type::Scalar(_) | Type::SimdgroupMatrix { .. } | Type::Event => {}
        }
        let a = args[0].as_str();
        let b = args.get(1).map_or("", String::as_str);
        let c = args.get(2).map_or("", String::as_str);
        match op {
            Op::Select => format!("{c} ? {b} : {a}"),
            Op::Cast => self.cast(ty, from, to, a),
            _ if from == Scalar::Bool => match op {
                Op::And => format!("({a} && {b})"),
                Op::Or => format!("({a} || {b})"),
                Op::Xor | Op::Ne => format!("({a} != {b})"),
                Op::Eq => format!("({a} == {b})"),
                Op::Not => format!("(!{a})"),
                other => unreachable!("the signature keeps bool out of {other}"),
            },
            _ if from.is_float() => self.on_floats(op, from, [a, b, c]),
            _ => self.on_integers(op, ty, from, a, b),
        }
    }

    fn on_integers(&mut self, op: Op, ty: Type, s: Scalar, a: &str, b: &str) -> String {
        let name = types::scalar(s);
        let wide = wrapping(s);
        let small = s.bits() < 32;
        let is_vector = matches!(ty, Type::Vector(..));
        // C++ computes 8- and 16-bit scalars as `int`; a cast takes the low bits.
        let narrow = |text: String| {
            if small && !is_vector {
                format!("{name}({text})")
            } else {
                text
            }
        };
        // Sums and products wrap only without a sign.
        let wrapped = |operator: &str| {
            if let Type::Vector(_, n) = ty {
                let unsigned = types::scalar(types::unsigned(s));
                if s.is_signed_integer() {
                    format!("{name}{n}({unsigned}{n}({a}) {operator} {unsigned}{n}({b}))")
                } else {
                    format!("{a} {operator} {b}")
                }
            } else if small || s.is_signed_integer() {
                format!("{name}({wide}({a}) {operator} {wide}({b}))")
            } else {
                format!("{a} {operator} {b}")
            }
        };
        let mask = s.bits() - 1;
        let unit = suffix(s);
        match op {
            Op::Add => wrapped("+"),
            Op::Sub => wrapped("-"),
            Op::Mul => wrapped("*"),
            Op::Div => format!("{}({a}, {b})", self.helpers.divide(s)),
            Op::Rem => format!("{}({a}, {b})", self.helpers.remainder(s)),
            Op::Neg => format!("{name}(0{unit} - {wide}({a}))"),
            Op::Abs if s.is_signed_integer() => {
                format!("{a} < 0 ? {name}(0{unit} - {wide}({a})) : {a}")
            }
            Op::Abs => a.to_string(),
            Op::Min => format!("min({a}, {b})"),
            Op::Max => format!("max({a}, {b})"),
            Op::And => narrow(format!("{a} & {b}")),
            Op::Or => narrow(format!("{a} | {b}")),
            Op::Xor => narrow(format!("{a} ^ {b}")),
            Op::Not => narrow(format!("~{a}")),
            Op::Shl if small || s.is_signed_integer() => {
                format!("{name}({wide}({a}) << ({wide}({b}) & {mask}u))")
            }
            Op::Shl => format!("{a} << ({b} & {mask}u)"),
            Op::Shr => narrow(format!("{a} >> ({wide}({b}) & {mask}u)")),
            Op::Popcount => format!("{name}(popcount({a}))"),
            Op::Clz => format!("{name}(clz({a}))"),
            Op::Ctz => format!("{name}(ctz({a}))"),
            Op::ReverseBits => format!("reverse_bits({a})"),
            Op::MulHi => match s.bits() {
                8 => format!("{name}((int({a}) * int({b})) >> 8)"),
                16 if s.is_signed_integer() => format!("{name}((int({a}) * int({b})) >> 16)"),
                16 => format!("{name}((uint({a}) * uint({b})) >> 16)"),
                _ => format!("mulhi({a}, {b})"),
            },
            Op::Eq => format!("({a} == {b})"),
            Op::Ne => format!("({a} != {b})"),
            Op::Lt => format!("({a} < {b})"),
            Op::Le => format!("({a} <= {b})"),
            Op::Gt => format!("({a} > {b})"),
            Op::Ge => format!("({a} >= {b})"),
            other => unreachable!("{other} is not a basic operation on integers"),
        }
    }

    fn on_floats(&mut self, op: Op, s: Scalar, [a, b, c]: [&str; 3]) -> String {
        let fast = self.kernel.float_mode == invar_ir::FloatMode::Fast;
        let bf16 = s == Scalar::BF16;
        let name = types::scalar(s);
        // What is exact in float and then rounded once is computed there: always for bf16, which has no
        // arithmetic of its own, and for f16 where Metal does not say that the result is rounded well.
        let in_float = |text: String| format!("{name}({text})");
        let f = |x: &str| {
            if s == Scalar::F32 {
                x.to_string()
            } else {
                format!("float({x})")
            }
        };
        match op {
            Op::Add | Op::Sub | Op::Mul => {
                let operator = match op {
                    Op::Add => "+",
                    Op::Sub => "-",
                    _ => "*",
                };
                if bf16 {
                    in_float(format!("{} {operator} {}", f(a), f(b)))
                } else {
                    format!("{a} {operator} {b}")
                }
            }
            Op::Div if s == Scalar::F32 => format!("{a} / {b}"),
            Op::Div => in_float(format!("{} / {}", f(a), f(b))),
            Op::Neg if bf16 => {
                format!("as_type<bfloat>(ushort(as_type<ushort>({a}) ^ 0x8000))")
            }
            Op::Neg => format!("-{a}"),
            Op::Abs if bf16 => {
                format!("as_type<bfloat>(ushort(as_type<ushort>({a}) & 0x7fff))")
            }
            Op::Abs => format!("fabs({a})"),
            Op::Fma if bf16 => format!("{}({a}, {b}, {c})", self.helpers.bfloat_fma()),
            Op::Fma => format!("fma({a}, {b}, {c})"),
            Op::Sqrt if s == Scalar::F32 && fast => format!("sqrt({a})"),
            Op::Sqrt if s == Scalar::F32 => format!("precise::sqrt({a})"),
            Op::Sqrt => in_float(format!("precise::sqrt({})", f(a))),
            Op::Min | Op::Fmin | Op::Max | Op::Fmax => {
                let smaller = matches!(op, Op::Min | Op::Fmin);
                let function = self.helpers.float_limit(smaller);
                let text = format!("{function}({}, {})", f(a), f(b));
                if s == Scalar::F32 {
                    text
                } else {
                    in_float(text)
                }
            }
            Op::Ceil | Op::Floor | Op::Trunc | Op::Rint => {
                if bf16 {
                    in_float(format!("{op}({})", f(a)))
                } else {
                    format!("{op}({a})")
                }
            }
            Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge => {
                let operator = match op {
                    Op::Eq => "==",
                    Op::Ne => "!=",
                    Op::Lt => "<",
                    Op::Le => "<=",
                    Op::Gt => ">",
                    _ => ">=",
                };
                if bf16 {
                    format!("({} {operator} {})", f(a), f(b))
                } else {
                    format!("({a} {operator} {b})")
                }
            }
            other => unreachable!("{other} is not a basic operation on floats"),
        }
    }

    /// A5's conversions, of scalars, and of vectors where the language has them as they are.
    fn cast(&mut self, ty: Type, from: Scalar, to: Scalar, a: &str) -> String {
        let name = types::value(ty);
        if from == to {
            return a.to_string();
        }
        let in_float = |a: &str| {
            if matches!(from, Scalar::F16 | Scalar::BF16) {
                format!("float({a})")
            } else {
                a.to_string()
            }
        };
        if to == Scalar::Bool {
            return if from.is_float() {
                format!("({} != 0.0f)", in_float(a))
            } else {
                format!("({a} != 0)")
            };
        }
        if to.is_integer() {
            return if from.is_float() {
                format!("{}({})", self.helpers.saturated(to), in_float(a))
            } else {
                format!("{name}({a})")
            };
        }
        if from.is_float() {
            return match (from, to) {
                (Scalar::BF16, Scalar::F16) | (Scalar::F16, Scalar::BF16) => {
                    format!("{name}(float({a}))")
                }
                _ => format!("{name}({a})"),
            };
        }
        match to {
            // Every integer that f16 does not overflow at is a float exactly.
            Scalar::F16 => format!("{name}(float({a}))"),
            Scalar::BF16 if from.bits() > 16 => {
                format!("{}({a})", self.helpers.bfloat_of_integer(from))
            }
            Scalar::BF16 => format!("{name}(float({a}))"),
            _ => format!("{name}({a})"),
        }
    }

    // ---- components ----

    fn arrange(&mut self, result: Value, op: Op, imm: Imm, args: &[Value]) {
        let ty = self.ty(result);
        let texts: Vec<String> = args.iter().map(|v| self.v(*v)).collect();
        let first = self.ty(args[0]);
        match (op, imm) {
            (Op::AsType, _) => {
                let text = if first == ty {
                    texts[0].clone()
                } else {
                    format!("as_type<{}>({})", types::value(ty), texts[0])
                };
                self.define(result, &text);
            }
            (Op::Swizzle, Imm::Swizzle(swizzle)) => {
                let components = swizzle.components();
                let text = if components.len() > 1 && ty.scalar() == Some(Scalar::Bool) {
                    let parts: Vec<String> = components
                        .iter()
                        .map(|c| format!("{}.{}", texts[0], COMPONENTS[usize::from(*c)]))
                        .collect();
                    self.make(ty, &parts)
                } else {
                    format!("{}.{swizzle}", texts[0])
                };
                self.define(result, &text);
            }
            (Op::Extract, _) => {
                let (count, part) = parts_of(first);
                let index = self.index(args[1], count);
                let place = index_into(&texts[0], first, &index.text);
                let text = match index.guard {
                    None => place,
                    Some(guard) if guard == "false" => types::zero(part),
                    Some(guard) => format!("{guard} ? {place} : {}", types::zero(part)),
                };
                self.define(result, &text);
            }
            (Op::Insert, _) => {
                let (count, _) = parts_of(first);
                let index = self.index(args[1], count);
                let name = self.declare(result, Some(&texts[0]));
                let place = index_into(&name, first, &index.text);
                match index.guard {
                    None => self.line(&format!("{place} = {};", texts[2])),
                    Some(guard) if guard == "false" => {}
                    Some(guard) => self.line(&format!("if ({guard}) {place} = {};", texts[2])),
                }
            }
            (Op::Construct, _) => {
                let text = self.make(ty, &texts);
                self.define(result, &text);
            }
            (other, _) => unreachable!("{other} moves no components"),
        }
    }
}

/// How many parts a vector or matrix has, and their type.
fn parts_of(ty: Type) -> (u32, Type) {
    match ty {
        Type::Vector(s, n) => (u32::from(n), Type::Scalar(s)),
        Type::Matrix {
            scalar,
            columns,
            rows,
        } => (u32::from(columns), Type::Vector(scalar, rows)),
        Type::Scalar(_) | Type::SimdgroupMatrix { .. } | Type::Event => (1, ty),
    }
}

fn index_into(text: &str, ty: Type, index: &str) -> String {
    match ty {
        Type::Matrix { scalar, .. } => column(text, scalar, index),
        Type::Scalar(_) | Type::Vector(..) | Type::SimdgroupMatrix { .. } | Type::Event => {
            format!("{text}[{index}]")
        }
    }
}

/// Whether the language has an operation on whole vectors with Invar's meaning.
fn on_whole_vectors(op: Op, from: Scalar, to: Scalar) -> bool {
    match op {
        Op::Add | Op::Sub | Op::Mul => {
            from.is_integer() || matches!(from, Scalar::F32 | Scalar::F16)
        }
        Op::And | Op::Or | Op::Xor | Op::Not => from.is_integer(),
        Op::Div | Op::Sqrt => from == Scalar::F32,
        Op::Neg | Op::Abs | Op::Fma | Op::Ceil | Op::Floor | Op::Trunc | Op::Rint => {
            matches!(from, Scalar::F32 | Scalar::F16)
        }
        Op::Cast => {
            from == to
                || (from.is_integer() && (to.is_integer() || to == Scalar::F32))
                || (from == Scalar::F32 && to == Scalar::F16)
                || (from == Scalar::F16 && to == Scalar::F32)
        }
        _each_component_by_itself => false,
    }
}
