"""Vectors of a server that speaks OpenAI's protocol: their form and order, the cache, money, and what goes wrong."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embedding_server import EmbeddingServer, embedding_server, vectors_of
from processes import run
from ragauge.contract.errors import ConfigError, DataError, GateError, RagaugeError, ServerGoneError
from ragauge.llms.ledger import open_ledger
from ragauge.plugins.embedding_api.embedder import OpenAICompatible
from ragauge.retrieval.embedders import CachedEmbedder, cached
from real_model import DOCUMENTS, write_dataset
from servers import free_port

TEXTS = [f"text {'long ' * n}number {n}" for n in range(7)]


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with embedding_server() as (server, address):
        server.address = address  # type: ignore[attr-defined]
        yield server


def model(server: Any, **settings: Any) -> OpenAICompatible:
    return OpenAICompatible(**{"model": "m", "base_url": server.address, "batch_size": 2, "backoff": 0.01} | settings)


def of_the_job(server: EmbeddingServer) -> list[str]:
    """The embedded texts but those that show whether the server is as before."""
    return [text for text in server.texts if text not in (cached.PROBE, cached.BESIDE)]


def in_a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached, "PROBED", set())


@pytest.mark.parametrize("knows_base64", [True, False])
def test_vectors_come_by_index_at_unit_length_with_the_prefix_of_their_role(
    server: EmbeddingServer, tmp_path: Path, knows_base64: bool
) -> None:
    server.knows_base64 = knows_base64
    embedder = model(server, query_prefix="query: ", passage_prefix="passage: ", dimensions=16, batch_size=3)
    found = embedder.embed(TEXTS, "query", tmp_path)
    expected = vectors_of([f"query: {text}" for text in TEXTS])[:, :16]
    np.testing.assert_allclose(found, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)
    assert found.dtype == np.float32
    assert sorted(len(body["input"]) for body in server.asked) == [1, 3, 3]
    assert all((body["model"], body["dimensions"]) == ("m", 16) for body in server.asked)
    embedder.embed(["a"], "passage", tmp_path)
    assert server.texts[-1] == "passage: a"
    assert embedder.embed([], "query", tmp_path).shape == (0, 16)


def test_a_text_is_embedded_once_in_the_life_of_a_store(
    server: EmbeddingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: dict[str, float] = {}
    embedder = CachedEmbedder(model(server, price=2.0), tmp_path, counted=counted)
    np.testing.assert_allclose(embedder.embed([*TEXTS, TEXTS[0]]), vectors_of([*TEXTS, TEXTS[0]]), atol=1e-6)
    assert sorted(of_the_job(server)) == sorted(TEXTS)
    tokens = sum(len(text.split()) for text in TEXTS)
    assert counted == {
        "embedder_texts": 7, "embedder_tokens": tokens, "embedder_cost_usd": pytest.approx(2e-6 * tokens)
    }  # fmt: skip
    in_a_new_process(monkeypatch)
    assert CachedEmbedder(model(server), tmp_path).missing([*TEXTS, "new"]) == ["new"]
    CachedEmbedder(model(server), tmp_path).embed(TEXTS)
    assert len(of_the_job(server)) == 7
    for other in ({"dimensions": 8}, {"revision": 2}, {"passage_prefix": "p: "}):
        assert CachedEmbedder(model(server, **other), tmp_path).missing(TEXTS) == TEXTS
    server.models = [{"id": "m", "root": "/weights/of/others"}]
    other_port = model(server, base_url=server.address.replace("127.0.0.1", "localhost"))  # type: ignore[attr-defined]
    assert CachedEmbedder(other_port, tmp_path).missing(TEXTS) == TEXTS


def test_what_came_before_an_error_is_kept_and_not_sent_again(server: EmbeddingServer, tmp_path: Path) -> None:
    server.fault = lambda n, body: (400, {}, {"error": {"message": "no"}}) if "number 0" in str(body["input"]) else None
    embedder = CachedEmbedder(model(server, batch_size=1, concurrency=1), tmp_path)
    with pytest.raises(DataError):
        embedder.embed(TEXTS)
    server.fault = lambda n, body: None
    embedder.embed(TEXTS)
    assert sorted(of_the_job(server)) == sorted(TEXTS)


def test_other_weights_under_the_same_name_are_noticed_before_vectors_are_mixed(
    server: EmbeddingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    CachedEmbedder(model(server), tmp_path).embed(TEXTS[:3])
    in_a_new_process(monkeypatch)
    noise = np.random.default_rng(0)
    server.turn = lambda vectors: vectors + noise.normal(0, 1e-4, vectors.shape)
    CachedEmbedder(model(server), tmp_path).embed(TEXTS[3:5])
    in_a_new_process(monkeypatch)
    server.turn = lambda vectors: vectors[:, ::-1]
    with pytest.raises(DataError, match=r"m is served with other weights than before: .* cosine of .*revision=2"):
        CachedEmbedder(model(server), tmp_path).embed(TEXTS)
    CachedEmbedder(model(server), tmp_path).embed(TEXTS[:5])  # what is there needs no server
    found = CachedEmbedder(model(server, revision=2), tmp_path).embed(TEXTS)
    np.testing.assert_allclose(found, vectors_of(TEXTS)[:, ::-1], atol=1e-6)


def test_a_server_whose_vectors_depend_on_the_texts_beside_is_refused(server: EmbeddingServer, tmp_path: Path) -> None:
    server.turn = lambda vectors: vectors[:, :: 1 if len(vectors) == 1 else -1]
    with pytest.raises(DataError, match=r"another vector beside a shorter text than alone .*--kv-unified"):
        CachedEmbedder(model(server), tmp_path).embed(TEXTS)
    assert CachedEmbedder(model(server), tmp_path).missing(TEXTS) == TEXTS


def test_a_busy_or_loading_server_is_asked_again(server: EmbeddingServer, tmp_path: Path) -> None:
    faults = {0: (429, {"Retry-After": "0"}, {}), 1: (500, {}, {}), 2: (503, {}, {"error": "Loading model"}),
              3: (200, {}, {"error": {"message": "odd"}})}  # fmt: skip
    server.fault = lambda n, body: faults.get(n)
    np.testing.assert_allclose(model(server).embed(["a"], "query", tmp_path), vectors_of(["a"]), atol=1e-6)
    assert server.n == 5


def test_a_cap_ends_the_requests(server: EmbeddingServer, tmp_path: Path) -> None:
    embedder = model(server, price=1e6, max_cost_usd=400.0, batch_size=1, ledger=str(tmp_path / "ledger.db"))
    with pytest.raises(GateError, match="max_cost_usd"):
        embedder.embed([f"some {'words ' * 20} {i}" for i in range(100)], "query", tmp_path)
    spent = open_ledger(tmp_path / "ledger.db").spent(embedder.budget_name)
    assert 0 < spent == sum(len(text.split()) for text in server.texts) <= 400


def refused(server: EmbeddingServer, tmp_path: Path, **settings: Any) -> str:
    """The message of the error that ends a request for these texts."""
    with pytest.raises(RagaugeError) as error:
        model(server, **settings).embed(["a", "b" * 3000], "query", tmp_path)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda body: {**body, "data": body["data"][1:]}, "gives 1 vectors for 2 texts"),
        (lambda body: {**body, "data": [{**one, "index": 5} for one in body["data"]]}, "whose index is not 0 to 1"),
        (lambda body: {**body, "data": [{**one, "embedding": [0.0, 0.0]} for one in body["data"]]},
         "gives a vector of zeros for the text that begins 'a'"),
        (lambda body: {**body, "data": [{**one, "embedding": [1.0, float("nan")]} for one in body["data"]]}, "NaN"),
        (lambda body: {**body, "data": [{**one, "embedding": None} for one in body["data"]]}, "neither a list of numb"),
        (lambda body: {**body, "data": [{**one, "embedding": [1.0] * (one["index"] + 1)} for one in body["data"]]},
         "vectors of 1 and 2 numbers in one reply"),
    ],
)  # fmt: skip
def test_what_is_no_vector_is_one_line(server: EmbeddingServer, tmp_path: Path, edit: Any, said: str) -> None:
    server.edit = edit
    assert said in refused(server, tmp_path)
    assert server.n == 1


def test_a_server_that_ignores_the_dimensions_is_one_line(server: EmbeddingServer, tmp_path: Path) -> None:
    server.edit = lambda body: {**body, "data": [{**one, "embedding": [1.0, 2.0]} for one in body["data"]]}
    assert "gives 2 dimensions where embedder.dimensions=8 asks for others" in refused(server, tmp_path, dimensions=8)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": {"message": "maximum context length is 8192 tokens"}}),  # OpenAI, vLLM
        (413, {"error": "Input validation error: `inputs` must have less than 512 tokens. Given: 600"}),  # TEI
        (500, {"error": {"message": "input (600 tokens) is too large to process."}}),  # llama.cpp
    ],
)
def test_a_text_that_is_too_long_is_named_with_what_helps(
    server: EmbeddingServer, tmp_path: Path, status: int, body: Any
) -> None:
    server.fault = lambda n, asked: (status, {}, body)
    said = refused(server, tmp_path)
    assert re.search(rf"2 texts, the longest of 3,000 characters, which begins 'bbb.*', with {status}: .* tokens", said)
    assert "chunker.size=200" in said
    assert server.n == 1


def test_another_refusal_is_told_without_that_advice(server: EmbeddingServer, tmp_path: Path) -> None:
    server.fault = lambda n, asked: (400, {}, {"error": {"message": "This model takes no dimensions."}})
    assert refused(server, tmp_path).endswith("with 400: This model takes no dimensions")


def test_a_wrong_key_names_its_variable(
    server: EmbeddingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-hush-0123456789abcdef")
    server.fault = lambda n, body: (401, {}, {"error": {"message": "Incorrect key sk-hush-0123456789abcdef"}})
    said = refused(server, tmp_path, api_key_env="MY_KEY")
    assert "refuses with 401" in said
    assert said.endswith("the key is read from MY_KEY")
    assert "hush" not in said
    monkeypatch.delenv("MY_KEY")
    with pytest.raises(ConfigError, match="the environment variable MY_KEY is not set"):
        OpenAICompatible(model="m", api_key_env="MY_KEY").embed(["a"], "query", tmp_path)


def test_the_key_is_sent(server: EmbeddingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-0123456789abcdef")
    model(server, api_key_env="MY_KEY").embed(["a"], "query", tmp_path)
    assert server.headers[0]["Authorization"] == "Bearer sk-0123456789abcdef"


def test_models_that_the_server_has_are_listed_where_none_or_another_is_named(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"embedder\.model is not given: .* lists: m$"):
        model(server, model=None)
    with pytest.raises(ConfigError, match=r"embedder\.model: other is none of the models at .*: m$"):
        model(server, model="other").embed(["a"], "query", tmp_path)


def test_a_dead_port_ends_in_seconds(tmp_path: Path) -> None:
    began = time.monotonic()
    dead = OpenAICompatible(model="m", base_url=f"http://127.0.0.1:{free_port()}/v1")
    with pytest.raises(ServerGoneError, match="nothing listens"):
        dead.embed(["a"], "query", tmp_path)
    assert time.monotonic() - began < 15


def test_settings_out_of_range_are_named() -> None:
    for settings, said in (
        ({"batch_size": 0}, r"embedder\.batch_size=0"), ({"dimensions": "many"}, r"embedder\.dimensions"),
        ({"price": -1}, r"embedder\.price"), ({"timeout": 0}, r"embedder\.timeout"),
        ({"max_cost_usd": 1.0}, "needs price"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=said):
            OpenAICompatible(**{"model": "m", **settings})


@pytest.mark.slow
def test_a_dry_run_embeds_nothing_and_says_how_many_texts_and_tokens(server: Any, tmp_path: Path) -> None:
    job = ["retriever=sim", "llm.by=words", "embedder=openai_compatible", "embedder.model=m", "embedder.price=2000"]
    done = run(tmp_path, *write_dataset(tmp_path), *job, f"embedder.base_url={server.address}", "dry_run=true")
    tokens = sum(-(-len(text) // 4) for text in DOCUMENTS.values())
    assert done.returncode == 0, done.stderr
    assert f"stage index would embed 3 texts, about {tokens} tokens, {tokens * 0.002:.2f} USD" in done.stdout
    assert server.texts == []
