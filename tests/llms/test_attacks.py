"""A chat server that attacks: what it attacks has a text or an error, and nothing else is harmed."""

from __future__ import annotations

import pytest

from attack_server import ATTACKS, STALLING, AttackServer
from ragauge.llms.chat import ChatLLM
from ragauge.store import Store

# Replies with a text that can be read are answers, whatever is odd about them.
ANSWERS = {
    "huge_usage", "finish_reason_unknown", "two_choices", "duplicate_keys", "megabytes", "strange_characters",
}  # fmt: skip
# What these are is a matter of what their usage says, and of what the client makes of it.
EITHER = {
    "no_usage", "null_usage", "negative_usage", "string_usage", "fractional_usage", "not_a_number",
    "number_for_text", "finish_reason_null",
}  # fmt: skip


def model(server: AttackServer, timeout: float) -> ChatLLM:
    chat = {"_target_": "langchain_openai.ChatOpenAI", "model": "tiny", "base_url": f"{server.url}/v1"}
    price = {"prompt": 1.0, "completion": 1.0}
    return ChatLLM(chat=chat, api_key_env="NO_KEY", timeout=timeout, retries=1, backoff=0.01, price=price)


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attacked_request_has_a_text_or_an_error_and_the_others_their_replies(store: Store, attack: str) -> None:
    with AttackServer(faults=lambda prompt, n: attack if prompt == "attacked" else None) as server:
        (before,) = model(server, 60).ask(["before"], store, "answers")
        timeout = 6 if attack in STALLING else 60  # long enough for a busy machine to have sent the request
        (attacked,) = model(server, timeout).ask(["attacked"], store, "answers")
        (after,) = model(server, 60).ask(["after"], store, "answers")
        assert server.calls["attacked"] <= 2 or attack == "redirect_loop"
    assert (before.text, after.text) == ("reply to before", "reply to after")
    assert (attacked.text is None) == (attacked.error is not None)
    if attack not in EITHER:
        assert (attacked.text is not None) == (attack in ANSWERS), attacked
    assert attacked.cost_usd >= 0 or attack in EITHER


def test_every_attack_says_in_a_line_what_it_does() -> None:
    for name, attack in ATTACKS.items():
        assert attack.__doc__ is not None, name
        assert "\n" not in attack.__doc__, name
