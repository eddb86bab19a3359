//! What Python measures: layout algebra beside CuTe's own implementation in Python (pycute), kernels
//! written with layouts beside the same with indices by hand, classes of kernels beside C, the examples
//! beside NumPy, kernels on textures beside OpenCV, and what a launch costs beyond the device's own run.

use std::path::Path;
use std::process::Command;

use crate::cpu;
use crate::table::{Row, Table};

/// The rows that a script prints as JSON; `None` where its environment is missing.
fn measured(
    table: &mut Table,
    script: &str,
    args: &[&str],
) -> Result<Option<Vec<serde_json::Value>>, String> {
    let python = Path::new("target/bench-python/bin/python");
    if !python.exists() {
        table.note(format!(
            "{script} is left out: scripts/bench.sh prepares its environment"
        ));
        return Ok(None);
    }
    let out = Command::new(python)
        .arg(script)
        .args(args)
        // NumPy's products have as many threads as our launches.
        .env("OPENBLAS_NUM_THREADS", cpu::threads())
        .output()
        .map_err(|e| format!("{}: {e}", python.display()))?;
    if !out.status.success() {
        return Err(format!(
            "{script} failed:\n{}",
            String::from_utf8_lossy(&out.stderr)
        ));
    }
    serde_json::from_slice(&out.stdout)
        .map(Some)
        .map_err(|e| format!("{script}: {e}"))
}

fn number(row: &serde_json::Value, name: &str) -> Result<f64, String> {
    row[name].as_f64().ok_or(format!("no `{name}` in {row}"))
}

/// Adds a row for each way to launch, against its limit.
pub fn launches(table: &mut Table) -> Result<(), String> {
    let found = measured(table, "benches/launch.py", &["--json"])?;
    for row in found.unwrap_or_default() {
        table.row(Row {
            name: format!(
                "launch from Python: {}, limit",
                row["name"].as_str().unwrap_or("?")
            ),
            ours: number(&row, "ours")?,
            peer: number(&row, "limit")?,
            unit: "µs",
            bound: Some(1.0),
        });
    }
    Ok(())
}

/// Adds a row for each kernel that is written with layouts and by hand.
pub fn forms(table: &mut Table) -> Result<(), String> {
    let found = measured(table, "benches/forms.py", &["--json"])?;
    for row in found.unwrap_or_default() {
        table.row(Row {
            name: format!(
                "{} with layouts, indices by hand",
                row["name"].as_str().unwrap_or("?")
            ),
            ours: number(&row, "ours")?,
            peer: number(&row, "peer")?,
            unit: "ms",
            bound: Some(number(&row, "bound")?),
        });
    }
    Ok(())
}

/// Adds a row for each kernel on textures, against OpenCV or the same on buffers.
pub fn textures(table: &mut Table) -> Result<(), String> {
    promised(table, "benches/textures.py")
}

/// Adds a row for each example kernel, against NumPy. Nothing is promised.
pub fn examples(table: &mut Table) -> Result<(), String> {
    let found = measured(table, "benches/examples.py", &["--json"])?;
    for row in found.unwrap_or_default() {
        table.row(Row {
            name: format!("{}, NumPy", row["name"].as_str().unwrap_or("?")),
            ours: number(&row, "ours")?,
            peer: number(&row, "peer")?,
            unit: "ms",
            bound: None,
        });
    }
    Ok(())
}

/// Adds two rows for each kernel that is written in many spellings: the worst, and the geometric mean, against the
/// best.
pub fn variants(table: &mut Table) -> Result<(), String> {
    promised(table, "benches/variants.py")
}

/// Adds two rows for each kernel of the classes, against C: on one thread and on all.
pub fn classes(table: &mut Table) -> Result<(), String> {
    promised(table, "benches/classes.py")
}

/// Adds the rows of a script in milliseconds, each with its bound.
fn promised(table: &mut Table, script: &str) -> Result<(), String> {
    let found = measured(table, script, &["--json"])?;
    for row in found.unwrap_or_default() {
        table.row(Row {
            name: row["name"].as_str().unwrap_or("?").to_string(),
            ours: number(&row, "ours")?,
            peer: number(&row, "peer")?,
            unit: "ms",
            bound: Some(number(&row, "bound")?),
        });
    }
    Ok(())
}

/// Adds a row for each operation and one for their geometric mean, which is what is promised.
pub fn layouts(table: &mut Table) -> Result<(), String> {
    let found = measured(table, "benches/peers/layouts.py", &[])?;
    let Some(found) = found else {
        return Ok(());
    };
    let mut logarithms = (0.0, 0.0);
    let mut algebra = 0.0;
    for row in &found {
        let (ours, peer) = (number(row, "ours")?, number(row, "peer")?);
        if row["algebra"].as_bool() == Some(true) {
            logarithms.0 += ours.ln();
            logarithms.1 += peer.ln();
            algebra += 1.0;
        }
        table.row(Row {
            name: format!(
                "layouts from Python: {}",
                row["name"].as_str().unwrap_or("?")
            ),
            ours,
            peer,
            unit: "µs",
            bound: None,
        });
    }
    table.row(Row {
        name: "layouts from Python: mean of the algebra".to_string(),
        ours: f64::exp(logarithms.0 / algebra),
        peer: f64::exp(logarithms.1 / algebra),
        unit: "µs",
        bound: Some(50.0),
    });
    Ok(())
}
