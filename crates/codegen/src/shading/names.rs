//! Names: the author's, made fit for a shading language.

use std::collections::{HashMap, HashSet};

/// What a language takes for a name.
pub(crate) trait Language {
    /// Words that mean something else there, or in what the writer puts around a kernel.
    const RESERVED: &'static str;

    /// An author's name with nothing in it that the language does not take: letters, digits and single underscores.
    fn fit(name: &str) -> String;

    /// Whether a name is of a family that begins alike. What comes behind it would not take it out of there.
    fn is_of_a_family(name: &str) -> bool;
}

/// Letters, digits and single underscores, none at the end; and none in front, unless they are kept.
pub(crate) fn plain(name: &str, keeps_first: bool) -> String {
    let mut out = String::new();
    for c in name.chars() {
        let c = if c.is_ascii_alphanumeric() { c } else { '_' };
        let is_more = out.ends_with('_') || out.is_empty() && !keeps_first;
        if !(c == '_' && is_more) {
            out.push(c);
        }
    }
    out.trim_end_matches('_').to_string()
}

/// The names given so far.
#[derive(Debug)]
pub(crate) struct Names<L> {
    taken: HashSet<String>,
    /// The number behind the last name like this one.
    counts: HashMap<String, u32>,
    language: std::marker::PhantomData<L>,
}

impl<L: Language> Default for Names<L> {
    fn default() -> Names<L> {
        let reserved = L::RESERVED.split_whitespace();
        Names {
            taken: reserved.map(str::to_string).collect(),
            counts: HashMap::new(),
            language: std::marker::PhantomData,
        }
    }
}

impl<L: Language> Names<L> {
    /// A name like the author's that nothing else has.
    pub(crate) fn unique(&mut self, name: &str) -> String {
        let mut base = L::fit(name);
        if L::is_of_a_family(&base) {
            base = format!("my_{base}");
        }
        if self.taken.insert(base.clone()) {
            return base;
        }
        let count = self.counts.entry(base.clone()).or_insert(1);
        loop {
            *count += 1;
            let name = format!("{base}_{count}");
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }

    /// Takes words as they are; from now on nothing else gets them.
    pub(crate) fn reserve(&mut self, words: &[&str]) {
        self.taken.extend(words.iter().map(|word| word.to_string()));
    }
}
