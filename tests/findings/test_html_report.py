"""The report as people open it: a real browser on a real file, and texts that would like to be code."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from browser import CHROMIUM, Browser
from ragauge.commands.results import report as main
from ragauge.contract.errors import DataError
from ragauge.contract.finding import Article, Section
from ragauge.experiment.sweep.jobs import find, load
from ragauge.findings.pooling import PooledFindings, pooled
from ragauge.findings.topics import (
    contexts_of,
    detail_lines,
    longest_match,
    match_evidence,
    read_topics,
    worth_reading,
    write_details,
)
from ragauge.show.html import write_report
from ragauge.store import Key, Store
from sweep_records import job_json, record_of

SCRIPT = "<script>alert(1)</script>"
NASTY = f'{SCRIPT}<img src="https://example.org/x.png" onerror="alert(2)"></style> & {{{{ 7 * 6 }}}}'
FACT, OTHER = "The tower is 330 metres tall.", "It was finished in 1889."
TOPICS = [f"q{i:02}" for i in range(24)]
SYSTEMS, BUDGETS = ("bm25", "sim"), (100, 300)
FIGURES = {"ir_score_by_n", "judge_shares", "sorted_scores", "reliability"}
FIGURES |= {figure for name, figure in (("foresight", "foresight"), ("transfer", "transfer_retriever"))
            if find_spec(f"ragauge.plugins.{name}")}  # fmt: skip


def outcomes(system: str, n: int, judged: bool) -> pd.DataFrame:
    """Scores that rise with the topic's number; right from a half on, but for some on either side."""
    rng = np.random.default_rng(SYSTEMS.index(system) * 10 + n)
    score = np.clip(np.linspace(0, 1, len(TOPICS)) + rng.normal(0, 0.05, len(TOPICS)), 0, 1)
    label = np.where(score > 0.5, 5, np.where(score < 0.25, 1, 3))
    label[[2, 20]], label[4], label[21] = 5, 4, 2
    label[20] = 4
    return pd.DataFrame(
        {
            "qid": TOPICS,
            "query": [f"How tall is tower {qid}? {NASTY}" for qid in TOPICS],
            "answer_reference": f"330 metres {SCRIPT}",
            "n_tokens": n,
            "ir_score": score,
            "answer": pd.Series([NASTY, *["330 metres"] * (len(TOPICS) - 1)], dtype="str"),
            "answer_status": "ok",
            "answer_error": None,
            "label": pd.array(label if judged else [None] * len(TOPICS), dtype="Int8"),
            "judge_status": "ok",
            "judge_raw": f'{{"label": 4}} {NASTY}',
            "dataset": "towers",
            "retriever": system,
            "chunker": "none",
            "llm": "chat",
            "slice:kind": [f"{SCRIPT} | $x$", *["plain"] * (len(TOPICS) - 1)],
        }
    )


def store_entries(store: Store) -> dict[str, str]:
    """Digests of a dataset and of contexts at both budgets, whose first chunk would like to be code."""
    evidence = pd.DataFrame(
        [(qid, part, "d", text) for qid in TOPICS for part, text in enumerate((FACT, OTHER))],
        columns=["qid", "part", "docno", "text"],
    )
    first, second = f"{NASTY} The tower is 330\nmetres tall.", "It was finished late."
    layouts = pd.DataFrame(
        {
            "qid": TOPICS,
            "layout": 0,
            "text": f"{first} {second}",
            "docnos": [["d%p0", "d%p1"]] * len(TOPICS),
            "starts": [[0, len(first) + 1]] * len(TOPICS),
        }
    )
    prefixes = pd.DataFrame(
        [(qid, n, 0, len(first) + (1 + len(second) if n == 300 else 0), n, 1 + (n == 300))
         for qid in TOPICS for n in BUDGETS],
        columns=["qid", "n_tokens", "layout", "end", "n_used", "n_chunks"],
    )  # fmt: skip
    dataset = store.get_frames(Key("dataset", 1), lambda: {"evidence": evidence})
    context = store.get_frames(Key("context", 1), lambda: {"layouts": layouts, "prefixes": prefixes})
    return {"dataset": dataset.digest, "context": context.digest}


def write_sweep(folder: Path, judged: bool = True) -> Path:
    """A sweep's folder as its jobs leave it: two systems at two budgets, and one job that failed."""
    entries = store_entries(Store(folder / "store"))
    cost = {
        "llm_calls": 24,
        "llm_calls_cached": 3,
        "prompt_tokens": 9000,
        "completion_tokens": 500,
        "cost_usd": 0.12,
    }
    for number, (system, n) in enumerate((s, n) for s in SYSTEMS for n in BUDGETS):
        rows = outcomes(system, n, judged)
        score = float(rows["ir_score"].mean())
        job = folder / "sweep" / str(number)
        job.mkdir(parents=True)
        rows.to_parquet(job / "outcomes.parquet", index=False)
        record = {
            "status": "FINISHED", "name": f"{system} · N={n}", "number": number, "sweep_id": "the-sweep",
            "choices": {"retriever": system, "dataset": "towers", "llm": "chat", "judge": "lexical"},
            "overrides": [f"retriever={system}", f"n_tokens={n}", "dataset=towers"],
            "n_tokens": n, "seed": 0, "bootstrap": 50,
            "estimate": {"features": ["ir_score"], "spline": False, "calibrate": False},
            "experiment": "towers", "tracking_uri": "unused",
            "exit_code": 0, "dataset_digest": "ab" * 32, "store": str(folder / "store"), "entries": entries,
            "metrics": {
                "ir_score": score, "ir_score_lo": score - 0.1, "ir_score_hi": score + 0.1,
                "correct_share": 0.5, "correct_share_lo": 0.4, "correct_share_hi": 0.6,
                "judge_share_missing": 0.0 if judged else 1.0, "seconds_total": 1.5, "ndcg_at_10": 0.7,
                **cost, **{f"judge_{k}": v for k, v in cost.items()},
            },
            "ir_score_at_n": {"50": score / 2, str(n): score},
            "ir_score_floor_at_n": {"50": 0.0625, str(n): 0.125}, "rankings": {"ndcg_at_10": "nDCG@10"},
        }  # fmt: skip
        job_json(job, record)
    failed = {
        **record,
        "status": "FAILED",
        "number": 4,
        "name": "reo",
        "error": f"no model {SCRIPT}",
        "exit_code": 2,
    }
    (folder / "sweep" / "4").mkdir()
    job_json(folder / "sweep" / "4", failed)
    return folder / "sweep"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a sweep with verdicts, written by the command."""
    folder = write_sweep(tmp_path_factory.mktemp("judged"))
    assert main([str(folder)]) == 0
    return folder / "report.html"


@pytest.fixture(scope="module")
def content(page: Path) -> PooledFindings:
    """What is found of that sweep."""
    [jobs] = load(page.parent)
    return pooled(jobs)


class Elements(HTMLParser):
    """Every element with its attributes, and the text between."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.text += " " if tag in ("td", "th") else ""

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def test_texts_of_corpus_judge_and_errors_are_text(page: Path) -> None:
    elements = Elements(page.read_text())
    assert not elements.all("script")
    assert all(str(image["src"]).startswith("data:image/svg+xml;base64,") for image in elements.all("img"))
    assert not [a for _, a in elements.found if any(name.startswith("on") for name in a)]
    assert elements.text.count(SCRIPT) > 10  # queries, references, contexts, replies, and an error
    assert "{{ 7 * 6 }}" in elements.text
    assert len(elements.all("style")) == 1


def test_the_page_asks_for_nothing_and_says_so(page: Path) -> None:
    elements = Elements(page.read_text())
    policy = elements.all("meta")[1]
    assert policy["http-equiv"] == "Content-Security-Policy"
    assert policy["content"] == "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    for _, attributes in elements.found:
        for name in ("src", "href", "srcset", "action", "data", "poster"):
            assert str(attributes.get(name) or "#").startswith(("#", "data:")), attributes
    assert "@import" not in page.read_text()
    assert "url(" not in page.read_text()


def test_every_section_is_linked_and_every_figure_described(page: Path) -> None:
    elements = Elements(page.read_text())
    ids = [str(a["id"]) for _, a in elements.found if "id" in a]
    assert len(ids) == len(set(ids))
    assert [str(a["href"])[1:] for a in elements.all("a")] == ids
    images = elements.all("img")
    assert len(images) == len(FIGURES)
    assert all(image["alt"] for image in images)
    assert page.stat().st_size < 1_000_000


def test_the_evidence_is_marked_in_the_context(page: Path) -> None:
    text = page.read_text()
    # All of the first part, across a line break of the document, and two thirds of the second.
    assert "<mark>The tower is 330\nmetres tall.<sup>1</sup></mark>" in text
    assert "<mark>It was finished <sup>2</sup></mark>late." in text
    assert "1 · d%p0" in text


def test_a_part_s_value_on_the_page_of_topics_is_the_job_s_own_measure(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    entries = store_entries(store)
    evidence = pd.read_parquet(tmp_path / "store" / "dataset" / entries["dataset"] / "evidence.parquet")
    parts = evidence[["qid", "part"]].assign(n_tokens=BUDGETS[0], value=0.25)
    found = store.get_frames(Key("scores", 1), lambda: {"part_scores": parts})
    record = record_of(store=str(tmp_path / "store"), n_tokens=BUDGETS[0], entries=entries)
    with_scores = replace(record, entries={**entries, "scores": found.digest})
    qid = evidence["qid"].iloc[0]
    of_topic = contexts_of(with_scores, [qid])[qid]
    assert list(of_topic.scores) == [0.25] * len(of_topic.evidence)
    assert contexts_of(record, [qid])[qid].scores == ()
    row = {"qid": qid, "system": "s", "n_tokens": BUDGETS[0], "label": 1, "ir_score": 0.25}
    [topic] = read_topics(pd.DataFrame([row]), {("s", BUDGETS[0]): with_scores})
    assert {part.score for part in topic.evidence} == {0.25}
    assert topic.evidence[0].share == 1  # what is marked is the longest match, whatever the measure


def test_evidence_that_holds_a_line_end_is_one_part() -> None:
    row = {
        "qid": "q",
        "system": "s",
        "n_tokens": 9,
        "label": 1,
        "ir_score": 1.0,
        "context": "One\ntwo. Three.",
    }
    rows = pd.DataFrame([row | {"evidence": ["One\ntwo.", "Three."]}])
    [topic] = read_topics(rows, {})
    assert [part.text for part in topic.evidence] == ["One\ntwo.", "Three."]


def test_short_matches_are_counted_but_not_marked() -> None:
    [part] = match_evidence(["It is in Paris and old."], "xx is in yy")
    assert part.share == pytest.approx(7 / 23)
    assert part.span == (2, 9)
    assert not part.marked
    [part] = match_evidence(["Paris"], "in Paris.")
    assert part.marked


def test_no_file_is_replaced_by_a_report_or_its_figures_that_ragauge_did_not_write(tmp_path: Path, capsys) -> None:
    folder = write_sweep(tmp_path, judged=False)
    page, figures = folder / "report.html", folder / "report-figures"
    page.write_text("<!doctype html>\n<title>mine</title>")
    assert main([str(folder), "--figures", "svg"]) == 2
    assert f"{page} is there, and ragauge did not write it" in capsys.readouterr().err
    page.unlink()
    figures.mkdir()
    (figures / "mine.svg").write_text("mine")
    assert main([str(folder), "--figures", "svg"]) == 2
    assert f"{figures / 'mine.svg'} is there, and no report.html beside its folder" in capsys.readouterr().err
    assert not page.exists()
    assert main([str(folder), "--figures", "svg", "--force"]) == 0
    assert main([str(folder), "--figures", "svg"]) == 0  # its own are replaced


def test_without_verdicts_there_are_no_sections_of_them(tmp_path: Path) -> None:
    folder = write_sweep(tmp_path, judged=False)
    assert main([str(folder)]) == 0
    elements = Elements((folder / "report.html").read_text())
    assert len(elements.all("img")) == 1
    headings = {str(a["href"]) for a in elements.all("a")}
    assert {"#leaderboard", "#ir-score-against-n", "#cost", "#what-was-run"} <= headings
    assert not headings & {"#judge-classes-by-system", "#sorted-scores-and-thresholds", "#zones-with-a-guarantee"}


def test_without_the_store_the_context_is_left_out_and_told(tmp_path: Path) -> None:
    folder = write_sweep(tmp_path)
    shutil.rmtree(tmp_path / "store" / "context")
    assert main([str(folder)]) == 0
    text = (folder / "report.html").read_text()
    assert "No context is shown: the store holds no readable context/" in text
    assert "<mark>The tower" not in text


def test_the_same_sweep_writes_the_same_page(page: Path) -> None:
    before = page.read_bytes()
    assert main([str(page.parent)]) == 0
    assert page.read_bytes() == before


def test_lone_surrogates_do_not_stop_it(content: PooledFindings, tmp_path: Path) -> None:
    section = Section("Odd", [Article("meta", "a \ud83d b", [])])
    write_report([replace(content.page, sections=[section])], tmp_path / "page.html")
    assert "a ⟦U+D83D⟧ b" in (tmp_path / "page.html").read_text()


def test_claims_and_verdicts_of_a_topic_are_shown_as_text(content: PooledFindings, tmp_path: Path) -> None:
    folder = write_sweep(tmp_path)
    chosen = content.value("topics")[0].outcome
    detail = {"claims": [{"claim": "<b>Anna</b> built it.", "verdict": "contradicted", "passages": ["d1", "d2"]}]}
    values = pd.DataFrame(
        {
            "qid": [chosen["qid"], "q-other"],
            "measure": "faithfulness",
            "status": "ok",
            "detail": json.dumps(detail),
        }
    )
    for job in folder.glob("*/outcomes.parquet"):
        write_details(values, job.parent)
    [with_values] = [pooled(s) for s in load(folder)]
    write_report([with_values.page], tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "What faithfulness rests on" in text
    assert "&lt;b&gt;Anna&lt;/b&gt; built it. · verdict contradicted · passages d1, d2" in text
    assert text.count("What faithfulness rests on") == 1


# --- the topics worth reading -----------------------------------------------------------------------


def worth(rows: list[tuple[str, str, int, float, int | None]], n: int = 20) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["qid", "system", "n_tokens", "ir_score", "label"])
    return worth_reading(frame.astype({"label": "Int8"}), n)


def test_high_and_wrong_and_low_and_right_half_and_half() -> None:
    rows = [(f"w{i}", "a", 100, 0.6 + i / 100, 4) for i in range(30)]
    rows += [(f"r{i}", "a", 100, 0.1 + i / 100, 5) for i in range(30)]
    rows += [("fine", "a", 100, 1.0, 5), ("partly", "a", 100, 1.0, 3), ("none", "a", 100, 1.0, None)]
    chosen = worth(rows)
    assert chosen["qid"].tolist() == [*(f"w{i}" for i in range(29, 19, -1)), *(f"r{i}" for i in range(10))]
    assert chosen["why"].value_counts().to_dict() == {"high score, but wrong": 10, "low score, but right": 10}
    pd.testing.assert_frame_equal(chosen, worth(rows[::-1]))


def test_the_side_with_too_few_topics_leaves_room_to_the_other() -> None:
    rows = [(f"w{i}", "a", 100, 0.9, 2) for i in range(30)] + [("r", "a", 100, 0.2, 5)]
    assert worth(rows)["why"].tolist() == ["high score, but wrong"] * 19 + ["low score, but right"]
    assert len(worth(rows[:3])) == 3
    assert worth([("fine", "a", 100, 1.0, 5)]).empty


def test_a_topic_stands_there_once_with_its_verdicts_and_systems_take_turns() -> None:
    rows = [(f"q{i}", system, n, 1.0, 4) for i in range(4) for system in "ab" for n in (100, 300)]
    rows.append(("q0", "c", 100, 0.0, 5))
    chosen = worth(rows)
    assert chosen["qid"].is_unique
    assert set(chosen["qid"]) == {"q0", "q1", "q2", "q3"}
    assert set(chosen["n_tokens"]) == {100}  # of equally high scores the smallest budget
    assert chosen.set_index("qid")["verdicts"]["q0"] == {4: 4, 5: 1}


def test_the_longest_match_by_hand() -> None:
    assert longest_match("the fat cat sat.", "A cat sat down") == (1, 8)
    assert longest_match("abc", "xyz") == (0, 0)
    assert longest_match("", "xyz") == (0, 0)
    assert match_evidence(["no match"], "")[0].span is None


def test_a_job_without_store_entries_is_told() -> None:
    with pytest.raises(DataError, match="names no store entries"):
        contexts_of(record_of(), ["q"])


# --- the command ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "message"),
    [("nowhere", "neither a folder nor an MLflow run id"), ("0" * 32, "no MLflow database at")],
)
def test_the_command_names_what_is_missing(
    source: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert main([source]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_folder_of_one_job_has_a_report_of_its_own(tmp_path: Path) -> None:
    job = write_sweep(tmp_path) / "2"
    assert main([str(job)]) == 0
    text = Elements((job / "report.html").read_text()).text
    assert "1 system compared" in text
    assert "sim" in text
    assert not (job.parent / "report.html").exists()


def test_of_several_systems_at_the_top_none_is_named_the_best(page: Path) -> None:
    [jobs] = load(page.parent)
    same = jobs.outcomes.assign(ir_score=1.0)
    [card, *_] = pooled(replace(jobs, outcomes=same)).page.cards
    assert (card.title, card.number, card.below) == ("Best IR score at N = 300", "1.000", "2 systems tie")


def test_a_folder_without_jobs_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert "no finished job" in capsys.readouterr().err


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[str], Path]:
    """An MLflow store with the runs of a sweep's jobs and of the sweep: its URI, run ids, and the folder."""
    from mlflow import MlflowClient

    root = tmp_path_factory.mktemp("tracked")
    folder = write_sweep(root)
    uri = f"sqlite:///{root / 'mlflow.db'}"
    client = MlflowClient(uri)
    experiment = client.create_experiment("towers", (root / "artifacts").as_uri())
    ids = []
    for record in sorted(folder.glob("[0-3]/job.json")):
        job = json.loads(record.read_text())
        tags = {**job["choices"], "role": "job", "sweep_id": "the-sweep", "n_tokens": str(job["n_tokens"])}
        run = client.create_run(experiment, tags=tags, run_name=job["name"])
        ids.append(run.info.run_id)
        for name, value in job["metrics"].items():
            client.log_metric(ids[-1], name, value)
        for n, value in job["ir_score_at_n"].items():
            client.log_metric(ids[-1], "ir_score_at_n", value, step=int(n))
        client.log_param(ids[-1], "bootstrap", 50)
        client.log_text(ids[-1], json.dumps(job["overrides"]), "config/overrides.yaml")
        table = pd.read_parquet(record.parent / "outcomes.parquet").assign(context=f"{NASTY} {FACT}")
        table["evidence"] = [[FACT, OTHER]] * len(table)
        columns = [
            "qid",
            "query",
            "answer_reference",
            "answer",
            "label",
            "ir_score",
            "evidence",
            "context",
            "judge_raw",
        ]
        client.log_table(ids[-1], table[columns].astype({"label": object}), "per_question.json")
        client.set_terminated(ids[-1])
    pooled = client.create_run(experiment, tags={"role": "sweep", "sweep_id": "the-sweep"})
    client.log_param(pooled.info.run_id, "folder", str(folder))
    client.set_terminated(pooled.info.run_id)
    return uri, [*ids, pooled.info.run_id], folder


def test_a_run_id_leads_to_the_sweep_s_folder(tracked: tuple[str, list[str], Path]) -> None:
    uri, ids, folder = tracked
    assert find(ids[0], uri) == folder
    assert find(ids[-1], uri) == folder


def test_without_the_folder_the_report_is_made_of_what_mlflow_holds(
    tracked: tuple[str, list[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri, ids, folder = tracked
    away = folder.rename(tmp_path / "away")
    monkeypatch.chdir(tmp_path)
    try:
        assert main([ids[-1], "--tracking-uri", uri]) == 0
    finally:
        away.rename(folder)
    text = (tmp_path / "report-the-sweep.html").read_text()
    [here] = [pooled(s) for s in load(folder)]
    assert f"{here.value('leaderboard').frame['ir_score'].iloc[0]:.3f}" in text
    # Without the folder the curves over N are not drawn here.
    assert len(Elements(text).all("img")) >= len(FIGURES) - 1
    assert f"<mark>{FACT}<sup>1</sup></mark>" in text


def test_an_unknown_run_is_told(tracked: tuple[str, list[str], Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["f" * 32, "--tracking-uri", tracked[0]]) == 2
    assert f"holds no run {'f' * 32}" in capsys.readouterr().err


# --- in a browser -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.mark.parametrize("width", [390, 1280])
def test_a_browser_shows_all_of_it_and_has_no_complaint(page: Path, browser: Browser, width: int) -> None:
    browser.open(page.as_uri(), width)
    problems = browser.told("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")
    assert problems == []
    assert browser.told("Page.javascriptDialogOpening") == []
    requested = [r["request"]["url"] for r in browser.told("Network.requestWillBeSent")]
    assert [url[:60] for url in requested if not url.startswith("data:")] == [page.as_uri()[:60]]
    drawn = browser.evaluate("[...document.images].map(i => i.complete && i.naturalWidth > 300)")
    assert drawn == [True] * len(FIGURES)
    assert browser.evaluate("document.scripts.length") == 0
    assert browser.evaluate(f"document.body.innerText.includes({json.dumps(SCRIPT)})")
    # Tables scroll inside themselves: the page is no wider than the screen.
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    tables = "[...document.querySelectorAll('table')]"
    assert browser.evaluate(f"{tables}.length") >= 14  # more with plug-ins that find more
    if width >= 1280:
        browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        cut = "[...document.querySelectorAll('.scroll')].filter(t => t.scrollWidth > t.clientWidth).length"
        assert browser.evaluate(cut) == 0
    assert browser.evaluate(f"{tables}.every(t => t.closest('.scroll') && t.tBodies[0].rows.length > 0)")


def test_a_detail_that_is_no_object_has_no_lines_and_a_long_one_is_cut() -> None:
    assert detail_lines("not json") == detail_lines("[1]") == detail_lines("{}") == []
    assert detail_lines('{"similarity": 0.5, "claims": ["a", {"claim": "b", "in_reference": true}, {}]}') == [
        "similarity: 0.5", "a", "b · in reference yes", "",
    ]  # fmt: skip
    assert detail_lines(json.dumps({"claims": ["x"] * 300}))[-1] == "and 200 more"
