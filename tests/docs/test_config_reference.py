"""The configuration's reference pages: every option, key, default and comment of conf/, in its place."""

from __future__ import annotations

import html
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from options import CONF, conf_folders, option_files
from processes import ROOT


@pytest.fixture(scope="module")
def reference() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "docs" / "pages"))
    yield importlib.import_module("config_reference")
    sys.path.remove(str(ROOT / "docs" / "pages"))


@pytest.fixture(scope="module")
def pages(reference: ModuleType) -> dict[str, str]:
    made = reference.pages(conf_folders(), ROOT / "docs", reference.chosen(CONF))
    return {path: text for path, (_, text) in made.items()}


def keys(config: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted paths of a loaded config's keys with their values, those of mappings on one line included."""
    for key, value in config.items():
        yield f"{above}{key}", value
        if isinstance(value, dict):
            yield from keys(value, f"{above}{key}.")


def name(file: Path) -> str:
    """The name of an option's file, such as retriever/bm25."""
    conf = next(folder for folder in conf_folders() if file.is_relative_to(folder))
    return file.relative_to(conf).with_suffix("").as_posix()


def section(pages: dict[str, str], file: Path) -> str:
    """What the pages say of one file of conf/."""
    group, _, rest = name(file).partition("/")
    page, title = (pages[f"config/{group}.md"], rest) if rest else (pages["config/index.md"], f"{group}.yaml")
    parts = re.split(r"^## (.*)$", page, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))[title]


def plain(markdown: str) -> str:
    """The text that a reader sees of Markdown, white space aside."""
    unlinked = re.sub(r"\[([^\]]*)\]\(\.\./[^)]*\)", r"docs/\1", markdown)
    return re.sub(r"\s", "", html.unescape(re.sub(r"<[^>]*>", "", unlinked))).replace("`", "")


FILES = option_files("**/*.yaml")


@pytest.mark.parametrize("file", FILES, ids=name)
def test_every_key_and_every_comment_of_a_file_stands_in_its_section(pages: dict[str, str], file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    said = section(pages, file)
    rows = {plain(row.split("|")[1]): plain(row.split("|")[2]) for row in said.splitlines() if "|" in row}
    for path, _ in keys(yaml.safe_load(text) or {}):
        above, _, last = path.rpartition(".")
        assert path in rows or f"{last}:" in rows.get(above, ""), path
    comments = re.findall(r"(?:^|\s)# (.*)$", text, flags=re.M)
    for comment in comments:
        if not comment.startswith("@package"):
            assert re.sub(r"[\s`]", "", comment) in plain(said), comment


def test_every_default_of_a_single_value_is_that_of_the_file(reference: ModuleType) -> None:
    compared = 0
    files = {name(file): file for file in FILES}
    for option in reference.read_options(conf_folders()):
        loaded = yaml.safe_load(files[f"{option.folder}/{option.name}".lstrip("/")].read_text(encoding="utf-8"))
        values = dict(keys(loaded or {}))
        for key in option.keys:
            value = values[key.path]
            if key.default and not key.default.startswith(("|", ">")):
                assert yaml.safe_load(key.default) == value, key
                compared += 1
            else:
                assert isinstance(value, dict | str)
    assert compared > 300  # of the core alone


def test_every_class_that_a_key_links_is_on_a_page(reference: ModuleType) -> None:
    options = reference.read_options(conf_folders())
    on_pages = {option.target for option in options if option.folder}
    linked = {key.default: f"{o.folder}/{o.name}: {key.path}" for o in options for key in o.keys if key.builds}
    assert not {target: where for target, where in linked.items() if target not in on_pages}
    assert len(linked) > 100


def test_a_comment_belongs_to_the_key_below_or_before_it(reference: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "retriever" / "mine.yaml"
    file.parent.mkdir()
    file.write_text(
        "# @package _global_\n"
        "# What it is,\n"
        "# in two lines.\n"
        "first: 'a # b'  # behind first\n"
        "# above second,\n"
        "# and more\n"
        "\n"
        "second:\n"
        "  inner: 1  # behind inner\n"
        "  # above address\n"
        '  address: "http://x/#y"\n'
        "listed:\n"
        "  - a\n"
        "  # within the list\n"
        "  - b\n"
        "# above price\n"
        "price: {prompt: 2.5}  # behind price\n"
        "# at the end\n"
    )
    option = reference.read_option(file, tmp_path)
    assert (option.folder, option.name) == ("retriever", "mine")
    assert option.about == "What it is, in two lines. at the end"
    assert [(key.path, key.default, key.comment) for key in option.keys] == [
        ("first", "'a # b'", "behind first"),
        ("second", "", "above second, and more"),
        ("second.inner", "1", "behind inner"),
        ("second.address", '"http://x/#y"', "above address"),
        ("listed", "- a\n- b", "within the list"),
        ("price", "{prompt: 2.5}", "above price behind price"),
    ]


def test_nothing_in_a_comment_is_markup(reference: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("defaults: []\n")
    (tmp_path / "judge").mkdir()
    (tmp_path / "judge" / "a.yaml").write_text("key: '|'  # <b>bold</b> | [x](y) *z* `a|b` docs/report.md\n")
    [(_, page)] = [
        page for path, page in reference.pages([tmp_path], ROOT / "docs", {}).items() if path == "config/judge.md"
    ]
    row = next(line for line in page.splitlines() if "bold" in line)
    assert row.count("|") == 4
    assert "<b>" not in row
    assert "[report.md](../report.md)" in row
    assert "[x](y)" not in row
    assert "<code>a&#124;b</code>" in row
