"""The additional results of a run over conversations: everything known turn by turn.

Pure; see `model`.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from karat.analysis.grids import columns_of
from karat.analysis.model import Account
from karat.analysis.parts import AnalysisInput
from karat_conversations.kinds.conversation.analysis.model import (
    ConversationResult,
    ConversationSummary,
    NullAnswerer,
)
from karat_conversations.kinds.conversation.analysis.rates import (
    Nulls,
    accuracies,
    conversation_accuracy,
    cost,
    counted,
    diagnosed,
    features,
    ladder,
    pace,
    propagation,
    quarantine,
    reasoning,
    strata,
    verdicts,
)
from karat_conversations.kinds.conversation.analysis.scoring import NumericTurns
from karat_conversations.kinds.conversation.analysis.turns import (
    Floats,
    Turns,
    declarations,
    read_turns,
)
from karat_conversations.numeric import match_many, null_answers, right_by

_MEANINGS = {
    "zero": "answers 0 to everything",
    "one": "answers 1 to everything",
    "sign_flipped": "the golden answer with the other sign",
    "times_100": "the golden answer, 100 times as large",
    "another_turn": "the golden answer of the turn before",
}


def conversation(given: AnalysisInput) -> ConversationSummary | None:
    """None if the scorer `numeric` is not shown, or no golden answer is a number."""
    index = given.index
    right = given.rule
    level = given.level
    info = next(
        (scorer for scorer in given.scorers if scorer.type == "numeric" and given.shows(scorer)),
        None,
    )
    if info is None:
        return None
    base = declarations(index)
    if not any(golden is not None for golden in base.golden):
        return None
    # Cell → how it failed, of the trials that ended without an answer
    by_code = {count.code: kind for kind, count in index.groups.items()}
    failed = {}
    for cell, code in given.ended.codes.items():
        if not index.answered[cell]:
            failed[cell] = f"{by_code[code].cls}: {by_code[code].kind}"

    parts, rules = read_turns(
        index,
        base,
        (info.name, info.scoring),
        failed,
        right=right,
        level=level,
    )
    answers = null_answers(base.golden, [base.ids[row] for row in base.sample.tolist()])
    asked = np.array([golden is not None for golden in base.golden], dtype=bool)
    nulls: dict[str, dict[str, Floats]] = {}  # metric → 1 or 0; NaN without a golden answer
    for name, answer in answers.items():
        matches = match_many(base.golden, answer, printed=base.printed)
        chosen = {one: matches[one].astype(np.float64) for one in (right, "right", "numerical")}
        matches["right"] = right_by(chosen, right) == 1
        nulls[name] = {}
        for metric, given_right in matches.items():
            if given_right.dtype == np.bool_:
                nulls[name][metric] = np.where(asked, given_right.astype(np.float64), np.nan)

    results = []
    for column, (name, part) in enumerate(zip(index.conditions, parts, strict=True)):
        places = {cell: cell // index.repetitions % len(index.conditions) for cell in failed}
        counts = Counter(failed[cell] for cell, place in places.items() if place == column)
        failures = dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

        results.append(_result(name, part, nulls, given.accounts[name], failures))

    rows = index.scores.get((info.name, info.scoring))
    return ConversationSummary(
        scorer=info.name,
        scoring=info.scoring,
        rules=tuple(sorted(rules)),
        right=right,
        tested=NumericTurns(right).tested({} if rows is None else columns_of(rows)),
        conversations=len(base.ids),
        turns=sum(golden is not None for golden in base.golden),
        texts=sum(text is not None for text in base.texts),
        weighted=bool(base.weights.size) and bool((base.weights != base.weights[0]).any()),
        level=level,
        nulls=tuple(NullAnswerer(name=name, meaning=_MEANINGS.get(name, name)) for name in answers),
        conditions=tuple(results),
    )


def _result(
    name: str,
    part: Turns,
    nulls: Nulls,
    account: Account,
    failures: dict[str, int],
) -> ConversationResult:
    accuracy = conversation_accuracy(part, nulls)
    return ConversationResult(
        condition=name,
        conversations=int(np.unique(part.conversation[part.counted]).size),
        turns=int((part.counted & part.asked).sum()),
        unreached=int((part.counted & part.asked & ~part.reached).sum()),
        not_run=int((~part.counted & part.asked).sum()),
        accuracies=accuracies(part, nulls),
        conversation_accuracy=accuracy,
        reasoning=reasoning(part),
        ladder=ladder(part),
        by_turn=strata(part, part.number.astype(np.float64)),
        by_operations=strata(part, np.tile(part.base.operations, part.repetitions)),
        features=features(part),
        diagnoses=diagnosed(part),
        unreadable=counted(part, part.unreadable),
        abstentions=counted(part, part.abstentions),
        extraction=dict(sorted(counted(part, part.extractors).items(), key=lambda item: -item[1])),
        unreadable_programs=int(part.counted[sorted(part.unreadable_programs)].sum()),
        propagation=propagation(part),
        cost=cost(part, account, int(accuracy.total or 0)),
        pace=pace(part),
        failures=failures,
        quarantine=quarantine(part, nulls),
        verdicts=verdicts(part),
    )
