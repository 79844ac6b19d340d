"""Options that several commands share, or that form one value, each declared once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import karat
from karat import execution
from karat.analysis.totals import TOTALS
from karat.cli.ending import Ending, keep_hidden
from karat.cli.output import Output
from karat.installation import plugin_modules

if TYPE_CHECKING:
    from karat.config import Experiment
    from karat.execution import Selection
    from karat.records import JsonObject

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]

FOLDER = click.Path(path_type=Path, file_okay=False)
FILE = click.Path(path_type=Path, dir_okay=False)
PATH = click.Path(path_type=Path)


class _Declared:
    """An option or argument of click, named after the attribute that holds it."""

    def __init__(self, declare: Callable[..., Decorator], *names: str, **about: object) -> None:
        self._declare = declare
        self._names = names
        self._about = about

    def named(self, name: str) -> Decorator:
        return self._declare(*self._names, name, **self._about)


def option(*flags: str, **about: object) -> Any:
    """A field of `Options` that is an option of the field's type."""
    return _Declared(click.option, *flags, **about)


def argument(**about: object) -> Any:
    """A field of `Options` that is an argument."""
    return _Declared(click.argument, **about)


class Options:
    """Options that belong together: each field declares its own.

    `use`: packages beside karat add options to it, a file each in their folder `flags`, whose
    `USES` name it. Those that were given are in `asked`.
    """

    use = ""

    def __init__(self, *, asked: JsonObject | None = None, **values: object) -> None:
        self.asked: JsonObject = dict(asked or {})
        vars(self).update(values)


@functools.cache
def _added(use: str) -> dict[str, _Declared]:
    """The options that packages add for a use, by name."""
    if not use:
        return {}
    files = {name: import_module(module) for name, module in plugin_modules("flags").items()}
    return {name: file.flag for name, file in files.items() if use in file.USES}


def gathered(into: str, options: type[Options]) -> Decorator:
    """Declares the options of a class, and passes them to the command as one value, named
    `into`.
    """
    fields = {
        name: field for base in reversed(options.__mro__) for name, field in vars(base).items()
    }
    declared = {name: field for name, field in fields.items() if isinstance(field, _Declared)}
    added = _added(options.use)

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def gathering(**given: object) -> Any:
            values = {name: given.pop(name) for name in declared}
            asked = {name: given.pop(name) for name in added}
            asked = {name: value for name, value in asked.items() if value not in (None, False)}
            return command(**{into: options(asked=asked, **values)}, **given)

        declaring: Command = gathering
        for name, field in reversed([*declared.items(), *added.items()]):
            declaring = field.named(name)(declaring)
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
# Declared on each command, not in the group's context, so that a command's help is the same
# everywhere.
show_help = click.help_option("-h", "--help", help="Show this message.")
_json = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
_quiet = click.option("--quiet", "-q", is_flag=True, help="Print only errors on standard error.")
_events = click.option(
    "--events", is_flag=True, help="Write only events to standard error, one line of JSON each."
)


def output(*, events: bool = False) -> Decorator:
    """`--json`, `--quiet` and, for commands that take a while, `--events`: as one value,
    `output`.
    """

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def gathering(**given: Any) -> Any:
            chosen = {}
            for name in ("as_json", "quiet", "events"):
                if name in given:
                    chosen[name] = given.pop(name)

            return command(output=Output(**chosen), **given)

        declaring: Command = gathering
        for declare in (show_help, debug, _quiet, *([_events] if events else []), _json):
            declaring = declare(declaring)
        return declaring

    return decorate


_SKIPPED = "Leave rows out that cannot be read, and count them."


class File(Options):
    """The experiment file, and what the command line overrides."""

    file: Path = argument(type=PATH)
    settings: tuple[str, ...] = option(
        "--set",
        multiple=True,
        metavar="KEY=VALUE",
        help=(
            "Override a setting in the file, e.g. execution.num_repetitions=5; the value is YAML. "
            "Repeatable."
        ),
    )
    env_file: Path | None = option(
        "--env-file",
        type=PATH,
        metavar="PATH",
        help="NAME=value lines for each ${NAME} that the environment does not set.",
    )
    skip_unreadable: bool = option("--skip-unreadable", is_flag=True, help=_SKIPPED)

    @property
    def overrides(self) -> tuple[str, ...]:
        """All settings of the command line, also those that have an option of their own."""
        if self.skip_unreadable:
            return *self.settings, "dataset.skip=unreadable"
        return self.settings

    def load(self) -> Experiment:
        """Raises BadExperiment with every fault."""
        self.settings = self.overrides
        experiment = karat.load(self.file, settings=self.settings, env_file=self.env_file)
        keep_hidden(experiment.secrets)
        return experiment


class Linting(Options):
    """A dataset to check, and how."""

    dataset: Path = argument(type=PATH)
    kind: str | None = option(
        "--kind",
        metavar="NAME",
        help="The kind (`karat list kinds`); default: guessed from the file.",
    )
    settings: tuple[str, ...] = option(
        "--set",
        multiple=True,
        metavar="KEY=VALUE",
        help="An option of the dataset, e.g. split=dev or question_key=prompt. Repeatable.",
    )
    quarantine: Path | None = option(
        "--quarantine",
        type=FILE,
        metavar="FILE",
        help="Write the doubtful turns as JSON Lines, for `dataset.quarantine` in an experiment.",
    )


class Chosen(Options):
    """Which part of the plan to run."""

    limit: int | None = option(
        "--limit", type=click.IntRange(min=1), metavar="N", help="Run only the first N samples."
    )
    only_samples: tuple[str, ...] = option(
        "--only-sample", multiple=True, metavar="ID", help="Run only this sample. Repeatable."
    )
    only_conditions: tuple[str, ...] = option(
        "--only-condition",
        multiple=True,
        metavar="NAME",
        help="Run only this condition. Repeatable.",
    )

    def as_selection(self) -> Selection:
        """As `karat.execution` takes it."""
        return execution.Selection(
            limit=self.limit, samples=self.only_samples, conditions=self.only_conditions
        )

    def words(self) -> list[str]:
        """The options as typed on a command line, for commands that karat suggests."""
        words = [f"--only-sample={name}" for name in self.only_samples]
        if self.limit is not None:
            words.insert(0, f"--limit={self.limit}")
        return [*words, *(f"--only-condition={name}" for name in self.only_conditions)]


class ChosenOfShard(Chosen):
    """Which part of the plan to run, perhaps one of several equal parts."""

    shard: str | None = option(
        "--shard",
        metavar="I/N",
        help="Run only the I-th of N parts of the trials; `karat runs merge` merges the parts.",
    )

    def as_selection(self) -> Selection:
        """As `karat.execution` takes it. Raises BadOption."""
        import msgspec

        if self.shard is not None:
            shard = execution.Shard.parse(self.shard)
        else:
            shard = None

        return msgspec.structs.replace(super().as_selection(), shard=shard)


class Scorers(Options):
    """Scorers named on the command line."""

    judge: str | None = option(
        "--judge",
        metavar="MODEL|TYPE",
        help="A model as judge, e.g. anthropic:claude-opus-4-5, or a scorer, e.g. overlap; "
        "with options: {model: …, repeats: 3} or {type: …, …}.",
    )
    scorers: tuple[str, ...] = option(
        "--scorer",
        multiple=True,
        metavar="NAME",
        help="Another scorer, e.g. equals; with options: {NAME: {…}}. Repeatable.",
    )
    extract: str | None = option(
        "--extract",
        metavar="HOW",
        help="How the scorer numeric finds the number in an answer with other text: final "
        "(default), json, last_number or regex:PATTERN.",
    )

    def __bool__(self) -> bool:
        return self.judge is not None or bool(self.scorers) or self.extract is not None


class Answers(Options):
    """What scoring a file of answers needs besides the file."""

    dataset: Path | None = option(
        "--dataset", type=PATH, metavar="FILE", help="ANSWERS: the questions and golden answers."
    )
    settings: tuple[str, ...] = option(
        "--set",
        multiple=True,
        metavar="KEY=VALUE",
        help="ANSWERS: e.g. agent.answer_key=output or dataset.question_key=prompt. Repeatable.",
    )
    columns: tuple[str, ...] = option(
        "--map",
        multiple=True,
        metavar="TARGET=COLUMN",
        help="ANSWERS: the name of a column, e.g. answer=predicted_answer. Repeatable.",
    )
    cluster: str | None = option(
        "--cluster",
        metavar="COLUMN",
        help="ANSWERS: the column with what questions share, such as their document.",
    )
    strict: bool = option(
        "--strict", is_flag=True, help="ANSWERS: score nothing if the file has faults."
    )
    question: str | None = option(
        "--question", metavar="COLUMN", help="ANSWERS: the column with the question."
    )
    golden: str | None = option(
        "--golden", metavar="COLUMN", help="ANSWERS: the column with the golden answer."
    )
    answer: tuple[str, ...] = option(
        "--answer",
        multiple=True,
        metavar="COLUMN",
        help=(
            "ANSWERS: the column with the answer to score. Repeatable: each column is a condition."
        ),
    )
    skip_unreadable: bool = option("--skip-unreadable", is_flag=True, help=f"ANSWERS: {_SKIPPED}")


_OUT = option(
    "--out", type=PATH, metavar="PATH", help="Write to this path instead of standard output."
)


class Asking(Options):
    """Where the rows of a query go, and how much time and memory it may use."""

    to: str | None = option(
        "--to",
        type=click.Choice(["csv", "parquet"]),
        help="Write the rows in this format; without SQL, every table.",
    )
    out: Path | None = _OUT
    seconds: float = option(
        "--seconds",
        type=click.FloatRange(min=0, min_open=True, max=86400),
        default=60,
        show_default=True,
        metavar="N",
        help="Stop the query after this many seconds.",
    )
    megabytes: int = option(
        "--megabytes",
        type=click.IntRange(min=64, max=1 << 20),
        default=512,
        show_default=True,
        metavar="N",
        help="How much memory the query may use.",
    )


def _scorings(_: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    scorings = {}
    for text in given:
        name, _equals, digest = text.rpartition("=")
        if not name or not digest:
            raise click.BadParameter(f"expected SCORER=DIGEST, got '{text}'", param=option)
        scorings[name] = digest

    return scorings


_SCORINGS = option(
    "--scoring",
    multiple=True,
    callback=_scorings,
    metavar="SCORER=DIGEST",
    help=(
        "Show this scoring instead of the newest (the beginning of its digest is enough). "
        "Repeatable."
    ),
)


class Shown(Options):
    """Which numbers of a run to show."""

    use = "reading"
    scorings: dict[str, str] = _SCORINGS  # scorer → digest, or its beginning


class Compared(Shown):
    """Which numbers of a run to show, and which conditions to compare."""

    pairs: str = option(
        "--pairs",
        type=click.Choice(["baseline", "all"]),
        default="baseline",
        show_default=True,
        help="Compare each condition with the baseline and the best one, or all pairs.",
    )
    baseline: str | None = option(
        "--baseline",
        metavar="CONDITION",
        help="The condition to compare with; default: the experiment's `baseline`, else its first.",
    )

    def chosen(self) -> dict[str, Any]:
        """As in `karat.summarize`; pairs and baseline only if given."""
        usual = self.pairs == "baseline" and self.baseline is None
        if usual:
            compared = {}
        else:
            compared = {"pairs": self.pairs, "baseline": self.baseline}

        return {"scorings": self.scorings, **self.asked, **compared}


class Reported(Compared):
    """Which numbers a report shows, and its form."""

    settings: tuple[str, ...] = option(
        "--set",
        multiple=True,
        metavar="KEY=VALUE",
        help="An option of the report (`karat list reports NAME` shows them). Repeatable.",
    )
    full: bool = option(
        "--full",
        is_flag=True,
        help="Show every section: differences, variation, lowest questions, cost.",
    )
    corrected: bool = option(
        "--corrected",
        is_flag=True,
        help="Also show means and differences as people would score (`karat label`).",
    )


_THRESHOLD = "[CONDITION.]METRIC=VALUE"
_SHARE = click.FloatRange(min=0, max=1, min_open=True, max_open=True)


_LISTED_TOTALS = ", ".join(f"{name} ({total.about})" for name, total in TOTALS.items())


class Gating(Options):
    """Which thresholds a run must meet, and where the outcome goes."""

    least: tuple[str, ...] = option(
        "--min", multiple=True, metavar=_THRESHOLD, help="The metric is at least this. Repeatable."
    )
    most: tuple[str, ...] = option(
        "--max",
        multiple=True,
        metavar=_THRESHOLD,
        help=f"The metric is at most this; also {_LISTED_TOTALS}. Repeatable.",
    )
    drop: tuple[str, ...] = option(
        "--max-drop",
        multiple=True,
        metavar=_THRESHOLD,
        help="The metric is worse than in --baseline by at most this. Repeatable.",
    )
    baseline: str | None = option(
        "--baseline",
        metavar="RUN",
        help="The run to compare with, or latest:NAME for the newest "
        "other finished run of that experiment with the same dataset, if its gate did not fail.",
    )
    undecided: str = option(
        "--undecided",
        type=click.Choice(["fail", "warn"]),
        default="fail",
        show_default=True,
        help="What an undecided gate ends with: exit code 4, or 0.",
    )
    corrected: bool = option(
        "--corrected", is_flag=True, help="Decide on means as people would score (`karat label`)."
    )
    junit: Path | None = option(
        "--junit",
        type=FILE,
        metavar="FILE",
        help="Write JUnit XML: a test case for each threshold.",
    )
    markdown: Path | None = option(
        "--markdown",
        type=FILE,
        metavar="FILE",
        help="Write the result as Markdown, for a pull request.",
    )
    github: bool = option(
        "--github",
        is_flag=True,
        help="Print GitHub workflow annotations for thresholds that did not pass.",
    )


class Planning(Options):
    """What a plan is for, and what it assumes."""

    metric: str | None = option(
        "--metric", metavar="NAME", help="Plan for this metric; default: the run's first."
    )
    pair: tuple[str, str] | None = option(
        "--pair",
        nargs=2,
        metavar="A B",
        help="Compare these conditions; default: the first comparison.",
    )
    difference: float | None = option(
        "--difference",
        type=click.FloatRange(min=0, min_open=True),
        metavar="D",
        help="Also show how many questions it takes to show a difference of D, in points of the "
        "metric (0.05 for a share).",
    )
    power: float = option(
        "--power",
        type=_SHARE,
        default=0.8,
        show_default=True,
        metavar="P",
        help="Share of runs that show it.",
    )
    alpha: float = option(
        "--alpha",
        type=_SHARE,
        default=0.05,
        show_default=True,
        metavar="P",
        help="Level of the test.",
    )
    questions: tuple[int, ...] = option(
        "--questions",
        type=click.IntRange(min=2),
        multiple=True,
        metavar="N",
        help="Number of questions to show; default: the run's, and half, twice and four times "
        "as many. Repeatable.",
    )
    repetitions: tuple[int, ...] = option(
        "--repetitions",
        type=click.IntRange(min=1),
        multiple=True,
        metavar="K",
        help="Repetitions to show; default: 1, 2, 3, 5 and 8, or 1 if the run's do not vary. "
        "Repeatable.",
    )
    sd_questions: float | None = option(
        "--sd-questions",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SD",
        help="Without RUN: standard deviation of the true difference over questions.",
    )
    sd_answers: float | None = option(
        "--sd-answers",
        type=click.FloatRange(min=0),
        metavar="SD",
        help="Without RUN: standard deviation between answers to the same question.",
    )
    cost: float | None = option(
        "--cost",
        type=click.FloatRange(min=0),
        metavar="USD",
        help="Without RUN: price of one judged answer.",
    )
    chart: Path | None = option("--chart", type=FILE, metavar="FILE", help="Draw it, as SVG.")


class Labelling(Options):
    """Which labels count, and what is computed from them."""

    who: str | None = option(
        "--who", metavar="NAME", help="Who filled in LABELS; default: the name of your account."
    )
    draw: str | None = option(
        "--draw", metavar="ID", help="Use this draw; default: the newest that has labels."
    )
    target: str = option(
        "--target",
        type=click.Choice(["questions", "answers"]),
        default="questions",
        show_default=True,
        help="Whether intervals hold for questions like these, or for these answers alone.",
    )
    width: float | None = option(
        "--width",
        type=click.FloatRange(min=0, min_open=True),
        metavar="W",
        help="Also show how many labels an interval of ±W needs, e.g. 0.05 for a share.",
    )
    markdown: Path | None = option(
        "--markdown", type=FILE, metavar="FILE", help="Write the result as Markdown."
    )


class Drawing(Options):
    """Which answers people get, and where their sheet goes."""

    size: int = option(
        "--sample",
        type=click.IntRange(min=1, max=100_000),
        required=True,
        metavar="N",
        help="Draw N answers; a few more if a stratum would have fewer than 4.",
    )
    metric: tuple[str, ...] = option(
        "--metric",
        multiple=True,
        metavar="NAME",
        help="Ask for scores of this metric; default: all of the judge's. The first one's scores "
        "make the strata. Repeatable.",
    )
    seed: int = option(
        "--seed",
        type=int,
        default=0,
        show_default=True,
        metavar="N",
        help="Another seed draws other answers.",
    )
    out: Path | None = _OUT


class Following(Options):
    """Which numbers of which runs to follow."""

    name: str | None = option(
        "--name", metavar="NAME", help="The experiment; default: that of the newest run."
    )
    metric: str | None = option(
        "--metric", metavar="NAME", help="The metric; default: the first of the newest run."
    )
    condition: str | None = option("--condition", metavar="NAME", help="Only this condition.")
    chart: Path | None = option("--chart", type=FILE, metavar="FILE", help="Draw it, as SVG.")


class Running(Options):
    """How to run the experiment."""

    use = "running"
    resume: str | None = option(
        "--resume",
        metavar="RUN",
        help="Continue a run: ask only what is unanswered, score only what is unscored.",
    )
    retry_failed: bool = option(
        "--retry-failed",
        is_flag=True,
        help="With --resume: also retry the trials that failed because of the agent.",
    )
    keep_workspaces: bool = option(
        "--keep-workspaces",
        is_flag=True,
        help="Keep every workspace as its trial left it, in the run folder.",
    )
    executor: str | None = option(
        "--executor",
        type=click.Choice(["local", "ray"]),
        help=(
            "Run the trials in this process or on a Ray cluster; default: `execution.executor` in "
            "the file."
        ),
    )
    address: str | None = option(
        "--address",
        metavar="HOST:PORT",
        help="The Ray cluster; implies --executor ray. Default: `execution.ray.address` in the "
        "file, else a cluster on this machine for this run only.",
    )


def _results(default: Path) -> Decorator:
    return click.option(
        "--results",
        type=FOLDER,
        default=default,
        show_default=True,
        metavar="DIR",
        help="The folder of run folders.",
    )


results = _results(Path("results"))
# apart: `latest` is then never a rehearsal
rehearsed_results = _results(Path("results", "rehearsed"))
run_argument = click.argument("run", metavar="RUN")
out: Decorator = _OUT.named("out")
scoring: Decorator = _SCORINGS.named("scorings")
experiment_file = gathered("source", File)
selection = gathered("chosen", Chosen)
shard_selection = gathered("chosen", ChosenOfShard)
