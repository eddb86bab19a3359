//! Translated kernels on disk: what a source becomes follows from its text and that of what it includes, from what it
//! is compiled with, and from clang, LLVM and this reader.
//!
//! Only what clang read no other file for is kept. Deliberately absent: sources with something wrong
//! outside of the bodies of functions, which are compiled again.

use std::path::Path;

use invar_cache::{Cache, Key};
use invar_ir::once::Once;
use invar_ir::{
    Call, Diagnostic, Diagnostics, ElementType, Rule, Severity, Span, StructDef, binary,
};
use invar_wgsl::{Declared, Entry, Resource};
use serde::{Deserialize, Serialize};

use crate::clang::{self, Request, Sources};
use crate::kernels::Kernels;

/// Where the kernels of a source are kept.
pub(crate) struct Place {
    cache: &'static Cache,
    key: Key,
}

/// The form of an entry.
#[derive(Serialize, Deserialize)]
struct Form {
    module: Vec<u8>,
    entries: Vec<EntryForm>,
    refused: Vec<(String, Vec<DiagnosticForm>)>,
    names: Vec<String>,
    constants: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct EntryForm {
    name: String,
    resources: Vec<ResourceForm>,
    variables: Vec<(String, (ElementType, Vec<StructDef>))>,
}

#[derive(Serialize, Deserialize)]
struct ResourceForm {
    name: String,
    binding: Option<u32>,
    length: Option<u32>,
    params: Vec<String>,
    declared: Option<(ElementType, Vec<StructDef>)>,
}

#[derive(Serialize, Deserialize)]
struct DiagnosticForm {
    is_error: bool,
    rule: String,
    message: String,
    labels: Vec<(Span, String)>,
    help: Option<String>,
    calls: Vec<Call>,
}

/// The place of what is asked for, unless nothing is kept, or what is read cannot all be known before clang reads it.
pub(crate) fn place(request: &Request, sources: &Sources) -> Option<Place> {
    static CACHE: Once<Option<Cache>> = Once::new();
    let cache = CACHE.get_or_make(Cache::from_environment).as_ref()?;
    // It may ask for files that are not there.
    let asks = |text: &str| text.contains("__has_include") || text.contains("__has_embed");
    if sources.rewritten.iter().any(|(_, text)| asks(text)) {
        return None;
    }
    let (clang, version) = clang::found().as_ref().ok()?;
    let library = invar_llvm::identity().ok()?;
    let clang = clang.to_string_lossy();
    let version_here = env!("CARGO_PKG_VERSION");
    let mut parts: Vec<Vec<u8>> = Vec::new();
    for text in [
        "metal",
        version_here,
        env!("INVAR_READER"),
        &clang,
        version,
        &library,
    ] {
        parts.push(text.into());
    }
    let mut list = |name: &str, all: &mut dyn Iterator<Item = String>| {
        parts.push(name.into());
        let all: Vec<String> = all.collect();
        parts.push(all.len().to_le_bytes().to_vec());
        parts.extend(all.into_iter().map(String::into_bytes));
    };
    list("name", &mut std::iter::once(request.name.to_string()));
    list("kernel", &mut request.kernel.into_iter().map(String::from));
    list("defines", &mut request.defines.iter().cloned());
    let includes = request.includes.iter();
    list("includes", &mut includes.map(|i| absolute(i)));
    let mut constants: Vec<_> = request.constants.iter().collect();
    constants.sort();
    list(
        "constants",
        &mut constants.into_iter().map(|(n, v)| format!("{n}={v}")),
    );
    let rewritten = sources.rewritten.iter();
    list(
        "sources",
        &mut rewritten.clone().map(|(path, _)| path.clone()),
    );
    let shown = |path: &String| sources.files.get(path).map(|file| file.name.clone());
    list(
        "shown",
        &mut rewritten.clone().filter_map(|(path, _)| shown(path)),
    );
    let original = |path: &String| sources.files.get(path).map(|file| file.text.clone());
    list(
        "texts",
        &mut rewritten.clone().filter_map(|(path, _)| original(path)),
    );
    list("rewritten", &mut rewritten.map(|(_, text)| text.clone()));
    let parts: Vec<&[u8]> = parts.iter().map(|part| &**part).collect();
    Some(Place {
        cache,
        key: Key::of(&parts),
    })
}

fn absolute(path: &Path) -> String {
    clang::absolute(path).to_string_lossy().into_owned()
}

impl Place {
    /// What is kept there; nothing if it is gone or no such thing.
    pub(crate) fn load(&self) -> Option<Kernels> {
        let form: Form = postcard::from_bytes(&self.cache.load(&self.key)?).ok()?;
        let refused = form.refused.into_iter().map(|(name, errors)| {
            let errors: Option<Vec<Diagnostic>> = errors.into_iter().map(diagnostic).collect();
            Some((name, Diagnostics(errors?)))
        });
        let entries = form.entries.into_iter().map(|entry| Entry {
            name: entry.name,
            resources: entry.resources.into_iter().map(resource).collect(),
            variables: (entry.variables.into_iter())
                .map(|(name, (element, structs))| (name, Declared { element, structs }))
                .collect(),
        });
        Some(Kernels {
            module: binary::decode(&form.module).ok()?,
            entries: entries.collect(),
            refused: refused.collect::<Option<_>>()?,
            names: form.names,
            constants: form.constants,
        })
    }

    pub(crate) fn store(&self, kernels: &Kernels) {
        let entries = kernels.entries.iter().map(|entry| {
            let resources = entry.resources.iter().map(|r| ResourceForm {
                name: r.name.clone(),
                binding: r.binding,
                length: r.length,
                params: r.params.clone(),
                declared: r.declared.clone().map(|d| (d.element, d.structs)),
            });
            let variables = entry.variables.iter();
            let variables = variables.map(|(name, declared)| {
                let declared = declared.clone();
                (name.clone(), (declared.element, declared.structs))
            });
            EntryForm {
                name: entry.name.clone(),
                resources: resources.collect(),
                variables: variables.collect(),
            }
        });
        let refused = kernels.refused.iter().map(|(name, Diagnostics(errors))| {
            let errors = errors.iter().map(|e| DiagnosticForm {
                is_error: e.severity == Severity::Error,
                rule: e.rule.name().to_string(),
                message: e.message.clone(),
                labels: e.labels.iter().map(|l| (l.span, l.text.clone())).collect(),
                help: e.help.clone(),
                calls: e.calls.clone(),
            });
            (name.clone(), errors.collect())
        });
        let form = Form {
            module: binary::encode(&kernels.module),
            entries: entries.collect(),
            refused: refused.collect(),
            names: kernels.names.clone(),
            constants: kernels.constants.clone(),
        };
        if let Ok(bytes) = postcard::to_allocvec(&form) {
            self.cache.store(&self.key, &bytes);
        }
    }
}

/// What a host binds has neither a group, nor a head, nor a format here.
fn resource(form: ResourceForm) -> Resource {
    Resource {
        name: form.name,
        group: None,
        binding: form.binding,
        params: form.params,
        head_bytes: None,
        length: form.length,
        format: None,
        declared: form
            .declared
            .map(|(element, structs)| Declared { element, structs }),
    }
}

fn diagnostic(form: DiagnosticForm) -> Option<Diagnostic> {
    let rule = *Rule::ALL.iter().find(|rule| rule.name() == form.rule)?;
    let mut labels = form.labels.into_iter();
    let (span, text) = labels.next()?;
    let new = match form.is_error {
        true => Diagnostic::error(rule, span, form.message),
        false => Diagnostic::warning(rule, span, form.message),
    };
    let new = labels.fold(new.labelled(text), |new, (span, text)| new.and(span, text));
    Some(Diagnostic {
        help: form.help,
        calls: form.calls,
        ..new
    })
}
