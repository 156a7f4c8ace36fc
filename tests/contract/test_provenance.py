"""Who ran what code on what machine."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragauge.contract import provenance
from ragauge.contract.errors import ConfigError
from ragauge.contract.finding import Finding, Found
from ragauge.contract.loading import findings_of


@pytest.fixture
def anew() -> Iterator[None]:
    """What is known once for a process is found out anew, before and after."""
    for found_once in (provenance.origin_tags, provenance.hardware, provenance.machine):
        found_once.cache_clear()
    yield
    for found_once in (provenance.origin_tags, provenance.hardware, provenance.machine):
        found_once.cache_clear()


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=me", "-c", "user.email=me@host", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


def test_the_commit_is_that_of_the_code_and_says_whether_it_was_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, anew: None
) -> None:
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "code.py"))
    assert "git_commit" not in provenance.origin_tags()
    (tmp_path / "code.py").write_text("1\n")
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    provenance.origin_tags.cache_clear()
    commit = provenance.origin_tags()["git_commit"]
    assert re.fullmatch("[0-9a-f]{40}", commit)
    (tmp_path / "untracked").write_text("1\n")
    provenance.origin_tags.cache_clear()
    assert provenance.origin_tags()["git_commit"] == commit
    (tmp_path / "code.py").write_text("2\n")
    provenance.origin_tags.cache_clear()
    tags = provenance.origin_tags()
    assert (tags["git_commit"], tags["mlflow.source.git.commit"]) == (f"{commit}-dirty", commit)


def test_hardware_and_packages_are_named(anew: None) -> None:
    found = provenance.hardware()
    assert all(found[name] for name in ("machine", "processor", "cores"))
    packages = provenance.installed_packages()
    assert "ragauge" not in packages
    assert packages["pytest"] == pytest.__version__
    assert provenance.read_packages(provenance.packages_text()) == packages
    assert list(packages)[2:] == sorted(list(packages)[2:])


class Own(Finding):
    """A finding of a list."""

    name = "own"

    def compute(self, jobs: object, found: object) -> Found | None:
        return None


class Point:
    """An entry point that names this class as a package's finding."""

    name, value, group = "again", "package:Own", Finding.group

    def load(self) -> type[Own]:
        return Own


def test_a_package_s_finding_takes_no_name_of_ragauge_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragauge.contract.loading.entry_points", lambda group: [Point()])
    with pytest.raises(ConfigError, match=r"entry point again = 'package:Own' .*: there is a finding 'own' already"):
        list(findings_of(Finding, [Own]))
    assert [finding.name for finding in findings_of(Finding, [])] == ["own"]
