"""Config group `answers`: measures of an answer besides its judge class; CRAG's truthfulness of the class.

Sources: exact match, F1 and containment are those of SQuAD's evaluation script (Rajpurkar et al., EMNLP 2016), of
version 2.0 where a text has no token. ROUGE is Lin's (ROUGE: a package for automatic evaluation of summaries, 2004),
with the values of the package rouge-score. Truthfulness is that of Yang et al., CRAG: Comprehensive RAG Benchmark,
NeurIPS 2024, section 3.3.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from ragauge.contract.adoption import adopted
from ragauge.contract.answer_measures import NO_ANSWER, NO_EVIDENCE, NO_REFERENCE, infos_of
from ragauge.contract.checks import require_choice, require_count
from ragauge.contract.component import Tools
from ragauge.contract.errors import DataError
from ragauge.contract.identity import later, runtime
from ragauge.contract.measures import AnswerMeasure, AnswerMeasureInfo, Measure, MeasuresLayouts
from ragauge.contract.topics import references
from ragauge.measures.scores import part_scores
from ragauge.measures.tokens import common_subsequence, matched, of_language, place_of, tokens_of
from ragauge.texts.languages import AUTO, CODES, named_language

Read = TypeVar("Read")

_OF_ROUGE = ("words", "rouge_score", "squad", "plain")
_ROUGE_VALUES = ("f1", "precision", "recall")
_EVIDENCE_LABELS = {
    "substring": "evidence in one piece", "words": "words of the evidence", "semantic": "evidence by meaning",
    "subsequence": "characters of the evidence", "support": "evidence stated",
}  # fmt: skip


def measured(
    answers: pd.DataFrame, name: str, value: Callable[[str, str], float], without: Container[str] = ()
) -> pd.DataFrame:
    """Frame `answer_values`: value(qid, answer) for every row of `answers`, missing without an answer.

    without: qids of topics that have nothing to compare with; theirs are missing, too.
    """
    pairs = list(zip(answers["qid"], answers["answer"], strict=True))
    status = [status_of(qid, answer, qid not in without) for qid, answer in pairs]
    found = [value(qid, answer) if known == "ok" else None for (qid, answer), known in zip(pairs, status, strict=True)]
    return answers[["qid", "n_tokens"]].assign(
        measure=name, value=pd.Series(found, index=answers.index, dtype="float64"), status=status
    )


def status_of(qid: str, answer: object, has_reference: bool) -> str:
    """The reason for a missing value, or "ok"; DataError for an answer that is no text."""
    if not has_reference:
        return NO_REFERENCE
    if isinstance(answer, str):
        return "ok"
    if pd.isna(answer):  # type: ignore[call-overload]
        return NO_ANSWER
    raise DataError(f"answers frame: the answer to qid {qid!r} is no text: {answer!r:.80}")


class AgainstReferences(AnswerMeasure):
    """Frame `answer_values` from the values of pairs (answer, reference)."""

    needs = frozenset({"references", "answers"})

    def compared(self, answers: Sequence[str], references: Sequence[str], tools: Tools) -> Mapping[str, np.ndarray]:
        """The value of every pair by info name, float64 [pairs]."""
        raise NotImplementedError

    def references(self, topics: pd.DataFrame) -> dict[str, tuple[str, ...]]:
        """The reference answers of every qid."""
        return references(topics)

    def measure(
        self, topics: pd.DataFrame, evidence: pd.DataFrame, contexts: pd.DataFrame, answers: pd.DataFrame, tools: Tools
    ) -> pd.DataFrame:
        """Frame `answer_values`: the best value over the topic's reference answers."""
        known = self.references(topics)
        pairs: dict[tuple[str, str], int] = {}
        status: list[str] = []
        wanted: list[int] = []  # the pairs of every answer, one answer after the other
        first: list[int] = []
        for qid, answer in zip(answers["qid"].tolist(), answers["answer"].tolist(), strict=True):
            status.append(status_of(qid, answer, bool(known[qid])))
            if status[-1] == "ok":
                first.append(len(wanted))
                wanted += [pairs.setdefault((answer, one), len(pairs)) for one in known[qid]]
        values = self.compared([a for a, _ in pairs], [r for _, r in pairs], tools) if pairs else {}
        ok = np.array([one == "ok" for one in status], dtype=bool)
        frames = []
        for info in infos_of(self):
            found = np.full(len(answers), np.nan)
            if pairs:
                found[ok] = np.maximum.reduceat(values[info.name][wanted], first)
            frames.append(answers[["qid", "n_tokens"]].assign(measure=info.name, value=found, status=status))
        return pd.concat(frames, ignore_index=True)


def as_read(
    read: Callable[[str], Read], answers: Sequence[str], references: Sequence[str]
) -> Iterator[tuple[Read, Read]]:
    """Every answer and its reference as they are read, such as tokens; reads each distinct text once."""
    known = {text: read(text) for text in {*answers, *references}}
    return ((known[answer], known[reference]) for answer, reference in zip(answers, references, strict=True))


def of_pairs(
    value: Callable[[Read, Read], float],
    read: Callable[[str], Read],
    answers: Sequence[str],
    references: Sequence[str],
) -> np.ndarray:
    """The value of every answer and its reference as they are read, float64 [pairs]."""
    return np.array([value(*pair) for pair in as_read(read, answers, references)], dtype=float)


@dataclass(frozen=True)
class ByTokens(AgainstReferences):
    """A value of two lists of tokens.

    tokens: `squad`, lower case without ASCII's punctuation and articles, exactly as SQuAD's script. `mlqa`, the same
        for other languages (`normalised`). `plain`, the lower-case words between white space, without punctuation at
        their ends. articles: the words that squad and mlqa leave out. None, of either: squad and a, an, the where the
        language is English, mlqa and the articles of MLQA's script elsewhere.
    """

    version = 3

    tokens: str | None = None
    articles: Sequence[str] | None = None
    language: str = runtime("english")  # decides nothing beyond the two above

    def __post_init__(self) -> None:
        key = f"answers.{self.info.name}"
        tokens, articles = of_language(key, self.tokens, self.articles, self.language)
        require_choice(f"{key}.tokens", tokens, ("squad", "mlqa", "plain"))
        object.__setattr__(self, "tokens", tokens)
        object.__setattr__(self, "articles", articles)

    @staticmethod
    def of_tokens(answer: list[str], reference: list[str]) -> float:
        """The value of an answer's tokens against those of a reference."""
        raise NotImplementedError

    def compared(self, answers: Sequence[str], references: Sequence[str], tools: Tools) -> Mapping[str, np.ndarray]:
        """The value of every pair."""
        tokens = tokens_of("tokens", str(self.tokens), self.articles or ())
        return {self.info.name: of_pairs(self.of_tokens, tokens, answers, references)}


@dataclass(frozen=True)
class ExactMatch(ByTokens):
    """1 where the tokens of the answer are those of a reference answer, else 0."""

    component = "exact_match"
    info = AnswerMeasureInfo("em", "exact match", unit="share")

    @staticmethod
    def of_tokens(answer: list[str], reference: list[str]) -> float:
        """1 or 0."""
        return float(answer == reference)


@dataclass(frozen=True)
class TokenF1(ByTokens):
    """The harmonic mean of precision and recall of the answer's tokens, as multisets."""

    component = "token_f1"
    info = AnswerMeasureInfo("f1", "token F1", unit="share")

    @staticmethod
    def of_tokens(answer: list[str], reference: list[str]) -> float:
        """In [0, 1]; where one of the two has no token, whether neither has."""
        sizes = len(answer) + len(reference)
        return 2 * matched(answer, [reference], 1) / sizes if sizes else 1.0


@dataclass(frozen=True)
class Contains(ByTokens):
    """1 where the answer contains a reference's tokens contiguously, else 0."""

    component = "contains"
    info = AnswerMeasureInfo("contains", "contains the reference", unit="share")

    @staticmethod
    def of_tokens(answer: list[str], reference: list[str]) -> float:
        """1 or 0; a reference without tokens stands in an answer without tokens alone."""
        return float(place_of(reference, answer) >= 0 if reference else not answer)


@dataclass(frozen=True)
class _Rouge(AgainstReferences):
    """The overlap of answer and reference, over the answer (precision), the reference (recall), or both (f1)."""

    version = 2

    tokens: str = "words"
    value: str = "f1"

    def __post_init__(self) -> None:
        key = f"answers.{self.info.name}"
        require_choice(f"{key}.tokens", self.tokens, _OF_ROUGE)
        require_choice(f"{key}.value", self.value, _ROUGE_VALUES)

    @property
    def info(self) -> AnswerMeasureInfo:
        """The display properties."""
        raise NotImplementedError

    def shared(self, answer: list[str], reference: list[str]) -> tuple[int, int, int]:
        """Sizes of the common part, of the answer and of the reference."""
        raise NotImplementedError

    def compared(self, answers: Sequence[str], references: Sequence[str], tools: Tools) -> Mapping[str, np.ndarray]:
        """Precision, recall or F1 of every pair, in [0, 1]; 0 where one of the two has no token."""
        return {self.info.name: of_pairs(self._value, tokens_of("tokens", self.tokens), answers, references)}

    def _value(self, answer: list[str], reference: list[str]) -> float:
        shared, own, other = self.shared(answer, reference)
        of = {"precision": own, "recall": other, "f1": (own + other) / 2}[self.value]
        return shared / max(of, 0.5)


@dataclass(frozen=True)
class RougeN(_Rouge):
    """ROUGE-n: overlap of n-gram multisets.

    tokens: `words`, runs of letters and digits of any script; `rouge_score`, of ASCII alone, as that package
    has them; `squad`, `plain`. value: f1, precision or recall.
    """

    component = "rouge_n"

    n: int = 1

    def __post_init__(self) -> None:
        require_count("answers.rouge_1.n", self.n, most=9)
        super().__post_init__()

    @property
    def info(self) -> AnswerMeasureInfo:
        """rouge_1 for n = 1."""
        return AnswerMeasureInfo(f"rouge_{self.n}", f"ROUGE-{self.n}", unit="share")

    def shared(self, answer: list[str], reference: list[str]) -> tuple[int, int, int]:
        """Numbers of matching n-grams, and of the n-grams of both."""
        own, other = (max(len(tokens) - self.n + 1, 0) for tokens in (answer, reference))
        return matched(answer, [reference], self.n), own, other


@dataclass(frozen=True)
class RougeL(_Rouge):
    """ROUGE-L: the longest common subsequence of tokens; tokens and value as of ROUGE-n."""

    component = "rouge_l"

    @property
    def info(self) -> AnswerMeasureInfo:
        """rouge_l."""
        return AnswerMeasureInfo("rouge_l", "ROUGE-L", unit="share")

    def shared(self, answer: list[str], reference: list[str]) -> tuple[int, int, int]:
        """Tokens of the longest common subsequence, and the tokens of both."""
        return common_subsequence(answer, reference), len(answer), len(reference)


@dataclass(frozen=True)
class Similarity(AgainstReferences):
    """Cosine similarity of answer and reference embeddings, in [-1, 1]; the best reference counts.

    The embedder reads a text up to its own limit of tokens.
    """

    component = "similarity"
    uses = frozenset({"embedder"})
    info = AnswerMeasureInfo("similarity", "similarity to the reference", unit="signed")

    def compared(self, answers: Sequence[str], references: Sequence[str], tools: Tools) -> Mapping[str, np.ndarray]:
        """The cosine of every pair; embeds each distinct text once, as a passage."""
        texts = list(dict.fromkeys([*answers, *references]))
        row = {text: i for i, text in enumerate(texts)}
        vectors = tools.embedder.embed(texts)
        left, right = (vectors[[row[text] for text in group]] for group in (answers, references))
        cosine = np.einsum("ij,ij->i", left.astype(np.float64), right.astype(np.float64))
        return {self.info.name: np.clip(cosine, -1.0, 1.0)}


_USUAL = (ExactMatch, TokenF1, Contains)


@dataclass(frozen=True)
class Usual(AgainstReferences):
    """Exact match, token F1, containment and ROUGE-L, each as it is by itself.

    A job without answers or references has none of them, where a measure that was named by itself would be an
    error.
    """

    component = "usual"
    version = 3
    optional = True
    infos = (*(part.info for part in _USUAL), RougeL().info)

    language: str = later("english")

    def __post_init__(self) -> None:
        name = named_language("language", self.language, (*CODES.values(), AUTO))
        object.__setattr__(self, "language", name)

    def compared(self, answers: Sequence[str], references: Sequence[str], tools: Tools) -> Mapping[str, np.ndarray]:
        """The values of all parts."""
        found: dict[str, np.ndarray] = {}
        for part in (*(made(language=self.language) for made in _USUAL), RougeL()):
            found |= part.compared(answers, references, tools)
        return found


@dataclass(frozen=True)
class EvidenceMeasure(MeasuresLayouts):
    """A measure of evidence (group `measure`) at the job's budget, as a column of the outcomes.

    A topic's value is what its IR score would be with this measure, uncorrected: the mean over the parts of
    its evidence. Missing for a topic without evidence, and where a reply failed.
    """

    component = "evidence_measure"
    needs = frozenset({"evidence"})

    measure_of_evidence: Any

    def __init__(self, measure: Any) -> None:
        object.__setattr__(self, "measure_of_evidence", adopted("measure", measure, Measure))

    @property
    def uses(self) -> frozenset[str]:
        """The shared models of the measure."""
        return self.measure_of_evidence.uses

    @property
    def info(self) -> AnswerMeasureInfo:
        """evidence_<measure>, a property of the context."""
        name = self.measure_of_evidence.name
        return AnswerMeasureInfo(
            f"evidence_{name}",
            _EVIDENCE_LABELS.get(name, f"evidence, {name}"),
            "higher",
            "ratio",
            "Evidence",
            "context",
        )

    def measure_layouts(
        self, evidence: pd.DataFrame, layouts: pd.DataFrame, prefixes: pd.DataFrame, answers: pd.DataFrame, tools: Tools
    ) -> pd.DataFrame:
        """Frame `answer_values`; `prefixes` are of one budget, `evidence` holds the scored parts."""
        here = prefixes[prefixes["qid"].isin(evidence["qid"])].reset_index(drop=True)
        parts = part_scores(self.measure_of_evidence, evidence, layouts, here, tools)
        by_topic = parts.groupby("qid")["value"].agg(lambda values: values.mean(skipna=False))
        value = answers["qid"].map(by_topic).astype("float64")
        there = answers["qid"].isin(evidence["qid"])
        status = np.where(there, np.where(value.notna(), "ok", "failed"), NO_EVIDENCE)
        return answers[["qid", "n_tokens"]].assign(measure=self.info.name, value=value, status=status)


TRUTHFULNESS = AnswerMeasureInfo(
    "truthfulness", "truthfulness", unit="signed", section="Truthfulness (CRAG)", of="verdict", on_terminal=False
)
# Perfect: correct and without made-up content (5). Acceptable: useful, with minor errors at most (3: right as
# far as it goes). Missing (1). Incorrect: wrong or irrelevant (4), and what is made up beside something right
# (2), since that class does not say that its wrong statements are minor.
SCORES = {5: 1.0, 3: 0.5, 1: 0.0, 2: -1.0, 4: -1.0}
# That information is lacking is the right answer there, and every other one is made up.
_UNANSWERABLE = {label: 1.0 if label == 1 else -1.0 for label in SCORES}


def truthfulness(label: pd.Series, unanswerable: pd.Series | None = None) -> np.ndarray:
    """CRAG's score of every judge class, float64 [rows] in [-1, 1], missing with the verdict.

    unanswerable: bool by row; there class 1 is perfect, and any other incorrect.
    """
    found = _of(label, SCORES)
    if unanswerable is not None:
        marked = unanswerable.eq(True).to_numpy(dtype=bool)
        found[marked] = _of(label[marked], _UNANSWERABLE)
    return found


def _of(label: pd.Series, scores: Mapping[int, float]) -> np.ndarray:
    known = label.astype("Int64").astype(object)
    return np.array([scores.get(one, np.nan) if one is not pd.NA else np.nan for one in known], dtype=float)
