"""A model's thoughts, which some servers leave in its text."""

from __future__ import annotations

import re

_THOUGHTS = r"(?:think|thinking|thought|thoughts|reasoning|scratchpad)"
_OPENS = re.compile(
    rf"<(?:\w{{1,20}}:)?{_THOUGHTS}(?:\s[^<>\n]{{0,80}})?>|\[{_THOUGHTS}\]|◁think▷|<\|channel\|>\s{{0,4}}analysis\b(?:<\|message\|>)?",
    re.IGNORECASE,
)
_CLOSES = re.compile(
    rf"</(?:\w{{1,20}}:)?{_THOUGHTS}\s{{0,4}}>|\[/{_THOUGHTS}\]|◁/think▷"
    r"|(?:<\|end\|>)?(?:<\|start\|>assistant)?<\|channel\|>\s{0,4}final\s{0,4}<\|message\|>",
    re.IGNORECASE,
)


def spoken(text: str) -> str:
    """The text after a model's thoughts. Some servers include them, with or without the opening
    tag.

    Thoughts that do not end mean a reply that was cut off before an answer.

    >>> spoken("<think>choice: B?</think>\\nchoice: A"), spoken("<think>Hmm, choice: B")
    ('\\nchoice: A', '')
    """
    return parted(text)[0]


def without_thoughts(text: str, *, cut: bool) -> tuple[str, str | None]:
    """The answer and the thoughts in it, which a server may leave in the text; None: there are
    none. A thought that does not end and that nothing cut off only names a tag.
    """
    answer, thought, unfinished = parted(text)
    if answer == text or (unfinished and not cut):
        return text, None
    return answer.strip(), thought.strip() or None


def parted(text: str) -> tuple[str, str, bool]:
    """What `spoken` gives, the thoughts, and whether the text ends within these.

    >>> parted("Yes. <think>Or no?</think>"), parted("Hm.</think>Yes."), parted("<think>Or")
    (('Yes. ', 'Or no?', False), ('Yes.', 'Hm.', False), ('', 'Or', True))
    """
    if "<|channel|>" in text:
        text = text.rstrip().removesuffix("<|return|>").removesuffix("<|end|>")
    answers: list[str] = []
    thoughts: list[str] = []
    at, thinks = 0, False  # a closing mark without an opening one also ends thoughts
    for mark in sorted([*_OPENS.finditer(text), *_CLOSES.finditer(text)], key=re.Match.start):
        opens = _OPENS.fullmatch(mark[0]) is not None
        if opens and not thinks:
            answers.append(text[at : mark.start()])
        else:
            thoughts.append(text[at : mark.start()])
        at, thinks = mark.end(), opens

    (thoughts if thinks else answers).append(text[at:])
    return "".join(answers), "".join(thoughts), thinks
