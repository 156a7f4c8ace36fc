"""All budgets of a question in a row: each job finds what it would have found alone, and nothing is paid twice."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from omegaconf import OmegaConf

from chat_server import ChatServer
from hash_embedder import HashEmbedder
from ragauge.answering import ChatGenerator
from ragauge.answering.judges import ChatJudge
from ragauge.estimate.topic_samples import Sample
from ragauge.experiment.request import JobFolder, Request
from ragauge.experiment.stages.pipeline import Pipeline
from ragauge.findings.cost import costs_ahead, costs_of_replies, plus
from small_pipeline import TOPICS, SmallPipelines

BUDGETS = (4, 8, 12, 16)
PRODUCT = "hydra._internal.core_plugins.basic_sweeper.BasicSweeper"
ONE_SLOT = {"/props": {"total_slots": 1}}


def reply(prompt: str) -> str:
    """Says the length of what it is shown, so that budgets differ; judges by it."""
    n = len(prompt)
    return json.dumps({"label": 1 + n % 5, "reason": f"of {n}"}) if '"label"' in prompt else f"It is {n}."


class Sweep:
    """The jobs of a sweep over n_tokens, one after the other or alone, in a folder of their own."""

    def __init__(self, folder: Path, server: ChatServer, ahead: bool = True, **settings: Any) -> None:
        self.small = SmallPipelines(folder, HashEmbedder())
        chat = {"_target_": "langchain_openai.ChatOpenAI", "model": "m", "base_url": f"{server.url}/v1"}
        calls = {"chat": {**chat, "temperature": 0.5}, "retries": 0, "price": {"prompt": 1.0, "completion": 2.0}}
        self.llm = ChatGenerator(**{**calls, "ahead": ahead, **settings})
        self.judge = ChatJudge(**calls)

    def job(self, n_tokens: int, **fields: Any) -> Pipeline:
        job = self.small(n_tokens, (4, 8, 16), llm=self.llm, judge=self.judge)
        return replace(job, budgets=BUDGETS, **fields)

    def frames(self, **fields: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Answers and verdicts of all jobs."""
        jobs = [self.job(n, **fields) for n in BUDGETS]
        answers = pd.concat([job.answers for job in jobs], ignore_index=True)
        return answers, pd.concat([job.verdicts for job in jobs], ignore_index=True)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "EMPTY")


def without_costs(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.drop(columns=["cost_usd", "seconds", "cached"])


@pytest.mark.parametrize("fields", [{}, {"answered": Sample(2, "uniform", 0, "llm")}], ids=["all", "a sample"])
def test_answers_and_verdicts_are_those_of_jobs_that_ask_alone_and_each_call_is_made_once(tmp_path, fields) -> None:
    found = {}
    for ahead in (True, False):
        with ChatServer(reply, about=ONE_SLOT) as server:
            found[ahead] = Sweep(tmp_path / str(ahead), server, ahead).frames(**fields)
            assert set(server.calls.values()) == {1}
            found[ahead] += (pd.Series(sorted(server.calls)),)
    for with_ahead, alone in zip(found[True][:2], found[False][:2], strict=True):
        pd.testing.assert_frame_equal(without_costs(with_ahead), without_costs(alone))
    assert found[True][2].equals(found[False][2])


def test_one_slot_gets_the_prompts_question_by_question_and_the_first_job_pays(tmp_path) -> None:
    with ChatServer(reply, about=ONE_SLOT) as server:
        sweep = Sweep(tmp_path, server, concurrency=1)  # new connections overtake each other
        sweep.judge = replace(sweep.judge, concurrency=1)
        jobs = [sweep.job(n) for n in (8, 4, 12, 16)]
        first, *others = jobs
        assert len(first.answers) == len(first.verdicts) == 3
        prompts = [body["messages"][-1]["content"] for body in server.bodies]
        asked, judged = ([p for p in prompts if ('"label"' in p) == is_judge] for is_judge in (False, True))
        for of_kind in (asked, judged):
            questions = [next(row["query"] for row in TOPICS if row["query"] in prompt) for prompt in of_kind]
            assert questions == sorted(questions, key=questions.index)  # each in one row
            assert len(set(questions)) == 3
        paid = plus(costs_of_replies(first.all_answers), costs_ahead(first, "answers"))
        assert paid["llm_calls"] == len(asked) > len(first.answers)
        assert paid["cost_usd"] == pytest.approx(sweep.llm.spent(first.store) - sum(first.verdicts["cost_usd"])
                                                 - costs_ahead(first, "verdicts")["cost_usd"])  # fmt: skip
        for job in others:
            assert job.answers["cached"].all()
            assert job.verdicts["cached"].all()
            assert costs_ahead(job, "answers") == {}
            assert job.making["answers"].cost_usd > 0  # what its answers cost when they were paid for
        assert len(server.bodies) == len(prompts)


def test_what_fails_at_other_budgets_is_theirs(tmp_path) -> None:
    def faults(prompt: str, n: int) -> str | None:
        return "400" if len(prompt) > limit else None

    limit = 10**6
    with ChatServer(reply, faults) as server:
        sweep = Sweep(tmp_path, server, give_up_after=1)
        limit = max(map(len, sweep.llm.prompts(sweep.job(4).frame("topics"), sweep.job(4).contexts)))
        assert sweep.job(4).answers["status"].eq("ok").all()
        long = [prompt for prompt in server.calls if len(prompt) > limit]
        assert 0 < len(long) <= 3  # after the first of a question's the longer ones are left


def test_a_limit_of_cost_is_left_to_the_jobs_own_calls(tmp_path) -> None:
    with ChatServer(reply) as server:
        sweep = Sweep(tmp_path, server)
        needs = sweep.llm.needs_of(sweep.llm.prompts(sweep.job(4).frame("topics"), sweep.job(4).contexts),
                                   sweep.job(4).store)  # fmt: skip
        enough = 1.2 * needs["cost_usd"].sum()
        bound = max(map(sweep.llm.cost_bound, sweep.llm.prompts(sweep.job(4).frame("topics"), sweep.job(4).contexts)))
        limited = Sweep(tmp_path, server, max_cost_usd=max(enough, 4 * bound), concurrency=1)
        assert limited.job(4).answers["status"].eq("ok").all()


@pytest.mark.parametrize(
    ("given", "sweeper", "budgets"),
    [
        (["retriever=bm25,sim", "n_tokens=range(100,400,100)"], PRODUCT, (100, 200, 300)),
        (["n_tokens=300,0"], PRODUCT, (0, 300)),
        (["n_tokens=300"], PRODUCT, ()),
        (["llm.chat.n_tokens=1,2"], PRODUCT, ()),
        (["n_tokens=100,300"], "hydra_plugins.ragauge_race.sweeper.RaceSweeper", ()),
    ],
)
def test_the_budgets_of_a_sweep_are_those_of_its_command(tmp_path, given, sweeper, budgets) -> None:
    begun = {"hydra": {"sweeper": {"_target_": sweeper, "params": None}, "overrides": {"task": given}}}
    folder = JobFolder(tmp_path / "0", tmp_path, 0, {}, ())
    assert folder.budgets == ()  # before it began
    OmegaConf.save(OmegaConf.create(begun), tmp_path / "multirun.yaml")
    assert folder.budgets == budgets
    assert replace(folder, sweep=None).budgets == ()


def test_a_job_is_named_by_what_its_sweep_varied(tmp_path) -> None:
    given = ["retriever=recorded", "retriever.path=runs/a.trec,runs/fusion.trec", "+retriever.top_k=5,50",
             "n_tokens=range(100,1100,900)", "seed=3"]  # fmt: skip
    begun = {"hydra": {"sweeper": {"_target_": PRODUCT, "params": None}, "overrides": {"task": given}}}
    OmegaConf.save(OmegaConf.create(begun), tmp_path / "multirun.yaml")
    own = ("retriever=recorded", "retriever.path=runs/a.trec", "+retriever.top_k=5", "n_tokens=100", "seed=3")
    folder = JobFolder(tmp_path / "0", tmp_path, 0, {"retriever": "recorded", "llm": "none"}, own)
    assert folder.jobs == 8
    cfg = OmegaConf.create({"n_tokens": 100, "names": None})
    name = Request(cfg, folder).name
    assert name == "recorded · a · top_k=5 · N=100 · none"
    assert folder.widest(name) == len("recorded · fusion · top_k=50 · N=1000 · none")
    cfg.names = {"a · top_k=5": "A at five"}
    assert Request(cfg, folder).name == "A at five · N=100 · none"
    cfg.names = "none.yaml"  # refused where the settings are checked
    assert Request(cfg, folder).name == name
    cfg.names = {"a · top_k=5": "A at five"}
    assert Request(cfg, replace(folder, sweep=None)).name == "recorded · N=100 · none"
