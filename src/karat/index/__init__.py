"""The index: the only reader of a run's journal.

The journal is the source of truth. `read_index` reads it line by line, in one pass, and the pure
functions in `rules` decide once what counts. Everything that shows or continues a run uses the
index: summary and comparison (`karat.analysis`), reports and exports, `karat query`, resuming and
scoring again, recorded answers.

**In memory.** `RunIndex` keeps columns (arrays of numbers) and no texts:

* per cell, which is a planned trial (sample × condition × repetition): whether it is answered,
  where its answer starts in the journal (a byte), whether it took several attempts, which failure
  ended it;
* per scoring and score row (`ScoreRows`): cell, turn, judge, repeat, the metrics' values, the byte,
  and which rows have labels and unverified claims;
* per answer and tool that it called (`CallRows`): cell, tool and whether a call succeeded;
* per failure and failed attempt (`Places`): cell and byte;
* per trial without an answer (`OpenTrial`): what it cost, and the conversation that a next attempt
  resumes from;
* per condition (`Tally`): totals of money, tokens, latencies and MCP calls. Dollars are kept one by
  one and summed exactly, so the order in which trials ended cannot change the last digit.

A million answers with a million scores take 60 MB, plus 200 MB for the trials' ids while they are
read.

**Texts** stay in the journal: `RunIndex.lines` reads lines again by their bytes; `answer_lines` and
`score_lines` read those of one kind in the journal's order. A kind of dataset that needs more than
numbers (the diagnosis of a turn, the answers of a participant) passes its own decoder to these two,
so it reads exactly the lines that count.

**Lines** are decoded by msgspec into structs that name only the fields in use (`lines`). Their
checksums are checked when they are first read. A damaged line raises BadRun with its number and
what to do about it; `trusted` turns errors from hostile values into BadRun. Nothing in a run folder
is executed. An incomplete last line is ignored.

**Cached.** For a run that has ended and whose journal has 64 MB, `cache` stores files in the user's
cache, valid for exactly this state of the run and this version of the code: the index (`stored`),
which `read_index` then loads instead of reading the journal, and the summary
(`karat.analysis.cached`). If a query needs only columns of the index, `karat query` makes its
tables from these.

**Followed.** To show a run while it runs, `RunIndex.follow` reads what the journal has gained and
skips damaged lines. Each viewer keeps its own index in memory (`karat_viewer.live_index`), so its
first list of a large run reads the journal again.
"""

from __future__ import annotations

from karat.index.lines import FailureLine, LineReader
from karat.index.rules import PartialAnswer, PartialScorings, trial_value, turn_values
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
    "PartialAnswer",
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
