"""The warnings and notices of a report: each rule is a function, in the order of display.

A notice is what to know before reading a result, and stands above it; a warning says what may make
its numbers wrong, and stands below. Every face shows both, a terminal on its first screen, and JSON
under `notices` and `warnings`. To add one, write a function that yields its texts, and put it into
`NOTICES` or `WARNINGS`. It reads numbers from `known.summary`, and texts from `known.exchanges()`:

    def _refusals(known: Known) -> Iterator[str]:
        refused, replies = Counter(), Counter()
        for condition, turn, reply in known.exchanges():  # `turn.asked or turn.question`
            replies[condition] += 1
            refused[condition] += reply.text.startswith("I cannot")

        for condition in known.summary.accounts:
            if refused[condition] > _OFTEN_REFUSED * replies[condition]:
                of = plural(replies[condition], "reply", "replies")
                count = formats.count(refused[condition])
                yield f"{condition}: {count} of {of} begin with 'I cannot'"

The scores of single answers are in neither: `known.index` holds them.

Its test is in `tests/analysis/test_warnings.py`, where `answered` makes a run of given texts, and
`table` in `journals.py` one of given scores. Run `pytest tests/analysis tests/scorers
tests/test_corpus.py`, whose runs may get the warning, too, and tell users in
`changes/NAME.added.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from karat import formats
from karat.analysis.model import Difference, Result, Summary
from karat.analysis.parts import kind_of
from karat.analysis.server_news import server_news
from karat.analysis.unreadable import unreadable_counts, unreadable_notices
from karat.analysis.verdicts import (
    CONTEXT_KINDS,
    NO_VERDICT,
    ONLY_AHEAD,
    REHEARSED,
    few_clusters,
    judge_name,
    server_warnings,
)
from karat.formats import clean, plural
from karat.index import RunIndex
from karat.journal import RunFolder, server_changes
from karat.records import Answer, Metric, Reply, Turn

_OFTEN_CUT = 0.03  # of the answers
_FEW_QUESTIONS = 6  # fewer cannot show a difference
_ENOUGH_TO_DIFFER = 10  # judgements of one value from which on a judge is named

_answer = msgspec.json.Decoder(Answer).decode


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """All that a rule may read."""

    run: RunFolder
    index: RunIndex
    shown: Mapping[str, str]  # scorer → scoring
    waiting: int  # answers whose scorer waits for others
    rule_unknown: str | None  # why the rule by which the run read answers is unknown
    summary: Summary  # without warnings and notices

    def exchanges(self) -> Iterator[tuple[str, Turn, Reply]]:
        """Condition, question and reply of each turn that was asked, for all answers that count.

        It reads the journal again, in a fifth of the time that the summary takes.
        """
        conditions = list(self.index.conditions)
        turns = [sample.turns for sample in self.run.samples()]
        for cell, answer in self.index.answer_lines(_answer):
            row, condition, _ = self.index.place(cell)
            asked = turns[self.index.sample_lines[row]]
            for turn, reply in zip(asked, answer.replies, strict=False):  # some may end early
                if not reply.absent:
                    yield conditions[condition], turn, reply

    def compared(self) -> tuple[list[Result], list[str], list[Difference]]:
        """The results of compared metrics, the conditions without any score, and the differences
        between the others.
        """
        summary = self.summary
        keys = {info.key for info in summary.metrics if info.compared is not False}
        results = [result for result in summary.results if result.metric in keys]
        answers = dict.fromkeys((result.condition for result in results), 0)
        for result in results:
            answers[result.condition] += result.n_answers

        if not kind_of(summary.kind).compared:
            return [], [], []
        if not any(answers.values()):
            return results, [], []
        empty = [condition for condition, count in answers.items() if not count]
        differences = []
        for pair in summary.differences:
            if pair.a not in empty and pair.b not in empty:
                differences.append(pair)

        return results, empty, differences


Rule = Callable[[Known], Iterable[str]]


# --- what conditions offer, and servers -----------------------------------------------------------


def _servers_not_used(known: Known) -> Iterator[str]:
    """The conditions whose scores say nothing about their MCP servers."""
    gates = (
        "`require_mcp_tool_use` and `require_mcp_tool_success` of the condition make such answers "
        "failures"
    )
    problems = known.summary.server_problems
    for problem, text in zip(problems, server_warnings(problems), strict=True):
        if problem.answers or problem.calls:
            yield f"{text} (see Failures); {gates}"
        else:
            yield text


def _offered_in_vain(known: Known) -> Iterator[str]:
    """What conditions offer and no answer used, without what `_servers_not_used` says."""
    silent = {problem.condition for problem in known.summary.server_problems if not problem.calls}
    measured = known.run.widened_info().measures_calls
    for use in known.summary.contexts:
        if use.used != 0 or not use.answers or (use.kind == "server" and use.condition in silent):
            continue
        if measured and use.only_failed:
            continue
        answers = plural(use.answers, "answer")
        name = f"its {CONTEXT_KINDS[use.kind]} '{clean(use.name)}'"
        did = f"never used {name} in {answers}"
        if use.only_failed:
            did = (
                f"called {name} in {formats.count(use.only_failed)} of {answers}, and every call "
                f"failed"
            )

        yield (
            f"{use.condition}: {did}, so its scores show the effect of offering it, not of using it"
        )


def _servers_changed(known: Known) -> Iterator[str]:
    """The servers that were not the same all the time, or did not answer, unless the failures
    mention them or a later part ran without them.
    """
    run = known.run
    summary = known.summary
    info = run.widened_info()
    if not info.servers:
        return
    for _, text in server_changes(info.servers, run.changed_servers()):
        yield clean(f"{text}; answers of both parts are not alike")

    yield from map(clean, server_news(info.servers, run.server_events()))
    examples = []
    for failure in summary.failures:
        if failure.trials:
            examples.append(failure.example)

    for server in info.servers:
        if not server.fault or any(
            text == server.fault or f"'{server.name}'" in text for text in examples
        ):
            continue

        users = [name for name, servers in info.condition_servers.items() if server.name in servers]
        ledgers = []
        for name in users:
            if name in summary.accounts:
                ledgers.append(summary.accounts[name].ledger)

        if not ledgers or any(ledger.infrastructure or ledger.not_run for ledger in ledgers):
            yield f"MCP server '{server.name}' did not answer: {clean(server.fault)}"


# --- where the answers come from ------------------------------------------------------------------


def _unannounced(known: Known) -> Iterator[str]:
    """Metrics that a scorer returned without announcing them, which karat allowed in 2026 (format
    1).
    """
    index = known.index
    for info in known.run.scorers():
        rows = index.scores.get((info.name, info.scoring))
        nothing = info.metrics == (Metric(name=info.name),)  # it announces none
        if rows is None or nothing or index.newest.get(info.name) != info.scoring:
            continue
        announced = []
        for metric in info.metrics:
            announced.append(metric.name)

        if others := sorted(set(rows.values) - set(announced)):
            yield clean(
                f"scorer '{info.name}' announces {', '.join(announced)} but gave "
                f"{', '.join(others)}, "
                f"of which karat does not know which way is better: higher is taken as better; "
                f"correct the scorer and score the run again"
            )


def _not_real(known: Known) -> Iterator[str]:
    """How the answers differ from those of the real agent, judge or servers."""
    info = known.run.info
    if info.rehearsed:
        yield REHEARSED
    if (replay := info.experiment.get("mcp.replay")) is not None:
        yield (
            f"MCP servers were not asked: their answers and latencies come from the recording "
            f"'{clean(str(replay.value))}'"
        )

    for key in ("notes", "faults"):
        if info.source.get(key):
            yield clean(info.source[key])


# --- what the numbers leave out -------------------------------------------------------------------


def _not_complete(known: Known) -> Iterator[str]:
    """Trials that were not run, and answers that were not scored."""
    info = known.run.info
    status = known.summary.status
    waiting = known.waiting
    ledger = known.summary.total.ledger
    if status != "done" and ledger.not_run:
        left = f"{plural(ledger.not_run, 'trial')} not run"
        if info.shard is not None:
            left += ", those of other shards included"
        yield f"the run is not complete (status: {status}; {left}): the numbers will change"
        return

    if not ledger.not_run:
        if status != "done" and "incomplete" not in info.source:
            yield f"every trial was run, but the run did not end by itself (status: {status})"
        return

    if info.shard is not None:
        why = (
            f"not in this run, which is shard {info.shard} (`karat runs merge` puts shards "
            f"together)"
        )
    elif info.imported:
        why = "without a result in the imported files"
    else:
        why = "not run, because the last part was a selection"

    answered = sum(tally.answered for tally in known.index.tallies)
    unscored = answered - ledger.scored - ledger.judge - waiting
    unasked = ledger.not_run - unscored - waiting
    parts = []
    if unasked:
        parts.append(f"{plural(unasked, 'trial')} {why}")
    if unscored:
        parts.append(f"{plural(unscored, 'answer')} not scored, because the scoring was stopped")
    if waiting:
        other = "because the answer to compare with is missing"
        parts.append(f"{plural(waiting, 'answer')} not compared, {other}")

    yield f"{'; '.join(parts)}: the numbers will change"


def _left_out(known: Known) -> Iterator[str]:
    """Events of the journal that do not count."""
    index = known.index
    if index.duplicates:
        yield f"{plural(index.duplicates, 'answer')} came after the one that counts: left out"
    if index.outside_plan:
        yield f"{plural(index.outside_plan, 'event')} of trials outside the plan: left out"
    if index.foreign_lines:
        lines = plural(index.foreign_lines, "line")
        yield f"{lines} of the journal not as karat writes them: left out"

    if endless := sum(rows.too_large for rows in index.scores.values()):
        yield f"{plural(endless, 'score')} too large to be added up (beyond 1e100): left out"
    if index.orphan_scores:
        yield f"{plural(index.orphan_scores, 'score')} of trials without an answer: left out"


def _of_kind(known: Known) -> Iterator[str]:
    """What the kind of dataset warns of."""
    summary = known.summary
    if not kind_of(summary.kind).is_installed:
        yield (
            f"the kind of dataset '{clean(summary.kind)}' is not installed: a report shows ledger, "
            f"cost and scores as means over samples, and nothing that only the kind knows"
        )

    for part in summary.parts.values():
        if known.rule_unknown is not None:
            yield known.rule_unknown
        yield from part.warning_lines()


# --- what comparisons leave out -------------------------------------------------------------------


def _without_numbers(known: Known) -> Iterator[str]:
    """Metrics that lack a number for some scored answers, all conditions together; equal counts are
    merged.
    """
    results = known.compared()[0]
    scored = known.summary.total.ledger.scored
    if not kind_of(known.summary.kind).loss_bounds:
        return
    numbers: dict[str, int] = {}
    for result in results:
        numbers[result.metric] = numbers.get(result.metric, 0) + result.n_answers

    alike: dict[int, list[str]] = {}
    for metric, there in numbers.items():
        if there < scored:
            alike.setdefault(scored - there, []).append(metric)

    for missing, metrics in alike.items():
        of = plural(scored, "scored answer")
        yield (
            f"{formats.some_of(metrics)}: the scorer gave no number for {formats.count(missing)} "
            f"of {of}"
        )


def _not_compared(known: Known) -> Iterator[str]:
    """Conditions without scores, and pairs that lost more questions on one side; metrics with the
    same losses are merged.
    """
    _, empty, differences = known.compared()
    for name in empty:
        yield f"{name}: no score on any metric, so it is compared with nothing"

    alike: dict[tuple[str, str, int, int], list[str]] = {}
    for pair in differences:
        if pair.lost_a != pair.lost_b:
            alike.setdefault((pair.a, pair.b, pair.lost_a, pair.lost_b), []).append(pair.metric)

    for (a, b, lost_a, lost_b), metrics in alike.items():
        lost = plural(lost_a + lost_b, "question")
        sides = f"{lost_a} without a score under {a}, {lost_b} under {b}"
        yield (
            f"{b} against {a} on {_few(metrics)}: {lost} lost ({sides}); the compared parts "
            f"may differ"
        )


def _uneven(known: Known) -> Iterator[str]:
    """Metrics that lack more scores under one condition; where bounds say what that may hide."""
    if not kind_of(known.summary.kind).loss_bounds:  # missing turns count as wrong
        return
    results, empty, _ = known.compared()
    if not any(result.n_answers for result in results):
        return
    missing: dict[str, dict[str, int]] = {}
    for result in results:
        if result.condition not in empty:
            missing.setdefault(result.metric, {})[result.condition] = result.n_missing

    alike: dict[tuple[tuple[str, int], ...], list[str]] = {}
    for metric, counts in missing.items():
        if len(set(counts.values())) > 1:
            alike.setdefault(tuple(counts.items()), []).append(metric)

    for pattern, metrics in alike.items():
        listed = ", ".join(f"{condition} {count}" for condition, count in pattern)
        yield f"scores are missing unevenly on {_few(metrics)} ({listed}): see the bounds"


def _weak_verdicts(known: Known) -> Iterator[str]:
    """Leads that lost trials may explain; too few clusters or questions."""
    compared = known.compared()[2]
    if any(pair.verdict.endswith(ONLY_AHEAD) for pair in compared):
        again = "`karat run FILE --resume RUN --retry-failed` asks the lost trials again"
        if known.run.info.imported:
            again = "import files that hold them"
        yield f"a lead that lost trials may explain is not called a win: {again}"

    without = next((pair.reason for pair in compared if pair.verdict == NO_VERDICT), None)
    clustered = []
    for pair in compared:
        if pair.clusters is not None:
            clustered.append(pair)

    if without is not None:
        yield f"no verdict: {without}; add questions from other documents or sources"
    elif clustered and (few := few_clusters(clustered)):
        yield few

    most = max((pair.n_pairs for pair in compared), default=_FEW_QUESTIONS)
    if most < _FEW_QUESTIONS:
        yield (
            f"{plural(most, 'shared question')}: too few to show a difference safely; add questions"
        )


def _few(metrics: Sequence[str]) -> str:
    if len(metrics) == 1:
        return metrics[0]
    return f"{len(metrics)} metrics"


# --- notices --------------------------------------------------------------------------------------


def _missing_parts(known: Known) -> Iterator[str]:
    yield from known.run.gap_notices()
    if left := known.run.info.source.get("incomplete"):  # what imported files state, and lack
        yield f"Not the whole run: {left}"


def _judges_without_differences(known: Known) -> Iterator[str]:
    """Judges that gave one value to everything: they may not tell a right answer from a wrong
    one.
    """
    index = known.index
    for name, scoring in known.shown.items():
        scorer = index.scorers.get(scoring)
        rows = index.scores.get((name, scoring))
        # a damaged journal may not name its scorer
        if rows is None or scorer is None or not scorer.provenance:
            continue
        import numpy as np

        names = {code: name for name, code in rows.names.items()} or {-1: judge_name(scorer)}
        values = np.array(list(rows.values.values()))
        codes = np.array(rows.judges)
        for code, judge in names.items():
            scored = values[:, codes == code]
            given = scored[~np.isnan(scored)]
            if scored.shape[1] >= _ENOUGH_TO_DIFFER and np.unique(given).size == 1:
                judgements = plural(scored.shape[1], "judgement")
                yield (
                    f"{judge} gave {formats.brief(given[0])} in all {judgements}: alike answers, "
                    f"or it cannot rate them (see `karat label`)"
                )


def _spoiled(known: Known) -> Iterator[str]:
    """Answers that cannot be read, and conditions in which many were cut at a limit of tokens; they
    are scored as they are.
    """
    yield from unreadable_notices(unreadable_counts(known.index, known.shown))
    often = []
    for name, account in known.summary.accounts.items():
        if account.cut and account.cut >= _OFTEN_CUT * account.attempts.answered:
            answered = formats.count(account.attempts.answered)
            often.append(f"{formats.count(account.cut)} of {answered} of {name}")

    if often:
        yield (
            f"Answers were cut at the token limit, and scored as they are: {', '.join(often)}; "
            f"raise the agent's `max_tokens`"
        )


def _notices_of_kind(known: Known) -> Iterator[str]:
    for part in known.summary.parts.values():
        yield from part.notices()


WARNINGS: tuple[Rule, ...] = (
    _servers_not_used,
    _offered_in_vain,
    _servers_changed,
    _unannounced,
    _not_real,
    _not_complete,
    _left_out,
    _of_kind,
    _without_numbers,
    _not_compared,
    _uneven,
    _weak_verdicts,
)

NOTICES: tuple[Rule, ...] = (
    _missing_parts,
    _judges_without_differences,
    _spoiled,
    _notices_of_kind,
)


def texts(rules: Iterable[Rule], known: Known) -> tuple[str, ...]:
    """What the rules say, in their order."""
    return tuple(text for rule in rules for text in rule(known))
