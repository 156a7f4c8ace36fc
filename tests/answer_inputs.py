"""Topics, contexts and a chat generator for tests of answers."""

from typing import Any

import pandas as pd

from ragauge.answering import ChatGenerator

TOPICS = pd.DataFrame(
    {
        "qid": ["q1", "q2"],
        "query": ["Who built the red tower?", "Where do blue whales live?"],
        "answer": ["Anna", "oceans"],
    }
)


def contexts(*rows: tuple[str, int, str]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["qid", "n_tokens", "text"])
    return frame.assign(n_used=frame["n_tokens"], docnos=[[] for _ in rows])


def generator(url: str = "http://localhost", **fields: Any) -> ChatGenerator:
    chat = {"_target_": "langchain_ollama.ChatOllama", "model": "tiny", "base_url": url}
    return ChatGenerator(chat=chat, **{"backoff": 0.01, "timeout": 60.0, "retries": 1, **fields})
