"""The laboratory: the paper's experiments, their record and the report; nothing outside lab and cli imports it."""
