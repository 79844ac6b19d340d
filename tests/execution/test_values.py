"""What passes between the parts of a run cannot be changed under way."""

from __future__ import annotations

import importlib
import pkgutil

import msgspec

from karat import execution

# Counts and states, which are there to change.
CHANGING = {"Attempt", "ConditionProgress", "Spending", "JournalState", "Sessions", "_Call", "_Costs", "_Keyed"}


def test_values_are_frozen_and_their_fields_are_named() -> None:
    for module in pkgutil.iter_modules(execution.__path__, f"{execution.__name__}."):
        for name, value in vars(importlib.import_module(module.name)).items():
            own = isinstance(value, type) and issubclass(value, msgspec.Struct) and value.__module__ == module.name
            if own and name not in CHANGING:
                assert value.__struct_config__.frozen, name
                assert name in {"Job", "Shard", "_Detail"} or not value.__match_args__, name
