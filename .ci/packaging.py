"""What hatchling does not know of itself: links of the README that work on an index's page, and what a release adds.

``make release`` prepares `build/release/share` (man pages, completions of shells) and `build/release/sboms`; a wheel that is
built without it has neither. `QUARTERDECK_REPOSITORY` is the URL of the repository in a browser; without it links stay relative.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

REPOSITORY = "QUARTERDECK_REPOSITORY"
RELEASE = Path("build", "release")
PICTURE = re.compile(r"(!\[[^]]*\]\()(?!https?:|#)([^)]+)\)")
LINK = re.compile(r"(\]\()(?!https?:|#)([^)]+)\)")


class ReadmeAndUrls(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        """Add the README, and, where the repository is known, its links."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        if repository := os.environ.get(REPOSITORY, "").rstrip("/"):
            text = PICTURE.sub(rf"\1{repository}/raw/v{metadata['version']}/\2)", text)
            text = LINK.sub(rf"\1{repository}/blob/v{metadata['version']}/\2)", text)
            metadata["urls"] = {
                "Homepage": repository,
                "Documentation": f"{repository}/blob/v{metadata['version']}/docs/index.md",
                "Changelog": f"{repository}/blob/v{metadata['version']}/CHANGELOG.md",
                "Issues": f"{repository}/issues",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


class ReleaseFiles(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add to a wheel what the release prepared, and to an sdist the folder that holds it."""
        folder = Path(self.root, RELEASE)
        if not folder.is_dir():
            return
        if self.target_name == "sdist":
            build_data["force_include"][str(folder)] = str(RELEASE)
        elif version == "standard":
            if (share := folder / "share").is_dir():
                build_data["shared_data"][str(share)] = "share"
            build_data["sbom_files"] += [str(path.relative_to(self.root)) for path in sorted(folder.glob("sboms/*"))]
