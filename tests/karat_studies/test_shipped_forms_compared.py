"""Shipped studies in their other forms, as somebody runs and compares them who follows the page on memory."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.test_docs import blocks

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "compare-agent-designs.md"
FORMS = {
    "as written": [],
    "paraphrase": ["--set=dataset.wording=paraphrase"],
    "relabelled": ["--set=dataset.relabel=true"],
}
FEW = ["--set=dataset.per_arm=4", "-q"]
SOME = ["alcohol_norms", "disjunction", "side_effects"]


@pytest.fixture
def page(here) -> str:
    """The page; its files lie in the working directory."""
    for block in blocks(PAGE, "python", "yaml"):
        (here / (block.file or "forms.yaml")).write_text(block.text, encoding="utf-8")
    return PAGE.read_text(encoding="utf-8")


def study_experiments(karat, here: Path, *words: str) -> Path:
    """The folder of a new run."""
    results = here / "results"
    before = set(results.iterdir()) if results.is_dir() else set()
    done = karat("run", *words)
    assert done.code == 0, done.err
    (run,) = set(results.iterdir()) - before
    return run


def without_ids(text: str) -> str:
    return re.sub(r"\b[0-9a-f]{8}\b", "RUN", text)


@pytest.mark.slow
def test_each_form_finds_the_memory_that_the_page_says(karat, page, here):
    told = dict(re.findall(r"^\| `(words|figures)` \|(.*)\|$", page, re.MULTILINE))
    runs: dict[str, Path] = {}
    found: dict[str, list[str]] = {"words": [], "figures": []}
    for form, options in FORMS.items():
        runs[form] = study_experiments(karat, here, "knowing.yaml", "-q", *options)
        summary = json.loads(karat("report", runs[form], "--to", "json").out)
        for one in summary["study"]["conditions"]:
            found[one["condition"]].append(f"{one['benchmark']['pas']['value']:.3f}")
    assert found == {name: [cell.strip() for cell in cells.split("|")] for name, cells in told.items()}
    fallen = karat("compare", runs["as written"], runs["paraphrase"]).out
    [line] = next(block.text.splitlines() for block in blocks(PAGE, "text"))
    assert without_ids(fallen.splitlines()[0]).partition("[")[0] == without_ids(line).partition("[")[0]
    kept = karat("compare", f"{runs['as written']}:figures", f"{runs['paraphrase']}:figures").out
    assert kept.startswith("No difference shown in PAS or ECS")


@pytest.mark.slow
def test_what_lacks_a_form_is_named_with_what_has_it(karat, page):
    refused = karat("run", "forms.yaml", "--set=dataset.relabel=true")
    assert refused.code == 2
    assert ": 1 fault\n" in refused.err, refused.err
    choice = re.search(r"2 of 10 studies: alcohol_norms, impressions; .*`studies: (\[.*\])`", refused.err)
    assert choice is not None and f"'dataset.studies={choice[1]}'" in page
    assert "all but `alcohol_norms` and `impressions`" in page


@pytest.mark.slow
def test_several_studies_are_run_and_compared_in_each_form(karat, page, here):
    some = f"--set=dataset.studies=[{', '.join(SOME)}]"
    first = study_experiments(karat, here, "forms.yaml", *FEW, some)
    other = study_experiments(karat, here, "forms.yaml", *FEW, some, *FORMS["paraphrase"])
    same = karat("compare", first, other).out
    assert "as written" in same and "wording paraphrase" in same and "that both have" not in same
    two = study_experiments(
        karat, here, "forms.yaml", *FEW, f"--set=dataset.studies=[{', '.join(SOME[1:])}]", *FORMS["relabelled"]
    )
    fewer = karat("compare", first, two).out
    assert "drawn together; over the 2 studies that both have" in fewer
    assert "only in the first: alcohol_norms" in fewer
