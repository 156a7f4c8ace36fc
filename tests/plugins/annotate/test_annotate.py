"""`ragauge annotate` against a scripted server: evidence, qrels, sheet; kills, money, bad input; people's labels."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from attack_server import AttackServer
from chat_server import ChatServer, digest_of
from kills import Kill, check_kills, kill_and_read
from plugins.annotate.scripted_reader import DOCS, PASSAGES, SAID, TOPICS, asked_about, fails, reply, write
from processes import Command, clean_environment, until
from ragauge.contract.metrics import without_groups
from ragauge.plugins.annotate.command import main

CONCURRENCY = 4


def arguments(folder: Path, server: ChatServer, *more: str) -> list[str]:
    return [
        "--config-dir", str(folder / "conf"), "dataset=jsonl", f"dataset.docs={folder / 'corpus.jsonl'}",
        f"dataset.topics={folder / 'questions.jsonl'}", "evaluator=openai_compatible",
        "evaluator.chat.model=scripted", f"evaluator.chat.base_url={server.url}/v1",
        f"evaluator.concurrency={CONCURRENCY}", "evaluator.backoff=0.01", "chunker=tokens", "chunker.size=8",
        "chunker.overlap=0", "tokenizer=words", f"store={folder / 'store'}", "pool=[first,second]", "depth=4",
        f"tracking.uri=sqlite:///{folder / 'mlflow.db'}", f"out={folder / 'annotated.jsonl'}", *more,
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


# The pools by hand, a passage a row: ranks by the first and the second retriever, grade, status, what is verified.
POOL = {
    "t1": "A%p0 1 3 3 ok quoted|A%p1 - 1 2 ok|B%p0 4 2 3 ok quoted|C%p1 2 - 1 ok|E%p0 3 - 2 ok quoted|D%p0 - 4 0 ok",
    "t2": "C%p0 3 1 3 ok quoted|D%p1 1 2 0 ok|C%p1 2 3 2 ok quoted|B%p1 4 4 1 ok",
    "t3": "B%p1 1 4 - unreadable|D%p0 2 1 1 ok|D%p1 - 2 1 ok|A%p1 3 - - failed|C%p1 - 3 2 ok",
    "t4": "A%p1 1 - 0 ok|B%p0 - 1 0 ok|A%p0 - 2 0 ok|B%p1 2 - 0 ok|D%p1 3 3 2 ok quoted",
    "t7": "",
}
# Of each topic what becomes evidence: the text's passage, start, grade, ranks, all passages that hold it.
MADE = {
    "t1": ["A%p0 0 3 first:1,second:2 A%p0,B%p0,E%p0", "B 3", "E 2"],
    "t2": ["C%p0 0 3 first:3,second:1 C%p0", "C%p1 34 2 first:2,second:3 C%p1"],
    "t3": ["C 2"],
    "t4": ["D%p1 38 2 first:3,second:3 D%p1"],
    "t7": [],
}
# 20 passages for 18 requests, one of which fails: 5 %. Parts are new at ranks 1, 1, 2 and 3; the last is in the lower
# half of the depth, and the next four ranks would bring (1/5 + 1/6 + 1/7 + 1/8) / (1/3 + 1/4) = 1.0878 of it.
METRICS = {
    "topics": 5, "topics_with_evidence": 3, "passages": 20, "parts": 4, "unverified_quotes": 1, "unreadable": 1,
    "failed": 1, "grade_0": 6, "grade_1": 4, "grade_2": 5, "grade_3": 3, "missed": 1.0878, "missed_lo": 0,
}  # fmt: skip


def part_of(told: str) -> dict[str, Any]:
    """An entry of MADE as it is written."""
    passage, *numbers = told.split()
    if len(numbers) == 1:
        return {"docno": passage, "relevance": int(numbers[0])}
    start, grade, ranks, passages = numbers
    return {
        "docno": passage[0], "text": PASSAGES[passage], "relevance": int(grade), "start": int(start),
        "end": int(start) + len(PASSAGES[passage]), "passages": passages.split(","),
        "ranks": {name: int(rank) for name, rank in (one.split(":") for one in ranks.split(","))},
    }  # fmt: skip


def test_a_world_by_hand_in_all_files_metrics_and_lines(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = ["evaluator.retries=0", "evaluator.give_up_after=1000", "sheet_topics=3", f"corpus={corpus / 'docs.jsonl'}"]
    with AttackServer(reply, lambda prompt, n: "status_500" if fails(prompt) else None) as server:
        assert main(arguments(corpus, server, *more, "dry_run=true")) == 0
        assert "annotation: 18 calls (0 paid before)" in capsys.readouterr().out
        assert server.whole == {}
        assert main(arguments(corpus, server, *more, "max_missing_share=0.049")) == 4
        assert "1 of 20 passages have no grade since their requests failed, more than" in capsys.readouterr().err
        assert not list(corpus.glob("annotated*"))
        assert main(arguments(corpus, server, *more, "seed=3")) == 0  # 5 % is no more than 5 %
        asked = Counter(map(asked_about, server.whole.elements()))
    # What could not be read is asked for once more, what failed in the second run; all else once.
    assert {place: n for place, n in asked.items() if n != 1 and place != ("t3", "A%p1")} == {("t3", "B%p1"): 2}
    assert sum(asked.values()) - asked["t3", "A%p1"] - asked["t3", "B%p1"] == 16
    topics = {row["qid"]: row for row in rows(corpus / "annotated.jsonl")}
    for qid, row in topics.items():
        provenance, evidence = row.pop("provenance", None), row.pop("evidence")
        digests = [len(one) for part in evidence for one in part.pop("prompt_sha256", [])]
        # Equal passages are one request; t1's E is another.
        assert digests == [64] * (sum("text" in part for part in evidence if qid in POOL) + (qid == "t1"))
        assert row.pop("evidence_by") == ("evaluator" if qid in POOL else "dataset")
        given = {key: value for key, value in TOPICS[qid].items() if key != "evidence"}
        if qid == "t4":
            [given["answer"]] = given.pop("answers")
        assert row == {"qid": qid, **given}
        if qid in POOL:
            assert evidence == [part_of(told) for told in MADE[qid]]
            graded = [told.split() for told in POOL[qid].split("|") if told]
            assert (provenance["passages"], provenance["ungraded"]) == (len(graded), sum(g[3] == "-" for g in graded))
            assert provenance["unverified_quotes"] == (qid == "t1")
            assert (provenance["model"], provenance["retrievers"]) == ("scripted", ["first", "second"])
            assert (provenance["depth"], provenance["min_grade"]) == (4, 2)
        else:
            assert (evidence, provenance) == (TOPICS[qid].get("evidence", []), None)
    pool = {qid: [row for row in rows(corpus / "annotated.pool.jsonl") if row["qid"] == qid] for qid in POOL}
    for qid, found in pool.items():
        told = [
            [row["passage"], *(str(row["ranks"].get(name, "-")) for name in ("first", "second")),
             "-" if row["grade"] is None else str(row["grade"]), row["status"], *["quoted"] * bool(row["quotes"])]
            for row in found
        ]  # fmt: skip
        assert "|".join(map(" ".join, told)) == POOL[qid]
    assert [row["unverified"] for of in pool.values() for row in of if row["unverified"]] == [SAID["t1", "A%p1"][1]]
    assert (corpus / "annotated.qrels").read_text("utf-8").split("\n") == [
        "t1 0 A 3", "t1 0 B 3", "t1 0 C 1", "t1 0 E 2", "t1 0 D 0", "t2 0 C 3", "t2 0 D 0", "t2 0 B 1", "t3 0 D 1",
        "t3 0 C 2", "t4 0 A 0", "t4 0 B 0", "t4 0 D 2", "",
    ]  # fmt: skip
    # Three of the four topics with passages, in the order of a hash: filled from the top it is a sample, too.
    drawn = sorted(list(POOL)[:4], key=lambda qid: blake2b(f"3\0{qid}".encode(), digest_size=16).hexdigest())[:3]
    on_it = [row for qid in drawn for row in pool[qid]]
    sheet = pd.read_csv(corpus / "annotated.sheet.csv")
    assert sheet["qid"].drop_duplicates().tolist() == drawn
    assert sheet[["qid", "passage"]].to_numpy().tolist() == [[row["qid"], row["passage"]] for row in on_it]
    assert sheet["rank"].tolist() == [min(row["ranks"].values()) for row in on_it]
    assert sheet["model_grade"].fillna(-1).tolist() == [-1 if row["grade"] is None else row["grade"] for row in on_it]
    quotes = [" ".join(" | ".join(row["quotes"]).split()) for row in on_it]
    assert sheet["model_quotes"].fillna("").tolist() == quotes  # a cell is one line
    assert sheet["min_grade"].eq(2).all()
    assert [row["text"] for row in rows(corpus / "docs.jsonl")] == list(DOCS.values())
    with sqlite3.connect(corpus / "mlflow.db") as database:
        of = "where run_uuid = (select run_uuid from runs where status = 'FINISHED')"
        found = without_groups(dict(database.execute(f"select key, value from metrics {of}").fetchall()))
        tags = dict(database.execute(f"select key, value from tags {of}").fetchall())
    own = {name.removeprefix("annotation_"): value for name, value in found.items() if name.startswith("annotation_")}
    upper = own.pop("missed_hi")
    assert own == pytest.approx(METRICS, abs=1e-4)
    assert 6 <= upper <= 10  # 97.5 % of Poisson(2 x binomial(5, 1 / 5)): 8, but for 500 draws
    assert (tags["role"], tags["pool"]) == ("annotation", "first,second")
    said = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("wrote")]
    assert said == [
        "5 of 7 topics are annotated; the others have evidence or are unanswerable, and stay as they are",
        "pool: the first 4 passages of first, second for 5 topics, 20 distinct passages (4.0 a topic)",
        "20 passages: 3 of grade 3, 5 of grade 2, 4 of grade 1, 6 of grade 0; 2 without a grade",
        "4 evidence parts for 3 of 5 topics; 1 quotes dropped that do not stand in their passage",
        f"depth: 1 parts were first found at ranks 3 to 4; ranks 5 to 8 would bring about 1.1 more (95 % 0.0 to "
        f"{upper:.1f}, 21.4% of all up to there)",
        "evidence that none of these retrievers ranks so far up is in no such number",
        f"next: ragauge -m retriever=first,second dataset=jsonl dataset.docs={corpus / 'docs.jsonl'} "
        f"dataset.topics={corpus / 'annotated.jsonl'}",
    ]


def test_the_model_that_answers_is_warned_of_as_evaluator(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ChatServer(reply) as server:
        own = ["llm=openai_compatible", "llm.chat.model=scripted", f"llm.chat.base_url={server.url}/v1", "dry_run=true"]
        assert main(arguments(corpus, server, *own)) == 0
        assert "warning: the evaluator is the model that answers (scripted)" in capsys.readouterr().out
        assert main(arguments(corpus, server, *own, "llm.chat.model=another")) == 0
        assert "warning" not in capsys.readouterr().out


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
        (["depth=31"], "depth=31: retriever=first gives top_k=30 passages; allowed are 1 to 30"),
        (["min_grade=4"], "min_grade=4: allowed are integers from 1 to 3"),
        (["out=null"], "out is not set"),
        (["out=topics.csv"], "out=topics.csv: allowed are names that end in .jsonl"),
        (["evaluator=llm"], "evaluator=llm: no chat model grades passages"),
        (["deep=5"], "unknown key 'deep'"),
        (["dataset=samples", "dataset.path=questions.jsonl"], "dataset=samples: it has no documents to find"),
        (["dataset=sample"], "have evidence (or are unanswerable), so there is nothing to annotate"),
    ],
    ids=range(15),
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
    with ChatServer(reply, delay=0.5) as server:
        given = ["annotate", *arguments(corpus, server, "pool=[bm25,long]")]
        command = Command(corpus, *given, environment=environment)
        until(lambda: sum(server.whole.values()) >= 3 or not command.runs, "requests")
        kill = kill_and_read(command, server, corpus)
        assert not (corpus / "annotated.jsonl").exists()
        done = Command(corpus, *given, environment=environment).wait()
        assert done.returncode == 0, done.stderr
        # What cannot be read is asked for once more; all else is seen twice only if the kill cut it off.
        unread = {digest_of(prompt) for prompt in server.calls if asked_about(prompt) == ("t3", "B%p1")}
        log = [one for one in server.log if one.digest not in unread]
        end = Kill(sum(one.number < kill.at for one in log), kill.recorded)
        check_kills(log, [end], CONCURRENCY)
    sheet = pd.read_csv(corpus / "annotated.sheet.csv")
    # People agree, quote what the evaluator did not, and grade the fair, which has no grade.
    sheet["grade"] = sheet["model_grade"].fillna(3).astype(int)
    sheet["quotes"] = sheet["text"].where(sheet["model_quotes"].isna())
    sheet.to_csv(corpus / "filled.csv", index=False)
    sweep = [
        "-m", "--config-dir", str(corpus / "conf"), "dataset=jsonl", f"dataset.docs={corpus / 'corpus.jsonl'}",
        f"dataset.topics={corpus / 'annotated.jsonl'}", "retriever=bm25,long", "chunker=tokens", "chunker.size=8",
        "chunker.overlap=0", "tokenizer=words", "n_tokens=15", "llm=none", "bootstrap=20",
        "human_evidence=filled.csv", "measures=[]",
    ]  # fmt: skip
    done = Command(corpus, *sweep, environment=environment).wait()
    assert done.returncode == 0, done.stderr
    assert "IR score by people's evidence on 5 topics (PPI)" in done.stderr
    [table] = corpus.glob("mlruns/**/people_evidence.csv")
    found = pd.read_csv(table)
    assert set(found["system"]) == {"bm25", "long"}
    assert found["labelled"].eq(5).all()
    assert (found["lo"] <= found["ir_score_people"]).all()
