"""`karat init --from promptfooconfig.yaml`: prompts, providers, tests and assertions of promptfoo.

Source: promptfoo's type `UnifiedConfig` and its pages on configuration (version 0.121).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import ClassVar

import msgspec

from karat import foreign
from karat.errors import BadOption
from karat.formats import excerpt, plural
from karat.records import Json, JsonObject
from karat.setups import Findings, Setup
from karat_imports.setups import _templates as templates
from karat_imports.setups._files import NotRead, ProjectFiles, document
from karat_imports.setups._providers import ECHO, Provider, Providers
from karat_imports.setups._tests import Test, Tests

__all__ = ["Promptfoo"]

_KEYS = ("prompts", "providers", "targets", "tests", "scenarios", "defaultTest")
_TAKEN = (*_KEYS, "description", "evaluateOptions", "assertionTemplates", "$schema")
_SILENT = ("outputPath", "sharing", "writeLatestResults", "tags", "metadata", "commandLineOptions")
_KEY = re.compile(rb"^[\"']?(prompts|providers|targets|tests|scenarios)[\"']?\s*:", re.MULTILINE)
_PROGRAMS = (".py", ".js", ".ts", ".mjs", ".cjs", ".mts", ".sh", ".rb", ".exe")
_TEXTS = (".txt", ".md", ".json", ".yaml", ".yml", ".j2", ".jsonl", ".csv")
_GRADER = "openai:gpt-4.1"
_DIVIDER = re.compile(r"^---\s*$", re.MULTILINE)


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """One prompt, as templates."""

    label: str
    system: str  # "": none
    user: str


class Promptfoo:
    """promptfooconfig.yaml: prompts and providers become conditions, tests become questions,
    assertions become criteria.
    """

    listed_as: ClassVar[str] = "promptfoo"

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        if path.suffix.lower() not in (".yaml", ".yml", ".json"):
            return False
        named = "promptfoo" in path.name.lower() or b"promptfoo.dev/config" in head
        keys = {match[1] for match in _KEY.finditer(head.replace(b"  ", b" "))}
        return (named and bool(keys or b'"prompts"' in head)) or len(keys) > 2

    def read(self, path: Path, folder: Path) -> Setup:
        """The experiment. Raises BadOption if the file cannot be read or holds no tests."""
        files = ProjectFiles(path.absolute().parent)
        findings = Findings()
        try:
            config = document(files.data(path.resolve()), path.name)
        except NotRead as error:
            raise BadOption("--from", str(error)) from error

        if isinstance(config, dict) and "results" in config:
            command = f"karat import promptfoo {quote(str(path))}"
            raise BadOption("--from", f"{path} holds results of promptfoo: `{command}` reads them")
        if not isinstance(config, dict) or not any(key in config for key in _KEYS):
            raise BadOption("--from", f"{path} holds no prompts, providers or tests of promptfoo")
        reader = Tests(config, files, findings)
        tests = reader.read()
        if not tests:
            why = "; ".join(findings.left_out) or "it has no tests"
            raise BadOption("--from", f"no question of {path} can be taken: {why}")

        prompts = _Prompts(files, findings).read(config.get("prompts"))
        readers = Providers(files, findings, folder)
        providers = readers.read(config.get("providers", config.get("targets")))
        if providers and all(provider.files == ECHO for provider in providers):
            findings.leave("provider", "it says the prompt back, so tests check no model", "echo")
        for key in config:
            if key not in _TAKEN and key not in _SILENT:
                findings.leave(f"`{key}`", "has no equivalent")

        rows, conditions = _asked(tests, prompts, findings)
        grader = readers.model(reader.grader)

        given = foreign.Json(config.get("evaluateOptions"))
        execution: JsonObject = {"num_repetitions": 1}
        for key, ours in (("repeat", "num_repetitions"), ("maxConcurrency", "max_concurrent")):
            if value := given.count(key):
                execution[ours] = value

        # The providers that one agent can be: those of the first one's type, and of its target
        if not providers:
            findings.take("no provider has an equivalent, so the agent is `search-baseline`")
            agents = [Provider(name="", agent={"type": "search-baseline"})]
        else:
            first = providers[0].agent
            fixed = ("type", "target", "url")
            agents = []
            for provider in providers:
                if all(provider.agent.get(key) == first.get(key) for key in fixed):
                    agents.append(provider)
                else:
                    why = "another agent; write a second experiment, and `karat compare` the runs"
                    findings.leave("provider", why, provider.name)

        experiment, needed = _experiment(conditions, agents, findings)
        scoring = _scoring(tests, grader, findings)
        dataset: JsonObject = {"path": "questions.jsonl", "id_key": "id"}
        if any("criteria" in row for row in rows):
            dataset["criteria_key"] = "criteria"
        findings.take(plural(len(rows), "question"))
        name = str(config.get("description") or path.absolute().parent.name)
        return Setup(
            experiment={
                "name": excerpt(name, 80).replace("${", "$${") or "promptfoo",
                "dataset": dataset,
                **experiment,
                **scoring,
                "execution": execution,
            },
            rows=rows,
            files=needed,
            taken=findings.taken,
            left_out=findings.left_out,
        )


class _Prompts:
    """Reads the prompts of one configuration."""

    def __init__(self, files: ProjectFiles, findings: Findings) -> None:
        self._files, self._findings = files, findings

    def read(self, value: Json) -> list[Prompt]:
        """Every prompt that is a text; one that is only its variables if there is none."""
        found: list[Prompt] = []
        if isinstance(value, dict):
            value = [{"raw": name, "label": label} for name, label in value.items()]
        for given in value if isinstance(value, list) else [value]:
            label, text = "", given
            if isinstance(given, dict):
                label = str(given.get("label") or given.get("display") or "")
                text = given.get("raw") or given.get("content") or given.get("id")

            if isinstance(text, str):
                found += self._of_text(text, label)

        usable = []
        for prompt in found:
            if templates.has_tags(prompt.system + prompt.user):
                self._findings.leave("prompt", "its template has tags ({% … %})", prompt.label)
            else:
                usable.append(prompt)

        return usable

    def _of_text(self, text: str, label: str) -> list[Prompt]:
        name = text.removeprefix("file://")
        short = "\n" not in text and len(text) < 300 and "{{" not in text
        called_a_file = short and text.partition(":")[0].endswith((*_TEXTS, *_PROGRAMS))
        if not text.startswith("file://") and not called_a_file:
            return [_prompt(text, label)]
        if name.partition(":")[0].endswith(_PROGRAMS):
            self._findings.leave("prompt", f"'{text:.80}' is a program")
            return []

        found: list[Prompt] = []
        try:
            for path in self._files.matching(text):
                if path.suffix in (".jsonl", ".csv"):
                    rows = self._files.rows(path)
                    parts = [str(row.get("prompt", next(iter(row.values()), ""))) for row in rows]
                    title = label
                else:
                    whole = self._files.text(path)
                    parts = [whole]
                    if path.suffix == ".txt":
                        parts = []
                        for part in _DIVIDER.split(whole):
                            if part.strip():
                                parts.append(part.strip())

                    title = label or (path.name if len(parts) == 1 else "")

                found += [_prompt(part, title) for part in parts]
        except NotRead as error:
            self._findings.leave("prompt", str(error))

        return found


def _prompt(text: str, label: str) -> Prompt:
    """The prompt in a text: messages as JSON or YAML, or a text to the agent."""
    label = label or excerpt(text, 40)
    messages = _messages(text)
    if messages is None:
        return Prompt(label=label, system="", user=text.strip())
    system = []
    for role, content in messages:
        if role in ("system", "developer"):
            system.append(content)

    others = []
    for role, content in messages:
        if role not in ("system", "developer"):
            others.append((role, content))

    if len(others) == 1:
        user = others[0][1]
    else:
        user = "\n\n".join(f"{role}: {content}" for role, content in others)

    return Prompt(label=label, system="\n\n".join(system).strip(), user=user.strip())


def _messages(text: str) -> list[tuple[str, str]] | None:
    """Role and content of each message; None: the text is no list of messages."""
    if not text.lstrip().startswith(("[", "-", "{")):
        return None
    quoted = re.sub(r"(?<![\"\w])(\{\{[^{}]*\|\s*dump\s*\}\})", _as_text, text)
    value: Json = None
    for name in ("prompt.json", "prompt.yaml"):
        try:
            value = document(quoted.encode(), name)
            break
        except NotRead:
            continue

    if not isinstance(value, list) or not value:
        return None
    found = []
    for message in value:
        match message:
            case {"role": str(role), "content": str(content)}:
                found.append((role, content))
            case {"role": str(role), "content": list()}:
                parts = foreign.Json(message).list("content")
                texts = [part.text("text") for part in parts]
                found.append((role, "\n".join(filter(None, texts))))
            case _:
                return None

    return found


def _as_text(match: re.Match[str]) -> str:
    """`{{ name | dump }}` in JSON, where it stands for a whole text."""
    return json.dumps(match[1].partition("|")[0].rstrip() + " }}")


def _asked(
    tests: Sequence[Test], prompts: Sequence[Prompt], findings: Findings
) -> tuple[list[JsonObject], dict[str, str | None]]:
    """The rows of the dataset, and each condition's system prompt.

    Every condition of karat asks the same questions. If the prompts differ only in their system
    messages, questions are the messages to the model as they were. Else a question is the values
    of the variables, and what surrounds them is the system prompt.
    """
    if prompts:
        first = prompts[0]
    else:
        first = Prompt(label="prompt", system="", user="")

    variable_systems = any(templates.names(prompt.system) for prompt in prompts)
    same_user = all(prompt.user == first.user for prompt in prompts)
    if prompts and same_user and (not variable_systems or len(prompts) == 1):
        texts = []
        for test in tests:
            text = templates.fill(first.user, test.variables)
            system = templates.fill(first.system, test.variables) if variable_systems else ""
            parts = (system, test.prefix + text + test.suffix)
            texts.append("\n\n".join(part for part in parts if part.strip()))

        if variable_systems:
            findings.take("the system message has variables, so it is part of each question")
        systems: dict[str, str | None] = {}
        for prompt in prompts:
            own = None if variable_systems else prompt.system
            systems[_free(prompt.label, systems)] = own or None
    else:
        used = [name for one in prompts for name in templates.names(one.system + one.user)]
        texts = []
        for test in tests:
            # The variables of a test as a question; the value alone of a single one
            given = test.variables
            known = [name for name in dict.fromkeys(used) if name in given] or [*given]
            told = [templates.shown(given[name]) for name in known]
            text = "\n".join(map(": ".join, zip(known, told, strict=True)))
            if len(told) == 1:
                text = told[0]
            texts.append(test.prefix + text + test.suffix)

        systems = {}
        single = len(set(used)) == 1
        for prompt in prompts:
            systems[_free(prompt.label, systems)] = _system_of(prompt, single=single) or None

        if prompts:
            findings.take(
                "prompts differ in more than their system messages: each is the system prompt of "
                "its condition, and the variables of a test are the question"
            )

    rows = []
    for number, (test, text) in enumerate(zip(tests, texts, strict=True), start=1):
        row: JsonObject = {"id": str(number), "question": text}
        if test.description:
            row["description"] = test.description
        if test.golden:
            row["answer"] = test.golden
        if test.criteria:
            row["criteria"] = []
            for one in test.criteria:
                values: JsonObject = msgspec.to_builtins(one)
                stated: str | JsonObject = {"type": "judge", **values}
                if set(values) == {"text"} and not one.text.startswith("http"):
                    stated = one.text
                row["criteria"].append(stated)

        for name, value in test.metadata.items():
            if name not in row and isinstance(value, (str, int, float, bool)):
                row[name] = value

        rows.append(row)

    return rows, systems or {"as-it-is": None}


def _free(name: str, taken: JsonObject) -> str:
    """The name, with a number if it is taken."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name} ({number})"

    return free


def _system_of(prompt: Prompt, *, single: bool) -> str:
    """A prompt as a system prompt: variables are named; a single one is the user's message."""
    text = "\n\n".join(part for part in (prompt.system, prompt.user) if part)
    if not single:
        return templates.replaced(text, lambda name: f"[{name}]")
    end = re.search(r"(?:\A|[:\n])\s*(\{\{[^{}]*\}\})\s*\Z", text)
    if end is not None:  # the message follows by itself
        text = text[: end.start(1)].rstrip()
    return templates.replaced(text, lambda _: "[the user's message]")


def _experiment(
    systems: dict[str, str | None], providers: Sequence[Provider], findings: Findings
) -> tuple[JsonObject, dict[str, bytes]]:
    """Agent, servers and conditions, and the files that the agent needs."""
    first = providers[0]
    agent = dict(first.agent)
    servers = dict(first.servers)
    conditions: JsonObject = {}
    for provider in providers:
        servers |= provider.servers
        for label, system in systems.items():
            parts = (
                label if len(systems) > 1 else "",
                provider.name if len(providers) > 1 else "",
            )
            title = " ".join(filter(None, parts)) or provider.name or label
            name = re.sub(r"[^\w.-]+", "-", excerpt(title, 60)).strip("-.") or "condition"
            condition: JsonObject = {}
            if system:
                condition["system_prompt"] = system.replace("${", "$${")
            if provider.servers:
                condition["mcp_servers"] = [*provider.servers]
            if provider.workspace:
                condition["workspace"] = provider.workspace
            own = {key: value for key, value in provider.agent.items() if agent.get(key) != value}
            own |= {key: None for key in agent if key not in provider.agent}
            if own:
                condition["agent"] = own
            conditions[_free(name, conditions)] = condition

    findings.take(
        f"{plural(len(systems), 'prompt')} × {plural(len(providers), 'provider')} = "
        f"{plural(len(conditions), 'condition')}"
    )
    experiment: JsonObject = {"agent": agent}
    if servers:
        experiment["mcp_servers"] = servers
    experiment["conditions"] = conditions
    return experiment, {name: data for one in providers for name, data in one.files.items()}


def _scoring(tests: Sequence[Test], grader: str | None, findings: Findings) -> JsonObject:
    """The scorer of the criteria, with a judge if one is needed."""
    criteria = [one for test in tests for one in test.criteria]
    if not criteria:
        findings.take("no assertion is taken, so answers are kept and not scored")
        return {"scorers": []}

    judged = any(one.type.removeprefix("not-") == "judge" for one in criteria)
    findings.take(f"{plural(len(criteria), 'criterion', 'criteria')} of the answers")
    if not judged:
        return {"scorers": ["criteria"]}
    if grader is None:
        findings.take(f"the judge is {_GRADER}, since the configuration names none")
    return {"judge": {"type": "criteria", "model": grader or _GRADER}}
