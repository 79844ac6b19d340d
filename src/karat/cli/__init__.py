"""The commands: each parses its arguments, makes one call and prints the result.

Each file in `karat/commands/`, and in `commands/` of a package beside karat, holds one command of
the same name. A file `subcommands/runs/list.py` holds `karat runs list`, because `runs` is a
group; `subcommands/run/rehearse.py` holds `karat run --rehearse`, a command with options of its
own. `karat --help` loads the commands and click, nothing else; a command's own imports happen when
it runs.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import click

from karat import __version__
from karat.cli.ending import past_click
from karat.cli.options import debug, show_help
from karat.errors import did_you_mean
from karat.installation import plugin_modules

__all__ = ["Subcommands", "WithFlags", "cli", "every_command"]


# in the order of `--help`; a command says which is its own
_GROUPS = ("start", "run", "look", "decide", "keep")


def _subcommands(name: str) -> dict[str, str]:
    """Name → module of every subcommand of a command."""
    return plugin_modules(f"subcommands/{name}")


class WithFlags(click.Command):
    """A command that does something else with a flag such as `--rehearse`: a command with options
    of its own.
    """

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        name = self.name or ""
        with formatter.section(
            f"Other uses, each with options of its own: karat {name} --FLAG --help"
        ):
            others = {
                f"--{other}": _command(module) for other, module in _subcommands(name).items()
            }
            width = formatter.width - 6 - max(map(len, others), default=0)
            formatter.write_dl(
                [(flag, command.get_short_help_str(width)) for flag, command in others.items()]
            )


class Subcommands(click.Group):
    """A group whose commands are in a folder of its name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_subcommands(self.name or ""))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = _subcommands(self.name or "").get(cmd_name)
        if module is None:
            return None
        return _command(module)


def _command(module: str) -> click.Command:
    command: click.Command = import_module(module).command
    return command


class _Commands(click.Group):
    """A group that imports a command only when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for names in _grouped().values() for name in names]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        longest = max(map(len, _commands()))
        for group, names in _grouped().items():
            with formatter.section(group.capitalize()):
                lines = []
                for name in names:
                    command = self.get_command(ctx, name)
                    assert command is not None  # it was found by its name
                    lines.append(
                        (
                            name.ljust(longest),
                            command.get_short_help_str(formatter.width - 6 - longest),
                        )
                    )

                formatter.write_dl(lines)

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: object,
    ) -> click.Context:
        with past_click():  # --help and --version print here
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with past_click():
            return super().invoke(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = _commands().get(cmd_name)
        if module is None:
            return None
        return _command(module)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _commands() and not args[0].startswith("-"):
            ctx.fail(f"no such command '{args[0]}'{did_you_mean(args[0], _commands())}")

        name, command, rest = super().resolve_command(ctx, args)
        if name is None or not isinstance(command, WithFlags):
            return name, command, rest

        # `run` with `--rehearse` among its words is another command. The flag is taken out, unless
        # it is an option of that command with a value, which may be missing beside `--help`. Words
        # after `--` are not looked at.
        flags = {f"--{other}": module for other, module in _subcommands(name).items()}
        end = rest.index("--") if "--" in rest else len(rest)
        for place, word in enumerate(rest[:end]):
            flag = word.partition("=")[0]
            if flag in flags:
                other = _command(flags[flag])
                wants_help = not {"--help", "-h"}.isdisjoint(rest[:end])
                if wants_help or not any(flag in parameter.opts for parameter in other.params):
                    rest = [*rest[:place], *rest[place + 1 :]]
                return f"{name} {flag}", other, rest

        return name, command, rest


def every_command() -> dict[str, click.Command]:
    """Each command, as it is typed after `karat`: `check`, `check --lint`, `runs`, `runs merge`."""
    commands: dict[str, click.Command] = {}
    for name in cli.list_commands(click.Context(cli)):
        commands[name] = command = _command(_commands()[name])
        dashes = "" if isinstance(command, click.Group) else "--"
        for other, module in _subcommands(name).items():
            commands[f"{name} {dashes}{other}"] = _command(module)

    return commands


@cache
def _commands() -> dict[str, str]:
    """Name → module of every command; a file's name has `_` for `-`, and after a keyword of
    Python.
    """
    return {
        name.rstrip("_").replace("_", "-"): module
        for name, module in plugin_modules("commands").items()
    }


def _grouped() -> dict[str, list[str]]:
    """The names of commands in the order in which a new user needs them, by the group in which
    `--help` shows them.
    """
    groups: dict[str, list[str]] = {group: [] for group in _GROUPS}
    places = {name: import_module(module).PLACE for name, module in _commands().items()}
    for name in sorted(places, key=lambda name: (places[name], name)):
        groups[places[name][0]].append(name)
    return {group: names for group, names in groups.items() if names}


@click.group(cls=_Commands, context_settings={"max_content_width": 100})
@click.version_option(__version__, message="karat %(version)s", help="Print the version.")
@debug
@show_help
def cli() -> None:
    """Measure AI agents: conditions, repetitions, a judge, and an uncertainty for every number.

    Start with `karat init golden`. Results go to standard output, everything else to standard
    error. Exit codes: 0 done, 2 you must change something, 3 some trials failed, 70 a bug in
    karat, 130 stopped, 141 output pipe closed.
    """
