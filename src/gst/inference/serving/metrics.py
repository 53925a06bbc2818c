"""What an endpoint has done, in the text format of Prometheus."""

from collections import Counter
from collections.abc import Mapping, Sequence

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
READS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536)


class Histogram:
    """Counts of values up to each bound, and their sum."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        place = next((i for i, bound in enumerate(self.bounds) if value <= bound), len(self.bounds))
        self.counts[place] += 1
        self.total += value

    def lines(self, name: str, labels: str = "") -> list[str]:
        """Cumulative, as Prometheus has them."""
        lines, seen, inner = [], 0, f"{labels}," if labels else ""
        for bound, count in zip([*map(str, self.bounds), "+Inf"], self.counts, strict=True):
            seen += count
            lines.append(f'{name}_bucket{{{inner}le="{bound}"}} {seen}')
        outer = f"{{{labels}}}" if labels else ""
        return [*lines, f"{name}_sum{outer} {self.total:.6f}", f"{name}_count{outer} {seen}"]


class Metrics:
    """Counts since the start; used by one event loop."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.seconds = {name: Histogram(SECONDS) for name in ("predict", "update")}
        self.reads = Histogram(READS)
        self.nodes = 0
        self.updates = 0

    def count(self, name: str, status: int, seconds: float) -> None:
        """A request."""
        self.requests[name, status] += 1
        self.seconds[name].add(seconds)

    def answered(self, nodes: int, read: int) -> None:
        """A request for some nodes, for which others were read."""
        self.nodes += nodes
        self.reads.add(read)

    def text(self, sizes: Mapping[str, int]) -> str:
        """All of it; ``sizes``: of the engine."""
        lines = ["# TYPE gst_requests_total counter"]
        for (name, status), count in sorted(self.requests.items()):
            lines.append(f'gst_requests_total{{path="/{name}",status="{status}"}} {count}')
        lines.append("# TYPE gst_request_seconds histogram")
        for name, histogram in self.seconds.items():
            lines += histogram.lines("gst_request_seconds", f'path="/{name}"')
        lines += ["# TYPE gst_nodes_read histogram", *self.reads.lines("gst_nodes_read")]
        for name, value in (("answers", self.nodes), ("updates", self.updates)):
            lines += [f"# TYPE gst_{name}_total counter", f"gst_{name}_total {value}"]
        for name, value in sizes.items():
            lines += [f"# TYPE gst_graph_{name} gauge", f"gst_graph_{name} {value}"]
        return "\n".join(lines) + "\n"
