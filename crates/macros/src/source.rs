//! Where words stand, and the text around them.
//!
//! A function has one file, which all its places are in. A macro of the author's may put words of several files
//! together: the function is then shown in the one that most of its words are of, and words of others stand where
//! those around them do.

use std::cell::{Cell, RefCell};

use proc_macro2::{Group, Ident, Literal, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};

/// Line and column of a begin and of an end, counted from 1.
type Numbers = [usize; 4];

/// The file of a function whose words are of several.
struct Shown {
    file: String,
    /// Where the innermost words stand that have a word of that file.
    around: Numbers,
}

thread_local! {
    static SHOWN: RefCell<Option<Shown>> = const { RefCell::new(None) };
}

/// The words that are not groups.
fn leaves(words: TokenStream, each: &mut impl FnMut(&TokenTree)) {
    for word in words {
        match &word {
            TokenTree::Group(group) => leaves(group.stream(), each),
            _ => each(&word),
        }
    }
}

/// The words that stand in a file: a group of it as a whole, and of another one what is in it.
fn in_file(words: TokenStream, file: &str, each: &mut impl FnMut(&TokenTree)) {
    for word in words {
        if word.span().file() == file {
            each(&word);
        } else if let TokenTree::Group(group) = word {
            in_file(group.stream(), file, each);
        }
    }
}

/// Writes what becomes of a function, whose places are all in one file.
pub fn in_one_file<R>(function: &TokenStream, write: impl FnOnce() -> R) -> R {
    let mut files: Vec<(String, u32)> = Vec::new();
    leaves(function.clone(), &mut |word| {
        let file = word.span().file();
        match files.iter_mut().find(|(name, _)| *name == file) {
            Some((_, count)) => *count += 1,
            None => files.push((file, 1)),
        }
    });
    let most = files.iter().max_by_key(|(_, count)| *count);
    let shown = most.filter(|_| files.len() > 1).map(|(file, _)| Shown {
        file: file.clone(),
        around: ends(function.clone(), Some(file)).unwrap_or_default(),
    });
    let before = SHOWN.replace(shown);
    let result = write();
    SHOWN.replace(before);
    result
}

/// The first and the last place of some words, of those that are of a file.
fn ends(words: TokenStream, file: Option<&str>) -> Option<Numbers> {
    let mut spans = Vec::new();
    match file {
        None => spans.extend(words.into_iter().map(|word| word.span())),
        Some(file) => in_file(words, file, &mut |word| spans.push(word.span())),
    }
    let (start, end) = (spans.first()?.start(), spans.last()?.end());
    Some([start.line, start.column + 1, end.line, end.column + 1])
}

/// Where words stand in their function's file.
fn numbers(words: TokenStream) -> Numbers {
    SHOWN.with_borrow(|shown| match shown {
        Some(shown) => ends(words, Some(&shown.file)).unwrap_or(shown.around),
        None => ends(words, None).unwrap_or_else(|| {
            let here = Span::call_site().start();
            [here.line, here.column + 1, here.line, here.column + 1]
        }),
    })
}

/// The name of the file that a function is shown in, as rustc calls it.
pub fn file(name: &Ident) -> String {
    let shown = SHOWN.with_borrow(|shown| shown.as_ref().map(|shown| shown.file.clone()));
    shown.unwrap_or_else(|| name.span().file())
}

/// The place of some words as `invar::kernel::Place4`.
pub fn place(words: impl ToTokens) -> TokenStream {
    let numbers = numbers(words.into_token_stream());
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
    let words = words.into_token_stream();
    let around = HERE.replace(Some(located(&words)));
    let place_around = stand_at(words);
    let result = write();
    if let Some(place) = place_around {
        SHOWN.with_borrow_mut(|shown| shown.iter_mut().for_each(|s| s.around = place));
    }
    HERE.set(around);
    result
}

/// Has what follows stand where these words do, in a function of several files; gives where it stood.
fn stand_at(words: TokenStream) -> Option<Numbers> {
    SHOWN.with_borrow_mut(|shown| {
        let shown = shown.as_mut()?;
        let place = ends(words, Some(&shown.file)).unwrap_or(shown.around);
        Some(std::mem::replace(&mut shown.around, place))
    })
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

/// The text of some words in their own lines and columns, blank around them: of those in their function's file.
pub fn text(words: TokenStream) -> String {
    let mut lines: Vec<String> = Vec::new();
    let file = SHOWN.with_borrow(|shown| shown.as_ref().map(|shown| shown.file.clone()));
    match file {
        Some(file) => in_file(words, &file, &mut |word| put_word(&mut lines, word)),
        None => {
            for word in words {
                put_word(&mut lines, &word);
            }
        }
    }
    lines.join("\n")
}

fn put_word(lines: &mut Vec<String>, word: &TokenTree) {
    let start = word.span().start();
    put(lines, word.span().end().line, 0, "");
    // A group stands here as a whole, with its comments.
    if let Some(text) = word.span().source_text() {
        for (i, line) in text.lines().enumerate() {
            let column = if i == 0 { start.column } else { 0 };
            put(lines, start.line + i, column, line);
        }
    }
}

fn put(lines: &mut Vec<String>, line: usize, column: usize, text: &str) {
    // Reports number the lines also where there is nothing to show of them.
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
