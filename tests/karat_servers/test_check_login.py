"""`karat check --login`: an address, a browser that follows it, and tokens that only runs of this user read."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time

import httpx2
import pytest
from tests.mcp.oauth_server import guarded, happened

EXPERIMENT = """
name: e
dataset: {{path: q.jsonl}}
agent: {{type: mcp, tool: echo}}
scorers: [{{mcp_result: {{error: false}}}}]
mcp_servers:
  shop: {{url: "{url}", auth: {{type: login}}}}
  open: {{url: "{url}"}}
conditions:
  a: {{mcp_servers: [shop]}}
"""


@pytest.fixture
def file(here, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(here / "state"))
    (here / "q.jsonl").write_text('{"question": "q", "arguments": {"text": "hello"}}\n', encoding="utf-8")
    return here / "e.yaml"


@pytest.mark.slow
def test_a_person_logs_in_once_and_runs_use_it(karat, here, file):
    with guarded("--token-uses", "4") as url:
        file.write_text(EXPERIMENT.format(url=url), encoding="utf-8")
        argv = [sys.executable, "-m", "karat", "check", "--login", file, "shop", "--no-browser", "--seconds", "60"]
        said = here / "said.txt"
        with said.open("w") as stream, subprocess.Popen(argv, cwd=here, stdout=stream, stderr=stream) as login:
            deadline = time.monotonic() + 60
            while not (found := re.search(r"http://\S+/authorize\S+", said.read_text())):
                assert login.poll() is None, said.read_text()
                assert time.monotonic() < deadline
                time.sleep(0.1)
            page = httpx2.get(found[0], follow_redirects=True)
            assert login.wait(60) == 0, said.read_text()
        assert "You can close this page" in page.text
        assert f"logged in to shop ({url}): 14 tools; tokens in {here / 'state'}" in said.read_text()
        done = karat("run", "e.yaml")
        seen = happened(url)
    assert done.code == 0, done.err
    assert seen["token authorization_code"] == 1
    assert seen["token refresh_token"] >= 1
    written = b"".join(path.read_bytes() for path in (here / "results").rglob("*") if path.is_file())
    assert b"token-" not in written
    assert b"refresh-" not in written


@pytest.mark.slow
def test_a_login_that_is_refused_says_why(here, file):
    with guarded() as url:
        file.write_text(EXPERIMENT.format(url=url), encoding="utf-8")
        argv = [sys.executable, "-m", "karat", "check", "--login", file, "shop", "--no-browser", "--seconds", "60"]
        said = here / "said.txt"
        with said.open("w") as stream, subprocess.Popen(argv, cwd=here, stdout=stream, stderr=stream) as login:
            deadline = time.monotonic() + 60
            while not (found := re.search(r"http://\S+/authorize\S+", said.read_text())):
                assert time.monotonic() < deadline
                time.sleep(0.1)
            back = str(httpx2.URL(found[0]).params["redirect_uri"])
            assert httpx2.get(back.replace("/callback", "/favicon.ico")).status_code == 404
            httpx2.get(back, params={"error": "access_denied", "error_description": "not today"})
            assert login.wait(60) == 2
    assert "the login was refused: access_denied" in said.read_text()
    assert not list((here / "state").rglob("*.json"))


@pytest.mark.slow
def test_a_login_outlasts_a_second_authorization_and_a_stale_return(here, file):
    """The tools are listed only with a wider scope, so the server asks for another login at once."""
    followed: set[str] = set()
    with guarded("--needs", "tools/list=write") as url:
        file.write_text(EXPERIMENT.format(url=url), encoding="utf-8")
        argv = [sys.executable, "-m", "karat", "check", "--login", file, "shop", "--no-browser", "--seconds", "60"]
        said, first = here / "said.txt", None
        with said.open("w") as stream, subprocess.Popen(argv, cwd=here, stdout=stream, stderr=stream) as login:
            deadline = time.monotonic() + 60
            while login.poll() is None and time.monotonic() < deadline:
                for address in set(re.findall(r"http://\S+/authorize\S+", said.read_text())) - followed:
                    followed.add(address)
                    if first is not None:
                        assert "The login is over" in httpx2.get(first).text
                    first = httpx2.get(address).headers["location"]
                    httpx2.get(first)
                time.sleep(0.1)
            assert login.wait(5) == 0, said.read_text()
        assert happened(url)["token authorization_code"] == 2
    assert len(followed) == 2


@pytest.mark.parametrize(
    ("server", "words"),
    [
        ("open", "'open' has no `auth: {type: login}` in the experiment file: it needs no login"),
        ("shopp", "the experiment has no MCP server 'shopp' (did you mean 'shop'?)"),
    ],
)
def test_what_needs_no_login_is_refused(karat, file, server, words):
    file.write_text(EXPERIMENT.format(url="http://127.0.0.1:9/mcp"), encoding="utf-8")
    done = karat("check", "--login", "e.yaml", server)
    assert done.code == 2
    assert words in done.err


def test_a_server_that_cannot_be_reached_is_said_in_one_line(file):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/mcp"
    file.write_text(EXPERIMENT.format(url=url), encoding="utf-8")
    argv = [sys.executable, "-m", "karat", "check", "--login", file, "shop", "--no-browser"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    expected = f"SERVER: MCP server 'shop' ({url}) cannot be reached: All connection attempts failed\n"
    assert (done.returncode, done.stderr) == (2, expected)
