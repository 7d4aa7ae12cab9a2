"""All rules of the audit; importing this file registers them."""

from backend.pipeline.rules import numbering, views
from backend.pipeline.rules.registry import RULES, all_findings

__all__ = ["RULES", "all_findings", "numbering", "views"]
