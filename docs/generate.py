"""Writes docs/reference/, docs/README.md and benchmarks/RESULTS.md: `generate.py`, or `generate.py --check`.

What a page says of an option, a command or an error stands beside its code, and only
there. `--check` writes nothing and ends with 1 when a page is no longer what the code says.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import inspect
import re
import runpy
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tables import docstring, fields_rows, fields_table, headed

if TYPE_CHECKING:
    from pydantic import BaseModel

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
RESULTS = "../benchmarks/RESULTS.md"
NOTE = "<!-- Written by docs/generate.py from the code. Change it there, then: make docs -->\n"

FAMILIES = {
    "agents": ("Agents", "Who answers: `agent.type` in the experiment file, with the options in the same block."),
    "kinds": (
        "Datasets",
        "What is asked: `dataset.kind` in the experiment file, with the options in the same block.",
    ),
    "importers": (
        "Importers",
        "Results of other tools become runs: `karat import NAME PATH…`.",
    ),
    "exports": ("Reports", "The forms of a result: `karat report RUN --to NAME`."),
    "scorers": (
        "Scorers",
        "What scores the answers: `judge.type`, and each entry of `scorers`, in the experiment file.",
    ),
}


def family_page(family: str) -> str:
    """Every built-in plug-in of a family, with its options."""
    from karat import plugins

    title, opening = FAMILIES[family]
    shown: dict[str, str] = {}  # row → the first plug-in that has it
    headings: set[str] = set()
    parts = [
        f"# {title}",
        opening,
        f"Your own: a class, as `module:Class`, or an entry point in the group `karat.{family}`.",
    ]
    for file in plugins.names(family):
        plugin = plugins.find(family, file)
        name = getattr(plugin, "listed_as", file)
        parts += [f"## {name}", docstring(plugin)]
        model = plugins.options_model(plugin)
        if model and model.model_fields:
            parts += _options(fields_rows(model), f"[{name}](#{name})", shown)
        for place, nested in headed(model) if model else ():
            block = fields_table(nested)
            if block not in headings:  # else the first plug-in that has these options explains them
                parts += [f"### {name}.{place}", docstring(nested), block]
            headings.add(block)
        metrics = getattr(plugin, "metrics", ())
        if isinstance(metrics, (tuple, list)) and metrics:
            parts.append(metrics_table(metrics))
    return "\n\n".join(parts)


def _options(rows: dict[str, str], name: str, shown: dict[str, str]) -> Iterator[str]:
    """The options of a part of a page; those that an earlier part explains in the same words, by their names."""
    earlier = Counter(shown[row] for row in rows.values() if row in shown)
    repeated = {other for other, times in earlier.items() if times > 1}
    own = [row for row in rows.values() if shown.get(row) not in repeated]
    if own:
        yield "\n".join(own)
    for other in sorted(repeated):
        names = ", ".join(f"`{key}`" for key, row in rows.items() if shown.get(row) == other)
        yield f"{'Also' if own else 'Options:'} {names}, as in {other}."
    for row in rows.values():
        shown.setdefault(row, name)


def exports_page() -> str:
    """The forms of a report, and the columns of the table that all of them show."""
    from karat.analysis.means_columns import COLUMNS

    words = {"unit": "question", "level": "95 %", "averaged": "questions"}
    rows = ["| column | in reports | meaning |", "|---|---|---|"]
    for column in COLUMNS:
        meaning = (column.legend or column.about).format(**words)
        rows.append(f"| `{column.name}` | {(column.head or '').format(**words)} | {meaning} |")
    return "\n\n".join(
        [
            family_page("exports"),
            "## The table of means",
            """A row is a metric of a condition. CSV, data frames and `Summary.table()` have every column; reports those
with a heading; JSON has the same numbers raw, and under `shown` as displayed.""",
            "\n".join(rows),
        ]
    )


def metrics_table(metrics: Any) -> str:
    """What a scorer measures."""
    rows = ["Metrics; higher is better, unless stated:", ""]
    for metric in metrics:
        low, high = ("" if bound is None else f"{bound:g}" for bound in (metric.low, metric.high))
        better = {"higher": "", "lower": ", lower"}.get(metric.direction, ", neither")
        meaning = f" – {metric.description}" if metric.description and metric.description != metric.name else ""
        rows.append(f"* `{metric.name}` ({low}…{high}{better}){meaning}")
    return "\n".join(rows)


def experiment_page() -> str:
    """The experiment file, block by block."""
    from karat.config import model

    parts = [(DOCS / "reference" / "experiment-file.in").read_text(encoding="utf-8").rstrip()]
    blocks: dict[str, type[BaseModel]] = {
        "execution": model.Execution,
        "gate": model.GateModel,
        "conditions.NAME": model.ConditionModel,
        "mcp_servers.NAME, type stdio": model.StdioServer,
        "mcp_servers.NAME, type http or sse": model.RemoteServer,
        "mcp": model.McpTraffic,
        "prices.MODEL": model.PriceModel,
        "limits.MODEL": model.RateModel,
    }
    shown: dict[str, str] = {}
    for place, block in blocks.items():
        parts += [f"## {place}", docstring(block), *_options(fields_rows(block), f"`{place}`", shown)]
        for name, nested in headed(block):
            parts += [f"### {place}.{name}", docstring(nested), fields_table(nested)]
    return "\n\n".join(parts)


def errors_page() -> str:
    """Every exception, by its slug; the tree has the exit codes."""
    from karat import errors

    classes = (errors.__doc__ or "").split("\n\n")[1]
    tree = re.sub(r"^(\W*\w+(?: +[\d–]+)?) .*$", r"\1", classes, flags=re.MULTILINE)
    parts = [
        "# Errors",
        """A command that fails says why in one sentence and ends with an
[exit code](../how-to/gate-a-pull-request.md#use-karat-in-ci), shown below. In Python the same sentence is
an exception from `karat.errors`, with the facts as attributes.""",
        f"```text\n{inspect.cleandoc(tree)}\n```",
    ]
    for name in errors.__all__:
        thing = getattr(errors, name)
        if not inspect.isclass(thing) or not issubclass(thing, errors.KaratError):
            continue
        parts += [f"## {thing.slug}", f"`{name}`. {docstring(thing)}"]
    return "\n\n".join(parts)


def cli_page() -> str:
    """Every command with its options, as `--help` shows them; options of several commands are explained once."""
    import click

    from karat.cli import cli, every_command

    root = click.Context(cli, info_name="karat", terminal_width=100, max_content_width=100)
    commands = [
        click.Context(command, info_name=name, parent=root, **command.context_settings)
        for name, command in every_command().items()
        if not isinstance(command, click.Group)
    ]
    used = Counter(record for context in commands for record in _records(context))
    shared = [record for record, times in used.items() if times > 1]
    start, formatter = root.make_formatter(), root.make_formatter()
    root.command.format_help_text(root, start)
    with formatter.indentation():
        formatter.write_dl(shared)
    parts = [
        "# Commands",
        "Results go to standard output, everything else to standard error.",
        f"```text\n{start.getvalue().rstrip()}\n```",
        "## Options of several commands",
        "Every command has the first four.",
        f"```text\n{formatter.getvalue().rstrip()}\n```",
    ]
    for context in commands:
        formatter = context.make_formatter()
        context.command.format_usage(context, formatter)
        context.command.format_help_text(context, formatter)
        records = _records(context)
        if own := [record for record in records if record not in shared]:
            with formatter.section("Options"):
                formatter.write_dl(own)
        parts += [f"## {context.command_path}", f"```text\n{formatter.getvalue().rstrip()}\n```"]
        names = [record[0].split()[0] for record in records if record in shared and used[record] < len(commands)]
        if names:
            parts.append("Also " + ", ".join(f"`{name}`" for name in names) + ".")
    return "\n\n".join(parts)


def _records(context: Any) -> list[tuple[str, str]]:
    """The options of a command, each as it is written and its help."""
    return [
        record
        for parameter in context.command.get_params(context)
        if parameter.param_type_name == "option" and (record := parameter.get_help_record(context)) is not None
    ]


def study_page() -> str:
    """The study file, part by part."""
    parts = importlib.import_module("karat_studies.kinds.study.format")
    text = [(DOCS / "reference" / "study-file.in").read_text(encoding="utf-8").rstrip()]
    blocks: dict[str, type[BaseModel]] = {
        "The top of the file": parts.StudyDraft,
        "participants": parts.Participants,
        "arms.NAME": parts.Arm,
        "tasks, a list": parts.Task,
        "fields.NAME": parts.Answered,
        "relabel": parts.Relabelled,
        "rounds": parts.Rounds,
        "roles.NAME": parts.Role,
        "findings, a list": parts.Finding,
        "tests, a list": parts.Test,
        "groups": parts.Groups,
        "human": parts.Human,
        "human.LEVEL": parts.Level,
    }
    shown: dict[str, str] = {}
    for title, model in blocks.items():
        text += [f"## {title}", docstring(model), *_options(fields_rows(model), f"`{title}`", shown)]
    return "\n\n".join(text)


def python_page() -> str:
    """The public names of `import karat`."""
    return _names_page("The Python interface", "`import karat`", "karat")


def statistics_page() -> str:
    """The public names of `karat.stats`."""
    page = _names_page("Statistics in Python", "`from karat import stats`", "karat.stats")
    return f"{page}\n\n[Which statistic to use](../explanation/which-statistic.md)"


def _names_page(title: str, how: str, package: str) -> str:
    """The public names of a package by the file that defines them, with a link to it."""
    home = importlib.import_module(package)
    files: dict[str, list[str]] = {}
    from karat.installation import plugin_modules

    added = plugin_modules("names") if package == "karat" else ()
    for name in (*home.__all__, *added):
        if callable(thing := getattr(home, name)):
            source = Path(inspect.getsourcefile(inspect.unwrap(thing)) or "").relative_to(ROOT).as_posix()
            files.setdefault(source, []).append(f"`{name}`")
    rows = (
        f"* [{file.removeprefix('src/karat/')}](../../{file}): {', '.join(names)}"
        for file, names in sorted(files.items())
    )
    return "\n\n".join(
        [
            f"# {title}",
            f"""{how} offers these names, and loads what each needs when it is first used. Docstrings give shapes,
units, ranges, errors, an example and the source: on the site below, on a code host in each file.""",
            "\n".join(rows),
        ]
    )


def query_page() -> str:
    """The tables of a run, with their columns."""
    from karat_query.sql import SQL_TYPES
    from karat_query.tables import TABLES

    def table_of(columns: Iterable[Any]) -> str:
        alike = groupby(columns, key=lambda column: (column.type, column.meaning))
        return "\n".join(
            f"* {', '.join(f'`{column.name}`' for column in group)} {SQL_TYPES[of_type]} – {meaning}"
            for (of_type, meaning), group in alike
        )

    tables = list(TABLES.values())
    used = Counter((column.name, column.type, column.meaning) for table in tables for column in table.columns)
    common = {column for column, times in used.items() if times > 3}

    def is_common(column: Any) -> bool:
        return (column.name, column.type, column.meaning) in common

    keys = {column.name: column for table in tables for column in table.columns if is_common(column)}
    parts = [
        "# Tables of a run",
        """`karat query RUN "SELECT …"` and `karat.query` ask these tables, `--to parquet` writes them. Columns may be
added; none is removed or changed. Rows have no order. NULL means not known or not applicable, never 0. The rules are
the report's: the first answer of a trial, the last score at one place, whole scorings, each scorer's newest. A kind of
dataset may add tables of its own (`Kind.tables`, `Kind.fill`): `karat query RUN` lists them.""",
        "## Columns of several tables",
        table_of(keys.values()),
    ]
    for table in tables:
        shared = ", ".join(f"`{column.name}`" for column in table.columns if is_common(column))
        parts += [
            f"## {table.name}",
            f"{table.rows[0].upper()}{table.rows[1:]}. With {shared}, and:",
            table_of(column for column in table.columns if not is_common(column)),
        ]
    return "\n\n".join(parts)


def index_page() -> str:
    """The pages in the order of mkdocs.yml, by their titles."""
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    parts = ["# Documentation"]
    for entry in yaml.safe_load(listed):
        if isinstance(entry, dict):
            ((heading, pages),) = entry.items()
            if heading == "For contributors":
                pages = pages[:1]  # which leads to the decisions
            parts += [f"## {heading}", "\n".join(_titles(pages))]
    return "\n\n".join(parts)


def _titles(pages: list[Any]) -> Iterator[str]:
    """A link to each page, or a line of links for each group of pages."""
    for entry in pages:
        if isinstance(entry, str):
            yield f"* [{_title(entry)}]({entry})"
        else:
            ((group, below),) = entry.items()
            yield f"* {group}: " + ", ".join(f"[{_title(page)}]({page})" for page in below)


def _title(name: str) -> str:
    text = PAGES[name]() if name in PAGES else (DOCS / name).read_text(encoding="utf-8")
    return text.partition("# ")[2].partition("\n")[0]


PAGES: dict[str, Callable[[], str]] = {
    "reference/experiment-file.md": experiment_page,
    **{f"reference/{family}.md": partial(family_page, family) for family in FAMILIES},
    "reference/exports.md": exports_page,
    "reference/cli.md": cli_page,
    "reference/errors.md": errors_page,
    "reference/python.md": python_page,
    "reference/statistics.md": statistics_page,
    "reference/query-tables.md": query_page,
}
if importlib.util.find_spec("karat_studies") is not None:  # a copy may be without it
    PAGES["reference/study-file.md"] = study_page


def pages() -> dict[str, str]:
    """Every generated page: path below docs/ → text."""
    made = {name: text() for name, text in PAGES.items()}
    made["README.md"] = index_page()
    measured = runpy.run_path(str(ROOT / "benchmarks" / "_results.py"))["page"]()
    return {name: f"{NOTE}\n{text.rstrip()}\n" for name, text in made.items()} | {RESULTS: measured}


def stale(made: dict[str, str]) -> list[str]:
    """The pages on disk that are not what the code says."""
    found = []
    for name, text in made.items():
        path = DOCS / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            found.append(name)
    return found


def main() -> int:
    """Writes, or only checks."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 when a page is stale")
    checking = parser.parse_args().check
    made = pages()
    for name in stale(made):
        sys.stdout.write(f"docs/{name}: {'is stale, run: make docs' if checking else 'written'}\n")
        if not checking:
            (DOCS / name).parent.mkdir(parents=True, exist_ok=True)
            (DOCS / name).write_text(made[name], encoding="utf-8")
    return 1 if checking and stale(made) else 0


if __name__ == "__main__":
    sys.exit(main())
