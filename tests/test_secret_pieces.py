"""Pieces of secrets: whatever is echoed of one, six characters of it in a row are left in no text."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import random
import re
import string
import subprocess
import sys
import time
from urllib.parse import quote

import pytest

from karat.cli.live import _in_context
from karat.journal import Codec
from karat.mcp import Toolbox
from karat.mcp.attempts import Attempt
from karat.records import AgentSpec, Condition, McpServer
from karat.redact import Redactor

_RNG = random.Random(20261127)


def drawn(count: int, letters: str = string.ascii_letters + string.digits) -> str:
    return "".join(_RNG.choice(letters) for _ in range(count))


def key(lines: int, last: int) -> str:
    body = [drawn(64, string.ascii_letters + string.digits + "+/") for _ in range(lines)]
    return "\n".join(["-----BEGIN PRIVATE KEY-----", *body, drawn(last), "-----END PRIVATE KEY-----", ""])


SECRETS = {
    "HEADER": drawn(40),
    "HEX_HEADER": drawn(32, "0123456789abcdef"),
    "API_KEY": f"sk-live-{drawn(24)}",
    "SHORT_KEY": drawn(16),
    "CLIENT_SECRET": drawn(43, string.ascii_letters + string.digits + "-_"),
    "OTHER_CLIENT_SECRET": f"{drawn(3)}~{drawn(34)}",
    "ACCESS_TOKEN": f"ACCESS-{drawn(32, '0123456789abcdef')}",
    "REFRESH_TOKEN": f"REFRESH-{drawn(32, '0123456789abcdef')}",
    "JWT": ".".join(base64.urlsafe_b64encode(drawn(90).encode()).decode().rstrip("=") for _ in range(3)),
    "COOKIE": f"session={drawn(26, string.ascii_lowercase + string.digits)}",
    "URL_PASSWORD": f"{drawn(6)}@{drawn(8)}:{drawn(6)}",
    "QUERY": f"{drawn(10)}?&={drawn(10)}",
    "QUOTED": f'{drawn(8)}"{drawn(8)}"\\{drawn(8)}',
    "UMLAUT": f"{drawn(8)}ä{drawn(8)}ß",
    "SYMBOLS": "Tr0ub4dor&3-xK9$mQ2w!z",
    "EC_KEY": key(2, 24),
    "RSA_KEY": key(25, 6),
    "PASS_PHRASE": "tulip. Granite walnut 77",
    "STAPLE": "correct horse battery staple",
    "GENERATED": "lantern-mosaic-velvet-harbor",
}


def halves(text: str) -> str:
    return f"{text[: len(text) // 2]}… and …{text[len(text) // 2 :]}"


WAYS = {
    "whole": str,
    "in quotes": repr,
    "by line": lambda secret: "\n> ".join(secret.splitlines()),
    "as a list of lines": lambda secret: json.dumps(secret.splitlines()),
    "by word": lambda secret: "\n".join(f"{n}. {word}" for n, word in enumerate(secret.split())),
    "words in another order": lambda secret: ", ".join(sorted(secret.split(), reverse=True)),
    "upper case": str.upper,
    "lower case": str.lower,
    "begins": lambda secret: f"it begins with {secret[: len(secret) * 2 // 3]}",
    "ends": lambda secret: f"…{secret[len(secret) // 3 :]}",
    "cut in the middle": lambda secret: f"{secret[: len(secret) * 2 // 5]}...{secret[-(len(secret) * 2 // 5) :]}",
    "broken by a line": lambda secret: f"{secret[: len(secret) // 2]}\n{secret[len(secret) // 2 :]}",
    "base64": lambda secret: base64.b64encode(secret.encode()).decode(),
    "in base64": lambda secret: base64.b64encode(f"user:{secret}".encode()).decode(),
    "hexadecimal": lambda secret: secret.encode().hex(),
    "percent": lambda secret: quote(secret, safe=""),
    "bytes": lambda secret: repr(secret.encode()),
    "JSON in JSON": lambda secret: json.dumps({"text": json.dumps({"key": secret})}),
    "in an error": lambda secret: f"ValueError('bad value: {secret!r}')",
    "in a stream": lambda secret: f"debug: {secret}\x1b[0m\r\nnext",
}


def pieces_left(text: str, secret: str, size: int = 6) -> set[str]:
    """What of the secret, or of its base64, is still in the text, in any case."""
    text, secret = text.lower(), re.sub("-----[A-Z ]+-----", "", secret)  # the frame of a key is no secret
    forms = [secret, base64.b64encode(secret.encode()).decode(), secret.encode().hex()]
    sizes = [size, 12, 12]
    windows = {
        form.lower()[at : at + length]
        for form, length in zip(forms, sizes, strict=True)
        for at in range(len(form) - length + 1)
    }
    return {window for window in windows if window in text}


NAMES = {kind: f"S{number:02}" for number, kind in enumerate(SECRETS)}


@pytest.fixture(scope="module")
def redact():
    return Redactor({NAMES[kind]: secret for kind, secret in SECRETS.items()})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", SECRETS)
def test_no_six_characters_of_a_secret_are_left(redact, kind, way):
    masked = redact(f"The value: {WAYS[way](SECRETS[kind])} (that was it)")
    assert not pieces_left(masked, SECRETS[kind])
    assert f"${{{NAMES[kind]}}}" in masked
    assert masked.startswith("The value: ")
    assert masked.endswith("(that was it)")


@pytest.mark.parametrize("kind", ["API_KEY", "SYMBOLS", "EC_KEY"])
def test_a_secret_in_pairs_of_bytes_and_as_a_list_of_numbers_is_masked(redact, kind):
    data = SECRETS[kind].encode()
    for dump in (data.hex(" ", 2), json.dumps({"type": "Buffer", "data": [*data]}), json.dumps([*data], indent=2)):
        masked = redact(f"a dump: {dump} (that was it)")
        assert NAMES[kind] in masked
        assert not {dump[at : at + 18] for at in range(20, len(dump) - 18) if dump[at : at + 18] in masked}
        assert masked.endswith("(that was it)")


def test_the_symbols_of_a_password_are_no_ordinary_words():
    redact = Redactor({"PW": 'Tr0ub4dor&3!x"y\\z'})
    assert redact('it ends with &3!x"y\\z') == "it ends with ${PW}"
    assert redact("Is 3 < 4? Yes! It is, & I am sure.") == "Is 3 < 4? Yes! It is, & I am sure."


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("docs/**/*.md", "use **/*.md here"),
        ("path/to/{x}/**/*.py", "in **/*.py and in {x}/**"),
        ("text/html, */*;q=0.8", "I send */*;q=0.8"),
        ("first == **kwargs != second", "a == **b"),
    ],
)
def test_the_symbols_of_a_pattern_are_no_secret(value, text):
    assert Redactor({"S": value})(text) == text
    assert Redactor({"S": value})(f"it is {value}") == "it is ${S}"


@pytest.mark.parametrize(
    "text", ["1, " * 40_000, "1" + " " * 10**5, "1 ," * 5 + " " * 10**5, "ab" * 50_000, "abcd " * 20_000, "\\" * 10**5]
)
def test_long_lists_and_dumps_are_looked_through_in_time(redact, text):
    started = time.process_time()
    assert redact(text) == text
    assert time.process_time() - started < 2


FORMS = ["%{:02X}", "\\x{:02x}", "{:02X} ", "{:02x}:", "0x{:02x}, ", "\\{:03o}", "\\u{:04x}", "&#{};", "&#x{:X};"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["API_KEY", "SYMBOLS", "EC_KEY"])
def test_a_secret_as_one_number_a_character_is_masked(redact, kind, form):
    dump = "".join(map(form.format, SECRETS[kind].encode()))
    masked = redact(f"a dump: {dump} (that was it)")
    assert not {dump[at : at + 18] for at in range(len(dump) - 18) if dump[at : at + 18] in masked}
    assert masked.startswith("a dump: ${S")


@pytest.mark.parametrize("form", FORMS)
def test_a_dump_that_shares_a_few_characters_with_a_secret_is_left_alone(form):
    redact = Redactor({"K": "sk-ab12cd34ef00xyz"})
    dumps = ["".join(map(form.format, text)) for text in (b"00A", b"ef", b"-ab12 00xyz", b"ask-a", b"00efsk-12ab")]
    assert [redact(dump) for dump in dumps] == dumps
    before, piece, behind = ("".join(map(form.format, text)) for text in (b"it is ", b"ab12cd34ef00", b" or so"))
    masked = redact(before + piece + behind)
    assert masked.startswith(f"{before}${{K}}")
    assert masked.endswith(behind)


def test_dumps_of_other_bytes_are_left_alone(redact):
    text = " ".join(form.format(byte).strip() for form in FORMS for byte in b"Hello, world: 0123456789")
    assert redact(text) == text


@pytest.mark.parametrize("kind", ["EC_KEY", "PASS_PHRASE", "STAPLE"])
def test_a_secret_in_several_texts_of_one_value_is_masked(redact, kind):
    secret = SECRETS[kind]
    value = {"claims": secret.split(), "about": {secret.split()[1]: 1, "n": [2, None, True]}}
    masked = redact.values(value)
    assert not pieces_left(json.dumps(masked), secret)
    assert masked["about"]["n"] == [2, None, True]
    assert len(masked["claims"]) == len(secret.split())


@pytest.mark.parametrize(
    "text",
    [
        "That is correct. Most people of the region live on rice as their staple.",
        "the walnut grows on the hill, and the old granite quarry lies in the valley behind the tulip fields",
        "incorrect batteries; the walnut",
        "The horse is in the stable; 77 % of the batteries were full.",
        "Log in at http://localhost:8080/login and refresh the page: access-control, refresh-token.",
        "-----BEGIN CERTIFICATE-----",
        "a private key begins a new line",
        "/data/project/results/run.json",
        "2024-08-15, 2024-08-06 and 20240806",
        "a harbor full of boats",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    ],
)
def test_ordinary_words_of_secrets_are_left_alone(text):
    settings = {
        "DATABASE_URL": "postgresql://karat:pw123@localhost:5432/database",
        "INDEX": "/data/project/data/index",
        "MODEL_KEY": "gpt-4o-2024-08-06",
        "PAGE": "http://localhost:9090/page",
    }
    assert Redactor({**SECRETS, **settings})(text) == text


def test_a_secret_in_a_longer_word_is_masked_whole():
    assert Redactor({"A": "abcd1234"})("xabcd1234y key%3Dabcd1234") == "x${A}y key%3D${A}"
    assert Redactor({"A": "swordfish"})("swordfishes, Swordfish, sword") == "${A}es, ${A}, sword"


def test_masking_takes_time_in_proportion_to_the_text(redact):
    text = "The quick brown fox jumps over the lazy dog and reads 12345 lines of prose. " * 3000

    def seconds(text: str) -> float:
        best = float("inf")
        for _ in range(3):
            started = time.process_time()
            redact(text)
            best = min(best, time.process_time() - started)
        return best

    assert seconds(text * 4) < 8 * seconds(text)


# A raw MCP server over stdio that repeats its secrets in every way, and prints them as it goes.
SERVER = """
import json, os, sys
KEY, PHRASE = os.environ["KEY"], os.environ["PHRASE"]
WAYS = {
    "whole": lambda secret: secret,
    "lines": lambda secret: json.dumps(secret.split("\\n")),
    "words": lambda secret: "\\n".join(secret.split()),
    "cut": lambda secret: secret[:30] + "..." + secret[-22:],
    "case": lambda secret: secret.upper(),
}
for line in sys.stdin:
    asked = json.loads(line)
    method, result = asked.get("method"), None
    if method == "initialize":
        version = asked["params"]["protocolVersion"]
        about = {"name": "s", "version": "1"}
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
    elif method == "tools/list":
        result = {"tools": [{"name": "tell", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        way = asked["params"]["arguments"]["way"]
        for secret in (KEY, PHRASE):
            for at in range(0, len(secret), 16):
                sys.stderr.write(secret[at : at + 16])
                sys.stderr.flush()
            print(WAYS.get(way, str)(secret), file=sys.stderr, flush=True)
        if way == "dies":
            sys.exit(3)
        text = WAYS.get(way, str)(KEY) + " and " + WAYS.get(way, str)(PHRASE)
        result = {"content": [{"type": "text", "text": text}], "isError": way == "error"}
    if "id" in asked:
        answer = {"result": result} if result is not None else {"error": {"code": -32601, "message": "no such method"}}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""

EXPERIMENT = """
name: pieces
dataset: {path: q.jsonl}
agent: {type: mcp, tool: tell}
mcp_servers: {s: {command: python, args: [server.py], env: {KEY: "${KEY}", PHRASE: "${PHRASE}"}}}
conditions: {c: {mcp_servers: [s]}}
scorers: [{mcp_result: {error: false}}, contains]
execution: {num_repetitions: 1, retry: {max_attempts: 1}, max_failures: 100}
"""


@pytest.mark.needs_package("karat_servers")
def test_no_piece_of_a_secret_that_a_server_repeats_is_in_a_file_or_on_the_terminal(tmp_path):
    key, phrase = SECRETS["EC_KEY"], SECRETS["PASS_PHRASE"]
    ways = ("whole", "lines", "words", "cut", "case", "error", "dies")
    rows = [{"question": way, "answer": key.split()[4], "arguments": {"way": way}} for way in ways]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "experiment.yaml").write_text(EXPERIMENT)
    done = subprocess.run(
        [sys.executable, "-m", "karat", "run", "experiment.yaml", "--events"],
        cwd=tmp_path, env={**os.environ, "KEY": key, "PHRASE": phrase}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    written = {path.name: path.read_text() for path in (tmp_path / "results").rglob("*") if path.is_file()}
    texts = {**written, "stdout": done.stdout, "stderr": done.stderr}
    assert written["journal.jsonl"].count("${KEY}") >= len(ways)
    for secret in (key, phrase):
        assert not {name: left for name, text in texts.items() if (left := pieces_left(text, secret))}


def test_an_agent_gets_a_result_without_the_secret_that_a_server_repeats(tmp_path):
    key, phrase = SECRETS["EC_KEY"], SECRETS["PASS_PHRASE"]
    (tmp_path / "server.py").write_text(SERVER)
    env = {"KEY": key, "PHRASE": phrase}
    server = McpServer(name="s", type="stdio", command="python", args=("server.py",), env=env)
    condition = Condition(name="c", position=0, digest="", agent=AgentSpec(type="mcp"), mcp_servers=(server,))

    async def story():
        async with Toolbox((server,), redact=Redactor(env), folder=tmp_path) as box:
            with Attempt("t-1"):
                async with box.open(condition) as tools:
                    return [await tools.call("s", "tell", {"way": way}) for way in ("whole", "lines", "words", "error")]

    for call in asyncio.run(story()):
        text = f"{call.result} {call.error}"
        assert "${KEY}" in text
        assert not pieces_left(text, key) | pieces_left(text, phrase)


def test_what_a_scorer_derives_from_an_answer_holds_no_piece(tmp_path):
    """The judge by overlap lists the claims of an answer one by one."""
    key, phrase = SECRETS["EC_KEY"], SECRETS["PASS_PHRASE"]
    (tmp_path / "q.jsonl").write_text(json.dumps({"question": "q", "answer": f"No idea. {phrase}"}) + "\n")
    (tmp_path / "echo.py").write_text("import os\ndef query(question):\n    return os.environ['A'] + os.environ['B']\n")
    (tmp_path / "experiment.yaml").write_text(
        "name: r\ndataset: {path: q.jsonl}\nagent: {type: python, target: 'echo:query'}\njudge: {type: overlap}\n"
        "secrets: [A, B]\nconditions: {a: {}}\nexecution: {num_repetitions: 1}\n"
    )
    subprocess.run(
        [sys.executable, "-m", "karat", "run", "experiment.yaml", "--quiet"],
        cwd=tmp_path, env={**os.environ, "A": key, "B": phrase}, capture_output=True, check=True,
    )  # fmt: skip
    (run,) = (tmp_path / "results").iterdir()
    written = "".join(path.read_text() for path in run.rglob("*") if path.is_file())
    assert '"claims"' in written
    assert not pieces_left(written, key) | pieces_left(written, phrase)


def test_a_token_that_is_learned_during_a_run_is_masked_in_its_journal():
    redact = Redactor({})
    codec = Codec(redact)
    redact.learn("token of s", [SECRETS["ACCESS_TOKEN"]])
    assert not pieces_left(codec.line({"text": SECRETS["ACCESS_TOKEN"]}).decode(), SECRETS["ACCESS_TOKEN"][7:])


def test_what_an_agent_prints_is_masked_across_lines():
    shown: list[str] = []
    show = _in_context(Redactor({"PHRASE": SECRETS["PASS_PHRASE"]}), shown.append)
    for line in ("tulip. Granite", "walnut 77", "an ordinary line"):
        show(line)
    assert shown[1:] == ["${PHRASE}", "an ordinary line"]


def test_a_mask_is_not_masked_again_where_a_secret_is_like_its_name():
    redact = Redactor({"USER_NAME": "user_name_of_ann", "TOKEN": "s3cr3t-v4lu3"})
    written = "${USER_NAME} and ${TOKEN}"
    assert redact(written) == redact(redact("user_name_of_ann and s3cr3t-v4lu3")) == written
    assert redact("${s3cr3t-v4lu3}") == "${${TOKEN}}", "only names are kept"
