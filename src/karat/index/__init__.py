"""The index: the one reader of a run's journal.

The journal is the truth and is read line by line, in one pass, by `read_index`. What counts is decided once, by the
pure functions of `rules`. Everything that shows or continues a run asks the index: summary and comparison
(`karat.analysis`), reports and exports, `karat query`, resuming and scoring again, recorded answers.

**In memory.** `RunIndex` keeps columns (arrays of numbers) and no texts:

* by cell, which is a planned trial (sample × condition × repetition): whether it is answered, where its answer
  begins in the journal (a byte), whether it took several attempts, which failure ended it;
* by scoring, and in it by score row (`ScoreRows`): cell, turn, judge, repeat, the metrics' values, the byte, and
  which rows have labels and unverified claims;
* by answer and tool that it called (`CallRows`): cell, tool and whether a call succeeded;
* by failure and failed attempt (`Places`): cell and byte;
* by trial that has no answer (`OpenTrial`): what it cost, and the conversation that a next attempt resumes from;
* by condition (`Tally`): money, tokens, latencies and MCP calls, added up. Dollars are kept one by one and summed
  exactly, so the order in which trials ended cannot change the last digit.

A million answers with a million scores take 60 MB, and while they are read 200 MB more for the trials' ids.

**Texts** stay in the journal: `RunIndex.lines` reads lines again by their bytes, `answer_lines` and `score_lines`
those of one kind in the journal's order. A kind of dataset that needs more than numbers (the diagnosis of a turn, the
answers of a participant) gives its own decoder to these two, so it reads exactly the lines that count.

**Lines** are decoded by msgspec into structs that name only the fields in use (`lines`). Their checksums are
checked when they are first read. A damaged line raises BadRun with its number and what to do about it; hostile values
become BadRun at `trusted`. Nothing in a run folder is executed. A torn last line is not there yet.

**Kept.** Of a run that has ended and whose journal has 64 MB, `cache` keeps files in the user's cache, for exactly this
state of the run and this version of the code: the index (`stored`), which `read_index` then takes instead of reading
the journal, and the summary (`karat.analysis.cached`). `karat query` makes tables of the index's columns where a query
names no others.

**Followed.** `RunIndex.follow` reads what a journal has gained and passes over damaged lines: for who shows a run while
it runs. Each viewer keeps its own index in memory (`karat.viewer.live_index`): its first list of a large run reads the
journal again.
"""

from __future__ import annotations

from karat.index.lines import FailureLine, LineReader
from karat.index.rules import PartialConversation, PartialScorings, trial_value, turn_values
from karat.index.run_index import (
    FailureCount,
    FailureGroup,
    OpenTrial,
    RunIndex,
    ScoreRows,
    plan_of,
    trusted,
)
from karat.index.spending import CallRows, Calls, Tally
from karat.index.stored import read_index

__all__ = [
    "CallRows",
    "Calls",
    "FailureCount",
    "FailureGroup",
    "FailureLine",
    "LineReader",
    "OpenTrial",
    "PartialConversation",
    "PartialScorings",
    "RunIndex",
    "ScoreRows",
    "Tally",
    "plan_of",
    "read_index",
    "trial_value",
    "trusted",
    "turn_values",
]
