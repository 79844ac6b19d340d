"""What a run may still spend, and how many failures it stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from karat.errors import BadOption
from karat.records import Reply, Usage

if TYPE_CHECKING:
    from karat.agents import TrialAgent
    from karat.config import Experiment
    from karat.execution.runner import ScorerInUse

__all__ = ["Budget", "refuse_unpriced", "tokens_of"]


def refuse_unpriced(experiment: Experiment, agents: Mapping[str, TrialAgent], scorers: Sequence[ScorerInUse]) -> None:
    """Raises BadOption where there is a budget in dollars and a model whose price nobody knows."""
    if experiment.execution.budget.usd is None:
        return
    asked = [*agents.values(), *(used.scorer for used in scorers)]
    unpriced = dict.fromkeys(model for one in asked for model in getattr(one, "unpriced", ()))
    if unpriced:
        models = ", ".join(f"'{model}'" for model in unpriced)
        first = next(iter(unpriced))
        example = f'`prices: {{"{first}": {{input: 2.5, output: 10}}}}` (dollars per million tokens)'
        message = f"cannot be kept, because no price is known for {models}; give it, e.g. {example}"
        raise BadOption("execution.budget.usd", message)


def tokens_of(usage: Usage | None) -> int:
    """Input and output tokens together; cached and reasoning tokens are part of these."""
    return 0 if usage is None else (usage.input_tokens or 0) + (usage.output_tokens or 0)


class Budget:
    """Dollars and tokens so far (earlier parts of the run, judges and failed attempts included).

    Starting a trial reserves the largest cost seen for everything in flight, so that a
    run ends below its budget and not one crowd of trials above it.
    """

    def __init__(
        self,
        *,
        usd: float | None,
        tokens: int | None,
        dollars_before: float = 0.0,
        tokens_before: int = 0,
        unknown: str | None = None,
    ) -> None:
        self._usd, self._token_limit = usd, tokens
        self.dollars, self.tokens = dollars_before, tokens_before
        self.unknown = unknown if self.bounded else None  # what nobody told, and without which a budget means nothing
        self._largest = {"agent": (0.0, 0), "judge": (0.0, 0)}  # of one call
        self._trial = (0.0, 0)  # of one attempt, with all its turns

    @property
    def bounded(self) -> bool:
        return self._usd is not None or self._token_limit is not None

    def told(self, replies: Sequence[Reply]) -> None:
        """What an attempt was told: its turns together, since a trial that starts may cost as much as they."""
        for reply in replies:
            self.paid("agent", reply.dollars, reply.usage)
        if len(replies) > 1:
            together = sum(reply.dollars or 0.0 for reply in replies), sum(tokens_of(reply.usage) for reply in replies)
            self._trial = _most(self._trial, *together)

    def paid(self, who: Literal["agent", "judge"], dollars: float | None, usage: Usage | None) -> None:
        tokens = tokens_of(usage)
        if dollars is None and self._usd is not None:
            self.unknown = "an answer came without its price"
        if usage is None and self._token_limit is not None:
            self.unknown = "an answer came without its tokens"
        dollars = dollars or 0.0
        self.dollars += dollars
        self.tokens += tokens
        self._saw(who, dollars, tokens)

    def failed(self, who: Literal["agent", "judge"], dollars: float | None, usage: Usage | None) -> None:
        """A call that failed. One whose cost nobody told is counted at the largest cost seen: no bill is below it."""
        most_dollars, most_tokens = self._largest[who]
        self.dollars += most_dollars if dollars is None and usage is None else dollars or 0.0
        self.tokens += most_tokens if usage is None and dollars is None else tokens_of(usage)
        self._saw(who, dollars or 0.0, tokens_of(usage))

    def _saw(self, who: Literal["agent", "judge"], dollars: float, tokens: int) -> None:
        self._largest[who] = _most(self._largest[who], dollars, tokens)
        if who == "agent":
            self._trial = _most(self._trial, dollars, tokens)

    def allows(self, *, agents: int, judges: int) -> bool:
        """Whether another trial fits, with so many trials at the agent and answers at the judge."""
        if self.unknown is not None:
            return False
        (agent_dollars, agent_tokens), (judge_dollars, judge_tokens) = self._trial, self._largest["judge"]
        # The trial to be started needs both, and so does each one at the agent.
        at_agent, at_judge = agents + 1, agents + 1 + judges
        if self._usd is not None:
            reserved = agent_dollars * at_agent + judge_dollars * at_judge
            if self.dollars >= self._usd or self.dollars + reserved > self._usd:
                return False
        if self._token_limit is not None:
            reserved_tokens = agent_tokens * at_agent + judge_tokens * at_judge
            if self.tokens >= self._token_limit or self.tokens + reserved_tokens > self._token_limit:
                return False
        return True


def _most(seen: tuple[float, int], dollars: float, tokens: int) -> tuple[float, int]:
    return max(seen[0], dollars), max(seen[1], tokens)
