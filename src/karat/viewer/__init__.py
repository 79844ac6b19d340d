"""The viewer: a run folder, or a folder of runs, as pages that this machine serves to its own browser.

`serve` listens, opens nothing by itself, and ends with Ctrl-C. Pages come from a disposable index of
the journal (`index.py`) and, for texts, from the places in the journal that it knows. Everything in a
run folder is hostile, and so is every request (`safety.py`).
"""

from __future__ import annotations

from karat.viewer.server import Listening, serve

__all__ = ["Listening", "serve"]
