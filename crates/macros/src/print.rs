//! `println!` as a kernel has it: a text with places for values, and the values.
//!
//! Deliberately absent: widths, precision and `{:?}`, which lines of kernels do not have.

use proc_macro2::{Ident, Span};
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::punctuated::Punctuated;
use syn::{Error, Expr, ExprLit, Lit, LitStr, Macro, Result, Token, parse_quote};

use crate::refuse::refuse;

/// What is printed.
pub struct Line {
    /// The text, with `{}` or `{:x}` for each value.
    pub text: LitStr,
    /// What is evaluated, in order.
    pub arguments: Vec<Expr>,
    /// Which of them stands in each place of the text.
    pub picked: Vec<usize>,
}

/// A value, with its name where it has one: `n = x[i]`.
struct Argument {
    name: Option<Ident>,
    value: Expr,
}

fn argument(input: ParseStream) -> Result<Argument> {
    let is_named = input.peek(Ident::peek_any) && input.peek2(Token![=]);
    let name = if is_named && !input.peek2(Token![==]) {
        let name = input.call(Ident::parse_any)?;
        input.parse::<Token![=]>()?;
        Some(name)
    } else {
        None
    };
    let value = input.parse()?;
    Ok(Argument { name, value })
}

impl Line {
    pub fn of(call: &Macro) -> Result<Line> {
        let list =
            |input: ParseStream| Punctuated::<_, Token![,]>::parse_terminated_with(input, argument);
        let mut parts = call.parse_body_with(list)?.into_iter();
        let text = match parts.next() {
            None => LitStr::new("", Span::call_site()),
            Some(Argument {
                name: None,
                value:
                    Expr::Lit(ExprLit {
                        lit: Lit::Str(text),
                        ..
                    }),
            }) => text,
            Some(other) => {
                return refuse(other.value, "the text to print stands here, in quotes");
            }
        };
        let arguments: Vec<Argument> = parts.collect();
        let given = arguments.len();
        let mut places = Places {
            text: &text,
            given,
            arguments,
            next: 0,
            picked: Vec::new(),
        };
        let out = places.read()?;
        let Places {
            arguments, picked, ..
        } = places;
        if let Some(unused) = (0..given).find(|i| !picked.contains(i)) {
            let why = "the text has no place for this value: write `{}` where it is to stand";
            return refuse(&arguments[unused].value, why);
        }
        Ok(Line {
            text: LitStr::new(&out, text.span()),
            arguments: arguments.into_iter().map(|one| one.value).collect(),
            picked,
        })
    }
}

/// The places of a text, from the first to the last.
struct Places<'a> {
    text: &'a LitStr,
    /// How many values stand behind the text.
    given: usize,
    /// Those, and behind them the variables that the text names.
    arguments: Vec<Argument>,
    /// The value that the next place without a name or number takes.
    next: usize,
    picked: Vec<usize>,
}

impl Places<'_> {
    fn wrong<T>(&self, why: &str) -> Result<T> {
        Err(Error::new(self.text.span(), why))
    }

    /// The text with its places as the kernel reads them.
    fn read(&mut self) -> Result<String> {
        let text = self.text.value();
        let (mut rest, mut out) = (&*text, String::new());
        while let Some(at) = rest.find(['{', '}']) {
            let (before, behind) = rest.split_at(at);
            out.push_str(before);
            if behind.starts_with("{{") || behind.starts_with("}}") {
                out.push_str(&behind[..2]);
                rest = &behind[2..];
                continue;
            }
            if behind.starts_with('}') {
                return self.wrong("the text has a `}` that no `{` opens: for a brace write `}}`");
            }
            let Some(end) = behind.find('}') else {
                return self.wrong("the text has a `{` that no `}` closes: for a brace write `{{`");
            };
            out.push_str(self.one(&behind[1..end])?);
            rest = &behind[end + 1..];
        }
        out.push_str(rest);
        Ok(out)
    }

    /// A place, by what stands between its braces.
    fn one(&mut self, inside: &str) -> Result<&'static str> {
        let (which, how) = inside.split_once(':').unwrap_or((inside, ""));
        let mark = match how.trim_end() {
            "" => "{}",
            "x" => "{:x}",
            _ => {
                let why = format!(
                    "`{{{inside}}}`: a kernel prints `{{}}`, or `{{:x}}` for an integer in hexadecimal, without \
                     widths, precision or `?`"
                );
                return self.wrong(&why);
            }
        };
        let which = which.trim();
        let picked = if which.is_empty() {
            self.next += 1;
            self.numbered(self.next - 1)?
        } else if let Ok(number) = which.parse::<usize>() {
            self.numbered(number)?
        } else {
            self.named(which)?
        };
        self.picked.push(picked);
        Ok(mark)
    }

    fn numbered(&self, number: usize) -> Result<usize> {
        if number < self.given {
            return Ok(number);
        }
        let (given, values) = match self.given {
            1 => ("is 1".to_string(), "value"),
            count => (format!("are {count}"), "values"),
        };
        let place = number + 1;
        self.wrong(&format!(
            "the text has a place for value {place}, and there {given} {values} behind it"
        ))
    }

    /// The value of that name, or else the variable around.
    fn named(&mut self, name: &str) -> Result<usize> {
        let has_it = |one: &Argument| one.name.as_ref().is_some_and(|n| n.unraw() == name);
        if let Some(known) = self.arguments.iter().position(has_it) {
            return Ok(known);
        }
        let Ok(mut variable) = syn::parse_str::<Ident>(name) else {
            let why = format!(
                "`{{{name}}}`: the name of a variable stands in braces; what is computed stands behind the text"
            );
            return self.wrong(&why);
        };
        variable.set_span(self.text.span());
        self.arguments.push(Argument {
            name: Some(variable.clone()),
            value: parse_quote!(#variable),
        });
        Ok(self.arguments.len() - 1)
    }
}
