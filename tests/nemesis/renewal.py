# SPDX-License-Identifier: MIT
"""Over TLS: now and then a certificate and the auth file are written anew, and
a server reads them while its clients go on.
"""
from __future__ import annotations

import random
import re
import signal
import time

from cluster import Cluster

PAUSES_S = (0.2, 4)
REFUSED = re.compile(r"tls_reload_failed|auth_file_refused")


class Renewal:
    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.cluster = cluster
        self.rng = random.Random(f"{seed} renewal")
        self.next_s = 0.0

    def look(self) -> bool:
        """To be called often. True: a server was told."""
        tls, known = self.cluster.config.tls, self.cluster.config.identities
        if not tls or not known or time.monotonic() < self.next_s:
            return False
        self.next_s = time.monotonic() + self.rng.uniform(*PAUSES_S)
        # one that has just been started may not yet expect the signal
        servers = [one for one in self.cluster.servers if one.listens()]
        if not servers:
            return False
        tls.renew()
        known.renew(self.rng)
        self.rng.choice(servers).signal(signal.SIGHUP)
        return True
