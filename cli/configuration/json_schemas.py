"""The JSON Schemas of the files that people write, from the models that read these files."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class FileKind(StrEnum):
    SCENARIO = "scenario"
    MODEL = "model"
    MEMBER = "member"
    USER = "user"


def schema_of(kind: FileKind) -> dict[str, Any]:
    """Return the schema of this kind of file. Checks that look at several fields at once are not part of it."""
    from pydantic import create_model

    from quarterdeck.backend.scenarios.format.scenario import Scenario
    from quarterdeck.backend.service.configuration.configuration_file import MemberFile
    from quarterdeck.backend.simulation.model_checking.reading import ModelFile
    from quarterdeck.cli.configuration.console_section import ConsoleSection
    from quarterdeck.cli.configuration.user_configuration import UserDocument

    match kind:
        case FileKind.SCENARIO:
            schema = Scenario.model_json_schema()
        case FileKind.MODEL:
            schema = ModelFile.model_json_schema()
        case FileKind.MEMBER:
            schema = MemberFile.model_json_schema()
        case FileKind.USER:
            whole = create_model("UserFile", __base__=UserDocument, console=(ConsoleSection, ConsoleSection()))
            schema = whole.model_json_schema()
    return {"$schema": DIALECT, **schema, "title": f"Quarterdeck: {kind}"}
