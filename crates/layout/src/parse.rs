//! Reading `(4,(2,2)):(1,(4,8))` and its relatives.
//!
//! Spaces are allowed anywhere between symbols, and a comma before a closing parenthesis. The
//! error gives the byte position. Depth is bounded, so hostile text cannot exhaust the stack.

use crate::error::{Error, Result};
use crate::int_tuple::{Coord, IntTuple};
use crate::layout::Layout;
use crate::nested::{MAX_DEPTH, Nested};
use crate::swizzle::{Swizzle, SwizzledLayout};
use crate::tile::Tiler;
use std::str::FromStr;

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn all<T>(text: &'a str, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let mut parser = Parser { text, at: 0 };
        let value = read(&mut parser)?;
        match parser.peek() {
            None => Ok(value),
            Some(_) => Err(parser.expected("the end")),
        }
    }

    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed.chars().next()
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn need(&mut self, wanted: char, name: &'static str) -> Result<()> {
        if self.eat(wanted) {
            Ok(())
        } else {
            Err(self.expected(name))
        }
    }

    fn expected(&mut self, expected: &'static str) -> Error {
        let found = match self.peek() {
            None => "the end".to_string(),
            Some(found) => format!("`{found}`"),
        };
        Error::Parse {
            at: self.at,
            expected,
            found,
        }
    }

    fn int(&mut self) -> Result<i64> {
        self.peek();
        let rest = &self.text[self.at..];
        let sign = usize::from(rest.starts_with('-'));
        let digits = rest[sign..].bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return Err(self.expected("an integer or `(`"));
        }
        let end = sign + digits;
        let value = rest[..end]
            .parse()
            .map_err(|_| Error::Overflow { what: "an integer" })?;
        self.at += end;
        Ok(value)
    }

    /// A tree whose leaves `leaf` reads.
    fn tree<T: Copy>(
        &mut self,
        depth: usize,
        out: &mut Nested<T>,
        leaf: fn(&mut Self) -> Result<T>,
    ) -> Result<()> {
        if !self.eat('(') {
            let value = leaf(self)?;
            return out.push_leaf(value);
        }
        if depth == MAX_DEPTH {
            return Err(Error::Limit {
                what: "levels of nesting",
                limit: MAX_DEPTH,
            });
        }
        let open = out.open()?;
        while !self.eat(')') {
            self.tree(depth + 1, out, leaf)?;
            out.count(&open);
            if !self.eat(',') {
                self.need(')', "`,` or `)`")?;
                break;
            }
        }
        Ok(())
    }

    fn int_tuple(&mut self) -> Result<IntTuple> {
        let mut out = Nested::new();
        self.tree(0, &mut out, Self::int)?;
        Ok(IntTuple(out))
    }

    fn coord(&mut self) -> Result<Coord> {
        let mut out = Nested::new();
        self.tree(0, &mut out, |p| {
            if p.eat('_') {
                Ok(None)
            } else {
                p.int().map(Some)
            }
        })?;
        Ok(Coord(out))
    }

    fn layout(&mut self) -> Result<Layout> {
        let shape = self.int_tuple()?;
        self.need(':', "`:` and the strides")?;
        let stride = self.int_tuple()?;
        Layout::new(&shape, &stride)
    }

    fn tiler(&mut self, depth: usize) -> Result<Tiler> {
        if self.eat('_') {
            return Ok(Tiler::keep());
        }
        if self.eat('<') {
            if depth == MAX_DEPTH {
                return Err(Error::Limit {
                    what: "levels of nesting",
                    limit: MAX_DEPTH,
                });
            }
            let mut modes = Vec::new();
            while !self.eat('>') {
                modes.push(self.tiler(depth + 1)?);
                if !self.eat(',') {
                    self.need('>', "`,` or `>`")?;
                    break;
                }
            }
            return Tiler::tuple(modes);
        }
        let shape = self.int_tuple()?;
        if self.eat(':') {
            let stride = self.int_tuple()?;
            return Ok(Layout::new(&shape, &stride)?.into());
        }
        Tiler::from_shape(&shape)
    }

    fn swizzle(&mut self) -> Result<Swizzle> {
        self.need('S', "`Sw<`")?;
        self.need('w', "`Sw<`")?;
        self.need('<', "`Sw<`")?;
        let bits = self.int()?;
        self.need(',', "`,`")?;
        let base = self.int()?;
        self.need(',', "`,`")?;
        let shift = self.int()?;
        self.need('>', "`>`")?;
        Swizzle::new(bits, base, shift)
    }

    fn swizzled(&mut self) -> Result<SwizzledLayout> {
        if self.peek() != Some('S') {
            return Ok(SwizzledLayout::new(Swizzle::none(), self.layout()?));
        }
        let swizzle = self.swizzle()?;
        if !self.eat('∘') {
            self.need('o', "`o` and a layout")?;
        }
        Ok(SwizzledLayout::new(swizzle, self.layout()?))
    }
}

impl FromStr for IntTuple {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Parser::all(text, Parser::int_tuple)
    }
}

impl FromStr for Coord {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Parser::all(text, Parser::coord)
    }
}

impl FromStr for Layout {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Parser::all(text, Parser::layout)
    }
}

impl FromStr for Tiler {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Parser::all(text, |parser| parser.tiler(0))
    }
}

impl FromStr for Swizzle {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Parser::all(text, Parser::swizzle)
    }
}

/// A layout, or `Sw<bits,base,shift> o layout`.
impl FromStr for SwizzledLayout {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Parser::all(text, Parser::swizzled)
    }
}
