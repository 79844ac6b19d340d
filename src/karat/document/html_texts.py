"""The texts that the page quotes but a summary lacks, read once from the run."""

from __future__ import annotations

from io import BytesIO

from karat import formats
from karat.analysis import Summary, TrialRecord, trials
from karat.document.failing import Claim, Claims, Texts
from karat.errors import BadRun
from karat.files import LARGEST_TEXT
from karat.journal import RunFolder

_LONGEST_JOURNAL = 64_000_000  # bytes; reading takes about as much memory
_LONGEST_TEXT = 8_000  # characters of one answer; the rest is dropped
_MOST_CLAIMS = 60


def read_texts(run: RunFolder, summary: Summary) -> tuple[Texts | None, list[str]]:
    """The texts, and a description of what was left out.

    None if the journal is too long to read for a page.
    """
    size = run.journal_size
    if size > _LONGEST_JOURNAL:
        size_text = f"{formats.count(size // 1_000_000)} MB"
        return None, [
            (
                f"Answers in full and unverified claims: the journal has {size_text}. `karat "
                f"view` shows them."
            )
        ]

    reading = _Reading(summary)
    for trial in trials(run, summary):
        reading.add(trial)
    return reading.texts(), []


class _Reading:
    """Collects texts from the trials."""

    def __init__(self, summary: Summary) -> None:
        self._lowest = {low.sample for low in summary.lowest}
        self._metric = summary.metrics[0] if summary.metrics else None
        self._golden: dict[str, tuple[str | None, ...]] = {}
        self._questions: dict[str, tuple[str, ...]] = {}
        self._answers: dict[tuple[str, str], tuple[float, tuple[str, ...]]] = {}
        self._total = dict.fromkeys(summary.conditions, 0)
        self._with = dict.fromkeys(summary.conditions, 0)
        self._different: set[int] = set()
        self._claimed: dict[tuple[str, str, str], None] = {}

    def add(self, trial: TrialRecord) -> None:
        claims = [claim for score in trial.scores for claim in score.claims]
        self._total[trial.condition] += len(claims)
        self._with[trial.condition] += bool(claims)
        for claim in claims:
            self._different.add(hash((trial.condition, trial.sample.id, claim)))
            if len(self._claimed) < _MOST_CLAIMS:
                self._claimed[trial.condition, trial.sample.id, claim[:1000]] = None

        sample = trial.sample
        if sample.id not in self._lowest or self._metric is None:
            return
        self._golden[sample.id] = tuple(turn.golden for turn in sample.turns)
        self._questions[sample.id] = tuple(turn.question for turn in sample.turns)
        replies = trial.replies
        if replies:
            value = trial.value(self._metric)
            badness = float("-inf")
            if value is not None:
                if self._metric.direction == "lower":
                    badness = value
                else:
                    badness = -value

            kept = self._answers.get((sample.id, trial.condition))
            if kept is None or badness > kept[0]:
                texts = (reply.text if reply.answer is None else reply.answer for reply in replies)
                self._answers[sample.id, trial.condition] = (
                    badness,
                    tuple(text[: 2 * _LONGEST_TEXT] for text in texts),
                )

    def texts(self) -> Texts:
        return Texts(
            golden=self._golden,
            questions=self._questions,
            answers={place: answers for place, (_, answers) in self._answers.items()},
            claims={
                name: Claims(total=self._total[name], answers=self._with[name])
                for name in self._total
            },
            claimed=[
                Claim(condition=condition, sample=sample, text=text)
                for condition, sample, text in self._claimed
            ],
            different=len(self._different),
        )


def experiment_file(run: RunFolder) -> str | None:
    """The experiment file as written, with secrets masked; None if it cannot be read."""
    try:
        with run.open_file("experiment.yaml") or BytesIO() as file:
            return file.read(LARGEST_TEXT).decode("utf-8", "replace") or None
    except (BadRun, OSError):
        return None
