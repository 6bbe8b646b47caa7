"""The manifests for Kubernetes are what kubectl and the service expect."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

FOLDER = Path("deploy/kubernetes")


def test_the_manifests_build() -> None:
    """All resources, in one namespace, without the example."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("there is no kubectl")
    built = subprocess.run([kubectl, "kustomize", str(FOLDER)], capture_output=True, text=True, timeout=60)
    if "unknown command" in built.stderr or "not found" in built.stderr:
        pytest.skip("this kubectl has no kustomize")
    assert built.returncode == 0, built.stderr
    kinds = [line.split()[1] for line in built.stdout.splitlines() if line.startswith("kind: ")]
    assert sorted(kinds) == sorted(
        ["Namespace", "ServiceAccount", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "ClusterRoleBinding",
         "ClusterRoleBinding", "Service", "PersistentVolumeClaim", "Deployment", "Deployment",
         "NetworkPolicy"]
    )  # fmt: skip


def test_every_file_is_part_of_the_deployment_or_the_example() -> None:
    """None is forgotten in kustomization.yaml."""
    text = (FOLDER / "kustomization.yaml").read_text()
    others = {path.name for path in FOLDER.iterdir()} - {"kustomization.yaml", "example-pod.yaml"}
    assert {name for name in others if name not in text} == set()


def test_no_service_is_without_tokens_and_the_scheduler_has_one() -> None:
    """The image has no `--without-tokens`; the token is put where the documentation says."""
    assert '--without-tokens"' not in Path("deploy/Containerfile").read_text()
    assert "--tokens, /etc/placer/tokens.toml" in (FOLDER / "placer.yaml").read_text()
    assert "http://scheduler:TOKEN@placer" in (FOLDER / "scheduler-configuration.yaml").read_text()
    assert "secretName: nf-placer-scheduler" in (FOLDER / "scheduler.yaml").read_text()
    assert "s/TOKEN@/$token@/" in Path("docs/how-to/kubernetes.md").read_text()


def test_the_scheduler_calls_the_routes_that_there_are() -> None:
    """Verbs and the resource that is managed are those of the extender."""
    text = (FOLDER / "scheduler-configuration.yaml").read_text()
    verbs = (f"{verb}Verb: {verb}" for verb in ("filter", "prioritize", "preempt", "bind"))
    for wanted in ("/k8s/v1", *verbs, "nf-placer.io/nf"):
        assert wanted in text
    assert "nodeCacheCapable: true" in text


def test_a_lost_volume_is_no_empty_fleet() -> None:
    """What the first start leaves out is the argument that the manual names."""
    documents = yaml.safe_load_all((FOLDER / "placer.yaml").read_text())
    (deployment,) = (one for one in documents if one["kind"] == "Deployment")
    assert deployment["spec"]["template"]["spec"]["containers"][0]["args"][4] == "--existing"
    assert "containers/0/args/4" in Path("docs/how-to/kubernetes.md").read_text()
