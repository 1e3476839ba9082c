"""As in the tests of gradients, LLVM's optimiser is left out unless a test takes the fixture `optimized`."""

from tests.gradients.conftest import _without_llvm_passes, optimized  # noqa: F401
