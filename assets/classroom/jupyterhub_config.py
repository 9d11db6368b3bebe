"""A class on one server: JupyterHub, one JupyterLab a student. README.md in this folder says how to use it.

Students sign in with accounts of this machine. MHSA_CLASS_PASSWORD="…" instead makes a session for an hour: any name,
one password, no accounts; all work then runs as the user who started the hub.
"""

import itertools
import os
import random
import sys
from pathlib import Path

from platformdirs import user_state_path

COURSE = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
STATE = user_state_path("mhsa-hub")  # the hub's secrets; students' work in a session
STATE.mkdir(mode=0o700, parents=True, exist_ok=True)
os.environ["PATH"] = os.pathsep.join([str(BIN), os.environ["PATH"]])

c = get_config()  # noqa: F821

# Where: this machine alone. README.md: the way in for students is a TLS proxy, or a certificate here.
c.JupyterHub.bind_url = "http://127.0.0.1:8000"
c.JupyterHub.db_url = f"sqlite:///{STATE / 'jupyterhub.sqlite'}"
c.JupyterHub.cookie_secret_file = str(STATE / "cookie_secret")
c.ConfigurableHTTPProxy.pid_file = str(STATE / "proxy.pid")

# Who
password = os.environ.pop("MHSA_CLASS_PASSWORD", None)
if password is None:
    c.JupyterHub.authenticator_class = "pam"
    c.JupyterHub.spawner_class = "jupyterhub.spawner.LocalProcessSpawner"  # each as the system user of that name
    c.PAMAuthenticator.allowed_groups = {"mhsa"}  # not every account of the machine
    c.PAMAuthenticator.admin_users = {COURSE.owner()} - {"root"}  # the teacher
elif os.geteuid() == 0 and not os.environ.get("MHSA_CLASS_ROOT"):
    sys.exit(
        "With a class password all students work as the user who starts the hub, and that is root: start it as an "
        "ordinary user. In a container that is thrown away afterwards: MHSA_CLASS_ROOT=1"
    )
else:
    c.JupyterHub.authenticator_class = "shared-password"
    c.JupyterHub.spawner_class = "simple"  # a folder each, but one system user
    c.SharedPasswordAuthenticator.user_password = password
    c.SharedPasswordAuthenticator.allow_all = True
    c.SimpleLocalProcessSpawner.home_dir_template = str(STATE / "students/{username}")

# What a student gets: the lessons' newest state in ~/course, JupyterLab with the course's settings
c.Spawner.cmd = [str(COURSE / "assets/classroom/student.sh")]
c.Spawner.args = [
    "--MappingKernelManager.cull_idle_timeout=1800",  # seconds; the notebook itself is kept
    "--MappingKernelManager.kernel_info_timeout=300",  # thirty kernels start at once
]
c.Spawner.mem_limit = "1500M"  # of each process: student.sh
c.Spawner.notebook_dir = "~"
c.Spawner.default_url = "/lab/tree/course/notebooks/00_start_here.ipynb"
c.Spawner.environment = {
    "JUPYTER_CONFIG_PATH": str(COURSE / ".jupyter"),
    "OMP_NUM_THREADS": "1",  # thirty kernels share the cores
    "PYTHONPATH": str(COURSE / ".jupyter/lean"),  # leaves out what costs memory and is not needed
}

# Thirty start at once on few cores
c.Spawner.start_timeout = 300
c.Spawner.http_timeout = 300
ports = itertools.cycle(random.sample(range(20_000, 30_000), 10_000))  # none twice; higher ones the system gives away


def own_port(spawner):
    spawner.port = next(ports)


c.Spawner.pre_spawn_hook = own_port

# A server that nobody uses is stopped after an hour
c.JupyterHub.services = [
    {"name": "idle-culler", "command": [sys.executable, "-m", "jupyterhub_idle_culler", "--timeout=3600"]}
]
c.JupyterHub.load_roles = [
    {
        "name": "idle-culler",
        "services": ["idle-culler"],
        "scopes": ["list:users", "read:users:activity", "read:servers", "delete:servers"],
    }
]
