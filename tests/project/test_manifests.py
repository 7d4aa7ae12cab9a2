"""The manifests are what the API of Kubernetes takes: each fits the schemas of its oldest and newest releases, strictly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

MANIFESTS = Path(__file__).parents[2] / "docs" / "operators" / "kubernetes"
BASE = yaml.safe_load((MANIFESTS / "kustomization.yaml").read_text())
FILES = [*BASE["resources"], "watcher-role.yaml"]
DOCUMENTS = [document for file in FILES for document in yaml.safe_load_all((MANIFESTS / file).read_text())]
OLDEST, NEWEST = "1.25", "1.37"


@pytest.mark.parametrize("release", [OLDEST, NEWEST])
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document["kind"])
def test_a_manifest_fits_the_schema_of_the_api(document: dict[str, Any], release: str) -> None:
    kubernetes_validate.validate(document, release, strict=True)


def test_a_field_that_the_api_does_not_know_is_noticed() -> None:
    (budget,) = (document for document in DOCUMENTS if document["kind"] == "PodDisruptionBudget")
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(budget | {"spec": {"maxUnavailble": 1}}, NEWEST, strict=True)


def test_the_base_has_what_it_names() -> None:
    kinds = {document["kind"] for document in DOCUMENTS}
    assert {"StatefulSet", "Service", "Deployment", "PodDisruptionBudget", "Role"} <= kinds
    assert all((MANIFESTS / name).exists() for source in BASE["configMapGenerator"] for name in source["files"])
    (members,) = (document for document in DOCUMENTS if document["kind"] == "StatefulSet")
    (member,) = members["spec"]["template"]["spec"]["containers"]
    assert {"livenessProbe", "readinessProbe", "startupProbe"} <= member.keys()
