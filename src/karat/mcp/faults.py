"""Turns an exception of the SDK and the related evidence into one InfrastructureFault with a
helpful message.

kind                  retriable
mcp_server_start      if it ran   the process could not be started, or ended before the handshake
mcp_init_timeout      yes         no handshake within `init_timeout_seconds`
mcp_handshake         no          the server does not speak MCP, or answers with an error
mcp_protocol          no          it speaks another version than `protocol` pins, or karat knows
mcp_unreachable       yes         connection refused, no such host, TLS
mcp_unauthorized      no          HTTP 401, 403, or no token (retriable: a failed login server)
mcp_login             no          no login, or it has expired
mcp_rate_limit        yes         HTTP 429, with Retry-After
mcp_redirect          no          a redirect to another origin, not followed
mcp_http_error        some        any other HTTP status (retriable: 5xx, 2xx without an answer)
mcp_server_down       yes         it ran, and has ended
mcp_call_timeout      yes         no result within `call_timeout_seconds`
mcp_tool_list         no          a list of tools without end
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator

import msgspec

from karat.errors import InfrastructureFault
from karat.mcp.launch import CANNOT_START, EXIT_CANNOT_START
from karat.mcp.results import misfit
from karat.records import McpServer
from karat.redact import Redactor

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


# of errors that are not an MCP server's own: it knows no MCP, its reply was no message, or the SDK
# made it
_NOT_ITS_OWN = (0, -32601, -32600, -32700, -32000, -32001)
_OTHER_VERSION = "Unsupported protocol version from the server: "


def printable(text: str) -> str:
    """Foreign text without escape sequences and control characters, except line breaks and tabs."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


class Tail:
    """The end of a server's stderr, in bounded memory."""

    KEPT_BYTES = 16_384
    SHOWN_CHARACTERS = 2_000
    SHOWN_LINES = 12

    def __init__(self) -> None:
        self._kept = bytearray()
        self._cut = False

    def add(self, data: bytes) -> None:
        self._kept += data
        if len(self._kept) > 2 * self.KEPT_BYTES:
            del self._kept[: -self.KEPT_BYTES]
            self._cut = True

    def text(self, redact: Redactor) -> str:
        """Readable and free of secrets.

        Redacted before it is shortened: half a secret would not be recognised.
        """
        text = self._kept.decode("utf-8", "replace")
        if self._cut:  # text before the first line break may start in the middle of a secret
            text = text.partition("\n")[2]
        whole = redact(printable(redact(text))).splitlines()
        lines = [line.rstrip() for line in whole if line.strip()]
        return "\n".join(lines[-self.SHOWN_LINES :])[-self.SHOWN_CHARACTERS :]


class Evidence(msgspec.Struct, kw_only=True):
    """Collected by a link while it is up; read once it is down."""

    stderr: Tail = msgspec.field(default_factory=Tail)
    # None: still running, not a process, or ended by us; negative: killed by that signal
    exit_code: int | None = None
    not_mcp: str | None = None  # the first line on stdout that is not a message
    # the last HTTP status of 400 and above, or a redirect that was not followed
    status: int | None = None
    instead: str = ""  # with a status below 300: the type of what came instead of a message
    lost: str | InfrastructureFault | None = None  # since then, why a request got no response
    location: str | None = None  # the target of that redirect
    retry_after: float | None = None  # seconds given with the status


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The exceptions inside nested groups; a single one is its own leaf."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    else:
        yield error


def fault_of(
    server: McpServer,
    error: BaseException | None,
    evidence: Evidence,
    *,
    ready: bool,
    redact: Redactor,
) -> InfrastructureFault:
    """Why a session could not be opened, or (`ready`) why it ended.

    `error`: the exception that ended the session's owner; None if it did not finish its handshake
    in time.
    """
    if error:
        known = next(
            (leaf for leaf in leaves(error) if isinstance(leaf, InfrastructureFault)), None
        )
    else:
        known = None

    if isinstance(evidence.lost, InfrastructureFault):
        known = known or evidence.lost
    if known is not None:
        return known
    kind, message, retriable = (
        _from_process(server, evidence, ready, redact)
        or _from_status(server, evidence, ready)
        or _from_error(server, error, evidence, ready)
    )
    about = f"MCP server '{server.name}'"
    if server.type != "stdio":
        about += f" ({printable(server.url)})"
    text = redact(f"{about} {message}")
    last_words = evidence.stderr.text(redact)
    if last_words and CANNOT_START not in last_words:
        text += f"; its stderr ends:\n{last_words}"
    retry_after = (
        evidence.retry_after if retriable and kind in ("mcp_rate_limit", "mcp_http_error") else None
    )
    return InfrastructureFault(kind, text, retriable=retriable, retry_after=retry_after)


def call_timeout(server: McpServer, label: str, evidence: Evidence) -> InfrastructureFault:
    """A request that was not answered in time. `label`: such as "tool 'search'"."""
    seconds = f"{server.call_timeout_seconds:g} s (call_timeout_seconds){_not_mcp(evidence)}"
    message = f"MCP server '{server.name}': {label} gave no result within {seconds}"
    return InfrastructureFault("mcp_call_timeout", message, retriable=True)


_Found = tuple[str, str, bool]


def _from_process(
    server: McpServer, evidence: Evidence, ready: bool, redact: Redactor
) -> _Found | None:
    code = evidence.exit_code
    if code is None:
        return None
    words = evidence.stderr.text(redact)
    if code == EXIT_CANNOT_START and CANNOT_START in words and not ready:
        reason = words.partition(CANNOT_START)[2].partition("\n")[0]
        return "mcp_server_start", f"cannot be started: {reason}", False

    if code >= 0:
        ended = f"ended with exit code {code}"
    else:
        ended = f"was killed by signal {-code}"

    if ready:
        return "mcp_server_down", f"{ended} while in use{_not_mcp(evidence, 'earlier ')}", True
    return (
        "mcp_server_start",
        f"{ended} before the handshake{_not_mcp(evidence)}{_program(server, words)}",
        True,
    )


def _program(server: McpServer, words: str) -> str:
    """The interpreter of a server that lacks a package: often not the one the user intended."""
    command = server.command or ""
    if "ImportError" not in words and "No module named" not in words:
        return ""
    if command in ("python", "python3"):
        return (
            f"; `{command}` is karat's own interpreter, {sys.executable}: if the server's "
            f"packages are in another environment, give the full path of its python as `command`"
        )

    path = shutil.which(command)
    if path not in (None, command):
        return f"; `{command}` is {path}"
    return ""


def _from_status(server: McpServer, evidence: Evidence, ready: bool) -> _Found | None:
    status = evidence.status
    if isinstance(evidence.lost, str) and ready:
        return "mcp_server_down", f"broke off while in use: {printable(evidence.lost)}", True
    if status is None:
        return None
    if status in (401, 403):
        key = "headers" if server.auth is None else "auth"
        return (
            "mcp_unauthorized",
            f"answered with HTTP {status}: check its {key} in the experiment file",
            False,
        )

    if status == 429:
        return "mcp_rate_limit", "answered with HTTP 429: too many requests", True
    if evidence.location is not None and status < 400:
        message = (
            f"redirects to {evidence.location}, which is not followed: give that as its url if it "
            f"is meant"
        )
        return "mcp_redirect", message, False

    if status < 300:
        came = printable(evidence.instead) or "nothing"
        return (
            "mcp_http_error",
            f"answered with HTTP {status} and {came}, which is no message of MCP",
            True,
        )

    hint = ": is the path right?" if status in (404, 405) else ""
    return "mcp_http_error", f"answered with HTTP {status}{hint}", status >= 500


def _from_error(
    server: McpServer, error: BaseException | None, evidence: Evidence, ready: bool
) -> _Found:
    import httpx2

    if error is None:
        if ready:
            return "mcp_server_down", "closed the connection while in use", True
        hint = _not_mcp(evidence) or "; raise it if the server needs longer to start"
        message = (
            f"did not finish its handshake within {server.init_timeout_seconds:g} s "
            f"(init_timeout_seconds){hint}"
        )
        return "mcp_init_timeout", message, True

    first = next(leaves(error))
    reason = printable(misfit(first)) or type(first).__name__
    if ready:
        return "mcp_server_down", f"broke off while in use: {reason}{_not_mcp(evidence)}", True
    if isinstance(first, (httpx2.InvalidURL, httpx2.UnsupportedProtocol)):
        return "mcp_unreachable", f"has no usable url: {reason}", False
    bad_header = isinstance(first, UnicodeEncodeError) or (
        isinstance(first, httpx2.LocalProtocolError) and "Illegal header" in reason
    )
    if bad_header and server.type != "stdio":
        return "mcp_unreachable", f"has headers that cannot be sent: {reason}", False
    if isinstance(first, (httpx2.TransportError, OSError)) and server.type != "stdio":
        return "mcp_unreachable", f"cannot be reached: {reason}", True
    if isinstance(first, OSError):
        return "mcp_server_start", f"cannot be started: {reason}", False
    version = reason.removeprefix(_OTHER_VERSION)
    if version != reason:
        return "mcp_protocol", f"speaks protocol {version}, which karat does not", False
    code = getattr(getattr(first, "error", None), "code", 0)
    if code not in _NOT_ITS_OWN and evidence.not_mcp is None:
        return "mcp_handshake", f"answered with an error: {reason}", False
    return "mcp_handshake", f"does not speak MCP: {reason}{_not_mcp(evidence)}", False


def _not_mcp(evidence: Evidence, when: str = "") -> str:
    if evidence.not_mcp is None:
        return ""
    line = printable(evidence.not_mcp)
    return f"; {when}it wrote to stdout, which is for messages only: {line!r}"
