//! What is kept on disk for later processes: compiled kernels, and kernels translated from sources of other languages.
//!
//! A folder of files, each named by the SHA-256 of everything that its contents follow from. A file is
//! written beside its place and moved there, so that several processes can use one folder; it carries
//! a checksum, and one that does not match counts as missing. When the folder outgrows its bound, the
//! files that were not used for longest go. Every failure of the file system means only that a kernel
//! is made again.
//!
//! What lies there is run, and a checksum says nothing of who made it. So the folder and its files must be this
//! user's own, and no one else may be able to write them (`folder.rs`); a folder that is not so is not used, and
//! [`cache_refusal`] says why.
//!
//! The folder is `INVAR_CACHE_DIR`, else `invar` in the user's cache folder; `INVAR_CACHE=0` turns it
//! off. Deliberately absent: what the contents are, and what they follow from.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use invar_ir::diagnostic::path_text;
use sha2::{Digest, Sha256};

mod folder;

use folder::{Folder, Unusable};

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
///
/// ```
/// use invar_cache::Key;
/// assert_ne!(Key::of(&[b"ab", b"c"]), Key::of(&[b"a", b"bc"]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key([u8; 32]);

impl Key {
    /// The key of everything that an entry's contents follow from.
    pub fn of(parts: &[&[u8]]) -> Key {
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

/// A folder of what was made before.
#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
    bound_bytes: u64,
    writes: AtomicU32,
}

impl Cache {
    /// The cache that the environment asks for, if any.
    pub fn from_environment() -> Option<Cache> {
        if is_off() {
            return None;
        }
        let folder = folder_of(&|name| std::env::var_os(name))?;
        // Without a `/` or `/.` at its end, behind which a link would be followed.
        let cache = Cache::new(folder.components().collect(), BOUND_BYTES);
        // So that what keeps it from being used is known from the start.
        cache.folder(false);
        Some(cache)
    }

    /// A cache in a folder, of at most so many bytes.
    pub fn new(folder: PathBuf, bound_bytes: u64) -> Cache {
        Cache {
            folder,
            bound_bytes,
            writes: AtomicU32::new(0),
        }
    }

    /// The folder, if it is one that may be used.
    fn folder(&self, create: bool) -> Option<Folder> {
        match Folder::open(&self.folder, create) {
            Ok(folder) => Some(folder),
            Err(Unusable::Missing) => None,
            Err(Unusable::Refused(why)) => {
                let sentence = format!(
                    "compiled kernels are not kept in {}, since {why}",
                    path_text(&self.folder)
                );
                lock(&REFUSAL).get_or_insert(sentence);
                None
            }
        }
    }

    /// What was stored under a key, unless it is gone or damaged.
    pub fn load(&self, key: &Key) -> Option<Vec<u8>> {
        // More than all entries may have together is none.
        let (mut file, used) = self.folder(false)?.read(&key.name(), self.bound_bytes)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        let rest = bytes.strip_prefix(MAGIC)?;
        let (sum, contents) = rest.split_at_checked(32)?;
        if sum != checksum(key, contents) {
            return None;
        }
        let now = SystemTime::now();
        if now.duration_since(used).is_ok_and(|age| age > STALE) {
            let _ = file.set_modified(now);
        }
        Some(contents.to_vec())
    }

    /// Stores something under a key.
    pub fn store(&self, key: &Key, contents: &[u8]) {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let Some(folder) = self.folder(true) else {
            return;
        };
        if !folder.takes((MAGIC.len() + 32 + contents.len()) as u64) {
            return;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let beside = format!("{TEMPORARY}{}-{number}", std::process::id());
        let written = folder.create(&beside).and_then(|mut file| {
            file.write_all(MAGIC)?;
            file.write_all(&checksum(key, contents))?;
            file.write_all(contents)?;
            folder.rename(&beside, &key.name())
        });
        if written.is_err() {
            folder.remove(&beside);
            return;
        }
        let before = self.writes.fetch_add(1, Ordering::Relaxed);
        if before.is_multiple_of(WRITES) {
            self.tidy(&folder);
        }
    }

    /// Removes what was used longest ago, where there is too much, and what will not be finished.
    fn tidy(&self, folder: &Folder) {
        let now = SystemTime::now();
        let mut files = Vec::new();
        for (name, size, used) in folder.files() {
            if name.starts_with(TEMPORARY) {
                if now.duration_since(used).is_ok_and(|age| age > ABANDONED) {
                    folder.remove(&name);
                }
            } else if name.len() == 64 && name.bytes().all(|b| b.is_ascii_hexdigit()) {
                files.push((used, size, name));
            }
        }
        let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
        if total <= self.bound_bytes {
            return;
        }
        files.sort();
        for (_, size, name) in files {
            // Some room, so that not every write removes something.
            if total <= self.bound_bytes / 4 * 3 {
                return;
            }
            if folder.remove(&name) {
                total -= size;
            }
        }
    }
}

/// Whether the environment says that nothing is kept.
fn is_off() -> bool {
    std::env::var_os("INVAR_CACHE").is_some_and(|text| text.to_string_lossy().trim() == "0")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No panic can leave what it holds half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why the folder that the environment asks for was not used.
static REFUSAL: Mutex<Option<String>> = Mutex::new(None);

/// Why compiled kernels are not kept on disk, if the folder for them was found to be one that others than this user
/// can write: one sentence, to be shown. Kernels run all the same, compiled anew by each process.
///
/// ```
/// assert_eq!(invar_cache::cache_refusal(), None);
/// ```
pub fn cache_refusal() -> Option<String> {
    lock(&REFUSAL).clone()
}

/// The folder that the environment asks for, if any. A user's folders are absolute; what is not is ignored, as the
/// XDG base directory specification says.
fn folder_of(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let absolute = |name: &str| set(name).filter(|path| path.is_absolute());
    if let Some(folder) = set("INVAR_CACHE_DIR") {
        return Some(folder);
    }
    if cfg!(target_os = "macos") {
        return Some(absolute("HOME")?.join("Library/Caches/invar"));
    }
    if cfg!(windows) {
        return Some(absolute("LOCALAPPDATA")?.join("invar/cache"));
    }
    let home = || Some(absolute("HOME")?.join(".cache"));
    Some(absolute("XDG_CACHE_HOME").or_else(home)?.join("invar"))
}

/// What the names of unfinished files begin with.
const TEMPORARY: &str = "unfinished-";

fn checksum(key: &Key, contents: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(key.0);
    hash.update(contents);
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    #[cfg(unix)]
    use std::path::Path;

    use super::*;

    impl Cache {
        fn path(&self, key: &Key) -> PathBuf {
            self.folder.join(key.name())
        }
    }

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
    fn relative_folders_of_the_user_are_ignored() {
        let with = |set: &[(&str, &str)]| {
            folder_of(&|name| {
                let found = set.iter().find(|(n, _)| *n == name);
                found.map(|(_, value)| value.into())
            })
        };
        let home = ("HOME", "/home/u");
        let is = |path: &str| Some(PathBuf::from(path));
        assert_eq!(with(&[("INVAR_CACHE_DIR", "here"), home]), is("here"));
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[("HOME", "u")]), None);
        if cfg!(target_os = "linux") {
            assert_eq!(with(&[("XDG_CACHE_HOME", "/c"), home]), is("/c/invar"));
            for nothing in ["", "c", "./c", "../c"] {
                let set = [("XDG_CACHE_HOME", nothing), home];
                assert_eq!(with(&set), is("/home/u/.cache/invar"), "{nothing}");
            }
        }
    }

    /// What others could have written is never given, and what is there stays as it is.
    #[cfg(unix)]
    #[test]
    fn what_others_can_write_is_not_used() {
        use std::os::unix::fs::{PermissionsExt, symlink};

        let parent = tempfile::tempdir().expect("a temporary folder");
        let cache = |name: &str| Cache::new(parent.path().join(name), BOUND_BYTES);
        let mode = |path: &Path, mode: u32| {
            fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("ours");
        };
        let own = cache("own");
        own.store(&key(1), b"code");
        let found = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!(found(&own.folder), 0o700);
        assert_eq!(found(&own.path(&key(1))), 0o600);
        for writable in [0o720, 0o702, 0o777, 0o1777] {
            mode(&own.folder, writable);
            assert_eq!(own.load(&key(1)), None, "{writable:o}");
            own.store(&key(2), b"more");
            assert!(!own.path(&key(2)).exists(), "{writable:o}");
        }
        // Whichever test was first.
        assert!(cache_refusal().is_some_and(|why| why.lines().count() == 1));
        let Err(Unusable::Refused(why)) = Folder::open(&own.folder, false) else {
            panic!("others can write it");
        };
        assert!(why.contains("others can write it"), "{why}");
        // Who may only read it harms nothing.
        mode(&own.folder, 0o755);
        assert_eq!(own.load(&key(1)).as_deref(), Some(&b"code"[..]));
        for writable in [0o620, 0o602] {
            mode(&own.path(&key(1)), writable);
            assert_eq!(own.load(&key(1)), None, "{writable:o}");
        }
        own.store(&key(1), b"again");
        assert_eq!(own.load(&key(1)).as_deref(), Some(&b"again"[..]));
        // An entry elsewhere, and a folder elsewhere.
        let elsewhere = parent.path().join("elsewhere");
        fs::rename(own.path(&key(1)), &elsewhere).expect("moved");
        symlink(&elsewhere, own.path(&key(1))).expect("linked");
        assert_eq!(own.load(&key(1)), None);
        own.store(&key(1), b"again");
        assert_eq!(own.load(&key(1)).as_deref(), Some(&b"again"[..]));
        assert!(elsewhere.is_file());
        let linked = cache("linked");
        symlink(&own.folder, &linked.folder).expect("linked");
        assert_eq!(linked.load(&key(1)), None);
        linked.store(&key(3), b"more");
        assert!(!own.path(&key(3)).exists());
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

    /// A process that writes a file beyond its limit gets a signal that ends it.
    #[cfg(unix)]
    #[test]
    fn a_limit_on_files_ends_no_process() {
        const LIMITED: &str = "INVAR_TEST_LIMITED_FOLDER";
        if let Some(folder) = std::env::var_os(LIMITED) {
            let cache = Cache::new(PathBuf::from(folder), BOUND_BYTES);
            cache.store(&key(1), b"code");
            assert_eq!(cache.load(&key(1)), None);
            assert_eq!(cache.folder(false).expect("a folder").files(), []);
            return;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let program = std::env::current_exe().expect("this program");
        let limited = std::process::Command::new("sh")
            .args(["-c", "ulimit -f 0 && exec \"$0\" --exact \"$1\""])
            .arg(program)
            .arg("tests::a_limit_on_files_ends_no_process")
            .env(LIMITED, folder.path())
            .output()
            .expect("a shell");
        let said = String::from_utf8_lossy(&limited.stdout);
        assert!(limited.status.success(), "{}: {said}", limited.status);
        assert!(said.contains("1 passed"), "{said}");
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
        cache.tidy(&cache.folder(false).expect("a folder"));
        let there: Vec<u8> = (0..20).filter(|n| cache.load(&key(*n)).is_some()).collect();
        assert_eq!(there, [0, 14, 15, 16, 17, 18, 19]);
        assert!(strange.exists() && !left.exists());
    }
}
