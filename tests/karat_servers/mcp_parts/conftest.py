"""Toolboxes and conditions as for the client of MCP servers, and small experiments on disk."""

from __future__ import annotations

from tests.mcp.conftest import condition, ends, toolbox
from tests.running_experiments import experiment, run

__all__ = ["condition", "ends", "experiment", "run", "toolbox"]
