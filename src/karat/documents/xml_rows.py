"""XML → the objects, lists and texts that it would be in JSON: without document types and entities,
and bounded.
"""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

_MAX_BYTES = 10_000_000
_MAX_DEPTH = 50


def read_xml(text: str) -> Any:
    """The root element as an object, each element by its tag: those of one tag as a list, also a
    single one below the root. Raises ValueError with what is wrong, as the end of a sentence.
    """
    if len(text) > _MAX_BYTES:
        raise ValueError(
            f"is larger than {_MAX_BYTES // 1_000_000} MB, the limit for XML: save it as CSV"
        )

    if "<!DOCTYPE" in text or "<!ENTITY" in text:  # entities can make a small file huge
        raise ValueError("declares a document type (<!DOCTYPE>), which is not read: remove it")
    try:
        root = ElementTree.fromstring(text)  # noqa: S314 - without entities, and bounded
    except ElementTree.ParseError as error:
        line, column = error.position
        raise ValueError(f"is not XML (line {line}, column {column + 1})") from None

    if root.tag in ("testsuite", "testsuites"):
        raise ValueError("is JUnit XML: `karat import junit` reads it")
    value = _value(root, depth=1)
    if not isinstance(value, dict):
        return value
    lists = {}
    for tag, part in value.items():
        inner = [*part.values()] if isinstance(part, dict) else []
        lists[tag] = part if isinstance(part, list) else [part]
        if len(inner) == 1 and isinstance(inner[0], list):
            rows = all(isinstance(below, dict) for below in inner[0])
            lists[tag] = inner[0] if rows else [part]  # `<questions><question id="1">`

    return lists


def _value(element: ElementTree.Element, depth: int) -> Any:
    """A text, or an object of the attributes and the elements inside."""
    if depth > _MAX_DEPTH:
        raise ValueError("is nested too deeply")
    text = (element.text or "").strip()
    if any((child.tail or "").strip() for child in element):  # words in bold, say
        text = "".join(element.itertext()).strip()
        element = ElementTree.Element(element.tag, element.attrib)

    if not len(element) and not element.attrib:
        return text
    found: dict[str, list[Any]] = {}
    for name, value in element.attrib.items():
        found[name] = [value]

    for child in element:
        found.setdefault(child.tag.rpartition("}")[2], []).append(_value(child, depth + 1))

    if text:
        found.setdefault("text", []).append(text)
    return {name: parts[0] if len(parts) == 1 else parts for name, parts in found.items()}
