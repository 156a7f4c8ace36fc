"""Hooks of mkdocs: generated pages, links to files of the repository, and lists as other readers show them.

Pages of the configuration and of the API are made when the site is built. The README and the changelog are
pages, too, and so is every file of the repository that a page links, so that a link which works in the
repository works on the site. A link whose file is not there stays as it is, and a strict build refuses it.
"""

from __future__ import annotations

import json
import posixpath
import re
import sys
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parent))

import api_reference
import config_reference
import metrics_reference
from lists import FENCE, spaced
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
_LINK = re.compile(r"(?<=\]\()[^()\s]+(?=\))")
# Files outside of docs/ that are pages whether or not something links them, and where they stand in the site.
ALWAYS = {
    "README.md": "overview.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/RESULTS.md": "repository/benchmarks/RESULTS.md",
    "benchmarks/VALIDITY.md": "repository/benchmarks/VALIDITY.md",
}
FOREMOST = ("README.md",)
BEHIND = "---\nsearch: {boost: 0.2}\n---\n"  # lists come behind the guides in what a search finds


def on_config(config: Any) -> Any:
    """Puts the generated pages where `nav` names their folders."""
    _fill(config.nav, _generated(config))
    return config


def _fill(nav: list[dict[str, Any]], generated: dict[str, tuple[str, str]]) -> None:
    for section in nav:
        for title, entries in section.items():
            if isinstance(entries, list):
                _fill(entries, generated)
            elif entries.endswith("/*"):
                folder = entries.removesuffix("*")
                section[title] = [{name: path} for path, (name, _) in generated.items() if path.startswith(folder)]


def on_files(files: Files, config: Any) -> Files:
    """Adds the generated pages and the repository's files that are linked."""
    for path, (_, text) in _generated(config).items():
        files.append(File.generated(config, path, content=text))
    docs = Path(config.docs_dir)
    pages = {
        f"docs/{file.src_uri}": (docs / file.src_uri).read_text(encoding="utf-8")
        for file in files.documentation_pages()
        if (docs / file.src_uri).is_file()
    }
    waiting = [*pages.items(), *((path, _text(path)) for path in ALWAYS)]
    known = dict(ALWAYS)
    while waiting:
        source, text = waiting.pop()
        for link in _links(text):
            path = _in_repository(source, link)
            if path and not path.startswith("docs/") and path not in known:
                known[path] = _page_of(path)
                if path.endswith(".md"):
                    waiting.append((path, _text(path)))
    for path, page in known.items():
        shown = _text(path) if path.endswith(".md") else _listing(path)
        files.append(File.generated(config, page, content=shown if path in FOREMOST else BEHIND + shown))
    config.extra["ragauge_repository"] = known
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Points links at the pages of the site, sets blank lines before lists, and adds metrics that findings declare."""
    if page.file.src_uri == "method.md":
        markdown = metrics_reference.with_rows(markdown)
    known: dict[str, str] = config.extra["ragauge_repository"]
    sources = {site: path for path, site in known.items()}
    here = page.file.src_uri
    source = sources.get(here, f"docs/{here}")

    def pointed(match: re.Match[str]) -> str:
        link = match.group()
        path = _in_repository(source, link)
        if path is None:
            return link
        target = path.removeprefix("docs/") if path.startswith("docs/") else known.get(path)
        if target is None or files.get_file_from_path(target) is None:
            return link
        anchor = urlsplit(link).fragment
        moved = posixpath.relpath(target, posixpath.dirname(here) or ".")
        return f"{moved}#{anchor}" if anchor else moved

    return _outside_code(spaced(markdown), lambda line: _LINK.sub(pointed, line))


def _generated(config: Any) -> dict[str, tuple[str, str]]:
    conf, docs = ROOT / "conf", Path(config.docs_dir)
    folders = config_reference.folders(ROOT)
    made = config_reference.pages(folders, docs, config_reference.chosen(conf))
    made |= api_reference.pages(config_reference.read_options(folders), docs)
    return {path: (name, BEHIND + text) for path, (name, text) in made.items()}


def _links(text: str) -> list[str]:
    found: list[str] = []

    def note(line: str) -> str:
        found.extend(_LINK.findall(line))
        return line

    _outside_code(text, note)
    return found


def _in_repository(source: str, link: str) -> str | None:
    """The path in the repository of the file that a relative link means; None where there is none."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc or not parts.path or parts.path.startswith("/"):
        return None
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), parts.path))
    if path.startswith("..") or not (ROOT / path).is_file():
        return None
    return path


def _page_of(path: str) -> str:
    """Where a file of the repository stands in the site: pictures as they are, all else as a page."""
    return f"repository/{path}" if path.endswith(".md") else f"repository/{path}.md"


def _text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def _listing(path: str) -> str:
    """A file as a page: its text as code, of a notebook its cells without what they print."""
    if path.endswith(".ipynb"):
        cells = [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(_text(path))["cells"]]
        return "\n\n".join(f"```python\n{said}\n```" if kind == "code" else said for kind, said in cells)
    language = {".py": "python", ".yaml": "yaml", ".toml": "toml"}.get(PurePosixPath(path).suffix, "text")
    return f"# {path}\n\n`````{language}\n{_text(path)}\n`````\n"


def _outside_code(text: str, changed: Any) -> str:
    """The text, with a function applied to each line that is in no fenced or indented block of code."""
    lines, fenced = [], ""
    for line in text.split("\n"):
        mark = FENCE.match(line)
        if mark and (not fenced or mark.group(1) == fenced):
            fenced = "" if fenced else mark.group(1)
            lines.append(line)
        else:
            lines.append(line if fenced or line.startswith("    ") else changed(line))
    return "\n".join(lines)
