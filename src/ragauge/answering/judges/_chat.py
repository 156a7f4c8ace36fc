"""A chat model as judge: one answer per request, with a reason, or all candidates of a topic at once."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd

from ragauge.answering.judges.frame import (
    Truth,
    Verdict,
    divided,
    of_all_prompts,
    speaking,
    spread,
    truths,
    verdict_frame,
)
from ragauge.contract.answering import BatchJudge, Order
from ragauge.contract.checks import require, require_choice, require_count
from ragauge.contract.component import Tools
from ragauge.contract.errors import DataError
from ragauge.contract.frames import JUDGE_CLASSES
from ragauge.contract.identity import runtime
from ragauge.contract.replies import CUT, Reader, Reply, Structured
from ragauge.contract.topics import with_history
from ragauge.llms.chat import ChatLLM
from ragauge.llms.json_replies import json_of, whole_number
from ragauge.llms.prompts import fill, load_prompt
from ragauge.llms.structured import TEXT, fields, number_in

_PLACEHOLDERS = {
    "single": ("question", "reference", "evidence", "answer"),
    "batch": ("question", "reference", "evidence", "answers", "count"),
}
_SHIPPED = {"a": "", "b": "_b", "c": "_c"}  # wordings that mean the same, by what their files' names end in
MOST_PROMPTS = 9
VERDICT = fields(label=number_in(range(min(JUDGE_CLASSES), max(JUDGE_CLASSES) + 1)), reason=TEXT)
_FORM = '{"label": 1 to 5, "reason": "..."}'  # as the error of another reply shows it
_FORM_OF_BATCH = "$n class(es) 1 to 5 with commas between them"
_CLASS = r"[1-5](?:\.0+)?(?![\d.]*\d)"
_SCORE = re.compile(r"[1-5](?:\.0+)?")
_SCORES = re.compile(rf"(?:[^\d\n]*:)?\s*(?:\[\s*)?(?P<scores>{_CLASS}(?:(?:\s*[,;]\s*|\s+){_CLASS})*)\s*\]?\.?")
_CUT_IN_REASON = re.compile(
    r'\s*(?:```(?:json)?\s*)?\{\s*"label"\s*:\s*"?(?P<label>[1-5])(?:\.0+)?"?\s*,\s*"reason"\s*:\s*"'
    r'(?P<reason>(?:(?!")[^\\]|\\.)*)\\?(?:(?!"label").)*',
    re.IGNORECASE | re.DOTALL,
)
_MARKS = re.compile(r"```(?:json)?|[*`$]|\\boxed\{(?P<boxed>[^{}]*)\}")
_BARE = re.compile(rf"\W*(?<![-−])(?P<label>{_CLASS})\W*")
# A line that says nothing but which class it is, such as "Label: 5" or "The answer belongs to class 5."
_NAMED = re.compile(
    r"^[^\w\n]*(?:(?:the|my|final|correct|verdict|answer|label|class|score|rating|grade|category|is|be|would|should|of|to|"
    rf"belongs|as|a|this|in)\W+){{1,8}}(?P<label>{_CLASS})[^\w\n]*$",
    re.IGNORECASE | re.MULTILINE,
)
_EXPECTED_ANSWER = "x" * 120  # stands for an answer that is not there yet, in estimates
# The repetitions of each mode by the order of the candidates, and what tells a repeated request from the
# first one in the ledger. In mode single there is no order.
_AGAIN: Mapping[str, Mapping[Order, str]] = {
    "single": {"same": "again"},
    "batch": {"same": "again, same order", "other": "again"},
}


@dataclass(frozen=True)
class ChatJudge(ChatLLM, BatchJudge):
    """Classes by a chat model that reads question, reference answer and evidence.

    mode: `single` asks for one answer a request, a JSON object with class and reason; `batch` for all
        candidates of a topic in one request, classes separated by commas. Equal answers to a topic are one
        candidate.
    max_candidates: answers per request in mode batch; more are asked for in several requests.
    repeat: how many topics are judged again, to measure how stable the labels are (`judge_again`): once as
        before, and in mode batch once more with the candidates in another order.
    prompt: a text, or the name of a .txt file; null for the shipped one of the mode.
    prompts: several wordings that replace it, by which every answer is judged. They are texts, .txt files, or a, b and
        c, which are shipped and mean the same (a is the default one). Verdicts by the first are `label`, those by the
        others `label_2`, `label_3`, and so on; where one lacks, all of them are missing. Answers are judged again by
        the first alone.

    A reply that cannot be read is asked for once more. Then its verdicts are missing, with status `unreadable` and the
    raw reply, and a later run asks again. One that was cut in its reason has its class.
    """

    component = "chat"
    kind = "chat"
    uses = frozenset()

    mode: Literal["single", "batch"] = "single"
    max_candidates: int = 20
    repeat: int = runtime(0)
    prompt: str | None = None
    prompts: Sequence[str] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("judge.mode", self.mode, _PLACEHOLDERS)
        require_count("judge.max_candidates", self.max_candidates)
        require_count("judge.repeat", self.repeat, 0)
        if self.prompts is None:
            texts = [self._text(self.prompt, "judge.prompt")]
        else:
            names = self.prompts if isinstance(self.prompts, (list, tuple)) else ()
            require(
                "judge.prompts",
                self.prompts,
                len(set(names)) == len(names) and 2 <= len(names) <= MOST_PROMPTS,
                f"lists of 2 to {MOST_PROMPTS} different prompts, such as [a,b,c]",
            )
            texts = [self._text(name, "judge.prompts") for name in names]
            require("judge.prompt", self.prompt, self.prompt in (None, texts[0]), "null where judge.prompts are given")
            object.__setattr__(self, "prompts", tuple(texts))
        object.__setattr__(self, "prompt", texts[0])  # the text is part of the identity

    def _text(self, prompt: str | None, key: str) -> str:
        shipped = f"judge_{self.mode}{_SHIPPED.get(prompt or 'a', '')}.txt"
        return load_prompt(None if prompt in _SHIPPED else prompt, shipped, _PLACEHOLDERS[self.mode], key=key)

    def identity(self) -> dict[str, Any]:
        """The model, the prompt and the mode."""
        own: dict[str, Any] = {"mode": self.mode, "prompt": self.prompt}
        own |= {} if self.prompts is None else {"prompts": list(self.prompts)}
        inherited = super().identity()
        if self.mode == "batch":  # numbers with commas have no schema
            inherited.pop("schema", None)
            own["max_candidates"] = self.max_candidates
        return {**inherited, **own}

    @property
    def ahead(self) -> bool:  # type: ignore[override]
        """Whether it judges the answers of other budgets along with a topic's own: one answer a request."""
        return self.mode == "single"

    def _texts(self, again: Order | None) -> Sequence[str]:
        """All prompts, or the first alone if answers are judged again."""
        return self.prompts if self.prompts is not None and again is None else (str(self.prompt),)

    def judge(self, topics: pd.DataFrame, evidence: pd.DataFrame, answers: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `verdicts` with `reason` (mode single), `error`, and `request`, the call a verdict is from.

        In mode batch the candidates of a topic are its rows in `answers`. No answer, no call.
        """
        candidates = pd.DataFrame(
            {
                "qid": answers["qid"].to_numpy(),
                "candidate": answers["n_tokens"].astype(str).to_numpy(),
                "answer": answers["answer"].to_numpy(),
            }
        )
        if "ahead" in answers:
            candidates = candidates.assign(ahead=answers["ahead"].to_numpy())
        verdicts = self.judge_candidates(topics, evidence, candidates, tools)
        return verdicts.assign(n_tokens=answers["n_tokens"].to_numpy()).drop(columns="candidate")

    def judge_candidates(
        self, topics: pd.DataFrame, evidence: pd.DataFrame, candidates: pd.DataFrame, tools: Tools
    ) -> pd.DataFrame:
        """One verdict per row of `candidates` [qid, candidate, answer], in its order; a candidate may be a sweep's job.

        Columns: qid, candidate, label, status, raw, reason, error, request, tokens, cost, seconds, cached;
        the tokens, cost and seconds of a request are divided among its candidates. The order of a topic's
        candidates starts at a place that its qid decides. DataError where a (qid, candidate) occurs twice.
        """
        return self._judged(topics, evidence, candidates, tools, None)

    def judge_again(
        self, topics: pd.DataFrame, evidence: pd.DataFrame, candidates: pd.DataFrame, tools: Tools, seed: int = 0
    ) -> pd.DataFrame:
        """Further verdicts on the answers of `repeat` topics, drawn by `seed`, from requests of their own.

        The same frame as `judge_candidates` on the same candidates, with a column `order`: `same` for the same request
        once more, and in mode batch `other` for the candidates moved by half of their number. Among equal answers one
        is repeated, and in mode batch none that is alone in its request. No rows where nothing is repeated.
        """
        sample = self._to_repeat(candidates, seed)
        orders = _AGAIN[self.mode]
        frames = [self._judged(topics, evidence, sample, tools, order).assign(order=order) for order in orders]
        return pd.concat(frames, ignore_index=True)

    def _judged(
        self, topics: pd.DataFrame, evidence: pd.DataFrame, candidates: pd.DataFrame, tools: Tools, again: Order | None
    ) -> pd.DataFrame:
        """Verdicts of the first requests, or of their repetitions in an order."""
        if candidates.duplicated(["qid", "candidate"]).any():
            row = candidates[candidates.duplicated(["qid", "candidate"])].iloc[0]
            raise DataError(f"candidates frame: qid {row['qid']!r}, candidate {row['candidate']!r} occurs twice")
        known = truths(with_history(topics), evidence, candidates["qid"])
        salt = self._salt(again)
        requests = self._requests(candidates, again)
        sizes = [len(answers) for _, answers in requests]
        texts = self._texts(again)
        prompts = [self._prompt(text, known[qid], answers) for text in texts for qid, answers in requests]
        rows = {}
        if "ahead" in candidates:
            own = {*zip(*(candidates.loc[~candidates["ahead"], name] for name in ("qid", "answer")), strict=True)}
            ahead = [all((qid, answer) not in own for answer in answers) for qid, answers in requests]
            rows = {"topics": [qid for qid, _ in requests] * len(texts), "ahead": ahead * len(texts)}
        asked = iter(zip(prompts, self._verdicts(prompts, sizes * len(texts), tools, salt, **rows), strict=True))
        found = []
        for _ in texts:
            verdict_of: dict[tuple[str, str], Verdict] = {}
            for qid, answers in requests:
                prompt, verdicts = next(asked)
                # A digest of what was asked: equal in every job that shares the request.
                name = hashlib.sha256(f"{salt}\x1f{prompt}".encode("utf-8", "replace")).hexdigest()[:16]
                for answer, verdict in zip(answers, verdicts, strict=True):
                    verdict_of[qid, answer] = replace(verdict, request=name)
            found.append(verdict_frame(candidates[["qid", "candidate"]], spread(candidates, verdict_of)))
        return of_all_prompts(found)

    def _salt(self, again: Order | None) -> str:
        """Salt of a repeated request; the first request has none."""
        return "" if again is None else _AGAIN[self.mode][again]

    def _to_repeat(self, candidates: pd.DataFrame, seed: int) -> pd.DataFrame:
        """The distinct answers of `repeat` topics that can be judged again."""
        answered = speaking(candidates)
        if self.mode == "batch":  # one candidate cannot change its place
            alone = {(qid, texts[0]) for qid, texts in self._requests(answered, None) if len(texts) == 1}
            pairs = zip(answered["qid"], answered["answer"], strict=True)
            answered = answered[[pair not in alone for pair in pairs]]
        able = np.sort(answered["qid"].unique().astype(object))
        drawn = np.random.default_rng(seed).choice(able, min(self.repeat, len(able)), replace=False)
        return answered[answered["qid"].isin(drawn)]

    def needs(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        candidates: pd.DataFrame,
        tools: Tools,
        *,
        repeat: bool = False,
    ) -> pd.DataFrame:
        """The requests of `judge_candidates` and, with `repeat`, of `judge_again`, as ChatLLM.needs_of returns them.

        The column `again` marks the latter. A missing answer in `candidates` is not known yet: it counts as some 30
        tokens, and `exact` is False for its requests.
        """
        unknown = candidates["answer"].isna()
        # Told apart, since unknown answers of several candidates will rarely be equal.
        stand_in = _EXPECTED_ANSWER + candidates["candidate"].astype(str)
        candidates = candidates.assign(answer=candidates["answer"].mask(unknown, stand_in))
        guessed = frozenset(stand_in[unknown])
        first = self._needs(topics, evidence, candidates, tools, guessed, None)
        asked = [first.assign(again=False)]
        if repeat:
            sample = self._to_repeat(candidates, seed=0)
            for order in _AGAIN[self.mode]:
                more = self._needs(topics, evidence, sample, tools, guessed, order)
                # Which topics are drawn depends on all answers.
                asked.append(more.assign(exact=more["exact"].astype(bool) & (not guessed), again=True))
        return pd.concat(asked, ignore_index=True)

    def _needs(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        candidates: pd.DataFrame,
        tools: Tools,
        guessed: frozenset[str],
        again: Order | None,
    ) -> pd.DataFrame:
        known = truths(with_history(topics), evidence, candidates["qid"])
        requests = self._requests(candidates, again)
        sizes = [len(answers) for _, answers in requests]
        texts = self._texts(again)
        prompts = [self._prompt(text, known[qid], answers) for text in texts for qid, answers in requests]
        tokens = None
        if self.mode == "batch" and requests:
            tokens = 2 * -(-sum(sizes) // len(sizes))  # a class, a comma
        asked = self.needs_of(
            prompts,
            tools.store,
            salt=self._salt(again),
            readers=self._readers(sizes * len(texts)),
            expected_tokens=tokens,
        )
        return asked.assign(exact=[guessed.isdisjoint(answers) for _, answers in requests] * len(texts))

    def _requests(self, candidates: pd.DataFrame, again: Order | None) -> list[tuple[str, list[str]]]:
        """Requests as (qid, distinct answers), in the order shown to the judge."""
        answered = speaking(candidates)
        size = self.max_candidates if self.mode == "batch" else 1
        requests = []
        for qid, answers in answered.groupby("qid", sort=False)["answer"]:
            texts = answers.tolist()
            n_requests = -(-len(texts) // size)
            edges = [len(texts) * i // n_requests for i in range(n_requests + 1)]
            requests += [
                (str(qid), _rotated(texts[start:end], str(qid), again == "other"))
                for start, end in itertools.pairwise(edges)
            ]
        return requests

    def _prompt(self, text: str, truth: Truth, answers: Sequence[str]) -> str:
        shared = {
            "question": _line(truth.query),
            "reference": _line(truth.reference),
            "evidence": "\n".join(f"- {_line(part)}" for part in truth.evidence) or "(none is known)",
        }
        if self.mode == "single":
            return fill(text, **shared, answer=_line(answers[0]))
        numbered = "\n".join(f"{i}. {_line(answer)}" for i, answer in enumerate(answers, 1))
        return fill(text, **shared, answers=numbered, count=str(len(answers)))

    def _verdicts(
        self, prompts: Sequence[str], sizes: Sequence[int], tools: Tools, salt: str, **rows: Sequence[Any]
    ) -> list[list[Verdict]]:
        """The verdicts of every request, one per answer."""
        how: dict[str, Any] = {"salt": salt, "readers": self._readers(sizes), **rows}
        replies = self.ask(prompts, tools.store, "verdicts", **how)
        form = {"single": _FORM, "batch": _FORM_OF_BATCH}[self.mode]
        return [
            divided(reply, self._read(reply, n), n, form.replace("$n", str(n)))
            for reply, n in zip(replies, sizes, strict=True)
        ]

    def _readers(self, sizes: Sequence[int]) -> list[Reader]:
        readers: list[Reader] = [partial(self._read, n=n) for n in sizes]
        return readers if self.mode == "batch" else [Structured(read, VERDICT) for read in readers]

    def _read(self, reply: Reply, n: int) -> list[tuple[int, str | None]] | None:
        """Class and reason of each of the n answers; None without a readable reply."""
        if reply.text is None:
            return None
        if self.mode == "batch":
            scores = None if reply.error == CUT else parse_scores(reply.text, n)
            return None if scores is None else [(score, None) for score in scores]
        verdict = cut_verdict(reply.text) if reply.error == CUT else parse_verdict(reply.text)
        return None if verdict is None else [verdict]


def _line(text: str) -> str:
    """The text on one line, so that one answer cannot pose as two."""
    return " ".join(text.split())


def _rotated(answers: list[str], qid: str, moved: bool) -> list[str]:
    """The answers rotated by an offset that depends on the qid; `moved` adds half of their number."""
    shift = int(hashlib.sha256(qid.encode()).hexdigest()[:8], 16) + (len(answers) // 2 if moved else 0)
    shift %= len(answers)
    return answers[shift:] + answers[:shift]


def parse_scores(reply: str, n: int) -> list[int] | None:
    """The n classes of a reply such as `5, 1, 3`; None unless it holds exactly n.

    Commas, semicolons, spaces or lines may divide them. Square brackets, a code fence, words that end with a colon
    before them and a full stop behind them are left out. Any other number or word makes the reply unreadable.
    """
    found = _SCORES.fullmatch(_plain(reply))
    if found is None:
        return None
    scores = [int(float(score)) for score in _SCORE.findall(found["scores"])]
    return scores if len(scores) == n else None


def parse_verdict(reply: str) -> tuple[int, str | None] | None:
    """Class and reason of a reply such as `{"label": 5, "reason": "..."}`; None unless it names one class.

    The object may have further keys and no reason, and text around it (`ragauge.llms.json_replies.json_of`). Without
    an object a reply is read that is a class alone, or names one on a line of its own: `The answer is 5.`
    """
    verdict = json_of(reply)
    if isinstance(verdict, list) and len(verdict) == 1:
        verdict = verdict[0]
    if not isinstance(verdict, dict):
        return _class_in_words(_plain(reply))
    named = {key.casefold(): value for key, value in verdict.items()}
    if len(named) < len(verdict):
        return None
    label, reason = whole_number(named.get("label")), named.get("reason")
    if label is None or label not in JUDGE_CLASSES:
        return None
    return label, " ".join(reason.split()) if isinstance(reason, str) else None


def cut_verdict(reply: str) -> tuple[int, str] | None:
    """Class and what is there of the reason, of a reply such as `{"label": 5, "reason": "...` that ends within it.

    A small model may go on in its reason without end. None for any other beginning, and where another label follows.
    """
    found = _CUT_IN_REASON.fullmatch(reply)
    return None if found is None else (int(found["label"]), " ".join(found["reason"].split()))


def _class_in_words(text: str) -> tuple[int, None] | None:
    """The class in a text without a JSON object; None unless it names exactly one."""
    if "{" in text:
        return None
    alone = _BARE.fullmatch(text)
    labels = {int(float(one["label"])) for one in ([alone] if alone else _NAMED.finditer(text))}
    return (labels.pop(), None) if len(labels) == 1 else None


def _plain(reply: str) -> str:
    """The reply without code fences and marks of emphasis."""
    return _MARKS.sub(lambda mark: mark["boxed"] or "", reply).strip()
