"""The logger ``gst``, silent unless the program that uses the library asks: ``logging.basicConfig(level="INFO")``.

INFO: the beginning, phases, end or failure of every fit, and every sparsity that a search measures. DEBUG also: every
epoch, settings, and what the cache had or lacked.
"""

import logging

log = logging.getLogger("gst")
log.addHandler(logging.NullHandler())
