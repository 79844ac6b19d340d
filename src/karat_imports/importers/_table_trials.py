"""The rows of a table as trials: which sample, condition and repetition each is, and its result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from shlex import quote
from statistics import fmean

import msgspec

from karat.documents.answers import (
    Copies,
    Repetitions,
    condition_columns,
    conditions_of,
    key_of,
    mostly_copies,
    repetition_value,
    sample_columns,
    says_failed,
    whole_id,
)
from karat.documents.attempts import Attempts
from karat.documents.batches import Batch, Table
from karat.documents.candidates import FOUND_IN
from karat.documents.cells import dialogue, only_text
from karat.documents.columns import MISSING, NumberedRow, are_messages, cell, score_in, without
from karat.documents.doubts import is_error_of_service
from karat.documents.factors import Factor, factors_in, like_conditions, parting
from karat.documents.names import SAID, is_measure, repeats, roles_of, word_set, words_of
from karat.documents.results import numbered_runs
from karat.documents.sentences import says_not_judged
from karat.formats import excerpt, plural, some_of, text_of
from karat.hashes import Tally
from karat.importers import Findings, ImportedFailure, ImportedScore, ImportedTrial
from karat.records import Reply, Usage, was_cut

_SYSTEM, _ANSWER, ROW, PLACE = "karat system", "karat answer", "karat row", "karat place"
_RUN = "karat run"
"""Columns of our own."""
OWN = (_SYSTEM, _ANSWER, ROW, PLACE, _RUN)
TEXTS = ("question", "golden", "answer", "model", "error", "stop_reason", "started")
NUMBERS = ("input_tokens", "output_tokens", "dollars", "seconds")
_MILLISECONDS = {"ms", "millis", "milliseconds"}
_NUMBERING = word_set("idx index no nr number num id")
_TIMES = word_set("date day time timestamp datetime hour started created updated")
_FEW_DOUBLED = 0.05  # of the questions under a condition
_FEWEST_ALIKE = 5  # questions
_MANY = 10  # rows of a sample that are rarely its repetitions, if nothing numbers them
_Key = tuple[str, ...]
"""The cells that say which sample a row is of."""


class ARowASystem:
    """The rows of a table with a column of answers for each system, one row a system."""

    def __init__(
        self,
        rows: Iterable[NumberedRow],
        systems: Mapping[str, Mapping[str, str]],
        models: Mapping[str, str],
        *,
        answered: bool,
        compared: bool,
    ) -> None:
        """`models`: column of answers → the column that names the system, if rows differ in it.
        `answered`: whether systems are named by their columns of answers, and not only have scores.
        `compared`: whether the file says which is better, so that numbers are no repetitions.
        """
        self._rows = rows
        self._systems = systems
        self._models = models
        metrics = dict.fromkeys(name for of_one in systems.values() for name in of_one)
        words = [words_of(path) for path in systems]
        numbered = _are_numbered(words) and not models and not compared
        self.columns = {"repetition" if numbered else "condition": _SYSTEM}
        self.runs: Mapping[str, tuple[str, str]] = {}
        if not numbered and not models:
            self.runs = numbered_runs(systems)
        if self.runs:
            self.columns["repetition"] = _RUN
        if answered:
            self.columns["answer"] = _ANSWER
        self.columns |= {f"score.{name}": f"{_SYSTEM} {name}" for name in metrics}

    def __iter__(self) -> Iterator[NumberedRow]:
        own = {*self._systems}
        for metrics in self._systems.values():
            own |= {*metrics.values()}

        for number, row in self._rows:
            shared = without(row, own)
            for path, metrics in self._systems.items():
                scores = {f"{_SYSTEM} {name}": cell(row, at) for name, at in metrics.items()}
                if self._models:
                    name = cell(row, self._models[path])
                else:
                    name = path

                if path in self.runs:
                    name, scores[_RUN] = self.runs[path]
                if "answer" in self.columns:
                    scores[_ANSWER] = cell(row, path)
                yield number, {**shared, _SYSTEM: name, **scores}


def _are_numbered(names: Sequence[Sequence[str]]) -> bool:
    """Whether names of columns of answers differ by the numbers of repetitions: `answer_1`,
    `run2_answer`. `gpt_3` and `gpt_4` are systems.
    """
    first = names[0]
    if len({*map(len, names)}) > 1:
        return False
    differ = []
    for at, words in enumerate(zip(*names, strict=True)):
        if len({*words}) > 1:
            differ.append((at, words))

    if len(differ) != 1:
        return False
    ((at, words),) = differ
    if not all(map(str.isdecimal, words)):
        return False
    if at > 0 and repeats(first[at - 1]):
        return True
    if at < len(first) - 1:
        return False
    return not SAID.isdisjoint(first) or repeats(first[0])


class Numbered:
    """The rows of a table with their numbers in a column."""

    def __init__(self, rows: Iterable[NumberedRow]) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[NumberedRow]:
        return ((number, {ROW: number, **row}) for number, row in self._rows)


class Placed:
    """The rows of a table with their places among those of their question in a column, from 1."""

    def __init__(self, rows: Iterable[NumberedRow], ids: Sequence[str]) -> None:
        self._rows = rows
        self._ids = ids

    def __iter__(self) -> Iterator[NumberedRow]:
        met = Counter[_Key]()
        for number, row in self._rows:
            key = key_of(row, self._ids)
            met[key] += 1
            yield number, {PLACE: str(met[key]), **row}


_Group = tuple[_Key, str | None]  # a row's sample and condition
_Result = tuple[Reply | None, ImportedFailure | None, Sequence[ImportedScore], float | None]
"""The reply of a row, why there is none, its scores, and its seconds."""


class Worth(msgspec.Struct, frozen=True, kw_only=True):
    """What cells of scores are worth beside numbers and verdicts, by the user's word."""

    no_score: Mapping[str, Collection[float]]  # metric → numbers that mean that there is none
    words: Mapping[str, float | None] = {}  # None: no score
    explained: Mapping[str, Sequence[str]] = {}  # metric → columns that say why it has its value

    def of(self, value: object) -> float | None:
        """The score that a cell is; None: it is none."""
        if self.words and isinstance(value, str) and value in self.words:
            return self.words[value]
        if isinstance(value, list) and value:  # of a row's parts, the mean
            parts = [*map(score_in, value)]
            known = [part for part in parts if part is not None]
            return fmean(known) if len(known) == len(parts) else None
        return score_in(value)

    def says_none(self, value: object) -> bool:
        """Whether a cell says by itself that there is no score."""
        if value is None or isinstance(value, float):
            return True
        return isinstance(value, str) and (value in self.words or value.strip().lower() in MISSING)


class Trials:
    """The trials of a table, which is read several times and never kept."""

    alone = "answers"
    """The condition where rows name none."""
    keeps_copies = False
    """Whether rows that are identical to earlier ones are repetitions."""

    def __init__(
        self,
        place: str,
        rows: Iterable[NumberedRow],
        columns: Mapping[str, str],
        metrics: Iterable[str],
        findings: Findings,
        *,
        named: Mapping[str, Sequence[str]],
        worth: Worth,
    ) -> None:
        """`named`: target → columns, as the user has named them."""
        self._place, self._table = place, Table(rows)
        self._columns: Mapping[str, str] = columns
        self._metrics = [*metrics]
        self._findings, self._named, self._worth = findings, named, worth
        self._used = {*columns.values()}
        in_milliseconds = _MILLISECONDS & {*words_of(columns.get("seconds", ""))}
        self._a_second = 1000 if in_milliseconds else 1
        self._parted_by: str | None = None
        self._parted = set[str]()  # ids of several samples
        ids, self.conditions, may_repeat = self._grouping()
        self.ids = tuple(ids)
        self.factors: tuple[Factor, ...] = ()
        if may_repeat and _SYSTEM not in columns.values():
            self._add_factors(ids)
        self.distinct = not (may_repeat or self.conditions)
        self.numbered: tuple[str, ...] = ()  # the column with repetitions, if values tell it
        if may_repeat and "repetition" not in columns:
            found_repetition = self._numbered_by(ids)
            if found_repetition is not None:
                self._columns = columns = {**columns, "repetition": found_repetition}
                self._used.add(found_repetition)
                self.numbered = (found_repetition,)
                findings.note(f"'{found_repetition}' numbers the repetitions")
            else:
                self._part_doubled(ids)

        self._of_one_sample = list(dict.fromkeys([*ids, *self._texts_of_samples(ids)]))
        self._whole = {} if self.distinct else self._whole_keys()
        samples = Tally()
        groups = Tally()
        conditions = set[str | None]()
        for batch in () if self.distinct else self._table:
            keys = self._keys(batch)
            names = conditions_of(batch, self.conditions)
            samples.update(keys)
            conditions.update(names)
            if self.conditions:
                groups.update(zip(keys, names, strict=True))

        self.compared = len(conditions) > 1  # whether conditions are ranked
        self._repeated = samples.again()  # with several rows
        # whether no question lacks a result: each has rows under each condition, and none says
        # which repetition
        is_complete = not self.conditions or (
            groups.different() == samples.different() * len(conditions)
        )
        self.sparse = is_complete and "repetition" not in self._columns
        self.alike = 0  # rows of each question, if nothing tells them apart
        if self.sparse and not self.conditions and not {"error", "started"} & {*columns}:
            size = samples.usual()
            regular = len(samples) == size * samples.different()
            if regular and size > 1 and samples.different() >= _FEWEST_ALIKE:
                self.alike = size

        self.apart = self._apart()
        self.hint = None
        self._attempts = Attempts()
        if self._repeated and "error" in columns and "repetition" not in columns:
            for batch in self._table:
                rows_of = zip(self._keys(batch), conditions_of(batch, self.conditions), strict=True)
                for group, text in zip(rows_of, self._errors(batch), strict=True):
                    self._attempts.add(group, failed=bool(text))

        if self._repeated:
            used = {*self._used, *self.conditions}
            grouping = [*self._of_one_sample, *self.conditions]
            self.hint = like_conditions(self._table, grouping, used=used)

    def __iter__(self) -> Iterator[ImportedTrial]:
        repetitions = self._repetitions()
        copies = Copies("row")
        counts = Counter[_Group]()
        first: dict[_Key, tuple[str, str | None]] = {}
        for batch in self._table:
            wrong: dict[int, list[str]] = {}  # place in the batch → what cannot be read there
            texts = self._texts(batch)
            rows = zip(
                self._keys(batch),
                conditions_of(batch, self.conditions),
                self._written_repetitions(batch, wrong),
                texts["question"],
                texts["golden"],
                texts["answer"],
                texts["started"],
                self._results(batch, texts, wrong),
                batch.others(self._used),
                strict=True,
            )
            for at, (
                key,
                name,
                written,
                question,
                golden,
                answer,
                started,
                result,
                rest,
            ) in enumerate(rows):
                if not key[0]:
                    self._findings.lose("row without an id or a question", self._at(batch, at))
                    continue

                is_repeated = bool(self._repeated) and hash(key) in self._repeated
                may_be_copy = is_repeated and answer and not self.keeps_copies
                if may_be_copy and copies.is_copy(batch.numbers[at], batch.rows[at]):
                    problem = (
                        "row identical to an earlier one, and not numbered in a column 'repetition'"
                    )
                    self._findings.left_out(problem, self._at(batch, at))
                    continue

                group = key, name
                reply, failure, scores, seconds = result
                if failure is not None and self._attempts.was_repeated(group):
                    problem = "row with an error, of a question that was asked again: an attempt"
                    self._findings.left_out(problem, self._at(batch, at))
                    continue

                for problem in wrong.get(at, ()):
                    self._findings.unreadable(problem, self._at(batch, at))

                if written is None:
                    repetition = counts.get(group, 0)
                else:
                    repetition = repetitions.number(*group, written)

                asked = question or self._name(key), golden or None
                if self._whole and not question:
                    asked = self._asked(key)
                if is_repeated:
                    counts[group] += 1
                    asked = first.setdefault(key, asked)

                yield ImportedTrial(
                    sample=self._name(key),
                    question=asked[0],
                    golden=asked[1],
                    condition=name or self.alone,
                    repetition=repetition,
                    reply=reply,
                    seconds=seconds,
                    started=started or None,
                    failure=failure,
                    scores=scores,
                    metadata=rest,
                )

        most = max(counts.values(), default=0)
        if most > _MANY and "repetition" not in self._columns:
            self._findings.note(
                f"up to {most} rows of one sample under one condition are taken as repetitions; if "
                f"they are not, --map condition=COLUMN or --map id=COLUMN"
            )

    def _add_factors(self, ids: Sequence[str]) -> None:
        """Adds the conditions that no name tells; beside them one that is always the same is none,
        unless the user has named it.
        """
        self.factors = factors_in(self._table, ids, self.conditions, used=self._used)
        found = tuple(factor.column for factor in self.factors)
        if found and self.conditions and "condition" not in self._named:
            used = self._used - {*self.conditions}
            several = condition_columns(self._table, ids, used=used)
            self.conditions = tuple(name for name in self.conditions if name in several)

        self.conditions += found
        self._used |= {*found}

    def _texts_of_samples(self, ids: Sequence[str]) -> list[str]:
        """The columns of texts that tell samples apart: not the question, where the user has named
        an id, and only questions of different conditions differ under it.
        """
        columns = self._columns
        texts = []
        for target in ("question", "golden"):
            if target in columns:
                texts.append(columns[target])

        asked = columns.get("question", ids[0])
        several = "id" in self._named and not self._tells(ids, asked)
        if several and self._tells([*ids, *self.conditions], asked):
            texts.remove(asked)
            self._findings.note(f"one '{ids[0]}' has several '{asked}', of which the first counts")

        return texts

    @property
    def copies(self) -> str | None:
        """How many of the rows are identical to an earlier one, if most are."""
        if not self._repeated or "repetition" in self._columns:
            return None
        return mostly_copies(row for batch in self._table for row in batch.rows)

    @property
    def parted_by(self) -> list[str]:
        """The columns that tell the rows of a question apart."""
        return parting(self._table, self._of_one_sample, used=self._used)

    def _apart(self) -> str | None:
        """What to choose from where no sample has rows with two values of a condition, as ids
        differ with these, and another column joins them. None: all is well.
        """
        if "condition" in self._named or _SYSTEM in self.conditions:
            return None
        crossed: list[str] = []
        alone: list[str] = []
        for name in self.conditions:
            samples, pairs, values = Tally(), Tally(), Tally()
            for batch in self._table:
                keys, texts = self._keys(batch), batch.texts(name)
                samples.update(keys)
                pairs.update(zip(keys, texts, strict=True))
                values.update(texts)

            is_apart = pairs.different() == samples.different() and values.different() > 1
            (alone if is_apart else crossed).append(name)

        repetitions = []
        if "repetition" in self._columns:
            repetitions.append(self._columns["repetition"])

        used = {*self._used, *self.conditions} - ({self._columns.get("id")} - {*self.ids})
        joining = []
        if alone:
            joining = parting(self._table, [*self.conditions, *repetitions], used=used)
        golden = self._columns.get("golden")
        if golden:
            joining = [name for name in joining if self._tells([name], golden)]
        if not joining:
            return None
        ways = f"id={joining[0]}", f"condition={(crossed or alone)[0]}"
        listed = "\n  ".join(f"--map {quote(way)}" for way in ways)
        return (
            f"no '{self.ids[0]}' has rows with two values of '{alone[0]}', but '{joining[0]}' has: "
            f"say that this names the question, or which column alone is the condition:\n  {listed}"
        )

    def _tells(self, columns: Sequence[str], other: str) -> bool:
        """Whether rows that agree in these columns agree in another."""
        own, both = Tally(), Tally()
        for batch in self._table:
            own.update(batch.keys(columns))
            both.update(batch.keys([*columns, other]))

        return own.different() == both.different()

    def _whole_keys(self) -> Mapping[_Key, _Key]:
        """The key of a row that has an id and no question → that of the first row with both; that
        of a question in another spelling → that of the first row with its id.
        """
        by_text = self._of_one_sample[0] == self._columns.get("question")
        if by_text or len(self._of_one_sample) == 1:
            return {}
        spelled = self._spellings()
        if spelled:
            return spelled
        bare = set()
        for batch in self._table:
            bare |= {key for key in batch.keys(self._of_one_sample) if not any(key[1:])}

        whole: dict[_Key, _Key] = {}
        for batch in self._table if bare else ():
            for key in batch.keys(self._of_one_sample):
                without = (key[0], *[""] * (len(key) - 1))
                if without != key and without in bare:
                    whole.setdefault(without, key)

        return whole

    def _spellings(self) -> Mapping[_Key, _Key]:
        """The keys of ids that were found by name and have several questions → the first key of
        each. Notes them.
        """
        column = self._columns.get("id")
        parted = self._parted_by is not None
        asked = "question" in self._columns  # else golden answers differ, and are no spellings
        if self._of_one_sample[0] != column or "id" in self._named or parted or not asked:
            return {}
        ids = Tally()
        pairs = Tally()
        for batch in self._table:
            keys = batch.keys(self._of_one_sample)
            ids.update(key[0] for key in keys)
            pairs.update(key[:2] for key in keys if key[1])

        if pairs.different() <= ids.different():
            return {}
        first: dict[str, _Key] = {}
        found: dict[_Key, _Key] = {}
        for batch in self._table:
            for key in batch.keys(self._of_one_sample):
                earlier = first.setdefault(key[0], key)
                if earlier != key and earlier[2:] == key[2:]:
                    found[key] = earlier

        for key, earlier in [*found.items()][:1]:
            self._findings.note(
                f"'{column}' {key[0]} has several questions, of which the first counts: "
                f"{some_of([excerpt(text, 60) for text in (earlier[1], key[1])])}"
            )

        return found

    def _asked(self, key: _Key) -> tuple[str, str | None]:
        """The question and the golden answer in a key."""
        texts = dict(zip(self._of_one_sample, key, strict=True))
        question = texts.get(self._columns.get("question", ""))
        golden = texts.get(self._columns.get("golden", ""))
        return question or key[0], golden or None

    def _numbered_by(self, ids: Sequence[str]) -> str | None:
        """A column such as `sample_idx` whose numbers part all rows of a question and condition,
        that agree in nothing else. None: there is none.
        """
        grouping = [*ids, *self.conditions]
        for column in self._table.columns:
            *words, last = words_of(column) or ("",)
            if column in self._used or last not in _NUMBERING or not repeats(" ".join(words)):
                continue
            groups = Tally()
            whole = Tally()
            values = set[str]()
            for batch in self._table:
                groups.update(batch.keys(grouping))
                whole.update(batch.keys([*grouping, column]))
                values |= {*batch.texts(column)}

            numbers = all(value.isdecimal() for value in values)
            parted = whole.different() == len(whole) > groups.different()
            if numbers and parted and groups.usual() > 1:
                return column

        return None

    def _part_doubled(self, ids: list[str]) -> None:
        """Where few questions have two rows under one condition, adds the column that tells these
        apart to `ids`: they are two samples under one id.
        """
        grouping = [*ids, *self.conditions]
        groups = Tally()
        for batch in self._table:
            groups.update(batch.keys(grouping))

        doubled = groups.again()
        by_id = self._columns.get("id") in ids and self._parted_by is None
        if not by_id or not 0 < len(doubled) <= _FEW_DOUBLED * groups.different():
            return
        for column in self._table.columns:
            words = words_of(column)
            if column in self._used or repeats(column):
                continue
            if is_measure(words) or not _TIMES.isdisjoint(words):
                continue
            whole = Tally()
            samples = Tally()
            names = Tally()
            parted = set[str]()
            for batch in self._table:
                keys = batch.keys(grouping)
                whole.update(batch.keys([*grouping, column]))
                samples.update(batch.keys([*ids, column]))
                names.update(batch.keys(ids))
                parted |= {key[0] for key in keys if hash(key) in doubled}

            more = samples.different() - names.different()
            if whole.different() == len(whole) and more == len(parted):
                self._parted_by = column
                self._parted = parted
                ids.append(column)
                self._findings.note(
                    f"{plural(len(parted), 'id stands', 'ids stand')} for two samples, which "
                    f"differ in '{column}': {some_of(sorted(parted))}"
                )
                return

    def _name(self, key: _Key) -> str:
        """The id of a sample; with what parts it from another of the same id."""
        if self._parted_by is None or key[0] not in self._parted:
            return key[0]
        return f"{key[0]} · {key[self._of_one_sample.index(self._parted_by)]}"

    def _keys(self, batch: Batch) -> Sequence[_Key]:
        """What tells the samples of rows apart."""
        keys = batch.keys(self._of_one_sample)
        if not self._whole:
            return keys
        return [self._whole.get(key, key) for key in keys]

    def _at(self, batch: Batch, row: int) -> str:
        return f"{self._place} {batch.numbers[row]}"

    def _grouping(self) -> tuple[list[str], tuple[str, ...], bool]:
        """The columns in which rows of one question agree, those that name the condition, and
        whether a question may have several rows.
        """
        columns = self._columns
        table = self._table
        ids = [columns.get("id") or columns["question"]]
        may_repeat = True
        if "question" not in columns:
            ids = self._whole_id(ids[0])
        if "question" in columns and "id" not in self._named:
            ids, may_repeat = sample_columns(
                table,
                question=columns["question"],
                golden=columns.get("golden"),
                id_column=columns.get("id"),
            )
            if not may_repeat and self._numbers_rows():
                ids = [columns["question"]]
                may_repeat = True

        used = set()
        for target, column in columns.items():
            if target not in ("condition", "model"):
                used.add(column)

        if columns.get("condition") == _SYSTEM:
            further = condition_columns(table, [_SYSTEM, *ids], used=used)
            return ids, (_SYSTEM, *further), may_repeat
        first = tuple(self._named.get("condition", ()))

        inside = []
        for target in ("condition", "model"):
            if target in columns:
                inside.append(columns[target])

        inside += [column for column in table.columns if column in FOUND_IN]
        conditions = condition_columns(table, ids, used=used, first=first, inside=inside)
        if conditions:
            return ids, conditions, may_repeat
        # what differs from question to question only is a property of questions
        for target in ("condition", "model"):
            if target in columns:
                keys = set[_Key]()
                for batch in table:
                    keys |= {*batch.keys([columns[target]])}

                if len(keys) == 1:
                    return ids, (columns[target],), may_repeat

        return ids, (), may_repeat

    def _whole_id(self, name: str) -> list[str]:
        """The column of ids, with another one if ids count anew for each of its values. Notes
        that.
        """
        golden = self._columns.get("golden")
        name = self._finer(name)
        ids = whole_id(self._table, name, golden=golden, used=self._used)
        if len(ids) == 1:
            return ids
        if ids[1] != golden:
            self._parted_by = ids[1]
            for batch in self._table:
                self._parted.update(batch.texts(name))

            self._findings.note(
                f"one '{name}' has several golden answers, and one for each '{ids[1]}': a sample "
                f"is named by both"
            )

        return ids

    def _finer(self, name: str) -> str:
        """The column of ids, or another one that parts its samples, where rows would have the
        sample and repetition of another.
        """
        columns = self._columns
        if "id" in self._named or "repetition" not in columns:
            return name
        given = []
        for key in ("repetition", "condition", "model"):
            if key in columns:
                given.append(columns[key])

        for other in [path for path in self._table.columns if "id" in roles_of(path)]:
            ids, both, whole, rows = Tally(), Tally(), Tally(), 0
            for batch in self._table:
                rows += len(batch.numbers)
                ids.update(batch.keys([other]))
                both.update(batch.keys([name, other]))
                whole.update(batch.keys([name, *given]))

            parts = ids.different() == both.different() <= rows / 2
            if other not in self._used and parts and whole.different() <= rows / 2:
                self._findings.note(f"'{other}' is the id: under one '{name}', rows repeat")
                return other

        return name

    def _numbers_rows(self) -> bool:
        """Whether ids that differ from row to row number the rows, as each question has one row
        under each of several conditions.
        """
        question = self._columns["question"]
        conditions = condition_columns(self._table, [question], used={self._columns["id"]})
        questions = Tally()
        pairs = Tally()
        names = Tally()
        for batch in self._table if conditions else ():
            keys = batch.keys([question])
            named = conditions_of(batch, conditions)
            questions.update(keys)
            pairs.update(zip(keys, named, strict=True))
            names.update(named)

        crossed = questions.different() * names.different() == len(pairs) == pairs.different()
        return crossed and names.different() > 1 < questions.different()

    def _repetitions(self) -> Repetitions:
        """The numbers of all repetitions that rows name."""
        repetitions = Repetitions()
        for batch in self._table if "repetition" in self._columns else ():
            keys = self._keys(batch)
            names = conditions_of(batch, self.conditions)
            for row in zip(keys, names, self._written_repetitions(batch, {}), strict=True):
                repetitions.add(*row)

        return repetitions

    def _written_repetitions(
        self, batch: Batch, wrong: dict[int, list[str]]
    ) -> Sequence[int | str | None]:
        """What rows say of their repetitions; adds what cannot be read."""
        column = self._columns.get("repetition")
        values: list[int | str | None] = [None] * len(batch.numbers)
        if column is None:
            return values
        for at, value in enumerate(batch.column(column)):
            try:
                values[at] = repetition_value(value, column)
            except ValueError as error:
                wrong[at] = [str(error)]

        return values

    def _texts(self, batch: Batch) -> Mapping[str, Sequence[str]]:
        """Target → texts of rows, of every target of a text; "" where a row has none."""
        texts: dict[str, Sequence[str]] = dict.fromkeys(TEXTS, [""] * len(batch.numbers))
        for target, column in self._columns.items():
            if target in TEXTS or target.startswith("reason."):
                texts[target] = batch.texts(column, _text)

        listed = [*map(_text, texts["golden"])]
        if all(text != given for text, given in zip(listed, texts["golden"], strict=True) if given):
            texts["golden"] = listed  # a list of one text each, as text
        errors = self._errors(batch)
        for at, answer in enumerate(texts["answer"]):
            if is_error_of_service(answer):
                errors[at] = errors[at] or answer

        texts["error"] = errors
        return texts

    def _errors(self, batch: Batch) -> list[str]:
        """What rows say went wrong; "": nothing."""
        column = self._columns.get("error")
        if column is None:
            return [""] * len(batch.numbers)
        texts = batch.texts(column, _text)
        return [text if says_failed(column, text) else "" for text in texts]

    def _results(
        self, batch: Batch, texts: Mapping[str, Sequence[str]], wrong: dict[int, list[str]]
    ) -> Iterator[_Result]:
        """What each row says was answered; adds what cannot be read."""
        none = [None] * len(batch.numbers)
        values = []
        for name in self._metrics:
            values.append(self._numbers(batch, f"score.{name}", wrong) or none)

        numbers = []
        for target in NUMBERS:
            numbers.append(self._numbers(batch, target, wrong) or none)

        scores = []
        for name, of_rows in zip(self._metrics, values, strict=True):
            reasons = texts.get(f"reason.{name}", none)
            of_metric = []
            for value, reason in zip(of_rows, reasons, strict=True):
                score = ImportedScore(scorer=name, values={name: value}, reasons={name: reason})
                of_metric.append(score)

            scores.append(of_metric)

        rows = zip(
            *(texts[target] for target in ("answer", "model", "error", "stop_reason")),
            *numbers,
            zip(*values, strict=True) if values else none,
            zip(*scores, strict=True) if values else none,
            strict=True,
        )
        for answer, model, error, stop, read, said, dollars, took, scored, of_row in rows:
            seconds = took
            if took is not None:
                seconds = took / self._a_second
            if error:
                failure = ImportedFailure(cls="agent", kind="error", message=error)
                yield None, failure, (), seconds
            elif answer or (scored and any(value is not None for value in scored)) or was_cut(stop):
                reply = Reply(
                    text=answer,
                    stop_reason=stop or None,
                    dollars=dollars,
                    usage=_usage(read, said),
                    model=model or None,
                )
                yield reply, None, of_row or (), seconds
            else:
                yield None, None, (), seconds

    def _numbers(
        self, batch: Batch, target: str, wrong: dict[int, list[str]]
    ) -> Sequence[float | None]:
        """Numbers or verdicts in any usual spelling; None where a cell is empty. Adds what cannot
        be read. (): there is no such column.
        """
        if target not in self._columns:
            return ()
        values = batch.column(self._columns[target])
        judges = target.startswith("score.")
        numbers = [*map(self._worth.of if judges else score_in, values)]
        name = target.removeprefix("score.")
        for at, (value, number) in enumerate(zip(values, numbers, strict=True)):
            if judges and number in self._worth.no_score.get(name, ()):
                numbers[at] = None
                self._findings.left_out(f"'{name}' is {value}: no score", self._at(batch, at))
            elif judges and number == 0 and self._was_not_judged(batch, name, at):
                numbers[at] = None
                problem = f"'{name}' is {value} where judging failed: no score"
                self._findings.left_out(problem, self._at(batch, at))
            elif number is None and not self._worth.says_none(value):
                wrong.setdefault(at, []).append(f"'{name}' is not a number")

        return numbers

    def _was_not_judged(self, batch: Batch, name: str, at: int) -> bool:
        """Whether a row says beside a score that its judge failed."""
        columns = self._worth.explained.get(name, ())
        return any(says_not_judged(batch.texts(column)[at]) for column in columns)


def _text(value: object) -> str:
    """A cell as text: that of a list of one text; chat messages as people read them."""
    value = only_text(value)
    if isinstance(value, list) and are_messages(value):
        return dialogue(value)
    return text_of(value)


def _usage(read: float | None, written: float | None) -> Usage | None:
    if read is None and written is None:
        return None
    counts = [None if count is None else int(count) for count in (read, written)]
    return Usage(input_tokens=counts[0], output_tokens=counts[1])
