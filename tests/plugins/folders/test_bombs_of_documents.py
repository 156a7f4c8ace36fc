"""Documents that unpack to much more than they seem to hold: no more of them is read than a good one may have."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import docx
import pytest
from test_bombs import UNPACKED, little_memory

from ragauge.contract.errors import DataError
from ragauge.plugins.folders.dataset import Folder


def word_file(file: Path, lie: bool = False, method: int = zipfile.ZIP_DEFLATED) -> None:
    """A Word document with a large part; with `lie` its sizes and its checksum are those of a small one."""
    whole = io.BytesIO()
    docx.Document().save(whole)
    with zipfile.ZipFile(whole) as good, zipfile.ZipFile(file, "w", method) as bomb:
        for part in good.infolist():
            data = good.read(part)
            if part.filename == "word/document.xml":
                data += b" " * UNPACKED
            bomb.writestr(part.filename, data)
            if lie and part.filename == "word/document.xml":
                made = bomb.getinfo(part.filename)
                made.file_size, made.CRC = part.file_size, part.CRC


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, "it unpacks to more than dataset.max_megabytes=2"),
        ({"lie": True}, "it unpacks to more than dataset.max_megabytes=2"),
        ({"method": zipfile.ZIP_BZIP2}, "its part .* is packed by another method than deflate"),
    ],
)
def test_a_word_document_is_measured_unpacked(tmp_path: Path, fields: dict[str, Any], says: str) -> None:
    folder = tmp_path / "documents"
    folder.mkdir()
    word_file(folder / "bomb.docx", **fields)
    (tmp_path / "topics.jsonl").write_text("")
    with little_memory(), pytest.raises(DataError, match=f"bomb.docx: {says}"):
        Folder(path=folder, topics=tmp_path / "topics.jsonl", max_megabytes=2).load()


def test_the_pages_of_a_pdf_together_have_no_more_text_than_a_file_may(tmp_path: Path) -> None:
    pypdf = pytest.importorskip("pypdf")
    folder = tmp_path / "documents"
    folder.mkdir()
    (tmp_path / "topics.jsonl").write_text("")
    text = b"BT /F1 12 Tf 72 700 Td (" + b"word " * 2_000 + b") Tj ET"
    writer = pypdf.PdfWriter()
    content = pypdf.generic.StreamObject()
    content.set_data(text)
    shared = writer._add_object(content.flate_encode())
    font = pypdf.generic.DictionaryObject(
        {
            pypdf.generic.NameObject(key): pypdf.generic.NameObject(value)
            for key, value in (("/Type", "/Font"), ("/Subtype", "/Type1"), ("/BaseFont", "/Helvetica"))
        }
    )
    fonts = pypdf.generic.DictionaryObject({pypdf.generic.NameObject("/F1"): writer._add_object(font)})
    resources = pypdf.generic.DictionaryObject({pypdf.generic.NameObject("/Font"): fonts})
    for _ in range(50):  # each of 10 kB, all of them the same stream
        page = writer.add_blank_page(600, 800)
        page[pypdf.generic.NameObject("/Contents")] = shared
        page[pypdf.generic.NameObject("/Resources")] = resources
    writer.write(str(folder / "bomb.pdf"))
    source = Folder(path=folder, topics=tmp_path / "topics.jsonl", max_megabytes=0.1)
    with pytest.raises(DataError, match=r"bomb\.pdf: its text has more than dataset.max_megabytes=0\.1"):
        source.load()
