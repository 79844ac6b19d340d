"""Numbers of a golden file as they are on every machine."""

from __future__ import annotations

import json


def rounded(document: str | bytes) -> str:
    """The JSON document, a line each value: six digits of a number, and 0 for what is only an error of rounding."""
    return json.dumps(json.loads(document, parse_float=_six_digits), indent=1, ensure_ascii=False) + "\n"


def _six_digits(text: str) -> float:
    number = float(text)
    return float(f"{number:.6g}") if abs(number) >= 1e-9 else 0.0
