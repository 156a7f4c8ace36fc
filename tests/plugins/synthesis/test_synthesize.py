"""`ragauge synthesize` against a scripted server: every filter at work, kills, attacks, the round trip."""

from __future__ import annotations

import errno
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
from plugins.synthesis.scripted_writer import kind_of, reply, write_folder
from processes import Command, clean_environment, until
from ragauge.contract.metrics import without_groups
from ragauge.plugins.synthesis import synthesizing
from ragauge.plugins.synthesis.command import main
from ragauge.plugins.synthesis.drafts import REASONS

Folder = pytest.importorskip("ragauge.plugins.folders.dataset").Folder

CONCURRENCY = 4


def arguments(folder: Path, server: ChatServer, *more: str) -> list[str]:
    return [
        "dataset=folder", f"dataset.path={folder / 'docs'}", "llm=openai_compatible",
        "llm.chat.model=scripted", f"llm.chat.base_url={server.url}/v1", f"llm.concurrency={CONCURRENCY}",
        "chunker=none", "tokenizer=words", f"store={folder / 'store'}",
        f"tracking.uri=sqlite:///{folder / 'mlflow.db'}", f"out={folder / 'questions.jsonl'}",
        "filters.duplicate_cosine=null", "llm.backoff=0.01", *more,
    ]  # fmt: skip


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAGAUGE_API_KEY", "k")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    write_folder(tmp_path / "docs")
    return tmp_path


def rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def run_of(folder: Path) -> tuple[dict[str, float], dict[str, str], str, str]:
    """Metrics, tags, status and artifact folder of the newest MLflow run."""
    with sqlite3.connect(folder / "mlflow.db") as database:
        [run_id, status, artifacts] = database.execute(
            "select run_uuid, status, artifact_uri from runs order by start_time desc limit 1"
        ).fetchone()
        metrics = without_groups(dict(database.execute("select key, value from metrics where run_uuid = ?", [run_id])))
        tags = dict(database.execute("select key, value from tags where run_uuid = ?", [run_id]))
    return metrics, tags, status, artifacts


SHARES = "shares={one_hop:0.5,two_hop:0.125,comparison:0.125,unanswerable:0.25}"


def test_every_filter_strikes_what_it_is_for_and_each_record_says_which(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ChatServer(reply) as server:
        more = ["n_questions=32", "max_drafts=90", "filters.round_trip_top_k=1", SHARES]
        assert main(arguments(corpus, server, *more)) == 0
        sent = Counter(map(kind_of, server.whole.elements()))
    accepted, rejected = rows(corpus / "questions.jsonl"), rows(corpus / "questions.rejected.jsonl")
    assert Counter(row["kind"] for row in accepted) == {
        "one_hop": 16, "two_hop": 4, "comparison": 4, "unanswerable": 8,
    }  # fmt: skip
    struck = {}
    for row in rejected:
        town = row["provenance"]["documents"][0].removesuffix(".md").rpartition("/")[2]
        struck.setdefault(row["rejected_by"], set()).add((row["kind"], town))
    assert ("one_hop", "Aldor") in struck["evidence"]
    assert ("one_hop", "Belmar") in struck["follows"]
    assert ("one_hop", "Cresta") in struck["closed_book"]
    assert struck["unreadable"] == {("one_hop", "Elbrin")}
    assert {kind for kind, _ in struck["duplicate"]} == {"one_hop"}
    assert ("one_hop", "Ilmar") in struck["follows"]
    assert {town for _, town in struck.get("answerable", ())} <= {"Gorlan"}
    by_town = {row["provenance"]["documents"][0]: row for row in rejected if row["kind"] == "one_hop"}
    [lost] = {
        row["provenance"]["filters"]["evidence_not_found"]
        for row in rejected
        if "evidence_not_found" in row["provenance"]["filters"]
    }
    assert lost == "A bridge was built by Ines Korvath."
    assert by_town["south/Elbrin.md"]["raw"].startswith("A good question would be")
    # Evidence stands where the record says, white space as in the document.
    docs = {row["docno"]: row["text"] for row in Folder(path=corpus / "docs").documents()[0].to_dict("records")}
    for row in accepted:
        assert all(docs[e["docno"]][e["start"] : e["end"]] == e["text"] for e in row["evidence"])
        assert {e["docno"] for e in row["evidence"]} == (
            set() if row["kind"] == "unanswerable" else set(row["provenance"]["documents"])
        )
        assert ("answer" in row) != row.get("unanswerable", False)
    assert any("\n  two markets" in e["text"] for row in accepted for e in row["evidence"])
    # The numbers of the run and of the terminal are those of the files.
    metrics, tags, status, artifacts = run_of(corpus)
    assert (status, tags["role"], tags["stand_in"], tags["model"]) == ("FINISHED", "synthesis", "False", "scripted")
    why = Counter(row["rejected_by"] for row in rejected)
    asked = [row for row in accepted if row["kind"] != "unanswerable"]
    found = sum(row["provenance"]["filters"]["round_trip_rank"] == 1 for row in asked)
    assert 0 < found < len(asked)  # two documents have no first place in common
    assert {name.removeprefix("synthesis_"): n for name, n in metrics.items() if name.startswith("synthesis_")} == {
        "drafts": len(accepted) + len(rejected), "accepted": 32, "accepted_one_hop": 16, "accepted_two_hop": 4,
        "accepted_comparison": 4, "accepted_unanswerable": 8, "round_trip_found": found / len(asked),
        **{f"rejected_{reason}": why[reason] for reason in REASONS},
    }  # fmt: skip
    assert (metrics["documents"], metrics["llm_calls"]) == (16, sum(sent.values()))
    names = ["questions.rejected.jsonl", "questions.jsonl", "questions.sheet.csv"]
    assert {file.name for file in Path(artifacts.removeprefix("file:")).iterdir()} == {"config", *names}
    said = capsys.readouterr().out.splitlines()
    drafts = [int(line.split()[2]) for line in said if line.startswith("round ") and "draft(s)" in line]
    assert (drafts[0], sum(drafts)) == (32, len(accepted) + len(rejected))
    assert said[len(drafts) :] == [
        f"32 of 32 questions accepted; {len(rejected)} drafts rejected: "
        + ", ".join(f"{why[reason]} {reason}" for reason in REASONS if why[reason]),
        f"unreadable replies stand in {corpus / names[0]}; one that breaks off was cut: raise max_tokens",
        f"round trip: of {found} of {len(asked)} the retriever has all documents among the first 1 (recorded; as a "
        "filter it would favour questions that this retriever finds easy)",
        "documents in equal shares by folder",
        *(f"wrote {corpus / name}" for name in names),
    ]


def test_where_no_pair_is_left_fewer_questions_are_written(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_folder(corpus / "pair", ("Gorlan", "Kestra"))
    with ChatServer(reply) as server:
        more = [f"dataset.path={corpus / 'pair'}", "n_questions=2", "shares={two_hop:1}", "filters.round_trip=skip"]
        assert main(arguments(corpus, server, *more)) == 0
    [row] = rows(corpus / "questions.jsonl")
    assert (row["provenance"]["shared"], row["answer"]) == ("Ada Winterbourne", row["provenance"]["documents"][1][6:12])
    assert capsys.readouterr().out.splitlines()[:3] == [
        "round 1: 1 draft(s), 1 question(s) accepted, 1 to go",
        "1 of 2 questions accepted; 0 drafts rejected",
        "lacking: 1 two_hop (no pair is left)",
    ]


@pytest.mark.slow
def test_killed_twice_nothing_that_the_ledger_held_is_received_again(corpus: Path) -> None:
    more = ["n_questions=24", "max_drafts=80", SHARES, "filters.closed_book=llm"]
    environment = clean_environment(RAGAUGE_API_KEY="k")
    with ChatServer(reply, delay=0.05) as server:
        given = ["synthesize", *arguments(corpus, server, *more)]
        kills = []
        for after in (8, 30):
            command = Command(corpus, *given, environment=environment)
            until(lambda n=after, c=command: sum(server.whole.values()) >= n or not c.runs, "requests")
            kills.append(kill_and_read(command, server, corpus))
            assert not (corpus / "questions.jsonl").exists()
        assert len(kills[-1].recorded) > 20
        done = Command(corpus, *given, environment=environment).wait()
        assert done.returncode == 0, done.stderr
        total = sum(server.calls.values())
        # What cannot be read is asked for once more; all else is seen twice only if a kill cut it off.
        unread = [p for p in server.calls if "Ilmar" in p or (kind_of(p) == "one_hop" and "Elbrin" in p)]
        unreadable = set(map(digest_of, unread))
        log = [one for one in server.log if one.digest not in unreadable]
        ends = [Kill(sum(one.number < kill.at for one in log), kill.recorded) for kill in kills]
        check_kills(log, ends, CONCURRENCY)
        dry = Command(corpus, *given, "dry_run=true", "overwrite=true", environment=environment).wait()
        assert "questions: 0 calls" in dry.stdout, dry.stdout + dry.stderr
        assert sum(server.calls.values()) == total
    # What an undisturbed run writes is the same.
    with ChatServer(reply) as server:
        other = corpus / "undisturbed"
        write_folder(other / "docs")
        assert main(arguments(other, server, *more)) == 0
    assert (other / "questions.jsonl").read_bytes() == (corpus / "questions.jsonl").read_bytes()


@pytest.mark.slow
def test_what_is_written_is_a_dataset_that_a_job_runs_on(corpus: Path) -> None:
    with ChatServer(reply) as server:
        assert main(arguments(corpus, server, "n_questions=8")) == 0
    questions = corpus / "questions.jsonl"
    job = ["chunker=none", "tokenizer=words", "n_tokens=50", "n_grid=[50]", "bootstrap=20", "slices=[kind]"]
    done = Command(corpus, "dataset=folder", "dataset.path=docs", f"dataset.topics={questions}", *job).wait()
    assert done.returncode == 0, done.stderr
    [outcomes] = (corpus / "outputs").glob("*/*/outcomes.parquet")
    frame = pd.read_parquet(outcomes).set_index("qid")
    written = {row["qid"]: row for row in rows(questions)}
    assert set(frame.index) == set(written)
    answerable = [qid for qid, row in written.items() if not row.get("unanswerable")]
    assert frame.loc[answerable, "ir_score"].mean() > 0.5
    assert set(frame["kind"]) == {row["kind"] for row in written.values()}
    assert frame["unanswerable"].sum() == len(written) - len(answerable)


def test_a_dry_run_tells_calls_and_money_and_asks_nobody(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ChatServer(reply) as server:
        price = ["llm.price={prompt:1000,completion:1000}", "dry_run=true", "n_questions=8", SHARES]
        assert main(arguments(corpus, server, *price)) == 0
        assert server.whole == {}
    said = capsys.readouterr().out
    assert "questions: 8 calls (0 paid before)" in said
    assert "follows: 6 calls (0 paid before; 6 are estimates)" in said
    assert "answerable: 2 calls" in said
    assert "closed book: 6 calls" in said
    assert "at most 16 drafts are written (max_drafts), then about 44 calls" in said
    assert not (corpus / "questions.jsonl").exists()
    assert not (corpus / "mlflow.db").exists()


def test_money_is_limited_as_in_a_job_and_a_higher_limit_goes_on(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    price = ["n_questions=8", "llm.price={prompt:100,completion:100}", "llm.budget=b"]
    with ChatServer(reply) as server:
        assert main(arguments(corpus, server, *price, "llm.max_cost_usd=0.5")) == 3
        paid = set(server.whole)
        assert "every reply that was paid for is kept" in capsys.readouterr().err
        assert run_of(corpus)[2] == "FAILED"
        assert main(arguments(corpus, server, *price, "llm.max_cost_usd=1000")) == 0
        assert {server.whole[prompt] for prompt in paid if "Elbrin" not in prompt} <= {1}


def test_a_server_that_fails_ends_the_run_and_what_was_answered_is_not_asked_again(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = {"on": True}

    def faults(prompt: str, n: int) -> str | None:
        return "status_500" if broken["on"] and kind_of(prompt) in ("follows", "answerable") else None

    more = ["n_questions=6", "llm.retries=0", "llm.give_up_after=1000", "shares={one_hop:1}"]
    with AttackServer(reply, faults) as server:
        assert main(arguments(corpus, server, *more)) == 4
        err = capsys.readouterr().err
        assert "drafts are lost to requests that failed, more than max_missing_share=0.05" in err
        assert not (corpus / "questions.jsonl").exists()
        assert main(arguments(corpus, server, *more, "max_missing_share=1")) == 4  # all is no more than all
        assert "no question passed the filters; " in capsys.readouterr().err
        whole = dict(server.whole)
        broken["on"] = False
        assert main(arguments(corpus, server, *more, "overwrite=true")) == 0  # of the rejected drafts
    assert all(server.whole[p] == n for p, n in whole.items() if kind_of(p) == "one_hop")
    assert len(rows(corpus / "questions.jsonl")) == 6


@pytest.mark.parametrize("attack", ["strange_characters", "number_for_text", "blank_text", "null_text", "html"])
def test_a_server_that_lies_gives_no_question_and_one_line(
    attack: str, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with AttackServer(reply, lambda prompt, n: attack) as server:
        more = ["n_questions=2", "llm.retries=0", "shares={one_hop:1}"]
        assert main(arguments(corpus, server, *more)) == 4
    assert len(capsys.readouterr().err.strip().splitlines()[-1:]) == 1
    assert not (corpus / "questions.jsonl").exists()


def test_round_trip_filters_only_where_it_is_asked_to(corpus: Path) -> None:
    with ChatServer(reply) as server:
        more = ["n_questions=6", "shares={one_hop:1}", "filters.round_trip_top_k=1", "retriever.top_k=1"]
        assert main(arguments(corpus, server, *more)) == 0
        recorded = rows(corpus / "questions.jsonl")
        assert all("round_trip_rank" in row["provenance"]["filters"] for row in recorded)
        again = ["overwrite=true", "filters.round_trip=filter"]
        assert main(arguments(corpus, server, *more, *again)) == 0
    assert {row["provenance"]["filters"]["round_trip_rank"] for row in rows(corpus / "questions.jsonl")} == {1}


def test_rules_stand_in_for_a_model_and_say_so_everywhere(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ChatServer(reply) as server:
        own = [a for a in arguments(corpus, server) if not a.startswith("llm")]
        assert main([*own, "writer=cloze", "n_questions=8", "dry_run=true"]) == 0
        assert capsys.readouterr().out.splitlines()[-1] == "nobody is asked"
        assert main([*own, "writer=cloze", "n_questions=8"]) == 0
        assert server.whole == {}
    written = rows(corpus / "questions.jsonl")
    assert len(written) == 8
    for row in written:
        [part] = row["evidence"]
        assert row["stand_in"] is True
        assert row["provenance"]["model"] == "stand-in by rules (cloze)"
        blanked = row["query"].removeprefix("What stands in the blank? ")
        assert blanked.replace("____", row["answer"]) == " ".join(part["text"].split())
    assert "cloze questions (stand-in by rules) accepted" in capsys.readouterr().out
    assert run_of(corpus)[1]["stand_in"] == "True"
    assert pd.read_csv(corpus / "questions.sheet.csv")["stand_in"].eq("yes").all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["llm=extractive"], "llm=extractive is no chat model, and writer=llm has one write one_hop, two"),
        (["shares={one_hop:0.5,two_hop:0.2}"], "sum to 0.7: the shares of the kinds that are named sum to 1"),
        (["shares={three_hop:1}"], "unknown key 'shares.three_hop'"),
        (["shares={one_hop:2}"], "shares.one_hop=2.0: allowed are numbers from 0 to 1"),
        (["writer=cloze", "shares={one_hop:0.5,two_hop:0.5}"], "a stand-in by rules, writes one_hop alone"),
        (["writer=poet"], "writer='poet': allowed are llm, cloze"),
        (["n_questions=0"], "n_questions=0: allowed are integers from 1"),
        (["max_drafts=3"], "max_drafts=3: allowed are integers from 100"),
        (["out=questions.csv"], "out=questions.csv: allowed are names that end in .jsonl"),
        (["out=null"], "out is not set"),
        (["out=docs/south/Aldor.md/q.jsonl", "writer=cloze", "n_questions=1"], "q.jsonl"),
        (["dataset.path=empty"], "dataset.path=empty: the folder holds no file"),
        (["dataset.path=blank"], "none of the 1 documents has a sentence of 5 words"),
        (["dataset.path=one"], "shares.two_hop: no two of the 1 documents share a rare name"),
        (["retriever=none"], "filters.round_trip searches the documents, which retriever=none does not"),
        (["retriever=mlq"], "filters.round_trip: retriever=mlq asks an LLM for every search"),
        (["stratify=author"], "stratify='author': allowed are auto, folder, length, none"),
        (["against=[docs]"], "against: docs is no file of .parquet"),
        (["against=[plain.csv]"], "plain.csv, row 1: neither 'query' nor 'question' holds a text"),
        (["filters.round_trip=maybe"], "filters.round_trip='maybe': allowed are record, filter, skip"),
        (["n_question=5"], "unknown key 'n_question'. Did you mean n_questions?"),
        (["sheet=x.csv"], "sheet=x.csv: give questions="),
        (["llm.chat.model=???"], "llm.chat.model"),
    ],
    ids=range(23),
)  # fmt: skip
def test_bad_input_gets_one_line_before_anybody_is_asked(
    given: list[str], message: str, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (
        ("empty/x.bin", ""),
        ("blank/x.md", "Hm.\n"),
        ("one/x.md", "One mill stands by the river."),
    ):
        (corpus / name).parent.mkdir()
        (corpus / name).write_text(text, "utf-8")
    (corpus / "plain.csv").write_text("a,b\n1,2\n", "utf-8")
    with ChatServer(reply) as server:
        usual = arguments(corpus, server)
        if given[0] == "llm=extractive":
            usual = [argument for argument in usual if not argument.startswith("llm")]
        assert main([*usual, *given]) == 2
        assert server.whole == {}
    [line] = capsys.readouterr().err.splitlines()
    assert message in line
    assert not (corpus / "mlflow.db").exists()


def test_files_that_are_there_are_not_written_over_unless_told(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sheet = corpus / "questions.sheet.csv"
    sheet.write_text("filled in by people", "utf-8")
    with ChatServer(reply) as server:
        more = ["writer=cloze", "n_questions=2"]
        assert main(arguments(corpus, server, *more)) == 2
        assert "questions.sheet.csv is there; overwrite=true writes it again" in capsys.readouterr().err
        assert sheet.read_text("utf-8") == "filled in by people"
        assert main(arguments(corpus, server, *more, "overwrite=true")) == 0


def test_a_full_disk_is_named_where_the_error_names_no_file(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(synthesizing, "_run", full)
    with ChatServer(reply) as server:
        assert main(arguments(corpus, server, "writer=cloze", "n_questions=2")) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert f"no space is left on the disk of {corpus}" in line  # of the store or of the questions


def test_questions_of_given_files_and_of_the_dataset_are_not_written_again(corpus: Path) -> None:
    (corpus / "known.csv").write_text("id,question\n1,Who built the stone bridge of Hesper?\n", "utf-8")
    topic = {"qid": "g", "query": "The stone bridge of Gorlan: who built?"}
    (corpus / "topics.jsonl").write_text(json.dumps(topic), "utf-8")
    with ChatServer(reply) as server:
        more = ["n_questions=12", "shares={one_hop:1}", "max_drafts=40", "against=[known.csv]"]
        assert main(arguments(corpus, server, *more, f"dataset.topics={corpus / 'topics.jsonl'}")) == 0
    rejected = [row for row in rows(corpus / "questions.rejected.jsonl") if "query" in row]
    told = {row["query"]: row["provenance"]["filters"].get("duplicate_of") for row in rejected}
    assert told["Who built the stone bridge of Hesper?"] == "known.csv, question 1"
    assert told["Who built the stone bridge of Gorlan?"] == "qid g"
    written = {row["query"] for row in rows(corpus / "questions.jsonl")}
    assert not written & {f"Who built the stone bridge of {town}?" for town in ("Hesper", "Gorlan")}
