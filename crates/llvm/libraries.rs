//! Which libraries LLVM's own need in turn, and where those are: the build script's, and the tests'.

use std::path::{Path, PathBuf};

/// Libraries of the system that LLVM's own need, where they are part of what is linked. Others serve parts
/// of LLVM that are not: solvers and readers of other formats.
const SYSTEM: [&str; 2] = ["z", "zstd"];

/// Parts of Windows, for which each linker there has what it needs.
const WINDOWS: [&str; 7] = [
    "psapi", "shell32", "ole32", "uuid", "advapi32", "ws2_32", "ntdll",
];

/// A library for the linker, and where it is, if the linker does not know that.
#[derive(Debug, PartialEq, Eq)]
pub struct Library {
    pub name: String,
    pub folder: Option<PathBuf>,
}

/// The library's name, if it is one of those that are needed: of `-lz`, or of a path to `libz.so`.
pub fn of_unix(given: &str) -> Option<&'static str> {
    let file = Path::new(given).file_name()?.to_str()?;
    let name = match file.strip_prefix("-l") {
        Some(name) => name,
        None => file.strip_prefix("lib")?.split('.').next()?,
    };
    SYSTEM.into_iter().find(|known| *known == name)
}

/// The library that `psapi.lib`, or a path, names: a part of Windows, or a file that is there, by its path
/// or in one of the folders. LLVM's own archives for Windows name a libxml2 that they do not bring, and what
/// would need it is not linked; a linker that is given the name of a file that is not there does not begin.
pub fn of_windows(given: &str, folders: &[PathBuf]) -> Option<Library> {
    let path = Path::new(given);
    let name = path.file_name()?.to_str()?;
    let name = name.strip_suffix(".lib").unwrap_or(name);
    let file = format!("{name}.lib");
    let library = |folder| Library {
        name: name.to_string(),
        folder,
    };
    let own = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    if own.is_none() && WINDOWS.contains(&name.to_ascii_lowercase().as_str()) {
        return Some(library(None));
    }
    let holds = |folder: &&Path| folder.join(&file).is_file();
    let found = match own {
        Some(folder) => Some(folder).filter(holds),
        None => folders.iter().map(PathBuf::as_path).find(holds),
    };
    found.map(|folder| library(Some(folder.to_path_buf())))
}

/// A library's archive where LLVM's own folder belongs to a collection of packages, as those of Homebrew and
/// MacPorts: in the folder of the libraries of all, or in that of the package.
pub fn archive_near(libraries: &Path, name: &str) -> Option<PathBuf> {
    let file = format!("lib{name}.a");
    let places = libraries.ancestors().flat_map(|above| {
        [
            above.join("lib").join(&file),
            above.join("opt").join(name).join("lib").join(&file),
        ]
    });
    let mut there = places.filter(|place| place.is_file());
    there.next()
}
