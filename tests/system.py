"""What the tests have to know of the system they run on."""

from pathlib import Path

import pytest


def lends_any_memory() -> bool:
    """Whether more memory is lent than there is, and whoever uses it is ended."""
    setting = Path("/proc/sys/vm/overcommit_memory")
    return setting.exists() and setting.read_text().strip() == "1"


refuses_memory = pytest.mark.skipif(lends_any_memory(), reason="no size is too large for this system until it is used")
