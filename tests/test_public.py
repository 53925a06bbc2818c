"""The public names: documented, with an example, and each on a page of the site."""

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

import gst

ROOT = Path(__file__).parent.parent
NAMES = [name for name in gst.__all__ if not name.startswith("__")]


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_has_a_docstring_with_an_example(name):
    """Those that are classes or functions of gst; the examples themselves are run as doctests."""
    text = inspect.getdoc(getattr(gst, name)) or ""
    first = text.splitlines()[0] if text else ""
    assert 10 < len(first) <= 120 and first.endswith((".", ").")), first
    assert ">>> " in text, "an example is missing"


def test_every_public_name_is_listed_for_type_checkers_too():
    source = (ROOT / "src/gst/__init__.py").read_text()
    block = source[source.index("if TYPE_CHECKING:") : source.index("__all__ = [")]
    for name in NAMES:
        assert re.search(rf"\b{name}\b", block) or name == "portable", name


def test_the_version_is_in_one_place():
    """Package metadata and citation say what the code says."""
    text = (ROOT / "pyproject.toml").read_text()
    assert 'dynamic = ["version"]' in text and not re.search(r'^version = "', text, re.MULTILINE)
    assert f"version: {gst.__version__}\n" in (ROOT / "CITATION.cff").read_text()


@pytest.mark.parametrize(
    ("number", "cited", "heading", "problems"),
    [
        ("1.2.0.dev0", "1.2.0.dev0", "1.2.0 – unreleased", 0),
        ("1.2.0", "1.2.0", "1.2.0 – 2027-01-31", 0),
        ("1.2.0", "1.2.0", "1.2.0 – unreleased", 1),
        ("1.2.0.dev0", "1.2.0.dev0", "1.1.0 – unreleased", 1),
        ("1.2.0", "1.1.0", "Since 1.1.0", 2),
    ],
)
def test_a_release_says_one_version_everywhere(tmp_path, number, cited, heading, problems):
    spec = importlib.util.spec_from_file_location("release_check", ROOT / "tools" / "release_check.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    (tmp_path / "src/gst/base").mkdir(parents=True)
    (tmp_path / "src/gst/base/version.py").write_text(f'__version__ = "{number}"\n')
    (tmp_path / "CITATION.cff").write_text(f"title: gst\nversion: {cited}\n")
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n## {heading}\n\n## 0.1.0 – first version\n")
    assert len(tool.version_problems(tmp_path)) == problems


def test_every_name_has_a_page_of_the_site():
    pytest.importorskip("mkdocs")
    spec = importlib.util.spec_from_file_location("site_pages", ROOT / "tools" / "site.py")
    site = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(site)
    groups = site.grouped()
    assert sorted(name for names in groups.values() for name in names) == sorted(NAMES)
    pages = site.api_pages()
    assert all(f"`gst.{name}`" in pages["api/index.md"] for name in NAMES)
