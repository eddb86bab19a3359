//! Entry points: what each uses of the host.

use invar_ir::{Kernel, Module, Param, ParamKind};
use invar_texture::PixelFormat;

use crate::declared::Declared;

/// What one variable of the host is in a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The variable.
    pub name: String,
    /// Its `@group`.
    pub group: Option<u32>,
    /// Its `@binding`.
    pub binding: Option<u32>,
    /// The kernel's parameters for it: one; or two, for what stands before an array of no fixed length
    /// at the end of a struct, and for the array.
    pub params: Vec<String>,
    /// Of two parameters, the bytes of the first.
    pub head_bytes: Option<u32>,
    /// How many elements the variable has, if its type says so.
    pub length: Option<u32>,
    /// Of a storage texture, the format that its type demands.
    pub format: Option<PixelFormat>,
    /// The type that the source gives its elements, where those of the kernel's parameter are parts of it.
    pub declared: Option<Declared>,
}

/// A compute entry point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name, which is also the kernel's.
    pub name: String,
    /// What it uses of the host, by group and binding.
    pub resources: Vec<Resource>,
    /// The types that the source gives the elements of its own variables in threadgroup memory, by their names, where
    /// those of the kernel are parts of them.
    pub variables: Vec<(String, Declared)>,
}

/// What the kernels of a module use of the host, by what it binds where: of a module that a shader's kernels were
/// printed to, or one that says so itself. Kernels without bindings use nothing.
pub fn entries(module: &Module) -> Vec<Entry> {
    let bytes_of = |params: &[Param], name: &str| {
        let param = params.iter().find(|p| &*p.name == name)?;
        let (ParamKind::Buffer { element, .. } | ParamKind::Constant { element }) = &param.kind
        else {
            return None;
        };
        let extent = element.extent(&module.structs)?;
        u32::try_from(extent.size_bytes).ok()
    };
    let of_kernel = |kernel: &Kernel| {
        let mut resources: Vec<Resource> = Vec::new();
        for param in &kernel.params {
            let Some(binding) = param.binding else {
                continue;
            };
            let (group, number) = (Some(binding.group), Some(binding.number));
            let known = resources
                .iter_mut()
                .find(|r| (r.group, r.binding) == (group, number));
            if let Some(head) = known {
                head.params.push(param.name.to_string());
                head.head_bytes = bytes_of(&kernel.params, &head.params[0]);
                continue;
            }
            resources.push(Resource {
                name: param.name.to_string(),
                group,
                binding: number,
                params: vec![param.name.to_string()],
                head_bytes: None,
                length: None,
                format: None,
                declared: None,
            });
        }
        resources.sort_by_key(|r| (r.group, r.binding));
        Entry {
            name: kernel.name.to_string(),
            resources,
            variables: Vec::new(),
        }
    };
    module.kernels.iter().map(of_kernel).collect()
}
