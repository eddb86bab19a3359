//! `for` over an array that is written out, of numbers, tuples and matrices, and over a Rust constant.
use invar::prelude::*;

const WEIGHTS: [f32; 3] = [0.25, 0.5, 0.25];

#[kernel(threadgroup(8))]
fn sums(x: &[f32], y: &mut [f32], n: u32) {
    let tile = threadgroup!([f32; 8]);
    let t = thread_position_in_threadgroup().x;
    let mut at = t;
    tile[t] = 0.0;
    for w in WEIGHTS {
        tile[t] += w * x[at];
        at += 1;
    }
    threadgroup_barrier();
    for step in [n / 2, n / 4, n / 8] {
        if t < step {
            tile[t] += tile[t + step];
        }
        threadgroup_barrier();
    }
    let mut turned = [1.0f32, 0.0];
    for m in [[[0.0, 1.0], [-1.0, 0.0]], [[2.0, 0.0], [0.0, 2.0]]] {
        turned = m * turned;
    }
    if t == 0 {
        y[0] = tile[0];
        y[1] = turned.y;
    }
}

/// How many neighbours are larger, of the first that are, at most two.
#[kernel]
fn larger(x: &[i32], out: &mut [i32], w: i32) {
    let p = thread_position_in_grid();
    let (px, py) = (p.x as i32, p.y as i32);
    let mut count = 0;
    'all: for (dx, dy) in [(-1, 0), (1, 0), (0, -1), (0, 1)] {
        let (a, b) = (px + dx, py + dy);
        if a < 0 || a >= w || b < 0 || b >= w {
            continue;
        }
        for more in [0] {
            if x[b * w + a] > x[py * w + px] + more {
                count += 1;
            }
            if count == 2 {
                break 'all;
            }
        }
    }
    out[py * w + px] = count;
}

fn main() -> invar::Result<()> {
    let mut y = [0.0; 2];
    sums::check(Grid::threads(8), &[1.0; 10], &mut y, 8)?.into_result()?;
    assert_eq!(y, [8.0, 2.0]);
    let mut out = [0; 9];
    larger::check(Grid::threads([3, 3]), &[1, 2, 3, 4, 0, 6, 7, 8, 9], &mut out, 3)?.into_result()?;
    assert_eq!(out, [2, 1, 1, 1, 2, 1, 1, 1, 0]);
    Ok(())
}
