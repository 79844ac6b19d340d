"""What a run folder says of how a run was made, and of each part of it that was run later."""

from __future__ import annotations

import hashlib
import os
import platform
import socket
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import msgspec
import pytest

import karat
from karat.config import load
from karat.execution.plan import Plan, Shard, plan
from karat.execution.provenance import now, resumed, run_info
from karat.execution.setup import experiment_scorers
from karat.journal import DatasetInfo, KeptFile, PlanInfo, Resume, RunInfo, ServerInfo
from karat.tool_use import Offered

Write = Callable[..., Path]

SERVERS = (ServerInfo(name="docs", digest="d", tools=("search",)),)
KEPT = (KeptFile(name="n", file="a", sha256="0", digest="1"),)


AGENT = """
from pydantic import BaseModel

class Options(BaseModel):
    model: str | None = None

class Agent:
    Options = Options
    context = ("skills", "plugins")

    async def ask(self, condition, sample, turn, history):
        raise NotImplementedError
"""


def recent(text: str) -> bool:
    """Whether it is a time of this minute, in UTC, with milliseconds."""
    at = datetime.fromisoformat(text)
    return text == at.isoformat(timespec="milliseconds") and abs((datetime.now(UTC) - at).total_seconds()) < 60


def digest(prompt: str) -> str:
    return hashlib.sha256(prompt.encode()).hexdigest()


@pytest.fixture
def file(experiment: Write, tmp_path: Path) -> Path:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "SKILL.md").write_text("---\nname: tables\ndescription: d\n---\n")
    (tmp_path / "house-style" / "skills").mkdir(parents=True)
    return experiment(
        AGENT,
        version="1.5",
        agent={"type": f"agent_of_{tmp_path.name.replace('-', '_')}:Agent", "model": "gpt-4o"},
        mcp_servers={"docs": {"type": "stdio", "command": "x"}, "web": {"type": "stdio", "command": "y"}},
        conditions={
            "plain": {},
            "full": {
                "system_prompt": "Be brief.",
                "mcp_servers": ["docs", "web"],
                "skills": ["tables"],
                "plugins": ["house-style"],
            },
        },
    )


def test_a_run_says_of_what_it_was_made(file: Path) -> None:
    loaded = load(file)
    dataset = loaded.load_dataset()
    selected = plan(loaded, dataset)
    scorers = experiment_scorers(loaded)
    info = run_info(loaded, dataset, selected, scorers, servers=SERVERS, source={"file": "said"}, kept=KEPT)
    plain, full = loaded.conditions
    assert recent(info.created)
    assert info.versions["python"] == platform.python_version()
    assert info.versions["karat"] == karat.__version__
    assert msgspec.structs.replace(info, created="", versions={}) == RunInfo(
        format=2,
        run="",
        name="small",
        version="1.5",
        created="",
        kind="golden",
        plan=PlanInfo(samples=3, conditions=("plain", "full"), repetitions=2),
        dataset=DatasetInfo(
            kind="golden",
            path=str(file.with_name("questions.jsonl")),
            sha256=hashlib.sha256(file.with_name("questions.jsonl").read_bytes()).hexdigest(),
            samples=3,
            first_row={"question": "q0  [question]", "golden": "a0  [answer]"},
        ),
        experiment=dict(loaded.resolved),
        conditions={"plain": plain.digest, "full": full.digest},
        prompts={"plain": digest(""), "full": digest("Be brief.")},
        agents={"plain": plain.agent.digest, "full": full.agent.digest},
        agent_type=loaded.agent.type,
        agent_model="gpt-4o",
        scorers=tuple(used.info for used in scorers),
        servers=SERVERS,
        condition_servers={"plain": (), "full": ("docs", "web")},
        condition_offers={"full": (Offered("skill", "tables"), Offered("plugin", "house-style"))},
        source={"file": "said"},
        kept=KEPT,
        host=f"{platform.system()} {platform.machine()}",
    )


def test_rows_that_nothing_depends_on_and_a_shard_are_in_it_too(file: Path) -> None:
    loaded = load(file)
    dataset = msgspec.structs.replace(loaded.load_dataset(), unread=4, understood=None, commit="c0ffee")
    selected = plan(loaded, dataset)
    shard = Plan(selected.samples, selected.conditions, 1, Shard(2, 3))
    info = run_info(loaded, dataset, shard, (), servers=(), source={}, kept=())
    assert (info.dataset.samples, info.dataset.commit, info.dataset.first_row) == (7, "c0ffee", {})
    assert (info.plan.samples, info.plan.repetitions, info.shard) == (3, 1, "2/3")


def test_the_path_of_a_dataset_is_as_the_file_names_it(file: Path) -> None:
    file.write_text(file.read_text().replace(str(file.with_name("questions.jsonl")), "questions.jsonl"))
    loaded = load(file)
    dataset = loaded.load_dataset()
    info = run_info(loaded, dataset, plan(loaded, dataset), (), servers=(), source={}, kept=())
    assert info.dataset.path == "questions.jsonl"


def test_an_agent_without_a_model_names_none(experiment: Write) -> None:
    loaded = load(experiment(agent={"type": "floor"}))
    dataset = loaded.load_dataset()
    info = run_info(loaded, dataset, plan(loaded, dataset), (), servers=(), source={}, kept=())
    assert (info.agent_type, info.agent_model) == ("floor", None)


def test_a_later_part_of_a_run_says_what_it_asks_and_where_it_runs(file: Path) -> None:
    loaded = load(file)
    selected = plan(loaded, loaded.load_dataset())
    scorers = tuple(used.info for used in experiment_scorers(loaded))
    event = resumed("run", selected, samples=9, scorers=scorers, kept=KEPT, servers=SERVERS)
    plain, full = loaded.conditions
    assert recent(event.at)
    assert event.versions["karat"] == karat.__version__
    assert msgspec.structs.replace(event, at="", versions={}) == Resume(
        at="",
        versions={},
        host=socket.gethostname(),
        pid=os.getpid(),
        plan=PlanInfo(samples=9, conditions=("plain", "full"), repetitions=2),
        conditions={"plain": plain.digest, "full": full.digest},
        agents={"plain": plain.agent.digest, "full": full.agent.digest},
        prompts={"plain": digest(""), "full": digest("Be brief.")},
        condition_servers={"plain": (), "full": ("docs", "web")},
        condition_offers={"full": (Offered("skill", "tables"), Offered("plugin", "house-style"))},
        command="run",
        scorers=scorers,
        kept=KEPT,
        servers=SERVERS,
    )
    alone = resumed("run", selected, scorers=())
    assert alone.plan is not None
    assert (alone.plan.samples, alone.kept, alone.servers) == (3, (), ())


def test_scoring_again_asks_nothing() -> None:
    event = resumed("score", scorers=())
    assert (event.command, event.plan, event.conditions, event.agents) == ("score", None, {}, {})
    assert (event.prompts, event.condition_servers, event.condition_offers) == ({}, {}, {})


def test_the_versions_are_those_of_the_libraries_that_are_loaded(file: Path) -> None:
    pytest.importorskip("genai_prices")
    assert resumed("score", scorers=()).versions["genai-prices"] == version("genai-prices")
    before = sys.modules.pop("acp", None)
    try:
        assert "agent-client-protocol" not in resumed("score", scorers=()).versions
    finally:
        if before is not None:
            sys.modules["acp"] = before


def test_now_is_in_utc_with_milliseconds() -> None:
    assert recent(now())
    assert now().endswith("+00:00")
