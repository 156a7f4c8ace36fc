"""A judge with known noise and a known liking for the first place, asked again."""

from __future__ import annotations

import re
import threading
from typing import Any

import numpy as np
import pandas as pd

from chat_server import ChatServer
from ragauge.answering.judges import ChatJudge
from ragauge.contract.component import Tools
from ragauge.estimate import Stability, judge_stability

CLASSES = np.arange(1, 6)
K = 4  # candidates of a topic, of true classes 1 to 4


def _chances(true: np.ndarray, place: np.ndarray, noise: np.ndarray, liking: float) -> np.ndarray:
    """P(class) [..., 5]: uniform with the noise, else the true one; in the first place 5 with the liking."""
    right = (true[..., None] == CLASSES).astype(float)
    own = (1 - noise[..., None]) * right + noise[..., None] / 5
    first = liking * (place == 0)[..., None]
    return (1 - first) * own + first * (CLASSES == 5)


def truth(noise: float, liking: float) -> tuple[float, float, float]:
    """P(equal labels) in the same order, in the order moved by half, and their difference.

    Half of the topics have no noise, the other half twice as much.
    """
    true, start = np.meshgrid(np.arange(1, K + 1), np.arange(K))
    same = other = 0.0
    for of_topic in (0.0, 2 * noise):
        noises = np.full(true.shape, of_topic)
        here = _chances(true, (true - 1 - start) % K, noises, liking)
        moved = _chances(true, (true - 1 - start - K // 2) % K, noises, liking)
        same += (here * here).sum(axis=-1).mean() / 2
        other += (here * moved).sum(axis=-1).mean() / 2
    return same, other, same - other


def labels(n_topics: int, noise: float, liking: float, rng: np.random.Generator) -> pd.DataFrame:
    """The frame of `judge_stability`, drawn."""
    true = np.tile(np.arange(1, K + 1), (n_topics, 1))
    start = rng.integers(K, size=(n_topics, 1))
    noises = np.broadcast_to(np.where(rng.random((n_topics, 1)) < 0.5, 0.0, 2 * noise), true.shape)
    frame = {"qid": np.repeat(np.arange(n_topics), K).astype(str)}
    for name, moved in (("first", 0), ("same", 0), ("other", K // 2)):
        chances = _chances(true, (true - 1 - start - moved) % K, noises, liking)
        drawn = (chances.cumsum(axis=-1) < rng.random((*true.shape, 1))).sum(axis=-1) + 1
        frame[name] = np.minimum(drawn, 5).ravel()
    return pd.DataFrame(frame)


def estimates(n_topics: int, noise: float, liking: float, trials: int, seed: int) -> pd.DataFrame:
    """Bias and coverage of agreement, agreement in another order, and position effect, over the trials."""
    rng = np.random.default_rng(seed)
    wanted = dict(zip(("agreement", "agreement_other", "position_effect"), truth(noise, liking), strict=True))
    rows = []
    for _ in range(trials):
        found = judge_stability(labels(n_topics, noise, liking, rng))
        assert found is not None
        for name, value in wanted.items():
            e = getattr(found, name)
            rows.append((name, e.value - value, e.lo <= value <= e.hi))
    return pd.DataFrame(rows, columns=["what", "bias", "covered"]).groupby("what").mean()


def asked_over_http(n_topics: int, noise: float, liking: float, tools: Tools, seed: int) -> Stability | None:
    """`judge_stability` of the chat judge in mode batch, on a server that judges with noise and liking."""
    rng, lock = np.random.default_rng(seed), threading.Lock()
    qids = [f"q{i}" for i in range(n_topics)]
    topics = pd.DataFrame({"qid": qids, "query": qids, "answer": "x"})
    evidence = pd.DataFrame({"qid": qids, "part": 0, "docno": None, "text": "x"})
    candidates = pd.DataFrame(
        [(q, str(c), f"answer {c}") for q in qids for c in range(1, K + 1)],
        columns=["qid", "candidate", "answer"],
    )

    def reply(prompt: str) -> str:
        true = np.array([int(c) for c in re.findall(r"^\d+\. answer (\d)$", prompt, re.M)])
        number = int(re.findall(r"Question: <[\w-]+>q(\d+)", prompt)[0])
        of_topic = np.full(len(true), 2 * noise * (number % 2))
        with lock:
            chances = _chances(true, np.arange(len(true)), of_topic, liking)
            drawn = [rng.choice(CLASSES, p=p / p.sum()) for p in chances]
        return ", ".join(map(str, drawn))

    with ChatServer(reply=reply) as server:
        chat: dict[str, Any] = {
            "_target_": "langchain_ollama.ChatOllama", "model": "judge", "base_url": server.url,
        }  # fmt: skip
        judge = ChatJudge(chat=chat, mode="batch", repeat=n_topics, timeout=60.0)
        verdicts = judge.judge_candidates(topics, evidence, candidates, tools)
        again = judge.judge_again(topics, evidence, candidates, tools)
    keys = ["qid", "candidate"]
    frame = again.pivot(index=keys, columns="order", values="label").reset_index()
    first = verdicts[[*keys, "label"]].rename(columns={"label": "first"})
    return judge_stability(frame.merge(first, on=keys))
