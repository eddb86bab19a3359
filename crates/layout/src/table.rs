//! A picture as plain text, for terminals.

use crate::picture::{Axis, Mark, Picture};
use std::fmt::Write;

impl Picture {
    /// The picture as text: one line for each row, and rules between groups of nested modes. A
    /// touched cell is followed by `*`, one with a bank conflict by `!`.
    pub fn table(&self) -> String {
        let cells: Vec<String> = self
            .cells
            .iter()
            .map(|cell| {
                let mark = match cell.mark {
                    Mark::None => "",
                    Mark::Touched => "*",
                    Mark::Conflict => "!",
                };
                let gap = if cell.label.is_empty() || cell.note.is_empty() {
                    ""
                } else {
                    " "
                };
                format!("{}{gap}{}{mark}", cell.label, cell.note)
            })
            .collect();
        let column_heads = heads(&self.columns);
        let row_heads: Vec<String> = if self.rows.count == 1 {
            vec![String::new()]
        } else {
            heads(&self.rows)
                .into_iter()
                .map(|parts| parts.join(" "))
                .collect()
        };
        let lengths = cells
            .iter()
            .chain(column_heads.iter().flatten())
            .map(|s| s.chars().count());
        let width = lengths.max().unwrap_or(0) + 2;
        let margin = row_heads
            .iter()
            .map(|head| head.chars().count())
            .max()
            .unwrap_or(0);

        let mut out = format!("{}\n", self.title);
        for line in 0..column_heads.first().map_or(0, Vec::len) {
            let texts = column_heads.iter().map(|head| head[line].as_str());
            self.line(&mut out, (margin, ""), [" ", "   ", ""], texts, |text| {
                format!("{text:>width$}")
            });
        }
        let rule = |out: &mut String, [left, between, right]: [&str; 3]| {
            let texts = (0..self.columns.count).map(|_| "");
            self.line(
                out,
                (margin, ""),
                [left, between, &format!("──{right}")],
                texts,
                |_| "─".repeat(width),
            );
        };
        rule(&mut out, ["┌", "──┬", "┐"]);
        for (row, head) in row_heads.iter().enumerate() {
            if self.rows.rule_before(row) {
                rule(&mut out, ["├", "──┼", "┤"]);
            }
            let count = self.columns.count;
            let texts = cells[row * count..(row + 1) * count]
                .iter()
                .map(String::as_str);
            self.line(
                &mut out,
                (margin, head),
                ["│", "  │", "  │"],
                texts,
                |text| format!("{text:>width$}"),
            );
        }
        rule(&mut out, ["└", "──┴", "┘"]);
        for note in &self.notes {
            let _ = writeln!(out, "{note}");
        }
        out
    }

    /// A head of fixed width, then the cells, with bars at the ends and between groups.
    fn line<'a>(
        &self,
        out: &mut String,
        (margin, head): (usize, &str),
        [left, between, right]: [&str; 3],
        texts: impl Iterator<Item = &'a str>,
        cell: impl Fn(&str) -> String,
    ) {
        let _ = write!(out, "{head:margin$} {left}");
        for (column, text) in texts.enumerate() {
            if self.columns.rule_before(column) {
                out.push_str(between);
            }
            out.push_str(&cell(text));
        }
        out.push_str(right);
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
}

/// For each position of an axis its number, and its nested coordinate where there is one.
fn heads(axis: &Axis) -> Vec<Vec<String>> {
    (0..axis.count)
        .map(|at| {
            let mut lines = vec![at.to_string()];
            lines.extend(axis.coordinates.as_ref().map(|all| all[at].clone()));
            lines
        })
        .collect()
}
