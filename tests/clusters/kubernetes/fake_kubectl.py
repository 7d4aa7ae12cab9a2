"""A `kubectl` that is none: a script of the shell that answers from a folder, and forwards to the ports of fake members."""

from __future__ import annotations

import json
import os
import signal
from datetime import UTC, datetime
from pathlib import Path

from quarterdeck.backend.core.address import Address, port_of

SCRIPT = """#!/bin/sh
here={folder}
echo "$*" >> $here/calls
say() {{ echo "$1" >&2; exit 1; }}
[ -s $here/error ] && say "$(cat $here/error)"
case "$*" in
*current-context*) echo try ;;
*"get endpointslices"*--watch*) exec tail -n +1 -f $here/changes ;;
*"get endpointslices"*) cat $here/slices ;;
*"get service "*) say 'Error from server (NotFound): services "hazelcast" not found' ;;
*port-forward*)
  for word; do case $word in pod/*) pod=${{word#pod/}} ;; esac; done
  [ -e $here/forward-$pod ] || say "Error from server (NotFound): pods \\"$pod\\" not found"
  echo "Forwarding from 127.0.0.1:$(cat $here/forward-$pod) -> 5701"
  echo $$ > $here/pid-$pod
  while [ -e $here/refusal-$pod ]; do cat $here/refusal-$pod >&2; sleep 0.02; done
  exec sleep 60 ;;
*logs*)
  for word; do case $word in pod/*) pod=${{word#pod/}} ;; esac; done
  [ -e $here/denied-$pod ] && say 'Error from server (Forbidden): pods "x" is forbidden: cannot get resource "pods/log"'
  exec tail -n +1 -f $here/log-$pod ;;
esac
"""


class FakePods:
    """A folder that says which pods there are: set them at any time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder / "kubectl"
        self.program.write_text(SCRIPT.format(folder=folder))
        self.program.chmod(0o755)
        self._pods: dict[str, tuple[str, str]] = {}
        (folder / "changes").touch()
        self._publish()

    @property
    def calls(self) -> list[str]:
        """What the program was called with."""
        return (self.folder / "calls").read_text().splitlines()

    def fail(self, said: str) -> None:
        """Have each call end with these words; none: with none any more."""
        (self.folder / "error").write_text(said)

    def refuse(self, name: str) -> None:
        """Have the host of a pod say that no process listens there: again and again, as for each connection."""
        said = "error forwarding port 5701 to pod, uid : dial tcp4 127.0.0.1:5701: connect: connection refused"
        (self.folder / f"refusal-{name}").write_text(said)

    def run(self, name: str, host: str, uid: str, listens_at: Address) -> None:
        """A pod of this name runs at `host` from now on; its member is reached at `listens_at`."""
        (self.folder / f"forward-{name}").write_text(str(port_of(listens_at)))
        (self.folder / f"log-{name}").touch()
        self._pods[name] = (host, uid)
        self._publish()

    def delete(self, name: str) -> None:
        """There is no pod of this name from now on."""
        (self.folder / f"forward-{name}").unlink()
        del self._pods[name]
        self._publish()
        os.kill(
            int((self.folder / f"pid-{name}").read_text()), signal.SIGTERM
        )  # as the real one ends when its pod does

    def log(self, name: str, text: str) -> None:
        """A pod writes lines."""
        stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        with (self.folder / f"log-{name}").open("a") as file:
            file.writelines(f"{stamp[:-4]}{number:03}Z {line}\n" for number, line in enumerate(text.splitlines()))

    def _publish(self) -> None:
        endpoints = [
            {
                "addresses": [host],
                "conditions": {"ready": False},
                "targetRef": {"kind": "Pod", "name": name, "uid": uid},
            }
            for name, (host, uid) in self._pods.items()
        ]
        text = json.dumps({"items": [{"endpoints": endpoints}, {"endpoints": None}]})
        new = self.folder / "slices.new"
        new.write_text(text)
        new.rename(self.folder / "slices")
        with (self.folder / "changes").open("a") as file:
            file.write("endpointslice.discovery.k8s.io/hazelcast-x\n")
