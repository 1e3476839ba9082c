"""What operations mean that make arrays or arrange their elements anew."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tapeless.interp.evaluate import Evaluator, evaluates
from tapeless.interp.values import IllTyped, Value, broadcast, uninitialised
from tapeless.ir.core import ArrayLit, Broadcast, Concat, Copy, Full, Iota, Reshape, Stm, Transpose


@evaluates(Iota)
def iota(evaluator: Evaluator, stm: Stm, exp: Iota) -> Sequence[Value]:
    return [np.arange(evaluator.dim(exp.length), dtype=np.int64)]


@evaluates(Full)
def full(evaluator: Evaluator, stm: Stm, exp: Full) -> Sequence[Value]:
    if exp.value is None:
        return [uninitialised(evaluator.shape(exp.shape), stm.vars[0].type.dtype)]
    item = evaluator.scalar(exp.value)
    return [np.full(evaluator.shape(exp.shape), item, item.dtype)]


@evaluates(ArrayLit)
def array_literal(evaluator: Evaluator, stm: Stm, exp: ArrayLit) -> Sequence[Value]:
    return [np.stack([evaluator.readable(a) for a in exp.items])]


@evaluates(Reshape)
def reshape(evaluator: Evaluator, stm: Stm, exp: Reshape) -> Sequence[Value]:
    array, shape = evaluator.array(exp.array), evaluator.shape(exp.shape)
    if array.size != math.prod(shape) or any(d < 0 for d in shape):
        raise IllTyped(f"an array of shape {list(array.shape)} becomes one of {list(shape)}{evaluator.where()}")
    return [array.reshape(shape)]


@evaluates(Transpose)
def transpose(evaluator: Evaluator, stm: Stm, exp: Transpose) -> Sequence[Value]:
    return [evaluator.array(exp.array).transpose(exp.perm)]


@evaluates(Broadcast)
def broadcast_to(evaluator: Evaluator, stm: Stm, exp: Broadcast) -> Sequence[Value]:
    return [broadcast(evaluator.readable(exp.array), evaluator.shape(exp.shape), exp.axes)]


@evaluates(Concat)
def concat(evaluator: Evaluator, stm: Stm, exp: Concat) -> Sequence[Value]:
    return [np.concatenate([evaluator.array(a) for a in exp.arrays], exp.axis)]


@evaluates(Copy)
def copy(evaluator: Evaluator, stm: Stm, exp: Copy) -> Sequence[Value]:
    return [evaluator.array(exp.array).copy()]
