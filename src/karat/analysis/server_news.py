"""What MCP servers did during a run that its reader must know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from karat import formats
from karat.journal import ServerInfo
from karat.records import MODERN_PROTOCOL, ServerEvent

_NAMED = 5  # tools


def server_news(servers: Iterable[ServerInfo], events: Sequence[ServerEvent]) -> Iterator[str]:
    """A sentence for each: tools that no client can call, changes, sessions opened again, forms
    declined.
    """
    for server in servers:
        if server.left_out:
            if len(server.left_out) == 1:
                reason = f": {next(iter(server.left_out.values()))}"
            else:
                reason = ""

            yield (
                f"MCP server '{server.name}' lists tools that no client can call: "
                f"{_names(server.left_out)}{reason}"
            )

    changes = [event for event in events if event.what == "changed"]
    for name in dict.fromkeys(event.server for event in changes):
        of_server = [event for event in changes if event.server == name]
        parts = []
        for word, field in (("new", "added"), ("gone", "removed"), ("altered", "altered")):
            if tools := dict.fromkeys(
                tool for event in of_server for tool in getattr(event, field)
            ):
                parts.append(f"{word}: {_names(tools)}")

        spoken = dict.fromkeys(event.protocol for event in of_server if event.protocol is not None)
        if spoken:
            parts += [f"it spoke protocol {', '.join(spoken)}"]
        if parts:
            how = f" ({'; '.join(parts)})"
        else:
            how = ""

        yield (
            f"MCP server '{name}' changed its tools during the run{how}: answers before and "
            f"after are not alike"
        )

    for name, times in Counter(event.server for event in events if event.what == "renewed").items():
        often = formats.plural(times, "time")
        yield (
            f"MCP server '{name}' ended its session {often}: karat opened another and repeated "
            f"the request"
        )

    for name, times in Counter(event.server for event in events if event.what == "unasked").items():
        often = formats.plural(times, "time")
        why = (
            f"over protocol {MODERN_PROTOCOL} servers send no requests: set `protocol: "
            f"2025-11-25` for this server"
        )
        yield f"MCP server '{name}' could not ask what `elicit` answers, {often}: {why}"

    declined = Counter(
        (event.server, event.problem) for event in events if event.what == "declined"
    )
    for (name, problem), times in declined.most_common(_NAMED):
        often = formats.plural(times, "time")
        yield (
            f"MCP server '{name}': its form was declined {often}, because `elicit` does not fit "
            f"it: {problem}"
        )


def _names(names: Iterable[str]) -> str:
    found = list(names)
    if len(found) > _NAMED:
        more = f" and {formats.count(len(found) - _NAMED)} more"
    else:
        more = ""

    return f"{', '.join(found[:_NAMED])}{more}"
