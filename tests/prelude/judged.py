"""A call of a library function, compiled, judged by the library itself and by differences of it."""

import numpy as np

import tapeless as tp
from tapeless.ir import pytree


def judge(function, *args, order=1, rtol=1e-12, atol=1e-13):
    """Values, shapes and element types are the library's; derivatives of float arguments are those of differences.

    `order` is that of the derivatives which are tried: 0 for functions that have none.
    """
    with np.errstate(all="ignore"):
        wanted = function(*copied(args))
    found = tp.function(function)(*copied(args))
    same(found, wanted, rtol, atol)
    if order:
        tp.check_grads(function, args, order=order)


def copied(args):
    return [a.copy() if isinstance(a, np.ndarray) else a for a in args]


def same(found, wanted, rtol, atol):
    ours, theirs = pytree.flatten(found)[0], pytree.flatten(wanted)[0]
    assert len(ours) == len(theirs), (found, wanted)
    for x, y in zip(ours, theirs, strict=True):
        assert np.shape(x) == np.shape(y), f"shape {np.shape(x)}, not {np.shape(y)}"
        assert np.asarray(x).dtype == np.asarray(y).dtype, f"{np.asarray(x).dtype}, not {np.asarray(y).dtype}"
        np.testing.assert_allclose(x, y, rtol=rtol, atol=atol)
