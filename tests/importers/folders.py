"""Study folders as HumanStudy-Bench has them, made up for tests: one that can be read whole, and changes to it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

ITEM = {
    "id": "rating",
    "question": "How much would you pay?",
    "options": ["0 (nothing)", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10 (all)"],
    "type": "likert",
}
WHOLE: dict[str, Any] = {
    "metadata.json": {"title": "Prices and frames", "domain": "cognition", "scenarios": ["gain", "loss"]},
    "specification.json": {
        "participants": {
            "n": 80,
            "population": "Students",
            "demographics": {"age_range": "18–25", "gender": {"women": 60, "men": 20}},
            "by_sub_study": {"gain": {"n": 40}, "loss": {"n": 40}},
        },
        "design": {"type": "Between-Subjects", "factors": [{"name": "Frame", "levels": ["gain", "loss"]}]},
    },
    "ground_truth.json": {
        "title": "Prices and frames",
        "authors": ["A. Author", "B. Writer"],
        "year": 1999,
        "studies": [
            {
                "study_id": "Experiment 1",
                "findings": [
                    {
                        "finding_id": "F1",
                        "main_hypothesis": "Gains are worth more.",
                        "statistical_tests": [
                            {
                                "test_name": "Student's t-test",
                                "statistical_hypothesis": "Mean(gain) > Mean(loss)",
                                "reported_statistics": "t(78) = 2.97, p < .01",
                            }
                        ],
                        "original_data_points": {
                            "description": "Prices",
                            "data": {
                                "gain": {"mean": 5.2, "sd": 1.1, "n": 40},
                                "loss": {"mean": 4.4, "sd": 1.3, "n": 40},
                            },
                        },
                    }
                ],
            }
        ],
    },
    "materials/gain.json": {"sub_study_id": "gain", "instructions": "You win a mug.", "items": [ITEM]},
    "materials/loss.json": {"sub_study_id": "loss", "instructions": "You lose a mug.", "items": [ITEM]},
}


def whole() -> dict[str, Any]:
    """A folder that says everything: path → content."""
    return copy.deepcopy(WHOLE)


def written(folder: Path, files: dict[str, Any]) -> Path:
    """Texts and bytes as they are, everything else as JSON."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return folder


def said_as(text: Any) -> dict[str, Any]:
    """The whole folder with another result in the one string."""
    files = whole()
    finding(files)["statistical_tests"][0]["reported_statistics"] = text
    return files


def finding(files: dict[str, Any]) -> dict[str, Any]:
    """Its one finding."""
    first: dict[str, Any] = files["ground_truth.json"]["studies"][0]["findings"][0]
    return first
