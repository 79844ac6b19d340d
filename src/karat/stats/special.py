"""The compiled functions of `scipy.special`, without the package around them.

`import scipy.special` takes 0.17 s, most of it for array libraries other than numpy, polynomials
and their tests; the extension module with the functions takes 0.02 s, when the first is used. They
are the same objects, so every digit is the same. If scipy is laid out differently, the package is
imported as usual.
"""

from __future__ import annotations

import importlib
import sys
import threading
from functools import cache
from types import ModuleType
from typing import Any

_PACKAGE = "scipy.special"
_LOADING = threading.Lock()


def __getattr__(name: str) -> Any:
    with _LOADING:  # in the first thread that asks
        function = globals()[name] = getattr(_load(), name)
    return function


@cache
def _load() -> ModuleType:
    if _PACKAGE in sys.modules:
        return sys.modules[_PACKAGE]
    import scipy

    # the extension looks for its siblings in it
    package = sys.modules[_PACKAGE] = ModuleType(_PACKAGE)
    package.__path__ = [f"{folder}/special" for folder in scipy.__path__]
    try:
        return importlib.import_module(f"{_PACKAGE}._ufuncs")
    except ImportError:
        pass
    finally:
        del sys.modules[_PACKAGE]  # importing the package itself still loads all of it

    return importlib.import_module(_PACKAGE)
