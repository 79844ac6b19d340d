"""`karat import mt-bench`: answers and judgments of MT-bench, and of benchmarks in its form.

Source of the format: `fastchat.llm_judge` of FastChat: question.jsonl, model_answer/MODEL.jsonl and
model_judgment/JUDGE_single.jsonl or JUDGE_pair.jsonl.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

import msgspec

from karat.foreign import Json
from karat.importers import (
    Findings,
    ImportedCondition,
    ImportedFailure,
    ImportedRun,
    ImportedScore,
    ImportedTrial,
)
from karat.records import Metric, Reply
from karat.sums import sum_of_known
from karat_imports.importers._reading import grouped, lines_with, recognized, repeats, utc
from karat_imports.importers._traces import named_after

__all__ = ["MtBench"]

_QUESTION = re.compile(rb'"question_id"\s*:.*"turns"\s*:\s*\[')
_ANSWER = re.compile(rb'"question_id"\s*:.*"model_id"\s*:.*"choices"\s*:\s*\[')
_JUDGMENT = re.compile(rb'"question_id"\s*:.*"judge"\s*:\s*\[')
_ERROR = "$ERROR$"  # what FastChat writes in place of an answer that the API did not give
_SINGLE, _PAIR = "single", "pair"
_METRICS = {
    _SINGLE: (Metric(name="score", low=1, high=10),),
    _PAIR: (Metric(name="win", low=0, high=1, description="1 won, 0.5 tied, 0 lost; two games"),),
}


class MtBench:
    """Questions, answers and judgments of MT-bench (JSON Lines): models are conditions, each turn
    is a sample.
    """

    listed_as: ClassVar[str] = "mt-bench"

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        first = head.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0]
        known = (_QUESTION, _ANSWER, _JUDGMENT)
        return first.startswith(b"{") and any(one.search(first) for one in known)

    def runs(self, paths: Sequence[Path], findings: Findings) -> Iterable[ImportedRun]:
        """One run of all files: judgments and questions belong to the answers of all."""
        files = recognized(
            paths,
            findings,
            by=self.recognizes,
            otherwise="holds no questions, answers or judgments of MT-bench",
        )
        conditions: dict[str, ImportedCondition] = {}
        metrics: dict[str, Sequence[Metric]] = {}
        yield ImportedRun(
            name=named_after(files),
            tool="mt-bench",
            trials=_trials(files, conditions, metrics, findings),
            conditions=conditions,
            metrics=metrics,
        )


def _trials(
    files: Sequence[Path],
    conditions: dict[str, ImportedCondition],
    metrics: dict[str, Sequence[Metric]],
    findings: Findings,
) -> Iterator[ImportedTrial]:
    kinds: set[str] = set()
    rows = partial(lines_with, "question_id", files)
    for place, id_, of_question in grouped(rows, findings):
        questions = []
        for row in of_question:
            if isinstance(row.get("turns"), list):
                questions.append(row)

        asked = next(iter(questions), Json())
        judged: dict[tuple[str, int], list[ImportedScore]] = {}
        for row in of_question:
            for model, turn, score in _judgments(row, place, findings):
                judged.setdefault((model, turn), []).append(score)
                kinds.add(score.scorer)

        if not questions:
            findings.note("questions are named by their ids: pass question.jsonl, too")
        for row in of_question:
            if isinstance(row.get("choices"), list):
                model = row.text("model_id") or "not named"
                conditions.setdefault(model, ImportedCondition(model=model))
                yield from _of_answer(row, asked, (id_, model), judged)

        if judged:
            findings.left_out("judgments of answers that are not in the files", place)

    for kind, known in _METRICS.items():
        if kind in kinds:
            metrics[kind] = known


def _of_answer(
    row: Json,
    asked: Json,
    of: tuple[str, str],
    judged: dict[tuple[str, int], list[ImportedScore]],
) -> Iterator[ImportedTrial]:
    """Each turn of each choice; the judges saw the first choice only.

    `of`: the id of the question, and the model.
    """
    id_, model = of
    for repetition, choice in enumerate(row.list("choices")):
        for turn, said in enumerate(_texts(choice, "turns"), start=1):
            scores = []
            if repetition == 0:
                scores = judged.pop((model, turn), [])
            lost = None
            reply: Reply | None = Reply(text=said, model=model)
            if said == _ERROR:
                reply = None
                lost = ImportedFailure(
                    cls="infrastructure", kind="error", message="the API gave no answer"
                )

            places = repeats(f"{score.scorer} {score.judge}" for score in scores)
            numbered = []
            for score, place in zip(scores, places, strict=True):
                numbered.append(msgspec.structs.replace(score, repeat=place))

            yield ImportedTrial(
                sample=f"{id_} turn {turn}",
                question=_at(asked, "turns", turn) or f"question {id_}, turn {turn}",
                golden=_at(asked, "reference", turn),
                condition=model,
                repetition=repetition,
                reply=reply,
                failure=lost,
                started=utc(row.number("tstamp")),
                scores=numbered,
                metadata={"question_id": id_, "turn": turn, "category": asked.text("category")},
                detail={"answer_id": row.get("answer_id")},
            )


def _texts(row: Json, key: str) -> list[str]:
    values = row.get(key)
    if not isinstance(values, list):
        return []
    return [value if isinstance(value, str) else "" for value in values]


def _at(row: Json, key: str, turn: int) -> str | None:
    """The text of a turn; None: there is none."""
    texts = _texts(row, key)
    if turn > len(texts):
        return None
    return texts[turn - 1] or None


def _judgments(
    row: Json, place: str, findings: Findings
) -> Iterator[tuple[str, int, ImportedScore]]:
    """Model, turn and score in a judgment of one answer, or of a pair."""
    judge = row.get("judge")
    turn = row.count("turn") or 1
    if not isinstance(judge, list) or not judge:
        return
    named = str(judge[0])
    detail = {"prompt": judge[-1]}
    if (model := row.text("model")) is not None:
        score = row.number("score", low=0)  # -1: the judge's text has no score
        yield (
            model,
            turn,
            ImportedScore(
                scorer=_SINGLE,
                values={"score": score},
                judge=named,
                reasons={"score": row.text("judgment")},
                detail=detail,
            ),
        )
        return

    games = []
    for key in ("g1_winner", "g2_winner"):
        if key in row:
            games.append(row.text(key))

    for side in ("model_1", "model_2"):
        if (model := row.text(side)) is None:
            findings.lose("judgment without its models", place)
            return

        # The share of its games that a model won; a tie is half a game. It is missing if the
        # judge named no winner of a game
        worth = {"model_1": 0.0, "model_2": 0.0, "tie": 0.5} | {side: 1.0}
        points = sum_of_known(worth.get(winner or "") for winner in games)
        value = None
        if points is not None:
            value = points / len(games)
        (other,) = {"model_1", "model_2"} - {side}
        yield (
            model,
            turn,
            ImportedScore(
                scorer=_PAIR,
                values={"win": value},
                judge=named,
                reasons={"win": row.text("g1_judgment")},
                detail={**detail, "against": row.get(other)},
            ),
        )
