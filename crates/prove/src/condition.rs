//! Conditions on a launch: what a proof may need, each a test of a few numbers that a dispatch knows.

use invar_ir::requires::Field;
use invar_ir::texture::extent_name;
use invar_ir::{Dim, Kernel, LaunchNumber, Memory, Module, ParamKind};

use crate::launch::Launch;
use crate::linear::{Formula, Linear};
use crate::query::{Int, Query};
use crate::subject::Subject;
use crate::thread::{LARGEST_THREADGROUP, range};

const MOST_THREADS: u64 = LARGEST_THREADGROUP as u64;
/// No number of a launch is larger, nor is one below 0 further from it.
const LARGEST_MULTIPLE: i128 = 1 << 64;

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

    pub(crate) fn of_launch(&self, launch: &Launch) -> Option<i128> {
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
    /// The term and so many more are at most the number.
    More(Term, i128, Number),
    /// The two together are at most the number.
    Sum(Term, Term, Number),
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
    /// The least and the largest that what the author passes can be by its type; no number of the grid is below 0.
    pub(crate) fn range(self, subject: &Subject<'_>) -> (i128, i128) {
        match self {
            Number::Argument(i) => argument_range(subject, i),
            Number::Constant(i) => range(subject.module.function_constants[i].scalar),
            Number::Field(i, location) => {
                let field = Field::of(subject.module, subject.kernel, i as u32, location);
                field.map_or((0, 0), |field| range(field.scalar))
            }
            Number::Grid(_)
            | Number::Groups(_)
            | Number::Threadgroup(_)
            | Number::Length(_)
            | Number::Texels(..)
            | Number::Levels(_) => (0, u32::MAX.into()),
        }
    }

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

    /// Makes it that in a launch. How many threadgroups there are follows from the threads.
    pub fn set(self, launch: &mut Launch, to: i128) {
        match self {
            Number::Argument(i) | Number::Length(i) => {
                if let Some(number) = launch.numbers.get_mut(i) {
                    *number = Some(to);
                }
            }
            Number::Constant(i) => {
                if let Some(constant) = launch.constants.get_mut(i) {
                    *constant = Some(to);
                }
            }
            Number::Grid(d) => launch.grid[d as usize] = Some(to),
            Number::Threadgroup(d) => launch.threadgroup[d as usize] = Some(to),
            Number::Texels(i, d) => drop(launch.texels.insert((i, d), to)),
            Number::Levels(i) => drop(launch.levels.insert(i, to)),
            Number::Field(i, location) => drop(launch.fields.insert((i, location), to)),
            Number::Groups(_) => {}
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
            | Number::Levels(_) => self.name(subject.module, subject.kernel),
            Number::Field(i, location) => match subject.field_key(i, location) {
                Some((key, _)) => key,
                None => self.name(subject.module, subject.kernel),
            },
        }
    }

    /// What it is in the author's names.
    pub(crate) fn name(self, module: &Module, kernel: &Kernel) -> String {
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
            Condition::More(term, more, bound) => {
                term.value(number)?.checked_add(*more)? <= number(*bound)?
            }
            Condition::Sum(a, b, bound) => {
                a.value(number)?.checked_add(b.value(number)?)? <= number(*bound)?
            }
        })
    }

    /// What its upper side has to be at least in a launch that says all of the lower one.
    pub fn needs(&self, launch: &Launch) -> Option<i128> {
        match self {
            Condition::AtMost(term, bound) if bound.factor == 1 && bound.numbers.len() == 1 => {
                term.of_launch(launch)
            }
            Condition::More(term, more, _) => term.of_launch(launch)?.checked_add(*more),
            Condition::Sum(a, b, _) => a.of_launch(launch)?.checked_add(b.of_launch(launch)?),
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
                | Number::Levels(_) => return,
                Number::Field(i, location) => match subject.field_key(*i, *location) {
                    Some((_, bounds)) => bounds,
                    None => return,
                },
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
            Condition::More(term, more, bound) => {
                let (term, bound) = (term.form(subject, q)?, bound.form(subject, q));
                Formula::le(&term.shifted(*more)?, &bound)
            }
            Condition::Sum(a, b, bound) => {
                let (a, b) = (a.form(subject, q)?, b.form(subject, q)?);
                Formula::le(&a.plus(1, &b)?, &bound.form(subject, q))
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
            Condition::More(term, more, bound) => {
                let (term, bound) = (term.text(module, kernel), bound.name(module, kernel));
                format!("{term} + {more} <= {bound}")
            }
            Condition::Sum(a, b, bound) => {
                let (a, b) = (a.text(module, kernel), b.text(module, kernel));
                format!("{a} + {b} <= {}", bound.name(module, kernel))
            }
        }
    }

    /// Whether it says how large an object is, or that what is passed is no less than a constant: who launches a kernel
    /// beyond it has forgotten something, whatever else the kernel does wrong.
    pub fn is_of_size(&self) -> bool {
        let is_object = |n: &Number| {
            matches!(
                n,
                Number::Length(_) | Number::Texels(..) | Number::Levels(_)
            )
        };
        match self {
            Condition::AtMost(term, bound) => {
                term.numbers.is_empty() || bound.numbers.iter().any(is_object)
            }
            Condition::More(_, _, room) | Condition::Sum(_, _, room) => is_object(room),
            Condition::Below(..) | Condition::Multiple(..) | Condition::Together(..) => false,
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
            Condition::More(term, more, _) => (term.numbers.len(), term.factor + more),
            Condition::Sum(a, b, _) => {
                let numbers = a.numbers.len() + b.numbers.len();
                (numbers, a.factor + b.factor)
            }
            Condition::AtMost(term, _) => (3 + term.numbers.len(), term.factor),
            // A larger bound asks less.
            Condition::Together(_, b, bound) => (5 + b.numbers.len(), -*bound),
            Condition::Below(_, bound) => (6, -*bound),
            Condition::Multiple(_, of) => (7, *of),
        }
    }
}

/// How conditions are written, in their order: of two numbers that are each at most the other, that they are equal.
pub fn texts(conditions: &[Condition], module: &Module, kernel: &Kernel) -> Vec<String> {
    let turned = |condition: &Condition| match condition {
        Condition::AtMost(a, b) => Some(Condition::AtMost(b.clone(), a.clone())),
        Condition::Below(..)
        | Condition::Multiple(..)
        | Condition::Together(..)
        | Condition::Sum(..)
        | Condition::More(..) => None,
    };
    let place = |wanted: &Condition| conditions.iter().position(|c| c == wanted);
    let mut all = Vec::new();
    for (i, condition) in conditions.iter().enumerate() {
        let other = turned(condition).and_then(|turned| place(&turned));
        match (condition, other) {
            (_, Some(other)) if other < i => {}
            (Condition::AtMost(a, b), Some(other)) if other > i => {
                let (a, b) = (a.text(module, kernel), b.text(module, kernel));
                all.push(format!("{a} == {b}"));
            }
            _alone => all.push(condition.text(module, kernel)),
        }
    }
    all
}

/// Launches in which every access is in bounds, whatever memory holds: what is asked of each before it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launches {
    /// By dimension: whether the grid has one thread in it.
    flat: [bool; 3],
    conditions: Vec<Condition>,
    /// The conditions for numbers of 32 bits, if all can be looked at so.
    looks: Option<Looks>,
}

/// Conditions on numbers of 32 bits that are known by their places among [`Values`]. Their products are in types that
/// have room for each, so no look asks whether one overflows. Conditions of one shape stand together.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Looks {
    /// The constants that conditions speak of at their places, and a 1.
    constants: Values,
    /// Which places of the grid have numbers that conditions speak of, as bits.
    sizes: u32,
    /// The lengths of buffers, which most conditions are about, by their parameters, and their places.
    lengths: Vec<(u32, u8)>,
    /// The other numbers and their places.
    numbers: Vec<(Number, u8)>,
    /// The product of the first two is at most that of the others.
    orders: Vec<[u8; 4]>,
    /// The products of the first two and of the next two are together at most that of the others.
    sums: Vec<[u8; 6]>,
    /// Of the number at a place, times this, what is left of 64 bits is less than this: it is a multiple of a number by
    /// which two to the 64 was divided (Lemire, Kaser and Kurz, "Faster remainder by direct computation", 2019). A
    /// division takes as long as several conditions.
    multiples: Vec<(u8, u64)>,
    /// What is seldom.
    rest: Vec<Look>,
}

/// A condition on products of more than two.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Look {
    AtMost(Factors, Factors),
    Together(Factors, Factors, u128),
    More(Factors, u128, u8),
}

/// A product of four, of which those that are not there are 1.
type Factors = [u8; MOST_FACTORS];
const MOST_FACTORS: usize = 4;

/// Threads of the grid, threadgroups, threads of a threadgroup, a 1; then constants and other numbers.
type Values = [u32; PLACES];
const PLACES: usize = 32;
const ONE: u8 = 9;

/// Threads of the grid, its threadgroups, and threads of a threadgroup, each of the three dimensions.
const SIZES: [Number; ONE as usize] = [
    Number::Grid(Dim::X),
    Number::Grid(Dim::Y),
    Number::Grid(Dim::Z),
    Number::Groups(Dim::X),
    Number::Groups(Dim::Y),
    Number::Groups(Dim::Z),
    Number::Threadgroup(Dim::X),
    Number::Threadgroup(Dim::Y),
    Number::Threadgroup(Dim::Z),
];

impl Launches {
    /// Those with one thread in the dimensions that are `flat`, which fulfil the conditions.
    pub fn new(flat: &[Dim], conditions: Vec<Condition>) -> Launches {
        Launches {
            flat: Dim::ALL.map(|d| flat.contains(&d)),
            looks: Looks::of(&conditions),
            conditions,
        }
    }

    /// Whether a launch of these numbers is one of them; what is negative it need not say. Buffers of two to the 32
    /// elements and more are for the caller to look for.
    pub fn have(&self, number: &impl Fn(Number) -> Option<u64>) -> bool {
        let sizes = Dim::ALL.map(|d| number(Number::Threadgroup(d)));
        let [Some(x), Some(y), Some(z)] = sizes else {
            return false;
        };
        let is_wide = |d: Dim| self.flat[d as usize] && number(Number::Grid(d)) != Some(1);
        let is_small = x.max(y).max(z) <= MOST_THREADS && x * y * z <= MOST_THREADS;
        if !is_small || Dim::ALL.into_iter().any(is_wide) {
            return false;
        }
        if let Some(looks) = &self.looks {
            let mut values = looks.constants;
            if looks.fill(&mut values, number) {
                return looks.hold(&values);
            }
        }
        self.have_exactly(number)
    }

    #[cold]
    fn have_exactly(&self, number: &impl Fn(Number) -> Option<u64>) -> bool {
        let exact = |c: &Condition| c.holds_of(&|n| number(n).map(i128::from));
        self.conditions.iter().all(|c| exact(c) == Some(true))
    }
}

impl Looks {
    /// Conditions in places of values; `None` where they speak of too much or of what is not a number of 32 bits.
    fn of(conditions: &[Condition]) -> Option<Looks> {
        let mut looks = Looks {
            constants: [1; PLACES],
            sizes: 0,
            lengths: Vec::new(),
            numbers: Vec::new(),
            orders: Vec::new(),
            sums: Vec::new(),
            multiples: Vec::new(),
            rest: Vec::new(),
        };
        let mut constants = Vec::new();
        for condition in conditions {
            looks.add(condition, &mut constants)?;
        }
        Some(looks)
    }

    fn add(&mut self, condition: &Condition, constants: &mut Vec<u8>) -> Option<()> {
        match condition {
            Condition::AtMost(term, bound) => {
                let term = self.factors(term, constants)?;
                let bound = self.factors(bound, constants)?;
                match (term, bound) {
                    ([a, b, ONE, ONE], [c, d, ONE, ONE]) => self.orders.push([a, b, c, d]),
                    _products_of_more => self.rest.push(Look::AtMost(term, bound)),
                }
            }
            Condition::Together(a, b, bound) => {
                let (a, b) = (self.factors(a, constants)?, self.factors(b, constants)?);
                // Of three, so that the two together have room in 128 bits.
                if a[3] != ONE || b[3] != ONE {
                    return None;
                }
                if let (&[a, c, ONE, ONE], &[b, d, ONE, ONE]) = (&a, &b)
                    && let Some([e, f]) = self.bound(*bound, constants)
                {
                    self.sums.push([a, c, b, d, e, f]);
                    return Some(());
                }
                let bound = u128::try_from(*bound).ok()?;
                self.rest.push(Look::Together(a, b, bound));
            }
            Condition::More(term, more, bound) => {
                let term = self.factors(term, constants)?;
                // Of three, as above.
                if term[3] != ONE {
                    return None;
                }
                let bound = self.place(*bound, constants)?;
                let more = u32::try_from(*more).ok()?;
                if let [a, b, ONE, ONE] = term {
                    let more = self.constant(more, constants)?;
                    self.sums.push([a, b, more, ONE, bound, ONE]);
                    return Some(());
                }
                self.rest.push(Look::More(term, more.into(), bound));
            }
            Condition::Sum(a, b, bound) => {
                let (a, b) = (self.factors(a, constants)?, self.factors(b, constants)?);
                let bound = self.place(*bound, constants)?;
                // What is seldom is looked at exactly.
                let ([a, c, ONE, ONE], [b, d, ONE, ONE]) = (a, b) else {
                    return None;
                };
                self.sums.push([a, c, b, d, bound, ONE]);
            }
            Condition::Below(number, bound) => {
                // No number of 32 bits is beyond the largest.
                let bound = u32::try_from((*bound).min(u32::MAX.into())).ok()?;
                let (number, bound) = (
                    self.place(*number, constants)?,
                    self.constant(bound, constants)?,
                );
                self.orders.push([number, ONE, bound, ONE]);
            }
            Condition::Multiple(number, of) => {
                let number = self.place(*number, constants)?;
                let of = u64::from(u32::try_from(*of).ok()?);
                // Each is one of 1.
                if of != 1 {
                    let part = u64::MAX.checked_div(of)?.checked_add(1)?;
                    self.multiples.push((number, part));
                }
            }
        }
        Some(())
    }

    /// A bound as a product of two: those of types have one bit more than 32.
    fn bound(&mut self, bound: i128, constants: &mut Vec<u8>) -> Option<[u8; 2]> {
        const TYPE: i128 = 1 << 32;
        match bound {
            TYPE => {
                let root = self.constant(1 << 16, constants)?;
                Some([root, root])
            }
            _less => {
                let bound = u32::try_from(bound).ok()?;
                Some([self.constant(bound, constants)?, ONE])
            }
        }
    }

    /// The place that is free next.
    fn free(&self, constants: &[u8]) -> Option<u8> {
        let numbers = self.lengths.len() + self.numbers.len();
        let place = usize::from(ONE) + 1 + constants.len() + numbers;
        u8::try_from(place).ok().filter(|_| place < PLACES)
    }

    fn place(&mut self, number: Number, constants: &[u8]) -> Option<u8> {
        if let Some(size) = SIZES.iter().position(|size| *size == number) {
            self.sizes |= 1 << size;
            return u8::try_from(size).ok();
        }
        let known = match number {
            Number::Length(i) => self
                .lengths
                .iter()
                .find(|(of, _)| *of as usize == i)
                .map(|l| l.1),
            _another => self.numbers.iter().find(|n| n.0 == number).map(|n| n.1),
        };
        known.or_else(|| {
            let place = self.free(constants)?;
            match number {
                Number::Length(i) => self.lengths.push((u32::try_from(i).ok()?, place)),
                number => self.numbers.push((number, place)),
            }
            Some(place)
        })
    }

    fn constant(&mut self, value: u32, constants: &mut Vec<u8>) -> Option<u8> {
        if value == 1 {
            return Some(ONE);
        }
        let has = |place: &&u8| self.constants[usize::from(**place)] == value;
        let known = constants.iter().find(has).copied();
        known.or_else(|| {
            let place = self.free(constants)?;
            self.constants[usize::from(place)] = value;
            constants.push(place);
            Some(place)
        })
    }

    fn factors(&mut self, term: &Term, constants: &mut Vec<u8>) -> Option<Factors> {
        if term.numbers.is_empty() {
            let [a, b] = self.bound(term.factor, constants)?;
            return Some([a, b, ONE, ONE]);
        }
        let factor = self.constant(u32::try_from(term.factor).ok()?, constants)?;
        let mut places = Vec::new();
        for number in &term.numbers {
            places.push(self.place(*number, constants)?);
        }
        places.extend((factor != ONE).then_some(factor));
        places.resize(MOST_FACTORS.max(places.len()), ONE);
        places.try_into().ok()
    }

    /// Puts the numbers of a launch at their places; false where one is not known or has more than 32 bits.
    #[inline]
    fn fill(&self, values: &mut Values, number: &impl Fn(Number) -> Option<u64>) -> bool {
        let known = |n| number(n).and_then(|value| u32::try_from(value).ok());
        let mut unknown = 0;
        for (i, size) in SIZES.into_iter().enumerate() {
            match known(size) {
                Some(value) => values[i] = value,
                None => unknown |= 1 << i,
            }
        }
        for (i, place) in &self.lengths {
            match known(Number::Length(*i as usize)) {
                Some(value) => values[usize::from(*place) % PLACES] = value,
                None => return false,
            }
        }
        for (of, place) in &self.numbers {
            match known(*of) {
                Some(value) => values[usize::from(*place) % PLACES] = value,
                None => return false,
            }
        }
        unknown & self.sizes == 0
    }

    /// Whether these values fulfil all.
    #[inline]
    fn hold(&self, values: &Values) -> bool {
        let value = |place: u8| u64::from(values[usize::from(place) % PLACES]);
        let ordered = |[a, b, c, d]: &[u8; 4]| value(*a) * value(*b) <= value(*c) * value(*d);
        // No product of two numbers of 32 bits is as large as what has more than 64.
        let together = |[a, b, c, d, e, f]: &[u8; 6]| {
            let sum = (value(*a) * value(*b)).checked_add(value(*c) * value(*d));
            sum.is_some_and(|sum| sum <= value(*e) * value(*f))
        };
        let is_multiple = |(number, part): &(u8, u64)| value(*number).wrapping_mul(*part) < *part;
        self.orders.iter().all(ordered)
            && self.sums.iter().all(together)
            && self.multiples.iter().all(is_multiple)
            && self.rest.iter().all(|look| look.holds(values))
    }
}

impl Look {
    fn holds(&self, values: &Values) -> bool {
        let value = |place: u8| u64::from(values[usize::from(place) % PLACES]);
        let product = |[a, b, c, d]: Factors| {
            u128::from(value(a) * value(b)) * u128::from(value(c) * value(d))
        };
        match self {
            Look::AtMost(term, bound) => product(*term) <= product(*bound),
            Look::Together(a, b, bound) => product(*a) + product(*b) <= *bound,
            Look::More(term, more, bound) => product(*term) + more <= u128::from(value(*bound)),
        }
    }
}
