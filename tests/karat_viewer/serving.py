"""A real `karat view` in a process of its own, asked by plain HTTP."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit


@dataclass(frozen=True, kw_only=True)
class Heard:
    """An answer. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self):
        return json.loads(self.body)


class Viewer:
    """Serves a folder from entry to exit. `get` and `post` come with the cookie that the first link gave."""

    def __init__(self, folder: Path, *flags: str, path: Path | None = None) -> None:
        """`path`: where packages are looked for before all other places."""
        self._env = os.environ if path is None else {**os.environ, "PYTHONPATH": str(path)}
        self._command = [sys.executable, "-m", "karat", "view", str(folder), "--no-open", "--json", *flags]

    def __enter__(self) -> Viewer:
        self.process = subprocess.Popen(
            [*self._command, "--reviewer", "ann"],
            env=self._env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        told = ""
        while "}" not in told:
            line = self.process.stdout.readline()
            assert line, self.process.stderr.read()
            told += line
        self.said = json.loads(told)
        self.port, self.url = self.said["port"], self.said["url"]
        self.home = f"127.0.0.1:{self.port}"
        self.cookie = ""
        # A full pipe would stop the server.
        self.errors: list[str] = []
        self._reader = threading.Thread(target=lambda: self.errors.extend(self.process.stderr), daemon=True)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.process.stdout.close()
        self.process.stderr.close()

    def stop(self, how: int = signal.SIGINT) -> int:
        """The exit code."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(timeout=30)
        self._reader.join(timeout=10)
        return code

    def enter(self) -> Viewer:
        """Opens the first link, as a browser would."""
        parts = urlsplit(self.url)
        heard = self.ask("GET", f"{parts.path}?{parts.query}")
        assert heard.status == 303
        self.cookie = heard.headers["set-cookie"].partition(";")[0]
        return self

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Heard:
        """A request with exactly these headers, and a Host unless there is one (`host=""`: none)."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in {"host": self.home, **given}.items():
                if value:
                    connection.putheader(name, value)
            if body is not None and "transfer-encoding" not in given:
                connection.putheader("content-length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return Heard(
                status=answer.status,
                headers={name.lower(): value for name, value in answer.getheaders()},
                body=answer.read(),
            )
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Heard:
        return self.ask("GET", path, cookie=self.cookie, **headers)

    def csrf(self) -> str:
        """What a page of ours knows."""
        page = self.get("/no-such-page").text
        return page.partition('name="csrf" content="')[2].partition('"')[0]

    def post(self, path: str, value: object, **headers: str) -> Heard:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        given = {"origin": f"http://{self.home}", "x_karat_csrf": self.csrf(), "cookie": self.cookie, **headers}
        return self.ask("POST", path, body, content_type="application/json", **given)
