//! Small programs as one writes them first: each gives what the same loop gives on the host.

use invar::prelude::*;
use invar::{bf16, f16};

/// Runs a kernel under all checkers, which find nothing, and compares what it leaves in its output.
macro_rules! gives {
    ($kernel:ident $(::<$($generic:ty),+>)?, $grid:expr, [$($arg:expr),*], $start:expr, $expected:expr) => {{
        let (start, expected) = ($start, $expected);
        let mut out = start.clone();
        let found = $kernel $(::<$($generic),+>)? ::check($grid, $($arg,)* &mut out).expect("a run");
        found.into_result().expect("no findings");
        assert_eq!(out, expected);
    }};
}

const W: u32 = 12;
const H: u32 = 9;

fn image() -> Vec<u8> {
    (0..W * H).map(|i| (i * 37 % 251) as u8).collect()
}

#[kernel]
fn blur(image: &[u8], out: &mut [u8]) {
    let (x, y) = (
        thread_position_in_grid().x as i32,
        thread_position_in_grid().y as i32,
    );
    let (mut sum, mut count) = (0, 0);
    for dy in -1..=1 {
        for dx in -1..=1 {
            let (nx, ny) = (x + dx, y + dy);
            if nx >= 0 && ny >= 0 && nx < W as i32 && ny < H as i32 {
                sum += image[ny * W as i32 + nx] as u32;
                count += 1;
            }
        }
    }
    out[y * W as i32 + x] = (sum / count) as u8;
}

#[test]
fn image_blur() {
    let x = image();
    let host: Vec<u8> = (0..H as i32 * W as i32)
        .map(|i| {
            let near = |i: i32, n: u32| (i - 1).max(0)..=(i + 1).min(n as i32 - 1);
            let (mut sum, mut count) = (0, 0);
            for y in near(i / W as i32, H) {
                for x_ in near(i % W as i32, W) {
                    sum += u32::from(x[(y * W as i32 + x_) as usize]);
                    count += 1;
                }
            }
            (sum / count) as u8
        })
        .collect();
    gives!(blur, Grid::threads([W, H]), [&x], vec![0; x.len()], host);
}

#[kernel]
fn invert(pixels: &mut [[u8; 4]]) {
    let i = thread_position_in_grid().x;
    let mut pixel = pixels[i];
    for c in 0..3 {
        pixel[c] = 255 - pixel[c];
    }
    pixels[i] = pixel;
}

#[test]
fn image_inversion_keeps_alpha() {
    let pixels = vec![[1, 2, 3, 4], [250, 0, 9, 128]];
    let host = vec![[254, 253, 252, 4], [5, 255, 246, 128]];
    gives!(invert, Grid::threads(2), [], pixels, host);
}

#[kernel(strict)]
fn mandelbrot(limit: u32, out: &mut [u32]) {
    let (x, y) = (thread_position_in_grid().x, thread_position_in_grid().y);
    let c = [x as f32 / 8.0 - 2.0, y as f32 / 8.0 - 1.0];
    let mut z = [0.0; 2];
    let mut n = 0;
    while n < limit && dot(z, z) <= 4.0 {
        z = [z.x * z.x - z.y * z.y, 2.0 * z.x * z.y] + c;
        n += 1;
    }
    out[y * 24 + x] = n;
}

#[test]
fn mandelbrot_set() {
    let host: Vec<u32> = (0..24 * 16u16)
        .map(|i| {
            let c = (f32::from(i % 24) / 8.0 - 2.0, f32::from(i / 24) / 8.0 - 1.0);
            let (mut z, mut n) = ((0.0f32, 0.0f32), 0);
            while n < 30 && z.0 * z.0 + z.1 * z.1 <= 4.0 {
                z = (z.0 * z.0 - z.1 * z.1 + c.0, 2.0 * z.0 * z.1 + c.1);
                n += 1;
            }
            n
        })
        .collect();
    gives!(
        mandelbrot,
        Grid::threads([24, 16]),
        [30],
        vec![0; 24 * 16],
        host
    );
}

#[kernel(threadgroup(64))]
fn prefix_sum(x: &[i64], out: &mut [i64]) {
    let t = thread_position_in_threadgroup().x;
    let tile = threadgroup!([i64; 64]);
    tile[t] = x[t];
    threadgroup_barrier();
    let mut step = 1;
    while step < 64 {
        let before = if t >= step { tile[t - step] } else { 0 };
        threadgroup_barrier();
        tile[t] += before;
        threadgroup_barrier();
        step *= 2;
    }
    out[t] = tile[t];
}

#[test]
fn prefix_sum_of_64_bits() {
    let x: Vec<i64> = (0..64).map(|i| (i - 20) * 10_000_000_000).collect();
    let host: Vec<i64> = x
        .iter()
        .scan(0, |s, v| {
            *s += v;
            Some(*s)
        })
        .collect();
    gives!(prefix_sum, Grid::threads(64), [&x], vec![0; 64], host);
}

#[kernel(threadgroup(32))]
fn argmax(x: &[f32], out: &mut [u32]) {
    let t = thread_position_in_threadgroup().x;
    let values = threadgroup!([f32; 32]);
    let places = threadgroup!([u32; 32]);
    values[t] = x[t];
    places[t] = t;
    threadgroup_barrier();
    let mut half = 16;
    while half > 0 {
        if t < half && values[t + half] > values[t] {
            values[t] = values[t + half];
            places[t] = places[t + half];
        }
        threadgroup_barrier();
        half >>= 1;
    }
    if t == 0 {
        out[0] = places[0];
    }
}

#[test]
fn place_of_the_largest() {
    let x: Vec<f32> = (0..32u16).map(|i| f32::from(i * 13 % 32)).collect();
    let largest = x.iter().position(|v| *v == 31.0).expect("it is there");
    gives!(
        argmax,
        Grid::threads(32),
        [&x],
        vec![0],
        vec![largest as u32]
    );
}

#[kernel]
fn life(now: &[u8], next: &mut [u8]) {
    let (x, y) = (thread_position_in_grid().x, thread_position_in_grid().y);
    let mut alive = 0;
    for dy in 0..3 {
        for dx in 0..3 {
            if dx == 1 && dy == 1 {
                continue;
            }
            alive += now[(y + dy + H - 1) % H * W + (x + dx + W - 1) % W];
        }
    }
    next[y * W + x] = match alive {
        3 => 1,
        2 if now[y * W + x] == 1 => 1,
        _ => 0,
    };
}

#[test]
fn game_of_life() {
    let now: Vec<u8> = (0..W * H).map(|i| u8::from(i * 7 % 5 < 2)).collect();
    let host: Vec<u8> = (0..W * H)
        .map(|i| {
            let (x, y) = (i % W, i / W);
            let at = |dx, dy| now[((y + dy + H - 1) % H * W + (x + dx + W - 1) % W) as usize];
            let all = (0..9).filter(|k| *k != 4).map(|k| at(k % 3, k / 3));
            let alive: u8 = all.sum();
            u8::from(alive == 3 || alive == 2 && at(1, 1) == 1)
        })
        .collect();
    gives!(
        life,
        Grid::threads([W, H]),
        [&now],
        vec![0; now.len()],
        host
    );
}

#[kernel]
fn bits(x: &[u32], out: &mut [u32]) {
    let i = thread_position_in_grid().x;
    let v = x[i];
    let swapped = v << 24 | (v & 0xff00) << 8 | v >> 8 & 0xff00 | v >> 24;
    out[i] = (swapped ^ !v) + popcount(v) + v.clz() * 3 + rotate(v, 5);
}

#[test]
fn bit_tricks() {
    let x: Vec<u32> = (0..9u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
    let one = |v: &u32| {
        let sum = (v.swap_bytes() ^ !v).wrapping_add(v.count_ones());
        sum.wrapping_add(v.leading_zeros() * 3)
            .wrapping_add(v.rotate_left(5))
    };
    let host: Vec<u32> = x.iter().map(one).collect();
    gives!(bits, Grid::threads(9), [&x], vec![0; 9], host);
}

#[kernel]
fn halves(x: &[f16], y: &mut [f16]) {
    let i = thread_position_in_grid().x;
    y[i] = (x[i] as f32 * 0.5 + 1.0) as f16;
}

#[test]
fn half_floats() {
    let x: Vec<f16> = (0..7u8).map(|i| f16::from_f32(f32::from(i))).collect();
    let host = x
        .iter()
        .map(|v| f16::from_f32(v.to_f32() * 0.5 + 1.0))
        .collect::<Vec<_>>();
    gives!(
        halves,
        Grid::threads(7),
        [&x],
        vec![f16::from_f32(0.0); 7],
        host
    );
}

#[kernel]
fn brains(x: &[bf16], y: &mut [f32]) {
    let i = thread_position_in_grid().x;
    y[i] = x[i] as f32;
}

#[test]
fn brain_floats() {
    let x: Vec<bf16> = (0..7u8).map(|i| bf16::from_f32(f32::from(i))).collect();
    gives!(
        brains,
        Grid::threads(7),
        [&x],
        vec![0.0; 7],
        (0..7u8).map(f32::from).collect::<Vec<_>>()
    );
}

#[derive(Clone, Copy, Debug, PartialEq, KernelData)]
#[repr(C)]
struct Particle {
    position: [f32; 2],
    velocity: [f32; 2],
    hits: u32,
}

#[kernel]
fn bounce(particles: &mut [Particle]) {
    let i = thread_position_in_grid().x;
    let mut p = particles[i];
    p.position += p.velocity;
    for axis in 0..2 {
        if p.position[axis] < 0.0 || p.position[axis] > 10.0 {
            p.velocity[axis] *= -1.0;
            p.position[axis] = p.position[axis].clamp(0.0, 10.0);
            p.hits += 1;
        }
    }
    particles[i] = p;
}

#[test]
fn particles_in_a_box() {
    let at = |x: f32, y: f32, vx: f32, vy: f32, hits| Particle {
        position: [x, y],
        velocity: [vx, vy],
        hits,
    };
    let start = vec![at(5.0, 5.0, 1.0, -1.0, 0), at(9.5, 0.5, 1.0, -1.0, 3)];
    let host = vec![at(6.0, 4.0, 1.0, -1.0, 0), at(10.0, 0.0, -1.0, 1.0, 5)];
    gives!(bounce, Grid::threads(2), [], start, host);
}

#[kernel]
fn primes(out: &mut [u32]) {
    let n = thread_position_in_grid().x;
    let divisor = loop {
        if n < 2 {
            break 1;
        }
        let mut d = 2;
        while d * d <= n && n % d != 0 {
            d += 1;
        }
        break if d * d > n { n } else { d };
    };
    out[n] = (divisor == n && n > 1) as u32;
}

#[test]
fn primes_by_trial() {
    let host: Vec<u32> = (0..60u32)
        .map(|n| u32::from(n > 1 && (2..n).all(|d| n % d != 0)))
        .collect();
    gives!(primes, Grid::threads(60), [], vec![0; 60], host);
}

#[kernel]
fn first_large(x: &[u32], out: &mut [u32]) {
    let i = thread_position_in_grid().x;
    let mut at = i;
    let found = loop {
        if at as u64 >= x.len() {
            break u32::MAX;
        }
        if x[at] > 50 {
            break at;
        }
        at += 1;
    };
    out[i] = found;
}

#[test]
fn loops_give_values() {
    let x: Vec<u32> = (0..20).map(|i| i * 23 % 61).collect();
    let host: Vec<u32> = (0..20)
        .map(|i| (i..20).find(|j| x[*j] > 50).map_or(u32::MAX, |j| j as u32))
        .collect();
    gives!(first_large, Grid::threads(20), [&x], vec![0; 20], host);
}

#[kernel]
fn ranges(out: &mut [u32]) {
    let i = thread_position_in_grid().x;
    let (small, least) = (i as u8 + 250, i8::MIN + i as i8);
    let mut order = 0;
    for j in (0..4).rev() {
        order = order * 10 + j;
    }
    for j in (1..=i).rev() {
        order = order * 3 + j;
    }
    for j in small..=255 {
        order = order * 7 + j as u32;
    }
    for j in small..=small + (5 - i as u8) {
        order = order * 5 + j as u32;
        if j == 253 {
            continue;
        }
        order += 1;
    }
    for j in (least..=least + i as i8).step_by(2) {
        order = order * 11 + (j as i32 + 128) as u32;
    }
    for j in (0..10).rev().step_by(3) {
        order = order * 13 + j;
    }
    for j in 5..=i {
        order += j;
    }
    out[i] = order;
}

fn ranges_on_host(i: u32) -> u32 {
    let (small, least) = (i as u8 + 250, i8::MIN + i as i8);
    let mut order = 0u32;
    let mut push = |by: u32, more: u32| order = order.wrapping_mul(by).wrapping_add(more);
    (0..4).rev().for_each(|j| push(10, j));
    (1..=i).rev().for_each(|j| push(3, j));
    (small..=255).for_each(|j| push(7, u32::from(j)));
    for j in small..=small + (5 - i as u8) {
        push(5, u32::from(j));
        if j != 253 {
            push(1, 1);
        }
    }
    for j in (least..=least + i as i8).step_by(2) {
        push(11, (i32::from(j) + 128) as u32);
    }
    (0..10).rev().step_by(3).for_each(|j| push(13, j));
    (5..=i).for_each(|j| push(1, j));
    order
}

#[test]
fn ranges_from_either_end_up_to_the_last_number() {
    let host: Vec<u32> = (0..6).map(ranges_on_host).collect();
    gives!(ranges, Grid::threads(6), [], vec![0; 6], host);
}

#[kernel]
fn grades(points: &[i32], out: &mut [u32]) {
    let i = thread_position_in_grid().x;
    let limit = 90 - i as i32;
    let even = match i % 2 == 0 {
        true => 100,
        false => 0,
    };
    out[i] = even
        + match points[i] {
            n if n > limit => 1,
            0 => 6,
            50..=60 | 62 if points[i + 1] > 0 => 3,
            ..0 => 7,
            other if other % 2 == 0 => 4,
            80.. => 2,
            _ => 5,
        };
}

#[test]
fn conditions_of_arms() {
    let points = vec![95, 0, 55, 55, -3, 62, 80, 81, 33, 0];
    let limit = |i: usize| 90 - i as i32;
    let host: Vec<u32> = (0..9)
        .map(|i| {
            let grade = match points[i] {
                n if n > limit(i) => 1,
                0 => 6,
                50..=60 | 62 if points[i + 1] > 0 => 3,
                ..0 => 7,
                other if other % 2 == 0 => 4,
                80.. => 2,
                _ => 5,
            };
            grade + if i % 2 == 0 { 100 } else { 0 }
        })
        .collect();
    gives!(grades, Grid::threads(9), [&points], vec![0; 9], host);
}

#[kernel]
fn sorted(x: &[[f32; 4]], out: &mut [[f32; 4]]) {
    let i = thread_position_in_grid().x;
    let mut v = x[i];
    for _ in 0..3 {
        for k in 0..3 {
            if v[k] > v[k + 1] {
                let larger = v[k];
                v[k] = v[k + 1];
                v[k + 1] = larger;
            }
        }
    }
    out[i] = v;
}

#[test]
fn components_are_set_by_index() {
    let x = vec![
        [3.0, 1.0, 2.0, 0.0],
        [1.0, 2.0, 3.0, 4.0],
        [9.0, -1.0, 9.0, 5.0],
    ];
    let host = vec![
        [0.0, 1.0, 2.0, 3.0],
        [1.0, 2.0, 3.0, 4.0],
        [-1.0, 5.0, 9.0, 9.0],
    ];
    gives!(sorted, Grid::threads(3), [&x], vec![[0.0; 4]; 3], host);
}

#[kernel]
fn matrices(out: &mut [f32]) {
    let i = thread_position_in_grid().x;
    let mut m = [[0.0; 3], [0.0; 3]];
    m[i][2 - i] = 1.0;
    m[1].y += 2.0;
    m[0][0] -= 0.5;
    let v = m * [1.0, 10.0];
    out[i] = v.x + v.y * 100.0 + m[0].z;
}

#[test]
fn entries_of_matrices_are_set() {
    // Columns (-0.5, 0, 1) and (0, 2, 0); then (-0.5, 0, 0) and (0, 3, 0).
    gives!(
        matrices,
        Grid::threads(2),
        [],
        vec![0.0; 2],
        vec![2000.5, 2999.5]
    );
}

#[kernel]
fn powers<T: Integer>(base: T, out: &mut [T]) {
    let i = thread_position_in_grid().x;
    let mut result = out[i];
    for _ in 0..i {
        result *= base;
    }
    out[i] = result;
}

#[test]
fn powers_of_any_integer() {
    gives!(
        powers::<u64>,
        Grid::threads(5),
        [3_000_000_000],
        vec![1; 5],
        (0..5)
            .map(|i| 3_000_000_000u64.wrapping_pow(i))
            .collect::<Vec<_>>()
    );
    gives!(
        powers::<i16>,
        Grid::threads(5),
        [-7],
        vec![1; 5],
        (0..5).map(|i| (-7i16).wrapping_pow(i)).collect::<Vec<_>>()
    );
}

/// The greatest common divisor.
#[device_fn]
fn gcd(mut a: u32, mut b: u32) -> u32 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[kernel]
fn divisors(x: &[u32], out: &mut [u32]) {
    let i = thread_position_in_grid().x;
    out[i] = gcd(x[i], 360);
}

#[test]
fn common_divisors() {
    gives!(
        divisors,
        Grid::threads(4),
        [&[12, 7, 1000, 0]],
        vec![0; 4],
        vec![12, 1, 40, 360]
    );
}

#[kernel]
fn poisson(x: &[f64], y: &mut [f64]) {
    let i = thread_position_in_grid().x;
    let n = threads_per_grid().x;
    let left = if i > 0 { x[i - 1] } else { 0.0 };
    let right = if i + 1 < n { x[i + 1] } else { 0.0 };
    y[i] = (left + right) / 2.0;
}

#[test]
fn stencil_of_doubles() {
    let x = [1.0, 2.0, 4.0, 8.0];
    gives!(
        poisson,
        Grid::threads(4),
        [&x],
        vec![0.0; 4],
        vec![1.0, 2.5, 5.0, 2.0]
    );
}

#[kernel(threadgroup(32))]
fn votes(x: &[i32], out: &mut [u32]) {
    let i = thread_position_in_grid().x;
    let positive = simd_ballot(x[i] > 0);
    out[i] = popcount(positive.x) * 100 + simd_any(x[i] == 3) as u32;
}

#[test]
fn votes_of_a_simdgroup() {
    let x: Vec<i32> = (-10..22).collect();
    gives!(votes, Grid::threads(32), [&x], vec![0; 32], vec![2101; 32]);
}

#[kernel]
fn collisions(x: &[f32], out: &mut [i32]) {
    let i = thread_position_in_grid().x;
    let cell = (x[i].floor() as i32).max(0).min(3);
    let near = x[i].abs().sqrt() * -1.5;
    out[i] = cell * 10 - near as i32;
}

#[test]
fn methods_on_numbers() {
    let x = [-4.0, 0.5, 2.5, 100.0];
    gives!(
        collisions,
        Grid::threads(4),
        [&x],
        vec![0; 4],
        vec![3, 1, 22, 45]
    );
}

/// What a program of the host knows of sizes.
const fn rows(bytes: u32) -> u32 {
    bytes / size_of::<f32>() as u32
}

#[kernel]
fn kinds(x: &[f32], out: &mut [u32]) {
    let i = thread_position_in_grid().x;
    out[i] = match x[i] {
        0.0 => rows_of_a_tile(),
        -1.5 | f32::INFINITY => 2,
        2.0..4.0 => 3,
        4.0..=5.0 if i == 6 => 4,
        _ => 5,
    };
}

const fn rows_of_a_tile() -> u32 {
    rows(64)
}

fn kinds_on_host(x: f32, i: usize) -> u32 {
    match x {
        0.0 => 16,
        -1.5 | f32::INFINITY => 2,
        2.0..4.0 => 3,
        4.0..=5.0 if i == 6 => 4,
        _ => 5,
    }
}

#[test]
fn match_on_floats_and_functions_of_the_host_without_arguments() {
    let x = [0.0, -0.0, -1.5, f32::INFINITY, 2.0, 4.0, 5.0, f32::NAN, 3.9];
    let mut out = [0; 9];
    let found = kinds::check(Grid::threads(9), &x, &mut out).expect("a run");
    found.into_result().expect("no findings");
    let expected: Vec<u32> = (0..9).map(|i| kinds_on_host(x[i], i)).collect();
    assert_eq!(out, *expected);
}

const TABLE: [u32; 6] = [3, 1, 4, 1, 5, 9];
const WEIGHTS: [[f32; 2]; 3] = [[0.5, 1.0], [2.0, 4.0], [8.0, 16.0]];
const TILE: usize = 4;

#[kernel(threadgroup(TILE as u32))]
fn tables(out: &mut [u32]) {
    let t = thread_position_in_threadgroup().x;
    let tile = threadgroup!([[u32; 3]; TILE]);
    tile[t][1] = TABLE[t] + TABLE[t + 1];
    threadgroup_barrier();
    let mut sum = tile[TILE as u32 - 1 - t].y;
    for i in 0..TABLE.len() {
        sum += TABLE[i];
    }
    out[t] = sum * 100 + (WEIGHTS[t].y + WEIGHTS[t][0]) as u32;
}

#[test]
fn constants_of_rust_are_tables_and_sizes() {
    let mut out = [0; 3];
    let found = tables::check(Grid::threads(3), &mut out).expect("a run");
    found.into_result().expect("no findings");
    // The sums of neighbours are 4, 5, 5, and nothing for the fourth thread, which is not there.
    assert_eq!(out, [2301, 2806, 2824]);
    let text = tables::to_inv().expect("a kernel");
    assert_eq!(text.matches("constant @").count(), 2, "{text}");
}

#[kernel]
fn exchanges(x: &mut [u32]) {
    let own = thread!([u32; 3]);
    let mut pair = [1, 2];
    let mut last = 7;
    (x[0], x[3]) = (x[3], x[0]);
    (own[0], pair.y, last) = (x[0], last, pair.y);
    own.swap(0u32, 2u32);
    x.swap(1u32, 2u32);
    (x[4], _) = (own[2] * 100 + pair.y * 10 + last, 0);
}

#[test]
fn elements_are_exchanged() {
    let start = vec![1, 2, 3, 4, 5];
    gives!(
        exchanges,
        Grid::threads(1),
        [],
        start,
        vec![4, 3, 2, 1, 472]
    );
}

#[kernel]
fn letters(text: &[u8], out: &mut [u8]) {
    let i = thread_position_in_grid().x;
    let c = text[i];
    let is_letter = matches!(c, b'a'..=b'z' | b'A'..=b'Z' if i != 3);
    out[i] = match c {
        b' ' => b'_',
        b'a'..=b'z' if is_letter => c - b'a' + b'A',
        _ => c,
    };
}

#[test]
fn bytes_of_text() {
    let text = b"ab cd Ef\n";
    let host = b"AB_cD_EF\n".to_vec();
    gives!(letters, Grid::threads(9), [text], vec![0; 9], host);
}

#[kernel(strict)]
fn of_floats(x: &[f32], out: &mut [f32]) {
    let i = thread_position_in_grid().x;
    let v = x[i];
    let (sine, cosine) = v.sin_cos();
    let sum = v.powi(3) + v.powi(-2) + v.powi(0) + v.powi(i as i32 - 3);
    out[i * 4] = sum;
    out[i * 4 + 1] = v % 1.5 + v.rem_euclid(1.5) + v.mul_add(2.0, 1.0) + v.recip();
    out[i * 4 + 2] = sine * sine + cosine * cosine + f32::max(v, 0.25) + f32::from(v.is_nan());
    out[i * 4 + 3] = f32::from_bits(v.to_bits() ^ 1 << 31) + (v * v).ln() * 0.0;
}

#[test]
fn methods_of_rust_s_floats() {
    let x = [0.5f32, -2.0, 3.25, -0.75, 1.0];
    let mut out = [0.0; 20];
    let found = of_floats::check(Grid::threads(5), &x, &mut out).expect("a run");
    found.into_result().expect("no findings");
    for (i, v) in x.into_iter().enumerate() {
        let power = |n: i32| {
            let product = (0..n.unsigned_abs()).fold(1.0, |product, _| product * v);
            if n < 0 { 1.0 / product } else { product }
        };
        let sum = power(3) + power(-2) + 1.0 + power(i as i32 - 3);
        let rests = v % 1.5 + v.rem_euclid(1.5) + v.mul_add(2.0, 1.0) + v.recip();
        let expected = [sum, rests, 1.0 + v.max(0.25), -v];
        for (got, expected) in out[i * 4..].iter().zip(expected) {
            assert!((got - expected).abs() < 1e-5, "{v}: {got}, not {expected}");
        }
    }
}

#[kernel]
fn of_integers(x: &[i16], out: &mut [i64]) {
    let i = thread_position_in_grid().x;
    let (v, u) = (x[i], x[i] as u16);
    let counts = v.count_ones() * 100 + v.leading_zeros() * 10 + u.trailing_zeros();
    let turned = i64::from(u.rotate_left(3)) * 7 + i64::from(u.rotate_right(5));
    let edges = v.saturating_add(30_000) as i64 + i64::from(v.saturating_sub(30_000));
    let wraps = v.wrapping_mul(17).wrapping_sub(-9).wrapping_add(v);
    let rests = v.rem_euclid(7) as i64 * 1000 + u.div_ceil(10) as i64;
    out[i] = i64::from(counts)
        + turned
        + edges
        + i64::from(wraps)
        + rests
        + i64::from(u.is_power_of_two())
        + u16::max(u, 5) as i64;
}

#[test]
fn methods_of_rust_s_integers() {
    let x = [1i16, -1, 12_345, -30_000, 64, 0];
    let one = |v: &i16| {
        let (v, u) = (*v, *v as u16);
        let counts = v.count_ones() * 100 + v.leading_zeros() * 10 + u.trailing_zeros();
        let turned = i64::from(u.rotate_left(3)) * 7 + i64::from(u.rotate_right(5));
        let edges = i64::from(v.saturating_add(30_000)) + i64::from(v.saturating_sub(30_000));
        let wraps = v.wrapping_mul(17).wrapping_sub(-9).wrapping_add(v);
        let rests = i64::from(v.rem_euclid(7)) * 1000 + i64::from(u.div_ceil(10));
        i64::from(counts)
            + turned
            + edges
            + i64::from(wraps)
            + rests
            + i64::from(u.is_power_of_two())
            + i64::from(u.max(5))
    };
    let host: Vec<i64> = x.iter().map(one).collect();
    gives!(of_integers, Grid::threads(6), [&x], vec![0; 6], host);
}

#[kernel]
fn smoothed<T: Number>(x: &[T], out: &mut [T]) {
    let i = thread_position_in_grid().x;
    let mut sum = T::default();
    for j in 0..3 {
        sum += x[i + j];
    }
    out[i] = sum % 5 as T;
}

#[test]
fn zero_of_any_number() {
    gives!(
        smoothed::<u8>,
        Grid::threads(2),
        [&[1, 2, 3, 4]],
        vec![9; 2],
        vec![1, 4]
    );
    let x = [1.5f64, 2.0, 3.0, 4.0];
    gives!(
        smoothed::<f64>,
        Grid::threads(2),
        [&x],
        vec![9.0; 2],
        vec![1.5, 4.0]
    );
}

#[kernel]
fn shifted(x: &[[f32; 3]], out: &mut [[f32; 3]]) {
    let i = thread_position_in_grid().x;
    let mut v = 1.0 - x[i] % 2.0;
    v += 0.5;
    v -= 0.25;
    out[i] = 6.0 / (v + 1.0);
}

#[test]
fn vectors_and_numbers() {
    let one = |v: f32| 6.0 / (1.0 - v % 2.0 + 0.5 - 0.25 + 1.0);
    let x = vec![[0.0, 1.0, 3.25], [7.0, 0.25, 2.0]];
    let host = x.iter().map(|v: &[f32; 3]| v.map(one)).collect::<Vec<_>>();
    gives!(shifted, Grid::threads(2), [&x], vec![[0.0; 3]; 2], host);
}

macro_rules! of_a_macro {
    ($name:ident, $ty:ty, $x:ident, $factor:expr, $target:expr) => {
        #[kernel]
        fn $name(by: $ty, $x: &mut [$ty]) {
            let sum: $ty = $factor * by;
            $target = sum - $factor;
            $target += matches!(sum, 0 | 12) as $ty;
        }
    };
}
of_a_macro!(
    doubled,
    i32,
    x,
    x[0] + x[1],
    x[thread_position_in_grid().x + 2]
);

#[test]
fn kernels_that_a_macro_makes() {
    let start = vec![2, 4, 0];
    gives!(doubled, Grid::threads(1), [2], start, vec![2, 4, 7]);
}

#[kernel]
fn conditional(x: &mut [u32]) {
    let i = thread_position_in_grid().x;
    let mut n = 1;
    #[cfg(any())]
    let n = 100;
    #[cfg(not(any()))]
    let by = 10;
    #[cfg(any())]
    let by = 1000;
    for _ in 0..2 {
        #[cfg(any())]
        let mut n = 5;
        n += by;
    }
    #[cfg(any())]
    {
        n = nothing;
    }
    #[cfg(any())]
    return;
    #[allow(unused_variables, reason = "attributes of statements are kept")]
    let unused = 3;
    /// What a comment of the documentation says, is nothing.
    if i == 0 {
        #[cfg(any())]
        return;
        x[i] = n;
    }
}

#[test]
fn attributes_of_statements() {
    gives!(conditional, Grid::threads(1), [], vec![0], vec![21]);
}
