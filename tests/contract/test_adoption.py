"""Components of classes that inherit from nothing: what is not said has a default, and what lacks is an error."""

from __future__ import annotations

import copy
import pickle
import sys
from dataclasses import FrozenInstanceError, dataclass, replace
from typing import Any, ClassVar

import pandas as pd
import pytest

from ragauge.contract.adoption import adopted, heir_of
from ragauge.contract.component import Component, Embedder
from ragauge.contract.datasets import Source
from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import identity
from ragauge.contract.loading import build
from ragauge.contract.measures import AnswerMeasure, AnswerMeasureInfo, Measure, MeasuresPassages, MeasuresRanking
from ragauge.contract.retrieval import BringsTexts, Reranker, Retriever, SeesEvidence
from ragauge.contract.usage import Usage

HERE = __name__


class Silent:
    uses: ClassVar[frozenset[str]] = frozenset({"embedder"})

    def index_identity(self):
        return {}

    def build_index(self, chunks, folder, tools):
        pass

    def transformer(self, chunks, folder, tools):
        return lambda topics: topics


@dataclass(frozen=True)
class Telling(Silent):
    component: ClassVar[str] = "telling"
    version: ClassVar[int] = 3
    uses: ClassVar[frozenset[str]] = frozenset({"embedder", "chat"})
    index_uses: ClassVar[frozenset[str]] = frozenset()

    top_k: int = 0

    @property
    def takes_queries(self):
        return False


class Slotted(Silent):
    __slots__ = ("top_k",)

    def __init__(self, top_k: int = 7) -> None:
        self.top_k = top_k


@dataclass(frozen=True, slots=True)
class FrozenSlots:
    weight: float = 0.5

    def rerank(self, run, topics, chunks, tools):
        return run


class NoTransformer:
    def index_identity(self):
        return {}

    def build_index(self, chunks, folder, tools):
        pass


class TooFew(Silent):
    def transformer(self, chunks):
        return lambda topics: topics


class Brings:
    def bring(self, topics, chunks, tools):
        return topics, chunks


class Passages:
    info = AnswerMeasureInfo("n", "n")

    def measure_passages(self, topics, evidence, passages, answers, tools):
        return answers


class Both(Passages, AnswerMeasure):
    pass


class Setting(Reranker):
    """Sets what it has in its `__init__`, as no dataclass does."""

    def __init__(self, top_k: int) -> None:
        self.top_k = top_k

    def rerank(self, run, topics, chunks, tools):
        return run


def made(name: str, kind: type, **fields: Any) -> Any:
    return build("group", {"_target_": f"{HERE}.{name}", **fields}, {}, kind)


def slotted() -> FrozenSlots:
    return FrozenSlots()


def silent() -> Silent:
    return Silent()


def test_what_is_not_said_has_the_default_of_the_kind() -> None:
    one, telling = made("Silent", Retriever), made("Telling", Retriever, top_k=4)
    assert isinstance(one, Silent)
    assert isinstance(one, Retriever)
    assert (one.takes_queries, one.top_k, one.space, one.condition) == (True, None, "text", None)
    assert (telling.takes_queries, telling.top_k, telling.space) == (False, 4, "text")
    assert (one.uses, one.index_uses) == (frozenset({"embedder"}), frozenset({"embedder"}))
    assert telling.index_uses == frozenset()
    assert (one.files(), dict(one.retrievers), one.recall(*[None] * 4)) == ({}, {}, 1.0)
    assert not issubclass(Silent, Retriever)  # the user's class itself stays as it is
    assert made("silent", Retriever).takes_queries  # a function may return it


def test_an_adopted_component_has_the_identity_of_its_own_class() -> None:
    telling = made("Telling", Retriever)
    assert identity(telling) == identity(Telling())
    assert {"component": "telling", "version": 3, "top_k": 0}.items() <= identity(telling).items()
    assert identity(made("FrozenSlots", Reranker))["component"] == f"{HERE}.FrozenSlots"


def test_copies_stay_what_they_are() -> None:
    for one in (made("Telling", Retriever, top_k=5), made("FrozenSlots", Reranker, weight=0.1)):
        for other in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one)), replace(one)):
            assert type(other) is type(one)
            assert other == one
        with pytest.raises(
            (FrozenInstanceError, TypeError)
        ):  # the latter by Python 3.11, of a subclass of one with slots
            one.top_k = 3
    assert pickle.loads(pickle.dumps(made("Slotted", Retriever, top_k=9))).top_k == 9


def test_a_class_with_slots_serves_and_an_instance_of_it_from_a_function_is_refused() -> None:
    one = made("Slotted", Retriever)
    assert (one.top_k, one.takes_queries) == (7, True)
    with pytest.raises(ConfigError, match=r"^group: FrozenSlots has __slots__: let it inherit from .*\.Reranker$"):
        made("slotted", Reranker)


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("NoTransformer", Retriever, rf"^group: {HERE}.NoTransformer is no Retriever: it has no transformer$"),
        ("Silent", Reranker, rf"^group: {HERE}.Silent is no Reranker: it has no rerank$"),
        ("Brings", Source, rf"^group: {HERE}.Brings is no Source: it has no files and no load$"),
        (
            "TooFew", Retriever,
            rf"^group: {HERE}.TooFew.transformer must take \(self, chunks, folder, tools\), as Retriever.transformer "
            "does: too many positional arguments$",
        ),
    ],
)  # fmt: skip
def test_what_lacks_and_what_takes_other_arguments_is_named_in_one_line(name: str, kind: type, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        made(name, kind)


def test_what_a_component_can_do_is_seen_in_its_methods() -> None:
    assert isinstance(made("Brings", Retriever), BringsTexts)
    assert not isinstance(made("Silent", Retriever), BringsTexts | SeesEvidence)
    for name in ("Passages", "Both"):  # whether or not it inherits from the kind
        one = made(name, AnswerMeasure)
        assert isinstance(one, MeasuresPassages)
        assert not isinstance(one, MeasuresRanking)
        assert (one.infos, one.needs, one.job_metrics, one.repeat) == ((), frozenset(), (), 0)
        assert one.check_topics(pd.DataFrame()) is None


def test_an_instance_may_set_what_has_a_default_and_a_member_without_one_is_named() -> None:
    assert Setting(4).top_k == 4
    assert heir_of("group", Setting, Reranker) is Setting

    class Nameless(Measure):
        def score(self, evidence, context, ends):
            return ends

    with pytest.raises(AttributeError, match="Nameless has no name"):
        _ = Nameless().name


def test_a_field_without_a_value_stays_required() -> None:
    @dataclass(frozen=True)
    class Deep(Reranker):
        depth: int

        def rerank(self, run, topics, chunks, tools):
            return run

    with pytest.raises(TypeError, match="depth"):
        Deep()  # type: ignore[call-arg]
    assert Deep(3).depth == 3


def test_the_price_of_kept_replies_is_that_of_their_tokens() -> None:
    class Priced(Component):
        def cost(self, usage: Usage) -> float:
            return (usage.prompt_tokens or 0) + 10.0 * (usage.completion_tokens or 0)

    class Free(Component):
        pass

    replies = pd.DataFrame({"prompt_tokens": [1, 2], "completion_tokens": [3, 4]})
    assert (Priced().cost_of_kept(replies), Free().cost_of_kept(replies)) == (73.0, 0.0)


def test_a_class_that_cannot_be_inherited_from_beside_the_kind_is_named() -> None:
    class Own(type):
        pass

    class Strange(metaclass=Own):
        def embed(self, texts, role, scratch):
            return texts

    with pytest.raises(ConfigError, match=r"Strange: metaclass conflict.*let it inherit from .*Embedder"):
        adopted("embedder", Strange(), Embedder)
    assert sys.modules[HERE].Silent is Silent
