//! What a kernel says to a logger is printed: the headers give the text, then each value, then the end of it.

use invar_ir::{Scalar, Type};
use invar_llvm::foreign::Operand;

use crate::translator::{Done, Log, Translator};

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
                let scalars = values.iter().map(|value| match self.k.ty(*value) {
                    Type::Scalar(scalar) => scalar,
                    _other => Scalar::F32,
                });
                let mut scalars: Vec<Scalar> = scalars.collect();
                let text = printed(&text, &mut scalars)
                    .map_err(|why| self.refuse(&format!("logging {why}")))?;
                let as_taken = values.into_iter().zip(scalars);
                let values: Vec<_> = as_taken.map(|(v, s)| self.as_scalar(v, s)).collect();
                self.k.print(&text, &values);
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

/// A text with `%d` and its like as one of `{}`, for values of these types; integers become what the text says that
/// they are: with a sign or without.
fn printed(text: &str, scalars: &mut [Scalar]) -> Result<String, String> {
    let mut out = String::new();
    let mut values = scalars.iter_mut();
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
                    let Some(scalar) = values.next() else {
                        return Err("of fewer values than its text takes".to_string());
                    };
                    let with_sign = matches!(kind, 'd' | 'i');
                    *scalar = match (*scalar, kind) {
                        (Scalar::U32 | Scalar::I32, 'c') => Scalar::U32,
                        (Scalar::U32, _) if with_sign => Scalar::I32,
                        (Scalar::U64, _) if with_sign => Scalar::I64,
                        (Scalar::I32, 'u') => Scalar::U32,
                        (Scalar::I64, 'u') => Scalar::U64,
                        (other, _) => other,
                    };
                    out.push_str(if part > 0 { "," } else { "" });
                    out.push_str(match kind {
                        'x' | 'X' if scalar.is_integer() => "{:x}",
                        'c' if scalar.is_integer() => "{:c}",
                        _number => "{}",
                    });
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
    use super::{Scalar, printed};

    #[test]
    fn forms_become_places() {
        use Scalar::{F32, I32, I64, U32, U64};
        let of = |text: &str, scalars: &[Scalar]| {
            let mut scalars = scalars.to_vec();
            printed(text, &mut scalars).map(|text| (text, scalars))
        };
        let as_is = |text: &str, scalars: &[Scalar]| Ok((text.to_string(), scalars.to_vec()));
        assert_eq!(
            of("a %d{%5.2f}%%", &[I32, F32]),
            as_is("a {}{{{}}}%", &[I32, F32])
        );
        assert_eq!(of("%#lx %x", &[I32, F32]), as_is("{:x} {}", &[I32, F32]));
        assert_eq!(of("%v3hlf", &[F32; 3]), as_is("{},{},{}", &[F32; 3]));
        assert_eq!(of("%c %c", &[I32, U32]), as_is("{:c} {:c}", &[U32, U32]));
        assert_eq!(
            of("%u %lu %d %ld", &[I32, I64, U32, U64]),
            as_is("{} {} {} {}", &[U32, U64, I32, I64])
        );
        assert!(of("%d", &[]).is_err());
        assert!(of("", &[I32]).is_err());
        assert!(of("%s", &[I32]).is_err());
        assert!(of("%", &[]).is_err());
    }
}
