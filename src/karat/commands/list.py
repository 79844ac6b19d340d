"""`karat list`: the plug-ins you can choose from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output

PLACE = ("keep", 30)  # in `karat --help`

if TYPE_CHECKING:
    from karat.kinds import Kind

_FAMILIES = ("agents", "scorers", "kinds", "exports", "importers", "rubrics", "presets")
_OLD_NAMES = {"datasets": "kinds", "reports": "exports"}


class _Family(click.ParamType[str]):
    """A family of plug-ins, or one that a kind of dataset adds; kinds are slow to load, so only
    when needed.
    """

    name = "family"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return " | ".join([*_FAMILIES, *_kinds()])

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        known = dict.fromkeys((*_FAMILIES, *_OLD_NAMES, *_kinds()))
        return click.Choice(list(known)).convert(value, param, ctx)


def _kinds() -> dict[str, type[Kind]]:
    from karat import kinds

    return {kind.listed: kind for kind in kinds.installed().values() if kind.listed}


@click.command("list")
@click.argument("family", type=_Family())
@click.argument("name", required=False)
@options.output()
def command(family: str, name: str | None, output: Output) -> Exit:
    """List the plug-ins of a family. With NAME, show its options.

    Plug-ins from other installed packages are listed with their source. `studies` are the human
    studies that come with karat; `presets` are the system prompts that say who takes part in one.
    """
    from karat.cli import listing

    family = _OLD_NAMES.get(family, family)
    if family in (brought := _kinds()):
        shown = brought[family].shipped(name)
    elif name is None:
        shown = listing.family(family)
    else:
        shown = listing.plugin(family, name)

    output.result(str(shown), shown)
    return Exit.DONE
