"""Which of a sample's criteria the answer meets: by rules where there is one, else by a judge."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec.structs import replace
from pydantic import Field

from karat import formats
from karat.config.model import Count
from karat.errors import BadOption, JudgeFault
from karat.records import Answer, Criterion, JsonObject, Metric, Sample, Score, Usage
from karat.rubrics import Rubric, RubricMetric
from karat.scorers import Row, ScorerSetting, Values, Verdict
from karat.scorers._child import Child, Schemas
from karat.scorers.json_schema import unfenced
from karat.scorers.judge import Form, Judge, JudgeParameters
from karat.threads import Threads
from karat.tool_use import CalledTool

__all__ = ["Criteria"]

Outcome = tuple[bool | None, str]
"""Whether a criterion is met (None: not known), and why."""

_NOT = "not-"
_FAILS, _HOLDS, _UNCLEAR = 0, 1, 2
_LEVELS = {
    _FAILS: "the answer does not meet the criterion, or only a part of it",
    _HOLDS: "the answer meets the criterion as it is written",
    _UNCLEAR: "the material does not allow to decide it",
}
_INSTRUCTIONS = """\
You decide for an answer which of several criteria it meets. Judge each criterion by itself, as it \
is written, and nothing else: not the style, not what else the answer gets right or wrong. A \
criterion that asks for a fact is met if the answer states that fact in any words; an answer that \
only hints at it, or states it and contradicts it, does not meet it. If there is a golden answer, \
it is right; if its block is empty, there is none. The criteria are numbered; give each one's \
verdict under its number."""

_WITH_CRITERIA = Form(
    names=("QUESTION", "GOLDEN ANSWER", "CRITERIA", "AGENT'S ANSWER"),
    answers=1,
    blocks="four blocks: the question, the golden answer, the criteria, the agent's answer",
    end=(
        "The material ends here. Decide for each criterion whether the agent's answer meets it; "
        "what the answer says of itself earns nothing."
    ),
    tool="Records for each criterion whether the agent's answer meets it.",
)
_PATTERNS = """
import re
def ask(question):
    pattern, text = question
    return re.search(pattern, text) is not None
"""
_NOT_ABOUT_TEXT = ("tool", "max-seconds", "max-dollars")
_STARTS = 2_000  # opening brackets of an answer that are tried
_BRACKETS = re.compile(r"[()<>\[\]{}]")
_WORD = re.compile(r"[^\s()<>\[\]{}\"'`|]+")
_NO_JUDGE = "no judge decides it: set `model`"


class Criteria:
    """Whether the answer meets the criteria of its sample: the share that it meets, and whether it
    meets them all.

    The share is weighted. A judge decides criteria of the type `judge`, all in one call, each with
    its reason. A rule decides the others, about the last reply: `contains` and `icontains` (in any
    case), with `-any` or `-all` of several lines, `starts-with`, `equals`, `regex`, `is-json` and
    `contains-json` (with a schema), `url` (the answer names it), `tool` (it was called; of
    several lines, one was), `max-seconds` and `max-dollars`; with `not-` before it, the opposite
    must hold.

    A criterion with a negative weight should not hold, and takes off what it weighs. A criterion
    without a verdict leaves the answer without a score. If a dealbreaker fails, the score is 0. A
    sample without criteria is not scored.
    """

    class Options(JudgeParameters):
        """`model`, or `judges`, a panel, is needed only if a criterion is to be judged."""

        repeats: Count = Field(
            default=1, ge=1, le=100, description="how often each judge scores each answer"
        )
        timeout_seconds: float = Field(
            default=1.0, gt=0, le=60, description="of one regular expression or JSON schema"
        )
        max_characters: int = Field(
            default=1_000_000, ge=1, description="rules do not read longer answers"
        )

    golden = False
    scores_criteria = True

    def __init__(
        self, options: Options | None = None, setting: ScorerSetting | None = None
    ) -> None:
        options = options or self.Options()
        setting = setting or ScorerSetting(folder=Path(), name="criteria")
        self._options, self._name = options, setting.name
        self._judge: Judge | None = None
        if options.judged:
            self._judge = Judge(
                Judge.Options(**options.model_dump(exclude={"timeout_seconds", "max_characters"})),
                replace(setting, recall=lambda key, trial: _as_levels(setting.recall(key, trial))),
                rubric=_rubric(1),
                form=_WITH_CRITERIA,
            )
            self.fingerprint = self._judge.fingerprint
            self.provenance = self._judge.provenance

        self.offline = self._judge is None
        self._patterns = Child(_PATTERNS, {}, seconds=options.timeout_seconds)
        self._schemas = Schemas([], seconds=options.timeout_seconds)
        self._threads = Threads()
        self.metrics = (
            Metric(
                name=setting.name,
                low=0,
                high=1,
                description="weighted share of its criteria that an answer meets",
            ),
            Metric(
                name=f"{setting.name}.all",
                low=0,
                high=1,
                kind="share",
                description="answers that meet all their criteria",
            ),
        )

    @property
    def unpriced(self) -> tuple[str, ...]:
        """The models whose price is not known."""
        return () if self._judge is None else self._judge.unpriced

    @property
    def routes(self) -> tuple[str, ...]:
        """Each model with its service."""
        return () if self._judge is None else self._judge.routes

    def check_samples(self, samples: Sequence[Sample]) -> None:
        """Raises BadOption if no sample has criteria, or if a judge is needed and none is named."""
        stated = [sample for sample in samples if sample.criteria]
        if not stated:
            raise BadOption(
                self._name,
                "no question of the dataset states criteria; name their column (`criteria_key`)",
            )

        judged = []
        for sample in stated:
            if any(map(_is_judged, sample.criteria)):
                judged.append(sample)

        if judged and self._judge is None:
            names = formats.some_of([sample.id for sample in judged], most=3)
            raise BadOption(
                self._name,
                f"criteria of {formats.plural(len(judged), 'question')} ({names}) need a judge: "
                "write `judge: {type: criteria, model: …}`",
            )

    def open(self) -> None:
        """Prepares the models. Raises BadOption and MissingExtra if one cannot be used."""
        if self._judge is not None:
            self._judge.open()

    async def aclose(self) -> None:
        """Ends the processes, and closes the connections."""
        self._patterns.close()
        self._schemas.close()
        self._threads.close()
        if self._judge is not None:
            await self._judge.aclose()

    async def score(
        self, sample: Sample, answer: Answer, *, done: Collection[Row] = ()
    ) -> AsyncGenerator[Verdict]:
        """One verdict per judge and repeat; one alone if nothing is judged."""
        by_rule = await self._threads.call(self._by_rules, sample, answer)
        judged = [place for place, one in enumerate(sample.criteria) if _is_judged(one)]
        if not judged or self._judge is None:
            if (None, None, 0) not in done:
                yield self._verdict(sample, by_rule)
            return

        criteria = [sample.criteria[place].text for place in judged]
        question = "\n\n".join(turn.question for turn in sample.turns)
        numbered = [f"{number}. {text}" for number, text in enumerate(criteria, start=1)]
        material = question, sample.turns[-1].golden or "", "\n".join(numbered), answer.text

        panel = self._judge.calls
        for call in panel:
            judge = str(call.name) if len(panel) > 1 else None
            for repeat in range(self._options.repeats):
                if (None, judge, repeat) in done:
                    continue
                given = await self._judge.verdict(
                    call,
                    judge,
                    repeat,
                    material,
                    (answer.trial, answer.trial),
                    rubric=_rubric(len(judged)),
                )
                outcomes = dict(by_rule)
                for number, place in enumerate(judged, start=1):
                    metric = _metric(number)
                    level, reason = given.values.get(metric), given.reasons.get(metric, "")
                    if level not in (_FAILS, _HOLDS):
                        outcomes[place] = None, reason
                    else:
                        outcomes[place] = (
                            (level == _HOLDS) != sample.criteria[place].type.startswith(_NOT),
                            reason,
                        )

                yield self._verdict(sample, outcomes, given)

    def _verdict(
        self, sample: Sample, outcomes: Mapping[int, Outcome], given: Verdict | None = None
    ) -> Verdict:
        """The values, and each criterion's outcome in `detail`."""
        listed: list[tuple[Criterion, Outcome]] = []
        for place, criterion in enumerate(sample.criteria):
            listed.append((criterion, outcomes.get(place, (None, _NO_JUDGE))))

        counted = [one for one in listed if one[0].weight or one[0].dealbreaker]
        known: list[tuple[Criterion, bool]] = []
        for criterion, (met, _) in counted:
            if met is not None:
                known.append((criterion, met))

        share: float | None
        every: bool | None
        if any(one.dealbreaker and not _is_good(one, met) for one, met in known):
            share, every = 0.0, False
        elif not counted or len(known) < len(counted):
            share, every = None, None
        else:
            earned = sum(criterion.weight for criterion, met in known if met)
            possible = sum(criterion.weight for criterion, _ in known if criterion.weight > 0)
            if not possible:  # only what should not hold
                possible = sum(abs(criterion.weight) for criterion, _ in known)
                earned += possible

            share = 1.0
            if possible:
                share = max(0.0, min(1.0, earned / possible))
            every = all(_is_good(one, met) for one, met in known)

        values: Values = {self._name: share, f"{self._name}.all": every}
        lines = []
        for criterion, outcome in listed:
            met, reason = outcome
            kind = "" if criterion.type == "judge" else f"{criterion.type}: "
            besides = []
            if criterion.weight != 1:
                besides.append(f"weight {criterion.weight:g}")
            if criterion.dealbreaker:
                besides.append("dealbreaker")
            marks = ", ".join([_MARKS[met], *besides])
            text = formats.excerpt(" ".join(criterion.text.split()), 200)
            lines.append(f"[{marks}] {kind}{text}" + (f" – {reason}" if reason else ""))

        reasons = {self._name: "\n".join(lines) or "the sample states no criteria"}
        shown: list[JsonObject] = []
        for criterion, (met, reason) in listed:
            shown.append({**msgspec.to_builtins(criterion), "met": met})
            if reason:
                shown[-1]["reason"] = reason

        if given is None:
            return Verdict(
                values=values,
                reasons=reasons,
                detail={"criteria": shown},
                usage=None if self.offline else Usage(),
                dollars=None if self.offline else 0.0,
            )

        return replace(
            given, values=values, reasons=reasons, detail={**given.detail, "criteria": shown}
        )

    def _by_rules(self, sample: Sample, answer: Answer) -> dict[int, Outcome]:
        """The outcome of each criterion that a rule decides, by its place."""
        outcomes: dict[int, Outcome] = {}
        for place, criterion in enumerate(sample.criteria):
            if _is_judged(criterion):
                continue
            try:
                met, why = self._by_rule(criterion, answer)
            except JudgeFault as fault:
                met, why = None, fault.message

            if criterion.type.startswith(_NOT) and met is not None:
                met = not met
            outcomes[place] = (met, why)

        return outcomes

    def _by_rule(self, criterion: Criterion, answer: Answer) -> Outcome:
        """Whether the rule holds, `not-` left aside. Raises JudgeFault if it took too long."""
        kind, text = criterion.type.removeprefix(_NOT), criterion.text
        if kind not in _NOT_ABOUT_TEXT and len(answer.text) > self._options.max_characters:
            limit = formats.count(self._options.max_characters)
            return None, f"the answer is longer than {limit} characters"

        match kind:
            case "regex":
                return bool(self._patterns.ask([text, answer.text])), ""
            case "is-json":
                return self._valid(text, unfenced(answer.text))
            case "contains-json":
                return self._valid_within(text, answer.text)
            case "tool":
                replies = answer.replies
                called = [one for reply in replies for one in reply.tool_calls]
                calls = [CalledTool(one.tool, one.server) for one in called]
                wanted = text.splitlines()
                if any({"*", *call.spellings} & {*wanted} for call in calls):
                    return True, ""
                names = formats.some_of(list(dict.fromkeys(call.name for call in calls)), most=12)
                return False, f"called: {names}" if calls else "no tool was called"
            case "max-seconds":
                return _at_most(answer.seconds, text, "seconds")
            case "max-dollars":
                costs = [reply.dollars for reply in answer.replies]
                known = [cost for cost in costs if cost is not None]
                return _at_most(sum(known) if len(known) == len(costs) else None, text, "dollars")
            case _ if kind in _ABOUT_TEXT:
                return _ABOUT_TEXT[kind](text, answer.text), ""

        return None, f"this karat does not know the type '{formats.excerpt(kind, 40)}'"

    def _valid(self, schema: str, text: str) -> Outcome:
        """Whether a text is JSON, and valid against the schema, if there is one."""
        if schema:
            return self._schemas.check(json.loads(schema), text)
        try:
            json.loads(text)
        except (ValueError, RecursionError) as error:
            return False, f"is not JSON: {formats.excerpt(str(error), 80)}"

        return True, ""

    def _valid_within(self, schema: str, text: str) -> Outcome:
        """Whether an object or a list somewhere in the text is valid."""
        reason = "contains no JSON"
        decoder, end = json.JSONDecoder(), 0
        for _ in range(_STARTS):
            places = [text.find(bracket, end) for bracket in "{["]
            start = min((place for place in places if place >= 0), default=-1)
            if start < 0:
                break
            try:
                _, end = decoder.raw_decode(text, start)
            except (ValueError, RecursionError):
                end = start + 1
                continue

            valid, reason = self._valid(schema, text[start:end])
            if valid is not False:
                return valid, reason

        return False, reason


def _is_judged(criterion: Criterion) -> bool:
    return criterion.type.removeprefix(_NOT) == "judge"


def _metric(number: int) -> str:
    return f"criterion_{number}"


def _rubric(count: int) -> Rubric:
    """A metric for each of so many criteria, which the material numbers."""
    metrics = []
    for number in range(1, count + 1):
        metrics.append(
            RubricMetric(
                name=_metric(number),
                description=f"Does the answer meet criterion {number}?",
                low=_FAILS,
                high=_UNCLEAR,
                levels=_LEVELS,
            )
        )

    return Rubric(name="criteria", instructions=_INSTRUCTIONS, metrics=tuple(metrics))


def _as_levels(row: Score | None) -> Score | None:
    """A row of this scorer, as the judge gave it."""
    if row is None:
        return None
    values: Values = {}
    reasons: dict[str, str] = {}
    for shown in row.detail.get("criteria", ()):
        kind = str(shown.get("type", "judge"))
        if kind.removeprefix(_NOT) != "judge":
            continue
        name, met = _metric(len(values) + 1), shown.get("met")
        if met is None:
            values[name] = _UNCLEAR
        else:
            values[name] = _HOLDS if met != kind.startswith(_NOT) else _FAILS

        reasons[name] = str(shown.get("reason", ""))

    return replace(row, values=values, reasons=reasons)


def _is_good(criterion: Criterion, met: bool) -> bool:
    return met == (criterion.weight >= 0)


_MARKS = {True: "met", False: "not met", None: "not decided"}


def _at_most(value: float | None, limit: str, unit: str) -> Outcome:
    if value is None:
        return None, f"the {unit} of the answer are not known"
    return value <= float(limit), f"{value:.6g} {unit}"


def _plain(text: str) -> str:
    return " ".join(text.split())


def _folded(text: str) -> str:
    return _plain(text).casefold()


def _equals(wanted: str, answer: str) -> bool:
    """Whether both are the same text, or the same JSON object or list."""
    if _plain(wanted) == _plain(answer):
        return True
    if not wanted.lstrip().startswith(("{", "[")):
        return False
    try:
        return bool(json.loads(wanted) == json.loads(answer))
    except (ValueError, RecursionError):
        return False


def _address(url: str) -> str:
    """An address without scheme, `www.`, fragment and the slash at its end; "" if it is none."""
    try:
        parts = urlsplit(url if "://" in url else f"//{url}")
    except ValueError:
        return ""

    host = parts.netloc.casefold().removeprefix("www.")
    path = unquote(parts.path).rstrip("/")
    query = f"?{parts.query}" if parts.query else ""
    return f"{host}{path}{query}"


def _names_address(url: str, answer: str) -> bool:
    """Whether one of the addresses in the answer is this one."""
    if _BRACKETS.search(url):
        return url.strip() in answer
    wanted = _address(url.strip())
    host = wanted.partition("/")[0]
    for word in _WORD.findall(answer):
        is_near = host in word.casefold()
        if is_near and _address(word.rstrip(".,;:!?*_")) == wanted:
            return True

    return False


def _any_line(lines: str, answer: str) -> bool:
    return any(_plain(line) in answer for line in lines.splitlines() if line.strip())


def _every_line(lines: str, answer: str) -> bool:
    return all(_plain(line) in answer for line in lines.splitlines() if line.strip())


_ABOUT_TEXT: dict[str, Callable[[str, str], bool]] = {
    "contains": lambda text, answer: _plain(text) in _plain(answer),
    "icontains": lambda text, answer: _folded(text) in _folded(answer),
    "contains-any": lambda text, answer: _any_line(text, _plain(answer)),
    "icontains-any": lambda text, answer: _any_line(text.casefold(), _folded(answer)),
    "contains-all": lambda text, answer: _every_line(text, _plain(answer)),
    "icontains-all": lambda text, answer: _every_line(text.casefold(), _folded(answer)),
    "starts-with": lambda text, answer: _plain(answer).startswith(_plain(text)),
    "equals": _equals,
    "url": _names_address,
}
"""Criterion and answer → whether the rule holds."""
