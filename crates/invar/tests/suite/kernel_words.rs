//! Words of Rust that stand where one does not think of them: in macros, behind one another, in long rows.

use invar::prelude::*;

#[kernel]
fn stray(y: &mut [u32]) {
    let mut n = 1;
    if n == 1 {
        n += 1;
    };
    loop {
        n += 1;
        if n > 5 {
            break;
        }
    }
    y[0] = n;
}

#[test]
fn a_semicolon_that_ends_nothing_is_nothing() {
    let mut y = [0];
    stray(Grid::threads(1), &mut y);
    assert_eq!(y, [6]);
}

#[kernel]
fn changes_inside(y: &mut [u32], n: u32) {
    let (mut a, mut b, mut c) = (0u32, 0u32, 0u32);
    if n > 2 {
        println!("{}", {
            a += 1;
            a
        });
        if matches!(
            {
                b += 2;
                b
            },
            2 | 3
        ) {
            c = 5;
        }
    }
    'outer: loop {
        loop {
            println!("{}", {
                if a > 3 {
                    break 'outer;
                }
                a
            });
            a += 1;
        }
    }
    y[0] = a;
    y[1] = b;
    y[2] = c;
}

#[test]
fn what_stands_in_macros_changes_variables_and_leaves_loops() {
    let mut y = [0; 3];
    changes_inside(Grid::threads(1), &mut y, 3);
    assert_eq!(y, [4, 2, 5]);
    changes_inside(Grid::threads(1), &mut y, 2);
    assert_eq!(y, [4, 0, 0]);
}

macro_rules! labelled {
    ($name:ident, $outer:lifetime, $inner:lifetime) => {
        #[kernel]
        fn $name(y: &mut [u32], n: u32) {
            let mut count = 0;
            $outer: for i in 0..n {
                $inner: loop {
                    count += 1;
                    if count % 2 == 0 {
                        continue $outer;
                    }
                    if i == 3 {
                        break $outer;
                    }
                    if count > 100 {
                        break $inner;
                    }
                }
            }
            y[0] = count;
        }
    };
}
labelled!(counted, 'a, 'b);

#[test]
fn labels_come_from_macros() {
    let mut y = [0];
    counted(Grid::threads(1), &mut y, 9);
    assert_eq!(y, [7]);
}

#[kernel]
fn halves(x: &[f16], y: &mut [bf16]) {
    let i = thread_position_in_grid().x;
    let twice = x[i] * 2.0 as f16;
    if twice > 3.0 as f16 {
        y[i] = twice as bf16 + f32::from(x[i]) as bf16;
    }
}

#[test]
fn half_floats_come_with_the_prelude() {
    let mut y = [bf16::ZERO; 2];
    let x = [1.0, 2.0].map(f16::from_f32);
    halves(Grid::threads(2), &x, &mut y);
    assert_eq!(y.map(bf16::to_f32), [0.0, 6.0]);
}

trait Way {
    fn joined(a: Val<f32>, b: Val<f32>) -> Val<f32>;
}

struct Sum;
struct Most;

impl Way for Sum {
    #[device_fn]
    fn joined(a: f32, b: f32) -> f32 {
        a + b
    }
}

impl Way for Most {
    #[device_fn]
    fn joined(a: f32, b: f32) -> f32 {
        max(a, b)
    }
}

#[kernel]
fn folded<W: Way>(x: &[f32], y: &mut [f32], n: u32) {
    let mut all = x[0];
    for i in 1..n {
        all = W::joined(all, x[i]);
    }
    y[0] = all;
}

#[test]
fn a_kernel_is_generic_over_a_trait_of_the_author_s() {
    let mut y = [0.0];
    folded::<Sum>(Grid::threads(1), &[1.0, 3.0, 2.0], &mut y, 3);
    assert_eq!(y, [6.0]);
    folded::<Most>(Grid::threads(1), &[1.0, 3.0, 2.0], &mut y, 3);
    assert_eq!(y, [3.0]);
}

macro_rules! long {
    ($x:ident: $($term:tt)*) => {
        #[kernel]
        fn long_sum($x: &[u32], y: &mut [u32]) {
            y[0] = $x[0] $($term)*;
        }
    };
}
macro_rules! dozen {
    ($x:ident: $($t:tt)*) => {
        long! { $x: $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* }
    };
}
macro_rules! gross {
    ($x:ident: $($t:tt)*) => {
        dozen! { $x: $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* }
    };
}
macro_rules! great_gross {
    ($x:ident: $($t:tt)*) => {
        gross! { $x: $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* }
    };
}
great_gross!(x: + x[1]);

macro_rules! long_condition {
    ($x:ident: $($term:tt)*) => {
        #[kernel]
        fn long_test($x: &[u32], y: &mut [u32]) {
            if $x[0] == 1 $($term)* {
                y[0] = 1;
            }
        }
    };
}
macro_rules! condition {
    ($x:ident: $($t:tt)*) => {
        long_condition! { $x: $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* $($t)* }
    };
}
condition!(x: && x[1] < 9 && true);

#[test]
fn expressions_have_any_number_of_terms() {
    let mut y = [0];
    long_sum(Grid::threads(1), &[5, 2], &mut y);
    assert_eq!(y, [5 + 2 * 12 * 12 * 12]);
    long_test(Grid::threads(1), &[1, 2], &mut y);
    assert_eq!(y, [1]);
}

/// What a cell is, by its number in buffers.
#[derive(Clone, Copy)]
enum Cell {
    Empty,
    Wall = 7,
    Door,
}

struct Board;

impl Board {
    const ROWS: usize = 3;
}

#[kernel]
fn cells(x: &[u8], y: &mut [u32]) {
    let i = thread_position_in_grid().x;
    if x[i] == Cell::Wall as u8 || x[i] == (Cell::Door) as u8 {
        y[i] = Cell::Wall as u32 + Board::ROWS as u32;
    } else if x[i] == Cell::Empty as u8 {
        y[i] = u32::MAX as u8 as u32;
    }
}

#[test]
fn variants_of_enums_are_numbers() {
    let mut y = [0; 4];
    cells(Grid::threads(4), &[0, 7, 8, 1], &mut y);
    assert_eq!(y, [255, 10, 10, 0]);
}
