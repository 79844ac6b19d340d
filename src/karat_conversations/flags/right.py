"""`--right`: what counts as a right turn."""

from __future__ import annotations

from karat.cli.options import option

USES = ("reading",)
flag = option(
    "--right",
    metavar="RULE",
    help="What counts as a right turn, if answers have turns: numerical, soft, unit_agnostic, "
    "sign_agnostic, general, exact or declared; default: `dataset.right` in the "
    "experiment, else numerical.",
)
