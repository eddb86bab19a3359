//! What several tests share.

use std::process::Command;

use invar_runtime::Device;

/// The devices that compute on the host. Unlike a GPU they can be stopped, and work in the host's memory.
pub fn hosts() -> Vec<Device> {
    let named = ["cpu", "checked"].into_iter().map(Device::named);
    named.filter_map(Result::ok).collect()
}

/// Set in a process that runs one test.
const ALONE: &str = "INVAR_TEST_ALONE";

/// Whether this process runs no other test. Where others share it, `test` (its path in this program) is run
/// in a process of its own, and the answer is `false` once that has passed.
pub fn alone(test: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(ALONE, "1")
        .output()
        .expect("it starts");
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    assert!(out.contains("1 passed"), "no test is `{test}`: {out}");
    false
}
