"""`make audit`: vulnerable packages are listed, and silence of the advisory service is no clean bill."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PIP_AUDIT = Path(sys.executable).with_name("pip-audit")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PIP_AUDIT.is_file(), reason="pip-audit is not installed: sh scripts/setup dev"),
]


@contextmanager
def advisory_service(vulnerable: str) -> Iterator[str]:
    """A service as osv.dev, which knows one vulnerability: of every version of one package."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))["package"]["name"]
            affected = {
                "package": {"name": asked, "ecosystem": "PyPI"},
                "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "999"}]}],
            }
            known = {"id": "TEST-1", "summary": "It leaks.", "modified": "2026-01-01T00:00:00Z", "affected": [affected]}
            body = json.dumps({"vulns": [known]} if asked == vulnerable else {}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1/query"
        finally:
            server.shutdown()
            thread.join()


def audit(url: str) -> subprocess.CompletedProcess[str]:
    given = {**os.environ, "PIP_AUDIT_VULNERABILITY_SERVICE": "osv", "PIP_AUDIT_OSV_URL": url}
    argv = ["sh", ROOT / "scripts" / "audit", PIP_AUDIT]
    return subprocess.run(argv, env=given, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("vulnerable", "code"), [("jinja2", 1), ("ray", 1), ("no-such-package", 0)])
def test_the_audit_lists_what_is_known_to_be_vulnerable(vulnerable, code):
    with advisory_service(vulnerable) as url:
        done = audit(url)
    assert done.returncode == code, done.stderr
    assert ("TEST-1" in done.stdout) == bool(code)


def test_an_audit_without_the_service_fails_and_says_what_was_not_done():
    with advisory_service("nothing") as url:
        pass  # closed again: nobody answers there
    done = audit(url)
    assert (done.returncode, done.stdout) == (2, "")
    assert "NOT audited: pip-audit could not ask its advisory service for every package" in done.stderr
