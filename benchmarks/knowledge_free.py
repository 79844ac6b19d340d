"""How often agents that know nothing about people are called above chance, in each shipped study.

    python benchmarks/knowledge_free.py [agents] [study …]

Two sorts of agents, 100 of each by default: some give one arbitrary answer per arm for every participant, like a model
without knowledge at temperature 0; the others answer at random. Each is treated as a condition of a run over one study,
with the floors and replicates of a summary, and judged by the headline's rule (`above_chance` in
`karat.kinds.study.analysis.verdicts`). The last columns: how many of the first sort are above the mean of random
answers alone, and whether the human copy is called above chance. Exits with 1 if a share is above 5 %.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import _results as results  # beside this file
import numpy as np
from limits import Limits

from karat.kinds.study import Study
from karat.kinds.study.analysis.floor import ONE_ANSWER, REPETITIONS, Guesser, Guesses, floor_of, guessers_of
from karat.kinds.study.analysis.verdicts import above_chance
from karat.kinds.study.bootstrap import StudyRun, study_draws
from karat.kinds.study.copy import answer_copy
from karat.kinds.study.experiments import study_experiments
from karat.kinds.study.places import shipped_studies
from karat.kinds.study.reading import read_study
from karat.kinds.study.samples import responses_of
from karat.replication import Agreement, score_tests

WANTED = 0.05
REPLICATES = 500
SORTS = ("one answer an arm", "random answers")


def main() -> None:
    """Prints the table; exits with 1 when a share is above `WANTED`."""
    parser = results.parser(__doc__)
    parser.add_argument("agents", type=int, nargs="?", default=100)
    parser.add_argument("studies", nargs="*")
    options, limits = parser.parse_args(), Limits()
    agents = options.agents
    print(f"{f'called above chance, of {agents}':26} {SORTS[0]:>18} {SORTS[1]:>15}  above random answers alone  copy")
    for name in options.studies or sorted(shipped_studies()):
        counts = study_of(name, agents=agents)
        shares = [counts[sort] / agents for sort in SORTS]
        verdict = limits.check(name, max(shares), "≤", WANTED)
        print(f"{name:26} {shares[0]:18.0%} {shares[1]:15.0%}  {counts['first'] / agents:26.0%}  "
              f"{'yes' if counts['copy'] else 'no':4}  {verdict}", flush=True)  # fmt: skip
    about = f"The larger share of {agents} agents of each of two sorts that is called above chance."
    results.write(options.json, limits.section("Agents that know nothing", about))
    limits.exit()


def study_of(name: str, *, agents: int, seed: int = 1) -> dict[str, int]:
    """How many agents of each sort are above chance; whether the copy is; how many of the first sort are above the mean
    of random answers, which used to be the rule.
    """
    study = read_study(shipped_studies()[name].parent)
    samples = list(Study(Study.Options()).samples(study))

    def answered(guess: Guesser) -> list[Any]:
        return [
            row
            for sample in samples
            for row in responses_of(sample, [guess(sample, turn) for turn in range(len(sample.turns))])
        ]

    def scored(experiments: list[list[Any]]) -> list[tuple[Agreement, StudyRun]]:
        scores = study_experiments(study, experiments, reducer=None, refused=None, arms=list(study.arms))
        agreements = [score_tests(result.tests) for result in scores]
        return [
            (agreement, StudyRun(responses=responses, data=result.data or {}, scores=agreement.tests))
            for agreement, responses, result in zip(agreements, experiments, scores, strict=True)
        ]

    floors = scored([answered(guess) for guess in guessers_of(seed, repetitions=REPETITIONS, one_answer=ONE_ANSWER)])
    every = guessers_of(-seed, repetitions=agents, one_answer=agents)  # not the draws of the floors
    named = {("copy", 0): answer_copy(study)}
    named |= {(SORTS[1], at): answered(guess) for at, guess in enumerate(every[:agents])}
    named |= {(SORTS[0], at): answered(guess) for at, guess in enumerate(every[agents:])}
    counted = {"copy": 0, "first": 0, **dict.fromkeys(SORTS, 0)}
    conditions, opposed = {}, {}
    for key, (agreement, run) in zip(named, scored(list(named.values())), strict=True):
        rng = np.random.default_rng(seed)
        draws = study_draws(study, [run], rng=rng, replicates=REPLICATES)[0].draws
        conditions[str(key)] = ([agreement], [draws])
        opposed[str(key)] = [SimpleNamespace(study=name, name="", tests=agreement.tests)]
    parts = [floors[:REPETITIONS], floors[REPETITIONS:]]
    random, one_answer = (
        floor_of(
            [Guesses(study=name, tests=[[score.test for score in agreement.tests] for agreement, _ in part])],
            conditions, questions=sum(len(sample.turns) for sample in samples),
        )
        for part in parts
    )  # fmt: skip
    run_of_all: Any = SimpleNamespace(floor=random, floor_one_answer=one_answer)
    for key in named:
        experiment: Any = SimpleNamespace(condition=str(key), findings=opposed[str(key)])
        counted[key[0]] += above_chance(experiment, run_of_all)
        more = random.of(str(key))
        counted["first"] += key[0] == SORTS[0] and more is not None and (more.pas.low or 0.0) > 0
    return counted


if __name__ == "__main__":
    main()
