"""A SuperLink and SuperNodes of Flower as processes of their own on the loopback interface, with TLS and a key for every node.

What tests and `benchmarks/speed/network.py` run over, and a rehearsal of what docs/flower.md has operators do: the same commands, a
certificate authority made here. Nothing leaves the machine: telemetry, update checks and installs at run time are off.
"""

import datetime
import ipaddress
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from cryptography.x509.oid import NameOID

ROOT = Path(__file__).resolve().parents[2]
# Seconds that a process has to start; a busy machine takes a while to import Flower.
START = 90.0
# Seconds that a step of a run may take.
LONG = 600.0


class Loopback:
    """A federation on one machine; all its processes end with the ``with`` block.

    Args:
        folder: for keys, certificates, logs and Flower's own files.
        simulation: a SuperLink that simulates its nodes, without TLS, instead of one that nodes connect to.
    """

    def __init__(self, folder, *, simulation=False):
        self.folder, self.simulation = folder, simulation
        self.address = f"127.0.0.1:{free_port()}"
        self.processes = {}
        commands = Path(sys.executable).parent
        self.environment = {
            **os.environ,
            "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "FLWR_HOME": str(folder / "flower"),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
            "RAY_USAGE_STATS_ENABLED": "0",
            "PYTHONUNBUFFERED": "1",
        }

    def __enter__(self):
        (self.folder / "flower").mkdir(parents=True)
        trust = (
            "insecure = true"
            if self.simulation
            else f'root-certificates = "{self.folder / "ca.pem"}"'
        )
        text = f'[superlink]\ndefault = "here"\n\n[superlink.here]\naddress = "{self.address}"\n{trust}\n'
        (self.folder / "flower" / "config.toml").write_text(text)
        host, port = self.address.split(":")
        words = f"flower-superlink --host {host} --port {port} --disable-runtime-dependency-installation"
        if self.simulation:
            words += " --insecure --simulation"
        else:
            certify(self.folder)
            words += " --ssl-ca-certfile ca.pem --ssl-certfile server.pem --ssl-keyfile server.key"
            words += " --enable-supernode-auth"
        try:
            self.start("superlink", *words.split())
            self._until_it_listens()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self, name, *words, **environment):
        """Start a command whose output goes to ``NAME.log``, appended; it leads a session of its own."""
        with open(self.folder / f"{name}.log", "ab") as log:
            process = subprocess.Popen(
                [str(word) for word in words],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env={**self.environment, **environment},
                start_new_session=True,
            )
        self.processes[name] = process
        return process

    def flwr(self, *words):
        """What a ``flwr`` command prints.

        Raises:
            subprocess.CalledProcessError: it failed.
        """
        run = subprocess.run(
            ["flwr", *map(str, words)],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=START,
        )
        if run.returncode:
            raise RuntimeError(
                f"flwr {' '.join(map(str, words))} failed:\n{run.stdout}{run.stderr}"
            )
        return run.stdout

    def register(self, name):
        """Make a node's key pair and have the SuperLink know its public half under a name."""
        key = ec.generate_private_key(ec.SECP384R1())
        write(
            self.folder / f"{name}.node.key",
            key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()),
        )
        public = self.folder / f"{name}.node.pub"
        public.write_bytes(key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH))
        self.flwr("supernode", "register", public, "here", "--name", name)

    def start_node(self, name, settings):
        """Start a registered node's SuperNode with its ``--node-config``."""
        config = " ".join(f'{key}="{value}"' for key, value in settings.items())
        words = f"--superlink {self.address} --root-certificates ca.pem --port {free_port()}"
        key = ["--auth-supernode-private-key", f"{name}.node.key"]
        return self.start(name, "flower-supernode", *words.split(), *key, "--node-config", config)

    def revive(self, name, settings):
        """Start a killed node again, as often as it takes, as a service manager would.

        For up to a minute the SuperLink takes a node that did not say goodbye for online, and refuses another with its key.
        """
        sign = "SuperNode ID:"
        before = self.log_of(name).count(sign)
        end = time.monotonic() + START + 60
        while self.log_of(name).count(sign) == before:
            if name not in self.processes or self.processes[name].poll() is not None:
                self.start_node(name, settings)
            if time.monotonic() > end:
                raise RuntimeError(f"The node {name} does not come back:\n{self.log_of(name)}")
            time.sleep(3.0)

    def kill(self, name):
        """SIGKILL a process and all that it started, as a power cut would."""
        process = self.processes.pop(name)
        for pid in [process.pid, *descendants(process.pid)]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.wait()

    def run_app(self, settings, *words):
        """Start the app of examples/flower with a ``--run-config``; the run's id."""
        config = " ".join(f"{key}={json.dumps(value)}" for key, value in settings.items())
        output = self.flwr(
            "run",
            ROOT / "examples" / "flower",
            "here",
            "--run-config",
            config,
            "--format",
            "json",
            *words,
        )
        return str(json.loads(output[output.index("{") :])["run-id"])

    def until(self, there, run, pause=0.3):
        """Wait until something is so; raises what the run's apps printed if it takes long."""
        end = time.monotonic() + LONG
        while not there():
            if time.monotonic() > end:
                raise RuntimeError(self.run_log(run))
            time.sleep(pause)

    def end(self, run, result):
        """Wait for a run's result and its end; raises what its apps printed if it does not end well."""
        # To ask Flower is to start a process, which would take the cores from those that are asked about.
        self.until(result.exists, run)
        asked = "list", "here", "--run-id", run, "--format", "json"
        self.until(lambda: "finished:" in self.flwr(*asked), run, 3.0)
        if "finished:completed" not in self.flwr(*asked):
            raise RuntimeError(self.run_log(run))

    def log_of(self, name):
        """What a process has printed so far."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def run_log(self, run):
        """What the apps of a finished run printed."""
        return self.flwr("log", run, "here", "--show")

    def stop(self):
        """End everything that was started."""
        for name in list(self.processes):
            self.kill(name)

    def _until_it_listens(self):
        host, port = self.address.split(":")
        end = time.monotonic() + START
        while self.processes["superlink"].poll() is None and time.monotonic() < end:
            try:
                socket.create_connection((host, int(port)), 1).close()
                return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError(f"The SuperLink does not start:\n{self.log_of('superlink')}")


def free_port():
    """A port of the loopback interface that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def descendants(pid):
    """Processes that a process started, and theirs."""
    children = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
        children.setdefault(parent, []).append(int(entry.name))
    out, left = [], [pid]
    while left:
        process = children.get(left.pop(), [])
        out += process
        left += process
    return out


def certify(folder):
    """Make a certificate authority, ``ca.pem``, and the SuperLink's key and certificate, ``server.key`` and ``server.pem``."""
    authority, server = (
        ec.generate_private_key(ec.SECP256R1()),
        ec.generate_private_key(ec.SECP256R1()),
    )
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "vertimrf rehearsal")])
    here = x509.SubjectAlternativeName(
        [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    )
    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    known = x509.SubjectKeyIdentifier.from_public_key(authority.public_key())
    by = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())
    leaf = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "superlink")])
    certificate = builder(issuer, issuer, authority.public_key()).add_extension(
        x509.BasicConstraints(True, 0), True
    )
    certificate = certificate.add_extension(usage, True).add_extension(known, False)
    its = builder(leaf, issuer, server.public_key()).add_extension(
        x509.BasicConstraints(False, None), True
    )
    its = its.add_extension(here, False).add_extension(by, False)
    write(
        folder / "ca.pem", certificate.sign(authority, hashes.SHA256()).public_bytes(Encoding.PEM)
    )
    write(folder / "server.pem", its.sign(authority, hashes.SHA256()).public_bytes(Encoding.PEM))
    write(
        folder / "server.key",
        server.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )


def builder(subject, issuer, key):
    now = datetime.datetime.now(datetime.UTC)
    return x509.CertificateBuilder(
        issuer,
        subject,
        key,
        x509.random_serial_number(),
        now - datetime.timedelta(hours=1),
        now + datetime.timedelta(days=2),
    )


def write(path, data):
    """A file for its owner alone."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
