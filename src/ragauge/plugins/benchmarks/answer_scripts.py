"""Answer measures as in the evaluation scripts of benchmarks, where these differ from `em` and `f1`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ragauge.contract.component import Tools
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.topics import is_unanswerable, references
from ragauge.measures.answers import AgainstReferences, ExactMatch, TokenF1, of_pairs
from ragauge.measures.tokens import tokens_of

_ARTICLES = ("a", "an", "the")
_ALL_OR_NOTHING = (["yes"], ["no"], ["noanswer"])


@dataclass(frozen=True)
class HotpotF1(AgainstReferences):
    """Token F1 of HotpotQA's script (Yang et al., EMNLP 2018), which 2WikiMultihopQA's has, too.

    Where the answer or the reference is yes, no or noanswer, it is 1 if both are the same, else 0: "yes it is" beside
    "yes" is 0. MuSiQue's script has no such rule, and its F1 is `f1`.
    """

    component = "hotpotqa_f1"
    version = 1
    info = AnswerMeasureInfo("hotpotqa_f1", "F1 of HotpotQA's script", unit="share")

    def compared(self, answers: Sequence[str], references: Sequence[str], tools: Tools) -> Mapping[str, np.ndarray]:
        """The value of every pair, in [0, 1]."""
        return {self.info.name: of_pairs(_f1_of_hotpot, tokens_of("tokens", "squad", _ARTICLES), answers, references)}


def _f1_of_hotpot(answer: list[str], reference: list[str]) -> float:
    all_or_nothing = answer in _ALL_OR_NOTHING or reference in _ALL_OR_NOTHING
    if not answer or (all_or_nothing and answer != reference):
        return 0.0
    return TokenF1.of_tokens(answer, reference)


@dataclass(frozen=True)
class Squad2(AgainstReferences):
    """Exact match and F1 of the script of SQuAD 2.0 (Rajpurkar, Jia and Liang, ACL 2018), over all questions.

    An unanswerable question has the empty text as its reference: "" is right there, and any words are wrong.
    """

    component = "squad2"
    version = 1
    infos = (
        AnswerMeasureInfo("squad2_em", "exact match of SQuAD 2's script", unit="share"),
        AnswerMeasureInfo("squad2_f1", "F1 of SQuAD 2's script", unit="share"),
    )

    def references(self, topics: pd.DataFrame) -> dict[str, tuple[str, ...]]:
        """The topics' references, and "" for an unanswerable topic."""
        known = references(topics)
        return known | dict.fromkeys(topics.loc[is_unanswerable(topics), "qid"], ("",))

    def compared(self, answers: Sequence[str], references: Sequence[str], tools: Tools) -> Mapping[str, np.ndarray]:
        """The values of every pair."""
        parts = (ExactMatch(tokens="squad", articles=_ARTICLES), TokenF1(tokens="squad", articles=_ARTICLES))
        em, f1 = (next(iter(part.compared(answers, references, tools).values())) for part in parts)
        return dict(zip((info.name for info in self.infos), (em, f1), strict=True))
