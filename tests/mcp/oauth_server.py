"""An authorization server and a guard, at one address with the scripted MCP server over HTTP.

Run by its path, it forks servers; `guarded("--token-uses", "5")` is one for the length of a block.

Whoever asks to log in is let in. A token is good for so many requests, then it has expired. `GET /log` tells what
happened: each token that was given, each request that was rejected, each that was passed on.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import hashlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode

import httpx2
import jwt
import uvicorn

from karat.testing.mcp_server import scripted

SECRET = "its-own-secret"


@contextmanager
def guarded(*options: str) -> Iterator[str]:
    """The URL of a server in a process of its own; its client is `karat` with SECRET."""
    server = _started(options)
    try:
        yield server["url"]
    finally:
        os.kill(server["pid"], signal.SIGKILL)


def _started(options: tuple[str, ...]) -> dict[str, Any]:
    parent = _parent()
    assert parent.stdin is not None
    assert parent.stdout is not None
    parent.stdin.write(json.dumps(options) + "\n")
    parent.stdin.flush()
    server: dict[str, Any] = json.loads(parent.stdout.readline())
    return server


@cache
def _parent() -> subprocess.Popen[str]:
    """Forks all servers of this process, so that the SDK is imported once. It ends when nobody can write to it."""
    return subprocess.Popen([sys.executable, "-P", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def happened(url: str) -> Counter[str]:
    """What the server has seen so far."""
    return Counter(httpx2.get(url.removesuffix("/mcp") + "/log").json())


_Send = Callable[[dict[str, Any]], Awaitable[None]]


class Guard:
    """The application, for those who have a token."""

    def __init__(
        self,
        app: Any,
        *,
        origin: str,
        token_uses: int = 1_000_000,
        token_seconds: int | None = None,
        public_key: Path | None = None,
        needs: dict[str, str] | None = None,
        grants: str | None = None,
        never: str | None = None,
        secret_methods: list[str] | None = None,
    ) -> None:
        """`token_seconds`: how long a token lives, it says. `public_key`: the client's, PEM.

        `needs`: MCP method → the scope that it needs besides `read`. `grants`: the only scope that is ever granted.
        `never`: the MCP method that no token is good for. `secret_methods`: the only ways to send a secret.
        """
        self._app, self._origin, self._token_uses, self._token_seconds = app, origin, token_uses, token_seconds
        self._public_key = public_key
        self._needs, self._grants, self._never, self._secret_methods = needs or {}, grants, never, secret_methods
        self._scopes: dict[str, str] = {}  # code, token or refresh token → its scope
        self._uses: dict[str, int] = {}  # token → requests that it is still good for
        self._refresh: set[str] = set()  # each good for one use
        self._codes: dict[str, str] = {}  # code → challenge
        self._log: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: _Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path, query = scope["path"], dict(parse_qsl(scope["query_string"].decode()))
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        if path.startswith("/.well-known/oauth-protected-resource"):
            about: dict[str, object] = {"resource": f"{self._origin}/mcp", "authorization_servers": [self._origin]}
            if self._needs:
                about["scopes_supported"] = ["read"]
            await _answer(send, 200, about)
        elif path == "/.well-known/oauth-authorization-server":
            await _answer(send, 200, self._metadata())
        elif path == "/register":
            wanted = json.loads(await _body(receive))
            await _answer(send, 201, {**wanted, "client_id": "registered", "token_endpoint_auth_method": "none"})
        elif path == "/authorize":
            code = secrets.token_hex(8)
            self._codes[code] = query["code_challenge"]
            self._scopes[code] = query.get("scope", "")
            back = urlencode({"code": code, "state": query["state"], "iss": self._origin})
            await _answer(send, 302, {}, location=f"{query['redirect_uri']}?{back}")
        elif path == "/token":
            await self._token(dict(parse_qsl((await _body(receive)).decode())), headers, send)
        elif path == "/log":
            await _answer(send, 200, self._log)
        else:
            await self._guarded(scope, receive, send, headers)

    def _metadata(self) -> dict[str, object]:
        methods = self._secret_methods or ["client_secret_basic", "private_key_jwt", "none"]
        return {
            "issuer": self._origin,
            **{f"{name}_endpoint": f"{self._origin}/{path}" for name, path in _ENDPOINTS.items()},
            **({} if methods == ["absent"] else {"token_endpoint_auth_methods_supported": methods}),
            "code_challenge_methods_supported": ["S256"],
        }

    async def _guarded(self, scope: Any, receive: Any, send: _Send, headers: dict[str, str]) -> None:
        token = headers.get("authorization", "").removeprefix("Bearer ")
        method = headers.get("mcp-method", scope["method"])
        if self._uses.get(token, 0) <= 0 or method == self._never:
            self._log.append("rejected")
            hint = f'Bearer resource_metadata="{self._origin}/.well-known/oauth-protected-resource/mcp"'
            await _answer(send, 401, {"error": "invalid_token"}, **{"www-authenticate": hint})
            return
        wanted = self._needs.get(method)
        if wanted is not None and wanted not in self._scopes[token].split():
            self._log.append("insufficient")
            hint = f'Bearer error="insufficient_scope", scope="read {wanted}"'
            await _answer(send, 403, {"error": "insufficient_scope"}, **{"www-authenticate": hint})
            return
        self._uses[token] -= 1
        self._log.append(f"passed {method}")
        await self._app(scope, receive, send)

    async def _token(self, form: dict[str, str], headers: dict[str, str], send: _Send) -> None:
        grant = form.get("grant_type", "")
        allowed = {
            "client_credentials": lambda: self._is_the_client(form, headers),
            "authorization_code": lambda: self._proved(form),
            "refresh_token": lambda: form.get("refresh_token") in self._refresh,
        }
        if grant not in allowed or not allowed[grant]():
            self._log.append(f"refused {grant}")
            await _answer(send, 401, {"error": "invalid_client", "error_description": "not a client of this server"})
            return
        self._log.append(f"token {grant}")
        self._refresh.discard(form.get("refresh_token", ""))
        token = f"token-{secrets.token_hex(16)}"
        before = form.get("code") or form.get("refresh_token")
        asked = self._scopes.get(before, "") if before else form.get("scope", "")
        self._log += [f"scope {asked}", f"secret by {_secret_method(form, headers)}"]
        self._scopes[token] = self._grants or asked
        self._uses[token] = self._token_uses
        given: dict[str, object] = {"access_token": token, "token_type": "Bearer"}
        if self._grants:
            given["scope"] = self._grants
        if self._token_seconds is not None:
            given["expires_in"] = self._token_seconds
        if grant != "client_credentials":
            given["refresh_token"] = f"refresh-{secrets.token_hex(16)}"
            self._refresh.add(str(given["refresh_token"]))
            self._scopes[str(given["refresh_token"])] = self._scopes[token]
        await _answer(send, 200, given)

    def _is_the_client(self, form: dict[str, str], headers: dict[str, str]) -> bool:
        if (assertion := form.get("client_assertion")) is not None:
            if self._public_key is None:
                return False
            try:
                key = self._public_key.read_text()
                claims = jwt.decode(assertion, key, algorithms=["RS256", "ES256"], audience=self._origin)
            except jwt.PyJWTError:
                return False
            return bool(claims["sub"] == "karat")
        if _secret_method(form, headers) == "client_secret_post":
            return (form.get("client_id"), form["client_secret"]) == ("karat", SECRET)
        given = base64.b64decode(headers.get("authorization", "").removeprefix("Basic ")).decode()
        return unquote(given) == f"karat:{SECRET}"

    def _proved(self, form: dict[str, str]) -> bool:
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        return self._codes.pop(form.get("code", ""), None) == challenge


def _secret_method(form: dict[str, str], headers: dict[str, str]) -> str:
    if headers.get("authorization", "").startswith("Basic "):
        return "client_secret_basic"
    return "client_secret_post" if "client_secret" in form else "none"


_ENDPOINTS = {"authorization": "authorize", "token": "token", "registration": "register"}


async def _body(receive: Any) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    return body


async def _answer(send: _Send, status: int, content: object, **headers: str) -> None:
    raw = [(name.encode(), value.encode()) for name, value in {"content-type": "application/json", **headers}.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": json.dumps(content).encode()})


async def _serve(chosen: argparse.Namespace) -> None:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    origin = f"http://127.0.0.1:{listening.getsockname()[1]}"
    app = Guard(
        scripted().streamable_http_app(),
        origin=origin,
        token_uses=chosen.token_uses,
        token_seconds=chosen.token_seconds,
        public_key=chosen.public_key,
        needs=dict(need.split("=") for need in chosen.needs),
        grants=chosen.grants,
        never=chosen.never,
        secret_methods=chosen.secret_methods,
    )
    sys.stdout.write(json.dumps({"url": f"{origin}/mcp", "pid": os.getpid()}) + "\n")
    sys.stdout.flush()
    await uvicorn.Server(uvicorn.Config(app, log_level="critical")).serve(sockets=[listening])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--token-uses", type=int, default=1_000_000)
    parser.add_argument("--token-seconds", type=int)
    parser.add_argument("--public-key", type=Path)
    parser.add_argument("--needs", nargs="*", default=[])
    parser.add_argument("--grants")
    parser.add_argument("--never")
    parser.add_argument("--secret-methods", nargs="*")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # whoever asked for a server kills it, and nobody waits for it
    scripted().streamable_http_app()  # imports what all servers need
    for line in sys.stdin:
        if os.fork() == 0:
            asyncio.run(_serve(parser.parse_args(json.loads(line))))
            os._exit(0)
