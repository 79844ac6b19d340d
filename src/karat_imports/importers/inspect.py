"""`karat import inspect`: logs of Inspect AI, `.eval` and `.json`, without inspect-ai.

Only those parts of a sample are decoded that a run folder can store; its events, most of the bytes,
are skipped. Source of the format: `inspect_ai.log.EvalLog` (version 2) and the layout of the
archive that its recorder writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from karat.errors import MissingExtra
from karat.foreign import Json
from karat.formats import excerpt
from karat.importers import (
    Findings,
    ImportedCondition,
    ImportedFailure,
    ImportedRun,
    ImportedScore,
    ImportedTrial,
    Stated,
)
from karat.records import JsonObject, Reply, ToolCall, Usage
from karat.sums import sum_of_known
from karat_imports.importers._reading import (
    LONGEST,
    bad_file,
    by_name,
    decode,
    document,
    each_readable,
    failure,
    opened,
    seconds_between,
    texts,
    utc,
)

if TYPE_CHECKING:
    from karat_imports.importers._zips import Archive

__all__ = ["Inspect"]

_MOST_EPOCHS = 1000  # repetitions of a sample in the plan
_MOST_ATTACHED = 1 << 20  # characters that replace references in the texts of a sample
_REFERENCE = re.compile(r"attachment://([0-9a-f]{32}|\d+)")
_SAMPLE_NAME = re.compile(r"samples/(.+)_epoch_(\d{1,9})\.json", re.DOTALL)
_NUMBERS = {
    "C": 1.0,
    "P": 0.5,
    "I": 0.0,
    "N": 0.0,
    "yes": 1.0,
    "true": 1.0,
    "no": 0.0,
    "false": 0.0,
}
_LIMITS = (
    "message_limit",
    "token_limit",
    "turn_limit",
    "time_limit",
    "working_limit",
    "cost_limit",
)


class _Part(msgspec.Struct, frozen=True, gc=False):
    type: str = "text"
    text: str | None = None
    reasoning: str | None = None


class _Error(msgspec.Struct, frozen=True, gc=False):
    message: str = ""


class _Message(msgspec.Struct, frozen=True):
    role: str = ""
    content: str | list[_Part] | None = None
    tool_calls: list[JsonObject] | None = None
    tool_call_id: str | None = None
    error: _Error | None = None
    tool_error: str | None = None  # in old logs
    reasoning: str | None = None  # in old logs


class _Usage(msgspec.Struct, frozen=True, gc=False):
    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    input_tokens_cache_read: int | None = None
    input_tokens_cache_write: int | None = None
    reasoning_tokens: int | None = None
    total_cost: float | None = None


class _Choice(msgspec.Struct, frozen=True):
    message: _Message = _Message()
    stop_reason: str | None = None


class _Output(msgspec.Struct, frozen=True):
    model: str = ""
    choices: list[_Choice] = []
    completion: str | None = None  # not in old logs
    usage: _Usage | None = None
    error: str | None = None


class _Score(msgspec.Struct, frozen=True):
    value: object = None
    answer: str | None = None
    explanation: str | None = None
    reason: str | None = None
    metadata: JsonObject | None = None
    history: list[JsonObject] = []


class _Sample(msgspec.Struct, frozen=True):
    id: int | str
    epoch: int
    input: str | list[_Message] = ""
    choices: list[str] | None = None
    target: str | list[str] = ""
    messages: list[_Message] = []
    output: _Output = _Output()
    scores: dict[str, _Score] | None = None
    score: _Score | None = None  # in old logs: the only scorer's
    metadata: JsonObject = {}
    model_usage: dict[str, _Usage] = {}
    role_usage: dict[str, _Usage] = {}
    started_at: str | None = None
    total_time: float | None = None
    working_time: float | None = None
    uuid: str | None = None
    invalidation: JsonObject | None = None
    error: _Error | None = None
    error_retries: list[_Error] | None = None
    limit: JsonObject | None = None
    turn_count: int | None = None

    @property
    def chat(self) -> list[_Message]:
        """The messages of the input; empty if it is a text."""
        if isinstance(self.input, str):
            return []
        return self.input


class _Attached(msgspec.Struct, frozen=True):
    """The attachments of a sample, which are decoded only if a text refers to them."""

    attachments: dict[str, str] = {}


class _Header(msgspec.Struct, frozen=True, kw_only=True):
    """A log's data about the whole run."""

    status: str = "started"
    eval: JsonObject
    plan: JsonObject = {}
    stats: JsonObject = {}
    results: JsonObject | None = None
    error: _Error | None = None


_Read = Callable[[], bytes]
_Decoded = TypeVar("_Decoded")
_HEADER = msgspec.json.Decoder(_Header)
_SAMPLE = msgspec.json.Decoder(_Sample)
_ATTACHED = msgspec.json.Decoder(_Attached)


def _decode(decoder: msgspec.json.Decoder[_Decoded], data: bytes) -> _Decoded:
    """JSON as Inspect writes it, with NaN, infinities and half surrogate pairs.

    Raises ValueError, RecursionError.
    """
    try:
        return decoder.decode(data)
    except msgspec.ValidationError:
        raise
    except ValueError:
        if len(data) > LONGEST:
            raise
        return msgspec.convert(decode(data), decoder.type)


class Inspect:
    """Logs of Inspect AI (.eval and .json): a run for each task; models or task arguments are its
    conditions.
    """

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """A zip archive named .eval, or JSON that begins like a log."""
        if path.suffix == ".eval":
            return head.startswith(b"PK")
        keys = b'"version"', b'"eval"', b'"task"'
        return head.lstrip().startswith(b"{") and all(key in head[:4096] for key in keys)

    def runs(self, paths: Sequence[Path], findings: Findings) -> Iterable[ImportedRun]:
        """One run for each task and dataset, in the order of the files. Raises BadDataset."""
        tasks: dict[tuple[str, str], list[_Log]] = {}
        for log in each_readable(paths, lambda path: _Log(path, findings), findings):
            tasks.setdefault((log.task, log.dataset), []).append(log)

        for same_task in tasks.values():
            logs = sorted(same_task, key=lambda log: log.created or "")
            for log in logs:
                log.note_reducers()

            conditions = _conditions(logs, findings)
            packages = logs[0].spec.at("packages")
            seconds = [
                seconds_between(Json(log.header.stats), "started_at", "completed_at")
                for log in logs
            ]
            described: dict[str, ImportedCondition] = {}
            for name, ((newest, *_), *_) in conditions.items():
                prompts = [
                    step.at("params").text("template")
                    for step in newest.plan.list("steps")
                    if step.text("solver") == "system_message"
                ]
                described[name] = ImportedCondition(
                    model=newest.model,
                    system_prompt=next(iter(prompts), None),
                    detail=_settings(newest),
                )

            yield ImportedRun(
                name=logs[0].task,
                tool=f"inspect_ai {packages.text('inspect_ai') or ''}".strip(),
                trials=_trials(conditions),
                conditions=described,
                dataset=logs[0].dataset,
                created=logs[0].created,
                seconds=sum_of_known(seconds),
                planned=(
                    max(len(log.places) for log in logs),
                    max(sum(map(_epochs, same)) for same in conditions.values()),
                ),
                unfinished=[
                    said
                    for same in conditions.values()
                    for newest, *_ in same
                    if (said := newest.unfinished) is not None
                ],
                stated=[_stated(name, same) for name, same in conditions.items()],
                versions={
                    name: version for name, version in packages.items() if isinstance(version, str)
                },
            )


class _Log:
    """One file: its data about the run, and its samples, read one at a time."""

    def __init__(self, path: Path, findings: Findings) -> None:
        self.path = path
        self.findings = findings
        try:
            with opened(path) as file:
                archive = _archive(file, self.path)
                if archive is None:
                    self.header = msgspec.convert(document(path, "samples"), _Header)
                else:
                    name = "header.json"
                    if name not in archive.names:
                        name = "_journal/start.json"
                    if name not in archive.names:
                        raise ValueError("it has neither header.json nor _journal/start.json")
                    self.header = _decode(_HEADER, archive.read(name))
        except (ValueError, RecursionError) as error:
            raise bad_file(
                path, f"is not a readable log of Inspect: {str(error).strip()}"
            ) from error

        self.spec = Json(self.header.eval)
        self.plan = Json(self.header.plan)
        self.task = self.spec.text("task") or "task"
        self.created = utc(self.spec.text("created"))
        self.model = self.spec.text("model")
        self.dataset = self.spec.at("dataset").text("name", "location") or ""
        ids = self.spec.at("dataset").get("sample_ids")
        self.epochs = min(self.spec.at("config").count("epochs") or 1, _MOST_EPOCHS)
        self.places = {
            str(name): place for place, name in enumerate(ids if isinstance(ids, list) else ())
        }

    def note_reducers(self) -> None:
        reducers = self.spec.at("config").get("epochs_reducer") or ["mean"]
        if reducers != ["mean"]:
            self.findings.note(
                f"{self.path.name} reduces epochs by {_written(reducers)}; karat takes their mean"
            )

    @property
    def unfinished(self) -> str | None:
        """What the log says of being incomplete; None: nothing."""
        status = self.header.status
        if status == "success":
            return None
        if self.header.error:
            why = f" ({excerpt(self.header.error.message, 120)})"
        else:
            why = ""

        return f"{self.path.name} " + (
            "was never finished" if status == "started" else f"ended with the status {status}{why}"
        )

    def metric(self, scorer: str, key: str) -> str:
        """The name of a number in an object that a scorer gave, or of its only number; karat's own
        are kept.
        """
        if key == scorer or "karat" in self.spec.at("packages"):
            return key
        return f"{scorer}.{key}"

    def stated(self, condition: str) -> Stated:
        """The number of samples that were planned, and the accuracy of each scorer in the log's
        results.
        """
        results = Json(self.header.results or {})
        means: dict[tuple[str, str], float] = {}
        for score in results.list("scores"):
            accuracy = score.at("metrics", "accuracy").number("value")
            name = score.text("scorer", "name")
            if accuracy is not None and name is not None and not score.count("unscored_samples"):
                means[name, self.metric(name, score.text("name") or name)] = accuracy

        planned = max(results.count("total_samples") or 0, len(self.places) * self.epochs)
        planned -= len(results.at("early_stopping").list("early_stops"))  # left out on purpose
        return Stated(
            file=self.path.name,
            conditions=(condition,),
            trials=planned or None,
            means=means,
        )

    def samples(self) -> Iterator[tuple[_Sample, _Read]]:
        """Each sample, and a function that reads its JSON again; from an archive in dataset
        order.
        """
        with opened(self.path) as file:
            for name, read in self._sources(file):
                try:
                    sample = _decode(_SAMPLE, read())
                    if not 1 <= sample.epoch <= _MOST_EPOCHS:
                        raise ValueError(f"epoch {sample.epoch}")
                    yield sample, read
                except (ValueError, RecursionError) as error:
                    self.findings.lose(
                        f"a sample: {excerpt(str(error), 120)}", f"{self.path.name}, {name[:120]}"
                    )

    def _sources(self, file: BufferedReader) -> Iterator[tuple[str, _Read]]:
        archive = _archive(file, self.path)
        if archive is None:
            for number, text in enumerate(
                texts(self.path, "samples", findings=self.findings), start=1
            ):
                yield f"sample {number}", partial(bytes, text)

            return

        order: dict[str, tuple[int, int]] = {}
        for name in archive.names:
            if match := _SAMPLE_NAME.fullmatch(name):
                order[name] = self.places.get(match[1], len(self.places)), int(match[2])
            elif name.startswith("samples/") and (
                name.endswith("/sample.json") or name.count("/") == 1
            ):
                self.findings.lose(
                    "a sample in chunks or of another name", f"{self.path.name}, {name[:120]}"
                )

        for name in sorted(order, key=order.__getitem__):
            yield name, partial(archive.read, name)


def _archive(file: BufferedReader, path: Path) -> Archive | None:
    if not file.peek(2).startswith(b"PK"):
        return None
    try:
        from karat_imports.importers._zips import Archive
    except ModuleNotFoundError as error:
        raise MissingExtra("inspect", f"{path}: a packed log (.eval)") from error

    return Archive(file)


def _stated(condition: str, evaluations: Sequence[Sequence[_Log]]) -> Stated:
    """What the newest logs state together; means only if the condition has no answers of other
    logs.
    """
    first, *others = (newest.stated(condition) for newest, *_ in evaluations)
    trials = []
    for stated in (first, *others):
        if stated.trials is not None:
            trials.append(stated.trials)

    if len(trials) <= len(others):
        return msgspec.structs.replace(first, trials=None, means={})
    if not others and len(evaluations[0]) == 1:
        return first
    return msgspec.structs.replace(first, trials=sum(trials), means={})


def _epochs(attempts: Sequence[_Log]) -> int:
    return max(log.epochs for log in attempts)


def _settings(log: _Log) -> JsonObject:
    """Settings other than the model that affect the answers, flat; those that differ name the
    conditions.
    """
    spec = log.spec
    steps = []
    for step in log.plan.list("steps"):
        steps.append((step.text("solver") or "", step.at("params")))

    limits = {}
    for key, value in spec.at("config").items():
        if key in _LIMITS and value is not None:
            limits[key] = value

    return {
        **spec.at("task_args"),
        "task_version": spec.get("task_version"),
        "solver": spec.text("solver") or " + ".join(solver for solver, _ in steps),
        **{f"solver.{key}": value for key, value in spec.at("solver_args").items()},
        **{f"{solver}.{key}": value for solver, params in steps for key, value in params.items()},
        **{f"model.{key}": value for key, value in spec.at("model_args").items()},
        **spec.at("model_generate_config"),
        **log.plan.at("config"),
        **limits,
    }


def _conditions(logs: Sequence[_Log], findings: Findings) -> dict[str, list[list[_Log]]]:
    """Condition → its evaluations, the oldest first. Each has its logs, the newest first: one that
    was retried several.

    Evaluations of the same samples, with the same settings and code, are repetitions.
    """
    attempts: dict[tuple[str, str | None], list[_Log]] = {}
    for log in logs:
        attempts.setdefault((log.spec.text("task_id") or str(log.path), log.model), []).insert(
            0, log
        )

    settings = [
        {"model": same[0].model or "model not named", **_settings(same[0])}
        for same in attempts.values()
    ]
    keys = dict.fromkeys(key for setting in settings for key in setting)
    differing = [
        key for key in keys if len({_written(setting.get(key)) for setting in settings}) > 1
    ] or ["model"]
    names = [
        " ".join(
            ("" if key == "model" else f"{key}=") + excerpt(_written(setting.get(key)), 60)
            for key in differing
        )
        for setting in settings
    ]
    alike: dict[tuple[str, str], list[list[_Log]]] = {}
    for name, setting, same in zip(names, settings, attempts.values(), strict=True):
        of_code = same[0].spec.get("revision"), sorted(same[0].places) or str(same[0].path)
        alike.setdefault((name, _written([setting, *of_code])), []).append(same)

    if len({_written(setting) for setting in settings}) < len(alike):
        findings.note(
            "logs with the same settings, of other code or samples, become separate conditions"
        )

    named = by_name([name for name, _ in alike], alike.values())
    for name, evaluations in named.items():
        if len(evaluations) > 1:
            findings.note(
                f"{name}: {len(evaluations)} evaluations with the same settings are repetitions"
            )

        for same in evaluations:
            if len(same) > 1:
                many = len(same)
                findings.note(
                    f"{name}: {many} logs are attempts at one evaluation; the newest of each "
                    f"sample counts"
                )

    return named


def _trials(conditions: Mapping[str, Sequence[Sequence[_Log]]]) -> Iterator[ImportedTrial]:
    for name, evaluations in conditions.items():
        before = 0  # repetitions of earlier evaluations
        for logs in evaluations:
            for trial in _newest(logs):
                yield trial.trial(name, before)

            before += _epochs(logs)


def _newest(logs: Sequence[_Log]) -> Iterator[_Trial]:
    """The newest of each sample and epoch."""
    seen: set[tuple[str, int]] = set()
    for log in logs:
        for sample, read in log.samples():
            key = str(sample.id), sample.epoch
            if len(logs) == 1 or key not in seen:
                seen.add(key)
                yield _Trial(log, sample, read)


class _Trial:
    """Converts one sample in one epoch."""

    def __init__(self, log: _Log, sample: _Sample, read: _Read) -> None:
        self._log = log
        self._sample = sample
        self._read = read
        self._findings = log.findings
        self._place = f"{log.path.name}, {sample.id} epoch {sample.epoch}"
        self._scores = sample.scores or ({"score": sample.score} if sample.score else {})
        self._attached: Mapping[str, str] | None = None
        self._room = _MOST_ATTACHED

    def trial(self, condition: str, before: int) -> ImportedTrial:
        sample = self._sample
        failure = self._failure()
        answered = failure is None or sample.output.choices or sample.output.completion
        reply = None
        if answered:
            reply = self._reply()
        if isinstance(sample.input, str):
            text = self._text(sample.input)
        else:
            asked = [message for message in sample.chat if message.role == "user"] or sample.chat
            text = "\n\n".join(self._text(message.content) for message in asked)

        lines = []
        for number, choice in enumerate(sample.choices or ()):
            lines.append(f"{chr(ord('A') + number)}) {self._text(choice)}")

        if lines:
            text = "\n".join([text, "", *lines])

        # Before the detail, which may use up the room for attachments
        scores = []
        for name, score in self._scores.items():
            scores.append(self._score(name, score))

        several = len(sample.model_usage) > 1 or bool(sample.role_usage)
        if several:
            self._findings.note(
                "tokens and cost of an answer are those of all models of its sample, graders "
                "included"
            )

        if len(sample.chat) > 1:
            chat = sample.chat
        else:
            chat = []

        detail: JsonObject = {
            "uuid": sample.uuid,
            "input": [
                {"role": message.role, "content": self._text(message.content)} for message in chat
            ],
            "target": sample.target if isinstance(sample.target, list) else None,
            "limit": sample.limit,
            "error": sample.error and sample.error.message,
            "error_retries": [error.message for error in sample.error_retries or ()],
            "invalidation": sample.invalidation,
            "model_usage": several and msgspec.to_builtins(sample.model_usage),
            "role_usage": msgspec.to_builtins(sample.role_usage),
        }

        return ImportedTrial(
            sample=str(sample.id),
            question=text,
            golden=(sample.target if isinstance(sample.target, str) else " | ".join(sample.target))
            or None,
            condition=condition,
            repetition=before + sample.epoch - 1,
            reply=reply,
            started=utc(sample.started_at),
            seconds=sample.total_time if (sample.total_time or 0) >= 0 else None,
            failure=failure,
            scores=scores,
            metadata=sample.metadata,
            detail={key: value for key, value in detail.items() if value},
        )

    def _failure(self) -> ImportedFailure | None:
        """Why there is no answer.

        Whatever Inspect scored counts, as it does in Inspect's own numbers.
        """
        sample = self._sample
        error = self._sample.error
        if sample.invalidation is not None:
            self._findings.changed(
                "a sample that was invalidated is read like any other", self._place
            )

        if self._scores:
            if error is not None:
                self._findings.changed(
                    "an answer with an error counts, because Inspect scored it", self._place
                )

            return None

        if error is None and sample.limit is not None:
            kind = f"{sample.limit.get('type')}_limit"
            return ImportedFailure(
                cls="limit", kind=kind, message=str(sample.limit.get("reason") or kind)
            )

        if error is None:
            message = sample.output.error
        else:
            message = error.message

        if message is None:
            return None
        return failure(message)

    def _reply(self) -> Reply:
        sample = self._sample
        output = self._sample.output
        choice = next(iter(output.choices), _Choice())
        if isinstance(choice.message.content, list):
            parts = choice.message.content
        else:
            parts = []

        thoughts = (
            "\n\n".join(part.reasoning for part in parts if part.reasoning)
            or choice.message.reasoning
        )
        uses = list(sample.model_usage.values()) or ([output.usage] if output.usage else [])
        answer = next(
            (score.answer for score in self._scores.values() if score.answer is not None), None
        )
        if uses:

            def total(counts: Iterable[int | None]) -> int | None:
                known = []
                for count in counts:
                    if count is not None:
                        known.append(count)

                if known:
                    return sum(known)
                return None

            input_tokens = 0
            for use in uses:
                input_tokens += use.input_tokens
                # Cached ones are counted apart, but for some old providers
                if use.total_tokens != use.input_tokens + use.output_tokens:
                    input_tokens += use.input_tokens_cache_read or 0
                    input_tokens += use.input_tokens_cache_write or 0

            usage = Usage(
                input_tokens=input_tokens,
                output_tokens=sum(use.output_tokens for use in uses),
                cache_read_tokens=total(use.input_tokens_cache_read for use in uses),
                cache_write_tokens=total(use.input_tokens_cache_write for use in uses),
                reasoning_tokens=total(use.reasoning_tokens for use in uses),
            )
        else:
            usage = None

        return Reply(
            text=self._text(
                choice.message.content if output.completion is None else output.completion
            ),
            answer=None if answer is None else self._text(answer),
            reasoning=self._text(thoughts) or None,
            tool_calls=tuple(self._tool_calls()),
            usage=usage,
            dollars=sum_of_known(use.total_cost for use in uses),
            milliseconds=sample.working_time and 1000 * sample.working_time,
            model=output.model or None,
            stop_reason=choice.stop_reason,
            responses=sample.turn_count,
        )

    def _tool_calls(self) -> Iterator[ToolCall]:
        sample = self._sample
        before: set[str] = set()
        for message in sample.chat:
            before.update(str(call.get("id")) for call in message.tool_calls or ())

        results = {}
        for one in sample.messages:
            if one.role == "tool":
                results[one.tool_call_id] = one

        for call in (call for message in sample.messages for call in message.tool_calls or ()):
            name = str(call.get("id"))
            arguments = call.get("arguments")
            result = results.get(name)
            if name in before:
                continue
            error = call.get("parse_error")
            if result is not None and error is None:
                if result.error is not None:
                    error = result.error.message
                else:
                    error = result.tool_error

            yield ToolCall(
                tool=str(call.get("function")),
                input=arguments if isinstance(arguments, dict) else {"arguments": arguments},
                result=self._text(result.content) if result is not None and error is None else None,
                error=None if error is None else str(error),
            )

    def _score(self, name: str, score: _Score) -> ImportedScore:
        value = score.value
        why = self._text(score.explanation)
        values = {name: value}
        if isinstance(value, dict):
            values = {}
            for key, item in value.items():
                values[self._log.metric(name, str(key))] = item

        if isinstance(value, list):
            values = {}
            for n, item in enumerate(value):
                values[f"{name}[{n}]"] = item

        return ImportedScore(
            scorer=name,
            values={key: self._number(item) for key, item in values.items()},
            labels={key: item for key, item in values.items() if isinstance(item, str)},
            reasons=dict.fromkeys(values, why),
            detail={
                **(score.metadata or {}),
                **({"reason": score.reason} if score.reason else {}),
                **({"history": score.history} if score.history else {}),
            },
        )

    def _number(self, value: object) -> float | bool | None:
        """As by Inspect's `value_to_float`, except that a score for which it warns and uses 0 is
        missing.
        """
        if (
            value is None
            or isinstance(value, (bool, float))
            or (isinstance(value, int) and abs(value) < 2**63)
        ):
            if value not in (None, 0, 1):
                self._findings.note(
                    "numbers of scorers are taken as better when higher: logs state no direction"
                )

            return value

        if isinstance(value, str):
            number = _NUMBERS.get(value, _NUMBERS.get(value.lower()))
            if number is not None or re.fullmatch(
                r"\s*[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\s*", value, re.IGNORECASE
            ):
                if number is None:
                    return float(value)
                return number

        self._findings.changed(
            "a score that is not a number is missing; Inspect's metrics may count it as 0",
            self._place,
        )
        return None

    def _text(self, content: str | Sequence[_Part] | None) -> str:
        """The text of a message; parts other than text are replaced by their type: [image]."""
        if content is None:
            return ""
        if not isinstance(content, str):
            parts = (
                f"[{part.type}]" if part.text is None else part.text
                for part in content
                if not part.reasoning
            )
            return self._text("\n".join(parts))

        if "attachment://" in content:
            return _REFERENCE.sub(self._resolved, content)
        return content

    def _resolved(self, reference: re.Match[str]) -> str:
        if self._attached is None:
            try:
                self._attached = _decode(_ATTACHED, self._read()).attachments
            except (ValueError, RecursionError):
                self._attached = {}

        text = self._attached.get(reference[1])
        if text is None or len(text) > self._room:
            self._findings.left_out("an attachment that is missing or too large", self._place)
            return reference[0]

        self._room -= len(text)
        return text


def _written(value: object) -> str:
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value, order="sorted").decode()
