"""`karat list`: what there is to choose from."""

from __future__ import annotations

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output

__all__ = ["command"]

_FAMILIES = ("agents", "scorers", "kinds", "exports", "importers", "rubrics", "studies", "presets")
_OLD_NAMES = {"datasets": "kinds", "reports": "exports"}


@click.command("list")
@click.argument("family", type=click.Choice((*_FAMILIES, *_OLD_NAMES)), metavar="|".join(_FAMILIES))
@click.argument("name", required=False)
@options.output()
def command(family: str, name: str | None, output: Output) -> Exit:
    """Show the plug-ins of a family, or with NAME all that one can be told.

    Those of other packages that are installed here are listed too, with where they come from.
    Also the human studies that come with karat, and the presets, which say who takes part in one.
    """
    family = _OLD_NAMES.get(family, family)
    if family == "studies":
        from karat.cli import listing_studies

        shown = listing_studies.studies() if name is None else listing_studies.study(name)
        output.result(str(shown), shown)
        return Exit.DONE
    from karat.cli import listing

    if name is None:
        found = listing.family(family)
        output.result(str(found), found)
    else:
        one = listing.one(family, name)
        output.result(str(one), one)
    return Exit.DONE
