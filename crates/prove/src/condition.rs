//! Conditions on a launch: what a proof may need, each a test of a few numbers that a dispatch knows.

use std::num::NonZeroU64;

use invar_ir::texture::extent_name;
use invar_ir::{Dim, InstKind, Kernel, LaunchNumber, Memory, Module, ParamKind, Type};

use crate::kernel::Subject;
use crate::launch::Launch;
use crate::linear::{Formula, Linear};
use crate::query::{Int, Query};
use crate::value::{LARGEST_TEXTURE, LARGEST_THREADGROUP, MOST_LEVELS, range};

const MOST_THREADS: u64 = LARGEST_THREADGROUP as u64;
/// Products of three are made of so many numbers.
const MOST_SIDES: usize = 8;
/// No number of a launch is larger, nor is one below 0 further from it.
const LARGEST_MULTIPLE: i128 = 1 << 64;
/// No condition asks for more elements by their number alone.
const MOST_USUAL: i128 = 1 << 20;

/// A number that a launch says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Number {
    /// An integer parameter, by its place.
    Argument(usize),
    /// A function constant, by its place.
    Constant(usize),
    /// Threads of the grid.
    Grid(Dim),
    /// Threadgroups of the grid.
    Groups(Dim),
    /// Threads of a full threadgroup.
    Threadgroup(Dim),
    /// How many elements a buffer has, by the place of its parameter.
    Length(usize),
    /// How many texels a texture has in a direction, by the place of its parameter.
    Texels(usize, Dim),
    /// How many levels a texture has, by the place of its parameter.
    Levels(usize),
    /// An integer that the first element of a buffer holds, such as a field of a struct of parameters: the place of the
    /// parameter, and which location of the element.
    Field(usize, u32),
}

/// A product of numbers and a constant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term {
    /// The constant.
    pub factor: i128,
    /// The numbers, at most two or three.
    pub numbers: Vec<Number>,
}

impl Term {
    /// A number times a constant.
    pub fn of(factor: i128, numbers: impl IntoIterator<Item = Number>) -> Term {
        let mut numbers: Vec<Number> = numbers.into_iter().collect();
        numbers.sort_unstable();
        Term { factor, numbers }
    }

    fn of_launch(&self, launch: &Launch) -> Option<i128> {
        self.value(&|number| number.of(launch))
    }

    fn value(&self, number: &impl Fn(Number) -> Option<i128>) -> Option<i128> {
        let mut product = self.factor;
        for one in &self.numbers {
            product = product.checked_mul(number(*one)?)?;
        }
        Some(product)
    }

    fn form(&self, subject: &Subject<'_>, q: &mut Query) -> Option<Linear> {
        let mut product = Linear::constant(self.factor);
        for number in &self.numbers {
            let form = number.form(subject, q);
            product = q.product(&product, &form)?;
        }
        Some(product)
    }

    fn text(&self, module: &Module, kernel: &Kernel) -> String {
        let numbers = self.numbers.iter().map(|n| n.name(module, kernel));
        let mut parts: Vec<String> = numbers.collect();
        if self.factor != 1 || parts.is_empty() {
            parts.push(self.factor.to_string());
        }
        parts.join(" * ")
    }
}

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Condition {
    /// The first is at most the second.
    AtMost(Term, Term),
    /// The number is at most the constant.
    Below(Number, i128),
    /// The number is a multiple of the constant.
    Multiple(Number, i128),
    /// The two together are at most the constant.
    Together(Term, Term, i128),
}

/// The least and the largest number of an integer parameter.
fn argument_range(subject: &Subject<'_>, place: usize) -> (i128, i128) {
    match &subject.kernel.params[place].kind {
        ParamKind::Scalar { value } => match subject.kernel.ty(*value).scalar() {
            Some(scalar) => range(scalar),
            None => (0, 0),
        },
        _no_value => (0, 0),
    }
}

impl Number {
    /// What a launch says that it is.
    pub fn of(self, launch: &Launch) -> Option<i128> {
        match self {
            Number::Grid(d) => launch.grid[d as usize],
            Number::Groups(d) => launch.groups(d as usize),
            Number::Threadgroup(d) => launch.threadgroup[d as usize],
            Number::Argument(i) | Number::Length(i) => launch.numbers.get(i).copied().flatten(),
            Number::Constant(i) => launch.constants.get(i).copied().flatten(),
            Number::Texels(i, d) => launch.texels.get(&(i, d)).copied(),
            Number::Levels(i) => launch.levels.get(&i).copied(),
            Number::Field(i, location) => launch.fields.get(&(i, location)).copied(),
        }
    }

    /// Makes an object of a launch that large; other numbers stay as they are.
    pub fn set(self, launch: &mut Launch, to: i128) {
        match self {
            Number::Length(i) => {
                if let Some(length) = launch.numbers.get_mut(i) {
                    *length = Some(to);
                }
            }
            Number::Texels(i, d) => drop(launch.texels.insert((i, d), to)),
            Number::Levels(i) => drop(launch.levels.insert(i, to)),
            Number::Argument(_)
            | Number::Constant(_)
            | Number::Grid(_)
            | Number::Groups(_)
            | Number::Threadgroup(_)
            | Number::Field(..) => {}
        }
    }

    fn form(self, subject: &Subject<'_>, q: &mut Query) -> Linear {
        self.int(subject, q).form
    }

    /// The number in a question.
    pub(crate) fn int(self, subject: &Subject<'_>, q: &mut Query) -> Int {
        match self {
            Number::Grid(d) => subject.grid(q, d),
            Number::Groups(d) => subject.groups(q, d),
            Number::Threadgroup(d) => subject.full_size(q, d),
            Number::Argument(i) => {
                let (low, high) = argument_range(subject, i);
                q.symbol(&format!("%{}", subject.kernel.params[i].name), low, high)
            }
            Number::Constant(i) => {
                let constant = &subject.module.function_constants[i];
                let (low, high) = range(constant.scalar);
                q.symbol(&format!("@{}", constant.name), low, high)
            }
            Number::Length(i) => subject.length(q, Memory::Param(i as u32)),
            Number::Texels(i, d) => subject.texels(q, Memory::Param(i as u32), d),
            Number::Levels(i) => subject.levels(q, Memory::Param(i as u32)),
            Number::Field(i, location) => subject.field(q, i, location),
        }
    }

    /// What a question calls it.
    fn key(self, subject: &Subject<'_>) -> String {
        match self {
            Number::Argument(i) => format!("%{}", subject.kernel.params[i].name),
            Number::Constant(i) => format!("@{}", subject.module.function_constants[i].name),
            Number::Grid(_)
            | Number::Groups(_)
            | Number::Threadgroup(_)
            | Number::Length(_)
            | Number::Texels(..)
            | Number::Levels(_)
            | Number::Field(..) => self.name(subject.module, subject.kernel),
        }
    }

    fn name(self, module: &Module, kernel: &Kernel) -> String {
        match self {
            Number::Grid(d) => format!("grid.{}", d.name()),
            Number::Groups(d) => format!("groups.{}", d.name()),
            Number::Threadgroup(d) => format!("threadgroup.{}", d.name()),
            Number::Argument(i) => kernel.params[i].name.to_string(),
            Number::Constant(i) => module.function_constants[i].name.to_string(),
            Number::Length(i) => format!("length({})", kernel.params[i].name),
            Number::Texels(i, d) => format!("{}({})", extent_name(d), kernel.params[i].name),
            Number::Levels(i) => format!("levels({})", kernel.params[i].name),
            Number::Field(i, location) => {
                LaunchNumber::Field(i as u32, location).in_words(module, kernel)
            }
        }
    }
}

impl Condition {
    /// That a term is at most a number.
    pub fn at_most(term: Term, bound: Number) -> Condition {
        Condition::AtMost(term, Term::of(1, [bound]))
    }

    /// Whether a launch fulfils it; `None` if the launch does not say.
    pub fn holds(&self, launch: &Launch) -> Option<bool> {
        self.holds_of(&|number| number.of(launch))
    }

    /// Whether numbers fulfil it; `None` if one is not known.
    pub fn holds_of(&self, number: &impl Fn(Number) -> Option<i128>) -> Option<bool> {
        Some(match self {
            Condition::AtMost(term, bound) => term.value(number)? <= bound.value(number)?,
            Condition::Below(one, bound) => number(*one)? <= *bound,
            Condition::Multiple(one, of) => number(*one)? % of == 0,
            Condition::Together(a, b, bound) => {
                a.value(number)?.checked_add(b.value(number)?)? <= *bound
            }
        })
    }

    /// What its upper side has to be at least in a launch that says all of the lower one.
    pub fn needs(&self, launch: &Launch) -> Option<i128> {
        match self {
            Condition::AtMost(term, bound) if bound.factor == 1 && bound.numbers.len() == 1 => {
                term.of_launch(launch)
            }
            Condition::AtMost(..)
            | Condition::Below(..)
            | Condition::Multiple(..)
            | Condition::Together(..) => None,
        }
    }

    /// Of a number that is a multiple, has the question write it as that: whole numbers that are left of
    /// one another then stay so where both are divided. Before anything else is said.
    pub fn prepare(&self, subject: &Subject<'_>, place: usize, q: &mut Query) {
        if let Condition::Multiple(number, of) = self {
            let bounds = match number {
                // What is below 0 may be a multiple, too.
                Number::Argument(i) => argument_range(subject, *i),
                Number::Constant(i) => range(subject.module.function_constants[*i].scalar),
                // One thread: no number that is written as another.
                Number::Grid(d) if subject.unused[*d as usize] => return,
                Number::Grid(_) | Number::Texels(..) => (0, LARGEST_MULTIPLE),
                // Of these more is said where they are first spoken of.
                Number::Groups(_)
                | Number::Threadgroup(_)
                | Number::Length(_)
                | Number::Levels(_)
                | Number::Field(..) => return,
            };
            q.write_as_times(&number.key(subject), *of, bounds, place);
        }
    }

    /// The fact that it is.
    pub fn say(&self, subject: &Subject<'_>, q: &mut Query) -> Option<Formula> {
        match self {
            Condition::AtMost(term, bound) => {
                let product = term.form(subject, q)?;
                let bound = bound.form(subject, q)?;
                Formula::le(&product, &bound)
            }
            Condition::Below(number, bound) => {
                Formula::le(&number.form(subject, q), &Linear::constant(*bound))
            }
            Condition::Together(a, b, bound) => {
                let (a, b) = (a.form(subject, q)?, b.form(subject, q)?);
                Formula::le(&a.plus(1, &b)?, &Linear::constant(*bound))
            }
            // It is written as that many times another.
            Condition::Multiple(number, of) if q.is_times(&number.key(subject), *of) => None,
            Condition::Multiple(number, of) => {
                let form = number.form(subject, q);
                let key = format!("{number:?} in multiples of {of}");
                let quotient = q.symbol(&key, -LARGEST_MULTIPLE, LARGEST_MULTIPLE);
                Formula::eq(&form, &quotient.form.times(*of)?)
            }
        }
    }

    /// How it is written, in the author's names.
    pub fn text(&self, module: &Module, kernel: &Kernel) -> String {
        match self {
            Condition::AtMost(term, bound) => {
                let (term, bound) = (term.text(module, kernel), bound.text(module, kernel));
                format!("{term} <= {bound}")
            }
            Condition::Below(number, bound) => {
                format!("{} <= {bound}", number.name(module, kernel))
            }
            Condition::Multiple(number, of) => {
                format!("{} % {of} == 0", number.name(module, kernel))
            }
            Condition::Together(a, b, bound) => {
                let (a, b) = (a.text(module, kernel), b.text(module, kernel));
                format!("{a} + {b} <= {bound}")
            }
        }
    }

    /// How much it asks of its reader: those that ask less are kept.
    pub fn weight(&self) -> (usize, i128) {
        match self {
            Condition::AtMost(term, bound)
                if matches!(
                    bound.numbers[..],
                    [Number::Length(_) | Number::Texels(..) | Number::Levels(_)]
                ) =>
            {
                (term.numbers.len(), term.factor)
            }
            Condition::AtMost(term, _) => (3 + term.numbers.len(), term.factor),
            Condition::Together(_, b, bound) => (5 + b.numbers.len(), *bound),
            Condition::Below(_, bound) => (6, *bound),
            Condition::Multiple(_, of) => (7, *of),
        }
    }
}

/// Launches in which every access is in bounds, whatever memory holds: what is asked of each before it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launches {
    flat: Vec<Dim>,
    conditions: Vec<Condition>,
    /// What the conditions speak of, each number once.
    numbers: Vec<Number>,
    /// The conditions in 64 bits, if those suffice for all.
    looks: Option<Vec<Look>>,
}

/// A condition on numbers that are known by their places.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Look {
    AtMost(Factors, Factors),
    /// A product is at most one value, such as a length.
    Fits(Factors, u8),
    Together(Factors, Factors, u64),
    Below(u8, u64),
    Multiple(u8, NonZeroU64),
    /// These bits of a value are zero: a division takes as long as several conditions.
    NoBits(u8, u64),
}

/// A product: of a constant and of values, where one that is not there is 1.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Factors {
    factor: u64,
    places: [u8; MOST_FACTORS],
}

/// Values by their places, with a 1 at the last.
type Values = [u64; PLACES];
const PLACES: usize = 16;
const ONE: u8 = PLACES as u8 - 1;

/// So many different numbers, and factors of a product, are looked at in 64 bits.
const MOST_NUMBERS: usize = 12;
const MOST_FACTORS: usize = 3;

impl Launches {
    /// Those with one thread in the dimensions that are `flat`, which fulfil the conditions.
    pub fn new(flat: Vec<Dim>, conditions: Vec<Condition>) -> Launches {
        let mut numbers = Vec::new();
        let looks = conditions.iter().map(|c| Look::of(c, &mut numbers));
        let looks = looks.collect();
        Launches {
            flat,
            conditions,
            numbers,
            looks,
        }
    }

    /// Whether a launch of these numbers is one of them; what is negative it need not say. Buffers of two to the 32
    /// elements and more are for the caller to look for.
    pub fn have(&self, number: &impl Fn(Number) -> Option<u64>) -> bool {
        let sizes = Dim::ALL.map(|d| number(Number::Threadgroup(d)));
        let [Some(x), Some(y), Some(z)] = sizes else {
            return false;
        };
        let is_flat = |d: &Dim| number(Number::Grid(*d)) == Some(1);
        let is_small = x.max(y).max(z) <= MOST_THREADS && x * y * z <= MOST_THREADS;
        if !is_small || !self.flat.iter().all(is_flat) {
            return false;
        }
        let exact = |c: &Condition| c.holds_of(&|n| number(n).map(i128::from)) == Some(true);
        let Some(looks) = &self.looks else {
            return self.conditions.iter().all(exact);
        };
        let mut values = [1; PLACES];
        for (value, of) in values.iter_mut().zip(&self.numbers) {
            match number(*of) {
                Some(known) => *value = known,
                None => return false,
            }
        }
        let mut fits = true;
        let holds = looks.iter().all(|look| {
            let held = look.holds(&values);
            fits &= held.is_some();
            held == Some(true)
        });
        // Where 64 bits are too few, all are looked at once more.
        holds || !fits && self.conditions.iter().all(exact)
    }
}

impl Look {
    /// A condition in 64 bits, with the numbers that it speaks of among `numbers`; `None` if those are too many.
    fn of(condition: &Condition, numbers: &mut Vec<Number>) -> Option<Look> {
        let mut place = |number: Number| {
            let known = numbers.iter().position(|n| *n == number);
            let place = known.unwrap_or_else(|| {
                numbers.push(number);
                numbers.len() - 1
            });
            u8::try_from(place)
                .ok()
                .filter(|place| usize::from(*place) < MOST_NUMBERS)
        };
        let mut factors = |term: &Term| {
            let mut places = [ONE; MOST_FACTORS];
            if term.numbers.len() > MOST_FACTORS {
                return None;
            }
            for (to, number) in places.iter_mut().zip(&term.numbers) {
                *to = place(*number)?;
            }
            Some(Factors {
                factor: u64::try_from(term.factor).ok()?,
                places,
            })
        };
        Some(match condition {
            Condition::AtMost(term, bound) => match &bound.numbers[..] {
                [number] if bound.factor == 1 => Look::Fits(factors(term)?, place(*number)?),
                _product => Look::AtMost(factors(term)?, factors(bound)?),
            },
            Condition::Together(a, b, bound) => {
                Look::Together(factors(a)?, factors(b)?, u64::try_from(*bound).ok()?)
            }
            Condition::Below(number, bound) => {
                Look::Below(place(*number)?, u64::try_from(*bound).ok()?)
            }
            Condition::Multiple(number, of) => {
                let of = u64::try_from(*of).ok().and_then(NonZeroU64::new)?;
                match of.is_power_of_two() {
                    true => Look::NoBits(place(*number)?, of.get() - 1),
                    false => Look::Multiple(place(*number)?, of),
                }
            }
        })
    }

    /// Whether these values fulfil it; `None` where 64 bits are too few.
    #[inline]
    fn holds(&self, values: &Values) -> Option<bool> {
        let value = |place: &u8| values[usize::from(*place) % PLACES];
        Some(match self {
            Look::AtMost(term, bound) => {
                let term = term.value(values)?;
                match bound.value(values) {
                    Some(bound) => term <= bound,
                    // A constant times one number, which is then more than any of 64 bits.
                    None if bound.places[1] == ONE => true,
                    None => return None,
                }
            }
            Look::Fits(term, bound) => term.value(values)? <= value(bound),
            Look::Together(a, b, bound) => {
                a.value(values)?.checked_add(b.value(values)?)? <= *bound
            }
            Look::Below(number, bound) => value(number) <= *bound,
            Look::Multiple(number, of) => value(number) % *of == 0,
            Look::NoBits(number, bits) => value(number) & bits == 0,
        })
    }
}

impl Factors {
    #[inline]
    fn value(&self, values: &Values) -> Option<u64> {
        let [x, y, z] = self.places.map(|place| values[usize::from(place) % PLACES]);
        let product = self.factor.checked_mul(x)?;
        // Most have one number.
        if self.places[1] == ONE {
            return Some(product);
        }
        product.checked_mul(y)?.checked_mul(z)
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
    /// Widths of its accesses beside 1.
    pub widths: Vec<i128>,
    /// Buffers whose lengths it asks for.
    pub lengths: Vec<Number>,
    /// Lengths of threadgroup parameters.
    pub shared: Vec<Number>,
    /// How many levels have those that it reaches by a constant.
    pub levels: i128,
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
        Vocabulary {
            dims: dims.collect(),
            scalars,
            constants,
            widths,
            lengths,
            shared,
            levels,
        }
    }

    /// Forgets what buffers hold, for who cannot look at it.
    pub fn leave_out_contents(&mut self) {
        let is_known = |n: &Number| !matches!(n, Number::Field(..));
        self.scalars.retain(is_known);
    }

    /// Lower bounds of a buffer's length or of a texture's size, those that ask less before those that ask more
    /// of most launches.
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
        let mut by_constants: Vec<i128> = self.constants.clone();
        for w in &self.widths {
            by_constants.extend(
                self.constants
                    .iter()
                    .map(|c| c * w)
                    .filter(|p| *p <= 1 << 16),
            );
        }
        for base in [&scalars, &groups, &grid] {
            for factor in &factors {
                terms.extend(base.iter().map(|n| Term::of(*factor, [*n])));
            }
        }
        for c in &by_constants {
            terms.extend(groups.iter().map(|n| Term::of(*c, [*n])));
        }
        let mut all: Vec<Number> = scalars.clone();
        all.extend(&groups);
        all.extend(&grid);
        for (i, a) in all.iter().enumerate() {
            for b in &all[i..] {
                let whole = |n: &Number| matches!(n, Number::Argument(_) | Number::Constant(_));
                let one_grid = !whole(a) && !whole(b) && a == b;
                if !one_grid {
                    terms.push(Term::of(1, [*a, *b]));
                    terms.extend(self.widths.iter().map(|w| Term::of(*w, [*a, *b])));
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
        for c in self.constants.iter().filter(|c| **c <= 64) {
            terms.extend(scalars.iter().map(|n| Term::of(*c, [*n])));
            terms.extend(grid.iter().map(|n| Term::of(*c, [*n])));
        }
        let others = self.lengths.iter().filter(|l| **l != room);
        terms.extend(others.map(|l| Term::of(1, [*l])));
        let mut found: Vec<Condition> = Vec::new();
        let mut add = |condition| {
            if !found.contains(&condition) {
                found.push(condition);
            }
        };
        for term in terms {
            add(Condition::at_most(term, room));
        }
        // One element for so many.
        for factor in by_constants.iter().chain(&products) {
            let bound = Term::of(*factor, [room]);
            for number in scalars.iter().chain(&grid) {
                add(Condition::AtMost(Term::of(1, [*number]), bound.clone()));
            }
        }
        found
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

    /// That what the author passes is at least 1.
    pub fn positive(&self) -> impl Iterator<Item = Condition> + '_ {
        let one = |n: &Number| Condition::at_most(Term::of(1, []), *n);
        self.scalars.iter().map(one)
    }

    /// Conditions on the size of the grid against parameters, and on multiples.
    pub fn sizes(&self, subject: &Subject<'_>) -> Vec<Condition> {
        let mut found = Vec::new();
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
                for alloc in &subject.kernel.allocs {
                    let bound = i128::from(alloc.length);
                    found.push(Condition::Below(Number::Threadgroup(*d), bound));
                }
            }
        }
        // What a loop adds to its index in each round does not carry it beyond its type.
        for bound in subject.strided() {
            // Nor do places in the grid leave one with a sign.
            let signed = self.dims.iter().filter(|_| bound < 1 << 32);
            found.extend(signed.map(|d| Condition::Below(Number::Grid(*d), bound)));
            let scalars = self.scalars.iter();
            let few = self.constants.iter().copied().filter(|c| *c <= 16);
            let multiples = few.flat_map(|c| self.scalars.iter().map(move |n| (c, n)));
            let products = scalars.map(|n| (1, n)).chain(multiples);
            let mut limits: Vec<Term> =
                products.map(|(factor, n)| Term::of(factor, [*n])).collect();
            limits.extend(self.constants.iter().map(|c| Term::of(*c, [])));
            for limit in limits {
                for d in &self.dims {
                    let together = |term, bound| Condition::Together(limit.clone(), term, bound);
                    found.push(together(Term::of(1, [Number::Grid(*d)]), bound));
                    // The threads of whole threadgroups are a number of that type, too.
                    let whole = match subject.kernel.threadgroup_size {
                        Some(size) => {
                            let size = i128::from(size[*d as usize]);
                            Term::of(size, [Number::Groups(*d)])
                        }
                        None => Term::of(1, [Number::Groups(*d), Number::Threadgroup(*d)]),
                    };
                    found.push(together(whole, bound - 1));
                }
            }
        }
        found.extend(self.positive());
        for a in &self.scalars {
            for b in &self.scalars {
                if a != b {
                    found.push(Condition::at_most(Term::of(1, [*a]), *b));
                }
            }
        }
        for n in &self.scalars {
            // Multiples of more may be multiples of less: those ask more.
            for c in self.constants.iter().rev().filter(|c| **c < 2048) {
                found.push(Condition::Multiple(*n, *c));
            }
        }
        // What is multiplied by a constant fits 32 bits.
        for d in &self.dims {
            for c in self.constants.iter().rev() {
                found.push(Condition::Below(Number::Grid(*d), (1 << 32) / c));
            }
        }
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
