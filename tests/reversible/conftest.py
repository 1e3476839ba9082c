"""As in the tests of gradients, LLVM's optimiser is left out of generated programs."""

from tests.gradients.conftest import _without_llvm_passes, optimized  # noqa: F401
