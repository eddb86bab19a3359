//! Text of the author in comments of what is written.

/// A line that stays in a comment: without what ends a line in some language (WGSL also takes U+2028 and
/// U+2029 for that), and without a backslash at the end, by which C++ takes the next line for more of it.
pub(crate) fn one_line(text: &str) -> String {
    let text: String = text
        .trim()
        .chars()
        .map(|c| match c {
            '\u{2028}' | '\u{2029}' => ' ',
            c if c.is_control() => ' ',
            c => c,
        })
        .collect();
    text.trim_end_matches(['\\', ' ']).to_string()
}
