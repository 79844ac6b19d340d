"""The answer in prose: one value as models write it, and none where two could be meant."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat_conversations.numeric import extract, parse_value
from karat_conversations.numeric.abstention import abstains

READ = [
    # boxes and tags
    (r"So $\boxed{-7.4\%}$", -0.074),
    (r"The growth is \(\boxed{7.4}\%\).", 0.074),
    (r"\boxed{7.4} percent", 0.074),
    (r"\boxed{7.4\%} percent", 0.074),
    (r"\boxed{5 million} million", 5e6),
    (r"$\boxed{5}$ million", 5e6),
    (r"\boxed{\text{\$5.2 million}}", 5.2e6),
    (r"\boxed{\frac{3}{4}}", 0.75),
    (r"\boxed{x = 12}", 12),
    (r"\boxed{1,234.5}", 1234.5),
    (r"\[ \boxed{1{,}234} \]", 1234),
    (r"First \boxed{3}, then \boxed{4}.", 4),
    (r"\boxed{(12)}", -12),
    (r"\boxed{5 \text{ million (2007)}}", 5e6),
    ("Some thought about 2010.\n<answer>12.5%</answer>", 0.125),
    ("<answer> negative 4 </answer>", -4),
    ("<answer>$ 1 234 million</answer> as said", 1.234e9),
    (r"\dfrac{35.8}{25.14} \approx 1.424", 1.424),
    (r"\begin{align*} x &= 10 - 4 \\ &= 6 \end{align*}", 6),
    (r"The value is $\$ 5.2$ million.", 5.2e6),
    (r"The answer is $\approx 5.2$", 5.2),
    # markers
    ("## Answer\n5.2 million\n\n## Explanation\nSee page 41.", 5.2e6),
    ("The answer is 5.", 5),
    ("The answer is 12.5.", 12.5),
    ("Final answer: 0.96", 0.96),
    ("**Final Answer:** 5", 5),
    ("**Final Answer**: **$1,234**", 1234),
    ("### Final answer\nIt is computed above.\n\nFinal answer: -3", -3),
    ("Answer = 14.1 %", 0.141),
    ("#### 72", 72),
    ("The final answer is: $\\boxed{8}$", 8),
    ("Thus, the final answer is approximately 12.5%.", 0.125),
    ("My answer is 5 million, up from 4 million in 2009.", 5e6),
    ("The answer: **42**\n\nExplanation: 40 plus 2.", 42),
    ('The answer is: \n"2014"', 2014),
    ("- answer: 1.00%\n\nThe change from 2009 to 2010 was 1.00% of revenue.", 0.01),
    ("The answer is (5.2) million.", -5.2e6),
    ("The answer to the question is 7.", 7),
    ("The answer is 3/4.", 0.75),
    ("The answer is 0.125 or 12.5%.", 0.125),
    ("The answer is 5. Wait, that was 2009. The answer is 6.", 6),
    ("Answer: 100 / 50 = 2", 2),
    ("The answer is \u20135.", -5),
    ("The result is 2 crore.", 2e7),
    ("Final result: 3 lakh", 3e5),
    ("Final answer: minus 5", -5),
    ("Final answer: 1\u202f234,", 1234),
    ("Final answer: CHF 1'234.50", 1234.5),
    ("Final answer: US$ 5bn", 5e9),
    ("Final answer: \u2212$2.5 million", -2.5e6),
    ("Final answer: -2.5e3", -2500),
    ("Final answer: 2.5 \u00d7 10^3", 2500),
    ("Final answer: 60.94 (2007)", 60.94),
    # other spellings of numbers
    ("a loss of (1,234)", -1234),
    ("It changed by ($ 5.2) million.", -5.2e6),
    ("\u20145", -5),
    ("The answer is \u20145.", -5),
    ("5 Mio.", 5e6),
    ("2 Mrd", 2e9),
    ("\u00bd", 0.5),
    ("3 \u00bd", 3.5),
    ("\uff11\uff12\uff0c\uff13\uff14\uff15", 12345),
    ("60.94 per share (2007: 25.14)", 60.94),
    ("approximately 60.94 (rounded to 2 decimals)", 60.94),
    ("2.5 pp", 0.025),
    ("2.5 p.p.", 0.025),
    ("$5.2B", 5.2e9),
    ("12.5 Mrd. \u20ac", 12.5e9),
    ("1.5 lakh crore", 1.5e12),
    ("5 thousand million", 5e9),
    ("1 234,5", 1234.5),
    ("1.234.567,89", 1234567.89),
    ("__5.2__", 5.2),
    ("```\n5.2\n```", 5.2),
    (r"$\boxed{1.2 \times 10^9}$", 1.2e9),
    ("19.6938...%", 0.196938),
    ("1.3 / 0.18 = 7.222... billion", 7.222e9),
    # the last sentence
    ("Change = (change / old value) * 100 = (-4 / 19) * 100 = -21.05%", -0.2105),
    ("The percentage is 1.424% = 0.01424, approximately 0.0142.", 0.01424),
    ("Sales rose to $120 million from $100 million.", 120e6),
    ("Net sales were $7.1 billion, a decrease of 41% from 2008.", 7.1e9),
    ("**Calculation:** 15 \u2212 10 = **5**", 5),
    ("It rose from 10 to 15, an increase of 5.", 5),
    ("It increased 50% from 10 to 15.", 0.5),
    ("The change is -50%.\n\nSource: page 12, table 3.", -0.5),
    ("It was **5**.", 5),
    ("Revenue was 12 in one year and 15 in the next, so it rose by **3**.", 3),
    ("Net income was **$5.2 million** in 2009.", 5.2e6),
    ("The growth was **7.4**%.", 0.074),
    ("The change is <b>5</b>, from 10 to 15.", 5),
    ("15 - 10 = 5", 5),
    ("(15 - 10) / 10 = 0.5 = 50%", 0.5),
    ("Change = 15 - 10 = 5 million", 5e6),
    ("10 / 100 = 0.1. This means that it grew.", 0.1),
    ("10 / 100 = 0.1\nSales grew in 2010.", 0.1),
    ("5 - 3 = 2; 7 + 1 = 8\nSales grew strongly.", 8),
    ("5 - 3 = 2 million. 7 of 9 grew\nSales rose strongly.", 2e6),
    ("4 / 2 \u2248 2.0\nSales grew strongly.", 2),
    ("Dividends per share in 2007 is 0.96.", 0.96),
    ("The change was (5.2).", -5.2),
    ("It decreased by 5.2% from 2009 to 2010.", 0.052),
    ("The value of the 3 notes is 750.", 750),
    ("The change was a 12.5% increase in revenue.", 0.125),
    ("It is 12.5% of 10.19, which is 12.5%.", 0.125),
    ("The total is 5 million, up from 4 million.", 5e6),
    ("As of December 31, 2009, the balance was $44.", 44),
    ("The 2026 notes total $311.", 311),
    ("If revenue was 10 and cost was 4, the profit is 6.", 6),
    ("Revenue was 10.\nCost was 4.\n\nProfit: 6\n", 6),
    ("The total over 12-month periods is 8.", 8),
    ("The sum is 5. I hope this helps!", 5),
    ("The sum is 5. Let me know if you need the steps.", 5),
    ("The ratio is 3 to be exact.", 3),
    ("The balance was 60.94 (2007).", 60.94),
    ("The change came to minus 5 million.", -5e6),
    ("The change is negative 5%.", -0.05),
    ("It amounts to 5 000 units.", 5000),
    ("It amounts to 5,00,000 rupees.", 500000),
    ("The margin is 12.5 per cent.", 0.125),
    ("The spread is 25 basis points.", 0.0025),
    ("The margin is 0.125 (12.5%).", 0.125),
    ("About \u20ac5 million.", 5e6),
    ("The figure is 1.234 million euros.", 1.234e6),
    # JSON stays what it is
    ('Here: {"answer": "minus 5", "unit": "million"}', -5),
    ('{"answer": "The answer is 5.", "unit": null}', 5),
    ('```json\n{"answer": 12.5}\n```\nBecause 10 + 2.5 = 12.5.', 12.5),
]
UNREAD = [
    "5 hundred",
    "The answer is 3 dozen.",
    "3:4",
    "The answer is 12:30",
    "The answer is unknown, as the 5 items are missing.",
    "It is impossible to say without the 2007 value of 5.",
    "As an AI, I have no access to the 10-K.",
    "The net change is the difference between the net gain and the net loss.",
    "It fell from 12 to 10.5 million.",
    "It is between 5 and 6.",
    "The answer is 5 or 6.",
    "The answer is 5 to 6 percent.",
    "Final answer: 5-6",
    "15 / 10 = 1.5 \u2192 50%",
    "1 234,567",
    "item 1b",
    "40 / 3160 * 100 = 1.2658, approximately 1.27%.",
    "Reserves of 546 were reported, a decrease of 6.",
    "Sales increased 20% to $120 million.",
    "Sales increased 9% compared with 2005 and 7% compared with 2004.",
    "Revenue was 10 in 2009 and 15 in 2010.",
    "The gain was 10 and the loss was 4.",
    "- answer: 12.5%\n\nThe answer is: 2014",
    "\\boxed{5 or 6}",
    "\\boxed{}",
    "The change was **4** and **5**.",
    "Change = 15 - 10",
    "In 2007.",
    "On December 31.",
    '{"answer": 12,5}',
    "version 1.2.3",
    "12,5",
    "",
    "Revenue was 5 in 2010. The change is the difference between both years.",
    "I cannot determine the change, the report gives only 5 million for 2009.",
    "The report does not disclose 2014. Revenue in 2013 was 5 million.",
]


def _number(text, question=""):
    answer = extract(text, "final", question=question).answer
    value = None if answer is None else parse_value(answer)
    return None if value is None else value.number


@pytest.mark.parametrize(("text", "number"), READ)
def test_the_answer_that_a_text_gives_is_read(text, number):
    assert _number(text) == pytest.approx(number, rel=1e-12)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "There isn\u2019t enough data.",
            r"\boxed{\text{N/A}}",
            "Final answer: N/A",
            '{"answer": null}',
            "I'm not sure.",
        ),
        *(
            "not enough data",
            "impossible to tell",
            "I have no access to it",
            "n.a.",
            "N/A",
            "\u2014",
            "It lacks the table.",
        ),
    ],
)
def test_what_says_that_there_is_no_answer_abstains(text):
    assert abstains(text)


@pytest.mark.parametrize("text", UNREAD)
def test_a_text_without_one_clear_answer_is_not_guessed_at(text):
    assert _number(text) is None


@pytest.mark.parametrize(
    ("text", "question", "number"),
    [
        ("The dividends per share in 2007 is 0.96.", "what are dividends per share in 2007?", 0.96),
        ("The total sum of the 3 is approximately $750.", "what is the total sum of the 3?", 750),
        ("The change from 2009 to 2010 was 5.", "what was the change from 2009 to 2010?", 5),
        ("The change is 2010.", "what was the change from 2009 to 2010?", None),
        ("The answer is: 2012", "what was the change between 2011 and 2012?", 2012),
        ("5% of 200 is 10.", "what is 5% of 200?", 10),
        ("The 2 items sum to 8.", "and of the 2 items?", 8),
    ],
)
def test_numbers_of_the_question_are_no_candidates(text, question, number):
    assert _number(text, question) == number


@pytest.mark.parametrize(
    ("text", "question", "answer"),
    [
        ("Yes, revenue rose from 5 to 6.", "did revenue rise?", "Yes"),
        ("The answer is no.", "did revenue rise?", "no"),
        ("**Final answer:** Yes", "q", "Yes"),
        (r"\boxed{no}", "q", "no"),
        (r"\boxed{\text{Yes}}", "q", "Yes"),
        ("It was higher in 2009: yes.", "q", "yes"),
        ("It fell from 6 to 5. Therefore, no.", "q", "no"),
    ],
)
def test_yes_and_no_are_answers(text, question, answer):
    assert extract(text, "final", question=question).answer == answer


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("The change was (5.2).", -5.2),
        ("$\\boxed{-7.4\\%}$", -0.074),
        ("minus 5", -5),
        ("\u20135", -5),
        ("1 234.5", 1234.5),
        ("5 000", 5000),
        ("5 crore", 5e7),
        ("3/4", 0.75),
        ("60.94 (2007)", 60.94),
        ("12 lakh", 1.2e6),
        ("1\u2009234", 1234),
        ("it is negative 5%", -0.05),
        ("5 to 6", 6),
    ],
)
def test_the_last_number_is_read_with_its_sign_thousands_and_unit(text, number):
    answer = extract(text, "last_number").answer
    assert parse_value(answer).number == pytest.approx(number, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("The answer is $5$.", None),
        ("So **$12.5$**", None),
        (r"It grew by $$5\%$$", None),
        (r"The answer is $\mathbf{5}$", None),
        ("The answer is $5$ million.", None),
        ("The answer is $5$ euros.", "euros"),
        ("The answer is $5$ and not more.", None),
        (r"The answer is $\$5.2$ million.", "$"),
        ("The answer is $5B.", "$"),
        ("The answer is A$5 million.", "A$"),
    ],
)
def test_dollars_around_latex_are_no_currency(text, unit):
    found = extract(text, "final")
    assert (found.unit, "$" in found.answer) == (unit, False)


def test_the_span_is_where_the_answer_is():
    text = "So the change is minus 5 million (2007)."
    found = extract(text, "final")
    assert (found.answer, found.how) == ("-5 million", "final")
    assert found.span is not None
    assert text[slice(*found.span)] == "minus 5 million"


def test_a_small_models_answers_are_read_as_a_reader_does(shared_data):
    lines = (shared_data / "small_model" / "numbers.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert [_number(row["text"], row["question"]) for row in rows] == [
        row["read"] if row["read"] is None else pytest.approx(row["read"]) for row in rows
    ]


PIECES = [
    "5",
    " ",
    "(",
    ")",
    "=",
    "is ",
    "**",
    "\\boxed{",
    "}",
    "answer: ",
    "-",
    ".",
    "\n",
    ",",
    "2007",
    "%",
    "$",
    "or ",
]


@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join) | st.text(max_size=60))
def test_no_text_raises_and_what_is_read_is_in_the_text(text):
    found = extract(text, "final")
    if found.answer is not None and found.how == "final":
        assert parse_value(found.answer) is not None
        assert found.span is not None
        start, end = found.span
        assert text[start:end].strip()
