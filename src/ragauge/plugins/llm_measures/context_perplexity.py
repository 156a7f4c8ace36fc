"""`context_perplexity`: how improbable a model finds a context, given the question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from ragauge.contract.answer_measures import NO_CONTEXT
from ragauge.contract.component import Tools
from ragauge.contract.measures import AnswerMeasureInfo, MeasuresRanking
from ragauge.llms.json_replies import OK, ask_each
from ragauge.plugins.llm_measures.prompt_tokens import Told, read_told
from ragauge.plugins.llm_measures.values import Measured, lost, value_frame
from ragauge.retrieval.passages import standing


@dataclass(frozen=True)
class ContextPerplexity(MeasuresRanking):
    """The log perplexity of the context given the question, in nats per token, 0 or more; high is improbable.

    It is (ln P(question) - ln P(question, context)) / (tokens of the context), by the chain rule: one request for each
    distinct question, and one for it with its context. A token that spans both counts as the context's.
    No answer, reference or evidence is looked at, so every topic with a context has a value. Source: Tian, Ganguly and
    Macdonald, Predicting Retrieval Utility and Answer Quality in RAG, arXiv 2601.14546.
    llm: the model that is asked, a `ragauge.llms.chat.Evaluator` of `PromptTokens`.
    """

    component = "context_perplexity"
    uses = frozenset({"chat"})
    needs = frozenset({"contexts"})
    infos = (
        AnswerMeasureInfo(
            "context_log_perplexity", "log perplexity of the context", "lower", "ratio", "Without evidence", "context",
            False,
        ),
    )  # fmt: skip

    llm: Any

    @property
    def own_chat(self) -> Any:
        """The model to ask, in place of the evaluator."""
        return self.llm

    def measure_ranking(
        self, topics: pd.DataFrame, run: pd.DataFrame, passages: pd.DataFrame, n_tokens: int, tools: Tools
    ) -> pd.DataFrame:
        """Frame `answer_values`, a row per topic; missing where the reply is missing."""
        seen = {str(qid): "\n\n".join(own) for qid, own in standing(passages).groupby("qid", sort=False)["seen"]}
        rows = topics.assign(n_tokens=n_tokens).astype({"n_tokens": "int64"})
        alone = {qid: f"{query}\n\n" for qid, query in zip(rows["qid"], rows["query"], strict=True) if qid in seen}
        whole = {qid: alone[qid] + seen[qid] for qid in alone}
        requests = dict.fromkeys([*alone.values(), *whole.values()], read_told)
        guesses = {prompt: Told(-float(len(prompt)), len(prompt)) for prompt in requests}
        replies = ask_each(tools.chat, requests, tools.store, self.infos[0].label, guesses=guesses)

        def measured(qid: str) -> Measured:
            if qid not in whole:
                return Measured(None, NO_CONTEXT)
            of_question, of_both = replies[alone[qid]], replies[whole[qid]]
            missing = lost(of_question, of_both)
            if missing is not None or of_question.value is None or of_both.value is None:
                return missing or Measured(None, NO_CONTEXT)
            tokens = of_both.value.tokens - of_question.value.tokens
            if tokens <= 0:
                return Measured(None, NO_CONTEXT)
            return Measured(((of_question.value.logprob - of_both.value.logprob) / tokens,), OK)

        return value_frame(rows, self.infos, [measured(qid) for qid in rows["qid"]])
