"""The work of `karat label`: draws answers for people, saves their scores, and compares the judge
with them.
"""

from __future__ import annotations

import getpass
from contextlib import suppress
from pathlib import Path

import msgspec

from karat import api
from karat.analysis.calibration import calibrated, draw_answers, metrics_for_people
from karat.analysis.label_sheet import read_sheet, scale_of, write_sheet
from karat.cli.ending import Exit
from karat.cli.options import Drawing, Labelling
from karat.cli.output import Output, typed
from karat.document.calibrated import calibrated_document
from karat.document.render.markdown import render_markdown
from karat.document.render.terminal import render_terminal
from karat.errors import BadOption
from karat.exports import save
from karat.formats import OUTPUT_FORMAT, clean, plural
from karat.installation import shown_path
from karat.journal.calibration import add_calibration, read_calibrations


def compare_with_people(
    run: str, labels: Path | None, asked: Labelling, *, results: Path, output: Output
) -> Exit:
    """Saves the scores of a sheet, if there is one, and prints how the judge agrees with people.

    Raises BadOption, BadRun.
    """
    folder = api.open(run, results=results, to_write=True)
    summary = api.summarize(folder)
    if labels is not None:
        who = asked.who
        if who is None:
            with suppress(OSError, KeyError):  # an account without a name
                who = getpass.getuser()

        name = " ".join(clean(who or "").split())[:60].strip()
        if not name:
            raise BadOption("--who", "say who filled in the sheet")
        kept = read_calibrations(folder)
        scores, left_out = read_sheet(labels, kept, summary.metrics, who=name)
        before = [kept.scores.get(row.draw, {}).get(row.trial, {}).get(name, {}) for row in scores]
        new = []
        for row, old in zip(scores, before, strict=True):
            if {**old, **row.scores} != old:
                new.append(row)

        changed = sum(
            bool(old) and {**row.scores, **old} != {**old, **row.scores}
            for row, old in zip(scores, before, strict=True)
        )
        if new:
            add_calibration(folder, new)
        lines = [
            (
                f"{plural(len(new), 'labelled answer')} by '{name}' saved, "
                f"{len(scores) - len(new)} saved before"
            ),
            *left_out,
        ]
        if changed:
            lines.append(
                f"warning: {plural(changed, 'answer')} had other scores by '{name}', which these "
                f"replace; another person's sheet needs --who NAME"
            )

        output.say(*lines)

    calibration = calibrated(
        folder,
        summary,
        draw=asked.draw,
        target="answers" if asked.target == "answers" else "questions",
        half_width=asked.width,
    )
    document = calibrated_document(
        calibration, name=f"{summary.name} {summary.run}: judge and people"
    )
    if asked.markdown is not None:
        texts = {asked.markdown.name: render_markdown(document)}
        save(texts, asked.markdown, option="--markdown")

    text = render_terminal(document)
    output.result(
        text, {"format": OUTPUT_FORMAT, "run": summary.run, **msgspec.to_builtins(calibration)}
    )
    return Exit.DONE


def draw_for_people(run: str, asked: Drawing, *, results: Path, output: Output) -> Exit:
    """Prints or writes a sheet of drawn answers. Raises BadOption, BadRun."""
    out = asked.out
    if out is not None and out.exists():  # it may hold people's scores
        raise BadOption("--out", f"{out} exists: name another file, or remove it")
    folder = api.open(run, results=results)
    summary = api.summarize(folder)
    chosen = metrics_for_people(summary, asked.metric)
    draw = draw_answers(folder, summary, asked.size, metric=chosen[0], seed=asked.seed)
    sheet = write_sheet(folder, summary, draw, chosen)
    if draw.id not in read_calibrations(folder).draws:
        add_calibration(folder, [draw])
    if out is not None:
        save({out.name: sheet}, out)
    elif not output.as_json:
        output.file(sheet)

    answers = sum(len(stratum.trials) for stratum in draw.strata)
    drawn = (
        f"{plural(len(draw.drawn), 'answer')} of {answers} drawn from "
        f"{plural(len(draw.strata), 'stratum', 'strata')}"
    )
    place = out or Path("SHEET.csv")
    output.say(
        f"draw {draw.id}: {drawn}",
        *(f"  {info.key}: {scale_of(info)}" for info in chosen),
        f"Fill in the columns, then: {typed('label', shown_path(folder.path), str(place))}",
    )
    if output.as_json:
        counts = {
            "draw": draw.id,
            "drawn": len(draw.drawn),
            "answers": answers,
            "strata": len(draw.strata),
        }
        if out is not None:
            shown = {"sheet": str(out)}
        else:
            shown = {"text": sheet}

        output.result(
            "",
            {"format": OUTPUT_FORMAT, **counts, "metrics": [info.key for info in chosen], **shown},
        )

    return Exit.DONE
