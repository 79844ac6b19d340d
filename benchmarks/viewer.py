"""How long pages of `karat view` take, and how much memory, for the example and for a run of a million scores.

    python benchmarks/viewer.py

Each figure is for a server of its own, over loopback. `first` is the first request, including everything it computes;
`again` is the median of ten more. Memory is the server's peak; a run of a million scores is summarized by a separate
process that then ends, unless `karat run`, `score` or `report` has left a summary (`left`). `filling` is the longest
response while the index is built. Times are in seconds; limits are compared with reference seconds (`limits.py`).
"""

from __future__ import annotations

import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import _results as results  # beside this file
from limits import Limits
from summary import write  # next to this file

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "support-kb" / "experiment.yaml"


def main() -> None:
    """Prints the tables."""
    options, limits = results.parser(__doc__).parse_args(), Limits()
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as place:
        folder = Path(place)
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        subprocess.run(
            [sys.executable, "-m", "karat", "run", EXAMPLE, "--results", folder / "example", "--quiet"],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        [run] = (folder / "example").glob("[!.]*")
        with Server(folder / "example", limits) as server:
            print("450 trials")
            server.indexed(run.name)
            server.page("overview", f"/runs/{run.name}", again=0.3)
            server.page("questions", f"/runs/{run.name}/samples?sort=worst")
            server.page("a question", f"/runs/{run.name}/samples/1?at=1")
            server.memory()
        samples = int(os.environ.get("BENCH_SAMPLES", "100000"))
        (folder / "large").mkdir()
        write(folder / "large" / "run", samples, scored=True)
        with Server(folder / "large", limits) as server:
            print(f"{10 * samples:,} scores")
            server.page("overview", "/runs/run")
        report = [sys.executable, "-m", "karat", "report", folder / "large" / "run"]
        subprocess.run(report, check=True, stdout=subprocess.DEVNULL)
        with Server(folder / "large", limits) as server:
            server.page("overview, left", "/runs/run", first=1)
            server.indexed("run")
            server.page("questions", "/runs/run/samples", first=1)
            server.page("worst first", "/runs/run/samples?sort=worst")
            server.page("a question", "/runs/run/samples/50?at=50")
            server.page("overview", "/runs/run")
            server.memory(500)
    about = f"A run of 450 trials, then one of {10 * samples:,} scores; with a limit: reference seconds."
    results.write(options.json, limits.section("Pages of `karat view`", about))
    limits.exit()


class Server:
    """A viewer in a process of its own."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self._limits = limits
        self._command = [sys.executable, "-m", "karat", "view", str(folder), "--no-open", "--json"]

    def __enter__(self) -> Server:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self._process.stdout is not None
        told = ""
        while "}" not in told:
            told += self._process.stdout.readline()
        parts = urlsplit(json.loads(told)["url"])
        self._port, self._cookie = parts.port, ""
        self._cookie = self._ask(f"{parts.path}?{parts.query}")[1].partition(";")[0]
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(timeout=60)

    def indexed(self, run: str) -> None:
        """Waits for the index, and prints how long it took."""
        begun, longest = time.perf_counter(), 0.0
        told = {"done": 0, "total": 1}
        while told["done"] < told["total"]:
            self._ask(f"/runs/{run}/samples")
            asked = time.perf_counter()
            self._ask(f"/runs/{run}")
            longest = max(longest, time.perf_counter() - asked)
            told = json.loads(self._ask(f"/runs/{run}/state")[2])
            time.sleep(0.1)
        print(f"  {'index':14} {time.perf_counter() - begun:8.2f} s       {longest:8.2f} s filling: the overview")

    def page(self, name: str, path: str, *, first: float | None = None, again: float | None = None) -> None:
        """Prints a row: the first request, and later ones; with limits in reference seconds."""
        begun = time.perf_counter()
        while self._ask(path)[0] == 202:
            time.sleep(0.1)
        seconds, times = time.perf_counter() - begun, []
        for _ in range(10):
            begun = time.perf_counter()
            status = self._ask(path)[0]
            assert status == 200, f"{path}: {status}"
            times.append(time.perf_counter() - begun)
        print(f"  {name:14} {seconds:8.2f} s first {statistics.median(times):8.3f} s again")
        for visit, measured, limit in (("first", seconds, first), ("again", statistics.median(times), again)):
            if limit is None:
                self._limits.note(f"{name}, {visit}", measured, "s")
            else:
                verdict = self._limits.check(f"{name}, {visit}", self._limits.scaled(measured), "<", limit, "s")
                print(f"  {'':14} {visit}: {verdict}")

    def memory(self, most: float | None = None) -> None:
        """Prints a row: the peak, if the system reports it, with a limit in MB."""
        status = Path(f"/proc/{self._process.pid}/status")
        if status.exists():
            lines = dict(line.split(":", 1) for line in status.read_text(encoding="utf-8").splitlines())
            megabytes = int(lines["VmHWM"].split()[0]) / 1000
            verdict = "" if most is None else self._limits.check("memory", megabytes, "<", most, "MB")
            print(f"  {'memory':14} {megabytes:8.0f} MB  {verdict}")

    def _ask(self, path: str) -> tuple[int, str, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=300)
        connection.request("GET", path, headers={"cookie": self._cookie} if self._cookie else {})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, answer.getheader("set-cookie"), body


if __name__ == "__main__":
    main()
