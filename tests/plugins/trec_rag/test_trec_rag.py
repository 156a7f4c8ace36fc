"""TREC RAG's answers in and out, the scores of nuggets beside exact fractions, and runs with ir_metadata."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from pathlib import Path
from statistics import mean
from typing import Any

import pandas as pd
import pytest

from processes import run
from ragauge.contract.errors import DataError
from ragauge.plugins.benchmarks.trec import Trec
from ragauge.plugins.trec_rag import command, scores, writing
from ragauge.plugins.trec_rag.answers import RagAnswer, Sentence, marked, read_answers, sentences_of
from ragauge.plugins.trec_rag.system import RagAnswers, RagReferences
from ragauge.retrieval.chunkers import NoChunker
from ragauge.retrieval.retrievers.recorded import read_trec_run
from small_pipeline import SmallPipelines
from sweep_records import job_json

A0, A1, B0 = "msmarco_v2.1_doc_00_1#0_10", "msmarco_v2.1_doc_00_1#1_11", "msmarco_v2.1_doc_00_2#0_20"
SEGMENTS = {A0: "Anna built the tower.", A1: "It is 75 metres high.", B0: "The Mur rises in Salzburg."}
TOPICS = {"2024-1": "who built the tower", "2024-2": "where does the Mur rise"}
# A sentence may hold two, or brackets, or no full stop.
ANSWERS: list[dict[str, Any]] = [
    {
        "run_id": "team-é",
        "topic_id": "2024-1",
        "topic": TOPICS["2024-1"],
        "references": [A1, A0],
        "response_length": 13,
        "answer": [
            {"text": "Anna built it. She was from Graz [sic]", "citations": [1, 0]},
            {"text": " it is 75 m high", "citations": []},
        ],
    },
    {
        "run_id": "team-é",
        "topic_id": "2024-2",
        "topic": TOPICS["2024-2"],
        "references": [],
        "response_length": 0,
        "answer": [],
    },
]
OF_2025 = {
    "metadata": {"team_id": "us", "run_id": "r", "type": "automatic", "narrative_id": 7, "narrative": "Why é?"},
    "references": [A0, B0],
    "answer": [{"text": "Because é.", "citations": [1]}],
}


def lines(*rows: dict[str, Any], ascii_alone: bool = True) -> str:
    return "".join(json.dumps(row, ensure_ascii=ascii_alone) + "\n" for row in rows)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """The files of a made track: topics, segments and a run."""
    segments = lines(*({"docid": docno, "url": "", "title": "", "segment": text} for docno, text in SEGMENTS.items()))
    texts = {
        "topics.tsv": "".join(f"{qid}\t{query}\n" for qid, query in TOPICS.items()),
        "segments.jsonl": segments,
        "run.jsonl": lines(*ANSWERS),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return {name: tmp_path / name for name in texts}


@pytest.mark.parametrize("text", [lines(*ANSWERS), lines(OF_2025, ascii_alone=False)], ids=["2024", "2025"])
def test_a_file_is_written_as_it_was_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.jsonl").write_text(text, encoding="utf-8")
    found = [one for _, one in read_answers(tmp_path / "run.jsonl")]
    assert "".join(one.line() for one in found) == text
    assert all(sentences_of(marked(one.sentences)) == one.sentences for one in found)


def test_citations_may_be_ids(tmp_path: Path) -> None:
    row = {**OF_2025, "answer": [{"text": "So.", "citations": [B0, A0]}]}
    (tmp_path / "run.jsonl").write_text(lines(row), encoding="utf-8")
    [(_, one)] = read_answers(tmp_path / "run.jsonl")
    assert one.sentences == (Sentence("So.", (1, 0)),)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"answer": [{"text": "So.", "citations": [2]}]}, r"cites 2: allowed are the places of 2 references, from 0"),
        ({"answer": [{"text": "So.", "citations": [True]}]}, r"cites True: allowed are"),
        ({"answer": [{"text": "So."}]}, r"'citations' is not a list|'citations' is missing"),
        ({"references": ["a b"]}, r"reference 'a b' is empty or holds white space"),
        ({"answer": [{"text": "a\u2028b", "citations": []}]}, r"sentence 0 holds the line separator U\+2028"),
        ({"references": [A0, A0]}, r"reference 'msmarco_v2\.1_doc_00_1#0_10' stands twice"),
        ({"topic_id": None}, r"'topic_id' is neither a text nor a whole number"),
        ({"topic_id": True}, r"'topic_id' is neither a text nor a whole number"),
        ({"metadata": 3}, r"'metadata' is no object: 3"),
        ({"run_id": 3}, r"'run_id' is not a string"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    (tmp_path / "run.jsonl").write_text(lines(ANSWERS[1], {**ANSWERS[0], **change}), encoding="utf-8")
    with pytest.raises(DataError, match=rf"run\.jsonl, line 2: .*({said})"):
        list(read_answers(tmp_path / "run.jsonl"))


def test_a_participant_is_a_recorded_system(files: dict[str, Path], tmp_path: Path) -> None:
    small = SmallPipelines(tmp_path / "job", embedder=None)  # type: ignore[arg-type]
    topics, segments = files["topics.tsv"], files["segments.jsonl"]
    parts = {"retriever": RagReferences(files["run.jsonl"]), "llm": RagAnswers(files["run.jsonl"])}
    job = small(dataset=Trec(docs=segments, topics=topics), chunker=NoChunker(), **parts, n_tokens=16)
    run = job.frame("run")
    assert run[["qid", "docno"]].values.tolist() == [["2024-1", f"{A1}%p0"], ["2024-1", f"{A0}%p0"]]
    answers = job.frame("answers").set_index("qid")
    assert answers["answer"]["2024-1"] == "Anna built it. She was from Graz [sic]  it is 75 m high"
    assert answers["status"].to_dict() == {"2024-1": "ok", "2024-2": "missing"}
    alone = small(dataset=Trec(topics=topics), chunker=NoChunker(), **parts)
    assert alone.frame("run").empty
    assert alone.frame("answers")["answer"].tolist() == job.frame("answers")["answer"].tolist()
    metadata = {**OF_2025["metadata"], "narrative_id": "2024-2"}
    (tmp_path / "2025.jsonl").write_text(lines({**OF_2025, "metadata": metadata}), encoding="utf-8")
    parts["llm"] = RagAnswers(tmp_path / "2025.jsonl", on_missing="missing")
    later = small(dataset=Trec(topics=topics), chunker=NoChunker(), **parts).frame("answers").set_index("qid")
    assert json.loads(later["rag_metadata"]["2024-2"]) == metadata


@pytest.mark.slow
def test_one_command_reads_a_run_and_one_writes_it_again(files: dict[str, Path], tmp_path: Path) -> None:
    text = " ".join(one["text"] for one in ANSWERS[0]["answer"])
    nuggets = [
        {"text": "Anna built it", "importance": "vital", "assignment": "support"},
        {"text": "75 m high", "importance": "okay", "assignment": "partial_support"},
    ]
    assigned = {
        "query": TOPICS["2024-1"],
        "qid": "2024-1",
        "answer_text": text,
        "response_length": 13,
        "run_id": "team-é",
        "nuggets": nuggets,
    }
    (tmp_path / "assignments.jsonl").write_text(lines(assigned), encoding="utf-8")
    given = [
        "experiment=trec_rag", f"recorded.path={files['run.jsonl']}", f"recorded.docs={files['segments.jsonl']}",
        f"dataset.topics={files['topics.tsv']}", "answers=[nuggets]", "max_missing_share=1", "bootstrap=0",
        f"answers.nuggets.assignments={tmp_path / 'assignments.jsonl'}", "hydra.run.dir=out",
    ]  # fmt: skip
    done = run(tmp_path, *given)
    assert done.returncode == 0, done.stderr
    assert command.main(["export", str(tmp_path / "out"), "-o", str(tmp_path / "again")]) == 0
    assert (tmp_path / "again/answers.jsonl").read_bytes() == files["run.jsonl"].read_bytes()
    assert (tmp_path / "again/assignments.jsonl").read_bytes() == (tmp_path / "assignments.jsonl").read_bytes()
    found = writing.read_ir_metadata((tmp_path / "again/run.trec").read_text(encoding="utf-8"))
    assert found is not None
    assert found["tag"] == "team-é"
    assert read_trec_run(tmp_path / "again/run.trec")["docno"].tolist() == [A1, A0]
    again = ["export", str(tmp_path / "out"), "-o", str(tmp_path / "again")]
    assert command.main([*again, "--year", "2025"]) == command.main(again) == 0


def test_scores_are_those_of_exact_fractions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng, weights = random.Random(0), {"support": Fraction(1), "partial_support": Fraction(1, 2), "not_support": 0}
    rows = [
        {
            "qid": f"q{i}",
            "nuggets": [
                {"importance": rng.choice(["vital", "okay", "failed"]), "assignment": rng.choice(list(weights))}
                for _ in range(rng.randrange(8))
            ],
        }
        for i in range(60)
    ]

    def share(row: dict[str, Any], vital: bool, strict: bool) -> float:
        own = [n for n in row["nuggets"] if not vital or n["importance"] == "vital"]
        counted = [int(weights[n["assignment"]]) if strict else weights[n["assignment"]] for n in own]
        return float(sum(counted, Fraction(0)) / len(own)) if own else 0.0

    expected = [
        {
            "qid": row["qid"],
            "strict_vital_score": share(row, True, True),
            "strict_all_score": share(row, False, True),
            "vital_score": share(row, True, False),
            "all_score": share(row, False, False),
        }
        for row in rows
    ]
    names = list(expected[0])[1:]
    total = {"qid": "all", **{name: mean(Fraction(one[name]) for one in expected) for name in names}}
    assert scores.score_lines(rows) == [*expected, {**total, **{n: float(total[n]) for n in names}}]
    (tmp_path / "assignments.jsonl").write_text(lines(*rows), encoding="utf-8")
    out = tmp_path / "scores.jsonl"
    assert command.main(["scores", str(tmp_path / "assignments.jsonl"), "-o", str(out)]) == 0
    shown = ", ".join(f"{name.removesuffix('_score')} {float(total[name]):.4f}" for name in names)
    assert capsys.readouterr().out == f"{out}: means over topics: {shown}\n"
    assert [json.loads(line) for line in out.read_text().splitlines()] == scores.score_lines(rows)
    (tmp_path / "bad.jsonl").write_text(lines(rows[0], {"qid": "q", "nuggets": [{"importance": "vital"}]}))
    with pytest.raises(DataError, match=r"bad\.jsonl, line 2: nugget 1 is no object with importance and an assignment"):
        scores.write_scores(tmp_path / "bad.jsonl", out)


def test_the_length_is_counted_as_the_track_does() -> None:
    one = RagAnswer("q", "", "r", (), (Sentence(" two\u00a0words "), Sentence("ﬁne;x\u3000y")))
    assert one.length == 4


# A finished job: documents of the context by passage, the answer with its marks, status. Of q4 twenty-one documents
# stand in the context, one more than a reference may have, and q5 cites them all; q3 was not sampled.
JOB = {
    "q1": ("Who built it?", "a%p0 b%p0 a%p1", "Anna built it [2]. It is 75 m high [1][3]. Nothing [9].", "ok"),
    "q2": ("When?", "c%p0", None, "missing"),
    "q3": ("Why?", "a%p0", None, "not sampled"),
    "q4": ("Where?", " ".join(f"d{i}%p0" for i in range(21)), "In Graz [21][3].", "ok"),
    "q5": ("Who?", " ".join(f"d{i}%p0" for i in range(21)), f"All {''.join(f'[{i}]' for i in range(1, 22))}.", "ok"),
}
NUGGETS = [
    {"nugget": "Anna built it", "importance": "vital", "support": "support"},
    {"nugget": "in 1901", "importance": "okay", "support": "not_support"},
]


def job_by_hand(folder: Path, **columns: list[Any]) -> Path:
    """The folder of the job, whose run was reranked; columns: more of its outcomes."""
    digest = "1" * 64

    def frame(stage: str, name: str, **of: Any) -> None:
        (folder / stage / digest).mkdir(parents=True, exist_ok=True)
        pd.DataFrame(of).to_parquet(folder / stage / digest / f"{name}.parquet")

    qids = list(JOB)
    queries, docnos, answers, status = map(list, zip(*JOB.values(), strict=True))
    docnos = [one.split() for one in docnos]
    frame("dataset", "topics", qid=qids, query=queries, answer=[None] * 5)
    frame("dataset", "evidence", qid=["q1"], part=[0], docno=["a"], text=["Anna did."])
    frame("context", "layouts", qid=qids, layout=0, text="x" * 50, docnos=docnos,
          starts=[[2 * i for i in range(len(of))] for of in docnos])  # fmt: skip
    frame("context", "prefixes", qid=qids, layout=0, n_tokens=5, end=50, n_chunks=[len(of) for of in docnos], n_used=5)
    frame("run", "run", qid=["q1", "q1"], docno=["a%p0", "b%p0"], score=[2.0, 1.0], rank=[0, 1])
    frame("reranked", "run", qid=["q1", "q1"], docno=["b%p0", "a%p0"], score=[4.0, 3.0], rank=[0, 1])
    outcomes = {"qid": qids, "answer": answers, "answer_status": status, "answer_error": None, "label": None}
    pd.DataFrame({**outcomes, **columns}).to_parquet(folder / "outcomes.parquet")
    details = [("q1", "nuggets_strict_vital", json.dumps({"nuggets": NUGGETS})), ("q2", "nuggets_strict_vital", "{}"),
               ("q4", "nuggets_strict_vital", None), ("q1", "em", json.dumps({"nuggets": []}))]  # fmt: skip
    pd.DataFrame(details, columns=["qid", "measure", "detail"]).to_parquet(folder / "answer_details.parquet")
    record = {
        "name": "a job", "store": str(folder), "n_tokens": 5, "overrides": ["retriever=bm25", "n_tokens=5"],
        "entries": dict.fromkeys(("dataset", "context", "run", "reranked"), digest), "rankings": {"rr": "RR"},
        "choices": {"rewriter": "none", "retriever": "bm25", "reranker": "llm", "llm": "ollama"},
        "dataset": {"name": "made", "digest": "2" * 64},
    }  # fmt: skip
    job_json(folder, {**record, "metrics": {"rr": 1.0}, "dataset_digest": "2"})
    return folder


def test_a_job_by_hand_in_all_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = job_by_hand(tmp_path)
    assert command.main(["export", str(folder)]) == 0
    out = folder / "trec_rag"
    told = {"answers.jsonl": 4, "run.trec": 2, "nuggets.jsonl": 1, "assignments.jsonl": 1}
    assert capsys.readouterr().out.splitlines() == [f"{out / name}: {n} rows" for name, n in told.items()]

    def row(qid: str, references: list[str], length: int, *said: tuple[str, list[int]]) -> dict[str, Any]:
        answer = [{"text": text, "citations": cited} for text, cited in said]
        return {"run_id": "bm25", "topic_id": qid, "topic": JOB[qid][0], "references": references,
                "response_length": length, "answer": answer}  # fmt: skip

    rows = [
        row("q1", ["a", "b"], 9, ("Anna built it.", [1]), ("It is 75 m high.", [0]), ("Nothing.", [])),
        row("q2", ["c"], 0),
        row("q4", ["d2", "d20"], 2, ("In Graz.", [1, 0])),
        row("q5", [f"d{i}" for i in range(20)], 1, ("All.", list(range(20)))),
    ]
    assert (out / "answers.jsonl").read_text() == lines(*rows)
    nuggets = [{"text": one["nugget"], "importance": one["importance"]} for one in NUGGETS]
    assert (out / "nuggets.jsonl").read_text() == lines({"query": "Who built it?", "qid": "q1", "nuggets": nuggets})
    assigned = [{**of, "assignment": one["support"]} for of, one in zip(nuggets, NUGGETS, strict=True)]
    whole = {"query": "Who built it?", "qid": "q1", "answer_text": "Anna built it. It is 75 m high. Nothing.",
             "response_length": 9, "run_id": "bm25", "nuggets": assigned}  # fmt: skip
    assert (out / "assignments.jsonl").read_text() == lines(whole)
    run = (out / "run.trec").read_text()
    assert run.startswith("# ir_metadata.start\n# tag: bm25\n")
    assert [line.split()[2:] for line in run.splitlines()[-2:]] == [
        ["b", "0", "1.0000000000", "bm25"], ["a", "1", "0.5000000000", "bm25"],
    ]  # fmt: skip
    found = writing.read_ir_metadata(run)
    assert found is not None
    assert writing.read_ir_metadata(run.partition(".end")[2]) is None
    assert (found["data"], found["research goal"]) == (
        {"test collection": {"name": "made", "digest": "2" * 64}}, {"evaluation": {"reported measures": ["RR"]}},
    )  # fmt: skip
    # What ragauge did not write stays, and nothing else is written, unless that is forced.
    for file in out.iterdir():
        before = {one: one.read_bytes() for one in out.iterdir()}
        file.write_text("mine")
        assert command.main(["export", str(folder)]) == 2
        assert f"{file} is there, and ragauge did not write it" in capsys.readouterr().err
        assert {one: one.read_bytes() for one in out.iterdir()} == {**before, file: b"mine"}
        assert command.main(["export", str(folder), "--force"]) == 0
        assert {one: one.read_bytes() for one in out.iterdir()} == before
    assert found["implementation"]["executable"] == {"cmd": "ragauge retriever=bm25 n_tokens=5"}
    assert found["method"] == {"automatic": True, "retrieval": [{"name": "bm25", "method": "retriever"},
                                                                {"name": "llm", "method": "reranker"}]}  # fmt: skip


def test_the_year_the_team_and_what_a_participant_said_decide_the_format(tmp_path: Path) -> None:
    given = {**OF_2025["metadata"], "run_id": "theirs"}
    said = (Sentence("Because.", (1,)),)
    columns = {
        name: [value, None, None, None, None]
        for name, value in {
            "cited_answer": marked(said), "rag_references": '["x", "y"]', "rag_run_id": "theirs",
            "rag_topic_id": '"q1"', "rag_metadata": json.dumps(given),
        }.items()
    }  # fmt: skip

    def exported(*more: str) -> list[dict[str, Any]]:
        assert command.main(["export", str(job_by_hand(tmp_path, **columns)), "-o", str(tmp_path / "out"), *more]) == 0
        return [json.loads(line) for line in (tmp_path / "out" / "answers.jsonl").read_text("utf-8").splitlines()]

    answer = [{"text": "Because.", "citations": [1]}]
    theirs, own, *_ = exported()
    assert theirs == {"metadata": given, "references": ["x", "y"], "answer": answer}
    assert (own["run_id"], own["topic_id"]) == ("bm25", "q2")
    theirs, own, *_ = exported("--year", "2025", "--team", "us", "--run-id", "mine")
    assert theirs["metadata"] == {**given, "run_id": "mine"}
    assert own["metadata"] == {"team_id": "us", "run_id": "mine", "type": "automatic", "narrative_id": "q2",
                               "narrative": "When?"}  # fmt: skip
    theirs, _, last, _ = exported("--year", "2024")
    assert theirs == {"run_id": "theirs", "topic_id": "q1", "topic": "Who built it?", "references": ["x", "y"],
                      "response_length": 1, "answer": answer}  # fmt: skip
    assert exported("--year", "2025")[2]["metadata"]["team_id"] == "organizer"
    assert len(exported("--year", "2025")[2]["references"]) == 21 > len(last["references"])
