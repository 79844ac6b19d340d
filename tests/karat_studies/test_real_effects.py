"""The ECS of 110 real tests of 12 studies, beside an independent computation with exact fractions."""

import json
from fractions import Fraction

import numpy as np
import pytest

from karat_studies.replication import weighted_ccc, weights_by_study


@pytest.fixture
def rows(shared_data):
    return json.loads((shared_data / "humanstudy" / "effects.json").read_text(encoding="utf-8"))


def exact_ccc(pairs):
    """Lin's concordance of (x, y, weight), all fractions."""
    whole = sum(w for _, _, w in pairs)
    mx = sum(x * w for x, _, w in pairs) / whole
    my = sum(y * w for _, y, w in pairs) / whole
    cov = sum(w * (x - mx) * (y - my) for x, y, w in pairs) / whole
    vx = sum(w * (x - mx) ** 2 for x, _, w in pairs) / whole
    vy = sum(w * (y - my) ** 2 for _, y, w in pairs) / whole
    return 2 * cov / (vx + vy + (mx - my) ** 2)


def exact(rows):
    return [(Fraction(row["ES_Original"]), Fraction(row["ES_Replication"]), Fraction(1)) for row in rows]


PRINTED = {
    "study_001": 0.36424,
    "study_002": 0.06519,
    "study_003": 0.05065,
    "study_004": 0.03260,
    "study_006": 0.06987,
    "study_007": -0.74567,
    "study_008": 0.52411,
    "study_009": 0.02334,
    "study_010": -0.24976,
    "study_011": 0.0,
    "study_012": -0.17352,
}


def usable(rows):
    return [row for row in rows if row["ES_Original"] is not None and row["ES_Replication"] is not None]


@pytest.mark.parametrize("study", [*PRINTED, "study_005"])
def test_the_ecs_of_a_study_weighs_its_tests_alike(rows, study):
    own = [row for row in usable(rows) if row["Study_ID"] == study]
    found = weighted_ccc([row["ES_Original"] for row in own], [row["ES_Replication"] for row in own])
    if study == "study_005":
        assert np.isnan(found.value)
        assert found.reason == "needs 3 pairs of effects, has 2"
        return
    assert found.value == pytest.approx(float(exact_ccc(exact(own))), abs=1e-12)
    assert found.value == pytest.approx(PRINTED[study], abs=5e-6)


@pytest.mark.parametrize(("level", "printed"), [("finding", 0.24973), ("study", 0.23965)])
def test_the_overall_ecs_weighs_studies_then_findings_then_tests(rows, level, printed):
    rows = usable(rows)
    studies = [row["Study_ID"] for row in rows]
    findings = [(row["Sub_Study_ID"], row["Finding_ID"]) if level == "finding" else None for row in rows]
    weighted = []
    for (x, y, _), study, finding in zip(exact(rows), studies, findings, strict=True):
        alike = sum(one == (study, finding) for one in zip(studies, findings, strict=True))
        nested = len({f for s, f in zip(studies, findings, strict=True) if s == study})
        weighted.append((x, y, Fraction(1, len(set(studies)) * nested * alike)))
    assert sum(w for _, _, w in weighted) == 1
    weights = weights_by_study(studies, findings, np.ones(len(rows), dtype=bool))
    assert weights == pytest.approx([float(w) for _, _, w in weighted], rel=1e-14)
    found = weighted_ccc([row["ES_Original"] for row in rows], [row["ES_Replication"] for row in rows], weights)
    assert found.value == pytest.approx(float(exact_ccc(weighted)), abs=1e-12)
    assert found.value == pytest.approx(printed, abs=5e-6)
