"""lbm: flow through obstacles in a box by the lattice Boltzmann method (D3Q19), in float32.

A cell holds 19 densities, one for each way that particles go. In a step they collide, then move on to the next cell.
"""

import numpy as np

import tapeless as tp
from benchmarks.gpu_programs.case import Arguments, Case, Random

# Where the particles of each way come from, as steps along z, y and x.
FROM = np.array(
    [
        (0, 0, 0),
        *((0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1), (1, 0, 0), (-1, 0, 0)),
        *((0, 1, 1), (0, 1, -1), (0, -1, 1), (0, -1, -1)),
        *((1, 1, 0), (-1, 1, 0), (1, -1, 0), (-1, -1, 0)),
        *((1, 0, 1), (-1, 0, 1), (1, 0, -1), (-1, 0, -1)),
    ]
)
VELOCITY = (-FROM[:, ::-1]).astype(np.float32)  # along x, y and z
WEIGHT = np.array([1 / 3] + 6 * [1 / 18] + 12 * [1 / 36], np.float32)
OPPOSITE = np.array([np.flatnonzero((FROM == -way).all(axis=1))[0] for way in FROM])
WAYS = len(FROM)
OMEGA = 1.95
FLUID, OBSTACLE, DRIVEN, FROZEN = range(4)


def collide(f, flag):
    """Densities after a collision; obstacles send everything back."""
    new = np.empty_like(f)
    for i in tp.prange(len(flag)):
        if flag[i] == OBSTACLE:
            for q in range(WAYS):
                new[q, i] = f[OPPOSITE[q], i]
        elif flag[i] == FROZEN:
            for q in range(WAYS):
                new[q, i] = f[q, i]
        else:
            rho, ux, uy, uz = 0.0, 0.0, 0.0, 0.0
            for q in range(WAYS):
                rho += f[q, i]
                ux += VELOCITY[q, 0] * f[q, i]
                uy += VELOCITY[q, 1] * f[q, i]
                uz += VELOCITY[q, 2] * f[q, i]
            ux, uy, uz = ux / rho, uy / rho, uz / rho
            if flag[i] == DRIVEN:
                ux, uy, uz = 0.005, 0.002, 0.0
            square = 1.5 * (ux * ux + uy * uy + uz * uz)
            for q in range(WAYS):
                along = VELOCITY[q, 0] * ux + VELOCITY[q, 1] * uy + VELOCITY[q, 2] * uz
                balance = WEIGHT[q] * rho * (1 + along * (4.5 * along + 3) - square)
                new[q, i] = (1 - OMEGA) * f[q, i] + OMEGA * balance
    return new


def move(f, collided, flag, nx, ny):
    cells = len(flag)
    new = np.empty_like(f)
    for i in tp.prange(cells):
        for q in range(WAYS):
            if flag[i] == FROZEN:
                new[q, i] = f[q, i]
            else:
                source = i + (FROM[q, 0] * ny + FROM[q, 1]) * nx + FROM[q, 2]
                new[q, i] = collided[q, source % cells]
    return new


def lbm(f, flag, nx, ny, steps):
    for _ in range(steps):
        f = move(f, collide(f, flag), flag, nx, ny)
    return np.sum(f * f)


def make_lbm(rng: Random, nx: int, ny: int, nz: int, steps: int) -> Arguments:
    """Walls around, spheres inside, two layers that drive the flow, and two frozen ones below and above."""
    z, y, x = np.meshgrid(np.arange(-2, nz + 2), np.arange(ny), np.arange(nx), indexing="ij")
    flag = np.full(z.shape, FLUID, np.int32)
    radius = 0.15 * min(nx, ny, nz)
    for _ in range(12):
        cz, cy, cx = rng.random(3) * (nz, ny, nx)
        flag[(z - cz) ** 2 + (y - cy) ** 2 + (x - cx) ** 2 < radius**2] = OBSTACLE
    within = (x > 1) & (x < nx - 2) & (y > 1) & (y < ny - 2)
    flag[within & ((z == 1) | (z == nz - 2))] = DRIVEN
    for at, count in ((x, nx), (y, ny), (z, nz)):
        flag[(at == 0) | (at == count - 1)] = OBSTACLE
    flag[(z < 0) | (z >= nz)] = FROZEN
    noise = rng.standard_normal((WAYS, flag.size), dtype=np.float32)
    return (WEIGHT[:, None] * (1 + 0.02 * noise)).astype(np.float32), flag.ravel(), nx, ny, steps


CASES = (
    Case(
        "lbm",
        "cells along x, y and z, and steps; gradient by the densities at the start",
        ((120, 120, 150, 100),),
        ((8, 7, 6, 4),),
        make_lbm,
        lbm,
        tp.value_and_grad(lbm),
    ),
)
