"""The tokens of a login, in a file of the user's state folder that no one else can read.

Never in a run folder.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import secrets
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from pathlib import Path

import msgspec

from karat.errors import BadOption
from karat.files import LARGEST_TEXT, open_regular
from karat.records import JsonObject, McpServer

FORMAT_VERSION = 1
"""1: 2026-11, the first."""


class SavedLogin(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The result of a login, and the data to renew it."""

    format: int = FORMAT_VERSION
    url: str = ""  # of the MCP server
    access_token: str | None = None
    refresh_token: str | None = None
    scope: str | None = None
    needed: tuple[str, ...] = ()  # the scopes that a run needed: the next login asks for them
    expires_at: float | None = None  # seconds since 1970; None: not known
    client: JsonObject | None = None  # as registered
    metadata: JsonObject | None = None  # of the authorization server
    resource: JsonObject | None = None  # of the MCP server


class TokenFile:
    """`$XDG_STATE_HOME/karat/tokens/DIGEST.json`: one per server address, client and scopes."""

    def __init__(self, server: McpServer) -> None:
        assert server.auth is not None
        auth = server.auth
        key = msgspec.json.encode([server.url, auth.issuer, auth.client_id, sorted(auth.scopes)])
        given = os.environ.get("XDG_STATE_HOME", "")
        if os.path.isabs(given):
            base = Path(given)
        else:
            base = Path.home() / ".local" / "state"

        self._url = server.url
        self._folder = base / "karat" / "tokens"
        self.path = self._folder / f"{sha256(key).hexdigest()[:32]}.json"

    def read(self) -> SavedLogin:
        """Empty if there is no login.

        Raises BadOption for a file that others can read, or that is damaged.
        """
        try:
            with open_regular(self.path) as file:
                mode = os.fstat(file.fileno())
                if mode.st_uid != os.geteuid() or stat.S_IMODE(mode.st_mode) & 0o077:
                    raise BadOption(
                        "auth", f"{self.path} can be read by others; remove it and log in again"
                    )

                saved = msgspec.json.decode(file.read(LARGEST_TEXT), type=SavedLogin)
        except FileNotFoundError:
            return SavedLogin()
        except (OSError, msgspec.DecodeError) as error:
            raise BadOption(
                "auth", f"{self.path} cannot be read ({error}); remove it and log in again"
            ) from error

        if saved.url == self._url:
            return saved
        return SavedLogin()

    def write(self, saved: SavedLogin) -> None:
        """Replaces the file at once. Raises BadOption."""
        temporary = self.path.with_name(f".{secrets.token_hex(8)}")
        try:
            self._make_folder()
            file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(file, "wb") as stream:
                stream.write(msgspec.json.encode(msgspec.structs.replace(saved, url=self._url)))
                stream.flush()
                os.fsync(stream.fileno())

            temporary.replace(self.path)
        except OSError as error:
            with suppress(OSError):
                temporary.unlink()
            raise BadOption("auth", f"{self.path} cannot be written: {error.strerror}") from error

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        """Keeps other processes from renewing the login: its refresh token may be good for one use
        only.
        """
        self._make_folder()
        file = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            await asyncio.to_thread(fcntl.flock, file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)

    def _make_folder(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._folder.stat().st_uid != os.geteuid():
            raise BadOption("auth", f"{self._folder} belongs to somebody else")
        self._folder.chmod(0o700)
