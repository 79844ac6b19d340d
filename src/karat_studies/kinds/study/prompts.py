"""What a participant reads: materials filled with values, in order, each ending with the answer
form.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

import msgspec

from karat.templates import fill, names
from karat_studies.kinds.study.format import Answered, Arm, StudyFile, Task

ANSWER_FORM = "answer_form"
"""The name with which a material places the answer form itself: {{ answer_form }}."""


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """One task as one participant sees it."""

    arm: str
    task: str
    text: str
    fields: dict[str, Answered]


def shown_to(
    study: StudyFile,
    arms: Sequence[str],
    profile: Mapping[str, object],
    *,
    seed: str,
) -> list[Shown]:
    """The tasks of a participant's arms, in file order or shuffled with the seed.

    `order: random` shuffles the tasks of an arm, and the arms of a within design; tasks of
    different arms are not mixed. Raises BadOption if a material uses a name without a value.
    """
    dice = random.Random(seed)
    order = list(arms)
    if study.order == "random":
        dice.shuffle(order)
    shown: list[Shown] = []
    for name in order:
        arm = study.arms[name]
        tasks = list(arm.shown)
        if study.order == "random":
            dice.shuffle(tasks)
        for task in tasks:
            text = prompt_text(study, arm, task, profile)
            shown.append(
                Shown(arm=name, task=task.name or task.prompt, text=text, fields=task.fields)
            )

    return shown


def prompt_text(
    study: StudyFile,
    arm: Arm,
    task: Task,
    profile: Mapping[str, object],
    more: Mapping[str, object] | None = None,
) -> str:
    """The material with its values, followed by the answer form unless the material shows the form
    itself.
    """
    text = study.materials[task.prompt]
    if study.reorder:
        fields = {name: _reversed(field) for name, field in task.fields.items()}
    else:
        fields = task.fields

    form = answer_form(fields)
    values = {
        "profile": dict(profile),
        **arm.values,
        **task.values,
        ANSWER_FORM: form,
        **(more or {}),
    }
    filled = fill(text, values, place=task.prompt).strip()
    if study.reorder:
        filled = reordered(filled, task.fields)
    if ANSWER_FORM in names(text) or forms_in(text, task.fields):
        return filled
    return f"{filled}\n\n{form}"


def answer_form(fields: Mapping[str, Answered]) -> str:
    """How to answer, in lines that can be parsed.

    >>> print(answer_form({"choice": Answered(type="choice", options=["A", "B"])}))
    End your answer with one line in this form:
    choice: A or B
    """
    lines = [f"{name}: {described(field)}" for name, field in fields.items()]
    head = "End your answer with one line in this form:"
    if len(lines) > 1:
        head = f"End your answer with {len(lines)} lines in this form:"
    return "\n".join([head, *lines])


def reordered(text: str, fields: Mapping[str, Answered]) -> str:
    """The text with each field's options in reverse order, if every option has its own line: `A:
    …`.

    A line that does not begin with a label belongs to the option above it, up to an empty line.
    The answer form in the text is reversed too, if it is as karat writes it. Labels do not change.

    >>> fields = {"choice": Answered(type="choice", options=["A", "B"])}
    >>> print(
    ...     reordered("Which?\\nA: 200 are\\nsaved.\\nB: Perhaps all.\\n\\nchoice: A or B", fields)
    ... )
    Which?
    B: Perhaps all.
    A: 200 are
    saved.
    <BLANKLINE>
    choice: B or A
    """
    for name, field in fields.items():
        own = f"{name}: {described(field)}"
        other = f"{name}: {described(_reversed(field))}"
        lines = [other if line == own else line for line in text.split("\n")]
        blocks = []
        for label in field.labels:
            # The lines of an option: from the one that begins with its label to the next label
            # or empty line
            starts = []
            for at, line in enumerate(lines):
                if re.match(rf"\s*{re.escape(label)}[:.)]\s", line):
                    starts.append(at)

            if len(starts) != 1:
                block: tuple[int, int] | None = None
            else:
                end = starts[0] + 1
                while (
                    end < len(lines)
                    and lines[end].strip()
                    and not re.match(r"\s*\w{1,12}[:.)]\s", lines[end])
                ):
                    end += 1

                block = starts[0], end

            blocks.append(block)

        present = [block for block in blocks if block is not None]
        adjoining = all(above[1] == below[0] for above, below in pairwise(present))
        if len(present) == len(field.labels) > 1 and adjoining:
            moved = [line for start, end in reversed(present) for line in lines[start:end]]
            lines[present[0][0] : present[-1][1]] = moved

        text = "\n".join(lines)

    return text


def _reversed(field: Answered) -> Answered:
    if field.options is None:
        return field
    options = (
        dict(reversed(field.options.items()))
        if isinstance(field.options, dict)
        else field.options[::-1]
    )
    return field.model_copy(update={"options": options})


def described(field: Answered) -> str:
    """The text after a field's key in the answer form."""
    if field.hint is not None:
        return field.hint
    if field.type == "choice":
        labels = field.labels
        if len(labels) > 1:
            return f"{', '.join(labels[:-1])} or {labels[-1]}"
        return "".join(labels)

    if field.type == "rank":
        return f"{', '.join(field.labels)} in your order, the first one first, with commas between"
    if field.type == "text":
        return "your words"
    low, high = field.range or (None, None)
    span = ""
    if low is not None and high is not None:
        span = f" from {low:g} to {high:g}"
    elif low is not None:
        span = f", {low:g} or more"
    elif high is not None:
        span = f", {high:g} or less"

    return f"a {'whole ' if field.whole or field.type == 'likert' else ''}number{span}"


def forms_in(text: str, fields: Mapping[str, Answered]) -> list[str]:
    """The fields for which a text shows an answer line: `choice: …`, or the same as a JSON key."""
    found = []
    for name in fields:
        if re.search(rf"^[ \t>*`\"'-]*{re.escape(name)}[\"'*`]*[ \t]*:", text, re.MULTILINE):
            found.append(name)

    return found


def known_names(study: StudyFile, arm: Arm, task: Task) -> list[str]:
    """The names that {{ … }} in a material may use."""
    return [
        ANSWER_FORM,
        *arm.values,
        *task.values,
        *(f"profile.{name}" for name in study.attributes),
    ]
