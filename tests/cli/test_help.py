"""The help texts: the documentation of the commands, held in tests/golden/cli/."""

from __future__ import annotations

import click
import pytest

from karat.cli import cli

GROUPS = {
    "Start": ("init", "check", "check-server", "lint", "schema", "login"),
    "Run": ("run", "rehearse", "score", "import"),
    "Look": ("report", "plot", "view", "compare", "history", "query"),
    "Decide": ("plan", "gate", "sample", "calibrate"),
    "Keep": ("verify", "merge", "list"),
}
COMMANDS = tuple(name for names in GROUPS.values() for name in names)


def shown(command: click.Command, name: str) -> str:
    return command.get_help(click.Context(command, info_name=name, terminal_width=100, max_content_width=100)) + "\n"


def test_the_commands_in_the_order_in_which_one_meets_them():
    assert tuple(cli.list_commands(click.Context(cli))) == COMMANDS


def test_the_first_help_shows_them_in_groups_and_cuts_no_line_on_a_narrow_screen():
    context = click.Context(cli, info_name="karat", terminal_width=80)
    groups = {}
    for block in cli.get_help(context).split("\n\n"):
        title, *lines = block.strip().splitlines()
        groups[title.rstrip(":")] = tuple(line.split()[0] for line in lines)
        assert not [line for line in lines if line.endswith("...")]
    assert {title: groups[title] for title in GROUPS} == GROUPS


def test_the_first_help(golden):
    golden("cli/karat.txt", shown(cli, "karat"))


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.needs_kind("study", "conversation", cases="score")
def test_the_help_of_a_command(golden, name):
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    golden(f"cli/{name}.txt", shown(command, f"karat {name}"))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_the_common_flags_and_every_flag_a_help(name):
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    flags = [option for option in command.params if isinstance(option, click.Option)]
    assert {"--json", "--debug", "--quiet"} <= {flag for option in flags for flag in option.opts}
    assert all(option.help and option.help.endswith((".", ")")) for option in flags)


def test_a_flag_means_the_same_everywhere():
    meanings: dict[str, set[str]] = {}
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        for option in command.params:
            for flag in option.opts if isinstance(option, click.Option) else ():
                meanings.setdefault(flag, set()).add(str(option.name))
    # `--set` lays settings over the experiment, or over a report.
    assert {flag: names for flag, names in meanings.items() if len(names) > 1} == {"--set": {"settings", "asked"}}
