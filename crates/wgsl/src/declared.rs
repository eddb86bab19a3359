//! The types that a source gives the elements of what the host fills, where a kernel accesses parts of them: which
//! data stands for them, in commands and in other languages alike. Absent: reading data.

use invar_ir::{Const, Diagnostic, ElementType, Module, ParamKind, Scalar, StructDef};

use crate::entry::Entry;

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
    /// The elements of the kernel's parameter in one, or in `at_a_time` of them.
    pub parts: u64,
    /// How many of them the kernel accesses at least, where its own elements are longer.
    pub at_a_time: u64,
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
        let counted = |unit: Declared| {
            let bytes = size(&unit.element, &unit.structs);
            Some(Counted {
                unit,
                parts: (bytes / own_bytes).max(1),
                at_a_time: (own_bytes / bytes).max(1),
            })
        };
        let whole = size(&self.element, &self.structs);
        match self.only_scalar() {
            Some(scalar) if *own == scalar.into() => None,
            // One number may be less than the kernel's elements, where the source's are not.
            Some(scalar)
                if scalar.size_bytes().is_multiple_of(own_bytes)
                    || scalar.size_bytes() == whole =>
            {
                counted(Declared {
                    element: scalar.into(),
                    structs: Vec::new(),
                })
            }
            _mixed => counted(self.clone()),
        }
    }
}

impl Declared {
    /// A text about an object, by its name and the bytes of one of the kernel's elements: these are called what the
    /// source calls them, `src0[12].qs[3]`, and counted as it does.
    #[must_use]
    pub fn named(&self, text: &str, object: &str, own_bytes: u64) -> String {
        let (quoted, whole) = (format!("`{object}["), size(&self.element, &self.structs));
        let way = |number: u64| {
            let byte = number.saturating_mul(own_bytes);
            let mut way = format!("{object}[{}]", byte / whole);
            put_way(&self.element, &self.structs, byte % whole, &mut way);
            way
        };
        let mut parts = text.split(&*quoted);
        let mut out = parts.next().unwrap_or_default().to_string();
        for part in parts {
            let number = part.split_once("]`");
            match number.and_then(|(n, rest)| Some((n.parse().ok()?, rest))) {
                Some((number, rest)) => {
                    let rest = self.values(
                        rest,
                        u64::saturating_mul(number, own_bytes) % whole,
                        own_bytes,
                    );
                    out += &format!("`{}`{rest}", way(number));
                }
                None => out += &format!("{quoted}{part}"),
            }
        }
        // What is out of bounds.
        let beyond = format!(" of `{object}`, which has ");
        let found = out.split_once(&beyond).and_then(|(before, behind)| {
            let (head, number) = before.rsplit_once(" element ")?;
            let end = behind.find(|c: char| !c.is_ascii_digit());
            let (length, rest) = behind.split_at(end.unwrap_or(behind.len()));
            let has = length.parse::<u64>().ok()?.saturating_mul(own_bytes) / whole;
            let elements = if has == 1 { "element" } else { "elements" };
            let way = way(number.parse().ok()?);
            Some(format!(
                "{head} `{way}`, and `{object}` has {has} {elements}{rest}"
            ))
        });
        found.unwrap_or(out)
    }

    /// What two schedules left at a byte of an element, ` is 5 with seed 0 and 7 with seed 1`, as numbers of the type that
    /// the source has there: the kernel may access another of as many bits.
    fn values(&self, text: &str, byte: u64, own_bytes: u64) -> String {
        let places = self.element.locations(&self.structs);
        let is_there =
            |(at, scalar): &&(u64, Scalar)| *at == byte && scalar.size_bytes() == own_bytes;
        let told = places.iter().find(is_there).and_then(|(_, scalar)| {
            let (first, rest) = text.strip_prefix(" is ")?.split_once(" with seed ")?;
            let (seed, rest) = rest.split_once(" and ")?;
            let (now, rest) = rest.split_once(" with seed ")?;
            // What the kernel has as a float is told as one.
            let value = |text: &str| {
                let bits = text.parse().ok()?;
                Some(
                    Const {
                        scalar: *scalar,
                        bits,
                    }
                    .to_string(),
                )
            };
            let (first, now) = (value(first)?, value(now)?);
            Some(format!(
                " is {first} with seed {seed} and {now} with seed {rest}"
            ))
        });
        told.unwrap_or_else(|| text.to_string())
    }
}

/// A parameter, or a variable in threadgroup memory, whose elements a source has in another way than the kernel.
#[derive(Clone, Debug)]
pub struct Written {
    /// The kernel.
    pub kernel: String,
    object: String,
    declared: Declared,
    own_bytes: u64,
}

impl Written {
    /// Lets a diagnostic call elements what the source calls them.
    pub fn tell(&self, diagnostic: &mut Diagnostic) {
        let named = |text: &str| self.declared.named(text, &self.object, self.own_bytes);
        diagnostic.message = named(&diagnostic.message);
        for label in &mut diagnostic.labels {
            label.text = named(&label.text);
        }
    }
}

/// The parameters and variables of kernels whose elements their source has in another way.
#[must_use]
pub fn written(module: &Module, entries: &[Entry]) -> Vec<Written> {
    let mut all = Vec::new();
    for entry in entries {
        let Some(kernel) = module.kernel(&entry.name) else {
            continue;
        };
        let mut add = |object: &str, declared: &Declared, own: &ElementType| {
            // An element by its fields has their names, and numbers have none.
            let is_plain = declared.counted(own, &module.structs).is_none()
                && !matches!(declared.element, ElementType::Struct(_));
            if !is_plain && !matches!(own, ElementType::Struct(_)) {
                all.push(Written {
                    kernel: entry.name.clone(),
                    object: object.to_string(),
                    declared: declared.clone(),
                    own_bytes: size(own, &module.structs),
                });
            }
        };
        for param in &kernel.params {
            let mut resources = entry.resources.iter();
            let resource = resources.find(|r| r.params[..] == [&*param.name]);
            if let (
                Some(declared),
                ParamKind::Buffer { element: own, .. }
                | ParamKind::Constant { element: own }
                | ParamKind::Threadgroup { element: own },
            ) = (resource.and_then(|r| r.declared.as_ref()), &param.kind)
            {
                add(&param.name, declared, own);
            }
        }
        for alloc in &kernel.allocs {
            let mut variables = entry.variables.iter();
            if let Some((name, declared)) = variables.find(|(name, _)| **name == *alloc.name) {
                add(name, declared, &alloc.element);
            }
        }
    }
    all
}

/// The way from an element to what lies at a byte of it.
fn put_way(element: &ElementType, structs: &[StructDef], byte: u64, out: &mut String) {
    match element {
        ElementType::Value(ty) if ty.component_count() > 1 => {
            let one = size(element, structs) / u64::from(ty.component_count());
            let name = ["x", "y", "z", "w"].get((byte / one.max(1)) as usize);
            *out += &name.map_or_else(String::new, |name| format!(".{name}"));
        }
        ElementType::Value(_) => {}
        ElementType::Array(inner, _) => {
            let one = size(inner, structs);
            *out += &format!("[{}]", byte / one);
            put_way(inner, structs, byte % one, out);
        }
        ElementType::Struct(id) => {
            let (mut at, is_of_three) = (0_u64, is_of_three(element, structs));
            let def = structs.get(id.0 as usize);
            for (name, inner) in def.map_or(&[][..], |def| &def.fields[..]) {
                let Some(extent) = inner.extent(structs) else {
                    return;
                };
                at = at.next_multiple_of(extent.align_bytes);
                if (at..at + extent.size_bytes).contains(&byte) {
                    // What no author wrote has no name.
                    match is_padding(name) || is_of_three {
                        true if is_of_three && is_padding(name) => *out += ".w",
                        true if !is_of_three => return,
                        _ if is_of_three || name.starts_with("base.") => {}
                        _named => *out += &format!(".{name}"),
                    }
                    return put_way(inner, structs, byte - at, out);
                }
                at += extent.size_bytes;
            }
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
            let def = structs.get(id.0 as usize);
            for (name, inner) in def.map_or(&[][..], |def| &def.fields[..]) {
                match is_padding(name) {
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
    fn what_schedules_leave_is_told_in_the_types_of_the_source() {
        let pair = Declared {
            element: ElementType::Struct(StructId(0)),
            structs: vec![StructDef {
                name: "Pair".into(),
                fields: vec![
                    ("key".into(), Scalar::F32.into()),
                    ("value".into(), Scalar::I32.into()),
                ],
                span: Span::NONE,
            }],
        };
        let told = |text| pair.named(text, "d", 4);
        assert_eq!(
            told("`d[4]` is 1065353216 with seed 0 and 1073741824 with seed 3"),
            "`d[2].key` is 1.0 with seed 0 and 2.0 with seed 3"
        );
        assert_eq!(
            told("`d[5]` is 4294967295 with seed 0 and 7 with seed 1"),
            "`d[2].value` is -1 with seed 0 and 7 with seed 1"
        );
        // As the kernel has it.
        let same = "`d[2].key` is 1.5 with seed 0 and 2.0 with seed 1";
        assert_eq!(told("`d[4]` is 1.5 with seed 0 and 2.0 with seed 1"), same);
        assert_eq!(told("`d[4]` is read"), "`d[2].key` is read");
    }

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
        let half = Declared {
            element: Scalar::F16.into(),
            structs: Vec::new(),
        };
        let counted = half.counted(&Scalar::U32.into(), &[]).expect("a word");
        assert_eq!(counted.unit, half);
        assert_eq!((counted.parts, counted.at_a_time), (1, 2));
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
        assert_eq!((&counted.unit, counted.parts), (&pair, 4));
        let texts = [
            ("`s[6]` is read", "`s[1].value` is read"),
            ("`s[7]`, `s[0]`", "`s[1]`, `s[0].key`"),
            ("`so[7]`, `s[i]`", "`so[7]`, `s[i]`"),
            (
                "it reads element 9 of `s`, which has 4, twice",
                "it reads `s[2].key`, and `s` has 1 element, twice",
            ),
            (
                "it reads element 9 of `t`, which has 4",
                "it reads element 9 of `t`, which has 4",
            ),
        ];
        for (text, expected) in texts {
            assert_eq!(pair.named(text, "s", 1), expected);
        }
    }
}
