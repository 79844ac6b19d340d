"""Tables of results in a study folder, cell by cell as texts."""

from __future__ import annotations

from dataclasses import dataclass

from karat.kinds.study.importers._humanstudy_files import Notes, Spot

__all__ = ["Table", "tables_of"]

_MOST_TABLES, _MOST_ROWS, _MOST_COLUMNS = 50, 500, 30


@dataclass(frozen=True, slots=True)
class Table:
    """Every row is as long as the headers."""

    name: str
    where: str
    headers: list[str]
    rows: list[list[str]]


def tables_of(results: Spot, notes: Notes) -> list[Table]:
    """The tables of `overall_original_results`; anything else beside them is noted."""
    found: list[Table] = []
    left = [key for key, _ in results.pairs() if key not in {"description", "data_tables"}]
    if left:
        notes.add("left out", f"holds besides: {', '.join(left)}"[:120], results.where)
    for spot in results.get("data_tables").items()[:_MOST_TABLES]:
        rows = [[_cell(one) for one in row.items()[:_MOST_COLUMNS]] for row in spot.get("rows").items()]
        headers = [_cell(one) for one in spot.get("headers").items()[:_MOST_COLUMNS]]
        wide = max([len(headers), *map(len, rows)])
        if not wide:
            notes.add("unreadable", "is no table of headers and rows", spot.where)
            continue
        if len(rows) > _MOST_ROWS:
            notes.add("left out", f"{len(rows) - _MOST_ROWS} rows are beyond the first {_MOST_ROWS}", spot.where)
        filled = [row + [""] * (wide - len(row)) for row in [headers, *rows[:_MOST_ROWS]]]
        name = spot.get("table_name").said() or "A table without a name"
        found.append(Table(name, spot.where, filled[0], filled[1:]))
    return found


def _cell(spot: Spot) -> str:
    if isinstance(spot.value, (int, float)) and not isinstance(spot.value, bool):
        return repr(spot.value)[:40]
    return (spot.text() or "") if isinstance(spot.value, str) else ""
