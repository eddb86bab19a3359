//! Reports: diagnostics as text with the author's own lines, and as JSON for machines.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use invar_ir::{Call, Diagnostic, Label, Module, Position, Severity, Source, Span};
use invar_runtime::Capabilities;
use serde_json::{Value as Json, json};

/// Whether to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Plain characters.
    Plain,
    /// With terminal colours.
    Coloured,
}

/// Diagnostics as text: for each, what is wrong, the lines it is about, and what to do.
///
/// `sources` are those of the module that the diagnostics are about, also where it did not parse.
pub fn render(sources: &[Source], calls: &[Call], all: &[Diagnostic], style: Style) -> String {
    let renderer = match style {
        Style::Plain => Renderer::plain(),
        Style::Coloured => Renderer::styled(),
    };
    let mut out = String::new();
    for diagnostic in all {
        out.push_str(&renderer.render(&groups(sources, calls, diagnostic)));
        out.push_str("\n\n");
    }
    out
}

/// As [`render`], for the diagnostics of a module at hand.
pub fn render_for(module: &Module, all: &[Diagnostic], style: Style) -> String {
    render(&module.sources, &module.calls, all, style)
}

fn groups<'a>(
    sources: &'a [Source],
    calls: &'a [Call],
    diagnostic: &'a Diagnostic,
) -> Vec<Group<'a>> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level
        .primary_title(diagnostic.message.as_str())
        .id(diagnostic.rule.name());
    let mut group = Group::with_title(title);
    let absent = |label: &Label| absent_line(sources, label.span);
    // The place of what it is about stands first, as where there are lines.
    if let Some((name, at)) = diagnostic.labels.first().and_then(absent) {
        let place = Origin::path(name).line(at.line as usize);
        group = group.element(place.char_column(at.column as usize));
    }
    for snippet in snippets(sources, &diagnostic.labels) {
        group = group.element(snippet);
    }
    for label in &diagnostic.labels {
        if let Some((name, at)) = absent(label)
            && !label.text.is_empty()
        {
            let what = format!("{name}:{}:{}: {}", at.line, at.column, label.text);
            group = group.element(Level::NOTE.message(what));
        }
    }
    for note in call_notes(sources, calls, diagnostic) {
        group = group.element(Level::NOTE.message(note));
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    vec![group]
}

/// The source and the place of a span whose line is not at hand, as of a program that runs where its sources are not.
fn absent_line(sources: &[Source], span: Span) -> Option<(&str, Position)> {
    let source = sources.get(span.source?.0 as usize)?;
    let line = source
        .text
        .lines()
        .nth((span.start.line as usize).checked_sub(1)?);
    match line.is_some_and(|line| !line.trim().is_empty()) {
        true => None,
        false => Some((&source.name, span.start)),
    }
}

/// One snippet a source, in the order in which the labels name them; the first label is the primary
/// one. Labels without a source or without its line have nothing to be shown and go without.
fn snippets<'a>(
    sources: &'a [Source],
    labels: &'a [Label],
) -> Vec<Snippet<'a, annotate_snippets::Annotation<'a>>> {
    let mut order = Vec::new();
    for label in labels {
        if let Some(id) = label.span.source
            && (id.0 as usize) < sources.len()
            && absent_line(sources, label.span).is_none()
            && !order.contains(&id)
        {
            order.push(id);
        }
    }
    order
        .into_iter()
        .map(|id| {
            let source = &sources[id.0 as usize];
            let annotations = labels
                .iter()
                .enumerate()
                .filter(|(_, label)| label.span.source == Some(id))
                .filter(|(_, label)| absent_line(sources, label.span).is_none())
                .map(|(i, label)| {
                    let kind = if i == 0 {
                        AnnotationKind::Primary
                    } else {
                        AnnotationKind::Context
                    };
                    let annotation = kind.span(byte_range(&source.text, label.span));
                    if label.text.is_empty() {
                        annotation
                    } else {
                        annotation.label(label.text.as_str())
                    }
                });
            Snippet::source(&*source.text)
                .path(&*source.name)
                .annotations(annotations.collect::<Vec<_>>())
        })
        .collect()
}

/// The inlined calls that led to the places of a diagnostic, as lines: one a call where all places were reached
/// through the same ones, else one a place, which says what is there.
fn call_notes(sources: &[Source], calls: &[Call], diagnostic: &Diagnostic) -> Vec<String> {
    let labels = &diagnostic.labels;
    let chain = |label: &Label| call_chain(calls, diagnostic, label.span);
    let first = labels.first().map(chain).unwrap_or_default();
    let is_one = labels.iter().all(|label| chain(label) == first);
    let told = if is_one { 1 } else { labels.len() };
    let mut notes = Vec::new();
    for (number, label) in labels.iter().take(told).enumerate() {
        let what = match (is_one, label.text.is_empty(), number) {
            (true, ..) | (false, true, 0) => String::new(),
            (false, true, _) => place(sources, label.span).map_or_else(String::new, |p| p + ": "),
            (false, false, _) => format!("{}: ", label.text),
        };
        let called = chain(label).into_iter().map(|(function, site)| {
            let source = site.source.and_then(|id| sources.get(id.0 as usize));
            let origin = source.map_or_else(String::new, |source| {
                format!(", called at {}:{}", source.name, site.start.line)
            });
            format!("in `{function}`{origin}")
        });
        let called: Vec<String> = called.collect();
        match (is_one, called.is_empty()) {
            (_, true) => {}
            (true, false) => notes.extend(called),
            (false, false) => notes.push(what + &called.join(", ")),
        }
    }
    notes
}

/// The inlined calls through which a place of a diagnostic was reached, innermost first.
fn call_chain<'a>(
    calls: &'a [Call],
    diagnostic: &'a Diagnostic,
    span: Span,
) -> Vec<(&'a str, Span)> {
    let calls = match &diagnostic.calls[..] {
        [] => calls,
        brought => brought,
    };
    let mut chain = Vec::new();
    let mut at = span.call;
    while let Some(call) = at.and_then(|id| calls.get(id.0 as usize)) {
        chain.push((&*call.function, call.site));
        at = call.site.call;
        if chain.len() > calls.len() {
            break;
        }
    }
    chain
}

/// The bytes of a source that a span covers: on its first line only, as far as it goes there, since
/// what matters of an instruction with regions is its head.
fn byte_range(text: &str, span: Span) -> std::ops::Range<usize> {
    let mut offset = 0;
    for (number, line) in (1u32..).zip(text.split_inclusive('\n')) {
        if number == span.start.line {
            let content = line.trim_end_matches(['\n', '\r']);
            let column = |c: u32| {
                content
                    .char_indices()
                    .nth(c.saturating_sub(1) as usize)
                    .map_or(content.len(), |(i, _)| i)
            };
            let start = column(span.start.column);
            let end = if span.end.line == span.start.line {
                column(span.end.column).max(start)
            } else {
                content.trim_end().len().max(start)
            };
            return offset + start..offset + end;
        }
        offset += line.len();
    }
    text.len()..text.len()
}

/// Diagnostics as JSON: a list of objects with `severity`, `rule`, `message`, `labels` (each with
/// `file`, `line`, `column`, `end_line`, `end_column`, `text`, and `calls`, the inlined calls that led there,
/// innermost first), `calls`, those of the first, and `help`.
pub fn to_json(sources: &[Source], calls: &[Call], all: &[Diagnostic]) -> Json {
    let place = |span: Span| {
        json!({
            "file": span.source.and_then(|id| sources.get(id.0 as usize)).map(|s| s.name.to_string()),
            "line": span.start.line,
            "column": span.start.column,
            "end_line": span.end.line,
            "end_column": span.end.column,
        })
    };
    let called = |d: &Diagnostic, span: Span| -> Json {
        let chain = call_chain(calls, d, span).into_iter();
        let named = chain.map(|(function, site)| {
            let mut one = place(site);
            one["function"] = json!(function);
            one
        });
        named.collect()
    };
    all.iter()
        .map(|d| {
            json!({
                "severity": match d.severity { Severity::Error => "error", Severity::Warning => "warning" },
                "rule": d.rule.name(),
                "message": d.message,
                "labels": d.labels.iter().map(|l| {
                    let mut one = place(l.span);
                    one["text"] = json!(l.text);
                    one["calls"] = called(d, l.span);
                    one
                }).collect::<Vec<_>>(),
                "calls": called(d, d.span()),
                "help": d.help,
            })
        })
        .collect()
}

/// A diagnostic's place as `file:line:column`, or nothing for code that no author wrote.
pub fn place(sources: &[Source], span: Span) -> Option<String> {
    let source = sources.get(span.source?.0 as usize)?;
    Some(format!(
        "{}:{}:{}",
        source.name, span.start.line, span.start.column
    ))
}

/// What a device can do, for machines: the fields of [`Capabilities`] by their names.
pub fn capabilities_to_json(able: &Capabilities) -> Json {
    fn names<T: ToString>(items: &[T]) -> Vec<String> {
        items.iter().map(T::to_string).collect()
    }
    let orders: Vec<&str> = able.memory_orders.iter().map(|o| o.name()).collect();
    json!({
        "name": able.name,
        "family": able.family,
        "description": able.description,
        "host_threads": able.host_threads,
        "simdgroup_size": able.simdgroup_size,
        "simdgroup_sizes": able.simdgroup_sizes,
        "thread_memory_bytes": able.thread_memory_bytes,
        "threadgroup_memory_bytes": able.threadgroup_memory_bytes,
        "threads_per_threadgroup": able.threads_per_threadgroup,
        "buffer_bytes": able.buffer_bytes,
        "constant_buffer_bytes": able.constant_buffer_bytes,
        "constant_offset_bytes": able.constant_offset_bytes,
        "types": names(&able.types),
        "ieee_float": names(&able.ieee_float),
        "atomics": names(&able.atomics),
        "memory_orders": orders,
        "simdgroup_matrices": names(&able.simdgroup_matrices),
        "async_copy": able.async_copy,
        "threadgroup_progress": able.threadgroup_progress,
        "own_clock": able.own_clock,
    })
}
