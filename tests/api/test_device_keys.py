"""What arrays in the memory of a GPU are told apart by, in calls: without a GPU, by objects that say they lie there."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tapeless.api.kinds import fast_key
from tapeless.frontend.entry import ArraySpec
from tapeless.ir.types import DType
from tapeless.runtime.device_arrays import in_a_row, interface_of, is_on_device
from tapeless.runtime.fastcall import fast_call
from tapeless.runtime.native_entry import MISFIT


class There:
    def __init__(self, shape: tuple[int, ...], typestr: str = "<f8", strides: tuple[int, ...] | None = None) -> None:
        self.shape, self.typestr, self.strides = shape, typestr, strides

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "data": (64, False),
            "shape": self.shape,
            "typestr": self.typestr,
            "strides": self.strides,
            "version": 3,
        }


class Elsewhere:
    """As tensors of PyTorch that are not on a GPU, or that have a gradient."""

    def __init__(self, problem: type[Exception]) -> None:
        self.problem = problem

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        raise self.problem("not there")


@pytest.mark.parametrize("problem", [TypeError, RuntimeError, AttributeError])
def test_those_that_are_elsewhere_have_no_short_way(problem: type[Exception]):
    value = Elsewhere(problem)
    assert not is_on_device(value) and interface_of(value) is None and fast_key((value,)) is None


def test_types_and_ranks_decide_and_sizes_do_not():
    key = fast_key((There((3, 4)), 2.0))
    assert key is not None and key == fast_key((There((7, 1)), 1.5))
    others = [(There((3, 4), "<f4"), 2.0), (There((3,)), 2.0), (There((3, 4)), 2), (np.ones((3, 4)), 2.0)]
    assert all(fast_key(args) != key for args in others)


def test_arrays_with_steps_take_the_long_way():
    assert fast_key((There((3, 4), strides=(8, 24)),)) is None


class Tensor(There):
    """As those of PyTorch, of which the number of elements is no attribute."""

    def size(self) -> tuple[int, ...]:
        return self.shape


def test_the_short_way_takes_tensors():
    specs = [ArraySpec(DType.f64, (2, 3), True, -1, True), ArraySpec(DType.f64, (3,), True, -1, True)]

    class Recorder:
        compiled = SimpleNamespace(device=object())

        def __init__(self) -> None:
            self.specs = specs

        def __call__(self, leaves: Any) -> Any:
            return "called", leaves

    caller: Any = Recorder()
    fast = fast_call(caller, False, lambda args: None)
    fits = Tensor((3, 4)), Tensor((4,))
    assert fast(fits) == ("called", fits)
    for misfits in [(Tensor((3, 4)), Tensor((5,))), (Tensor((1, 4)), Tensor((4,)))]:
        assert fast(misfits) is MISFIT


def test_where_an_array_lies():
    value = There((3, 4))
    assert in_a_row(value, value.__cuda_array_interface__) == (value, 64)
    value = There((3, 4), strides=(32, 8))  # in order, but said in full
    assert in_a_row(value, value.__cuda_array_interface__) == (value, 64)
