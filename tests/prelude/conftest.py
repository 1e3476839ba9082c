"""The cases of the tests in `cases.py`: those of the tables of the file that has imported them."""

import pytest

from tests.prelude.cases import TABLES


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        table = getattr(metafunc.module, TABLES[metafunc.function.__name__])
        metafunc.parametrize("case", table.values(), ids=table)


@pytest.fixture
def tolerance(request: pytest.FixtureRequest) -> dict[str, float]:
    return getattr(request.module, "TOLERANCE", {})
