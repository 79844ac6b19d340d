"""Runs a small program in a separate process that answers line by line, with a time limit per
answer.

Once started on a hostile text, neither a regular expression nor a JSON schema can be stopped in
this process: both run in C without checking signals or letting other threads work. The child sets
an alarm before each question, whose default action ends it whatever it is doing; it needs no
supervision, and ends when its standard input closes.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from karat.errors import BadOption, JudgeFault
from karat.files import open_regular
from karat.records import JsonObject

# The child ignores SIGINT: Ctrl-C on a terminal reaches it too, while trials in flight are still
# being scored.
_FRAME = """
import json, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGALRM, signal.SIG_DFL)
setting = json.loads(sys.stdin.readline())
{program}
for line in sys.stdin:
    signal.setitimer(signal.ITIMER_REAL, setting["seconds"])
    answer = ask(json.loads(line))
    signal.setitimer(signal.ITIMER_REAL, 0)
    sys.stdout.write(json.dumps(answer) + "\\n")
    sys.stdout.flush()
"""
_ENVIRONMENT = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONPATH")


class Child:
    """Runs `program`, which defines `ask(question)`, with `setting` in scope; started when first
    asked.

    Thread-safe. A child that was ended by its alarm is replaced at the next question.
    """

    def __init__(self, program: str, setting: Mapping[str, object], *, seconds: float) -> None:
        self._code = _FRAME.replace("{program}", program)
        self._setting = {**setting, "seconds": seconds}
        self._seconds = seconds
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._end: Callable[[], object] = lambda: None  # there is no child to end

    def ask(self, question: object) -> Any:
        """The program's answer.

        Raises JudgeFault: `scorer_timeout` if its alarm ended it, or `scorer_crash`.
        """
        with self._lock:
            process = self._process
            if process is None:
                given = [name for name in _ENVIRONMENT if name in os.environ]
                process = self._process = subprocess.Popen(
                    [sys.executable, "-P", "-c", self._code],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env={name: os.environ[name] for name in given},
                )
                self._end = weakref.finalize(self, _finish, process)
                self._say(process, self._setting)

            try:
                self._say(process, question)
                if process.stdout is not None:
                    line = process.stdout.readline()
                else:
                    line = b""
            except BrokenPipeError:
                line = b""

            if line:
                return json.loads(line)
            code = process.wait()
            self._end()
            self._process = None

        if code == -signal.SIGALRM:
            why = (
                f"no result within {self._seconds:g} seconds: the answer is too much for this "
                f"pattern or schema"
            )
            raise JudgeFault("scorer_timeout", why)

        raise JudgeFault("scorer_crash", f"the process that scores ended with code {code}")

    def close(self) -> None:
        """Ends the child; asking again starts another."""
        with self._lock:
            self._end()
            self._process = None

    @staticmethod
    def _say(process: subprocess.Popen[bytes], message: object) -> None:
        if process.stdin is not None:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()


def _finish(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    process.wait()


_SCHEMA_BYTES = 1_000_000
_PROGRAM = """
import json
import jsonschema, referencing
validators = {}
def validator_of(schema):
    key = json.dumps(schema, sort_keys=True)
    if key not in validators:
        kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        kind.check_schema(schema)
        if len(validators) > 1000:
            validators.clear()
        # An empty registry: a reference to anything outside the schema fails; nothing is fetched.
        validators[key] = kind(schema, registry=referencing.Registry())
    return validators[key]
def ask(question):
    schema, text = question
    try:
        validator = validator_of(setting["schemas"][schema] if type(schema) is int else schema)
    except (jsonschema.SchemaError, TypeError, AttributeError) as fault:
        return [None, "not a valid schema: %s" % getattr(fault, "message", fault)]
    try:
        error = jsonschema.exceptions.best_match(validator.iter_errors(json.loads(text)))
    except ValueError as fault:
        return [False, "is not JSON: %s" % fault]
    except RecursionError:
        return [False, "is nested too deeply"]
    except referencing.exceptions.Unresolvable as fault:
        return [None, "the schema refers to %s, which is not in it" % fault.ref]
    if error is None:
        return [True, ""]
    place = ""
    for part in error.absolute_path:
        place += "[%r]" % part if isinstance(part, int) else ".%s" % part
    return [False, "%s: %s" % (place.lstrip(".") or "the whole", error.message[:300])]
"""


class Schemas:
    """Validates texts against the schemas given to it, or against one passed with the text."""

    def __init__(self, schemas: Sequence[object], *, seconds: float) -> None:
        self._child = Child(_PROGRAM, {"schemas": list(schemas)}, seconds=seconds)

    def check(self, schema: int | JsonObject, text: str) -> tuple[bool | None, str]:
        """Whether the text is JSON that the schema allows, and the first fault; None: not known.

        `schema`: an index into those given, or a schema. Raises JudgeFault when it takes too long.
        """
        valid, reason = self._child.ask([schema, text])
        return valid, reason

    def close(self) -> None:
        """Ends the validating process."""
        self._child.close()


def short_json(value: object) -> str:
    """A value as JSON of at most 120 characters, for a reason."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= 120:
        return text
    return f"{text[:119]}…"


def read_schema(given: dict[str, object] | bool | str, folder: Path) -> dict[str, object] | bool:
    """The schema itself, or the one in the file.

    Raises BadOption for a file that cannot be read or is not a schema.
    """
    jsonschema: Any = importlib.import_module("jsonschema")  # has no types; 60 ms, so only here
    schema: Any = given
    if isinstance(given, str):
        path = folder / given
        try:
            with open_regular(path) as file:
                raw = file.read(_SCHEMA_BYTES + 1)
        except OSError as error:
            raise BadOption("schema", f"{given} cannot be read: {error.strerror}") from error

        if len(raw) > _SCHEMA_BYTES:
            raise BadOption("schema", f"{given} is larger than {_SCHEMA_BYTES} bytes")
        try:
            schema = json.loads(raw)
        except ValueError as error:
            raise BadOption("schema", f"{given} is not JSON: {error}") from error

    if not isinstance(schema, (dict, bool)):
        raise BadOption("schema", f"must be an object or a bool, is a {type(schema).__name__}")
    try:
        jsonschema.validators.validator_for(
            schema, default=jsonschema.Draft202012Validator
        ).check_schema(schema)
    except jsonschema.SchemaError as error:
        place = "/".join(str(part) for part in error.absolute_path)
        raise BadOption(f"schema{'/' if place else ''}{place}", error.message) from error

    return schema
