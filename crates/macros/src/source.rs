//! Where words stand, and the text around them.

use std::cell::Cell;

use proc_macro2::{Group, Ident, Literal, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};

/// The place of some words as `invar::kernel::Place4`.
pub fn place(words: impl ToTokens) -> TokenStream {
    let mut words = words.into_token_stream().into_iter();
    let first = words.next();
    let last = words.last().or_else(|| first.clone());
    let begin = first.map_or_else(Span::call_site, |t| t.span());
    let end = last.map_or_else(Span::call_site, |t| t.span());
    let (start, end) = (begin.start(), end.end());
    let numbers = [start.line, start.column + 1, end.line, end.column + 1];
    let numbers = numbers.map(|n| Literal::u32_unsuffixed(u32::try_from(n).unwrap_or(u32::MAX)));
    quote!([#(#numbers),*])
}

/// The span of what the macro writes for some words: rustc shows them for it.
pub fn located(words: impl ToTokens) -> Span {
    let first = words.into_token_stream().into_iter().next();
    let at = first.map_or_else(Span::call_site, |t| t.span());
    Span::mixed_site().located_at(at)
}

/// The span of a type of the author's: what is wrong with it is told there, once.
pub fn own(words: impl ToTokens) -> Span {
    let first = words.into_token_stream().into_iter().next();
    first.map_or_else(Span::call_site, |word| word.span())
}

/// A name as if it stood at another place.
pub fn moved_name(name: &Ident, to: Span) -> Ident {
    let mut moved = name.clone();
    moved.set_span(name.span().located_at(to));
    moved
}

/// The words as if they stood at another place: rustc tells the same there but once.
pub fn moved(words: impl ToTokens, to: Span) -> TokenStream {
    let one = |mut word: TokenTree| {
        if let TokenTree::Group(group) = &word {
            word = Group::new(group.delimiter(), moved(group.stream(), to)).into();
        }
        word.set_span(word.span().located_at(to));
        word
    };
    words.into_token_stream().into_iter().map(one).collect()
}

thread_local! {
    static HERE: Cell<Option<Span>> = const { Cell::new(None) };
}

/// While this runs, rustc shows these words for what the macro writes.
pub fn shown_as<R>(words: impl ToTokens, write: impl FnOnce() -> R) -> R {
    let around = HERE.replace(Some(located(words)));
    let result = write();
    HERE.set(around);
    result
}

/// The span of what the macro writes: that of the innermost words that it writes something for.
pub fn here() -> Span {
    HERE.get().unwrap_or_else(Span::mixed_site)
}

/// What the macro writes for the words at hand, as [`quote::quote!`].
macro_rules! words {
    ($($word:tt)*) => {
        quote::quote_spanned!(crate::source::here()=> $($word)*)
    };
}
pub(crate) use words;

/// The text of some words in their own lines and columns, blank around them.
pub fn text(words: TokenStream) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        put_word(&mut lines, &word);
    }
    lines.join("\n")
}

fn put_word(lines: &mut Vec<String>, word: &TokenTree) {
    let start = word.span().start();
    // A group stands here as a whole, with its comments.
    if let Some(text) = word.span().source_text() {
        for (i, line) in text.lines().enumerate() {
            let column = if i == 0 { start.column } else { 0 };
            put(lines, start.line + i, column, line);
        }
    }
}

fn put(lines: &mut Vec<String>, line: usize, column: usize, text: &str) {
    if lines.len() < line {
        lines.resize(line, String::new());
    }
    let Some(line) = line.checked_sub(1).and_then(|i| lines.get_mut(i)) else {
        return;
    };
    let length = line.chars().count();
    line.extend(std::iter::repeat_n(' ', column.saturating_sub(length)));
    line.push_str(text);
}
