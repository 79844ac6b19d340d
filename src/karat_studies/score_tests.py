"""`karat score TESTS.csv --kind study-tests`: one row per test, people and agent, to PAS and
ECS.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from karat.cli.output import Output
from karat.cli.plotting import draw
from karat.errors import BadDataset, BadOption, Fault, did_you_mean
from karat.exports import save
from karat.files import open_regular
from karat_studies.exports.humanstudy import files_of_tests
from karat_studies.kinds.study import agreement_report as report
from karat_studies.kinds.study.charts import study_charts
from karat_studies.kinds.study.tests_command import StudyTests
from karat_studies.replication import (
    KINDS,
    Agreement,
    Reported,
    Side,
    StudyTest,
    Uncertainty,
    d_from_t_df,
    draw_scores,
    parse_reported,
    repeated_differences,
    score_tests,
    score_uncertainty,
)

SIDE_COLUMNS = (
    "statistic",
    "table",
    "n1",
    "n2",
    "sizes",
    "df1",
    "df2",
    "sign",
    "tie_term",
    "d",
    "d_se",
)
NAMES = (
    "study",
    "sub_study",
    "finding",
    "test",
    "kind",
    "domain",
    "condition",
    "p0",
    "prior_odds",
    "coverage",
)
COLUMNS = (*NAMES, *(f"{side}_{column}" for side in ("human", "agent") for column in SIDE_COLUMNS))
NEEDED = ("study", "finding", "test", "kind")
SEED = 20_240_101  # of the bootstrap: one file, one result


def score_file(path: Path, asked: StudyTests, output: Output) -> None:
    """Writes the tests of each condition, then each further condition against the first."""
    if asked.to is not None and asked.out is None:
        raise BadOption("--out", "is needed with --to humanstudy: the folder for its three files")
    if asked.to is None and asked.out is not None:
        raise BadOption("--out", "is for --to humanstudy; the text goes to standard output")
    scored: dict[str, tuple[Agreement, Uncertainty]] = {}
    draws = {}
    for at, (condition, tests) in enumerate(read_tests(path).items()):
        agreement = score_tests(tests, convention=asked.convention, fallbacks=asked.fallbacks)
        # Conditions have different participants: their draws must be independent.
        rng = np.random.default_rng([SEED, at] if at else SEED)
        draws[condition] = draw_scores(agreement, rng=rng)
        scored[condition] = agreement, score_uncertainty(agreement, rng=rng, draws=draws[condition])

    if asked.plot is not None:
        charts = [
            chart for name, both in scored.items() for chart in study_charts(*both, condition=name)
        ]
        draw(charts, asked.plot, (), dark=False, output=output)

    if asked.out is not None:
        for written in save(files_of_tests(scored), asked.out):
            output.say(f"wrote {written}")
        return

    parts = [report.agreement_text(scored, bound=asked.bound)]
    data = {name: report.agreement_data(*both, bound=asked.bound) for name, both in scored.items()}
    first, *others = scored
    for name in others:
        pas, ecs = repeated_differences(
            [scored[first][0]],
            [scored[name][0]],
            first_draws=[draws[first]],
            second_draws=[draws[name]],
            paired=False,
        )
        parts.append(report.difference_text(first, name, pas, ecs))
        data[name]["against"] = report.difference_data(first, pas, ecs)

    output.result("\n\n".join(parts), data)


def read_tests(path: Path) -> dict[str, list[StudyTest]]:
    """The tests of each condition. Raises BadDataset with every fault of the file."""
    try:
        with open_regular(path) as file:
            text = file.read().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        message = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        raise BadDataset(str(path), [Fault(place="file", message=message)]) from error

    reader = csv.DictReader(text.splitlines())
    columns = list(reader.fieldnames or [])
    faults = []
    for name in columns:
        if name not in COLUMNS:
            hint = did_you_mean(name, COLUMNS, listing=False)
            message = f"is not a column of study tests{hint}"
            faults.append(Fault(place=f"column {name}", message=message))

    faults += [
        Fault(place=f"column {name}", message="is missing")
        for name in NEEDED
        if name not in columns
    ]
    if faults:
        raise BadDataset(str(path), faults)
    tests: dict[str, list[StudyTest]] = {}
    for row in reader:
        if None in row:  # a decimal comma, say
            message = "has more cells than the header: put what has commas in quotes"
            faults.append(Fault(place="test", message=message, line=reader.line_num))
            continue

        given = {}
        for key, value in row.items():
            if key and value and value.strip():
                given[key] = value.strip()

        try:
            tests.setdefault(given.get("condition", "agent"), []).append(_test(given))
        except ValueError as error:
            faults.append(Fault(place="test", message=str(error), line=reader.line_num))

    # A study has one domain, given in any of its rows
    domains: dict[str, set[str]] = {}
    for of_condition in tests.values():
        for test in of_condition:
            domains.setdefault(test.study, set()).update({test.domain} - {""})

    for study, names in domains.items():
        if len(names) > 1:
            message = f"must have a single domain, got {', '.join(sorted(names))}"
            faults.append(Fault(place=f"study {study}", message=message))

    if faults:
        raise BadDataset(str(path), faults)
    return {
        condition: [replace(test, domain="".join(domains[test.study])) for test in of_condition]
        for condition, of_condition in tests.items()
    }


def _test(given: Mapping[str, str]) -> StudyTest:
    for name in NEEDED:
        if name not in given:
            raise ValueError(f"{name}: is empty")

    kind = given["kind"]
    if kind not in KINDS:
        raise ValueError(f"kind: not a kind of test: '{kind}'{did_you_mean(kind, KINDS)}")
    coverage = _number("coverage", given, math.nan)
    if coverage < 0 or coverage > 1:
        raise ValueError(f"coverage: must be a share between 0 and 1, got '{given['coverage']}'")
    return StudyTest(
        study=given["study"],
        sub_study=given.get("sub_study", ""),
        finding=given["finding"],
        test=given["test"],
        kind=kind,
        domain=given.get("domain", ""),
        human=_side("human", kind, given),
        agent=_side("agent", kind, given),
        prior_odds_human=_number("prior_odds", given, 1.0),
        prior_odds_agent=_number("prior_odds", given, 1.0),
        coverage=coverage,
    )


def _side(which: str, kind: str, given: Mapping[str, str]) -> Side:
    cells = {}
    for column in SIDE_COLUMNS:
        if f"{which}_{column}" in given:
            cells[column] = given[f"{which}_{column}"]

    known: dict[str, Any] = {}
    for column in ("n1", "n2", "df1", "df2", "d", "d_se"):
        if column in cells:
            known[column] = _number(column, cells, math.nan)

    if "tie_term" in cells:
        known["tie_term"] = _number("tie_term", cells, 0.0)
    if "p0" in given:
        known["p0"] = _number("p0", given, 0.5)
    if "sign" in cells:
        name = f"{which}_sign"
        text = cells["sign"]
        signs = {"1": 1, "+1": 1, "+": 1, "-1": -1, "−1": -1, "-": -1, "−": -1}
        if text not in signs:
            raise ValueError(f"{name}: must be + or −, got '{text}'")
        known["sign"] = signs[text]

    if "sizes" in cells:
        known["sizes"] = tuple(_float(f"{which}_sizes", part) for part in cells["sizes"].split(";"))
    if "table" in cells:
        name = f"{which}_table"
        text = cells["table"]
        try:
            rows = tuple(tuple(int(cell) for cell in row.split(",")) for row in text.split(";"))
        except ValueError:
            raise ValueError(
                f"{name}: must be rows of counts, as '121,34;43,109', got '{text}'"
            ) from None

        if len(rows) < 2 or len({len(row) for row in rows}) > 1:
            raise ValueError(f"{name}: must have two or more rows of one length, got '{text}'")
        known["table"] = rows
    statistic = cells.get("statistic")
    if statistic is not None:
        try:
            known["statistic"] = float(statistic)
        except ValueError:
            known.update(_reported(kind, parse_reported(statistic), known))

    if kind in {"ttest_ind", "welch"} and "n1" not in known and "d" not in known and "df1" in known:
        known["d"] = d_from_t_df(known["statistic"], known["df1"])
    return Side(**known)


WANTED = {
    "anova": "F",
    "correlation": "r",
    "spearman": "r",
    "mannwhitney": "U",
    "wilcoxon": "z",
    "contingency": "chi2",
}


def _reported(kind: str, reported: Reported, known: Mapping[str, object]) -> dict[str, object]:
    """The numbers from a reported string; sizes with their own column are kept."""
    wanted = WANTED.get(kind, "t")
    if reported.kind != wanted:
        raise ValueError(
            f"statistic: a test of kind {kind} is reported by {wanted}, got {reported.text!r}"
        )

    values: dict[str, object] = {"statistic": reported.statistic}
    if kind == "anova":
        values |= {"df1": reported.df1, "df2": reported.df2}
    elif kind in {"ttest_ind", "welch"}:
        values |= {"df1": reported.df1, "n1": reported.n, "n2": reported.n2}
    elif kind in {"ttest_paired", "ttest_one"}:
        if reported.df1 is not None:
            values["n1"] = reported.df1 + 1
        else:
            values["n1"] = reported.n
    elif kind in {"correlation", "spearman"}:
        if reported.n is not None:
            values["n1"] = reported.n
        elif reported.df1 is not None:
            values["n1"] = reported.df1 + 2
        else:
            values["n1"] = None
    else:
        values |= {"n1": reported.n, "n2": reported.n2}

    return {key: value for key, value in values.items() if value is not None and key not in known}


def _number(name: str, given: Mapping[str, str], otherwise: float) -> float:
    if name in given:
        return _float(name, given[name])
    return otherwise


def _float(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{name}: must be a number, got '{text}'") from None
