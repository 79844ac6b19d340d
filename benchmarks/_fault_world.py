"""The worlds in which faults happen: experiments of every kind and agent, and the loopback server they use."""

from __future__ import annotations

import asyncio
import json
import random
import re
import shutil
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from karat.testing.models import chat_completions
from karat.testing.models.default_response import value_of
from karat.testing.models.output import model_output
from karat.testing.models.request import Request, read_request
from karat.testing.models.router import Connection, ConnectionEnded, HttpRequest
from karat.testing.models.script import ScriptedResponse, ToolUse

PROGRAMS = Path(__file__).resolve().parent / "fault_programs"
sys.path.insert(0, str(PROGRAMS))
import ledger  # noqa: E402 -- also a program of the cases, found in their folders
import mcp_server  # noqa: E402

CONDITIONS = ("first", "second")
KINDS = {
    "command": ("golden", "conversation", "study"),
    "python": ("golden", "conversation", "study"),
    "http": ("golden", "conversation", "study"),
    "chat": ("golden", "conversation"),
    "mcp": ("golden",),
}
_SHORT_SECONDS = 3


@dataclass(frozen=True, kw_only=True)
class World:
    """What is run, fixed so that answers, scores and costs are the same anywhere and any number of times."""

    kind: str
    agent: str
    judge: bool = False  # whether a model judges; otherwise rules
    mcp: str | None = None  # stdio or http: the condition's servers
    workspace: bool = False
    asynchronous: bool = False  # the Python agent runs in the event loop

    @property
    def repetitions(self) -> int:
        """1 for agents that do not see the number of the repetition."""
        return 1 if self.agent in ("chat", "mcp") or self.kind == "study" else 2

    def __str__(self) -> str:
        more = [self.mcp and f"mcp over {self.mcp}", self.judge and "judge", self.workspace and "workspace"]
        return ", ".join(filter(None, [self.kind, self.agent, *more]))


def drawn(dice: random.Random, *, agents: tuple[str, ...], **wanted: Any) -> World:
    """A random world with one of these agents; `wanted` fixes some of its fields."""
    agent = dice.choice(agents)
    kind = wanted.get("kind") or dice.choice(KINDS[agent])
    scored = kind != "study"  # a study's own tests evaluate its answers
    mcp = dice.choice(("stdio", "http")) if agent == "mcp" else None
    if agent == "chat":
        mcp = dice.choice((None, None, "stdio", "http"))
    given = {
        "judge": scored and dice.random() < 0.25,
        "mcp": mcp,
        "workspace": scored and agent in ("command", "python") and dice.random() < 0.3,
        "asynchronous": agent == "python" and dice.random() < 0.5,
    }
    return World(agent=agent, **{**given, **wanted, "kind": kind})


def lay_out(world: World, folder: Path, *, port: int, marker: str, concurrency: int) -> None:
    """Writes the experiment, its data and programs to `folder`."""
    for program in PROGRAMS.glob("*.py"):
        shutil.copy(program, folder)
    for name in ("home", "tmp", "results"):
        (folder / name).mkdir(exist_ok=True)
    env = {"KARAT_FAULTS": marker}
    url = f"http://127.0.0.1:{port}"
    model = {"base_url": f"{url}/v1", "api_key_env": "MODEL_KEY"}
    agents: dict[str, dict[str, Any]] = {
        "command": {"command": ["python", "-S", "-E", str(folder / "command_agent.py")], "env": env},
        "python": {"target": "python_agent:answer" + "_async" * world.asynchronous},
        "http": {
            "url": f"{url}/ask",
            "body": {name: "{{ " + name + " }}" for name in ("question", "sample", "condition", "repetition", "turn")},
        },
        "chat": {"model": "openai:agent", **model},
        "mcp": {},
    }
    experiment: dict[str, Any] = {
        "name": "faults",
        "dataset": _dataset(world, folder),
        "agent": {"type": world.agent, **agents[world.agent]},
        "conditions": {name: _condition(world, name) for name in CONDITIONS},
        "mcp_servers": {f"shelf_{name}": _server(world, name, folder, url, env) for name in CONDITIONS if world.mcp},
        "prices": {"openai:agent": {"input": 1000, "output": 2000}, "openai:judge": {"input": 1000, "output": 2000}},
        "execution": {
            "num_repetitions": world.repetitions, "max_concurrent": concurrency, "max_failures": 100_000,
            "retry": {"max_attempts": 2, "initial_backoff_seconds": 0.01, "max_backoff_seconds": 0.02},
        },
    }  # fmt: skip
    if world.kind != "study":
        experiment["scorers"] = ["contains"]
    if world.judge:
        experiment["judge"] = {"model": "openai:judge", **model}
    (folder / "experiment.yaml").write_text(yaml.safe_dump(experiment, sort_keys=False))


def short_limits(world: World) -> list[str]:
    """Options of `karat run` that keep all waits short."""
    keys = ["execution.timeout_seconds", "execution.judge_timeout_seconds"]
    if world.mcp:
        limits = ("init_timeout_seconds", "call_timeout_seconds")
        keys += [f"mcp_servers.shelf_{name}.{limit}" for name in CONDITIONS for limit in limits]
    return [part for key in keys for part in ("--set", f"{key}={_SHORT_SECONDS}")]


def _condition(world: World, name: str) -> dict[str, Any]:
    servers = {"mcp_servers": [f"shelf_{name}"]} if world.mcp else {}
    return {"system_prompt": f"You are {name}.", **servers, **({"workspace": "start"} if world.workspace else {})}


def _server(world: World, condition: str, folder: Path, url: str, env: dict[str, str]) -> dict[str, Any]:
    if world.mcp == "http":
        return {"url": f"{url}/mcp/{condition}"}
    program = ["-S", "-E", str(folder / "mcp_server.py"), condition]
    return {"command": "python", "args": program, "env": env}


def _dataset(world: World, folder: Path) -> dict[str, Any]:
    if world.workspace:
        (folder / "start").mkdir()
        (folder / "start" / "README").write_text("Write your notes here.\n" * 50)
    if world.kind == "study":
        _write_study(folder / "study")
        return {"kind": "study", "path": "study/study.yaml"}
    if world.kind == "golden":
        rows: list[dict[str, Any]] = [
            {
                "id": f"s{number}", "question": f"What is limit {number}? [s{number}|0]",
                "answer": f"{number % 5} items",
                "tool": "look_up", "arguments": {"key": f"s{number}"},
            }
            for number in range(8)
        ]  # fmt: skip
    else:
        rows = [
            {
                "conversation_id": f"c{number}",
                "turn": turn,
                "question": f"And? [c{number}|{turn}]",
                "answer": str(number),
            }
            for number in range(3)
            for turn in range(3)
        ]
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {"path": "questions.jsonl", **({"id_key": "id"} if world.kind == "golden" else {"kind": "conversation"})}


def _write_study(folder: Path) -> None:
    """Writes a study: two tasks for four individuals, and a game of two rounds for a group of three."""
    (folder / "materials").mkdir(parents=True)
    texts = {"one": "First question, {{ profile.name }}?", "two": "Second question?"}
    texts |= {
        "round": "Round {{ round }}, {{ profile.name }}: say a number.",
        "next": "The mean was {{ others.mean }}.",
    }
    for name, text in texts.items():
        (folder / "materials" / f"{name}.md").write_text(text)
    number = {"type": "number", "range": [0, 100]}
    rounds: dict[str, Any] = {
        "fields": {"number": number},
        "count": 2,
        "group": 3,
        "first": "materials/round.md",
        "prompt": "materials/next.md",
    }
    tasks = [{"prompt": f"materials/{name}.md", "fields": {f"{name}_number": number}} for name in ("one", "two")]
    test = {
        "id": "T1", "kind": "ttest_one", "measure": "one_number", "against": 20.0, "expect": "greater",
        "human": {"mean": 30.0, "sd": 10.0, "n": 4, "t": 2.0}, "n_reason": "made up",
    }  # fmt: skip
    study = {
        "study": "numbers", "title": "Numbers", "source": "Nobody (1999)", "domain": "strategic",
        "participants": {"per_arm": "human", "profile": {"name": ["Ada", "Bo", "Cy"]}},
        "arms": {"alone": {"n": 4, "tasks": tasks}, "game": {"n": 3, "rounds": rounds}},
        "findings": [{"id": "F1", "claim": "Numbers are large.", "tests": [test]}],
    }  # fmt: skip
    (folder / "study.yaml").write_text(yaml.safe_dump(study, sort_keys=False))


class LoopbackServer(threading.Thread):
    """`with LoopbackServer(folder) as server`: an HTTP agent, a chat model, a judge and MCP servers in one.

    It keeps a ledger of what it delivered completely, and fails as `faults.json` in the folder says.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self._folder = folder
        self._ready, self._loop = threading.Event(), asyncio.new_event_loop()
        self.port = 0
        self._open: set[asyncio.Task[None]] = set()
        self.crashes: list[str] = []

    def __enter__(self) -> LoopbackServer:
        self.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ending.set)
        self.join()

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._open)

    def run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._ending = asyncio.Event()
        server = await asyncio.start_server(self._begin, "127.0.0.1", 0, limit=2**18)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._ending.wait()
        server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = self._loop.create_task(self._converse(Connection(reader, writer)))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _converse(self, connection: Connection) -> None:
        try:
            while True:
                call = await connection.next_request()
                await self._answer(connection, call)
        except ConnectionEnded:
            pass
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            self.crashes.append(f"{type(error).__name__}: {error}")
        finally:
            connection.close()

    async def _answer(self, connection: Connection, call: HttpRequest) -> None:
        if call.method != "POST":
            await connection.answer(405, b"", {})
            return
        body = json.loads(call.body)
        if call.path == "/ask":
            key = "{sample}|{condition}|{repetition}|{turn}".format(**body)
            reply = ledger.answer(key, body["question"])
            fault = ledger.asked("agent", key, self._folder)
            await self._send(connection, "agent", key, reply, fault, reply)
        elif call.path.startswith("/mcp/"):
            await self._mcp(connection, body, call.path.removeprefix("/mcp/"))
        else:
            await self._model(connection, call, body)

    async def _model(self, connection: Connection, call: HttpRequest, body: dict[str, Any]) -> None:
        request = read_request("chat", number=0, path=call.path, headers=call.headers, body=body)
        if request.model == "judge":
            keys = re.findall(r"\((\w+\|\w+\|\d+\|\d+)\)", request.question)
            at, key = "judge", keys[-1]
            fault = ledger.asked(at, key, self._folder)
            values = value_of(request.tools[0].schema, key)
            if fault == "out_of_range":
                values = {name: {**one, "score": 99} if isinstance(one, dict) else one for name, one in values.items()}
            say: dict[str, Any] = {"tool_calls": (ToolUse(name=request.tools[0].name, arguments=values),)}
        else:
            at, key = "agent", _key_of(request)
            say = {"text": ledger.answer(key, "")["text"]}
            if request.tools and not request.tool_results:
                at, say = "step", {"tool_calls": (ToolUse(name="look_up", arguments={"key": key}),)}
            fault = ledger.asked(at, key, self._folder)
            await asyncio.sleep(0.01)
        usage = ledger.answer(key, "")["usage"]
        tokens = {"input": usage["input_tokens"], "output": usage["output_tokens"]}
        output = model_output(ScriptedResponse.model_validate({**say, "usage": tokens}), request)
        reply = {"text": say.get("text", ""), "dollars": tokens["input"] / 1000 + tokens["output"] / 500}
        await self._send(connection, at, key, chat_completions.whole(output), fault, reply)

    async def _mcp(self, connection: Connection, body: dict[str, Any], condition: str) -> None:
        if "id" not in body or "method" not in body:
            await connection.answer(202, b"", {})
            return
        step, key = body["method"], mcp_server.key_of(body, condition)
        fault = ledger.asked(f"mcp {step}", key, self._folder)
        answer = {"jsonrpc": "2.0", "id": body["id"], **mcp_server.result_of(body, key)}
        sent = mcp_server.lie(step, answer, fault)
        fault = "reset" if fault == "crash" else None if sent is not answer else fault
        await self._send(
            connection,
            "tool" if step == "tools/call" else step,
            key,
            sent,
            fault,
            {**ledger.answer(key, ""), "dollars": 0.0},
        )

    async def _send(
        self, connection: Connection, at: str, key: str, value: dict[str, Any], fault: str | None, reply: dict[str, Any]
    ) -> None:
        """Sends the answer, or the fault; `reply` goes into the ledger once it has been sent completely."""
        body, headers = json.dumps(value).encode(), {"content-type": "application/json"}
        match fault:
            case "status 429":
                await connection.answer(429, b'{"error": {"message": "slowly"}}', {**headers, "retry-after": "0"})
            case "status 500":
                await connection.answer(500, b"<html>out of order</html>", {"content-type": "text/html"})
            case "garbage":
                await connection.answer(200, b'{"text": \xff\x00 and no JSON', headers)
            case "truncated":
                await connection.answer(200, body, headers, cut=len(body) // 2)
                raise ConnectionEnded
            case "hang":
                await connection.wait(None)
            case "reset":
                raise ConnectionEnded
            case "huge":
                await connection.answer(200, b'{"text": "' + b"x" * 50_000_000 + b'"}', headers)
            case "deep":
                await connection.answer(200, b'{"text": ' + b"[" * 200_000, headers)
            case "nan":
                await connection.answer(200, json.dumps({**value, "dollars": float("nan")}).encode(), headers)
            case _:
                await connection.answer(200, body, headers)
                if fault in (None, "out_of_range"):
                    ledger.delivered(at, key, reply["text"], reply["dollars"], self._folder)


def _key_of(request: Request) -> str:
    """The question and condition of a request to the chat model."""
    sample, turn = re.findall(r"\[(\w+)\|(\d+)\]", request.question)[-1]
    condition = request.system.removeprefix("You are ").removesuffix(".")
    return f"{sample}|{condition}|0|{turn}"
