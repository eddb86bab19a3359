//! What a kernel requires of a launch (S5): comparisons of numbers that a dispatch knows, and what buffers
//! hold.
//!
//! A requirement is a promise of the caller that launches the kernel. Numbers are mathematical integers here: nothing
//! wraps. A dispatch whose numbers break one is refused on every device; what buffers hold, the checked
//! device looks at. The prover takes both as given.
//!
//! Deliberately absent: floats, what memory holds that the kernel may write, and whatever only the body
//! knows.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::builder::KernelBuilder;
use crate::module::{Kernel, Module, ParamKind};
use crate::ops::Dim;
use crate::span::Span;
use crate::text::name_text;
use crate::texture::extent_name;
use crate::types::{ElementType, Scalar, StructId, Type};

/// The most requirements of a kernel.
pub const MAX_REQUIREMENTS: usize = 64;

/// The most products on a side of a comparison.
pub const MAX_PRODUCTS: usize = 16;

/// The most numbers of a launch that are multiplied.
pub const MAX_FACTORS: usize = 4;

/// The largest whole number that is written, either way from 0.
pub const MAX_NUMBER: i128 = 1 << 64;

/// A number that a launch says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LaunchNumber {
    /// An integer parameter, by its place.
    Argument(u32),
    /// A function constant, by its place.
    Constant(u32),
    /// Threads of the grid.
    Grid(Dim),
    /// Threadgroups of the grid.
    Groups(Dim),
    /// Threads of a full threadgroup.
    Threadgroup(Dim),
    /// Elements of a buffer, or of a threadgroup parameter, by its place.
    Length(u32),
    /// The element at hand, in a requirement of each element.
    Element,
    /// Texels of a texture in a direction, by the place of its parameter: in a row, rows, and slices or elements.
    Texels(u32, Dim),
    /// Levels of a texture, by the place of its parameter.
    Levels(u32),
    /// An integer that the first element of a buffer holds which the kernel only reads, such as a field of a struct of
    /// parameters: the place of the parameter, and which of the element's locations (L1). 0 where there is no element.
    Field(u32, u32),
}

/// What a name of a host program stands for in a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// A whole number, known when the kernel is made.
    Number(i128),
    /// A function constant, by its place.
    Constant(u32),
}

/// A scalar that the first element of a buffer holds and that has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// How many bytes stand before it.
    pub offset_bytes: u64,
    /// What it is.
    pub scalar: Scalar,
    /// The way to it.
    pub path: Vec<FieldStep>,
}

/// A step into the first element of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldStep {
    /// Field number so many of that struct.
    Field(StructId, u32),
    /// A component of a vector.
    Component(u32),
    /// Element number so many of an array inside.
    Element(u32),
}

/// How components are called.
const COMPONENTS: [&str; 4] = ["x", "y", "z", "w"];

impl Field {
    /// What a location of the first element of a buffer is: `None` if it has no such location, or one that has no name,
    /// as in a matrix.
    pub fn of(module: &Module, kernel: &Kernel, param: u32, location: u32) -> Option<Field> {
        let element = element_of(kernel, param)?;
        let structs = &module.structs;
        let count = location as usize + 1;
        let locations = element.first_locations(structs, count);
        let (offset_bytes, scalar) = *locations.get(location as usize)?;
        let (mut at, mut left, mut path) = (element, u64::from(location), Vec::new());
        loop {
            match at {
                ElementType::Value(Type::Scalar(_)) => break,
                ElementType::Value(Type::Vector(..)) => {
                    path.push(FieldStep::Component(left as u32));
                    break;
                }
                ElementType::Struct(id) => {
                    for (number, (_, field)) in (0..).zip(&structs.get(id.0 as usize)?.fields) {
                        let within = field.extent(structs)?.location_count;
                        if left < within {
                            path.push(FieldStep::Field(*id, number));
                            at = field;
                            break;
                        }
                        left -= within;
                    }
                }
                ElementType::Array(inner, _) => {
                    let each = inner.extent(structs)?.location_count.max(1);
                    path.push(FieldStep::Element((left / each) as u32));
                    left %= each;
                    at = inner;
                }
                ElementType::Value(_) => return None,
            }
        }
        Some(Field {
            offset_bytes,
            scalar,
            path,
        })
    }

    /// The number in the bytes of a buffer: 0 where it has no whole element (B1). `None` if it is not an integer.
    pub fn read(&self, element_bytes: u64, bytes: &[u8]) -> Option<i128> {
        if !self.scalar.is_integer() {
            return None;
        }
        let (start, size) = (
            self.offset_bytes as usize,
            self.scalar.size_bytes() as usize,
        );
        let mut bits = [0; 8];
        if bytes.len() as u64 >= element_bytes {
            bits[..size].copy_from_slice(bytes.get(start..start + size)?);
        }
        Some(self.scalar.integer(u64::from_le_bytes(bits)))
    }
}

/// What one element of a buffer is.
fn element_of(kernel: &Kernel, param: u32) -> Option<&ElementType> {
    match &kernel.params.get(param as usize)?.kind {
        ParamKind::Buffer { element, .. } | ParamKind::Constant { element } => Some(element),
        ParamKind::Threadgroup { .. }
        | ParamKind::Scalar { .. }
        | ParamKind::Texture(_)
        | ParamKind::Sampler => None,
    }
}

/// The location that these names lead to in the first element of a buffer, of fields, elements of arrays (`[2]`) and at
/// last of a component.
pub(crate) fn location_of(
    module: &Module,
    kernel: &Kernel,
    param: u32,
    names: &[String],
) -> Option<u32> {
    let mut at = element_of(kernel, param)?;
    let mut location = 0;
    let mut names = names.iter();
    for name in names.by_ref() {
        match at {
            ElementType::Struct(id) => {
                let fields = &module.structs.get(id.0 as usize)?.fields;
                let number = fields.iter().position(|(field, _)| **field == **name)?;
                for (_, before) in &fields[..number] {
                    location += before.extent(&module.structs)?.location_count;
                }
                at = &fields[number].1;
            }
            ElementType::Value(Type::Vector(_, count)) => {
                let component = COMPONENTS.iter().position(|c| c == name)?;
                let location = location + component as u64;
                let is_last = names.next().is_none() && component < usize::from(*count);
                return if is_last {
                    u32::try_from(location).ok()
                } else {
                    None
                };
            }
            ElementType::Array(inner, count) => {
                let number = name.strip_prefix('[')?.strip_suffix(']')?;
                let number: u32 = number.parse().ok()?;
                if number >= *count {
                    return None;
                }
                location += u64::from(number) * inner.extent(&module.structs)?.location_count;
                at = inner;
            }
            ElementType::Value(_) => return None,
        }
    }
    let is_scalar = matches!(at, ElementType::Value(Type::Scalar(_)));
    if is_scalar {
        u32::try_from(location).ok()
    } else {
        None
    }
}

/// A whole number times numbers of a launch.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Product {
    /// The whole number.
    pub factor: i128,
    /// The numbers of the launch.
    pub numbers: Vec<LaunchNumber>,
}

/// A sum of products, or the remainder of the only one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Sum {
    /// The products, at least one.
    pub products: Vec<Product>,
    /// What the only product is divided by: its remainder is meant, which is never negative.
    pub modulus: Option<u32>,
}

/// How two sums are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Relation {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
}

/// Two sums compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Comparison {
    /// The left side.
    pub left: Sum,
    /// How.
    pub relation: Relation,
    /// The right side.
    pub right: Sum,
}

/// What is required.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Required {
    /// A comparison holds: `%n * %n <= length(%a)`.
    Holds(Comparison),
    /// It holds for each element of a buffer that the kernel only reads: `each %v of %column: %v < %n`.
    Each {
        /// What the element is called.
        name: Arc<str>,
        /// The buffer, by the place of its parameter.
        buffer: u32,
        /// What holds.
        comparison: Comparison,
    },
    /// No element of a buffer that the kernel only reads is less than the one before it: `ascending %row`.
    Ascending {
        /// The buffer, by the place of its parameter.
        buffer: u32,
    },
}

/// A requirement and where it was written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Requirement {
    /// What is required.
    pub required: Required,
    /// Where it was written.
    pub span: Span,
}

impl Relation {
    /// All of them.
    pub const ALL: [Relation; 6] = [
        Relation::Equal,
        Relation::NotEqual,
        Relation::Less,
        Relation::LessEqual,
        Relation::Greater,
        Relation::GreaterEqual,
    ];

    /// How it is written.
    pub const fn symbol(self) -> &'static str {
        match self {
            Relation::Equal => "==",
            Relation::NotEqual => "!=",
            Relation::Less => "<",
            Relation::LessEqual => "<=",
            Relation::Greater => ">",
            Relation::GreaterEqual => ">=",
        }
    }

    /// Whether it holds of two numbers.
    pub fn holds(self, left: i128, right: i128) -> bool {
        match self {
            Relation::Equal => left == right,
            Relation::NotEqual => left != right,
            Relation::Less => left < right,
            Relation::LessEqual => left <= right,
            Relation::Greater => left > right,
            Relation::GreaterEqual => left >= right,
        }
    }
}

impl Sum {
    /// What it is where a launch says these numbers; `None` if one is unknown, or the sum is beyond 128
    /// bits.
    pub fn value(&self, number: &dyn Fn(LaunchNumber) -> Option<i128>) -> Option<i128> {
        let mut sum = 0i128;
        for product in &self.products {
            let mut value = product.factor;
            for factor in &product.numbers {
                value = value.checked_mul(number(*factor)?)?;
            }
            sum = sum.checked_add(value)?;
        }
        match self.modulus {
            Some(0) => None,
            Some(modulus) => Some(sum.rem_euclid(i128::from(modulus))),
            None => Some(sum),
        }
    }

    fn write(&self, out: &mut String, words: &Words<'_>) {
        for (i, product) in self.products.iter().enumerate() {
            let mut factor = product.factor;
            if i > 0 {
                out.push_str(if factor < 0 { " - " } else { " + " });
                factor = factor.saturating_abs();
            }
            let mut parts = Vec::new();
            if factor != 1 || product.numbers.is_empty() {
                parts.push(factor.to_string());
            }
            parts.extend(product.numbers.iter().map(|n| words.number(*n)));
            out.push_str(&parts.join(" * "));
        }
        if let Some(modulus) = self.modulus {
            // Writing to a string never fails.
            let _ = write!(out, " % {modulus}");
        }
    }
}

impl Comparison {
    /// Whether it holds where a launch says these numbers; `None` as of [`Sum::value`].
    pub fn holds(&self, number: &dyn Fn(LaunchNumber) -> Option<i128>) -> Option<bool> {
        let (left, right) = (self.left.value(number)?, self.right.value(number)?);
        Some(self.relation.holds(left, right))
    }

    /// Its products, of both sides.
    pub fn products(&self) -> impl Iterator<Item = &Product> {
        self.left.products.iter().chain(&self.right.products)
    }

    /// Whether it speaks of what a buffer holds, which only the checked device looks at.
    pub fn is_of_contents(&self) -> bool {
        let numbers = self.products().flat_map(|p| &p.numbers);
        numbers
            .into_iter()
            .any(|n| matches!(n, LaunchNumber::Field(..)))
    }

    /// The numbers that it speaks of, each once, in order.
    pub fn numbers(&self) -> Vec<LaunchNumber> {
        let mut found = Vec::new();
        for number in self.products().flat_map(|p| &p.numbers) {
            if !found.contains(number) {
                found.push(*number);
            }
        }
        found
    }

    fn write(&self, out: &mut String, words: &Words<'_>) {
        self.left.write(out, words);
        out.push(' ');
        out.push_str(self.relation.symbol());
        out.push(' ');
        self.right.write(out, words);
    }

    /// Puts numbers in the place of function constants; `None` where one gets larger than any that is
    /// written.
    fn specialise(&mut self, constant: &dyn Fn(u32) -> i128) -> Option<()> {
        let sides = [&mut self.left, &mut self.right];
        for product in sides.into_iter().flat_map(|s| &mut s.products) {
            let mut factor = product.factor;
            let mut fits = true;
            product.numbers.retain(|number| {
                let LaunchNumber::Constant(place) = number else {
                    return true;
                };
                let scaled = factor.checked_mul(constant(*place));
                let scaled = scaled.filter(|f| f.abs() <= MAX_NUMBER);
                fits &= scaled.is_some();
                factor = scaled.unwrap_or(0);
                false
            });
            if !fits {
                return None;
            }
            product.factor = factor;
        }
        Some(())
    }
}

impl Requirement {
    /// The comparison of it, if it has one.
    pub fn comparison(&self) -> Option<&Comparison> {
        match &self.required {
            Required::Holds(comparison) | Required::Each { comparison, .. } => Some(comparison),
            Required::Ascending { .. } => None,
        }
    }

    /// Puts numbers in the place of function constants; `None` where one gets larger than any that is
    /// written.
    pub(crate) fn specialise(&mut self, constant: &dyn Fn(u32) -> i128) -> Option<()> {
        match &mut self.required {
            Required::Holds(comparison) | Required::Each { comparison, .. } => {
                comparison.specialise(constant)
            }
            Required::Ascending { .. } => Some(()),
        }
    }

    /// As the text form writes it: names have their sigils.
    pub fn text(&self, module: &Module, kernel: &Kernel) -> String {
        self.written(module, kernel, true)
    }

    /// As messages write it, in the author's names.
    ///
    /// ```
    /// use invar_ir::text;
    ///
    /// let module = text::parse("k.inv", "kernel @k(%x: device read f32, %n: u32) requires(%n <= length(%x)) {\n}\n")?;
    /// let kernel = &module.kernels[0];
    /// assert_eq!(kernel.requires[0].in_words(&module, kernel), "n <= length(x)");
    /// # Ok::<(), invar_ir::Diagnostics>(())
    /// ```
    pub fn in_words(&self, module: &Module, kernel: &Kernel) -> String {
        self.written(module, kernel, false)
    }

    fn written(&self, module: &Module, kernel: &Kernel, sigils: bool) -> String {
        let mut words = Words {
            module,
            kernel,
            sigils,
            element: "",
        };
        let mut out = String::new();
        match &self.required {
            Required::Holds(comparison) => comparison.write(&mut out, &words),
            Required::Each {
                name,
                buffer,
                comparison,
            } => {
                words.element = name;
                let (element, buffer) = (words.name('%', name), words.param(*buffer));
                // Writing to a string never fails.
                let _ = write!(out, "each {element} of {buffer}: ");
                comparison.write(&mut out, &words);
            }
            Required::Ascending { buffer } => {
                out = format!("ascending {}", words.param(*buffer));
            }
        }
        out
    }

    /// That a launch breaks it, in a sentence: with the numbers that it has, and `element` if one of a
    /// buffer is meant.
    pub fn broken_by(
        &self,
        module: &Module,
        kernel: &Kernel,
        number: &dyn Fn(LaunchNumber) -> Option<i128>,
        element: Option<(u64, i128)>,
    ) -> String {
        let words = Words {
            module,
            kernel,
            sigils: false,
            element: "",
        };
        let mut is: Vec<String> = Vec::new();
        if let (Required::Each { buffer, .. }, Some((at, value))) = (&self.required, element) {
            is.push(format!("{}[{at}] is {value}", words.param(*buffer)));
        }
        for of in self
            .comparison()
            .map(Comparison::numbers)
            .unwrap_or_default()
        {
            if of != LaunchNumber::Element
                && let Some(value) = number(of)
            {
                is.push(format!("{} is {value}", words.number(of)));
            }
        }
        let is = match is.split_last() {
            None => "that does not hold".to_string(),
            Some((last, [])) => last.clone(),
            Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        };
        let required = self.in_words(module, kernel);
        format!("kernel `{}` requires {required}, but {is}", kernel.name)
    }
}

/// How numbers are called.
struct Words<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
    sigils: bool,
    element: &'a str,
}

impl Words<'_> {
    fn name(&self, sigil: char, name: &str) -> String {
        if self.sigils {
            format!("{sigil}{}", name_text(name))
        } else {
            name.to_string()
        }
    }

    fn param(&self, number: u32) -> String {
        match self.kernel.params.get(number as usize) {
            Some(param) => self.name('%', &param.name),
            None => format!("%{number}"),
        }
    }

    /// `params.width`, or with sigils `%params[0].width`, as what is loaded from; `n[0]` where the element is not a struct.
    fn field(&self, i: u32, location: u32) -> String {
        let mut text = self.param(i);
        let Some(field) = Field::of(self.module, self.kernel, i, location) else {
            return format!("{text}[0]");
        };
        let is_struct = matches!(field.path.first(), Some(FieldStep::Field(..)));
        if self.sigils || !is_struct {
            text += "[0]";
        }
        for step in &field.path {
            match *step {
                FieldStep::Field(id, number) => {
                    text.push('.');
                    let def = self.module.structs.get(id.0 as usize);
                    let name = def.and_then(|def| def.fields.get(number as usize));
                    let name = name.map_or("", |(name, _)| &**name);
                    text += &*if self.sigils {
                        name_text(name)
                    } else {
                        name.into()
                    };
                }
                FieldStep::Component(number) => {
                    text.push('.');
                    text += COMPONENTS[number as usize & 3];
                }
                FieldStep::Element(number) => text += &format!("[{number}]"),
            }
        }
        text
    }

    fn number(&self, number: LaunchNumber) -> String {
        match number {
            LaunchNumber::Argument(i) => self.param(i),
            LaunchNumber::Constant(i) => match self.module.function_constants.get(i as usize) {
                Some(constant) => self.name('@', &constant.name),
                None => format!("@{i}"),
            },
            LaunchNumber::Length(i) => format!("length({})", self.param(i)),
            LaunchNumber::Texels(i, d) => format!("{}({})", extent_name(d), self.param(i)),
            LaunchNumber::Levels(i) => format!("levels({})", self.param(i)),
            LaunchNumber::Field(i, location) => self.field(i, location),
            LaunchNumber::Element => self.name('%', self.element),
            LaunchNumber::Grid(_) | LaunchNumber::Groups(_) | LaunchNumber::Threadgroup(_) => {
                number.to_string()
            }
        }
    }
}

impl LaunchNumber {
    /// What it is in the author's names: `params.width`.
    pub fn in_words(self, module: &Module, kernel: &Kernel) -> String {
        let words = Words {
            module,
            kernel,
            sigils: false,
            element: "",
        };
        words.number(self)
    }
}

impl fmt::Display for LaunchNumber {
    /// What it is, where the names of a kernel are not at hand: `grid.x`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LaunchNumber::Grid(d) => write!(f, "grid.{}", d.name()),
            LaunchNumber::Groups(d) => write!(f, "groups.{}", d.name()),
            LaunchNumber::Threadgroup(d) => write!(f, "threadgroup.{}", d.name()),
            LaunchNumber::Argument(i) => write!(f, "argument {i}"),
            LaunchNumber::Constant(i) => write!(f, "function constant {i}"),
            LaunchNumber::Length(i) => write!(f, "the length of argument {i}"),
            LaunchNumber::Texels(i, d) => write!(f, "the {} of argument {i}", extent_name(*d)),
            LaunchNumber::Levels(i) => write!(f, "the levels of argument {i}"),
            LaunchNumber::Field(i, _) => write!(f, "a field of argument {i}"),
            LaunchNumber::Element => f.write_str("the element"),
        }
    }
}

impl KernelBuilder {
    /// Requires that a buffer parameter has so many elements, as where its type in a front end's language says so.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let table = k.buffer("table", Access::Read, Scalar::F32);
    /// k.requires_length("table", 8);
    /// # let _ = table;
    /// assert!(k.finish()?.to_string().contains("requires(length(%table) == 8)"));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn requires_length(&mut self, parameter: &str, length: u32) {
        self.requires(&format!("length({}) == {length}", name_text(parameter)));
    }
}
