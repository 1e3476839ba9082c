"""The garbage collector rests while a program is compiled, and is as it was afterwards."""

import gc

import pytest

import tapeless as tp
from tapeless.runtime.collector import resting


@pytest.mark.parametrize("enabled", [True, False])
def test_it_is_left_as_it_was(enabled: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with resting():
            with resting():
                assert not gc.isenabled()
            assert not gc.isenabled()
        assert gc.isenabled() == enabled
        tp.function(lambda x: x + 1.0, cache=False)(1.0)
        with pytest.raises(tp.CompileError):
            tp.function(lambda x: x.nothing, cache=False)(1.0)
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()
