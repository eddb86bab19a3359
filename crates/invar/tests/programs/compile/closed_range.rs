use invar::prelude::*;

#[kernel]
fn k(x: &mut [f32], n: u32) {
    for i in 0..=n {
        x[i] = 1.0;
    }
}

fn main() {
    let mut x = [0.0; 5];
    let found = k::check(Grid::threads(1), &mut x, 3).expect("a run");
    found.into_result().expect("no findings");
    assert_eq!(x, [1.0, 1.0, 1.0, 1.0, 0.0]);
}
