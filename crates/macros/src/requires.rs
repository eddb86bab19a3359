//! `#[requires(n * n <= length(a), ascending row)]`: what launches of a kernel have to fulfil.
//!
//! The words are those of [requirements](invar_ir::KernelBuilder::requires), and are read here, so that a mistake is
//! an error on the word. A name that is not a parameter is one of Rust: a function constant, or a constant whose value
//! is known when the kernel is made. Whether there is one, and whether it is an integer, rustc says.
//!
//! Deliberately absent: types other than those that parameters name.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{
    Attribute, Error, Ident, ItemFn, Lit, LitInt, Path, Result, Token, bracketed, parenthesized,
    parse_quote,
};

use crate::refuse::refuse;
use crate::source::{self, located};

/// What a parameter is to a requirement.
pub enum Sort {
    Buffer,
    Texture,
    Sampler,
    /// A value that may be an integer.
    Value,
    /// A value that is none, with its type.
    NoInteger(String),
}

/// A parameter by its name.
pub type Named = (String, Sort);

const NUMBERS: &str = "a requirement is of whole numbers: `4`, an integer parameter, a constant, `length(x)`, \
                       `width(t)`, `height(t)`, `slices(t)`, `levels(t)`, `grid.x`, `groups.x` or `threadgroup.x`";

/// The numbers that a launch has along three axes.
const SIZES: [&str; 3] = ["grid", "groups", "threadgroup"];

pub fn is_requirement(attribute: &Attribute) -> bool {
    attribute.path().is_ident("requires")
}

/// `#[requires]` above `#[kernel]`, which reads it below.
pub fn requires(attributes: TokenStream, item: TokenStream) -> Result<TokenStream> {
    const PLACE: &str =
        "`#[requires(...)]` stands below `#[kernel]`, and says what its launches have to fulfil";
    let mut function: ItemFn =
        syn::parse2(item).map_err(|_| Error::new(Span::call_site(), PLACE))?;
    let is_kernel = |attribute: &Attribute| {
        let last = attribute.path().segments.last();
        last.is_some_and(|last| last.ident == "kernel")
    };
    if !function.attrs.iter().any(is_kernel) {
        return Err(Error::new(Span::call_site(), PLACE));
    }
    function.attrs.push(parse_quote!(#[requires(#attributes)]));
    Ok(function.into_token_stream())
}

/// What the attributes below `#[kernel]` require, for `invar::kernel`.
pub fn requirements(attributes: &[Attribute], parameters: &[Named]) -> Result<TokenStream> {
    let mut out = TokenStream::new();
    let mut errors: Option<Error> = None;
    for attribute in attributes.iter().filter(|a| is_requirement(a)) {
        let syn::Meta::List(list) = &attribute.meta else {
            return refuse(
                attribute,
                "what is required stands in parentheses: `#[requires(n <= length(x))]`",
            );
        };
        let words: Vec<TokenTree> = list.tokens.clone().into_iter().collect();
        let is_comma = |word: &TokenTree| matches!(word, TokenTree::Punct(p) if p.as_char() == ',');
        for one in words.split(is_comma).filter(|one| !one.is_empty()) {
            match Requirement::of(one.iter().cloned().collect(), parameters) {
                Ok(one) => one.to_tokens(&mut out),
                Err(error) => match &mut errors {
                    Some(all) => all.combine(error),
                    None => errors = Some(error),
                },
            }
        }
    }
    errors.map_or(Ok(out), Err)
}

/// One requirement.
struct Requirement<'a> {
    words: TokenStream,
    parameters: &'a [Named],
    /// What `each` calls an element.
    element: Option<String>,
    /// It in the author's names.
    text: String,
    /// The names of those that are Rust's.
    given: Vec<(String, Path)>,
}

impl ToTokens for Requirement<'_> {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let (text, place) = (&self.text, source::place(&self.words));
        let given = self.given.iter().map(|(name, path)| {
            let (here, at) = (located(path), source::place(path));
            quote_spanned!(here=>
                (#name, ::invar::kernel::expansion::Requirable::given(::invar::kernel::expansion::at(#at, #path))))
        });
        tokens.extend(quote!(::invar::kernel::expansion::requires(#text, &[#(#given),*], #place);));
    }
}

impl<'a> Requirement<'a> {
    fn of(words: TokenStream, parameters: &'a [Named]) -> Result<Requirement<'a>> {
        let mut one = Requirement {
            words: words.clone(),
            parameters,
            element: None,
            text: String::new(),
            given: Vec::new(),
        };
        let parse = |input: ParseStream<'_>| one.read(input);
        parse.parse2(words)?;
        Ok(one)
    }

    /// Where the word at hand stands; at the end the last one.
    fn here(&self, input: ParseStream<'_>) -> Span {
        let last = self.words.clone().into_iter().last();
        match last {
            Some(last) if input.is_empty() => last.span(),
            _ => input.span(),
        }
    }

    fn sort(&self, name: &Ident) -> Option<&'a Sort> {
        let name = name.to_string();
        let found = self.parameters.iter().find(|(known, _)| *known == name);
        found.map(|(_, sort)| sort)
    }

    fn read(&mut self, input: ParseStream<'_>) -> Result<()> {
        let word = input.fork().call(Ident::parse_any).ok();
        let word = word.filter(|_| input.peek2(Ident));
        if word.as_ref().is_some_and(|word| word == "ascending") {
            input.call(Ident::parse_any)?;
            self.text.push_str("ascending ");
            self.buffer(input)?;
            return match input.is_empty() {
                true => Ok(()),
                false => Err(input.error("expected `,` or the end")),
            };
        }
        if word.as_ref().is_some_and(|word| word == "each") {
            input.call(Ident::parse_any)?;
            let name: Ident = input.parse()?;
            let of: Option<Ident> = input.parse()?;
            if of.is_none_or(|of| of != "of") {
                return refuse(
                    &name,
                    "`each` names an element of a buffer: `each i of index: i < length(x)`",
                );
            }
            self.text.push_str(&format!("each {name} of "));
            self.element = Some(name.to_string());
            self.buffer(input)?;
            let colon: Option<Token![:]> = input.parse()?;
            if colon.is_none() {
                return Err(Error::new(
                    self.here(input),
                    "expected `:` and what holds of each",
                ));
            }
            self.text.push_str(": ");
        }
        self.sum(input)?;
        self.relation(input)?;
        self.sum(input)?;
        self.end(input)
    }

    /// What stands behind a comparison.
    fn end(&self, input: ParseStream<'_>) -> Result<()> {
        if input.is_empty() {
            return Ok(());
        }
        let why = if input.peek(Token![&&]) {
            "requirements stand beside each other: write `,` for `&&`"
        } else if input.peek(Token![||]) {
            "each requirement holds: there is no `||`"
        } else {
            "expected `,` or the end: a requirement is one comparison of sums of products"
        };
        Err(self.unexpected(input, why))
    }

    /// An error on the word at hand: what is not part of a sum has its reason.
    fn unexpected(&self, input: ParseStream<'_>, otherwise: &str) -> Error {
        let why = if input.peek(Token![as]) {
            "whole numbers of all types compare: leave `as` out"
        } else if input.peek(Token![/]) {
            "a requirement does not divide: of `n / 4 == m` it is `n == 4 * m`, and what divides is `n % 4 == 0`"
        } else if input.peek(syn::token::Paren) {
            "a requirement has no parentheses: write the products out, `2 * n + 2`"
        } else if input.peek(Lit) && !input.peek(LitInt) {
            NUMBERS
        } else {
            otherwise
        };
        Error::new(self.here(input), why)
    }

    fn relation(&mut self, input: ParseStream<'_>) -> Result<()> {
        macro_rules! relations {
            ($($token:tt)*) => {
                $(if input.peek(Token![$token]) {
                    input.parse::<Token![$token]>()?;
                    self.text.push_str(concat!(" ", stringify!($token), " "));
                    return Ok(());
                })*
            };
        }
        relations!(== != <= >= < >);
        Err(self.unexpected(
            input,
            "a requirement compares: `==`, `!=`, `<`, `<=`, `>` or `>=`",
        ))
    }

    fn sum(&mut self, input: ParseStream<'_>) -> Result<()> {
        self.product(input)?;
        loop {
            if input.peek(Token![+]) {
                input.parse::<Token![+]>()?;
                self.text.push_str(" + ");
            } else if input.peek(Token![-]) {
                input.parse::<Token![-]>()?;
                self.text.push_str(" - ");
            } else {
                break;
            }
            self.product(input)?;
        }
        if input.peek(Token![%]) {
            input.parse::<Token![%]>()?;
            self.text.push_str(" % ");
            self.modulus(input)?;
        }
        Ok(())
    }

    fn modulus(&mut self, input: ParseStream<'_>) -> Result<()> {
        const WHOLE: &str = "a remainder is of a whole number, or of a constant that is one";
        if input.peek(LitInt) {
            return self.integer(input);
        }
        let name = input.fork().call(Path::parse_mod_style);
        let name = name.map_err(|_| self.unexpected(input, WHOLE))?;
        let is_parameter = name.get_ident().and_then(|name| self.sort(name)).is_some();
        if is_parameter || input.peek2(syn::token::Paren) {
            return refuse(&name, WHOLE);
        }
        input.call(Path::parse_mod_style)?;
        self.rust_name(name)
    }

    fn product(&mut self, input: ParseStream<'_>) -> Result<()> {
        loop {
            while input.peek(Token![-]) {
                input.parse::<Token![-]>()?;
                self.text.push_str("- ");
            }
            self.factor(input)?;
            if !input.peek(Token![*]) {
                return Ok(());
            }
            input.parse::<Token![*]>()?;
            self.text.push_str(" * ");
        }
    }

    fn integer(&mut self, input: ParseStream<'_>) -> Result<()> {
        let number: LitInt = input.parse()?;
        self.text.push_str(number.base10_digits());
        Ok(())
    }

    fn factor(&mut self, input: ParseStream<'_>) -> Result<()> {
        if input.peek(LitInt) {
            return self.integer(input);
        }
        let Ok(path) = input.fork().call(Path::parse_mod_style) else {
            return Err(self.unexpected(input, NUMBERS));
        };
        let Some(name) = path.get_ident() else {
            input.call(Path::parse_mod_style)?;
            return self.rust_name(path);
        };
        if input.peek2(syn::token::Paren) {
            return self.function(input);
        }
        if SIZES.iter().any(|size| name == size)
            && (input.peek2(Token![.]) || self.sort(name).is_none())
        {
            return self.size(input);
        }
        if self.element.as_deref() == Some(&*name.to_string()) {
            input.call(Ident::parse_any)?;
            self.text.push_str(&name.to_string());
            return Ok(());
        }
        match self.sort(name) {
            Some(sort) => self.parameter(input, sort),
            None => {
                input.call(Path::parse_mod_style)?;
                self.rust_name(path)
            }
        }
    }

    /// A name of Rust, by a word that is no other's.
    fn rust_name(&mut self, path: Path) -> Result<()> {
        let text = |path: &Path| path.to_token_stream().to_string();
        let words = path.segments.iter();
        let words: Vec<String> = words.map(|s| s.ident.unraw().to_string()).collect();
        let mut name = words.join("_");
        let is_another = |name: &String, given: &[(String, Path)]| {
            let is_parameter = self.parameters.iter().any(|(known, _)| known == name);
            let mut others = given.iter().filter(|(known, _)| known == name);
            let is_given = others.any(|(_, of)| text(of) != text(&path));
            is_parameter || is_given || self.element.as_ref() == Some(name)
        };
        while is_another(&name, &self.given) {
            name.push('_');
        }
        self.text.push_str(&name);
        if self.given.iter().all(|(known, _)| *known != name) {
            self.given.push((name, path));
        }
        Ok(())
    }

    /// `length(x)`, `width(t)` and their like.
    fn function(&mut self, input: ParseStream<'_>) -> Result<()> {
        let name = input.call(Ident::parse_any)?;
        let text = name.to_string();
        let inside;
        parenthesized!(inside in input);
        self.text.push_str(&format!("{text}("));
        match &*text {
            "length" => self.buffer(&inside)?,
            "width" | "height" | "slices" | "levels" => self.texture(&inside)?,
            _ => {
                let why = format!(
                    "a requirement has no function `{text}`: there are `length(x)` of buffers, and `width(t)`, \
                     `height(t)`, `slices(t)` and `levels(t)` of textures"
                );
                return refuse(&name, &why);
            }
        }
        if !inside.is_empty() {
            let why = format!("`{text}` is of one parameter, by its name");
            return Err(Error::new(inside.span(), why));
        }
        self.text.push(')');
        Ok(())
    }

    /// `grid.x`.
    fn size(&mut self, input: ParseStream<'_>) -> Result<()> {
        let name = input.call(Ident::parse_any)?;
        let axis = match input.parse::<Option<Token![.]>>()? {
            Some(_) => input.call(Ident::parse_any).ok(),
            None => None,
        };
        let axis = axis.map(|axis| axis.to_string());
        match axis.as_deref() {
            Some("x" | "y" | "z") => {
                self.text
                    .push_str(&format!("{name}.{}", axis.unwrap_or_default()));
                Ok(())
            }
            _ => refuse(
                &name,
                &format!("`{name}` has three axes: `{name}.x`, `{name}.y` and `{name}.z`"),
            ),
        }
    }

    fn parameter(&mut self, input: ParseStream<'_>, sort: &Sort) -> Result<()> {
        let name = input.call(Ident::parse_any)?;
        self.text.push_str(&name.to_string());
        let why = match sort {
            Sort::Value if input.peek(Token![.]) || input.peek(syn::token::Bracket) => {
                format!(
                    "`{name}` is a value: only the first element of a buffer has parts here, `params.width`"
                )
            }
            Sort::Value => return Ok(()),
            Sort::NoInteger(ty) => format!("`{name}` is `{ty}`, expected an integer"),
            Sort::Buffer => return self.first_element(input, &name),
            Sort::Texture => {
                format!(
                    "`{name}` is a texture, expected a number: `width({name})` is how many texels are in a row"
                )
            }
            Sort::Sampler => format!("`{name}` is a sampler, expected a number"),
        };
        refuse(&name, &why)
    }

    /// `params.width` and `n[0]`: a number that the first element of a buffer holds.
    fn first_element(&mut self, input: ParseStream<'_>, name: &Ident) -> Result<()> {
        if !input.peek(Token![.]) && !input.peek(syn::token::Bracket) {
            let why = format!(
                "`{name}` is memory, expected a number: `length({name})` is how many elements it has"
            );
            return refuse(name, &why);
        }
        if input.peek(syn::token::Bracket) {
            let inside;
            bracketed!(inside in input);
            let number: Option<LitInt> = inside.parse()?;
            if !inside.is_empty() || number.is_none_or(|n| n.base10_digits() != "0") {
                let why = format!(
                    "a requirement of elements is of each, `each e of {name}: e < 4`, or of the first, `{name}[0]`"
                );
                return refuse(name, &why);
            }
            self.text.push_str("[0]");
        }
        while input.peek(Token![.]) {
            input.parse::<Token![.]>()?;
            let field = input.call(Ident::parse_any)?;
            if input.peek(syn::token::Paren) {
                let why = format!(
                    "a requirement calls no methods: `length({name})` is how many elements it has"
                );
                return refuse(&field, &why);
            }
            self.text.push_str(&format!(".{field}"));
        }
        Ok(())
    }

    /// A parameter of one sort, by its name.
    fn named(&mut self, input: ParseStream<'_>, what: &str, fits: fn(&Sort) -> bool) -> Result<()> {
        let name = input.call(Ident::parse_any).map_err(|_| {
            let expected = format!("expected the name of {what}");
            Error::new(self.here(input), expected)
        })?;
        let is = match self.sort(&name) {
            Some(sort) if fits(sort) => {
                self.text.push_str(&name.to_string());
                return Ok(());
            }
            None => return refuse(&name, &format!("there is no parameter `{name}`")),
            Some(Sort::Buffer) => "a buffer",
            Some(Sort::Texture) => "a texture",
            Some(Sort::Sampler) => "a sampler",
            Some(Sort::Value | Sort::NoInteger(_)) => "a value",
        };
        refuse(&name, &format!("`{name}` is {is}, expected {what}"))
    }

    fn buffer(&mut self, input: ParseStream<'_>) -> Result<()> {
        self.named(input, "a buffer", |sort| matches!(sort, Sort::Buffer))
    }

    fn texture(&mut self, input: ParseStream<'_>) -> Result<()> {
        self.named(input, "a texture", |sort| matches!(sort, Sort::Texture))
    }
}
