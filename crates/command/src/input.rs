//! Reading modules.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use crate::console::say;
use crate::files::{self, Destination};
use crate::outcome::Refusal;
use crate::read::{Asked, Parsed, Read};
use crate::{metal, shader};
use invar::report::{self, Style};
use invar_ir::diagnostic::path_text;
use invar_ir::{Diagnostic, Diagnostics, Module, Source, binary, text};

/// Modules that are in memory, by the name that the command line gives them.
pub type Loaded = [(PathBuf, Module)];

/// Reads a module in any form, or takes it from those in memory.
pub fn parsed(file: &Path, loaded: &Loaded, asked: Asked) -> Result<Parsed, Refusal> {
    if let Some((_, module)) = loaded.iter().find(|(name, _)| name == file) {
        return Ok(Ok(module.clone().into()));
    }
    if is_python(file) {
        return Err(Refusal(format!(
            "{}: kernels of Python files are read by the command of the Python package: `python -m invar` in \
             place of `invar`",
            path_text(file)
        )));
    }
    let bytes = files::bytes(file, files::MOST_TEXT_BYTES)?;
    if bytes.starts_with(binary::MAGIC) {
        return binary::decode(&bytes)
            .map(|module| Ok(module.into()))
            .map_err(|e| Refusal(format!("{}: {e}", path_text(file))));
    }
    // Some editors begin a text so; it is not part of it.
    let bytes = match bytes.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) => rest.to_vec(),
        None => bytes,
    };
    let source = match String::from_utf8(bytes) {
        Ok(source) => source,
        // Of other encodings, C++ has what comments hold.
        Err(e) if metal::is_metal(file) => String::from_utf8_lossy(e.as_bytes()).into_owned(),
        Err(e) => {
            return Err(Refusal(format!(
                "{}: neither text nor a binary module (byte {} is not UTF-8)",
                path_text(file),
                e.utf8_error().valid_up_to()
            )));
        }
    };
    let source = match shader::is_shader(file) {
        true => invar_wgsl::with_line_feeds(&source).into_owned(),
        false => source,
    };
    let name = path_text(file);
    if metal::is_metal(file) {
        return metal::read(&name, &source, asked);
    }
    let read = match shader::is_shader(file) {
        true => shader::read(&name, &source, asked)?,
        false => text::parse(&name, &source).map(Read::from),
    };
    Ok(read.map_err(|Diagnostics(all)| {
        let source = Source {
            name: name.into(),
            text: source.into(),
        };
        (vec![source], all)
    }))
}

/// Whether a file is one of Python's, FILE.py or FILE.py:KERNEL. The package has read those that it names.
fn is_python(file: &Path) -> bool {
    let name = path_text(file);
    let (path, _) = name.rsplit_once(':').unwrap_or((&name, ""));
    path.ends_with(".py")
}

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// As [`parsed`], with errors reported: `None`.
pub fn read(file: &Path, loaded: &Loaded, asked: Asked) -> Result<Option<Read>, Refusal> {
    match parsed(file, loaded, asked)? {
        Ok(read) => Ok(Some(read)),
        Err((sources, all)) => {
            tell(file, &sources, &all);
            Ok(None)
        }
    }
}

/// Says what is wrong with a file, in the words of its language.
pub fn tell(file: &Path, sources: &[Source], all: &[Diagnostic]) {
    let all = shader::advised(file, all);
    say(report::render(sources, &[], &all, style()).trim_end());
}

/// Colours where a person looks.
pub fn style() -> Style {
    if std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        Style::Coloured
    } else {
        Style::Plain
    }
}

/// Whether what is to be written would replace the kernel that was read.
pub fn is_the_kernel(file: &Path, destination: &Destination) -> bool {
    Destination::of(file).is_ok_and(|kernel| kernel.is_same(destination))
}
