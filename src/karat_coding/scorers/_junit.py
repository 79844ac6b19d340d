"""JUnit XML as test runners write it, treated as untrusted: no DTD, no entities, nothing is
fetched.
"""

from __future__ import annotations

from xml.parsers import expat

_LONGEST = 300  # characters of a name or message


class BadReport(ValueError):
    """Not a readable report; the message follows its name."""


def read_junit(report: bytes) -> dict[str, str | None]:
    """Test → "passed", or why not; None: it was skipped. A test that occurs twice passed if it
    always did.

    Tests are named `classname.name`. Raises BadReport.

    >>> read_junit(
    ...     b'<testsuite><testcase classname="a" name="b"/>'
    ...     b'<testcase name="c"><skipped/></testcase></testsuite>'
    ... )
    {'a.b': 'passed', 'c': None}
    """
    reader = _Reader()
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = _refuse
    parser.EntityDeclHandler = _refuse
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    try:
        parser.Parse(report, True)
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise (
            error if isinstance(error, BadReport) else BadReport(f"is not XML: {error}")
        ) from error

    return reader.cases


def _refuse(*_: object) -> None:
    raise BadReport("has a document type, which is refused")


class _Reader:
    def __init__(self) -> None:
        self.cases: dict[str, str | None] = {}
        self._case: str | None = None
        self._result: str | None = "passed"

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "testcase":
            parts = [attributes.get("classname", ""), attributes.get("name", "")]
            self._case, self._result = ".".join(filter(None, parts))[:_LONGEST], "passed"
        elif self._case is not None and tag in ("failure", "error"):
            self._result = " ".join(attributes.get("message", "").split())[:_LONGEST] or tag
        elif self._case is not None and tag == "skipped" and self._result == "passed":
            self._result = None

    def end(self, tag: str) -> None:
        if tag == "testcase" and self._case is not None:
            if self.cases.get(self._case, "passed") in ("passed", None):
                self.cases[self._case] = self._result
            self._case = None
