"""Which column is the question, the golden answer, the agent's answer, the choices, …

`assign` reads names by the grammar in `names` and decides weak ones by their company: the twin
column, the other role under an exact name, the door the file came through, and evidence of a run
(scores, a model, latencies). What stays open is returned as complete readings to choose from,
never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import product
from pathlib import PurePath
from typing import Literal, get_args

import msgspec

from karat.documents.cells import holds_texts
from karat.documents.columns import NO_NAME, Column, outermost, without_number, without_point
from karat.documents.names import (
    ADDED,
    Known,
    Meaning,
    Role,
    criterion_type,
    is_choice_stem,
    is_gold,
    is_score_name,
    last_part,
    meanings,
    names_persons,
    repeats,
    side_of,
    with_role,
    word_set,
    words_of,
)
from karat.documents.results import (
    joining_id,
    names_system,
    same_classes,
    score_columns,
    systems_in,
)
from karat.documents.sentences import FEW_ROWS, NO_WORDS, is_aside, sentences, unexplained

Door = Literal["dataset", "results"]
Roles = Mapping[Role, tuple[str, ...]]
Taken = dict[Role, tuple[str, ...]]

_SHOWN = 6  # readings to choose from
_HALF, _TENTH = 0.5, 0.1  # share of rows in which a column must hold something
_LONG_ANSWER = 60  # characters on average; labels are shorter
_LABEL = re.compile(r"\S{1,24}")
_RARE = frozenset({"error", "stop_reason"})
_SURE_GOLDEN = word_set(
    """query answer answers label labels sql solution summary output outputs finalanswer shortanswer
    answertext fullanswer program cypher translation groundtruthlabel targetoutput
    targetresponse"""
)
_BARE_ANSWER = frozenset({"answer", "answers", "finalanswer", "answertext", "fullanswer"})
_AGENTS_IN_RESULTS = word_set(
    """response responses output outputs completion completions reply result answer answers
    finalanswer answertext fullanswer ai bot chatbot assistant"""
)
_TWINS = word_set(
    """answer answers finalanswer answertext fullanswer output outputs result label labels
    groundtruthlabel solution sql query program translation"""
)
"""Names that are golden beside another column with the agent's answer."""
_RIGHT = word_set("expected true correct gold golden reference target")
_HEADINGS = word_set("title subject headline")
_BODIES = word_set("description body text content message")
_DONE = word_set("actual predicted pred got observed generated")
_NO_ANSWERS = word_set("tool tools url urls source sources id ids score scores count context")
_SUMMED_UP = word_set("dialogue dialog article document passage")
_MADE = word_set("sql sqlquery querysql sqlstatement code program cypher translation summary")
"""Names of what agents make, in files of results."""
_TEXT_OF_ANSWER = _AGENTS_IN_RESULTS | word_set("text content message value")
_ABOUT_QUESTIONS = word_set("category description topic concept title content query")
_OF_JUDGES = word_set("judge grader evaluator")
_BESIDE_ANSWER = word_set(
    """category class value result description intent verdict outcome topic concept title code
    content query translation"""
)
_UNSURE_ALONE = word_set("intent label labels category class code value result outcome")
_ASKED_ALONE = word_set("intent label labels category class code result outcome")
_CLASSES = word_set("category class label labels")
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
_GIVEN = frozenset({"input", "inputs", "vars", "variables", "question", "attributesinput"})


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """The role of each column that has one; `unused`: columns that have none."""

    roles: Taken
    unused: tuple[str, ...] = ()

    def one(self, role: Role) -> str | None:
        """The first column of a role; None: it has none."""
        return next(iter(self.roles.get(role, ())), None)


class Undecided(msgspec.Struct, frozen=True, kw_only=True):
    """Complete readings to choose from, the likeliest first; none: the file does not say enough.

    `asked`: what has to be decided, as the end of a sentence.
    """

    asked: str
    readings: tuple[Reading, ...] = ()
    columns: tuple[str, ...] = ()  # that may hold a question or an answer


def assign(
    columns: Mapping[str, Column],
    *,
    door: Door,
    file: str = "",
    named: Roles | None = None,
    needs_golden: bool = True,
) -> Reading | Undecided:
    """The role of each column, or the readings to choose from.

    `named`: roles that the user has decided. `file`: its name may raise a question, never settle
    one.
    """
    plain = {without_point(path): path for path in columns}
    given: Taken = {}
    for role, paths in (named or {}).items():
        given[role] = tuple(map(without_point, paths))
    seen = {name: columns[path] for name, path in plain.items()}
    result = _Assignment(seen, door, file, given, needs_golden).result()
    if isinstance(result, Reading):
        return _renamed(result, plain)
    return Undecided(
        asked=result.asked,
        readings=tuple(_renamed(reading, plain) for reading in result.readings),
        columns=tuple(plain.get(name, name) for name in result.columns),
    )


def _renamed(reading: Reading, names: Mapping[str, str]) -> Reading:
    """With the columns as the file calls them."""
    roles: Taken = {}
    for role, paths in reading.roles.items():
        roles[role] = tuple(names.get(path, path) for path in paths)
    return Reading(roles=roles, unused=tuple(names.get(path, path) for path in reading.unused))


class _Assignment:
    def __init__(
        self,
        columns: Mapping[str, Column],
        door: Door,
        file: str,
        named: Taken,
        needs_golden: bool,
    ) -> None:
        self._columns, self._door, self._named = columns, door, named
        self._needs_golden = needs_golden
        self._open = False  # whether no name speaks of a role, so that nothing is certain
        self._of_a_run = bool({*words_of(PurePath(file).stem)} & _OF_A_RUN)
        # a question may be its own id
        taken = {path for role, paths in named.items() if role != "id" for path in paths}
        self._free = {}
        for path, column in columns.items():
            if path in taken or is_aside(path):
                continue
            parent = columns.get(path.rpartition(".")[0])
            among = column.rows if parent is None else parent.objects
            given = False  # inside a question or a golden answer
            for above in path.split(".")[:-1]:
                roles = {meaning.role for meaning in meanings(above)} & {"question", "golden"}
                given = given or bool(roles) or _joined(above) in _GIVEN

            needed = _HALF * among
            if door == "results":  # what failed has no answer, what went well no error
                needed = 0 if {m.role for m in meanings(path)} & _RARE else _TENTH * among
            elif criterion_type(path) is not None:
                needed = 0  # each question may have another rule

            if column.filled and (given or column.filled >= needed):
                self._free[path] = column

        self._meanings = {path: meanings(path) for path in self._free}
        if door == "results" and self._compares_prompts():
            for path in self._free:
                if "prompt" in words_of(last_part(path)):
                    self._meanings[path] = (Meaning("condition"),)

        if door == "results" and not self._strong("golden"):
            self._expect_and_compare()
        named_paths = [path for paths in named.values() for path in paths]
        if not any(_joined(path) == "question" for path in [*columns, *named_paths]):
            # `query` is the question, unless there is one besides it
            for path in self._free:
                if _joined(path) == "query":
                    self._meanings[path] = (Meaning("question"),)

    def result(self) -> Reading | Undecided:
        shapes = self._shapes()
        used = {path for paths in shapes.values() for path in paths}
        self._free = {path: column for path, column in self._free.items() if path not in used}
        goldens = self._goldens(shapes)
        first = goldens[0] if goldens else {}
        questions = self._questions(
            {*first.get("golden", ())}, shapes, answers={*first.get("answer", ())}
        )
        self._offers_of_text(goldens, questions)
        readings = []
        for question in questions:
            for golden in goldens:
                reading = self._reading(shapes, question, golden)
                if reading is not None and reading not in readings:
                    readings.append(reading)

        if len(readings) == 1 and not self._open and not self._has_further_turns(readings[0]):
            others = self._with_unexplained(readings[0])
            if not others:
                return readings[0]
            readings = [*others, *readings]

        if not questions:
            asked = "which column is the question"
        elif not goldens:
            asked = "which column is the golden answer"
            if self._door == "results":
                asked = "which column is the answer"
        else:
            asked = "what the columns hold"

        return Undecided(
            asked=asked, readings=tuple(readings[:_SHOWN]), columns=tuple(self._texts())
        )

    def _compares_prompts(self) -> bool:
        """Whether rows give scores to trials of prompts that are named by short labels: then these
        are conditions, and questions are elsewhere.
        """
        said = {"answer", "golden"} & {role.role for path in self._free for role in meanings(path)}
        if said or "answer" in self._named or not any(map(repeats, self._columns)):
            return False
        for path, column in self._free.items():
            labels = column.texts == column.filled and all(map(_LABEL.fullmatch, column.values))
            again = 1 < len(column.values) <= column.filled / 2
            if _joined(path) == "prompt" and labels and again:
                return True

        return False

    def _has_further_turns(self, reading: Reading) -> bool:
        """Whether columns such as `response 2` follow the one that was taken: a row has turns."""
        roles: tuple[Role, ...] = ("question", "answer")
        for role in roles:
            if role in self._named:
                continue
            taken = [without_number(path) for path in reading.roles.get(role, ())]
            for path in self._columns:
                numbered = re.search(r"[2-9]$", path) is not None
                others = path not in reading.roles.get(role, ())
                if numbered and without_number(path) in taken and others:
                    return path not in reading.roles.get("choices", ())

        return False

    def _with_unexplained(self, reading: Reading) -> list[Reading]:
        """The same with other texts in a role that is empty, or that a weak name has."""
        second: Role = "answer" if self._door == "results" else "golden"
        texts: dict[Role, list[str]] = {}
        for role in ("question", second):
            paths = [] if role in self._named else unexplained(self._columns, reading.roles, role)
            texts[role] = paths[:_SHOWN]

        changes: list[Taken] = []
        for role, paths in texts.items():
            changes += [{role: (path,)} for path in paths]
        for question, other in product(texts["question"], texts[second]):
            if question != other:
                changes.append({"question": (question,), second: (other,)})

        others = []
        for change in changes:
            moved = {path for paths in change.values() for path in paths}
            roles: Taken = {}
            for named, held in reading.roles.items():
                kept = tuple(path for path in held if path not in moved)
                if kept or not held:
                    roles[named] = kept

            unused = tuple(path for path in reading.unused if path not in moved)
            others.append(Reading(roles={**roles, **change}, unused=unused))

        return others

    # --- shapes: what the values say, before any name -------------------------------------------

    def _shapes(self) -> Taken:
        """Roles that values or groups of columns decide: messages, choices, scores and so on."""
        found: Taken = {}
        messages = [
            path for path, column in self._free.items() if 2 * column.messages > column.rows
        ]
        if messages:
            found["messages"] = tuple(messages)
        choices = self._choices()
        if choices and "choices" not in self._named:
            found["choices"] = choices
        distractors = [path for path in self._strong("distractor") if path not in choices]
        if distractors:
            found["distractor"] = tuple(distractors)
        scores = [*self._named.get("score", ())]
        if self._door == "results":
            taken = {path for paths in self._named.values() for path in paths}
            scores += [path for path in score_columns(self._columns) if path not in taken]
        else:
            for path, column in self._free.items():
                roles = [meaning.role for meaning in self._meanings[path]]
                only = not roles or roles[0] in ("score", "metadata", "condition")
                if column.is_numeric and is_score_name(path) and (only or column.is_yes_or_no):
                    scores.append(path)

        if scores:
            found["score"] = tuple(scores)
        for role in _SINGLE:
            paths = [path for path in self._strong(role) if path not in choices]
            if self._door == "results" and role in ("latency", "cost", "tokens", "model"):
                paths = [path for path in paths if not _OF_JUDGES & {*words_of(path)}]
            if role in ("condition", "model"):
                paths = [path for path in paths if not self._free[path].objects]
            if paths and role not in self._named:
                found[role] = tuple(paths[:1])

        context = [path for path in self._strong("context") if path not in choices]
        if context:
            found["context"] = tuple(context)
        criteria = [path for path in self._strong("criterion") if path not in choices]
        if criteria:
            found["criterion"] = tuple(criteria)
        if self._door == "results" and not found.get("id") and not self._strong("question"):
            joining = joining_id(self._free)
            if joining is not None and "id" not in self._named:
                found["id"] = (joining,)

        return found

    def _choices(self) -> tuple[str, ...]:
        """A column with a list, or columns that differ by a running letter or number."""
        for path in self._strong("choices"):
            column = self._free[path]
            text = column.example if isinstance(column.example, str) else ""
            listed = text.strip()[:1] in ("[", "{") or any(mark in text for mark in "\n|;,")
            if column.lists + column.objects > 0 or listed:
                return (path,)

        stems: dict[str, dict[str, str]] = {}  # stem → path → mark
        for path in self._free:
            match = re.fullmatch(r"([^.]*?)[\s_-]*([0-9]|[A-Ea-e])[).]?", path)
            if match is not None:
                stems.setdefault(match[1].casefold(), {})[path] = match[2].casefold()

        columns = []
        for column in self._columns.values():
            columns.append({value.casefold() for value in column.values})

        for stem, paths in stems.items():
            marks = [*paths.values()]
            running = [chr(ord(marks[0]) + place) for place in range(len(marks))]
            if len(paths) < 2 or marks != running or marks[0] not in "01a":
                continue
            # in any language, if a column of such letters tells which is right
            told = marks[0] == "a" and any(len(held) > 1 and held <= {*marks} for held in columns)
            if not stem or is_choice_stem(stem) or told:
                return tuple(paths)

        return ()

    def _strong(self, role: Role) -> list[str]:
        return self._with(role, weak=False)

    def _sparse(self, role: Role) -> list[str]:
        """The columns that surely have the role by name, and are empty in most rows."""
        found = []
        for path in with_role(self._columns, role):
            column = self._columns[path]
            empty = 0 < column.filled < _HALF * column.rows
            if "." not in path and path not in self._free and empty:
                found.append(path)

        return found[:1]

    def _with(self, role: Role, *, weak: bool) -> list[str]:
        """The free columns that have this role by name, without those inside others if a column
        of the file itself has it.
        """
        found = []
        for path in self._free:
            for meaning in self._meanings[path]:
                if meaning.role == role and meaning.weak == weak:
                    found.append(path)
                    break

        return outermost(found)

    # --- golden answers and answers -------------------------------------------------------------

    def _goldens(self, shapes: Roles) -> list[Taken]:
        """What may be golden answer and agent's answer, the likeliest first."""
        named = self._named.get("golden")
        exact = [path for path in self._strong("golden") if self._holds_answer(path)]
        agents = [path for path in self._strong("answer") if self._holds_answer(path)]
        if not exact and not self._strong("question"):
            agents = [path for path in agents if _joined(path) != "hypothesis"]  # of a researcher
        weak = [path for path in self._with("golden", weak=True) if self._holds_answer(path)]
        if not exact and not any(self._holds_answer(path) for path in weak if "." not in path):
            exact = self._inside("golden")
        if self._door == "results":
            exact = [path for path in exact if not _in_answer(path)]
            weak = [path for path in weak if not any(path.startswith(f"{one}.") for one in agents)]
            if not agents:
                agents = outermost(path for path in self._inside("answer") if _in_answer(path))

        exact = self._without_copies(exact)
        weak = [path for path in weak if path not in exact]
        if "answer" in self._named:
            agents = []
        if named is not None:
            exact, weak = [], [path for path in weak if path not in named]
        if self._door == "results":
            return self._in_results(exact, agents, weak, shapes)
        if named is not None:
            return [{}]
        for path in () if exact or agents else shapes.get("messages", ()):
            chats = self._columns[path]
            if 2 * chats.replies <= chats.messages:
                continue  # they do not end with the assistant's reply
            others: list[Taken] = [{"golden": (path,)} for path in weak]
            sure = not others and "criterion" not in shapes
            # examples of one question and its wanted reply, and no log
            logged = self._evidence(shapes) or "started" in shapes or self._of_a_run
            if sure and 10 * chats.single >= 9 * chats.messages and not logged:
                return [{"golden": (path,)}]
            return [{"golden": (path,)}, *others, {}]

        options = self._in_dataset(exact, agents, weak, shapes)
        if exact:
            return options
        sparse: list[Taken] = [{"golden": (path,)} for path in self._sparse("golden")]
        return sparse + options

    def _expect_and_compare(self) -> None:
        """Gives a role to two columns that are called alike but for a word of what is right and one
        of what the agent did, such as `expected_decision` and `actual_decision`.
        """
        right: dict[tuple[str, ...], str] = {}
        done: dict[tuple[str, ...], str] = {}
        for path in self._free:
            first, *rest = words_of(path) or ("",)
            if not rest or _NO_ANSWERS & {*rest} or not self._holds_answer(path):
                continue
            if first in _RIGHT:
                right[tuple(rest)] = path
            elif first in _DONE:
                done[tuple(rest)] = path

        outer = {*outermost(right[rest] for rest in right if rest in done)}
        both = [rest for rest in right if right[rest] in outer]
        others = {path for path in self._strong("answer") if self._holds_answer(path)}
        others -= {done[rest] for rest in both}
        if len(both) == 1 and not others:
            self._meanings[right[both[0]]] = (Meaning("golden"),)
            self._meanings[done[both[0]]] = (Meaning("answer"),)

    def _in_dataset(
        self, exact: list[str], agents: list[str], weak: list[str], shapes: Roles
    ) -> list[Taken]:
        criteria = shapes.get("criterion", ())
        bare = [path for path in weak if _joined(path) in _BARE_ANSWER]
        if len(exact) == 1:
            (golden,) = exact
            said = agents or [path for path in weak if _joined(path) in _AGENTS_IN_RESULTS]
            sure: Taken = {"golden": (golden,)}
            if said:
                sure["answer"] = tuple(said[:1])
            graded = any("score" in words_of(path) for path in criteria)
            several = [path for path in criteria if not _is_stated(path)]
            if several and {*words_of(last_part(golden))} & _UNSURE_ALONE:
                return [sure, {"criterion": (golden, *criteria)}]
            attack = any(_joined(path) == "goal" for path in self._free)
            if graded or (attack and _joined(golden) == "target"):
                return [sure, {"answer": (golden,)}]
            if bare and not agents and not self._evidence(shapes):
                return [sure, {"golden": (bare[0],)}]
            return [sure]

        if len(exact) > 1:
            whole = {path.rpartition(".")[0] for path in exact if "." in path}
            some = exact[: _SHOWN - 2] if whole else exact
            return [{"golden": (path,)} for path in (*some, *sorted(whole))]

        if agents:
            of_the_run = [path for path in agents if words_of(path)[:1] == ("raw",)]
            options: list[Taken] = [{"golden": (path,), "answer": (agents[0],)} for path in weak]
            if of_the_run or self._of_a_run:
                options += [{"answer": (agents[0],)}]
            if not options and not criteria:
                self._open = True
            return options or self._by_criteria(criteria) or [{"answer": (agents[0],)}]

        if len(bare) == 1:
            others = [path for path in weak if path not in bare]
            if all(_joined(path) in _BESIDE_ANSWER for path in others):
                weak = bare
        elif not bare and criteria:
            weak = [path for path in weak if _joined(path) not in _BESIDE_ANSWER]

        if len(weak) == 1:
            return self._of_one_weak(weak[0], shapes)
        if weak:
            ordered = [*bare, *(path for path in weak if path not in bare)]
            return [{"golden": (path,)} for path in ordered]

        return self._by_criteria(criteria)

    def _of_one_weak(self, path: str, shapes: Roles) -> list[Taken]:
        """Where one column may be the golden answer, the agent's, or a class of the question."""
        doubted = self._evidence(shapes) or self._of_a_run
        if _joined(path) in _SURE_GOLDEN and not doubted:
            return [{"golden": (path,)}]
        if _joined(path) in _BESIDE_ANSWER:
            return [{}, {"golden": (path,)}]
        return [{"golden": (path,)}, {"answer": (path,)}]

    def _by_criteria(self, criteria: Sequence[str]) -> list[Taken]:
        """Where nothing but what must hold is given."""
        if self._named.get("criterion"):
            return [{}]
        if not criteria:
            return [] if self._needs_golden else [{}]
        scored = any(criterion_type(path) is not None for path in criteria)
        if scored or all(_is_stated(path) for path in criteria):
            return [{}]
        options: list[Taken] = []
        for path in criteria:
            column = self._columns[path]
            if column.texts + column.numbers + column.flags > 0:
                others = tuple(other for other in criteria if other != path)
                options.append({"golden": (path,), "criterion": others})

        return [*options[: _SHOWN - 2], {}, {"criterion": ()}]

    def _in_results(
        self, exact: list[str], agents: list[str], weak: list[str], shapes: Roles
    ) -> list[Taken]:
        paired = self._paired_parts()
        if paired and not {"golden", "answer"} & {*self._named}:
            return paired
        if not exact or "." in exact[0]:  # an object as golden answer
            exact = [path for path in self._strong("golden") if "." not in path] or exact[:1]
        goldens: list[Taken] = [{"golden": (path,)} for path in exact] or [{}]
        if "golden" in self._named:
            goldens = [{}]
        may_be_golden = not exact and "golden" not in self._named
        weak = [path for path in weak if _joined(path) not in _BESIDE_ANSWER - {"code"}]
        if "answer" in self._named:
            if may_be_golden and len(weak) == 1:
                return [{"golden": (weak[0],)}]
            return goldens

        said = self._said(agents, weak, exact)
        if said and may_be_golden and all(paths[0] not in weak for paths in said):
            with_twins = self._with_twins(said, weak)
            if with_twins:
                return with_twins

        two = [paths[0] for paths in said if len(paths) == 1 and paths[0] in weak]
        if may_be_golden and len(said) == len(two) == 2:
            first, second = two
            if _joined(first) not in _BARE_ANSWER:
                first, second = second, first
            if _joined(second) not in _BARE_ANSWER:
                return [{"golden": (first,), "answer": (second,)}]

        if not said:
            said = [(path,) for path in weak if _joined(path) in _MADE]
            if said and not self._strong("question"):
                self._open = True  # also texts about other things are called `summary`

        if said:
            return [{**golden, "answer": paths} for golden in goldens for paths in said]
        return self._without_answer(goldens, exact, shapes)

    def _paired_parts(self) -> list[Taken]:
        """Parts of one name in an object of what is right and in one of what the agent said."""
        objects = {}
        for role in ("golden", "answer"):
            found = [path for path in self._strong(role) if self._free[path].objects]
            if len(found) != 1:
                return []
            objects[role] = found[0]

        pairs: list[Taken] = []
        for path in self._free:
            if path.startswith(f"{objects['golden']}.") and self._holds_answer(path):
                other = objects["answer"] + path.removeprefix(objects["golden"])
                if other in self._free and self._holds_answer(other):
                    pairs.append({"golden": (path,), "answer": (other,)})

        return pairs

    def _without_answer(self, goldens: list[Taken], exact: list[str], shapes: Roles) -> list[Taken]:
        """Where no name is the agent's answer: scores are enough; else what there is, to ask."""
        of_others = {path for paths in shapes.values() for path in paths}
        if shapes.get("messages"):
            return goldens
        others = [path for path in self._free if path not in of_others]
        may_answer = {meaning.role for path in others for meaning in meanings(path)} & {"golden"}
        if len(others) == 1 and may_answer and self._holds_answer(others[0]) and shapes.get("id"):
            self._open = others[0] in exact or _joined(others[0]) in _ASKED_ALONE
            return [{"answer": (others[0],)}]

        if shapes.get("score") or shapes.get("error"):
            return goldens
        self._open = True
        answers = []
        for path in (*exact, *self._with("golden", weak=True)):
            if (
                not is_gold(words_of(last_part(path)))
                and self._holds_answer(path)
                and _joined(path) not in _ABOUT_QUESTIONS
            ):
                answers.append(path)

        labels = [path for path in answers if _joined(path) in ("label", "labels")]
        if len(labels) == 1 and len(answers) > 1:
            rest = [path for path in answers if path not in labels]
            return [{"golden": (labels[0],), "answer": (path,)} for path in rest]

        return [{"answer": (path,)} for path in answers]

    def _with_twins(self, said: list[tuple[str, ...]], weak: Sequence[str]) -> list[Taken]:
        """The answers with the golden ones beside them; empty: there are no golden ones."""
        names = _TWINS
        if any(_joined(path) in _SUMMED_UP for path in self._free):
            names = _TWINS | {"summary"}
        may_be = [path for path in weak if _joined(path) in names]
        options: list[Taken] = []
        for paths in said:
            # the only column that may be, or that shares values with the answer; a label may be
            # what somebody says of long answers
            answer = self._free[paths[0]]
            answered = {value.casefold() for value in answer.values}
            sharing, alone = [], []
            for path in may_be:
                shares = answered & {value.casefold() for value in self._free[path].values}
                is_label = _joined(path) in ("label", "labels")
                if shares:
                    sharing.append(path)
                if shares or not is_label or answer.mean_length < _LONG_ANSWER:
                    alone.append(path)

            left = sharing if len(alone) > 1 else alone
            twin = left[0] if len(left) == 1 else None
            both: Taken = {"answer": paths}
            if twin is not None:
                both = {"golden": (twin,), "answer": paths}
            if twin is not None and len(said) == 1 and "raw" in words_of(last_part(paths[0])):
                options.append({"answer": (twin,)})  # it may be read from the raw answer
            options.append(both)

        return options if any("golden" in option for option in options) else []

    def _said(
        self, agents: Sequence[str], weak: Sequence[str], goldens: Sequence[str]
    ) -> list[tuple[str, ...]]:
        """What may be the agent's answer: several columns together if each is a system's."""
        candidates = [path for path in self._free if self._holds_answer(path)]
        systems = systems_in(self._free, candidates)
        # `predicted_answer` is sure, and `suggested_answer` beside it is no other system's
        others = {path for path in agents if self._holds_answer(path)} - {*systems}
        if systems and (not others or any(names_system(path) for path in systems)):
            return [tuple(systems)]
        of_agent = [path for path in agents if not _OF_JUDGES & {*words_of(last_part(path))}]
        parsed = [path for path in of_agent if "raw" not in words_of(last_part(path))]
        if of_agent:
            return [(path,) for path in parsed or of_agent]
        said: list[tuple[str, ...]] = [
            (path,) for path in weak if _joined(path) in _AGENTS_IN_RESULTS
        ]
        if not said:
            ends = {path: words_of(last_part(path)) for path in weak}
            said = [(path,) for path, words in ends.items() if words[-1] in _AGENTS_IN_RESULTS]

        # rows have ids of questions, but no questions
        joins = not self._strong("question") and any(
            _joined(path) in _IDS for path in self._columns
        )
        if not said and joins:
            said = [(path,) for path in self._free if _joined(path) == "text"]
        if not said and len(goldens) == 1:
            classes = same_classes(self._free, goldens[0])
            return [tuple(classes)] if classes else []

        return said

    def _evidence(self, shapes: Roles) -> bool:
        """Whether columns say that the file is of a run: scores, a model, latencies, costs."""
        judged = any(column.is_verdict for column in self._columns.values())
        return judged or any(role in shapes for role in _OF_RUNS)

    def _holds_answer(self, path: str) -> bool:
        """Whether cells are something that can be read as an answer: no object, no messages."""
        column = self._free[path]
        if holds_texts(column.example):
            return True
        return 2 * column.objects < column.filled and 2 * column.messages < column.filled

    def _inside(self, role: Role) -> list[str]:
        """The columns inside an object whose own name has this role."""
        found = []
        for path in self._free:
            parents = path.split(".")[:-1]
            if not self._holds_answer(path):
                continue
            roles = {meaning.role for parent in parents for meaning in meanings(parent)}
            if role == "answer" and _in_answer(path) and _joined(path) in _TEXT_OF_ANSWER:
                found.append(path)
                continue

            given = any(_joined(parent) in _GIVEN for parent in parents)
            if role in roles or (role == "question" and given):
                found.append(path)

        return found

    # --- questions ------------------------------------------------------------------------------

    def _questions(
        self, goldens: Collection[str], shapes: Roles, *, answers: Collection[str]
    ) -> list[Taken]:
        if "question" in self._named:
            return [{}]
        asks = [path for path in self._strong("question") if self._asks(path, exact=True)]
        if any(_joined(path) == "question" for path in asks):
            asks = [path for path in asks if _joined(path) not in ("query", "prompt")]
        asks = [path for path in asks if path not in goldens and not _inside_golden(path)]
        asks = self._without_copies(asks)
        if len(asks) > 1:
            return self._of_several(asks)
        if asks:  # if all rows say the same, others that do not
            column, others = self._free[asks[0]], list[str]()
            if self._door == "dataset" and column.is_constant and column.rows >= _SHOWN:
                texts = [text for text in self._texts() if self._differs(text)]
                others = [text for text in texts if text not in (asks[0], *goldens)]

            self._open = self._open or bool(others)
            return [{"question": (text,)} for text in (*others[: _SHOWN - 1], asks[0])]
        if "messages" in shapes:
            if self._door == "results":
                chats = [path for path in shapes["messages"] if not self._columns[path].replies]
                return [{"question": (path,)} for path in chats] or [{}]

            return [{"question": (path,)} for path in shapes["messages"]]

        inside = [path for path in self._inside("question") if self._asks(path)]
        if inside:
            return [{"question": (path,)} for path in inside]
        weak = [path for path in self._with("question", weak=True) if self._differs(path)]
        sides = {side_of(last_part(path)) for path in self._free}
        if "assistant" not in sides:
            weak = [path for path in weak if side_of(last_part(path)) is None]
        weak = [path for path in weak if path not in (*goldens, *answers)]
        if weak:
            return [{"question": (path,)} for path in weak]
        # ids join the rows to questions, or a row has a golden answer and an answer
        joined = {"id", *ADDED.identifying} & {*shapes, *self._named}
        right = goldens or "golden" in self._named
        said = "answer" in self._named or self._strong("answer")
        if self._door == "results" and (joined or (right and said)):
            return [{}]
        return []

    def _without_copies(self, paths: Sequence[str]) -> list[str]:
        """The columns without those that say the same as an earlier one."""
        kept: list[str] = []
        for path in paths:
            values = self._free[path].values
            if not values or all(self._free[other].values != values for other in kept):
                kept.append(path)

        return kept

    def _of_several(self, asks: list[str]) -> list[Taken]:
        """Several columns under exact names: each alone, or an instruction and its input."""
        varying = [path for path in asks if not self._free[path].is_constant]
        by_name = {_joined(path): path for path in asks}
        instruction = by_name.get("instruction") or by_name.get("instructions")
        given = by_name.get("input") or by_name.get("question")
        if instruction is not None and given is not None:
            both: Taken = {"question": (instruction, given)}
            if instruction not in varying:
                return [both, {"question": (given,)}]
            alone: list[Taken] = [{"question": (path,)} for path in asks]
            return [both, *alone]

        if len(varying) == 1:
            return [{"question": (varying[0],)}]
        return [{"question": (path,)} for path in asks]

    def _asks(self, path: str, *, exact: bool = False) -> bool:
        """Whether cells can be a question: words, or anything but objects under an exact name."""
        column = self._free[path]
        if column.is_hashed:
            return False
        if not exact:
            return column.is_text
        example = column.example
        objects = isinstance(example, list) and any(isinstance(part, Mapping) for part in example)
        is_text = not objects or 2 * column.messages > column.filled
        return is_text and 2 * column.objects < column.filled

    def _differs(self, path: str) -> bool:
        """Whether cells hold words that differ from row to row, as questions do."""
        column = self._free[path]
        differs = 2 * len(column.values) >= min(column.filled, FEW_ROWS)
        return column.is_text and differs and not column.is_hashed

    def _texts(self) -> list[str]:
        """Columns with words, the longest texts first: what a question can be chosen from."""
        roles = ("id", "started", "model", "cluster", "metadata", "turn", *ADDED.identifying)
        if self._door == "results":
            roles = (*roles, "condition")
        found = []
        for path, column in self._free.items():
            kinds = {meaning.role for meaning in self._meanings[path] if not meaning.weak}
            if path == "description" and not column.is_constant:
                kinds -= {"metadata"}
            deep = path.count(".") > 1 or (
                "." in path and not meanings(path) and not meanings(path.rpartition(".")[0])
            )
            lists = 2 * column.lists > column.filled and not column.messages
            example = column.example
            texts = isinstance(example, list) and all(isinstance(part, str) for part in example)
            said = column.is_text or (lists and texts)
            if isinstance(example, str) and NO_WORDS.fullmatch(example.strip()):
                continue
            if self._door == "results" and names_persons(path):
                continue
            if said and (lists or column.mean_length > 3) and not kinds & {*roles} and not deep:
                found.append(path)

        return sorted(found, key=lambda path: -self._free[path].mean_length)[:12]

    def _offers_of_text(self, goldens: list[Taken], questions: list[Taken]) -> None:
        """Offers text columns for a role that no name speaks of: to choose from, never to take."""
        texts = self._texts()
        if not questions and not self._named.get("question"):
            questions += [{"question": (path,)} for path in self._sparse("question")]
            self._open = True

        if not questions and not goldens and all(path.startswith(NO_NAME) for path in texts):
            said: Role = "golden" if self._door == "dataset" else "answer"
            columns = sorted(texts)[:3]
            questions += [{"question": (path,)} for path in columns]
            goldens += [{said: (path,)} for path in columns[1:]]
            if self._door == "dataset":
                goldens.append({})
            self._open = True

        answered = any("answer" in golden for golden in goldens) or "answer" in self._named
        if not questions and goldens and (answered or self._door == "dataset"):
            used = {path for golden in goldens for paths in golden.values() for path in paths}
            used |= {path for path in texts if _joined(path) in _CLASSES}
            may_ask = dict.fromkeys([*texts, *sentences(self._columns, "question")])
            offers = [path for path in may_ask if path not in used]
            heads = [path for path in offers if _joined(path) in _HEADINGS]
            bodies = [path for path in offers if _joined(path) in _BODIES]
            if heads and bodies:
                questions.append({"question": (heads[0], bodies[0])})
            questions += [{"question": (path,)} for path in offers]
            self._open = True
        elif questions and not goldens and self._door == "dataset":
            used = {path for question in questions for path in question.get("question", ())}
            offers = [path for path in texts if _joined(path) not in _BESIDE_ANSWER | {"id"}]
            goldens.append({})
            goldens += [{"golden": (path,)} for path in offers if path not in used]
            self._open = True
        elif questions and not goldens and not any(c.messages for c in self._columns.values()):
            used = {path for question in questions for path in question.get("question", ())}
            offers = [
                path for path in sentences(self._columns, "answer") if used and path not in used
            ]
            goldens += [{"answer": (path,)} for path in offers]

    # --- the whole ------------------------------------------------------------------------------

    def _reading(
        self,
        shapes: Roles,
        question: Taken,
        golden: Taken,
    ) -> Reading | None:
        chosen = {*question.get("question", ()), *self._named.get("question", ())}
        roles: Taken = {}
        named = {**self._named, "score": shapes.get("score", ())}  # the named ones are among them
        for role, paths in {**shapes, **question, **golden, **named}.items():
            decided = role in question or role in golden or role in self._named
            kept = paths if decided else tuple(path for path in paths if path not in chosen)
            if kept or role in golden:
                roles[role] = kept  # none: decided that no column has the role

        nothing_said = not {"question", "answer", "messages"} & {*roles}
        if self._door == "results" and nothing_said and "golden" not in self._named:
            roles.pop("golden", None)  # nothing is compared with it, and ids are called so too
        said = [roles.get(role, ()) for role in ("question", "golden", "answer")]
        flat = [path for paths in said for path in paths]
        chats = {path for path in roles.get("golden", ()) if self._columns[path].messages}
        if chats - {*roles.get("question", ())}:
            return None  # a reply is golden for what comes before it
        if len(flat) != len({*flat}) + len(chats):
            return None
        taken = {path.partition(".")[0] for paths in roles.values() for path in paths}
        taken |= {path for paths in roles.values() for path in paths}
        unused = []
        for path, column in self._columns.items():
            if "." not in path and path not in taken and column.filled:
                unused.append(path)

        return Reading(roles=roles, unused=tuple(unused))


_IDS = {"questionid", "qid", "promptid", "queryid", "caseid", "taskid"}
_SINGLE: tuple[Role, ...] = (
    "id",
    "repetition",
    "condition",
    "model",
    "reason",
    "error",
    "stop_reason",
    "latency",
    "cost",
    "tokens",
    "started",
    "tools",
    "turn",
    *sorted({*ADDED.roles} - {*get_args(Known)}),
)


def _joined(path: str) -> str:
    return "".join(words_of(last_part(path)))


def _is_stated(path: str) -> bool:
    """Whether a name says that its cells hold what must be true of an answer, not an answer."""
    if criterion_type(path) is not None or path.startswith("__expected"):
        return True
    words = words_of(last_part(path))
    return bool(words) and words[-1] in ("source", "sources")


def _inside_golden(path: str) -> bool:
    """Whether a column is inside an object that is a golden answer by its name."""
    for parent in path.split(".")[:-1]:
        roles = {meaning.role for meaning in meanings(parent)}
        if "golden" in roles and "question" not in roles:
            return True

    return False


def _in_answer(path: str) -> bool:
    """Whether a column is inside an object that is the agent's answer in files of results."""
    for parent in path.split(".")[:-1]:
        strong = any(found.role == "answer" and not found.weak for found in meanings(parent))
        if strong or _joined(parent) in _AGENTS_IN_RESULTS:
            return True

    return False
