"""What a dataset kind is. One file a kind; each name is the file's name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from karat.errors import Fault
from karat.records import Sample

if TYPE_CHECKING:
    from karat.datasets._rows import Rows
    from karat.datasets._study_fields import Read
    from karat.datasets._study_format import StudyFile
    from karat.datasets._study_tests import Reducer, Response
    from karat.replication import StudyTest

__all__ = ["Dataset", "DatasetKind", "Doubted", "Linted", "kind_of", "quarantine_text", "read_rows", "sample_digest"]


class Dataset(msgspec.Struct, frozen=True, kw_only=True):
    """Samples, in the order of the file, and the file they came from."""

    kind: str
    path: Path
    sha256: str  # hex, of the file's raw bytes
    samples: Sequence[Sample]

    def __iter__(self) -> Iterator[Sample]:
        return iter(self.samples)

    def __len__(self) -> int:
        return len(self.samples)


class Doubted(msgspec.Struct, frozen=True, kw_only=True):
    """One golden answer that is not to be trusted, and why."""

    id: str  # of the sample
    turn: int | None  # from 0; None: of the sample as a whole
    reasons: tuple[str, ...]  # slugs
    evidence: dict[str, Any]  # reason → what shows it


class Linted(msgspec.Struct, frozen=True, kw_only=True):
    """What a dataset says against itself."""

    kind: str
    path: Path
    sha256: str  # hex, of the file's raw bytes
    samples: int  # that could be read
    turns: int  # of these
    doubted: tuple[Doubted, ...]  # in the order of the file
    meanings: dict[str, str]  # reason → what it says
    faults: tuple[Fault, ...] = ()  # for which a run would refuse the file


class DatasetKind(Protocol):
    """Reads one kind of file. Raises BadDataset with every fault of the file at once.

    `judged` (class attribute): whether answers need a judge when the file names no scorer.
    A kind may also have `scorer` (class attribute), the name of what scores it then, and
    `lint(path) -> Linted`, which `karat lint` calls.
    """

    judged: bool

    def load(self, path: Path) -> Dataset: ...


def sample_digest(parts: Any) -> str:
    """A digest over whatever a sample consists of, keys sorted: 32 hex digits of blake2b."""
    from hashlib import blake2b

    return blake2b(msgspec.json.encode(parts, order="sorted"), digest_size=16).hexdigest()


def kind_of(path: Path) -> str:
    """Which kind of dataset a file looks like. Raises BadDataset where nothing can be read at all."""
    from karat.datasets._conversation_reading import looks_like_conversations

    return "conversation" if looks_like_conversations(path) else "golden"


def quarantine_text(doubted: Iterable[Doubted]) -> str:
    """The text of a quarantine file, which `dataset.quarantine` can name: one line a turn."""
    from karat.datasets._quarantine import written

    return written(doubted)


def read_rows(path: Path) -> Rows:
    """The rows of a file of any kind that datasets come in. Raises BadDataset where nothing can be read at all."""
    from karat.datasets import _rows

    return _rows.read_rows(path)


def shipped_studies() -> dict[str, Path]:
    """The studies that come with karat: name → `study.yaml`, in the order of their names."""
    found = (Path(__file__).parent / "studies").glob("*/study.yaml")
    return {path.parent.name: path for path in sorted(found)}


def read_study(path: Path) -> StudyFile:
    """A study, from its folder or its `study.yaml`. Raises BadDataset with every fault of it."""
    from karat.datasets import _study_reading

    return _study_reading.read_study(path)


def read_answers(sample: Sample, turn: int, text: str) -> Read:
    """What a participant answered in one turn (from 0): each field read, or with the reason why it is not."""
    from karat.datasets import _study_fields, _study_samples

    return _study_fields.read_answers(text, _study_samples.fields_of(sample, turn))


def study_question(sample: Sample, turn: int, replies: Sequence[str | None]) -> str:
    """What a participant is asked in one turn (from 0). `replies`: to every turn before it, None where there is none.

    In the later rounds of a game it depends on them; elsewhere it is the turn's question.
    """
    from karat.datasets import _study_samples

    return _study_samples.question_of(sample, turn, replies)


def study_responses(sample: Sample, values: Sequence[Mapping[str, Any] | None]) -> list[Response]:
    """The rows of `responses` of one sample, from the answers read in each of its turns; None: there was no reply."""
    from karat.datasets import _study_samples

    return _study_samples.responses_of(sample, values)


def study_tests(study: StudyFile, responses: Sequence[Response], *, reducer: Reducer | None = None) -> list[StudyTest]:
    """The tests of a study with both sides: people's, and what the responses give.

    `reducer`: the function that `study.reducer` names, where its code may run. Raises BadOption for
    SQL that fails, and for a reducer that is needed and was not allowed.
    """
    from karat.datasets._study_tests import to_study_tests

    return to_study_tests(study, responses, reducer=reducer)
