"""JUnit XML, as the systems of CI read it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from xml.etree import ElementTree

from karat import formats

Case = tuple[str, str, tuple[str, str, str, str] | None]
"""Name and class; then element, type, message and text of what is wrong, or None."""


def junit_xml(name: str, suites: Mapping[str, Sequence[Case]]) -> str:
    """The whole file: suite → its cases."""

    def counted(cases: Iterable[Case], element: str) -> str:
        return str(sum(fault is not None and fault[0] == element for _, _, fault in cases))

    def numbers(cases: Sequence[Case]) -> dict[str, str]:
        failures = counted(cases, "failure")
        errors = counted(cases, "error")
        return {"tests": str(len(cases)), "failures": failures, "errors": errors, "time": "0"}

    everything = [case for cases in suites.values() for case in cases]
    root = ElementTree.Element("testsuites", {"name": name, **numbers(everything)})
    for suite_name, cases in suites.items():
        about = {"name": _xml(suite_name), "skipped": counted(cases, "skipped"), **numbers(cases)}
        suite = ElementTree.SubElement(root, "testsuite", about)
        for case_name, group, fault in cases:
            names = {"name": _xml(case_name), "classname": _xml(group), "time": "0"}
            case = ElementTree.SubElement(suite, "testcase", names)
            if fault is not None:
                element, kind, message, text = fault
                if element == "skipped":
                    attributes = {"message": _xml(message)}
                else:
                    attributes = {"message": _xml(message), "type": kind}

                ElementTree.SubElement(case, element, attributes).text = _xml(text)

    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _xml(text: str) -> str:
    """Text on one line, without the characters that XML 1.0 cannot hold."""
    line = " ".join(formats.clean(text).split())
    return "".join(char for char in line if char >= " " and char not in "\ufffe\uffff")
