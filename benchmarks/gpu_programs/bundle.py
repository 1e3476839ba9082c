"""ba: bundle adjustment, the errors of reprojected points and the blocks of their Jacobian, in float64.

An observation has 15 numbers: a camera (rotation, centre, focal length, principal point, distortion), a point, a weight.
"""

import numpy as np

import tapeless as tp
from benchmarks.gpu_programs.case import Arguments, Case, Random
from benchmarks.programs import rotate


def error(q, feature):
    """The weighted error of one observation."""
    z0, z1, z2 = rotate(q[0], q[1], q[2], q[11] - q[3], q[12] - q[4], q[13] - q[5])
    p0, p1 = z0 / z2, z1 / z2
    s = p0 * p0 + p1 * p1
    scale = q[6] * (1.0 + q[9] * s + q[10] * s * s)
    return np.array([q[14] * (scale * p0 + q[7] - feature[0]), q[14] * (scale * p1 + q[8] - feature[1])])


def weight_error(w):
    return 1.0 - w * w


def observations(cameras, points, weights, camera_of, point_of):
    return np.concatenate((cameras[camera_of], points[point_of], weights[:, None]), axis=1)


def ba(cameras, points, weights, camera_of, point_of, features):
    q = observations(cameras, points, weights, camera_of, point_of)
    return tp.map(error, q, features), tp.map(weight_error, weights)


def ba_jacobian(cameras, points, weights, camera_of, point_of, features):
    q = observations(cameras, points, weights, camera_of, point_of)
    return tp.map(tp.jacrev(error), q, features), tp.map(tp.grad(weight_error), weights)


def make_ba(rng: Random, n: int, m: int, p: int) -> Arguments:
    rotations, centres = rng.normal(size=(n, 3)) * 0.1, rng.normal(size=(n, 3))
    focal = 500 + 10 * rng.normal(size=(n, 1))
    principal, distortion = rng.normal(size=(n, 2)) * 10, rng.normal(size=(n, 2)) * 0.01
    points = rng.normal(size=(m, 3)) + (0.0, 0.0, 10.0)
    weights = rng.random(p)
    camera_of, point_of = (rng.integers(0, count, p).astype(np.int32) for count in (n, m))
    cameras = np.concatenate((rotations, centres, focal, principal, distortion), axis=1)
    return cameras, points, weights, camera_of, point_of, rng.normal(size=(p, 2)) * 50


CASES = (
    Case(
        "ba",
        "cameras, points and observations; a 2 by 15 block of the Jacobian for each observation",
        ((49, 7776, 31_843), (372, 47_423, 204_472), (1936, 649_673, 5_213_733)),
        ((3, 20, 50),),
        make_ba,
        ba,
        ba_jacobian,
    ),
)
