//! `match` on tuples and vectors, with names for parts, and on every pair of truth values.
use invar::prelude::*;

#[derive(Clone, Copy)]
enum Cell {
    Dead,
    Alive,
}

#[device_fn]
fn neighbours(cells: &[u8], x: u32, y: u32, w: u32) -> u32 {
    let mut count = 0;
    for dy in [w - 1, 0, 1] {
        for dx in [w - 1, 0, 1] {
            if dx == 0 && dy == 0 {
                continue;
            }
            count += cells[(y + dy) % w * w + (x + dx) % w] as u32;
        }
    }
    count
}

/// A step of the game of life on a square whose sides meet.
#[kernel]
fn step(cells: &[u8], next: &mut [u8], w: u32) {
    let [x, y, _] = thread_position_in_grid();
    let alive = cells[y * w + x] == Cell::Alive as u8;
    next[y * w + x] = match (alive, neighbours(cells, x, y, w)) {
        (true, 2 | 3) | (false, 3) => Cell::Alive as u8,
        _ => Cell::Dead as u8,
    };
}

#[kernel]
fn sorts(v: &[[u32; 2]], out: &mut [u32]) {
    let i = thread_position_in_grid().x;
    let is_odd = match (v[i].x % 2 == 1, v[i].y % 2 == 1) {
        (true, true) => 3,
        (true, false) => 2,
        (false, true) => 1,
        (false, false) => 0,
    };
    out[i] = match v[i] {
        [0, mut n] => {
            n += 1;
            n
        }
        [n @ 1..=9, _] if n != 5 => n * 10,
        [_, last] => last * 1000,
    };
    out[i] += 100_000 * is_odd;
}

fn main() -> invar::Result<()> {
    let mut next = [0; 25];
    let mut cells = [0; 25];
    cells[11..14].fill(1);
    step::check(Grid::threads([5, 5]), &cells, &mut next, 5)?.into_result()?;
    cells = [0; 25];
    [7, 12, 17].map(|i| cells[i] = 1);
    assert_eq!(next, cells);
    let mut out = [0; 4];
    let v = [[0, 6], [3, 8], [5, 2], [11, 1]];
    sorts::check(Grid::threads(4), &v, &mut out)?.into_result()?;
    assert_eq!(out, [7, 200_030, 202_000, 301_000]);
    Ok(())
}
