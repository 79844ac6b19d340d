"""Experiments as tests: the fixture `karat` and the marker `karat` of pytest.

Importing this module imports pytest but nothing else of karat: test suites that do not use it are
not slowed down.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    import os

    from karat.analysis.gate import Gate
    from karat.config import Experiment

    Numbers = Mapping[str, float]

Undecided = Literal["fail", "skip", "xfail"]
_MARKER = (
    "karat(experiment, min={}, max={}, max_drop={}, baseline=None, undecided='fail', **keys): run "
    "an experiment (a file, a karat.Experiment, or a function with dataset=… and judge=…) before "
    "the test, and fail unless it keeps its thresholds; without an experiment: defaults for the "
    "fixture `karat`"
)
_PROPERTY = "karat"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where runs are kept, and the effect of an undecided threshold."""
    group = parser.getgroup("karat", "karat: experiments as tests")
    group.addoption(
        "--karat-results",
        metavar="DIR",
        help="the folder of the run folders; default: results/tests in the root folder",
    )
    parser.addini("karat_results", "the folder of the run folders", default="results/tests")
    parser.addini(
        "karat_undecided", "what an undecided threshold does: fail, skip or xfail", default="fail"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker."""
    config.addinivalue_line("markers", _MARKER)


class GatedRun:
    """The value of the fixture `karat`: call it to run an experiment and decide its thresholds."""

    def __init__(self, item: pytest.Item, folder: Callable[[], Path]) -> None:
        self._item, self._folder = item, folder

    def __call__(
        self,
        experiment: Experiment | str | os.PathLike[str] | Callable[..., object],
        *,
        min: Numbers | None = None,  # noqa: A002 - as in the experiment file
        max: Numbers | None = None,  # noqa: A002 - as above
        max_drop: Numbers | None = None,
        baseline: str | os.PathLike[str] | None = None,
        undecided: Undecided | None = None,
        **keys: object,
    ) -> Gate:
        """Runs, scores and decides; the test fails with the table of thresholds unless all are
        kept.

        `min`, `max`, `max_drop`, `baseline`: as in `karat.api.gate`. `undecided`: the effect of an
        undecided threshold; default: `karat_undecided` of the configuration, else the test fails.
        Further keys are those of the experiment, for an agent that is a function; then `dataset`
        may be a list of rows with `question` and `answer`.
        Run folders are kept: answers may have been paid for.
        """
        from karat import OperatorError, api
        from karat.document.gated import check_parts, gate_document
        from karat.document.render.terminal import render_terminal

        marker = self._item.get_closest_marker("karat")
        if marker is not None:
            defaults = marker.kwargs
        else:
            defaults = {}

        own = ("min", "max", "max_drop", "baseline", "undecided")
        keys = {**{key: value for key, value in defaults.items() if key not in own}, **keys}
        least, most, drop = (
            defaults.get(key) if given is None else given
            for key, given in zip(own, (min, max, max_drop), strict=False)
        )
        if baseline is None:
            against = defaults.get("baseline")
        else:
            against = baseline

        wanted = (
            undecided or defaults.get("undecided") or self._item.config.getini("karat_undecided")
        )
        if wanted not in ("fail", "skip", "xfail"):
            pytest.fail(f"undecided: must be fail, skip or xfail, got {wanted!r}", pytrace=False)

        config = self._item.config
        results = config.rootpath / str(
            config.getoption("--karat-results") or config.getini("karat_results")
        )

        try:
            loaded = self._experiment(experiment, keys)
            # before anything is asked
            api.refuse_thresholds(loaded, min=least, max=most, max_drop=drop)
            run = api.run(loaded, results=results)
            decided = api.gate(
                run, min=least, max=most, max_drop=drop, baseline=against, results=results
            )
        except OperatorError as error:
            problem = str(error)
        else:
            # strings, because they travel between processes and into JUnit XML
            for check in decided.checks:
                self._item.user_properties.append((_PROPERTY, " | ".join(check_parts(check))))
            if decided.verdict == "passed":
                return decided
            text = render_terminal(gate_document(decided), width=100, full=True, color=False)
            if decided.verdict == "failed" or wanted == "fail":
                pytest.fail(text, pytrace=False)
            reason = text.partition("\n")[0]
            pytest.skip(reason) if wanted == "skip" else pytest.xfail(reason)

        pytest.fail(problem, pytrace=False)

    def _experiment(self, experiment: object, keys: dict[str, object]) -> Experiment:
        from karat import Experiment, load

        if isinstance(experiment, Experiment) or not callable(experiment):
            if keys:
                pytest.fail(
                    f"an experiment has its own keys: leave out {', '.join(keys)}", pytrace=False
                )

            if isinstance(experiment, Experiment):
                return experiment
            beside = self._item.path.parent / str(experiment)
            return load(beside if beside.exists() else str(experiment))

        dataset = keys.get("dataset")
        if isinstance(dataset, Sequence) and not isinstance(dataset, str):
            path = self._folder() / "questions.jsonl"
            path.write_text("".join(json.dumps(row) + "\n" for row in dataset), encoding="utf-8")
            keys["dataset"] = {"path": str(path)}
        elif dataset is not None and not isinstance(dataset, Mapping):
            keys["dataset"] = {"path": str(dataset)}

        keys = {"name": self._item.name.replace("/", " "), "conditions": {"agent": {}}, **keys}
        agent = {"type": "python", "target": experiment}
        return Experiment(folder=self._item.path.parent, env=None, agent=agent, **keys)


@pytest.fixture
def karat(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> GatedRun:
    """Call it with an experiment, or with a function and the keys of an experiment."""
    return GatedRun(request.node, lambda: tmp_path_factory.mktemp("karat"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives a test whose marker names an experiment the fixture that runs it."""
    for item in items:
        marker = item.get_closest_marker("karat")
        if (
            isinstance(item, pytest.Function)
            and marker is not None
            and marker.args
            and "karat" not in item.fixturenames
        ):
            item.fixturenames.append("karat")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Runs the experiment that a marker names; then the test itself."""
    marker = pyfuncitem.get_closest_marker("karat")
    if marker is not None and marker.args:
        gated = pyfuncitem.funcargs["karat"]
        assert isinstance(gated, GatedRun)
        gated(*marker.args)

    return (yield)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A table of every threshold that tests decided."""
    rows = sorted(
        (report.nodeid, *value.split(" | ", 2))
        for reports in terminalreporter.stats.values()
        for report in reports
        for key, value in getattr(report, "user_properties", ())
        if key == _PROPERTY and getattr(report, "when", "") == "call"
    )
    if not rows:
        return
    terminalreporter.section("karat")
    widths = []
    for column in range(3):
        widths.append(max(len(row[column]) for row in rows))
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        terminalreporter.write_line("  ".join([*cells, row[3]]))
