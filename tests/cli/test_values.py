"""Small parts of commands: values of options, columns of text, what foreign code prints, how an error is told."""

from __future__ import annotations

import errno
import io
import sys

import click
import pytest

from karat.cli.answer_files import mapped_columns
from karat.cli.complaint import complain
from karat.cli.ending import Ending, Exit, ReaderGone
from karat.cli.output import Output, aligned, typed, whisper
from karat.cli.printed import printed
from karat.cli.values import parsed, settings_of
from karat.errors import BadOption


def test_values_are_read_as_in_a_file():
    assert settings_of(["a=1", "a=2", "b.c=[x, y]", "d=", "e=x=y"]) == {
        "a": 2,
        "b.c": ["x", "y"],
        "d": None,
        "e": "x=y",
    }
    assert parsed("--set a", "{b: true}") == {"b": True}
    for text in ("a", "=1", ""):
        with pytest.raises(BadOption, match=f"--set: expected KEY=VALUE, got '{text}'"):
            settings_of([text])


@pytest.mark.parametrize(
    ("pairs", "columns"),
    [
        ((), {}),
        (("id=case",), {"id_key": "case"}),
        (
            (" answer = said ", "condition=arm", "repetition=run"),
            {"answer_key": "said", "condition_key": "arm", "repetition_key": "run"},
        ),
    ],
)
def test_targets_of_map_are_options_of_the_agent(pairs, columns):
    assert mapped_columns(pairs, option=None) == columns


@pytest.mark.parametrize(
    ("pairs", "why"),
    [
        (["id"], "--map id: expected TARGET=COLUMN, e.g. --map answer=predicted_answer"),
        (["ids=x"], "unknown target 'ids' (did you mean 'id'?); choose from id, answer, condition, repetition"),
        (["id=x", "id=y"], "'id' is given twice: 'x' and 'y'"),
    ],
)
def test_other_targets_of_map_are_refused(pairs, why):
    with pytest.raises(BadOption) as error:
        mapped_columns(pairs, option=None)
    assert why in str(error.value)


def test_columns_of_text_are_aligned():
    assert aligned([("a", "1", "x"), ("long", "10", "y")], right={1}) == ["a      1  x", "long  10  y"]
    assert aligned([("漢", "x"), ("abc", "")]) == ["漢   x", "abc"]


def test_messages_and_results_go_to_their_streams(capsys):
    Output().say("a message", "an\x1bother")
    Output(quiet=True).say("hidden")
    Output(events=True).say("hidden")
    Output(quiet=True).complain("a problem")
    Output().result("the \x1b[1mresult\x1b[0m\x07", {"a": 1})
    Output(as_json=True).result("hidden", {"a": "\x07"})
    Output().text("one\n", "two")
    out, err = capsys.readouterr()
    assert err.split("\n") == ["a message", clean_of("an\x1bother"), "a problem", ""]
    assert out.startswith("the ")
    assert "\x07" not in out
    assert '{\n  "a": "\\u0007"\n}' in out
    assert out.endswith("one\ntwo\n")
    assert not Output(quiet=True).live
    assert not Output(events=True).live


def clean_of(text: str) -> str:
    from karat.formats import clean

    return clean(text)


def test_a_closed_stream_is_no_reason_to_end():
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.EBADF, "closed")

    whisper("lost", Closed())
    heard = io.StringIO()
    whisper("heard", heard)
    assert heard.getvalue() == "heard\n"


def test_a_command_can_be_pasted():
    assert typed("run", ["a b", "c"]).endswith(" run 'a b' c")


def test_what_is_printed_is_told_in_whole_lines(capsys):
    lines: list[str] = []
    with printed(lines.append, behind=io.StringIO(), descriptors=()):
        for text in ("one", " line\r\nand\x1b[1m\n", "x" * 65_537, "unfinished"):
            sys.stdout.write(text)
        assert lines[:1] == ["one line"]
        assert len(lines[2]) == 65_537
    assert lines[1] == clean_of("and\x1b[1m")
    assert lines[3:] == ["unfinished"]
    sys.stdout.write("after\n")
    assert capsys.readouterr().out == "after\n"


def told(error: BaseException, code: int, capsys, **options) -> str:
    complain(error, code, debug=options.pop("debug", False), secrets={"KEY": "s3cret-value"})
    out, err = capsys.readouterr()
    assert out == ""
    return err


def test_an_error_is_one_sentence_without_secrets(capsys):
    assert told(BadOption("--x", "no s3cret-value"), 2, capsys) == "--x: no ${KEY}\n"
    assert told(KeyboardInterrupt(), Exit.STOPPED, capsys) == "stopped\n"
    bug = told(ValueError("s3cret-value " + "x" * 400), Exit.KARAT_FAULT, capsys)
    assert bug.startswith("karat: a bug in karat: ValueError: ${KEY} xxx")
    assert bug.endswith("…; --debug shows where\n")
    assert (
        told(FileNotFoundError(2, "No such file", "a\x1bb"), 2, capsys)
        == f"karat: {clean_of('a' + chr(27) + 'b')}: No such file\n"
    )
    assert told(OSError(28, "No space left"), 2, capsys) == "karat: the output could not be written: No space left\n"
    assert "no such thing" in told(click.UsageError("no such thing"), 2, capsys)
    shown = told(ValueError("s3cret-value"), Exit.KARAT_FAULT, capsys, debug=True)
    assert shown.startswith("ValueError: ${KEY}\n")
    assert shown.endswith("karat: a bug in karat: ValueError: ${KEY}\n")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (None, 0),
        (FileNotFoundError(2, "No such file", "a"), 2),
        (OSError(errno.ENOSPC, "No space left"), 2),
        (OSError(errno.EIO, "broken"), 70),
        (ValueError("no"), 70),
        (ReaderGone(), 141),
        (BrokenPipeError(), 141),
    ],
)
def test_each_end_has_its_code(error, code, capsys):
    with Ending() as ending:
        if error is not None:
            raise error
    assert ending.code == code
    assert bool(capsys.readouterr().err) is (code not in (0, 141))


def test_a_command_that_ends_itself_is_let_through():
    with pytest.raises(SystemExit), Ending():
        raise SystemExit(5)
