"""Fields whose defaults stand in an option's file."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass, fields

import pytest

from ragauge.contract.identity import identity, later, runtime
from ragauge.contract.option import CONF, option, values_of


@dataclass(frozen=True)
class Base:
    component = "base"
    top_k: int = CONF


@option("retriever/bm25")
class Words(Base):
    component = "words"
    k1: float = CONF
    stemmer: str = "none"
    threads: int = runtime(CONF)
    language: str = later("english")


def test_defaults_are_those_of_the_file_and_of_what_it_builds_on() -> None:
    given = values_of("retriever/bm25")
    assert (Words().top_k, Words().k1, Words().threads) == (given["top_k"], given["k1"], given["threads"])
    assert given["top_k"] == values_of("hydra/shared/hits")["top_k"]
    assert [field.name for field in fields(Words)] == ["top_k", "k1", "stemmer", "threads", "language"]
    assert Words(3, stemmer="x") == Words(top_k=3, stemmer="x")
    assert set(identity(Words())) == {"component", "version", "top_k", "k1", "stemmer", "code"}
    with pytest.raises(FrozenInstanceError):
        Words().top_k = 3


def test_lists_are_tuples_and_a_plug_in_has_files_of_its_own() -> None:
    assert values_of("retriever/hybrid")["arms"] == ("bm25", "sim")
    assert values_of("retriever/milvus", "ragauge.plugins.milvus.retriever")["mode"] == "dense"


def test_a_field_that_the_file_lacks_is_named() -> None:
    with pytest.raises(KeyError, match="n_passages"):

        @option("retriever/bm25")
        class Other:
            n_passages: int = CONF
