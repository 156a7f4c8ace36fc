"""What identifies a part: its class, its version and every field that can change what comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ragauge.contract.identity import code_digests, code_of, identity, runtime
from ragauge.llms.chat import ChatLLM
from ragauge.retrieval.chunkers import TokenChunker
from ragauge.store import canonical_json

HERE = f"{__name__}."
CODE: Any = {"code": code_digests([__name__])}  # of the classes below


@dataclass(frozen=True)
class Plain:
    size: int = 128
    share: float = 0.5
    name: str | None = None
    strict: bool = True
    threads: int = runtime(4)
    kind: ClassVar[str] = "plain"


@dataclass(frozen=True)
class Versioned:
    version: ClassVar[int] = 3

    size: int = 1


@dataclass(frozen=True)
class Holder:
    """A part with parts, lists and mappings in it."""

    inner: Any
    sizes: Any = ()
    options: Any = None


class Wrapped:
    """Of another library; says itself what it is."""

    def __init__(self, model: str) -> None:
        self.model = model

    def identity(self) -> Mapping[str, Any]:
        return {"model": self.model}


@dataclass(frozen=True)
class Shortened(Plain):
    """Its own identity() comes before that of its fields."""

    def identity(self) -> dict[str, Any]:
        return {"only": self.size}


def test_class_version_and_fields() -> None:
    assert identity(Plain(size=64)) == {
        "component": f"{HERE}Plain",
        "version": 1,
        "size": 64,
        "share": 0.5,
        "name": None,
        "strict": True,
        **CODE,
    }
    assert identity(Versioned()) == {"component": f"{HERE}Versioned", "version": 3, "size": 1, **CODE}


def test_a_runtime_field_is_left_out_and_keeps_its_default() -> None:
    assert Plain().threads == 4
    assert identity(Plain(threads=1)) == identity(Plain(threads=64))
    assert identity(Plain(size=1)) != identity(Plain(size=2))


def test_equal_fields_of_another_class_are_another_part() -> None:
    @dataclass(frozen=True)
    class Other(Plain):
        pass

    assert identity(Other()) != identity(Plain())


def test_nested_parts_lists_and_mappings_become_json() -> None:
    part = Holder(Plain(threads=9), [1, (2, Versioned())], {"b": Wrapped("m"), 7: None})
    found = identity(part)
    assert found["inner"] == identity(Plain())
    assert found["sizes"] == [1, [2, identity(Versioned())]]
    assert found["options"] == {"b": {"model": "m", **CODE}, "7": None}
    assert canonical_json(found)


def test_a_runtime_field_of_a_nested_part_is_left_out() -> None:
    assert identity(Holder(Plain(threads=1))) == identity(Holder(Plain(threads=2)))


def test_lists_of_a_config_and_tuples_are_the_same() -> None:
    from omegaconf import OmegaConf

    config = OmegaConf.create({"sizes": [1, 2], "options": {"a": [True, None]}})
    given = identity(Holder(Plain(), config.sizes, config.options))
    assert given == identity(Holder(Plain(), (1, 2), {"a": [True, None]}))


def test_its_own_identity_comes_first() -> None:
    assert identity(Wrapped("tiny")) == {"model": "tiny", **CODE}
    assert identity(Shortened(size=5)) == {"only": 5, **CODE}


def test_parts_of_ragauge_are_known_by_their_version_and_others_by_their_code() -> None:
    assert "code" not in identity(TokenChunker())
    assert identity(Plain())["code"] == code_digests([__name__])


def test_the_code_behind_every_target_counts_but_not_that_of_runtime_fields() -> None:
    nested = {"_target_": "ragauge.x", "_args_": [{"k": {"_target_": "bm25s.BM25"}}]}
    assert set(code_of(Holder(Plain(), nested))["code"]) == {"bm25s", *CODE["code"]}
    assert code_of(Plain(threads={"_target_": "bm25s.BM25"})) == CODE


def test_a_client_of_a_chat_model_may_change_without_a_call_being_paid_again() -> None:
    assert "code" not in identity(ChatLLM({"_target_": "langchain_openai.ChatOpenAI", "model": "m"}))


@pytest.mark.parametrize(
    ("value", "name"),
    [(object(), "object"), (Plain, "type"), (Path("x"), "PosixPath"), ({1, 2}, "set")],
)
def test_what_cannot_be_identified_is_refused(value: Any, name: str) -> None:
    message = f"{name} is neither a dataclass nor has it an identity"
    with pytest.raises(TypeError, match=message):
        identity(value)
    with pytest.raises(TypeError, match=message):
        identity(Holder(value))
