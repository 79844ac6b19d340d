"""Evaluates with lm-eval: `lm_eval_run.py FOLDER_OF_THE_TASK OUT`, with a model that answers at once."""

import sys

from lm_eval import simple_evaluate
from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager


class Agent(LM):
    """lm-eval demands all three methods; a task that generates text calls the first one only."""

    def generate_until(self, requests: list[Instance]) -> list[str]:
        return [request.args[0].removeprefix("Say ") for request in requests]

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        raise NotImplementedError

    def loglikelihood_rolling(self, requests: list[Instance]) -> list[float]:
        raise NotImplementedError


folder, out = sys.argv[1:]
tracker = EvaluationTracker(output_path=out)
results = simple_evaluate(
    Agent(),
    tasks=["instant"],
    task_manager=TaskManager(include_path=folder, include_defaults=False),
    log_samples=True,
    evaluation_tracker=tracker,
)
assert results["results"]["instant"]["exact_match,none"] == 1
samples = results.pop("samples")
tracker.save_results_aggregated(results=results, samples=samples)
tracker.save_results_samples(task_name="instant", samples=samples["instant"])
