//! What holds for the repository as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files below a folder that the repository could hold: no build outputs, nothing hidden.
fn files(folder: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') || name == "target" {
            continue;
        }
        if path.is_dir() {
            files(&path, out);
        } else {
            out.push(path);
        }
    }
}

fn all_files() -> Vec<PathBuf> {
    let mut out = Vec::new();
    files(&root(), &mut out);
    out.sort();
    out
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|e| e == extension)
}

/// Crates in the order of docs/architecture.md: each may depend only on earlier ones.
const ORDER: [&str; 18] = [
    "invar-layout",
    "invar-texture",
    "invar-ir",
    "invar-cache",
    "invar-interp",
    "invar-wgsl",
    "invar-codegen",
    "invar-conformance",
    "invar-prove",
    "invar-llvm",
    "invar-msl",
    "invar-runtime",
    "invar-macros",
    "invar-lang",
    "invar-command",
    "invar-lang-cli",
    "invar-py",
    "invar-bench",
];

/// The crates that a manifest names in its tables of dependencies, those of single targets too, and whether a table is of
/// tests.
fn dependencies(manifest: &str) -> Vec<(String, bool)> {
    let is_of = |table: &str, kind: &str| {
        let of_target = table.strip_suffix(kind).and_then(|t| t.strip_suffix('.'));
        table == kind || of_target.is_some_and(|target| target.starts_with("target."))
    };
    // Whether it is one of dependencies, and then of tests.
    let tests = |table: &str| {
        let all = ["dependencies", "build-dependencies", "dev-dependencies"];
        let kind = all.iter().find(|kind| is_of(table, kind))?;
        Some(*kind == "dev-dependencies")
    };
    // The facade is named by its library.
    let package = |name: &str| match name.trim_matches('"') {
        "invar" => "invar-lang".to_string(),
        other => other.to_string(),
    };
    let mut found = Vec::new();
    let (mut of_many, mut of_one) = (None, None);
    for line in manifest.lines().map(str::trim) {
        if let Some(head) = line.strip_prefix('[') {
            let table = head.split(']').next().unwrap_or_default();
            let parts = table.rsplit_once('.');
            of_many = tests(table);
            of_one = parts.and_then(|(table, _)| tests(table));
            let named = parts.zip(of_one);
            found.extend(named.map(|((_, name), of_tests)| (package(name), of_tests)));
            continue;
        }
        let Some(of_tests) = of_many.or(of_one) else {
            continue;
        };
        let renamed = line.split_once("package = \"");
        let name = match renamed {
            Some((_, name)) => name.split('"').next(),
            None if of_many.is_some() => line.split(['.', ' ', '=']).next(),
            None => None,
        };
        let name = name.filter(|name| !name.is_empty() && !name.starts_with('#'));
        found.extend(name.map(|name| (package(name), of_tests)));
    }
    found
}

#[test]
fn dependencies_stand_in_many_tables() {
    let manifest = "[package]
name = \"invar-ir\"
[dependencies]
# invar-cache = \"1\"
invar.workspace = true
other = { package = \"invar-ir\", version = \"1\" }
[target.'cfg(unix)'.dependencies]
invar-llvm = { workspace = true }

[build-dependencies]
invar-wgsl = \"1\"
[target.\"cfg(windows)\".dev-dependencies]
invar-msl = \"1\"
[dependencies.invar-runtime]
version = \"1\"
[dev-dependencies.short]
package = \"invar-prove\"
[features]
invar-py = []
[workspace.dependencies]
invar-interp = \"1\"";
    let of_all = ["invar-lang", "invar-ir", "invar-llvm", "invar-wgsl"];
    let mut expected: Vec<(String, bool)> = of_all.map(|name| (name.to_string(), false)).into();
    expected.push(("invar-msl".to_string(), true));
    expected.push(("invar-runtime".to_string(), false));
    expected.push(("short".to_string(), true));
    expected.push(("invar-prove".to_string(), true));
    assert_eq!(dependencies(manifest), expected);
}

/// What tests of any crate may use: it compares devices with the reference machine.
const OF_TESTS: &str = "invar-conformance";

#[test]
fn crates_depend_only_downward() {
    let place: BTreeMap<&str, usize> = ORDER.iter().enumerate().map(|(i, n)| (*n, i)).collect();
    let mut seen = 0;
    for file in all_files() {
        if file.file_name().is_none_or(|n| n != "Cargo.toml")
            || file.starts_with(root().join("fuzz"))
        {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a manifest");
        let Some(name) = text.lines().find_map(|l| l.strip_prefix("name = \"")) else {
            continue;
        };
        let name = name.trim_end_matches('"');
        let here = place
            .get(name)
            .unwrap_or_else(|| panic!("{name} has no place in the order of crates"));
        seen += 1;
        for (dependency, of_tests) in dependencies(&text) {
            let Some(there) = place.get(&*dependency) else {
                continue;
            };
            // Its own tests may want features of it.
            let is_allowed = of_tests && (dependency == OF_TESTS || dependency == name);
            assert!(
                there < here || is_allowed,
                "{name} depends on {dependency}, which is not below it"
            );
        }
    }
    assert!(seen >= 18, "only {seen} manifests were found");
}

#[test]
fn every_rule_of_the_memory_model_has_a_test_named_after_it() {
    let model = fs::read_to_string(root().join("docs/memory-model.md")).expect("the memory model");
    let mut rules = BTreeSet::new();
    for part in model.split("**").skip(1).step_by(2) {
        let id = part.split([' ', '.']).next().unwrap_or_default();
        let mut chars = id.chars();
        if chars.next().is_some_and(|c| c.is_ascii_uppercase())
            && id.len() > 1
            && chars.all(|c| c.is_ascii_digit())
        {
            rules.insert(id.to_string());
        }
    }
    assert!(rules.len() >= 50, "only {} rules were found", rules.len());
    let mut tested = BTreeSet::new();
    for file in all_files() {
        if has_extension(&file, "inv") {
            let name = file
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            tested.extend(name.split('-').next().map(str::to_string));
        } else if has_extension(&file, "rs") {
            let text = fs::read_to_string(&file).unwrap_or_default();
            for function in text.split("fn ").skip(1) {
                let id = function.split('_').next().unwrap_or_default();
                tested.insert(id.to_uppercase());
            }
        }
    }
    let missing: Vec<_> = rules.difference(&tested).collect();
    assert!(missing.is_empty(), "rules without a test: {missing:?}");
}

#[test]
fn files_stay_readable() {
    let long: Vec<String> = all_files()
        .iter()
        .filter(|f| has_extension(f, "rs") || has_extension(f, "py"))
        .filter_map(|f| {
            let lines = fs::read_to_string(f).unwrap_or_default().lines().count();
            (lines > 1500 && f.file_stem().is_none_or(|n| n != "table"))
                .then(|| format!("{}: {lines} lines", f.display()))
        })
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

/// The functions of a file and how many lines each has, in code as rustfmt writes it: one ends where a brace stands as
/// far to the right as it begins.
fn functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let mut words = code.split([' ', '(', '<']);
        let is_before = |word: &&str| {
            let is = ["const", "unsafe", "async", "extern", "\"C\""].contains(word);
            is || word.starts_with("pub") || *word == "crate)" || *word == "super)"
        };
        let Some("fn") = words.by_ref().find(|word| !is_before(word)) else {
            continue;
        };
        let name = words.next().unwrap_or_default().to_string();
        let indent = &line[..line.len() - code.len()];
        let (end, declared) = (format!("{indent}}}"), format!("{indent})"));
        let is_over =
            |line: &str| line == end || (line.starts_with(&declared) && line.ends_with(';'));
        if code.ends_with('{') || code.ends_with('(') || code.ends_with("where") {
            let length = lines[start..].iter().position(|line| is_over(line));
            found.push((name, length.unwrap_or(0) + 1));
        }
    }
    found
}

#[test]
fn functions_stay_readable() {
    const MOST: usize = 150;
    let mut seen = 0;
    let mut long = Vec::new();
    for file in all_files().iter().filter(|f| has_extension(f, "rs")) {
        let text = fs::read_to_string(file).unwrap_or_default();
        for (name, lines) in functions(&text) {
            seen += 1;
            if lines > MOST {
                long.push(format!("{}: {name} has {lines} lines", file.display()));
            }
        }
    }
    assert!(seen > 5000, "only {seen} functions were found");
    assert!(long.is_empty(), "{}", long.join("\n"));
}

/// The modules of a crate by their paths (the crate itself has none), and their code without comments and tests.
fn modules(source: &Path) -> BTreeMap<Vec<String>, String> {
    let mut all = Vec::new();
    files(source, &mut all);
    let mut found = BTreeMap::new();
    for file in all.iter().filter(|f| has_extension(f, "rs")) {
        let path = file
            .strip_prefix(source)
            .expect("it lies there")
            .with_extension("");
        let names = path.iter().map(|name| name.to_string_lossy().into_owned());
        let mut names: Vec<String> = names.collect();
        names.pop_if(|last| last == "mod" || last == "lib");
        let text = fs::read_to_string(file).expect("it can be read");
        let code = text.split("\nmod tests {").next().unwrap_or_default();
        let lines = code
            .lines()
            .map(|line| line.split("//").next().unwrap_or_default());
        found.insert(names, lines.collect::<Vec<_>>().join("\n"));
    }
    found
}

/// The paths that a `use` has in its braces, each in full.
fn flattened(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else {
        return vec![
            path.split(" as ")
                .next()
                .unwrap_or_default()
                .trim()
                .to_string(),
        ];
    };
    let inside = rest.rsplit_once('}').map_or(rest, |(inside, _)| inside);
    let (mut depth, mut start, mut out) = (0, 0, Vec::new());
    for (at, c) in inside.char_indices().chain([(inside.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let part = inside[start..at].trim();
                let parts = flattened(part).into_iter().filter(|part| !part.is_empty());
                out.extend(parts.map(|part| format!("{}{part}", before.trim())));
                start = at + 1;
            }
            _ => {}
        }
    }
    out
}

/// The paths that code names, and whether it hands them on.
fn paths(code: &str) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    let mut rest = String::new();
    for statement in code.split_inclusive(';') {
        let lines = statement.lines().map(str::trim_start);
        let start = lines
            .clone()
            .position(|l| l.starts_with("use ") || l.starts_with("pub"));
        let text: Vec<&str> = lines.skip(start.unwrap_or(0)).collect();
        let text = text.join(" ");
        match text.split_once("use ") {
            Some((before, path)) if start.is_some() && !before.contains('{') => {
                let path = path.trim_end_matches(';');
                let all = flattened(path).into_iter();
                found.extend(all.map(|path| (path, before.starts_with("pub"))));
            }
            _ => rest.push_str(statement),
        }
    }
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let words = rest
        .split(|c| !is_name(c))
        .filter(|word| word.contains("::"));
    found.extend(words.map(|word| (word.to_string(), false)));
    found
}

/// The module that a path leads to from another: where the name that it ends with is defined. None for a path
/// out of the crate.
fn target(
    all: &BTreeMap<Vec<String>, Vec<(String, bool)>>,
    from: &[String],
    path: &str,
    depth: u32,
) -> Option<Vec<String>> {
    let mut names: Vec<String> = path
        .split("::")
        .map(|name| name.trim().to_string())
        .collect();
    let child = |at: &[String], name: &String| [at, std::slice::from_ref(name)].concat();
    let first = names[0].clone();
    let mut at = match first.as_str() {
        "crate" => Vec::new(),
        "self" => from.to_vec(),
        "super" => from[..from.len().checked_sub(1)?].to_vec(),
        _ if all.contains_key(&child(from, &first)) => {
            names.insert(0, String::new());
            from.to_vec()
        }
        _another_crate => return None,
    };
    for name in &names[1..] {
        let inner = child(&at, name);
        if name == "super" {
            at.pop();
        } else if all.contains_key(&inner) {
            at = inner;
        } else {
            let mut handed_on = all[&at].iter().filter(|(_, is_public)| *is_public);
            let named = handed_on.find(|(path, _)| path.rsplit("::").next() == Some(name));
            return match named {
                Some((path, _)) if depth < 8 => target(all, &at, path, depth + 1),
                Some(_) | None => Some(at),
            };
        }
    }
    Some(at)
}

/// What each module of a crate needs of the others. A module is a file, the root of the crate too; it needs those whose
/// names it uses, which are those that define them and not those that hand them on. Tests count for none.
fn needs(code: &BTreeMap<Vec<String>, String>) -> BTreeMap<Vec<String>, BTreeSet<Vec<String>>> {
    let all = code.iter().map(|(name, code)| (name.clone(), paths(code)));
    let all: BTreeMap<Vec<String>, Vec<(String, bool)>> = all.collect();
    let mut needs = BTreeMap::new();
    for (from, paths) in &all {
        let targets = paths
            .iter()
            .filter_map(|(path, _)| target(&all, from, path, 0));
        needs.insert(from.clone(), targets.filter(|to| to != from).collect());
    }
    needs
}

/// The types with inherent methods in a module, as they are named there, and the code of these.
fn inherent(code: &str) -> impl Iterator<Item = (String, &str)> {
    code.split("\nimpl").skip(1).filter_map(|rest| {
        let (head, rest) = rest.split_once("{\n")?;
        let mut depth = 0;
        let head = head.split(" where").next().unwrap_or_default();
        let head = head.replace("->", "");
        // Without what stands in angle brackets, and those.
        let plain = head.chars().filter(|c| {
            depth += i32::from(*c == '<') - i32::from(*c == '>');
            depth == 0 && *c != '>'
        });
        let plain: String = plain.collect();
        let mut words = plain.split_whitespace();
        let (name, more) = (words.next()?, words.next());
        let block = rest.split("\n}").next().unwrap_or_default();
        more.is_none().then(|| (name.to_string(), block))
    })
}

/// The module that defines a type, by the name that it has in another; none where it is of another crate.
fn definer(
    all: &BTreeMap<Vec<String>, Vec<(String, bool)>>,
    code: &BTreeMap<Vec<String>, String>,
    from: &[String],
    name: &str,
) -> Option<Vec<String>> {
    let is_here = ["struct ", "enum ", "union "].iter().any(|kind| {
        let mut after = code[from].split(kind).skip(1);
        after.any(|rest| word(rest) == name)
    });
    if is_here {
        return Some(from.to_vec());
    }
    let mut named = all[from].iter().map(|(path, _)| path);
    let path = named.find(|path| path.rsplit("::").next() == Some(name))?;
    target(all, from, path, 0)
}

/// The name that a text begins with.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

/// Adds what paths do not show: inherent methods of a type that stand in several modules call each other through
/// `self` and `Self`. How many such calls of another module's methods there are comes with it.
fn add_needs_of_methods(
    code: &BTreeMap<Vec<String>, String>,
    needs: &mut BTreeMap<Vec<String>, BTreeSet<Vec<String>>>,
) -> usize {
    let all = code.iter().map(|(name, code)| (name.clone(), paths(code)));
    let all: BTreeMap<Vec<String>, Vec<(String, bool)>> = all.collect();
    let mut blocks = Vec::new();
    for (module, text) in code {
        for (name, block) in inherent(text) {
            let name = name.rsplit("::").next().unwrap_or_default().to_string();
            if let Some(of) = definer(&all, code, module, &name) {
                blocks.push((module, (of, name), block));
            }
        }
    }
    let mut homes: BTreeMap<_, BTreeSet<&Vec<String>>> = BTreeMap::new();
    for (module, ty, block) in &blocks {
        for line in block.lines() {
            let Some((before, after)) = line.strip_prefix("    ").and_then(|l| l.split_once("fn "))
            else {
                continue;
            };
            let is_head = |w: &str| w.starts_with("pub") || ["const", "unsafe"].contains(&w);
            if !before.starts_with(' ') && before.split_whitespace().all(is_head) {
                homes.entry((ty, word(after))).or_default().insert(module);
            }
        }
    }
    let mut count = 0;
    for (module, ty, block) in &blocks {
        let dense: String = block.chars().filter(|c| !c.is_whitespace()).collect();
        for receiver in ["self.", "Self::"] {
            for rest in dense.split(receiver).skip(1) {
                let name = word(rest);
                let is_call = ["(", "::<"]
                    .iter()
                    .any(|c| rest[name.len()..].starts_with(c));
                let homes = homes.get(&(ty, name)).filter(|_| is_call);
                let others = homes.into_iter().flatten().copied();
                for home in others.filter(|home| home != module) {
                    count += 1;
                    let own: &mut BTreeSet<_> = needs.entry((*module).clone()).or_default();
                    own.insert(home.clone());
                }
            }
        }
    }
    count
}

/// Modules that need one another stand and fall together, so there are few of them: three at most.
fn assert_no_large_circles(mut needs: BTreeMap<Vec<String>, BTreeSet<Vec<String>>>) {
    const MOST: usize = 3;
    // What each needs, whether by itself or through others.
    loop {
        let before = needs.clone();
        for targets in needs.values_mut() {
            let more = targets.iter().filter_map(|to| before.get(to)).flatten();
            let more: Vec<Vec<String>> = more.cloned().collect();
            targets.extend(more);
        }
        if needs == before {
            break;
        }
    }
    for (from, targets) in &needs {
        let circle = targets
            .iter()
            .filter(|to| needs.get(*to).is_some_and(|back| back.contains(from)));
        let path = |names: &Vec<String>| match names.is_empty() {
            true => "the root".to_string(),
            false => names.join("::"),
        };
        let circle: Vec<String> = circle.map(path).collect();
        assert!(
            circle.len() <= MOST,
            "need one another: {}",
            circle.join(", ")
        );
    }
}

/// Of every crate but `ir`, whose rows of operations build instructions to say what they are.
#[test]
fn modules_form_no_large_circles() {
    let mut edges = 0;
    for entry in fs::read_dir(root().join("crates")).expect("the crates") {
        let folder = entry.expect("a crate").path();
        if folder.ends_with("ir") {
            continue;
        }
        let code = modules(&folder.join("src"));
        let needs = needs(&code);
        edges += needs.values().map(BTreeSet::len).sum::<usize>();
        assert_no_large_circles(needs);
    }
    assert!(edges > 800, "only {edges} needs of modules were found");
}

/// The same by methods, too, of all types that have some in several modules.
#[test]
fn modules_of_one_type_form_no_large_circles() {
    let mut calls = 0;
    for entry in fs::read_dir(root().join("crates")).expect("the crates") {
        let folder = entry.expect("a crate").path();
        if folder.ends_with("ir") {
            continue;
        }
        let code = modules(&folder.join("src"));
        let mut needs = needs(&code);
        calls += add_needs_of_methods(&code, &mut needs);
        assert_no_large_circles(needs);
    }
    assert!(calls > 2000, "only {calls} calls were found");
}

/// Each device but the reference machine can be left out, and is so by its own module and one row of a table.
#[test]
fn devices_are_named_in_two_places() {
    for device in ["cpu", "gpu"] {
        let feature = format!("feature = \"{device}\"");
        let own = root().join("crates/runtime/src").join(device);
        let mut places = Vec::new();
        for file in all_files().iter().filter(|f| has_extension(f, "rs")) {
            let is_source = file.iter().any(|name| name == "src") && !file.starts_with(&own);
            let count = fs::read_to_string(file)
                .unwrap_or_default()
                .matches(&feature)
                .count();
            if is_source && count > 0 {
                let name = file.strip_prefix(root().join("crates")).expect("a crate's");
                places.extend(std::iter::repeat_n(name.display().to_string(), count));
            }
        }
        let mut expected = vec!["runtime/src/devices.rs", "runtime/src/lib.rs"];
        if device == "cpu" {
            // Code is emitted by its compiler.
            expected.insert(0, "invar/src/lib.rs");
        }
        assert_eq!(places, expected, "{device}");
    }
}

/// A package holds what lies in its crate's folder, and nothing else.
#[test]
fn packages_hold_their_licences() {
    for folder in fs::read_dir(root().join("crates")).expect("crates") {
        let folder = folder.expect("a crate").path();
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        if manifest.contains("publish = false") {
            continue;
        }
        for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let text = fs::read_to_string(folder.join(licence));
            assert!(text.is_ok(), "{}: no {licence}", folder.display());
        }
    }
}

/// Options of the process would be those of everybody who uses the same LLVM in it.
#[test]
fn no_options_of_the_process_are_set() {
    let mut places = Vec::new();
    for file in all_files().iter().filter(|f| has_extension(f, "rs")) {
        let is_source = file.iter().any(|name| name == "src");
        let text = fs::read_to_string(file).unwrap_or_default();
        if is_source && text.contains("LLVMParseCommandLineOptions") {
            places.push(
                file.strip_prefix(root())
                    .expect("it lies there")
                    .to_path_buf(),
            );
        }
    }
    // The list of all functions of the library.
    assert_eq!(places, [PathBuf::from("crates/llvm/src/functions.rs")]);
}

/// The map of the code has every crate, and no file that is not there.
#[test]
fn the_map_names_what_is_there() {
    let map = fs::read_to_string(root().join("docs/architecture.md")).expect("the map");
    for entry in fs::read_dir(root().join("crates")).expect("the crates") {
        let name = entry.expect("a crate").file_name();
        let name = format!("`crates/{}`", name.to_string_lossy());
        let has_row = map
            .lines()
            .any(|line| line.starts_with("| ") && line.contains(&name));
        assert!(has_row, "{name} has no row in docs/architecture.md");
    }
    let all = all_files();
    let named = map.split('`').skip(1).step_by(2);
    let named: Vec<&str> = named.filter(|name| name.ends_with(".rs")).collect();
    assert!(named.len() > 20, "only {} files are named", named.len());
    for name in named {
        let is_there = all.iter().any(|file| file.ends_with(name));
        assert!(
            is_there,
            "docs/architecture.md names `{name}`, which is not there"
        );
    }
}
