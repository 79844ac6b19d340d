"""The experiment file as pydantic models: keys, types, ranges, defaults, and how sections refer to
each other.

The keys of an agent, a dataset kind or a scorer are defined by their `Options`. What a value is
checked against (the folder, other sections) is in the `Reading` passed as validation context.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from itertools import combinations
from typing import Annotated, ClassVar, Literal, Self, cast
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PlainValidator,
    Strict,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticKnownError

from karat.config.context import (
    CONTEXT_KEYS,
    Folder,
    InstructionsFile,
    SkillFolder,
    is_taken,
    names_differ,
)
from karat.config.environment import is_variable
from karat.config.prompts import PromptText, presets, prompt_problems, read_prompt
from karat.config.reading import (
    DatasetPart,
    Plugged,
    read_agent,
    read_dataset,
    read_judge,
    read_scorer,
    read_variant,
    reading_of,
)
from karat.documents.validation import Problem, refusal, shown, validated
from karat.errors import BadOption, did_you_mean
from karat.kinds import completed
from karat.mcp.elicitation import answers_from
from karat.models import parse_model, with_provider
from karat.records import MOST_CONDITIONS, MOST_REPETITIONS, Elicit, ProtocolVersion


def _no_bool(value: object) -> object:
    # `num_repetitions: yes` is True in YAML, and True equals 1 in Python.
    if isinstance(value, bool):
        raise ValueError(f"must be a number, got {str(value).lower()}")
    return value


def _words(command: object) -> object:
    if isinstance(command, str):
        return shlex.split(command)
    return command


AsWords = BeforeValidator(_words)
"""For a program and its arguments: one text is split as a shell would."""


def _share_or_count(value: float) -> float:
    if value > 1 and value != int(value):
        raise ValueError(f"must be a share below 1 or a whole number, got {value:g}")
    return value


def _web_address(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False

    if not usable:
        raise ValueError("must be an address such as http://localhost:8080/mcp")
    return url


JsonDict = dict[str, JsonValue]
Strictly = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
Text = Annotated[str, Strict()]
Name = Annotated[str, Strict(), Field(min_length=1)]
ModelName = Annotated[Name, AfterValidator(with_provider)]
Count = Annotated[int, BeforeValidator(_no_bool)]
Number = Annotated[float, BeforeValidator(_no_bool)]
Seconds = Annotated[float, BeforeValidator(_no_bool), Field(gt=0, le=604_800)]
ShareOrCount = Annotated[float, BeforeValidator(_no_bool), AfterValidator(_share_or_count)]
_SHARE_OR_COUNT: JsonDict = {
    "not": {"type": "number", "exclusiveMinimum": 1, "not": {"multipleOf": 1}}
}
Address = Annotated[
    str,
    Strict(),
    AfterValidator(_web_address),
    WithJsonSchema({"type": "string", "pattern": r"^[Hh][Tt][Tt][Pp][Ss]?://[^/?#]|\$\{"}),
]
VariableName = Annotated[
    Name, WithJsonSchema({"type": "string", "pattern": r"^[A-Za-z_][A-Za-z0-9_]*$|\$\{"})
]


class Section(BaseModel):
    """A mapping of the file. A key without a value counts as absent."""

    model_config = Strictly

    elsewhere: ClassVar[Mapping[str, str]] = {}  # misplaced key → its message

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, values: object) -> object:
        if not isinstance(values, Mapping):
            return values
        found = {}
        for key, value in values.items():
            if value is not None or key not in cls.model_fields:
                found[key] = value

        return found


class Retry(Section):
    """When a failed attempt is retried.

    Waits are drawn from 0 to initial × multiplier^k (full jitter).
    """

    max_attempts: Count = Field(default=3, ge=1, le=100)  # including the first
    # the maximum of the first wait
    initial_backoff_seconds: Number = Field(default=1.0, ge=0, le=86_400)
    backoff_multiplier: Number = Field(default=2.0, ge=1, le=100)  # factor for each further wait
    max_backoff_seconds: Number = Field(default=60.0, ge=0, le=86_400)  # the maximum of all waits
    timeouts: bool = False  # whether an attempt that timed out is retried


class PriceModel(Section):
    """The price of a model, in dollars per million tokens; overrides the price table."""

    input: Number = Field(ge=0, description="dollars per million input tokens")
    output: Number = Field(ge=0, description="dollars per million output tokens")
    cache_read: Number | None = Field(default=None, ge=0)  # null: as input
    cache_write: Number | None = Field(default=None, ge=0)  # null: as input


class RateModel(Section):
    """How often a model may be asked, over all agents and judges."""

    requests_per_minute: Number | None = Field(default=None, gt=0)  # null: not limited
    # of input and output together; null: not limited
    tokens_per_minute: Number | None = Field(default=None, gt=0)


class Budget(Section):
    """What may be spent, including the judge and failed attempts. None: no limit."""

    usd: Number | None = Field(default=None, gt=0)  # dollars; null: no limit
    tokens: Count | None = Field(default=None, gt=0)  # input and output; null: no limit


class Stop(Section):
    """When to stop early: once it is decided how two conditions differ.

    The questions are asked in random order.
    """

    metric: Name = Field(
        description="a metric with a range, of one of the scorers; SCORER.METRIC where two have it"
    )
    # also stop if the difference is surely smaller; null: do not
    margin: Number | None = Field(default=None, gt=0)
    # how often equal conditions may be called different
    alpha: Number = Field(default=0.05, gt=0, lt=0.5)
    # also stop, undecided, if the other questions would hardly show a difference
    futility: bool = False
    seed: Count = Field(default=0, ge=0)  # of the order of the questions


def _cluster_address(address: str) -> str:
    if "://" in address:
        raise ValueError(
            "must be HOST:PORT or `auto`: start karat on a node of the cluster, not through "
            "Ray's client"
        )

    return address


class RayModel(Section):
    """The workers of `executor: ray`: how many, and the needs of each.

    `max_concurrent` is their total.
    """

    address: Annotated[Name, AfterValidator(_cluster_address)] | None = (
        # of a running cluster, HOST:PORT or auto; null: one is started on this machine, for this
        # run
        None
    )
    # null: as many as the cluster has room for
    num_workers: Count | None = Field(default=None, ge=1, le=10_000)
    num_cpus: Number = Field(default=1.0, ge=0)  # of each worker
    num_gpus: Number = Field(default=0.0, ge=0)  # of each worker
    resources: dict[Name, Number] = {}  # of each worker: custom resources of the cluster
    # the maximum number of trials waiting at a worker
    batch_size: Count = Field(default=50, ge=0, le=10_000)
    start_timeout_seconds: Seconds = 300.0  # when to report that a worker has not started


class Execution(Section):
    """How many answers, how many at once, and the limits of the run."""

    # how often each question is asked, per condition
    num_repetitions: Count = Field(default=3, ge=1, le=MOST_REPETITIONS)
    max_concurrent: Count = Field(default=5, ge=1, le=10_000)  # attempts of the agent at a time
    retry: Retry = Retry()
    timeout_seconds: Seconds = 600.0  # of one attempt of the agent, including its servers
    judge_timeout_seconds: Seconds = 120.0  # of one attempt of a scorer
    budget: Budget = Budget()
    max_failures: ShareOrCount = Field(
        default=0.2, ge=0, json_schema_extra=_SHARE_OR_COUNT
    )  # below 1: a share of the planned trials; else a count
    stop: Stop | None = None  # null: every question is asked
    # your group may read the run folder, as far as your umask allows; else only you
    shared: bool = False
    # files and folders, e.g. .venv or *.log, whose changes are not kept
    workspace_ignore: list[Name] = []
    # keep every workspace as its trial left it, besides the archive of its changes
    keep_workspaces: bool = False
    # where trials run: in this process, or on the nodes of a Ray cluster
    executor: Literal["local", "ray"] = "local"
    ray: RayModel = RayModel()

    def most_failures(self, planned: int) -> float:
        """The number of failed trials that stops a run of `planned` ones; at least one may fail.

        >>> Execution().most_failures(40), Execution(max_failures=0).most_failures(40)
        (8.0, 1.0)
        """
        return max(1.0, self.max_failures * planned if self.max_failures < 1 else self.max_failures)

    @property
    def failures_by_share(self) -> bool:
        """Whether `max_failures` is a share, which a few trials do not determine."""
        return 0 < self.max_failures < 1

    def stops_after(self, planned: int) -> int:
        """The failed trials after which a run of `planned` ones stops.

        >>> Execution().stops_after(3), Execution().stops_after(40)
        (5, 8)
        """
        most = math.ceil(self.most_failures(planned))
        if planned >= SHARE_FROM_TRIALS or not self.failures_by_share:
            return most
        return max(most, SHARE_FROM_FAILURES)


SHARE_FROM_FAILURES = 5
SHARE_FROM_TRIALS = 20
"""A share of failures stops a run from so many failures, or so many trials that have ended, on."""


class _Server(Section):
    scope: Literal["trial", "run"] = "trial"  # a session for each trial, or one that all share
    init_timeout_seconds: Seconds = 60.0  # of start and handshake
    call_timeout_seconds: Seconds = 120.0  # of one tool call
    # version of MCP; auto: the newest that both support
    protocol: Literal["auto"] | ProtocolVersion = "auto"


class StdioServer(_Server):
    """A program that speaks MCP on its standard input and output."""

    elsewhere: ClassVar[Mapping[str, str]] = {
        "url": "a server of type stdio takes no `url`; it is started by its `command`; "
        "to reach an address write `type: http`",
        "headers": "a server of type stdio takes no `headers`; it is a program; write `env`",
        "auth": "a server of type stdio takes no `auth`; it is a program; write `env`",
    }

    type: Literal["stdio"] = "stdio"  # may be left out if there is a `command`
    command: Name = Field(description="the program to start, e.g. python")
    args: list[Text] = []  # its arguments; relative paths start at `cwd`
    env: dict[str, Text] = {}  # its variables, in addition to PATH, HOME and LANG
    cwd: Name | None = None  # the folder it runs in; null: the experiment's


class ServerAuthModel(Section):
    """How to get a token for a server (OAuth)."""

    type: Literal["client_credentials", "private_key_jwt", "login"] = Field(
        description=(
            "client_credentials: with a secret; private_key_jwt: with a key; login: `karat check "
            "--login`, once"
        )
    )
    # the authorization server, to which credentials are sent; login: not needed
    issuer: Address | None = None
    client_id: Name | None = None  # login: null registers a client
    client_secret_env: VariableName | None = None  # the variable that holds the client's secret
    private_key_env: VariableName | None = None  # the variable that holds the key, as PEM
    algorithm: Literal["RS256", "ES256"] = "RS256"  # private_key_jwt: the algorithm of the key
    token_endpoint_auth_method: Literal["client_secret_basic", "client_secret_post"] | None = (
        None  # how the secret is sent; null: as the authorization server's metadata say
    )
    scopes: list[Name] = []  # the only scopes to request; none: those the server names

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        needed = {
            "client_credentials": ("issuer", "client_id", "client_secret_env"),
            "private_key_jwt": ("issuer", "client_id", "private_key_env"),
            "login": (),
        }[self.type]
        taken = {
            *needed,
            *(("issuer", "client_id", "client_secret_env") if self.type == "login" else ()),
        }
        if "client_secret_env" in taken:
            taken.add("token_endpoint_auth_method")
        keys = (
            "issuer",
            "client_id",
            "client_secret_env",
            "private_key_env",
            "token_endpoint_auth_method",
        )
        if missing := [key for key in needed if getattr(self, key) is None]:
            raise ValueError(
                f"`type: {self.type}` needs {' and '.join(f'`{key}`' for key in missing)}"
            )

        if extra := [key for key in keys if key not in taken and getattr(self, key) is not None]:
            raise ValueError(
                f"`type: {self.type}` takes no {' and no '.join(f'`{key}`' for key in extra)}"
            )

        return self


class RemoteServer(_Server):
    """A server with a URL."""

    elsewhere: ClassVar[Mapping[str, str]] = {
        **{
            key: f"a server of type http or sse takes no `{key}`; it is reached by its `url`; "
            "to start a program write `type: stdio`"
            for key in ("command", "args")
        },
        "env": "a server of type http or sse takes no `env`; karat does not start it; "
        "write `headers`, or set the variable where it is started",
    }

    type: Literal["http", "sse"] = "http"  # http (the default if there is a `url`): streamable HTTP
    url: Address = Field(description="the server's address, e.g. http://localhost:8080/mcp")
    headers: dict[str, Text] = {}  # sent with each request
    auth: ServerAuthModel | None = None  # OAuth: how to get a token; null: none, or in `headers`

    @field_validator("auth")
    @classmethod
    def _auth_fits(
        cls, auth: ServerAuthModel | None, info: ValidationInfo
    ) -> ServerAuthModel | None:
        if auth is not None and info.data.get("type") == "sse":
            raise ValueError("OAuth needs `type: http`; SSE is no longer part of the protocol")
        if auth is not None and any(
            name.lower() == "authorization" for name in info.data.get("headers") or {}
        ):
            raise ValueError("leave out one of `auth` and the header `Authorization`")

        return auth


def _server(value: object) -> StdioServer | RemoteServer:
    values = {} if value is None else value
    if not isinstance(values, Mapping):
        raise PydanticKnownError("dict_type")
    if not values:
        raise ValueError("is empty; a server needs a `command` (stdio) or a `url` (http, sse)")
    kind = values.get("type") or (
        "stdio" if "command" in values else "http" if "url" in values else None
    )
    if kind not in ("stdio", "http", "sse"):
        if isinstance(kind, str):
            got = f", got '{kind}'{did_you_mean(kind, SERVER_TYPES, listing=False)}"
        else:
            got = ""

        raise refusal([Problem(("type",), f"must be stdio, http or sse{got}")])

    if kind == "stdio":
        return validated(StdioServer, {**values, "type": kind})
    return validated(RemoteServer, {**values, "type": kind})


SERVER_TYPES = ("stdio", "http", "sse")


def _not_both(*keys: str) -> JsonDict:
    """Two keys, at most one with a value, in a JSON Schema."""
    return {
        "not": {
            "required": list(keys),
            "properties": {key: {"not": {"type": "null"}} for key in keys},
        }
    }


class McpTraffic(Section):
    """Whether traffic with MCP servers is recorded, or replayed from a recording; only one of the
    two.
    """

    model_config = ConfigDict(json_schema_extra=_not_both("record", "replay"))

    record: Name | None = Field(
        default=None, description="a folder, created if it is missing; null: not recorded"
    )
    replay: Name | None = Field(
        default=None, description="the folder of a recording; no server is started or reached"
    )

    @field_validator("replay")
    @classmethod
    def _is_recorded(cls, replay: str, info: ValidationInfo) -> str:
        if info.data.get("record"):
            raise ValueError("leave out one of `record` and `replay`")
        folder = reading_of(info).folder / replay
        if not folder.is_dir():
            remedy = "`karat run FILE --set mcp.record=FOLDER` makes one (and leave out `replay`)"
            raise ValueError(f"there is no folder '{folder}'; {remedy}")

        return replay


def _prompt_of(name: object, info: ValidationInfo) -> PromptText:
    if not isinstance(name, str):
        raise PydanticKnownError("string_type")
    return read_prompt(reading_of(info).folder, name)


PromptName = Annotated[
    PromptText, PlainValidator(_prompt_of), WithJsonSchema({"type": "string", "minLength": 1})
]


class PromptFile(Section):
    """A system prompt in a separate file."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    file: PromptName = Field(
        description="the file, from the experiment's folder; UTF-8, at most 1 MB"
    )


def _known_server(name: str, info: ValidationInfo) -> str:
    reading = reading_of(info)
    servers = reading.names("mcp_servers")
    section = reading.root.get("mcp_servers")
    if name not in servers and not (section and section.unset):
        if name in reading.disabled:
            hint = "; its file switches it off"
        elif servers:
            hint = did_you_mean(name, servers)
        else:
            hint = "; `mcp_servers` names none"

        raise ValueError(f"no server is called '{name}'{hint}")

    return name


def _each_once(names: list[str]) -> list[str]:
    twice = [index for index, name in enumerate(names) if name in names[:index]]
    if twice:
        raise refusal(
            Problem((index,), f"the server '{names[index]}' is listed twice; remove one")
            for index in twice
        )

    return names


def _known_preset(name: object) -> object:
    names = list(presets())
    if name is not None and name not in names:
        if names:
            *most, last = map(repr, names)
        else:
            *most, last = ["null"]

        raise PydanticKnownError(
            "literal_error", {"expected": " or ".join(filter(None, [", ".join(most), last]))}
        )

    return name


def _elicit(value: object) -> Elicit:
    match value:
        case {"column": str(column), **others} if column and not others:
            return Elicit(column=column)

    try:
        return Elicit(answers=answers_from(value))
    except ValueError as error:
        raise ValueError(
            f"{error}; or {{column: NAME}}, a column of the dataset with one of these"
        ) from None


_ELICIT_SCHEMA: JsonDict = {
    "anyOf": [{"type": kind} for kind in ("string", "object", "array", "null")]
}


def _condition_schema(schema: JsonDict) -> None:
    """The schema's rules for combinations of a condition's keys, and k-eval's name for one of
    them.
    """
    prompts = ("preset", "system_prompt", "prompt_file", "system_prompt_file")
    properties = cast(dict[str, JsonDict], schema["properties"])
    properties["mcp_servers"]["uniqueItems"] = True
    properties["preset"]["anyOf"] = [{"enum": [*presets()], "type": "string"}, {"type": "null"}]
    schema["properties"] = {**properties, "system_prompt_file": properties["prompt_file"]}
    gate: JsonDict = {
        "if": {
            "properties": {"require_mcp_tool_use": {"const": True}},
            "required": ["require_mcp_tool_use"],
        },
        "then": {
            "properties": {"mcp_servers": {"type": "array", "minItems": 1}},
            "required": ["mcp_servers"],
        },
    }
    schema["allOf"] = [gate, *(_not_both(*pair) for pair in combinations(prompts, 2))]


class ConditionModel(Section):
    """One condition as in the file."""

    model_config = ConfigDict(json_schema_extra=_condition_schema)

    system_prompt: Text | PromptFile | None = Field(
        default=None,
        description=(
            "null: none; {file: PATH}: that file's text; {{ profile.age }} is the sample's own, "
            "if the kind of dataset has profiles"
        ),
    )
    prompt_file: PromptName | None = None  # the same as `system_prompt: {file: PATH}`
    # studies: one of karat's system prompts
    preset: Annotated[str | None, BeforeValidator(_known_preset)] = None
    mcp_servers: Annotated[
        list[Annotated[Name, AfterValidator(_known_server)]], AfterValidator(_each_once)
    ] = []  # names from `mcp_servers`; the agent sees these and no others
    require_mcp_tool_use: bool = False  # an attempt without a call of an MCP tool fails
    require_mcp_tool_success: bool = False  # an attempt whose MCP calls all failed fails
    elicit: Annotated[Elicit | None, PlainValidator(_elicit), WithJsonSchema(_ELICIT_SCHEMA)] = (
        None  # how servers' questions to the user are answered; null: they cannot ask
    )
    agent: Annotated[
        Plugged | None, PlainValidator(read_variant), WithJsonSchema({"type": "object"})
    ] = None  # options of the agent that differ under this condition
    # folders, each with a SKILL.md
    skills: Annotated[list[SkillFolder], AfterValidator(names_differ)] = []
    # folders of plug-ins, hooks included
    plugins: Annotated[list[Folder], AfterValidator(names_differ)] = []
    instructions: InstructionsFile | None = None  # a file such as CLAUDE.md
    workspace: Folder | None = None  # a folder; each trial starts with a fresh copy of it
    tools: list[Name] = []  # the allowed built-in tools of the agent

    _context_is_taken = field_validator(*CONTEXT_KEYS)(is_taken)

    @model_validator(mode="before")
    @classmethod
    def _keval_name(cls, values: object) -> object:
        if (
            isinstance(values, Mapping)
            and "system_prompt_file" in values
            and "prompt_file" not in values
        ):
            return {
                "prompt_file" if key == "system_prompt_file" else key: value
                for key, value in values.items()
            }

        if values is None:
            return {}
        return values

    @field_validator("system_prompt", "prompt_file", "preset")
    @classmethod
    def _prompt_is_usable(cls, value: object, info: ValidationInfo) -> object:
        key = str(info.field_name)
        for other in ("system_prompt", "prompt_file"):
            if other != key and info.data.get(other) is not None:
                raise ValueError(
                    f"leave out one of `{key}` and `{other}`: each is the system prompt"
                )

        file = value.file if isinstance(value, PromptFile) else value
        if key == "preset" and value is not None:
            preset = str(value)
        else:
            preset = None

        text = (
            presets()[preset].text
            if preset
            else file.text
            if isinstance(file, PromptText)
            else file
        )
        problems, _ = prompt_problems(reading_of(info), str(text or ""), preset)
        if problems:
            raise refusal(Problem((), problem) for problem in problems)
        return value

    @field_validator("require_mcp_tool_use")
    @classmethod
    def _can_be_met(cls, value: bool, info: ValidationInfo) -> bool:
        if value and info.data.get("mcp_servers") == []:
            raise ValueError("no trial can meet this: the condition has no mcp_servers")
        return value

    @property
    def prompt(self) -> str | PromptText | None:
        """The system prompt: text, or from a file."""
        if self.preset is not None:
            return presets()[self.preset].text
        if isinstance(self.system_prompt, PromptFile):
            return self.system_prompt.file
        return self.prompt_file or self.system_prompt


class GateModel(Section):
    """Thresholds that `karat gate` decides; keys are `METRIC` (for each condition) or
    `CONDITION.METRIC`.
    """

    min: dict[Name, Number] = {}  # at least this
    # at most this; also of totals of the run, such as cost_usd (`karat gate --help` names all)
    max: dict[Name, Number] = {}
    # worse than the baseline by at most this
    max_drop: dict[Name, Annotated[Number, Field(ge=0)]] = {}
    baseline: Name | None = None  # a run, or latest:NAME; null: from `karat gate --baseline`


def _as_written(value: object, info: ValidationInfo) -> object:
    """A number as spelled in the file: version 1.10 is not version 1.1."""
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        node = reading_of(info).root.get(str(info.field_name))
        if isinstance(value, str):
            text = value
        else:
            text = (node.written if node is not None else None) or str(value)

        if text.strip():
            return text

    raise ValueError(f"must be text, got {shown(value)}")


def _file_name(name: str) -> str:
    if "/" in name or not name.isprintable():
        raise ValueError("must not contain a '/' or a line break, because files are named after it")
    return name.strip()


def _known_condition(name: str, info: ValidationInfo) -> str:
    names = reading_of(info).names("conditions")
    if names and name not in names:
        raise ValueError(f"no condition is called '{name}'{did_you_mean(name, names)}")
    return name


def _can_be_printed(name: str) -> str:
    if not name.strip() or not name.isprintable():
        raise ValueError("needs a name that can be printed")
    return name


def _variable(name: object) -> object:
    if not isinstance(name, str) or not is_variable(name):
        raise ValueError(
            "must be the name of an environment variable, not its value; write e.g. `secrets: "
            "[MY_PASSWORD]`"
        )

    return name


TextOrNumber = Annotated[
    str, BeforeValidator(_as_written), WithJsonSchema({"type": ["string", "number"]})
]
FileName = Annotated[TextOrNumber, AfterValidator(_file_name)]
Printable = Annotated[
    str, AfterValidator(_can_be_printed), WithJsonSchema({"type": "string", "pattern": r"\S"})
]
Variable = Annotated[VariableName, BeforeValidator(_variable)]


class ExperimentFile(Section):
    """An experiment."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    elsewhere: ClassVar[Mapping[str, str]] = {
        key: f"no such key here; it belongs under '{home}'"
        for home, keys in {
            "execution": (
                "num_repetitions",
                "max_concurrent",
                "retry",
                "timeout_seconds",
                "budget",
                "max_failures",
                "stop",
            ),
            "execution.num_repetitions": ("repetitions",),
            "execution.retry": ("max_attempts",),
            "dataset": ("question_key", "answer_key", "id_key", "sample_size"),
            "conditions.NAME": ("system_prompt", "require_mcp_tool_use"),
            "agent": ("model",),
            "judge": ("rubric",),
        }.items()
        for key in keys
    }

    name: FileName | None = Field(
        default=None, examples=["support-kb"], json_schema_extra={"pattern": "^[^/\\n]*$"}
    )
    version: TextOrNumber = Field(default="1", examples=["1.2"])
    dataset: Annotated[DatasetPart, PlainValidator(read_dataset)] = Field(
        examples=[{"path": "questions.jsonl"}]
    )
    agent: Annotated[Plugged, PlainValidator(read_agent)] = Field(examples=[{"type": "floor"}])
    judge: Annotated[Plugged | None, PlainValidator(read_judge)] = Field(
        default=None, validate_default=True, examples=[{"type": "overlap"}]
    )
    scorers: list[Annotated[Plugged, PlainValidator(read_scorer)]] | None = Field(
        default=None, examples=[["equals", {"regex": {"pattern": "^yes"}}]]
    )
    mcp_servers: dict[Printable, Annotated[StdioServer | RemoteServer, PlainValidator(_server)]] = (
        Field(default={}, examples=[{"docs": {"command": "python", "args": ["server.py"]}}])
    )
    mcp: McpTraffic = Field(default=McpTraffic(), examples=[{"record": "cassettes"}])
    conditions: dict[Printable, ConditionModel] = Field(
        min_length=1,
        max_length=MOST_CONDITIONS,
        examples=[{"baseline": {"system_prompt": "Answer briefly."}}],
    )
    baseline: Annotated[TextOrNumber, AfterValidator(_known_condition)] | None = None
    execution: Execution = Field(default=Execution(), examples=[{"num_repetitions": 3}])
    gate: GateModel = Field(
        default=GateModel(), examples=[{"min": {"completeness": 4.2}, "max": {"cost_usd": 5}}]
    )
    prices: dict[str, PriceModel] = Field(
        default={}, examples=[{"openai:my-model": {"input": 2.5, "output": 10}}]
    )
    limits: dict[str, RateModel] = Field(
        default={}, examples=[{"openai:my-model": {"requests_per_minute": 60}}]
    )
    secrets: list[Variable] = Field(default=[], examples=[["MY_PASSWORD"]])

    @field_validator("conditions")
    @classmethod
    def _can_ask(
        cls, conditions: dict[str, ConditionModel], info: ValidationInfo
    ) -> dict[str, ConditionModel]:
        servers = info.data.get("mcp_servers") or {}
        problems = []
        for name, condition in conditions.items():
            for server in condition.mcp_servers if condition.elicit is not None else ():
                if server in servers and servers[server].scope == "run":
                    problems.append(
                        Problem(
                            (name, "elicit"),
                            f"'{server}' is shared (`scope: run`), so its questions could be "
                            "another trial's; write `scope: trial`",
                        )
                    )

        problems += [
            Problem(
                (name, "elicit"), "the condition has no mcp_servers, so none can ask; leave it out"
            )
            for name, condition in conditions.items()
            if condition.elicit is not None and not condition.mcp_servers
        ]
        if problems:
            raise refusal(problems)
        return conditions

    @field_validator("limits")
    @classmethod
    def _limits_name_models(cls, limits: dict[str, RateModel]) -> dict[str, RateModel]:
        problems = []
        for name in limits:
            try:
                parse_model(name, place="limits")
            except BadOption as error:
                problems.append(Problem((name,), str(error).removeprefix("limits: ")))

        if problems:
            raise refusal(problems)
        return limits

    @field_validator("execution")
    @classmethod
    def _can_stop(cls, execution: Execution, info: ValidationInfo) -> Execution:
        dataset = info.data.get("dataset")
        conditions = info.data.get("conditions")
        if execution.stop is None or dataset is None or conditions is None:
            return execution
        problem = None
        kind = completed(dataset.kind.plugin)
        if not kind.compared:
            problem = (
                f"a dataset of kind {dataset.kind.type} has no scores of its own that two "
                f"conditions differ in"
            )
        elif kind.by_turn:
            problem = (
                f"{kind.unit}s are compared by rates over their turns, and the test is of means "
                "over questions"
            )
        elif len(conditions) < 2:
            problem = "there is one condition, and it takes two to compare"

        if problem:
            raise refusal([Problem(("stop",), f"{problem}; leave it out")])
        return execution

    @field_validator("scorers")
    @classmethod
    def _names_differ(
        cls, scorers: list[Plugged] | None, info: ValidationInfo
    ) -> list[Plugged] | None:
        if info.data.get("judge") is not None:
            names = ["judge"]
        else:
            names = [""]

        names += [scorer.name for scorer in scorers or []]
        twice = [at for at, name in enumerate(names) if name in names[:at]]
        if twice:
            message = "is a second scorer called '{}'; give it another `name`"
            raise refusal(Problem((at - 1,), message.format(names[at])) for at in twice)

        return scorers
