//! What the library is called where it is used: `invar`, or as the author's manifest renames it.
//!
//! Deliberately absent: what else stands in manifests. Of theirs only the lines of dependencies are looked at.

use std::path::Path;

use proc_macro2::{Group, Ident, TokenStream, TokenTree};

/// The package, as manifests call it.
const PACKAGE: &str = "invar-lang";

/// What a macro wrote, by the library's name there.
pub fn named(words: TokenStream) -> TokenStream {
    match other_name() {
        Some(name) => renamed(words, &name),
        None => words,
    }
}

/// The name of the library in the package that is being compiled, if it is another one.
fn other_name() -> Option<String> {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR")?;
    let manifests = Path::new(&folder).ancestors().map(|folder| {
        let text = std::fs::read_to_string(folder.join("Cargo.toml"));
        text.unwrap_or_default()
    });
    name_in(manifests)
}

/// The same of the package's manifest and of those in the folders around.
fn name_in(mut manifests: impl Iterator<Item = String>) -> Option<String> {
    let own = manifests.next()?;
    let mut inherited = Vec::new();
    for (key, line) in dependencies(&own) {
        if renames(&line) {
            return Some(key.replace('-', "_"));
        }
        if line.contains("workspace=true") {
            inherited.push(key);
        }
    }
    let around = manifests.filter(|_| !inherited.is_empty());
    let mut around = around.flat_map(|text| dependencies(&text));
    let (key, _) = around.find(|(key, line)| inherited.contains(key) && renames(line))?;
    Some(key.replace('-', "_"))
}

fn renames(line: &str) -> bool {
    line.contains(&format!("package=\"{PACKAGE}\""))
}

/// What a manifest says of its dependencies, line by line and without blanks: the name, and the rest.
fn dependencies(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut section: Option<String> = None;
    let mut is_dependencies = false;
    for line in text.lines() {
        let line: String = line
            .split('#')
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        if let Some(head) = line.strip_prefix('[') {
            let head = head.trim_end_matches(']');
            is_dependencies = head.ends_with("dependencies");
            // `[dependencies.name]`
            section = head
                .rsplit_once('.')
                .filter(|(before, _)| before.ends_with("dependencies"))
                .map(|(_, name)| unquoted(name));
            continue;
        }
        if let Some(name) = &section {
            found.push((name.clone(), line));
        } else if is_dependencies && let Some((key, value)) = line.split_once('=') {
            // `name = { ... }`, or `name.workspace = true`
            let (name, rest) = key.split_once('.').unwrap_or((key, ""));
            let rest = if rest.is_empty() {
                value.to_string()
            } else {
                format!("{rest}={value}")
            };
            found.push((unquoted(name), rest));
        }
    }
    found
}

fn unquoted(name: &str) -> String {
    name.trim_matches(['"', '\'']).to_string()
}

/// The words with `::invar` called otherwise.
fn renamed(words: TokenStream, name: &str) -> TokenStream {
    let mut out = TokenStream::new();
    // How many colons stand in front: of `field: ::invar` three.
    let mut colons = 0;
    for word in words {
        let after_colons = colons >= 2;
        colons = match &word {
            TokenTree::Punct(p) if p.as_char() == ':' => colons + 1,
            _ => 0,
        };
        out.extend([match word {
            TokenTree::Ident(it) if after_colons && it == "invar" => {
                TokenTree::Ident(Ident::new(name, it.span()))
            }
            TokenTree::Group(group) => {
                let mut made = Group::new(group.delimiter(), renamed(group.stream(), name));
                made.set_span(group.span());
                TokenTree::Group(made)
            }
            other => other,
        }]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{name_in, renamed};

    fn name(manifests: &[&str]) -> Option<String> {
        name_in(manifests.iter().map(|text| text.to_string()))
    }

    #[test]
    fn a_manifest_renames_the_library() {
        let cases: &[(&[&str], Option<&str>)] = &[
            (&["[dependencies]\ninvar-lang = \"1\""], None),
            (
                &["[dependencies]\ninv = { package = \"invar-lang\", version = \"1\" }"],
                Some("inv"),
            ),
            (
                &["[dev-dependencies.my-inv]\nversion = \"1\"\npackage = \"invar-lang\" # here"],
                Some("my_inv"),
            ),
            (
                &["[target.'cfg(unix)'.dependencies]\ninv.package = \"invar-lang\""],
                Some("inv"),
            ),
            (
                &[
                    "[dependencies]\ninv.workspace = true",
                    "",
                    "[workspace.dependencies]\ninv = { package = \"invar-lang\", path = \"x\" }",
                ],
                Some("inv"),
            ),
            (
                &[
                    "[dependencies]\nother.workspace = true",
                    "[workspace.dependencies]\ninv = { package = \"invar-lang\", path = \"x\" }",
                ],
                None,
            ),
            (&["[features]\ninv = [\"package=invar-lang\"]"], None),
        ];
        for (manifests, expected) in cases {
            assert_eq!(name(manifests).as_deref(), *expected, "{manifests:?}");
        }
    }

    #[test]
    fn paths_to_the_library_are_renamed() {
        let words = "::invar::kernel::expansion::at(x: ::invar::A, { ::invar::Device })"
            .parse()
            .expect("words");
        let made = renamed(words, "inv").to_string();
        let expected: proc_macro2::TokenStream =
            "::inv::kernel::expansion::at(x: ::inv::A, { ::inv::Device })"
                .parse()
                .expect("words");
        assert_eq!(made, expected.to_string());
    }
}
