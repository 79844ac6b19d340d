"""`karat import openai-evals`: logs of `oaieval`, and output items of runs of OpenAI's Evals API.

Source of the formats: `evals.record.LocalRecorder` of evals 3.0.1 (JSON Lines: spec, events, final
report), and `openai.types.evals.runs.OutputItemListResponse` of openai 3.52 (a list, a page with
`data`, or JSON Lines).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from karat.documents.answers import stop_reason
from karat.foreign import Json
from karat.importers import (
    Findings,
    ImportedCondition,
    ImportedRun,
    ImportedScore,
    ImportedTrial,
    Stated,
)
from karat.records import Reply, ToolCall
from karat_imports.importers._reading import (
    asked,
    beginning,
    by_name,
    failure,
    grouped,
    items,
    lines,
    recognized,
    said_last,
    title,
    unique,
    utc,
)

__all__ = ["OpenaiEvals"]

_LOG = re.compile(rb'\s*\{\s*"spec"\s*:\s*\{')
_ITEM = b'"eval.run.output_item"'
_PAGE = re.compile(rb'\s*\{\s*(?:"object"\s*:\s*"list"|"data"\s*:|"(?:first|last)_id"|"has_more")')
_UUID = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_GOLDEN = ("ideal", "expected", "expected_output", "correct_label", "ground_truth")
_TOKENS = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}


class OpenaiEvals:
    """Logs of oaieval (JSON Lines), and output items of runs of OpenAI's Evals API (JSON)."""

    listed_as: ClassVar[str] = "openai-evals"

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        return _LOG.match(head) is not None or _ITEM in head

    def runs(self, paths: Sequence[Path], findings: Findings) -> Iterable[ImportedRun]:
        """One run per eval, with its logs as conditions; all files of output items together are one
        run.
        """
        logs: dict[str, list[_Log]] = {}
        pages: dict[Path, bytes] = {}
        files = recognized(
            paths,
            findings,
            by=self.recognizes,
            otherwise="is neither a log of oaieval nor a list of output items of an eval's run",
        )
        for path in files:
            head = beginning(path)
            if _LOG.match(head):
                log = _Log(path, findings)
                logs.setdefault(log.spec.text("base_eval", "eval_name") or path.stem, []).append(
                    log
                )
            else:
                pages[path] = head

        for name, of_eval in logs.items():
            named = by_name([log.name for log in of_eval], of_eval)
            yield ImportedRun(
                name=name,
                tool="openai-evals",
                trials=(trial for shown, log in named.items() for trial in log.trials(shown)),
                conditions={
                    shown: ImportedCondition(
                        model=log.name, detail=log.spec.at("run_config").without("command")
                    )
                    for shown, log in named.items()
                },
                dataset=of_eval[0].spec.text("eval_name") or name,
                stated=[log.stated(shown) for shown, log in named.items()],
                unfinished=[
                    f"{log.path.name} has no final report" for log in of_eval if log.report is None
                ],
                created=utc(of_eval[0].spec.text("created_at")),
                detail={
                    log.path.name: {"run_id": log.spec.text("run_id"), "report": log.report}
                    for log in of_eval
                },
            )

        if pages:
            yield ImportedRun(
                name=title(next(iter(pages))),
                tool="openai-evals-api",
                trials=_output_items(pages, findings),
            )


class _Log:
    """A log of oaieval."""

    def __init__(self, path: Path, findings: Findings) -> None:
        self.path = path
        self.spec = Json()
        self.report = None
        for place, row in lines(path, findings):
            if row.at("spec"):
                self.spec = row.at("spec")
            self.report = row.get("final_report", self.report)
            if row.text("sample_id") is None and not {"spec", "final_report"} & row.keys():
                findings.lose("event without a sample_id", place)

        models = self.spec.get("completion_fns")
        if isinstance(models, list) and models:
            self.name = ", ".join(map(str, models))
        else:
            self.name = path.stem

    def stated(self, condition: str) -> Stated:
        """The accuracy in the final report."""
        accuracy = Json(self.report).number("accuracy")
        means = {}
        if accuracy is not None:
            means["match", "accuracy"] = accuracy

        return Stated(file=self.path.name, conditions=(condition,), means=means)

    def trials(self, condition: str) -> Iterator[ImportedTrial]:
        for _, sample, events in grouped(self._keyed, Findings()):
            of_type: dict[str, list[Json]] = {}
            for event in events:
                of_type.setdefault(event.text("type") or "", []).append(event.at("data"))

            matches = of_type.get("match", [])
            samplings = of_type.get("sampling", [])
            match, sampling = (group[0] if group else Json() for group in (matches, samplings))
            scores = [
                ImportedScore(
                    scorer="match",
                    repeat=place,
                    values={"accuracy": known.flag("correct")},
                    detail=known,
                    offline=True,
                )
                for place, known in enumerate(matches)
            ]
            metrics = Json()
            for known in of_type.get("metrics", []):
                metrics.update(known)

            if metrics:
                values = {key: metrics.score(key) for key in metrics}
                scores.append(
                    ImportedScore(
                        scorer="metrics",
                        values={key: value for key, value in values.items() if value is not None},
                        labels={
                            key: text for key in metrics if (text := metrics.text(key)) is not None
                        },
                    )
                )

            sampled = sampling.get("sampled")
            text = match.text("sampled") or Json(
                {"": sampled[0] if isinstance(sampled, list) and sampled else sampled}
            ).shown("")
            reply = None
            if text is not None or scores:
                reply = Reply(
                    text=text or "",
                    answer=match.text("picked"),
                    usage=sampling.at("usage").usage(**_TOKENS),
                    model=sampling.text("model"),
                    stop_reason=stop_reason(sampling),
                    tool_calls=tuple(
                        ToolCall(
                            tool=call.text("name") or "",
                            input=call.at("arguments"),
                            result=call.shown("return_value"),
                        )
                        for call in of_type.get("function_call", [])
                    ),
                )

            failed = None
            if "error" in of_type and not scores:
                failed = failure(of_type["error"][0].text("message", "type"))
            prompt = sampling.get("prompt")
            yield ImportedTrial(
                sample=sample,
                question=said_last(prompt) or sampling.shown("prompt") or sample,
                golden=match.shown("expected"),
                condition=condition,
                repetition=0,
                reply=reply,
                failure=failed,
                scores=scores,
                detail={
                    "prompt": prompt,
                    "events": [
                        event for event in events if event.text("type") not in ("match", "metrics")
                    ],
                },
            )

    def _keyed(self, findings: Findings) -> Iterator[tuple[str, str | None, Json]]:
        for place, row in lines(self.path, findings):
            yield place, row.text("sample_id"), row


def _output_items(pages: Mapping[Path, bytes], findings: Findings) -> Iterator[ImportedTrial]:
    """The output items of runs of the API: each run is a condition, named after its model."""
    conditions: dict[tuple[str, str], str] = {}  # run, model → condition
    for path, head in pages.items():
        if head.lstrip()[:1] == b"[":
            rows = items(path, findings=findings)
        elif _PAGE.match(head):
            rows = items(path, "data", findings=findings)
        else:
            rows = lines(path, findings)

        for place, row in rows:
            item = row.at("datasource_item")
            sample = row.at("sample")
            identity = row.shown("datasource_item_id")
            if identity is None:
                findings.lose("output item without a datasource_item_id", place)
                continue

            run = row.text("run_id") or ""
            model = sample.text("model") or "not named"
            if (run, model) not in conditions:
                taken = model in conditions.values()
                if taken:
                    conditions[run, model] = f"{model} ({run})"
                else:
                    conditions[run, model] = model
            item = item.at("item") or item
            key = asked(item)
            contents = []
            for message in sample.list("output"):
                contents.append(message.shown("content"))

            text = None
            if contents:
                text = "\n".join(content for content in contents if content is not None)
            failed = failure(sample.at("error").text("message", "code"))
            prompt = sample.get("input")
            results = sorted(row.list("results"), key=lambda result: result.text("name") or "")
            graders = unique([_UUID.sub("", result.text("name") or "grader") for result in results])
            scores = []
            for name, result in zip(graders, results, strict=True):
                scores.append(
                    ImportedScore(
                        scorer=name,
                        values={
                            f"{name}.pass": result.flag("passed"),
                            f"{name}.score": result.number("score"),
                        },
                        detail=result.without("name", "passed", "score"),
                    )
                )

            question = said_last(prompt) or identity
            if key:
                question = str(item[key])

            reply = None
            if text is not None:
                reply = Reply(
                    text=text,
                    usage=sample.at("usage").usage(**_TOKENS, cache_read_tokens="cached_tokens"),
                    model=sample.text("model"),
                    stop_reason=stop_reason(sample),
                )

            yield ImportedTrial(
                sample=identity,
                question=question,
                golden=item.text(*_GOLDEN),
                condition=conditions[run, model],
                reply=reply,
                failure=failed,
                scores=[] if failed else scores,
                metadata=item.without(key or ""),
                detail={
                    "prompt": prompt,
                    "id": row.get("id"),
                    "status": row.get("status"),
                    **{name: sample.get(name) for name in ("temperature", "top_p", "seed")},
                },
            )
