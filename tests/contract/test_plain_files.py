"""What is read and deleted of a folder that others may have filled, and which times are of this run."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from ragauge.contract import current_job
from ragauge.contract.changed import changed_docno, changed_from
from ragauge.contract.plain_files import NotPlain, open_plain, plain_files, read_json_object, remove_all


def test_plain_files_of_all_folders_are_listed_and_anything_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    for name, text in (("one", "1"), ("a/two", "22"), ("a/b/three", "333")):
        (tmp_path / name).write_text(text)
    assert {name: found.st_size for name, found in plain_files(tmp_path)} == {"one": 1, "a/two": 2, "a/b/three": 3}
    with pytest.raises(NotPlain, match=r"one is a file, not a folder$"):
        list(plain_files(tmp_path / "one"))
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with pytest.raises(NotPlain, match=r"link is a link, not a (plain file|folder)$"):
        list(plain_files(tmp_path))
    with pytest.raises(NotPlain, match=r"link is a link, not a folder$"):
        list(plain_files(tmp_path / "link"))
    deep = tmp_path / "deep"
    folders = "/".join("d" * 51)
    (deep / folders).mkdir(parents=True)
    with pytest.raises(NotPlain, match=r"deep is nested deeper than 50 folders$"):
        list(plain_files(deep))
    (deep / folders).rmdir()
    assert list(plain_files(deep)) == []


def test_what_is_opened_is_a_plain_file_and_a_link_where_links_are_allowed(tmp_path: Path) -> None:
    file, link = tmp_path / "a.json", tmp_path / "link"
    file.write_text('{"a": [1]}')
    link.symlink_to(file)
    os.mkfifo(tmp_path / "pipe")
    heard = socket.socket(socket.AF_UNIX)
    heard.bind(str(tmp_path / "s"))
    assert read_json_object(link) == {"a": [1]}
    for name, what in (("link", "a link"), ("pipe", "a pipe"), ("", "a folder")):
        with pytest.raises(NotPlain, match=f"is {what}, not a plain file"):
            open_plain(tmp_path / name, links=False)
    with pytest.raises(NotPlain, match=r"^/dev/null is a device, not a plain file$"):
        open_plain(Path("/dev/null"))
    with pytest.raises(FileNotFoundError):
        open_plain(tmp_path / "none", links=False)
    with pytest.raises(NotPlain, match="s is a socket"):
        list(plain_files(_alone(tmp_path, "s")))
    heard.close()


def _alone(folder: Path, kept: str) -> Path:
    for path in folder.iterdir():
        if path.name != kept:
            path.unlink()
    return folder


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b'"x"', "not a text"), (b"3", "not a number"), (b"true", "not true or false"), (b"[]", "not a list"),
        (b"\xff", "not UTF-8"), (b"{", "not JSON"), (b'{"a": ' * 101 + b"1" + b"}" * 101, "deeper than 100 levels"),
    ],
)  # fmt: skip
def test_content_that_is_no_object_is_told_by_its_kind(text: bytes, told: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(text)
    with pytest.raises(ValueError, match=told):
        read_json_object(tmp_path / "a")


def test_an_object_may_be_nested_a_hundred_levels_deep(tmp_path: Path) -> None:
    (tmp_path / "a").write_text('{"a": ' * 100 + "1" + "}" * 100)
    assert list(read_json_object(tmp_path / "a")) == ["a"]


def test_a_link_is_deleted_without_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    for name in ("link", "link"):  # the second time it is gone
        remove_all(tmp_path / name)
    assert (tmp_path / "a" / "b").is_dir()
    remove_all(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_the_job_of_this_process_and_what_is_of_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert current_job.job_folder() is None
    with current_job.working_on(tmp_path / "x" / ".."):
        with current_job.working_on(tmp_path / "other"):
            assert current_job.job_folder() == str(tmp_path / "other")
        assert current_job.job_folder() == str(tmp_path)
    assert current_job.job_folder() is None
    monkeypatch.setattr(current_job, "_began", 100.0)
    current_job.run_begins(50.0)  # a later one is known
    assert [current_job.of_this_run(at) for at in (99.9, 100.0)] == [False, True]
    before = time.time()
    current_job.run_begins()
    assert not current_job.of_this_run(before - 1)
    assert changed_from(changed_docno("q1", "d~1")) == ("q1", "d~1")
    assert changed_from("q1~d1") is None
