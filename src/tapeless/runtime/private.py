"""Folders and files that nobody else can write: the disk cache holds machine code, so it may be nowhere else.

`distrust` takes a folder and gives the reason why others could put something there, or None. `make` makes folders,
`read` and `write` are for files in a folder that can be trusted. All of them raise OSError as the system does.

Note [Who could write there]
Whoever may write to a folder can replace what is in it, so all folders on the way count, from the root on, and so do
links. Each must belong to the user or to root, and others must not write to it, unless it is sticky as /tmp is: there
only the owner replaces his own. A group whose only member is the user is no other. The folder itself belongs to the
user and has no such exceptions. What does not exist is made by us, for us alone, whatever the umask is.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from dataclasses import dataclass

LINKS = 40  # on one way, as many as the system follows
OTHERS = stat.S_IWGRP | stat.S_IWOTH
TEMPORARY = ".tmp"  # files that are being written begin so
OPENED = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True)
class Distrust:
    reason: str
    advice: str = "set TAPELESS_CACHE_DIR to a folder of your own"

    def __str__(self) -> str:
        return f"{self.reason}; {self.advice}"


def distrust(folder: str, inside: str = "") -> Distrust | None:
    """Of an absolute path, and of a folder right inside it. Note [Who could write there]."""
    if not hasattr(os, "geteuid"):
        return Distrust("this system does not tell who may write to a folder")
    found = _on_the_way(folder)
    if found is not None or not inside:
        return found
    path = os.path.join(folder, inside)
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        return None
    return Distrust(f"'{path}' is a link") if stat.S_ISLNK(info.st_mode) else _folder(path, info, last=True)


def _on_the_way(folder: str) -> Distrust | None:
    here, parts, links = os.path.sep, folder.split(os.path.sep)[::-1], 0
    found = _folder(here, os.lstat(here), last=False)
    while found is None and parts:
        part = parts.pop()
        if part in ("", os.path.curdir):
            continue
        if part == os.path.pardir:
            here = os.path.dirname(here)
            continue
        path = os.path.join(here, part)
        try:
            info = os.lstat(path)
        except FileNotFoundError:
            return None
        if stat.S_ISLNK(info.st_mode):
            links += 1
            if links > LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), folder)
            target = os.readlink(path)
            here = os.path.sep if os.path.isabs(target) else here
            parts += target.split(os.path.sep)[::-1]
            found = None if info.st_uid in (os.geteuid(), 0) else _foreign(path, info)
        else:
            here, found = path, _folder(path, info, last=not any(p not in ("", os.path.curdir) for p in parts))
    return found


def _folder(path: str, info: os.stat_result, last: bool) -> Distrust | None:
    user = os.geteuid()
    if not stat.S_ISDIR(info.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    if info.st_uid != user and (last or info.st_uid != 0):
        return _foreign(path, info)
    open_to = info.st_mode & OTHERS
    if not last and (info.st_mode & stat.S_ISVTX or (open_to == stat.S_IWGRP and _alone_in(path, info.st_gid))):
        return None
    if not open_to:
        return None
    reason = f"others may write to '{path}' (mode {stat.S_IMODE(info.st_mode):o})"
    return Distrust(reason, f"run: chmod go-w '{path}'") if info.st_uid == user else Distrust(reason)


def _foreign(path: str, info: os.stat_result) -> Distrust:
    return Distrust(f"'{path}' belongs to another user ({_user_name(info.st_uid)})")


def _user_name(number: int) -> str:
    import pwd  # not on every system

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _alone_in(path: str, group: int) -> bool:
    """Whether a group is the user's private one, as many systems make it for each, and the mode says it all."""
    import grp  # only where a group may write: starts faster
    import pwd  # only where a group may write: starts faster

    try:
        user, members = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    if group != user.pw_gid or members.gr_name != user.pw_name or set(members.gr_mem) - {user.pw_name}:
        return False
    with contextlib.suppress(OSError, AttributeError):  # no such list
        os.getxattr(path, "system.posix_acl_access")  # the bits of the group are those of others in it
        return False
    return True


def make(folder: str) -> None:
    """With the folders on the way, as far as they are missing."""
    missing = []
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for path in reversed(missing):
        with contextlib.suppress(FileExistsError):  # another process was faster
            os.mkdir(path, 0o700)
            os.chmod(path, 0o700)  # an umask may have taken more than it should


def read(path: str, most: int) -> bytes | None:
    """The contents, with the time of its last use set to now; None for what is no plain file of ours alone."""
    handle = os.open(path, OPENED)
    with open(handle, "rb") as file:
        info = os.fstat(handle)
        if (
            not stat.S_ISREG(info.st_mode)
            or info.st_uid != os.geteuid()
            or info.st_mode & OTHERS
            or info.st_size > most
        ):
            return None
        with contextlib.suppress(OSError):
            os.utime(handle)
        return file.read(most)


def write(path: str, data: bytes) -> None:
    """As a whole or not at all."""
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=TEMPORARY)
    try:
        with open(handle, "wb") as file:
            os.fchmod(handle, 0o600)
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
