//! The edges of a grey picture by Sobel's two filters.
//!
//! `cargo run --example sobel -- IN.pgm OUT.pgm` takes a picture in the binary form of PGM. Without
//! arguments it is a disc.

use invar::prelude::*;

/// Three points in a row, of which the middle one counts twice.
#[device_fn]
fn weighted(picture: &[u8], a: u32, b: u32, c: u32) -> i32 {
    picture[a] as i32 + 2 * picture[b] as i32 + picture[c] as i32
}

/// Beyond its edges the picture goes on as it is there.
#[kernel(threadgroup(32, 2))]
pub fn sobel(picture: &[u8], edges: &mut [u8], width: u32, height: u32) {
    let (x, y) = (thread_position_in_grid().x, thread_position_in_grid().y);
    let (left, right) = (x.sub_sat(1), min(x + 1, width - 1));
    let (above, here) = (y.sub_sat(1) * width, y * width);
    let below = min(y + 1, height - 1) * width;
    let west = weighted(picture, above + left, here + left, below + left);
    let east = weighted(picture, above + right, here + right, below + right);
    let north = weighted(picture, above + left, above + x, above + right);
    let south = weighted(picture, below + left, below + x, below + right);
    let (across, down) = (east - west, south - north);
    let steepness = ((across * across + down * down) as f32).sqrt();
    edges[here + x] = steepness as u8; // above 255 it is 255 (A5)
}

/// Width, height and points of a picture.
fn read(file: &str) -> Result<(usize, usize, Vec<u8>), Box<dyn std::error::Error>> {
    let bytes = std::fs::read(file)?;
    let mut words = bytes.splitn(5, u8::is_ascii_whitespace);
    let mut word = || Some(std::str::from_utf8(words.next()?).ok()?.to_string());
    let (Some("P5"), Some(width), Some(height), Some("255")) =
        (word().as_deref(), word(), word(), word().as_deref())
    else {
        return Err(format!("{file} is not a PGM of single bytes without comments").into());
    };
    let points = words.next().unwrap_or_default().to_vec();
    Ok((width.parse()?, height.parse()?, points))
}

/// A white disc on black.
fn disc() -> (usize, usize, Vec<u8>) {
    let white = |i: usize| (i % 160).abs_diff(80).pow(2) + (i / 160).abs_diff(60).pow(2) < 2500;
    let points = (0..160 * 120).map(|i| u8::from(white(i)) * 255);
    (160, 120, points.collect())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    let (width, height, points) = match files.first() {
        Some(file) => read(file)?,
        None => disc(),
    };
    let (w, h) = (u32::try_from(width)?, u32::try_from(height)?);

    let device = Device::default()?;
    let picture = device.buffer_from(&points)?;
    let mut edges = device.buffer_zeroed::<u8>(points.len())?;
    sobel::launch(&device, Grid::threads([w, h]), &picture, &mut edges, w, h)?.wait()?;
    let found = edges.read()?;

    // The same on the host.
    let point = |x: usize, y: usize, across: i32, down: i32| {
        let x = x.saturating_add_signed(across as isize).min(width - 1);
        let y = y.saturating_add_signed(down as isize).min(height - 1);
        i32::from(points[y * width + x])
    };
    for (i, edge) in found.iter().enumerate() {
        let (x, y) = (i % width, i / width);
        let weighed = |turned: bool| -> i32 {
            let three = [(-1, 1), (0, 2), (1, 1)].into_iter();
            three
                .map(|(along, weight)| match turned {
                    false => weight * (point(x, y, 1, along) - point(x, y, -1, along)),
                    true => weight * (point(x, y, along, 1) - point(x, y, along, -1)),
                })
                .sum()
        };
        let squares = weighed(false).pow(2) + weighed(true).pow(2);
        assert_eq!(*edge, (squares as f32).sqrt() as u8);
    }
    if let Some(file) = files.get(1) {
        std::fs::write(
            file,
            [format!("P5\n{width} {height}\n255\n").into_bytes(), found].concat(),
        )?;
    }
    Ok(())
}
