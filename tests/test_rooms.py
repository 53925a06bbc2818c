"""Each room imports only from those above it, and no import is hidden in a function to break a cycle."""

import ast
from pathlib import Path

import gst

SOURCE = Path(gst.__file__).parent
ROOMS = (
    *("base", "sparse", "graph", "nn", "storage", "data", "train", "inference"),
    *("methods", "api", "after", "testing", "lab", "cli"),
)
FACE = ("__init__", "__main__")  # what users see: they may import from anywhere


def imports() -> list[tuple[str, str, bool]]:
    """Every import of gst in gst: from which module, of which module, and whether it stands inside a function."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inside = {
            id(node)
            for function in ast.walk(tree)
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
            for node in ast.walk(function)
        }
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        for node in ast.walk(tree):
            lazy = id(node) in inside
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "gst":
                whole = node.module.split(".")[1:]
                for alias in node.names:
                    inside_package = SOURCE.joinpath(*whole, alias.name)
                    is_module = inside_package.is_dir() or inside_package.with_suffix(".py").is_file()
                    found.append((name, ".".join([*whole, alias.name] if is_module else whole), lazy))
            elif isinstance(node, ast.Import):
                found += [(name, a.name[4:], lazy) for a in node.names if a.name.startswith("gst.")]
            assert not (isinstance(node, ast.ImportFrom) and node.level), f"{path}: relative import"
    return found


def rank(module: str) -> int:
    return ROOMS.index(module.split(".", maxsplit=1)[0])


def test_every_file_is_in_a_room() -> None:
    rooms = {path.stem if path.is_file() else path.name for path in SOURCE.iterdir() if path.name != "__pycache__"}
    assert rooms - {"py.typed".partition(".")[0], *FACE} == set(ROOMS)


def test_rooms_import_only_from_those_above() -> None:
    found = imports()
    assert len(found) > 400
    wrong = [(a, b) for a, b, _ in found if a not in FACE and rank(b) > rank(a)]
    assert wrong == []


def test_nothing_but_the_command_line_imports_the_laboratory() -> None:
    assert {a.split(".")[0] for a, b, _ in imports() if rank(b) == rank("lab")} <= {"lab", "cli"}


def test_no_import_inside_a_function_outside_the_command_line() -> None:
    """The command line loads what only one command needs when it is called; nothing else has a reason to."""
    lazy = [(a, b) for a, b, inside in imports() if inside and a not in FACE and not a.startswith("cli.")]
    assert lazy == []


def test_no_module_imports_itself_through_others() -> None:
    edges: dict[str, set[str]] = {}
    for a, b, _ in imports():
        if a not in FACE:
            edges.setdefault(a, set()).add(b)

    def reach(start: str) -> set[str]:
        seen: set[str] = set()
        todo = [start]
        while todo:
            for following in edges.get(todo.pop(), ()):
                if following not in seen:
                    seen.add(following)
                    todo.append(following)
        return seen

    assert [module for module in edges if module in reach(module)] == []
