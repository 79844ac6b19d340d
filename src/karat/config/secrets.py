"""Which values of an experiment are secret.

Secret positions: `headers`, a server's or program's `env`, user information and query of
a URL, options called `api_key…`, and names under `secrets:`. An environment
variable used in such a position is a secret everywhere; so is one whose
name suggests it (`${SEARCH_API_KEY}` in a program's arguments).

A literal in a secret position is an error only if it can be a secret: an `api_key…`,
a header, variable or query parameter named like one (a word of its name is key, token,
secret, password, authorization, cookie, …), the password or the single token before the `@` of a
URL. Of a program's arguments, only a password in an address (`user:password@`) and what looks like
a key behind such a name are. `INDEX: ./docs` and `Accept: text/html` are allowed.

`api_key_env: NAME` is not a secret but names its variable; so do `client_secret_env` and
`private_key_env`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

from karat.config.environment import WORKSPACE, fill, is_variable
from karat.documents.nodes import Node, Place, dotted, fault_at, walk
from karat.errors import Fault

_WORDS = {
    *("key", "apikey", "accesskey", "secretkey", "privatekey"),
    *("token", "accesstoken", "authtoken", "apitoken", "bearer", "cookie"),
    *("secret", "secrets", "password", "passwd", "pwd", "passphrase", "credential", "credentials"),
    *("auth", "authorization", "authentication"),
}
# `…_env` names the variable that holds it
_NAME_SECRETS = ("api_key", "client_secret", "private_key")
_ADDRESS = re.compile(r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{0,30}://\S+", re.IGNORECASE)
# --api-key=KEY, -e=API_KEY=KEY, --header=Authorization: Bearer KEY
_ARGUMENT = re.compile(
    r"-{0,2}(?:[\w-]{1,64}=)?([\w-]{1,64})(?:=|:\s{0,9})(?:bearer\s{1,9})?([\w.+~-]{16,}=*)",
    re.IGNORECASE,
)
_NO_SECRET_KEYS = {"primary", "sort", "partition", "foreign", "public"}
_FILE = re.compile(r"\.[A-Za-z]\w{0,4}$")
_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def sounds_secret(name: str) -> bool:
    """Whether a word of the name suggests a secret.

    >>> [sounds_secret(name) for name in ("X-Api-Key", "githubToken", "MAX_TOKENS", "MONKEY")]
    [True, True, False, False]
    """
    return any(word.lower() in _WORDS for word in _PARTS.findall(name))


def _is_key(text: str) -> bool:
    """Whether a text looks like a key: it mixes letters and digits as no word, date or model does.

    >>> [
    ...     _is_key(text)
    ...     for text in ("sk-9fQ2Lr7xTn4KbVz8Wc1Y", "gpt-4o-mini-2024-07-18", "a1b2c3d4.pem")
    ... ]
    [True, False, False]
    """
    words = re.findall("[A-Za-z0-9]{8,}", text)
    mixed = any(len(re.findall("[0-9]+", word)) > 2 for word in words)
    return mixed and _FILE.search(text) is None


class Secrets:
    """The secret variables of an experiment, and every fault in a secret position."""

    def __init__(self, root: Node, env: Mapping[str, str]) -> None:
        self._root = root
        self._env = env
        self.variables: set[str] = set()
        self.faults: list[Fault] = []
        self.warnings: list[str] = []
        self.literals: list[str] = []  # of faults: never show them in a message
        named = root.get("secrets")
        for place, node in walk(named) if named is not None else ():
            if not isinstance(node.value, str) or not is_variable(node.value):
                if not isinstance(node.value, (list, dict)):
                    self.literals += [str(node.value)]
            elif len(place) == 1:
                self.variables.add(node.value)
                if node.value not in env:
                    where = dotted(("secrets", *place))
                    self.warnings.append(
                        f"{where}: {node.value} is not set, so there is nothing to mask"
                    )

        for place, node in walk(root):
            if isinstance(node.value, str):
                self.variables.update(name for name in node.variables if sounds_secret(name))
                self._look(place, node, node.value)

    def values(self) -> dict[str, str]:
        """Name → value of every secret variable that is set."""
        return {name: self._env[name] for name in sorted(self.variables) if name in self._env}

    def shown(self, node: Node) -> str:
        """A text with its variables filled in, except secret ones."""
        if node.template is None:
            return str(node.value)
        env = self._env
        known = env.keys() - self.variables - {WORKSPACE}
        return fill(node.template, lambda name: env[name] if name in known else f"${{{name}}}")

    def _look(self, place: Place, node: Node, text: str) -> None:
        # The place inside a server, agent, judge or scorer: a condition may be called `env`
        match place:
            case (
                ("mcp_servers" | "scorers", _, *option)
                | ("agent" | "judge", *option)
                | ("conditions", _, "agent", *option)
            ) if option:
                pass
            case _:
                return

        key = str(option[-1]).lower()
        if key.startswith(_NAME_SECRETS) and key.endswith("_env"):
            if text in self._env:
                self.variables.add(text)
            elif re.fullmatch(r"[A-Z][A-Z0-9_]*", text):
                message = (
                    f"the environment variable {text} is not set; set it, or name a file with "
                    f"--env-file"
                )
                self.faults.append(fault_at(self._root, place, message))
            else:  # never shown: people do paste the key itself here
                message = (
                    "must be the name of an environment variable that is set, e.g. MY_API_KEY; "
                    "not the key itself"
                )
                self._literal(place, text, message)
        elif key.startswith(_NAME_SECRETS):
            self._take(place, node, text, literal=True)
        elif len(option) >= 2 and option[-2] in ("headers", "env"):
            self._take(place, node, text, literal=sounds_secret(str(option[-1])))
        elif isinstance(option[-1], int) and option[-2:-1] in (["args"], ["command"]):
            self._argument(place, node, text)
        elif key == "url" or key.endswith("_url"):
            self._url(place, node.template or text)

    def _argument(self, place: Place, node: Node, text: str) -> None:
        """A program's argument: a literal is a fault only if it looks like a key, since most are
        none.
        """
        for address in _ADDRESS.findall(node.template or text):
            self._url(place, address, argument=True)

        number = place[-1]
        assert isinstance(number, int)
        before = self._root.get(*place[:-1], number - 1)
        if before is not None:
            option = before.value
        else:
            option = None

        argument = text
        if isinstance(option, str) and option.startswith("-") and not text.startswith("-"):
            argument = f"{option}={text}"
        found = _ARGUMENT.fullmatch(argument)
        if found is None or not _is_key(found[2]):
            return
        words = [word.lower() for word in _PARTS.findall(found[1])]
        if sounds_secret("_".join(words[-1:])) and _NO_SECRET_KEYS.isdisjoint(words[-2:-1]):
            self._take(place, node, text, literal=True, name=found[1])

    def _literal(self, place: Place, text: str, message: str) -> None:
        self.faults.append(fault_at(self._root, place, message))
        self.literals.append(text)

    def _take(
        self, place: Place, node: Node, text: str, *, literal: bool, name: str | None = None
    ) -> None:
        self.variables.update(node.variables)
        if literal and text and not node.variables:
            name = re.sub(r"[^A-Z0-9]+", "_", (name or str(place[-1])).upper())
            name = name.lstrip("_0123456789").rstrip("_") or "SECRET"
            remedy = f"write `${{{name}}}` and set that environment variable"
            self._literal(place, text, f"a secret must not be in the file; {remedy}")

    def _url(self, place: Place, template: str, *, argument: bool = False) -> None:
        """An address. In a program's argument, a name alone before the `@` is no secret, nor is a
        short value in the query.
        """
        # The unfilled text is split: a value with "@" or "?" in it would move the borders.
        try:
            parts = urlsplit(template)
        except ValueError:
            return  # the option's model reports the fault

        user, colon, password = parts.netloc.rpartition("@")[0].rpartition(":")
        if not argument:
            self.variables.update(_VARIABLE.findall(user))
        for name, text in [("", password), *parse_qsl(parts.query)]:
            secret = not name or sounds_secret(name)
            if argument and not name:
                pair = bool(colon) and password != user
                pair &= not parts.netloc.rpartition("@")[2].startswith("sha256:")  # of an image
                secret = pair or _is_key(password)
            if secret or not argument:
                self.variables.update(_VARIABLE.findall(text))
            # beside a token in the name's place stands `x-oauth-basic` or the like
            harmless = argument and (bool(name) or "${" in user) and not _is_key(text)
            if text and "${" not in text and secret and not harmless:
                if name:
                    where = f"in the query parameter '{name}'"
                else:
                    where = "before the '@'"

                message = (
                    f"a secret must not be in the file ({where}); write `${{NAME}}` and set that "
                    f"variable"
                )
                self._literal(place, text, message)
