"""The frozen values that travel between the parts of karat.

msgspec structs: typed, immutable, and the same value in memory, in the journal
and in `samples.jsonl`. Fields with a default are left out of the file when they
hold it. `None` always means "not known" or "does not apply", as each field says;
it never means zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from karat.sums import exact_sum

JsonObject = dict[str, Any]
"""A JSON object as it was decoded. Whoever takes a value from it checks what that is."""

Json: TypeAlias = "bool | int | float | str | list[Json] | JsonObject | None"
"""A JSON value as it was decoded."""

LedgerClass = Literal["scored", "agent", "infrastructure", "judge", "limit", "not_run"]

ProtocolVersion = Literal["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
"""Of MCP."""

MODERN_PROTOCOL: ProtocolVersion = "2026-07-28"
"""The version without `initialize`: each request says who asks, in which version."""


class Turn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One question to the agent."""

    question: str
    golden: str | None = None  # None: there is no golden answer
    detail: JsonObject = {}  # further fields of the dataset kind (program, unit, …)
    asked: str | None = None  # what is sent to the agent; None: the question unchanged
    # whose session: turns of one seat share a session; None: the sample has a single one
    seat: int | None = None
    # what is asked, and whether, depends on earlier replies: see `next_turn` of the kind
    open: bool = False


CRITERION_TYPES = (
    "judge",  # a model says whether `text` holds of the answer
    "contains",  # the answer contains `text`; icontains…: in any case
    "icontains",
    "contains-any",  # one of the lines of `text`
    "icontains-any",
    "contains-all",  # each line of `text`
    "icontains-all",
    "starts-with",
    "equals",
    "regex",  # Python's `re`, found anywhere
    "is-json",  # the whole answer, or its code fence; `text`: "" or a JSON schema
    "contains-json",  # the same, of one of the objects or lists in the answer
    "url",  # the answer contains this address, however it is written
    "tool",  # the agent called a tool of the lines: NAME, SERVER.NAME, SERVER.* or * (any)
    "max-seconds",  # the answer took at most so long
    "max-dollars",  # the answer cost at most so much
)
"""How it is decided whether a criterion holds; with `not-` before it, the opposite must hold."""


class Criterion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What must hold of the answer to a sample."""

    text: str
    type: str = "judge"  # one of `CRITERION_TYPES`, or such a one after "not-"
    # what it counts, relative to the others; below 0: it should not hold, and costs as much
    weight: float = 1.0
    dealbreaker: bool = False  # if it fails, the answer as a whole has a score of 0


class Sample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One item of the dataset: one or more turns, asked in one session, or in one per seat."""

    id: str
    position: int  # from 0, in the order of the file: the order of every report
    digest: str  # hex, over turns, golden answers and materials
    turns: tuple[Turn, ...]
    materials: str | None = None  # a document that precedes the first turn
    metadata: JsonObject = {}  # further columns, to group results by
    # fields of the dataset kind for the whole sample (document, table, …)
    detail: dict[str, Any] = {}
    apart: bool = False  # each turn is asked in its own session: `asked` includes the earlier turns
    weight: float = 1.0  # how many samples of the file it represents, relative to the others
    # the digest without how turns are asked, if the digest covers that: for comparisons
    content: str | None = None
    kind: str = ""  # of dataset, as named in the experiment; empty in a file: that of the run
    # what it shares with other samples, such as a document; None: nothing is declared
    cluster: str | None = None
    criteria: tuple[Criterion, ...] = ()  # for scorers; hidden from agents, as golden answers are


_encode_sorted = msgspec.json.Encoder(order="sorted").encode


def sample_digest(parts: Any) -> str:
    """A digest over a sample's content, keys sorted: 32 hex digits of blake2b."""
    return blake2b(_encode_sorted(parts), digest_size=16).hexdigest()


class ServerAuth(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How to get a token for an MCP server (OAuth)."""

    type: Literal["client_credentials", "private_key_jwt", "login"]
    issuer: str | None = None  # the authorization server: credentials are sent nowhere else
    client_id: str = ""  # login: "" registers a client
    secret: str = ""  # the client's secret or its private key, in plain text
    algorithm: str = "RS256"  # private_key_jwt
    # None: as the authorization server's metadata say
    token_endpoint_auth_method: Literal["client_secret_basic", "client_secret_post"] | None = None
    scopes: tuple[str, ...] = ()  # the only ones that are requested; (): those the server names


class McpServer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How to reach one MCP server. Secret values are in plain text: never write this to disk."""

    name: str
    type: Literal["stdio", "http", "sse"]
    command: str = ""  # stdio
    args: tuple[str, ...] = ()  # stdio
    env: dict[str, str] = {}  # stdio: only these, plus PATH, HOME and LANG
    cwd: str | None = None  # stdio: the folder it runs in, from the experiment's; None: that one
    url: str = ""  # http, sse
    headers: dict[str, str] = {}  # http, sse
    auth: ServerAuth | None = None  # http
    scope: Literal["trial", "run"] = "trial"  # one session per trial, or one shared by the run
    init_timeout_seconds: float = 60.0  # start of the process and handshake
    call_timeout_seconds: float = 120.0  # one tool call
    protocol: ProtocolVersion | Literal["auto"] = "auto"  # auto: the newest that both support
    digest: str = ""  # hex, over the definition with secrets as ${NAME}


class Elicited(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a server's question to the user (MCP: elicitation) was, or will be, answered."""

    action: Literal["accept", "decline", "cancel"]
    content: JsonObject = {}  # with "accept": the form's fields
    message: str = ""  # what the server asked
    problem: str = ""  # why the script's answer did not fit the form, which was declined instead


class Elicit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answers to a condition's elicitations: the same for all samples, or by a column of the
    dataset.
    """

    # in the order of the questions of one attempt; the last one repeats
    answers: tuple[Elicited, ...] = ()
    column: str | None = None


class Cassettes(msgspec.Struct, frozen=True, kw_only=True):
    """Where the traffic with MCP servers is recorded, or replayed from."""

    mode: Literal["record", "replay"]
    folder: Path


class Gate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What must have happened for an attempt to count."""

    require_mcp_tool_use: bool = False  # at least one MCP tool was called
    require_mcp_tool_success: bool = False  # there were no MCP calls, or one of them succeeded


class AgentSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which agent, with which options; the digest covers every option that can change an answer."""

    type: str
    options: JsonObject = {}
    digest: str = ""


class ScorerSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which scorer, with which options."""

    type: str
    name: str  # as shown; the type unless the file gives a name
    options: JsonObject = {}


class ContextPart(msgspec.Struct, frozen=True, kw_only=True):
    """A folder or a file that an agent is given."""

    name: str  # the folder's or file's
    path: Path  # absolute; during a run that of a copy
    digest: str  # hex, over its content


class Context(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the agent is given in addition to its prompt and its servers."""

    skills: tuple[ContextPart, ...] = ()
    plugins: tuple[ContextPart, ...] = ()
    instructions: ContextPart | None = None  # a file, such as CLAUDE.md
    workspace: ContextPart | None = None  # a folder; each trial starts with a fresh copy of it
    tools: tuple[str, ...] = ()  # the allowed built-in tools of the agent

    @property
    def parts(self) -> tuple[ContextPart, ...]:
        """Every folder and file."""
        alone = (part for part in (self.instructions, self.workspace) if part is not None)
        return (*self.skills, *self.plugins, *alone)

    @property
    def keys(self) -> tuple[str, ...]:
        """The fields that are set, by name."""
        return tuple(name for name in self.__struct_fields__ if getattr(self, name))


class Condition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What varies: a system prompt, a set of MCP servers, a context, and perhaps the agent's
    options.
    """

    name: str
    position: int  # from 0, in the order of the file
    digest: str  # hex, over prompt, server definitions, gates and context; not over the name
    agent: AgentSpec  # the experiment's, with this condition's overrides
    system_prompt: str | None = None
    mcp_servers: tuple[McpServer, ...] = ()
    gate: Gate = Gate()
    elicit: Elicit | None = None  # None: servers cannot ask the user
    context: Context = Context()


class Trial(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One sample under one condition, once."""

    id: str  # 24 hex digits
    index: int  # from 0, its place in the plan
    sample: Sample
    condition: Condition
    repetition: int  # from 0
    seed: int  # for agents that draw at random; the same whenever this trial is run


class ToolCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One tool call of the agent, in a form common to all agents."""

    tool: str
    server: str | None = None  # None: not an MCP tool
    input: JsonObject = {}
    result: str | None = None  # None: it failed, or the result was not seen
    error: str | None = None  # None: it succeeded
    milliseconds: float | None = None
    # what the server asked the user in between, and the answers
    elicited: tuple[Elicited, ...] = ()


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens. None: the provider did not report them."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


class Validation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The verdict of an agent's own validator on one of its attempts at a turn."""

    valid: bool
    confidence: float | None = None  # 0 to 1; None: not reported
    failed_steps: tuple[str, ...] = ()
    issues: tuple[str, ...] = ()
    retry_number: int = 0  # which attempt, from 0


class Reply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent's reply in one turn, and its cost."""

    text: str
    answer: str | None = None  # the short answer, where the agent gives one separately
    unit: str | None = None
    program: str | None = None
    reasoning: str | None = None  # the agent's reasoning trace, where it shows one
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    dollars: float | None = None  # None: not known. 0.0: it was free.
    milliseconds: float | None = None
    model: str | None = None
    stop_reason: str | None = None
    responses: int | None = None  # of the model, with tool calls in between; None: not reported
    # whether it is right, according to a file of answers made elsewhere; None: not given
    verdict: bool | None = None
    agent: str | None = None  # name and version of the agent's program, where it reports them
    # of the agent's own validator, one per attempt; empty: not reported
    validations: tuple[Validation, ...] = ()

    @property
    def absent(self) -> bool:
        """Whether it is only a placeholder for a reply: nothing was asked, or nothing was
        recorded.
        """
        return not self.text and self.stop_reason in _ABSENT


_CUT = (
    "length",
    "limit",
    "max_tokens",
    "model_length",
    "max_output_tokens",
    "model_context_window_exceeded",
)


def was_cut(stop_reason: str | None) -> bool:
    """Whether an answer with this stop reason was cut at a limit of tokens, whichever provider or
    SDK names it.

    >>> [was_cut(reason) for reason in ("length", "FinishReason.MAX_TOKENS", "stop", None)]
    [True, True, False, False]
    """
    return stop_reason is not None and stop_reason.rpartition(".")[2].lower() in _CUT


_ABSENT = ("not_asked", "not_recorded")

NOT_ASKED = Reply(
    text="",
    stop_reason="not_asked",
    usage=Usage(input_tokens=0, output_tokens=0),
    dollars=0.0,
    milliseconds=0.0,
)
"""Stands in the place of a turn that is not asked any more, as `next_turn` of the kind says: no
answer, no fault.
"""


class WorkspaceChanges(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a trial changed in its workspace; the files themselves are in an archive in the run
    folder.
    """

    file: str  # in `workspaces/` of the run folder
    sha256: str  # hex, of that file
    base: str  # hex, digest of the folder that the trial began with
    changed: int  # files and links that are new or different, those left out included
    removed: int
    bytes: int  # of the files in the archive
    added_lines: int | None = None  # in text files; None: not all of them could be compared
    removed_lines: int | None = None
    complete: bool = True  # False: something is missing from the archive
    left_out: tuple[str, ...] = ()  # what is missing, and why: the first few


History = Sequence[tuple[Turn, Reply]]
"""The questions that a session was asked before, with their answers."""


class Answer(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="answer", tag_field="event"
):
    """The replies of one trial, one per turn."""

    trial: str
    sample: str
    condition: str
    repetition: int
    replies: tuple[Reply, ...]
    attempts: int = 1  # how many it took, this one included
    kept: int = 0  # how many replies, from the first, were given in earlier attempts
    started: str | None = None  # UTC, ISO 8601; None: not recorded, in an imported run
    # of the successful attempt and of replies kept from others; None: not known
    seconds: float | None = None
    detail: JsonObject = {}  # further fields of the tool that made it, in an imported run
    workspace: WorkspaceChanges | None = None  # None: the trial had none

    @property
    def text(self) -> str:
        """The agent's last reply."""
        return self.replies[-1].text if self.replies else ""


def recorded_seconds(milliseconds: Sequence[float | None]) -> float | None:
    """How long an answer made elsewhere took: the sum over its turns; None where the file lacks
    one.
    """
    if None in milliseconds or not milliseconds:
        return None
    return exact_sum(filter(None, milliseconds)) / 1000


class Score(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="score", tag_field="event"
):
    """One scorer's result for one answer, or for one of its turns."""

    trial: str
    scorer: str
    scoring: str  # digest of scorer, options, rubric, judge model and parameters
    values: dict[str, float | bool | None]  # None: could not be scored, and counts as missing
    turn: int | None = None  # from 0; None: for the whole answer
    judge: str | None = None  # which judge of a panel
    repeat: int = 0  # which repeat of the judge, from 0
    # how many rows this scoring has for this trial: with fewer on disk it is not complete
    rows: int = 1
    labels: dict[str, str] = {}  # categories, e.g. a diagnosis
    reasons: dict[str, str] = {}  # metric → why
    claims: tuple[str, ...] = ()  # helpful details that the judge cannot confirm
    detail: JsonObject = {}
    offline: bool = False  # by a rule, not by a model that understands
    usage: Usage | None = None
    dollars: float | None = None
    seconds: float | None = None


class ServerEvent(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="server", tag_field="event"
):
    """What an MCP server did during the run that its reader must know.

    changed: it offers other tools than at first, or speaks another version of the protocol.
    renewed: it had ended its session, so another was opened and the request repeated. declined: the
    answer of `elicit` did not fit its form.
    unasked: it could not ask, because the protocol that was negotiated lets servers send no
    requests.
    """

    server: str
    what: Literal["changed", "renewed", "declined", "unasked"]
    tools_digest: str | None = None  # this and the next four: of a change
    protocol: str | None = None  # None: as before
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    altered: tuple[str, ...] = ()  # same name, another description or schema
    problem: str = ""  # why no form can send the answer


class Failure(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="failure", tag_field="event"
):
    """Why a trial has no answer, or why an answer has no score."""

    trial: str
    stage: Literal["preflight", "agent", "score"]
    cls: LedgerClass = msgspec.field(name="class")
    kind: str  # a short slug: timeout, rate_limit, mcp_server_down, crash, …
    message: str
    retriable: bool = False  # whether a later attempt could succeed
    sample: str | None = None
    condition: str | None = None
    repetition: int | None = None
    scorer: str | None = None  # stage "score": which one
    scoring: str | None = None


class Metric(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One number that a scorer gives, with what is needed to read it."""

    name: str
    low: float | None = None  # None: not bounded
    high: float | None = None
    direction: Literal["higher", "lower", "none"] = "higher"  # which way is better
    kind: Literal["ordinal", "share", "number"] = "number"  # share: 0/1 for each answer
    description: str = ""
    # False: it is about the scoring itself, and conditions are not compared on it
    compared: bool = True

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """The ends of the scale, None where it has none; a share's are 0 and 1 unless given."""
        if self.kind == "share":
            low, high = (0.0, 1.0)
        else:
            low, high = (None, None)

        return low if self.low is None else self.low, high if self.high is None else self.high


def plain(value: Any) -> Any:
    """A NumPy number as a Python number; anything else that JSON cannot hold raises TypeError."""
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "shape", None) == ():
        return item()
    raise TypeError(f"a {type(value).__name__} cannot be written to the journal")


MOST_CONDITIONS = 500
"""Of an experiment: every two of them are compared on every metric."""

MOST_REPETITIONS = 100_000
"""Of an experiment."""

MOST_DOLLARS = 1e6
"""Of one call: more is an error of the provider."""

MOST_COUNTED = 10**12
"""Of tokens, answers of a model, or milliseconds (31 years) of one call."""

MOST_VALUE = 1e100
"""Of a metric: sums and squares of larger numbers are no numbers any more."""


def absurd_dollars(value: object) -> str | None:
    """What is wrong with the cost of one call; None: nothing. Unknown (None) is right.

    >>> absurd_dollars(0.02), absurd_dollars(-1.0)
    (None, 'dollars is -1.0, expected 0 to 1e+06')
    """
    return _outside("dollars", value, MOST_DOLLARS)


def absurd_usage(usage: Usage | None) -> str | None:
    """What is wrong with the tokens of one call; None: nothing."""
    if usage is None:
        return None
    counts = msgspec.structs.asdict(usage)
    wrong = (_outside(name, count) for name, count in counts.items())
    return next(filter(None, wrong), None)


def absurd_reply(reply: Reply) -> str | None:
    """What is wrong with the numbers of a reply; None: nothing."""
    numbers = reply.dollars, reply.usage, reply.milliseconds, reply.responses
    if numbers == (None, None, None, None) and not reply.tool_calls:
        return None
    wrong = (
        absurd_dollars(reply.dollars)
        or absurd_usage(reply.usage)
        or _outside("milliseconds", reply.milliseconds)
    )
    for call in reply.tool_calls:
        wrong = wrong or _outside("milliseconds", call.milliseconds)
    return wrong or _outside("responses", reply.responses)


def _outside(name: str, value: object, most: float = MOST_COUNTED) -> str | None:
    # NaN has no order
    if value is None or (isinstance(value, (int, float)) and 0 <= value <= most):
        return None
    return f"{name} is {value!r:.60}, expected 0 to {most:g}"


_encode = msgspec.json.Encoder().encode
_Record = TypeVar("_Record", bound=msgspec.Struct)


def checked(value: _Record) -> _Record:
    """The same record, checked against its field types and known to fit into the journal.

    Structs do not check their values, and plug-ins make them. Raises TypeError,
    ValueError (also as msgspec.ValidationError), OverflowError or RecursionError.
    """
    record = msgspec.convert(msgspec.to_builtins(value, enc_hook=plain), type(value))
    with suppress(UnicodeEncodeError):  # half a surrogate pair: the journal replaces it
        _encode(record)
    return record
