"""``python -m gst`` is the same as ``gst``."""

import sys

from gst.base.processor import portable


def main() -> None:
    """The command line, on whatever processor with the same digits."""
    if "torch" not in sys.modules:
        portable()
    from gst.cli.main import main as run  # noqa: PLC0415 - it loads the libraries that portable() speaks to

    run()


if __name__ == "__main__":
    main()
