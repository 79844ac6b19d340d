"""`karat import promptfoo`: the JSON of `promptfoo eval --output results.json`.

Source of the format: promptfoo's types `OutputFile`, `EvaluateSummaryV3` and `EvaluateSummaryV2`
(version 2 of results: before promptfoo 0.99), and files that promptfoo 0.121.20 and 0.91.3 wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from karat.documents.answers import stop_reason
from karat.foreign import Json
from karat.formats import clean, excerpt
from karat.importers import (
    Findings,
    ImportedCondition,
    ImportedFailure,
    ImportedRun,
    ImportedScore,
    ImportedTrial,
    Stated,
)
from karat.records import Metric, Reply
from karat.sums import exact_sum, sum_of_known
from karat_imports.importers._reading import (
    asked,
    digest,
    failure,
    heads,
    items,
    sample_name,
    title,
    unique,
)

__all__ = ["Promptfoo"]

_HEAD = re.compile(rb'\s*\{\s*(?:"evalId"\s*:[^,{]*,\s*)?"results"\s*:\s*\{\s*"version"\s*:\s*\d')
# of a file whose keys are sorted
_KEYS = (b'"results"', b'"promptIdx"', b'"gradingResult"', b'"testCase"')
_GOLDEN = ("equals", "factuality", "similar")
_BY_RULE = re.compile(
    r"(?:not-)?(?:i?contains.*|i?equals|starts-with|is-.*|regex|levenshtein|rouge.*|bleu|gleu|meteor|cost|latency"
    r"|perplexity.*|word-count|finish-reason)"
)
_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_WHOLE = "promptfoo"  # the scorer of a whole test case: all its assertions together
_ERROR = 2  # failureReason of a test that could not be run


class Promptfoo:
    """results.json of `promptfoo eval --output`: prompts and providers are conditions, assertions
    are metrics.
    """

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        return _HEAD.match(head) is not None or (
            head.lstrip()[:1] == b"{" and all(key in head for key in _KEYS)
        )

    def runs(self, paths: Sequence[Path], findings: Findings) -> Iterable[ImportedRun]:
        """One run. With several files, the name of the file precedes that of the condition."""
        known = heads(
            paths,
            ("results", "results"),
            otherwise="holds no results of promptfoo (expected results.results)",
            findings=findings,
        )
        files = [_File(*head) for head in known]
        first = files[0]
        version = first.head.at("metadata").text("promptfooVersion")
        yield ImportedRun(
            name=first.head.at("config").text("description") or title(first.path),
            tool=f"promptfoo {version or ''}".strip(),
            trials=_Trials(files, findings),
            conditions={
                name: condition for file in files for name, condition in file.conditions.items()
            },
            metrics={
                _WHOLE: (Metric(name="pass", kind="share", description="every assertion passed"),)
            },
            created=first.head.at("results").text("timestamp"),
            seconds=first.stats.number("durationMs", low=0, times=0.001)
            if len(files) == 1
            else None,
            versions={"promptfoo": version} if version else {},
            sparse=True,  # tests may name their prompts and providers
            stated=[file.stated for file in files],
            detail={
                file.path.name: {"id": file.head.text("evalId"), "stats": file.stats}
                for file in files
            },
        )


class _File:
    """Everything in a file except its results."""

    def __init__(self, path: Path, head: Json, prefix: str) -> None:
        self.path = path
        self.head = head
        self._prefix = prefix
        results = head.at("results")
        self.stats = results.at("stats")
        prompts = results.list("prompts") or results.at("table", "head").list("prompts")
        pairs = [(_provider(prompt), _label(prompt)) for prompt in prompts]
        labels = list(dict.fromkeys(label for _, label in pairs))
        short = {}
        for place, label in enumerate(labels, start=1):
            if len(label) <= 40:
                short[label] = label
            else:
                short[label] = f"prompt {place}"

        many = len(labels) > 1, len({provider for provider, _ in pairs}) > 1
        names = unique([prefix + _name(pair[0], short[pair[1]], *many) for pair in pairs])
        self._by_place = dict(enumerate(names))
        self._by_pair = dict(zip(pairs, names, strict=True))
        self.conditions = {
            name: ImportedCondition(
                model=_provider(prompt) or None, detail={"prompt": prompt.get("raw")}
            )
            for name, prompt in zip(names, prompts, strict=True)
        }
        types = []
        for assertion in self.head.at("config", "defaultTest").list("assert"):
            types.append(assertion.text("type"))

        self._repeated = {kind for kind in types if types.count(kind) > 1}

    @property
    def stated(self) -> Stated:
        """The number of results, as the statistics of the file have it."""
        known = []
        for key in ("successes", "failures", "errors"):
            count = self.stats.count(key)
            if count is not None:
                known.append(count)

        if known:
            trials = sum(known)
        else:
            trials = None

        return Stated(file=self.path.name, conditions=self.conditions, trials=trials)

    def condition(self, row: Json) -> str:
        place = row.count("promptIdx")
        pair = (_provider(row), _label(row.at("prompt")))
        if place is None:
            known = self._by_pair.get(pair)
        else:
            known = self._by_place.get(place)

        name = known or self._prefix + _name(*pair, True, True)
        self.conditions.setdefault(name, ImportedCondition(model=pair[0] or None))
        return name

    def metric(self, assertion: Json) -> str:
        """The `metric` of an assertion, else its type; with its value if every test has several of
        that type.
        """
        kind = assertion.text("type") or "assertion"
        value = assertion.shown("value")
        named = assertion.text("metric")
        if named is None and value and kind in self._repeated:
            return f"{kind}: {excerpt(clean(value), 60)}"
        return named or kind


def _provider(value: Json) -> str:
    """The provider of a prompt or result: its label, else its id."""
    return value.text("provider") or value.at("provider").text("label", "id") or ""


def _label(prompt: Json) -> str:
    return prompt.text("label", "raw") or ""


# as `many` has them
def _name(provider: str, label: str, many_labels: bool, many_providers: bool) -> str:
    parts = (provider if many_providers or not many_labels else "", label if many_labels else "")
    return " · ".join(part for part in parts if part) or "not named"


class _Trials:
    """The results of the files, in order."""

    def __init__(self, files: Sequence[_File], findings: Findings) -> None:
        self._files = files
        self._findings = findings

    def __iter__(self) -> Iterator[ImportedTrial]:
        for file in self._files:
            # test case, condition → place → repetition
            earlier: dict[tuple[str, str], dict[int, int]] = {}
            for number, (place, row) in enumerate(
                items(file.path, "results", "results", findings=self._findings)
            ):
                test = row.at("testCase")
                condition = file.condition(row)
                variables = test.at("vars") or row.at("vars")
                identity = digest(variables or [test.get("assert"), test.get("description")])
                index = row.count("testIdx")  # of a repeated test: another one each time
                places = earlier.setdefault((identity, condition), {})
                repetition = places.setdefault(number if index is None else index, len(places))
                yield self._trial(file, row, variables, (identity, condition, repetition), place)

    def _trial(
        self,
        file: _File,
        row: Json,
        variables: Json,
        at: tuple[str, str, int],
        place: str,
    ) -> ImportedTrial:
        test = row.at("testCase")
        identity, condition, repetition = at
        question, used = _question(variables, row)
        response = row.at("response")
        title = test.text("description")

        # The result of each assertion; a set of assertions without its own metric is replaced by
        # its members
        parts: list[Json] = []
        for result in row.at("gradingResult").list("componentResults"):
            inner = result.list("componentResults")
            if inner and not result.at("assertion").text("metric"):
                parts += inner
            else:
                parts.append(result)

        cached = response.flag("cached")
        text = response.shown("output")
        reply = None
        tokens = response.at("tokenUsage")
        if text is not None:
            reply = Reply(
                text=text,
                usage=Json({**tokens.at("completionDetails"), **tokens}).usage(
                    input_tokens="prompt", output_tokens="completion", reasoning_tokens="reasoning"
                ),
                dollars=response.number("cost", low=0),
                model=row.at("provider").text("id"),
                stop_reason=stop_reason(response),
            )

        if cached:
            self._findings.changed("answer from promptfoo's cache: its latency is missing", place)
        failed = _failure(row, answered=reply is not None)
        plain = {}
        for key, value in variables.items():
            if isinstance(value, (str, int, float)):
                plain[key] = value

        metadata = {**plain, **test.at("metadata"), **({"description": title} if title else {})}
        metadata.pop(used or "", None)
        if cached:
            seconds = None
        else:
            seconds = row.number("latencyMs", low=0, times=0.001)

        if failed:
            scores = []
        else:
            scores = [*self._scores(file, row, parts, place)]

        # What an assertion compares the answer with, with variables filled in
        assertions = [*test.list("assert"), *(part.at("assertion") for part in parts)]
        golden = None
        for assertion in assertions:
            if assertion.get("type") in _GOLDEN and (wanted := assertion.text("value")):
                golden = _VARIABLE.sub(lambda match: variables.shown(match[1]) or match[0], wanted)
                break

        return ImportedTrial(
            sample=sample_name(question, identity),
            question=question,
            golden=golden,
            condition=condition,
            repetition=repetition,
            reply=reply,
            seconds=seconds,
            failure=failed,
            scores=scores,
            metadata=metadata,
            detail={
                "prompt": row.at("prompt").get("raw"),
                "response": response.without("output", "cost", "tokenUsage"),
                "metadata": row.get("metadata"),
                "id": row.get("id"),
            },
        )

    def _scores(
        self,
        file: _File,
        row: Json,
        parts: Sequence[Json],
        place: str,
    ) -> Iterator[ImportedScore]:
        if not parts:  # promptfoo lets a test without assertions pass; nothing was measured
            return
        groups: dict[str, list[Json]] = {}
        for part in parts:
            groups.setdefault(file.metric(part.at("assertion")), []).append(part)

        # Assertions of one name: all must pass; the score is their weighted mean, as in promptfoo
        scores: list[ImportedScore] = []
        for name, group in groups.items():
            assertions = [part.at("assertion") for part in group]
            weights = []
            for assertion in assertions:
                weight = assertion.number("weight")
                weights.append(1.0 if weight is None else max(weight, 0.0))

            if not sum(weights):
                weights = [1.0] * len(group)
            passes = [part.flag("pass") for part in group]
            numbers = [self._value(part, "score", place) for part in group]
            total = sum_of_known(
                None if number is None else number * weight
                for number, weight in zip(numbers, weights, strict=True)
            )
            uses = [part.at("tokensUsed") for part in group]
            judged = [use for use in uses if use.count("total")]
            reasons = [part.text("reason") for part in group]
            scores.append(
                ImportedScore(
                    scorer=name,
                    values={
                        "pass": None if None in passes else all(passes),
                        "score": None if total is None else total / exact_sum(weights),
                    },
                    reasons={"pass": "\n".join(filter(None, reasons))},
                    detail={"assertions": list(group)},
                    usage=judged[0].usage(input_tokens="prompt", output_tokens="completion")
                    if len(judged) == 1
                    else None,
                    offline=all(
                        _BY_RULE.fullmatch(assertion.text("type") or "") for assertion in assertions
                    ),
                )
            )

        values = {"pass": row.flag("success"), "score": self._value(row, "score", place)}
        yield ImportedScore(
            scorer=_WHOLE, values=values, offline=all(score.offline for score in scores)
        )
        yield from scores
        named = row.at("namedScores")
        for name in named:
            if name not in groups:
                yield ImportedScore(scorer=name, values={"score": self._value(named, name, place)})

    def _value(self, of: Json, key: str, place: str) -> float | None:
        value = of.number(key)
        if value is None and of.get(key) is not None:
            self._findings.unreadable("score that is not a number", place)
        return value


def _failure(row: Json, *, answered: bool) -> ImportedFailure | None:
    """Why a test could not be run; a failed assertion is not such a failure."""
    message = row.text("error") or row.at("response").text("error")
    if message is None and not answered:
        message = "the file holds neither an output nor an error"
    if message is None or (
        answered and row.at("gradingResult") and row.count("failureReason") != _ERROR
    ):
        return None

    if answered:
        return ImportedFailure(
            cls="judge",
            kind="error",
            message=message,
            stage="score",
            scorer=_WHOLE,
        )

    return failure(message)


def _question(variables: Json, row: Json) -> tuple[str, str | None]:
    """The question of a test case, and its variable: unlike prompts, questions are the same in all
    conditions.
    """
    used = asked(variables) or (next(iter(variables)) if len(variables) == 1 else None)
    if used is not None:
        return variables.shown(used) or "", used
    listed = "\n".join(f"{name}: {variables.shown(name)}" for name in variables)
    return listed or row.at("prompt").text("raw") or "(a test without variables)", None
