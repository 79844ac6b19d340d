"""Writes the answer copy of every shipped study: made-up participants whose answers add up to those of people.

`python benchmarks/study_copies.py` writes each `copy.jsonl` anew, always with the same content. A line
is a participant (in a game: in one round): name, arm, answers, and the attributes that a test needs.
Counts are the published ones; numbers are integers within their range and have the published means,
with the standard deviations that the published statistics imply.
`tests/karat_studies/test_shipped_studies.py` checks the files against the published results.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray
from scipy import stats
from scipy.special import ndtri

STUDIES = Path(__file__).resolve().parents[1] / "src" / "karat_studies" / "kinds" / "study" / "studies"
Row = dict[str, Any]
Floats = NDArray[np.float64]


def main() -> int:
    """Writes the named copies, or all."""
    wanted = sys.argv[1:] or sorted(COPIES)
    for name in wanted:
        study = yaml.safe_load((STUDIES / name / "study.yaml").read_text(encoding="utf-8"))
        rows = list(COPIES[name](study))
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (STUDIES / name / "copy.jsonl").write_text("".join(lines), encoding="utf-8")
        print(f"{name}: {len(rows)} participants")
    return 0


def people(arm: str, answers: Iterable[Row], **more: Any) -> Iterator[Row]:
    """Participants of one arm, numbered."""
    for at, answer in enumerate(answers, start=1):
        yield {"participant": f"{arm}-{at:03d}", "arm": arm, **more, "answers": answer}


def choices(field: str, counts: Mapping[Any, int]) -> list[Row]:
    """The given number of participants per answer."""
    return [{field: answer} for answer, count in counts.items() for _ in range(count)]


def framing(study: Row) -> Iterator[Row]:
    """Choices by their published shares; in the arm with two decisions, all four pairs."""
    arms = study["arms"]
    said = {
        "gain": ("A", 109), "loss": ("D", 121), "together": ("AD", 0), "certain": ("A", 60), "two_stages": ("C", 63),
        "uncertain": ("E", 34), "lost_note": ("yes", 161), "lost_ticket": ("yes", 92), "cheap": ("yes", 63),
        "dear": ("yes", 26),
    }  # fmt: skip
    for arm, (option, k) in said.items():
        other = next(choice for choice in arms[arm]["fields"]["choice"]["options"] if choice != option)
        yield from people(arm, choices("choice", {option: k, other: arms[arm]["n"] - k}))
    pairs = {"AD": 110, "AC": 16, "BD": 20, "BC": 4}  # 84 % A, 87 % D
    both = ({"first": pair[0], "second": pair[1]} for pair, count in pairs.items() for _ in range(count))
    yield from people("apart", both)


def representativeness(_study: Row) -> Iterator[Row]:
    """Counts of the sign tests, with the published medians of the estimates."""
    families = [20] * 30 + [30] * 25 + [50] * 20 + [72] * 14 + [80] * 3
    yield from people("births", ({"families": number} for number in families))
    yield from people("programmes", choices("programme", {"A": 67, "B": 22}))
    yield from people("marbles", choices("more", {"first": 36, "second": 16}))
    odds = [(8, 2.5)] * 40 + [(10, 2.5)] * 10 + [(10, 2)] * 36 + [(2, 6)] * 29
    yield from people("heights", ({"odds_one": one, "odds_six": six} for one, six in odds))


def side_effects(study: Row) -> Iterator[Row]:
    """Blame and praise with the published means and t, and the correlation over all 120."""
    meant = {"company_harm": 32, "army_harm": 17, "company_help": 9, "army_help": 6}
    sizes = {arm: study["arms"][arm]["n"] for arm in meant}
    harm, help_ = sizes["company_harm"] + sizes["army_harm"], sizes["company_help"] + sizes["army_help"]
    sd = (4.8 - 1.4) / (8.4 * math.sqrt(1 / harm + 1 / help_))
    deserved = numbers_with(harm, mean=4.8, sd=sd, low=0, high=6) + numbers_with(help_, mean=1.4, sd=sd, low=0, high=6)
    said = np.concatenate([np.arange(sizes[arm]) < k for arm, k in meant.items()]).astype(float)
    order = arranged(deserved, lambda one: abs(np.corrcoef(one, said)[0, 1] - 0.53), strata=[0] * harm + [1] * help_)
    start = 0
    for arm, size in sizes.items():
        field = "blame" if arm.endswith("harm") else "praise"
        part = zip(order[start : start + size], said[start : start + size], strict=True)
        yield from people(arm, [{field: int(much), "intentional": "yes" if yes else "no"} for much, yes in part])
        start += size


def false_consensus(study: Row) -> Iterator[Row]:
    """Percentages and differences of ratings with the published means and F."""
    tests = {(finding["sub_study"], test["measure"], test["id"]): test for finding in study["findings"]
             for test in finding["tests"]}  # fmt: skip
    for arm in study["arms"]:
        sub_study = "signs" if arm in {"joe", "repent"} else "stories"
        traits = 8 if sub_study == "signs" else 4
        percent = _as_published(tests[sub_study, "percent", arm], 0, 100)
        apart = _as_published(tests[sub_study, "a_less_b", arm], -50 * traits, 50 * traits)
        own = next(iter(study["arms"][arm]["fields"])).partition("_")[0]  # its fields start with a word of the story
        rows: list[Row] = []
        for level, numbers in percent.items():
            choice = level.removeprefix(f"{arm}_")
            for at, (number, difference) in enumerate(zip(numbers, apart[level], strict=True)):
                ratings = _ratings(int(difference), traits, turn=at)
                answers = {"percent": int(number), "choice": choice, **ratings}
                rows.append({f"{own}_{field}": answer for field, answer in answers.items()})
        yield from people(arm, rows)


def _as_published(test: Row, low: float, high: float) -> dict[str, list[float]]:
    """Numbers of both groups: the published means, and the common spread that the published F implies."""
    human = test["human"]
    levels = {name: human[name] for name in test["groups"]["levels"]}
    (n1, m1), (n2, m2) = ((level["n"], level["mean"]) for level in levels.values())
    sd = abs(m1 - m2) / math.sqrt(human["F"] * (1 / n1 + 1 / n2))
    answers = {}
    for shift, (name, level) in enumerate(levels.items()):
        numbers = numbers_with(level["n"], mean=level["mean"], sd=sd, low=low, high=high)
        answers[name] = numbers if shift else numbers[::-1]
    return answers


def _ratings(difference: int, traits: int, *, turn: int) -> Row:
    """Ratings of two typical persons whose distances from 50 differ by this much in total."""
    room = 50 * traits - abs(difference)
    base = min(10 * traits, room)
    sums = {"a": base + max(0, difference), "b": base + max(0, -difference)}
    ratings: Row = {}
    for person, total in sums.items():
        for at in range(traits):
            distance = total // traits + (1 if at < total % traits else 0)
            ratings[f"{person}{at + 1}"] = 50 + distance * (1 if (at + turn) % 2 else -1)
    return ratings


def impressions(study: Row) -> Iterator[Row]:
    """Words chosen as often as published; if no count gives the published share, the closest one."""
    shares = {
        "generous": (82, 6), "wise": (58, 19), "happy": (81, 26), "good_natured": (85, 13), "humorous": (69, 10),
        "sociable": (82, 29), "popular": (76, 21), "reliable": (85, 75), "important": (79, 75), "humane": (77, 24),
        "good_looking": (69, 52), "persistent": (90, 74), "serious": (90, 75), "restrained": (69, 68),
        "altruistic": (62, 14), "imaginative": (46, 14), "strong": (88, 72), "honest": (88, 71),
    }  # fmt: skip
    for at, arm in enumerate(("warm", "cold")):
        yield from _listed(study, arm, {field: pair[at] for field, pair in shares.items()})
    calm = {"kind": {"serene, peaceful": 18, "gentle, soothing": 20},
            "cruel": {"cold, calculating": 20, "serene": 3, "deliberate, silent": 18}}  # fmt: skip
    for arm, counts in calm.items():
        yield from people(arm, choices("calm", counts))
    lists = {"first_person": "An able person who acts before thinking.", "second_person": "A jealous fault-finder."}
    yield from people("broken", [{**lists, **choice} for choice in choices("difficult", {"yes": 32, "no": 20})])
    yield from people("continuous", choices("difficult", {"yes": 9, "no": 15}))
    single = {"emotional": (22, 4), "cheerful": (22, 6), "ruddy": (19, 1)}
    for at, arm in enumerate(("only_warm", "only_cold")):
        yield from _listed(study, arm, {field: pair[at] for field, pair in single.items()})


def _listed(study: Row, arm: str, counts: dict[str, int]) -> Iterator[Row]:
    """Checklists in which each pole is chosen this often, and not always by the same people."""
    fields, n = study["arms"][arm]["fields"], study["arms"][arm]["n"]
    rows: list[Row] = [{} for _ in range(n)]
    for at, (field, asked) in enumerate(fields.items()):
        pole = field.replace("_", "-")
        other = next(option for option in asked["options"] if option != pole)
        k = counts.get(field, n // 2)
        for person, row in enumerate(rows):
            row[field] = pole if (person * 7 + at * 13) % n < k else other
    return people(arm, rows)


def alcohol_norms(_study: Row) -> Iterator[Row]:
    """Both ratings with their published means and spreads, paired so that both F values match."""
    groups = {"female": (69, (4.68, 2.69), (7.07, 1.68)), "male": (63, (6.03, 2.76), (7.00, 1.57))}
    apart = (7.07 - 4.68) - (7.00 - 6.03)
    sd = apart / math.sqrt(9.96 * (1 / 69 + 1 / 63))  # of the difference of both ratings, implied by the interaction
    number = 0
    for gender, (n, own, others) in groups.items():
        self_ = np.array(numbers_with(n, mean=own[0], sd=own[1], low=1, high=11))
        average = numbers_with(n, mean=others[0], sd=others[1], low=1, high=11)
        order = arranged(average, partial(_spread_off, self_, sd), close=1e-3)
        for mine, other in zip(self_, order, strict=True):
            number += 1
            yield {"participant": f"students-{number:03d}", "arm": "students", "gender": gender,
                   "answers": {"self": int(mine), "average": int(other)}}  # fmt: skip


def _spread_off(mine: Floats, sd: float, others: Floats) -> float:
    return abs(float((others - mine).std(ddof=1)) - sd)


def bargaining(study: Row) -> Iterator[Row]:
    """Offers in quarters of a dollar with the published means and standard deviations."""
    published = {
        level: (human["mean"], human["sd"]) for finding in study["findings"] for test in finding["tests"]
        if test["measure"] == "offer" for level, human in test["human"].items() if isinstance(human, dict)
    }  # fmt: skip
    for arm, given in study["arms"].items():
        (mean, sd), (low, high) = published[arm], given["fields"]["offer"]["range"]
        offers = numbers_with(given["n"], mean=mean, sd=sd, low=low, high=high, step=0.25)
        yield from people(arm, ({"offer": offer} for offer in offers))


def disjunction(_study: Row) -> Iterator[Row]:
    """Sets of three games: 113 of 444 cooperate only if they do not know, as published."""
    patterns = {"CDD": 113, "CCC": 11, "CDC": 40, "DCD": 3, "DDC": 22, "DDD": 255}
    words = {"C": "cooperate", "D": "compete"}
    sets = chain.from_iterable([pattern] * count for pattern, count in patterns.items())
    fields = ("unknown", "competed", "cooperated")
    games = ({field: words[letter] for field, letter in zip(fields, letters, strict=True)} for letters in sets)
    yield from people("games", games)
    yield from people("boxes", choices("boxes", {"only_b": 26, "both": 14}))


def trust(_study: Row) -> Iterator[Row]:
    """The paper's pairs; after the report, returns are swapped until the rank correlation is as printed."""
    sent = {"sender_none": {0: 2, 1: 2, 2: 2, 3: 4, 4: 2, 5: 6, 6: 5, 7: 3, 8: 1, 10: 5},
            "sender_history": {0: 3, 1: 1, 2: 4, 3: 2, 5: 7, 6: 1, 7: 1, 8: 1, 9: 1, 10: 7}}  # fmt: skip
    for arm, counts in sent.items():
        yield from people(arm, choices("sent", counts))
    pairs = [[(amount, back) for amount, row in part.items() for back in row] for part in (RETURNED, SENT_BACK)]
    amounts = np.array([amount for amount, _ in pairs[1]], dtype=float)

    def distance(backs: np.ndarray) -> float:
        too_much = np.maximum(backs - 3 * amounts, 0).sum()
        return abs(float(stats.spearmanr(amounts, backs / amounts).statistic) - 0.34) + float(too_much)

    order = arranged([back for _, back in pairs[1]], distance, close=2e-3)
    for treatment, field, given in (
        ("none", "returned", pairs[0]),
        ("history", "sent_back", [(amount, back) for (amount, _), back in zip(pairs[1], order, strict=True)]),
    ):
        for amount in dict.fromkeys(stake for stake, _ in given):
            answers = [{field: int(back)} for stake, back in given if stake == amount]
            yield from people(f"{treatment}_{amount}", answers)


RETURNED = {1: (0, 1), 2: (4, 0), 3: (0, 1, 5, 6), 4: (1, 1), 5: (11, 5, 7, 0, 15, 5), 6: (0, 12, 8, 1, 3),
            7: (1, 6, 1), 8: (4,), 10: (20, 0, 15, 15, 1)}  # fmt: skip
SENT_BACK = {1: (1,), 2: (2, 1, 0, 0), 3: (0, 6), 5: (11, 8, 5, 0, 10, 8, 8), 6: (8,), 7: (14,), 8: (3,), 9: (0,),
             10: (15, 16, 15, 5, 20, 15, 10)}  # fmt: skip


def beauty_contest(_study: Row) -> Iterator[Row]:
    """Games with the published moves: how many continue, stay below the last mean, and say 100."""
    first = {
        "half": [*_line(24, 2, 17), 17.0, *_line(20, 25, 50), 70.0, 90.0, 100.0],
        "two_thirds": [*_line(33, 3, 33), 33.0, *_line(26, 33, 66), *_line(7, 67, 100)],
        "four_thirds": [1.0, 1.0, *_line(23, 15, 66), 66.0, *_line(22, 66, 95), 99.0, 100.0, 100.0],
    }
    risen, above = {"half": (3, 3, 3), "two_thirds": (9, 7, 4)}, {"half": (5, 3, 4), "two_thirds": (9, 7, 4)}
    stayed = {"half": (0, 0, 0), "two_thirds": (4, 6, 8)}
    pace = {"half": (1.0, 0.4, 0.45), "two_thirds": (0.85, 0.5, 0.85, 0.8)}
    for arm, start in first.items():
        groups = len(pace.get(arm, (1, 1, 1)))
        group = np.arange(len(start)) % groups
        said = [np.array(start)]
        for at in range(3):
            if arm == "four_thirds":
                said.append(_upwards(said[-1], at=(8, 30, 35)[at], fall=(7, 7, 6)[at]))
                continue
            counts = {"rise": risen[arm][at], "high": above[arm][at] - risen[arm][at], "stay": stayed[arm][at]}
            factor = {"half": 1 / 2, "two_thirds": 2 / 3}[arm] * np.array(pace[arm])
            said.append(_downwards(said[-1], group, factor, counts))
        # Groups consist of consecutive participants, because karat groups them so when it replays the copy.
        for number, player in enumerate(np.argsort(group, kind="stable"), start=1):
            for at, numbers in enumerate(said, start=1):
                yield {"participant": f"{arm}-{number:03d}", "arm": arm, "group": f"{arm}-{group[player] + 1}",
                       "round": at, "answers": {"number": float(numbers[player])}}  # fmt: skip


def _line(n: int, low: float, high: float) -> list[float]:
    return [round(float(value)) * 1.0 for value in np.linspace(low, high, n)]


def _downwards(before: Floats, group: NDArray[np.int64], factor: Floats, counts: dict[str, int]) -> Floats:
    """The next round with a factor below one: all fall below the last mean, except those in `counts`."""
    mean = np.array([before[group == number].mean() for number in range(group.max() + 1)])[group]
    after = np.minimum(factor[group] * mean * (0.7 + 0.5 * np.arange(len(before)) / len(before)), 0.85 * before)
    order = np.argsort(-before / mean, kind="stable")  # the highest within their groups first
    high, low = order[: counts["high"]], order[::-1]
    rise, stay = low[: counts["rise"]], low[counts["rise"] : counts["rise"] + counts["stay"]]
    after[high] = (before[high] + mean[high]) / 2
    after[rise] = np.minimum(1.3 * mean[rise] + 1, 100)
    after[stay] = before[stay]
    return np.asarray(np.round(after, 3))


def _upwards(before: Floats, *, at: int, fall: int) -> Floats:
    """The next round with a factor above one: `at` say 100, `fall` say less than before, and the others more."""
    order = np.argsort(-before, kind="stable")
    after = np.minimum(before + 0.4 * (100 - before) + 0.5, 99.5)
    after[order[:at]] = 100.0
    lowest = order[-fall:]
    after[lowest] = 0.8 * before[lowest]
    return np.asarray(np.round(after, 2))


def numbers_with(n: int, *, mean: float, sd: float, low: float, high: float, step: float = 1.0) -> list[float]:
    """`n` numbers on a grid, ascending, whose mean and standard deviation are closest to the requested ones.

    Raises ValueError for a mean outside the range, or a spread that numbers in this range cannot have.
    """
    top = round((high - low) / step)
    centre, spread = (mean - low) / step, sd / step
    if not 0 <= centre <= top:
        raise ValueError(f"mean: must lie between {low:g} and {high:g}, got {mean:g}")
    if spread**2 * (n - 1) > centre * (top - centre) * n * 1.05 + 1:
        raise ValueError(f"sd: numbers from {low:g} to {high:g} with mean {mean:g} have none of {sd:g}")
    quantiles = ndtri((np.arange(n) + 0.5) / n)
    places = np.clip(np.rint(centre + spread * quantiles), 0, top).astype(np.int64)
    _shift_to(places, round(centre * n), top)
    _widen_to(places, spread**2 * (n - 1), top)
    return [float(low + step * place) for place in np.sort(places)]


def _shift_to(places: NDArray[np.int64], total: int, top: int) -> None:
    """Moves numbers by one step each, those in the middle first, until they have this sum."""
    order = np.argsort(np.abs(np.arange(len(places)) - len(places) / 2), kind="stable")
    while (missing := total - int(places.sum())) != 0:
        step = 1 if missing > 0 else -1
        free = [at for at in order if 0 <= places[at] + step <= top]
        places[free[: abs(missing)]] += step


def _widen_to(places: NDArray[np.int64], wanted: float, top: int) -> None:
    """Moves two numbers at a time, one up and one down, until the sum of squares is closest; the sum stays."""
    while True:
        gap = wanted - float(((places - places.mean()) ** 2).sum())
        best, move = abs(gap), (0, 0)
        values = np.unique(places)
        for up in values[values < top]:
            for down in values[values > 0]:
                change = 2.0 * float(up - down) + 2.0
                if change and (up != down or (places == up).sum() > 1) and abs(gap - change) < best - 1e-9:
                    best, move = abs(gap - change), (int(up), int(down))
        if move == (0, 0):
            return
        first = int(np.flatnonzero(places == move[0])[0])
        second = int(np.flatnonzero(places == move[1])[-1])
        places[first] += 1
        places[second] -= 1


def arranged(
    values: Sequence[float],
    distance: Callable[[Floats], float],
    *,
    strata: Sequence[int] | None = None,
    close: float = 1e-4,
    tries: int = 20_000,
) -> list[float]:
    """The same values in an order with a small `distance`, found by swapping two at a time within their stratum.

    Returns the first order within `close`, or the best of all tries.
    """
    rng = np.random.default_rng(0)
    order = np.array(values, dtype=np.float64)
    parts = np.zeros(len(order), dtype=np.int64) if strata is None else np.asarray(strata)
    members = [inside for part in np.unique(parts) if len(inside := np.flatnonzero(parts == part)) > 1]
    best = distance(order)
    for _ in range(tries):
        if best <= close:
            break
        first, other = rng.choice(members[int(rng.integers(len(members)))], 2, replace=False)
        order[[first, other]] = order[[other, first]]
        now = distance(order)
        if now < best:
            best = now
        else:
            order[[first, other]] = order[[other, first]]
    return [float(value) for value in order]


COPIES: dict[str, Callable[[Row], Iterator[Row]]] = {
    "alcohol_norms": alcohol_norms,
    "bargaining": bargaining,
    "beauty_contest": beauty_contest,
    "disjunction": disjunction,
    "false_consensus": false_consensus,
    "framing": framing,
    "impressions": impressions,
    "representativeness": representativeness,
    "side_effects": side_effects,
    "trust": trust,
}

if __name__ == "__main__":
    sys.exit(main())
