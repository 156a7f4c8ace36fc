"""docs/ci.md: its workflow runs as it stands, passes what has not changed and stops what is worse."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from processes import ROOT, RUN, clean_environment
from ragauge.contract.gate import read_gate_file

pytestmark = pytest.mark.slow


def files() -> dict[str, str]:
    """The files that the guide shows, by the name in their first line."""
    guide = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```yaml\n# (\S+)\n(.*?)```", guide, re.DOTALL)
    return dict(blocks)


@pytest.mark.parametrize("worse", [False, True])
def test_the_workflow_of_the_guide_runs_as_it_stands(
    tmp_path: Path, bring_models: Callable[..., None], worse: bool
) -> None:
    for name, text in files().items():
        for side in (tmp_path, tmp_path / "base"):
            (side / name).parent.mkdir(parents=True, exist_ok=True)
            (side / name).write_text(text, encoding="utf-8")
    if worse:
        system = tmp_path / "rag" / "experiment" / "app.yaml"
        system.write_text(system.read_text().replace("n_tokens: 100", "n_tokens: 40"))
    bring_models(tmp_path / ".ragauge")
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "ragauge").write_text(f'#!/bin/sh\nexec {sys.executable} {RUN} "$@"\n')
    (commands / "ragauge").chmod(0o755)
    workflow: dict[Any, Any] = yaml.safe_load((tmp_path / ".github/workflows/gate.yml").read_text())
    steps = [
        step for step in workflow["jobs"]["gate"]["steps"] if "run" in step and step["name"] != "Install"
    ]
    assert len(steps) == 3
    summary = tmp_path / "summary.md"
    environment = clean_environment(
        PATH=f"{commands}:{os.environ['PATH']}", GITHUB_STEP_SUMMARY=str(summary),
    )  # fmt: skip
    codes = []
    for step in steps:
        done = subprocess.run(
            [shutil.which("bash") or "bash", "-e", "-c", step["run"]], cwd=tmp_path, env=environment,
            capture_output=True, text=True, timeout=900, check=False,
        )  # fmt: skip
        codes.append(done.returncode)
        assert done.returncode in (0, 3), done.stderr
    assert codes == [0, 0, 3 if worse else 0], done.stdout
    cases = ElementTree.parse(tmp_path / "ci" / "gate.xml").getroot().findall("testsuite/testcase")
    assert len(cases) >= 6
    assert any(case.find("failure") is not None for case in cases) == worse
    assert summary.read_text(encoding="utf-8").startswith("### Quality gate")
    assert ("::error title=" in done.stdout) == worse


def test_the_gate_file_of_the_guide_is_one(tmp_path: Path) -> None:
    (tmp_path / "gate.yaml").write_text(files()["gate.yaml"])
    gate = read_gate_file(tmp_path / "gate.yaml")
    assert gate.compares
    assert len(gate.rules) == 6
