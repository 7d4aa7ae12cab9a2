"""Write the names of all properties that members of Hazelcast know: run ``python -m docs.generators.product_properties``.

They are text constants in the classes of the product's jars, which ``make test-hazelcast`` brings. Properties that members of
ours have are left out.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from zipfile import ZipFile

from quarterdeck.backend.core.properties import PROPERTIES
from quarterdeck.backend.service.configuration.configuration_file import NAMES_FILE, PREFIX
from tests.hazelcast.real.real_cluster import jar_of

VERSIONS = ("4.2.8", "5.3.8", "5.5.0", "5.6.0", "5.7.0")
OLDER = (
    "client.engine.thread.count", "cluster.version.auto.upgrade.enabled", "diagnostics.metric.level", "icmp.enabled",
    "mancenter.enabled", "map.replica.wait.seconds.for.scheduled.tasks", "rest.enabled",
)  # fmt: skip
"""Names that stand in files of operators, from versions before those, or from the product's closed parts."""
NAME = re.compile(r"hazelcast\.[a-zA-Z][A-Za-z0-9]*(?:[.-][A-Za-z0-9]+)*")
NO_PROPERTIES = re.compile(
    r"hazelcast\.(serialization\.(ds|jet|json|lambda|metrics|schema|sql|util)|client\.(?!engine|max)|xml|build$|instance\.|osgi|named\.jcache)"
)
"""What is written in the same way and is something else: serializers, settings of clients, names of files."""
SIZES = {3: 5, 4: 5, 5: 9, 6: 9, 7: 3, 8: 3, 9: 5, 10: 5, 11: 5, 12: 5, 15: 4, 16: 3, 17: 5, 18: 5, 19: 3, 20: 3}
"""Bytes of each kind of constant but text (The Java Virtual Machine Specification, 4.4)."""
TEXT, TWO_PLACES = 1, (5, 6)


def texts_of(compiled: bytes) -> Iterator[str]:
    """Yield the text constants of a compiled class."""
    (count,) = struct.unpack_from(">H", compiled, 8)
    at, number = 10, 1
    while number < count:
        kind = compiled[at]
        if kind == TEXT:
            (length,) = struct.unpack_from(">H", compiled, at + 1)
            yield compiled[at + 3 : at + 3 + length].decode("utf-8", "replace")
            at += 3 + length
        else:
            at += SIZES[kind]
        number += 2 if kind in TWO_PLACES else 1


def properties_of(version: str) -> set[str]:
    """Return the names of the properties that a version knows and members of ours do not."""
    with ZipFile(jar_of(version)) as jar:
        classes = (name for name in jar.namelist() if name.startswith("com/hazelcast/") and name.endswith(".class"))
        found = {text for name in classes for text in texts_of(jar.read(name)) if NAME.fullmatch(text)}
    return {name for name in found if not NO_PROPERTIES.match(name)} - PROPERTIES.keys()


def write_names() -> None:
    """Write the names with their versions, in the order of the alphabet."""
    known = {version: properties_of(version) for version in VERSIONS}
    lines = [
        f"# Properties of Hazelcast {', '.join(VERSIONS)}, written by `python -m docs.generators.product_properties`."
    ]
    for name in sorted({PREFIX + name for name in OLDER}.union(*known.values())):
        having = [version for version in VERSIONS if name in known[version]] or ["other", "other"]
        lines.append(f"{name.removeprefix(PREFIX)} {having[0]} {having[-1]}")
    NAMES_FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_names()
