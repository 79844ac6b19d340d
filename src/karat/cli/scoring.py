"""Scores the answers of a run again: with which scorers, limits and secrets."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from pydantic import ValidationError

from karat import api, plugins
from karat.cli.ending import keep_hidden
from karat.cli.live import following
from karat.cli.output import Output, typed
from karat.cli.printed import aside
from karat.cli.values import parsed
from karat.config import Execution, Experiment
from karat.config.advice import judge_advice, keys_of, models_of
from karat.documents.nodes import dotted
from karat.documents.validation import explain
from karat.errors import BadOption, BadRun
from karat.execution import Limits, rescore, run_in_own_loop
from karat.formats import excerpt
from karat.index import plan_of, trusted
from karat.installation import shown_path
from karat.records import JsonObject, ScorerSpec
from karat.redact import Redactor

if TYPE_CHECKING:
    from karat.analysis import Summary
    from karat.cli.options import Answers, Scorers
    from karat.execution import Outcome
    from karat.journal import RunFolder, ScorerInfo

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*(-[A-Za-z0-9_]+)*")
# unquoted, these are not text in YAML
_NOT_TEXT = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def score_run(
    name: str, wanted: Scorers, answers: Answers, results: Path, output: Output
) -> Outcome:
    """Scores every answer of a run that these scorers have not scored."""
    flags: dict[str, object] = {
        "--dataset": answers.dataset,
        "--set": answers.settings,
        "--map": answers.columns,
    }
    flags |= {
        f"--{part}": getattr(answers, part) for part in ("question", "golden", "answer", "cluster")
    }
    flags |= {"--strict": answers.strict, "--skip-unreadable": answers.skip_unreadable}
    given = next((flag for flag, value in flags.items() if value), None)
    if given is not None:
        raise BadOption(
            given,
            f"is for a file of answers, and there is no file '{name}'; a run has its own dataset",
        )

    run = api.open(name, results=results, to_write=True)
    keep_hidden(secrets_of(run))
    with aside():
        specs, named = scorers_of(run, wanted)

    # the API keys of the scorers' models, by environment variable
    models = [model for spec in specs for model in models_of(spec.options)]
    names = set(keys_of(models, os.environ))
    for spec in specs:
        for part in (spec.options, *(spec.options.get("judges") or ())):
            if isinstance(part, Mapping) and part.get("api_key_env"):
                names.add(str(part["api_key_env"]))

    keys = {name: os.environ[name] for name in names if name in os.environ}
    secrets = {**secrets_of(run), **named, **keys}
    keep_hidden(secrets)
    redact = Redactor(secrets)

    asked = {key: choice.value for key, choice in run.info.experiment.items()}
    agents = {
        str(value)
        for key, value in asked.items()
        if value
        and (
            key == "agent.model" or (key.startswith("conditions.") and key.endswith(".agent.model"))
        )
    }
    advice = []
    for spec in specs:
        for key, message in judge_advice(spec.options, agents):
            advice.append(f"{spec.name}.{key}: {message}")

    output.say(*(f"warning: {redact(text)}" for text in advice))
    with trusted(run):
        execution = execution_of(run)
        planned = plan_of(run).trials
        limits = Limits.of(execution, planned)
        check_answers(run)

    with following(output, redact) as status, trusted(run):
        rescoring = rescore(
            run,
            specs,
            base=Path.cwd(),
            limits=limits,
            redact=redact,
            status=status,
            handle_signals=True,
        )
        return run_in_own_loop(rescoring)


def scorers_of(run: RunFolder, wanted: Scorers) -> tuple[tuple[ScorerSpec, ...], Mapping[str, str]]:
    """The named scorers, or else the run's own, which then add their missing scores.

    Also the secrets in their options. Raises BadExperiment for faults in them. Code is never
    imported because a run folder names it: you must name its `module:Class` again.
    """
    if wanted:
        with trusted(run):
            # BadRun if they cannot be read: the experiment below would blame a dataset
            next(run.samples(), None)

        # An experiment whose scorers alone matter, so that they are checked as in a file.
        there = {"path": str(run.path / "samples.jsonl")}
        keys = {"scorers": [], **scorer_keys(wanted)}
        probe = Experiment(dataset=there, agent={"type": "floor"}, conditions={"any": {}}, **keys)
        return probe.scorers, probe.secrets

    if not run.info.scorers:
        raise BadOption("--judge", "the run has no scorer: name one, e.g. --judge overlap")
    code = []
    for scorer in run.info.scorers:
        # the options of some name a program
        named = ":" in scorer.type
        if named or getattr(plugins.find("scorers", scorer.type), "runs_programs", False):
            code.append(scorer.type)

    if code:
        command = typed("score", shown_path(run.path), in_words(run.info.scorers))
        problem = (
            f"the run was scored by code, {', '.join(code)}, and karat runs no code that only a "
            f"run folder names"
        )
        raise BadOption(
            "--scorer",
            f"{problem}; name it yourself, where its module can be imported:\n  {command}",
        )

    return own_scorers(run), {}


def scorer_keys(wanted: Scorers) -> JsonObject:
    """`judge` and `scorers` as in an experiment file."""
    keys: JsonObject = {}
    if wanted.judge is not None:
        judge = parsed("--judge", wanted.judge)
        if isinstance(judge, str):
            # The judge of `overlap`, `module:Class`, or a model: `provider:model` or
            # `provider/model`
            module, separator, attribute = judge.replace("/", ":", 1).partition(":")
            is_code = (
                "/" not in judge
                and attribute.isidentifier()
                and (attribute[0].isupper() or Path(*module.split(".")).with_suffix(".py").exists())
            )
            if separator and not is_code:
                keys["judge"] = {"model": judge}
            else:
                keys["judge"] = {"type": judge}
        else:
            keys["judge"] = judge

    if wanted.scorers:
        keys["scorers"] = [parsed("--scorer", text) for text in wanted.scorers]
    if wanted.extract is not None:
        how, _, pattern = wanted.extract.partition(":")
        if how not in ("final", "json", "last_number", "regex") or bool(pattern) != (
            how == "regex"
        ):
            shown = excerpt(wanted.extract, 60)
            raise BadOption(
                "--extract", f"expected final, json, last_number or regex:PATTERN, got '{shown}'"
            )

        numeric = {"numeric": {"extract": how, **({"pattern": pattern} if pattern else {})}}
        keys["scorers"] = [numeric, *keys.get("scorers", [])]

    return keys


def missing_scores(run: RunFolder, summary: Summary) -> list[str]:
    """The options with which `karat score RUN` adds the missing ones of the scores shown."""
    shown = summary.provenance.scorers
    used = []
    for scorer in run.scorers():
        if shown.get(scorer.name) == scorer.scoring:
            used.append(scorer)

    original = {scorer.scoring for scorer in run.info.scorers}
    if all(scorer.scoring in original and ":" not in scorer.type for scorer in used):
        return []
    return in_words(used)


def in_words(scorers: Iterable[ScorerInfo]) -> list[str]:
    """Scorers as command-line options.

    >>> from karat.journal import ScorerInfo
    >>> in_words(
    ...     [
    ...         ScorerInfo(
    ...             name="flaky", type="sc:Flaky", scoring="", metrics=(), options={"times": 2}
    ...         )
    ...     ]
    ... )
    ['--scorer', '{type: "sc:Flaky", name: flaky, times: 2}']
    """
    values = ({"type": scorer.type, "name": scorer.name, **scorer.options} for scorer in scorers)
    return [word for value in values for word in ("--scorer", _flow(value))]


def _flow(value: object) -> str:
    """YAML on one line, without single quotes if possible: the shell needs those."""
    if isinstance(value, Mapping):
        return (
            f"{{{', '.join(f'{_flow(str(key))}: {_flow(below)}' for key, below in value.items())}}}"
        )

    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_flow, value))}]"
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _NOT_TEXT:
        return value
    return json.dumps(value, ensure_ascii=False)


def own_scorers(run: RunFolder) -> tuple[ScorerSpec, ...]:
    """The scorers the run started with. Raises BadRun if their options are invalid."""

    for scorer in run.info.scorers:
        plugin = plugins.find("scorers", scorer.type, allow_code=False)
        _, faults = plugins.check_options(plugin, scorer.options, place=f"scorer '{scorer.name}'")
        if faults:
            raise BadRun(run.path, f"run.json is damaged: {'; '.join(map(str, faults))}")

    return tuple(
        ScorerSpec(type=scorer.type, name=scorer.name, options=scorer.options)
        for scorer in run.info.scorers
    )


def execution_of(run: RunFolder) -> Execution:
    """`execution` of the run's own experiment. Raises BadRun if it is invalid."""
    nested: JsonObject = {}
    for key, choice in run.info.experiment.items():
        section, *parts = key.split(".")
        here: Any = nested
        for part in parts[:-1] if section == "execution" else ():
            if isinstance(here, dict):
                here = here.setdefault(part, {})
            else:
                here = None

        if section == "execution" and parts and isinstance(here, dict):
            here[parts[-1]] = choice.value

    try:
        return Execution.model_validate(nested)
    except ValidationError as error:
        problems = [
            f"execution.{dotted(fault.place)}: {fault.message}"
            for fault in explain(error, nested, Execution)
        ]
        raise BadRun(run.path, f"run.json is damaged: {'; '.join(problems)}") from error


class _Asked(msgspec.Struct):
    sample: str


def check_answers(run: RunFolder) -> None:
    """Raises BadRun if an answer's sample is missing from the run: a scorer needs both."""
    known = {sample.id for sample in run.samples()}
    decode = msgspec.json.Decoder(_Asked).decode
    for number, _, line in run.numbered_lines():
        if not line.startswith(b'{"event":"answer"'):
            continue
        try:
            name = decode(line).sample
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadRun(run.path, f"line {number} of the journal is damaged: {error}") from error

        if name not in known:
            raise BadRun(
                run.path,
                f"samples.jsonl lacks '{name}', which line {number} of the journal answers",
            )


def secrets_of(run: RunFolder) -> dict[str, str]:
    """The run's secrets, name → value, as far as the environment of this process has them.

    A run folder holds secrets only as `${NAME}`, and lists those that are in no setting under
    `secrets`.
    """
    settings = {key: choice.value for key, choice in run.info.experiment.items()}
    listed = settings.get("secrets")
    names = {
        name
        for text in _texts([settings, [scorer.options for scorer in run.info.scorers]])
        for name in _VARIABLE.findall(text)
    }
    if isinstance(listed, list):
        names |= {name for name in listed if isinstance(name, str)}
    else:
        names |= set()

    return {name: os.environ[name] for name in sorted(names) if name in os.environ}


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for below in value.values():
            yield from _texts(below)
    elif isinstance(value, (list, tuple)):
        for below in value:
            yield from _texts(below)
