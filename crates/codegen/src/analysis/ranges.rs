//! Ranges: an interval in which each integer value certainly lies, as mathematical integers.
//!
//! Known beforehand are types, constants, the sizes of a dispatch as far as they are given, and the
//! bounds of every `for`. Arithmetic wraps (A1), so a sum that may leave its type has the type's whole
//! range. Inside an `if` a comparison of a value with another bounds it (`guards`).
//!
//! What a loop carries lies where it began and where an iteration leads from there, if a further iteration leads
//! nowhere else: that is so of numbers that take turns, such as which of two buffers is read, and not of those that
//! count.
//!
//! What a range shows holds for every thread of every dispatch that fits [`Known`].

use std::collections::HashMap;

use invar_ir::{Const, Dim, Imm, Inst, InstKind, Kernel, Op, Region, Scalar, Type, Value};

use crate::passes::common::{count, integer, yielded};

/// Loops within each other that are gone through several times, for what they carry.
const DEEPEST_TRIED: u32 = 2;
/// Instructions of such a loop, at most.
const TRIED_INSTRUCTIONS: usize = 1000;

/// What is known of a dispatch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    /// The size of a full threadgroup.
    pub threadgroup_size: Option<[u32; 3]>,
    /// The grid in threads.
    pub threads: Option<[u32; 3]>,
}

/// The least and the greatest that a value can be.
pub type Range = (i128, i128);

/// The ranges of a kernel's values.
#[derive(Clone, Debug)]
pub struct Ranges {
    values: Vec<Option<Range>>,
    fits: Vec<bool>,
}

impl Ranges {
    /// The range of an integer scalar; `None` for other values.
    pub fn of(&self, value: Value) -> Option<Range> {
        self.values.get(value.0 as usize).copied().flatten()
    }

    /// Whether the operation that computes an integer certainly does not wrap: its result as a mathematical integer
    /// fits the type.
    pub fn never_wraps(&self, value: Value) -> bool {
        self.fits.get(value.0 as usize).is_some_and(|fits| *fits)
    }

    /// Whether an index is in bounds of so many elements (B4).
    pub fn is_inside(&self, index: Value, length: u64) -> bool {
        self.of(index)
            .is_some_and(|(least, most)| least >= 0 && most < i128::from(length))
    }
}

/// The whole range of a type; none if it is not an integer scalar.
pub fn of_type(ty: Type) -> Option<Range> {
    let Type::Scalar(scalar) = ty else {
        return None;
    };
    if scalar.is_signed_integer() {
        let half = 1i128 << (scalar.bits() - 1);
        Some((-half, half - 1))
    } else if scalar.is_unsigned_integer() {
        Some((0, (1i128 << scalar.bits()) - 1))
    } else {
        None
    }
}

/// Finds the ranges of a kernel's values.
///
/// ```
/// use invar_codegen::analysis::ranges::{Known, analyse};
///
/// let text = "kernel @k(%x: device write u32) threadgroup(64) {
///     %t = thread_index_in_threadgroup
///     %four = const u32 4
///     %i = mul %t, %four
///     store %x[%i], %t
/// }";
/// let module = invar_ir::text::parse("k.inv", text)?;
/// let kernel = &module.kernels[0];
/// let ranges = analyse(kernel, &Known::default());
/// assert_eq!(ranges.of(invar_ir::Value(2)), Some((0, 252)));
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
pub fn analyse(kernel: &Kernel, known: &Known) -> Ranges {
    walk(kernel, known, true)
}

/// As [`analyse`], of what follows from how values are computed alone: no condition of an `if` counts, so that
/// another name of the same number has the same range.
///
/// ```
/// use invar_codegen::analysis::ranges::{Known, analyse, analyse_unguarded};
///
/// let text = "kernel @k(%n: u32, %x: device write i32) {
///     %zero = const u32 0
///     %four = const u32 4
///     %few = lt %n, %four
///     if %few {
///         %i = cast i32 %n
///         store %x[%zero], %i
///     }
/// }";
/// let module = invar_ir::text::parse("k.inv", text)?;
/// let kernel = &module.kernels[0];
/// let i = invar_ir::Value(4);
/// assert_eq!(analyse(kernel, &Known::default()).of(i), Some((0, 3)));
/// assert_ne!(analyse_unguarded(kernel, &Known::default()).of(i), Some((0, 3)));
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
pub fn analyse_unguarded(kernel: &Kernel, known: &Known) -> Ranges {
    walk(kernel, known, false)
}

fn walk(kernel: &Kernel, known: &Known, guards: bool) -> Ranges {
    let size = kernel.threadgroup_size.or(known.threadgroup_size);
    let mut walk = Walk {
        kernel,
        size,
        threads: known.threads,
        guards,
        values: kernel.values.iter().map(|v| of_type(v.ty)).collect(),
        fits: vec![false; kernel.values.len()],
        comparisons: HashMap::new(),
        tried: 0,
    };
    walk.region(&kernel.body);
    Ranges {
        values: walk.values,
        fits: walk.fits,
    }
}

/// Operands of an operation that is followed, at most.
const MOST_OPERANDS: usize = 3;

/// Where the result of an operation on integers of so many bits lies, as a mathematical integer; of `select`, of its two
/// values. `None` where nothing is known but its type.
pub(crate) fn of_operation(op: Op, args: &[Range], bits: u32) -> Option<Range> {
    let two = || match args {
        [a, b] => Some((*a, *b)),
        _more => None,
    };
    // Counts are taken modulo the width (A3); only small ones are followed.
    let is_count = |b: Range| b.0 >= 0 && b.1 < i128::from(bits);
    match op {
        Op::Add => two().map(|(a, b)| (a.0 + b.0, a.1 + b.1)),
        Op::Sub => two().map(|(a, b)| (a.0 - b.1, a.1 - b.0)),
        Op::Mul => two().map(|(a, b)| {
            // Of two 64-bit numbers it may not fit, but is then far outside every type.
            let all = [(a.0, b.0), (a.0, b.1), (a.1, b.0), (a.1, b.1)];
            let all = all.map(|(x, y)| x.saturating_mul(y));
            (
                all.into_iter().min().unwrap_or(0),
                all.into_iter().max().unwrap_or(0),
            )
        }),
        Op::Neg => args.first().map(|a| (-a.1, -a.0)),
        // x / 0 is 0 (A2).
        Op::Div => two().and_then(|(a, b)| {
            (a.0 >= 0 && b.0 >= 0).then(|| {
                let least = if b.0 == 0 { 0 } else { a.0 / b.1 };
                (least, a.1 / b.0.max(1))
            })
        }),
        // x % 0 is 0 (A2); the remainder has the dividend's sign.
        Op::Rem => two().map(|(a, b)| {
            let most = b.0.abs().max(b.1.abs()) - 1;
            match b {
                (0, 0) => (0, 0),
                _ if a.0 >= 0 => (0, a.1.min(most)),
                _ => (a.0.max(-most), a.1.min(most).max(0)),
            }
        }),
        Op::Min => two().map(|(a, b)| (a.0.min(b.0), a.1.min(b.1))),
        Op::Max => two().map(|(a, b)| (a.0.max(b.0), a.1.max(b.1))),
        Op::And => two().and_then(|(a, b)| (a.0 >= 0 && b.0 >= 0).then_some((0, a.1.min(b.1)))),
        // No bit is set above the highest of both.
        Op::Or | Op::Xor => two().and_then(|(a, b)| {
            let least = if op == Op::Or { a.0.max(b.0) } else { 0 };
            (a.0 >= 0 && b.0 >= 0).then(|| {
                let bits = 128 - a.1.max(b.1).leading_zeros();
                (least, (1 << bits) - 1)
            })
        }),
        Op::Shr | Op::ShrExact => {
            two().and_then(|(a, b)| (a.0 >= 0 && is_count(b)).then(|| (a.0 >> b.1, a.1 >> b.0)))
        }
        Op::Shl => two().filter(|(_, b)| is_count(*b)).map(|(a, b)| {
            // At most 64 bits shifted by at most 63.
            let times = |x: i128, by: i128| x.saturating_mul(1i128 << by);
            let least = times(a.0, if a.0 < 0 { b.1 } else { b.0 });
            (least, times(a.1, if a.1 < 0 { b.0 } else { b.1 }))
        }),
        Op::Select => two().map(|(a, b)| hull(a, b)),
        Op::Clamp => match args {
            [x, low, high] => Some((x.0.max(low.0).min(high.0), x.1.max(low.1).min(high.1))),
            _fewer => None,
        },
        _other => None,
    }
}

struct Walk<'a> {
    kernel: &'a Kernel,
    size: Option<[u32; 3]>,
    threads: Option<[u32; 3]>,
    /// What conditions say of values counts.
    guards: bool,
    values: Vec<Option<Range>>,
    /// Whether each fits its type without wrapping.
    fits: Vec<bool>,
    /// Comparisons by their result.
    comparisons: HashMap<Value, (Op, Value, Value)>,
    /// How many loops around are gone through several times.
    tried: u32,
}

impl Walk<'_> {
    fn of(&self, value: Value) -> Option<Range> {
        self.values[value.0 as usize]
    }

    fn region(&mut self, region: &Region) {
        for inst in &region.insts {
            self.inst(inst);
        }
    }

    fn set(&mut self, value: Value, range: Option<Range>) {
        if let Some(whole) = of_type(self.kernel.ty(value)) {
            // What may leave its type wraps, and may be anything.
            let fits = range.filter(|(least, most)| *least >= whole.0 && *most <= whole.1);
            self.values[value.0 as usize] = Some(fits.unwrap_or(whole));
            self.fits[value.0 as usize] = fits.is_some();
        }
    }

    /// The iterations of a loop, with where what it carries lies.
    fn iterations(&mut self, inst: &Inst, init: &[Value], body: &Region) {
        let carried = inst.carried();
        let is_integer = |v: &Value| of_type(self.kernel.ty(*v)).is_some();
        let next = yielded(body).filter(|_| {
            carried.iter().any(is_integer)
                && self.tried < DEEPEST_TRIED
                && !body.exits().continues
                && count(body) <= TRIED_INSTRUCTIONS
        });
        let Some(next) = next else {
            self.region(body);
            return;
        };
        let mut found: Vec<Option<Range>> = init.iter().map(|v| self.of(*v)).collect();
        self.tried += 1;
        // Where it began, where an iteration leads, and anywhere where one more leads somewhere else.
        for last in [false, true, true] {
            for (param, range) in carried.iter().zip(&found) {
                self.values[param.0 as usize] = *range;
            }
            self.region(body);
            let reached = carried
                .iter()
                .zip(next)
                .zip(&found)
                .map(|((param, next), own)| {
                    let both = own.zip(self.of(*next)).map(|(a, b)| hull(a, b));
                    match last && both != *own {
                        true => of_type(self.kernel.ty(*param)),
                        false => both,
                    }
                });
            let reached: Vec<Option<Range>> = reached.collect();
            if reached == found {
                self.tried -= 1;
                return;
            }
            found = reached;
        }
        self.tried -= 1;
        for param in carried {
            self.values[param.0 as usize] = of_type(self.kernel.ty(*param));
        }
        self.region(body);
    }

    fn inst(&mut self, inst: &Inst) {
        match &inst.kind {
            InstKind::Const(constant) => self.set(inst.results[0], exactly(*constant)),
            InstKind::Op { op, imm, args } => {
                let result = inst.results[0];
                if let [a, b] = args[..]
                    && matches!(op, Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Eq)
                {
                    self.comparisons.insert(result, (*op, a, b));
                }
                let range = self.op(*op, *imm, args);
                self.set(result, range);
            }
            InstKind::If {
                condition,
                then,
                otherwise,
            } => {
                self.guarded(*condition, true, then);
                self.guarded(*condition, false, otherwise);
                self.join(inst, &[then, otherwise]);
            }
            InstKind::For {
                lower,
                upper,
                step,
                init,
                body,
            } => {
                if let (Some(index), Some(lower), Some(upper), Some(step)) = (
                    body.params.first(),
                    self.of(*lower),
                    self.of(*upper),
                    self.of(*step),
                ) {
                    // The index never reaches `upper`, from the side it comes from.
                    let range = match step {
                        (1.., _) => Some((lower.0, last_of_steps(lower, upper.1, step))),
                        (_, ..=-1) => Some(((upper.0 + 1).min(lower.1), lower.1)),
                        _either_way => None,
                    };
                    self.set(*index, range);
                }
                self.iterations(inst, init, body);
            }
            InstKind::Loop { init, body } => self.iterations(inst, init, body),
            _anywhere_in_its_type => {}
        }
    }

    /// The result of an `if` lies where what its sides yield lies.
    fn join(&mut self, inst: &Inst, sides: &[&Region]) {
        for (i, result) in inst.results.iter().enumerate() {
            let yields = sides.iter().filter_map(|r| yielded(r));
            let ranges: Option<Vec<Range>> = yields.map(|values| self.of(values[i])).collect();
            let range = ranges.and_then(|ranges| ranges.into_iter().reduce(hull));
            self.set(*result, range);
        }
    }

    /// A side of an `if`, with what its condition says of the values that it compares. A value that is
    /// computed outside from such a one keeps its wider range.
    fn guarded(&mut self, condition: Value, holds: bool, region: &Region) {
        let compared = self.comparisons.get(&condition);
        let Some(&(op, a, b)) = compared.filter(|_| self.guards) else {
            self.region(region);
            return;
        };
        let before = (self.of(a), self.of(b));
        if let (Some(left), Some(right)) = before {
            let op = match (op, holds) {
                (op, true) => Some(op),
                (Op::Lt, false) => Some(Op::Ge),
                (Op::Le, false) => Some(Op::Gt),
                (Op::Gt, false) => Some(Op::Le),
                (Op::Ge, false) => Some(Op::Lt),
                (_equality, false) => None,
            };
            let (mut left, mut right) = (left, right);
            match op {
                Some(Op::Lt) => {
                    left.1 = left.1.min(right.1 - 1);
                    right.0 = right.0.max(left.0 + 1);
                }
                Some(Op::Le) => {
                    left.1 = left.1.min(right.1);
                    right.0 = right.0.max(left.0);
                }
                Some(Op::Gt) => {
                    left.0 = left.0.max(right.0 + 1);
                    right.1 = right.1.min(left.1 - 1);
                }
                Some(Op::Ge) => {
                    left.0 = left.0.max(right.0);
                    right.1 = right.1.min(left.1);
                }
                Some(Op::Eq) => {
                    left = (left.0.max(right.0), left.1.min(right.1));
                    right = left;
                }
                Some(_) | None => {}
            }
            // An empty range says that the side never runs; any range is right there.
            if left.0 <= left.1 && right.0 <= right.1 {
                self.values[a.0 as usize] = Some(left);
                self.values[b.0 as usize] = Some(right);
            }
        }
        self.region(region);
        self.values[a.0 as usize] = before.0;
        self.values[b.0 as usize] = before.1;
    }

    fn op(&self, op: Op, imm: Imm, args: &[Value]) -> Option<Range> {
        if op == Op::Cast {
            return match self.kernel.ty(args[0]) {
                Type::Scalar(Scalar::Bool) => Some((0, 1)),
                Type::Scalar(_) | Type::Vector(..) => self.of(args[0]),
                Type::Matrix { .. } | Type::SimdgroupMatrix { .. } | Type::Event => None,
            };
        }
        // Whichever a condition selects.
        let args = if op == Op::Select { &args[..2] } else { args };
        let mut ranges = [(0, 0); MOST_OPERANDS];
        let known = args.len() <= MOST_OPERANDS
            && (args.iter().zip(&mut ranges)).all(|(arg, range)| match self.of(*arg) {
                Some(own) => {
                    *range = own;
                    true
                }
                None => false,
            });
        let first = args.first().and_then(|v| self.kernel.ty(*v).scalar());
        known
            .then(|| of_operation(op, &ranges[..args.len()], first.map_or(0, Scalar::bits)))
            .flatten()
            .or_else(|| self.query(op, imm))
    }

    /// Where a thread stands.
    fn query(&self, op: Op, imm: Imm) -> Option<Range> {
        let dim = match imm {
            Imm::Dim(dim) => Some(dim),
            Imm::None | Imm::Type(_) | Imm::Swizzle(_) => None,
        };
        let at =
            |sizes: Option<[u32; 3]>, dim: Option<Dim>| Some(i128::from(sizes?[dim? as usize]));
        let threads: Option<i128> = self
            .size
            .map(|size| size.into_iter().map(i128::from).product());
        // Below 1 there is no thread to ask.
        let below = |n: i128| (0, (n - 1).max(0));
        match op {
            Op::ThreadPositionInThreadgroup => at(self.size, dim).map(below),
            Op::ThreadIndexInThreadgroup => threads.map(below),
            Op::ThreadsPerThreadgroup => at(self.size, dim).map(|n| (1, n)),
            Op::DispatchThreadsPerThreadgroup => at(self.size, dim).map(|n| (n, n)),
            Op::ThreadPositionInGrid => match at(self.threads, dim) {
                Some(n) => Some(below(n)),
                // A position is below 2^32 - 1, since the size of the grid is a u32.
                None => Some((0, i128::from(u32::MAX) - 1)),
            },
            Op::ThreadsPerGrid => at(self.threads, dim).map(|n| (n, n)),
            Op::ThreadgroupPositionInGrid => {
                let (n, size) = (at(self.threads, dim)?, at(self.size, dim)?);
                Some(below((n + size - 1) / size.max(1)))
            }
            Op::ThreadIndexInSimdgroup => self
                .kernel
                .simdgroup_size
                .map(|size| below(i128::from(size))),
            _other_row => None,
        }
    }
}

/// The last index that a loop reaches which goes up in steps and stops in front of `upper`; that of its first iteration
/// if there is no other.
fn last_of_steps(lower: Range, upper: i128, step: Range) -> i128 {
    let last = (upper - 1).max(lower.0);
    if lower.0 == lower.1 && step.0 == step.1 {
        last - (last - lower.0) % step.0
    } else {
        last
    }
}

fn exactly(constant: Const) -> Option<Range> {
    integer(constant).map(|n| (n, n))
}

fn hull(a: Range, b: Range) -> Range {
    (a.0.min(b.0), a.1.max(b.1))
}
