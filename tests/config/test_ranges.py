"""The smallest and the largest value of each setting, what lies just outside, and what holds where nothing is set."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest

from karat.config import Execution
from karat.config.model import (
    Budget,
    GateModel,
    PriceModel,
    RateModel,
    RayModel,
    RemoteServer,
    Retry,
    Section,
    ServerAuthModel,
    StdioServer,
    Stop,
)

NEEDED: dict[type[Section], dict[str, Any]] = {
    StdioServer: {"command": "python"},
    RemoteServer: {"url": "http://x/"},
    PriceModel: {"input": 1, "output": 1},
    Stop: {"metric": "m"},
}
WEEK = 604_800


def given(section: type[Section], **values: Any) -> Any:
    return section.model_validate({**NEEDED.get(section, {}), **values})


@pytest.mark.parametrize(
    ("section", "key", "ends", "outside"),
    [
        (Retry, "max_attempts", [1, 100], [0, 101]),
        (Retry, "initial_backoff_seconds", [0, 86_400], [-0.1, 86_401]),
        (Retry, "backoff_multiplier", [1, 100], [0.9, 100.1]),
        (Retry, "max_backoff_seconds", [0, 86_400], [-0.1, 86_401]),
        (PriceModel, "input", [0], [-0.01]),
        (PriceModel, "output", [0], [-0.01]),
        (PriceModel, "cache_read", [0, None], [-0.01]),
        (PriceModel, "cache_write", [0, None], [-0.01]),
        (RateModel, "requests_per_minute", [0.1, None], [0]),
        (RateModel, "tokens_per_minute", [0.1, None], [0]),
        (Budget, "usd", [0.01, None], [0, -1]),
        (Budget, "tokens", [1, None], [0]),
        (Stop, "margin", [0.01, None], [0]),
        (Stop, "alpha", [0.001, 0.499], [0, 0.5]),
        (Stop, "seed", [0], [-1]),
        (Stop, "metric", ["m"], [""]),
        (RayModel, "num_workers", [1, 10_000, None], [0, 10_001]),
        (RayModel, "num_cpus", [0], [-0.1]),
        (RayModel, "num_gpus", [0], [-0.1]),
        (RayModel, "batch_size", [0, 10_000], [-1, 10_001]),
        (RayModel, "start_timeout_seconds", [0.1, WEEK], [0, WEEK + 1]),
        (RayModel, "address", ["auto", "head:6379", None], ["ray://head:10001", ""]),
        (Execution, "num_repetitions", [1], [0]),
        (Execution, "max_concurrent", [1, 10_000], [0, 10_001]),
        (Execution, "timeout_seconds", [0.1, WEEK], [0, WEEK + 1]),
        (Execution, "judge_timeout_seconds", [0.1, WEEK], [0, WEEK + 1]),
        (Execution, "max_failures", [0, 0.5, 1, 2, 1000], [-0.1, 1.5]),
        (StdioServer, "init_timeout_seconds", [0.1, WEEK], [0, WEEK + 1]),
        (StdioServer, "call_timeout_seconds", [0.1, WEEK], [0, WEEK + 1]),
        (StdioServer, "command", ["x"], [""]),
        (RemoteServer, "url", ["http://x", "HTTPS://x:1/y?z", "http://[::1]:65535/"],
         ["", "x", "ftp://x/", "http://", "http://x:0/", "http://x:65536/", "http://[x/"]),
        (GateModel, "max_drop", [{"m": 0}], [{"m": -0.1}, {"": 1}]),
    ],
)  # fmt: skip
def test_the_ends_of_a_range_are_in_it_and_what_is_beyond_is_not(
    section: type[Section], key: str, ends: list[Any], outside: list[Any]
) -> None:
    for value in ends:
        assert getattr(given(section, **{key: value}), key) == value
    for value in outside:
        with pytest.raises(pydantic.ValidationError, match=key):
            given(section, **{key: value})


@pytest.mark.parametrize(
    ("section", "key"), [(Retry, "max_attempts"), (Retry, "backoff_multiplier"), (Execution, "timeout_seconds")]
)
@pytest.mark.parametrize("value", [True, False])
def test_yes_and_no_are_no_numbers(section: type[Section], key: str, value: bool) -> None:
    with pytest.raises(pydantic.ValidationError, match=f"must be a number, got {str(value).lower()}"):
        given(section, **{key: value})


@pytest.mark.parametrize(
    ("section", "defaults"),
    [
        (
            Retry,
            {
                "max_attempts": 3,
                "initial_backoff_seconds": 1.0,
                "backoff_multiplier": 2.0,
                "max_backoff_seconds": 60.0,
                "timeouts": False,
            },
        ),
        (Budget, {"usd": None, "tokens": None}),
        (RateModel, {"requests_per_minute": None, "tokens_per_minute": None}),
        (Stop, {"metric": "m", "margin": None, "alpha": 0.05, "futility": False, "seed": 0}),
        (PriceModel, {"input": 1.0, "output": 1.0, "cache_read": None, "cache_write": None}),
        (GateModel, {"min": {}, "max": {}, "max_drop": {}, "baseline": None}),
        (
            RayModel,
            {
                "address": None,
                "num_workers": None,
                "num_cpus": 1.0,
                "num_gpus": 0.0,
                "resources": {},
                "batch_size": 50,
                "start_timeout_seconds": 300.0,
            },
        ),
        (
            StdioServer,
            {
                "scope": "trial",
                "init_timeout_seconds": 60.0,
                "call_timeout_seconds": 120.0,
                "protocol": "auto",
                "type": "stdio",
                "command": "python",
                "args": [],
                "env": {},
                "cwd": None,
            },
        ),
        (
            RemoteServer,
            {
                "scope": "trial",
                "init_timeout_seconds": 60.0,
                "call_timeout_seconds": 120.0,
                "protocol": "auto",
                "type": "http",
                "url": "http://x/",
                "headers": {},
                "auth": None,
            },
        ),
    ],
)
def test_what_holds_where_nothing_is_set(section: type[Section], defaults: dict[str, Any]) -> None:
    assert given(section).model_dump() == defaults
    nothing = dict.fromkeys(key for key in defaults if key not in NEEDED.get(section, {}))
    assert given(section, **nothing).model_dump() == defaults, "a key without a value is absent"


def test_a_run_asks_three_times_and_five_at_once_unless_told_otherwise() -> None:
    plain = Execution().model_dump()
    for part in ("retry", "budget", "ray"):
        del plain[part]
    assert plain == {
        "num_repetitions": 3,
        "max_concurrent": 5,
        "timeout_seconds": 600.0,
        "judge_timeout_seconds": 120.0,
        "max_failures": 0.2,
        "stop": None,
        "shared": False,
        "workspace_ignore": [],
        "keep_workspaces": False,
        "executor": "local",
    }


@pytest.mark.parametrize(
    ("most", "planned", "failures", "stops"),
    [
        (0.2, 40, 8.0, 8),
        (0.2, 20, 4.0, 4),
        (0.2, 19, 3.8, 5),
        (0.2, 3, 1.0, 5),
        (0.5, 19, 9.5, 10),
        (0, 40, 1.0, 1),
        (0, 3, 1.0, 1),
        (1, 3, 1.0, 1),
        (7, 3, 7.0, 7),
    ],
)
def test_a_share_of_failures_needs_some_trials_and_a_count_does_not(
    most: float, planned: int, failures: float, stops: int
) -> None:
    execution = Execution(max_failures=most)
    assert execution.most_failures(planned) == pytest.approx(failures)
    assert execution.stops_after(planned) == stops
    assert execution.failures_by_share is (0 < most < 1)


SECRET = {"issuer": "http://x/", "client_id": "c", "client_secret_env": "S"}
KEY = {"issuer": "http://x/", "client_id": "c", "private_key_env": "K"}


@pytest.mark.parametrize(
    "auth",
    [
        {"type": "client_credentials", **SECRET},
        {"type": "client_credentials", **SECRET, "token_endpoint_auth_method": "client_secret_post"},
        {"type": "private_key_jwt", **KEY, "algorithm": "ES256"},
        {"type": "login"},
        {"type": "login", **SECRET, "token_endpoint_auth_method": "client_secret_basic", "scopes": ["read"]},
    ],
)
def test_credentials_are_complete(auth: dict[str, Any]) -> None:
    assert given(RemoteServer, auth=auth).auth.type == auth["type"]


@pytest.mark.parametrize(
    ("auth", "says"),
    [
        (
            {"type": "client_credentials"},
            "`type: client_credentials` needs `issuer` and `client_id` and `client_secret_env`",
        ),
        ({"type": "client_credentials", **SECRET, "private_key_env": "K"}, "takes no `private_key_env`"),
        ({"type": "private_key_jwt", **SECRET}, "`type: private_key_jwt` needs `private_key_env`"),
        (
            {
                "type": "private_key_jwt",
                **KEY,
                "client_secret_env": "S",
                "token_endpoint_auth_method": "client_secret_post",
            },
            "takes no `client_secret_env` and no `token_endpoint_auth_method`",
        ),
        ({"type": "login", "private_key_env": "K"}, "`type: login` takes no `private_key_env`"),
    ],
)
def test_credentials_that_are_missing_or_too_many_are_named(auth: dict[str, Any], says: str) -> None:
    with pytest.raises(pydantic.ValidationError, match=says):
        ServerAuthModel.model_validate(auth)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"type": "sse"}, "OAuth needs `type: http`"),
        ({"headers": {"AUTHORIZATION": "x"}}, "leave out one of `auth` and the header `Authorization`"),
        ({"headers": {"X-Key": "x"}}, None),
    ],
)
def test_a_server_is_told_who_asks_in_one_way(changes: dict[str, Any], says: str | None) -> None:
    if says is None:
        assert given(RemoteServer, auth={"type": "login"}, **changes).headers == changes["headers"]
    else:
        with pytest.raises(pydantic.ValidationError, match=says):
            given(RemoteServer, auth={"type": "login"}, **changes)
