"""Every flag of every command, declared once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karat.cli.ending import Ending, keep_hidden
from karat.cli.output import Output

if TYPE_CHECKING:
    from karat.config import Experiment
    from karat.execution import Selection
    from karat.records import AllowCode

__all__ = [
    "Answers",
    "Asking",
    "Chosen",
    "File",
    "Linting",
    "Scorers",
    "Shown",
    "StudyTests",
    "Viewing",
    "allow_code",
    "answers",
    "asking",
    "dark",
    "debug",
    "experiment_file",
    "import_folder",
    "import_settings",
    "linting",
    "out",
    "output",
    "plot_folder",
    "plot_forms",
    "rehearsed_results",
    "report_settings",
    "results",
    "run_argument",
    "scorers",
    "scoring",
    "selection",
    "settings",
    "show_help",
    "shown",
    "shown_and_compared",
    "study_tests",
    "viewing",
]

Command = Callable[..., Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class File:
    """The experiment file, and what the command line lays over it."""

    file: Path
    settings: tuple[str, ...]
    env_file: Path | None

    def load(self) -> Experiment:
        """Raises BadExperiment with every fault."""
        from karat.config import load

        experiment = load(self.file, settings=self.settings, env_file=self.env_file)
        keep_hidden(experiment.secrets)
        return experiment


@dataclass(frozen=True, kw_only=True, slots=True)
class StudyTests:
    """What a file of statistical tests is made into."""

    kind: str  # "answers", "conversation", "study", "study-tests"
    to: str | None
    out: Path | None
    convention: str
    fallbacks: str | None
    bound: float | None = None  # of equivalence, in d
    plot: Path | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Viewing:
    """Where the viewer listens, and who looks."""

    host: str
    port: int
    allow_remote: bool
    open_browser: bool
    reviewer: str | None  # None: the user's name


@dataclass(frozen=True, kw_only=True, slots=True)
class Asking:
    """Where the rows of a query go, and how much it may take."""

    to: str | None
    out: Path | None
    seconds: float
    megabytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Linting:
    """A dataset to be looked at, and how."""

    dataset: Path
    kind: str | None  # None: the one that the file looks like
    settings: tuple[str, ...]
    quarantine: Path | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Chosen:
    """Which part of the plan."""

    limit: int | None
    only_samples: tuple[str, ...]
    only_conditions: tuple[str, ...]

    def as_selection(self) -> Selection:
        """In the engine's words."""
        from karat.execution import Selection

        return Selection(limit=self.limit, samples=self.only_samples, conditions=self.only_conditions)

    def words(self) -> list[str]:
        """As they stand on a command line, so that they can be typed again."""
        named = [f"--only-sample={name}" for name in self.only_samples]
        named += [f"--only-condition={name}" for name in self.only_conditions]
        return [*([f"--limit={self.limit}"] if self.limit is not None else []), *named]


@dataclass(frozen=True, kw_only=True, slots=True)
class Scorers:
    """Scorers named on the command line."""

    judge: str | None
    scorers: tuple[str, ...]
    extract: str | None = None  # of the scorer `numeric`

    def __bool__(self) -> bool:
        return self.judge is not None or bool(self.scorers) or self.extract is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """Which numbers of a run are shown."""

    scorings: dict[str, str]  # scorer → digest, or its beginning
    allow_code: bool  # human studies may run their own
    allow_changed_code: bool  # … also where it changed since the run was made
    right: str | None = None  # of conversations: the match that makes a turn right
    pairs: str = "baseline"  # which conditions are compared: baseline or all
    baseline: str | None = None  # None: the experiment's, else its first condition
    full: bool = False  # every section of a report

    @property
    def code(self) -> AllowCode:
        """As `karat.summarize` takes it."""
        return "changed" if self.allow_changed_code else self.allow_code

    @property
    def compared(self) -> dict[str, Any]:
        """As `karat.summarize` takes it; nothing where nothing was asked for."""
        usual = self.pairs == "baseline" and self.baseline is None
        return {} if usual else {"pairs": self.pairs, "baseline": self.baseline}


@dataclass(frozen=True, kw_only=True, slots=True)
class Answers:
    """What is needed besides a file of answers."""

    dataset: Path | None
    settings: tuple[str, ...]
    columns: tuple[str, ...] = ()  # TARGET=COLUMN
    strict: bool = False
    question: str | None = None  # columns of a file that has all three, or of --dataset and of the answers
    golden: str | None = None
    answer: str | None = None


def _gathered(into: str, value: type[Any], *declared: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """A decorator that declares several flags and hands them to the command as one value, called `into`."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def gathering(**given: Any) -> Any:
            own = {field.name: given.pop(field.name) for field in fields(value) if field.name in given}
            return command(**{into: value(**own)}, **given)

        declaring: Command = gathering
        for option in reversed(declared):
            declaring = option(declaring)
        return declaring

    return decorate


def _set_debug(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    ending = ctx.find_object(Ending)
    if wanted and ending is not None:
        ending.debug = True


debug = click.option(
    "--debug",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_set_debug,
    help="Show the traceback of an error.",
)
# Declared on each command, not by the group's context: so a command's help is the same wherever it is asked for.
show_help = click.help_option("-h", "--help", help="Show this message.")
settings = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Lay a setting over the file, e.g. execution.num_repetitions=5; the value is YAML. Repeatable.",
)
experiment_file = _gathered(
    "source",
    File,
    click.argument("file", type=click.Path(path_type=Path)),
    settings,
    click.option(
        "--env-file",
        type=click.Path(path_type=Path),
        metavar="PATH",
        help="NAME=value lines for ${NAME}, where the environment has none.",
    ),
)
linting = _gathered(
    "linting",
    Linting,
    click.argument("dataset", type=click.Path(path_type=Path)),
    click.option(
        "--kind", metavar="NAME", help="The kind: conversation, golden or study; default: what the file looks like."
    ),
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="An option of the dataset, e.g. split=dev or question_key=prompt. Repeatable.",
    ),
    click.option(
        "--quarantine",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Write what was found as JSON Lines, for `dataset.quarantine` of an experiment.",
    ),
)
viewing = _gathered(
    "viewing",
    Viewing,
    click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Listen at this address."),
    click.option(
        "--port",
        type=click.IntRange(min=0, max=65535),
        default=0,
        metavar="N",
        help="Listen at this port; default: any free one.",
    ),
    click.option(
        "--allow-remote",
        is_flag=True,
        help="Let --host be an address that other machines can reach. The pages travel unencrypted.",
    ),
    click.option(
        "--open/--no-open", "open_browser", default=True, help="Open the address in the browser; default: do."
    ),
    click.option("--reviewer", metavar="NAME", help="Who reviews; default: the name of your account."),
)
selection = _gathered(
    "chosen",
    Chosen,
    click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N samples."),
    click.option("--only-sample", "only_samples", multiple=True, metavar="ID", help="Only this sample. Repeatable."),
    click.option(
        "--only-condition", "only_conditions", multiple=True, metavar="NAME", help="Only this condition. Repeatable."
    ),
)
scorers = _gathered(
    "wanted",
    Scorers,
    click.option(
        "--judge",
        metavar="MODEL|TYPE",
        help="A model as judge, e.g. anthropic:claude-opus-4-5, or a scorer, e.g. overlap; "
        "{model: …, repeats: 3} or {type: …, …} with its options.",
    ),
    click.option(
        "--scorer",
        "scorers",
        multiple=True,
        metavar="NAME",
        help="A further scorer, e.g. equals; or {NAME: {…}} with its options. Repeatable.",
    ),
    click.option(
        "--extract",
        metavar="HOW",
        help="How the scorer numeric finds the number in an answer that is more than a number: json (default), "
        "last_number or regex:PATTERN.",
    ),
)
answers = _gathered(
    "answers",
    Answers,
    click.option(
        "--dataset", type=click.Path(path_type=Path), metavar="FILE", help="ANSWERS: the questions and golden answers."
    ),
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="ANSWERS: e.g. agent.answer_key=output or dataset.question_key=prompt. Repeatable.",
    ),
    click.option(
        "--map",
        "columns",
        multiple=True,
        metavar="TARGET=COLUMN",
        help="ANSWERS: what a column is called, e.g. answer=predicted_answer. Repeatable.",
    ),
    click.option("--strict", is_flag=True, help="ANSWERS: score nothing where the file has faults."),
    click.option("--question", metavar="COLUMN", help="ANSWERS: the column with the question."),
    click.option("--golden", metavar="COLUMN", help="ANSWERS: the column with the golden answer."),
    click.option("--answer", metavar="COLUMN", help="ANSWERS: the column with the answer to score."),
)
_json = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
_quiet = click.option("--quiet", "-q", is_flag=True, help="Say nothing on standard error but errors.")
_events = click.option(
    "--events", is_flag=True, help="Write each event to standard error as a line of JSON, and nothing else there."
)


def output(*, events: bool = False) -> Callable[[Command], Command]:
    """`--json`, `--quiet` and, for commands that take a while, `--events`: as one value, `output`."""
    return _gathered("output", Output, _json, *([_events] if events else []), _quiet, debug, show_help)


def _results(default: Path) -> Callable[[Command], Command]:
    return click.option(
        "--results",
        type=click.Path(path_type=Path, file_okay=False),
        default=default,
        show_default=True,
        metavar="DIR",
        help="The folder of the run folders.",
    )


results = _results(Path("results"))
rehearsed_results = _results(Path("results", "rehearsed"))  # apart: `latest` is then never a rehearsal
run_argument = click.argument("run", metavar="RUN")
out = click.option(
    "--out", type=click.Path(path_type=Path), metavar="PATH", help="Write there instead of standard output."
)
asking = _gathered(
    "asking",
    Asking,
    click.option(
        "--to", type=click.Choice(["csv", "parquet"]), help="Write the rows as this; without SQL every table."
    ),
    out,
    click.option(
        "--seconds",
        type=click.FloatRange(min=0, min_open=True, max=86400),
        default=60,
        show_default=True,
        metavar="N",
        help="End the query after so many seconds.",
    ),
    click.option(
        "--megabytes",
        type=click.IntRange(min=64, max=1 << 20),
        default=512,
        show_default=True,
        metavar="N",
        help="How much memory it may take.",
    ),
)
import_folder = click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="The folder for the draft (of several: their folders); default: the draft's name, in this one.",
)
import_settings = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="An option of the importer (`karat list importers NAME` shows them). Repeatable.",
)
plot_folder = click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="The folder for the charts, made where it is missing; default: the name of the run and -charts.",
)
plot_forms = click.option(
    "--format",
    "forms",
    type=click.Choice(["png", "svg", "json"]),
    multiple=True,
    help="Only this form; json is the Vega-Lite spec. Repeatable; default: all three.",
)
dark = click.option("--dark", is_flag=True, help="Light on dark.")
study_tests = _gathered(
    "tests",
    StudyTests,
    click.option(
        "--kind",
        type=click.Choice(["answers", "conversation", "study", "study-tests"]),
        default="answers",
        show_default=True,
        help="What the file holds. conversation: one turn of a conversation a row, with numbers as answers. "
        "study: what a participant of a human study answered a row. "
        "study-tests: one statistical test a row, people beside an agent.",
    ),
    click.option("--to", metavar="NAME", help="Of study tests. humanstudy: the three files of HumanStudy-Bench."),
    out,
    click.option(
        "--convention",
        type=click.Choice(["humanstudy", "standard"]),
        default="humanstudy",
        show_default=True,
        help="Of study tests: how shares and ranks become Cohen's d.",
    ),
    click.option(
        "--fallbacks",
        type=click.Choice(["documented"]),
        help="Of study tests: numbers for what is missing, as HumanStudy-Bench documents them.",
    ),
    click.option(
        "--bound",
        type=click.FloatRange(min=0, min_open=True),
        metavar="D",
        help="Of study tests: test that agent and people differ by less than this Cohen's d; state it beforehand.",
    ),
    click.option(
        "--plot",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIR",
        help="Of study tests: also write the charts there, as PNG, SVG and Vega-Lite (extra plots).",
    ),
)


def _keys(_: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, Any]:
    if not given:
        return {}
    from karat.cli.values import parsed

    values: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise click.BadParameter(f"want KEY=VALUE, got '{text}'", param=option)
        values[key] = parsed(f"--set {key}", value)
    return values


allow_code = click.option(
    "--allow-code",
    is_flag=True,
    help="Let human studies run their own code, `reducer`, from the folder they lay in. Look at it first.",
)
allow_changed_code = click.option(
    "--allow-changed-code",
    is_flag=True,
    help="Likewise, even if it is not the code that was there when the run was made: numbers may differ.",
)
report_settings = click.option(
    "--set",
    "asked",
    multiple=True,
    callback=_keys,
    metavar="KEY=VALUE",
    help="An option of the report (`karat list reports NAME` shows them). Repeatable.",
)


def _scorings(_: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    pairs = [text.rpartition("=") for text in given]
    for text, (name, _equals, digest) in zip(given, pairs, strict=True):
        if not name or not digest:
            raise click.BadParameter(f"want SCORER=DIGEST, got '{text}'", param=option)
    return {name: digest for name, _, digest in pairs}


scoring = click.option(
    "--scoring",
    "scorings",
    multiple=True,
    callback=_scorings,
    metavar="SCORER=DIGEST",
    help="Show this scoring instead of the newest (the beginning of its digest is enough). Repeatable.",
)
right = click.option(
    "--right",
    metavar="RULE",
    help="Of conversations, what makes a turn right: numerical, soft, unit_agnostic, sign_agnostic, general, exact or "
    "declared; default: `dataset.right` of the experiment, else numerical.",
)
shown = _gathered("shown", Shown, scoring, right, allow_code, allow_changed_code)

pairs = click.option(
    "--pairs",
    type=click.Choice(["baseline", "all"]),
    default="baseline",
    show_default=True,
    help="Compare each condition with the baseline and the best, or each with each.",
)
baseline = click.option(
    "--baseline",
    metavar="CONDITION",
    help="Compare with this condition. Default: the experiment's `baseline`, else its first.",
)
shown_and_compared = _gathered("shown", Shown, scoring, right, allow_code, allow_changed_code, pairs, baseline)
