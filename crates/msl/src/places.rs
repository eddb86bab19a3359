//! Where instructions were written: files, lines and columns, and the calls that were inlined.

use std::collections::HashMap;
use std::sync::Arc;

use invar_ir::{Call, CallId, Module, Position, Source, SourceId, Span};
use invar_llvm::foreign::Location;

use crate::clang::File;

/// Places in the user's files.
pub(crate) struct Places<'a> {
    files: &'a HashMap<String, File>,
    /// The main file's name, which is the module's first source.
    main: &'a str,
    locations: &'a [Location],
    known: HashMap<usize, Span>,
    /// Files by the names that locations have.
    read: HashMap<&'a str, Option<Lines<'a>>>,
    calls: &'a mut Calls,
}

/// The calls of a module, which its kernels share.
#[derive(Default)]
pub(crate) struct Calls(HashMap<(Arc<str>, Span), CallId>);

impl Calls {
    /// Forgets all but the first of the module's.
    pub fn keep_first(&mut self, count: usize) {
        self.0.retain(|_, call| (call.0 as usize) < count);
    }
}

/// A file, and its lines.
struct Lines<'a> {
    file: &'a File,
    lines: Vec<&'a str>,
    /// Whether each of its characters is a byte.
    is_ascii: bool,
}

impl<'a> Places<'a> {
    pub fn new(
        files: &'a HashMap<String, File>,
        main: &'a str,
        locations: &'a [Location],
        calls: &'a mut Calls,
    ) -> Places<'a> {
        Places {
            files,
            main,
            locations,
            known: HashMap::new(),
            read: HashMap::new(),
            calls,
        }
    }

    /// The place of an instruction. One in a file that is not the user's is where the user calls it.
    pub fn span(&mut self, location: usize, module: &mut Module) -> Span {
        if let Some(span) = self.known.get(&location) {
            return *span;
        }
        let locations: &'a [Location] = self.locations;
        let at = &locations[location];
        let outer = at.inlined_at.map(|outer| self.span(outer, module));
        let span = match (self.place(at, module), outer) {
            (Some(mut span), Some(outer)) if !at.function.is_empty() => {
                span.call = Some(self.call(&at.function, outer, module));
                span
            }
            (Some(span), _) => span,
            (None, outer) => outer.unwrap_or(Span::NONE),
        };
        self.known.insert(location, span);
        span
    }

    fn call(&mut self, function: &str, site: Span, module: &mut Module) -> CallId {
        let function: Arc<str> = function.into();
        *self
            .calls
            .0
            .entry((function.clone(), site))
            .or_insert_with(|| {
                module.calls.push(Call { function, site });
                CallId(module.calls.len() as u32 - 1)
            })
    }

    /// A place in a file, whose text the module gets.
    fn place(&mut self, at: &'a Location, module: &mut Module) -> Option<Span> {
        let files = self.files;
        let read = self.read.entry(&at.file).or_insert_with(|| {
            let key = crate::clang::absolute(std::path::Path::new(&at.file));
            let file = files.get(&*key.to_string_lossy())?;
            let lines = file.text.lines().collect();
            let is_ascii = file.text.is_ascii();
            Some(Lines {
                file,
                lines,
                is_ascii,
            })
        });
        let Lines {
            file,
            lines,
            is_ascii,
        } = read.as_ref()?;
        if at.line == 0 {
            return None;
        }
        let source = source(file, self.main, module);
        let (column, length) = match at.column {
            0 => (1, 1),
            column => file.columns.written(at.line, column),
        };
        let line = lines.get(at.line as usize - 1).copied().unwrap_or("");
        // Columns of clang's count bytes, and ours characters.
        let characters = |bytes: u32| {
            let bytes = (bytes as usize).min(line.len());
            match is_ascii {
                true => bytes as u32,
                false => {
                    let chars = line.char_indices();
                    chars.take_while(|(at, _)| *at < bytes).count() as u32
                }
            }
        };
        let start = Position {
            line: at.line,
            column: characters(column - 1) + 1,
        };
        let end = Position {
            line: at.line,
            column: (characters(column - 1 + length) + 1).max(start.column + 1),
        };
        Some(Span {
            source: Some(source),
            start,
            end,
            call: None,
        })
    }
}

/// The number of a file among the module's sources; the main file is the first.
pub(crate) fn source(file: &File, main: &str, module: &mut Module) -> SourceId {
    let at = |module: &Module, name: &str| module.sources.iter().position(|s| *s.name == *name);
    if file.name == main && module.sources.is_empty() || at(module, &file.name).is_none() {
        module.sources.push(Source {
            name: Arc::from(&*file.name),
            text: Arc::from(&*file.text),
        });
    }
    SourceId(at(module, &file.name).unwrap_or(0) as u32)
}
