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
}

impl<'a> Places<'a> {
    pub fn new(
        files: &'a HashMap<String, File>,
        main: &'a str,
        locations: &'a [Location],
    ) -> Places<'a> {
        Places {
            files,
            main,
            locations,
            known: HashMap::new(),
        }
    }

    /// The place of an instruction. One in a file that is not the user's is where the user calls it.
    pub fn span(&mut self, location: usize, module: &mut Module) -> Span {
        if let Some(span) = self.known.get(&location) {
            return *span;
        }
        let at = &self.locations[location];
        let outer = at.inlined_at.map(|outer| self.span(outer, module));
        let span = match (place(self.files, self.main, at, module), outer) {
            (Some(mut span), Some(outer)) if !at.function.is_empty() => {
                span.call = Some(call(&at.function, outer, module));
                span
            }
            (Some(span), _) => span,
            (None, outer) => outer.unwrap_or(Span::NONE),
        };
        self.known.insert(location, span);
        span
    }
}

fn call(function: &str, site: Span, module: &mut Module) -> CallId {
    let call = Call {
        function: function.into(),
        site,
    };
    let known = module.calls.iter().position(|c| *c == call);
    CallId(known.unwrap_or_else(|| {
        module.calls.push(call);
        module.calls.len() - 1
    }) as u32)
}

/// A place in a file, whose text the module gets.
fn place(
    files: &HashMap<String, File>,
    main: &str,
    at: &Location,
    module: &mut Module,
) -> Option<Span> {
    let key = crate::clang::absolute(std::path::Path::new(&at.file));
    let file = files.get(&*key.to_string_lossy())?;
    if at.line == 0 {
        return None;
    }
    let source = source(file, main, module);
    let (column, length) = match at.column {
        0 => (1, 1),
        column => file.columns.written(at.line, column),
    };
    let line = file.text.lines().nth(at.line as usize - 1).unwrap_or("");
    // Columns of clang's count bytes, and ours characters.
    let characters = |bytes: u32| {
        let bytes = (bytes as usize).min(line.len());
        line.char_indices()
            .take_while(|(at, _)| *at < bytes)
            .count() as u32
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
