use invar::prelude::*;

#[kernel]
fn sum(
    a: &[i8], b: &[i16], c: &[i32], d: &[i64], e: &[u8], f: &[u16], g: &[u32], h: &[u64], x: &[f32],
    y: &[f64], out: &mut [f64],
) {
    let i = thread_position_in_grid().x;
    let signed = a[i] as i64 + b[i] as i64 + c[i] as i64 + d[i];
    let unsigned = e[i] as u64 + f[i] as u64 + g[i] as u64 + h[i];
    out[i] = signed as f64 + unsigned as f64 + x[i] as f64 + y[i];
}

fn main() -> invar::Result<()> {
    let mut out = [0.0];
    let one = Grid::threads(1);
    sum::check(one, &[1], &[2], &[3], &[4], &[5], &[6], &[7], &[8], &[0.5], &[0.25], &mut out)?
        .into_result()?;
    assert_eq!(out, [36.75]);
    Ok(())
}
