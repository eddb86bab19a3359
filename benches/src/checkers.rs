//! The checkers against Oclgrind with `--data-races`, on the same kernels: whole processes, from
//! reading the source to the verdict.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::table::{Row, Table, medians};

/// Rounds of each comparison; the peer takes up to ten seconds a round.
const ROUNDS: usize = 3;

/// Adds the rows.
pub fn rows(table: &mut Table) -> Result<(), String> {
    let benches = Path::new(env!("CARGO_MANIFEST_DIR"));
    let invar = std::env::var_os("INVAR")
        .ok_or("INVAR does not name the invar command; run scripts/bench.sh")?;
    let installed = Command::new("oclgrind-kernel")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|s| s.success());
    if !installed {
        table.note("oclgrind is not installed (Debian: oclgrind): its four rows are left out");
        return Ok(());
    }
    for (name, kernel) in [
        ("check vector add 1M", "vector_add"),
        ("check tiled matmul 256", "matmul"),
        ("check tree reduction 1M", "reduction"),
        ("check histogram 1M", "histogram"),
    ] {
        let file = benches.join("kernels").join(kernel).with_extension("inv");
        let simulation = format!("{kernel}.sim");
        let (ours, peer) = medians(
            ROUNDS,
            &mut || quiet(Command::new(&invar).arg("check").arg(&file)),
            &mut || {
                quiet(
                    Command::new("oclgrind-kernel")
                        .args(["--data-races", &simulation])
                        .current_dir(benches.join("peers/oclgrind")),
                )
            },
        )?;
        table.row(Row {
            name: format!("{name}, against Oclgrind"),
            ours,
            peer,
            unit: "s",
            bound: Some(10.0),
        });
    }
    Ok(())
}

/// Runs a command whose output does not matter; it must say that all is well.
fn quiet(command: &mut Command) -> Result<(), String> {
    let output = command
        .output()
        .map_err(|e| format!("{:?}: {e}", command.get_program()))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!(
            "{:?} failed: {}",
            command.get_program(),
            String::from_utf8_lossy(&output.stderr)
        ))
    }
}
