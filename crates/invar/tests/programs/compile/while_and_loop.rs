use invar::prelude::*;

#[kernel]
fn digits(x: &mut [u32]) {
    let i = thread_position_in_grid().x;
    let (mut n, mut sum) = (x[i], 0);
    while n > 0 {
        sum += n % 10;
        n /= 10;
    }
    loop {
        if sum < 10 {
            break;
        }
        sum -= 9;
    }
    x[i] = sum;
}

fn main() -> invar::Result<()> {
    let mut x = [1999];
    digits::check(Grid::threads(1), &mut x)?.into_result()?;
    assert_eq!(x, [1]);
    Ok(())
}
