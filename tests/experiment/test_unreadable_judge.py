"""A judge that cannot be read, or is gone: what a rerun asks, when a sweep stops, how few missing ones fail a job."""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from test_sweep import job_records, sweep_folders

from chat_server import ChatServer, first_of
from kills import kill_and_read
from processes import Command, clean_environment, until
from ragauge.answering.judges import ChatJudge
from ragauge.contract.current_job import run_begins
from ragauge.contract.errors import MissingError, ServerGoneError, UnreadableJudgeError
from ragauge.contract.settings import Settings
from ragauge.experiment.job import execute
from ragauge.experiment.request import AskedInVain, JobFolder
from ragauge.experiment.setup import config
from ragauge.llms.chat import ChatLLM
from ragauge.store import Store
from servers import free_port
from small_pipeline import DOCS, TOPICS, SmallPipelines

CONF = Path(__file__).resolve().parents[2] / "conf"
GOOD, BAD = '{"label": 5, "reason": "it is"}', '{"class":5}'


def many(n: int) -> tuple[dict[str, Any], ...]:
    """n topics with questions of their own."""
    return tuple({**TOPICS[0], "qid": f"q{i}", "query": f"Who built tower {i}?"} for i in range(n))


def judge(server: ChatServer) -> ChatJudge:
    chat = {"_target_": "langchain_ollama.ChatOllama", "model": "judge", "base_url": server.url}
    return ChatJudge(chat=chat, retries=0, backoff=0.0)


def unreadable(*numbers: int) -> Any:
    return lambda prompt: BAD if any(f"tower {i}?" in prompt for i in numbers) else GOOD


def test_a_job_asks_again_what_could_not_be_read_and_stores_the_verdicts_then(small: SmallPipelines) -> None:
    with ChatServer(unreadable(3, 7)) as server:
        first = small(docs=DOCS, topics=many(12), judge=judge(server), max_missing_share=0.05)
        assert first.verdicts["status"].value_counts().to_dict() == {"ok": 10, "unreadable": 2}
        assert not (first.store.root / "verdicts").exists()
        before = sum(server.calls.values())
        assert before == 10 + 2 * 2
        run_begins()
        server.reply = unreadable()
        again = small(docs=DOCS, topics=many(12), judge=judge(server), max_missing_share=0.05)
        assert again.verdicts["label"].tolist() == [5] * 12
        assert sum(server.calls.values()) == before + 2
        assert len(list((first.store.root / "verdicts").iterdir())) == 1


@pytest.mark.parametrize(
    ("n", "lost", "share", "passes"),
    [
        (25, 2, 0.05, True),  # 8 %, and no more than two
        (25, 3, 0.05, False),
        (25, 1, 0.0, False),
        (9, 1, 0.05, False),  # of so few the share alone counts
        (60, 3, 0.05, True),
    ],
)
def test_two_of_ten_or_more_may_be_missing(
    n: int, lost: int, share: float, passes: bool, small: SmallPipelines
) -> None:
    with ChatServer(unreadable(*range(n - lost, n))) as server:
        job = small(docs=DOCS, topics=many(n), judge=judge(server), max_missing_share=share)
        if passes:
            assert job.verdicts["label"].isna().sum() == lost
            return
        with pytest.raises(MissingError) as told:
            _ = job.verdicts
    assert str(told.value) == (
        f"{lost} of {n} verdicts are missing, more than max_missing_share={share:g} allows; "
        f'the first: {BAD}; expected {{"label": 1 to 5, "reason": "..."}}; the reply has \'class\', and '
        "'label' is read; paid replies are kept, and a rerun asks only for the rest (an unreadable reply "
        "6 times at most, then see ragauge ledger forget); "
        f"max_missing_share={ {3: 0.12, 1: 0.04 if n == 25 else 0.12}[lost]:g} goes on without them"
    )


def test_ten_replies_of_which_none_can_be_read_are_a_judge_that_cannot(small: SmallPipelines) -> None:
    with ChatServer(lambda prompt: BAD) as server:
        assert small(docs=DOCS, topics=many(9), judge=judge(server)).verdicts["label"].isna().all()
        with pytest.raises(UnreadableJudgeError, match="none of the judge's 10 replies could be read"):
            _ = small(docs=DOCS, topics=many(10), judge=judge(server)).verdicts


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Runs a job of a sweep over 12 topics, with a judge at the server; its exit code and record."""
    config.register()
    monkeypatch.chdir(tmp_path)
    with initialize_config_dir(str(CONF), version_base="1.3"):

        def run(number: int, server: ChatServer, *more: str) -> tuple[int, dict[str, Any]]:
            cfg = compose(
                "config",
                overrides=[
                    "dataset=sample", "dataset.limit=12", "chunker=none", "tokenizer=words", "bootstrap=0",
                    "retriever=bm25", "llm=extractive", f"n_tokens={100 + 100 * number}", "n_grid=[100]",
                    "judge=ollama", "judge.chat.model=judge", f"judge.chat.base_url={server.url}",
                    "judge.retries=0", f"store={tmp_path / 's'}",
                    f"tracking.uri=sqlite:///{tmp_path / 'm.db'}", *more,
                ],
            )  # fmt: skip
            path = tmp_path / "sweep" / str(number)
            path.mkdir(parents=True, exist_ok=True)
            code = execute(cfg, JobFolder(path, tmp_path / "sweep", number, {"retriever": "bm25"}, ()))
            return code, json.loads((path / "job.json").read_text(encoding="utf-8"))

        yield run


def test_a_sweep_stops_at_a_judge_that_cannot_be_read_and_a_rerun_goes_on(jobs: Any) -> None:
    with ChatServer(lambda prompt: BAD) as server:
        code, record = jobs(0, server, "max_missing_share=1")
        assert (code, record["error_type"]) == (4, "UnreadableJudgeError")
        paid = sum(server.calls.values())
        assert paid == 2 * 12
        code, record = jobs(1, server, "max_missing_share=1")
        assert code == 4
        assert record["error"].startswith(
            "not run, and nothing was asked: job 0, which has the same judge, ended: none of the judge's 12 "
            f"replies could be read; the first: {BAD}; expected "
        )
        assert sum(server.calls.values()) == paid
        # Another judge is asked.
        server.reply = lambda prompt: GOOD
        assert jobs(2, server, "judge.chat.model=other")[0] == 0
        paid = sum(server.calls.values())
        assert jobs(1, server)[0] == 4
        # The same command again.
        run_begins()
        assert jobs(0, server)[0] == 0
        assert sum(server.calls.values()) == paid + 12


def settings(llm: str, judge: str) -> Settings:
    """Settings whose chat models stand at these addresses."""
    chats = ({"chat": {"_target_": "c.Chat", "model": name, "base_url": name}} for name in (llm, judge))
    return replace(Settings(), **dict(zip(("llm", "judge"), chats, strict=True)), evaluator={"_target_": "the.llm"})


def test_the_jobs_of_a_sweep_do_not_ask_a_server_that_is_gone_for_one_of_them(tmp_path: Path) -> None:
    dead = f"http://127.0.0.1:{free_port()}"
    llm = ChatLLM(chat={"_target_": "langchain_ollama.ChatOllama", "model": "m", "base_url": dead}, backoff=0.0)
    with pytest.raises(ServerGoneError, match="answers: nothing listens at model m at http") as gone:
        llm.ask(["p"], Store(tmp_path / "store"), "answers")
    first, second = (JobFolder(tmp_path / str(n), tmp_path, n, {}, ()) for n in range(2))
    AskedInVain(first, settings(dead, "http://other")).leave(gone.value)
    for of_job in (settings(dead, "http://other"), settings("http://other", dead)):
        with pytest.raises(MissingError, match=r"^not run, .*: job 0, which asks the same server, ended: answers: "):
            AskedInVain(second, of_job).refuse("llm", "judge", "evaluator")
    AskedInVain(second, settings("http://other", "http://third")).refuse("llm", "judge", "evaluator")
    run_begins()  # the same command again
    AskedInVain(second, settings(dead, dead)).refuse("llm", "judge", "evaluator")


def started(folder: Path, server: ChatServer) -> Command:
    return Command(
        folder, "-m", "retriever=bm25,none", "n_tokens=100,300", "chunker=none", "dataset.limit=20",
        "bootstrap=0", "llm=extractive", "judge=openai_compatible", "judge.chat.model=dice",
        f"judge.chat.base_url={server.url}/v1", "judge.concurrency=2", "max_missing_share=1",
        environment=clean_environment(RAGAUGE_API_KEY="k"),
    )  # fmt: skip


@pytest.mark.slow
def test_a_sweep_killed_twice_asks_again_what_could_not_be_read_and_nothing_else(tmp_path: Path) -> None:
    def often_bad(prompt: str) -> str:
        return BAD if sum(map(ord, first_of(prompt))) % 3 == 0 else GOOD

    def asked(server: ChatServer) -> Counter[str]:
        """Requests about each verdict, the second tries of an unreadable one among them."""
        counts: Counter[str] = Counter()
        for prompt, n in server.whole.items():
            counts[first_of(prompt)] += n
        return counts

    with ChatServer(often_bad, delay=0.05) as server:
        for after in (8, 20):
            command = started(tmp_path, server)
            until(lambda n=after, c=command: sum(server.whole.values()) >= n or not c.runs, "requests")
            kill_and_read(command, server, tmp_path)
        done = started(tmp_path, server).wait()
        assert done.returncode == 0, done.stderr
        report = next((tmp_path / "mlruns").rglob("report.html")).read_text(encoding="utf-8")
        for text in (done.stdout, html.unescape(report)):
            assert re.search(rf"\d+ of \d+ verdicts could not be read, nor .* The first: {BAD}; expected ", text)
        before = asked(server)
        bad = {prompt for prompt in before if often_bad(prompt) == BAD}
        assert 0 < len(bad) < len(before)
        assert all(2 <= before[prompt] <= 6 for prompt in bad)
        # A readable reply is paid once, but for those that were in flight at a kill.
        assert sum(before[prompt] - 1 for prompt in set(before) - bad) <= 2 * 2
        server.reply = lambda prompt: GOOD  # the server is mended
        done = started(tmp_path, server).wait()
        assert done.returncode == 0, done.stderr
        assert asked(server) - before == Counter(dict.fromkeys(bad, 1))
        assert {record["metrics"]["judge_share_missing"] for record in job_records(sweep_folders(tmp_path)[-1])} == {0}
        total = sum(server.whole.values())
        assert started(tmp_path, server).wait().returncode == 0
        assert sum(server.whole.values()) == total


@pytest.mark.slow
def test_a_sweep_whose_judge_cannot_be_read_asks_in_one_job_alone(tmp_path: Path) -> None:
    with ChatServer(lambda prompt: BAD) as server:
        done = started(tmp_path, server).wait()
        assert done.returncode == 4
        asked = {first_of(prompt) for prompt in server.calls}
        assert sum(server.calls.values()) == 2 * len(asked)
        for job in ("bm25 · N=300", "none · N=100", "none · N=300"):
            assert re.search(f"{job} .*: not run, and nothing was asked: job 0", done.stderr), done.stderr
        server.reply = lambda prompt: GOOD
        done = started(tmp_path, server).wait()
        assert done.returncode == 0, done.stderr
