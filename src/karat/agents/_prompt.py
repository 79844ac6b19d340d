"""What an agent outside karat is given for one turn: the prompt, the history, and the servers of
its condition.
"""

from __future__ import annotations

from pathlib import Path

from karat.mcp import Toolbox, launch_command
from karat.records import Condition, History, JsonObject, Sample, Trial, Turn


def prompt(sample: Sample, turn: Turn, *, first: bool) -> str:
    """The question, preceded by the sample's materials if it is the first of its session."""
    if sample.materials is None or not first:
        return turn.question
    return f"{sample.materials}\n\n{turn.question}"


def prompt_and_history(
    sample: Sample, turn: Turn, history: History, *, remembers: bool = True, bare: bool = False
) -> tuple[str, list[dict[str, str]]]:
    """The prompt, and the earlier questions with their answers; the materials precede the first
    question.

    Not `remembers`: the agent does not receive the history, so the materials precede every
    question. `bare`: it receives the materials separately.
    """
    past = []
    for number, (earlier, reply) in enumerate(history):
        past.append(
            {
                "question": earlier.question
                if bare
                else prompt(sample, earlier, first=number == 0),
                "answer": reply.text,
            }
        )

    return turn.question if bare else prompt(sample, turn, first=not history or not remembers), past


def trial_values(
    condition: Condition,
    sample: Sample,
    trial: Trial,
    number: int,
    *,
    folder: Path,
    toolbox: Toolbox,
) -> JsonObject:
    """What an agent may take in addition to the question and the history, by its documented
    names.
    """
    return {
        "system_prompt": condition.system_prompt,
        "mcp_servers": client_config(condition, folder, toolbox),
        "materials": sample.materials,
        "sample": sample.id,
        "metadata": sample.metadata,
        "condition": condition.name,
        "repetition": trial.repetition,
        "turn": number,
        "seed": trial.seed,
    }


def client_config(
    condition: Condition, folder: Path, toolbox: Toolbox
) -> dict[str, dict[str, object]]:
    """Server name → the configuration that MCP clients take: type, command, args and env, or type,
    url and headers.

    Local servers are started by karat's launcher, so they see only PATH, HOME, LANG and their own
    `env`. Where traffic is recorded or replayed, every server is a local one: karat's proxy, valid
    for the current attempt.
    """
    config: dict[str, dict[str, object]] = {}
    for server in condition.mcp_servers:
        started = toolbox.proxy_command(server)
        if started is None and server.type == "stdio":
            started = launch_command(server, folder=folder)
        if started is not None:
            command, env = started
            config[server.name] = {
                "type": "stdio",
                "command": command[0],
                "args": command[1:],
                "env": env,
            }
        else:
            config[server.name] = {
                "type": server.type,
                "url": server.url,
                "headers": dict(server.headers),
            }

    return config
