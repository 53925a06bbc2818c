"""Tables in Markdown."""

from collections.abc import Iterable, Sequence


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """
    >>> print(markdown_table(["data", "test"], [["Cora", "81.5"]]), end="")
    | data | test |
    | --- | --- |
    | Cora | 81.5 |
    """
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
