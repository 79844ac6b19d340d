"""What the sections of an experiment are read with: checks that note faults and go on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pydantic

from karat import plugins
from karat.config.secrets import Secrets
from karat.config.settings import follow
from karat.documents.nodes import Node, fault_at
from karat.errors import BadPlugin, Fault, MissingExtra, UnknownPlugin, did_you_mean

__all__ = ["Reader"]

Model = TypeVar("Model", bound=pydantic.BaseModel)

_NO_SUCH_KEY = "no such key"
_ONE = {"agents": "agent", "scorers": "scorer", "kinds": "kind of dataset"}


@dataclass(slots=True)
class Reader:
    """The experiment as nodes, what its values depend on, and what was found wrong so far."""

    root: Node
    folder: Path
    env: Mapping[str, str]
    secrets: Secrets
    lenient: bool = False  # a k-eval file: unknown keys are warnings
    faults: list[Fault] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def fault(self, place: str, message: str) -> None:
        """Notes a fault, with its line; not about a value whose variable is unset, which is said already."""
        node, rest = follow(self.root, place)
        if node.unset and not rest and not message.startswith(_NO_SUCH_KEY):
            return
        if not rest and isinstance(node.value, bool) and node.written not in (None, "true", "false"):
            message = f"{message} (YAML reads {node.written} as {str(node.value).lower()})"
        self.faults.append(fault_at(place, node if node is not self.root else Node(None), message))

    def warn(self, place: str, message: str) -> None:
        """Notes a warning, with its line."""
        node, _ = follow(self.root, place)
        line = node.line if node is not self.root else None
        self.warnings.append(str(Fault(place=place, message=message, line=line)))

    def mapping(self, place: str, *, example: str) -> dict[str, Node]:
        """The mapping at `place`; an empty one where there is none, and a fault where there is something else."""
        node, rest = follow(self.root, place)
        if rest or node.value is None:
            return {}
        if isinstance(node.value, dict):
            return node.value
        got = "a list" if isinstance(node.value, list) else plugins.shown(node.value)
        self.fault(place, f"must be a mapping, got {got}; write e.g. `{example}`")
        return {}

    def required(self, place: str, *, example: str) -> bool:
        """Whether a key of the file is there and holds something; a fault where it does not."""
        node = self.root.get(place)
        if node is not None and node.value not in (None, {}, []):
            return True
        # A misspelt key is one fault, not two.
        misspelt = did_you_mean(place, set(self.root.value) - {place}, listing=False)
        if node is not None or not misspelt:
            what = "is required" if node is None else "is empty"
            self.fault(place, f"{what}; write e.g. `{example}`")
        return False

    def known_keys(self, place: str, found: Iterable[str], known: Iterable[str]) -> list[str]:
        """The keys of `found` that are known; the others are faults (in a k-eval file: warnings)."""
        allowed = list(known)
        good = []
        for key in found:
            if key in allowed:
                good.append(key)
                continue
            where = f"{place}.{key}" if place else key
            home = _HOMES.get(key, place)
            hint = f" here; it belongs under '{home}'" if home != place else did_you_mean(key, allowed)
            if self.lenient:
                self.warn(where, f"{_NO_SUCH_KEY}{hint}; it is ignored")
            else:
                self.fault(where, f"{_NO_SUCH_KEY}{hint}")
        return good

    def model(self, model: type[Model], values: Mapping[str, Any], place: str) -> Model | None:
        """The values as the model wants them; None, and the faults noted, where they are not."""
        values = self._without_unknown(model, values, place)
        try:
            return model.model_validate(values)
        except pydantic.ValidationError as error:
            for found in plugins.explain(error, values, place=place, model=model):
                self.fault(found.place, found.message)
        return None

    def plugin(self, family: str, name: str, place: str) -> type[Any] | None:
        """The plug-in called `name`; None, and a fault noted, where there is none."""
        try:
            return plugins.find(family, name, folder=self.folder)
        except UnknownPlugin as unknown:
            hint = did_you_mean(name, unknown.known)
            self.fault(place, f"no {_ONE[family]} is called '{name}'{hint}; `karat list {family}` describes them")
        except (BadPlugin, MissingExtra) as error:
            self.fault(place, str(error))
        return None

    def options(self, plugin: type[Any], values: Mapping[str, Any], place: str) -> dict[str, Any] | None:
        """The plug-in's options with defaults filled in; None, and the faults noted, where they are wrong."""
        model = plugins.options_model(plugin)
        if model is not None:
            values = self._without_unknown(model, values, place)
        options, faults = plugins.check_options(plugin, values, place=place)
        for found in faults:
            self.fault(found.place, found.message)
        return None if faults else options

    def shown(self, value: Any, node: Node | None) -> Any:
        """A checked value with secret variables as `${NAME}`, wherever the file's text names one."""
        if node is None:
            return value
        if isinstance(value, Mapping):
            return {key: self.shown(below, node.get(key)) for key, below in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.shown(below, node.get(index)) for index, below in enumerate(value)]
        if self.secrets.variables.intersection(node.variables):
            return self.secrets.shown(node, self.env)
        return value

    def _without_unknown(
        self, model: type[pydantic.BaseModel], values: Mapping[str, Any], place: str
    ) -> dict[str, Any]:
        """Unknown keys become warnings in a k-eval file; elsewhere the model itself refuses them."""
        if not self.lenient or model.model_config.get("extra") != "forbid":
            return dict(values)
        known = {option.alias or name: option.annotation for name, option in model.model_fields.items()}
        kept = {key: values[key] for key in self.known_keys(place, values, known)}
        for key, value in kept.items():
            annotation = known[key]
            if (
                isinstance(value, Mapping)
                and isinstance(annotation, type)
                and issubclass(annotation, pydantic.BaseModel)
            ):
                kept[key] = self._without_unknown(annotation, value, f"{place}.{key}")
        return kept


# Where keys belong that people write one level too high.
_HOMES = {
    "num_repetitions": "execution",
    "repetitions": "execution.num_repetitions",
    "max_concurrent": "execution",
    "retry": "execution",
    "timeout_seconds": "execution",
    "budget": "execution",
    "max_failures": "execution",
    "max_attempts": "execution.retry",
    "question_key": "dataset",
    "answer_key": "dataset",
    "id_key": "dataset",
    "sample_size": "dataset",
    "system_prompt": "conditions.NAME",
    "require_mcp_tool_use": "conditions.NAME",
    "model": "agent",
    "rubric": "judge",
}
