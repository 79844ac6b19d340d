"""The columns of every table: type and meaning.

A promise: columns may be added, but never removed or changed.
"""

from __future__ import annotations

from collections.abc import Sequence

from karat import kinds
from karat.errors import BadPlugin
from karat.journal import RunFolder
from karat.kinds import Column, TableInfo

Runs = RunFolder | Sequence[RunFolder]


def opened(runs: Runs) -> Sequence[RunFolder]:
    """One run or several, as a sequence."""
    if isinstance(runs, RunFolder):
        return (runs,)
    return runs


def tables_of(runs: Runs) -> dict[str, TableInfo]:
    """The tables of runs by name, in display order: first those of every run, then those of their
    kinds.

    Raises BadPlugin if a kind's table has the same name as another.
    """
    tables = dict(TABLES)
    for name in dict.fromkeys(run.info.kind for run in opened(runs)):
        for table in kinds.of(name).tables:
            if table.name in tables:
                raise BadPlugin(f"kinds: {name}", f"there are two tables called '{table.name}'")
            tables[table.name] = _of_runs(table.name, table.rows, (*_PLACE, *table.columns, *_LINE))

    return tables


def _of_runs(name: str, rows: str, columns: Sequence[Column]) -> TableInfo:
    return TableInfo(name=name, rows=rows, columns=(*_RUN, *columns))


def _columns(*rows: tuple[str, str, str]) -> tuple[Column, ...]:
    return tuple(Column(name=name, type=type_, meaning=meaning) for name, type_, meaning in rows)


_RUN = _columns(("run", "text", "name of the run's folder"))
_PLACE = _columns(
    ("trial", "text", "id of the trial; the same in every table"),
    ("sample", "text", "id of the sample"),
    ("condition", "text", "name of the condition"),
    ("repetition", "whole", "which repetition, from 0"),
)
_TOKENS = _columns(
    ("input_tokens", "whole", "as the provider reports"),
    ("output_tokens", "whole", "as the provider reports"),
    ("cache_read_tokens", "whole", "as the provider reports"),
    ("cache_write_tokens", "whole", "as the provider reports"),
    ("reasoning_tokens", "whole", "as the provider reports"),
)
_LINE = _columns(("line", "whole", "line of journal.jsonl, from 1"))

_SAMPLES = TableInfo(
    name="samples",
    rows="one row per planned sample",
    columns=_columns(
        ("sample", "text", "id of the sample"),
        ("position", "whole", "place in the dataset, from 0"),
        ("turns", "whole", "how many turns it has"),
        ("question", "text", "the question; several turns are separated by an empty line"),
        ("golden", "text", "the golden answer, in the same way; NULL: there is none"),
        ("weight", "number", "how many samples it stands for, relative to the others"),
        (
            "metadata",
            "text",
            "further columns of the dataset, as a JSON object: metadata->>'topic'",
        ),
    ),
)
_TRIALS = TableInfo(
    name="trials",
    rows="one row per planned trial",
    columns=(
        Column(
            name="trial",
            type="text",
            meaning="id of the trial; NULL: the journal has nothing of it",
        ),
        *_PLACE[1:],
        *_columns(
            ("position", "whole", "place of the sample in the dataset, from 0"),
            (
                "outcome",
                "text",
                "as in the ledger: scored, agent, infrastructure, judge, limit, not_run or decided",
            ),
            ("answer", "text", "the agent's last text; NULL: no answer"),
            ("turns", "whole", "how many turns were answered; NULL: no answer"),
            ("tool_calls", "whole", "how many tools the answer called; NULL: no answer"),
            ("attempts", "whole", "how many it took, including this one; NULL: no answer"),
            ("seconds", "number", "from question to answer; NULL: no answer"),
            ("started", "text", "UTC, ISO 8601; NULL: no answer, or not recorded"),
            (
                "dollars",
                "number",
                "for the answer alone; NULL: not known for every turn, or no answer",
            ),
            (
                "not_kept",
                "text",
                "what it left in its workspace that could not be kept, and why; NULL: nothing",
            ),
        ),
        *(
            Column(
                name=token.name,
                type=token.type,
                meaning="over the answer's turns; NULL: not reported, or no answer",
            )
            for token in _TOKENS
        ),
        Column(
            name="line",
            type="whole",
            meaning="line of the answer in journal.jsonl, from 1; NULL: no answer",
        ),
    ),
)
_REPLIES = TableInfo(
    name="replies",
    rows="one row per turn that the agent answered, for the answers that count",
    columns=(
        *_PLACE,
        *_columns(
            ("turn", "whole", "from 0"),
            ("question", "text", "what was asked in this turn"),
            ("golden", "text", "its golden answer; NULL: it has none"),
            ("text", "text", "the agent's text"),
            ("answer", "text", "the short answer, if the agent gives one separately"),
            ("unit", "text", "its unit, if given separately"),
            ("program", "text", "its program, if given separately"),
            ("reasoning", "text", "the agent's reasoning, if it shows it"),
            ("model", "text", "which model answered; NULL: not reported"),
            ("stop_reason", "text", "why it stopped; NULL: not reported"),
            (
                "responses",
                "whole",
                "responses of the model, with tool calls in between; NULL: not reported",
            ),
            ("tool_calls", "whole", "how many tools it called"),
            ("milliseconds", "number", "how long it took; NULL: not reported"),
            ("dollars", "number", "0: it was free; NULL: not known"),
        ),
        *_TOKENS,
        *_LINE,
    ),
)
_TOOL_CALLS = TableInfo(
    name="tool_calls",
    rows="one row per tool call, for the answers that count",
    columns=(
        *_PLACE,
        *_columns(
            ("turn", "whole", "from 0"),
            ("call", "whole", "which call of the turn, from 0"),
            ("server", "text", "MCP server; NULL: not an MCP tool"),
            ("tool", "text", "name of the tool"),
            ("input", "text", "its arguments, as a JSON object: input->>'query'"),
            ("result", "text", "NULL: it failed, or the result was not seen"),
            ("error", "text", "NULL: it succeeded"),
            ("milliseconds", "number", "NULL: not reported"),
        ),
        *_LINE,
    ),
)
_CONTEXTS = TableInfo(
    name="contexts",
    rows=(
        "one row per answer that counts and per offer of its condition: an MCP server, a skill, a "
        "plug-in"
    ),
    columns=(
        *_PLACE,
        *_columns(
            ("kind", "text", "server, skill or plugin"),
            ("name", "text", "its name"),
            (
                "used",
                "truth",
                (
                    "whether a call of it succeeded; NULL: not known, the agent may not report "
                    "its calls"
                ),
            ),
            ("calls", "whole", "how many calls of it the answer reports"),
            ("failed_calls", "whole", "how many of them failed"),
        ),
        *_LINE,
    ),
)
_EXPECTED_TOOLS = TableInfo(
    name="expected_tools",
    rows="one row per answer, scorer `trajectory` and tool that is expected or was called, "
    "for answers with expected tools",
    columns=(
        *_PLACE,
        *_columns(
            ("scorer", "text", "name of the scorer"),
            ("tool", "text", "as spelt in the expectation; else with its server before a dot"),
            ("expected", "truth", "whether it should be called"),
            ("called", "truth", "whether it was"),
        ),
        *_LINE,
    ),
)
_SCORES = TableInfo(
    name="scores",
    rows="one row per number from a scorer: per trial, turn, judge, repeat and metric",
    columns=(
        *_PLACE,
        *_columns(
            ("scorer", "text", "name of the scorer"),
            (
                "scoring",
                "text",
                "digest of scorer, options, rubric and judge; the newest, or that of --scoring",
            ),
            ("turn", "whole", "from 0; NULL: the whole answer"),
            ("judge", "text", "which judge of a panel; NULL: not named"),
            ("repeat", "whole", "which repeat of the judge, from 0"),
            ("metric", "text", "name of the metric"),
            (
                "value",
                "number",
                "true is 1, false is 0; NULL: could not be scored, counts as missing",
            ),
            ("reason", "text", "why, in the scorer's words; NULL: not reported"),
            ("offline", "truth", "whether a rule gave it, not a model that understands"),
            (
                "claims",
                "texts",
                "helpful details that the judge could not confirm, for the whole row",
            ),
            (
                "labels",
                "text",
                "categories, e.g. a diagnosis, as a JSON object: labels->>'diagnosis'",
            ),
        ),
        *_LINE,
    ),
)
_FAILURES = TableInfo(
    name="failures",
    rows="one row per failed attempt, and one per failure that ended a trial or a scoring",
    columns=(
        _PLACE[0],
        *(
            Column(name=at.name, type=at.type, meaning=f"{at.meaning}; NULL: not reported")
            for at in _PLACE[1:]
        ),
        *_columns(
            ("stage", "text", "preflight, agent or score"),
            ("class", "text", "agent, infrastructure, judge or limit"),
            ("kind", "text", "timeout, rate_limit, crash, …"),
            ("message", "text", "the error message"),
            ("attempt", "whole", "which attempt, from 1; NULL: the failure that ended the trial"),
            (
                "stands",
                "truth",
                "whether the trial ended with this one; false: a later attempt, or run, succeeded",
            ),
            ("retriable", "truth", "whether a later attempt could succeed"),
            ("scorer", "text", "which scorer, if the stage is score; NULL: not reported"),
            ("dollars", "number", "cost of the failed attempt; NULL: not known, or no attempt"),
            ("seconds", "number", "duration of the failed attempt; NULL: not known, or no attempt"),
        ),
        *_LINE,
    ),
)

_LEDGER = TableInfo(
    name="ledger",
    rows=(
        "how trials and attempts ended: one row per condition, and one for the whole run, whose "
        "condition is NULL"
    ),
    columns=_columns(
        (
            "condition",
            "text",
            "its name; NULL: the whole run, with the attempts of trials that have not ended",
        ),
        ("planned", "whole", "planned trials; the next seven sum to it"),
        ("scored", "whole", "trials that were scored"),
        ("agent", "whole", "trials that failed because of the agent"),
        ("infrastructure", "whole", "trials that failed because of the infrastructure"),
        ("judge", "whole", "trials that failed because of a scorer"),
        ("limit", "whole", "trials that ended at a limit"),
        ("not_run", "whole", "trials that have not ended"),
        ("decided", "whole", "trials not run because the comparison was decided without them"),
        ("attempts", "whole", "attempts to answer; the next three sum to it"),
        ("answered_attempts", "whole", "attempts that gave an answer"),
        ("failed_attempts", "whole", "attempts that failed"),
        ("unfinished_attempts", "whole", "attempts that broke off after a turn was answered"),
        (
            "lost_dollars",
            "number",
            "cost of attempts without an answer, as far as prices are known",
        ),
        ("lost_unknown", "whole", "calls of these attempts whose price is not known"),
    ),
)

TABLES: dict[str, TableInfo] = {
    table.name: _of_runs(table.name, table.rows, table.columns)
    for table in (
        _TRIALS,
        _REPLIES,
        _TOOL_CALLS,
        _CONTEXTS,
        _EXPECTED_TOOLS,
        _SCORES,
        _FAILURES,
        _LEDGER,
        _SAMPLES,
    )
}
"""The tables of every run: name → table, in display order."""
