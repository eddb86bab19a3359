//! Reading modules and writing files.

use std::io::Write;
use std::path::Path;

use invar::ir::{Diagnostics, Module, Source, binary, text};
use invar::report::{self, Style};
use std::io::IsTerminal;

use crate::{Refusal, say};

/// Reads a module in either form. `None` if it is not one, which has been reported.
pub fn module(file: &Path) -> Result<Option<Module>, Refusal> {
    let bytes = std::fs::read(file).map_err(|e| {
        let text = e.to_string();
        let text = text.split(" (os error").next().unwrap_or_default();
        Refusal(format!("{}: {}", file.display(), text.to_lowercase()))
    })?;
    if bytes.starts_with(binary::MAGIC) {
        return binary::decode(&bytes)
            .map(Some)
            .map_err(|e| Refusal(format!("{}: {e}", file.display())));
    }
    let source = String::from_utf8(bytes).map_err(|e| {
        Refusal(format!(
            "{}: neither text nor a binary module (byte {} is not UTF-8)",
            file.display(),
            e.utf8_error().valid_up_to()
        ))
    })?;
    let name = file.display().to_string();
    match text::parse(&name, &source) {
        Ok(module) => Ok(Some(module)),
        Err(Diagnostics(all)) => {
            let source = Source {
                name: name.into(),
                text: source.into(),
            };
            say(report::render(&[source], &[], &all, style()).trim_end());
            Ok(None)
        }
    }
}

/// Colours where a person looks.
pub fn style() -> Style {
    if std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        Style::Coloured
    } else {
        Style::Plain
    }
}

/// Writes a file whole or not at all.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Refusal> {
    let refuse = |e: std::io::Error| {
        let text = e.to_string();
        let text = text.split(" (os error").next().unwrap_or_default();
        Refusal(format!("{}: {}", path.display(), text.to_lowercase()))
    };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(refuse)?;
    file.write_all(bytes).map_err(refuse)?;
    file.persist(path).map_err(|e| refuse(e.error))?;
    Ok(())
}
