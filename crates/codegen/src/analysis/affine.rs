//! Affine indices: an integer as a sum of products of where a thread stands, of the iterations of loops, and of
//! values that are not looked into.
//!
//! ```text
//! value = constant + sum of factor * symbol * symbol * ...   (modulo two to `bits`)
//! ```
//!
//! How an index is spelled does not matter: a product and a shift, an `add` and an `or` of numbers without
//! common bits, `u32`, `i32` and 64-bit integers, a position in the grid and one put together from the
//! threadgroup's and the thread's give the same sum.
//!
//! - Seen through: `add`, `sub`, `neg`, `mul` and `shl`, of constants or not; `or` and `xor` of numbers without
//!   common bits; quotients and right shifts that leave no remainder; conversions between integers; a `for`'s
//!   index, which is `lower + step * iteration`; positions and sizes.
//! - Seen through only where ranges show that it changes nothing or which operand it picks: `and` with a mask,
//!   `rem`, `min`, `max`, `clamp`; and a `select` of two equal sums.
//! - Everything else is a symbol of its own ([`Symbol::Value`]): other `min`, `max`, `select`, `rem` and quotients,
//!   loads, what loops carry. Two indices that share one still have a known distance.
//!
//! Wrapping (A1) is stated, not assumed away: a sum holds modulo two to [`Form::bits`], which for arithmetic that
//! may wrap is the width that it was computed in, also behind a conversion to a wider type; where ranges show that
//! nothing wraps the sum is [`Form::exact`]. Who only decides what is fast may look at neither.
//!
//! Deliberately absent: what loops carry, of which `passes/induction.rs` makes sums where it grows evenly; the
//! results of an `if`; how values differ over the lanes of a vector where ways meet, which is [`super::lanes`]'s.

use std::collections::HashMap;

use invar_ir::ops::Meaning;
use invar_ir::{Const, Dim, Imm, Inst, InstKind, Kernel, Op, Region, Scalar, Type, Value};

use super::ranges::Ranges;
use crate::passes::common::{definitions, integer};

/// Products beyond which a sum is not multiplied out but a symbol of its own.
const MOST_TERMS: usize = 16;
/// Symbols of a product.
const MOST_SYMBOLS: usize = 4;
/// How many operations deep a symbol that is itself computed is followed ([`Affine::depends_only_on`]).
const DEPTH: u32 = 32;

/// What a product is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Symbol {
    /// `thread_position_in_threadgroup`.
    Thread(Dim),
    /// `threadgroup_position_in_grid`.
    Threadgroup(Dim),
    /// `dispatch_threads_per_threadgroup`, where it is not known.
    Size(Dim),
    /// What another query of a place or a size gives, of a dimension or of all.
    Query(Op, Option<Dim>),
    /// How many iterations the `for` with this index made before.
    Iteration(Value),
    /// Two to this, which is taken modulo this width: what a shift multiplies by.
    Power(Value, u32),
    /// A value that is not looked into.
    Value(Value),
}

/// Symbols multiplied with each other, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Product {
    symbols: [Option<Symbol>; MOST_SYMBOLS],
}

impl Product {
    /// One symbol.
    pub fn of(symbol: Symbol) -> Product {
        let mut symbols = [None; MOST_SYMBOLS];
        symbols[0] = Some(symbol);
        Product { symbols }
    }

    /// Its symbols.
    pub fn symbols(&self) -> impl Iterator<Item = Symbol> + '_ {
        self.symbols.iter().copied().flatten()
    }

    fn from_symbols(all: impl Iterator<Item = Symbol>) -> Option<Product> {
        let mut symbols = [None; MOST_SYMBOLS];
        let mut count = 0;
        for symbol in all {
            *symbols.get_mut(count)? = Some(symbol);
            count += 1;
        }
        symbols[..count].sort_unstable();
        Some(Product { symbols })
    }

    fn times(&self, other: &Product) -> Option<Product> {
        Product::from_symbols(self.symbols().chain(other.symbols()))
    }
}

/// A sum: terms, how often each, and a constant. Arithmetic wraps modulo two to the 64.
#[derive(Clone, Debug)]
pub struct Sum<T> {
    terms: Vec<(T, i64)>,
    constant: i64,
}

impl<T: PartialEq> PartialEq for Sum<T> {
    fn eq(&self, other: &Sum<T>) -> bool {
        self.constant == other.constant
            && self.terms.len() == other.terms.len()
            && self.terms.iter().all(|term| other.terms.contains(term))
    }
}

impl<T: Clone + PartialEq> Sum<T> {
    /// A constant.
    pub fn constant(constant: i64) -> Sum<T> {
        Sum {
            terms: Vec::new(),
            constant,
        }
    }

    /// One term.
    pub fn of(term: T) -> Sum<T> {
        Sum {
            terms: vec![(term, 1)],
            constant: 0,
        }
    }

    /// What is added, and how often.
    pub fn terms(&self) -> &[(T, i64)] {
        &self.terms
    }

    /// What is added whatever the terms are.
    pub fn offset(&self) -> i64 {
        self.constant
    }

    /// The number, if there are no terms.
    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// A constant more.
    #[must_use]
    pub fn shifted(mut self, by: i64) -> Sum<T> {
        self.constant = self.constant.wrapping_add(by);
        self
    }

    /// So many times another sum more.
    #[must_use]
    pub fn plus(mut self, other: &Sum<T>, times: i64) -> Sum<T> {
        for (term, count) in &other.terms {
            self.add(term, count.wrapping_mul(times));
        }
        self.terms.retain(|(_, count)| *count != 0);
        self.shifted(other.constant.wrapping_mul(times))
    }

    fn add(&mut self, term: &T, times: i64) {
        match self.terms.iter_mut().find(|(own, _)| own == term) {
            Some((_, count)) => *count = count.wrapping_add(times),
            None => self.terms.push((term.clone(), times)),
        }
    }
}

impl Sum<Product> {
    /// The product of two sums, if it is not too long.
    fn times(&self, other: &Sum<Product>) -> Option<Sum<Product>> {
        if self.terms.len() * other.terms.len() > MOST_TERMS {
            return None;
        }
        let mut product = Sum::constant(self.constant.wrapping_mul(other.constant));
        for (a, m) in &self.terms {
            for (b, n) in &other.terms {
                product.add(&a.times(b)?, m.wrapping_mul(*n));
            }
        }
        for (one, factor) in [(self, other.constant), (other, self.constant)] {
            for (term, count) in &one.terms {
                product.add(term, count.wrapping_mul(factor));
            }
        }
        product.terms.retain(|(_, count)| *count != 0);
        Some(product)
    }

    /// Bits of the greatest factor.
    fn factor_bits(&self) -> u32 {
        let factors = self.terms.iter().map(|(_, count)| *count);
        let bits = |n: i64| 64 - n.unsigned_abs().leading_zeros();
        factors.chain([self.constant]).map(bits).max().unwrap_or(0)
    }

    /// Every symbol, as often as it occurs.
    pub fn symbols(&self) -> impl Iterator<Item = Symbol> + '_ {
        self.terms.iter().flat_map(|(product, _)| product.symbols())
    }

    /// What a symbol is multiplied by: how far the sum moves when the symbol grows by one. `None` if that
    /// depends on the symbol, which a product has twice.
    pub fn coefficient(&self, symbol: Symbol) -> Option<Sum<Product>> {
        let mut found = Sum::constant(0);
        for (product, count) in &self.terms {
            let rest = product.symbols().filter(|own| *own != symbol);
            match product.symbols().filter(|own| *own == symbol).count() {
                0 => {}
                1 if product.symbols().count() == 1 => found.constant = *count,
                1 => found.add(&Product::from_symbols(rest)?, *count),
                _squared => return None,
            }
        }
        Some(found)
    }

    /// The same modulo two to `bits`, with the factors that are closest to 0: what adds the greatest number of an
    /// unsigned type subtracts one.
    fn reduced(mut self, bits: u32) -> Sum<Product> {
        let unused = 64 - bits;
        let least = |n: i64| n << unused >> unused;
        for (_, count) in &mut self.terms {
            *count = least(*count);
        }
        self.terms.retain(|(_, count)| *count != 0);
        self.constant = least(self.constant);
        self
    }
}

/// What an integer is the sum of.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// The sum.
    pub sum: Sum<Product>,
    /// The value is the sum modulo two to this.
    pub bits: u32,
    /// The value is the sum as mathematical integers: nothing wrapped.
    pub exact: bool,
}

impl Form {
    fn exactly(sum: Sum<Product>) -> Form {
        Form {
            sum,
            bits: 64,
            exact: true,
        }
    }

    fn of(symbol: Symbol) -> Form {
        Form::exactly(Sum::of(Product::of(symbol)))
    }

    /// The sum is a multiple of two to this.
    fn trailing_zeros(&self) -> u32 {
        let factors = self.sum.terms.iter().map(|(_, count)| *count);
        let all = factors.chain([self.sum.constant]);
        let zeros = all.map(|n| if n == 0 { 64 } else { n.trailing_zeros() });
        zeros.min().unwrap_or(64).min(self.bits)
    }
}

/// What the integers of a kernel are sums of.
#[derive(Debug)]
pub struct Affine<'k> {
    kernel: &'k Kernel,
    /// Of values that are a symbol of their own, none.
    forms: Vec<Option<Form>>,
    definitions: Vec<Option<&'k Inst>>,
}

/// Finds what the integers of a kernel are sums of. `ranges` are those of the kernel; `size` is the size of a full
/// threadgroup, if it is known, and then what is said holds in full threadgroups.
///
/// ```
/// use invar_codegen::analysis::affine::{Symbol, analyse};
/// use invar_codegen::analysis::ranges;
/// use invar_ir::{Dim, Value};
///
/// let text = "kernel @k(%n: u32, %x: device write u32) {
///     %i = thread_position_in_grid x
///     %row = mul %i, %n
///     %two = const u32 2
///     %twice = shl %row, %two
///     %one = const u32 1
///     %next = add %twice, %one
///     store %x[%next], %i
/// }";
/// let module = invar_ir::text::parse("k.inv", text)?;
/// let kernel = &module.kernels[0];
/// let ranges = ranges::analyse(kernel, &ranges::Known::default());
/// let affine = analyse(kernel, &ranges, None);
/// let [n, row, next] = [0, 2, 6].map(Value);
/// // The neighbour in x is 4*n elements on, though sums may have wrapped.
/// let step = affine.of(next).sum.coefficient(Symbol::Thread(Dim::X));
/// let four_n = affine.of(n).sum;
/// assert_eq!(step, Some(four_n.clone().plus(&four_n, 3)));
/// assert_eq!((affine.of(next).bits, affine.of(next).exact), (32, false));
/// # assert!(!affine.of(row).exact);
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
pub fn analyse<'k>(kernel: &'k Kernel, ranges: &Ranges, size: Option<[u32; 3]>) -> Affine<'k> {
    analyse_assuming(kernel, ranges, size, &mut |_, _| None)
}

/// As [`analyse`], where `assume` may say what an operation that would be a symbol of its own is the sum of: it gets
/// what was found so far. What is said of what follows holds where its answers do.
pub fn analyse_assuming<'k>(
    kernel: &'k Kernel,
    ranges: &Ranges,
    size: Option<[u32; 3]>,
    assume: &mut dyn FnMut(&Affine<'k>, &'k Inst) -> Option<Form>,
) -> Affine<'k> {
    let mut walk = Walk {
        ranges,
        size,
        assume,
        affine: Affine {
            kernel,
            forms: vec![None; kernel.values.len()],
            definitions: definitions(kernel),
        },
    };
    walk.region(&kernel.body);
    walk.affine
}

impl<'k> Affine<'k> {
    /// What an integer is the sum of: in the end, of itself.
    pub fn of(&self, value: Value) -> Form {
        let form = self.forms.get(value.0 as usize).cloned().flatten();
        form.unwrap_or_else(|| Form::of(Symbol::Value(value)))
    }

    /// What computes a value; none for parameters.
    pub fn definition(&self, value: Value) -> Option<&'k Inst> {
        self.definitions[value.0 as usize]
    }

    /// Whether all that a sum is computed from is the `same`, where `same` is asked of positions, sizes and
    /// iterations, and of values that are not a result of an operation: parameters, loads, what loops carry. Operations
    /// between lanes are the same nowhere.
    pub fn depends_only_on(
        &self,
        sum: &Sum<Product>,
        same: &mut dyn FnMut(Symbol) -> bool,
    ) -> bool {
        let mut seen = HashMap::new();
        sum.symbols()
            .all(|symbol| self.is_same(symbol, same, DEPTH, &mut seen))
    }

    fn is_same(
        &self,
        symbol: Symbol,
        same: &mut dyn FnMut(Symbol) -> bool,
        depth: u32,
        seen: &mut HashMap<Value, bool>,
    ) -> bool {
        let value = match symbol {
            Symbol::Value(value) => value,
            Symbol::Power(count, _) => {
                let count = self.of(count).sum;
                return depth > 0
                    && count
                        .symbols()
                        .all(|symbol| self.is_same(symbol, same, depth - 1, seen));
            }
            Symbol::Thread(_)
            | Symbol::Threadgroup(_)
            | Symbol::Size(_)
            | Symbol::Query(..)
            | Symbol::Iteration(_) => return same(symbol),
        };
        if let Some(known) = seen.get(&value) {
            return *known;
        }
        let is_same = match self.definition(value).map(|inst| &inst.kind) {
            Some(kind) if kind.is_constant() => true,
            Some(InstKind::Op { op, args, .. }) => match op.row().meaning {
                Meaning::Lanes(..) => false,
                // Queries of integers are symbols of their own.
                Meaning::Query | Meaning::Eval(_) | Meaning::Expand(_) | Meaning::Arrange => {
                    depth > 0
                        && args.iter().all(|arg| {
                            let sum = self.of(*arg).sum;
                            let mut symbols = sum.symbols();
                            symbols.all(|symbol| self.is_same(symbol, same, depth - 1, seen))
                        })
                }
            },
            Some(_) | None => same(symbol),
        };
        seen.insert(value, is_same);
        is_same
    }
}

struct Walk<'a, 'k> {
    ranges: &'a Ranges,
    size: Option<[u32; 3]>,
    assume: &'a mut dyn FnMut(&Affine<'k>, &'k Inst) -> Option<Form>,
    affine: Affine<'k>,
}

impl<'k> Walk<'_, 'k> {
    fn of(&self, value: Value) -> Form {
        self.affine.of(value)
    }

    fn set(&mut self, value: Value, form: Option<Form>) {
        let fits = |form: &Form| form.sum.terms.len() <= MOST_TERMS;
        self.affine.forms[value.0 as usize] = form.filter(fits);
    }

    fn region(&mut self, region: &'k Region) {
        for inst in &region.insts {
            if let InstKind::Const(constant) = &inst.kind {
                self.set(inst.results[0], constant_form(*constant));
            } else if let InstKind::Op { op, imm, args } = &inst.kind {
                let result = inst.results[0];
                if self.affine.kernel.ty(result).is_integer_scalar() {
                    let form = self.op(*op, *imm, args, result);
                    let form = form.or_else(|| (self.assume)(&self.affine, inst));
                    self.set(result, form);
                }
            } else if let InstKind::For {
                lower, step, body, ..
            } = &inst.kind
            {
                let index = body.params[0];
                let form = self.index(index, *lower, *step);
                self.set(index, form);
            }
            for inner in inst.kind.regions() {
                self.region(inner);
            }
        }
    }

    /// `lower + step * iteration`, which never wraps.
    fn index(&self, index: Value, lower: Value, step: Value) -> Option<Form> {
        let [lower, step] = [lower, step].map(|v| self.of(v));
        let iteration = Sum::of(Product::of(Symbol::Iteration(index)));
        let sum = lower.sum.clone().plus(&step.sum.times(&iteration)?, 1);
        Some(computed(&[&lower, &step], sum, self.width(index), true))
    }

    fn width(&self, value: Value) -> u32 {
        let scalar = self.affine.kernel.ty(value).scalar();
        scalar.map_or(0, Scalar::bits)
    }

    fn op(&self, op: Op, imm: Imm, args: &[Value], result: Value) -> Option<Form> {
        if matches!(op.row().meaning, Meaning::Query) {
            return self.query(op, imm);
        }
        // A `select`'s condition is not an integer.
        let mut integers = args.iter().take(2);
        if !integers.all(|v| self.affine.kernel.ty(*v).is_integer_scalar()) {
            return None;
        }
        let range = |i: usize| self.ranges.of(args[i]);
        let a = self.of(*args.first()?);
        let Some(b) = args.get(1).map(|v| self.of(*v)) else {
            return match op {
                Op::Neg => {
                    let negative = Sum::constant(0).plus(&a.sum, -1);
                    Some(self.computed(&[&a], negative, result))
                }
                Op::Cast => Some(self.cast(a, result)),
                _symbol => None,
            };
        };
        match op {
            Op::Add => Some(self.computed(&[&a, &b], a.sum.clone().plus(&b.sum, 1), result)),
            Op::Sub => Some(self.computed(&[&a, &b], a.sum.clone().plus(&b.sum, -1), result)),
            Op::Mul => Some(self.computed(&[&a, &b], a.sum.times(&b.sum)?, result)),
            Op::Shl => {
                let width = self.width(args[0]);
                let by = Form::exactly(match b.sum.as_constant() {
                    Some(count) => Sum::constant(1i64.wrapping_shl(count as u32 % width)),
                    None => Sum::of(Product::of(Symbol::Power(args[1], width))),
                });
                Some(self.computed(&[&a, &by], a.sum.times(&by.sum)?, result))
            }
            Op::Or | Op::Xor => {
                let disjoint = self.fits_below(args[1], &a) || self.fits_below(args[0], &b);
                let sum = a.sum.clone().plus(&b.sum, 1);
                disjoint.then(|| computed(&[&a, &b], sum, self.width(result), true))
            }
            Op::Shr | Op::ShrExact => {
                let count = b.sum.as_constant()? as u32 % self.width(args[0]);
                quotient(&a, 1i64.checked_shl(count)?)
            }
            Op::Div => quotient(&a, b.sum.as_constant()?),
            Op::And => {
                let keeps_all = |mask: &Form, of: usize| {
                    let mask = mask.sum.as_constant().filter(|mask| *mask > 0);
                    mask.is_some_and(|mask| {
                        let is_low = mask & mask.wrapping_add(1) == 0;
                        is_low && range(of).is_some_and(|(l, h)| l >= 0 && h <= mask.into())
                    })
                };
                let (first, second) = (keeps_all(&b, 0), keeps_all(&a, 1));
                first.then(|| a.clone()).or(second.then_some(b))
            }
            Op::Rem => {
                let ((least, most), by) = (range(0)?, range(1)?);
                (least >= 0 && most < by.0).then_some(a)
            }
            Op::Min | Op::Max => {
                let (first, second) = (range(0)?, range(1)?);
                let [less, more] = if op == Op::Min { [a, b] } else { [b, a] };
                if first.1 <= second.0 {
                    Some(less)
                } else {
                    (second.1 <= first.0).then_some(more)
                }
            }
            Op::Clamp => {
                let (x, low, high) = (range(0)?, range(1)?, range(2)?);
                (low.1 <= x.0 && x.1 <= high.0).then_some(a)
            }
            Op::Select => (a == b).then_some(a),
            _symbol => None,
        }
    }

    /// A conversion keeps the low bits and extends by the source's sign (A5).
    fn cast(&self, from: Form, result: Value) -> Form {
        let exact = from.exact && self.ranges.never_wraps(result);
        let bits = if exact { 64 } else { self.width(result) };
        Form {
            exact,
            bits: from.bits.min(bits),
            sum: from.sum,
        }
    }

    /// A sum that arithmetic made of others.
    fn computed(&self, of: &[&Form], sum: Sum<Product>, result: Value) -> Form {
        let never_wraps = self.ranges.never_wraps(result);
        computed(of, sum, self.width(result), never_wraps)
    }

    /// Whether a number that is not negative is less than the power of two of which all of a sum is a multiple.
    fn fits_below(&self, value: Value, sum: &Form) -> bool {
        let range = self.ranges.of(value);
        range.is_some_and(|(least, most)| least >= 0 && most < 1i128 << sum.trailing_zeros())
    }

    fn query(&self, op: Op, imm: Imm) -> Option<Form> {
        let known = |dim: Dim| self.size.map(|size| size[dim as usize]);
        let number = |n: u32| Form::exactly(Sum::constant(n.into()));
        let thread = |dim: Dim| match known(dim) {
            Some(1) => number(0),
            Some(_) | None => Form::of(Symbol::Thread(dim)),
        };
        let size = |dim: Dim| known(dim).map_or_else(|| Form::of(Symbol::Size(dim)), number);
        match (op, imm) {
            (Op::ThreadPositionInThreadgroup, Imm::Dim(dim)) => Some(thread(dim)),
            (Op::ThreadgroupPositionInGrid, Imm::Dim(dim)) => {
                Some(Form::of(Symbol::Threadgroup(dim)))
            }
            // Positions fit 32 bits (X1).
            (Op::ThreadPositionInGrid, Imm::Dim(dim)) => {
                let first = Sum::of(Product::of(Symbol::Threadgroup(dim))).times(&size(dim).sum)?;
                Some(Form::exactly(first.plus(&thread(dim).sum, 1)))
            }
            (Op::DispatchThreadsPerThreadgroup, Imm::Dim(dim)) => Some(size(dim)),
            (Op::ThreadsPerThreadgroup, Imm::Dim(dim)) if self.size.is_some() => Some(size(dim)),
            (Op::ThreadIndexInThreadgroup, _) if self.size.is_some() => {
                let [x, y, _] = self.size?.map(i64::from);
                let [first, second, third] = [Dim::X, Dim::Y, Dim::Z].map(|dim| thread(dim).sum);
                let sum = first.plus(&second, x);
                Some(Form::exactly(sum.plus(&third, x.checked_mul(y)?)))
            }
            (_, Imm::Dim(dim)) => Some(Form::of(Symbol::Query(op, Some(dim)))),
            (_, Imm::None | Imm::Type(_) | Imm::Swizzle(_)) => {
                Some(Form::of(Symbol::Query(op, None)))
            }
        }
    }
}

/// A sum of others, in a type of so many bits.
fn computed(of: &[&Form], sum: Sum<Product>, width: u32, never_wraps: bool) -> Form {
    // Room for a product of all, and for sums of those.
    let room: u32 = of.iter().map(|form| form.sum.factor_bits()).sum();
    let exact = never_wraps && of.iter().all(|form| form.exact) && room <= 56;
    if exact {
        return Form::exactly(sum);
    }
    let bits = of.iter().map(|form| form.bits).min().unwrap_or(64);
    let bits = bits.min(width);
    Form {
        exact,
        bits,
        sum: sum.reduced(bits),
    }
}

fn constant_form(constant: Const) -> Option<Form> {
    if !Type::Scalar(constant.scalar).is_integer_scalar() {
        return None;
    }
    let number = integer(constant)?;
    Some(Form {
        sum: Sum::constant(number as i64),
        bits: 64,
        exact: i64::try_from(number).is_ok(),
    })
}

/// A quotient that leaves no remainder.
fn quotient(a: &Form, by: i64) -> Option<Form> {
    let divides = |n: i64| by > 0 && n % by == 0;
    let all =
        a.exact && divides(a.sum.constant) && a.sum.terms.iter().all(|(_, count)| divides(*count));
    all.then(|| {
        let terms = a.sum.terms.iter();
        Form::exactly(Sum {
            terms: terms.map(|(term, count)| (*term, count / by)).collect(),
            constant: a.sum.constant / by,
        })
    })
}
