"""Docstrings on the pages of the Python interface: lists of parameters, and no lost brackets."""

from __future__ import annotations

import importlib
import sys

import pytest

from processes import ROOT

pytest.importorskip("griffe", reason="the extra docs is not installed")


def as_markdown(text: str, names: set[str]) -> str:
    sys.path.insert(0, str(ROOT / "docs" / "pages"))
    try:
        made: str = importlib.import_module("docstrings").as_markdown(text, names)
    finally:
        sys.path.remove(str(ROOT / "docs" / "pages"))
    return made


def test_what_is_said_of_parameters_becomes_a_list() -> None:
    text = (
        "What it returns.\n\n"
        "Some words first.\n"
        "model: a name, or\n"
        "    a path. first, last: ranks of hits.\n"
        "Errors: none of these.\n"
        "\n"
        "Sources: somebody 1999."
    )
    assert as_markdown(text, {"model", "first", "last"}) == (
        "What it returns.\n\n"
        "Some words first.\n\n"
        "- `model`: a name, or\n"
        "  a path.\n"
        "- `first`, `last`: ranks of hits.\n"
        "  Errors: none of these.\n"
        "\n"
        "Sources: somebody 1999."
    )


def test_a_placeholder_in_angle_brackets_is_not_lost_as_a_tag() -> None:
    text = "The folder is outputs/<date>/<time>, or `runs:/<id>`.\n\n    code <b>\n"
    assert as_markdown(text, set()) == ("The folder is outputs/&lt;date>/&lt;time>, or `runs:/<id>`.\n\n    code <b>\n")
