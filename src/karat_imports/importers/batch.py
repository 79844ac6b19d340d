"""`karat import batch`: requests and results of OpenAI's and Anthropic's batches.

Source of the formats: the files of OpenAI's Batch API (requests with `method`, `url` and `body`;
results and errors with `response` and `error`) for chat completions, completions and responses; and
of Anthropic's Message Batches (requests with `params`, results with `result`). Each has one object
a line, and `custom_id` joins them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec

from karat.documents.answers import stop_reason
from karat.foreign import Json
from karat.importers import (
    Findings,
    ImportedCondition,
    ImportedFailure,
    ImportedRun,
    ImportedTrial,
)
from karat.records import Reply, Usage
from karat_imports.importers._chats import Message, messages, question, tool_calls
from karat_imports.importers._reading import failure, grouped, lines_with, recognized, said_last
from karat_imports.importers._traces import named_after

__all__ = ["Batch"]

_ID = re.compile(rb'"custom_id"\s*:\s*"')
_PARTS = re.compile(rb'"(?:body|params|response|result|error)"\s*:')


class Batch:
    """Requests and results of OpenAI's and Anthropic's batches (JSON Lines), joined by custom_id:
    models are conditions.
    """

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        first = head.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0]
        return (
            first.startswith(b"{")
            and _ID.search(first) is not None
            and _PARTS.search(first) is not None
        )

    def runs(self, paths: Sequence[Path], findings: Findings) -> Iterable[ImportedRun]:
        """One run of all files. Requests say what was asked, so pass their files too."""
        files = recognized(
            paths,
            findings,
            by=self.recognizes,
            otherwise="holds no lines of a batch (expected custom_id with body or response)",
        )
        conditions: dict[str, ImportedCondition] = {}
        yield ImportedRun(
            name=named_after(files),
            tool="batch",
            trials=_trials(files, conditions, findings),
            conditions=conditions,
            sparse=True,
        )


class _Request(msgspec.Struct, frozen=True, kw_only=True):
    model: str
    question: str | None
    chat: Sequence[Message]


def _trials(
    files: Sequence[Path], conditions: dict[str, ImportedCondition], findings: Findings
) -> Iterator[ImportedTrial]:
    for place, id_, of_id in grouped(partial(lines_with, "custom_id", files), findings):
        trials: list[ImportedTrial] = []
        requests: list[_Request] = []
        results: list[Json] = []
        for row in of_id:
            if "body" not in row and "params" not in row:
                results.append(row)
                continue

            body = Json({**row.at("body"), **row.at("params")})
            given = body.get("messages", body.get("input", body.get("prompt")))
            chat = messages(given)
            requests.append(
                _Request(
                    model=body.text("model") or "not named",
                    question=question(chat) or said_last(given),
                    chat=chat,
                )
            )

        for row in results:
            # The request of its model, whose name may have a date behind it, else the first
            # OpenAI's body, Anthropic's message
            body = Json({**row.at("response", "body"), **row.at("result", "message")})
            model = body.text("model") or ""
            same = (one for one in requests if model.startswith(one.model))
            request = next(same, next(iter(requests), None))
            if request is not None:
                requests.remove(request)
            else:
                request = _Request(model=model or "not named", question=None, chat=())
                findings.changed("result whose request is not in the files: its id is asked", place)

            if len(body.list("choices")) > 1:
                findings.left_out("choices of an answer after the first", place)
            failed = _failure(row)
            reply = None
            if failed is None or body.get("choices") or body.get("content"):
                said = messages(body)
                if body.text("role") is None and isinstance(body.get("choices"), list):
                    # of a completion
                    said = said or [
                        Message(role="assistant", text=choice.text("text"))
                        for choice in body.list("choices")
                    ]

                texts = [message.text for message in said if message.text]
                if body.get("choices"):
                    texts = texts[:1]
                stops = []
                for message in said:
                    if message.finish_reason:
                        stops.append(message.finish_reason)

                stop = body.at("incomplete_details").text("reason") or stop_reason(body)
                reply = Reply(
                    text="\n".join(texts),
                    tool_calls=tool_calls(said),
                    usage=_usage(body.at("usage")),
                    model=body.text("model"),
                    stop_reason=next(iter(stops), stop),
                )

            trials.append(
                msgspec.structs.replace(
                    _not_run(request, id_),
                    reply=reply,
                    failure=failed,
                    detail={
                        "id": row.get("id"),
                        "request_id": row.at("response").get("request_id"),
                    },
                )
            )

        trials += [_not_run(request, id_) for request in requests]
        for trial in trials:
            conditions.setdefault(trial.condition, ImportedCondition(model=trial.condition))
            yield trial


def _not_run(request: _Request, id_: str) -> ImportedTrial:
    return ImportedTrial(sample=id_, question=request.question or id_, condition=request.model)


def _usage(usage: Json) -> Usage | None:
    """Tokens; Anthropic counts what was cached apart from the others."""
    read = usage.count("cache_read_input_tokens")
    written = usage.count("cache_creation_input_tokens")
    heard = usage.count("input_tokens")
    if heard is not None:
        heard += (read or 0) + (written or 0)
    else:
        heard = usage.count("prompt_tokens")

    said = usage.count("output_tokens", "completion_tokens")
    if heard is None and said is None:
        return None
    prompt = Json({**usage.at("prompt_tokens_details"), **usage.at("input_tokens_details")})
    output = Json({**usage.at("completion_tokens_details"), **usage.at("output_tokens_details")})
    if read is None:
        read = prompt.count("cached_tokens")
    return Usage(
        input_tokens=heard,
        output_tokens=said,
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=output.count("reasoning_tokens"),
    )


def _failure(row: Json) -> ImportedFailure | None:
    """Why a request has no answer."""
    kind = row.at("result").text("type")
    if kind in ("canceled", "expired"):
        return ImportedFailure(cls="infrastructure", kind=kind, message=f"the request was {kind}")
    status = row.at("response").count("status_code")
    error = row.at("result", "error")
    error = Json({**error, **error.at("error"), **row.at("error")})
    if row.at("response", "body", "error"):
        error = row.at("response", "body", "error")
    if not error and (status is None or status < 400):
        return None
    if (code := error.text("code", "type")) == "batch_expired":
        return ImportedFailure(
            cls="infrastructure", kind="expired", message=error.text("message") or code
        )

    known = [code, error.text("message")]
    if status not in (None, 200):
        known.insert(0, str(status))
    return failure(": ".join(filter(None, known)) or "error")
