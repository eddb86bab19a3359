//! The table of a benchmark run.

use std::path::Path;
use std::time::Instant;

use serde_json::json;

/// One comparison.
pub struct Row {
    /// What was measured.
    pub name: String,
    /// Our figure.
    pub ours: f64,
    /// The peer's, or the limit.
    pub peer: f64,
    /// The unit of both.
    pub unit: &'static str,
    /// How many times better ours must be, if anything was promised.
    pub bound: Option<f64>,
}

impl Row {
    /// How many times better ours is, for figures of which less is better. Two zeros are equal.
    pub fn ratio(&self) -> f64 {
        if self.ours == self.peer {
            1.0
        } else {
            self.peer / self.ours
        }
    }
}

/// All comparisons of a run.
#[derive(Default)]
pub struct Table {
    rows: Vec<Row>,
    notes: Vec<String>,
    failures: Vec<String>,
    /// Only rows whose names have this in them are measured.
    wanted: String,
}

impl Table {
    /// A table of the rows whose names have this in them.
    pub fn of(wanted: String) -> Table {
        Table {
            wanted,
            ..Table::default()
        }
    }

    /// Whether a row of that name is to be measured.
    pub fn wants(&self, name: &str) -> bool {
        name.contains(&self.wanted)
    }

    /// Adds a comparison.
    pub fn row(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Adds a line under the table.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Records a row that could not be measured: the table is printed without it.
    pub fn failure(&mut self, sentence: String) {
        self.failures.push(sentence);
    }

    /// The rows that could not be measured.
    pub fn failures(&self) -> &[String] {
        &self.failures
    }

    /// Prints the machine, the rows and the notes.
    pub fn print(&self) {
        println!("machine: {}", machine());
        println!(
            "{:52} {:>12} {:>12} {:8} {:>8} {:>8}",
            "", "ours", "peer", "unit", "ratio", "bound"
        );
        for row in &self.rows {
            let bound = row
                .bound
                .map_or_else(|| "-".to_string(), |b| format!("{b:.2}"));
            println!(
                "{:52} {:>12} {:>12} {:8} {:>8.2} {:>8}",
                row.name,
                figure(row.ours),
                figure(row.peer),
                row.unit,
                row.ratio(),
                bound
            );
        }
        for note in &self.notes {
            println!("note: {note}");
        }
    }

    /// Writes the rows as JSON: name, ours, peer, unit, ratio, bound.
    pub fn write_json(&self, file: &Path) -> Result<(), String> {
        let rows: Vec<_> = self
            .rows
            .iter()
            .map(|row| {
                json!({
                    "name": row.name,
                    "ours": row.ours,
                    "peer": row.peer,
                    "unit": row.unit,
                    "ratio": row.ratio(),
                    "bound": row.bound,
                })
            })
            .collect();
        let text = serde_json::to_string_pretty(&rows).map_err(|e| e.to_string())?;
        std::fs::write(file, text + "\n").map_err(|e| format!("{}: {e}", file.display()))
    }
}

/// Four significant digits.
fn figure(value: f64) -> String {
    if value == 0.0 {
        return "0".to_string();
    }
    let digits = (3 - value.abs().log10().floor() as i32).clamp(0, 6) as usize;
    format!("{value:.digits$}")
}

/// The processor's name and how many there are.
fn machine() -> String {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown processor", |(_, name)| name);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    format!("{name}, {threads} threads")
}

/// Seconds that a call takes.
pub fn seconds(f: &mut dyn FnMut() -> Result<(), String>) -> Result<f64, String> {
    let start = Instant::now();
    f()?;
    Ok(start.elapsed().as_secs_f64())
}

/// The medians of both sides over `rounds` rounds in which they take turns, after one round that
/// does not count.
pub fn medians(
    rounds: usize,
    ours: &mut dyn FnMut() -> Result<(), String>,
    peer: &mut dyn FnMut() -> Result<(), String>,
) -> Result<(f64, f64), String> {
    ours()?;
    peer()?;
    let mut times = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        times.0.push(seconds(ours)?);
        times.1.push(seconds(peer)?);
    }
    Ok((median(times.0), median(times.1)))
}

/// The middle one.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
