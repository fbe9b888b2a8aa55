"""Storage that a run makes for itself and takes away at its end: an xfs in a file, an sshd for sshfs, an nginx, a slow link.

All end with the run, however it ends: servers get a signal when their parent dies, and a mount of xfs that was left is
taken away by the next run.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .pair import Refused

XFS_BYTES = 4_000_000_000
SFTP_SERVERS = ("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/libexec/sftp-server")


@contextmanager
def xfs(folder: Path) -> Iterator[Path]:
    """An empty xfs, in a file in the folder, through a loop device; Refused if it cannot be had."""
    if os.geteuid() != 0 or shutil.which("mkfs.xfs") is None:
        raise Refused("needs root and mkfs.xfs (package xfsprogs)")
    image, mount = folder / "xfs.image", folder / "xfs"
    subprocess.run(["umount", "-l", mount], capture_output=True, check=False)
    mount.mkdir(exist_ok=True)
    image.write_bytes(b"")
    os.truncate(image, XFS_BYTES)
    try:
        for command in (["mkfs.xfs", "-q", "-f", image], ["mount", "-o", "loop", image, mount]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise Refused(f"{command[0]} failed: {done.stderr.strip()}")
        yield mount
    finally:
        subprocess.run(["umount", mount], capture_output=True, check=False)
        image.unlink()


@dataclass(frozen=True)
class Sshd:
    """A server on the loopback that lets in who has its key."""

    folder: Path
    port: int

    def options(self) -> list[str]:
        """Those of sshfs that lead to it, without what the user or an earlier run has configured, and without caches."""
        ssh = f"ssh -F none -i {self.folder}/key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
        mount = "dir_cache=no,attr_timeout=0,entry_timeout=0,negative_timeout=0"
        return ["-p", f"{self.port}", "-o", f"ssh_command={ssh}", "-o", mount]


@contextmanager
def sshd(folder: Path, program: Path) -> Iterator[Sshd]:
    """A server that lives as long as the context, with keys of its own in the folder."""
    server = next(filter(os.path.exists, SFTP_SERVERS), None)
    if server is None:
        raise Refused("there is no sftp-server")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "key"], check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # where sshd gives up its rights
    settings = ["ListenAddress=127.0.0.1", f"AuthorizedKeysFile={folder}/key.pub", "StrictModes=no", "UsePAM=no"]
    settings += ["PidFile=none", f"Subsystem=sftp {server}"]
    command = ["setpriv", "--pdeathsig", "TERM", program, "-D", "-f", "/dev/null", "-p", port, "-h", folder / "key"]
    words = [str(word) for word in [*command, *(word for setting in settings for word in ("-o", setting))]]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as process:
        try:
            yield Sshd(folder, port)
        finally:
            process.terminate()
    shutil.rmtree(folder)


@contextmanager
def nginx(folder: Path, program: Path, root: Path) -> Iterator[int]:
    """The port of a web server of that directory, with its own files in the folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    names = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{name}_temp_path {folder}/{name}; " for name in names)
    (folder / "conf").write_text(
        f"daemon off; master_process off; user root; pid {folder}/pid; error_log {folder}/error.log;\n"
        "events { worker_connections 256; }\n"
        f"http {{ access_log off; sendfile on; keepalive_requests 1000000; {temporary}\n"
        f"server {{ listen 127.0.0.1:{port}; root {root}; }} }}\n"
    )
    command = ["setpriv", "--pdeathsig", "TERM", program, "-p", folder, "-c", folder / "conf"]
    with subprocess.Popen([str(word) for word in command], stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(port)
            yield port
        finally:
            process.terminate()
    shutil.rmtree(folder)


def wait_for(port: int) -> None:
    """Until something listens there, for ten seconds."""
    for _ in range(1_000):
        with socket.socket() as asking:
            if asking.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.01)
    raise Refused("nginx does not answer")


@contextmanager
def link(program: Path, port: int) -> Iterator[str]:
    """The URL of that port behind a link of 20 ms and 1 Gbit/s, which ends when its input does."""
    with subprocess.Popen([program, str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield (process.stdout or [""]).readline().strip()  # type: ignore[union-attr]
        process.communicate()
