"""The viewer: serves a run folder, or a folder of runs, as pages to a browser on the same machine.

`serve` listens until Ctrl-C; it does not open a browser. Pages are made from an in-memory index of
the journal (`live_index.py`, `queries.py`), which knows where each text is. Pages for one kind of
dataset come from that kind's folder, as `karat.kind_views`. Run folders and requests are all
treated as hostile (`safety.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat.lazy import lazy

if TYPE_CHECKING:
    from karat_viewer.server import Listening, serve

__all__ = ["Listening", "serve"]

__getattr__, __dir__ = lazy(__name__, {"server": "Listening serve"})
