"""What the console's interface answers with, and what it is handed (docs/reference/http-api.md): partitions, migrations, maps."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, model_validator

from quarterdeck.backend.core.partitions.migration.migration_service import Endpoint
from quarterdeck.backend.core.partitions.migration.migration_steps import Kind
from quarterdeck.backend.service.console_api.models import RequestModel, ResponseModel


class HolderEntry(ResponseModel):
    address: str
    uuid: str


class Table(ResponseModel):
    """Rows `first` to `last` of the partition table.

    Each row is the partition, its version, and for every replica index the place of its holder in `holders`, -1 for nobody.
    `next` is where to go on, null after the last row.
    """

    table_version: int
    digest: str
    partitions: int
    replicas: int
    """How many replica indices there are."""
    holders: tuple[HolderEntry, ...]
    rows: tuple[tuple[int, ...], ...]
    next: int | None


class Planned(ResponseModel):
    partition: int
    type: Kind
    source: str | None
    destination: str | None
    replica_index: int
    unavoidable: bool


class Migration(ResponseModel):
    migration_id: str
    partition: int
    type: Kind
    source: str | None
    source_current: int
    source_new: int
    destination: str
    destination_current: int
    destination_new: int
    owner: str
    unavoidable: bool


class Running(Migration):
    phase: Literal["copying", "committing"]
    since_us: int


class Finished(Migration):
    committed: bool
    reason: str
    at_us: int
    took_us: int


class TakingPart(ResponseModel):
    migration_id: str
    partition: int
    endpoint: Endpoint
    current_replica_index: int
    new_replica_index: int


class LostPartition(ResponseModel):
    partition: int
    at_us: int


class Draining(ResponseModel):
    address: str
    since_us: int


class Recovery(ResponseModel):
    asked: tuple[str, ...]
    since_us: int


class Migrations(ResponseModel):
    """What this member leads as a master, and what it takes part in. Of long lists only the beginning, or the end, is there."""

    leading: bool
    recovering: Recovery | None
    draining: tuple[Draining, ...]
    moves: int
    lower_bound: int
    why: str
    cancelled: int
    queued: int
    running_count: int
    done: int
    failed: int
    lost: int
    planned: tuple[Planned, ...]
    running: tuple[Running, ...]
    taking_part: tuple[TakingPart, ...]
    ended: tuple[Finished, ...]
    """The latest first."""
    lost_partitions: tuple[LostPartition, ...]


# Maps


class Entry(ResponseModel):
    """A value of a map. One that is no UTF-8 text is given as base64."""

    key: str
    found: bool
    value: str | None = None
    value_base64: str | None = None


class NewValue(RequestModel):
    """Exactly one of the two."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"value": "Byzantium"}]})
    value: str | None = None
    value_base64: str | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> NewValue:
        if (self.value is None) == (self.value_base64 is None):
            raise ValueError("give either value, as text, or value_base64")
        return self


class MapSize(ResponseModel):
    size: int


class MapKeys(ResponseModel):
    keys: tuple[str, ...]
