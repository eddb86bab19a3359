//! The types of operands and results, and of what regions give.

use std::collections::HashSet;

use smallvec::SmallVec;

use super::textures::Called;
use super::{Errors, names};
use crate::builder::PLACE_HELP;
use crate::diagnostic::Diagnostic;
use crate::inst::{
    AtomicOp, CopyOperands, CopyShape, Inst, InstKind, MatrixPlace, Memory, Place, Region, Value,
};
use crate::module::{Kernel, Module};
use crate::place_type::place_type;
use crate::print::{MAX_SCALARS, MAX_TEXT_BYTES, Template};
use crate::rules::Rule;
use crate::span::Span;
use crate::texture::atomic_texel;
use crate::types::{ElementType, Scalar, Type};

/// Checks them. All ids are in range. Of poison nothing is said.
pub(super) fn check(
    module: &Module,
    kernel: &Kernel,
    poison: &HashSet<Value>,
    errors: &mut Errors,
) {
    let mut walk = Walk {
        module,
        kernel,
        poison,
        errors,
        targets: Vec::new(),
    };
    walk.region(&kernel.body);
}

/// What the `if` or loop around a place takes.
#[derive(Clone, Copy)]
struct Target<'a> {
    inst: &'a Inst,
    /// Of a loop, the carried values in its body.
    carried: Option<&'a [Value]>,
}

struct Walk<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
    /// Values that could not be built, whose types mean nothing.
    poison: &'a HashSet<Value>,
    errors: &'a mut Errors,
    /// The `if`s and loops around, outermost first.
    targets: Vec<Target<'a>>,
}

impl<'a> Walk<'a> {
    fn ty(&self, value: Value) -> Type {
        self.kernel.ty(value)
    }

    fn is_poison(&self, value: Value) -> bool {
        self.poison.contains(&value)
    }

    fn any_poison(&self, values: &[Value]) -> bool {
        values.iter().any(|v| self.is_poison(*v))
    }

    fn name(&self, value: Value) -> String {
        self.module.called(self.kernel, value)
    }

    fn mismatch(&mut self, span: Span, message: String, help: &str) {
        let error = Diagnostic::error(Rule::TypeMismatch, span, message);
        self.errors.push(error.help(help));
    }

    /// An operand is an integer scalar.
    fn integer(&mut self, value: Value, what: &str, span: Span) {
        let ty = self.ty(value);
        if !ty.is_integer_scalar() && !self.is_poison(value) {
            let message = format!(
                "{what} (`{}`) has type {ty}, expected an integer scalar",
                self.name(value)
            );
            self.mismatch(span, message, "write a `cast`");
        }
    }

    /// An operand has one certain type.
    fn exactly(&mut self, value: Value, expected: Type, what: &str, span: Span) {
        let ty = self.ty(value);
        if ty != expected && !self.is_poison(value) {
            let message = format!(
                "{what} (`{}`) has type {ty}, expected {expected}",
                self.name(value)
            );
            self.mismatch(
                span,
                message,
                "write a `cast`, or use the other type throughout",
            );
        }
    }

    /// The results are as many as expected and of these types.
    fn results(&mut self, inst: &Inst, expected: &[Type]) {
        if self.any_poison(&inst.results) {
            return;
        }
        if inst.results.len() != expected.len() {
            let message = format!(
                "the instruction gives {} values, but {} are defined",
                expected.len(),
                inst.results.len()
            );
            self.mismatch(inst.span, message, "define as many as it gives");
            return;
        }
        for (result, expected) in inst.results.iter().zip(expected) {
            let ty = self.ty(*result);
            if ty != *expected {
                let message = format!(
                    "`{}` is said to have type {ty}, but the instruction gives {expected}",
                    self.name(*result)
                );
                self.mismatch(
                    inst.span,
                    message,
                    "give it the type of the instruction's result",
                );
            }
        }
    }

    fn region(&mut self, region: &'a Region) {
        for inst in &region.insts {
            self.inst(inst);
        }
    }

    fn texture(&mut self, inst: &Inst) {
        let InstKind::Texture {
            texture,
            function,
            args,
        } = &inst.kind
        else {
            return;
        };
        let called = Called {
            module: self.module,
            kernel: self.kernel,
            texture: *texture,
            function: *function,
            args,
            span: inst.span,
        };
        let poison = self.poison;
        let given = called.check(&|value| poison.contains(&value), self.errors);
        if let Some(given) = given {
            self.results(inst, given.as_slice());
        }
    }

    fn inst(&mut self, inst: &'a Inst) {
        let span = inst.span;
        match &inst.kind {
            InstKind::Const(constant) => self.results(inst, &[Type::Scalar(constant.scalar)]),
            InstKind::FunctionConstant(id) => {
                let scalar = self.module.function_constants[*id as usize].scalar;
                self.results(inst, &[Type::Scalar(scalar)]);
            }
            InstKind::Op { op, imm, args } => {
                let types: SmallVec<[Type; 4]> = args.iter().map(|v| self.ty(*v)).collect();
                match op.result_type(*imm, &types) {
                    Ok(ty) => self.results(inst, &[ty]),
                    Err(error) => {
                        let message = error.message(self.kernel, *op, args, &|v| self.name(v));
                        self.mismatch(span, message, error.help());
                    }
                }
            }
            InstKind::BufferLength(memory) => {
                if !matches!(memory, Memory::Param(_)) {
                    let message = "`buffer_length` asks for the length of a parameter, and an \
                                   array's is fixed";
                    self.mismatch(span, message.into(), "write its length as a `const u64`");
                }
                self.results(inst, &[Type::U64]);
            }
            InstKind::Load(place) => {
                if let Some(ty) = self.place(place, span) {
                    self.results(inst, &[ty]);
                }
            }
            InstKind::Store { place, value } => {
                if let Some(ty) = self.place(place, span) {
                    self.exactly(*value, ty, "the stored value", span);
                }
                self.results(inst, &[]);
            }
            InstKind::Atomic {
                op, place, args, ..
            } => self.atomic(inst, *op, place, args),
            InstKind::Alloc(_) | InstKind::Barrier { .. } => self.results(inst, &[]),
            InstKind::Texture { .. } => self.texture(inst),
            InstKind::Copy { operands, count } => {
                self.copy(operands, span);
                self.integer(*count, "the number of elements", span);
                self.results(inst, &[]);
            }
            InstKind::AsyncCopy { operands, shape } => self.async_copy(inst, operands, shape),
            InstKind::Wait { events } => {
                for event in events {
                    self.exactly(*event, Type::Event, "what is waited for", span);
                }
                self.results(inst, &[]);
            }
            InstKind::MatrixFill { value } => match self.matrix_result(inst) {
                Some(scalar) => self.exactly(*value, scalar.into(), "the entry", span),
                None => self.not_a_matrix(inst),
            },
            InstKind::MatrixLoad { place } => match self.matrix_result(inst) {
                Some(scalar) => self.matrix_place(place, scalar, span),
                None => self.not_a_matrix(inst),
            },
            InstKind::MatrixStore { place, matrix } => {
                match self.ty(*matrix) {
                    _ if self.is_poison(*matrix) => {}
                    Type::SimdgroupMatrix { scalar, .. } => self.matrix_place(place, scalar, span),
                    ty => {
                        let message = format!(
                            "the stored matrix (`{}`) has type {ty}, expected a simdgroup matrix",
                            self.name(*matrix)
                        );
                        self.mismatch(span, message, "store other values with `store`");
                    }
                }
                self.results(inst, &[]);
            }
            InstKind::MatrixMultiplyAccumulate { a, b, c } => self.multiply(inst, *a, *b, *c),
            InstKind::AssertUniform { value, .. } => {
                let ty = self.ty(*value);
                match ty {
                    Type::Scalar(_) | Type::Vector(..) | Type::Matrix { .. } => {}
                    Type::SimdgroupMatrix { .. } | Type::Event => {
                        let message = format!(
                            "`{}` has type {ty}, which is the simdgroup's together",
                            self.name(*value)
                        );
                        self.mismatch(span, message, "assert it of scalars, vectors and matrices");
                    }
                }
                self.results(inst, &[ty]);
            }
            InstKind::If {
                condition,
                then,
                otherwise,
            } => {
                self.exactly(*condition, Type::BOOL, "the condition", span);
                self.targets.push(Target {
                    inst,
                    carried: None,
                });
                self.region(then);
                self.region(otherwise);
                self.targets.pop();
            }
            InstKind::For {
                lower,
                upper,
                step,
                init,
                body,
            } => {
                self.bounds(*lower, *upper, *step, span);
                let carried = body.params.get(1..).unwrap_or_default();
                if let Some(index) = body.params.first() {
                    let expected = self.ty(*lower);
                    if !self.is_poison(*lower) {
                        self.exactly(*index, expected, "the index", span);
                    }
                }
                self.loop_(inst, init, carried, body);
            }
            InstKind::Loop { init, body } => self.loop_(inst, init, &body.params, body),
            InstKind::Yield(values) => {
                let around = self.targets.last().copied();
                self.gives(inst, "yield", values, around);
                self.results(inst, &[]);
            }
            InstKind::Break(values) => {
                let around = self.innermost_loop();
                self.gives(inst, "break", values, around);
                self.results(inst, &[]);
            }
            InstKind::Continue(values) => {
                let around = self.innermost_loop();
                self.gives(inst, "continue", values, around);
                self.results(inst, &[]);
            }
            InstKind::Return => self.results(inst, &[]),
            InstKind::Print { text, values } => {
                self.print(text, values, span);
                self.results(inst, &[]);
            }
        }
    }

    fn async_copy(&mut self, inst: &'a Inst, operands: &CopyOperands, shape: &CopyShape) {
        let span = inst.span;
        self.copy(operands, span);
        match shape {
            CopyShape::Linear { count } => {
                self.integer(*count, "the number of elements", span);
            }
            CopyShape::Tile {
                destination_row,
                source_row,
                columns,
                rows,
            } => {
                self.integer(*destination_row, "the destination's row length", span);
                self.integer(*source_row, "the source's row length", span);
                self.integer(*columns, "the number of columns", span);
                self.integer(*rows, "the number of rows", span);
            }
        }
        self.results(inst, &[Type::Event]);
    }

    // ---- print ----

    fn print(&mut self, text: &str, values: &[Value], span: Span) {
        let mut error = |rule, message: String, help: &str| {
            let error = Diagnostic::error(rule, span, message);
            self.errors.push(error.help(help));
        };
        let template = match Template::parse(text) {
            Ok(template) => template,
            Err(message) => {
                let help = "write `{}`, `{:x}` or `{:c}` for a value, `{{` and `}}` for braces";
                return error(Rule::PrintFormat, message, help);
            }
        };
        let places = template.placeholders();
        if places != values.len() {
            let message = format!(
                "the text has {places} of `{{}}`, `{{:x}}` and `{{:c}}` for {}",
                count(values.len())
            );
            let help = "give one value for each `{}`";
            return error(Rule::PrintFormat, message, help);
        }
        let types: Vec<Type> = values.iter().map(|v| self.kernel.ty(*v)).collect();
        let scalars: u32 = types.iter().map(|ty| ty.component_count()).sum();
        if text.len() > MAX_TEXT_BYTES || scalars as usize > MAX_SCALARS {
            let message = format!(
                "a `print` has at most {MAX_TEXT_BYTES} bytes of text and {MAX_SCALARS} scalars, not \
                 {} and {scalars}",
                text.len()
            );
            return error(Rule::LimitExceeded, message, "print it in parts");
        }
        for (value, ty) in values.iter().zip(&types) {
            if !matches!(ty, Type::Scalar(_) | Type::Vector(..)) && !self.is_poison(*value) {
                let message = format!(
                    "the printed value (`{}`) has type {ty}, expected a scalar or vector",
                    self.name(*value)
                );
                self.mismatch(span, message, "print its parts");
            }
        }
        if let Some((at, mark)) = template.mismatch(&types)
            && !self.is_poison(values[at])
        {
            let message = format!(
                "the printed value (`{}`) has type {}, but `{mark}` stands for integers",
                self.name(values[at]),
                types[at]
            );
            self.mismatch(span, message, "write `{}`, or `as_type` an integer");
        }
    }

    // ---- memory ----

    fn place(&mut self, place: &Place, span: Span) -> Option<Type> {
        match place_type(self.module, self.kernel, place) {
            Ok(ty) => Some(ty),
            Err(message) => {
                self.mismatch(span, message, PLACE_HELP);
                None
            }
        }
    }

    fn atomic(&mut self, inst: &Inst, op: AtomicOp, place: &Place, args: &[Value]) {
        // What is not a texel is reported with textures.
        if self.kernel.texture(place.memory).is_some() && atomic_texel(self.kernel, place).is_none()
        {
            return;
        }
        let Some(ty) = self.place(place, inst.span) else {
            return;
        };
        if args.len() != op.operand_count() {
            let message = format!(
                "`{}` takes {} values, found {}",
                op.name(),
                op.operand_count(),
                args.len()
            );
            self.mismatch(inst.span, message, "give it those values");
        }
        for arg in args {
            self.exactly(*arg, ty, "an operand", inst.span);
        }
        match (op.reads(), op) {
            (_, AtomicOp::CompareExchange) => self.results(inst, &[ty, Type::BOOL]),
            (true, _) => self.results(inst, &[ty]),
            (false, _) => self.results(inst, &[]),
        }
    }

    fn copy(&mut self, operands: &CopyOperands, span: Span) {
        self.integer(operands.destination_index, "the destination's index", span);
        self.integer(operands.source_index, "the source's index", span);
        let destination = self.module.memory(self.kernel, operands.destination);
        let source = self.module.memory(self.kernel, operands.source);
        if let (Some(destination), Some(source)) = (destination, source)
            && destination.element != source.element
        {
            let message = format!(
                "`{}` and `{}` have elements of different types",
                destination.name, source.name
            );
            self.mismatch(
                span,
                message,
                "copy between elements of one type, or load and store",
            );
        }
    }

    // ---- simdgroup matrices ----

    /// The scalar of the one result, a simdgroup matrix.
    fn matrix_result(&self, inst: &Inst) -> Option<Scalar> {
        match inst.results.first().map(|v| self.ty(*v)) {
            Some(Type::SimdgroupMatrix { scalar, .. }) if inst.results.len() == 1 => Some(scalar),
            _other_type => None,
        }
    }

    fn not_a_matrix(&mut self, inst: &Inst) {
        let message = match inst.results.first() {
            Some(result) => format!(
                "`{}` has type {}, expected a simdgroup matrix",
                self.name(*result),
                self.ty(*result)
            ),
            None => "the instruction gives a simdgroup matrix that nothing defines".to_string(),
        };
        self.mismatch(inst.span, message, "name its type: `simdgroup_f32x8x8`");
    }

    fn matrix_place(&mut self, place: &MatrixPlace, scalar: Scalar, span: Span) {
        self.integer(place.index, "the index", span);
        self.integer(place.row, "the row length", span);
        if let Some(info) = self.module.memory(self.kernel, place.memory)
            && *info.element != ElementType::Value(Type::Scalar(scalar))
        {
            let message = format!(
                "the elements of `{}` are not the matrix's entries, {scalar}",
                info.name
            );
            self.mismatch(
                span,
                message,
                "keep matrices in memory of their scalar type",
            );
        }
    }

    /// `a` (m x k) by `b` (k x n) plus `c` (m x n); `c` may be f32 where the factors are narrower.
    fn multiply(&mut self, inst: &Inst, a: Value, b: Value, c: Value) {
        if self.any_poison(&[a, b, c]) {
            return;
        }
        let types = [a, b, c].map(|v| self.ty(v));
        let [
            Type::SimdgroupMatrix {
                scalar: sa,
                rows: m,
                columns: k,
            },
            Type::SimdgroupMatrix {
                scalar: sb,
                rows: k2,
                columns: n,
            },
            Type::SimdgroupMatrix {
                scalar: sc,
                rows: m2,
                columns: n2,
            },
        ] = types
        else {
            let wrong = [a, b, c]
                .into_iter()
                .find(|v| !matches!(self.ty(*v), Type::SimdgroupMatrix { .. }));
            if let Some(wrong) = wrong {
                let message = format!(
                    "`{}` has type {}, expected a simdgroup matrix",
                    self.name(wrong),
                    self.ty(wrong)
                );
                self.mismatch(inst.span, message, "load or fill a simdgroup matrix");
            }
            return;
        };
        let narrow = matches!(sa, Scalar::F16 | Scalar::BF16);
        if (m, k, n) != (m2, k2, n2) || sa != sb || !(sc == sa || narrow && sc == Scalar::F32) {
            let message = format!("{} by {} plus {} do not fit", types[0], types[1], types[2]);
            let help = "the factors have one scalar type, and the sum that type or f32";
            self.mismatch(inst.span, message, help);
        }
        self.results(inst, &[types[2]]);
    }

    // ---- regions ----

    fn bounds(&mut self, lower: Value, upper: Value, step: Value, span: Span) {
        if self.is_poison(lower) {
            return;
        }
        let ty = self.ty(lower);
        let Type::Scalar(scalar) = ty else {
            self.integer(lower, "the first index", span);
            return;
        };
        if !scalar.is_integer() {
            self.integer(lower, "the first index", span);
            return;
        }
        self.exactly(upper, ty, "the bound", span);
        let found = self.ty(step);
        let fits = match found {
            Type::Scalar(s) => s == scalar || s.is_signed_integer() && s.bits() == scalar.bits(),
            Type::Vector(..) | Type::Matrix { .. } | Type::SimdgroupMatrix { .. } | Type::Event => {
                false
            }
        };
        if !fits && !self.is_poison(step) {
            let message = format!(
                "the step (`{}`) has type {found}, expected {scalar} or the signed integer of its \
                 width",
                self.name(step)
            );
            self.mismatch(span, message, "write a `cast`");
        }
    }

    fn innermost_loop(&self) -> Option<Target<'a>> {
        self.targets
            .iter()
            .rev()
            .find(|target| target.carried.is_some())
            .copied()
    }

    fn loop_(&mut self, inst: &'a Inst, init: &[Value], carried: &'a [Value], body: &'a Region) {
        for (first, param) in init.iter().zip(carried) {
            let expected = self.ty(*param);
            let first_ty = self.ty(*first);
            if first_ty != expected && !self.any_poison(&[*first, *param]) {
                let message = format!(
                    "`{}` has type {expected}, but the loop begins with `{}`, of type {first_ty}",
                    self.name(*param),
                    self.name(*first)
                );
                self.carried(inst.span, message, None, CAST_HELP);
            }
        }
        let types: Vec<Type> = carried.iter().map(|v| self.ty(*v)).collect();
        let found: Vec<Type> = inst.results.iter().map(|v| self.ty(*v)).collect();
        if types != found && !self.any_poison(carried) {
            let message = format!(
                "the loop carries {} ({}) but its results are {} ({})",
                count(types.len()),
                list(&types),
                count(found.len()),
                list(&found)
            );
            let help = "give the loop one result for each value that it carries";
            self.carried(inst.span, message, None, help);
        }
        self.targets.push(Target {
            inst,
            carried: Some(carried),
        });
        self.region(body);
        self.targets.pop();
    }

    fn carried(&mut self, span: Span, message: String, around: Option<&Inst>, help: &str) {
        let mut error = Diagnostic::error(Rule::CarriedValues, span, message);
        if let Some(around) = around {
            let word = match &around.kind {
                InstKind::If { .. } => "for this `if`",
                InstKind::For { .. } | InstKind::Loop { .. } => "for this loop",
                _flat => "for this",
            };
            error = error.and(around.span, word);
        }
        self.errors.push(error.help(help));
    }

    /// A terminator gives what the `if` or the loop takes. Where there is none, the terminator is
    /// misplaced, which is said elsewhere.
    fn gives(&mut self, inst: &Inst, word: &str, values: &[Value], around: Option<Target<'a>>) {
        let Some(target) = around else {
            return;
        };
        // A loop's body gives the carried values, and a `break` results that have their types.
        let takers = target.carried.unwrap_or(&target.inst.results);
        let holder = if target.carried.is_some() {
            "loop"
        } else {
            "`if`"
        };
        // What could not be built may have been more values than stand here.
        if values.len() != takers.len() && self.any_poison(values) {
            return;
        }
        if values.len() != takers.len() {
            let names = match takers {
                [] => String::new(),
                takers => format!(" ({})", names(self.module, self.kernel, takers)),
            };
            let message = format!(
                "`{word}` gives {}, but the {holder} takes {}{names}",
                count(values.len()),
                takers.len()
            );
            let help = match takers {
                [] => format!("write `{word}` without values"),
                [_] if word == "break" => "give it the result of the loop".to_string(),
                [_] if target.carried.is_none() => {
                    "give it the value that the `if` has on this side".to_string()
                }
                [one] => format!("give it what `{}` is to be next", self.name(*one)),
                _several => format!("give `{word}` one value for each, in their order"),
            };
            self.carried(inst.span, message, Some(target.inst), &help);
            return;
        }
        for (value, taker) in values.iter().zip(takers) {
            let (found, expected) = (self.ty(*value), self.ty(*taker));
            if found != expected && !self.any_poison(&[*value, *taker]) {
                let (value, taker) = (self.name(*value), self.name(*taker));
                let message = if target.carried.is_some() {
                    format!(
                        "`{taker}` is carried as {expected}, but `{word}` gives `{value}`, of type \
                         {found}"
                    )
                } else {
                    format!(
                        "`{taker}` is {expected} on one side of the `if`, but here `{value}` has \
                         type {found}"
                    )
                };
                self.carried(inst.span, message, Some(target.inst), CAST_HELP);
            }
        }
    }
}

const CAST_HELP: &str = "cast it, or give it one type from the start";

fn count(n: usize) -> String {
    match n {
        0 => "no values".to_string(),
        1 => "1 value".to_string(),
        n => format!("{n} values"),
    }
}

fn list(types: &[Type]) -> String {
    let shown: Vec<String> = types.iter().take(8).map(Type::to_string).collect();
    shown.join(", ")
}
