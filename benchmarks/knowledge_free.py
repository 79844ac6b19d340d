"""How often agents that know nothing about people are called above chance, or one of two closer to people.

    python benchmarks/knowledge_free.py [agents] [study …]

Four sorts of agents, 100 of each by default: one arbitrary answer per arm for every participant, like a model without
knowledge at temperature 0; that answer from four of five; an arbitrary distribution per arm (Dirichlet, 0.3); random
answers. Each is treated as a condition of a run over one study, with the floors and replicates of a summary, and judged
by the headline's rules in `karat_studies.kinds.study.analysis.verdicts`: `above_chance` alone and as the best of four
designs, `closer_to_people` for pairs. The last column says whether people's own copy is called above chance. Exits with
1 if a share is above its limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from types import SimpleNamespace
from typing import Any

import _results as results  # beside this file
import msgspec
import numpy as np
from limits import Limits

from karat.records import Sample
from karat_studies.kinds.study import Study
from karat_studies.kinds.study.analysis.floor import (
    ONE_ANSWER,
    REPETITIONS,
    Guesser,
    Guesses,
    floor_of,
    guessers_of,
    mostly_one_an_arm,
    perfect_copy,
)
from karat_studies.kinds.study.analysis.scores import changed
from karat_studies.kinds.study.analysis.verdicts import Pair, above_chance, closer_to_people, floor_scores
from karat_studies.kinds.study.bootstrap import StudyRun, study_draws
from karat_studies.kinds.study.copy import answer_copy
from karat_studies.kinds.study.experiments import study_experiments
from karat_studies.kinds.study.places import shipped_studies
from karat_studies.kinds.study.reading import read_study
from karat_studies.kinds.study.samples import random_answers, responses_of
from karat_studies.replication import repeated_differences, score_tests

ABOVE, WINNERS = 0.05, 0.064
REPLICATES = 300
DESIGNS = 4
POOL = 6  # answers that an arbitrary distribution is over
SORTS = ("one answer an arm", "mostly one", "a distribution", "random answers")


def main() -> None:
    """Prints the table; exits with 1 when a share is above its limit."""
    parser = results.parser(__doc__)
    parser.add_argument("agents", type=int, nargs="?", default=100)
    parser.add_argument("studies", nargs="*")
    options, limits = parser.parse_args(), Limits()
    heads = (*SORTS, "best of four", "closer to people", "copy")
    print(f"{'study':20}" + "".join(f"{head:>20}" for head in heads))
    for name in options.studies or sorted(shipped_studies()):
        world = World(name, seed=1)
        above = {sort: world.above(sort, options.agents) for sort in SORTS}
        best = max(world.best(sort, options.agents) for sort in SORTS)
        pairs = max(world.winners(sort, options.agents // 2) for sort in SORTS)
        verdict = limits.check(f"{name}, above chance", max(above.values()), "≤", ABOVE)
        more = limits.check(f"{name}, closer to people", pairs, "≤", WINNERS)
        shares = "".join(f"{share:20.1%}" for share in (*above.values(), best, pairs))
        print(f"{name:20}{shares}{'yes' if world.copy() else 'no':>20}  {verdict} {more}", flush=True)
    about = f"The largest share of {options.agents} agents of a sort called above chance, and of pairs with a winner."
    results.write(options.json, limits.section("Agents that know nothing", about))
    limits.exit()


class World:
    """One shipped study with its floors, and agents that know nothing about people."""

    def __init__(self, name: str, *, seed: int) -> None:
        self.name, self.seed = name, seed
        self.study = read_study(shipped_studies()[name].parent)
        self.samples = list(Study(Study.Options()).samples(self.study))
        guessed = self._tested(guessers_of(seed, repetitions=REPETITIONS, one_answer=ONE_ANSWER))
        self.random = Guesses(study=name, tests=guessed[:REPETITIONS])
        self.one_answer = Guesses(study=name, tests=guessed[REPETITIONS:])
        if not self.one_answer.scored:  # as a summary does, whose judge is then this floor
            mostly = self._tested(mostly_one_an_arm(seed, repetitions=ONE_ANSWER))
            self.one_answer = Guesses(study=name, tests=mostly)
        self.agents: dict[str, list[Any]] = {}

    def above(self, sort: str, agents: int) -> float:
        """The share of agents called above chance alone."""
        scored = self._scored(sort, agents)
        return float(np.mean([self._above([agent], designs=1)[0] for agent in scored]))

    def best(self, sort: str, agents: int) -> float:
        """The share of runs with four such designs in which any is called above chance."""
        scored = self._scored(sort, agents)
        runs = [scored[at : at + DESIGNS] for at in range(0, len(scored) - DESIGNS + 1, DESIGNS)]
        return float(np.mean([any(self._above(designs, designs=DESIGNS)) for designs in runs]))

    def winners(self, sort: str, pairs: int) -> float:
        """The share of pairs in which one agent is called closer to people than the other."""
        scored = self._scored(sort, 2 * pairs)
        return float(np.mean([self.winner(scored[2 * at], scored[2 * at + 1]) for at in range(pairs)]))

    def winner(self, first: Any, second: Any) -> bool:
        """Whether one of two agents in a run is called closer to people."""
        above = self._above([first, second], designs=2)
        gap, _ = repeated_differences(
            [first[0]], [second[0]], first_draws=[first[1]], second_draws=[second[1]], paired=True
        )
        pair = Pair(difference=changed(gap, level=0.95), above=(above[0], above[1]), floor=self.spread)
        return closer_to_people([pair]) == ["closer"]

    def copy(self) -> bool:
        """Whether people's own copy is called above chance."""
        return self._above(self._judged([answer_copy(self.study)]), designs=1)[0]

    @property
    def spread(self) -> tuple[float | None, ...]:
        """PAS of each agent of the second floor."""
        return floor_scores(self._floors([], designs=1), "pas", [self.name])

    def _floors(self, agents: Sequence[Any], *, designs: int) -> Any:
        conditions = {str(at): ([agreement], [draws]) for at, (agreement, draws) in enumerate(agents)}
        asked = sum(len(sample.turns) for sample in self.samples)
        more: Any = {"questions": asked, "designs": designs, "copy": perfect_copy([self.random])}
        first, second = (floor_of([part], conditions, **more) for part in (self.random, self.one_answer))
        return SimpleNamespace(floor=first, floor_one_answer=second)

    def _above(self, agents: Sequence[Any], *, designs: int) -> list[bool]:
        part = self._floors(agents, designs=designs)
        verdicts = []
        for at, (agreement, _) in enumerate(agents):
            finding = SimpleNamespace(study=self.name, name="", tests=agreement.tests)
            agent: Any = SimpleNamespace(condition=str(at), findings=[finding])
            verdicts.append(above_chance(agent, part))
        return verdicts

    def _scored(self, sort: str, count: int) -> list[Any]:
        known = self.agents.setdefault(sort, [])
        if len(known) < count:
            drawn = guessers(sort, range(len(known), count), seed=-self.seed)
            known += self._judged([self._answers(guess) for guess in drawn])
        return known[:count]

    def _judged(self, experiments: Sequence[Any]) -> list[Any]:
        """The agreement of each experiment, and its replicates: the same participants for all."""
        judged = []
        results = study_experiments(self.study, experiments, arms=list(self.study.arms))
        for responses, result in zip(experiments, results, strict=True):
            agreement = score_tests(result.tests)
            run = StudyRun(responses=responses, data=result.data or {}, scores=agreement.tests)
            rng = np.random.default_rng(self.seed)
            judged.append((agreement, study_draws(self.study, [run], rng=rng, replicates=REPLICATES)[0].draws))
        return judged

    def _answers(self, guess: Guesser) -> list[Any]:
        return [
            row
            for sample in self.samples
            for row in responses_of(sample, [guess(sample, turn) for turn in range(len(sample.turns))])
        ]

    def _tested(self, guessers: Sequence[Guesser]) -> list[Any]:
        experiments = [self._answers(guess) for guess in guessers]
        return [result.tests for result in study_experiments(self.study, experiments, arms=list(self.study.arms))]


def guessers(sort: str, numbers: range, *, seed: int) -> Iterator[Guesser]:
    """Agents of a sort, by number; not the draws of the floors."""
    for number in numbers:
        own = seed * 100_003 - number
        if sort == SORTS[0]:
            yield guessers_of(own, repetitions=0, one_answer=1)[0]
        elif sort == SORTS[1]:
            yield mostly_one_an_arm(own, repetitions=1)[0]
        elif sort == SORTS[2]:
            yield a_distribution(own)
        else:
            yield guessers_of(own, repetitions=1, one_answer=0)[0]


def a_distribution(seed: int) -> Guesser:
    """Each arm draws from a few answers, with arbitrary weights."""
    dice, pools = Random(f"{seed}/drawn"), dict[str, tuple[list[Any], list[float]]]()

    def guess(sample: Sample, turn: int) -> Any:
        fields = msgspec.json.encode(sample.detail["fields"][turn], order="deterministic").decode()
        place = f"{sample.turns[turn].detail['arm']}/{fields}"
        if place not in pools:
            own = Random(f"{seed}/{place}")
            weights = [own.gammavariate(0.3, 1) + 1e-12 for _ in range(POOL)]
            pools[place] = [random_answers(sample, turn, own) for _ in range(POOL)], weights
        answers, weights = pools[place]
        return dice.choices(answers, weights)[0]

    return guess


if __name__ == "__main__":
    main()
