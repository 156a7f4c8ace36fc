"""`retriever=milvus`: over Milvus Lite, over a server on this machine's loopback, and over servers that lie.

The server is Milvus Lite's own behind an address; it can be told to want a token and to answer nonsense.
"""

from __future__ import annotations

import base64
import dataclasses
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hash_embedder import HashEmbedder
from ragauge.contract import frames
from ragauge.contract.component import Embedder, Tools
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import identity
from ragauge.contract.option import values_of
from ragauge.plugins.milvus import _clients
from ragauge.plugins.milvus.retriever import Milvus
from ragauge.retrieval.retrievers import Sim
from ragauge.store import Store

pytest.importorskip("milvus_lite", reason="pip install 'ragauge[milvus]'")

CHUNKS = pd.DataFrame(
    {
        "docno": ["e", "d", "c", "b", "a"],
        "text": ["apple pear plum", "apple pear", "train boat", "train boat plane", "apple pear"],
    },
    dtype="str",
)
TOPICS = pd.DataFrame({"qid": ["q1", "q2", "q3"], "query": ["apple pear", "plane", "?!"]}, dtype="str")
NEAR = "http://127.0.0.1:{}"


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    _clients.close_all()


def made(retriever: Milvus, folder: Path, tools: Tools, chunks: pd.DataFrame = CHUNKS) -> Callable[..., Any]:
    folder.mkdir()
    retriever.build_index(chunks, folder, tools)
    return retriever.transformer(chunks, folder, tools)


@contextmanager
def server(folder: Path, token: str | None = None, answer: Callable[[Any], Any] | None = None) -> Iterator[str]:
    """The address of a Milvus on a port of the loopback.

    token: what it wants to be told. answer: what it makes of the results of a search before it sends them.
    """
    import grpc
    from milvus_lite.adapter.grpc.servicer import MilvusServicer
    from milvus_lite.db import MilvusLite
    from pymilvus.grpc_gen import milvus_pb2_grpc

    class Doorkeeper(grpc.ServerInterceptor):
        """Turns away who has not the token, in the words of a Milvus server."""

        def intercept_service(self, continuation: Any, call: Any) -> Any:
            known = base64.b64encode(str(token).encode()).decode()
            if token is None or dict(call.invocation_metadata).get("authorization") == known:
                return continuation(call)

            def refuse(request: Any, context: Any) -> None:
                context.abort(grpc.StatusCode.UNAUTHENTICATED, "auth check failure, please check api key")

            return grpc.unary_unary_rpc_method_handler(refuse)

    class Servicer(MilvusServicer):
        def Search(self, request: Any, context: Any) -> Any:
            told = super().Search(request, context)
            return told if answer is None else answer(told)

    database = MilvusLite(str(folder))
    running = grpc.server(futures.ThreadPoolExecutor(4), interceptors=[Doorkeeper()])
    milvus_pb2_grpc.add_MilvusServiceServicer_to_server(Servicer(database), running)
    port = running.add_insecure_port("127.0.0.1:0")
    running.start()
    try:
        yield NEAR.format(port)
    finally:
        _clients.close_all()
        running.stop(0).wait()
        database.close()


def collections(uri: str) -> list[str]:
    from pymilvus import MilvusClient

    client = MilvusClient(uri, dedicated=True)
    try:
        return sorted(client.list_collections())
    finally:
        client.close()


def test_dense_is_the_run_of_sim(tools: Tools, tmp_path: Path) -> None:
    run = made(Milvus(top_k=4), tmp_path / "milvus", tools)(TOPICS)
    frames.check("run", run)
    (tmp_path / "sim").mkdir()
    Sim().build_index(CHUNKS, tmp_path / "sim", tools)
    exact = Sim(top_k=4).transformer(CHUNKS, tmp_path / "sim", tools)(TOPICS)
    pd.testing.assert_frame_equal(run.drop(columns="score"), exact.drop(columns="score"))
    np.testing.assert_allclose(run["score"], exact["score"], atol=1e-6)
    assert run["docno"].tolist()[:3] == ["a", "d", "e"]  # the first two are equal


def test_bm25_is_the_formula(tools: Tools, tmp_path: Path) -> None:
    k1, b = 0.5, 0.25
    run = made(Milvus(mode="bm25", k1=k1, b=b), tmp_path / "milvus", tools)(TOPICS)
    assert run["docno"].tolist() == ["a", "d", "e", "b"]

    def score(df: int, length: int) -> float:
        return float(np.log(1 + (5 - df + 0.5) / (df + 0.5)) * (k1 + 1) / (1 + k1 * (1 - b + b * length / (12 / 5))))

    expected = [2 * score(3, 2), 2 * score(3, 2), 2 * score(3, 3), score(1, 3)]
    np.testing.assert_allclose(run["score"], expected, rtol=1e-5)
    assert run["rank"].tolist() == [0, 1, 2, 0]


def test_hybrid_is_the_sum_of_reciprocal_ranks_of_the_first_hits_of_both(tools: Tools, tmp_path: Path) -> None:
    chunks = CHUNKS.iloc[:4]  # no two texts are equal, nor equally near or likely
    topics = pd.DataFrame({"qid": ["q"], "query": ["apple plum plane"]}, dtype="str")
    tools = dataclasses.replace(tools, embedder=HashEmbedder(1024))
    lists = [made(Milvus(mode=mode), tmp_path / mode, tools, chunks)(topics) for mode in ("dense", "bm25")]
    for depth in (1, 2, 100):
        fused: dict[str, float] = {}
        for run in lists:
            for place, docno in enumerate(run["docno"][:depth], 1):
                fused[docno] = fused.get(docno, 0) + 1 / (10 + place)
        expected = sorted(fused.items(), key=lambda one: (-one[1], one[0]))
        top_k = min(depth, 30)
        hybrid = Milvus(mode="hybrid", rrf_constant=10, depth=depth, top_k=top_k)
        run = made(hybrid, tmp_path / f"hybrid {depth}", tools, chunks)(topics)
        assert run["docno"].tolist() == [docno for docno, _ in expected[:top_k]]
        np.testing.assert_allclose(run["score"], [score for _, score in expected[:top_k]], rtol=1e-6)


def test_of_more_topics_than_one_request_takes_each_has_its_own_hits(tools: Tools, tmp_path: Path) -> None:
    texts = ["apple pear plum", "?!", "train boat", "train boat plane"]
    topics = pd.DataFrame({"qid": [f"q{i:03}" for i in range(402)], "query": (texts * 101)[:402]}, dtype="str")
    run = made(Milvus(top_k=1), tmp_path / "milvus", tools)(topics)
    assert run["docno"].tolist() == (["e", "c", "b"] * 101)[:301]
    assert run["qid"].tolist() == [
        qid for qid, query in zip(topics["qid"], topics["query"], strict=True) if query != "?!"
    ]


def test_milvus_lite_listens_on_no_port(tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ports() -> set[str]:
        lines = [
            line.split()
            for name in ("/proc/net/tcp", "/proc/net/tcp6")
            if Path(name).exists()
            for line in Path(name).read_text().splitlines()[1:]
        ]
        own = {
            link.readlink().name
            for link in Path("/proc/self/fd").iterdir()
            if link.is_symlink() and str(link.readlink()).startswith("socket:")
        }
        return {f[1] for f in lines if f[3] == "0A" and f"socket:[{f[9]}]" in own}

    before = ports()
    transformer = made(Milvus(), tmp_path / "milvus", tools)
    assert len(transformer(TOPICS)) > 0
    assert ports() == before
    with socket.create_server(("127.0.0.1", 0)):  # the look at ports sees one
        assert ports() != before


def test_long_work_of_milvus_lite_is_not_cut_off_and_asked_for_again(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import grpc

    opened, real = [], grpc.insecure_channel
    monkeypatch.setattr(grpc, "insecure_channel", lambda to, options: opened.append(dict(options)) or real(to, options))
    made(Milvus(), tmp_path / "milvus", tools)(TOPICS)
    # gRPC's servers allow a ping in five minutes and hang up at the third that comes earlier.
    assert opened
    assert all(options["grpc.keepalive_time_ms"] >= 300_000 for options in opened)


def test_the_index_folder_stays_as_it_was_made(tools: Tools, tmp_path: Path) -> None:
    transformer = made(Milvus(mode="hybrid"), tmp_path / "milvus", tools)
    files = [file for file in sorted((tmp_path / "milvus").rglob("*")) if file.is_file()]
    before = {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in files}
    transformer(TOPICS)
    _clients.close_all()
    left = [file for file in sorted((tmp_path / "milvus").rglob("*")) if file.is_file()]
    assert {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in left} == before


def test_vectors_of_a_rewriter_are_searched_with(tools: Tools, tmp_path: Path) -> None:
    transformer = made(Milvus(top_k=2), tmp_path / "milvus", tools)
    vectors = tools.embedder.embed(["train boat", "apple pear plum"])
    run = transformer(TOPICS.iloc[:2].assign(query_vec=list(vectors)))
    assert run.loc[run["rank"] == 0, "docno"].tolist() == ["c", "e"]
    assert "query_vec" not in run


def test_no_chunks_no_hits(tools: Tools, tmp_path: Path) -> None:
    made(Milvus(), tmp_path / "all", tools)
    assert (
        Milvus().recall(TOPICS[2:], CHUNKS, tmp_path / "all", tools) == 1
    )  # a question without words is missed by none
    assert made(Milvus(mode="hybrid"), tmp_path / "milvus", tools, CHUNKS.iloc[:0])(TOPICS).empty


def test_an_index_that_looks_at_all_has_recall_1_and_one_cell_of_many_less(tools: Tools, tmp_path: Path) -> None:
    words = [f"w{i}" for i in range(200)]
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(words, 6)) for _ in range(400)]
    chunks = pd.DataFrame({"docno": [f"d{i:03}" for i in range(400)], "text": texts}, dtype="str")
    topics = pd.DataFrame({"qid": [f"q{i}" for i in range(20)], "query": texts[:20]}, dtype="str")
    common = {"index": "IVF_FLAT", "index_params": {"nlist": 10}}
    for nprobe, recall in ((10, 1.0), (1, 0.95)):
        near = Milvus(**common, search_params={"nprobe": nprobe})  # type: ignore[arg-type]
        assert near.approximate
        made(near, tmp_path / f"of-{nprobe}", tools, chunks)
        found = near.recall(topics, chunks, tmp_path / f"of-{nprobe}", tools)
        assert found == 1 if recall == 1 else found < recall
        # By hand: how many of the ten nearest of a topic are among the first ten that it finds.
        run = dataclasses.replace(near, top_k=10).transformer(chunks, tmp_path / f"of-{nprobe}", tools)(topics)
        vectors, asked = tools.embedder.embed(texts), tools.embedder.embed(texts[:20], "query")
        shares = []
        for number, qid in enumerate(topics["qid"]):
            exact = np.lexsort((chunks["docno"], -(vectors @ asked[number]).round(6)))[:10]
            shares.append(len(set(chunks["docno"].iloc[exact]) & set(run.loc[run["qid"] == qid, "docno"])) / 10)
        assert found == pytest.approx(np.mean(shares), abs=0.01)  # ties are its own
    assert not Milvus().approximate
    assert not Milvus(mode="bm25", index="HNSW").approximate


def test_a_server_keeps_one_collection_for_equal_chunks(tools: Tools, tmp_path: Path) -> None:
    with server(tmp_path / "data") as uri:
        run = made(Milvus(uri=uri), tmp_path / "a", tools)(TOPICS)
        assert made(Milvus(uri=uri), tmp_path / "b", tools)(TOPICS).equals(run)
        assert len(collections(uri)) == 1
        changed = CHUNKS.assign(text=["other words", *CHUNKS["text"].iloc[1:]])
        other = made(Milvus(uri=uri), tmp_path / "c", tools, changed)(TOPICS)
        assert not other.equals(run)
        assert len(collections(uri)) == 2
        assert all("draft" not in name for name in collections(uri))
        lite = made(Milvus(), tmp_path / "lite", tools)(TOPICS)
        pd.testing.assert_frame_equal(lite, run)


def test_a_collection_that_the_server_lost_is_made_again(tools: Tools, tmp_path: Path) -> None:
    from pymilvus import MilvusClient

    with server(tmp_path / "data") as uri:
        run = made(Milvus(uri=uri), tmp_path / "index", tools)(TOPICS)
        _clients.close_all()
        client = MilvusClient(uri, dedicated=True)
        client.drop_collection(collections(uri)[0])
        again = Milvus(uri=uri).transformer(CHUNKS, tmp_path / "index", tools)(TOPICS)
        assert again.equals(run)
        _clients.close_all()
        client.load_collection(collections(uri)[0])
        client.delete(collections(uri)[0], ids=[0])
        with pytest.raises(DataError, match=r"holds 4 rows for 5 chunks; drop it"):
            Milvus(uri=uri).transformer(CHUNKS, tmp_path / "index", tools)(TOPICS)
        client.close()


def test_a_maker_that_is_stopped_leaves_no_collection(tools: Tools, tmp_path: Path) -> None:
    class Stopped(Embedder):
        """An embedder that fails in the middle of the corpus."""

        asked = 0

        def identity(self) -> dict[str, Any]:
            return {"component": "stopped"}

        def embed(self, texts: Any, role: str = "passage", scratch: Any = None) -> np.ndarray:
            self.asked += 1
            if self.asked > 1:
                raise KeyboardInterrupt
            return tools.embedder.embed(texts)

    import ragauge.plugins.milvus._collection as collection

    with server(tmp_path / "data") as uri, pytest.MonkeyPatch.context() as patch:
        patch.setattr(collection, "_EMBEDDED", 2)
        with pytest.raises(KeyboardInterrupt):
            made(Milvus(uri=uri), tmp_path / "a", Tools(tools.store, Stopped(), tools.tokenizer))
        assert collections(uri) == []


def test_two_stores_that_fill_a_server_at_once_leave_one_whole_collection(tools: Tools, tmp_path: Path) -> None:
    class Overtaken(HashEmbedder):
        """While it embeds, another store makes the same collection."""

        def embed(self, texts: Any, role: Any = "passage", scratch: Any = None) -> np.ndarray:
            if not (tmp_path / "b").exists():
                other = dataclasses.replace(tools, store=Store(tmp_path / "other"), embedder=self)
                made(Milvus(uri=uri), tmp_path / "b", other)
            return super().embed(texts, role, scratch)

    with server(tmp_path / "data") as uri:
        own = dataclasses.replace(tools, embedder=Overtaken())
        run = made(Milvus(uri=uri), tmp_path / "a", own)(TOPICS)
        assert len(run) == 10
        assert len(collections(uri)) == 1
        assert (tmp_path / "b" / "milvus.json").read_text() == (tmp_path / "a" / "milvus.json").read_text()


def test_a_token_opens_a_server_that_wants_one(tools: Tools, tmp_path: Path) -> None:
    with server(tmp_path / "data", token="root:Milvus-4711") as uri:
        assert len(made(Milvus(uri=uri, token="root:Milvus-4711"), tmp_path / "a", tools)(TOPICS)) > 0
        for i, token in enumerate(("root:wrong-0815", None)):
            with pytest.raises(ConfigError) as failed:
                made(Milvus(uri=uri, token=token), tmp_path / f"b{i}", tools)
            told = str(failed.value)
            assert "the server does not take the token" in told
            assert "\n" not in told
            assert "0815" not in told


def test_nobody_at_the_address_is_one_line(tools: Tools, tmp_path: Path, caplog: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(ConfigError) as failed:
        made(Milvus(uri=NEAR.format(port), timeout=5), tmp_path / "a", tools)
    assert str(failed.value).startswith(f"retriever.uri=http://127.0.0.1:{port}: no Milvus answers (")
    assert "\n" not in str(failed.value)
    assert caplog.text == ""


def test_a_server_that_goes_away_is_one_line(tools: Tools, tmp_path: Path) -> None:
    with server(tmp_path / "data") as uri:
        transformer = made(Milvus(uri=uri, timeout=3), tmp_path / "a", tools)
        transformer(TOPICS)
    with pytest.raises(ConfigError, match=r"retriever\.uri=http://127\.0\.0\.1:\d+: "):
        transformer(TOPICS)


def _late(told: Any) -> Any:
    time.sleep(3)
    return told


def test_a_temporary_folder_whose_path_is_too_long_for_a_socket_is_told(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Behind it come a slash, "ragauge-milvus-", eight letters and "/socket": 31 characters.
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        for length, fits in ((69, True), (70, False)):
            folder = Path(short) / ("x" * (length - len(short) - 1))
            folder.mkdir()
            monkeypatch.setattr("tempfile.tempdir", str(folder))
            if fits:
                assert len(made(Milvus(), tmp_path / "fits", tools)(TOPICS)) > 0
                continue
            with pytest.raises(ConfigError, match=rf"TMPDIR={folder}: Milvus Lite wants a shorter path"):
                made(Milvus(), tmp_path / "long", tools)


class InWindows(HashEmbedder):
    """An embedder with a vector for each window of a text."""

    def windows(self, texts: Any) -> list[list[str]]:
        return [[text] for text in texts]


def test_an_embedder_with_a_vector_for_each_window_is_refused(tools: Tools, tmp_path: Path) -> None:
    in_windows = dataclasses.replace(tools, embedder=InWindows())
    with pytest.raises(ConfigError, match="retriever=milvus keeps one vector a chunk"):
        made(Milvus(), tmp_path / "a", in_windows)


def test_a_server_that_takes_too_long_is_told_with_the_setting(tools: Tools, tmp_path: Path) -> None:
    with server(tmp_path / "data", answer=_late) as uri:
        transformer = made(Milvus(uri=uri), tmp_path / "a", tools)
        _clients.close_all()
        hurried = Milvus(uri=uri, timeout=1).transformer(CHUNKS, tmp_path / "a", tools)
        with pytest.raises(ConfigError, match=r"no answer within retriever\.timeout"):
            hurried(TOPICS)
        assert len(transformer(TOPICS)) > 0


def test_milvus_lite_is_given_the_time_that_its_text_search_takes(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from milvus_lite.adapter.grpc.servicer import MilvusServicer

    real = MilvusServicer.Search
    monkeypatch.setattr(MilvusServicer, "Search", lambda *given: _late(real(*given)))
    transformer = made(Milvus(mode="bm25", timeout=2), tmp_path / "a", tools)
    assert len(transformer(TOPICS)) > 0


def _fewer(told: Any) -> Any:
    told.results.num_queries = 1
    del told.results.topks[1:]
    return told


def _outside(told: Any) -> Any:
    told.results.ids.int_id.data[0] = 99
    return told


def _twice(told: Any) -> Any:
    told.results.ids.int_id.data[1] = told.results.ids.int_id.data[0]
    return told


def _no_number(told: Any) -> Any:
    told.results.scores[0] = float("nan")
    return told


@pytest.mark.parametrize(
    ("lie", "told"),
    [
        (_fewer, "1 answers came for 2 queries"),
        (_outside, "the hit of id 99 is of no chunk"),
        (_twice, "came twice for a query"),
        (_no_number, "has no finite score"),
    ],
)
def test_a_server_that_lies_is_told(tools: Tools, tmp_path: Path, lie: Any, told: str) -> None:
    with server(tmp_path / "data", answer=lie) as uri:
        transformer = made(Milvus(uri=uri), tmp_path / "a", tools)
        with pytest.raises(DataError, match=told):
            transformer(TOPICS)


def test_an_index_that_the_server_does_not_know_is_one_line(tools: Tools, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"retriever\.uri=null: .*QUANTUM"):
        made(Milvus(index="QUANTUM"), tmp_path / "a", tools)


def test_a_text_too_long_for_a_text_search_is_told_by_its_docno(tools: Tools, tmp_path: Path) -> None:
    longest = CHUNKS.assign(text=["é" * 32_767 + "a", *CHUNKS["text"].iloc[1:]])
    assert len(made(Milvus(mode="bm25"), tmp_path / "c", tools, longest)(TOPICS)) > 0
    long = CHUNKS.assign(text=["é" * 32_768, *CHUNKS["text"].iloc[1:]])
    with pytest.raises(DataError, match=r"chunk 'e' has 65,536 bytes; .* at most 65,535"):
        made(Milvus(mode="bm25"), tmp_path / "a", tools, long)
    assert len(made(Milvus(), tmp_path / "b", tools, long)(TOPICS)) > 0


def test_an_index_of_other_chunks_is_told(tools: Tools, tmp_path: Path) -> None:
    made(Milvus(), tmp_path / "a", tools)
    with pytest.raises(DataError, match="made of 5 chunks, not of 4"):
        Milvus().transformer(CHUNKS.iloc[:4], tmp_path / "a", tools)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"uri": "milvus.db"}, r"retriever\.uri='milvus\.db': allowed are null"),
        ({"uri": "http://user:secret-99@host:19530"}, r"retriever\.uri: holds a user or password"),
        ({"mode": "sparse"}, r"retriever\.mode='sparse': allowed are dense, bm25, hybrid"),
        ({"top_k": 20_000}, r"retriever\.top_k=20000"),
        ({"mode": "hybrid", "depth": 10}, r"retriever\.depth=10"),
        ({"mode": "bm25", "analyzer": {"type": "english"}}, r"retriever\.analyzer=.*\{type: standard\}"),
        ({"search_params": "ef=3"}, r"retriever\.search_params='ef=3'"),
        ({"b": 2}, r"retriever\.b=2"),
        ({"timeout": 0}, r"retriever\.timeout=0"),
        ({"uri": "http://"}, r"retriever\.uri='http://'"),
        ({"depth": 16_385}, r"retriever\.depth=16385"),
        ({"rrf_constant": 0}, r"retriever\.rrf_constant=0"),
        ({"k1": -1}, r"retriever\.k1=-1"),
        ({"block": 10_001}, r"retriever\.block=10001"),
    ],
)
def test_a_value_that_cannot_be_is_told(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told) as failed:
        Milvus(**given)
    assert "secret-99" not in str(failed.value)


def test_what_is_not_set_and_the_ends_of_the_ranges() -> None:
    assert identity(Milvus()) == {
        "component": "milvus", "version": 1, "uri": None, "mode": "dense", "depth": 100,
        "top_k": values_of("hydra/shared/hits")["top_k"],
        "rrf_constant": 60, "index": "FLAT", "index_params": {}, "search_params": {}, "k1": 1.2, "b": 0.75,
        "analyzer": {"type": "standard"}, "revision": 1,
    }  # fmt: skip
    assert (Milvus().block, Milvus().timeout, Milvus().reorder_after_cut) == (500, 60.0, False)
    for ends in ({"top_k": 16_384, "depth": 1}, {"k1": 0, "b": 0}, {"b": 1, "block": 10_000}, {"uri": "https://host"}):
        assert Milvus(**ends)  # type: ignore[arg-type]
    assert Milvus(mode="hybrid", top_k=9, depth=9)
    assert Milvus(mode="hybrid", index="HNSW").approximate


def test_a_collection_is_that_of_its_content_and_place_and_a_token_is_told_nowhere() -> None:
    given: dict[str, Any] = {"uri": "http://host:19530", "mode": "hybrid"}
    usual = Milvus(**given)
    with_token = Milvus(**given, token="abc-4711")
    assert "4711" not in f"{identity(with_token)} {with_token.index_identity()} {with_token!r}"
    assert identity(usual) == identity(with_token) == identity(Milvus(**given, block=7, timeout=3))
    same: tuple[dict[str, Any], ...] = ({"top_k": 3}, {"depth": 50}, {"rrf_constant": 1}, {"search_params": {"ef": 9}})
    for other in same:
        assert Milvus(**given | other).index_identity() == usual.index_identity()
        assert identity(Milvus(**given | other)) != identity(usual)
    others: tuple[dict[str, Any], ...] = (
        {"uri": "http://other:19530"}, {"mode": "dense"}, {"mode": "bm25"}, {"revision": 2}, {"index": "HNSW"},
        {"index_params": {"M": 4}}, {"k1": 2.0}, {"b": 0.5}, {"analyzer": {"type": "english"}},
    )  # fmt: skip
    assert all(Milvus(**given | other).index_identity() != usual.index_identity() for other in others)
    assert [Milvus(mode=mode).uses for mode in ("dense", "bm25")] == [{"embedder"}, set()]
    assert [Milvus(mode=mode).space for mode in ("dense", "hybrid")] == ["dense", "text"]


def test_without_the_packages_one_line_names_the_extra(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "milvus_lite", None)
    with pytest.raises(ConfigError, match=r"pip install 'ragauge\[milvus\]'"):
        made(Milvus(), tmp_path / "a", tools)


def conformance() -> Any:
    return pytest.importorskip("ragauge.plugins.adapters.conformance")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["dense", "bm25", "hybrid"])
def test_milvus_lite_conforms(tools: Tools, tmp_path: Path, mode: Any) -> None:
    lexical = mode == "bm25"
    conformance().check_retriever(Milvus(mode=mode), tmp_path / "index", tools, lexical=lexical)


def test_milvus_lite_in_one_process_conforms(tools: Tools, tmp_path: Path) -> None:
    conformance().check_retriever(Milvus(), tmp_path / "index", tools, another_process=False)
