"""What a component may say of itself: it need not inherit from anything, and what it does not say has a default."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import pytest

from ragauge.contract import offers
from ragauge.contract.offers import AnswerMeasureOffers, ChatOffers, RetrieverOffers, offered, used_by_index


class Silent:
    uses: ClassVar[frozenset[str]] = frozenset({"embedder"})


@dataclass(frozen=True)
class Telling:
    uses: ClassVar[frozenset[str]] = frozenset({"embedder", "chat"})
    index_uses: ClassVar[frozenset[str]] = frozenset()
    top_k: int = 0

    @property
    def takes_queries(self) -> bool:
        return False


def test_what_is_not_said_has_the_default_of_the_protocol() -> None:
    silent, telling = (offered(one, RetrieverOffers) for one in (Silent(), Telling()))
    assert (silent.takes_queries, silent.top_k, silent.space, silent.condition) == (True, None, "text", None)
    assert (telling.takes_queries, telling.top_k, telling.space) == (False, 0, "text")
    assert silent.uses == frozenset({"embedder"})
    assert used_by_index(Silent()) == frozenset({"embedder"})  # type: ignore[arg-type]
    assert used_by_index(Telling()) == frozenset()  # type: ignore[arg-type]


def test_an_answer_measure_that_says_nothing_needs_repeats_and_leaves_out_nothing() -> None:
    silent = offered(Silent(), AnswerMeasureOffers)
    assert (silent.infos, silent.needs, silent.job_metrics, silent.repeat) == ((), frozenset(), (), 0)
    assert (silent.optional, silent.sees_longest, silent.may_lack_claims) == (False, False, False)


def test_a_name_that_no_protocol_has_is_an_error_even_where_the_component_has_it() -> None:
    telling = Telling()
    object.__setattr__(telling, "tekes_queries", True)
    with pytest.raises(AttributeError, match="tekes_queries"):
        _ = offered(telling, RetrieverOffers).tekes_queries  # type: ignore[attr-defined]


def test_methods_have_defaults_that_see_the_component() -> None:
    class Priced:
        def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
            return prompt_tokens + 10.0 * completion_tokens

    replies = pd.DataFrame({"prompt_tokens": [1, 2], "completion_tokens": [3, 4]})
    assert offered(Priced(), ChatOffers).cost_of_kept(replies) == 73.0
    assert offered(Silent(), ChatOffers).cost_of_kept(replies) == 0.0
    assert offered(Silent(), AnswerMeasureOffers).check_topics(replies) is None


@pytest.mark.parametrize("of", [v for k, v in vars(offers).items() if k.endswith("Offers") and isinstance(v, type)])
def test_every_member_has_a_default_and_is_described(of: type) -> None:
    own = [name for name in inspect.get_annotations(of) if not name.startswith("_")]
    assert all(name in vars(of) for name in own)
    words = str(of.__doc__).replace("`", " ").replace(":", " ").split()
    named = [name for name in own if name in words]
    assert named == own or len(own) == 1
