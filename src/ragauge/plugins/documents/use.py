"""The retriever's worth by the passages behind an answer: five values per topic."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.topics import is_unanswerable, scorable
from ragauge.measures.matching import Substring

_HALF = 0.5  # of an evidence part, or of a shorter passage: so much has to stand in a passage in one piece
VALUES = ("rests_on_context", "top_ranked_ignored_share", "noise_used_share", "used_rank", "use_agreement")
_CHUNK = re.compile(r"%p[^%]*$")


def holds_evidence(passages: pd.DataFrame, evidence: pd.DataFrame, topics: pd.DataFrame) -> pd.Series:
    """Whether each passage of `standing` holds evidence: True, False, or missing for a topic without any.

    A passage holds an evidence part if their longest common substring is at least half of the shorter one of
    the two, white space folded. Where no evidence of a topic has a text, a passage of a document that the
    evidence names holds it.
    """
    texts = scorable(evidence, topics)
    texts = texts[texts["text"].str.strip() != ""]
    parts: Mapping[Any, list[str]] = texts.groupby("qid")["text"].apply(list).to_dict()
    named = evidence[evidence["docno"].notna() & ~evidence["qid"].isin(topics["qid"][is_unanswerable(topics)])]
    documents: Mapping[Any, set[str]] = named.groupby("qid")["docno"].apply(set).to_dict()
    found = pd.Series(pd.NA, index=passages.index, dtype="boolean")
    by_name = passages["qid"].isin(documents) & ~passages["qid"].isin(parts)
    found[by_name] = [
        docno in documents[qid] or _CHUNK.sub("", docno) in documents[qid]
        for qid, docno in zip(passages["qid"][by_name], passages["docno"][by_name], strict=True)
    ]
    by_text = passages[passages["qid"].isin(parts)]
    if by_text.empty:
        return found
    of_rows = [parts[qid] for qid in by_text["qid"]]
    seen = by_text["seen"].tolist()
    shares = Substring().score_all(of_rows, seen, [np.array([len(text)]) for text in seen])
    sizes = {text: len(" ".join(text.split())) for own in parts.values() for text in own}
    holds = []
    for own, text, share in zip(of_rows, seen, shares, strict=True):
        length = len(" ".join(text.split()))
        lengths = np.array([sizes[part] for part in own])
        # A hair below, since the kernel folds white space at the ends a little otherwise.
        holds.append(bool((share[:, 0] * lengths >= _HALF * np.minimum(lengths, length) - 1e-9).any()))
    found[by_text.index] = holds
    return found


def use_values(
    passages: pd.DataFrame, used: np.ndarray, holds: pd.Series, top: int | None, persistence: float
) -> pd.DataFrame:
    """The `VALUES` by qid, NaN for none.

    passages: those of `standing`, `used` (bool) and `holds` by row. With u passages used of k:
    rests_on_context: whether u is at least 1.
    top_ranked_ignored_share: the share of the m best-ranked passages that is not used; m is `top`, or u, one at least,
        and k at most. With u it is 1 less the R-precision of use.
    noise_used_share: the share of the u used ones that holds no evidence.
    used_rank: the mean place, from 1, of what is used.
    use_agreement: sum over used places r of p^(r-1), over the same sum if the u first places were used, p the
        persistence: rank-biased precision of use (Moffat & Zobel 2008) over its ideal, in (0, 1].
    """
    rows = passages[["qid", "place"]].assign(
        used=np.asarray(used, dtype=bool),
        noise=1.0 - holds.astype("Float64").to_numpy(dtype=float, na_value=np.nan),
    )
    if rows.empty:
        return pd.DataFrame({name: pd.Series(dtype=float) for name in VALUES})
    rows["gain"] = np.where(rows["used"], persistence ** (rows["place"].to_numpy(dtype=float) - 1), 0.0)
    of_topic = rows.groupby("qid", sort=False)
    n_used = of_topic["used"].sum().astype("int64")
    many = of_topic.size()
    first = n_used.clip(lower=1) if top is None else pd.Series(top, index=n_used.index)
    first = first.clip(upper=many)
    among = rows["place"] <= rows["qid"].map(first)
    hits = (rows["used"] & among).groupby(rows["qid"], sort=False).sum()
    of_used = rows[rows["used"]].groupby("qid", sort=False)
    ideal = (1 - persistence**n_used) / (1 - persistence)
    return pd.DataFrame(
        {
            "rests_on_context": (n_used > 0).astype(float),
            "top_ranked_ignored_share": 1 - hits / first,
            "noise_used_share": of_used["noise"].mean().reindex(n_used.index),
            "used_rank": of_used["place"].mean().reindex(n_used.index),
            "use_agreement": (of_topic["gain"].sum() / ideal).clip(upper=1.0).where(n_used > 0),
        }
    )
