//! The nearest neighbours of points: for each of a thousand queries the eight nearest of ten thousand
//! points in four dimensions.

use invar::prelude::*;

const K: u32 = 8;

/// The numbers of the nearest points, the nearest first; of equal ones the first.
#[kernel(threadgroup(64))]
pub fn nearest(points: &[[f32; 4]], queries: &[[f32; 4]], found: &mut [u32]) {
    let q = thread_position_in_grid().x;
    let query = queries[q];
    // The best so far, the nearest first.
    let distances = thread!([f32; K]);
    let indices = thread!([u32; K]);
    for k in 0..K {
        distances[k] = f32::INFINITY;
    }
    for i in 0..points.len() {
        let way = points[i] - query;
        let distance = dot(way, way);
        if distance < distances[K - 1] {
            let mut k = K - 1;
            while k > 0 && distance < distances[k - 1] {
                distances[k] = distances[k - 1];
                indices[k] = indices[k - 1];
                k -= 1;
            }
            distances[k] = distance;
            indices[k] = i as u32;
        }
    }
    for k in 0..K {
        found[q * K + k] = indices[k];
    }
}

fn main() -> invar::Result<()> {
    // Whole numbers below 256, so distances are exact and the host finds the same.
    let mut state = 1u32;
    let mut number = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as f32
    };
    let mut several = |n: usize| -> Vec<[f32; 4]> {
        (0..n)
            .map(|_| [number(), number(), number(), number()])
            .collect()
    };
    let (points, queries) = (several(10_000), several(1000));

    let device = Device::default()?;
    let (there, asked) = (device.buffer_from(&points)?, device.buffer_from(&queries)?);
    let mut found = device.buffer_zeroed::<u32>(queries.len() * K as usize)?;
    let grid = Grid::threads(queries.len() as u32);
    nearest::launch(&device, grid, &there, &asked, &mut found)?.wait()?;

    for (query, found) in queries.iter().zip(found.read()?.chunks(K as usize)) {
        let distance = |p: &[f32; 4]| {
            p.iter()
                .zip(query)
                .map(|(a, b)| (a - b).powi(2))
                .sum::<f32>()
        };
        let mut order: Vec<u32> = (0..points.len() as u32).collect();
        order.sort_by(|a, b| {
            let [a, b] = [a, b].map(|i| distance(&points[*i as usize]));
            a.total_cmp(&b)
        });
        assert_eq!(
            found,
            &order[..K as usize],
            "of equal ones the first is kept"
        );
    }
    Ok(())
}
