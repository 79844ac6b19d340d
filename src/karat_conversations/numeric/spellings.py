"""Puts a model's way of writing a calculation into the signs of programs."""

from __future__ import annotations

import re

_FRACTION = re.compile(r"\\[dt]?frac\{([^{}]{1,400})\}\{([^{}]{1,400})\}")
_SIGNS = (
    *(("\\times", "*"), ("\\cdot", "*"), ("\\div", "/"), ("\\approx", "="), ("\\left", "")),
    *(("\\right", ""), ("\\%", "%"), ("\\$", "$"), ("[", "("), ("]", ")"), ("`", "")),
    *(("->", "="), ("=>", "="), ("\u2192", "="), ("\u21d2", "=")),
)
_AROUND = re.compile(r"\A\s*(?:```\w*|\$(?=.*\$\s*\Z))|(?:```|\$)\s*\Z", re.DOTALL)
_OF = re.compile(r"(?<=[0-9]%)\s+of\s+")
_NAMED = re.compile(r"\s*[A-Za-z][\w \t]{0,40}[:=](?!\s*\Z)")  # change = 10 - 4


def plain_program(text: str) -> str:
    r"""The text of a calculation without fences and LaTeX, and without its name.

    >>> plain_program(r"growth = \frac{10 - 4}{4} \approx 1.5")
    ' ((10 - 4)/(4)) = 1.5'
    """
    text = _FRACTION.sub(r"((\1)/(\2))", _AROUND.sub("", text))
    for sign, plain in _SIGNS:
        text = text.replace(sign, plain)
    text = _OF.sub(" * ", text)
    named = _NAMED.match(text)
    if named:
        return text[named.end() :]
    return text
