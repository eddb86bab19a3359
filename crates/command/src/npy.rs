//! NumPy's array files, as bytes of one element type.
//!
//! Little-endian arrays in C order of the types that kernels use; anything else is refused with the
//! reason. The header is a Python literal. It is read here in one pass over at most
//! [`MAX_HEADER_BYTES`] and `MAX_DEPTH` brackets deep, so a damaged file is refused at once; a library
//! that makes room for as many bytes as a header says, or goes down as deep as it nests, could not stand
//! in for that. [`crate::files`] says how a file is written. Absent: arrays of structs, archives of
//! several arrays.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use invar_ir::Scalar;
use invar_ir::text::data::MAX_DATA_BYTES;

use crate::files::{Destination, FileError};

/// The longest header that is read. That of plain numbers takes some hundred bytes.
pub const MAX_HEADER_BYTES: u64 = 1 << 20;

/// How deep lists and tuples of a header may nest.
const MAX_DEPTH: usize = 16;

const MAGIC: &[u8] = b"\x93NUMPY";

/// An array as a file holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// What one element is; 2-byte void elements are bfloat16, as `ml_dtypes` writes them.
    pub scalar: Scalar,
    /// Its shape, outermost first.
    pub shape: Vec<u64>,
    /// Its elements in C order, little-endian.
    pub bytes: Vec<u8>,
}

/// Whether a file is one of NumPy's, by its name.
pub fn is_array_file(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "npy" || e == "npz")
}

/// Reads an array file.
///
/// # Errors
/// The file is missing, no array file, cut short, longer than its shape says, or of a type or order
/// that kernels do not use.
pub fn read(path: &Path) -> Result<Array, FileError> {
    let system = |e: io::Error| FileError::io(path, &e);
    let fail = |what: String| FileError::new(path, what);
    let file = File::open(path).map_err(system)?;
    let metadata = file.metadata().map_err(system)?;
    if metadata.is_dir() {
        return Err(fail("is a directory".into()));
    }
    // A pipe does not say how much is in it.
    let length = if metadata.is_file() {
        metadata.len()
    } else {
        u64::MAX
    };
    let mut file = BufReader::new(file);
    let text = header(&mut file, path)?;
    let header = Header::parse(&text)
        .map_err(|why| fail(format!("not a NumPy array file (its header {why})")))?;
    let scalar = scalar_of(&header.descr).map_err(fail)?;
    let shape = header.shape;
    if header.fortran_order && shape.len() > 1 {
        return Err(fail(
            "the array is in Fortran order; save numpy.ascontiguousarray(a)".into(),
        ));
    }
    let cut_short = || match &shape[..] {
        [a, b, c, d, _, ..] => fail(format!(
            "the file is cut short: its shape is [{a}, {b}, {c}, {d}, ...]"
        )),
        shape => fail(format!("the file is cut short: its shape is {shape:?}")),
    };
    let count = if shape.contains(&0) {
        Some(0)
    } else {
        shape.iter().try_fold(1u64, |n, m| n.checked_mul(*m))
    };
    let size = count
        .and_then(|count| count.checked_mul(scalar.size_bytes()))
        .filter(|size| *size <= length)
        .ok_or_else(cut_short)?;
    if !metadata.is_file() && size > MAX_DATA_BYTES {
        return Err(fail(format!(
            "its {size} bytes are more than the {MAX_DATA_BYTES} that are taken from what is not a file: save the array as a file"
        )));
    }
    let mut bytes = Vec::new();
    file.by_ref()
        .take(size)
        .read_to_end(&mut bytes)
        .map_err(system)?;
    if bytes.len() as u64 != size {
        return Err(cut_short());
    }
    if file.read(&mut [0]).map_err(system)? != 0 {
        return Err(fail(format!(
            "the file goes on after its {} elements",
            size / scalar.size_bytes()
        )));
    }
    Ok(Array {
        scalar,
        shape,
        bytes,
    })
}

/// The text of a file's header; the file then stands at the first element.
fn header(file: &mut impl Read, path: &Path) -> Result<String, FileError> {
    let fail = |what: &str| FileError::new(path, format!("not a NumPy array file ({what})"));
    let mut next = |count: u64, what: &str| {
        let mut bytes = Vec::new();
        file.take(count)
            .read_to_end(&mut bytes)
            .map_err(|e| FileError::io(path, &e))?;
        if bytes.len() as u64 == count {
            Ok(bytes)
        } else {
            Err(fail(&format!("it ends in {what}")))
        }
    };
    if next(MAGIC.len() as u64, "its first bytes")? != MAGIC {
        return Err(fail("it does not begin as one"));
    }
    let version = next(2, "its version")?;
    // Version 2 has longer headers, version 3 has them in UTF-8.
    let width = match version[..] {
        [1, 0] => 2,
        [2 | 3, 0] => 4,
        _ => {
            return Err(fail(&format!(
                "its version is {}.{}; known are 1.0, 2.0 and 3.0",
                version[0], version[1]
            )));
        }
    };
    let mut length = [0; 8];
    length[..width].copy_from_slice(&next(width as u64, "the length of its header")?);
    let length = u64::from_le_bytes(length);
    if length > MAX_HEADER_BYTES {
        return Err(fail(&format!(
            "its header has {length} bytes, more than the {MAX_HEADER_BYTES} that are read"
        )));
    }
    // What is not ASCII can only stand in the names of a struct's fields.
    Ok(String::from_utf8_lossy(&next(length, "its header")?).into_owned())
}

/// What a header says.
struct Header {
    descr: Literal,
    fortran_order: bool,
    shape: Vec<u64>,
}

impl Header {
    /// Reads the dictionary that a header is. An error goes on after "its header".
    fn parse(text: &str) -> Result<Header, String> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        let mut reader = Reader { text, at: 0 };
        reader.expect('{')?;
        while !reader.takes('}') {
            let key = match reader.literal(0)? {
                Literal::Text(key) => key,
                other => return Err(format!("has the key {}, which is not text", other.said())),
            };
            reader.expect(':')?;
            let value = reader.literal(0)?;
            match (&key[..], value) {
                ("descr", value) => descr = Some(value),
                ("fortran_order", Literal::Truth(value)) => fortran_order = Some(value),
                ("shape", Literal::Sequence(items)) => {
                    let counts = items.iter().map(|item| match item {
                        Literal::Whole(n) => Ok(*n),
                        other => Err(format!("has {} in its shape", other.said())),
                    });
                    shape = Some(counts.collect::<Result<_, _>>()?);
                }
                ("fortran_order" | "shape", value) => {
                    return Err(format!("says {} for '{key}'", value.said()));
                }
                _ => return Err(format!("has the unknown key '{}'", shortened(&key))),
            }
            if !reader.takes(',') {
                reader.expect('}')?;
                break;
            }
        }
        reader.space();
        if reader.at < text.len() {
            return Err(format!("goes on after its `}}`, at byte {}", reader.at));
        }
        let missing = |key: &str| format!("has no '{key}'");
        Ok(Header {
            descr: descr.ok_or_else(|| missing("descr"))?,
            fortran_order: fortran_order.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
        })
    }
}

/// A Python literal, as far as headers have them.
enum Literal {
    Text(String),
    Truth(bool),
    Whole(u64),
    /// A tuple or a list.
    Sequence(Vec<Literal>),
}

impl Literal {
    /// For messages, on one line.
    fn said(&self) -> String {
        match self {
            Literal::Text(text) => format!("'{}'", shortened(text)),
            Literal::Truth(true) => "True".into(),
            Literal::Truth(false) => "False".into(),
            Literal::Whole(n) => n.to_string(),
            Literal::Sequence(items) => format!("a list of {}", items.len()),
        }
    }
}

/// So much of a text as belongs into a message, without control characters.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 24;
    let shown = text.chars().take(SHOWN);
    let mut short: String = shown
        .map(|c| if c.is_control() { '?' } else { c })
        .collect();
    if text.chars().nth(SHOWN).is_some() {
        short.push_str("...");
    }
    short
}

/// Goes through a header once, from front to back.
struct Reader<'a> {
    text: &'a str,
    /// In bytes.
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        self.word(|c| matches!(c, ' ' | '\t' | '\n' | '\r'));
    }

    fn takes(&mut self, wanted: char) -> bool {
        self.space();
        let found = self.rest().starts_with(wanted);
        self.at += if found { wanted.len_utf8() } else { 0 };
        found
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        if self.takes(wanted) {
            Ok(())
        } else {
            Err(self.instead(&format!("`{wanted}`")))
        }
    }

    fn instead(&self, wanted: &str) -> String {
        let at = self.at;
        match self.rest().chars().next() {
            None => format!("ends where {wanted} should stand"),
            Some(c) if c.is_control() => {
                format!("has a control character instead of {wanted} at byte {at}")
            }
            Some(c) => format!("has `{c}` instead of {wanted} at byte {at}"),
        }
    }

    /// The characters that follow and are so.
    fn word(&mut self, is: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !is(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn literal(&mut self, depth: usize) -> Result<Literal, String> {
        self.space();
        let rest = self.rest();
        match rest.chars().next() {
            Some(quote @ ('\'' | '"')) => {
                self.at += 1;
                let text = self.word(|c| c != quote);
                self.expect(quote)?;
                Ok(Literal::Text(text.to_string()))
            }
            Some(open @ ('(' | '[')) => {
                if depth == MAX_DEPTH {
                    return Err(format!("nests more than {MAX_DEPTH} deep"));
                }
                self.at += 1;
                let close = if open == '(' { ')' } else { ']' };
                self.sequence(close, depth + 1)
            }
            Some('0'..='9') => {
                let digits = self.word(|c| c.is_ascii_digit());
                // Python 2 wrote long numbers so.
                self.at += usize::from(self.rest().starts_with('L'));
                let number = digits.parse();
                number
                    .map(Literal::Whole)
                    .map_err(|_| format!("has the number {}, beyond 2^64", shortened(digits)))
            }
            _ => {
                for (word, value) in [("True", true), ("False", false)] {
                    if rest.starts_with(word) {
                        self.at += word.len();
                        return Ok(Literal::Truth(value));
                    }
                }
                Err(self.instead("a value"))
            }
        }
    }

    /// What stands behind the opening bracket. `(7)` is the number 7, `(7,)` a tuple, as in Python.
    fn sequence(&mut self, close: char, depth: usize) -> Result<Literal, String> {
        let mut items = Vec::new();
        while !self.takes(close) {
            let item = self.literal(depth)?;
            if self.takes(',') {
                items.push(item);
                continue;
            }
            self.expect(close)?;
            if close == ')' && items.is_empty() {
                return Ok(item);
            }
            items.push(item);
            break;
        }
        Ok(Literal::Sequence(items))
    }
}

/// Writes an array file.
///
/// # Errors
/// The place cannot be written; a file that was there before is untouched.
pub fn write(path: &Path, array: &Array) -> Result<(), FileError> {
    write_to(&Destination::of(path)?, array)
}

/// As [`write()`], to a place that was looked at before.
///
/// # Errors
/// What the operating system says; a file that was there before is untouched.
pub fn write_to(destination: &Destination, array: &Array) -> Result<(), FileError> {
    destination.write(&[&header_bytes(array), &array.bytes])
}

/// A header, filled up with spaces so that the elements begin at a multiple of 64 bytes.
fn header_bytes(array: &Array) -> Vec<u8> {
    let counts: Vec<String> = array.shape.iter().map(u64::to_string).collect();
    let comma = if counts.len() == 1 { "," } else { "" };
    let mut text = format!(
        "{{'descr': '{}', 'fortran_order': False, 'shape': ({}{comma}), }}",
        descr(array.scalar),
        counts.join(", ")
    );
    // What two bytes cannot count takes version 2, with four.
    let width = if text.len() + 64 < usize::from(u16::MAX) {
        2
    } else {
        4
    };
    let bare = MAGIC.len() + 2 + width + text.len() + "\n".len();
    text.push_str(&" ".repeat(bare.next_multiple_of(64) - bare));
    text.push('\n');
    let version = if width == 2 { 1 } else { 2 };
    let length = (text.len() as u64).to_le_bytes();
    [MAGIC, &[version, 0], &length[..width], text.as_bytes()].concat()
}

/// NumPy's name of a type.
const fn descr(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool => "|b1",
        Scalar::I8 => "|i1",
        Scalar::I16 => "<i2",
        Scalar::I32 => "<i4",
        Scalar::I64 => "<i8",
        Scalar::U8 => "|u1",
        Scalar::U16 => "<u2",
        Scalar::U32 => "<u4",
        Scalar::U64 => "<u8",
        Scalar::F16 => "<f2",
        Scalar::BF16 => "|V2",
        Scalar::F32 => "<f4",
        Scalar::F64 => "<f8",
    }
}

fn scalar_of(described: &Literal) -> Result<Scalar, String> {
    let name = match described {
        Literal::Text(name) => name,
        Literal::Sequence(_) => {
            return Err("its elements are structs; kernels read plain numbers".into());
        }
        Literal::Truth(_) | Literal::Whole(_) => {
            let said = described.said();
            return Err(format!(
                "not a NumPy array file (its header says {said} for 'descr')"
            ));
        }
    };
    let kind = name.strip_prefix(['<', '|', '>']);
    let found = Scalar::ALL
        .into_iter()
        .find(|s| kind.is_some_and(|kind| descr(*s)[1..] == *kind));
    match found {
        Some(_) if name.starts_with('>') => Err(format!(
            "elements of type {name} are big-endian; save a.astype(a.dtype.newbyteorder('<'))"
        )),
        Some(scalar) => Ok(scalar),
        None => Err(format!(
            "kernels have no elements of type '{}'",
            shortened(name)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_survives_a_round_trip() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for scalar in Scalar::ALL {
            let path = folder.path().join(format!("{scalar}.npy"));
            let array = Array {
                scalar,
                shape: vec![2, 3],
                bytes: (0..6 * scalar.size_bytes() as u8).collect(),
            };
            write(&path, &array).expect("written");
            assert_eq!(read(&path).expect("read"), array);
        }
    }

    #[test]
    fn damage_is_said_and_nothing_is_overwritten() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("x.npy");
        let said = |path: &Path| read(path).expect_err("refused").to_string();
        assert!(said(&path).ends_with("x.npy: no such file or directory"));
        std::fs::write(&path, b"hello, world").expect("written");
        assert!(said(&path).contains("not a NumPy array file"));
        let array = Array {
            scalar: Scalar::F32,
            shape: vec![4],
            bytes: vec![0; 16],
        };
        write(&path, &array).expect("written");
        let whole = std::fs::read(&path).expect("read");
        std::fs::write(&path, &whole[..whole.len() - 1]).expect("written");
        assert!(said(&path).contains("cut short"));
        let longer = [&whole[..], &[0]].concat();
        std::fs::write(&path, longer).expect("written");
        assert!(said(&path).contains("goes on after its 4 elements"));
        assert!(write(&folder.path().join("no/such/x.npy"), &array).is_err());
        assert!(said(folder.path()).ends_with("is a directory"));
        let with_header = |header: &str| {
            let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
            bytes.extend((header.len() as u16).to_le_bytes());
            bytes.extend(header.as_bytes());
            std::fs::write(&path, bytes).expect("written");
            said(&path)
        };
        let huge = with_header(
            "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }\n",
        );
        assert!(huge.contains("cut short"), "{huge}");
        let damaged = with_header("{'descr': \n");
        assert!(!damaged.contains('\n'), "{damaged}");
        assert!(damaged.contains("not a NumPy array file"), "{damaged}");
    }
    /// A file of that version with that header and these bytes behind it.
    fn read_with(version: u8, header: &str, data: &[u8]) -> Result<Array, String> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("x.npy");
        let mut bytes = [MAGIC, &[version, 0]].concat();
        match version {
            1 => bytes.extend((header.len() as u16).to_le_bytes()),
            _ => bytes.extend((header.len() as u32).to_le_bytes()),
        }
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        std::fs::write(&path, bytes).expect("written");
        read(&path).map_err(|e| e.to_string())
    }

    fn refused(version: u8, header: &str, data: &[u8]) -> String {
        read_with(version, header, data).expect_err("refused")
    }

    fn describing(descr: &str, shape: &str) -> String {
        format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}  \n")
    }

    #[test]
    fn every_version_and_spelling_of_a_header_is_read() {
        let plain = describing("'<f4'", "(2,)");
        let others = [
            "{ 'shape' : ( 2 , ) ,\n\"fortran_order\":False,'descr':\"<f4\"}",
            "{'descr': '<f4', 'fortran_order': True, 'shape': (2L,), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': [2]}",
        ];
        for version in [1, 2, 3] {
            for header in [&plain[..]].iter().chain(&others) {
                let array = read_with(version, header, &[7; 8]);
                assert_eq!(array.map(|a| a.shape), Ok(vec![2]), "{version} {header}");
            }
        }
        for (shape, dims, size) in [("()", vec![], 4), ("(0, 3)", vec![0, 3], 0)] {
            let array = read_with(1, &describing("'<f4'", shape), &vec![0; size]);
            assert_eq!(array.map(|a| a.shape), Ok(dims));
        }
    }

    #[test]
    fn a_damaged_header_is_refused_at_once() {
        // Each would take ages if a part were tried in several ways.
        for part in [
            "{", "(", "[", "{'a':", "(1,", "'", "((1,),", "{{'", "-", "1",
        ] {
            let said = refused(1, &part.repeat(60_000 / part.len()), &[]);
            assert!(said.contains("not a NumPy array file"), "{said}");
            assert!(said.len() < 300, "{said}");
        }
        let deep =
            |n: usize| describing("'<f4'", &format!("({}1{})", "(".repeat(n), ",)".repeat(n)));
        let said = refused(1, &deep(MAX_DEPTH - 1), &[]);
        assert!(said.contains("has a list of 1 in its shape"), "{said}");
        let said = refused(1, &deep(MAX_DEPTH), &[]);
        assert!(said.contains("nests more than 16 deep"), "{said}");
        for (header, why) in [
            ("", "ends where `{` should stand"),
            ("{}", "has no 'descr'"),
            ("{'descr': '<f4', 'shape': (1,)}", "has no 'fortran_order'"),
            ("{'descr': '<f4', 'fortran_order': False}", "has no 'shape'"),
            ("{'descr': '<f4', 'more': 1}", "has the unknown key 'more'"),
            ("{'fortran_order': 1}", "says 1 for 'fortran_order'"),
            ("{'shape': 4}", "says 4 for 'shape'"),
            ("{'shape': (4)}", "says 4 for 'shape'"),
            ("{'shape': (-4,)}", "has `-` instead of a value at byte 11"),
            ("{'shape': ('4',)}", "has '4' in its shape"),
            ("{'shape': (99999999999999999999,)}", "beyond 2^64"),
            ("{'descr\n", "ends where `'` should stand"),
            ("{\u{7}}", "has a control character instead of a value"),
            ("{4: 4}", "has the key 4, which is not text"),
        ] {
            let said = refused(1, header, &[]);
            assert!(said.contains(why), "{said}");
        }
        let said = refused(1, &(describing("'<f4'", "(0,)") + "{}"), &[]);
        assert!(said.contains("goes on after its `}`"), "{said}");
        let said = refused(4, &describing("'<f4'", "(0,)"), &[]);
        assert!(said.contains("its version is 4.0"), "{said}");
        let long = describing("'<f4'", "(0,)") + &" ".repeat(MAX_HEADER_BYTES as usize);
        let said = refused(2, &long, &[]);
        assert!(
            said.contains("more than the 1048576 that are read"),
            "{said}"
        );
    }

    #[test]
    fn types_and_orders_that_kernels_have_not_are_refused() {
        for (descr, why) in [
            ("[('a', '<f4'), ('b', '<i4')]", "its elements are structs"),
            ("'>f4'", "elements of type >f4 are big-endian"),
            ("'<c8'", "kernels have no elements of type '<c8'"),
            ("'|O'", "kernels have no elements of type '|O'"),
            ("'\u{e9}'", "kernels have no elements of type"),
            ("''", "kernels have no elements of type ''"),
            ("7", "says 7 for 'descr'"),
        ] {
            let said = refused(3, &describing(descr, "(1,)"), &[0; 4]);
            assert!(said.contains(why), "{said}");
        }
        let header = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }";
        let said = refused(1, header, &[0; 16]);
        assert!(said.contains("in Fortran order"), "{said}");
    }

    #[test]
    fn a_shape_is_not_believed_before_its_elements_are_there() {
        for shape in [
            "(18446744073709551615, 2)",
            "(4611686018427387905,)",
            "(1000000000000, 1, 1, 1, 1, 1)",
            "(3,)",
        ] {
            let said = refused(1, &describing("'<f4'", shape), &[0; 8]);
            assert!(said.contains("cut short: its shape is ["), "{said}");
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("x.npy");
        let array = Array {
            scalar: Scalar::F32,
            shape: vec![4],
            bytes: vec![0; 16],
        };
        write(&path, &array).expect("written");
        let whole = std::fs::read(&path).expect("read");
        assert_eq!((whole.len() - 16) % 64, 0);
        for end in 0..whole.len() {
            std::fs::write(&path, &whole[..end]).expect("written");
            let said = read(&path).expect_err("refused").to_string();
            assert!(
                said.contains("it ends in") || said.contains("cut short"),
                "{said}"
            );
        }
        // The longest shapes need the second version.
        let long = Array {
            scalar: Scalar::U8,
            shape: vec![1; 21_825],
            bytes: vec![5],
        };
        write(&path, &long).expect("written");
        let bytes = std::fs::read(&path).expect("read");
        assert_eq!((bytes[6], (bytes.len() - 1) % 64), (2, 0));
        assert!(read(&path).is_ok_and(|array| array == long));
    }
}
