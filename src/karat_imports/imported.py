"""Writes results of other tools as a run folder: no calls are made, and nothing is added to the
files' content.
"""

from __future__ import annotations

import importlib
import math
import os
import shutil
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

import karat
import karat.importers
from karat import formats, plugins
from karat.clusters import SharedValues, cluster_name
from karat.errors import (
    BadDataset,
    BadExperiment,
    BadOption,
    BadRun,
    Fault,
    did_you_mean,
    unreadable,
)
from karat.execution.plan import end_of_id, id_of
from karat.execution.provenance import now
from karat.files import in_use, open_regular, remove_leftovers, sync_folder, write_durably
from karat.formats import clean, excerpt
from karat.hashes import HashSet
from karat.importers import (
    Findings,
    ImportedCondition,
    ImportedRun,
    ImportedScore,
    ImportedTrial,
    ResultImporter,
    bounded,
)
from karat.index.cache import cache_folder
from karat.installation import plugin_modules
from karat.journal import (
    FORMAT_WITHOUT_STOP,
    NO_PLAN,
    Attempt,
    Choice,
    Codec,
    DatasetInfo,
    End,
    Event,
    Head,
    PlanInfo,
    RunFolder,
    RunInfo,
    ScorerInfo,
    slugged,
)
from karat.journal.codec import LONGEST_LINE, Cover, ended, with_checksums
from karat.kinds import DEFAULT_KIND, sample_digest
from karat.records import (
    MOST_CONDITIONS,
    MOST_REPETITIONS,
    AgentSpec,
    Answer,
    Condition,
    Failure,
    Metric,
    Reply,
    Sample,
    Score,
    Turn,
    absurd_dollars,
    absurd_reply,
    absurd_usage,
)
from karat_imports.importers.csv import Csv

_BLOCK = 2**20
_LINES = 1_000  # written together
_HEAD = 2**16  # bytes
_IMPORTED = "imported"  # folder in the user's cache
_MOST_CACHED = 4 * 2**30  # bytes
_ROUNDED = 1e-3  # files round their means
_TAKEN = 2**62 + 1  # instead of a hash: for an id that no digest has
_LONGEST_NAME = 120  # characters of the name of a condition, scorer or metric
_EXPERIMENT = """\
# This run was not made by karat: it was imported from files of {tool}.
# They hold the results, so there is no experiment to run again.
"""


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """One run folder made from files of another tool, new or existing."""

    run: RunFolder
    counts: Mapping[str, int]  # answers, failures, not run, scores; empty if the folder existed
    findings: Findings


def import_results(
    format_name: str,
    paths: Sequence[Path],
    results: Path,
    *,
    options: Mapping[str, object] | None = None,
    cluster: str | None = None,
) -> Iterator[Imported]:
    """Makes run folders in `results`. A folder in `paths` means the files in it with this format.

    `cluster`: the column with what questions share, such as their document.

    Raises BadDataset if nothing can be read, BadOption and BadExperiment for options.
    """
    plugin = plugins.find("importers", format_name, allow_code=False)
    checked, faults = plugins.check_options(plugin, options or {}, place="--set")
    if faults:
        raise BadExperiment("--set", faults)
    importer: ResultImporter = plugins.build(plugin, checked)
    found: list[Path] = []
    for path in paths:
        matching = [path]
        if path.is_dir():
            matching = []
            for file in sorted(path.iterdir()):
                if file.is_file() and _recognized(importer, file):
                    matching.append(file)

        if not matching:
            message = f"holds no file of the format {format_name}"
            raise BadDataset(path, [Fault(place="folder", message=message)])

        found += matching

    # a file that is named twice is read once
    files = list({file.resolve(): file for file in found}.values())
    asked = {key: str(value) for key, value in checked.items()}
    if cluster is not None:
        asked["cluster"] = cluster
    beside: Callable[[Path], Sequence[Path]] = getattr(importer, "beside", lambda _: ())
    digest = _sha256([part for file in files for part in (file, *beside(file))])

    # The importers' own files: another importer makes another run of the same results
    modules = [importlib.import_module(name) for name in plugin_modules("importers").values()]
    folders = set()
    for module in (karat.importers, *modules):
        folders.add(Path(str(module.__file__)).parent)

    code = [Path(__file__), *sorted(path for folder in folders for path in folder.glob("*.py"))]
    identity = _digest([digest, _sha256(code), [path.name for path in files], format_name, asked])

    imported: list[Imported] = []
    empty: list[tuple[str, BadDataset]] = []
    findings = Findings(cluster=cluster)  # the importer's; each run takes what was found on its way
    for path in files if format_name == Csv.listed_as else ():
        other = format_of(path)
        if other is not None:
            findings.note(f"{path.name}: `karat import {other}` reads files of its format")

    for number, run in enumerate(importer.runs(files, findings)):
        source = {
            "format": format_name,
            "tool": run.tool,
            "file": ", ".join(path.name for path in files),
            **(NO_PLAN if format_name == Csv.listed_as else {}),
        }
        named = {**source, "sha256": digest}
        try:
            folder, counts = _write(
                run,
                results,
                f"{identity}\n{number}",
                named,
                findings,
                cluster=cluster,
            )
        except BadDataset as error:
            empty.append((run.name, error))
            findings.take()
        else:
            imported.append(Imported(run=folder, counts=counts, findings=findings.take()))

    if not imported and empty:
        raise empty[0][1]
    for name, problem in empty:  # one without results does not stop the others
        imported[0].findings.note(f"'{clean(name)}' is left out: {problem.faults[0].message}")

    yield from imported


def _recognized(importer: ResultImporter, path: Path) -> bool:
    try:
        with open_regular(path) as file:
            return importer.recognizes(path, file.read(_HEAD))
    except OSError:
        return False


def cached_import(path: Path) -> RunFolder | None:
    """The run in a file of another tool, made in the user's cache; None for a file of an unknown
    format.

    Raises BadRun if it has several runs, or there is no cache; BadDataset if it cannot be read.
    """
    name = readable_as(path)
    if name is None:
        return None
    cache = cache_folder()
    if cache is None:
        raise BadRun(
            path, f"there is no folder for a cache: import it with `karat import {name} {path}`"
        )

    state = path.stat()
    key = _digest(
        [str(path.resolve()), state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns]
    )
    results = cache / _IMPORTED / key
    if not results.exists():
        # Removes the least recently used imports beyond 4 GB
        folder = cache / _IMPORTED
        if folder.is_dir():
            kept = 0
            for old in sorted(folder.iterdir(), key=lambda path: -path.lstat().st_mtime_ns):
                kept += sum(file.lstat().st_size for file in old.rglob("*"))
                if kept > _MOST_CACHED:
                    shutil.rmtree(old, ignore_errors=True)

    try:
        runs = list(import_results(name, [path], results))
    except BadOption as error:
        raise BadRun(
            path,
            f"import it with `karat import {name} {path}` and more options:\n{error}",
        ) from error

    if len(runs) != 1:
        raise BadRun(
            path,
            f"holds {len(runs)} runs: import them with `karat import {name} {path}`, and name one",
        )

    os.utime(results)
    return runs[0].run


def format_of(path: Path) -> str | None:
    """The importer that recognizes a file; None: none does."""
    for name in plugins.names("importers"):
        plugin: Any = plugins.find("importers", name)
        if hasattr(plugin, "recognizes") and _recognized(plugin, path):
            return name

    return None


def readable_as(path: Path) -> str | None:
    """The importer that recognizes a file, or that of tables for one with scores or chats."""
    return format_of(path) or Csv.reader_of(path)


def _sha256(paths: Sequence[Path]) -> str:
    """One sha256, hex, over the contents of files in this order. Raises BadDataset."""
    digest = sha256()
    for path in paths:
        try:
            with open_regular(path) as file:
                while block := file.read(_BLOCK):
                    digest.update(block)
        except OSError as error:
            fault = Fault(place="file", message=f"cannot be read: {unreadable(error)}")
            raise BadDataset(path, [fault]) from error

        digest.update(b"\0")

    return digest.hexdigest()


def _write(
    run: ImportedRun,
    results: Path,
    identity: str,
    source: dict[str, str],
    findings: Findings,
    *,
    cluster: str | None = None,
) -> tuple[RunFolder, Mapping[str, int]]:
    """The run folder, and its numbers of answers, failures and scores.

    Its name follows from `identity`, so the same files make the same run. It is filled under a
    temporary name, then renamed: an existing folder is complete.
    """
    name = sha256(f"{identity}\n{run.name}".encode("utf-8", "replace")).hexdigest()[:8]
    try:
        results.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadOption("--out", f"{results} cannot be made: {unreadable(error)}") from error

    remove_leftovers(results, r"\.[a-z0-9-]+-\d{8}-[0-9a-f]{8}-\d+\.part")
    created = run.created or now()
    stem = slugged(run.name)
    for there in results.glob(f"{stem}-*-{name}"):
        return RunFolder.open(there), {}

    try:
        day = datetime.fromisoformat(created)
    except ValueError:
        day = datetime.now(UTC)

    final = results / f"{stem}-{day:%Y%m%d}-{name}"
    building = results / f".{final.name}-{os.getpid()}.part"
    building.mkdir(mode=0o700)
    try:
        with in_use(building):
            writer = _Writer(run, findings, cluster)
            with (
                (building / "journal.jsonl").open("xb") as journal,
                (building / "samples.jsonl").open("xb") as samples,
            ):
                writer.write(name, journal, samples)

            writer.check_clusters()
            info = writer.info(name, created, source)
            if not info.plan.samples:
                faults = [f"{text} ({places[0]})" for _, text, _, places in findings][:1]
                message = "; ".join(["holds no results", *faults])
                raise BadDataset(source["file"], [Fault(place="file", message=message)])

            write_durably(
                building / "experiment.yaml", [_EXPERIMENT.format(tool=clean(run.tool)).encode()]
            )
            write_durably(
                building / "run.json", [msgspec.json.format(Codec().line(info), indent=2), b"\n"]
            )
            building.rename(final)
    finally:
        shutil.rmtree(building, ignore_errors=True)  # it exists only if something went wrong

    sync_folder(results)
    return RunFolder(final, info), writer.counts


def no_answer(trial: str, sample: str, condition: str, repetition: int) -> Failure:
    """The end of a trial whose question is in the files, and no answer to it."""
    return Failure(
        trial=trial,
        stage="agent",
        cls="agent",
        kind="NoAnswer",
        message="the files have no answer",
        sample=sample,
        condition=condition,
        repetition=repetition,
    )


class _Writer:
    """What is known about a run so far; trials are streamed, not kept."""

    def __init__(self, run: ImportedRun, findings: Findings, cluster: str | None) -> None:
        self._run = run
        self._findings = findings
        self._codec = Codec()
        self._cluster = cluster
        self._tool = run.tool.partition(" ")[0]  # without its version
        self._shared = SharedValues()
        self._clustered = 0
        self._cluster_of: dict[str, str | None] = {}  # by sample, where a column is named
        self._cluster_differs: dict[str, None] = {}  # samples
        self._samples = 0
        self._sample_lines: list[bytes] = []  # that are not yet written
        self._sample_names: list[str] = []  # the same, for the content's digest
        self._ids = HashSet()  # of samples, and those of the file with the digest, if they differ
        # of each, the hash of the digest and the place of the first trial, as one number
        self._firsts = array("q")
        self._renamed: dict[tuple[str, str], str] = {}  # id in the file and digest → its own id
        self._conditions: dict[str, Condition] = {}
        # place, which is the hash of condition and repetition → the end of a trial's id
        self._ends: dict[int, bytes] = {}
        self._seen = HashSet()  # trials that are not the first of their sample
        # sample, condition → repetitions so far, where the file numbers none
        self._numbered = Counter[tuple[str, str]]()
        self._offline: dict[str, bool] = {}  # scorer → whether it asked no model
        self._content = blake2b(digest_size=32)
        self._repetitions = 1
        self._read = Counter[str]()  # condition → results
        # condition, scorer, metric, as the file names them → the values
        self._values = defaultdict[tuple[str, str, str], _Values](_Values)
        # what the files state and do not hold, or say of being incomplete
        self.missing: list[str] = []
        self._unanswered: list[Failure] = []  # trials that the files name without an answer
        self.counts = Counter(answers=0, failures=0, scores=0)
        for name, of_condition in [*run.conditions.items()][:MOST_CONDITIONS]:
            self._condition(name, of_condition)

    def check_clusters(self) -> None:
        """Notes a column that looks like a cluster.

        Raises BadOption if not all samples have the one that is named, or some several.
        """
        if self._cluster is None:
            hint = self._shared.hint("import with --cluster")
            if hint is not None and not self._clustered:
                self._findings.note(hint)
        elif self._clustered < self._samples:
            known = self._shared.names
            lacking = f"{self._samples - self._clustered} of {self._samples} samples have no value"
            if self._clustered:
                meant = ""
            else:
                meant = did_you_mean(self._cluster, known)

            raise BadOption("--cluster", f"{lacking} of '{self._cluster}'{meant}")
        elif self._cluster_differs:
            differing = formats.plural(len(self._cluster_differs), "sample")
            first = formats.excerpt(next(iter(self._cluster_differs)), 40)
            raise BadOption(
                "--cluster",
                f"{differing} with several values of '{self._cluster}' (the first is '{first}'): "
                "it groups answers, not questions",
            )

    def write(self, name: str, journal: BinaryIO, samples: BinaryIO) -> None:
        """Every line of journal.jsonl and samples.jsonl, on disk at the end."""
        self._samples_file = samples
        cover = Cover()
        events = [self._codec.line(Head(format=FORMAT_WITHOUT_STOP, run=name), checksum=False)]

        def write() -> None:
            lines = with_checksums(events)
            journal.write(ended(lines))
            cover.add(lines)
            events.clear()

        for trial in self._run.trials:
            lines = []
            for event in self._events(trial):
                lines.append(self._codec.line(event, checksum=False))

            size = sum(map(len, lines))
            if size > LONGEST_LINE and max(map(len, lines)) > LONGEST_LINE:
                self._findings.lose("a trial longer than 64 MB", trial.sample)
                continue

            events += lines
            if len(events) >= _LINES or size > _BLOCK:
                write()

        self.missing += self._run.unfinished
        self.missing += [f"{problem} ({place})" for problem, place in self._findings.lost.items()]
        for stated in self._run.stated:
            # Notes what a file states about itself that is not what was read
            read = sum(self._read[condition] for condition in stated.conditions)
            if stated.trials is not None and read < stated.trials:
                self.missing.append(
                    f"{stated.file}: {formats.count(read)} of "
                    f"{formats.plural(stated.trials, 'sample')} are here"
                )
                continue

            for (scorer, metric), mean in stated.means.items():
                read_values = _Values()
                for condition in stated.conditions:
                    read_values.merge(self._values.get((condition, scorer, metric), _Values()))

                read_mean = read_values.total / max(read_values.number, 1)
                if read_values.number and abs(read_mean - mean) > _ROUNDED:
                    was_read = formats.brief(read_mean)
                    self._findings.note(
                        f"{stated.file} states {formats.brief(mean)} as the mean of {metric}; its "
                        f"values have {was_read}"
                    )

        cells = len(self._conditions) * self._samples * self._repetitions
        if self._run.answers_all and sum(self._read.values()) < cells:
            events += [self._codec.line(event, checksum=False) for event in self._unanswered]
            self.counts["failures"] += len(self._unanswered)
            self.counts["not run"] = 0

        end = End(
            at=now(), reason="interrupted" if self.missing else "done", seconds=self._run.seconds
        )
        write()
        events.append(self._codec.line(cover.stated_by(end), checksum=False))
        write()
        self._write_samples()
        for file in (journal, samples):
            file.flush()
            os.fsync(file.fileno())

    def info(self, name: str, created: str, source: Mapping[str, str]) -> RunInfo:
        """The content of run.json, once every trial is read."""
        run = self._run
        conditions = tuple(self._conditions.values())
        models = set()
        for of_condition in run.conditions.values():
            models.add(of_condition.model)

        for text in self.missing:
            self._findings.note(text)

        notes = [*self._findings.notes]
        left_out = 0
        for kind, text, count, _ in self._findings:
            if kind != "changed":
                left_out += count
            if count > 1:
                notes.append(f"{kind}: {text} ({count} ×)")
            else:
                notes.append(f"{kind}: {text}")

        # What is known about each condition, in the form of an experiment's settings
        settings: dict[str, Choice] = {}
        for title, given in run.conditions.items():
            known = {
                "agent.model": given.model,
                "system_prompt": given.system_prompt,
                **given.detail,
            }
            for key, value in bounded(known).items():
                if value is not None and title in self._conditions:
                    setting = f"conditions.{self._conditions[title].name}.{key}"
                    settings[setting] = Choice(value=value, source="file")

        detail = excerpt(msgspec.json.encode(bounded(dict(run.detail))).decode(), 2000)
        return RunInfo(
            format=FORMAT_WITHOUT_STOP,
            run=name,
            name=excerpt(clean(run.name), _LONGEST_NAME) or "imported",
            version="",
            created=created,
            kind=DEFAULT_KIND,
            plan=PlanInfo(
                samples=self._samples,
                conditions=tuple(condition.name for condition in conditions),
                repetitions=max(self._repetitions, run.planned[1] if run.planned else 1),
            ),
            dataset=DatasetInfo(
                kind=DEFAULT_KIND,
                path=run.dataset or "not named",
                sha256=self._content.hexdigest(),
                samples=self._samples,
                first_row=dict(run.first_row),
            ),
            experiment=settings,
            conditions={condition.name: condition.digest for condition in conditions},
            prompts={
                condition.name: sha256(
                    (condition.system_prompt or "").encode("utf-8", "surrogatepass")
                ).hexdigest()
                for condition in conditions
            },
            agents={condition.name: condition.agent.digest for condition in conditions},
            agent_type=self._tool or "unknown",
            agent_model=models.pop() if len(models) == 1 else None,
            scorers=tuple(self._scorers(source["format"])),
            sparse=run.sparse and not self.missing and not self.counts["not run"],
            versions={"karat": karat.__version__, **run.versions},
            source={
                **source,
                **({} if run.created else {"time": "not recorded; it is the time of the import"}),
                **({"detail": detail} if run.detail else {}),
                **({"notes": "; ".join(notes)} if notes else {}),
                **({"left out": f"{left_out} parts of the file"} if left_out else {}),
                **({"incomplete": "; ".join(self.missing)} if self.missing else {}),
            },
        )

    def _repetition(self, trial: ImportedTrial) -> int | None:
        """Which repetition a trial is, from 0; None: it is left out."""
        repetition = trial.repetition
        if repetition is None:
            repetition = self._numbered[trial.sample, trial.condition]
            self._numbered[trial.sample, trial.condition] += 1

        if not 0 <= repetition < MOST_REPETITIONS:
            self._findings.left_out(
                f"a repetition that is not from 0 to {MOST_REPETITIONS - 1}", trial.sample
            )
            return None

        if trial.condition not in self._conditions and len(self._conditions) >= MOST_CONDITIONS:
            self._findings.left_out(
                f"a result of more than {MOST_CONDITIONS} conditions", trial.sample
            )
            return None

        return repetition

    def _events(self, trial: ImportedTrial) -> Iterator[Event]:
        repetition = self._repetition(trial)
        if repetition is None:
            return
        condition = self._condition(trial.condition)
        place = hash((condition.name, repetition))
        if place not in self._ends:
            self._ends[place] = end_of_id(condition, repetition)
        sample, first = self._sample(trial, place)
        name = id_of(sample, self._ends[place])
        if first is not None and (first == place or not self._seen.add(name)):
            self._findings.left_out(
                "a second result of a sample, condition and repetition", trial.sample
            )
            return

        self._read[trial.condition] += 1
        self._repetitions = max(self._repetitions, repetition + 1)
        reply = trial.reply and self._reply(trial.reply, trial)
        failure = trial.failure
        at = condition.name
        if failure is not None:
            lost = Failure(
                trial=name,
                stage="agent",
                cls=failure.cls,
                kind=failure.kind,
                message=failure.message,
                sample=sample.id,
                condition=at,
                repetition=repetition,
            )

        if failure is not None and failure.stage == "agent":
            if reply is not None or trial.seconds is not None:
                yield Attempt(
                    trial=name,
                    n=1,
                    cls=failure.cls,
                    kind=failure.kind,
                    message=failure.message,
                    seconds=trial.seconds,
                    replies=() if reply is None else (reply,),
                )

            yield lost
            self.counts["failures"] += 1
            if trial.scores:
                self._findings.left_out("scores of a trial that failed", trial.sample)
            return

        if reply is None:
            self.counts["not run"] += 1
            self._unanswered.append(no_answer(name, sample.id, at, repetition))
            return

        yield Answer(
            trial=name,
            sample=sample.id,
            condition=at,
            repetition=repetition,
            replies=(reply,),
            started=trial.started,
            seconds=trial.seconds,
            detail=bounded(trial.detail),
        )
        self.counts["answers"] += 1
        if trial.scores:
            rows = Counter(score.scorer for score in trial.scores)
            for score in trial.scores:
                yield self._score(score, name, rows[score.scorer], trial)
                says_something = any(value is not None for value in score.values.values())
                self.counts["scores"] += says_something or bool(score.labels)

        if failure is not None:
            scorer = _name(failure.scorer or "scorer")
            yield msgspec.structs.replace(
                lost,
                stage="score",
                scorer=scorer,
                scoring=_scoring(self._tool, scorer),
            )

    def _score(self, score: ImportedScore, name: str, rows: int, trial: ImportedTrial) -> Score:
        scorer = _name(score.scorer)
        place = trial.sample
        values = dict[str, float | bool | None]()
        self._offline[scorer] = score.offline and self._offline.get(scorer, True)
        for metric, given in score.values.items():
            value = given
            if given is not None and not math.isfinite(given):
                self._findings.changed("a score that is not a finite number is missing", place)
                value = None
            values[_name(metric)] = value
            self._values[trial.condition, score.scorer, metric].add(value)

        wrong = absurd_dollars(score.dollars) or absurd_usage(score.usage)
        if wrong is not None:
            self._findings.changed(
                f"cost or tokens of a score that cannot be right ({wrong}) are missing", place
            )

        return Score(
            trial=name,
            scorer=scorer,
            scoring=_scoring(self._tool, scorer),
            values=values,
            judge=score.judge,
            repeat=score.repeat,
            rows=rows,
            labels={_name(metric): text for metric, text in score.labels.items()},
            reasons={_name(metric): text for metric, text in score.reasons.items() if text},
            detail=bounded(score.detail),
            usage=score.usage if wrong is None else None,
            dollars=score.dollars if wrong is None else None,
            offline=score.offline,
        )

    def _reply(self, reply: Reply, trial: ImportedTrial) -> Reply:
        if reply.milliseconds is None and trial.seconds is not None:
            reply = msgspec.structs.replace(reply, milliseconds=1000 * trial.seconds)
        calls = reply.tool_calls
        if calls:
            calls = tuple(
                msgspec.structs.replace(call, input=bounded(call.input)) for call in calls
            )
            reply = msgspec.structs.replace(reply, tool_calls=calls)

        wrong = absurd_reply(reply)
        if wrong is None:
            return reply
        self._findings.changed(
            f"cost, tokens or times that cannot be right ({wrong}) are missing", trial.sample
        )
        calls = tuple(msgspec.structs.replace(call, milliseconds=None) for call in calls)
        return msgspec.structs.replace(
            reply,
            dollars=None,
            usage=None,
            milliseconds=None,
            responses=None,
            tool_calls=calls,
        )

    def _sample(self, trial: ImportedTrial, place: int) -> tuple[Sample, int | None]:
        """The sample of a trial, and the place of its first trial; None: this is the first."""
        try:
            digest = sample_digest([trial.question, trial.golden])
        except UnicodeEncodeError:
            digest = sample_digest([_plain(trial.question), _plain(trial.golden)])

        key = trial.sample, digest
        code = hash(digest)
        name = trial.sample
        first = None
        if not self._run.distinct:
            name = self._renamed.get(key, name)
            first = self._first(name if name == trial.sample else key, code ^ place)

        if self._cluster is None:
            cluster = None
        else:
            cluster = cluster_name(trial.metadata.get(self._cluster))

        if first is not None and first ^ code in self._ends:
            if self._cluster is not None and cluster != self._cluster_of[name]:
                self._cluster_differs[name] = None
            return Sample(id=name, position=0, digest=digest, turns=()), first ^ code
        if first is not None:
            number = 1
            while first is not None:
                number += 1
                name = f"{trial.sample} ({number})"
                first = self._first(name, _TAKEN)

            self._first(key, code ^ place)
            self._renamed[key] = name
            change = (
                "a sample with the id of another one, but another question or golden answer, is a "
                "separate sample"
            )
            self._findings.changed(change, trial.sample)

        if self._cluster is not None:
            self._cluster_of[name] = cluster
        self._clustered += cluster is not None
        self._shared.add(trial.metadata)
        sample = Sample(
            kind=DEFAULT_KIND,
            cluster=cluster,
            id=name,
            position=self._samples,
            digest=digest,
            turns=(Turn(question=trial.question, golden=trial.golden),),
            metadata=bounded(trial.metadata),
        )
        self._samples += 1
        line = self._codec.line(sample, checksum=False)
        self._sample_lines.append(line)
        self._sample_names.append(f"{len(name)}:{name}{digest}")
        if len(self._sample_lines) >= _LINES or len(line) > _BLOCK:
            self._write_samples()
        return sample, None

    def _first(self, thing: Hashable, number: int) -> int | None:
        """The number that was given with a thing; None: it is new, and has this one."""
        at = self._ids.number(thing)
        if at < len(self._firsts):
            return self._firsts[at]
        self._firsts.append(number)
        return None

    def _write_samples(self) -> None:
        self._samples_file.write(ended(with_checksums(self._sample_lines)))
        self._content.update("".join(self._sample_names).encode("utf-8", "replace"))
        self._sample_lines.clear()
        self._sample_names.clear()

    def _condition(self, name: str, of_condition: ImportedCondition | None = None) -> Condition:
        if name not in self._conditions:
            given = of_condition or self._run.conditions.get(name) or ImportedCondition()
            shown = _name(name)
            number = 1
            # the same but for its end
            while any(condition.name == shown for condition in self._conditions.values()):
                number += 1
                shown = f"{_name(name)} ({number})"

            self._conditions[name] = Condition(
                name=shown,
                position=len(self._conditions),
                digest=_digest([given.system_prompt, bounded(given.detail)]),
                agent=AgentSpec(
                    type=self._tool,
                    digest=_digest([self._run.tool, given.model]),
                ),
                system_prompt=given.system_prompt,
            )

        return self._conditions[name]

    def _scorers(self, format_name: str) -> Iterator[ScorerInfo]:
        announced = {_name(scorer): metrics for scorer, metrics in self._run.metrics.items()}
        ranges: dict[str, dict[str, _Values]] = {}
        for (_, scorer, name), values in self._values.items():
            of_scorer = ranges.setdefault(_name(scorer), {})
            of_scorer.setdefault(_name(name), _Values()).merge(values)

        for scorer in dict.fromkeys([*announced, *self._offline]):
            known = {_name(metric.name): metric for metric in announced.get(scorer, ())}
            met = ranges.get(scorer, {})
            metrics: list[Metric] = []
            for name in dict.fromkeys([*known, *met]):
                stated = known.get(name)
                found = met.get(name)
                if stated is None:
                    share = found is not None and found.only_0_and_1
                    metric = Metric(name=name, kind="share" if share else "number")
                elif found is None or found.within(stated):
                    metric = msgspec.structs.replace(stated, name=name)
                else:
                    metric = Metric(
                        name=name, direction=stated.direction, description=stated.description
                    )
                    self._findings.note(
                        f"{name} has values beyond the scale that its tool states: no bounds are "
                        f"assumed"
                    )

                metrics.append(metric)

            yield ScorerInfo(
                name=scorer,
                type=format_name,
                scoring=_scoring(self._tool, scorer),
                metrics=tuple(metrics),
                offline=self._offline.get(scorer, True),
                provenance={"made_by": self._run.tool},
            )


class _Values:
    """The values of a metric, as far as they show its mean and its scale."""

    __slots__ = ("high", "low", "number", "only_0_and_1", "total")

    def __init__(self) -> None:
        self.low = math.inf
        self.high = -math.inf
        self.only_0_and_1 = True
        self.total = 0.0
        self.number = 0

    def add(self, value: float | bool | None) -> None:
        if value is None:
            return
        if value < self.low:
            self.low = value
        if value > self.high:
            self.high = value
        self.only_0_and_1 = self.only_0_and_1 and value in (0, 1)
        self.total += value
        self.number += 1

    def merge(self, other: _Values) -> None:
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.only_0_and_1 = self.only_0_and_1 and other.only_0_and_1
        self.total += other.total
        self.number += other.number

    def within(self, metric: Metric) -> bool:
        low, high = metric.bounds
        fits = (low is None or self.low >= low) and (high is None or self.high <= high)
        return fits and (metric.kind != "share" or self.only_0_and_1)


def _digest(parts: object) -> str:
    return blake2b(msgspec.json.encode(parts, order="sorted"), digest_size=16).hexdigest()


@lru_cache
def _scoring(tool: str, scorer: str) -> str:
    return _digest([tool, scorer])


@lru_cache
def _name(text: str) -> str:
    return excerpt(clean(text), _LONGEST_NAME) or "unnamed"


def _plain(text: str | None) -> str | None:
    if text is None or text.isascii():
        return text
    return text.encode("utf-8", "replace").decode()
