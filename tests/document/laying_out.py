"""What a terminal does not show of a document: which blocks stand out, are folded, shortened or drawn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import structs

from karat.blocks import Bar, Chart, Fold, Low, Scale, Table, plain
from karat.document.run import Document

WORDS = {"name", "text", "texts", "value", "low", "high", "known", "unknown", "seconds", "caption", "title", "head"}
WORDS |= {"legend", "rows", "columns", "cells", "blocks", "note", "panels", "table", "finding", "items", "answers"}
WORDS |= {"description", "sample", "question", "golden", "score"}
MOST_ROWS = 12  # of what is folded


def layout(document: Document) -> Iterator[str]:
    for section in document.sections:
        yield f"section {section.id}: {section.title}"
        yield from laid_out(section.blocks)


def laid_out(blocks: Any, *, folded: bool = False) -> Iterator[str]:
    for block in blocks:
        yield f"  {kind_of(block)}{traits(block)}: {getattr(block, 'caption', '') or getattr(block, 'title', '')}"
        table = block.table if isinstance(block, Chart) else block
        if isinstance(table, Table):
            yield f"    | {', '.join(column.head + traits(column) for column in table.columns)}"
            yield from dict.fromkeys(f"    {traits(row)}{of_cells(row)}" for row in table.rows)
            if folded or getattr(block, "detail", False):
                yield from (f"    {' | '.join(texts(row))}" for row in table.rows[:MOST_ROWS])
                yield f"    {table.legend}"
        elif isinstance(block, Fold):
            yield from laid_out(block.blocks, folded=True)
        elif isinstance(block, Low):
            yield from (f"    {answer.condition} {answer.color} excerpt={answer.excerpt}" for answer in block.answers)


def texts(row: Any) -> list[str]:
    return [row.name, *map(plain, getattr(row, "cells", ()))]


def of_cells(row: Any) -> str:
    return "".join(f", {kind_of(cell)}{traits(cell)}" for cell in getattr(row, "cells", ()))


def kind_of(value: Any) -> str:
    return type(value).__name__.lower()


def traits(value: Any) -> str:
    found = []
    for field in structs.fields(value):
        given = getattr(value, field.name)
        if field.name in WORDS or given == field.default:
            continue
        if isinstance(given, Scale):
            given = f"{given.start:.4g}…{given.zero}…{given.end:.4g}"
        if isinstance(given, Bar):
            given = " ".join(f"{name} {share:.3f}" for name, share in given.parts if share)
        found.append(field.name if given is True else f"{field.name}={given}")
    return f"({', '.join(found)})" if found else ""
