"""Rows in texts: tables in Markdown, and blocks of lines that begin with labels."""

from __future__ import annotations

from karat.documents.text_rows import rows_in_text

TABLE = """# Run 3

| Question | Answer | Score |
|:---|---|--:|
| Who \\| what? | Me | 3 |
| Why? | So | 4 |
"""


def test_a_table_in_markdown_has_a_row_a_line() -> None:
    rows, note = rows_in_text(TABLE)
    assert rows == [
        (5, {"Question": "Who | what?", "Answer": "Me", "Score": "3"}),
        (6, {"Question": "Why?", "Answer": "So", "Score": "4"}),
    ]
    assert note == "rows: a table in Markdown"


def test_tables_with_one_header_are_parted_by_their_headings() -> None:
    rows, note = rows_in_text(TABLE + TABLE.replace("Run 3", "Run 4") + "\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    assert [row["list"] for _, row in rows] == ["Run 3", "Run 3", "Run 4", "Run 4"]
    assert note == "rows: a table in Markdown; not read: 1 with other columns"


def test_blocks_of_labelled_lines_are_rows() -> None:
    block = "[{n}/3] **Question {n}:** Who is {n}?\n**Expected:** Me\n**Answer:** I\nam it\n---\n"
    rows, _ = rows_in_text("\n".join(block.format(n=n) for n in (1, 2, 3)))
    assert rows[0] == (1, {"Question": "Who is 1?", "Expected": "Me", "Answer": "I\nam it"})
    assert len(rows) == 3


def test_a_conversation_and_a_text_are_no_rows() -> None:
    assert rows_in_text("User: Hi?\nBot: Hello\n" * 4) == ([], "")
    assert rows_in_text("Q: Hi?\nA: Hello\n" * 4) == ([], "")
    assert rows_in_text("A | b\nis no table\n") == ([], "")


def test_questions_with_right_answers_below_headings_are_rows_of_two_labels() -> None:
    block = "### {0}. Place\n**Question:** Where is {0}?\n**Correct answer:** In {0}.\nOr near.\n\n"
    block = block.replace("Or near.", "# Or\nOr near.")
    rows, _ = rows_in_text("# All\n\n" + "".join(map(block.format, "abc")))
    assert [row for _, row in rows] == [
        {"Question": f"Where is {at}?", "Correct answer": f"In {at}.\n# Or\nOr near."} for at in "abc"
    ]
