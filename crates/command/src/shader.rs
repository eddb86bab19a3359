//! Shaders as inputs: `.wgsl` files, their variables' names and bindings, the JSON files that describe a
//! dispatch, and `inputs`, which prints one to fill in.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use clap::Args;
use invar_interp::Arg;
use invar_interp::case::Bound;
use invar_ir::diagnostic::path_text;
use invar_ir::text::case::{Program, RunCase};
use invar_ir::text::data::MAX_DATA_BYTES;
use invar_ir::{
    Const, Diagnostic, Diagnostics, Dimension, ElementType, InstKind, Kernel, Memory, Module,
    ParamKind, Scalar, Source, TextureFunction, TextureType, Type, text,
};
use invar_texture::PixelFormat;
use invar_wgsl::{self as wgsl, Entry, Resource, Shader};
use serde_json::{Map, Value as Json, json};

use crate::console::show;
use crate::input::Loaded;
use crate::options::{count, size, split, usage};
use crate::outcome::{Refusal, Verdict};
use crate::plan::Inputs;
use crate::read::{Asked, Read};
use crate::{declared, files, input, metal, npy};

#[derive(Args)]
pub struct InputsArgs {
    /// A shader (.wgsl) or a Metal source (.metal).
    file: PathBuf,
    /// The entry point, where the shader has several.
    #[arg(long, visible_alias = "entry", value_name = "NAME")]
    kernel: Option<String>,
    /// The value of an override or function constant.
    #[arg(long = "const", value_name = "NAME=VALUE")]
    constants: Vec<String>,
    #[command(flatten)]
    with: metal::With,
}

/// Whether a file is a shader, by its name.
pub fn is_shader(file: &Path) -> bool {
    file.extension().is_some_and(|e| e == "wgsl")
}

// ---- what refusals call things ----

/// The lines of a file that say what to run: comments of its language.
pub fn run_line(file: &Path) -> &'static str {
    match is_shader(file) || metal::is_metal(file) {
        true => "// run:",
        false => "; run:",
    }
}

/// The option for the size of a dispatch, as the language of a file counts it.
pub fn grid_option(file: &Path) -> &'static str {
    match is_shader(file) {
        true => "--groups",
        false => "--grid",
    }
}

/// The options for the sizes of a dispatch; a shader says by itself how large its workgroups are.
pub fn size_options(file: &Path) -> &'static str {
    match is_shader(file) {
        true => "--groups",
        false => "--grid, --threadgroup",
    }
}

/// What takes an argument.
pub fn argument_word(file: &Path) -> &'static str {
    match is_shader(file) {
        true => "variable",
        false => "parameter",
    }
}

/// The values of overrides that options give.
pub fn values(constants: &[String]) -> Result<Vec<(String, f64)>, Refusal> {
    let mut values = Vec::new();
    for given in constants {
        let (name, value) = split(given, "--const", "N=16")?;
        let number = match value {
            "true" => Some(1.0),
            "false" => Some(0.0),
            digits => digits.parse::<f64>().ok(),
        };
        let number = number.ok_or_else(|| {
            Refusal(format!(
                "--const {name}: `{value}` is not a number; an override gets a number, true or false"
            ))
        })?;
        values.push((name.trim_start_matches('@').to_string(), number));
    }
    Ok(values)
}

/// Reads a shader.
pub fn read(name: &str, text: &str, asked: Asked) -> Result<Result<Read, Diagnostics>, Refusal> {
    let values = values(asked.constants)?;
    let kernels = Shader::parse(name, text).and_then(|shader| {
        let kernels = shader.kernels(asked.entry, &values)?;
        Ok((kernels, shader))
    });
    match kernels {
        // Without a place it speaks of the command line.
        Err(Diagnostics(all)) if all.iter().all(|d| d.span().source.is_none()) => {
            let Refusal(why) = usage(all);
            Err(Refusal(format!("{name}: {why}")))
        }
        Err(errors) => Ok(Err(errors)),
        Ok((kernels, shader)) => Ok(Ok(Read {
            module: kernels.module,
            entries: kernels.entries,
            shader: Some(shader),
            refused: kernels.refused,
        })),
    }
}

/// The runs that the comments of a file ask for.
pub fn cases(file: &Path, source: &Source) -> Result<(Vec<RunCase>, Vec<Program>), Diagnostics> {
    let text = if is_shader(file) || metal::is_metal(file) {
        Cow::Owned(wgsl::directives(&source.text))
    } else {
        Cow::Borrowed(&*source.text)
    };
    let (mut cases, programs) = (text::cases(&text)?, text::programs(&text)?);
    if metal::is_metal(file) {
        // It is compiled with them.
        cases.iter_mut().for_each(|case| case.constants.clear());
    }
    Ok((cases, programs))
}

/// The values that are still to be given: a shader's overrides that decide a size have theirs.
pub fn still_open<'a>(file: &Path, module: &Module, given: &'a [String]) -> Cow<'a, [String]> {
    if metal::is_metal(file) {
        return Cow::Borrowed(&[]);
    }
    if !is_shader(file) {
        return Cow::Borrowed(given);
    }
    let open = |given: &&String| {
        let name = given.split('=').next().unwrap_or_default().trim();
        let name = name.trim_start_matches(['%', '@']);
        module.function_constants.iter().any(|c| *c.name == *name)
    };
    Cow::Owned(given.iter().filter(open).cloned().collect())
}

/// Diagnostics about a file, with advice in its language.
pub fn advised(file: &Path, diagnostics: &[Diagnostic]) -> Vec<Diagnostic> {
    type Words = fn(&str) -> String;
    let (words, advice): (Words, Words) = if is_shader(file) {
        (wgsl::words_of_wgsl, wgsl::in_wgsl)
    } else if metal::is_metal(file) {
        // Its words are those of the text form.
        (str::to_string, invar_msl::in_metal)
    } else {
        return diagnostics.to_vec();
    };
    let mut all = diagnostics.to_vec();
    for diagnostic in &mut all {
        wgsl::told(diagnostic, words, advice);
    }
    all
}

/// A text about a file: in other languages names have no sign before them, and a shader has its own words.
pub fn named(file: &Path, text: String) -> String {
    let text = match is_shader(file) {
        true => wgsl::launches_in_wgsl(&text),
        false => text,
    };
    match is_shader(file) || metal::is_metal(file) {
        true => text.replace("`%", "`"),
        false => text,
    }
}

fn place(resource: &Resource) -> Option<String> {
    let binding = resource.binding?;
    Some(match resource.group {
        Some(group) => format!("{group}.{binding}"),
        None => binding.to_string(),
    })
}

/// The variable of a shader that an option names, by its name or by its group and binding; `None` if it names none of
/// them.
fn resource<'a>(
    option: &str,
    entries: &'a [Entry],
    kernel: &str,
    name: &str,
) -> Result<Option<&'a Resource>, Refusal> {
    let mut resources = declared::of_kernel(entries, kernel);
    let found = resources.find(|r| r.name == name || place(r).as_deref() == Some(name));
    let is_place = name.split('.').all(|part| part.parse::<u32>().is_ok());
    if found.is_none() && is_place {
        let known: Vec<String> = declared::of_kernel(entries, kernel)
            .filter_map(place)
            .collect();
        if !known.is_empty() {
            return Err(Refusal(format!(
                "{option} {name}: `{kernel}` uses no variable of that group and binding; it uses {}",
                known.join(", ")
            )));
        }
    }
    Ok(found)
}

/// The formats that a shader demands of the textures that a kernel writes, but for those that are given.
pub fn formats(
    entries: &[Entry],
    kernel: &Kernel,
    given: &[(String, PixelFormat)],
) -> Vec<(String, PixelFormat)> {
    let is_open = |name: &str| {
        let param = kernel.params.iter().find(|p| *p.name == *name);
        let writes = param.is_some_and(|p| match &p.kind {
            ParamKind::Texture(texture) => texture.access.memory().can_write(),
            _no_texture => false,
        });
        writes && given.iter().all(|(known, _)| *known != *name)
    };
    let resources = declared::of_kernel(entries, &kernel.name).filter_map(|r| Some((r, r.format?)));
    let all = resources.flat_map(|(r, format)| r.params.iter().map(move |p| (p.clone(), format)));
    all.filter(|(name, _)| is_open(name)).collect()
}

/// The parameters that hold what `--out` names; of a variable that ends in an array of no fixed length both.
pub fn params(entries: &[Entry], kernel: &str, name: &str) -> Result<Vec<String>, Refusal> {
    let found = resource("--out", entries, kernel, name)?;
    Ok(found.map_or_else(Vec::new, |r| r.params.clone()))
}

/// What one `--arg` gives to which parameters. A shader's variable goes by its name or by its group and
/// binding; one that ends in an array of no fixed length is two parameters, which share a file's bytes.
pub fn argument(
    entries: &[Entry],
    kernel: &str,
    name: &str,
    data: &str,
) -> Result<Vec<(String, String)>, Refusal> {
    let Some(resource) = resource("--arg", entries, kernel, name)? else {
        return Ok(vec![(name.to_string(), data.to_string())]);
    };
    match (&resource.params[..], resource.head_bytes) {
        ([head, tail], Some(bytes)) => {
            let Some(file) = data.strip_prefix('@') else {
                // The rest alone, when the array is named by itself.
                return Ok(vec![(head.clone(), data.to_string())]);
            };
            if npy::is_array_file(Path::new(file.trim_matches('"'))) {
                return Err(Refusal(format!(
                    "--arg {name}: {file} is an array file, and `{name}` ends in an array of no fixed length: give \
                     both parts in one file of raw bytes, or each by itself, --arg \"{head}=...\" --arg \"{tail}=@{file}\""
                )));
            }
            Ok(vec![
                (head.clone(), format!("@{file}[..{bytes}]")),
                (tail.clone(), format!("@{file}[{bytes}..]")),
            ])
        }
        (params, _) => Ok(params
            .iter()
            .map(|param| (param.clone(), data.to_string()))
            .collect()),
    }
}

/// The bytes of a file that is not an array file: all of them, or those of a range: `x.bin[16..]`, also of one
/// itself: `x.bin[16..][4..8]`. `None` if it is an array file, or if there is no such file.
pub fn raw_bytes(path: &Path) -> Option<Result<Vec<u8>, String>> {
    const ARRAY: &[u8] = b"\x93NUMPY";
    let whole = |path: &Path| {
        // What is not a file does not say how much is in it.
        let most = if path.is_file() {
            u64::MAX
        } else {
            MAX_DATA_BYTES
        };
        match files::bytes(path, most) {
            Ok(bytes) if bytes.starts_with(ARRAY) || bytes.starts_with(b"PK\x03\x04") => None,
            Ok(bytes) => Some(Ok(bytes)),
            Err(error) => Some(Err(error.to_string())),
        }
    };
    if path.exists() {
        return if npy::is_array_file(path) {
            None
        } else {
            whole(path)
        };
    }
    let text = path.to_str()?;
    let (file, range) = text.strip_suffix(']')?.rsplit_once('[')?;
    let (from, to) = range.split_once("..")?;
    let of = Path::new(file);
    let bytes = match raw_bytes(of).or_else(|| whole(of)) {
        Some(Ok(bytes)) => bytes,
        Some(Err(why)) => return Some(Err(why)),
        None => {
            return Some(Err(format!(
                "{file}: a range of bytes is of a file of raw bytes, not of an array file"
            )));
        }
    };
    let number = |text: &str, otherwise: usize| match text {
        "" => Some(otherwise),
        digits => digits.parse().ok(),
    };
    let (from, to) = (number(from, 0)?, number(to, bytes.len())?);
    Some(match bytes.get(from..to) {
        Some(part) => Ok(part.to_vec()),
        None => Err(format!(
            "{file} has {} bytes, so bytes {from} up to {to} are not in it",
            bytes.len()
        )),
    })
}

/// Whether a kernel compares by a sampler.
fn compares(kernel: &Kernel, sampler: &str) -> bool {
    let number = kernel.params.iter().position(|p| *p.name == *sampler);
    let param = number.map(|number| Memory::Param(number as u32));
    let mut found = false;
    kernel.for_each_inst(&mut |inst| {
        if let InstKind::Texture { function, .. } = &inst.kind
            && let TextureFunction::SampleCompare(sampling)
            | TextureFunction::GatherCompare(sampling) = function
        {
            found |= sampling.sampler.param() == param;
        }
    });
    found
}

/// A texture for a parameter, as a run directive has it.
fn some_texture(texture: TextureType, format: Option<PixelFormat>) -> String {
    let format = match (format, texture.wide_component()) {
        (Some(format), _) => format,
        (None, _) if texture.is_depth => PixelFormat::Depth32Float,
        (None, Scalar::I32) => PixelFormat::Rgba32Sint,
        (None, Scalar::U32) => PixelFormat::Rgba32Uint,
        (None, _float) => PixelFormat::Rgba8Unorm,
    };
    let size = match texture.dimension {
        Dimension::D1 => "64, 1",
        Dimension::D1Array => "64, 1, 4",
        Dimension::D2 => "64, 64",
        Dimension::D2Array | Dimension::D3 => "64, 64, 4",
        Dimension::D2Ms => "64, 64, samples 4",
        Dimension::D2MsArray => "64, 64, 4, samples 4",
        Dimension::Cube => "64, 64, 6",
        Dimension::CubeArray => "64, 64, 12",
        Dimension::Buffer => "1024, 1",
    };
    format!("texture({}, {size})", format.name())
}

/// A variable of fixed length gets as many elements as it has.
pub fn check_lengths(entries: &[Entry], module: &Module, bound: &Bound) -> Result<(), Refusal> {
    let Some(kernel) = module.kernel(&bound.kernel) else {
        return Ok(());
    };
    for resource in declared::of_kernel(entries, &bound.kernel) {
        let first = resource.params.first();
        let wanted = match resource.head_bytes {
            Some(_) => Some(1),
            None => resource.length,
        };
        let at = kernel
            .params
            .iter()
            .position(|p| Some(&*p.name) == first.map(|n| &**n));
        if let (Some(at), Some(format)) = (at, resource.format)
            && let Arg::Texture(shape, _) = &bound.args[at]
            && shape.format != format
        {
            return Err(Refusal(format!(
                "argument for `{}`: the variable is a texture of {}, and this is one of {}",
                resource.name,
                format.name(),
                shape.format.name()
            )));
        }
        let (Some(wanted), Some(at)) = (wanted, at) else {
            continue;
        };
        let (ParamKind::Buffer { element, .. } | ParamKind::Constant { element }) =
            &kernel.params[at].kind
        else {
            continue;
        };
        let size = element
            .extent(&module.structs)
            .map_or(1, |e| e.size_bytes.max(1));
        let bytes = bound.args[at].bytes().len() as u64;
        let (found, behind) = (bytes / size, bytes % size);
        if found != u64::from(wanted) || behind > 0 {
            let behind = match behind {
                0 => String::new(),
                1 => " and 1 byte more".to_string(),
                n => format!(" and {n} bytes more"),
            };
            return Err(Refusal(format!(
                "argument for `{}`: the variable has {} of {size} bytes, and the argument has {found}{behind}",
                resource.name,
                count(wanted as usize, "element"),
            )));
        }
    }
    Ok(())
}

// ---- files of inputs ----

/// Fills in what a file says and no option does.
pub fn complete(inputs: &mut Inputs, file: &Path) -> Result<(), Refusal> {
    let refuse = |why: String| Refusal(format!("{}: {why}", path_text(file)));
    let text = files::text(file)?;
    let form: Json = serde_json::from_str(&text).map_err(|e| refuse(e.to_string()))?;
    let Json::Object(form) = form else {
        return Err(refuse(
            "expected an object with `args` and `groups`".to_string(),
        ));
    };
    const KNOWN: [&str; 6] = [
        "entry",
        "groups",
        "grid",
        "threadgroup",
        "constants",
        "args",
    ];
    if let Some(key) = form.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        return Err(refuse(format!(
            "there is no `{key}`; a file of inputs has {}",
            KNOWN.join(", ")
        )));
    }
    let size = |key: &str| -> Result<Option<[u32; 3]>, Refusal> {
        let numbers = match form.get(key) {
            None | Some(Json::Null) => return Ok(None),
            Some(Json::Array(all)) => all.iter().map(Json::to_string).collect::<Vec<_>>(),
            Some(other) => vec![other.to_string()],
        };
        match size(&numbers.join(",")) {
            Ok(size) => Ok(Some(size)),
            Err(why) => Err(refuse(format!("`{key}`: {why}"))),
        }
    };
    if let Some(entry) = form.get("entry").filter(|e| !e.is_null())
        && inputs.kernel.is_none()
    {
        let name = entry.as_str();
        let name = name.ok_or_else(|| refuse("`entry` is the name of one".to_string()))?;
        inputs.kernel = Some(name.to_string());
    }
    if inputs.grid.is_none() && inputs.groups.is_none() {
        inputs.groups = size("groups")?;
        inputs.grid = size("grid")?;
        if inputs.groups.is_some() && inputs.grid.is_some() {
            return Err(refuse("give `groups` or `grid`, not both".to_string()));
        }
    }
    inputs.threadgroup = match inputs.threadgroup {
        Some(given) => Some(given),
        None => size("threadgroup")?,
    };
    let named = |list: &[String]| -> HashSet<String> {
        let names = list.iter().filter_map(|given| given.split_once('='));
        names.map(|(name, _)| name.trim().to_string()).collect()
    };
    let given = named(&inputs.constants);
    let by_number = given.iter().any(|name| name.parse::<u32>().is_ok());
    for (name, value) in object(&form, "constants").map_err(refuse)? {
        if !given.contains(name) {
            // A number that is given may be this one's: if not, the source says which have no value.
            if value.is_null() && by_number {
                continue;
            }
            if value.is_null() {
                return Err(refuse(format!(
                    "constant `{name}` is not filled in yet: put its value in the place of `null`, or give \
                     --const {name}="
                )));
            }
            inputs.constants.push(format!("{name}={}", plain(value)));
        }
    }
    let given = named(&inputs.args);
    let folder = file.parent().unwrap_or(Path::new(""));
    for (name, value) in object(&form, "args").map_err(refuse)? {
        if given.contains(name) {
            continue;
        }
        let data = match value {
            Json::String(text) => match text.strip_prefix('@') {
                Some(path) => format!("@{}", folder.join(path).display()),
                None => text.clone(),
            },
            Json::Null => {
                inputs.args_of_file.push((name.clone(), None));
                continue;
            }
            Json::Object(_) => in_words(value, 0)
                .map_err(|what| refuse(format!("`{name}`: {what} is not a number")))?,
            Json::Array(items) if items.iter().any(has_fields) => in_words(value, 0)
                .map_err(|what| refuse(format!("`{name}`: {what} is not a number")))?,
            Json::Array(_) | Json::Number(_) | Json::Bool(_) => {
                let mut numbers = Vec::new();
                flatten(value, &mut numbers)
                    .map_err(|what| refuse(format!("`{name}`: {what} is not a number")))?;
                format!("[{}]", numbers.join(", "))
            }
        };
        inputs.args_of_file.push((name.clone(), Some(data)));
    }
    Ok(())
}

fn object<'a>(
    form: &'a Map<String, Json>,
    key: &str,
) -> Result<impl Iterator<Item = (&'a String, &'a Json)>, String> {
    match form.get(key) {
        None | Some(Json::Null) => Ok(None.into_iter().flatten()),
        Some(Json::Object(all)) => Ok(Some(all.iter()).into_iter().flatten()),
        Some(_) => Err(format!("`{key}` is an object of names and values")),
    }
}

fn plain(value: &Json) -> String {
    match value.as_str() {
        Some(text) => text.to_string(),
        None => value.to_string(),
    }
}

/// Whether an element of a list is fields by name, or a list of such.
fn has_fields(value: &Json) -> bool {
    match value {
        Json::Object(_) => true,
        Json::Array(items) => items.iter().any(has_fields),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => false,
    }
}

/// Nested lists and fields as `--arg` has them.
fn in_words(value: &Json, depth: u32) -> Result<String, String> {
    if depth > declared::MAX_DEPTH {
        return Err("what is nested so deep".to_string());
    }
    Ok(match value {
        Json::Array(items) => {
            let items = items.iter().map(|item| in_words(item, depth + 1));
            format!("[{}]", items.collect::<Result<Vec<_>, _>>()?.join(", "))
        }
        Json::Object(fields) => {
            let fields = fields.iter().map(|(field, value)| {
                let value = in_words(value, depth + 1);
                let at = |what: String| match what.strip_prefix('`') {
                    Some(rest) => format!("`{field}.{rest}"),
                    None => format!("`{field}`: {what}"),
                };
                Ok::<_, String>(format!("\"{field}\": {}", value.map_err(at)?))
            });
            format!("{{{}}}", fields.collect::<Result<Vec<_>, _>>()?.join(", "))
        }
        Json::Number(_) | Json::Bool(_) => value.to_string(),
        Json::Null | Json::String(_) => return Err(value.to_string()),
    })
}

/// The numbers of nested lists, in order.
fn flatten(value: &Json, out: &mut Vec<String>) -> Result<(), String> {
    match value {
        Json::Array(items) => items.iter().try_for_each(|item| flatten(item, out)),
        Json::Number(_) | Json::Bool(_) => {
            out.push(value.to_string());
            Ok(())
        }
        Json::Null | Json::String(_) | Json::Object(_) => Err(value.to_string()),
    }
}

/// The shader that a form is of; what is wrong with it is said where it is read.
/// The shader that a file is, if it can be read.
pub fn shader_of(file: &Path) -> Option<Shader> {
    if !is_shader(file) {
        return None;
    }
    let text = files::text(file).ok()?;
    Shader::parse(&path_text(file), &text).ok()
}

/// The one entry point that a form is of, read with these constants; `None` if the file has errors, which are said.
/// Function constants of a Metal source that it needs besides get some value, and are added to `open`.
fn read_one(
    args: &InputsArgs,
    shader: Option<&Shader>,
    loaded: &Loaded,
    constants: &[String],
    open: &mut Vec<String>,
) -> Result<Option<(Read, Entry)>, Refusal> {
    // Of a form nothing runs: the verifier is not asked, as it is where all entry points are read.
    let mut entries = shader.into_iter().flat_map(Shader::entries);
    let only = entries.next().filter(|_| entries.next().is_none());
    let read = loop {
        let any = open.iter().map(|name| format!("{name}=1"));
        let constants: Vec<String> = constants.iter().cloned().chain(any).collect();
        let asked = Asked {
            entry: args.kernel.as_deref().or(only),
            constants: &constants,
            with: Some(&args.with),
            of_runs: false,
        };
        match input::parsed(&args.file, loaded, asked)? {
            Ok(read) => break read,
            Err((sources, all)) => {
                let mut more = metal::without_value(&all);
                more.retain(|name| !open.contains(name));
                if more.is_empty() {
                    input::tell(&args.file, &sources, &all);
                    return Ok(None);
                }
                open.extend(more);
            }
        }
    };
    read.one_of_all(&args.file)?;
    let [entry] = &read.entries[..] else {
        let names: Vec<String> = read
            .entries
            .iter()
            .map(|e| format!("`{}`", e.name))
            .collect();
        return Err(Refusal(format!(
            "{} has several entry points: say which with --entry: {}",
            path_text(&args.file),
            names.join(", ")
        )));
    };
    let entry = entry.clone();
    Ok(Some((read, entry)))
}

/// Data for each parameter of an entry point, to begin with.
fn how_to_fill(module: &Module, entry: &Entry, is_metal: bool) -> Map<String, Json> {
    let mut all = Map::new();
    let kernel = module.kernel(&entry.name);
    for param in kernel.into_iter().flat_map(|k| &k.params) {
        let resource = entry
            .resources
            .iter()
            .find(|r| r.params.contains(&param.name.to_string()));
        if let ParamKind::Texture(texture) = &param.kind {
            let format = resource.and_then(|r| r.format);
            let how = some_texture(*texture, format);
            all.insert(param.name.to_string(), Json::String(how));
            continue;
        }
        if param.kind == ParamKind::Sampler {
            let how = match kernel.is_some_and(|kernel| compares(kernel, &param.name)) {
                true => "sampler(linear, compare_less)",
                false => "sampler(linear)",
            };
            all.insert(param.name.to_string(), Json::String(how.to_string()));
            continue;
        }
        if let ParamKind::Threadgroup { .. } = &param.kind {
            all.insert(
                param.name.to_string(),
                Json::String("length(1024)".to_string()),
            );
            continue;
        }
        let (ParamKind::Buffer { element, .. } | ParamKind::Constant { element }) = &param.kind
        else {
            continue;
        };
        let is_head = resource.is_some_and(|r| {
            r.head_bytes.is_some() && r.params.first().map(|n| &**n) == Some(&*param.name)
        });
        let count = match resource {
            _ if is_head => 1,
            Some(r) if r.head_bytes.is_none() => r.length.unwrap_or(1024),
            Some(_) | None => 1024,
        };
        // A struct in constant memory is its fields, to be filled in.
        if let Some(declared) = resource.and_then(|r| r.declared.as_ref())
            && let ParamKind::Constant { .. } = &param.kind
            && let ElementType::Struct(_) = declared.element
        {
            let fields = declared::zeros(declared);
            all.insert(param.name.to_string(), fields);
            continue;
        }
        // So is a vector by reference; of a number by reference no value is as good as another.
        if let ParamKind::Constant { .. } = &param.kind
            && let Some(Resource {
                length: Some(_),
                declared,
                ..
            }) = resource.filter(|_| is_metal)
        {
            let how = match declared {
                Some(d) if !matches!(d.element, ElementType::Value(_)) => declared::zeros(d),
                _number => Json::Null,
            };
            all.insert(param.name.to_string(), how);
            continue;
        }
        let how = match element {
            ElementType::Struct(_) if count == 1 => format!("zeros({count})"),
            // A number of its own, such as a count, is not a random one.
            ElementType::Value(Type::Scalar(scalar)) if count == 1 && scalar.is_integer() => {
                format!("zeros({count})")
            }
            ElementType::Struct(_) | ElementType::Value(_) | ElementType::Array(..) => {
                format!("random({count}, 1)")
            }
        };
        all.insert(param.name.to_string(), Json::String(how));
    }
    all
}

/// Prints a form for the inputs of an entry point.
pub fn inputs(args: &InputsArgs, loaded: &Loaded) -> Result<Verdict, Refusal> {
    if !is_shader(&args.file) && !metal::is_metal(&args.file) {
        return Err(Refusal(format!(
            "{}: inputs are of a shader (.wgsl) or a Metal source (.metal)",
            path_text(&args.file)
        )));
    }
    // What has no value yet is filled in later: no variable of the host depends on it.
    let shader = shader_of(&args.file);
    let given = values(&args.constants)?;
    let open = (shader.as_ref()).map_or_else(Vec::new, |shader| {
        shader.open_sizes(args.kernel.as_deref(), &given)
    });
    let any = open.iter().map(|name| format!("{name}=1"));
    let constants: Vec<String> = args.constants.iter().cloned().chain(any).collect();
    let mut unset = Vec::new();
    let found = read_one(args, shader.as_ref(), loaded, &constants, &mut unset)?;
    let Some((read, entry)) = found else {
        return Ok(Verdict::Errors);
    };
    let all = how_to_fill(&read.module, &entry, metal::is_metal(&args.file));
    let kernel = read.module.kernel(&entry.name);
    let mut used = HashSet::new();
    if let Some(kernel) = kernel {
        kernel.for_each_inst(&mut |inst| {
            if let InstKind::FunctionConstant(number) = inst.kind {
                used.insert(number as usize);
            }
        });
    }
    let all_constants = read.module.function_constants.iter().enumerate();
    // An override that is made of others has the value that they give it.
    let settings: Vec<(String, Option<Const>)> = match &shader {
        Some(shader) => shader.settings(&entry.name),
        None => all_constants
            .filter(|(number, _)| used.contains(number))
            .map(|(_, c)| (c.name.to_string(), c.default))
            .collect(),
    };
    let number = |value: Option<Const>| {
        let text = value.map(|value| value.to_string());
        text.and_then(|text| serde_json::from_str(&text).ok())
    };
    let mut constants: Map<String, Json> = settings
        .into_iter()
        .map(|(name, value)| (name, number(value).unwrap_or(Json::Null)))
        .collect();
    constants.extend(unset.into_iter().map(|name| (name, Json::Null)));
    // Those that were given count where the form is used, too.
    for given in &args.constants {
        let (name, value) = split(given, "--const", "N=16")?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
        constants.insert(name.trim_start_matches('@').to_string(), value);
    }
    let mut form = Map::new();
    form.insert("entry".to_string(), json!(entry.name));
    form.insert("groups".to_string(), json!([1, 1, 1]));
    if kernel.is_some_and(|k| k.threadgroup_size.is_none()) {
        form.insert("threadgroup".to_string(), json!([64, 1, 1]));
    }
    form.insert("args".to_string(), Json::Object(all));
    if !constants.is_empty() {
        form.insert("constants".to_string(), Json::Object(constants));
    }
    show(&serde_json::to_string_pretty(&form)?);
    Ok(Verdict::Clean)
}
