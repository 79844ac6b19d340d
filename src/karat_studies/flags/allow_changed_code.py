"""`--allow-changed-code`: a study may run its own code even if that has changed."""

from __future__ import annotations

from karat.cli.options import option

USES = ("reading",)
flag = option(
    "--allow-changed-code",
    is_flag=True,
    help="Like --allow-code, even if the code has changed since the run: numbers may differ.",
)
