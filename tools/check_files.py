"""Files that should not be committed: too large, with conflict marks, or text without a last line end."""

import sys
from pathlib import Path

LARGEST = 1_000_000  # bytes
TEXT = (".py", ".md", ".toml", ".yml", ".yaml", ".txt", ".css", ".js", ".cff", ".svg")
ALLOWED = ("results/", "docs/figures/", "docs/report.png")  # the record, and what is drawn from it


def problems(path: Path) -> list[str]:
    """What is wrong with a file."""
    found = []
    if path.stat().st_size > LARGEST and not path.as_posix().startswith(ALLOWED):
        found.append(f"{path}: {path.stat().st_size:,} bytes are more than {LARGEST:,}")
    if path.suffix in TEXT:
        text = path.read_text(encoding="utf-8")
        if any(line.startswith(("<" * 7 + " ", ">" * 7 + " ")) for line in text.splitlines()):
            found.append(f"{path}: a conflict is left in it")
        if path.suffix != ".svg" and text and not text.endswith("\n"):
            found.append(f"{path}: the last line has no end")
    return found


def main(names: list[str]) -> int:
    found = [text for name in names if Path(name).is_file() for text in problems(Path(name))]
    sys.stderr.writelines(f"{text}\n" for text in found)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
