//! Compiled kernels on disk.
//!
//! A folder of files, each named by the SHA-256 of everything that its contents follow from. A file is
//! written beside its place and moved there, so that several processes can use one folder; it carries
//! a checksum, and one that does not match is as good as none. When the folder outgrows its bound, the
//! files that were not used for longest go. Every failure of the file system means only that a kernel
//! is compiled again.
//!
//! The folder is `INVAR_CACHE_DIR`, else `invar` in the user's cache folder; `INVAR_CACHE=0` turns it
//! off.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use crate::environment;

/// What every file begins with; the last byte is the version of the form.
const MAGIC: &[u8; 8] = b"INVAROB\x01";
/// The folder holds at most so many bytes, by default.
const BOUND_BYTES: u64 = 256 << 20;
/// The folder is looked over after so many writes of a process.
const WRITES: u32 = 64;
/// A file is marked as used at most so often.
const STALE: Duration = Duration::from_secs(24 * 3600);
/// What a crashed process left is removed after so long.
const ABANDONED: Duration = Duration::from_secs(3600);

/// What an entry is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key([u8; 32]);

impl Key {
    /// The key of everything that a compiled kernel follows from.
    pub(crate) fn of(parts: &[&[u8]]) -> Key {
        let mut hash = Sha256::new();
        for part in parts {
            // Lengths keep two lists of parts apart that only divide the same bytes differently.
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Key(hash.finalize().into())
    }

    fn name(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// A folder of compiled kernels.
#[derive(Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
    bound_bytes: u64,
    writes: AtomicU32,
}

impl Cache {
    /// The cache that the environment asks for, if any.
    pub(crate) fn from_environment() -> Option<Cache> {
        if !environment::caches() {
            return None;
        }
        let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
        let folder = match set("INVAR_CACHE_DIR") {
            Some(folder) => PathBuf::from(folder),
            None if cfg!(target_os = "macos") => {
                Path::new(&set("HOME")?).join("Library/Caches/invar")
            }
            None if cfg!(windows) => Path::new(&set("LOCALAPPDATA")?).join("invar/cache"),
            None => match set("XDG_CACHE_HOME") {
                Some(folder) => Path::new(&folder).join("invar"),
                None => Path::new(&set("HOME")?).join(".cache/invar"),
            },
        };
        Some(Cache::new(folder, BOUND_BYTES))
    }

    pub(crate) fn new(folder: PathBuf, bound_bytes: u64) -> Cache {
        Cache {
            folder,
            bound_bytes,
            writes: AtomicU32::new(0),
        }
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.folder.join(key.name())
    }

    /// What was stored under a key, unless it is gone or damaged.
    pub(crate) fn load(&self, key: &Key) -> Option<Vec<u8>> {
        let path = self.path(key);
        // A pipe or a device would be read for ever, and more than all entries may have together is none.
        let about = fs::metadata(&path).ok()?;
        if !about.is_file() || about.len() > self.bound_bytes {
            return None;
        }
        let mut file = File::open(&path).ok()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        let rest = bytes.strip_prefix(MAGIC)?;
        let (sum, contents) = rest.split_at_checked(32)?;
        if sum != checksum(key, contents) {
            return None;
        }
        let used = file.metadata().and_then(|m| m.modified()).ok();
        let now = SystemTime::now();
        if used.is_some_and(|used| now.duration_since(used).is_ok_and(|age| age > STALE)) {
            let _ = OpenOptions::new()
                .write(true)
                .open(&path)
                .and_then(|file| file.set_modified(now));
        }
        Some(contents.to_vec())
    }

    /// Stores something under a key.
    pub(crate) fn store(&self, key: &Key, contents: &[u8]) {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        if !self.folder.is_dir() && create_private(&self.folder).is_err() {
            return;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        let beside = self.folder.join(format!("{TEMPORARY}{process}-{number}"));
        let written = File::create_new(&beside).and_then(|mut file| {
            file.write_all(MAGIC)?;
            file.write_all(&checksum(key, contents))?;
            file.write_all(contents)?;
            fs::rename(&beside, self.path(key))
        });
        if written.is_err() {
            let _ = fs::remove_file(&beside);
            return;
        }
        let before = self.writes.fetch_add(1, Ordering::Relaxed);
        if before.is_multiple_of(WRITES) {
            self.tidy();
        }
    }

    /// Removes what was used longest ago, where there is too much, and what nobody will finish.
    fn tidy(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return;
        };
        let now = SystemTime::now();
        let mut files = Vec::new();
        for entry in entries.flatten() {
            let Ok(about) = entry.metadata() else {
                continue;
            };
            let used = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(TEMPORARY) {
                if now.duration_since(used).is_ok_and(|age| age > ABANDONED) {
                    let _ = fs::remove_file(entry.path());
                }
            } else if name.len() == 64 && name.bytes().all(|b| b.is_ascii_hexdigit()) {
                files.push((used, about.len(), entry.path()));
            }
        }
        let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
        if total <= self.bound_bytes {
            return;
        }
        files.sort();
        for (_, size, path) in files {
            // Some room, so that not every write removes something.
            if total <= self.bound_bytes / 4 * 3 {
                return;
            }
            if fs::remove_file(path).is_ok() {
                total -= size;
            }
        }
    }
}

/// What the names of unfinished files begin with.
const TEMPORARY: &str = "unfinished-";

fn checksum(key: &Key, contents: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(key.0);
    hash.update(contents);
    hash.finalize().into()
}

/// A folder that only this user can change: what lies there is run.
fn create_private(folder: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u8) -> Key {
        Key::of(&[&[n], b"kernel"])
    }

    #[test]
    fn what_is_stored_is_found_until_it_is_damaged() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cache = Cache::new(folder.path().join("new"), BOUND_BYTES);
        assert_eq!(cache.load(&key(1)), None);
        cache.store(&key(1), b"code");
        assert_eq!(cache.load(&key(1)).as_deref(), Some(&b"code"[..]));
        assert_eq!(cache.load(&key(2)), None);
        assert_ne!(Key::of(&[b"ab", b"c"]), Key::of(&[b"a", b"bc"]));
        let path = cache.path(&key(1));
        let whole = fs::read(&path).expect("read");
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 4;
            fs::write(&path, &bytes).expect("written");
            assert_eq!(cache.load(&key(1)), None, "byte {at} was changed");
            fs::write(&path, &whole[..at]).expect("written");
            assert_eq!(cache.load(&key(1)), None, "cut to {at} bytes");
        }
        // An entry of another key does not serve.
        fs::write(&path, &whole).expect("written");
        fs::copy(&path, cache.path(&key(2))).expect("copied");
        assert_eq!(cache.load(&key(2)), None);
        cache.store(&key(1), b"other");
        assert_eq!(cache.load(&key(1)).as_deref(), Some(&b"other"[..]));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_never_ends_is_no_entry() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cache = Cache::new(folder.path().to_path_buf(), BOUND_BYTES);
        std::os::unix::fs::symlink("/dev/zero", cache.path(&key(1))).expect("linked");
        assert_eq!(cache.load(&key(1)), None);
        cache.store(&key(1), b"code");
        assert_eq!(cache.load(&key(1)).as_deref(), Some(&b"code"[..]));
    }

    #[test]
    fn more_than_all_entries_may_have_is_not_read() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cache = Cache::new(folder.path().to_path_buf(), 1000);
        let most = 1000 - MAGIC.len() - 32;
        cache.store(&key(1), &vec![7; most]);
        assert_eq!(cache.load(&key(1)), Some(vec![7; most]));
        cache.store(&key(1), &vec![7; most + 1]);
        assert_eq!(cache.load(&key(1)), None);
    }

    #[test]
    fn a_folder_that_cannot_be_is_no_cache_and_no_error() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("file");
        fs::write(&file, b"in the way").expect("written");
        let cache = Cache::new(file, BOUND_BYTES);
        cache.store(&key(1), b"code");
        assert_eq!(cache.load(&key(1)), None);
    }

    #[test]
    fn what_was_used_longest_ago_goes_when_there_is_too_much() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cache = Cache::new(folder.path().to_owned(), 10_000);
        let start = SystemTime::now() - Duration::from_secs(30 * 24 * 3600);
        for n in 0..20 {
            cache.store(&key(n), &[n; 1000]);
            let file = OpenOptions::new()
                .write(true)
                .open(cache.path(&key(n)))
                .expect("there");
            file.set_modified(start + Duration::from_secs(n.into()))
                .expect("dated");
        }
        let strange = folder.path().join("notes.txt");
        fs::write(&strange, b"not ours").expect("written");
        let left = folder.path().join(format!("{TEMPORARY}1-1"));
        fs::write(&left, b"half").expect("written");
        let file = OpenOptions::new().write(true).open(&left).expect("there");
        file.set_modified(start).expect("dated");
        // This use makes it young.
        assert!(cache.load(&key(0)).is_some());
        cache.tidy();
        let there: Vec<u8> = (0..20).filter(|n| cache.load(&key(*n)).is_some()).collect();
        assert_eq!(there, [0, 14, 15, 16, 17, 18, 19]);
        assert!(strange.exists() && !left.exists());
    }
}
