//! Layout algebra from Python, beside CuTe's own implementation in Python (pycute).

use std::path::Path;
use std::process::Command;

use crate::table::{Row, Table};

/// Adds a row for each operation and one for their geometric mean, which is what is promised.
pub fn rows(table: &mut Table) -> Result<(), String> {
    let python = Path::new("target/bench-python/bin/python");
    if !python.exists() {
        table.note("layouts from Python are left out: scripts/bench.sh prepares their environment");
        return Ok(());
    }
    let out = Command::new(python)
        .arg("benches/peers/layouts.py")
        .output()
        .map_err(|e| format!("{}: {e}", python.display()))?;
    if !out.status.success() {
        return Err(format!(
            "benches/peers/layouts.py failed:\n{}",
            String::from_utf8_lossy(&out.stderr)
        ));
    }
    let found: Vec<serde_json::Value> =
        serde_json::from_slice(&out.stdout).map_err(|e| e.to_string())?;
    let mut logarithms = (0.0, 0.0);
    let mut algebra = 0.0;
    for row in &found {
        let number = |name: &str| row[name].as_f64().ok_or(format!("no `{name}` in {row}"));
        let (ours, peer) = (number("ours")?, number("peer")?);
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
