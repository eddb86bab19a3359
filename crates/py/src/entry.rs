//! Entries of the package: functions whose errors show the author's frames only.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// A function that the author calls. An error of ours that leaves it, or one that a kernel's code
/// raised, has no traceback of its own: what Python prints ends at the author's line.
#[pyclass(dict, module = "invar._invar")]
pub struct Entry {
    function: Py<PyAny>,
    error: Py<PyAny>,
}

#[pymethods]
impl Entry {
    /// An entry of a Python function, for errors of a class.
    #[new]
    fn new(function: Py<PyAny>, error: Py<PyAny>) -> Entry {
        Entry { function, error }
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        self.function.call(py, args, kwargs).map_err(|error| {
            let value = error.into_value(py).into_bound(py).into_any();
            let ours = value.is_instance(self.error.bind(py)).unwrap_or(false);
            if ours || value.hasattr("__invar_place__").unwrap_or(false) {
                // An exception without traceback is still the error itself.
                let _ = value.setattr("__traceback__", py.None());
            }
            PyErr::from_value(value)
        })
    }
}
