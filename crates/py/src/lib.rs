//! The Python extension: what `python/invar` stands on.
//!
//! It is thin on purpose. The surface (types, operators, control flow, arrays) is Python; here are
//! the builder, modules, the checked device and the op table, in numbers and strings:
//! - a value is the number that the builder gave it, a memory object a pair (kind, number), a type
//!   its name in the text form;
//! - whatever is wrong comes back as an exception with a sentence; nothing here panics on what
//!   Python passes;
//! - memory for a run comes as an address and a size, which the caller keeps alive, or is a device's.

mod away;
mod build;
mod convert;
mod device;
mod entry;
mod layout;
mod load;
mod run;
mod table;
mod texture;

use pyo3::prelude::*;

/// The extension module `invar._invar`.
/// Writes what a kernel prints to `sys.stdout`, which a notebook or a test may have replaced, and what is said
/// of lines left out to `sys.stderr`.
fn show(kernel: &invar_ir::Kernel, printed: &invar_ir::print::Printed) {
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

#[pymodule]
fn _invar(m: &Bound<'_, PyModule>) -> PyResult<()> {
    invar_runtime::on_print(show);
    invar_runtime::watch_forks();
    m.add_class::<build::Builder>()?;
    m.add_class::<entry::Entry>()?;
    m.add_class::<run::Module>()?;
    m.add_class::<load::Shader>()?;
    m.add_class::<load::MetalSource>()?;
    m.add_class::<device::Device>()?;
    m.add_class::<device::Memory>()?;
    m.add_class::<device::Sizes>()?;
    m.add_class::<device::Program>()?;
    m.add_class::<device::Submission>()?;
    m.add("DeviceError", m.py().get_type::<device::DeviceError>())?;
    m.add_function(wrap_pyfunction!(device::devices, m)?)?;
    m.add(
        "DiagnosticsError",
        m.py().get_type::<convert::DiagnosticsError>(),
    )?;
    m.add_function(wrap_pyfunction!(convert::bits, m)?)?;
    m.add_function(wrap_pyfunction!(texture::texels, m)?)?;
    m.add_function(wrap_pyfunction!(texture::png, m)?)?;
    m.add_function(wrap_pyfunction!(texture::fill_levels, m)?)?;
    m.add_function(wrap_pyfunction!(texture::encoded, m)?)?;
    m.add_function(wrap_pyfunction!(table::ops, m)?)?;
    m.add_function(wrap_pyfunction!(table::rules, m)?)?;
    m.add_function(wrap_pyfunction!(run::parse, m)?)?;
    m.add_function(wrap_pyfunction!(load::decode, m)?)?;
    m.add_function(wrap_pyfunction!(load::bindings, m)?)?;
    m.add_function(wrap_pyfunction!(load::signature, m)?)?;
    m.add_function(wrap_pyfunction!(away::leave, m)?)?;
    m.add_function(wrap_pyfunction!(away::cache_refusal, m)?)?;
    layout::add(m)?;
    m.add_function(wrap_pyfunction!(run::command, m)?)?;
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    Ok(())
}
