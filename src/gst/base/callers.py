"""Where a warning should point: at the user's line, not at one of gst."""

import sys


def users_level() -> int:
    """The stack level of the first caller outside gst, as ``warnings.warn`` counts it from the function that asks."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("gst", "contextlib"):
        level, frame = level + 1, frame.f_back
    return level
