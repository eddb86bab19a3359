//! NumPy's array files, as bytes of one element type.
//!
//! Little-endian arrays in C order of the types that kernels use; anything else is refused with the
//! reason. A file is written beside its place and then moved there, so a failed write leaves what
//! was there before.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use invar_ir::Scalar;
use npyz::{DType, NpyFile, Order, TypeStr, WriteOptions, WriterBuilder};

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

/// Why a file could not be read or written: the file, and what was wrong.
#[derive(Debug)]
pub struct NpyError {
    path: PathBuf,
    what: String,
}

impl fmt::Display for NpyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.what)
    }
}

impl std::error::Error for NpyError {}

/// Reads an array file.
///
/// # Errors
/// The file is missing, no array file, cut short, longer than its shape says, or of a type or order
/// that kernels do not use.
pub fn read(path: &Path) -> Result<Array, NpyError> {
    let fail = |what: String| NpyError {
        path: path.to_owned(),
        what,
    };
    let file = File::open(path).map_err(|e| fail(plain(&e)))?;
    let metadata = file.metadata().map_err(|e| fail(plain(&e)))?;
    if metadata.is_dir() {
        return Err(fail("is a directory".into()));
    }
    let length = metadata.len();
    let mut file = BufReader::new(file);
    if counts_too_far(file.fill_buf().map_err(|e| fail(plain(&e)))?) {
        return Err(fail(
            "the file is cut short: its shape is beyond 2^64".into(),
        ));
    }
    let npy = NpyFile::new(file).map_err(|e| {
        // Of what the parser says, the first line names the mistake; the others quote the header.
        let said = plain(&e);
        let said = said.lines().next().unwrap_or_default();
        let said = said.split(" -->").next().unwrap_or_default();
        fail(format!(
            "not a NumPy array file ({})",
            said.trim_end_matches([' ', ':'])
        ))
    })?;
    let shape = npy.shape().to_vec();
    let scalar = scalar_of(&npy.dtype()).map_err(fail)?;
    if npy.order() == Order::Fortran && shape.len() > 1 {
        return Err(fail(
            "the array is in Fortran order; save numpy.ascontiguousarray(a)".into(),
        ));
    }
    let size = shape
        .iter()
        .try_fold(scalar.size_bytes(), |size, n| size.checked_mul(*n))
        .filter(|size| *size <= length)
        .ok_or_else(|| fail(format!("the file is cut short: its shape is {shape:?}")))?;
    let mut bytes = vec![0; size as usize];
    let mut reader = npy.into_inner();
    reader
        .read_exact(&mut bytes)
        .map_err(|_| fail(format!("the file is cut short: its shape is {shape:?}")))?;
    if reader.read(&mut [0]).map_err(|e| fail(plain(&e)))? != 0 {
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

/// Whether the shape in a file's header has more elements than 64 bits count, which the reader of
/// headers multiplies without asking.
fn counts_too_far(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let shape = text
        .split_once("'shape'")
        .and_then(|(_, rest)| rest.split_once('('))
        .and_then(|(_, rest)| rest.split_once(')'))
        .map_or("", |(shape, _)| shape);
    let mut counts = shape.split(',').filter_map(|n| n.trim().parse().ok());
    counts
        .try_fold(1u64, |product, n: u64| product.checked_mul(n))
        .is_none()
}

/// Writes an array file.
///
/// # Errors
/// The place cannot be written; what was there before is untouched.
pub fn write(path: &Path, array: &Array) -> Result<(), NpyError> {
    let fail = |e: io::Error| NpyError {
        path: path.to_owned(),
        what: plain(&e),
    };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(fail)?;
    let mut bytes = Vec::new();
    WriteOptions::new_header_only()
        .dtype(DType::Plain(type_str(array.scalar)))
        .shape(&array.shape)
        .writer(&mut bytes)
        .write_header_only()
        .map_err(fail)?;
    file.write_all(&bytes).map_err(fail)?;
    file.write_all(&array.bytes).map_err(fail)?;
    file.persist(path).map_err(|e| fail(e.error))?;
    Ok(())
}

/// An I/O error without the operating system's number.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
    }
}

fn type_str(scalar: Scalar) -> TypeStr {
    let name = descr(scalar);
    // Every name in `descr` is one that NumPy documents, which the parser knows.
    name.parse().unwrap_or_else(|_| unreachable!("{name}"))
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

fn scalar_of(dtype: &DType) -> Result<Scalar, String> {
    let DType::Plain(ty) = dtype else {
        return Err(format!(
            "elements of type {} are structs; kernels read .npy files of plain numbers",
            dtype.descr()
        ));
    };
    let name = ty.to_string();
    Scalar::ALL
        .into_iter()
        .find(|s| descr(*s)[1..] == name[1..] && !name.starts_with('>'))
        .ok_or_else(|| {
            if name.starts_with('>') {
                format!("elements of type {name} are big-endian; save a.astype(a.dtype.newbyteorder('<'))")
            } else {
                format!("kernels have no elements of type {name}")
            }
        })
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
}
