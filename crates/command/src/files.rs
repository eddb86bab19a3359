//! Reading files to an end, and where results are written: what stands at a path decides how.
//!
//! A file is replaced whole or not at all: it is written beside its place and then moved there, so
//! that a failed write leaves what was there before, and it keeps its permissions. A link is
//! followed. A pipe or a character device is written to as it stands. Whatever says that it is not
//! to be written stays as it is. Kept out: owners and further links of a replaced file,
//! which belong to the file that was there.

use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

use invar_ir::diagnostic::path_text;

/// Why a file could not be read or written: the file, and what was wrong.
#[derive(Debug)]
pub struct FileError {
    path: PathBuf,
    what: String,
}

impl FileError {
    /// Something that is wrong with a file, in lower case and without its name.
    pub fn new(path: &Path, what: impl Into<String>) -> FileError {
        FileError {
            path: path.to_owned(),
            what: what.into(),
        }
    }

    /// What the operating system says, without its number.
    pub fn io(path: &Path, error: &io::Error) -> FileError {
        let text = error.to_string();
        let what = match text.find(" (os error") {
            Some(end) => text[..end].to_lowercase(),
            None => text,
        };
        FileError::new(path, what)
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", path_text(&self.path), self.what)
    }
}

impl std::error::Error for FileError {}

/// All bytes of a file that has at most so many: a device may have no end.
pub fn bytes(path: &Path, most: u64) -> Result<Vec<u8>, FileError> {
    let system = |e: io::Error| FileError::io(path, &e);
    let file = File::open(path).map_err(system)?;
    let mut bytes = Vec::new();
    let mut some = file.take(most.saturating_add(1));
    some.read_to_end(&mut bytes).map_err(system)?;
    if bytes.len() as u64 > most {
        return Err(FileError::new(path, format!("is larger than {most} bytes")));
    }
    Ok(bytes)
}

/// The text of a file that has at most [`MOST_TEXT_BYTES`].
pub fn text(path: &Path) -> Result<String, FileError> {
    String::from_utf8(bytes(path, MOST_TEXT_BYTES)?)
        .map_err(|_| FileError::new(path, "is not text in UTF-8"))
}

/// Far beyond what anybody writes or generates.
pub const MOST_TEXT_BYTES: u64 = 1 << 28;

/// Why a file cannot be written.
fn unwritable(path: &Path, error: &io::Error) -> FileError {
    let FileError { path, what } = FileError::io(path, error);
    FileError {
        path,
        what: format!("cannot be written: {what}"),
    }
}

/// A path that can be written to.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("result.txt");
/// use invar_command::files::Destination;
///
/// let destination = Destination::of(&path)?; // before the work, so that nothing runs in vain
/// destination.write(&[b"the ", b"result"])?;
/// assert_eq!(std::fs::read(&path)?, b"the result");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Destination {
    /// As the user named it, for messages.
    named: PathBuf,
    /// Behind all links.
    path: PathBuf,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// Nothing is there yet.
    New,
    /// A file, which is replaced.
    File(fs::Permissions),
    /// A pipe or a character device.
    Stream,
}

/// As many links one after another as Linux follows.
const MAX_LINKS: usize = 40;

impl Destination {
    /// Looks at what stands at a path. Changes nothing and does not wait for a pipe's reader.
    ///
    /// # Errors
    /// What is there, or would be, cannot be written: it is a folder or another thing that holds no
    /// bytes, it is read-only, or its folder is missing or takes no new files.
    pub fn of(named: &Path) -> Result<Destination, FileError> {
        let fail = |e: io::Error| unwritable(named, &e);
        let (path, kind) = match fs::metadata(named) {
            Ok(metadata) if metadata.is_dir() => {
                return Err(FileError::new(named, "is a directory"));
            }
            Ok(metadata) if metadata.is_file() => {
                let permissions = metadata.permissions();
                if permissions.readonly() {
                    return Err(FileError::new(
                        named,
                        "is read-only; make it writable, or name another file",
                    ));
                }
                // Not truncated, so it only asks.
                OpenOptions::new().write(true).open(named).map_err(fail)?;
                let path = fs::canonicalize(named).map_err(fail)?;
                (path, Kind::File(permissions))
            }
            Ok(metadata) if is_stream(&metadata) => (named.to_owned(), Kind::Stream),
            Ok(_) => {
                return Err(FileError::new(
                    named,
                    "is neither a file, nor a pipe, nor a character device",
                ));
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                (behind_links(named).map_err(fail)?, Kind::New)
            }
            Err(e) => return Err(fail(e)),
        };
        let destination = Destination {
            named: named.to_owned(),
            path,
            kind,
        };
        if !matches!(destination.kind, Kind::Stream) {
            // Deleted again at once.
            destination.beside().map_err(fail)?;
        }
        Ok(destination)
    }

    /// Whether two names lead to one place.
    pub fn is_same(&self, other: &Destination) -> bool {
        self.path == other.path
    }

    /// Writes these bytes, one part after the other.
    ///
    /// # Errors
    /// What the operating system says. A file that was there before is then untouched.
    pub fn write(&self, parts: &[&[u8]]) -> Result<(), FileError> {
        self.write_all(parts)
            .map_err(|e| unwritable(&self.named, &e))
    }

    fn write_all(&self, parts: &[&[u8]]) -> io::Result<()> {
        let permissions = match &self.kind {
            Kind::New => None,
            Kind::File(permissions) => Some(permissions),
            Kind::Stream => {
                let mut stream = OpenOptions::new().write(true).open(&self.path)?;
                return parts.iter().try_for_each(|part| stream.write_all(part));
            }
        };
        let mut file = self.beside()?;
        for part in parts {
            file.write_all(part)?;
        }
        if let Some(permissions) = permissions {
            file.as_file().set_permissions(permissions.clone())?;
        }
        file.persist(&self.path).map_err(|e| e.error)?;
        Ok(())
    }

    /// A new file in the same folder, with the permissions of every new file.
    fn beside(&self) -> io::Result<tempfile::NamedTempFile<File>> {
        let folder = match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        #[cfg(not(unix))]
        return tempfile::NamedTempFile::new_in(folder);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // The system takes off what the process's mask says.
            let permissions = fs::Permissions::from_mode(0o666);
            tempfile::Builder::new()
                .permissions(permissions)
                .tempfile_in(folder)
        }
    }
}

/// Where the links end that begin at a path where no file is yet.
fn behind_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_symlink() => {
                let target = fs::read_link(&path)?;
                path = path.parent().unwrap_or(Path::new("")).join(target);
            }
            Ok(_) => return Ok(path),
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(path),
            Err(e) => return Err(e),
        }
    }
    Err(io::Error::other("too many links one after another"))
}

#[cfg(unix)]
fn is_stream(metadata: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let kind = metadata.file_type();
    kind.is_fifo() || kind.is_char_device()
}

#[cfg(not(unix))]
fn is_stream(metadata: &Metadata) -> bool {
    !metadata.is_file() && !metadata.is_dir()
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::process::Command;

    use super::*;

    fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
        let destination = Destination::of(path).map_err(|e| e.to_string())?;
        destination.write(&[bytes]).map_err(|e| e.to_string())
    }

    fn mode(path: &Path) -> u32 {
        let metadata = fs::metadata(path).expect("it is there");
        metadata.permissions().mode() & 0o7777
    }

    #[test]
    fn a_file_keeps_its_permissions_and_a_new_one_has_the_usual_ones() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let usual = folder.path().join("usual");
        File::create(&usual).expect("created");
        let path = folder.path().join("new");
        write(&path, b"one").expect("written");
        assert_eq!(mode(&path), mode(&usual));
        for kept in [0o600, 0o644, 0o755, 0o666] {
            fs::set_permissions(&path, fs::Permissions::from_mode(kept)).expect("set");
            write(&path, b"two").expect("written");
            assert_eq!(mode(&path), kept);
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).expect("set");
        let said = write(&path, b"three").expect_err("refused");
        assert!(said.contains("new: is read-only"), "{said}");
        assert_eq!(fs::read(&path).expect("read"), b"two");
        assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 2);
    }

    #[test]
    fn a_link_is_followed_and_stays() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("inner")).expect("created");
        symlink("inner/file", at("link")).expect("linked");
        symlink(at("link"), at("again")).expect("linked");
        // First a link to nothing, then to a file.
        for text in ["one", "two"] {
            write(&at("again"), text.as_bytes()).expect("written");
            assert_eq!(fs::read_to_string(at("inner/file")).expect("read"), text);
        }
        for link in ["link", "again"] {
            let metadata = fs::symlink_metadata(at(link)).expect("it is there");
            assert!(metadata.is_symlink());
        }
        let direct = Destination::of(&at("inner/file")).expect("a place");
        assert!(Destination::of(&at("link")).is_ok_and(|d| d.is_same(&direct)));
        assert!(Destination::of(&at("inner/other")).is_ok_and(|d| !d.is_same(&direct)));
        symlink("circle", at("circle")).expect("linked");
        assert!(write(&at("circle"), b"none").is_err());
    }

    #[test]
    fn what_has_no_end_is_not_read_to_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("four");
        fs::write(&path, b"four").expect("written");
        assert_eq!(bytes(&path, 4).expect("read"), b"four");
        for (path, most) in [(&*path, 3), (Path::new("/dev/zero"), 1 << 20)] {
            let said = bytes(path, most).expect_err("refused").to_string();
            assert!(
                said.ends_with(&format!("is larger than {most} bytes")),
                "{said}"
            );
        }
        fs::write(&path, b"\xff").expect("written");
        let said = text(&path).expect_err("refused").to_string();
        assert!(said.ends_with("is not text in UTF-8"), "{said}");
    }

    #[test]
    fn a_pipe_is_written_to_and_stays() {
        use std::os::unix::fs::FileTypeExt;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let pipe = folder.path().join("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
        assert!(made.success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe)
        });
        write(&pipe, b"through").expect("written");
        assert_eq!(reader.join().expect("joined").expect("read"), b"through");
        let metadata = fs::symlink_metadata(&pipe).expect("it is there");
        assert!(metadata.file_type().is_fifo());
    }

    #[test]
    fn what_cannot_be_written_is_said() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let said = write(folder.path(), b"none").expect_err("refused");
        assert!(said.ends_with("is a directory"), "{said}");
        let said = write(&folder.path().join("no/such"), b"none").expect_err("refused");
        assert!(
            said.ends_with("no/such: cannot be written: no such file or directory"),
            "{said}"
        );
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("bound");
        let said = write(&socket, b"none").expect_err("refused");
        assert!(said.contains("is neither a file"), "{said}");
    }
}
