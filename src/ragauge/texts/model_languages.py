"""The languages of an encoder, by its name or its model card."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

import yaml

from ragauge.texts.languages import CODES

# By the last part of a model's name, lower case. Many of these have a sibling whose name says multilingual.
_ENGLISH = re.compile(
    r"all-(minilm|mpnet|distilroberta|roberta)|multi-qa-|msmarco-|ms-marco-|paraphrase-(minilm|mpnet|albert|distil)"
    r"|bge-(micro|small|base|large)-en|(e5|gte)-(small|base|large)(-v2|-en.*)?$|gtr-t5-|sentence-t5-|contriever"
    r"|nomic-embed-text-v1|mxbai-embed-large|snowflake-arctic-embed-(xs|s|m|l)$|uae-large|splade|colbertv2"
    r"|jina-embeddings-v2-\w+-en"
)
_CHINESE = re.compile(r"bge-(small|base|large)-zh|gte-\w+-zh")
_HEAD = re.compile(r"---\r?\n(.*?)\n---", re.DOTALL)
_MOST = 100_000  # characters of a model card


@lru_cache(maxsize=8)
def languages_of_model(model: str) -> frozenset[str]:
    """The languages of an encoder, as `language_of` names them (others by their codes); empty if many or unknown.

    model: its name or the path of its folder, whose README.md may say `language:` in its YAML head.
    """
    card = Path(model).expanduser() / "README.md"
    if card.is_file() and (said := _of_card(card.read_text(encoding="utf-8", errors="replace")[:_MOST])):
        return frozenset() if "multilingual" in said else frozenset(CODES.get(one, one) for one in said)
    name = Path(model).name.lower()
    if "multilingual" in name:
        return frozenset()
    found = {"english": _ENGLISH, "chinese": _CHINESE}
    return frozenset(language for language, names in found.items() if names.match(name))


def _of_card(text: str) -> list[str]:
    head = _HEAD.match(text)
    try:
        said = (yaml.safe_load(head[1]) or {}).get("language") if head else None
    except (yaml.YAMLError, AttributeError):
        return []
    said = [said] if isinstance(said, str) else said if isinstance(said, list) else []
    return ["no" if one is False else str(one).lower() for one in said]  # YAML reads the code of Norwegian as False
