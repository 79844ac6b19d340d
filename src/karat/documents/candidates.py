"""The columns of a file that may have a role, by their names and by what their cells hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import PurePath
from typing import Literal

from karat.documents.cells import holds_texts
from karat.documents.columns import Columns, are_texts, outermost
from karat.documents.emptiness import unanswerable_values
from karat.documents.names import (
    ADDED,
    Meaning,
    Role,
    joined,
    last_part,
    meanings,
    names_persons,
    repeats,
    roles_of,
    sure_roles,
    with_role,
    word_set,
    words_of,
)
from karat.documents.sentences import (
    NO_WORDS,
    describes,
    holds_code,
    is_aside,
    tells_how_to_judge,
)

Door = Literal["dataset", "results"]
Roles = Mapping[Role, tuple[str, ...]]
Taken = dict[Role, tuple[str, ...]]

SHOWN = 6  # readings to choose from
_HALF, _TENTH = 0.5, 0.1  # share of rows in which a column must hold something
_LABEL = re.compile(r"\S{1,24}")
FOUND_IN = ("sheet", "list")
"""Columns that say in which part of a file a row was found."""
_RARE = frozenset({"error", "stop_reason"})
_RIGHT = word_set(
    "expected true correct gold golden reference ref target groundtruth real actual label"
)
_READ = word_set("parsed extracted")
_AGREED = (("final",), ("adjudicated",), ("consensus",), ("agreed",), ("majority",))
"""First words of names of what annotators agreed on: `final_label`."""
_SAYS_WHETHER = word_set("correct right iscorrect answercorrect")
_NUMBERED = word_set("reference ref")
"""Names of golden answers, and of numbers by which a question is referred to."""
_DONE = _READ | word_set(
    """actual predicted pred prediction forecast got observed generated model output agent system
    llm response"""
)
_ALONE = word_set("actual real predicted prediction forecast")
"""Those that say so alone, where the other of the two does, too: `actual` and `predicted`."""
_SAID_FIRST = word_set("model output agent system llm response label")
"""Those of these words that say so at the beginning of a name alone: `model_output`."""
_NO_ANSWERS = word_set("tool tools url urls source sources id ids score scores count context")
_OF_A_RUN = word_set(
    """result results prediction predictions pred preds response responses output outputs
    generation generations generated log logs history chat chats run
    runs scores scored evaluated report trace traces transcript transcripts"""
)
_OF_A_RUN |= ADDED.files_of_runs
_OF_RUNS: tuple[Role, ...] = (
    "score",
    "latency",
    "cost",
    "tokens",
    "error",
    "model",
    "stop_reason",
    *ADDED.identifying,
)
_CLOCK = re.compile(r"\d?\d:\d\d(:\d\d(\.\d+)?)?( ?[AaPp][Mm])?")
"""Times of a day, which are no durations."""
_GIVEN = frozenset({"input", "inputs", "vars", "variables", "question", "attributesinput"})
_ARGUMENTS = word_set("args arguments argument kwargs params parameters")
"""Names of what a tool is given, in which there is no answer."""
AGENTS_IN_RESULTS = word_set(
    """response responses output outputs completion completions reply result answer answers
    finalanswer answertext fullanswer ai bot chatbot assistant"""
)
TEXTS_OF_ANSWERS = AGENTS_IN_RESULTS | word_set("text content message value")


def each(role: Role, paths: Iterable[str]) -> list[Taken]:
    """Each column alone in a role, to choose from."""
    found: list[Taken] = []
    for path in paths:
        found.append({role: (path,)})

    return found


class Candidates:
    """The columns of one file, and what their names may mean.

    `free`: those that hold enough and that the user has not named. `unsure`: no name speaks of a
    role, so that nothing is certain.
    """

    def __init__(
        self,
        columns: Columns,
        door: Door,
        file: str,
        named: Taken,
        needs_golden: bool,
    ) -> None:
        self.columns = columns
        self.door = door
        self.named = named
        self.needs_golden = needs_golden
        self.unsure = False  # whether no name speaks of a role, so that nothing is certain
        self.pairs: list[tuple[str, str]] = []  # what is right and what was done, of several
        self.of_a_run = bool({*words_of(PurePath(file).stem)} & _OF_A_RUN)
        # a question may be its own id
        taken = {path for role, paths in named.items() if role != "id" for path in paths}
        self.free = {}
        for path, column in columns.items():
            if path in taken or is_aside(path):
                continue
            if column.filled and column.filled >= self.needed_rows(path):
                self.free[path] = column

        self.meanings = {}
        mails = any(joined(path) in ("body", "message") for path in self.free)
        right = "golden" in named or bool(with_role(self.free, "golden"))
        for path, column in self.free.items():
            self.meanings[path] = meanings(path)
            if door == "dataset" and unanswerable_values(path) and column.is_yes_or_no:
                self.meanings[path] = ()  # where it is right to decline, which is asked
            notes = not self.meanings[path] or Meaning("metadata") in self.meanings[path]
            may_judge = door == "dataset" and notes and not right
            if may_judge and describes(path) and tells_how_to_judge(column):
                self.meanings[path] = (Meaning("criterion"),)
            if mails and joined(path) == "subject":  # and no person
                self.meanings[path] = ()
            if joined(path) == "time" and all(map(_CLOCK.fullmatch, column.values)):
                self.meanings[path] = (Meaning("started"),)
            if joined(path) in _NUMBERED and column.numbers_rows:
                self.meanings[path] = (Meaning("id"),)
            if door == "results" and self._judges(path):
                self.meanings[path] = ()

        self.ask_targets()
        if door == "results" and self._compares_prompts():
            for path in self.free:
                if "prompt" in words_of(last_part(path)):
                    self.meanings[path] = (Meaning("condition"),)

        if door == "results" and not self.strong("golden"):
            self._expect_and_compare()
        named_paths = [path for paths in named.values() for path in paths]
        if not any(joined(path) == "question" for path in [*columns, *named_paths]):
            # `query` is the question, unless there is one besides it
            for path in self.free:
                if joined(path) == "query":
                    self.meanings[path] = (Meaning("question"),)

    def needed_rows(self, path: str) -> float:
        """In how many rows a column must hold something to have a role."""
        column = self.columns[path]
        parent = self.columns.get(path.rpartition(".")[0])
        among = column.rows if parent is None else parent.objects
        if self.door == "results":  # what failed has no answer, what went well no error
            return 0 if roles_of(path) & _RARE else _TENTH * among
        if Meaning("criterion") in meanings(path):
            return 0  # each question may have another rule
        for above in path.split(".")[:-1]:
            if roles_of(above) & {"question", "golden"} or joined(above) in _GIVEN:
                return 0

        if Meaning("golden") in meanings(path):
            among = column.rows  # what few rows have may be a note on them
        return _HALF * among

    def _judges(self, path: str) -> bool:
        """Whether a column is a judge's words beside its score, or says in a few words which
        answers are right, and not what is: no other column has one of its values.
        """
        above = path.rpartition(".")[0]
        if above and f"{above}.score" in {*self.columns} - {path}:
            return True
        if joined(path) not in _SAYS_WHETHER or not self.columns[path].is_few_verdicts:
            return False
        own = {value.casefold() for value in self.columns[path].values}
        for other, column in self.columns.items():
            if other != path and own & {value.casefold() for value in column.values}:
                return False

        return True

    def _take_twins(self) -> None:
        """Makes `a` golden beside `q`, where a reference is to where it is found."""
        named_so = {}
        for path in self.free:
            named_so[joined(path)] = path

        lacks = "q" not in named_so or "a" not in named_so
        if lacks or "b" in named_so or self.door == "results":
            return
        for name in _NUMBERED & {*named_so}:
            self.meanings[named_so[name]] = ()
        self.meanings[named_so["a"]] = (Meaning("golden"),)

    def ask_targets(self) -> None:
        """Makes `target` the question where another column says what is expected, and none asks;
        and golden what annotators agreed on, whose own labels are no answers.
        """
        if len(self.columns) > 2:
            self._take_twins()
        agreed = []
        for path in self.free:
            if words_of(path)[:1] in _AGREED and not self.strong("golden"):
                agreed.append(path)

        persons = [*filter(names_persons, self.free)] if agreed else []
        if self.door == "dataset" and len(persons) > 1:
            self.meanings.update(dict.fromkeys(persons, ()))
            self.meanings.update(dict.fromkeys(agreed, (Meaning("golden"),)))

        asked = self.called("question", weak=False) or self.called("question", weak=True)
        expects = False
        for path in self.free:
            expects = expects or words_of(path)[:1] == ("expected",)

        if self.door == "results" or not expects or asked or "question" in self.named:
            return
        for path in self.free:
            if joined(path) == "target":
                self.meanings[path] = (Meaning("question"),)

    def _compares_prompts(self) -> bool:
        """Whether rows give scores to trials of prompts that are named by short labels: then these
        are conditions, and questions are elsewhere.
        """
        said = {"answer", "golden"} & {role.role for path in self.free for role in meanings(path)}
        if said or "answer" in self.named or not any(map(repeats, self.columns)):
            return False
        for path, column in self.free.items():
            labels = column.texts == column.filled and all(map(_LABEL.fullmatch, column.values))
            if joined(path) == "prompt" and labels and column.repeats:
                return True

        return False

    @property
    def holds_preferences(self) -> bool:
        """Whether rows are pairs of a chosen and a rejected text, which models are trained with."""
        return {"chosen", "rejected"} <= {*map(joined, self.free)}

    def strong(self, role: Role) -> list[str]:
        return self.called(role, weak=False)

    def sparse(self, role: Role) -> list[str]:
        """The columns that surely have the role by name, and are empty in most rows."""
        found = []
        for path in with_role(self.columns, role):
            column = self.columns[path]
            empty = 0 < column.filled < _HALF * column.rows
            if "." not in path and path not in self.free and empty:
                found.append(path)

        return found[:1]

    def called(self, role: Role, *, weak: bool) -> list[str]:
        """The free columns that have this role by name, without those inside others if a column
        of the file itself has it.
        """
        found = []
        for path in self.free:
            for meaning in self.meanings[path]:
                if meaning.role == role and meaning.weak == weak:
                    found.append(path)
                    break

        return outermost(found)

    def _expect_and_compare(self) -> None:
        """Gives a role to two columns that are called alike but for a word of what is right and one
        of what the agent did, such as `expected_decision` and `actual_decision`.
        """
        right: dict[tuple[str, ...], str] = {}
        done: dict[tuple[str, ...], str] = {}
        both_ways: dict[tuple[str, ...], str] = {}  # `actual`: the agent's beside `expected`
        for path in self.free:
            words = words_of(path)
            if not words or (len(words) < 2 and words[0] not in _ALONE):
                continue
            if not _NO_ANSWERS.isdisjoint(words) or not self.holds_answer(path):
                continue
            ends = [(words[0], words[1:])]
            if words[-1] not in _SAID_FIRST:
                ends.append((words[-1], words[:-1]))
            for word, rest in ends:
                if word in _RIGHT & _DONE:
                    both_ways.setdefault(rest, path)
                elif word in _RIGHT:
                    right.setdefault(rest, path)
                elif word in _DONE:
                    done.setdefault(rest, path)

        for rest, path in both_ways.items():
            if rest in right:
                done[rest] = path
            elif rest in done:
                right[rest] = path

        for words, path in right.items():  # `target_summary`, and `generated_summary_a` and `_b`
            if sum(other[: len(words)] == words != other for other in done) > 1:
                self.meanings[path] = (Meaning("golden"),)

        outer = {*outermost(right[rest] for rest in right if rest in done)}
        both = [rest for rest in right if right[rest] in outer]
        self.pairs = [(right[rest], done[rest]) for rest in both]
        others = {*filter(self.holds_answer, self.strong("answer"))}
        others -= {*chain.from_iterable(self.pairs)}

        # what was read from an answer in words is the answer to compare
        read = [rest for rest in both if words_of(done[rest])[0] in _READ]
        if len(self.pairs) > 1:
            return
        for expected, actual in self.pairs:
            if not others or read:
                self.meanings[expected] = (Meaning("golden"),)
                self.meanings[actual] = (Meaning("answer"),)

            if read:
                self.meanings.update(dict.fromkeys(others, ()))

        self.pairs = []

    def is_of_a_run(self, shapes: Roles) -> bool:
        """Whether columns say that the file is of a run: scores, a model, latencies, costs."""
        judged = any(column.is_verdict for column in self.columns.values())
        return judged or any(role in shapes for role in _OF_RUNS)

    def holds_answer(self, path: str) -> bool:
        """Whether cells are something that can be read as an answer: no object, no messages."""
        column = self.free[path]
        if holds_texts(column.example):
            return True
        return 2 * column.objects < column.filled and 2 * column.messages < column.filled

    def inside(self, role: Role) -> list[str]:
        """The columns inside an object whose own name has this role."""
        found = []
        for path in self.free:
            parents = path.split(".")[:-1]
            if not self.holds_answer(path):
                continue
            roles = roles_of(*parents)
            if role == "answer" and is_in_answer(path) and joined(path) in TEXTS_OF_ANSWERS:
                found.append(path)
                continue

            if any(joined(parent) in _ARGUMENTS for parent in parents):
                continue
            given = any(joined(parent) in _GIVEN for parent in parents)
            if role in roles or (role == "question" and given):
                found.append(path)

        return found

    def without_copies(self, paths: Sequence[str]) -> list[str]:
        """The columns without those that say the same as an earlier one."""
        kept: list[str] = []
        for path in paths:
            values = self.free[path].values
            if not values or all(self.free[other].values != values for other in kept):
                kept.append(path)

        return kept

    def texts(self) -> list[str]:
        """Columns with words, the longest texts first: what a question can be chosen from."""
        roles = ("id", "started", "model", "cluster", "metadata", "turn", *ADDED.identifying)
        if self.door == "results":
            roles = (*roles, "condition")
        found = []
        for path, column in self.free.items():
            kinds = set()
            for meaning in self.meanings[path]:
                if not meaning.weak:
                    kinds.add(meaning.role)

            if path == "description" and not column.is_constant:
                kinds -= {"metadata"}
            above = path.rpartition(".")[0]
            unknown = above and not meanings(path) and not meanings(above)
            deep = unknown or path.count(".") > 1
            lists = 2 * column.lists > column.filled and not column.messages
            example = column.example
            texts = isinstance(example, list) and are_texts(example)
            said = column.is_text or (lists and texts)
            if isinstance(example, str) and NO_WORDS.fullmatch(example.strip()):
                continue
            if holds_code(column) or path in FOUND_IN:
                continue
            if self.door == "results" and names_persons(path):
                continue

            long = lists or column.mean_length > 3
            of_other_kind = kinds & {*roles}
            if said and long and not of_other_kind and not deep:
                found.append(path)

        return sorted(found, key=lambda path: -self.free[path].mean_length)[:12]


def is_in_answer(path: str) -> bool:
    """Whether a column is inside an object that is the agent's answer in files of results."""
    for parent in path.split(".")[:-1]:
        if "answer" in sure_roles(parent) or joined(parent) in AGENTS_IN_RESULTS:
            return True

    return False
