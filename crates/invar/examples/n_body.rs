//! The sun and its planets for a year: each body is pulled by all others.

use invar::prelude::*;

/// A body and how it moves.
#[derive(Clone, Copy, Debug, KernelData)]
#[repr(C)]
pub struct Body {
    /// In astronomical units.
    pub position: [f32; 3],
    /// In masses of the sun.
    pub mass: f32,
    /// In astronomical units a year.
    pub velocity: [f32; 3],
}

/// The constant of gravitation in these units, `4 pi pi`.
const GRAVITY: f32 = 39.478_42;

/// What a body elsewhere accelerates one here by.
#[device_fn]
fn pull(here: [f32; 3], other: Body) -> [f32; 3] {
    let way = other.position - here;
    let square = dot(way, way);
    if square == 0.0 {
        return way; // the body itself
    }
    way * (GRAVITY * other.mass / (square * square.sqrt()))
}

/// A step of all bodies, of so many years.
#[kernel(threadgroup(32))]
pub fn advance(now: &[Body], next: &mut [Body], years: f32) {
    let i = thread_position_in_grid().x;
    let mut body = now[i];
    let mut acceleration = [0.0; 3];
    for j in 0..now.len() {
        acceleration += pull(body.position, now[j]);
    }
    body.velocity += acceleration * years;
    body.position += body.velocity * years;
    next[i] = body;
}

/// Distance from the sun and mass of the planets from Mercury to Neptune.
const PLANETS: [(f32, f32); 8] = [
    (0.387, 1.66e-7),
    (0.723, 2.45e-6),
    (1.0, 3.0e-6),
    (1.524, 3.23e-7),
    (5.203, 9.55e-4),
    (9.537, 2.86e-4),
    (19.19, 4.37e-5),
    (30.07, 5.15e-5),
];

fn main() -> invar::Result<()> {
    let sun = Body {
        position: [0.0; 3],
        mass: 1.0,
        velocity: [0.0; 3],
    };
    let planet = |(distance, mass): &(f32, f32)| Body {
        position: [*distance, 0.0, 0.0],
        mass: *mass,
        velocity: [0.0, (GRAVITY / distance).sqrt(), 0.0],
    };
    let bodies: Vec<Body> = std::iter::once(sun)
        .chain(PLANETS.iter().map(planet))
        .collect();
    let (steps, grid) = (1000, Grid::threads(bodies.len() as u32));

    let device = Device::default()?;
    let mut now = device.buffer_from(&bodies)?;
    let mut next = device.buffer_zeroed::<Body>(bodies.len())?;
    let prepared = advance::prepare(&device)?;
    for _ in 0..steps {
        // Nothing waits: each step uses what the last one wrote, so they run in order.
        advance::launch(&prepared, grid, &now, &mut next, 1.0 / steps as f32)?;
        std::mem::swap(&mut now, &mut next);
    }

    // The earth is back where it was, and Mercury is in its fifth round.
    let after = now.read()?;
    let moved = |i: usize| {
        let (a, b): (Body, Body) = (after[i], bodies[i]);
        a.position
            .iter()
            .zip(b.position)
            .map(|(a, b)| (a - b).powi(2))
            .sum::<f32>()
            .sqrt()
    };
    assert!(
        moved(3) < 0.02,
        "the earth is {} away from its place",
        moved(3)
    );
    assert!(
        moved(1) > 0.2,
        "Mercury is {} away from its place",
        moved(1)
    );
    Ok(())
}
