//! What a build says on a machine that has no LLVM to link.

use std::path::Path;

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
