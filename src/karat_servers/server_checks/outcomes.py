"""The results of checking a server."""

from __future__ import annotations

from typing import Literal

import msgspec

Verdict = Literal["passed", "failed", "warning", "not_applicable"]


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One check of one server. All texts are cleaned, of bounded length, and free of secrets."""

    id: str  # e.g. tools.names
    verdict: Verdict
    seen: str
    advice: str = ""  # what to do; empty where it passed or does not apply


class ServerReport(msgspec.Struct, frozen=True, kw_only=True):
    """All checks of one server, in their order."""

    server: str
    type: str  # stdio, http
    about: str  # the server's reported name and version; empty if not reported
    protocol: str | None  # the version that most checks used; None: there was no connection
    tools: int
    resources: int
    prompts: int
    checks: tuple[Check, ...]

    @property
    def failed(self) -> bool:
        return any(check.verdict == "failed" for check in self.checks)

    @property
    def counts(self) -> dict[Verdict, int]:
        """Verdict → how many checks have it."""
        verdicts: tuple[Verdict, ...] = ("failed", "warning", "passed", "not_applicable")
        found = {}
        for verdict in verdicts:
            found[verdict] = sum(check.verdict == verdict for check in self.checks)
        return found
