"""Each provider is reached by its own client, or refused before anything is asked, with what to set."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from karat.errors import BadOption, InfrastructureFault
from karat.models import close_model, fault_of, metered, open_model, price
from karat.records import Usage

CLAUDE = "vertex_ai/claude-opus-4-8"
PLACE = {"VERTEXAI_PROJECT": "my-project", "VERTEXAI_LOCATION": "us-east5"}

# Opens every provider that pydantic-ai names, without any credentials, and prints what each raised.
_OPEN_ALL = """
import json, re, sys, warnings
from pathlib import Path
import pydantic_ai.providers
from karat.errors import OperatorError
from karat.models import open_model

warnings.simplefilter("ignore")
source = Path(pydantic_ai.providers.__file__).read_text()
names = {name for line in re.findall("case ('.*):", source) for name in re.findall("'([^']+)'", line)}
found = {}
for name in sorted(names | {"vertex_ai", "vertex", "google-vertex", "gemini", "gateway/openai", "litellm_proxy"}):
    try:
        open_model(f"{name}:some-model", place="judge.model")
        found[name] = ["opened", ""]
    except OperatorError as error:
        found[name] = ["refused", str(error)]
    except BaseException as error:
        found[name] = [type(error).__name__, str(error)]
json.dump(found, sys.stdout)
"""


def service_account(folder: Path) -> Path:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    account = {
        "type": "service_account",
        "project_id": "project-of-the-key",
        "private_key_id": "1",
        "private_key": pem.decode(),
        "client_email": "karat@example.iam.gserviceaccount.com",
        "client_id": "1",
        "token_uri": "http://127.0.0.1:9/token",
    }
    path = folder / "account.json"
    path.write_text(json.dumps(account))
    return path


@pytest.mark.slow
def test_claude_on_vertex_is_asked_by_anthropics_client(httpserver: HTTPServer) -> None:
    from pydantic_ai.messages import ModelRequest  # takes a second, in each process that collects tests
    from pydantic_ai.models import ModelRequestParameters

    answer = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-8",
        "content": [{"type": "text", "text": "Yes."}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1000, "output_tokens": 100},
    }
    path = "/v1/projects/my-project/locations/us-east5/publishers/anthropic/models/claude-opus-4-8:rawPredict"
    httpserver.expect_request(path, method="POST").respond_with_json(answer)

    async def asked() -> tuple[str | None, Usage | None]:
        url, env = httpserver.url_for("/v1"), {**PLACE, "TOKEN": "a-token"}
        model = open_model(CLAUDE, base_url=url, api_key_env="TOKEN", env=env)
        try:
            with metered() as meter:
                response = await model.request(
                    [ModelRequest.user_text_prompt("Is it?")], {"max_tokens": 100}, ModelRequestParameters()
                )
        finally:
            await close_model(model)
        return response.text, meter.usage

    assert asyncio.run(asked()) == ("Yes.", Usage(input_tokens=1000, output_tokens=100))
    ((request, _response),) = httpserver.log
    assert request.headers["Authorization"] == "Bearer a-token"
    assert "model" not in request.get_json()  # the address names it


def test_claude_on_vertex_has_a_price() -> None:
    # 5 and 25 dollars per million tokens: genai-prices, provider google, model claude-opus-4-8
    assert price(CLAUDE, Usage(input_tokens=1000, output_tokens=100)) == pytest.approx(0.0075)


def test_a_service_account_of_the_experiments_environment_is_used(tmp_path: Path) -> None:
    env = {"GOOGLE_APPLICATION_CREDENTIALS": str(service_account(tmp_path)), "VERTEXAI_LOCATION": "global"}

    async def bases() -> list[str | None]:
        models = [open_model(name, env=env) for name in (CLAUDE, "vertex_ai/gemini-3-pro")]
        for model in models:
            await close_model(model)
        return [model.base_url for model in models]

    assert asyncio.run(bases()) == ["https://aiplatform.googleapis.com/v1/", "https://aiplatform.googleapis.com/"]


@pytest.mark.parametrize(
    ("model", "env", "wanted"),
    [
        (CLAUDE, {"GOOGLE_APPLICATION_CREDENTIALS": "/nowhere.json"}, "File /nowhere.json was not found; set GOOGLE_"),
        (
            "vertex_ai/gemini-3-pro",
            {"GOOGLE_APPLICATION_CREDENTIALS": "/nowhere.json"},
            r"'/nowhere.json'\) cannot be used",
        ),
        (CLAUDE, {"TOKEN": "t", "VERTEXAI_LOCATION": "global"}, "needs a Google Cloud project; set VERTEXAI_PROJECT"),
        (CLAUDE, {"TOKEN": "t", "VERTEXAI_PROJECT": "p"}, "needs a location; set VERTEXAI_LOCATION, e.g. to global"),
        ("vertex_ai/mistral-large-2411", PLACE, "on Vertex AI karat speaks to Gemini and Claude only"),
        ("vertex_ai/meta/llama-4-maverick", PLACE, "on Vertex AI karat speaks to Gemini and Claude only"),
    ],
)
def test_what_vertex_lacks_is_said_with_the_place(model: str, env: dict[str, str], wanted: str) -> None:
    with pytest.raises(BadOption, match=rf"^judge\.model: .*{wanted}"):
        open_model(model, env=env, api_key_env="TOKEN" if "TOKEN" in env else None, place="judge.model")


@pytest.mark.slow
def test_no_provider_without_credentials_is_a_fault_of_karat(tmp_path: Path) -> None:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "NO_GCE_CHECK": "true"}
    done = subprocess.run([sys.executable, "-c", _OPEN_ALL], env=env, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert len(found) > 40
    assert {name: what for name, what in found.items() if what[0] != "refused"} == {}
    unplaced = [name for name, (_, words) in found.items() if not words.startswith(("judge.model: ", "judge.base_url"))]
    assert unplaced == []
    of_python = {name: words for name, (_, words) in found.items() if "Provider(" in words}
    assert of_python == {}
    assert found["bedrock"][1].startswith("judge.model: 'bedrock:some-model' needs a package that is not installed: ")
    assert found["bedrock"][1].endswith(" install 'pydantic-ai-slim[bedrock]'")


def test_google_credentials_that_cannot_be_refreshed_are_no_crash_of_the_agent() -> None:
    from google.auth.exceptions import RefreshError

    fault = fault_of(RefreshError("invalid_grant"))
    assert (type(fault), fault.kind, fault.retriable) == (InfrastructureFault, "unauthorized", False)
