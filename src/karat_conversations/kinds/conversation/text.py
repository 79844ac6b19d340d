"""The prompt of a conversation: the report, how to answer, and earlier questions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from karat import templates
from karat.errors import BadOption
from karat.formats import count
from karat_conversations.kinds.conversation.drafts import Draft, rendered

ANSWER_FORMAT = """\
Answer each question with one JSON object and nothing else: {"answer": …, "unit": …, "program": …}
- answer: a number, without currency signs, unit words or thousands commas; or "yes" or "no".
- unit: "percent" where the number counts percent (12.5 for 12.5 %); "thousand", "million" or \
"billion" where it counts those; else "none".
- program: how the number comes about, in steps: subtract(60.94, 25.14), divide(#0, 25.14), where \
#0 is what the first step gives. Operations: add, subtract, multiply, divide, exp, greater; \
table_max, table_min, table_sum, table_average with the label of a row. \
For a number that you read off the page: the number."""

_SEVERAL = (
    "Here is an extract of a report. Questions about it follow, one at a time; later ones may "
    "refer to earlier ones."
)
_ONE = "Here is an extract of a report. A question about it follows."
_LONGEST = 1_000_000  # bytes of a template file


def read_template(given: str | None, folders: Sequence[Path]) -> str | None:
    """The text of a template: as given if it has fields or several lines, else from the file of
    that name.

    The file is looked for in each of the folders. None: the default template. Raises BadOption.
    """
    if given is None or "{{" in given or "\n" in given:
        return given
    place = "dataset.template"
    for path in (folder / given for folder in folders):
        if not path.is_file():
            continue
        try:
            with path.open("rb") as file:
                data = file.read(_LONGEST + 1)
            text = data.decode("utf-8-sig")
        except OSError as error:
            raise BadOption(place, f"'{given}' cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise BadOption(place, f"'{given}' is not UTF-8") from error

        if len(data) > _LONGEST:
            raise BadOption(place, f"'{given}' is longer than {count(_LONGEST)} bytes")
        if not templates.names(text):
            raise BadOption(
                place,
                (
                    f"'{given}' has no field such as {{{{ document }}}}: every conversation would "
                    f"get the same text"
                ),
            )

        return text

    raise BadOption(
        place,
        f"there is no file '{given}', and it is not a text with a field such as {{{{ document }}}}",
    )


def first_message(draft: Draft, template: str | None, *, numbers: bool = True) -> str:
    """What the agent reads before the first question. Raises BadOption for unknown fields.

    `numbers`: whether a golden answer is a number; else karat's own message does not ask for JSON.
    """
    if draft.table is not None:
        table = rendered(draft.table)
    else:
        table = ""

    document = "\n\n".join(
        part.strip() for part in (draft.pre_text, table, draft.post_text) if part.strip()
    )
    numbers = numbers or draft.answer_format is not None
    values = {
        "document": document,
        "pre_text": draft.pre_text,
        "table": table,
        "post_text": draft.post_text,
        "answer_format": draft.answer_format or ANSWER_FORMAT,
        "id": draft.id,
    }
    if template is None:
        if document:
            about = [_ONE if draft.single else _SEVERAL, "{{ document }}"]
        else:
            about = []

        template = "\n\n".join([*about, *(["{{ answer_format }}"] if numbers else [])])

    return templates.fill(template, values, place="dataset.template")


def transcript(earlier: Sequence[tuple[str, str]], question: str) -> str:
    """A question, preceded by the earlier questions with their golden answers."""
    turns = "\n\n".join(f"Question: {asked}\nAnswer: {answer}" for asked, answer in earlier)
    return (
        f"What was asked before, with the right answers:\n\n{turns}\n\nThe question "
        f"now:\n{question}"
    )
