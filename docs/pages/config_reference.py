"""Reference pages of the configuration, made from conf/: every group, option, key, default and comment.

A comment belongs to a key by its place: the lines above the key, and what stands behind its value. Comments
at the top of a file say what the option is.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

# The guide of each group, where one tells more than the comments do.
GUIDES = {
    "answers": ["measures.md#of-answers", "claims.md", "passages.md", "criteria.md", "ares.md"],
    "chunker": ["extending.md#a-chunker"],
    "compressor": ["contexts.md"],
    "dataset": ["datasets.md"],
    "embedder": ["running.md#what-runs-the-embedding-model", "retrievers.md#vectors-of-a-server"],
    "evaluator": ["claims.md"],
    "expander": ["contexts.md"],
    "judge": ["llms-and-judges.md"],
    "llm": ["llms-and-judges.md"],
    "measure": ["measures.md"],
    "order": ["contexts.md"],
    "reranker": ["rerankers.md"],
    "retriever": ["retrievers.md"],
    "rewriter": ["rewriters.md"],
    "trainer": ["training.md"],
}


@dataclass(frozen=True)
class Key:
    """One key of an option: dotted path, default as the file has it ("" of a mapping), and comment."""

    path: str
    default: str
    comment: str

    @property
    def builds(self) -> bool:
        """Whether the default is the name of a component of ragauge."""
        apart = {"callbacks", "chat"} & set(self.path.split("."))  # these stand on no page
        return self.path.endswith("_target_") and self.default.startswith("ragauge.") and not apart


@dataclass(frozen=True)
class Option:
    """One file of conf/: the folder it lies in ("" for conf/ itself), its name, what it is, and its keys."""

    folder: str
    name: str
    about: str
    keys: tuple[Key, ...]

    @property
    def target(self) -> str | None:
        """What the option builds, where that is part of ragauge."""
        return next((key.default for key in self.keys if key.builds), None)


@dataclass(frozen=True)
class _Comment:
    line: int
    start: int  # its place in the file, in characters
    end: int
    text: str
    alone: bool  # nothing else stands on the line


def folders(root: Path) -> list[Path]:
    """conf/ of the repository, and that of every plug-in."""
    return [root / "conf", *sorted((root / "src" / "ragauge" / "plugins").glob("*/conf"))]


def read_options(confs: Sequence[Path]) -> list[Option]:
    """All options below these folders, by group and name."""
    options = [read_option(file, conf) for conf in confs for file in conf.rglob("*.yaml")]
    return sorted(options, key=lambda option: (option.folder, option.name))


def read_option(file: Path, conf: Path) -> Option:
    """One option. No comment is left out: one below the last key belongs to what the option is."""
    text = file.read_text(encoding="utf-8")
    folder = file.parent.relative_to(conf).as_posix()
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    comments = _comments(text)
    bare = text
    for comment in comments:
        bare = bare[: comment.start] + " " * (comment.end - comment.start) + bare[comment.end :]
    places = _places(root, bare) if isinstance(root, yaml.MappingNode) else []
    about, of_key = _sorted_comments(comments, places)
    keys = tuple(Key(p.path, p.default, " ".join(of_key.get(i, ()))) for i, p in enumerate(places))
    return Option("" if folder == "." else folder, file.stem, " ".join(about), keys)


@dataclass(frozen=True)
class _Place:
    path: str
    default: str
    first: int  # line of the key
    last: int  # line on which its value ends; of a mapping the line of the key


def _places(node: yaml.MappingNode, bare: str, above: str = "") -> list[_Place]:
    """The keys of a mapping and of those within it; `bare` is the file's text with blanks for comments."""
    places: list[_Place] = []
    for key, value in node.value:
        path = f"{above}.{key.value}" if above else str(key.value)
        line = key.start_mark.line
        if isinstance(value, yaml.MappingNode) and not value.flow_style:
            places.append(_Place(path, "", line, line))
            places += _places(value, bare, path)
            continue
        # A list ends where the next key begins: the comments in between are not the list's.
        source = bare[value.start_mark.index : value.end_mark.index].rstrip()
        last = max(line, value.start_mark.line + source.count("\n"))
        indent = re.compile(f"^ {{0,{value.start_mark.column}}}")
        shown = "\n".join(indent.sub("", part).rstrip() for part in source.splitlines() if part.strip())
        places.append(_Place(path, shown, line, last))
    return places


def _comments(text: str) -> list[_Comment]:
    """The comments of a YAML text, in order; a # within a value is none."""
    scalars = [
        (token.start_mark.index, token.end_mark.index)
        for token in yaml.scan(text, Loader=yaml.SafeLoader)
        if isinstance(token, yaml.ScalarToken)
    ]
    found, start = [], 0
    for number, line in enumerate(text.splitlines(keepends=True)):
        for match in re.finditer(r"(?:^|(?<=\s))#\s?", line):
            at = start + match.start()
            if not any(first <= at < last for first, last in scalars):
                said, alone = line[match.end() :].strip(), not line[: match.start()].strip()
                found.append(_Comment(number, at, start + len(line.rstrip("\n")), said, alone))
                break
        start += len(line)
    return found


def _sorted_comments(
    comments: Sequence[_Comment], places: Sequence[_Place]
) -> tuple[list[str], Mapping[int, list[str]]]:
    """What is said of the option, and by the number of the key what is said of that key."""
    about: list[str] = []
    of_key: dict[int, list[str]] = {}
    head = 0  # the line up to which comments are the file's own
    for comment in comments:
        if comment.text.startswith("@package"):
            head = comment.line + 1
            continue
        if comment.alone and comment.line == head:
            about.append(comment.text)
            head += 1
            continue
        within = [i for i, p in enumerate(places) if p.first <= comment.line <= p.last]
        below = [i for i, p in enumerate(places) if p.first > comment.line]
        if within:
            of_key.setdefault(within[-1], []).append(comment.text)
        elif below:
            of_key.setdefault(below[0], []).append(comment.text)
        else:
            about.append(comment.text)
    return about, of_key


def pages(confs: Sequence[Path], docs: Path, defaults: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Title and Markdown of every page, by its path in the site; `defaults`: the option each group has."""
    options = read_options(confs)
    groups = sorted({option.folder.partition("/")[0] for option in options} - {""})
    made = {"config/index.md": ("All groups", _front([o for o in options if not o.folder], groups, defaults))}
    for group in groups:
        mine = [o for o in options if o.folder.partition("/")[0] == group]
        made[f"config/{group}.md"] = (group, _group(group, mine, defaults.get(group), docs))
    return made


def chosen(conf: Path) -> dict[str, str]:
    """The option that each group has where nothing else is said, from the defaults of config.yaml."""
    listed = yaml.safe_load((conf / "config.yaml").read_text(encoding="utf-8"))["defaults"]
    pairs = [pair for entry in listed if isinstance(entry, dict) for pair in entry.items()]
    return {
        str(group): ", ".join(option) if isinstance(option, list) else str(option)
        for group, option in pairs
        if "@" not in group and option is not None
    }


def _front(roots: Sequence[Option], groups: Sequence[str], defaults: Mapping[str, str]) -> str:
    rows = [
        f"| [`{group}`]({group}.md) | {f'`{defaults[group]}`' if group in defaults else 'none'} |" for group in groups
    ]
    parts = [
        "# Configuration",
        "Made from the files in `conf/` and of the plug-ins. A group is chosen with `group=option`, a key set with "
        "`key=value` (`retriever.top_k=50`) or swept with `-m` (`retriever.top_k=10,20,40`); "
        "`python run.py --cfg job` prints the whole configuration of a job.",
        "| group | default |\n|---|---|\n" + "\n".join(rows),
    ]
    for option in roots:
        parts += [f"## {option.name}.yaml", *_body(option)]
    return "\n\n".join(parts) + "\n"


def _group(group: str, options: Sequence[Option], default: str | None, docs: Path) -> str:
    parts = [f"# {group}"]
    said = f"The default is `{group}={f'[{default}]' if group == 'answers' else default}`." if default else ""
    guides = [f"[{_title(docs / guide.partition('#')[0])}](../{guide})" for guide in GUIDES.get(group, ())]
    if guides:
        said += f" What the options are and do: {', '.join(guides)}."
    if said:
        parts.append(said.strip())
    for option in options:
        below = option.folder.partition("/")[2]
        parts += [f"## {f'{below}/' if below else ''}{option.name}", *_body(option)]
    return "\n\n".join(parts) + "\n"


def _title(page: Path) -> str:
    return page.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")


def _body(option: Option) -> list[str]:
    parts = [_prose(option.about)] if option.about else []
    bases = [base.group(1) for key in option.keys if key.path == "defaults"
             for base in re.finditer(r"- /(chat/\w+)@_here_", key.default)]  # fmt: skip
    parts += [f"Further keys are those of [`{base}`](chat.md)." for base in bases]
    if option.keys:
        rows = "\n".join(f"| {_key(k.path)} | {_default(k)} | {_prose(k.comment)} |" for k in option.keys)
        parts.append("| key | default | |\n|---|---|---|\n" + rows)
    return parts


def _default(key: Key) -> str:
    if key.builds:
        return f"[{_key(key.default)}][{key.default}]"
    if key.default.startswith("|"):
        return "a text of several lines"
    if key.default.startswith(">"):
        return _code(" ".join(line.strip() for line in key.default.splitlines()[1:]))
    return "<br>".join(map(_code, key.default.splitlines()))


def _key(path: str) -> str:
    """A dotted name as code that may break behind a dot."""
    return _code(path).replace(".", ".<wbr>")


def _code(text: str) -> str:
    return f"<code>{_escaped(text)}</code>" if text else ""


def _prose(text: str) -> str:
    """A comment as Markdown: nothing in it is markup but `code`, and docs/<page>.md is a link."""
    pieces = re.split(r"(`[^`]+`)", text)
    for i, piece in enumerate(pieces):
        if i % 2:
            pieces[i] = _code(piece.strip("`"))
        else:
            linked = re.split(r"\bdocs/([a-z0-9_-]+\.md)", piece)
            pieces[i] = "".join(f"[{part}](../{part})" if j % 2 else _escaped(part) for j, part in enumerate(linked))
    return "".join(pieces)


def _escaped(text: str) -> str:
    """Characters that mean something in HTML or Markdown, as references."""
    safe = html.escape(text, quote=False)
    return re.sub(r"[|*_\[\]\\`$~{}^]", lambda m: f"&#{ord(m[0])};", safe)
