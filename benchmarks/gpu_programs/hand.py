"""hand: tracking a hand, the distances of measured points from a posed hand and their Jacobian, in float64.

A pose is 26 numbers: a rotation, a translation and four angles for each finger. It moves 22 bones, and a vertex of the skin
follows a weighted mean of them. A measured point belongs to a place in a triangle given by two coordinates of its own, of
which only its own distance depends: one shift of all coordinates gives all of these derivatives.
"""

import numpy as np

import tapeless as tp
from benchmarks.gpu_programs.case import Arguments, Case, Random

BONES = 22
PARENT = np.array([-1, *(0 if bone % 4 == 1 else bone - 1 for bone in range(1, 21)), 0])


def turn(about_x, about_z):
    """A rotation about the x axis, then about the z axis, as a homogeneous matrix."""
    cx, sx, cz, sz = np.cos(about_x), np.sin(about_x), np.cos(about_z), np.sin(about_z)
    return np.array(
        [[cz, -sz * cx, sz * sx, 0.0], [sz, cz * cx, -cz * sx, 0.0], [0.0, sx, cx, 0.0], [0.0, 0.0, 0.0, 1.0]]
    )


def rotation(r):
    """The matrix of a rotation vector."""
    angle = np.sqrt(np.sum(r * r))
    x, y, z = r[0] / angle, r[1] / angle, r[2] / angle
    s, c = np.sin(angle), np.cos(angle)
    k = 1.0 - c
    return np.array(
        [
            [x * x * k + c, x * y * k - z * s, x * z * k + y * s],
            [x * y * k + z * s, y * y * k + c, y * z * k - x * s],
            [x * z * k - y * s, y * z * k + x * s, z * z * k + c],
        ]
    )


def angles(theta):
    """About the x and the z axis, for each bone."""
    about_x, about_z = np.zeros(BONES), np.zeros(BONES)
    for finger in range(5):
        first = 4 * finger
        about_x[first + 2] = theta[first + 6]
        about_z[first + 2] = theta[first + 7]
        about_x[first + 3] = theta[first + 8]
        about_x[first + 4] = theta[first + 9]
    return about_x, about_z


def bones(theta, relative, inverse):
    """What each bone does to the hand at rest."""
    about_x, about_z = angles(theta)
    absolute = np.empty((BONES, 4, 4))
    for bone in range(BONES):
        own = relative[bone] @ turn(about_x[bone], about_z[bone])
        absolute[bone] = own if PARENT[bone] < 0 else absolute[PARENT[bone]] @ own
    return (absolute @ inverse)[:, :3]


def hand(theta, shift, us, relative, inverse, places, weights, triangles, points):
    moved = np.einsum("bij,vj,vb->vi", bones(theta, relative, inverse), places, weights)
    skin = moved @ rotation(theta[:3]).T + theta[3:6]

    def distance(corner, u, point):
        a, b = u[0] + shift[0], u[1] + shift[1]
        return point - (a * skin[corner[0]] + b * skin[corner[1]] + (1.0 - a - b) * skin[corner[2]])

    return tp.map(distance, triangles, us, points)


def rigid(rng: Random) -> np.ndarray:
    """A random rotation and translation."""
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    matrix = np.eye(4)
    matrix[:3, :3] = q * np.sign(np.linalg.det(q))
    matrix[:3, 3] = 0.3 * rng.normal(size=3)
    return matrix


def make_hand(rng: Random, vertices: int, count: int) -> Arguments:
    relative = np.stack([rigid(rng) for _ in range(BONES)])
    absolute = relative.copy()
    for bone in range(1, BONES):
        absolute[bone] = absolute[PARENT[bone]] @ relative[bone]
    weights = rng.random((vertices, BONES)) ** 8
    weights /= weights.sum(axis=1, keepdims=True)
    theta, us = 0.3 * rng.normal(size=26), 0.5 * rng.random((count, 2))
    places = np.concatenate((rng.normal(size=(vertices, 3)), np.ones((vertices, 1))), axis=1)
    triangles = rng.integers(0, vertices, (count, 3)).astype(np.int32)
    points = rng.normal(size=(count, 3))
    return theta, np.zeros(2), us, relative, np.linalg.inv(absolute), places, weights, triangles, points


CASES = (
    Case(
        "hand",
        "vertices and measured points; Jacobian by the pose and by a shift of the places in triangles",
        ((544, 25_600), (10_000, 51_200)),
        ((50, 30),),
        make_hand,
        hand,
        tp.jacfwd(hand, argnums=(0, 1)),
    ),
)
