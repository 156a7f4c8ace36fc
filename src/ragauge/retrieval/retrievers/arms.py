"""Retrievers within another one, by the name of their config option."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pandas as pd

from ragauge.contract.adoption import adopted
from ragauge.contract.checks import require
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError, RagaugeError
from ragauge.contract.identity import code_of
from ragauge.contract.loading import build
from ragauge.contract.retrieval import BringsTexts, Retriever, SeesEvidence

# Why some retrievers cannot be searched with by another one.
_REFUSED = {
    "mlq": "writes queries of its own; rewriter=multi_query does so for all arms",
    "none": "finds nothing",
    "reo": "is sim in another order; choose sim, and order=long_context",
    "hybrid": "is several retrievers; name them themselves",
    "oracle": "is told the evidence",
    "noise": "is told the evidence",
}


def built(key: str, name: object, options: Mapping[str, Any], depth: int | None) -> Retriever:
    """The retriever `name` of the options ({name: mapping with _target_, or a retriever}), to a depth.

    `key` names where the name stands. depth takes the place of the retriever's own top_k unless it is None.
    ConfigError for a name without options, for an object that is no retriever, and for a retriever that cannot search.
    """
    where = f"retriever.options.{name}"
    if name not in options:
        there = ", ".join(options)
        why = f"{name!r} {_REFUSED[str(name)]}" if str(name) in _REFUSED else f"{name!r} is no retriever here"
        raise ConfigError(f"{key}: {why}; allowed are {there} (retriever.options)")
    spec = options[str(name)]
    try:
        arm = build(where, spec, {}, Retriever) if isinstance(spec, Mapping) else adopted(where, spec, Retriever)
        component = arm.component
        if isinstance(arm, BringsTexts) and not arm.ranks_corpus:
            raise ConfigError(f"{component or name} brings its own texts; it cannot search for queries")
        if component in _REFUSED or isinstance(arm, SeesEvidence):
            raise ConfigError(f"{component or name} {_REFUSED.get(component, 'is told the evidence')}")
        if depth is not None and dataclasses.is_dataclass(arm):
            arm = cast("Retriever", dataclasses.replace(cast("Any", arm), top_k=depth))
    except RagaugeError as error:
        told = str(error)
        raise ConfigError(told if told.startswith(where) else f"{where}: {told}") from error
    return arm


def require_names(key: str, names: object, least: int) -> list[str]:
    """The names as a list; ConfigError for fewer than `least`, duplicates, and anything but a list."""
    listed = isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in names)
    allowed = f"lists of {least} or more retrievers, such as [bm25,sim]"
    require(key, names, listed and len(names) >= least, allowed)  # type: ignore[arg-type]
    found = list(names)  # type: ignore[call-overload]
    twice = [name for name in found if found.count(name) > 1]
    if twice:
        raise ConfigError(f"{key}={found!r}: {twice[0]} stands twice; allowed is every retriever once")
    return found


class Arms(Retriever):
    """Shared part of retrievers over others, with the models, indexes and files of all of them."""

    @property
    def takes_queries(self) -> bool:
        """Whether all of them search for a rewriter's queries, unlike an existing ranking."""
        return all(arm.takes_queries for arm in self.retrievers.values())

    @property
    def uses(self) -> frozenset[str]:
        """The shared models that any of them uses."""
        return frozenset().union(*(arm.uses for arm in self.retrievers.values()))

    @property
    def index_uses(self) -> frozenset[str]:
        """The shared models that any of them indexes with."""
        return frozenset().union(*(arm.index_uses for arm in self.retrievers.values()))

    def index_identity(self) -> Mapping[str, Any]:
        """The identities of all indexes."""
        arms = {n: {**a.index_identity(), **code_of(a)} for n, a in self.retrievers.items()}
        return {"index": "several", "version": 1, "of": arms}

    def build_index(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> None:
        """Writes every index into its own folder; a job links the arms' indexes there instead."""
        for name, arm in self.retrievers.items():
            (folder / name).mkdir()
            arm.build_index(chunks, folder / name, tools)

    def files(self) -> Mapping[str, Path]:
        """The files of all of them."""
        return {f"{n}:{role}": path for n, arm in self.retrievers.items() for role, path in arm.files().items()}
