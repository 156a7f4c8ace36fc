"""`reranker=llm`: a chat model orders the hits of a topic, window by window."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from functools import partial
from itertools import chain

import numpy as np
import pandas as pd

from ragauge.contract.checks import require_choice, require_count
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError, MissingError
from ragauge.contract.identity import later, runtime
from ragauge.contract.option import CONF, option
from ragauge.contract.replies import Reply
from ragauge.contract.retrieval import Reranker
from ragauge.llms.chat_use import Unasked
from ragauge.llms.prompts import fill, load_prompt
from ragauge.retrieval.ranking import rank_scores, ranks_within
from ragauge.retrieval.reading import windows_of
from ragauge.retrieval.rerankers import candidates, check_depth

log = logging.getLogger(__name__)

_PROMPTS = f"{__package__}.prompts"

# So many digits at most, since Python refuses to read the thousands that a model may write.
_BRACKETED = re.compile(r"\[\s*(\d{1,6})\s*\]")
_BARE = re.compile(r"(?<![\d.])\d{1,6}(?![\d.]*\d)")


@option("reranker/llm")
class ListwiseReranker(Reranker):
    """Orders the best `depth` hits of a topic by a chat model's order of `window` passages at a time.

    The windows go from the back of the list to its front in steps of `step`, so that a passage may climb from the last
    place to the first. The front window always begins at the first hit.
    top_k: None is depth. Hits below depth in the run are dropped.
    passage_tokens: a passage is cut behind so many tokens of the config's tokenizer.
    long: a longer chunk is `cut` there; with `max` each window of it is a passage, and the one that comes first places
        the chunk.
    prompt: a text with $question, $passages and, if wanted, $n_passages, or a .txt file of it; None is the
    shipped one.

    A reply that is no permutation is repaired by rule (`permutation`). One that names no passage is asked for
    once more; the passages stay in order where it names none again, and where a request failed.
    The run's columns `reranker_repaired` and `reranker_failed` count such replies of a topic. `score` is
    1 / (rank + 1).
    Source: Sun et al. 2023 (RankGPT), arXiv:2304.09542, section 3.
    """

    component = "llm"
    version = 3
    kind = "llm"
    uses = frozenset({"chat", "tokenizer"})
    needs_chat = True
    topic_counts = ("reranker_repaired", "reranker_failed")

    depth: int = CONF
    top_k: int | None = CONF
    window: int = CONF
    step: int = CONF
    passage_tokens: int = CONF
    prompt: str | None = CONF
    max_tokens: int | None = runtime(CONF)
    long: str = later("cut")

    def __post_init__(self) -> None:
        check_depth(self.depth, self.top_k)
        require_count("reranker.window", self.window, 2, "passages in a request")
        require_count("reranker.step", self.step, note="window or less", most=self.window)
        require_count("reranker.passage_tokens", self.passage_tokens)
        require_choice("reranker.long", self.long, ("cut", "max"))
        prompt = load_prompt(
            self.prompt,
            "rerank.txt",
            ("question", "passages"),
            ("n_passages",),
            key="reranker.prompt",
            package=_PROMPTS,
        )
        object.__setattr__(self, "prompt", prompt)  # the text is part of the identity

    def rerank(self, run: pd.DataFrame, topics: pd.DataFrame, chunks: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """The best `depth` hits in the chat model's order.

        One request for every window position of all topics at once. MissingError where all requests of a
        position failed.
        """
        if tools.chat is None:
            raise ConfigError("reranker=llm asks a chat model: choose an llm that is one (ollama, openai)")
        found, shown = self._shown(candidates(run, topics, chunks, self.depth), tools)
        # Rows of `found` by topic, in the order that they are in by now.
        orders = [rows.tolist() for rows in _blocks(found["qid"].to_numpy())]
        windows = [list(_windows(len(order), self.window, self.step)) for order in orders]
        repaired, failed = np.zeros(len(orders), dtype=int), np.zeros(len(orders), dtype=int)
        questions = found["query"].tolist()

        def request(topic: int, position: int) -> str:
            start, end = windows[topic][position]
            rows = orders[topic][start:end]
            passages = "\n".join(f"[{i}] {shown[row]}" for i, row in enumerate(rows, 1))
            return fill(str(self.prompt), n_passages=str(len(rows)), question=questions[rows[0]], passages=passages)

        for position in range(max(map(len, windows), default=0)):
            asked = [topic for topic, of_topic in enumerate(windows) if position < len(of_topic)]
            prompts = [request(topic, position) for topic in asked]
            try:
                readers = [
                    partial(_read, n=end - start) for start, end in (windows[topic][position] for topic in asked)
                ]
                replies = tools.chat.ask(prompts, tools.store, "reranker", readers=readers)
            except Unasked as unasked:
                later = [request(topic, p) for topic in asked for p in range(position + 1, len(windows[topic]))]
                raise Unasked(unasked.prompts, unasked.who, later, unasked.chat) from None
            orders_said = [read(reply) for read, reply in zip(readers, replies, strict=True)]
            lost = [
                reply.error or "no passage is named in the reply"
                for reply, said in zip(replies, orders_said, strict=True)
                if said is None
            ]
            if lost and len(lost) == len(replies):
                raise MissingError(f"reranker: no order from the LLM for any of {len(lost)} requests ({lost[0]})")
            if lost:
                log.warning(
                    "reranker: %d of %d requests failed, and their passages stay in order (%s)",
                    len(lost), len(replies), lost[0],
                )  # fmt: skip
            for topic, said in zip(asked, orders_said, strict=True):
                if said is None:
                    failed[topic] += 1
                    continue
                start, end = windows[topic][position]
                order, whole = said
                repaired[topic] += not whole
                orders[topic][start:end] = [orders[topic][start + i] for i in order]
        if repaired.any():
            log.warning("reranker: %d replies were no permutation, and repaired by rule", repaired.sum())
        by = np.array([row for order in orders for row in order], dtype=np.int64)
        of_hit = np.repeat(np.arange(len(orders)), [len(order) for order in orders])
        first = ~found.iloc[by].duplicated(["qid", "docno"]).to_numpy()  # of the windows of a chunk
        by, of_hit = by[first], of_hit[first]
        reranked = found.iloc[by].drop(columns=["query", "text"]).reset_index(drop=True)
        rank = ranks_within(of_hit)
        reranked = reranked.assign(
            rank=rank,
            score=rank_scores(rank),
            reranker_repaired=repaired[of_hit],
            reranker_failed=failed[of_hit],
        )
        return reranked[rank < (self.top_k or self.depth)].reset_index(drop=True)

    def _shown(self, found: pd.DataFrame, tools: Tools) -> tuple[pd.DataFrame, list[str]]:
        """The hits, a row for each of their passages, and the passages: lines of at most passage_tokens tokens."""
        lines = {text: " ".join(text.split()) for text in found["text"].unique()}
        offsets = tools.tokenizer.offsets(list(lines.values()))
        shown = {text: self._passages(line, at) for (text, line), at in zip(lines.items(), offsets, strict=True)}
        of_hits = [shown[text] for text in found["text"]]
        row = np.repeat(np.arange(len(found)), np.array([len(passages) for passages in of_hits], dtype=np.int64))
        return found.iloc[row].reset_index(drop=True), list(chain.from_iterable(of_hits))

    def _passages(self, line: str, offsets: np.ndarray) -> list[str]:
        if self.long == "max":
            windows = windows_of(line, offsets.tolist(), self.passage_tokens, "reranker.long")
            return [window.strip() for window, _ in windows]
        return [line if len(offsets) <= self.passage_tokens else line[: int(offsets[self.passage_tokens - 1, 1])]]


def _read(reply: Reply, n: int) -> tuple[list[int], bool] | None:
    """The result of `permutation`; None without a reply, or for one that names no passage."""
    said = _said(reply.text or "")
    return permutation(reply.text or "", n) if any(1 <= number <= n for number in said) else None


def _said(reply: str) -> list[int]:
    return [int(number) for number in _BRACKETED.findall(reply) or _BARE.findall(reply)]


def permutation(reply: str, n: int) -> tuple[list[int], bool]:
    """The order of n passages in a reply such as `[2] > [1]`, from 0, and whether it was complete.

    Numbers in brackets count; where there are none, all whole numbers do. The first mention of a number counts, a
    number that is not among 1 to n is dropped, and passages that are not named follow in their order.
    """
    said = _said(reply)
    known = list(dict.fromkeys(number - 1 for number in said if 1 <= number <= n))
    rest = [i for i in range(n) if i not in set(known)]
    return known + rest, not rest and len(said) == n


def _windows(n: int, window: int, step: int) -> list[tuple[int, int]]:
    """First and past-the-end place of every window, from the back; the last one begins at 0."""
    found = []
    end = n
    while n > 1:
        start = max(0, end - window)
        found.append((start, end))
        if start == 0:
            break
        end -= step
    return found


def _blocks(values: Sequence[str] | np.ndarray) -> list[np.ndarray]:
    """The places of equal neighbours, block by block."""
    values = np.asarray(values)
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1])[: len(values)])
    return np.split(np.arange(len(values)), starts[1:])
