"""Reads the numeric answer of a text that was written for people: one value, or none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from karat_conversations.numeric.abstention import abstains
from karat_conversations.numeric.matches import close
from karat_conversations.numeric.quantities import (
    COPULA,
    COPULA_REACH,
    Quantity,
    may_be_a_year,
    plain_prose,
    quantities,
)
from karat_conversations.numeric.values import UNITS, currencies, parse_value


class ProseAnswer(NamedTuple):
    """The answer of a text, and where it is."""

    answer: str  # as `parse_value` reads it
    span: tuple[int, int]
    unit: str | None = None  # named apart from the number


_WORD_REACH = 10  # characters of a currency's name beside a number
_DOLLAR = re.compile(r"(?<!\\)\$(?!\d)")  # one that LaTeX does not print
_LONGEST = 50_000  # characters of a reply that are read: its end


def answer_in_prose(text: str, question: str = "") -> ProseAnswer | None:
    r"""The number, yes or no that a text gives as its answer; None if it gives none, or two that
    could both be meant.

    In this order: `\boxed{…}`; `<answer>…</answer>`; what follows "Final answer:" or "The answer
    is"; an emphasised number in the last sentence; what follows the last `=`; the only number of
    the last sentence. Years, numbers in brackets after another one, and numbers of the question are
    no candidates in a sentence.

    >>> answer_in_prose("Dividends per share in 2007 were **$0.96**.").answer
    '$0.96'
    >>> answer_in_prose("It fell from 12 to 10.5 million.") is None
    True
    """
    skipped = max(0, len(text) - _LONGEST)
    text = text[skipped:]
    reading = _Reading(text, question)
    for read in (reading.boxed, reading.tagged, reading.marked, reading.yes_or_no):
        found, answer = read()
        if found:
            break
    else:
        answer = reading.stated()

    if answer is None:
        return None
    start, end = answer.span
    unit = answer.unit or _currency_beside(text, start, end)
    if currencies(answer.answer):
        unit = answer.unit
    return answer._replace(span=(start + skipped, end + skipped), unit=unit)


Found = tuple[bool, ProseAnswer | None]
"""Whether the text has this form of an answer; and the answer, None if it cannot be read."""

_BOX = re.compile(r"\\f?boxed\s?\{((?:[^{}]|\{(?:[^{}]|\{[^{}]{0,200}\}){0,200}\}){1,400})\}")
_TAG = re.compile(r"<(final_?answer|answer)>(.{1,1000}?)</\1>", re.IGNORECASE | re.DOTALL)
_UNIT_BEHIND = re.compile(
    r"[\s\x1f$)}]*(%|per ?cent\b|(?:thousand|lakh|million|crore|billion|trillion)s?\b)",
    re.IGNORECASE,
)
_MARKER = re.compile(
    r"""(?:\A|(?<=\n))[ \x1f]*\#{4}[ ](?!\#)
    | (?:\A|(?<=\n))[ \x1f\#]*(?:final[ ])?answer[ \x1f]*(?=\n)
    | (?<!\bno[ ])(?<!\ba[ ])(?<!\ban[ ])(?<!\bwhose[ ])
      \b(?P<final>(?:final|correct|overall)[ _](?:numeric(?:al)?[ ])?)?
      (?:answers?|(?<=final[ ])result|(?<=the[ ])result|(?<=final[ ])value|(?<=the[ ])solution)\b
      ["'\x1f]*+(?:[ ][^\n.:=?!]{0,60}?)?
      (?:[ ](?:is|would[ ]be|should[ ]be|equals)\b[ ]*:?|[ ]*[:=])""",
    re.VERBOSE | re.IGNORECASE,
)
_FILLER = re.compile(
    r"""(?:[\s\x1f"'`_:~\u2248\[({]|\$(?=[\\\u2248])|\\\(
    |\b(?:approximately|approx\.?|about|roughly|around|nearly|almost|exactly|simply|equal\sto|the|an?|in\sfact|thus
        |therefore|that|it\s(?:is|was))\b)*""",
    re.VERBOSE | re.IGNORECASE,
)
_CHOICE_BEHIND = re.compile(
    r"[\s\x1f)]*(?:or|and|to|through|-|/|,\s*or|,\s*and|[*x+\u00f7^]|[-=]>|[\u2192\u21d2])"
    r"[\s\x1f]*$",
    re.IGNORECASE,
)
_ABOUT = re.compile(
    r"[\s\x1f),.]*(?:approximately|approx\.?|about|roughly|rounded to|\u2248)[\s\x1f$]*",
    re.IGNORECASE,
)
_OPERATOR_BEHIND = re.compile(r"[\s\x1f)]*[-+*/x\u00f7^][\s\x1f(]*[$(0-9]", re.IGNORECASE)
_CORRECTED = re.compile(
    r"\b(?:wait|actually|correct(?:ion|ed|ing)|sorry|apolog\w+|mistake|re-?check\w*|instead"
    r"|however|hold on|hmm+|oops)\b|[.!?]\s+No\b",
    re.IGNORECASE,
)
_YES_OR_NO = re.compile(
    r"[\s\x1f\"'`_]*(yes|no|true|false)\b(?=[\s\x1f\"'`_]*(?:[.,;:!\n)\-]|\Z))", re.IGNORECASE
)
_UNIT_APART = re.compile(r"\bunits?\b[\"'\s\x1f]*[:=][\"'\s\x1f]*(%|[a-z]+)", re.IGNORECASE)
_ASKS_YES_OR_NO = re.compile(
    (
        r"(?:.*[,;]\s*)?(?:and |but |so )?(?:is|are|was|were|do|does|did|has|have|had|can|could"
        r"|will|would|should)\b"
    ),
    re.IGNORECASE | re.DOTALL,
)
_CONCLUDES = re.compile(
    (
        r"^(?:[^:]*:)?[\s\x1f]*(?:so|therefore|thus|hence|in conclusion|consequently)?"
        r"[,\s\x1f]*(yes|no)[\s\x1f.!]*$"
    ),
    re.IGNORECASE,
)
_ABBREVIATION = (
    r"(?<!\bapprox)(?<!\bvs)(?<!\bInc)(?<!\bCo)(?<!\bCorp)(?<!\bNo)(?<!\bU\.S)"
    r"(?<!\bi\.e)(?<!\be\.g)(?<!\bca)(?<!\bMio)(?<!\bMrd)(?<!\bTsd)(?<!\bRs)"
)
_SENTENCE_END = re.compile(
    rf"[\s\x1f]*\n[\s\x1f]*|{_ABBREVIATION}(?!(?<=\.)\.\s[a-z])[.!?][\"'\x1f)\]$]*(?=\s|\Z)"
)
_GOES_ON = re.compile(
    r"""[\s\x1f]*(?:(?:this|that|it|these|so|therefore|thus|hence|note|please|let|hope|i\shope|thanks?|if\syou|feel\sfree
    |in\sother\swords|do\syou|would\syou|is\sthere)\b|```|$|\\\]|\]|[-=*_#\s]+$)""",
    re.VERBOSE | re.IGNORECASE,
)
_CITES = re.compile(r"[\s\x1f]*\(?(?:sources?|references?|see|note|page|table)\b", re.IGNORECASE)
_ESTIMATES = re.compile(
    (
        r"\b(?:but|however|so|therefore|thus|assuming|based on|using|estimated?|approximate(?:ly)?"
        r"|nevertheless)\b"
    ),
    re.IGNORECASE,
)
_WORD = re.compile(r"\w")
_CONDITION = re.compile(
    r"[\s\x1f]*(?:if|since|because|given|as|with|when|while|although)\b", re.IGNORECASE
)
_CONCLUSION = re.compile(
    r"\b(?:which|so|thus|therefore|hence|then|giving|resulting|i\.e\.|that is)\b", re.IGNORECASE
)
_COMPARES = re.compile(
    r"\b(?:up|down|compared|versus|vs\.?|from|than|of|against|relative|in|for|during|after"
    r"|before|per|at|over|by|as of|year|years|page|note|table|item|rounded|rounding|excluding"
    r"|including)\b|[(/]",
    re.IGNORECASE,
)
_MOVES = re.compile(
    r"\b(?:(?:grew|fell|rose|dropped|declined|(?:in|de)creased)"
    r"|(?:change|(?:in|de)crease|rise|growth|drop|decline|reduction|difference)[ ]of)"
    r"[\s\x1f]+\Z",
    re.IGNORECASE,
)
_END_OF_A_MOVE = re.compile(r"\b(from|to|between|and)[\s\x1f$]+\Z", re.IGNORECASE)
_JOINS = re.compile(r"\b(?:and|or|but|while|whereas|respectively)\b|[;&]", re.IGNORECASE)
_MONTH = re.compile(
    r"\b(?:jan|feb|mar|apr|may|june?|july?|aug|sep|sept|oct|nov|dec)[a-z]*\.?[ ,]*$", re.IGNORECASE
)
_EMPHASIS = re.compile(
    r"(?<![\w*])(\*{1,3}|__?)(?=\S)[^*_\n]{1,60}(?<=\S)\1|<(b|strong|em)>[^<>\n]{1,60}</\2>"
)
_LABELLED = re.compile(r"\b(?:step|part|note|table|page|item|section|figure)[ ]\Z", re.IGNORECASE)
_LINE_START = re.compile(r"(?:\A|(?<=\n))[ \x1f]*\(?\Z")
_ITEM_GOES_ON = re.compile(r"[.)][ \x1f]+\S")


class _Reading:
    """One text, with its numbers."""

    def __init__(self, text: str, question: str) -> None:
        self.text = text
        self.prose = plain_prose(text)
        self.found = quantities(text, self.prose)
        self.question = question
        self._asked = {(quantity.number, quantity.bare) for quantity in quantities(question)}

    def boxed(self) -> Found:
        """The last box, with the unit that follows it."""
        boxes = list(_BOX.finditer(self.text))
        if not boxes:
            return False, None
        box = boxes[-1]
        answer = self._value(*box.span(1))
        behind = _UNIT_BEHIND.match(self.prose, box.end())
        if answer is not None and behind is not None:
            value = parse_value(answer.answer)
            has_unit = value is None or value.boolean is not None or value.percent or value.unit
            if not has_unit:
                unit = UNITS.get(behind[1].lower(), "percent")
                answer = answer._replace(
                    answer=f"{answer.answer} {unit}", span=(answer.span[0], behind.end())
                )

        return True, answer

    def tagged(self) -> Found:
        """The last `<answer>`."""
        tags = list(_TAG.finditer(self.text))
        return bool(tags), self._value(*tags[-1].span(2)) if tags else None

    def marked(self) -> Found:
        """What the last marker announces; markers that announce different values announce none."""
        markers = list(_MARKER.finditer(self.prose))
        finals = [marker for marker in markers if marker["final"]]
        answers = [(marker, self._announced(marker.end())) for marker in finals or markers]
        given = [(marker, answer) for marker, (found, answer) in answers if found]
        if not given:
            return False, None
        last = given[-1][1]
        for marker, answer in given[:-1]:
            between = self.prose[marker.end() : given[-1][0].start()]
            if answer is None or last is None or finals or _CORRECTED.search(between):
                continue
            one = parse_value(answer.answer)
            other = parse_value(last.answer)
            if one is None or other is None:
                return True, None
            if (one.number, one.boolean) != (other.number, other.boolean):
                return True, None

        return True, last

    def stated(self) -> ProseAnswer | None:
        """The value that the last sentence states."""
        sentences: list[tuple[int, int]] = []
        start = 0
        for match in _SENTENCE_END.finditer(self.prose):
            if _WORD.search(self.prose, start, match.start()):  # no fence, no rule
                sentences.append((start, match.start()))
            start = match.end()

        if _WORD.search(self.prose, start):
            sentences.append((start, len(self.prose)))

        for start, end in reversed(sentences):
            sentence = self.prose[start:end]
            inside = self._inside(start, end)
            if abstains(sentence) and not _ESTIMATES.search(sentence):
                return None
            if conclusion := _CONCLUDES.match(sentence):
                at = start + conclusion.start(1)
                return ProseAnswer(conclusion[1], (at, start + conclusion.end(1)))

            if not inside:
                if _GOES_ON.match(sentence) and (start, end) != sentences[0]:
                    continue
                return self._by_equals(end)

            refused = any(abstains(self.prose[a:b]) for a, b in sentences if b <= start)
            if refused and not _ESTIMATES.search(sentence):
                return None
            answer = self._of_sentence(start, end)
            if answer is not None or "=" in sentence or self._candidates(start, end):
                return answer
            if not _CITES.match(sentence):
                return self._by_equals(start)

        return None

    def yes_or_no(self) -> Found:
        """The first word, if the question asks for yes or no."""
        if (
            not _ASKS_YES_OR_NO.match(self.question)
            or (word := _YES_OR_NO.match(self.prose)) is None
        ):
            return False, None

        return True, ProseAnswer(word[1], word.span(1))

    def _announced(self, at: int) -> Found:
        """What follows a marker: on its line, or on the next line that has anything."""
        filler = _FILLER.match(self.prose, at)
        if filler is not None:
            at = filler.end()
        line = self.prose.find("\n", at)
        if line < 0:
            end = len(self.prose)
        else:
            end = line

        if word := _YES_OR_NO.match(self.prose, at, end):
            return True, ProseAnswer(word[1], word.span(1))
        sentence_end = _SENTENCE_END.search(self.prose, at, end)
        if sentence_end is not None:
            end = sentence_end.start()
        announced = []
        for quantity in self._inside(at, end):
            if not quantity.part_of_word:
                announced.append(quantity)

        if not announced:
            return False, None
        first = announced[0]
        if before := self.prose[at : first.start].strip(" \x1f\"'`_$[({\\"):
            if abstains(before) and not _ESTIMATES.search(before):
                return True, None
            answer = self._of_sentence(at, end)
            return answer is not None or len(announced) > 1, answer

        if "=" in self.prose[first.end : end]:
            return True, self._after_equals(at, end)
        answer = self._unless_another(first, announced[1:])
        if answer is not None and (
            unit := _UNIT_APART.search(self.prose, first.end, first.end + COPULA_REACH)
        ):
            answer = answer._replace(unit=unit[1])

        return True, answer

    def _unless_another(self, first: Quantity, others: Sequence[Quantity]) -> ProseAnswer | None:
        """The first number, unless it is one of a range, a choice or a calculation."""
        if _OPERATOR_BEHIND.match(self.prose, first.end):
            return None
        for other in others[:1]:
            between = self.prose[first.end : other.start]
            if _CHOICE_BEHIND.fullmatch(between) and not _equal(first, other):
                return None
            if _ABOUT.fullmatch(between) and not close(first.number, other.number):
                return None

        return _answer(first)

    def _value(self, start: int, end: int) -> ProseAnswer | None:
        """The value of a box or tag, which holds nothing else but perhaps its name, words and
        remarks.
        """
        content = self.prose[start:end]
        word = _YES_OR_NO.match(content)
        if word is not None and not content[word.end() :].strip(" \x1f\n."):
            return ProseAnswer(word[1], (start + word.start(1), start + word.end(1)))
        if "=" in content:
            return self._after_equals(start, end)
        inside = [
            quantity for quantity in self._inside(start, end) if not quantity.remark
        ] or self._inside(start, end)
        if not inside or not all(_equal(quantity, inside[0]) for quantity in inside):
            return None
        return self._unless_another(inside[0], ())

    def _inside(self, start: int, end: int) -> list[Quantity]:
        found = []
        for quantity in self.found:
            # the end of a sentence may be that of a unit: pct.
            ends = quantity.end <= end or self.prose[end : quantity.end] == "."
            if start <= quantity.start and ends:
                found.append(quantity)

        return found

    def _is_value(self, quantity: Quantity) -> bool:
        """Whether the words before a number say that it is the value."""
        return (
            COPULA.search(self.prose, max(0, quantity.start - COPULA_REACH), quantity.start)
            is not None
        )

    def _candidates(self, start: int, end: int) -> list[Quantity]:
        """The numbers of a sentence that could be meant: no years, days, labels, remarks, nor what
        the question has.
        """
        inside = []
        for quantity in self._inside(start, end):
            if quantity.part_of_word or (quantity.number, quantity.bare) in self._asked:
                continue
            near = max(0, quantity.start - 12)
            at_start = _LINE_START.search(self.prose, near, quantity.start)
            label = _LABELLED.search(self.prose, near, quantity.start)
            item = at_start and _ITEM_GOES_ON.match(self.prose, quantity.end)
            day = quantity.number <= 31 and _MONTH.search(self.prose, near, quantity.start)
            if not quantity.bare or not (label or item or day):
                inside.append(quantity)

        values = []
        for quantity in inside:
            opened = self.prose.count("(", start, quantity.start)
            if opened <= self.prose.count(")", start, quantity.start):
                values.append(quantity)

        found = []
        for quantity in values or inside:
            if not may_be_a_year(quantity) or self._is_value(quantity):
                found.append(quantity)

        return found

    def _of_sentence(self, start: int, end: int) -> ProseAnswer | None:
        candidates = self._candidates(start, end)
        emphasis = _EMPHASIS.finditer(self.text, start, end + 3)
        marked = [match.span() for match in emphasis]
        emphasised = []
        for quantity in candidates:
            if any(begin <= quantity.start < stop for begin, stop in marked):
                emphasised.append(quantity)

        if emphasised:
            return _one_of(emphasised)
        if "=" in self.prose[start:end] or "\u2248" in self.prose[start:end]:
            return self._after_equals(start, end)
        if answer := _one_of(candidates):
            return answer

        # The number of the main clause: "the 3 notes total 750, up from 700".
        values = [quantity for quantity in candidates if self._is_value(quantity)]
        if not values:
            return self._moved(candidates)
        last = values[-1]
        for earlier in values[:-1]:
            between = self.prose[earlier.end : last.start]
            concluded = _CONCLUSION.search(between) or _CONDITION.match(self.prose, start)
            if not _equal(earlier, last) and not concluded:
                return None

        at = last.end
        for later in candidates[candidates.index(last) + 1 :]:
            between = self.prose[at : later.start]
            from_to = between.strip(" \x1f$") == "to" and at != last.end
            compared = _COMPARES.search(between) is not None and _JOINS.search(between) is None
            if not _equal(later, last) and not (compared or from_to):
                return None
            at = later.end

        return _answer(last)

    def _moved(self, candidates: Sequence[Quantity]) -> ProseAnswer | None:
        """The only change of a sentence that otherwise says from where to where."""
        changes = []
        ends = []
        for quantity in candidates:
            before = self.prose[max(0, quantity.start - COPULA_REACH) : quantity.start]
            end = _END_OF_A_MOVE.search(before)
            if _MOVES.search(before):
                changes.append(quantity)
            elif end is None:
                return None
            else:
                ends.append(end[1].lower())

        if ends[:1] == ["to"] or ends[:1] == ["and"]:
            return None  # it may be where to
        return _one_of(changes)

    def _after_equals(self, start: int, end: int) -> ProseAnswer | None:
        """What follows the last `=`, if it is one value."""
        at = 1 + max(self.prose.rfind(sign, start, end) for sign in "=\u2248")
        following = []
        for quantity in self._inside(at, end):
            if not quantity.part_of_word:
                following.append(quantity)

        if not following or self.prose[at : following[0].start].strip(" \x1f$({[\\~>"):
            return None
        return self._unless_another(following[0], following[1:])

    def _by_equals(self, end: int) -> ProseAnswer | None:
        """The result of the last `=` before a place."""
        at = max(self.prose.rfind("=", 0, end), self.prose.rfind("\u2248", 0, end))
        if at < 0:
            return None
        line = self.prose.find("\n", at)
        stop = _SENTENCE_END.search(self.prose, at)
        ends = [
            len(self.prose),
            *([line] if line >= 0 else []),
            *([stop.start()] if stop is not None else []),
        ]
        return self._after_equals(at, min(ends))


def _currency_beside(text: str, start: int, end: int) -> str | None:
    r"""The currency that a number's own text, or the word before or behind it, names; `$` on both
    sides is LaTeX, and names none.
    """
    own, *rest = re.split("[0-9]", text[start:end], maxsplit=1)
    words = [own, *text[max(0, start - _WORD_REACH) : start].split(" ")[-2:]]
    behind = text[end : end + _WORD_REACH].split()[:1]
    if _DOLLAR.search(words[-1] + own) and _DOLLAR.search("".join([*rest, *behind])):
        words = [_DOLLAR.sub(" ", word) for word in words]
        behind = [_DOLLAR.sub(" ", word) for word in behind]
    for word in (*words, *behind):
        if currencies(word):
            return word.strip(" .,;:!*()\\-")

    return None


def _answer(quantity: Quantity) -> ProseAnswer:
    return ProseAnswer(quantity.answer, (quantity.start, quantity.end))


def _one_of(found: Sequence[Quantity]) -> ProseAnswer | None:
    """The only value of some numbers."""
    if not found or not all(_equal(quantity, found[0]) for quantity in found):
        return None
    return _answer(found[-1])


def _equal(a: Quantity, b: Quantity) -> bool:
    return abs(a.number - b.number) <= 1e-9 * abs(b.number)
