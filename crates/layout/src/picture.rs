//! What a picture of a layout shows, before it is drawn as text or as SVG.
//!
//! A picture is a grid. Mode 0 runs down, the other modes run across, and a layout of one mode is
//! one row. Each cell has a label and a colour that belongs to an entry of the legend. Nested modes
//! show as rules between groups and as coordinates on the axes.
//!
//! Absent: anything about fonts, pixels or files. `table` and `svg` draw; nothing else needs to know.

use crate::analysis::{BankReport, Banks, conflicts};
use crate::error::{Error, Result};
use crate::int_tuple::IntTuple;
use crate::layout::Layout;
use crate::nested::Nested;
use crate::swizzle::SwizzledLayout;

/// The most cells that a picture or table shows.
pub const MAX_CELLS: usize = 16_384;

/// A layout to look at: as a plain-text [`Picture::table`] or as [`Picture::svg`].
///
/// ```
/// use invar_layout::{Layout, Picture};
/// let layout: Layout = "((2,2),3):((1,6),2)".parse()?;
/// let picture = Picture::offsets(layout)?;
/// assert_eq!(picture.table(), "\
/// ((2,2),3):((1,6),2)
///             0   1   2
///         ┌──────────────┐
/// 0 (0,0) │   0   2   4  │
/// 1 (1,0) │   1   3   5  │
///         ├──────────────┤
/// 2 (0,1) │   6   8  10  │
/// 3 (1,1) │   7   9  11  │
///         └──────────────┘
/// ");
/// assert!(picture.svg().starts_with("<svg "));
/// # Ok::<(), invar_layout::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Picture {
    pub(crate) title: String,
    pub(crate) rows: Axis,
    pub(crate) columns: Axis,
    /// Row by row.
    pub(crate) cells: Vec<Cell>,
    pub(crate) legend: Legend,
    /// Sentences below the grid.
    pub(crate) notes: Vec<String>,
    /// For each bank the number of different words asked of it, and whether they conflict, where
    /// the picture shows banks.
    pub(crate) bank_words: Vec<(usize, bool)>,
}

/// One side of the grid.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    pub count: usize,
    /// The nested coordinate of each position, where it says more than the position.
    pub coordinates: Option<Vec<String>>,
    /// Positions per innermost group; rules are drawn between groups.
    pub group: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Cell {
    /// The main line.
    pub label: String,
    /// A smaller second line, or nothing.
    pub note: String,
    pub fill: Fill,
    pub mark: Mark,
}

/// A cell's colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fill {
    /// Step of the ramp from light to dark, `0..RAMP`.
    Ramp(u8),
    /// Hue `0..HUES` in tint `0..TINTS`, 0 the strongest.
    Hue(u8, u8),
    /// Not part of what is shown.
    Blank,
}

/// What the picture says about a cell beyond its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    None,
    /// Touched by the access.
    Touched,
    /// Touched by the access, and its bank must serve several words.
    Conflict,
}

/// What the colours mean.
#[derive(Debug, Clone)]
pub(crate) enum Legend {
    /// The ramp, with what its ends stand for.
    Ramp { low: String, high: String },
    /// Colours one by one, and marks, each with its meaning.
    List(Vec<(Fill, Mark, String)>),
}

/// The longest coordinate, in integers, that an axis shows.
const MAX_COORDINATE: usize = 16;
/// Steps of the ramp.
pub(crate) const RAMP: u8 = 12;
/// Different hues.
pub(crate) const HUES: u8 = 8;
/// Tints of each hue.
pub(crate) const TINTS: u8 = 4;

fn hue(index: i64) -> Fill {
    let (hues, tints) = (i64::from(HUES), i64::from(TINTS));
    let part = |value: i64| u8::try_from(value).unwrap_or(0);
    Fill::Hue(
        part(index.rem_euclid(hues)),
        part(index.div_euclid(hues).rem_euclid(tints)),
    )
}

impl Axis {
    /// The modes of a shape as one side of the grid.
    fn new(shape: &IntTuple) -> Result<Axis> {
        let count = shape.size()?;
        let nested = shape.depth() > 0 && shape.integers().len() > 1;
        // Longer coordinates would hide the cells, and could fill the memory.
        let readable = nested && shape.integers().len() <= MAX_COORDINATE;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count > MAX_CELLS {
            return Err(Error::Limit {
                what: "cells in a picture",
                limit: MAX_CELLS,
            });
        }
        let coordinates = readable.then(|| {
            (0..count as i64)
                .map(|at| shape.coordinate(at).map(|c| c.to_string()))
                .collect::<Result<Vec<_>>>()
        });
        let group = shape
            .integers()
            .iter()
            .copied()
            .find(|&size| size > 1)
            .unwrap_or(1);
        Ok(Axis {
            count,
            coordinates: coordinates.transpose()?,
            group: if nested {
                usize::try_from(group).unwrap_or(count)
            } else {
                count
            },
        })
    }

    /// Whether a rule belongs before this position, other than at the edge.
    pub fn rule_before(&self, at: usize) -> bool {
        at > 0 && at < self.count && at.is_multiple_of(self.group)
    }
}

/// The two sides of a shape's grid: mode 0 down, the rest across; one mode across alone.
fn axes(shape: &IntTuple) -> Result<(Axis, Axis)> {
    let (rows, columns) = match shape.rank() {
        0 => (IntTuple::from(1), IntTuple::from(1)),
        1 => (IntTuple::from(1), shape.mode(0)?),
        2 => (shape.mode(0)?, shape.mode(1)?),
        rank => {
            let mut rest = Nested::new();
            rest.push_tuple(rank - 1)?;
            shape
                .view()
                .modes()
                .skip(1)
                .try_for_each(|mode| rest.push_view(mode))?;
            (shape.mode(0)?, IntTuple(rest))
        }
    };
    let (rows, columns) = (Axis::new(&rows)?, Axis::new(&columns)?);
    if rows.count.saturating_mul(columns.count) > MAX_CELLS {
        return Err(Error::Limit {
            what: "cells in a picture",
            limit: MAX_CELLS,
        });
    }
    Ok((rows, columns))
}

/// `values` are listed leftmost coordinate fastest; the grid is stored row by row.
fn by_rows<T: Clone>(values: &[T], rows: usize) -> Vec<T> {
    (0..rows)
        .flat_map(|row| values.iter().skip(row).step_by(rows).cloned())
        .collect()
}

impl Picture {
    /// The offset of every coordinate. A plain layout is coloured from its smallest offset to its
    /// largest; a swizzled one by the bits that the swizzle changes, so that the permutation shows.
    pub fn offsets(layout: impl Into<SwizzledLayout>) -> Result<Picture> {
        let layout = layout.into();
        let (rows, columns) = axes(&layout.shape())?;
        let offsets = by_rows(&layout.offsets()?, rows.count);
        let swizzle = layout.swizzle();
        let low = offsets.iter().copied().min().unwrap_or(0);
        let high = offsets.iter().copied().max().unwrap_or(0);
        let mut notes = Vec::new();
        let (fills, legend): (Vec<Fill>, Legend) = if swizzle.is_none() {
            let step = |offset: i64| {
                let place = i128::from(offset - low) * i128::from(RAMP);
                let step = place / (i128::from(high - low) + 1);
                Fill::Ramp(u8::try_from(step).unwrap_or(RAMP - 1))
            };
            let legend = Legend::Ramp {
                low: format!("offset {low}"),
                high: format!("offset {high}"),
            };
            (offsets.iter().map(|&offset| step(offset)).collect(), legend)
        } else {
            let field = swizzle.changed_field();
            let value = |offset: i64| (offset >> field) & ((1 << swizzle.bits()) - 1);
            let most = offsets
                .iter()
                .map(|&offset| value(offset))
                .max()
                .unwrap_or(0);
            let bits = match swizzle.bits() {
                1 => format!("bit {field} of the offset"),
                bits => format!("bits {field} to {} of the offset", field + bits - 1),
            };
            notes.extend(hues_note("values", most + 1, ""));
            let mut list: Vec<_> = (0..=most.min(i64::from(HUES) - 1))
                .map(|value| (hue(value), Mark::None, value.to_string()))
                .collect();
            if let Some((_, _, first)) = list.first_mut() {
                *first = format!("{bits}: {first}");
            }
            (
                offsets.iter().map(|&offset| hue(value(offset))).collect(),
                Legend::List(list),
            )
        };
        let cells = offsets
            .iter()
            .zip(fills)
            .map(|(offset, fill)| Cell {
                label: offset.to_string(),
                note: String::new(),
                fill,
                mark: Mark::None,
            })
            .collect();
        Ok(Picture {
            title: layout.to_string(),
            rows,
            columns,
            cells,
            legend,
            notes,
            bank_words: Vec::new(),
        })
    }

    /// Which thread owns each element of a tile, and as which of its values. `owners` maps
    /// `(thread, value)` to an index in `tile`, as [`crate::thread_value_layout`] gives it. An
    /// element with several owners shows the first and a `+`; one without any stays blank.
    pub fn threads(owners: &Layout, tile: &IntTuple) -> Result<Picture> {
        let (rows, columns) = axes(tile)?;
        if owners.rank() != 2 {
            return Err(Error::Picture {
                condition: "the owners need two modes, (thread,value): group the layout first",
            });
        }
        let threads = owners.mode(0)?.size();
        let count = rows.count * columns.count;
        let mut found: Vec<Option<(i64, i64)>> = vec![None; count];
        let mut several = vec![false; count];
        for (pair, index) in (0i64..).zip(owners.offsets()?) {
            let Some(place) = usize::try_from(index).ok().filter(|&at| at < count) else {
                return Err(Error::Picture {
                    condition: "the owners reach outside the tile: give the tile they were made for",
                });
            };
            if found[place].is_none() {
                found[place] = Some((pair % threads, pair / threads));
            } else {
                several[place] = true;
            }
        }
        let cells: Vec<Cell> = found
            .iter()
            .zip(&several)
            .map(|(owner, &several)| match *owner {
                Some((thread, value)) => Cell {
                    label: format!("T{thread}{}", if several { "+" } else { "" }),
                    note: format!("V{value}"),
                    fill: hue(thread),
                    mark: Mark::None,
                },
                None => Cell {
                    label: String::new(),
                    note: String::new(),
                    fill: Fill::Blank,
                    mark: Mark::None,
                },
            })
            .collect();
        let mut legend: Vec<_> = (0..threads.min(i64::from(HUES)))
            .map(|thread| (hue(thread), Mark::None, format!("T{thread}")))
            .collect();
        if found.iter().any(Option::is_none) {
            legend.push((Fill::Blank, Mark::None, "no owner".to_string()));
        }
        let mut notes = vec![format!(
            "{threads} threads (T), {} values each (V), over a tile of {tile}",
            owners.mode(1)?.size()
        )];
        notes.extend(several_note(&several, "threads and values own an element"));
        notes.extend(hues_note("threads", threads, "T"));
        Ok(Picture {
            title: format!("thread, value: {owners}"),
            cells: by_rows(&cells, rows.count),
            rows,
            columns,
            legend: Legend::List(legend),
            notes,
            bank_words: Vec::new(),
        })
    }

    /// The bank of every element of `memory`, and the elements that one access touches: lane `i`
    /// touches the coordinate with index `lanes(i)`. Elements in banks that must serve several
    /// words are marked, and a chart below counts the words of each bank.
    pub fn banks(
        memory: impl Into<SwizzledLayout>,
        lanes: &Layout,
        element_bytes: u32,
        banks: Banks,
    ) -> Result<Picture> {
        let memory = memory.into();
        let (rows, columns) = axes(&memory.shape())?;
        let count = rows.count * columns.count;
        let indices = lanes.offsets()?;
        let mut lane_of: Vec<Option<usize>> = vec![None; count];
        let mut several = vec![false; count];
        for (lane, &index) in indices.iter().enumerate() {
            let Some(place) = usize::try_from(index).ok().filter(|&at| at < count) else {
                return Err(Error::Picture {
                    condition: "a lane touches no coordinate of the layout: use smaller indices",
                });
            };
            several[place] |= lane_of[place].is_some();
            lane_of[place].get_or_insert(lane);
        }
        let offsets = memory.offsets()?;
        let touched: Vec<i64> = indices
            .iter()
            .map(|&index| memory.call_index(index))
            .collect::<Result<_>>()?;
        let report = conflicts(&touched, element_bytes, banks)?;
        let bank = |offset: i64| {
            let word = i128::from(offset) * i128::from(element_bytes);
            let word = word.div_euclid(i128::from(banks.width_bytes));
            i64::try_from(word.rem_euclid(i128::from(banks.count))).unwrap_or(0)
        };
        let cells: Vec<Cell> = offsets
            .iter()
            .zip(lane_of.iter().zip(&several))
            .map(|(&offset, (&lane, &several))| {
                let bank = bank(offset);
                let more = if several { "+" } else { "" };
                Cell {
                    label: lane.map_or(String::new(), |lane| format!("L{lane}{more}")),
                    note: format!("b{bank}"),
                    fill: hue(bank),
                    mark: match lane {
                        None => Mark::None,
                        Some(lane) if report.lane_conflicts[lane] => Mark::Conflict,
                        Some(_) => Mark::Touched,
                    },
                }
            })
            .collect();
        let mut legend: Vec<_> = (0..i64::from(banks.count).min(i64::from(HUES)))
            .map(|bank| (hue(bank), Mark::None, format!("b{bank}")))
            .collect();
        legend.push((Fill::Blank, Mark::Touched, "touched".to_string()));
        legend.push((Fill::Blank, Mark::Conflict, "touched, conflict".to_string()));
        let mut notes = vec![format!(
            "lanes {lanes} (L), {} banks (b) of {} bytes, elements of {element_bytes} bytes",
            banks.count, banks.width_bytes
        )];
        notes.extend(several_note(&several, "lanes touch an element"));
        notes.extend(hues_note("banks", i64::from(banks.count), "b"));
        notes.push(verdict(&report));
        Ok(Picture {
            title: format!("banks: {memory}"),
            cells: by_rows(&cells, rows.count),
            rows,
            columns,
            legend: Legend::List(legend),
            notes,
            bank_words: report
                .words
                .into_iter()
                .zip(report.bank_conflicts)
                .collect(),
        })
    }

    /// Replaces the title, which is the layout in its usual notation.
    #[must_use]
    pub fn titled(mut self, title: &str) -> Picture {
        self.title = title.to_string();
        self
    }
}

/// How the hues stand for more things than there are hues.
fn hues_note(things: &str, count: i64, letter: &str) -> Option<String> {
    let colours = i64::from(HUES) * i64::from(TINTS);
    let again = if count > colours {
        format!(", again from {letter}{colours}")
    } else {
        String::new()
    };
    (count > i64::from(HUES)).then(|| {
        format!(
            "one hue for {things} that differ by a multiple of {HUES}, lighter as they grow{again}"
        )
    })
}

/// What the `+` of some cells says.
fn several_note(several: &[bool], who: &str) -> Option<String> {
    several
        .contains(&true)
        .then(|| format!("+: several {who}, the first is shown"))
}

fn verdict(report: &BankReport) -> String {
    match report.conflicts() {
        0 => format!(
            "no conflicts: {} round{}",
            report.rounds,
            plural(report.rounds)
        ),
        lost => format!(
            "{} rounds instead of {}: {lost} lost to conflicts",
            report.rounds, report.least_rounds
        ),
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
