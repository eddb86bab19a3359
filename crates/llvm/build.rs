//! Links LLVM into whatever uses this crate, for the feature `static`; without it nothing is done, for then
//! the library is loaded at run time.
//!
//! `llvm-config` says where the libraries are and what they need in turn: the one that the environment's
//! `INVAR_LLVM_CONFIG` names, or else `llvm-config-19` or `llvm-config` of the search path.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

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

/// Libraries of the system that LLVM's own need, where they are part of what is linked. Others serve parts
/// of LLVM that are not: solvers and readers of other formats.
const SYSTEM: [&str; 2] = ["z", "zstd"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
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
    println!(
        "cargo::rustc-link-search=native={}",
        config.ask(&["--libdir"])?
    );
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
    for library in config.ask(&components)?.split_whitespace() {
        if msvc {
            let name = library.strip_suffix(".lib").unwrap_or(library);
            // By its path, if it is none of the system's.
            let path = Path::new(name);
            match (path.parent(), path.file_name()) {
                (Some(folder), Some(name)) if !folder.as_os_str().is_empty() => {
                    println!("cargo::rustc-link-search=native={}", folder.display());
                    println!("cargo::rustc-link-lib={}", name.display());
                }
                _ => println!("cargo::rustc-link-lib={name}"),
            }
        } else if let Some(name) = system_library(library) {
            link_system(name);
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

/// The library's name, if it is one of those that are needed: of `-lz`, or of a path to `libz.so`.
fn system_library(given: &str) -> Option<&'static str> {
    let file = Path::new(given).file_name()?.to_str()?;
    let name = match file.strip_prefix("-l") {
        Some(name) => name,
        None => file.strip_prefix("lib")?.split('.').next()?,
    };
    SYSTEM.into_iter().find(|known| *known == name)
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
