"""Access control: checks every request before any page is made.

The viewer's pages show prompts, answers and notes. But any other page in the same browser, and
any other user's program on this machine, can send requests to a local port. So a request needs
the right host, a cookie that only the first link gives out, and for writes a second secret that
only our pages know.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

MOST_QUERY = 2_000
MOST_PATH = 1_000
MOST_BODY = 64 * 2**10
"""Bytes. A label is a few numbers and a note."""

POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "font-src 'none'",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ]
)
"""Scripts only from our own files, no `eval`, nothing from elsewhere, and no framing of our
pages.
"""

_HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Door:
    """An ASGI application that wraps another and admits only authorised requests.

    `token` makes the first link work, once; the browser that opened it then has the cookie. `csrf`
    is in every page, and a write must send it back in a header.
    """

    def __init__(
        self,
        app: App,
        *,
        hosts: Iterable[str],
        port: int,
        any_address: bool = False,
    ) -> None:
        """`hosts`: host names that requests may use; `any_address`: also any IP address."""
        self._app, self._port, self._any_address = app, port, any_address
        self._hosts = {host.lower() for host in hosts}
        self._token: str | None = secrets.token_urlsafe(32)
        self._session = secrets.token_urlsafe(32)
        self.csrf = secrets.token_urlsafe(32)
        self.cookie = f"karat_{port}"

    @property
    def token(self) -> str:
        """The token in the first link. Empty once it has been used."""
        return self._token or ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        refusal = self._refused(scope)
        if refusal is None:
            location = self._exchanged(scope)
            if location is not None:
                _authenticate(scope)
                cookie = f"{self.cookie}={self._session}; HttpOnly; SameSite=Strict; Path=/"
                headers = [(b"location", location.encode()), (b"set-cookie", cookie.encode())]
                await _answer(send, 303, "", headers)
                return

            refusal = self._unknown(scope)

        if refusal is not None:
            await _answer(send, *refusal)
            return

        scope["karat.csrf"] = self.csrf

        # Cuts off a body of unknown length when it becomes too long: the parser then refuses it
        got = 0

        async def receiving() -> Message:
            nonlocal got
            message = await receive()
            got += len(message.get("body", b""))
            if got > MOST_BODY:
                return {"type": "http.disconnect"}
            return message

        await self._app(scope, receiving, _guarded(send))

    def _refused(self, scope: Scope) -> tuple[int, str] | None:
        """What is wrong with a request, regardless of its sender; None if nothing is."""
        if (
            len(scope.get("query_string", b"")) > MOST_QUERY
            or len(scope.get("raw_path") or b"") > MOST_PATH
        ):
            return 414, "The address is too long."

        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "Only GET, HEAD and POST are allowed."
        hosts = _header(scope, b"host")
        if len(hosts) != 1 or not self._is_ours(hosts[0]):
            return (
                421,
                "This server has another host name. Open the address that `karat view` printed.",
            )

        origins = _header(scope, b"origin")
        if any(origin != f"http://{hosts[0]}" for origin in origins):
            return 403, "Other sites may not send requests to this server."
        if scope["method"] == "POST" and not origins:
            return 403, "A write needs an Origin header."
        sites = _header(scope, b"sec-fetch-site")
        if scope["method"] == "POST" and any(site != "same-origin" for site in sites):
            return 403, "Other sites may not write here."
        length = _header(scope, b"content-length")
        if length and (
            not length[0].isdecimal() or len(length[0]) > 12 or int(length[0]) > MOST_BODY
        ):
            return 413, "The request is too large."

        return None

    def _is_ours(self, host: str) -> bool:
        name, _, port = host.rpartition(":")
        if not name or not (port.isascii() and port.isdigit()):
            name, port = host, "80"
        if port != str(self._port):
            return False
        if name.lower() in self._hosts:
            return True
        try:
            ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
        except ValueError:
            return False

        # Unlike names, IP addresses cannot be redirected (DNS rebinding).
        return self._any_address

    def _exchanged(self, scope: Scope) -> str | None:
        """Where to redirect to if the request has the token, which is then invalidated."""
        if scope["method"] != "GET" or self._token is None:
            return None
        query = parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
        given = next((value for name, value in query if name == "token"), None)
        if given is None or not hmac.compare_digest(given.encode(), self._token.encode()):
            return None
        self._token = None
        parameters = urlencode([(name, value) for name, value in query if name != "token"])
        path = "/" + quote(scope["path"].lstrip("/\\"))  # `//host` would redirect to another site
        if parameters:
            return f"{path}?{parameters}"
        return path

    def _unknown(self, scope: Scope) -> tuple[int, str] | None:
        """Why the sender is not admitted; None if the cookie and, for writes, the header are
        right.
        """
        cookies = []
        for header in _header(scope, b"cookie"):
            for name, _, value in (pair.partition("=") for pair in header.split(";")):
                if name.strip() == self.cookie:
                    cookies.append(value.strip())

        if not any(
            hmac.compare_digest(value.encode(), self._session.encode()) for value in cookies
        ):
            return 403, (
                "This browser has no access. Open the address that `karat view` printed; it works "
                "once. If it has been used already, start `karat view` again."
            )

        _authenticate(scope)
        if scope["method"] == "POST":
            given = _header(scope, b"x-karat-csrf")
            if len(given) != 1 or not hmac.compare_digest(given[0].encode(), self.csrf.encode()):
                return (
                    403,
                    "The page is from an earlier `karat view`, or not one of ours. Reload it.",
                )

        return None


def hosts_of(host: str) -> set[str]:
    """The host names a browser may use for a server that listens at an address."""
    if is_loopback(host):
        return {"127.0.0.1", "localhost", "[::1]"}
    if host in ("0.0.0.0", "::", ""):  # noqa: S104 - recognised, not listened at
        names = {socket.gethostname(), socket.getfqdn()}
    else:
        names = {host, f"[{host}]"}

    return {"127.0.0.1", "localhost", "[::1]", *names}


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _header(scope: Scope, wanted: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"] if name == wanted]


def _authenticate(scope: Scope) -> None:
    """Exempts the connection from the limits for senders without token or cookie."""
    authenticate = scope.get("state", {}).get("authenticate")
    if authenticate is not None:
        authenticate()


def _guarded(send: Send) -> Send:
    """Adds the headers of every response."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = {name for name, _ in _HEADERS}
            kept = []
            for pair in message.get("headers", []):
                if pair[0].lower() not in own:
                    kept.append(pair)

            if not any(name.lower() == b"cache-control" for name, _ in kept):
                kept.append((b"cache-control", b"no-store"))
            message = {**message, "headers": [*kept, *_HEADERS]}

        await send(message)

    return sending


async def _answer(
    send: Send,
    status: int,
    text: str,
    headers: Iterable[tuple[bytes, bytes]] = (),
) -> None:
    body = text.encode()
    basic = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
    ]
    sending = _guarded(send)
    await sending({"type": "http.response.start", "status": status, "headers": [*basic, *headers]})
    await sending({"type": "http.response.body", "body": body})
