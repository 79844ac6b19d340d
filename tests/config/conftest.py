"""An experiment file to read."""

from __future__ import annotations

from tests.reading_experiments import folder, read

__all__ = ["folder", "read"]
