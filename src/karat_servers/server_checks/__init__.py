"""Checks whether an MCP server follows the protocol, without a model: `karat check --server`.

    calls = {"search": {"query": "resume"}}
    report = await check_server(server, folder=folder, redact=redact, calls=calls)
    report.failed                                     # whether a check failed
    [check.id for check in report.checks if check.verdict == "warning"]

This package writes and reads messages itself (wire.py), because a client library repairs, drops or
refuses what a check must see. The SDK's types say whether a result is valid. A tool is called only
if the server marks it as read-only, if the caller names it, or with arguments that its own schema
refuses.
"""

from __future__ import annotations

from karat_servers.server_checks.outcomes import Check, ServerReport

__all__ = ["Check", "ServerReport"]
