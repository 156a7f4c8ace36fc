"""What tokens cost, by four prices."""

import re
from typing import Any

import pandas as pd
import pytest

from ragauge.answering.chat import ChatGenerator
from ragauge.contract.errors import ConfigError
from ragauge.contract.usage import Usage, usage_of
from ragauge.llms.prices import Price

CHAT = {"_target_": "langchain_openai.ChatOpenAI", "model": "gpt-4o-mini", "max_tokens": 100}
FOUR = {"prompt": 3, "cached": 0.3, "written": 3.75, "completion": 15}


def llm(**fields: Any) -> ChatGenerator:
    return ChatGenerator(chat=CHAT, **fields)


def test_each_token_of_a_prompt_has_one_of_three_prices() -> None:
    usage = Usage(1000, 10, cached_tokens=600, written_tokens=300)
    assert llm(price=FOUR).cost(usage) == pytest.approx((100 * 3 + 600 * 0.3 + 300 * 3.75 + 10 * 15) / 1e6)
    assert llm(price={"prompt": 3, "completion": 15}).cost(usage) == pytest.approx((1000 * 3 + 10 * 15) / 1e6)
    assert llm(price={**FOUR, "written": 0}).cost(usage) == pytest.approx((100 * 3 + 600 * 0.3 + 10 * 15) / 1e6)
    assert llm(price=FOUR).cost(Usage(1000, 10)) == pytest.approx((1000 * 3 + 10 * 15) / 1e6)
    assert llm().cost(usage) == 0


def test_a_batch_costs_its_share_at_every_price() -> None:
    batch = llm(price=FOUR, submit="batch", submit_price_factor=0.5)
    usage = Usage(1000, 10, cached_tokens=600, written_tokens=300)
    assert batch.cost(usage) == pytest.approx(llm(price=FOUR).cost(usage) / 2)
    assert batch.cost_bound("a prompt") == pytest.approx(llm(price=FOUR).cost_bound("a prompt") / 2)


@pytest.mark.parametrize(
    ("price", "dearest"), [(FOUR, 3.75), ({**FOUR, "written": 0.0}, 3), ({**FOUR, "cached": 9}, 9)]
)
def test_the_most_that_a_call_can_cost_is_all_of_its_prompt_at_the_dearest_price(price: Any, dearest: float) -> None:
    assert llm(price=price).cost_bound("ten tokens") == pytest.approx(((10 + 64) * dearest + 100 * 15) / 1e6)
    unknown = llm(price=price).charge("ten tokens", None, None)
    assert (unknown.cost_usd, unknown.usage_unknown) == (pytest.approx(((10 + 64) * dearest + 100 * 15) / 1e6), 1)


def test_kept_replies_cost_what_their_tokens_did() -> None:
    rows = pd.DataFrame(
        {"prompt_tokens": [1000, 500], "completion_tokens": [10, 0], "cached_tokens": [600, float("nan")]}
    )
    assert usage_of(rows) == Usage(1500, 10, cached_tokens=600)
    assert llm(price=FOUR).cost_of_kept(rows) == pytest.approx((900 * 3 + 600 * 0.3 + 10 * 15) / 1e6)


@pytest.mark.parametrize(
    "price",
    [{"prompt": 1}, {"prompt": 1, "completion": 2, "read": 1}, {"prompt": 1, "completion": -1}, "dear", 3, [1, 2]],
)
def test_other_prices_are_refused_in_one_line_that_names_those_allowed(price: Any) -> None:
    with pytest.raises(ConfigError, match=r"^price: .* is not \{prompt: \.\.\., completion: \.\.\.\}, with cached and"):
        llm(price=price)


# --- price=auto -------------------------------------------------------------------------------------------


def test_auto_takes_the_four_prices_of_the_table_and_names_it() -> None:
    pytest.importorskip("genai_prices")
    mini = llm(price="auto").prices
    assert (mini.prompt, mini.cached, mini.written, mini.completion) == (0.15, 0.075, 0.15, 0.6)
    told = "prompt 0.15, cached 0.075, written 0.15, completion 0.6 USD per million tokens"
    assert re.fullmatch(rf"{told} \(genai-prices [\d.]+, openai/gpt-4o-mini, of \d{{4}}-\d\d-\d\d\)", str(mini))
    claude = Price.of("auto", "claude-opus-4-5", "https://api.anthropic.com")
    assert (claude.prompt, claude.cached, claude.written, claude.completion) == (5, 0.5, 6.25, 25)


@pytest.mark.parametrize(
    ("model", "address", "told"),
    [
        ("gemini-2.5-pro", None, "gemini-2.5-pro has other prices for prompts above 200,000 tokens; below them it is "
         "price={prompt: 1.25, completion: 10, cached: 0.125}"),
        ("of-our-own", None, "no price of of-our-own is known; give price: {prompt"),
        ("gpt-4o-mini", "http://127.0.0.1:8000/v1", "no price of gpt-4o-mini at http://127.0.0.1:8000/v1 is known"),
    ],
)  # fmt: skip
def test_auto_ends_where_the_table_has_no_single_price(model: str, address: str | None, told: str) -> None:
    pytest.importorskip("genai_prices")
    with pytest.raises(ConfigError, match=re.escape(f"price=auto: {told}")):
        Price.of("auto", model, address)
