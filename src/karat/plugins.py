"""A name, or "module:Class", becomes a plug-in: one file per plug-in, no table to edit.

A family is a folder of modules, such as `agents`, in karat or in a package beside it
(`karat_coding`). Each module whose name does not begin with an underscore holds one
plug-in with that name: the one public class in its `__all__`, with an inner `Options`
model (pydantic) that defines everything the experiment file may set. Third parties
register theirs as an entry point in the group `karat.agents`, or the file names
`module:Class`.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import blake2b
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from karat.errors import (
    BadOption,
    BadPlugin,
    Caught,
    Fault,
    KaratError,
    UnknownPlugin,
    described,
    did_you_mean,
)
from karat.garbage import freeze_own_objects
from karat.installation import plugin_modules
from karat.records import JsonObject

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from pydantic import BaseModel


Plugin: TypeAlias = type[Any]
"""A plug-in's class: what it has is said by the protocol of its family."""


class Description(msgspec.Struct, frozen=True, kw_only=True):
    """A plug-in as shown by `karat list`."""

    family: str
    name: str  # the class's `listed_as`, else the file's name
    summary: str  # first line of the class's docstring
    options: JsonObject  # JSON schema
    source: str  # "built in", or the distribution that brings it


_ALIASES = {"agents": {"claude_code_sdk": "claude", "search-baseline": "floor"}}
"""Family → another name (k-eval's; the one in lists) → the name of the file, which is what runs
record.
"""


def file_name(family: str, name: str) -> str:
    """The name under which a plug-in is found and recorded, for any name that a user may give."""
    return _ALIASES.get(family, {}).get(name, name)


def names(family: str) -> list[str]:
    """The built-in plug-ins of a family, by their file names."""
    return list(plugin_modules(family))


def find(
    family: str,
    name: str,
    *,
    folder: Path | None = None,
    allow_code: bool = True,
) -> Plugin:
    """The class called `name`.

    Built-in files first; then, for "module:Class", the module found from `folder`
    (appended last to `sys.path`, so that it cannot shadow a library); entry points
    last, because looking them up takes 40 ms.

    Raises UnknownPlugin and BadPlugin. With `allow_code=False` "module:Class" is refused:
    reading a run folder must not run code that the folder names.
    """
    if ":" in name:
        if not allow_code:
            raise BadPlugin(name, "this command does not import code that a run folder names")
        return _as_class(load(name, folder=folder), name)

    built_in = plugin_modules(family).get(name.replace("-", "_"))
    if built_in is not None:
        module = importlib.import_module(built_in)
        public = (getattr(module, name) for name in getattr(module, "__all__", []))
        classes: list[Plugin] = list(filter(inspect.isclass, public))
        if len(classes) != 1:
            raise BadPlugin(
                built_in, f"must name exactly one class in __all__, it names {len(classes)}"
            )

        return classes[0]

    for point in _entry_points(family):
        if point.name == name:
            try:
                plugin = point.load()
            except ImportError as error:
                raise BadPlugin(
                    name, f"entry point {point.value} cannot be imported: {error}"
                ) from error

            return _as_class(plugin, name)

    known = {*names(family), *(point.name for point in _entry_points(family))}
    if family == "importers":  # format names have hyphens
        known = {key.replace("_", "-") for key in known}
    raise UnknownPlugin(family, name, known)


def require_part(family: str, name: str, *, package: str, needed_by: str) -> None:
    """Raises BadOption for `needed_by` if a part that `package` (say, `servers`) brings is gone.

    Imports nothing.
    """
    if name not in names(family):
        raise BadOption(
            needed_by, f"needs the package karat_{package}, which this copy of karat does not have"
        )


def part(family: str, name: str, *, package: str, needed_by: str) -> Plugin:
    """The class of a part of the core that a package beside it brings. Raises BadOption."""
    require_part(family, name, package=package, needed_by=needed_by)
    return find(family, name)


def options_model(plugin: Plugin) -> type[BaseModel] | None:
    """The plug-in's options; None where it takes none."""
    model: type[BaseModel] | None = getattr(plugin, "Options", None)
    return model


def check_options(
    plugin: Plugin, options: Mapping[str, object], *, place: str
) -> tuple[JsonObject, list[Fault]]:
    """Options with defaults filled in, and every fault in them."""
    model = options_model(plugin)
    if model is None:
        unknown = [
            Fault(place=f"{place}.{key}", message=f"{plugin.__name__} takes no options")
            for key in options
        ]
        return {}, unknown

    from pydantic import ValidationError

    from karat.documents import nodes, validation

    try:
        return model.model_validate(dict(options)).model_dump(mode="python"), []
    except ValidationError as error:
        problems = validation.explain(error, options, model)
        return {}, [
            Fault(place=nodes.dotted((place, *problem.place)), message=problem.message)
            for problem in problems
        ]


def build(plugin: Plugin, options: Mapping[str, object], **setting: object) -> Any:
    """An instance.

    The constructor gets the arguments it declares: `options`, and any of `setting`'s keywords.
    """
    model = options_model(plugin)
    offered = dict(setting)
    if model is not None:
        offered["options"] = model.model_validate(dict(options))
    try:
        parameters = inspect.signature(plugin).parameters
    except ValueError as error:  # a class that is written in C
        raise BadPlugin(
            plugin.__name__, "its constructor's parameters cannot be seen; wrap it in a function"
        ) from error

    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    if takes_all:
        taken = offered
    else:
        taken = {key: value for key, value in offered.items() if key in parameters}

    missing = []
    for parameter in parameters.values():
        if (
            parameter.default is parameter.empty
            and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
            and parameter.name not in taken
        ):
            missing.append(parameter.name)

    if missing:
        wanted = ", ".join(missing)
        raise BadPlugin(
            plugin.__name__,
            f"its constructor asks for {wanted}; it may ask for {', '.join(sorted(offered))}",
        )

    with Caught() as caught:
        built = plugin(**taken)

    if caught.error is None:
        return built
    if isinstance(caught.error, (KaratError, KeyboardInterrupt)):
        raise caught.error
    raise BadPlugin(
        plugin.__name__, f"its constructor failed: {described(caught.error)}"
    ) from caught.error


def aliases(family: str) -> dict[str, str]:
    """Another name that files may use → the name of the plug-in."""
    return _ALIASES.get(family, {})


def installed(family: str) -> Iterator[tuple[str, Plugin]]:
    """Every plug-in of the family that can be loaded, by the name that the experiment file uses."""
    for name in names(family):
        yield name, find(family, name)

    for point in _entry_points(family):
        with contextlib.suppress(ImportError, BadPlugin):
            yield point.name, _as_class(point.load(), point.name)


def describe(family: str) -> list[Description]:
    """Every plug-in of the family that is installed, built-in ones first."""
    descriptions = [
        _description(family, name, find(family, name), "built in") for name in names(family)
    ]
    descriptions.sort(key=lambda description: description.name)
    for point in _entry_points(family):
        source = point.dist.name if point.dist else "entry point"
        try:
            plugin = _as_class(point.load(), point.name)
        except (ImportError, BadPlugin) as error:
            broken = Description(
                family=family,
                name=point.name,
                summary=f"cannot be loaded: {error}",
                options={},
                source=source,
            )
            descriptions.append(broken)
            continue

        descriptions.append(_description(family, point.name, plugin, source))

    return descriptions


def _description(family: str, name: str, plugin: Plugin, source: str) -> Description:
    model = options_model(plugin)
    first_paragraph = (inspect.getdoc(plugin) or "").partition("\n\n")[0]
    summary = " ".join(first_paragraph.split())
    if model is not None:
        schema = model.model_json_schema()
    else:
        schema = {}

    name = getattr(plugin, "listed_as", name)
    return Description(family=family, name=name, summary=summary, options=schema, source=source)


@cache
def _entry_points(family: str) -> list[EntryPoint]:
    points = list(_all_entry_points().select(group=f"karat.{family}"))
    if points:
        freeze_own_objects()
    return points


@cache
def _all_entry_points() -> Any:  # EntryPoints; a wrapper of it before Python 3.12
    from importlib.metadata import entry_points

    return entry_points()  # reads a file of every distribution


def load(name: str, *, folder: Path | None = None) -> Any:
    """What "module:name" or "file.py:name" points at; `name` may have dots. Raises BadPlugin.

    A module is found from `folder` last, a file from `folder` alone. Anything the module raises
    during import is reported as the module's fault.
    """
    source, _, attribute = name.rpartition(":")
    is_file = _is_file(source)
    freeze_own_objects()
    with Caught() as caught:
        if is_file:
            # The module that a file holds; by its usual name where an import would find this
            # very file
            path = Path(folder or Path(), source).resolve()
            if not path.is_file():
                near = did_you_mean(path.name, [other.name for other in path.parent.glob("*.py")])
                raise BadPlugin(str(path), f"there is no such file{near}")

            _findable(path.parent)
            spec = None
            if path.stem.isidentifier():
                # ValueError: a module without a spec, such as __main__
                with contextlib.suppress(ImportError, ValueError):
                    spec = importlib.util.find_spec(path.stem)

            if spec is not None and spec.origin is not None and Path(spec.origin) == path:
                found = importlib.import_module(path.stem)
            else:
                found = _private(path, path.stem)
        else:
            found = _module(source, folder)

    if isinstance(caught.error, (KeyboardInterrupt, BadPlugin)):
        raise caught.error
    what = f"{'file' if is_file else 'module'} '{source}'"
    if caught.error is not None:
        raise BadPlugin(
            name, f"{what} cannot be imported: {_why(caught.error, source)}"
        ) from caught.error

    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError as error:
            hint = did_you_mean(part, [key for key in dir(found) if not key.startswith("_")])
            raise BadPlugin(name, f"{what} has no '{attribute}'{hint}") from error

    return found


def _is_file(source: str) -> bool:
    return source.endswith(".py") or "/" in source or "\\" in source


def _why(error: BaseException, source: str) -> str:
    """Why an import failed, and what may fix it."""
    if isinstance(error, SystemExit):
        return (
            f"it calls sys.exit({'' if error.code is None else repr(error.code)}) as it is "
            f"imported; put that below `if __name__ == '__main__':`"
        )

    if type(error) not in (ImportError, ModuleNotFoundError):
        return described(error)
    why = f"{error} (in {sys.executable})"
    missing = getattr(error, "name", None)
    if not isinstance(error, ModuleNotFoundError) or missing is None:
        return why
    if missing == source.partition(".")[0] and not _is_file(source):
        return f"{why}; a file is named as '{missing}.py:name', from the experiment's folder"
    return (
        f"{why}; if it is installed elsewhere, install karat there too and start it with that "
        f"interpreter, or use `type: command`"
    )


_folders: list[str] = []  # that were appended to sys.path: modules of experiments, not libraries


def _findable(folder: Path) -> str:
    """The resolved folder, from which modules can now be imported, after all others."""
    home = str(folder.resolve())
    if home not in _folders:
        _folders.append(home)
        sys.path.append(home)

    return home


def _module(name: str, folder: Path | None) -> ModuleType:
    if folder is None:
        return importlib.import_module(name)
    home = _findable(folder)
    module = importlib.import_module(name)
    file = getattr(module, "__file__", None)
    elsewhere = [other for other in _folders if other != home]
    if file is None or not any(Path(file).is_relative_to(other) for other in elsewhere):
        return module
    # Two experiments in one process may each have an `agent.py`: each gets its own.
    own = folder.resolve().joinpath(*name.split(".")).with_suffix(".py")
    if Path(file).is_relative_to(home) or not own.is_file():
        return module
    return _private(own, name)


def _private(file: Path, name: str) -> ModuleType:
    """The file's module under a name of its own."""
    home = blake2b(str(file.parent).encode(), digest_size=6).hexdigest()
    private = f"_karat_{home}_{name.replace('.', '_')}"
    if private in sys.modules:
        return sys.modules[private]
    spec = importlib.util.spec_from_file_location(private, file)
    if spec is None or spec.loader is None:
        raise BadPlugin(str(file), "is no Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[private] = module
    whole = False
    try:
        spec.loader.exec_module(module)
        whole = True
    finally:
        if not whole:  # the next attempt must not find half a module
            del sys.modules[private]

    return module


def _as_class(plugin: object, name: str) -> Plugin:
    if not inspect.isclass(plugin):
        raise BadPlugin(name, f"must be a class, is a {type(plugin).__name__}")
    return plugin
