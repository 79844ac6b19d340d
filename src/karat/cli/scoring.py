"""Scores existing answers: of a run, or of a file made elsewhere. No agent is asked."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from karat import api, plugins
from karat.cli.answer_files import in_one_file, mapped_columns, named_columns, report_faults
from karat.cli.ending import keep_hidden
from karat.cli.live import following
from karat.cli.output import Output, typed
from karat.cli.printed import aside
from karat.cli.rescoring import check_answers, execution_of, in_words, own_scorers, secrets_of
from karat.cli.values import parsed
from karat.config import Experiment
from karat.config.advice import judge_advice, keys_of, models_of
from karat.errors import BadDataset, BadOption, Fault
from karat.formats import excerpt, plural
from karat.index import plan_of, trusted
from karat.installation import shown_path
from karat.records import ScorerSpec

if TYPE_CHECKING:
    from karat.cli.options import Answers, Scorers
    from karat.execution import Outcome
    from karat.journal import RunFolder

__all__ = ["score_answers", "score_run"]

_MOST_NAMED = 5
_NEVER = 10**9
"""An answer that a file does not hold is missing, whatever the share of them."""


def score_run(name: str, wanted: Scorers, answers: Answers, results: Path, output: Output) -> Outcome:
    """Scores every answer of a run that these scorers have not seen."""
    from karat.execution import Limits, rescore
    from karat.redact import Redactor

    flags = {"--dataset": answers.dataset, "--set": answers.settings, "--map": answers.columns}
    flags |= {f"--{part}": getattr(answers, part) for part in ("question", "golden", "answer")}
    given = next((flag for flag, value in {**flags, "--strict": answers.strict}.items() if value), None)
    if given is not None:
        raise BadOption(given, f"is for a file of answers, and there is no file '{name}'; a run has its own")
    run = api.open(name, results=results)
    keep_hidden(secrets_of(run))
    with aside():
        specs, named = scorers_of(run, wanted)
    secrets = {**secrets_of(run), **named, **_keys_of(specs)}
    keep_hidden(secrets)
    redact = Redactor(secrets)
    output.say(*(f"warning: {redact(text)}" for text in _advice(run, specs)))
    with trusted(run):
        execution, planned = execution_of(run), plan_of(run).trials
        limits = Limits(
            max_concurrent=execution.max_concurrent,
            timeout_seconds=execution.timeout_seconds,
            judge_timeout_seconds=execution.judge_timeout_seconds,
            retry=execution.retry,
            max_failures=execution.most_failures(planned),
            by_share=execution.failures_by_share,
        )
        check_answers(run)
    with following(output, redact) as status, trusted(run):
        rescoring = rescore(
            run, specs, base=Path.cwd(), limits=limits, redact=redact, status=status, handle_signals=True
        )
        return asyncio.run(rescoring)


def score_answers(
    file: Path, wanted: Scorers, answers: Answers, results: Path, output: Output, *, kind: str = "answers"
) -> tuple[Outcome, list[str]]:
    """Makes an ordinary run of the answers in a file. Also returns what was left out of the file.

    Kind "conversation": one turn a row; what is wrong with the file then stands in the run itself.
    Kind "study": what one participant answered a row, to everything or to one task or round.
    """
    from karat.redact import Redactor

    if answers.dataset is None and kind != "answers":
        raise BadOption("--dataset", f"is needed to score {file}: the file with the questions and golden answers")
    if answers.dataset is None:
        answers = in_one_file(file, answers, output)
    try:
        with aside():
            experiment = experiment_of_answers(file, answers, wanted, kind=kind)
    except (BadDataset, BadOption) as error:
        if kind == "answers" and answers.dataset is not None and _holds_conversations(answers.dataset):
            raise BadOption("--kind", f"{answers.dataset} holds conversations: say --kind conversation") from error
        raise
    keep_hidden(experiment.secrets)
    output.say(*(f"warning: {text}" for text in experiment.warnings))
    held = _recorded(experiment)
    faults = report_faults(held, experiment, strict=answers.strict, output=output)
    left_out = _left_out(file, experiment) if kind == "answers" else []
    if kind == "study" and answers.strict:
        names = [condition.name for condition in experiment.conditions]
        report = held.told(
            experiment.load_dataset(), conditions=names, repetitions=experiment.execution.num_repetitions
        )
        if "faults" in report:  # rows and participants that do not match; without --strict the run reports them
            raise BadDataset(str(file), [Fault(place="file", message=report["faults"])])
    if left_out and answers.strict:
        raise BadDataset(str(file), [Fault(place="file", message=text) for text in left_out])
    with following(output, Redactor(experiment.secrets)) as status:
        for text in [*left_out, *(faults if output.events else [])]:
            status.notice(text)
        outcome = asyncio.run(api.carry_out(experiment, results=results, status=status, handle_signals=True))
    return outcome, left_out


def _holds_conversations(dataset: Path) -> bool:
    from karat import kinds

    try:
        return kinds.of(kinds.kind_of(dataset)).by_turn
    except BadDataset:
        return False


def scorers_of(run: RunFolder, wanted: Scorers) -> tuple[tuple[ScorerSpec, ...], Mapping[str, str]]:
    """The scorers that were named, or those that the run has already, whose missing scores are then made up.

    Also the secrets in their options. Raises BadExperiment for faults in them. A run folder
    never names code that is imported: its own `module:Class` must be named again.
    """
    if wanted:
        with trusted(run):
            next(run.samples(), None)  # BadRun where there are none to read: the experiment below would blame a dataset
        # An experiment of which only the scorers matter: so they are checked as in a file.
        there = {"path": str(run.path / "samples.jsonl")}
        keys = {"scorers": [], **_keys(wanted)}
        probe = Experiment(dataset=there, agent={"type": "floor"}, conditions={"any": {}}, **keys)
        return probe.scorers, probe.secrets
    if not run.info.scorers:
        raise BadOption("--judge", "the run has no scorer of its own: name one, e.g. --judge overlap")
    code = [one.type for one in run.info.scorers if ":" in one.type]
    if code:
        command = typed("score", shown_path(run.path), in_words(run.info.scorers))
        problem = f"the run was scored by code, {', '.join(code)}, and no code is run because a folder names it"
        raise BadOption("--scorer", f"{problem}; name it yourself, where its module can be imported:\n  {command}")
    return own_scorers(run), {}


def _advice(run: RunFolder, specs: Sequence[ScorerSpec]) -> list[str]:
    """As for an experiment file, of the models whose answers the run holds."""
    asked = {key: choice.value for key, choice in run.info.experiment.items()}
    agents = {
        str(value)
        for key, value in asked.items()
        if value and (key == "agent.model" or (key.startswith("conditions.") and key.endswith(".agent.model")))
    }
    return [f"{spec.name}.{key}: {message}" for spec in specs for key, message in judge_advice(spec.options, agents)]


def _keys_of(specs: Sequence[ScorerSpec]) -> dict[str, str]:
    """The keys that the scorers' models are asked with, by the variables that hold them."""
    names = set(keys_of((model for spec in specs for model in models_of(spec.options)), os.environ))
    for spec in specs:
        named = [spec.options, *(spec.options.get("judges") or ())]
        names |= {str(one["api_key_env"]) for one in named if isinstance(one, Mapping) and one.get("api_key_env")}
    return {name: os.environ[name] for name in names if name in os.environ}


def experiment_of_answers(file: Path, answers: Answers, wanted: Scorers, *, kind: str = "answers") -> Experiment:
    """An experiment whose agent gives back the answers of a file.

    Its conditions and repetitions are those that the file names. Where no key is set for it,
    the samples' ids are looked for in the column that the answers have them in.
    """
    settings = answers.settings
    keys = _keys_of_answers(file, answers, wanted, kind)
    for setting in settings:
        _override(keys, setting)
    first = Experiment(**keys)
    keep_hidden(first.secrets)
    held = _recorded(first)
    if "conditions" not in {setting.partition(".")[0].partition("=")[0] for setting in settings} and held.conditions:
        keys["conditions"] = {name: {} for name in held.conditions}
    if not any(setting.startswith("execution.num_repetitions=") for setting in settings):
        keys["execution"]["num_repetitions"] = max(1, held.repetitions)
    if kind == "conversation" and not wanted and "judge" not in keys and _has_text(first):
        keys["judge"] = {"type": "overlap"}  # `numeric` has nothing to say of it
    id_key = first.agent.options["id_key"]
    if kind == "answers" and "id_key" not in keys["dataset"] and id_key is not None:
        samples = first.load_dataset().samples
        if samples and id_key in samples[0].metadata:
            keys["dataset"]["id_key"] = id_key
    return Experiment(**keys)


def _has_text(experiment: Experiment) -> bool:
    """Whether a golden answer of the dataset is neither number nor yes or no."""
    from karat.numeric import parse_value

    turns = (turn for sample in experiment.load_dataset() for turn in sample.turns)
    return any(turn.golden is not None and parse_value(turn.golden) is None for turn in turns)


def _keys_of_answers(file: Path, answers: Answers, wanted: Scorers, kind: str) -> dict[str, Any]:
    replay = plugins.find("agents", "replay")
    columns = mapped_columns(answers.columns, replay, kind=kind)
    rows = {"conversation": {"turns": columns}, "study": {"participants": columns}}.get(kind, columns)
    dataset, agent = named_columns(file, answers)
    usual: dict[str, Any] = {"judge": {"type": "overlap"}} if kind == "answers" else {}  # else the dataset's own
    return {
        "name": file.stem,
        "dataset": {"path": str(answers.dataset), **dataset, **({} if kind == "answers" else {"kind": kind})},
        "agent": {"type": "replay", "path": str(file.absolute()), **rows, **agent},
        "conditions": {"answers": {}},
        "execution": {"num_repetitions": 1, "max_failures": _NEVER},
        **({"scorers": [], **_keys(wanted)} if wanted else usual),
    }


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


def _override(keys: dict[str, Any], setting: str) -> None:
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
    keys: dict[str, Any] = {}
    if wanted.judge is not None:
        judge = parsed("--judge", wanted.judge)
        keys["judge"] = _judge(judge) if isinstance(judge, str) else judge
    if wanted.scorers:
        keys["scorers"] = [parsed("--scorer", text) for text in wanted.scorers]
    if wanted.extract is not None:
        how, _, pattern = wanted.extract.partition(":")
        if how not in ("json", "last_number", "regex") or bool(pattern) != (how == "regex"):
            shown = excerpt(wanted.extract, 60)
            raise BadOption("--extract", f"want json, last_number or regex:PATTERN, got '{shown}'")
        numeric = {"numeric": {"extract": how, **({"pattern": pattern} if pattern else {})}}
        keys["scorers"] = [numeric, *keys.get("scorers", [])]
    return keys


def _judge(name: str) -> dict[str, Any]:
    """`overlap`, `module:Class`, or the model that judges: `provider:model` or `provider/model`."""
    module, separator, attribute = name.replace("/", ":", 1).partition(":")
    is_code = (
        "/" not in name
        and attribute.isidentifier()
        and (attribute[0].isupper() or Path(*module.split(".")).with_suffix(".py").exists())
    )
    return {"model": name} if separator and not is_code else {"type": name}


def _left_out(file: Path, experiment: Experiment) -> list[str]:
    """The answers of the file that no sample of the dataset wants: one sentence, or none."""
    from karat.kinds import read_rows

    id_key = experiment.agent.options["id_key"]
    known = {sample.id for sample in experiment.load_dataset()}
    unknown: dict[str, int] = {}
    for number, (_, row) in enumerate(read_rows(file).rows):
        name = str(number) if id_key is None else str(row.get(id_key))
        if name not in known:
            unknown[name] = unknown.get(name, 0) + 1
    if not unknown:
        return []
    shown = ", ".join(f"'{excerpt(name, 40)}'" for name in list(unknown)[:_MOST_NAMED])
    more = f" and {len(unknown) - _MOST_NAMED} more" if len(unknown) > _MOST_NAMED else ""
    count = plural(sum(unknown.values()), "answer")
    return [f"{count} left out: the dataset has no sample called {shown}{more}"]
