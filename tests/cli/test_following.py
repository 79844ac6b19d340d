"""What is shown while a run goes on, behind whatever stands for standard error."""

from __future__ import annotations

from contextlib import redirect_stderr

from karat.cli.live import following
from karat.cli.output import Output
from karat.redact import Redactor


class Plain:
    """A stream of another program's, without a file behind it."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False


def test_only_events_need_a_descriptor() -> None:
    with redirect_stderr(Plain()), following(Output(), Redactor({})) as status:
        assert status.planned == 0
