"""How the program `karat` sets Python's garbage collector."""

from __future__ import annotations

import gc

# A run makes many small values without cycles: the usual threshold takes a tenth of its time.
_RARELY = (100_000, 20, 20)


def collect_rarely() -> None:
    """For the program `karat`, and not for a process of others that imports it."""
    gc.set_threshold(*_RARELY)


def freeze_own_objects() -> None:
    """Spares karat's own objects the collection at the end of the process, which takes 0.1 s.

    Call it before code of others is loaded, and at the end. Objects of that code are collected as
    ever, since files that it did not close may have unwritten lines. Does nothing the second time,
    or without `collect_rarely`.
    """
    if gc.get_threshold() == _RARELY and not gc.get_freeze_count():
        gc.freeze()
