"""When Python searches memory for garbage: seldom while `karat` runs, and hardly at its end."""

from __future__ import annotations

import gc

# a run makes many small values without cycles: a tenth of its processor time
_SELDOM = (100_000, 20, 20)


def search_seldom() -> None:
    """For the program `karat`, not for a process of others that imports it."""
    gc.set_threshold(*_SELDOM)


def search_no_more_in_what_is_here() -> None:
    """At its end Python would search everything, for 0.1 s, though all memory is freed then.

    Called there, but first before code of others is loaded: what that leaves is searched as ever,
    for a file of theirs may have unwritten lines. Does nothing a second time, or if
    `search_seldom` was not called.
    """
    if gc.get_threshold() == _SELDOM and not gc.get_freeze_count():
        gc.freeze()
