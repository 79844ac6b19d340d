"""Scoring answers that are there: of a run, or of a file made elsewhere. No agent is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from karat import api, plugins
from karat.cli.output import Output
from karat.cli.progress import following
from karat.cli.values import parsed
from karat.config import Execution, Experiment
from karat.errors import BadOption
from karat.records import ScorerSpec

if TYPE_CHECKING:
    from karat.cli.options import Answers, Scorers
    from karat.engine import Limits, Outcome
    from karat.journal import RunFolder

__all__ = ["score_answers", "score_run"]

_NEVER = 10**9
"""An answer that a file does not hold is missing, whatever the share of them."""


def score_run(name: str, wanted: Scorers, answers: Answers, results: Path, output: Output) -> Outcome:
    """Scores every answer of a run that these scorers have not seen."""
    from karat import engine
    from karat.redact import Redactor

    if answers.dataset is not None or answers.settings:
        given = "--dataset" if answers.dataset is not None else "--set"
        raise BadOption(given, f"is for a file of answers, and there is no file '{name}'; a run has its own")
    run = api.open(name, results=results)
    specs = scorers_of(run, wanted)
    redact = Redactor({})
    with following(output, redact) as watch:
        rescoring = engine.rescore(
            run, specs, base=Path.cwd(), limits=limits_of(run), redact=redact, watch=watch, handle_signals=True
        )
        return asyncio.run(rescoring)


def score_answers(file: Path, wanted: Scorers, answers: Answers, results: Path, output: Output) -> Outcome:
    """Makes an ordinary run of the answers in a file."""
    from karat.redact import Redactor

    if answers.dataset is None:
        raise BadOption("--dataset", f"is needed to score {file}: the file with the questions and golden answers")
    experiment = experiment_of_answers(file, answers.dataset, wanted, answers.settings)
    output.say(*(f"warning: {text}" for text in experiment.warnings))
    with following(output, Redactor(experiment.secrets)) as watch:
        return asyncio.run(api.carry_out(experiment, results=results, watch=watch, handle_signals=True))


def scorers_of(run: RunFolder, wanted: Scorers) -> tuple[ScorerSpec, ...]:
    """The scorers that were named, or those that the run has already, whose missing scores are then made up.

    Raises BadExperiment for faults in them. A run folder never names code that is imported:
    its own `module:Class` must be named again.
    """
    if wanted:
        # An experiment of which only the scorers matter: so they are checked as in a file.
        there = {"path": str(run.path / "samples.jsonl")}
        keys = {"scorers": [], **_keys(wanted)}
        probe = Experiment(dataset=there, agent={"type": "floor"}, conditions={"any": {}}, **keys)
        probe.require_runnable()
        return probe.scorers
    specs = [ScorerSpec(type=one.type, name=one.name, options=one.options) for one in run.info.scorers]
    if not specs:
        raise BadOption("--judge", "the run has no scorer of its own: name one, e.g. --judge overlap")
    for spec in specs:
        if ":" in spec.type:
            raise BadOption(
                "--scorer", f"the run was scored by code, {spec.type}: name it, so that it is you who runs it"
            )
    return tuple(specs)


def limits_of(run: RunFolder) -> Limits:
    """How hard the run may push, as its own experiment said."""
    from karat.engine import Limits

    nested: dict[str, Any] = {}
    for key, choice in run.info.experiment.items():
        section, *rest = key.split(".")
        if section == "execution":
            here = nested
            for part in rest[:-1]:
                here = here.setdefault(part, {})
            here[rest[-1]] = choice.value
    execution = Execution.model_validate(nested)
    most, planned = execution.max_failures, run.plan().trials
    return Limits(
        max_concurrent=execution.max_concurrent,
        timeout_seconds=execution.timeout_seconds,
        judge_timeout_seconds=execution.judge_timeout_seconds,
        retry=execution.retry,
        max_failures=max(1.0, most * planned if most < 1 else most),
    )


def experiment_of_answers(answers: Path, dataset: Path, wanted: Scorers, settings: Sequence[str]) -> Experiment:
    """An experiment whose agent gives back the answers of a file.

    Its conditions and repetitions are those that the file names. Where no key is set for it,
    the samples' ids are looked for in the column that the answers have them in.
    """
    keys: dict[str, Any] = {
        "name": answers.stem,
        "dataset": {"path": str(dataset)},
        "agent": {"type": "replay", "path": str(answers.absolute())},
        "conditions": {"answers": {}},
        "execution": {"num_repetitions": 1, "max_failures": _NEVER},
        **({"judge": {"type": "overlap"}} if not wanted else {"scorers": [], **_keys(wanted)}),
    }
    for setting in settings:
        _lay_over(keys, setting)
    first = Experiment(**keys)
    held = _recorded(first)
    if "conditions" not in {setting.partition(".")[0].partition("=")[0] for setting in settings} and held.conditions:
        keys["conditions"] = {name: {} for name in held.conditions}
    if not any(setting.startswith("execution.num_repetitions=") for setting in settings):
        keys["execution"]["num_repetitions"] = max(1, held.repetitions)
    id_key = first.agent.options["id_key"]
    samples = first.load_dataset().samples
    if "id_key" not in keys["dataset"] and id_key is not None and samples and id_key in samples[0].metadata:
        keys["dataset"]["id_key"] = id_key
    return Experiment(**keys)


def _recorded(experiment: Experiment) -> Any:
    from karat.agents import AgentSetting
    from karat.mcp import Toolbox
    from karat.redact import Redactor

    toolbox = Toolbox((), redact=Redactor({}), folder=experiment.folder)
    setting = AgentSetting(folder=experiment.folder, toolbox=toolbox)
    plugin = plugins.find("agents", experiment.agent.type)
    if experiment.agent.type != "replay":
        raise BadOption("--set", "answers of a file are given back by the agent replay; agent.type cannot be changed")
    return plugins.build(plugin, experiment.agent.options, setting=setting)


def _lay_over(keys: dict[str, Any], setting: str) -> None:
    place, equals, text = setting.partition("=")
    *sections, last = place.split(".")
    if not equals or not last:
        raise BadOption(f"--set {place}", "want KEY=VALUE, e.g. --set agent.answer_key=output")
    here = keys
    for section in sections:
        here = here.setdefault(section, {})
        if not isinstance(here, dict):
            raise BadOption(f"--set {place}", f"'{section}' is a plain value")
    here[last] = parsed(f"--set {place}", text)


def _keys(wanted: Scorers) -> dict[str, Any]:
    """`judge` and `scorers` of an experiment file."""
    found: dict[str, Any] = {}
    if wanted.judge is not None:
        judge = parsed("--judge", wanted.judge)
        found["judge"] = {"type": judge} if isinstance(judge, str) else judge
    if wanted.scorers:
        found["scorers"] = [parsed("--scorer", text) for text in wanted.scorers]
    return found
