//! Kernels in one form beside the same in another: with layouts and with indices by hand, as Rust functions and
//! as text.

use invar::Device;

use crate::pairs::pairs;
use crate::python;
use crate::table::{Row, Table, median};

/// How often each form of a pair runs.
const ROUNDS: usize = 41;

/// The Rust form takes at most 1.02 times as long as the text form.
const BOUND: f64 = 1.0 / 1.02;

/// Adds a row for each kernel that is there in two forms.
pub fn rows(table: &mut Table) -> Result<(), String> {
    python::forms(table)?;
    rust(table).map_err(|e| e.to_string())
}

fn rust(table: &mut Table) -> invar::Result<()> {
    for mut pair in pairs(&Device::named("cpu")?, true)? {
        let name = format!("{} in Rust, as text", pair.name());
        if !table.wants(&name) {
            continue;
        }
        pair.rust()?;
        pair.text()?;
        let mut times = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            times.0.push(pair.rust()?.as_secs_f64() * 1e3);
            times.1.push(pair.text()?.as_secs_f64() * 1e3);
        }
        let (ours, peer) = (median(times.0), median(times.1));
        let [one, other] = pair.outputs()?;
        if one != other {
            table.failure(format!("{name}: the two forms do not agree"));
        }
        table.row(Row {
            name,
            ours,
            peer,
            unit: "ms",
            bound: Some(BOUND),
        });
    }
    Ok(())
}
