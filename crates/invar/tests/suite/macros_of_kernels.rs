//! Macros that make kernels in other files: their lines differ from those of where they are called.

/// The line of this file that has these words.
pub fn line_of(words: &str) -> String {
    let text = include_str!("macros_of_kernels.rs");
    let found = text.lines().position(|l| l.trim() == words);
    format!("macros_of_kernels.rs:{}:", found.expect("the line") + 1)
}

/// A kernel whose words all stand here.
macro_rules! out_of_bounds {
    ($name:ident) => {
        #[kernel]
        fn $name(x: &mut [u32]) {
            let i = thread_position_in_grid().x;
            x[i + 1] = 5;
        }
    };
}
pub(crate) use out_of_bounds;

/// A kernel whose body stands where it is called.
macro_rules! with_body {
    ($name:ident($y:ident, $i:ident) $body:block) => {
        #[kernel]
        fn $name($y: &mut [u32]) {
            let $i = thread_position_in_grid().x;
            $body
        }
    };
}
pub(crate) use with_body;
