"""Checks a built site: every link leads somewhere, and no page asks another server for anything."""

import json
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADING = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src", "video": "src"}


class Page(HTMLParser):
    """The links, loaded files and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in LOADING and LOADING[tag] in values and values.get("rel") not in ("canonical", "next", "prev", "edit"):
            self.loaded.append(values[LOADING[tag]])


def problems(site: Path) -> tuple[list[str], int]:
    """What is wrong, and how many links were followed."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    found, count = [], 0
    for path, page in pages.items():
        name = path.relative_to(site)
        found += [f"{name} loads {link}" for link in page.loaded if urlsplit(link).netloc]
        for link in {*page.links, *page.loaded}:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            count += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                found.append(f"{name}: {link} leads nowhere")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{name}: {link} has no such part")
    return found, count


def main(folder: str) -> int:
    site = Path(folder).resolve()
    found, count = problems(site)
    sys.stderr.writelines(f"{text}\n" for text in found)
    pages = len(list(site.rglob("*.html")))
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    print(json.dumps({"pages": pages, "links": count, "problems": len(found), "search_entries": len(index["docs"])}))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
