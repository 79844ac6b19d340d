"""Shipped studies read without karat's reader: YAML, DuckDB and SciPy alone, to hold karat's own numbers against."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import yaml
from scipy import stats

import karat_studies
from karat_studies.replication import Side

SHIPPED = Path(karat_studies.__file__).parent / "kinds" / "study" / "studies"
NAMES = sorted(path.parent.name for path in SHIPPED.glob("*/study.yaml"))
Values = dict[str, Any]


def study(name: str) -> Values:
    """What the file says, as it stands."""
    values: Values = yaml.safe_load((SHIPPED / name / "study.yaml").read_text(encoding="utf-8"))
    return values


def tests(values: Values) -> Iterator[tuple[Values, Values]]:
    """Every test with its finding."""
    for finding in values["findings"]:
        for test in finding["tests"]:
            yield finding, test


def asked(arm: Values) -> Values:
    """Field → what may be answered, over all tasks or rounds of an arm."""
    fields = dict(arm.get("fields") or arm.get("rounds", {}).get("fields") or {})
    for task in arm.get("tasks") or []:
        fields |= task["fields"]
    return fields


def copied(name: str) -> list[Values]:
    """The made-up participants."""
    lines = (SHIPPED / name / "copy.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def responses(rows: list[Values]) -> list[Values]:
    """One row a participant, or one a round: the answers beside what is known of the person."""
    return [row | row["answers"] | {"group_id": row.get("group")} for row in rows]


def derived(document: Values, rows: list[Values]) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Columns and rows of `data`."""
    types = {"participant": "VARCHAR", "arm": "VARCHAR", "group_id": "VARCHAR", "round": "DOUBLE"}
    for name, values in document["participants"].get("profile", {}).items():
        types[name] = "DOUBLE" if isinstance(values, list) else "VARCHAR"
    for arm in document["arms"].values():
        for name, field in asked(arm).items():
            types[name] = "DOUBLE" if field["type"] in {"number", "likert"} else "VARCHAR"
    connection = duckdb.connect(":memory:")
    columns = ", ".join(f'"{name}" {kind}' for name, kind in types.items())
    connection.execute(f"CREATE TABLE responses ({columns})")
    filled = ", ".join(f"unnest(?::{kind}[])" for kind in types.values())  # at once: a row takes 5 ms
    everyone = responses(rows)
    values = [[row.get(name) for row in everyone] for name in types]
    connection.execute(f"INSERT INTO responses SELECT {filled}", values)
    result = connection.execute(document.get("derive", "SELECT * FROM responses"))
    names = [column[0] for column in result.description]
    return names, result.fetchall()


def human_side(test: Values) -> Side:
    """What was published, by the kind of the test."""
    human, kind = test["human"], test["kind"]
    levels = [human[level] for level in test.get("groups", {}).get("levels", [])]
    sizes = [float(level["n"]) for level in levels] or [float(human["n"])]
    if kind == "contingency":
        return Side(table=tuple((level["k"], level["n"] - level["k"]) for level in levels))
    if kind == "binomial":
        return Side(statistic=float(levels[0]["k"]), n1=sizes[0], p0=test.get("p0", 0.5))
    if kind == "anova":
        return Side(statistic=human["F"], df1=1.0, df2=sum(sizes) - 2, sizes=tuple(sizes), n1=sizes[0], n2=sizes[1],
                    sign=human["sign"])  # fmt: skip
    pair = {"n1": sizes[0], "n2": sizes[1]} if len(sizes) == 2 else {"n1": sizes[0]}
    for name in ("t", "r", "U"):
        if name in human and test.get("use") != "descriptives":
            return Side(statistic=float(human[name]), **pair)
    if kind == "ttest_paired":
        return Side(statistic=human["mean"] / (human["sd"] / math.sqrt(sizes[0])), **pair)
    m1, s1, n1, m2, s2, n2 = (float(level[key]) for level in levels for key in ("mean", "sd", "n"))
    result = stats.ttest_ind_from_stats(m1, s1, n1, m2, s2, n2, equal_var=kind != "welch")
    return Side(statistic=float(result.statistic), **pair)


def agent_side(test: Values, names: list[str], rows: list[tuple[Any, ...]]) -> Side:
    """What the rows give, by SciPy."""
    groups = test.get("groups")
    if groups is None:
        return _paired(test, _columns(test, names, rows))
    at = names.index(groups["column"])
    if test.get("by"):
        return _of_people(test, names, [row for row in rows if row[at] == groups["levels"][0]])
    parts = [_columns(test, names, [row for row in rows if row[at] == level]) for level in groups["levels"]]
    if len(parts) == 1:
        return _one(test, parts[0])
    a, b = (np.array([row[0] for row in part], dtype=float) for part in parts)
    sizes: dict[str, Any] = {"n1": float(len(a)), "n2": float(len(b))}
    if test["kind"] == "contingency":
        return Side(table=tuple((int(part.sum()), len(part) - int(part.sum())) for part in (a, b)))
    if test["kind"] == "mannwhitney":
        counts = np.unique(np.concatenate([a, b]), return_counts=True)[1].astype(float)
        ties = float((counts**3 - counts).sum())
        return Side(statistic=float(stats.mannwhitneyu(a, b).statistic), tie_term=ties, **sizes)
    t = float(stats.ttest_ind(a, b, equal_var=test["kind"] != "welch").statistic)
    if test["kind"] != "anova":
        return Side(statistic=t, **sizes)
    return Side(statistic=t * t, df1=1.0, df2=float(len(a) + len(b) - 2), sizes=(float(len(a)), float(len(b))),
                sign=int(math.copysign(1, t)), **sizes)  # fmt: skip


def _columns(test: Values, names: list[str], rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Measure, and what it is held against; rows without one of them are left out."""
    wanted = [names.index(test["measure"])]
    wanted += [names.index(test["against"])] if isinstance(test.get("against"), str) else []
    kept = [tuple(row[at] for at in wanted) for row in rows]
    return [row for row in kept if None not in row]


def _of_people(test: Values, names: list[str], rows: list[tuple[Any, ...]]) -> Side:
    """Each person's share of true rows, summed and rounded."""
    people: dict[str, list[bool]] = {}
    for row in rows:
        if row[names.index(test["measure"])] is not None:
            people.setdefault(row[names.index("participant")], []).append(row[names.index(test["measure"])])
    shares = sum(float(np.mean(own)) for own in people.values())
    return Side(statistic=float(round(shares)), n1=float(len(people)), p0=test.get("p0", 0.5))


def _one(test: Values, rows: list[tuple[Any, ...]]) -> Side:
    if test["kind"] == "binomial":
        return Side(statistic=float(sum(row[0] for row in rows)), n1=float(len(rows)), p0=test.get("p0", 0.5))
    return _paired(test, rows)


def _paired(test: Values, rows: list[tuple[Any, ...]]) -> Side:
    a, b = (np.array([row[at] for row in rows], dtype=float) for at in (0, 1))
    method = {"ttest_paired": stats.ttest_rel, "correlation": stats.pearsonr, "spearman": stats.spearmanr}[test["kind"]]
    return Side(statistic=float(method(a, b).statistic), n1=float(len(a)))
