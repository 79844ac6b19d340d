"""The Python interface: load, run, open, summarize, compare.

The commands use the same functions.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from karat import analysis, execution, plugins
from karat.analysis.thresholds import Bound, Threshold, thresholds_of
from karat.errors import BadExperiment, BadOption, BadRun, Fault, did_you_mean, unreadable
from karat.files import open_regular
from karat.formats import excerpt
from karat.journal import LARGEST_INFO, RUN_FILES, RunFolder
from karat.journal.outcomes import Outcome as GateOutcome
from karat.journal.outcomes import add_outcomes, read_outcomes

if TYPE_CHECKING:
    from karat.analysis import Comparison, Summary
    from karat.analysis.gate import Gate
    from karat.config import Experiment
    from karat.execution import Outcome, RunStatus, Selection

RunLike = RunFolder | str | os.PathLike[str]
"""A run, its folder, or anything else that `open` accepts."""


def run(
    experiment: Experiment | str | os.PathLike[str],
    *,
    results: str | os.PathLike[str] = "results",
    resume: RunLike | None = None,
    retry_failed: bool = False,
    samples: int | Sequence[str] | None = None,
    conditions: Sequence[str] = (),
    on_event: Callable[[object], None] | None = None,
) -> RunFolder:
    """Runs an experiment and returns the run, once everything is answered and scored.

    A failed trial is data in the run, not an exception. `resume` continues a run: only missing
    trials are asked. `samples` (the first N, or ids) and `conditions` select. `on_event`
    gets each journalled event, and each notice as text; without it notices are logged.
    Ctrl-C lets trials in flight finish, then raises KeyboardInterrupt; a second one stops at
    once. Raises OperatorError before the first call for anything you must change. In a running
    event loop (a notebook, a server) use `await karat.arun(...)`.
    """
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise BadOption(
            "karat.run", "an event loop is already running here: use `await karat.arun(...)`"
        )

    outcome = execution.run_in_own_loop(
        carry_out(
            experiment,
            results=results,
            resume=resume,
            retry_failed=retry_failed,
            selection=_selection(samples, conditions),
            status=_watch(on_event),
            handle_signals=threading.current_thread() is threading.main_thread(),
        )
    )
    if outcome.reason == "interrupted":
        raise KeyboardInterrupt(
            f"stopped; continue with karat.run(..., resume={str(outcome.run.path)!r})"
        )

    return outcome.run


async def arun(
    experiment: Experiment | str | os.PathLike[str],
    *,
    results: str | os.PathLike[str] = "results",
    resume: RunLike | None = None,
    retry_failed: bool = False,
    samples: int | Sequence[str] | None = None,
    conditions: Sequence[str] = (),
    on_event: Callable[[object], None] | None = None,
) -> RunFolder:
    """As `run`, but awaitable.

    Cancelling it stops at once; answers are kept, and the run can be resumed.
    """
    outcome = await carry_out(
        experiment,
        results=results,
        resume=resume,
        retry_failed=retry_failed,
        selection=_selection(samples, conditions),
        status=_watch(on_event),
    )
    return outcome.run


async def carry_out(
    experiment: Experiment | str | os.PathLike[str],
    *,
    results: str | os.PathLike[str] = "results",
    resume: RunLike | None = None,
    retry_failed: bool = False,
    selection: Selection | None = None,
    status: RunStatus | None = None,
    handle_signals: bool = False,
) -> Outcome:
    """What `run`, `arun` and the command do: checks that the experiment can run, then starts the
    engine.
    """
    from karat.config import Experiment, load

    if not isinstance(experiment, (Experiment, str, os.PathLike)):
        raise BadOption(
            "karat.run",
            f"expected an Experiment or the path of an experiment file, got {experiment!r:.60}",
        )

    if not isinstance(experiment, Experiment):
        experiment = load(os.fspath(experiment))
    if resume is not None:
        before = open(resume, results=results)
    else:
        before = None

    return await execution.run_experiment(
        experiment,
        results=Path(results),
        resume=before.path if before is not None else None,
        retry_failed=retry_failed,
        selection=selection,
        status=status,
        handle_signals=handle_signals,
    )


def open(  # noqa: A001 -- karat.open reads well, and nothing here opens files
    run: RunLike, *, results: str | os.PathLike[str] = "results", to_write: bool = False
) -> RunFolder:
    """A run on disk: by its folder, by (the beginning of) its name or id below `results`, or
    `"latest"`.

    In a folder of runs, the newest is opened. A file of results of another tool (an Inspect log,
    say) is imported into the user's cache first, unless the run is opened `to_write` scores or
    labels into it: a cache may be cleared at any time. Raises BadRun if no run or several match.
    """
    if isinstance(run, RunFolder):
        return run
    path = folders(run, results=results)[-1]
    if path.is_file() and path.name not in RUN_FILES:
        # The run in a file of another tool: of the plug-in `other_tools`, which `karat_imports`
        # brings
        reader = plugins.part("run_files", "other_tools", package="imports", needed_by=str(path))()
        format_name = reader.format_of(path)
        if format_name is None and path.suffix.lower() in (".yaml", ".yml"):
            raise BadRun(
                str(path),
                f"is an experiment file, so it seems: `karat run {path}` makes a run of it, and "
                f"`karat report latest` shows the newest run",
            )

        if format_name is None:
            raise BadRun(
                str(path),
                "is a file that karat does not know; expected a run folder or an importable "
                "results file (a table without scores needs `karat score`)",
            )

        if to_write:
            raise BadRun(
                str(path),
                f"holds results of another tool: `karat import {format_name} {path}` makes a "
                "run of it",
            )

        imported: RunFolder = reader.opened(path)
        return imported

    return _opened(path)


def folders(
    run: str | os.PathLike[str], *, results: str | os.PathLike[str] = "results"
) -> list[Path]:
    """The matching run folders, the newest last: several only for a folder of runs.

    Raises as `open`.
    """
    if not isinstance(run, (str, os.PathLike)):
        raise BadOption(
            "karat.open",
            f"expected a run, its folder or the beginning of its name, got {run!r:.60}",
        )

    try:
        return _find_runs(run, Path(results))
    except OSError as error:  # a name that is too long, a folder that may not be read
        raise BadRun(
            excerpt(os.fspath(run), 60), f"cannot be opened: {unreadable(error)}"
        ) from error


def _find_runs(run: str | os.PathLike[str], results: Path) -> list[Path]:
    path, text = Path(run), os.fspath(run)
    if path.exists():
        return ([] if path.is_file() or (path / "run.json").exists() else _runs(path)) or [path]
    below = _runs(results)
    if text == "latest" and below:
        return below[-1:]
    matches = []
    for folder in below:
        if folder.name.startswith(text) or folder.name.rpartition("-")[2].startswith(text):
            matches.append(folder)

    if len(matches) == 1:
        return matches
    if matches:
        shown = "".join(f"\n  {folder}" for folder in matches[-5:])
        raise BadRun(
            text,
            f"{len(matches)} runs in {results} match; say which, e.g. one of the newest:{shown}",
        )

    if not below:
        raise BadRun(
            text,
            (
                f"there is no such file or folder, and no run in {results}; `karat run FILE` "
                f"creates one"
            ),
        )

    near = did_you_mean(text, [folder.name for folder in below])
    if "mean" in near:
        hint = near
    else:
        hint = f"; the newest is {below[-1]}"

    raise BadRun(
        text, f"there is no such file or folder, and no run in {results} has that name{hint}"
    )


def summarize(
    run: RunLike,
    *,
    scorings: Mapping[str, str] | None = None,
    level: float = 0.95,
    pairs: Literal["baseline", "all"] = "baseline",
    baseline: str | None = None,
    **asked: Any,
) -> Summary:
    """Every number of a run, finished or not: `print` it, or use `.table()`, `.to_frame()` and its
    fields.

    `scorings` (scorer → digest, or its beginning) shows an older scoring than the newest; `level`
    is that of the intervals. `pairs`: "baseline" compares each condition with `baseline` (default:
    the experiment's, else the first) and with the best, "all" every pair. `asked`: options of the
    run's kind of dataset, as in the help of `karat report`, with `_` for `-`. Makes no calls and
    changes nothing. Raises BadOption for an option that no kind has.
    """
    return analysis.summarize(
        open(run), scorings=scorings, level=level, pairs=pairs, baseline=baseline, **asked
    )


def compare(
    run: RunLike,
    a: RunLike,
    b: str | None = None,
    *,
    scorings: Mapping[str, str] | None = None,
    level: float = 0.95,
    **asked: Any,
) -> Comparison:
    """What changed, question by question: interval, p (Holm), and the questions that flipped.

    `compare(run, "baseline", "with-docs")`: two conditions of one run. `compare(before, after)`:
    the conditions that both runs have. Differences are the second minus the first.
    """
    first = open(run)
    if b is None:
        try:
            second = open(a)
        except BadRun as error:
            if isinstance(a, str) and a in first.info.conditions:
                hint = f"'{a}' is a condition; name a second one to compare it with"
                raise BadOption("karat.compare", hint) from error

            raise

        return analysis.compare(first, second, scorings=scorings, level=level, **asked)

    if not isinstance(a, str):
        raise BadOption("karat.compare", "expected (run, condition, condition) or (run, run)")
    return analysis.compare(
        first,
        first,
        condition_a=a,
        condition_b=b,
        scorings=scorings,
        level=level,
        **asked,
    )


def gate(
    run: RunLike,
    *,
    min: Mapping[str, float] | None = None,  # noqa: A002 - the keys of `gate:` in the experiment file
    max: Mapping[str, float] | None = None,  # noqa: A002 - as above
    max_drop: Mapping[str, float] | None = None,
    baseline: RunLike | None = None,
    results: str | os.PathLike[str] = "results",
    corrected: bool = False,
) -> Gate:
    """Whether a run meets its thresholds: `.verdict` is "passed", "failed" or "undecided".

    Thresholds are `[CONDITION.]METRIC` → value, and override those of the run's own experiment
    file. `baseline`: what `max_drop` compares with; "latest:NAME" is the newest other finished run
    of that experiment below `results` with the same dataset, by content, whose gate neither failed
    nor left a drop undecided. `corrected`: decides on the scores people would give (`karat label`).
    The outcome is kept in the run folder, as `gate.jsonl`; where that cannot be written, a warning
    says so. Raises BadOption for names that the run does not have, and for a run that is its own
    baseline. Raises BadRun if lines of a journal are missing, added or changed.
    """
    folder = open(run, results=results)
    settings = {key: choice.value for key, choice in folder.info.experiment.items()}
    thresholds = _thresholds(settings, min, max, max_drop)
    drops = any(threshold.bound == "max_drop" for threshold in thresholds)
    if baseline is not None and not drops:
        raise BadOption(
            "--baseline",
            "nothing is compared with it: name a --max-drop, or `gate.max_drop` in the file",
        )

    named = settings.get("gate.baseline")
    against, missing = None, None
    if drops and (asked := baseline or (named if isinstance(named, str) else None)) is not None:
        against, missing = _baseline(asked, folder, Path(results))
    if against is None:
        compared = None
    else:
        compared = summarize(against)

    summary = summarize(folder)
    for read in filter(None, (folder, against)):
        read.refuse_gaps()
    if corrected:
        summary = analysis.calibration.with_corrected(folder, summary)

    if against is None:
        same = frozenset[str]()
    else:
        same = analysis.unchanged.unchanged_conditions(folder, against)

    decided = analysis.gate.gate(
        summary, thresholds, baseline=compared, no_baseline=missing, unchanged=same
    )

    # The outcome is written to the run folder
    at = datetime.now(UTC).isoformat(timespec="seconds")
    outcomes = []
    for check in decided.checks:
        outcomes.append(
            GateOutcome(
                at=at,
                bound=check.threshold.bound,
                name=check.threshold.name,
                limit=check.threshold.value,
                condition=check.condition,
                verdict=check.verdict,
                baseline=decided.baseline if check.threshold.bound == "max_drop" else None,
            )
        )

    try:
        add_outcomes(folder, outcomes)
    except BadRun as error:
        effect = "" if decided.verdict == "passed" else " (`--baseline latest` may take this run)"
        warning = f"the outcome is not kept in the run folder{effect}: {error}"
        return msgspec.structs.replace(decided, warnings=(*decided.warnings, warning))

    return decided


def refuse_thresholds(
    experiment: Experiment,
    *,
    min: Mapping[str, float] | None,  # noqa: A002 - as in `gate`
    max: Mapping[str, float] | None,  # noqa: A002 - as above
    max_drop: Mapping[str, float] | None,
) -> None:
    """Raises BadExperiment, before any call, for thresholds that cannot apply to a run of the
    experiment.
    """
    thresholds = _thresholds(
        {key: choice.value for key, choice in experiment.resolved.items()}, min, max, max_drop
    )
    if not thresholds:
        raise BadExperiment(
            str(experiment.path or "experiment"),
            [Fault(place="gate", message="names no threshold")],
        )

    experiment, _ = experiment.with_dataset()
    scorers = execution.experiment_scorers(experiment)
    execution.refuse_unknown_gates(experiment, scorers, thresholds)


def _thresholds(
    settings: Mapping[str, object],
    least: Mapping[str, float] | None,
    most: Mapping[str, float] | None,
    drop: Mapping[str, float] | None,
) -> list[Threshold]:
    """The experiment's thresholds, overridden by the ones given."""
    given: tuple[tuple[Bound, Mapping[str, float] | None], ...] = (
        ("min", least),
        ("max", most),
        ("max_drop", drop),
    )
    thresholds = {
        (threshold.bound, threshold.name): threshold for threshold in thresholds_of(settings)
    }
    for bound, values in given:
        for name, value in (values or {}).items():
            thresholds[bound, name] = Threshold(name=name, bound=bound, value=value)

    return list(thresholds.values())


def _baseline(asked: RunLike, run: RunFolder, results: Path) -> tuple[RunFolder | None, str | None]:
    """The run to compare with; if there is none, why."""
    if isinstance(asked, str):
        newest, colon, name = asked.partition(":")
    else:
        newest, colon, name = ("", "", "")

    if newest != "latest" or Path(str(asked)).exists():
        other = open(asked, results=results)
        if other.info.run == run.info.run:
            raise BadOption(
                "--baseline", f"run {other.info.run} is the run itself: name an earlier run"
            )

        return other, None

    name, others, held_back = name if colon else run.info.name, 0, 0
    for path in reversed(_runs(results)):
        with suppress(BadRun):  # an unreadable run hides no other
            other = _opened(path)
            if (
                other.info.run == run.info.run
                or other.info.name != name
                or other.info.rehearsed != run.info.rehearsed
            ):
                continue

            alike = (
                other.info.dataset.sha256 == run.info.dataset.sha256 and other.info.shard is None
            )
            if not alike or other.status() != "done":
                others += 1
            elif read_outcomes(other).held_back:
                held_back += 1
            else:
                return other, None

    if held_back:
        left_out = [f"{held_back} whose gate did not pass"]
    else:
        left_out = []

    if others:
        left_out += [f"{others} over another dataset, of a shard, or not finished"]
    if left_out:
        why = f" (left out: {'; '.join(left_out)})"
    else:
        why = ""

    return None, f"no earlier run of '{name}' in {results} to compare with{why}"


def _opened(path: Path) -> RunFolder:
    try:
        return RunFolder.open(path)
    except RecursionError as error:
        raise BadRun(str(path), "run.json is damaged: its values are nested too deeply") from error


def _runs(folder: Path) -> list[Path]:
    """The run folders in a folder, the newest last, after the unreadable ones and the parts of
    merged runs.
    """
    merged = msgspec.defstruct("Merged", [("runs", list[str])])
    info_type = msgspec.defstruct(
        "Info", [("run", str, ""), ("created", str, ""), ("merged", merged | None, None)]
    )
    runs: list[tuple[Any, Path]] = []
    try:
        files = list(folder.glob("[!.]*/run.json"))
    except ValueError:  # a name that no file can have; before Python 3.13 such a folder is empty
        return []

    for file in files:
        known = info_type()
        with (
            suppress(OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError),
            open_regular(file, within=file.parent, at_most=LARGEST_INFO) as info,
        ):
            known = msgspec.json.decode(info.read(), type=info_type)

        runs.append((known, file.parent))

    parts = {part for known, _ in runs if known.merged is not None for part in known.merged.runs}
    found = []
    for *_, path in sorted((known.run not in parts, known.created, path) for known, path in runs):
        found.append(path)
    return found


def _selection(samples: int | Sequence[str] | None, conditions: Sequence[str]) -> Selection:
    if samples is None or isinstance(samples, int):
        return execution.Selection(limit=samples, conditions=tuple(conditions))
    return execution.Selection(
        samples=(samples,) if isinstance(samples, str) else tuple(samples),
        conditions=tuple(conditions),
    )


def _watch(on_event: Callable[[object], None] | None) -> RunStatus:
    return execution.RunStatus(
        on_event, on_notice=on_event or partial(logging.getLogger("karat").warning, "%s")
    )
