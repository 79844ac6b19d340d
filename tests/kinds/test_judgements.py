"""A person's verdict on a turn, compared with the judgement that a kind gives."""

from __future__ import annotations

import pytest

from karat.journal import Label
from karat.kind_views import Judgement, Views


class Certain(Views):
    def own_judgement(self, scores: object, turn: int, rule: str) -> tuple[bool | None, str | None]:
        return rule == "lenient", "unit"


@pytest.mark.parametrize(
    ("views", "rule", "judgement"),
    [
        (Views(), "", Judgement(what="right or wrong", person="right", words="right")),
        (Certain(), "lenient", Judgement(what="right or wrong", person="right", karat="right", words="right")),
        (
            Certain(),
            "strict",
            Judgement(what="right or wrong", person="right", karat="wrong", words="right (karat: wrong)", differs=True),
        ),
    ],
)
def test_a_verdict_is_compared_with_the_judgement_that_a_kind_gives(views, rule, judgement):
    label = Label(trial="00", who="me", at="2026-11-20T12:00:00Z", turn=0, verdict="right")
    assert list(views.judgements(label, (), "", rule)) == [judgement]
