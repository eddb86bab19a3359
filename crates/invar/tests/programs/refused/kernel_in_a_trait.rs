use invar::prelude::*;

trait Filter {
    #[kernel]
    fn blur(y: &mut [f32]) {
        y[0] = 1.0;
    }
}

fn main() {}
