"""`quarterdeck map export` and `map import`: entries of maps to a folder, and back into a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from quarterdeck.cli.commands.map.operations import group
from quarterdeck.cli.configuration.connection import ConnectionTarget, with_connection
from quarterdeck.cli.configuration.opening import asked
from quarterdeck.cli.exits import ExitCode, failing_as
from quarterdeck.cli.output import Format, FormatOption, argument, option, write_document

if TYPE_CHECKING:
    from quarterdeck.backend.clusters.remote.map_backup import ExportFolder

FolderArgument = Annotated[Path, argument("The folder of the export.", "DIR")]
MapChoice = Annotated[str, option("Only this map; all by default.", "NAME", "--map")]


@group.command("export")
@with_connection
def export_command(
    connection: ConnectionTarget, folder: FolderArgument, name: MapChoice = "", output: FormatOption = Format.JSON
) -> None:
    """Write all maps, or one, into a folder: JSON lines for each partition, as it is at one moment, with checksums.

    Members go on serving. Run it again after an interruption: it goes on with the partitions that are missing.
    """
    from quarterdeck.backend.clusters.remote.map_backup import BadExportFolder, export_maps

    target = connection.require_http_api()
    with failing_as(ExitCode.BAD_INPUT, BadExportFolder, OSError):
        exported = asked(target, lambda client: export_maps(client, list(target.urls), folder, name))
    write_document(_counted(exported), output)


@group.command("import")
@with_connection
def import_command(
    connection: ConnectionTarget, folder: FolderArgument, name: MapChoice = "", output: FormatOption = Format.JSON
) -> None:
    """Store all entries of an export, or those of one map, in place of what is there under their keys.

    Nothing is stored before the whole export is checked. Run it again after an interruption: it goes on with the next partition.
    """
    from quarterdeck.backend.clusters.remote.map_backup import BadExportFolder, ExportFolder, import_maps

    target = connection.require_http_api().require_writable()
    with failing_as(ExitCode.BAD_INPUT, BadExportFolder, OSError):
        exported = ExportFolder.opened(folder)
        stored = asked(target, lambda client: import_maps(client, list(target.urls), exported, name))
    write_document(_counted(exported) | {"stored": stored}, output)


def _counted(exported: ExportFolder) -> dict[str, object]:
    files = exported.files.values()
    return {
        "folder": str(exported.path),
        "cluster": exported.head.cluster,
        "map": exported.head.map or None,
        "partitions": len(files),
        "entries": sum(file.entries for file in files),
        "bytes": sum(file.bytes for file in files),
    }
