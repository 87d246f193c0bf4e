# SPDX-License-Identifier: MIT
"""aioredlock: Aioredlock(nodes).lock(resource, lock_timeout=…). It knows no
timeout: where a story needs one, the call is cancelled, as users do."""
import asyncio
import sys
import time
import warnings

from holder import show, show_refusal, silence, usual_validity_ms

warnings.simplefilter("ignore")  # it imports distutils

from aioredlock import Aioredlock  # noqa: E402


class Adapter:
    def __init__(self, addresses):
        self.manager = Aioredlock([
            {"host": host, "port": int(port)}
            for host, port in (address.split(":") for address in addresses)])
        self.locks = {}

    async def acquire(self, resource, ttl_ms):
        start = time.monotonic()
        self.locks[resource] = await self.manager.lock(
            resource, lock_timeout=ttl_ms / 1000)
        return usual_validity_ms(start, ttl_ms), "none"

    async def extend(self, resource, ttl_ms):
        start = time.monotonic()
        await self.manager.extend(self.locks[resource], ttl_ms / 1000)
        return usual_validity_ms(start, ttl_ms), "none"

    async def release(self, resource):
        await self.manager.unlock(self.locks[resource])


async def main():
    silence()
    limit_s = int(sys.argv[1]) / 1000 or None
    adapter = Adapter(sys.argv[2:])
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async for line in lines:
        verb, resource, *ttl = line.decode().split()
        start = time.monotonic()
        call = getattr(adapter, verb)(resource, *map(int, ttl))
        try:
            said = await asyncio.wait_for(call, limit_s)
        except Exception as error:  # whatever it raises is its answer
            show_refusal(start, error)
        else:
            show(start, *(said or (0,)))


asyncio.run(main())
