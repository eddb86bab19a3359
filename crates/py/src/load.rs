//! Modules that were written elsewhere: shaders, Metal sources, the binary form, and what the parameters of any
//! module's kernels are.

use std::path::PathBuf;

use invar::wgsl;
use invar_ir::{Diagnostics, ElementType, ParamKind, Source};
use invar_msl as msl;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::convert::{diagnostics, refuse, reported};
use crate::run::Module;

/// A shader that was read.
#[pyclass(module = "invar._invar", frozen)]
pub struct Shader {
    shader: wgsl::Shader,
    source: Source,
}

/// A variable of a shader: its name, group and binding, the parameters that it is, of two the bytes of
/// the first, its elements if its type says how many, and the format that it demands of a texture.
type Resource = (
    String,
    Option<u32>,
    Option<u32>,
    Vec<String>,
    Option<u32>,
    Option<u32>,
    Option<&'static str>,
);

/// What kernels use of the host.
fn told(entries: Vec<wgsl::Entry>) -> Vec<Resource> {
    let resources = entries.into_iter().flat_map(|e| e.resources);
    let told = resources.map(|r| {
        let format = r.format.map(|f| f.name());
        (
            r.name,
            r.group,
            r.binding,
            r.params,
            r.head_bytes,
            r.length,
            format,
        )
    });
    told.collect()
}

/// What a kernel's parameters bind to, for those that say it.
#[pyfunction]
pub fn bindings(module: &Module, kernel: &str) -> PyResult<Vec<Resource>> {
    let mut entries = wgsl::entries(module.verified()?);
    entries.retain(|e| e.name == kernel);
    Ok(told(entries))
}

/// The exception for what is wrong with a shader.
fn wrong(source: &Source, errors: &Diagnostics) -> PyErr {
    about(vec![source.clone()], errors)
}

/// The exception for what is wrong in these files.
fn about(sources: Vec<Source>, errors: &Diagnostics) -> PyErr {
    let module = invar_ir::Module {
        sources,
        ..Default::default()
    };
    diagnostics(&module, errors)
}

#[pymethods]
impl Shader {
    /// Reads a shader in WGSL.
    #[new]
    fn new(name: &str, text: &str) -> PyResult<Shader> {
        let source = Source {
            name: name.into(),
            text: wgsl::with_line_feeds(text).into(),
        };
        match wgsl::Shader::parse(name, text) {
            Ok(shader) => Ok(Shader { shader, source }),
            Err(errors) => Err(wrong(&source, &errors)),
        }
    }

    /// The names of the compute entry points.
    fn entries(&self) -> Vec<String> {
        self.shader.entries().map(str::to_string).collect()
    }

    /// What a browser refuses: as text and as JSON.
    fn lints(&self) -> (String, String) {
        let module = invar_ir::Module {
            sources: vec![self.source.clone()],
            ..Default::default()
        };
        reported(&module, &self.shader.lints())
    }

    /// The names of the overrides, or their numbers.
    fn overrides(&self) -> Vec<String> {
        self.shader.overrides()
    }

    /// An entry point as a kernel, with values of overrides that decide a size; and its variables.
    fn kernel(
        &self,
        entry: &str,
        overrides: Vec<(String, f64)>,
    ) -> PyResult<(Module, Vec<Resource>)> {
        let kernels = self.shader.kernels(Some(entry), &overrides);
        let kernels = kernels.map_err(|errors| wrong(&self.source, &errors))?;
        Ok((Module::new(kernels.module), told(kernels.entries)))
    }
}

/// A source in Metal's language, and what it is compiled with.
#[pyclass(module = "invar._invar", frozen)]
pub struct MetalSource {
    library: msl::Library,
}

#[pymethods]
impl MetalSource {
    /// Takes a source, folders of files that it includes, macros and values of function constants.
    #[new]
    fn new(
        name: String,
        text: String,
        includes: Vec<PathBuf>,
        defines: Vec<String>,
        constants: Vec<(String, String)>,
    ) -> MetalSource {
        let library = msl::Library {
            name,
            text,
            includes,
            defines,
            constants,
        };
        MetalSource { library }
    }

    /// The names of its kernels.
    fn entries(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let all = py.detach(|| self.library.names());
        let all = all.map_err(|wrong| about(wrong.sources, &wrong.diagnostics))?;
        Ok(all.into_iter().map(|(name, _)| name).collect())
    }

    /// A kernel, and the variables that it takes.
    fn kernel(&self, py: Python<'_>, name: &str) -> PyResult<(Module, Vec<Resource>)> {
        let kernels = py.detach(|| self.library.possible(Some(name)));
        let kernels = kernels.map_err(|wrong| about(wrong.sources, &wrong.diagnostics))?;
        if kernels.entries.is_empty() {
            let refusals = kernels.refusals();
            return Err(about(kernels.module.sources, &refusals));
        }
        Ok((Module::new(kernels.module), told(kernels.entries)))
    }
}

/// Reads the binary form.
#[pyfunction]
pub fn decode(bytes: &[u8]) -> PyResult<Module> {
    invar_ir::binary::decode(bytes)
        .map(Module::new)
        .map_err(|errors| refuse(errors.to_string()))
}

/// An element type: the name of a value's type, a pair of an array's elements and their number, or a
/// pair of a struct's name and its fields.
fn element<'py>(
    py: Python<'py>,
    module: &invar_ir::Module,
    ty: &ElementType,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(match ty {
        ElementType::Value(ty) => PyString::new(py, &ty.to_string()).into_any(),
        ElementType::Array(inner, length) => (element(py, module, inner)?, *length)
            .into_pyobject(py)?
            .into_any(),
        ElementType::Struct(id) => {
            let def = module.structs.get(id.0 as usize);
            let def = def.ok_or_else(|| refuse("a struct of the module is not declared"))?;
            let fields = PyList::empty(py);
            for (name, ty) in &def.fields {
                fields.append((&**name, element(py, module, ty)?))?;
            }
            (&*def.name, fields).into_pyobject(py)?.into_any()
        }
    })
}

/// The parameters of a kernel: the name of each, its kind, whether the kernel writes it, and what it
/// holds; then the size of its threadgroups if it has one, and the types of function constants by name.
#[pyfunction]
pub fn signature<'py>(
    py: Python<'py>,
    module: &Module,
    kernel: &str,
) -> PyResult<Bound<'py, PyTuple>> {
    let module = module.verified()?;
    let found = module.kernel(kernel);
    let found = found.ok_or_else(|| refuse(format!("there is no kernel `{kernel}`")))?;
    let params = PyList::empty(py);
    for param in &found.params {
        let (kind, writes, holds) = match &param.kind {
            ParamKind::Buffer {
                access,
                element: ty,
                ..
            } => ("buffer", access.can_write(), element(py, module, ty)?),
            ParamKind::Constant { element: ty } => ("constant", false, element(py, module, ty)?),
            ParamKind::Threadgroup { element: ty, .. } => {
                ("threadgroup", false, element(py, module, ty)?)
            }
            ParamKind::Texture(texture) => {
                let writes = texture.access.memory().can_write();
                (
                    "texture",
                    writes,
                    texture.to_string().into_pyobject(py)?.into_any(),
                )
            }
            ParamKind::Sampler => ("sampler", false, "sampler".into_pyobject(py)?.into_any()),
            ParamKind::Scalar { value } => {
                let ty = ElementType::Value(found.ty(*value));
                ("scalar", false, element(py, module, &ty)?)
            }
        };
        params.append((&*param.name, kind, writes, holds))?;
    }
    let constants = module.function_constants.iter();
    let constants: Vec<(String, String)> = constants
        .map(|c| (c.name.to_string(), c.scalar.to_string()))
        .collect();
    (params, found.threadgroup_size, constants).into_pyobject(py)
}
