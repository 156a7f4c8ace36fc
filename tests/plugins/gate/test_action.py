"""action.yml: its steps, as GitHub's runner starts them, in a repository of a user's own with its pull request."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from processes import ROOT, RUN, clean_environment
from ragauge.plugins.gate.rules import read_gate_file

APP = """\
# @package _global_
defaults:
  - override /dataset: jsonl
  - override /chunker: none
  - override /tokenizer: words
  - override /retriever: bm25
n_tokens: 40
dataset: {docs: data/corpus.jsonl, topics: data/questions.jsonl}
"""
GATE = "ir_score: {min: 0.3, tolerance: 0.05}\n"
# `gh`: keeps one comment, as GitHub would, and says what it was called with.
GH = """\
#!/bin/sh
echo "$*" >>"$GH_LOG"
for last in "$@"; do case "$last" in body=@*) cp "${last#body=@}" "$GH_COMMENT" ;; esac; done
case "$*" in *--paginate*) if [ -f "$GH_COMMENT" ]; then echo 7; fi ;; esac
"""


def action() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    return found


@dataclass
class Runner:
    """Runs the steps in a checkout; `codes` by the steps' names."""

    checkout: Path
    environment: dict[str, str]
    inputs: dict[str, str]
    outputs: dict[str, str] = field(default_factory=dict)
    codes: dict[str, int] = field(default_factory=dict)

    def value(self, text: str) -> str:
        """The text with expressions in place."""
        of = {
            "github.base_ref": "main", "github.repository": "us/app", "github.event.number": "12",
            "github.server_url": "https://github.example", "github.run_id": "5", "github.token": "t",
            "github.action_path": str(ROOT), "steps.gate.outputs.code": self.outputs.get("code", ""),
            **{f"inputs.{name}": value for name, value in self.inputs.items()},
        }  # fmt: skip
        return re.sub(r"\$\{\{ ([^}]+) \}\}", lambda found: of[found[1]], text)

    def run(self) -> str:
        """What the steps print. A step that fails is the last."""
        said, output = "", self.checkout.parent / "output"
        for step in action()["runs"]["steps"]:
            if "run" not in step or step["name"] == "Install":
                continue
            if step.get("if") == "inputs.baseline == 'base'" and self.inputs["baseline"] != "base":
                continue
            own = {name: self.value(value) for name, value in step.get("env", {}).items()}
            output.write_text("")
            ended = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=self.checkout, env={**self.environment, **own, "GITHUB_OUTPUT": str(output)},
                capture_output=True, text=True, timeout=600, check=False,
            )  # fmt: skip
            said += ended.stdout + ended.stderr
            self.codes[step["name"]] = ended.returncode
            self.outputs |= dict(line.split("=", 1) for line in output.read_text().splitlines())
            if ended.returncode:
                break
        return said


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=u", "-c", "user.email=u@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """The checkout of a pull request that has changed nothing yet."""
    ours = tmp_path / "app"
    (ours / "rag" / "experiment").mkdir(parents=True)
    (ours / "data").mkdir()
    (ours / "rag" / "experiment" / "app.yaml").write_text(APP)
    (ours / "gate.yaml").write_text(GATE)
    towers = [
        f"The tower of town{i} was built by builder{i} in {1500 + i}. It is red and stands at the river."
        for i in range(30)
    ]
    docs = "".join(f'{{"docno": "d{i}", "text": "{text}"}}\n' for i, text in enumerate(towers))
    (ours / "data" / "corpus.jsonl").write_text(docs)
    asked = "".join(
        f'{{"qid": "q{i}", "query": "Who built the tower of town{i}?", "answer": "builder{i}", '
        f'"evidence": ["The tower of town{i} was built by builder{i} in {1500 + i}."]}}\n'
        for i in range(30)
    )
    (ours / "data" / "questions.jsonl").write_text(asked)
    git(ours, "init")
    git(ours, "add", "-A")
    git(ours, "commit", "-m", "base")
    git(ours, "clone", "--bare", str(ours), str(tmp_path / "origin.git"))
    git(ours, "remote", "add", "origin", str(tmp_path / "origin.git"))
    git(ours, "switch", "-c", "change")
    commands = tmp_path / "bin"
    commands.mkdir()
    for name, text in {"ragauge": f'#!/bin/sh\nexec {sys.executable} {RUN} "$@"\n', "gh": GH}.items():
        (commands / name).write_text(text)
        (commands / name).chmod(0o755)
    environment = clean_environment(
        PATH=f"{commands}:{os.environ['PATH']}", GITHUB_STEP_SUMMARY=str(tmp_path / "summary.md"),
        GH_LOG=str(tmp_path / "gh.log"), GH_COMMENT=str(tmp_path / "comment.md"),
    )  # fmt: skip
    defaults = {name: str(given.get("default", "")) for name, given in action()["inputs"].items()}
    return Runner(ours, environment, defaults | {"measure": "experiment=app", "config-dir": "rag"})


@pytest.mark.slow
def test_a_pull_request_passes_and_a_worse_one_fails_with_one_comment(runner: Runner) -> None:
    said = runner.run()
    assert runner.codes == dict.fromkeys(("Measure the base", "Measure the change", "Gate", "Comment", "Verdict"), 0), (
        said
    )
    comment = Path(runner.environment["GH_COMMENT"])
    assert comment.read_text().startswith("<!-- ragauge gate -->\n### Quality gate passed")
    assert "https://github.example/us/app/actions/runs/5" in comment.read_text()

    # The next push searches for one token: the base is found in the store, and the comment is written over.
    app = runner.checkout / "rag" / "experiment" / "app.yaml"
    app.write_text(app.read_text().replace("n_tokens: 40", "n_tokens: 4"))
    git(runner.checkout, "worktree", "remove", "--force", "ragauge-ci/tree")
    said = runner.run()
    assert [runner.codes[name] for name in ("Gate", "Comment", "Verdict")] == [0, 0, 3], said
    assert "::error title=" in said
    assert comment.read_text().startswith("<!-- ragauge gate -->\n### Quality gate failed")
    called = Path(runner.environment["GH_LOG"]).read_text().splitlines()
    assert [line.split()[2] for line in called if "-X" in line] == ["POST", "PATCH"]
    assert "issues/comments/7" in called[-1]
    assert not (runner.checkout / "mlruns").exists()


def test_no_input_is_part_of_a_script() -> None:
    """Who opens a pull request may choose some of them: a script that held one would run what it says."""
    for step in action()["runs"]["steps"]:
        assert "${{" not in step.get("run", "")


def test_the_guide_s_files_are_read_and_its_workflow_gives_inputs_that_there_are(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    files = dict(re.findall(r"```yaml\n# (\S+)\n(.*?)```", guide, re.DOTALL))
    (job,) = yaml.safe_load(files[".github/workflows/gate.yml"])["jobs"].values()
    inputs = action()["inputs"]
    assert set(job["steps"][-1]["with"]) <= set(inputs)
    table = guide.partition("| input | default |")[2].partition("\n\n")[0]
    listed = dict(re.findall(r"^\| `([\w-]+)` \| `?([^`|]+?)`? \|", table, re.M))
    assert listed == {
        name: given.get("default") or {"measure": "to be given", "config-dir": "none"}[name]
        for name, given in inputs.items()
        if name != "python-version"
    }
    (tmp_path / "gate.yaml").write_text(files["gate.yaml"])
    gate = read_gate_file(tmp_path / "gate.yaml")
    assert gate.compares
    assert len(gate.rules) == 6
