"""The sun and its planets for a year: each body is pulled by all others."""

import numpy as np

import invar as iv

#: In astronomical units, masses of the sun, and astronomical units a year.
BODY = np.dtype([("position", np.float32, 3), ("mass", np.float32), ("velocity", np.float32, 3)])

#: The constant of gravitation in these units, 4 pi pi.
GRAVITY = 39.47842


def pull(here, other):
    """What a body elsewhere accelerates one here by."""
    way = iv.f32x3(*other.position) - here
    square = iv.dot(way, way)
    if square == 0.0:
        return way  # the body itself
    return way * (GRAVITY * other.mass / (square * iv.sqrt(square)))


@iv.kernel(threadgroup=32)
def advance(now: iv.Buffer[BODY], after: iv.Buffer[BODY], years: iv.Scalar[iv.f32]):
    i = iv.thread_position_in_grid("x")
    position, velocity = iv.f32x3(*now[i].position), iv.f32x3(*now[i].velocity)
    acceleration = iv.f32x3(0.0)
    for j in iv.range(len(now)):
        acceleration += pull(position, now[j])
    velocity += acceleration * years
    position += velocity * years
    for axis in range(3):
        after[i].position[axis] = position[axis]
        after[i].velocity[axis] = velocity[axis]
    after[i].mass = now[i].mass


def solar_system():
    """The sun, and Mercury to Neptune on their circles."""
    distances = np.array([0.387, 0.723, 1.0, 1.524, 5.203, 9.537, 19.19, 30.07])
    bodies = np.zeros(9, BODY)
    bodies["mass"] = [1, 1.66e-7, 2.45e-6, 3e-6, 3.23e-7, 9.55e-4, 2.86e-4, 4.37e-5, 5.15e-5]
    bodies["position"][1:, 0] = distances
    bodies["velocity"][1:, 1] = np.sqrt(GRAVITY / distances)
    return bodies


def run(steps=1000):
    """A year in so many steps; gives how far the earth is from where it was, in astronomical units."""
    now, after = solar_system(), np.zeros(9, BODY)
    for _ in range(steps):
        advance[len(now), 32](now, after, 1 / steps)
        now, after = after, now
    return float(np.linalg.norm((now["position"] - solar_system()["position"])[3]))


if __name__ == "__main__":
    print(f"after a year the earth is {run():.2g} from its place")
