//! What stands in `imageblock!(Pixel, colour: Rgba8Unorm)`: the element, and the formats that its fields are stored in.

use proc_macro2::Ident;
use syn::parse::ParseStream;
use syn::{Result, Token, Type};

/// An imageblock as it is declared.
pub struct Imageblock {
    /// What one element is.
    pub element: Type,
    /// Formats by the names of fields; without a name of an element that is not a struct.
    pub formats: Vec<(Option<Ident>, Ident)>,
}

impl Imageblock {
    /// Reads what stands in the brackets.
    pub fn parse(input: ParseStream) -> Result<Imageblock> {
        let element = input.parse()?;
        let mut formats = Vec::new();
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            if input.is_empty() {
                break;
            }
            let field = match input.peek2(Token![:]) {
                true => {
                    let field = input.parse()?;
                    input.parse::<Token![:]>()?;
                    Some(field)
                }
                false => None,
            };
            formats.push((field, input.parse()?));
        }
        Ok(Imageblock { element, formats })
    }
}
