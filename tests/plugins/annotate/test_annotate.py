"""`ragauge annotate` against a scripted server: evidence, qrels, sheet; kills, money, bad input; people's labels."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from attack_server import AttackServer
from chat_server import ChatServer, digest_of
from kills import Kill, check_kills, kill_and_read
from plugins.annotate.scripted_reader import asked_about, bridge, question, reply, write
from processes import Command, clean_environment, until
from ragauge.contract.metric_names import without_groups
from ragauge.plugins.annotate.command import main

CONCURRENCY = 4


def arguments(folder: Path, server: ChatServer, *more: str) -> list[str]:
    return [
        "--config-dir", str(folder / "conf"), "dataset=jsonl", f"dataset.docs={folder / 'corpus.jsonl'}",
        f"dataset.topics={folder / 'questions.jsonl'}", "evaluator=openai_compatible",
        "evaluator.chat.model=scripted", f"evaluator.chat.base_url={server.url}/v1",
        f"evaluator.concurrency={CONCURRENCY}", "evaluator.backoff=0.01", "chunker=none", "tokenizer=words",
        f"store={folder / 'store'}", f"tracking.uri=sqlite:///{folder / 'mlflow.db'}", "pool=[bm25,long]", "depth=4",
        f"out={folder / 'annotated.jsonl'}", *more,
    ]  # fmt: skip


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["ragauge", "--config-dir", str(tmp_path / "conf")])  # where it is looked for
    monkeypatch.setenv("RAGAUGE_API_KEY", "k")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    write(tmp_path)
    return tmp_path


def rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_evidence_is_what_verified_quotes_say_and_everything_names_where_it_comes_from(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ChatServer(reply) as server:
        assert main(arguments(corpus, server, f"corpus={corpus / 'docs.jsonl'}")) == 0
        asked = [asked_about(prompt) for prompt in server.whole]
    topics = {row["qid"]: row for row in rows(corpus / "annotated.jsonl")}
    texts = {row["docno"]: row["text"] for row in rows(corpus / "docs.jsonl")}
    assert list(topics) == [row["qid"] for row in rows(corpus / "questions.jsonl")]
    assert (topics["Aldor"]["answers"], topics["Belmar"]["answer"]) == (["Aare", "the Aare"], "Birs")
    assert all(row["kind"] == "river" and row["length"] == 2.5 for row in topics.values())
    # What has evidence, and what has no answer, is not asked about and stays as it is.
    assert {town for town, _ in asked} == {question(town) for town in topics if town not in ("Gorlan", "Hesper")}
    assert topics["Hesper"]["evidence"] == [{"docno": "Hesper", "text": bridge("Hesper")}]
    assert (topics["Hesper"]["evidence_by"], topics["Gorlan"]["unanswerable"]) == ("dataset", True)
    made = {qid: [part for part in row["evidence"] if "text" in part] for qid, row in topics.items()}
    # Aldor's document stands twice: its sentence is one part, the copy a relevant document; white space is the text's.
    assert [part["text"] for part in made["Aldor"]] == [bridge("Aldor"), "Aldor is a town of\n  markets."]
    assert {part["docno"]: part["relevance"] for part in topics["Aldor"]["evidence"]} == {"Aldor": 3, "Copy": 3}
    assert made["Belmar"] == made["Cresta"] == []  # misquoted, unreadable
    for qid in ("Aldor", "Dorwen", "Elbrin", "Ferrin"):
        of, [first, _] = topics[qid]["provenance"], made[qid]
        assert texts[first["docno"]][first["start"] : first["end"]] == first["text"]
        assert (of["model"], of["retrievers"], of["depth"]) == ("scripted", ["bm25", "long"], 4)
        assert len(of["prompt_sha256"]) == len(first["prompt_sha256"][0]) == 64
        assert set(first["ranks"]) == {"bm25", "long"}
        assert min(first["ranks"].values()) >= 1
    qrels = [line.split() for line in (corpus / "annotated.qrels").read_text("utf-8").splitlines()]
    assert ["Dorwen", "0", "Dorwen", "3"] in qrels
    assert {grade for qid, _, docno, grade in qrels if docno != qid and docno != "Copy"} <= {"0", "1"}
    pool = rows(corpus / "annotated.pool.jsonl")
    [belmar] = [row for row in pool if row["qid"] == row["docno"] == "Belmar"]
    assert (belmar["quotes"], belmar["unverified"]) == ([], ["The bridge of Belmar crosses a river."])
    assert [row["status"] for row in pool if row["qid"] == row["docno"] == "Cresta"] == ["unreadable"]
    said = capsys.readouterr().out
    assert "6 of 8 topics are annotated" in said
    assert "8 evidence parts for 4 of 6 topics; 1 quotes dropped that do not stand in their passage" in said
    with sqlite3.connect(corpus / "mlflow.db") as database:
        found = dict(database.execute("select key, value from metrics").fetchall())
        tags = dict(database.execute("select key, value from tags").fetchall())
    metrics = without_groups(found)
    assert (metrics["annotation_parts"], metrics["annotation_unverified_quotes"]) == (8, 1)
    assert metrics["annotation_passages"] == len(pool)
    assert (tags["role"], tags["pool"]) == ("annotation", "bm25,long")


def test_a_dry_run_tells_calls_and_money_and_what_was_paid_is_paid_once(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ["evaluator.price={prompt:1000,completion:1000}"]
    with ChatServer(reply) as server:
        assert main(arguments(corpus, server, *more, "dry_run=true")) == 0
        said = capsys.readouterr().out
        assert server.whole == {}
        assert not (corpus / "annotated.jsonl").exists()
        assert main(arguments(corpus, server, *more)) == 0
        once = len(server.whole)
        assert f"annotation: {once} calls (0 paid before)" in said
        assert main(arguments(corpus, server, *more, "overwrite=true", "min_grade=3")) == 0
        # What could not be read was asked for once more, all else is in the ledger.
        assert {asked_about(p)[0] for p, n in server.whole.items() if n > 1} == {question("Cresta")}


def test_the_model_that_answers_is_warned_of_as_evaluator(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ChatServer(reply) as server:
        own = ["llm=openai_compatible", "llm.chat.model=scripted", f"llm.chat.base_url={server.url}/v1", "dry_run=true"]
        assert main(arguments(corpus, server, *own)) == 0
        assert "warning: the evaluator is the model that answers (scripted)" in capsys.readouterr().out
        assert main(arguments(corpus, server, *own, "llm.chat.model=another")) == 0
        assert "warning" not in capsys.readouterr().out


def test_requests_that_fail_end_the_run_and_the_next_asks_for_these_alone(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = {"on": True}

    def faults(prompt: str, n: int) -> str | None:
        return "status_500" if broken["on"] and "Dorwen" in asked_about(prompt)[0] else None

    more = ["evaluator.retries=0", "evaluator.give_up_after=1000"]
    with AttackServer(reply, faults) as server:
        assert main(arguments(corpus, server, *more)) == 4
        assert "more than max_missing_share=0.05; what was answered is kept" in capsys.readouterr().err
        assert not (corpus / "annotated.jsonl").exists()
        whole = Counter(server.whole)
        broken["on"] = False
        assert main(arguments(corpus, server, *more)) == 0
        asked = {asked_about(prompt)[0] for prompt in server.whole - whole}
    assert asked == {question("Dorwen")}


def test_replies_none_of_which_can_be_read_end_with_4_and_no_file(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ChatServer(lambda prompt: "hmm") as server:
        assert main(arguments(corpus, server)) == 4
    assert "no grade could be read in the replies on" in capsys.readouterr().err
    assert not list(corpus.glob("annotated*"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["pool=[bm25]"], "pool=[bm25]: allowed are two or more different options of retriever"),
        (["pool=[bm25,bm25]"], "pool=[bm25, bm25]: allowed are two or more different"),
        (["pool=[bm25,oracle]"], "pool: retriever=oracle does not search the documents"),
        (["pool=[bm25,none]"], "pool: retriever=none does not search the documents"),
        (["pool=[bm25,nope]"], "nope"),
        (["retriever=bm25"], "retriever=bm25: several retrievers are pooled; give them as pool=[bm25,sim]"),
        (["depth=0"], "depth=0: allowed are integers from 1"),
        (["depth=31"], "depth=31: retriever=bm25 gives top_k=30 passages; allowed are 1 to 30"),
        (["min_grade=4"], "min_grade=4: allowed are integers from 1 to 3"),
        (["out=null"], "out is not set"),
        (["out=topics.csv"], "out=topics.csv: allowed are names that end in .jsonl"),
        (["evaluator=llm"], "evaluator=llm: no chat model grades passages"),
        (["deep=5"], "unknown key 'deep'"),
        (["dataset=sample"], "have evidence (or are unanswerable), so there is nothing to annotate"),
    ],
    ids=range(14),
)  # fmt: skip
def test_bad_input_gets_one_line_before_anybody_is_asked(
    given: list[str], message: str, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ChatServer(reply) as server:
        usual = arguments(corpus, server)
        group = given[0].partition("=")[0]
        if group in ("evaluator", "dataset"):
            usual = [argument for argument in usual if not argument.startswith(group)]
        usual = [argument for argument in usual if not argument.startswith(f"{group}=")]
        assert main([*usual, *given]) == 2
        assert server.whole == {}
    [line] = capsys.readouterr().err.splitlines()
    assert message in line
    assert not (corpus / "mlflow.db").exists()


def test_a_sheet_that_people_filled_is_not_written_over(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (corpus / "annotated.sheet.csv").write_text("filled in", "utf-8")
    with ChatServer(reply) as server:
        assert main(arguments(corpus, server)) == 2
    assert "annotated.sheet.csv is there; overwrite=true writes it again" in capsys.readouterr().err


@pytest.mark.slow
def test_killed_and_resumed_it_pays_for_nothing_twice_and_people_correct_a_sweep(corpus: Path) -> None:
    environment = clean_environment(RAGAUGE_API_KEY="k")
    with ChatServer(reply, delay=0.05) as server:
        given = ["annotate", *arguments(corpus, server)]
        command = Command(corpus, *given, environment=environment)
        until(lambda: sum(server.whole.values()) >= 6 or not command.runs, "requests")
        kill = kill_and_read(command, server, corpus)
        assert not (corpus / "annotated.jsonl").exists()
        done = Command(corpus, *given, environment=environment).wait()
        assert done.returncode == 0, done.stderr
        # What cannot be read is asked for once more; all else is seen twice only if the kill cut it off.
        unread = {digest_of(prompt) for prompt in server.calls if "of Cresta cross" in prompt}
        log = [one for one in server.log if one.digest not in unread]
        end = Kill(sum(one.number < kill.at for one in log), kill.recorded)
        check_kills(log, [end], CONCURRENCY)
    sheet = pd.read_csv(corpus / "annotated.sheet.csv")
    # People agree but for Belmar, whose sentence they quote, and Cresta, whose passage has no grade.
    sheet["grade"] = sheet["model_grade"].fillna(3).astype(int)
    sheet["quotes"] = sheet["quotes"].astype(object)
    right = sheet["qid"] == sheet["docno"]
    for town in ("Belmar", "Cresta"):
        sheet.loc[right & sheet["qid"].eq(town), "quotes"] = bridge(town)
    sheet.to_csv(corpus / "filled.csv", index=False)
    sweep = [
        "-m", "--config-dir", str(corpus / "conf"), "dataset=jsonl", f"dataset.docs={corpus / 'corpus.jsonl'}",
        f"dataset.topics={corpus / 'annotated.jsonl'}", "retriever=bm25,long", "chunker=none", "tokenizer=words",
        "n_tokens=15", "llm=none", "bootstrap=20", "human_evidence=filled.csv", "measures=[]",
    ]  # fmt: skip
    done = Command(corpus, *sweep, environment=environment).wait()
    assert done.returncode == 0, done.stderr
    assert "IR score by people's evidence on 7 topics (PPI)" in done.stderr
    [table] = corpus.glob("mlruns/**/people_evidence.csv")
    found = pd.read_csv(table)
    assert set(found["system"]) == {"bm25", "long"}
    assert found["labelled"].eq(7).all()
    assert (found["lo"] <= found["ir_score_people"]).all()
