"""Everything members say to one another. One class per kind; the union `Message` is what crosses a wire."""

from __future__ import annotations

from typing import get_args

from quarterdeck.backend.core.data.messages import DataMessage
from quarterdeck.backend.core.membership.messages import MembershipMessage
from quarterdeck.backend.core.partitions.messages import PartitionMessage

Message = MembershipMessage | PartitionMessage | DataMessage

MESSAGE_KINDS: dict[str, type[Message]] = {str(kind.__struct_config__.tag): kind for kind in get_args(Message)}
"""Every kind of message by its name on the wire and in scenario files."""
