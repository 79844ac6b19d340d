"""Names that guides documented under `karat.datasets`, imported from where they are now."""

from __future__ import annotations

import importlib

_HOMES = {
    "Dataset": "kinds:Dataset",
    "sample_digest": "kinds:sample_digest",
    "StudyRun": "kinds.study.bootstrap:StudyRun",
    "read_study": "kinds.study.reading:read_study",
    "shipped_studies": "kinds.study.places:shipped_studies",
    "study_draws": "kinds.study.bootstrap:study_draws",
    "study_experiments": "kinds.study.experiments:study_experiments",
    "study_responses": "kinds.study.samples:responses_of",
    "study_samples": "kinds.study:study_samples",
    "study_tests": "kinds.study.experiments:to_study_tests",
}


def __getattr__(name: str) -> object:
    module, _, attribute = _HOMES.get(name, "").partition(":")
    if not attribute:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"karat.{module}"), attribute)
