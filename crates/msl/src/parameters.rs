//! What the language asks of a kernel's parameters and result: compilers of Metal refuse the others.

use invar_ir::{Diagnostic, Rule};
use invar_llvm::foreign::{self, DebugType, Param};

use crate::declared::vector;
use crate::objects::is_handle;
use crate::positions::{POSITIONS, position};
use crate::translator::{Done, Translator};

/// What stands for an object that the host gives, and its greatest number.
const OBJECTS: [(&str, i64); 4] = [
    ("buffer", 30),
    ("texture", 127),
    ("sampler", 15),
    ("threadgroup", 30),
];

/// What the rewriter says of parameters.
const OWN: [&str; 3] = ["constant", "function_constant", "reference"];

impl Translator<'_> {
    /// Refuses what the language does not have.
    pub fn check_parameters(&self) -> Done<()> {
        if self.f.result != foreign::Type::Void {
            let help = "write `kernel void`, and store what it computes to a buffer";
            return Err(self.against("a kernel has no result".to_string(), help.to_string()));
        }
        let mut numbers: Vec<(&str, i64, &str)> = Vec::new();
        for param in &self.f.params {
            let is_absent = param
                .annotations
                .iter()
                .any(|(name, given)| name == "msl.function_constant" && *given != Some(1));
            self.check_attributes(param)?;
            if is_absent {
                continue;
            }
            for (kind, most) in OBJECTS {
                let Some(number) = given(param, kind) else {
                    continue;
                };
                if !(0..=most).contains(&number) {
                    let message = format!(
                        "`{}` has [[{kind}({number})]]: numbers are 0 to {most}",
                        param.name
                    );
                    return Err(self.against(message, "give it another number".to_string()));
                }
                let mut before = numbers.iter();
                if let Some((.., other)) = before.find(|(k, n, _)| *k == kind && *n == number) {
                    let message = format!(
                        "`{other}` and `{}` both have [[{kind}({number})]]",
                        param.name
                    );
                    return Err(self.against(message, "give each a number of its own".to_string()));
                }
                numbers.push((kind, number, &param.name));
            }
        }
        Ok(())
    }

    fn check_attributes(&self, param: &Param) -> Done<()> {
        let name = &param.name;
        let all = param.annotations.iter();
        let attributes = all.filter_map(|(a, _)| a.strip_prefix("msl."));
        let mut attributes = attributes.filter(|a| !OWN.contains(a) && !a.starts_with("if "));
        let is_known =
            |a: &&str| position(a).is_some() || OBJECTS.iter().any(|(kind, _)| kind == a);
        if attributes.clone().any(|a| a == "stage_in") {
            return Err(self.refuse("the attribute [[stage_in]]"));
        }
        if let Some(unknown) = attributes.clone().find(|a| !is_known(a)) {
            let places = POSITIONS.map(|(place, ..)| place);
            let known = OBJECTS.iter().map(|(kind, _)| *kind).chain(places);
            let nearest = known
                .map(|known| (distance(known, unknown), known))
                .min()
                .filter(|(distance, known)| *distance * 3 <= known.len());
            let help = match nearest {
                Some((_, known)) => format!("write [[{known}]]"),
                None => format!(
                    "parameters of kernels have [[buffer(n)]] and its like, or one of {}",
                    places.join(", ")
                ),
            };
            let message = format!(
                "`{name}` has the attribute [[{unknown}]], which parameters of kernels do not have"
            );
            return Err(self.against(message, help));
        }
        let attribute = attributes.next();
        // Of other structs is said what they are.
        let is_value = match &param.debug {
            Some(DebugType::Struct(class, ..)) => {
                vector(class).is_some() && param.by_value.is_some()
            }
            _other => param.ty != foreign::Type::Pointer,
        };
        if is_value && !is_handle(param) && attribute.is_none_or(|a| position(a).is_none()) {
            let help = format!(
                "write `constant T &{name}` for what the host gives, or an attribute such as [[thread_position_in_grid]]"
            );
            let message = match attribute {
                Some(attribute) => {
                    format!("`{name}` is a value, and [[{attribute}]] is of what is in memory")
                }
                None => format!("`{name}` is a value without an attribute that says which"),
            };
            return Err(self.against(message, help));
        }
        match attribute {
            Some(place) if position(place).is_some() => self.check_place(param, place),
            _object => match &param.debug {
                Some(ty) if has_double(ty, 0) => {
                    let message = format!(
                        "`{name}` leads to `double`, a type that the language does not have"
                    );
                    Err(self.against(message, "use `float`".to_string()))
                }
                _other => Ok(()),
            },
        }
    }

    /// A place has numbers without a fraction, and up to three where it has components.
    fn check_place(&self, param: &Param, place: &str) -> Done<()> {
        let has_components = position(place).is_some_and(|(_, components)| components);
        let is_number = |scalar: &str| {
            matches!(
                scalar,
                "short" | "unsigned short" | "int" | "unsigned int" | "long" | "unsigned long"
            )
        };
        let is_right = match &param.debug {
            Some(DebugType::Scalar(scalar, _)) => is_number(scalar),
            Some(DebugType::Struct(class, ..)) => match vector(class) {
                Some((scalar, count)) => {
                    has_components && count <= 3 && scalar.is_integer() && scalar.bits() >= 16
                }
                None => false,
            },
            Some(_) => false,
            None => true,
        };
        if is_right {
            return Ok(());
        }
        let types = match has_components {
            true => "`uint`, `uint2`, `uint3` or these of `ushort`",
            false => "`uint` or `ushort`",
        };
        let message = format!(
            "`{}` has [[{place}]] and a type that this does not have",
            param.name
        );
        Err(self.against(message, format!("it is {types}")))
    }

    fn against(&self, message: String, help: String) -> Diagnostic {
        Diagnostic::error(Rule::Syntax, self.k.span(), message).help(help)
    }
}

/// The number of an attribute.
fn given(param: &Param, kind: &str) -> Option<i64> {
    let mut all = param.annotations.iter();
    all.find(|(name, _)| name.strip_prefix("msl.") == Some(kind))?
        .1
}

/// Whether there is a `double` in a type.
fn has_double(ty: &DebugType, depth: u32) -> bool {
    match ty {
        DebugType::Scalar(name, _) => name == "double",
        DebugType::Pointer(to) | DebugType::Array(to, _) => depth < 8 && has_double(to, depth + 1),
        DebugType::Struct(_, _, fields) => {
            depth < 8 && fields.iter().any(|f| has_double(&f.ty, depth + 1))
        }
        DebugType::Other(..) => false,
    }
}

/// How many letters are put in, left out or changed from one word to the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = changed.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn distances_count_letters() {
        assert_eq!(distance("grid", "grid"), 0);
        assert_eq!(distance("position", "positoin"), 2);
        assert_eq!(distance("", "abc"), 3);
    }
}
