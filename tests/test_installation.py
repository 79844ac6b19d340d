"""Hints about missing packages install into the environment in use, and never another project's package."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from karat.installation import DISTRIBUTION

ROOT = Path(__file__).resolve().parent.parent
ASK = """
from karat.installation import install_command, install_extra_command
print(install_extra_command('plots'))
print(install_command('pandas'))
"""


def commands(python: Path, folder: Path, **environment: str) -> list[str]:
    """The two hints as a process of `python` started in `folder` prints them."""
    given = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin", **environment}
    done = subprocess.run([python, "-c", ASK], cwd=folder, env=given, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A virtual environment without pip, as uv makes them."""
    venv.create(tmp_path / ".venv", with_pip=False)
    return tmp_path / ".venv"


def installed(environment: Path, direct_url: object) -> None:
    """Records karat's distribution in the environment, as an installer would."""
    (packages,) = environment.glob("lib/python*/site-packages")
    folder = packages / "karat_eval-0.1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.3\nName: {DISTRIBUTION}\nVersion: 0.1.0\n")
    if direct_url is not None:
        (folder / "direct_url.json").write_text(json.dumps(direct_url))


def test_an_environment_without_pip_is_told_to_use_uv(environment):
    assert commands(environment / "bin" / "python", environment.parent)[1] == (
        "uv pip install --python .venv/bin/python pandas"
    )


def test_the_pip_of_the_environment_is_named_by_its_path_unless_the_shell_finds_it(environment):
    pip = environment / "bin" / "pip"
    pip.write_text("#!/bin/sh\n")
    pip.chmod(0o755)
    python = environment / "bin" / "python"
    assert commands(python, environment.parent)[1] == ".venv/bin/pip install pandas"
    assert commands(python, ROOT)[1] == f"{pip} install pandas"
    assert commands(python, ROOT, PATH=f"{environment / 'bin'}:/usr/bin")[1] == "pip install pandas"


@pytest.mark.parametrize(
    ("direct_url", "requirement"),
    [
        (None, "'karat-eval[plots]'"),
        ({"url": "file:///tmp/some%20where", "dir_info": {"editable": True}}, "-e '/tmp/some where[plots]'"),
        ({"url": "file:///tmp/checkout", "dir_info": {}}, "'/tmp/checkout[plots]'"),
        (
            {"url": "file:///tmp/karat_eval-1.whl", "archive_info": {}},
            "'karat-eval[plots] @ file:///tmp/karat_eval-1.whl'",
        ),
        (
            {"url": "https://example.org/k.git", "vcs_info": {"vcs": "git", "commit_id": "ab12"}},
            "'karat-eval[plots] @ git+https://example.org/k.git@ab12'",
        ),
    ],
    ids=["index", "editable", "folder", "wheel", "git"],
)
def test_an_extra_is_installed_from_where_karat_came_from(environment, direct_url, requirement):
    installed(environment, direct_url)
    hint = commands(environment / "bin" / "python", environment.parent)[0]
    assert hint == f"uv pip install --python .venv/bin/python {requirement}"


def test_from_the_sources_the_checkout_is_named(environment):
    python = environment / "bin" / "python"
    assert commands(python, ROOT)[0].endswith(" -e '.[plots]'")
    assert commands(python, ROOT.parent)[0].endswith(f" -e './{ROOT.name}[plots]'")


RECORDED = "tests/corpus/runs/"  # what agents found in the pages of their day


def test_no_page_and_no_message_names_the_other_project_to_pip():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    stranger = re.compile(r"pip3? install[^\n`#]*(?<![\w./-])karat(?![\w-])")
    found = [
        f"{name}: {match.group()}"
        for name in listed.split("\0")
        if name
        and not name.startswith(RECORDED)
        and (ROOT / name).suffix in {".md", ".py", ".in", ".toml", ".yaml", ".jsonl", ".html", ".j2"}
        for match in stranger.finditer((ROOT / name).read_text(encoding="utf-8"))
    ]
    assert found == []
    for package in ("'karat[plots]'", "--upgrade karat"):  # the pattern finds what it should
        assert stranger.search(f"pip install {package}")


def test_the_distribution_is_called_as_the_hints_say():
    import tomllib

    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["name"] == DISTRIBUTION
    assert Path(sys.modules["karat"].__file__).is_relative_to(ROOT)
