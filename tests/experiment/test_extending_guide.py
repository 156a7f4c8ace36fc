"""docs/extending.md: its code is written down as it says, and its command runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from test_sweep import mlflow_runs

from processes import clean_environment
from ragauge.contract.identity import code_digests

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
PARTS = ("A retriever", "A chunker", "A dataset", "A judge", "An answer measure", "A reranker",
         "A rewriter")  # fmt: skip
CONTEXT = "The Aare is a river. It joins the Rhine at Koblenz. It is 288 km long."
QUESTIONS = [
    ("q1", "Which river does the Aare join?", "the Rhine"),
    ("q2", "How long is the Aare?", "288 km"),
]


def blocks(text: str, *languages: str) -> list[str]:
    found = (re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S) for language in languages)
    return [code for of_language in found for code in of_language]


def section(title: str) -> str:
    return re.split(r"^## ", GUIDE.split(f"## {title}\n", 1)[1], maxsplit=1, flags=re.M)[0]


@pytest.mark.parametrize("title", PARTS)
def test_a_part_is_its_code_and_its_config_in_under_thirty_lines_each(title: str) -> None:
    code, config = blocks(section(title), "python", "yaml")
    assert max(len([line for line in b.splitlines() if line.strip()]) for b in (code, config)) < 30
    assert code.startswith("# my_team/")
    assert config.startswith("# my_team/conf/")


def test_the_entry_point_is_that_of_the_example_package() -> None:
    shown, finding, command = blocks(GUIDE, "toml")
    assert list(tomllib.loads(finding)["project"]["entry-points"]) == ["ragauge.findings"]
    assert list(tomllib.loads(command)["project"]["entry-points"]) == ["ragauge.commands"]
    example = tomllib.loads((ROOT / "examples/team_config/pyproject.toml").read_text(encoding="utf-8"))
    guide = tomllib.loads(shown)
    assert guide["project"]["entry-points"] == example["project"]["entry-points"]
    assert guide["tool"]["setuptools"]["package-data"] == example["tool"]["setuptools"]["package-data"]


@pytest.mark.slow
def test_the_guide_s_command_runs_with_the_guide_s_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for block in blocks(GUIDE, "python", "yaml"):
        file = tmp_path / block.split("\n", 1)[0].removeprefix("# ")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block, encoding="utf-8")
    asked = [
        {"id": qid, "question": question, "answers": [{"text": a, "answer_start": CONTEXT.index(a)}]}
        for qid, question, a in QUESTIONS
    ]
    fillers = [{"context": f"Number {i} is a number. So is {i + 1}.", "qas": []} for i in range(5)]
    data = {"data": [{"title": "Aare", "paragraphs": [{"context": CONTEXT, "qas": asked}, *fillers]}]}
    (tmp_path / "questions.json").write_text(json.dumps(data), encoding="utf-8")
    (command,) = blocks(GUIDE, "bash")
    paths = os.pathsep.join([".", *filter(None, [os.environ.get("PYTHONPATH")])])
    command = command.replace("PYTHONPATH=.", f"PYTHONPATH='{paths}'")
    command = command.replace("python run.py", f"'{sys.executable}' '{ROOT / 'run.py'}'")
    done = subprocess.run(
        command,
        shell=True,
        cwd=tmp_path,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=3000,
    )
    assert done.returncode == 0, done.stderr
    client, (job,) = mlflow_runs(tmp_path, "job", "squad_like")
    chosen = {group: job.data.tags[group] for group in ("retriever", "chunker", "dataset", "judge")}
    assert chosen == {
        "retriever": "neighbours", "chunker": "sentences", "dataset": "squad_like", "judge": "overlap",
    }  # fmt: skip
    assert job.data.metrics["ir_score"] == 1
    assert job.data.metrics["judge_share_missing"] == 0
    assert job.data.tags["reranker"] == "overlap"
    assert job.data.tags["rewriter"] == "statement"
    assert job.data.metrics["n_words"] >= 1
    assert 0 <= job.data.metrics["f1"] <= 1
    table = json.loads(Path(client.download_artifacts(job.info.run_id, "per_question.json")).read_text())
    evidence = [row[table["columns"].index("evidence")] for row in table["data"]]
    assert evidence == [["It joins the Rhine at Koblenz."], ["It is 288 km long."]]
    # What each of the parts makes is known by the code of my_team.
    keys = {file.parts[-3]: json.loads(file.read_text()) for file in tmp_path.glob(".ragauge/*/*/key.json")}
    monkeypatch.syspath_prepend(tmp_path)
    digests = code_digests(["my_team"])
    assert set(digests) == {"my_team"}
    for stage in ("dataset", "chunks", "index", "queries", "run", "reranked", "verdicts"):
        assert keys[stage]["params"]["index" if stage == "index" else "component"]["code"] == digests
    measures = [json.loads(file.read_text()) for file in tmp_path.glob(".ragauge/answer_values/*/key.json")]
    codes = [key["params"]["component"].get("code") for key in measures]
    assert len(codes) == 2
    assert digests in codes
