"""Logs of Inspect AI become runs whose numbers are the log's own, and logs that lie become errors."""

from __future__ import annotations

import json
import random
import statistics
import struct
import subprocess
import sys
import time
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from backports.zstd.zipfile import ZIP_ZSTANDARD, ZipFile

import karat
from karat.errors import BadDataset
from karat.importers import Findings, ImportedTrial
from karat.records import Answer, Failure, Usage
from karat_imports.imported import Imported, import_results
from karat_imports.importers.inspect import Inspect

LOGS = Path(__file__).parent.parent / "data" / "imports" / "inspect"
SAMPLE: dict[str, Any] = {
    "id": "a", "epoch": 1, "input": "What?", "target": "That", "messages": [],
    "output": {"model": "m", "choices": [{"message": {"content": "That."}, "stop_reason": "stop"}]},
    "scores": {"match": {"value": "C"}},
}  # fmt: skip
SPEC: dict[str, Any] = {
    "task": "made", "created": "2026-01-02T03:04:05+00:00", "dataset": {"name": "made"}, "model": "m/one", "config": {},
}  # fmt: skip


def imported(out: Path, *names: str | Path) -> Imported:
    (made,) = import_results("inspect", [LOGS / name for name in names], out / "results")
    return made


def header(path: Path) -> dict[str, Any]:
    if path.suffix == ".json":
        log = json.loads(path.read_text())
        return {**log, "samples": len(log["samples"])}
    with ZipFile(path) as archive:
        count = len([name for name in archive.namelist() if name.startswith("samples/")])
        return {**json.loads(archive.read("header.json")), "samples": count}


def log(path: Path, *samples: dict[str, Any], spec: dict[str, Any] | None = None, **fields: Any) -> Path:
    """An `.eval` log with these samples, each as SAMPLE but for what it says otherwise."""
    with ZipFile(path, "w", compression=ZIP_ZSTANDARD) as archive:
        archive.writestr("header.json", json.dumps({"status": "success", "eval": {**SPEC, **(spec or {})}, **fields}))
        for number, sample in enumerate(samples):
            text = json.dumps({**SAMPLE, "id": f"q{number}", **sample})
            archive.writestr(f"samples/{sample.get('id', f'q{number}')}_epoch_{sample.get('epoch', 1)}.json", text)
    return path


def trials(*paths: Path) -> tuple[list[ImportedTrial], Findings]:
    findings = Findings()
    return [trial for run in Inspect().runs(paths, findings) for trial in run.trials], findings


def one(folder: Path, **sample: Any) -> ImportedTrial:
    ((trial,), _) = trials(log(folder / "one.eval", sample))
    return trial


def noted(findings: Findings) -> list[str]:
    return [f"{kind}: {what}" for kind, what, _, _ in findings]


@pytest.mark.parametrize("name", ["one.eval", "two.eval", "plain.json", "tools.eval", "old58.eval", "old20.json"])
def test_counts_means_and_standard_errors_are_those_of_the_log(tmp_path: Path, name: str) -> None:
    made, own = imported(tmp_path, name), header(LOGS / name)
    assert made.counts["answers"] + made.counts["failures"] == own["samples"]
    results = {result.metric: result for result in karat.summarize(made.run).results}
    checked = 0
    for score in own["results"]["scores"]:
        result = results.get(score["name"]) or results[f"{score['scorer']}.{score['name']}"]
        metrics = {key: metric["value"] for key, metric in score["metrics"].items()}
        assert result.mean.value == pytest.approx(metrics.get("accuracy", metrics.get("mean")), abs=1e-12)
        per_question: dict[str, list[float]] = {}
        for trial in trials(LOGS / name)[0]:
            for value in (scored.values.get(score["name"]) for scored in trial.scores if not trial.failure):
                if value is not None:
                    per_question.setdefault(trial.sample, []).append(value)
        means = [statistics.mean(values) for values in per_question.values()]
        if "stderr" in metrics and len(means) > 1:
            assert statistics.stdev(means) / len(means) ** 0.5 == pytest.approx(metrics["stderr"], abs=1e-12)
            if result.mean.se is not None:
                assert result.mean.se == pytest.approx(metrics["stderr"], abs=1e-12)
        checked += 1
    assert checked == len(own["results"]["scores"]) > 0


def test_logs_of_one_task_are_conditions_of_one_run(tmp_path: Path) -> None:
    made = imported(tmp_path, "two.eval", "one.eval")
    summary = karat.summarize(made.run)
    assert summary.conditions == ("mockllm/one", "mockllm/two"), "in the order in which they were made"
    assert made.run.info.plan.samples == 4
    assert made.run.info.plan.repetitions == 3
    assert [sample.id for sample in made.run.samples()] == ["france", "peru", "chad", "fiji"], "as the dataset has them"
    assert made.run.info.created == "2026-11-22T20:52:00+00:00" or made.run.info.created.startswith("20")
    assert made.run.info.versions["inspect_ai"] == "0.3.285"
    assert not list(made.findings)
    runs = list(Inspect().runs([LOGS / "one.eval", LOGS / "tools.eval", LOGS / "plain.json"], Findings()))
    assert [(run.name, list(run.conditions)) for run in runs] == [
        ("capitals", ["mockllm/one", "mockllm/one (2)"]), ("tools", ["mockllm/one"]),
    ]  # fmt: skip


def test_tool_calls_errors_and_limits_are_what_the_log_says(tmp_path: Path) -> None:
    made = imported(tmp_path, "tools.eval")
    answers = {answer.sample: answer for answer in made.run.events_of(Answer)}
    failures = {failure.sample: failure for failure in made.run.events_of(Failure)}
    assert sorted(answers) == ["choice", "endless", "tool"]
    calls = answers["tool"].replies[0].tool_calls
    assert [(call.tool, call.input, call.result, call.error) for call in calls] == [
        ("population", {"city": "Suva"}, "Suva: 10,000", None),
        ("population", {"city": "Atlantis"}, None, "no such city"),
    ]
    reply = answers["tool"].replies[0]
    assert (reply.text, reply.stop_reason, reply.responses, reply.dollars) == ("10,000", "stop", 3, None)
    assert reply.usage == Usage(input_tokens=11 + 100 + 11 + 100 + 13 + 100, output_tokens=15, cache_read_tokens=300)
    assert {name: (failure.cls, failure.message) for name, failure in failures.items()} == {
        "crash": ("agent", "ValueError('the parser found no number')"),
        "network": ("infrastructure", "ConnectionError('429 Too Many Requests')"),
    }
    assert answers["endless"].detail["limit"]["type"] == "message", "it was scored, so it is an answer"
    samples = {sample.id: sample.turns[0] for sample in made.run.samples()}
    assert samples["tool"].question == "How many people live there?"
    assert samples["tool"].golden == "10,000 | ten thousand"
    assert answers["tool"].detail["input"][0] == {"role": "system", "content": "Be brief."}
    assert (samples["choice"].question, samples["choice"].golden) == ("Which one?\n\nA) red\nB) blue", "B")


def test_a_log_that_was_never_finished_has_what_was_written(tmp_path: Path) -> None:
    made = imported(tmp_path, "unfinished.eval")
    assert made.counts["answers"] == 2
    assert made.findings.notes == ["unfinished.eval was never finished", "unfinished.eval: 2 of 8 samples are here"]
    assert made.run.info.plan.repetitions == 2
    assert karat.summarize(made.run).total.ledger.not_run == 2, (
        "the second epoch; questions that nobody asked are unknown"
    )
    (run,) = Inspect().runs([LOGS / "unfinished.eval"], Findings())
    assert run.planned == (4, 2)
    assert run.seconds is None


def test_what_old_logs_do_not_record_is_missing(tmp_path: Path) -> None:
    for answer in imported(tmp_path, "old20.json").run.events_of(Answer):
        assert (answer.started, answer.seconds) == (None, None)
        reply = answer.replies[0]
        assert (reply.milliseconds, reply.dollars, reply.responses) == (None, None, None)


def test_an_evaluation_that_was_retried_is_one_condition_with_its_newest_answers(tmp_path: Path) -> None:
    old = log(tmp_path / "old.eval", {}, {"error": {"message": "x"}, "scores": {}}, spec={"task_id": "t"})
    later = {"task_id": "t", "created": "2026-01-03T00:00:00+00:00"}
    new = log(tmp_path / "new.eval", {"id": "q1", "target": "new"}, spec=later)
    (found, findings) = trials(new, old)
    assert [(trial.sample, trial.golden, trial.failure) for trial in found] == [
        ("q1", "new", None),
        ("q0", "That", None),
    ]
    assert findings.notes == ["m/one: 2 logs are attempts at one evaluation; the newest of each sample counts"]


def test_an_evaluation_that_was_run_again_has_more_repetitions(tmp_path: Path) -> None:
    ids = {"dataset": {"name": "made", "sample_ids": ["q0", "q1"]}, "config": {"epochs": 2}}
    samples = [{"id": name, "epoch": epoch} for name in ("q0", "q1") for epoch in (1, 2)]
    code = {"revision": {"type": "git", "commit": "a"}}
    again = [
        log(
            tmp_path / f"{day}.eval",
            *samples,
            spec={"task_id": f"t{day}", "created": f"2026-01-0{day}T00:00:00+00:00", **ids, **code},
        )
        for day in (1, 2)
    ]
    findings = Findings()
    (run,) = Inspect().runs(again, findings)
    assert (list(run.conditions), run.planned) == (["m/one"], (2, 4))
    assert sorted((trial.sample, trial.repetition) for trial in run.trials) == [
        (name, repetition) for name in ("q0", "q1") for repetition in range(4)
    ]
    assert [stated.trials for stated in run.stated] == [8]
    assert findings.notes == ["m/one: 2 evaluations with the same settings are repetitions"]


@pytest.mark.parametrize(
    "other",
    [{"revision": {"type": "git", "commit": "b"}}, {"dataset": {"name": "made", "sample_ids": ["q1", "q2"]}}],
)
def test_an_evaluation_of_other_code_or_samples_is_another_condition(tmp_path: Path, other: dict[str, Any]) -> None:
    spec = {"dataset": {"name": "made", "sample_ids": ["q0", "q1"]}, "revision": {"type": "git", "commit": "a"}}
    paths = [
        log(tmp_path / "a.eval", {}, spec={"task_id": "t", **spec}),
        log(tmp_path / "b.eval", {}, spec={"task_id": "u", **spec, **other}),
    ]
    findings = Findings()
    (run,) = Inspect().runs(paths, findings)
    assert list(run.conditions) == ["m/one", "m/one (2)"]
    assert findings.notes == ["logs with the same settings, of other code or samples, become separate conditions"]


def test_conditions_are_called_after_what_differs(tmp_path: Path) -> None:
    paths = [
        log(tmp_path / f"{number}.eval", {}, spec={"task_args": {"hint": hint, "same": 1}, "model": model})
        for number, (hint, model) in enumerate([(True, "m/one"), (False, "m/one")])
    ]
    (run,) = Inspect().runs(paths, Findings())
    assert list(run.conditions) == ["hint=true", "hint=false"]
    paths.append(log(tmp_path / "3.eval", {}, spec={"task_args": {"hint": True, "same": 1}, "model": "m/two"}))
    (run,) = Inspect().runs(paths, Findings())
    assert list(run.conditions) == ["m/one hint=true", "m/one hint=false", "m/two hint=true"]


@pytest.mark.parametrize(
    ("value", "values", "labels"),
    [
        ("C", {"match": 1.0}, {"match": "C"}),
        ("I", {"match": 0.0}, {"match": "I"}),
        ("P", {"match": 0.5}, {"match": "P"}),
        ("N", {"match": 0.0}, {"match": "N"}),
        ("No", {"match": 0.0}, {"match": "No"}),
        (" 0.25 ", {"match": 0.25}, {"match": " 0.25 "}),
        ("good", {"match": None}, {"match": "good"}),
        ("nan", {"match": None}, {"match": "nan"}),
        (True, {"match": True}, {}),
        (3, {"match": 3}, {}),
        (10**400, {"match": None}, {}),
        (float("nan"), {"match": None}, {}),
        (float("-inf"), {"match": None}, {}),
        (None, {"match": None}, {}),
        ([1, "C", "odd"], {"match[0]": 1, "match[1]": 1.0, "match[2]": None}, {"match[1]": "C", "match[2]": "odd"}),
        (
            {"a": 0.5, "b": "I", "c": None, "d": [1]},
            {"match.a": 0.5, "match.b": 0.0, "match.c": None, "match.d": None},
            {"match.b": "I"},
        ),
    ],
)
def test_values_count_as_inspect_counts_them(tmp_path: Path, value: Any, values: Any, labels: Any) -> None:
    (score,) = one(tmp_path, scores={"match": {"value": value, "explanation": "why", "metadata": {"k": 1}}}).scores
    assert score.values == values
    assert score.labels == labels
    assert score.reasons == dict.fromkeys(values, "why")
    assert score.detail == {"k": 1}


def test_usage_of_several_models_is_their_sum(tmp_path: Path) -> None:
    usage = {
        "a": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 135, "input_tokens_cache_read": 100,
              "input_tokens_cache_write": 20, "reasoning_tokens": 2, "total_cost": 0.25},
        "b": {"input_tokens": 7, "output_tokens": 1, "total_tokens": 8, "input_tokens_cache_read": 3,
              "total_cost": 0.5},
    }  # fmt: skip
    path = log(tmp_path / "u.eval", {"model_usage": usage})
    ((trial,), findings) = trials(path)
    assert trial.reply is not None
    assert trial.reply.usage == Usage(
        input_tokens=130 + 7, output_tokens=6, cache_read_tokens=103, cache_write_tokens=20, reasoning_tokens=2
    )
    assert trial.reply.dollars == 0.75
    assert findings.notes == ["tokens and cost of an answer are those of all models of its sample, graders included"]
    usage["b"].pop("total_cost")
    assert one(tmp_path, model_usage=usage).reply.dollars is None, "a part is not the whole"


@pytest.mark.parametrize(
    ("sample", "failure"),
    [
        ({"error": {"message": "boom"}, "scores": {}}, ("agent", "error", "boom")),
        ({"error": {"message": "503 busy"}, "scores": None}, ("infrastructure", "error", "503 busy")),
        ({"limit": {"type": "token", "limit": 5}, "scores": {}}, ("limit", "token_limit", "token_limit")),
        ({"limit": {"type": "token", "limit": 5}}, None),
        ({"error": {"message": "boom"}}, None),  # score_on_error: Inspect counts it
        ({"output": {"model": "m", "choices": [], "error": "refused"}, "scores": {}}, ("agent", "error", "refused")),
    ],
)
def test_a_trial_fails_where_inspect_has_no_score_and_a_reason(tmp_path: Path, sample: Any, failure: Any) -> None:
    found = one(tmp_path, **sample).failure
    assert (found and (found.cls, found.kind, found.message)) == failure


def test_attachments_take_the_place_of_references_within_a_limit(tmp_path: Path) -> None:
    key = "0123456789abcdef" * 2
    output = {"model": "m", "completion": f"See attachment://{key} and attachment://{'f' * 32}."}
    path = log(tmp_path / "a.eval", {"output": output, "attachments": {key: "the paper attachment://" + key}})
    ((trial,), findings) = trials(path)
    assert trial.reply.text == f"See the paper attachment://{key} and attachment://{'f' * 32}."
    assert noted(findings) == ["left out: an attachment that is missing or too large"]
    many = {"model": "m", "completion": f"attachment://{key}" * 5}
    (trial,), findings = trials(log(tmp_path / "b.eval", {"output": many, "attachments": {key: "x" * 300_000}}))
    assert trial.reply.text == "x" * 900_000 + f"attachment://{key}" * 2


def test_what_scores_refer_to_and_note_comes_before_the_messages(tmp_path: Path) -> None:
    key = "0123456789abcdef" * 2
    long = {
        "input": [{"role": role, "content": f"attachment://{key}"} for role in ("system", "assistant", "assistant")],
        "scores": {"judge": {"value": 3.5, "explanation": f"attachment://{key}"}},
        "model_usage": {name: {"input_tokens": 1, "output_tokens": 1} for name in "ab"},
        "attachments": {key: "x" * 190_000},
    }
    (trial,), findings = trials(log(tmp_path / "a.eval", long))
    assert [*trial.scores[0].reasons.values()] == ["x" * 190_000]
    assert [note.partition(" of ")[0] for note in findings.notes] == ["numbers", "tokens and cost"]


def test_the_newest_entry_of_a_name_counts(tmp_path: Path) -> None:
    path = log(tmp_path / "twice.eval", {"target": "old"})
    with ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("samples/q0_epoch_1.json", json.dumps({**SAMPLE, "id": "q0", "target": "new"}))
    assert [trial.golden for trial in trials(path)[0]] == ["new"]


def test_reasoning_and_parts_that_are_no_text_are_told_apart(tmp_path: Path) -> None:
    content = [
        {"type": "reasoning", "reasoning": "thus"}, {"type": "text", "text": "That."}, {"type": "image", "image": "x"},
    ]  # fmt: skip
    reply = one(tmp_path, output={"choices": [{"message": {"role": "assistant", "content": content}}]}).reply
    assert (reply.text, reply.reasoning) == ("That.\n[image]", "thus")


def test_half_of_a_surrogate_pair_and_numbers_beyond_json_are_read(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    sample = json.dumps({**SAMPLE, "input": "say \\u0041 NaN", "metadata": {"x": float("inf"), "y": "NaN"}})
    sample = sample.replace('"That"', '"\\ud800 \\u00e9"')
    path.write_text(f'{{"version": 2, "status": "success", "eval": {json.dumps(SPEC)}, "samples": [{sample}]}}')
    ((trial,), _) = trials(path)
    assert (trial.question, trial.golden) == ("say \\u0041 NaN", "? é")
    assert trial.metadata == {"x": None, "y": "NaN"}


def test_samples_that_cannot_be_read_are_counted_and_the_others_are_there(tmp_path: Path) -> None:
    path = log(tmp_path / "some.eval", {}, {"epoch": "first"}, {"id": "../../x"}, {})
    with ZipFile(path, "a") as archive:
        for name, text in [
            ("samples/deep_epoch_1.json", '{"id": "deep", "epoch": 1, "store": ' + "[" * 1_000_000),
            ("samples/cut_epoch_1.json", json.dumps(SAMPLE)[:-9]),
            ("/samples/absolute_epoch_1.json", "{}"),
            ("samples/whole_epoch_1/sample.json", json.dumps(SAMPLE)),
        ]:
            archive.writestr(name, text)
        link = zipfile.ZipInfo("samples/link_epoch_1.json")
        link.external_attr = 0o120777 << 16
        archive.writestr(link.filename, "/etc/passwd")
    found, findings = trials(path)
    assert sorted(trial.sample for trial in found) == ["../../x", "q0", "q3"]
    assert sum(count for kind, _, count, _ in findings if kind == "unreadable") == 5
    (made,) = import_results("inspect", [path], tmp_path / "out")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out", "some.eval"]
    assert made.run.path.parent == tmp_path / "out"


@pytest.mark.parametrize("epoch", [0, -3, 10**9])
def test_an_epoch_that_cannot_be_is_no_repetition(tmp_path: Path, epoch: int) -> None:
    path = tmp_path / "log.json"
    samples = [{**SAMPLE, "epoch": epoch}, {**SAMPLE, "total_time": -5}]
    path.write_text(json.dumps({"version": 2, "eval": {**SPEC, "config": {"epochs": 10**9}}, "samples": samples}))
    ((trial,), findings) = trials(path)
    assert (trial.repetition, trial.seconds) == (0, None)
    assert noted(findings) == [f"unreadable: a sample: epoch {epoch}"]


def bomb(path: Path, *, method: int, size: int, members: int = 1) -> None:
    with ZipFile(path, "w", compression=method) as archive:
        archive.writestr("header.json", json.dumps({"status": "success", "eval": SPEC}))
        for number in range(members):
            archive.writestr(f"samples/{number}_epoch_1.json", b'{"store": "' + bytes(size))


def overlapping(path: Path) -> None:
    """Entries of the central directory, each under its own name, for the same bytes."""
    log(path, {"metadata": {"x": "y" * 10_000}})
    data = path.read_bytes()
    end = data.rfind(b"PK\5\6")
    entry = data[data.rindex(b"PK\1\2", 0, end) : end]
    count = 1_000
    copies = b"".join(entry.replace(b"q0_epoch_1", b"%d_epoch_1" % (10 + number % 90)) for number in range(count))
    start = data.index(b"PK\1\2")
    tail = struct.pack(
        "<4s4H2LH", b"PK\5\6", 0, 0, count + 1, count + 1, end - start - len(entry) + len(copies), start, 0
    )
    path.write_bytes(data[: end - len(entry)] + copies + tail)


def many_entries(path: Path, count: int = 1_000_000) -> None:
    name = b"samples/0_epoch_1.json"
    entry = struct.pack("<4s4B4H3L5H2L", b"PK\1\2", 20, 0, 20, 0, 0, 0, 0, 0, 0, 2, 2, len(name), *[0] * 6) + name
    end = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, count * len(entry), 0)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, count * len(entry), 1)
    tail = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, count * len(entry), 0, 0)
    path.write_bytes(entry * count + end + locator + tail)


def random_bytes(path: Path) -> None:
    path.write_bytes(b"PK\3\4" + random.Random(1).randbytes(100_000) + b"PK\5\6" + bytes(18))


def lying(path: Path) -> None:
    """A member that has more bytes than it says."""
    log(path, {})
    data = bytearray(path.read_bytes())
    struct.pack_into("<L", data, data.index(b"PK\1\2") + 24, 7)
    path.write_bytes(data)


HOSTILE: dict[str, tuple[Any, str]] = {
    "bomb": (lambda path: bomb(path, method=8, size=150_000_000, members=4), "would unpack to"),
    "zstd bomb": (lambda path: bomb(path, method=93, size=150_000_000, members=4), "would unpack to"),
    "large member": (lambda path: bomb(path, method=93, size=220_000_000), ""),
    "cut off": (lambda path: path.write_bytes((LOGS / "one.eval").read_bytes()[:-100]), "central directory is missing"),
    "first bytes": (lambda path: path.write_bytes(b"PK\3\4"), "central directory is missing"),
    "random": (random_bytes, "neither header.json"),
    "lying": (lying, "damaged"),
    "overlapping": (overlapping, ""),
    "entries": (many_entries, "has more than 150,000 entries"),
    "deep": (lambda path: path.write_text('{"eval": {"task": "t", "a": ' + "[" * 1_000_000), "nested too deeply"),
    "deep skipped": (lambda path: path.write_text('{"zzz": ' + "[" * 1_000_000), "nested too deeply"),
    "no samples": (lambda path: path.write_text('{"eval": {"task": "t"}, "samples": [{"a": 1}]}'), ""),
    "no log": (lambda path: path.write_text('{"version": 2, "eval": 3}'), "Expected `object`, got `int`"),
    "empty": (lambda path: path.write_text(""), "ends too early"),
    "odd strings": (lambda path: path.write_text('{"a": [' + '"\\u0041", "", ' * 1_000_000), "ends too early"),
    "quotes": (lambda path: path.write_text('{"a": NaN, ' + '\\"' * 1_000_000), "ends too early"),
    "NaN": (lambda path: path.write_text('{"eval": {"a": [' + "NaN," * 1_000_001), "ends too early"),
    "no header": (lambda path: ZipFile(path, "w").close(), "neither header.json"),
}  # fmt: skip


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_log_is_a_clear_error_or_a_finding(tmp_path: Path, name: str) -> None:
    make, message = HOSTILE[name]
    path = tmp_path / "x.eval"
    make(path)
    begun = time.process_time()
    findings = Findings()
    if message:
        with pytest.raises(BadDataset, match=message):
            list(Inspect().runs([path], findings))
    else:
        assert [trial for run in Inspect().runs([path], findings) for trial in run.trials] == []
        assert noted(findings)
    assert time.process_time() - begun < 60, "a hang, on any machine"
    assert [file.name for file in tmp_path.iterdir()] == ["x.eval"]


def test_a_checksum_that_does_not_fit_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "x.eval"
    with ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps({"eval": SPEC}))
    data = bytearray(path.read_bytes())
    place = data.index(struct.pack("<L", zlib.crc32(json.dumps({"eval": SPEC}).encode())), 20)
    data[place : place + 4] = data[data.index(b"PK\1\2") + 16 : data.index(b"PK\1\2") + 20] = b"\0\0\0\0"
    path.write_bytes(data)
    with pytest.raises(BadDataset, match=r"damaged \(Bad CRC-32"):
        list(Inspect().runs([path], Findings()))


def test_logs_are_recognized_and_other_files_are_not() -> None:
    for path in LOGS.iterdir():
        if path.suffix in (".eval", ".json"):
            assert Inspect.recognizes(path, path.read_bytes()[:65536]), path.name
    assert not Inspect.recognizes(Path("x.zip"), b"PK\3\4")
    assert not Inspect.recognizes(Path("results.json"), b'{"version": 3, "results": {}}')
    assert not Inspect.recognizes(Path("x.eval"), b"{}")


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="zipfile reads zstd from 3.14 on")
def test_without_the_extra_inspect_a_packed_log_says_what_to_install(tmp_path):
    code = """
import sys
sys.modules["backports.zstd"] = None
from pathlib import Path
from karat.errors import MissingExtra
from karat_imports.imported import import_results
try:
    list(import_results("inspect", [Path(sys.argv[1])], Path("results")))
except MissingExtra as missing:
    print(missing)
"""
    command = [sys.executable, "-c", code, str(LOGS / "one.eval")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert "one.eval: a packed log (.eval) needs the extra 'inspect': " in done.stdout, done.stderr
