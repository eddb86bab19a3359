//! Modules that were written elsewhere: shaders, Metal sources, the binary form, and what the parameters of any
//! module's kernels are.

use std::path::PathBuf;

use invar_ir::{Diagnostics, ElementType, ParamKind, Source, StructDef};
use invar_msl as msl;
use invar_wgsl as wgsl;
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
/// the first, its elements if its type says how many, the format that it demands of a texture, and the
/// type that its source gives its elements; then what data counts of them, how many of the parameter's one of
/// these is, and how many of these the kernel accesses at once.
type Resource<'py> = (
    String,
    Option<u32>,
    Option<u32>,
    Vec<String>,
    Option<u32>,
    Option<u32>,
    Option<&'static str>,
    Option<Written<'py>>,
);

type Written<'py> = (Bound<'py, PyAny>, Option<(Bound<'py, PyAny>, u64, u64)>);

/// What kernels use of the host.
fn told<'py>(
    py: Python<'py>,
    module: &invar_ir::Module,
    entries: Vec<wgsl::Entry>,
) -> PyResult<Vec<Resource<'py>>> {
    let mut all = Vec::new();
    for entry in entries {
        let kernel = module.kernel(&entry.name);
        for r in entry.resources {
            let params = kernel.map_or(&[][..], |k| &k.params[..]);
            let param = params.iter().find(|p| r.params[..] == [&*p.name]);
            let written = match (&r.declared, param.map(|p| &p.kind)) {
                (
                    Some(declared),
                    Some(
                        ParamKind::Buffer { element: own, .. }
                        | ParamKind::Constant { element: own }
                        | ParamKind::Threadgroup { element: own },
                    ),
                ) => {
                    let counted = declared.counted(own, &module.structs);
                    let counted = counted.map(|c| {
                        let unit = element(py, &c.unit.structs, &c.unit.element)?;
                        Ok::<_, PyErr>((unit, c.parts, c.at_a_time))
                    });
                    let whole = element(py, &declared.structs, &declared.element)?;
                    Some((whole, counted.transpose()?))
                }
                (_, _) => None,
            };
            let format = r.format.map(|f| f.name());
            all.push((
                r.name,
                r.group,
                r.binding,
                r.params,
                r.head_bytes,
                r.length,
                format,
                written,
            ));
        }
    }
    Ok(all)
}

/// What a kernel's parameters bind to, for those that say it.
#[pyfunction]
pub fn bindings<'py>(
    py: Python<'py>,
    module: &Module,
    kernel: &str,
) -> PyResult<Vec<Resource<'py>>> {
    let module = module.verified()?;
    let mut entries = wgsl::entries(module);
    entries.retain(|e| e.name == kernel);
    told(py, module, entries)
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
    fn kernel<'py>(
        &self,
        py: Python<'py>,
        entry: &str,
        overrides: Vec<(String, f64)>,
    ) -> PyResult<(Module, Vec<Resource<'py>>)> {
        let kernels = self.shader.kernels(Some(entry), &overrides);
        let kernels = kernels.map_err(|errors| wrong(&self.source, &errors))?;
        let resources = told(py, &kernels.module, kernels.entries)?;
        Ok((Module::new(kernels.module), resources))
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
    fn kernel<'py>(&self, py: Python<'py>, name: &str) -> PyResult<(Module, Vec<Resource<'py>>)> {
        let kernels = py.detach(|| self.library.possible(Some(name)));
        let kernels = kernels.map_err(|wrong| about(wrong.sources, &wrong.diagnostics))?;
        if kernels.entries.is_empty() {
            let refusals = kernels.refusals();
            return Err(about(kernels.module.sources, &refusals));
        }
        let written = wgsl::written(&kernels.module, &kernels.entries);
        let resources = told(py, &kernels.module, kernels.entries)?;
        Ok((Module::of_source(kernels.module, written), resources))
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
    structs: &[StructDef],
    ty: &ElementType,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(match ty {
        ElementType::Value(ty) => PyString::new(py, &ty.to_string()).into_any(),
        ElementType::Array(inner, length) => (element(py, structs, inner)?, *length)
            .into_pyobject(py)?
            .into_any(),
        ElementType::Struct(id) => {
            let def = structs.get(id.0 as usize);
            let def = def.ok_or_else(|| refuse("a struct of the module is not declared"))?;
            let fields = PyList::empty(py);
            for (name, ty) in &def.fields {
                fields.append((&**name, element(py, structs, ty)?))?;
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
    let structs = &module.structs;
    let params = PyList::empty(py);
    for param in &found.params {
        let (kind, writes, holds) = match &param.kind {
            ParamKind::Buffer {
                access,
                element: ty,
                ..
            } => ("buffer", access.can_write(), element(py, structs, ty)?),
            ParamKind::Constant { element: ty } => ("constant", false, element(py, structs, ty)?),
            ParamKind::Threadgroup { element: ty, .. } => {
                ("threadgroup", false, element(py, structs, ty)?)
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
                ("scalar", false, element(py, structs, &ty)?)
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
