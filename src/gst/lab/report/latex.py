"""Tables as LaTeX (booktabs)."""

from gst.base.text import printable
from gst.lab.report.tables import Table

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "−": "$-$", "–": "--", "·": r"$\cdot$",
    "×": r"$\times$", "<": r"\textless{}", ">": r"\textgreater{}", "Δ": r"$\Delta$", "τ": r"$\tau$", "κ": r"$\kappa$",
    "’": "'",
}  # fmt: skip


def escape(text: str) -> str:
    r"""Text that LaTeX prints verbatim.

    >>> escape("50 % of R&D_1 ± 2")
    '50 \\% of R\\&D\\_1 $\\pm$ 2'
    """
    return "".join(_SPECIAL.get(sign, sign) for sign in " ".join(printable(text).split()))


def latex(table: Table) -> str:
    """A table environment, with the bold cells of the page."""
    alignment = "".join("r" if n in table.numeric else "l" for n in range(len(table.columns)))
    rows = [
        " & ".join(rf"\textbf{{{escape(c)}}}" if n in line.best else escape(c) for n, c in enumerate(line.cells))
        for line in table.lines
    ]
    body = "".join(f"{row} \\\\\n" for row in rows)
    head = " & ".join(map(escape, table.columns))
    return (
        "\\begin{table}\n\\centering\n"
        f"\\caption{{{escape(table.caption)}}}\n"
        f"\\begin{{tabular}}{{{alignment}}}\n\\toprule\n{head} \\\\\n\\midrule\n{body}\\bottomrule\n"
        "\\end{tabular}\n\\end{table}\n"
    )
