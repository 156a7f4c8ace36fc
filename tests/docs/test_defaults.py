"""What the docs say of a default is what conf/ says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from omegaconf import OmegaConf

from options import option_files
from processes import ROOT
from ragauge.contract.option import values_of

# Under this heading, `key` (a, b) has the default a. Words in place of null, and defaults that a job computes:
HEADING = re.compile(r"^\| option \|.*\| parameters \(default\) \|$")
KEY = re.compile(r"`(\w+)` \((\[[^]]*\]|[^(),;]*)[^()]*\)")
ROOT_KEYS = yaml.safe_load((ROOT / "conf" / "config.yaml").read_text(encoding="utf-8"))
WORDS = {"all": None, "4 √chunks": None}
FILES = {f"{file.parent.name}/{file.stem}": file for file in option_files()}
PAGES = {
    "retrievers.md": ("retriever",), "rerankers.md": ("reranker",), "rewriters.md": ("rewriter",),
    "contexts.md": ("expander", "compressor", "order"),
}  # fmt: skip


def settings(name: str) -> dict[str, Any]:
    """The settings in an option's file and in those that it builds on."""
    parts = FILES[name].parts
    module = f"ragauge.plugins.{parts[parts.index('plugins') + 1]}.x" if "plugins" in parts else ""
    return values_of(name, module)


def quoted() -> Iterator[tuple[str, str, str]]:
    """(option, key, default as a text) of every default in a table of the docs."""
    for page, groups in PAGES.items():
        under = False
        for line in (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines():
            under = bool(HEADING.match(line)) or (under and line.startswith("|"))
            cells = line.split(" | ")
            for option in re.findall(r"`(\w+)`", cells[0]) if under else ():
                group = next((group for group in groups if f"{group}/{option}" in FILES), None)
                for key, first in KEY.findall(cells[-1]) if group else ():
                    yield f"{group}/{option}", key, first


QUOTED = list(quoted())


@pytest.mark.parametrize(("option", "key", "said"), QUOTED)
def test_a_default_in_the_docs_is_that_of_the_option(option: str, key: str, said: str) -> None:
    given = OmegaConf.create({**ROOT_KEYS, option: settings(option)})[option][key]
    given = given["type"] if key == "analyzer" else given
    assert given == (WORDS[said] if said in WORDS else yaml.safe_load(said))


def test_the_tables_are_found() -> None:
    assert len(QUOTED) > 60
    [hits] = re.findall(r"- `top_k` is (\d+),", (ROOT / "docs" / "retrievers.md").read_text(encoding="utf-8"))
    assert int(hits) == values_of("hydra/shared/hits")["top_k"]
