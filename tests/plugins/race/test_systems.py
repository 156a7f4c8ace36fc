"""Jobs of a sweep as the systems of a race, in this process, beside what each says of all topics."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra

from processes import ROOT
from ragauge.contract.errors import ConfigError
from ragauge.experiment.setup import config
from ragauge.plugins.race.systems import System, make_systems

# Reference and answer that two systems recorded of a topic, "-" where one failed; q6 cannot be judged.
TOPICS = """
qid  reference  good      bad
q1   Anna       Anna      Emil
q2   Linz       Linz      Linz
q3   Snow       -         Rain
q4   Graz       Graz_is   -
q5   Rome       Rome      Wien
q6   .          Bonn      Bonn
"""
F1 = {"good": {"q1": 1, "q2": 1, "q4": 2 / 3, "q5": 1}, "bad": {"q2": 1}}
RIGHT = {"good": {"q1", "q2", "q5", "q4"}, "bad": {"q2"}}
RACE = ("hydra/sweeper=race", "race.first=2", "race.batch=2")


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Callable[..., list[System]]]:
    """Makes the systems of jobs."""
    config.register()
    topics, files = [], {"good": [], "bad": []}
    for line in TOPICS.strip().splitlines()[1:]:
        qid, reference, *answers = line.split()
        topics.append({"qid": qid, "query": f"What of {qid}?"} | ({} if reference == "." else {"answer": reference}))
        for name, answer in zip(files, answers, strict=True):
            if answer != "-":
                files[name].append({"qid": qid, "answer": answer.replace("_", " ")})
    docs = [{"docno": "d1", "title": "", "text": "Anna lives in Graz."}]
    for name, rows in {"topics": topics, "docs": docs, **files}.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):

        def systems(measure: str, *jobs: list[str]) -> list[System]:
            common = [
                "dataset=jsonl", f"dataset.docs={tmp_path / 'docs.jsonl'}",
                f"dataset.topics={tmp_path / 'topics.jsonl'}", "chunker=none", "tokenizer=words", "retriever=none",
                "answers=[f1]", "llm=recorded",
                "recorded.on_missing=missing", "judge=lexical", f"store={tmp_path / 's'}", "n_grid=[100]",
                f"tracking.uri=sqlite:///{tmp_path / 'm.db'}",
            ]  # fmt: skip
            hydra = [*RACE, f"hydra.sweep.dir={tmp_path / 'sweep'}", f"race.measure={measure}"]
            sweep = compose("config", overrides=hydra, return_hydra_config=True)
            loader: Any = GlobalHydra.instance().config_loader()
            return make_systems(loader, sweep, [[*common, *RACE, *job] for job in jobs], measure)

        yield systems


def answers(folder: Path, name: str) -> str:
    return f"recorded.path={folder / name}.jsonl"


def test_a_system_says_its_values_on_the_first_topics(made: Callable[..., Any], tmp_path: Path) -> None:
    jobs = [[answers(tmp_path, name), "seed=3"] for name in F1]
    good, bad = made("right", *jobs)
    order = sorted(
        ["q1", "q2", "q3", "q4", "q5"], key=lambda q: hashlib.blake2b(f"3\0{q}".encode(), digest_size=16).digest()
    )
    assert good.order == bad.order == order
    assert good.pipeline.components.embedder.backend in ("onnx", "torch")  # what auto stands for
    for name, system in {"good": good, "bad": bad}.items():
        assert (system.name, system.seed) == (name, 3)
        assert system.folder == tmp_path / "sweep" / str([*F1].index(name))
        for n in (2, 3, 5):  # a single further topic is asked, too; a missing answer is not right
            assert system.values("right", order[:n]).tolist() == [float(qid in RIGHT[name]) for qid in order[:n]]
    for name, system in zip(F1, made("f1", *jobs), strict=True):
        assert system.values("f1", order).tolist() == pytest.approx([F1[name].get(qid, 0.0) for qid in order])
    # Without evidence no topic has an IR score.
    assert made("ir_score", *jobs)[0].values("ir_score", order[:2]).tolist() == [0.0, 0.0]


def test_systems_that_differ_by_their_budget_alone_are_named_by_it(made: Callable[..., Any], tmp_path: Path) -> None:
    of = answers(tmp_path, "good")
    systems = made("right", [of, "n_tokens=100"], [of, "n_tokens=200"])
    assert [system.name for system in systems] == ["none n_tokens=100", "none n_tokens=200"]


@pytest.mark.parametrize(
    ("measure", "change", "message"),
    [
        ("right", ["llm.sample=3"], "llm.sample=3: hydra/sweeper=race says how many topics"),
        ("right", ["seed=4"], "has another dataset, judge or seed than"),
        ("right", ["llm=none", "answers=[]"], "llm=none answers nothing"),
        ("cost", [], "race.measure=cost: allowed are right, ir_score, f1"),
    ],
)
def test_jobs_that_cannot_race_are_refused(
    measure: str, change: list[str], message: str, made: Callable[..., Any], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        made(measure, *([answers(tmp_path, name), *change[: i * len(change)]] for i, name in enumerate(F1)))
