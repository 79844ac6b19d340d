"""A conversation in the viewer: for each turn, golden and agents' answers and programs side by
side.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from pathlib import Path

from karat.foreign import Json
from karat.kind_views import VERDICTS as _VERDICTS
from karat.kind_views import (
    Reviews,
    ReviewTexts,
    SamplePage,
    Views,
    is_judged,
)
from karat.records import JsonObject, Sample, Score
from karat_conversations.numeric import right_by
from karat_conversations.numeric.diagnosis import MEANINGS

_STEP = re.compile(r"\b[A-Za-z_]\w*+\([^()]*+\)")
_MATCHES = {"right", "numerical"}  # that make a turn right
_MOST_STEPS = 60
_MOST_TURNS = 100
_LONG = 300  # characters of one value in a proof


class ConversationViews(Views):
    """Turns instead of one question."""

    templates = Path(__file__).parent / "templates"
    diagnoses = tuple(MEANINGS)
    reviews = ReviewTexts(
        judge="karat",
        head="what",
        counted="turns",
        reviewed="turns",
        empty=(
            "Nobody has judged a turn yet: open a conversation, and “Review” below one of its "
            "turns."
        ),
        legend="Over the turns that both judged, without those a person could not tell. Kappa is "
        "the agreement beyond chance, given how often each gives each verdict; its "
        "interval is clustered by conversation. karat's latest scores are used.",
    )

    def sample_page(self, page: SamplePage) -> tuple[str, JsonObject]:
        diagnoses = [(name, name.replace("_", " ")) for name in self.diagnoses]
        return "conversation.html.j2", {"turns": turns(page), "diagnoses": diagnoses}

    def place_of(self, sample: Sample, turn: int) -> tuple[dict[str, str], str]:
        del sample
        return {}, f"turn-{turn + 1}"

    def own_judgement(
        self, scores: Sequence[Score], turn: int, rule: str
    ) -> tuple[bool | None, str | None]:
        row = verdict_row(scores, turn)
        return right_of(row, rule), row.labels.get("diagnosis") if row is not None else None


def verdict_row(scores: Iterable[Score], turn: int) -> Score | None:
    """The row that tells whether a turn is right; None if there is none."""
    return next(
        (score for score in scores if score.turn == turn and not _MATCHES.isdisjoint(score.values)),
        None,
    )


def right_of(score: Score | None, rule: str) -> bool | None:
    """Whether a turn is right according to karat, by the match `rule`; None if unknown."""
    if score is None:
        return None
    if {rule, "right", "numerical"} <= score.values.keys():
        return bool(right_by(score.values, rule))
    value = score.values.get("right", score.values.get("numerical"))
    if value is None:
        return None
    return bool(value)


def turns(page: SamplePage) -> list[JsonObject]:
    """What the template needs: each turn with the result of every trial, and reviewers' labels."""
    shown: list[JsonObject] = []
    for at, turn in enumerate(page.sample.turns[:_MOST_TURNS]):
        golden = steps(turn.detail.get("program"))
        answers = []
        for trial in page.trials:
            if at < len(trial.replies):
                reply = trial.replies[at]
            else:
                reply = None

            score = verdict_row(trial.scores, at)
            if score is not None:
                detail = score.detail
            else:
                detail = {}

            right = right_of(score, page.rule)
            program = steps(detail.get("program"))
            if not program and reply is not None:
                program = steps(reply.program)

            unit = detail.get("unit")
            read = _shown(detail.get("actual")) or (
                "" if reply is None else reply.answer or reply.text[:_LONG]
            )
            if reply is not None:
                missing = ""
            else:
                missing = trial.why_missing()

            diagnosis = None
            if score is not None:
                diagnosis = score.labels.get("diagnosis")
            found = _counted(detail.get("evidence"))
            evidence = []
            for name, value in list(Json(found).items())[:20]:
                evidence.append((name, _shown(value)))

            if detail.get("carried") is True:
                evidence.append(("carried", "proved to be right, had earlier turns been right"))

            answers.append(
                {
                    "n": trial.n,
                    "condition": trial.condition,
                    "repetition": trial.repetition,
                    "name": page.name_of(trial),
                    "missing": missing,
                    "text": reply.text if reply is not None else "",
                    "actual": read,
                    "unit": unit if isinstance(unit, str) else "",
                    "program": aligned(golden, program)
                    if golden
                    else [(step, None) for step in program],
                    "right": right,
                    "diagnosis": diagnosis,
                    "evidence": evidence,
                    "trial": trial.id,
                    "turn": at,
                    "ask": is_judged(page.sample, at, trial),
                    "people": verdicts(page.reviews, trial.id, at, right),
                    "own": form_of(page.reviews, trial.id, at),
                }
            )

        shown.append(
            {
                "question": turn.question,
                "golden": turn.golden,
                "program": [(step, None) for step in golden],
                "answers": answers,
            }
        )

    return shown


def verdicts(reviews: Reviews, trial: str, turn: int, right: bool | None) -> list[JsonObject]:
    """Reviewers' verdicts on a turn against its golden answer, as text.

    `right`: karat's verdict, if any.
    """
    if right is None:
        opposite = None
    elif right:
        opposite = "wrong"
    else:
        opposite = "right"

    found = []
    for label in reviews.of_turn(trial, turn):
        if label.verdict is not None:
            found.append(
                {
                    "who": label.who,
                    "verdict": _VERDICTS[label.verdict],
                    "diagnosis": label.diagnosis.replace("_", " "),
                    "differs": label.verdict == opposite,
                }
            )

    return found


def form_of(reviews: Reviews, trial: str, turn: int) -> dict[str, str]:
    """The initial values of a turn's form, from the reviewer's label."""
    label = reviews.by_reviewer(trial, turn)
    if label is None:
        return {"verdict": "", "diagnosis": "", "note": ""}
    return {"verdict": label.verdict or "", "diagnosis": label.diagnosis, "note": label.note}


def _counted(value: object) -> object:
    """A proof with turns numbered from 1, as on the page.

    Its steps are numbered from 0, as in programs: #0.
    """
    if isinstance(value, list):
        return [_counted(item) for item in value[:50]]
    if not isinstance(value, dict):
        return value
    counted: JsonObject = {}
    for name, item in list(value.items())[:50]:
        if name == "turn" and isinstance(item, int):
            counted[name] = item + 1
        elif name == "turns" and isinstance(item, list):
            counted[name] = [turn + 1 if isinstance(turn, int) else turn for turn in item]
        else:
            counted[name] = _counted(item)

    return counted


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        text = value
    else:
        text = json.dumps(value, ensure_ascii=False)

    if len(text) <= _LONG:
        return text
    return text[:_LONG] + "…"


def steps(program: object) -> list[str]:
    """A program, step by step; none if it is not text.

    >>> steps("subtract(5, 3), divide(#0, 3)"), steps("412.5"), steps(None)
    (['subtract(5, 3)', 'divide(#0, 3)'], ['412.5'], [])
    """
    if not isinstance(program, str) or not program:
        return []
    short = program[:20_000]
    return (_STEP.findall(short) or [short])[:_MOST_STEPS]


def aligned(golden: Sequence[str], program: Sequence[str]) -> list[tuple[str, bool]]:
    """Each step of a program, and whether the golden one has the same at this position.

    >>> aligned(["subtract(5, 3)", "divide(#0, 3)"], ["subtract(5, 3)", "divide(#0, 5)"])
    [('subtract(5, 3)', True), ('divide(#0, 5)', False)]
    """
    same: set[int] = set()
    old, new = ([step.replace(" ", "") for step in side] for side in (golden, program))
    for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        same.update(range(block.b, block.b + block.size))
    return [(step, at in same) for at, step in enumerate(program)]
