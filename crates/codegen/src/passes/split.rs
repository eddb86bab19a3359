//! Splitting: a grid of one dimension whose threads take their place apart, into a column `i % w` and a row `i / w`,
//! becomes a grid of two, in which the column is x and the row is y.
//!
//! ```text
//! i = y * w + x      i % w = x      i / w = y      i % (w * h) = y % h * w + x      i / (w * h) = y / h
//! ```
//!
//! This is for images, matrices and rows with a bias that are gone through by one number: along a row neighbours then
//! read neighbours, which a remainder hides, and no lane divides. Quotients of quotients, for three dimensions and
//! more, are left: they are the same for a row.
//!
//! Which number divides is known, here, as a product of constants and of scalar parameters (`Divisor`); what the
//! parameters are, and whether the rows fill the grid, only who dispatches the kernel knows ([`Split::rows`]). Where
//! all divisors are positive and neither they nor the grid exceed 31 bits, nothing above wraps in 32 bits, and signed
//! and unsigned division are the same.
//!
//! Deliberately absent: rows that do not fill the grid, and places that something was added to.

use std::collections::HashMap;

use invar_ir::{
    Const, Dim, Imm, Inst, InstKind, Kernel, Op, ParamKind, Region, Scalar, Span, Type, Value,
    ValueInfo,
};

use super::common::{Map, constants, definitions, integer, push_const, push_inst, substitute};
use crate::tuning::{LEAST_SPLIT_WIDTH, LONG_SPLIT_WIDTH, SPLIT_VECTOR};

/// How many operations deep a divisor is followed.
const DEPTH: u32 = 8;

/// A number that divides: a product of a constant and of scalar parameters, in their order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Divisor {
    parameters: Vec<usize>,
    constant: u32,
}

impl Divisor {
    fn times(mut self, other: &Divisor) -> Option<Divisor> {
        self.parameters.extend(&other.parameters);
        self.parameters.sort_unstable();
        self.constant = self.constant.checked_mul(other.constant)?;
        Some(self)
    }

    /// What it is so many times another.
    fn over(&self, other: &Divisor) -> Option<Divisor> {
        let mut rest = self.parameters.clone();
        for own in &other.parameters {
            rest.remove(rest.iter().position(|p| p == own)?);
        }
        let divides = self.constant.is_multiple_of(other.constant);
        divides.then(|| Divisor {
            parameters: rest,
            constant: self.constant / other.constant,
        })
    }

    fn number(&self, value: &dyn Fn(usize) -> Option<i128>) -> Option<u32> {
        let factors = self.parameters.iter().map(|p| value(*p));
        let mut all = self.constant;
        for factor in factors {
            all = all.checked_mul(u32::try_from(factor?).ok()?)?;
        }
        (1..=i32::MAX as u32).contains(&all).then_some(all)
    }
}

/// How the grid of a kernel is split.
#[derive(Clone, Debug)]
pub struct Split {
    width: Divisor,
    /// All that were taken for what they are as mathematical integers.
    divisors: Vec<Divisor>,
}

impl Split {
    /// The grid of two dimensions that the kernel runs in where it was to run in this one, if it can and that is
    /// worth it. `value` tells what a parameter is, by its number, where it is an integer.
    pub fn rows(
        &self,
        threads: [u32; 3],
        value: &dyn Fn(usize) -> Option<i128>,
    ) -> Option<[u32; 3]> {
        let [all, 1, 1] = threads else {
            return None;
        };
        if all > i32::MAX as u32 || self.divisors.iter().any(|d| d.number(value).is_none()) {
            return None;
        }
        let width = self.width.number(value)?;
        let long = width >= LONG_SPLIT_WIDTH || width.is_multiple_of(SPLIT_VECTOR);
        let fits = width >= LEAST_SPLIT_WIDTH && long && all.is_multiple_of(width);
        fits.then(|| [width, all / width, 1])
    }
}

/// Makes a kernel that knows of itself only where it stands in a grid of one dimension one for a grid of two; `None`,
/// and the kernel as it was, if it does not divide its place.
pub(super) fn run(kernel: &mut Kernel) -> Option<Split> {
    let known = Known::of(kernel);
    let mut found = Vec::new();
    known.divisors(&kernel.body, &mut Vec::new(), &mut found);
    let short = |d: &Divisor| d.parameters.is_empty() && d.constant < LEAST_SPLIT_WIDTH;
    let width = found.into_iter().filter(|d| !short(d)).min()?;
    let mut rewrite = Rewrite {
        values: &mut kernel.values,
        known,
        split: Split {
            divisors: vec![width.clone()],
            width,
        },
        rows: HashMap::new(),
        map: Map::new(),
        place: None,
    };
    let mut insts = Vec::new();
    let place = rewrite.begin(&mut insts);
    rewrite.place = Some(place);
    let body = rewrite.region(std::mem::take(&mut kernel.body), insts);
    let split = rewrite.split;
    kernel.body = body;
    Some(split)
}

const ONE: Divisor = Divisor {
    parameters: Vec::new(),
    constant: 1,
};

/// What divides, by the values that do.
struct Known {
    divisors: HashMap<Value, Divisor>,
    constants: HashMap<Value, Const>,
    /// Values of scalar parameters, by the parameters' numbers.
    parameters: HashMap<usize, Value>,
    types: Vec<Type>,
}

impl Known {
    fn of(kernel: &Kernel) -> Known {
        let scalars = kernel.params.iter().enumerate();
        let parameters = scalars.filter_map(|(number, param)| match &param.kind {
            ParamKind::Scalar { value } => Some((number, *value)),
            _memory => None,
        });
        let mut known = Known {
            divisors: HashMap::new(),
            constants: constants(kernel),
            parameters: parameters.collect(),
            types: kernel.values.iter().map(|info| info.ty).collect(),
        };
        let definitions = definitions(kernel);
        let all = (0..kernel.values.len() as u32).map(Value);
        let divisors = all.filter_map(|v| Some((v, known.divisor(v, &definitions, DEPTH)?)));
        known.divisors = divisors.collect();
        known
    }

    fn divisor(&self, value: Value, definitions: &[Option<&Inst>], depth: u32) -> Option<Divisor> {
        let depth = depth.checked_sub(1)?;
        let ty = self.types[value.0 as usize];
        if !ty.is_integer_scalar() {
            return None;
        }
        if let Some(constant) = self.constants.get(&value) {
            let constant = u32::try_from(integer(*constant)?).ok()?;
            let positive = constant > 0;
            return positive.then(|| Divisor {
                parameters: Vec::new(),
                constant,
            });
        }
        let Some(definition) = definitions[value.0 as usize] else {
            let mut own = self.parameters.iter().filter(|(_, v)| **v == value);
            let number = own.next()?.0;
            return Some(Divisor {
                parameters: vec![*number],
                constant: 1,
            });
        };
        // Neither loses what is positive and has 31 bits.
        if !is_wide(ty) {
            return None;
        }
        match definition.kind.as_op()? {
            (Op::Cast, _, [from]) => self.divisor(*from, definitions, depth),
            (Op::Mul, _, [a, b]) => {
                let [a, b] = [a, b].map(|v| self.divisor(*v, definitions, depth));
                a?.times(&b?)
            }
            _no_product => None,
        }
    }

    /// What a quotient or a remainder divides by, and which of the two it is.
    fn division(&self, op: Op, args: &[Value]) -> Option<(Part, Divisor)> {
        let [_, by] = args else {
            return None;
        };
        let power = |bits: u32| {
            Some(Divisor {
                parameters: Vec::new(),
                constant: 1u32.checked_shl(bits)?,
            })
        };
        match op {
            Op::Div => Some((Part::Row, self.divisors.get(by)?.clone())),
            Op::Rem => Some((Part::Column, self.divisors.get(by)?.clone())),
            Op::Shr | Op::ShrExact => {
                let count = integer(*self.constants.get(by)?)?;
                let count = u32::try_from(count).ok().filter(|count| *count < 31)?;
                Some((Part::Row, power(count)?))
            }
            Op::And => {
                let mask = u32::try_from(integer(*self.constants.get(by)?)?).ok()?;
                let is_low = mask & mask.wrapping_add(1) == 0 && mask < 1 << 30;
                is_low.then(|| Some((Part::Column, power(mask.count_ones())?)))?
            }
            _other => None,
        }
    }

    /// All that a place is divided by, and a remainder of one.
    fn divisors(&self, region: &Region, places: &mut Vec<Value>, found: &mut Vec<Divisor>) {
        for inst in &region.insts {
            if let Some((op, imm, args)) = inst.kind.as_op() {
                let result = inst.results[0];
                let of_place = args.first().is_some_and(|v| places.contains(v));
                let is_position = (op, imm) == (Op::ThreadPositionInGrid, Imm::Dim(Dim::X));
                let is_widened =
                    op == Op::Cast && of_place && is_wide(self.types[result.0 as usize]);
                if is_position || is_widened {
                    places.push(result);
                } else if of_place && let Some((part, by)) = self.division(op, args) {
                    found.push(by);
                    if part == Part::Column {
                        places.push(result);
                    }
                }
            }
            for inner in inst.kind.regions() {
                self.divisors(inner, places, found);
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Row,
    Column,
}

fn is_wide(ty: Type) -> bool {
    ty.is_integer_scalar() && ty.scalar().is_some_and(|scalar| scalar.bits() >= 32)
}

/// The thread's column, and where it stands in the grid of one dimension.
#[derive(Clone, Copy)]
struct Placed {
    column: Value,
    place: Value,
    width: Value,
}

struct Rewrite<'a> {
    values: &'a mut Vec<ValueInfo>,
    known: Known,
    split: Split,
    /// Values that are so many rows and the column.
    rows: HashMap<Value, Value>,
    map: Map,
    place: Option<Placed>,
}

impl Rewrite<'_> {
    /// Puts the place in the grid of two dimensions at the beginning.
    fn begin(&mut self, out: &mut Vec<Inst>) -> Placed {
        let [column, row] = [Dim::X, Dim::Y].map(|dim| {
            let op = Op::ThreadPositionInGrid;
            self.push(op, Imm::Dim(dim), Type::U32, &[], Span::NONE, out)
        });
        let width = self.split.width.clone();
        let width = self.product(&width, Span::NONE, out);
        let first = self.op(Op::Mul, &[row, width], Span::NONE, out);
        let place = self.op(Op::Add, &[first, column], Span::NONE, out);
        self.rows.insert(place, row);
        Placed {
            column,
            place,
            width,
        }
    }

    fn region(&mut self, region: Region, mut out: Vec<Inst>) -> Region {
        for mut inst in region.insts {
            substitute(&self.map, &mut inst.kind);
            let replaced = match inst.kind.as_op() {
                Some((op, imm, args)) => {
                    let (args, result) = (args.to_vec(), inst.results[0]);
                    self.replaced(op, imm, &args, result, inst.span, &mut out)
                }
                None => None,
            };
            if let Some(value) = replaced {
                self.map.insert(inst.results[0], value);
                continue;
            }
            for inner in inst.kind.regions_mut() {
                *inner = self.region(std::mem::take(inner), Vec::new());
            }
            out.push(inst);
        }
        Region {
            insts: out,
            ..region
        }
    }

    /// What stands for the result of an operation.
    fn replaced(
        &mut self,
        op: Op,
        imm: Imm,
        args: &[Value],
        result: Value,
        span: Span,
        out: &mut Vec<Inst>,
    ) -> Option<Value> {
        let placed = self.place.expect("it was put at the beginning");
        let ty = self.values[result.0 as usize].ty;
        match (op, imm) {
            (Op::ThreadPositionInGrid, Imm::Dim(Dim::X)) => return Some(placed.place),
            (Op::ThreadPositionInGrid, Imm::Dim(_)) => return Some(self.number(0, span, out)),
            (Op::ThreadsPerGrid | Op::GridSize, Imm::Dim(Dim::X)) => {
                let [x, y] = [Dim::X, Dim::Y].map(|dim| {
                    let op = Op::ThreadsPerGrid;
                    self.push(op, Imm::Dim(dim), Type::U32, &[], span, out)
                });
                return Some(self.op(Op::Mul, &[x, y], span, out));
            }
            (Op::ThreadsPerGrid | Op::GridSize, Imm::Dim(_)) => {
                return Some(self.number(1, span, out));
            }
            _other => {}
        }
        let row = *self.rows.get(args.first()?)?;
        if op == Op::Cast && is_wide(ty) {
            self.rows.insert(result, row);
            return None;
        }
        let (part, by) = self.known.division(op, args)?;
        let rest = by.over(&self.split.width)?;
        self.split.divisors.push(by);
        let value = match (part, rest == ONE) {
            (Part::Row, true) => row,
            (Part::Column, true) => placed.column,
            (Part::Row, false) => {
                let rest = self.product(&rest, span, out);
                self.op(Op::Div, &[row, rest], span, out)
            }
            (Part::Column, false) => {
                let rest = self.product(&rest, span, out);
                let row = self.op(Op::Rem, &[row, rest], span, out);
                let first = self.op(Op::Mul, &[row, placed.width], span, out);
                let all = self.op(Op::Add, &[first, placed.column], span, out);
                self.rows.insert(all, row);
                let value = self.cast(all, ty, span, out);
                self.rows.insert(value, row);
                return Some(value);
            }
        };
        Some(self.cast(value, ty, span, out))
    }

    fn product(&mut self, of: &Divisor, span: Span, out: &mut Vec<Inst>) -> Value {
        let mut product = None;
        for number in &of.parameters {
            let parameter = self.known.parameters[number];
            let factor = self.cast(parameter, Type::U32, span, out);
            product = Some(match product {
                None => factor,
                Some(before) => self.op(Op::Mul, &[before, factor], span, out),
            });
        }
        match product {
            Some(product) if of.constant == 1 => product,
            Some(product) => {
                let constant = self.number(of.constant, span, out);
                self.op(Op::Mul, &[product, constant], span, out)
            }
            None => self.number(of.constant, span, out),
        }
    }

    fn number(&mut self, bits: u32, span: Span, out: &mut Vec<Inst>) -> Value {
        let constant = Const {
            scalar: Scalar::U32,
            bits: bits.into(),
        };
        push_const(self.values, out, constant, span)
    }

    fn cast(&mut self, value: Value, ty: Type, span: Span, out: &mut Vec<Inst>) -> Value {
        if self.values[value.0 as usize].ty == ty {
            return value;
        }
        self.push(Op::Cast, Imm::Type(ty), ty, &[value], span, out)
    }

    fn op(&mut self, op: Op, args: &[Value], span: Span, out: &mut Vec<Inst>) -> Value {
        self.push(op, Imm::None, Type::U32, args, span, out)
    }

    fn push(
        &mut self,
        op: Op,
        imm: Imm,
        ty: Type,
        args: &[Value],
        span: Span,
        out: &mut Vec<Inst>,
    ) -> Value {
        let args = args.iter().copied().collect();
        let kind = InstKind::Op { op, imm, args };
        push_inst(self.values, out, kind, ty, span)
    }
}
