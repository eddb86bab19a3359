//! The committed corpus and seeded mutations of it, through parsing, printing, decoding, encoding
//! and the verifier: what fuzzing checks for hours, for a few seconds on a stable compiler.

use std::fs;
use std::path::{Path, PathBuf};

use invar_ir::random::split_mix_64;
use invar_ir::{Op, binary, text};

#[path = "../../../../fuzz/checks.rs"]
mod checks;

/// Mutations of each kind.
const ROUNDS: usize = 20_000;

/// The files under a folder of the repository.
fn files(folder: &str) -> Vec<PathBuf> {
    fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder of the corpus") {
            let path = entry.expect("an entry of the folder").path();
            if path.is_dir() {
                collect(&path, found);
            } else {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    collect(&root.join(folder), &mut found);
    found.sort();
    assert!(found.len() >= 3, "{folder} holds {} files", found.len());
    found
}

fn texts() -> Vec<String> {
    let mut paths = files("tests/ir");
    paths.retain(|p| p.extension().is_some_and(|e| e == "inv"));
    paths.extend(files("tests/corpus/text"));
    paths
        .iter()
        .map(|p| String::from_utf8_lossy(&fs::read(p).expect("a text")).into_owned())
        .collect()
}

fn encodings() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = files("tests/corpus/binary")
        .iter()
        .map(|p| fs::read(p).expect("bytes"))
        .collect();
    for source in texts() {
        if let Ok(module) = text::parse("corpus", &source) {
            all.push(binary::encode_for_key(&module));
            if source.len() < 400 {
                all.push(binary::encode(&module));
            }
        }
    }
    all
}

/// Choices from a seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        split_mix_64(&mut self.0)
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() % count.max(1) as u64) as usize
    }

    fn of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// A text in pieces: words, names, numbers, marks, and the space between.
fn pieces(source: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut last = None;
    for c in source.chars() {
        let kind = if c.is_alphanumeric() || matches!(c, '_' | '.' | '%' | '@') {
            0
        } else if c.is_whitespace() {
            1
        } else {
            2
        };
        match pieces.last_mut() {
            Some(piece) if last == Some(kind) && kind != 2 => piece.push(c),
            _ => pieces.push(c.to_string()),
        }
        last = Some(kind);
    }
    pieces
}

fn mutated_text(random: &mut Random, texts: &[Vec<String>], words: &[String]) -> String {
    let mut out = random.of(texts).clone();
    for _ in 0..=random.below(4) {
        if out.is_empty() {
            break;
        }
        let at = random.below(out.len());
        let to = (at + 1 + random.below(8)).min(out.len());
        match random.below(7) {
            0 => drop(out.drain(at..to)),
            1 => {
                let copy = out[at..to].to_vec();
                let to = random.below(out.len());
                out.splice(to..to, copy);
            }
            2 => out[at] = random.of(words).clone(),
            3 => out.insert(at, random.of(words).clone()),
            4 => {
                let other = random.below(out.len());
                out.swap(at, other);
            }
            5 => {
                // A stretch of another text.
                let other = random.of(texts);
                let from = random.below(other.len());
                let until = (from + random.below(40)).min(other.len());
                out.splice(at..to, other[from..until].iter().cloned());
            }
            _ => {
                let c = char::from_u32(random.below(0x300) as u32).unwrap_or('?');
                let place = random.below(out[at].chars().count() + 1);
                let byte = out[at]
                    .char_indices()
                    .nth(place)
                    .map_or(out[at].len(), |(i, _)| i);
                out[at].insert(byte, c);
            }
        }
    }
    out.concat()
}

fn mutated_bytes(random: &mut Random, all: &[Vec<u8>]) -> Vec<u8> {
    const BYTES: [u8; 10] = [0, 1, 2, 3, 24, 0x7f, 0x80, 0x81, 0xfe, 0xff];
    let mut out = random.of(all).clone();
    for _ in 0..=random.below(3) {
        if out.is_empty() {
            break;
        }
        let at = random.below(out.len());
        let to = (at + 1 + random.below(6)).min(out.len());
        match random.below(7) {
            0 => out[at] ^= 1 << random.below(8),
            1 => out[at] = *random.of(&BYTES),
            2 => out.insert(at, *random.of(&BYTES)),
            3 => drop(out.drain(at..to)),
            4 => {
                let copy = out[at..to].to_vec();
                out.splice(at..at, copy);
            }
            5 => out[at] = out[at].wrapping_add(1),
            _ => {
                let other = random.of(all);
                let from = random.below(other.len());
                let until = (from + random.below(16)).min(other.len());
                out.splice(at..to, other[from..until].iter().copied());
            }
        }
    }
    out
}

#[test]
fn the_corpus_holds() {
    let modules = texts().iter().filter(|t| checks::check_text(t)).count();
    assert!(modules >= 10, "only {modules} texts are modules");
    let modules = encodings()
        .iter()
        .filter(|b| checks::check_binary(b))
        .count();
    assert!(modules >= 10, "only {modules} encodings are modules");
}

#[test]
fn mutated_texts_hold() {
    let texts: Vec<Vec<String>> = texts().iter().map(|t| pieces(t)).collect();
    let mut words: Vec<String> = Op::all().map(|op| op.name().to_string()).collect();
    words.extend(texts.iter().flatten().filter(|p| p.len() < 24).cloned());
    words.sort();
    words.dedup();
    let mut random = Random(0x5eed_0001);
    let modules = (0..ROUNDS)
        .filter(|_| checks::check_text(&mutated_text(&mut random, &texts, &words)))
        .count();
    // Both ways out are tried.
    assert!(
        modules > ROUNDS / 100 && modules < ROUNDS,
        "{modules} of {ROUNDS} are modules"
    );
}

#[test]
fn mutated_bytes_hold() {
    let all = encodings();
    let mut random = Random(0x5eed_0002);
    let modules = (0..ROUNDS * 4)
        .filter(|_| checks::check_binary(&mutated_bytes(&mut random, &all)))
        .count();
    assert!(
        modules > ROUNDS / 100 && modules < ROUNDS * 4,
        "{modules} are modules"
    );
}
