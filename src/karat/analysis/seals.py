"""The user's own seal: what karat left for itself in a folder is known again, and what anybody else put there is not.

The key is 32 random bytes in `$XDG_STATE_HOME/karat/seal.key`, or in `~/.local/state/karat/`, readable by the user
alone and made when something is first sealed. Who deletes it loses nothing but time.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

__all__ = ["is_sealed", "seal"]

_LENGTH = 32


def seal(data: bytes) -> str | None:
    """64 hex digits that only this user's key gives; None where no key can be kept."""
    key = _key() or _made()
    return None if key is None else hmac.new(key, data, hashlib.sha256).hexdigest()


def is_sealed(data: bytes, told: str) -> bool:
    """Whether exactly these bytes were sealed with this user's key."""
    key = _key()
    found = hmac.new(key, data, hashlib.sha256).hexdigest() if key is not None else ""
    return bool(found) and hmac.compare_digest(found.encode(), told.encode("utf-8", "replace"))


def _place() -> Path | None:
    told = os.environ.get("XDG_STATE_HOME", "")
    try:
        base = Path(told) if os.path.isabs(told) else Path.home() / ".local" / "state"
    except RuntimeError:  # a user without a home
        return None
    return base / "karat" / "seal.key" if base.is_absolute() else None


def _is_ours() -> bool:
    """Whether the folder in which the key is to be made is this user's: not under `sudo`, and no home that is none."""
    told = os.environ.get("XDG_STATE_HOME", "")
    folder = Path(told) if os.path.isabs(told) else Path.home()
    if os.path.isabs(told) and not folder.exists():
        folder = folder.parent  # it is made when it is first needed
    return folder.is_dir() and folder.stat().st_uid == os.geteuid()


def _key() -> bytes | None:
    """None where there is none, or one that others could read or have put there."""
    place = _place()
    if place is None:
        return None
    try:
        fd = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        told = os.fstat(fd)
        own = stat.S_ISREG(told.st_mode) and told.st_uid == os.geteuid() and not told.st_mode & 0o077
        key = os.read(fd, _LENGTH + 1) if own else b""
    except OSError:
        return None
    finally:
        os.close(fd)
    return key if len(key) == _LENGTH else None


def _is_spoilt(place: Path) -> bool:
    """Whether there is a key of this user that is none: a disk was full, or others could read it."""
    try:
        told = place.lstat()
    except FileNotFoundError:
        return False
    own = stat.S_ISREG(told.st_mode) and told.st_uid == os.geteuid()
    return own and (told.st_size != _LENGTH or bool(told.st_mode & 0o077))


def _made() -> bytes | None:
    """A new key, or the one that another process has just made."""
    place = _place()
    if place is None:
        return None
    part = place.with_name(f".{place.name}.{secrets.token_hex(8)}")
    with suppress(OSError):
        if not _is_ours():
            return None
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_spoilt(place):
            place.unlink()
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, secrets.token_bytes(_LENGTH))
            os.link(part, place)  # unlike a rename it leaves alone what is there
        finally:
            os.close(fd)
            part.unlink()
    return _key()
