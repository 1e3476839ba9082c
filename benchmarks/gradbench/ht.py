"""ht: hand tracking, the distances of measured points from a posed hand, and their Jacobian.

The pose moves 22 bones; a vertex follows a weighted mean of them. A point belongs to a vertex (the simple variant, `us` is
None) or to a place in a triangle given by two coordinates of its own, `us`, of which only its own rows depend: the
Jacobian has one column for all of each, beside those of the pose.
"""

import math

import numpy as np

import tapeless as tp
from benchmarks.gradbench.task import Task, floats, integers

BONES = 22


def finger_angles(theta):
    """Angles about the x and z axes of each bone."""
    about_x, about_z = np.zeros(BONES), np.zeros(BONES)
    for finger in range(5):
        at = 4 * finger
        about_x[at + 2] = theta[at + 6]
        about_z[at + 2] = theta[at + 7]
        about_x[at + 3] = theta[at + 8]
        about_x[at + 4] = theta[at + 9]
    return about_x, about_z


def turn(about_x, about_z):
    """A rotation about the x axis, then about the z axis, as a homogeneous matrix."""
    cx, sx, cz, sz = np.cos(about_x), np.sin(about_x), np.cos(about_z), np.sin(about_z)
    return np.array(
        [[cz, -sz * cx, sz * sx, 0.0], [sz, cz * cx, -cz * sx, 0.0], [0.0, sx, cx, 0.0], [0.0, 0.0, 0.0, 1.0]]
    )


def global_rotation(r0, r1, r2):
    square = r0 * r0 + r1 * r1 + r2 * r2
    if square < 1e-8:
        return np.eye(3)
    angle = math.sqrt(square)
    a0, a1, a2 = r0 / angle, r1 / angle, r2 / angle
    K = np.array([[0.0, -a2, a1], [a2, 0.0, -a0], [-a1, a0, 0.0]])
    return np.eye(3) + math.sin(angle) * K + (1.0 - math.cos(angle)) * (K @ K)


def bone_transforms(theta, model):
    """What each bone does to the points of the hand at rest: (bones, 3, 4), without the translation."""
    about_x, about_z = finger_angles(theta)
    rotation = global_rotation(theta[0], theta[1], theta[2])
    absolute = np.empty((BONES, 4, 4))
    transforms = np.empty((BONES, 3, 4))
    for bone in range(BONES):
        relative = model["relatives"][bone] @ turn(about_x[bone], about_z[bone])
        parent = model["parents"][bone]
        if parent < 0:
            absolute[bone] = relative
        else:
            absolute[bone] = absolute[parent] @ relative
        moved = (absolute[bone] @ model["inverses"][bone])[:3]
        if model["mirrored"]:
            moved[0] = -moved[0]
        transforms[bone] = rotation @ moved
    return transforms


def vertices(theta, model):
    blended = model["weights"] @ bone_transforms(theta, model).reshape(BONES, 12)
    return tp.map(lambda m, place: m.reshape(3, 4) @ place + theta[3:6], blended, model["places"])


def errors(hand, us, triangles, at, points):
    if us is None:
        return (points - hand[at]).reshape(-1)

    def error(corner, u, point):
        a, b, c = hand[corner[0]], hand[corner[1]], hand[corner[2]]
        return point - (u[0] * a + u[1] * b + (1.0 - u[0] - u[1]) * c)

    return tp.map(error, triangles[at], us, points).reshape(-1)


def objective(theta, us, model, at, points):
    return errors(vertices(theta, model), us, model["triangles"], at, points)


def jacobian(theta, us, model, at, points):
    by_theta = tp.jacfwd(objective)(theta, us, model, at, points)
    if us is None:
        return by_theta
    hand = vertices(theta, model)
    found = np.empty((len(by_theta), 28))
    for k in (0, 1):
        seed = np.zeros(us.shape)
        seed[:, k] = 1.0
        found[:, k] = tp.jvp(lambda u: errors(hand, u, model["triangles"], at, points), (us,), (seed,))[1]
    found[:, 2:] = by_theta
    return found


def arguments(given):
    data = given["data"]
    model = data["model"]
    native = {
        "parents": integers(model["parents"]),
        "relatives": floats(model["base_relatives"]),
        "inverses": floats(model["inverse_base_absolutes"]),
        "places": floats(model["base_positions"]),
        "weights": floats(model["weights"]),
        "triangles": integers(model["triangles"]),
        "mirrored": bool(model["is_mirrored"]),
    }
    us = floats(given["us"]) if given["us"] else None
    return floats(given["theta"]), us, native, integers(data["correspondences"]), floats(data["points"])


def example():
    """A chain of unmoved bones."""
    places, corners, count = 30, 7, 5
    some = lambda *shape: np.linspace(0.1, 0.9, math.prod(shape)).reshape(shape).tolist()
    model = {
        "parents": list(range(-1, BONES - 1)),
        "base_relatives": np.tile(np.eye(4), (BONES, 1, 1)).tolist(),
        "inverse_base_absolutes": np.tile(np.eye(4), (BONES, 1, 1)).tolist(),
        "base_positions": some(places, 4),
        "weights": some(places, BONES),
        "triangles": np.arange(3 * corners).reshape(corners, 3).tolist(),
        "is_mirrored": False,
    }
    data = {"model": model, "correspondences": list(range(count)), "points": some(count, 3)}
    return {"theta": some(26), "data": data, "us": some(count, 2)}


EXAMPLE = example()
TASKS = {f.__name__: Task(f, arguments) for f in (objective, jacobian)}
