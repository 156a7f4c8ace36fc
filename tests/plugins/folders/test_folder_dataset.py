from __future__ import annotations

import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import docx
import pytest

from ragauge.contract import frames
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.frames import as_frame
from ragauge.contract.identity import identity
from ragauge.plugins.folders.dataset import Folder

MARKDOWN = """Read this first.

# Leave
Ask early.

## Parental leave ##
Sixteen weeks.

```sh
# no heading
```
# Leave
Again.
#hashtag
"""
HTML = """<!doctype html><html><head><title>Not shown</title><style>p {}</style></head><body>
<p>Caf&eacute; &amp; bar</p><script>var a = "<h1>no</h1>";</script>
<h1>Opening <em>hours</em></h1><p>Nine
to five.</p><ul><li>Mon</li><li>Tue</li></ul>
<h2>Holidays</h2><table><tr><td>Aug</td><td>closed</td></tr></table><template><h1>no</h1></template>
<h3></h3>end</body></html>
"""


def pdf(pages: Sequence[str]) -> bytes:
    """A PDF with one line of text on each page."""
    kids = " ".join(f"{4 + 2 * i} 0 R" for i in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for i, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET" if text else ""
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * i} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>",
            f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        ]
    out, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{content}\nendobj\n".encode()
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    tail = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer << /Size {size} /Root 1 0 R >>\n"
    return out + f"{tail}startxref\n{len(out)}\n%%EOF\n".encode()


def word(file: Path) -> None:
    document = docx.Document()
    document.add_heading("Handbook", 0)
    document.add_paragraph("Welcome.")
    document.add_heading("Travel", 1)
    document.add_paragraph("By train.")
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "Rail", "100"
    document.save(str(file))


def folder(tmp_path: Path, files: dict[str, str | bytes], **fields: Any) -> Folder:
    root = tmp_path / "documents"
    root.mkdir(exist_ok=True)
    for name, content in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    row = {"qid": "q1", "query": "How many weeks?", "answer": "sixteen", "evidence": ["Sixteen weeks."]}
    (tmp_path / "questions.jsonl").write_text(json.dumps(row))
    return Folder(path=root, topics=tmp_path / "questions.jsonl", **fields)


def documents(source: Folder) -> list[list[str]]:
    return frames.check("docs", as_frame(source.load().docs)).to_numpy().tolist()


def test_sections_of_markdown(tmp_path: Path) -> None:
    found = documents(folder(tmp_path, {"hr/leave.md": MARKDOWN}))
    assert [row[:2] for row in found] == [
        ["hr/leave.md", "leave.md"],
        ["hr/leave.md#leave", "leave.md, Leave"],
        ["hr/leave.md#parental-leave", "leave.md, Leave > Parental leave"],
        ["hr/leave.md#leave-1", "leave.md, Leave"],
    ]
    assert found[2][2] == "## Parental leave ##\nSixteen weeks.\n\n```sh\n# no heading\n```"
    assert found[3][2] == "# Leave\nAgain.\n#hashtag"


def test_a_heading_with_deeper_headings_alone_is_no_document_but_names_those_below(tmp_path: Path) -> None:
    text = "# A\n\n## B\n### C\nc\n## D\n## E\ne\n# F\n### G\ng\n# A\n"
    found = documents(folder(tmp_path, {"a.md": text}))
    assert [row[:2] for row in found] == [
        ["a.md#c", "a.md, A > B > C"],
        ["a.md#d", "a.md, A > D"],  # nothing below it: the heading is all that it says
        ["a.md#e", "a.md, A > E"],
        ["a.md#g", "a.md, F > G"],
        ["a.md#a-1", "a.md, A"],
    ]
    assert [row[2] for row in found] == ["### C\nc", "## D", "## E\ne", "### G\ng", "# A"]
    page = "<h1>A</h1><h2>B</h2><p>b</p>"
    assert [row[0] for row in documents(folder(tmp_path, {"b.html": page}))][-2:] == ["a.md#a-1", "b.html#b"]


def test_sections_of_html(tmp_path: Path) -> None:
    found = documents(folder(tmp_path, {"a.HTML": HTML}))
    assert [row[:2] for row in found] == [
        ["a.HTML", "a.HTML"],
        ["a.HTML#opening-hours", "a.HTML, Opening hours"],
        ["a.HTML#holidays", "a.HTML, Opening hours > Holidays"],
    ]
    assert found[0][2] == "Café & bar"
    words = [row[2].split() for row in found]
    assert words[1] == ["Opening", "hours", "Nine", "to", "five.", "Mon", "Tue"]
    assert words[2] == ["Holidays", "Aug", "closed", "end"]
    assert found[1][2] == "Opening hours\nNine to five.\n\nMon\n\nTue"


def test_pages_of_a_pdf(tmp_path: Path) -> None:
    source = folder(tmp_path, {"a report.pdf": pdf(["The first page.", "", "The third page."])})
    assert documents(source) == [
        ["a%20report.pdf#page=1", "a report.pdf, page 1", "The first page."],
        ["a%20report.pdf#page=3", "a report.pdf, page 3", "The third page."],
    ]
    whole = folder(tmp_path, {}, sections=False)
    assert documents(whole) == [
        ["a%20report.pdf", "a report.pdf", "The first page.\n\nThe third page."],
    ]


def test_headings_of_a_word_document(tmp_path: Path) -> None:
    source = folder(tmp_path, {})
    word(tmp_path / "documents" / "handbook.docx")
    assert documents(source) == [
        ["handbook.docx#handbook", "handbook.docx, Handbook", "Handbook\nWelcome."],
        ["handbook.docx#travel", "handbook.docx, Handbook > Travel", "Travel\nBy train.\nRail\t100"],
    ]


def test_names_that_no_docno_may_have(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"50%p off#1.txt": "x", "über uns.txt": "y"}
    assert [row[0] for row in documents(folder(tmp_path, files))] == [
        "50%25p%20off%231.txt",
        "über%20uns.txt",
    ]


def test_what_of_a_folder_is_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ragauge")
    files: dict[str, str | bytes] = {
        "a.txt": "\ufeffa", "b/c.TXT": "c", ".hidden.txt": "no", ".git/x.txt": "no", "picture.png": b"PNG",
    }  # fmt: skip
    source = folder(tmp_path, files)
    (tmp_path / "documents" / "again.txt").symlink_to(tmp_path / "documents" / "a.txt")
    assert [[row[0], row[2]] for row in documents(source)] == [["a.txt", "a"], ["b/c.TXT", "c"]]
    root = tmp_path / "documents"
    assert f"{root}: 1 files of other kinds were not read, such as {root / 'picture.png'}" in caplog.messages
    (root / "picture.png").unlink()
    caplog.clear()
    source.load()
    assert caplog.messages == []
    assert list(source.files()) == ["docs/a.txt", "docs/b/c.TXT", "topics"]


def test_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    source = folder(tmp_path, {"a.txt": "a"})
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "documents" / "link.txt").symlink_to(tmp_path / "secret.txt")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "b.txt").write_text("secret")
    (tmp_path / "documents" / "linked").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match=r"link\.txt: it is a link to a file outside of the folder"):
        source.load()
    source = Folder(path=source.path, topics=source.topics, on_error="skip")
    assert [row[2] for row in documents(source)] == ["a"]


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("bad.pdf", b"%PDF-1.4 and no more", "cannot be read: "),
        ("bad.pdf", pdf(["text"]).replace(b"/Kids [4 0 R]", b"/Kids [9 0 R]"), ""),
        ("scanned.pdf", pdf(["", ""]), "none of its 2 pages has a text"),
        ("bad.docx", b"PK\x03\x04 no zip", "cannot be read: "),
        ("bad.txt", b"caf\xe9", r"not utf-8 \(dataset\.encoding\)"),
        ("bad.md", b"\xff\xfe#\x00", r"not utf-8 \(dataset\.encoding\)"),
        ("huge.txt", b"x" * 2_000_001, r"it has 2\.0 MB; dataset\.max_megabytes=2"),
    ],
    ids=range(7),
)
def test_file_that_cannot_be_read_is_named_or_dropped(tmp_path: Path, name: str, content: bytes, what: str) -> None:
    files: dict[str, str | bytes] = {"good.txt": "good", name: content}
    with pytest.raises(DataError, match=rf"documents/{name}: {what}"):
        folder(tmp_path, files, max_megabytes=2).load()
    data = folder(tmp_path, files, max_megabytes=2, on_error="skip").load()
    assert as_frame(data.docs)["docno"].tolist() == ["good.txt"]
    assert name in data.skipped[0]


def test_encrypted_pdf_is_named(tmp_path: Path) -> None:
    import pypdf

    writer = pypdf.PdfWriter()
    source = folder(tmp_path, {"a.pdf": pdf(["secret"])})
    writer.append(str(tmp_path / "documents" / "a.pdf"))
    writer.encrypt("password", algorithm="RC4-128")
    writer.write(str(tmp_path / "documents" / "a.pdf"))
    with pytest.raises(DataError, match=r"a\.pdf: cannot be read: FileNotDecryptedError"):
        source.load()


def test_questions_are_asked_for(tmp_path: Path) -> None:
    source = folder(tmp_path, {"a.txt": "a"})
    with pytest.raises(ConfigError, match=r"dataset\.topics is not set: a folder holds documents alone"):
        Folder(path=source.path).files()
    with pytest.raises(ConfigError, match=r"dataset\.topics=.*there is no such file"):
        Folder(path=source.path, topics=tmp_path / "none.jsonl").files()
    (tmp_path / "questions.jsonl").write_text('{"qid": "q1"}\n')
    with pytest.raises(DataError, match=r"questions\.jsonl, line 1, qid 'q1': key 'query' is missing"):
        source.load()


def test_evidence_names_pages(tmp_path: Path) -> None:
    source = folder(tmp_path, {"a.pdf": pdf(["Sixteen weeks."])})
    row = {"qid": "q", "query": "?", "evidence": [{"docno": "a.pdf#page=1", "text": "Sixteen weeks."}]}
    (tmp_path / "questions.jsonl").write_text(json.dumps(row))
    assert source.load().evidence["docno"].tolist() == ["a.pdf#page=1"]


def test_folder_without_documents_says_what_is_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"holds no file of \.txt, \.md, .*\.docx, \.pdf"):
        folder(tmp_path, {"a.png": b""}).files()


def slides(pages: bool = True) -> Any:
    """A reader of LlamaIndex's protocol: one document for every line, with the page that it stands on."""
    from llama_index.core.readers.base import BaseReader
    from llama_index.core.schema import Document

    class Slides(BaseReader):
        def load_data(self, file: Path, **_: Any) -> list[Document]:
            lines = file.read_text().splitlines()
            if "broken" in lines:
                raise ValueError("a broken\nfile")
            return [
                Document(text=line, metadata={"page_label": str(n)} if pages else {})
                for n, line in enumerate(lines, start=1)
            ]

    return Slides()


@pytest.mark.parametrize(("pages", "kind"), [(True, "page"), (False, "part")])
def test_readers_of_llama_index(tmp_path: Path, pages: bool, kind: str) -> None:
    spec = {"_target_": f"{__name__}.slides", "pages": pages}
    source = folder(tmp_path, {"a.slides": "one\ntwo", "b.slides": "alone"}, readers={"slides": spec})
    assert documents(source) == [
        [f"a.slides#{kind}=1", f"a.slides, {kind} 1", "one"],
        [f"a.slides#{kind}=2", f"a.slides, {kind} 2", "two"],
        ["b.slides", "b.slides", "alone"],
    ]
    assert identity(source) != identity(Folder())
    (tmp_path / "documents" / "a.slides").write_text("broken")
    with pytest.raises(DataError, match=r"a\.slides: cannot be read: ValueError: a broken file"):
        source.load()
    with pytest.raises(ConfigError, match=r"dataset\.readers\.x\._target_='no\.Reader'"):
        folder(tmp_path, {}, readers={"x": {"_target_": "no.Reader"}}).files()


@pytest.mark.parametrize("name", ["pypdf", "docx"])
def test_package_that_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    source = folder(tmp_path, {f"a.{'pdf' if name == 'pypdf' else 'docx'}": b""})
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError, match=rf" needs {name}, which is not installed: pip install 'ragauge\[files\]'"):
        source.load()


@pytest.mark.parametrize("fields", [{"sections": "no"}, {"max_megabytes": 0}, {"encoding": "klingon"}])
def test_values_out_of_range_name_the_key(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"dataset.{next(iter(fields))}="):
        Folder(**fields)


def test_a_folder_without_text_is_blamed_and_not_the_evidence_of_a_question(tmp_path: Path) -> None:
    topics = tmp_path / "topics.jsonl"
    topics.write_text('{"qid": "1", "query": "Who?", "answer": "Zoe", "evidence": [{"docno": "d", "text": "x"}]}\n')
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "empty.md").write_text("  \n")
    with pytest.raises(DataError, match=r"notes: no document in it"):
        Folder(path=tmp_path / "notes", topics=topics).load()
