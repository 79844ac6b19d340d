"""The files that `karat init` writes: an example of a kind, or another tool's configuration.

The examples are one folder per kind, copied with everything in it.

The ending `.in` of a file is dropped, so that the examples' Python files are not modules of karat.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import msgspec

from karat import kinds
from karat.config.schema import schema_of, schema_text
from karat.errors import BadOption, did_you_mean
from karat.formats import OUTPUT_FORMAT, clean


class Scaffolded(msgspec.Struct, frozen=True, kw_only=True):
    """`karat init --json`."""

    format: int = OUTPUT_FORMAT
    kind: str
    folder: str
    files: tuple[str, ...]  # paths, as written
    source: str | None = None  # the other tool's configuration; None: an example of karat's
    tool: str | None = None  # whose it is
    taken: tuple[str, ...] = ()  # what was taken of it, in sentences
    left_out: tuple[str, ...] = ()  # what was not, and why


def scaffold(kind: str, folder: Path) -> Scaffolded:
    """Writes a kind's example. Raises BadOption if there is none, or if a file is in the way."""
    folders = {
        name: files(plugin.__module__) / "scaffold" for name, plugin in kinds.installed().items()
    }
    known = [name for name, example in folders.items() if example.is_dir()]
    if kind not in known:
        raise BadOption("KIND", f"unknown kind '{kind}'{did_you_mean(kind, known)}")
    source = folders[kind]
    texts = {folder / path.removesuffix(".in"): data for path, data in _files(source)}
    schemas = {"experiment.yaml": "experiment"}
    if hasattr(kinds.installed()[kind], "file_model"):
        schemas[f"{kind}.yaml"] = kind

    for example, schema_name in [(path, schemas.get(path.name)) for path in sorted(texts)]:
        if schema_name is not None:
            schema = folder / ".karat" / f"{schema_name}.schema.json"
            place = os.path.relpath(schema, example.parent).replace(os.sep, "/")
            texts[example] = f"# yaml-language-server: $schema={place}\n".encode() + texts[example]
            texts[schema] = schema_text(schema_of(schema_name)).encode()

    return Scaffolded(kind=kind, folder=str(folder), files=_written(texts, folder))


def scaffold_from(path: Path, folder: Path | None) -> Scaffolded:
    """Writes the experiment in another tool's configuration, by default into a folder with the
    tool's name.

    Raises BadOption if no reader knows the configuration or a file is in the way, and what the
    reader raises.
    """
    import yaml

    from karat import setups

    tool = setups.tool_of(path)
    folder = folder or Path(tool.name)
    found = tool.reader.read(path, folder)
    schema = ".karat/experiment.schema.json"
    notes = [f"Written by `karat init --from {path.name}`."]
    if found.left_out:
        notes += ["Not taken:", *(f"* {sentence}" for sentence in found.left_out)]
    comments = "".join(f"# {clean(line)}\n" for line in notes)
    dumper = type("Dumper", (yaml.SafeDumper,), {"ignore_aliases": lambda *_: True})
    body = yaml.dump(
        found.experiment, Dumper=dumper, sort_keys=False, allow_unicode=True, width=100
    )
    rows = b"".join(msgspec.json.encode(row) + b"\n" for row in found.rows)
    texts = {
        folder / "experiment.yaml": (
            f"# yaml-language-server: $schema={schema}\n{comments}\n{body}"
        ).encode(),
        folder / "questions.jsonl": rows,
        folder / schema: schema_text(schema_of("experiment")).encode(),
        **{folder / name: data for name, data in found.files.items()},
    }
    return Scaffolded(
        kind="golden",
        folder=str(folder),
        files=_written(texts, folder),
        source=str(path),
        tool=tool.name,
        taken=found.taken,
        left_out=found.left_out,
    )


def _written(texts: Mapping[Path, bytes], folder: Path) -> tuple[str, ...]:
    """The paths of the new files. Raises BadOption if one is in the way; then none is written."""
    there = sorted(
        path.relative_to(folder).as_posix() for path in texts if path.exists() or path.is_symlink()
    )
    if there:
        raise BadOption(
            "DIR",
            f"{folder} already holds {', '.join(there)}; name another folder (nothing was written)",
        )

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, data in sorted(texts.items()):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                file.write(data)
    except OSError as error:
        raise BadOption(
            "DIR", f"cannot write {error.filename or folder}: {error.strerror}"
        ) from error

    return tuple(str(path) for path in sorted(texts))


def _files(folder: Traversable, below: str = "") -> Iterator[tuple[str, bytes]]:
    """Every file of an example, by its path."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry, f"{below}{entry.name}/")
        else:
            yield f"{below}{entry.name}", entry.read_bytes()
