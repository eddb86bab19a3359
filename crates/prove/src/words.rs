//! A report in words: what `invar prove` prints and `iv.prove` shows.

use std::collections::BTreeMap;

use invar_ir::{Dim, Module};

use crate::condition::Launches;
use crate::launch::Launch;
use crate::thread::{LARGEST_BUFFER, LARGEST_THREADGROUP};
use crate::{Doubt, Report, Verdict};

impl Verdict {
    /// The name: `proved`, `broken` or `open`.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Proved => "proved",
            Verdict::Broken => "broken",
            Verdict::Open => "open",
        }
    }
}

impl Report {
    /// Of which launches the verdict is: `every launch`, and what it has to fulfil.
    pub fn launches(&self) -> String {
        let dimensions = match &self.flat_dimensions[..] {
            ["z"] => "two-dimensional ",
            ["y", "z"] => "one-dimensional ",
            _others => "",
        };
        let mut conditions: Vec<String> = Vec::new();
        if dimensions.is_empty() {
            let flat = self.flat_dimensions.iter();
            conditions.extend(flat.map(|d| format!("grid.{d} == 1")));
        }
        conditions.extend(self.texts.iter().cloned());
        let whole = match self.whole.is_empty() {
            true => "",
            false => " of whole threadgroups",
        };
        let required = self.required.iter().filter(|r| !self.whole.contains(r));
        let required: Vec<&str> = required.map(String::as_str).collect();
        let with = match (conditions.is_empty(), required.is_empty()) {
            (true, _) => "",
            (false, true) => " with ",
            (false, false) => ", with ",
        };
        let required = match &required[..] {
            [] => String::new(),
            all => format!(" that fulfils its requires({})", all.join(", ")),
        };
        let conditions = conditions.join(" and ");
        format!("every {dimensions}launch{whole}{required}{with}{conditions}")
    }

    /// The launches in which every access is in bounds, if that is proved: no access is left that the author allows
    /// beyond, and what the kernel requires is not counted on, for that a device may not look at.
    pub fn in_bounds_in(&self) -> Option<Launches> {
        let all = self.verdict == Verdict::Proved && self.is_inside();
        all.then(|| self.launches_of(&[]))
    }

    /// As [`Report::in_bounds_in`] of a kernel that passes made from another, which is proved: they make no races, so
    /// it has none either. By itself it may not show, as where other threads make the iterations of a loop.
    pub fn in_bounds_as_made_from(&self, source: &Report) -> Option<Launches> {
        let is_free = source.verdict == Verdict::Proved && source.required.is_empty();
        (is_free && self.is_inside()).then(|| self.launches_of(&[source]))
    }

    /// Whether every access is in bounds, also where requirements are not looked at.
    fn is_inside(&self) -> bool {
        self.in_bounds == self.accesses && self.required.is_empty()
    }

    /// The launches that it is of, and others as well.
    fn launches_of(&self, others: &[&Report]) -> Launches {
        let (mut flat, mut conditions) = (Vec::new(), self.conditions.clone());
        for report in [&[self], others].concat() {
            let is_flat = |d: &Dim| report.flat_dimensions.contains(&d.name());
            flat.extend(Dim::ALL.into_iter().filter(is_flat));
            let more = report.conditions.iter();
            let more: Vec<_> = more.filter(|c| !conditions.contains(c)).cloned().collect();
            conditions.extend(more);
        }
        Launches::new(&flat, conditions)
    }

    /// Whether a launch is one of those that the report is of. What it does not say it does not fulfil; a
    /// scalar as large as no buffer counts as one.
    pub fn covers(&self, launch: &Launch) -> bool {
        let flat = |d: &Dim| {
            !self.flat_dimensions.contains(&d.name()) || launch.grid[*d as usize] == Some(1)
        };
        let threads = launch.threadgroup.iter().flatten().product::<i128>();
        let is_small = |length: &Option<i128>| length.is_none_or(|n| n <= LARGEST_BUFFER);
        Dim::ALL.iter().all(flat)
            && threads <= LARGEST_THREADGROUP
            && launch.numbers.iter().all(is_small)
            && self
                .conditions
                .iter()
                .all(|c| c.holds(launch) == Some(true))
    }

    /// The verdict in a sentence, and what is open, each on a line. `verified`: by proofs that were written
    /// down before.
    pub fn in_words(&self, module: &Module, verified: bool) -> String {
        let (name, launches) = (&self.kernel, self.launches());
        match self.verdict {
            Verdict::Proved => {
                let word = if verified { "verified" } else { "proved" };
                let accesses = match (self.accesses, self.in_bounds) {
                    (0, _) => "no access to memory".to_string(),
                    (1, 1) => "its access in bounds".to_string(),
                    (all, inside) if inside == all => format!("all {all} accesses in bounds"),
                    (all, inside) => {
                        format!(
                            "{inside} of {all} accesses in bounds and the others allowed beyond"
                        )
                    }
                };
                format!("{word} @{name}: no data race, {accesses}, for {launches}")
            }
            Verdict::Broken => {
                let is_written = self.counterexample.as_ref().is_some_and(|c| c.is_written);
                let whose = if is_written {
                    ", which its author wrote"
                } else {
                    ""
                };
                format!("broken @{name}: the checkers report this launch{whose}")
            }
            Verdict::Open => {
                let mut text = format!(
                    "open @{name}: {} of {} accesses in bounds and {} of {} pairs of accesses free of \
                     races, for {launches}",
                    self.in_bounds, self.accesses, self.apart, self.pairs
                );
                let line = |doubt: &Doubt| {
                    format!("{}: {}; {}", doubt.place(module), doubt.what, doubt.why)
                };
                for (line, count) in counted(self.doubts.iter().map(line)) {
                    let times = match count {
                        1 => String::new(),
                        n => format!(" ({n} times)"),
                    };
                    text += &format!("\n    {line}{times}");
                }
                text
            }
        }
    }

    /// The options with which `invar check` runs the launch that breaks the kernel, as a shell takes them.
    pub fn check_options(&self) -> Option<String> {
        let found = self.counterexample.as_ref()?;
        let options = found.launch.options(&self.kernel);
        let quoted: Vec<String> = options.iter().map(|word| quoted(word)).collect();
        Some(quoted.join(" "))
    }
}

/// Lines that are not equal, in the order in which they come first, and how often there is each.
fn counted(lines: impl Iterator<Item = String>) -> Vec<(String, usize)> {
    let mut places = BTreeMap::new();
    let mut all: Vec<(String, usize)> = Vec::new();
    for line in lines {
        let place = *places.entry(line.clone()).or_insert(all.len());
        match all.get_mut(place) {
            Some((_, count)) => *count += 1,
            None => all.push((line, 1)),
        }
    }
    all
}

impl Doubt {
    /// The author's lines: `softmax.inv:12 and softmax.inv:20`.
    pub fn place(&self, module: &Module) -> String {
        let lines = self.spans.iter().map(|span| {
            let source = span.source.and_then(|s| module.sources.get(s.0 as usize));
            let name = source.map_or("?", |s| &s.name);
            format!("{name}:{}", span.start.line)
        });
        let mut lines: Vec<String> = lines.collect();
        lines.dedup();
        lines.join(" and ")
    }
}

/// A word as a shell takes it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,=:%@".contains(c);
    if word.chars().all(plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn equal_lines_are_counted_where_the_first_of_them_is() {
        let lines = ["b", "a", "b", "c", "a", "b"].map(str::to_string);
        let counts = [("b", 3), ("a", 2), ("c", 1)];
        assert_eq!(
            counted(lines.into_iter()),
            counts.map(|(line, n)| (line.to_string(), n))
        );
    }
}
