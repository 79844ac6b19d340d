"""`karat import junit`: reports of tests in JUnit's XML.

Source of the format: what pytest's `--junit-xml` writes (families xunit1 and xunit2), and the
schemas of Ant and Jenkins; reruns as Maven's Surefire writes them. A document type, and with it
every entity, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import cast
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

from karat.foreign import Json
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
    totals: list[int] = []
    for case in _cases(path, findings, totals):
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

    if totals:
        trials = sum(totals)
    else:
        trials = None

    stated.append(Stated(file=path.name, conditions=(condition,), trials=trials))


def _cases(path: Path, findings: Findings, totals: list[int]) -> Iterator[Json]:
    """Each test of a file: its attributes, and under their names the elements in it. `totals`: gets
    the number of tests that each outermost suite says that it has.

    A document type cannot come before the root that a recognized file begins with.
    """
    parser: XMLPullParser[Element] = XMLPullParser(("start", "end"))
    around: list[Element] = []
    size = 0  # bytes since the last test
    try:
        with opened(path) as file:
            while chunk := file.read(_CHUNK):
                parser.feed(chunk)
                size += len(chunk)
                events = cast("Iterator[tuple[str, Element]]", parser.read_events())
                for event, element in events:
                    if event == "start":
                        _enter(element, around, findings, totals, path.name)
                        continue

                    around.pop()
                    if element.tag == "testcase" and around:
                        size = 0
                        yield _case(element, Json({**around[-1].attrib}))
                    if around and not any(parent.tag == "testcase" for parent in around):
                        del around[-1][:]  # all that ended in it was read

                if size > LONGEST:
                    raise _RefusedError("a test of more than 64 MB")

        parser.close()
    except (ParseError, _RefusedError, LookupError, ValueError) as error:
        findings.lose(f"rest of the file: {error}", path.name)


def _enter(
    element: Element,
    around: list[Element],
    findings: Findings,
    totals: list[int],
    name: str,
) -> None:
    """Notes where an element begins, and what it says of the whole."""
    outer = [parent.tag for parent in around]
    element.tag = element.tag.rpartition("}")[2]  # without its namespace
    around.append(element)
    if len(around) > _DEEPEST:
        raise _RefusedError("XML that is nested too deeply")
    tests = element.get("tests", "")
    if element.tag == "testsuite" and "testsuite" not in outer and tests.isdecimal():
        totals.append(int(tests[:12]))
    of_suite = element.tag in ("properties", "system-out", "system-err")
    if of_suite and "testcase" not in outer:
        findings.left_out("properties or output of a whole suite", name)


def _case(element: Element, suite: Json) -> Json:
    """A test, from its element and the attributes of its suite."""
    case: JsonObject = {
        "suite": suite.text("name"),
        "started": utc(suite.text("timestamp")),
        **element.attrib,
    }
    for part in element:
        if part.tag in (*_TEXTS, *_RERUNS):
            text = (part.text or "").strip()
            case.setdefault(part.tag, {**part.attrib, "text": text})

    properties = {}
    for part in element.iter("property"):
        properties[part.get("name", "")] = part.get("value")

    if properties:
        case["properties"] = properties
    return Json(case)


class _RefusedError(Exception):
    """Something in a file that a report does not have."""
