"""The viewer: a run folder, or a folder of runs, as pages that this machine serves to its own browser.

`serve` listens, opens no browser by itself, and ends with Ctrl-C. Pages are made from an index of the journal in memory
(`live_index.py`, `queries.py`), which knows where each text is. Pages that only one kind of dataset has come from its
folder, in the form of `karat.kind_views`. Everything in a run folder is hostile, and so is every request (`safety.py`).
"""

from __future__ import annotations

from karat.viewer.server import Listening, serve

__all__ = ["Listening", "serve"]
