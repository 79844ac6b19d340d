"""promptfoo's tests: in the configuration, in files, and as scenarios.

Source: promptfoo's types `TestCase`, `Scenario` and `UnifiedConfig`, and its pages on test cases
and on files of tests (version 0.121).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import msgspec

from karat.kinds.golden.criteria import of_assertion, of_expected
from karat.records import Criterion, Json, JsonObject
from karat.setups import Findings
from karat_imports.setups import _templates as templates
from karat_imports.setups._files import NotRead, ProjectFiles, is_table
from karat_imports.setups._javascript import as_assertion

_MOST_TESTS = 20_000
_PROGRAMS = (".py", ".js", ".ts", ".mjs", ".cjs", ".mts", ".rb")
_EXPECTED = re.compile(r"__expected\d*\Z")
_GOLDEN = ("equals", "factuality", "model-graded-factuality", "similar")
_OF_TEST = {
    "provider": "the provider of a test; every condition asks every question",
    "providers": "the providers of a test; every condition asks every question",
    "prompts": "the prompts of a test; every condition asks every question",
    "threshold": "the threshold of a test; gate on the score instead",
    "assertScoringFunction": "a program",
}
_JUDGED = ("llm-rubric", "model-graded-closedqa", "factuality", "g-eval", "similar")


class Test(msgspec.Struct, frozen=True, kw_only=True):
    """One test: its variables, and what must hold of the answer."""

    place: str  # "test 3"
    variables: JsonObject
    description: str = ""
    golden: str | None = None
    criteria: tuple[Criterion, ...] = ()
    metadata: JsonObject = {}
    prefix: str = ""  # before and after the prompt
    suffix: str = ""


class Tests:
    """Reads the tests of one configuration. What is not taken goes to the findings."""

    def __init__(self, config: JsonObject, files: ProjectFiles, findings: Findings) -> None:
        self._config, self._files, self._findings = config, files, findings
        self.grader: str | None = None  # the first provider that an assertion is judged by

        default = self._config.get("defaultTest")
        if isinstance(default, str):
            try:
                default = self._files.document(self._files.path(default))
            except NotRead as error:
                self._findings.leave("default test", str(error))

        if not isinstance(default, dict):
            self._default = {}
        else:
            self._leave_of_test(default, "defaultTest")
            self._default = default

    def read(self) -> list[Test]:
        """Every test, those of scenarios included; one without variables if there are none."""
        # Each test of a scenario with each of its configurations
        listed = [*self._listed(self._config.get("tests"))]
        for scenario in self._config.get("scenarios") or ():
            if not isinstance(scenario, dict):
                self._findings.leave("scenario", "it is in another file")
                continue

            configs = scenario.get("config")
            for config in configs if isinstance(configs, list) else [{}]:
                for test in self._listed(scenario.get("tests")):
                    listed.append(
                        {
                            **config,
                            **test,
                            "vars": {**_mapping(config.get("vars")), **_mapping(test.get("vars"))},
                            "assert": [*_list(config.get("assert")), *_list(test.get("assert"))],
                        }
                    )

        if not listed and self._config.get("tests") is None:
            listed = [{}]
        found: list[Test] = []
        for number, test in enumerate(listed, start=1):
            for made in self._tests(test, f"test {number}"):
                if len(found) == _MOST_TESTS:
                    self._findings.leave("test", f"only the first {_MOST_TESTS} are taken")
                    return found

                found.append(made)

        return found

    def _listed(self, tests: Json) -> Iterator[JsonObject]:
        """The tests in a value: objects, and names of files with more."""
        for test in tests if isinstance(tests, list) else [tests]:
            if isinstance(test, str):
                yield from self._of_files(test)
            elif (
                isinstance(test, dict) and isinstance(test.get("path"), str) and "vars" not in test
            ):
                yield from self._of_files(test["path"])
            elif isinstance(test, dict):
                yield test

    def _of_files(self, name: str) -> Iterator[JsonObject]:
        plain = name.removeprefix("file://")
        if plain.startswith(("http://", "https://", "huggingface://", "az://")):
            return self._findings.leave("file of tests", f"'{name:.80}' is on the network")
        if plain.partition(":")[0].endswith(_PROGRAMS):
            return self._findings.leave("file of tests", f"'{name:.80}' is a program")
        try:
            paths = self._files.matching(name)
        except NotRead as error:
            return self._findings.leave("file of tests", str(error))

        for path in paths:
            try:
                if is_table(path):
                    rows = self._files.rows(path)
                    for row in rows:
                        yield row if "vars" in row else _of_row(row)
                else:
                    yield from self._listed(self._files.document(path))
            except NotRead as error:
                self._findings.leave("file of tests", str(error))

        return None

    def _tests(self, test: JsonObject, place: str) -> Iterator[Test]:
        """The tests that one entry means: one for each combination of listed values."""
        self._leave_of_test(test, place)
        given = test.get("vars")  # an object, or names of files
        variables = {**_mapping(self._default.get("vars")), **_mapping(given)}
        for name in given if isinstance(given, list) else [given]:
            if isinstance(name, str):
                try:
                    for path in self._files.matching(name):
                        variables |= _mapping(self._files.document(path))
                except NotRead as error:
                    self._findings.leave("file of variables", str(error), place)

        choices: list[list[tuple[str, Json]]] = []
        for name, value in variables.items():
            choices.append([])
            for one in value if isinstance(value, list) else [value]:
                try:
                    content = self._content(one)
                except NotRead as error:
                    self._findings.leave("variable", str(error), place)
                    content = one

                choices[-1].append((name, content))

        # defaultTest's assertions come first, as in promptfoo
        asserts = [*_list(test.get("assert")), *_list(test.get("__criteria"))]
        if _mapping(test.get("options")).get("disableDefaultAsserts") is not True:
            asserts = [*_list(self._default.get("assert")), *asserts]
        for combination in itertools.product(*choices):
            filled = dict(combination)
            criteria, golden = self._criteria(asserts, filled, place)
            metadata = _mapping(self._default.get("metadata")) | _mapping(test.get("metadata"))
            yield Test(
                place=place,
                variables=filled,
                description=templates.fill(str(test.get("description") or ""), filled),
                golden=golden,
                criteria=tuple(criteria),
                metadata=metadata,
                prefix=self._option("prefix", test),
                suffix=self._option("suffix", test),
            )

    def _option(self, name: str, test: JsonObject) -> str:
        options = {**_mapping(self._default.get("options")), **_mapping(test.get("options"))}
        return str(options.get(name) or "")

    def _content(self, value: Json) -> Json:
        """A value; what is in the file, if it names one. Raises NotRead."""
        if not isinstance(value, str) or not value.startswith("file://"):
            return value
        if value.rpartition(":")[0].endswith(_PROGRAMS) or value.endswith(_PROGRAMS):
            raise NotRead(f"'{value:.80}' is a program")
        path = self._files.path(value)
        if path.suffix.lower() in (".yaml", ".yml", ".json"):
            return self._files.document(path)
        return self._files.text(path).strip()

    def _criteria(
        self, asserts: list[Json], variables: JsonObject, place: str
    ) -> tuple[list[Criterion], str | None]:
        """The criteria of assertions, and the golden answer that one of them names."""
        found: list[Criterion] = []
        golden: str | None = None
        for assertion in asserts:
            if isinstance(assertion, str):  # a cell `__expected`
                criteria, why = of_expected(templates.fill(assertion, variables))
                kind = assertion.partition(":")[0]
            elif isinstance(assertion, dict):
                stated = self._referred(assertion)
                kind = str(stated.get("type") or "")
                criteria, why, text = [], "", ""
                if kind:
                    criteria, why, text = self._of_object(stated, variables)
                if golden is None and kind in _GOLDEN and text:
                    golden = text
            else:
                continue

            found += criteria
            if why is not None:
                if not why:
                    why = "it has no type"
                elif " " not in why:  # the type alone
                    why = f"`{why}` has no equivalent"

                self._findings.leave("assertion", why, place)
            elif kind == "similar":
                self._findings.take("`similar` is judged by a model: karat has no embeddings")

        return found, golden

    def _of_object(
        self, stated: JsonObject, variables: JsonObject
    ) -> tuple[list[Criterion], str | None, str]:
        """The criteria of an assertion or why not, and its value as text."""
        kind = str(stated.get("type") or "")
        if stated.get("transform") is not None:
            return [], f"{kind} with a `transform`, which is a program", ""
        try:
            given = {**stated, "value": self._filled(stated.get("value"), variables)}
        except NotRead as error:
            return [], f"{kind}: {error}", ""

        if kind == "javascript" and isinstance(stated.get("value"), str):
            same = as_assertion(stated["value"])
            if same is None:
                return [], "javascript", ""
            self._findings.take("`javascript` that only compares is taken as a rule")
            given |= same

        members = stated.get("assert")
        if isinstance(members, list):
            referred = []
            for one in members:
                if isinstance(one, dict):
                    referred.append(self._referred(one))

            given["assert"] = [
                {**one, "value": self._filled(one.get("value"), variables)} for one in referred
            ]

        if kind.removeprefix("not-") in _JUDGED and self.grader is None:
            self.grader = _provider_name(stated.get("provider"))
        value = given["value"]
        criteria, why = of_assertion(given)
        return criteria, why, value if isinstance(value, str) else ""

    def _filled(self, value: Json, variables: JsonObject) -> Json:
        if isinstance(value, list):
            return [self._filled(one, variables) for one in value]
        value = self._content(value)
        if not isinstance(value, str):
            return value
        if templates.has_tags(value):
            raise NotRead("its template has tags ({% … %})")
        return templates.fill(value, variables)

    def _referred(self, assertion: JsonObject) -> JsonObject:
        """The assertion, or the template that it refers to."""
        name = str(assertion.get("$ref") or "")
        if not name.startswith("#/assertionTemplates/"):
            return assertion
        known = _mapping(self._config.get("assertionTemplates"))
        own = {key: value for key, value in assertion.items() if key != "$ref"}
        return {**_mapping(known.get(name.rpartition("/")[2])), **own}

    def _leave_of_test(self, test: JsonObject, place: str) -> None:
        for key, why in _OF_TEST.items():
            if test.get(key) is not None:
                self._findings.leave(f"`{key}`", why, place)

        options = _mapping(test.get("options"))
        for key in ("transform", "postprocess", "transformVars"):
            if options.get(key) is not None:
                self._findings.leave(f"`options.{key}`", "a program", place)

        if self.grader is None:
            self.grader = _provider_name(options.get("provider"))


def _of_row(row: JsonObject) -> JsonObject:
    """The test in a row of a table: columns are variables, `__expected` are assertions."""
    variables: JsonObject = {}
    test: JsonObject = {"vars": variables, "__criteria": []}
    for column, cell in row.items():
        name = column.strip()
        if _EXPECTED.match(name):
            if isinstance(cell, str) and cell.strip():
                test["__criteria"].append(cell)
        elif name.startswith("__metadata:"):
            test.setdefault("metadata", {})[name.partition(":")[2].removesuffix("[]")] = cell
        elif name in ("__prefix", "__suffix"):
            test.setdefault("options", {})[name.strip("_")] = cell
        elif name in ("__description", "__threshold"):
            if cell not in (None, ""):
                test[name.strip("_")] = cell
        elif not name.startswith("__"):
            variables[name] = cell

    return test


def _provider_name(value: Json) -> str | None:
    if isinstance(value, dict):
        value = value.get("id") or _provider_name(value.get("text"))
    if isinstance(value, str):
        return value
    return None


def _mapping(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
