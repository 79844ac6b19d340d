"""Chains of questions about a report, whose golden answers are numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from karat.documents.hub import shown
from karat.documents.rows import left_out
from karat.errors import BadDataset, BadOption, Fault, did_you_mean
from karat.formats import excerpt
from karat.kinds import (
    AnswerFile,
    Dataset,
    Doubted,
    Kind,
    Linted,
    RecordedAnswers,
    sample_digest,
)
from karat.kinds._samples import (
    Key,
    Keys,
    Packed,
    by_columns,
    clustered,
    draw,
    draw_equally,
    repeats,
    with_repeats_clustered,
)
from karat.records import JsonObject, Sample, Turn
from karat_conversations.kinds.conversation import on_demand
from karat_conversations.kinds.conversation.analysis.model import ConversationSummary
from karat_conversations.kinds.conversation.analysis.scoring import NumericTurns
from karat_conversations.kinds.conversation.drafts import (
    Draft,
    DraftTurn,
    has_duplicate_columns,
    has_non_numeric_values,
)
from karat_conversations.kinds.conversation.look_up import look_up_number
from karat_conversations.kinds.conversation.quarantine import (
    Quarantine,
    read_quarantine,
    written,
)
from karat_conversations.kinds.conversation.reading import (
    Drafts,
    looks_like_conversations,
    read_drafts,
)
from karat_conversations.kinds.conversation.text import first_message, read_template, transcript
from karat_conversations.numeric import RIGHT_RULES, parse_program, parse_value
from karat_conversations.numeric.matches import same_text

if TYPE_CHECKING:
    from karat.analysis.model import Summary
    from karat.analysis.parts import AnalysisInput, Part, TurnScoring
    from karat.blocks import KindBlocks
    from karat.journal import RunFolder, ScorerInfo
    from karat.kind_views import Views

__all__ = ["Conversation"]


class Conversation(Kind):
    """Questions about a report, each building on the last: ConvFinQA, cleaned or original, or one
    line per turn.

    Also FinQA and TAT-QA: each of their questions is a conversation of one turn. The scorer of
    TAT-QA is `span`.
    """

    judged = False
    scorer = "numeric"
    unit = "conversation"
    session = "conversation"
    reading_options = {"right": "is for runs whose answers have turns"}
    argument_names = {"chat_history": ("conversation_history",)}
    by_turn = True
    loss_bounds = False  # rates of conversations already count missing turns as wrong
    parts = (ConversationSummary,)
    unscored = "no golden answer is a number; `karat score RUN --judge overlap` judges text"

    class Options(BaseModel):
        """Which answers are golden, what the prompt contains, and how many conversations are
        drawn.
        """

        model_config = ConfigDict(extra="forbid", frozen=True)

        # golden: the program's result, or people's answer
        expected: Literal["executed", "printed"] = "executed"
        right: Literal[
            "numerical", "soft", "unit_agnostic", "sign_agnostic", "general", "exact", "declared"
        ] = (
            # which match counts as right in reports; for yes or no every match requires the same
            # word
            "numerical"
        )
        # the golden answer that means "cannot be known": abstaining is right there
        unanswerable: Key | None = None
        history: Literal["own", "golden"] = (
            "own"  # whether later questions follow the agent's answers or the right ones
        )
        dialect: Literal["finqa", "convfinqa"] | None = (
            None  # whose official scorer judges programs; null: that of the file's form
        )
        # the first message, as text with {{ document }} or as a file; null: karat's own
        template: str | None = None
        split: Key | None = None  # the list in the file, e.g. dev; null: the only one
        sheet: Key | None = None  # the sheet of an Excel workbook; null: the only one
        # leave conversations out that cannot be read; null: refuse
        skip: Literal["unreadable"] | None = None
        # how many conversations are drawn; null: all
        sample_size: Annotated[int, Field(ge=1)] | None = None
        # of the draw; a larger sample_size keeps the smaller one's
        seed: Annotated[int, Field(ge=0)] = 0
        stratify: Keys = ["turns", "has_type2_question"]  # features whose values share the draw
        # equal: equally many per stratum, weighted
        allocation: Literal["proportional", "equal"] = "proportional"
        # the feature with what conversations share; null: their document
        cluster: Key | None = None
        # a file of doubtful turns, as written by `karat check --lint`
        quarantine: Key | None = None
        # one line per turn: the column with the conversation's id
        conversation_key: Key | None = None
        turn_key: Key | None = None  # one line per turn: the column with the turn's number
        question_key: Key | None = None  # one line per turn: the column with the question
        answer_key: Key | None = None  # one line per turn: the column with the golden answer

    content = "conversations"
    doubted = "turn"
    answer_file = AnswerFile(
        option="turns", rows="one turn per row, with numbers or programs as answers"
    )

    @staticmethod
    def recorded_columns() -> type[BaseModel]:
        return on_demand.TurnColumns

    @staticmethod
    def recorded(path: Path, columns: BaseModel) -> RecordedAnswers:
        """One row per turn.

        A turn without a row has an empty answer: it is wrong, and its conversation continues.
        """
        assert isinstance(columns, on_demand.TurnColumns)
        return on_demand.RecordedTurns(path, columns)

    @staticmethod
    def own_scorer(dataset: Dataset) -> str | None:
        """`span` for TAT-QA, many of whose answers are words."""
        return (
            "span"
            if any("answer_type" in turn.detail for sample in dataset for turn in sample.turns)
            else None
        )

    @staticmethod
    def judge(dataset: Dataset) -> dict[str, object] | None:
        """`overlap` if a golden answer is neither number nor yes or no: `numeric` cannot
        score it.
        """
        if Conversation.own_scorer(dataset) is not None:
            return None
        turns = (turn for sample in dataset for turn in sample.turns)
        golden = (turn.golden for turn in turns if not turn.detail.get("unanswerable"))
        text = any(answer is not None and parse_value(answer) is None for answer in golden)
        if text:
            return {"type": "overlap"}
        return None

    @staticmethod
    def quarantine_text(doubted: Iterable[Doubted]) -> str:
        return written(doubted)

    @staticmethod
    def looks_like(path: Path) -> bool:
        return path.is_file() and looks_like_conversations(path)

    @staticmethod
    def look_up(sample: Sample, turn: Turn) -> str | None:
        """A number of the report: the table's cell whose labels share most words with the questions
        so far.
        """
        earlier = takewhile(lambda asked: asked is not turn, sample.turns)
        return look_up_number(turn.question, [asked.question for asked in earlier], sample.detail)

    @staticmethod
    def rule(run: RunFolder, asked: Mapping[str, object]) -> tuple[str, str | None]:
        """The match that makes a turn right. Raises BadOption for an unknown one."""
        wanted = asked.get("right")
        if wanted is None:
            setting = run.info.experiment.get("dataset.right")
            rule = setting.value if setting is not None else "numerical"
            if rule in RIGHT_RULES:
                return str(rule), None
            unknown = (
                f"run.json has an unknown rule for right turns, dataset.right: "
                f"'{excerpt(str(rule), 60)}'"
            )
            return "numerical", f"{unknown}; numerical is used (--right chooses another)"

        if not isinstance(wanted, str) or wanted not in RIGHT_RULES:
            raise BadOption(
                "--right", f"there is no '{wanted}'{did_you_mean(str(wanted), RIGHT_RULES)}"
            )

        return wanted, None

    @staticmethod
    def turn_scoring(scorer: ScorerInfo, rule: str) -> TurnScoring | None:
        """None for a scorer other than `numeric`: it may score text."""
        if scorer.type == "numeric":
            return NumericTurns(rule)
        return None

    @staticmethod
    def views() -> Views:
        return on_demand.ConversationViews()

    @staticmethod
    def analyse(given: AnalysisInput) -> Part | None:
        """None if the scorer `numeric` is not shown, or no golden answer is a number."""
        return on_demand.conversation(given)

    @staticmethod
    def sections(summary: Summary) -> KindBlocks:
        """Where the chain of answers breaks."""
        return on_demand.sections(summary)

    def __init__(self, options: Options, folder: Path | None = None) -> None:
        """`folder`: where to find `template` and `quarantine`, in addition to the working
        directory.
        """
        self._options, self._folder = options, folder

    def load(self, path: Path) -> Dataset:
        """The samples.

        Raises BadDataset with every bad conversation, and BadOption for a bad template.
        """
        template = read_template(self._options.template, self._folders(path))
        drafts = self._read(path)
        # Conversation → its turns without the requested golden answer, if it has some
        lacking = {}
        for draft in drafts.drafts:
            turns = [at for at, turn in enumerate(draft.turns) if self._golden(turn) is None]
            if turns:
                lacking[draft.id] = turns

        whole = [draft for draft in drafts.drafts if draft.id not in lacking]
        faults = [*drafts.faults, *self._missing(drafts, lacking)]
        skip = self._options.skip is not None and len(whole) > 0
        skipped = left_out(path, faults, skip=skip, unit=drafts.unit)
        marks = None
        marked = self._options.quarantine
        if marked is not None:
            candidates = [folder / marked for folder in self._folders(path)]
            there = next((candidate for candidate in candidates if candidate.is_file()), None)
            if there is None:
                message = f"there is no file '{marked}'; `karat check --lint` writes one"
                raise BadOption("dataset.quarantine", message)

            marks = read_quarantine(there, {draft.id: len(draft.turns) for draft in drafts.drafts})

        samples = Packed(
            self._sample(position, draft, template, marks) for position, draft in enumerate(whole)
        )
        known = {name for sample in samples for name in sample.metadata}
        faults = []
        for at, name in enumerate(self._options.stratify):
            if name not in known:
                message = f"no conversation has the feature '{name}'{did_you_mean(name, known)}"
                faults.append(Fault(place=f"dataset.stratify.{at}", message=message))

        if faults:
            raise BadDataset(shown(path), faults)
        if self._options.cluster is not None:
            samples = clustered(samples, self._options.cluster, path=shown(path))
        clusters = with_repeats_clustered(samples, repeats(samples))
        size = self._options.sample_size
        stratum = by_columns(self._options.stratify)
        if self._options.allocation == "equal":
            try:
                drawn = draw_equally(clusters, size, seed=self._options.seed, stratum=stratum)
            except ValueError as error:
                raise BadOption(
                    "dataset.sample_size", f"is too small for `allocation: equal`: {error}"
                ) from error
        else:
            drawn = draw(clusters, size, seed=self._options.seed, stratum=stratum)

        warnings = () if skipped is None else (skipped,)
        return Dataset(
            kind="conversation",
            path=path,
            sha256=drafts.sha256,
            samples=drawn,
            commit=drafts.commit,
            warnings=warnings,
        )

    def lint(self, path: Path) -> Linted:
        """Contradictions in the golden answers. Raises BadDataset only if nothing can be read."""
        return on_demand.lint(path, self._read(path))

    def _read(self, path: Path) -> Drafts:
        options = self._options
        keys = {
            key: getattr(options, key)
            for key in ("conversation_key", "turn_key", "question_key", "answer_key")
        }
        return read_drafts(path, split=options.split, sheet=options.sheet, keys=keys)

    def _folders(self, path: Path) -> list[Path]:
        return [
            Path(),
            *([self._folder] if self._folder is not None else []),
            path.absolute().parent,
        ]

    def _golden(self, turn: DraftTurn) -> str | None:
        chosen = turn.printed if self._options.expected == "printed" else turn.executed
        if chosen is None:
            return None
        return str(chosen)

    def _missing(self, drafts: Drafts, lacking: Mapping[str, Sequence[int]]) -> list[Fault]:
        expected = self._options.expected
        other = "printed" if expected == "executed" else "executed"
        bare = sum(len(lacking.get(draft.id, ())) == len(draft.turns) for draft in drafts.drafts)
        if bare == len(drafts.drafts) > 1:
            message = (
                f"no turn of the file has {expected} answers; are there {other} ones? then set "
                f"`expected: {other}`"
            )
            return [Fault(place="dataset.expected", message=message)]

        found = []
        for draft in drafts.drafts:
            if draft.id in lacking:
                found.append(
                    Fault(
                        place=f"{drafts.unit} {draft.number}",
                        message=f"'{draft.id:.80}' has no {expected} answer to "
                        f"{_turns(lacking[draft.id])} (from 0); fill it in, or set `expected: "
                        f"{other}`",
                    )
                )

        return found

    def _sample(
        self,
        position: int,
        draft: Draft,
        template: str | None,
        marks: Quarantine | None,
    ) -> Sample:
        turns = self._turns(draft, marks)
        numbers = any(parse_value(turn.golden) is not None for turn in turns)
        materials = first_message(draft, template, numbers=numbers) or None
        golden = [
            [turn.question, turn.golden, None, *map(turn.detail.get, _GOLDEN)] for turn in turns
        ]
        asked = [
            [line[0], line[1], turn.asked, *line[3:]]
            for line, turn in zip(golden, turns, strict=True)
        ]
        apart = self._options.history == "golden"
        # Features that results are grouped by. None: neither in the file nor derivable
        splits = [turn.qa_split for turn in draft.turns if turn.qa_split is not None]
        features = dict(draft.features)
        for counted in ("num_dialogue_turns", "turns"):
            features.pop(counted, None)  # features that can be counted are, whatever the file says
        table = draft.table
        detail: JsonObject = {
            "pre_text": draft.pre_text,
            "post_text": draft.post_text,
            "table": draft.table or {},
        }
        dialect = self._options.dialect or draft.dialect
        if dialect != "convfinqa":  # the usual one is left out
            detail["dialect"] = dialect
        type2 = features.pop("has_type2_question", any(splits) if splits else None)
        if type2 is None:
            conversation_type = None
        elif type2:
            conversation_type = "hybrid"
        else:
            conversation_type = "simple"

        if apart:
            content = sample_digest([golden, materials])
        else:
            content = None

        # What identifies the document of a conversation: its text and its table; None without
        # either
        parts = [draft.pre_text, draft.post_text, draft.table or {}]
        if any(parts):
            cluster = sample_digest(parts)[:16]
        else:
            cluster = None

        return Sample(
            kind="conversation",
            id=draft.id,
            position=position,
            digest=sample_digest([asked, materials]),
            turns=turns,
            materials=materials,
            metadata={
                "turns": len(draft.turns),
                "has_type2_question": type2,
                "has_duplicate_columns": table is not None and has_duplicate_columns(table),
                "has_non_numeric_values": table is not None and has_non_numeric_values(table),
                "conversation_type": conversation_type,
                **features,
            },
            detail=detail,
            apart=apart,
            content=content,
            cluster=cluster,
        )

    def _turns(self, draft: Draft, marks: Quarantine | None) -> tuple[Turn, ...]:
        turns: list[Turn] = []
        for index, turn in enumerate(draft.turns):
            if turn.program is not None:
                operations = len(parse_program(turn.program).steps)
            else:
                operations = 0

            detail: JsonObject = {
                "executed": turn.executed,
                "printed": turn.printed,
                "program": turn.program,
                "operations": operations,
                "qa_split": turn.qa_split,
            }
            if turn.unit is not None:
                detail |= {"unit": turn.unit}

            detail |= turn.detail
            golden = self._golden(turn)
            if self._options.unanswerable is not None and same_text(
                golden, self._options.unanswerable
            ):
                detail["unanswerable"] = True

            if marks is not None:
                of_it = marks.get(draft.id, {})
                detail["quarantined"] = [*of_it.get(None, ()), *of_it.get(index, ())]

            asked = None
            if self._options.history == "golden" and turns:
                asked = transcript(
                    [(earlier.question, earlier.golden or "") for earlier in turns], turn.question
                )

            turns.append(Turn(question=turn.question, golden=golden, detail=detail, asked=asked))

        return tuple(turns)


_GOLDEN = ("executed", "printed", "program")


def _turns(indexes: Sequence[int]) -> str:
    listed = ", ".join(map(str, indexes[:8])) + (", …" if len(indexes) > 8 else "")
    return f"turn{'s' if len(indexes) > 1 else ''} {listed}"
