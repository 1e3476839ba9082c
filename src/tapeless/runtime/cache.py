"""The disk cache: compiled code by content.

`fetch` and `store` take a key (a hash of everything that decides the code); a value is kept in the layout of
`runtime.kept`. Writes are atomic; an entry that cannot be read, or belongs to another format or machine, counts as
absent, and all of them do where others could write (`runtime.private`). The oldest entries go when it grows too big.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tapeless.errors import CacheNotUsed, warn_caller
from tapeless.runtime import private
from tapeless.runtime.kept import CODEC
from tapeless.runtime.plain import Unplain

FORMAT = b"tapeless-cache-2\n"
LIMIT = 512 * 2**20  # bytes kept
KILLED = 3600.0  # seconds after which nobody is writing a file any more
TRIMMED = 3600.0  # seconds for which a trimmed cache counts as small enough
STAMP = "trimmed"  # a file whose time says when that was
CODE, TRACE = "bin", "trace"  # what is kept, as the endings of file names
_writes = 0
_warned = False


def directory() -> Path:
    """TAPELESS_CACHE_DIR, or the user's cache folder."""
    given = os.environ.get("TAPELESS_CACHE_DIR")
    if given:
        return Path(given).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache").absolute() / "tapeless"
    except RuntimeError as problem:
        raise FileNotFoundError(f"{problem}: set TAPELESS_CACHE_DIR") from None


# -- keys


def key_of(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode(errors="surrogatepass"))
        digest.update(b"\0")
    return digest.hexdigest()


@functools.cache
def build() -> str:
    """Tells one state of the compiler from another: names, sizes and times of its own files."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return key_of(*sorted(_files(root, "", set())))


def _files(folder: str, inside: str, seen: set[tuple[int, int]]) -> Iterator[str]:
    """Of folders that links lead to as well, each once. What cannot be looked at, Python cannot import either."""
    try:
        here = os.stat(folder)
        if (here.st_dev, here.st_ino) in seen:
            return
        seen.add((here.st_dev, here.st_ino))
        with os.scandir(folder) as listed:
            found = sorted(listed, key=lambda entry: entry.name)
    except OSError:
        yield f"{inside}: closed"
        return
    for entry in found:
        with contextlib.suppress(OSError):  # a link that leads nowhere, as editors leave them
            if entry.is_dir():
                if entry.name == "__pycache__":
                    continue
                yield from _files(entry.path, f"{inside}{entry.name}/", seen)
            elif entry.name.endswith(".py"):
                info = entry.stat()
                yield f"{inside}{entry.name}:{info.st_size}:{info.st_mtime_ns}"


# -- entries


def _trusted(key: str) -> bool:
    """Says why not, once."""
    global _warned
    found = private.distrust(str(directory()), key[:2])
    if found is not None and not _warned:
        _warned = True
        warn_caller(
            CacheNotUsed(f"[{CacheNotUsed.code}] compiled code is not kept, and every process compiles anew: {found}.")
        )
    return found is None


def _place(key: str, kind: str) -> tuple[str, str]:
    """The folder and the path of an entry."""
    folder = os.path.join(directory(), key[:2])
    return folder, os.path.join(folder, f"{key[2:]}.{kind}")


def _digest(key: str, kind: str, payload: bytes) -> bytes:
    """An entry under the name of another one is damaged too."""
    return hashlib.sha256(f"{key}.{kind}\n".encode() + payload).digest()


def fetch(key: str, kind: str = CODE) -> Any | None:
    try:
        _, path = _place(key, kind)
        data = private.read(path, LIMIT) if _trusted(key) else None
    except OSError:
        return None
    start = len(FORMAT) + hashlib.sha256().digest_size
    if data is None or not data.startswith(FORMAT) or data[len(FORMAT) : start] != _digest(key, kind, data[start:]):
        return None
    try:
        return CODEC.decode(data[start:])
    except Unplain:
        return None


def store(key: str, value: Any, kind: str = CODE) -> None:
    """Best effort: a full or read-only disk is no reason to fail, nor is a value that cannot be kept."""
    global _writes
    try:
        if not _trusted(key):
            return
        payload = CODEC.encode(value)
        folder, path = _place(key, kind)
        private.make(folder)
        if not _trusted(key):  # somebody else was faster to make it
            return
        private.write(path, FORMAT + _digest(key, kind, payload) + payload)
    except (OSError, Unplain):
        return
    _writes += 1
    if _writes % 64 == 0 or (_writes == 1 and _is_trim_due()):
        trim()


class Entry(NamedTuple):
    path: str
    size: int
    used: float  # when

    @property
    def is_whole(self) -> bool:
        return self.path.endswith((f".{CODE}", f".{TRACE}"))

    @property
    def is_leftover(self) -> bool:
        return os.path.basename(self.path).startswith(private.TEMPORARY)


def entries() -> list[Entry]:
    """The oldest first."""
    return [e for e in _files_kept() if e.is_whole]


def leftovers() -> list[Entry]:
    """Files of writers that were killed, or that are being written now."""
    return [e for e in _files_kept() if e.is_leftover]


def distrust() -> private.Distrust | None:
    """Why the cache is not used, or some of it."""
    try:
        root = str(directory())
        reasons = (private.distrust(root, name) for name in ("", *_folders(root)))
        return next(filter(None, reasons), None)
    except OSError as problem:
        return private.Distrust(str(problem))


def _folders(root: str) -> list[str]:
    with contextlib.suppress(OSError), os.scandir(root) as found:
        return [entry.name for entry in found if len(entry.name) == 2 and (entry.is_dir() or entry.is_symlink())]
    return []


def _files_kept() -> list[Entry]:
    """Plain files in folders that can be trusted: where others may write, what is removed may be something else."""
    found: list[Entry] = []
    with contextlib.suppress(OSError):
        root = str(directory())
        for name in [] if private.distrust(root) else _folders(root):
            if private.distrust(root, name) is None:
                found += _listed(os.path.join(root, name))
    return sorted(found, key=lambda e: e.used)


def _listed(folder: str) -> Iterator[Entry]:
    with contextlib.suppress(OSError), os.scandir(folder) as found:
        for entry in found:
            with contextlib.suppress(OSError):
                info = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(info.st_mode):
                    yield Entry(entry.path, info.st_size, info.st_mtime)


def _is_trim_due() -> bool:
    """Has no process done it of late? A large cache takes a while to go through."""
    with contextlib.suppress(OSError):
        return not 0.0 <= time.time() - os.stat(directory() / STAMP).st_mtime < TRIMMED
    return True


def trim(limit: int = LIMIT) -> None:
    now = time.time()
    found = _files_kept()
    killed = [e for e in found if e.is_leftover and now - e.used > KILLED]
    total = sum(e.size for e in found if e.is_whole or e.is_leftover) - _remove(killed)
    for entry in (e for e in found if e.is_whole):
        if total <= limit:
            break
        if now - entry.used < 60:  # another process may be about to read it
            continue
        total -= _remove([entry])
    with contextlib.suppress(OSError):
        private.write(str(directory() / STAMP), b"")


def clear() -> int:
    """The number of entries that are gone; leftovers go with them."""
    _remove(leftovers())
    return sum(_remove([entry]) > 0 for entry in entries())


def _remove(found: list[Entry]) -> int:
    """The bytes that are free then."""
    freed = 0
    for entry in found:
        with contextlib.suppress(OSError):
            os.unlink(entry.path)
            freed += entry.size
    return freed
