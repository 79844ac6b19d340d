"""What a summary of scores needs and one without scores does not: it takes NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat.lazy import lazy

if TYPE_CHECKING:
    from karat.analysis.estimates import differences, results
    from karat.analysis.grids import Grid, declared, grids
    from karat.analysis.lowest import lowest
    from karat.analysis.panels import judge_pairs
    from karat.analysis.planning import would_repeat
    from karat.analysis.units import clusters_of, columns_of, losses_of, units_of, units_of_grid
    from karat.analysis.use import context_uses, expectations, tool_uses

__all__ = [
    "Grid",
    "clusters_of",
    "columns_of",
    "context_uses",
    "declared",
    "differences",
    "expectations",
    "grids",
    "judge_pairs",
    "losses_of",
    "lowest",
    "results",
    "tool_uses",
    "units_of",
    "units_of_grid",
    "would_repeat",
]

__getattr__, __dir__ = lazy(
    __package__,
    {
        "estimates": "differences results",
        "grids": "Grid declared grids",
        "lowest": "lowest",
        "panels": "judge_pairs",
        "planning": "would_repeat",
        "units": "clusters_of columns_of losses_of units_of units_of_grid",
        "use": "context_uses expectations tool_uses",
    },
)
