"""What all tests stand on: no network but this machine, golden files, and the data beside the checkout."""

from __future__ import annotations

import atexit
import difflib
import gc
import importlib.util
import inspect
import ipaddress
import math
import os
import re
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, chdir
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import hypothesis
import pytest
from tests.needed_packages import has_kind, has_package, needed_packages

from karat.testing.mcp_server import serving

# A busy machine is slow at making up examples, too, and that says nothing of the code.
SETTINGS = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile("karat", SETTINGS, max_examples=10)
hypothesis.settings.register_profile("deep", SETTINGS, max_examples=30)  # `make test-slow`
hypothesis.settings.register_profile("brief", SETTINGS, max_examples=5)  # `make test-core`
hypothesis.settings.load_profile("karat")

# Fixtures that several folders share.
pytest_plugins = (
    "tests.judging_answers",
    "tests.running_commands",
    "tests.study_runs",
)

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
SHARED_DATA = ROOT.parent / "shared" / "data"
# Debian's. The one without a window takes half the processor's time.
CHROMIUMS = (Path("/usr/bin/chromium-headless-shell"), Path("/usr/bin/chromium"))

# Files of half a minute and more that run first, so that none of them is what all others wait for at the end, and then
# the longest of those whose tests are quick.
LONGEST = (
    "karat_scale/test_ray.py",
    "karat_scale/test_ray_sharing.py",
    "browser/test_every_page.py",
    "karat_coding/test_acp_agents.py",
    "execution/test_faults.py",
    "test_kinds_apart.py",
    "models/test_rates.py",
    "test_corpus.py",
    "karat_servers/test_planted.py",
    "karat_studies/test_shipped_forms_compared.py",
    "test_fuzz.py",
    "examples/test_framing.py",
    "browser/test_hostile.py",
    "browser/test_hands.py",
    "execution/test_crash.py",
    "browser/test_studies.py",
    "karat_studies/test_study_analysis.py",
    "karat_studies/test_shipped_studies.py",
    "karat_studies/test_shipped_forms.py",
    "karat_studies/test_uncertainty.py",
    "cli/test_runs.py",
    "karat_servers/mcp_parts/test_cassettes_of_runs.py",
    "karat_coding/test_claude_isolation.py",
    "karat_imports/exports/test_inspect.py",
    "karat_coding/test_claude.py",
    "karat_imports/test_mutations.py",
    "karat_studies/test_study_floor.py",
    "karat_studies/execution/test_roles.py",
    "test_docs.py",
    "test_packages_apart.py",
    "cli/test_terminal.py",
    "cli/test_gate.py",
    "karat_studies/test_study_bootstrap.py",
    "cli/test_run_rehearse.py",
    "cli/test_run.py",
    "karat_studies/execution/test_group_kills.py",
    "test_one_place.py",
    "test_imports.py",
    "cli/test_ending.py",
    "cli/test_own_agents.py",
    "test_house.py",
    "test_secrets.py",
    "cli/test_hostile_output.py",
    "cli/test_cases.py",
    "karat_studies/test_check_study.py",
    "karat_servers/mcp_parts/test_oauth.py",
    "karat_query/test_tables.py",
    "karat_coding/context_parts/test_workspaces.py",
    "execution/test_servers.py",
    "karat_studies/test_study_reducer.py",
    "agents/test_chat.py",
    "karat_imports/exports/test_eee.py",
    "karat_servers/mcp_parts/test_cassettes.py",
    "execution/test_ends.py",
    "analysis/test_gate.py",
    "karat_coding/test_claude_context.py",
    "journal/test_vanished.py",
    "karat_coding/test_acp.py",
    "karat_viewer/test_studies.py",
    "karat_viewer/test_pages.py",
    "karat_viewer/test_reviews.py",
    "karat_servers/test_check_login.py",
    "karat_studies/test_study_repeats.py",
    "exports/test_html_in_a_browser.py",
    "conformance/test_every_plugin.py",
    "stats/test_planning.py",
    "stats/test_simulation.py",
)

# What a file says that has tests for `make test-slow`, or whose folder's conftest.py marks some.
MARKED = re.compile(r"mark\.(slow|quick)\b|\bhypothesis\b").search
GOLDEN = re.compile(r"\bgolden[,)]").search
MARKS = re.compile(r"mark\.(?:slow|quick)\b")
ABOVE_A_TEST = re.compile(r"^ *@pytest\.mark\.(?:slow|quick)\b", re.MULTILINE)

_calls_outside: list[str] = []


def _refuse_the_network(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook: Python itself reports each connection and look-up, so nothing is patched."""
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event in {"socket.connect", "socket.sendto", "socket.sendmsg"}:
        address = arguments[1]
        if not isinstance(address, tuple):  # a Unix socket, or a message on a connection that was let through
            return
        host = address[0]
    else:
        return
    if not _is_here(host):
        _calls_outside.append(f"{event} {host}")
        raise RuntimeError(f"tests reach this machine only, not {host}")


def _is_here(host: str | bytes | None) -> bool:
    name = host.decode() if isinstance(host, bytes) else host
    if name in {None, "", "localhost"}:
        return True
    try:
        address = ipaddress.ip_address(str(name).partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


sys.addaudithook(_refuse_the_network)


def _give_children_default_signals() -> None:
    """Started by nohup or in the background, pytest ignores SIGHUP or SIGINT, and so would all that tests start.

    A child inherits what is ignored, but not a handler. With one that does nothing, pytest is as immune as before.
    """
    for number, handler in (
        (signal.SIGHUP, lambda *_: None),
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGTERM, lambda *_: None),
    ):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


_give_children_default_signals()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--accept", action="store_true", help="run the tests of tests/golden/, and write it anew")
    parser.addoption("--accept-corpus", action="store_true", help="write tests/corpus/expected/ anew: numbers changed")
    parser.addoption("--pictures", action="store_true", help="write docs/images/*.png anew from the pages of now")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`make test-slow` and `--accept` import no file without a test for them, which is half of all."""
    if collection_path.suffix != ".py":
        return None
    if config.option.accept:
        speaks_of_it = GOLDEN
    elif config.option.markexpr == "slow or hypothesis":
        speaks_of_it = MARKED
    else:
        return None
    sources = {collection_path, collection_path.with_name("conftest.py")} - {TESTS / "conftest.py"}
    texts = [path.read_text(encoding="utf-8") for path in sources if path.exists()]
    return None if any(map(speaks_of_it, texts)) else True


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str, obj: object) -> list[Any] | None:
    """`make test-slow` makes no cases of a test without its marks: they were nine of ten."""
    if collector.config.option.markexpr != "slow or hypothesis" or not inspect.isfunction(obj):
        return None
    marks = {mark.name for mark in [*collector.iter_markers(), *getattr(obj, "pytestmark", [])]}
    if marks & {"slow", "quick"} or getattr(obj, "is_hypothesis_test", False) or not _marks_stand_above(collector.path):
        return None
    return []


@cache
def _marks_stand_above(path: Path) -> bool:
    """Whether all marks of a file stand right above its tests, none at a parameter or in the folder's conftest.py."""
    shared = path.with_name("conftest.py")
    if shared.parent != TESTS and shared.exists() and MARKS.search(shared.read_text(encoding="utf-8")):
        return False
    text = path.read_text(encoding="utf-8")
    return len(MARKS.findall(text)) == len(ABOVE_A_TEST.findall(text))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keeps the 13,000 collected tests out of every search for garbage: `karat run` does one, which took a second."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    """A process that pytest-xdist started ends without taking all that it collected apart, which took 5 seconds.

    It has told its results by then. What is to be done at exit is done before, for it was registered later.
    """
    if hasattr(config, "workerinput"):
        atexit.register(_end_at_once, os.getpid())


def _end_at_once(worker: int) -> None:
    if os.getpid() == worker:  # not a fork of it, whose exit code counts
        os._exit(0)


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        gc.unfreeze()  # else libraries complain at exit of what was never freed


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks as slow the cases of a test that `quick(n)` leaves out, and puts the longest files first.

    `--accept` leaves the tests that read a golden file.
    """
    if config.option.accept:
        items[:] = [item for item in items if "golden" in getattr(item, "fixturenames", ())]
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("quick"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for of_test in cases.values():
        marker = of_test[0].get_closest_marker("quick")
        assert marker is not None
        kept = {number * len(of_test) // marker.args[0] for number in range(marker.args[0])}
        for number, item in enumerate(of_test):
            if number not in kept:
                item.add_marker(pytest.mark.slow)
    places = {TESTS / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(LONGEST)))


class _ModuleWithoutItsPackage(pytest.Module):
    """Tests that import a package beside the core which is not there."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        missing = [package for package in sorted(needed_packages(self.path)) if not has_package(package)]
        pytest.skip(f"{' and '.join(missing)} is not installed", allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Skips modules that need a package whose folder is gone: karat is whole without it."""
    if all(map(has_package, needed_packages(module_path))):
        return None
    return _ModuleWithoutItsPackage.from_parent(parent, path=module_path)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips tests marked with a kind or package that is not there.

    With `cases`, those whose parameters' id matches it.
    """
    for marker, there in (("needs_kind", has_kind), ("needs_package", has_package)):
        for found in item.iter_markers(marker):
            concerned = re.search(found.kwargs.get("cases", ""), item.name.partition("[")[2])
            missing = [name for name in found.args if not there(name)]
            if concerned and missing:
                pytest.skip(f"{' and '.join(missing)} is not installed")


@pytest.fixture(autouse=True)
def _network_was_left_alone() -> Iterator[None]:
    """Fails the test also where the code under test swallowed the refusal."""
    yield
    calls, _calls_outside[:] = _calls_outside[:], []
    assert not calls, f"tried to leave this machine: {calls}"


@pytest.fixture(autouse=True, scope="session")
def _no_cache_of_the_developer(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What karat keeps for its user goes to a folder of the tests."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True, scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What said where certificates are, for those who leave this machine.

    The others have none: every HTTP client reads all, which takes 20 ms of the processor's time.
    """
    said = {name: os.environ.pop(name) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if name in os.environ}
    os.environ["SSL_CERT_DIR"] = str(tmp_path_factory.mktemp("certificates"))
    return said


@pytest.fixture
def shared_data() -> Path:
    """`../shared/data`: material that is not part of the project."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"no {os.path.relpath(SHARED_DATA, ROOT)} beside this checkout")
    return SHARED_DATA


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)`: the text is what tests/golden/<name> holds; `pytest --accept` writes the file."""

    def compare(name: str, text: str) -> None:
        path = TESTS / "golden" / name
        if request.config.getoption("--accept"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
            return
        if not path.exists():
            pytest.fail(f"tests/golden/{name} is missing; `pytest --accept` writes it, then read it")
        with path.open(encoding="utf-8", newline="") as file:
            wanted = file.read()
        if not _alike(text, wanted):
            lines = difflib.unified_diff(wanted.splitlines(), text.splitlines(), f"golden/{name}", "now", lineterm="")
            pytest.fail("\n".join([*lines, "If this is right: pytest --accept"]), pytrace=False)

    return compare


_LONG = re.compile(r"-?\d+\.\d{9,}(?:e-?\d+)?")


def _alike(one: str, other: str) -> bool:
    """Equal, where numbers with nine decimals and more may differ by 1e-9 of their size: versions of SciPy do."""
    numbers = zip(_LONG.findall(one), _LONG.findall(other), strict=False)
    return _LONG.sub("#", one) == _LONG.sub("#", other) and all(
        math.isclose(float(first), float(second), rel_tol=1e-9) for first, second in numbers
    )


@pytest.fixture(scope="session")
def shared_server() -> Iterator[Callable[[str], str]]:
    """`shared_server("http")`: the URL of one scripted MCP server, for all tests that leave it as it is."""
    with ExitStack() as servers:
        yield cache(lambda transport: servers.enter_context(serving(transport)))


@pytest.fixture(scope="session")
def chromium() -> Path:
    """The program; without it, or what drives it, the test is skipped and says so."""
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed: the extra dev has it")
    for program in CHROMIUMS:
        if program.exists():
            return program
    pytest.skip(f"no {CHROMIUMS[0]}: apt-get install {CHROMIUMS[0].name}")


@pytest.fixture(scope="module")
def browser(chromium: Path) -> Iterator[Any]:
    """A real Chromium, driven by Playwright. It ends with the module: its event loop is in the way of others."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=str(chromium))
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def journals() -> ModuleType:
    """The module that writes scripted journals. Tests are no package, so it is loaded from its file."""
    name = "karat_tests_journals"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, TESTS / "analysis" / "journals.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """An empty working directory."""
    with chdir(tmp_path):
        yield tmp_path
