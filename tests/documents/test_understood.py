"""The first row as it was understood, in lines for people."""

from __future__ import annotations

from karat.documents.columns import columns_of
from karat.documents.roles import Reading, Undecided
from karat.documents.understood import Part, Understood, beginning, examples

UNDERSTOOD = Understood(
    parts=(
        Part(role="question", text="Why\n is it so? " + "word " * 80, columns=("q", "context")),
        Part(role="golden", text="so"),
        Part(role="golden", text="or so"),
    ),
    unused=("id", "n\x1b"),
    notes=("a note",),
)


def test_a_part_is_one_line_with_its_columns():
    part = UNDERSTOOD.parts[0]
    assert part.on_one_line(12) == "Why is it s…  [q, context]"
    assert UNDERSTOOD.parts[1].on_one_line(12) == "so"


def test_what_was_understood_is_a_line_each():
    lines = UNDERSTOOD.lines()
    first = lines[0].partition("  [")
    assert first[2] == "q, context]"
    assert first[0].startswith("question   Why is it so? word word ")
    assert len(first[0]) == len("question   ") + 84 - len("q, context")
    assert lines[1:3] == ["golden     so", "golden     or so"]
    assert lines[3].startswith("not used   id, n")
    assert lines[4:] == ["ids        0, 1, 2, …; for the file's, set dataset.id_key: id", "read       a note"]
    assert str(UNDERSTOOD) == "\n".join(lines)
    wide = Understood(parts=(Part(role="question", text="x" * 90, columns=("y" * 90,)),))
    assert wide.lines() == [f"question   {'x' * 23}…  [{'y' * 90}]"]


def test_a_record_has_the_first_text_of_each_role():
    texts = UNDERSTOOD.texts()
    assert [*texts] == ["question", "golden", "not used"]
    long = Understood(parts=(Part(role="question", text="x" * 301, columns=("q",)),))
    assert long.texts() == {"question": f"{'x' * 299}…  [q]"}
    assert texts["golden"] == "so"
    assert Understood(parts=()).texts() == {}


def test_secrets_are_left_out_before_texts_are_cut():
    masked = UNDERSTOOD.masked(lambda text: text.replace("so", "***"))
    assert [part.text[:16] for part in masked.parts] == ["Why\n is it ***? ", "***", "or ***"]
    assert (masked.unused, masked.notes) == (UNDERSTOOD.unused, UNDERSTOOD.notes)


def test_the_beginning_of_a_cell_is_cut_between_words():
    assert beginning("two\nwords") == "two words"
    assert beginning("word " * 40) == " ".join(["word"] * 16) + " …"
    assert beginning([{"role": "user", "content": "Why?"}]) == "Why?"
    assert beginning(["x"]) == "['x']"


def test_examples_show_first_what_readings_name():
    columns = columns_of([{name: f"text of {name}" for name in "abcdefghijk"}])
    readings = (Reading(roles={"question": ("b",), "golden": ("a",)}), Reading(roles={"question": ("a",)}))
    assert examples(Undecided(asked="", readings=readings, columns=("c",)), columns) == [
        "  (question: what is asked; golden: the right answer, to compare with)",
        "  the first row has:",
        *(f"    {name}: text of {name}" for name in "bacdefghijk"),
    ]
    assert examples(Undecided(asked="", columns=("c", "gone")), columns) == [
        "  the first row has:",
        "    c: text of c",
    ]
    assert len(examples(Undecided(asked="", columns=tuple("abcdefghijk")), columns)) == 12
    assert examples(Undecided(asked="", columns=("gone",)), columns) == []
