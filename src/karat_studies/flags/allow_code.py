"""`--allow-code`: a study may run its own code."""

from __future__ import annotations

from karat.cli.options import option

USES = ("reading", "running")
flag = option(
    "--allow-code",
    is_flag=True,
    help="Let datasets run their own code (`reducer`) from their folder. Read it first.",
)
