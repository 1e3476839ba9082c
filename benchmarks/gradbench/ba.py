"""ba: bundle adjustment, the errors of reprojected points and their sparse Jacobian.

A block of the Jacobian is that of one observation, by its camera (11 numbers), its point (3) and its weight: two
reverse passes, of two numbers by fifteen.
"""

import math

import numpy as np

import tapeless as tp
from benchmarks.gradbench.task import Task, floats


def rotate(r0, r1, r2, y0, y1, y2):
    """The vector y turned by the rotation vector r."""
    square = r0 * r0 + r1 * r1 + r2 * r2
    if square == 0.0:
        return y0 + r1 * y2 - r2 * y1, y1 + r2 * y0 - r0 * y2, y2 + r0 * y1 - r1 * y0
    theta = math.sqrt(square)
    c, s = math.cos(theta), math.sin(theta)
    a0, a1, a2 = r0 / theta, r1 / theta, r2 / theta
    along = (a0 * y0 + a1 * y1 + a2 * y2) * (1.0 - c)
    return (
        y0 * c + (a1 * y2 - a2 * y1) * s + a0 * along,
        y1 * c + (a2 * y0 - a0 * y2) * s + a1 * along,
        y2 * c + (a0 * y1 - a1 * y0) * s + a2 * along,
    )


def project(r0, r1, r2, c0, c1, c2, f, u, v, k1, k2, x0, x1, x2, w, feature):
    """The weighted error of one observation."""
    z0, z1, z2 = rotate(r0, r1, r2, x0 - c0, x1 - c1, x2 - c2)
    p0, p1 = z0 / z2, z1 / z2
    s = p0 * p0 + p1 * p1
    scale = f * (1.0 + k1 * s + k2 * s * s)
    return w * (scale * p0 + u - feature[0]), w * (scale * p1 + v - feature[1])


def objective(cameras, points, weights, features):
    n, m = len(cameras), len(points)

    def error(i):
        return project(*numbers(cameras[i % n], points[i % m]), weights[i], features[i])

    e0, e1 = tp.map(error, len(weights))
    return np.stack((e0, e1), axis=1), 1.0 - weights * weights


def numbers(camera, point):
    return (
        camera[0], camera[1], camera[2], camera[3], camera[4], camera[5], camera[6], camera[7], camera[8], camera[9],
        camera[10], point[0], point[1], point[2],
    )  # fmt: skip


def jacobian(cameras, points, weights, features):
    """Row pointers, columns and values: two rows an observation, then one for its weight's own error."""
    n, m, p = len(cameras), len(points), len(weights)
    block = tp.jacrev(project, argnums=(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14))
    rows = np.empty(3 * p + 1, np.int64)
    columns = np.empty(31 * p, np.int64)
    values = np.empty(31 * p)
    for i in tp.prange(p):
        camera, point = i % n, i % m
        by_e0, by_e1 = block(*numbers(cameras[camera], points[point]), weights[i], features[i])
        for j, value in enumerate(by_e0 + by_e1):
            values[30 * i + j] = value
        for e in (0, 15):
            for j in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10):
                columns[30 * i + e + j] = 11 * camera + j
            for j in (0, 1, 2):
                columns[30 * i + e + 11 + j] = 11 * n + 3 * point + j
            columns[30 * i + e + 14] = 11 * n + 3 * m + i
    columns[30 * p :] = 11 * n + 3 * m + np.arange(p)
    values[30 * p :] = -2.0 * weights
    rows[: 2 * p] = 15 * np.arange(2 * p)
    rows[2 * p :] = 30 * p + np.arange(p + 1)
    return rows, columns, values


def arguments(given):
    """Every camera, point and observation is a copy of the one that is given."""
    n, m, p = int(given["n"]), int(given["m"]), int(given["p"])
    return (
        np.tile(floats(given["cam"]), (n, 1)),
        np.tile(floats(given["x"]), (m, 1)),
        np.full(p, float(given["w"])),
        np.tile(floats(given["feat"]), (p, 1)),
    )


def first_block(result, _arguments):
    errors, weight_errors = result
    return {
        "reproj_error": {"elements": errors[0].tolist(), "repeated": len(errors)},
        "w_err": {"element": float(weight_errors[0]), "repeated": len(weight_errors)},
    }


def ends(result, _arguments):
    """The first 30 elements and the last of each array."""
    return {name: [*part[:30].tolist(), part[-1].item()] for name, part in zip(("rows", "cols", "vals"), result)}


EXAMPLE = {
    "n": 4, "m": 5, "p": 12, "cam": [0.01 * k for k in range(1, 12)], "x": [0.1, 0.2, 5.0], "w": 0.5, "feat": [1.0, 2.0],
}  # fmt: skip
TASKS = {"objective": Task(objective, arguments, first_block), "jacobian": Task(jacobian, arguments, ends)}
