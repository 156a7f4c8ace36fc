"""Alignment of retriever and generator: whether the answers use the retriever's top passages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.answer_measures import NO_ANSWER, NO_CONTEXT, NO_EVIDENCE, NOTHING_USED
from ragauge.contract.checks import require_choice, require_count, require_number
from ragauge.contract.component import Tools
from ragauge.contract.measures import AnswerMeasure, AnswerMeasureInfo, MeasuresPassages, VariesContexts
from ragauge.contract.replies import Structured
from ragauge.llms.json_replies import Found, ask_all, json_of
from ragauge.llms.prompts import fill, load_prompt
from ragauge.llms.structured import fields, list_of, number_in
from ragauge.measures.answers import TokenF1
from ragauge.plugins.documents.attribution import credits, rests_on
from ragauge.plugins.documents.use import holds_evidence, use_values
from ragauge.retrieval.passages import standing

_PROMPTS = f"{__package__}.prompts"
SECTION = "What the answers rest on"
IGNORED = "top_ranked_ignored_share"
_BEYOND = (
    "answers rest on other passages than the top-ranked ones: {share} of those are ignored, more than 30%; a "
    "reranker, or fewer passages, may bring what is used to the front"
)
INFOS = (
    AnswerMeasureInfo("rests_on_context", "answers that rest on a passage", "higher", "share", SECTION),
    AnswerMeasureInfo(IGNORED, "top-ranked passages ignored", "lower", "share", SECTION, limit=0.3, beyond=_BEYOND),
    AnswerMeasureInfo("noise_used_share", "used passages without evidence", "lower", "share", SECTION),
    AnswerMeasureInfo("used_rank", "mean rank of what is used", "lower", "score", SECTION),
    AnswerMeasureInfo("use_agreement", "agreement of ranking and use", "higher", "score", SECTION),
)
_OF_USED = ("noise_used_share", "used_rank", "use_agreement")  # missing where nothing is used
WORDS, LLM, LEAVE_ONE_OUT = BY = ("words", "llm", "leave_one_out")


def alignment(
    by: str = WORDS,
    top: int | None = None,
    persistence: float = 0.8,
    held: float = 0.2,
    share: float = 0.25,
    vectors: bool = True,
    changed: float = 0.5,
    prompt: str | None = None,
) -> Alignment:
    """The alignment of ranking and answers; finds the passages behind an answer in one of three ways.

    by: `words` (no LLM), `llm` (the evaluator says it, one request per distinct answer and context), or
        `leave_one_out` (the llm answers once more without each of the passages).
    top: how many passages are top-ranked; null: as many as the answer rests on, one at least.
    persistence: p of the rank-biased agreement, in (0, 1).
    held, share, vectors: options of `words`; changed: of `leave_one_out`; prompt: of `llm`.
    """
    require_choice("answers.alignment.by", by, BY)
    if by == LLM:
        return ByLLM(top, persistence, prompt)
    if by == LEAVE_ONE_OUT:
        return ByLeavingOut(top, persistence, changed)
    return ByWords(top, persistence, held, share, vectors)


@dataclass(frozen=True)
class Alignment(AnswerMeasure):
    """The base of the three ways: a topic's values from the passages behind its answer."""

    version = 2
    infos = INFOS
    needs = frozenset({"answers", "contexts"})

    top: int | None = None
    persistence: float = 0.8

    def __post_init__(self) -> None:
        require_count("answers.alignment.top", self.top, null="as many as the answer rests on")
        require_number("answers.alignment.persistence", self.persistence, 0, 0.999, above=True)

    @property
    def uses(self) -> frozenset[str]:
        """The shared models that it asks."""
        return frozenset()

    def values(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        passages: pd.DataFrame,
        answers: pd.DataFrame,
        used: np.ndarray,
        failed: Mapping[str, str],
        scores: np.ndarray | None = None,
    ) -> pd.DataFrame:
        """Frame `answer_values`.

        passages: those of `standing`, of topics with an answer; `used` (bool) by row, and `scores`, which the
        first value's `detail` tells with them. failed: why, by qid, it is not known what an answer rests on.
        """
        known = ~passages["qid"].isin(failed).to_numpy()
        rows, used = passages[known].reset_index(drop=True), used[known]
        holds = holds_evidence(rows, evidence, topics)
        found = use_values(rows, used, holds, self.top, self.persistence)
        with_evidence = set(rows["qid"][holds.notna()])
        n_used = pd.Series(used).groupby(rows["qid"].to_numpy()).sum().to_dict()
        details = _details(rows, used, None if scores is None else scores[known])

        def status(name: str, qid: str, answer: object) -> str:
            if not isinstance(answer, str):
                return NO_ANSWER
            if qid in failed:
                return failed[qid]
            if qid not in n_used:
                return NO_CONTEXT
            if name == "noise_used_share" and qid not in with_evidence:
                return NO_EVIDENCE
            return NOTHING_USED if name in _OF_USED and not n_used[qid] else "ok"

        parts = []
        for info in self.infos:
            told = [
                status(info.name, qid, answer) for qid, answer in zip(answers["qid"], answers["answer"], strict=True)
            ]
            values = answers["qid"].map(found[info.name]).to_numpy(dtype=float, na_value=np.nan)
            parts.append(
                answers[["qid", "n_tokens"]].assign(
                    measure=info.name,
                    value=np.where(np.array(told) == "ok", values, np.nan),
                    status=told,
                    detail=pd.Series(
                        [details.get(qid) if info.name == IGNORED else None for qid in answers["qid"]],
                        index=answers.index,
                        dtype="str",
                    ),
                )
            )
        return pd.concat(parts, ignore_index=True)


@dataclass(frozen=True)
class ByWords(Alignment, MeasuresPassages):
    """An answer rests on the passages that hold its words (`ragauge.plugins.documents.attribution`).

    held: the least share of the answer's own words that such a passage holds.
    share: how much credit it has at least, of the highest of its topic.
    vectors: whether what stands in several passages is credited by their cosine with question and answer;
        else in equal shares.
    """

    component = "alignment_words"

    held: float = 0.2
    share: float = 0.25
    vectors: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require_number("answers.alignment.held", self.held, 0, 1)
        require_number("answers.alignment.share", self.share, 0, 1)

    @property
    def uses(self) -> frozenset[str]:
        """The embedder, if vectors count."""
        return frozenset({"embedder"} if self.vectors else ())

    def measure_passages(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        passages: pd.DataFrame,
        answers: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `answer_values`; the detail holds the passages' credits."""
        asked = _asked(topics, answers)
        rows = _of_topics(standing(passages), asked)
        found = credits(rows, asked, tools.embedder if self.vectors else None)
        used = rests_on(rows, found, self.held, self.share)
        return self.values(topics, evidence, rows, answers, used, {}, found["credit"].to_numpy())


@dataclass(frozen=True)
class ByLLM(Alignment, MeasuresPassages):
    """An answer rests on the passages that a chat model names: one request per distinct answer and context.

    prompt ($question, $passages, $answer): a text, or the name of a .txt file; null for the shipped one.
    """

    component = "alignment_llm"

    prompt: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        names = ("question", "passages", "answer")
        text = load_prompt(self.prompt, "attribute_answer.txt", names, key="answers.alignment.prompt", package=_PROMPTS)
        object.__setattr__(self, "prompt", text)  # the text is part of the identity

    @property
    def uses(self) -> frozenset[str]:
        """The chat model."""
        return frozenset({"chat"})

    def measure_passages(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        passages: pd.DataFrame,
        answers: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `answer_values`; a failed or unreadable reply is a missing value with its reason."""
        asked = _asked(topics, answers)
        rows = _of_topics(standing(passages), asked)
        found = self._used(rows, asked, tools)
        failed = {qid: reply.status for qid, reply in found.items() if reply.value is None}
        used = np.zeros(len(rows), dtype=bool)
        for qid, at in rows.groupby("qid", sort=False).indices.items():
            named = found[str(qid)].value or ()
            used[[at[number - 1] for number in named]] = True
        return self.values(topics, evidence, rows, answers, used, failed)

    def _used(
        self, rows: pd.DataFrame, asked: Mapping[str, tuple[str, str]], tools: Tools
    ) -> dict[str, Found[tuple[int, ...]]]:
        """The passages that the model names, by qid, numbered from 1 in context order."""
        prompts = {}
        sizes = {}
        for qid, seen in rows.groupby("qid", sort=False)["seen"]:
            query, answer = asked[str(qid)]
            numbered = "\n".join(f"[{i}] {' '.join(text.split())}" for i, text in enumerate(seen, 1))
            prompts[str(qid)] = fill(
                str(self.prompt), question=" ".join(query.split()), passages=numbered, answer=answer.strip()
            )
            sizes[prompts[str(qid)]] = len(seen)
        found: dict[str, Found[tuple[int, ...]]] = {}
        # What a reply may say depends on how many passages there are.
        for size in sorted(set(sizes.values())):
            own = [qid for qid, prompt in prompts.items() if sizes[prompt] == size]
            replies = ask_all(
                tools.chat,
                [prompts[qid] for qid in own],
                Structured(partial(_read, n_passages=size), fields(used=list_of(number_in(range(1, size + 1))))),
                tools.store,
                "passages that answers rest on",
            )
            found |= dict(zip(own, replies, strict=True))
        return found


@dataclass(frozen=True)
class ByLeavingOut(Alignment, VariesContexts):
    """An answer rests on the passages without which the llm answers something else.

    The context without one passage is what is left of it, joined by one space; nothing takes its place. So k
    passages take k answers beside the one that is there.
    changed: from which distance of the two answers, 1 less their token F1, the answer is another one.

    A text that stands in two passages is missed with neither, so then none of the two counts.
    """

    component = "alignment_leave_one_out"
    varies = "context"
    calls = "alignment_"
    judged = False
    needs = frozenset({"answers", "contexts", "generator"})

    changed: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        require_number("answers.alignment.changed", self.changed, 0, 1, above=True)

    def vary(self, topics: pd.DataFrame, passages: pd.DataFrame, n_tokens: int, tools: Tools) -> pd.DataFrame:
        """Every topic's context without each of its passages: [qid, n_tokens, variant, text].

        `variant` is the position of the passage that is left out.
        """
        rows = []
        for (qid, n), own in standing(passages).groupby(["qid", "n_tokens"], sort=False):
            seen, positions = own["seen"].tolist(), own["position"].tolist()
            rows += [(qid, n, position, " ".join(seen[:i] + seen[i + 1 :])) for i, position in enumerate(positions)]
        found = pd.DataFrame(rows, columns=["qid", "n_tokens", "variant", "text"])
        return found.astype({"qid": "str", "n_tokens": "int64", "variant": "int64", "text": "str"})

    def measure_varied(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        passages: pd.DataFrame,
        varied: pd.DataFrame,
        answers: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `answer_values`; missing for a topic if an answer without a passage failed."""
        asked = _asked(topics, answers)
        rows = _of_topics(standing(passages), asked)
        keys = ["qid", "n_tokens", "variant"]
        found = rows.rename(columns={"position": "variant"})[keys].merge(
            varied[[*keys, "answer"]], on=keys, how="left", validate="one_to_one"
        )
        distance = np.full(len(found), np.nan)
        known = np.flatnonzero([isinstance(without, str) for without in found["answer"]])
        if len(known):
            pairs = [asked[qid][1] for qid in found["qid"].iloc[known]], found["answer"].iloc[known].tolist()
            distance[known] = 1 - TokenF1().compared(*pairs, tools)["f1"]
        failed = dict.fromkeys(found["qid"][np.isnan(distance)], "failed")
        used = np.nan_to_num(distance) >= self.changed
        return self.values(topics, evidence, rows, answers, used, failed, distance)


def _asked(topics: pd.DataFrame, answers: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """Question and answer by qid, for topics with an answer."""
    queries = dict(zip(topics["qid"], topics["query"], strict=True))
    pairs = zip(answers["qid"], answers["answer"], strict=True)
    return {qid: (queries[qid], answer) for qid, answer in pairs if isinstance(answer, str)}


def _of_topics(passages: pd.DataFrame, asked: Mapping[str, Any]) -> pd.DataFrame:
    return passages[passages["qid"].isin(asked)].reset_index(drop=True)


def _read(reply: str, n_passages: int) -> tuple[int, ...] | None:
    """The numbers of a reply {"used": [...]}, distinct and from 1 to n_passages; None for anything else."""
    found = json_of(reply)
    if not isinstance(found, dict) or not isinstance(found.get("used"), list):
        return None
    named: Sequence[object] = found["used"]
    whole = [n for n in named if isinstance(n, int) and not isinstance(n, bool) and 1 <= n <= n_passages]
    return tuple(whole) if len(set(whole)) == len(named) else None


def _details(rows: pd.DataFrame, used: np.ndarray, scores: np.ndarray | None) -> dict[str, str]:
    """JSON by qid: {"used": docnos, "scores": {docno: score}}."""
    found: dict[str, dict[str, Any]] = {}
    numbers = [None] * len(rows) if scores is None else scores.tolist()
    for qid, docno, is_used, score in zip(rows["qid"], rows["docno"], used.tolist(), numbers, strict=True):
        own = found.setdefault(qid, {"used": []})
        if is_used:
            own["used"].append(docno)
        if score is not None:
            own.setdefault("scores", {})[docno] = round(score, 4)
    return {qid: json.dumps(own, ensure_ascii=False) for qid, own in found.items()}
