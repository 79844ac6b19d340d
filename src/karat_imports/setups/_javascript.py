"""Assertions of promptfoo in JavaScript that are one comparison, as criteria. Nothing is run.

Known are: `output.includes("…")`, also in lower case, negated, or several joined by `||` or `&&`;
`JSON.parse(output).key === value`; `[…].includes(JSON.parse(output).key)`; and
`output.length < 180`.
"""

from __future__ import annotations

import json
import re

from karat.records import Json, JsonObject

_TEXT = r"(\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`[^`\\$]*`)"
_OUTPUT = r"(?:String\(output\)|output)"
_INCLUDES = re.compile(rf"(!?)\s*{_OUTPUT}((?:\.toLowerCase\(\))?)\.includes\({_TEXT}\)")
_LENGTH = re.compile(rf"{_OUTPUT}\.length\s*(<=?|>=?)\s*(\d{{1,7}})")
_PATH = r"JSON\.parse\(output\)((?:\.[A-Za-z_]\w*){1,8})"
_IS = re.compile(rf"{_PATH}\s*===?\s*(.+)", re.DOTALL)
_ONE_OF = re.compile(rf"(\[.*\])\.includes\({_PATH}\)", re.DOTALL)
_TERNARY = re.compile(r"(.*?)\s*\?\s*(?:1|1\.0|true)\s*:\s*(?:0|0\.0|false)", re.DOTALL)


def as_assertion(code: str) -> JsonObject | None:
    """`type` and `value` of an assertion that holds for the same answers; None: not known.

    >>> as_assertion("output.includes('a') || output.includes('b')")
    {'type': 'contains-any', 'value': ['a', 'b']}
    >>> as_assertion("output.length < 3 ? 1 : 0")
    {'type': 'regex', 'value': '(?s)\\\\A.{0,2}\\\\Z'}
    """
    code = code.strip().removeprefix("return ").rstrip("; \n")
    if ternary := _TERNARY.fullmatch(code):
        code = ternary[1]
    if code.startswith("(") and code.endswith(")") and code.count("(") == 1:
        code = code[1:-1].strip()
    if match := _LENGTH.fullmatch(code):
        sign = match[1]
        number = int(match[2])
        low, high = 0, number
        if sign == "<":
            high = number - 1
        elif sign == ">":
            low = number + 1
        elif sign == ">=":
            low = number

        if sign.startswith("<"):
            times = "{0}(?!)"
            if high >= 0:
                times = f"{{0,{high}}}"
        else:
            times = f"{{{low},}}"

        return {"type": "regex", "value": f"(?s)\\A.{times}\\Z"}

    if match := _IS.fullmatch(code):
        literal = _literal(match[2])
        if literal is None:
            return None
        return _json(match[1], {"const": literal[0]})

    if match := _ONE_OF.fullmatch(code):
        literal = _literal(match[1])
        if literal is None:
            return None
        return _json(match[2], {"enum": literal[0]})

    mark = "&&" if "&&" in code else "||"
    parts = [part.strip() for part in code.split(mark)]
    found = [_INCLUDES.fullmatch(part) for part in parts]
    matches = [match for match in found if match is not None]
    if len(matches) < len(parts):
        return None
    negated = {match[1] for match in matches}
    lowered = {match[2] for match in matches}
    literals = [_literal(match[3]) for match in matches]
    texts = [literal[0] for literal in literals if literal and isinstance(literal[0], str)]
    if len(negated) > 1 or len(lowered) > 1 or len(texts) < len(parts):
        return None

    kind = "icontains" if lowered == {".toLowerCase()"} else "contains"
    if kind == "icontains" and any(text != text.lower() for text in texts):
        return None  # never true in JavaScript
    if negated == {"!"}:
        kind = f"not-{kind}"
        mark = "||" if mark == "&&" else "&&"

    if len(texts) == 1:
        return {"type": kind, "value": texts[0]}
    return {"type": f"{kind}-{'all' if mark == '&&' else 'any'}", "value": texts}


def _json(path: str, schema: JsonObject) -> JsonObject:
    """An object in which the value at the path fits the schema."""
    for key in reversed(path.strip(".").split(".")):
        schema = {"type": "object", "required": [key], "properties": {key: schema}}

    return {"type": "is-json", "value": schema}


def _literal(code: str) -> tuple[Json] | None:
    """The value of a text, a number, true, false, null or a list of them."""
    code = code.strip()
    if re.fullmatch(_TEXT, code):
        if code[0] != '"':
            inner = code[1:-1].replace("\\'", "'").replace('"', '\\"')
            code = f'"{inner}"'
    elif code.startswith("["):
        code = re.sub(r"'([^'\"\\]*)'", r'"\1"', code)

    try:
        value = json.loads(code)
    except (ValueError, RecursionError):
        return None

    if isinstance(value, dict):
        return None
    return (value,)
