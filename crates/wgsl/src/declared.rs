//! The types that a source gives the elements of what the host fills, where a kernel accesses parts of them: which
//! data stands for them, in commands and in other languages alike. Absent: reading data.

use invar_ir::{ElementType, Scalar, StructDef};

/// An element type, and the structs in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// What one element is.
    pub element: ElementType,
    /// The structs that it names.
    pub structs: Vec<StructDef>,
}

/// What numbers of elements and plain lists count of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// One of them.
    pub unit: Declared,
    /// The elements of the kernel's parameter in one.
    pub parts: u64,
}

impl Declared {
    /// The scalar that all of it is made of, if it has no gaps.
    #[must_use]
    pub fn only_scalar(&self) -> Option<Scalar> {
        let places = self.element.locations(&self.structs);
        let (_, first) = *places.first()?;
        let is_whole = slots(&self.element, &self.structs).len() == places.len()
            && places.iter().all(|(_, s)| *s == first);
        is_whole.then_some(first)
    }

    /// What data counts of a parameter with these elements: numbers where one scalar is all that there is, else whole
    /// elements. `None` where it counts the parameter's own elements.
    #[must_use]
    pub fn counted(&self, own: &ElementType, structs: &[StructDef]) -> Option<Counted> {
        let own_bytes = size(own, structs);
        match self.only_scalar() {
            Some(scalar) if *own == scalar.into() => None,
            Some(scalar) if scalar.size_bytes().is_multiple_of(own_bytes) => Some(Counted {
                unit: Declared {
                    element: scalar.into(),
                    structs: Vec::new(),
                },
                parts: scalar.size_bytes() / own_bytes,
            }),
            _mixed => Some(Counted {
                unit: self.clone(),
                parts: size(&self.element, &self.structs) / own_bytes,
            }),
        }
    }
}

fn size(element: &ElementType, structs: &[StructDef]) -> u64 {
    let extent = element.extent(structs);
    extent.map_or(1, |extent| extent.size_bytes.max(1))
}

/// Whether a field is a gap, by its name.
#[must_use]
pub fn is_padding(name: &str) -> bool {
    name.starts_with("pad.")
}

/// Whether it is a vector of 3 in the place of 4, which nobody writes as a struct.
#[must_use]
pub fn is_of_three(element: &ElementType, structs: &[StructDef]) -> bool {
    match element {
        ElementType::Struct(id) => {
            let def = structs.get(id.0 as usize);
            def.is_some_and(|def| def.name.starts_with("vec3."))
        }
        ElementType::Value(_) | ElementType::Array(..) => false,
    }
}

/// How many scalars an element has, gaps counted.
#[must_use]
pub fn scalars(element: &ElementType, structs: &[StructDef]) -> usize {
    let extent = element.extent(structs);
    extent.map_or(0, |e| {
        usize::try_from(e.location_count).unwrap_or(usize::MAX)
    })
}

/// The numbers of an element's scalars that are in no gap.
#[must_use]
pub fn slots(element: &ElementType, structs: &[StructDef]) -> Vec<usize> {
    let mut out = Vec::new();
    put_slots(element, structs, &mut 0, &mut out);
    out
}

fn put_slots(element: &ElementType, structs: &[StructDef], at: &mut usize, out: &mut Vec<usize>) {
    match element {
        ElementType::Value(_) => {
            let count = scalars(element, structs);
            out.extend(*at..*at + count);
            *at += count;
        }
        ElementType::Array(inner, count) => {
            for _ in 0..*count {
                put_slots(inner, structs, at, out);
            }
        }
        ElementType::Struct(id) => {
            let is_of_three = is_of_three(element, structs);
            let def = structs.get(id.0 as usize);
            for (name, inner) in def.map_or(&[][..], |def| &def.fields[..]) {
                match is_padding(name) || is_of_three && &**name == "pad" {
                    true => *at += scalars(inner, structs),
                    false => put_slots(inner, structs, at, out),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use invar_ir::{Span, StructId};

    use super::*;

    #[test]
    fn what_counts_is_numbers_of_one_scalar_or_whole_elements() {
        let four = Declared {
            element: ElementType::Array(ElementType::from(Scalar::U32).into(), 4),
            structs: Vec::new(),
        };
        assert_eq!(four.counted(&Scalar::U32.into(), &[]), None);
        let counted = four.counted(&Scalar::U16.into(), &[]).expect("halves");
        assert_eq!(counted.unit.element, Scalar::U32.into());
        assert_eq!(counted.parts, 2);
        let bytes = Declared {
            element: ElementType::Array(ElementType::from(Scalar::U8).into(), 4),
            structs: Vec::new(),
        };
        let counted = bytes.counted(&Scalar::U32.into(), &[]).expect("a word");
        assert_eq!((counted.unit, counted.parts), (bytes, 1));
        let pair = Declared {
            element: ElementType::Struct(StructId(0)),
            structs: vec![StructDef {
                name: "Pair".into(),
                fields: vec![
                    ("key".into(), Scalar::U16.into()),
                    ("value".into(), Scalar::U8.into()),
                    ("pad.2".into(), Scalar::U8.into()),
                ],
                span: Span::NONE,
            }],
        };
        assert_eq!(slots(&pair.element, &pair.structs), [0, 1]);
        let counted = pair.counted(&Scalar::U8.into(), &[]).expect("bytes");
        assert_eq!((counted.unit, counted.parts), (pair, 4));
    }
}
