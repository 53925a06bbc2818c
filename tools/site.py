"""Pages of the site that are made of other files: API, tutorials, changelog, contributing. A hook of MkDocs."""

import base64
import json
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import gst

ROOT = Path(__file__).resolve().parent.parent
TUTORIALS = ROOT / "tutorials"
ORDER = ("own-model", "compare", "claim", "serve", "million-edges")
GROUPS = {  # of public names; a name that is in none comes under "More"
    "One call": ("sparsify", "search", "Result"),
    "Data": ("load", "from_files", "datasets", "EdgeSet"),
    "Methods": (
        *("Deploy", "GST", "Retrain", "Random", "SCAN", "LocalSimilarity", "DSpar", "EffectiveResistance"),
        *(
            "SpectralRadius",
            "KNeighbor",
            "ImportanceScores",
            "UGS",
            "WDGLT",
            "MGSpar",
            "SNIP",
            "SET",
            "SNFS",
            "RigL",
            "MEST",
        ),
    ),
    "Serving": ("load_compiled", "load_engine", "Engine", "Decisions"),
    "Callbacks and trackers": ("Callback", "Progress", "TensorBoard", "MLflow", "WandB"),
    "Extending": ("Sparsifier", "LearnedSparsifier", "TopologySparsifier", "register"),
    "Running": ("Checkpoint", "graceful", "portable"),
    "Errors and warnings": (),
}
GUIDE = ("index", "methods", "data-sets", "large-graphs", "inference", "after-deployment", "reliability", "report")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fills the navigation with every page of the guide and the results, those of tomorrow among them."""
    docs = Path(config.docs_dir)
    for section in config.nav or []:
        ((title, pages),) = section.items()
        if title == "Guide":
            pages[:] = [*ordered(docs / "guide", GUIDE), *loose(docs, ("search.md",))]
        elif title == "Results":
            pages[:] = [*ordered(docs / "results", ("index", "methods")), *loose(docs, ("reproduction.md",))]
        elif title == "API":
            pages[:] = ["api/index.md", *(f"api/{slug(group)}.md" for group in grouped())]
        elif title == "Tutorials":
            pages[:] = ["tutorials/index.md", *(f"tutorials/{name}.md" for name in ORDER if notebook(name).exists())]
        elif title == "Project":
            pages[:] = [
                "project/changelog.md",
                "project/contributing.md",
                "project/deprecation.md",
                "project/security.md",
            ]
    return config


def ordered(folder: Path, first: tuple[str, ...]) -> list[str]:
    """The pages of a folder, those that are named first in that order."""
    there = {path.stem for path in folder.glob("*.md")}
    stems = [*(stem for stem in first if stem in there), *sorted(there - set(first))]
    return [f"{folder.name}/{stem}.md" for stem in stems]


def loose(docs: Path, pages: tuple[str, ...]) -> list[str]:
    """Pages beside the folders, while they are there."""
    return [page for page in pages if (docs / page).exists()]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the generated pages."""
    pages: dict[str, str | bytes] = {**api_pages(), **project_pages(), "start/glossary.md": glossary()}
    pages["tutorials/index.md"] = tutorial_index()
    for name in ORDER:
        if notebook(name).exists():
            text, pictures = tutorial(name)
            pages |= {f"tutorials/{name}.md": text, **{f"tutorials/{file}": data for file, data in pictures.items()}}
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: MkDocsConfig, files: Files) -> str:
    """Links to files of the repository that are no pages become their names."""
    depth = page.file.src_uri.count("/")
    outside = "../" * (depth + 1)
    pattern = rf"\[([^\]]+)\]\({re.escape(outside)}(?!\.\./)([\w./-]+)(#[\w-]+)?\)"
    return re.sub(pattern, lambda match: f"{match[1]} (`{match[2]}`)", markdown)


def notebook(name: str) -> Path:
    return TUTORIALS / f"{name}.ipynb"


def slug(group: str) -> str:
    return group.lower().replace(" ", "-")


def grouped() -> dict[str, list[str]]:
    """Every public name in its group."""
    names = [name for name in gst.__all__ if not name.startswith("__")]
    kinds = {name: isinstance(getattr(gst, name), type) and issubclass(getattr(gst, name), Exception) for name in names}
    groups = {group: [name for name in known if name in names] for group, known in GROUPS.items()}
    groups["Errors and warnings"] = [name for name in names if kinds[name]]
    placed = {name for group in groups.values() for name in group}
    if rest := [name for name in names if name not in placed]:
        groups["More"] = rest
    return groups


def api_pages() -> dict[str, str]:
    lines = ["# API", "", "Every public name of `import gst`, each with an example that the tests run.", ""]
    pages = {}
    for group, names in grouped().items():
        lines += [f"## {group}", ""]
        entries = []
        for name in names:
            value = getattr(gst, name)
            first = (value.__doc__ or "").strip().splitlines()[0]
            lines.append(f"- [`gst.{name}`]({slug(group)}.md#{value.__module__}.{value.__qualname__}): {plain(first)}")
            entries.append(f"::: {value.__module__}.{value.__qualname__}\n")
        lines.append("")
        pages[f"api/{slug(group)}.md"] = f"# {group}\n\n" + "\n".join(entries)
    return {"api/index.md": "\n".join(lines), **pages}


def plain(text: str) -> str:
    """The first line of a docstring without the marks of Sphinx."""
    return re.sub(r":\w+:`~?([^`]+)`", lambda m: f"`{m[1].rpartition('.')[2]}`", text).replace("``", "`")


def on_page_content(html: str, page: Any, config: MkDocsConfig, files: Files) -> str:
    """Marks of Sphinx in docstrings, which are for ``help()``, too."""
    html = re.sub(r":\w+:<code>~?([\w.]+)</code>", lambda m: f"<code>{m[1].rpartition('.')[2]}</code>", html)
    return re.sub(r":\w+:`~?([\w.]+)`", lambda m: m[1].rpartition(".")[2], html)


def on_post_page(html: str, page: Any, config: MkDocsConfig) -> str:
    """The theme would fetch the script that searches pages on disk from another server: this is ours."""
    ours = f"{'../' * page.file.dest_uri.count('/')}frame-worker.js"
    return re.sub(r"https://unpkg\.com/iframe-worker/shim", ours, html)


def on_post_template(output_content: str, template_name: str, config: MkDocsConfig) -> str:
    """The page for missing pages belongs to a server: there the browser's own workers search."""
    return re.sub(r'<script src="https://unpkg\.com/iframe-worker/shim"></script>', "", output_content)


def project_pages() -> dict[str, str]:
    """Files at the top of the repository."""
    pages = {}
    for name, file in (("changelog", "CHANGELOG.md"), ("contributing", "CONTRIBUTING.md"), ("security", "SECURITY.md")):
        text = (ROOT / file).read_text(encoding="utf-8")
        text = re.sub(r"\]\(docs/", "](../", text)
        pages[f"project/{name}.md"] = re.sub(r"\[([^\]]+)\]\((?!https?:|\.\./|#)([\w./-]+)\)", r"\1 (`\2`)", text)
    return pages


def glossary() -> str:
    """The section of that name in CONTRIBUTING.md: every word of gst has one meaning."""
    section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Glossary\n")[2]
    words = section.partition("\n## ")[0]
    return f"# Glossary\n\nOne word, one meaning, in the documentation as in the code.\n{words}"


def tutorial_index() -> str:
    lines = ["# Tutorials", "", "Notebooks that `make tutorials` executes; their sources are in `tutorials/`.", ""]
    for name in ORDER:
        if notebook(name).exists():
            cells = json.loads(notebook(name).read_text(encoding="utf-8"))["cells"]
            title, _, text = "".join(cells[0]["source"]).partition("\n")
            lines += [f"**[{title.lstrip('# ')}]({name}.md)**", f": {' '.join(text.split())}", ""]
    return "\n".join(lines)


def tutorial(name: str) -> tuple[str, dict[str, bytes]]:
    """A notebook as Markdown, and its pictures."""
    cells = json.loads(notebook(name).read_text(encoding="utf-8"))["cells"]
    lines: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            lines += [source, ""]
            continue
        lines += ["```python", source, "```", ""]
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                file = f"{name}-{len(pictures)}.png"
                pictures[file] = base64.b64decode(data["image/png"])
                lines += [f"![what the cell above draws]({file})", ""]
            elif "text/html" in data:
                lines += ['<div class="output">', "".join(data["text/html"]).replace("\n", " "), "</div>", ""]
            else:
                text = "".join(output.get("text") or data.get("text/plain") or "")
                lines += ["``` { .text .output }", text.rstrip(), "```", ""]
    return "\n".join(lines), pictures
