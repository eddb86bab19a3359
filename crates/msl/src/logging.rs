//! What a kernel says to a logger is printed: the headers give the text, then each value, then the end of it.

use invar_ir::{Scalar, Type};
use invar_llvm::foreign::Operand;

use crate::translate::{Done, Log, Translator};

impl Translator<'_> {
    /// One of the calls that a line is made of.
    pub fn log(&mut self, number: usize, what: &str) -> Done<()> {
        match what {
            "text" => {
                let Some(text) = self.text(&self.f.insts[number].operands[0]) else {
                    return Err(self.refuse("logging of a text that is computed"));
                };
                self.log = Log {
                    text,
                    values: Vec::new(),
                };
            }
            "end" => {
                let Log { text, values } = std::mem::take(&mut self.log);
                let is_integer = values.iter().map(|value| match self.k.ty(*value) {
                    Type::Scalar(scalar) => scalar.is_integer(),
                    _other => false,
                });
                let is_integer: Vec<bool> = is_integer.collect();
                match printed(&text, &is_integer) {
                    Ok(text) => self.k.print(&text, &values),
                    Err(why) => return Err(self.refuse(&format!("logging {why}"))),
                }
            }
            scalar => {
                let value = self.one(number, 0)?;
                let value = match Scalar::from_name(scalar) {
                    Some(scalar) => self.as_scalar(value, scalar),
                    None => value,
                };
                self.log.values.push(value);
            }
        }
        Ok(())
    }

    /// The text that an operand leads to.
    fn text(&self, operand: &Operand) -> Option<String> {
        let Operand::Global(number, from) = operand else {
            return None;
        };
        let initial = self.f.globals.get(*number)?.initial.as_ref()?;
        let from = u64::try_from(*from).ok()?;
        let all = initial.iter().filter(|(at, ..)| *at >= from);
        let bytes = all.map(|(_, _, bits)| *bits as u8);
        let bytes: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
        String::from_utf8(bytes).ok()
    }
}

/// A text with `%d` and its like as one of `{}`, for values of which is said whether they are integers.
fn printed(text: &str, is_integer: &[bool]) -> Result<String, String> {
    let mut out = String::new();
    let mut values = is_integer.iter();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '{' | '}' => out.extend([c, c]),
            '%' if chars.peek() == Some(&'%') => {
                chars.next();
                out.push('%');
            }
            '%' => {
                let mut form = String::new();
                let kind = loop {
                    match chars.next() {
                        Some(c) if c.is_ascii_digit() || "-+ #0.vhlLjzt".contains(c) => {
                            form.push(c)
                        }
                        Some(c) => break c,
                        None => return Err("of a text that ends with `%`".to_string()),
                    }
                };
                if !"diuxXfFeEgGaAc".contains(kind) {
                    return Err(format!("of `%{form}{kind}`"));
                }
                let count = form.split_once('v').map(|(_, count)| {
                    let digits: String = count.chars().take_while(char::is_ascii_digit).collect();
                    digits.parse().unwrap_or(1)
                });
                for part in 0..count.unwrap_or(1) {
                    let Some(is_integer) = values.next() else {
                        return Err("of fewer values than its text takes".to_string());
                    };
                    let is_hexadecimal = *is_integer && matches!(kind, 'x' | 'X');
                    out.push_str(if part > 0 { "," } else { "" });
                    out.push_str(if is_hexadecimal { "{:x}" } else { "{}" });
                }
            }
            c => out.push(c),
        }
    }
    match values.next() {
        None => Ok(out),
        Some(_) => Err("of more values than its text takes".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::printed;

    #[test]
    fn forms_become_places() {
        let of = |text: &str, integers: &[bool]| printed(text, integers);
        assert_eq!(
            of("a %d{%5.2f}%%", &[true, false]),
            Ok("a {}{{{}}}%".to_string())
        );
        assert_eq!(of("%#lx %x", &[true, false]), Ok("{:x} {}".to_string()));
        assert_eq!(of("%v3hlf", &[false; 3]), Ok("{},{},{}".to_string()));
        assert!(of("%d", &[]).is_err());
        assert!(of("", &[true]).is_err());
        assert!(of("%s", &[true]).is_err());
        assert!(of("%", &[]).is_err());
    }
}
