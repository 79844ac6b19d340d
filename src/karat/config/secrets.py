"""Which values of an experiment are secret.

Secret positions: `headers`, a server's or program's `env`, user information and query of
a URL, options called `api_key…`, and what the file names under `secrets:`. An environment
variable used in such a position is a secret, wherever else it is used; so is one whose
name says so (`${SEARCH_API_KEY}` in a program's arguments).

A literal in a secret position is an error only where it can be a secret: an `api_key…`,
a header, variable or query parameter called like one (a word of its name is key, token,
secret, password, authorization, cookie, …), the password or the lone token before the `@` of a
URL. `INDEX: ./docs` and `Accept: text/html` may stay.

`api_key_env: NAME` holds no secret but names the variable that does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

from karat.config.environment import fill, is_variable
from karat.documents.nodes import Node, Place, dotted, fault_at, walk
from karat.errors import Fault

__all__ = ["Secrets", "find_secrets", "sounds_secret"]

_WORDS = {
    *("key", "apikey", "accesskey", "secretkey", "privatekey"),
    *("token", "accesstoken", "authtoken", "apitoken", "bearer", "cookie"),
    *("secret", "secrets", "password", "passwd", "pwd", "passphrase", "credential", "credentials"),
    *("auth", "authorization", "authentication"),
}
_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def sounds_secret(name: str) -> bool:
    """Whether a word of the name is one that secrets are called by.

    >>> [sounds_secret(name) for name in ("X-Api-Key", "githubToken", "MAX_TOKENS", "MONKEY")]
    [True, True, False, False]
    """
    return any(word.lower() in _WORDS for word in _PARTS.findall(name))


class Secrets:
    """The secret variables, and every fault in a secret position."""

    def __init__(self) -> None:
        self.variables: set[str] = set()
        self.faults: list[Fault] = []
        self.warnings: list[str] = []
        self.literals: list[str] = []  # of faults: never to be shown in a message

    def values(self, env: Mapping[str, str]) -> dict[str, str]:
        """Name → value of every secret variable that is set."""
        return {name: env[name] for name in sorted(self.variables) if name in env}

    def shown(self, node: Node, env: Mapping[str, str]) -> str:
        """A text with its variables filled in, but for the secret ones."""
        if node.template is None:
            return str(node.value)
        return fill(
            node.template, lambda name: env[name] if name in env and name not in self.variables else f"${{{name}}}"
        )


def find_secrets(root: Node, env: Mapping[str, str]) -> Secrets:
    """Looks through every text of the experiment."""
    secrets = Secrets()
    _named(root, env, secrets)
    for place, node in walk(root):
        if not isinstance(node.value, str):
            continue
        secrets.variables.update(name for name in node.variables if sounds_secret(name))
        _look(place, node, env, secrets)
    return secrets


def _look(place: Place, node: Node, env: Mapping[str, str], secrets: Secrets) -> None:
    option = _option(place)
    if not option:
        return
    key = str(option[-1]).lower()
    if key.startswith("api_key") and key.endswith("_env"):
        _variable_name(place, node, env, secrets)
    elif key.startswith("api_key"):
        _take(place, node, secrets, literal=True)
    elif len(option) >= 2 and option[-2] in ("headers", "env"):
        _take(place, node, secrets, literal=sounds_secret(str(option[-1])))
    elif key == "url" or key.endswith("_url"):
        _url(place, node, secrets)


def _option(place: Place) -> Place:
    """The place inside a server, agent, judge or scorer; () elsewhere: a condition may be called `env`."""
    match place:
        case ("mcp_servers", _, *rest) | ("agent", *rest) | ("judge", *rest) | ("scorers", _, *rest):
            return tuple(rest)
        case ("conditions", _, "agent", *rest):
            return tuple(rest)
    return ()


def _named(root: Node, env: Mapping[str, str], secrets: Secrets) -> None:
    listed = root.get("secrets")
    for index, node in listed.children() if listed is not None else []:
        place = f"secrets.{index}"
        if not isinstance(node.value, str) or not is_variable(node.value):
            message = "must be the name of an environment variable, not its value; write e.g. `secrets: [MY_PASSWORD]`"
            secrets.faults.append(fault_at(place, node, message))
            secrets.literals.append(str(node.value))
            continue
        secrets.variables.add(node.value)
        if node.value not in env:
            secrets.warnings.append(f"{place}: {node.value} is not set, so there is nothing to mask")


def _variable_name(place: Place, node: Node, env: Mapping[str, str], secrets: Secrets) -> None:
    # The value is shown only where it looks like a name: people do paste the key itself here.
    if not re.fullmatch(r"[A-Z][A-Z0-9_]*", node.value) and node.value not in env:
        message = "must be the name of an environment variable that is set, e.g. MY_API_KEY; not the key itself"
        secrets.literals.append(node.value)
    elif node.value not in env:
        message = f"the environment variable {node.value} is not set; set it, or name a file with --env-file"
    else:
        secrets.variables.add(node.value)
        return
    secrets.faults.append(fault_at(dotted(place), node, message))


def _take(place: Place, node: Node, secrets: Secrets, *, literal: bool) -> None:
    secrets.variables.update(node.variables)
    if literal and node.value and not node.variables:
        name = re.sub(r"[^A-Z0-9]+", "_", str(place[-1]).upper()).strip("_") or "SECRET"
        message = f"a secret must not stand in the file; write `${{{name}}}` and set that environment variable"
        secrets.faults.append(fault_at(dotted(place), node, message))
        secrets.literals.append(node.value)


def _url(place: Place, node: Node, secrets: Secrets) -> None:
    # The unfilled text is split: a value with "@" or "?" in it would move the borders.
    template = node.template or node.value
    try:
        parts = urlsplit(template)
    except ValueError:
        return  # the model of the option says what is wrong
    user, _, password = parts.netloc.rpartition("@")[0].rpartition(":")
    secrets.variables.update(_VARIABLE.findall(user))
    for name, text in [("", password), *parse_qsl(parts.query)]:
        secrets.variables.update(_VARIABLE.findall(text))
        if text and "${" not in text and (not name or sounds_secret(name)):
            where = f"in the query parameter '{name}'" if name else "before the '@'"
            message = f"a secret must not stand in the file ({where}); write `${{NAME}}` and set that variable"
            secrets.faults.append(fault_at(dotted(place), node, message))
            secrets.literals.append(text)
