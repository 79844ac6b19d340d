"""What fuzz_files.py uses to judge: karat's commands, and readers that share no code with karat's."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from karat.__main__ import main as karat

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES, CORPUS, DATA = ROOT / "examples", ROOT / "tests" / "corpus" / "runs", ROOT / "tests" / "data"
RUBRICS, STUDIES = ROOT / "src" / "karat" / "rubrics", ROOT / "src" / "karat_studies" / "kinds" / "study" / "studies"
CODES = {0, 1, 2, 3, 4}
MOST_VALUES = 20_000  # of a YAML file, aliases expanded

QUESTIONS = (EXAMPLES / "support-kb" / "questions.jsonl").read_bytes()
ROWS = [json.loads(line) for line in QUESTIONS.splitlines()[:6]]
for row in ROWS:
    row |= {"difficulty": len(row["id"]) / 4, "tags": ["a", None], "seen": True}


class Seed(NamedTuple):
    """A valid file."""

    name: str
    data: bytes
    about: Any = None  # further data for its kind


class Wrong(Exception):
    """A finding: its class and its description."""


class Refused(ValueError):
    """Why a strict reader cannot read a file."""


# --- the commands, in this process -----------------------------------------------------------------------------------


def run(*arguments: str, names: Sequence[str]) -> tuple[int, str]:
    """Exit code and standard output. Raises Wrong if the command ends as no command should."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = karat([*arguments])
    text = out.getvalue() + err.getvalue()
    if code not in CODES or "Traceback (most recent" in text:
        raise Wrong("fault", f"exit {code}: {err.getvalue()[-400:]}")
    if code == 2 and not any(name in text for name in names):
        raise Wrong("unnamed", f"names none of {names}: {text[:400]}")
    return code, out.getvalue()


def strict_json(data: bytes) -> Any:
    """The value, with None for NaN. Raises Refused for duplicate keys, infinities, half a surrogate pair, and text
    that is not JSON.
    """
    try:
        value = json.loads(data, object_pairs_hook=_no_twins, parse_constant=_constant, parse_float=_finite)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise Refused(str(error)) from None
    return value


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise Refused("a key is there twice")
    return dict(pairs)


def _constant(text: str) -> float | None:
    return None if text == "NaN" else _refuse(text)


def _refuse(text: str) -> float:
    raise Refused(text)


def _finite(text: str) -> float:
    return value if math.isfinite(value := float(text)) else _refuse(text)


def strict_csv(text: str, delimiter: str) -> Iterator[list[str]]:
    """Records by RFC 4180, with one automaton; a line ends at CR, LF or both. Empty lines do not count."""
    cells, cell, quoted, closed, begun = [], "", False, False, False
    text = text.replace("\r\n", "\n") if '"' not in text else text
    at = 0
    while at < len(text):
        sign = text[at]
        at += 1
        if quoted:
            if sign != '"':
                cell += sign
            elif text[at : at + 1] == '"':
                cell, at = cell + '"', at + 1
            else:
                quoted, closed = False, True
        elif sign == delimiter:
            cells, cell, closed, begun = [*cells, cell], "", False, True
        elif sign in "\r\n":
            at += sign == "\r" and text[at : at + 1] == "\n"
            if begun or cell or closed:
                yield [*cells, cell]
            cells, cell, closed, begun = [], "", False, False
        elif closed:
            raise Refused("text after a closing quote")
        elif sign == '"' and not cell:
            quoted = True
        else:
            cell += sign
    if quoted:
        raise Refused("a quote is not closed")
    if begun or cell or closed:
        yield [*cells, cell]


def strict_yaml(data: bytes, scanner: Any = yaml.SafeLoader) -> Any:
    """The value. Keys and dates are texts; duplicate keys are refused.

    `scanner`: the one that karat does not use: it reads rubrics with PyYAML's own, and everything else with libyaml's.
    """
    try:
        text = data.decode("utf-8-sig")
        loader = scanner(text)
        node = loader.get_single_node()
        return None if node is None else _yaml_value(loader, node, [0], ())
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise Refused(str(error)) from None


def yaml_of_both(data: bytes) -> Any:
    """The result of PyYAML's own scanner, or of libyaml's if that accepts a tab that YAML 1.2 allows."""
    with suppress(Refused):
        return strict_yaml(data)
    return independent(lambda: strict_yaml(data, yaml.CSafeLoader))


def _yaml_value(loader: yaml.SafeLoader, node: yaml.Node, count: list[int], above: tuple[yaml.Node, ...]) -> Any:
    count[0] += 1
    if count[0] > MOST_VALUES or node in above or len(above) > 100:
        raise Refused("too many values, or one that holds itself")
    above = (*above, node)
    if isinstance(node, yaml.SequenceNode):
        return [_yaml_value(loader, child, count, above) for child in node.value]
    if isinstance(node, yaml.MappingNode):
        merged: dict[str, Any] = {}
        values: dict[str, Any] = {}
        for key, child in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise Refused("a key that is no text")
            value = _yaml_value(loader, child, count, above)
            if key.tag == "tag:yaml.org,2002:merge":
                for source in value if isinstance(value, list) else [value]:
                    merged = {**source, **merged}
            elif key.value in values:
                raise Refused(f"{key.value} is there twice")
            else:
                values[key.value] = value
        return {**merged, **values}
    makers = {"null": lambda _: None, "bool": loader.construct_yaml_bool, "int": loader.construct_yaml_int}
    makers["float"] = loader.construct_yaml_float
    makers |= dict.fromkeys(("str", "timestamp", "value", "merge"), lambda scalar: scalar.value)
    maker = makers.get(node.tag.removeprefix("tag:yaml.org,2002:"))
    if maker is None:
        raise Refused(f"the tag {node.tag}")
    return maker(node)


def same(ours: Any, theirs: Any) -> bool:
    """Equal in value and type; NaN equals NaN."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(same(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, float) and isinstance(theirs, (float, int)) and not isinstance(theirs, bool):
        return ours == theirs or (ours != ours and theirs != theirs)  # msgspec reads 1e400-digit integers as floats
    return type(ours) is type(theirs) and ours == theirs


def differ(place: str, ours: Any, theirs: Any) -> None:
    if not same(ours, theirs):
        raise Wrong("wrong", f"{place}: karat has {str(ours)[:300]!r}, the other reader {str(theirs)[:300]!r}")


def independent(read: Callable[[], Any]) -> Any:
    """The other reader's result. Raises Wrong if it refuses what karat accepted."""
    try:
        return read()
    except Refused as error:
        raise Wrong("wrong", f"karat took what a strict reader refuses: {str(error)[:300]}") from None


def numbers_in(path: Path) -> Iterator[float]:
    """Each number in a file by its digits, including those inside texts and in members of zip archives."""
    import re

    from backports.zstd.zipfile import ZipFile

    texts = [path.read_bytes()]
    if path.suffix == ".eval":
        texts = []
        damaged = (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, ValueError, RuntimeError)
        with suppress(*damaged), ZipFile(path) as archive:
            for member in archive.namelist():
                with suppress(Exception):
                    texts.append(archive.read(member))
    for text in texts:
        for match in re.finditer(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", text):
            with suppress(ValueError, OverflowError):
                yield float(match[0])


def table(delimiter: str, rows: Iterable[dict[str, Any]], columns: Sequence[str]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerows([columns, *([row[column] for column in columns] for row in rows)])
    return text.getvalue().encode()


def rows_of(path: Path, data: bytes) -> list[Any]:
    suffixes = path.suffixes
    if suffixes[-1] == ".gz":
        data = gzip.decompress(data)
    encodings = ["utf-16"] if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ["utf-8-sig"]
    if suffixes[0] in (".csv", ".tsv"):  # as spreadsheets save
        encodings += ["cp1252", "mac_roman"]
    for encoding in encodings:
        with suppress(UnicodeDecodeError):
            text = data.decode(encoding)
            break
    else:
        raise Refused(f"not {' or '.join(encodings)}")
    if suffixes[0] == ".jsonl":
        return [strict_json(line) for line in text.encode().split(b"\n") if line.strip(b" \t\r\x0b\x0c")]
    if suffixes[0] in (".csv", ".tsv"):
        header, *records = strict_csv(text, "," if suffixes[0] == ".csv" else "\t")
        widths = {len(record) for record in records}
        if len(records) > 1 and len(widths) == 1 and 1 < max(widths) < len(header):
            header = header[: max(widths)]  # karat says that no row has a cell in the last columns
        if any(len(record) != len(header) for record in records):
            raise Refused("a record of another length")
        return [dict(zip(map(str.strip, header), record, strict=True)) for record in records]
    value = strict_json(text.encode()) if suffixes[0] == ".json" else yaml_of_both(data)
    if isinstance(value, dict):
        (value,) = [child for child in value.values() if isinstance(child, list)]
    return list(value)


@cache
def drawn_run() -> Path:
    """A run with a sheet of answers to be scored by people."""
    folder = Path(tempfile.mkdtemp(prefix="karat-fuzz-labels-"))
    shutil.copytree(CORPUS / "chat-panel", folder / "run")
    with chdir(folder):
        run("label", "run", "--sample", "6", "--out", "sheet.csv", names=["run"])
    return folder


def damaged_lines(before: bytes, after: bytes) -> int:
    """The number of complete lines that the seed lacks. A truncated last line does not count."""
    known = {*before.split(b"\n")[:-1]}
    return sum(line not in known for line in after.split(b"\n")[:-1])


def difference(value: Any, before: Any, place: str = "") -> str:
    if isinstance(value, dict) and isinstance(before, dict):
        for key in before:
            if value.get(key) != before[key]:
                return difference(value.get(key), before[key], f"{place}.{key}")
    return f"{place} is {str(value)[:100]}, was {str(before)[:100]}"
