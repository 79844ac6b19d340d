"""The work of `karat gate`: decides, and writes the outcome for people and for CI."""

from __future__ import annotations

import secrets
from pathlib import Path

import msgspec

from karat import api
from karat.analysis.thresholds import Bound, parse_threshold
from karat.cli.ending import Exit
from karat.cli.options import Gating
from karat.cli.output import Output
from karat.document import gated
from karat.document.render.markdown import render_markdown
from karat.document.render.terminal import render_terminal
from karat.exports import save
from karat.formats import OUTPUT_FORMAT

_CODES = {
    "passed": Exit.DONE,
    "failed": Exit.GATE_MISSED,
    "undecided": Exit.GATE_UNDECIDED,
}


def decide(run: str, asked: Gating, *, results: Path, output: Output) -> Exit:
    """Prints the outcome; the exit code says it too. Raises BadOption, BadRun."""
    given: list[tuple[Bound, tuple[str, ...]]] = [
        ("min", asked.least),
        ("max", asked.most),
        ("max_drop", asked.drop),
    ]
    low, high, drops = (
        {rule.name: rule.value for rule in (parse_threshold(text, bound) for text in texts)}
        for bound, texts in given
    )
    decided = api.gate(
        run,
        min=low,
        max=high,
        max_drop=drops,
        baseline=asked.baseline,
        results=results,
        corrected=asked.corrected,
    )
    document = gated.gate_document(decided)
    if asked.junit is not None:
        save({asked.junit.name: gated.junit(decided)}, asked.junit, option="--junit")
    if asked.markdown is not None:
        texts = {asked.markdown.name: render_markdown(document)}
        save(texts, asked.markdown, option="--markdown")

    text = render_terminal(document)
    if asked.github:
        # The annotations, then the text, in which no name from the run can act as a workflow
        # command
        lines = gated.github_lines(decided)
        if output.as_json:
            output.complain(*lines)
        else:
            token = secrets.token_hex(16)
            text = "\n".join(
                [*lines, f"::stop-commands::{token}", text.rstrip("\n"), f"::{token}::", ""]
            )

    output.result(text, {"format": OUTPUT_FORMAT, **msgspec.to_builtins(decided)})
    if asked.undecided == "warn" and decided.verdict == "undecided":
        return Exit.DONE
    return _CODES[decided.verdict]
