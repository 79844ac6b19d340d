"""Datasets of the Hugging Face Hub: the Hub's real client in processes of its own, against a server on this machine."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import duckdb
import pytest

from karat.documents.hub import HubName, _chosen, hub_name, shown
from karat.errors import BadDataset
from karat.journal import RunFolder

COMMIT, LATER = "a" * 40, "b" * 40
TOKEN = "hf_secret123"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("hf://o/n", HubName(repo="o/n")),
        (Path("hf://o/n-1.b_c?split=test"), HubName(repo="o/n-1.b_c", split="test")),
        (
            "hf://o/n?split=test&config=en-us&revision=v1.0&file=a/b*.json",
            HubName(repo="o/n", split="test", config="en-us", revision="v1.0", file="a/b*.json"),
        ),
        ("hf://o/n?file=a+b%20c.csv", HubName(repo="o/n", file="a+b c.csv")),
        ("data/hf.jsonl", None),
        ("hf", None),
    ],
)
def test_a_path_names_a_dataset_of_the_hub_also_as_a_path(path, name):
    assert hub_name(path) == hub_name(Path(path)) == name


def test_a_path_is_shown_as_it_was_written():
    assert str(Path("hf://o/n?split=test")) == "hf:/o/n?split=test"
    assert shown(Path("hf://o/n?split=test")) == "hf://o/n?split=test"
    assert shown("a/hf:/b") == "a/hf:/b"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("hf://name", "must name a dataset as hf://owner/name"),
        ("hf://o/n/data/x.parquet", "must name a dataset as hf://owner/name"),
        ("hf://../n", "must name a dataset as hf://owner/name"),
        ("hf://o/n?splt=x", r"hf:// has no option 'splt' \(did you mean 'split'\?\)"),
        ("hf://o/n?split=", "'split' is empty"),
    ],
)
def test_a_malformed_name_is_refused(path, message):
    with pytest.raises(ValueError, match=message):
        hub_name(path)


SQUAD = ["README.md", "plain_text/train-00000-of-00001.parquet", "plain_text/validation-00000-of-00001.parquet"]
PARTS = [f"data/test-0000{part}-of-00002.parquet" for part in (1, 0)]
CONFIGS = ["main/test-00000-of-00001.parquet", "socratic/test-00000-of-00001.parquet", "main/train.parquet"]


@pytest.mark.parametrize(
    ("query", "listed", "chosen"),
    [
        ("split=validation", SQUAD, [SQUAD[2]]),
        ("split=validation&config=plain_text", SQUAD, [SQUAD[2]]),
        ("split=test", [*PARTS, "data/train.parquet"], PARTS[::-1]),
        ("split=test&config=main", CONFIGS, [CONFIGS[0]]),
        ("split=test", ["test.jsonl", "test_gold.jsonl", "latest.jsonl"], ["test.jsonl"]),
        ("split=test", ["test/0000.parquet", "train/0000.parquet"], ["test/0000.parquet"]),
        ("", ["questions.csv.gz", "README.md", ".hidden.json"], ["questions.csv.gz"]),
        ("file=b*.json", ["a.json", "b1.json"], ["b1.json"]),
        ("split=dev", ["../../dev.json", "/dev/dev.json", "dev.json"], ["dev.json"]),
    ],
)
def test_the_files_of_a_split_are_found_by_their_names(query, listed, chosen):
    assert _chosen(hub_name(f"hf://o/n?{query}"), listed, (".parquet", ".jsonl", ".json", ".csv.gz")) == chosen


@pytest.mark.parametrize(
    ("query", "listed", "message"),
    [
        ("split=test", CONFIGS, "several files match: main/test.parquet, socratic/test.parquet; say which with"),
        ("", SQUAD, "several files match: plain_text/train.parquet, plain_text/validation.parquet; say which"),
        ("split=dev", SQUAD, f"no file matches: {SQUAD[1]}, {SQUAD[2]}; name one with file="),
        ("split=test", ["README.md", "load.py"], "it has no data file that karat reads"),
        ("split=test", PARTS[:1], f"only 1 of 2 parts exist: {PARTS[0]}"),
    ],
)
def test_a_split_that_is_not_clear_is_no_guess(query, listed, message):
    with pytest.raises(BadDataset) as caught:
        _chosen(hub_name(f"hf://o/n?{query}"), listed, (".parquet",))
    assert message in caught.value.faults[0].message


def test_without_the_extra_hf_a_dataset_of_the_hub_says_what_to_install(tmp_path):
    script = """
import sys; sys.modules["huggingface_hub"] = None  # as where it is not installed
from pathlib import Path
from karat.errors import MissingExtra
from karat.kinds import read_rows
try:
    read_rows(Path("hf://o/n"))
except MissingExtra as missing:
    print(missing)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.startswith("hf://o/n needs the extra 'hf': "), done.stderr


class Hub:
    """The parts of the Hub's interface that its client asks for to fetch a dataset `o/n`."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.commits, self.newest = {COMMIT: files}, COMMIT
        self.asked, hub = list[tuple[str, str, str | None]](), self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer()

            def do_HEAD(self) -> None:
                self._answer()

            def log_message(self, *_: Any) -> None:
                pass

            def _answer(self) -> None:
                path = unquote(urlsplit(self.path).path)
                hub.asked.append((self.command, path, self.headers.get("Authorization")))
                status, headers, data = hub.answer(path)
                self.send_response(status)
                for key, value in {**headers, "Content-Length": str(len(data))}.items():
                    self.send_header(key, value)
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(data)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        commit = {"/api/datasets/o/n": self.newest, "/api/datasets/o/n/revision/main": self.newest}.get(path)
        commit = commit or path.removeprefix("/api/datasets/o/n/revision/")
        if commit in self.commits:
            listed = [{"rfilename": name} for name in self.commits[commit]]
            info = {"id": "o/n", "sha": commit, "siblings": listed, "tags": []}
            return 200, {"Content-Type": "application/json"}, json.dumps(info).encode()
        commit = path.removeprefix("/api/datasets/o/n/tree/")
        if commit in self.commits:
            tree = [
                {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
                for name, data in self.commits[commit].items()
            ]
            return 200, {"Content-Type": "application/json"}, json.dumps(tree).encode()
        commit, _, name = path.removeprefix("/datasets/o/n/resolve/").partition("/")
        if (data := self.commits.get(commit, {}).get(name)) is not None:
            return 200, {"ETag": f'"{hashlib.sha1(data).hexdigest()}"', "X-Repo-Commit": commit}, data
        return 404, {"X-Error-Code": "RepoNotFound", "Content-Type": "application/json"}, b"{}"


def shard(folder: Path, first: int, end: int, answer: str = "a") -> bytes:
    """A Parquet file of the questions from `first` up to `end`."""
    with duckdb.connect() as connection:
        rows = f"SELECT 'q' || i AS question, '{answer}' || i AS answer FROM range({first}, {end}) t(i)"
        connection.execute(f"COPY ({rows}) TO '{folder / 'part.parquet'}'")
    return (folder / "part.parquet").read_bytes()


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    parts = {
        PARTS[1]: shard(tmp_path, 0, 3),
        PARTS[0]: shard(tmp_path, 3, 5),
        "data/train.parquet": shard(tmp_path, 0, 1),
    }
    made = Hub({**parts, "README.md": b"# Not fetched", "load.py": b"raise SystemExit('code of a dataset')"})
    thread = threading.Thread(target=made.server.serve_forever, daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


def karat(folder: Path, hub: Hub, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "HF_ENDPOINT": f"http://127.0.0.1:{hub.server.server_port}",
        "HF_HOME": str(folder / "home"),
        "HF_TOKEN": TOKEN,
        **env,
    }
    command = [sys.executable, "-m", "karat", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)


def experiment(folder: Path, path: str) -> None:
    text = (
        f"dataset: {{path: '{path}'}}\nagent: {{type: floor}}\njudge: {{type: overlap}}\nconditions: {{base: {{}}}}\n"
    )
    (folder / "e.yaml").write_text(text)


@pytest.mark.slow
def test_a_run_over_a_dataset_of_the_hub_keeps_the_commit_and_needs_the_hub_once(tmp_path, hub):
    pytest.importorskip("huggingface_hub", reason="needs the extra `hf`")
    experiment(tmp_path, "hf://o/n?split=test")
    first = karat(tmp_path, hub, "run", "e.yaml", "--limit", "4")
    assert first.returncode == 0, first.stderr
    fetched = [path for method, path, _ in hub.asked if method == "GET" and "/resolve/" in path]
    assert sorted(fetched) == sorted(f"/datasets/o/n/resolve/{COMMIT}/{part}" for part in PARTS)
    assert {token for _, path, token in hub.asked if "/datasets/" in path} == {f"Bearer {TOKEN}"}
    (results,) = (tmp_path / "results").iterdir()
    run = RunFolder.open(results)
    assert (run.info.dataset.path, run.info.dataset.commit) == ("hf://o/n?split=test", COMMIT)
    digests = [hashlib.sha256(hub.commits[COMMIT][part]).hexdigest() for part in sorted(PARTS)]
    assert run.info.dataset.sha256 == hashlib.sha256("".join(digests).encode()).hexdigest()
    lines = (results / "samples.jsonl").read_text().splitlines()
    assert [json.loads(line)["turns"][0]["golden"] for line in lines] == ["a0", "a1", "a2", "a3"]
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and TOKEN.encode() in file.read_bytes()]
    asked = len(hub.asked)
    offline = karat(tmp_path, hub, "check", "e.yaml", "--json", HF_HUB_OFFLINE="1")
    assert (offline.returncode, json.loads(offline.stdout)["sha256"]) == (0, run.info.dataset.sha256)
    assert len(hub.asked) == asked


@pytest.mark.slow
def test_a_resumed_run_reads_the_commit_that_it_began_with(tmp_path, hub):
    pytest.importorskip("huggingface_hub", reason="needs the extra `hf`")
    experiment(tmp_path, "hf://o/n?split=test")
    assert karat(tmp_path, hub, "run", "e.yaml", "--limit", "2").returncode == 0
    hub.commits[LATER] = {**hub.commits[COMMIT], PARTS[1]: shard(tmp_path, 0, 3, "changed")}
    hub.newest = LATER
    done = karat(tmp_path, hub, "run", "e.yaml", "--limit", "4", "--resume", "latest")
    assert done.returncode == 0, done.stderr
    (results,) = (tmp_path / "results").iterdir()
    run = RunFolder.open(results)
    assert [sample.turns[0].golden for sample in run.samples()] == ["a0", "a1", "a2", "a3"]
    answers = [line["sample"] for line in journal(results) if line["event"] == "answer"]
    assert {name: answers.count(name) for name in answers} == {"0": 3, "1": 3, "2": 3, "3": 3}
    assert not [path for _, path, _ in hub.asked if LATER in path]
    experiment(tmp_path, "hf://o/n?split=test&revision=main")  # another path: what it says now
    done = karat(tmp_path, hub, "run", "e.yaml", "--resume", "latest")
    assert done.returncode == 2
    assert "the dataset changed in samples '0', '1', '2'" in done.stderr


def journal(results: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (results / "journal.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_answers_made_elsewhere_are_scored_against_a_dataset_of_the_hub(tmp_path, hub):
    pytest.importorskip("huggingface_hub", reason="needs the extra `hf`")
    rows = [{"id": str(number), "answer": f"a{number}"} for number in range(5)]
    (tmp_path / "said.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = karat(tmp_path, hub, "score", "said.jsonl", "--dataset", "hf://o/n?split=test")
    assert done.returncode == 0, done.stderr
    (results,) = (tmp_path / "results").iterdir()
    found = RunFolder.open(results).info.dataset
    assert (found.path, found.commit) == ("hf://o/n?split=test", COMMIT)
    assert [set(line["values"].values()) for line in journal(results) if line["event"] == "score"] == [{5}] * 5


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("path", "env", "message"),
    [
        ("hf://o/gone", {}, "hf://o/gone: 1 fault\n  dataset.path: there is no such dataset on the Hub"),
        (
            "hf://o/n?split=dev",
            {},
            "hf://o/n: 1 fault\n  dataset.path: no file matches: data/test-00000-of-00002.parquet",
        ),
        ("hf://o/n?split=test", {"HF_HUB_OFFLINE": "1"}, "dataset.path: is not in the Hub's cache; load it once"),
    ],
    ids=["gone", "no such split", "offline"],
)
def test_what_cannot_be_fetched_is_a_fault_of_the_path(tmp_path, hub, path, env, message):
    pytest.importorskip("huggingface_hub", reason="needs the extra `hf`")
    experiment(tmp_path, path)
    done = karat(tmp_path, hub, "check", "e.yaml", **env)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.slow
def test_lint_reads_a_dataset_of_the_hub(tmp_path, hub):
    pytest.importorskip("huggingface_hub", reason="needs the extra `hf`")
    done = karat(tmp_path, hub, "check", "--lint", "hf://o/n?split=test")
    assert done.stdout == "hf://o/n?split=test: 5 samples; nothing contradicts itself\n", done.stderr
    done = karat(tmp_path, hub, "check", "--lint", "hf://o")
    assert (done.returncode, done.stderr.strip()) == (
        2,
        "hf://o: 1 fault\n  file: 'hf://o' must name a dataset as hf://owner/name?split=test",
    )
