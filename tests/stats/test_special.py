"""The functions of scipy.special, without loading all of it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import scipy.special
from tests.needed_packages import EVERY_PACKAGE

import karat
from karat.stats import special

SOURCES = Path(karat.__file__).parents[1].glob("karat*/**/*.py")
USED = {name for path in SOURCES for name in re.findall(r"\bspecial\.([a-z]\w+)\(", path.read_text("utf-8"))}

ALONE = """
import sys
from karat.stats.special import stdtrit
assert "scipy.special" not in sys.modules and "scipy.special._orthogonal" not in sys.modules
import scipy.special, scipy.optimize
assert scipy.special.stdtrit is stdtrit and scipy.special.softmax is not None
print(stdtrit(5, 0.975))
"""


@pytest.mark.needs_package(*EVERY_PACKAGE)
def test_the_functions_are_scipy_s_own():
    assert {name for name in USED if getattr(special, name) is not getattr(scipy.special, name)} == set()
    assert len(USED) > 20


def test_they_come_without_the_package_which_can_still_be_imported():
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == f"{scipy.special.stdtrit(5, 0.975)}\n"


AT_ONCE = """
import sys, threading
from karat.stats import special
sys.setswitchinterval(1e-6)
start, found = threading.Barrier(8), []
names = ("ndtr", "ndtri", "stdtr", "stdtrit", "chdtrc", "fdtrc", "erfc", "erfcx")
def first_use(name):
    start.wait()
    found.append(getattr(special, name)(*[0.5] * getattr(special, name).nin) > -1)
threads = [threading.Thread(target=first_use, args=(name,)) for name in names]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(len(found), all(found))
"""


def test_many_threads_may_be_the_first_to_use_one():
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", AT_ONCE], capture_output=True, text=True, timeout=60)
        assert (done.stdout, done.stderr) == ("8 True\n", "")
