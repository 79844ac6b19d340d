"""`--to json`: the summary, each number raw and as displayed."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from karat import __version__, formats
from karat.analysis import Summary, means_columns
from karat.analysis.format_metric import measured
from karat.analysis.parts import builtins_of
from karat.journal import RunFolder

__all__ = ["Json"]


class Json:
    """One JSON object: the summary, with raw numbers and, under `shown`, the same numbers as
    displayed.
    """

    shows_corrected = True

    class Options(BaseModel):
        """What is written, and its layout."""

        model_config = ConfigDict(extra="forbid")

        indent: int = Field(default=2, ge=0, le=8, description="0 writes everything on one line")
        samples: bool = Field(
            default=True, description="whether the means of every question are included"
        )

    def __init__(self, options: Options | None = None) -> None:
        self._options = options or self.Options()

    def render(self, summary: Summary, run: RunFolder) -> Mapping[str, str]:
        tree = builtins_of(summary)
        if not self._options.samples:
            tree["table_of_samples"] = None

        for account in [*tree["accounts"].values(), tree["total"]]:
            cost, latency = account["cost"], account["latency"]
            account["shown"] = {
                "agent_cost": formats.dollars(
                    cost["agent"]["known"], unknown=cost["agent"]["unknown"]
                ),
                "judge_cost": formats.dollars(
                    cost["judge"]["known"], unknown=cost["judge"]["unknown"]
                ),
            }
            for name, seconds in latency.items():
                if name != "n":
                    account["shown"][f"latency_{name}"] = formats.duration(seconds)

        infos = {info.key: info for info in summary.metrics}
        for result, row in zip(summary.results, tree["results"], strict=True):
            account = summary.accounts[result.condition]
            row["shown"] = means_columns.shown(infos[result.metric], result, account)
        for difference in tree["differences"]:
            value, low, high = (difference["estimate"][end] for end in ("value", "low", "high"))
            by, span = formats.between(
                value, low, high, percent=infos[difference["metric"]].percent
            )
            difference["shown"] = {
                "difference": by,
                "interval": span,
                "p": formats.p_value(difference["p"]),
                "p_adjusted": formats.p_value(difference["p_adjusted"]),
                "effect": formats.number(difference["effect"]),
            }

        for low in tree["lowest"]:
            percent = infos[low["metric"]].percent
            low["shown"] = {key: measured(low[key], percent=percent) for key in ("mean", "gap")}

        for name, part in summary.parts.items():
            part.show(tree[name])
        tree = {
            "format": tree.pop("format"),
            "made_by": f"karat {__version__}",
            "offline": summary.offline,
            **tree,
        }
        raw = msgspec.json.encode(tree)
        indent = self._options.indent
        if indent:
            text = msgspec.json.format(raw, indent=indent)
        else:
            text = raw

        return {"summary.json": text.decode() + "\n"}
