"""Renders a report and writes it to its destination."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from karat import analysis, api, formats, kinds, plugins
from karat.analysis import Summary
from karat.analysis.cached import summarize_cached
from karat.analysis.verdicts import REHEARSED
from karat.cli.ending import Exit
from karat.cli.options import Reported
from karat.cli.output import Output, typed
from karat.cli.printed import aside
from karat.cli.values import settings_of
from karat.errors import BadOption
from karat.exports import save
from karat.formats import OUTPUT_FORMAT
from karat.index import trusted
from karat.installation import shown_path
from karat.journal import RunFolder
from karat.records import JsonObject

MANY_FILES = 10
SCREENFULS = 500_000  # characters: too many to read on a terminal


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """`karat report --json`, unless the report itself is JSON and goes to standard output."""

    format: int = OUTPUT_FORMAT
    report: str
    paths: list[str] = []  # with --out: what was written
    texts: dict[str, str] = {}  # without --out: file name → text


def report(
    run: str,
    shown: Reported,
    *,
    name: str | None,
    out: Path | None,
    results: Path,
    output: Output,
) -> Exit:
    """Renders one report of a run and delivers it. Raises as `check` and `deliver` do, and BadRun.

    `name`: of the report; None: terminal, or json with --json.
    """
    folder = api.open(run, results=results)
    name = name or ("json" if output.as_json else "terminal")
    if shown.full and name != "terminal":
        raise BadOption(
            "--full", f"is for the terminal; the report {name} always has every section"
        )

    if shown.corrected and not getattr(check(name, folder), "shows_corrected", False):
        raise BadOption(
            "--corrected",
            f"the report {name} has no corrected numbers: use terminal, html, markdown or json",
        )

    asked = {**settings_of(shown.settings), **({"full": True} if shown.full else {})}
    check(name, folder, asked)
    with aside():
        summary = summarize_cached(folder, **shown.chosen())
    if shown.corrected:
        summary = analysis.calibration.with_corrected(folder, summary)

    files = render(name, summary, folder, {**screen(name, out), **asked})
    deliver(name, files, out, output)
    if name != "terminal":  # a spreadsheet has no place for them
        if folder.info.rehearsed:
            output.say(f"warning: {REHEARSED}")
        output.say(*(f"warning: {text}" for text in summary.notices))

    if name == "terminal" and out is None:
        if folder.info.imported and Path(run).is_file():
            file = Path(run)
        else:
            file = None

        output.say(*next_steps(folder, full=shown.full, file=file))

    return Exit.DONE


def check(name: str, run: RunFolder, options: Mapping[str, object] | None = None) -> plugins.Plugin:
    """The report of this name. Raises UnknownPlugin, or BadOption for options that it does not
    have.

    Also raises BadOption if it cannot show a run of this kind.
    """
    plugin = plugins.find("exports", name, allow_code=False)
    taken: tuple[str, ...] | None = getattr(plugin, "kinds", None)
    if taken is not None and run.info.kind not in taken:
        *others, this = (kinds.of(kind).content or kind for kind in (*taken, run.info.kind))
        meant = " or ".join(others)
        raise BadOption(
            f"report {name}",
            (
                f"is for runs over {meant}; this one is over {this}: --to csv, json or html has "
                f"its numbers"
            ),
        )

    _, faults = plugins.check_options(plugin, options or {}, place="--set")
    if faults:
        messages = (
            f"--set {fault.place.removeprefix('--set.')}: {fault.message}" for fault in faults
        )
        raise BadOption(f"report {name}", "; ".join(messages))

    return plugin


def render(
    name: str, summary: Summary, run: RunFolder, options: Mapping[str, object] | None = None
) -> Mapping[str, str]:
    """File name → text.

    Raises like `check`, and BadOption if the summary lacks what the report needs.
    """
    plugin = check(name, run, options)
    with trusted(run):
        files: Mapping[str, str] = plugins.build(plugin, options or {}).render(summary, run)
    return files


def screen(name: str, out: Path | None = None) -> JsonObject:
    """Options for a report on this terminal: colour if it is a terminal and the user has not
    switched it off.
    """
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") in ("", "dumb")
    colored = out is None and name == "terminal" and sys.stdout.isatty() and not plain
    if colored:
        return {"color": True}
    return {}


def next_steps(
    run: RunFolder,
    commands: Sequence[tuple[str, str]] = (),
    *,
    full: bool = False,
    file: Path | None = None,
) -> list[str]:
    """What to type next, one command per line: first `commands` (command, why), then ways to look
    closer.

    `full`: everything is on the screen already. `file`: another tool's file, which was imported
    into the cache.
    """
    shown = shown_path(run.path if file is None else file)
    look = (typed("view", shown), "every answer, in the browser")
    if file is not None:
        look = (typed("import", run.info.source["format"], shown), "a run to view, score and label")
    listed = [*commands, look]
    if not full:
        more = typed("report", shown, "--full")
        listed.append((more, "differences, variation, lowest questions, cost"))

    width = max(len(command) for command, _ in listed)
    return ["", "Next:", *(f"  {command:{width}}  # {why}" for command, why in listed)]


def deliver(name: str, files: Mapping[str, str], out: Path | None, output: Output) -> None:
    """Prints the report, or writes it to `out`; then the paths are the result.

    Raises BadOption if `out` is missing for several files, or for too much text for a terminal.
    """
    if out is not None:
        absolute = getattr(plugins.find("exports", name, allow_code=False), "absolute_paths", False)
        paths = []
        for path in save(files, out.absolute() if absolute else out):
            paths.append(str(path))
        output.result("\n".join(_listed(paths)), Written(report=name, paths=paths))
        return

    if len(files) > 1 and not output.as_json:
        raise BadOption(
            "--out",
            (
                f"the report {name} is several files ({', '.join(_listed(list(files)))}): name a "
                f"folder for them"
            ),
        )

    size = sum(map(len, files.values()))
    page = any(text.startswith("<!doctype html>") for text in files.values())
    if (page or size > SCREENFULS) and sys.stdout.isatty() and not output.as_json:
        raise BadOption(
            "--out", f"the report {name} has {formats.count(size)} characters: name a file for it"
        )

    text = "".join(files.values())
    if name == "json":
        output.json(text)
    elif output.as_json:
        output.result("", Written(report=name, texts=dict(files)))
    elif name == "terminal":
        output.text(text)
    else:
        output.file(text)


def _listed(paths: list[str]) -> list[str]:
    """The paths; a folder of many files, such as a run's traces, is listed as one."""
    inside = Counter(os.path.dirname(path) for path in paths)
    lines = dict.fromkeys(
        f"{folder}/ ({formats.count(inside[folder])} files)"
        if inside[folder := os.path.dirname(path)] > MANY_FILES
        else path
        for path in paths
    )
    return list(lines)
