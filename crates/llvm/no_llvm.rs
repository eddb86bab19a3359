//! What the build says where there is no LLVM to link: the build script's, and the tests'.

use std::path::Path;

/// The release whose interface the code is written to.
pub const RELEASE: &str = "19";

/// What is missing, the packages that have it, and the way without: in one paragraph. `given` is what the
/// environment's `INVAR_LLVM_CONFIG` names.
pub fn no_config(given: Option<&Path>) -> String {
    let where_to = match given {
        Some(file) => format!(
            "INVAR_LLVM_CONFIG names {}, which is not its llvm-config",
            file.display()
        ),
        None => "its llvm-config was not found".to_string(),
    };
    format!(
        "the feature `llvm-static` links LLVM {RELEASE}, and {where_to}: install its development files \
         (Debian and Ubuntu: llvm-{RELEASE}-dev libzstd-dev zlib1g-dev, Fedora: llvm{RELEASE}-devel \
         libzstd-devel zlib-devel, Homebrew: llvm@{RELEASE} zstd), give the path of llvm-config in INVAR_LLVM_CONFIG, or build without the \
         feature: the library is then loaded at run time"
    )
}
