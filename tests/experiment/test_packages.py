"""Configs of installed packages and of --config-dir: found, put behind ragauge's own, and never shadowed."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from ragauge.contract.errors import ConfigError
from ragauge.contract.option import values_of
from ragauge.experiment.setup import config, packages

ROOT = Path(__file__).resolve().parents[2]
CONF = ROOT / "conf"
TOP_3 = "defaults: [bm25]\ntop_k: 3\n"

Install = Callable[..., Path]


@pytest.fixture(autouse=True)
def looked_up_anew() -> Iterator[None]:
    packages.packages_of.cache_clear()  # a package of a name lies elsewhere in every test
    yield
    for name in [name for name in sys.modules if name.startswith("team_")]:
        del sys.modules[name]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed distributions."""
    (tmp_path / "site").mkdir()
    monkeypatch.syspath_prepend(tmp_path / "site")
    return tmp_path / "site"


@pytest.fixture
def install(site: Path) -> Install:
    """Lays a distribution there as pip would: metadata, and a package with the files given."""

    def lay(name: str, files: dict[str, str], value: str | None = None, init: str = "") -> Path:
        metadata = site / f"{name}-1.2.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        point = f"[ragauge.configs]\nours = {value or f'{name}.conf'}\n"
        (metadata / "entry_points.txt").write_text(point)
        for file, text in {"__init__.py": init, **files}.items():
            path = site / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return site / name

    return lay


@pytest.mark.parametrize("init", [{"conf/__init__.py": ""}, {}])
def test_an_option_of_a_package_is_composed_like_ragauge_s_own(install: Install, init) -> None:
    install("team_a", {**init, "conf/retriever/shallow.yaml": TOP_3})
    config.register()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        assert compose("config", overrides=["retriever=shallow"]).retriever.top_k == 3
        assert (
            compose("config", overrides=["retriever=bm25"]).retriever.top_k == values_of("hydra/shared/hits")["top_k"]
        )


def test_packages_come_in_the_order_of_their_names(install: Install) -> None:
    install("team_b", {"conf/retriever/b.yaml": TOP_3})
    install("team_a", {"conf/retriever/a.yaml": TOP_3})
    found = [(package.distribution, package.module) for package in packages.config_packages()]
    assert [pair for pair in found if pair[0].startswith("team_")] == [
        ("team_a 1.2", "team_a.conf"),
        ("team_b 1.2", "team_b.conf"),
    ]


@pytest.mark.parametrize(
    ("files", "value", "init", "message"),
    [
        (
            {},
            "team_c.nowhere",
            "",
            "cannot be imported .ModuleNotFoundError: .*'team_c.nowhere'",
        ),
        ({}, "team_c.conf", "1 / 0", "cannot be imported .ZeroDivisionError"),
        ({"conf.py": ""}, "team_c.conf", "", "is a module, but must be a package"),
        ({}, "team_c:conf", "", "must be the dotted name of a package, such as team_config.conf"),
        ({"conf/__init__.py": ""}, "team_c.conf", "", "holds no YAML file; .*package-data"),
    ],
)
def test_an_entry_point_that_cannot_be_used_is_named(install: Install, files, value, init, message) -> None:
    install("team_c", files, value, init)
    with pytest.raises(ConfigError, match=rf"entry point ours = '{value}'.* of team_c 1\.2: {message}"):
        packages.config_packages()


def test_a_file_that_would_never_be_read_is_refused(install: Install, tmp_path: Path) -> None:
    packages.refuse_shadowed(CONF)
    install("team_d", {"conf/retriever/shallow.yaml": TOP_3, "conf/experiment/ours.yaml": ""})
    mine = tmp_path / "mine"
    (mine / "retriever").mkdir(parents=True)
    (mine / "retriever" / "bm25.yaml").write_text(TOP_3)
    packages.refuse_shadowed(CONF)
    with pytest.raises(ConfigError, match=r"retriever/bm25\.yaml of --config-dir .*mine .* ragauge has one"):
        packages.refuse_shadowed(CONF, mine)
    (mine / "retriever" / "bm25.yaml").rename(mine / "retriever" / "shallow.yaml")
    with pytest.raises(ConfigError, match=r"retriever/shallow\.yaml of --config-dir .* team_d 1\.2 has one"):
        packages.refuse_shadowed(CONF, mine)
    install("team_e", {"conf/experiment/ours.yaml": ""})
    with pytest.raises(ConfigError, match=r"experiment/ours\.yaml of team_e 1\.2 .* team_d 1\.2 has one"):
        packages.refuse_shadowed(CONF)


# --- the command as a user meets it -------------------------------------------------------------------------


def run(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # The distributions' folder is on the path as another site-packages would be.
    code = f"import sys, runpy; sys.path.insert(1, {str(site)!r}); sys.argv = sys.argv[1:]\n"
    return subprocess.run(
        [sys.executable, "-c", code + "runpy.run_path(sys.argv[0], run_name='__main__')",
         str(ROOT / "run.py"), *arguments],
        cwd=site.parent, capture_output=True, text=True, timeout=3000,
    )  # fmt: skip


def test_the_command_sees_packages_and_config_dir_everywhere(install: Install, site: Path) -> None:
    install("team_f", {"conf/retriever/shallow.yaml": TOP_3, "conf/experiment/e.yaml": "# @package _global_\n"})
    mine = site.parent / "mine" / "retriever"
    mine.mkdir(parents=True)
    (mine / "deep.yaml").write_text(TOP_3)
    both = ("--config-dir", "mine")
    listed = run(site, *both, "--help").stdout
    for group, options in (("retriever", {"bm25", "deep", "shallow"}), ("experiment", {"e", "paper"})):
        assert options <= set(re.findall(rf"^{group}: (.*)$", listed, re.M)[0].split(", "))
    path = run(site, *both, "--info", "searchpath").stdout
    order = [path.index(p) for p in ("file://" + str(CONF), "pkg://team_f.conf", "mine", "structured://")]
    assert order == sorted(order)
    for option in ("shallow", "deep"):
        shown = run(site, *both, "--cfg", "job", "--package", "retriever", f"retriever={option}")
        assert "top_k: 3" in shown.stdout, shown.stderr
    done = run(site, *both, "retriever=shallow", "retriever.topk=5")
    assert done.returncode == 2
    assert "unknown key 'retriever.topk'. Did you mean retriever.top_k?" in done.stderr, done.stderr


def test_the_command_ends_with_2_where_a_package_is_broken_or_shadows(install: Install, site: Path) -> None:
    package = install("team_g", {"conf/retriever/bm25.yaml": TOP_3})
    done = run(site, "retriever=bm25")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: retriever/bm25.yaml of team_g 1.2 would never be read, since ragauge has one, too: "
        "give it another name\n"
    )
    (package / "conf" / "retriever" / "bm25.yaml").unlink()
    done = run(site, "--help")
    assert done.returncode == 2
    assert "of team_g 1.2: holds no YAML file" in done.stderr
    assert "Traceback" not in done.stderr
