"""The official conformance suite of MCP, client side: karat beside the SDK's own client.

    python benchmarks/mcp_conformance.py [--scenario NAME] [--only karat,sdk] [--json FILE]

The suite and the Node.js that it needs are installed once from npm into `build/conformance/`; nothing else uses the
network. Each scenario is a server on this machine that judges what a client sends. karat is given to it as
`conformance_programs/karat_client.py`, an experiment of the agent `mcp`, and the SDK as `sdk_client.py`, used plainly.
A warning counts as failed, as the suite counts it. The limit: karat passes what the SDK passes.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import _results as results  # beside this file
from limits import Limits

HERE = Path(__file__).resolve().parent
PLACE = HERE.parent / "build" / "conformance"
SUITE = "@modelcontextprotocol/conformance"
VERSION = "0.2.0-alpha.12"
NODE = "22"
SECONDS = 90  # for one scenario
OTHERS = "sep-2640-"  # skills, of which neither client knows: what they check is that nothing is read


def install() -> list[str]:
    """The command of the suite, which is installed if it is missing."""
    suite = PLACE / "node_modules" / SUITE / "dist" / "index.js"
    node = PLACE / "node_modules" / ".bin" / "node"
    if not suite.exists() or not node.exists():
        PLACE.mkdir(parents=True, exist_ok=True)
        (PLACE / "package.json").write_text("{}", encoding="utf-8")  # npm wants one
        packages = [f"{SUITE}@{VERSION}", f"node@{NODE}"]
        subprocess.run(["npm", "install", "--prefix", str(PLACE), "--no-fund", "--no-audit", *packages], check=True)
    return [str(node), str(suite)]


def scenarios(suite: list[str]) -> list[str]:
    """The names of all scenarios for clients, in the suite's order."""
    listed = subprocess.run([*suite, "list", "--client"], check=True, stdout=subprocess.PIPE, text=True).stdout
    names = re.findall(r"^  - (\S+) \[", listed, re.MULTILINE)
    return [name for name in names if not name.startswith(OTHERS)]


def failed(suite: list[str], client: str, scenario: str) -> str | None:
    """Why the client fails a scenario: the suite's first line on it; None if it passes."""
    program = HERE / "conformance_programs" / f"{client}_client.py"
    out = PLACE / "runs" / client
    out.mkdir(parents=True, exist_ok=True)
    options = ["--scenario", scenario, "--timeout", str(SECONDS * 1000)]
    process = subprocess.run(
        [*suite, "client", "--command", f"{sys.executable} {program}", *options],
        env={**os.environ, "OUT": str(out)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    (out / f"{scenario.replace('/', '_')}.txt").write_text(process.stdout, encoding="utf-8")
    if process.returncode == 0:
        return None
    named = re.findall(r"^  - (.+)$", process.stdout, re.MULTILINE)
    return named[0] if named else process.stdout.strip().splitlines()[-1]


def main() -> None:
    options = results.parser(__doc__)
    options.add_argument("--scenario", action="append", default=[], help="only this one; may be given again")
    options.add_argument("--only", default="karat,sdk", help="the clients (default: %(default)s)")
    chosen = options.parse_args()
    suite = install()
    names, clients = chosen.scenario or scenarios(suite), chosen.only.split(",")
    reasons: dict[str, dict[str, str]] = {client: {} for client in clients}
    for name in names:
        for client in clients:
            if (reason := failed(suite, client, name)) is not None:
                reasons[client][name] = reason
                print(f"{client} fails {name}: {reason}", flush=True)
    limits = Limits()
    for client in clients:
        passed = len(names) - len(reasons[client])
        print(f"{client}: {passed} of {len(names)}", flush=True)
        limits.note(f"{client}: scenarios passed of {len(names)}", passed)
    if {"karat", "sdk"} <= reasons.keys():
        limits.check("karat fails and the SDK passes", len(reasons["karat"].keys() - reasons["sdk"]), "≤", 0)
    notes = [f"{client} fails {name}: {reason}" for client in clients for name, reason in reasons[client].items()]
    about = f"`{SUITE}` {VERSION}, {len(names)} scenarios."
    section = {**limits.section("MCP conformance, client side", about), "notes": notes}
    results.write(chosen.json, section)
    (PLACE / "failed.json").write_text(json.dumps(reasons, indent=1), encoding="utf-8")
    limits.exit()


if __name__ == "__main__":
    main()
