"""What identifies a part: its class, its version and every field that can change what comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ragauge.parts import identity, runtime
from ragauge.store import canonical_json

HERE = f"{__name__}."


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
        "class": f"{HERE}Plain",
        "version": 1,
        "size": 64,
        "share": 0.5,
        "name": None,
        "strict": True,
    }
    assert identity(Versioned()) == {"class": f"{HERE}Versioned", "version": 3, "size": 1}


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
    assert found["options"] == {"b": {"model": "m"}, "7": None}
    assert canonical_json(found)


def test_a_runtime_field_of_a_nested_part_is_left_out() -> None:
    assert identity(Holder(Plain(threads=1))) == identity(Holder(Plain(threads=2)))


def test_lists_of_a_config_and_tuples_are_the_same() -> None:
    from omegaconf import OmegaConf

    config = OmegaConf.create({"sizes": [1, 2], "options": {"a": [True, None]}})
    given = identity(Holder(Plain(), config.sizes, config.options))
    assert given == identity(Holder(Plain(), (1, 2), {"a": [True, None]}))


def test_its_own_identity_comes_first() -> None:
    assert identity(Wrapped("tiny")) == {"model": "tiny"}
    assert identity(Shortened(size=5)) == {"only": 5}


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
