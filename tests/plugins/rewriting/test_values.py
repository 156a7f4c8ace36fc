"""Every rewriter's defaults and limits in one table: what its key holds, and what is refused."""

from typing import Any

import pytest

from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import identity
from ragauge.plugins.rewriting.hyde import HyDE
from ragauge.plugins.rewriting.multi_query import Decompose, MultiQuery, RagFusion
from ragauge.plugins.rewriting.prf import PRF
from ragauge.plugins.rewriting.recorded import Recorded

SEARCHED = {"with_question": True, "union": "rrf", "rrf_constant": 60}
# Class, whether it searches first for what its queries are made of, the beginning of its prompt, and its key.
DEFAULTS: list[tuple[type[Any], bool, str, dict[str, Any]]] = [
    (HyDE, False, "Write one passage", {"component": "hyde", "version": 2, "n_passages": 1, "with_question": True}),
    (
        MultiQuery, False, "A search engine holds",
        {"component": "multi_query", "version": 2, "queries": "auto", "n_queries": 3, **SEARCHED},
    ),
    (
        RagFusion, False, "You help a search engine",
        {"component": "rag_fusion", "version": 2, "queries": "llm", "n_queries": 4, **SEARCHED},
    ),
    (
        Decompose, False, "Break the question below",
        {"component": "decompose", "version": 2, "queries": "auto", "n_queries": 3, **SEARCHED},
    ),
    (
        PRF, True, "",
        {
            "component": "prf", "version": 3, "fb_docs": 3, "fb_terms": 10, "original_weight": 0.5, "alpha": 1.0,
            "beta": 0.75,
        },
    ),
    (Recorded, False, "", {"component": "recorded", "version": 1, "role": None, **SEARCHED}),
]  # fmt: skip
REFUSED: list[tuple[type[Any], dict[str, Any]]] = [
    (HyDE, {"n_passages": 0}), (HyDE, {"with_question": 1}), (HyDE, {"prompt": "$passage"}),
    (MultiQuery, {"queries": "both"}), (MultiQuery, {"n_queries": 0}), (MultiQuery, {"with_question": "perhaps"}),
    (MultiQuery, {"union": "all"}), (MultiQuery, {"rrf_constant": -1}), (MultiQuery, {"prompt": "no question"}),
    (RagFusion, {"union": "first_seen"}), (RagFusion, {"n_queries": 0}),
    (PRF, {"fb_docs": 0}), (PRF, {"fb_terms": 0}), (PRF, {"original_weight": 1.2}), (PRF, {"original_weight": -0.1}),
    (PRF, {"alpha": -1}), (PRF, {"beta": float("nan")}), (PRF, {"beta": 0, "alpha": 0}),
    (Recorded, {"role": "text"}), (Recorded, {"with_question": "no"}), (Recorded, {"union": "all"}),
    (Recorded, {"rrf_constant": -1}),
]  # fmt: skip


def test_what_a_key_holds_where_nothing_is_set() -> None:
    for cls, searches_first, prompt, expected in DEFAULTS:
        found = identity(cls())
        assert found.pop("prompt", "").startswith(prompt), cls
        assert found == expected
        assert cls().feedback == searches_first, cls
    assert identity(MultiQuery(prompt="$question")) != identity(MultiQuery())
    assert identity(Recorded(path="a")) == identity(Recorded(path="b"))


def test_values_that_cannot_be_and_the_ends_of_a_range() -> None:
    for cls, given in REFUSED:
        with pytest.raises(ConfigError, match=rf"rewriter\.{next(iter(given))}"):
            cls(**given)
    for cls in (MultiQuery, Recorded):
        assert cls(rrf_constant=0).rrf_constant == 0
    for weights in ({"original_weight": 0}, {"original_weight": 1}, {"alpha": 0, "beta": 0.1}, {"beta": 0}):
        assert PRF(**weights)
