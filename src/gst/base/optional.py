"""Packages that only some functions need: each is an extra of gst, imported where it is used."""

from importlib import import_module
from typing import Any

from gst.base.errors import InputError

DISTRIBUTION = "graph-sparse-training"
EXTRAS = {  # the extra of pyproject.toml that installs a package
    "pandas": "tables",
    "pyarrow": "tables",
    "networkx": "export",
    "pymetis": "metis",
    "matplotlib": "plots",
    "jinja2": "report",
    "ray": "ray",
    "tensorboard": "tensorboard",
    "mlflow": "mlflow",
    "wandb": "wandb",
}


class Later:
    """A module that is imported when something of it is first used."""

    def __init__(self, module: str, purpose: str) -> None:
        self._module = module
        self._purpose = purpose

    def __getattr__(self, name: str) -> Any:
        return getattr(optional(self._module, self._purpose), name)


def optional(module: str, purpose: str) -> Any:
    """An imported module; one line that names the extra where it is not installed.

    >>> optional("json.decoder", "reading").__name__
    'json.decoder'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:  # the package is there, but broken
            raise
        extra = EXTRAS.get(package)
        install = package if extra is None else f"'{DISTRIBUTION}[{extra}]'"
        raise InputError(f"{purpose} needs {package}, which is not installed: pip install {install}") from None
