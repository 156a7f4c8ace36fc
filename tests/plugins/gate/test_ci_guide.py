"""docs/ci.md: its workflow runs as it stands, passes what has not changed and stops what is worse."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
import yaml

from processes import ROOT, RUN, clean_environment
from ragauge.plugins.gate.rules import read_gate_file

pytestmark = pytest.mark.slow


def files() -> dict[str, str]:
    """The files that the guide shows, by the name in their first line."""
    guide = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```yaml\n# (\S+)\n(.*?)```", guide, re.DOTALL)
    return dict(blocks)


def test_the_workflow_of_the_guide_runs_as_it_stands_and_stops_what_is_worse(tmp_path: Path) -> None:
    for name, text in files().items():
        for side in (tmp_path, tmp_path / "base"):
            (side / name).parent.mkdir(parents=True, exist_ok=True)
            (side / name).write_text(text, encoding="utf-8")
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "ragauge").write_text(f'#!/bin/sh\nexec {sys.executable} {RUN} "$@"\n')
    (commands / "ragauge").chmod(0o755)
    workflow: dict[Any, Any] = yaml.safe_load((tmp_path / ".github/workflows/gate.yml").read_text())
    steps = {step["name"]: step["run"] for step in workflow["jobs"]["gate"]["steps"] if "run" in step}
    assert list(steps) == ["Install", "Measure the base", "Measure the change", "Gate"]
    summary = tmp_path / "summary.md"
    path = f"{commands}:{os.environ['PATH']}"
    environment = clean_environment(PATH=path, GITHUB_STEP_SUMMARY=str(summary))

    def done(step: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-e", "-c", steps[step]], cwd=tmp_path, env=environment, capture_output=True, text=True,
            timeout=1200, check=False,
        )  # fmt: skip

    for step, code in (("Measure the base", 0), ("Measure the change", 0), ("Gate", 0)):
        ended = done(step)
        assert ended.returncode == code, ended.stdout + ended.stderr
    assert "::error" not in ended.stdout
    system = tmp_path / "rag" / "experiment" / "app.yaml"
    system.write_text(system.read_text().replace("n_tokens: 100", "n_tokens: 40"))
    for step, code in (("Measure the change", 0), ("Gate", 3)):
        ended = done(step)
        assert ended.returncode == code, ended.stdout + ended.stderr
    assert "::error title=" in ended.stdout
    cases = ElementTree.parse(tmp_path / "ci" / "gate.xml").getroot().findall("testsuite/testcase")
    assert len(cases) == 8
    assert any(case.find("failure") is not None for case in cases)
    assert summary.read_text(encoding="utf-8").startswith("### Quality gate failed")


def test_the_gate_file_of_the_guide_is_one(tmp_path: Path) -> None:
    (tmp_path / "gate.yaml").write_text(files()["gate.yaml"])
    gate = read_gate_file(tmp_path / "gate.yaml")
    assert gate.compares
    assert len(gate.rules) == 6
