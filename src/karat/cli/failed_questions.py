"""The work of `karat label --failed`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from karat import api, plugins
from karat.analysis.failed import Failed, FailedQuestion, failed_questions, threshold_of
from karat.analysis.model import MetricInfo, metric_of
from karat.cli.ending import Exit
from karat.cli.output import Output
from karat.errors import BadOption, unreadable
from karat.formats import OUTPUT_FORMAT, clean, escaped, plural, some_of


def write_failed(
    run: str,
    *,
    to: Path | None,
    metric: str | None,
    enough: float | None,
    dataset: Path | None,
    results: Path,
    output: Output,
) -> Exit:
    """Writes the questions of a run whose answers failed as rows of a dataset.

    Raises BadOption, BadRun or BadDataset.
    """
    if to is not None and to.suffix != ".jsonl":
        raise BadOption("--to", f"{to}: expected a file of JSON Lines, NAME.jsonl")
    folder = api.open(run, results=results)
    summary = api.summarize(folder)
    info: MetricInfo | None = None
    if metric is not None:
        info = metric_of(summary, metric)
    elif summary.metrics:
        info = summary.metrics[0]

    limit = 0.0
    if info is not None:
        limit = threshold_of(info, enough)
    elif enough is not None:
        raise BadOption("--enough", f"run {summary.run} has no scores")

    failed = failed_questions(folder, summary, info, limit)
    known: dict[str, str] = {}
    for path in (to, dataset):
        if path is None or (path is to and not (path.exists() and path.stat().st_size)):
            continue
        kind = plugins.build(plugins.find("kinds", "golden"), {}).without_answers()
        for sample in kind.load(path).samples:
            known.setdefault(_key(sample.turns[-1].question), f"{path}, {sample.id}")

    new: dict[str, FailedQuestion] = {}
    there: dict[str, str] = {}  # sample → where its question is
    for question in failed.questions:
        key = _key(question.question)
        if key in new:
            there[question.sample] = f"the question of {new[key].sample}"
        elif key in known:
            there[question.sample] = known[key]
        else:
            new[key] = question

    rows = [
        escaped(msgspec.json.encode(question.row(summary.run, info)).decode())
        for question in new.values()
    ]
    text = "".join(f"{row}\n" for row in rows)
    if to is not None:
        _append(to, text)
    elif rows and not output.as_json:
        output.file(text)

    shown: dict[str, str | float | None] = {"metric": None, "enough": None}
    if info is not None:
        shown = {"metric": info.key, "enough": limit}
    output.say(*_said(failed, shown, len(rows), there, to))
    if output.as_json:
        if to is None:
            place = {"text": text}
        else:
            place = {"to": str(to)}

        counts = {"failed": failed.trials, "passed": failed.passed, "left_out": failed.left_out}
        output.result(
            "",
            {
                "format": OUTPUT_FORMAT,
                "run": summary.run,
                **shown,
                **counts,
                "written": len(rows),
                "known": there,
                **place,
            },
        )

    return Exit.DONE


def _key(question: str) -> str:
    """The same for questions that differ only in spaces and capitals."""
    return " ".join(question.casefold().split())


def _append(to: Path, text: str) -> None:
    """Adds rows to a file, which is made if it is not there. Raises BadOption."""
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        with to.open("a+b") as file:
            if file.tell():
                file.seek(-1, 2)
                if file.read(1) != b"\n":
                    text = f"\n{text}"

            file.write(text.encode())
    except OSError as error:
        raise BadOption("--to", f"{to} cannot be written: {unreadable(error)}") from error


def _said(
    failed: Failed,
    by: Mapping[str, str | float | None],
    written: int,
    there: Mapping[str, str],
    to: Path | None,
) -> list[str]:
    without = failed.trials - failed.scored
    parts = []
    if by["metric"] is not None:
        parts.append(f"{failed.scored} with {by['metric']} worse than {by['enough']:g}")
    parts.append(f"{without} without an answer")
    ended = failed.trials + failed.passed
    lines = [f"{failed.trials} of {plural(ended, 'trial')} failed: {', '.join(parts)}"]
    if failed.left_out:
        counts = (f"{name} {count}" for name, count in failed.left_out.items())
        lines.append(f"left out, because they say nothing about the agent: {', '.join(counts)}")

    if to is None:
        lines.append(f"{plural(written, 'question')} written")
    else:
        lines.append(f"{plural(written, 'question')} written to {to}")

    if there:
        named = some_of([f"{sample} ({place})" for sample, place in there.items()])
        lines.append(f"not written again: {named}")

    if written:
        lines.append("Fill in `answer` where it is empty, then use the rows as a dataset.")
    return [clean(line) for line in lines]
