"""Conversations that broke off: what was answered before is as right or wrong as anywhere else.

Scorers see whole answers only, and a trial that ended in a failure has none. The turns that
the agent did answer stand in the journal, and the matches of `karat.numeric` are all that
the accuracies need. There is no diagnosis and no reading of their programs.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Literal, Protocol

import msgspec

from karat.journal import RunFolder
from karat.numeric import MATCHES, extract, match, stated
from karat.records import Usage

__all__ = ["HeardReply", "Matcher", "matcher_of", "reply_of"]


class _Reply(Protocol):
    @property
    def text(self) -> str: ...
    @property
    def answer(self) -> str | None: ...
    @property
    def unit(self) -> str | None: ...


class HeardReply(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is needed of a reply."""

    text: str
    answer: str | None = None
    unit: str | None = None
    usage: Usage | None = None
    milliseconds: float | None = None


class Matcher(msgspec.Struct, frozen=True, kw_only=True):
    """Compares a reply with the golden answer as the scorer `numeric` does."""

    extract: Literal["json", "last_number"]

    def values(self, golden: str | None, printed: str | None, reply: _Reply) -> dict[str, bool | None]:
        """Match → whether it holds; None for all of them without a golden answer."""
        if golden is None:
            return dict.fromkeys(MATCHES)
        said = stated(reply.text, answer=reply.answer, unit=reply.unit, take=partial(extract, how=self.extract))
        found = match(golden, said.answer, declared_unit=said.unit, printed=printed)
        values: dict[str, bool | None] = {name: getattr(found, name) for name in MATCHES}
        return values if printed is not None else values | {"printed": None}


def matcher_of(run: RunFolder, scorer: str, scoring: str) -> Matcher | None:
    """With the options of that scoring.

    None where they ask for a regular expression: one that a run folder names is not run.
    """
    options: Mapping[str, object] = next(
        (one.options for one in run.scorers() if (one.name, one.scoring) == (scorer, scoring)), {}
    )
    extract = options.get("extract", "json")
    return Matcher(extract=extract) if extract == "json" or extract == "last_number" else None


class _ReplyEvent(msgspec.Struct, gc=False):
    reply: HeardReply


_event = msgspec.json.Decoder(_ReplyEvent).decode


def reply_of(line: bytes) -> HeardReply:
    """The reply in a line of the event `reply`."""
    return _event(line).reply
