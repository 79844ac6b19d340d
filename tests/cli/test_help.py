"""The help texts: the documentation of the commands, held in tests/golden/cli/."""

from __future__ import annotations

import re

import click
import pytest
from tests.needed_packages import EVERY_PACKAGE

from karat.cli import cli, every_command

GROUPS = {
    "Start": ("init", "check"),
    "Run": ("run", "score", "import"),
    "Look": ("report", "view", "compare", "query"),
    "Decide": ("plan", "gate", "label"),
    "Keep": ("runs", "list"),
}
EVERY = {name: command for name, command in every_command().items() if not isinstance(command, click.Group)}


def shown(command: click.Command, name: str) -> str:
    return command.get_help(click.Context(command, info_name=name, terminal_width=100, max_content_width=100)) + "\n"


@pytest.mark.needs_package(*EVERY_PACKAGE)
def test_the_commands_in_the_order_in_which_one_meets_them():
    assert cli.list_commands(click.Context(cli)) == [name for names in GROUPS.values() for name in names]


@pytest.mark.needs_package(*EVERY_PACKAGE)
def test_the_first_help_shows_them_in_groups_and_cuts_no_line_on_a_narrow_screen():
    context = click.Context(cli, info_name="karat", terminal_width=80)
    groups = {}
    for block in cli.get_help(context).split("\n\n"):
        title, *lines = block.strip().splitlines()
        groups[title.rstrip(":")] = tuple(line.split()[0] for line in lines)
        assert not [line for line in lines if line.endswith("...")]
    assert {title: groups[title] for title in GROUPS} == GROUPS


@pytest.mark.needs_package(*EVERY_PACKAGE)
def test_the_first_help(golden):
    golden("cli/karat.txt", shown(cli, "karat"))


@pytest.mark.needs_package("karat_servers")
@pytest.mark.parametrize("name", EVERY)
@pytest.mark.needs_kind("study", "conversation", cases="score")
def test_the_help_of_a_command(golden, name):
    golden(f"cli/{re.sub('[ -]+', '-', name)}.txt", shown(EVERY[name], f"karat {name}"))


@pytest.mark.parametrize("name", EVERY)
def test_every_command_has_the_common_flags_and_every_flag_a_help(name):
    flags = [option for option in EVERY[name].params if isinstance(option, click.Option)]
    assert {"--json", "--debug", "--quiet"} <= {flag for option in flags for flag in option.opts}
    assert all(option.help and option.help.endswith((".", ")")) for option in flags)


def test_a_flag_means_the_same_everywhere():
    meanings: dict[str, set[str]] = {}
    for command in EVERY.values():
        for option in command.params:
            for flag in option.opts if isinstance(option, click.Option) else ():
                meanings.setdefault(flag, set()).add(str(option.name))
    assert {flag: names for flag, names in meanings.items() if len(names) > 1} == {}


@pytest.mark.needs_package("karat_scale", "karat_servers")
@pytest.mark.parametrize(
    ("words", "usage"),
    [
        (("check", "--lint", "-h"), "karat check --lint"),
        (("check", "-h", "--server"), "karat check --server"),
        (("run", "x.yaml", "--rehearse", "--help"), "karat run --rehearse"),
        (("label", "run", "--sample=5", "-h"), "karat label --sample"),
        (("label", "--sample", "--help"), "karat label --sample"),
        (("runs", "merge", "-h"), "karat runs merge"),
        (("run", "-h"), "karat run [OPTIONS]"),
    ],
)
def test_a_flag_anywhere_among_the_words_makes_another_command(karat, words, usage):
    assert karat(*words).out.startswith(f"Usage: {usage}")


@pytest.mark.needs_package("karat_servers")
def test_words_after_two_dashes_are_no_flags_of_karat(karat):
    done = karat("check", "--server", "--seconds", "1", "--", "no-such-program-of-mine", "--login")
    assert "no-such-program-of-mine (stdio)" in done.out


def test_a_misspelled_command_is_answered_with_the_nearest(karat):
    done = karat("raport")
    assert (done.code, "no such command 'raport' (did you mean 'report'?)" in done.err) == (2, True)
