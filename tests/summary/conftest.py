"""`journals`: the module that writes scripted journals."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

PATH = Path(__file__).resolve().parent / "journals.py"


def load() -> ModuleType:
    """Tests are no package, so what they share is loaded from its file."""
    name = "karat_tests_journals"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, PATH)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture(scope="session")
def journals() -> ModuleType:
    return load()
