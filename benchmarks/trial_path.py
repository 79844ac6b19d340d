"""What one more trial calls: `python benchmarks/trial_path.py`.

Runs the smallest golden experiment – a Python function as agent, `equals` as scorer – with 8 and with 9 trials, under a
profiler that counts calls to functions in karat's own files, in every thread. The difference is the calls of one trial,
and the files they are in. Does the same with pydantic_evals, if it is installed.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import _results as results  # beside this file
from limits import Limits

import karat

FEW, MORE = 8, 9
MOST_FILES = 12


class Calls:
    """Counts calls to functions in files below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = f"{folder}{os.sep}"
        self.seen: Counter[tuple[str, str]] = Counter()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(self._folder) and not code.co_name.startswith("<"):
            self.seen[code.co_filename.removeprefix(self._folder), code.co_qualname] += 1

    def of(self, work: Callable[[], object]) -> Counter[tuple[str, str]]:
        """Calls while `work` runs."""
        self.seen = Counter()
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            work()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]  # documented to end it
        return self.seen


def answer(question: str) -> str:
    """The agent: always right."""
    return question.removeprefix("Say ")


def karat_run(trials: int, work: Path) -> None:
    rows = [{"question": f"Say {n}", "answer": str(n)} for n in range(trials)]
    (work / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    experiment = karat.Experiment(
        dataset={"path": str(work / "questions.jsonl")},
        agent={"type": "python", "target": answer},
        scorers=["equals"],
        conditions={"plain": {"system_prompt": "Answer."}},
        execution={"num_repetitions": 1, "max_concurrent": 1},
    )
    karat.run(experiment, results=work / "results")


def evals_run(trials: int, _: Path) -> None:
    from pydantic_evals import Case, Dataset
    from pydantic_evals.evaluators import EqualsExpected

    cases = [Case(name=str(n), inputs=f"Say {n}", expected_output=str(n)) for n in range(trials)]
    dataset = Dataset(name="path", cases=cases, evaluators=[EqualsExpected()])
    dataset.evaluate_sync(answer, max_concurrency=1, progress=False)


def path_of(title: str, folder: Path, run: Callable[[int, Path], None]) -> Counter[str]:
    """Prints what one more trial calls; returns its calls by file."""
    calls = Calls(folder)
    with tempfile.TemporaryDirectory() as name:
        run(FEW, Path(name))  # imports, caches
        few = calls.of(lambda: run(FEW, Path(name)))
        more = calls.of(lambda: run(MORE, Path(name)))
    files: Counter[str] = Counter()
    for (file, _), count in (more - few).items():
        files[file] += count
    print(f"{title}: one trial goes through {len(files)} files in {files.total()} calls")
    for file, count in files.most_common():
        print(f"  {count:4} {file}")
    return files


def main() -> None:
    options, limits = results.parser(__doc__).parse_args(), Limits()
    ours = path_of("karat", Path(karat.__file__).parent, karat_run)
    print("files:", limits.check("files", len(ours), "≤", MOST_FILES))
    limits.note("calls", ours.total())
    try:
        import pydantic_evals
    except ImportError:
        print("pydantic_evals: not installed here")
    else:
        theirs = path_of("pydantic_evals", Path(pydantic_evals.__file__).parent, evals_run)
        limits.note("files of pydantic_evals", len(theirs))
        limits.note("calls of pydantic_evals", theirs.total())
    results.write(options.json, limits.section("What one more trial calls", "Calls in the program's own files."))
    limits.exit()


if __name__ == "__main__":
    main()
