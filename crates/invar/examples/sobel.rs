//! The edges of a grey picture by Sobel's two filters; the same bytes as `examples/sobel.inv`.
//!
//! `cargo run --example sobel -- IN.pgm OUT.pgm` takes a picture in the binary form of PGM. Without
//! arguments it is a disc.

use invar::ir::{text, verify};
use invar::prelude::*;
use invar::{Arg, Program};

/// A point of the picture, which goes on beyond its edges as it is there.
#[device_fn]
fn point(picture: &[u8], x: u32, y: u32, width: u32) -> i32 {
    picture[y * width + x] as i32
}

#[kernel(threadgroup(32, 2))]
fn sobel(picture: &[u8], edges: &mut [u8], width: u32, height: u32) {
    let (x, y) = (thread_position_in_grid().x, thread_position_in_grid().y);
    let (left, right) = (x.sub_sat(1), min(x + 1, width - 1));
    let (above, below) = (y.sub_sat(1), min(y + 1, height - 1));
    let west = point(picture, left, above, width)
        + 2 * point(picture, left, y, width)
        + point(picture, left, below, width);
    let east = point(picture, right, above, width)
        + 2 * point(picture, right, y, width)
        + point(picture, right, below, width);
    let north = point(picture, left, above, width)
        + 2 * point(picture, x, above, width)
        + point(picture, right, above, width);
    let south = point(picture, left, below, width)
        + 2 * point(picture, x, below, width)
        + point(picture, right, below, width);
    let (across, down) = (east - west, south - north);
    let steepness = ((across * across + down * down) as f32).sqrt();
    edges[y * width + x] = steepness as u8; // above 255 it is 255 (A5)
}

/// The same kernel in the text form.
fn text_form(device: &Device) -> invar::Result<Program> {
    let source = include_str!("../../../examples/sobel.inv");
    device.compile(&verify(text::parse("sobel.inv", source)?)?, "sobel")
}

/// Width, height and points of a picture.
fn read(file: &str) -> Result<(usize, usize, Vec<u8>), Box<dyn std::error::Error>> {
    let bytes = std::fs::read(file)?;
    let mut words = bytes.splitn(5, u8::is_ascii_whitespace);
    let mut word = || Some(std::str::from_utf8(words.next()?).ok()?.to_string());
    let (Some("P5"), Some(width), Some(height), Some("255")) =
        (word().as_deref(), word(), word(), word().as_deref())
    else {
        return Err(format!("{file} is no PGM of single bytes without comments").into());
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

    let again = device.buffer_zeroed::<u8>(points.len())?;
    let args = [
        Arg::from(&picture),
        Arg::from(&again),
        Arg::from(w),
        Arg::from(h),
    ];
    let dispatch = Dispatch {
        grid: Grid::threads([w, h]),
        threadgroup: [32, 2, 1],
    };
    device.queue().run(&text_form(&device)?, dispatch, &args)?;
    assert_eq!(found, again.read()?, "as the text form computes it");
    if let Some(file) = files.get(1) {
        std::fs::write(
            file,
            [format!("P5\n{width} {height}\n255\n").into_bytes(), found].concat(),
        )?;
    }
    Ok(())
}
