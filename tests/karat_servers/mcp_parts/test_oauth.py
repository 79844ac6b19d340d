"""OAuth: tokens are got, renewed and masked; nothing is asked twice; a wrong client costs its conditions alone."""

from __future__ import annotations

import asyncio
import io
import itertools
import json
import logging
import stat

import httpx2
import msgspec
import pytest
from tests.mcp.oauth_server import SECRET, guarded, happened
from werkzeug import Response

from karat.errors import BadOption, InfrastructureFault
from karat.mcp import ServerFault, Toolbox, ToolList
from karat.mcp.attempts import Attempt
from karat.records import AgentSpec, Cassettes, Condition, McpServer, ServerAuth
from karat.redact import Redactor
from karat_servers.mcp_parts.oauth import Person
from karat_servers.server_checks.running import check_server
from karat_servers.token_file import SavedLogin, TokenFile


def client(url, secret=SECRET, **fields):
    origin = url.removesuffix("/mcp")
    auth = ServerAuth(type="client_credentials", issuer=origin, client_id="karat", secret=secret)
    return McpServer(name="s", type="http", url=url, auth=auth, **fields)


def condition_of(server):
    return Condition(name="c", position=0, digest="", agent=AgentSpec(type="mcp"), mcp_servers=(server,))


def echoes(server, folder, *, trials=3, calls=4, redact=None, cassettes=None):
    """What so many trials at the same time get back."""

    async def trial(box, number):
        with Attempt(f"t{number}-1"):
            async with box.open(condition_of(server)) as tools:
                return [(await tools.call("s", "echo", {"text": f"{number}.{n}"})).result for n in range(calls)]

    async def story():
        async with Toolbox((server,), redact=redact or Redactor({}), folder=folder, cassettes=cassettes) as box:
            return await asyncio.gather(*(trial(box, number) for number in range(trials)))

    return asyncio.run(story())


@pytest.mark.quick(1)
@pytest.mark.parametrize("scope", ["trial", "run"])
@pytest.mark.parametrize("seconds", [(), ("--token-seconds", "3600")])
def test_tokens_that_expire_during_a_run_lose_nothing_and_repeat_nothing(tmp_path, scope, seconds):
    with guarded("--token-uses", "5", *seconds) as url:
        found = echoes(client(url, scope=scope), tmp_path)
        seen = happened(url)
    assert found == [[f"{trial}.{call}" for call in range(4)] for trial in range(3)]
    assert seen["passed tools/call"] == 12, "each call reached the server once"
    assert seen["token client_credentials"] >= 3, "the first token, and two that took its place"


def test_a_wrong_client_is_a_fault_that_shows_no_secret(tmp_path):
    async def listed(server):
        async with Toolbox((server,), redact=Redactor({"S": "wrong-secret"}), folder=tmp_path) as box:
            return (await box.preflight())["s"]

    with guarded() as url:
        fault = asyncio.run(listed(client(url, "wrong-secret")))
    assert isinstance(fault, ServerFault)
    assert (fault.kind, fault.retriable) == ("mcp_unauthorized", False)
    assert "gave no token" in fault.message
    assert "HTTP 401 (invalid_client)" in fault.message
    assert "not a client of this server" not in fault.message
    assert "wrong-secret" not in fault.message


def test_an_issuer_that_the_server_does_not_name_gets_no_credentials(tmp_path):
    async def listed(server):
        async with Toolbox((server,), redact=Redactor({}), folder=tmp_path) as box:
            return (await box.preflight())["s"]

    with guarded() as url:
        server = client(url)
        elsewhere = msgspec.structs.replace(server.auth, issuer="https://elsewhere.example")
        fault = asyncio.run(listed(msgspec.structs.replace(server, auth=elsewhere)))
        seen = happened(url)
    assert fault.kind == "mcp_unauthorized"
    assert seen == {"rejected": 1}


def test_no_token_reaches_a_recording_though_the_server_repeats_it(tmp_path):
    cassettes = Cassettes(mode="record", folder=tmp_path / "tapes")

    async def story(server, redact):
        async with Toolbox((server,), redact=redact, folder=tmp_path, cassettes=cassettes) as box:
            with Attempt("t-1"):
                async with box.open(condition_of(server)) as tools:
                    return (await tools.call("s", "headers", {})).result

    with guarded() as url:
        said = json.loads(asyncio.run(story(client(url), Redactor({}))))
    assert said["authorization"] == "Bearer ${token of s}"
    assert "token-" not in next((tmp_path / "tapes").iterdir()).read_text()


def test_a_key_signs_for_the_client(tmp_path):
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "public.pem").write_bytes(public)
    with guarded("--public-key", str(tmp_path / "public.pem")) as url:
        auth = ServerAuth(
            type="private_key_jwt",
            issuer=url.removesuffix("/mcp"),
            client_id="karat",
            secret=private,
            algorithm="ES256",
        )
        server = McpServer(name="s", type="http", url=url, auth=auth)
        assert echoes(server, tmp_path, trials=1, calls=1) == [["0.0"]]


def person(url):
    """Somebody who follows the address, as a browser does, and says where it came back to."""
    from urllib.parse import parse_qsl, urlsplit

    from mcp.shared.auth import AuthorizationCodeResult

    back = []

    async def show(address):
        async with httpx2.AsyncClient() as browser:
            back.append((await browser.get(address)).headers["location"])

    async def wait():
        given = dict(parse_qsl(urlsplit(back[0]).query))
        return AuthorizationCodeResult(code=given["code"], state=given["state"], iss=given["iss"])

    return Person(redirect="http://127.0.0.1:1/callback", show=show, wait=wait)


def logged_in(server, folder):
    async def story():
        async with Toolbox((server,), redact=Redactor({}), folder=folder, person=person(server.url)) as box:
            return (await box.preflight())["s"]

    return asyncio.run(story())


@pytest.mark.parametrize("seconds", [(), ("--token-seconds", "3600")])
def test_a_login_is_kept_for_this_user_alone_and_renewed_by_runs(tmp_path, monkeypatch, seconds):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with guarded("--token-uses", "5", *seconds) as url:
        server = McpServer(name="s", type="http", url=url, auth=ServerAuth(type="login"))
        assert isinstance(logged_in(server, tmp_path), ToolList)
        path = TokenFile(server).path
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        first = TokenFile(server).read()
        assert echoes(server, tmp_path) == [[f"{trial}.{call}" for call in range(4)] for trial in range(3)]
        seen = happened(url)
        last = TokenFile(server).read()
    assert (seen["token authorization_code"], seen["passed tools/call"]) == (1, 12)
    assert seen["token refresh_token"] >= 2
    assert seen["refused refresh_token"] == 0, "each refresh token was used once"
    assert None not in (first.refresh_token, last.refresh_token)
    assert first.refresh_token != last.refresh_token


def test_without_a_login_the_fault_says_how_to_log_in(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    async def listed(server):
        async with Toolbox((server,), redact=Redactor({}), folder=tmp_path) as box:
            return (await box.preflight())["s"]

    with guarded() as url:
        fault = asyncio.run(listed(McpServer(name="s", type="http", url=url, auth=ServerAuth(type="login"))))
        seen = happened(url)
    assert (fault.kind, fault.retriable) == ("mcp_login", False)
    assert fault.message.endswith("needs a login; run `karat check --login FILE s`")
    assert seen == {}


def test_a_login_that_is_over_is_a_fault_that_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    async def listed(server):
        async with Toolbox((server,), redact=Redactor({}), folder=tmp_path) as box:
            return (await box.preflight())["s"]

    with guarded() as url:
        server = McpServer(name="s", type="http", url=url, auth=ServerAuth(type="login"))
        assert isinstance(logged_in(server, tmp_path), ToolList)
        saved = TokenFile(server).read()
        saved.access_token, saved.refresh_token = "revoked-token", "revoked-refresh"
        TokenFile(server).write(saved)
        fault = asyncio.run(listed(server))
    assert fault.kind == "mcp_login"
    assert "revoked" not in fault.message
    assert "run `karat check --login FILE s`" in fault.message


def test_a_file_of_tokens_that_others_can_read_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    file = TokenFile(McpServer(name="s", type="http", url="http://x.example/mcp", auth=ServerAuth(type="login")))
    assert file.read() == SavedLogin()
    file.write(SavedLogin(access_token="a-token-of-somebody"))
    assert file.read().access_token == "a-token-of-somebody"
    file.path.chmod(0o644)
    with pytest.raises(BadOption, match="can be read by others"):
        file.read()
    file.path.chmod(0o600)
    file.path.write_text("{")
    with pytest.raises(BadOption, match="cannot be read"):
        file.read()


def test_an_agent_that_connects_itself_is_let_in_by_karat(tmp_path):
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters

    async def story(server):
        async with Toolbox((server,), redact=Redactor({}), folder=tmp_path) as box:
            with Attempt("t-1"):
                started = box.proxy_command(server)
                assert started is not None
                (program, *arguments), env = started
                assert SECRET not in json.dumps(env)
                async with Client(StdioServerParameters(command=program, args=arguments, env=env)) as asked:
                    return (await asked.call_tool("echo", {"text": "hello"})).content[0].text

    with guarded() as url:
        assert asyncio.run(story(client(url))) == "hello"


@pytest.mark.slow
def test_a_server_with_oauth_can_be_checked(tmp_path):
    async def checked(server):
        return await check_server(server, folder=tmp_path, redact=Redactor({}), seconds=10, calls={})

    with guarded("--token-uses", "5") as url:
        report = asyncio.run(checked(client(url)))
    assert not report.failed
    assert report.tools == 14


def test_a_check_of_a_server_that_gives_no_token_says_why(tmp_path):
    async def checked(server):
        return await check_server(server, folder=tmp_path, redact=Redactor({}), seconds=5, calls={})

    with guarded() as url:
        report = asyncio.run(checked(client(url, "wrong-secret")))
    assert report.failed
    (handshake,) = (check for check in report.checks if check.id == "handshake")
    assert "gave no token" in handshake.seen


def first_call(server, folder, redact=None):
    """What one call ends with: its result, or the fault."""

    async def story():
        async with Toolbox((server,), redact=redact or Redactor({}), folder=folder) as box:
            with Attempt("t-1"):
                async with box.open(condition_of(server)) as tools:
                    return await tools.call("s", "echo", {"text": "hello"})

    try:
        return asyncio.run(story()).result
    except InfrastructureFault as fault:
        return fault


@pytest.mark.parametrize("scope", ["trial", "run"])
@pytest.mark.parametrize(
    ("options", "scopes", "reason"),
    [
        (("--never", "tools/call"), (), "HTTP 401 or 403 to each new token"),
        (("--needs", "tools/call=write", "--grants", "read"), (), "needs scope write, which the authorization server"),
        (("--needs", "tools/call=write"), ("read",), "needs scope write, which is not among the `scopes`"),
    ],
)
def test_a_reply_of_the_authorization_server_is_never_a_result(tmp_path, options, scopes, reason, scope):
    with guarded(*options) as url:
        server = client(url, scope=scope)
        server = msgspec.structs.replace(server, auth=msgspec.structs.replace(server.auth, scopes=scopes))
        found = first_call(server, tmp_path)
    assert isinstance(found, InfrastructureFault)
    assert found.kind == "mcp_unauthorized"
    assert reason in found.message
    assert "token-" not in found.message


TOKEN = {"access_token": "token-1", "token_type": "Bearer", "expires_in": 3600}


@pytest.mark.parametrize(
    ("refusal", "token", "retry_after", "said"),
    [
        pytest.param((403, None), (200, TOKEN), None, "HTTP 403: check its auth in the experiment file", id="403"),
        pytest.param(
            (401, 'Bearer error="invalid_token", error_description="wrong audience"'),
            (200, TOKEN),
            None,
            "to each new token: wrong audience",
            id="wrong audience",
        ),
        pytest.param(
            (403, 'Bearer error="insufficient_scope"'),
            (200, TOKEN),
            None,
            "does not say which: name it in the `scopes`",
            id="no scope named",
        ),
        pytest.param((403, None), (429, {"error": "slow_down"}), 2.0, "HTTP 429 (slow_down)", id="a busy issuer"),
        pytest.param((403, None), (200, {"token": 1}), None, "HTTP 200 and none that is valid", id="no token"),
    ],
)
def test_why_a_token_is_not_taken_or_not_given(tmp_path, httpserver, refusal, token, retry_after, said):
    origin = httpserver.url_for("").rstrip("/")
    metadata = {
        "/.well-known/oauth-protected-resource/mcp": {"resource": f"{origin}/mcp", "authorization_servers": [origin]},
        "/.well-known/oauth-authorization-server": {
            "issuer": origin,
            "authorization_endpoint": f"{origin}/authorize",
            "token_endpoint": f"{origin}/token",
            "response_types_supported": ["code"],
        },
    }
    for path, document in metadata.items():
        httpserver.expect_request(path).respond_with_json(document)
    headers = {} if retry_after is None else {"Retry-After": str(int(retry_after))}
    numbers = itertools.count(1)

    def give(request):
        text = json.dumps(token[1]).replace("token-1", f"token-{next(numbers)}")
        return Response(text, status=token[0], headers=headers, content_type="application/json")

    httpserver.expect_request("/token").respond_with_handler(give)

    def answer(request):
        status, challenge = refusal if "Authorization" in request.headers else (401, "Bearer")
        return Response(status=status, headers={} if challenge is None else {"WWW-Authenticate": challenge})

    httpserver.expect_request("/mcp").respond_with_handler(answer)
    fault = first_call(client(f"{origin}/mcp"), tmp_path)
    assert isinstance(fault, InfrastructureFault)
    assert (fault.kind, said in fault.message) == ("mcp_unauthorized", True), fault.message
    assert (fault.retriable, fault.retry_after) == (retry_after is not None, retry_after)


def test_a_client_asks_for_the_scope_that_a_call_needs(tmp_path):
    with guarded("--needs", "tools/call=write") as url:
        assert echoes(client(url, scope="run"), tmp_path) == [[f"{trial}.{n}" for n in range(4)] for trial in range(3)]
        seen = happened(url)
    assert (seen["scope read"], seen["scope read write"], seen["passed tools/call"]) == (1, 1, 12)


def test_the_scopes_of_the_file_are_requested_at_once(tmp_path):
    with guarded("--needs", "tools/call=write") as url:
        server = client(url)
        server = msgspec.structs.replace(server, auth=msgspec.structs.replace(server.auth, scopes=("read", "write")))
        assert first_call(server, tmp_path) == "hello"
        seen = happened(url)
    assert (seen["scope read write"], seen["scope read"], seen["insufficient"]) == (1, 0, 0)


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("supported", "given", "used"),
    [
        (["absent"], None, "client_secret_basic"),
        (["client_secret_post", "client_secret_basic"], None, "client_secret_basic"),
        (["client_secret_post"], None, "client_secret_post"),
        (["client_secret_basic"], "client_secret_post", "client_secret_post"),
    ],
)
def test_a_secret_is_sent_as_the_token_endpoint_wants_it(tmp_path, monkeypatch, supported, given, used):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with guarded("--secret-methods", *supported) as url:
        server = client(url)
        auth = msgspec.structs.replace(server.auth, token_endpoint_auth_method=given)
        assert first_call(msgspec.structs.replace(server, auth=auth), tmp_path) == "hello"
        assert isinstance(
            logged_in(msgspec.structs.replace(server, auth=msgspec.structs.replace(auth, type="login")), tmp_path),
            ToolList,
        )
        assert happened(url)[f"secret by {used}"] == 2


def test_the_next_login_asks_for_the_scope_that_a_run_needed(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with guarded("--needs", "tools/call=write") as url:
        server = McpServer(name="s", type="http", url=url, auth=ServerAuth(type="login"))
        logged_in(server, tmp_path)
        fault = first_call(server, tmp_path)
        assert fault.kind == "mcp_login"
        assert fault.message.endswith("needs another login: it needs scope write; run `karat check --login FILE s`")
        logged_in(server, tmp_path)
        assert first_call(server, tmp_path) == "hello"
        assert happened(url)["refused refresh_token"] == 0


def test_what_the_sdk_logs_of_a_token_reply_reaches_no_handler_of_an_agent(tmp_path):
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    logging.getLogger().addHandler(handler)
    try:
        with guarded() as url:
            first_call(client(url, "wrong-secret"), tmp_path)
    finally:
        logging.getLogger().removeHandler(handler)
    assert "not a client of this server" not in written.getvalue()
