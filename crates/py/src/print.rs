//! What kernels print, on Python's streams.

use invar_ir::Kernel;
use invar_ir::print::Printed;
use pyo3::prelude::*;

/// Writes what a kernel prints to `sys.stdout`, which a notebook or a test may have replaced, and what is said
/// of lines left out to `sys.stderr`.
pub fn show(kernel: &Kernel, printed: &Printed) {
    let write = |py: Python<'_>| -> PyResult<()> {
        let stream = |name: &str| py.import("sys")?.getattr(name);
        let mut text = String::new();
        for line in &printed.lines {
            text.push_str(&line.text);
            text.push('\n');
        }
        let out = stream("stdout")?;
        // A process without a terminal may have none.
        if !out.is_none() && !text.is_empty() {
            out.call_method1("write", (text,))?;
        }
        let errors = stream("stderr")?;
        if let Some(notice) = printed.notice()
            && !errors.is_none()
        {
            let notice = format!("kernel `{}`: {notice}\n", kernel.name);
            errors.call_method1("write", (notice,))?;
        }
        Ok(())
    };
    Python::attach(|py| {
        if let Err(error) = write(py) {
            error.write_unraisable(py, None);
        }
    });
}
