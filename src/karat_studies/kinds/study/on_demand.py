"""What a study needs besides being asked, loaded when it is first used: it takes NumPy and SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat.lazy import lazy

if TYPE_CHECKING:
    from karat_studies.kinds.study.analysis.compare_runs import compare_studies
    from karat_studies.kinds.study.analysis.summary import study
    from karat_studies.kinds.study.contents import check_studies, lint, shipped_page, shipped_pages
    from karat_studies.kinds.study.kept import keep_studies
    from karat_studies.kinds.study.sections import sections
    from karat_studies.kinds.study.tests_command import study_tests
    from karat_studies.kinds.study.views import StudyViews

__all__ = [
    "StudyViews",
    "check_studies",
    "compare_studies",
    "keep_studies",
    "lint",
    "sections",
    "shipped_page",
    "shipped_pages",
    "study",
    "study_tests",
]

__getattr__, __dir__ = lazy(
    __package__,
    {
        "analysis.compare_runs": "compare_studies",
        "analysis.summary": "study",
        "contents": "check_studies lint shipped_page shipped_pages",
        "kept": "keep_studies",
        "sections": "sections",
        "tests_command": "study_tests",
        "views": "StudyViews",
    },
)
