//! Labels and statements that a macro of the author's puts in, and `;` that ends nothing.
use invar::prelude::*;

macro_rules! kernel_with {
    ($label:lifetime, $last:stmt) => {
        #[kernel]
        fn made(y: &mut [u32]) {
            let mut n = 0;;
            $label: loop {
                loop {
                    n += 1;
                    if n > 3 {
                        break $label;
                    }
                }
            }
            y[0] = n;
            $last;
        }
    };
}
kernel_with!('out, {});

fn main() {
    let mut y = [0];
    made(Grid::threads(1), &mut y);
    assert_eq!(y, [4]);
}
