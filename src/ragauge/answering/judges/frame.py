"""Truth by topic, verdicts from replies, the frame of verdicts, and `judge=none`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ragauge.contract.answering import Judge
from ragauge.contract.component import Tools
from ragauge.contract.errors import DataError
from ragauge.contract.frames import LACK
from ragauge.contract.replies import Reply, is_echo
from ragauge.contract.topics import references, without_reference
from ragauge.contract.usage import NO_USAGE, TOKENS, Usage, usage_columns
from ragauge.contract.visible import is_blank
from ragauge.llms.replies import shown

NO_ANSWER = "no answer"
SAYS_NOTHING = "says nothing"
UNANSWERABLE = (
    "There is no answer: the documents do not hold it, or the question assumes what is not so. An answer "
    "that says so lacks information (1); any other is wrong (4)."
)


@dataclass(frozen=True)
class Verdict:
    """One verdict: a class or None, its status, its reason and its cost.

    status: `ok`, `no answer` (nothing to judge), `missing` (no reply came), `unreadable` (a reply that is no
    verdict, kept in `raw`; `reason` shows it beside its form), `none` (no judge). `request` names the
    request, which several verdicts may share; its calls, its `thoughts`, and those of unknown usage, stand at the
    first.
    """

    label: int | None
    status: str = "ok"
    raw: str | None = None
    reason: str | None = None
    error: str | None = None
    usage: Usage = NO_USAGE
    cached: bool = False
    request: str | None = None
    thoughts: str | None = None


def verdict_frame(keys: pd.DataFrame, verdicts: Sequence[Verdict]) -> pd.DataFrame:
    """The key columns with the fields of the verdicts, row by row."""
    columns: dict[str, object] = {name: keys[name].to_numpy() for name in keys.columns}
    columns["label"] = pd.array([v.label for v in verdicts], dtype="Int8")
    for name in ("status", "raw", "reason", "error", "request"):
        columns[name] = pd.array([getattr(v, name) for v in verdicts], dtype="str")
    columns["cached"] = np.array([v.cached for v in verdicts], dtype=bool)
    columns |= usage_columns([v.usage for v in verdicts])
    if any(v.thoughts for v in verdicts):
        columns["thoughts"] = pd.array([v.thoughts for v in verdicts], dtype="str")
    return pd.DataFrame(columns)


def of_all_prompts(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Verdicts by the first prompt, `label_2`, `label_3` ... by the others, with the tokens, cost and time of all.

    Where one prompt has no verdict all labels are missing, and the status is that of this prompt. A row that was
    paid for by some prompts has what these took; one that is cached throughout, what all once did.
    """
    if len(frames) == 1:
        return frames[0]
    found = frames[0].copy()
    found["cached"] = np.logical_and.reduce([frame["cached"] for frame in frames])
    for name in (*TOKENS, "cost_usd", "seconds", "calls", "usage_unknown"):
        counted = [frame[name].where(found["cached"] | ~frame["cached"], 0) for frame in frames if name in frame]
        if counted:
            found[name] = pd.concat(counted, axis=1).sum(axis=1, min_count=1)
    for other in frames[1:]:
        lost = found["label"].notna() & other["label"].isna()
        for name in ("label", "status", "raw", "reason", "error"):
            found[name] = found[name].mask(lost, other[name])
    for number, other in enumerate(frames[1:], 2):
        found[f"label_{number}"] = other["label"].where(found["label"].notna())
    return found


@dataclass(frozen=True)
class Truth:
    """The question, references and evidence that an answer is compared with.

    references: at least one, unless the topic is unanswerable; evidence: () where none is known.
    """

    query: str
    references: tuple[str, ...]
    evidence: tuple[str, ...]

    @property
    def reference(self) -> str:
        """All reference answers as one text."""
        if not self.references:
            return UNANSWERABLE
        first, *others = self.references
        return first if not others else f"{first} (also right: {'; '.join(others)})"


def truths(topics: pd.DataFrame, evidence: pd.DataFrame, qids: pd.Series) -> dict[str, Truth]:
    """Question, reference answer and evidence (in the order of its parts) of every qid.

    DataError for a qid without a topic, and of a topic without a reference that is not unanswerable.
    """
    wanted = list(dict.fromkeys(qids))
    parts = evidence[evidence["qid"].isin(wanted)].sort_values(["qid", "part"])
    texts = {str(qid): tuple(rows.dropna()) for qid, rows in parts.groupby("qid")["text"]}
    of_topics = topics[topics["qid"].isin(wanted)]
    known, lacking = references(of_topics), without_reference(of_topics)
    found = {
        qid: Truth(query, known[qid], texts.get(qid, ()))
        for qid, query in zip(of_topics["qid"], of_topics["query"], strict=True)
    }
    for qid in wanted:
        if qid not in found:
            raise DataError(f"answers frame: qid {qid!r} is in no topic")
        if qid in lacking:
            raise DataError(f"topics frame: qid {qid!r} has no reference answer to judge by")
    return found


def divided(reply: Reply, read: list[tuple[int, str | None]] | None, n: int, form: str) -> list[Verdict]:
    """One verdict per answer of a request, with its part of tokens, cost and time, and all of the calls.

    form: the required form of a reply, for the error of one that cannot be read.
    """
    lost = reply.text is None and not is_echo(reply)
    status = "ok" if read is not None else "missing" if lost else "unreadable"
    error = None
    if read is None:
        error = reply.error if reply.text is None else shown(reply.text, form)
        if reply.text is not None and reply.error:
            error = f"{reply.error}: {error}"
    labels: Sequence[tuple[int | None, str | None]] = read if read is not None else [(None, None)] * n
    return [
        Verdict(
            label=label,
            status=status,
            raw=reply.text,
            reason=error if status == "unreadable" else reason,
            error=error,
            usage=reply.usage.part(i, n),
            cached=reply.cached,
            thoughts=reply.thoughts,
        )
        for i, (label, reason) in enumerate(labels)
    ]


def speaking(candidates: pd.DataFrame) -> pd.DataFrame:
    """The distinct non-blank answers [qid, answer, ...]; a blank one is class 1 without a judge."""
    said = [isinstance(answer, str) and not is_blank(answer) for answer in candidates["answer"]]
    return candidates[np.array(said, dtype=bool)].drop_duplicates(["qid", "answer"])


def spread(candidates: pd.DataFrame, verdict_of: Mapping[tuple[str, str], Verdict]) -> list[Verdict]:
    """A verdict for every row.

    An answer that says nothing is a lack of information. Where a topic has equal answers, the first has the cost, and
    the others are cached. The calls of a request that several answers share stand at the first of them alone, so that
    each is counted in one job.
    """
    paid: set[tuple[str, str]] = set()
    counted: set[str | None] = set()
    verdicts = []
    for qid, answer in zip(candidates["qid"], candidates["answer"], strict=True):
        if pd.isna(answer):
            verdicts.append(Verdict(None, NO_ANSWER))
            continue
        if is_blank(answer) and (qid, answer) not in verdict_of:
            verdicts.append(Verdict(LACK, reason=SAYS_NOTHING))
            continue
        verdict = verdict_of[qid, answer]
        if (qid, answer) in paid:
            verdict = replace(verdict, usage=verdict.usage.free(), cached=True)
        if verdict.request in counted:
            usage = replace(verdict.usage, calls=0, usage_unknown=0)
            verdict = replace(verdict, usage=usage, thoughts=None)
        paid.add((qid, answer))
        counted.add(verdict.request)
        verdicts.append(verdict)
    return verdicts


@dataclass(frozen=True)
class NoJudge(Judge):
    """No verdicts: answers are kept as they are."""

    component = "none"
    kind = "none"

    def judge(self, topics: pd.DataFrame, evidence: pd.DataFrame, answers: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `verdicts` without labels; every status is none."""
        return verdict_frame(answers[["qid", "n_tokens"]], [Verdict(None, "none")] * len(answers))
