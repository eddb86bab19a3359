//! Links LLVM into whatever uses this crate, for the feature `static`; without it nothing is done, for then
//! the library is loaded at run time.
//!
//! `llvm-config` says where the libraries are and what they need in turn: the one that the environment's
//! `INVAR_LLVM_CONFIG` names, or else `llvm-config-19` or `llvm-config` of the search path.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "libraries.rs"]
mod libraries;
#[path = "no_llvm.rs"]
mod no_llvm;

use no_llvm::RELEASE;

/// The parts of LLVM that are used: two processors' code generators, the passes, and the linker of objects
/// in memory; `inkwell` names functions of the others.
const COMPONENTS: [&str; 7] = [
    "x86",
    "aarch64",
    "passes",
    "mcjit",
    "orcjit",
    "irreader",
    "bitwriter",
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=libraries.rs");
    println!("cargo::rerun-if-changed=no_llvm.rs");
    println!("cargo::rerun-if-env-changed=INVAR_LLVM_CONFIG");
    if env::var_os("CARGO_FEATURE_STATIC").is_some()
        && let Err(why) = link()
    {
        println!("cargo::error={why}");
    }
}

fn link() -> Result<(), String> {
    let config = Config::find()?;
    let mut components = vec!["--link-static", "--libnames"];
    components.extend(COMPONENTS);
    let folder = PathBuf::from(config.ask(&["--libdir"])?);
    println!("cargo::rustc-link-search=native={}", folder.display());
    for file in config.ask(&components)?.split_whitespace() {
        let stem = file.strip_suffix(".a").or(file.strip_suffix(".lib"));
        let stem =
            stem.ok_or_else(|| format!("{} gives no archive: {file}", config.0.display()))?;
        // An archive of ours would hold all of LLVM again.
        println!(
            "cargo::rustc-link-lib=static:-bundle={}",
            stem.strip_prefix("lib").unwrap_or(stem)
        );
    }
    components[1] = "--system-libs";
    let os = env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    let msvc = env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|kind| kind == "msvc");
    // Where Microsoft's linker looks too.
    let listed = env::var_os("LIB").unwrap_or_default();
    let folders: Vec<PathBuf> = std::iter::once(folder.clone())
        .chain(env::split_paths(&listed))
        .collect();
    for given in config.ask(&components)?.split_whitespace() {
        if msvc {
            if let Some(library) = libraries::of_windows(given, &folders) {
                if let Some(folder) = library.folder {
                    println!("cargo::rustc-link-search=native={}", folder.display());
                }
                println!("cargo::rustc-link-lib={}", library.name);
            }
        } else if let Some(name) = libraries::of_unix(given) {
            match os.as_str() {
                // Others have it not, and a library of Homebrew's must not be loaded by what is given to them.
                "macos" if name != "z" => link_archive(&folder, name)?,
                _ => link_system(name),
            }
        }
    }
    match os.as_str() {
        _ if msvc => {}
        // A part of the system, of which there is no archive.
        "macos" => println!("cargo::rustc-link-lib=c++"),
        _ => link_system("stdc++"),
    }
    Ok(())
}

/// Makes an archive a part of this crate, for by its name a linker of Apple's takes the library beside it, if
/// it looks there at all.
fn link_archive(libraries: &Path, name: &str) -> Result<(), String> {
    let archive = libraries::archive_near(libraries, name).ok_or_else(|| {
        format!(
            "LLVM needs lib{name}.a, which is in none of the folders above {}: `brew install {name}`",
            libraries.display()
        )
    })?;
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo names no OUT_DIR")?);
    let copied = std::fs::copy(&archive, out.join(format!("lib{name}.a")));
    copied.map_err(|error| format!("{} cannot be copied: {error}", archive.display()))?;
    println!("cargo::rustc-link-search=native={}", out.display());
    println!("cargo::rustc-link-lib=static={name}");
    Ok(())
}

/// Links a library of the system: its archive, where the C++ compiler knows one.
fn link_system(name: &str) {
    let compiler = env::var("CXX").unwrap_or_else(|_| "c++".to_string());
    let archive = format!("lib{name}.a");
    let found = Command::new(compiler)
        .arg(format!("-print-file-name={archive}"))
        .output();
    let found = found.map(|out| PathBuf::from(String::from_utf8_lossy(&out.stdout).trim()));
    // A compiler that knows none repeats the name.
    match found {
        Ok(path) if path.is_absolute() && path.is_file() => {
            if let Some(folder) = path.parent() {
                println!("cargo::rustc-link-search=native={}", folder.display());
            }
            println!("cargo::rustc-link-lib=static:-bundle={name}");
        }
        _ => println!("cargo::rustc-link-lib={name}"),
    }
}

/// The program that knows a release of LLVM.
struct Config(PathBuf);

impl Config {
    fn find() -> Result<Config, String> {
        let given = env::var_os("INVAR_LLVM_CONFIG").filter(|file| !file.is_empty());
        let names: Vec<PathBuf> = match &given {
            Some(file) => vec![file.into()],
            None => vec![
                format!("llvm-config-{RELEASE}").into(),
                "llvm-config".into(),
            ],
        };
        let right = |config: &Config| {
            let version = config.ask(&["--version"]).unwrap_or_default();
            version.split('.').next() == Some(RELEASE)
        };
        let found = names.into_iter().map(Config).find(right);
        found.ok_or_else(|| no_llvm::no_config(given.as_deref().map(Path::new)))
    }

    fn ask(&self, what: &[&str]) -> Result<String, String> {
        let path = self.0.display();
        let out = Command::new(&self.0)
            .args(what)
            .output()
            .map_err(|error| format!("{path} cannot be run: {error}"))?;
        if !out.status.success() {
            let said = String::from_utf8_lossy(&out.stderr);
            let said: Vec<&str> = said.split_whitespace().collect();
            return Err(format!(
                "{path} {} failed: {}",
                what.join(" "),
                said.join(" ")
            ));
        }
        Ok(String::from_utf8_lossy(&out.stdout).trim().to_string())
    }
}
