"""What people are shown is never rounder than the truth."""

from __future__ import annotations

import doctest
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat import formats


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(formats).failed == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "100.0 %"),
        (0.9999, ">99.9 %"),
        (0.99951, ">99.9 %"),
        (0.9994, "99.9 %"),
        (0.0, "0.0 %"),
        (0.0004, "<0.1 %"),
        (math.nan, "–"),
        (None, "–"),
    ],
)
def test_share(value, text):
    assert formats.share(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "<0.001"),
        (1e-300, "<0.001"),
        (0.00099, "<0.001"),
        (0.001, "0.001"),
        (0.0496, "0.0496"),
        (0.04999, "<0.05"),
        (0.05, "0.050"),
        (0.9999, ">0.999"),
        (1.0, "1.000"),
        (math.nan, "–"),
    ],
)
def test_p_value(value, text):
    assert formats.p_value(value) == text


@pytest.mark.parametrize(
    ("known", "unknown", "text"),
    [
        (0.0, 0, "$0.00"),
        (0.0, 2, "–"),
        (None, 0, "–"),
        (0.00001, 0, "<$0.0001"),
        (0.0421, 0, "$0.0421"),
        (1234.5, 0, "$1,234.50"),
        (1234.5, 1, "≥ $1,234.50"),
    ],
)
def test_dollars_tell_free_from_unknown(known, unknown, text):
    assert formats.dollars(known, unknown=unknown) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1.0 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 00 s"),
        (3599.4, "59 min 59 s"),
        (3600.0, "1 h 00 min"),
        (90061.0, "25 h 01 min"),
    ],
)
def test_durations_never_show_sixty_of_a_unit(seconds, text):
    assert formats.duration(seconds) == text


@pytest.mark.parametrize(
    ("dirty", "text"),
    [
        pytest.param("\x1b[1;31mred\x1b[0m", "red", id="colour"),
        pytest.param("\x1b]8;;https://x.test\x1b\\link\x1b]8;;\x1b\\", "link", id="hyperlink"),
        pytest.param("\x1b]52;c;aGk=\x07copied", "copied", id="clipboard"),
        pytest.param("\x9b2Jgone", "gone", id="8-bit"),
        pytest.param("\x1b]0;never ended\nnext", "\nnext", id="unfinished string ends with its line"),
        pytest.param("\x1bPq#0\x1b\\kept", "kept", id="sixel"),
        pytest.param("over\rwritten", "over\nwritten", id="carriage return"),
        pytest.param("a\x08\x08b", "ab", id="backspace"),
        pytest.param("safe\u202egpj.exe", "safegpj.exe", id="text turned round"),
        pytest.param("half \ud800 pair", "half \ufffd pair", id="lone surrogate"),
        pytest.param("tab\tand\nline", "tab\tand\nline", id="what may stay"),
        pytest.param("naïve 漢字 🎉", "naïve 漢字 🎉", id="other scripts"),
    ],
)
def test_clean_takes_out_what_a_terminal_obeys(dirty, text):
    assert formats.clean(dirty) == text


@given(st.text(st.characters(categories=["Cc", "Cf", "Cs", "L", "P"]), max_size=60))
def test_clean_leaves_no_control_and_is_idempotent(dirty):
    once = formats.clean(dirty)
    assert not any((ord(char) < 32 and char not in "\t\n") or 127 <= ord(char) < 160 for char in once)
    assert formats.clean(once) == once
    once.encode("utf-8")


@given(st.text(max_size=200), st.integers(1, 50))
def test_an_excerpt_is_one_line_that_fits(text, columns):
    line = formats.excerpt(text, columns)
    assert "\n" not in line
    assert formats.width(line) <= columns


@given(st.floats(0, 1))
def test_a_share_is_full_or_empty_only_when_it_is(value):
    assert (formats.share(value) == "100.0 %") == (value == 1)
    assert (formats.share(value) == "0.0 %") == (value == 0)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_keeps_its_sign_and_is_0_only_when_it_is(value):
    text = formats.signed(value)
    assert text.startswith("−") == (value < 0)
    assert text.startswith("+") == (value > 0)
    assert (text == "0.00") == (value == 0)


@given(st.floats(0, 1), st.floats(0, 1))
def test_p_values_on_either_side_of_the_line_look_so(one, other):
    if one < 0.05 <= other:
        assert formats.p_value(one) != formats.p_value(other)
