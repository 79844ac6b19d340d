"""The SDK's own client, used plainly, as the client of a scenario. Arguments and variables: as in `karat_client.py`."""

import asyncio
import json
import os
import sys
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client, MCPError, types
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata
from pydantic import AnyUrl

URL = sys.argv[-1]
SCENARIO = os.environ["MCP_CONFORMANCE_SCENARIO"]
CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
VERSION = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "")
ARGUMENTS = {"add_numbers": {"a": 5, "b": 3}, "valid_tool": {"region": "x"}}
BACK = AnyUrl("http://127.0.0.1:3999/callback")  # nothing listens there: the redirect is read, not followed
FILLED = {"boolean": True, "string": "x"}


class Store(TokenStorage):
    """In memory."""

    def __init__(self, client: OAuthClientInformationFull | None = None) -> None:
        self.tokens, self.client = None, client

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens) -> None:
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info) -> None:
        self.client = client_info


class Browser:
    """A person who consents to everything."""

    def __init__(self) -> None:
        self.query: dict[str, str] = {}

    async def visit(self, address: str) -> None:
        async with httpx2.AsyncClient() as client:
            response = await client.get(address, follow_redirects=False)
        self.query = {key: values[0] for key, values in parse_qs(urlsplit(response.headers["location"]).query).items()}

    async def returned(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(
            code=self.query["code"], state=self.query.get("state"), iss=self.query.get("iss")
        )


def authentication() -> httpx2.Auth | None:
    if not SCENARIO.startswith("auth/"):
        return None
    if SCENARIO == "auth/client-credentials-basic":
        return ClientCredentialsOAuthProvider(URL, Store(), CONTEXT["client_id"], CONTEXT["client_secret"])
    if SCENARIO == "auth/client-credentials-jwt":
        signed = SignedJWTParameters(
            issuer=CONTEXT["client_id"],
            subject=CONTEXT["client_id"],
            signing_key=CONTEXT["private_key_pem"],
            signing_algorithm=CONTEXT.get("signing_algorithm", "ES256"),
        )
        return PrivateKeyJWTOAuthProvider(URL, Store(), CONTEXT["client_id"], signed.create_assertion_provider())
    client = None
    if CONTEXT.get("client_id"):
        client = OAuthClientInformationFull(
            client_id=CONTEXT["client_id"],
            client_secret=CONTEXT.get("client_secret"),
            redirect_uris=[BACK],
            token_endpoint_auth_method="client_secret_basic",
            issuer=CONTEXT.get("issuer"),
        )
    browser = Browser()
    metadata = OAuthClientMetadata(client_name="control", redirect_uris=[BACK])
    return OAuthClientProvider(URL, metadata, Store(client), browser.visit, browser.returned)


async def elicited(_, params) -> types.ElicitResult:
    fields = getattr(params, "requested_schema", {}).get("properties", {})
    content = {name: field.get("default", FILLED.get(field.get("type"), 1)) for name, field in fields.items()}
    return types.ElicitResult(action="accept", content=content)


async def tried(request) -> object:
    try:
        return await request
    except (MCPError, RuntimeError, ValueError) as error:
        print(type(error).__name__, str(error)[:200])
    return None


async def main() -> None:
    mode = "legacy" if VERSION.startswith(("2024", "2025")) else "auto"
    async with httpx2.AsyncClient(auth=authentication(), timeout=20) as http:
        transport = streamable_http_client(URL, http_client=http)
        async with Client(transport, mode=mode, elicitation_callback=elicited) as client:
            schemas = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
            arguments = {**ARGUMENTS, "json_schema_echo": {"schema": schemas.get("json_schema_2020_12_tool")}}
            calls = [(call["name"], call.get("arguments") or {}) for call in CONTEXT.get("toolCalls", [])]
            for name, given in calls or [(name, arguments.get(name, {})) for name in schemas]:
                print(name, str(await tried(client.call_tool(name, given)))[:300])
            if SCENARIO == "http-standard-headers":
                await tried(client.read_resource("file:///path/to/file%20name.txt"))
                await tried(client.get_prompt("test_prompt"))


asyncio.run(main())
