#!/usr/bin/env python3
"""Run the tests in which processes die, and print what came of each death.

  kill_matrix.py     run them, print the table of all deaths and a summary
  RECORD=1           also put the summary into README.md

A death is a process that ends by SIGTERM or by kill -9 before one step; the
steps stand in test/lib/KillSteps.pm.
"""

import collections
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = sorted(path.stem for pattern in ("*_kill_*.pl", "*_zombie*.pl")
               for path in (ROOT / "test/t").glob(pattern))

Death = collections.namedtuple(
    "Death", "phase_number step_number phase process step signal outcome")


def run_tests(folder):
    """Return the exit status of the tests, which write into the folder."""
    environment = dict(os.environ, KILL_MATRIX_RESULTS=folder)
    return subprocess.run(
        [ROOT / "test/tools/run-tests", "--only", "tap", *TESTS],
        env=environment, check=False).returncode


def deaths_in(folder):
    """Return all deaths in the order of the steps."""
    deaths = []
    for path in pathlib.Path(folder).iterdir():
        for line in path.read_text("utf-8").splitlines():
            fields = line.split("\t")
            deaths.append(Death(int(fields[0]), int(fields[1]), *fields[2:]))
    return sorted(deaths)


def all_deaths(deaths):
    """One line per step."""
    lines = ["| phase | process | dies before | SIGTERM | SIGKILL |",
             "| --- | --- | --- | --- | --- |"]
    steps = {}
    for death in deaths:
        key = (death.phase, death.process, death.step)
        steps.setdefault(key, {})[death.signal] = death.outcome
    for key, outcomes in steps.items():
        lines.append("| " + " | ".join(
            [*key, outcomes.get("TERM", "-"), outcomes.get("KILL", "-")])
            + " |")
    return lines


def summary(deaths):
    """One line per phase."""
    lines = ["| phase | process | steps | deaths | what the ledger shows |",
             "| --- | --- | --- | --- | --- |"]
    phases = {}
    for death in deaths:
        phases.setdefault((death.phase, death.process), []).append(death)
    for (phase, process), found in phases.items():
        outcomes = collections.Counter(death.outcome for death in found)
        lines.append("| {} | {} | {} | {} | {} |".format(
            phase, process, len({death.step for death in found}), len(found),
            "; ".join(f"{count} {outcome}"
                      for outcome, count in outcomes.most_common())))
    lines.append(f"| all | | {len({d[:2] for d in deaths})} | {len(deaths)} "
                 "| each request carried out once; no other fault |")
    return lines


def main():
    folder = tempfile.mkdtemp(prefix="pg-evidence-kill-")
    try:
        # The tests may run as another user.
        os.chmod(folder, 0o777)
        status = run_tests(folder)
        deaths = deaths_in(folder)
    finally:
        shutil.rmtree(folder)
    if status != 0:
        sys.exit("kill_matrix: a test failed, so there is no table")

    table = "\n".join(summary(deaths))
    print("", *all_deaths(deaths), "", table, sep="\n")
    if os.environ.get("RECORD") == "1":
        subprocess.run(
            [ROOT / "test/tools/record_result.py", "kill",
             "--command", "make kill-matrix"],
            input=table + "\n", text=True, check=True)


main()
