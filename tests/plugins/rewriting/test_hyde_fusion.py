"""experiment=hyde_fusion: the runs of the study give its tables, which stand beside a sweep's own."""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from processes import run
from ragauge.contract.jobs import Jobs
from ragauge.plugins.rewriting.published import Published, published_rankings
from sweep_records import record_of

DATA = Path(__file__).resolve().parents[3] / "../shared/data"
DOCS = "id,text\na,Aare flows to the Rhine.\nb,Basel lies at the Rhine.\nc,Chur is a town.\n"
# Of all numbers of a system in the study's tables.
SUMS = {
    "simple, tuned encoder (published)": 8.897388, "HyDE (published)": 6.581145, "RAG-Fusion (published)": 8.921034,
    "RAG-Fusion, tuned reranker (published)": 2.918,
}  # fmt: skip
TOPICS = "id,text_ids,question,answer\n7,[a b],Where does the Aare flow?,Rhine\n8,[c],What is Chur?,a town\n"


def test_a_sweep_beside_the_published_tables(tmp_path: Path) -> None:
    for name, text in (("docs.csv", DOCS), ("topics.csv", TOPICS)):
        (tmp_path / name).write_text(text)
    ended = run(
        tmp_path, "-m", "experiment=hyde_fusion", "dataset.docs=docs.csv", "dataset.topics=topics.csv",
        "retriever=recorded,bm25", "bootstrap=20", "hydra.sweep.dir=sweep", "n_tokens=5",
    )  # fmt: skip
    assert ended.returncode == 2  # no file was given
    assert "retriever.path is not set" in ended.stderr + ended.stdout
    found = json.loads((tmp_path / "sweep" / "1" / "job.json").read_text())
    assert found["rankings"]["f1_at_5"] == "F1@5"
    assert run(tmp_path, "report", "sweep").returncode == 0
    page = unescape(next(tmp_path.glob("**/report.html")).read_text(encoding="utf-8"))
    row = re.search(r"HyDE \(published\).*?</tr>", page, re.DOTALL)
    assert row is not None
    assert re.findall(r"0\.\d{3}", row[0])[:2] == ["0.644", "0.507"]


def test_the_tables_are_shown_with_the_preset_alone() -> None:
    ours = record_of(choices={"experiment": "hyde_fusion"})
    found = published_rankings([ours])
    assert found["RAG-Fusion (published)"]["r_at_5"] == 0.838333
    assert {name: round(sum(of.values()), 6) for name, of in found.items()} == SUMS
    jobs = Jobs("s", "e", [ours], [], pd.DataFrame())
    assert Published().compute(jobs, {}) is None
    founds: Any = {"rankings": {"p_at_2": "P@2", "f1_at_5": "F1@5", "ndcg": "nDCG"}}
    shown = Published().compute(jobs, founds)
    assert shown is not None
    (section,) = Published().show(jobs, shown.value, founds).sections
    grid = section.blocks[1]
    assert grid.columns == ["System", "P@2", "F1@5", "nDCG"]
    assert [[row[0], *(cell.value for cell in row[1:])] for row in grid.rows] == [
        ["simple, tuned encoder (published)", 0.679, 0.572635, None],
        ["HyDE (published)", 0.507, 0.425206, None],
        ["RAG-Fusion (published)", 0.669, 0.597024, None],
        ["RAG-Fusion, tuned reranker (published)", None, 0.613, None],
    ]
    assert published_rankings([ours, record_of(choices={"experiment": "None"})]) == {}


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="the study's files are not here")
@pytest.mark.parametrize(
    ("name", "published"), [("fusion", "RAG-Fusion"), ("fusion_reranker", "RAG-Fusion, tuned reranker")]
)
def test_the_studys_own_runs_give_its_tables(name: str, published: str, tmp_path: Path) -> None:
    ended = run(
        tmp_path, "experiment=hyde_fusion", f"dataset.docs={DATA / 'rag_mini_texts.csv'}",
        f"dataset.topics={DATA / 'rag_mini_questions_val.csv'}", "retriever=recorded",
        f"retriever.path={DATA / f'rag_mini_study_{name}.trec'}", "bootstrap=0", "hydra.run.dir=job",
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    found = json.loads((tmp_path / "job" / "job.json").read_text())["metrics"]
    table = published_rankings([record_of(choices={"experiment": "hyde_fusion"})])[f"{published} (published)"]
    assert set(table) >= {f"f1_at_{k}" for k in range(1, 6)}
    for metric, value in table.items():
        # The tables have six digits, that of the reranker three.
        assert found[metric] == pytest.approx(value, abs=5e-7 if name == "fusion" else 5e-4), metric
