//! Fingerprints the reader's sources, so that translated kernels on disk are never those of another build. Where the
//! sources are not beside this crate, its version stands for them.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;
use std::path::{Path, PathBuf};

fn files(folder: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, out);
        } else {
            out.push(path);
        }
    }
}

fn main() {
    let mut all = Vec::new();
    for folder in [
        "src",
        "headers",
        "../ir/src",
        "../llvm/src",
        "../texture/src",
        "../wgsl/src",
    ] {
        if Path::new(folder).is_dir() {
            println!("cargo:rerun-if-changed={folder}");
            files(Path::new(folder), &mut all);
        }
    }
    println!("cargo:rerun-if-changed=build.rs");
    all.sort();
    let mut hash = DefaultHasher::new();
    for path in all {
        hash.write(path.to_string_lossy().as_bytes());
        hash.write(&std::fs::read(&path).unwrap_or_default());
    }
    println!("cargo:rustc-env=INVAR_READER={:016x}", hash.finish());
}
