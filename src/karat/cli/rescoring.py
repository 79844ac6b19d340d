"""What a run folder says of its scorers: the command that names them again, their limits, its secrets."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from karat.errors import BadRun
from karat.records import ScorerSpec

if TYPE_CHECKING:
    from karat.analysis import Summary
    from karat.config import Execution
    from karat.journal import RunFolder, ScorerInfo

__all__ = ["check_answers", "execution_of", "in_words", "missing_scores", "own_scorers", "secrets_of"]

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*(-[A-Za-z0-9_]+)*")
_NOT_TEXT = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}  # a plain one would be no text in YAML
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def missing_scores(run: RunFolder, summary: Summary) -> list[str]:
    """The options with which `karat score RUN` adds the scores that are shown and missing."""
    shown = summary.provenance.scorers
    used = [scorer for scorer in run.scorers() if shown.get(scorer.name) == scorer.scoring]
    original = {scorer.scoring for scorer in run.info.scorers}
    if all(scorer.scoring in original and ":" not in scorer.type for scorer in used):
        return []
    return in_words(used)


def in_words(scorers: Iterable[ScorerInfo]) -> list[str]:
    """Scorers as options of a command.

    >>> from karat.journal import ScorerInfo
    >>> in_words([ScorerInfo(name="flaky", type="sc:Flaky", scoring="", metrics=(), options={"times": 2})])
    ['--scorer', '{type: "sc:Flaky", name: flaky, times: 2}']
    """
    values = ({"type": scorer.type, "name": scorer.name, **scorer.options} for scorer in scorers)
    return [word for value in values for word in ("--scorer", _flow(value))]


def _flow(value: Any) -> str:
    """YAML on one line, without a single quote where that can be: shells have their own use for it."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_flow(str(key))}: {_flow(below)}' for key, below in value.items())}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_flow, value))}]"
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _NOT_TEXT:
        return value
    return json.dumps(value, ensure_ascii=False)


def own_scorers(run: RunFolder) -> tuple[ScorerSpec, ...]:
    """The scorers that the run began with. Raises BadRun where their options are none that they take."""
    from karat import plugins

    for scorer in run.info.scorers:
        plugin = plugins.find("scorers", scorer.type, allow_code=False)
        _, faults = plugins.check_options(plugin, scorer.options, place=f"scorer '{scorer.name}'")
        if faults:
            raise BadRun(str(run.path), f"run.json is damaged: {'; '.join(map(str, faults))}")
    return tuple(ScorerSpec(type=scorer.type, name=scorer.name, options=scorer.options) for scorer in run.info.scorers)


def execution_of(run: RunFolder) -> Execution:
    """`execution` of the run's own experiment. Raises BadRun where it is none."""
    from pydantic import ValidationError

    from karat.config import Execution
    from karat.documents.nodes import dotted
    from karat.documents.validation import explain

    nested: dict[str, Any] = {}
    for key, choice in run.info.experiment.items():
        section, *rest = key.split(".")
        here: Any = nested
        for part in rest[:-1] if section == "execution" else ():
            here = here.setdefault(part, {}) if isinstance(here, dict) else None
        if section == "execution" and rest and isinstance(here, dict):
            here[rest[-1]] = choice.value
    try:
        return Execution.model_validate(nested)
    except ValidationError as error:
        problems = [f"execution.{dotted(one.place)}: {one.message}" for one in explain(error, nested, Execution)]
        raise BadRun(str(run.path), f"run.json is damaged: {'; '.join(problems)}") from error


class _Asked(msgspec.Struct):
    sample: str


def check_answers(run: RunFolder) -> None:
    """Raises BadRun where an answer is to a sample that the run does not have: a scorer needs both."""
    known = {sample.id for sample in run.samples()}
    decode = msgspec.json.Decoder(_Asked).decode
    for number, line in enumerate(run.lines(), start=1):
        if not line.startswith(b'{"event":"answer"'):
            continue
        try:
            name = decode(line).sample
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadRun(str(run.path), f"line {number} of the journal is damaged: {error}") from error
        if name not in known:
            raise BadRun(str(run.path), f"samples.jsonl lacks '{name}', which line {number} of the journal answers")


def secrets_of(run: RunFolder) -> dict[str, str]:
    """Name → value of the run's secrets, as far as this process's environment has them.

    A run folder holds secrets as `${NAME}` only, and lists under `secrets` those that stand in no setting.
    """
    settings = {key: choice.value for key, choice in run.info.experiment.items()}
    listed = settings.get("secrets")
    names = {
        name
        for text in _texts([settings, [one.options for one in run.info.scorers]])
        for name in _VARIABLE.findall(text)
    }
    names |= {name for name in listed if isinstance(name, str)} if isinstance(listed, list) else set()
    return {name: os.environ[name] for name in sorted(names) if name in os.environ}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for below in value.values():
            yield from _texts(below)
    elif isinstance(value, (list, tuple)):
        for below in value:
            yield from _texts(below)
