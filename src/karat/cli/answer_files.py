"""Scores a file of answers made elsewhere, as an ordinary run: its columns, its faults, its experiment."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from karat import api, kinds, plugins
from karat.cli.ending import keep_hidden
from karat.cli.live import following
from karat.cli.output import Output
from karat.cli.printed import aside
from karat.cli.scoring import scorer_keys
from karat.cli.values import parsed
from karat.config import Experiment
from karat.documents.hub import shown
from karat.errors import BadDataset, BadOption, Fault, did_you_mean
from karat.formats import count, excerpt, plural
from karat.installation import shown_path

if TYPE_CHECKING:
    from karat.cli.options import Answers, Scorers
    from karat.execution import Outcome
    from karat.records import Sample

__all__ = ["score_answers"]

_NEVER = 10**9
"""An answer that the file lacks is missing, however many are."""
_IDS_NAMED = 5
_USUAL = {
    "question": ("question", "query", "prompt", "input", "user_query"),
    "golden": (
        *("golden", "golden_answer", "gold", "gold_answer", "expected", "expected_answer", "reference"),
        *("reference_answer", "ground_truth", "correct_answer", "target"),
    ),
    "answer": (
        *("answer", "response", "output", "prediction", "predicted", "predicted_answer", "model_answer"),
        *("generated", "completion", "actual"),
    ),
}


def score_answers(
    file: Path, wanted: Scorers, answers: Answers, results: Path, output: Output, *, kind: str | None = None
) -> tuple[Outcome, list[str]]:
    """Turns the answers in a file into an ordinary run. Also returns which of its rows were left out.

    `kind` is the kind of dataset whose `answer_file` this is; the run itself then reports its faults. None: each row
    answers one sample.
    """
    from karat.redact import Redactor

    if answers.dataset is None and kind is not None:
        raise BadOption("--dataset", f"is required to score {file}: the file with the questions and golden answers")
    if answers.dataset is None:
        answers = in_one_file(file, answers, output)
    try:
        with aside():
            experiment = experiment_of_answers(file, answers, wanted, kind=kind)
    except (BadDataset, BadOption) as error:
        other = _kind_with_rows(answers.dataset) if kind is None else None
        if other is not None:
            message = f"{answers.dataset} holds {kinds.of(other).content}: say --kind {other}"
            raise BadOption("--kind", message) from error
        raise
    keep_hidden(experiment.secrets)
    output.say(*(f"warning: {text}" for text in experiment.warnings))
    agent = _recorded(experiment)
    faults = report_faults(agent, experiment, strict=answers.strict, output=output)
    left_out = _left_out(file, experiment) if kind is None else []
    if answers.strict:
        names = [condition.name for condition in experiment.conditions]
        report = agent.source_notes(
            experiment.load_dataset(), conditions=names, repetitions=experiment.execution.num_repetitions
        )
        messages = [*([report["faults"]] if "faults" in report else []), *left_out]
        if messages:
            raise BadDataset(str(file), [Fault(place="file", message=text) for text in messages])
    with following(output, Redactor(experiment.secrets)) as status:
        for text in [*left_out, *(faults if output.events else [])]:
            status.notice(text)
        outcome = asyncio.run(api.carry_out(experiment, results=results, status=status, handle_signals=True))
    return outcome, left_out


def _kind_with_rows(dataset: Path | None) -> str | None:
    """The dataset's kind, if its answer files have a row format of their own."""
    try:
        name = kinds.kind_of(dataset) if dataset is not None else None
    except BadDataset:
        return None
    return name if name is not None and kinds.of(name).answer_file is not None else None


def experiment_of_answers(file: Path, answers: Answers, wanted: Scorers, *, kind: str | None) -> Experiment:
    """An experiment whose agent replays the answers of a file.

    Its conditions and repetitions are those in the file. If the dataset sets no key, its ids are
    read from the column that holds the ids of the answers.
    """
    settings = answers.settings
    keys = _keys_of_answers(file, answers, wanted, kind)
    for setting in settings:
        _override(keys, setting)
    first = Experiment(**keys)
    keep_hidden(first.secrets)
    agent = _recorded(first)
    if "conditions" not in {setting.partition(".")[0].partition("=")[0] for setting in settings} and agent.conditions:
        keys["conditions"] = {name: {} for name in agent.conditions}
    if not any(setting.startswith("execution.num_repetitions=") for setting in settings):
        keys["execution"]["num_repetitions"] = max(1, agent.repetitions)
    if kind is not None and not wanted and "judge" not in keys:
        judge = kinds.of(kind).judge(first.load_dataset())
        keys |= {"judge": judge} if judge is not None else {}
    id_key = first.agent.options["id_key"]
    if kind is None and "id_key" not in keys["dataset"] and id_key is not None:
        samples = first.load_dataset().samples
        if samples and id_key in samples[0].metadata:
            keys["dataset"]["id_key"] = id_key
    return Experiment(**keys)


def _keys_of_answers(file: Path, answers: Answers, wanted: Scorers, kind: str | None) -> dict[str, Any]:
    form = None if kind is None else kinds.of(kind).answer_file
    columns = mapped_columns(answers.columns, option=None if form is None else form.option)
    dataset, agent = named_columns(file, answers)
    dataset |= {"cluster": answers.cluster} if answers.cluster is not None else {}
    judge: dict[str, Any] = {"judge": {"type": "overlap"}} if kind is None else {}  # else the dataset's own scorer
    return {
        "name": file.stem,
        "dataset": {"path": shown(answers.dataset or file), **dataset, **({} if kind is None else {"kind": kind})},
        "agent": {
            "type": "replay",
            "path": str(file.absolute()),
            **(columns if form is None else {form.option: columns}),
            **agent,
        },
        "conditions": {"answers": {}},
        "execution": {"num_repetitions": 1, "max_failures": _NEVER},
        **({"scorers": [], **scorer_keys(wanted)} if wanted else judge),
    }


class _RecordedAgent(Protocol):
    """What this module needs of the agent that replays the answers."""

    conditions: Sequence[str]
    repetitions: int
    source: Mapping[str, str]

    def census(
        self, samples: Iterable[Sample], *, conditions: Sequence[str], repetitions: int
    ) -> kinds.RecordedFaults | None: ...

    def source_notes(
        self, samples: Iterable[Sample], *, conditions: Sequence[str], repetitions: int
    ) -> dict[str, str]: ...


def _recorded(experiment: Experiment) -> _RecordedAgent:
    from karat.agents import AgentSetting
    from karat.mcp import Toolbox
    from karat.redact import Redactor

    toolbox = Toolbox((), redact=Redactor({}), folder=experiment.folder)
    setting = AgentSetting(folder=experiment.folder, toolbox=toolbox)
    plugin = plugins.find("agents", experiment.agent.type)
    if experiment.agent.type != "replay":
        raise BadOption("--set", "a file of answers needs the agent replay; agent.type cannot be changed")
    agent: _RecordedAgent = plugins.build(plugin, experiment.agent.options, setting=setting)
    return agent


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


def _left_out(file: Path, experiment: Experiment) -> list[str]:
    """One sentence about the answers that belong to no sample of the dataset; empty if there are none."""
    id_key = experiment.agent.options["id_key"]
    known = {sample.id for sample in experiment.load_dataset()}
    unknown: dict[str, int] = {}
    for number, (_, row) in enumerate(kinds.read_rows(file).rows):
        name = str(number) if id_key is None else str(row.get(id_key))
        if name not in known:
            unknown[name] = unknown.get(name, 0) + 1
    if not unknown:
        return []
    named = ", ".join(f"'{excerpt(name, 40)}'" for name in list(unknown)[:_IDS_NAMED])
    more = f" and {len(unknown) - _IDS_NAMED} more" if len(unknown) > _IDS_NAMED else ""
    count = plural(sum(unknown.values()), "answer")
    return [f"{count} left out: the dataset has no sample called {named}{more}"]


def in_one_file(file: Path, answers: Answers, output: Output) -> Answers:
    """The options for a file that is its own dataset: each row has a question, its golden answer and one answer.

    Columns without an option are looked up under their usual names, and the choice is printed.
    Raises BadOption if one is missing, or named twice.
    """
    first = next(iter(kinds.read_rows(file).rows), None)
    columns = [] if first is None else list(first[1])
    chosen = {part: _column(part, getattr(answers, part), columns, file) for part in _USUAL}
    for part, column in chosen.items():
        others = [other for other, name in chosen.items() if name == column and other != part]
        if others:
            raise BadOption(f"--{part}", f"column '{column}' is already used for --{others[0]}")
    output.say(f"columns used: {', '.join(f'{part} = {column}' for part, column in chosen.items())}")
    return type(answers)(**vars(answers) | {"dataset": file} | chosen)


def _column(part: str, named: str | None, columns: list[str], file: Path) -> str:
    if named is not None:
        if named not in columns:
            raise BadOption(f"--{part}", f"{file} has no column '{named}'{did_you_mean(named, columns)}")
        return named
    plain = {column.strip().casefold().replace(" ", "_").replace("-", "_"): column for column in columns}
    column = next((plain[name] for name in _USUAL[part] if name in plain), None)
    if column is None:
        role = {"question": "the question", "golden": "the golden answer", "answer": "the answer to score"}[part]
        raise BadOption(
            f"--{part}",
            f"say which column of {file} holds {role} (it has: {', '.join(columns) or 'none'}); "
            "if the questions and golden answers are in another file, name it with --dataset",
        )
    return column


def _sample_column(file: Path, question: str) -> str | None:
    """The column that joins rows of several conditions to one sample: `id`, else the question; None: one condition.

    `id` counts only if each id has one question, and each question one id.
    """
    rows = [row for _, row in kinds.read_rows(file).rows]
    if len({row.get("condition") for row in rows} - {None, ""}) < 2:
        return None
    ids, questions = ({str(row.get(name)) for row in rows} for name in ("id", question))
    pairs = {(str(row.get("id")), str(row.get(question))) for row in rows}
    named = all(row.get("id") not in (None, "") for row in rows)
    return "id" if named and len(ids) == len(questions) == len(pairs) else question


def named_columns(file: Path, answers: Answers) -> tuple[dict[str, Any], dict[str, str | None]]:
    """Options for the dataset and for the replaying agent, from the named columns."""
    named = {"question_key": answers.question, "answer_key": answers.golden}
    dataset: dict[str, Any] = {key: column for key, column in named.items() if column is not None}
    agent: dict[str, str | None] = {} if answers.answer is None else {"answer_key": answers.answer}
    if answers.dataset == file:
        column = _sample_column(file, answers.question or "question")
        agent["id_key"] = column  # None: question and answer are in one row, and its number is the id
        if column is not None:
            dataset |= {"id_key": column, "repeated": True}
    return dataset, agent


_MOST_NAMED = 50
"""Faults listed per kind; all are counted."""

_OF_SAMPLES = {
    "id": "id_key",
    "answer": "answer_key",
    "condition": "condition_key",
    "repetition": "repetition_key",
}
"""Targets of --map in a file with one answer per sample → the agent's option."""


def mapped_columns(pairs: Sequence[str], *, option: str | None) -> dict[str, str]:
    """`--map TARGET=COLUMN` as options of the agent, or below its `option`. Raises BadOption for unknown targets."""
    targets = plugins.find("agents", "replay").columns
    known = tuple(_OF_SAMPLES) if option is None else targets[option]
    mapped: dict[str, str] = {}
    for pair in pairs:
        target, equals, column = (part.strip() for part in pair.partition("="))
        if not equals:
            raise BadOption(f"--map {pair}", "want TARGET=COLUMN, e.g. --map answer=predicted_answer")
        if target not in known:
            forms = {name: kind.answer_file for name, kind in kinds.installed().items()}
            others = [name for name, form in forms.items() if form is not None and target in targets[form.option]]
            hint = f" (it is for --kind {' or '.join(others)})" if others else ""
            hint = hint or did_you_mean(target, known, listing=False)
            raise BadOption("--map", f"unknown target '{target}'{hint}; choose from {', '.join(known)}")
        if target in mapped:
            raise BadOption("--map", f"'{target}' is given twice: '{mapped[target]}' and '{column}'")
        mapped[target] = column
    return mapped if option is not None else {_OF_SAMPLES[target]: column for target, column in mapped.items()}


def report_faults(agent: _RecordedAgent, experiment: Experiment, *, strict: bool, output: Output) -> list[str]:
    """Prints all faults of the file, counted by kind, and returns them as sentences.

    Without `strict`, the rest of the file is scored; with it, raises BadDataset.
    """
    names = [condition.name for condition in experiment.conditions]
    repetitions = experiment.execution.num_repetitions
    census = agent.census(experiment.load_dataset(), conditions=names, repetitions=repetitions)
    if census is None:
        return []
    columns = " ".join(f"{target}={column}" for target, column in census.columns.items())
    output.say(f"columns: {columns} (change one with --map TARGET=COLUMN)")
    if not census.faults:
        return []
    listed: list[tuple[str, list[Fault]]] = []  # for each kind: how many, and the first few
    for fault_kind, line in zip(census.counts, census.lines, strict=True):
        faults = [
            Fault(place=fault.place, message=fault.message) for fault in census.faults if fault.kind == fault_kind
        ]
        more = len(faults) - _MOST_NAMED
        further = [Fault(place="and", message=f"{more} more like these")] if more > 0 else []
        listed.append((line, faults[:_MOST_NAMED] + further))
    file = shown_path(Path(agent.source["file"]))
    if strict or not census.used:
        hint = [Fault(place="file", message=census.hint)] if census.hint else []
        nothing = Fault(place="file", message="no row answers a turn of the dataset, so nothing is scored")
        examples = (fault for _, faults in listed for fault in faults)
        raise BadDataset(file, [*([] if census.used else [nothing]), *hint, *examples])
    output.say(f"{file}: {plural(sum(census.counts.values()), 'fault')} in {count(census.rows)} rows")
    for line, faults in listed:
        output.say(f"  {line}", *(f"    {fault}" for fault in faults))
    output.say(*([f"  {census.hint}"] if census.hint else []))
    output.say("  The rest is scored. With --strict, nothing is.")
    return [f"the file of answers: {line}" for line in census.lines]
