"""Objects of the providers' SDKs that are made by the test that needs them.

Their SDKs take 4 seconds to import, and every process that shares the tests reads every file of tests.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

__all__ = ["later", "made"]


class _Later(partial[Any]):
    pass


def later(make: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose calls wait for `made`."""
    return partial(_Later, make)


def made(result: object) -> object:
    """What the call gives, if it waits; everything else as it is."""
    return result() if isinstance(result, _Later) else result
