"""Where the numbers come from: everything needed to reproduce them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from karat import formats
from karat.analysis import Summary
from karat.blocks import Block, Facts, Fold, Listing, Note, Row, Table, Text, columns

_REPEAT = (
    "Put experiment.yaml from the run folder beside the same dataset (compare its sha256), install "
    "the same versions, and run it. Models answer differently each time; from the same journal, "
    "every number here comes out the same."
)
_SHORT = 16  # hex digits of a digest in a table


def origin(summary: Summary, files: Mapping[str, str]) -> Iterator[Block]:
    """Run, data, conditions, scorers, servers, versions, settings.

    `files`: name → text, shown in full.
    """
    yield Facts(items=tuple(_run(summary)))
    if "format" not in summary.provenance.source:  # karat cannot repeat the results of another tool
        yield Note(
            title="To repeat it",
            texts=(_REPEAT,),
        )

        lines = {
            "karat run experiment.yaml": "run it again",
            f"karat report {summary.run} --to html --out report.html": "an HTML page",
            f"karat score {summary.run}": "add missing scores",
        }
        longest = max(map(len, lines))
        text = "\n".join(
            f"{command.ljust(longest)}   # {comment}" for command, comment in lines.items()
        )

        yield Listing(title="Commands", text=text, folded=False)

    source = summary.provenance
    conditions = tuple(
        Row(
            name=name,
            color=at,
            cells=(
                Text(", ".join(source.condition_servers.get(name, ())) or formats.UNKNOWN),
                *(
                    Text(_digest(digests.get(name)), code=True)
                    for digests in (source.conditions, source.agents, source.prompts)
                ),
            ),
        )
        for at, name in enumerate(summary.conditions)
    )
    names = ("condition", "MCP servers", "digest", "agent", "system prompt")
    yield Table(
        caption="Conditions",
        columns=columns(*names, text=names),
        rows=conditions,
        legend=(
            "Digests, first 16 digits: of prompt, servers and gates; of agent and options; of the "
            "prompt alone."
        ),
    )

    rows = []
    for name, scoring in source.scorers.items():
        judge = source.judges.get(name, {})
        offline = any(info.offline for info in summary.metrics if info.scorer == name)
        details = "; ".join(
            f"{key} {_plain(value)}" for key, value in judge.items() if value is not None
        )
        how = details or ("a rule, offline" if offline else formats.UNKNOWN)
        rows.append(Row(name=name, cells=(Text(scoring, code=True), Text(how))))

    if rows:
        heads = ("scorer", "scoring", "how")
        yield Table(caption="Scorers", columns=columns(*heads, text=heads), rows=tuple(rows))

    yield from _servers(summary)
    yield Facts(title="Versions", items=tuple(summary.provenance.versions.items()), code=True)

    settings = sorted(summary.provenance.settings.items())
    caption = "Every setting, defaults as well"
    table = Table(
        caption=caption,
        columns=columns("setting", "value", text=("value",)),
        rows=tuple(Row(name=key, cells=(Text(_plain(value)),)) for key, value in settings),
    )
    yield Fold(caption, (table,))

    for name, text in files.items():
        yield Listing(title=name, text=text)


def _run(summary: Summary) -> Iterator[tuple[str, str]]:
    source = summary.provenance
    yield "Run", f"{summary.name} {summary.run}"
    if summary.version:
        yield "Version of the experiment", summary.version

    # A time in UTC in a readable form; other texts unchanged
    match = re.fullmatch(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)[\d:.]*(?:Z|\+00:00)", summary.created)
    if match:
        moment = f"{match[1]} {match[2]} UTC"
    else:
        moment = summary.created

    yield "Made", moment
    yield "Status", summary.status
    yield "Kind", summary.kind
    yield (
        "Dataset",
        f"{source.dataset} ({formats.plural(source.samples_in_file, 'sample')} in the file)",
    )
    for role, text in source.first_row.items():
        yield f"Its first row: {role}", text
    yield "Its sha256", source.sha256
    yield "Agent", source.agent + (f" ({source.model})" if source.model else "")
    if asked := source.source.get("asked"):
        yield "How it was asked", asked
    if source.judge:
        yield "Judge", source.judge
    if source.rubric:
        if source.rubric_digest:
            digest = f" ({source.rubric_digest})"
        else:
            digest = ""

        yield "Rubric", f"{source.rubric}{digest}"

    for name, value in source.source.items():
        if name != "asked":
            yield f"Answers made elsewhere: {name}", value

    yield "Host", source.host


def _digest(text: str | None) -> str:
    if not text:
        return formats.UNKNOWN
    return text[:_SHORT]


def _servers(summary: Summary) -> Iterator[Block]:
    rows = tuple(
        Row(
            name=server.name,
            cells=(
                Text(", ".join(server.tools) or formats.UNKNOWN),
                Text(server.protocol or formats.UNKNOWN),
                Text(_digest(server.digest), code=True),
                Text(_digest(server.tools_digest), code=True),
                Text(server.fault or "answered", tone="bad" if server.fault else "quiet"),
            ),
        )
        for server in summary.provenance.servers
    )
    if rows:
        heads = ("server", "tools", "protocol", "digest", "digest of the tools", "at the start")
        yield Table(
            caption="MCP servers, as they were at the start",
            columns=columns(*heads, text=heads),
            rows=rows,
        )


def _plain(value: object) -> str:
    if value is None:
        return formats.UNKNOWN
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode("utf-8", "replace")
