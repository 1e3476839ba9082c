"""What docs/design says of the code is what the code says: the picture of the layers, the tables of passes and functions."""

import subprocess
import sys
from pathlib import Path

import pytest

import tapeless

ROOT = Path(__file__).parents[2]
SOURCE = str(Path(tapeless.__file__).parents[1])


@pytest.mark.thorough
@pytest.mark.parametrize("script", ["draw-layers", "list-passes", "list-functions"])
def test_is_up_to_date(script, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", SOURCE)
    command = [sys.executable, str(ROOT / "scripts" / script), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
