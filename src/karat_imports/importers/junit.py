"""`karat import junit`: reports of tests in JUnit's XML.

Source of the format: what pytest's `--junit-xml` writes (families xunit1 and xunit2), and the
schemas of Ant and Jenkins; reruns as Maven's Surefire writes them. A document type, and with it
every entity, is refused.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from xml.parsers import expat

from karat.importers import (
    Findings,
    ImportedCondition,
    ImportedFailure,
    ImportedRun,
    ImportedScore,
    ImportedTrial,
    Stated,
)
from karat.records import JsonObject, Metric, Reply
from karat_imports.importers._reading import (
    LONGEST,
    Json,
    by_name,
    failure,
    opened,
    recognized,
    title,
    utc,
)

__all__ = ["Junit"]

_ROOT = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*\?>\s*)?(?:<!--(?:[^-]|-(?!->))*-->\s*)*<testsuites?[\s>/]"
)
_CHUNK = 64 << 10
_DEEPEST = 100  # elements
_METRICS = (Metric(name="pass", kind="share", description="the test passed"),)
_RERUNS = ("flakyFailure", "flakyError", "rerunFailure", "rerunError")
_TEXTS = ("failure", "error", "skipped", "system-out", "system-err")


class Junit:
    """Reports of tests in JUnit's XML: files are conditions, tests samples that passed or not."""

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        return _ROOT.match(head) is not None

    def runs(self, paths: Sequence[Path], findings: Findings) -> Iterable[ImportedRun]:
        """One run; each file is a condition with the file's name."""
        files = recognized(
            paths,
            findings,
            by=self.recognizes,
            otherwise="is no report in JUnit's XML (expected testsuites or testsuite)",
        )
        named = by_name([title(path) for path in files], files)
        stated: list[Stated] = []
        yield ImportedRun(
            name=title(files[0]),
            tool="junit",
            trials=(
                trial
                for name, path in named.items()
                for trial in _trials(path, name, findings, stated)
            ),
            conditions=dict.fromkeys(named, ImportedCondition()),
            metrics={"junit": _METRICS},
            stated=stated,
        )


def _trials(
    path: Path,
    condition: str,
    findings: Findings,
    stated: list[Stated],
) -> Iterator[ImportedTrial]:
    """The tests of a file; afterwards `stated` holds how many there should be."""
    report = _Report(path, findings)
    for case in report:
        sample = ".".join(filter(None, (case.text("classname"), case.text("name")))) or "test"

        failed = case.at("failure")
        broke = case.at("error")
        if any(case.get(kind) for kind in _RERUNS):
            findings.left_out("earlier attempts of a test that was run again", sample)
        lost: ImportedFailure | None = None
        if broke and not failed:
            said = (broke.text("type"), broke.text("message") or broke.text("text"))
            lost = failure(": ".join(filter(None, said)) or "error")

        try:
            given = float((case.text("time") or "").replace(",", ""))  # Surefire: "1,234.5"
            seconds = Json({"": given}).number("", low=0)
        except ValueError:
            seconds = None

        # A report says only whether tests passed
        reply = Reply(text="", stop_reason="not_recorded")
        score = ImportedScore(
            scorer="junit",
            values={"pass": not failed},
            reasons={"pass": failed.text("text", "message")},
        )
        answered = lost is None and not case.at("skipped")
        yield ImportedTrial(
            sample=sample,
            question=sample,
            condition=condition,
            reply=reply if answered else None,
            started=case.text("started"),
            seconds=seconds,
            failure=lost,
            scores=[score] if answered else [],
            metadata={"suite": case.text("suite"), "file": case.text("file")},
            detail=case.without("classname", "name", "time", "suite", "started", "failure"),
        )

    stated.append(Stated(file=path.name, conditions=(condition,), trials=report.stated))


class _Report:
    """Reads a file test by test; `stated` is how many tests it says that it has."""

    def __init__(self, path: Path, findings: Findings) -> None:
        self.stated: int | None = None
        self._path = path
        self._findings = findings
        self._open: list[str] = []  # the elements around
        self._suites: list[Json] = []
        self._case: JsonObject | None = None
        self._text: list[str] = []
        self._size = 0  # characters in the test
        self._cases: deque[Json] = deque()

    def __iter__(self) -> Iterator[Json]:
        """Each test: its attributes, and under their names the elements in it."""
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._refuse
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        try:
            with opened(self._path) as file:
                while chunk := file.read(_CHUNK):
                    parser.Parse(chunk)
                    while self._cases:
                        yield self._cases.popleft()

                parser.Parse(b"", True)
        except (expat.ExpatError, _RefusedError, LookupError, ValueError) as error:
            yield from self._cases
            self._findings.lose(f"rest of the file: {error}", self._path.name)

    def _refuse(self, *_: object) -> None:
        raise _RefusedError("a document type, which a report does not need")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._open.append(name)
        if len(self._open) > _DEEPEST:
            raise _RefusedError("XML that is nested too deeply")
        self._size += sum(map(len, attributes.values()))
        if name == "testsuite":
            if len(self._suites) == 0 and (tests := attributes.get("tests", "")).isdecimal():
                self.stated = (self.stated or 0) + int(tests[:12])
            self._suites.append(Json(dict(attributes)))
        elif name == "testcase":
            suite = next(reversed(self._suites), Json())
            self._size = 0
            self._case = {
                "suite": suite.text("name"),
                "started": utc(suite.text("timestamp")),
                **attributes,
            }
        elif self._case is not None and name == "property":
            properties = self._case.setdefault("properties", {})
            if isinstance(properties, dict):
                properties[attributes.get("name", "")] = attributes.get("value")
        elif self._case is not None and name in (*_TEXTS, *_RERUNS):
            self._case.setdefault(name, {**attributes, "text": ""})
            self._text = []
        elif self._case is None and name in ("properties", "system-out", "system-err"):
            self._findings.left_out("properties or output of a whole suite", self._path.name)

    def _characters(self, text: str) -> None:
        self._size += len(text)
        if self._size > LONGEST:
            raise _RefusedError("a test of more than 64 MB")
        if self._open and self._open[-1] in _TEXTS:
            self._text.append(text)

    def _end(self, name: str) -> None:
        self._open.pop()
        if name == "testsuite":
            self._suites.pop()
        elif name == "testcase" and self._case is not None:
            self._cases.append(Json(self._case))
            self._case = None
        elif self._case is not None and name in _TEXTS and self._open[-1:] == ["testcase"]:
            found = self._case.get(name)
            if isinstance(found, dict):
                found["text"] = "".join(self._text).strip()
            self._text = []


class _RefusedError(Exception):
    """Something in a file that a report does not have."""
