"""One row per topic: what was retrieved, what was answered, what the judge said; and which topics are judged."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pandas as pd

from ragauge.contract.answer_measures import NO_REFERENCE, NOT_SAMPLED
from ragauge.contract.errors import ConfigError
from ragauge.contract.frames import SCHEMAS
from ragauge.contract.offers import JudgeOffers, offered
from ragauge.contract.protocols import Judge
from ragauge.contract.topics import RESERVED, references, without_reference
from ragauge.estimate import choose_topics
from ragauge.estimate.prompts import other_labels


@dataclass(frozen=True)
class Sample:
    """How many topics are judged, or answered and judged, and how they are chosen: `uniform`, or `neyman` by P(5).

    of: the config group that asks for it, judge or llm.
    """

    n: int
    design: str = "uniform"
    seed: int = 0
    of: str = "judge"

    def __post_init__(self) -> None:
        if not isinstance(self.n, int) or isinstance(self.n, bool) or self.n < 2:
            raise ConfigError(f"{self.of}.sample={self.n}: allowed are integers of at least 2, null for all")
        if self.design not in ("uniform", "neyman"):
            raise ConfigError(f"{self.of}.sample_design={self.design}: allowed are uniform, neyman")

    def chosen(self, qids: pd.Series, unjudged: Collection[str]) -> pd.DataFrame:
        """A uniform choice among the topics that can be judged, or among all if none can: [qid, stratum, judged]."""
        rest = qids[~qids.isin(list(unjudged))]
        even = pd.Series(0.5, index=rest if len(rest) else qids)  # any P(5), as the draw does not depend on it
        return choose_topics(even, self.n, seed=self.seed, design="uniform")


@dataclass(frozen=True)
class Listed(Sample):
    """The topics that a CSV file names: a row per topic, [qid, answered (1, 0)] and, where they were drawn by strata,
    stratum (an integer).
    """

    file: str = ""

    @classmethod
    def of_file(cls, file: str) -> Listed:
        """ConfigError for a file that is not of this form, or a stratum of which fewer than two topics are named."""
        key = f"llm.sample={file}"
        try:
            rows = pd.read_csv(file, dtype={"qid": "str"})
        except (OSError, ValueError) as error:
            raise ConfigError(f"{key}: no CSV file that can be read: {error}; allowed are integers and files") from None
        if not {"qid", "answered"} <= set(rows) or rows["qid"].isna().any() or rows["qid"].duplicated().any():
            raise ConfigError(f"{key}: allowed are the columns qid (each topic once), answered and stratum")
        for name in ("answered", *({"stratum"} & set(rows))):
            of = rows[name]
            bad = ~of.isin([0, 1]) if name == "answered" else of.isna() | of.astype("str").str.contains("[^0-9]")
            if bad.any():
                number = "0 or 1" if name == "answered" else "an integer of at least 0"
                raise ConfigError(f"{key}: {name} of qid={rows['qid'][bad].iloc[0]!r} is not {number}")
        by = rows.groupby(rows.get("stratum", rows["qid"].isna()))["answered"]
        for stratum, (size, n) in by.agg(["size", "sum"]).iterrows():
            if n < min(2, size):
                raise ConfigError(f"{key}: stratum {stratum} names {n} of {size} topics; it takes at least 2")
        return cls(int(rows["answered"].sum()), "uniform", of="llm", file=file)

    def chosen(self, qids: pd.Series, unjudged: Collection[str]) -> pd.DataFrame:
        """The topics of the file that can be judged: [qid, stratum, judged]. ConfigError where it lacks one of qids."""
        rows = pd.read_csv(self.file, dtype={"qid": "str"}).set_index("qid")
        if not qids.isin(rows.index).all():
            raise ConfigError(f"llm.sample={self.file}: no row of qid={qids[~qids.isin(rows.index)].iloc[0]!r}")
        rest = qids[~qids.isin(list(unjudged))]
        rows = rows.loc[rest if len(rest) else qids]
        stratum = rows["stratum"] if "stratum" in rows else pd.Series(0, index=rows.index)
        return pd.DataFrame(
            {"qid": rows.index, "stratum": stratum.to_numpy(), "judged": rows["answered"].eq(1).to_numpy()}
        )


def unjudged(judge: Judge, topics: pd.DataFrame) -> frozenset[str]:
    """The topics without a reference answer, where the judge needs one."""
    return frozenset(without_reference(topics) if offered(judge, JudgeOffers).needs_reference else ())


def retrieved(
    topics: pd.DataFrame,
    scores: pd.DataFrame,
    part_scores: pd.DataFrame,
    contexts: pd.DataFrame,
    run: pd.DataFrame,
    n_tokens: int,
) -> pd.DataFrame:
    """A row per topic at n_tokens, before any LLM: query, answer_reference, ir_score and `features`.

    ir_score is missing for a topic without evidence and an unanswerable one. Attributes of the topics, and
    unanswerable where a topic is so, are further columns.
    """
    at_n = scores[scores["n_tokens"] == n_tokens]
    rows = topics.drop(columns=["answers", "wrong_answers"], errors="ignore").merge(
        at_n[["qid", "value"]].rename(columns={"value": "ir_score"}),
        on="qid",
        how="left",
        validate="one_to_one",
    )
    rows.insert(rows.columns.get_loc("ir_score"), "n_tokens", n_tokens)  # type: ignore[arg-type]
    rows = rows.rename(columns={"answer": "answer_reference"})
    found = features(topics, part_scores, contexts, run, n_tokens)
    return rows.merge(found, on="qid", validate="one_to_one")


def features(
    topics: pd.DataFrame, part_scores: pd.DataFrame, contexts: pd.DataFrame, run: pd.DataFrame, n_tokens: int
) -> pd.DataFrame:
    """Columns known of every topic before any LLM is asked, beside its IR score (keyed by qid).

    evidence_best, evidence_worst: the highest and lowest score of the topic's evidence parts, in [0, 1].
        Missing where the IR score is.
    answer_in_context: 1 where a reference answer stands in the context (case folded), else 0; missing for a
        topic without one.
    n_used: tokens of the context. score_gap: the retriever's first score less its second, 0 without one.
    """
    of_topic = part_scores[part_scores["n_tokens"] == n_tokens].groupby("qid")["value"]
    known = references(topics)
    rows = topics[["qid"]].merge(contexts[["qid", "text", "n_used"]], on="qid", validate="one_to_one")
    pairs = zip(rows["qid"].map(known), rows["text"].str.casefold(), strict=True)
    top = run.query("rank < 2").pivot(index="qid", columns="rank", values="score")
    top = top.reindex(columns=[0, 1])
    return pd.DataFrame(
        {
            "qid": rows["qid"],
            "evidence_best": rows["qid"].map(of_topic.max()),
            "evidence_worst": rows["qid"].map(of_topic.min()),
            "answer_in_context": [
                float(any(one.casefold() in text for one in answers)) if answers else float("nan")
                for answers, text in pairs
            ],
            "n_used": rows["n_used"].astype(float),
            "score_gap": rows["qid"].map(top[0] - top[1]).fillna(0.0),
        }
    )


def outcomes(
    found: pd.DataFrame,
    answers: pd.DataFrame,
    verdicts: pd.DataFrame,
    values: pd.DataFrame,
    sampled: pd.DataFrame | None,
    unjudged: Collection[str] = (),
) -> pd.DataFrame:
    """`found` (of `retrieved`) with answer, label and statuses, and a column per answer measure.

    Columns of the answers that the data model does not name, such as the rounds of an iterative system, are
    further columns, unless the topics have one of that name.
    unjudged: topics that have no reference answer to judge by; their judge_status is "no reference".
    Where topics were sampled (`sampled`: [qid, stratum, judged]), stratum and judged, too. Topics that were not
    answered have the statuses NOT_SAMPLED.
    """
    renamed = answers.rename(columns={"status": "answer_status", "error": "answer_error"})
    known = {*SCHEMAS["answers"].columns, "calls", "usage_unknown", *RESERVED, *found.columns}
    own = [name for name in answers.columns if name not in known]
    rows = found.merge(
        renamed[["qid", "answer", "answer_status", "answer_error", *own]], on="qid", how="left", validate="one_to_one"
    )
    rows["answer_status"] = rows["answer_status"].fillna(NOT_SAMPLED)
    if len(values):
        wide = values.pivot(index="qid", columns="measure", values="value").astype("float64")
        rows = rows.drop(columns=[c for c in wide if c in rows])  # attributes that are called as a measure
        rows = rows.merge(wide.reset_index(), on="qid", how="left", validate="one_to_one")
    keep = [c for c in ("qid", "label", "status", "raw", "reason") if c in verdicts] + other_labels(verdicts)
    rows = rows.merge(
        verdicts[keep].rename(columns={"status": "judge_status", "raw": "judge_raw"}),
        on="qid",
        how="left",
        validate="one_to_one",
    )
    lacking = rows["judge_status"].isna() & rows["qid"].isin(unjudged)
    rows.loc[lacking, "judge_status"] = NO_REFERENCE
    if sampled is None:
        return rows
    rows["judge_status"] = rows["judge_status"].fillna(NOT_SAMPLED)
    rows = rows.merge(sampled, on="qid", how="left", validate="one_to_one")
    rows["judged"] = rows["judged"].eq(True)
    return rows.fillna({"stratum": 0})
