"""The documentation site: builds strictly, refuses what is broken, asks no network, and is found through."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from browser import CHROMIUM, Browser
from options import option_files
from processes import ROOT

pytest.importorskip("material", reason="the extra docs is not installed")
pytest.importorskip("mkdocstrings", reason="the extra docs is not installed")
pytestmark = pytest.mark.slow


def build(root: Path, site: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        cwd=root, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = tmp_path_factory.mktemp("site")
    built = build(ROOT, site)
    assert built.returncode == 0, built.stdout + built.stderr
    return site


def article(page: Path) -> str:
    """What a page says, without its frame."""
    [found] = re.findall(r"<article.*?</article>", page.read_text(encoding="utf-8"), re.DOTALL)
    return str(found)


def test_every_guide_option_and_component_has_its_page(site: Path) -> None:
    for guide in (ROOT / "docs").glob("*.md"):
        assert (site / f"{guide.stem}.html").is_file(), guide
    for option in option_files():
        page = article(site / "config" / f"{option.parent.name}.html")
        assert f'<h2 id="{option.stem}"' in page, option
    kinds = ("datasets.Source", "retrieval.Retriever", "answering.Generator", "measures.AnswerMeasure")
    for module, name in (kind.split(".") for kind in kinds):
        assert f'id="ragauge.contract.{module}.{name}"' in article(site / "api" / f"{module}.html")
    retrievers = article(site / "api" / "retriever.html")
    assert 'id="ragauge.retrieval.retrievers.BM25"' in retrievers
    assert 'href="../config/retriever.html#bm25"' in retrievers
    options = article(site / "config" / "retriever.html")
    assert 'href="../api/retriever.html#ragauge.retrieval.retrievers.BM25"' in options


def test_files_of_the_repository_that_guides_link_are_pages(site: Path) -> None:
    assert 'href="repository/benchmarks/RESULTS.html"' in article(site / "running.html")
    assert 'href="repository/src/ragauge/texts/sentences.py.html"' in article(site / "datasets.html")
    assert "def sentence_spans" in re.sub(
        "<[^>]*>", "", article(site / "repository/src/ragauge/texts/sentences.py.html")
    )
    overview = article(site / "overview.html")  # the README, whose links go through docs/
    assert 'href="options.html"' in overview
    assert 'src="figures/evidence.png"' in overview
    assert 'href="repository/examples/team_config/index.html"' in article(site / "options.html")


def test_nothing_asks_the_network(site: Path) -> None:
    loaded = r"<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=[\"']?(?:https?:)?//([^\"'\s>]+)"
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.findall(loaded, text), page
        assert "unpkg" not in text
        assert "fonts.g" not in text
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert not re.search(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", text), sheet


def test_markdown_leaves_no_marks_in_the_text(site: Path) -> None:
    """Lists, links and tables that Markdown did not take for such show their marks."""
    for page in site.rglob("*.html"):
        if page.name == "404.html" or "src" in page.parts:
            continue
        shown = re.sub(r"<(pre|code)\b.*?</\1>", "", article(page), flags=re.DOTALL)
        shown = re.sub(r"<[^>]+>", "", shown)
        left = re.findall(r".{0,40}(?:\]\(|\n- |```|\n\|).{0,40}", shown)
        assert not left, (page.relative_to(site), left)


BROKEN = {
    "[gone](gone.md)": "'gone.md'",
    "[gone](running.md#no-heading)": "'running.md#no-heading'",
    "[gone](../benchmarks/GONE.md)": "'../benchmarks/GONE.md'",
    "[gone](../benchmarks/RESULTS.md#no-result)": "#no-result",
    "[gone](../src/ragauge/gone.py)": "'../src/ragauge/gone.py'",
    "![gone](figures/gone.png)": "'figures/gone.png'",
    "[gone][ragauge.retrieval.retrievers.Gone]": "'ragauge.retrieval.retrievers.Gone'",
}


def test_broken_links_and_guides_that_the_navigation_lacks_fail_the_build(tmp_path: Path) -> None:
    root = _small_copy(tmp_path)
    page = root / "docs" / "planning.md"
    page.write_text("\n\n".join([page.read_text(encoding="utf-8"), *BROKEN]), encoding="utf-8")
    (root / "docs" / "orphan.md").write_text("# Orphan\n", encoding="utf-8")
    built = build(root, tmp_path / "site")
    assert built.returncode != 0
    warnings = [line for line in built.stderr.splitlines() if "WARNING" in line or line.startswith("  - ")]
    for named in BROKEN.values():
        assert [line for line in warnings if "planning.md" in line and named in line], (named, warnings)
    assert any("orphan.md" in line for line in warnings)
    assert len(warnings) <= len(BROKEN) + 2  # nothing else is wrong


def _small_copy(folder: Path) -> Path:
    """What the site is made of, in a folder of its own."""
    root = folder / "repository"
    for part in ("docs", "conf", "examples", "benchmarks", "src"):
        shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("mkdocs.yml", "README.md", "CHANGELOG.md", "LICENSE", "CITATION.cff"):
        shutil.copy(ROOT / file, root / file)
    return root


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium")
def test_search_works_in_a_page_that_was_opened_as_a_file(site: Path, tmp_path: Path) -> None:
    browser = Browser(tmp_path / "profile")
    try:
        browser.open((site / "index.html").as_uri(), 1280)
        browser.evaluate(
            "const field = document.querySelector('.md-search__input'); field.focus();"
            "field.value = 'breakpoint_percentile'; field.dispatchEvent(new Event('input', {bubbles: true}));"
            "field.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true}))"
        )
        browser.wait_for("document.querySelector('.md-search-result__item a[href*=\"chunker.html\"]')", 120)
        asked = [told["request"]["url"] for told in browser.told("Network.requestWillBeSent")]
        assert asked
        assert all(url.startswith(("file:", "data:", "about:")) for url in asked), asked
        assert not browser.told("Runtime.exceptionThrown")
    finally:
        browser.close()
