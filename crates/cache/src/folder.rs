//! The folder of the cache, as the system has it.
//!
//! On Unix the folder is opened once for each use, looked at as it was opened, and its files are reached from there: so
//! no other can be put in its place in between. It, and every file that is read, must belong to the user whom the
//! process acts for, with no right of others to write, and be no link.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::SystemTime;

/// Why a folder is not used.
#[derive(Debug)]
pub(crate) enum Unusable {
    /// It is not there, and cannot be made.
    Missing,
    /// It is not the user's alone, or not a folder that can be read; why, to stand after "since".
    #[cfg_attr(
        not(unix),
        allow(dead_code, reason = "elsewhere nobody looks whose a folder is")
    )]
    Refused(String),
}

#[cfg(unix)]
pub(crate) struct Folder(File);

#[cfg(unix)]
impl Folder {
    pub(crate) fn open(path: &Path, create: bool) -> Result<Folder, Unusable> {
        use rustix::fs::{Mode, OFlags, open};
        use rustix::io::Errno;
        use std::os::unix::fs::{DirBuilderExt, MetadataExt};

        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = match open(path, flags, Mode::empty()) {
            Err(Errno::NOENT) if create => {
                let mut builder = std::fs::DirBuilder::new();
                let made = builder.recursive(true).mode(0o700).create(path);
                made.map_err(|_| Unusable::Missing)?;
                open(path, flags, Mode::empty())
            }
            opened => opened,
        };
        let folder = match opened {
            Ok(folder) => folder,
            // With both flags some systems say that a link is not a folder.
            Err(Errno::LOOP | Errno::NOTDIR) if path.is_symlink() => {
                let why = "it is a link: name the folder itself with INVAR_CACHE_DIR";
                return Err(Unusable::Refused(why.to_string()));
            }
            Err(Errno::ACCESS | Errno::PERM) => return Err(closed(path)),
            Err(Errno::NOTDIR) if path.exists() => {
                let why = "it is a file: name a folder with INVAR_CACHE_DIR";
                return Err(Unusable::Refused(why.to_string()));
            }
            Err(_) => return Err(Unusable::Missing),
        };
        let folder = File::from(folder);
        let about = folder.metadata().map_err(|_| Unusable::Missing)?;
        match others(about.uid(), about.mode()) {
            None => Ok(Folder(folder)),
            Some(why) => Err(Unusable::Refused(why)),
        }
    }

    /// A file of at most so many bytes, which no other user can have written, and when it was used last.
    pub(crate) fn read(&self, name: &str, most_bytes: u64) -> Option<(File, SystemTime)> {
        use rustix::fs::{Mode, OFlags, openat};
        use std::os::unix::fs::MetadataExt;

        // Opening a pipe would wait for who writes it.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(&self.0, name, flags, Mode::empty()).ok()?);
        let about = file.metadata().ok()?;
        let is_own = others(about.uid(), about.mode()).is_none();
        let usable = about.is_file() && about.len() <= most_bytes && is_own;
        let used = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        usable.then_some((file, used))
    }

    /// Whether a file may have so many bytes: a process that writes more than it may is ended.
    pub(crate) fn takes(&self, bytes: u64) -> bool {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize);
        limit.current.is_none_or(|most| bytes <= most)
    }

    /// A new file that only this user can read.
    pub(crate) fn create(&self, name: &str) -> io::Result<File> {
        use rustix::fs::{Mode, OFlags, openat};

        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        Ok(File::from(openat(&self.0, name, flags, mode)?))
    }

    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, from, &self.0, to)?)
    }

    /// Removes a file; gives whether it was there.
    pub(crate) fn remove(&self, name: &str) -> bool {
        rustix::fs::unlinkat(&self.0, name, rustix::fs::AtFlags::empty()).is_ok()
    }

    /// The files in it: name, size in bytes, and when each was used last.
    pub(crate) fn files(&self) -> Vec<(String, u64, SystemTime)> {
        use rustix::fs::{AtFlags, Dir, FileType, statat};
        use std::time::{Duration, UNIX_EPOCH};

        let Ok(entries) = Dir::read_from(&self.0) else {
            return Vec::new();
        };
        let about = |entry: rustix::fs::DirEntry| {
            let name = entry.file_name().to_str().ok()?.to_string();
            let about = statat(&self.0, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
            let is_file = FileType::from_raw_mode(about.st_mode).is_file();
            let used = u64::try_from(about.st_mtime).unwrap_or(0);
            let size = u64::try_from(about.st_size).unwrap_or(0);
            is_file.then_some((name, size, UNIX_EPOCH + Duration::from_secs(used)))
        };
        entries.flatten().filter_map(about).collect()
    }
}

/// Why a folder is not used that may not be opened: most often it is another user's.
#[cfg(unix)]
fn closed(path: &Path) -> Unusable {
    use std::os::unix::fs::MetadataExt;

    let why = match std::fs::symlink_metadata(path) {
        Ok(about) => others(about.uid(), about.mode()).unwrap_or_else(|| {
            format!(
                "it may not be read (mode {:o}): give yourself that right, or name another with INVAR_CACHE_DIR",
                about.mode() & 0o7777
            )
        }),
        Err(error) => {
            format!("it cannot be reached ({error}): name a folder of your own with INVAR_CACHE_DIR")
        }
    };
    Unusable::Refused(why)
}

/// Why a file or folder is not this user's alone, if it is not.
#[cfg(unix)]
fn others(owner: u32, mode: u32) -> Option<String> {
    const WRITABLE: u32 = 0o022;
    let user = rustix::process::geteuid().as_raw();
    if owner != user {
        return Some(format!(
            "it belongs to user {owner}, not to {user}: name a folder of your own with INVAR_CACHE_DIR"
        ));
    }
    (mode & WRITABLE != 0).then(|| {
        format!(
            "others can write it (mode {:o}): take that right from them, or name another with INVAR_CACHE_DIR",
            mode & 0o7777
        )
    })
}

/// Elsewhere a user's folders are guarded by the system.
#[cfg(not(unix))]
pub(crate) struct Folder(std::path::PathBuf);

#[cfg(not(unix))]
impl Folder {
    pub(crate) fn open(path: &Path, create: bool) -> Result<Folder, Unusable> {
        if path.is_dir() || create && std::fs::create_dir_all(path).is_ok() {
            return Ok(Folder(path.to_owned()));
        }
        Err(Unusable::Missing)
    }

    pub(crate) fn read(&self, name: &str, most_bytes: u64) -> Option<(File, SystemTime)> {
        let file = File::open(self.0.join(name)).ok()?;
        let about = file.metadata().ok()?;
        let used = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        (about.is_file() && about.len() <= most_bytes).then_some((file, used))
    }

    pub(crate) fn takes(&self, _bytes: u64) -> bool {
        true
    }

    pub(crate) fn create(&self, name: &str) -> io::Result<File> {
        File::create_new(self.0.join(name))
    }

    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.0.join(from), self.0.join(to))
    }

    pub(crate) fn remove(&self, name: &str) -> bool {
        std::fs::remove_file(self.0.join(name)).is_ok()
    }

    pub(crate) fn files(&self) -> Vec<(String, u64, SystemTime)> {
        let Ok(entries) = std::fs::read_dir(&self.0) else {
            return Vec::new();
        };
        let about = |entry: std::fs::DirEntry| {
            let about = entry.metadata().ok().filter(|about| about.is_file())?;
            let used = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            Some((entry.file_name().into_string().ok()?, about.len(), used))
        };
        entries.flatten().filter_map(about).collect()
    }
}
