"""What of a user's object is called: itself, or one of the methods that agent libraries have."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from karat.agents._binding import meaning
from karat.errors import BadPlugin, Caught, described

METHODS = (
    *("ainvoke", "invoke"),  # LangChain, LangGraph
    *("arun", "run"),  # pydantic-ai, smolagents, Agno
    "forward",  # DSPy
    *("akickoff", "kickoff"),  # CrewAI
    *("aquery", "query", "achat", "chat"),  # LlamaIndex
)
"""What is called of an object that cannot be called itself: the first one that it has."""

ASKED = (
    "a function, an object that can be called, or one with `session`, `ask` or one of "
    f"{', '.join(f'`{name}`' for name in METHODS)}"
)


_NAMED = 4  # methods in a message


class Entry(NamedTuple):
    """What is called, and with which parameters."""

    function: Callable[..., Any]
    signature: inspect.Signature | None  # None: it cannot be seen
    shown: str  # name and parameters, for messages
    chosen: bool = False  # by karat among the object's methods


def can_be_asked(target: object) -> bool:
    """Whether it is a function or an object of a form that an agent may have."""
    protocols = hasattr(target, "session") or hasattr(target, "ask")
    return callable(target) or protocols or _method(target) is not None


def asks_by_name(agent: object) -> bool:
    """Whether its `ask` names its arguments as a function does, instead of following an agent's
    protocol.
    """
    ask = getattr(agent, "ask", None)
    signature = _signature(ask) if callable(ask) else None
    return signature is not None and any(
        "question" in meaning(name) for name in signature.parameters
    )


def methods_of(target: object) -> str:
    """For a message: which of an object's own methods a target may name instead."""
    kind = type(target)
    if kind.__module__ == "builtins":
        return ""
    own = (name for name in vars(kind) if not name.startswith("_"))
    some = ", ".join([f"`{name}`" for name in own if callable(getattr(kind, name))][:_NAMED])
    return some and f"; or name one of its methods, e.g. module:object.method ({some})"


def entry_of(target: Any) -> Entry:
    """What to call of a target that `can_be_asked`. Raises BadPlugin."""
    name = _method(target)
    if name is not None and (not callable(target) or _is_managed(target)):
        method = getattr(target, name)
        fields = _fields(target, name)
        signature = _signature(method)
        shown = _written(method, _needed(signature))
        if fields is not None:
            return _filled(method, fields, shown=shown)
        return Entry(method, _needed(signature), shown, chosen=True)

    signature = _signature(target)
    forward = getattr(target, "forward", None)
    kinds = []
    if signature is not None:
        kinds = [parameter.kind for parameter in signature.parameters.values()]
    hidden = kinds == [inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD]
    if not hidden or not callable(forward):
        return Entry(target, signature, _written(target, signature))
    # DSPy's and PyTorch's modules are called themselves, with the parameters of `forward`.
    signature = _signature(forward)
    signature = _needed(signature)
    shown = _written(forward, signature)
    if signature is not None and all(
        parameter.kind is parameter.VAR_KEYWORD for parameter in signature.parameters.values()
    ):
        inputs = _inputs(target) or _inputs(getattr(target, "predict", None)) or ["question"]
        signature = _taking(inputs)

    return Entry(target, signature, shown, chosen=True)


def waits(function: Callable[..., object]) -> bool:
    """Whether its result is awaited, so that it has to be called in the event loop."""
    call = getattr(function, "__call__", None)  # noqa: B004 -- only an object's __call__ may be async
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call):
        return True
    returned = getattr(_signature(function), "return_annotation", None)
    return inspect.isclass(returned) and hasattr(returned, "__await__")  # LlamaIndex's handlers


def _method(target: object) -> str | None:
    return next((name for name in METHODS if callable(getattr(target, name, None))), None)


def _is_managed(target: object) -> bool:
    """Whether its call is the form in which another agent asks it, with prompts around the task.

    So is that of smolagents, which names the task and passes everything else on to `run`.
    """
    run = getattr(target, "run", None)
    called = _signature(target) if callable(target) else None
    if called is None or not callable(run) or inspect.isclass(target):
        return False
    kinds = [parameter.kind for parameter in called.parameters.values()]
    named = list(called.parameters)[:1] == ["task"]
    return named and kinds[1:] == [inspect.Parameter.VAR_KEYWORD]


def _signature(function: Callable[..., object]) -> inspect.Signature | None:
    """None for some functions that are written in C."""
    try:
        return inspect.signature(function)
    except (ValueError, TypeError):
        return None


def _inputs(predictor: object) -> Sequence[str]:
    """The fields that the signature of a predictor of DSPy asks for."""
    fields = getattr(getattr(predictor, "signature", None), "input_fields", None)
    if isinstance(fields, Mapping):
        return list(fields)
    return []


_FILLED = {"question", "system_prompt", "messages"}
"""Optional parameters of a library's method that get a value. Others of a usual name (`metadata`,
`message_history`) have a type of the library.
"""


def _needed(signature: inspect.Signature | None) -> inspect.Signature | None:
    """Without the optional parameters that keep their defaults."""
    if signature is None:
        return None
    kept = []
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    for place, parameter in enumerate(signature.parameters.values()):
        wanted = (
            place == 0
            or parameter.default is parameter.empty
            or parameter.kind is parameter.POSITIONAL_ONLY
            or not _FILLED.isdisjoint(meaning(parameter.name))
        )
        if wanted and (place == 0 or parameter.kind not in variable):
            kept.append(parameter)

    return signature.replace(parameters=kept)


def _fields(target: object, name: str) -> Sequence[str] | None:
    """The fields of a mapping that the method takes as its input; None: it takes no mapping.

    LangChain's runnables declare them in a JSON schema, CrewAI's crews as the placeholders of
    their tasks. Raises BadPlugin if the object cannot say.
    """
    invoked = name in ("ainvoke", "invoke")
    named = "get_input_jsonschema" if invoked else "fetch_inputs"
    declare = getattr(target, named, None)
    if not callable(declare) or not (invoked or name in ("akickoff", "kickoff")):
        return None
    declared: Any = None
    with Caught() as caught:
        declared = declare()
    if isinstance(caught.error, KeyboardInterrupt):
        raise caught.error
    state = getattr(getattr(target, "builder", None), "input_schema", None)
    if state is not None:  # a graph of LangGraph: no field of its state has to be given
        fields = _properties(declared) or getattr(state, "__annotations__", {})
        known = [name for name in fields if not _FILLED.isdisjoint(meaning(name))]
        if known:
            return known
        return list(fields)[:1]

    if caught.error is not None:
        raise BadPlugin(
            f"{type(target).__qualname__}.{named}", f"failed: {described(caught.error)}"
        ) from caught.error

    if invoked:
        schema = declared
        if not isinstance(schema, Mapping):
            return None
        schema = _resolved(schema)
        properties = _properties(schema)
        required = schema.get("required") or ()
        if "messages" in properties:
            required = ["messages", *(name for name in required if name != "messages")]
        return required or [name for name in properties if "question" in meaning(name)] or None

    return sorted(declared) or ["question"]


def _properties(schema: object) -> Mapping[str, object]:
    """The properties of a JSON schema; empty if it has none."""
    if not isinstance(schema, Mapping):
        return {}
    properties = _resolved(schema).get("properties")
    if isinstance(properties, Mapping):
        return properties
    return {}


def _resolved(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(schema.get("$ref"), str):
        return schema
    definitions = schema.get("$defs") or {}
    return definitions.get(schema["$ref"].rpartition("/")[2]) or {}


def _filled(method: Callable[..., Any], fields: Sequence[str], *, shown: str) -> Entry:
    """A function with these parameters that passes them on as one mapping."""

    def call(**values: object) -> Any:
        return method(values)

    async def wait(**values: object) -> Any:
        return await method(values)

    function = wait if waits(method) else call
    signature = _taking(fields)
    named = ", ".join(signature.parameters)
    return Entry(function, signature, f"{shown} with {named}", chosen=True)


def _taking(names: Sequence[str]) -> inspect.Signature:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    known = [name for name in names if name.isidentifier()]
    return inspect.Signature([inspect.Parameter(name, kind) for name in known])


def _written(function: Callable[..., object], signature: inspect.Signature | None) -> str:
    """The function's name and parameters, as a message shows them."""
    inner = getattr(function, "func", function)  # functools.partial has no name
    name = getattr(inner, "__qualname__", None) or type(inner).__name__
    if signature is None:
        return str(name)
    parameters = [
        parameter.replace(annotation=parameter.empty) for parameter in signature.parameters.values()
    ]
    return f"{name.rpartition('<locals>.')[2]}{inspect.Signature(parameters)}"
