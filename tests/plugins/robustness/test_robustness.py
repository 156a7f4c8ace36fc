"""experiment=robustness on a made-up world, with an LLM whose abilities are known."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from test_sweep import mlflow_runs

from chat_server import ChatServer
from processes import Command, clean_environment, run
from ragauge.contract.metrics import without_groups
from scripted_chat import unframed

FictionalWorld = pytest.importorskip("ragauge.plugins.fictional.source").FictionalWorld

WORLD = FictionalWorld(
    style="hard", pronouns=0, max_hops=4, questions=13, twins=True, types=("chain", "comparison", "aggregation"), seed=5
)
RIGHT, NOISE_COSTS, REFUSES, DETECTS, CORRECTS, SEES = 0.9, 0.5, 0.7, 0.4, 0.5, 0.8
LACK = "The documents do not hold enough information to answer the question."
ERRORS = "There are factual errors in the documents."


class KnownLLM:
    """Right with 0.9, less 0.5 times the share of distractors; refuses with 0.7 where there is no evidence.

    It detects a changed fact with 0.4, and then corrects it with 0.5, else it is fooled; beside the truth it
    sees the contradiction with 0.8, and names no answer then; else it takes the changed one.
    """

    def __init__(self) -> None:
        data = WORLD.load()
        self.topics = {row["query"]: row for row in data.topics.to_dict("records")}
        self.evidence = data.evidence.groupby("qid")["text"].agg(list).to_dict()
        self.twins = WORLD.counterfactuals().set_index("qid")
        self.texts = data.docs["text"].tolist()

    def __call__(self, prompt: str) -> str:
        assert ERRORS in prompt, "the preset's prompt says that documents may err"
        prompt = unframed(prompt)
        question = re.findall(r"^Question: (.*)$", prompt, re.M)[-1]
        documents = prompt.split("Documents:\n")[1].rsplit("\n\nQuestion:", 1)[0]
        topic: Any = self.topics[question]
        twin = self.twins.loc[topic["qid"]]
        true, changed = twin["sentence"] in documents, twin["changed"] in documents
        dice = random.Random(f"{question}/{true}/{changed}/{len(documents)}")
        if changed and true:
            return f"{ERRORS} They cannot be told apart." if dice.random() < SEES else topic["wrong_answers"][0]
        if changed:
            if dice.random() >= DETECTS:
                return str(topic["wrong_answers"][0])
            return f"{ERRORS} {topic['answer']}" if dice.random() < CORRECTS else ERRORS
        if not all(part in documents for part in self.evidence[topic["qid"]]):
            return LACK if dice.random() < REFUSES else "Zzyzx."
        there = sum(text in documents for text in self.texts)
        own = sum(any(p in t for p in self.evidence[topic["qid"]]) for t in self.texts if t in documents)
        noise = 1 - own / there
        return str(topic["answer"]) if dice.random() < RIGHT - NOISE_COSTS * noise else "Zzyzx."


def sweep(folder: Path, url: str, *more: str) -> Any:
    llm = ["llm=openai_compatible", "llm.chat.model=known", f"llm.chat.base_url={url}/v1"]
    fixed = ["chunker=none", "bootstrap=20", "tokenizer=words", "n_tokens=12000", "n_grid=[12000]"]
    environment = clean_environment(RAGAUGE_API_KEY="sk-none")
    arguments = [
        "experiment=robustness",
        "dataset=fictional",
        "dataset.questions=13",
        "dataset.seed=5",
        *llm,
        *fixed,
        *more,
    ]
    return Command(folder, "-m", *arguments, environment=environment).wait()


@pytest.mark.slow
def test_the_abilities_of_an_llm_are_found_within_their_intervals(tmp_path: Path) -> None:
    with ChatServer(KnownLLM()) as server:
        done = sweep(tmp_path, server.url)
        assert done.returncode == 0, done.stderr
        assert max(server.whole.values()) == 1
        # Eight conditions of 80 topics, and once an order in the context; what is asked twice (where a coin
        # adds no noise) is paid once.
        assert 580 < len(server.whole) <= 720
    _, runs = mlflow_runs(tmp_path, "sweep", "fictional")
    values = without_groups(runs[0].data.metrics)
    for name, true in {
        "noise_drop": NOISE_COSTS * 0.8,
        "rejection": REFUSES,
        "detected": DETECTS,
        "corrected": DETECTS * CORRECTS,
        "fooled": 1 - DETECTS,
        "contradicted_detected": SEES,
        "contradicted_corrected": 0.0,
        "contradicted_fooled": 1 - SEES,
        "integration": RIGHT,
    }.items():
        lo, hi = values[f"robustness_{name}_lo"], values[f"robustness_{name}_hi"]
        assert lo <= true <= hi, (name, lo, true, hi)
    # This LLM follows no order. A longer context is another throw of its dice.
    lo, hi = values["robustness_order_in_context_lo"], values["robustness_order_in_context_hi"]
    assert lo <= 2 * RIGHT * (1 - RIGHT) <= hi
    assert "robustness_order_in_answer" in values
    found = pd.read_csv(next(tmp_path.glob("mlruns/**/robustness.csv")))
    assert found["ability"].nunique() == 5
    page = next(p for p in tmp_path.glob("mlruns/**/report.html")).read_text(encoding="utf-8")
    assert "Counterfactual robustness" in page
    assert "Not measured" not in page.split('id="robustness"')[1].split("</section>")[0]
    assert next(tmp_path.glob("mlruns/**/figures/robustness.png")).stat().st_size > 20_000


@pytest.mark.slow
def test_a_dataset_without_changed_facts_has_three_abilities_and_a_line_for_the_fourth(
    tmp_path: Path,
) -> None:
    docs = [{"docno": f"d{i}", "title": "", "text": f"The tower number {i} stands in Town{i}."} for i in range(30)]
    topics = [
        {"qid": f"q{i}", "query": f"Where does the tower number {i} stand?", "answer": f"Town{i}",
         "evidence": [{"docno": f"d{i}", "text": docs[i]["text"]}]} for i in range(6)
    ]  # fmt: skip
    for name, lines in (("docs", docs), ("topics", topics)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    own = ["dataset=jsonl", "dataset.docs=docs.jsonl", "dataset.topics=topics.jsonl", "chunker=none"]
    fixed = ["tokenizer=words", "bootstrap=0", "llm=none", "judge=none", "hydra.sweep.dir=sweep"]
    done = run(tmp_path, "-m", "experiment=robustness", *own, *fixed)
    assert done.returncode == 0, done.stderr
    conditions = [json.loads(f.read_text())["condition"] for f in sorted(tmp_path.glob("sweep/*/job.json"))]
    assert conditions == [0, 0.2, 0.4, 0.6, 0.8, 1]
    assert "counterfactual robustness was not measured: it takes documents with a changed fact" in done.stdout
    assert "noise robustness was not measured: no answer has a verdict" in done.stdout
    assert "prompt injection was not measured: it takes answers=[injection]" in done.stdout
    # What is asked for by name and is not there is an error of one line.
    done = run(tmp_path, "retriever=robustness", "retriever.condition=changed", *own, *fixed[:-1])
    assert done.returncode == 2
    assert "no document of this dataset has a changed fact" in done.stderr
    done = run(tmp_path, "retriever=robustness", "answers=[counterfactual]", *own, *fixed[:3], "llm=extractive")
    assert done.returncode == 2
    assert "no topic of this dataset has wrong_answers" in done.stderr


@pytest.mark.slow
def test_a_preset_may_be_told_other_conditions(tmp_path: Path) -> None:
    rgb = [{"id": 0, "query": "Where is the tower?", "answer": "Graz", "fakeanswer": "Linz",
            "positive": ["The tower stands in Graz."], "positive_wrong": ["The tower stands in Linz."],
            "negative": [f"A snippet {i} on a tower." for i in range(9)]}]  # fmt: skip
    (tmp_path / "en_fact.json").write_text("".join(json.dumps(row) + "\n" for row in rgb))
    done = run(
        tmp_path, "-m", "experiment=robustness", "dataset=rgb", "dataset.path=en_fact.json", "chunker=none",
        "tokenizer=words", "bootstrap=0", "llm=none", "judge=none", "hydra.sweep.dir=sweep",
        "retriever.condition=0,changed,contradicted",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    runs = [f.read_text() for f in sorted(tmp_path.glob("mlruns/**/run.trec"))]
    found = sorted(tuple(sorted(line.split()[2] for line in text.splitlines())) for text in runs)
    true, wrong = "0-positive-0", "0~changed~0-positive-0"
    assert found == sorted([(true,), (wrong,), tuple(sorted([true, wrong]))])
