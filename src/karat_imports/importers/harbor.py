"""`karat import harbor`: job folders of Harbor, and trajectories in ATIF.

Source of the formats: `TrialResult`, `JobResult` and `TrialPaths` in `harbor.models`; ATIF 1.0 to
1.7, RFC 0001 of Harbor. A job's folder has a result.json and a folder for each trial, with its own
result.json and, where the agent's program writes one, agent/trajectory.json.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from karat.config.secrets import sounds_secret
from karat.errors import BadDataset
from karat.foreign import Json
from karat.importers import (
    Findings,
    ImportedCondition,
    ImportedFailure,
    ImportedRun,
    ImportedScore,
    ImportedTrial,
)
from karat.records import JsonObject, LedgerClass, Metric, Reply, ToolCall
from karat_imports.importers._chats import Call, Message, arguments, spoken, tool_calls
from karat_imports.importers._reading import (
    bad_file,
    beginning,
    digest,
    document,
    each_readable,
    failure,
    items,
    seconds_between,
    unique,
    utc,
)

__all__ = ["Harbor"]

_ID = rb'\s*\{\s*(?:"id"\s*:\s*"[^"]*"\s*,\s*)?'
_JOB = re.compile(
    _ID + rb'"started_at"\s*:[^{}]{0,300}?"n_total_trials"\s*:\s*\d+\s*,\s*"stats"\s*:\s*\{'
)
_TRIAL = re.compile(_ID + rb'"task_name"\s*:\s*"(?:[^"\\]|\\.)*+"\s*,\s*"trial_name"\s*:')
_ATIF = re.compile(rb'\s*\{\s*"schema_version"\s*:\s*"ATIF-v\d')
_SCORER = "verifier"
_REWARD = "reward"
_FAILURES: dict[str, tuple[LedgerClass, str]] = {
    "AgentSetupTimeoutError": ("infrastructure", "timeout"),
    "AgentTimeoutError": ("limit", "timeout"),
    "ApiOverloadedError": ("infrastructure", "overloaded"),
    "ApiRateLimitError": ("infrastructure", "rate_limit"),
    "CancelledError": ("infrastructure", "cancelled"),
    "EnvironmentBuildTimeoutError": ("infrastructure", "timeout"),
    "EnvironmentStartTimeoutError": ("infrastructure", "timeout"),
    "HealthcheckError": ("infrastructure", "error"),
    "NonZeroAgentExitCodeError": ("agent", "error"),
    "OutputLengthExceededError": ("limit", "token_limit"),
    "RewardFileEmptyError": ("judge", "error"),
    "RewardFileNotFoundError": ("judge", "error"),
    "VerifierOutputParseError": ("judge", "error"),
    "VerifierTimeoutError": ("judge", "timeout"),
}
"""Harbor's exceptions whose class is known; that of others follows from their message."""


class Harbor:
    """Job folders of Harbor (the result.json of a job or of a trial), and trajectories in ATIF:
    agents with their models are conditions, datasets are runs.
    """

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        return any(known.match(head) for known in (_JOB, _TRIAL, _ATIF))

    @staticmethod
    def beside(path: Path) -> list[Path]:
        """The results and trajectories of a job's trials, or the trajectory of a trial."""
        if path.name != "result.json":
            return []
        trials = _trials_of(path)
        trajectories = [_trajectory(result) for result in (path, *trials)]
        return [*trials, *(file for file in trajectories if file is not None)]

    def runs(self, paths: Sequence[Path], findings: Findings) -> Iterable[ImportedRun]:
        """One run per dataset. Raises BadDataset if nothing can be read."""
        found = each_readable(paths, lambda path: _found(path, findings), findings)
        jobs = []
        for job, _ in found:
            if job is not None:
                jobs.append(job)

        trials = {trial.path: trial for _, of_path in found for trial in of_path}
        datasets: dict[str, list[_Trial]] = {}
        for trial in sorted(trials.values(), key=lambda trial: (trial.started, trial.name)):
            datasets.setdefault(trial.dataset, []).append(trial)

        for dataset, of_dataset in datasets.items():
            firsts: dict[str, _Trial] = {}  # of each condition
            for trial in of_dataset:
                firsts.setdefault(trial.identity, trial)

            shown = unique([first.condition for first in firsts.values()])
            names = dict(zip(firsts, shown, strict=True))
            metrics: dict[str, Sequence[Metric]] = {_SCORER: []}
            folders = [*(job.name for job in jobs), of_dataset[0].path.absolute().parent.name]
            yield ImportedRun(
                name=dataset or folders[0],
                tool="harbor",
                trials=_trials(of_dataset, names, metrics, findings),
                conditions={
                    names[identity]: ImportedCondition(model=first.model, detail=first.settings)
                    for identity, first in firsts.items()
                },
                metrics=metrics,
                dataset=dataset,
                created=next(
                    (job.started for job in jobs if job.started), of_dataset[0].started or None
                ),
                unfinished=[text for job in jobs for text in job.unfinished],
                detail={job.name: job.detail for job in jobs},
            )


class _Job(msgspec.Struct, frozen=True, kw_only=True):
    """What a job's result.json says of the whole."""

    name: str
    started: str | None
    detail: JsonObject
    unfinished: tuple[str, ...]


class _Trial(msgspec.Struct, frozen=True, kw_only=True):
    """Where a trial is, and what orders and groups it."""

    path: Path  # its result.json, or a trajectory without one
    name: str
    task: str
    dataset: str
    started: str
    condition: str  # a short name
    identity: str  # differs if the agent, its version, its model or its settings do
    model: str | None
    settings: JsonObject
    asked: str | None  # the first message of the user in its trajectory


def _found(path: Path, findings: Findings) -> tuple[_Job | None, list[_Trial]]:
    """The job in a file, if it is one, and its trials."""
    head = beginning(path)
    if _ATIF.match(head):
        # A trajectory without the result of a trial
        trajectory = document(path, "steps")
        agent = trajectory.at("agent")
        name = agent.text("name") or "agent not named"
        model = agent.text("model_name")
        settings: JsonObject = {"agent": name, "version": agent.text("version")}
        asked = _asked(path)
        return None, [
            _Trial(
                path=path,
                name=trajectory.text("session_id", "trajectory_id") or path.stem,
                task=f"trajectory {digest(asked or path.stem)[:8]}",
                dataset="",
                started="",
                condition=" · ".join(filter(None, (name, model))),
                identity=digest([settings, model]),
                model=model,
                settings=settings,
                asked=asked,
            )
        ]

    if _TRIAL.match(head):
        return None, [_light(path)]
    if not _JOB.match(head):
        raise bad_file(
            path, "is neither the result.json of a job or trial of Harbor nor a trajectory in ATIF"
        )

    whole = document(path, "trial_results")
    results = _trials_of(path)
    trials: list[_Trial] = []
    for result in results:
        try:
            trials.append(_light(result))
        except BadDataset as error:
            findings.lose(f"trial: {error.faults[0].message}", f"{result.parent.name}/result.json")

    if not trials:
        raise bad_file(path, "is a job of Harbor without the folders of its trials beside it")
    name = path.absolute().parent.name
    planned = whole.count("n_total_trials") or 0
    unfinished: tuple[str, ...] = ()
    if len(results) < planned:
        unfinished = (f"job {name}: {len(results)} of {planned} trials are here",)
    job = _Job(
        name=name,
        started=utc(whole.text("started_at")),
        detail=whole.without("trial_results"),
        unfinished=unfinished,
    )
    return job, trials


def _trials_of(job: Path) -> list[Path]:
    """The result.json of each trial of a job, without links: agents write into these folders."""
    found = [*job.parent.glob("*/result.json"), *job.parent.glob("trials/*/result.json")]
    return sorted(path for path in found if _is_plain(path, job.parent))


def _trajectory(result: Path) -> Path | None:
    path = result.parent / "agent" / "trajectory.json"
    if _is_plain(path, result.parent):
        return path
    return None


def _is_plain(path: Path, above: Path) -> bool:
    """Whether a file is there and not reached by a symbolic link below a folder."""
    below = path.relative_to(above).parts
    for part in below:
        above = above / part
        if above.is_symlink():
            return False

    return path.is_file()


def _light(path: Path) -> _Trial:
    row = document(path)
    agent = row.at("config", "agent")
    info = row.at("agent_info")
    task = row.text("task_name")
    if task is None:
        raise bad_file(path, "is no result of a trial: it has no task_name")
    name = info.text("name") or agent.text("name", "import_path") or "agent not named"
    model = agent.text("model_name") or info.at("model_info").text("name")
    settings: JsonObject = {
        "agent": name,
        "version": info.text("version"),
        "kwargs": {
            key: value for key, value in agent.at("kwargs").items() if not sounds_secret(key)
        },
        "timeout_multiplier": row.at("config").number("timeout_multiplier"),
    }
    return _Trial(
        path=path,
        name=row.text("trial_name") or path.parent.name,
        task=task,
        dataset=row.text("source") or "",
        started=utc(row.text("started_at")) or "",
        condition=" · ".join(filter(None, (name, model))),
        identity=digest([settings, model]),
        model=model,
        settings=settings,
        asked=_asked(_trajectory(path)),
    )


def _asked(trajectory: Path | None) -> str | None:
    """The first message of the user. What cannot be read here is counted with the steps."""
    if trajectory is None:
        return None
    try:
        for _, step in items(trajectory, "steps", findings=Findings()):
            if step.text("source") == "user" and (text := spoken(step.get("message"))):
                return text
    except BadDataset:
        return None

    return None


def _trials(
    trials: Sequence[_Trial],
    names: dict[str, str],
    metrics: dict[str, Sequence[Metric]],
    findings: Findings,
) -> Iterator[ImportedTrial]:
    """Each trial; afterwards `metrics` holds the rewards.

    Agents wrap a task's instruction, each in their own way, so the shortest first message of the
    user is the question of all trials of a task.
    """
    questions: dict[str, str] = {}
    for trial in trials:
        known = questions.get(trial.task)
        if trial.asked is not None and (known is None or len(trial.asked) < len(known)):
            questions[trial.task] = trial.asked

    rewards: dict[str, None] = {}
    for trial in trials:
        try:
            made = _trial(
                trial,
                questions.get(trial.task, trial.task),
                names[trial.identity],
                findings,
            )
        except BadDataset as error:
            findings.lose(f"trial: {error.faults[0].message}", trial.name)
            continue

        for score in made.scores:
            rewards.update(dict.fromkeys(score.values))

        yield made

    metrics[_SCORER] = [Metric(name=name) for name in rewards]
    if others := [name for name in rewards if name != _REWARD]:
        findings.note(f"taken to be better when higher, as every reward: {', '.join(others)}")


def _trial(trial: _Trial, question: str, condition: str, findings: Findings) -> ImportedTrial:
    if trial.path.name == "result.json":
        row = document(trial.path)
        trajectory = _trajectory(trial.path)
    else:
        row = Json()
        trajectory = trial.path

    if (trial.path.parent / "steps").is_dir():
        findings.left_out("trajectories of the steps of a trial", trial.name)

    path = _Path(trajectory, findings)
    context = row.at("agent_result")
    execution = row.at("agent_execution")

    # The rewards of a trial; None: the verifier gave none
    rewards = row.at("verifier_result", "rewards")
    values: dict[str, float | bool | None] = {}
    for name in rewards:
        values[name] = rewards.number(name)
        if values[name] is None and rewards[name] is not None:
            findings.unreadable("reward that is not a number", trial.name)

    scores = []
    if values:
        scores.append(ImportedScore(scorer=_SCORER, values=values))
    reply = None
    if trajectory is not None or context or row.at("verifier_result"):
        final = path.head.at("final_metrics")
        settings = Json(trial.settings)
        usage = context.usage(
            input_tokens="n_input_tokens",
            output_tokens="n_output_tokens",
            cache_read_tokens="n_cache_tokens",
        ) or final.usage(
            input_tokens="total_prompt_tokens",
            output_tokens="total_completion_tokens",
            cache_read_tokens="total_cached_tokens",
        )
        dollars = context.number("cost_usd", low=0)
        if dollars is None:
            dollars = final.number("total_cost_usd", low=0)
        stop_reason = None
        if path.text is None:
            stop_reason = "not_recorded"
        reply = Reply(
            text=path.text or "",
            reasoning=path.reasoning,
            tool_calls=path.calls,
            usage=usage,
            dollars=dollars,
            model=trial.model,
            agent=" ".join(filter(None, (settings.text("agent"), settings.text("version")))),
            stop_reason=stop_reason,
        )

    return ImportedTrial(
        sample=trial.task,
        question=question,
        condition=condition,
        reply=reply,
        started=utc(execution.text("started_at")) or trial.started or None,
        seconds=seconds_between(execution, "started_at", "finished_at"),
        failure=_failure(row.at("exception_info"), answered=reply is not None, scored=bool(scores)),
        scores=scores,
        detail={
            **row.without("config", "agent_result", "verifier_result", "task_name"),
            "metadata": context.get("metadata"),
            "trajectory": path.head.without("steps", "final_metrics"),
        },
    )


class _Path:
    """The trajectory of a trial, empty if there is none: the last answer, and the calls."""

    def __init__(self, path: Path | None, findings: Findings) -> None:
        self.head = Json()
        self.text: str | None = None
        self.reasoning: str | None = None
        self.calls: tuple[ToolCall, ...] = ()
        if path is None:
            return

        chat: list[Message] = []
        try:
            self.head = document(path, "steps")
            for _, step in items(path, "steps", findings=findings):
                chat.append(
                    Message(
                        role="",
                        text=None,
                        calls=[
                            Call(
                                id=call.text("tool_call_id"),
                                tool=call.text("function_name") or "",
                                input=arguments(call.get("arguments")),
                            )
                            for call in step.list("tool_calls")
                        ],
                        results=[
                            (result.text("source_call_id"), spoken(result.get("content")) or "")
                            for result in step.at("observation").list("results")
                        ],
                    )
                )
                if step.text("source") == "agent":
                    self.text = spoken(step.get("message")) or self.text
                    self.reasoning = step.text("reasoning_content") or self.reasoning
        except BadDataset as error:
            findings.unreadable(f"trajectory: {error.faults[0].message}", path.parent.parent.name)

        if self.head.get("subagent_trajectories"):
            findings.left_out("trajectories of subagents", path.parent.parent.name)
        self.calls = tool_calls(chat)


def _failure(exception: Json, *, answered: bool, scored: bool) -> ImportedFailure | None:
    """Why a trial has no answer or no reward.

    An agent that ran out of time and was verified all the same is scored, as in Harbor; what else
    raised an exception is missing.
    """
    kind = exception.text("exception_type")
    if kind is None:
        return None
    message = f"{kind}: {exception.text('exception_message') or 'no message'}"
    cls, slug = _FAILURES.get(kind, (None, "error"))
    if cls is None:
        return failure(message)
    if cls == "limit" and scored:
        return None
    if cls == "judge" and answered:
        return ImportedFailure(cls=cls, kind=slug, message=message, stage="score", scorer=_SCORER)

    return ImportedFailure(cls=cls, kind=slug, message=message)
