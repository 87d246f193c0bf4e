"""Waits for a lock until it is interrupted, and ends: URL, and options of Lock
as JSON."""
import json
import sys

from redlockd import Client, Lock

options = json.loads(sys.argv[2])
names = options.pop("resources")
with Client(sys.argv[1]) as client:
    with Lock(*names, client=client, ttl=4, **options):
        print("granted")
