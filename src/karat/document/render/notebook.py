"""Blocks as HTML for notebooks: plain tables without style, script or foreign markup."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from karat import formats
from karat.analysis.comparison import Comparison
from karat.analysis.format_metric import measured, signed_estimate
from karat.analysis.model import Summary
from karat.blocks import (
    Block,
    Chart,
    Count,
    Group,
    Note,
    PValue,
    Row,
    Table,
    Text,
    columns,
    legend_of,
    limited,
    plain,
)
from karat.document.ink import LIGHT
from karat.document.render.svg import render_svg
from karat.document.run import document


def summary_html(summary: Summary) -> str:
    """The same as a terminal shows first: the result, the facts, the most important tables, the
    warnings.
    """
    report = document(summary)
    blocks = [block for section in report.sections for block in section.blocks]
    first = []
    for block in blocks:
        if isinstance(block, (Table, Note)) and block.brief:
            first.append(block)

    facts = " · ".join(f"{term}: {value}" for term, value in report.facts)
    title = f"{report.name} {report.run} ({report.status})"
    return _page(title, [*report.verdicts, facts], first, report.warnings)


def comparison_html(comparison: Comparison) -> str:
    """Each metric of the comparison of two runs or conditions."""
    rows = []
    for pairing in comparison.pairings:
        difference = pairing.difference
        percent = comparison.percent(pairing)
        means = (measured(mean, percent=percent) for mean in (pairing.mean_a, pairing.mean_b))
        texts = (
            difference.a,
            difference.b,
            *means,
            signed_estimate(difference.estimate, percent=percent),
        )
        counts = map(Count, (pairing.better, pairing.worse, pairing.equal))
        name = f"{difference.metric}{' (offline)' if difference.offline else ''}"
        rows.append(
            Row(name=name, cells=(*map(Text, texts), PValue(difference.p_adjusted), *counts))
        )

    heads = (
        "metric",
        "from",
        "to",
        "mean before",
        "mean after",
        "difference",
        comparison.p_label,
        "better",
        "worse",
        "equal",
    )
    table = Table(caption="", columns=columns(*heads), rows=tuple(rows))
    title = f"{comparison.a.label} → {comparison.b.label}"
    return _page(title, [comparison.headline], [table] if rows else [], comparison.warnings)


def chart_html(chart: Chart) -> str:
    """The chart, light, with its numbers as a folded table."""
    drawing = render_svg(chart, ink=LIGHT, framed=True)
    return (
        f"<div>{drawing}<details><summary>The same numbers as a "
        f"table</summary>{_table(chart.table)}</details></div>"
    )


def _page(
    title: str,
    lines: Iterable[str],
    blocks: Iterable[Block],
    warnings: Iterable[str],
) -> str:
    head = "<br>".join([f"<strong>{_safe(title)}</strong>", *map(_safe, lines)])
    parts = []
    for block in blocks:
        if isinstance(block, Table):
            parts.append(_table(limited(block, block.limit, "`karat report` shows them")))
        elif isinstance(block, Note):
            parts += [f"<p>{_safe(text)}</p>" for text in block.texts]

    warned = "".join(f"<p>warning: {_safe(text)}</p>" for text in warnings)
    return f"<div><p>{head}</p>{''.join(parts)}{warned}</div>"


def _table(table: Table) -> str:
    head = "".join(f"<th>{_safe(column.head)}</th>" for column in table.columns)
    body = []
    for row in table.rows:
        if isinstance(row, Group):
            name = _safe(" ".join(filter(None, (row.name, row.note, row.mark))))
            body.append(f'<tr><th colspan="{len(table.columns)}">{name}</th></tr>')
        else:
            name = _safe(row.name)
            if row.note:
                name += f"<br><small>{_safe(row.note)}</small>"
            cells = "".join(f"<td>{_safe(plain(cell))}</td>" for cell in row.cells)
            body.append(f"<tr><td>{name}</td>{cells}</tr>")

    if table.caption:
        caption = f"<p><strong>{_safe(table.caption)}</strong></p>"
    else:
        caption = ""

    legend = legend_of(table, table.columns)
    if legend:
        below = f"<p><small>{_safe(legend)}</small></p>"
    else:
        below = ""

    rows = "".join(body)
    html = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f"{caption}{html}{below}"


def _safe(text: str) -> str:
    return escape(formats.clean(text))
