"""One trial for its page: formatted values, texts, and people's labels next to the judge's
scores.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from karat import formats
from karat.analysis.model import MetricInfo
from karat.context import stored_differences
from karat.errors import BadOption
from karat.journal import Label
from karat.kind_views import Reviews, TrialRecord, address
from karat.records import Reply, Score
from karat_viewer.text_diff import difference

_SHOWN = 20_000  # characters of a text on a page
_MOST_STEPS = 11  # shown as buttons; more than that, and the score is typed in
_MOST_CALLS = 200


class TrialContext(msgspec.Struct, frozen=True, kw_only=True):
    """What the view of a trial needs besides the trial."""

    run: str
    columns: Sequence[MetricInfo]
    conditions: Sequence[str]
    reviews: Reviews
    view: str  # rendered, plain, diff
    golden_answers: Sequence[str | None]  # turn by turn
    by_turn: bool
    folder: Path  # of the run


def trial_view(trial: TrialRecord, page: TrialContext) -> dict[str, Any]:
    """The template's data for one trial."""
    labels = page.reviews.labels.of(trial.id)
    if 0 <= trial.condition < len(page.conditions):
        name = page.conditions[trial.condition]
    else:
        name = "?"

    own = next(
        (label for label in labels if label.who == page.reviews.reviewer and label.turn is None),
        None,
    )
    replies = trial.replies
    people = [label for label in labels if label.scores and label.turn is None]
    scores = []
    for column in page.columns:  # on which the judge, another scorer or a person gave a number
        value = trial.values.get(column.key, math.nan)
        given = [label.scores.get(column.key) for label in people]
        if not math.isnan(value) or any(score is not None for score in given):
            by_people = [written(column, score) for score in given]
            scores.append({"key": column.key, "value": written(column, value), "people": by_people})

    claims = []
    for at, text in enumerate(claims_of(trial.scores)):
        claims.append(
            {
                "index": at,
                "text": text,
                "verdicts": [
                    (label.who, label.claims[text]) for label in labels if text in label.claims
                ],
                "own": own.claims.get(text, "") if own is not None else "",
            }
        )

    besides = ""  # what the tool behind an imported run recorded for the trial and its scores
    if trial.answer is not None and trial.answer.detail:
        details = {score.scorer: score.detail for score in trial.scores if score.detail}
        recorded = {"answer": trial.answer.detail, **details}
        besides = json.dumps(recorded, ensure_ascii=False, indent=1)

    return {
        "n": trial.n,
        "id": trial.id,
        "condition": trial.condition,
        "repetition": trial.repetition,
        "name": name,
        "label": f"{name}, repetition {trial.repetition + 1}",
        "answered": trial.answer is not None,
        "judged": any(not score.offline for score in trial.scores),
        "failure": _failure(trial),
        "damaged": trial.damaged,
        "people": [label.who for label in people],
        "scores": scores,
        "replies": [_reply(reply, turn, trial, page) for turn, reply in enumerate(replies)],
        "reasons": _reasons(trial.scores),
        "claims": claims,
        "besides": besides,
        "workspace": _workspace(trial, page.folder),
        "spent": _spent(trial),
        "attempts": [
            {"what": f"{error.kind} ({error.cls})", "message": error.message}
            for error in trial.attempts
        ],
        "notes": [label for label in labels if label.note],
        # A conversation's number is a mean over its turns, which a person would not give as one
        # score.
        "ask": [] if page.by_turn else [_question(column, own) for column in page.columns][:20],
        "own_note": own.note if own is not None else "",
    }


def claims_of(scores: Iterable[Score]) -> list[str]:
    """The unverified claims of a trial, each once, in the order in which they were made."""
    return list(dict.fromkeys(claim for score in scores for claim in score.claims))[:200]


def written(column: MetricInfo, value: float | None) -> str:
    """A value of a metric, formatted for people."""
    if value is None or math.isnan(value):
        return formats.UNKNOWN
    if column.percent and value in (0.0, 1.0):
        return "yes" if value else "no"
    if column.percent:
        return formats.share(value)
    return formats.number(value)


def steps_of(column: MetricInfo) -> list[tuple[str, str]]:
    """The choices for a metric, value and name; empty if any number is allowed."""
    if column.percent:
        return [("0", "no"), ("1", "yes")]
    steps = column.steps
    if not 1 < len(steps) <= _MOST_STEPS:
        return []
    return [(f"{step:g}", f"{step:g}") for step in steps]


def _question(column: MetricInfo, own: Label | None) -> dict[str, Any]:
    if own is not None:
        value = own.scores.get(column.key)
    else:
        value = None

    steps = steps_of(column)
    return {
        "key": column.key,
        "steps": steps,
        "own": ""
        if value is None
        else formats.raw(int(value) if steps or value == int(value) else value),
    }


def _failure(trial: TrialRecord) -> dict[str, str] | None:
    failure = trial.failure
    if failure is None:
        return None
    if failure.stage == "score":
        where = f"{failure.scorer or 'a scorer'} failed"
    else:
        where = f"{failure.cls} fault"

    return {"what": failure.kind.replace("_", " "), "where": where, "message": failure.message}


def _reply(reply: Reply, turn: int, trial: TrialRecord, page: TrialContext) -> dict[str, Any]:
    if turn < len(page.golden_answers):
        golden = page.golden_answers[turn]
    else:
        golden = None

    diff, uncompared = None, ""
    if page.view == "diff" and golden is not None and not page.by_turn:
        diff, uncompared = difference(golden, reply.text)
    if len(reply.text) > _SHOWN:
        whole = address("runs", page.run, "text", trial.id, turn)
    else:
        whole = None

    longest = max((call.milliseconds or 0.0 for call in reply.tool_calls), default=0.0)
    found = []
    for call in reply.tool_calls[:_MOST_CALLS]:
        elicited = []
        for question in call.elicited:
            said = f"{question.message}\n→ {question.action}"
            if question.content:
                said += f" {json.dumps(question.content, ensure_ascii=False)}"
            elicited.append(said)

        found.append(
            {
                "tool": call.tool,
                "server": call.server,
                "input": json.dumps(call.input, ensure_ascii=False, indent=1) if call.input else "",
                "elicited": "\n".join(elicited),
                "result": call.result,
                "error": call.error,
                "took": ""
                if call.milliseconds is None
                else formats.duration(call.milliseconds / 1000),
                "reach": None
                if not longest or call.milliseconds is None
                else round(100 * call.milliseconds / longest, 1),
            }
        )

    return {
        "text": reply.text,
        "length": len(reply.text),
        "diff": diff,
        "uncompared": uncompared,
        "whole": whole,
        "calls": found,
        "reasoning": reply.reasoning,
    }


def _reasons(scores: Sequence[Score]) -> list[tuple[str, str]]:
    several = (
        len({score.judge for score in scores}) > 1,
        len({score.repeat for score in scores}) > 1,
    )
    reasons = []
    for score in scores:
        if several[0]:
            by = [score.judge or "judge"]
        else:
            by = []

        if several[1]:
            by += [f"repeat {score.repeat + 1}"]
        if score.turn is not None:
            by += [f"turn {score.turn + 1}"]
        if by:
            mark = f" ({', '.join(by)})"
        else:
            mark = ""

        reasons += [(f"{metric}{mark}", reason) for metric, reason in score.reasons.items()]

    return reasons[:100]


def _workspace(trial: TrialRecord, run: Path) -> dict[str, str] | None:
    """What the trial changed in its workspace, in words and as a diff; None if it had no
    workspace.
    """
    changes = None
    if trial.answer is not None:
        changes = trial.answer.workspace
    if changes is None:
        return None
    parts = [
        f"{formats.plural(changes.changed, 'file')} changed",
        f"{formats.count(changes.removed)} removed",
    ]
    if not changes.complete:
        parts += [f"not everything was saved: {'; '.join(changes.left_out)}"]

    try:
        diff = stored_differences(run, changes.file)
    except (BadOption, OSError, ValueError) as error:
        parts = [*parts, f"the archive cannot be read: {error}"]
        diff = ""

    return {"what": ", ".join(parts), "diff": diff, "file": f"workspaces/{changes.file}"}


def _spent(trial: TrialRecord) -> str:
    judged = [score.dollars for score in trial.scores if not score.offline]
    parts = [f"agent {formats.dollars(trial.dollars)}"]
    if judged:
        known = [cost for cost in judged if cost is not None]
        parts.append(f"judge {formats.dollars(math.fsum(known), unknown=len(judged) - len(known))}")

    if trial.tokens is not None:
        parts.append(f"{formats.count(trial.tokens)} tokens")
    if trial.answer is not None:
        parts.append(formats.duration(trial.answer.seconds))
        if trial.answer.attempts > 1:
            parts.append(formats.plural(trial.answer.attempts, "attempt"))
        models = dict.fromkeys(reply.model for reply in trial.answer.replies if reply.model)
        if models:
            parts += [formats.excerpt(", ".join(models), 80)]

    return " · ".join(parts)
