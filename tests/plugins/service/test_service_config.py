"""The options `retriever=service` and `llm=service`, composed."""

from __future__ import annotations

import pytest
from hydra import compose, initialize_config_dir
from hydra.errors import ConfigCompositionException

from options import CONF
from ragauge.contract.errors import ConfigError
from ragauge.experiment.setup import config
from ragauge.experiment.stages.checks import check_together
from ragauge.experiment.stages.components import instantiate_components


@pytest.fixture(autouse=True)
def hydra_configs():
    config.register()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        yield


def test_a_service_is_written_once_for_retriever_and_llm() -> None:
    given = [
        "service.url=http://localhost:8000/ask", "service.request={q: '{question}', n: '{n_tokens}'}",
        "service.response.answer=data.out", "service.timeout=9", "service.ledger=calls.db",
    ]  # fmt: skip
    both = instantiate_components(compose("config", overrides=["retriever=service", "llm=service", *given]), "b")
    services = [both.retriever.own_chat, both.llm.own_chat]
    assert services[0] == services[1]
    for asked in services:
        assert asked.request == {"q": "{question}", "n": "{n_tokens}"}
        assert asked.chat["response"]["answer"] == "data.out"
        assert asked.chat["response"]["contexts"] == "contexts"
        assert (asked.timeout, asked.budget_name, asked.ledger) == (9, "b", "calls.db")
    alone = compose("config", overrides=["retriever=none", "llm=service", given[0]])
    assert instantiate_components(alone).llm.own_chat.request == {"question": "{question}"}
    other = "llm.service={url: 'http://localhost:8001/say', request: {q: '{question} {context}'}}"
    composed = compose("config", overrides=["retriever=service", "llm=service", *given, other])
    two = instantiate_components(composed)
    assert two.retriever.own_chat.chat["url"] == "http://localhost:8000/ask"
    assert two.llm.own_chat.chat["url"] == "http://localhost:8001/say"
    assert two.llm.own_chat.asks_with("context")
    assert compose("config").service is None
    with pytest.raises(ConfigCompositionException, match=r"service\.url"):
        compose("config", overrides=[given[0]])
    with pytest.raises(ConfigError, match=r"service\.response\.answer='data\[': no JMESPath"):
        instantiate_components(
            compose("config", overrides=["llm=service", given[0], "service.response.answer='data['"])
        )


def test_an_llm_that_retrieves_by_itself_is_told_beside_another_retriever(
    caplog: pytest.LogCaptureFixture,
) -> None:
    url, context = "service.url=http://localhost:8000/ask", "service.request={q: '{question} {context}'}"
    for more, told in ((["retriever=bm25"], True), (["retriever=none"], False), ([context], False)):
        caplog.clear()
        parts = instantiate_components(compose("config", overrides=["llm=service", url, *more]))
        check_together(parts, {"llm": "service", "retriever": "bm25"})
        assert ("llm=service answers from what it retrieves by itself" in caplog.text) == told


def test_a_service_is_no_arm_of_a_hybrid() -> None:
    given = [
        "retriever=hybrid", "retriever.arms=[sim,service]", "+retriever@retriever.options.service=service",
        "service.url=http://localhost:8000/ask",
    ]  # fmt: skip
    with pytest.raises(ConfigError, match=r"retriever\.options\.service: service brings its own texts"):
        instantiate_components(compose("config", overrides=given))


def test_a_service_takes_no_queries_of_a_rewriter() -> None:
    pytest.importorskip("ragauge.plugins.rewriting")
    given = ["retriever=service", "service.url=http://localhost:8000/ask", "rewriter=prf"]
    parts = instantiate_components(compose("config", overrides=given))
    with pytest.raises(ConfigError, match="retriever=service takes no queries of a rewriter"):
        check_together(parts, {"rewriter": "prf", "retriever": "service"})
