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
mod print;
mod run;
mod table;
mod texture;

use pyo3::prelude::*;

/// The extension module `invar._invar`.
#[pymodule]
fn _invar(m: &Bound<'_, PyModule>) -> PyResult<()> {
    invar_runtime::on_print(print::show);
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
