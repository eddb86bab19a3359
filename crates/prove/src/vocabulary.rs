//! What the conditions of a kernel may be made of, and those that are tried.

use std::collections::BTreeSet;

use invar_ir::{Dim, InstKind, Memory, Op, ParamKind, Scalar, Type};

use crate::condition::{Condition, Number, Term};
use crate::subject::Subject;
use crate::thread::{LARGEST_TEXTURE, MOST_LEVELS};

/// Products of three are made of so many numbers.
const MOST_SIDES: usize = 8;
/// No condition asks for more elements by their number alone.
const MOST_USUAL: i128 = 1 << 20;
/// Nor for more texels in a direction.
const MOST_TEXELS: i128 = 1 << 14;

/// Conditions in order, each once.
#[derive(Default)]
struct Conditions(Vec<Condition>);

impl Conditions {
    fn add(&mut self, condition: Condition) {
        if !self.0.contains(&condition) {
            self.0.push(condition);
        }
    }

    /// That each of these is at most a number; none of them is left.
    fn at_most(&mut self, terms: &mut Vec<Term>, room: Number) {
        for term in terms.drain(..) {
            self.add(Condition::at_most(term, room));
        }
    }
}

/// The numbers of a launch that a kernel's conditions may speak of.
pub struct Vocabulary {
    /// Dimensions of the grid that the kernel asks for.
    pub dims: Vec<Dim>,
    /// Unsigned parameters and function constants, and sizes of textures that it asks for.
    pub scalars: Vec<Number>,
    /// Constants of the kernel, the largest first.
    pub constants: Vec<i128>,
    /// Those of them that something is multiplied by.
    pub factors: Vec<i128>,
    /// Widths of its accesses beside 1.
    pub widths: Vec<i128>,
    /// How many rows its accesses reach beside 1.
    pub rows: Vec<i128>,
    /// Numbers that what is passed may have to reach, the least first: sides of threadgroups and of what they access.
    pub floors: Vec<i128>,
    /// How far it may reach beyond a number, the furthest first.
    pub distances: Vec<i128>,
    /// How many numbers those types of 16 bits have that it makes of larger ones.
    pub narrow: Vec<i128>,
    /// Buffers whose lengths it asks for.
    pub lengths: Vec<Number>,
    /// Lengths of threadgroup parameters.
    pub shared: Vec<Number>,
    /// How many levels have those that it reaches by a constant.
    pub levels: i128,
    /// Those of the numbers that something is added to, or that are added.
    pub added: Vec<Number>,
    /// Those that something is multiplied by.
    pub multiplied: Vec<Number>,
    /// Of how many bytes offsets have to be multiples, the least first.
    pub bytes: Vec<i128>,
    /// Buffers that it reaches, if it makes numbers with a sign of others: of places in the grid, mostly.
    pub signed: Vec<Number>,
    /// How often each thread counts, of counters that all threads of the grid share.
    pub tickets: BTreeSet<i128>,
}

impl Vocabulary {
    /// What a kernel speaks of.
    pub fn of(subject: &Subject<'_>) -> Vocabulary {
        let dims = Dim::ALL
            .into_iter()
            .filter(|d| !subject.unused[*d as usize]);
        let is_count = |ty: Type| {
            let scalar = match ty {
                Type::Scalar(scalar) => scalar,
                _several => return false,
            };
            scalar.is_integer() && scalar.bits() >= 32
        };
        let mut scalars = Vec::new();
        for (i, param) in subject.kernel.params.iter().enumerate() {
            if let ParamKind::Scalar { value } = &param.kind
                && is_count(subject.kernel.ty(*value))
            {
                scalars.push(Number::Argument(i));
            }
        }
        scalars.extend(subject.fields_loaded());
        for (i, constant) in subject.module.function_constants.iter().enumerate() {
            if is_count(Type::Scalar(constant.scalar)) {
                scalars.push(Number::Constant(i));
            }
        }
        subject.kernel.for_each_inst(&mut |inst| {
            if let InstKind::Texture {
                texture: Memory::Param(i),
                function,
                ..
            } = &inst.kind
                && let Some(d) = function.extent()
                && !scalars.contains(&Number::Texels(*i as usize, d))
            {
                scalars.push(Number::Texels(*i as usize, d));
            }
        });
        let (constants, widths) = subject.constants();
        let mut distances: Vec<i128> = vec![1, 2];
        distances.extend(constants.iter().flat_map(|c| [c - 1, *c]));
        distances.extend(subject.widened());
        distances.sort_unstable_by_key(|n| std::cmp::Reverse(*n));
        distances.dedup();
        let mut lengths = Vec::new();
        subject.kernel.for_each_inst(&mut |inst| {
            if let InstKind::BufferLength(Memory::Param(i)) = inst.kind
                && !lengths.contains(&Number::Length(i as usize))
            {
                lengths.push(Number::Length(i as usize));
            }
        });
        let params = subject.kernel.params.iter().enumerate();
        let shared = params.filter(|(_, p)| matches!(p.kind, ParamKind::Threadgroup { .. }));
        let shared = shared.map(|(i, _)| Number::Length(i)).collect();
        let mut levels = 1;
        subject.kernel.for_each_inst(&mut |inst| {
            if let InstKind::Texture {
                texture,
                function,
                args,
            } = &inst.kind
                && let Some(ty) = subject.kernel.texture(*texture)
                && let Some(level) = function.operands(ty.dimension, args).level
                && let Some(InstKind::Const(level)) = subject.shape.defining(level)
                && level.scalar.is_integer()
            {
                let level = level.scalar.integer(level.bits);
                levels = levels.max(level.min(MOST_LEVELS - 1) + 1);
            }
        });
        let mut is_signed = false;
        subject.kernel.for_each_inst(&mut |inst| {
            let converts = matches!(
                inst.kind,
                InstKind::Op {
                    op: Op::Cast | Op::AsType,
                    ..
                }
            );
            let mut results = inst.results.iter();
            is_signed |=
                converts && results.any(|v| subject.kernel.ty(*v) == Type::Scalar(Scalar::I32));
        });
        let mut signed = Vec::new();
        for site in subject.sites.iter().filter(|_| is_signed) {
            if let Memory::Param(i) = site.memory
                && let ParamKind::Buffer { .. } = subject.kernel.params[i as usize].kind
                && !signed.contains(&Number::Length(i as usize))
            {
                signed.push(Number::Length(i as usize));
            }
        }
        let bytes: BTreeSet<i128> = subject.offsets.iter().filter_map(|o| o.of).collect();
        Vocabulary {
            dims: dims.collect(),
            scalars,
            factors: subject.factors(),
            constants,
            widths,
            rows: subject.rows_reached(),
            floors: subject.floors(),
            distances,
            narrow: subject.narrow(),
            lengths,
            shared,
            levels,
            added: subject.added(),
            multiplied: subject.multiplied(),
            bytes: bytes.into_iter().collect(),
            signed,
            tickets: subject.iterations_of_shared_tickets(),
        }
    }

    /// Forgets what buffers hold, for who cannot look at it.
    pub fn leave_out_contents(&mut self) {
        let is_known = |n: &Number| !matches!(n, Number::Field(..));
        self.scalars.retain(is_known);
    }

    /// The constants, and as many for each width.
    fn constants_and_widths(&self) -> Vec<i128> {
        let products = |w: &i128| {
            let times = *w;
            let products = self.constants.iter().map(move |c| c * times);
            products.filter(|p| *p <= 1 << 16)
        };
        let wide = self.widths.iter().flat_map(products);
        self.constants.iter().copied().chain(wide).collect()
    }

    /// Lower bounds of a buffer's length or of a texture's size, those that ask less before those that ask more
    /// of most launches: of what the author passes before what the grid is, for that is often rounded up.
    pub fn lengths(&self, room: Number, tops: &[i128]) -> Vec<Condition> {
        let scalars = self.scalars.iter().copied().filter(|n| *n != room);
        let scalars: Vec<Number> = scalars.collect();
        let groups: Vec<Number> = self.dims.iter().map(|d| Number::Groups(*d)).collect();
        let grid: Vec<Number> = self.dims.iter().map(|d| Number::Grid(*d)).collect();
        let mut terms: Vec<Term> = Vec::new();
        let mut numbers: Vec<i128> = tops.to_vec();
        numbers.extend(&self.constants);
        for a in &self.constants {
            numbers.extend(
                self.constants
                    .iter()
                    .map(|b| a * b)
                    .filter(|p| *p <= 1 << 16),
            );
        }
        numbers.push(1);
        // Few textures are that large, and none in two directions.
        if let Number::Texels(..) = room {
            numbers.retain(|n| *n <= MOST_TEXELS);
        }
        numbers.sort_unstable();
        numbers.dedup();
        terms.extend(numbers.iter().map(|n| Term::of(*n, [])));
        let mut factors: Vec<i128> = vec![1];
        factors.extend(&self.widths);
        factors.extend([2, 3, 4]);
        let mut seen = Vec::new();
        factors.retain(|f| {
            let new = !seen.contains(f);
            seen.push(*f);
            new
        });
        // What threads of a threadgroup share has elements for these, however many threadgroups there are.
        if self.shared.contains(&room) {
            let size = |d: &Dim| Number::Threadgroup(*d);
            let sizes: Vec<Number> = self.dims.iter().map(size).collect();
            let mut own: Vec<Term> = Vec::new();
            for factor in &factors {
                own.extend(sizes.iter().map(|n| Term::of(*factor, [*n])));
            }
            for (i, a) in sizes.iter().enumerate() {
                own.extend(sizes[i + 1..].iter().map(|b| Term::of(1, [*a, *b])));
            }
            own.append(&mut terms);
            terms = own;
        }
        let products = numbers.clone();
        let by_constants = self.constants_and_widths();
        let mut found = Conditions::default();
        found.at_most(&mut terms, room);
        let lengths = self.lengths.iter().copied().filter(|l| *l != room);
        let lengths: Vec<Number> = lengths.collect();
        // What is passed by the author, as it is and with some more behind it.
        for numbers in [&scalars, &lengths, &grid] {
            if numbers == &grid {
                terms.extend(factors.iter().flat_map(|factor| {
                    let times = |n: &Number| Term::of(*factor, [*n]);
                    groups.iter().map(times)
                }));
                found.at_most(&mut terms, room);
            }
            terms.extend(numbers.iter().map(|n| Term::of(1, [*n])));
            found.at_most(&mut terms, room);
            for more in &self.distances {
                let more_than = |n: &Number| Condition::More(Term::of(1, [*n]), *more, room);
                numbers.iter().for_each(|n| found.add(more_than(n)));
            }
            // One element for so many.
            if numbers != &grid {
                for factor in factors.iter().filter(|f| **f > 1).chain(&by_constants) {
                    let bound = Term::of(*factor, [room]);
                    for number in numbers {
                        found.add(Condition::AtMost(Term::of(1, [*number]), bound.clone()));
                    }
                }
            }
            for factor in &factors {
                terms.extend(numbers.iter().map(|n| Term::of(*factor, [*n])));
            }
            found.at_most(&mut terms, room);
        }
        // As many behind as many, before as many for each.
        let added = || self.added.iter().filter(|n| **n != room);
        for number in added() {
            let others = scalars.iter().chain(&grid).filter(|n| *n != number);
            for other in others.filter(|other| !added().any(|n| n == *other && n < number)) {
                let (a, b) = (Term::of(1, [*other]), Term::of(1, [*number]));
                found.add(Condition::Sum(a, b, room));
            }
        }
        for c in &by_constants {
            terms.extend(groups.iter().map(|n| Term::of(*c, [*n])));
        }
        let mut all: Vec<Number> = scalars.clone();
        all.extend(&groups);
        all.extend(&grid);
        let of_bytes = self.rows_of_bytes(&all, room).into_iter();
        of_bytes.for_each(|condition| found.add(condition));
        for (i, a) in all.iter().enumerate() {
            for b in &all[i..] {
                let whole = |n: &Number| matches!(n, Number::Argument(_) | Number::Constant(_));
                let one_grid = !whole(a) && !whole(b) && a == b;
                if !one_grid {
                    terms.push(Term::of(1, [*a, *b]));
                    let several = self.widths.iter().chain(&self.rows);
                    terms.extend(several.map(|n| Term::of(*n, [*a, *b])));
                }
            }
        }
        // How large a volume is.
        let mut sides = scalars.clone();
        if self.dims.len() == 3 {
            sides.extend(&grid);
        }
        sides.truncate(MOST_SIDES);
        for (i, a) in sides.iter().enumerate() {
            for (j, b) in sides.iter().enumerate().skip(i + 1) {
                terms.extend(sides[j + 1..].iter().map(|c| Term::of(1, [*a, *b, *c])));
            }
        }
        found.at_most(&mut terms, room);
        // Rows behind as many.
        for number in added() {
            for (i, a) in all.iter().enumerate() {
                for b in all[i + 1..].iter().filter(|b| ![*a, **b].contains(number)) {
                    let (rows, before) = (Term::of(1, [*a, *b]), Term::of(1, [*number]));
                    found.add(Condition::Sum(rows, before, room));
                }
            }
        }
        // So much for each of several simdgroups.
        for c in products.iter().filter(|c| !by_constants.contains(c)) {
            terms.extend(groups.iter().map(|n| Term::of(*c, [*n])));
        }
        for c in self.constants.iter().filter(|c| **c <= 64) {
            terms.extend(scalars.iter().map(|n| Term::of(*c, [*n])));
            terms.extend(grid.iter().map(|n| Term::of(*c, [*n])));
        }
        found.at_most(&mut terms, room);
        // One element for so many.
        for factor in by_constants.iter().chain(&products) {
            let bound = Term::of(*factor, [room]);
            for number in scalars.iter().chain(&grid) {
                found.add(Condition::AtMost(Term::of(1, [*number]), bound.clone()));
            }
        }
        found.0
    }

    /// As many elements as rows whose length is in bytes have.
    fn rows_of_bytes(&self, numbers: &[Number], room: Number) -> Vec<Condition> {
        let mut found = Vec::new();
        for bytes in &self.bytes {
            let bound = Term::of(*bytes, [room]);
            for (i, a) in numbers.iter().enumerate() {
                let rows = numbers[i + 1..].iter().map(|b| Term::of(1, [*a, *b]));
                found.extend(rows.map(|rows| Condition::AtMost(rows, bound.clone())));
            }
        }
        found
    }

    /// How many elements there may be for each of something, the fewest first.
    pub fn multiples(&self) -> Vec<i128> {
        let mut all: Vec<i128> = (1..=4).chain(self.constants.iter().copied()).collect();
        all.extend(&self.widths);
        all.sort_unstable();
        all.dedup();
        all
    }

    /// That a buffer is as long as any product of two numbers of a launch, so many times; that a texture is as
    /// large as any of the numbers.
    pub fn ample(&self, room: Number, times: i128) -> Vec<Condition> {
        let grid = self.dims.iter().map(|d| Number::Grid(*d));
        let scalars = self.scalars.iter().copied().filter(|n| *n != room);
        let numbers: Vec<Number> = scalars.clone().chain(grid).collect();
        let factor = self.widths.iter().copied().max().unwrap_or(1).max(times);
        let mut found = Vec::new();
        let mut least = |term| found.push(Condition::at_most(term, room));
        let largest = self.constants.first().copied().unwrap_or(1);
        if matches!(room, Number::Levels(_)) {
            scalars.for_each(|n| least(Term::of(1, [n])));
            least(Term::of(self.levels, []));
            return found;
        }
        if matches!(room, Number::Texels(..)) {
            // It has too few texels in a direction for products of two.
            numbers.iter().for_each(|n| least(Term::of(factor, [*n])));
            least(Term::of(largest.min(LARGEST_TEXTURE), []));
            return found;
        }
        for (i, a) in numbers.iter().enumerate() {
            for b in &numbers[i..] {
                least(Term::of(factor, [*a, *b]));
            }
        }
        let scalars: Vec<Number> = scalars.collect();
        // Rows of each threadgroup.
        for rows in &self.rows {
            let groups = || self.dims.iter().map(|d| Number::Groups(*d));
            let each = scalars.iter().flat_map(|n| groups().map(|g| [*n, g]));
            each.for_each(|both| least(Term::of(*rows, both)));
        }
        if let [a, b, c] = scalars[..] {
            least(Term::of(1, [a, b, c]));
        }
        // No more than buffers usually have.
        let square = largest * largest;
        let is_usual = square <= MOST_USUAL;
        least(Term::of(if is_usual { square } else { largest }, []));
        for d in &self.dims {
            least(Term::of(largest, [Number::Groups(*d)]));
            least(Term::of(largest, [Number::Grid(*d)]));
        }
        found
    }

    /// That a buffer has two to four elements for each pair of two numbers, such as the channels of a picture. To be
    /// tried last: where less is enough under other conditions, these only give room to spare.
    pub fn channels(&self, room: Number) -> Vec<Condition> {
        let grid: Vec<Number> = self.dims.iter().map(|d| Number::Grid(*d)).collect();
        let each = self.constants.iter().filter(|c| (2..=4).contains(*c));
        let mut found = Vec::new();
        for factor in each.filter(|c| !self.widths.contains(c)) {
            for (i, a) in self.scalars.iter().enumerate() {
                let others = self.scalars[i..].iter().chain(&grid);
                let products = others.map(|b| Term::of(*factor, [*a, *b]));
                found.extend(products.map(|term| Condition::at_most(term, room)));
            }
        }
        found
    }

    /// That what the author passes is at least 1.
    pub fn positive(&self) -> impl Iterator<Item = Condition> + '_ {
        let one = |n: &Number| Condition::at_most(Term::of(1, []), *n);
        self.scalars.iter().map(one)
    }

    /// That what the author passes is no less than what threads reach in a row of it.
    pub fn at_least(&self) -> impl Iterator<Item = Condition> + '_ {
        let numbers = self.scalars.iter();
        numbers.flat_map(|n| {
            let least = self.floors.iter();
            least.map(|least| Condition::at_most(Term::of(*least, []), *n))
        })
    }

    /// That a number that the author passes is a multiple.
    pub fn multiples_of(&self, of: i128) -> impl Iterator<Item = Condition> + '_ {
        let one = move |n: &Number| Condition::Multiple(*n, of);
        self.scalars.iter().map(one)
    }

    /// That what the author passes with a sign is at least 0, and that a place in the grid is added to it in its type.
    fn signed_numbers(&self, subject: &Subject<'_>) -> Vec<Condition> {
        let mut found = Vec::new();
        for n in &self.scalars {
            let (least, most) = n.range(subject);
            if least >= 0 {
                continue;
            }
            found.push(Condition::at_most(Term::of(0, []), *n));
            let sums = self.dims.iter().map(|d| {
                let (number, grid) = (Term::of(1, [*n]), Term::of(1, [Number::Grid(*d)]));
                Condition::Together(number, grid, most + 1)
            });
            found.extend(sums);
        }
        found
    }

    /// Where a kernel counts by numbers with a sign: that places in the grid and in its buffers fit them, which hardly
    /// a launch breaks. Otherwise buffers of twice the size would be asked for, so that the grid is not too large.
    pub fn within_signed(&self) -> impl Iterator<Item = Condition> + '_ {
        let grid = self.dims.iter().map(|d| Number::Grid(*d));
        let grid = grid.filter(|_| !self.signed.is_empty());
        let numbers = grid.chain(self.signed.iter().copied());
        numbers.map(|n| Condition::Below(n, i32::MAX.into()))
    }

    /// What asks of hardly a launch anything: that what is passed is no less than 0, or at least 1, and that numbers fit
    /// their types.
    pub fn mild(&self, subject: &Subject<'_>) -> Vec<Condition> {
        let mut found = self.steps(subject);
        found.extend(self.signed_numbers(subject));
        found.extend(self.positive());
        found.extend(self.within_types());
        found.extend(self.within_counters());
        found
    }

    /// That no counter comes to the same number again, nor the number of a thread in the grid, where that has several
    /// dimensions.
    fn within_counters(&self) -> impl Iterator<Item = Condition> + '_ {
        let threads = Term::of(1, self.dims.iter().map(|d| Number::Grid(*d)));
        let iterations = self.tickets.iter().filter(|_| self.dims.len() > 1);
        iterations.map(move |n| Condition::AtMost(threads.clone(), Term::of((1 << 32) / n, [])))
    }

    /// That what places in the grid are multiplied by or cast to fits its type.
    fn within_types(&self) -> impl Iterator<Item = Condition> + '_ {
        self.dims.iter().flat_map(|d| {
            let counts = self.factors.iter().rev().map(|c| (1 << 32) / c);
            let counts = counts.chain(self.narrow.iter().copied());
            counts.map(|n| Condition::Below(Number::Grid(*d), n))
        })
    }

    /// That places in the grid times what is passed fit 32 bits.
    fn products_within_types(&self) -> impl Iterator<Item = Condition> + '_ {
        self.dims.iter().flat_map(|d| {
            let products = self.multiplied.iter();
            let products = products.map(|n| Term::of(1, [*n, Number::Grid(*d)]));
            products.map(|product| Condition::AtMost(product, Term::of(1 << 32, [])))
        })
    }

    /// Conditions on the size of the grid against parameters, and on multiples.
    pub fn sizes(&self, subject: &Subject<'_>) -> Vec<Condition> {
        // What asks of hardly a launch anything first.
        let mut found = self.steps(subject);
        found.extend(self.within_counters());
        found.extend(self.signed_numbers(subject));
        found.extend(self.positive());
        found.extend(self.at_least());
        for d in &self.dims {
            for n in &self.scalars {
                found.push(Condition::at_most(Term::of(1, [Number::Grid(*d)]), *n));
                found.push(Condition::at_most(Term::of(1, [Number::Groups(*d)]), *n));
                if let Some(size) = subject.kernel.threadgroup_size {
                    for factor in size.into_iter().filter(|s| *s > 1) {
                        let term = Term::of(i128::from(factor), [Number::Groups(*d)]);
                        found.push(Condition::at_most(term, *n));
                    }
                }
            }
            if subject.kernel.threadgroup_size.is_none() {
                // A single element is none for each thread.
                let lengths = subject.kernel.allocs.iter().map(|a| i128::from(a.length));
                let bounds = lengths.filter(|length| *length > 1);
                found.extend(bounds.map(|n| Condition::Below(Number::Threadgroup(*d), n)));
            }
        }
        found.extend(self.strides(subject));
        for a in &self.scalars {
            for b in &self.scalars {
                if a != b {
                    found.push(Condition::at_most(Term::of(1, [*a]), *b));
                    // A row of elements of so many bytes.
                    let each = self.bytes.iter().map(|bytes| Term::of(*bytes, [*a]));
                    found.extend(each.map(|row| Condition::at_most(row, *b)));
                }
            }
        }
        for n in &self.scalars {
            // Multiples of more may be multiples of less: those ask more.
            for c in self.constants.iter().rev().filter(|c| **c < 2048) {
                found.push(Condition::Multiple(*n, *c));
            }
        }
        found.extend(self.within_types());
        found.extend(self.products_within_types());
        for d in &self.dims {
            if let Some(size) = subject.kernel.threadgroup_size
                && size[*d as usize] > 1
            {
                found.push(Condition::Multiple(
                    Number::Grid(*d),
                    i128::from(size[*d as usize]),
                ));
            }
        }
        found
    }
}
