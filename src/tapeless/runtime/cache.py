"""The disk cache: compiled code by content.

`fetch` and `store` take a key (a hash of everything that decides the code) and a pickled payload. Writes are atomic; an
entry that cannot be read, or belongs to another format or machine, counts as absent. The oldest entries go when it grows
too big.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pickle
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FORMAT = b"tapeless-cache-1\n"
LIMIT = 512 * 2**20  # bytes kept
_writes = 0


def directory() -> Path:
    """TAPELESS_CACHE_DIR, or the user's cache folder."""
    given = os.environ.get("TAPELESS_CACHE_DIR")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "tapeless"


def key_of(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest()


@functools.cache
def build() -> str:
    """Tells one state of the compiler from another: names, sizes and times of its own files."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return key_of(*sorted(_files(root, "")))


def _files(folder: str, inside: str) -> Iterator[str]:
    with os.scandir(folder) as found:
        for entry in found:
            if entry.is_dir():
                yield from _files(entry.path, f"{inside}{entry.name}/")
            elif entry.name.endswith(".py"):
                stat = entry.stat()
                yield f"{inside}{entry.name}:{stat.st_size}:{stat.st_mtime_ns}"


CODE, TRACE = "bin", "trace"  # what is kept, as the endings of file names


def _path(key: str, kind: str) -> Path:
    return directory() / key[:2] / f"{key[2:]}.{kind}"


def fetch(key: str, kind: str = CODE) -> Any | None:
    path = _path(key, kind)
    try:
        data = path.read_bytes()
        if not data.startswith(FORMAT):
            return None
        digest, payload = data[len(FORMAT) : len(FORMAT) + 32], data[len(FORMAT) + 32 :]
        if hashlib.sha256(payload).digest() != digest:
            return None
        value = pickle.loads(payload)
    except Exception:  # whatever is wrong with an entry, it is rebuilt
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return value


def store(key: str, value: Any, kind: str = CODE) -> None:
    """Best effort: a full or read-only disk is no reason to fail."""
    global _writes
    try:
        payload = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        path = _path(key, kind)
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(FORMAT + hashlib.sha256(payload).digest() + payload)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except (OSError, pickle.PicklingError, AttributeError, TypeError):
        return
    _writes += 1
    if _writes % 64 == 1:
        trim()


def entries() -> list[tuple[Path, int, float]]:
    """Path, bytes and time of last use, oldest first."""
    found = []
    for path in (p for kind in (CODE, TRACE) for p in directory().glob(f"*/*.{kind}")):
        with contextlib.suppress(OSError):
            stat = path.stat()
            found.append((path, stat.st_size, stat.st_mtime))
    return sorted(found, key=lambda e: e[2])


def trim(limit: int = LIMIT) -> None:
    found = entries()
    total = sum(size for _, size, _ in found)
    for path, size, used in found:
        if total <= limit:
            break
        if time.time() - used < 60:  # another process may be about to read it
            continue
        with contextlib.suppress(OSError):
            path.unlink()
            total -= size


def clear() -> int:
    count = 0
    for path, _, _ in entries():
        with contextlib.suppress(OSError):
            path.unlink()
            count += 1
    return count
