"""Runs side by side: real jobs in a real MLflow store, their differences worked out again by hand."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hydra import compose, initialize_config_dir
from omegaconf import open_dict

from processes import clean_environment, run
from ragauge import compare as comparing
from ragauge.commands.compare import main
from ragauge.contract.errors import ConfigError, DataError
from ragauge.experiment.job import execute
from ragauge.experiment.request import JobFolder
from ragauge.experiment.setup import config
from ragauge.show.tables import n_columns
from ragauge.track import Reader, Tracker

# Making the jobs takes seconds.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
CHEAP = [
    "chunker=none",
    "tokenizer=words",
    "llm=extractive",
    "llm.threshold=-1",
    "judge=lexical",
    "bootstrap=50",
    "answers=[]",
    "slices=[side]",
]
ESCAPE, OSC = "\x1b[31mred\x1b[0m", "\x1b]8;;https://example.org\x07link\x1b]8;;\x07"
NASTY = f"{ESCAPE} | 50% & a_b #1 {{x}} <b> \\ ~ ^ $ {OSC} \u202eback\u202c"
TOWNS = ("Graz", "Linz", "Wels", "Steyr", "Melk", "Krems", "Lienz", "Bruck", "Enns", "Hall", "Imst", "Perg")
RANKINGS = ["ndcg_at_10", "rr", "p_at_1", "p_at_5", "r_at_1", "r_at_5", "r_at_10"]


def documents() -> list[dict[str, str]]:
    """Two about each town, so that the first hit is often the wrong one."""
    towers = [
        {"docno": f"t{i}", "title": town, "text": f"Anna built the tower of {town} in {1900 + i}."}
        for i, town in enumerate(TOWNS)
    ]
    return towers + [
        {
            "docno": f"s{i}",
            "title": "",
            "text": f"The tower of {town}: who built that tower, and when? " * (i % 3 + 1),
        }
        for i, town in enumerate(TOWNS)
    ]


def topics(towns: tuple[str, ...] = TOWNS) -> list[dict[str, Any]]:
    return [
        {
            "qid": f"q{TOWNS.index(town):02}",
            "query": f"Who built the tower of {town}? {NASTY}",
            "answer": "Anna",
            "side": "east" if town == "Perg" else f"west {NASTY}",
            "evidence": [{"docno": f"t{TOWNS.index(town)}",
                          "text": f"Anna built the tower of {town} in {1900 + TOWNS.index(town)}."}],
        }
        for town in towns
    ]  # fmt: skip


@dataclass
class Jobs:
    """An MLflow store and what ran in it: run ids by a name."""

    folder: Path
    ids: dict[str, str] = field(default_factory=dict)
    made: dict[str, comparing.Comparison] = field(default_factory=dict)

    @property
    def uri(self) -> str:
        return f"sqlite:///{self.folder / 'mlflow.db'}"

    def source(self, name: str, rows: list[dict[str, Any]]) -> list[str]:
        """Overrides for a corpus and its questions."""
        files = {}
        for kind, lines in (("docs", documents()), ("topics", rows)):
            files[kind] = self.folder / f"{kind}-{name}.jsonl"
            files[kind].write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        return ["dataset=jsonl", f"dataset.docs={files['docs']}", f"dataset.topics={files['topics']}"]

    def run(self, name: str, *overrides: str, sweep: Path | None = None, code: int = 0) -> None:
        with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
            cfg = compose("config", overrides=[*CHEAP, f"store={self.folder / 'store'}",
                                               f"tracking.uri={self.uri}", *overrides])  # fmt: skip
        with open_dict(cfg):
            cfg.embedder = {"_target_": "conftest.HashEmbedder"}
        chosen = dict(o.split("=", 1) for o in [*CHEAP, *overrides] if re.fullmatch(r"[a-z]+=[a-z0-9]+", o))
        choices = {"measure": "substring", "embedder": "hash", **chosen}
        number = len(self.ids)
        path = (sweep or self.folder / "outputs") / str(number)
        path.mkdir(parents=True)
        assert execute(cfg, JobFolder(path, sweep, number, choices, tuple(overrides))) == code
        self.ids[name] = json.loads((path / "job.json").read_text(encoding="utf-8"))["run_id"]

    def compare(self, *names: str, **options: Any) -> comparing.Comparison:
        key = repr((names, options))
        if key not in self.made:
            self.made[key] = comparing.compare([self.ids.get(n, n) for n in names], self.uri, **options)
        return self.made[key]

    def table(self, name: str) -> pd.DataFrame:
        return Reader(self.uri).table(self.ids[name], "per_question.json").set_index("qid")


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Jobs:
    """Single jobs, and a sweep of two retrievers at two budgets with one job that fails."""
    config.register()
    made = Jobs(tmp_path_factory.mktemp("compared"))
    towns = made.source("towns", topics())
    made.run("one", *towns, "retriever=bm25", "retriever.top_k=1", "n_tokens=24")
    made.run("two", *towns, "retriever=bm25", "retriever.top_k=2", "n_tokens=24")
    made.run("odd", *towns, "retriever=bm25", "retriever.top_k=1", "n_tokens=24",
             f"tracking.note='50% of a_b & #1 {{x}} [y] * {'word ' * 40}'")  # fmt: skip
    made.run("none", *towns, "retriever=none", "n_tokens=24")
    made.run("fewer", *made.source("fewer", topics(TOWNS[3:])), "retriever=bm25", "n_tokens=24")
    sweep = made.folder / "multirun" / "day" / "hour"
    for retriever, n in product(("bm25", "none"), (6, 24)):
        made.run(f"{retriever}-{n}", *towns, f"retriever={retriever}", f"n_tokens={n}", sweep=sweep)
    made.run("failed", *towns, "retriever=bm25", "retriever.top_k=0", "n_tokens=6", sweep=sweep, code=2)
    sweep_id = JobFolder(sweep / "0", sweep, 0, {}, ()).sweep_id
    with Tracker(made.uri, "jsonl").run("sweep", {}, {"role": "sweep", "sweep_id": str(sweep_id)}) as run:
        made.ids["sweep"] = run.run_id
    return made


# --- which runs, and what differs ---------------------------------------------------------------------------


def test_only_what_differs_is_told_and_names_the_runs(jobs: Jobs) -> None:
    found = jobs.compare("one", "two")
    assert list(found.params) == ["retriever.top_k"]
    assert found.runs["run"].tolist() == ["top_k=1", "top_k=2"]
    assert found.common["retriever"] == "bm25"
    assert found.common["n_tokens"] == "24"
    assert jobs.compare("one", "two", "odd", "none").runs["run"].tolist() == [
        "bm25 · top_k=1 · note=null",
        "bm25 · top_k=2",
        "bm25 · top_k=1 · note=50% of a_b & #1 {x} [y] * word word word w…",
        "none",
    ]
    # What a retriever alone has is no difference beside that of the retrievers.
    assert list(jobs.compare("one", "none").params) == ["retriever"]
    assert jobs.compare("one", "two", "none").runs["run"].tolist() == [
        "bm25 · top_k=1", "bm25 · top_k=2", "none",
    ]  # fmt: skip


def test_a_sweep_is_its_finished_jobs_and_pairs_are_of_one_budget(jobs: Jobs) -> None:
    found = jobs.compare("sweep")
    assert found.runs["run"].tolist() == ["bm25 · N=6", "none · N=6", "bm25 · N=24", "none · N=24"]
    assert found.runs["compared"].tolist() == [False, False, True, True]
    assert (found.n_tokens, found.baseline, found.baseline_chosen) == (24, jobs.ids["bm25-24"], True)
    assert set(found.outcomes["run_id"]) == {jobs.ids["bm25-24"], jobs.ids["none-24"]}
    assert any("1 job(s)" in note for note in found.notes)
    assert jobs.compare("sweep", n_tokens=6, baseline="none").baseline == jobs.ids["none-6"]
    with pytest.raises(ConfigError, match=r"n_tokens=7: 0 of the runs .* 6 \(2 runs\), 24 \(2 runs\)"):
        jobs.compare("sweep", n_tokens=7)


# --- what is refused, and what is told ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("one", "0" * 32), f"holds no run {'0' * 32}; the newest are"),
        (("one", "failed"), r"is FAILED: .*retriever\.top_k"),
        (("one", "fewer"), r"different datasets \(jsonl [0-9a-f]{12}: .*; jsonl [0-9a-f]{12}: "),
    ],
)
def test_what_cannot_be_compared_is_refused(jobs: Jobs, names: tuple[str, ...], message: str) -> None:
    with pytest.raises((ConfigError, DataError), match=message):
        jobs.compare(*names)


def test_a_job_that_waits_for_its_verdicts_is_refused_with_what_to_do(jobs: Jobs) -> None:
    one = Reader(jobs.uri).run(jobs.ids["one"])
    tags = {k: v for k, v in one.tags.items() if not k.startswith("mlflow.")}
    with Tracker(jobs.uri, "jsonl").run("waiting", one.params, {**tags, "sweep_id": "s"}) as run:
        run.metrics({"ir_score": 0.5})
    with pytest.raises(DataError, match=r"has no artifact per_question\.json, .*ragauge pool"):
        jobs.compare("one", run.run_id)


# --- on the terminal ----------------------------------------------------------------------------------------


def metrics_of(found: comparing.Comparison) -> list[str]:
    return comparing.choose_metrics(found)


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_line_is_wider_than_the_terminal(jobs: Jobs, width: int) -> None:
    found = jobs.compare("one", "two", "none")
    lines = comparing.text(found, metrics_of(found), 3, width).splitlines()
    assert max(map(n_columns, lines)) <= width
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202e]", "".join(lines))
    # Every metric stands there, however narrow it is.
    together = "\n".join(lines)
    for heading in ("IR score", "hallucination", "nDCG@10", "RR", "p, Holm"):
        assert heading in together


def test_the_name_of_a_slice_does_nothing_to_a_terminal_and_ends_no_cell(jobs: Jobs) -> None:
    found = jobs.compare("one", "two", slices=True)
    text, page = comparing.text(found, ["ir_score"], 0, 120), comparing.markdown(found, ["ir_score"], 0)
    assert not set(text + page) & {"\x1b", "\x07", "\u202e"}
    table = page.split("By slice of")[1].split("\n\n")[1]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()} == {21}


def test_unknown_metrics_are_refused_and_classics_have_two_names(jobs: Jobs) -> None:
    found = jobs.compare("one", "two")
    assert comparing.choose_metrics(found, "ir_score, nDCG@10,rr") == ["ir_score", "ndcg_at_10", "rr"]
    with pytest.raises(ConfigError, match=r"no run has 'speed'; there are .*ir_score"):
        comparing.choose_metrics(found, "speed")
    everything = comparing.choose_metrics(found, everything=True)
    assert {"threshold_h", "seconds_total", "llm_calls"} <= set(everything)
    assert not [name for name in everything if name.endswith("_lo")]


# --- files for papers ---------------------------------------------------------------------------------------


def test_the_csv_of_topics_has_a_row_per_run_and_topic(jobs: Jobs) -> None:
    text = comparing.topics_csv(jobs.compare("one", "two"))
    table = pd.read_csv(io.StringIO(text)).set_index(["run_id", "qid"])
    assert len(table) == 24
    for name in ("one", "two"):
        own = jobs.table(name)
        assert table.loc[jobs.ids[name], "ir_score"].tolist() == own["ir_score"].tolist()
        assert table.loc[jobs.ids[name], "label"].tolist() == own["label"].tolist()
    assert "\x1b" not in text
    assert list(pd.read_csv(io.StringIO(text))) == [
        "run_id", "run", "qid", "query", "answer_reference", "ir_score", "label", "answer", *RANKINGS,
        "truthfulness", "ir_score_difference",
    ]  # fmt: skip
    assert {len(row) for row in csv.reader(io.StringIO(text))} == {17}
    assert "| 50% & a_b #1 {x} <b> \\ ~ ^ $" in table["query"].iloc[0]


def test_every_row_of_a_markdown_table_has_its_columns(jobs: Jobs) -> None:
    found = jobs.compare("one", "two", "none")
    text = comparing.markdown(found, metrics_of(found), 3)
    blocks = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    first_columns = [re.split(r"(?<!\\)\|", block[0])[1:3] for block in blocks]
    assert [[cell.strip() for cell in cells] for cells in first_columns] == [
        ["system", "retriever"],
        ["run", "id"],
        ["run", "id"],
        ["run", "topics"],
        ["measure", "run"],
        ["measure", "run"],
        ["run", "cause"],
        ["qid", "question"],
    ]
    assert "No topic differs in judge class" in text
    # The four measures of rankings that the metrics show, of two runs.
    assert len(blocks[4]) == 2 + 2 * 4
    for block in blocks:
        # A bar that is not escaped ends a cell.
        assert len({len(re.split(r"(?<!\\)\|", line)) for line in block}) == 1
    assert "50% &amp; a\\_b \\#1 {x} &lt;b&gt; \\\\ \\~ ^ $" in text
    assert "**" in text
    assert "\x1b" not in text


def test_latex_tables_are_escaped_and_whole(jobs: Jobs) -> None:
    found = jobs.compare("none", "one", "odd", "two")
    text = comparing.latex(found, ["ir_score", "correct_share", "ndcg_at_10"])
    body = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    for command in ("begin", "end"):
        assert re.findall(rf"\\{command}{{(\w+)}}", body).count("tabular") == 5
    for tabular in re.findall(r"\\begin{tabular}{([lr]+)}(.*?)\\end{tabular}", body, re.S):
        columns, content = tabular
        rows = [line for line in content.splitlines() if line.endswith("\\\\")]
        assert len(rows) >= 4
        for row in rows:
            assert len(re.findall(r"(?<!\\)&", row)) == len(columns) - 1
            assert not re.search(r"(?<!\\)[%#_]", row)
            assert row.lstrip()[0] not in "[*"
        assert [content.count(rule) for rule in ("\\toprule", "\\midrule", "\\bottomrule")] == [1, 1, 1]
    assert body.count("{") == body.count("}")
    assert r"\textbf{" in body
    assert r"$^{\dagger}$" in body
    assert r"$\dagger$ differs from none after Holm's correction over 9 comparisons " in body
    assert "95 \\%" in body
    assert f"% none: MLflow run {jobs.ids['none']}" in text


# --- the command --------------------------------------------------------------------------------------------


def command(jobs: Jobs, *arguments: str) -> int:
    return main([*(jobs.ids.get(a, a) for a in arguments), "--tracking-uri", jobs.uri])


def test_the_command_prints_and_writes(jobs: Jobs, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {name: tmp_path / name for name in ("csv", "md", "latex", "topics-csv")}
    options = [x for name, file in files.items() for x in (f"--{name}", str(file))]
    assert command(jobs, "one", "none", "--topics", "2", *options) == 0
    out, err = capsys.readouterr()
    assert "Paired differences from bm25, N = 24 tokens" in out
    assert "Topics that differ most in IR score: 2 of" in out
    assert err.count("wrote ") == 4
    assert pd.read_csv(files["csv"])["run"].tolist() == ["bm25", "none"]
    assert len(pd.read_csv(files["topics-csv"])) == 24
    assert files["latex"].read_text(encoding="utf-8").count("\\bottomrule") == 7
    assert files["md"].read_text(encoding="utf-8").startswith("2 runs of experiment jsonl, 12 topics.")


def test_a_sweep_of_the_real_command_is_compared_down_a_pipe(tmp_path: Path) -> None:
    environment = clean_environment()
    small = ["chunker=none", "dataset.limit=12", "llm=none", "judge=none", "bootstrap=20"]
    swept = run(tmp_path, "-m", *small, "retriever=bm25,none", "n_tokens=50,100")
    assert swept.returncode == 0, swept.stderr
    [folder] = (tmp_path / "multirun").glob("*/*")
    compared = subprocess.run(
        [sys.executable, "-m", "ragauge", "compare", str(folder)],
        cwd=tmp_path, env={**environment, "PYTHONIOENCODING": "ascii"}, capture_output=True, timeout=3000,
    )  # fmt: skip
    assert compared.returncode == 0, compared.stderr
    out = compared.stdout.decode("ascii")
    assert "No compared run has verdicts" in out
    assert "N = 100 tokens" in out
    closed = subprocess.run(
        f"{sys.executable} -m ragauge compare {folder} --all | head -1",
        shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=3000,
    )  # fmt: skip
    assert closed.stdout.startswith("4 runs of experiment sample, 12 topics.")
    assert closed.stderr == ""
