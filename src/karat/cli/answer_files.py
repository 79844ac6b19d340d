"""Scores a file of answers made elsewhere, as an ordinary run: its columns, its faults, its
experiment.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import filterfalse, islice
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Protocol

from karat import kinds, plugins
from karat.agents import AgentSetting, as_agent
from karat.cli.checking import cluster_hint
from karat.cli.ending import keep_hidden
from karat.cli.joining import answer_columns, joined_by_id
from karat.cli.live import following
from karat.cli.output import Output
from karat.cli.printed import aside
from karat.cli.scoring import scorer_keys
from karat.cli.values import parsed
from karat.config import Experiment
from karat.documents.answers import (
    condition_columns,
    mostly_copies,
    sample_columns,
    usual_id,
    whole_id,
)
from karat.documents.batches import Table
from karat.documents.columns import LOOKED_AT, Columns, Row, columns_of, leaves
from karat.documents.doubts import Seen, doubts
from karat.documents.factors import factors_in, like_conditions
from karat.documents.hub import shown
from karat.documents.names import Role
from karat.documents.results import (
    columns_like,
    golden_alone,
    lines_alone,
    pattern_of,
    score_columns,
)
from karat.documents.roles import Reading, Undecided, assign
from karat.documents.row_list import Rows
from karat.documents.understood import examples
from karat.documents.unfolding import unfolded
from karat.errors import BadDataset, BadOption, Fault, did_you_mean
from karat.execution import Loaded, run_experiment, run_in_own_loop
from karat.formats import count, excerpt, plural, some_of
from karat.installation import shown_path
from karat.mcp import Toolbox
from karat.records import JsonObject, Sample
from karat.redact import Redactor

if TYPE_CHECKING:
    from karat.cli.options import Answers, Scorers
    from karat.execution import Outcome
    from karat.kinds import Dataset

_NEVER = 10**9
"""An answer that the file lacks is missing, however many are."""
_IDS_NAMED = 5


def score_answers(
    file: Path,
    wanted: Scorers,
    answers: Answers,
    results: Path,
    output: Output,
    *,
    kind: str | None,
) -> tuple[Outcome, list[str]]:
    """Turns the answers in a file into an ordinary run. Also returns which of its rows were left
    out.

    `kind` is the kind of dataset whose `answer_file` this is; the run itself then reports its
    faults. None: each row answers one sample.
    """
    if answers.dataset is None and kind is not None:
        raise BadOption(
            "--dataset",
            f"is required to score {file}: the file with the questions and golden answers",
        )

    rows = _FileRows(file)
    if answers.dataset is None:
        answers = in_one_file(rows, answers, output)
    try:
        if kind is None and answers.dataset != file:
            answers = _joined(file, answers, output)
        with aside():
            experiment, agent = experiment_of_answers(rows, answers, wanted, kind=kind)
    except (BadDataset, BadOption) as error:
        other = None
        if kind is None and answers.dataset is not None:
            with suppress(BadDataset):
                other = kinds.kind_of(answers.dataset)

        # answer files of some kinds have a row format of their own
        if other is not None and kinds.of(other).answer_file is not None:
            message = f"{answers.dataset} holds {kinds.of(other).content}: say --kind {other}"
            raise BadOption("--kind", message) from error

        raise

    keep_hidden(experiment.secrets)
    output.say(*(f"warning: {text}" for text in experiment.warnings))
    if kind is None and (agent.repetitions > 1 or len(agent.conditions) > 1):
        options = experiment.agent.options
        ids, conditions, said = (
            _listed(options[key]) for key in ("id_key", "condition_key", "answer_key")
        )
        text = f"one question: the same {' and '.join(ids)}"
        if len(agent.conditions) > 1:
            if len(said) > 1:
                column = "each answer column"
            else:
                column = " and ".join(conditions)

            text += f"; conditions: {column} ({some_of(agent.conditions)})"

        if agent.repetitions > 1:
            text += f"; up to {agent.repetitions} repetitions"
            hint = like_conditions(rows.table, [*ids, *conditions], used={*said, *conditions})
            if hint is not None:
                text += f"\n{hint}"

        output.say(text)

    dataset = experiment.load_dataset()
    hint = cluster_hint(dataset, "score with --cluster", used=answers.answer)
    if hint is not None:
        output.say(hint)
    faults = report_faults(agent, experiment, dataset, strict=answers.strict, output=output)
    left_out: list[str] = []
    every_row_is_a_sample = answers.dataset == file and not answers.settings
    if kind is None and (answers.skip_unreadable or not every_row_is_a_sample):
        left_out = _left_out(rows, experiment, dataset)
    if answers.strict:
        names = [condition.name for condition in experiment.conditions]
        report = agent.source_notes(
            dataset, conditions=names, repetitions=experiment.execution.num_repetitions
        )
        messages = [*([report["faults"]] if "faults" in report else []), *left_out]
        if messages:
            raise BadDataset(file, [Fault(place="file", message=text) for text in messages])

    rows.forget()
    with following(output, Redactor(experiment.secrets)) as status:
        for text in [*left_out, *(faults if output.events else [])]:
            status.notice(text)

        loaded = Loaded(dataset=dataset, agents=((experiment.agent, as_agent(agent)),))
        run = run_experiment(
            experiment, results=results, status=status, handle_signals=True, loaded=loaded
        )
        outcome = run_in_own_loop(run)

    return outcome, left_out


class _FileRows:
    """The rows of a file of answers, read once, when they are first wanted.

    `all` and `table` raise BadDataset if nothing can be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read: Rows | None = None

    @property
    def all(self) -> Iterator[Row]:
        """One after the other."""
        return (row for batch in self.table for row in batch.rows)

    @property
    def table(self) -> Table:
        """The same by column."""
        return Table(self.read.rows)

    @property
    def read(self) -> Rows:
        """The same with what was not plain about them."""
        if self._read is None:
            try:
                self._read = kinds.read_rows(self.path)
            except BadDataset as error:
                first = error.faults[0]
                option = {"dataset.split": "part", "dataset.sheet": "sheet"}.get(first.place)
                if option is None:
                    raise

                # a list or a sheet has to be named: with the command that takes it
                command = f"karat import csv {quote(str(self.path))} --set {option}=NAME"
                message = f"{first.message}. `{command}` reads it; score the run that it makes"
                fault = Fault(place="file", message=message)
                raise BadDataset(error.path, [fault]) from error

        return self._read

    def forget(self) -> None:
        """Frees the memory; they are read again if they are wanted again."""
        self._read = None


def _listed(columns: str | Sequence[str] | None) -> list[str]:
    if isinstance(columns, str):
        return [columns]
    return [*(columns or ())]


def experiment_of_answers(
    rows: _FileRows, answers: Answers, wanted: Scorers, *, kind: str | None
) -> tuple[Experiment, _RecordedAgent]:
    """An experiment whose agent replays the answers of a file, and that agent.

    Its conditions and repetitions are those in the file. If the dataset sets no key, its ids are
    read from the column that holds the ids of the answers.
    """
    settings = answers.settings
    file = rows.path
    form = None if kind is None else kinds.of(kind).answer_file
    columns: JsonObject = {
        **mapped_columns(answers.columns, option=None if form is None else form.option)
    }
    dataset, replay = _named_columns(answers)
    if form is None:
        of_dataset, of_agent = _grouping_columns(rows, answers, columns)
        dataset |= of_dataset
        columns |= of_agent  # the condition that is named may be one of several

    if answers.skip_unreadable:
        dataset["skip"] = "unreadable"
        if form is None:
            replay |= {"skip": "unreadable"}

    if answers.cluster is not None:
        dataset |= {"cluster": answers.cluster}

    scorers: JsonObject = {}  # else the scorer of the dataset's kind
    if kind is None:
        dataset |= {"choices": "left_out"}  # nothing is asked
        scorers = {"judge": {"type": "overlap"}}

    if wanted:
        scorers = {"scorers": [], **scorer_keys(wanted)}
    keys: JsonObject = {
        "name": file.stem,
        "dataset": {
            "path": shown(answers.dataset or file),
            **dataset,
            **({} if kind is None else {"kind": kind}),
        },
        "agent": {
            "type": "replay",
            "path": str(file.absolute()),
            **replay,
            **(columns if form is None else {form.option: columns}),
        },
        "conditions": {"answers": {}},
        "execution": {"num_repetitions": 1, "max_failures": _NEVER},
        **scorers,
    }
    _set(keys, settings)
    first = Experiment(**keys)
    keep_hidden(first.secrets)

    toolbox = Toolbox((), redact=Redactor({}), folder=first.folder)
    setting = AgentSetting(folder=first.folder, toolbox=toolbox)
    plugin = plugins.find("agents", first.agent.type)
    if first.agent.type != "replay":
        raise BadOption(
            "--set", "a file of answers needs the agent replay; agent.type cannot be changed"
        )

    agent: _RecordedAgent = plugins.build(plugin, first.agent.options, setting=setting)

    if (
        "conditions" not in {setting.partition(".")[0].partition("=")[0] for setting in settings}
        and agent.conditions
    ):
        keys["conditions"] = {name: {} for name in agent.conditions}

    if not any(setting.startswith("execution.num_repetitions=") for setting in settings):
        keys["execution"]["num_repetitions"] = max(1, agent.repetitions)
    if kind is not None and not wanted and "judge" not in keys:
        judge = kinds.of(kind).judge(first.load_dataset())
        if judge is not None:
            keys |= {"judge": judge}

    id_key = first.agent.options["id_key"]
    if kind is None and "id_key" not in keys["dataset"] and isinstance(id_key, str):
        samples = first.load_dataset().samples
        if samples and id_key in samples[0].metadata:
            keys["dataset"]["id_key"] = id_key

    return Experiment(**keys), agent


def _set(keys: JsonObject, settings: Iterable[str]) -> None:
    """Writes `--set KEY=VALUE` into the keys of an experiment. Raises BadOption."""
    for setting in settings:
        place, equals, text = setting.partition("=")
        *sections, last = place.split(".")
        if not equals or not last:
            raise BadOption(
                f"--set {place}", "expected KEY=VALUE, e.g. --set agent.answer_key=output"
            )

        here = keys
        for section in sections:
            here = here.setdefault(section, {})
            if not isinstance(here, dict):
                raise BadOption(f"--set {place}", f"'{section}' is a plain value")

        here[last] = parsed(f"--set {place}", text)


def _joined(file: Path, answers: Answers, output: Output) -> Answers:
    """The options with the columns of answers and of ids, which join the rows to a dataset.

    Raises BadOption if they are not certain.
    """
    mapped = mapped_columns(answers.columns, option=None)
    keys_set = {setting.partition("=")[0] for setting in answers.settings}
    columns = answers.columns
    settings = answers.settings
    said = answers.answer
    if not said and "answer_key" not in mapped and "agent.answer_key" not in keys_set:
        said = answer_columns(file, named=mapped.values())
    if not {"agent.id_key", "dataset.id_key"} & keys_set and "id_key" not in mapped:
        keys: JsonObject = {
            "dataset": {"path": shown(answers.dataset or file), "choices": "left_out"},
            "agent": {"type": "floor"},
            "conditions": {"any": {}},
            "scorers": ["equals"],  # any; nothing is scored
        }
        keys["dataset"] |= _named_columns(answers)[0]
        _set(keys, [setting for setting in settings if setting.startswith("dataset.")])
        with aside():
            samples = Experiment(**keys).load_dataset().samples

        join = joined_by_id(file, samples)
        if join is not None:
            columns = (*columns, f"id={join.answers}")
            if join.dataset is not None:
                settings = (*settings, f"dataset.id_key={json.dumps(join.dataset)}")
            output.say(str(join))

    changed = {"answer": said, "columns": columns, "settings": settings}
    return type(answers)(**vars(answers) | changed)


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


def _left_out(rows: _FileRows, experiment: Experiment, dataset: Dataset) -> list[str]:
    """One sentence about the answers that belong to no sample of the dataset; empty if there are
    none.
    """
    id_key = experiment.agent.options["id_key"]
    if isinstance(id_key, list):
        return []  # the file is its own dataset
    known = {sample.id for sample in dataset}
    unknown = Counter[str]()
    first = 0
    for batch in rows.table:
        names: Sequence[object] = range(first, first + len(batch.numbers))
        first += len(batch.numbers)
        if id_key is not None:
            names = batch.column(id_key)
        unknown.update(filterfalse(known.__contains__, map(str, names)))

    if not unknown:
        return []
    named = ", ".join(f"'{excerpt(name, 40)}'" for name in list(unknown)[:_IDS_NAMED])
    if len(unknown) > _IDS_NAMED:
        more = f" and {len(unknown) - _IDS_NAMED} more"
    else:
        more = ""

    count = plural(sum(unknown.values()), "answer")
    return [f"{count} left out: the dataset has no sample called {named}{more}"]


def in_one_file(rows: _FileRows, answers: Answers, output: Output) -> Answers:
    """The options for a file that is its own dataset: each row has a question, its golden answer
    and one answer.

    Columns without an option are found by their names, and the choice is printed. Raises BadOption
    if one is missing, named twice, or not certain.
    """
    file = rows.path
    columns = columns_of(rows.all)
    named: dict[Role, tuple[str, ...]] = {}
    options: dict[Role, str | tuple[str, ...] | None] = {
        "question": answers.question,
        "golden": answers.golden,
        "answer": answers.answer,
    }
    for role, given in options.items():
        paths = (given,) if isinstance(given, str) else given or ()
        paths = tuple(columns_like(paths, columns))
        for path in paths:
            if path not in columns:
                raise BadOption(
                    f"--{role}", f"{file} has no column '{path}'{did_you_mean(path, [*columns])}"
                )

        if paths:
            named[role] = tuple(paths)

    alone = lines_alone(columns)
    if alone is not None:
        raise BadDataset(file, [Fault(place="file", message=alone)])
    if not named:
        refuse_dataset(file, columns)
        _refuse_folded(rows, columns)
        _refuse_copies(rows)
    result = _assigned(file, columns, named)
    if isinstance(result, Undecided):
        choices = _choices(file, columns, result)
        open_roles = []
        for role in _NEEDED:
            different = set()
            for reading in result.readings:
                different.add(reading.roles.get(role, ()))

            if role not in named and len(different) != 1:
                open_roles.append(role)

        # The option that decides what the file leaves open
        option = f"--{open_roles[0] if open_roles else 'answer'}"
        raise BadOption(option, choices + _own_scores(file, columns))

    used: list[tuple[str, str]] = []
    roles = dict(result.roles)
    if not roles.get("question") and roles.get("id") and {"golden", "answer"} <= {*roles}:
        roles["question"] = roles["id"]
        output.say(f"there are no questions: each row is named by its '{roles['id'][0]}'")

    for role, what in _NEEDED.items():
        paths = roles.get(role, ())
        if not paths:
            listed = some_of(leaves(columns), most=_MOST_NAMED) or "none"
            besides = _own_scores(file, columns)
            if not besides and result.roles.get("answer"):
                command = f"karat import csv {quote(str(file))}"
                besides = f"\n  answers alone are read by: {command}"

            raise BadOption(
                f"--{role}",
                f"say which column of {file} holds {what} (it has: {listed}); if the questions and "
                f"golden answers are in another file, name it with --dataset" + besides,
            )

        used += [(role, path) for path in paths]

    role_of: dict[str, str] = {}
    for option, column in used:
        if column in role_of:
            raise BadOption(
                f"--{option}", f"column '{column}' is already used for --{role_of[column]}"
            )

        role_of[column] = option

    _say_columns(output, used, result.unused)
    roles.pop("score", None)  # unused
    seen = Seen(rows=[*islice(rows.all, LOOKED_AT)], columns=columns, roles=roles)
    output.say(*(f"warning: {text}" for text in doubts(seen, named=named)))
    if "score" in result.roles:
        output.say(f"not used: {_own_scores(file, columns).strip()}")
    chosen = {
        "dataset": file,
        "question": roles["question"][0],
        "golden": roles["golden"][0],
        "answer": roles["answer"],
    }
    return type(answers)(**vars(answers) | chosen)


def _choices(file: Path, columns: Columns, result: Undecided) -> str:
    """The readings to choose from, as options; what is to be said, if there are none."""
    lines = []
    for reading in result.readings:
        flags = []
        for role in _NEEDED:
            paths = reading.roles.get(role, ())
            if role == "golden":  # what an answer must have is compared with it
                paths = paths or reading.roles.get("criterion", ())[:1]
            if len(paths) > _NAMED_ALONE:
                pattern = pattern_of(paths, columns)
                paths = paths if pattern is None else (pattern,)

            flags += [f"--{role} {quote(path)}" for path in paths]

        if flags:
            lines.append(f"  {' '.join(flags)}")

    listed = some_of(leaves(columns), most=_MOST_NAMED) or "none"
    if lines:
        first = f"the columns of {file} can be read in several ways; say one:"
        last = f"or name others: --question … --golden … --answer … (columns: {listed})"
        return "\n".join([first, *lines, *examples(result, columns), last])

    return (
        f"say which columns of {file} hold the question, the golden answer and the answer "
        f"(it has: {listed}); if the questions and golden answers are in another file, "
        f"name it with --dataset"
    )


def _say_columns(output: Output, used: Sequence[tuple[str, str]], unused: Sequence[str]) -> None:
    output.say(f"columns used: {', '.join(f'{role} = {column}' for role, column in used)}")
    if unused:
        output.say(f"not used: {some_of(unused)}")


def refuse_dataset(file: Path, columns: Columns) -> None:
    """Raises BadOption for a file of questions and golden answers, with what reads it."""
    dataset = golden_alone(columns)
    if dataset is None:
        return
    raise BadOption(
        "--answer",
        f"{file} {dataset}: `karat check {quote(str(file))}` reads it as a dataset. Else say "
        f"which column holds the answer to score (it has: "
        f"{some_of(leaves(columns), most=_MOST_NAMED)}); answers in another file are scored "
        f"with --dataset {quote(str(file))}",
    )


def _refuse_folded(rows: _FileRows, columns: Columns) -> None:
    """Raises BadDataset if rows hold several answers, or one inside of a cell: a run of answers as
    they lie in the file would score other texts than those.
    """
    whole = unfolded(rows.read)
    if whole is rows.read:
        return
    result = assign(whole.seen_columns(), door="results", file=rows.path.name)
    if isinstance(result, Reading):
        readings = [result]
    else:
        readings = [*result.readings[:1]]

    used = {
        path for reading in readings for role in _NEEDED for path in reading.roles.get(role, ())
    }
    if not any("answer" in reading.roles for reading in readings):
        return
    inside = sorted(used - {*columns})
    found = [text for text in whole.notes if text not in rows.read.notes]
    if inside:
        found.append(f"{some_of(inside)} is inside of a cell")
    if found:
        message = (
            f"{'; '.join(found)}. `karat import csv {quote(str(rows.path))}` reads it so; score "
            f"the run that it makes: `karat score RUN`"
        )
        raise BadDataset(rows.path, [Fault(place="file", message=message)])


def _refuse_copies(rows: _FileRows) -> None:
    """Raises BadDataset if most rows are identical to earlier ones, which would count once."""
    copies = mostly_copies(rows.all)
    if copies is None:
        return
    command = f"karat import csv {quote(str(rows.path))} --set unnamed=repetitions"
    message = (
        f"{copies}, and would count once. If they are repetitions, `{command}` reads them so; "
        f"score the run that it makes. If not, name the columns: --question … --golden … --answer …"
    )
    raise BadDataset(rows.path, [Fault(place="file", message=message)])


def _assigned(
    file: Path, columns: Columns, named: dict[Role, tuple[str, ...]]
) -> Reading | Undecided:
    """The roles of the columns; a choice that was offered and is followed is decided, also if it
    names no question.
    """
    result = assign(columns, door="results", file=file.name, named=named)
    if isinstance(result, Undecided):
        for reading in result.readings:
            if all(named.get(role) == reading.roles.get(role) for role in _NEEDED):
                return reading

    return result


def _own_scores(file: Path, columns: Columns) -> str:
    """The end of a sentence that says what reads the scores of a file, if it has some."""
    scores = score_columns(columns)
    if not scores:
        return ""
    return (
        f"\n  its own scores ({some_of(scores)}) are read by: karat import csv {quote(str(file))}"
    )


_NEEDED: Mapping[Role, str] = {
    "question": "the question",
    "golden": "the golden answer",
    "answer": "the answer to score",
}


def _named_columns(answers: Answers) -> tuple[JsonObject, JsonObject]:
    """Options for the dataset and for the replaying agent, from the named columns."""
    named = {"question_key": answers.question, "answer_key": answers.golden}
    dataset: JsonObject = {}
    for key, column in named.items():
        if column is not None:
            dataset[key] = column

    if not answers.answer:
        return dataset, {}
    return dataset, {
        "answer_key": answers.answer[0] if len(answers.answer) == 1 else [*answers.answer]
    }


def _grouping_columns(
    rows: _FileRows, answers: Answers, mapped: Mapping[str, str]
) -> tuple[JsonObject, JsonObject]:
    """Options for the dataset and for the replaying agent: which rows are of one question, and of
    one condition.
    """
    settings = dict(setting.split("=", 1) for setting in answers.settings if "=" in setting)
    named = mapped.get("id_key") or settings.get("agent.id_key") or settings.get("dataset.id_key")
    dataset: JsonObject = {}
    agent: JsonObject = {}
    ids = [named or "id"]
    if answers.dataset == rows.path:
        if named is None:
            ids, _ = sample_columns(
                rows.table,
                question=str(answers.question),
                golden=answers.golden,
                id_column=usual_id(rows.table.columns),
            )
            if ids == [answers.question]:
                taken = {*answers.answer, *mapped.values()}
                ids = whole_id(rows.table, ids[0], golden=answers.golden, used=taken)
                asked = [column for column in ids if column != answers.golden]
                if len(asked) > 1:
                    dataset |= {"question_key": None, "roles": {"question": asked}}
                    ids = [*asked, str(answers.golden)]  # as the dataset numbers its samples

        dataset["repeated"] = True
        agent["id_key"] = ids
        if len(ids) == 1:
            dataset["id_key"] = agent["id_key"] = ids[0]

    used = {*ids, *answers.answer, str(answers.question), str(answers.golden), *mapped.values()}
    used.add(settings.get("agent.repetition_key", ""))
    first = [mapped["condition_key"]] if "condition_key" in mapped else []
    conditions = condition_columns(rows.table, ids, used=used, first=first)
    if len(answers.answer) < 2:
        factors = factors_in(rows.table, ids, conditions, used=used)
        conditions += tuple(factor.column for factor in factors)

    if conditions and len(answers.answer) > 1:
        message = (
            f"names several conditions, and so does the column '{conditions[0]}': score one "
            f"--answer at a time"
        )
        raise BadOption("--answer", message)

    if conditions:
        if len(conditions) == 1:
            agent["condition_key"] = conditions[0]
        else:
            agent["condition_key"] = [*conditions]

    return dataset, agent


_MOST_NAMED, _NAMED_ALONE = 50, 3
"""Faults listed per kind; all are counted."""

_OF_SAMPLES = {
    "id": "id_key",
    "answer": "answer_key",
    "condition": "condition_key",
    "repetition": "repetition_key",
}
"""Targets of --map in a file with one answer per sample → the agent's option."""


def mapped_columns(pairs: Sequence[str], *, option: str | None) -> dict[str, str]:
    """`--map TARGET=COLUMN` as options of the agent, or below its `option`.

    Raises BadOption for unknown targets.
    """
    targets = plugins.find("agents", "replay").columns
    if option is None:
        known = tuple(_OF_SAMPLES)
    else:
        known = targets[option]

    mapped: dict[str, str] = {}
    for pair in pairs:
        target, equals, column = (part.strip() for part in pair.partition("="))
        if not equals:
            raise BadOption(
                f"--map {pair}", "expected TARGET=COLUMN, e.g. --map answer=predicted_answer"
            )

        if target not in known:
            forms = {name: kind.answer_file for name, kind in kinds.installed().items()}
            others = []
            for name, form in forms.items():
                if form is not None and target in targets[form.option]:
                    others.append(name)

            if others:
                hint = f" (it is for --kind {' or '.join(others)})"
            else:
                hint = ""

            hint = hint or did_you_mean(target, known, listing=False)
            raise BadOption(
                "--map", f"unknown target '{target}'{hint}; choose from {', '.join(known)}"
            )

        if target in mapped:
            raise BadOption(
                "--map", f"'{target}' is given twice: '{mapped[target]}' and '{column}'"
            )

        mapped[target] = column

    if option is not None:
        return mapped
    return {_OF_SAMPLES[target]: column for target, column in mapped.items()}


def report_faults(
    agent: _RecordedAgent,
    experiment: Experiment,
    dataset: Dataset,
    *,
    strict: bool,
    output: Output,
) -> list[str]:
    """Prints all faults of the file, counted by kind, and returns them as sentences.

    Without `strict`, the rest of the file is scored; with it, raises BadDataset.
    """
    names = [condition.name for condition in experiment.conditions]
    repetitions = experiment.execution.num_repetitions
    census = agent.census(dataset, conditions=names, repetitions=repetitions)
    if census is None:
        return []
    columns = " ".join(f"{target}={column}" for target, column in census.columns.items())
    output.say(f"columns: {columns} (change one with --map TARGET=COLUMN)")
    if not census.faults:
        return []
    listed: list[tuple[str, list[Fault]]] = []  # for each kind: how many, and the first few
    for fault_kind, line in zip(census.counts, census.lines, strict=True):
        faults = []
        for fault in census.faults:
            if fault.kind == fault_kind:
                faults.append(Fault(place=fault.place, message=fault.message))

        more = len(faults) - _MOST_NAMED
        if more > 0:
            further = [Fault(place="and", message=f"{more} more like these")]
        else:
            further = []

        listed.append((line, faults[:_MOST_NAMED] + further))

    file = shown_path(Path(agent.source["file"]))
    if strict or not census.used:
        why = []
        if not census.used:
            why.append("no row answers a turn of the dataset, so nothing is scored")
        if census.hint:
            why.append(census.hint)
        examples = (fault for _, faults in listed for fault in faults)
        raise BadDataset(file, [*(Fault(place="file", message=text) for text in why), *examples])

    output.say(
        f"{file}: {plural(sum(census.counts.values()), 'fault')} in {count(census.rows)} rows"
    )
    for line, faults in listed:
        output.say(f"  {line}", *(f"    {fault}" for fault in faults))

    output.say(*([f"  {census.hint}"] if census.hint else []))
    output.say("  The rest is scored. With --strict, nothing is.")
    return [f"the file of answers: {line}" for line in census.lines]
