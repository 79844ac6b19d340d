"""Every rule of the door, against a real server on this machine."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys

import pytest
from tests.analysis.journals import table
from tests.karat_viewer.serving import Viewer


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    table(folder / "run-a", {"baseline": [[3.0], [2.0]], "with-docs": [[5.0], [4.0]]})
    outside = tmp_path_factory.mktemp("outside")
    table(outside / "secret", {"baseline": [[1.0]], "with-docs": [[1.0]]})
    (folder / "linked").symlink_to(outside / "secret")
    for name, make in (
        ("waiting", os.mkfifo),
        ("leading-out", lambda path: path.symlink_to(outside / "secret" / "journal.jsonl")),
    ):
        run = table(folder / name, {"baseline": [[1.0]]})
        run.journal.unlink()
        make(run.journal)
    return folder


@pytest.fixture(scope="module")
def viewer(results):
    with Viewer(results) as running:
        yield running.enter()


def test_the_first_link_is_exchanged_once_for_a_cookie_and_leads_away(results):
    with Viewer(results) as viewer:
        token = viewer.url.partition("token=")[2]
        assert viewer.ask("HEAD", f"/?token={token}").status == 403
        assert viewer.ask("GET", "/?token=wrong").status == 403
        first = viewer.ask("GET", f"/runs/run-a/samples?sort=gap&token={token}")
        assert (first.status, first.headers["location"]) == (303, "/runs/run-a/samples?sort=gap")
        cookie, *rules = [part.strip() for part in first.headers["set-cookie"].split(";")]
        assert cookie.startswith(f"karat_{viewer.port}=")
        assert sorted(rules) == ["HttpOnly", "Path=/", "SameSite=Strict"]
        assert token not in cookie
        assert viewer.ask("GET", f"/?token={token}").status == 403
        assert viewer.ask("GET", "/", cookie=cookie).status == 200


def test_the_way_on_from_the_first_link_stays_on_this_server(results):
    with Viewer(results) as viewer:
        token = viewer.url.partition("token=")[2]
        assert viewer.ask("GET", f"//example.org/?token={token}").headers["location"] == "/example.org/"


@pytest.mark.parametrize(
    "cookie",
    ["", "karat_1=x", "karat_PORT=", "karat_PORT=x", "karat_PORT=ü", "other=1; karat_PORT=wrong", "karat_PORT"],
)
def test_nobody_gets_in_without_the_cookie(viewer, cookie):
    cookie = cookie.replace("PORT", str(viewer.port)).encode().decode("latin-1")
    for path in ("/", "/runs/run-a", "/runs/run-a/state", "/static/x/page.css", "/no-such-page"):
        heard = viewer.ask("GET", path, cookie=cookie)
        assert heard.status == 403
        assert b"run-a" not in heard.body


def test_the_cookie_is_found_beside_others(viewer):
    assert viewer.ask("GET", "/", cookie=f"karat_1=x; {viewer.cookie}; z=1").status == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:PORT", 200),
        ("localhost:PORT", 200),
        ("LOCALHOST:PORT", 200),
        ("[::1]:PORT", 200),
        ("", 400),
        ("127.0.0.1", 421),
        ("127.0.0.1:1", 421),
        ("evil.example:PORT", 421),
        ("127.0.0.1.evil.example:PORT", 421),
        ("localhost.evil.example:PORT", 421),
        ("127.0.0.2:PORT", 421),
        ("user@127.0.0.1:PORT", 421),
        ("127.0.0.1:PORT:PORT", 421),
        ("127.0.0.1:²", 421),  # a digit to Python, and no number
        ("127.0.0.1:PORT²", 421),
        ("127.0.0.1:0PORT99", 421),
    ],
)
def test_the_server_answers_to_its_own_names_only(viewer, host, status):
    heard = viewer.ask("GET", "/", host=host.replace("PORT", str(viewer.port)), cookie=viewer.cookie)
    assert heard.status == status


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1", "https://127.0.0.1:PORT"])
def test_another_origin_may_neither_read_nor_write(viewer, origin):
    origin = origin.replace("PORT", str(viewer.port))
    assert viewer.get("/", origin=origin).status == 403
    assert viewer.post("/runs/run-a/labels", {}, origin=origin).status == 403


def test_a_write_needs_origin_header_and_the_secret_of_a_page(viewer):
    whole = {"trial": "x", "who": "ann"}
    assert viewer.post("/runs/run-a/labels", whole).status == 422  # let in, and read
    assert viewer.post("/runs/run-a/labels", whole, origin="").status == 403
    assert viewer.post("/runs/run-a/labels", whole, x_karat_csrf="").status == 403
    assert viewer.post("/runs/run-a/labels", whole, x_karat_csrf="x" * 43).status == 403
    assert viewer.post("/runs/run-a/labels", whole, cookie="").status == 403
    assert viewer.post("/runs/run-a/labels", whole, sec_fetch_site="cross-site").status == 403
    assert viewer.post("/runs/run-a/labels", whole, sec_fetch_site="same-origin").status == 422


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(viewer, method):
    assert viewer.ask(method, "/runs/run-a/labels", cookie=viewer.cookie).status == 405


def test_every_answer_carries_the_rules_for_browsers(viewer):
    style = viewer.get("/").text.partition('rel="stylesheet" href="')[2].partition('"')[0]
    for heard in (
        viewer.get("/"),
        viewer.get("/runs/run-a"),
        viewer.get("/no-such-page"),
        viewer.get(style),
        viewer.get("/runs/run-a/state"),
        viewer.ask("GET", "/"),
        viewer.ask("GET", "/", host="evil.example"),
        viewer.post("/runs/run-a/labels", {}),
    ):
        rules = dict(part.strip().partition(" ")[::2] for part in heard.headers["content-security-policy"].split(";"))
        assert rules["default-src"] == "'none'"
        assert rules["script-src"] == rules["style-src"] == "'self'"
        assert rules["frame-ancestors"] == rules["base-uri"] == rules["object-src"] == "'none'"
        assert "unsafe" not in heard.headers["content-security-policy"]
        assert heard.headers["referrer-policy"] == "no-referrer"
        assert heard.headers["x-content-type-options"] == "nosniff"
        assert heard.headers["x-frame-options"] == "DENY"
        assert heard.headers["cross-origin-resource-policy"] == "same-origin"
    assert viewer.get("/runs/run-a").headers["cache-control"] == "no-store"
    assert "server" not in viewer.get("/").headers


def test_no_page_holds_script_or_style_between_its_own_tags(viewer):
    for path in ("/", "/runs/run-a", "/runs/run-a/samples", "/runs/run-a/samples/1", "/runs/run-a/reviews"):
        text = viewer.get(path).text
        for begin in text.split("<script")[1:]:
            tag = begin.partition(">")[0]
            assert "src=" in tag or 'type="application/json"' in tag
        assert "<style" not in text
        assert " style=" not in text
        assert " onclick" not in text


@pytest.mark.parametrize(
    "path",
    [
        "/runs/..",
        "/runs/../run-a",
        "/runs/%2e%2e",
        "/runs/..%2f..%2fetc",
        "/runs/%2fetc",
        "/runs/linked",
        "/runs/linked/samples",
        "/runs/.hidden",
        "/runs/",
        "/runs/run-a%00",
        "/runs/run-a%2fjournal.jsonl",
        "/runs/no-such-run",
        "/static/../../etc/passwd",
        "/static/x/viewer.js",
        "/runs/run-a/text/x/0",
        "/runs/run-a/samples/99999999999999999999",
    ],
)
def test_nothing_outside_the_folder_is_opened(viewer, path):
    heard = viewer.get(path)
    assert heard.status in (400, 404)
    assert b"root:" not in heard.body


def test_a_link_that_leads_out_of_the_folder_is_not_listed(viewer):
    listed = viewer.get("/").text
    assert "run-a" in listed
    assert "linked" not in listed


@pytest.mark.parametrize("name", ["waiting", "leading-out"])
def test_a_journal_that_is_no_plain_file_is_not_opened(viewer, name):
    assert "journal.jsonl is a link or not a regular file" in viewer.get("/").text
    for path in ("", "/samples", "/samples/1", "/state"):
        heard = viewer.get(f"/runs/{name}{path}")
        assert heard.status == 404
        assert "journal.jsonl is a link or not a regular file" in heard.text
        assert "No such run" not in heard.text  # it is there, and cannot be opened


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/?q=" + "x" * 1500, 200),
        ("/?q=" + "x" * 3000, 414),
        ("/" + "x" * 3000, 414),
        ("/runs/run-a/samples?" + "&".join(f"sort=gap{n}" for n in range(150)), 200),
        ("/runs/run-a/samples?page=-1&at=x&low=nan&high=1e999&metric=%00&label==&failure=%ff", 200),
        ("/runs/run-a/samples?text=%22%27%29%20OR%20NEAR%28%2A", 200),
        ("/runs/run-a/samples?sort=id%3bDROP%20TABLE%20samples", 200),
        ("/compare?run=run-a&run=run-a&a=nope&b=%00", 200),
        ("/compare?run=..&run=run-a", 409),
    ],
)
def test_addresses_have_limits_and_odd_ones_are_survived(viewer, path, status):
    assert viewer.get(path).status == status


def test_a_body_has_a_limit_whether_it_says_its_length_or_not(viewer):
    large = b"x" * 100_000
    assert viewer.post("/runs/run-a/labels", large).status == 413
    chunked = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in [large, large]) + b"0\r\n\r\n"
    assert viewer.post("/runs/run-a/labels", chunked, transfer_encoding="chunked").status == 413
    assert viewer.post("/runs/run-a/labels", b"", content_length="-1").status in (400, 413)


def test_ctrl_c_and_terminate_end_it_cleanly(results):
    for how in (signal.SIGINT, signal.SIGTERM):
        with Viewer(results) as viewer:
            viewer.enter().get("/runs/run-a/samples")
            assert viewer.stop(how) == 0
            assert not any("Traceback" in line for line in viewer.errors)


@pytest.mark.slow
def test_the_cookie_of_one_viewer_opens_no_other(results):
    with Viewer(results) as one, Viewer(results) as other:
        one.enter()
        assert one.port != other.port
        renamed = one.cookie.replace(str(one.port), str(other.port))
        assert other.ask("GET", "/", cookie=renamed).status == 403


def refused(*flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "karat", "view", "--no-open", *flags]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_an_address_that_others_reach_needs_a_second_word(results):
    done = refused(str(results), "--host", "0.0.0.0")
    assert done.returncode == 2
    assert "--allow-remote" in done.stderr


def test_what_allow_remote_means_is_said(results):
    with Viewer(results, "--host", "0.0.0.0", "--allow-remote") as viewer:
        token = viewer.url.partition("token=")[2]
        entered = viewer.ask("GET", f"/?token={token}")
        viewer.cookie = entered.headers["set-cookie"].partition(";")[0]
        assert viewer.get("/").status == 200
        # A number cannot be made to point elsewhere; a name can.
        assert viewer.ask("GET", "/", host=f"192.0.2.7:{viewer.port}", cookie=viewer.cookie).status == 200
        assert viewer.ask("GET", "/", host=f"evil.example:{viewer.port}", cookie=viewer.cookie).status == 421
        viewer.stop()
        assert "other machines can reach these pages" in "".join(viewer.errors)


def test_a_port_that_is_taken_is_said(results):
    with Viewer(results) as viewer:
        done = refused(str(results), "--port", str(viewer.port))
        assert done.returncode == 2
        said = f"--port: cannot listen at 127.0.0.1 port {viewer.port}: {os.strerror(errno.EADDRINUSE)}"
        assert done.stderr.strip() == said  # and no address as Python writes it


def test_what_is_no_run_is_said_before_a_port_is_taken(tmp_path):
    done = refused(str(tmp_path / "nothing"), "--results", str(tmp_path))
    assert done.returncode == 2
    assert "there is no such file or folder" in done.stderr


@pytest.mark.slow
def test_the_result_is_json_and_the_talk_apart(results):
    with Viewer(results) as viewer:
        assert viewer.said["format"] == 1
        assert json.dumps(viewer.said)
        viewer.stop()
        assert "it works once" in "".join(viewer.errors)
