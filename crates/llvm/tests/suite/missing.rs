//! What a build says on a machine that has no LLVM to link, and what it links beside LLVM.

use std::fs;
use std::path::{Path, PathBuf};

#[path = "../../libraries.rs"]
mod libraries;
#[path = "../../no_llvm.rs"]
mod no_llvm;

#[test]
fn a_build_without_llvm_names_the_packages_and_the_way_without() {
    for given in [None, Some(Path::new("/nowhere/llvm-config"))] {
        let said = no_llvm::no_config(given);
        // More than one line would be more than one error of cargo's.
        assert!(!said.contains('\n'), "{said}");
        let release = no_llvm::RELEASE;
        for wanted in [
            "`llvm-static`",
            "INVAR_LLVM_CONFIG",
            &format!("Fedora: llvm{release}-devel libzstd-devel zlib-devel"),
            &format!("Debian and Ubuntu: llvm-{release}-dev libzstd-dev zlib1g-dev"),
            &format!("Homebrew: llvm@{release} zstd"),
            "build without the feature",
        ] {
            assert!(said.contains(wanted), "{wanted:?} is not in: {said}");
        }
        assert_eq!(
            given.is_some(),
            said.contains("/nowhere/llvm-config"),
            "{said}"
        );
        assert_eq!(given.is_none(), said.contains("was not found"), "{said}");
    }
}

/// A folder of empty files.
struct Folder(PathBuf);

impl Folder {
    fn of(name: &str, files: &[&str]) -> Folder {
        let name = format!("invar-libraries-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        for file in files {
            let file = folder.join(file);
            fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
            fs::write(file, "").expect("a file");
        }
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn on_windows_libraries_that_are_not_there_are_left_out() {
    let folder = Folder::of("windows", &["lib/zstd.lib", "other/xml.lib"]);
    let lib = folder.0.join("lib");
    let found = |given: &str| libraries::of_windows(given, std::slice::from_ref(&lib));
    let library = |name: &str, folder| {
        Some(libraries::Library {
            name: String::from(name),
            folder,
        })
    };
    for part in ["psapi", "ws2_32", "ntdll"] {
        assert_eq!(found(&format!("{part}.lib")), library(part, None));
    }
    assert_eq!(found("zstd.lib"), library("zstd", Some(lib.clone())));
    for absent in ["libxml2s.lib", "xml2s.lib"] {
        assert_eq!(found(absent), None);
    }
    let other = folder.0.join("other");
    let by_path = |file: &str| found(&other.join(file).display().to_string());
    assert_eq!(by_path("xml.lib"), library("xml", Some(other.clone())));
    assert_eq!(by_path("libxml2s.lib"), None);
    assert_eq!(by_path("psapi.lib"), None);
}

#[test]
fn an_archive_is_found_beside_the_packages_of_a_collection() {
    let files = [
        "brew/Cellar/llvm@19/19.1.7/lib/libLLVMCore.a",
        "brew/lib/libzstd.dylib",
        "brew/opt/zstd/lib/libzstd.a",
        "ports/libexec/llvm-19/lib/libLLVMCore.a",
        "ports/lib/libzstd.a",
    ];
    let folder = Folder::of("archive", &files);
    let near = |lib: &str, name| libraries::archive_near(&folder.0.join(lib), name);
    let brew = folder.0.join("brew/opt/zstd/lib/libzstd.a");
    assert_eq!(near("brew/Cellar/llvm@19/19.1.7/lib", "zstd"), Some(brew));
    let ports = folder.0.join("ports/lib/libzstd.a");
    assert_eq!(near("ports/libexec/llvm-19/lib", "zstd"), Some(ports));
    assert_eq!(near("brew/Cellar/llvm@19/19.1.7/lib", "nothing"), None);
}

#[test]
fn on_unix_only_what_llvm_compresses_with_is_linked() {
    let found = ["-lz", "/usr/lib/libzstd.so", "-lzstd", "-lxml2", "-lm"].map(libraries::of_unix);
    assert_eq!(found, [Some("z"), Some("zstd"), Some("zstd"), None, None]);
}
