"""What agents, tools, datasets and run folders may say: texts that want to be more than text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from karat.journal import RunFolder
from karat.records import Metric, Reply, Sample, Turn

HOSTILE = {
    "script": "<script>window.pwned=1</script>",
    "end of script": "</script><script>window.pwned=1</script>",
    "end of style": "</style><style>*{display:none}</style>",
    "end of title": "</title><script>window.pwned=1</script>",
    "comment": "<!--<script>window.pwned=1",
    "handler": "<img src=x onerror=window.pwned=1>",
    "attribute": '" onmouseover="window.pwned=1" x=\'',
    "svg": "<svg onload=window.pwned=1><a xlink:href=javascript:window.pwned=1>x</a></svg>",
    "frame": "<iframe srcdoc='<script>parent.pwned=1</script>'></iframe>",
    "meta": "<meta http-equiv=refresh content='0;url=https://evil.example/'>",
    "base": "<base href='https://evil.example/'>",
    "link": "[click](javascript:window.pwned=1) [data](data:text/html,<script>window.pwned=1</script>)",
    "picture": "![x](https://evil.example/x.png)",
    "reference": "[a]: javascript:window.pwned=1\n\n[a]",
    "style": "<p style='position:fixed;inset:0'>over everything</p>",
    "template": "{{ 7 * 7 }} {% for x in (1).__class__.__mro__ %}{{ x }}{% endfor %} ${7*7} <%= 7 %>",
    "expression": "datum['constructor']('window.pwned=1')()",
    "escape": "\x1b[31mred\x1b]0;title\x07\x00\x08",
    "separators": "a\u2028b\u2029c\u0085d",
    "bidi": "safe\u202egnp.exe\u202c \u2066x\u2069 \u061c",
    "invisible": "a\u200bb\ufeffc\u2060d \U000e0041\U000e0042",
    "surrogate": "half \ud800 of a pair",
    "piled": "Z" + "\u0301" * 60,
    "wide": "漢字" * 60,
    "unbroken": "w" * 900,
    "entities": "&lt;b&gt; &amp;#x3c;",
}
ALL = " ¶ ".join(HOSTILE.values())


def written(text: str) -> str:
    """As a run folder holds it: what writes one mends halves of surrogate pairs."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def hostile_run(folder: Path, journals: Any, *, text: str = ALL, rows: int = 4) -> RunFolder:
    """A run in which every foreign field is this text; names get a number, so that they stay apart."""
    text = written(text)
    conditions = (f"{text} one", f"{text} two")
    samples = [
        Sample(
            id=f"{row} {text}", position=row, digest=f"{row:032x}", metadata={text: text},
            turns=(Turn(question=f"{row} {text}", golden=f"golden {text}"),),
        )
        for row in range(rows)
    ]  # fmt: skip
    metric = Metric(name=f"{text} metric", low=1, high=5, kind="ordinal", description=text)
    scorer = msgspec.structs.replace(
        journals.JUDGE, name=f"{text} judge", metrics=(metric,), rubric=text, rubric_digest=text, offline=False,
        options={text: text}, provenance={"judges": [text], "prompt": text, text: text},
    )  # fmt: skip
    script = journals.Script(
        folder, samples=samples, conditions=conditions, repetitions=2, scorers=(scorer,), name=f"{text} name",
        version=text, created=text, agent_type=text, agent_model=text, host=text, versions={text: text},
        source={"file": text, text: text}, prompts=dict.fromkeys(conditions, text),
    )  # fmt: skip
    (folder / "experiment.yaml").write_text(f"# {text}\n", encoding="utf-8", errors="replace")
    for row in range(rows):
        for repetition in range(2):
            for place, condition in enumerate(conditions):
                if (row, repetition, place) == (3, 1, 1):
                    script.failure(row, condition, repetition, kind=text, message=text)
                    continue
                script.answer(row, condition, repetition, reply=Reply(text=text, dollars=0.01))
                script.score(
                    row, condition, repetition, scorer=scorer, value=1 + (row + place) % 4,
                    reasons={metric.name: text}, claims=(text, f"{text} again"),
                )  # fmt: skip
    return script.end()
