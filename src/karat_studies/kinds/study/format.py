"""The parts of a `study.yaml` as values: arms, answers, findings and their tests.

`reading` reads them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ModelWrapValidatorHandler,
    Strict,
    ValidationError,
    field_validator,
    model_validator,
)

from karat.documents.validation import Problem, explain, refusal
from karat.errors import did_you_mean
from karat.kinds import Dataset
from karat.records import Json, JsonObject

Text = Annotated[str, Strict(), Field(min_length=1)]
Number = Annotated[float, Field(allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
AboveZero = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Strict(), Field(ge=0, le=10**9)]
Positive = Annotated[int, Strict(), Field(ge=1, le=10**9)]
Scalar = str | bool | int | float
Formula = Annotated[str, Strict(), Field(min_length=1, max_length=1000)]
Kind = Literal[
    "ttest_ind",
    "welch",
    "ttest_paired",
    "ttest_one",
    "anova",
    "interaction",
    "correlation",
    "spearman",
    "contingency",
    "binomial",
    "proportion",
    "mannwhitney",
    "wilcoxon",
    "variance_ratio",
]
Expected = Literal["greater", "less", "positive", "negative", "equal", "different"]

DIRECTIONS = {"greater": 1, "positive": 1, "less": -1, "negative": -1}
"""The sign that `expect` claims; `equal` and `different` claim none."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Answered(_Part):
    """One field of a participant's answer."""

    type: Literal["choice", "number", "likert", "rank", "text"]  # what kind of answer
    # choice, rank: labels, or labels with their meanings
    options: list[Text] | dict[str, Text] | None = None
    # number, likert: both ends
    range: Annotated[list[Number | None], Field(min_length=2, max_length=2)] | None = None
    whole: bool = False  # number: whole numbers only
    # how the answer form describes it; null: derived from type, options and range
    hint: Text | None = None
    optional: bool = False  # an answer without it still counts as complete
    scale: AboveZero = 1.0  # number: answers are divided by it in `responses`

    @property
    def labels(self) -> tuple[str, ...]:
        """The options' labels, in file order."""
        return tuple(self.options or ())

    @property
    def meanings(self) -> Mapping[str, str]:
        """Label → meaning, if the file gives meanings."""
        if isinstance(self.options, dict):
            return self.options
        return {}


class Relabelled(_Part):
    """What `dataset.relabel` changes in an arm or a task besides its materials: the same decision,
    other figures.
    """

    values: dict[str, Scalar] = {}  # replace those of the same name
    # replace those of the same name: another range, hint and `scale`
    fields: dict[str, Answered] = {}


class Task(_Part):
    """One prompt that a participant sees, and the fields of the answer."""

    prompt: Text  # a file in the study's folder
    # the fields of the answer, by name; each name is a column of `responses`
    fields: dict[str, Answered]
    name: Text | None = None  # null: the prompt's file name
    values: dict[str, Scalar] = {}  # values for {{ … }} in the prompt, besides `profile`
    relabel: Relabelled | None = None  # what `dataset.relabel` changes


class Role(_Part):
    """One role of a game: what its player sees and answers.

    The prompt may show what earlier roles answered.
    """

    prompt: Text  # for every round but the first
    first: Text | None = None  # the prompt for the first round; null: the same as for the others
    fields: dict[str, Answered]  # the fields of the answer


class Rounds(_Part):
    """A game: every round asks each participant of a group once, and shows what the others did in
    the last one.
    """

    count: Positive  # number of rounds
    # participants; null: each plays alone
    group: Annotated[int, Strict(), Field(ge=2, le=10**6)] | None = None
    prompt: Text | None = None  # for every round but the first; null: the arm's
    first: Text | None = None  # the prompt for the first round; null: the same as for the others
    fields: dict[str, Answered] | None = None  # null: the arm's
    # one per member of a group, asked in this order in every round
    roles: dict[Text, Role] | None = None
    # role → what it earns in a round, e.g. 10 - {{ sender.sent }}
    payoffs: dict[Text, Formula] | None = None

    @property
    def size(self) -> int | None:
        """Members of a group; None: each plays alone."""
        if self.roles:
            return len(self.roles)
        return self.group


class Arm(_Part):
    """What one group of participants is shown: one prompt with its fields, or several tasks."""

    prompt: Text | None = None  # a file in the study's folder
    fields: dict[str, Answered] | None = None  # the fields of the answer
    tasks: list[Task] | None = None  # several prompts, instead of `prompt` and `fields`
    values: dict[str, Scalar] = {}  # values for {{ … }} in its prompts, besides `profile`
    relabel: Relabelled | None = None  # what `dataset.relabel` changes
    n: Positive | None = None  # how many people there were
    rounds: Rounds | None = None  # null: the study's

    @property
    def shown(self) -> tuple[Task, ...]:
        """The tasks in file order; an arm with a single prompt has one."""
        if self.tasks is not None:
            return tuple(self.tasks)
        if self.prompt is None:
            return ()
        return (Task(prompt=self.prompt, fields=self.fields or {}),)

    @property
    def answered(self) -> dict[str, Answered]:
        """Every field of the arm."""
        own = {}
        for task in self.shown:
            for name, answer in task.fields.items():
                own[name] = answer

        own |= {
            name: answer for role in self.roles.values() for name, answer in role.fields.items()
        }
        return own | ((self.rounds.fields or {}) if self.rounds is not None else {})

    @property
    def roles(self) -> dict[str, Role]:
        """The roles of its game; empty without any."""
        return (self.rounds.roles if self.rounds is not None else None) or {}

    @property
    def payoffs(self) -> dict[str, str]:
        """Role → what it earns in a round; empty without any."""
        return (self.rounds.payoffs if self.rounds is not None else None) or {}

    def people_with(self, fields: Collection[str]) -> int | None:
        """How many people were asked any of these fields; in a game with roles, only those with
        such a role.
        """
        if self.n is None or not self.roles:
            return self.n
        return (
            self.n
            // len(self.roles)
            * sum(bool(set(role.fields) & set(fields)) for role in self.roles.values())
        )


class Participants(_Part):
    """Who takes part."""

    # "human": as many as there were people in each arm; or a number
    per_arm: Literal["human"] | Positive = "human"
    profile: JsonObject = {}  # attribute → [low, high], {value: share}, [values], or one value
    given: Text | None = None  # a file of persons (rows of any format), drawn with the seed


class Groups(_Part):
    """Which rows of `data` are compared: levels of a column, the first against the second."""

    column: Text  # `arm`, or any other column of `data`
    # its values; the first is compared with the second
    levels: Annotated[list[Scalar], Field(min_length=1)]

    @property
    def names(self) -> tuple[str, ...]:
        """The levels as `human` names them."""
        return tuple(level_name(level) for level in self.levels)


class Level(_Part):
    """What was published about one group of people."""

    n: Positive | None = None  # people; null: as many as in the arm
    k: Count | None = None  # how many of them did what is counted
    mean: Number | None = None  # of the measure
    sd: NotNegative | None = None  # its standard deviation
    counts: dict[str, Count] | None = None  # more than two outcomes: how many people chose each


def _levels_beside(schema: dict[str, JsonValue]) -> None:
    """In a file the groups are keys on the same level as the others."""
    properties = cast("dict[str, dict[str, JsonValue]]", schema["properties"])
    schema["additionalProperties"] = properties.pop("levels")["additionalProperties"]


class Human(_Part):
    """What was published about one test.

    Each group is a further key on this level, named like the test's level.
    """

    model_config = ConfigDict(json_schema_extra=_levels_beside)

    levels: dict[str, Level] = {}  # by name, as keys beside those below
    t: Number | None = None  # with its sign
    F: NotNegative | None = None  # of a one-way anova
    U: NotNegative | None = None  # pairs in which the first group is higher
    chi2: NotNegative | None = None  # compared with the counts, never used
    z: Number | None = None  # of signed ranks, or of U
    r: Annotated[float, Field(ge=-1, le=1)] | None = None  # of a correlation
    ratio: AboveZero | None = None  # of variances
    df1: AboveZero | None = None  # of t; of the numerator of F
    df2: AboveZero | None = None  # of the denominator of F
    n: Positive | None = None  # people in all
    k: Count | None = None  # how many of them did what is counted
    mean: Number | None = None  # of one sample, or of the differences within pairs
    sd: NotNegative | None = None  # its standard deviation
    sign: Literal[-1, 1] | None = None  # of an effect whose statistic has none (F, χ²)
    reported: Annotated[Text, Field(max_length=2000)] | None = None  # as it is printed


_STATISTICS = set(Human.model_fields) - {"levels"}


_INSTEAD = {
    (
        "cochran",
        "cochranq",
        "cochransq",
        "mcnemar",
    ): "test two conditions at a time: in `derive` keep who changed between them, and test the "
    "share that changed in one direction with `binomial` and p0: 0.5 (McNemar's exact test)",
    (
        "median",
        "medians",
        "mood",
        "moodmedian",
        "moodsmedian",
        "mediantest",
        "quantile",
    ): "say in `derive` whether an answer is above the median of all, and compare the shares with "
    "`contingency` (that is Mood's test)",
    (
        "ols",
        "regression",
        "linearregression",
        "lm",
        "coefficient",
        "slope",
    ): "the slope of one number on another is a `correlation` (r = t/√(t² + df)), that of two "
    "groups a `ttest_ind`; one with covariates cannot be tested",
    (
        "logit",
        "logistic",
        "logisticregression",
        "probit",
        "oddsratio",
    ): "the coefficient of two groups is the ln odds "
    "ratio of a `contingency`, with k and n of each; one with covariates cannot be tested",
    (
        "rmanova",
        "repeatedmeasures",
        "mixedanova",
        "ancova",
        "manova",
    ): "compare pairs with `ttest_paired`, or a "
    "contrast within each person, as a column of `derive`, with `ttest_one` or `ttest_ind`",
    (
        "factorial",
        "twowayanova",
        "factorialanova",
    ): "write `anova` with the other columns in `factors`, or `interaction`",
}
"""Plain names of statistics that papers print and karat does not have → what tests the same
claim.
"""

Factors = Annotated[dict[Text, Annotated[list[Scalar], Field(min_length=2)]], Field(min_length=1)]
Cell = Mapping[str, Scalar]


class Test(_Part):
    """The statistic that shows a finding, in people and in the agent."""

    __test__ = False  # not a test class, whatever pytest makes of the name

    id: Text  # unique within its finding
    kind: Kind  # see above
    measure: Text  # a column of `data`
    groups: Groups | None = None  # null: all rows of `data`
    # anova, interaction: the other columns of a factorial design, with their levels
    factors: Factors | None = None
    against: str | float | None = None  # a second column, or the number to compare one sample with
    # contingency: other than true and false
    outcomes: Annotated[list[Scalar], Field(min_length=2)] | None = None
    p0: Annotated[float, Field(gt=0, lt=1)] = 0.5  # binomial: the share to compare with
    alternative: Literal["two-sided", "greater", "less"] = "two-sided"  # of the published p
    expect: Expected  # the direction that the claim predicts
    use: Literal["statistic", "descriptives"] | None = None  # null: the statistic, if there is one
    # for `use`, and why degrees of freedom or N differ from the printed ones
    reason: Text | None = None
    n_reason: Text | None = None  # why the n of people differs from that of the arms
    # fields that an answer must have; null: those that `measure` is derived from
    needs: list[Text] | None = None
    # several rows of one person in a group: their mean, or share, counts once
    by: Literal["participant"] | None = None
    # t tests: every row counts, and the error is between persons (CR2)
    cluster: Literal["participant"] | None = None
    human: Human  # what was published
    weight: Annotated[float, Field(gt=0)] = 1.0  # kept for other programs: karat's means are plain

    @field_validator("kind", mode="before")
    @classmethod
    def _known(cls, kind: Json) -> Json:
        """For a statistic that papers print and karat does not have, says what to write instead."""
        plain = re.sub(r"[^a-z0-9]+", "", str(kind).lower())
        for names, instead in _INSTEAD.items():
            if plain in names:
                raise ValueError(f"there is no kind '{kind}': {instead}")

        return kind

    @model_validator(mode="wrap")
    @classmethod
    def _with_levels(cls, values: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Reads the groups of `human`, whose keys are mixed with its statistics."""
        if not isinstance(values, Mapping) or not isinstance(values.get("human"), Mapping):
            return handler(values)
        groups = values.get("groups")
        human = values["human"]
        if isinstance(groups, Mapping):
            listed = groups.get("levels")
        else:
            listed = None

        if isinstance(listed, list):
            names = [level_name(level) for level in listed]
        else:
            names = []

        # Keys of `human` that are neither a statistic nor a group, and groups with the name of a
        # statistic
        message = "'{}' is also the name of a statistic; rename the group"
        problems = []
        for name in names:
            if name in _STATISTICS:
                problems.append(Problem(("groups", "levels"), message.format(name)))

        for key in [key for key in human if key not in _STATISTICS and key not in names]:
            if isinstance(human[key], Mapping):
                known = ", ".join(f"'{name}'" for name in names) or "none"
                message = (
                    f"no such group: groups.levels has "
                    f"{known}{did_you_mean(key, names, listing=False)}"
                )
            else:
                message = f"no such key{did_you_mean(key, [*_STATISTICS, *names])}"

            problems.append(Problem(("human", key), message))

        levels = {
            key: value for key, value in human.items() if key in names and key not in _STATISTICS
        }
        statistics = {key: value for key, value in human.items() if key in _STATISTICS}
        try:
            test = handler({**values, "human": {**statistics, "levels": levels}})
        except ValidationError as error:
            raise refusal([*problems, *explain(error, values, cls)]) from None

        if problems:
            raise refusal(problems)
        return test

    @property
    def columns(self) -> list[str]:
        """The columns that it reads: its groups or factors, its measure, and the column it is
        compared with.
        """
        named = [*(self.factors or {}), self.measure]
        if self.groups is not None:
            named.insert(0, self.groups.column)
        if isinstance(self.against, str):
            named.append(self.against)
        return named

    @property
    def statistic_kind(self) -> str:
        """The kind as `karat_studies.replication` calls it: an interaction is tested by an F."""
        return "anova" if self.kind == "interaction" else self.kind

    @property
    def cells(self) -> list[list[Cell]]:
        """The cells of each compared group, as column → level: one per group, several in a
        factorial design.

        An interaction compares the two diagonals of its four cells.
        """
        if self.groups is None:
            return []
        others = [
            dict(zip(self.factors or {}, levels, strict=True))
            for levels in product(*(self.factors or {}).values())
        ]
        rows: list[list[Cell]] = []
        for level in self.groups.levels:
            rows.append([{self.groups.column: level, **other} for other in others])
        if self.kind == "interaction" and len(rows) == len(others) == 2:
            return [[rows[0][0], rows[1][1]], [rows[0][1], rows[1][0]]]
        return rows


class Finding(_Part):
    """A claim of the study, and the tests that show it."""

    id: Text  # F1, F2, …
    claim: Text  # as a sentence
    sub_study: str = ""  # which experiment of the paper, if an id occurs twice
    tests: Annotated[list[Test], Field(min_length=1)]  # the tests that show it


class StudyDraft(_Part):
    """Which study it is, and its parts."""

    study: Text  # a short name, for ids and files
    title: Text  # of the paper
    source: Text  # the citation of the paper
    domain: Literal["cognition", "strategic", "social"]  # what it is about
    license: Text | None = None  # of the texts
    caveat: Text | None = None  # what a reader of the results must know
    participants: JsonObject = {}  # see below
    design: Literal["between", "within"] = "between"  # each participant in one arm, or in all
    arms: Annotated[JsonObject, Field(min_length=1)]  # by name, see below
    # of the tasks of an arm, and of the arms of a within design
    order: Literal["fixed", "random"] = "fixed"
    rounds: JsonObject | None = None  # for every arm, see below
    derive: Text = "SELECT * FROM responses"  # SQL that turns `responses` into `data`
    findings: Annotated[list[Any], Field(min_length=1)]  # see below
    # least share of readable participants for a score
    min_coverage: Annotated[float, Field(ge=0, le=1)] = 0.5
    # module:function, with --allow-code
    reducer: Annotated[str, Field(pattern=r"^[\w.]+:\w+$")] | None = None


class StudyDocument(StudyDraft):
    """A study file."""

    participants: Participants = Participants()  # type: ignore[assignment]  # in a draft each is read separately
    arms: Annotated[dict[str, Arm], Field(min_length=1)]
    rounds: Rounds | None = None  # type: ignore[assignment]  # as above
    findings: Annotated[list[Finding], Field(min_length=1)]


@dataclass(frozen=True, kw_only=True, slots=True)
class StudyFile:
    """A study that was read and checked, with its materials. Nothing here needs checking again."""

    study: str
    title: str
    source: str
    domain: str
    path: Path  # of study.yaml
    sha256: str  # hex, over study.yaml, materials and persons
    participants: Participants
    design: str
    arms: dict[str, Arm]
    order: str
    derive: str
    findings: tuple[Finding, ...]
    min_coverage: float
    license: str | None = None
    caveat: str | None = None
    reducer: str | None = None
    materials: dict[str, str] = field(default_factory=dict)  # prompt → its text
    persons: tuple[JsonObject, ...] = ()  # of `participants.given`
    warnings: tuple[str, ...] = ()  # what cannot be checked, and what is not read the way it looks
    reorder: bool = False  # options are shown in reverse order
    wording: str | None = None  # of the materials; None: their own
    relabel: bool = False  # relabelled materials and amounts are used, where there are any
    data: bytes = field(default=b"", repr=False)  # study.yaml as it was read
    # in a run: file of the study's own code → its sha256 then; None: not recorded
    code: dict[str, str] | None = None

    @property
    def folder(self) -> Path:
        """The folder with the materials."""
        return self.path.parent

    @property
    def fields(self) -> dict[str, Answered]:
        """Every field of any arm, in file order."""
        found: dict[str, Answered] = {}
        for arm in self.arms.values():
            found |= arm.answered
        return found

    @property
    def attributes(self) -> tuple[str, ...]:
        """The columns that come from a profile."""
        given = [name for person in self.persons[:1] for name in person]
        return tuple(dict.fromkeys([*self.participants.profile, *given]))

    @property
    def pays(self) -> bool:
        """Whether some arm has payoffs: `responses` then has a column for them."""
        return any(arm.rounds is not None and arm.rounds.payoffs for arm in self.arms.values())

    @property
    def tests(self) -> tuple[tuple[Finding, Test], ...]:
        """Every test with its finding."""
        return tuple((finding, test) for finding in self.findings for test in finding.tests)


def level_name(level: Scalar) -> str:
    """A level as it is written as a key of `human`: `true`, `2`, or the text itself."""
    if isinstance(level, bool):
        return str(level).lower()
    if isinstance(level, float):
        return f"{level:g}"
    return str(level)


def studies_of(dataset: Dataset) -> tuple[StudyFile, ...]:
    """The studies of a dataset, in the form participants see."""
    return tuple(study for study in dataset.parts if isinstance(study, StudyFile))
