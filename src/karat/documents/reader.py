"""YAML → nodes: safe, with the line of every key, every fault that a parser can see, and bounded
work.

This builds nodes from PyYAML's events, without recursion. PyYAML's own loaders drop line
numbers, keep the last of two equal keys, and expand aliases before they can be counted
(nine lines can stand for 10⁹ nodes). Here sizes are counted without expanding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import yaml

from karat.documents.nodes import Node, dotted
from karat.errors import Fault

MAX_BYTES = 1_000_000
MAX_NODES = 20_000  # after alias expansion
MAX_DEPTH = 100


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How large a file may be, and what to do with a larger one."""

    max_bytes: int = MAX_BYTES
    max_nodes: int = MAX_NODES
    too_large: str = "holds no data: keep data in a separate file"  # follows the kind of file
    too_many: str = "keep data in a separate file"
    numbers_as_written: bool = False  # `010` and `1:30` are texts, and no faults


# libyaml is some ten times faster; without it, only the speed differs.
_Loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Mark = Any  # yaml.Mark, or libyaml's
_PLAIN = (None, "")  # the style of an unquoted scalar, by PyYAML's own parser and by libyaml's
_CONTROL = re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x84\x86-\x9f\ufffe\uffff]")
_PREFIX = "tag:yaml.org,2002:"


class Document(msgspec.Struct):
    """A parsed file. `root` is None if it is empty or could not be parsed."""

    root: Node | None = None
    faults: list[Fault] = []
    warnings: list[str] = []
    as_written: list[str] = []  # what YAML takes for other numbers, and is read as text


def parse(
    data: bytes,
    *,
    what: str = "an experiment file",
    limits: Limits | None = None,
) -> Document:
    """The document in `data`, with every fault that can be found at once.

    `what`: the kind of file, for messages.
    """
    limits = limits or Limits()
    message, at = "", -1  # and the byte of the fault, if it has a line
    if len(data) > limits.max_bytes:
        message = f"is larger than {limits.max_bytes // 1_000_000} MB; {what} {limits.too_large}"
    elif b"\0" in data:
        message = f"is not a text file; {what} is YAML in UTF-8"
    else:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            message, at = (
                f"byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8",
                error.start,
            )
        else:
            control = _CONTROL.search(text)
            if control is None:
                return _Builder(text, what, limits).document()
            message = (
                f"a control character (U+{ord(control[0]):04X}), which YAML does not allow; "
                f"remove it"
            )
            at = data.index(control[0].encode())

    if at >= 0:
        line = data.count(b"\n", 0, at) + 1
    else:
        line = None

    return Document(faults=[Fault(place="file", message=message, line=line)])


def parse_value(text: str) -> tuple[Node, str]:
    """The value of a `--set`, and what is wrong with it ("" if nothing is).

    Only brackets and braces make lists and mappings: `Answer: briefly` is a text, and so is `*`.
    """
    if text.strip() == "*":
        return Node("*"), ""
    document = parse(text.encode("utf-8", "surrogateescape"))
    root = document.root or Node(None)
    if text.lstrip()[:1] in set("[{\"'&*!|>"):
        return root, document.faults[0].message if document.faults else ""
    if document.faults or isinstance(root.value, (dict, list)):
        return Node(text), ""
    return root, ""


_MAKERS: dict[str, Callable[[yaml.SafeLoader, yaml.ScalarNode], object]] = {
    "null": lambda loader, node: None,
    "bool": _Loader.construct_yaml_bool,
    "int": _Loader.construct_yaml_int,
    "float": _Loader.construct_yaml_float,
    # a date is its text
    **dict.fromkeys(("str", "timestamp", "value", "merge"), lambda loader, node: node.value),
}


class _Stop(Exception):
    def __init__(self, place: str, message: str, mark: Mark) -> None:
        self.fault = _fault(place, message, mark)


class _Open(msgspec.Struct, eq=False):
    """A mapping or list that has not ended yet."""

    node: Node
    anchor: str | None
    key: str | None = None  # the mapping's key whose value comes next
    mark: Mark | None = None  # of that key
    merge: bool = False  # that key is `<<`
    merged: list[Node] = []
    lines: dict[str, int] = {}  # key → its line


class _Builder:
    """Builds nodes from events, without recursion."""

    def __init__(self, text: str, what: str, limits: Limits) -> None:
        self._loader = _Loader(text)
        self._what, self._limits = what, limits
        self._lines = text.split("\n")
        self._stack: list[_Open] = []
        self._anchors: dict[str, Node] = {}
        self._document = Document()
        self._nodes = 0
        self._documents = 0

    def document(self) -> Document:
        try:
            while self._loader.check_event():
                self._take(self._loader.get_event())  # type: ignore[no-untyped-call]  # types-PyYAML leaves it out
        except _Stop as stop:
            self._document.faults.append(stop.fault)
            self._document.root = None
        except yaml.MarkedYAMLError as error:
            self._document.faults.append(_syntax_fault(error, self._lines))
            self._document.root = None
        finally:
            self._loader.dispose()

        return self._document

    def _take(self, event: yaml.Event) -> None:
        match event:
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    message = f"a second document starts here ('---'); {self._what} holds one"
                    raise _Stop("file", message, event.start_mark)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                mapping = isinstance(event, yaml.MappingStartEvent)
                node = self._node({} if mapping else [], event.start_mark)
                if event.tag not in (None, "!", _PREFIX + ("map" if mapping else "seq")):
                    self._foreign_tag(event.tag, node, event.start_mark)
                self._stack.append(_Open(node, event.anchor))
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                closed = self._stack.pop()
                # the mapping's own keys win, then the first of several merges
                for source in closed.merged:
                    closed.node.value = {**source.value, **closed.node.value}  # type: ignore[dict-item]  # mappings both

                self._add(closed.node, closed.anchor)
            case yaml.ScalarEvent():
                if self._stack:
                    frame = self._stack[-1]
                else:
                    frame = None

                if frame is not None and isinstance(frame.node.value, dict) and frame.key is None:
                    self._key(frame, event)
                else:
                    self._scalar(event)
            case yaml.AliasEvent():
                anchor, mark = str(event.anchor), event.start_mark
                if any(frame.anchor == anchor for frame in self._stack):
                    message = f"the alias *{anchor} is inside what it refers to"
                    raise _Stop(self._place(), message, mark)

                if anchor not in self._anchors:
                    message = f"no anchor &{anchor} comes before the alias *{anchor}"
                    raise _Stop(self._place(), message, mark)

                self._add(self._copy(self._anchors[anchor], mark), None)

    def _node(self, value: object, mark: Mark, levels: int = 1) -> Node:
        """A new node, if the limits allow another one here."""
        self._nodes += 1
        if self._nodes > self._limits.max_nodes:
            message = (
                f"holds more than {self._limits.max_nodes} values (aliases expanded); "
                f"{self._limits.too_many}"
            )
            raise _Stop("file", message, mark)

        if isinstance(value, (dict, list)) and len(self._stack) + levels > MAX_DEPTH:
            raise _Stop(
                self._place().partition(".")[0],
                f"is nested deeper than {MAX_DEPTH} levels",
                mark,
            )

        if (
            levels == 1
            and self._stack
            and isinstance(self._stack[-1].node.value, dict)
            and self._stack[-1].key is None
        ):
            raise _Stop(self._place(), "a key must be text, not a list, mapping or alias", mark)

        return Node(value, line=mark.line + 1, column=mark.column + 1)

    def _copy(self, node: Node, mark: Mark, level: int = 1) -> Node:
        """A copy of a node, with the anchor's lines.

        Each copy counts, so that aliases cannot make a file huge.
        """
        copied, value = self._node(node.value, mark, level), node.value
        if isinstance(value, dict):
            copied.value = {key: self._copy(child, mark, level + 1) for key, child in value.items()}
        elif isinstance(value, list):
            copied.value = [self._copy(child, mark, level + 1) for child in value]

        copied.line, copied.column, copied.written = node.line, node.column, node.written
        return copied

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        mark: Mark = event.start_mark
        node = self._node(None, mark)
        node.written = event.value if event.style in _PLAIN else None
        tag = event.tag
        if tag in (None, "!"):
            tag = str(self._loader.resolve(yaml.ScalarNode, event.value, event.implicit))  # type: ignore[no-untyped-call]  # types-PyYAML leaves it out
        if tag.startswith(_PREFIX):
            maker = _MAKERS.get(tag.removeprefix(_PREFIX))
        else:
            maker = None

        try:
            if maker is None:
                self._foreign_tag(tag, node, mark)
            else:
                value = maker(self._loader, yaml.ScalarNode(tag, event.value))
                # ValueError for a number in base 2, 8, 16 or 60 that is too long in base 10
                str(value)
                node.value = value
        except (ValueError, yaml.YAMLError):
            node.unset = True
            self._note(
                (
                    f"'{event.value[:40]}' is not a valid {tag.removeprefix(_PREFIX)}; put it in "
                    f"quotes"
                ),
                mark,
            )

        warning = _misreading(node)
        if warning and self._limits.numbers_as_written and not isinstance(node.value, bool):
            node.value = event.value
            self._document.as_written.append(event.value)
        elif warning:
            self._document.warnings.append(str(_fault(self._place(), warning, mark)))
        self._add(node, event.anchor)

    def _key(self, frame: _Open, event: yaml.ScalarEvent) -> None:
        key = event.value
        mark: Mark = event.start_mark
        frame.key, frame.mark, frame.merge = key, mark, key == "<<" and event.style in _PLAIN
        if frame.merge:
            return
        if event.style in _PLAIN:
            if not key or key == "~":
                self._note("a key is empty; give it a name", mark)
            elif key.lower() in {"yes", "no", "on", "off"}:
                message = (
                    f"other YAML readers take the key {key} for true or false; here it is the "
                    f"text. "
                    f'Write "{key}" to be sure'
                )
                self._document.warnings.append(str(_fault(self._place(), message, mark)))

        if key in frame.lines:
            message = (
                f"the key '{key}' appears twice, first in line {frame.lines[key]}; remove one of "
                f"them"
            )
            self._note(message, mark)

        frame.lines.setdefault(key, mark.line + 1)

    def _foreign_tag(self, tag: str, node: Node, mark: Mark) -> None:
        node.unset = True
        self._note(
            f"the tag {tag.replace(_PREFIX, '!!')} is not allowed here; write plain YAML",
            mark,
        )

    def _add(self, node: Node, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = node
        if not self._stack:
            self._document.root = node
            return

        frame = self._stack[-1]
        if isinstance(frame.node.value, list):
            frame.node.value.append(node)
            return

        assert isinstance(frame.node.value, dict)
        assert frame.key is not None
        assert frame.mark is not None
        if frame.merge:
            if isinstance(node.value, list):
                sources = node.value
            else:
                sources = [node]

            if all(isinstance(source.value, dict) for source in sources):
                frame.merged.extend(sources)
            else:
                self._note(
                    "'<<' takes a mapping (an alias such as *defaults) or a list of them",
                    frame.mark,
                )
        else:
            node.line, node.column = frame.mark.line + 1, frame.mark.column + 1
            frame.node.value.setdefault(frame.key, node)

        frame.key, frame.merge = None, False

    def _note(self, message: str, mark: Mark) -> None:
        self._document.faults.append(_fault(self._place(), message, mark))

    def _place(self) -> str:
        parts: list[str | int] = []
        for frame in self._stack:
            if isinstance(frame.node.value, list):
                parts.append(len(frame.node.value))
            elif frame.key is not None:
                parts.append(frame.key)

        return dotted(tuple(parts)) or "file"


def _fault(place: str, message: str, mark: Mark) -> Fault:
    return Fault(place=place, message=message, line=mark.line + 1, column=mark.column + 1)


def _misreading(node: Node) -> str:
    """How YAML 1.1 misread an unquoted scalar; "" if it read what people mean."""
    written, value = node.written, node.value
    if written is None:
        return ""
    if isinstance(value, bool) and written.lower() not in {"true", "false"}:
        meant = str(value).lower()
        return f'YAML reads {written} as {meant}; write {meant}, or "{written}" for the text'

    if isinstance(value, (int, float)) and ":" in written:
        if isinstance(value, float):
            meant = f"{value:g}"
        else:
            meant = str(value)

        return (
            f'YAML reads {written} as {meant} (base 60); write {meant}, or "{written}" for the text'
        )

    if (
        isinstance(value, int)
        and not isinstance(value, bool)
        and written.lstrip("+-").startswith("0")
        and len(written.lstrip("+-")) > 1
    ):
        return f'YAML reads {written} as {value}; write {value}, or "{written}" for the text'

    return ""


_REMEDIES = (
    (
        "mapping values are not allowed",
        (
            "a ':' where none is allowed: put text that contains ': ' in quotes, and check the "
            "indentation"
        ),
    ),
    (
        "cannot start any token",
        (
            "no value can start with this character (a tab, '@', '`' or '%'): indent with spaces, "
            "put text in quotes"
        ),
    ),
    (
        "could not find expected ':'",
        "a key without ':', or text that continues on the next line without quotes",
    ),
    (
        "did not find expected ',' or",
        "a bracket or brace that is not closed, or a comma that is missing",
    ),
    ("did not find expected key", "the indentation does not fit the lines above"),
    ("did not find expected '-' indicator", "the indentation does not fit the list above"),
    (
        "did not find expected <document start>",
        "text after the end of the document: check the indentation",
    ),
    ("unexpected end of stream", "a quote is not closed"),
    ("undefined alias", "an alias (*name) without its anchor (&name) before it"),
    (
        "block sequence entries are not allowed",
        "a '- ' where no list is allowed: start the list on a new line",
    ),
    (
        "did not find expected node content",
        "a value is missing, or there is a bracket or comma too many",
    ),
    (
        "unknown escape character",
        "a backslash in double quotes: use single quotes, or write it twice",
    ),
    ("did not find expected alphabetic", "text that begins with '*' or '&' must be in quotes"),
)


def _syntax_fault(error: yaml.MarkedYAMLError, lines: Sequence[str]) -> Fault:
    problem = f"{error.context or ''} {error.problem or ''}".strip()
    mark = error.problem_mark or error.context_mark
    message = next((remedy for sign, remedy in _REMEDIES if sign in problem), problem)
    if mark is None:
        return Fault(place="file", message=f"not YAML: {message}")
    if "maximum nesting depth" in problem:  # PyYAML's own limit, from 6.0.4 on
        return _fault("file", f"is nested deeper than {MAX_DEPTH} levels", mark)
    if mark.line < len(lines) and re.search(r"[{,:]\s*\$\{", lines[mark.line]):
        message = 'inside braces a variable must be in quotes: "${NAME}"'
    return _fault("file", f"not YAML: {message}", mark)
