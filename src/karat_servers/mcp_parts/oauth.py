"""OAuth for MCP servers over HTTP: tokens obtained, renewed and kept by the SDK's own providers.

One `Tokens` per server, shared by all its connections, so an expired token is renewed once. The
server did not execute a request that it rejected for its token, so it is sent again with the new
one.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import nullcontext, suppress
from typing import Never

import anyio
import httpx2
from jwt import PyJWTError
from mcp.client.auth import (
    OAuthClientProvider,
    OAuthFlowError,
    OAuthRegistrationError,
    OAuthTokenError,
    TokenStorage,
)
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.auth.oauth2 import OAuthContext
from mcp.client.auth.utils import extract_field_from_www_auth, extract_scope_from_www_auth
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel, ValidationError

from karat.errors import InfrastructureFault
from karat.mcp.faults import Evidence, printable
from karat.records import JsonObject, McpServer, ServerAuth
from karat.redact import Redactor
from karat.waits import retry_after
from karat_servers.token_file import SavedLogin, TokenFile

__all__ = ["Tokens"]

LOGIN_HINT = "run `karat check --login FILE {server}`"
_SDK = logging.getLogger("mcp.client.auth")  # logs what it also raises, and with it whole replies
_SHOWN = 300  # characters of the SDK's message
_ERROR_CODE = re.compile(r"[a-z]+(?:_[a-z]+){1,4}")  # invalid_client; all that is shown of a reply
_ROUNDS = 4  # of one request: a new token may be rejected too, once others have used it up
_KEPT = 8  # masked tokens per server: the last ones


class Person:
    """A person who can log in: is shown an address, and returns to another in the browser."""

    def __init__(
        self,
        *,
        redirect: str,
        show: Callable[[str], Awaitable[None]],
        wait: Callable[[], Awaitable[AuthorizationCodeResult]],
    ) -> None:
        self.redirect = redirect
        self.show = show
        self.wait = wait


class Tokens(TokenStorage):
    """The tokens of one server. Those of `type: login` are in a file; others are only in memory."""

    def __init__(
        self, server: McpServer, *, redact: Redactor, person: Person | None = None
    ) -> None:
        """`person`: logs in now; None: no person is there, so a missing or expired login is a
        fault.
        """
        assert server.auth is not None
        _SDK.addHandler(logging.NullHandler())
        _SDK.propagate = False
        self._server = server
        self._auth = server.auth
        self._redact = redact
        self._person = person
        self._file = TokenFile(server) if server.auth.type == "login" else None
        if person is not None or self._file is None:
            self._saved = SavedLogin()
        else:
            self._saved = self._file.read()

        self._wanted = server.auth.scopes or (
            self._file.read().needed if self._file is not None else ()
        )
        self._seen: list[str] = []
        self._mask()
        self._provider = self._made()
        self._provider.context = context = _Context(**vars(self._provider.context))
        context.auth = server.auth
        self._lock = asyncio.Lock()

    def authentication(self, evidence: Evidence) -> TokenAuth:
        """Sends the requests of one connection with the token."""
        return TokenAuth(self, evidence)

    def usable(self) -> str | None:
        """The token, if it has not expired."""
        saved = self._saved
        return (
            saved.access_token
            if saved.expires_at is None or time.time() < saved.expires_at
            else None
        )

    async def renewed(
        self, request: httpx2.Request, rejected: str | None, needed: tuple[str, ...] | None
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Sends the requests for another token than the rejected one. Raises InfrastructureFault.

        `needed`: the scopes that the request needs, if they were the reason; a refreshed token
        would lack them, too.
        """
        async with self._lock, self._file.locked() if self._file is not None else nullcontext():
            if self._file is not None and self._person is None:
                self._saved = self._file.read()  # another process may have renewed it
                self._mask()

            if self.usable() not in (None, rejected):
                return
            if needed is not None:
                self._widen(needed)
            if self._file is not None and self._person is None and self._saved.access_token is None:
                raise self._no_login()  # before the server registers a client in vain
            request.headers.pop("Authorization", None)
            # The provider knows the same tokens as we do, also if another process renewed them;
            # the present one counts as expired
            context = self._provider.context
            saved = self._saved
            if needed is None:
                context.current_tokens = _token(saved)
            else:
                context.current_tokens = None
            context.token_expiry_time = 1.0
            if saved.metadata is not None and context.oauth_metadata is None:
                context.oauth_metadata = OAuthMetadata.model_validate(saved.metadata)
            if saved.resource is not None and context.protected_resource_metadata is None:
                context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(
                    saved.resource
                )

            # If a connection breaks, the garbage collector ends the flow, in a task that may not
            # release this.
            context.lock = anyio.Lock()
            flow = self._provider.async_auth_flow(request)
            reply = None  # the authorization server's last
            try:
                outgoing = await anext(flow)
                while outgoing is not request or self.usable() in (None, rejected):
                    response = yield outgoing
                    if outgoing is not request:
                        reply = response
                    elif self._wanted and response.status_code in (401, 403):
                        # The SDK asks for the scopes that the server names: these.
                        named = response.headers.get("www-authenticate", "")
                        response.headers["www-authenticate"] = (
                            f'Bearer scope="{" ".join(self._wanted)}", '
                            f"{named.removeprefix('Bearer ')}"
                        )

                    outgoing = await flow.asend(response)
            except StopAsyncIteration:
                return  # the server required no token
            except InfrastructureFault:
                raise
            except (OAuthFlowError, PyJWTError, ValueError) as error:
                # the SDK quotes the reply, and a reply may hold tokens
                raise self._fault(error, reply) from None
            finally:
                with suppress(RuntimeError):  # of that lock
                    await flow.aclose()

    def _widen(self, needed: tuple[str, ...]) -> None:
        """From now on asks for these scopes, too.

        Raises InfrastructureFault if that is not allowed, or was in vain.
        """
        granted = (self._saved.scope or "").split()
        missing = [scope for scope in needed if scope not in granted] or needed
        if missing:
            lacks = f"needs scope {' '.join(missing)}"
        else:
            lacks = "needs a wider scope, and does not say which"

        if self._auth.scopes and not set(needed) <= set(self._auth.scopes):
            raise self._denied(
                f"{lacks}, which is not among the `scopes` of its `auth` in the experiment file"
            )

        if self._file is not None and self._person is None:
            self._saved.needed = tuple(dict.fromkeys((*granted, *needed)))
            self._file.write(self._saved)
            raise self._no_login(f"it {lacks}")

        if not needed:
            raise self._denied(f"{lacks}: name it in the `scopes` of its `auth`")
        if set(needed) <= set(self._wanted):
            raise self._denied(f"{lacks}, which the authorization server does not grant")
        self._wanted = tuple(dict.fromkeys((*granted, *needed)))

    def _fault(self, error: Exception, reply: httpx2.Response | None) -> InfrastructureFault:
        if reply is not None and isinstance(
            error, (OAuthTokenError, OAuthRegistrationError, ValidationError)
        ):
            # What may be shown of its reply: it may hold tokens, or repeat secrets
            try:
                code = reply.json()["error"]
            except (httpx2.ResponseNotRead, ValueError, KeyError, TypeError):
                code = None

            reason = f"the authorization server answered with HTTP {reply.status_code}"
            if not reply.is_error:
                reason += " and none that is valid"
            if isinstance(code, str) and _ERROR_CODE.fullmatch(code):
                reason += f" ({code})"
        else:
            reason = printable(self._redact(str(error)))[:_SHOWN] or type(error).__name__

        if self._auth.type == "login":
            hint = f"; {LOGIN_HINT.format(server=self._server.name)}"
        else:
            hint = ""

        fault = self._denied(f"gave no token: {reason}{hint}")
        if isinstance(error, OAuthTokenError) and reply is not None:
            fault.retriable = reply.status_code == 429 or reply.status_code >= 500
            fault.retry_after = retry_after(reply.headers)
        return fault

    def _denied(self, reason: str, *, kind: str = "mcp_unauthorized") -> InfrastructureFault:
        message = f"MCP server '{self._server.name}' ({printable(self._server.url)}) {reason}"
        return InfrastructureFault(kind, self._redact(message))

    def rejected(self, reason: str | None) -> InfrastructureFault:
        """The server takes none of the tokens that the authorization server gives.

        `reason`: in its own words.
        """
        if reason:
            said = f": {printable(reason)[:_SHOWN]}"
        else:
            said = ""

        return self._denied(f"answered with HTTP 401 or 403 to each new token{said}")

    def _made(self) -> OAuthClientProvider:
        auth = self._auth
        url = self._server.url
        scope = " ".join(auth.scopes) or None
        match auth.type:
            case "client_credentials":
                return ClientCredentialsOAuthProvider(
                    url,
                    self,
                    auth.client_id,
                    auth.secret,
                    scope=scope,
                    issuer=auth.issuer,
                )
            case "private_key_jwt":
                signed = SignedJWTParameters(
                    issuer=auth.client_id,
                    subject=auth.client_id,
                    signing_key=auth.secret,
                    signing_algorithm=auth.algorithm,
                )
                return PrivateKeyJWTOAuthProvider(
                    url,
                    self,
                    auth.client_id,
                    signed.create_assertion_provider(),
                    scope,
                    auth.issuer,
                )

        person = self._person or Person(
            redirect="http://127.0.0.1/callback", show=self._nobody, wait=self._nobody
        )
        metadata = OAuthClientMetadata(
            client_name="karat", redirect_uris=[AnyUrl(person.redirect)], scope=scope
        )
        return OAuthClientProvider(url, metadata, self, person.show, person.wait)

    async def _nobody(self, *_address: str) -> Never:
        raise self._no_login()

    def _no_login(self, reason: str = "the last one has expired") -> InfrastructureFault:
        if self._saved.access_token is None:
            need = "needs a login"
        else:
            need = f"needs another login: {reason}"

        return self._denied(
            f"{need}; {LOGIN_HINT.format(server=self._server.name)}", kind="mcp_login"
        )

    async def get_tokens(self) -> OAuthToken | None:
        return _token(self._saved)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        context = self._provider.context
        lasts = tokens.expires_in
        if lasts is None:
            expires_at = None
        else:
            expires_at = time.time() + lasts

        self._saved = SavedLogin(
            access_token=tokens.access_token,
            refresh_token=tokens.refresh_token,
            scope=tokens.scope,
            expires_at=expires_at,
            client=_json(context.client_info),
            metadata=_json(context.oauth_metadata),
            resource=_json(context.protected_resource_metadata),
        )
        self._mask()
        if self._file is not None:
            self._file.write(self._saved)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        if self._auth.type == "login" and self._auth.client_id:
            return OAuthClientInformationFull(
                client_id=self._auth.client_id,
                client_secret=self._auth.secret or None,
                redirect_uris=self._provider.context.client_metadata.redirect_uris,
            )

        if self._saved.client:
            return OAuthClientInformationFull.model_validate(self._saved.client)
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._saved.client = _json(client_info)
        self._mask()

    def _mask(self) -> None:
        """Tokens are secrets, even if a server repeats them."""
        client = self._saved.client or {}
        new = (self._saved.access_token, self._saved.refresh_token, client.get("client_secret"))
        self._seen = [
            *dict.fromkeys([*self._seen, *(text for text in new if isinstance(text, str))])
        ][-_KEPT:]
        self._redact.learn(f"token of {self._server.name}", self._seen)


class _Context(OAuthContext):
    """Sends the secret of a client from the experiment file as that file, or the token endpoint,
    wants it.
    """

    auth: ServerAuth

    def prepare_token_auth(
        self, data: dict[str, str], headers: dict[str, str] | None = None
    ) -> tuple[dict[str, str], dict[str, str]]:
        if self.auth.client_id and self.client_info is not None and self.client_info.client_secret:
            known = (
                self.oauth_metadata and self.oauth_metadata.token_endpoint_auth_methods_supported
            )
            no_basic = known and "client_secret_basic" not in known
            by_itself = "client_secret_post" if no_basic else "client_secret_basic"
            self.client_info.token_endpoint_auth_method = (
                self.auth.token_endpoint_auth_method or by_itself
            )

        return super().prepare_token_auth(data, headers)


class TokenAuth(httpx2.Auth):
    """Sends each request of one connection with the token, and again with a new one if it was
    rejected.
    """

    def __init__(self, tokens: Tokens, evidence: Evidence) -> None:
        self._tokens = tokens
        self._evidence = evidence

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Ends with the server's response to the request.

        Raises InfrastructureFault if it takes no token.
        """
        reason = None
        for _ in range(_ROUNDS):
            used = self._tokens.usable()
            needed = None  # the scopes that the request needs, if they are why it was rejected
            if used is not None:
                request.headers["Authorization"] = f"Bearer {used}"
                response = yield request
                error = extract_field_from_www_auth(response, "error")
                if response.status_code in (401, 403) and error == "insufficient_scope":
                    scopes = printable(extract_scope_from_www_auth(response) or "")
                    needed = tuple(scopes.split())

                self._evidence.status = response.status_code
                self._evidence.lost = None
                # another token would not help
                if response.status_code != 401 and needed is None:
                    if not response.is_error:
                        self._evidence.status = None
                    return

                reason = extract_field_from_www_auth(response, "error_description") or error

            renewal = self._tokens.renewed(request, used, needed)
            outgoing = request
            with suppress(StopAsyncIteration):
                outgoing = await anext(renewal)
                while True:
                    outgoing = await renewal.asend((yield outgoing))

            if self._tokens.usable() is None and outgoing is request:
                return  # the server required none

        raise self._tokens.rejected(reason)


def _token(saved: SavedLogin) -> OAuthToken | None:
    if saved.access_token is None:
        return None
    return OAuthToken(
        access_token=saved.access_token, refresh_token=saved.refresh_token, scope=saved.scope
    )


def _json(value: BaseModel | None) -> JsonObject | None:
    if value is not None:
        return value.model_dump(mode="json", exclude_none=True)
    return None
