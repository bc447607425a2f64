"""`deploy/`: what can be known of it without Docker and without a cluster."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest
import typer
import yaml
from dagster._cli import create_dagster_cli
from dagster._core.instance.config import dagster_instance_config
from dagster._core.workspace.config_schema import process_workspace_config
from dagster._daemon.cli import create_dagster_daemon_cli
from dagster_webserver.cli import dagster_webserver
from sqlalchemy import make_url

from patra_ingest.cli.app import app
from patra_ingest.ledger.db import open_db
from patra_ingest.settings import Settings

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
COMPOSE = DEPLOY / "compose"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PINS = dict(re.findall(r'"([\w-]+)==([\d.]+)"', (ROOT / "pyproject.toml").read_text()))
PROGRAMS = {
    "patra": typer.main.get_command(app),
    "dagster": create_dagster_cli(),
    "dagster-daemon": create_dagster_daemon_cli(),
    "dagster-webserver": dagster_webserver,
}
# The chart's own schema, helm/dagster/schema/schema/charts/dagster/values.py.
CHART_KEYS = {
    *("dagsterWebserver", "dagster-user-deployments", "postgresql", "rabbitmq", "redis", "flower"),
    *("generatePostgresqlPasswordSecret", "generateCeleryConfigSecret", "ingress", "busybox"),
    *("imagePullSecrets", "computeLogManager", "scheduler", "runLauncher", "pythonLogs"),
    *("dagsterDaemon", "migrate", "telemetry", "serviceAccount", "global", "retention"),
    *("concurrency", "additionalInstanceConfig"),
}


def documents(path):
    return list(yaml.safe_load_all((DEPLOY / path).read_text()))


COMPOSED = documents("compose/compose.yaml")[0]
SERVICES = COMPOSED["services"]
OURS = {name: one for name, one in SERVICES.items() if name != "mysql"}
VALUES = documents("kubernetes/values.yaml")[0]
USER_CODE = VALUES["dagster-user-deployments"]["deployments"][0]
MANIFESTS = {one["kind"]: one for one in documents("kubernetes/workers.yaml")}
PODS = [MANIFESTS[kind]["spec"]["template"]["spec"] for kind in ("Job", "Deployment")]
CHART_GRPC = ["dagster", "api", "grpc", "-h", "0.0.0.0", "-p", str(USER_CODE["port"])]
COMMANDS = [
    *(one["command"] for one in OURS.values()),
    *(one["healthcheck"]["test"][1:] for one in OURS.values() if "healthcheck" in one),
    *(pod["containers"][0]["args"] for pod in PODS),
    CHART_GRPC + USER_CODE["dagsterApiGrpcArgs"],
]


def require_understood(words):
    """Fail unless a program of ours or of Dagster's has this command and these options."""
    program, *rest = words
    command = PROGRAMS[program]
    while children := getattr(command, "commands", None):
        command = children[rest.pop(0)]
    context = command.context_class(command, info_name=program)
    _, left, _ = command.make_parser(context).parse_args(rest)
    assert left == []


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_can_be_typed(words):
    if words[0] == "python":
        compile(words[2], "the health check", "exec")
        return
    require_understood(words)
    for flag, module in pairwise(words):
        if flag == "-m":
            assert find_spec(module)


def test_a_command_that_does_not_exist_is_noticed():
    with pytest.raises(KeyError):
        require_understood(["patra", "toil"])
    with pytest.raises(Exception, match="--lane-count"):
        require_understood(["patra", "work", "--lane-count", "4"])


@pytest.mark.parametrize(
    "given",
    [*(one["environment"] for one in OURS.values()), MANIFESTS["ConfigMap"]["data"]],
    ids=[*OURS, "kubernetes"],
)
def test_every_variable_is_a_setting_with_a_value_that_makes_sense(given):
    ours = {name: value for name, value in given.items() if name.startswith("PATRA_")}
    told = {name: re.sub(r"\$\{\w+:-(.*?)\}", r"\1", value) for name, value in ours.items()}
    fields = {name.removeprefix("PATRA_").lower(): value for name, value in told.items()}

    assert set(fields) <= set(Settings.model_fields)
    assert str(Settings(**fields).home) == "/var/lib/patra"
    assert {name for name in given if name not in ours} <= {"DAGSTER_HOME"}


def test_what_a_service_refers_to_is_there():
    for one in SERVICES.values():
        assert set(one.get("depends_on", {})) <= set(SERVICES)
        assert set(one["secrets"]) <= set(COMPOSED["secrets"])
        for source, target, *_ in (volume.split(":") for volume in one["volumes"]):
            if source.startswith("."):
                assert (COMPOSE / source).is_file(), target
            else:
                assert source in COMPOSED["volumes"]


def test_a_service_waits_only_for_health_that_somebody_looks_after():
    for one in SERVICES.values():
        for name, wanted in one.get("depends_on", {}).items():
            if wanted["condition"] == "service_healthy":
                assert "healthcheck" in SERVICES[name]
            else:
                assert SERVICES[name]["restart"] == "no", f"{name} would never be complete"


def test_dagster_is_seen_from_this_machine_only_and_nothing_else_is_published():
    published = {name: one["ports"] for name, one in SERVICES.items() if "ports" in one}

    assert published == {"webserver": ["127.0.0.1:3000:3000"]}


def test_there_is_one_daemon_and_there_are_several_workers():
    assert "container_name" in SERVICES["daemon"], "it cannot be scaled"
    assert SERVICES["worker"]["deploy"]["replicas"] >= 2
    assert "container_name" not in SERVICES["worker"]
    assert MANIFESTS["Deployment"]["spec"]["replicas"] >= 2


def test_the_server_lets_a_silent_client_go_long_before_workers_give_up():
    (option,) = [word for word in SERVICES["mysql"]["command"] if "--wait-timeout" in word]

    assert 30 < int(option.partition("=")[2]) <= 120


def test_dagster_accepts_the_file_that_compose_mounts():
    home = SERVICES["daemon"]["environment"]["DAGSTER_HOME"]
    mounts = (volume.split(":") for volume in SERVICES["daemon"]["volumes"])
    (source,) = [one[0] for one in mounts if one[1] == f"{home}/dagster.yaml"]

    config, _ = dagster_instance_config(str((COMPOSE / source).parent))

    assert config["storage"] == {"mysql": {"mysql_url": {"env": "DAGSTER_MYSQL_URL"}}}
    assert config["run_monitoring"]["enabled"]


def test_the_workspace_names_the_code_location_where_it_is_served():
    config = yaml.safe_load((COMPOSE / "workspace.yaml").read_text())
    local = yaml.safe_load((ROOT / "workspace.yaml").read_text())

    assert process_workspace_config(config).success
    (server,) = (one["grpc_server"] for one in config["load_from"])
    assert server["host"] in SERVICES
    assert str(server["port"]) in SERVICES[server["host"]]["command"]
    assert server["location_name"] == local["load_from"][0]["python_module"]["location_name"]


@pytest.fixture
def secrets(tmp_path):
    """The secrets folder, as the script makes it."""
    shutil.copy(COMPOSE / "make-secrets.sh", tmp_path)
    subprocess.run(["sh", tmp_path / "make-secrets.sh"], check=True)
    return tmp_path / "secrets"


def test_the_secrets_are_made_once_and_fit_each_other(secrets):
    made = {file.name: file.read_text() for file in secrets.iterdir()}
    subprocess.run(["sh", secrets.parent / "make-secrets.sh"], check=True)

    assert {file.name: file.read_text() for file in secrets.iterdir()} == made
    assert set(made) == set(COMPOSED["secrets"])
    assert secrets.stat().st_mode & 0o077 == 0
    for variable, name in (("PATRA_DB_URL", "patra"), ("DAGSTER_MYSQL_URL", "dagster")):
        url = make_url(made[variable])
        assert (url.username, url.database, url.host) == (name, name, "mysql")
        assert re.fullmatch("[0-9a-f]{48}", made[f"mysql_{name}"])
        assert url.password == made[f"mysql_{name}"]
        arguments = open_db(made[variable]).engine.dialect.create_connect_args(url)[1]
        assert arguments["read_timeout"] > Settings().db_timeout_seconds, "a lock may take as long"


def test_a_secret_named_like_a_variable_becomes_it_and_no_other(secrets):
    (secrets / "CROSSREF_TOKEN").write_text("a b$c'd\n")
    show = "import os; print(os.getpid(), sorted(os.environ), repr(os.environ['CROSSREF_TOKEN']))"
    process = subprocess.Popen(
        ["sh", COMPOSE / "enter.sh", sys.executable, "-c", show],
        env={"PATH": os.environ["PATH"], "SECRETS_FOLDER": str(secrets)},
        stdout=subprocess.PIPE,
        text=True,
    )
    said, _ = process.communicate(timeout=30)

    assert process.returncode == 0
    assert said.startswith(f"{process.pid} "), "the command takes the shell's place"
    assert {"PATRA_DB_URL", "DAGSTER_MYSQL_URL"} <= set(re.findall(r"'([A-Z_]+)'", said))
    assert "mysql_root" not in said
    assert said.endswith('"a b$c\'d"\n')


def test_no_secrets_folder_is_no_problem(tmp_path):
    alone = {"PATH": os.environ["PATH"], "SECRETS_FOLDER": str(tmp_path / "none")}

    subprocess.run(["sh", COMPOSE / "enter.sh", "true"], env=alone, check=True)


def test_what_the_image_is_built_from_is_there_and_not_ignored():
    recipe = (COMPOSE / "Dockerfile").read_text()
    let_in = [
        line[1:]
        for line in (COMPOSE / "Dockerfile.dockerignore").read_text().splitlines()
        if line.startswith("!")
    ]
    copied = [shlex.split(line)[1:-1] for line in re.findall(r"^COPY .*$", recipe, re.MULTILINE)]

    for source in (word for words in copied for word in words if not word.startswith("--")):
        assert (ROOT / source).exists()
        assert any(fnmatch(source, pattern) for pattern in let_in), source
    assert {one["build"]["target"] for one in OURS.values()} <= set(re.findall(r"AS (\w+)", recipe))


def test_versions_move_together():
    recipe = (COMPOSE / "Dockerfile").read_text()
    tag = f"{PROJECT['version']}-kubernetes"

    assert {one["image"] for one in OURS.values()} == {f"patra-ingest:{PROJECT['version']}"}
    assert USER_CODE["image"]["tag"] == tag
    assert {pod["containers"][0]["image"].rpartition(":")[2] for pod in PODS} == {tag}
    assert f"--version {PINS['dagster']} " in (DEPLOY / "kubernetes/values.yaml").read_text()
    for extra in ("dagster-k8s", "dagster-postgres"):
        assert f'"{extra}=={PINS["dagster-mysql"]}"' in recipe


def test_the_chart_is_told_only_what_it_knows():
    assert set(VALUES) <= CHART_KEYS
    assert VALUES["runLauncher"]["type"] == "K8sRunLauncher"
    assert VALUES["dagsterDaemon"]["runRetries"] == {"enabled": False}, "the ledger retries"


def test_pods_of_dagster_and_workers_share_settings_secrets_and_folder():
    claim = MANIFESTS["PersistentVolumeClaim"]["metadata"]["name"]
    settings = MANIFESTS["ConfigMap"]["metadata"]["name"]

    assert USER_CODE["envConfigMaps"] == [{"name": settings}]
    assert USER_CODE["includeConfigInLaunchedRuns"]["enabled"]
    for pod in [*PODS, USER_CODE]:
        assert [one["persistentVolumeClaim"]["claimName"] for one in pod["volumes"]] == [claim]
    for pod in PODS:
        (container,) = pod["containers"]
        assert container["envFrom"][0]["configMapRef"]["name"] == settings
        assert [container["envFrom"][1]["secretRef"]] == USER_CODE["envSecrets"]
        assert container["volumeMounts"] == USER_CODE["volumeMounts"]
