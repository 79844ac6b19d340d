"""Experiment files over human studies with something wrong in them: name → text. `studies` is a folder of the tests."""

from __future__ import annotations

__all__ = ["CASES"]

_AGENT = "agent: {type: floor}\n"
_FRAMING = "dataset: {kind: study, path: framing}\n" + _AGENT
_EMPTY = _AGENT + "conditions: {a: {}}\n"


def _asks(prompt: str, path: str = "studies") -> str:
    return f"dataset: {{kind: study, path: {path}}}\n{_AGENT}conditions:\n  a: {{system_prompt: '{prompt}'}}\n"


CASES: dict[str, str] = {
    # where the study lies
    "a misspelt shipped study": "dataset: {kind: study, path: framng}\n" + _EMPTY,
    "a misspelt file beside the experiment": "dataset: {kind: study, path: studies/one/studdy.yaml}\n" + _EMPTY,
    "a misspelt folder": "dataset: {kind: study, path: studdies}\n" + _EMPTY,
    "a folder without a study": "dataset: {kind: study, path: plain}\n" + _EMPTY,
    "nothing at all": "dataset: {kind: study, path: no/such/thing.yaml}\n" + _EMPTY,
    "an empty path": "dataset: {kind: study, path: ''}\n" + _EMPTY,
    "a blank path": "dataset: {kind: study, path: ' '}\n" + _EMPTY,
    "no path": "dataset: {kind: study}\n" + _EMPTY,
    "a path that is a list": "dataset: {kind: study, path: [framing, trust]}\n" + _EMPTY,
    "a shipped study as golden answers": "dataset: {path: framing}\njudge: {type: overlap}\n" + _EMPTY,
    "a folder of studies as golden answers": "dataset: {path: studies}\njudge: {type: overlap}\n" + _EMPTY,
    "a study's folder as golden answers": "dataset: {path: studies/one}\njudge: {type: overlap}\n" + _EMPTY,
    # its options
    "options that are none": "dataset:\n"
    "  {kind: study, path: framing, seed: x, per_arm: 0, arm: gain, arms: 3, study: a}\n" + _EMPTY,
    # presets
    "a misspelt preset": _FRAMING + "conditions: {a: {preset: demografic}}\n",
    "a preset that is no text": _FRAMING + "conditions: {a: {preset: [human]}}\n",
    "a preset and a prompt": _FRAMING + "conditions: {a: {preset: human, system_prompt: Be brief.}}\n",
    "presets for golden answers": f"dataset: {{path: questions.jsonl}}\njudge: {{type: overlap}}\n{_AGENT}"
    "conditions: {a: {preset: human}, b: {preset: empty}}\n",
    "presets that have nothing to say": f"dataset: {{kind: study, path: studies/nobody}}\n{_AGENT}"
    "conditions: {a: {preset: demographic}, b: {preset: background}, c: {preset: human}}\n",
    "a preset for other attributes": f"dataset: {{kind: study, path: studies/other}}\n{_AGENT}"
    "conditions: {a: {preset: demographic}, b: {preset: background}}\n",
    # {{ profile.… }}
    "names that nobody has": _asks("You are {{ profile.agee }} and {{ age }}, {{profile}}, {{ nonsense }}.", "framing"),
    "names that are none": _asks("{{ }} {{ 1 + 1 }} {{ profile.__class__ }}", "framing"),
    "a name that some studies do not have": _asks("You live in {{ profile.country }}."),
    "a left-out line of what nobody has": _asks("{{? profile.jobb }}You are {{ profile.jobb }}.", "framing"),
    "a left-out line that is not the whole line": _asks("You are {{? profile.age }}{{ profile.age }}.", "framing"),
    "a study that says nothing of anybody": _asks("You are {{ profile.age }}.", "studies/nobody"),
    "everything at once": "dataset: {kind: study, path: framing, sed: 3}\nagent: {type: flor}\nconditions:\n"
    "  a: {preset: humann}\n  b: {preset: human, system_prompt: x}\n",
}
