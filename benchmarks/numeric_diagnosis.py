"""How fast turns are scored: matches, reasoning, diagnoses and replays, on real answers.

    python benchmarks/numeric_diagnosis.py

Each figure is shown next to its limit. The data are `../shared/data/convfinqa`; turns without a
program are scored with the golden one, the 355 programs separately. Documents are read anew in
every pass, as in a run; texts of programs are read once per process, in the first pass.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _results as results  # beside this file
import numpy as np
from limits import Limits

from karat_conversations.numeric.diagnosis import diagnose
from karat_conversations.numeric.document import Document
from karat_conversations.numeric.facts import TurnFacts
from karat_conversations.numeric.matches import match
from karat_conversations.numeric.proofs import would_be_right
from karat_conversations.numeric.reasoning import compare_programs

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "convfinqa"
PASSES = 5
WANTED = 10_000


def main() -> None:
    """Prints the tables."""
    options = results.parser(__doc__).parse_args()
    if not DATA.is_dir():
        sys.exit("no ../shared/data beside this checkout")
    np.zeros(1).sum()  # loads NumPy before anything is measured
    rows = answered()
    turns = sum(map(len, rows))
    print(f"{turns:,} turns of {len(rows)} conversations, {PASSES} passes")
    limits = Limits()
    whole_rates = (("first pass: all of it", 1), ("all of it", PASSES))
    for title, passes in whole_rates:
        taken = limits.best(lambda: whole(rows), rounds=passes)
        row(title, turns, taken)
        print(f"{'':36} {limits.check(title, turns / taken, '≥', WANTED, 'turns/s')}")
    row("  matches", turns, best(lambda: matches(rows)))
    row("  reasoning, no program", turns, best(lambda: reasoning(rows)))
    row("  facts and diagnoses", turns, best(lambda: diagnoses(rows)))
    row("  replay of every wrong turn", turns, best(lambda: counterfactual(rows)))
    programs = with_programs()
    count = sum(map(len, programs))
    row("programs: first pass", count, seconds(lambda: compared(programs)))
    row("programs: reasoning, two readings", count, best(lambda: compared(programs)))
    facts_of_the_data(rows)
    results.write(options.json, limits.section("Diagnoses of numeric answers", f"{turns:,} turns of real answers."))
    limits.exit()


def answered() -> list[list[dict[str, Any]]]:
    """The turns of each conversation, with the input of a scorer."""
    said = {}
    for line in (DATA / "predictions_sonnet.jsonl").read_text(encoding="utf-8").splitlines():
        prediction = json.loads(line)
        said[prediction["record_id"], prediction["turn_idx"]] = prediction
    conversations = []
    for conversation in json.loads((DATA / "dev.json").read_text(encoding="utf-8"))["dev"]:
        doc, dialogue = conversation["doc"], conversation["dialogue"]
        conversations.append(
            [
                {
                    "expected": dialogue["executed_answers"][at],
                    "printed": dialogue["conv_answers"][at],
                    "program": program,
                    "actual": said[conversation["id"], at]["predicted_answer"],
                    "unit": said[conversation["id"], at]["predicted_unit"],
                    "doc": doc,
                }
                for at, program in enumerate(dialogue["turn_program"])
            ]
        )
    return conversations


def facts(turns: list[dict[str, Any]]) -> list[TurnFacts]:
    """The turns as a scorer passes them on: one document per conversation."""
    doc = turns[0]["doc"]
    report = Document(doc["table"], f"{doc['pre_text']} {doc['post_text']}")
    return [
        TurnFacts(
            expected=turn["expected"],
            actual=turn["actual"],
            unit=turn["unit"],
            program=turn["program"],
            executed=turn["expected"],
            printed=turn["printed"],
            document=report,
        )
        for turn in turns
    ]


def matches(rows: list[list[dict[str, Any]]]) -> None:
    for turns in rows:
        for turn in turns:
            match(turn["expected"], turn["actual"], declared_unit=turn["unit"], printed=turn["printed"])


def reasoning(rows: list[list[dict[str, Any]]]) -> None:
    for turns in rows:
        earlier: list[tuple[Any, Any, Any]] = []
        for turn in turns:
            compare_programs(turn["program"], None, earlier=earlier, expected=turn["expected"], stated=turn["actual"])
            earlier.append((turn["program"], turn["expected"], turn["actual"]))


def diagnoses(rows: list[list[dict[str, Any]]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for turns in rows:
        conversation = facts(turns)
        for at, turn in enumerate(conversation):
            diagnosis = diagnose(turn, conversation[:at])
            counts[diagnosis.label if diagnosis else "right"] += 1
    return counts


def counterfactual(rows: list[list[dict[str, Any]]]) -> None:
    for turns in rows:
        conversation = facts(turns)
        for at, turn in enumerate(conversation):
            would_be_right(turn, conversation[:at])


def whole(rows: list[list[dict[str, Any]]]) -> None:
    """Everything a scorer computes in a run."""
    matches(rows)
    reasoning(rows)
    for turns in rows:
        conversation = facts(turns)
        for at, turn in enumerate(conversation):
            if diagnose(turn, conversation[:at]) is not None:
                would_be_right(turn, conversation[:at])


def with_programs() -> list[list[dict[str, Any]]]:
    """The turns with a program, by conversation."""
    predictions: dict[str, dict[int, dict[str, Any]]] = defaultdict(dict)
    for result in json.loads((DATA / "predictions_programs.json").read_text(encoding="utf-8"))["results"]:
        conversation, _, turn = result["question_id"].rpartition("-")
        predictions[conversation][int(turn)] = result
    return [[turns[at] for at in sorted(turns)] for turns in predictions.values()]


def compared(conversations: list[list[dict[str, Any]]]) -> Counter[tuple[bool, bool, bool]]:
    """How often the file's verdict, the reading `chain` and the reading `step` say that the program is right."""
    verdicts: Counter[tuple[bool, bool, bool]] = Counter()
    for turns in conversations:
        earlier: list[tuple[Any, Any, Any]] = []
        for turn in turns:
            gold, answer = turn["expected_program"], turn["expected_answer"]
            stated = turn["predicted_answer"]
            result = compare_programs(gold, turn["predicted_program"], earlier=earlier, expected=answer, stated=stated)
            assert result.step is not None
            verdicts[turn["program_correct"], bool(result.program_match), bool(result.step.program_match)] += 1
            earlier.append((gold, answer, stated))
    return verdicts


def facts_of_the_data(rows: list[list[dict[str, Any]]]) -> None:
    labels = diagnoses(rows)
    wrong = labels.total() - labels["right"]
    named = wrong - labels["other"]
    print(
        f"\n{wrong} wrong turns, {named / wrong:.1%} with a cause: "
        + ", ".join(f"{n} {x}" for x, n in labels.most_common())
    )
    conversations = [facts(turns) for turns in rows]
    pairs = [(turn, conversation[:at]) for conversation in conversations for at, turn in enumerate(conversation)]
    carried = sum(would_be_right(*pair) for pair in pairs)
    print(f"right {1 - wrong / len(pairs):.1%}; had earlier turns been right {carried / len(pairs):.1%}")
    by_chance: Counter[str] = Counter()
    pool = [turn["actual"] for turns in rows for turn in turns]
    rng = np.random.default_rng(1)
    for turns in rows:
        for turn, actual in zip(turns, rng.choice(pool, len(turns)), strict=True):
            diagnosis = diagnose(facts([{**turn, "actual": str(actual)}])[0])
            by_chance[diagnosis.label if diagnosis else "right"] += 1
    total = by_chance.total()
    print(
        "an answer of another turn, drawn at random, gets: "
        + ", ".join(f"{n / total:.1%} {x}" for x, n in by_chance.most_common())
    )
    verdicts = compared(with_programs())
    for name, place in (("chain", 1), ("step", 2)):
        agree = sum(n for verdict, n in verdicts.items() if verdict[0] == verdict[place])
        print(f"programs, {name}: {agree} of {verdicts.total()} as the file's own verdict has it")


def seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def best(call: Callable[[], object]) -> float:
    return min(seconds(call) for _ in range(PASSES))


def row(title: str, turns: int, taken: float) -> None:
    print(f"{title:36} {turns / taken:10,.0f} turns/s  {taken / turns * 1e6:7.1f} µs a turn")


if __name__ == "__main__":
    main()
