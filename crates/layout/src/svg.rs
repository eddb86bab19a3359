//! A picture as SVG, for documents and notebooks.
//!
//! Cells of one colour are one path, and labels carry no style of their own, so files stay small.
//! The palette holds for every picture: a ramp of one hue for order, eight hues in four tints for
//! identity, all light enough for dark text, and red only for conflicts. On dark pages the ground is
//! dark and what stands beside the cells light; the cells are the same.

use crate::picture::{Axis, Fill, HUES, Legend, Mark, Picture, RAMP, TINTS};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Pixels of a character in the 12-pixel monospaced font.
const CHAR: usize = 7;
/// Pixels of a line of small text.
const LINE: usize = 16;
/// Pixels around everything.
const MARGIN: usize = 16;
/// Pixels from the baseline of a legend's text to its next row.
const LEGEND_ROW: usize = 24;

/// The strongest tint of each hue; lighter tints blend towards white.
const STRONG: [[u8; 3]; HUES as usize] = [
    [0x6b, 0xa5, 0xe0], // blue
    [0xf2, 0xa3, 0x5c], // orange
    [0x7c, 0xc4, 0x7f], // green
    [0xe2, 0x8c, 0xb8], // pink
    [0xd9, 0xc2, 0x4e], // yellow
    [0x9c, 0x92, 0xdb], // violet
    [0x63, 0xc3, 0xc0], // teal
    [0xb8, 0x9a, 0x80], // brown
];
/// The ends of the ramp.
const RAMP_LOW: [u8; 3] = [0xf1, 0xf6, 0xfc];
const RAMP_HIGH: [u8; 3] = [0x79, 0xae, 0xe3];

fn blend(from: [u8; 3], to: [u8; 3], part: usize, whole: usize) -> String {
    let mut out = String::from("#");
    for (a, b) in from.into_iter().zip(to) {
        let value = (usize::from(a) * (whole - part) + usize::from(b) * part) / whole;
        let _ = write!(out, "{value:02x}");
    }
    out
}

fn colour(fill: Fill) -> String {
    match fill {
        Fill::Ramp(step) => blend(
            RAMP_LOW,
            RAMP_HIGH,
            usize::from(step),
            usize::from(RAMP) - 1,
        ),
        Fill::Hue(hue, tint) => {
            // The lightest tint keeps a third of the colour.
            let strong = STRONG[usize::from(hue % HUES)];
            blend(
                strong,
                [255; 3],
                2 * usize::from(tint),
                3 * (usize::from(TINTS) - 1),
            )
        }
        Fill::Blank => "#f4f5f7".to_string(),
    }
}

/// Where the grid stands, in pixels.
struct Frame {
    left: usize,
    top: usize,
    cell_width: usize,
    cell_height: usize,
}

impl Frame {
    fn x(&self, column: usize) -> usize {
        self.left + column * self.cell_width
    }

    fn y(&self, row: usize) -> usize {
        self.top + row * self.cell_height
    }
}

fn longest<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.map(|text| text.chars().count()).max().unwrap_or(0)
}

fn coordinate_width(axis: &Axis) -> usize {
    axis.coordinates
        .as_ref()
        .map_or(0, |all| longest(all.iter().map(String::as_str)))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

impl Picture {
    /// The picture as a complete SVG document.
    pub fn svg(&self) -> String {
        let two_lines = self.cells.iter().any(|cell| !cell.note.is_empty());
        let label = longest(
            self.cells
                .iter()
                .flat_map(|cell| [&*cell.label, &*cell.note]),
        );
        let columns_nested = self.columns.coordinates.is_some();
        let across = label.max(coordinate_width(&self.columns)).max(3) * CHAR + 12;
        let cell_height = if two_lines { 36 } else { 26 };
        let row_head = match (self.rows.count, coordinate_width(&self.rows)) {
            (1, _) => 0,
            (count, nested) => {
                let gap = usize::from(nested > 0);
                (digits(count) + gap + nested) * CHAR + 12
            }
        };
        let frame = Frame {
            left: MARGIN + row_head,
            top: MARGIN + 28 + LINE * (1 + usize::from(columns_nested)),
            cell_width: across.max(if two_lines { 40 } else { 34 }),
            cell_height,
        };
        let mut body = String::new();
        self.draw_cells(&mut body, &frame);
        self.draw_heads(&mut body, &frame);
        self.draw_rules(&mut body, &frame);
        self.draw_marks(&mut body, &frame);
        self.draw_labels(&mut body, &frame);

        let mut right = frame.x(self.columns.count);
        let mut y = frame.y(self.rows.count);
        if !self.bank_words.is_empty() {
            self.draw_banks(&mut body, &mut right, &mut y);
        }
        self.draw_legend(&mut body, &mut right, &mut y);
        for note in &self.notes {
            y += LINE + 4;
            let _ = writeln!(
                body,
                "<text class='n' x='{MARGIN}' y='{y}'>{}</text>",
                escape(note)
            );
            right = right.max(MARGIN + note.chars().count() * CHAR);
        }
        right = right.max(MARGIN + self.title.chars().count() * 9);
        let (width, height) = (right + MARGIN, y + MARGIN);
        format!(
            "<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' \
             viewBox='0 0 {width} {height}' role='img' aria-label='{title}'>\n\
             <style>text{{font:12px 'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#1b2733;\
             text-anchor:middle}}.t{{font-size:15px;font-weight:bold;text-anchor:start}}\
             .n{{text-anchor:start;fill:#3d4a57}}.h{{fill:#66727f}}.r{{text-anchor:end}}\
             .s{{font-size:10px;fill:#44505c}}.g{{fill:#fff}}@media (prefers-color-scheme:dark)\
             {{.t,.n,.h{{fill:#c8d1da}}.g{{fill:#0d1117}}}}</style>\n\
             <rect class='g' width='{width}' height='{height}'/>\n\
             <text class='t' x='{MARGIN}' y='{baseline}'>{title}</text>\n{body}</svg>\n",
            title = escape(&self.title).replace('\'', "&#39;"),
            baseline = MARGIN + 14,
        )
    }

    fn positions(&self) -> impl Iterator<Item = (usize, usize, &crate::picture::Cell)> {
        let count = self.columns.count.max(1);
        self.cells
            .iter()
            .enumerate()
            .map(move |(at, cell)| (at / count, at % count, cell))
    }

    fn draw_cells(&self, out: &mut String, frame: &Frame) {
        let mut paths: BTreeMap<Fill, String> = BTreeMap::new();
        let (w, h) = (frame.cell_width, frame.cell_height);
        // Neighbours of one colour in a row become one rectangle.
        let mut cells = self.positions().peekable();
        while let Some((row, column, cell)) = cells.next() {
            let mut run = 1;
            while cells
                .next_if(|(r, _, next)| *r == row && next.fill == cell.fill)
                .is_some()
            {
                run += 1;
            }
            let path = paths.entry(cell.fill).or_default();
            let (x, y) = (frame.x(column), frame.y(row));
            let _ = write!(path, "M{x} {y}h{0}v{h}h-{0}z", w * run);
        }
        for (fill, path) in paths {
            let _ = writeln!(out, "<path fill='{}' d='{path}'/>", colour(fill));
        }
    }

    fn draw_heads(&self, out: &mut String, frame: &Frame) {
        let lines = 1 + usize::from(self.columns.coordinates.is_some());
        for column in 0..self.columns.count {
            let x = frame.x(column) + frame.cell_width / 2;
            let y = frame.top - 6 - LINE * (lines - 1);
            let _ = writeln!(out, "<text class='h' x='{x}' y='{y}'>{column}</text>");
            if let Some(all) = &self.columns.coordinates {
                let (y, text) = (frame.top - 6, &all[column]);
                let _ = writeln!(out, "<text class='h s' x='{x}' y='{y}'>{text}</text>");
            }
        }
        if self.rows.count == 1 {
            return;
        }
        for row in 0..self.rows.count {
            let y = frame.y(row) + frame.cell_height / 2 + 4;
            let mut x = frame.left - 8;
            if let Some(all) = &self.rows.coordinates {
                let text = &all[row];
                let _ = writeln!(out, "<text class='h s r' x='{x}' y='{y}'>{text}</text>");
                x -= (coordinate_width(&self.rows) + 1) * CHAR;
            }
            let _ = writeln!(out, "<text class='h r' x='{x}' y='{y}'>{row}</text>");
        }
    }

    fn draw_rules(&self, out: &mut String, frame: &Frame) {
        let (left, top) = (frame.left, frame.top);
        let (right, bottom) = (frame.x(self.columns.count), frame.y(self.rows.count));
        let (mut thin, mut thick) = (String::new(), String::new());
        for column in 1..self.columns.count {
            let into = if self.columns.rule_before(column) {
                &mut thick
            } else {
                &mut thin
            };
            let _ = write!(into, "M{} {top}V{bottom}", frame.x(column));
        }
        for row in 1..self.rows.count {
            let into = if self.rows.rule_before(row) {
                &mut thick
            } else {
                &mut thin
            };
            let _ = write!(into, "M{left} {}H{right}", frame.y(row));
        }
        let _ = write!(thick, "M{left} {top}H{right}V{bottom}H{left}z");
        if !thin.is_empty() {
            let _ = writeln!(out, "<path stroke='#fff' d='{thin}'/>");
        }
        let _ = writeln!(
            out,
            "<path fill='none' stroke='#4a5763' stroke-width='1.5' d='{thick}'/>"
        );
    }

    fn draw_marks(&self, out: &mut String, frame: &Frame) {
        let (mut touched, mut conflict) = (String::new(), String::new());
        for (row, column, cell) in self.positions() {
            let into = match cell.mark {
                Mark::None => continue,
                Mark::Touched => &mut touched,
                Mark::Conflict => &mut conflict,
            };
            let (x, y) = (frame.x(column) + 2, frame.y(row) + 2);
            let (w, h) = (frame.cell_width - 4, frame.cell_height - 4);
            let _ = write!(into, "M{x} {y}h{w}v{h}h-{w}z");
        }
        for (mark, path) in [(Mark::Touched, touched), (Mark::Conflict, conflict)] {
            if !path.is_empty() {
                let _ = writeln!(out, "<path {} d='{path}'/>", stroke(mark));
            }
        }
    }

    fn draw_labels(&self, out: &mut String, frame: &Frame) {
        for (row, column, cell) in self.positions() {
            let x = frame.x(column) + frame.cell_width / 2;
            let middle = frame.y(row) + frame.cell_height / 2;
            let (label, note) = match (cell.label.is_empty(), cell.note.is_empty()) {
                (true, true) => continue,
                (false, true) => (Some(middle + 4), None),
                (true, false) => (None, Some(middle + 4)),
                (false, false) => (Some(middle - 1), Some(middle + 11)),
            };
            if let Some(y) = label {
                let _ = writeln!(out, "<text x='{x}' y='{y}'>{}</text>", cell.label);
            }
            if let Some(y) = note {
                let _ = writeln!(out, "<text class='s' x='{x}' y='{y}'>{}</text>", cell.note);
            }
        }
    }

    /// A column for each bank, as high as the number of words asked of it.
    fn draw_banks(&self, out: &mut String, right: &mut usize, y: &mut usize) {
        const WIDTH: usize = 18;
        const HEIGHT: usize = 64;
        // A single word is a low bar, also where no bank has more.
        let most = self
            .bank_words
            .iter()
            .map(|&(words, _)| words)
            .max()
            .unwrap_or(0)
            .max(4);
        let shown = self.bank_words.len();
        *y += 26;
        let _ = writeln!(
            out,
            "<text class='n' x='{MARGIN}' y='{y}'>words asked of each bank</text>"
        );
        let base = *y + 22 + HEIGHT;
        for (bank, &(words, conflict)) in self.bank_words.iter().enumerate() {
            let x = MARGIN + bank * WIDTH;
            let height = words * HEIGHT / most;
            let fill = if conflict { "#d1344b" } else { "#8a96a3" };
            if words > 0 {
                let _ = writeln!(
                    out,
                    "<path fill='{fill}' d='M{x} {base}v-{height}h{}v{height}z'/>\
                     <text class='h s' x='{}' y='{}'>{words}</text>",
                    WIDTH - 3,
                    x + (WIDTH - 3) / 2,
                    base - height - 4
                );
            }
            let _ = writeln!(
                out,
                "<text class='h s' x='{}' y='{}'>{bank}</text>",
                x + (WIDTH - 3) / 2,
                base + 13
            );
        }
        let _ = writeln!(
            out,
            "<path stroke='#4a5763' d='M{MARGIN} {base}h{}'/>",
            shown * WIDTH
        );
        *right = (*right).max(MARGIN + shown * WIDTH);
        *y = base + 14;
    }

    fn draw_legend(&self, out: &mut String, right: &mut usize, y: &mut usize) {
        *y += LEGEND_ROW;
        let mut x = MARGIN;
        match &self.legend {
            Legend::Ramp { low, high } => {
                let start = x + low.chars().count() * CHAR + 8;
                let _ = writeln!(out, "<text class='n' x='{x}' y='{y}'>{low}</text>");
                for step in 0..RAMP {
                    let _ = writeln!(
                        out,
                        "<path fill='{}' d='M{} {}h14v14h-14z'/>",
                        colour(Fill::Ramp(step)),
                        start + 14 * usize::from(step),
                        *y - 11
                    );
                }
                x = start + 14 * usize::from(RAMP) + 8;
                let _ = writeln!(out, "<text class='n' x='{x}' y='{y}'>{high}</text>");
                *right = (*right).max(x + high.chars().count() * CHAR);
            }
            Legend::List(entries) => {
                for (fill, mark, text) in entries {
                    // The first entry may carry what all of them are about.
                    let (lead, text) = text
                        .rsplit_once(": ")
                        .map_or(("", text.as_str()), |(lead, text)| (lead, text));
                    if !lead.is_empty() {
                        let _ = writeln!(out, "<text class='n' x='{x}' y='{y}'>{lead}</text>");
                        x += lead.chars().count() * CHAR + 12;
                    }
                    let _ = writeln!(
                        out,
                        "<path fill='{}' {} d='M{x} {}h14v14h-14z'/>\
                         <text class='n' x='{}' y='{y}'>{text}</text>",
                        colour(*fill),
                        if *mark == Mark::None {
                            ""
                        } else {
                            stroke_only(*mark)
                        },
                        *y - 11,
                        x + 20
                    );
                    x += 20 + text.chars().count() * CHAR + 14;
                }
                *right = (*right).max(x);
            }
        }
    }
}

fn stroke(mark: Mark) -> &'static str {
    match mark {
        Mark::None => "fill='none'",
        Mark::Touched => "fill='none' stroke='#1b2733' stroke-width='2'",
        Mark::Conflict => "fill='none' stroke='#d1344b' stroke-width='3'",
    }
}

fn stroke_only(mark: Mark) -> &'static str {
    stroke(mark).trim_start_matches("fill='none' ")
}

fn digits(count: usize) -> usize {
    count.saturating_sub(1).to_string().len()
}
