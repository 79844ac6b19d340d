"""A dataset of the Hugging Face Hub as local files:
`hf://owner/name?split=test&config=…&revision=…&file=…`.

Only data files are downloaded, by the Hub's own client into its own cache; a dataset's code never
runs. The client reads the token from the environment (`HF_TOKEN`), and stays offline with
`HF_HUB_OFFLINE=1`.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path, PurePosixPath
from urllib.parse import parse_qsl

import msgspec

from karat.errors import BadDataset, Fault, MissingExtra, did_you_mean
from karat.formats import some_of

HUB = "hf:"
"""The prefix of a path to a dataset on the Hub."""

_KEYS = ("split", "config", "revision", "file")
_WORDS = r"(?<![^/._-]){}(?![^/._-])"
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})$")
_LISTED = 12
_SECONDS = 10.0  # to wait for the Hub


class HubName(msgspec.Struct, frozen=True, kw_only=True):
    """Which files of which dataset. None: not given."""

    repo: str
    split: str | None = None
    config: str | None = None
    revision: str | None = None  # a branch, a tag or a commit
    file: str | None = None  # the path of one inside, or a pattern with * and ?


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """The files of one split, in their order."""

    commit: str  # hex
    files: tuple[Path, ...]


def shown(path: Path | str) -> str:
    """A path as written: `Path` turns `hf://` into `hf:/`."""
    return re.sub(r"^hf:/+", "hf://", str(path))


def hub_name(path: Path | str) -> HubName | None:
    """What a path names on the Hub; None for a local path. Raises ValueError if it is malformed."""
    text = str(path)
    if not re.match(r"hf:/", text):
        return None
    repo, _, query = re.sub(r"^hf:/+", "", text).partition("?")
    if not re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", repo):
        raise ValueError(f"'{shown(text):.80}' must name a dataset as hf://owner/name?split=test")
    given = dict(parse_qsl(query.replace("+", "%2B"), keep_blank_values=True))
    for key, value in given.items():
        if key not in _KEYS:
            raise ValueError(f"hf:// has no option '{key}'{did_you_mean(key, _KEYS)}")
        if not value:
            raise ValueError(f"'{key}' is empty; leave it out, or give it a value")

    return HubName(repo=repo, **given)


def at_commit(path: Path, commit: str) -> Path:
    """The path with this revision; unchanged if it has one already, or is local."""
    name = hub_name(path)
    if name is None or name.revision:
        return path
    return Path(f"{path}{'&' if '?' in str(path) else '?'}revision={commit}")


def fetch(name: HubName, suffixes: Iterable[str]) -> Fetched:
    """Downloads what is not in the cache yet. Raises BadDataset, MissingExtra.

    `suffixes`: endings of files that can be read.
    """
    try:
        from httpx2 import HTTPError
        from huggingface_hub import HfApi, snapshot_download
        from huggingface_hub.constants import HF_HUB_OFFLINE
        from huggingface_hub.errors import (
            HFValidationError,
            LocalEntryNotFoundError,
            RepositoryNotFoundError,
            RevisionNotFoundError,
        )
        from huggingface_hub.utils.tqdm import disable_progress_bars
    except ImportError as error:
        raise MissingExtra("hf", f"hf://{name.repo}") from error

    disable_progress_bars()
    snapshot = partial(snapshot_download, name.repo, repo_type="dataset", revision=name.revision)
    try:
        if HF_HUB_OFFLINE:
            folder = Path(snapshot(local_files_only=True, allow_patterns=[]))
            listed = []
            for file in folder.rglob("*"):
                if file.is_file():
                    listed.append(str(file.relative_to(folder)))

            chosen = _chosen(name, listed, tuple(suffixes))
        else:
            # never retried
            info = HfApi().dataset_info(name.repo, revision=name.revision, timeout=_SECONDS)
            chosen = _chosen(
                name,
                [file.rfilename for file in info.siblings or ()],
                tuple(suffixes),
            )
            folder = Path(snapshot(allow_patterns=[glob.escape(file) for file in chosen]))
    except RevisionNotFoundError as error:
        raise _bad(name, f"the dataset has no revision '{name.revision}'") from error
    except RepositoryNotFoundError as error:
        raise _bad(
            name,
            "there is no such dataset on the Hub, or reading it needs a token (HF_TOKEN)",
        ) from error
    except LocalEntryNotFoundError as error:
        offline = "is not in the Hub's cache; load it once without HF_HUB_OFFLINE"
        raise _bad(
            name,
            offline if HF_HUB_OFFLINE else f"cannot be fetched: {_first_line(error)}",
        ) from error
    except (HTTPError, OSError, HFValidationError) as error:
        raise _bad(name, f"cannot be fetched: {_first_line(error)}") from error

    files = tuple(folder / file for file in chosen)
    missing = []
    for file in files:
        if not file.is_file():
            missing.append(file.name)

    if missing:
        raise _bad(
            name,
            (
                f"the Hub's cache lacks {missing[0]}; load the dataset once while the Hub can be "
                f"reached"
            ),
        )

    return Fetched(commit=folder.name, files=files)


def _bad(name: HubName, message: str) -> BadDataset:
    return BadDataset(f"hf://{name.repo}", [Fault(place="dataset.path", message=message)])


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]


def _chosen(name: HubName, listed: Iterable[str], suffixes: tuple[str, ...]) -> list[str]:
    """The files of the selected split, its shards in order.

    Raises BadDataset if it is not exactly one.
    """
    # the names are untrusted
    listed = [file for file in listed if not {"..", "/"} & set(PurePosixPath(file).parts)]
    readable = sorted(
        file for file in listed if file.lower().endswith(suffixes) and not file.startswith(".")
    )
    if name.file is not None:
        matching = []
        for file in readable:
            if fnmatchcase(file, name.file):
                matching.append(file)
    else:
        words = []
        for word in (name.config, name.split):
            if word is not None:
                words.append(re.compile(_WORDS.format(re.escape(word))))

        matching = []
        for file in readable:
            if all(word.search(file) for word in words):
                matching.append(file)

    groups: dict[str, list[str]] = {}
    for file in matching:
        path = PurePosixPath(file)
        groups.setdefault(
            str(path.with_name(f"{_SHARD.sub('', path.stem)}{path.suffix}")),
            [],
        ).append(file)

    exact = []
    for group in groups:
        if PurePosixPath(group).name.partition(".")[0] == name.split:
            exact.append(group)

    groups = {group: groups[group] for group in exact} or groups
    if len(groups) != 1:
        shown = some_of([*(groups or readable)], most=_LISTED)
        if groups:
            problem = "several files match"
        elif readable:
            problem = "no file matches"
        else:
            problem = "it has no data file"

        how = "say which with split=, config= or file=" if groups else "name one with file="
        raise _bad(
            name,
            f"{problem}: {shown}; {how}" if readable else f"{problem} that karat reads",
        )

    (shards,) = groups.values()
    numbered = []
    for file in shards:
        if match := _SHARD.search(PurePosixPath(file).stem):
            numbered.append(match)

    if numbered and (len(numbered) != int(numbered[0][2]) or len(numbered) != len(shards)):
        raise _bad(
            name,
            (
                f"only {len(numbered)} of {int(numbered[0][2])} parts exist: "
                f"{some_of(shards, most=_LISTED)}"
            ),
        )

    return shards
