use invar::prelude::*;

#[derive(Clone, Copy)]
#[repr(C)]
struct Particle {
    position: f32,
    speed: f32,
}

#[device_fn]
fn moved(particle: Particle, time: f32) -> Particle {
    Particle {
        position: particle.position + particle.speed * time,
        speed: particle.speed,
    }
}

#[kernel]
fn step(particles: &mut [Particle], before: &[Particle], time: f32) {
    let i = thread_position_in_grid().x;
    let mut particle = before[i];
    particle.speed *= 0.5;
    particles[i].position = particle.position + time * particle.speed;
    particles[i + 1] = particle;
}

fn main() {}
