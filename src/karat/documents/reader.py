"""YAML → nodes: safe, with the line of every key, all faults that a parser can see, and bounded work.

PyYAML's events are put together here, without recursion, because what its loaders
build has no lines, keeps the last of two equal keys, and expands aliases before
anybody can count them (nine lines can stand for 10⁹ nodes). Sizes are counted
without expanding.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from karat.documents.nodes import Node, dotted
from karat.errors import Fault

__all__ = ["MAX_BYTES", "MAX_DEPTH", "MAX_NODES", "Document", "parse", "parse_value"]

MAX_BYTES = 1_000_000
MAX_NODES = 20_000  # after alias expansion
MAX_DEPTH = 100

# libyaml is some ten times faster; its absence changes nothing else.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PLAIN = (None, "")  # the style of an unquoted scalar, by PyYAML's own parser and by libyaml's
_CONTROL = re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x84\x86-\x9f\ufffe\uffff]")
_PREFIX = "tag:yaml.org,2002:"


@dataclass(slots=True)
class Document:
    """A parsed file. `root` is None where it could not be parsed or is empty."""

    root: Node | None = None
    faults: list[Fault] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def parse(data: bytes, *, what: str = "an experiment file") -> Document:
    """The document in `data`, with every fault that can be seen at once. `what`: the kind of file, in their words."""
    if len(data) > MAX_BYTES:
        size = f"is larger than {MAX_BYTES // 1_000_000} MB; {what} holds no data: keep them in a file beside it"
        return Document(faults=[Fault(place="file", message=size)])
    if b"\0" in data:
        binary = f"is not a text file; {what} is YAML in UTF-8"
        return Document(faults=[Fault(place="file", message=binary)])
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8"
        return Document(faults=[Fault(place="file", message=found, line=line)])
    control = _CONTROL.search(text)
    if control is not None:
        line = text.count("\n", 0, control.start()) + 1
        message = f"a control character (U+{ord(control[0]):04X}), which YAML does not allow; remove it"
        return Document(faults=[Fault(place="file", message=message, line=line)])
    return _Builder(text, what).document()


def parse_value(text: str) -> tuple[Node, str]:
    """A value as `--set` gives it, and what is wrong with it ("" where nothing is).

    Only brackets and braces make lists and mappings: `Answer: briefly` is a text.
    """
    document = parse(text.encode("utf-8", "surrogateescape"))
    root = document.root or Node(None)
    if text.lstrip()[:1] in set("[{\"'&*!|>"):
        return root, document.faults[0].message if document.faults else ""
    if document.faults or isinstance(root.value, (dict, list)):
        return Node(text), ""
    return root, ""


_MAKERS: dict[str, Any] = {
    _PREFIX + "null": lambda loader, node: None,
    _PREFIX + "bool": _Loader.construct_yaml_bool,
    _PREFIX + "int": _Loader.construct_yaml_int,
    _PREFIX + "float": _Loader.construct_yaml_float,
    _PREFIX + "str": lambda loader, node: node.value,
    _PREFIX + "timestamp": lambda loader, node: node.value,  # a date is the text that stands there
    _PREFIX + "value": lambda loader, node: node.value,
    _PREFIX + "merge": lambda loader, node: node.value,
}


class _Stop(Exception):
    def __init__(self, place: str, message: str, line: int | None) -> None:
        self.fault = Fault(place=place, message=message, line=line)


@dataclass(slots=True)
class _Open:
    """A mapping or list whose end has not come yet."""

    node: Node
    anchor: str | None
    key: str | None = None  # the mapping's key that waits for its value
    key_line: int = 0
    merge: bool = False  # that key is `<<`
    merged: list[Node] = field(default_factory=list)
    size: int = 1  # in values, aliases expanded
    height: int = 1  # in levels, likewise
    lines: dict[str, int] = field(default_factory=dict)  # key → its line


@dataclass(slots=True)
class _Closed:
    """A value that is whole, and can be referred to."""

    node: Node
    size: int = 1
    height: int = 0


class _Builder:
    def __init__(self, text: str, what: str) -> None:
        self._loader = _Loader(text)
        self._what = what
        self._lines = text.split("\n")
        self._stack: list[_Open] = []
        self._anchors: dict[str, _Closed] = {}
        self._document = Document()
        self._nodes = 0
        self._documents = 0

    def document(self) -> Document:
        try:
            while self._loader.check_event():
                self._take(self._loader.get_event())
        except _Stop as stop:
            self._document.faults.append(stop.fault)
            self._document.root = None
        except yaml.MarkedYAMLError as error:
            self._document.faults.append(_syntax_fault(error, self._lines))
            self._document.root = None
        finally:
            self._loader.dispose()
        return self._document

    def _take(self, event: Any) -> None:
        line = event.start_mark.line + 1
        match event:
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    raise _Stop("file", f"a second document starts here ('---'); {self._what} holds one", line)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._open(event, line)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._close()
            case yaml.ScalarEvent():
                self._scalar(event, line)
            case yaml.AliasEvent():
                self._alias(str(event.anchor), line)

    def _open(self, event: Any, line: int) -> None:
        self._check_depth(1, line)
        mapping = isinstance(event, yaml.MappingStartEvent)
        self._expect_value(line)
        self._check_size(1, line)
        node = Node({} if mapping else [], line=line)
        if event.tag not in (None, "!", _PREFIX + ("map" if mapping else "seq")):
            node.unset = self._foreign_tag(event.tag, line)
        self._stack.append(_Open(node, event.anchor))

    def _close(self) -> None:
        done = self._stack.pop()
        if done.merged:
            inherited: dict[str, Node] = {}
            for source in done.merged:
                inherited = {**source.value, **inherited}
            done.node.value = {**inherited, **done.node.value}
        self._add(_Closed(done.node, done.size, done.height), done.anchor)

    def _alias(self, anchor: str, line: int) -> None:
        if any(frame.anchor == anchor for frame in self._stack):
            raise _Stop(self._place() or "file", f"the alias *{anchor} stands inside what it refers to", line)
        if anchor not in self._anchors:
            raise _Stop(self._place() or "file", f"no anchor &{anchor} stands before the alias *{anchor}", line)
        closed = self._anchors[anchor]
        self._check_size(closed.size, line)
        self._check_depth(closed.height, line)
        self._expect_value(line)
        self._add(_Closed(_copy(closed.node), closed.size, closed.height), None)

    def _scalar(self, event: Any, line: int) -> None:
        frame = self._stack[-1] if self._stack else None
        if frame is not None and isinstance(frame.node.value, dict) and frame.key is None:
            self._key(frame, event, line)
            return
        self._check_size(1, line)
        node = Node(None, line=line, written=event.value if event.style in _PLAIN else None)
        tag = self._tag(event)
        try:
            if tag in _MAKERS:
                node.value = _MAKERS[tag](self._loader, yaml.ScalarNode(tag, event.value))
            else:
                node.unset = self._foreign_tag(tag, line)
        except (ValueError, yaml.YAMLError):
            node.unset = True
            self._fault(f"'{event.value[:40]}' is no {tag.removeprefix(_PREFIX)}; put it in quotes", line)
        warning = _misreading(node)
        if warning:
            self._document.warnings.append(f"{self._place() or 'file'} (line {line}): {warning}")
        self._add(_Closed(node), event.anchor)

    def _key(self, frame: _Open, event: Any, line: int) -> None:
        if event.value == "<<" and event.style in _PLAIN:
            frame.key, frame.key_line, frame.merge = "<<", line, True
            return
        key = event.value
        frame.key, frame.key_line, frame.merge = key, line, False
        if event.style in _PLAIN:
            if not key or key == "~":
                self._fault("a key is empty; give it a name", line)
            elif key.lower() in {"yes", "no", "on", "off"}:
                self._document.warnings.append(
                    f"{self._place()} (line {line}): other YAML readers take the key {key} for true or false; "
                    f'here it is the text. Write "{key}" to be sure'
                )
        if key in frame.lines:
            message = f"the key '{key}' stands here twice, first in line {frame.lines[key]}; remove one of them"
            self._fault(message, line)
        frame.lines.setdefault(key, line)

    def _tag(self, event: Any) -> str:
        if event.tag in (None, "!"):
            return str(self._loader.resolve(yaml.ScalarNode, event.value, event.implicit))
        return str(event.tag)

    def _foreign_tag(self, tag: str, line: int) -> bool:
        shown = tag.replace(_PREFIX, "!!")
        self._fault(f"the tag {shown} is not allowed here; write plain YAML", line)
        return True

    def _expect_value(self, line: int) -> None:
        frame = self._stack[-1] if self._stack else None
        if frame is not None and isinstance(frame.node.value, dict) and frame.key is None:
            raise _Stop(self._place() or "file", "a key must be text, not a list, mapping or alias", line)

    def _check_size(self, size: int, line: int) -> None:
        self._nodes += size
        if self._nodes > MAX_NODES:
            message = f"holds more than {MAX_NODES} values (aliases expanded); keep data in a file beside it"
            raise _Stop("file", message, line)

    def _check_depth(self, more: int, line: int) -> None:
        if len(self._stack) + more > MAX_DEPTH:
            raise _Stop(self._place().partition(".")[0] or "file", f"is nested deeper than {MAX_DEPTH} levels", line)

    def _add(self, closed: _Closed, anchor: str | None) -> None:
        node = closed.node
        if anchor is not None:
            self._anchors[anchor] = closed
        if not self._stack:
            self._document.root = node
            return
        frame = self._stack[-1]
        frame.size += closed.size
        frame.height = max(frame.height, closed.height + 1)
        if isinstance(frame.node.value, list):
            frame.node.value.append(node)
            return
        assert frame.key is not None
        if frame.merge:
            self._merge(frame, node)
        else:
            node.line = frame.key_line
            frame.node.value.setdefault(frame.key, node)
        frame.key, frame.merge = None, False

    def _merge(self, frame: _Open, node: Node) -> None:
        sources = node.value if isinstance(node.value, list) else [node]
        if all(isinstance(source.value, dict) for source in sources):
            frame.merged.extend(sources)
        else:
            self._fault("'<<' takes a mapping (an alias such as *defaults) or a list of them", frame.key_line)

    def _fault(self, message: str, line: int) -> None:
        self._document.faults.append(Fault(place=self._place() or "file", message=message, line=line))

    def _place(self) -> str:
        parts: list[str | int] = []
        for frame in self._stack:
            if isinstance(frame.node.value, list):
                parts.append(len(frame.node.value))
            elif frame.key is not None:
                parts.append(frame.key)
        return dotted(tuple(parts))


def _copy(node: Node) -> Node:
    value = node.value
    if isinstance(value, dict):
        value = {key: _copy(child) for key, child in value.items()}
    elif isinstance(value, list):
        value = [_copy(child) for child in value]
    return Node(value, line=node.line, written=node.written)


def _misreading(node: Node) -> str:
    """What YAML 1.1 made of an unquoted scalar that people read otherwise; "" where it is plain."""
    written, value = node.written, node.value
    if written is None:
        return ""
    if isinstance(value, bool) and written.lower() not in {"true", "false"}:
        meant = str(value).lower()
        return f'YAML reads {written} as {meant}; write {meant}, or "{written}" for the text'
    if isinstance(value, (int, float)) and ":" in written:
        return f'YAML reads {written} as {value:g} (base 60); write {value:g}, or "{written}" for the text'
    if isinstance(value, int) and not isinstance(value, bool) and written.lstrip("+-").startswith("0") and value:
        return f'YAML reads {written} as {value}; write {value}, or "{written}" for the text'
    return ""


_REMEDIES = (
    (
        "mapping values are not allowed",
        "a ':' where none can stand: put text that holds ': ' in quotes, and check the indentation",
    ),
    (
        "cannot start any token",
        "a character that can start no value (a tab, '@', '`' or '%'): indent with spaces, put text in quotes",
    ),
    ("could not find expected ':'", "a key without ':', or text that goes on in the next line without quotes"),
    ("did not find expected ',' or", "a bracket or brace that is not closed, or a comma that is missing"),
    ("did not find expected key", "the indentation does not fit the lines above"),
    ("did not find expected '-' indicator", "the indentation does not fit the list above"),
    ("did not find expected <document start>", "text after the end of the document: check the indentation"),
    ("unexpected end of stream", "a quote is not closed"),
    ("undefined alias", "an alias (*name) whose anchor (&name) does not stand before it"),
    ("block sequence entries are not allowed", "a '- ' where no list can stand: begin the list in a line of its own"),
    ("did not find expected node content", "a value is missing, or a bracket or comma is too many"),
    ("unknown escape character", "a backslash in double quotes: use single quotes, or write it twice"),
    ("did not find expected alphabetic", "text that begins with '*' or '&' must be in quotes"),
)


def _syntax_fault(error: yaml.MarkedYAMLError, lines: Sequence[str]) -> Fault:
    problem = f"{error.context or ''} {error.problem or ''}".strip()
    mark = error.problem_mark or error.context_mark
    message = next((remedy for sign, remedy in _REMEDIES if sign in problem), problem)
    if mark is None:
        return Fault(place="file", message=f"not YAML: {message}")
    if mark.line < len(lines) and re.search(r"[{,:]\s*\$\{", lines[mark.line]):
        message = 'inside of braces a variable must be in quotes: "${NAME}"'
    return Fault(place="file", message=f"not YAML, column {mark.column + 1}: {message}", line=mark.line + 1)
