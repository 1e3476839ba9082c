"""The functions that compiled code may call, each with expressions that try its edges.

Gives `ARGUMENTS`, what a letter in an expression stands for, `CASES`, expressions by function, and the differences from NumPy
that are meant: `REFUSED`, `EITHER` and `ELSEWHERE`, each with its reason. Element-wise functions are tried by `test_numpy_grid` itself.
"""

import numpy as np

INF, NAN = np.inf, np.nan
ARGUMENTS = {
    "f": np.array([0.0, -0.0, 1.0, -INF, 5e-324, INF, NAN, -1.5, 1e308]),
    "g": np.array([3.0, -1.5, 2.25, 0.5]),
    "u": np.array([0.0, 0.25, 1.5, 7.0]),  # increasing
    "e": np.zeros(0),
    "o": np.array([2.5]),
    "s": np.float64(1.5),
    "w": 2.5,
    "z": np.array(1.5),
    "m": np.array([[1.0, -2.0, 0.5], [4.0, 0.25, -3.0]]),
    "q": np.array([[4.0, 1.0], [1.0, 3.0]]),
    "r": np.zeros((0, 3)),
    "t": np.arange(12.0).reshape(2, 2, 3),
    "i": np.array([0, 1, -1, 7, 2**53 + 1, 2**63 - 1, -(2**63)]),
    "p": np.array([3, 1, 2, 1]),
    "x": np.array([[1, 2], [3, 4]]),
    "j": np.array([5, -1, 2**31 - 1, -(2**31)], np.int32),
    "b": np.array([True, False, True]),
    "c": np.array([0j, complex(1, NAN), complex(INF, -1), 1 + 2j]),
    "d": np.array([1 + 2j, -0.5j, 3 + 0j, 2 - 1j]),
    "h": np.array([1.5, -0.0, NAN, INF, 1e-45, 3e38], np.float32),
    "y": np.array([1.5, -2.0, 0.25, 8.0], np.float32),
    "k": 2,
    "n": -1,
    "l": -(2**63),
    "v": np.array([1.0, 2.0, 4.0]),
}
ALL = "f g e o s w z m r i j b h c d k y".split()
REAL = "f g e o s w z m r i j b h k y".split()
PLAIN = "g e o s w z m i j b d y".split()


def of(template, letters):
    return [template.replace("_", letter) for letter in letters]


AXES = ["(m, axis=0)", "(m, axis=1)", "(m, axis=-1)", "(m, axis=2)", "(r, axis=0)", "(r, axis=1)", "(t, axis=1)", "(s, axis=0)"]
SEVERAL = ["(m, axis=(0, 1))", "(t, axis=(0, 2))", "(m, axis=())", "(m, axis=(0, 0))"]
KEEP = ["(m, axis=0, keepdims=True)", "(m, keepdims=True)", "(s, keepdims=True)", "(g, keepdims=True)"]


def reduction(name, letters=ALL, dtypes=("np.float32", "np.int64", "np.complex128")):
    found = [f"({letter})" for letter in letters] + AXES + SEVERAL + KEEP + [f"(p, dtype={d})" for d in dtypes]
    return [f"np.{name}{c}" for c in found]


CASES = {
    "np.sum": reduction("sum"),
    "np.prod": reduction("prod"),
    "np.nansum": reduction("nansum"),
    "np.nanprod": reduction("nanprod"),
    "np.mean": reduction("mean", dtypes=["np.float32"]),
    "np.nanmean": reduction("nanmean", dtypes=["np.float32"]),
    "np.var": [*reduction("var", PLAIN, dtypes=["np.float32"]), "np.var(f)", "np.var(g, ddof=1)", "np.var(o, ddof=1)"],
    "np.std": [*reduction("std", PLAIN, dtypes=["np.float32"]), "np.std(f)", "np.std(g, ddof=1)"],
    **{f"np.{n}": reduction(n, dtypes=[]) for n in ("max", "min", "amax", "amin", "nanmax", "nanmin", "any", "all", "count_nonzero")},
    "np.ptp": reduction("ptp", REAL, dtypes=[]),
    **{f"np.{n}": [f"np.{n}({c})" for c in REAL] + [f"np.{n}{c}" for c in AXES + KEEP] for n in ("argmax", "argmin")},
    **{f"np.{n}": of(f"np.{n}(_)", ALL) + [f"np.{n}{c}" for c in AXES] + [f"np.{n}(p, dtype=np.float32)"] for n in ("cumsum", "cumprod")},
    "np.average": of("np.average(_)", PLAIN) + ["np.average(g, weights=u)", "np.average(m, axis=1, weights=v)", "np.average(g, weights=g - g)", "np.average(d, weights=g)", "np.average(g, weights=d)", "np.average(p, weights=p)", "np.average(s, weights=s)", "np.average(f, weights=f)"],
    "np.sort": of("np.sort(_)", REAL) + ["np.sort(m, axis=0)", "np.sort(m, axis=None)", "np.sort(t, axis=1)", "np.sort(s, axis=None)"],
    "np.argsort": of("np.argsort(_, kind='stable')", REAL) + ["np.argsort(m, axis=0)", "np.argsort(m, axis=None)"],
    "np.searchsorted": of("np.searchsorted(u, _)", REAL) + of("np.searchsorted(u, _, side='right')", "fm") + ["np.searchsorted(e, f)", "np.searchsorted(s, s)", "np.searchsorted(p[:2] - p[:2], i)", "np.searchsorted(i[:5] * 0 + i[4], w)", "np.searchsorted(np.sort(f), f)", "np.searchsorted(np.sort(f), f, 'right')"],
    "np.interp": of("np.interp(_, u, g)", REAL) + ["np.interp(g, u, d)", "np.interp(d, u, g)", "np.interp(g, e, e)", "np.interp(s, s, s)", "np.interp(f, o, o)", "np.interp(g, u, p)", "np.interp(g, u, f[:4])", "np.interp(g, u, g, left=w, right=k)", "np.interp(g, u, g, left=1j)", "np.interp(g, u, d, left=1j)", "np.interp(m, u, g)"],
    "np.take": ["np.take(g, k)", "np.take(g, 4)", "np.take(g, n)", "np.take(m, p - 1, axis=1)", "np.take(m, k)", "np.take(s, 0)", "np.take(s, 1)", "np.take(e, 0)", "np.take(g, x - 1)", "np.take(g, b)", "np.take(g, g)"],
    "np.take_along_axis": ["np.take_along_axis(m, np.argsort(m, axis=1), axis=1)", "np.take_along_axis(g, p, axis=0)", "np.take_along_axis(s, p, axis=0)", "np.take_along_axis(m, x, axis=None)"],
    "np.diff": of("np.diff(_)", ALL) + ["np.diff(m, axis=0)", "np.diff(g, n=2)", "np.diff(o, n=3)", "np.diff(g, n=0)"],
    "np.trapezoid": of("np.trapezoid(_)", PLAIN) + ["np.trapezoid(g, u)", "np.trapezoid(m, axis=0)", "np.trapezoid(m, v)", "np.trapezoid(g, dx=w)", "np.trapezoid(d, u)", "np.trapezoid(g, d)"],
    "np.reshape": of("np.reshape(_, -1)", PLAIN) + ["np.reshape(m, (3, 2))", "np.reshape(m, (3, -1))", "np.reshape(m, (4, -1))", "np.reshape(m, (-1, -1))", "np.reshape(o, ())", "np.reshape(g, ())", "np.reshape(s, ())", "np.reshape(s, (1, 1))", "np.reshape(e, (0, 3))", "np.reshape(r, (3, -1))", "np.reshape(r, (0, -1))", "np.reshape(m, 6)"],
    "np.ravel": of("np.ravel(_)", ALL) + ["np.ravel(m.T)"],
    "np.squeeze": of("np.squeeze(_)", PLAIN) + ["np.squeeze(o, axis=0)", "np.squeeze(g, axis=0)", "np.squeeze(m[:1])", "np.squeeze(m[:1], axis=0)", "np.squeeze(s, axis=0)", "np.squeeze(s, axis=1)"],
    "np.expand_dims": ["np.expand_dims(g, 0)", "np.expand_dims(g, -1)", "np.expand_dims(g, 2)", "np.expand_dims(m, (0, 2))", "np.expand_dims(s, 0)", "np.expand_dims(s, (0, 1))", "np.expand_dims(w, 0)", "np.expand_dims(g, (0, 0))", "np.expand_dims(s, 1)", "np.expand_dims(e, 0)"],
    "np.transpose": of("np.transpose(_)", PLAIN) + ["np.transpose(t, (2, 0, 1))", "np.transpose(t, (0, 1))", "np.transpose(m, (0, 0))", "np.transpose(s, ())", "np.transpose(t)"],
    "np.permute_dims": ["np.permute_dims(m, (1, 0))", "np.permute_dims(t, (-1, 0, 1))"],
    "np.swapaxes": ["np.swapaxes(m, 0, 1)", "np.swapaxes(t, 0, -1)", "np.swapaxes(g, 0, 0)", "np.swapaxes(s, 0, 0)", "np.swapaxes(m, 0, 2)"],
    "np.moveaxis": ["np.moveaxis(m, 0, 1)", "np.moveaxis(t, (0, 1), (2, 0))", "np.moveaxis(s, 0, 0)", "np.moveaxis(m, 0, 2)", "np.moveaxis(t, (0, 0), (1, 2))", "np.moveaxis(m, (0, 1), (0,))"],
    "np.flip": of("np.flip(_)", ALL) + ["np.flip(m, 1)", "np.flip(m, (0, 1))", "np.flip(s, 0)", "np.flip(m, 2)"],
    "np.flipud": of("np.flipud(_)", PLAIN),
    "np.fliplr": of("np.fliplr(_)", PLAIN),
    "np.concatenate": ["np.concatenate((g, o))", "np.concatenate((g, e))", "np.concatenate((e, e))", "np.concatenate((m, m), axis=1)", "np.concatenate((m, m), axis=None)", "np.concatenate((m, r))", "np.concatenate((g, m))", "np.concatenate((s, s))", "np.concatenate((s, s), axis=None)", "np.concatenate((g, i))", "np.concatenate((j, b))", "np.concatenate((h, i))", "np.concatenate((h, d))", "np.concatenate((y, j))", "np.concatenate((m, m), axis=2)", "np.concatenate(m)", "np.concatenate((g, [1, 2]))", "np.concatenate(())"],
    "np.concat": ["np.concat((g, o))"],
    "np.stack": ["np.stack((g, g))", "np.stack((g, u), axis=1)", "np.stack((g, u), axis=-1)", "np.stack((g, u), axis=2)", "np.stack((s, s))", "np.stack((g, o))", "np.stack((g, p))", "np.stack((m, m), axis=1)", "np.stack((e, e))", "np.stack((s, w, k))", "np.stack(())"],
    "np.hstack": ["np.hstack((g, o))", "np.hstack((m, m))", "np.hstack((s, w))", "np.hstack((s, g))", "np.hstack((g, i))", "np.hstack((e, e))"],
    "np.vstack": ["np.vstack((g, u))", "np.vstack((m, m))", "np.vstack((m, v))", "np.vstack((s, s))", "np.vstack((g, o))", "np.vstack((g, p))"],
    "np.column_stack": ["np.column_stack((g, u))", "np.column_stack((m, m))", "np.column_stack((s, s))", "np.column_stack((g, g[:, None]))", "np.column_stack((g, p))"],
    "np.append": ["np.append(g, o)", "np.append(g, s)", "np.append(m, g)", "np.append(m, m, axis=0)", "np.append(g, s, axis=0)", "np.append(s, s)", "np.append(p, g)", "np.append(e, k)", "np.append(p, w)"],
    "np.split": ["np.split(g, 2)", "np.split(g, 3)", "np.split(g, [1, 3])", "np.split(m, 3, axis=1)", "np.split(s, 1)", "np.split(g, 0)", "np.split(g, [3, 1])", "np.split(g, [-1, 9])", "np.split(e, 1)"],
    "np.broadcast_to": ["np.broadcast_to(g, (2, 4))", "np.broadcast_to(s, (2,))", "np.broadcast_to(s, ())", "np.broadcast_to(o, (3,))", "np.broadcast_to(g, (3,))", "np.broadcast_to(o, (0,))", "np.broadcast_to(m, (3,))", "np.broadcast_to(w, 2)", "np.broadcast_to(k, (2, 1))"],
    "np.repeat": ["np.repeat(g, 2)", "np.repeat(m, 2)", "np.repeat(m, 2, axis=1)", "np.repeat(s, 3)", "np.repeat(g, 0)", "np.repeat(g, n)", "np.repeat(e, 2)", "np.repeat(s, 2, axis=0)", "np.repeat(s, 2, axis=1)", "np.repeat(i, k)"],
    "np.tile": ["np.tile(g, 2)", "np.tile(m, (2, 1))", "np.tile(s, 2)", "np.tile(s, (2, 2))", "np.tile(g, (2, 2))", "np.tile(g, 0)", "np.tile(g, ())", "np.tile(s, ())", "np.tile(g, n)", "np.tile(m, k)", "np.tile(e, 2)"],
    "np.roll": of("np.roll(_, 1)", PLAIN) + ["np.roll(g, n)", "np.roll(g, l)", "np.roll(g, 2**62)", "np.roll(m, 1, axis=1)", "np.roll(m, (1, 2), axis=(0, 1))", "np.roll(s, 1, axis=0)", "np.roll(e, 3)", "np.roll(m, 4)", "np.roll(m, (1, 2), axis=0)"],
    "np.dot": ["np.dot(g, u)", "np.dot(m, v)", "np.dot(q, q)", "np.dot(s, g)", "np.dot(w, s)", "np.dot(w, w)", "np.dot(e, e)", "np.dot(g, v)", "np.dot(p, p)", "np.dot(i, i)", "np.dot(j, j)", "np.dot(b, b)", "np.dot(d, d)", "np.dot(y, y)", "np.dot(y, g)", "np.dot(t, v)", "np.dot(r.T, r)", "np.dot(f, f)", "np.dot(m, m)", "np.dot(x, x)", "np.dot(g, p)", "np.dot(x, q)", "np.dot(d, g)", "np.dot(t, m.T)"],
    "np.matmul": ["np.matmul(g, u)", "np.matmul(m, v)", "np.matmul(q, q)", "np.matmul(s, g)", "np.matmul(w, w)", "np.matmul(e, e)", "np.matmul(g, v)", "np.matmul(i, i)", "np.matmul(t, m.T)", "np.matmul(x, x)", "np.matmul(d, d)", "np.matmul(r.T, r)", "np.matmul(b, b)", "np.matmul(m, m)", "np.matmul(g, m)", "np.matmul(y, y)"],
    "np.vdot": ["np.vdot(g, u)", "np.vdot(d, d)", "np.vdot(s, s)", "np.vdot(m, m)", "np.vdot(g, v)", "np.vdot(e, e)", "np.vdot(i, i)", "np.vdot(s, o)", "np.vdot(w, w)", "np.vdot(d, g)"],
    "np.inner": ["np.inner(g, u)", "np.inner(m, v)", "np.inner(m, m)", "np.inner(s, g)", "np.inner(s, s)", "np.inner(d, d)", "np.inner(g, v)", "np.inner(e, e)", "np.inner(i, i)", "np.inner(t, m)"],
    "np.outer": ["np.outer(g, u)", "np.outer(s, g)", "np.outer(s, s)", "np.outer(m, g)", "np.outer(e, g)", "np.outer(g, e)", "np.outer(f, f)", "np.outer(i, i)", "np.outer(d, g)", "np.outer(b, b)", "np.outer(j, y)"],
    "np.tensordot": ["np.tensordot(m, v, axes=1)", "np.tensordot(g, k, axes=0)", "np.tensordot(g, w, axes=0)", "np.tensordot(s, s, axes=0)", "np.tensordot(s, s, axes=1)", "np.tensordot(s, s)", "np.tensordot(m, m)", "np.tensordot(t, m, axes=((2,), (1,)))", "np.tensordot(q, q, axes=([0, 1], [1, 0]))", "np.tensordot(q, q, axes=([0, 1], [1]))", "np.tensordot(m, m, axes=1)", "np.tensordot(g, u, axes=0)", "np.tensordot(r, r, axes=((0,), (0,)))", "np.tensordot(i, i, axes=1)"],
    "np.einsum": ["np.einsum('ij,jk->ik', q, q)", "np.einsum('i,->i', g, s)", "np.einsum(',->', s, w)", "np.einsum('->', s)", "np.einsum('ii', q)", "np.einsum('ii->i', q)", "np.einsum('ij->ji', m)", "np.einsum('ij', m)", "np.einsum('i,i', g, v)", "np.einsum('i,j', g, v)", "np.einsum('i', s)", "np.einsum('i->', e)", "np.einsum('i,i->', d, d)", "np.einsum('i,i->', i, i)", "np.einsum('ijk,ik->j', t, m)", "np.einsum('i,i->', f, f)", "np.einsum('ij,j', m, v)", "np.einsum('i->ii', g)", "np.einsum('ij->k', m)"],
    "np.cross": ["np.cross(v, m)", "np.cross(v, v)", "np.cross(m, m)", "np.cross(s, v)", "np.cross(g, g)", "np.cross(v, b)"],
    "np.kron": ["np.kron(g, u)", "np.kron(q, q)", "np.kron(s, g)", "np.kron(g, s)", "np.kron(s, s)", "np.kron(g, m)", "np.kron(m, g)", "np.kron(e, g)", "np.kron(i, p)", "np.kron(d, g)", "np.kron(w, k)"],
    "np.trace": ["np.trace(q)", "np.trace(m)", "np.trace(m, 1)", "np.trace(m, -5)", "np.trace(s)", "np.trace(g)", "np.trace(x)", "np.trace(r)", "np.trace(m, k)"],
    "np.linalg.trace": ["np.linalg.trace(q)", "np.linalg.trace(x)"],
    "np.linalg.inv": ["np.linalg.inv(q)", "np.linalg.inv(m)", "np.linalg.inv(s)", "np.linalg.inv(q - q)", "np.linalg.inv(x)", "np.linalg.inv(r[:, :0])", "np.linalg.inv(q * 1j + q)"],
    "np.linalg.det": ["np.linalg.det(q)", "np.linalg.det(m)", "np.linalg.det(s)", "np.linalg.det(q - q)", "np.linalg.det(x)", "np.linalg.det(r[:, :0])", "np.linalg.det(q * 1j)", "np.linalg.det(q * w / (w - w + 0.0))"],
    "np.linalg.slogdet": ["np.linalg.slogdet(q)", "np.linalg.slogdet(-q)", "np.linalg.slogdet(q - q)", "np.linalg.slogdet(m)", "np.linalg.slogdet(q * 1j)", "np.linalg.slogdet(x)"],
    "np.linalg.cholesky": ["np.linalg.cholesky(q)", "np.linalg.cholesky(-q)", "np.linalg.cholesky(m)", "np.linalg.cholesky(s)"],
    "np.linalg.solve": ["np.linalg.solve(q, g[:2])", "np.linalg.solve(q, q)", "np.linalg.solve(q - q, q)", "np.linalg.solve(q, g)", "np.linalg.solve(q, s)", "np.linalg.solve(x, x)", "np.linalg.solve(m, m)", "np.linalg.solve(q, d[:2])"],
    "np.linalg.matrix_power": ["np.linalg.matrix_power(q, 3)", "np.linalg.matrix_power(x, 5)", "np.linalg.matrix_power(m, 2)", "np.linalg.matrix_power(q, 1)", "np.linalg.matrix_power(q, 0)", "np.linalg.matrix_power(q, -1)", "np.linalg.matrix_power(s, 2)"],
    "np.linalg.norm": of("np.linalg.norm(_)", ALL) + of("np.linalg.norm(g, _)", ["1", "2", "3", "np.inf", "-np.inf", "0", "'fro'", "0.5"]) + of("np.linalg.norm(m, _)", ["1", "-1", "np.inf", "-np.inf", "'fro'", "0"]) + ["np.linalg.norm(m, axis=1)", "np.linalg.norm(m, axis=0, keepdims=True)", "np.linalg.norm(s, 2)", "np.linalg.norm(s, axis=0)", "np.linalg.norm(s, keepdims=True)", "np.linalg.norm(e, np.inf)", "np.linalg.norm(t)", "np.linalg.norm(t, axis=(0, 1))", "np.linalg.norm(f, 1)", "np.linalg.norm(d, 1)", "np.linalg.norm(d, np.inf)", "np.linalg.norm(d, 0)", "np.linalg.norm(m, ord=2, axis=1)", "np.linalg.norm(g, -1)"],
    "np.diag": of("np.diag(_)", PLAIN) + ["np.diag(m, 1)", "np.diag(m, -9)", "np.diag(g, k)", "np.diag(g, n)", "np.diag(t)", "np.diag(q)"],
    "np.tril": ["np.tril(m)", "np.tril(m, 1)", "np.tril(m, l)", "np.tril(g)", "np.tril(s)", "np.tril(t)", "np.tril(r)", "np.tril(x)"],
    "np.triu": ["np.triu(m)", "np.triu(m, 1)", "np.triu(m, -5)", "np.triu(g)", "np.triu(s)", "np.triu(t)", "np.triu(x)"],
    "np.tri": ["np.tri(3)", "np.tri(2, 4)", "np.tri(3, 3, k)", "np.tri(3, k=-1, dtype=np.int64)", "np.tri(0)"],
    "np.eye": ["np.eye(3)", "np.eye(2, 4)", "np.eye(3, k=1)", "np.eye(k, dtype=np.int32)", "np.eye(n)", "np.eye(0)", "np.eye(w)", "np.eye(3, k=k)"],
    "np.identity": ["np.identity(3)", "np.identity(k, dtype=np.float32)", "np.identity(n)"],
    "np.meshgrid": ["np.meshgrid(g, v)", "np.meshgrid(g, v, indexing='ij')", "np.meshgrid(s, g)", "np.meshgrid(s, w)", "np.meshgrid(g)", "np.meshgrid(e, g)", "np.meshgrid(g, v, u)", "np.meshgrid(m, g)"],
    **{f"np.{n}": [f"np.{n}({c})" for c in ("3", "(2, 3)", "()", "0", "k", "(k, 0)", "n", "w", "3, np.int32", "2, dtype=np.complex64", "(1, 2, k)", "2, dtype=bool")] for n in ("zeros", "ones")},
    "np.empty": ["np.empty((0, 3))", "np.empty(n)", "np.empty(0, np.int32)"],
    **{f"np.{n}_like": of(f"np.{n}_like(_)", ALL) + [f"np.{n}_like(g, dtype=np.int32)", f"np.{n}_like(m, shape=(k,))"] for n in ("zeros", "ones")},
    "np.empty_like": ["np.empty_like(e)", "np.empty_like(r, dtype=np.int32)"],
    "np.full": ["np.full(3, w)", "np.full(3, s)", "np.full((2, 2), k)", "np.full((), w)", "np.full(n, w)", "np.full(2, 1j)", "np.full((2, 4), g)", "np.full(3, g)", "np.full(2, 2**40, dtype=np.int32)", "np.full(2, w, dtype=np.int64)", "np.full(2, True)", "np.full(2, l, dtype=np.int32)", "np.full(2, w, dtype=bool)", "np.full(0, w)", "np.full(2, l)"],
    "np.full_like": of("np.full_like(_, 2.7)", "gpjbysd") + ["np.full_like(g, k)", "np.full_like(p, w)", "np.full_like(m, v)", "np.full_like(w, k)", "np.full_like(g, 2, dtype=np.int32)"],
    "np.array": ["np.array(_)".replace("_", c) for c in [*ALL, "[1, 2]", "[1, 2.5]", "[1, 2j]", "[s, k]", "[True, False]", "[True, 1]", "[[1, 2], [3, 4]]", "[[1], [2, 3]]", "[g, u]", "[g, v]", "()", "[]", "[[]]", "[y[0], w]", "[j[0], k]", "[j[0], 2**40]", "[j[0], i[0]]", "(w, w)", "[g, 1]"]] + ["np.array(g, dtype=np.int32)", "np.array([w], dtype=np.int32)", "np.array([l], dtype=np.int32)", "np.array(l, dtype=np.int32)", "np.array([1j], dtype=np.float64)", "np.array(d, dtype=np.complex64)", "np.array(s, ndmin=2)", "np.array(g, ndmin=2)", "np.array(w, ndmin=1)"],
    "np.asarray": of("np.asarray(_)", ALL) + ["np.asarray([1, 2])", "np.asarray(w, dtype=np.int32)", "np.asarray(p, dtype=np.float64)"],
    "np.asanyarray": ["np.asanyarray(g)", "np.asanyarray(w)", "np.asanyarray([1, w])"],
    "np.ascontiguousarray": of("np.ascontiguousarray(_)", PLAIN) + ["np.ascontiguousarray(m.T)"],
    "np.copy": of("np.copy(_)", ALL),
    "np.atleast_1d": of("np.atleast_1d(_)", ALL),
    "np.atleast_2d": of("np.atleast_2d(_)", ALL) + ["np.atleast_2d(t)"],
    **{f"np.{n}": of(f"np.{n}(_)", "g e o s w z m p i j b d k l n y".split()) + [f"np.{n}()"] for n in ("float32", "float64", "int32", "int64", "complex64", "complex128", "bool_")},
    "np.arange": ["np.arange(5)", "np.arange(k)", "np.arange(n)", "np.arange(2, 9, 3)", "np.arange(9, 2, -3)", "np.arange(0, 5, 0)", "np.arange(w)", "np.arange(0.1, w, 0.3)", "np.arange(w, 0.0, -0.7)", "np.arange(0.0, 1.0, np.inf)", "np.arange(0.0, 1.0, -np.inf)", "np.arange(np.nan)", "np.arange(np.inf)", "np.arange(3, dtype=np.float32)", "np.arange(0.0, 1.0, 0.3, dtype=np.float32)", "np.arange(k, dtype=np.int32)", "np.arange(2**40, 2**40 + 2, dtype=np.int32)", "np.arange(l, l + 3)", "np.arange(s)", "np.arange(0, k, w)", "np.arange(3, dtype=np.complex128)", "np.arange(j[0])", "np.arange(y[0])", "np.arange(True)", "np.arange(0.5, 3.5, dtype=np.int64)", "np.arange(2**62, l + 0, -(2**62))", "np.arange(1j)"],
    "np.linspace": ["np.linspace(0, 1, 5)", "np.linspace(0.1, w, 7)", "np.linspace(w, s, k)", "np.linspace(0, 1, 0)", "np.linspace(0, 1, 1)", "np.linspace(0, 1, n)", "np.linspace(0, 1, 4, endpoint=False)", "np.linspace(0, 1, 1, endpoint=False)", "np.linspace(0.0, np.inf, 3)", "np.linspace(0.0, np.nan, 3)", "np.linspace(0, 5e-324, 3)", "np.linspace(-1e308, 1e308, 3)", "np.linspace(0, 1j, 3)", "np.linspace(0, 10, 4, dtype=np.int64)", "np.linspace(-3, 3, 5, dtype=np.int64)", "np.linspace(0, 1, 3, retstep=True)", "np.linspace(0, 1, 1, retstep=True)", "np.linspace(y[0], y[1], 3)", "np.linspace(0, 1, 3, dtype=np.float32)", "np.linspace(p[0], p[1], 3)", "np.linspace(k, k, 3)", "np.linspace(0, 1, w)", "np.linspace(l, -l - 1, 3)", "np.linspace(g, u, 3)"],
    "np.where": ["np.where(b, v, s)", "np.where(g, u, w)", "np.where(d, g, g)", "np.where(b, k, w)", "np.where(b, y[0], w)", "np.where(b, j[0], w)", "np.where(b, j[0], k)", "np.where(True, s, s)", "np.where(b, v, 1j)", "np.where(b[:, None], v, m[0])", "np.where(f, f, f)", "np.where(b, g, v)", "np.where(e, e, e)", "np.where(w, w, k)", "np.where(b, True, k)", "np.where(b, i[0], w)", "np.where(b, j[0], 2**40)"],
    "np.clip": of("np.clip(_, -1, 2)", REAL) + ["np.clip(f, w, -w)", "np.clip(f, np.nan, 1.0)", "np.clip(f, f[:1], f[2:3])", "np.clip(p, 1.5, 3)", "np.clip(j, 0, 2**40)", "np.clip(g, None, 1)", "np.clip(g, 1, None)", "np.clip(g, u, 2)", "np.clip(d, 0, 1)", "np.clip(k, 0, 1)", "np.clip(w, 0, 1)", "np.clip(y, 0, w)", "np.clip(s, 0, k)", "np.clip(g, min=0, max=1)"],
    **{f"np.{n}": of(f"np.{n}(_)", ALL) + of(f"np.{n}(_, 1)", "fgmyd") + of(f"np.{n}(_, -1)", "gpmd") for n in ("round", "around")},
    "np.isclose": ["np.isclose(f, f)", "np.isclose(f, f, equal_nan=True)", "np.isclose(g, g + 1e-9)", "np.isclose(f[:, None], f)", "np.isclose(i, w)", "np.isclose(d, d)", "np.isclose(y, y)", "np.isclose(s, w)", "np.isclose(c, c)", "np.isclose(g, u, rtol=0.5)", "np.isclose(g, u, atol=2)", "np.isclose(k, n)", "np.isclose(b, b)", "np.isclose(w, w)", "np.isclose(j, j)"],
    "np.allclose": ["np.allclose(f, f)", "np.allclose(g, g)", "np.allclose(f, f, equal_nan=True)", "np.allclose(s, w)", "np.allclose(e, e)", "np.allclose(w, w)"],
    "np.nan_to_num": of("np.nan_to_num(_)", REAL) + ["np.nan_to_num(f, nan=w)", "np.nan_to_num(f, posinf=1, neginf=k)", "np.nan_to_num(h, nan=s)", "np.nan_to_num(f, nan=1j)", "np.nan_to_num(c)"],
    **{f"np.{n}": of(f"np.{n}(_)", "f c d g i j b s w z k y".split()) for n in ("real", "imag")},
    "np.divmod": ["np.divmod(f, f[::-1])", "np.divmod(i, i[::-1])", "np.divmod(j, -1)", "np.divmod(g, 0.0)", "np.divmod(w, s)", "np.divmod(i, n)", "np.divmod(i, 0)", "np.divmod(d, g)", "np.divmod(w, w)", "np.divmod(b, b)", "np.divmod(y, j)"],
    "np.modf": of("np.modf(_)", "f h g s w k i e".split()),
    "np.select": ["np.select([b], [v])", "np.select([b, ~b], [v, s])", "np.select([b, b], [v, w], k)", "np.select([p], [p])", "np.select([True], [s])", "np.select([b], [v, v])", "np.select([b], [k], w)", "np.select([v > 1, v > 2], [v, -v], 0.5)"],
    "np.power": ["np.power(i, k)", "np.power(i, n)", "np.power(p, p)", "np.power(p, 0)", "np.power(j, 3)", "np.power(i, p[0])", "np.power(p, -p)", "np.power(k, k)", "np.power(k, n)", "np.power(i, 1.0)", "np.power(2.0, i)", "np.power(l, k)", "np.power(b, b)"],
    "np.array_equal": ["np.array_equal(f, f)", "np.array_equal(g, g)", "np.array_equal(g, m)", "np.array_equal(s, s)", "np.array_equal(s, o)", "np.array_equal(g, p)"],
    **{f"np.{n}": of(f"np.{n}(_)", "g e m s w z k b".split()) for n in ("shape", "ndim", "size")},
    "np.isscalar": of("np.isscalar(_)", "g s w k z".split()),
    **{f"special.{n}": of(f"special.{n}(_)", ["f", "g", "e", "o", "s", "w", "m", "p", "y", "d", "b"]) + [f"special.{n}(m, axis=1)", f"special.{n}(f[3:6])", f"special.{n}(f[3:4])", f"special.{n}(f[5:6])"] for n in ("logsumexp", "softmax", "log_softmax")},
}
# Sums, products and what is made of them: the order and the contraction of operations are free.
ROUNDED = (
    "np.std", "np.var", "np.linalg", "special", "np.mean", "np.nanmean", "np.average", "np.interp", "np.dot", "np.matmul",
    "np.vdot", "np.inner", "np.tensordot", "np.einsum", "np.sum", "np.nansum", "np.cumsum", "np.prod", "np.nanprod",
    "np.cumprod", "np.trapezoid", "np.trace", "np.arange", "np.linspace", "np.cross", "np.round", "np.around",
)  # fmt: skip

# Expressions that NumPy evaluates and that are refused when they are compiled, or that mean something else, by the reason.
MEANT: dict[str, tuple[str, ...]] = {
    "complex numbers have no order here": (
        *(f"np.{n}({c})" for n in ("max", "min", "amax", "amin", "nanmax", "nanmin") for c in "cd"), "np.clip(d, 0, 1)",
    ),
    "not there for complex numbers": (
        "np.nan_to_num(c)", "special.logsumexp(d)", "special.softmax(d)", "special.log_softmax(d)", "np.arange(1j)",
    ),
    "equal elements keep their order, and 0.0 equals -0.0": ("np.sort(f)",),
    "the size of the result would depend on the data": ("np.take(g, b)",),
    "the number of arrays must be known": ("np.concatenate(m)",),
    "no element type holds the result (NumPy: float16, int8)": ("np.round(b)", "np.around(b)", "np.divmod(b, b)", "np.power(b, b)"),
    "bools are not multiplied as matrices": ("np.dot(b, b)", "np.matmul(b, b)"),
    "not there for these arguments": (
        "np.linalg.matrix_power(q, 0)", "np.linalg.matrix_power(q, -1)", "np.tril(g)", "np.triu(g)", "np.meshgrid(m, g)",
        "np.linspace(g, u, 3)",
    ),
    "NumPy cannot pass on the lowest integer": ("np.tril(m, l)",),
    "a distance of more than 64 bits": ("np.arange(2**62, l + 0, -(2**62))",),
    "the element type of a result does not depend on a value": ("np.linspace(0, 1, 1, retstep=True)",),
    "an int that int32 does not hold: NumPy wraps it here, and raises elsewhere": ("np.where(b, j[0], 2**40)", "np.clip(j, 0, 2**40)"),
    "arrays without dimensions are NumPy's numbers here": ("np.isscalar(z)",),
}  # fmt: skip
LEFT_OUT = {
    "what a program is made of, not functions of numbers": (
        "dict", "enumerate", "getattr", "isinstance", "list", "print", "range", "reversed", "slice", "tuple", "type", "zip", "len",
    ),
    "about element types, which have no values": ("np.dtype", "np.finfo", "np.iinfo", "np.promote_types", "np.result_type"),
    "operators, which are tried by tests/language": (
        *(f"operator.{n}" for n in "add and_ floordiv lshift matmul mod mul or_ pow rshift sub truediv xor".split()),
    ),
}  # fmt: skip

# -- element-wise functions

SIMPLE = frozenset(
    "add subtract negative positive fabs floor_divide remainder maximum minimum fmax fmin floor ceil trunc fix bitwise_and "
    "bitwise_or bitwise_xor invert left_shift right_shift rint isnan isinf isfinite signbit copysign nextafter fmod heaviside conj "
    "logical_and logical_or logical_xor logical_not equal not_equal less less_equal greater greater_equal".split()
)  # to the last bit; on real numbers also:
EXACT_ON_REALS = SIMPLE | {"abs", "sign", "multiply", "divide", "square", "reciprocal", "sqrt"}
ULPS = {"special.erfc": 64, "special.ndtr": 1024, "special.betaln": 4096}
NO_COMPLEX = frozenset(
    "np.exp2 np.expm1 np.log2 np.log1p np.rint np.less np.less_equal np.greater np.greater_equal special.erf special.erfc "
    "special.gamma special.digamma special.psi special.expm1 special.log1p special.ndtr special.xlogy special.xlog1py special.maximum "
    "special.expit special.logit np.maximum np.minimum np.fmax np.fmin np.floor_divide np.remainder special.gammaln".split()
)
NO_BOOLS = frozenset(
    "np.square np.reciprocal np.conj np.floor_divide np.remainder np.power np.fmod np.left_shift np.right_shift".split()
)
